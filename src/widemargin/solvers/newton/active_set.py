"""The active-set Newton method of `active_set_steps` as a solver, and full precision for small problems.

A solver that stops at a relative gap of 1e-4 returns weights that are correct to about two digits; the other digits
depend on the order of the rows, on the seed and on the BLAS kernel. If a problem is so small that this takes about a
millisecond, the solution of every solver is therefore refined to full precision (`solve_exactly`).

For up to some hundred thousand entries, this method is also the fastest one measured for badly scaled rows, large costs
and separable classes, so that `newton` uses it from the beginning (`suits_active_set`). For larger problems, up to the
limits of `can_be_dense`, `newton` uses it if Newton's method on smoothed losses stalls.
"""

import math
from contextlib import nullcontext
from typing import NamedTuple

import numpy as np
from scipy.sparse import issparse

from widemargin._runtime.threads import single_threaded_blas
from widemargin.problems.certificates import losses
from widemargin.problems.intercept import best_intercept
from widemargin.problems.magnitudes import check_rows
from widemargin.solvers.contract import Solution, Status, Watch
from widemargin.solvers.newton.active_set_state import Terms, new_state
from widemargin.solvers.newton.active_set_steps import (
    apply_correction,
    compute_residuals,
    compute_slack,
    is_optimal,
    loss_and_dual_sums,
    minimise,
    proximal_violation,
    refine,
    set_delta,
    take_step,
    update_centres,
)
from widemargin.solvers.newton.linear_system import find_step_by_lapack

# Entries of X as a dense array without empty columns: largest numbers for which every solution is refined to full
# precision, for which `newton` uses this method from the beginning, and for which this method is possible at all.
_MAX_ENTRIES_FULL_PRECISION, _MAX_ENTRIES_FROM_BEGINNING, _MAX_ENTRIES_DENSE = 1 << 16, 3 << 16, 1 << 23
# Products needed for the matrix of the linear system if all terms are free; few are unless losses are squared.
_MAX_PRODUCTS, _MAX_PRODUCTS_SQUARED_LOSS = 1 << 23, 1 << 21
_MAX_SYSTEM_SIZE = 2048
_MIN_SYSTEM_SIZE_LAPACK = 100  # from which on linear systems are solved by LAPACK
_MAX_OUTER_ITERATIONS, _MAX_STEPS_PER_OUTER_ITERATION = 40, 60
_MAX_OPTIMAL_ITERATIONS = 3  # outer iterations at full precision, if the requested gap is still smaller
_SLOW_VIOLATION_RATIO = 0.1  # delta is reduced if an outer iteration leaves more than this part of the violation
_DELTA_REDUCTION = 1e-2  # factor of delta
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
    return _n_entries(X) <= _MAX_ENTRIES_FULL_PRECISION


def suits_active_set(problem):
    """Return whether the active-set method is the fastest way to solve a DualQP."""
    X = problem.X
    max_products = _MAX_PRODUCTS_SQUARED_LOSS if problem.is_squared else _MAX_PRODUCTS
    n_entries = _n_entries(X)
    return n_entries <= _MAX_ENTRIES_FROM_BEGINNING and n_entries * min(X.n_rows, X.n_columns) <= max_products


def can_be_dense(X):
    """Return whether the active-set method is possible for problems with this Matrix, in memory and in time."""
    return _n_entries(X) <= _MAX_ENTRIES_DENSE and min(X.n_rows, X.n_columns) <= _MAX_SYSTEM_SIZE


def _n_entries(X):
    """Return an upper bound of the number of entries of X as a dense array; infinity if X is not in memory."""
    return X.n_rows * min(X.n_columns, X.n_stored + 1) if X.is_in_memory else np.inf


