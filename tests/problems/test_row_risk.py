"""Risks that are sums over rows: against the losses of certificates; line searches against grids of steps."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from widemargin.data.matrix import Matrix
from widemargin.problems import classification, regression
from widemargin.problems.certificates import losses
from widemargin.problems.row_risk import FreeInterceptRisk, RowRisk

N = 60
LOSSES = {
    "hinge": lambda X, y, cost: classification.hinge(X, np.sign(y), cost),
    "squared_hinge": lambda X, y, cost: classification.squared_hinge(X, np.sign(y), cost),
    "tube": lambda X, y, cost: regression.epsilon_insensitive(X, y, cost, 0.3),
    "absolute": lambda X, y, cost: regression.epsilon_insensitive(X, y, cost, 0.0),
    "squared_tube": lambda X, y, cost: regression.squared_epsilon_insensitive(X, y, cost, 0.3),
}
EACH_LOSS = pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES.keys())
KINKED = pytest.mark.parametrize("loss", [LOSSES["hinge"], LOSSES["tube"], LOSSES["absolute"]])


def stated(loss, rng, n=N, ties=False):
    """Return a problem of n rows, some of them of zero cost, and scores for it."""
    y, cost = rng.standard_normal(n), rng.random(n) * (rng.random(n) < 0.9)
    s = rng.standard_normal(n)
    if ties:
        y, s, cost = np.round(2 * y) / 2 + 0.25, np.round(2 * s) / 2, np.ones(n)
    return loss(Matrix(np.zeros((n, 1))), y, cost), s


def along(problem, s, t, curvature, slope):
    """Return the function of k that a step minimises, computed by certificates."""
    return lambda k: 0.5 * curvature * k**2 + slope * k + losses(problem, s + k * t).sum()


@EACH_LOSS
def test_value_is_the_sum_of_the_losses(loss, rng):
    problem, s = stated(loss, rng)
    assert RowRisk(problem).value(s) == pytest.approx(losses(problem, s).sum(), rel=1e-12)


@EACH_LOSS
@pytest.mark.parametrize("ties", [False, True])
def test_a_subgradient_lies_below_everywhere(loss, ties, rng):
    problem, s = stated(loss, rng, ties=ties)
    risk = RowRisk(problem)
    value, c = risk.subgradient(s)
    assert value == pytest.approx(losses(problem, s).sum(), rel=1e-12)
    for scale in (1e-3, 0.1, 1.0, 10.0):
        other = s + scale * rng.standard_normal(N)
        assert losses(problem, other).sum() >= value + c @ (other - s) - 1e-10


@EACH_LOSS
@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("curvature", [0.0, 0.7, 50.0])
def test_a_step_minimises_the_objective_along_its_line(loss, ties, curvature, rng):
    for _ in range(20):
        problem, s = stated(loss, rng, ties=ties)
        t = np.round(rng.standard_normal(N)) if ties else rng.standard_normal(N)
        slope = 0.0 if curvature == 0.0 else rng.standard_normal()
        height = along(problem, s, t, curvature, slope)
        step = RowRisk(problem).step(s, t, curvature, slope)
        assert step.k >= 0.0
        np.testing.assert_allclose(step.scores, s + step.k * t)
        assert step.risk == pytest.approx(losses(problem, step.scores).sum(), rel=1e-12, abs=1e-12)
        candidates = np.concatenate([np.linspace(0, 3, 200), step.k * (1 + 1e-6 * np.arange(-3, 4))])
        lowest = min(height(k) for k in candidates)
        assert height(step.k) <= lowest + 1e-9 * max(1.0, abs(lowest))


@KINKED
def test_a_line_search_by_sampling_is_exact(loss, rng):
    problem, s = stated(loss, rng, n=40_000)
    t = rng.standard_normal(len(s)) + 0.2 * np.sign(problem.target - s)
    for curvature, slope in ((1e3, -10.0), (1e5, 1.0), (0.0, 0.0)):
        height = along(problem, s, t, curvature, slope)
        k = RowRisk(problem).step(s, t, curvature, slope).k
        other = minimize_scalar(height, bracket=(0.0, 0.1), tol=1e-12).x
        assert height(k) <= height(max(other, 0.0)) + 1e-9 * abs(height(k))


@EACH_LOSS
@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("n", [7, N, 10_000])
def test_the_best_intercept_minimises_the_risk_and_its_subgradient_sums_to_zero(loss, ties, n, rng):
    problem, s = stated(loss, rng, n=n, ties=ties)
    intercept, value, c = RowRisk(problem).minimise_over_intercept(s)
    assert value == pytest.approx(losses(problem, s + intercept).sum(), rel=1e-12, abs=1e-12)
    lowest = min(losses(problem, s + b).sum() for b in np.linspace(intercept - 2, intercept + 2, 201))
    assert value <= lowest + 1e-9 * max(1.0, lowest)
    assert abs(c.sum()) <= 1e-9 * max(1.0, np.abs(c).sum())
    for scale in (1e-3, 0.1, 1.0):
        other, move = s + scale * rng.standard_normal(n), rng.standard_normal()
        assert losses(problem, other + move).sum() >= value + c @ (other - s) - 1e-8


def test_an_intercept_gives_a_single_class_zero_loss():
    problem = classification.hinge(Matrix(np.zeros((3, 1))), np.ones(3), np.ones(3))
    intercept, value, c = RowRisk(problem).minimise_over_intercept(np.array([0.0, 1.0, -5.0]))
    assert value == 0.0
    assert intercept >= 6.0
    np.testing.assert_array_equal(c, 0.0)


def test_a_constant_added_to_the_scores_is_taken_up_by_a_free_intercept(rng):
    problem, s = stated(LOSSES["hinge"], rng)
    risk = FreeInterceptRisk(RowRisk(problem))
    assert risk.value(s + 3.0) == pytest.approx(risk.value(s), rel=1e-9)
    assert risk.intercept(s + 3.0) == pytest.approx(risk.intercept(s) - 3.0)


@EACH_LOSS
def test_threads_change_nothing_but_rounding(loss, rng):
    problem, s = stated(loss, rng, n=300_000)
    t = rng.standard_normal(len(s))
    one, two = (RowRisk(problem, n_jobs) for n_jobs in (1, 2))
    assert one.value(s) == two.value(s)
    assert one.step(s, t, 10.0, -1.0).k == two.step(s, t, 10.0, -1.0).k
    np.testing.assert_array_equal(one.subgradient(s)[1], two.subgradient(s)[1])
