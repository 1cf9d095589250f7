"""`multi_class="crammer_singer"` by cutting planes: the estimator, in memory and in blocks on disk."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.utils.estimator_checks import parametrize_with_checks

from widemargin import LinearSVC, load_model, save_model
from widemargin.data.blocks import placement
from widemargin.data.blocks.reader import open_blocks
from widemargin.data.blocks.writer import write_blocks

OPTIONS = {"multi_class": "crammer_singer", "C": 0.3, "max_iter": 5000}


@pytest.fixture
def rows(rng):
    X = rng.standard_normal((120, 6))
    y = np.array(["one", "two", "three", "four"])[np.argmax(X[:, :4] + rng.standard_normal((120, 4)), axis=1)]
    X[rng.random(X.shape) < 0.3] = 0.0
    return X, y, rng.uniform(0.2, 2.0, 120)


@parametrize_with_checks([LinearSVC(solver="ocas", multi_class="crammer_singer")])
def test_scikit_learns_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("solver", ["ocas", "svmperf"])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_planes_and_sweeps_have_the_same_optimum(solver, fit_intercept, rows):
    X, y, weight = rows
    tol = 1e-5 if solver == "ocas" else 1e-3
    given = {**OPTIONS, "fit_intercept": fit_intercept, "intercept_scaling": 3.0, "class_weight": {"one": 2.0}}
    model = LinearSVC(solver=solver, tol=tol, **given).fit(X, y, weight)
    sweeps = LinearSVC(solver="dcd", tol=1e-8, **given | {"max_iter": None}).fit(X, y, weight)
    assert model.solver_ == solver
    assert model.gap_ <= tol
    assert model.objective_ == pytest.approx(sweeps.objective_, rel=2 * tol)
    assert model.coef_.shape == sweeps.coef_.shape == (4, 6)
    assert not hasattr(model, "dual_coef_")
    np.testing.assert_allclose(model.coef_, sweeps.coef_, atol=0.1 if solver == "svmperf" else 0.02)


@pytest.mark.parametrize("container", [np.asarray, csr_array])
@pytest.mark.parametrize("scaling", [None, "standard", "maxabs"])
def test_blocks_on_disk_have_the_model_of_memory(container, scaling, rows, tmp_path, monkeypatch):
    monkeypatch.setattr(placement, "_bytes_in_memory", lambda blocks: np.inf)
    X, y, weight = rows
    label = np.unique(y, return_inverse=True)[1]
    write_blocks(tmp_path / "rows", [(container(X), label, None, weight)], keep_order=True, block_bytes=800)
    options = {**OPTIONS, "tol": 1e-5, "scaling": scaling}
    for solver in ("auto", "ocas"):
        streamed = LinearSVC(solver=solver, **options).fit(open_blocks(tmp_path / "rows"))
        memory = LinearSVC(solver="ocas", **options).fit(container(X), label, weight)
        assert streamed.solver_.startswith("ocas")
        assert streamed.gap_ <= 1e-5
        assert streamed.objective_ == pytest.approx(memory.objective_, rel=2e-5)
        np.testing.assert_allclose(streamed.decision_function(X), memory.decision_function(X), atol=0.05)


def test_a_killed_fit_goes_on_from_its_checkpoint(rows, tmp_path):
    X, y, _ = rows
    model = LinearSVC(solver="ocas", tol=1e-6, **OPTIONS)
    whole = clone(model).fit(X, y)
    path = tmp_path / "run"
    with pytest.warns(UserWarning, match="max_iter reached"):
        clone(model).set_params(checkpoint=path, max_iter=7).fit(X, y)
    assert path.exists()
    rest = clone(model).set_params(checkpoint=path).fit(X, y)
    np.testing.assert_array_equal(rest.coef_, whole.coef_)
    assert rest.n_iter_ == whole.n_iter_
    assert not path.exists()


def test_a_warm_start_takes_fewer_planes(rows):
    X, y, _ = rows
    model = LinearSVC(solver="ocas", warm_start=True, tol=1e-3, **OPTIONS).fit(X, y)
    first = model.n_iter_
    assert model.fit(X, y).n_iter_ < first


def test_a_model_is_saved_to_the_bit(rows, tmp_path):
    X, y, _ = rows
    model = LinearSVC(solver="ocas", **OPTIONS).fit(X, y)
    save_model(model, tmp_path / "model")
    again = load_model(tmp_path / "model")
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"penalize_intercept": False, "solver": "ocas"}, "penalises the intercept, got penalize_intercept=False"),
        ({"solver": "newton"}, "needs solver='auto', .* or 'ocas', got 'newton'"),
        ({"loss": "log_loss", "solver": "auto"}, "has a loss of its own, got loss='log_loss'"),
    ],
)
def test_what_all_classes_at_once_do_not_have_is_refused(change, words):
    with pytest.raises(ValueError, match=f"multi_class='crammer_singer' {words}"):
        LinearSVC(multi_class="crammer_singer", **change).fit(*load_iris(return_X_y=True))