def solve_exactly(problem, w, beta=None):
    """Return the ExactSolution of a small DualQP.

    `w` and `beta` are weights and dual variables to start from; without `beta`, the dual variables start from zero.
    """
    iterate = _new_iterate(problem, w, beta)
    iterate.update_best()  # the start is returned if nothing better is found
    for _ in range(_MAX_OUTER_ITERATIONS):
        if iterate.is_optimal:
            break
        iterate.improve(_MAX_STEPS_PER_OUTER_ITERATION)
    iterate.update_best()
    return iterate.solution()


def active_set_newton(problem, settings, start=None, beta=None):
    """Minimise a DualQP for which `can_be_dense` holds, to full precision if it is small; return a Solution.

    `start` and `beta` are weights and dual variables to start from.
    """
    check_rows(problem, problem.X.squared_norms(settings.n_jobs))
    watch, to_full_precision, n_optimal, iterate = Watch(settings, "steps"), is_small(problem), 0, None
    with watch, single_threaded_blas() if _needs_lapack(problem) else nullcontext():
        iterate = _new_iterate(problem, start, beta)
        for _ in range(_MAX_OUTER_ITERATIONS + 1):
            iterate.update_best()
            n_steps = iterate.n_steps
            gap = watch.record(n_steps, 2.0 * n_steps, iterate.best_primal, iterate.best_dual)
            n_optimal += iterate.is_optimal
            if gap <= settings.tol and (iterate.is_optimal or not to_full_precision):
                break
            if n_optimal > _MAX_OPTIMAL_ITERATIONS:
                break
            if watch.should_stop("newton", n_steps, 2.0 * n_steps):
                break
            n_left = _MAX_STEPS_PER_OUTER_ITERATION if settings.max_iter is None else settings.max_iter - n_steps
            iterate.improve(min(n_left, _MAX_STEPS_PER_OUTER_ITERATION))
    if iterate is None:
        return _interrupted_at_zero(problem, watch)
    status = watch.status
    if status in (None, Status.MAX_ITER):
        status = Status.CONVERGED if watch.gap <= settings.tol else status or Status.STALLED
    w, intercept, beta = iterate.solution()
    return Solution(
        w, beta, iterate.best_primal, iterate.best_dual, iterate.n_steps, status, "newton", watch.history(),
        intercept=intercept, is_exact=iterate.is_optimal, counts="steps",
    )  # fmt: skip


def _interrupted_at_zero(problem, watch):
    """Return the Solution w = 0 for a run that was interrupted before its first point was known."""
    w, beta = np.zeros(problem.X.n_columns), np.zeros(problem.X.n_rows)
    primal = float(losses(problem, beta).sum())
    watch.record(0, 0.0, primal, 0.0)
    return Solution(w, beta, primal, 0.0, 0, watch.status, "newton", watch.history(), counts="steps")


