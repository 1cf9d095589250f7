"""Newton steps on all free dual variables at once, and the Cholesky factor that they take."""

import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel

from widemargin.kernels.functions import Kernel
from widemargin.kernels.rows import KernelRows
from widemargin.problems.certificates import kernel_violation
from widemargin.problems.classification import c_svc
from widemargin.problems.regression import eps_svr, nu_svr
from widemargin.solvers.contract import KernelSettings, Status
from widemargin.solvers.decomposition import free_block, svmlight
from widemargin.solvers.decomposition.active_set import ActiveSet
from widemargin.solvers.decomposition.free_block import FreeBlock, factorise

GAMMA = 5.0


@pytest.fixture
def X(rng):
    """300 rows of 6 features, whose kernel matrix has full rank."""
    return rng.uniform(-1.0, 1.0, (300, 6))


def kernel_rows(X, dtype=np.float64):
    return KernelRows(Kernel("rbf", gamma=GAMMA), X, dtype=dtype)


def problems(K, X, rng):
    y, cost = np.sin(5.0 * X[:, 0]) + 0.3 * rng.standard_normal(len(X)), np.full(len(X), 3.0)
    return {
        "eps_svr": lambda: eps_svr(K, y, cost, 0.1),
        "nu_svr": lambda: nu_svr(K, y, cost, 0.5),
        "c_svc": lambda: c_svc(K, np.where(y > 0.2, 1.0, -1.0), cost),
    }


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("size", [1, 64, 65, 300])
def test_the_factor_is_that_of_cholesky(dtype, size, X, monkeypatch):
    monkeypatch.setattr(free_block, "_COLUMNS_PER_BLOCK", 64)
    K = rbf_kernel(X[:size], gamma=GAMMA).astype(dtype)
    factor = K.copy()
    assert factorise(factor)
    np.testing.assert_allclose(np.tril(factor), np.linalg.cholesky(K), rtol=0.0, atol=1e3 * np.finfo(dtype).eps)


def test_a_matrix_that_is_not_positive_definite_has_no_factor(X):
    K = rbf_kernel(X, gamma=GAMMA)
    K[200, 200] = -1.0
    assert not factorise(K)
    assert not factorise(np.full((3, 3), np.nan))


def test_no_factor_is_computed_when_the_time_is_over(X):
    assert not factorise(rbf_kernel(X, gamma=GAMMA), lambda: True)


@pytest.fixture
def small_working_sets(monkeypatch):
    monkeypatch.setattr(svmlight, "_WHOLE_PROBLEM", 0)
    monkeypatch.setattr(svmlight, "_SMALLEST_FIRST_WORKING_SET", 32)
    monkeypatch.setattr(svmlight, "_LARGEST_WORKING_SET", 32)
    monkeypatch.setattr(svmlight, "_FACTORISATIONS_BEFORE_ROUND", 0.0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("formulation", ["eps_svr", "nu_svr", "c_svc"])
@pytest.mark.usefixtures("small_working_sets")
def test_many_free_dual_variables_are_optimised_at_once(formulation, dtype, X, rng, monkeypatch):
    decreases = []
    change = FreeBlock.change

    def counted(self, chosen):
        before = self._state.objective()
        decrease = change(self, chosen)
        self._state.scan()
        np.testing.assert_allclose(before - self._state.objective(), decrease, rtol=1e-6, atol=1e-12)
        decreases.append(decrease)
        return decrease

    monkeypatch.setattr(FreeBlock, "change", counted)
    problem = problems(kernel_rows(X, dtype), X, rng)[formulation]()
    solution = svmlight.svmlight(problem, KernelSettings(tol=1e-5))
    assert max(decreases) > 0.0
    assert solution.status is Status.CONVERGED
    assert kernel_violation(problem, rbf_kernel(X, gamma=GAMMA), solution.beta) <= 1e-5 + 3e3 * np.finfo(dtype).eps


@pytest.mark.usefixtures("small_working_sets")
def test_equal_rows_are_no_obstacle(X, rng):
    X = np.repeat(X[:100], 3, axis=0)
    problem = problems(kernel_rows(X), X, rng)["eps_svr"]()
    solution = svmlight.svmlight(problem, KernelSettings(tol=1e-5))
    assert solution.status is Status.CONVERGED
    assert kernel_violation(problem, rbf_kernel(X, gamma=GAMMA), solution.beta) <= 1.001e-5


def test_nothing_changes_when_the_time_is_over(X, rng):
    problem = problems(kernel_rows(X), X, rng)["eps_svr"]()
    beta = np.clip(rng.standard_normal(600), problem.lower, problem.upper)
    beta[:300] *= -beta[300:].sum() / beta[:300].sum()
    state = ActiveSet(problem, KernelSettings(), beta, 300)
    state.scan()
    before = state.beta.copy()
    chosen = np.flatnonzero((before > state.lower) & (before < state.upper))
    assert len(chosen)
    assert FreeBlock(state, lambda: True).change(chosen) == 0.0
    np.testing.assert_array_equal(state.beta, before)


def test_a_factor_that_does_not_fit_into_the_memory_is_not_tried(X, rng):
    problem = problems(kernel_rows(X), X, rng)["eps_svr"]()
    beta = np.where(problem.upper > 0.0, 1e-3, 0.0)
    beta[300:] = -1e-3
    for megabytes, fits in [(0.01, False), (200.0, True)]:
        state = ActiveSet(problem, KernelSettings(cache_size=megabytes), beta, 300)
        state.scan()
        assert (FreeBlock(state, bool).chosen() is not None) == fits
