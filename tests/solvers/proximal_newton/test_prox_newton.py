"""`prox_newton` is judged by its certificate, by optimality conditions, and by a proximal gradient method in NumPy."""

import threading
from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.sparse import random as random_sparse

from widemargin.data.matrix import Matrix
from widemargin.problems.certificates import certify_elastic_net, elastic_net_violations
from widemargin.problems.elastic_net import ElasticNet
from widemargin.problems.margin_losses import LOSSES
from widemargin.solvers.contract import Settings, Status, Watch
from widemargin.solvers.proximal_newton import gram_model, whole_steps
from widemargin.solvers.proximal_newton import prox_newton as module
from widemargin.solvers.proximal_newton.point import Point
from widemargin.solvers.proximal_newton.prox_newton import PROX_NEWTON, prox_newton
from widemargin.solvers.proximal_newton.whole_steps import sampled_start
from widemargin.solvers.proximal_newton.working_sets import WorkingSets
from widemargin.solvers.registry import solve_with

INTERCEPTS = {"none": (0.0, False), "penalised": (1.5, False), "free": (0.0, True)}
PENALTIES = {"l1": (1.0, 0.0), "mixture": (0.7, 0.3), "l2": (0.0, 1.0)}
EACH_INTERCEPT = pytest.mark.parametrize("intercept", INTERCEPTS)
EACH_PENALTY = pytest.mark.parametrize("penalty", PENALTIES)
EACH_LOSS = pytest.mark.parametrize("loss", LOSSES)


@pytest.fixture
def way(request, monkeypatch):
    """Take the steps of few columns, or those on working sets, whatever the number of columns."""
    monkeypatch.setattr(module, "_has_few_columns", lambda X: request.param == "whole")


EACH_WAY = pytest.mark.parametrize("way", ["whole", "sets"], indirect=True)


def stated(rng, shape=(60, 12), C=1.0, intercept="penalised", penalty="l1", loss="squared_hinge", **options):
    """Return an ElasticNet of random rows, some of them of zero cost."""
    container, dtype = options.get("container", np.asarray), options.get("dtype", float)
    constant, free = INTERCEPTS[intercept]
    X = rng.standard_normal(shape) * (rng.random(shape) < 0.6)
    sign = np.where(X[:, 0] - 0.5 * X[:, 1] + rng.standard_normal(shape[0]) > 0.3, 1.0, -1.0)
    cost = C * rng.uniform(0.2, 2.0, shape[0]) * (rng.random(shape[0]) < 0.9)
    X = Matrix(container(X.astype(dtype)), constant)
    return ElasticNet(X, sign, cost, *PENALTIES[penalty], free, LOSSES[loss])


def losses_and_slopes(name, margins):
    """Return the loss of each margin, and minus its derivative, in formulas of this test."""
    if name == "squared_hinge":
        z = np.maximum(0.0, 1.0 - margins)
        return z**2, 2.0 * z
    return np.log1p(np.exp(-np.abs(margins))) + np.maximum(-margins, 0.0), 0.5 - 0.5 * np.tanh(0.5 * margins)


def certified_gap(problem, solution):
    b = solution.intercept if problem.free_intercept else 0.0
    certificate = certify_elastic_net(problem, solution.w, solution.beta, b)
    assert certificate.primal == pytest.approx(solution.primal, rel=1e-9)
    assert solution.dual <= certificate.dual + 1e-12 * abs(certificate.primal)
    return certificate.gap


def proximal_gradient(problem, n_steps=5000):
    """Return the smallest objective that accelerated proximal gradient steps in NumPy find, with restarts."""
    X = problem.X.values.toarray() if problem.X.is_sparse else np.asarray(problem.X.values, float)
    if problem.X.constant or problem.free_intercept:
        X = np.column_stack([X, np.full(len(X), problem.X.constant or 1.0)])
    l1, l2 = np.full(X.shape[1], problem.l1), np.full(X.shape[1], problem.l2)
    if problem.free_intercept:
        l1[-1] = l2[-1] = 0.0
    step = 1.0 / (2.0 * np.linalg.norm(np.sqrt(problem.cost)[:, None] * X, 2) ** 2 + problem.l2 + 1e-12)

    def value(w):
        losses, _ = losses_and_slopes(problem.loss.name, problem.sign * (X @ w))
        return l1 @ np.abs(w) + 0.5 * l2 @ w**2 + problem.cost @ losses

    w = y = np.zeros(X.shape[1])
    t, best = 1.0, value(w)
    for k in range(n_steps):
        _, slopes = losses_and_slopes(problem.loss.name, problem.sign * (X @ y))
        u = y - step * (l2 * y - X.T @ (problem.cost * problem.sign * slopes))
        new = np.sign(u) * np.maximum(np.abs(u) - step * l1, 0.0)
        if (y - new) @ (new - w) > 0.0:
            t = 1.0
        following = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * t * t))
        y, w, t = new + (t - 1.0) / following * (new - w), new, following
        if k % 100 == 0:
            now = value(w)
            if k and best - now <= 1e-15 * now:
                break
            best = min(best, now)
    return min(best, value(w))


