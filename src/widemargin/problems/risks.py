"""Risks that are sums over rows, R(s) = Σ_i loss_i(s_i): value, subgradient, and exact search along a line of scores.

A risk never sees X: it is a convex function of the scores s, one per row, that is nowhere negative. Every risk has

    value(s)                      R(s)
    subgradient(s)                (R(s), c) with R(t) >= R(s) + <c, t − s> for all t
    step(s, t, curvature, slope)  the Step to the k >= 0 that minimises ½ curvature k² + slope k + R(s + k t)
    scale                         what a mean loss is multiplied by in R

The losses of rows are those of a `DualQP`, five numbers each, whose residual r = target − s gives the best multiplier

    b(r) = r − epsilon sign r, divided by shift, between lower and upper; 0 if |r| <= epsilon;    c = −b

Without shift b jumps: along a line each row has a kink at r = ±epsilon at most, where the slope rises by a jump. Where
the slope changes its sign is found by a sample, which gives a short interval that should hold it; one pass sums up what
lies before the interval and collects the kinks in it, which are sorted. Work is n, and rows are split over threads.
With shift the slope is continuous, and Newton's method finds its zero in a few passes.

An intercept that is not penalised is a shift of all scores to where R is least (`CentredRisk`). Where that is a kink,
the subgradient is the one of those possible there whose entries sum to zero: so it is one for every intercept.
"""

from typing import NamedTuple

import numpy as np

from widemargin._compiled import compiled
from widemargin._threads import run, split

_RANGE = 1 << 15  # rows of one task
_SAMPLE = 1 << 11  # rows that give the first interval
_MARGIN = 3.0  # standard deviations by which the sample may err
_NEWTON_STEPS = 60
_EXACT = 1e-13
_LOOKS = 3  # points of a line at which a risk that has no exact search is looked at
_FLAT = 0.05  # a slope this small, against that of the other side, is as good as none
_SORTED_AT_ONCE = 1 << 15


class Rows(NamedTuple):
    """The numbers of a DualQP that make its losses."""

    target: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    shift: np.ndarray
    epsilon: np.ndarray


class Step(NamedTuple):
    """A step along a line of scores: its length k, and the risk and the scores there.

    `cut`: (scores, risk, c) at a point of the line beyond its lowest one, where a plane cuts off what lies further on;
    None if the step is exact, so that every point beyond it is such a point.
    """

    k: float
    risk: float
    scores: np.ndarray
    cut: tuple | None


