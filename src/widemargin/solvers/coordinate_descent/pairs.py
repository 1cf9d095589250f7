"""`pairs`: pair coordinate descent for dual variables with a fixed sum, those of a linear one-class machine.

    minimise ½|X'beta|²    over 0 <= beta_i <= upper_i,   Σ beta_i = dual_sum

One dual variable cannot change alone. With w = X'beta and the scores s_i = <w, x_i>, an amount t that is taken from
beta_j and given to beta_i changes the objective by −t (s_j − s_i) + ½ t² |x_i − x_j|². If s_i < s_j the best step is

    t = min( (s_j − s_i) / |x_i − x_j|²,  upper_i − beta_i,  beta_j )

The optimum fills the rows with the lowest scores to their upper bounds, until the sum is reached at a score ρ, which is
a weighted quantile of the scores. If `tail` is Σ b_i s_i of the dual variables b that are so filled,

    primal objective at w = ½|w|² − tail,   dual objective = −½|w|²,   gap = Σ beta_i s_i − tail

so that one pass over the rows and a quickselect give the certificate. What rows below ρ can still take is as much as
rows above ρ have to give away. These two lists, the rows farthest from ρ first, are the pairs of a sweep: each step
takes the scores of that moment, and ends with the pair if its optimum is between the bounds, otherwise with the row
that has reached its bound. Bounds are small against what a step of coordinate descent would take, so that nearly all
steps end at a bound, and no |x_i − x_j| is needed.

Several sweeps over rows near ρ follow on each pass over all rows. The first step moves all dual variables at once,
towards the b of the present scores (Frank and Wolfe), since from the start very many rows have to move.

Reference: Chou, Lin, Lin, "Dual coordinate-descent methods for linear one-class SVM and SVDD", SDM 2020. There, pairs
are chosen in another way, and there is no certificate.
"""

from typing import NamedTuple

import numpy as np

from widemargin._runtime.compile import compiled
from widemargin.data.rows import row_axpy, row_distance, row_dot, row_prefetch
from widemargin.problems.formulations import FixedSumQP
from widemargin.problems.quantile import weighted_quantile
from widemargin.solvers.contract import Solution, Status, Watch
from widemargin.solvers.coordinate_descent.state import half_square
from widemargin.solvers.newton.active_set import correct_sum
from widemargin.solvers.spec import Losses, SolverSpec, Start

_STEPS_OF_ALL_ROWS = 1  # before pairs; of 0, 1, 2, 3 and 5, 1 was the fastest on 8 of 10 problems
_SWEEPS_PER_PASS = 10  # over the active rows, at most
_LARGEST_ACTIVE_PART = 0.5  # of the rows; if more are active, the next sweep follows on a pass over all rows
_GAP_LEFT = 0.2  # of the tolerated gap, at which sweeps over the active rows end
_PASSES_BETWEEN_RECOMPUTATIONS = 64  # of w = X'beta, to remove accumulated rounding errors


def pairs(problem, settings, start=None):
    """Minimise a FixedSumQP by pair coordinate descent; `start` are dual variables."""
    descent = _Descent(problem, settings, start)
    watch, goal = Watch(settings, "passes", problem.objective_scale), settings.tol
    with watch:
        while True:
            descent.measure()
            passes = float(descent.n_visits / problem.X.n_rows)
            gap = watch.record(descent.iteration, passes, descent.primal, descent.dual)
            if gap <= goal:
                watch.status = Status.CONVERGED
                break
            if watch.should_stop("pairs", descent.iteration, passes):
                break
            if not descent.improve(goal * max(abs(descent.primal), watch.scale)):
                watch.status = Status.STALLED
                break
    beta = descent.duals.beta
    correct_sum(beta, problem)
    return Solution(
        descent.best_w, beta, descent.primal, descent.dual, descent.iteration, watch.status, "pairs", watch.history(),
        counts="passes", scale=watch.scale,
    )  # fmt: skip


PAIRS = SolverSpec(
    name="pairs",
    solve=pairs,
    takes=frozenset({FixedSumQP}),
    losses=Losses.HINGES,
    starts_from=Start.DUAL,
    stopping=("gap",),
    counts="passes",
)


class Duals(NamedTuple):
    """The dual variables of the rows, their upper bounds, and |x_i|."""

    beta: np.ndarray
    upper: np.ndarray
    length: np.ndarray


