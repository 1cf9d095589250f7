"""Python files with NumPy only: the weights to the bit, the same results, and no other import."""

import json
import subprocess
import sys
from copy import deepcopy

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from tests.persistence.export.fitted_models import LINEAR, NEW, fitted

from widemargin import LinearSVC, OneClassSVM, export_numpy

METHODS = ("decision_function", "predict", "predict_proba")


def functions_of(model, folder):
    """Return the names that the exported file defines."""
    export_numpy(model, folder / "scorer.py")
    names = {}
    exec(compile((folder / "scorer.py").read_text(encoding="utf-8"), "scorer.py", "exec"), names)
    return names


def with_short_weights(model):
    """Return the model with weights and intercepts of few binary digits, so that sums of integers are exact."""
    model = deepcopy(model)
    model.coef_ = np.round(256 * model.coef_) / 256
    model.intercept_ = np.round(256 * np.asarray(model.intercept_)) / 256
    if hasattr(model, "offset_"):
        model.offset_ = -model.intercept_
    return model


@pytest.mark.parametrize("name", [name for name in LINEAR if name != "SVR, linear"])
def test_weights_are_the_same_to_the_bit_and_so_are_results_without_rounding(name, tmp_path):
    model, Z = with_short_weights(fitted(name)), np.round(4 * NEW)
    names = functions_of(model, tmp_path)
    assert np.array_equal(names["COEF"], np.atleast_2d(model.coef_))
    for method in METHODS:
        is_meant = hasattr(model, method) and not (method == "decision_function" and name == "RankSVM")
        assert (method in names) == is_meant
        if method == "predict_proba" and is_meant:
            np.testing.assert_allclose(names[method](Z), model.predict_proba(Z), rtol=1e-12, atol=0)
        elif is_meant:
            assert np.array_equal(names[method](Z), getattr(model, method)(Z))


@pytest.mark.parametrize("name", LINEAR)
def test_results_are_those_of_the_model_up_to_the_order_of_sums(name, tmp_path):
    model = fitted(name)
    names = functions_of(model, tmp_path)
    assert np.array_equal(names["COEF"], np.atleast_2d(model.coef_))
    for method in {"decision_function", "predict", "predict_proba"} & set(names):
        found, expected = names[method](NEW), getattr(model, method)(NEW)
        assert found.shape == expected.shape
        if found.dtype.kind == "f":
            np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)
        else:
            assert found.tolist() == expected.tolist()


def test_numbers_of_all_sizes_read_back_as_the_same(tmp_path):
    model = deepcopy(fitted("LinearSVC"))
    model.coef_ = np.array([[5e-324, -1.7976931348623157e308, 0.1, -0.0]])
    found = functions_of(model, tmp_path)["COEF"]
    assert found.tobytes() == model.coef_.tobytes()


def test_the_file_imports_numpy_only(tmp_path):
    export_numpy(fitted("LinearSVC, words"), tmp_path / "scorer.py")
    script = "import json, sys, scorer; print(json.dumps([sorted(sys.modules), scorer.predict([[0.0] * 4]).tolist()]))"
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True)
    modules, label = json.loads(done.stdout)
    assert not {"widemargin", "sklearn", "scipy", "numba"} & set(modules)
    assert label == fitted("LinearSVC, words").predict(np.zeros((1, 4))).tolist()


def test_rows_of_another_shape_are_refused(tmp_path):
    names = functions_of(fitted("LinearSVC"), tmp_path)
    with pytest.raises(ValueError, match=r"X must have shape \(n_rows, 4\), got \(2, 3\)"):
        names["predict"](np.zeros((2, 3)))


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("SVC", "this SVC has the kernel 'rbf', and its scores are sums over vectors. Use export_onnx"),
        ("SVC, linear", "this SVC has a function for each pair of classes, which vote"),
        ("OneClassSVM, linear", "this OneClassSVM has a boundary with the rounding of sums over vectors"),
        ("MeasureSVC, rbf", "this MeasureSVC has the kernel 'rbf'"),
    ],
)
def test_models_that_are_not_linear_are_refused_with_the_reason(name, reason, tmp_path):
    with pytest.raises(TypeError, match=f"export_numpy writes models with a weight for each feature; {reason}"):
        export_numpy(fitted(name), tmp_path / "scorer.py")
    assert not list(tmp_path.iterdir())


def test_models_that_are_not_fitted_are_refused(tmp_path):
    for model in (LinearSVC(), OneClassSVM()):
        with pytest.raises(NotFittedError, match="not fitted"):
            export_numpy(model, tmp_path / "scorer.py")
