"""Sweeps of pair steps, compiled: the iterations of `pairs`.

An amount t that is taken from beta_j and given to beta_i, with the scores s_i < s_j of that moment, is best at

    t = min( (s_j − s_i) / |x_i − x_j|²,  upper_i − beta_i,  beta_j )

Rows up to a level that can take more, and rows from it on that can give, are two heaps, from which the rows farthest
from the level come first. A pair of rows is left if its optimum is between the bounds, otherwise only the row that has
reached its bound. Usually bounds are small against what a step of coordinate descent would take, so that nearly all
steps end at a bound, and no |x_i − x_j| is needed. Then the level is ρ, the weighted quantile of the scores, since what
the two lists can take and give is the same.

If upper bounds are so large that the rows which take do not reach them, few rows are below ρ, and the rows above would
have to wait for them. Then the level is the mean score of the free rows, those between their bounds: at the optimum,
where all their scores are ρ, this is the same.

After each pass over all rows come sweeps over the active rows: those that violate an optimality condition, and those
that are nearer to the level than a multiple of the mean distance of these.
"""

from typing import NamedTuple

import numpy as np

from widemargin._runtime.compile import compiled
from widemargin.data.matrix import set_scores
from widemargin.data.rows import row_axpy, row_distance, row_dot, row_prefetch
from widemargin.problems.quantile import weighted_quantile
from widemargin.solvers.coordinate_descent.state import half_square
from widemargin.solvers.newton.active_set_state import dot

_SWEEPS_PER_PASS = 9  # over the active rows, at most
_LARGEST_ACTIVE_PART = 0.5  # of the rows; if more are active, the next sweep follows on a pass over all rows
_ACTIVE_DISTANCES = 2.0  # mean distances of violating rows from the level, within which rows are active
_GAP_LEFT = 0.5  # of the tolerated gap, at which sweeps over the active rows end

# The numbers of a run: ρ, `tail` and Σ beta_i s_i of the last pass, the objectives, the factor of the best weights,
# visits of rows, and whether the level is the mean score of the free rows.
LEVEL, TAIL, VALUE, PRIMAL, DUAL, BEST_FACTOR, N_VISITS, IS_INTERIOR = range(8)
SIZE_OF_STATE = 8


class Duals(NamedTuple):
    """The dual variables of the rows, their upper bounds, and |x_i|."""

    beta: np.ndarray
    upper: np.ndarray
    length: np.ndarray


class Goal(NamedTuple):
    """The sum of the dual variables, the relative gap that is asked for, and the lower limit of its denominator."""

    dual_sum: float
    tol: float
    scale: float


class Work(NamedTuple):
    """The scores of all rows, memory for quantiles, three lists of rows, w when the primal objective was lowest, zeros.

    There is a zero for each column, for `row_distance`.
    """

    scores: np.ndarray
    memory: np.ndarray
    lists: np.ndarray
    best_w: np.ndarray
    zeros: np.ndarray


@compiled
def advance(X, duals, w, work, state, goal, log, max_visits):
    """Make iterations, each with a pass over all rows; return their number, and whether the last one moved anything.

    Kept true: w = X'beta, the bounds, and Σ beta. At most as many iterations are made as `log` has lines, which hold
    visits of rows, primal and dual objective. None begins after so many visits, or with the gap within the tolerance.
    """
    for k in range(log.shape[0]):
        if improve(X, duals, w, work, state, goal) == 0:
            return k, False
        set_scores(X, w, 0, work.scores.size, work.scores)
        measure(duals, w, work, goal.dual_sum, state)
        log[k, 0], log[k, 1], log[k, 2] = state[N_VISITS], state[PRIMAL], state[DUAL]
        is_within = state[PRIMAL] - state[DUAL] <= goal.tol * _size(state, goal)
        if is_within or state[VALUE] - state[TAIL] <= 0.0 or state[N_VISITS] >= max_visits:
            return k + 1, True
    return log.shape[0], True


@compiled
def _size(state, goal):
    """Return what the gap is relative to."""
    return max(abs(state[PRIMAL]), goal.scale)


@compiled
def measure(duals, w, work, dual_sum, state):
    """Set the state from the scores of all rows, and the best weights."""
    level, tail, _ = weighted_quantile(work.scores, duals.upper, dual_sum, work.memory)
    state[LEVEL], state[TAIL], state[VALUE] = level, tail, dot(duals.beta, work.scores)
    state[N_VISITS] += work.scores.size
    square = 2.0 * half_square(w)
    # Along multiples of w, the primal objective is smallest at this one.
    factor = tail / square if tail > 0.0 and square > 0.0 else 0.0
    primal = -0.5 * factor * tail
    state[DUAL] = -0.5 * square
    if primal < state[PRIMAL]:
        state[PRIMAL], state[BEST_FACTOR] = primal, factor
        for j in range(w.size):
            work.best_w[j] = w[j]


