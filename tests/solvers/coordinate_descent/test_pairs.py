"""`pairs`: the quantile, the pair steps, and what every step keeps true; its certificate is tested in test_dual_sum."""

import numpy as np
import pytest
from scipy.sparse import csr_array, random_array

from widemargin.data.matrix import Matrix
from widemargin.data.rows import row_distance
from widemargin.problems.certificates import certify, dual, relative_gap
from widemargin.problems.classification import hinge
from widemargin.problems.formulations import FixedSumQP
from widemargin.problems.one_class import linear_one_class
from widemargin.problems.quantile import weighted_quantile
from widemargin.solvers.contract import Settings, Status
from widemargin.solvers.coordinate_descent import pair_sweeps as module
from widemargin.solvers.coordinate_descent.pair_sweeps import SIZE_OF_STATE, Duals, Work
from widemargin.solvers.coordinate_descent.pairs import PAIRS, pairs
from widemargin.solvers.registry import check, specs_of

TOL = 1e-5


def problem_of(rng, n_rows=3000, n_columns=8, nu=0.1, container=np.asarray):
    X = rng.standard_normal((n_rows, n_columns)) + 0.8
    return linear_one_class(Matrix(container(X)), rng.uniform(0.0, 2.0, n_rows), nu)


def text_like(rng, n_rows=600, n_columns=4000, nu=0.1):
    X = abs(random_array((n_rows, n_columns), density=0.01, format="csr", rng=rng))
    return linear_one_class(Matrix(csr_array(X)), np.ones(n_rows), nu)


def fill_lowest(scores, weights, total):
    """Return the score at which weights of the lowest scores reach a total, and their Σ weight score, by sorting."""
    order = np.argsort(scores)
    taken = np.clip(total - np.concatenate([[0.0], np.cumsum(weights[order])[:-1]]), 0.0, weights[order])
    return scores[order][np.flatnonzero(taken)[-1]], taken @ scores[order]


