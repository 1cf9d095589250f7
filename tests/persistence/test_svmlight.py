"""SVM-light's text: read to the bit and summed; what it has no place for is refused, and broken text by line."""

import os
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from widemargin import (
    FormatError,
    LinearSVC,
    LinearSVR,
    MeasureSVC,
    OneClassSVM,
    OrdinalSVC,
    RankSVM,
    ROCAreaSVC,
    load_model,
    save_model,
)

TEXT = b"""SVM-light Version V6.02
0 # kernel type
3 # kernel parameter -d 
1 # kernel parameter -g 
1 # kernel parameter -s 
1 # kernel parameter -r 
empty# kernel parameter -u 
4 # highest feature index 
9 # number of training documents 
4 # number of support vectors plus 1 
0.25 # threshold b, each following line is a SV (starting with alpha*y)
0.5 1:1 3:-2 #
-0.25 1:4 2:1e-1 # a comment
2 3:.5 #
"""  # noqa: W291


@pytest.fixture(scope="module")
def X():
    return np.random.default_rng(11).normal(size=(80, 5))


@pytest.fixture(scope="module")
def fitted(X):
    """Return a fitted model by name."""
    target = X @ np.arange(5.0) + np.random.default_rng(12).normal(size=80)
    sign = np.where(target > 0, 1, -1)
    return {
        "classes": LinearSVC(random_state=0).fit(X, sign),
        "free intercept": LinearSVC(penalize_intercept=False, intercept_scaling=3.3).fit(X, sign),
        "no intercept": LinearSVC(fit_intercept=False, random_state=0).fit(X, sign),
        "other labels": LinearSVC(random_state=0).fit(X, np.where(sign > 0, 7, 3)),
        "whole floats": LinearSVC(random_state=0).fit(X, sign.astype(float)),
        "regression": LinearSVR(solver="ocas", intercept_scaling=7.0).fit(X, target),
        "rank": RankSVM().fit(X, target, qid=np.repeat(np.arange(8), 10)),
        "roc area": ROCAreaSVC().fit(X, (target > 2).astype(int)),
        "measure": MeasureSVC(measure="precision@20", C=10.0).fit(X, sign),
    }


CASES = [
    "classes", "free intercept", "no intercept", "other labels", "whole floats", "regression", "rank", "roc area",
    "measure",
]  # fmt: skip


def loaded_text(text, path, **options):
    path.write_bytes(text)
    return load_model(path, **options)


@pytest.mark.parametrize("name", CASES)
def test_a_loaded_model_predicts_the_same_to_the_bit(name, fitted, X, tmp_path):
    model = fitted[name]
    save_model(model, tmp_path / "model", format="svmlight")
    loaded = load_model(tmp_path / "model")
    assert type(loaded) is type(model)
    np.testing.assert_array_equal(loaded.coef_, model.coef_)
    np.testing.assert_array_equal(loaded.intercept_, model.intercept_)
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    if hasattr(model, "decision_function"):
        np.testing.assert_array_equal(loaded.decision_function(X), model.decision_function(X))
    assert getattr(loaded, "measure", None) == getattr(model, "measure", None)


@pytest.mark.parametrize("name", CASES)
def test_the_text_is_what_svm_lights_reader_expects(name, fitted, X, tmp_path):
    """Score the rows from the text as its layout says, with a reader of ten lines."""
    model = fitted[name]
    save_model(model, tmp_path / "model", format="svmlight")
    lines = (tmp_path / "model").read_text().split("\n")
    assert lines[0] == "SVM-light Version V6.20"
    assert [line.partition("#")[0].strip() for line in lines[7:10]] == ["5", "1", "2"]
    assert len(lines[6].partition("#")[0]) < 50  # into so many bytes SVM-light reads it
    b, (alpha, *cells, end, seal) = float(lines[10].split()[0]), lines[11].split()
    w = np.zeros(5)
    for cell in cells:
        w[int(cell.split(":")[0]) - 1] = float(cell.split(":")[1])
    scores = model.decision_function(X) if hasattr(model, "decision_function") else model.predict(X)
    assert (alpha, end, seal[:7], lines[12:]) == ("1", "#", "sha256=", [""])
    np.testing.assert_allclose(X @ w - b, scores, rtol=1e-12, atol=1e-14)


