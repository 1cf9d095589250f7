"""Risks that are sums over rows, R(s) = Σ_i loss_i(s_i): value, subgradient, and exact search along a line of scores.

A risk never sees X: it is a convex function of the scores s, one per row, that is nowhere negative. Every risk has

    subgradient(s)                (R(s), c) with R(t) >= R(s) + <c, t − s> for all t; c is valid until the next call
    value(s)                      R(s) alone
    along(s, t, k, out)           (s + k t, R there, c there), the scores written to `out`
    step(s, t, curvature, slope)  the Step to the k >= 0 that minimises ½ curvature k² + slope k + R(s + k t)
    scale                         what a mean loss is multiplied by in R

The losses of rows are those of a `DualQP`, taken apart into hinges, one or two for each row,

    loss = weight max(0, z)  or  weight max(0, z)²,     z = offset − side s,  side +1 or −1

(the tube of a regression has a hinge on either side). What follows is about sums of hinges.

Along a line each hinge has a kink, where the slope rises by a jump. Where the slope changes its sign is found by a
sample, which gives a short interval that should hold it; one pass sums up what lies before the interval and collects
the kinks in it; they are halved, as a quickselect does, until one is left. Work is n, nothing is sorted, and rows are
split over threads. Squared hinges have no jumps: Newton's method finds the zero of the slope in a few passes.

An intercept that is not penalised is added to all scores, where R is least (`CentredRisk`). Where that is a kink,
the subgradient is the one of those possible there whose entries sum to zero: so it is one for every intercept.
"""

from typing import NamedTuple

import numpy as np

from widemargin._runtime.compile import SUMS, compiled
from widemargin._runtime.threads import run, split
from widemargin.problems.formulations import is_made_of_hinges

_RANGE = 1 << 17  # rows of one task: some tenths of a millisecond, to be worth another thread
BLOCK = 1 << 10  # rows that two loops visit in turn, while they are close: one loop that sums and also stores would be
# vectorised or not by where its arrays lie, and so give sums that differ in their last bits from run to run
_SAMPLE = 1 << 12  # rows that give the first interval
_MARGIN = 3.0  # standard deviations by which the sample may err
_NEWTON_STEPS = 60
_EXACT = 1e-13
_LOOKS = 2  # points of a line at which a risk that has no exact search is looked at
_FLAT = 0.05  # a slope this small, against that of the other side, is as good as none


class Hinges(NamedTuple):
    """The hinges of rows: `signed` is side times weight, `offset` as above; lines of n_rows numbers, one or two."""

    signed: np.ndarray
    offset: np.ndarray


