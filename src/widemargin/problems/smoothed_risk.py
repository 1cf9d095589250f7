"""Sums over rows of smoothed hinge losses, with the derivatives that Newton's method needs.

With the hinges of `row_risk`, z = offset − side s, the half width h of the smoothing, and a centre m between 0 and 1
for each hinge:

                        hinge                                          squared hinge, which needs no smoothing
    loss                weight max(0, z)                               weight max(0, z)²
    dual variable       b = side weight u,  u = clip(m + z/(2h), 0, 1) b = side weight 2 max(0, z)
    second derivative   q = weight/(2h) where 0 < u < 1, the band      q = 2 weight where z > 0

The smoothed loss is the maximum over 0 <= u <= 1 of weight (u z − h (u − m)²), and −b is its derivative by the score.
The centres start at ½. In the method of multipliers, the dual variables found become the next centres: then h need not
be as small as the accuracy that is asked for, and the band contains fewer rows that are not support vectors.

The dual variables b satisfy their box constraints for every h, so that each point gives the lower bound
D(b) = Σ |b| offset − ½|X'b|² of the optimum (for squared hinges, less Σ b²/(4 weight)).
"""

from typing import NamedTuple

import numpy as np

from widemargin._runtime.compile import SUMS, compiled
from widemargin._runtime.threads import run
from widemargin.problems.losses import hinge_argument
from widemargin.problems.row_risk import BLOCK_ROWS, hinges_of, ranges_of

_MAX_STEPS = 100  # of a line search
SLOPE_REDUCTION = 1e-2  # slope at the end of a line search, relative to the slope at its start
_ZERO_SUM = 1e-13  # sum of the dual variables that counts as zero, relative to the sum of all weights


class RiskSums(NamedTuple):
    """Sums over rows at given scores: the losses without smoothing; Σ |b| offset; Σ b²/(4 weight), 0 unless squared."""

    loss: float
    linear: float
    quadratic: float


