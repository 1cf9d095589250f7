"""LinearOneClassSVM: the model of kernel machines and of LIBLINEAR, the fraction outside, and rows on disk."""

from pathlib import Path

import numpy as np
import pytest
from liblinear import liblinearutil
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array, csr_matrix
from sklearn.svm import OneClassSVM as PeerOneClassSVM

from widemargin import (
    ConvergenceWarning,
    LinearOneClassSVM,
    OneClassSVM,
    predict_file,
    report_file,
    train_file,
    write_svmlight,
)
from widemargin.data.blocks import placement
from widemargin.data.blocks.reader import open_blocks
from widemargin.data.blocks.writer import write_blocks

SOLVERS = ["auto", "pairs", "newton", "ocas", "svmperf"]
ON_DISK = ["auto", "newton", "ocas", "svmperf"]


@pytest.fixture
def X(rng):
    return rng.standard_normal((400, 5)) + np.array([1.5, 0.5, 1.0, 0.0, 2.0])


@pytest.mark.parametrize("container", [np.asarray, csr_array, csr_matrix])
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("nu", [0.03, 0.4])
def test_the_model_is_that_of_a_linear_kernel(container, solver, nu, X, rng):
    weight = rng.uniform(0.0, 2.0, len(X))
    ours = LinearOneClassSVM(nu=nu, tol=1e-9, solver=solver).fit(container(X), sample_weight=weight)
    kernel = OneClassSVM(kernel="linear", nu=nu, tol=1e-9, stopping="gap").fit(X, sample_weight=weight)
    peer = PeerOneClassSVM(kernel="linear", nu=nu, tol=1e-9).fit(X, sample_weight=weight)
    assert ours.objective_ == pytest.approx(kernel.objective_, rel=1e-8)
    for other in (kernel, peer):
        assert_allclose(ours.coef_, other.coef_, rtol=1e-5)
        assert_allclose(ours.offset_, other.offset_, rtol=1e-5)
    assert_allclose(ours.score_samples(X) - ours.offset_, ours.decision_function(X))
    assert_array_equal(ours.predict(container(X)), np.where(ours.decision_function(X) >= 0.0, 1, -1))
    away = np.abs(ours.decision_function(X)) > 1e-4 * ours.offset_
    assert_array_equal(ours.predict(X)[away], kernel.predict(X)[away])


@pytest.mark.parametrize("nu", [0.1, 0.5])
def test_the_objective_is_not_above_that_of_liblinear(nu, X):
    theirs = liblinearutil.train(np.ones(len(X)), csr_matrix(X), f"-s 21 -n {nu} -e 1e-9 -q")
    w, rho = np.array(theirs.w[: X.shape[1]]), theirs.rho
    objective = 0.5 * w @ w - nu * len(X) * rho + np.maximum(0.0, rho - X @ w).sum()
    ours = LinearOneClassSVM(nu=nu, tol=1e-10).fit(X)
    assert ours.objective_ <= objective + 1e-9 * abs(objective)
    assert_allclose(ours.coef_[0], w, rtol=1e-4)
    assert ours.offset_[0] == pytest.approx(rho, rel=1e-4)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("nu", [1e-3, 0.1, 0.31, 1.0])
@pytest.mark.parametrize("tol", [1e-1, 1e-8])
def test_at_most_the_fraction_nu_lies_outside_however_loose_the_tolerance(solver, nu, tol, X, rng):
    weight = rng.uniform(0.1, 2.0, len(X))
    outside = LinearOneClassSVM(nu=nu, tol=tol, solver=solver).fit(X, sample_weight=weight).predict(X) < 0
    assert weight[outside].sum() <= nu * weight.sum() * (1.0 + 1e-12)


def test_weights_scale_the_model_and_not_its_predictions(X, rng):
    weight = rng.uniform(0.1, 2.0, len(X))
    once, four_times = (LinearOneClassSVM(nu=0.2).fit(X, sample_weight=k * weight) for k in (1.0, 4.0))
    assert_allclose(four_times.coef_, 4.0 * once.coef_, rtol=1e-9)
    assert_allclose(four_times.offset_, 4.0 * once.offset_, rtol=1e-9)
    assert four_times.objective_ == pytest.approx(16.0 * once.objective_, rel=1e-9)
    assert_array_equal(four_times.predict(X), once.predict(X))


def test_features_may_be_scaled_without_moving_the_origin(X):
    scale = np.array([1e3, 1.0, 1e-2, 10.0, 1.0])
    ours = LinearOneClassSVM(nu=0.2, tol=1e-9, scaling="maxabs").fit(X * scale)
    wanted = LinearOneClassSVM(nu=0.2, tol=1e-9).fit(X / np.abs(X).max(axis=0))
    assert_allclose(ours.decision_function(X * scale), wanted.decision_function(X / np.abs(X).max(axis=0)), atol=1e-6)


def test_no_row_is_an_outlier_if_the_origin_is_among_the_rows(rng):
    X = rng.standard_normal((300, 3))
    model = LinearOneClassSVM(nu=0.5).fit(X)
    assert model.objective_ == 0.0
    assert not model.coef_.any()
    assert model.gap_ <= model.tol
    assert (model.predict(X) == 1).all()


def test_threads_do_not_change_a_bit(rng):
    X = rng.random((150_000, 6))
    for solver in ("pairs", "newton", "ocas"):
        one, two = (LinearOneClassSVM(nu=0.1, solver=solver, n_jobs=n_jobs, random_state=0).fit(X) for n_jobs in (1, 2))
        assert_array_equal(one.coef_, two.coef_)
        assert_array_equal(one.offset_, two.offset_)