class _Iterate:
    """The current weights, intercept and dual variables of a DualQP, and the best ones so far.

    Attributes
    ----------
    n_steps : int
        Number of Newton steps so far.
    is_optimal : bool
        Whether the optimality conditions hold to full precision.
    best_primal, best_dual : float
        The best objectives found by `update_best`.
    """

    def __init__(self, problem, w, beta=None):
        self._problem, self._has_intercept = problem, problem.free_intercept
        self._values, self._columns = _dense(problem.X)
        if self._has_intercept:  # centred columns give the same weights with smaller rounding errors
            self._values = self._values - self._values.mean(axis=0)
        self._terms = _terms_of(problem, self._values)
        self._state = new_state(self._values, self._terms)
        squared_norms = self._terms.squared_norm if len(self._terms.row) else np.ones(1)
        middle = len(squared_norms) // 2
        self._mean_squared_norm = float(squared_norms.mean())
        self._min_delta = _MIN_DELTA * float(np.partition(squared_norms, middle)[middle])
        self._max_target = float(np.abs(self._terms.target).max(initial=0.0))
        self._relative_delta, self._last_violation, self.n_steps = 1.0, 0.0, 0
        self._is_minimised, self.is_optimal = True, False
        self.best_primal, self.best_dual, self._best_w, self._best_alpha = np.inf, -np.inf, None, None
        self._start(w, beta)

    def _start(self, w, beta):
        """Set the weights and dual variables of a warm start, if they are given."""
        if w is not None:
            self._state.w[:] = w[self._columns]
        compute_residuals(self._values, self._terms, self._state)
        if beta is not None:
            self._state.alpha[:] = np.clip(beta[self._terms.row], self._terms.lower, self._terms.upper)
            self._relative_delta = self._delta_of_start()
        self._set_delta()
        if beta is not None:
            self._refine()

    def _delta_of_start(self):
        """Return a delta relative to the mean |x_i|² such that ½ delta Σ alpha² is in proportion to the gap."""
        self.update_best()
        size = 0.5 * float(self._state.alpha @ self._state.alpha) * self._mean_squared_norm
        gap = max(self.best_primal - self.best_dual, 0.0)
        return min(1.0, _START_PENALTY_PER_GAP * gap / size) if size > 0.0 else 1.0

    def _set_delta(self):
        delta = max(self._relative_delta * self._mean_squared_norm, self._min_delta)
        set_delta(self._terms, self._state, delta)

    def _refine(self):
        """Correct the point; if it is then optimal, correct it once more and compare it with the best one."""
        self._correct()
        self.is_optimal = is_optimal(self._terms, self._state, self._max_target)
        if self.is_optimal:
            self._correct()
            self.update_best()

    def improve(self, max_steps):
        """Take Newton steps; if they converge for the current centres, update delta and refine the point."""
        if self._is_minimised:
            update_centres(self._terms, self._state, self._has_intercept)
        n_steps, self._is_minimised = self._minimise(max_steps)
        self.n_steps += n_steps
        if not self._is_minimised:
            return
        violation = proximal_violation(self._terms, self._state)
        if violation > _SLOW_VIOLATION_RATIO * self._last_violation:
            self._relative_delta *= _DELTA_REDUCTION
            self._set_delta()
        self._last_violation = violation
        self._refine()

    def _minimise(self, max_steps):
        """Take Newton steps for the current centres; return their number, and whether they have converged."""
        return minimise(self._values, self._terms, self._state, self._has_intercept, max_steps)

    def _correct(self):
        """Correct the point by the residuals of its optimality conditions."""
        refine(self._values, self._terms, self._state, self._has_intercept)

    def update_best(self):
        """Keep the current weights, and the current dual variables, if they are the best ones so far."""
        with np.errstate(over="ignore", invalid="ignore"):  # solutions that are not finite are refused later
            primal, dual, alpha = self._objectives()
        if self._best_w is None or primal <= self.best_primal:  # the first one in any case, even if it is NaN
            self.best_primal, self._best_w = primal, self._state.w.copy()
        if self._best_alpha is None or dual >= self.best_dual:
            self.best_dual, self._best_alpha = dual, alpha

    def _objectives(self):
        """Return the primal and the dual objective, and the dual variables clipped to their bounds."""
        state, terms = self._state, self._terms
        alpha = np.clip(state.alpha, terms.lower, terms.upper)
        loss, dual_sum = loss_and_dual_sums(terms, state)
        v = np.bincount(terms.row, alpha, len(self._values)) @ self._values
        primal, dual = loss + 0.5 * float(state.w @ state.w), dual_sum - 0.5 * float(v @ v)
        if self._has_intercept:  # Σ alpha is not exactly zero; see `finishing` for the bound
            largest_intercept = self._max_target + math.sqrt(2.0 * primal * terms.squared_norm.max(initial=0.0))
            dual -= abs(float(alpha.sum())) * largest_intercept
        return primal, dual, alpha

    def solution(self):
        """Return the best weights and dual variables as an ExactSolution."""
        if self._best_w is None:
            self.update_best()
        w, beta = np.zeros(self._problem.X.n_columns), np.zeros(self._problem.X.n_rows)
        w[self._columns] = self._best_w
        np.add.at(beta, self._terms.row, self._best_alpha)
        if not self._has_intercept:
            return ExactSolution(w, 0.0, beta)
        _make_sum_zero(beta, self._problem)
        return ExactSolution(w, best_intercept(self._problem, self._problem.X.scores(w)), beta)


