"""The linear system of a step of the active-set Newton method.

A step changes the weights by d, the intercept by e and the free dual variables by y, where

    d = R'y − g,        R d + e + D y = r,        Σ y = −imbalance

R holds the rows of the free terms, g = w − Σ alpha_l x_l, D is the diagonal matrix of their total curvatures, r are
given residuals, and the imbalance is the sum of all dual variables. Without an intercept, e = 0 and the last equation
is dropped. Of two equivalent systems the smaller one is solved, by a Cholesky factorisation with its diagonal scaled
to 1:

    over the columns      (I + R'D⁻¹R) d = R'D⁻¹(r − e) − g
    over the free terms   (D + R R') y = r + R g − e

Both matrices are a diagonal plus U'U, where U is D^−½ R or R', so that the same loops serve both. With an intercept,
the rows of R are centred first in the system over the columns.

In small problems compiled loops are faster than calls of NumPy and LAPACK; for large ones both versions are here. If
rounding makes a matrix indefinite, a small multiple of the identity, a ridge, is added to it.
"""

import numpy as np
from scipy.linalg.lapack import dposv

from widemargin._runtime.compile import SUMS, compiled
from widemargin.solvers.newton.active_set_state import IMBALANCE, INTERCEPT_STEP, axpy, combine, dot

_FIRST_RIDGE, _RIDGE_FACTOR, _MAX_RIDGE = 1e-15, 100.0, 1e-3  # of a matrix with unit diagonal; factor to the next one

# --- Compiled ---------------------------------------------------------------------------------------------------------


@compiled
def find_step(rows, terms, state, has_intercept):
    """Set d, the step e of the intercept, and t = y for the free terms, which before the call hold r.

    Sets g, and lists the free terms. Returns whether the system can be solved in double precision.
    """
    n_free, n_columns = _list_free_terms(state.is_free, state.free), state.w.size
    state.scalars[INTERCEPT_STEP] = 0.0
    combine(rows.columns, terms.row, state.alpha, state.scores, state.d)
    for j in range(n_columns):
        state.d[j] -= state.w[j]
        state.g[j] = -state.d[j]
    if n_free == 0:
        return True
    is_over_columns = n_free > n_columns
    if is_over_columns:
        mean_residual = _state_over_columns(rows, terms, state, has_intercept, n_free)
    else:
        mean_residual = 0.0
        _state_over_terms(rows.values, terms, state, n_free)
    n, length = (n_columns, n_free) if is_over_columns else (n_free, n_columns)
    _set_inner_products(state.products, n, length, state.scale, state.matrix)
    if not _factorise(state.matrix, n, state.scale):
        return False
    _solve_factorised(state.matrix, n, state.scale, state.right_sides)
    if is_over_columns:
        for j in range(n_columns):
            state.d[j] = state.right_sides[0, j]
        state.scalars[INTERCEPT_STEP] = mean_residual - dot(state.mean_row, state.d)
        _set_dual_steps(state.products, state.free[:n_free], state.slope, state.d, state.t)
    else:
        _finish_over_terms(rows.values, terms, state, has_intercept, n_free)
    return True


@compiled
def _list_free_terms(is_free, free):
    """List the free terms; return their number. (Counted by the caller, it would have two types for the compiler.)"""
    n_free = 0
    for i in range(is_free.size):
        free[n_free] = i
        n_free += is_free[i]
    return n_free


