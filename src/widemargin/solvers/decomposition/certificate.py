"""The primal objective of a point of a KernelQP, and a lower bound of the optimum that includes all rounding errors.

    primal   ½ β'Kβ − Σ_g r_g s_g + Σ_t loss_t,   loss_t = max(upper_t z_t, lower_t z_t),  z_t = r_g − F_t,  F = Kβ + p
    dual     −½ β'Kβ − p'β,   for β within its bounds whose groups have the sums s_g

The error of F is at most the rounding bound of the state, plus its omitted bound after Ctrl-C. A bound of each loss is
its larger value at z_t ± that error. β'Kβ and p'β may have an error of |β| times it, and each sum one of a few
roundings of its terms. If the sum of a group has an error δ, the dual is that of a feasible point, at which the β_t
furthest from its bounds is smaller by δ. All errors are subtracted from the dual.
"""

import numpy as np

from widemargin.solvers.decomposition.kernel_sums import UNIT_ROUNDOFF

_SUM_ROUNDING = 40.0 * UNIT_ROUNDOFF  # relative to Σ |terms|: errors of a pairwise sum, and of its terms


def measure(state, stretch=1.0):
    """Return (primal, dual, rounding) of an ActiveSet whose kernel rows are all active.

    Parameters
    ----------
    state : ActiveSet
    stretch : float
        The primal objective is that of the decision function times this factor.

    Returns
    -------
    primal, dual : float
    rounding : float
        The bound on rounding errors that was subtracted from the dual.
    """
    group_offsets = state.offsets()
    offsets = np.repeat(group_offsets, np.diff(state.ends))
    error = state.rounding_bound + state.omitted_bound[state.problem.row]
    with np.errstate(over="ignore", invalid="ignore"):  # numbers that overflow prove nothing
        scores = state.F - state.linear
        sizes = np.abs(state.F) + np.abs(state.linear) + np.abs(offsets)
        error = error + 4.0 * UNIT_ROUNDOFF * sizes + _division_error(state)
        quadratic, linear = state.beta * scores, state.linear * state.beta
        offset_terms = group_offsets * state.sums
        losses, largest_losses = _losses(state, stretch * (offsets - scores) - state.linear, stretch * error)
        primal = 0.5 * stretch**2 * quadratic.sum() + losses.sum() - stretch * offset_terms.sum()
        dual = -0.5 * quadratic.sum() - linear.sum() + _change_by_feasibility(state)
        total = sum([np.abs(terms).sum() for terms in (quadratic, linear, offset_terms, losses)])
        of_products = float(np.abs(state.beta) @ error)
        of_losses = (largest_losses - losses).sum()
        rounding = stretch**2 * of_products + of_losses + _SUM_ROUNDING * stretch**2 * total
        return float(primal), float(dual - rounding), float(rounding)


def _division_error(state):
    """Return a bound on the change of F by the division of the dual variables by a margin, which rounds each."""
    if not state.problem.divides_by_margin:
        return 0.0
    return 2.0 * UNIT_ROUNDOFF * float(np.abs(state.beta).sum()) * state.problem.K.bound


def _losses(state, residual, error):
    """Return the losses of the residuals, and upper bounds of the losses if the residuals have errors up to `error`."""
    losses = np.where(residual > 0.0, state.upper * residual, state.lower * residual)
    return losses, np.maximum(np.maximum(state.upper * (residual + error), state.lower * (residual - error)), losses)


def _change_by_feasibility(state):
    """Return the change of the dual objective if the sum of each group is corrected; see the module's docstring."""
    change = 0.0
    for g, total in enumerate(state.sums):
        here = slice(state.ends[g], state.ends[g + 1])
        excess = state.beta[here].sum() - total
        if excess != 0.0:
            distance = np.minimum(state.beta[here] - state.lower[here], state.upper[here] - state.beta[here])
            t = state.ends[g] + int(np.argmax(distance))
            change += excess * state.F[t] - 0.5 * excess**2 * abs(state.diagonal[t])
    return change
