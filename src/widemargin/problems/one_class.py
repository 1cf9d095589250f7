"""The support of a distribution: a region that holds all but a fraction ν of the rows.

    minimise ½|w|² − ρ ν Σ weightᵢ + Σ weightᵢ max(0, ρ − ⟨w, φ(xᵢ)⟩)

The scale is LIBSVM's: dual variables from 0 to the row's weight, which sum to ν Σ weight.
"""

import numpy as np

from widemargin.problems.formulations import KernelFunction, KernelQP, filled_up


def one_class(K, weight, nu):
    """Rows are inside where Σ betaᵢ K(xᵢ, x) is at least the offset ρ; at most the fraction ν is outside."""
    n_rows = len(weight)
    return KernelQP(
        K,
        row=np.arange(n_rows),
        linear=np.zeros(n_rows),
        lower=np.zeros(n_rows),
        upper=weight,
        ends=np.array([0, n_rows]),
        start=filled_up(weight, nu * weight.sum()),
        reading=_read,
        unit=_threshold,
    )


def _threshold(offsets):
    return abs(offsets[0])


def _read(problem, solution):
    facts = {"obj": -solution.dual, "rho": solution.offsets[0]}
    return KernelFunction(solution.beta, -solution.offsets[0], facts)
