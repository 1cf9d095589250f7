"""The compiled steps of an active-set Newton method with proximal terms, for problems that fit into the cache.

With the terms of `active_set_state`, the problem is solved by the proximal method of multipliers (Rockafellar, 1976):

    outer iteration   minimise over w and b   ½|w|² + Σ_l max over lower_l <= a <= upper_l of
                                                  a z_l − ½ curvature_l a² − ½ delta_l (a − centre_l)²,
                      and then set centre_l = alpha_l, the maximiser a
    Newton step       alpha_l = (z_l + delta_l centre_l) / (curvature_l + delta_l), clipped to its bounds; a term is
                      free if it is not clipped. The objective is piecewise quadratic, so that a step is exact once the
                      right terms are free. The linear system of a step is that of `linear_system`
    refinement        w, b and the alpha_l of free terms are corrected by the residuals of their optimality conditions

delta is the same for all terms, which matters if the norms of the rows differ by orders of magnitude. It is small
compared with their squares, so that few outer iterations suffice, and it makes the linear system regular if rows on the
margin are linearly dependent. Squared losses have a positive curvature and need no delta. A free intercept b is set to
the value at which Σ alpha_l = 0.

Problems are up to a few hundred kilobytes large, and a compiled step takes microseconds, which is less than the calls
of NumPy and LAPACK that it would need.
"""

import numpy as np

from widemargin._runtime.compile import SUMS, compiled
from widemargin.problems.losses import loss_and_slope
from widemargin.solvers.newton.active_set_state import INTERCEPT, INTERCEPT_STEP, axpy, dot
from widemargin.solvers.newton.linear_system import find_step

_MAX_LINE_SEARCH_ITERATIONS = 200
_LINE_SEARCH_TOL = 1e-9  # derivative at the end of a line search, relative to that at its start
_SUM_ROUNDING = 4e-16  # derivative that is due to rounding, relative to the sum of the absolute values of its terms
_FIRST_STRIDE = 1e-3  # of a search for a bracket, relative to 1 + |k|
_MAX_STEP = 1e300  # length at which the search for a bracket ends
_FULL_STEP_TOL = 1e-3  # difference of a step length from 1 up to which the step counts as a full Newton step
_NEGLIGIBLE_STEP = 1e-13  # norm of a step, relative to that of w, at which it consists of rounding errors
_OPTIMALITY_TOL = 1e-12  # violation of an optimality condition, relative to targets and scores, due to rounding


@compiled
def compute_residuals(values, terms, state):
    """Set the residuals z at the current weights and intercept."""
    for i in range(values.shape[0]):
        state.scores[i] = dot(values[i], state.w)
    for i in range(terms.row.size):
        state.z[i] = terms.target[i] - state.scores[terms.row[i]] - state.scalars[INTERCEPT]


@compiled
def set_delta(terms, state, delta):
    """Set the total curvature of each term, with delta only if its curvature is 0, and which terms are free."""
    for i in range(terms.row.size):
        state.total_curvature[i] = terms.curvature[i] if terms.curvature[i] > 0.0 else delta
        state.is_free[i] = (state.alpha[i] > terms.lower[i]) & (state.alpha[i] < terms.upper[i])


@compiled
def minimise(values, terms, state, has_intercept, max_steps):
    """Take Newton steps for the current centres; return their number, and whether they have converged."""
    for n_steps in range(1, max_steps + 1):
        for i in range(terms.row.size):
            state.t[i] = 0.0  # the current alpha satisfies the equations of free terms
        if not find_step(values, terms, state, has_intercept, 0.0):
            return n_steps, True
        if not take_step(values, terms, state, has_intercept):
            return n_steps, True
    return max_steps, False


@compiled
def update_centres(terms, state, has_intercept):
    """Set the centres to the dual variables, and then the intercept and the dual variables for the new centres."""
    for i in range(terms.row.size):
        state.centre[i] = min(max(state.alpha[i], terms.lower[i]), terms.upper[i])
    _update_dual_variables(terms, state, has_intercept)


