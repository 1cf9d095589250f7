"""A loaded model is the saved one to the bit, and a file is replaced whole or not at all."""

import errno
import os
import pickle
import stat

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array, csr_matrix, issparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression

from widemargin import (
    SVC,
    SVR,
    LinearOneClassSVM,
    LinearSVC,
    LinearSVR,
    MeasureSVC,
    NuSVC,
    NuSVR,
    OneClassSVM,
    OrdinalSVC,
    RankSVM,
    ROCAreaSVC,
)
from widemargin._runtime import atomic_file
from widemargin.persistence.model_file import load_model, save_model
from widemargin.solvers.contract import HISTORY

NAMES = np.array(["ash", "birch", "cedar"])


@pytest.fixture(scope="module")
def rows():
    random = np.random.default_rng(7)
    X = random.normal(size=(60, 4))
    return X, (X @ random.normal(size=(4, 3)) + random.normal(size=(60, 3))).argmax(axis=1)


@pytest.fixture(scope="module")
def fitted(rows):
    """Return a fitted model by name."""
    X, y = rows
    target = X @ [1.0, -2.0, 0.5, 0.0] + 3.0 + y
    cases = {
        "binary": (LinearSVC(random_state=0), X, y > 0),
        "hinge": (LinearSVC(loss="hinge", intercept_scaling=3.3, random_state=0), X, np.where(y > 0, 1, -1)),
        "no intercept": (LinearSVC(fit_intercept=False, random_state=0), X, y * 2.0),
        "one against rest": (LinearSVC(intercept_scaling=0.7, random_state=0), X, y),
        "crammer singer": (LinearSVC(multi_class="crammer_singer", random_state=0), X, y - 1),
        "crammer singer of two": (LinearSVC(multi_class="crammer_singer", random_state=0), X, y > 1),
        "strings": (LinearSVC(random_state=0), X, NAMES[y].astype("U9")),
        "objects": (LinearSVC(random_state=0), X, NAMES.astype(object)[y]),
        "float32": (LinearSVC(random_state=0), X.astype(np.float32), y.astype(np.int8)),
        "named features": (LinearSVC(random_state=0), pd.DataFrame(X, columns=list("abcd")), y),
        "weighted": (LinearSVC(class_weight={0: 2.0, 1: 1, 2: np.float64(0.5)}, C=np.float64(0.3)), X, y),
        "regression": (LinearSVR(random_state=0, intercept_scaling=10.0, epsilon=0.1), X, target),
        "regression without": (LinearSVR(random_state=0, fit_intercept=False, dual=True), X, target),
        "planes": (LinearSVC(solver="ocas"), X, y),
        "free intercept": (LinearSVC(penalize_intercept=False, intercept_scaling=3.3), X, y > 0),
        "violation": (LinearSVC(loss="hinge", solver="svmperf", stopping="violation"), X, y > 0),
        "regression by planes": (LinearSVR(solver="ocas", penalize_intercept=False), X, target),
        "rank": (RankSVM(C=3.0, n_jobs=2), X, target),
        "ordinal": (OrdinalSVC(solver="svmperf"), csr_matrix(X), NAMES[y]),
        "ordinal of two": (OrdinalSVC(), X.astype(np.float32), y > 0),
        "roc area": (ROCAreaSVC(), X, np.where(y > 0, "yes", "no")),
        "measure": (MeasureSVC(measure="recall@9", C=10.0), X, y > 1),
        "measure without": (MeasureSVC(fit_intercept=False, C=10.0), X, y > 1),
        "linear one class": (LinearOneClassSVM(nu=0.3), X + 1.0, None),
        "linear one class by planes": (LinearOneClassSVM(solver="ocas"), csr_matrix(X + 1.0), None),
    }
    return {name: model.set_params(tol=0.1).fit(data, labels) for name, (model, data, labels) in cases.items()}


