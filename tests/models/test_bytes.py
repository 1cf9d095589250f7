"""Linear models of arrays of int8 and uint8: the models of float64, without a copy of the rows."""

import tracemalloc

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from widemargin import (
    SVC,
    LinearOneClassSVM,
    LinearSVC,
    LinearSVCCV,
    LinearSVR,
    MeasureSVC,
    OrdinalSVC,
    RankSVM,
    ROCAreaSVC,
    c_path,
)
from widemargin.data import byte_rows

N_ROWS, N_FEATURES = 3000, 24  # more entries than those of small matrices, which become arrays of float64
TARGETS = {LinearSVR: "number", RankSVM: "number", OrdinalSVC: "class", LinearOneClassSVM: "none"}
SOLVERS = ["auto", "dcd", "avsf", "climb", "sbm", "newton", "ocas", "svmperf"]


def data(kind):
    """Return rows of bytes, and their targets: numbers, three classes, two classes."""
    limits, rng = np.iinfo(kind), np.random.default_rng(0)
    X = rng.integers(limits.min, limits.max + 1, (N_ROWS, N_FEATURES)).astype(kind)
    X[:, ::2] *= rng.random((N_ROWS, X[:, ::2].shape[1])) < 0.3
    score = X @ rng.standard_normal(N_FEATURES)
    score = (score - score.mean()) / score.std() + 0.3 * rng.standard_normal(N_ROWS)
    return X, {"number": score, "class": np.digitize(score, [-0.4, 0.4]), "two": score > 0.0, "none": None}


@pytest.fixture
def all_stay_bytes(monkeypatch):
    """Let small arrays stay bytes."""
    monkeypatch.setattr(byte_rows, "VALUES_WORTH_BYTES", 0)


