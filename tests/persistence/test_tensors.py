"""A damaged, foreign or forged model file is refused, with its path and the rule that it breaks."""

import base64
import json
import pickle
import zlib

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.numpy import load, save
from scipy.sparse import csr_array

from widemargin import (
    SVC,
    SVR,
    FormatError,
    LinearSVC,
    MeasureSVC,
    OneClassSVM,
    OrdinalSVC,
    RankSVM,
    ROCAreaSVC,
)
from widemargin.persistence import tensors as tensor_file
from widemargin.persistence.model_file import load_model

OTHER = {"weight": np.ones(2)}


@pytest.fixture(scope="module")
def small():
    """Return the bytes of a small model file."""
    X = np.array([[0.0], [1.0], [2.0], [3.0]])
    return tensor_file.write(LinearSVC(random_state=0).fit(X, np.array(["a", "a", "b", "b"])))


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
    assert tensor_file.write(loaded) == small


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=st.binary(max_size=200), start=st.sampled_from([b"", b"\x09\0\0\0\0\0\0\0{", b"solver_type MCSVM_CS\n"]))
def test_arbitrary_bytes_are_refused(content, start, tmp_path):
    refusal(start + content, tmp_path / "model")


@pytest.mark.parametrize(
    ("content", "rule"),
    [
        (b"", "it is empty"),
        (b"SVM-multiclass Version V2.20\n", "a model of SVM-struct or another relative of SVM-light"),
        (pickle.dumps([1, 2]), "a pickle, which could run code"),
        (b"hello, world", "it begins with b'hello, world'"),
        (b"\xff" * 8 + b"{}", "not a whole safetensors file"),
        (b"\xff\xff\0\0\0\0\0\0{}", "not a whole safetensors file"),
        (save(OTHER), "do not say that widemargin wrote it"),
        (save(OTHER, {"widemargin": "{"}), "the metadata are not JSON"),
        (save(OTHER, {"widemargin": "[" * 100_000}), "nested too deeply"),
        (save(OTHER, {"widemargin": "[]"}), "format_version must be 1 or 2, got None"),
        (
            save({"weight": np.ones(2)}, {"widemargin": '{"format_version": true}'}),
            "format_version must be 1 or 2, got True",
        ),
        (
            save({"weight": np.ones(2)}, {"widemargin": '{"format_version": 3}'}),
            "got 3. A newer widemargin may read the file",
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
    checksum = tensor_file._checksum(facts, tensors)
    return save(tensors, {"widemargin": json.dumps({"format_version": 1, "sha256": checksum, "model": facts})})


def test_a_forged_file_without_a_change_is_a_model_file(small, tmp_path):
    (tmp_path / "model").write_bytes(forged(small, lambda facts: None))
    assert tensor_file.write(load_model(tmp_path / "model")) == small


@pytest.mark.parametrize(
    ("key", "value", "rule"),
    [
        (
            "estimator",
            "os.system",
            "estimator must be one of LinearSVC, LinearSVR, SVC, NuSVC, SVR, NuSVR, OneClassSVM, RankSVM,",
        ),
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


@pytest.fixture(scope="module")
def planes():
    """Return the bytes of small files of models fitted by cutting planes, by the estimator's name."""
    X = np.array([[0.0], [1.0], [2.0], [3.0]])
    cases = [RankSVM().fit(X, [0, 0, 1, 2]), OrdinalSVC().fit(X, [0, 0, 1, 2]), ROCAreaSVC().fit(X, [0, 0, 1, 1])]
    cases.append(MeasureSVC().fit(X, [0, 0, 1, 1]))
    return {type(model).__name__: tensor_file.write(model) for model in cases}


@pytest.mark.parametrize(
    ("name", "arrays", "rule"),
    [
        ("RankSVM", {"coef_": np.ones((1, 1))}, "coef_ must have shape (1,), got (1, 1)"),
        ("RankSVM", {"dual_coef_": np.ones(4)}, "a model has no array named 'dual_coef_'"),
        ("RankSVM", {"thresholds_": np.ones(1)}, "a model has no array named 'thresholds_'"),
        ("OrdinalSVC", {"thresholds_": None}, "the array thresholds_ is missing"),
        ("OrdinalSVC", {"thresholds_": np.ones(3)}, "thresholds_ must have shape (2,), got (3,)"),
        ("OrdinalSVC", {"thresholds_": np.array([1.0, 0.0])}, "thresholds_ must ascend"),
        ("OrdinalSVC", {"thresholds_": np.array([0.0, np.inf])}, "thresholds_ must be finite"),
        ("ROCAreaSVC", {"classes_": np.arange(3), "coef_": np.ones((3, 1)), "intercept_": np.ones(3)}, "two labels"),
        ("MeasureSVC", {"classes_": np.arange(3), "coef_": np.ones((3, 1)), "intercept_": np.ones(3)}, "two labels"),
    ],
)
def test_a_forged_array_of_a_model_by_planes_is_refused(name, arrays, rule, planes, tmp_path):
    assert rule in refusal(forged(planes[name], lambda facts: None, arrays), tmp_path / "model")


@pytest.mark.parametrize(("measure", "rule"), [("beauty", "measure must be 'error', 'f1'"), (3, "must be a string")])
def test_a_forged_measure_is_refused(measure, rule, planes, tmp_path):
    content = forged(planes["MeasureSVC"], lambda facts: facts["parameters"].update(measure=measure))
    assert rule in refusal(content, tmp_path / "model")


def test_a_model_by_planes_without_its_number_of_features_is_refused(planes, tmp_path):
    content = forged(planes["RankSVM"], lambda facts: facts.pop("n_features_in_"))
    assert "n_features_in_ must be int, got NoneType" in refusal(content, tmp_path / "model")


def test_a_parameter_the_file_lacks_keeps_its_default(small, tmp_path):
    path = tmp_path / "model"
    path.write_bytes(forged(small, lambda facts: facts["parameters"].pop("tol")))
    assert load_model(path).tol == LinearSVC().tol


# A LinearSVC of widemargin 0.1.0 from before there were kernel machines: its bytes, packed.
OLD = (
    b"c-oCqv5pfl5WRvAfIm1H3W`;<yGgvsH5cg+5{M3o<~B0k-"
    b"Py#)X1&<n97hydL`4M!6(!Ym)bJ5h)QI9FBpM`2#&&YKaOlJqiDursH*d!F?Q1*kTM))(V0gg|XN>GE$gwD3#??gBWREOTQc5-"
    b"BhRs1~A?uXv?MA_FO7xV+eQLv$#4t#Bk|ZH5Xq0th+Ru7)n1tD&9MYuBqd12=&S^Icdp(HyA*aJA@Af!NdU2U0DY1$(SwLk4u_<UHu&Y$Q!2?k"
    b"PR}UW@_{xn%4~Lzo6MCrOisL+JcBORS9Ctzs=Deyho<DI|-"
    b"By)LR$Oa#3}P}h7xP8SD=*JmBfWYl3==h~=g_!fqgt@Qd6H>tBI?P7u9ei<3+bmVS5UAi7Qkv~{)`Fay818-"
    b"*EtQjtcxw9v$isVIlEp?&XpIb*^$h)Y8$B0#&h_$TZftxuTsTcMDe<iGo}qUU=e3U%W4kl?=@&6n`Sj+N+!JVX(Qdj@HA|MyiDqi)G=31T{$Zy"
    b"uQV*Z`4YHk6=*ce&hJ+)p=3fcjVJ0=9K|#2#@NM`p$F!ByHI9FkQ*@vU)1S$X@9W!p_|c|pP|T$^=Rltud;XqSTcbX=2j0LT)10krssZZymsyg"
    b"4slbyK1<1Xxm=QE;HR;#t1u@G;KRC0dnB-r$VP`z5RC)k-k>Z?4Mt-"
    b"!3<hJQP6e)8om|202J|v}5Jdgh@;6uWivE}R$POYJ;sCq$yZ7bv&X4=w_IK9b<B#8;4S#K7_gx=t$3HzjdOg~?b@t-"
    b")#!ZjEe>r;lVf^aro8SBE|1FxWZ;E%H|DzrQ%$$At0~-Q(v;"
)


def test_a_file_from_before_kernel_machines_still_loads(tmp_path):
    (tmp_path / "model").write_bytes(zlib.decompress(base64.b85decode(OLD)))
    loaded = load_model(tmp_path / "model")
    assert type(loaded) is LinearSVC
    np.testing.assert_allclose([loaded.coef_[0, 0], loaded.intercept_[0]], [0.6341463414634146, -0.8292682926829268])
    assert loaded.predict([[0.0], [3.0]]).tolist() == ["a", "b"]
    assert (loaded.tol, loaded.random_state, loaded.status_) == (0.1, 0, "converged")


# Kernel machines


@pytest.fixture(scope="module")
def machines():
    """Return the bytes of small kernel machines by name: 6 rows of 2 features, all of them support vectors."""
    X = np.array([[0.0, 1.0], [1.0, 1.0], [2.0, 0.0], [3.0, 0.5], [4.0, 2.0], [5.0, -1.0]])
    y = np.array([0, 1, 2, 0, 1, 2])
    cases = {
        "sparse": SVC(C=0.01, warm_start=True).fit(csr_array(X), y),
        "dense": SVC(C=0.01).fit(X, y),
        "precomputed": SVC(C=0.01, kernel="precomputed").fit(X @ X.T, y),
        "regression": SVR(C=0.01, epsilon=0.0).fit(X, y + 0.3),
        "one class": OneClassSVM(nu=1.0).fit(X),
    }
    return {name: tensor_file.write(model) for name, model in cases.items()}


@pytest.mark.parametrize("name", ["sparse", "dense", "precomputed", "regression", "one class"])
def test_a_forged_machine_without_a_change_is_a_model_file(name, machines, tmp_path):
    (tmp_path / "model").write_bytes(forged(machines[name], lambda facts: None))
    assert tensor_file.write(load_model(tmp_path / "model")) == machines[name]


@pytest.mark.parametrize(
    ("name", "key", "value", "rule"),
    [
        ("dense", "estimator", "SVR", "SVR has no parameter"),
        ("dense", "estimator", "LinearSVC", "LinearSVC has no parameter"),
        ("dense", "n_features_in_", 3, "shape_fit_ must end with n_features_in_, got (6, 2)"),
        ("dense", "n_features_in_", 2.0, "n_features_in_ must be int, got float"),
        ("dense", "shape_fit_", [6], "shape_fit_ must be two integers"),
        ("dense", "shape_fit_", [6.0, 2], "shape_fit_ must be two integers"),
        ("dense", "shape_fit_", 6, "shape_fit_ must be list, got int"),
        ("dense", "shape_fit_", [5, 2], "support_ must be below 5"),
        ("dense", "_gamma", None, "_gamma must be float, got NoneType"),
        ("dense", "_gamma", -1.0, "_gamma must be finite and not negative, got -1.0"),
        ("dense", "_gamma", float("inf"), "_gamma must be finite and not negative, got inf"),
        ("dense", "_gamma", float("nan"), "_gamma must be finite and not negative, got nan"),
        ("dense", "fit_status_", "0", "fit_status_ must be int, got str"),
        ("dense", "facts_", {"list": [1]}, "facts_ must be a list of dicts from names to numbers"),
        ("dense", "facts_", {"list": [{"dict": [[1, 1.0]]}]}, "facts_ must be a list of dicts from names to numbers"),
        ("dense", "facts_", {"list": [{"dict": [["a", "b"]]}]}, "facts_ must be a list of dicts from names to numbers"),
        ("dense", "facts_", {"dict": []}, "facts_ must be a list of dicts from names to numbers"),
        ("dense", "facts_", [{"obj": 1.0}], "a parameter is neither a number"),
        ("dense", "parameters", {"kernel": "cosine"}, "The 'kernel' parameter of SVC must be"),
        ("dense", "parameters", {"kernel": None}, "The 'kernel' parameter of SVC must be"),
        ("dense", "parameters", {"degree": "3"}, "The 'degree' parameter of SVC must be"),
        ("dense", "parameters", {"kernel": "precomputed"}, "support_ must be below 2"),
        ("sparse", "vectors", None, "vectors must be str, got NoneType"),
        ("sparse", "vectors", "array", "vectors must be one of csr_array, csr_matrix, got 'array'"),
        ("sparse", "parameters", {"kernel": "precomputed"}, "support_ must be below 2"),
        ("regression", "laplace_scale_", -1.0, "laplace_scale_ must be finite and not negative"),
        ("regression", "n_iter_", 1.5, "n_iter_ must be int, got float"),
    ],
)
def test_a_forged_fact_of_a_machine_is_refused(name, key, value, rule, machines, tmp_path):
    assert rule in refusal(forged(machines[name], lambda facts: facts.update({key: value})), tmp_path / "model")


VECTORS = "support_vectors_"
SINGLE = np.int32


@pytest.mark.parametrize(
    ("name", "arrays", "rule"),
    [
        ("dense", {"dual_coef_": None}, "the array dual_coef_ is missing"),
        ("dense", {"intercept_": None}, "the array intercept_ is missing"),
        ("dense", {"n_support_": None}, "the array n_support_ is missing"),
        ("dense", {VECTORS: None}, "the array support_vectors_ is missing"),
        ("dense", {"probA_": None}, "the array probA_ is missing"),
        ("dense", {"predict": np.ones(1)}, "a SVC has no array named 'predict'"),
        ("dense", {"offset_": np.ones(1)}, "a SVC has no array named 'offset_'"),
        ("regression", {"probA_": np.ones(1)}, "a SVR has no array named 'probA_'"),
        ("regression", {"n_iter_": np.ones(1, SINGLE)}, "a SVR has no array named 'n_iter_'"),
        ("dense", {"dual_coef_": np.ones(6)}, "dual_coef_ must have shape (2, 0), got (6,)"),
        ("dense", {"dual_coef_": np.ones((3, 6))}, "dual_coef_ must have shape (2, 6), got (3, 6)"),
        ("dense", {"dual_coef_": np.ones((2, 5))}, "support_ must have shape (5,), got (6,)"),
        ("dense", {"dual_coef_": np.full((2, 6), np.nan)}, "dual_coef_ must be finite"),
        ("dense", {"dual_coef_": np.ones((2, 6), int)}, "dual_coef_ must hold floating point numbers, got int64"),
        ("dense", {"intercept_": np.ones(2)}, "intercept_ must have shape (3,), got (2,)"),
        ("dense", {"intercept_": np.array(1.0)}, "intercept_ must have shape (3,), got ()"),
        ("dense", {"classes_": np.arange(2)}, "dual_coef_ must have shape (1, 6), got (2, 6)"),
        ("dense", {"classes_": np.array([0, 2, 1])}, "distinct and sorted"),
        ("dense", {"probA_": np.ones(3)}, "probB_ must have shape (3,), got (0,)"),
        ("dense", {"probA_": np.ones(2), "probB_": np.ones(2)}, "probA_ must have shape (3,), got (2,)"),
        ("dense", {"class_weight_": np.ones(2)}, "class_weight_ must have shape (3,), got (2,)"),
        ("dense", {"n_iter_": np.ones(2, SINGLE)}, "n_iter_ must have shape (3,), got (2,)"),
        ("dense", {"_class_order": np.array([2, 2, 0])}, "_class_order must be a permutation of the classes"),
        ("dense", {"n_support_": np.array([2, 2, 3], SINGLE)}, "n_support_ must add up to the 6 columns"),
        ("dense", {"n_support_": np.array([8, -1, -1])}, "n_support_ must not be negative, got -1"),
        ("dense", {"n_support_": np.array([2**63 - 1, 2**63 - 1, 8])}, "n_support_ must add up to the 6 columns"),
        ("dense", {"n_support_": np.array([2.0, 2.0, 2.0])}, "n_support_ must hold 32-bit or 64-bit integers"),
        ("dense", {"support_": np.arange(6, dtype=np.uint8)}, "support_ must hold 32-bit or 64-bit integers"),
        ("dense", {"support_": np.arange(1, 7)}, "support_ must be below 6"),
        ("dense", {"support_": np.arange(-1, 5)}, "support_ must not be negative, got -1"),
        ("dense", {"support_": np.arange(5)}, "support_ must have shape (6,), got (5,)"),
        ("dense", {VECTORS: np.ones((5, 2))}, "support_vectors_ must have shape (6, 2), got (5, 2)"),
        ("dense", {VECTORS: np.full((6, 2), np.inf)}, "support_vectors_ must be finite"),
        ("dense", {f"{VECTORS}.data": np.ones(1)}, "support_vectors_.data does not belong to this model"),
        ("dense", {"_last_multipliers.1": np.ones(1)}, "dual variables must be named _last_multipliers.0 and so on"),
        ("dense", {"_last_multipliers.0": np.full(2, np.nan)}, "_last_multipliers.0 must be finite"),
        ("dense", {"_last_multipliers.0": np.ones((2, 2))}, "_last_multipliers.0 must have shape (2,), got (2, 2)"),
        ("precomputed", {"support_": None}, "the array support_ is missing"),
        ("precomputed", {"support_": np.arange(1, 7)}, "support_ must be below 6"),
        ("precomputed", {VECTORS: np.ones((6, 6))}, "support_vectors_ must have shape (0, 0), got (6, 6)"),
        ("one class", {"offset_": None}, "the array offset_ is missing"),
        ("one class", {"offset_": np.array([9.0])}, "offset_ must be -intercept_"),
        ("one class", {"density_marks_": np.arange(9.0)}, "density_marks_ must have shape (10,), got (9,)"),
        ("one class", {"density_marks_": -np.arange(10.0)}, "density_marks_ must not decrease"),
        ("sparse", {f"{VECTORS}.data": None}, "the array support_vectors_.data is missing"),
        ("sparse", {f"{VECTORS}.indices": None}, "the array support_vectors_.indices is missing"),
        ("sparse", {f"{VECTORS}.indptr": None}, "the array support_vectors_.indptr is missing"),
        ("sparse", {f"{VECTORS}.data": np.ones(3)}, "support_vectors_.indices must have shape (3,), got (10,)"),
        ("sparse", {f"{VECTORS}.data": np.full(10, np.nan)}, "support_vectors_.data must be finite"),
        ("sparse", {f"{VECTORS}.indices": np.full(10, 2)}, "support_vectors_.indices must be below 2"),
        ("sparse", {f"{VECTORS}.indices": np.full(10, -1)}, "support_vectors_.indices must not be negative, got -1"),
        ("sparse", {f"{VECTORS}.indptr": np.arange(6)}, "support_vectors_.indptr must have shape (7,), got (6,)"),
        ("sparse", {f"{VECTORS}.indptr": np.arange(7)}, "support_vectors_.indptr must rise from 0 to 10"),
        ("sparse", {f"{VECTORS}.indptr": np.array([0, 5, 4, 6, 7, 8, 10])}, "indptr must rise from 0 to 10"),
        ("sparse", {f"{VECTORS}.indptr": np.array([1, 2, 3, 6, 7, 8, 10])}, "indptr must rise from 0 to 10"),
    ],
)
def test_a_forged_array_of_a_machine_is_refused(name, arrays, rule, machines, tmp_path):
    assert rule in refusal(forged(machines[name], lambda facts: None, arrays), tmp_path / "model")


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data(), name=st.sampled_from(["sparse", "precomputed", "one class"]))
def test_changed_bytes_of_a_machine_are_refused_or_change_nothing(data, name, machines, tmp_path):
    damaged = bytearray(machines[name])
    for _ in range(data.draw(st.integers(1, 3))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    (tmp_path / "model").write_bytes(damaged)
    try:
        loaded = load_model(tmp_path / "model")
    except FormatError:
        return
    assert tensor_file.write(loaded) == machines[name]


def test_a_machine_of_unknown_features_has_no_support_vectors(machines, tmp_path):
    content = forged(machines["regression"], lambda facts: (facts.pop("n_features_in_"), facts.pop("shape_fit_")))
    assert "n_features_in_ must be known if there are support vectors" in refusal(content, tmp_path / "model")
