"""Probabilities from one fit: leave-one-out values are those of refits, and what is fitted to them is calibrated."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.datasets import make_blobs
from sklearn.exceptions import NotFittedError
from sklearn.metrics.pairwise import rbf_kernel

from widemargin import SVC, NuSVC
from widemargin.models.calibration import (
    fit_isotonic,
    fit_rising_sigmoid,
    fit_sigmoid,
    isotonic,
    pseudo_rows_of_pair,
)
from widemargin.models.kernel import out_of_sample, spans
from widemargin.models.kernel.copies import first_copies
from widemargin.models.kernel.out_of_sample import BinaryMachine
from widemargin.models.kernel.spans import without_each
from widemargin.problems.takeover import Candidates, Removed, takeovers

METHODS = ["sigmoid", "isotonic"]


def known_rows(rng, n_rows, n_classes=2):
    """Return X, labels, and their true probabilities: those of a logistic model in x_1."""
    X = rng.uniform(-3.0, 3.0, (n_rows, 2))
    scores = np.outer(X[:, 0], np.arange(n_classes)) * 1.5
    scores[:, 1:-1] += 1.0  # the middle classes, if any, are likely in the middle
    true = np.exp(scores - scores.max(axis=1, keepdims=True))
    true /= true.sum(axis=1, keepdims=True)
    label = (rng.random(n_rows)[:, None] > np.cumsum(true, axis=1)[:, :-1]).sum(axis=1)
    return X, label, true


@pytest.mark.filterwarnings("ignore:svmlight stopped after:sklearn.exceptions.ConvergenceWarning")  # of six fits
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("estimator", [SVC(gamma=0.2), NuSVC(nu=0.6, gamma=0.2)], ids=["SVC", "NuSVC"])
def test_probabilities_are_as_near_to_the_true_ones_as_those_of_six_fits(estimator, n_classes, method, rng):
    X, label, _ = known_rows(rng, 1500, n_classes)
    new, new_label, true = known_rows(rng, 4000, n_classes)
    model = clone(estimator).set_params(calibration=method).fit(X, label)
    found = model.predict_proba(new)
    np.testing.assert_allclose(found.sum(axis=1), 1.0, atol=1e-12)
    np.testing.assert_array_equal(model.predict_log_proba(new), np.log(found))
    observed = np.eye(n_classes)[new_label]
    six = clone(estimator).set_params(probability="libsvm", random_state=0).fit(X, label).predict_proba(new)
    excess = np.mean((found - true) ** 2)  # of the Brier score, over that of the true probabilities
    assert excess < np.mean((six - true) ** 2) + 0.001
    assert excess < 0.02
    for k in range(n_classes):  # the expected calibration error, by tenths of the rows
        tenths = np.array_split(np.argsort(found[:, k], kind="stable"), 10)
        errors = [abs(found[part, k].mean() - observed[part, k].mean()) for part in tenths]
        assert np.mean(errors) < 0.06


def values_seen(model, X, label):
    """Fit a model of two classes; return decision values, signs and weights that its sigmoid is fitted to."""
    seen = []

    def keep(decision, sign, weight, pseudo_rows):
        seen.append((decision, sign, weight))
        return 0.0, 0.0

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("widemargin.models.calibration.fit_rising_sigmoid", keep)
        model.fit(X, label)
    return seen[0]


def test_values_of_support_vectors_are_nearly_those_of_refits_without_them(rng):
    X = rng.standard_normal((120, 3))
    sign = np.where(X[:, 0] + X[:, 1] ** 2 - 0.8 + 0.4 * rng.standard_normal(120) > 0, 1.0, -1.0)
    model = SVC(gamma=1.0, tol=1e-9, calibration="sigmoid")
    decision, sign_of_first, weight = values_seen(model, X, sign > 0)
    np.testing.assert_array_equal(sign_of_first, -sign)
    np.testing.assert_array_equal(weight, 1.0)
    others = np.setdiff1d(np.arange(120), model.support_)
    np.testing.assert_allclose(-decision[others], model.decision_function(X[others]), atol=1e-9)
    refits = np.empty(120)
    for i in range(120):
        rest = np.delete(np.arange(120), i)
        refit = SVC(gamma=1.0, tol=1e-9).fit(X[rest], sign[rest] > 0)
        refits[i] = refit.decision_function(X[i : i + 1])[0]
    np.testing.assert_allclose(-decision[others], refits[others], atol=1e-6)
    errors, changes = np.abs(-decision - refits), np.abs(model.decision_function(X) - refits)
    assert np.median(errors[model.support_]) < 0.25 * np.median(changes[model.support_])
    assert np.corrcoef(-decision[model.support_], refits[model.support_])[0, 1] > 0.98


def test_a_row_that_takes_over_brings_values_nearer_to_those_of_refits(rng, monkeypatch):
    X = rng.standard_normal((150, 2))
    sign = np.where(np.sin(2.0 * X[:, 0]) + X[:, 1] + 0.3 * rng.standard_normal(150) > 0, 1.0, -1.0)
    options = {"gamma": 1.0, "C": 10.0, "tol": 1e-9}
    model = SVC(**options, calibration="sigmoid").fit(X, sign)
    refits = np.empty(len(model.support_))
    for place, i in enumerate(model.support_):
        rest = np.delete(np.arange(150), i)
        refits[place] = SVC(**options).fit(X[rest], sign[rest]).decision_function(X[i : i + 1])[0]
    errors = []
    for least in (0, 10**9):
        monkeypatch.setattr(spans, "_MIN_ROWS", least)
        decision, _, _ = values_seen(clone(model), X, sign)
        errors.append(-sign[model.support_] * (decision[model.support_] + refits))
    with_takeover, without = errors
    assert np.abs(with_takeover).mean() < 0.8 * np.abs(without).mean()
    assert abs(with_takeover.mean()) < 0.5 * abs(without.mean())
    assert without.mean() < 0.0


@pytest.mark.parametrize("is_compiled", [True, False])
def test_the_row_that_takes_over_most_is_added(is_compiled):
    """Rows 1 and 2 are within the margin after the step, and row 1 has the larger gain; row 0 is removed."""
    f, sign = np.array([1.0, 1.1, -1.05]), np.array([1.0, 1.0, -1.0])
    rows = Candidates(f, sign, np.zeros(3), np.full(3, 10.0), np.array([1.0, 0.5, 0.8]), np.arange(3))
    removed = Removed(np.array([0]), np.array([0.6]), np.array([0.9]), 0)
    cross = np.array([[0.9, 0.5, -0.2]])
    call = takeovers if is_compiled else takeovers.py_func
    found = call(rows, removed, cross, 1e-12, np.empty(1))
    violations = 1.0 - sign * (f - 0.6 * cross[0])  # 0.54, 0.2, 0.07
    np.testing.assert_allclose(found, violations[1] / 0.5 * 0.5)
    # A free support vector leaves the hull: the curvature is 0.5 + 0.5² / 0.9.
    found = call(rows, removed._replace(n_free=1), cross, 1e-12, np.empty(1))
    np.testing.assert_allclose(found, violations[1] / (0.5 + 0.25 / 0.9) * 0.5)
    assert call(rows._replace(cost=np.zeros(3)), removed, cross, 1e-12, np.empty(1)) == [0.0]


def test_the_pairs_of_many_classes_share_pseudo_rows(rng):
    for n_classes in (2, 26):
        c = pseudo_rows_of_pair(n_classes)
        _, B = fit_sigmoid(np.zeros(20), np.ones(20), None, c)
        np.testing.assert_allclose(1.0 / (1.0 + np.exp(B)), (20.0 + c) / (20.0 + 2.0 * c))
        assert fit_isotonic([-1.0, 1.0], [-1, 1], None, c)[-1, 1] == (1.0 + c) / (1.0 + 2.0 * c)
    assert pseudo_rows_of_pair(2) == 1.0
    centres = rng.standard_normal((16, 6)) * 4.0
    (X, label), (new, new_label) = (make_blobs([n] * 16, centers=centres, random_state=n) for n in (20, 40))
    scores = []
    for options in ({"calibration": "sigmoid"}, {"probability": "libsvm"}):
        model = SVC(**options, random_state=0).fit(X, label)
        scores.append(np.mean((model.predict_proba(new) - np.eye(16)[new_label]) ** 2))
    assert scores[0] < 0.9 * scores[1]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("form", [np.ascontiguousarray, np.asfortranarray, csr_array])
def test_equal_rows_are_found(form, dtype, rng):
    X = rng.integers(0, 3, (300, 4)).astype(dtype)
    X[50] = X[20] = 0.0
    _, first, group = np.unique(X, axis=0, return_index=True, return_inverse=True)
    found = first_copies(form(X))
    np.testing.assert_array_equal(found.number, first[group.ravel()])
    np.testing.assert_array_equal(found.is_repeated, np.bincount(group.ravel())[group.ravel()] > 1)
    assert first_copies(form(X[np.sort(first)])) is None
    assert first_copies(form(rng.standard_normal((300, 4)).astype(dtype))) is None


def spans_of(K, n_free):
    """Return S² by decision values without each row, of a machine with coefficients 1, the first of which are free."""
    n = len(K)
    coef, f = np.append(np.ones(n), 0.0), np.append(np.zeros(n), -1e6)  # a last row, so that nothing is clipped
    cost = np.where(np.arange(n + 1) < n_free, 2.0, 1.0)
    machine = BinaryMachine(np.arange(n + 1), np.ones(n + 1), np.ones(n + 1), cost, coef, 0.0)
    diagonal = np.append(K.diagonal(), 1.0)
    return -without_each(machine, f, lambda rows, columns: K[np.ix_(rows, columns)], diagonal, takes_over=False)[:n]


def test_spans_are_distances_from_affine_hulls(rng):
    points, others = rng.standard_normal((5, 8)), rng.standard_normal((3, 8))
    both = np.vstack([points, others])
    found = spans_of(both @ both.T, 5)

    def distance(point, hull):
        directions = (hull[1:] - hull[0]).T
        return np.sum((point - hull[0] - directions @ np.linalg.lstsq(directions, point - hull[0])[0]) ** 2)

    expected = [distance(points[i], np.delete(points, i, axis=0)) for i in range(5)]
    expected += [distance(other, points) for other in others]
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_spans_of_equal_points_and_of_an_indefinite_matrix_are_finite():
    assert np.isfinite(spans_of(np.ones((4, 4)), 3)).all()
    assert np.isfinite(spans_of(np.array([[0.5, 2.0, 1.0], [2.0, -0.5, 1.0], [1.0, 1.0, -1.0]]), 2)).all()


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("estimator", [SVC, NuSVC])
def test_predict_is_the_most_probable_class_if_asked(estimator, n_classes, method, rng):
    X, label, _ = known_rows(rng, 300, n_classes)
    names = np.array(["d", "b", "c", "a"])[label]
    options = {"nu": 0.2} if estimator is NuSVC else {"class_weight": {"d": 9.0}}
    by_decision, by_probability = (
        estimator(calibration=method, predict_by=by, **options).fit(X, names) for by in ("decision", "probability")
    )
    found = by_probability.predict_proba(X)
    np.testing.assert_array_equal(by_decision.predict_proba(X), found)
    np.testing.assert_array_equal(by_probability.predict(X), by_probability.classes_[found.argmax(axis=1)])
    plain = estimator(**options).fit(X, names)
    np.testing.assert_array_equal(by_decision.predict(X), plain.predict(X))
    np.testing.assert_array_equal(by_decision.decision_function(X), plain.decision_function(X))
    if estimator is SVC:  # its weights make one class likelier in decisions than it is
        assert (by_decision.predict(X) != by_probability.predict(X)).any()


@pytest.mark.parametrize("method", METHODS)
def test_weights_are_rows_that_are_repeated(method, rng):
    X, label, _ = known_rows(rng, 60)
    weight = rng.integers(0, 4, 60)
    repeated = np.repeat(np.arange(60), weight)
    options = {"gamma": 0.4, "tol": 1e-9, "calibration": method}
    weighted = SVC(**options).fit(X, label, sample_weight=weight).predict_proba(X)
    np.testing.assert_allclose(weighted, SVC(**options).fit(X[repeated], label[repeated]).predict_proba(X), atol=1e-6)
    assert np.abs(weighted - SVC(**options).fit(X, label).predict_proba(X)).max() > 1e-3


def test_class_weights_change_decisions_but_not_the_distribution_of_the_data(rng):
    X, label, _ = known_rows(rng, 1000)
    model = SVC(gamma=0.2, class_weight={1: 5.0}, calibration="sigmoid").fit(X, label)
    assert np.mean(model.predict(X)) > label.mean() + 0.1
    assert np.mean(model.predict_proba(X)[:, 1]) == pytest.approx(label.mean(), abs=0.02)


@pytest.mark.parametrize("method", METHODS)
def test_the_same_rows_give_the_same_bits_with_any_seed_and_number_of_threads(method, rng):
    X, label, _ = known_rows(rng, 400, 3)
    one, two = (
        SVC(calibration=method, n_jobs=n_jobs, random_state=seed).fit(X, label) for n_jobs, seed in ((1, 0), (2, 1))
    )
    assert one.predict_proba(X).tobytes() == two.predict_proba(X).tobytes()


@pytest.mark.parametrize("kernel", ["sparse", "precomputed", "callable"])
def test_probabilities_do_not_depend_on_how_the_kernel_is_given(kernel, rng):
    X, label, _ = known_rows(rng, 200, 3)
    options = {"tol": 1e-8, "calibration": "sigmoid"}
    expected = SVC(gamma=0.3, **options).fit(X, label).predict_proba(X)
    model, rows = {
        "sparse": (SVC(gamma=0.3, **options), csr_array(X)),
        "precomputed": (SVC(kernel="precomputed", **options), rbf_kernel(X, gamma=0.3)),
        "callable": (SVC(kernel=lambda A, B: rbf_kernel(A, B, gamma=0.3), **options), X),
    }[kernel]
    np.testing.assert_allclose(model.fit(rows, label).predict_proba(rows), expected, atol=1e-5)


@pytest.mark.parametrize("method", METHODS)
def test_a_part_that_is_left_out_together_gives_nearly_the_same(method, rng, monkeypatch):
    X, label, true = known_rows(rng, 2000)
    one_by_one = SVC(gamma=0.2, calibration=method).fit(X, label).predict_proba(X)
    monkeypatch.setattr(out_of_sample, "_MAX_SUPPORT_VECTORS_TO_FACTOR", 10)
    monkeypatch.setattr(out_of_sample, "_MAX_OTHER_ROWS", 300)
    models = [SVC(gamma=0.2, calibration=method, random_state=seed, n_jobs=seed + 1).fit(X, label) for seed in (0, 1)]
    again = SVC(gamma=0.2, calibration=method, random_state=0, n_jobs=2).fit(X, label)
    together, other = (model.predict_proba(X) for model in models)
    assert again.predict_proba(X).tobytes() == together.tobytes()
    assert not np.array_equal(together, other)
    assert np.abs(together - one_by_one).mean() < 0.05
    assert np.mean((together - true) ** 2) < 0.01


def test_true_asks_for_a_sigmoid_without_a_warning_and_false_for_none(rng):
    X, label, _ = known_rows(rng, 100)
    expected = SVC(calibration="sigmoid").fit(X, label).predict_proba(X)
    np.testing.assert_array_equal(SVC(probability=True).fit(X, label).predict_proba(X), expected)
    isotonic_model = SVC(probability=True, calibration="isotonic").fit(X, label)
    assert isotonic_model.probA_.size == 0
    np.testing.assert_array_equal(
        isotonic_model.predict_proba(X), SVC(calibration="isotonic").fit(X, label).predict_proba(X)
    )
    assert not hasattr(SVC(probability=False).fit(X, label), "predict_proba")
    assert not hasattr(isotonic_model.set_params(calibration="sigmoid").fit(X, label), "isotonic_points_")


def test_contradictions_and_what_is_not_fitted_are_refused(rng):
    X, label, _ = known_rows(rng, 50)
    with pytest.raises(ValueError, match="calibration='sigmoid' and probability='libsvm' are two ways"):
        SVC(calibration="sigmoid", probability="libsvm").fit(X, label)
    with pytest.raises(ValueError, match="predict_by='probability' needs probabilities: set calibration"):
        SVC(predict_by="probability").fit(X, label)
    with pytest.raises(ValueError, match="'calibration' parameter of SVC must be"):
        SVC(calibration="platt").fit(X, label)
    with pytest.raises(AttributeError, match="has no attribute 'predict_proba'"):
        SVC().fit(X, label).predict_proba(X)
    with pytest.raises(NotFittedError, match="fitted with probability=False and calibration=None: set one of them"):
        SVC().fit(X, label).set_params(calibration="sigmoid").predict_proba(X)


@pytest.mark.filterwarnings("ignore::widemargin.errors.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore:Probabilities are fitted to")
@pytest.mark.parametrize("method", METHODS)
def test_degenerate_rows_have_probabilities(method):
    X = np.array([[0.0], [1.0]])
    two = SVC(calibration=method).fit(X, [0, 1]).predict_proba(X)
    assert np.isfinite(two).all()
    same = SVC(calibration=method).fit(np.zeros((6, 1)), [0, 1, 0, 1, 1, 1]).predict_proba(np.zeros((1, 1)))
    assert same[0, 1] == pytest.approx(4 / 6, abs=0.1)
    blobs, label = make_blobs(40, centers=[[-9, 0], [9, 0]], random_state=0)
    apart = SVC(C=1e6, calibration=method).fit(blobs, label).predict_proba(blobs)
    assert (apart.argmax(axis=1) == label).all()
    assert ((apart > 0.0) & (apart < 1.0)).all()
    weight = np.where(label == 0, 1.0, 0.0)
    weight[:2] = 1.0
    assert np.isfinite(
        SVC(calibration=method).fit(blobs, np.arange(40) % 3, sample_weight=weight).predict_proba(blobs)
    ).all()
    indefinite = SVC(kernel="sigmoid", gamma=5.0, C=100.0, calibration=method)
    assert np.isfinite(indefinite.fit(blobs, np.arange(40) % 2).predict_proba(blobs)).all()


def test_isotonic_regression_is_that_of_means_by_hand():
    decision, sign = [0.0, 1.0, 2.0, 3.0, 4.0, 4.0], [-1, 1, -1, 1, 1, 1]
    points = fit_isotonic(decision, sign)
    np.testing.assert_allclose(points, [[0, 0.25], [1, 0.5], [2, 0.5], [3, 5 / 6], [4, 5 / 6]])
    np.testing.assert_allclose(
        isotonic([-1.0, 0.0, 0.5, 1.5, 2.5, 9.0], points), [0.25, 0.25, 0.375, 0.5, 2 / 3, 5 / 6]
    )
    twice = fit_isotonic(np.repeat(decision, 2), np.repeat(sign, 2))
    np.testing.assert_allclose(fit_isotonic(decision, sign, [2.0] * 6), twice)
    np.testing.assert_array_equal(fit_isotonic([*decision, 9.0], [*sign, -1], [*[1.0] * 6, 0.0]), points)
    assert fit_isotonic([1.0, 1.0], [1, -1]).tolist() == [[1.0, 0.5]]
    with pytest.raises(ValueError, match="decision must be finite"):
        fit_isotonic([np.nan], [1])
    assert fit_sigmoid(decision, sign)[0] < 0.0


def test_few_rows_of_a_class_are_warned_of_and_predicted_by_their_decision_values():
    X, label = np.array([[0.0], [1.0], [2.0], [3.0]]), ["a", "a", "b", "b"]
    words = (
        r"Probabilities are fitted to 2 rows of class a, and mean little with fewer than 10 of each class\. Fit more"
    )
    model = SVC(kernel="linear", calibration="sigmoid", predict_by="probability")
    with pytest.warns(UserWarning, match=words):
        model.fit(X, label)
    assert model.predict(X).tolist() == label


def test_ten_rows_of_each_class_are_not_warned_of(rng):
    X, label = rng.standard_normal((30, 2)), np.arange(30) // 10
    SVC(calibration="sigmoid").fit(X, label)
    weight = np.where(np.arange(30) == 7, 0.0, 1.0)
    with pytest.warns(UserWarning, match=r"fitted to 9 rows of class 0"):
        SVC(calibration="sigmoid").fit(X, label, sample_weight=weight)
    with pytest.warns(UserWarning, match=r"fitted to 1 row of class 2"):
        SVC(calibration="sigmoid").fit(X[:21], label[:21])


def test_a_sigmoid_that_would_fall_is_constant_but_for_ties():
    decision, sign = np.array([-1.0, -0.5, 0.5, 2.0, 2.0]), np.array([1.0, 1.0, -1.0, -1.0, -1.0])
    assert fit_sigmoid(decision, sign)[0] > 0.0
    A, B = fit_rising_sigmoid(decision, sign)
    assert -1e-8 < A < 0.0
    np.testing.assert_allclose(B, fit_sigmoid(np.zeros(5), sign)[1])
    assert fit_rising_sigmoid(decision, -sign) == fit_sigmoid(decision, -sign)
