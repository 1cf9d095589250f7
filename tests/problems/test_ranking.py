"""Risks of pairs: against the enumeration of all pairs, with ties, groups of one rank, and 64-bit counts."""

import itertools

import numpy as np
import pytest

from widemargin.problems.ranking import PairRisk, TwoRankRisk, concordance, pair_risk, thresholds


def pairs_of(rank, group):
    n = len(rank)
    return [(i, j) for i in range(n) for j in range(n) if group[i] == group[j] and rank[i] > rank[j]]


def small(rng, ties):
    n = rng.integers(2, 15)
    s = rng.integers(-3, 4, n) / 2.0 if ties else rng.standard_normal(n)
    return s, rng.integers(0, 4, n), np.sort(rng.integers(0, 3, n))


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("seed", range(60))
def test_value_and_subgradient_are_the_sums_over_all_pairs(seed, ties):
    rng = np.random.default_rng(seed)
    s, rank, group = small(rng, ties)
    pairs, risk = pairs_of(rank, group), PairRisk(rank, group, 2.0)
    assert risk.n_pairs == len(pairs)
    value, c = risk.subgradient(s)
    expected, weight = np.zeros(len(s)), 2.0 / max(1, len(pairs))
    for i, j in pairs:
        if s[i] - s[j] < 1.0:
            expected[i] -= weight
            expected[j] += weight
    np.testing.assert_allclose(c, expected, atol=1e-15)
    assert value == pytest.approx(weight * sum(max(0.0, 1.0 - (s[i] - s[j])) for i, j in pairs), abs=1e-12)


@pytest.mark.parametrize("seed", range(10))
def test_a_subgradient_lies_below_everywhere(seed):
    rng = np.random.default_rng(seed)
    s, rank, group = small(rng, ties=True)
    risk = PairRisk(rank, group, 3.0)
    value, c = risk.subgradient(s)
    for scale in (0.01, 0.5, 5.0):
        other = s + scale * rng.standard_normal(len(s))
        assert risk.value(other) >= value + c @ (other - s) - 1e-12


def test_rows_of_a_group_need_not_be_contiguous(rng):
    s, rank, group = rng.standard_normal(30), rng.integers(0, 3, 30), rng.integers(0, 4, 30)
    together = np.argsort(group, kind="stable")
    value, c = PairRisk(rank, group, 1.0).subgradient(s)
    same, d = PairRisk(rank[together], group[together], 1.0).subgradient(s[together])
    assert value == pytest.approx(same)
    np.testing.assert_allclose(c[together], d)


def test_groups_of_one_rank_or_one_row_have_no_pairs():
    risk = PairRisk(np.array([1, 1, 2, 5]), np.array([0, 0, 1, 2]), 1.0)
    assert risk.n_pairs == 0
    value, c = risk.subgradient(np.arange(4.0))
    assert value == 0.0
    np.testing.assert_array_equal(c, 0.0)


