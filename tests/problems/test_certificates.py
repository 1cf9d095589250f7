"""Certificates: each loss against its textbook formula, weak duality, and brute force on one row."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from widemargin.data.matrix import Matrix
from widemargin.problems import classification, regression
from widemargin.problems.certificates import certify, dual, losses, primal, relative_gap, violations

EPSILON = 0.3
TEXTBOOK = {
    "hinge": lambda y, s: np.maximum(0, 1 - y * s),
    "squared_hinge": lambda y, s: np.maximum(0, 1 - y * s) ** 2,
    "epsilon_insensitive": lambda y, s: np.maximum(0, np.abs(y - s) - EPSILON),
    "squared_epsilon_insensitive": lambda y, s: np.maximum(0, np.abs(y - s) - EPSILON) ** 2,
}


def state(loss, X, sign, cost):
    if loss in classification.LOSSES:
        return classification.LOSSES[loss](Matrix(X), sign, cost)
    return regression.LOSSES[loss](Matrix(X), 2.0 * sign, cost, EPSILON)


@pytest.mark.parametrize("loss", TEXTBOOK)
def test_losses_are_those_of_the_textbooks(loss, clouds, rng):
    X, sign, cost = clouds
    cost[3] = 0.0
    problem = state(loss, X, sign, cost)
    s = rng.uniform(-3, 3, len(sign))
    np.testing.assert_allclose(losses(problem, s), cost * TEXTBOOK[loss](problem.target, s), atol=1e-12)


@pytest.mark.parametrize("loss", TEXTBOOK)
def test_no_dual_value_exceeds_any_primal_value(loss, clouds, rng):
    problem = state(loss, *clouds)
    for _ in range(50):
        w = rng.standard_normal(6) * rng.uniform(0, 2)
        beta = np.clip(rng.standard_normal(80), problem.lower, problem.upper)
        assert dual(problem, beta) <= primal(problem, w)


@given(x=st.floats(-3, 3), y=st.floats(-2, 2), cost=st.floats(0.01, 5), loss=st.sampled_from(sorted(regression.LOSSES)))
def test_one_row_has_no_gap_at_the_best_dual_variable_found_by_brute_force(x, y, cost, loss):
    problem = regression.LOSSES[loss](Matrix(np.array([[x]])), np.array([y]), np.array([cost]), 0.1)
    high = min(cost, 100.0) if loss == "epsilon_insensitive" else 20.0 * cost
    grid = np.linspace(-high, high, 20_001)
    values = y * grid - 0.1 * abs(grid) - 0.5 * problem.curvature[0] * grid**2 - 0.5 * (x * grid) ** 2
    beta = grid[[np.argmax(values)]]
    certificate = certify(problem, x * beta, beta)
    assert -1e-12 <= certificate.primal - certificate.dual <= 1e-2 * (1 + high) * (1 + x**2)


def test_a_dual_variable_that_violates_its_box_constraint_is_refused(clouds):
    problem = state("hinge", *clouds)
    with pytest.raises(ValueError, match=r"beta\[0\] = .* lies outside"):
        dual(problem, np.where(problem.upper > 0, -1.0, 1.0))


def test_violations_vanish_exactly_at_the_optimum_of_one_row():
    problem = classification.hinge(Matrix(np.array([[2.0]])), np.array([1.0]), np.array([1.0]))
    assert violations(problem, np.array([0.5]), np.array([0.25])) == 0.0
    assert violations(problem, np.array([0.0]), np.array([0.0])) == 1.0
    assert violations(problem, np.array([2.0]), np.array([1.0])) == 3.0


def test_the_gap_of_two_objectives_of_zero_is_zero():
    assert relative_gap(0.0, 0.0) == 0.0
    assert relative_gap(2.0, 1.0) == 0.5
