"""The active-set Newton method of `active_set_steps` as a solver, and full precision for small problems.

A solver that stops at a relative gap of 1e-4 returns weights that are right to about two digits, and which digits
follow depends on its path: on the order of rows, on the seed, on the BLAS kernel. Where a problem is small enough that
this takes about a millisecond, every solver's solution is therefore carried on to the exact one (`exact`).

Up to some hundred thousand entries these steps are also the fastest way that we know for badly scaled rows, large costs
and separable classes, so that `newton` takes them from the beginning (`suits_active_set`). Beyond, as long as rows can
be held as a dense array, it takes them when its own steps do not come to an end.
"""

import math
from contextlib import nullcontext
from typing import NamedTuple

import numpy as np
from scipy.linalg.lapack import dposv
from scipy.sparse import issparse

from widemargin._runtime.threads import single_threaded_blas
from widemargin.problems.intercept import best_intercept
from widemargin.problems.magnitudes import check_rows
from widemargin.solvers.contract import Solution, Status, Watch
from widemargin.solvers.newton.active_set_steps import (
    SHIFT,
    B,
    Terms,
    find_residuals,
    find_slack,
    is_optimal,
    measure,
    minimise,
    new_state,
    refine,
    set_delta,
    take_centres,
    take_correction,
    take_step,
    violation_of,
)  # fmt: skip

# Entries of the rows as a dense array, columns that do not occur left out: of problems that are solved to full
# precision, that are solved by these steps from the beginning, and that can be solved by them at all.
_SMALL, _MEDIUM, _LARGE = 1 << 16, 3 << 16, 1 << 23
# Products for a matrix of columns x columns, or rows x rows, if all rows add to it: for linear losses few do.
_MOST_PRODUCTS, _MOST_SQUARED_PRODUCTS = 1 << 23, 1 << 21
_MOST_DIMENSIONS = 2048  # of that matrix
_OUTER_ITERATIONS, _STEPS_EACH = 40, 60
_AFTER_THE_END = 3  # iterations at the level of rounding, where a smaller gap is asked for
_SLOW = 0.1  # of the last violation: an outer iteration that leaves more asks for a smaller delta
_SMALLER, _LEAST_DELTA = 1e-2, 1e-18  # factor of delta; its least value against the median of |x_i|²
_FIRST_SHARE = 100.0  # by which ½ Σ delta a² may exceed the gap of a start
_BLAS_FROM = 100  # columns, and rows, from which on a linear system is solved by LAPACK
_RIDGE, _MORE_RIDGE = 1e-15, 100.0  # added to a unit diagonal where a factorisation fails, and its next multiple


class Exact(NamedTuple):
    """An exact solution: weights, intercept (0 unless it is free) and the dual variables of the rows."""

    w: np.ndarray
    intercept: float
    beta: np.ndarray


def is_small(problem):
    """Return whether a DualQP is to be solved to full precision, whoever solves it."""
    return is_small_matrix(problem.X) and suits_active_set(problem)


def is_small_matrix(X):
    """Return whether a Matrix, as a dense array, has so few entries that exact arithmetic on it takes no time."""
    return _n_entries(X) <= _SMALL


def suits_active_set(problem):
    """Return whether these steps are the fastest way to solve a DualQP."""
    X, most = problem.X, _MOST_SQUARED_PRODUCTS if problem.curvature.any() else _MOST_PRODUCTS
    entries = _n_entries(X)
    return entries <= _MEDIUM and entries * min(X.n_rows, X.n_columns) <= most


def can_be_dense(X):
    """Return whether these steps are possible for problems with this Matrix, in memory and in time."""
    return _n_entries(X) <= _LARGE and min(X.n_rows, X.n_columns) <= _MOST_DIMENSIONS


def _n_entries(X):
    return X.n_rows * min(X.n_columns, X.n_stored + 1)


def exact(problem, w, beta=None):
    """Return the Exact solution of a small DualQP.

    `w` and `beta` are weights and dual variables to start from; without `beta` the start is zero.
    """
    point = _new_point(problem, w, beta)
    point.bounds()  # where nothing better is found, the start is returned
    for _ in range(_OUTER_ITERATIONS):
        if point.is_optimal:
            break
        point.improve(_STEPS_EACH)
    point.bounds()
    return point.solution()


