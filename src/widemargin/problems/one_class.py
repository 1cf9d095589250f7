"""One-class SVM: estimates a region that contains all but a fraction ν of the rows (Schölkopf et al., 2001).

    minimise ½|w|² − ρ ν Σ weightᵢ + Σ weightᵢ max(0, ρ − ⟨w, φ(xᵢ)⟩)    over w and ρ

Scaled as in LIBSVM: 0 <= betaᵢ <= weightᵢ and Σ betaᵢ = ν Σ weightᵢ.
"""

import numpy as np

from widemargin.problems.formulations import FixedSumQP, KernelFunction, KernelQP, feasible_start, zeros_for


def one_class(K, weight, nu):
    """Return the KernelQP of a one-class SVM, whose region is the set of x with Σ betaᵢ K(xᵢ, x) >= ρ.

    At the optimum, at most the fraction ν of the rows (by weight) lies outside.
    """
    n_rows = len(weight)
    return KernelQP(
        K,
        row=np.arange(n_rows),
        linear=np.zeros(n_rows),
        lower=np.zeros(n_rows),
        upper=weight,
        ends=np.array([0, n_rows]),
        start=feasible_start(weight, nu * weight.sum()),
        to_function=_one_class_function,
        violation_unit=_threshold,
    )


def linear_one_class(X, weight, nu):
    """Return the FixedSumQP of a one-class SVM of functions <w, x>, or <w, φ(x)> if the columns of X are features.

    Its free intercept is −ρ. The solution is proportional to the weights: with weights k weightᵢ it is k w and k ρ, and
    the objective is multiplied by k².
    """
    zeros, weight = np.zeros(len(weight)), np.ascontiguousarray(weight)
    with np.errstate(over="ignore"):  # such weights are refused by name when the problem is solved
        total = float(weight.sum())
    return FixedSumQP(
        X,
        target=zeros,
        lower=zeros,
        upper=weight,
        curvature=zeros_for(X),
        epsilon=zeros_for(X),
        free_intercept=True,
        dual_sum=nu * total,
    )


def _threshold(offsets):
    """Return |ρ|."""
    return abs(offsets[0])


def _one_class_function(problem, solution):
    facts = {"obj": -solution.dual, "rho": solution.offsets[0]}
    return KernelFunction(solution.beta, -solution.offsets[0], facts)
