"""ONNX graphs give what the models give: in double precision to rounding, in single precision to 1e-5."""

import subprocess
import sys
from copy import deepcopy

import numpy as np
import onnx
import onnxruntime
import pytest
from sklearn.datasets import load_digits
from sklearn.exceptions import NotFittedError
from tests.persistence.export.fitted_models import MODELS, NEW, TARGETS, X, fitted

import widemargin.persistence.export.onnx_file as onnx_file
import widemargin.persistence.export.scorer as scorer
from widemargin import SVC, SVR, LinearSVC, LinearSVCCV, TransductiveSVC, export_onnx, load_model, save_model
from widemargin.models.calibration import couple, isotonic
from widemargin.models.multiclass import pairwise_probabilities, votes
from widemargin.persistence.export.onnx_graph import IR_VERSION, OPSET, TYPES, Graph
from widemargin.persistence.export.onnx_probabilities import _add_isotonic, add_couplings

METHODS = {
    "label": "predict",
    "prediction": "predict",
    "decision": "decision_function",
    "probabilities": "predict_proba",
}
TOL = {"float64": 1e-10, "float32": 1e-5}  # of values, relative to the largest of them where that is above 1


def run(graph, Z):
    """Return the outputs of a graph by name."""
    session = onnxruntime.InferenceSession(graph.SerializeToString(), providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(None, {"X": Z}), strict=True))


def is_clear(model, Z, tol):
    """Return which rows have no decision value within the tolerance of a step: of a pair, a class or a threshold."""
    if not hasattr(model, "decision_function"):
        return np.ones(len(Z), bool)
    if getattr(model, "decision_function_shape", None) == "ovr":
        model = deepcopy(model).set_params(decision_function_shape="ovo", break_ties=False)
    decision = model.decision_function(Z)
    if decision.ndim == 2 and not hasattr(model, "decision_function_shape"):  # a value for each class: the largest two
        decision = np.diff(np.sort(decision, axis=1)[:, -2:], axis=1)
    nearest = np.abs(decision.reshape(len(Z), -1)).min(axis=1)
    return nearest > tol * max(1.0, np.abs(decision).max())


@pytest.mark.parametrize("dtype", TOL)
@pytest.mark.parametrize("name", MODELS)
def test_a_graph_gives_what_the_model_gives(name, dtype):
    model, Z = fitted(name), NEW.astype(dtype)
    found = run(export_onnx(model, dtype=dtype), Z)
    has = {key for key, method in METHODS.items() if hasattr(model, method)} - {"label", "prediction"}
    is_number = "number" in MODELS[name][1] and not hasattr(model, "classes_")
    assert set(found) == ({"prediction"} if is_number else {"label", *has})
    clear = is_clear(model, Z, 10 * TOL[dtype])
    assert clear.mean() > 0.9
    for key, values in found.items():
        expected = getattr(model, METHODS[key])(Z)
        assert values.shape == expected.shape
        if key == "label":
            assert values.tolist() == expected.tolist() or (values[clear] == expected[clear]).all()
        else:
            assert values.dtype == dtype
            size = max(1.0, np.abs(expected[np.isfinite(expected)]).max())
            steep = 10.0 if key == "probabilities" and hasattr(model, "isotonic_ends_") else 1.0
            np.testing.assert_allclose(values[clear] / size, expected[clear] / size, rtol=0, atol=steep * TOL[dtype])


@pytest.mark.parametrize("name", ["LinearOneClassSVM", "OneClassSVM", "OneClassSVM, linear", "OneClassSVM, poly"])
def test_rows_on_the_boundary_of_one_class_are_inliers_as_in_the_model(name):
    model = fitted(name)
    decision = model.decision_function(X)
    assert (decision == 0.0).any()  # support vectors
    found = run(export_onnx(model), X)
    assert np.array_equal(found["decision"] == 0.0, decision == 0.0)
    assert np.array_equal(found["label"], model.predict(X))


@pytest.mark.parametrize("order", [None, [2, 0, 1], [1, 2, 0]])
def test_ties_of_votes_go_to_the_first_class_in_the_order_of_the_model(order):
    model = deepcopy(fitted("SVC, three"))
    model.dual_coef_ = np.zeros_like(model.dual_coef_)
    model.intercept_ = np.array([1.0, -1.0, 1.0])  # every class has one vote
    if order is not None:
        model._class_order = np.array(order)
    found = run(export_onnx(model), NEW)
    assert set(found["label"]) == {model.classes_[0 if order is None else order[0]]}
    assert np.array_equal(found["label"], model.predict(NEW))


def test_the_order_of_the_model_decides_ties_only():
    model = deepcopy(fitted("SVC, three"))
    model._class_order = np.array([2, 0, 1])
    label = run(export_onnx(model), NEW)["label"]
    assert np.array_equal(label, model.predict(NEW))
    decisions = deepcopy(model).set_params(decision_function_shape="ovo").decision_function(NEW)
    is_tie = votes(decisions > 0.0, 3).max(axis=1) == 1.0
    assert np.array_equal(label[~is_tie], fitted("SVC, three").predict(NEW)[~is_tie])
    assert set(label[is_tie]) == {model.classes_[2]}