class RowRisk:
    """The sum of the losses of a DualQP.

    Parameters
    ----------
    problem : DualQP
        Of which X is not looked at.
    n_jobs : int or None
    """

    def __init__(self, problem, n_jobs=None):
        self._rows = Rows(problem.target, problem.lower, problem.upper, problem.shift, problem.epsilon)
        self._n_jobs = n_jobs
        self._n = len(problem.target)
        self._ranges = split(self._n, -(-self._n // _RANGE))
        self._springs = bool((problem.shift > 0.0).any())
        self._kinks = np.empty((2, 2 * self._n)) if not self._springs else None
        sides = np.maximum(problem.upper, -problem.lower)
        cost = np.divide(0.5, problem.shift, out=sides.copy(), where=problem.shift > 0.0)
        self.scale = float(cost.sum())

    def _sum(self, function, *arguments):
        """Return the sum of what a loop returns for each range of rows; a tuple of sums if it returns several."""
        tasks = [(self._rows, start, stop, *arguments) for start, stop in self._ranges]
        return np.sum(run(function, tasks, self._n_jobs), axis=0)

    def value(self, s):
        """Return R(s)."""
        return float(self._sum(_losses, s))

    def subgradient(self, s):
        """Return (R(s), c)."""
        c = np.empty(self._n)
        return float(self._sum(_slopes, s, c)), c

    def step(self, s, t, curvature, slope):
        """Return the Step to the best k >= 0."""
        k, _ = self._zero(s, t, curvature, slope, 0.0)
        there = s + k * t
        return Step(k, self.value(there), there, None)

    def centre(self, s):
        """Return (shift, R, c): the shift of all scores that makes R least, R there, and c with Σ c = 0."""
        shift, part = self._zero(s, np.ones(self._n), 0.0, 0.0, -np.inf)
        moved, c = s + shift, np.empty(self._n)
        if self._springs:
            value = float(self._sum(_slopes, moved, c))
        else:
            value = float(self._sum(_slopes_at_kink, s, shift, part, c))
        return shift, value, c

    def _zero(self, s, t, curvature, slope, least):
        """Return (k, part): where the slope along the line changes its sign, and which part of its jump is below 0."""
        if self._springs:
            return self._newton(s, t, curvature, slope, least), 0.0
        low, high = self._guess(s, t, curvature, slope, least)
        while True:
            counts = run(
                _collect, [(self._rows, *ends, s, t, low, high, self._kinks) for ends in self._ranges], self._n_jobs
            )
            before = slope + float(np.sum([one[0] for one in counts]))
            where = [slice(2 * start, 2 * start + n) for (start, _), (_, n) in zip(self._ranges, counts, strict=True)]
            kinks, jumps = (np.concatenate([line[here] for here in where]) for line in self._kinks)
            order = np.argsort(kinks)
            k, part, found = _walk(kinks[order], jumps[order], low, high, curvature, before)
            if found == 0 or (found < 0 and low == least):
                return k, part
            low, high = (least, low) if found < 0 else (high, np.inf)

    def _guess(self, s, t, curvature, slope, least):
        """Return an interval that should hold the zero, by a sample of the rows; all of the line if they are few."""
        every = self._n // _SAMPLE
        if every <= 1:
            return least, np.inf
        some = Rows(*(np.ascontiguousarray(numbers[::every]) for numbers in self._rows))
        n = len(some.target)
        kinks = np.empty((2, 2 * n))
        before, count = _collect(some, 0, n, s[::every].copy(), t[::every].copy(), least, np.inf, kinks)
        if count == 0:
            return least, np.inf
        order = np.argsort(kinks[0, :count])
        places, jumps = kinks[0, order], kinks[1, order] * every
        k, _, _ = _walk(places, jumps, least, np.inf, curvature, slope + before * every)
        here = np.searchsorted(places, k)
        error = int(_MARGIN * np.sqrt(count)) + 1
        low = places[here - error] if here >= error else least
        high = places[here + error] if here + error < count else np.inf
        return low, high

    def _newton(self, s, t, curvature, slope, least):
        """Return the zero of a slope without jumps."""
        low, high, k = least, np.inf, 0.0
        for _ in range(_NEWTON_STEPS):
            rise, bend, size = self._sum(_slope_and_bend, s, t, k)
            rise, bend = rise + slope + curvature * k, bend + curvature
            if abs(rise) <= _EXACT * (size + abs(slope) + abs(curvature * k)) or bend <= 0.0:
                break
            if rise > 0.0 and k <= least:
                break
            low, high = (k, high) if rise < 0.0 else (low, k)
            k -= rise / bend
            if not low < k < high:
                k = 0.5 * (low + high) if np.isfinite(low) and np.isfinite(high) else (low if k <= low else high)
        return max(k, least)


class BracketedStep:
    """A step for risks that know only their subgradient: a few points of the line, each chosen by the slopes so far.

    What was found at the scores that a step ended with is remembered, since the next step begins there.
    """

    _known = (None, 0.0, None)

    def value(self, s):
        """Return R(s)."""
        return self.subgradient(s)[0]

    def step(self, s, t, curvature, slope):
        """Return the Step to the best k >= 0 that was looked at."""
        if self._known[0] is not s:
            self._known = (s, *self.subgradient(s))
        _, risk, c = self._known
        best, best_height, cut = (0.0, risk, s), risk, None
        below, rise_below, above, rise_above, k = 0.0, slope + float(c @ t), np.inf, np.inf, 1.0
        for _ in range(_LOOKS if rise_below < 0.0 else 1):
            there = s + k * t
            risk, c = self.subgradient(there)
            height, rise = risk + k * (slope + 0.5 * curvature * k), slope + curvature * k + float(c @ t)
            if height < best_height:
                best, best_height, self._known = (k, risk, there), height, (there, risk, c)
            if rise < 0.0:
                below, rise_below = k, rise
            else:
                above, rise_above, cut = k, rise, (there, risk, c)
            if abs(rise) <= _FLAT * abs(rise_below - rise):
                break
            k = 2.0 * below if np.isinf(above) else below + (above - below) * rise_below / (rise_below - rise_above)
        return Step(*best, cut)


class CentredRisk(BracketedStep):
    """The least of a RowRisk over all shifts of the scores: what an intercept that is not penalised makes of it."""

    def __init__(self, risk):
        self.scale, self._risk = risk.scale, risk

    def subgradient(self, s):
        """Return (R, c) at the best shift."""
        return self._risk.centre(s)[1:]

    def shift(self, s):
        """Return the best shift, which is the intercept."""
        return self._risk.centre(s)[0]


def order_of(s, n_jobs=None):
    """Return the positions of the scores in ascending order: parts are sorted by threads, then merged."""
    if len(s) < 2 * _SORTED_AT_ONCE:
        return np.argsort(s)
    parts = split(len(s), 4)
    orders = run(np.argsort, [(s[start:stop],) for start, stop in parts], n_jobs)
    order, merged = np.concatenate(orders), np.empty(len(s), np.int64)
    for order_part, (start, stop) in zip(orders, parts, strict=True):
        order[start:stop] = order_part + start
    quarters = [start for start, _ in parts] + [len(s)]
    pairs = [(0, 1, 2), (2, 3, 4)]
    run(_merge, [(s, order, *(quarters[q] for q in pair), merged) for pair in pairs], n_jobs)
    _merge(s, merged, 0, quarters[2], len(s), order)
    return order


@compiled
def _merge(s, order, left, middle, right, merged):
    """Merge two neighbours of `order`, each sorted by s, into `merged`."""
    a, b = left, middle
    for place in range(left, right):
        if b >= right or (a < middle and s[order[a]] <= s[order[b]]):
            merged[place] = order[a]
            a += 1
        else:
            merged[place] = order[b]
            b += 1


@compiled
def _loss_and_multiplier(rows, i, s):
    """Return the loss of row i at score s, and b."""
    r = rows.target[i] - s
    beyond = max(abs(r) - rows.epsilon[i], 0.0)
    if beyond == 0.0:
        return 0.0, 0.0
    side = rows.upper[i] if r > 0.0 else -rows.lower[i]
    b = side if rows.shift[i] == 0.0 else min(beyond / rows.shift[i], side)
    return b * (beyond - 0.5 * rows.shift[i] * b), (b if r > 0.0 else -b)


@compiled
def _losses(rows, start, stop, s):
    """Return Σ loss_i over start <= i < stop."""
    total = 0.0
    for i in range(start, stop):
        total += _loss_and_multiplier(rows, np.uint64(i), s[i])[0]
    return total


@compiled
def _slopes(rows, start, stop, s, c):
    """Set c_i = −b_i; return Σ loss_i."""
    total = 0.0
    for i in range(start, stop):
        loss, b = _loss_and_multiplier(rows, np.uint64(i), s[i])
        total += loss
        c[i] = -b
    return total


@compiled
def _slopes_at_kink(rows, start, stop, s, shift, part, c):
    """Set c_i at s + shift, where rows at a kink have come the given part of their way; return Σ loss_i."""
    total = 0.0
    for i in range(start, stop):
        loss, b = _loss_and_multiplier(rows, np.uint64(i), s[i] + shift)
        r = rows.target[i] - s[i]
        if r - rows.epsilon[i] == shift or r + rows.epsilon[i] == shift:
            b = (1.0 - part) * rows.upper[i] if r - rows.epsilon[i] == shift else 0.0
            b += part * rows.lower[i] if r + rows.epsilon[i] == shift else 0.0
        total += loss
        c[i] = -b
    return total


@compiled
def _slope_and_bend(rows, start, stop, s, t, k):
    """Return the first and second derivative of Σ loss_i(s_i + k t_i) by k, and the size of the terms of the first."""
    rise, bend, size = 0.0, 0.0, 0.0
    for i in range(start, stop):
        _, b = _loss_and_multiplier(rows, np.uint64(i), s[i] + k * t[i])
        rise -= b * t[i]
        size += abs(b * t[i])
        if b != 0.0 and rows.lower[i] < b < rows.upper[i]:
            bend += t[i] * t[i] / rows.shift[i]
    return rise, bend, size


@compiled
def _collect(rows, start, stop, s, t, low, high, kinks):
    """Return the slope of Σ loss_i just after k = low and how many kinks lie in (low, high].

    Their places and jumps are written to the two lines of `kinks`, from 2 start on.
    """
    slope, n = 0.0, 0
    base = 2 * start
    for i in range(start, stop):
        ti = t[i]
        if ti != 0.0:
            r = rows.target[i] - s[i]
            size = abs(ti)
            if rows.upper[i] != 0.0:  # b = upper as long as r − k t > epsilon
                jump, place = rows.upper[i] * size, (r - rows.epsilon[i]) / ti
                if place > low:
                    slope -= jump if ti > 0.0 else 0.0
                    if place <= high:
                        kinks[0, base + n], kinks[1, base + n] = place, jump
                        n += 1
                elif ti < 0.0:
                    slope += jump
            if rows.lower[i] != 0.0:  # b = lower as long as r − k t < −epsilon
                jump, place = -rows.lower[i] * size, (r + rows.epsilon[i]) / ti
                if place > low:
                    slope -= jump if ti < 0.0 else 0.0
                    if place <= high:
                        kinks[0, base + n], kinks[1, base + n] = place, jump
                        n += 1
                elif ti > 0.0:
                    slope += jump
    return slope, n


@compiled
def _walk(kinks, jumps, low, high, curvature, slope):
    """Return (k, part, found): where slope + curvature k + jumps up to k changes its sign, in [low, high].

    `found` is −1 if that is before low, 1 if it is after high; `part` is the part of the jump at k that is below 0.
    """
    if np.isfinite(low) and slope + curvature * low >= 0.0:
        return low, 0.0, -1
    n = 0
    while n < kinks.size:
        k = kinks[n]
        if curvature > 0.0 and slope + curvature * k >= 0.0:
            return -slope / curvature, 0.0, 0
        jump = 0.0
        while n < kinks.size and kinks[n] == k:
            jump += jumps[n]
            n += 1
        if slope + curvature * k + jump >= 0.0:
            return k, -(slope + curvature * k) / jump, 0
        slope += jump
    if curvature > 0.0 and -slope / curvature <= high:
        return -slope / curvature, 0.0, 0
    if not np.isfinite(high):
        return kinks[kinks.size - 1] if kinks.size else 0.0, 1.0, 0
    return high, 0.0, 1
