"""LinearSVC and LinearSVR: scikit-learn's contract, its objective values, and what is new beside it."""

import os
import pickle
import signal
import subprocess
import sys
import threading

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.sparse import csr_array, csr_matrix
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_iris
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler, minmax_scale
from sklearn.svm import LinearSVC as PeerSVC
from sklearn.svm import LinearSVR as PeerSVR
from sklearn.utils.estimator_checks import estimator_checks_generator

from widemargin import ConvergenceWarning, LinearOneClassSVM, LinearSVC, LinearSVR, RowLoss

ESTIMATORS = [
    LinearSVC(),
    LinearSVC(loss="hinge", solver="avsf"),
    LinearSVC(loss="hinge", solver="climb"),
    LinearSVC(multi_class="crammer_singer"),
    LinearSVR(),
    LinearSVR(loss="squared_epsilon_insensitive", solver="dcd"),
    LinearSVC(solver="ocas"),
    LinearSVC(loss="hinge", solver="svmperf", stopping="violation", tol=0.01),
    LinearSVC(loss="hinge", penalize_intercept=False),
    LinearSVR(solver="ocas", penalize_intercept=False),
    LinearSVC(loss=RowLoss(lower=-0.1, upper=1.0)),
    LinearSVR(loss=RowLoss(lower=-1.0, upper=1.0, curvature=0.5), penalize_intercept=False),
    LinearOneClassSVM(),
    LinearOneClassSVM(solver="ocas", nu=0.2),
]
CHECKS = [pair for estimator in ESTIMATORS for pair in estimator_checks_generator(estimator)]


@pytest.mark.filterwarnings("ignore::widemargin.errors.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore::sklearn.utils.estimator_checks.SkipTestWarning")
@pytest.mark.parametrize(
    ("estimator", "check"), CHECKS, ids=lambda part: getattr(getattr(part, "func", None), "__name__", repr(part))
)
def test_scikit_learns_contract_is_kept(estimator, check):
    if check.func.__name__ == "check_array_api_input":
        pytest.skip("array API input is not offered: scikit-learn issue 22352, until 2.0")
    check(estimator)


@pytest.fixture
def two_classes(rng):
    X = rng.standard_normal((300, 8))
    y = np.where(X @ rng.standard_normal(8) + rng.standard_normal(300) > 0.3, "yes", "no")
    return X, y


def classification_objective(X, y, coef, intercept, C, loss, weight=1.0):
    margin = 1.0 - np.where(y == "yes", 1.0, -1.0) * (X @ coef.ravel() + intercept)
    power = 2 if loss == "squared_hinge" else 1
    return (
        0.5 * (coef @ coef.T).item()
        + 0.5 * float(np.sum(intercept)) ** 2
        + C * (weight * np.maximum(0, margin) ** power).sum()
    )


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("C", [0.01, 1.0, 50.0])
@pytest.mark.parametrize("container", [np.asarray, csr_array, csr_matrix])
def test_the_objective_is_scikit_learns(two_classes, loss, C, container):
    X, y = two_classes
    ours = LinearSVC(loss=loss, C=C, tol=1e-8, max_iter=None).fit(container(X), y)
    peer = PeerSVC(loss=loss, C=C, dual=True, tol=1e-10, max_iter=10_000_000, random_state=0).fit(X, y)
    expected = classification_objective(X, y, peer.coef_, peer.intercept_, C, loss)
    assert ours.objective_ == pytest.approx(expected, rel=1e-6)
    assert classification_objective(X, y, ours.coef_, ours.intercept_, C, loss) == pytest.approx(ours.objective_)
    np.testing.assert_array_equal(ours.predict(X), peer.predict(X))