@compiled
def _state_over_columns(rows, terms, state, has_intercept, n_free):
    """Set U', the diagonal and the right-hand side of the system for d; return the weighted mean of r.

    `mean_row` becomes the mean of the rows, or zero without an intercept; both means are weighted by 1 / total
    curvature, and that of r includes the imbalance. U holds centred rows. D^−½ (r − mean) follows the last row of U',
    and `slope` becomes the diagonal of D^−½ for the free terms.
    """
    mean_row, right_side, n_columns = state.mean_row, state.right_sides[0], state.w.size
    mean_residual, total_weight, imbalance = 0.0, 0.0, state.scalars[IMBALANCE]
    mean_row[:] = 0.0
    if has_intercept:
        for s in range(n_free):
            i = state.free[s]
            total_weight += 1.0 / state.total_curvature[i]
            mean_residual += state.t[i] / state.total_curvature[i]
            axpy(1.0 / state.total_curvature[i], rows.values[terms.row[i]], mean_row)
        mean_residual = (mean_residual + imbalance) / total_weight
        for j in range(n_columns):
            mean_row[j] /= total_weight
    root, residual = state.slope[:n_free], state.products[n_columns][:n_free]
    for s in range(n_free):
        root[s] = 1.0 / np.sqrt(state.total_curvature[state.free[s]])
        residual[s] = root[s] * (state.t[state.free[s]] - mean_residual)
    for j in range(n_columns):
        column, line = rows.columns[j], state.products[j][:n_free]
        for s in range(n_free):
            line[s] = root[s] * (column[terms.row[state.free[s]]] - mean_row[j])
        right_side[j] = dot(residual, line) - state.g[j] - imbalance * mean_row[j]
        state.scale[j] = 1.0
    return mean_residual


@compiled
def _state_over_terms(values, terms, state, n_free):
    """Set U', the diagonal and two right-hand sides of the system for y; the second consists of ones."""
    for s in range(n_free):
        i = state.free[s]
        x = values[terms.row[i]]
        for j in range(x.size):
            state.products[s, j] = x[j]
        state.scale[s] = state.total_curvature[i]
        state.right_sides[0, s] = state.t[i] + dot(x, state.g)
        state.right_sides[1, s] = 1.0


@compiled
def _set_dual_steps(products, free, root, d, t):
    """Set t = y, the steps of the free dual variables, from d and from what `_state_over_columns` has set."""
    y = products[d.size][: free.size]
    for j in range(d.size):
        axpy(-d[j], products[j][: free.size], y)
    for s in range(free.size):
        t[free[s]] = root[s] * y[s]


@compiled
def _finish_over_terms(values, terms, state, has_intercept, n_free):
    """Set e, y and d from the two solutions."""
    y, ones = state.right_sides[0], state.right_sides[1]
    if has_intercept:
        y_sum, ones_sum = state.scalars[IMBALANCE], 0.0
        for s in range(n_free):
            y_sum += y[s]
            ones_sum += ones[s]
        state.scalars[INTERCEPT_STEP] = y_sum / ones_sum
    for s in range(n_free):
        i = state.free[s]
        state.t[i] = y[s] - state.scalars[INTERCEPT_STEP] * ones[s]
        axpy(state.t[i], values[terms.row[i]], state.d)


@compiled(fastmath=SUMS)
def _set_inner_products(products, n, length, diagonal, A):
    """Set the lower half of A to the diagonal plus U'U, where U' is the upper left part, n x length, of `products`.

    Four entries are computed at once, since the time is limited by the reads; at the end of a row some are repeated.
    """
    for row in range(n):
        x = products[row]
        for first in range(0, row + 1, 4):
            second, third, fourth = min(first + 1, row), min(first + 2, row), min(first + 3, row)
            y, z, u, v = products[first], products[second], products[third], products[fourth]
            a, b, c, d = 0.0, 0.0, 0.0, 0.0
            for k in range(length):
                a += x[k] * y[k]
                b += x[k] * z[k]
                c += x[k] * u[k]
                d += x[k] * v[k]
            A[row, first], A[row, second], A[row, third], A[row, fourth] = a, b, c, d
        A[row, row] += diagonal[row]


@compiled
def _factorise(A, n, scale):
    """Write the Cholesky factor of A, its diagonal scaled to 1, to the lower half; return whether this was possible.

    The upper half holds the scaled matrix, so that the factorisation can be repeated with a ridge.
    """
    for s in range(n):
        if not 0.0 < A[s, s] < np.inf:
            return False
        scale[s] = 1.0 / np.sqrt(A[s, s])
    for s in range(n):
        for r in range(s):
            A[r, s] = A[s, r] * scale[s] * scale[r]
    ridge = 0.0
    while ridge <= _MAX_RIDGE:
        n_done = 0
        for s in range(n):
            row, pivot = A[s], 1.0 + ridge
            for r in range(s):
                row[r] = (A[r, s] - dot(row[:r], A[r][:r])) / A[r, r]
                pivot -= row[r] * row[r]
            if not pivot > 0.0:
                break
            row[s] = np.sqrt(pivot)
            n_done += 1
        if n_done == n:
            return True
        ridge = max(_RIDGE_FACTOR * ridge, _FIRST_RIDGE)
    return False


