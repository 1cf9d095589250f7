"""Kernel machines in SVM-light's text: read to the bit, as the original writes them, and broken text by line."""

import re

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone

from widemargin import (
    SVC,
    SVR,
    FormatError,
    LinearSVC,
    MeasureSVC,
    NuSVC,
    NuSVR,
    RankSVM,
    ROCAreaSVC,
    TransductiveSVC,
    load_model,
    save_model,
)

KERNELS = [
    {"kernel": "rbf", "gamma": 0.37},
    {"kernel": "poly", "gamma": 0.5, "coef0": 1.5, "degree": 2},
    {"kernel": "sigmoid", "gamma": 0.01, "coef0": -0.25},
    {"kernel": "linear"},
]
TEXT = """SVM-light Version V6.20
1 # kernel type
2 # kernel parameter -d{space}
1 # kernel parameter -g{space}
0.5 # kernel parameter -s{space}
3 # kernel parameter -r{space}
empty# kernel parameter -u{space}
3 # highest feature index{space}
9 # number of training documents{space}
4 # number of support vectors plus 1{space}
0.25 # threshold b, each following line is a SV (starting with alpha*y)
0.5 1:1 3:-2 #
-0.75 1:4 2:0.5 #
0.25 3:2 #
""".format(space=" ")


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(5)
    X = rng.standard_normal((60, 4))
    X[rng.random(X.shape) < 0.3] = 0.0
    return X, X @ [1.0, -2.0, 0.5, 0.0] + 0.3 * rng.standard_normal(60)


def fit(estimator, X, target):
    is_regression = estimator in (SVR, NuSVR)
    return lambda **options: estimator(**options).fit(X, target if is_regression else np.where(target > 0, 7, 3))


