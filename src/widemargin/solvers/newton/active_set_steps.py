"""The compiled steps of an active-set Newton method with proximal terms, for problems that fit into the cache.

Each row has one dual variable a_l in [low_l, high_l], or two if it has a tube (epsilon > 0), called its terms, with the
residuals z_l = target_l − (<w, x_l> + b), where the target of a term has the tube taken off:

    outer iteration   minimise over w and b   ½|w|² + Σ_l max over low_l <= a <= high_l of
                                                  a z_l − ½ curvature_l a² − ½ delta_l (a − centre_l)²,
                      then centre_l = a_l     (the proximal method of multipliers; Rockafellar, 1976)
    Newton step       a_l = (z_l + delta_l centre_l) / (curvature_l + delta_l), cut to its bounds; what is not cut is
                      free. The function is piecewise quadratic: once the right ones are free, a step is exact
    linear system     over the columns, or over the free terms, whichever are fewer; its diagonal scaled to 1
    refinement        w, b and the free a_l are corrected by the residuals of their optimality conditions

delta is the same for all terms, which matters where the lengths of rows differ by orders of magnitude; it is small
against their squares, so that few outer iterations suffice, and makes the system regular where rows on the margin are
dependent. Squared losses have a curvature and need no delta. A free intercept b is set to where Σ a = 0.

Problems here are a few hundred kilobytes, so that a step takes microseconds: less than a call of LAPACK and NumPy for
each of its parts.
"""

from typing import NamedTuple

import numpy as np

from widemargin._runtime.compile import SUMS, compiled
from widemargin.problems.losses import loss_and_slope

_LINE_STEPS = 200  # of a search along a line: Newton's in a piecewise linear function, halving where they fail
_LINE_EXACT = 1e-9  # slope at the end of a search, against that at its beginning
_FULL_STEP = 1e-3  # a Newton step that ends this close to its full length has found the lowest point
_NO_STEP = 1e-13  # length of a step, against that of w, at which its own length is but rounding
_RIDGE, _MORE_RIDGE, _MOST_RIDGE = 1e-15, 100.0, 1e-3  # added to a unit diagonal where a factorisation fails
_MARGIN_OF_ERROR = 1e-12  # violation of an optimality condition, against targets and scores, that is none


class Terms(NamedTuple):
    """The terms of the losses: row number, bounds, curvature, target less the tube, and |x_l|²."""

    row: np.ndarray
    low: np.ndarray
    high: np.ndarray
    curvature: np.ndarray
    target: np.ndarray
    square: np.ndarray


class State(NamedTuple):
    """The point, and the memory that a step needs.

    One number per term: dual variables `a`, residuals `z`, `centre`, `stiffness` = curvature + delta, `is_free` now and
    `was_free` before, `t` the scores of a direction; `free` are the free terms. One per row: `score`. One per column:
    weights `w`, `g` = w − Σ a x, the direction `d`, and `pull`, the weighted mean of free rows. `matrix`, `right` and
    `scale` hold the linear system. `number[B]` is the intercept, `number[SHIFT]` its change in a step.
    """

    w: np.ndarray
    a: np.ndarray
    z: np.ndarray
    centre: np.ndarray
    stiffness: np.ndarray
    is_free: np.ndarray
    was_free: np.ndarray
    t: np.ndarray
    free: np.ndarray
    score: np.ndarray
    g: np.ndarray
    d: np.ndarray
    pull: np.ndarray
    matrix: np.ndarray
    right: np.ndarray
    scale: np.ndarray
    number: np.ndarray


B, SHIFT = 0, 1


def new_state(values, terms):
    """Return a State at zero; `values` are the rows, an array."""
    (n_rows, n_columns), n_terms = values.shape, len(terms.row)
    size = max(1, min(n_columns, n_terms))
    a, z, centre, stiffness, t = np.zeros((5, n_terms))
    w, g, d, pull = np.zeros((4, n_columns))
    return State(
        w=w, a=a, z=z, centre=centre, stiffness=stiffness, t=t,
        is_free=np.zeros(n_terms, np.bool_), was_free=np.zeros(n_terms, np.bool_), free=np.zeros(n_terms, np.int64),
        score=np.zeros(n_rows), g=g, d=d, pull=pull,
        matrix=np.zeros((size, size)), right=np.zeros((2, size)), scale=np.zeros(size), number=np.zeros(2),
    )  # fmt: skip