@pytest.fixture(scope="module")
def machines(rows):
    """Return a fitted kernel machine by name."""
    X, y = rows
    target = X @ [1.0, -2.0, 0.5, 0.0] + 3.0 + y
    likely = {"probability": "libsvm", "random_state": 0}
    cases = {
        "two classes": (SVC(), X, y > 0),
        "three classes": (SVC(C=2.0, class_weight="balanced", decision_function_shape="ovo"), X, NAMES[y]),
        "csr_matrix": (SVC(kernel="poly", coef0=0.5), csr_matrix(X), y),
        "csr_array": (SVC(kernel="sigmoid", gamma=0.1), csr_array(X), y > 0),
        "float32": (SVC(), X.astype(np.float32), y),
        "linear": (SVC(kernel="linear"), pd.DataFrame(X, columns=list("abcd")), y),
        "probabilities": (SVC(**likely), X, y),
        "isotonic": (SVC(calibration="isotonic", predict_by="probability"), X, y),
        "isotonic of two": (NuSVC(nu=0.3, calibration="isotonic"), X, y > 1),
        "calibrated": (SVC(calibration="sigmoid"), X, y),
        "probabilities of two": (NuSVC(nu=0.3, gamma="auto", **likely), X, y > 1),
        "nu classes": (NuSVC(nu=0.2), X, y - 1),
        "precomputed": (SVC(kernel="precomputed"), X @ X.T, y),
        "warm start": (SVC(warm_start=True), X, y),
        "regression": (SVR(**likely), X, target),
        "nu regression": (NuSVR(), csr_matrix(X), target),
        "constant": (SVR(), X, np.full(len(X), 2.0)),
        "one class": (OneClassSVM(nu=0.3, **likely), X, None),
        "one class, sparse": (OneClassSVM(), csr_array(X), None),
    }
    return {name: model.fit(data, labels) for name, (model, data, labels) in cases.items()}


MACHINES = [
    "two classes", "three classes", "csr_matrix", "csr_array", "float32", "linear", "probabilities",
    "isotonic", "isotonic of two", "calibrated",
    "probabilities of two", "nu classes", "precomputed", "warm start", "regression", "nu regression", "constant",
    "one class", "one class, sparse",
]  # fmt: skip
CASES = [
    "binary", "hinge", "no intercept", "one against rest", "crammer singer", "crammer singer of two", "strings",
    "objects", "float32", "named features", "weighted", "regression", "regression without", "planes",
    "free intercept", "violation", "regression by planes", "rank", "ordinal", "ordinal of two", "roc area", "measure",
    "measure without", "linear one class", "linear one class by planes",
]  # fmt: skip


def scores(model, X):
    return model.decision_function(X) if hasattr(model, "decision_function") else model.predict(X)


def saved_and_loaded(model, path, **options):
    save_model(model, path, **options)
    return load_model(path)


def assert_same(mine, theirs):
    assert type(mine) is type(theirs)
    if isinstance(mine, list):
        assert len(mine) == len(theirs)
        for one, other in zip(mine, theirs, strict=True):
            assert_same(one, other)
    elif issparse(mine):
        for part in ("data", "indices", "indptr"):
            assert_same(getattr(mine, part), getattr(theirs, part))
        assert mine.shape == theirs.shape
    elif isinstance(mine, np.ndarray):
        assert mine.dtype == theirs.dtype
        assert mine.flags.c_contiguous == theirs.flags.c_contiguous
        np.testing.assert_array_equal(mine, theirs)
    else:
        assert mine == theirs


def assert_same_attributes(model, loaded):
    assert type(loaded) is type(model)
    assert loaded.get_params() == model.get_params()
    assert set(vars(loaded)) == set(vars(model))
    for attribute in set(vars(model)) - set(model.get_params()):
        assert_same(getattr(loaded, attribute), getattr(model, attribute))


@pytest.mark.parametrize("name", CASES)
def test_a_loaded_model_equals_the_saved_one_in_every_attribute(name, fitted, tmp_path):
    assert_same_attributes(fitted[name], saved_and_loaded(fitted[name], tmp_path / "model"))


def test_a_loaded_model_by_planes_can_be_pickled_cloned_and_fitted_again(fitted, rows, tmp_path):
    for name in ("rank", "ordinal", "measure"):
        loaded = saved_and_loaded(fitted[name], tmp_path / "model")
        np.testing.assert_array_equal(pickle.loads(pickle.dumps(loaded)).coef_, fitted[name].coef_)
        assert clone(loaded).get_params() == loaded.get_params()
        assert loaded.fit(rows[0], rows[1] > 0).status_ == "converged"