@pytest.mark.parametrize("loss", ["epsilon_insensitive", "squared_epsilon_insensitive"])
def test_regression_finds_scikit_learns_weights(loss):
    X, y = load_diabetes(return_X_y=True)
    y = (y - y.mean()) / y.std()
    ours = LinearSVR(loss=loss, epsilon=0.1, tol=1e-9, max_iter=None).fit(X, y)
    peer = PeerSVR(loss=loss, epsilon=0.1, dual=True, tol=1e-9, max_iter=10_000_000, random_state=0).fit(X, y)
    np.testing.assert_allclose(ours.coef_, peer.coef_, atol=1e-3)
    np.testing.assert_allclose(ours.intercept_, peer.intercept_, atol=1e-3)
    assert ours.coef_.shape == peer.coef_.shape
    assert ours.intercept_.shape == peer.intercept_.shape


def test_parameters_defaults_and_fitted_attributes_are_scikit_learns():
    for ours, peer in ((LinearSVC(), PeerSVC()), (LinearSVR(), PeerSVR())):
        missing = {key for key, value in peer.get_params().items() if ours.get_params().get(key) != value}
        assert not missing
    X, y = load_iris(return_X_y=True)
    for fit_intercept in (True, False):
        ours = LinearSVC(fit_intercept=fit_intercept, max_iter=None).fit(X, y)
        peer = PeerSVC(fit_intercept=fit_intercept, max_iter=100_000).fit(X, y)
        for name in [name for name in vars(peer) if name.endswith("_")]:
            assert np.shape(getattr(ours, name)) == np.shape(getattr(peer, name)), name


def test_one_against_rest_solves_each_class_as_a_problem_of_its_own():
    X, y = load_iris(return_X_y=True)
    whole = LinearSVC(tol=1e-9, max_iter=None).fit(X, y)
    for k in range(3):
        alone = LinearSVC(tol=1e-9, max_iter=None).fit(X, y == k)
        np.testing.assert_allclose(whole.coef_[k], alone.coef_[0], atol=1e-5)
    assert len(whole.history_) == 3


@pytest.mark.parametrize("n_jobs", [1, 2, -1])
def test_the_number_of_threads_does_not_change_the_model(n_jobs):
    X, y = load_iris(return_X_y=True)
    one = LinearSVC(random_state=0, max_iter=None).fit(X, y)
    several = LinearSVC(random_state=0, max_iter=None, n_jobs=n_jobs).fit(X, y)
    assert one.coef_.tobytes() == several.coef_.tobytes()


def test_four_fits_at_once_give_the_same_model_four_times(two_classes):
    X, y = two_classes
    models = [LinearSVC(random_state=7, loss="hinge", C=5.0) for _ in range(4)]
    threads = [threading.Thread(target=model.fit, args=(X, y)) for model in models]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({model.coef_.tobytes() for model in models}) == 1


def test_the_same_seed_gives_the_same_bits(rng):
    X, y = rng.standard_normal((3000, 40)), rng.integers(0, 2, 3000)
    first, second, other = (
        LinearSVC(random_state=seed, tol=1e-2, loss="hinge", solver="dcd").fit(X, y) for seed in (3, 3, 4)
    )
    assert first.coef_.tobytes() == second.coef_.tobytes()
    assert first.coef_.tobytes() != other.coef_.tobytes()


def test_class_weight_is_a_factor_of_the_rows_weights(two_classes):
    X, y = two_classes
    by_class = LinearSVC(class_weight={"yes": 3.0, "no": 0.5}, tol=1e-9, max_iter=None).fit(X, y)
    by_row = LinearSVC(tol=1e-9, max_iter=None).fit(X, y, sample_weight=np.where(y == "yes", 3.0, 0.5))
    np.testing.assert_allclose(by_class.coef_, by_row.coef_, atol=1e-6)
    n = len(y)
    counts = {label: n / (2 * (y == label).sum()) for label in ("yes", "no")}
    balanced = LinearSVC(class_weight="balanced", tol=1e-9, max_iter=None).fit(X, y)
    explicit = LinearSVC(class_weight=counts, tol=1e-9, max_iter=None).fit(X, y)
    np.testing.assert_allclose(balanced.coef_, explicit.coef_, atol=1e-6)


