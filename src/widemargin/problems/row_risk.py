"""Risks that are sums over rows, R(s) = Σ_i loss_i(s_i): value, subgradient and exact line search.

A risk is a convex, nonnegative function of the scores s, one per row; it does not use X. Every risk has

    subgradient(s)                (R(s), c) with R(t) >= R(s) + <c, t − s> for all t; c is valid until the next call
    value(s)                      R(s)
    along(s, t, k, out)           (s + k t, R(s + k t), c at s + k t); the scores are written to `out`
    step(s, t, curvature, slope)  the Step to the k >= 0 that minimises φ(k) = ½ curvature k² + slope k + R(s + k t)
    scale                         the factor by which R multiplies a mean loss

The losses of a `DualQP` are sums of hinges, one per row, or two per row for regression (one for each side of the tube):

    loss = weight max(0, z)  or  weight max(0, z)²,     z = offset − side s,  side +1 or −1

Line search. As a function of k, each hinge has a kink where z = 0, at which the slope of φ jumps up. The zero of the
slope is found in O(n) without sorting: the kinks of a sample of the rows give a short interval that probably contains
the zero; one pass over all rows sums the slope before the interval and collects the kinks inside; quickselect finds the
kink at which the slope changes its sign. Squared hinges have no jumps, and Newton's method finds the zero in a few
passes. Rows are divided among threads.

An intercept that is not penalised minimises R(s + b) + dual_sum b over b (`FreeInterceptRisk`). If the minimiser is a
kink, we choose the subgradient whose entries sum to −dual_sum, which is 0 but for one-class machines; it is then a
subgradient for every intercept. The minimum may be negative if dual_sum is not 0.
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from widemargin._runtime.compile import SUMS, compiled
from widemargin._runtime.threads import run, split
from widemargin.problems.line_search import (
    SampledKinks,
    bracketed_step,
    stride_of_sample,
    zero_by_kinks,
    zero_by_newton,
)
from widemargin.problems.losses import hinge_argument

_ROWS_PER_TASK = 1 << 17  # a few tenths of a millisecond of work, enough to occupy another thread
BLOCK_ROWS = 1 << 10  # rows that stay in the cache between two loops, one that sums and one that stores. A single loop
# would be vectorised or not depending on the addresses of its arrays, and its sums would differ in their last bits
_ROWS_OF_SIZES = 1 << 20  # whose absolute values are in memory at a time


class Hinges(NamedTuple):
    """The hinges of all rows; arrays of shape (n_layers, n_rows), with one or two hinges (layers) per row.

    `signed_weight` is side times weight, `offset` as in the module docstring.
    """

    signed_weight: np.ndarray
    offset: np.ndarray


class Step(NamedTuple):
    """The result of a line search: the step length k, and the scores, the risk and a subgradient at s + k t.

    `cut` is (scores, risk, c) at a point beyond the minimiser, whose cutting plane excludes all points farther away;
    None if the search was exact, so that every point beyond the minimiser will do.
    """

    k: float
    scores: np.ndarray
    risk: float
    c: np.ndarray
    cut: tuple | None


class RowRisk:
    """The sum of the losses of a DualQP.

    Parameters
    ----------
    problem : DualQP
        Its losses must be sums of hinges, or sums of squared hinges; X is not used.
    n_jobs : int or None
    """

    STATE = ()  # what a checkpoint keeps: nothing that cannot be computed again

    def __init__(self, problem, n_jobs=1):
        self.squared, self.dual_sum = problem.is_squared, problem.dual_sum
        self._hinges = hinges_of(problem, self.squared)
        self._n, self._n_jobs = len(problem.target), n_jobs
        self._ranges = ranges_of(self._n)
        # Allocated once: the first access to fresh memory takes as long as the computation.
        self._kinks = np.empty((2, 0 if self.squared else self._hinges.signed_weight.size))
        self._c, *self._memory = np.empty((3, self._n))
        self._sample_stride, self._sample = stride_of_sample(self._n), None
        self.scale = float(np.abs(self._hinges.signed_weight).max(axis=0).sum())

    def _sum(self, function, *arguments):
        """Return the sum of the results of a function over all ranges of rows; an array if it returns several."""
        tasks = [(self._hinges, self.squared, start, stop, *arguments) for start, stop in self._ranges]
        return np.sum(run(function, tasks, self._n_jobs), axis=0)

    def subgradient(self, s):
        """Return (R(s), c)."""
        return float(self._sum(_slopes, s, self._c)), self._c

    def value(self, s):
        """Return R(s)."""
        return self.subgradient(s)[0]

    def along(self, s, t, k, out):
        """Return (s + k t, R(s + k t), c at s + k t); the scores are written to `out`."""
        return out, float(self._sum(_slopes_along, s, t, k, out, self._c)), self._c

    def step(self, s, t, curvature, slope):
        """Return the Step to the best k >= 0; its scores are valid until a step that does not start from them."""
        k, _ = self._zero_of_slope(s, t, curvature, slope, 0.0)
        return Step(k, *self.along(s, t, k, self._memory[1 if s is self._memory[0] else 0]), None)

    def minimise_over_intercept(self, s):
        """Return (b, r, c) for the intercept b at which r = R(s + b) + dual_sum b is smallest.

        c is a subgradient of R at s + b with Σ c_i = −dual_sum, and so one of the minimum as a function of s.
        """
        intercept, fraction = self._zero_of_slope(s, np.ones(self._n), 0.0, self.dual_sum, -np.inf)
        risk, c = self.subgradient(s + intercept)
        risk += self.dual_sum * intercept
        c = c.copy()  # a BracketedStep keeps it
        if not self.squared:
            self._sum(_slopes_at_kink, s, intercept, fraction, c)
        return intercept, risk, c

    def _zero_of_slope(self, s, t, curvature, slope, k_min):
        """Return (k, fraction): the k >= k_min where the slope of φ changes its sign.

        If k is a kink, `fraction` is the fraction of its jump that lies below zero.
        """
        if self.squared:
            return zero_by_newton(lambda k: self.derivatives(s, t, k), curvature, slope, k_min), 0.0
        sample = None if self._sample_stride == 1 else self.sampled_kinks(s, t, k_min, self._sample_stride)
        return zero_by_kinks(lambda *ends: self.kinks_in(s, t, *ends), sample, curvature, slope, k_min)

    def derivatives(self, s, t, k):
        """Return φ'(k), φ''(k) without the terms in curvature and slope, and the sum of the sizes of the terms."""
        return self._sum(_derivatives, s, t, k)

    def kinks_in(self, s, t, low, high):
        """Return the slope of R just after k = low, and the places and jumps of the kinks in (low, high]."""
        tasks = [(self._hinges, *ends, s, t, low, high, self._kinks) for ends in self._ranges]
        found = run(_collect_kinks, tasks, self._n_jobs)
        return joined_kinks(self._kinks, [len(self._hinges.signed_weight) * start for start, _ in self._ranges], found)

    def sampled_kinks(self, s, t, k_min, stride):
        """Return the SampledKinks of every `stride`-th row."""
        if self._sample is None or self._sample_stride != stride:
            self._sample_stride = stride
            self._sample = Hinges(*(np.ascontiguousarray(array[:, ::stride]) for array in self._hinges))
        s, t = s[::stride].copy(), t[::stride].copy()
        slope_before, count = _collect_kinks(self._sample, 0, len(s), s, t, k_min, np.inf, self._kinks)
        return SampledKinks(slope_before, *self._kinks[:, :count].copy(), stride)


