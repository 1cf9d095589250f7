"""Starts of one-class machines from a sample of their rows: feasible, near the solution, and within limits."""

import time

import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel
from tests.solvers.decomposition.test_kernel_contract import FORMULATIONS, check_certificate, make

from widemargin.kernels.functions import Kernel
from widemargin.kernels.rows import KernelRows
from widemargin.problems.one_class import one_class
from widemargin.solvers.contract import KernelSettings, Status
from widemargin.solvers.decomposition import large_parts, sampled_start, whole_matrix
from widemargin.solvers.decomposition.svmlight import Decomposition
from widemargin.solvers.registry import KERNEL_SOLVERS

GAMMA, SETTINGS = 0.4, KernelSettings(tol=1e-6)
svmlight = KERNEL_SOLVERS["svmlight"]


@pytest.fixture(autouse=True)
def small_samples(monkeypatch):
    """Solve problems of 300 rows from a sample, and none by its whole matrix."""
    monkeypatch.setattr(whole_matrix, "is_small", lambda problem, settings: False)
    monkeypatch.setattr(sampled_start, "_MIN_ROWS", 300)
    monkeypatch.setattr(sampled_start, "_MIN_NONZERO", 0)


@pytest.fixture
def without_sample(monkeypatch):
    """Return a function that solves a problem without a sample."""

    def solve(problem, settings):
        with monkeypatch.context() as patch:
            patch.setattr(sampled_start, "_MIN_ROWS", np.inf)
            return svmlight(problem, settings)

    return solve


def stated(rng, n_rows, nu=0.1, cost=None, n_jobs=None):
    X = rng.standard_normal((n_rows, 2))
    cost = rng.choice([0.0, 0.5, 2.0], n_rows) if cost is None else cost
    K = KernelRows(Kernel("rbf", gamma=GAMMA), X, dtype=np.float64, n_jobs=n_jobs)
    return one_class(K, cost, nu), rbf_kernel(X, gamma=GAMMA)


@pytest.mark.parametrize("nu", [1e-6, 0.1, 0.7, 1.0])
@pytest.mark.parametrize("n_rows", [310, 3000])
def test_the_start_is_feasible(n_rows, nu, rng):
    problem, _ = stated(rng, n_rows, nu)
    start, _ = sampled_start.sampled_start(problem, SETTINGS, Decomposition)
    assert (start.beta >= problem.lower).all()
    assert (start.beta <= problem.upper).all()
    assert start.beta.sum() == pytest.approx(problem.start.sum(), rel=1e-12)
    assert start.n_computed > 0.0


def test_most_dual_variables_start_at_their_optimal_values(rng):
    problem, _ = stated(rng, 3000, cost=np.ones(3000))
    start, _ = sampled_start.sampled_start(problem, SETTINGS, Decomposition)
    optimal = svmlight(problem, SETTINGS).beta
    differ, differ_without_sample = (np.count_nonzero(beta != optimal) for beta in (start.beta, problem.start))
    assert differ < 0.25 * differ_without_sample


@pytest.mark.parametrize("min_rows_in_parts", [300, np.inf])
@pytest.mark.parametrize("nu", [1e-6, 0.1, 1.0])
def test_the_judge_confirms_the_certificate(nu, min_rows_in_parts, rng, monkeypatch, without_sample):
    monkeypatch.setattr(large_parts, "_MIN_ROWS", min_rows_in_parts)
    problem, K = stated(rng, 1000, nu)
    solution, other = svmlight(problem, SETTINGS), without_sample(problem, SETTINGS)
    assert solution.status is Status.CONVERGED
    check_certificate(problem, K, solution)
    assert solution.dual == pytest.approx(other.dual, rel=1e-6)


def test_fewer_kernel_rows_are_computed(rng, without_sample):
    problem, _ = stated(rng, 4000, nu=0.5)
    assert svmlight(problem, SETTINGS).n_computed < 0.9 * without_sample(problem, SETTINGS).n_computed


def test_the_number_of_threads_changes_no_bit(rng):
    seed = rng.integers(1 << 30)
    problems = [stated(np.random.default_rng(seed), 3000, n_jobs=n_jobs)[0] for n_jobs in (1, 2)]
    np.testing.assert_array_equal(*[svmlight(problem, SETTINGS).beta for problem in problems])


def test_the_vertex_has_the_smallest_gradients_at_their_upper_bounds():
    K = KernelRows(Kernel("linear"), np.eye(4), dtype=np.float64)
    problem = one_class(K, np.array([1.0, 2.0, 1.0, 4.0]), 0.5)
    np.testing.assert_array_equal(sampled_start._vertex(problem, np.array([3.0, 1.0, 2.0, 4.0]), 4.0), [1, 2, 1, 0])
    np.testing.assert_array_equal(sampled_start._vertex(problem, np.array([3.0, 1.0, 4.0, 2.0]), 4.0), [0, 2, 0, 2])


@pytest.mark.parametrize("formulation", sorted(set(FORMULATIONS) - {"one_class"}))
def test_other_machines_have_no_sample(formulation, rng):
    X, sign, cost = make(rng, 500)
    problem = FORMULATIONS[formulation](KernelRows(Kernel("rbf", gamma=GAMMA), X), X, sign, cost)
    assert sampled_start.sampled_start(problem, SETTINGS, Decomposition) == (None, SETTINGS)


@pytest.mark.parametrize(("n_support_vectors", "expected"), [(25, False), (26, True)])
def test_a_machine_of_few_support_vectors_has_no_sample(n_support_vectors, expected, rng, monkeypatch):
    monkeypatch.setattr(sampled_start, "_MIN_NONZERO", 26)
    problem, _ = stated(rng, 400, nu=n_support_vectors / 400, cost=np.ones(400))
    start, _ = sampled_start.sampled_start(problem, SETTINGS, Decomposition)
    assert (start is not None) == expected


def test_a_precomputed_matrix_has_no_sample(rng):
    K = KernelRows(Kernel("precomputed"), rbf_kernel(rng.standard_normal((500, 3))))
    assert sampled_start.sampled_start(one_class(K, np.ones(500), 0.1), SETTINGS, Decomposition)[0] is None


def test_the_time_of_the_sample_is_part_of_the_limit(rng, monkeypatch):
    problem, _ = stated(rng, 1000)
    settings = KernelSettings(tol=1e-9, max_seconds=0.0)
    assert sampled_start.sampled_start(problem, settings, Decomposition)[0] is None
    assert svmlight(problem, settings).status is Status.MAX_SECONDS
    monkeypatch.setattr(sampled_start, "_from_sample", lambda *arguments: time.sleep(0.02))
    _, left = sampled_start.sampled_start(problem, KernelSettings(max_seconds=100.0), Decomposition)
    assert 0.0 < left.max_seconds <= 99.98


def test_ctrl_c_in_the_sample_leaves_a_true_certificate(rng, monkeypatch):
    problem, K = stated(rng, 1000)

    def interrupted(method):
        raise KeyboardInterrupt

    monkeypatch.setattr(Decomposition, "iterate", interrupted)
    settings = KernelSettings(tol=1e-9)
    solution = svmlight(problem, settings)
    assert solution.status is Status.INTERRUPTED
    check_certificate(problem, K, solution)
