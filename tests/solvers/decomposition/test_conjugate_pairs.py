"""The methods for a working set: conjugate pair steps, Newton steps, and a single one on the free dual variables."""

from itertools import pairwise

import numpy as np
import pytest

from widemargin.kernels.single_rows import ready_rows
from widemargin.solvers.decomposition import pair_step
from widemargin.solvers.decomposition.conjugate_pairs import no_direction, optimise_block
from widemargin.solvers.decomposition.free_step import _step_on_free, free_workspace, optimise_finely
from widemargin.solvers.decomposition.newton_on_free import newton_block
from widemargin.solvers.decomposition.pair_step import dual_variables


class Problem:
    """A convex problem: kernel matrix, linear term, bounds, and groups with fixed sums."""

    def __init__(self, rng, n, n_groups, bound, dtype):
        points = rng.standard_normal((n, 5))
        distance = ((points[:, None] - points) ** 2).sum(axis=2)
        self.K = np.exp(-0.5 * distance).astype(dtype)
        self.p = rng.standard_normal(n)
        self.lower, self.upper = np.full(n, -bound), np.full(n, bound)
        self.ends = np.linspace(0, n, n_groups + 1).astype(int)

    def start(self):
        beta = np.zeros(len(self.p))
        return dual_variables(beta, self.p.copy(), self.lower, self.upper, np.diag(self.K).astype(float), self.ends)

    def objective(self, beta):
        return 0.5 * beta @ self.K.astype(np.float64) @ beta + self.p @ beta

    def scanned(self, D):
        return dual_variables(D.beta, D.F, self.lower, self.upper, D.diagonal, self.ends)

    def check_invariants(self, D):
        """Check the gradient, the group sums and the bounds, which every step keeps true."""
        np.testing.assert_allclose(D.F, self.K.astype(np.float64) @ D.beta + self.p, atol=1e-9)
        sums = [D.beta[begin:end].sum() for begin, end in zip(self.ends[:-1], self.ends[1:], strict=True)]
        np.testing.assert_allclose(sums, 0.0, atol=1e-10 * max(1.0, np.abs(D.beta).sum()))
        assert (D.beta >= self.lower).all()
        assert (D.beta <= self.upper).all()


def violation(D):
    return np.max(D.extremes[:, 1] - D.extremes[:, 0])


def steps_on(problem, D, tol, max_steps, function=optimise_block):
    """Take conjugate pair steps with all kernel rows; return what the function does, the decrease first."""
    rows, direction = ready_rows(len(D.beta), problem.K.dtype), no_direction(len(D.beta))
    return function(problem.K, rows, D, direction, tol, max_steps)


@pytest.fixture(params=[np.float32, np.float64], ids=["single", "double"])
def block(request, rng):
    return lambda n_groups=1, bound=1e4: Problem(rng, 60, n_groups, bound, request.param)


@pytest.mark.parametrize("n_groups", [1, 2])
@pytest.mark.parametrize("bound", [0.1, 1.0, 1e4])
def test_conjugate_steps_end_where_no_pair_violates_its_condition(block, n_groups, bound):
    problem = block(n_groups, bound)
    D = problem.start()
    decrease = steps_on(problem, D, 1e-6, 100_000)[0]
    assert violation(problem.scanned(D)) <= 1e-6
    problem.check_invariants(D)
    assert decrease == pytest.approx(-problem.objective(D.beta), rel=1e-9)


@pytest.mark.parametrize("n_groups", [1, 2])
def test_steps_that_wait_for_kernel_rows_end_where_those_with_all_rows_end(block, n_groups):
    problem = block(n_groups, 1.0)
    D, is_ready, n_missing = problem.start(), np.zeros(60, bool), 0
    rows = ready_rows(60, problem.K.dtype)._replace(is_ready=is_ready)
    K = np.full_like(problem.K, np.nan)  # a row that is used before it is ready makes F NaN
    while True:
        _, missing, _ = optimise_block(K, rows, D, no_direction(60), 1e-6, 100_000)
        if missing < 0:
            break
        assert not is_ready[missing]
        K[missing], is_ready[missing], n_missing = problem.K[missing], True, n_missing + 1
    assert violation(problem.scanned(D)) <= 1e-6
    problem.check_invariants(D)
    assert 0 < n_missing <= 60
    other = problem.start()
    steps_on(problem, other, 1e-6, 100_000)
    assert problem.objective(D.beta) == pytest.approx(problem.objective(other.beta), rel=1e-9)


