"""Probabilities of machines on a basis: decision values without a row are those of refits, and they are calibrated."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.calibration import CalibratedClassifierCV
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.utils.estimator_checks import estimator_checks_generator

from widemargin import SVC, SVR, OneClassSVM, load_model, open_blocks, save_model, write_blocks
from widemargin.models.calibration import laplace_scale
from widemargin.models.kernel import out_of_sample

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


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_brier_scores_are_those_of_cross_validation(n_classes, method, rng):
    X, label, _ = known_rows(rng, 1500, n_classes)
    new, new_label, true = known_rows(rng, 4000, n_classes)
    options = {"gamma": 0.2, "basis": 100, "random_state": 0}
    found = SVC(calibration=method, **options).fit(X, label).predict_proba(new)
    folds = CalibratedClassifierCV(SVC(**options), method=method, ensemble=False).fit(X, label).predict_proba(new)
    np.testing.assert_allclose(found.sum(axis=1), 1.0, atol=1e-12)
    excess = np.mean((found - true) ** 2)  # of the Brier score, over that of the true probabilities
    assert excess < np.mean((folds - true) ** 2) + 0.001
    assert excess < 0.01
    observed = np.eye(n_classes)[new_label]
    for k in range(n_classes):  # the expected calibration error, by tenths of the rows
        tenths = np.array_split(np.argsort(found[:, k], kind="stable"), 10)
        assert np.mean([abs(found[part, k].mean() - observed[part, k].mean()) for part in tenths]) < 0.06


def values_seen(model, X, label):
    """Fit a model of two classes; return decision values, signs and weights that its sigmoid is fitted to."""
    seen = []

    def keep(decision, sign, weight, pseudo_rows):
        seen.append((decision, sign, weight))
        return -1.0, 0.0

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("widemargin.models.calibration.fit_rising_sigmoid", keep)
        model.fit(X, label)
    return seen[0]


def test_values_are_nearly_those_of_refits_without_a_row(rng):
    X = rng.standard_normal((120, 3))
    positive = X[:, 0] + X[:, 1] ** 2 - 0.8 + 0.4 * rng.standard_normal(120) > 0
    options = {"gamma": 1.0, "tol": 1e-9, "basis": X[:40]}
    model = SVC(calibration="sigmoid", **options)
    decision, sign, weight = values_seen(model, X, positive)
    np.testing.assert_array_equal(sign, np.where(positive, -1.0, 1.0))
    np.testing.assert_array_equal(weight, 1.0)
    rest = [np.delete(np.arange(120), i) for i in range(120)]
    refits = [SVC(**options).fit(X[r], positive[r]).decision_function(X[i : i + 1])[0] for i, r in enumerate(rest)]
    errors, changes = np.abs(-decision - refits), np.abs(model.decision_function(X) - refits)
    is_changed = changes > 1e-4
    assert is_changed.sum() > 30
    assert np.median(errors[is_changed]) < 0.4 * np.median(changes[is_changed])
    assert np.corrcoef(-decision[is_changed], np.array(refits)[is_changed])[0, 1] > 0.97
    np.testing.assert_allclose(-decision[~is_changed], np.array(refits)[~is_changed], atol=0.02)


def test_with_all_rows_as_basis_points_values_are_those_of_the_exact_machine(rng):
    X, label, _ = known_rows(rng, 150)
    options = {"gamma": 0.7, "tol": 1e-9, "calibration": "sigmoid"}
    exact, on_basis = (values_seen(SVC(**options, basis=b), X, label) for b in (None, X))
    for one, other in zip(exact, on_basis, strict=True):
        np.testing.assert_allclose(np.sort(one), np.sort(other), atol=2e-3)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("n_classes", [2, 4])
def test_predict_is_the_most_probable_class_if_asked(n_classes, method, rng):
    X, label, _ = known_rows(rng, 300, n_classes)
    names = np.array(["d", "b", "c", "a"])[label]
    options = {"class_weight": {"d": 9.0}, "basis": 30, "random_state": 0}
    by_decision, by_probability = (
        SVC(calibration=method, predict_by=by, **options).fit(X, names) for by in ("decision", "probability")
    )
    found = by_probability.predict_proba(X)
    np.testing.assert_array_equal(by_decision.predict_proba(X), found)
    np.testing.assert_array_equal(by_probability.predict(X), by_probability.classes_[found.argmax(axis=1)])
    np.testing.assert_array_equal(by_decision.predict(X), SVC(**options).fit(X, names).predict(X))
    assert (by_decision.predict(X) != by_probability.predict(X)).any()


@pytest.mark.parametrize("method", METHODS)
def test_weights_are_rows_that_are_repeated(method, rng):
    X, label, _ = known_rows(rng, 60)
    weight = rng.integers(0, 4, 60)
    repeated = np.repeat(np.arange(60), weight)
    options = {"gamma": 0.4, "tol": 1e-9, "calibration": method, "basis": X[:20]}
    weighted = SVC(**options).fit(X, label, sample_weight=weight).predict_proba(X)
    np.testing.assert_allclose(weighted, SVC(**options).fit(X[repeated], label[repeated]).predict_proba(X), atol=1e-4)
    assert np.abs(weighted - SVC(**options).fit(X, label).predict_proba(X)).max() > 1e-3


@pytest.mark.parametrize("method", METHODS)
def test_a_seed_gives_the_same_bits_with_any_number_of_threads_and_of_sampled_rows(method, rng, monkeypatch):
    X, label, true = known_rows(rng, 1200, 3)
    every = SVC(calibration=method, basis=50, random_state=0).fit(X, label).predict_proba(X)
    monkeypatch.setattr(out_of_sample, "_MAX_ROWS_PER_CLASS", 150)
    monkeypatch.setattr(out_of_sample, "_MAX_FREE_ON_BASIS", 10)
    one, two, other = (
        SVC(calibration=method, basis=50, n_jobs=jobs, random_state=seed).fit(X, label).predict_proba(X)
        for jobs, seed in ((1, 0), (2, 0), (1, 1))
    )
    assert one.tobytes() == two.tobytes()
    assert one.tobytes() != other.tobytes()
    assert np.abs(one - every).mean() < 0.05
    assert np.mean((one - true) ** 2) < 0.015


@pytest.mark.parametrize("storage", ["sparse", "blocks", "streamed", "callable"])
def test_probabilities_do_not_depend_on_how_rows_are_given(storage, rng, tmp_path, monkeypatch):
    X, label, _ = known_rows(rng, 400, 3)
    options = {"tol": 1e-8, "calibration": "sigmoid", "basis": X[:30]}
    expected = SVC(gamma=0.3, **options).fit(X, label).predict_proba(X)
    rows, kernel, targets = X, "rbf", label
    if storage == "sparse":
        rows = csr_array(X)
    elif storage == "callable":
        kernel = lambda A, B: rbf_kernel(A, B, gamma=0.3)  # noqa: E731
    else:
        write_blocks(tmp_path / "rows", [(X[:250], label[:250]), (X[250:], label[250:])])
        rows, targets = open_blocks(tmp_path / "rows"), None
        if storage == "streamed":
            monkeypatch.setattr("widemargin.models.fixed_basis.bytes_of", lambda text: 0)
    model = SVC(gamma=0.3, kernel=kernel, **options).fit(rows, targets)
    np.testing.assert_allclose(model.predict_proba(X), expected, atol=1e-4)


def test_a_solver_without_dual_variables_gives_nearly_the_same(rng, monkeypatch):
    X, label, _ = known_rows(rng, 500, 3)
    y = X[:, 0] + 0.3 * rng.laplace(size=500)
    options = {"basis": X[:40], "tol": 1e-6, "random_state": 0}
    by_newton = SVC(calibration="sigmoid", **options).fit(X, label).predict_proba(X)
    scale = SVR(probability=True, **options).fit(X, y).laplace_scale_
    monkeypatch.setattr("widemargin.models.kernel.on_basis.MAX_COLUMNS", 10)
    model = SVC(calibration="sigmoid", **options).fit(X, label)
    assert model.solver_ == "ocas"
    np.testing.assert_allclose(model.predict_proba(X), by_newton, atol=0.05)
    assert SVR(probability=True, **options).fit(X, y).laplace_scale_ == pytest.approx(scale, rel=0.05)


def test_files_keep_probabilities(rng, tmp_path):
    X, label, _ = known_rows(rng, 200, 3)
    for method, form in (("sigmoid", None), ("isotonic", None), ("sigmoid", "libsvm")):
        model = SVC(basis=20, calibration=method, predict_by="probability", random_state=0).fit(X, label)
        save_model(model, tmp_path / "model", **({} if form is None else {"format": form}))
        loaded = load_model(tmp_path / "model")
        np.testing.assert_allclose(loaded.predict_proba(X), model.predict_proba(X), atol=1e-9)
        if form is None:
            np.testing.assert_array_equal(loaded.predict(X), model.predict(X))


def test_six_fits_are_refused(rng):
    X, label, _ = known_rows(rng, 50)
    with pytest.raises(ValueError, match="with a basis use calibration='sigmoid'"):
        SVC(basis=10, probability="libsvm").fit(X, label)
    with pytest.raises(ValueError, match="with a basis use probability=True"):
        SVR(basis=10, probability="libsvm").fit(X, label)


def test_true_asks_for_a_sigmoid(rng):
    X, label, _ = known_rows(rng, 200)
    by_name, by_flag = (
        SVC(basis=20, random_state=0, **option).fit(X, label)
        for option in ({"calibration": "sigmoid"}, {"probability": True})
    )
    np.testing.assert_array_equal(by_name.predict_proba(X), by_flag.predict_proba(X))


def test_the_scale_of_noise_is_that_of_residuals_of_refits(rng):
    X = rng.uniform(-3.0, 3.0, (150, 1))
    y = np.sin(2.0 * X[:, 0]) + rng.laplace(scale=0.3, size=150)
    options = {"C": 10.0, "gamma": 1.0, "epsilon": 0.1, "tol": 1e-8, "basis": X[:30]}
    model = SVR(probability=True, **options).fit(X, y)
    rest = [np.delete(np.arange(150), i) for i in range(150)]
    residuals = [y[i] - SVR(**options).fit(X[r], y[r]).predict(X[i : i + 1])[0] for i, r in enumerate(rest)]
    # The span formula takes the free rows to stay free; which rows are free is a matter of rounding here.
    assert model.laplace_scale_ == pytest.approx(laplace_scale(residuals), rel=0.1)
    assert model.laplace_scale_ > laplace_scale(y - model.predict(X))
    new = rng.uniform(-3.0, 3.0, (2000, 1))
    target = np.sin(2.0 * new[:, 0]) + rng.laplace(scale=0.3, size=2000)
    interval = model.predict_interval(new, level=0.8)
    assert np.mean((interval[:, 0] <= target) & (target <= interval[:, 1])) == pytest.approx(0.8, abs=0.05)


def test_inliers_are_likelier_the_deeper_they_are(rng):
    X = rng.standard_normal((500, 2))
    model = OneClassSVM(nu=0.2, gamma=0.5, basis=40, probability=True, random_state=0).fit(X)
    found = model.predict_proba(X)[:, 0]
    order = np.argsort(model.decision_function(X))
    assert (np.diff(found[order]) >= 0.0).all()
    assert (model.predict(X)[found > 0.5] == 1).all()
    assert (model.predict(X)[found < 0.5] == -1).all()
    assert np.unique(found).size > 6


CHECKED = [SVC(basis=500, calibration="sigmoid", random_state=0), SVC(basis=10, calibration="isotonic", random_state=0)]
CHECKS = [pair for estimator in CHECKED for pair in estimator_checks_generator(estimator)]


@pytest.mark.filterwarnings("ignore::widemargin.errors.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore::sklearn.utils.estimator_checks.SkipTestWarning")
@pytest.mark.parametrize(
    ("estimator", "check"), CHECKS, ids=lambda part: getattr(getattr(part, "func", None), "__name__", repr(part))
)
def test_scikit_learns_contract_is_kept(estimator, check):
    name = check.func.__name__
    if name == "check_array_api_input":
        pytest.skip("array API input is not offered: scikit-learn issue 22352, until 2.0")
    if name == "check_classifiers_train" and estimator.calibration == "isotonic":
        pytest.skip("the isotonic probability of 1/2 is not at the decision value 0; see predict_by")
    if "sample_weight_equivalence" in name and estimator.basis == 10:
        pytest.skip("a few points chosen from rows depend on how often rows are repeated, and on those of weight zero")
    check(estimator)
