"""The mean over queries of pair losses, and the zero/one loss of a labelling, by brute force."""

from itertools import pairwise, product

import numpy as np
import pytest

from widemargin import RankSVM
from widemargin.problems.measures import MeasureRisk
from widemargin.problems.query_ranking import QueryRisk


@pytest.mark.parametrize("seed", range(20))
def test_value_and_subgradient_by_brute_force(seed):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 9, 5)
    ends = np.concatenate([[0], np.cumsum(sizes)])
    rank, s = rng.integers(0, 3, ends[-1]).astype(float), rng.standard_normal(ends[-1])
    risk = QueryRisk(rank, ends, 7.0)
    means, gradients = [], []
    for begin, end in pairwise(ends):
        losses, gradient = [], np.zeros(ends[-1])
        for i, j in product(range(begin, end), repeat=2):
            if rank[i] > rank[j]:
                losses.append(max(0.0, 1.0 - s[i] + s[j]))
                if s[i] - s[j] < 1.0:
                    gradient[i] -= 1.0
                    gradient[j] += 1.0
        if losses:
            means.append(np.mean(losses))
            gradients.append(gradient / len(losses))
    value, c = risk.subgradient(s)
    assert value == pytest.approx(7.0 * np.mean(means))
    np.testing.assert_allclose(c, 7.0 * np.mean(gradients, axis=0), atol=1e-12)


def test_queries_of_the_same_size_and_ranks_give_the_same_model(rng):
    X, query = rng.standard_normal((60, 3)), np.repeat(np.arange(10), 6)
    y = np.tile([0, 0, 1, 1, 2, 2], 10)
    models = [RankSVM(C=5.0, tol=1e-7, average=average).fit(X, y, qid=query) for average in ("pairs", "queries")]
    np.testing.assert_allclose(models[0].coef_, models[1].coef_, atol=1e-4)
    with pytest.raises(ValueError, match="'average' parameter of RankSVM must be a str among"):
        RankSVM(average="rows").fit(X, y, qid=query)


@pytest.mark.parametrize("seed", range(20))
def test_zero_one_by_all_labellings(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 8))
    sign = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    sign[:2] = [1.0, -1.0]
    s = rng.standard_normal(n) * rng.choice([0.1, 3.0]) + 2.0 * sign * rng.integers(0, 2)
    best = 0.0
    for z in product([-1.0, 1.0], repeat=n):
        best = max(best, float(np.any(z != sign)) + float((np.array(z) - sign) @ s) / n)
    value, c = MeasureRisk("zero_one", sign, 4.0).subgradient(s)
    assert value == pytest.approx(4.0 * best)
    if value > 0.0:
        assert value == pytest.approx(4.0 + float(c @ s))