def finely(problem, D, max_steps, max_finer_steps, n_free=60, tol=1e-2):
    """Take steps to a violation of `tol`, then to 1e-12; return the decrease and the row that is missing, -1."""
    rows, direction = ready_rows(len(D.beta), problem.K.dtype), no_direction(len(D.beta))
    limits = tol, max_steps, 1e-12, max_finer_steps
    return optimise_finely(problem.K, rows, D, direction, free_workspace(n_free), *limits)


@pytest.mark.parametrize("n_groups", [1, 2])
@pytest.mark.parametrize("bound", [0.1, 1.0, 1e4])
def test_steps_on_the_free_dual_variables_end_at_the_minimum_to_full_precision(rng, n_groups, bound):
    problem = Problem(rng, 60, n_groups, bound, np.float64)
    D = problem.start()
    decrease = finely(problem, D, 100_000, 3000)[0]
    assert violation(problem.scanned(D)) <= 1e-11
    problem.check_invariants(D)
    assert decrease == pytest.approx(-problem.objective(D.beta), rel=1e-9)


def test_steps_on_the_free_dual_variables_save_pair_steps(rng):
    problem = Problem(rng, 60, 2, 1.0, np.float64)
    with_step, without = problem.start(), problem.start()
    finely(problem, with_step, 100_000, 1, tol=1e-5)
    finely(problem, without, 100_000, 1, n_free=0, tol=1e-5)
    assert violation(problem.scanned(with_step)) <= 1e-11
    assert violation(problem.scanned(without)) > 1e-8


@pytest.mark.parametrize("bound", [1.0, 1e300])
def test_dependent_rows_are_left_to_pair_steps(rng, bound):
    problem = Problem(rng, 60, 1, bound, np.float64)
    problem.K[:] = 1.0
    D = problem.start()
    finely(problem, D, 5, 100)
    assert np.isfinite(D.beta).all()
    assert (np.abs(D.beta) <= bound).all()


@pytest.mark.parametrize("n_groups", [1, 2, 3])
@pytest.mark.parametrize("value", [np.nan, np.inf, -1e300, 1e-310])
def test_any_numbers_are_safe(rng, n_groups, value):
    problem = Problem(rng, 60, n_groups, 1.0, np.float64)
    for array in (problem.K, problem.p):
        array.ravel()[::7] = value
        D = problem.start()
        _, missing, _ = finely(problem, D, 50, 500)
        assert missing == -1
        assert not ((D.beta < -1.0) | (D.beta > 1.0)).any()


def test_conjugate_steps_are_fewer_than_plain_ones(block, monkeypatch):
    problem = block()
    counts = {}
    for name, ratio in (("conjugate", 1e-3), ("plain", np.inf)):
        # With an infinite ratio all steps are plain. Uncompiled, since compiled code contains the constant's value.
        monkeypatch.setattr("widemargin.solvers.decomposition.conjugate_pairs._MIN_CURVATURE_RATIO", ratio)
        D = problem.start()
        for counts[name] in range(1, 2000):
            steps_on(problem, D, 1e-3, 5, optimise_block.py_func)
            if violation(D) <= 1e-3:
                break
    assert counts["conjugate"] < 0.8 * counts["plain"]


