"""A damaged, foreign or forged model file is refused, with its path and the rule that it breaks."""

import json
import pickle

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.numpy import load, save

from widemargin import FormatError, LinearSVC
from widemargin.models import tensorfile
from widemargin.models.modelfile import load_model

OTHER = {"weight": np.ones(2)}


@pytest.fixture(scope="module")
def small():
    """Return the bytes of a small model file."""
    X = np.array([[0.0], [1.0], [2.0], [3.0]])
    return tensorfile.write(LinearSVC(random_state=0).fit(X, np.array(["a", "a", "b", "b"])))


def refusal(content, path):
    path.write_bytes(content)
    with pytest.raises(FormatError, match=str(path)) as refused:
        load_model(path)
    return refused.value.rule


def test_a_file_cut_short_anywhere_is_refused(small, tmp_path):
    for length in range(len(small)):
        assert refusal(small[:length], tmp_path / "model")


def test_a_file_with_bytes_added_is_refused(small, tmp_path):
    assert "not a whole safetensors file" in refusal(small + b"\0", tmp_path / "model")


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_changed_bytes_are_refused_or_change_nothing(data, small, tmp_path):
    damaged = bytearray(small)
    for _ in range(data.draw(st.integers(1, 3))):
        damaged[data.draw(st.integers(0, len(small) - 1))] = data.draw(st.integers(0, 255))
    path = tmp_path / "model"
    path.write_bytes(damaged)
    try:
        loaded = load_model(path)
    except FormatError:
        return
    assert tensorfile.write(loaded) == small


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=st.binary(max_size=200), start=st.sampled_from([b"", b"\x09\0\0\0\0\0\0\0{", b"solver_type MCSVM_CS\n"]))
def test_arbitrary_bytes_are_refused(content, start, tmp_path):
    refusal(start + content, tmp_path / "model")


@pytest.mark.parametrize(
    ("content", "rule"),
    [
        (b"", "it is empty"),
        (b"svm_type c_svc\nkernel_type rbf\n", "a LIBSVM model"),
        (b"SVM-light Version V6.02\n", "an SVM-light model"),
        (pickle.dumps([1, 2]), "a pickle, which could run code"),
        (b"hello, world", "it begins with b'hello, world'"),
        (b"\xff" * 8 + b"{}", "header too large"),
        (b"\xff\xff\0\0\0\0\0\0{}", "not a whole safetensors file"),
        (save(OTHER), "do not say that widemargin wrote it"),
        (save(OTHER, {"widemargin": "{"}), "the metadata are not JSON"),
        (save(OTHER, {"widemargin": "[" * 100_000}), "nested too deeply"),
        (save(OTHER, {"widemargin": "[]"}), "format_version must be 1, got None"),
        (
            save({"weight": np.ones(2)}, {"widemargin": '{"format_version": true}'}),
            "format_version must be 1, got True",
        ),
        (
            save({"weight": np.ones(2)}, {"widemargin": '{"format_version": 2}'}),
            "got 2. A newer widemargin may read the file",
        ),
        (save(OTHER, {"widemargin": '{"format_version": 1}'}), "the metadata lack the model"),
    ],
)
def test_files_of_another_kind_are_refused(content, rule, tmp_path):
    assert rule in refusal(content, tmp_path / "model")


@pytest.mark.parametrize("n_columns", [2**40, 2**62, 2**63, 2**64 - 1])
def test_a_header_that_claims_enormous_sizes_is_refused(n_columns, tmp_path):
    for shape, end in (([n_columns], 8 * n_columns), ([0, n_columns], 0)):
        entry = {"dtype": "F64", "shape": shape, "data_offsets": [0, end]}
        model = json.dumps({"format_version": 1, "model": {}})
        header = json.dumps({"coef_": entry, "__metadata__": {"widemargin": model}}).encode()
        assert refusal(len(header).to_bytes(8, "little") + header, tmp_path / "model")


def forged(content, change, arrays=None):
    """Return a model file with facts changed by a function, arrays replaced, and a checksum that is right."""
    length = int.from_bytes(content[:8], "little")
    facts = json.loads(json.loads(content[8 : 8 + length])["__metadata__"]["widemargin"])["model"]
    tensors = {name: array for name, array in {**load(content), **(arrays or {})}.items() if array is not None}
    change(facts)
    checksum = tensorfile._checksum(facts, tensors)
    return save(tensors, {"widemargin": json.dumps({"format_version": 1, "sha256": checksum, "model": facts})})


def test_a_forged_file_without_a_change_is_a_model_file(small, tmp_path):
    (tmp_path / "model").write_bytes(forged(small, lambda facts: None))
    assert tensorfile.write(load_model(tmp_path / "model")) == small


