"""Binary classification: rows have a sign (+1 or −1) and a cost; see `formulations` for the numbers below.

ν-SVC solves a problem in which the margin is a variable: its offsets of the two groups, r₊ and r₋, give the margin
r = (r₊ − r₋)/2 and the threshold (r₊ + r₋)/2. Divided by r it is a C-SVC with C = 1/r.
"""

import numpy as np

from widemargin.problems.formulations import (
    DualQP,
    KernelFunction,
    KernelQP,
    descending,
    dual_curvature,
    filled_up,
    within,
)

_LEAST_MARGIN = 1e-150  # below, 1/r² is not a number


def hinge(X, sign, cost, free_intercept=False):
    """Σ costᵢ max(0, 1 − signᵢ⟨w, xᵢ⟩): each dual variable is at most its cost."""
    return _one_sided(X, sign, cost, np.zeros_like(cost), free_intercept)


def squared_hinge(X, sign, cost, free_intercept=False):
    """Σ costᵢ max(0, 1 − signᵢ⟨w, xᵢ⟩)²: no upper bound, but the curvature 1/(2 costᵢ)."""
    return _one_sided(X, sign, within(cost, np.inf), dual_curvature(cost), free_intercept)


def _one_sided(X, sign, ceiling, curvature, free_intercept):
    """The dual variable of a row has the row's sign: from 0 up to the ceiling, or down to minus it."""
    return DualQP(
        X,
        target=sign,
        lower=np.where(sign < 0, -ceiling, 0.0),
        upper=np.where(sign > 0, ceiling, 0.0),
        curvature=curvature,
        epsilon=np.zeros_like(curvature),
        free_intercept=free_intercept,
    )


def c_svc(K, sign, cost):
    """½|w|² + Σ costᵢ max(0, 1 − signᵢ(⟨w, φ(xᵢ)⟩ + b)), with an intercept b that is not penalised."""
    n_rows = len(sign)
    return KernelQP(
        K,
        row=np.arange(n_rows),
        linear=-sign,
        lower=np.where(sign < 0, -cost, 0.0),
        upper=np.where(sign > 0, cost, 0.0),
        ends=np.array([0, n_rows]),
        start=np.zeros(n_rows),
        reading=_read_c_svc,
        stretches=True,
    )


def _read_c_svc(problem, solution):
    cost = np.maximum(problem.upper, -problem.lower)
    facts = {"obj": -solution.dual, "rho": solution.offsets[0]}
    if np.ptp(cost) == 0.0 and cost[0] > 0.0:
        facts["nu"] = np.abs(solution.beta).sum() / (cost[0] * len(cost))
    return KernelFunction(solution.stretch * solution.beta, -solution.stretch * solution.offsets[0], facts)


def nu_svc(K, sign, weight, nu):
    """½|w|² − ν r + mean max(0, r − signᵢ(⟨w, φ(xᵢ)⟩ + b)): at most the fraction ν of rows lies inside the margin r.

    Raises
    ------
    ValueError
        If the smaller class has not enough rows for ν.
    """
    order = np.argsort(-sign, kind="stable")
    sign, weight = sign[order], weight[order]
    n_positive = int(np.sum(sign > 0))
    least, most = sorted([weight[:n_positive].sum(), weight[n_positive:].sum()])
    total = nu * weight.sum() / 2
    if total > least * (1 + 1e-12):
        raise ValueError(f"nu must be at most {2 * least / (least + most):.6g} for these classes, got {nu}.")
    fill = np.concatenate([filled_up(weight[:n_positive], total), filled_up(weight[n_positive:], total)])
    return KernelQP(
        K,
        row=order,
        linear=np.zeros(len(sign)),
        lower=np.where(sign < 0, -weight, 0.0),
        upper=np.where(sign > 0, weight, 0.0),
        ends=np.array([0, n_positive, len(sign)]),
        start=sign * fill,
        reading=_read_nu_svc,
        admissible=descending,
        unit=_margin,
        has_margin=True,
    )


def _margin(offsets):
    return (offsets[0] - offsets[1]) / 2


def _read_nu_svc(problem, solution):
    """Divide by the margin; if there is none the function stays as it is, and no C belongs to it."""
    margin, threshold = _margin(solution.offsets), solution.offsets.mean()
    scale = 1.0 / margin if margin > _LEAST_MARGIN else 1.0
    coef = np.empty(problem.K.n_rows)
    coef[problem.row] = solution.beta * scale
    facts = {"obj": -solution.dual * scale**2, "rho": threshold * scale}
    if margin > _LEAST_MARGIN:
        facts["C"] = scale
    return KernelFunction(coef, -threshold * scale, facts)


LOSSES = {"hinge": hinge, "squared_hinge": squared_hinge}