class _LapackIterate(_Iterate):
    """An _Iterate whose linear systems are so large that LAPACK is faster than compiled loops."""

    def _minimise(self, max_steps):
        for n_steps in range(1, max_steps + 1):
            self._state.t[:] = 0.0
            found = self._find_step(0.0)
            if not (found and take_step(self._values, self._terms, self._state, self._has_intercept)):
                return n_steps, True
        return max_steps, False

    def _correct(self):
        imbalance = compute_slack(self._terms, self._state)
        if self._find_step(imbalance):
            apply_correction(self._values, self._terms, self._state)

    def _find_step(self, imbalance):
        return find_step_by_lapack(self._values, self._terms, self._state, self._has_intercept, imbalance)


def _needs_lapack(problem):
    """Return whether LAPACK is faster than compiled loops for the linear systems of a DualQP."""
    return min(problem.X.n_rows, problem.X.n_columns) >= _MIN_SYSTEM_SIZE_LAPACK


def _new_iterate(problem, w, beta=None):
    return (_LapackIterate if _needs_lapack(problem) else _Iterate)(problem, w, beta)


def _dense(X):
    """Return X as a float64 array without empty columns, the constant column last, and the indices of its columns."""
    if issparse(X.values):
        columns = np.unique(X.values.indices)
        values = X.values[:, columns].toarray().astype(np.float64)
    else:
        columns, values = np.arange(X.n_features), X.values.astype(np.float64)
    if X.constant:
        columns = np.append(columns, X.n_features)
        values = np.hstack([values, np.full((X.n_rows, 1), X.constant)])
    return values, columns


def _terms_of(problem, values):
    """Return the Terms of a DualQP: none for a row whose bounds are both 0, two for a row with a tube."""
    has_cost = (problem.lower < 0.0) | (problem.upper > 0.0)
    without_tube = np.flatnonzero(has_cost & (problem.epsilon == 0.0))
    above = np.flatnonzero((problem.upper > 0.0) & (problem.epsilon > 0.0))
    below = np.flatnonzero((problem.lower < 0.0) & (problem.epsilon > 0.0))
    row = np.concatenate([without_tube, above, below])
    tube = np.concatenate([np.zeros(len(without_tube)), problem.epsilon[above], -problem.epsilon[below]])
    squared_norms = np.einsum("ij,ij->i", values, values)
    squared_norms = np.where(squared_norms > 0.0, squared_norms, max(squared_norms.max(initial=0.0), 1.0))
    return Terms(
        row=row,
        lower=np.concatenate([problem.lower[without_tube], np.zeros(len(above)), problem.lower[below]]),
        upper=np.concatenate([problem.upper[without_tube], problem.upper[above], np.zeros(len(below))]),
        curvature=problem.curvature[row],
        target=problem.target[row] - tube,
        squared_norm=squared_norms[row],
    )


def _make_sum_zero(beta, problem):
    """Change dual variables in place so that Σ beta = 0 up to rounding, within their bounds.

    The one that is farthest from its bounds is changed, if that suffices, otherwise several.
    """
    below, above = beta - problem.lower, problem.upper - beta
    rest = float(beta.sum())
    i = int(np.argmax(np.minimum(below, above)))
    if min(below[i], above[i]) >= abs(rest):
        beta[i] -= rest
        return
    for i in np.argsort(above if rest < 0.0 else below)[::-1]:
        beta[i] = min(max(beta[i] - rest, problem.lower[i]), problem.upper[i])
        rest = float(beta.sum())