SHARED = Path(os.environ.get("WIDEMARGIN_DATA", Path(__file__).parents[3] / "shared" / "data")).parent
ORIGINALS = sorted(SHARED.joinpath("originals").glob("*.model"))


@pytest.mark.skipif(not ORIGINALS, reason="model files of the original programs are not beside WIDEMARGIN_DATA")
def test_headers_are_those_of_the_original_programs(fitted, tmp_path):
    originals = [path.read_text().split("\n")[:11] for path in ORIGINALS]
    assert len(originals) >= 10
    layouts = {tuple(re.sub(r"^[^#]*(?=#)", "", line) for line in lines) for lines in originals}
    for name in CASES:
        save_model(fitted[name], tmp_path / "model", format="svmlight")
        lines = (tmp_path / "model").read_text().split("\n")[:11]
        assert layouts == {tuple(re.sub(r"^[^#]*(?=#)", "", line) for line in lines)}, name
        assert {line for lines in originals for line in lines[:1]} == {lines[0]}, name


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(weights=st.lists(st.floats(-1e300, 1e300), min_size=1, max_size=4), intercept=st.floats(-1e300, 1e300))
def test_any_weights_come_back_to_the_bit(weights, intercept, tmp_path):
    model = LinearSVR()
    model.coef_, model.intercept_, model.n_features_in_ = np.array(weights), np.array([intercept]), len(weights)
    save_model(model, tmp_path / "model", format="svmlight")
    loaded = load_model(tmp_path / "model")
    np.testing.assert_array_equal(loaded.coef_, model.coef_)
    np.testing.assert_array_equal(loaded.intercept_, model.intercept_)


def test_support_vectors_are_summed_and_the_threshold_is_subtracted(tmp_path):
    loaded = loaded_text(TEXT, tmp_path / "model")
    np.testing.assert_array_equal(loaded.coef_, [[-0.5, -0.025, 0.0, 0.0]])
    np.testing.assert_array_equal(loaded.intercept_, [-0.25])
    assert (type(loaded), loaded.classes_.tolist(), loaded.n_features_in_) == (LinearSVC, [-1, 1], 4)


@pytest.mark.parametrize("newline", [b"\n", b"\r\n"])
@pytest.mark.parametrize("version", [b"V5.00", b"V6.01", b"V6.20"])
def test_versions_and_line_ends_of_relatives_are_read(version, newline, tmp_path):
    text = TEXT.replace(b"V6.02", version).replace(b"\n", newline)
    np.testing.assert_array_equal(loaded_text(text, tmp_path / "model").coef_, [[-0.5, -0.025, 0.0, 0.0]])


@pytest.mark.parametrize(
    ("task", "estimator"), [("classification", LinearSVC), ("regression", LinearSVR), ("rank", RankSVM)]
)
def test_a_text_that_does_not_say_what_it_is_can_be_told(task, estimator, tmp_path):
    loaded = loaded_text(TEXT, tmp_path / "model", task=task)
    assert type(loaded) is estimator
    scores = loaded.decision_function(np.eye(4)) if task == "classification" else loaded.predict(np.eye(4))
    np.testing.assert_array_equal(scores, [-0.75, -0.275, -0.25, -0.25])
    save_model(loaded, tmp_path / "ours")
    assert set(vars(load_model(tmp_path / "ours"))) == set(vars(loaded))


def test_a_task_is_refused_where_it_is_unknown_or_the_file_says_it(fitted, tmp_path):
    with pytest.raises(ValueError, match="task must be one of 'classification', 'regression', 'rank' or None, got 'x'"):
        load_model(tmp_path / "model", task="x")
    save_model(fitted["classes"], tmp_path / "model")
    with pytest.raises(FormatError, match="task='rank' is for SVM-light's text; this file says itself"):
        load_model(tmp_path / "model", task="rank")