@compiled
def _solve_factorised(A, n, scale, right_sides):
    """Solve the system for each right-hand side in place, with the factor that `_factorise` has written."""
    for k in range(right_sides.shape[0]):
        x = right_sides[k]
        for s in range(n):
            x[s] = (x[s] * scale[s] - dot(A[s][:s], x[:s])) / A[s, s]
        for s in range(n - 1, -1, -1):
            x[s] /= A[s, s]
            axpy(-x[s], A[s][:s], x[:s])
        for s in range(n):
            x[s] *= scale[s]


# --- By LAPACK --------------------------------------------------------------------------------------------------------


def find_step_by_lapack(values, terms, state, has_intercept):
    """As `find_step`, by NumPy and LAPACK; the list of the free terms is not set."""
    free = np.flatnonzero(state.is_free)
    state.g[:] = state.w - np.bincount(terms.row, state.alpha, len(values)) @ values
    state.d[:], state.scalars[INTERCEPT_STEP] = -state.g, 0.0
    if not len(free):
        return True
    solve = _lapack_over_columns if len(free) > len(state.g) else _lapack_over_terms
    system = values[terms.row[free]], state.total_curvature[free], state.g, state.t[free]
    d, e, y = solve(*system, state.scalars[IMBALANCE] if has_intercept else None)
    state.d[:], state.scalars[INTERCEPT_STEP], state.t[free] = d, e, y
    return bool(np.isfinite(state.d).all())


def _lapack_over_columns(R, total_curvature, g, residual, imbalance):
    """Return d, e and y, solving for d first; an imbalance of None means that there is no intercept."""
    weight = 1.0 / total_curvature
    e, mean_row, mean_residual = 0.0, 0.0, 0.0
    if imbalance is not None:
        mean_row = weight @ R / weight.sum()  # e = mean_residual − <mean_row, d>
        R = R - mean_row
        mean_residual = (float(weight @ residual) + imbalance) / weight.sum()
    root = np.sqrt(weight)[:, np.newaxis] * R
    H = root.T @ root
    H.flat[:: len(H) + 1] += 1.0
    d = _solve_by_lapack(H, (weight * (residual - mean_residual)) @ R - g - (imbalance or 0.0) * mean_row)
    if imbalance is not None:
        e = mean_residual - float(mean_row @ d)
    return d, e, weight * (residual - mean_residual - R @ d)


def _lapack_over_terms(R, total_curvature, g, residual, imbalance):
    """Return d, e and y, solving for y first; an imbalance of None means that there is no intercept."""
    A = R @ R.T
    A.flat[:: len(A) + 1] += total_curvature
    right_side = residual + R @ g
    if imbalance is None:
        y, e = _solve_by_lapack(A, right_side), 0.0
    else:
        y, ones = _solve_by_lapack(A, np.column_stack([right_side, np.ones(len(right_side))])).T
        e = (float(y.sum()) + imbalance) / float(ones.sum())
        y = y - e * ones
    return y @ R - g, e, y


def _solve_by_lapack(A, right_side):
    """Return the solution x of A x = right_side for a positive definite A; NaN if numbers are not finite."""
    scale = 1.0 / np.sqrt(A.diagonal())
    A, right_side = A * scale[:, np.newaxis] * scale, (scale * right_side.T).T
    if not (np.isfinite(A).all() and np.isfinite(right_side).all()):
        return np.full_like(right_side, np.nan)
    ridge = 0.0
    while True:
        _, x, failed = dposv(A + ridge * np.eye(len(A)), right_side)
        if not failed:
            return (scale * x.T).T
        ridge = max(_RIDGE_FACTOR * ridge, _FIRST_RIDGE)
