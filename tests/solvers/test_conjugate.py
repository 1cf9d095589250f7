"""The two ways in which a working set is optimised: conjugate pair steps, and Newton's on the free multipliers."""

import numpy as np
import pytest

from widemargin.solvers.conjugate import Direction, optimise_block
from widemargin.solvers.freeset import newton_block
from widemargin.solvers.pairs import multipliers


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
    fallen, bounds_met = optimise_block(problem.K, M, direction, 1e-6, 100_000)
    assert violation(problem.again(M)) <= 1e-6
    problem.assert_kept(M)
    assert fallen == pytest.approx(-problem.objective(M.beta), rel=1e-9)
    assert (bounds_met > 0) == (bound < 1e4)


def test_conjugate_steps_are_fewer_than_plain_ones(block, monkeypatch):
    problem = block()
    counts = {}
    for name, parallel in (("conjugate", 1e-3), ("plain", np.inf)):
        # A pair whose curvature is nowhere large enough moves alone; uncompiled, as the constant is compiled in.
        monkeypatch.setattr("widemargin.solvers.conjugate._PARALLEL", parallel)
        M, direction = problem.start(), Direction(*np.empty((2, 60)))
        for counts[name] in range(1, 2000):
            optimise_block.py_func(problem.K, M, direction, 1e-3, 5)
            if violation(M) <= 1e-3:
                break
    assert counts["conjugate"] < 0.8 * counts["plain"]


@pytest.mark.parametrize("n_groups", [1, 2])
def test_newton_settles_free_multipliers_at_once(block, n_groups):
    problem = block(n_groups)
    M, direction = problem.start(), Direction(*np.empty((2, 60)))
    before, _ = optimise_block(problem.K, M, direction, 0.0, 100)
    assert violation(M) > 1e-2
    fallen = newton_block(problem.K, M)
    M = problem.again(M)
    problem.assert_kept(M)
    assert violation(M) < 1e-2
    assert fallen > 0.0
    assert before + fallen == pytest.approx(-problem.objective(M.beta), rel=1e-9)


def test_newton_stops_at_bounds_and_goes_on_without_who_met_them(block):
    problem = block(bound=0.5)
    M, direction = problem.start(), Direction(*np.empty((2, 60)))
    optimise_block(problem.K, M, direction, 0.0, 5)
    before = problem.objective(M.beta)
    fallen = newton_block(problem.K, M)
    problem.assert_kept(M)
    assert (np.abs(M.beta) == 0.5).any()
    assert problem.objective(M.beta) == pytest.approx(before - fallen, rel=1e-9)
    assert fallen > 0.0


def test_newton_leaves_an_indefinite_kernel_alone(block):
    problem = block()
    problem.K[:] = -problem.K
    M = problem.start()
    M.beta[:] = np.linspace(-1, 1, 60)
    before = M.beta.copy()
    assert newton_block(problem.K, M) == 0.0
    np.testing.assert_array_equal(M.beta, before)
