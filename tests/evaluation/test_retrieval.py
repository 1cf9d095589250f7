"""Measures of orders, against enumeration: all pairs, all orders of rows with equal scores."""

from itertools import permutations

import numpy as np
import pytest
from sklearn.metrics import ndcg_score

from widemargin import RankSVM
from widemargin.evaluation.orders import rank_facts, rank_lines
from widemargin.evaluation.predictions import Prediction
from widemargin.evaluation.retrieval import (
    count_pairs,
    hits,
    ndcg,
    prbep,
    precision_at,
    recall_at,
    roc_area,
)


def orders(scores):
    """Return all orders of rows by falling score."""
    rows = range(len(scores))
    return [list(order) for order in permutations(rows) if all(np.diff(scores[list(order)]) <= 0)]


@pytest.fixture(params=range(6))
def small(request):
    """Scores with ties, targets, positives and queries of seven rows."""
    random = np.random.default_rng(request.param)
    scores, y = random.integers(0, 4, 7).astype(float), random.integers(0, 3, 7).astype(float)
    return scores, y, y > 0, random.integers(0, 3, 7)


def test_pairs_are_those_that_enumeration_finds(small):
    scores, y, _, query = small
    found = count_pairs(scores, y, query)
    for name, *counts in zip(np.unique(query), *found, strict=True):
        rows = np.flatnonzero(query == name)
        signs = [np.sign(scores[i] - scores[j]) for i in rows for j in rows if y[i] > y[j]]
        assert counts == [signs.count(-1.0), signs.count(0.0), len(signs)]


def test_what_is_printed_of_pairs_agrees(small):
    by_query = np.argsort(small[3], kind="stable")
    scores, y, query = small[0][by_query], small[1][by_query], small[3][by_query]
    model = RankSVM().fit(np.arange(7.0).reshape(-1, 1), y, qid=query)
    model.coef_ = np.ones_like(model.coef_)
    facts = rank_facts(model, y, Prediction(scores, scores, query))
    assert facts["swapped_percent"] == pytest.approx(100.0 * facts["swapped_pairs"] / facts["pairs"])
    right = facts["pairs"] - facts["swapped_pairs"] - facts["tied_pairs"]
    assert facts["pair_concordance"] == pytest.approx((right + facts["tied_pairs"] / 2) / facts["pairs"])
    assert facts["concordance"] == pytest.approx(model.score(scores.reshape(-1, 1), y, qid=query))
    assert rank_lines(facts)[0] == (
        f"Swapped pairs = {facts['swapped_pairs']} of {facts['pairs']} ({facts['swapped_percent']:.2f}%), "
        f"{facts['tied_pairs']} tied"
    )


@pytest.mark.parametrize("k", [1, 2, 3, 10])
def test_ndcg_is_the_mean_over_the_orders_of_equal_scores(k, small):
    scores, y, _, query = small
    parts = []
    for name in np.unique(query):
        s, relevance = scores[query == name], y[query == name]
        gain, discount = 2.0**relevance - 1.0, np.where(np.arange(len(s)) < k, 1 / np.log2(np.arange(len(s)) + 2.0), 0)
        if relevance.max() > 0:
            best = np.sort(gain)[::-1] @ discount
            parts.append(np.mean([gain[order] @ discount / best for order in orders(s)]))
    mean, n_queries = ndcg(scores, y, query, k)
    assert n_queries == len(parts)
    assert mean == pytest.approx(np.mean(parts))


def test_ndcg_agrees_with_scikit_learn(rng):
    scores, y = rng.standard_normal(50), rng.integers(0, 5, 50).astype(float)
    expected = ndcg_score([2.0**y - 1.0], [scores], k=10)
    assert ndcg(scores, y, np.zeros(50, int))[0] == pytest.approx(expected)


def test_ndcg_takes_targets_of_any_size():
    scores, query = np.array([3.0, 2.0, 1.0]), np.zeros(3, int)
    assert ndcg(scores, np.array([5000.0, 4999.0, -5000.0]), query)[0] == pytest.approx(1.0)
    assert ndcg(scores, np.array([-1.0, -2.0, 1e-3]), query)[0] == pytest.approx(0.5)  # third place: 1 / log2(4)


def test_the_rows_with_the_largest_scores_count_by_all_orders_of_equal_ones(small):
    scores, _, positive, _ = small
    for k in range(1, 8):
        expected = np.mean([positive[order[:k]].sum() for order in orders(scores)])
        assert hits(scores, positive, k) == pytest.approx(expected)
        assert precision_at(scores, positive, k) == pytest.approx(expected / k)
        assert recall_at(scores, positive, k) == pytest.approx(expected / positive.sum())


def test_precision_and_recall_are_equal_where_prbep_is(small):
    scores, _, positive, _ = small
    k = int(positive.sum())
    assert prbep(scores, positive) == precision_at(scores, positive, k) == recall_at(scores, positive, k)


def test_the_roc_area_is_the_part_of_pairs_in_order(small):
    scores, _, positive, _ = small
    pairs = [np.sign(a - b) / 2 + 0.5 for a in scores[positive] for b in scores[~positive]]
    assert roc_area(scores, positive) == pytest.approx(np.mean(pairs))


def test_what_is_undefined_is_nan():
    scores, none, query = np.array([1.0, 2.0]), np.zeros(2, bool), np.zeros(2, int)
    undefined = [roc_area(scores, none), roc_area(scores, ~none), prbep(scores, none), recall_at(scores, none, 1)]
    undefined += [precision_at(scores, none, 3)]
    undefined += [ndcg(scores, np.zeros(2), query)[0]]
    assert np.isnan(undefined).all()
    facts = rank_facts(None, np.ones(2), Prediction(scores, scores, query))
    assert np.isnan([facts["swapped_percent"], facts["pair_concordance"], facts["concordance"]]).all()
    assert (facts["swapped_pairs"], facts["tied_pairs"], facts["pairs"], facts["queries_with_pairs"]) == (0, 0, 0, 0)


def test_pairs_are_counted_beyond_32_bits():
    y = np.repeat([0.0, 1.0], 100_000)
    assert count_pairs(-y, y, np.zeros(len(y), int)) == (10**10, 0, 10**10)
    assert count_pairs(0.0 * y, y, np.zeros(len(y), int)) == (0, 10**10, 10**10)
