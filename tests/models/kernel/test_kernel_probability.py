"""Probabilities of kernel machines: from cross-validated decisions, as LIBSVM has them, and reproducible."""

import pickle

import numpy as np
import pytest
import sklearn.svm
from libsvm.svmutil import svm_predict, svm_train
from scipy.sparse import csr_array
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import StratifiedKFold, cross_val_predict

from widemargin import SVC, SVR, NuSVC, NuSVR, OneClassSVM
from widemargin.models.calibration import density_marks, fit_sigmoid, laplace_scale, sigmoid
from widemargin.models.kernel.training_rows import folds_of


@pytest.fixture
def rows(rng):
    X = rng.standard_normal((300, 4))
    return X, X[:, 0] + X[:, 1] ** 2 + 0.7 * rng.standard_normal(300)


@pytest.mark.parametrize("name", ["SVC", "NuSVC"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_sigmoids_are_those_of_decisions_by_machines_that_did_not_see_the_rows(name, n_classes, rows):
    X, y = rows
    label = np.digitize(y, np.quantile(y, np.arange(1, n_classes) / n_classes))
    nu = {"nu": 0.5} if name == "NuSVC" else {}
    model = {"SVC": SVC, "NuSVC": NuSVC}[name](gamma=0.3, tol=1e-6, probability="libsvm", random_state=7, **nu).fit(
        X, label
    )
    decisions = np.empty((300, len(model.intercept_)))
    for fold in folds_of(np.arange(300), label, 7):
        seen = np.setdiff1d(np.arange(300), fold)
        peer = getattr(sklearn.svm, name)(gamma=0.3, tol=1e-6, decision_function_shape="ovo", **nu)
        values = peer.fit(X[seen], label[seen]).decision_function(X[fold])
        decisions[fold] = -values[:, None] if n_classes == 2 else values
    pairs = list(zip(*np.triu_indices(n_classes, 1), strict=True))
    for k, (i, j) in enumerate(pairs):
        both = np.isin(label, (i, j))
        A, B = fit_sigmoid(decisions[both, k], np.where(label[both] == i, 1, -1))
        assert model.probA_[k] == pytest.approx(A, rel=1e-3)
        assert model.probB_[k] == pytest.approx(B, abs=1e-3)


def test_folds_share_out_each_class_evenly_and_keep_all_rows(rng):
    label = rng.permutation(np.repeat([0, 1, 2], [50, 13, 2]))
    rows = np.flatnonzero(rng.random(65) < 0.9)
    folds = folds_of(rows, label, 0)
    np.testing.assert_array_equal(np.sort(np.concatenate(folds)), rows)
    counts = np.array([np.bincount(label[fold], minlength=3) for fold in folds])
    assert (np.ptp(counts, axis=0) <= 1).all()
    assert not np.array_equal(folds[0], folds_of(rows, label, 1)[0])
    assert len(folds_of(np.arange(3), np.zeros(3), 0)) == 3


@pytest.mark.parametrize("n_classes", [2, 4])
def test_probabilities_are_libsvms_within_the_luck_of_the_folds(n_classes, rows):
    X, y = rows
    label = np.digitize(y, np.quantile(y, np.arange(1, n_classes) / n_classes))
    model = SVC(gamma=0.3, probability="libsvm", random_state=0).fit(X, label)
    peer = svm_train(label.tolist(), X, "-s 0 -t 2 -g 0.3 -c 1 -b 1 -q")
    expected = np.array(svm_predict([], X, peer, "-b 1 -q")[2])[:, np.argsort(peer.get_labels())]
    probabilities = model.predict_proba(X)
    assert np.abs(probabilities - expected).mean() < 0.03
    assert np.abs(probabilities - expected).max() < 0.2
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0, atol=1e-12)
    np.testing.assert_allclose(model.predict_log_proba(X), np.log(probabilities))
    assert np.mean(probabilities.argmax(axis=1) == model.predict(X)) > 0.9


@pytest.mark.parametrize("kernel", ["rbf", "sparse", "precomputed", "callable"])
def test_probabilities_do_not_depend_on_how_the_kernel_is_given(kernel, rows):
    X, y = rows
    label = np.digitize(y, [0.5, 1.5])
    parameters = {"tol": 1e-6, "probability": "libsvm", "random_state": 3}
    expected = SVC(gamma=0.3, **parameters).fit(X, label).predict_proba(X)
    given = {
        "rbf": (SVC(gamma=0.3, n_jobs=2, **parameters), X),
        "sparse": (SVC(gamma=0.3, **parameters), csr_array(X)),
        "precomputed": (SVC(kernel="precomputed", **parameters), rbf_kernel(X, gamma=0.3)),
        "callable": (SVC(kernel=lambda A, B: rbf_kernel(A, B, gamma=0.3), cache_size=0.1, **parameters), X),
    }
    model, rows = given[kernel]
    np.testing.assert_allclose(model.fit(rows, label).predict_proba(rows), expected, atol=1e-4)


def test_the_same_seed_gives_the_same_probabilities_and_another_does_not(rows):
    X, y = rows
    one, same, other = (SVC(probability="libsvm", random_state=seed).fit(X, y > 0.5) for seed in (0, 0, 1))
    assert one.probA_.tobytes() == same.probA_.tobytes() != other.probA_.tobytes()
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(one)).predict_proba(X), one.predict_proba(X))


