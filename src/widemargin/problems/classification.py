"""Binary classification: rows have a sign (+1 or −1) and a cost; the arrays are defined in `formulations`.

In ν-SVC the margin r is a variable. The offsets r₊ and r₋ of the two groups give r = (r₊ − r₋)/2 and the threshold
(r₊ + r₋)/2. The solution divided by r is that of a C-SVC with C = 1/r.
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
    zeros_for,
)

_MIN_MARGIN = 1e-150  # of a ν-SVC: for smaller margins r, 1/r² would be close to overflow


def hinge(X, sign, cost, free_intercept=False):
    """Return the DualQP of Σ costᵢ max(0, 1 − signᵢ⟨w, xᵢ⟩); each |betaᵢ| is at most costᵢ."""
    return _one_sided(X, sign, cost, zeros_for(X), free_intercept)


def squared_hinge(X, sign, cost, free_intercept=False):
    """Return the DualQP of Σ costᵢ max(0, 1 − signᵢ⟨w, xᵢ⟩)²; |betaᵢ| has no bound, but the curvature 1/(2 costᵢ)."""
    return _one_sided(X, sign, squared_loss_bound(cost), squared_loss_curvature(cost), free_intercept)


def log_loss(X, sign, cost, free_intercept=False):
    """Return the DualQP of Σ costᵢ log(1 + exp(−signᵢ⟨w, xᵢ⟩)); each |betaᵢ| is below costᵢ."""
    return DualQP(
        X,
        target=zeros_for(X),
        lower=np.where(sign < 0, -cost, 0.0),
        upper=np.where(sign > 0, cost, 0.0),
        curvature=zeros_for(X),
        epsilon=zeros_for(X),
        free_intercept=free_intercept,
        entropy=ENTROPIES["log_loss"],
    )


def _one_sided(X, sign, bound, curvature, free_intercept):
    """Return the DualQP in which betaᵢ has the sign of its row, and |betaᵢ| <= boundᵢ."""
    signed = sign * bound
    return DualQP(
        X,
        target=sign,
        lower=np.minimum(signed, 0.0),
        upper=np.maximum(signed, 0.0),
        curvature=curvature,
        epsilon=zeros_for(X),
        free_intercept=free_intercept,
    )


def c_svc(K, sign, cost):
    """Return the KernelQP of ½|w|² + Σ costᵢ max(0, 1 − signᵢ(⟨w, φ(xᵢ)⟩ + b)); the intercept b is not penalised."""
    n_rows, bound = len(sign), sign * cost
    return KernelQP(
        K,
        row=np.arange(n_rows),
        linear=-sign,
        lower=np.minimum(bound, 0.0),
        upper=np.maximum(bound, 0.0),
        ends=np.array([0, n_rows]),
        start=np.zeros(n_rows),
        to_function=_c_svc_function,
        allows_scaling=True,
    )


def _c_svc_function(problem, solution):
    facts, nu = {"obj": -solution.dual, "rho": solution.offsets[0]}, nu_of(solution.beta, problem.lower, problem.upper)
    if nu is not None:
        facts["nu"] = nu
    return KernelFunction(solution.stretch * solution.beta, -solution.stretch * solution.offsets[0], facts)


def nu_svc(K, sign, weight, nu):
    """Return the KernelQP of ½|w|² − ν r Σ weightᵢ + Σ weightᵢ max(0, r − signᵢ(⟨w, φ(xᵢ)⟩ + b)).

    The margin r is a variable. At the optimum, at most the fraction ν of the rows (by weight) violates the margin.

    Raises
    ------
    ValueError
        If the total weight of the smaller class is less than half of ν times that of all rows.
    """
    order = np.argsort(-sign, kind="stable")
    sign, weight = sign[order], weight[order]
    n_positive = int(np.sum(sign > 0))
    smaller, larger = sorted([weight[:n_positive].sum(), weight[n_positive:].sum()])
    total = nu * weight.sum() / 2
    if total > smaller * (1 + 1e-12):
        raise ValueError(f"nu must be at most {2 * smaller / (smaller + larger):.6g} for these classes, got {nu}.")
    alpha = np.concatenate([feasible_start(weight[:n_positive], total), feasible_start(weight[n_positive:], total)])
    return KernelQP(
        K,
        row=order,
        linear=np.zeros(len(sign)),
        lower=np.where(sign < 0, -weight, 0.0),
        upper=np.where(sign > 0, weight, 0.0),
        ends=np.array([0, n_positive, len(sign)]),
        start=sign * alpha,
        to_function=_nu_svc_function,
        offset_order=1,  # a nonnegative margin
        violation_unit=_margin,
        divides_by_margin=True,
    )


def _margin(offsets):
    return (offsets[0] - offsets[1]) / 2


def _nu_svc_function(problem, solution):
    """Return the decision function divided by its margin; without a margin it is not divided, and `facts` has no C."""
    margin, threshold = _margin(solution.offsets), solution.offsets.mean()
    scale = 1.0 / margin if margin > _MIN_MARGIN else 1.0
    coef = np.empty(problem.K.n_rows)
    coef[problem.row] = solution.beta * scale
    facts = {"obj": -solution.dual * scale**2, "rho": threshold * scale}
    if margin > _MIN_MARGIN:
        facts["C"] = scale
    return KernelFunction(coef, -threshold * scale, facts)


LOSSES = {"hinge": hinge, "squared_hinge": squared_hinge, "log_loss": log_loss}
ENTROPIES = {"log_loss": 1.0}  # of losses that have one