@compiled(fastmath=SUMS)
def _dot(x, y):
    total = 0.0
    for j in range(x.size):
        total += x[j] * y[j]
    return total


@compiled
def _axpy(factor, x, y):
    for j in range(x.size):
        y[j] += factor * x[j]


@compiled
def find_residuals(values, terms, state):
    """Set the residuals z at (w, b)."""
    for i in range(values.shape[0]):
        state.score[i] = _dot(values[i], state.w)
    for i in range(terms.row.size):
        state.z[i] = terms.target[i] - state.score[terms.row[i]] - state.number[B]


@compiled
def set_delta(terms, state, delta):
    """Set the stiffness, and which of the dual variables a are free; terms with a curvature need no delta."""
    for i in range(terms.row.size):
        state.stiffness[i] = terms.curvature[i] if terms.curvature[i] > 0.0 else delta
        state.is_free[i] = (state.a[i] > terms.low[i]) & (state.a[i] < terms.high[i])


@compiled
def minimise(values, terms, state, has_intercept, most):
    """Take up to `most` Newton steps for the present centres; return how many, and whether that was the end."""
    for n_steps in range(1, most + 1):
        for i in range(terms.row.size):
            state.t[i] = 0.0  # the residuals of free terms: none
        if not _find_step(values, terms, state, has_intercept, 0.0):
            return n_steps, True
        if not take_step(values, terms, state, has_intercept):
            return n_steps, True
    return most, False


@compiled
def take_centres(terms, state, has_intercept):
    """Take the dual variables as centres."""
    for i in range(terms.row.size):
        state.centre[i] = min(max(state.a[i], terms.low[i]), terms.high[i])
    _follow(terms, state, has_intercept)


@compiled
def take_step(values, terms, state, has_intercept):
    """Go to the lowest point along d; return whether steps are left to take.

    The end is a full step, or one within rounding, after which the same terms are free, or a line that does not fall.
    """
    for i in range(values.shape[0]):
        state.score[i] = _dot(values[i], state.d)
    for i in range(terms.row.size):
        state.was_free[i], state.t[i] = state.is_free[i], state.score[terms.row[i]] + state.number[SHIFT]
    square, length = _dot(state.w, state.w), _dot(state.d, state.d)
    k = _lowest(terms, state, _dot(state.w, state.d), length)
    if not 0.0 < k < np.inf:
        return False
    _axpy(k, state.d, state.w)
    state.number[B] += k * state.number[SHIFT]
    find_residuals(values, terms, state)
    _follow(terms, state, has_intercept)
    is_whole = abs(k - 1.0) < _FULL_STEP or k * k * length <= _NO_STEP * _NO_STEP * square
    return not is_whole or _n_changed(state.was_free, state.is_free) > 0


@compiled
def violation_of(terms, state):
    """Return by how much centres still move a residual."""
    violation = 0.0
    for i in range(terms.row.size):
        delta = state.stiffness[i] - terms.curvature[i]
        violation = max(violation, abs(delta * (state.a[i] - state.centre[i])))
    return violation


@compiled
def _n_changed(first, second):
    count = 0
    for i in range(first.size):
        count += first[i] != second[i]
    return count


@compiled
def _proposed(terms, state, i):
    """Return the dual variable of a term by its residual, not yet cut to its bounds."""
    delta = state.stiffness[i] - terms.curvature[i]
    return (state.z[i] + delta * state.centre[i]) / state.stiffness[i]