@pytest.mark.parametrize("name", ["free intercept", "planes", "regression by planes"])
def test_liblinears_text_holds_models_by_planes_to_the_bit(name, fitted, rows, tmp_path):
    model = pickle.loads(pickle.dumps(fitted[name]))
    if name == "planes":
        model.classes_ = np.arange(3)
    elif name == "free intercept":
        model.classes_ = np.array([0, 1])
    loaded = saved_and_loaded(model, tmp_path / "model", format="liblinear")
    np.testing.assert_array_equal(loaded.intercept_, model.intercept_)
    np.testing.assert_array_equal(scores(loaded, rows[0]), scores(model, rows[0]))


def test_thresholds_that_do_not_ascend_are_not_saved(fitted, tmp_path):
    model = pickle.loads(pickle.dumps(fitted["ordinal"]))
    model.thresholds_ = model.thresholds_[::-1]
    with pytest.raises(ValueError, match="thresholds_ must ascend"):
        save_model(model, tmp_path / "model")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", MACHINES)
def test_a_loaded_machine_equals_the_saved_one_in_every_attribute(name, machines, tmp_path):
    assert_same_attributes(machines[name], saved_and_loaded(machines[name], tmp_path / "model"))


@pytest.mark.parametrize("container", [np.asarray, csr_matrix, lambda X: X.astype(np.float32)])
@pytest.mark.parametrize("name", sorted(set(MACHINES) - {"linear"}))
def test_a_loaded_machine_predicts_the_same_to_the_bit(name, container, machines, rows, tmp_path):
    model, X = machines[name], container(rows[0])
    if name == "precomputed":
        X = rows[0] @ rows[0].T
    loaded = saved_and_loaded(model, tmp_path / "model")
    np.testing.assert_array_equal(scores(loaded, X), scores(model, X))
    assert_same(loaded.predict(X), model.predict(X))
    if hasattr(model, "predict_proba"):
        np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
    if hasattr(model, "predict_interval"):
        np.testing.assert_array_equal(loaded.predict_interval(X), model.predict_interval(X))


@pytest.mark.parametrize("name", ["three classes", "csr_matrix", "precomputed", "regression", "one class"])
def test_a_loaded_machine_can_be_pickled_cloned_and_fitted_again(name, machines, rows, tmp_path):
    X = rows[0] @ rows[0].T if name == "precomputed" else rows[0]
    loaded = saved_and_loaded(machines[name], tmp_path / "model")
    np.testing.assert_array_equal(scores(pickle.loads(pickle.dumps(loaded)), X), scores(machines[name], X))
    assert clone(loaded).get_params() == loaded.get_params()
    assert loaded.fit(X, rows[1]).status_ == "converged"


def test_the_multipliers_of_a_warm_start_are_kept_if_wanted(machines, rows, tmp_path):
    model = machines["warm start"]
    loaded = saved_and_loaded(model, tmp_path / "full")
    assert [len(beta) for beta in loaded._last_multipliers] == [len(beta) for beta in model._last_multipliers]
    assert loaded.fit(*rows).n_iter_.sum() < clone(model).fit(*rows).n_iter_.sum()
    lean = saved_and_loaded(model, tmp_path / "lean", keep_dual=False)
    assert lean._last_multipliers == []
    np.testing.assert_array_equal(scores(lean, rows[0]), scores(model, rows[0]))


@pytest.mark.parametrize("format", ["widemargin", "libsvm"])
def test_a_function_for_a_kernel_is_refused_with_the_way_out(format, rows, tmp_path):  # noqa: A002
    model = SVC(kernel=lambda A, B: A @ B.T).fit(*rows)
    with pytest.raises(TypeError, match=r'is a Python function: .* Fit with kernel="precomputed"'):
        save_model(model, tmp_path / "model", format=format)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("format", ["widemargin", "libsvm"])
