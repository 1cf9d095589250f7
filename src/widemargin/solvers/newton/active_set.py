"""The active-set Newton method of `active_set_steps` as a solver, and full precision for small problems.

A solver that stops at a relative gap of 1e-4 returns weights that are correct to about two digits; the other digits
depend on the order of the rows, on the seed and on the BLAS kernel. If a problem is so small that this takes about a
millisecond, the solution of every solver is therefore refined to full precision (`solve_exactly`).

For up to some hundred thousand entries, this method is also the fastest one measured for badly scaled rows, large costs
and separable classes, so that `newton` uses it from the beginning (`suits_active_set`). For larger problems, up to the
limits of `can_be_dense`, `newton` uses it if Newton's method on smoothed losses stalls.
"""

from contextlib import nullcontext
from typing import NamedTuple

import numpy as np

from widemargin._runtime.compile import compiled
from widemargin._runtime.threads import single_threaded_blas
from widemargin.problems.certificates import losses
from widemargin.problems.intercept import best_intercept
from widemargin.problems.magnitudes import check_rows
from widemargin.solvers.contract import Solution, Status, Watch
from widemargin.solvers.newton.active_set_state import (
    BEGIN,
    BEST_DUAL,
    BEST_PRIMAL,
    CORRECT,
    DUAL_SUM,
    EVALUATE,
    HAS_BEST,
    IS_OPTIMAL,
    MEAN_SQUARED_NORM,
    MIN_DELTA,
    MINIMISE,
    N_ITERATIONS,
    N_STEPS_IN_ALL,
    PHASE,
    RELATIVE_DELTA,
    SUFFICIENT_GAP,
    Rows,
    Terms,
    new_state,
)
from widemargin.solvers.newton.active_set_steps import advance, prepare_step, use_step
from widemargin.solvers.newton.linear_system import find_step_by_lapack

# Entries of X as a dense array without empty columns: largest numbers for which `newton` uses this method from the
# beginning, and for which this method is possible at all.
_MAX_ENTRIES_FROM_BEGINNING, _MAX_ENTRIES_DENSE = 3 << 16, 1 << 23
# Products needed for the matrix of the linear system if all terms are free; few are unless losses are squared.
_MAX_PRODUCTS, _MAX_PRODUCTS_SQUARED_LOSS = 1 << 23, 1 << 21
_MAX_SYSTEM_SIZE = 2048
_MIN_SYSTEM_SIZE_LAPACK = 100  # from which on linear systems are solved by LAPACK
_MAX_OUTER_ITERATIONS, _MAX_STEPS = 40, 2400
_PRODUCTS_PER_CALL = 1 << 21  # about a millisecond; a compiled call does not begin an outer iteration after so many
_MAX_OPTIMAL_ITERATIONS = 3  # outer iterations at full precision, if the requested gap is still smaller
_MIN_DELTA = 1e-18  # relative to the median of |x_i|²
_START_PENALTY_PER_GAP = 100.0  # largest ratio of ½ delta Σ alpha² to the gap of a warm start


class ExactSolution(NamedTuple):
    """Weights, intercept (0 unless it is free) and dual variables of the rows."""

    w: np.ndarray
    intercept: float
    beta: np.ndarray


def is_small(problem):
    """Return whether the solution of a DualQP by any solver is refined to full precision."""
    return is_small_matrix(problem.X) and suits_active_set(problem)


def is_small_matrix(X):
    """Return whether a Matrix has so few entries that exact sums over them take negligible time."""
    return X.is_in_memory and X.is_small


def suits_active_set(problem):
    """Return whether the active-set method is the fastest way to solve a DualQP."""
    X = problem.X
    if problem.entropy:
        return False
    max_products = _MAX_PRODUCTS_SQUARED_LOSS if problem.is_squared else _MAX_PRODUCTS
    n_entries = _n_entries(X)
    return n_entries <= _MAX_ENTRIES_FROM_BEGINNING and n_entries * min(X.n_rows, X.n_columns) <= max_products


def takes_problem(problem):
    """Return whether the active-set method is possible for a DualQP; with an entropy, no dual variable is at bound."""
    return not problem.entropy and can_be_dense(problem.X)