@EACH_WAY
@EACH_INTERCEPT
@EACH_PENALTY
@EACH_LOSS
@pytest.mark.parametrize("C", [0.05, 100.0])
def test_a_proximal_gradient_method_finds_nothing_smaller(way, intercept, penalty, loss, C, rng):
    problem = stated(rng, C=C, intercept=intercept, penalty=penalty, loss=loss)
    solution = prox_newton(problem, Settings(tol=1e-9))
    assert solution.status is Status.CONVERGED
    assert certified_gap(problem, solution) <= 1e-9
    reference = proximal_gradient(problem)
    assert solution.primal <= reference * (1.0 + 1e-9)
    assert reference <= solution.primal * (1.0 + 1e-3)


@EACH_WAY
@EACH_INTERCEPT
@EACH_LOSS
@pytest.mark.parametrize("container", [np.asarray, csr_array])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_optimality_conditions_hold_for_every_kind_of_rows(way, intercept, loss, container, dtype, rng):
    problem = stated(rng, (200, 30), 3.0, intercept, loss=loss, container=container, dtype=dtype)
    solution = prox_newton(problem, Settings(tol=1e-10))
    assert certified_gap(problem, solution) <= 1e-9
    b = solution.intercept if problem.free_intercept else 0.0
    assert elastic_net_violations(problem, solution.w, b).max() <= 1e-4
    assert 0 < np.count_nonzero(solution.w) < problem.X.n_columns


@EACH_LOSS
@pytest.mark.parametrize("tol", [1e-2, 1e-4, 1e-7])
def test_the_gap_is_what_was_asked_for_on_many_columns(loss, tol, rng):
    X = random_sparse(200, 1200, 0.02, "csr", random_state=0)
    sign = np.where(X @ rng.standard_normal(1200) + 0.1 * rng.standard_normal(200) > 0.0, 1.0, -1.0)
    for C in (0.1, 10.0):
        problem = ElasticNet(Matrix(X, 1.0), sign, np.full(200, C), 1.0, 0.0, loss=LOSSES[loss])
        solution = solve_with(PROX_NEWTON, problem, Settings(tol=tol))
        assert solution.status is Status.CONVERGED
        assert certified_gap(problem, solution) <= tol


@EACH_WAY
@EACH_INTERCEPT
@EACH_LOSS
def test_weights_are_zero_up_to_the_smallest_C_and_not_beyond(way, intercept, loss, rng):
    problem = stated(rng, intercept=intercept, loss=loss)
    C = problem.smallest_C()
    below = prox_newton(problem.scaled(0.999 * C), Settings(tol=1e-12))
    above = prox_newton(problem.scaled(1.01 * C), Settings(tol=1e-9))
    assert not below.w.any()
    assert below.gap <= 1e-12
    assert above.w.any()


@EACH_INTERCEPT
@EACH_PENALTY
@EACH_LOSS
@pytest.mark.parametrize("C", [0.1, 1.0, 10.0])
def test_screening_never_removes_a_column_that_has_a_weight(intercept, penalty, loss, C, rng):
    problem = stated(rng, (100, 60), C, intercept, penalty, loss)
    exact = prox_newton(problem, Settings(tol=1e-12))
    n_screened = 0
    for tol in (1e-1, 1e-2, 1e-4, 1e-6, 1e-8):
        near = prox_newton(problem, Settings(tol=tol))
        point = Point(problem, near.w, 1)
        point.measure()
        sets = WorkingSets(point)
        n_screened = sets.screen()
        assert not exact.w[sets.is_excluded].any()
    assert n_screened > 0 or C > 1.0 or problem.l1 == 0.0


@EACH_WAY
def test_the_order_of_rows_changes_nothing(way, rng):
    problem = stated(rng, (120, 15))
    order = rng.permutation(120)
    turned = ElasticNet(Matrix(problem.X.values[order], 1.5), problem.sign[order], problem.cost[order], 1.0, 0.0)
    first, second = (prox_newton(one, Settings(tol=1e-12)) for one in (problem, turned))
    np.testing.assert_allclose(first.w, second.w, atol=1e-6)
    assert first.primal == pytest.approx(second.primal, rel=1e-11)