def check_same(make, kind, target="two"):
    """Compare the models of bytes and of the same numbers as float64, and their scores."""
    X, y = data(kind)
    y, exact = y[target], X.astype(np.float64)
    found, expected = make().fit(X, y), make().fit(exact, y)
    assert (found.solver_, found.status_) == (expected.solver_, expected.status_)
    size = np.abs(expected.coef_).max()
    np.testing.assert_allclose(found.coef_, expected.coef_, rtol=0, atol=1e-7 * size)
    np.testing.assert_allclose(found.objective_, expected.objective_, rtol=1e-9)
    assert found.gap_ <= found.tol
    scored = getattr(found, "decision_function", found.predict)
    np.testing.assert_allclose(scored(X), scored(exact), rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(found.predict(X) == found.predict(exact), True)
    return found


@pytest.mark.usefixtures("all_stay_bytes")
@pytest.mark.parametrize(
    ("kind", "scaling"), [("uint8", None), ("int8", None), ("uint8", "standard"), ("int8", "maxabs")]
)
@pytest.mark.parametrize("solver", SOLVERS)
def test_every_solver_finds_the_model_of_float64(solver, kind, scaling):
    C = 1e-6 if scaling is None else 1e-2
    check_same(lambda: LinearSVC(C=C, loss="hinge", solver=solver, scaling=scaling, tol=1e-3, random_state=0), kind)


@pytest.mark.usefixtures("all_stay_bytes")
@pytest.mark.parametrize("kind", ["uint8", "int8"])
@pytest.mark.parametrize(
    "options",
    [
        {"C": 1e-6, "fit_intercept": False},
        {"C": 1e-6, "penalize_intercept": False},
        {"C": 1e-6, "intercept_scaling": 0.3, "penalty": "l1"},
        {"C": 1e-2, "penalty": "elasticnet", "l1_ratio": 0.5, "loss": "log_loss", "scaling": "standard"},
        {"C": 1e-6, "loss": "log_loss"},
        {"C": 1e-2, "loss": "log_loss", "scaling": "maxabs"},
    ],
    ids=str,
)
def test_every_penalty_loss_and_intercept_gives_the_model_of_float64(options, kind):
    check_same(lambda: LinearSVC(tol=1e-3, random_state=0, **options), kind)


@pytest.mark.usefixtures("all_stay_bytes")
@pytest.mark.parametrize("options", [{}, {"scaling": "standard"}, {"solver": "ocas", "scaling": "maxabs"}], ids=str)
@pytest.mark.parametrize("multi_class", ["ovr", "crammer_singer"])
def test_classes_at_once_and_against_the_rest_are_those_of_float64(multi_class, options):
    C = 1e-2 if options else 1e-6
    check_same(lambda: LinearSVC(C=C, multi_class=multi_class, tol=1e-2, random_state=0, **options), "int8", "class")


@pytest.mark.usefixtures("all_stay_bytes")
@pytest.mark.parametrize("kind", ["uint8", "int8"])
@pytest.mark.parametrize("scaling", [None, "maxabs"])
@pytest.mark.parametrize("model", [LinearSVR, LinearOneClassSVM, RankSVM, OrdinalSVC, ROCAreaSVC, MeasureSVC])
def test_every_linear_model_is_that_of_float64(model, scaling, kind):
    options = {} if model is LinearOneClassSVM else {"C": 1e-2 if scaling else 1e-6}
    if model is MeasureSVC:
        options = {"C": 10.0 if scaling else 1e-2}
    check_same(lambda: model(tol=1e-2, scaling=scaling, **options), kind, TARGETS.get(model, "two"))


@pytest.mark.usefixtures("all_stay_bytes")
@pytest.mark.parametrize("scaling", [None, "standard"])
def test_the_path_along_c_and_its_scores_are_those_of_float64(scaling):
    X, y = data("uint8")
    Cs = [1e-7, 1e-6] if scaling is None else [1e-3, 1e-2]
    paths = [
        c_path(LinearSVC(scaling=scaling, random_state=0), one, y["two"], Cs, cv=3) for one in (X, X.astype(float))
    ]
    np.testing.assert_allclose(paths[0].coefs, paths[1].coefs, rtol=1e-7, atol=1e-7 * np.abs(paths[1].coefs).max())
    np.testing.assert_array_equal(paths[0].scores, paths[1].scores)
    chosen = [LinearSVCCV(Cs, cv=3, scaling=scaling, random_state=0).fit(one, y["two"]) for one in (X, X.astype(float))]
    assert chosen[0].C_ == chosen[1].C_
    assert chosen[0].score(X, y["two"]) == chosen[1].score(X.astype(float), y["two"])


@pytest.mark.usefixtures("all_stay_bytes")
def test_advice_on_a_fit_that_did_not_converge_is_that_for_float64():
    X, y = data("int8")
    X[:, 3] = X[:, 3] > 0
    words = []
    for one in (X, X.astype(np.float64)):
        with pytest.warns(ConvergenceWarning, match="Scale the features") as caught:
            LinearSVC(C=1.0, solver="dcd", max_iter=1, tol=1e-9, random_state=0).fit(one, y["two"])
        words.append(str(caught[0].message))
    assert words[0] == words[1]


@pytest.mark.usefixtures("all_stay_bytes")
def test_rows_in_another_order_of_memory_and_other_types_are_taken():
    X, y = data("int8")
    expected = LinearSVC(C=1e-6, random_state=0).fit(X, y["two"])
    for one in (np.asfortranarray(X), X.astype(np.int16), X.astype(np.float32)):
        found = LinearSVC(C=1e-6, random_state=0).fit(one, y["two"])
        np.testing.assert_allclose(found.coef_, expected.coef_, rtol=0, atol=1e-7 * np.abs(expected.coef_).max())


def test_kernel_machines_and_machines_on_a_basis_convert_bytes():
    X, y = data("int8")
    X, y = X[:300], {name: None if one is None else one[:300] for name, one in y.items()}
    for make in (lambda: SVC(), lambda: RankSVM(kernel="rbf", basis=20, C=0.1)):
        target = y["two"] if isinstance(make(), SVC) else y["number"]
        found, expected = make().fit(X, target), make().fit(X.astype(np.float64), target)
        scored = "decision_function" if hasattr(found, "decision_function") else "predict"
        np.testing.assert_array_equal(getattr(found, scored)(X), getattr(expected, scored)(X.astype(np.float64)))


@pytest.mark.parametrize(
    "options",
    [{"solver": "ocas"}, {"solver": "dcd", "scaling": "standard"}, {"solver": "newton"}, {"penalty": "l1"}],
    ids=str,
)
def test_a_fit_and_predictions_take_no_copy_of_the_rows(options):
    X = np.random.default_rng(0).integers(0, 256, (64_000, 784), dtype=np.uint8)  # 50 MB, as float64 401 MB
    y = X[:, 0] > 127
    model = LinearSVC(C=1e-10, tol=0.1, n_jobs=1, random_state=0, **options)
    tracemalloc.start()
    try:
        model.fit(X, y).predict(X)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < X.nbytes
