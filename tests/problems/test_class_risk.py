"""Crammer and Singer's losses as a risk of scores: against a plain formula; the line search against brute force."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from widemargin.problems.class_risk import ClassRisk

EACH_SIZE = pytest.mark.parametrize(("n", "n_classes"), [(40, 2), (40, 3), (25, 12), (10, 40)])


def losses(label, cost, scores):
    """Return the loss of each row, as the formula says it."""
    S = scores.reshape(-1, len(label)).T
    own = S[np.arange(len(label)), label][:, None]
    margin = (np.arange(S.shape[1]) != label[:, None]) + S - own
    return cost * margin.max(axis=1)


def stated(rng, n, n_classes, *, ties=False):
    """Return labels, costs (some of them zero), scores and a direction."""
    label, cost = rng.integers(0, n_classes, n), rng.random(n) * (rng.random(n) < 0.9)
    s, t = rng.standard_normal((2, n * n_classes))
    if ties:
        return label, np.ones(n), np.round(2 * s) / 2, np.round(t)
    return label, cost, s, t


def all_kinks(label, s, t):
    """Return every k > 0 at which two lines of a row cross: the kinks of a row are among them."""
    n_classes = len(s) // len(label)
    S, T = (scores.reshape(n_classes, -1).T for scores in (s, t))
    a = (np.arange(n_classes) != label[:, None]) + S
    with np.errstate(divide="ignore", invalid="ignore"):
        places = [(a[:, i] - a[:, j]) / (T[:, j] - T[:, i]) for i, j in combinations(range(n_classes), 2)]
    places = np.concatenate(places)
    return np.unique(places[np.isfinite(places) & (places > 0.0)])


@EACH_SIZE
@pytest.mark.parametrize("ties", [False, True])
def test_the_value_is_the_sum_of_the_losses_and_planes_lie_below(n, n_classes, ties, rng):
    label, cost, s, _ = stated(rng, n, n_classes, ties=ties)
    risk = ClassRisk(label, cost, n_classes)
    value, c = risk.subgradient(s)
    c = c.copy()
    assert value == pytest.approx(losses(label, cost, s).sum(), rel=1e-12)
    assert risk.scale == pytest.approx(cost.sum())
    for scale in (1e-3, 0.1, 1.0, 10.0):
        other = s + scale * rng.standard_normal(len(s))
        assert losses(label, cost, other).sum() >= value + c @ (other - s) - 1e-10
    np.testing.assert_allclose(c.reshape(n_classes, n).sum(axis=0), 0.0)


@EACH_SIZE
def test_the_plane_at_zero_lies_below_and_its_vector_is_that_of_its_coefficients(n, n_classes, rng):
    label, cost, _, _ = stated(rng, n, n_classes)
    X = rng.standard_normal((n, 7))
    risk = ClassRisk(label, cost, n_classes)
    plane = risk.plane_at_zero(lambda c: (c.reshape(n_classes, n) @ X).ravel())
    C = plane.c.reshape(n_classes, n)
    assert plane.risk == pytest.approx(losses(label, cost, np.zeros(n * n_classes)).sum(), rel=1e-12)
    np.testing.assert_allclose(plane.vector, (C @ X).ravel(), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(C.sum(axis=0), 0.0, atol=1e-15)
    for scale in (1e-3, 0.1, 1.0, 10.0):
        other = scale * rng.standard_normal(n * n_classes)
        assert losses(label, cost, other).sum() >= plane.risk + plane.c @ other - 1e-10


@EACH_SIZE
@pytest.mark.parametrize("ties", [False, True])
def test_kinks_and_slopes_are_those_of_the_losses(n, n_classes, ties, rng):
    label, cost, s, t = stated(rng, n, n_classes, ties=ties)
    risk = ClassRisk(label, cost, n_classes)
    places = all_kinks(label, s, t)
    middles = np.concatenate([[0.5 * places[0]], 0.5 * (places[1:] + places[:-1]), [places[-1] + 1.0]])
    for low, high in [
        (0.0, np.inf),
        (0.0, middles[len(middles) // 2]),
        (middles[2], middles[-2]),
        (middles[-1], np.inf),
    ]:
        slope, *kinks = risk.kinks_in(s, t, low, high)
        kinks = np.array(kinks)
        assert ((kinks[0] > low) & (kinks[0] <= high)).all()
        for k in middles[(middles > low) & (middles < high)]:
            found = slope + kinks[1][kinks[0] < k].sum()
            step = 1e-7 * max(1.0, k)
            ends = [losses(label, cost, s + (k + side * step) * t).sum() for side in (-1, 1)]
            if all(abs(places - k) > 2 * step):
                assert found == pytest.approx((ends[1] - ends[0]) / (2 * step), abs=1e-4 * (1.0 + abs(found)))


@EACH_SIZE
@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("curvature", [0.0, 0.7, 50.0])
def test_a_step_is_the_best_of_all_breakpoints_and_of_a_fine_grid(n, n_classes, ties, curvature, rng):
    for _ in range(5):
        label, cost, s, t = stated(rng, n, n_classes, ties=ties)
        slope = 0.0 if curvature == 0.0 else rng.standard_normal()
        step = ClassRisk(label, cost, n_classes).step(s, t, curvature, slope)

        def height(k, label=label, cost=cost, s=s, t=t, slope=slope):
            return 0.5 * curvature * k**2 + slope * k + losses(label, cost, s + k * t).sum()

        places = np.concatenate([[0.0], all_kinks(label, s, t)])
        bases = [places, np.linspace(0.0, 3.0, 100), step.k * (1.0 + 1e-6 * np.arange(-3, 4))]
        if curvature:  # the minimum of each parabola between two breakpoints
            middles = 0.5 * (places[1:] + places[:-1])
            slopes = [(height(k + 1e-7) - height(k - 1e-7)) / 2e-7 - curvature * k for k in middles]
            bases.append(np.clip(-np.array(slopes) / curvature, places[:-1], places[1:]))
        lowest = min(height(k) for k in np.concatenate(bases))
        assert step.k >= 0.0
        np.testing.assert_allclose(step.scores, s + step.k * t)
        assert step.risk == pytest.approx(losses(label, cost, step.scores).sum(), rel=1e-12, abs=1e-12)
        assert height(step.k) <= lowest + 1e-9 * max(1.0, abs(lowest))


@pytest.mark.parametrize("factor", [1e-3, 0.1, 10.0, 1e3])
def test_a_step_much_shorter_or_longer_than_the_last_one_is_found(factor, rng):
    label, cost, s, t = stated(rng, 40, 4)
    risk = ClassRisk(label, cost, 4)
    risk.step(s, t, 5.0, -3.0)
    again, fresh = (
        one.step(s, t / factor, 5.0 / factor**2, -3.0 / factor) for one in (risk, ClassRisk(label, cost, 4))
    )
    assert fresh.k > 0.0
    assert again.k == pytest.approx(fresh.k, rel=1e-12)


def test_a_line_search_by_sampling_is_exact_and_does_not_depend_on_threads(rng):
    label, cost, s, t = stated(rng, 30_000, 5)
    for curvature, slope in ((1e3, -10.0), (1e5, 1.0), (1.0, 0.0)):
        steps = [ClassRisk(label, cost, 5, n_jobs).step(s, t, curvature, slope) for n_jobs in (1, 2)]
        assert (steps[0].k, steps[0].risk) == (steps[1].k, steps[1].risk)
        k = steps[0].k
        around = [k * (1.0 + change) for change in (-1e-3, -1e-6, 0.0, 1e-6, 1e-3)] + [0.0, 1.0]
        heights = [0.5 * curvature * k**2 + slope * k + losses(label, cost, s + k * t).sum() for k in around]
        assert heights[2] <= min(heights) * (1.0 + 1e-12) + 1e-12


@settings(max_examples=60)
@given(st.integers(1, 4), st.integers(2, 6), st.data())
def test_the_search_ends_within_its_arrays_for_any_numbers(n, n_classes, data):
    wild = st.floats(allow_nan=True, allow_infinity=True, width=64)
    s, t = (np.array(data.draw(st.lists(wild, min_size=n * n_classes, max_size=n * n_classes))) for _ in range(2))
    risk = ClassRisk(np.arange(n) % n_classes, np.ones(n), n_classes)
    with np.errstate(all="ignore"):
        _, places, _ = risk.kinks_in(s, t, 0.0, np.inf)
        assert len(places) <= n * (n_classes - 1)
        risk.step(s, t, 1.0, -1.0)
