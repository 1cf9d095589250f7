"""Parameters, lazy predictions, and the ordinary estimator of a fitted one."""

import inspect
import pickle

import dask.array as da
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from tests.distributed.clusters import blocks, classes_of

import widemargin
from widemargin import dask as on_cluster

NAMES = ["LinearSVC", "LinearSVR", "LinearSVCCV", "RankSVM", "OrdinalSVC", "ROCAreaSVC", "MeasureSVC"]


@pytest.mark.parametrize("name", NAMES)
def test_parameters_are_those_of_the_ordinary_estimator_and_a_client(name):
    kind, ordinary = getattr(on_cluster, name), getattr(widemargin, name)
    assert {**ordinary().get_params(), "client": None} == kind().get_params()
    own, others = (inspect.signature(one).parameters for one in (kind, ordinary))
    assert list(own) == [*others, "client"]
    assert all(own[one].default is others[one].default for one in others)
    changed = clone(kind(tol=0.5)).set_params(max_iter=7)
    assert (changed.tol, changed.max_iter, changed.client) == (0.5, 7, None)
    with pytest.raises(ValueError, match="client"):
        kind(client="tcp://nowhere").fit(None)


@pytest.fixture(scope="module")
def fitted(shared_client):
    """A model of three classes and its rows."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((250, 3))
    y = np.array(["a", "b", "c"])[np.digitize(X[:, 0], [-0.5, 0.5])]
    return on_cluster.LinearSVC(client=shared_client).fit(*blocks(X, y)), X, y


def test_predictions_are_lazy_and_have_the_blocks_of_the_rows(fitted, client):
    model, X, _ = fitted
    rows = blocks(X)[0]
    scores, labels = model.decision_function(rows), model.predict(rows)
    assert isinstance(scores, da.Array)
    assert (scores.shape, scores.chunks[0], scores.dtype) == ((250, 3), rows.chunks[0], np.float64)
    assert (labels.shape, labels.chunks, labels.dtype) == ((250,), (rows.chunks[0],), np.dtype("<U1"))
    assert np.array_equal(scores.compute(scheduler=client), model.to_local().decision_function(X))
    unknown = rows[rows[:, 0] > 0]
    assert np.isnan(model.predict(unknown).shape[0])
    assert np.array_equal(model.predict(unknown).compute(scheduler="sync"), model.predict(X[X[:, 0] > 0]))
    none = model.predict(rows[rows[:, 0] > 100]).compute(scheduler="sync")
    assert (none.shape, none.dtype) == ((0,), np.dtype("<U1"))
    with pytest.raises(NotFittedError, match="not fitted"):
        on_cluster.LinearSVC().predict(rows)


def test_the_ordinary_estimator_of_a_model_needs_no_cluster_and_is_saved(fitted, tmp_path):
    model, X, y = fitted
    ordinary = model.to_local()
    assert type(ordinary) is widemargin.LinearSVC
    assert "client" not in ordinary.get_params()
    assert ordinary.score(X, y) == model.score(X, y)
    assert np.array_equal(pickle.loads(pickle.dumps(ordinary)).predict(X), ordinary.predict(X))
    widemargin.save_model(ordinary, tmp_path / "model")
    loaded = widemargin.load_model(tmp_path / "model")
    assert np.array_equal(loaded.decision_function(X), ordinary.decision_function(X))
    assert loaded.gap_ == model.gap_


def test_fitted_attributes_are_plain_arrays_of_this_process(fitted):
    model, _, _ = fitted
    assert isinstance(model.coef_, np.ndarray)
    assert model.coef_.shape == (3, 3)
    rooms = {name: type(value).__module__ for name, value in vars(model).items() if name != "client"}
    assert not [name for name, room in rooms.items() if room.startswith(("dask", "distributed"))]


def test_the_process_of_a_worker_ends_at_once(rng):
    from tests.distributed.clusters import cluster_of

    with cluster_of(1) as client:
        on_cluster.LinearSVC(client=client).fit(*blocks(*classes_of(rng)))
        assert client.run(_freezes_at_exit) == dict.fromkeys(client.scheduler_info()["workers"], True)


def _freezes_at_exit():
    from widemargin.distributed.worker_process import _freeze_at_exit

    return _freeze_at_exit.cache_info().currsize == 1
