"""Risks of measures: the maximum over labellings, or rankings, against the enumeration of all of them."""

import itertools
from fractions import Fraction

import numpy as np
import pytest

from widemargin.evaluation.retrieval import average_precision
from widemargin.problems.average_precision import AveragePrecisionRisk
from widemargin.problems.measures import MeasureRisk, measure_risk, parsed
from widemargin.problems.rescaled_measures import RescaledMeasureRisk

MEASURES = ["error", "f1", "prbep", "precision@1", "precision@4", "recall@3", "recall@7"]


def loss(measure, y, z):
    """Return the measure's loss of labelling z, or None if the measure does not allow it."""
    hits, positives, called = ((z > 0) & (y > 0)).sum(), (y > 0).sum(), (z > 0).sum()
    name, k = parsed(measure)
    if name == "error":
        return (z != y).mean()
    if name == "f1":
        return 1.0 - 2.0 * hits / (called + positives)
    if name == "prbep":
        return 1.0 - hits / positives if called == positives else None
    if called != k:
        return None
    return 1.0 - hits / (k if name == "precision@k" else positives)


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("seed", range(15))
def test_the_risk_is_the_maximum_over_all_labellings_and_c_a_subgradient(measure, seed):
    rng = np.random.default_rng(seed)
    n = rng.integers(7, 11)
    s = rng.integers(-4, 5, n) / 4.0 if seed % 2 else rng.standard_normal(n)
    y = np.where(np.arange(n) < rng.integers(1, n), 1.0, -1.0)
    worst = 0.0
    for z in itertools.product([-1.0, 1.0], repeat=int(n)):
        z = np.array(z)
        cost = loss(measure, y, z)
        if cost is not None:
            worst = max(worst, cost + (z - y) @ s / n)
    risk = MeasureRisk(measure, y, 3.0)
    value, c = risk.subgradient(s)
    assert value == pytest.approx(3.0 * worst, abs=1e-12)
    for scale in (0.1, 1.0, 10.0):
        other = s + scale * rng.standard_normal(n)
        assert risk.value(other) >= value + c @ (other - s) - 1e-12


@pytest.mark.parametrize("measure", [*MEASURES, "zero_one"])
@pytest.mark.parametrize("seed", range(15))
def test_the_risk_with_slack_rescaling_is_the_maximum_over_all_labellings_and_c_a_subgradient(measure, seed):
    rng = np.random.default_rng(seed)
    n = rng.integers(7, 11)
    s = rng.integers(-4, 5, n) / 4.0 if seed % 2 else 3.0 * rng.standard_normal(n)
    y = np.where(np.arange(n) < rng.integers(1, n), 1.0, -1.0)
    worst = 0.0
    for z in itertools.product([-1.0, 1.0], repeat=int(n)):
        z = np.array(z)
        cost = float((z != y).any()) if measure == "zero_one" else loss(measure, y, z)
        if cost is not None:
            worst = max(worst, cost * (1.0 + (z - y) @ s / n))
    risk = RescaledMeasureRisk(measure, y, 3.0)
    value, c = risk.subgradient(s)
    assert value == pytest.approx(3.0 * worst, abs=1e-12)
    for scale in (0.1, 1.0, 10.0):
        other = s + scale * rng.standard_normal(n)
        assert risk.value(other) >= value + c @ (other - s) - 1e-12


@pytest.mark.parametrize("seed", range(10))
def test_slack_rescaling_of_a_function_of_counts_is_that_of_the_measure(seed):
    def one_minus_f1(fn, fp, n_positive, n_negative):
        return np.where(fn + fp == 13, -np.inf, (fn + fp) / (2.0 * n_positive - fn + fp))

    rng = np.random.default_rng(seed)
    y, s = np.where(np.arange(12) < rng.integers(1, 12), 1.0, -1.0), rng.standard_normal(12)
    function, name = RescaledMeasureRisk(one_minus_f1, y, 2.0), RescaledMeasureRisk("f1", y, 2.0)
    assert function.value(s) == pytest.approx(name.value(s), rel=1e-12)
    np.testing.assert_allclose(function.subgradient(s)[1], name.subgradient(s)[1], rtol=1e-12)


def value_of_ranking(ranking, positive, s):
    """Return 1 − AP − 2 / (p q) Σ (s_k − s_j) over the swapped pairs of a ranking, best row first."""
    p, q = np.sum(positive), np.sum(~positive)
    rank = np.empty(len(ranking))
    rank[np.array(ranking)] = np.arange(len(ranking))
    swapped = [s[k] - s[j] for k in np.flatnonzero(positive) for j in np.flatnonzero(~positive) if rank[j] < rank[k]]
    return 1.0 - average_precision(-rank, positive) - 2.0 / (p * q) * sum(swapped)


