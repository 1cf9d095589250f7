"""The low-rank factor of a kernel matrix, and problems with a large C that are solved by it."""

import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel

from widemargin.kernels.functions import Kernel
from widemargin.kernels.rows import KernelRows
from widemargin.problems.certificates import kernel_violation, relative_gap
from widemargin.problems.classification import c_svc
from widemargin.problems.regression import eps_svr, nu_svr
from widemargin.solvers.contract import KernelSettings, Status
from widemargin.solvers.decomposition import svmlight
from widemargin.solvers.decomposition.active_set import ActiveSet
from widemargin.solvers.decomposition.low_rank import LowRankFactor, WholeProblem
from widemargin.solvers.decomposition.newton_on_free import newton_change

GAMMA = 0.5


@pytest.fixture
def X(rng):
    """300 rows of 2 features, whose kernel matrix has a rank of about 50."""
    return rng.uniform(-1.0, 1.0, (300, 2))


def kernel_rows(X, dtype=np.float64, gamma=GAMMA):
    return KernelRows(Kernel("rbf", gamma=gamma), X, dtype=dtype)


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-8), (np.float32, 1e-5)], ids=["float64", "float32"])
def test_the_factor_is_as_accurate_as_asked_for(dtype, tolerance, X):
    factor = LowRankFactor(kernel_rows(X, dtype), 200)
    assert factor.extend(1e-3)
    n_rough = factor.V.shape[1]
    assert factor.extend(tolerance)
    V = factor.V
    assert n_rough < V.shape[1] < 100
    np.testing.assert_allclose(V @ V.T, rbf_kernel(X, gamma=GAMMA), rtol=0.0, atol=2.0 * tolerance)


def test_a_rank_above_the_limit_gives_no_factor(X):
    assert not LowRankFactor(kernel_rows(X), 10).extend(1e-8)
    steep = LowRankFactor(kernel_rows(X, gamma=1e6), 290)
    assert not steep.extend(1e-8)
    assert steep.V.shape[1] < 200  # which was noticed early


@pytest.mark.parametrize("n_rows", [1, 2, 70])
def test_few_rows_and_equal_rows_have_a_factor(n_rows):
    factor = LowRankFactor(kernel_rows(np.ones((n_rows, 3))), n_rows)
    assert factor.extend(1e-8)
    np.testing.assert_allclose(factor.V @ factor.V.T, np.ones((n_rows, n_rows)), atol=1e-7)


def problems(K, X, rng):
    y, cost = np.sin(5.0 * X[:, 0]) + 0.3 * rng.standard_normal(len(X)), np.full(len(X), 1000.0)
    return {
        "eps_svr": lambda: eps_svr(K, y, cost, 0.1),
        "nu_svr": lambda: nu_svr(K, y, cost, 0.5),
        "c_svc": lambda: c_svc(K, np.where(y > 0.2, 1.0, -1.0), cost),
    }


@pytest.mark.parametrize("formulation", ["eps_svr", "nu_svr", "c_svc"])
def test_a_large_C_is_solved_at_once_for_all_dual_variables(formulation, X, rng, monkeypatch):
    monkeypatch.setattr(svmlight, "_WHOLE_PROBLEM", 0)
    monkeypatch.setattr(svmlight, "_SMALLEST_FIRST_WORKING_SET", 32)
    monkeypatch.setattr(svmlight, "_LARGEST_WORKING_SET", 32)
    monkeypatch.setattr(svmlight.Decomposition, "_max_pair_steps", 50)
    monkeypatch.setattr(svmlight, "_UNFINISHED_BEFORE_GROWTH", 1)
    n_changes = []
    changed = WholeProblem.changed

    def counted(self, *arguments):
        n_changes.append(1)
        return changed(self, *arguments)

    monkeypatch.setattr(WholeProblem, "changed", counted)
    problem = problems(kernel_rows(X), X, rng)[formulation]()
    solution = svmlight.svmlight(problem, KernelSettings(tol=1e-3))
    assert n_changes
    assert solution.status is Status.CONVERGED
    assert solution.n_iter < 100
    assert kernel_violation(problem, rbf_kernel(X, gamma=GAMMA), solution.beta) <= 1.001e-3


def test_a_kernel_that_may_be_indefinite_is_not_factored(X, rng):
    K = KernelRows(Kernel("sigmoid", gamma=0.8, coef0=-0.5), X, dtype=np.float64)
    assert not WholeProblem(problems(K, X, rng)["eps_svr"](), 200.0, bool).is_possible


def test_a_change_of_all_dual_variables_ends_when_the_time_is_over(X, rng):
    problem = problems(kernel_rows(X), X, rng)["eps_svr"]()
    state = ActiveSet(problem, KernelSettings(), None, 300)
    violation = state.scan()
    assert WholeProblem(problem, 200.0, lambda: True).changed(state, violation, 1e-3) is None
    asked = []
    whole = WholeProblem(problem, 200.0, lambda: len(asked) > 3 or asked.append(1))
    assert whole.changed(state, violation, 1e-3) is None or len(asked) == 4


def test_newton_steps_end_when_the_time_is_over(X, rng):
    problem = problems(kernel_rows(X), X, rng)["eps_svr"]()
    factor = LowRankFactor(problem.K, 200)
    assert factor.extend(1e-8)
    bounds = problem.lower - problem.start, problem.upper - problem.start
    options = {"size_of_beta": 0.0, "goal": 1e-3, "max_steps": 100}

    def change(n_steps):
        left = iter([False] * n_steps)
        ask = lambda: next(left, True)  # noqa: E731
        return newton_change(factor.V, problem.row, problem.linear, bounds, problem.ends, **options, is_over=ask)

    assert not change(0).any()
    assert change(1000).any()


def test_a_solver_that_rounding_ends_has_a_gap_of_exact_sums(rng):
    X = rng.standard_normal((2100, 3))  # whose sums have more products than are exact without need
    K, y = KernelRows(Kernel("linear"), X, dtype=np.float64), X[:, 0] + 0.5 * rng.standard_normal(2100)
    solution = svmlight.svmlight(eps_svr(K, y, np.full(2100, 1e9), 0.1), KernelSettings(tol=1e-9))
    assert solution.status is Status.STALLED
    assert relative_gap(solution.primal, solution.dual) < 0.1
