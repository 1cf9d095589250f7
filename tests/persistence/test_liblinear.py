"""LIBLINEAR predicts from our text as we do, we from theirs as it does; broken text is refused by line."""

import math

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from liblinear import liblinearutil
from scipy.sparse import csr_matrix

from widemargin import FormatError, LinearOneClassSVM, LinearSVC, LinearSVR
from widemargin.persistence.model_file import load_model, save_model

CLASSIFIERS = {
    "L2R_L2LOSS_SVC_DUAL": 1,
    "L2R_L2LOSS_SVC": 2,
    "L2R_L1LOSS_SVC_DUAL": 3,
    "MCSVM_CS": 4,
    "L1R_L2LOSS_SVC": 5,
}
REGRESSORS = {"L2R_L2LOSS_SVR": 11, "L2R_L2LOSS_SVR_DUAL": 12, "L2R_L1LOSS_SVR_DUAL": 13}
LABELS = {"two": [-1, 1], "two, smaller first": [3, 7], "three": [4, -2, 9], "four": [0, 3, 2, 1]}


@pytest.fixture(scope="module")
def X():
    return np.random.default_rng(11).normal(size=(80, 5))


def labelled(X, labels):
    """Return noisy classes of rows, the first row of the first label, since LIBLINEAR orders labels so."""
    random = np.random.default_rng(12)
    y = np.array(labels)[(X @ random.normal(size=(5, len(labels))) + random.normal(size=(80, len(labels)))).argmax(1)]
    y[: len(labels)] = labels
    return y


def theirs_of(y, X, path, options):
    model = liblinearutil.train(y.astype(float), csr_matrix(X), f"-q {options}")
    liblinearutil.save_model(str(path), model)
    return model


def predicted_by_liblinear(model, X, y=()):
    """Return LIBLINEAR's predictions and scores, one column per class."""
    labels, _, scores = liblinearutil.predict(y, csr_matrix(X), model, "-q")
    return np.array(labels), np.array(scores)


@pytest.mark.parametrize("bias", [-1, 0, 1, 2.5])
@pytest.mark.parametrize("labels", LABELS.values(), ids=LABELS)
@pytest.mark.parametrize("solver", CLASSIFIERS)
def test_we_predict_from_their_classifiers_as_liblinear_does(solver, labels, bias, X, tmp_path):
    theirs = theirs_of(labelled(X, labels), X, tmp_path / "model", f"-s {CLASSIFIERS[solver]} -B {bias}")
    expected, scores = predicted_by_liblinear(theirs, X)
    loaded = load_model(tmp_path / "model")
    # Crammer and Singer's optimum has rows with two best classes; LIBLINEAR's random order decides how near they come.
    two_best = np.sort(scores, axis=1)[:, -2:] if len(labels) > 2 else np.tile([0.0, 1.0], (len(X), 1))
    is_clear = np.diff(two_best).ravel() > 1e-9
    np.testing.assert_array_equal(loaded.predict(X)[is_clear], expected[is_clear])
    assert loaded.classes_.tolist() == sorted(labels)
    if len(labels) > 2:
        expected = scores[:, np.argsort(theirs.get_labels())]
        np.testing.assert_allclose(loaded.decision_function(X), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(("bias", "fit_intercept", "scaling"), [(-1, False, 1.0), (0, False, 1.0), (2.5, True, 2.5)])
def test_their_bias_is_our_intercept_scaling(bias, fit_intercept, scaling, X, tmp_path):
    theirs_of(labelled(X, [1, 2]), X, tmp_path / "model", f"-s 1 -B {bias}")
    loaded = load_model(tmp_path / "model")
    assert (loaded.fit_intercept, loaded.intercept_scaling) == (fit_intercept, scaling)
    assert np.ndim(loaded.intercept_) == int(fit_intercept)


@pytest.mark.parametrize("bias", [-1, 1, 2.5])
@pytest.mark.parametrize("solver", REGRESSORS)
def test_we_predict_from_their_regressors_as_liblinear_does(solver, bias, X, tmp_path):
    target = X @ np.arange(5.0) + 2.0
    expected, _ = predicted_by_liblinear(
        theirs_of(target, X, tmp_path / "model", f"-s {REGRESSORS[solver]} -B {bias}"), X
    )
    np.testing.assert_allclose(load_model(tmp_path / "model").predict(X), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"loss": "hinge", "intercept_scaling": 3.3},
        {"fit_intercept": False},
        {"multi_class": "crammer_singer"},
        {"dual": False},
    ],
    ids=str,
)
@pytest.mark.parametrize("labels", LABELS.values(), ids=LABELS)
def test_liblinear_predicts_from_our_classifiers_as_we_do(labels, settings, dtype, X, tmp_path):
    model = LinearSVC(random_state=0, max_iter=100_000, **settings).fit(X.astype(dtype), labelled(X, labels))
    save_model(model, tmp_path / "model", format="liblinear")
    predictions, scores = predicted_by_liblinear(liblinearutil.load_model(str(tmp_path / "model")), X)
    np.testing.assert_array_equal(predictions, model.predict(X))
    halves = (
        len(labels) == 2 and "multi_class" in settings
    )  # its weights are those of the first class, ours the difference
    np.testing.assert_allclose(scores.squeeze() * (2.0 if halves else 1.0), model.decision_function(X), rtol=1e-10)