def test_pair_counts_have_64_bits():
    n = 200_000
    rank = np.repeat([0, 1], n // 2)
    risk = PairRisk(rank, np.zeros(n, int), 1.0)
    assert risk.n_pairs == (n // 2) ** 2 > 2**32
    value, c = risk.subgradient(np.zeros(n))
    assert value == pytest.approx(1.0)
    np.testing.assert_allclose(c, np.where(rank == 1, -2.0 / n, 2.0 / n))


@pytest.mark.parametrize("n_ranks", [2, 5, 1000])
def test_many_rows_give_the_sums_over_all_pairs(n_ranks, rng):
    n = 3000
    s, rank = 2 * rng.standard_normal(n), rng.integers(0, n_ranks, n)
    value, c = PairRisk(rank, np.zeros(n, int), 1.0, n_jobs=2).subgradient(s)
    higher, violated = rank[:, None] > rank, s[:, None] - s < 1.0
    count = (higher & violated).astype(float)
    assert value == pytest.approx((count * (1.0 - s[:, None] + s)).sum() / higher.sum(), rel=1e-10)
    np.testing.assert_allclose(c, (count.sum(axis=0) - count.sum(axis=1)) / higher.sum(), rtol=1e-10, atol=1e-15)


@pytest.mark.parametrize("n", [2, 9, 40_000])
@pytest.mark.parametrize("ties", [False, True])
def test_two_ranks_sorted_separately_give_the_same_as_the_tree(n, ties, rng):
    rank, group = np.where(np.arange(n) == n // 2, 7, rng.choice([3, 7], n, p=[0.7, 0.3])), np.full(n, 5)
    rank[0] = 3
    risk, general = pair_risk(rank, group, 2.0, n_jobs=2), PairRisk(rank, group, 2.0)
    assert isinstance(risk, TwoRankRisk)
    assert (risk.n_pairs, risk.scale) == (general.n_pairs, general.scale)
    for _ in range(3):
        s = rng.integers(-4, 5, n) / 2.0 if ties else rng.standard_normal(n)
        (value, c), (expected, d) = risk.subgradient(s), general.subgradient(s)
        assert value == pytest.approx(expected, rel=1e-10, abs=1e-13)
        np.testing.assert_allclose(c, d, rtol=1e-12, atol=1e-18)


def test_several_groups_or_ranks_give_a_pair_risk():
    for rank, group in [([0, 1, 2], [0, 0, 0]), ([0, 1, 0], [0, 0, 1]), ([1, 1, 1], [0, 0, 0])]:
        assert isinstance(pair_risk(np.array(rank), np.array(group), 1.0), PairRisk)


def test_a_step_decreases_the_objective_and_has_a_cut_beyond_the_minimiser(rng):
    s, rank = rng.standard_normal(50), rng.integers(0, 3, 50)
    risk = PairRisk(rank, np.zeros(50, int), 10.0)
    t = rank - rank.mean() + 0.1 * rng.standard_normal(50)
    step = risk.step(s, t, 5.0, 0.1)
    assert step.k > 0.0
    assert step.risk + 0.5 * 5.0 * step.k**2 + 0.1 * step.k < risk.value(s)
    scores, value, c = step.cut
    k = ((scores - s) @ t) / (t @ t)
    assert c @ t + 0.1 + 5.0 * k >= 0.0
    assert value == pytest.approx(risk.value(scores))


@pytest.mark.parametrize("seed", range(40))
def test_concordance_is_the_fraction_over_all_pairs(seed):
    s, rank, group = small(np.random.default_rng(seed), ties=True)
    expected = []
    for one in range(3):
        pairs = [(i, j) for i, j in pairs_of(rank, group) if group[i] == one]
        if pairs:
            expected.append(np.mean([1.0 if s[i] > s[j] else 0.5 if s[i] == s[j] else 0.0 for i, j in pairs]))
    np.testing.assert_allclose(concordance(s, rank, group), expected)


@pytest.mark.parametrize("seed", range(60))
def test_no_other_thresholds_have_a_smaller_error(seed):
    rng = np.random.default_rng(seed)
    n = rng.integers(2, 9)
    s, rank = np.round(2 * rng.standard_normal(n)) / 2, rng.integers(0, 4, n)
    n_ranks = rank.max() + 2  # the highest has no row
    found = thresholds(s, rank, n_ranks)
    assert (np.diff(found) >= 0.0).all()
    halfway = (np.sort(s)[1:] + np.sort(s)[:-1]) / 2
    candidates = np.unique(np.concatenate([[s.min() - 1, s.max() + 1], halfway]))
    least = min(
        np.abs(np.searchsorted(cuts, s, side="left") - rank).sum()
        for cuts in itertools.combinations_with_replacement(candidates, n_ranks - 1)
    )
    assert np.abs(np.searchsorted(found, s, side="left") - rank).sum() == least