def joined_kinks(kinks, firsts, found):
    """Return the slope before the kinks of all ranges of rows, and their places and jumps, moved together in `kinks`.

    `found` has the slope and the number of kinks of each range, and `firsts` where they begin.
    """
    n = 0
    for first, (_, count) in zip(firsts, found, strict=True):
        if n < first:
            kinks[:, n : n + count] = kinks[:, first : first + count]
        n += count
    return sum(slope for slope, _ in found), *kinks[:, :n]


def hinges_of(problem, squared):
    """Return the Hinges of a DualQP's losses: one layer if each row has a loss on one side only, else two.

    Raises
    ------
    ValueError
        If the losses are neither sums of hinges nor sums of squared hinges.
    """
    if not problem.is_made_of_hinges:
        raise ValueError(
            "this solver takes losses that are hinges for all rows, or squared hinges for all rows; this problem has "
            "other losses, with a curvature and a finite bound. Use solver='dcd', 'avsf' or 'climb'; 'newton' takes "
            "them if the rows are few enough to be stored as a dense array."
        )
    if squared:
        weight = np.divide(0.5, problem.curvature, out=np.zeros_like(problem.curvature), where=problem.curvature > 0.0)
        above, below = (np.where(bound != 0.0, weight, 0.0) for bound in (problem.upper, problem.lower))
    else:
        above, below = problem.upper, -problem.lower
    above_offset, below_offset = problem.target - problem.epsilon, -problem.target - problem.epsilon
    if not (above * below).any():
        is_above = above > 0.0
        signed_weight, offset = np.where(is_above, above, -below), np.where(is_above, above_offset, below_offset)
        return Hinges(signed_weight[np.newaxis], offset[np.newaxis])
    return Hinges(np.stack([above, -below]), np.stack([above_offset, below_offset]))


