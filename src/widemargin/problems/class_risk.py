"""`ClassRisk`: the losses of Crammer and Singer as a risk of scores, n_classes of them for each row.

    R(s) = Σ_i cost_i ( max_m ([m ≠ label_i] + s_im) − s_i,label_i )

The scores are those of all rows for the first class, then those for the second, and so on, so that loops over rows are
vectorised. A subgradient has cost_i at the class of the maximum and −cost_i at the class of the label, or zeros if
these are the same. At s = 0, where all other classes are equal, the first plane is taken from the mean of these
subgradients, which has cost_i / (n_classes − 1) at each of them: it saves up to a fifth of the iterations against one
that prefers the first class (usps, 18 to 14; pendigits, 19 to 15; dna, 21 to 20).

Line search. Along s + k t, the maximum of a row is that of n_classes lines a_m + k b_m, with a_m = [m ≠ label] + s_m
and b_m = t_m: its slope increases at the kinks of their upper envelope. From the line that is largest at k = low,

    next kink    at the smallest (a_active − a_m) / (b_m − b_active) over the steeper lines, the steepest of equal ones

leads from kink to kink in ascending order, with n_classes operations for each. A row has few of them, and none in a
short interval if the same line is largest at both of its ends. From there on the search is that of `row_risk`: all
kinks of a sample of the rows, or with few rows the step of the last search, give a short interval, and quickselect
finds the one where the slope of φ changes its sign.
"""

from typing import NamedTuple

import numpy as np

from widemargin._runtime.compile import compiled
from widemargin._runtime.threads import run, split
from widemargin.problems.line_search import SampledKinks, stride_of_sample, zero_by_kinks
from widemargin.problems.row_risk import Step, dot, joined_kinks

_SCORES_PER_SAMPLED_ROW = 8  # with more classes, a sample for the line search has fewer rows
_LIKELY_STEPS = 4.0  # times the last step of a line search, up to which kinks are collected first
_ROWS_PER_BLOCK = 1 << 8  # whose scores stay in the cache between the loops of the classes
_SCORES_PER_TASK = 1 << 17  # a few tenths of a millisecond of work


class LabelledRows(NamedTuple):
    """The class, from 0 on, and the cost of each row."""

    label: np.ndarray
    cost: np.ndarray


class PlaneAtZero(NamedTuple):
    """R(0), a subgradient c there, and X'c, which was summed from `n_read` rows.

    The sizes of the terms that were summed are at most Σ |c_i| |x_i| times `growth`.
    """

    risk: float
    c: np.ndarray
    vector: np.ndarray
    growth: float
    n_read: int