@pytest.mark.parametrize(
    ("attribute", "value", "rule"),
    [
        ("dual_coef_", np.full((1, 3), np.nan), "dual_coef_ must be finite"),
        ("intercept_", np.ones(2), r"intercept_ must have shape \(1,\), got \(2,\)"),
        ("support_vectors_", np.ones((3, 4)), "support_vectors_ must have shape"),
        ("n_support_", np.array([1, 1], dtype=np.int32), "n_support_ must add up to"),
    ],
)
def test_a_machine_that_could_not_be_loaded_is_not_saved(attribute, value, rule, format, machines, tmp_path):  # noqa: A002
    model = pickle.loads(pickle.dumps(machines["two classes"]))
    setattr(model, attribute, value)
    with pytest.raises(ValueError, match=rule):
        save_model(model, tmp_path / "model", format=format)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("container", [np.asarray, csr_matrix, lambda X: X.astype(np.float32)])
@pytest.mark.parametrize("name", sorted(set(CASES) - {"named features"}))
def test_a_loaded_model_predicts_the_same_to_the_bit(name, container, fitted, rows, tmp_path):
    model, X = fitted[name], container(rows[0])
    loaded = saved_and_loaded(model, tmp_path / "model")
    np.testing.assert_array_equal(scores(loaded, X), scores(model, X))
    assert_same(loaded.predict(X), model.predict(X))


@pytest.mark.parametrize("format", ["widemargin", "liblinear"])
def test_a_loaded_model_can_be_pickled_cloned_and_fitted_again(format, fitted, rows, tmp_path):  # noqa: A002
    X, y = rows
    model = fitted["one against rest"]
    loaded = saved_and_loaded(model, tmp_path / "model", format=format)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(loaded)).predict(X), model.predict(X))
    assert clone(loaded).get_params() == loaded.get_params()
    again = clone(loaded).set_params(random_state=0).fit(X, y)
    np.testing.assert_array_equal(again.coef_, loaded.set_params(random_state=0, warm_start=False).fit(X, y).coef_)


def test_a_loaded_history_is_a_structured_array(fitted, tmp_path):
    assert saved_and_loaded(fitted["binary"], tmp_path / "model").history_.dtype == HISTORY
    assert [each.dtype for each in saved_and_loaded(fitted["strings"], tmp_path / "model").history_] == [HISTORY] * 3


def test_loaded_arrays_can_be_written_to(fitted, tmp_path):
    loaded = saved_and_loaded(fitted["binary"], tmp_path / "model")
    loaded.coef_ *= 2.0
    np.testing.assert_array_equal(loaded.coef_, 2.0 * fitted["binary"].coef_)


def test_a_model_without_multipliers_is_smaller_and_predicts_the_same(fitted, rows, tmp_path):
    model = fitted["one against rest"]
    loaded = saved_and_loaded(model, tmp_path / "lean", keep_dual=False)
    save_model(model, tmp_path / "full")
    assert not hasattr(loaded, "dual_coef_")
    assert (tmp_path / "lean").stat().st_size < (tmp_path / "full").stat().st_size - model.dual_coef_.nbytes
    np.testing.assert_array_equal(scores(loaded, rows[0]), scores(model, rows[0]))


def test_a_sparsified_model_comes_back_sparse(fitted, rows, tmp_path):
    model = pickle.loads(pickle.dumps(fitted["one against rest"])).sparsify()
    loaded = saved_and_loaded(model, tmp_path / "model")
    assert issparse(loaded.coef_)
    np.testing.assert_array_equal(loaded.decision_function(rows[0]), model.decision_function(rows[0]))
    np.testing.assert_array_equal(loaded.densify().coef_, fitted["one against rest"].coef_)


def test_callbacks_and_random_states_come_back_as_defaults(rows, tmp_path):
    model = LinearSVC(callbacks=[lambda progress: False], random_state=np.random.RandomState(3), C=0.5).fit(*rows)
    loaded = saved_and_loaded(model, tmp_path / "model")
    assert (loaded.callbacks, loaded.random_state, loaded.C) == (None, None, 0.5)