def test_a_fold_without_a_class_decides_for_the_other():
    X, y = load_iris(return_X_y=True)
    few = np.r_[0:20, 50:51, 100:120]  # the second class has a single row: its fold trains without it
    model = SVC(probability="libsvm", random_state=0).fit(X[few], y[few])
    assert np.isfinite(model.probA_).all()
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)
    assert NuSVC(nu=0.09, probability="libsvm", random_state=0).fit(X[few], y[few]).predict_proba(X).shape == (150, 3)


def test_probabilities_are_there_only_if_asked_for_before_the_fit(rows):
    X, y = rows
    for model in (SVC(), SVC(probability="deprecated"), OneClassSVM(), SVR()):
        fitted = model.fit(X, y > 0.5)
        assert not hasattr(fitted, "predict_proba")
        assert not hasattr(fitted, "predict_interval")
    assert SVC().fit(X, y > 0.5).probA_.size == 0
    for model, method in ((SVC(), "predict_proba"), (OneClassSVM(), "predict_proba"), (SVR(), "predict_interval")):
        fitted = model.fit(X, y > 0.5).set_params(probability=True)
        with pytest.raises(NotFittedError, match=f"{method} is not available when fitted with"):
            getattr(fitted, method)(X)


@pytest.mark.parametrize("model", [SVR(C=5.0, gamma=0.2), NuSVR(C=5.0, gamma=0.2)])
def test_regressions_noise_is_that_of_cross_validation_and_intervals_hold_their_part(model, rng):
    X = rng.uniform(-2, 2, (500, 2))
    y = np.sin(X[:, 0]) + X[:, 1] + rng.laplace(scale=0.3, size=500)
    fitted = model.set_params(tol=1e-6, probability=True, random_state=5).fit(X[:300], y[:300])
    residuals = np.empty(300)
    for fold in folds_of(np.arange(300), np.zeros(300), 5):
        seen = np.setdiff1d(np.arange(300), fold)
        peer = getattr(sklearn.svm, type(model).__name__)(C=5.0, gamma=0.2, tol=1e-6).fit(X[seen], y[seen])
        residuals[fold] = y[fold] - peer.predict(X[fold])
    assert fitted.laplace_scale_ == pytest.approx(laplace_scale(residuals), rel=1e-3)
    for level in (0.5, 0.9):
        interval = fitted.predict_interval(X[300:], level=level)
        np.testing.assert_allclose(interval.mean(axis=1), fitted.predict(X[300:]))
        assert np.mean((interval[:, 0] <= y[300:]) & (y[300:] <= interval[:, 1])) == pytest.approx(level, abs=0.08)
    with pytest.raises(ValueError, match="level must lie between 0 and 1, got 90"):
        fitted.predict_interval(X, level=90)
    with pytest.raises(ValueError, match="at least 2 rows of positive weight"):
        type(model)(probability=True).fit(X[:1], y[:1])


def test_one_class_probabilities_are_libsvms_but_for_support_vectors_whose_sign_is_rounding(rows):
    X = rows[0]
    model = OneClassSVM(nu=0.2, gamma=0.25, tol=1e-8, probability=True).fit(X)
    peer = svm_train([1] * 300, X, "-s 2 -t 2 -g 0.25 -n 0.2 -b 1 -e 1e-6 -q")
    new = 1.5 * X[:100]
    expected = np.array(svm_predict([], new, peer, "-b 1 -q")[2])
    probabilities = model.predict_proba(new)
    np.testing.assert_allclose(probabilities, expected, atol=0.1 + 1e-9)  # one bin
    assert np.abs(probabilities - expected).mean() < 0.01
    np.testing.assert_array_equal(model.density_marks_, density_marks(model.decision_function(X)))
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
    with pytest.raises(ValueError, match="at least 5 values below zero"):
        OneClassSVM(nu=0.01, probability=True).fit(X[:20])


def test_what_scikit_learn_recommends_instead_fits_the_same_sigmoid_to_two_classes(rows):
    X, y = rows
    model, second = SVC(tol=1e-6), y > 0.5
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    calibrated = CalibratedClassifierCV(model, ensemble=False, cv=folds).fit(X, second)
    unseen = cross_val_predict(model, X, second, cv=folds, method="decision_function")
    A, B = fit_sigmoid(-unseen, np.where(second, -1, 1))
    expected = sigmoid(-model.fit(X, second).decision_function(X), A, B)
    np.testing.assert_allclose(calibrated.predict_proba(X)[:, 0], expected, atol=1e-3)
