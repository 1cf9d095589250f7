"""Full precision for small problems, by the active-set Newton method of `proximal_newton`.

A solver that stops at a relative gap of 1e-4 returns weights that are right to about two digits, and which digits
follow depends on its path: on the order of rows, on the seed, on the BLAS kernel. Where a problem is small enough that
this takes about a millisecond, every solver's solution is therefore carried on to the exact one (`exact`), and
`newton` solves it so from the beginning (`small_newton`).
"""

import math
from typing import NamedTuple

import numpy as np
from scipy.sparse import issparse

from widemargin.problems.forms import FreeIntercept
from widemargin.problems.intercept import best_intercept
from widemargin.solvers.contract import Solution, Status, Watch
from widemargin.solvers.proximal_newton import (
    B,
    Terms,
    find_residuals,
    is_optimal,
    measure,
    minimise,
    new_state,
    refine,
    set_delta,
)  # fmt: skip

_MOST_STORED = 1 << 15  # stored values and rows of a small problem
_MOST_ENTRIES = 1 << 18  # entries of its rows as a dense array, columns that do not occur left out
_MOST_PRODUCTS = 1 << 21  # products for a matrix of columns x columns, or rows x rows: about a millisecond
_OUTER_ITERATIONS, _STEPS_EACH, _REFINEMENTS = 40, 60, 2
_SLOW = 0.1  # of the last violation: an outer iteration that leaves more asks for a smaller delta
_SMALLER, _LEAST_DELTA = 1e-2, 1e-16  # factor of delta; its least value against the mean of |x_i|²
_FIRST_SHIFT = 0.01  # by which the first delta may move a residual, against the largest target


class Exact(NamedTuple):
    """An exact solution: weights, intercept (0 unless it is free) and the dual variables of the rows."""

    w: np.ndarray
    intercept: float
    beta: np.ndarray


def is_small(X):
    """Return whether problems with this Matrix are carried on to full precision."""
    if X.n_stored + X.n_rows > _MOST_STORED:
        return False
    n_columns = min(X.n_columns, X.n_stored + 1)
    entries = X.n_rows * n_columns
    return entries <= _MOST_ENTRIES and entries * min(X.n_rows, n_columns) <= _MOST_PRODUCTS


def exact(problem, w, beta=None):
    """Return the Exact solution of a small DualQP or FreeIntercept.

    `w` and `beta` are weights and dual variables to start from; without `beta` the start is zero.
    """
    point = _Point(problem, w, beta)
    for _ in range(_OUTER_ITERATIONS):
        if point.is_optimal:
            break
        point.improve(_STEPS_EACH)
    return point.solution()


def small_newton(problem, settings, start=None):
    """Minimise a small DualQP or FreeIntercept to full precision; `start` are weights. Return a Solution."""
    watch = Watch(settings)
    with watch:
        point = _Point(problem, start)
        for _ in range(_OUTER_ITERATIONS + 1):
            watch.measured(point.n_steps, 2.0 * point.n_steps, *point.bounds())
            left = _STEPS_EACH if settings.max_iter is None else settings.max_iter - point.n_steps
            if point.is_optimal or watch.turn("newton", point.n_steps, 2.0 * point.n_steps):
                break
            point.improve(min(left, _STEPS_EACH))
    status = watch.status
    if status in (None, Status.MAX_ITER):
        short = status or Status.STALLED
        status = Status.CONVERGED if watch.gap <= settings.tol else short
    w, intercept, beta = point.solution()
    primal, dual = point.best_bounds
    return Solution(
        w, beta, primal, dual, point.n_steps, status, "newton", watch.history(),
        intercept=intercept, is_exact=point.is_optimal,
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
        self._has_intercept = isinstance(problem, FreeIntercept)
        self._rows = problem.rows if self._has_intercept else problem
        self._values, self._columns = _dense(self._rows.X)
        self._middle = np.zeros(self._values.shape[1])
        if self._has_intercept:  # a shift of the columns is taken up by the intercept, and saves digits
            self._middle = self._values.mean(axis=0)
            self._values = self._values - self._middle
        self._terms = _terms_of(self._rows, self._values)
        self._state = new_state(self._values, self._terms)
        self._square = float(self._terms.square.mean()) if len(self._terms.row) else 1.0
        self._size = float(np.abs(self._terms.target).max(initial=0.0))
        self._relative, self._last, self.n_steps, self.is_optimal = 1.0, 0.0, 0, False
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
        size = float(np.abs(self._state.a).mean()) * self._square if len(self._state.a) else 0.0
        return min(1.0, _FIRST_SHIFT * self._size / size) if size > 0.0 else 1.0

    def _set_delta(self):
        set_delta(self._terms, self._state, self._relative * self._square)

    def _refine(self):
        refine(self._values, self._terms, self._state, self._has_intercept)
        self.is_optimal = is_optimal(self._terms, self._state, self._size)

    def improve(self, most):
        """Make an outer iteration of at most so many Newton steps."""
        everything = self._values, self._terms, self._state, self._has_intercept
        steps, violation = minimise(*everything, most)
        self.n_steps += steps
        if violation > _SLOW * self._last:
            self._relative = max(_SMALLER * self._relative, _LEAST_DELTA)
            self._set_delta()
        self._last = violation
        self._refine()
        if self.is_optimal:
            for _ in range(_REFINEMENTS):
                refine(*everything)

    def bounds(self):
        """Return the primal and the dual value here; remember the point if it is the best so far."""
        state, terms = self._state, self._terms
        a = np.clip(state.a, terms.low, terms.high)
        loss, value = measure(terms, state)
        v = np.bincount(terms.row, a, len(self._values)) @ self._values
        size = float(state.w @ state.w)
        primal, dual = loss + 0.5 * size, value - 0.5 * float(v @ v)
        if self._has_intercept:  # what is missing of Σ a = 0 counts against the proof, see `finishing`
            dual -= abs(float(a.sum())) * (self._size + math.sqrt(size * float(self._terms.square.max(initial=0.0))))
        if primal <= self.best_bounds[0]:
            self.best_bounds[0], self._best[0] = primal, (state.w.copy(), state.number[B])
        if dual >= self.best_bounds[1]:
            self.best_bounds[1], self._best[1] = dual, a
        return self.best_bounds

    def solution(self):
        """Return the best point as an Exact one."""
        self.bounds()
        (w, _), a = self._best
        weights, dual = np.zeros(self._rows.X.n_columns), np.zeros(self._rows.X.n_rows)
        weights[self._columns] = w
        np.add.at(dual, self._terms.row, a)
        if not self._has_intercept:
            return Exact(weights, 0.0, dual)
        _make_balanced(dual, self._rows)
        return Exact(weights, best_intercept(self._rows, self._rows.X.scores(weights)), dual)


def _dense(X):
    """Return X as a float64 array with the constant column last, and the columns that it has: those that occur."""
    if issparse(X.values):
        columns = np.unique(X.values.indices)
        values = X.values[:, columns].toarray().astype(np.float64)
    else:
        columns, values = np.arange(X.n_features), X.values.astype(np.float64)
    if X.constant:
        columns = np.append(columns, X.n_features)
        values = np.column_stack([values, np.full(X.n_rows, X.constant)])
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
        curvature=rows.shift[row],
        target=rows.target[row] - tube,
        square=squares[row],
    )


def _make_balanced(beta, rows):
    """Let the dual variable that is farthest from its bounds take up what rounding has left of Σ beta = 0."""
    i = int(np.argmax(np.minimum(beta - rows.lower, rows.upper - beta)))
    beta[i] = min(max(beta[i] - beta.sum(), rows.lower[i]), rows.upper[i])