@pytest.mark.parametrize("settings", [{}, {"fit_intercept": False}, {"loss": "squared_epsilon_insensitive"}], ids=str)
def test_liblinear_predicts_from_our_regressors_as_we_do(settings, X, tmp_path):
    model = LinearSVR(random_state=0, intercept_scaling=7.0, **settings).fit(X, X @ np.arange(5.0) + 2.0)
    save_model(model, tmp_path / "model", format="liblinear")
    predictions, _ = predicted_by_liblinear(liblinearutil.load_model(str(tmp_path / "model")), X)
    np.testing.assert_allclose(predictions, model.predict(X), rtol=1e-12)


@pytest.mark.parametrize("labels", LABELS.values(), ids=LABELS)
def test_a_row_without_a_winner_goes_to_the_same_class_in_liblinear(labels, X, tmp_path):
    model = LinearSVC(fit_intercept=False, random_state=0).fit(X, labelled(X, labels))
    save_model(model, tmp_path / "model", format="liblinear")
    empty = csr_matrix((1, 5))
    predictions, _ = predicted_by_liblinear(liblinearutil.load_model(str(tmp_path / "model")), empty)
    np.testing.assert_array_equal(predictions, model.predict(empty))


@pytest.mark.parametrize("scaling", [1.0, 0.1, 3.3, 17.0, math.pi, 1e-3])
@pytest.mark.parametrize("labels", LABELS.values(), ids=LABELS)
def test_weights_and_intercepts_come_back_to_the_bit(labels, scaling, X, tmp_path):
    model = LinearSVC(random_state=0, intercept_scaling=scaling, max_iter=100_000).fit(X, labelled(X, labels))
    save_model(model, tmp_path / "model", format="liblinear")
    loaded = load_model(tmp_path / "model")
    np.testing.assert_array_equal(loaded.coef_, model.coef_)
    np.testing.assert_array_equal(loaded.intercept_, model.intercept_)
    assert (loaded.intercept_scaling, loaded.classes_.tolist()) == (scaling, model.classes_.tolist())


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(weight=st.floats(-1e100, 1e100), scaling=st.floats(1e-100, 1e100))
def test_any_intercept_that_a_fit_can_make_comes_back_to_the_bit(weight, scaling, tmp_path):
    model = LinearSVR(intercept_scaling=scaling)
    model.coef_, model.intercept_, model.n_features_in_ = np.array([weight]), scaling * np.array([weight]), 1
    save_model(model, tmp_path / "model", format="liblinear")
    loaded = load_model(tmp_path / "model")
    assert loaded.coef_.tobytes() == model.coef_.tobytes()
    assert loaded.intercept_.tobytes() == model.intercept_.tobytes()


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(intercept=st.floats(-1e100, 1e100), scaling=st.floats(1e-100, 1e100))
def test_any_intercept_without_penalty_comes_back_to_the_bit(intercept, scaling, tmp_path):
    model = LinearSVR(intercept_scaling=scaling, penalize_intercept=False)  # which has nothing to do with the scaling
    model.coef_, model.intercept_, model.n_features_in_ = np.ones(1), np.array([intercept]), 1
    save_model(model, tmp_path / "model", format="liblinear")
    assert load_model(tmp_path / "model").intercept_.tobytes() == model.intercept_.tobytes()


@pytest.mark.parametrize("solver", [*CLASSIFIERS, *REGRESSORS])
def test_their_text_is_written_again_with_the_same_solver(solver, X, tmp_path):
    number = {**CLASSIFIERS, **REGRESSORS}[solver]
    theirs_of(labelled(X, [1, 2, 3]), X, tmp_path / "model", f"-s {number} -B 1")
    save_model(load_model(tmp_path / "model"), tmp_path / "again", format="liblinear")
    assert (tmp_path / "again").read_text().splitlines()[0] == f"solver_type {solver}"
    np.testing.assert_array_equal(load_model(tmp_path / "again").predict(X), load_model(tmp_path / "model").predict(X))


