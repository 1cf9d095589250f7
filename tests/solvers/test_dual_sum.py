"""Problems whose dual variables have a fixed sum other than zero: linear one-class machines, by every solver."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from scipy.sparse import csr_array

from widemargin.data.matrix import Matrix
from widemargin.problems.certificates import certify, dual, primal, relative_gap
from widemargin.problems.classification import hinge, squared_hinge
from widemargin.problems.formulations import FixedSumQP
from widemargin.problems.intercept import best_intercept
from widemargin.problems.one_class import linear_one_class
from widemargin.solvers.contract import Settings, Status
from widemargin.solvers.finishing import finishing
from widemargin.solvers.registry import FIXED_SUM_SOLVERS, names_of, specs_of
from widemargin.solvers.spec import Start

SOLVERS = names_of(FixedSumQP)
TOL = 1e-6


def solved(problem, solver, **settings):
    by_weights = specs_of(FixedSumQP)[solver].starts_from is Start.WEIGHTS
    solve = finishing(FIXED_SUM_SOLVERS[solver], solver, by_weights)
    return solve(problem, Settings(**{"tol": TOL, "max_iter": 5000, **settings}))


def rows_beside_the_origin(rng, n_rows, n_columns=6, shift=1.0):
    return rng.standard_normal((n_rows, n_columns)) + shift


def optimum_by_enumeration(X, weight, total):
    """Return the optimum, −½|X'beta|², by trying every division of the rows into those at a bound and free ones."""
    best, n_rows = np.inf, len(weight)
    for place in product((0, 1, 2), repeat=n_rows):
        place = np.array(place)
        beta, free = np.where(place == 1, weight, 0.0), np.flatnonzero(place == 2)
        if len(free):
            # Stationary over the free ones, with their sum fixed.
            G, n_free = X @ X.T, len(free)
            system = np.ones((n_free + 1, n_free + 1))
            system[:n_free, :n_free], system[-1, -1] = G[np.ix_(free, free)], 0.0
            right = np.append(-G[free] @ beta, total - beta.sum())
            beta[free] = np.linalg.lstsq(system, right, rcond=None)[0][:n_free]
        is_feasible = abs(beta.sum() - total) < 1e-9 and (beta > -1e-9).all() and (beta < weight + 1e-9).all()
        if is_feasible:
            v = X.T @ beta
            best = min(best, 0.5 * float(v @ v))
    return -best


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("nu", [0.15, 0.5, 0.8, 1.0])
@pytest.mark.parametrize("shift", [0.6, 3.0])
def test_tiny_problems_agree_with_an_enumeration_of_all_divisions_of_the_rows(solver, nu, shift, rng):
    for _ in range(4):
        X, weight = rows_beside_the_origin(rng, 5, 2, shift), rng.uniform(0.5, 2.0, 5)
        wanted = optimum_by_enumeration(X, weight, nu * weight.sum())
        found = solved(linear_one_class(Matrix(X), weight, nu), solver)
        assert found.status is Status.CONVERGED
        assert found.primal == pytest.approx(wanted, rel=1e-6, abs=1e-8)
        assert found.dual <= wanted + 1e-9 * abs(wanted) + 1e-12 <= found.primal + 2e-9 * abs(wanted) + 1e-11


@pytest.mark.parametrize("container", [np.asarray, csr_array])
@pytest.mark.parametrize("nu", [0.01, 0.2, 0.7, 1.0])
@pytest.mark.parametrize("n_rows", [300, 6000, 40_000])
@pytest.mark.parametrize("solver", SOLVERS)
def test_the_certificate_is_that_of_the_judge(solver, n_rows, nu, container, rng):
    X = rows_beside_the_origin(rng, n_rows)
    problem = linear_one_class(Matrix(container(X)), rng.uniform(0.0, 2.0, n_rows), nu)
    found = solved(problem, solver)
    assert found.status is Status.CONVERGED
    assert found.gap <= TOL
    assert found.primal == pytest.approx(primal(problem, found.w, found.intercept), rel=1e-12)
    assert found.primal <= primal(problem, found.w, 1.001 * found.intercept) + 1e-12 * abs(found.primal)
    if found.beta is not None:
        judged = certify(problem, found.w, found.beta, found.intercept)
        assert found.dual <= judged.dual
        assert relative_gap(*judged, problem.objective_scale) <= TOL


def test_solvers_agree(rng, no_active_set):
    X = rows_beside_the_origin(rng, 4000, 12, 0.7)
    problem = linear_one_class(Matrix(X), rng.uniform(0.0, 2.0, 4000), 0.1)
    found = [solved(problem, solver) for solver in SOLVERS]
    assert max(one.dual for one in found) <= min(one.primal for one in found)
    assert [one.status for one in found] == [Status.CONVERGED] * len(found)


