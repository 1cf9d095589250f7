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
the value at which Σ alpha_l = dual_sum.

Problems are up to a few hundred kilobytes large, and a compiled step takes microseconds, which is less than the calls
of NumPy and LAPACK that it would need. A whole outer iteration, or several, are therefore one compiled call, `advance`.
An iteration is

    while prepare_step():       sets dual variables and residuals of the current point; False if the iteration is over
        use_step(find_step())   moves to the minimum along the Newton direction, or corrects the point
"""

import numpy as np

from widemargin._runtime.compile import SUMS, compiled
from widemargin.problems.losses import error_of_imbalance, loss_and_slope
from widemargin.solvers.newton.active_set_state import (
    BEGIN,
    BEST_DUAL,
    BEST_PRIMAL,
    CORRECT,
    DUAL_SUM,
    EVALUATE,
    HAS_BEST,
    IMBALANCE,
    INTERCEPT,
    INTERCEPT_STEP,
    IS_OPTIMAL,
    IS_SETTLED,
    IS_STUCK,
    LAST_VIOLATION,
    MAX_SQUARED_NORM,
    MAX_TARGET,
    MEAN_SQUARED_NORM,
    MIN_DELTA,
    MINIMISE,
    N_CORRECTIONS,
    N_ITERATIONS,
    N_STEPS,
    N_STEPS_IN_ALL,
    PHASE,
    RELATIVE_DELTA,
    SUFFICIENT_GAP,
    axpy,
    combine,
    dot,
    set_scores,
)
from widemargin.solvers.newton.linear_system import find_step

_MAX_STEPS_PER_ITERATION = 60  # of an outer iteration, until it is interrupted for a measurement
_MAX_LINE_SEARCH_ITERATIONS = 200
_LINE_SEARCH_TOL = 1e-9  # derivative at the end of a line search, relative to that at its start
_SUM_ROUNDING = 4e-16  # derivative that is due to rounding, relative to the sum of the absolute values of its terms
_FIRST_STRIDE = 1e-3  # of a search for a bracket, relative to 1 + |k|
_MAX_STEP = 1e300  # length at which the search for a bracket ends
_FULL_STEP_TOL = 1e-3  # difference of a step length from 1 up to which the step counts as a full Newton step
_NEGLIGIBLE_STEP = 1e-13  # norm of a step, relative to that of w, at which it consists of rounding errors
_OPTIMALITY_TOL = 1e-12  # violation of an optimality condition, relative to targets and scores, due to rounding
_SLOW_VIOLATION_RATIO = 0.1  # delta is reduced if an outer iteration leaves more than this part of the violation
_DELTA_REDUCTION = 1e-2  # factor of delta
_MAX_CORRECTIONS = 2  # of a point that is optimal after the first one


@compiled
def advance(rows, terms, state, has_intercept, max_steps, max_steps_before_last):
    """Do the phase of `state` and those that follow: Newton steps for the current centres, then corrections.

    If few Newton steps are enough, and no more than `max_steps` in all iterations, delta may be reduced, and the point
    is corrected by the residuals of its optimality conditions; otherwise the phase is still MINIMISE. In the end the
    point is compared with the best ones. Another outer iteration follows if one is needed, and there were fewer than
    `max_steps_before_last` Newton steps in all.
    """
    counts, scalars = state.counts, state.scalars
    while True:
        while prepare_step(rows, terms, state, has_intercept, max_steps):
            use_step(rows, terms, state, find_step(rows, terms, state, has_intercept))
        if counts[PHASE] != CORRECT or counts[IS_OPTIMAL] or counts[N_STEPS_IN_ALL] >= max_steps_before_last:
            return
        if not scalars[BEST_PRIMAL] - scalars[BEST_DUAL] > scalars[SUFFICIENT_GAP] * abs(scalars[BEST_PRIMAL]):
            return
        counts[PHASE] = BEGIN


@compiled
def prepare_step(rows, terms, state, has_intercept, max_steps):
    """Set residuals and dual variables of the current point, and t and the imbalance, which a step is found from.

    Returns whether a step is needed; if not, the point is compared with the best ones.
    """
    counts, z = state.counts, state.z
    set_scores(rows.columns, state.w, state.scores)
    for i in range(z.size):
        z[i] = terms.target[i] - state.scores[terms.row[i]] - state.scalars[INTERCEPT]
    is_over = counts[PHASE] == EVALUATE
    if is_over:
        _set_largest(terms, state.scalars)
    if counts[PHASE] == BEGIN:
        _begin(terms, state)
    if counts[PHASE] == MINIMISE:
        n_changed = _update_dual_variables(terms, state, has_intercept)
        if counts[IS_STUCK] or (counts[IS_SETTLED] and n_changed == 0):
            counts[PHASE] = CORRECT
            _reduce_delta(terms.curvature, state.alpha, state.centre, state.scalars, state.total_curvature)
        else:
            is_over = counts[N_STEPS] >= _MAX_STEPS_PER_ITERATION or counts[N_STEPS_IN_ALL] >= max_steps
    elif counts[N_CORRECTIONS] == 1:
        counts[IS_OPTIMAL] = _is_optimal(terms, state.alpha, state.z, state.w, state.scalars[MAX_TARGET])
        is_over = not counts[IS_OPTIMAL]
    elif counts[N_CORRECTIONS] == _MAX_CORRECTIONS:
        is_over = True
    if is_over:
        _keep_best(rows, terms, state, has_intercept)
        return False
    state.t[:], state.scalars[IMBALANCE] = 0.0, 0.0  # by definition of the dual variables
    if counts[PHASE] == CORRECT:
        state.scalars[IMBALANCE] = -state.scalars[DUAL_SUM]
        for i in range(z.size):
            state.t[i] = z[i] - terms.curvature[i] * state.alpha[i]
            state.scalars[IMBALANCE] += state.alpha[i] if has_intercept else 0.0
    return True


@compiled
def _set_largest(terms, scalars):
    """Set the largest |target_l| and |x_l|²."""
    for i in range(terms.row.size):
        scalars[MAX_TARGET] = max(scalars[MAX_TARGET], abs(terms.target[i]))
        scalars[MAX_SQUARED_NORM] = max(scalars[MAX_SQUARED_NORM], terms.squared_norm[i])


@compiled
def _begin(terms, state):
    """Begin an outer iteration: the centres become the dual variables, within their bounds."""
    for i in range(terms.row.size):
        state.centre[i] = min(max(state.alpha[i], terms.lower[i]), terms.upper[i])
    state.counts[:HAS_BEST] = 0
    state.counts[PHASE] = MINIMISE
    state.counts[N_ITERATIONS] += 1


@compiled
def use_step(rows, terms, state, is_found):
    """Move to the minimum along the direction d of a Newton step, or correct weights and dual variables by d and y."""
    counts, factor, d_square = state.counts, 1.0, 0.0
    if counts[PHASE] == MINIMISE:
        counts[N_STEPS] += 1
        counts[N_STEPS_IN_ALL] += 1
        if is_found:
            set_scores(rows.columns, state.d, state.scores)
            for i in range(terms.row.size):
                state.t[i] = state.scores[terms.row[i]] + state.scalars[INTERCEPT_STEP]
            d_square = dot(state.d, state.d)
            slope = dot(state.w, state.d) + state.scalars[DUAL_SUM] * state.scalars[INTERCEPT_STEP]
            factor = _line_minimum(terms, state, slope, d_square)
        counts[IS_STUCK] = not (is_found and 0.0 < factor < np.inf)
        if counts[IS_STUCK]:
            return
        is_negligible = factor * factor * d_square <= _NEGLIGIBLE_STEP * _NEGLIGIBLE_STEP * dot(state.w, state.w)
        counts[IS_SETTLED] = is_negligible or abs(factor - 1.0) < _FULL_STEP_TOL
    else:
        counts[N_CORRECTIONS] += 1
        if not is_found:
            return
        for i in range(terms.row.size):
            if state.is_free[i]:
                state.alpha[i] += state.t[i]
    axpy(factor, state.d, state.w)
    state.scalars[INTERCEPT] += factor * state.scalars[INTERCEPT_STEP]


@compiled
def _reduce_delta(curvature, alpha, centre, scalars, total_curvature):
    """Reduce delta if the last centres left a large violation of an optimality condition by the proximal terms.

    That is max |delta (alpha − centre)|. Sets the total curvatures.
    """
    violation = 0.0
    for i in range(alpha.size):
        violation = max(violation, abs((total_curvature[i] - curvature[i]) * (alpha[i] - centre[i])))
    if violation > _SLOW_VIOLATION_RATIO * scalars[LAST_VIOLATION]:
        scalars[RELATIVE_DELTA] *= _DELTA_REDUCTION
    scalars[LAST_VIOLATION] = violation
    delta = max(scalars[RELATIVE_DELTA] * scalars[MEAN_SQUARED_NORM], scalars[MIN_DELTA])
    for i in range(alpha.size):
        total_curvature[i] = curvature[i] if curvature[i] > 0.0 else delta


@compiled
def _update_dual_variables(terms, state, has_intercept):
    """Set the intercept to its minimum, if there is one, and then the dual variables and which terms are free.

    Returns the number of terms that were free and no longer are, or that have become so.
    """
    if has_intercept:
        _set_unclipped(state.z, terms.curvature, state.total_curvature, state.centre, state.unclipped)
        state.t[:] = 1.0
        _move_intercept(state.scalars, state.z, _line_minimum(terms, state, state.scalars[DUAL_SUM], 0.0))
    _set_unclipped(state.z, terms.curvature, state.total_curvature, state.centre, state.unclipped)
    n_free, n_changed = 0, 0
    for i in range(terms.row.size):
        state.alpha[i] = min(max(state.unclipped[i], terms.lower[i]), terms.upper[i])
    for i in range(terms.row.size):
        is_free = (state.unclipped[i] > terms.lower[i]) & (state.unclipped[i] < terms.upper[i])
        n_changed += state.is_free[i] != is_free
        state.is_free[i] = is_free
        n_free += is_free
    if has_intercept and n_free == 0:
        _move_intercept(state.scalars, state.z, _step_to_centre(terms, state))
        _set_unclipped(state.z, terms.curvature, state.total_curvature, state.centre, state.unclipped)
    return n_changed


@compiled
def _set_unclipped(z, curvature, total_curvature, centre, unclipped):
    """Set the dual variables that are optimal without their bounds."""
    for i in range(z.size):
        unclipped[i] = (z[i] + (total_curvature[i] - curvature[i]) * centre[i]) / total_curvature[i]


@compiled
def _move_intercept(scalars, z, step):
    """Add a step to the intercept and subtract it from the residuals, if it is finite."""
    if abs(step) < np.inf:
        scalars[INTERCEPT] += step
        for i in range(z.size):
            z[i] -= step


@compiled
def _step_to_centre(terms, state):
    """Return the step of the intercept to the midpoint of the interval in which no dual variable changes, or 0.

    It is used if no term is free: from an end of this interval, a line search along most directions would end early,
    where a term becomes free.
    """
    up, down = np.inf, np.inf
    for i in range(terms.row.size):
        slack = state.total_curvature[i] * (state.unclipped[i] - state.alpha[i])
        if state.alpha[i] == terms.upper[i]:
            up = min(up, slack)
        if state.alpha[i] == terms.lower[i]:
            down = min(down, -slack)
    return 0.5 * (up - down) if up + down > 0.0 else 0.0


@compiled
def _is_optimal(terms, alpha, z, w, max_target):
    """Return whether all optimality conditions hold up to rounding."""
    w_norm = np.sqrt(dot(w, w))
    for i in range(alpha.size):
        slack, lower, upper = z[i] - terms.curvature[i] * alpha[i], terms.lower[i], terms.upper[i]
        tol = _OPTIMALITY_TOL * (max_target + np.sqrt(terms.squared_norm[i]) * w_norm)
        if not lower <= alpha[i] <= upper:
            return False
        if (alpha[i] < upper and not slack <= tol) or (alpha[i] > lower and not slack >= -tol):
            return False
    return True


@compiled
def _keep_best(rows, terms, state, has_intercept):
    """Keep the weights, and the dual variables clipped to their bounds, if they are the best ones so far.

    The first ones are kept in any case, even if their objectives are NaN. With an intercept, the sum of the dual
    variables is not exactly DUAL_SUM; see `finishing` for the bound that allows for it.
    """
    loss, dual, total, scalars, v = 0.0, 0.0, 0.0, state.scalars, state.g
    for i in range(terms.row.size):
        curvature, alpha = terms.curvature[i], min(max(state.alpha[i], terms.lower[i]), terms.upper[i])
        loss += loss_and_slope(state.z[i], terms.lower[i], terms.upper[i], curvature, 0.0)[0]
        dual += alpha * (terms.target[i] - 0.5 * curvature * alpha)
        total += alpha
        state.t[i] = alpha
    combine(rows.columns, terms.row, state.t, state.scores, v)
    primal, dual = loss + 0.5 * dot(state.w, state.w), dual - 0.5 * dot(v, v)
    if has_intercept:
        primal += scalars[DUAL_SUM] * scalars[INTERCEPT]
        w_norm, norm = np.sqrt(dot(state.w, state.w)), np.sqrt(scalars[MAX_SQUARED_NORM])
        imbalance = abs(total - scalars[DUAL_SUM])
        dual -= error_of_imbalance(imbalance, primal - dual, w_norm, scalars[MAX_TARGET], norm)
    is_first = state.counts[HAS_BEST] == 0
    state.counts[HAS_BEST] = 1
    if is_first or primal <= scalars[BEST_PRIMAL]:
        scalars[BEST_PRIMAL] = primal
        for j in range(v.size):
            state.best_w[j] = state.w[j]
    if is_first or dual >= scalars[BEST_DUAL]:
        scalars[BEST_DUAL] = dual
        for i in range(terms.row.size):
            state.best_alpha[i] = state.t[i]


@compiled(fastmath=SUMS)
def _line_derivatives(unclipped, slope, t, lower, upper, k):
    """Return −1 times the derivative of the losses by k, the size of its terms, and the second derivative."""
    first, size, second = 0.0, 0.0, 0.0
    for i in range(t.size):
        u = unclipped[i] - k * slope[i]
        alpha = min(max(u, lower[i]), upper[i])
        first += alpha * t[i]
        size += abs(alpha * t[i])
        second += slope[i] * t[i] if (u > lower[i]) & (u < upper[i]) else 0.0
    return first, size, second


@compiled
def _line_minimum(terms, state, slope_at_zero, curvature):
    """Return the k at which the derivative along a line is zero; ±∞ if there is none, NaN if numbers are not finite.

    The line changes the scores by k t; slope_at_zero + curvature k is the derivative of ½|w|² along it, and those of
    the losses follow from the unclipped dual variables at k = 0. The derivative is piecewise linear and does not
    decrease with k. Its zero is found by Newton's method, safeguarded by bisection of the current bracket, or by
    growing strides as long as there is no bracket.
    """
    low, high, k, stride, tol = -np.inf, np.inf, 0.0, 0.0, 0.0
    for i in range(terms.row.size):
        state.slope[i] = state.t[i] / state.total_curvature[i]
    for iteration in range(_MAX_LINE_SEARCH_ITERATIONS):
        slope, size, second = _line_derivatives(state.unclipped, state.slope, state.t, terms.lower, terms.upper, k)
        slope, size, second = slope_at_zero + curvature * k - slope, abs(slope_at_zero) + size, curvature + second
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