@pytest.mark.parametrize("part", [1e-6, 0.01, 0.3, 0.9, 1.0])
def test_the_weighted_quantile_is_that_of_sorted_scores(part, rng):
    for n, decimals in ((1, 1), (2, 1), (50, 0), (1000, 8), (1000, 1), (20_000, 8), (20_000, 1)):
        scores, weights = np.round(rng.standard_normal(n), decimals), rng.uniform(0.1, 2.0, n)
        total = part * weights.sum()
        *found, missing = weighted_quantile(scores, weights, total, np.empty((2, n)))
        assert missing <= 1e-9
        np.testing.assert_allclose(found, fill_lowest(scores, weights, total), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("container", [np.asarray, csr_array])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_distances_of_rows(container, dtype, rng):
    X = (rng.standard_normal((6, 9)) * (rng.random((6, 9)) < 0.5)).astype(dtype)
    X[4], X[5] = 0.0, X[3]
    rows, zeros = Matrix(container(X)).rows, np.zeros(9)
    for i in range(6):
        for j in range(6):
            wanted = np.sum((X[i].astype(float) - X[j].astype(float)) ** 2)
            assert row_distance(rows, i, j, zeros) == pytest.approx(wanted, rel=1e-12)
            assert not zeros.any()


def test_a_pair_step_is_the_best_one_between_the_bounds(rng):
    X, upper = rng.standard_normal((2, 3)), np.array([1.0, 1.0])
    for start in ([0.3, 0.7], [0.9, 0.7], [0.0, 1.0], [0.3, 0.01]):
        for scale in (0.1, 1.0, 10.0):
            beta, rows = np.array(start), Matrix(scale * X)
            w = scale * X.T @ beta
            up, down = (0, 1) if X[0] @ w < X[1] @ w else (1, 0)
            steps = np.linspace(0.0, min(1.0 - beta[up], beta[down]), 2001)
            moved = w[:, None] + scale * np.outer(X[up] - X[down], steps)
            wanted = 0.5 * np.sum(moved**2, axis=0).min()
            duals = Duals(beta, upper, np.sqrt((scale**2 * X**2).sum(axis=1)))
            lists = (np.array([one], np.uint32) for one in (up, down))
            state = np.zeros(SIZE_OF_STATE)
            memory = np.empty((4, 2)), np.empty((3, 2), np.uint32), np.zeros(3), np.zeros(3)
            module._make_pair_steps(rows.rows, duals, *lists, Work(X @ w * scale, *memory), w, state)
            np.testing.assert_allclose(w, scale * X.T @ beta, atol=1e-12)
            assert beta.sum() == pytest.approx(sum(start), abs=1e-15)
            assert 0.5 * w @ w <= wanted + 1e-12


@pytest.mark.parametrize("make", [problem_of, text_like], ids=["dense", "text"])
@pytest.mark.parametrize("nu", [0.004, 0.1, 0.5, 1.0])
def test_the_solution_is_feasible_and_its_gap_is_that_of_the_judge(make, nu, rng):
    problem = make(rng, nu=nu)
    found = pairs(problem, Settings(tol=TOL, max_iter=3000))
    assert found.status is Status.CONVERGED
    assert (found.beta >= 0.0).all() & (found.beta <= problem.upper).all()
    assert found.beta.sum() == pytest.approx(problem.dual_sum, rel=1e-12)
    assert found.dual == pytest.approx(dual(problem, found.beta), rel=1e-9)
    scores = problem.X.scores(found.w)
    level = weighted_quantile(scores, problem.upper, problem.dual_sum, np.empty((2, len(scores))))[0]
    judged = certify(problem, found.w, found.beta, -level)
    assert found.primal == pytest.approx(judged.primal, rel=1e-9)
    assert relative_gap(*judged, problem.objective_scale) <= 1.001 * TOL


def test_the_dual_objective_never_decreases(rng):
    for problem in (problem_of(rng), text_like(rng)):
        history = pairs(problem, Settings(tol=1e-7, max_iter=3000)).history
        assert (np.diff(history["dual"]) >= -1e-12 * abs(history["dual"][-1])).all()
        assert (np.diff(history["primal"]) <= 0.0).all()
        assert len(history) > 4


@pytest.mark.parametrize("nu", [0.004, 0.03, 0.1])
def test_few_passes_suffice_if_upper_bounds_do_not_bind(nu, rng):
    found = pairs(text_like(rng, nu=nu), Settings(tol=1e-3))
    assert found.status is Status.CONVERGED
    assert found.history["passes"][-1] < 40.0


def test_callbacks_do_not_change_the_run(rng):
    problem, seen = text_like(rng), []
    alone = pairs(problem, Settings(tol=1e-7))
    watched = pairs(problem, Settings(tol=1e-7, callbacks=(lambda progress: seen.append(progress.iteration),)))
    np.testing.assert_array_equal(alone.w, watched.w)
    for name in ("iteration", "passes", "primal", "dual", "gap"):
        np.testing.assert_array_equal(alone.history[name], watched.history[name])
    assert len(seen) == alone.n_iter > 4


def test_rows_in_another_order_give_the_same_model(rng):
    X, weight, order = rng.random((2000, 60)), rng.uniform(0.5, 1.0, 2000), rng.permutation(2000)
    one = pairs(linear_one_class(Matrix(X), weight, 0.1), Settings(tol=1e-9, max_iter=5000))
    other = pairs(linear_one_class(Matrix(X[order]), weight[order], 0.1), Settings(tol=1e-9, max_iter=5000))
    np.testing.assert_allclose(one.w, other.w, rtol=1e-3, atol=1e-4 * np.abs(one.w).max())
    assert one.primal == pytest.approx(other.primal, rel=2e-9)


def test_a_start_is_made_feasible_and_a_solution_is_a_start_that_suffices(rng):
    problem = problem_of(rng)
    first = pairs(problem, Settings(tol=TOL))
    again = pairs(problem, Settings(tol=2 * TOL), first.beta)
    assert again.n_iter == 0
    assert again.primal == pytest.approx(first.primal, rel=2 * TOL)
    for start in (np.zeros(3000), np.full(3000, 9.0), -first.beta, 0.5 * first.beta, rng.standard_normal(3000)):
        found = pairs(problem, Settings(tol=TOL), start)
        assert found.status is Status.CONVERGED
        assert found.primal == pytest.approx(first.primal, rel=2 * TOL)


def test_it_is_for_sums_of_dual_variables_only(rng):
    problem = hinge(Matrix(rng.random((20, 3))), np.ones(20), np.ones(20), free_intercept=True)
    with pytest.raises(TypeError, match=r"solver='pairs' does not minimise a DualQP; use solver='auto', 'dcd'"):
        check(PAIRS, problem, Settings())
    assert "pairs" in specs_of(FixedSumQP)


def test_limits_and_callbacks_end_the_run(rng):
    problem, seen = text_like(rng), []
    assert pairs(problem, Settings(tol=0.0, max_iter=2)).n_iter == 2
    assert pairs(problem, Settings(tol=0.0, max_seconds=0.0)).status is Status.MAX_SECONDS

    def stop(progress):
        seen.append(progress)
        return progress.iteration >= 1

    assert pairs(problem, Settings(tol=0.0, callbacks=(stop,))).status is Status.CALLBACK
    assert [(one.solver, one.iteration, one.counts) for one in seen] == [("pairs", 0, "passes"), ("pairs", 1, "passes")]


def test_it_goes_on_to_the_limit_of_double_precision(rng):
    found = pairs(problem_of(rng, 400, 3), Settings(tol=0.0, max_iter=2000))
    assert found.gap <= 1e-12


@pytest.mark.parametrize("container", [np.asarray, csr_array])
def test_the_same_seed_gives_the_same_bits(container, rng):
    problem = problem_of(rng, container=container)
    one, two = (pairs(problem, Settings(tol=TOL, n_jobs=n_jobs)) for n_jobs in (1, 2))
    assert one.w.tobytes() == two.w.tobytes()
    assert one.beta.tobytes() == two.beta.tobytes()