@pytest.mark.parametrize("seed", range(20))
def test_the_risk_of_average_precision_is_the_maximum_over_all_rankings_and_c_a_subgradient(seed):
    rng = np.random.default_rng(seed)
    n = rng.integers(2, 8)
    s = rng.integers(-2, 3, n) / 4.0 if seed % 2 else rng.standard_normal(n)
    positive = rng.permutation(n) < rng.integers(1, n)
    worst = max(value_of_ranking(ranking, positive, s) for ranking in itertools.permutations(range(n)))
    risk = measure_risk("average_precision", np.where(positive, 1.0, -1.0), 3.0)
    value, c = risk.subgradient(s)
    assert value == pytest.approx(3.0 * worst, abs=1e-12)
    assert np.abs(c).sum() <= risk.slopes_per_scale * risk.scale * (1.0 + 1e-12)
    assert abs(c.sum()) <= 1e-12
    for scale in (0.1, 1.0, 10.0):
        other = s + scale * rng.standard_normal(n)
        assert risk.value(other) >= value + c @ (other - s) - 1e-12


def best_by_counts(high, low):
    """Return the maximum over interleavings of descending integer scores, by dynamic programming in exact numbers.

    The value after k positive and j negative rows is the largest over all orders of these.
    """
    p, q = len(high), len(low)
    prefix = [Fraction(0)]
    for score in low:
        prefix.append(prefix[-1] + score)
    best = {(0, 0): Fraction(0)}
    for k, j in itertools.product(range(p + 1), range(q + 1)):
        ways = [best[k, j - 1]] if j else []
        if k:  # positive row k comes below the first j negative rows
            swapped = j * Fraction(high[k - 1]) - prefix[j]
            ways.append(best[k - 1, j] + Fraction(j, p * (k + j)) - Fraction(2, p * q) * swapped)
        best[k, j] = max(ways, default=Fraction(0))
    return best[p, q]


@pytest.mark.parametrize("seed", range(12))
def test_the_best_ranking_of_more_rows_is_that_of_exact_dynamic_programming(seed):
    rng = np.random.default_rng(seed)
    p, q = rng.integers(1, 40, 2)
    spread = int(rng.choice([1, 4, 200]))  # with many ties, or none
    high, low = (np.sort(rng.integers(-spread, spread + 1, m))[::-1] for m in (p, q))
    s = np.concatenate([high, low]) / 8.0
    value, _ = AveragePrecisionRisk(np.repeat([1.0, -1.0], [p, q]), 1.0).subgradient(s)
    exact = best_by_counts([Fraction(int(one), 8) for one in high], [Fraction(int(one), 8) for one in low])
    assert value == pytest.approx(float(exact), rel=1e-12, abs=1e-13)


def test_average_precision_does_not_depend_on_an_intercept_or_on_the_order_of_rows(rng):
    s, y = rng.standard_normal(300), np.where(rng.random(300) < 0.2, 1.0, -1.0)
    order = rng.permutation(300)
    value, c = AveragePrecisionRisk(y, 2.0).subgradient(s)
    moved, moved_c = AveragePrecisionRisk(y[order], 2.0).subgradient(s[order] + 1.0)
    assert moved == pytest.approx(value)
    np.testing.assert_allclose(moved_c, c[order], atol=1e-15)


def test_the_risk_of_average_precision_is_above_one_minus_it(rng):
    s, y = rng.standard_normal(200), np.where(rng.random(200) < 0.3, 1.0, -1.0)
    assert measure_risk("average_precision", y, 1.0).value(s) >= 1.0 - average_precision(s, y > 0)


def test_the_risk_of_the_error_rate_is_a_mean_of_hinge_losses(rng):
    s, y = rng.standard_normal(500), np.where(rng.random(500) < 0.3, 1.0, -1.0)
    assert MeasureRisk("error", y, 2.0).value(s) == pytest.approx(2.0 * np.maximum(0.0, 1.0 - 2.0 * y * s).mean())


@pytest.mark.parametrize("measure", ["F1", "precision", "precision@k", "recall@0", "precision@-1", "auc", ""])
def test_unknown_measures_are_refused(measure):
    with pytest.raises(ValueError, match="measure must be"):
        parsed(measure)


def test_a_k_larger_than_the_number_of_rows_is_refused():
    with pytest.raises(ValueError, match="k must be at most the number of rows, 3"):
        MeasureRisk("precision@4", np.array([1.0, -1.0, 1.0]), 1.0)