@pytest.mark.parametrize("n_groups", [1, 2])
@pytest.mark.parametrize("bound", [0.1, 0.5, 1e4])
@pytest.mark.parametrize("steps", [0, 5, 100])
def test_newton_ends_at_the_minimum_wherever_it_begins(block, n_groups, bound, steps):
    problem = block(n_groups, bound)
    D = problem.start()
    steps_on(problem, D, 0.0, steps)
    before = problem.objective(D.beta)
    decrease = newton_block(problem.K, D, 1e-8)
    D = problem.scanned(D)
    problem.check_invariants(D)
    assert violation(D) <= 1e-6  # what single precision leaves of a positive definite matrix
    assert (np.abs(D.beta) == bound).any() == (bound < 1.0)
    assert decrease == pytest.approx(before - problem.objective(D.beta), rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("bound", [1.0, 1e3, 1e6, 1e9])
@pytest.mark.parametrize("n_groups", [1, 2])
def test_newton_solves_problems_of_low_rank_and_large_bounds(rng, n_groups, bound):
    # The kernel matrix of 60 rows with 4 features: pairs need a number of steps that grows with the bound.
    problem = Problem(rng, 60, n_groups, bound, np.float64)
    points = rng.standard_normal((60, 4))
    problem.K[:] = points @ points.T
    D = problem.start()
    newton_block(problem.K, D, 1e-8)
    D = problem.scanned(D)
    rounding = 1e-15 * np.abs(D.beta).sum() * problem.K.max()
    assert violation(D) <= max(1e-8, rounding)
    assert (np.abs(D.beta) == bound).sum() > 40


def test_newton_never_makes_an_indefinite_kernel_worse(block):
    problem = block()
    problem.K[:] = -problem.K
    D = problem.start()
    before = problem.objective(D.beta)
    decrease = newton_block(problem.K, D, 1e-8)
    assert decrease >= 0.0
    assert problem.objective(D.beta) == pytest.approx(before - decrease, rel=1e-9, abs=1e-9)


def test_newton_takes_a_kernel_of_zeros(block):
    problem = block(bound=1.0)
    problem.K[:] = 0.0
    D = problem.start()
    newton_block(problem.K, D, 1e-8)
    assert violation(problem.scanned(D)) <= 0.0


@pytest.mark.parametrize("n_groups", [1, 2])
def test_dual_variables_that_share_kernel_rows_take_the_same_steps(rng, n_groups):
    problem = Problem(rng, 60, n_groups, 0.5, np.float64)
    K, every = problem.K[:30, :30].copy(), np.arange(60) % 30
    problem.K = K[np.ix_(every, every)]
    results = []
    for block in (problem.K, K):
        D = problem.start()
        rows, direction = ready_rows(len(block), block.dtype), no_direction(60)
        found = optimise_finely(block, rows, D, direction, free_workspace(60), 1e-2, 10_000, 1e-9, 3000)
        problem.check_invariants(D)
        results.append((*found[1:], *D.beta, *D.F))
    np.testing.assert_allclose(*results, rtol=0.0, atol=1e-9)


def test_newton_steps_of_dual_variables_that_share_kernel_rows_are_those_of_the_whole_matrix(rng):
    problem = Problem(rng, 60, 1, 1e4, np.float64)
    K, every = problem.K[:30, :30].copy(), np.arange(60) % 30
    problem.K, problem.p[30:] = K[np.ix_(every, every)], problem.p[:30] + 0.1
    whole, shared = problem.start(), problem.start()
    assert newton_block(K, shared, 1e-8) == pytest.approx(newton_block(problem.K, whole, 1e-8), rel=1e-9)
    np.testing.assert_allclose(shared.F, whole.F, rtol=0.0, atol=1e-9)


def test_a_step_on_the_free_dual_variables_that_would_leave_the_bounds_ends_at_them(rng):
    problem = Problem(rng, 60, 1, 0.3, np.float64)
    D = problem.start()
    steps_on(problem, D, 1.0, 100_000)
    before = D.beta.copy()
    assert _step_on_free(problem.K, D, free_workspace(60)) > 0.0
    problem.check_invariants(D)
    is_free_before, is_at_bound = np.abs(before) < 0.3, np.abs(D.beta) == 0.3
    assert (is_free_before & is_at_bound).any()
    free = np.abs(D.beta) < 0.3
    np.testing.assert_allclose(D.F[free], D.F[free].mean(), atol=1e-12)  # the minimum over those that are left


@pytest.mark.parametrize("sizes", [(1, 700), (300, 300), (0, 513)])
def test_extremes_and_first_indices_are_those_of_numpy(sizes, rng):
    ends = np.cumsum([0, *sizes])
    F = np.round(rng.standard_normal(ends[-1]), 1) * rng.choice([1e-300, 1.0, 1e30], ends[-1])  # with repetitions, ±0
    beta = rng.choice([0.0, 0.5, 1.0], ends[-1])
    D = pair_step.dual_variables(beta, F.copy(), np.zeros(len(F)), np.ones(len(F)), np.ones(len(F)), ends)
    for group, (begin, end) in enumerate(pairwise(ends)):
        rising = np.where(beta < 1.0, F, np.float64(pair_step.HUGE))[begin:end]
        falling = np.where(beta > 0.0, F, -np.float64(pair_step.HUGE))[begin:end]
        assert D.extremes[group, 0] == rising.min(initial=np.float64(pair_step.HUGE))
        assert D.extremes[group, 1] == falling.max(initial=-np.float64(pair_step.HUGE))
        if (beta[begin:end] < 1.0).any():
            i = pair_step.select_i(D, group)
            assert i == begin + np.argmin(rising)
            gain, j = pair_step.select_j(D, group, i, np.zeros(len(F)))
            assert gain == D.gain[begin:end].max()
            assert j == begin + np.argmax(D.gain[begin:end]) or gain == 0.0
