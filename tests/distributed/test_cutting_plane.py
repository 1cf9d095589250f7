"""`RankSVM`, `OrdinalSVC`, `ROCAreaSVC` and `MeasureSVC` on a cluster: the models of the ordinary estimators."""

from itertools import pairwise

import dask
import dask.array as da
import numpy as np
import pytest
from tests.distributed.clusters import blocks, classes_of

import widemargin
from widemargin import dask as on_cluster
from widemargin.distributed import matrix


def queries_of(rng, n_queries=20):
    """Return rows in queries of different lengths, and the lengths of blocks that cut none of them."""
    lengths = rng.integers(1, 20, n_queries)
    qid = np.repeat(np.arange(n_queries), lengths)
    X = rng.standard_normal((len(qid), 4))
    y = np.round(X @ rng.standard_normal(4) + rng.standard_normal(len(qid)))
    return X, y, qid, (int(lengths[:7].sum()), int(lengths[7:8].sum()), int(lengths[8:].sum()))


def pair_losses(model, X, y, qid, C):
    """Return the objective of a ranking, by a loop over all pairs of each query."""
    scores, total, n_pairs = X @ model.coef_.ravel(), 0.0, 0
    for query in np.unique(qid):
        s, t = scores[qid == query], y[qid == query]
        better = t[:, None] > t[None, :]
        total += np.maximum(0.0, 1.0 - (s[:, None] - s[None, :]))[better].sum()
        n_pairs += better.sum()
    return 0.5 * (model.coef_**2).sum() + C * total / n_pairs


def test_a_ranking_keeps_scores_in_the_partitions_and_is_as_good_as_it_says(client, rng, monkeypatch):
    X, y, qid, lengths = queries_of(rng)
    monkeypatch.setattr(matrix.GatheredMatrix, "of", None)  # scores of all rows cannot come to the client
    collections = [da.from_array(one, chunks=(lengths, *one.shape[1:])) for one in (X, y, qid)]
    model = on_cluster.RankSVM(C=10.0, client=client).fit(*collections)
    ordinary = widemargin.RankSVM(C=10.0, tol=1e-8, max_iter=None).fit(X, y, qid=qid)
    objective = pair_losses(model, X, y, qid, 10.0)
    assert model.gap_ <= 1e-3
    assert model.objective_ == pytest.approx(objective, rel=1e-9)
    assert objective * (1.0 - model.gap_) <= ordinary.objective_ <= objective * (1.0 + 1e-8)


def test_a_ranking_of_all_rows_is_that_of_the_ordinary_estimator(client, rng):
    X, y, _, _ = queries_of(rng)
    model = on_cluster.RankSVM(client=client).fit(*blocks(X, y))
    ordinary = widemargin.RankSVM().fit(X, y)
    assert model.gap_ <= 1e-3
    assert model.objective_ == pytest.approx(ordinary.objective_, rel=2e-3)
    assert model.objective_ == pytest.approx(pair_losses(model, X, y, np.zeros(len(y)), 1.0), rel=1e-9)


def test_a_query_cut_by_a_border_is_refused_by_name(client, rng):
    X, qid = rng.standard_normal((20, 2)), np.repeat([3, 7], 10)
    y = rng.integers(0, 3, 20)
    with pytest.raises(ValueError, match="Rows of query 7 are in partitions 1 and 2: a query must be in one partition"):
        on_cluster.RankSVM(client=client).fit(*(da.from_array(one, chunks=((10, 4, 6), *one.shape[1:]))
                                                for one in (X, y, qid)))  # fmt: skip


@pytest.mark.parametrize(
    ("name", "options"),
    [("OrdinalSVC", {}), ("ROCAreaSVC", {}), ("MeasureSVC", {}), ("MeasureSVC", {"measure": "error"}),
     ("MeasureSVC", {"measure": "average_precision"}),
     ("ROCAreaSVC", {"scaling": "standard"}), ("MeasureSVC", {"solver": "svmperf", "tol": 0.01})],
)  # fmt: skip
def test_models_of_all_rows_are_those_of_the_ordinary_estimators(name, options, client, rng):
    X, y = classes_of(rng, 300, 3)
    y = np.digitize(X[:, 0] + 0.3 * rng.standard_normal(300), [-0.5, 0.6]) if name == "OrdinalSVC" else y
    tol = options.get("tol", 1e-3)
    model = getattr(on_cluster, name)(client=client, **options).fit(*blocks(X, y))
    ordinary = getattr(widemargin, name)(**options).fit(X, y)
    assert model.gap_ <= tol
    assert model.objective_ == pytest.approx(ordinary.objective_, rel=2.0 * tol)
    assert model.classes_.tolist() == ordinary.classes_.tolist()
    lazy = model.predict(blocks(X)[0])
    assert lazy.shape == (300,)
    assert np.array_equal(lazy.compute(scheduler=client), model.to_local().predict(X))


def test_delayed_blocks_of_queries(client, rng):
    X, y, qid, lengths = queries_of(rng)
    ends = np.cumsum([0, *lengths])
    parts = [slice(*pair) for pair in pairwise(ends)]
    delayed = [dask.delayed((X[one], y[one], None, qid[one])) for one in parts]
    model = on_cluster.RankSVM(client=client).fit(delayed)
    collections = [da.from_array(one, chunks=(lengths, *one.shape[1:])) for one in (X, y, qid)]
    assert np.array_equal(model.coef_, on_cluster.RankSVM(client=client).fit(*collections).coef_)


def test_positions_of_an_ordinal_model_are_lazy(client, rng):
    X, y = classes_of(rng, 200, 3)
    model = on_cluster.OrdinalSVC(client=client).fit(*blocks(X, y))
    position = model.position(blocks(X)[0])
    assert isinstance(position, da.Array)
    np.testing.assert_array_equal(position.compute(scheduler=client), model.to_local().position(X))