@pytest.mark.parametrize(
    ("key", "value", "rule"),
    [
        ("estimator", "os.system", "estimator must be one of LinearSVC, LinearSVR, got 'os.system'"),
        ("estimator", ["LinearSVC"], "estimator must be one of"),
        ("estimator", "LinearSVR", "LinearSVR has no parameter 'class_weight'"),
        ("n_features_in_", 2, r"coef_ must have shape (1, 2), got (1, 1)"),
        ("n_features_in_", 2**70, "coef_ must have shape"),
        ("n_features_in_", 1.0, "n_features_in_ must be int, got float"),
        ("n_features_in_", None, "n_features_in_ must be int, got NoneType"),
        ("n_iter_", True, "n_iter_ must be int, got bool"),
        ("gap_", "small", "gap_ must be float, got str"),
        ("gap_", 10**400, "gap_ must be float, got int"),
        ("solver_", 3, "solver_ must be str, got int"),
        ("parameters", None, "lack the parameters"),
        ("parameters", {"gamma": 1.0}, "LinearSVC has no parameter 'gamma'; the file was written by widemargin"),
        ("parameters", {"C": [1.0]}, "a parameter is neither a number"),
        ("parameters", {"C": {"dict": [[[], 1]]}}, "a parameter is neither a number"),
        ("parameters", {"C": {"call": ["os.system"]}}, "a parameter is neither a number"),
        ("classes_", None, "neither an array nor a list of strings"),
        ("classes_", {"width": 1, "names": []}, "neither an array nor a list of strings"),
        ("classes_", {"width": 1, "names": ["a", 2]}, "neither an array nor a list of strings"),
        ("classes_", {"width": 1, "names": ["a"]}, "two labels or more"),
        ("classes_", {"width": 1, "names": ["b", "a"]}, "distinct and sorted"),
        ("classes_", {"width": 1, "names": ["a", "a"]}, "distinct and sorted"),
        ("classes_", {"width": 1, "names": ["a", "b", "c"]}, "coef_ must have shape (3, 1), got (1, 1)"),
        ("classes_", {"width": 10**9, "names": ["a", "b"]}, "but the width 1000000000"),
        ("classes_", {"width": 0, "names": ["a", "b"]}, "but the width 0"),
        ("feature_names_in_", ["x", "y"], "feature_names_in_ must be 1 strings"),
        ("feature_names_in_", [1], "feature_names_in_ must be 1 strings"),
    ],
)
def test_a_forged_fact_is_refused(key, value, rule, small, tmp_path):
    assert rule in refusal(forged(small, lambda facts: facts.update({key: value})), tmp_path / "model")


@pytest.mark.parametrize(
    ("arrays", "rule"),
    [
        ({"coef_": None}, "the array coef_ is missing"),
        ({"intercept_": None}, "the array intercept_ is missing"),
        ({"coef_": np.array([[np.nan]])}, "coef_ must be finite"),
        ({"coef_": np.array([[1]])}, "coef_ must hold floating point numbers, got int64"),
        ({"coef_": np.ones((2, 1))}, "coef_ must have shape (1, 1), got (2, 1)"),
        ({"coef_": np.ones(1)}, "coef_ must have shape (1, 1), got (1,)"),
        ({"intercept_": np.array([np.inf])}, "intercept_ must be finite"),
        ({"intercept_": np.ones(2)}, "intercept_ must have shape (1,), got (2,)"),
        ({"dual_coef_": np.ones((2, 4))}, "dual_coef_ must have shape (1, 4), got (2, 4)"),
        ({"dual_coef_": np.array(1.0)}, "dual_coef_ must have shape (1, 0), got ()"),
        ({"classes_": np.array([1, 1])}, "distinct and sorted"),
        ({"classes_": np.array([1.0, np.nan])}, "distinct and sorted"),
        ({"classes_": np.array([[1, 2]])}, "distinct and sorted"),
        ({"classes_": np.arange(3)}, "coef_ must have shape (3, 1), got (1, 1)"),
        ({"predict": np.ones(1)}, "no array named 'predict'"),
        ({"history_": np.ones((2, 5))}, "a history must be float64 with 6 columns"),
        ({"history_": np.full((2, 6), np.nan)}, "iterations must be integers"),
        ({"history_.1": np.ones((2, 6))}, "histories must be named"),
    ],
)
def test_a_forged_array_is_refused(arrays, rule, small, tmp_path):
    assert rule in refusal(forged(small, lambda facts: None, arrays), tmp_path / "model")


def test_a_parameter_the_file_lacks_keeps_its_default(small, tmp_path):
    path = tmp_path / "model"
    path.write_bytes(forged(small, lambda facts: facts["parameters"].pop("tol")))
    assert load_model(path).tol == LinearSVC().tol