@compiled
def _follow(terms, state, has_intercept):
    """Let b, the dual variables and what is free follow from the residuals."""
    if has_intercept:
        for i in range(terms.row.size):
            state.t[i] = 1.0
        shift = _lowest(terms, state, 0.0, 0.0)
        if abs(shift) < np.inf:
            state.number[B] += shift
            for i in range(terms.row.size):
                state.z[i] -= shift
    n_free = 0
    for i in range(terms.row.size):
        u = _proposed(terms, state, i)
        state.is_free[i] = (u > terms.low[i]) & (u < terms.high[i])
        state.a[i] = min(max(u, terms.low[i]), terms.high[i])
        n_free += state.is_free[i]
    if has_intercept and n_free == 0:
        _centre_intercept(terms, state)


@compiled
def _centre_intercept(terms, state):
    """Set b, which may move without changing any dual variable, to the middle: from an end no direction leads far."""
    up, down = np.inf, np.inf
    for i in range(terms.row.size):
        beyond = state.stiffness[i] * (_proposed(terms, state, i) - state.a[i])
        if state.a[i] == terms.high[i]:
            up = min(up, beyond)
        if state.a[i] == terms.low[i]:
            down = min(down, -beyond)
    shift = 0.5 * (up - down)
    if abs(shift) < np.inf and up + down > 0.0:
        state.number[B] += shift
        for i in range(terms.row.size):
            state.z[i] -= shift


@compiled
def measure(terms, state):
    """Return the sum of the losses, and that of the separable parts of the dual value, both without |w|²."""
    loss, value = 0.0, 0.0
    for i in range(terms.row.size):
        curvature, a, z = terms.curvature[i], min(max(state.a[i], terms.low[i]), terms.high[i]), state.z[i]
        loss += loss_and_slope(z, terms.low[i], terms.high[i], curvature, 0.0)[0]
        value += a * (terms.target[i] - 0.5 * curvature * a)
    return loss, value


@compiled(fastmath=SUMS)
def _slope(terms, state, k, constant, curve):
    """Return the slope of the objective along the line of scores t at k, the size of its parts, and its derivative."""
    rise, bend, size = constant + curve * k, curve, abs(constant)
    for i in range(terms.row.size):
        step = state.t[i] / state.stiffness[i]
        u = _proposed(terms, state, i) - k * step
        a = min(max(u, terms.low[i]), terms.high[i])
        rise -= a * state.t[i]
        size += abs(a * state.t[i])
        bend += step * state.t[i] if (u > terms.low[i]) & (u < terms.high[i]) else 0.0
    return rise, size, bend


@compiled
def _lowest(terms, state, constant, curve):
    """Return k where constant + curve k − Σ t a(z − k t) is zero; ±∞ if it never is, NaN if numbers are not finite.

    It never falls with k. Newton's method, kept within the bracket found so far.
    """
    low, high, k, stride = -np.inf, np.inf, 0.0, 0.0
    small = 0.0
    for turn in range(_LINE_STEPS):
        rise, size, bend = _slope(terms, state, k, constant, curve)
        if turn == 0:
            small = _LINE_EXACT * abs(rise)
        if not abs(rise) > max(small if turn else 0.0, 4e-16 * size):
            return k
        if rise < 0.0:
            low = k
        else:
            high = k
        following = k - rise / bend if bend > 0.0 else np.inf
        if not low < following < high:
            if low > -np.inf and high < np.inf:
                following = 0.5 * (low + high)
                if not low < following < high:
                    return following
            else:
                stride = max(2.0 * stride, 1e-3 * (1.0 + abs(k)))
                following = k + stride if rise < 0.0 else k - stride
                if not abs(following) < 1e300:
                    return following
        k = following
    return k


@compiled
def refine(values, terms, state, has_intercept):
    """Correct w, b and the free dual variables by the residuals of their optimality conditions."""
    imbalance = find_slack(terms, state)
    if _find_step(values, terms, state, has_intercept, imbalance):
        take_correction(values, terms, state)


@compiled
def find_slack(terms, state):
    """Set t to what is missing for free dual variables to be optimal; return Σ a."""
    total = 0.0
    for i in range(terms.row.size):
        state.t[i] = state.z[i] - terms.curvature[i] * state.a[i]
        total += state.a[i]
    return total