def can_be_dense(X):
    """Return whether the active-set method is possible for problems with this Matrix, in memory and in time."""
    return _n_entries(X) <= _MAX_ENTRIES_DENSE and min(X.n_rows, X.n_columns) <= _MAX_SYSTEM_SIZE


def _n_entries(X):
    """Return an upper bound of the number of entries of X as a dense array; infinity if X is not in memory."""
    return X.n_entries if X.is_in_memory else np.inf


def solve_exactly(problem, w, beta=None):
    """Return the ExactSolution of a small DualQP.

    `w` and `beta` are weights and dual variables to start from; without `beta`, the dual variables start from zero.
    """
    iterate = _new_iterate(problem, w, beta)  # its start is returned if nothing better is found
    while not (iterate.is_optimal or iterate.is_at_limit):
        iterate.improve(_MAX_STEPS, _steps_per_call(problem))
    return iterate.solution()


def active_set_newton(problem, settings, start=None, beta=None):
    """Minimise a DualQP for which `can_be_dense` holds, to full precision if it is small; return a Solution.

    `start` and `beta` are weights and dual variables to start from.
    """
    watch = Watch(settings, "steps", problem.objective_scale)
    to_full_precision, n_optimal, iterate = is_small(problem), 0, None
    with watch, single_threaded_blas() if _needs_lapack(problem) else nullcontext():
        check_rows(problem, problem.X.squared_norms(settings.n_jobs))
        iterate = _new_iterate(problem, start, beta, -1.0 if to_full_precision else settings.tol)
        n_steps_per_call = 0 if settings.callbacks else _steps_per_call(problem)
        while True:
            n_steps = iterate.n_steps
            gap = watch.record(n_steps, 2.0 * n_steps, iterate.best_primal, iterate.best_dual)
            n_optimal += iterate.is_optimal
            if gap <= settings.tol and (iterate.is_optimal or not to_full_precision):
                break
            if n_optimal > _MAX_OPTIMAL_ITERATIONS or iterate.is_at_limit:
                break
            if watch.should_stop("newton", n_steps, 2.0 * n_steps):
                break
            iterate.improve(_MAX_STEPS if settings.max_iter is None else settings.max_iter, n_steps_per_call)
    if iterate is None:
        return _interrupted_at_zero(problem, watch)
    status = watch.status
    if status in (None, Status.MAX_ITER):
        status = Status.CONVERGED if watch.gap <= settings.tol else status or Status.STALLED
    w, intercept, beta = iterate.solution()
    return Solution(
        w, beta, iterate.best_primal, iterate.best_dual, iterate.n_steps, status, "newton", watch.history(),
        intercept=intercept, is_exact=iterate.is_optimal, counts="steps", scale=watch.scale,
    )  # fmt: skip


def _interrupted_at_zero(problem, watch):
    """Return the Solution w = 0 for a run that was interrupted before its first point was known."""
    w, (beta, dual) = np.zeros(problem.X.n_columns), problem.trivial_bound
    primal = float(losses(problem, np.zeros(problem.X.n_rows)).sum())
    watch.record(0, 0.0, primal, dual)
    return Solution(
        w, beta, primal, dual, 0, watch.status, "newton", watch.history(), counts="steps", scale=watch.scale
    )


