"""Risks of pairs: against the enumeration of all pairs, with ties, groups of one rank, and 64-bit counts."""

import itertools
import tracemalloc

import numpy as np
import pytest

from widemargin.problems.ranking import OneGroupRisk, PairRisk, TwoRankRisk, concordance, pair_risk, thresholds


def pairs_of(rank, group):
    n = len(rank)
    return [(i, j) for i in range(n) for j in range(n) if group[i] == group[j] and rank[i] > rank[j]]


def ends_of(group):
    """The first row of each group of sorted group numbers, and the number of rows."""
    return np.append(np.unique(group, return_index=True)[1], len(group))


def one_group(n):
    return np.array([0, n])


def small(rng, ties):
    n = rng.integers(2, 15)
    s = rng.integers(-3, 4, n) / 2.0 if ties else rng.standard_normal(n)
    return s, rng.integers(0, 4, n), np.sort(rng.integers(0, 3, n))


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("seed", range(60))
def test_value_and_subgradient_are_the_sums_over_all_pairs(seed, ties):
    rng = np.random.default_rng(seed)
    s, rank, group = small(rng, ties)
    pairs, risk = pairs_of(rank, group), PairRisk(rank, ends_of(group), 2.0)
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
    risk = PairRisk(rank, ends_of(group), 3.0)
    value, c = risk.subgradient(s)
    for scale in (0.01, 0.5, 5.0):
        other = s + scale * rng.standard_normal(len(s))
        assert risk.value(other) >= value + c @ (other - s) - 1e-12


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("ties", [False, True])
def test_large_and_small_groups_give_the_sums_of_each(ties, n_jobs, rng):
    sizes = np.array([1, 40_000, 17, 16, 2, 900, 33, 30_000])
    ends = np.append(0, np.cumsum(sizes))
    s = rng.integers(-4, 5, ends[-1]) / 2.0 if ties else rng.standard_normal(ends[-1])
    rank = rng.permutation(ends[-1]) / 7.0
    rank[: ends[2]] = np.floor(rank[: ends[2]] / 5000.0)
    risk = PairRisk(rank, ends, 3.0, n_jobs)
    groups = [slice(*pair) for pair in itertools.pairwise(ends)]
    parts = [OneGroupRisk(np.unique(rank[group], return_inverse=True)[1], 1.0) for group in groups]
    assert risk.n_pairs == sum(part.n_pairs for part in parts)
    found = [part.subgradient(s[group]) for part, group in zip(parts, groups, strict=True)]
    value, c = risk.subgradient(s)
    shares = [part.n_pairs / risk.n_pairs for part in parts]
    assert value == pytest.approx(3.0 * sum(share * one for share, (one, _) in zip(shares, found, strict=True)))
    expected = np.concatenate([3.0 * share * one for share, (_, one) in zip(shares, found, strict=True)])
    np.testing.assert_allclose(c, expected, rtol=1e-12, atol=1e-18)


def test_memory_of_groups_is_that_of_the_largest(rng):
    ends, n_bytes = np.arange(0, 100_001, 100), {}
    for name, bounds in (("small", ends), ("large", np.array([0, 10, 100_000]))):
        risk, s = PairRisk(rng.integers(0, 5, 100_000), bounds, 1.0), rng.standard_normal(100_000)
        risk.subgradient(s)
        tracemalloc.start()
        risk.subgradient(s)
        n_bytes[name] = tracemalloc.get_traced_memory()[1] - s.nbytes
        tracemalloc.stop()
        assert n_bytes[name] <= 8 * risk.n_vectors * len(s) + 20_000
    assert 100 * n_bytes["small"] < n_bytes["large"]


def test_groups_of_one_rank_or_one_row_have_no_pairs():
    risk = PairRisk(np.array([1, 1, 2, 5]), np.array([0, 2, 3, 4]), 1.0)
    assert risk.n_pairs == 0
    value, c = risk.subgradient(np.arange(4.0))
    assert value == 0.0
    np.testing.assert_array_equal(c, 0.0)


def test_pair_counts_have_64_bits():
    n = 200_000
    rank = np.repeat([0, 1], n // 2)
    for risk in (PairRisk(rank, one_group(n), 1.0), OneGroupRisk(rank, 1.0)):
        assert risk.n_pairs == (n // 2) ** 2 > 2**32
        value, c = risk.subgradient(np.zeros(n))
        assert value == pytest.approx(1.0)
        np.testing.assert_allclose(c, np.where(rank == 1, -2.0 / n, 2.0 / n))


@pytest.mark.parametrize("n_ranks", [2, 5, 1000])
def test_many_rows_give_the_sums_over_all_pairs(n_ranks, rng):
    n = 3000
    s, rank = 2 * rng.standard_normal(n), rng.integers(0, n_ranks, n)
    rank = np.unique(rank, return_inverse=True)[1]
    value, c = OneGroupRisk(rank, 1.0, n_jobs=2).subgradient(s)
    same, d = PairRisk(rank, one_group(n), 1.0, n_jobs=2).subgradient(s)
    assert value == same
    np.testing.assert_array_equal(c, d)
    higher, violated = rank[:, None] > rank, s[:, None] - s < 1.0
    count = (higher & violated).astype(float)
    assert value == pytest.approx((count * (1.0 - s[:, None] + s)).sum() / higher.sum(), rel=1e-10)
    np.testing.assert_allclose(c, (count.sum(axis=0) - count.sum(axis=1)) / higher.sum(), rtol=1e-10, atol=1e-15)


@pytest.mark.parametrize("n", [2, 9, 40_000])
@pytest.mark.parametrize("ties", [False, True])
def test_two_ranks_sorted_separately_give_the_same_as_the_tree(n, ties, rng):
    rank = np.where(np.arange(n) == n // 2, 7, rng.choice([3, 7], n, p=[0.7, 0.3]))
    rank[0] = 3
    risk, general = pair_risk(rank, one_group(n), 2.0, n_jobs=2), PairRisk(rank, one_group(n), 2.0)
    assert isinstance(risk, TwoRankRisk)
    assert (risk.n_pairs, risk.scale) == (general.n_pairs, general.scale)
    for _ in range(3):
        s = rng.integers(-4, 5, n) / 2.0 if ties else rng.standard_normal(n)
        (value, c), (expected, d) = risk.subgradient(s), general.subgradient(s)
        assert value == pytest.approx(expected, rel=1e-10, abs=1e-13)
        np.testing.assert_allclose(c, d, rtol=1e-12, atol=1e-18)


def test_the_kind_of_risk_depends_on_groups_and_ranks():
    for rank, ends, kind in [
        ([0.5, 1, 2], [0, 3], OneGroupRisk), ([1, 1, 1], [0, 3], OneGroupRisk), ([7, 1, 7], [0, 3], TwoRankRisk),
        ([0, 1, 0], [0, 2, 3], PairRisk),
    ]:  # fmt: skip
        assert type(pair_risk(np.array(rank), np.array(ends), 1.0)) is kind


def test_a_step_decreases_the_objective_and_has_a_cut_beyond_the_minimiser(rng):
    s, rank = rng.standard_normal(50), rng.integers(0, 3, 50)
    risk = OneGroupRisk(rank, 10.0)
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