def test_a_decision_value_of_zero_votes_for_the_second_class():
    for name in ("SVC", "SVC, three"):
        model = deepcopy(fitted(name))
        model.dual_coef_, model.intercept_ = np.zeros_like(model.dual_coef_), np.zeros_like(model.intercept_)
        assert set(run(export_onnx(model), NEW)["label"]) == {model.classes_[-1]} == set(model.predict(NEW))
    model = deepcopy(fitted("LinearSVC"))  # and here for the first, as in scikit-learn
    model.coef_, model.intercept_ = np.zeros_like(model.coef_), np.zeros(1)
    assert set(run(export_onnx(model), NEW)["label"]) == {model.classes_[0]} == set(model.predict(NEW))


@pytest.mark.parametrize("calibration", ["sigmoid", "isotonic"])
def test_ten_classes_with_probabilities(calibration):
    rows, y = load_digits(return_X_y=True)
    model = SVC(calibration=calibration, random_state=0).fit(rows[:400] / 16.0, y[:400])
    Z = rows[400:500] / 16.0
    found = run(export_onnx(model), Z)
    np.testing.assert_allclose(found["probabilities"], model.predict_proba(Z), rtol=0, atol=1e-9)
    np.testing.assert_allclose(found["decision"], model.decision_function(Z), rtol=0, atol=1e-9)
    assert np.array_equal(found["label"], model.predict(Z))


def computed(add, values):
    """Return what a function of a Graph and a value adds to a graph, at these values."""
    graph = Graph(np.float64)
    graph.identity(add(graph, "X"), "result")
    info = onnx.helper.make_tensor_value_info
    inputs, outputs = info("X", TYPES[values.dtype], [None, values.shape[1]]), info("result", TYPES[values.dtype], None)
    made = onnx.helper.make_model(
        onnx.helper.make_graph(graph.nodes, "test", [inputs], [outputs], graph.constants),
        opset_imports=[onnx.helper.make_opsetid("", OPSET)],
        ir_version=IR_VERSION,
    )
    return run(made, values)["result"]


def test_isotonic_functions_are_those_of_numpy_at_between_and_beyond_their_points(rng):
    curves = [np.column_stack([np.sort(rng.standard_normal(n)), np.sort(rng.random(n))]) for n in (1, 2, 7, 40)]
    curves[2][3, 0] = np.nextafter(curves[2][2, 0], np.inf)  # a step
    values = np.concatenate([5.0 * rng.standard_normal((500, 4)), np.repeat(curves[2][:, :1], 4, axis=1)])
    values[:40, 3] = curves[3][:, 0]
    found = computed(lambda graph, X: _add_isotonic(graph, curves, X), values)
    expected = np.column_stack([isotonic(column, curve) for column, curve in zip(values.T, curves, strict=True)])
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("n_classes", [2, 3, 5, 12])
def test_probabilities_of_classes_are_coupled_as_the_model_does(n_classes, rng):
    n_pairs = n_classes * (n_classes - 1) // 2
    of_first = np.concatenate([rng.random((300, n_pairs)), rng.integers(0, 2, (100, n_pairs)).astype(float)])
    order = rng.permutation(n_classes)
    found = computed(lambda graph, X: add_couplings(graph, X, order), of_first)
    r = pairwise_probabilities(of_first, n_classes)[:, order][:, :, order]
    np.testing.assert_allclose(found, couple(r)[:, np.argsort(order)], rtol=0, atol=1e-9)


@pytest.mark.parametrize("name", ["LinearSVC, logistic", "SVC, isotonic", "SVC, ovo", "OneClassSVM, marks", "SVR"])
@pytest.mark.parametrize("n_rows", [0, 1])
def test_a_graph_takes_any_number_of_rows(name, n_rows):
    for key, values in run(export_onnx(fitted(name)), NEW[:n_rows]).items():
        assert len(values) == n_rows, key


def test_logistic_probabilities_do_not_overflow():
    for name in ("LinearSVC, logistic", "LinearSVC, logistic, four"):
        model, Z = fitted(name), 1e4 * NEW
        np.testing.assert_allclose(run(export_onnx(model), Z)["probabilities"], model.predict_proba(Z), atol=1e-12)


def test_a_path_gets_the_graph_that_is_returned(tmp_path):
    made = export_onnx(fitted("SVC"), tmp_path / "model.onnx")
    assert (tmp_path / "model.onnx").read_bytes() == made.SerializeToString()
    assert [path.name for path in tmp_path.iterdir()] == ["model.onnx"]
    facts = {entry.key: entry.value for entry in made.metadata_props}
    assert facts == {"estimator": "SVC", "gap": repr(fitted("SVC").gap_)}
    assert (made.producer_name, made.opset_import[0].version) == ("widemargin", 17)