@EACH_WAY
@EACH_INTERCEPT
def test_a_row_of_weight_two_is_that_row_twice(way, intercept, rng):
    problem = stated(rng, (80, 10), intercept=intercept)
    double = np.ones(80)
    double[:20] = 2.0
    weighted = ElasticNet(problem.X, problem.sign, double * problem.cost, 1.0, 0.0, problem.free_intercept)
    rows = np.r_[np.arange(80), np.arange(20)]
    repeated = ElasticNet(
        Matrix(problem.X.values[rows], problem.X.constant), problem.sign[rows], problem.cost[rows], 1.0, 0.0,
        problem.free_intercept,
    )  # fmt: skip
    first, second = (prox_newton(one, Settings(tol=1e-12)) for one in (weighted, repeated))
    np.testing.assert_allclose(first.w, second.w, atol=1e-6)
    assert first.primal == pytest.approx(second.primal, rel=1e-11)


@EACH_WAY
def test_a_warm_start_takes_fewer_steps(way, rng):
    problem = stated(rng, (300, 40), C=10.0)
    settings = Settings(tol=1e-8)
    cold = prox_newton(problem, settings)
    assert prox_newton(problem, settings, cold.w).n_iter == 0 < cold.n_iter


@EACH_WAY
@EACH_INTERCEPT
@EACH_LOSS
def test_equal_empty_and_huge_columns_do_no_harm(way, intercept, loss, rng):
    constant, free = INTERCEPTS[intercept]
    X = rng.standard_normal((50, 4))
    X = np.column_stack([X, X, np.zeros(50), 1e6 * X[:, 0], 1e-6 * X[:, 1], np.ones(50)])
    sign = np.where(X[:, 0] + rng.standard_normal(50) > 0.0, 1.0, -1.0)
    problem = ElasticNet(Matrix(X, constant), sign, np.full(50, 10.0), 1.0, 0.0, free, LOSSES[loss])
    solution = prox_newton(problem, Settings(tol=1e-6, max_iter=2000))
    assert certified_gap(problem, solution) <= 1e-6


@EACH_WAY
def test_costs_of_one_class_only_are_solved_by_a_free_intercept(way, rng):
    X, sign = rng.standard_normal((20, 3)), np.repeat([1.0, -1.0], 10)
    problem = ElasticNet(Matrix(X), sign, (sign > 0.0).astype(float), 1.0, 0.0, True)
    solution = prox_newton(problem, Settings(tol=1e-4))
    assert solution.primal == 0.0
    assert not solution.w.any()
    assert solution.status is Status.CONVERGED


def test_the_log_loss_of_one_class_has_no_free_intercept(rng):
    problem = stated(rng, intercept="free", loss="log_loss")
    one_class = ElasticNet(problem.X, problem.sign, problem.cost * (problem.sign > 0.0), 1.0, 0.0, True, problem.loss)
    with pytest.raises(ValueError, match="needs rows of positive weight in both classes"):
        solve_with(PROX_NEWTON, one_class, Settings(tol=1e-4))


@EACH_WAY
@EACH_LOSS
def test_limits_and_interruption_end_a_run_with_a_true_certificate(way, loss, rng):
    problem = stated(rng, (400, 50), C=100.0, loss=loss)
    short = prox_newton(problem, Settings(tol=1e-12, max_iter=1))
    assert (short.status, short.n_iter) == (Status.MAX_ITER, 1)
    assert certified_gap(problem, short) == pytest.approx(short.gap, rel=1e-6)
    stop = threading.Event()
    stop.set()
    assert prox_newton(problem, Settings(tol=1e-12, interrupt=stop)).status is Status.INTERRUPTED
    assert prox_newton(problem, Settings(tol=0.0)).status is Status.STALLED


def test_dual_variables_that_are_not_feasible_are_refused_by_the_judge(rng):
    problem = stated(rng)
    solution = prox_newton(problem, Settings(tol=1e-4))
    with pytest.raises(ValueError, match="exceeds 1"):
        certify_elastic_net(problem, solution.w, 1.01 * solution.beta)
    with pytest.raises(ValueError, match="is not feasible for sign"):
        certify_elastic_net(problem, solution.w, -solution.beta)
    free = ElasticNet(problem.X, problem.sign, problem.cost, 1.0, 0.0, True)
    with pytest.raises(ValueError, match="not to 0"):
        certify_elastic_net(free, solution.w, 0.5 * solution.beta * (problem.sign > 0.0))
    logistic = stated(rng, loss="log_loss")
    with pytest.raises(ValueError, match="is not feasible for sign"):
        certify_elastic_net(logistic, solution.w, 1.01 * logistic.sign * logistic.cost)