def test_float32_rows_are_used_as_they_are_and_give_nearly_the_same_model(two_classes):
    X, y = two_classes
    double = LinearSVC(tol=1e-8, max_iter=None).fit(X, y)
    single = LinearSVC(tol=1e-8, max_iter=None).fit(X.astype(np.float32), y)
    assert single.coef_.dtype == np.float64
    np.testing.assert_allclose(single.coef_, double.coef_, atol=1e-4)


def test_data_frames_keep_their_column_names(two_classes):
    X, y = two_classes
    names = [f"feature {j}" for j in range(8)]
    plain = LinearSVC(random_state=0).fit(X, y)
    for frame in (pd.DataFrame(X, columns=names), pl.DataFrame(X, schema=names)):
        model = LinearSVC(random_state=0).fit(frame, y)
        assert model.feature_names_in_.tolist() == names
        np.testing.assert_array_equal(model.predict(frame), plain.predict(X))


def test_pickled_and_cloned_models_are_whole(two_classes):
    X, y = two_classes
    model = LinearSVC(random_state=0, C=2.0).fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))
    assert clone(model).get_params() == model.get_params()
    assert not hasattr(clone(model), "coef_")


def test_sample_weight_is_routed_through_pipelines_and_searches(two_classes):
    import sklearn

    X, y = two_classes
    weight = np.where(np.arange(300) < 150, 0.0, 1.0)
    with sklearn.config_context(enable_metadata_routing=True):
        model = LinearSVC(random_state=0, tol=1e-8, max_iter=None).set_fit_request(sample_weight=True)
        scaler = StandardScaler(with_mean=False, with_std=False).set_fit_request(sample_weight=False)
        pipeline = make_pipeline(scaler, model)
        pipeline.fit(X, y, sample_weight=weight)
    alone = LinearSVC(random_state=0, tol=1e-8, max_iter=None).fit(X[150:], y[150:])
    np.testing.assert_allclose(pipeline[-1].coef_, alone.coef_, atol=1e-5)
    search = GridSearchCV(LinearSVC(random_state=0), {"C": [0.01, 1.0]}, cv=3, n_jobs=2).fit(X, y)
    assert search.best_score_ > 0.7
    assert cross_validate(LinearSVR(), X, X[:, 0], cv=3)["test_score"].min() > 0.9