@compiled
def improve(X, duals, w, work, state, goal):
    """Make pair steps from the scores of all rows, and sweeps over the active rows; return the number of the steps.

    If no step is possible from the mean score of the free rows, steps are made from ρ.
    """
    scores, lists, rows = work.scores, work.lists, work.scores.size
    for _ in range(2):
        level = _free_mean(duals, scores, state[LEVEL]) if state[IS_INTERIOR] > 0.0 else state[LEVEL]
        n_up, n_down = _list_all_violating(duals, scores, level, lists)
        up, down = lists[0, :n_up], lists[1, :n_down]
        width = _ACTIVE_DISTANCES * _mean_distance(up, down, scores, level)
        n_steps = _make_pair_steps(X, duals, up, down, work, w, state)
        if n_steps > 0 or state[IS_INTERIOR] == 0.0:
            break
        state[IS_INTERIOR] = 0.0
    n_active = _list_active(duals, scores, level, width, lists[2])
    if n_steps > 0 and n_active <= _LARGEST_ACTIVE_PART * rows:
        _sweep(X, duals, lists[2, :n_active], w, work, state, _GAP_LEFT * goal.tol * _size(state, goal))
    return n_steps


@compiled
def _sweep(X, duals, active, w, work, state, gap):
    """Make sweeps over the active rows until their gap is small, or none moves.

    Kept true: w = X'beta, the bounds, and Σ beta. The scores of active rows are set.
    """
    scores, memory, lists, n = work.scores, work.memory, work.lists, active.size
    for _ in range(_SWEEPS_PER_PASS):
        _set_scores_of(X, active, w, scores)
        state[N_VISITS] += n
        total, value, free_mean = _copy_scores(active, duals, scores, memory)
        level, tail, _ = weighted_quantile(memory[0, :n], memory[1, :n], total, memory[2:])
        if value - tail <= gap:
            break
        was_interior = state[IS_INTERIOR] > 0.0
        level = free_mean if was_interior and np.isfinite(free_mean) else level
        n_up, n_down = _list_violating(active, duals, scores, level, lists)
        if _make_pair_steps(X, duals, lists[0, :n_up], lists[1, :n_down], work, w, state) == 0:
            state[IS_INTERIOR] = 0.0
            if not was_interior:
                break


@compiled
def _free_mean(duals, scores, level):
    """Return the mean score of the free rows, those between their bounds; `level` if there are none."""
    total, n = 0.0, 0
    for i in range(scores.size):
        is_free = (duals.beta[i] > 0.0) & (duals.beta[i] < duals.upper[i])
        total += scores[i] if is_free else 0.0
        n += is_free
    return total / n if n > 0 else level


@compiled
def _list_all_violating(duals, scores, level, lists):
    """List the rows up to the level that are not at their upper bound, and those from it on that are not at zero.

    Rows at the level are in both lists: they take or give what the others do not balance. There are no branches, which
    could not be predicted.
    """
    n_up = n_down = 0
    for i in range(scores.size):
        lists[0, n_up] = lists[1, n_down] = i
        n_up += (scores[i] <= level) & (duals.beta[i] < duals.upper[i])
        n_down += (scores[i] >= level) & (duals.beta[i] > 0.0)
    return n_up, n_down


@compiled
def _list_violating(active, duals, scores, level, lists):
    """List rows as `_list_all_violating` does, of the active rows only."""
    n_up = n_down = 0
    for k in range(active.size):
        i = active[k]
        lists[0, n_up] = lists[1, n_down] = i
        n_up += (scores[i] <= level) & (duals.beta[i] < duals.upper[i])
        n_down += (scores[i] >= level) & (duals.beta[i] > 0.0)
    return n_up, n_down


@compiled
def _mean_distance(up, down, scores, level):
    """Return the mean distance of the scores of two lists of rows from the level; zero if there are no rows."""
    total, n = 0.0, up.size + down.size
    for i in up:
        total += abs(scores[i] - level)
    for i in down:
        total += abs(scores[i] - level)
    return total / n if n > 0 else 0.0


@compiled
def _list_active(duals, scores, level, width, out):
    """List the rows with scores within a distance from the level, and all that violate an optimality condition."""
    n = 0
    for i in range(scores.size):
        distance, beta, upper = scores[i] - level, duals.beta[i], duals.upper[i]
        out[n] = i
        n += (abs(distance) <= width) | ((distance < 0.0) & (beta < upper)) | ((distance > 0.0) & (beta > 0.0))
    return n


