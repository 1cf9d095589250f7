"""Cutting plane models with a kernel on a basis, of rows on a cluster: the models of the ordinary estimators."""

import dask.array as da
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from tests.distributed.clusters import blocks

import widemargin
from widemargin import dask as on_cluster
from widemargin.models import fixed_basis

OPTIONS = {"C": 20.0, "kernel": "rbf", "tol": 1e-5, "max_iter": None}
NAMES = ("RankSVM", "OrdinalSVC", "ROCAreaSVC", "MeasureSVC")


def rings(rng):
    X = rng.standard_normal((90, 3))
    return X, (np.square(X).sum(axis=1) + 0.3 * rng.standard_normal(90) > 2.5).astype(int)


def pair_of_models(name, client, X, y, **options):
    """Return the model of rows on the cluster, and that of the same rows in this process."""
    model = getattr(on_cluster, name)(client=client, **options).fit(*blocks(X, y))
    return model, getattr(widemargin, name)(**options).fit(X, y)


@pytest.mark.parametrize("name", NAMES)
def test_the_model_is_that_of_the_ordinary_estimator(name, client, rng):
    X, y = rings(rng)
    model, ordinary = pair_of_models(name, client, X, y, basis=20, **OPTIONS)
    assert_array_equal(model.basis_, ordinary.basis_)  # all rows are in the sample
    assert model._gamma == pytest.approx(ordinary._gamma, rel=1e-12)
    assert model.objective_ * (1.0 - model.gap_) <= ordinary.objective_ * (1.0 + 1e-9)
    assert ordinary.objective_ * (1.0 - ordinary.gap_) <= model.objective_ * (1.0 + 1e-9)
    method = "position" if name == "OrdinalSVC" else "decision_function"
    scores = getattr(model, method)(blocks(X, y)[0]).compute()
    assert_allclose(scores, getattr(model.to_local(), method)(X), rtol=1e-12, atol=1e-12)
    assert model.score(*blocks(X, y)) == model.to_local().score(X, y)


def test_queries_stay_in_their_partitions(client, rng):
    X, y = rings(rng)
    qid = np.repeat(np.arange(9), 10)
    options = {"basis": X[:15], "gamma": 0.3, **OPTIONS}
    collections = [da.from_array(one, chunks=(30, *one.shape[1:])) for one in (X, y, qid)]
    model = on_cluster.RankSVM(client=client, **options).fit(*collections)
    ordinary = widemargin.RankSVM(**options).fit(X, y, qid=qid)
    assert model.objective_ == pytest.approx(ordinary.objective_, rel=2e-5)


@pytest.mark.parametrize("name", ["RankSVM", "MeasureSVC"])
def test_other_kernels_give_the_same_objective(name, client, rng):
    X, y = rings(rng)
    options = {**OPTIONS, "kernel": "poly", "coef0": 1.0, "degree": 2, "gamma": 0.4}
    model, ordinary = pair_of_models(name, client, X, y, basis=X[:8], **options)
    assert model.objective_ == pytest.approx(ordinary.objective_, rel=2e-5)


def test_stages_on_a_cluster_never_raise_the_objective(client, rng, monkeypatch):
    monkeypatch.setattr(fixed_basis, "_FIRST_POINTS", 4)
    monkeypatch.setattr(fixed_basis, "_SMALLEST_DECREASE", -1.0)
    monkeypatch.setattr(fixed_basis, "_MOST_POINTS", 16)
    X, y = rings(rng)
    model = on_cluster.ROCAreaSVC(client=client, basis="auto", **OPTIONS).fit(*blocks(X, y))
    assert len(model.history_) == 3
    assert (np.diff(model.history_["primal"]) <= 0.0).all()