def test_a_problem_of_two_weights_solved_on_paper():
    """One row x = (1, 0) of cost C: w = (1 − 1/(2C), 0) for C > ½, with the objective 1 − 1/(4C)."""
    problem = ElasticNet(Matrix(np.array([[1.0, 0.0]])), np.ones(1), np.array([2.0]), 1.0, 0.0)
    solution = prox_newton(problem, Settings(tol=1e-12))
    np.testing.assert_allclose(solution.w, [0.75, 0.0], atol=1e-12)
    assert solution.primal == pytest.approx(0.875, rel=1e-12)
    assert problem.smallest_C() == 0.25


def test_a_logistic_problem_of_two_weights_solved_on_paper():
    """One row x = (1, 0) of cost C: 1 + exp(w) = C at the optimum, so that w = log(C − 1) for C > 2."""
    problem = ElasticNet(Matrix(np.array([[1.0, 0.0]])), np.ones(1), np.array([4.0]), 1.0, 0.0, loss=LOSSES["log_loss"])
    solution = prox_newton(problem, Settings(tol=1e-12))
    np.testing.assert_allclose(solution.w, [np.log(3.0), 0.0], atol=1e-6)
    assert solution.primal == pytest.approx(np.log(3.0) + 4.0 * np.log(4.0 / 3.0), rel=1e-12)
    assert problem.smallest_C() == 0.5


@EACH_WAY
@pytest.mark.parametrize("start", [1.0, -1.0])
def test_a_start_far_on_the_wrong_side_is_left_behind(way, start, rng):
    """There the log loss has no curvature: all of its second derivatives underflow."""
    problem = stated(rng, (80, 6), 10.0, "none", loss="log_loss")
    far = prox_newton(problem, Settings(tol=1e-6), start * np.full(6, 1e4))
    assert far.status is Status.CONVERGED
    assert far.primal == pytest.approx(prox_newton(problem, Settings(tol=1e-8)).primal, rel=2e-6)


@EACH_LOSS
@EACH_INTERCEPT
def test_many_rows_start_from_a_sample_of_them_which_saves_steps(loss, intercept, rng, monkeypatch):
    problem = stated(rng, (16_000, 12), C=10.0, loss=loss, intercept=intercept)
    sampled, repeated = (prox_newton(problem, Settings(tol=1e-6, seed=seed)) for seed in (0, 1))
    assert sampled.status is Status.CONVERGED
    assert certified_gap(problem, sampled) <= 1e-6
    np.testing.assert_array_equal(sampled.w, repeated.w)
    monkeypatch.setattr(whole_steps, "_SAMPLING_RATIO", 10**9)
    whole = prox_newton(problem, Settings(tol=1e-6))
    assert sampled.n_iter < whole.n_iter
    assert sampled.primal == pytest.approx(whole.primal, rel=2e-6)


def test_a_sample_without_both_signs_is_no_start(rng):
    problem = stated(rng, (16_000, 12), intercept="free", loss="log_loss")
    sign = np.full(16_000, 1.0)
    sign[rng.integers(16_000)] = -1.0
    problem = replace(problem, sign=sign, cost=np.ones(16_000))
    rows, _ = problem.X.sample(2000, 0)
    sign[rows] = 1.0
    sign[np.setdiff1d(np.arange(16_000), rows)[:3]] = -1.0
    assert sampled_start(problem, Watch(Settings())) is None
    assert certified_gap(problem, prox_newton(problem, Settings(tol=1e-6))) <= 1e-6


def test_an_interruption_ends_the_steps_on_a_sample(rng):
    problem, stop = stated(rng, (16_000, 12)), threading.Event()
    stop.set()
    assert not sampled_start(problem, Watch(Settings(interrupt=stop))).any()
    assert not sampled_start(problem, Watch(Settings(max_seconds=0.0))).any()
    assert not sampled_start(problem, Watch(Settings(max_iter=0))).any()
    assert sampled_start(problem, Watch(Settings())).any()


def test_linearly_dependent_columns_leave_the_model_in_few_factorisations(rng, monkeypatch):
    """Three codes of one category each, whose columns sum to the constant column: any of them can be left out."""
    codes = np.eye(8)[rng.integers(8, size=(3, 2000))]
    X = np.hstack([*codes, rng.standard_normal((2000, 4))])
    sign = np.where(X @ rng.standard_normal(28) + rng.standard_normal(2000) > 0.0, 1.0, -1.0)
    problem = ElasticNet(Matrix(X, 1.0), sign, np.full(2000, 100.0), 1.0, 0.0)
    n_steps, step = [], gram_model._step_on_support
    monkeypatch.setattr(gram_model, "_step_on_support", lambda *model: n_steps.append(0) or step(*model))
    solution = prox_newton(problem, Settings(tol=1e-6))
    assert certified_gap(problem, solution) <= 1e-6
    assert len(n_steps) <= 40