def active_set_newton(problem, settings, start=None, beta=None):
    """Minimise a DualQP that can be dense, a small one to full precision; return a Solution.

    `start` are weights and `beta` dual variables to start from.
    """
    check_rows(problem, problem.X.squared_norms(settings.n_jobs))
    watch, to_the_end, n_optimal = Watch(settings, "steps"), is_small(problem), 0
    with watch, single_threaded_blas() if _needs_lapack(problem) else nullcontext():
        point = _new_point(problem, start, beta)
        for _ in range(_OUTER_ITERATIONS + 1):
            point.bounds()
            gap = watch.record(point.n_steps, 2.0 * point.n_steps, *point.best_bounds)
            left = _STEPS_EACH if settings.max_iter is None else settings.max_iter - point.n_steps
            n_optimal += point.is_optimal
            if gap <= settings.tol and (point.is_optimal or not to_the_end):
                break
            if n_optimal > _AFTER_THE_END:
                break
            if watch.should_stop("newton", point.n_steps, 2.0 * point.n_steps):
                break
            point.improve(min(left, _STEPS_EACH))
    status = watch.status
    if status in (None, Status.MAX_ITER):
        status = Status.CONVERGED if watch.gap <= settings.tol else status or Status.STALLED
    w, intercept, beta = point.solution()
    primal, dual = point.best_bounds
    return Solution(
        w, beta, primal, dual, point.n_steps, status, "newton", watch.history(),
        intercept=intercept, is_exact=point.is_optimal, counts="steps",
    )  # fmt: skip