class BracketedStep:
    """An inexact line search for risks that have only a subgradient: bracketing and interpolation of the slope.

    The subgradient at the end of a step is kept, because the next step starts there.
    """

    slopes_per_scale = 2.0  # upper bound of Σ |c_i| of every subgradient, relative to `scale`
    STATE = ()  # what a checkpoint keeps: nothing that cannot be computed again
    depends_on_intercept = True  # whether adding a number to all scores changes R

    _last = (None, 0.0, None)  # scores, R, c

    def value(self, s):
        """Return R(s)."""
        return self.subgradient(s)[0]

    def along(self, s, t, k, out):
        """Return (s + k t, R(s + k t), c at s + k t); the scores are written to `out`."""
        scores = _moved(s, t, k, out)
        return scores, *self.subgradient(scores)

    def step(self, s, t, curvature, slope):
        """Return the Step to the best k >= 0 that was evaluated."""
        if self._last[0] is not s:
            self._last = (s, *self.subgradient(s))
        points = {0.0: self._last}

        def evaluate(k):
            if k not in points:
                scores = _moved(s, t, k)
                points[k] = (scores, *self.subgradient(scores))
            _, risk, c = points[k]
            return risk, float(c @ t)

        best, cut = bracketed_step(evaluate, curvature, slope)
        self._last = points[best]
        return Step(best, *points[best], None if cut is None else points[cut])


class FreeInterceptRisk(BracketedStep):
    """min over b of R(s + b) + dual_sum b, for a RowRisk R: the risk if the intercept b is not penalised.

    Attributes
    ----------
    largest_term : float
        The largest |dual_sum b| so far. The term may cancel against the losses, and its rounding errors do not.
    """

    def __init__(self, risk):
        self.scale, self._risk, self.largest_term = risk.scale, risk, 0.0

    def subgradient(self, s):
        """Return the minimum, and c."""
        intercept, risk, c = self._risk.minimise_over_intercept(s)
        self.largest_term = max(self.largest_term, abs(self._risk.dual_sum * intercept))
        return risk, c

    def intercept(self, s):
        """Return the minimiser b."""
        return self._risk.minimise_over_intercept(s)[0]


