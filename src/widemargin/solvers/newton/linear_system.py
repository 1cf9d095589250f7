"""The linear system of a step of the active-set Newton method.

A step changes the weights by d, the intercept by e and the free dual variables by y, where

    d = R'y − g,        R d + e + D y = r,        Σ y = −imbalance

R holds the rows of the free terms, g = w − Σ alpha_l x_l, D is the diagonal matrix of their total curvatures, r are
given residuals, and the imbalance is the sum of all dual variables. Without an intercept, e = 0 and the last equation
is dropped. Of two equivalent systems the smaller one is solved, by a Cholesky factorisation with its diagonal scaled
to 1:

    over the columns      (I + R'D⁻¹R) d = R'D⁻¹(r − e) − g
    over the free terms   (D + R R') y = r + R g − e

In small problems compiled loops are faster than calls of NumPy and LAPACK; for large ones both versions are here. If
rounding makes a matrix indefinite, a small multiple of the identity, a ridge, is added to it.
"""

import numpy as np
from scipy.linalg.lapack import dposv

from widemargin._runtime.compile import compiled
from widemargin.solvers.newton.active_set_state import INTERCEPT_STEP, axpy, dot

_FIRST_RIDGE, _RIDGE_FACTOR, _MAX_RIDGE = 1e-15, 100.0, 1e-3  # of a matrix with unit diagonal; factor to the next one

# --- Compiled ---------------------------------------------------------------------------------------------------------


@compiled
def find_step(values, terms, state, has_intercept, imbalance):
    """Set d, the step e of the intercept, and t = y for the free terms, which before the call hold r.

    Sets g, and lists the free terms. Returns whether the system can be solved in double precision.
    """
    n_free = 0
    for j in range(state.g.size):
        state.g[j] = state.w[j]
    for i in range(terms.row.size):
        if state.alpha[i] != 0.0:
            axpy(-state.alpha[i], values[terms.row[i]], state.g)
        if state.is_free[i]:
            state.free[n_free] = i
            n_free += 1
    state.scalars[INTERCEPT_STEP] = 0.0
    if n_free == 0:
        for j in range(state.d.size):
            state.d[j] = -state.g[j]
        return True
    if n_free > state.w.size:
        return _solve_over_columns(values, terms, state, has_intercept, imbalance, n_free)
    return _solve_over_terms(values, terms, state, has_intercept, imbalance, n_free)


@compiled
def _solve_over_columns(values, terms, state, has_intercept, imbalance, n_free):
    """Solve for d first, then for e and y; return whether the matrix could be factorised."""
    H, d, mean_row, n_columns = state.matrix, state.d, state.mean_row, state.w.size
    mean_residual = 0.0
    for j in range(n_columns):
        d[j] = -state.g[j]
        H[j, : j + 1] = 0.0
    for s in range(0, n_free, 4):
        _add_four_outer_products(values, terms, state, s, n_free)
    if has_intercept:
        mean_residual = _eliminate_intercept(values, terms, state, imbalance, n_free)
    for s in range(n_free):
        i = state.free[s]
        factor = (state.t[i] - mean_residual) / state.total_curvature[i]
        axpy(factor, values[terms.row[i]], d)
        if has_intercept:
            axpy(-factor, mean_row, d)
    for j in range(n_columns):
        H[j, j] += 1.0
    if not _factorise(H, n_columns, state.scale):
        return False
    _solve_factorised(H, n_columns, state.scale, d)
    if has_intercept:
        state.scalars[INTERCEPT_STEP] = mean_residual - dot(mean_row, d)
    for s in range(n_free):
        i = state.free[s]
        score_step = dot(values[terms.row[i]], d) + state.scalars[INTERCEPT_STEP]
        state.t[i] = (state.t[i] - score_step) / state.total_curvature[i]
    return True


@compiled
def _eliminate_intercept(values, terms, state, imbalance, n_free):
    """Eliminate e = mean_residual − <mean_row, d> from the matrix and from d; return mean_residual.

    Both are means over the free terms, weighted by 1 / total curvature; mean_residual includes the imbalance.
    """
    H, d, mean_row, n_columns = state.matrix, state.d, state.mean_row, state.w.size
    total_weight, residual_sum = 0.0, 0.0
    mean_row[:] = 0.0
    for s in range(n_free):
        i = state.free[s]
        total_weight += 1.0 / state.total_curvature[i]
        residual_sum += state.t[i] / state.total_curvature[i]
        axpy(1.0 / state.total_curvature[i], values[terms.row[i]], mean_row)
    for j in range(n_columns):
        mean_row[j] /= total_weight
    for j in range(n_columns):
        axpy(-total_weight * mean_row[j], mean_row[: j + 1], H[j])
        d[j] -= imbalance * mean_row[j]
    return (residual_sum + imbalance) / total_weight