class _Point:
    """Weights, an intercept and dual variables of a small problem, and the best of each so far.

    Attributes
    ----------
    n_steps : int
        Newton steps taken.
    is_optimal : bool
        Whether the optimality conditions hold to full precision.
    best_bounds : list
        The best primal and dual values seen by `bounds`.
    """

    def __init__(self, problem, w, beta=None):
        self._has_intercept = problem.free_intercept
        self._rows = problem
        self._values, self._columns = _dense(self._rows.X)
        self._middle = np.zeros(self._values.shape[1])
        if self._has_intercept:  # a shift of the columns is taken up by the intercept, and saves digits
            self._middle = self._values.mean(axis=0)
            self._values = self._values - self._middle
        self._terms = _terms_of(self._rows, self._values)
        self._state = new_state(self._values, self._terms)
        squares = self._terms.square if len(self._terms.row) else np.ones(1)
        self._square, self._least_delta = (
            float(squares.mean()),
            _LEAST_DELTA * float(np.partition(squares, len(squares) // 2)[len(squares) // 2]),
        )
        self._size = float(np.abs(self._terms.target).max(initial=0.0))
        self._relative, self._last, self.n_steps = 1.0, 0.0, 0
        self._is_settled, self.is_optimal = True, False
        self.best_bounds, self._best = [np.inf, -np.inf], [None, None]
        if w is not None:
            self._state.w[:] = w[self._columns]
        find_residuals(self._values, self._terms, self._state)
        if beta is not None:
            self._state.a[:] = np.clip(beta[self._terms.row], self._terms.low, self._terms.high)
            self._relative = self._first_delta()
        self._set_delta()
        if beta is not None:
            self._refine()

    def _first_delta(self):
        """Return a delta, against the mean of |x_i|², that moves a start as much as its gap calls for."""
        primal, dual = self.bounds()
        size = 0.5 * float(self._state.a @ self._state.a) * self._square
        return min(1.0, _FIRST_SHARE * max(primal - dual, 0.0) / size) if size > 0.0 else 1.0

    def _set_delta(self):
        set_delta(self._terms, self._state, max(self._relative * self._square, self._least_delta))

    def _refine(self):
        self._correct()
        self.is_optimal = is_optimal(self._terms, self._state, self._size)
        if self.is_optimal:
            self._correct()
            self.bounds()

    def improve(self, most):
        """Take at most so many Newton steps; if that is enough for the present centres, take new ones."""
        if self._is_settled:
            take_centres(self._terms, self._state, self._has_intercept)
        n_steps, self._is_settled = self._minimise(most)
        self.n_steps += n_steps
        if not self._is_settled:
            return
        violation = violation_of(self._terms, self._state)
        if violation > _SLOW * self._last:
            self._relative *= _SMALLER
            self._set_delta()
        self._last = violation
        self._refine()

    def _minimise(self, most):
        return minimise(self._values, self._terms, self._state, self._has_intercept, most)

    def _correct(self):
        refine(self._values, self._terms, self._state, self._has_intercept)

    def bounds(self):
        """Return the primal and the dual value here; remember the point if it is the best so far."""
        with np.errstate(over="ignore", invalid="ignore"):  # a point beyond double precision is refused at the end
            return self._bounds()

    def _bounds(self):
        state, terms = self._state, self._terms
        a = np.clip(state.a, terms.low, terms.high)
        loss, value = measure(terms, state)
        v = np.bincount(terms.row, a, len(self._values)) @ self._values
        size = float(state.w @ state.w)
        primal, dual = loss + 0.5 * size, value - 0.5 * float(v @ v)
        if self._has_intercept:  # what is missing of Σ a = 0 counts against the proof, see `finishing`
            dual -= abs(float(a.sum())) * (self._size + math.sqrt(2.0 * primal * terms.square.max(initial=0.0)))
        if self._best[0] is None or primal <= self.best_bounds[0]:  # the first in any case, even if it is no number
            self.best_bounds[0], self._best[0] = primal, (state.w.copy(), state.number[B])
        if self._best[1] is None or dual >= self.best_bounds[1]:
            self.best_bounds[1], self._best[1] = dual, a
        return self.best_bounds

    def solution(self):
        """Return the best point as an Exact one."""
        if self._best[0] is None or self._best[1] is None:
            self.bounds()
        (w, _), a = self._best
        weights, dual = np.zeros(self._rows.X.n_columns), np.zeros(self._rows.X.n_rows)
        weights[self._columns] = w
        np.add.at(dual, self._terms.row, a)
        if not self._has_intercept:
            return Exact(weights, 0.0, dual)
        _make_balanced(dual, self._rows)
        return Exact(weights, best_intercept(self._rows, self._rows.X.scores(weights)), dual)


class _LargePoint(_Point):
    """A point whose linear systems are large enough for LAPACK; see `active_set_steps` for what they are."""

    def _minimise(self, most):
        everything = self._values, self._terms, self._state, self._has_intercept
        for n_steps in range(1, most + 1):
            self._state.t[:] = 0.0
            if not (self._find_step(0.0) and take_step(*everything)):
                return n_steps, True
        return most, False

    def _correct(self):
        imbalance = find_slack(self._terms, self._state)
        if self._find_step(imbalance):
            take_correction(self._values, self._terms, self._state)

    def _find_step(self, imbalance):
        state, terms = self._state, self._terms
        free = np.flatnonzero(state.is_free)
        state.g[:] = state.w - np.bincount(terms.row, state.a, len(self._values)) @ self._values
        state.d[:], state.number[SHIFT] = -state.g, 0.0
        if not len(free):
            return True
        solve = _by_columns if len(free) > len(state.g) else _by_rows
        everything = self._values[terms.row[free]], state.stiffness[free], state.g, state.t[free]
        state.d[:], state.number[SHIFT], state.t[free] = solve(*everything, imbalance if self._has_intercept else None)
        return bool(np.isfinite(state.d).all())


def _by_columns(R, stiffness, g, residual, imbalance):
    """Solve for d first: (I + R'D R) d = R'D (residual − e) − g with D = 1/stiffness; return d, e and y."""
    weight = 1.0 / stiffness
    e, pull, level = 0.0, 0.0, 0.0
    if imbalance is not None:
        pull = weight @ R / weight.sum()  # e = level − <pull, d>
        R = R - pull
        level = (float(weight @ residual) + imbalance) / weight.sum()
    root = np.sqrt(weight)[:, np.newaxis] * R
    H = root.T @ root
    H.flat[:: len(H) + 1] += 1.0
    d = _solve(H, (weight * (residual - level)) @ R - g - (imbalance or 0.0) * pull)
    if imbalance is not None:
        e = level - float(pull @ d)
    return d, e, weight * (residual - level - R @ d)


def _by_rows(R, stiffness, g, residual, imbalance):
    """Solve for y first: (diag(stiffness) + R R') y = residual + R g − e; return d, e and y."""
    A = R @ R.T
    A.flat[:: len(A) + 1] += stiffness
    right = residual + R @ g
    if imbalance is None:
        y, e = _solve(A, right), 0.0
    else:
        y, ones = _solve(A, np.column_stack([right, np.ones(len(right))])).T
        e = (float(y.sum()) + imbalance) / float(ones.sum())
        y = y - e * ones
    return y @ R - g, e, y


def _solve(A, right):
    """Solve A x = right for a positive definite A; NaN where numbers are not finite."""
    scale = 1.0 / np.sqrt(A.diagonal())
    A, right = A * scale[:, np.newaxis] * scale, (scale * right.T).T
    if not (np.isfinite(A).all() and np.isfinite(right).all()):
        return np.full_like(right, np.nan)
    ridge = 0.0
    while True:
        _, x, failed = dposv(A + ridge * np.eye(len(A)), right)
        if not failed:
            return (scale * x.T).T
        ridge = max(_MORE_RIDGE * ridge, _RIDGE)


def _needs_lapack(problem):
    """Return whether the linear systems of a DualQP are too large for compiled loops."""
    X = problem.X
    return min(X.n_rows, X.n_columns) >= _BLAS_FROM


def _new_point(problem, w, beta=None):
    return (_LargePoint if _needs_lapack(problem) else _Point)(problem, w, beta)


def _dense(X):
    """Return X as a float64 array with the constant column last, and the columns that it has: those that occur."""
    if issparse(X.values):
        columns = np.unique(X.values.indices)
        values = X.values[:, columns].toarray().astype(np.float64)
    else:
        columns, values = np.arange(X.n_features), X.values.astype(np.float64)
    if X.constant:
        columns = np.append(columns, X.n_features)
        values = np.hstack([values, np.full((X.n_rows, 1), X.constant)])
    return values, columns


def _terms_of(rows, values):
    """Return the Terms of a DualQP: none for a row without cost, two for one with a tube."""
    costly = (rows.lower < 0.0) | (rows.upper > 0.0)
    whole = np.flatnonzero(costly & (rows.epsilon == 0.0))
    above = np.flatnonzero((rows.upper > 0.0) & (rows.epsilon > 0.0))
    below = np.flatnonzero((rows.lower < 0.0) & (rows.epsilon > 0.0))
    row = np.concatenate([whole, above, below])
    tube = np.concatenate([np.zeros(len(whole)), rows.epsilon[above], -rows.epsilon[below]])
    squares = np.einsum("ij,ij->i", values, values)
    squares = np.where(squares > 0.0, squares, max(squares.max(initial=0.0), 1.0))
    return Terms(
        row=row,
        low=np.concatenate([rows.lower[whole], np.zeros(len(above)), rows.lower[below]]),
        high=np.concatenate([rows.upper[whole], rows.upper[above], np.zeros(len(below))]),
        curvature=rows.curvature[row],
        target=rows.target[row] - tube,
        square=squares[row],
    )


def _make_balanced(beta, rows):
    """Let dual variables take up what is left of Σ beta = 0: the one farthest from its bounds if it can, or several."""
    below, above = beta - rows.lower, rows.upper - beta
    rest = float(beta.sum())
    i = int(np.argmax(np.minimum(below, above)))
    if min(below[i], above[i]) >= abs(rest):
        beta[i] -= rest
        return
    for i in np.argsort(above if rest < 0.0 else below)[::-1]:
        beta[i] = min(max(beta[i] - rest, rows.lower[i]), rows.upper[i])
        rest = float(beta.sum())