class _Descent:
    """The dual variables and weights of a run. Kept true by every step: w = X'beta, the bounds, and Σ beta.

    Attributes
    ----------
    duals : Duals
    iteration, n_visits : int
        Passes over all rows, and visits of rows in these and in other sweeps.
    primal, dual : float
        The lowest primal objective so far, and the dual objective.
    best_w : ndarray
        The weights that have this primal objective, a multiple of w.
    """

    def __init__(self, problem, settings, start):
        X = problem.X
        norms = X.squared_norms(settings.n_jobs)
        problem.check(norms)
        self._X, self._n_jobs, self._total = X, settings.n_jobs, problem.dual_sum
        beta = problem.trivial_bound[0] if start is None else _feasible(start, problem)
        self.duals = Duals(beta, np.ascontiguousarray(problem.upper), np.sqrt(norms))
        self._w = X.combine(beta, self._n_jobs)
        self._scores, self._memory = np.empty(X.n_rows), np.empty((2, X.n_rows))
        self._all, self._lists = np.arange(X.n_rows, dtype=np.uint32), np.empty((2, X.n_rows), np.uint32)
        self._steps_left = _STEPS_OF_ALL_ROWS if start is None else 0
        self.iteration, self.n_visits, self.primal = 0, 0, np.inf

    def measure(self):
        """Make a pass over all rows; set the scores, the primal and the dual objective, and the best weights."""
        self._X.scores(self._w, self._n_jobs, out=self._scores)
        self.n_visits += self._X.n_rows
        _, value = _copy_scores(self._all, self.duals, self._scores, self._memory)
        self._level, tail, _ = weighted_quantile(*self._memory, self._total)
        self._gap = value - tail
        square = 2.0 * half_square(self._w)
        # Along multiples of w, the primal objective is smallest at this one.
        factor = tail / square if tail > 0.0 and square > 0.0 else 0.0
        primal, self.dual = -0.5 * factor * tail, -0.5 * square
        if primal < self.primal:
            self.primal, self.best_w = primal, factor * self._w

    def improve(self, goal):
        """Change dual variables, from the scores of the last pass; return whether any has changed."""
        self.iteration += 1
        if self._gap <= 0.0:
            return False
        if self._steps_left and self._step_of_all_rows():
            self._steps_left -= 1
            return True
        up, down = self._violating()
        active = self._active(up, down)
        n_steps = _make_pair_steps(self._X.rows, self.duals, up, down, self._w)
        self.n_visits += 2 * n_steps
        if n_steps and len(active) <= _LARGEST_ACTIVE_PART * self._X.n_rows:
            work = self._scores, self._memory, self._lists
            self.n_visits += _sweep(self._X.rows, self.duals, active, self._w, work, _GAP_LEFT * goal)
        if self.iteration % _PASSES_BETWEEN_RECOMPUTATIONS == 0:
            self._w = self._X.combine(self.duals.beta, self._n_jobs)
        return n_steps > 0

    def _step_of_all_rows(self):
        """Move towards the dual variables that fill the rows with the lowest scores, as far as is best."""
        towards = np.empty_like(self.duals.beta)
        _fill_lowest(self.duals.upper, self._scores, self._level, self._total, towards)
        w = self._X.combine(towards, self._n_jobs)
        self.n_visits += self._X.n_rows
        square = 2.0 * half_square(w - self._w)
        step = min(1.0, self._gap / square) if square > 0.0 else 0.0
        self.duals.beta[:] += step * (towards - self.duals.beta)
        np.minimum(self.duals.beta, self.duals.upper, out=self.duals.beta)
        self._w += step * (w - self._w)
        return step > 0.0

    def _violating(self):
        """Return the rows up to ρ that can take more, and those from ρ on that can give, the farthest ones first."""
        n_up, n_down = _list_violating(self._all, self.duals, self._scores, self._level, self._lists)
        up, down = self._lists[0, :n_up], self._lists[1, :n_down]
        return up[np.argsort(self._scores[up])], down[np.argsort(-self._scores[down])]

    def _active(self, up, down):
        """Return the rows that are nearer to ρ than the farthest violating row, and all that are not at a bound."""
        ends = [self._scores[one[0]] for one in (up, down) if len(one)]
        width = max((abs(score - self._level) for score in ends), default=0.0)
        is_free = (self.duals.beta > 0.0) & (self.duals.beta < self.duals.upper)
        return np.flatnonzero((np.abs(self._scores - self._level) <= width) | is_free).astype(np.uint32)


def _feasible(start, problem):
    """Return dual variables near to given ones, within their bounds and with the sum that is asked for."""
    beta = np.clip(np.asarray(start, dtype=np.float64), problem.lower, problem.upper)
    excess = float(beta.sum()) - problem.dual_sum
    room = beta if excess > 0.0 else problem.upper - beta
    size = float(room.sum())
    if size > 0.0:
        beta = np.clip(beta - min(1.0, abs(excess) / size) * np.sign(excess) * room, problem.lower, problem.upper)
    correct_sum(beta, problem)
    return beta


