"""How kernel machines are fitted: their record, limits, threads, warm starts, hard problems, and company."""

import os
import pickle
import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
import sklearn.svm
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from widemargin import SVC, SVR, ConvergenceWarning, NuSVC, NuSVR, OneClassSVM

MODELS = [SVC(), NuSVC(nu=0.3), SVR(), NuSVR(), OneClassSVM()]


@pytest.fixture
def rows(rng):
    X = rng.standard_normal((120, 4))
    return X, np.digitize(X[:, 0] + 0.5 * rng.standard_normal(120), [-0.4, 0.4])


def test_the_record_holds_what_libsvm_prints(rows):
    X, y = rows
    model = SVC(C=2.0, gamma=0.5, tol=1e-8).fit(X, y > 0)
    (facts,) = model.facts_
    K, coef = rbf_kernel(model.support_vectors_, gamma=0.5), model.dual_coef_[0]
    dual = np.abs(coef).sum() - 0.5 * coef @ K @ coef
    hinge = np.maximum(0, 1 - np.where(y > 0, 1, -1) * model.decision_function(X)).sum()
    assert facts["obj"] == pytest.approx(-dual, rel=1e-9)
    assert facts["rho"] == pytest.approx(model.intercept_[0])  # scikit-learn has the second class positive
    assert facts["nSV"] == len(model.support_)
    assert facts["nBSV"] == np.sum(np.abs(coef) == 2.0)
    assert facts["nu"] == pytest.approx(np.abs(coef).sum() / (2.0 * 120))
    assert facts["iterations"] == model.n_iter_[0] > 0
    assert model.objective_ == pytest.approx(0.5 * coef @ K @ coef + 2.0 * hinge, rel=1e-7)
    assert -1e-12 < model.gap_ < 1e-7
    assert model.history_["gap"][-1] == model.gap_
    several = SVC().fit(X, y)
    assert len(several.facts_) == len(several.history_) == 3
    assert several.n_iter_.tolist() == [facts["iterations"] for facts in several.facts_]
    assert set(NuSVC(nu=0.3).fit(X, y > 0).facts_[0]) >= {"obj", "rho", "C"}
    assert NuSVR().fit(X, X[:, 0]).facts_[0]["epsilon"] > 0


@pytest.mark.parametrize(
    ("parameters", "match"),
    [
        ({"max_iter": 1}, r"stopped after 1 iterations \(max_iter reached\) in 3 of 3 problems: gap .*, KKT violation"),
        ({"max_seconds": 0.0}, r"max_seconds reached.*Lower C, raise tol or max_seconds"),
        ({"callbacks": lambda progress: True}, r"stopped by a callback.*model so far was kept"),
    ],
)
def test_stopping_short_is_said_with_the_number_and_the_way_out(rows, parameters, match):
    X, y = rows
    with pytest.warns(ConvergenceWarning, match=match) as caught:
        model = SVC(C=1e4, solver="smo", **parameters).fit(X, y)
    assert caught[0].filename == __file__
    assert (model.fit_status_, model.status_ != "converged") == (1, True)
    assert model.decision_function(X).shape == (120, 3)
    assert SVC().fit(X, y).fit_status_ == 0
    with pytest.warns(ConvergenceWarning, match=r"Raise tol or max_iter\."):
        OneClassSVM(max_iter=1, solver="smo", tol=1e-6).fit(X)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("n_jobs", [2, -1])
def test_the_number_of_threads_does_not_change_the_model(model, n_jobs, rows):
    X, y = rows
    one, several = clone(model).fit(X, y), clone(model).set_params(n_jobs=n_jobs).fit(X, y)
    assert one.dual_coef_.tobytes() == several.dual_coef_.tobytes()
    assert one.intercept_.tobytes() == several.intercept_.tobytes()


def test_a_tiny_cache_and_no_shrinking_give_the_same_model(rows):
    X, y = rows
    plain = SVC(tol=1e-8).fit(X, y)
    for other in (SVC(tol=1e-8, cache_size=0.01), SVC(tol=1e-8, shrinking=False), SVC(tol=1e-8, working_set=8)):
        np.testing.assert_allclose(other.fit(X, y).decision_function(X), plain.decision_function(X), atol=1e-6)


def test_callbacks_hear_of_every_pair_and_share_its_number(rows):
    X, y = rows
    heard = []
    SVC(callbacks=[lambda progress: heard.append((progress.task, progress.n_tasks))]).fit(X, y)
    assert set(heard) == {(0, 3), (1, 3), (2, 3)}


def test_verbose_writes_progress_to_standard_error_only(rows, capsys):
    SVC(verbose=True).fit(*rows)
    captured = capsys.readouterr()
    assert "violation" in captured.err
    assert captured.out == ""


