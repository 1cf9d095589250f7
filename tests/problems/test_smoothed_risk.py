"""Sums of smoothed losses: derivatives against differences, bounds of dual variables, and rows that change."""

import numpy as np
import pytest

from widemargin.data.matrix import Matrix
from widemargin.problems import classification, regression
from widemargin.problems.certificates import losses
from widemargin.problems.smoothed_risk import SmoothedRisk

N = 400
LOSSES = {
    "hinge": lambda X, y, cost: classification.hinge(X, np.sign(y), cost),
    "squared_hinge": lambda X, y, cost: classification.squared_hinge(X, np.sign(y), cost),
    "tube": lambda X, y, cost: regression.epsilon_insensitive(X, y, cost, 0.3),
    "squared_tube": lambda X, y, cost: regression.squared_epsilon_insensitive(X, y, cost, 0.3),
}
EACH_LOSS = pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES.keys())


def stated(loss, rng):
    """Return a problem, some of whose rows have zero cost, and its SmoothedRisk with centres that differ."""
    y, cost = rng.standard_normal(N), rng.random(N) * (rng.random(N) < 0.9)
    problem = loss(Matrix(np.zeros((N, 1))), y, cost)
    risk = SmoothedRisk(problem)
    if not risk.squared:
        risk.recentre(rng.standard_normal(N), 2.0)
    return problem, risk


def dual_at(risk, s, h):
    """Return the dual variables, the second derivatives and the RiskSums at scores s."""
    b, q = np.empty((2, N))
    sums = risk.evaluate(s, h, b, q)
    return b, q, sums


@EACH_LOSS
def test_losses_are_not_smoothed_and_dual_variables_satisfy_their_box_constraints(loss, rng):
    problem, risk = stated(loss, rng)
    s = rng.standard_normal(N)
    b, q, sums = dual_at(risk, s, 0.5)
    assert sums.loss == pytest.approx(losses(problem, s).sum(), rel=1e-12)
    assert ((problem.lower <= b) & (b <= problem.upper)).all()
    assert (q >= 0.0).all()
    assert sums.linear <= risk.dual_sums(b)[0] + 1e-10, "a row may be in the bands of both sides of its tube"
    b, _, sums = dual_at(risk, s, 0.01)  # bands narrower than the tube
    assert (sums.linear, sums.quadratic) == pytest.approx(tuple(risk.dual_sums(b)), rel=1e-10)


@EACH_LOSS
def test_the_dual_variables_change_by_the_second_derivatives(loss, rng):
    _, risk = stated(loss, rng)
    s, t = rng.standard_normal(N), 1e-7 * rng.standard_normal(N)
    (b, q, _), (new_b, new_q, _) = dual_at(risk, s, 0.5), dual_at(risk, s + t, 0.5)
    same = q == new_q
    assert same.mean() > 0.9
    np.testing.assert_allclose((new_b - b)[same], (-q * t)[same], atol=1e-14)


@EACH_LOSS
@pytest.mark.parametrize("h", [0.01, 0.5])
def test_a_line_search_reduces_the_slope_and_an_intercept_makes_the_dual_variables_sum_to_zero(loss, h, rng):
    _, risk = stated(loss, rng)
    s, t = rng.standard_normal(N), rng.standard_normal(N)
    slope = 0.7 - dual_at(risk, s, h)[0] @ t
    k = risk.line_search(s, t, h, 50.0, 0.7, slope)
    assert abs(0.7 + 50.0 * k - dual_at(risk, s + k * t, h)[0] @ t) <= 1.001e-2 * abs(slope)
    b = dual_at(risk, s + risk.best_intercept(s, h), h)[0]
    assert abs(b.sum()) <= 1e-9 * np.abs(b).sum()


@EACH_LOSS
@pytest.mark.parametrize("h", [0.01, 0.5])
def test_rows_that_are_not_named_keep_their_dual_variables(loss, h, rng):
    _, risk = stated(loss, rng)
    s, t, start, stop = rng.standard_normal(N), 0.3 * rng.standard_normal(N), 50, 350
    (b, q, _), new_b = dual_at(risk, s, h), dual_at(risk, s + t, h)[0]
    part = slice(start, stop)
    changing = np.zeros(stop - start, bool)
    changing[risk.changing_rows(s, t, h, start, stop)] = True
    assert not changing.all()
    np.testing.assert_array_equal(new_b[part][~changing], b[part][~changing])
    assert changing[q[part] > 0.0].all()
    support = risk.support_rows(s, h, start, stop)
    assert set(np.flatnonzero(b[part])) <= set(support) < set(range(stop - start))