class Step(NamedTuple):
    """A step along a line of scores: its length k, and the scores, the risk and a subgradient there.

    `cut`: (scores, risk, c) at a point of the line beyond its lowest one, where a plane cuts off what lies further on;
    None if the step is exact, so that every point beyond it is such a point.
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
        Of which X is not looked at. Its losses are all linear beyond a point, or all quadratic.
    n_jobs : int or None
    """

    def __init__(self, problem, n_jobs=None):
        self._squared = bool((problem.curvature > 0.0).any())
        self._hinges = hinges_of(problem, self._squared)
        self._n, self._n_jobs = len(problem.target), n_jobs
        self._ranges = ranges_of(self._n)
        # Memory that is used again and again: fresh memory takes as long as the work in it.
        self._kinks = np.empty((2, 0 if self._squared else self._hinges.signed.size))
        self._c, *self._memory = np.empty((3, self._n))
        self._every = max(1, self._n // _SAMPLE)
        self._sample = Hinges(*(np.ascontiguousarray(numbers[:, :: self._every]) for numbers in self._hinges))
        self.scale = float(np.abs(self._hinges.signed).max(axis=0).sum())

    def _sum(self, function, *arguments):
        """Return the sum of what a loop returns for each range of rows; an array of sums if it returns several."""
        tasks = [(self._hinges, self._squared, start, stop, *arguments) for start, stop in self._ranges]
        return np.sum(run(function, tasks, self._n_jobs), axis=0)

    def subgradient(self, s):
        """Return (R(s), c)."""
        return float(self._sum(_slopes, s, self._c)), self._c

    def value(self, s):
        """Return R(s)."""
        return self.subgradient(s)[0]

    def along(self, s, t, k, out):
        """Return (s + k t, R there, c there), the scores in `out`."""
        return out, float(self._sum(_slopes_along, s, t, k, out, self._c)), self._c

    def step(self, s, t, curvature, slope):
        """Return the Step to the best k >= 0; its scores are valid until a step that does not begin with them."""
        k, _ = self._zero(s, t, curvature, slope, 0.0)
        return Step(k, *self.along(s, t, k, self._memory[1 if s is self._memory[0] else 0]), None)

    def centre(self, s):
        """Return (intercept, R, c): the number added to all scores that makes R least, R there, and c with Σ c = 0."""
        intercept, part = self._zero(s, np.ones(self._n), 0.0, 0.0, -np.inf)
        risk, c = self.subgradient(s + intercept)
        c = c.copy()  # a BracketedStep remembers it
        if not self._squared:
            self._sum(_slopes_at_kink, s, intercept, part, c)
        return intercept, risk, c

    def _zero(self, s, t, curvature, slope, least):
        """Return (k, part): where the slope along the line changes its sign, and which part of its jump is below 0."""
        if self._squared:
            return self._newton(s, t, curvature, slope, least), 0.0
        low, high = self._guess(s, t, curvature, slope, least)
        k, part, found = self._search(s, t, curvature, slope, (low, high))
        # Beyond the interval there is one more to search. If rounding says that the zero is not there either, it is
        # where the two meet, which is the end that `_search` returns.
        if found < 0 and low > least:
            k, part, _ = self._search(s, t, curvature, slope, (least, low))
        elif found > 0:
            k, part, _ = self._search(s, t, curvature, slope, (high, np.inf))
        return k, part

    def _search(self, s, t, curvature, slope, interval):
        """Return (k, part, found) as `_crossing` does, for the kinks in an interval."""
        before, places, jumps = self._between(s, t, *interval)
        return _crossing(places, jumps, *interval, curvature, slope + before)

    def _between(self, s, t, low, high):
        """Return the slope of the losses just after k = low, and places and jumps of the kinks in (low, high]."""
        tasks = [(self._hinges, *ends, s, t, low, high, self._kinks) for ends in self._ranges]
        found = run(_collect, tasks, self._n_jobs)
        n_lines, n = len(self._hinges.signed), 0
        for (start, _), (_, count) in zip(self._ranges, found, strict=True):  # side by side, at the beginning
            first = n_lines * start
            self._kinks[:, n : n + count] = self._kinks[:, first : first + count]
            n += count
        return sum(slope for slope, _ in found), *self._kinks[:, :n]

    def _guess(self, s, t, curvature, slope, least):
        """Return an interval that should hold the zero, by a sample of the rows; all of the line if they are few."""
        every = self._every
        if every == 1:
            return least, np.inf
        s, t = s[::every].copy(), t[::every].copy()
        before, count = _collect(self._sample, 0, len(s), s, t, least, np.inf, self._kinks)
        if count == 0:
            return least, np.inf
        places = self._kinks[0, :count].copy()
        k, _, _ = _crossing(*self._kinks[:, :count], least, np.inf, curvature / every, slope / every + before)
        here, error = np.count_nonzero(places < k), int(_MARGIN * np.sqrt(count)) + 1
        first, last = max(here - error, 0), min(here + error, count - 1)
        places.partition((first, last))
        return places[first] if here >= error else least, places[last] if here + error < count else np.inf

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


def hinges_of(problem, squared):
    """Return the Hinges of a DualQP's losses: one line if each row has a loss on one side only, else two.

    Raises
    ------
    ValueError
        If the losses are not hinges.
    """
    if not is_made_of_hinges(problem):
        raise ValueError(
            "this solver takes losses that are linear beyond a corner for all rows, or quadratic for all rows; this "
            "problem has others, with a curvature and a finite bound. Use solver='dcd', 'avsf' or 'climb'; 'newton' "
            "takes them as long as the rows are few enough to be held as a dense array."
        )
    if squared:
        weight = np.divide(0.5, problem.curvature, out=np.zeros_like(problem.curvature), where=problem.curvature > 0.0)
        above, below = (np.where(bound != 0.0, weight, 0.0) for bound in (problem.upper, problem.lower))
    else:
        above, below = problem.upper, -problem.lower
    upper, lower = problem.target - problem.epsilon, -problem.target - problem.epsilon
    if not (above * below).any():
        mine = above > 0.0
        return Hinges(np.where(mine, above, -below)[np.newaxis], np.where(mine, upper, lower)[np.newaxis])
    return Hinges(np.stack([above, -below]), np.stack([upper, lower]))


class BracketedStep:
    """A step for risks that know only their subgradient: a few points of the line, each chosen by the slopes so far.

    What was found at the scores that a step ended with is remembered, since the next step begins there.
    """

    _known = (None, 0.0, None)

    def value(self, s):
        """Return R(s)."""
        return self.subgradient(s)[0]

    def along(self, s, t, k, out):
        """Return (s + k t, R there, c there), the scores in `out`."""
        np.add(s, k * t, out=out)
        return out, *self.subgradient(out)

    def step(self, s, t, curvature, slope):
        """Return the Step to the best k >= 0 that was looked at."""
        if self._known[0] is not s:
            self._known = (s, *self.subgradient(s))
        _, risk, c = self._known
        best, best_height, cut = (0.0, s, risk, c), risk, None
        below, rise_below, above, rise_above, k = 0.0, slope + float(c @ t), np.inf, np.inf, 1.0
        looks = _LOOKS if rise_below < 0.0 else 1
        for look in range(looks):
            there = s + k * t
            risk, c = self.subgradient(there)
            height, rise = risk + k * (slope + 0.5 * curvature * k), slope + curvature * k + float(c @ t)
            if height < best_height:
                best, best_height, self._known = (k, there, risk, c), height, (there, risk, c)
            if rise < 0.0:
                below, rise_below = k, rise
            else:
                above, rise_above, cut = k, rise, (there, risk, c)
            if look + 1 == looks or abs(rise) <= _FLAT * abs(rise_below - rise):
                break
            k = 2.0 * below if np.isinf(above) else below + (above - below) * rise_below / (rise_below - rise_above)
        return Step(*best, cut)


class CentredRisk(BracketedStep):
    """The least of a RowRisk over all shifts of the scores: what an intercept that is not penalised makes of it."""

    def __init__(self, risk):
        self.scale, self._risk = risk.scale, risk

    def subgradient(self, s):
        """Return (R, c) at the best intercept."""
        return self._risk.centre(s)[1:]

    def intercept(self, s):
        """Return the best intercept."""
        return self._risk.centre(s)[0]


def ranges_of(n_rows):
    """Cut rows into (start, stop) ranges for threads that do little with each row: one, or an even number."""
    return split(n_rows, 2 * -(-n_rows // (2 * _RANGE)) if n_rows > _RANGE else 1)


def blend(a, x, b, y, out, n_jobs):
    """Set out = x a + y b, for vectors over rows, by several threads; return it."""
    run(_blend, [(a, x, b, y, *ends, out) for ends in ranges_of(len(a))], n_jobs)
    return out


@compiled
def _blend(a, x, b, y, start, stop, out):
    a, b, out = a[start:stop], b[start:stop], out[start:stop]
    for i in range(out.size):
        out[i] = x * a[i] + y * b[i]


@compiled
def _slopes(hinges, squared, start, stop, s, c):
    """Set c_i to the derivative of row i's loss by its score, start <= i < stop; return the sum of the losses."""
    total = 0.0
    for first in range(start, stop, BLOCK):
        here = slice(first, min(first + BLOCK, stop))
        c[here] = 0.0
        for line in range(hinges.signed.shape[0]):
            signed, offset = hinges.signed[line][here], hinges.offset[line][here]
            total += _losses(signed, offset, squared, s[here])
            _add_slopes(signed, offset, squared, s[here], c[here])
    return total


@compiled
def _slopes_along(hinges, squared, start, stop, s, t, k, there, c):
    """Set there = s + k t and c as `_slopes` does, at these scores; return the sum of the losses."""
    total = 0.0
    for first in range(start, stop, BLOCK):
        last = min(first + BLOCK, stop)
        _blend(s, 1.0, t, k, first, last, there)
        total += _slopes(hinges, squared, first, last, there, c)
    return total


@compiled(fastmath=SUMS)
def _losses(signed, offset, squared, s):
    """Return the sum of the losses of a line of hinges."""
    total = 0.0
    for i in range(s.size):
        z = offset[i] - np.copysign(1.0, signed[i]) * s[i]
        z = z if z > 0.0 else 0.0
        total += abs(signed[i]) * (z * z if squared else z)
    return total


@compiled
def _add_slopes(signed, offset, squared, s, c):
    for i in range(s.size):
        z = offset[i] - np.copysign(1.0, signed[i]) * s[i]
        c[i] -= signed[i] * ((2.0 * z if squared else 1.0) if z > 0.0 else 0.0)


@compiled
def _slopes_at_kink(hinges, squared, start, stop, s, intercept, part, c):
    """Set c_i at an intercept that is a kink: hinges that have it there have come the given part of their way.

    On which side of the intercept a kink lies is judged as in `_collect`, to the last bit.
    """
    s, c = s[start:stop], c[start:stop]
    c[:] = 0.0
    for line in range(hinges.signed.shape[0]):
        signed, offset = hinges.signed[line][start:stop], hinges.offset[line][start:stop]
        for i in range(s.size):
            side = np.copysign(1.0, signed[i])
            place = (offset[i] - side * s[i]) / side
            passed = part if place == intercept else (1.0 if place < intercept else 0.0)
            c[i] -= signed[i] * (1.0 - passed if side > 0.0 else passed)
    return 0.0


@compiled(fastmath=SUMS)
def _slope_and_bend(hinges, squared, start, stop, s, t, k):
    """Return the first and second derivative of the losses at s + k t by k, and the size of the terms of the first."""
    rise, bend, size = 0.0, 0.0, 0.0
    s, t = s[start:stop], t[start:stop]
    for line in range(hinges.signed.shape[0]):
        signed, offset = hinges.signed[line][start:stop], hinges.offset[line][start:stop]
        for i in range(s.size):
            z = offset[i] - np.copysign(1.0, signed[i]) * (s[i] + k * t[i])
            z = z if z > 0.0 else 0.0
            one = 2.0 * signed[i] * z * t[i]
            rise -= one
            size += abs(one)
            bend += 2.0 * abs(signed[i]) * t[i] * t[i] if z > 0.0 else 0.0
    return rise, bend, size


@compiled
def _collect(hinges, start, stop, s, t, low, high, kinks):
    """Return the slope of the losses just after k = low and how many kinks lie in (low, high].

    Their places and jumps are written to the two lines of `kinks`, from n_lines start on.
    """
    slope, n = 0.0, hinges.signed.shape[0] * start
    for line in range(hinges.signed.shape[0]):
        for first in range(start, stop, BLOCK):
            here = slice(first, min(first + BLOCK, stop))
            signed, offset = hinges.signed[line][here], hinges.offset[line][here]
            _kink_places(signed, offset, s[here], t[here], kinks[0][n:])
            slope += _slope_after(signed, t[here], low, kinks[0][n:])
            n += _pick(signed, t[here], low, high, kinks[0][n:], kinks[1][n:])
    return slope, n - hinges.signed.shape[0] * start


@compiled
def _kink_places(signed, offset, s, t, places):
    """Set the places of the kinks of a line of hinges; one whose score does not change has its kink nowhere."""
    for i in range(s.size):
        side = np.copysign(1.0, signed[i])
        places[i] = (offset[i] - side * s[i]) / (side * t[i]) if t[i] != 0.0 else np.inf


@compiled(fastmath=SUMS)
def _slope_after(signed, t, low, places):
    """Return the slope of a line of hinges just after k = low: of those that are left later, or were entered before."""
    slope = 0.0
    for i in range(t.size):
        u = np.copysign(1.0, signed[i]) * t[i]
        slope -= abs(signed[i]) * u if (places[i] > low) == (u > 0.0) else 0.0
    return slope


@compiled
def _pick(signed, t, low, high, places, jumps):
    """Move the places that lie in (low, high] to the front, with their jumps; return how many there are.

    Every kink is written; only if it lies there the next one is written behind it, so that there is no branch to guess.
    """
    n = 0
    for i in range(t.size):
        place = places[i]
        places[np.uint64(n)], jumps[np.uint64(n)] = place, abs(signed[i] * t[i])
        n += (low < place) & (place <= high) & (place < np.inf)
    return n


@compiled
def _crossing(places, jumps, low, high, curvature, slope):
    """Return (k, part, found): where slope + curvature k + jumps up to k changes its sign, in [low, high].

    `found` is −1 if that is before low, 1 if it is after high; `part` is the part of the jump at k that is below 0.
    Kinks are in any order, and are overwritten: those on the wrong side of a middle one are left out, again and again.
    """
    if np.isfinite(low) and slope + curvature * low >= 0.0:
        return low, 0.0, -1
    n, k, jump, last = places.size, np.inf, 0.0, -np.inf
    while n > 0:
        middle = _middle(places[0], places[n // 2], places[n - 1])
        below, at = _jumps_up_to(places, jumps, n, middle)
        left = slope + below + at + curvature * middle >= 0.0
        if left:
            k, jump = middle, at
        else:
            slope, last = slope + below + at, middle
        n = _keep(places, jumps, n, middle, left)
    if k < np.inf:
        if curvature > 0.0 and slope + curvature * k >= 0.0:
            return -slope / curvature, 0.0, 0
        return k, -(slope + curvature * k) / jump if jump > 0.0 else 0.0, 0
    if curvature > 0.0 and -slope / curvature <= high:
        return -slope / curvature, 0.0, 0
    if not np.isfinite(high):
        return last if last > -np.inf else 0.0, 1.0, 0
    return high, 0.0, 1


@compiled
def _middle(a, b, c):
    return max(min(a, b), min(max(a, b), c))


@compiled(fastmath=SUMS)
def _jumps_up_to(places, jumps, n, k):
    """Return the sum of the jumps below k, and of those at it."""
    below, at = 0.0, 0.0
    places, jumps = places[:n], jumps[:n]
    for m in range(places.size):
        below += jumps[m] if places[m] < k else 0.0
        at += jumps[m] if places[m] == k else 0.0
    return below, at


@compiled
def _keep(places, jumps, n, k, left):
    """Move the kinks below k, or those above it, to the front; return how many there are."""
    kept = 0
    for m in range(n):
        place, jump = places[m], jumps[m]
        places[np.uint64(kept)], jumps[np.uint64(kept)] = place, jump
        kept += (place < k) if left else (place > k)
    return kept