def test_what_the_text_does_not_say_is_absent(X, tmp_path):
    theirs_of(labelled(X, [1, 2]), X, tmp_path / "model", "-s 3 -B 1")
    loaded = load_model(tmp_path / "model")
    fitted = set(vars(loaded)) - set(loaded.get_params())
    assert fitted == {"coef_", "intercept_", "classes_", "n_features_in_", "_class_order"}
    save_model(loaded, tmp_path / "ours", format="liblinear")
    assert set(vars(load_model(tmp_path / "ours"))) == set(vars(loaded))


def test_a_model_can_be_fitted_again_after_the_trip(X, tmp_path):
    y = labelled(X, [1, 2, 3])
    save_model(LinearSVC(loss="hinge", random_state=0).fit(X, y), tmp_path / "model", format="liblinear")
    assert load_model(tmp_path / "model").fit(X, y).gap_ <= 1e-4


def test_a_sparsified_model_is_written_too(X, tmp_path):
    model = LinearSVC(random_state=0).fit(X, labelled(X, [1, 2, 3]))
    save_model(model, tmp_path / "dense", format="liblinear")
    save_model(model.sparsify(), tmp_path / "sparse", format="liblinear")
    assert (tmp_path / "dense").read_bytes() == (tmp_path / "sparse").read_bytes()


def test_whole_floats_are_labels_for_liblinear(X, tmp_path):
    model = LinearSVC(random_state=0).fit(X, labelled(X, [-1.0, 1.0]))
    save_model(model, tmp_path / "model", format="liblinear")
    assert "label 1 -1" in (tmp_path / "model").read_text().splitlines()


@pytest.mark.parametrize("labels", [["a", "b"], [False, True], [0, 2**31]], ids=str)
def test_labels_that_liblinear_cannot_hold_are_refused(labels, X, tmp_path):
    model = LinearSVC(random_state=0).fit(X, labelled(X, labels))
    with pytest.raises(TypeError, match="LIBLINEAR's labels are 32-bit integers, got classes_"):
        save_model(model, tmp_path / "model", format="liblinear")
    assert not list(tmp_path.iterdir())


def test_a_loss_that_liblinear_lacks_is_refused(X, tmp_path):
    model = LinearSVC(random_state=0, loss="hinge").fit(X, labelled(X, [1, 2])).set_params(dual=False)
    with pytest.raises(ValueError, match="LIBLINEAR has no solver for penalty='l2', loss='hinge', dual=False"):
        save_model(model, tmp_path / "model", format="liblinear")


def test_an_intercept_that_no_finite_weight_gives_is_refused(tmp_path):
    model = LinearSVR(intercept_scaling=1e-300)
    model.coef_, model.intercept_, model.n_features_in_ = np.ones(1), np.array([1e300]), 1
    with pytest.raises(ValueError, match="intercept_ / intercept_scaling must be finite"):
        save_model(model, tmp_path / "model", format="liblinear")


# Broken text

TEXT = b"""solver_type L2R_L2LOSS_SVC
nr_class 3
label 7 5 6
nr_feature 2
bias 1
w
0.5 1 -2 
1e-3 .5 +4. 
-1 0 1 
"""  # noqa: W291
REGRESSION = b"solver_type L2R_L2LOSS_SVR\nnr_class 2\nnr_feature 1\nbias -1\nw\n0.5\n"
ONE_CLASS = b"solver_type ONECLASS_SVM\nnr_class 2\nnr_feature 2\nbias -1\nrho 0.25\nw\n0.5\n1\n"


def refusal(content, path):
    """Return the line and rule with which a file is refused."""
    path.write_bytes(content)
    with pytest.raises(FormatError, match=str(path)) as refused:
        load_model(path)
    return refused.value.line, refused.value.rule


def test_text_is_read_as_written(tmp_path):
    for newline in (b"\n", b"\r\n"):
        (tmp_path / "model").write_bytes(TEXT.replace(b"\n", newline))
        loaded = load_model(tmp_path / "model")
        np.testing.assert_array_equal(loaded.coef_, [[1.0, 0.5], [-2.0, 4.0], [0.5, 1e-3]])
        np.testing.assert_array_equal(loaded.intercept_, [0.0, 1.0, -1.0])
        assert loaded.classes_.tolist() == [5, 6, 7]