class _Iterate:
    """The current weights, intercept and dual variables of a DualQP, and the best ones so far.

    `improve` begins no further outer iteration if the relative gap is at most `sufficient_gap`; a negative one asks for
    full precision.
    """

    _by_lapack = False

    def __init__(self, problem, w, beta, sufficient_gap):
        self._problem, self._has_intercept = problem, problem.free_intercept
        self._values, self._columns = problem.X.as_array
        if self._has_intercept and not problem.dual_sum:
            # Centred columns give the same weights with smaller rounding errors. With a `dual_sum` they would not: the
            # intercept has a term of its own in the objective, and changes with the columns.
            self._values = self._values - self._values.mean(axis=0)
        self._rows = Rows(self._values, np.ascontiguousarray(self._values.T))
        self._terms = _terms_of(problem, self._values)
        self._state = new_state(self._values, self._terms, by_lapack=self._by_lapack)
        self._set_scalars()
        self._state.scalars[SUFFICIENT_GAP] = sufficient_gap
        self._start(w, beta)

    def _set_scalars(self):
        """Set the numbers that the steps need of the problem."""
        scalars, squared_norms = self._state.scalars, self._terms.squared_norm
        squared_norms = squared_norms if len(squared_norms) else np.ones(1)
        scalars[RELATIVE_DELTA], scalars[MEAN_SQUARED_NORM] = 1.0, squared_norms.sum() / len(squared_norms)
        self._has_delta = not self._terms.curvature.all()
        if self._has_delta:
            middle = len(squared_norms) // 2
            scalars[MIN_DELTA] = _MIN_DELTA * np.partition(squared_norms, middle)[middle]
        scalars[DUAL_SUM] = self._problem.dual_sum

    def _start(self, w, beta):
        """Set the weights and dual variables of a warm start, if they are given, and evaluate the point."""
        state, terms = self._state, self._terms
        if w is not None:
            state.w[:] = w[self._columns]
        if beta is not None:
            state.alpha[:] = np.clip(beta[terms.row], terms.lower, terms.upper)
        self._advance(EVALUATE)
        if beta is not None:
            state.scalars[RELATIVE_DELTA] = self._delta_of_start()
            state.is_free[:] = (state.alpha > terms.lower) & (state.alpha < terms.upper)
        state.total_curvature[:] = terms.curvature
        if self._has_delta:
            delta = max(state.scalars[RELATIVE_DELTA] * state.scalars[MEAN_SQUARED_NORM], state.scalars[MIN_DELTA])
            state.total_curvature[terms.curvature <= 0.0] = delta
        if beta is not None:
            self._advance(CORRECT)

    def _delta_of_start(self):
        """Return a delta relative to the mean |x_i|² such that ½ delta Σ alpha² is in proportion to the gap."""
        size = 0.5 * float(self._state.alpha @ self._state.alpha) * self._state.scalars[MEAN_SQUARED_NORM]
        gap = max(self.best_primal - self.best_dual, 0.0)
        return min(1.0, _START_PENALTY_PER_GAP * gap / size) if size > 0.0 else 1.0

    def improve(self, max_steps, n_steps_per_call=0):
        """Take Newton steps; if they converge for the current centres, update delta and correct the point.

        There are at most `max_steps` of them since the start. Further outer iterations follow as long as there were
        fewer than `n_steps_per_call`.
        """
        phase = MINIMISE if self._state.counts[PHASE] == MINIMISE else BEGIN
        self._advance(phase, max_steps, self.n_steps + n_steps_per_call)

    def _advance(self, phase, max_steps=0, max_steps_before_last=0):
        """Do a phase and those that follow from it; see `advance`."""
        self._state.counts[:HAS_BEST] = 0
        self._state.counts[PHASE] = phase
        self._take_steps(max_steps, max_steps_before_last)

    def _take_steps(self, *limits):
        advance(self._rows, self._terms, self._state, self._has_intercept, *limits)

    @property
    def n_steps(self):
        """Number of Newton steps so far."""
        return int(self._state.counts[N_STEPS_IN_ALL])

    @property
    def is_at_limit(self):
        """Whether there were so many outer iterations or Newton steps that further ones are not worth while."""
        return self._state.counts[N_ITERATIONS] >= _MAX_OUTER_ITERATIONS or self.n_steps >= _MAX_STEPS

    @property
    def is_optimal(self):
        """Whether the optimality conditions hold to full precision."""
        return bool(self._state.counts[IS_OPTIMAL])

    @property
    def best_primal(self):
        """The best primal objective so far."""
        return float(self._state.scalars[BEST_PRIMAL])

    @property
    def best_dual(self):
        """The best dual objective so far."""
        return float(self._state.scalars[BEST_DUAL])

    def solution(self):
        """Return the best weights and dual variables as an ExactSolution."""
        w = np.zeros(self._problem.X.n_columns)
        w[self._columns] = self._state.best_w
        beta = np.bincount(self._terms.row, self._state.best_alpha, self._problem.X.n_rows)
        if not self._has_intercept:
            return ExactSolution(w, 0.0, beta)
        correct_sum(beta, self._problem)
        return ExactSolution(w, best_intercept(self._problem, self._problem.X.scores(w)), beta)


