"""TransductiveSVC: a local minimum of its objective, certified given its labels, never above its inductive start."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.datasets import make_moons
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.utils.estimator_checks import estimator_checks_generator

from widemargin import SVC, ConvergenceWarning, TransductiveSVC, load_model, save_model
from widemargin.models.kernel import transduction

ESTIMATORS = [
    TransductiveSVC(),
    TransductiveSVC(kernel="linear", solver="smo"),
    TransductiveSVC(kernel="precomputed"),
    TransductiveSVC(unlabeled=-7, class_weight="balanced"),
]
CHECKS = [pair for estimator in ESTIMATORS for pair in estimator_checks_generator(estimator)]


def random_rows(seed, n_labelled=8, n_unlabelled=14):
    """Return overlapping clouds, labels 1 and −1 and 0 for unlabelled rows; rows of both classes are labelled."""
    rng = np.random.default_rng(seed)
    n_rows = n_labelled + n_unlabelled
    truth = np.where(rng.random(n_rows) < rng.uniform(0.3, 0.7), 1, -1)
    truth[:2] = 1, -1
    X = rng.standard_normal((n_rows, 3)) + rng.uniform(0.0, 1.5) * truth[:, np.newaxis]
    y = truth.copy()
    y[n_labelled:] = 0
    return X, y, rng


def costs_of(model, y):
    """Return the cost of each row in the objective, by its formula."""
    share, own = model.positive_share_, model.C if model.C_unlabeled is None else model.C_unlabeled
    of_unlabelled = own * np.where(model.transduction_ == 1, (1.0 - share) / share, 1.0)
    return np.where(y == 0, of_unlabelled, model.C * np.where(y == 1, *model.class_weight_[::-1]))


def objective_of(model, X, y):
    """Return the objective at the model, by its formula."""
    f, coefficients = model.decision_function(X), np.zeros(len(y))
    coefficients[model.support_] = model.dual_coef_[0]
    losses = np.maximum(1.0 - model.transduction_ * f, 0.0)
    return 0.5 * coefficients @ (f - model.intercept_[0]) + costs_of(model, y) @ losses


@pytest.mark.parametrize("seed", range(40))
def test_the_objective_is_that_of_the_formula_and_never_above_the_inductive_start(seed):
    X, y, rng = random_rows(seed)
    options = {"C": 10.0 ** rng.uniform(-2, 2), "kernel": ["linear", "rbf"][seed % 2]}
    options |= {"C_unlabeled": [None, 10.0 ** rng.uniform(-2, 2)][seed % 3 == 0]}
    options |= {"positive_share": [None, rng.uniform(0.05, 0.95)][seed % 4 == 0]}
    options |= {"class_weight": [None, {1: 3.0}][seed % 5 == 0]}
    model = TransductiveSVC(unlabeled=0, **options).fit(X, y)
    assert model.objective_ <= model.inductive_objective_
    assert model.objective_ == pytest.approx(objective_of(model, X, y), rel=1e-6)
    assert -1e-12 <= model.gap_ <= 1e-2
    assert model.status_ == "converged"


@pytest.mark.parametrize("seed", range(20))
def test_the_inductive_objective_is_that_of_the_labelled_rows_machine(seed):
    X, y, _ = random_rows(seed)
    model = TransductiveSVC(C=2.0, kernel="linear", unlabeled=0).fit(X, y)
    known = y != 0
    plain = SVC(C=2.0, kernel="linear").fit(X[known], y[known])
    f, n_positive = plain.decision_function(X), int(np.sum(model.transduction_[~known] == 1))
    label = y.copy()
    label[~known] = -1
    label[np.flatnonzero(~known)[np.argsort(-f[~known])[:n_positive]]] = 1
    cost = np.where(known | (label < 0), 2.0, 2.0 * (1.0 - model.positive_share_) / model.positive_share_)
    w = plain.coef_[0]
    expected = 0.5 * w @ w + cost @ np.maximum(1.0 - label * f, 0.0)
    assert model.inductive_objective_ == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("seed", range(5))
def test_a_search_that_ends_with_the_worst_labels_is_made_good(seed, monkeypatch):
    """Rising costs hardly ever end above the start; if they did, the search would go on from the start's labels."""

    def badly(search, start):
        return search.solved(replace(start, sign=search.rows.signs_of(-start.scores)), 1.0)

    X, y, _ = random_rows(seed)
    monkeypatch.setattr(transduction._Search, "raised", badly)
    model = TransductiveSVC(kernel="linear", unlabeled=0).fit(X, y)
    assert model.stages_["primal"][0] > model.inductive_objective_ >= model.objective_
    assert model.objective_ == pytest.approx(objective_of(model, X, y), rel=1e-6)
    assert model.gap_ <= 1e-2


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_no_exchange_of_two_labels_lowers_the_objective(kernel, seed):
    X, y, _ = random_rows(seed, n_unlabelled=30)
    model = TransductiveSVC(C=1.0, kernel=kernel, unlabeled=0, tol=1e-6).fit(X, y)
    f, label, unlabelled = model.decision_function(X), model.transduction_, np.flatnonzero(y == 0)
    above, below = (unlabelled[label[unlabelled] == sign] for sign in (1, -1))
    positive = (1.0 - model.positive_share_) / model.positive_share_

    def losses(i, sign):
        return (positive if sign > 0 else 1.0) * max(0.0, 1.0 - sign * f[i])

    for i in above:
        for j in below:
            assert losses(i, -1) + losses(j, 1) >= losses(i, 1) + losses(j, -1) - 1e-5 * (1.0 + positive)


