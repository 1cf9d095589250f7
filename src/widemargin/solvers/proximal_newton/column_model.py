"""The quadratic model of a Newton step by columns, for many columns: minimise over the weights θ of a working set

    gradient'(θ − θ₀) + ½ |Y(θ − θ₀)|² + Σ_j (l1_j |θ_j| + ½ l2_j θ_j²),      Y = diag(√curvature) X

Y has the columns of the working set and the rows with a curvature only. Coordinate descent keeps t = Y(θ − θ₀), so that
a step of a coordinate takes two passes over its column. A sweep over all columns is followed by sweeps over those whose
weights are not zero. Then the last sweeps are extrapolated (Anderson acceleration), as proposed for coordinate descent
by Bertrand and Massias, "Anderson acceleration of coordinate descent", AISTATS 2021; the result is taken if its value
is smaller.
"""

import numpy as np

from widemargin._runtime.compile import SUMS, compiled
from widemargin.data.by_columns import Columns, copy_chosen, count_chosen
from widemargin.solvers.proximal_newton.shrinkage import best_weight

_SWEEPS_PER_ROUND = 6  # the first over all columns; the others are extrapolated
_MAX_ROUNDS = 20
MODEL_TOL = 0.05  # relative to the largest violation at the beginning
_SUFFICIENT_CHANGE = 0.3  # relative to that tolerance, at which sweeps over the weights that are not zero end
_RIDGE = 1e-12  # relative to the trace of the system of the extrapolation


class ColumnModel:
    """The model of a working set; see the formulas of this module."""

    def __init__(self, columns, which):
        self._columns, self._which = columns, which

    def _set_rows(self, curvature):
        """Set Y for the rows with a curvature, and t = 0."""
        columns, which, rows = self._columns, self._which, np.flatnonzero(curvature)
        place = np.full(len(curvature), -1, np.int64)
        place[rows] = np.arange(len(rows))
        n_values = count_chosen(columns, which, place)
        self.Y = Columns(np.empty(n_values), np.empty(n_values, np.uint32), np.empty(len(which) + 1, np.int64))
        copy_chosen(columns, which, place, np.sqrt(curvature), self.Y)
        self.t = np.zeros(len(rows))
        self._squares = np.empty(len(which))
        _set_squares(self.Y, self._squares)

    def minimise(self, theta, gradient, curvature, penalties):
        """Return the θ that minimises the model at theta, about."""
        self._set_rows(curvature)
        l1, l2 = penalties
        start, theta, t = theta, theta.copy(), self.t
        model = self.Y, self._squares, l1, l2, gradient, theta, t
        points, images = np.empty((_SWEEPS_PER_ROUND, len(theta))), np.empty((_SWEEPS_PER_ROUND, len(t)))
        system = np.empty((_SWEEPS_PER_ROUND - 1, _SWEEPS_PER_ROUND))
        every, target = np.arange(len(theta)), None
        for _ in range(_MAX_ROUNDS):
            largest = _sweep(*model, every)
            target = MODEL_TOL * largest if target is None else target
            if largest <= target:
                break
            support = np.flatnonzero((theta != 0.0) | (l1 == 0.0))
            if not _sweeps(*model, support, _SUFFICIENT_CHANGE * target, points, images):
                _extrapolate(points, images, system, support, l1, l2, gradient, start, theta, t)
        return theta


@compiled
def _set_squares(Y, out):
    """Set out[k] to the squared norm of column k."""
    for k in range(out.size):
        total = 0.0
        for m in range(Y.indptr[k], Y.indptr[k + 1]):
            total += Y.data[np.uint64(m)] ** 2
        out[k] = total


@compiled(fastmath=SUMS)
def _dot(Y, begin, end, t):
    """Return the inner product of the stored values from begin to end with t."""
    total = 0.0
    for m in range(begin, end):
        total += Y.data[np.uint64(m)] * t[Y.rows[np.uint64(m)]]
    return total


@compiled
def _sweep(Y, squares, l1, l2, gradient, theta, t, order):
    """Minimise the model by each coordinate of `order` in turn. Kept true: t = Y(θ − θ₀).

    Return the largest change of a coordinate, in units of the gradient.
    """
    largest = 0.0
    for n in range(order.size):
        k = order[n]
        begin, end, h = Y.indptr[k], Y.indptr[k + 1], squares[k] + l2[k]
        slope = gradient[k] + _dot(Y, begin, end, t)
        best = best_weight(theta[k], slope, h, l1[k], l2[k])
        step = best - theta[k]
        if step != 0.0:
            theta[k] = best
            largest = max(largest, h * abs(step))
            for m in range(begin, end):
                t[Y.rows[np.uint64(m)]] += step * Y.data[np.uint64(m)]
    return largest


@compiled
def _sweeps(Y, squares, l1, l2, gradient, theta, t, support, limit, points, images):
    """Sweep over the columns `support`; keep the weights and t before the first sweep and after each one.

    Return whether the changes of a sweep are within the limit; then the sweeps end.
    """
    for n in range(points.shape[0]):
        largest = np.inf
        if n > 0:
            largest = _sweep(Y, squares, l1, l2, gradient, theta, t, support)
        for k in range(support.size):
            points[n, k] = theta[support[k]]
        for i in range(t.size):
            images[n, i] = t[i]
        if largest <= limit:
            return True
    return False


@compiled
def _extrapolate(points, images, system, support, l1, l2, gradient, start, theta, t):
    """Replace the weights of `support` and t by a combination of the last points if its value is smaller.

    With the differences u_k of successive points, the factors c of the combination minimise |Σ c_k u_k|, Σ c_k = 1. The
    first point and image are overwritten by the combination, and `system` by the equations for c.
    """
    last = points.shape[0] - 1
    if not _set_factors(points, support.size, system):
        return
    for row, size in ((points, support.size), (images, t.size)):
        for i in range(size):
            total = 0.0
            for k in range(last):
                total += system[k, last] * row[k + 1, i]
            row[0, i] = total
    own = support, l1, l2, gradient, start
    if _value(points[0], images[0], *own) < _value(points[last], images[last], *own):  # not if one is not a number
        for k in range(support.size):
            theta[support[k]] = points[0, k]
        for i in range(t.size):
            t[i] = images[0, i]


@compiled
def _set_factors(points, size, system):
    """Set the last column of `system` to the factors c; return whether its matrix is positive definite."""
    n, trace = system.shape[0], 0.0
    for a in range(n):
        for b in range(a + 1):
            total = 0.0
            for k in range(size):
                total += (points[a + 1, k] - points[a, k]) * (points[b + 1, k] - points[b, k])
            system[a, b] = system[b, a] = total
        system[a, n] = 1.0
        trace += system[a, a]
    for a in range(n):
        system[a, a] += _RIDGE * trace
    for a in range(n):
        if not system[a, a] > 0.0:
            return False
        for b in range(n):
            if b != a:
                factor = system[b, a] / system[a, a]
                for k in range(a, n + 1):
                    system[b, k] -= factor * system[a, k]
    total = 0.0
    for a in range(n):
        system[a, n] /= system[a, a]
        total += system[a, n]
    for a in range(n):
        system[a, n] /= total
    return total > 0.0


@compiled
def _value(theta, t, support, l1, l2, gradient, start):
    """Return the value of the model at the weights of `support` and their t."""
    total = 0.0
    for i in range(t.size):
        total += 0.5 * t[i] * t[i]
    for k in range(support.size):
        j, weight = support[k], theta[k]
        total += gradient[j] * (weight - start[j]) + l1[j] * abs(weight) + 0.5 * l2[j] * weight * weight
    return total