class SmoothedRisk:
    """The sum of the smoothed losses of a DualQP.

    Parameters
    ----------
    problem : DualQP
        Its losses must be sums of hinges, or sums of squared hinges; X is not used.
    n_jobs : int or None

    Attributes
    ----------
    squared : bool
        Whether the losses are squared hinges: there is no smoothing, and h is not used.
    """

    STATE: tuple[str, ...] = ("_centre",)  # what a checkpoint keeps

    def __init__(self, problem, n_jobs=1):
        self.squared, self._dual_sum = problem.is_squared, problem.dual_sum
        self._n_jobs, self._ranges, self._ones = n_jobs, ranges_of(len(problem.target)), None
        self._problem, self._hinges = problem, hinges_of(problem, self.squared)
        self._centre = np.full(self._hinges.signed_weight.shape, 0.5)

    def change_costs(self, problem, factor):
        """Replace the problem by one that differs only in its costs; multiply the centres below 1 by a factor."""
        self._problem, self._hinges = problem, hinges_of(problem, self.squared)
        self._centre[self._centre < 1.0] *= factor

    def _sum(self, function, *arguments):
        """Return the sums of the results of a function over all ranges of rows."""
        tasks = [(self._hinges, self._centre, self.squared, *ends, *arguments) for ends in self._ranges]
        return np.sum(run(function, tasks, self._n_jobs), axis=0)

    def evaluate(self, s, h, b, q):
        """Set the dual variables b and the second derivatives q at scores s; return RiskSums."""
        return RiskSums(*self._sum(_evaluate, s, h, b, q))

    def predict_dual(self, b, q, t, out):
        """Set `out` to b − q t clipped to its bounds, the dual variables that a step t of the scores would give.

        Returns (linear, quadratic) of these, as in RiskSums.
        """
        p = self._problem
        rows = (p.target, p.epsilon, p.curvature, p.lower, p.upper)
        tasks = [(*rows, b, q, t, *ends, out) for ends in self._ranges]
        return np.sum(run(_predict_dual, tasks, self._n_jobs), axis=0)

    def changing_rows(self, s, t, h, start, stop):
        """Return the rows i, start <= i < stop, whose dual variable may change between scores s and s + t; i − start.

        They are those in the band at s or at s + t, and those that cross the band in between.
        """
        rows = np.empty(stop - start, np.int64)
        return rows[: _changing_rows(self._hinges, self._centre, self.squared, start, stop, s, t, h, rows)]

    def support_rows(self, s, h, start, stop):
        """Return the rows i, start <= i < stop, whose dual variable is not zero at scores s, as i − start."""
        rows = np.empty(stop - start, np.int64)
        return rows[: _support_rows(self._hinges, self._centre, self.squared, start, stop, s, h, rows)]

    def dual_sums(self, b):
        """Return (linear, quadratic), as in RiskSums, of any dual variables b."""
        p = self._problem
        tasks = [[array[slice(*ends)] for array in (p.target, p.epsilon, p.curvature, b)] for ends in self._ranges]
        return np.sum(run(_dual_sums, tasks, self._n_jobs), axis=0)

    def distance_to_bounds(self, b):
        """Return the distance of each dual variable to the nearer of its bounds."""
        return np.minimum(b - self._problem.lower, self._problem.upper - b)

    def clipped(self, i, b):
        """Return a number, or the nearest one within the bounds of dual variable i."""
        return min(max(b, self._problem.lower[i]), self._problem.upper[i])

    def recentre(self, s, h):
        """Set the centres to u at scores s; return the sum of min(u, 1 − u) over the band, and the number of hinges."""
        return self._sum(_recentre, s, h)

    def band_sums(self, s, h):
        """Return what `recentre` would, and leave the centres as they are."""
        tasks = [(self._hinges, self._centre.copy(), self.squared, *ends, s, h) for ends in [(0, len(s))]]
        return np.sum(run(_recentre, tasks, 1), axis=0)

    def derivatives(self, s, t, k, h):
        """Return the first and second derivative of R(s + k t) by k, R the sum of smoothed losses."""
        return self._sum(_derivatives, s, t, k, h)

    def derivatives_by_shift(self, s, shift, h):
        """Return the first and second derivative of R(s + shift) by the shift."""
        if self._ones is None:
            self._ones = np.ones(len(s))
        return self.derivatives(s, self._ones, shift, h)

    @property
    def total_weight(self):
        """The sum of the weights of all hinges."""
        return float(np.abs(self._hinges.signed_weight).sum())

    def line_search(self, s, t, h, *terms):
        """Return a k near the minimiser of φ(k) = ½ curvature k² + slope k + R(s + k t), as `line_search` below."""
        return line_search(lambda k: self.derivatives(s, t, k, h), h, *terms)

    def best_intercept(self, s, h):
        """Return the minimiser of R(s + intercept) + dual_sum intercept, at which Σ b is dual_sum."""
        return zero_of_sum(lambda shift: self.derivatives_by_shift(s, shift, h), h, self.total_weight, self._dual_sum)

    def line_search_with_intercept(self, s, t, h, *terms):
        """Return k as `line_search` does, where the best intercept is added to the scores at each k."""

        def slope_at(k):
            scores = s + k * t
            return self.derivatives(scores + self.best_intercept(scores, h), t, 0.0, h)[0]

        return line_search_by_bisection(slope_at, *terms)


def mean_distance(total, count):
    """Return how far hinges within the band are from their bounds, from the results of `recentre`.

    That is the mean of min(u, 1 − u), at most ½, and ½ if the band is empty.
    """
    return total / count if count else 0.5


# --- Line searches, by the derivatives of sums over rows -------------------------------------------------------------


def line_search(derivatives, h, curvature, slope, initial_slope):
    """Return a k near the minimiser of φ(k) = ½ curvature k² + slope k + R(k).

    `derivatives(k)` returns R'(k) and R''(k). `initial_slope` is φ'(0), by which the accuracy is set.
    """
    tolerance = SLOPE_REDUCTION * abs(initial_slope)
    return zero_of_slope(derivatives, h, 1.0, tolerance=tolerance, slope=slope, curvature=curvature)


def line_search_by_bisection(slope_at, curvature, slope, initial_slope):
    """Return k as `line_search` does, from R' alone."""
    low, high, k, tolerance = 0.0, np.inf, 1.0, SLOPE_REDUCTION * abs(initial_slope)
    for _ in range(_MAX_STEPS):
        first = slope_at(k) + slope + curvature * k
        if abs(first) <= tolerance or high - low <= SLOPE_REDUCTION * low:
            break
        low, high = (k, high) if first < 0.0 else (low, k)
        k = 2.0 * low if np.isinf(high) else 0.5 * (low + high)
    return k


def zero_of_sum(derivatives, h, total_weight, dual_sum=0.0):
    """Return the shift of all scores at which the first of `derivatives(shift)` is −dual_sum, and the sum of b this."""
    return zero_of_slope(derivatives, h, 0.0, tolerance=_ZERO_SUM * total_weight, slope=dual_sum)