def test_a_model_without_support_vectors_is_zero(tmp_path):
    text = b"".join(TEXT.splitlines(keepends=True)[:11]).replace(b"\n4 # number of support", b"\n1 # number of support")
    np.testing.assert_array_equal(loaded_text(text, tmp_path / "model").coef_, np.zeros((1, 4)))


def test_what_the_text_does_not_say_is_absent(fitted, tmp_path):
    save_model(fitted["measure"], tmp_path / "model", format="svmlight")
    loaded = load_model(tmp_path / "model")
    assert set(vars(loaded)) - set(loaded.get_params()) == {"coef_", "intercept_", "classes_", "n_features_in_"}


def test_features_without_weight_are_counted_without_being_written(tmp_path):
    model = RankSVM()
    model.coef_, model.intercept_, model.n_features_in_ = np.zeros(1_000_000), 0.0, 1_000_000
    model.coef_[7] = 2.0
    save_model(model, tmp_path / "model", format="svmlight")
    assert (tmp_path / "model").stat().st_size < 500
    np.testing.assert_array_equal(load_model(tmp_path / "model").coef_, model.coef_)


def test_so_many_features_without_weight_that_they_must_be_shown_come_back_too(tmp_path):
    model = RankSVM()
    model.coef_, model.intercept_, model.n_features_in_ = np.zeros(1_200_000), 0.0, 1_200_000
    save_model(model, tmp_path / "model", format="svmlight")
    assert load_model(tmp_path / "model").n_features_in_ == 1_200_000


# What cannot be written


@pytest.mark.parametrize("labels", [["a", "b"], [False, True], [0, 2**31]], ids=str)
def test_labels_that_the_text_cannot_hold_are_refused(labels, X, tmp_path):
    model = LinearSVC(random_state=0).fit(X, np.array(labels)[(X[:, 0] > 0).astype(int)])
    with pytest.raises(TypeError, match="SVM-light's labels are 32-bit integers, got classes_"):
        save_model(model, tmp_path / "model", format="svmlight")
    assert not list(tmp_path.iterdir())


def test_thresholds_and_several_weight_vectors_are_refused(X, tmp_path):
    rank = np.digitize(X[:, 0], [-1.0, 1.0])
    with pytest.raises(TypeError, match=r'no place for thresholds_ of an OrdinalSVC. Save with format="widemargin"'):
        save_model(OrdinalSVC().fit(X, rank), tmp_path / "model", format="svmlight")
    with pytest.raises(TypeError, match=r"one weight vector, and no place for 3 classes"):
        save_model(LinearSVC(random_state=0).fit(X, rank), tmp_path / "model", format="svmlight")


def test_each_text_has_a_place_for_its_own_models_only(X, fitted, tmp_path):
    with pytest.raises(TypeError, match="format='svmlight' has no place for OneClassSVM; use format='libsvm' or form"):
        save_model(OneClassSVM().fit(X), tmp_path / "model", format="svmlight")
    with pytest.raises(TypeError, match="format='liblinear' has no place for RankSVM; use format='svmlight' or"):
        save_model(fitted["rank"], tmp_path / "model", format="liblinear")


def test_labels_and_measure_that_are_too_long_together_are_refused(fitted, tmp_path):
    model = MeasureSVC(measure="precision@123456789")
    model.coef_, model.intercept_, model.n_features_in_ = np.ones((1, 2)), np.zeros(1), 2
    model.classes_ = np.array([-2147483648, -2147483647])
    with pytest.raises(ValueError, match="has 49 characters for labels and measure"):
        save_model(model, tmp_path / "model", format="svmlight")


# Broken text


def refusal(content, path):
    """Return the line and rule with which a file is refused."""
    path.write_bytes(content)
    with pytest.raises(FormatError, match=re.escape(str(path))) as refused:
        load_model(path)
    return refused.value.line, refused.value.rule


def test_text_cut_short_anywhere_is_refused(tmp_path):
    for length in range(len(TEXT)):
        refusal(TEXT[:length], tmp_path / "model")


