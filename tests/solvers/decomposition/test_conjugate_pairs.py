"""The two ways in which a working set is optimised: conjugate pair steps, and Newton's on the free multipliers."""

import numpy as np
import pytest

from widemargin.solvers.decomposition.conjugate_pairs import Direction, optimise_block
from widemargin.solvers.decomposition.newton_on_free import newton_block
from widemargin.solvers.decomposition.pair_step import multipliers


class Block:
    """A convex problem: kernel matrix, linear term, box, and groups whose sums may not change."""

    def __init__(self, rng, n, n_groups, bound, dtype):
        points = rng.standard_normal((n, 5))
        distance = ((points[:, None] - points) ** 2).sum(axis=2)
        self.K = np.exp(-0.5 * distance).astype(dtype)
        self.p = rng.standard_normal(n)
        self.lower, self.upper = np.full(n, -bound), np.full(n, bound)
        self.ends = np.linspace(0, n, n_groups + 1).astype(int)

    def start(self):
        beta = np.zeros(len(self.p))
        return multipliers(beta, self.p.copy(), self.lower, self.upper, np.diag(self.K).astype(float), self.ends)

    def objective(self, beta):
        return 0.5 * beta @ self.K.astype(np.float64) @ beta + self.p @ beta

    def again(self, M):
        return multipliers(M.beta, M.F, self.lower, self.upper, M.diagonal, self.ends)

    def assert_kept(self, M):
        """What every step keeps true."""
        np.testing.assert_allclose(M.F, self.K.astype(np.float64) @ M.beta + self.p, atol=1e-9)
        sums = [M.beta[begin:end].sum() for begin, end in zip(self.ends[:-1], self.ends[1:], strict=True)]
        np.testing.assert_allclose(sums, 0.0, atol=1e-10 * max(1.0, np.abs(M.beta).sum()))
        assert (M.beta >= self.lower).all()
        assert (M.beta <= self.upper).all()


def violation(M):
    return np.max(M.levels[:, 1] - M.levels[:, 0])


@pytest.fixture(params=[np.float32, np.float64], ids=["single", "double"])
def block(request, rng):
    return lambda n_groups=1, bound=1e4: Block(rng, 60, n_groups, bound, request.param)


@pytest.mark.parametrize("n_groups", [1, 2])
@pytest.mark.parametrize("bound", [0.1, 1.0, 1e4])
def test_conjugate_steps_end_where_no_pair_violates_its_condition(block, n_groups, bound):
    problem = block(n_groups, bound)
    M, direction = problem.start(), Direction(*np.empty((2, 60)))
    fallen = optimise_block(problem.K, M, direction, 1e-6, 100_000)
    assert violation(problem.again(M)) <= 1e-6
    problem.assert_kept(M)
    assert fallen == pytest.approx(-problem.objective(M.beta), rel=1e-9)


def test_conjugate_steps_are_fewer_than_plain_ones(block, monkeypatch):
    problem = block()
    counts = {}
    for name, parallel in (("conjugate", 1e-3), ("plain", np.inf)):
        # A pair whose curvature is nowhere large enough moves alone; uncompiled, as the constant is compiled in.
        monkeypatch.setattr("widemargin.solvers.decomposition.conjugate_pairs._PARALLEL", parallel)
        M, direction = problem.start(), Direction(*np.empty((2, 60)))
        for counts[name] in range(1, 2000):
            optimise_block.py_func(problem.K, M, direction, 1e-3, 5)
            if violation(M) <= 1e-3:
                break
    assert counts["conjugate"] < 0.8 * counts["plain"]


@pytest.mark.parametrize("n_groups", [1, 2])
@pytest.mark.parametrize("bound", [0.1, 0.5, 1e4])
@pytest.mark.parametrize("steps", [0, 5, 100])
def test_newton_ends_at_the_minimum_wherever_it_begins(block, n_groups, bound, steps):
    problem = block(n_groups, bound)
    M, direction = problem.start(), Direction(*np.empty((2, 60)))
    optimise_block(problem.K, M, direction, 0.0, steps)
    before = problem.objective(M.beta)
    fallen = newton_block(problem.K, M, 1e-8)
    M = problem.again(M)
    problem.assert_kept(M)
    assert violation(M) <= 1e-6  # what single precision leaves of a positive definite matrix
    assert (np.abs(M.beta) == bound).any() == (bound < 1.0)
    assert fallen == pytest.approx(before - problem.objective(M.beta), rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("bound", [1.0, 1e3, 1e6, 1e9])
@pytest.mark.parametrize("n_groups", [1, 2])
def test_newton_solves_problems_of_low_rank_and_large_bounds(rng, n_groups, bound):
    # The kernel matrix of 60 rows with 4 features: pairs need a number of steps that grows with the bound.
    problem = Block(rng, 60, n_groups, bound, np.float64)
    points = rng.standard_normal((60, 4))
    problem.K[:] = points @ points.T
    M = problem.start()
    newton_block(problem.K, M, 1e-8)
    M = problem.again(M)
    rounding = 1e-15 * np.abs(M.beta).sum() * problem.K.max()
    assert violation(M) <= max(1e-8, rounding)
    assert (np.abs(M.beta) == bound).sum() > 40


def test_newton_never_makes_an_indefinite_kernel_worse(block):
    problem = block()
    problem.K[:] = -problem.K
    M = problem.start()
    before = problem.objective(M.beta)
    fallen = newton_block(problem.K, M, 1e-8)
    assert fallen >= 0.0
    assert problem.objective(M.beta) == pytest.approx(before - fallen, rel=1e-9, abs=1e-9)


def test_newton_takes_a_kernel_of_zeros(block):
    problem = block(bound=1.0)
    problem.K[:] = 0.0
    M = problem.start()
    newton_block(problem.K, M, 1e-8)
    assert violation(problem.again(M)) <= 0.0
