"""Decision values of a small machine without each of its support vectors, in one compiled call.

The formulas are those of `models.kernel.out_of_sample`. With some dozens of support vectors, the calls of NumPy and
LAPACK that compute them for many would take most of the time, and there is a machine for each pair of classes.
"""

from typing import NamedTuple

import numpy as np

from widemargin._runtime.compile import SUMS, compiled
from widemargin.problems.row_risk import dot

_RIDGE_FACTOR = 100.0  # if the kernel matrix is not positive definite


class SmallMachine(NamedTuple):
    """A machine by its rows: signs, costs, coefficients, K(x, x), the positions of support vectors, and the intercept.

    `values` are kernel values of the support vectors with all rows; `support` is uint64.
    """

    sign: np.ndarray
    cost: np.ndarray
    coef: np.ndarray
    diagonal: np.ndarray
    support: np.ndarray
    values: np.ndarray
    intercept: float


def memory_for(n_support):
    """Return the workspace of `leave_each_out`: positions among the support vectors, and numbers."""
    return np.empty(n_support, np.uint64), np.empty((2 * n_support + 4, n_support))


@compiled
def leave_each_out(machine, at_bound, ridge, memory, out):
    """Set out to the decision values of all rows, those of support vectors without them, within the range of all.

    A dual variable is free below `at_bound` times its cost. `ridge` is relative to the largest K(x, x).
    """
    order, numbers = memory
    n_support = machine.support.size
    factor, inverse = numbers[:n_support], numbers[n_support : 2 * n_support]
    a, b, squares, t = numbers[2 * n_support], numbers[2 * n_support + 1], numbers[2 * n_support + 2], numbers[-1]
    _set_decisions(machine.values, machine.coef, machine.support, machine.intercept, out)
    lowest = highest = out[0]
    for j in range(out.size):
        lowest, highest = min(lowest, out[j]), max(highest, out[j])
    n_free = _put_free_first(machine, at_bound, out, order)
    _factorise(machine, order[:n_free], ridge, factor)
    square = _invert(factor, n_free, inverse, a, b, squares)
    for k in range(n_support):
        i = machine.support[order[k]]
        if k < n_free:
            span = 1.0 / max(squares[k] - b[k] * b[k] / square, np.finfo(np.float64).tiny)
        else:
            span = max(machine.diagonal[i] - _projection(machine, order[k], order[:n_free], inverse, a, square, t), 0.0)
        out[i] = min(max(out[i] - machine.coef[i] * span, lowest), highest)


@compiled(fastmath=SUMS)
def _set_decisions(values, coef, support, intercept, out):
    """Set out = Σ_s coef_s values_s + intercept."""
    for j in range(out.size):
        out[j] = intercept
    for s in range(support.size):
        weight, row = coef[support[s]], values[s]
        for j in range(out.size):
            out[j] += weight * row[j]


@compiled
def _put_free_first(machine, at_bound, f, order):
    """Set `order` to the places of the free support vectors, followed by the others; return how many are free.

    If fewer than two are, the two with margins closest to 1 are taken.
    """
    n_support, n_free = order.size, 0
    n_others = 0
    for s in range(n_support):
        i = machine.support[s]
        if abs(machine.coef[i]) < at_bound * machine.cost[i]:
            order[n_free] = s
            n_free += 1
        else:
            n_others += 1
            order[n_support - n_others] = s
    while n_free < min(2, n_support):
        nearest, least = n_free, np.inf
        for k in range(n_free, n_support):
            i = machine.support[order[k]]
            distance = abs(1.0 - machine.sign[i] * f[i])
            if distance < least:
                nearest, least = k, distance
        order[n_free], order[nearest] = order[nearest], order[n_free]
        n_free += 1
    return n_free


@compiled
def _factorise(machine, free, ridge, factor):
    """Set the lower triangle of `factor` to the Cholesky factor of the kernel matrix of the free support vectors.

    A multiple of the identity is added, which grows until the matrix is positive definite.
    """
    largest = np.finfo(np.float64).tiny
    for k in range(free.size):
        largest = max(largest, machine.values[free[k], machine.support[free[k]]])
    added, is_factor = ridge * largest, False
    while not is_factor:
        for i in range(free.size):
            for k in range(i + 1):
                factor[i, k] = machine.values[free[i], machine.support[free[k]]]
            factor[i, i] += added
        is_factor = _has_factor(factor, free.size)
        added *= _RIDGE_FACTOR


@compiled
def _has_factor(K, n):
    """Replace the lower triangle of K by its Cholesky factor; return False if K is not positive definite."""
    for i in range(n):
        for k in range(i):
            K[i, k] = (K[i, k] - dot(K[i, :k], K[k, :k])) / K[k, k]
        pivot = K[i, i] - dot(K[i, :i], K[i, :i])
        if not pivot > 0.0:
            return False
        K[i, i] = np.sqrt(pivot)
    return True


@compiled
def _invert(factor, n, inverse, a, b, squares):
    """Set `inverse` = L⁻¹, a = L⁻¹ 1, b = L⁻ᵀ a, and `squares` to the sums of squares of the columns; return a'a."""
    square = 0.0
    b[:n], squares[:n] = 0.0, 0.0
    for i in range(n):
        row = inverse[i, : i + 1]
        row[:] = 0.0
        for k in range(i):
            _add_multiple(-factor[i, k], inverse[k, : k + 1], row)
        row[i] = 1.0
        a[i] = _scale_and_sum(1.0 / factor[i, i], row)
        square += a[i] * a[i]
        for k in range(i + 1):
            b[k] += a[i] * row[k]
            squares[k] += row[k] * row[k]
    return square


@compiled(fastmath=SUMS)
def _add_multiple(factor, x, y):
    """Add factor x to the first numbers of y."""
    for k in range(x.size):
        y[k] += factor * x[k]


@compiled(fastmath=SUMS)
def _scale_and_sum(factor, x):
    """Multiply x by a factor; return its sum."""
    total = 0.0
    for k in range(x.size):
        x[k] *= factor
        total += x[k]
    return total


@compiled
def _projection(machine, place, free, inverse, a, square, t):
    """Return t't − u² / a'a of a support vector at bound, with t = L⁻¹ k and u = 1 − a't."""
    row, v = machine.values[place], t[: free.size]
    for k in range(free.size):
        v[k] = row[machine.support[free[k]]]
    total, u = 0.0, 1.0
    for i in range(free.size):
        projected = dot(inverse[i, : i + 1], v[: i + 1])
        total += projected * projected
        u -= a[i] * projected
    return total - u * u / square
