"""Regression: rows have a target and a cost; residuals up to ±epsilon have zero loss.

The arrays are defined in `formulations`. Kernel problems have two dual variables per row: beta⁺ᵢ >= 0, which is
positive if the target lies above the tube, and beta⁻ᵢ <= 0, which is negative if it lies below.
"""

import numpy as np

from widemargin.problems.dual_counts import nu_of
from widemargin.problems.formulations import (
    DualQP,
    KernelFunction,
    KernelQP,
    feasible_start,
    squared_loss_bound,
    squared_loss_curvature,
)


def epsilon_insensitive(X, y, cost, epsilon, free_intercept=False):
    """Return the DualQP of Σ costᵢ max(0, |yᵢ − ⟨w, xᵢ⟩| − epsilon); each |betaᵢ| is at most costᵢ."""
    return _two_sided(X, y, cost, np.zeros_like(cost), epsilon, free_intercept)


def squared_epsilon_insensitive(X, y, cost, epsilon, free_intercept=False):
    """Return the DualQP of Σ costᵢ max(0, |yᵢ − ⟨w, xᵢ⟩| − epsilon)²; no bounds, but the curvature 1/(2 costᵢ)."""
    return _two_sided(X, y, squared_loss_bound(cost), squared_loss_curvature(cost), epsilon, free_intercept)


def _two_sided(X, y, bound, curvature, epsilon, free_intercept):
    """Return the DualQP with |betaᵢ| <= boundᵢ."""
    return DualQP(
        X,
        target=y,
        lower=-bound,
        upper=bound,
        curvature=curvature,
        epsilon=np.full_like(curvature, epsilon),
        free_intercept=free_intercept,
    )


def eps_svr(K, y, cost, epsilon):
    """Return the KernelQP of ½|w|² + Σ costᵢ max(0, |yᵢ − ⟨w, φ(xᵢ)⟩ − b| − epsilon); b is not penalised."""
    linear = np.concatenate([epsilon - y, -epsilon - y])
    ends, start = np.array([0, 2 * len(y)]), np.zeros(2 * len(y))
    return _two_per_row(K, linear, cost, ends=ends, start=start, to_function=_eps_svr_function)


def nu_svr(K, y, cost, nu):
    """Return the KernelQP of ½|w|² + Σ costᵢ (max(0, |yᵢ − ⟨w, φ(xᵢ)⟩ − b| − ε) + ν ε), minimised over ε too."""
    alpha = feasible_start(cost, nu * cost.sum() / 2)
    start, ends = np.concatenate([alpha, -alpha]), np.array([0, len(y), 2 * len(y)])
    options = {"to_function": _nu_svr_function, "offset_order": -1}  # their difference is the width 2 ε of the tube
    return _two_per_row(K, np.concatenate([-y, -y]), cost, ends=ends, start=start, **options)


def _two_per_row(K, linear, cost, *, ends, start, to_function, offset_order=0):
    """Return the KernelQP with 0 <= beta⁺ᵢ <= costᵢ of all rows, followed by −costᵢ <= beta⁻ᵢ <= 0 of all rows."""
    row, zero = np.arange(len(cost)), np.zeros(len(cost))
    return KernelQP(
        K,
        row=np.concatenate([row, row]),
        linear=linear,
        lower=np.concatenate([zero, -cost]),
        upper=np.concatenate([cost, zero]),
        ends=ends,
        start=start,
        to_function=to_function,
        offset_order=offset_order,
    )


def _eps_svr_function(problem, solution):
    facts = {"obj": -solution.dual, "rho": solution.offsets[0]}
    nu = nu_of(solution.beta, problem.lower, problem.upper)
    if nu is not None:
        facts["nu"] = 2.0 * nu  # a row has two dual variables
    return KernelFunction(_of_rows(solution.beta), -solution.offsets[0], facts)


def _of_rows(beta):
    """Return beta⁺ᵢ + beta⁻ᵢ of each row."""
    n_rows = len(beta) // 2
    return beta[:n_rows] + beta[n_rows:]


def _nu_svr_function(problem, solution):
    rho, epsilon = (solution.offsets[0] + solution.offsets[1]) / 2, (solution.offsets[1] - solution.offsets[0]) / 2
    return KernelFunction(_of_rows(solution.beta), -rho, {"obj": -solution.dual, "rho": rho, "epsilon": epsilon})


LOSSES = {
    "epsilon_insensitive": epsilon_insensitive,
    "squared_epsilon_insensitive": squared_epsilon_insensitive,
}