@pytest.mark.parametrize("make", [np.asarray, csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("options", KERNELS, ids=lambda options: options["kernel"])
@pytest.mark.parametrize("estimator", [SVC, NuSVC, SVR, NuSVR, TransductiveSVC])
def test_a_loaded_machine_predicts_the_same_to_the_bit(estimator, options, make, rows, tmp_path):
    X, target = rows
    X = make(X)
    model = fit(estimator, X, target)(**options)
    save_model(model, tmp_path / "model", format="svmlight")
    loaded = load_model(tmp_path / "model")
    assert type(loaded) is estimator
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    if estimator in (SVC, NuSVC, TransductiveSVC):
        np.testing.assert_array_equal(loaded.decision_function(X), model.decision_function(X))
        np.testing.assert_array_equal(loaded.classes_, [3, 7])
    save_model(loaded, tmp_path / "again", format="svmlight")
    np.testing.assert_array_equal(load_model(tmp_path / "again").predict(X), model.predict(X))


def test_scores_follow_from_the_text(tmp_path):
    (tmp_path / "model").write_text(TEXT)
    X = np.array([[1.0, 2.0, 3.0], [0.0, 0.0, 0.0]])
    vectors, alpha = np.array([[1.0, 0.0, -2.0], [4.0, 0.5, 0.0], [0.0, 0.0, 2.0]]), np.array([0.5, -0.75, 0.25])
    wanted = (0.5 * X @ vectors.T + 3.0) ** 2 @ alpha - 0.25
    model = load_model(tmp_path / "model")
    np.testing.assert_allclose(model.decision_function(csr_array(X)), wanted, rtol=1e-13)
    np.testing.assert_array_equal(model.classes_, [-1, 1])
    regression = load_model(tmp_path / "model", task="regression")
    assert type(regression) is SVR
    np.testing.assert_allclose(regression.predict(csr_array(X)), wanted, rtol=1e-13)


@pytest.mark.parametrize(
    ("old", "new", "line", "rule"),
    [
        ("2 # kernel parameter -d", "2.5 # kernel parameter -d", 3, "-d must be a whole number from 0, got 2.5"),
        ("0.5 # kernel parameter -s", "-1 # kernel parameter -s", 3, "-s must not be negative here, got -1"),
        ("4 # number of support", "5 # number of support", 10, "requires 4 lines, the file has 3"),
        ("3 # highest", "2 # highest", 8, "highest feature index is 2, but the file has a feature 3"),
        ("empty#", "LinearSVC -1 1#", 7, "a LinearSVC is linear, and this model has the kernel poly"),
        ("empty#", "SVC -1 1 crowded#", 7, "must not follow the name, labels and measure"),
        ("0.25 3:2 #", "0.25 3:x #", 14, "value must be a number"),
    ],
)
def test_a_broken_rule_is_named_with_its_line(old, new, line, rule, tmp_path):
    assert old in TEXT
    (tmp_path / "model").write_text(TEXT.replace(old, new))
    with pytest.raises(FormatError, match=re.escape(rule)) as caught:
        load_model(tmp_path / "model")
    assert caught.value.line == line


def test_a_small_file_claims_little_memory(tmp_path):
    text = TEXT.replace("3 # highest", "1000000 # highest").replace("empty#", "SVC -1 1 dense#")
    (tmp_path / "model").write_text(text)
    with pytest.raises(FormatError, match="a dense array of 3 x 1000000 is larger than the file can show"):
        load_model(tmp_path / "model")


def test_what_has_no_place_is_refused(rows, tmp_path):
    X, target = rows
    with pytest.raises(TypeError, match=r"one weight vector, and no place for 3 classes.*libsvm"):
        save_model(SVC().fit(X, np.digitize(target, [-1, 1])), tmp_path / "model", format="svmlight")
    precomputed = SVC(kernel="precomputed").fit(X @ X.T, target > 0)
    with pytest.raises(TypeError, match="kernels linear, poly, rbf, sigmoid, got kernel='precomputed'"):
        save_model(precomputed, tmp_path / "model", format="svmlight")
    with pytest.raises(TypeError, match="coefficients of basis points"):
        save_model(SVC(basis=5).fit(X, target > 0), tmp_path / "model", format="svmlight")


def test_a_linear_text_of_support_vectors_is_still_a_linear_model(tmp_path):
    (tmp_path / "model").write_text(TEXT.replace("1 # kernel type", "0 # kernel type"))
    assert type(load_model(tmp_path / "model")) is LinearSVC


@pytest.mark.parametrize("make", [np.asarray, csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("options", KERNELS[:3], ids=lambda options: options["kernel"])
@pytest.mark.parametrize(
    "model", [RankSVM(), ROCAreaSVC(), MeasureSVC("prbep")], ids=lambda model: type(model).__name__
)
def test_a_cutting_plane_model_with_a_kernel_comes_back_with_its_points(model, options, make, rows, tmp_path):
    X, target = rows
    X = make(X)
    fitted = clone(model).set_params(basis=X[:8], C=10.0, **options)
    if options["kernel"] == "sigmoid":
        fitted.set_params(coef0=0.25)  # K(b, b) of a basis point is not negative
    fitted.fit(X, target if type(model) is RankSVM else np.where(target > 0, 7, 3))
    save_model(fitted, tmp_path / "model", format="svmlight")
    loaded = load_model(tmp_path / "model")
    assert type(loaded) is type(model)
    np.testing.assert_array_equal(loaded.decision_function(X), fitted.decision_function(X))
    np.testing.assert_array_equal(loaded.predict(X), fitted.predict(X))
    again = load_model(tmp_path / "model").fit(X, target if type(model) is RankSVM else np.where(target > 0, 7, 3))
    np.testing.assert_array_equal(again.basis_.shape, fitted.basis_.shape)


def test_a_text_of_another_program_can_be_a_ranking(tmp_path):
    (tmp_path / "model").write_text(TEXT)
    Z = np.random.default_rng(0).standard_normal((5, 3))
    ranking = load_model(tmp_path / "model", task="rank")
    assert type(ranking) is RankSVM
    np.testing.assert_allclose(ranking.predict(Z), load_model(tmp_path / "model").decision_function(Z), rtol=1e-12)


@pytest.mark.parametrize("spoil", ["basis_", "basis_coef_"])
def test_points_that_are_not_finite_are_not_written(spoil, rows, tmp_path):
    X, target = rows
    model = RankSVM(kernel="rbf", basis=X[:8]).fit(X, target)
    getattr(model, spoil)[0, 0] = np.inf
    with pytest.raises(ValueError, match=f"{spoil} must be finite"):
        save_model(model, tmp_path / "model", format="svmlight")
