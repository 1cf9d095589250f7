"""Pipelines of scikit-learn that end with our models are converted by skl2onnx, with our converters."""

import sys

import numpy as np
import onnxruntime
import pytest
from skl2onnx import to_onnx
from skl2onnx.common.data_types import FloatTensorType, StringTensorType
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, StandardScaler
from tests.persistence.export.fitted_models import MODELS, NEW, TARGETS, X
from tests.persistence.export.test_onnx import METHODS, run

from widemargin import SVC, SVR, LinearSVCCV, OneClassSVM, export_onnx, register_onnx_converters

NAMES = [
    "SVC", "SVC, ovo", "SVC, isotonic", "SVC, libsvm", "LinearSVC, logistic, four", "LinearSVC, objects", "LinearSVR",
    "SVR", "OneClassSVM, marks", "OrdinalSVC, rbf", "RankSVM", "MeasureSVC",
]  # fmt: skip


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", NAMES)
def test_a_pipeline_gives_what_its_graph_gives(name, dtype):
    model, target = MODELS[name]
    pipeline = make_pipeline(StandardScaler(), MinMaxScaler((-2, 2)), clone(model)).fit(X, TARGETS[target])
    Z = NEW[:100].astype(dtype)
    found = run(export_onnx(pipeline, dtype=dtype), Z)
    assert found
    for key, values in found.items():
        expected = getattr(pipeline, METHODS[key])(Z)
        assert values.shape == expected.shape
        if key == "label":
            assert (values == expected).mean() >= (1.0 if dtype == "float64" else 0.97)
        elif dtype == "float64":
            np.testing.assert_allclose(values, expected, rtol=1e-9, atol=1e-9)
        else:  # a row whose votes change is not close
            close = np.isclose(values, expected, rtol=1e-4, atol=1e-4).reshape(len(Z), -1).all(axis=1)
            assert close.mean() >= 0.97


def test_registered_converters_serve_other_compositions():
    import pandas as pd

    register_onnx_converters()
    register_onnx_converters()  # once more changes nothing
    words = np.array(["red", "green", "blue"])[np.arange(len(X)) % 3]
    frame = pd.DataFrame({"word": words, "number": X[:, 0]})
    encode = make_column_transformer((OneHotEncoder(), ["word"]), (StandardScaler(), ["number"]))
    pipeline = make_pipeline(encode, SVC()).fit(frame, TARGETS["four words"])
    inputs = [("word", StringTensorType([None, 1])), ("number", FloatTensorType([None, 1]))]
    session = onnxruntime.InferenceSession(
        to_onnx(pipeline, initial_types=inputs).SerializeToString(), providers=["CPUExecutionProvider"]
    )
    rows = {"word": words[:, None].astype(object), "number": X[:, :1].astype(np.float32)}
    label, decision = session.run(["label", "decision"], rows)
    assert (label == pipeline.predict(frame)).mean() > 0.95
    assert decision.shape == (len(X), 4)


def test_the_selected_model_of_a_pipeline_is_exported():
    pipeline = make_pipeline(StandardScaler(), LinearSVCCV(Cs=[0.1, 1.0], cv=3, random_state=0)).fit(
        X, TARGETS["three"]
    )
    assert np.array_equal(run(export_onnx(pipeline), NEW)["label"], pipeline.predict(NEW))


def test_a_model_within_a_pipeline_may_take_integers():
    register_onnx_converters()
    rows = np.round(X).astype(np.int64)
    model = SVR().fit(rows, TARGETS["number"])
    found = run(to_onnx(model, rows[:1]), rows)
    np.testing.assert_allclose(found["prediction"], model.predict(rows), atol=1e-5)


def test_pipelines_that_cannot_be_exported_are_refused(monkeypatch):
    with pytest.raises(NotFittedError, match="not fitted"):
        export_onnx(make_pipeline(StandardScaler(), SVC()))
    with pytest.raises(TypeError, match="kernel='precomputed' cannot be exported"):
        export_onnx(make_pipeline("passthrough", SVC(kernel="precomputed")).fit(X @ X.T, TARGETS["two"]))
    with pytest.raises(TypeError, match=r"model must be one of LinearSVC, .*, got StandardScaler"):
        export_onnx(make_pipeline(StandardScaler(), StandardScaler()).fit(X))
    with pytest.raises(ValueError, match="does not say how many features it takes: call register_onnx_converters"):
        export_onnx(make_pipeline("passthrough", SVC()).fit(X, TARGETS["two"]))
    pipeline = make_pipeline(StandardScaler(), OneClassSVM()).fit(X)
    monkeypatch.setitem(sys.modules, "skl2onnx", None)
    with pytest.raises(ImportError, match="export_onnx of a Pipeline needs skl2onnx, which is not installed"):
        export_onnx(pipeline)
    with pytest.raises(ImportError, match="register_onnx_converters needs skl2onnx, which is not installed"):
        register_onnx_converters()
