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
        every, target = np.arange(len(theta)), None
        for _ in range(_MAX_ROUNDS):
            largest = _sweep(*model, every)
            target = MODEL_TOL * largest if target is None else target
            if largest <= target:
                break
            support = np.flatnonzero((theta != 0.0) | (l1 == 0.0))
            points, images = [theta[support]], [t.copy()]
            for _ in range(_SWEEPS_PER_ROUND - 1):
                largest = _sweep(*model, support)
                points.append(theta[support])
                images.append(t.copy())
                if largest <= 0.3 * target:
                    break
            else:
                own = [part[support] for part in (*penalties, gradient, start)]
                theta[support] = self._extrapolated(np.array(points), np.array(images), own)
        return theta

    def _extrapolated(self, P, T, own):
        """Return a combination of the last points P, with images T, that has a smaller value, or the last of them.

        `own` are penalties, gradient and start of the weights that move. Kept true: t is the image of what is returned.
        """
        U = np.diff(P, axis=0)
        S = U @ U.T
        S[np.diag_indices_from(S)] += _RIDGE * np.trace(S)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            c = _solved_or_nan(S)
            c = c / c.sum()
        point, image = c @ P[1:], c @ T[1:]
        if not _value(point, image, *own) < _value(P[-1], T[-1], *own):  # also if it is not a number
            return P[-1]
        self.t[:] = image
        return point


def _solved_or_nan(S):
    """Return the x with S x = 1, or numbers that are not numbers if S is singular."""
    try:
        return np.linalg.solve(S, np.ones(len(S)))
    except np.linalg.LinAlgError:
        return np.full(len(S), np.nan)


def _value(theta, t, l1, l2, gradient, start):
    """Return the value of the model at weights and their t."""
    penalty = float(l1 @ np.abs(theta)) + 0.5 * float(l2 @ (theta * theta))
    return float(gradient @ (theta - start)) + 0.5 * float(t @ t) + penalty


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
