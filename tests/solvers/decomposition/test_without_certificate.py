"""Solutions of kernel problems of which nobody asks for the duality gap."""

import numpy as np
import pytest

from widemargin.kernels.functions import Kernel
from widemargin.kernels.rows import KernelRows
from widemargin.problems.classification import c_svc
from widemargin.solvers.contract import KernelSettings, Status
from widemargin.solvers.decomposition.whole_matrix import svmlight

EXACT = KernelSettings(tol=1e-8)


def overlapping(rng, n_rows=200):
    """Return the kernel matrix and the signs of rows of two classes that overlap."""
    X = rng.standard_normal((n_rows, 3))
    sign = np.where(X[:, 0] + 0.5 * rng.standard_normal(n_rows) > 0.1, 1.0, -1.0)
    values = KernelRows(Kernel("rbf", gamma=0.5), X, dtype=np.float64).whole()
    return KernelRows(Kernel("precomputed"), values), sign


class TestWithoutCertificate:
    @pytest.mark.parametrize("C", [1.0, 1e4])
    def test_the_violation_is_within_the_tolerance(self, C, rng):
        K, sign = overlapping(rng)
        problem = c_svc(K, sign, np.full(200, C))
        solution = svmlight(problem, KernelSettings(certify=False, max_iter=10**6))
        F = K.held @ solution.beta + problem.linear
        rises, falls = solution.beta < problem.upper, solution.beta > problem.lower
        assert solution.status is Status.CONVERGED
        assert 0.0 < F[falls].max() - F[rises].min() <= 1e-3 * (1.0 + 1e-6)

    def test_objectives_are_bounds_all_the_same(self, rng):
        K, sign = overlapping(rng)
        problem = c_svc(K, sign, np.full(200, 100.0))
        rough, exact = svmlight(problem, KernelSettings(certify=False, max_iter=10**6)), svmlight(problem, EXACT)
        assert rough.dual <= exact.primal
        assert exact.dual <= rough.primal

    def test_a_gap_that_is_asked_for_is_reached(self, rng):
        K, sign = overlapping(rng)
        settings = KernelSettings(certify=False, stopping="gap", tol=1e-5)
        assert svmlight(c_svc(K, sign, np.full(200, 100.0)), settings).gap <= 1e-5
