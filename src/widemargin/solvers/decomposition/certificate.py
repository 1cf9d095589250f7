"""The primal objective of a point of a KernelQP, and a lower bound of the optimum that includes all rounding errors.

    primal   ½ β'Kβ − Σ_g r_g s_g + Σ_t loss_t,   loss_t = max(upper_t z_t, lower_t z_t),  z_t = r_g − F_t,  F = Kβ + p
    dual     −½ β'Kβ − p'β,   for β within its bounds whose groups have the sums s_g

The error of F is at most the rounding bound of the state, plus its omitted bound after Ctrl-C. A bound of each loss is
its larger value at z_t ± that error. β'Kβ and p'β may have an error of |β| times it, and each sum one of a few
roundings of its terms, since the rounding errors of the additions are added up separately (Knuth). If the sum of a
group has an error δ, the dual is that of a feasible point, at which the β_t furthest from its bounds is smaller by δ.
All errors are subtracted from the dual.
"""

import math

import numpy as np

from widemargin._runtime.compile import compiled
from widemargin.solvers.decomposition.kernel_sums import UNIT_ROUNDOFF

_SUM_ROUNDING = 40.0 * UNIT_ROUNDOFF  # relative to Σ |terms|: errors of a compensated sum, and of its terms
N_SUMS = 7
_QUADRATIC, _LINEAR, _LOSSES, _SIZES, _OF_PRODUCTS, _OF_LOSSES, _FEASIBILITY = range(N_SUMS)


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
    totals, found = np.empty((2, N_SUMS)), np.empty(3)
    add_terms(
        state.F, state.linear, state.beta, state.lower, state.upper, state.diagonal, state.problem.row, state.ends,
        state.sums, state.offsets(), state.omitted_bound, state.rounding_bound + _division_error(state), stretch,
        totals, found,
    )  # fmt: skip
    return tuple(found.tolist())


def _division_error(state):
    """Return a bound on the change of F by the division of the dual variables by a margin, which rounds each."""
    if not state.problem.divides_by_margin:
        return 0.0
    with np.errstate(over="ignore"):
        return 2.0 * UNIT_ROUNDOFF * float(np.abs(state.beta).sum()) * state.problem.K.bound


@compiled
def add_terms(
    F, linear, beta, lower, upper, diagonal, row, ends, sums, offsets, omitted, error, stretch, totals, found
):  # fmt: skip
    """Set `found` to what `measure` returns, and `totals` to sums over all dual variables and their rounding errors."""
    totals[:] = 0.0
    for g in range(offsets.size):
        offset, best, excess, excess_error = offsets[g], -1.0, -sums[g], 0.0
        furthest = ends[g]
        for t in range(ends[g], ends[g + 1]):
            score, value = F[t] - linear[t], beta[t]
            size = abs(F[t]) + abs(linear[t]) + abs(offset)
            error_t = error + omitted[np.uint64(row[t])] + 4.0 * UNIT_ROUNDOFF * size
            residual, residual_error = stretch * (offset - score) - linear[t], stretch * error_t
            loss = upper[t] * residual if residual > 0.0 else lower[t] * residual
            largest = max(upper[t] * (residual + residual_error), lower[t] * (residual - residual_error), loss)
            quadratic, product = value * score, linear[t] * value
            _add(totals, _QUADRATIC, quadratic)
            _add(totals, _LINEAR, product)
            _add(totals, _LOSSES, loss)
            _add(totals, _SIZES, abs(quadratic) + abs(product) + abs(loss))
            _add(totals, _OF_PRODUCTS, abs(value) * error_t)
            _add(totals, _OF_LOSSES, largest - loss)
            excess, excess_error = _two_sum(excess, value, excess_error)
            distance = min(value - lower[t], upper[t] - value)
            if distance > best:
                best, furthest = distance, t
        excess += excess_error
        if excess != 0.0:
            t = furthest
            _add(totals, _FEASIBILITY, excess * F[t] - 0.5 * excess * excess * abs(diagonal[t]))
    _combine(totals, sums, offsets, stretch, found)


@compiled
def _combine(totals, sums, offsets, stretch, found):
    """Set `found` to primal, dual and rounding. Numbers that overflow become infinite or NaN, and prove nothing."""
    for k in range(N_SUMS):
        if math.isfinite(totals[1, k]):
            totals[0, k] += totals[1, k]
    of_offsets, size = 0.0, 0.0
    for g in range(offsets.size):
        of_offsets += offsets[g] * sums[g]
        size += abs(offsets[g] * sums[g])
    total, square = totals[0], stretch * stretch
    rounding = square * total[_OF_PRODUCTS] + total[_OF_LOSSES] + _SUM_ROUNDING * square * (total[_SIZES] + size)
    found[0] = 0.5 * square * total[_QUADRATIC] + total[_LOSSES] - stretch * of_offsets
    found[1] = -0.5 * total[_QUADRATIC] - total[_LINEAR] + total[_FEASIBILITY] - rounding
    found[2] = rounding


@compiled
def _two_sum(total, term, error):
    """Return total + term, and `error` plus the rounding error of this addition."""
    result = total + term
    added = result - total
    return result, error + ((total - (result - added)) + (term - added))


@compiled
def _add(totals, k, term):
    """Add a term to sum k of the totals."""
    totals[0, k], totals[1, k] = _two_sum(totals[0, k], term, totals[1, k])
