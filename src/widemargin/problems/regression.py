"""Regression: rows have a target and a cost; residuals up to ±epsilon have zero loss; see `formulations`."""

import numpy as np

from widemargin.problems.formulations import (
    DualQP,
    KernelFunction,
    KernelQP,
    all_offsets,
    descending,
    dual_curvature,
    filled_up,
    within,
)


def epsilon_insensitive(X, y, cost, epsilon, free_intercept=False):
    """Σ costᵢ max(0, |yᵢ − ⟨w, xᵢ⟩| − epsilon): each dual variable stays within ± its cost."""
    return _two_sided(X, y, cost, np.zeros_like(cost), epsilon, free_intercept)


def squared_epsilon_insensitive(X, y, cost, epsilon, free_intercept=False):
    """Σ costᵢ max(0, |yᵢ − ⟨w, xᵢ⟩| − epsilon)²: no bounds, but the curvature 1/(2 costᵢ)."""
    return _two_sided(X, y, within(cost, np.inf), dual_curvature(cost), epsilon, free_intercept)


def _two_sided(X, y, ceiling, curvature, epsilon, free_intercept):
    return DualQP(
        X,
        target=y,
        lower=-ceiling,
        upper=ceiling,
        curvature=curvature,
        epsilon=np.full_like(curvature, epsilon),
        free_intercept=free_intercept,
    )


def eps_svr(K, y, cost, epsilon):
    """½|w|² + Σ costᵢ max(0, |yᵢ − ⟨w, φ(xᵢ)⟩ − b| − epsilon), with an intercept b that is not penalised."""
    linear = np.concatenate([epsilon - y, -epsilon - y])
    return _above_and_below(K, linear, cost, np.array([0, 2 * len(y)]), np.zeros(2 * len(y)), _read_eps_svr)


def nu_svr(K, y, cost, nu):
    """½|w|² + Σ costᵢ (max(0, |yᵢ − ⟨w, φ(xᵢ)⟩ − b| − ε) + ν ε), in which ε is a variable as well."""
    fill = filled_up(cost, nu * cost.sum() / 2)
    start, ends = np.concatenate([fill, -fill]), np.array([0, len(y), 2 * len(y)])
    return _above_and_below(K, np.concatenate([-y, -y]), cost, ends, start, _read_nu_svr, _with_a_tube)


def _above_and_below(K, linear, cost, ends, start, reading, admissible=all_offsets):
    """Two multipliers per row, one that lifts its prediction and one that lowers it."""
    row, none = np.arange(len(cost)), np.zeros(len(cost))
    return KernelQP(
        K,
        row=np.concatenate([row, row]),
        linear=linear,
        lower=np.concatenate([none, -cost]),
        upper=np.concatenate([cost, none]),
        ends=ends,
        start=start,
        reading=reading,
        admissible=admissible,
    )


def _with_a_tube(offsets):
    """Return the offsets, or their mean twice if the tube between them, 2 ε, is below zero."""
    return descending(offsets[::-1])[::-1]


def _read_eps_svr(problem, solution):
    above, below = np.split(solution.beta, 2)
    facts = {"obj": -solution.dual, "rho": solution.offsets[0]}
    cost = problem.upper[: len(above)]
    if np.ptp(cost) == 0.0 and cost[0] > 0.0:
        facts["nu"] = np.abs(solution.beta).sum() / (cost[0] * len(cost))
    return KernelFunction(above + below, -solution.offsets[0], facts)


def _read_nu_svr(problem, solution):
    above, below = np.split(solution.beta, 2)
    rho, epsilon = (solution.offsets[0] + solution.offsets[1]) / 2, (solution.offsets[1] - solution.offsets[0]) / 2
    return KernelFunction(above + below, -rho, {"obj": -solution.dual, "rho": rho, "epsilon": epsilon})


LOSSES = {
    "epsilon_insensitive": epsilon_insensitive,
    "squared_epsilon_insensitive": squared_epsilon_insensitive,
}
