"""MeasureSVC with a function of counts: the risk against all labellings, the named measures, and what is refused."""

import pickle
from itertools import product

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import scale
from sklearn.utils.estimator_checks import estimator_checks_generator

from widemargin import MeasureSVC, cross_validate_file, save_model, write_svmlight
from widemargin.evaluation.orders import measure_facts, measure_lines
from widemargin.evaluation.predictions import Prediction
from widemargin.problems import measure_of_counts
from widemargin.problems.measures import MeasureRisk


def balanced_error(fn, fp, n_positive, n_negative):
    """The mean of the error rates of the two classes."""
    return 0.5 * (fn / n_positive + fp / n_negative)


def f1_loss(fn, fp, n_positive, n_negative):
    return (fn + fp) / (2.0 * n_positive - fn + fp)


def error(fn, fp, n_positive, n_negative):
    return (fn + fp) / (n_positive + n_negative)


def prbep(fn, fp, n_positive, n_negative):
    return np.where(fn == fp, fn / n_positive, -np.inf)


@pytest.fixture(scope="module")
def cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return scale(X)[:200], y[:200]


@pytest.mark.filterwarnings("ignore::widemargin.errors.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore::sklearn.utils.estimator_checks.SkipTestWarning")
@pytest.mark.parametrize(
    ("estimator", "check"),
    list(estimator_checks_generator(MeasureSVC(measure=balanced_error))),
    ids=lambda part: getattr(getattr(part, "func", None), "__name__", "MeasureSVC"),
)
def test_scikit_learns_contract_is_kept(estimator, check):
    if check.func.__name__ == "check_array_api_input":
        pytest.skip("array API input is not offered: scikit-learn issue 22352, until 2.0")
    check(estimator)


@pytest.mark.parametrize("pairs_in_a_block", [1, 13, 1 << 20])
@pytest.mark.parametrize("loss", [balanced_error, f1_loss, prbep])
def test_the_risk_is_the_largest_over_all_labellings(loss, pairs_in_a_block, monkeypatch, rng):
    monkeypatch.setattr(measure_of_counts, "_PAIRS_IN_A_BLOCK", pairs_in_a_block)
    labellings = np.array(list(product([-1.0, 1.0], repeat=9)))
    for _ in range(20):
        y = np.where(np.arange(9) < rng.integers(1, 9), 1.0, -1.0)
        fn, fp = ((labellings < 0) & (y > 0)).sum(axis=1), ((labellings > 0) & (y < 0)).sum(axis=1)
        losses = loss(fn, fp, np.sum(y > 0), np.sum(y < 0))

        def worst(s, y=y, losses=losses):
            return 3.0 * max(0.0, np.max(losses + (labellings - y) @ s / 9))

        s, other = rng.standard_normal((2, 9))
        value, c = MeasureRisk(loss, y, 3.0).subgradient(s)
        assert value == pytest.approx(worst(s), abs=1e-12)
        assert worst(other) >= value + c @ (other - s) - 1e-12


@pytest.mark.parametrize(("name", "loss"), [("f1", f1_loss), ("error", error), ("prbep", prbep)])
def test_a_named_measure_and_its_function_give_the_same_model(name, loss, cancer):
    X, y = cancer
    named, model = (MeasureSVC(measure, C=10.0, tol=1e-6).fit(X, y) for measure in (name, loss))
    assert model.gap_ <= 1e-6
    assert model.objective_ == pytest.approx(named.objective_, rel=2e-6)
    np.testing.assert_array_equal(model.predict(X), named.predict(X))


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_parameters_of_the_model_apply_to_a_function_too(fit_intercept, cancer):
    X, y = cancer
    model = clone(MeasureSVC(balanced_error, C=10.0, fit_intercept=fit_intercept, intercept_scaling=2.0)).fit(X, y)
    risk = MeasureRisk(balanced_error, np.where(y == 1, 1.0, -1.0), 10.0)
    w = np.append(model.coef_, model.intercept_ / 2.0) if fit_intercept else model.coef_.ravel()
    assert model.objective_ == pytest.approx(0.5 * w @ w + risk.value(model.decision_function(X)), rel=1e-9)
    assert (np.asarray(model.intercept_).any()) == fit_intercept
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(X), model.predict(X))


@pytest.mark.parametrize(
    ("loss", "words"),
    [
        (lambda fn, fp, p, q: np.zeros(3), r"one loss for each pair of counts, shape \(\d+, \d+\); got shape \(3,\)"),
        (lambda fn, fp, p, q: fn * np.nan, "must return finite losses"),
        (lambda fn, fp, p, q: np.inf, "must return finite losses"),
    ],
)
def test_a_function_that_returns_no_losses_is_refused(loss, words, cancer):
    with pytest.raises(ValueError, match=words):
        MeasureSVC(loss).fit(*cancer)


@pytest.mark.parametrize("file_format", ["widemargin", "svmlight"])
def test_a_model_with_a_function_cannot_be_saved(file_format, cancer, tmp_path):
    model = MeasureSVC(balanced_error).fit(*cancer)
    with pytest.raises(TypeError, match=r"measure=<function balanced_error .* is a Python function.*Pickle it"):
        save_model(model, tmp_path / "model", format=file_format)
    assert not (tmp_path / "model").exists()


def test_the_value_of_a_function_is_its_loss_at_the_predictions(cancer):
    X, y = cancer
    model = MeasureSVC(balanced_error, C=10.0).fit(X, y)
    labels = model.predict(X)
    facts = measure_facts(model, y, Prediction(labels, model.decision_function(X)))
    expected = 0.5 * (np.mean(labels[y == 1] == 0) + np.mean(labels[y == 0] == 1))
    assert facts["measure"] == "balanced_error"
    assert facts["value"] == pytest.approx(expected)
    assert measure_lines(facts)[0] == f"balanced_error = {expected:g} (the measure of the model)"


def test_cross_validation_of_a_file_names_the_function(tmp_path, cancer):
    write_svmlight(tmp_path / "rows", *cancer)
    validated = cross_validate_file(MeasureSVC(balanced_error, C=10.0), tmp_path / "rows", n_folds=2)
    assert validated.description == "MeasureSVC, balanced_error, linear"
    assert 0.0 <= validated.measures["value"] < 0.2


@pytest.mark.parametrize("kernel", [{}, {"kernel": "rbf", "basis": 10}], ids=["linear", "basis"])
def test_a_model_whose_weights_are_all_zero_says_so(kernel):
    random = np.random.default_rng(0)
    X, y = random.standard_normal((2000, 2)), random.random(2000) < 0.03  # labels that have nothing to do with X
    with pytest.warns(UserWarning, match="All weights are zero: the classes overlap so much"):
        model = MeasureSVC("f1", C=10.0, **kernel).fit(X, y)
    assert not model.predict(X).any()
    assert model.status_ == "converged"
