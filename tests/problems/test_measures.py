"""Risks of measures: the maximum over labellings against the enumeration of all of them."""

import itertools

import numpy as np
import pytest

from widemargin.problems.measures import MeasureRisk, parsed

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