@pytest.mark.parametrize("share", [None, 0.1, 0.5, 0.72])
def test_the_share_of_positive_labels_is_kept_and_known_labels_stay(share):
    X, y, _ = random_rows(3, n_labelled=10, n_unlabelled=31)
    model = TransductiveSVC(unlabeled=0, positive_share=share).fit(X, y)
    wanted = np.mean(y[y != 0] == 1) if share is None else share
    assert model.positive_share_ == pytest.approx(wanted)
    assert np.sum(model.transduction_[y == 0] == 1) == np.floor(31 * wanted + 0.5)
    np.testing.assert_array_equal(model.transduction_[y != 0], y[y != 0])


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_brute_force_over_all_labels_finds_nothing_that_contradicts_the_certificate(kernel, seed):
    """The model is at least the global optimum, at most the labels of its start, and optimal for its own labels."""
    X, y, _ = random_rows(seed, n_labelled=6, n_unlabelled=6)
    options = {"C": 1.5, "kernel": kernel, "gamma": 0.5, "tol": 1e-8}
    model = TransductiveSVC(unlabeled=0, positive_share=0.5, **options).fit(X, y)
    unlabelled, optima = np.flatnonzero(y == 0), {}
    for chosen in combinations(unlabelled.tolist(), 3):
        label = np.where(y == 0, -1, y)
        label[list(chosen)] = 1
        optima[chosen] = SVC(**options).fit(X, label).objective_  # a share of one half gives all rows the cost C
    own = tuple(unlabelled[model.transduction_[unlabelled] == 1].tolist())
    assert model.objective_ == pytest.approx(optima[own], rel=1e-7)
    assert model.objective_ >= min(optima.values()) * (1.0 - 1e-7)
    assert model.objective_ * (1.0 - model.gap_) <= optima[own] * (1.0 + 1e-9)


def test_brute_force_confirms_most_small_problems_to_be_solved_globally():
    """No promise, but what makes the method worth its name: 20 problems of 20 labellings each."""
    n_global = 0
    for seed in range(20):
        X, y, _ = random_rows(100 + seed, n_labelled=6, n_unlabelled=6)
        model = TransductiveSVC(unlabeled=0, positive_share=0.5, kernel="linear", C=1.0).fit(X, y)
        label, optima = np.where(y == 0, -1, y), []
        for chosen in combinations(np.flatnonzero(y == 0).tolist(), 3):
            trial = label.copy()
            trial[list(chosen)] = 1
            optima.append(SVC(kernel="linear", C=1.0).fit(X, trial).objective_)
        n_global += model.objective_ <= min(optima) * (1.0 + 1e-6)
    assert n_global >= 12


@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly"])
@pytest.mark.parametrize("class_weight", [None, "balanced", {3: 0.5}])
def test_without_unlabelled_rows_it_is_the_svc(kernel, class_weight, clouds):
    X, sign, _ = clouds
    y = np.where(sign > 0, 7, 3)
    model = TransductiveSVC(kernel=kernel, C=2.0, class_weight=class_weight, unlabeled=0).fit(X, y)
    plain = SVC(kernel=kernel, C=2.0, class_weight=class_weight).fit(X, y)
    np.testing.assert_array_equal(model.decision_function(X), plain.decision_function(X))
    np.testing.assert_array_equal(model.transduction_, y)
    assert (model.objective_, model.gap_, model.n_exchanges_) == (plain.objective_, plain.gap_, 0)
    assert not hasattr(model, "inductive_objective_")


def test_the_same_rows_give_the_same_model_whatever_the_number_of_threads():
    X, y, _ = random_rows(5, n_labelled=20, n_unlabelled=380)
    models = [TransductiveSVC(unlabeled=0, n_jobs=n_jobs).fit(X, y) for n_jobs in (1, 1, 2)]
    for other in models[1:]:
        np.testing.assert_array_equal(models[0].transduction_, other.transduction_)
        np.testing.assert_array_equal(models[0].dual_coef_, other.dual_coef_)
        assert models[0].n_exchanges_ == other.n_exchanges_