class _LapackIterate(_Iterate):
    """An _Iterate whose linear systems are so large that LAPACK is faster than compiled loops."""

    _by_lapack = True

    def _take_steps(self, max_steps, _):  # an outer iteration
        rows, terms, state, has_intercept = self._rows, self._terms, self._state, self._has_intercept
        with np.errstate(over="ignore", invalid="ignore"):  # solutions that are not finite are refused later
            while prepare_step(rows, terms, state, has_intercept, max_steps):
                use_step(rows, terms, state, find_step_by_lapack(rows.values, terms, state, has_intercept))


def _needs_lapack(problem):
    """Return whether LAPACK is faster than compiled loops for the linear systems of a DualQP."""
    return min(problem.X.n_rows, problem.X.n_columns) >= _MIN_SYSTEM_SIZE_LAPACK


def _new_iterate(problem, w, beta=None, sufficient_gap=-1.0):
    return (_LapackIterate if _needs_lapack(problem) else _Iterate)(problem, w, beta, sufficient_gap)


def _steps_per_call(problem):
    """Return the number of Newton steps after which a compiled call does not begin another outer iteration."""
    return _PRODUCTS_PER_CALL // max(1, _n_entries(problem.X) * min(problem.X.n_rows, problem.X.n_columns))


def _terms_of(problem, values):
    """Return the Terms of a DualQP: none for a row whose bounds are both 0, two for a row with a tube."""
    is_centred = values is not problem.X.as_array[0]
    squared_norms = np.einsum("ij,ij->i", values, values) if is_centred else problem.X.squared_norms()
    if not squared_norms.all():
        squared_norms = np.where(squared_norms > 0.0, squared_norms, max(squared_norms.max(initial=0.0), 1.0))
    has_cost = (problem.lower < 0.0) | (problem.upper > 0.0)
    if has_cost.all() and not problem.epsilon.any():
        numbers = problem.lower, problem.upper, problem.curvature, problem.target
        return Terms(np.arange(len(has_cost)), *map(_plain, numbers), squared_norms)
    without_tube = np.flatnonzero(has_cost & (problem.epsilon == 0.0))
    above = np.flatnonzero((problem.upper > 0.0) & (problem.epsilon > 0.0))
    below = np.flatnonzero((problem.lower < 0.0) & (problem.epsilon > 0.0))
    row = np.concatenate([without_tube, above, below])
    tube = np.concatenate([np.zeros(len(without_tube)), problem.epsilon[above], -problem.epsilon[below]])
    return Terms(
        row=row,
        lower=np.concatenate([problem.lower[without_tube], np.zeros(len(above)), problem.lower[below]]),
        upper=np.concatenate([problem.upper[without_tube], problem.upper[above], np.zeros(len(below))]),
        curvature=problem.curvature[row],
        target=problem.target[row] - tube,
        squared_norm=squared_norms[row],
    )


def _plain(array):
    """Return an array of the layout for which the steps are compiled: contiguous and writable."""
    return array if array.flags.c_contiguous and array.flags.writeable else array.copy()


@compiled
def _farthest_from_bounds(beta, lower, upper):
    """Return the dual variable that is farthest from its bounds, and its distance from the nearer one."""
    farthest, largest = 0, -np.inf
    for i in range(beta.size):
        distance = min(beta[i] - lower[i], upper[i] - beta[i])
        if distance > largest:
            farthest, largest = i, distance
    return farthest, largest


def correct_sum(beta, problem):
    """Change dual variables in place so that Σ beta = dual_sum up to rounding, within their bounds.

    The one that is farthest from its bounds is changed, if that suffices, otherwise several.
    """
    rest = float(beta.sum()) - problem.dual_sum
    i, distance = _farthest_from_bounds(beta, problem.lower, problem.upper)
    if distance >= abs(rest):
        beta[i] -= rest
        return
    below, above = beta - problem.lower, problem.upper - beta
    for i in np.argsort(above if rest < 0.0 else below)[::-1]:
        if rest == 0.0:
            break
        corrected = min(max(beta[i] - rest, problem.lower[i]), problem.upper[i])
        beta[i], rest = corrected, rest - (beta[i] - corrected)