@lru_cache(maxsize=64)
def ranges_of(n_rows):
    """Return (start, stop) ranges of rows for threads that do little work per row: one range, or an even number."""
    return tuple(split(n_rows, 2 * -(-n_rows // (2 * _ROWS_PER_TASK)) if n_rows > _ROWS_PER_TASK else 1))


def _moved(s, t, k, out=None):
    """Return s + k t, without further memory; `out` may be t."""
    out = np.multiply(t, k, out=out)
    out += s
    return out


def product_of_sizes(a, b):
    """Return Σ |a_i| |b_i| for vectors over rows; b may be one number without memory of its own."""
    if len(b) and b.strides == (0,):
        parts = [slice(first, first + _ROWS_OF_SIZES) for first in range(0, len(a), _ROWS_OF_SIZES)]
        return abs(float(b[0])) * float(sum(np.abs(a[part]).sum() for part in parts))
    return float(_sum_of_sizes(a, b))


@compiled(fastmath=SUMS)
def dot(a, b):
    """Return <a, b>."""
    total = 0.0
    for i in range(a.size):
        total += a[i] * b[i]
    return total


@compiled(fastmath=SUMS)
def _sum_of_sizes(a, b):
    """Return Σ |a_i b_i|."""
    total = 0.0
    for i in range(a.size):
        total += abs(a[i] * b[i])
    return total


def norms_of(squared_norms):
    """Return square roots; if all squared norms are one number without memory of its own, so are the norms."""
    if squared_norms.strides == (0,) and len(squared_norms):
        return np.broadcast_to(np.sqrt(squared_norms[0]), len(squared_norms))
    return np.sqrt(squared_norms)


def axpby(a, x, b, y, out, n_jobs):
    """Set out = a x + b y for vectors x, y over rows and numbers a, b, by several threads; return it."""
    run(_axpby, [(a, x, b, y, *ends, out) for ends in ranges_of(len(x))], n_jobs)
    return out


@compiled
def _axpby(a, x, b, y, start, stop, out):
    x, y, out = x[start:stop], y[start:stop], out[start:stop]
    for i in range(out.size):
        out[i] = a * x[i] + b * y[i]


@compiled
def _slopes(hinges, squared, start, stop, s, c):
    """Set c_i to the derivative of row i's loss by its score, start <= i < stop; return the sum of the losses."""
    total = 0.0
    for first in range(start, stop, BLOCK_ROWS):
        block = slice(first, min(first + BLOCK_ROWS, stop))
        c[block] = 0.0
        for layer in range(hinges.signed_weight.shape[0]):
            signed_weight, offset = hinges.signed_weight[layer][block], hinges.offset[layer][block]
            total += _sum_losses(signed_weight, offset, squared, s[block])
            _add_slopes(signed_weight, offset, squared, s[block], c[block])
    return total


@compiled
def _slopes_along(hinges, squared, start, stop, s, t, k, out, c):
    """Set out = s + k t and c as `_slopes` does, at these scores; return the sum of the losses."""
    total = 0.0
    for first in range(start, stop, BLOCK_ROWS):
        last = min(first + BLOCK_ROWS, stop)
        _axpby(1.0, s, k, t, first, last, out)
        total += _slopes(hinges, squared, first, last, out, c)
    return total


@compiled(fastmath=SUMS)
def _sum_losses(signed_weight, offset, squared, s):
    """Return the sum of the losses of a layer of hinges."""
    total = 0.0
    for i in range(s.size):
        z = hinge_argument(signed_weight[i], offset[i], s[i])
        z = z if z > 0.0 else 0.0
        total += abs(signed_weight[i]) * (z * z if squared else z)
    return total


@compiled
def _add_slopes(signed_weight, offset, squared, s, c):
    """Add the derivatives of a layer of hinges by the scores to c."""
    for i in range(s.size):
        z = hinge_argument(signed_weight[i], offset[i], s[i])
        c[i] -= signed_weight[i] * ((2.0 * z if squared else 1.0) if z > 0.0 else 0.0)


@compiled
def _slopes_at_kink(hinges, squared, start, stop, s, intercept, fraction, c):
    """Set c_i at scores s + intercept, where the intercept is a kink of some hinges.

    The derivative of these is taken at the given fraction of its jump. Kinks are computed with the same rounding as in
    `_collect_kinks`, so that the comparison with the intercept is exact.
    """
    s, c = s[start:stop], c[start:stop]
    c[:] = 0.0
    for layer in range(hinges.signed_weight.shape[0]):
        signed_weight, offset = hinges.signed_weight[layer][start:stop], hinges.offset[layer][start:stop]
        for i in range(s.size):
            side = np.copysign(1.0, signed_weight[i])
            place = hinge_argument(signed_weight[i], offset[i], s[i]) / side
            passed = fraction if place == intercept else (1.0 if place < intercept else 0.0)
            c[i] -= signed_weight[i] * (1.0 - passed if side > 0.0 else passed)
    return 0.0


@compiled(fastmath=SUMS)
def _derivatives(hinges, squared, start, stop, s, t, k):
    """Return the first and second derivative of the squared hinges at s + k t by k, and Σ |term| of the first."""
    first, second, size = 0.0, 0.0, 0.0
    s, t = s[start:stop], t[start:stop]
    for layer in range(hinges.signed_weight.shape[0]):
        signed_weight, offset = hinges.signed_weight[layer][start:stop], hinges.offset[layer][start:stop]
        for i in range(s.size):
            z = hinge_argument(signed_weight[i], offset[i], s[i] + k * t[i])
            z = z if z > 0.0 else 0.0
            term = 2.0 * signed_weight[i] * z * t[i]
            first -= term
            size += abs(term)
            second += 2.0 * abs(signed_weight[i]) * t[i] * t[i] if z > 0.0 else 0.0
    return first, second, size


@compiled
def _collect_kinks(hinges, start, stop, s, t, low, high, kinks):
    """Return the slope of the losses just after k = low, and the number of kinks in (low, high].

    The places and jumps of these kinks are written to kinks[0] and kinks[1], from position n_layers start on.
    """
    slope, n = 0.0, hinges.signed_weight.shape[0] * start
    for layer in range(hinges.signed_weight.shape[0]):
        for first in range(start, stop, BLOCK_ROWS):
            block = slice(first, min(first + BLOCK_ROWS, stop))
            signed_weight, offset = hinges.signed_weight[layer][block], hinges.offset[layer][block]
            _kink_places(signed_weight, offset, s[block], t[block], kinks[0][n:])
            slope += _slope_after(signed_weight, t[block], low, kinks[0][n:])
            n += _select_kinks(signed_weight, t[block], low, high, kinks[0][n:], kinks[1][n:])
    return slope, n - hinges.signed_weight.shape[0] * start


@compiled
def _kink_places(signed_weight, offset, s, t, places):
    """Set the k at which each hinge of a layer has its kink; ∞ if t_i = 0, so that the score does not change."""
    for i in range(s.size):
        side = np.copysign(1.0, signed_weight[i])
        places[i] = hinge_argument(signed_weight[i], offset[i], s[i]) / (side * t[i]) if t[i] != 0.0 else np.inf


@compiled(fastmath=SUMS)
def _slope_after(signed_weight, t, low, places):
    """Return the slope of a layer just after k = low.

    A hinge has positive loss there if it decreases along t and its kink comes later, or increases and the kink has
    been passed.
    """
    slope = 0.0
    for i in range(t.size):
        direction = np.copysign(1.0, signed_weight[i]) * t[i]
        slope -= abs(signed_weight[i]) * direction if (places[i] > low) == (direction > 0.0) else 0.0
    return slope


@compiled
def _select_kinks(signed_weight, t, low, high, places, jumps):
    """Move the kinks in (low, high] to the front, with their jumps; return their number.

    Every kink is written, and the position advances only if it lies in the interval: there is no branch to mispredict.
    """
    n = 0
    for i in range(t.size):
        place = places[i]
        places[np.uint64(n)], jumps[np.uint64(n)] = place, abs(signed_weight[i] * t[i])
        n += (low < place) & (place <= high) & (place < np.inf)
    return n