def zero_of_slope(derivatives, h, k, *, tolerance, slope=0.0, curvature=0.0):
    """Return where |φ'| <= tolerance, by Newton's method within a bracket, starting from k."""
    low, high, stride = -np.inf, np.inf, h
    for _ in range(_MAX_STEPS):
        first, second = derivatives(k)
        first, second = first + slope + curvature * k, second + curvature
        if abs(first) <= tolerance:
            break
        low, high = (k, high) if first < 0.0 else (low, k)
        is_bracketed = np.isfinite(low) and np.isfinite(high)
        if second > 0.0 and low < k - first / second < high:
            k -= first / second
        elif is_bracketed:
            k = 0.5 * (low + high)
        else:  # no hinge is in its band here: go farther, in steps of doubled length
            k, stride = k - np.sign(first) * stride, 2.0 * stride
        if is_bracketed and high - low <= 1e-15 * max(abs(low), abs(high)):
            break
    return k


@compiled
def _evaluate(hinges, centre, squared, start, stop, s, h, b, q):
    """Set b and q for rows start <= i < stop; return the numbers of RiskSums."""
    loss, linear, quadratic = 0.0, 0.0, 0.0
    for first in range(start, stop, BLOCK_ROWS):
        block = slice(first, min(first + BLOCK_ROWS, stop))
        b[block], q[block] = 0.0, 0.0
        for layer in range(hinges.signed_weight.shape[0]):
            signed_weight, offset = hinges.signed_weight[layer][block], hinges.offset[layer][block]
            m = centre[layer][block]
            if squared:
                _add_squared(signed_weight, offset, s[block], b[block], q[block])
                sums = _sum_squared(signed_weight, offset, s[block])
                quadratic += sums[0]
            else:
                _add_smoothed(signed_weight, offset, m, s[block], h, b[block], q[block])
                sums = _sum_smoothed(signed_weight, offset, m, s[block], h)
            loss, linear = loss + sums[0], linear + sums[1]
    return loss, linear, quadratic


@compiled
def _add_smoothed(signed_weight, offset, m, s, h, b, q):
    """Add the dual variables and second derivatives of a layer of smoothed hinges to b and q."""
    rate = 0.5 / h
    for i in range(s.size):
        u = m[i] + rate * hinge_argument(signed_weight[i], offset[i], s[i])
        b[i] += signed_weight[i] * (0.0 if u < 0.0 else (1.0 if u > 1.0 else u))
        q[i] += abs(signed_weight[i]) * (rate if (u > 0.0) & (u < 1.0) else 0.0)


@compiled(fastmath=SUMS)
def _sum_smoothed(signed_weight, offset, m, s, h):
    """Return the sum of the losses without smoothing, and Σ |b| offset."""
    loss, linear, rate = 0.0, 0.0, 0.5 / h
    for i in range(s.size):
        z = hinge_argument(signed_weight[i], offset[i], s[i])
        u = m[i] + rate * z
        loss += abs(signed_weight[i]) * (z if z > 0.0 else 0.0)
        linear += abs(signed_weight[i]) * offset[i] * (0.0 if u < 0.0 else (1.0 if u > 1.0 else u))
    return loss, linear


@compiled
def _add_squared(signed_weight, offset, s, b, q):
    """Add the dual variables and second derivatives of a layer of squared hinges to b and q."""
    for i in range(s.size):
        z = hinge_argument(signed_weight[i], offset[i], s[i])
        b[i] += 2.0 * signed_weight[i] * (z if z > 0.0 else 0.0)
        q[i] += 2.0 * abs(signed_weight[i]) * (1.0 if z > 0.0 else 0.0)


@compiled(fastmath=SUMS)
def _sum_squared(signed_weight, offset, s):
    """Return the sum of the losses, which equals Σ b²/(4 weight), and Σ |b| offset."""
    loss, linear = 0.0, 0.0
    for i in range(s.size):
        z = hinge_argument(signed_weight[i], offset[i], s[i])
        z = z if z > 0.0 else 0.0
        loss += abs(signed_weight[i]) * z * z
        linear += 2.0 * abs(signed_weight[i]) * z * offset[i]
    return loss, linear