@compiled
def take_step(values, terms, state, has_intercept):
    """Move to the minimum along d; return whether further steps are needed.

    No further step is needed after a full or negligible step that leaves the same terms free, and if the objective does
    not decrease along d.
    """
    for i in range(values.shape[0]):
        state.scores[i] = dot(values[i], state.d)
    for i in range(terms.row.size):
        state.was_free[i] = state.is_free[i]
        state.t[i] = state.scores[terms.row[i]] + state.scalars[INTERCEPT_STEP]
    w_square, d_square = dot(state.w, state.w), dot(state.d, state.d)
    k = _line_minimum(terms, state, dot(state.w, state.d), d_square)
    if not 0.0 < k < np.inf:
        return False
    axpy(k, state.d, state.w)
    state.scalars[INTERCEPT] += k * state.scalars[INTERCEPT_STEP]
    compute_residuals(values, terms, state)
    _update_dual_variables(terms, state, has_intercept)
    is_full = abs(k - 1.0) < _FULL_STEP_TOL
    is_negligible = k * k * d_square <= _NEGLIGIBLE_STEP * _NEGLIGIBLE_STEP * w_square
    return not (is_full or is_negligible) or _n_different(state.was_free, state.is_free) > 0


@compiled
def proximal_violation(terms, state):
    """Return max |delta (alpha − centre)|, the largest violation of an optimality condition by the proximal terms."""
    violation = 0.0
    for i in range(terms.row.size):
        delta = state.total_curvature[i] - terms.curvature[i]
        violation = max(violation, abs(delta * (state.alpha[i] - state.centre[i])))
    return violation


@compiled
def _n_different(first, second):
    """Return the number of positions in which two arrays differ."""
    count = 0
    for i in range(first.size):
        count += first[i] != second[i]
    return count


@compiled
def _unclipped_alpha(terms, state, i):
    """Return the maximiser of term i without its bounds."""
    delta = state.total_curvature[i] - terms.curvature[i]
    return (state.z[i] + delta * state.centre[i]) / state.total_curvature[i]


@compiled
def _update_dual_variables(terms, state, has_intercept):
    """Set the intercept to its minimum, if there is one, and then the dual variables and which terms are free."""
    if has_intercept:
        for i in range(terms.row.size):
            state.t[i] = 1.0
        _move_intercept(terms, state, _line_minimum(terms, state, 0.0, 0.0))
    n_free = 0
    for i in range(terms.row.size):
        u = _unclipped_alpha(terms, state, i)
        state.is_free[i] = (u > terms.lower[i]) & (u < terms.upper[i])
        state.alpha[i] = min(max(u, terms.lower[i]), terms.upper[i])
        n_free += state.is_free[i]
    if has_intercept and n_free == 0:
        _centre_intercept(terms, state)


@compiled
def _move_intercept(terms, state, step):
    """Add a step to the intercept and subtract it from the residuals, if it is finite."""
    if abs(step) < np.inf:
        state.scalars[INTERCEPT] += step
        for i in range(terms.row.size):
            state.z[i] -= step


@compiled
def _centre_intercept(terms, state):
    """Set the intercept to the midpoint of the interval in which no dual variable changes; used if no term is free.

    From an end of this interval, a line search along most directions would end early, where a term becomes free.
    """
    up, down = np.inf, np.inf
    for i in range(terms.row.size):
        slack = state.total_curvature[i] * (_unclipped_alpha(terms, state, i) - state.alpha[i])
        if state.alpha[i] == terms.upper[i]:
            up = min(up, slack)
        if state.alpha[i] == terms.lower[i]:
            down = min(down, -slack)
    if up + down > 0.0:
        _move_intercept(terms, state, 0.5 * (up - down))


@compiled
def loss_and_dual_sums(terms, state):
    """Return the sum of the losses, and Σ target alpha − ½ curvature alpha² over all terms, with alpha clipped."""
    loss, dual = 0.0, 0.0
    for i in range(terms.row.size):
        curvature, z = terms.curvature[i], state.z[i]
        alpha = min(max(state.alpha[i], terms.lower[i]), terms.upper[i])
        loss += loss_and_slope(z, terms.lower[i], terms.upper[i], curvature, 0.0)[0]
        dual += alpha * (terms.target[i] - 0.5 * curvature * alpha)
    return loss, dual