@pytest.mark.parametrize("weight", [{0: 2.0, 7: 1.5}, {"0": 1}, {True: 3.0, False: 0.25}, "balanced", {}])
def test_class_weights_keep_their_keys(weight, fitted, tmp_path):
    model = pickle.loads(pickle.dumps(fitted["binary"])).set_params(class_weight=weight)
    loaded = saved_and_loaded(model, tmp_path / "model").class_weight
    assert loaded == weight
    assert list(map(type, loaded)) == list(map(type, weight))


def test_saving_twice_writes_the_same_bytes(fitted, tmp_path):
    for name in ("first", "second"):
        save_model(fitted["strings"], tmp_path / name)
    assert (tmp_path / "first").read_bytes() == (tmp_path / "second").read_bytes()


def test_the_format_is_told_by_content_not_by_suffix(fitted, tmp_path):
    assert hasattr(saved_and_loaded(fitted["hinge"], tmp_path / "a.txt"), "gap_")
    assert not hasattr(saved_and_loaded(fitted["hinge"], tmp_path / "a.safetensors", format="liblinear"), "gap_")


def test_labels_of_far_places_and_empty_ones_come_back(rows, tmp_path):
    X, y = rows
    labels = np.array(["", "Ωμέγα \ud83c", 'a"\\b\n'], dtype=object)
    loaded = saved_and_loaded(LinearSVC(random_state=0).fit(X, labels[y]), tmp_path / "model")
    assert loaded.classes_.tolist() == sorted(labels)


def test_a_string_type_wider_than_any_need_is_narrowed(rows, tmp_path):
    X, y = rows
    loaded = saved_and_loaded(LinearSVC(random_state=0).fit(X, NAMES.astype("U5000")[y]), tmp_path / "model")
    assert loaded.classes_.dtype == np.dtype("U69")


# What cannot be saved


@pytest.mark.parametrize("model", [LinearSVC(), SVC(), OneClassSVM(), LinearOneClassSVM()])
def test_an_unfitted_model_is_not_saved(model, tmp_path):
    with pytest.raises(NotFittedError, match="not fitted yet"):
        save_model(model, tmp_path / "model")
    assert not list(tmp_path.iterdir())


class Relative(LinearSVC):
    pass


@pytest.mark.parametrize("model", [LogisticRegression(), Relative(), None, "LinearSVC"])
def test_other_objects_are_refused_by_naming_what_can_be_saved(model, tmp_path):
    known = "LinearSVC, LinearSVR, SVC, NuSVC, SVR, NuSVR, OneClassSVM, RankSVM, OrdinalSVC, ROCAreaSVC, MeasureSVC"
    known += ", LinearOneClassSVM, TransductiveSVC"
    with pytest.raises(TypeError, match=f"model must be one of {known}, got {type(model).__name__}"):
        save_model(model, tmp_path / "model")


def test_an_unknown_format_is_refused(fitted, tmp_path):
    with pytest.raises(ValueError, match="format must be one of 'widemargin', 'liblinear', 'libsvm', 'svmlight', got"):
        save_model(fitted["binary"], tmp_path / "model", format="pickle")


@pytest.mark.parametrize("format", ["widemargin", "liblinear"])
@pytest.mark.parametrize(
    ("attribute", "value", "rule"),
    [
        ("coef_", np.full((1, 4), np.nan), "coef_ must be finite"),
        ("coef_", np.ones((1, 5)), r"coef_ must have shape \(1, 4\), got \(1, 5\)"),
        ("intercept_", np.ones(2), r"intercept_ must have shape \(1,\), got \(2,\)"),
    ],
)
def test_a_model_that_could_not_be_loaded_is_not_saved(attribute, value, rule, format, fitted, tmp_path):  # noqa: A002
    model = pickle.loads(pickle.dumps(fitted["hinge"]))
    setattr(model, attribute, value)
    with pytest.raises(ValueError, match=rule):
        save_model(model, tmp_path / "model", format=format)
    assert not list(tmp_path.iterdir())