@pytest.mark.parametrize("solver", ON_DISK)
@pytest.mark.parametrize("container", [np.asarray, csr_array])
def test_streamed_blocks_give_the_model_of_the_rows_in_memory(solver, container, tmp_path, monkeypatch, rng):
    monkeypatch.setattr(placement, "_bytes_in_memory", lambda blocks: np.inf)
    X, weight = rng.standard_normal((3000, 5)) + 1.0, rng.uniform(0.1, 2.0, 3000)
    parts = [(container(X), np.zeros(3000), None, weight)]
    write_blocks(tmp_path / "rows.arrow", parts, keep_order=True, block_bytes=10_000)
    blocks = open_blocks(tmp_path / "rows.arrow")
    streamed = LinearOneClassSVM(nu=0.1, tol=1e-6, solver=solver).fit(blocks)
    wanted = LinearOneClassSVM(nu=0.1, tol=1e-6, solver=solver).fit(X, sample_weight=weight)
    assert streamed.objective_ == pytest.approx(wanted.objective_, rel=3e-6)
    assert streamed.gap_ <= 1e-6
    assert_allclose(streamed.coef_, wanted.coef_, rtol=1e-2)
    assert_allclose(streamed.decision_function(blocks), streamed.decision_function(X), rtol=1e-9, atol=1e-9)
    assert_array_equal(streamed.fit_predict(blocks), streamed.predict(X))


@pytest.mark.parametrize("solver", ["newton", "ocas"])
def test_a_run_goes_on_from_its_checkpoint(solver, tmp_path, rng):
    X = rng.standard_normal((30_000, 12)) + 0.5
    model = LinearOneClassSVM(nu=0.05, tol=1e-5, solver=solver, random_state=0)
    wanted = model.fit(X).coef_
    assert model.n_iter_ > 3
    with pytest.warns(ConvergenceWarning, match="stopped after 3"):
        model.set_params(checkpoint=tmp_path / "state", max_iter=3).fit(X)
    assert (tmp_path / "state").exists()
    assert_array_equal(model.set_params(max_iter=1000).fit(X).coef_, wanted)
    assert not (tmp_path / "state").exists()


def test_a_warm_start_needs_fewer_iterations(rng):
    X = rng.standard_normal((30_000, 12)) + 0.5
    for solver in ("newton", "ocas"):
        model = LinearOneClassSVM(nu=0.05, tol=1e-4, solver=solver, warm_start=True).fit(X)
        n_cold = model.n_iter_
        assert model.set_params(nu=0.051).fit(X).n_iter_ <= n_cold
        assert model.gap_ <= 1e-4


@pytest.mark.parametrize(
    ("parameters", "weight", "match"),
    [
        ({"solver": "dcd"}, None, "The 'solver' parameter of LinearOneClassSVM must be a str among"),
        ({"scaling": "standard"}, None, "The 'scaling' parameter of LinearOneClassSVM must be a str among {'maxabs'}"),
        ({"nu": 0.0}, None, "The 'nu' parameter"),
        ({"nu": 1.5}, None, "The 'nu' parameter"),
        ({}, -1.0, "Negative values in data passed to `sample_weight`"),
        ({}, 0.0, "sample_weight is zero for every row"),
    ],
)
def test_what_is_not_offered_is_refused(parameters, weight, match, X):
    weight = None if weight is None else np.full(len(X), weight)
    with pytest.raises(ValueError, match=match):
        LinearOneClassSVM(**parameters).fit(X, sample_weight=weight)


def test_a_callback_sees_the_objective_of_the_model(X):
    seen = []
    model = LinearOneClassSVM(solver="ocas", callbacks=seen.append).fit(X)
    assert seen[-1].primal == pytest.approx(model.objective_, rel=1e-3)
    assert model.history_["primal"][-1] == model.objective_ < 0.0


def test_liblinear_on_real_rows(read_shared):
    X = csr_matrix(read_shared("a9a")[0])
    theirs = liblinearutil.train(np.ones(X.shape[0]), X, "-s 21 -n 0.1 -q")
    w, rho, total = np.array(theirs.w[: X.shape[1]]), theirs.rho, 0.1 * X.shape[0]
    objective = 0.5 * w @ w - total * rho + np.maximum(0.0, rho - X @ w).sum()
    ours = LinearOneClassSVM(nu=0.1, tol=1e-6).fit(X)
    assert ours.objective_ == pytest.approx(objective, rel=1e-5)


@pytest.mark.parametrize("form", ["widemargin", "liblinear"])
def test_files_are_trained_on_predicted_and_reported(form, X, tmp_path):
    path, model = tmp_path / "rows", tmp_path / "model"
    write_svmlight(path, X, np.where(X @ np.ones(5) > 2.0, 1, -1))
    trained = train_file(LinearOneClassSVM(nu=0.1, random_state=0), path, model, format=form)
    assert trained.description == "linear one-class SVM; LIBLINEAR's -s 21"
    assert trained.facts["objective"] == trained.model.objective_ < 0.0
    found = predict_file(path, model)
    assert_array_equal(found.predicted, trained.model.predict(X))
    assert "outliers" in Path(report_file(model, path, tmp_path / "page.html").path).read_text(encoding="utf-8")
    with pytest.raises(ValueError, match="dask is not for linear one-class machines"):
        train_file(LinearOneClassSVM(), path, model, dask="local")