@pytest.mark.parametrize(
    ("old", "new", "line", "rule"),
    [
        (b"V6.02", b"V7.00", 1, "is no version of SVM-light from 5.00 to 6.99"),
        (
            b"0 # kernel type",
            b"4 # kernel type",
            2,
            "the kernel is a function of the user (type 4); types 0 to 3 can be",
        ),
        (b"0 # kernel type", b"9 # kernel type", 2, "the kernel is unknown (type 9)"),
        (b"0 # kernel type", b"7 # kernel type", 2, "the kernel is unknown (type 7)"),
        (b"0 # kernel type", b"x # kernel type", 2, "kernel type must be an integer from 0, got 'x'"),
        (b"0 # kernel type", b"0 # number of classes", 2, "the line must be `value # kernel type`"),
        (b"0 # kernel type", b"0", 2, "the line must be `value # kernel type`, got '0'"),
        (b"4 # highest", b"2 # highest", 8, "highest feature index is 2, but the file has a feature 3"),
        (b"4 # highest", b"0 # highest", 8, "highest feature index must be an integer from 1, got '0'"),
        (b"4 # highest", b"-4 # highest", 8, "highest feature index must be an integer from 1, got '-4'"),
        (b"4 # highest", b"2147483647 # highest", 8, "2147483647 features are more than a file of"),
        (b"4 # highest", b"9999999999999999999 # highest", 8, "features are more than a file of"),
        (b"9 # number", b"many # number", 9, "number of training documents must be an integer from 0, got 'many'"),
        (b"4 # number", b"5 # number", 10, "plus 1 requires 4 lines, the file has 3"),
        (b"4 # number", b"3 # number", 10, "plus 1 requires 2 lines, the file has 3"),
        (b"4 # number", b"0 # number", 10, "number of support vectors plus 1 must be an integer from 1, got '0'"),
        (b"4 # number", b"9" * 18 + b" # number", 10, "lines, the file has 3"),
        (b"0.25 # thr", b"nan # thr", 11, "'nan' is not a finite number"),
        (b"0.5 1:1", b"x 1:1", 12, "'x'"),
        (b"0.5 1:1", b"0.5 0:1", 12, "0"),
        (b"0.5 1:1", b"0.5 qid:3 1:1", 13, "qid"),
        (b"0.5 1:1", b"BZh91AY&SY", 12, "a support vector must begin with its coefficient"),
        (b"1:4 2:1e-1", b"2:4 1:1e-1", 13, "1"),
        (b"1:4", b"1:inf", 13, "inf"),
        (b"2 3:.5", b"2 2147483646:.5", 8, "highest feature index is 4, but the file has a feature 2147483646"),
        (b"0.5 1:1", b"1e300 1:1e300", 12, "the sum of the support vectors is not finite"),
        (b"empty#", b"LinearSVC#", 7, "must be followed by two integer labels"),
        (b"empty#", b"LinearSVC 1 -1#", 7, "labels must be ascending 32-bit integers, got 1 and -1"),
        (b"empty#", b"ROCAreaSVC 1 2147483648#", 7, "labels must be ascending 32-bit integers"),
        (b"empty#", b"RankSVM 1#", 7, "'1' must not follow the name, labels and measure of a RankSVM"),
        (b"empty#", b"MeasureSVC -1 1 beauty#", 7, "measure must be 'error', 'f1', 'prbep'"),
        (b"2 3:.5 #\n", b"2 3:.5 #", 14, "the last line does not end with a newline"),
    ],
)
def test_a_broken_rule_is_named_with_its_line(old, new, line, rule, tmp_path):
    assert TEXT.count(old) == 1
    found, message = refusal(TEXT.replace(old, new), tmp_path / "model")
    assert rule in message
    assert found == line


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_changed_bytes_are_refused_or_give_a_whole_model(data, tmp_path):
    damaged = bytearray(TEXT)
    for _ in range(data.draw(st.integers(1, 3))):
        damaged[data.draw(st.integers(0, len(TEXT) - 1))] = data.draw(st.integers(0, 255))
    (tmp_path / "model").write_bytes(damaged)
    try:
        loaded = load_model(tmp_path / "model")
    except FormatError:
        return
    assert np.isfinite(loaded.predict(np.ones((1, loaded.n_features_in_)))).all()