@compiled
def _sweep(X, duals, active, w, work, goal):
    """Make sweeps over the active rows until their gap is small, or none moves; return the number of visits of rows.

    Kept true: w = X'beta, the bounds, and Σ beta. `work` are the scores of all rows, of which those of active rows are
    set, and memory for the quantile and for lists of rows.
    """
    scores, memory, lists = work
    n_visits, n = 0, active.size
    for _ in range(_SWEEPS_PER_PASS - 1):
        _set_scores_of(X, active, w, scores)
        total, value = _copy_scores(active, duals, scores, memory)
        level, tail, _ = weighted_quantile(memory[0, :n], memory[1, :n], total)
        n_visits += n
        if value - tail <= goal:
            break
        n_up, n_down = _list_violating(active, duals, scores, level, lists)
        _sort_by_scores(lists[0, :n_up], scores, 1.0)
        _sort_by_scores(lists[1, :n_down], scores, -1.0)
        n_steps = _make_pair_steps(X, duals, lists[0, :n_up], lists[1, :n_down], w)
        n_visits += 2 * n_steps
        if n_steps == 0:
            break
    return n_visits


@compiled
def _sort_by_scores(rows, scores, sign):
    """Sort row numbers by sign times their scores, ascending: Shell's method, for lists that are not long."""
    distance = 1
    while distance < rows.size // 3:
        distance = 3 * distance + 1
    while distance > 0:
        for k in range(distance, rows.size):
            row, place = rows[k], k
            key = sign * scores[row]
            while place >= distance and sign * scores[rows[place - distance]] > key:
                rows[place] = rows[place - distance]
                place -= distance
            rows[place] = row
        distance //= 3


@compiled
def _set_scores_of(X, active, w, scores):
    """Set the scores of the active rows."""
    for k in range(active.size):
        row_prefetch(X, active, k)
        scores[active[k]] = row_dot(X, active[k], w)


@compiled
def _copy_scores(active, duals, scores, memory):
    """Copy the scores and upper bounds of the active rows to memory; return their Σ beta_i and Σ beta_i s_i."""
    total = value = 0.0
    for k in range(active.size):
        i = active[k]
        memory[0, k], memory[1, k] = scores[i], duals.upper[i]
        total += duals.beta[i]
        value += duals.beta[i] * scores[i]
    return total, value


@compiled
def _fill_lowest(upper, scores, level, total, out):
    """Set out to the upper bounds of rows below the level, and to equal parts of those at it, so that the sum holds."""
    below = at = 0.0
    for i in range(scores.size):
        below += upper[i] if scores[i] < level else 0.0
        at += upper[i] if scores[i] == level else 0.0
    part = min(max((total - below) / at, 0.0), 1.0) if at > 0.0 else 0.0
    for i in range(scores.size):
        out[i] = upper[i] if scores[i] < level else (part * upper[i] if scores[i] == level else 0.0)


@compiled
def _list_violating(active, duals, scores, level, lists):
    """List the rows up to the level that are not at their upper bound, and those from it on that are not at zero.

    Rows at the level are in both lists: they take or give what the others do not balance.
    """
    n_up = n_down = 0
    for k in range(active.size):
        i = active[k]
        if scores[i] <= level and duals.beta[i] < duals.upper[i]:
            lists[0, n_up] = i
            n_up += 1
        if scores[i] >= level and duals.beta[i] > 0.0:
            lists[1, n_down] = i
            n_down += 1
    return n_up, n_down


@compiled
def _score(X, i, w):
    """Return <x_i, w>."""
    return row_dot(X, i, w)


@compiled
def _add(X, i, step, w):
    """Add step x_i to w."""
    row_axpy(X, i, step, w)


@compiled
def _make_pair_steps(X, duals, up, down, w):
    """Take from rows of `down` and give to rows of `up`, in their order. Kept true: w = X'beta, bounds, Σ beta.

    Returns the number of steps.
    """
    beta, upper, length = duals
    n_steps = a = b = 0
    while a < up.size and b < down.size:
        i, j = up[a], down[b]
        difference = _score(X, j, w) - _score(X, i, w)
        if difference <= 0.0:
            a += 1
            b += 1
            continue
        can_take, can_give = upper[i] - beta[i], beta[j]
        step = min(can_take, can_give)
        if difference < step * (length[i] + length[j]) ** 2:  # otherwise even opposite rows would go to a bound
            step = min(step, difference / row_distance(X, i, j))
        if step > 0.0:
            _add(X, i, step, w)
            _add(X, j, -step, w)
            n_steps += 1
        is_free = step < can_take and step < can_give
        beta[i] = min(beta[i] + step, upper[i]) if step < can_take else upper[i]
        beta[j] = max(can_give - step, 0.0)
        a += is_free or step >= can_take
        b += is_free or step >= can_give
    return n_steps