def test_labels_without_a_place_in_the_file_are_refused(fitted, tmp_path):
    model = pickle.loads(pickle.dumps(fitted["binary"]))
    model.classes_ = np.array(["2020-01-01", "2021-01-01"], dtype="M8[D]")
    with pytest.raises(TypeError, match="classes_ must be numbers, booleans or strings"):
        save_model(model, tmp_path / "model")
    model.classes_ = np.array([0.0, 1.0], dtype=np.longdouble)
    with pytest.raises(TypeError, match="classes_ has type"):
        save_model(model, tmp_path / "model")


# Replacing a file


def test_saving_replaces_a_file_and_leaves_nothing_beside_it(fitted, tmp_path):
    path = tmp_path / "model"
    save_model(fitted["binary"], path)
    assert saved_and_loaded(fitted["regression"], path).get_params() == fitted["regression"].get_params()
    assert list(tmp_path.iterdir()) == [path]


def test_a_private_file_stays_private_when_replaced(fitted, tmp_path):
    path = tmp_path / "model"
    path.touch(mode=0o600)
    save_model(fitted["binary"], path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_link_stays_a_link_when_its_file_is_replaced(fitted, tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "model")
    loaded = saved_and_loaded(fitted["binary"], str(tmp_path / "link"))
    assert (tmp_path / "link").is_symlink()
    assert loaded.get_params() == load_model(tmp_path / "model").get_params()


class FullDisk:
    """A file on a disk with room for ten bytes."""

    def __init__(self, path, mode):
        self._file = open(path, mode)  # noqa: SIM115

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self._file.close()

    def fileno(self):
        return self._file.fileno()

    def write(self, content):
        self._file.write(content[:10])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("format", ["widemargin", "liblinear"])
def test_a_full_disk_leaves_the_old_file_and_no_other(format, fitted, tmp_path, monkeypatch):  # noqa: A002
    path = tmp_path / "model"
    path.write_bytes(b"the old model")
    monkeypatch.setattr(atomic_file, "open", FullDisk, raising=False)
    with pytest.raises(OSError, match="No space left"):
        save_model(fitted["hinge"], path, format=format)
    assert path.read_bytes() == b"the old model"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("step", ["fsync", "replace"])
@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt])
def test_a_failure_at_any_step_leaves_the_old_file_and_no_other(step, error, fitted, tmp_path, monkeypatch):
    def fail(*arguments):
        raise error("failed on purpose")

    path = tmp_path / "model"
    path.write_bytes(b"the old model")
    monkeypatch.setattr(atomic_file.os, step, fail)
    with pytest.raises(error, match="failed on purpose"):
        save_model(fitted["binary"], path)
    assert path.read_bytes() == b"the old model"
    assert list(tmp_path.iterdir()) == [path]


def test_a_directory_is_not_replaced(fitted, tmp_path):
    with pytest.raises(IsADirectoryError, match="Is a directory"):
        save_model(fitted["binary"], tmp_path)
    assert not list(tmp_path.iterdir())
    with pytest.raises(IsADirectoryError, match="Is a directory"):
        load_model(tmp_path)


def test_a_read_only_directory_keeps_its_file(fitted, tmp_path, monkeypatch):
    path = tmp_path / "model"
    path.write_bytes(b"the old model")
    tmp_path.chmod(0o500)
    if os.access(tmp_path, os.W_OK):  # the superuser writes anywhere: let the system refuse as it would others

        def refuse(path, mode):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)

        monkeypatch.setattr(atomic_file, "open", refuse, raising=False)
    with pytest.raises(PermissionError, match="Permission denied"):
        save_model(fitted["binary"], path)
    tmp_path.chmod(0o700)
    assert path.read_bytes() == b"the old model"
    assert list(tmp_path.iterdir()) == [path]


def test_a_missing_directory_or_file_is_named(fitted, tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere"):
        save_model(fitted["binary"], tmp_path / "nowhere" / "model")
    with pytest.raises(FileNotFoundError, match="nothing"):
        load_model(tmp_path / "nothing")


def test_a_pipe_is_written_to_not_replaced(fitted):
    reading, writing = os.pipe()
    save_model(fitted["hinge"], f"/dev/fd/{writing}", format="liblinear")
    assert os.read(reading, 11) == b"solver_type"
    os.close(reading)
    os.close(writing)