def test_a_warm_start_begins_where_the_last_fit_ended(rng):
    X = rng.standard_normal((4000, 30))
    y = np.where(X[:, 0] + rng.standard_normal(4000) > 0, 1, 0)
    for model in (
        LinearSVC(warm_start=True, tol=1e-6, max_iter=None),
        LinearSVR(warm_start=True, tol=1e-6, max_iter=None),
    ):
        first = model.fit(X, y).n_iter_
        assert model.fit(X, y).n_iter_ <= max(1, first // 3)
    several = LinearSVC(warm_start=True, multi_class="crammer_singer", tol=1e-5, max_iter=None)
    label = rng.integers(0, 3, 500)
    first = several.fit(X[:500], label).n_iter_
    assert several.fit(X[:500], label).n_iter_ < first
    several.fit(X[:400], label[:400])
    assert several.dual_coef_.shape == (3, 400)


@pytest.mark.parametrize(
    ("parameters", "match"),
    [
        (
            {"max_iter": 1, "loss": "hinge", "tol": 1e-9},
            r"newton stopped after 1 steps \(max_iter reached\): gap .*, gap",
        ),
        ({"solver": "dcd", "max_iter": 2}, r"stopped after 2 sweeps \(max_iter reached\): gap .*, gap asked 1.0e-04"),
        ({"max_seconds": 0.0}, r"max_seconds reached.*raise tol or max_seconds"),
        ({"callbacks": lambda progress: True}, r"stopped by a callback.*model so far was kept"),
        ({"stopping": "kkt", "max_iter": 1}, r"KKT violation asked 1.0e-04"),
    ],
)
def test_stopping_short_is_said_with_the_number_and_the_way_out(rng, parameters, match):
    X = rng.standard_normal((3000, 40))
    y = rng.integers(0, 2, 3000)
    with pytest.warns(ConvergenceWarning, match=match):
        model = LinearSVC(**parameters).fit(X, y)
    assert model.status_ != "converged"
    assert model.coef_.shape == (1, 40)


def test_a_converged_fit_says_nothing_and_proves_its_gap(two_classes):
    X, y = two_classes
    model = LinearSVC(C=0.1).fit(X, y)
    assert model.status_ == "converged"
    assert model.gap_ <= 1e-4
    weights = np.c_[model.coef_, model.intercept_]
    np.testing.assert_allclose(model.dual_coef_ @ np.c_[X, np.ones(300)], weights, atol=1e-9)


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"penalty": "l1", "dual": True}, "penalty='l1' needs loss='squared_hinge' or 'log_loss', and dual=False"),
        ({"loss": "hinge", "dual": False}, "loss='hinge' needs dual=True"),
        (
            {"penalize_intercept": False, "solver": "dcd"},
            "penalize_intercept=False needs solver='auto', 'newton', 'svmperf' or 'ocas'",
        ),
        ({"stopping": "violation"}, "stopping='violation' is for solver='svmperf'"),
        ({"stopping": "kkt", "solver": "ocas"}, "stopping='kkt' is for solver='auto', 'dcd', 'avsf' or 'climb'"),
        ({"stopping": "kkt", "penalize_intercept": False}, "with an intercept that is not penalised"),
        ({"C": 0.0}, "'C' parameter of LinearSVC must be a float in the range"),
        ({"solver": "bfgs"}, "'solver' parameter of LinearSVC must be a str among"),
        ({"tol": -1.0}, "'tol' parameter"),
    ],
)
def test_what_cannot_be_done_is_refused_by_name(two_classes, change, match):
    with pytest.raises(ValueError, match=match):
        LinearSVC(**change).fit(*two_classes)


def test_wrong_rows_are_refused_before_any_work(two_classes):
    X, y = two_classes
    with pytest.raises(ValueError, match=r"at least 2 classes, got 1 class: \['yes'\]"):
        LinearSVC().fit(X[y == "yes"], y[y == "yes"])
    with pytest.raises(ValueError, match=r"sample_weight is zero for every row|at least one non-zero"):
        LinearSVC().fit(X, y, sample_weight=np.zeros(300))
    with pytest.raises(ValueError, match="Negative values in data passed to `sample_weight`"):
        LinearSVC().fit(X, y, sample_weight=np.full(300, -1.0))
    with pytest.raises(ValueError, match="contains NaN"):
        LinearSVC().fit(np.where(X > 2, np.nan, X), y)
    with pytest.raises(ValueError, match="is too long: its squared norm overflows"):
        LinearSVC().fit(1e200 * X, y)
    with pytest.raises(ValueError, match="dual=False"):
        LinearSVR(dual=False).fit(X, X[:, 0])


def test_one_row_and_one_feature_are_enough():
    assert LinearSVR(C=1e3).fit([[1.0]], [2.0]).predict([[1.0]])[0] == pytest.approx(2.0, abs=1e-2)
    model = LinearSVC().fit([[0.0], [1.0]], [0, 1])
    assert model.predict([[0.0], [1.0]]).tolist() == [0, 1]


def test_verbose_writes_progress_to_standard_error_only(two_classes, capsys):
    LinearSVC(verbose=1).fit(*two_classes)
    captured = capsys.readouterr()
    assert "gap" in captured.err
    assert captured.out == ""