@pytest.mark.parametrize("text", [TEXT, REGRESSION, ONE_CLASS])
def test_text_cut_short_anywhere_is_refused(text, tmp_path):
    for length in range(len(text)):
        refusal(text[:length], tmp_path / "model")


@pytest.mark.parametrize(
    ("old", "new", "line", "rule"),
    [
        (b"L2R_L2LOSS_SVC", b"ONECLASS_SVM", 2, "nr_class must be 2 for regression and for one class, got 3"),
        (b"L2R_L2LOSS_SVC", b"L3R\xff", 1, r"solver_type must be one of LIBLINEAR's, got 'L3R\\xff'"),
        (b"L2R_L2LOSS_SVC", b"", 1, "solver_type must have 1 values, got 0"),
        (b"nr_class 3", b"nr_class three", 2, "nr_class must be an integer from 2 to 2147483647, got 'three'"),
        (b"nr_class 3", b"nr_class 1", 2, "nr_class must be an integer from 2"),
        (b"nr_class 3", b"nr_class 2147483647", 3, "label must have 2147483647 values, got 3"),
        (b"nr_class 3", b"nr_class " + b"9" * 5000, 2, "nr_class must be an integer from 2"),
        (b"nr_class 3\n", b"", 5, "the header lacks nr_class"),
        (b"label 7 5 6", b"label 7 5 7", 3, "labels must be distinct"),
        (b"label 7 5 6", b"label 7 5 6.5", 3, "labels must be 32-bit integers, got '6.5'"),
        (b"label 7 5 6", b"label 7 5 2147483648", 3, "labels must be 32-bit integers"),
        (b"label 7 5 6", b"label 7 5", 3, "label must have 3 values, got 2"),
        (b"label 7 5 6\n", b"", 5, "the header lacks label"),
        (b"nr_feature 2", b"nr_feature 2147483647", 4, "require 2147483648 lines of weights, the file has 3"),
        (b"nr_feature 2", b"nr_feature 0", 4, "nr_feature must be an integer from 1"),
        (b"nr_feature 2", b"nr_feature -5", 4, "nr_feature must be an integer from 1"),
        (b"bias 1", b"bias -1", 4, "require 2 lines of weights, the file has 3"),
        (b"bias 1", b"bias nan", 5, "'nan' is not a finite number"),
        (b"bias 1", b"bias 1 2", 5, "bias must have 1 values, got 2"),
        (b"bias 1\n", b"bias 1\nbias 1\n", 6, "bias is given twice"),
        (b"bias 1\n", b"bias 1\nrho 2\n", 6, "rho belongs to ONECLASS_SVM"),
        (b"bias 1\n", b"bias 1\n\n", 6, "'' is not a line of a LIBLINEAR header"),
        (b"bias 1\n", b"bias 1\ngamma 1\n", 6, "'gamma 1' is not a line of a LIBLINEAR header"),
        (b"w\n", b"w 0.5\n", 6, "the weights must begin on the next line"),
        (b"w\n", b"", 6, "is not a line of a LIBLINEAR header"),
        (b"0.5 1 -2", b"0.5 1", 7, "the line must hold 3 numbers, got 2"),
        (b"0.5 1 -2", b"0.5 1 -2 3", 7, "the line must hold 3 numbers, got 4"),
        (b"1e-3", b"1e999", 8, "'1e999' is not a finite number"),
        (b"1e-3", b"inf", 8, "'inf' is not a finite number"),
        (b"1e-3", b"0x1p3", 8, "'0x1p3' is not a finite number"),
        (b"1e-3", b"1_0", 8, "'1_0' is not a finite number"),
        (b"-1 0 1 \n", b"-1 0 1 \n\n", 4, "require 3 lines of weights, the file has 4"),
        (b"-1 0 1 \n", b"-1 0 1 ", 9, "the last line does not end with a newline"),
    ],
)
def test_a_broken_rule_is_named_with_its_line(old, new, line, rule, tmp_path):
    assert TEXT.count(old) == 1
    found, message = refusal(TEXT.replace(old, new), tmp_path / "model")
    assert rule in message
    assert found == line