@compiled
def _set_scores_of(X, active, w, scores):
    """Set the scores of the active rows."""
    for k in range(active.size):
        row_prefetch(X, active, k)
        scores[active[k]] = row_dot(X, active[k], w)


@compiled
def _copy_scores(active, duals, scores, memory):
    """Copy the scores and upper bounds of the active rows to memory.

    Returns their Σ beta_i, Σ beta_i s_i, and the mean score of those of them that are free, NaN if there are none.
    """
    total = value = free_total = 0.0
    n_free = 0
    for k in range(active.size):
        i = active[k]
        score, beta, upper = scores[i], duals.beta[i], duals.upper[i]
        is_free = (beta > 0.0) & (beta < upper)
        memory[0, k], memory[1, k] = score, upper
        total += beta
        value += beta * score
        free_total += score if is_free else 0.0
        n_free += is_free
    return total, value, free_total / n_free if n_free > 0 else np.nan


@compiled
def fill_lowest(upper, scores, level, total, out):
    """Set out to the upper bounds of rows below the level, and to equal parts of those at it, so that the sum holds."""
    below = at = 0.0
    for i in range(scores.size):
        below += upper[i] if scores[i] < level else 0.0
        at += upper[i] if scores[i] == level else 0.0
    part = min(max((total - below) / at, 0.0), 1.0) if at > 0.0 else 0.0
    for i in range(scores.size):
        out[i] = upper[i] if scores[i] < level else (part * upper[i] if scores[i] == level else 0.0)


@compiled
def _make_heap(rows, scores, sign):
    """Order row numbers as a heap, the smallest sign times score first."""
    for place in range(rows.size // 2 - 1, -1, -1):
        _sift(rows, rows.size, place, scores, sign)


@compiled
def _sift(rows, n, place, scores, sign):
    """Move the row at a place down a heap of n rows until both rows below it have no smaller sign times score."""
    if place >= n:
        return
    row, child = rows[place], 2 * place + 1
    key = sign * scores[row]
    while child < n:
        if child + 1 < n and sign * scores[rows[child + 1]] < sign * scores[rows[child]]:
            child += 1
        if not sign * scores[rows[child]] < key:
            break
        rows[place] = rows[child]
        place, child = child, 2 * child + 1
    rows[place] = row


@compiled
def _pop(rows, n, scores, sign):
    """Remove the first row of a heap of n rows; return how many are left."""
    rows[0] = rows[n - 1]
    _sift(rows, n - 1, 0, scores, sign)
    return n - 1


@compiled
def _score(X, i, w):
    """Return <x_i, w>."""
    return row_dot(X, i, w)


@compiled
def _add(X, i, step, w):
    """Add step x_i to w."""
    row_axpy(X, i, step, w)


@compiled
def _make_pair_steps(X, duals, up, down, work, w, state):
    """Take from rows of `down` and give to rows of `up`, those with extreme scores first; return the number of steps.

    Kept true: w = X'beta, the bounds, and Σ beta. The state tells whether fewer rows of `up` have come to their bounds
    than have been left between them.
    """
    beta, upper, length = duals
    scores, zeros = work.scores, work.zeros
    _make_heap(up, scores, 1.0)
    _make_heap(down, scores, -1.0)
    n_up, n_down, n_steps, n_free, n_full = up.size, down.size, 0, 0, 0
    while n_up > 0 and n_down > 0:
        i, j = up[0], down[0]
        difference = _score(X, j, w) - _score(X, i, w)
        can_take, can_give, step = upper[i] - beta[i], beta[j], 0.0
        is_full = is_empty = not difference > 0.0  # whether the row of `up`, and that of `down`, is left
        if difference > 0.0:
            step = min(can_take, can_give)
            if difference < step * (length[i] + length[j]) ** 2:  # otherwise even opposite rows would go to a bound
                step = min(step, difference / row_distance(X, i, j, zeros))
            is_free = step < can_take and step < can_give
            is_full, is_empty = is_free or step >= can_take, is_free or step >= can_give
            beta[i] = min(beta[i] + step, upper[i]) if step < can_take else upper[i]
            beta[j] = max(can_give - step, 0.0)
            n_free += is_free
            n_full += step >= can_take
        if step > 0.0:
            _add(X, i, step, w)
            _add(X, j, -step, w)
            n_steps += 1
        if is_full:
            n_up = _pop(up, n_up, scores, 1.0)
        if is_empty:
            n_down = _pop(down, n_down, scores, -1.0)
    state[N_VISITS] += 2 * n_steps
    state[IS_INTERIOR] = 1.0 if n_free > n_full else (state[IS_INTERIOR] if n_steps == 0 else 0.0)
    return n_steps