@pytest.mark.parametrize(("solver", "turn"), [("dcd", 3), ("newton", 0)])
def test_ctrl_c_in_the_middle_keeps_every_classes_model_so_far(solver, turn):
    script = (
        f"solver, turn = {solver!r}, {turn}"
        + """
import os, signal, threading, warnings
import numpy as np
from widemargin import LinearSVC
rng = np.random.default_rng(0)
X, y = rng.standard_normal((20000, 50)), rng.integers(0, 4, 20000)
LinearSVC(max_iter=1).fit(X[:100], y[:100])
sent = []
def watch(progress):
    if progress.iteration >= turn and progress.task == 0 and not sent:
        sent.append(True)
        os.kill(os.getpid(), signal.SIGINT)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    model = LinearSVC(loss="hinge", C=100.0, tol=1e-9, max_iter=None, n_jobs=2, callbacks=watch, solver=solver)
    model.fit(X, y)
assert model.status_ == "interrupted", model.status_
assert model.coef_.shape == (4, 50)
assert any("Interrupted by Ctrl-C" in str(w.message) for w in caught)
print("kept")
"""
    )
    environment = {**os.environ, "PYTHONWARNINGS": "ignore"}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120, env=environment)
    assert done.stdout == "kept\n", done.stderr
    assert signal.SIGINT


def test_what_is_compiled_gives_the_same_answer_uncompiled():
    script = """
import sys, warnings
import numpy as np
warnings.simplefilter("ignore")
from scipy.sparse import csr_array
from widemargin import LinearSVC, LinearSVR
rng = np.random.default_rng(0)
X, y = np.round(rng.standard_normal((12, 3)), 1), np.arange(12) % 3
common = dict(max_iter=4, random_state=0)
for model in (LinearSVC(**common), LinearSVC(loss="hinge", C=100.0, solver="climb", **common),
              LinearSVC(multi_class="crammer_singer", **common), LinearSVR(**common)):
    for rows in (X, csr_array(X)):
        print(np.round(model.fit(rows, y).coef_, 9).tolist())
"""
    printed = [
        subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "NUMBA_DISABLE_JIT": flag},
            capture_output=True,
            text=True,
            check=True,
            timeout=300,
        ).stdout
        for flag in ("0", "1")
    ]
    assert printed[0] == printed[1]
    assert printed[0].count("\n") == 8


@pytest.mark.parametrize("name", ["breast_cancer", "digits"])
def test_real_data_sets_reach_scikit_learns_objective(name, read_bundled):
    X, y = read_bundled(name)
    X, y = csr_array(minmax_scale(X)), np.where(y % 2 > 0, "yes", "no")
    ours = LinearSVC(loss="hinge", tol=1e-7, max_iter=None, random_state=0).fit(X, y)
    peer = PeerSVC(loss="hinge", tol=1e-8, max_iter=10_000_000, random_state=0).fit(X, y)
    expected = classification_objective(X, y, peer.coef_, peer.intercept_, 1.0, "hinge")
    assert ours.objective_ <= expected * (1 + 1e-6)


@pytest.mark.parametrize(
    ("name", "C", "optimum"),
    [("a9a", 1.0, 11433.81), ("w8a", 0.01, 95.37589), ("ijcnn1", 100.0, 853931.9), ("ijcnn1", 1000.0, 8538779.0)],
)
def test_certified_optima_of_the_shared_sets_are_reached(name, C, optimum, read_shared):
    X, y, _ = read_shared(name)
    model = LinearSVC(loss="hinge", C=C, fit_intercept=False, tol=1e-3, max_iter=None, random_state=0).fit(X, y)
    assert optimum * (1 - 1e-6) <= model.objective_ <= optimum * (1 + 1e-3)


def test_only_those_whose_features_differ_in_scale_are_told_to_scale_them(rng):
    X = rng.standard_normal((200, 5))
    y = X @ np.ones(5) + rng.standard_normal(200) > 0
    for rows, advice in (
        (X, r"1\.0e-04\. Lower C, raise tol or max_iter\."),
        (X * [1, 1, 1, 1, 50], "Scale the features,"),
    ):
        for container in (np.asarray, csr_array):
            with pytest.warns(ConvergenceWarning, match=advice):
                LinearSVC(loss="hinge", C=1e5, solver="dcd", max_iter=1).fit(container(rows), y)