@compiled
def _add_four_outer_products(values, terms, state, s, n_free):
    """Add x_l x_l' / total curvature of the free terms s, .., s + 3 to the lower half of the matrix.

    Four terms are added at once, since the time is limited by the writes to the matrix. Terms beyond the last one have
    the factor 0.
    """
    n_columns, H, last = state.w.size, state.matrix, n_free - 1
    i, j, k, m = state.free[s], state.free[min(s + 1, last)], state.free[min(s + 2, last)], state.free[min(s + 3, last)]
    x, y, z, u = values[terms.row[i]], values[terms.row[j]], values[terms.row[k]], values[terms.row[m]]
    x_factor = 1.0 / state.total_curvature[i]
    y_factor = 1.0 / state.total_curvature[j] if s + 1 < n_free else 0.0
    z_factor = 1.0 / state.total_curvature[k] if s + 2 < n_free else 0.0
    u_factor = 1.0 / state.total_curvature[m] if s + 3 < n_free else 0.0
    for row in range(n_columns):
        a, b, c, d = x_factor * x[row], y_factor * y[row], z_factor * z[row], u_factor * u[row]
        if a == 0.0 and b == 0.0 and c == 0.0 and d == 0.0:
            continue
        line = H[row]
        for column in range(row + 1):
            line[column] += a * x[column] + b * y[column] + c * z[column] + d * u[column]


@compiled
def _solve_over_terms(values, terms, state, has_intercept, imbalance, n_free):
    """Solve for y first, then for e and d; return whether the matrix could be factorised."""
    A, y, ones = state.matrix, state.right_sides[0][:n_free], state.right_sides[1][:n_free]
    for s in range(n_free):
        i = state.free[s]
        x = values[terms.row[i]]
        for r in range(s + 1):
            A[s, r] = dot(x, values[terms.row[state.free[r]]])
        A[s, s] += state.total_curvature[i]
        y[s] = state.t[i] + dot(x, state.g)
        ones[s] = 1.0
    if not _factorise(A, n_free, state.scale):
        return False
    _solve_factorised(A, n_free, state.scale, y)
    if has_intercept:
        _solve_factorised(A, n_free, state.scale, ones)
        y_sum, ones_sum = imbalance, 0.0
        for s in range(n_free):
            y_sum += y[s]
            ones_sum += ones[s]
        state.scalars[INTERCEPT_STEP] = y_sum / ones_sum
        axpy(-state.scalars[INTERCEPT_STEP], ones, y)
    for j in range(state.d.size):
        state.d[j] = -state.g[j]
    for s in range(n_free):
        i = state.free[s]
        axpy(y[s], values[terms.row[i]], state.d)
        state.t[i] = y[s]
    return True


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
        if _factorise_with_ridge(A, n, ridge):
            return True
        ridge = max(_RIDGE_FACTOR * ridge, _FIRST_RIDGE)
    return False


@compiled
def _factorise_with_ridge(A, n, ridge):
    """Write the Cholesky factor of (1 + ridge) on the diagonal and the upper half of A; return whether it exists."""
    for s in range(n):
        row = A[s]
        pivot = 1.0 + ridge
        for r in range(s):
            row[r] = (A[r, s] - dot(row[:r], A[r][:r])) / A[r, r]
            pivot -= row[r] * row[r]
        if not pivot > 0.0:
            return False
        row[s] = np.sqrt(pivot)
    return True


@compiled
def _solve_factorised(A, n, scale, x):
    """Solve the system with right-hand side x in place, with the factor that `_factorise` has written."""
    for s in range(n):
        x[s] = (x[s] * scale[s] - dot(A[s][:s], x[:s])) / A[s, s]
    for s in range(n - 1, -1, -1):
        x[s] /= A[s, s]
        axpy(-x[s], A[s][:s], x[:s])
    for s in range(n):
        x[s] *= scale[s]


# --- By LAPACK --------------------------------------------------------------------------------------------------------


def find_step_by_lapack(values, terms, state, has_intercept, imbalance):
    """As `find_step`, by NumPy and LAPACK; the list of the free terms is not set."""
    free = np.flatnonzero(state.is_free)
    state.g[:] = state.w - np.bincount(terms.row, state.alpha, len(values)) @ values
    state.d[:], state.scalars[INTERCEPT_STEP] = -state.g, 0.0
    if not len(free):
        return True
    solve = _lapack_over_columns if len(free) > len(state.g) else _lapack_over_terms
    system = values[terms.row[free]], state.total_curvature[free], state.g, state.t[free]
    d, e, y = solve(*system, imbalance if has_intercept else None)
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