@compiled
def take_correction(values, terms, state):
    """Add d, the change of b, and t for the free dual variables."""
    _axpy(1.0, state.d, state.w)
    state.number[B] += state.number[SHIFT]
    for i in range(terms.row.size):
        if state.is_free[i]:
            state.a[i] += state.t[i]
    find_residuals(values, terms, state)


@compiled
def is_optimal(terms, state, size):
    """Return whether dual variables are within their bounds, and residuals on the right side of their corners."""
    norm = np.sqrt(_dot(state.w, state.w))
    for i in range(terms.row.size):
        a, slack = state.a[i], state.z[i] - terms.curvature[i] * state.a[i]
        small = _MARGIN_OF_ERROR * (size + np.sqrt(terms.square[i]) * norm)
        if not terms.low[i] <= a <= terms.high[i]:
            return False
        if (a < terms.high[i] and not slack <= small) or (a > terms.low[i] and not slack >= -small):
            return False
    return True


@compiled
def _find_step(values, terms, state, has_intercept, imbalance):
    """Set d, the change e of the intercept and t = y with  d = R'y − g,  R d + e + stiffness y = t,  Σ y = −imbalance.

    R are the rows of the free terms, g = w − Σ a x; without an intercept e = 0 and Σ y is what it is. Before the call t
    holds the residuals of the free terms. Return whether there is such a step in double precision.
    """
    n_free = 0
    for j in range(state.g.size):
        state.g[j] = state.w[j]
    for i in range(terms.row.size):
        if state.a[i] != 0.0:
            _axpy(-state.a[i], values[terms.row[i]], state.g)
        if state.is_free[i]:
            state.free[n_free] = i
            n_free += 1
    state.number[SHIFT] = 0.0
    if n_free == 0:
        for j in range(state.d.size):
            state.d[j] = -state.g[j]
        return True
    if n_free > state.w.size:
        return _step_by_columns(values, terms, state, has_intercept, imbalance, n_free)
    return _step_by_rows(values, terms, state, has_intercept, imbalance, n_free)


@compiled
def _step_by_columns(values, terms, state, has_intercept, imbalance, n_free):
    """Solve for d first: (I + R'D R) d = R'D (residual − e) − g with D = 1/stiffness."""
    H, d, pull, n_columns = state.matrix, state.d, state.pull, state.w.size
    total, level = 0.0, 0.0
    pull[:] = 0.0
    for j in range(n_columns):
        d[j] = -state.g[j]
        H[j, : j + 1] = 0.0
    for s in range(0, n_free, 4):
        _add_outer_products(values, terms, state, s, n_free)
    if has_intercept:
        for s in range(n_free):
            i = state.free[s]
            total += 1.0 / state.stiffness[i]
            level += state.t[i] / state.stiffness[i]
            _axpy(1.0 / state.stiffness[i], values[terms.row[i]], pull)
    if has_intercept:
        level = (level + imbalance) / total  # e = level − <pull, d>
        for j in range(n_columns):
            pull[j] /= total
        for j in range(n_columns):
            _axpy(-total * pull[j], pull[: j + 1], H[j])
            d[j] -= imbalance * pull[j]
    for s in range(n_free):
        i = state.free[s]
        factor = (state.t[i] - level) / state.stiffness[i]
        _axpy(factor, values[terms.row[i]], d)
        if has_intercept:
            _axpy(-factor, pull, d)
    for j in range(n_columns):
        H[j, j] += 1.0
    if not _factorise(H, n_columns, state.scale):
        return False
    _solve(H, n_columns, state.scale, d)
    if has_intercept:
        state.number[SHIFT] = level - _dot(pull, d)
    for s in range(n_free):
        i = state.free[s]
        along = _dot(values[terms.row[i]], d) + state.number[SHIFT]
        state.t[i] = (state.t[i] - along) / state.stiffness[i]
    return True