@pytest.mark.parametrize("kind", ["sparse", "precomputed", "callable", "float32", "small cache", "smo"])
def test_rows_in_any_form_give_the_same_labels(kind):
    X, y, _ = random_rows(8, n_labelled=12, n_unlabelled=60)
    options = {"unlabeled": 0, "kernel": "rbf", "gamma": 0.5, "tol": 1e-6}
    model = TransductiveSVC(**options).fit(X, y)
    other, Z = TransductiveSVC(**options), X
    if kind == "sparse":
        Z = csr_array(X)
    elif kind == "precomputed":
        other, Z = other.set_params(kernel="precomputed"), rbf_kernel(X, gamma=0.5)
    elif kind == "callable":
        other.set_params(kernel=lambda A, B: rbf_kernel(A, B, gamma=0.5))
    elif kind == "float32":
        Z = X.astype(np.float32)
    elif kind == "small cache":
        other.set_params(cache_size=0.01)
    else:
        other.set_params(solver="smo")
    other.fit(Z, y)
    np.testing.assert_array_equal(other.transduction_, model.transduction_)
    np.testing.assert_allclose(other.decision_function(Z), model.decision_function(X), atol=2e-5)
    assert other.objective_ == pytest.approx(model.objective_, rel=1e-5)


@pytest.mark.parametrize(
    ("classes", "mark"), [((-1, 1), 0), ((0, 1), -1), (("no", "yes"), "?"), ((False, True), None), ((2.0, 5.0), 0.0)]
)
def test_any_label_can_be_the_mark_of_unlabelled_rows(classes, mark):
    X, y, _ = random_rows(9)
    marks = np.array([classes[0], mark, classes[1]], dtype=None if mark is not None else object)
    labels = marks[y + 1] if mark is not None else np.array(classes)[(y > 0).astype(int)]
    model = TransductiveSVC(unlabeled=mark).fit(X, labels)
    assert model.classes_.tolist() == list(classes)
    assert set(model.transduction_.tolist()) == set(classes)
    assert set(model.predict(X).tolist()) <= set(classes)


def test_equal_rows_do_not_exchange_their_labels_for_ever():
    X = np.array([[-1.0], [1.0], *[[0.0]] * 7, *[[0.25]] * 4])
    y = np.array([-1, 1] + [0] * 11)
    model = TransductiveSVC(kernel="linear", unlabeled=0, tol=1e-12).fit(X, y)
    assert np.sum(model.transduction_[2:] == 1) == 6
    assert model.objective_ <= model.inductive_objective_


def test_unlabelled_rows_move_the_boundary_to_where_rows_are_few():
    X, truth = make_moons(120, noise=0.05, random_state=0)
    y = np.full(120, -1)
    known = np.concatenate([np.flatnonzero(truth == k)[:4] for k in (0, 1)])
    y[known] = truth[known]
    model = TransductiveSVC(C=10.0, gamma=5.0, unlabeled=-1).fit(X, y)
    plain = SVC(C=10.0, gamma=5.0).fit(X[known], truth[known])
    assert np.mean(model.transduction_ == truth) > plain.score(X, truth)


@pytest.mark.parametrize("kind", ["seconds", "callback", "callback later"])
def test_a_fit_that_is_stopped_keeps_the_better_of_start_and_present(kind):
    X, y, _ = random_rows(11, n_labelled=20, n_unlabelled=180)
    seen = []

    def stop(progress):
        seen.append(progress)
        return kind == "callback" or len(seen) > 25

    options = {"max_seconds": 0.0} if kind == "seconds" else {"callbacks": stop}
    with pytest.warns(ConvergenceWarning, match="max_seconds reached|stopped by a callback"):
        model = TransductiveSVC(unlabeled=0, C=10.0, **options).fit(X, y)
    assert model.objective_ <= model.inductive_objective_
    assert model.objective_ == pytest.approx(objective_of(model, X, y), rel=1e-6)
    assert model.status_ in ("max_seconds reached", "stopped by a callback")
    assert model.fit_status_ == 1
    assert 0.0 <= model.gap_ < np.inf


