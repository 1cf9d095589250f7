"""`save_model` writes the ordinary estimator for one of `widemargin.dask`, and `load_model` needs no Dask."""

import subprocess
import sys

import dask.array as da
import numpy as np
import pytest
from distributed import Client

import widemargin
import widemargin.dask
from widemargin import load_model, save_model
from widemargin.dask import (
    SVC,
    SVR,
    LinearSVC,
    LinearSVCCV,
    LinearSVR,
    MeasureSVC,
    OneClassSVM,
    OrdinalSVC,
    RankSVM,
    ROCAreaSVC,
)


@pytest.fixture(scope="module")
def client():
    with Client(processes=False, dashboard_address=":0", n_workers=1, threads_per_worker=1) as client:
        yield client


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(3)
    X = rng.standard_normal((400, 4))
    return X, (X[:, 0] + rng.standard_normal(400) > 0).astype(np.int64)


@pytest.mark.parametrize("kind", [LinearSVC, LinearSVR, RankSVM, OrdinalSVC, ROCAreaSVC, MeasureSVC])
def test_what_is_saved_is_the_ordinary_estimator(kind, client, rows, tmp_path):
    X, y = rows
    model = kind(C=0.5, client=client).fit(da.from_array(X, chunks=(100, 4)), da.from_array(y, chunks=100))
    save_model(model, tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    assert type(loaded) is getattr(widemargin, kind.__name__)
    assert loaded.C == 0.5
    assert np.array_equal(loaded.coef_, model.coef_)
    assert (loaded.gap_, loaded.objective_, loaded.status_) == (model.gap_, model.objective_, model.status_)
    assert np.array_equal(loaded.predict(X), model.predict(X))


@pytest.mark.parametrize("kind", [SVC, SVR, OneClassSVM])
def test_of_a_machine_on_a_basis_the_ordinary_estimator_is_saved(kind, client, rows, tmp_path):
    X, y = rows
    model = kind(basis=10, random_state=0, client=client)
    model.fit(da.from_array(X, chunks=(100, 4)), da.from_array(y, chunks=100))
    save_model(model, tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    assert type(loaded) is getattr(widemargin, kind.__name__)
    assert (loaded.gap_, loaded.objective_, loaded.status_) == (model.gap_, model.objective_, model.status_)
    assert np.array_equal(loaded.predict(X), model.predict(X))


def test_of_cross_validation_the_chosen_model_is_saved(client, rows, tmp_path):
    X, y = rows
    model = LinearSVCCV(Cs=[0.01, 0.1], cv=2, client=client)
    model.fit(da.from_array(X, chunks=(100, 4)), da.from_array(y, chunks=100))
    save_model(model, tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    assert type(loaded) is widemargin.LinearSVC
    assert loaded.C == model.C_
    assert np.array_equal(loaded.coef_, model.coef_)


def test_other_formats_take_it_too_and_one_that_is_not_fitted_is_refused(client, rows, tmp_path):
    X, y = rows
    model = LinearSVC(client=client).fit(da.from_array(X, chunks=(100, 4)), da.from_array(y, chunks=100))
    save_model(model, tmp_path / "model", format="liblinear")
    assert np.array_equal(load_model(tmp_path / "model").coef_, model.coef_)
    with pytest.raises(Exception, match="not fitted"):
        save_model(LinearSVC(client=client), tmp_path / "other")
    assert not (tmp_path / "other").exists()


def test_saving_and_loading_do_not_import_dask(rows, tmp_path):
    script = (
        "import sys, widemargin as wm\n"
        "model = wm.LinearSVC().fit([[0.0], [1.0], [2.0]], [0, 1, 1])\n"
        "wm.save_model(model, sys.argv[1])\n"
        "wm.load_model(sys.argv[1])\n"
        "assert not {'dask', 'distributed'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", script, str(tmp_path / "model")], check=True)