class ClassRisk:
    """The sum of Crammer and Singer's losses; the methods are those of `RowRisk`.

    Parameters
    ----------
    label : ndarray of ints
        The class of each row, 0 to n_classes − 1.
    cost : ndarray
        The cost of each row, at least 0.
    n_classes : int
    n_jobs : int or None

    Attributes
    ----------
    scale : float
        The factor of a mean loss: the sum of all costs.
    """

    STATE = ("_last_step",)
    slopes_per_scale = 2.0  # upper bound of Σ |c_ik| of every subgradient, relative to `scale`

    def __init__(self, label, cost, n_classes, n_jobs=1):
        self._rows = LabelledRows(label.astype(np.intp), np.ascontiguousarray(cost, dtype=np.float64))
        self._n, self._n_classes, self._n_jobs = len(label), n_classes, n_jobs
        n_tasks = -(-self._n * n_classes // _SCORES_PER_TASK)
        self._ranges = split(self._n, 2 * -(-n_tasks // 2) if n_tasks > 1 else 1)  # an even number for two threads
        self._kinks = np.empty((2, self._n * (n_classes - 1)))
        self._c, *self._memory = np.empty((3, self._n * n_classes))
        self._stride = stride_of_sample(self._n * n_classes // _SCORES_PER_SAMPLED_ROW)
        self.scale, self._last_step = float(cost.sum()), np.inf

    def _table(self, scores):
        return scores.reshape(self._n_classes, self._n)

    def subgradient(self, s):
        """Return (R(s), c)."""
        tasks = [(self._rows, *ends, self._table(s), self._table(self._c)) for ends in self._ranges]
        return float(sum(run(_slopes, tasks, self._n_jobs))), self._c

    def plane_at_zero(self, combine):
        """Return the PlaneAtZero of the mean of the subgradients at s = 0.

        `combine(c)` returns X'c. It is called once, for the sums of the rows of each class, from which X'c is made.
        """
        c, n_others = self._table(self._c), self._n_classes - 1
        own = self._rows.label, np.arange(self._n)
        c[:] = 0.0
        c[own] = self._rows.cost
        sums = combine(self._c).reshape(self._n_classes, -1)
        vector = (sums.sum(axis=0) - self._n_classes * sums) / n_others
        c[:] = self._rows.cost / n_others
        c[own] = -self._rows.cost
        return PlaneAtZero(self.scale, self._c, vector.ravel(), self._n_classes / n_others, self._n)

    def value(self, s):
        """Return R(s)."""
        return self.subgradient(s)[0]

    def along(self, s, t, k, out):
        """Return (s + k t, R(s + k t), c at s + k t); the scores are written to `out`."""
        tables = self._table(s), self._table(t), self._table(out), self._table(self._c)
        tasks = [(self._rows, *ends, k, tables) for ends in self._ranges]
        return out, float(sum(run(_slopes_along, tasks, self._n_jobs))), self._c

    def step(self, s, t, curvature, slope):
        """Return the Step to the best k >= 0; its scores are valid until a step that does not start from them."""
        sample = None if self._stride == 1 else self.sampled_kinks(s, t, 0.0, self._stride)
        likely = _LIKELY_STEPS * self._last_step if sample is None else np.inf
        k, _ = zero_by_kinks(lambda *ends: self.kinks_in(s, t, *ends), sample, curvature, slope, 0.0, likely)
        self._last_step = k if k > 0.0 else np.inf
        return Step(k, *self.along(s, t, k, self._memory[1 if s is self._memory[0] else 0]), None)

    def kinks_in(self, s, t, low, high):
        """Return the slope of R just after k = low, and the places and jumps of the kinks in (low, high]."""
        lines = self._table(s), self._table(t)
        tasks = [(self._rows, *ends, lines, (low, high), self._kinks) for ends in self._ranges]
        firsts = [(self._n_classes - 1) * start for start, _ in self._ranges]
        return joined_kinks(self._kinks, firsts, run(_collect_kinks, tasks, self._n_jobs))

    def sampled_kinks(self, s, t, k_min, stride):
        """Return the SampledKinks of every `stride`-th row."""
        sample = LabelledRows(*(np.ascontiguousarray(array[::stride]) for array in self._rows))
        lines = tuple(np.ascontiguousarray(self._table(scores)[:, ::stride]) for scores in (s, t))
        slope, count = _collect_kinks(sample, 0, len(sample.label), lines, (k_min, np.inf), self._kinks)
        return SampledKinks(slope, *self._kinks[:, :count].copy(), stride)


def _slopes(rows, start, stop, S, C):
    """Set C[:, i] to a subgradient of row i's loss, start <= i < stop; return the sum of the losses."""
    return _set_slopes(rows, start, stop, S, C, np.empty((2, _ROWS_PER_BLOCK)), np.empty(_ROWS_PER_BLOCK, np.intp))


def _slopes_along(rows, start, stop, k, tables):
    """Set out = S + k T, and do what `_slopes` does there; `tables` are S, T, out, which may be T, and C."""
    work = np.empty((2, _ROWS_PER_BLOCK)), np.empty(_ROWS_PER_BLOCK, np.intp)
    return _set_slopes_along(rows, start, stop, k, *tables, *work)


@compiled
def _set_slopes_along(rows, start, stop, k, S, T, out, C, numbers, classes):
    """Do what `_slopes_along` does; `numbers` and `classes` are work space for a block of rows."""
    total = 0.0
    for first in range(start, stop, _ROWS_PER_BLOCK):
        last = min(first + _ROWS_PER_BLOCK, stop)
        for m in range(S.shape[0]):
            _move(S[m, first:last], T[m, first:last], k, out[m, first:last])
        total += _set_slopes(rows, first, last, out, C, numbers, classes)
    return total


@compiled
def _move(s, t, k, out):
    """Set out = s + k t."""
    for i in range(out.size):
        out[i] = s[i] + k * t[i]


@compiled
def _set_slopes(rows, start, stop, S, C, numbers, classes):
    """Do what `_slopes` does; `numbers` and `classes` are work space for a block of rows."""
    total = 0.0
    for first in range(start, stop, _ROWS_PER_BLOCK):
        n = min(_ROWS_PER_BLOCK, stop - first)
        label, cost = rows.label[first : first + n], rows.cost[first : first + n]
        worst, own, largest = classes[:n], numbers[0, :n], numbers[1, :n]
        for i in range(n):
            worst[i], own[i], largest[i] = label[i], S[np.uint64(label[i]), np.uint64(first + i)], 0.0
        for m in range(S.shape[0]):
            C[m, first : first + n] = 0.0
            _compare_losses(m, S[m, first : first + n], label, own, largest, worst)
        total += dot(cost, largest)
        for i in range(n):  # adds zero if both are the same class; a branch could not be predicted
            C[np.uint64(worst[i]), np.uint64(first + i)] += cost[i]
            C[np.uint64(label[i]), np.uint64(first + i)] -= cost[i]
    return total


@compiled
def _compare_losses(m, scores, label, own, largest, worst):
    """Set `largest` to 1 + s_m − s_own and `worst` to m for rows of other labels where that is larger."""
    for i in range(scores.size):
        loss = 1.0 + (scores[i] - own[i])
        is_larger = (loss > largest[i]) & (label[i] != m)
        largest[i] = loss if is_larger else largest[i]
        worst[i] = m if is_larger else worst[i]


def _collect_kinks(rows, start, stop, lines, interval, kinks):
    """Return the slope of the losses just after k = low, and the number of kinks in the interval (low, high].

    `lines` are the scores S and the direction T. The places and jumps of these kinks are written to kinks[0] and
    kinks[1], from (n_classes − 1) start on.
    """
    work = np.empty(_ROWS_PER_BLOCK), np.empty((2, _ROWS_PER_BLOCK), np.intp)
    return _set_kinks(rows, start, stop, *lines, *interval, kinks, *work)


@compiled
def _set_kinks(rows, start, stop, S, T, low, high, kinks, numbers, classes):
    """Do what `_collect_kinks` does; `numbers` and `classes` are work space for a block of rows."""
    begin = (S.shape[0] - 1) * start
    slope, n = 0.0, begin
    for first in range(start, stop, _ROWS_PER_BLOCK):
        last, of_block = min(first + _ROWS_PER_BLOCK, stop), 0.0
        label, at_low, at_high = rows.label[first:last], classes[0, : last - first], classes[1, : last - first]
        _find_lines(label, first, S, T, low, numbers, at_low)
        if high < np.inf:
            _find_lines(label, first, S, T, high, numbers, at_high)
        else:
            at_high[:] = -1
        for i in range(first, last):
            own, active = np.uint64(label[i - first]), np.uint64(at_low[i - first])
            if at_low[i - first] == at_high[i - first]:
                rise = T[active, np.uint64(i)]
            else:
                row = S[:, np.uint64(i)], T[:, np.uint64(i)]
                rise, n = _walk(*row, own, rows.cost[i], active, low, high, kinks, n)
            of_block += rows.cost[i] * (rise - T[own, np.uint64(i)])
        slope += of_block
    return slope, n - begin


@compiled
def _find_lines(label, first, S, T, k, numbers, best):
    """Set best[i] to the class whose line is largest at k in row first + i, one of them if several are."""
    largest, end = numbers[: label.size], first + label.size
    for i in range(label.size):
        own = np.uint64(label[i])
        best[i], largest[i] = label[i], S[own, np.uint64(first + i)] + k * T[own, np.uint64(first + i)]
    for m in range(S.shape[0]):
        _compare_lines(m, S[m, first:end], T[m, first:end], k, label, largest, best)


@compiled
def _compare_lines(m, s, t, k, label, largest, best):
    """Set `largest` to 1 + s + k t and `best` to m for rows of other labels where that is larger."""
    for i in range(s.size):
        value = 1.0 + (s[i] + k * t[i])
        is_larger = (value > largest[i]) & (label[i] != m)
        largest[i] = value if is_larger else largest[i]
        best[i] = m if is_larger else best[i]


@compiled
def _walk(s, t, own, cost, active, low, high, kinks, n):
    """Write the kinks in (low, high] of one row to `kinks` from n on; return the slope after low, and the next n.

    At most n_classes − 1 kinks are written, since each leads to a steeper line. A kink that rounding has placed before
    the last one is moved there; one at low, where several lines are largest, has been passed.
    """
    place_before, slope_after_low = low, t[active]
    for _ in range(s.size - 1):
        here = s[active] + (0.0 if active == own else 1.0)
        following, place, rise = active, np.inf, 0.0
        for m in range(s.size):
            steeper = t[np.uint64(m)] - t[active]
            if steeper > 0.0:
                ahead = (here - s[np.uint64(m)] - (0.0 if np.uint64(m) == own else 1.0)) / steeper
                if ahead < place or (ahead == place and steeper > rise):
                    following, place, rise = np.uint64(m), ahead, steeper
        if following == active or not place <= high:
            break
        place = max(place, place_before)
        if place > low:
            kinks[0, np.uint64(n)], kinks[1, np.uint64(n)] = place, cost * rise
            n += 1
        else:
            slope_after_low = t[following]
        active, place_before = following, place
    return slope_after_low, n