@compiled(fastmath=SUMS)
def _line_derivatives(terms, state, k, slope_at_zero, curvature):
    """Return the derivative at k of the objective along a line, the size of its terms, and the second derivative.

    The line changes the scores by k t; slope_at_zero + curvature k is the derivative of ½|w|² along it.
    """
    slope, second, size = slope_at_zero + curvature * k, curvature, abs(slope_at_zero)
    for i in range(terms.row.size):
        step = state.t[i] / state.total_curvature[i]
        u = _unclipped_alpha(terms, state, i) - k * step
        alpha = min(max(u, terms.lower[i]), terms.upper[i])
        slope -= alpha * state.t[i]
        size += abs(alpha * state.t[i])
        second += step * state.t[i] if (u > terms.lower[i]) & (u < terms.upper[i]) else 0.0
    return slope, size, second


@compiled
def _line_minimum(terms, state, slope_at_zero, curvature):
    """Return the k at which the derivative along a line is zero; ±∞ if there is none, NaN if numbers are not finite.

    The derivative is piecewise linear and does not decrease with k. Its zero is found by Newton's method, safeguarded
    by bisection of the current bracket, or by growing strides as long as there is no bracket.
    """
    low, high, k, stride = -np.inf, np.inf, 0.0, 0.0
    tol = 0.0
    for iteration in range(_MAX_LINE_SEARCH_ITERATIONS):
        slope, size, second = _line_derivatives(terms, state, k, slope_at_zero, curvature)
        if iteration == 0:
            tol = _LINE_SEARCH_TOL * abs(slope)
        if not abs(slope) > max(tol if iteration else 0.0, _SUM_ROUNDING * size):
            return k
        if slope < 0.0:
            low = k
        else:
            high = k
        trial = k - slope / second if second > 0.0 else np.inf
        if not low < trial < high:
            if low > -np.inf and high < np.inf:
                trial = 0.5 * (low + high)
                if not low < trial < high:
                    return trial
            else:
                stride = max(2.0 * stride, _FIRST_STRIDE * (1.0 + abs(k)))
                trial = k + stride if slope < 0.0 else k - stride
                if not abs(trial) < _MAX_STEP:
                    return trial
        k = trial
    return k


@compiled
def refine(values, terms, state, has_intercept):
    """Correct weights, intercept and free dual variables by the residuals of their optimality conditions."""
    imbalance = compute_slack(terms, state)
    if find_step(values, terms, state, has_intercept, imbalance):
        apply_correction(values, terms, state)


@compiled
def compute_slack(terms, state):
    """Set t = z − curvature alpha, which is zero for free terms at the optimum; return Σ alpha."""
    total = 0.0
    for i in range(terms.row.size):
        state.t[i] = state.z[i] - terms.curvature[i] * state.alpha[i]
        total += state.alpha[i]
    return total


@compiled
def apply_correction(values, terms, state):
    """Add d to the weights, the step of the intercept to it, and t to the free dual variables."""
    axpy(1.0, state.d, state.w)
    state.scalars[INTERCEPT] += state.scalars[INTERCEPT_STEP]
    for i in range(terms.row.size):
        if state.is_free[i]:
            state.alpha[i] += state.t[i]
    compute_residuals(values, terms, state)


@compiled
def is_optimal(terms, state, max_target):
    """Return whether all optimality conditions hold up to rounding; `max_target` is the largest |target|."""
    w_norm = np.sqrt(dot(state.w, state.w))
    for i in range(terms.row.size):
        alpha, slack = state.alpha[i], state.z[i] - terms.curvature[i] * state.alpha[i]
        tol = _OPTIMALITY_TOL * (max_target + np.sqrt(terms.squared_norm[i]) * w_norm)
        if not terms.lower[i] <= alpha <= terms.upper[i]:
            return False
        if (alpha < terms.upper[i] and not slack <= tol) or (alpha > terms.lower[i] and not slack >= -tol):
            return False
    return True