@pytest.mark.parametrize(
    ("old", "new", "line", "rule"),
    [
        (b"nr_class 2\n", b"nr_class 3\n", 2, "nr_class must be 2 for regression and for one class, got 3"),
        (b"nr_class 2\n", b"nr_class 2\nlabel 1 2\n", 3, "a model for regression or of one class has no labels"),
        (b"bias -1\nw\n0.5", b"bias 1e300\nw\n0.5\n1e300", 4, "bias times its weight is not finite"),
    ],
)
def test_a_broken_rule_of_regression_is_named_with_its_line(old, new, line, rule, tmp_path):
    found, message = refusal(REGRESSION.replace(old, new), tmp_path / "model")
    assert rule in message
    assert found == line


def test_many_labels_and_many_empty_lines_take_no_memory(tmp_path):
    n = 100_000  # n lines of n weights would take 80 GB
    labels = " ".join(map(str, range(n)))
    header = f"solver_type MCSVM_CS\nnr_class {n}\nlabel {labels}\nnr_feature {n}\nbias -1\nw\n"
    assert refusal(header.encode() + b"\n" * n, tmp_path / "model") == (
        7,
        "the line must hold 100000 numbers, got 0.",
    )


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data(), text=st.sampled_from([TEXT, REGRESSION]))
def test_changed_bytes_are_refused_or_give_a_whole_model(data, text, tmp_path):
    damaged = bytearray(text)
    for _ in range(data.draw(st.integers(1, 3))):
        damaged[data.draw(st.integers(0, len(text) - 1))] = data.draw(st.integers(0, 255))
    (tmp_path / "model").write_bytes(damaged)
    try:
        loaded = load_model(tmp_path / "model")
    except FormatError:
        return
    assert np.isfinite(loaded.predict(np.ones((1, loaded.n_features_in_)))).all()


@pytest.mark.parametrize("nu", [0.1, 0.5])
def test_we_predict_from_their_one_class_models_as_liblinear_does(nu, X, tmp_path):
    rows = X + 1.0
    theirs = theirs_of(np.ones(len(rows)), rows, tmp_path / "model", f"-s 21 -n {nu}")
    expected, scores = predicted_by_liblinear(theirs, rows)
    loaded = load_model(tmp_path / "model")
    assert type(loaded) is LinearOneClassSVM
    np.testing.assert_allclose(loaded.decision_function(rows), scores[:, 0], rtol=1e-9, atol=1e-9 * theirs.rho)
    inside = scores[:, 0] != 0.0  # liblinear calls rows on the boundary outliers
    np.testing.assert_array_equal(loaded.predict(rows)[inside], expected[inside])


@pytest.mark.parametrize("nu", [0.1, 0.5])
def test_liblinear_predicts_from_our_one_class_models_as_we_do(nu, X, tmp_path):
    rows = X + 1.0
    ours = LinearOneClassSVM(nu=nu).fit(rows)
    save_model(ours, tmp_path / "model", format="liblinear")
    expected, scores = predicted_by_liblinear(liblinearutil.load_model(str(tmp_path / "model")), rows)
    decision = ours.decision_function(rows)
    np.testing.assert_allclose(decision, scores[:, 0], rtol=1e-9, atol=1e-9 * ours.offset_[0])
    away = np.abs(decision) > 1e-9 * ours.offset_[0]
    np.testing.assert_array_equal(ours.predict(rows)[away], expected[away])
    loaded = load_model(tmp_path / "model")
    np.testing.assert_array_equal(loaded.coef_, ours.coef_)
    np.testing.assert_array_equal(loaded.offset_, ours.offset_)
    np.testing.assert_array_equal(loaded.decision_function(rows), decision)


@pytest.mark.parametrize(
    ("old", "new", "line", "rule"),
    [
        (b"rho 0.25\n", b"", 5, "the header lacks rho"),
        (b"rho 0.25", b"rho nan", 5, "'nan' is not a finite number"),
        (
            b"bias -1\nrho 0.25\nw\n0.5\n",
            b"bias 1\nrho 0.25\nw\n0.5\n2\n",
            4,
            "bias must be negative in a model of ONE",
        ),
        (b"nr_class 2\n", b"nr_class 2\nlabel 1 -1\n", 3, "a model for regression or of one class has no labels"),
    ],
)
def test_a_broken_rule_of_one_class_is_named_with_its_line(old, new, line, rule, tmp_path):
    (tmp_path / "whole").write_bytes(ONE_CLASS)
    assert load_model(tmp_path / "whole").predict([[1.0, 0.0], [0.0, 0.1]]).tolist() == [1, -1]
    assert ONE_CLASS.count(old) == 1
    found, message = refusal(ONE_CLASS.replace(old, new), tmp_path / "model")
    assert rule in message
    assert found == line