@pytest.mark.parametrize("solver", ["svmlight", "smo"])
@pytest.mark.parametrize("model", MODELS)
def test_a_warm_start_begins_where_the_last_fit_ended(model, solver, rng):
    X = rng.standard_normal((400, 4))
    y = np.digitize(X[:, 0] + 0.5 * rng.standard_normal(400), [-0.4, 0.4])
    model = clone(model).set_params(warm_start=True, solver=solver, tol=1e-5).fit(X, y)
    first, decisions = np.sum(model.n_iter_), model._sums(X)
    assert np.sum(model.fit(X, y).n_iter_) < first / 2
    np.testing.assert_allclose(model._sums(X), decisions, atol=1e-3)
    assert model.fit(X[:350], y[:350]).support_.max() < 350
    parameter = "C" if hasattr(model, "C") else "nu"
    changed = model.set_params(**{parameter: 0.2}).fit(X[:350], y[:350])
    afresh = clone(changed).fit(X[:350], y[:350])
    np.testing.assert_allclose(changed._sums(X), afresh._sums(X), atol=1e-3)


def test_ctrl_c_in_the_middle_keeps_every_pairs_model_so_far():
    script = """
import os, signal, warnings
import numpy as np
from widemargin import SVC
rng = np.random.default_rng(0)
X, y = rng.standard_normal((1500, 10)), rng.integers(0, 4, 1500)
SVC(solver="smo").fit(X[:100], y[:100])
sent = []
def watch(progress):
    if progress.iteration >= 2000 and progress.task == 0 and not sent:
        sent.append(os.kill(os.getpid(), signal.SIGINT))
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    model = SVC(C=1e6, tol=1e-9, solver="smo", n_jobs=2, callbacks=watch).fit(X, y)
assert model.status_ == "interrupted", model.status_
assert model.decision_function(X[:5]).shape == (5, 4)
assert any("Interrupted by Ctrl-C" in str(w.message) for w in caught)
print("kept")
"""
    environment = {**os.environ, "PYTHONWARNINGS": "ignore"}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120, env=environment)
    assert done.stdout == "kept\n", done.stderr


@pytest.mark.parametrize("container", [np.asarray, csr_array])
def test_equal_rows_are_no_hindrance(container):
    X = container(np.ones((6, 3)))
    for kernel in ("rbf", "linear"):
        model = SVC(kernel=kernel).fit(X, [0, 0, 0, 0, 1, 1])
        assert model.predict(X).tolist() == [0] * 6
        assert SVR(kernel=kernel).fit(X, [1.0, 1.0, 1.0, 2.0, 3.0, 4.0]).predict(X)[0] == pytest.approx(1.5, abs=0.6)
        assert OneClassSVM(kernel=kernel).fit(X).predict(X).tolist() == [1] * 6
    twice = np.repeat(np.random.default_rng(0).standard_normal((30, 3)), 2, axis=0)
    label = (twice[:, 0] > 0).astype(int)
    once = SVC(C=2.0, gamma=0.3, tol=1e-8).fit(twice[::2], label[::2])
    np.testing.assert_allclose(
        SVC(C=1.0, gamma=0.3, tol=1e-8).fit(container(twice), label).decision_function(container(twice)),
        once.decision_function(twice),
        atol=1e-6,
    )


@pytest.mark.parametrize("model", [SVR(), NuSVR(), SVR(epsilon=0.0), SVR(kernel="linear")])
def test_a_constant_target_is_predicted_as_it_is(model, rows):
    fitted = model.fit(rows[0], np.full(120, 3.5))
    np.testing.assert_allclose(fitted.predict(rows[0]), 3.5, atol=0.1)
    assert fitted.status_ == "converged"


def test_a_tube_around_everything_needs_no_support_vector(rows):
    X = rows[0]
    model = SVR(epsilon=10.0).fit(X, X[:, 0])
    middle = (X[:, 0].min() + X[:, 0].max()) / 2
    assert model.support_.size == model.dual_coef_.size == 0
    np.testing.assert_allclose(model.predict(X), middle)
    assert SVR(epsilon=10.0).fit(csr_array(X), X[:, 0]).predict(csr_array(X))[0] == pytest.approx(middle)
    linear = SVR(epsilon=10.0, kernel="linear").fit(X, X[:, 0])
    np.testing.assert_array_equal(linear.coef_, np.zeros((1, 4)))


def test_one_row_of_each_class_is_enough_and_one_support_vector_too():
    model = SVC(kernel="linear", C=100.0).fit([[0.0], [2.0]], ["left", "right"])
    assert model.predict([[0.9], [1.1]]).tolist() == ["left", "right"]
    np.testing.assert_allclose(model.decision_function([[0.0], [1.0], [2.0]]), [-1.0, 0.0, 1.0], atol=1e-9)
    single = OneClassSVM(gamma=1.0).fit([[1.0, 2.0]])
    assert single.support_.tolist() == [0]
    assert single.predict([[1.0, 2.0], [9.0, 9.0]]).tolist() == [1, -1]
    assert SVR().fit([[1.0]], [2.0]).predict([[5.0]])[0] == pytest.approx(2.0)