def test_names_of_features_are_in_the_metadata():
    import pandas as pd

    model = LinearSVC(random_state=0).fit(pd.DataFrame(X, columns=list("abcd")), TARGETS["two"])
    facts = {entry.key: entry.value for entry in export_onnx(model).metadata_props}
    assert facts["feature_names"] == '["a", "b", "c", "d"]'


@pytest.mark.parametrize("form", ["widemargin", "libsvm"])
def test_models_of_files_are_exported(form, tmp_path):
    save_model(fitted("SVC, three"), tmp_path / "model", format=form)
    model = load_model(tmp_path / "model")
    found = run(export_onnx(model), NEW)
    np.testing.assert_allclose(found["decision"], model.decision_function(NEW), atol=1e-9)
    assert np.array_equal(found["label"], fitted("SVC, three").predict(NEW))


def test_sparse_weights_and_rows_and_selected_models_are_exported():
    from scipy.sparse import csr_array

    sparse = SVC().fit(csr_array(X), TARGETS["three"])
    assert np.array_equal(run(export_onnx(sparse), NEW)["label"], sparse.predict(NEW))
    model = deepcopy(fitted("LinearSVC, three")).sparsify()
    assert np.array_equal(run(export_onnx(model), NEW)["label"], model.predict(NEW))
    chosen = LinearSVCCV(Cs=[0.1, 1.0], cv=3, random_state=0).fit(X, TARGETS["two"])
    assert np.array_equal(run(export_onnx(chosen), NEW)["label"], chosen.predict(NEW))


def test_what_cannot_be_exported_is_refused_by_name():
    def inner(A, B):
        return A @ B.T

    y = TARGETS["two"]
    with pytest.raises(TypeError, match=r"kernel=<function .*inner.* cannot be exported: .* a Python function"):
        export_onnx(SVC(kernel=inner).fit(X, y))
    with pytest.raises(TypeError, match=r"kernel='precomputed' cannot be exported: .* a matrix of the caller's"):
        export_onnx(SVC(kernel="precomputed").fit(X @ X.T, y))
    with pytest.raises(NotFittedError, match="not fitted"):
        export_onnx(SVC())
    with pytest.raises(TypeError, match=r"model must be one of LinearSVC, .*, got str"):
        export_onnx("model")
    with pytest.raises(ValueError, match="dtype must be one of 'float32', 'float64', got 'float16'"):
        export_onnx(fitted("SVC"), dtype="float16")
    with pytest.raises(ValueError, match="break_ties must be False when"):
        export_onnx(deepcopy(fitted("SVC, ovo")).set_params(break_ties=True))
    with pytest.raises(ValueError, match="predict_by='probability' needs probabilities"):
        export_onnx(deepcopy(fitted("SVC")).set_params(predict_by="probability"))
    model = deepcopy(fitted("LinearSVC"))
    model.classes_ = np.array([3, "x"], dtype=object)
    with pytest.raises(TypeError, match="classes_ must be numbers, booleans or strings"):
        export_onnx(model)


def test_models_that_are_not_valid_are_refused():
    model = deepcopy(fitted("LinearSVC"))
    model.coef_ = np.full_like(model.coef_, np.nan)
    with pytest.raises(ValueError, match="coef_ must be finite"):
        export_onnx(model)
    model = deepcopy(fitted("SVC, three"))
    model.n_support_ = model.n_support_ + 1
    with pytest.raises(ValueError, match="n_support_ must add up"):
        export_onnx(model)


def test_models_that_no_file_holds_are_refused_before_memory_is_taken(monkeypatch, tmp_path):
    monkeypatch.setattr(scorer, "MAX_BYTES", 500)
    with pytest.raises(ValueError, match="GB with its zeros, and an exported file holds at most 2 GB"):
        export_onnx(fitted("SVC"))
    monkeypatch.undo()
    monkeypatch.setattr(onnx_file, "MAX_BYTES", 500)
    with pytest.raises(ValueError, match="an ONNX file holds at most 2 GB: use dtype='float32'"):
        export_onnx(fitted("SVC"), tmp_path / "model.onnx")
    assert not list(tmp_path.iterdir())


def test_onnx_is_imported_by_an_export_only():
    script = """
import sys
from widemargin import SVR, export_c, export_numpy, export_onnx, load_model, register_onnx_converters
assert not {"onnx", "skl2onnx", "onnxruntime"} & set(sys.modules)
export_onnx(SVR().fit([[0.0], [1.0]], [0.0, 1.0]))
assert "onnx" in sys.modules and "skl2onnx" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", script], check=True)


def test_without_onnx_the_way_to_install_it_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ImportError, match=r'export_onnx needs onnx, which is not installed: pip install "widemargin'):
        export_onnx(SVR().fit(X, TARGETS["number"]))


def test_a_machine_that_has_no_export_is_refused_by_name():
    with pytest.raises(TypeError, match="TransductiveSVC cannot be exported: use save_model"):
        scorer.scorer_of(TransductiveSVC())
