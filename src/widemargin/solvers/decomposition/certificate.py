"""What a point of a kernel problem proves: its objective, and a bound below the optimum that rounding cannot break.

    primal   ½ β'Kβ − Σ_g r_g s_g + Σ_t loss_t,   loss_t = max(upper_t z_t, lower_t z_t),  z_t = r_g − F_t,  F = Kβ + p
    dual     −½ β'Kβ − p'β,  for β within its bounds whose groups have the sums s_g

F is wrong by at most `state.wrong`, and by `state.slack` after Ctrl-C. Each loss is taken at the worst of z_t ± that
error, β'Kβ and p'β may be wrong by |β| times it, and each sum by a few roundings of its terms. If the sum of a group is
off by δ, the β of the proof is the one with β_t less by δ, where there is most room. All of it is taken off the dual.
"""

import numpy as np

from widemargin.solvers.decomposition.kernel_sums import UNIT

_ROUNDINGS = 40.0 * UNIT  # of a pairwise sum, and of each of its terms


def measure(state, stretch=1.0):
    """Return (primal, dual, doubt) of an ActiveSet from which no row is removed.

    Parameters
    ----------
    state : ActiveSet
    stretch : float
        The primal value is that of the function times this factor.

    Returns
    -------
    primal, dual : float
    doubt : float
        How much of their difference is the bound on rounding.
    """
    levels = state.offsets()
    offsets = np.repeat(levels, np.diff(state.ends))
    wrong = state.wrong + state.slack[state.problem.row]
    with np.errstate(over="ignore", invalid="ignore"):  # beyond double precision nothing is proved
        scores = state.F - state.linear
        wrong = wrong + 4.0 * UNIT * (np.abs(state.F) + np.abs(state.linear) + np.abs(offsets)) + _of_division(state)
        squares, separable, owed = state.beta * scores, state.linear * state.beta, levels * state.sums
        about = float(np.abs(state.beta) @ wrong)
        losses, worst = _losses(state, stretch * (offsets - scores) - state.linear, stretch * wrong)
        primal = 0.5 * stretch**2 * squares.sum() + losses.sum() - stretch * owed.sum()
        dual = -0.5 * squares.sum() - separable.sum() + _balancing(state)
        sizes = [np.abs(part).sum() for part in (squares, separable, owed, losses)]
        doubt = stretch**2 * about + (worst - losses).sum() + _ROUNDINGS * stretch**2 * sum(sizes)
        return float(primal), float(dual - doubt), float(doubt)


def _of_division(state):
    """Return by how much F changes when the multipliers are divided by a margin, which rounds each of them."""
    if not state.problem.divides_by_margin:
        return 0.0
    return 2.0 * UNIT * float(np.abs(state.beta).sum()) * state.problem.K.bound


def _losses(state, residual, wrong):
    """Return the losses of residuals, and what they are at most if these are wrong by so much."""
    losses = np.where(residual > 0.0, state.upper * residual, state.lower * residual)
    return losses, np.maximum(np.maximum(state.upper * (residual + wrong), state.lower * (residual - wrong)), losses)


def _balancing(state):
    """Return what the dual value changes by when the sum of each group is put right where there is most room."""
    change = 0.0
    for g, total in enumerate(state.sums):
        here = slice(state.ends[g], state.ends[g + 1])
        rest = state.beta[here].sum() - total
        if rest != 0.0:
            room = np.minimum(state.beta[here] - state.lower[here], state.upper[here] - state.beta[here])
            t = state.ends[g] + int(np.argmax(room))
            change += rest * state.F[t] - 0.5 * rest**2 * abs(state.diagonal[t])
    return change