def test_a_huge_C_separates_what_can_be_separated_and_an_infinite_one_is_refused():
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match=r"'C' parameter of SVC must be a float in the range .* Got inf"):
        SVC(C=np.inf).fit(X, y)
    ours = SVC(C=1e6, kernel="linear", tol=1e-6).fit(X[:100], y[:100])
    peer = sklearn.svm.SVC(C=1e6, kernel="linear", tol=1e-6).fit(X[:100], y[:100])
    np.testing.assert_allclose(ours.coef_, peer.coef_, atol=1e-4)
    np.testing.assert_allclose(ours.intercept_, peer.intercept_, atol=1e-4)
    assert ours.gap_ < 1e-4


def test_gamma_zero_makes_all_rows_alike(rows):
    X, y = rows
    model = SVC(gamma=0.0).fit(X, y)
    assert len(set(model.predict(X))) == 1
    np.testing.assert_allclose(SVR(gamma=0.0).fit(X, X[:, 0]).predict(X), np.median(X[:, 0]), atol=0.5)


@pytest.mark.parametrize("model", MODELS)
def test_pickled_and_cloned_models_are_whole(model, rows):
    X, y = rows
    fitted = clone(model).set_params(tol=1e-4).fit(X, y)
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.predict(X), fitted.predict(X))
    assert clone(fitted).get_params() == fitted.get_params()
    assert not hasattr(clone(fitted), "support_")


def test_data_frames_keep_their_column_names(rows):
    X, y = rows
    names = [f"feature {j}" for j in range(4)]
    plain = SVC().fit(X, y)
    for frame in (pd.DataFrame(X, columns=names), pl.DataFrame(X, schema=names)):
        model = SVC().fit(frame, y)
        assert model.feature_names_in_.tolist() == names
        np.testing.assert_array_equal(model.predict(frame), plain.predict(X))
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(pd.DataFrame(X, columns=names[::-1]))


def test_precomputed_kernels_are_cut_by_rows_and_columns_in_cross_validation(rows):
    X, y = rows
    by_kernel = cross_val_score(SVC(kernel="precomputed", tol=1e-6), rbf_kernel(X, gamma=0.4), y, cv=3)
    np.testing.assert_allclose(by_kernel, cross_val_score(SVC(gamma=0.4, tol=1e-6), X, y, cv=3))


def test_sample_weight_is_routed_through_pipelines_and_searches(rows):
    X, y = rows
    weight = np.where(np.arange(120) < 60, 0.0, 1.0)
    with sklearn.config_context(enable_metadata_routing=True):
        model = SVC(gamma=0.5, tol=1e-8).set_fit_request(sample_weight=True)
        scaler = StandardScaler(with_mean=False, with_std=False).set_fit_request(sample_weight=False)
        pipeline = make_pipeline(scaler, model).fit(X, y, sample_weight=weight)
    alone = SVC(gamma=0.5, tol=1e-8).fit(X[60:], y[60:])
    np.testing.assert_allclose(pipeline.decision_function(X), alone.decision_function(X), atol=1e-6)
    assert GridSearchCV(SVC(), {"C": [0.1, 1.0]}, cv=3, n_jobs=2).fit(X, y).best_score_ > 0.5


@pytest.mark.parametrize("model", [SVC(), NuSVC(nu=0.3)], ids=["SVC", "NuSVC"])
def test_pairs_of_few_rows_are_solved_by_one_call_and_have_the_model_of_pairs_solved_one_by_one(
    model, rows, monkeypatch
):
    one_by_one = clone(model).set_params(max_iter=10**9).fit(*rows)  # a limit asks for one after the other
    monkeypatch.setattr("widemargin.solvers.decomposition.whole_matrix.svmlight", None)
    together = clone(model).fit(*rows)
    assert [len(history) for history in together.history_] == [len(history) for history in one_by_one.history_]
    np.testing.assert_array_equal(together.n_iter_, one_by_one.n_iter_)
    np.testing.assert_allclose(together.dual_coef_, one_by_one.dual_coef_, rtol=0.0, atol=1e-9)
    np.testing.assert_allclose(together.intercept_, one_by_one.intercept_, rtol=0.0, atol=1e-9)
    assert together.gap_ == pytest.approx(one_by_one.gap_, abs=1e-9)
    many = clone(model).set_params(n_jobs=4).fit(*rows)
    np.testing.assert_array_equal(many.dual_coef_, together.dual_coef_)