@compiled
def _add_outer_products(values, terms, state, s, n_free):
    """Add the outer products of four free rows from place s on, each divided by its stiffness, to the lower half.

    Four at once, since a step is bound by what it writes; at the end of the list the last row stands for those missing.
    """
    n_columns, H, last = state.w.size, state.matrix, n_free - 1
    i, j, k, m = state.free[s], state.free[min(s + 1, last)], state.free[min(s + 2, last)], state.free[min(s + 3, last)]
    x, y, z, u = values[terms.row[i]], values[terms.row[j]], values[terms.row[k]], values[terms.row[m]]
    of_x, of_y = 1.0 / state.stiffness[i], 1.0 / state.stiffness[j] if s + 1 < n_free else 0.0
    of_z = 1.0 / state.stiffness[k] if s + 2 < n_free else 0.0
    of_u = 1.0 / state.stiffness[m] if s + 3 < n_free else 0.0
    for row in range(n_columns):
        a, b, c, d = of_x * x[row], of_y * y[row], of_z * z[row], of_u * u[row]
        if a == 0.0 and b == 0.0 and c == 0.0 and d == 0.0:
            continue
        line = H[row]
        for column in range(row + 1):
            line[column] += a * x[column] + b * y[column] + c * z[column] + d * u[column]


@compiled
def _step_by_rows(values, terms, state, has_intercept, imbalance, n_free):
    """Solve for y first: (diag(stiffness) + R R') y = residual + R g − e."""
    A, y, ones = state.matrix, state.right[0][:n_free], state.right[1][:n_free]
    for s in range(n_free):
        i = state.free[s]
        x = values[terms.row[i]]
        for r in range(s + 1):
            A[s, r] = _dot(x, values[terms.row[state.free[r]]])
        A[s, s] += state.stiffness[i]
        y[s] = state.t[i] + _dot(x, state.g)
        ones[s] = 1.0
    if not _factorise(A, n_free, state.scale):
        return False
    _solve(A, n_free, state.scale, y)
    if has_intercept:
        _solve(A, n_free, state.scale, ones)
        total, of_ones = imbalance, 0.0
        for s in range(n_free):
            total += y[s]
            of_ones += ones[s]
        state.number[SHIFT] = total / of_ones
        _axpy(-state.number[SHIFT], ones, y)
    for j in range(state.d.size):
        state.d[j] = -state.g[j]
    for s in range(n_free):
        i = state.free[s]
        _axpy(y[s], values[terms.row[i]], state.d)
        state.t[i] = y[s]
    return True


@compiled
def _factorise(A, n, scale):
    """Put the Cholesky factor of A, its diagonal scaled to 1, into the lower half; return whether there is one.

    The upper half keeps the scaled matrix, so that a ridge can be added to it where rounding has made it indefinite.
    """
    for s in range(n):
        if not 0.0 < A[s, s] < np.inf:
            return False
        scale[s] = 1.0 / np.sqrt(A[s, s])
    for s in range(n):
        for r in range(s):
            A[r, s] = A[s, r] * scale[s] * scale[r]
    ridge = 0.0
    while ridge <= _MOST_RIDGE:
        if _factorise_once(A, n, ridge):
            return True
        ridge = max(_MORE_RIDGE * ridge, _RIDGE)
    return False


@compiled
def _factorise_once(A, n, ridge):
    for s in range(n):
        row = A[s]
        rest = 1.0 + ridge
        for r in range(s):
            row[r] = (A[r, s] - _dot(row[:r], A[r][:r])) / A[r, r]
            rest -= row[r] * row[r]
        if not rest > 0.0:
            return False
        row[s] = np.sqrt(rest)
    return True


@compiled
def _solve(A, n, scale, x):
    """Solve for x in place, by a factor that `_factorise` has left."""
    for s in range(n):
        x[s] = (x[s] * scale[s] - _dot(A[s][:s], x[:s])) / A[s, s]
    for s in range(n - 1, -1, -1):
        x[s] /= A[s, s]
        _axpy(-x[s], A[s][:s], x[:s])
    for s in range(n):
        x[s] *= scale[s]