@pytest.mark.parametrize("solver", SOLVERS)
def test_the_optimum_is_zero_if_the_origin_is_among_the_rows(solver, rng):
    for n_rows in (50, 5000):
        X = rng.standard_normal((n_rows, 3))
        found = solved(linear_one_class(Matrix(X), np.ones(n_rows), 0.5), solver)
        assert found.status is Status.CONVERGED, n_rows
        assert found.primal == 0.0
        assert -1e-8 * (0.5 * n_rows) ** 2 <= found.dual <= 0.0
        assert not found.w.any()


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize(
    "X",
    [[[2.0, 1.0]], [[0.0, 0.0]], [[0.0, 0.0], [0.0, 0.0], [1.0, 2.0]], [[1.0, 2.0]] * 7,
     [[1e-160, 0.0], [1e-160, 1e-161]], [[1e12, 1e12], [1e12, 2e12], [3e12, 1e12]], [[1.0, 0.0], [-1.0, 0.0]]],
    ids=["one row", "a row of zeros", "rows of zeros", "the same row", "tiny", "large", "opposite"],
)  # fmt: skip
def test_degenerate_rows(X, solver):
    X = np.array(X)
    for nu in (1e-9, 0.3, 1.0):  # rounding of scores is amplified by 1 / nu
        problem = linear_one_class(Matrix(X), np.ones(len(X)), nu)
        found = solved(problem, solver)
        assert found.status is Status.CONVERGED, nu
        assert found.primal <= 0.0
        assert found.gap <= TOL


def test_rows_of_weight_zero_have_no_influence(rng):
    X, weight = rows_beside_the_origin(rng, 200), rng.integers(0, 3, 200).astype(float)
    for solver in SOLVERS:
        found = solved(linear_one_class(Matrix(X), weight, 0.2), solver)
        kept = weight > 0.0
        wanted = solved(linear_one_class(Matrix(X[kept]), weight[kept], 0.2), solver)
        np.testing.assert_allclose(found.w, wanted.w, rtol=1e-9)
        assert found.intercept == pytest.approx(wanted.intercept, rel=1e-9)


def test_the_best_intercept_is_a_weighted_quantile_of_the_scores(rng):
    X, weight = rows_beside_the_origin(rng, 101), rng.uniform(0.5, 1.5, 101)
    for nu in (0.05, 0.37, 0.9):
        problem, w = linear_one_class(Matrix(X), weight, nu), rng.standard_normal(6)
        b = best_intercept(problem, X @ w)
        outside, not_inside = weight[X @ w < -b].sum(), weight[X @ w <= -b].sum()
        assert outside <= nu * weight.sum() <= not_inside
        assert primal(problem, w, b) <= min(primal(problem, w, b + step) for step in (-1e-3, 1e-3))


def test_the_judge_refuses_dual_variables_with_another_sum(rng):
    problem = linear_one_class(Matrix(rows_beside_the_origin(rng, 20)), np.ones(20), 0.5)
    beta = np.full(20, 0.5)
    assert dual(problem, beta) < 0.0
    with pytest.raises(ValueError, match=r"beta sums to 10\.1, not to 10\.0"):
        dual(problem, beta + np.eye(20)[3] * 0.1)
    with pytest.raises(ValueError, match=r"beta sums to 1\.0, not to 0\.0"):
        dual(hinge(problem.X, np.ones(20), np.ones(20), free_intercept=True), np.eye(20)[0])


def test_a_sum_needs_a_free_intercept_and_hinges(rng):
    X, ones = Matrix(rows_beside_the_origin(rng, 20)), np.ones(20)
    for problem in (hinge(X, ones, ones), squared_hinge(X, ones, ones, free_intercept=True)):
        with pytest.raises(ValueError, match=r"dual_sum=1\.0 needs an intercept that is not penalised, and hinge"):
            replace(problem, dual_sum=1.0)


def test_a_sample_keeps_the_fraction_of_the_sum(rng):
    X, weight = rows_beside_the_origin(rng, 60), rng.uniform(0.0, 1.0, 60)
    problem = linear_one_class(Matrix(X), weight, 1.0)
    part = problem.of_rows(np.arange(20), Matrix(X[:20]))
    assert part.dual_sum == pytest.approx(part.upper.sum())
    assert problem.scaled(2.0).dual_sum == 2.0 * problem.dual_sum
    assert problem.checksum() != replace(problem, dual_sum=0.5 * problem.dual_sum).checksum()


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_run_without_an_iteration_has_a_true_certificate(solver, rng):
    X = rows_beside_the_origin(rng, 5000, 9)
    problem = linear_one_class(Matrix(X), np.ones(5000), 0.3)
    best = solved(problem, solver)
    found = solved(problem, solver, max_iter=1, max_seconds=0.0)
    assert found.dual <= best.primal
    assert best.dual <= found.primal
