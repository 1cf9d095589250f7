"""Full precision for small problems: an active-set Newton method with proximal terms.

A solver that stops at a relative gap of 1e-4 returns weights that are right to about two digits, and which digits
follow depends on its path: on the order of rows, on the seed, on the BLAS kernel. Where a problem is small enough that
this takes milliseconds, every solver's solution is therefore carried on to the exact one.

Each row i has one dual variable a_l in [low_l, high_l], or two if it has a tube (epsilon > 0), and the residuals
z_l = target_i ∓ epsilon_i − (<w, x_i> + b):

    outer iteration   minimise over w and b   ½|w|² + Σ_l max over low_l <= a <= high_l of
                                                  a z_l − ½ curvature_l a² − ½ delta_l (a − centre_l)²,
                      then centre_l = a_l     (the proximal method of multipliers; Rockafellar, 1976)
    Newton step       a_l = (z_l + delta_l centre_l) / (curvature_l + delta_l), cut to its bounds; what is not cut is
                      free. The function is piecewise quadratic: once the right ones are free, a step is exact
    linear system     over the columns, or over the free dual variables, whichever are fewer; its diagonal scaled to 1
    refinement        w, b and the free a_l are corrected by the residuals of their optimality conditions

delta is small against |x_i|², so that few outer iterations suffice, and makes the system regular where rows on the
margin are dependent. Squared losses have a curvature and need no delta. A free intercept b is set to where Σ a = 0.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.linalg.lapack import dposv
from scipy.sparse import issparse

from widemargin.problems.forms import FreeIntercept
from widemargin.problems.intercept import best_intercept

_MOST_STORED = 1 << 15  # stored values and rows of a small problem
_MOST_ENTRIES = 1 << 22  # entries of its rows as a dense array, columns that do not occur left out
_OUTER_ITERATIONS, _NEWTON_STEPS, _REFINEMENTS = 40, 60, 2
_SLOW = 0.1  # of the last violation: an outer iteration that leaves more asks for a smaller delta
_SMALLER, _LEAST_DELTA = 1e-2, 1e-16  # factor of delta; its least value against |x_i|²
_FIRST_SHIFT = 0.01  # by which the first delta may move a residual, against the largest target
_OPTIMAL = 1e-12  # violation of an optimality condition, against the sizes of targets and scores, that is none
_RIDGE = 1e-15  # added to a unit diagonal where a factorisation fails, and 100 times as much each time


class Exact(NamedTuple):
    """An exact solution: weights, intercept (0 unless it is free) and the dual variables of the rows."""

    w: np.ndarray
    intercept: float
    beta: np.ndarray


def is_small(X):
    """Return whether problems with this Matrix are carried on to full precision."""
    if X.n_stored + X.n_rows > _MOST_STORED:
        return False
    return X.n_rows * min(X.n_columns, X.n_stored + 1) <= _MOST_ENTRIES


def exact(problem, w, beta=None):
    """Return the Exact solution of a small DualQP or FreeIntercept.

    `w` and `beta` are weights and dual variables to start from; without `beta` the start is zero.
    """
    free = isinstance(problem, FreeIntercept)
    rows = problem.rows if free else problem
    values, columns = _dense(rows.X)
    terms = _terms_of(rows, values)
    point = _Point(terms, w[columns], free)
    point.solve(None if beta is None else np.clip(beta[terms.row], terms.low, terms.high))
    weights, dual = np.zeros(rows.X.n_columns), np.zeros(rows.X.n_rows)
    weights[columns] = point.w
    np.add.at(dual, terms.row, point.a)
    if not free:
        return Exact(weights, 0.0, dual)
    _make_balanced(dual, rows)
    return Exact(weights, best_intercept(rows, rows.X.scores(weights)), dual)


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


@dataclass(frozen=True)
class _Terms:
    """The terms of the losses: row number, bounds, curvature, target less the tube, and the values of the row."""

    row: np.ndarray
    low: np.ndarray
    high: np.ndarray
    curvature: np.ndarray
    target: np.ndarray
    values: np.ndarray


def _terms_of(rows, values):
    """Return the _Terms of a DualQP: none for a row without cost, two for one with a tube."""
    costly = (rows.lower < 0.0) | (rows.upper > 0.0)
    whole = np.flatnonzero(costly & (rows.epsilon == 0.0))
    above = np.flatnonzero((rows.upper > 0.0) & (rows.epsilon > 0.0))
    below = np.flatnonzero((rows.lower < 0.0) & (rows.epsilon > 0.0))
    row = np.concatenate([whole, above, below])
    tube = np.concatenate([np.zeros(len(whole)), rows.epsilon[above], -rows.epsilon[below]])
    return _Terms(
        row=row,
        low=np.concatenate([rows.lower[whole], np.zeros(len(above)), rows.lower[below]]),
        high=np.concatenate([rows.upper[whole], rows.upper[above], np.zeros(len(below))]),
        curvature=rows.shift[row],
        target=rows.target[row] - tube,
        values=values[row],
    )


def _make_balanced(beta, rows):
    """Let the dual variable that is farthest from its bounds take up what rounding has left of Σ beta = 0."""
    i = int(np.argmax(np.minimum(beta - rows.lower, rows.upper - beta)))
    beta[i] = min(max(beta[i] - beta.sum(), rows.lower[i]), rows.upper[i])


class _Point:
    """Weights w, intercept b and dual variables a; z are the residuals at (w, b)."""

    def __init__(self, terms, w, has_intercept):
        self._terms, self._has_intercept = terms, has_intercept
        self.w, self._b = w.astype(np.float64), 0.0
        squares = np.einsum("ij,ij->i", terms.values, terms.values)
        self._squares = np.where(squares > 0.0, squares, max(squares.max(initial=0.0), 1.0))
        self._size = np.abs(terms.target).max(initial=0.0)
        self._find_residuals()

    def solve(self, a=None):
        """Find the exact point, from dual variables `a` or from zero."""
        self.a = np.zeros(len(self._terms.row)) if a is None else a
        self._is_free = (self.a > self._terms.low) & (self.a < self._terms.high)
        self._set_delta(1.0 if a is None else self._first_delta())
        last = 0.0
        for iteration in range(_OUTER_ITERATIONS):
            if iteration or a is not None:
                self._refine()
                if self._is_optimal():
                    break
            centre = np.clip(self.a, self._terms.low, self._terms.high)
            self._minimise(centre)
            violation = np.abs(self._delta * (self.a - centre)).max(initial=0.0)
            if violation > _SLOW * last:
                self._set_delta(max(_SMALLER * self._relative, _LEAST_DELTA))
            last = violation
        for _ in range(_REFINEMENTS):
            self._refine()
        self.a = np.clip(self.a, self._terms.low, self._terms.high)

    def _first_delta(self):
        size = float((np.abs(self.a) * self._squares).mean()) if len(self.a) else 0.0
        return min(1.0, _FIRST_SHIFT * self._size / size) if size > 0.0 else 1.0

    def _set_delta(self, relative):
        self._relative = relative
        self._delta = np.where(self._terms.curvature > 0.0, 0.0, relative * self._squares)
        self._stiffness = self._terms.curvature + self._delta

    def _find_residuals(self):
        self._z = self._terms.target - self._terms.values @ self.w - self._b

    def _refine(self):
        """Correct w, b and the free dual variables by the residuals of their optimality conditions."""
        terms, free = self._terms, np.flatnonzero(self._is_free)
        residual = self._z[free] - terms.curvature[free] * self.a[free]
        d, e, change = self._step(residual, free, float(self.a.sum()))
        self.w, self._b = self.w + d, self._b + e
        self.a = self.a.copy()
        self.a[free] += change
        self._find_residuals()

    def _is_optimal(self):
        """Return whether dual variables are within their bounds, and residuals on the right side of their corners."""
        terms = self._terms
        small = _OPTIMAL * (self._size + np.sqrt(self._squares * (self.w @ self.w)))
        slack = self._z - terms.curvature * self.a
        may_rise, may_fall = self.a < terms.high, self.a > terms.low
        holds = (terms.low <= self.a) & (self.a <= terms.high)
        holds &= np.where(may_rise, slack <= small, True) & np.where(may_fall, slack >= -small, True)
        return bool(holds.all())

    def _minimise(self, centre):
        """Take Newton steps, each to the lowest point of its line, until the free variables stay the same."""
        terms = self._terms
        self._follow(centre)
        for _ in range(_NEWTON_STEPS):
            before, free = self._is_free, np.flatnonzero(self._is_free)
            d, e, _ = self._step(np.zeros(len(free)), free, 0.0)
            along = terms.values @ d + e
            k = _crossing(self._u, -along / self._stiffness, -along, terms, float(self.w @ d), float(d @ d))
            if not 0.0 < k < np.inf:
                return
            self.w, self._b = self.w + k * d, self._b + k * e
            self._find_residuals()
            self._follow(centre)
            if abs(k - 1.0) < 1e-3 and np.array_equal(before, self._is_free):
                return

    def _follow(self, centre):
        """Let b, the dual variables and what is free follow from the residuals."""
        terms = self._terms
        u = (self._z + self._delta * centre) / self._stiffness
        if self._has_intercept:
            shift = _crossing(u, -1.0 / self._stiffness, -np.ones(len(u)), terms, 0.0, 0.0)
            if np.isfinite(shift):
                self._b += shift
                self._z = self._z - shift
                u = u - shift / self._stiffness
        self.a = np.minimum(np.maximum(u, terms.low), terms.high)
        self._u, self._is_free = u, (u > terms.low) & (u < terms.high)

    def _step(self, residual, free, imbalance):
        """Return d, e, y with   d = R'y − g,   R d + e + stiffness y = residual,   Σ y = −imbalance.

        R are the rows of the free variables, g = w − Σ a x; without an intercept e = 0 and Σ y is what it is.
        """
        g = self.w - self.a @ self._terms.values
        if not len(free):
            return -g, 0.0, np.zeros(0)
        solve = _by_columns if len(free) > len(g) else _by_rows
        return solve(
            self._terms.values[free], self._stiffness[free], g, residual, imbalance if self._has_intercept else None
        )


def _by_columns(R, stiffness, g, residual, imbalance):
    """Solve for d first: (I + R'D R) d = R'D (residual − e) − g with D = 1/stiffness."""
    weight = 1.0 / stiffness
    e, pull = 0.0, 0.0
    if imbalance is not None:
        pull = weight @ R / weight.sum()  # e = level − <pull, d>
        R = R - pull
        level = (float(weight @ residual) + imbalance) / weight.sum()
        residual = residual - level
    H = (weight[:, np.newaxis] * R).T @ R
    H.flat[:: len(H) + 1] += 1.0
    right = (weight * residual) @ R - g
    if imbalance is not None:
        right = right - imbalance * pull
    d = _solve(H, right[:, np.newaxis])[:, 0]
    if imbalance is not None:
        e = level - float(pull @ d)
    return d, e, weight * (residual - R @ d)


def _by_rows(R, stiffness, g, residual, imbalance):
    """Solve for y first: (diag(stiffness) + R R') y = residual + R g − e."""
    A = R @ R.T
    A.flat[:: len(A) + 1] += stiffness
    right = residual + R @ g
    if imbalance is None:
        y, e = _solve(A, right[:, np.newaxis])[:, 0], 0.0
    else:
        y, ones = _solve(A, np.column_stack([right, np.ones(len(right))])).T
        e = (float(y.sum()) + imbalance) / float(ones.sum())
        y = y - e * ones
    return y @ R - g, e, y


def _solve(A, right):
    """Solve A x = right for a positive definite A; NaN where numbers are not finite."""
    scale = 1.0 / np.sqrt(A.diagonal())
    A, right = A * scale[:, np.newaxis] * scale, scale[:, np.newaxis] * right
    if not (np.isfinite(A).all() and np.isfinite(right).all()):
        return np.full_like(right, np.nan)
    ridge = 0.0
    while True:
        _, x, failed = dposv(A + ridge * np.eye(len(A)), right)
        if not failed:
            return scale[:, np.newaxis] * x
        ridge = max(100.0 * ridge, _RIDGE)


def _crossing(u, rate, factor, terms, constant, slope):
    """Return k where f(k) = constant + slope k + Σ factor clip(u + k rate, low, high) is zero.

    `factor` has the sign of `rate`, so that f never falls. Of several zeros one is returned; ±∞ if there is none.
    """
    f = constant + float(factor @ np.minimum(np.maximum(u, terms.low), terms.high))
    if not f < 0.0:
        return -_crossing(u, -rate, -factor, terms, -constant, slope) if f > 0.0 else 0.0
    bend = rate * factor
    moving = bend > 0.0
    u, rate, bend = u[moving], rate[moving], bend[moving]
    first, second = (terms.low[moving] - u) / rate, (terms.high[moving] - u) / rate
    enter, leave = np.minimum(first, second), np.maximum(first, second)
    coming, going = enter > 0.0, (leave > 0.0) & (leave < np.inf)
    places = np.concatenate([enter[coming], leave[going]])
    order = np.argsort(places, kind="stable")
    places, changes = places[order], np.concatenate([bend[coming], -bend[going]])[order]
    here = slope + float(bend[~coming & (leave > 0.0)].sum())
    slopes = np.maximum(here + np.cumsum(np.append(0.0, changes)), slope)
    values = f + np.cumsum(slopes[:-1] * np.diff(places, prepend=0.0))
    last = int(np.searchsorted(values, 0.0))  # the first place where f is not negative
    place, value = (0.0, f) if last == 0 else (places[last - 1], values[last - 1])
    if slopes[last] > 0.0:
        return float(place - value / slopes[last])
    return float(places[last]) if last < len(places) else np.inf
