"""Losses with an entropy: formulas against brute force, derivatives against differences, and numbers of any size."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import expit

from widemargin.data.matrix import Matrix
from widemargin.problems import certificates, classification
from widemargin.problems.entropy_risk import EntropyRisk, risk_of
from widemargin.problems.formulations import DualQP
from widemargin.problems.intercept import best_intercept
from widemargin.problems.losses import interval_entropy, smooth_loss_and_slope, unit_log1p
from widemargin.problems.smoothed_risk import SmoothedRisk

N = 300


def log_loss(rng, n_rows=N, **options):
    """Return the problem of the log loss, some of whose rows have zero cost."""
    sign, cost = np.where(rng.random(n_rows) < 0.4, 1.0, -1.0), rng.random(n_rows) * (rng.random(n_rows) < 0.9)
    return classification.log_loss(Matrix(np.zeros((n_rows, 1))), sign, cost, **options), sign, cost


def general(rng, entropy):
    """Return a problem whose intervals lie on both sides of zero, with targets."""
    zeros = np.zeros(N)
    return DualQP(
        Matrix(np.zeros((N, 1))), rng.standard_normal(N), -rng.random(N), rng.random(N), zeros, zeros, entropy=entropy
    )


def evaluated(risk, s):
    b, q = np.empty((2, len(s)))
    return b, q, risk.evaluate(s, 1.0, b, q)


def test_the_log_loss_is_the_one_of_logistic_regression(rng):
    problem, sign, cost = log_loss(rng)
    s = 5.0 * rng.standard_normal(N)
    expected = cost * np.logaddexp(0.0, -sign * s)
    np.testing.assert_allclose(certificates.losses(problem, s), expected, rtol=1e-13, atol=1e-300)
    b, q, sums = evaluated(risk_of(problem), s)
    assert sums.loss == pytest.approx(expected.sum(), rel=1e-13)
    np.testing.assert_allclose(b, sign * cost * expit(-sign * s), rtol=1e-13)
    np.testing.assert_allclose(q, cost * expit(s) * expit(-s), rtol=1e-12)
    np.testing.assert_allclose(certificates.loss_slopes(problem, -s), b, rtol=1e-13)


@pytest.mark.parametrize("entropy", [0.1, 1.0, 3.0])
def test_a_loss_is_the_largest_value_over_the_interval_of_its_dual_variable(entropy, rng):
    problem = general(rng, entropy)
    s = 3.0 * rng.standard_normal(N)
    found = certificates.losses(problem, s)
    for i in range(40):
        r, lower, upper = problem.target[i] - s[i], problem.lower[i], problem.upper[i]
        best = minimize_scalar(
            lambda b, r=r, ends=(lower, upper): -(b * r + entropy * interval_entropy(b, *ends)),
            bounds=(lower, upper), method="bounded", options={"xatol": 1e-12},
        )  # fmt: skip
        assert -1e-12 <= found[i] + best.fun <= 1e-6, "the method ends a little below the maximum near a bound"
        loss, slope = smooth_loss_and_slope(r, lower, upper, entropy)
        assert loss == pytest.approx(found[i], rel=1e-13)
        assert slope == pytest.approx(best.x, abs=1e-5)


@pytest.mark.parametrize("entropy", [0.1, 1.0, 3.0])
def test_derivatives_agree_with_differences(entropy, rng):
    problem = general(rng, entropy)
    risk, s, t = EntropyRisk(problem), rng.standard_normal(N), rng.standard_normal(N)
    b, q, _ = evaluated(risk, s)
    step = 1e-5
    after, before = (certificates.losses(problem, s + k * step * t).sum() for k in (1.0, -1.0))
    first, second = risk.derivatives(s, t, 0.0)
    assert first == pytest.approx((after - before) / (2 * step), rel=1e-6, abs=1e-8)
    assert first == pytest.approx(-b @ t, rel=1e-10)
    assert second == pytest.approx(q @ t**2, rel=1e-10)
    changed = evaluated(risk, s + step * t)[0]
    np.testing.assert_allclose((changed - b) / step, -q * t, atol=1e-3 * np.abs(q * t).max())


def test_the_dual_terms_at_the_scores_are_those_of_the_entropies(rng):
    problem = general(rng, 0.7)
    risk, s = risk_of(problem), rng.standard_normal(N)
    b, _, sums = evaluated(risk, s)
    expected = (problem.target * b + 0.7 * certificates.entropies(problem, b)).sum()
    assert sums.linear == pytest.approx(expected, rel=1e-12)
    assert risk.dual_sums(b)[0] == pytest.approx(expected, rel=1e-12)
    compiled = [interval_entropy(*one) for one in zip(b, problem.lower, problem.upper, strict=True)]
    np.testing.assert_allclose(compiled, certificates.entropies(problem, b), rtol=1e-13)


@pytest.mark.parametrize("size", [1e-310, 1e-8, 1.0, 1e8, 1e300])
def test_predicted_dual_variables_are_clipped_and_counted_and_their_terms_added(size, rng):
    problem = general(rng, 0.7)
    problem = problem.scaled(size) if size >= 1e-8 else problem
    problem.lower[:3] = problem.upper[:3] = 0.0  # rows without cost
    risk, b = EntropyRisk(problem), rng.uniform(problem.lower, problem.upper)
    q, t, out = rng.random(N) * (problem.upper - problem.lower), 3.0 * rng.standard_normal(N), np.empty(N)
    linear, n_clipped = risk.predict_dual(b, q, t, out, added := np.empty(N))
    np.testing.assert_array_equal(out, np.clip(b - q * t, problem.lower, problem.upper))
    np.testing.assert_array_equal(added, out - (b - q * t))
    assert n_clipped == np.count_nonzero(added) > 0
    expected = (problem.target * out + 0.7 * certificates.entropies(problem, out)).sum()
    assert linear == pytest.approx(expected, rel=1e-12)


def test_an_entropy_is_zero_at_the_ends_and_largest_in_the_middle():
    assert interval_entropy(-1.0, -1.0, 2.0) == interval_entropy(2.0, -1.0, 2.0) == 0.0
    assert interval_entropy(0.5, -1.0, 2.0) == pytest.approx(3.0 * np.log(2.0))
    assert interval_entropy(0.0, 0.0, 0.0) == 0.0
    assert interval_entropy(5e-324, 0.0, 1e10) >= 0.0


def test_the_vectorised_logarithm_has_full_precision():
    e = np.concatenate([[0.0, 1.0, 5e-324, 1e-308], np.logspace(-300, 0, 500), np.linspace(-0.5, 1.0, 500)])
    found = np.array([unit_log1p(one) for one in e])
    np.testing.assert_allclose(found, np.log1p(e), rtol=5e-16, atol=5e-324)


@pytest.mark.parametrize("size", [1e-300, 1.0, 1e5, 1e300])
def test_scores_of_any_size_give_finite_numbers(size, rng):
    problem, _sign, _cost = log_loss(rng)
    s = size * rng.standard_normal(N)
    b, q, sums = evaluated(risk_of(problem), s)
    with np.errstate(over="raise", invalid="raise"):
        losses = certificates.losses(problem, s)
    assert np.isfinite([*sums, *b, *q, *losses]).all()
    assert ((problem.lower <= b) & (b <= problem.upper)).all()
    assert (q >= 0.0).all()
    assert sums.loss == pytest.approx(losses.sum(), rel=1e-12)
    for i in range(20):
        here, slope = smooth_loss_and_slope(-s[i], problem.lower[i], problem.upper[i], 1.0)
        assert here == pytest.approx(losses[i], rel=1e-13)
        assert slope == pytest.approx(b[i], rel=1e-12, abs=1e-300)


def test_fenchels_inequality_holds_for_all_scores_and_dual_variables(rng):
    problem = general(rng, 1.3)
    s, b = 4.0 * rng.standard_normal(N), rng.uniform(problem.lower, problem.upper)
    term = problem.target * b + 1.3 * certificates.entropies(problem, b)
    assert (certificates.losses(problem, s) - term + b * s >= -1e-14).all()


def test_the_best_intercept_balances_the_dual_variables(rng):
    problem, _sign, cost = log_loss(rng, free_intercept=True)
    s = 3.0 * rng.standard_normal(N)
    shift = best_intercept(problem, s)
    b = certificates.loss_slopes(problem, -(s + shift))
    assert abs(b.sum()) <= 1e-10 * cost.sum()


def test_violations_are_those_of_the_derivative_of_the_dual(rng):
    X = Matrix(rng.standard_normal((50, 3)))
    sign = np.where(rng.random(50) < 0.5, 1.0, -1.0)
    problem = classification.log_loss(X, sign, np.full(50, 2.0))
    beta, w, step = sign * rng.uniform(0.1, 1.9, 50), rng.standard_normal(3), 1e-6
    scores = certificates.scores(X, w)
    found = certificates.violations(problem, w, beta)
    terms = [certificates.entropies(problem, beta + k * step * sign) for k in (1.0, -1.0)]
    np.testing.assert_allclose(found, np.abs(-sign * scores + (terms[0] - terms[1]) / (2 * step)), atol=1e-5)
    assert np.isinf(certificates.violations(problem, w, np.zeros(50))).all()


def test_problems_scale_with_their_costs_and_keep_their_entropy(rng):
    problem, _, _ = log_loss(rng)
    s = rng.standard_normal(N)
    np.testing.assert_allclose(
        certificates.losses(problem.scaled(7.0), s), 7.0 * certificates.losses(problem, s), rtol=1e-14
    )
    chosen = np.arange(0, N, 3)
    assert problem.of_rows(chosen, Matrix(np.zeros((len(chosen), 1)))).entropy == 1.0
    assert problem.checksum() != classification.hinge(problem.X, np.ones(N), np.ones(N)).checksum()
    assert type(risk_of(classification.hinge(problem.X, np.ones(N), np.ones(N)))) is SmoothedRisk


@pytest.mark.parametrize("entropy", [-1.0, np.inf, np.nan])
def test_an_entropy_that_is_no_nonnegative_number_is_refused(entropy):
    zeros = np.zeros(1)
    with pytest.raises(ValueError, match="entropy must be finite and not negative"):
        DualQP(Matrix(np.zeros((1, 1))), zeros, zeros, zeros, zeros, zeros, entropy=entropy)