@compiled(fastmath=SUMS)
def _derivatives(hinges, centre, squared, start, stop, s, t, k, h):
    """Return the first and second derivative of the smoothed losses at s + k t by k."""
    first, second = 0.0, 0.0
    s, t, rate = s[start:stop], t[start:stop], 0.5 / h
    for layer in range(hinges.signed_weight.shape[0]):
        signed_weight, offset = hinges.signed_weight[layer][start:stop], hinges.offset[layer][start:stop]
        m = centre[layer][start:stop]
        for i in range(s.size):
            z = hinge_argument(signed_weight[i], offset[i], s[i] + k * t[i])
            if squared:
                u, u_rate = (2.0 * z, 2.0) if z > 0.0 else (0.0, 0.0)
            else:
                u = m[i] + rate * z
                u_rate = rate if (u > 0.0) & (u < 1.0) else 0.0
                u = 0.0 if u < 0.0 else (1.0 if u > 1.0 else u)
            first -= signed_weight[i] * u * t[i]
            second += abs(signed_weight[i]) * u_rate * t[i] * t[i]
    return first, second


@compiled
def _recentre(hinges, centre, squared, start, stop, s, h):
    """Set the centres to u at scores s; return Σ min(u, 1 − u), and the number of hinges within the band."""
    rate, s, total, count = 0.5 / h, s[start:stop], 0.0, 0
    for layer in range(hinges.signed_weight.shape[0]):
        signed_weight, offset = hinges.signed_weight[layer][start:stop], hinges.offset[layer][start:stop]
        m = centre[layer][start:stop]
        for i in range(s.size):
            u = m[i] + rate * hinge_argument(signed_weight[i], offset[i], s[i])
            u = 0.0 if u < 0.0 else (1.0 if u > 1.0 else u)
            m[i] = u
            total += u if u < 0.5 else 1.0 - u
            count += (u > 0.0) & (u < 1.0) & (signed_weight[i] != 0.0)
    return total, count


@compiled
def _predict_dual(target, epsilon, curvature, lower, upper, b, q, t, start, stop, out):
    """Set out = b − q t clipped to its bounds; return `_dual_sums` of it."""
    linear, quadratic = 0.0, 0.0
    for first in range(start, stop, BLOCK_ROWS):
        block = slice(first, min(first + BLOCK_ROWS, stop))
        _clipped_step(lower[block], upper[block], b[block], q[block], t[block], out[block])
        sums = _dual_sums(target[block], epsilon[block], curvature[block], out[block])
        linear, quadratic = linear + sums[0], quadratic + sums[1]
    return linear, quadratic


@compiled
def _clipped_step(lower, upper, b, q, t, out):
    """Set out = b − q t clipped to its bounds."""
    for i in range(out.size):
        unclipped = b[i] - q[i] * t[i]
        out[i] = lower[i] if unclipped < lower[i] else (upper[i] if unclipped > upper[i] else unclipped)


@compiled(fastmath=SUMS)
def _dual_sums(target, epsilon, curvature, b):
    """Return Σ target b − epsilon |b|, and Σ ½ curvature b²."""
    linear, quadratic = 0.0, 0.0
    for i in range(b.size):
        linear += target[i] * b[i] - epsilon[i] * abs(b[i])
        quadratic += 0.5 * curvature[i] * b[i] * b[i]
    return linear, quadratic


@compiled
def _changing_rows(hinges, centre, squared, start, stop, s, t, h, rows):
    """Write the result of SmoothedRisk.changing_rows to the front of `rows`; return the number of rows."""
    n, rate = 0, 0.5 / h
    for i in range(start, stop):
        changes = False
        for layer in range(hinges.signed_weight.shape[0]):
            signed_weight, offset = hinges.signed_weight[layer, i], hinges.offset[layer, i]
            z, new_z = hinge_argument(signed_weight, offset, s[i]), hinge_argument(signed_weight, offset, s[i] + t[i])
            if squared:
                changes |= (signed_weight != 0.0) & ((z > 0.0) | (new_z > 0.0))
            else:
                u, new_u = centre[layer, i] + rate * z, centre[layer, i] + rate * new_z
                is_constant = ((u <= 0.0) & (new_u <= 0.0)) | ((u >= 1.0) & (new_u >= 1.0))
                changes |= (signed_weight != 0.0) & (not is_constant)
        rows[np.uint64(n)] = i - start
        n += changes
    return n


@compiled
def _support_rows(hinges, centre, squared, start, stop, s, h, rows):
    """Write the result of SmoothedRisk.support_rows to the front of `rows`; return the number of rows."""
    n, rate = 0, 0.5 / h
    for i in range(start, stop):
        is_support = False
        for layer in range(hinges.signed_weight.shape[0]):
            signed_weight = hinges.signed_weight[layer, i]
            z = hinge_argument(signed_weight, hinges.offset[layer, i], s[i])
            is_support |= (signed_weight != 0.0) & ((z > 0.0) if squared else (centre[layer, i] + rate * z > 0.0))
        rows[np.uint64(n)] = i - start
        n += is_support
    return n