def test_stages_rise_by_half_and_end_with_the_objective():
    X, y, _ = random_rows(12, n_unlabelled=60)
    model = TransductiveSVC(unlabeled=0).fit(X, y)
    stages = model.stages_
    factors = stages["factor"][stages["exchanges"] == 0]
    np.testing.assert_allclose(factors, np.minimum(1.0, 1e-5 * 1.5 ** np.arange(30))[: len(factors)])
    assert factors[-1] == 1.0
    assert stages["exchanges"].sum() == model.n_exchanges_
    assert stages["primal"][-1] == pytest.approx(model.objective_)
    assert np.all((stages["above"] >= 0) & (stages["above"] <= 60))
    for factor in np.unique(stages["factor"]):
        assert np.all(np.diff(stages["primal"][stages["factor"] == factor]) < 0.0)


@pytest.mark.parametrize(
    ("labels", "options", "match"),
    [
        ([1, 1, 0, 0], {"unlabeled": 0}, r"y must hold 2 classes besides unlabeled=0, .* got \[1\]"),
        ([0, 0, 0, 0], {"unlabeled": 0}, r"y must hold 2 classes besides unlabeled=0, .* got \[\]"),
        ([-1, 0, 1, 1], {}, "y must hold 2 classes, got 3; if one of them marks rows .* name it by unlabeled"),
        ([0, 1, 2, 3], {"unlabeled": 0}, r"The type of the target is multiclass: y must hold 2 classes, got 3\."),
        ([-1, 1, 1, 0], {"unlabeled": 0, "positive_share": 0.0}, "The 'positive_share' parameter"),
        ([-1, 1, 1, 0], {"unlabeled": 0, "positive_share": 1.0}, "The 'positive_share' parameter"),
        ([-1, 1, 1, 0], {"unlabeled": 0, "C_unlabeled": 0.0}, "The 'C_unlabeled' parameter"),
        ([-1, 1, 1, 0], {"unlabeled": [0]}, "The 'unlabeled' parameter"),
        ([-1, 1, 1, 0], {"unlabeled": 0, "class_weight": {1: 0.0}}, "class_weight must be positive for both classes"),
    ],
)
def test_what_is_ambiguous_or_out_of_range_is_refused(labels, options, match):
    with pytest.raises(ValueError, match=match):
        TransductiveSVC(**options).fit(np.arange(8.0).reshape(4, 2), labels)


@pytest.mark.parametrize("share", [1e-300, 1.0 - 1e-16, 1e-3])
def test_a_share_that_rounds_to_no_row_or_all_rows_is_kept(share):
    X, y, _ = random_rows(13)
    model = TransductiveSVC(unlabeled=0, positive_share=share).fit(X, y)
    assert np.sum(model.transduction_[y == 0] == 1) == (14 if share > 0.5 else 0)
    assert model.objective_ <= model.inductive_objective_


@pytest.mark.filterwarnings("ignore::widemargin.errors.ConvergenceWarning")
@pytest.mark.parametrize("size", [1e-300, 1e-8, 1e8, 1e150])
def test_features_of_any_size_come_to_an_end(size):
    X, y, _ = random_rows(14)
    model = TransductiveSVC(kernel="linear", unlabeled=0)
    if size == 1e150:
        with pytest.raises(ValueError, match="overflow"):
            model.fit(size * X, y)
    else:
        assert model.fit(size * X, y).objective_ <= model.inductive_objective_


@pytest.mark.parametrize("form", ["widemargin", "libsvm", "svmlight"])
def test_a_saved_model_predicts_the_same(form, tmp_path):
    X, y, _ = random_rows(15)
    model = TransductiveSVC(unlabeled=0).fit(X, y)
    save_model(model, tmp_path / "model", format=form)
    loaded = load_model(tmp_path / "model")
    assert type(loaded) is (SVC if form == "libsvm" else TransductiveSVC)
    np.testing.assert_array_equal(loaded.decision_function(X), model.decision_function(X))
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    if form == "widemargin":
        assert loaded.get_params() == model.get_params()
        assert vars(model).keys() - vars(loaded).keys() == {"transduction_", "stages_"}
        for name in ("objective_", "gap_", "inductive_objective_", "positive_share_", "n_exchanges_"):
            assert getattr(loaded, name) == getattr(model, name)


@pytest.mark.filterwarnings("ignore::widemargin.errors.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore::sklearn.utils.estimator_checks.SkipTestWarning")
@pytest.mark.parametrize(
    ("estimator", "check"), CHECKS, ids=lambda part: getattr(getattr(part, "func", None), "__name__", repr(part))
)
def test_scikit_learns_contract_is_kept(estimator, check):
    if check.func.__name__ == "check_array_api_input":
        pytest.skip("array API input is not offered: scikit-learn issue 22352, until 2.0")
    if check.func.__name__ == "check_classifier_not_supporting_multiclass" and estimator.kernel == "precomputed":
        pytest.skip("the check has rows where K(X, X) is needed, whose shape is refused before the classes are seen")
    check(estimator)
