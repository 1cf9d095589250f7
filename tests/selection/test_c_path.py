"""c_path and the CV estimators: the same as cold fits and scikit-learn's loops, shared data, ranges found, errors."""

import inspect

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.model_selection import GroupKFold, StratifiedKFold, cross_val_score
from sklearn.utils.estimator_checks import parametrize_with_checks

from widemargin import (
    ConvergenceWarning,
    LinearSVC,
    LinearSVCCV,
    LinearSVR,
    LinearSVRCV,
    c_path,
    grid_search,
    load_model,
    save_model,
)

CS = [0.01, 0.3, 10.0, 200.0]


@parametrize_with_checks(
    [
        LinearSVCCV(Cs=[0.1, 1.0], cv=3, max_iter=None, tol=1e-6),
        LinearSVRCV(Cs=[0.1, 1.0], cv=3, max_iter=None, tol=1e-12),
    ]
)
def test_scikit_learns_checks(estimator, check):
    check(estimator)


@pytest.fixture
def rows(rng):
    y = np.where(rng.random(150) < 0.4, 1, -1)
    return rng.standard_normal((150, 5)) + 0.6 * y[:, None], y


@pytest.mark.parametrize("container", [np.asarray, csr_array], ids=["dense", "csr"])
@pytest.mark.parametrize("solver", ["auto", "dcd", "newton", "ocas"])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_a_path_is_as_cold_fits(loss, solver, container, rows):
    X, y = container(rows[0]), rows[1]
    estimator = LinearSVC(loss=loss, tol=1e-7, max_iter=None, solver=solver)
    path = c_path(estimator, X, y, CS)
    assert path.scores is None
    assert (path.gaps <= 1e-7).all()
    for C, objective, coef, intercept in zip(path.Cs, path.objectives, path.coefs, path.intercepts, strict=True):
        cold = clone(estimator).set_params(C=C).fit(X, y)
        assert objective == pytest.approx(cold.objective_, rel=3e-7)
        np.testing.assert_allclose(coef, cold.coef_, atol=2e-3)
        np.testing.assert_allclose(intercept, cold.intercept_, atol=2e-3)


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"penalize_intercept": False},
        {"fit_intercept": False},
        {"class_weight": "balanced"},
        {"class_weight": {0: 3.0, 1: 1.0, 2: 0.5}},
        {"n_jobs": 2},
        {"solver": "dcd"},
    ],
    ids=str,
)
def test_scores_are_those_of_scikit_learns_loop(change, rng):
    X, y = load_iris(return_X_y=True)
    X = X + 0.3 * rng.standard_normal(X.shape)
    estimator = LinearSVC(loss="hinge", tol=1e-8, max_iter=None, **change)
    folds = StratifiedKFold(4, shuffle=True, random_state=1)
    path = c_path(estimator, X, y, CS, cv=folds)
    expected = [cross_val_score(clone(estimator).set_params(C=C), X, y, cv=folds) for C in CS]
    np.testing.assert_allclose(path.scores, np.transpose(expected))
    assert (path.fold_gaps <= 1e-8).all()


@pytest.mark.parametrize("scoring", [None, "neg_mean_absolute_error"])
def test_scores_of_regression_are_those_of_scikit_learns_loop(scoring, rng):
    X = rng.standard_normal((120, 4))
    y = X @ rng.standard_normal(4) + 0.3 * rng.standard_normal(120)
    estimator = LinearSVR(epsilon=0.1, tol=1e-9, max_iter=None)
    path = c_path(estimator, X, y, CS, cv=3, scoring=scoring)
    expected = [cross_val_score(clone(estimator).set_params(C=C), X, y, cv=3, scoring=scoring) for C in CS]
    np.testing.assert_allclose(path.scores, np.transpose(expected), atol=1e-4)


def test_a_scorer_sees_decision_values(rows):
    X, y = rows
    path = c_path(LinearSVC(tol=1e-8, max_iter=None), X, y, CS, cv=3, scoring="roc_auc")
    expected = [cross_val_score(LinearSVC(C=C, tol=1e-8, max_iter=None), X, y, cv=3, scoring="roc_auc") for C in CS]
    np.testing.assert_allclose(path.scores, np.transpose(expected), atol=2e-3)


def test_folds_copy_no_rows(rows, monkeypatch):
    from widemargin.data.matrix import Matrix

    made = []
    monkeypatch.setattr(Matrix, "__init__", _counting(Matrix.__init__, made))
    c_path(None, *rows, CS, cv=5)
    assert len(made) == 1


def _counting(method, made):
    def counted(self, *arguments, **options):
        made.append(self)
        method(self, *arguments, **options)

    return counted


def test_row_weights_and_groups_count(rows, rng):
    X, y = rows
    weight, groups = rng.integers(0, 3, len(y)).astype(float), rng.integers(0, 6, len(y))
    estimator = LinearSVC(loss="hinge", tol=1e-8, max_iter=None)
    path = c_path(estimator, X, y, CS, cv=GroupKFold(3), groups=groups, sample_weight=weight)
    for k, (train, test) in enumerate(GroupKFold(3).split(X, y, groups)):
        model = clone(estimator).set_params(C=CS[1]).fit(X[train], y[train], sample_weight=weight[train])
        assert path.scores[k, 1] == pytest.approx(model.score(X[test], y[test]), abs=0.02)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_the_useful_range_is_found(loss, rows):
    X, y = rows
    path = c_path(LinearSVC(loss=loss, tol=1e-6, fit_intercept=False, max_iter=None), X, y)
    assert 4 <= len(path.Cs) < 40
    np.testing.assert_allclose(path.Cs[1:] / path.Cs[:-1], 10**0.5)
    first, second = path.coefs[0].ravel(), X.T @ y
    if loss == "hinge":  # below the first C all rows lose, and w is along X'y
        assert first @ second == pytest.approx(np.linalg.norm(first) * np.linalg.norm(second), rel=1e-3)
    last = path.coefs[-1].ravel()
    half = 0.5 * last @ last
    assert min(half, path.objectives[-1] - half) <= 1e-3 * path.objectives[-1]
    half = 0.5 * np.sum(path.coefs[-2] ** 2)
    assert min(half, path.objectives[-2] - half) > 1e-3 * path.objectives[-2]


def test_the_estimators_keep_the_best_model(rows):
    X, y = rows
    model = LinearSVCCV(Cs=CS, loss="hinge", tol=1e-7, cv=4, max_iter=None).fit(X, y)
    assert model.scores_.shape == (4, 4)
    assert model.scores_.mean(axis=0)[CS.index(model.C_)] == model.scores_.mean(axis=0).max()
    alone = LinearSVC(C=model.C_, loss="hinge", tol=1e-7, max_iter=None).fit(X, y)
    np.testing.assert_allclose(model.coef_, alone.coef_, atol=2e-3)
    np.testing.assert_array_equal(model.classes_, alone.classes_)
    assert (model.predict(X) == alone.predict(X)).mean() > 0.98
    assert model.gap_ <= 1e-7
    assert model.status_ == "converged"
    regression = LinearSVRCV(cv=3).fit(X, X @ np.arange(5.0))
    assert regression.score(X, X @ np.arange(5.0)) > 0.99
    assert regression.coef_.shape == (5,)


def test_stopping_short_is_said(rows):
    with pytest.warns(ConvergenceWarning, match="max_iter reached"):
        path = c_path(LinearSVC(loss="hinge", tol=1e-9, solver="newton", max_iter=1), *rows, CS)
    assert set(path.statuses) == {"max_iter reached"}


def test_time_is_limited(rows):
    with pytest.warns(ConvergenceWarning, match="max_seconds reached"):
        path = c_path(LinearSVC(max_seconds=0.0), *rows, CS)
    assert len(path.Cs) == 1


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"Cs": []}, "Cs must be positive numbers"),
        ({"Cs": [1.0, -1.0]}, "Cs must be positive numbers"),
        ({"Cs": [np.nan]}, "Cs must be positive numbers"),
        ({"estimator": LinearSVC(multi_class="crammer_singer")}, "c_path needs multi_class='ovr'"),
        ({"estimator": LinearSVC(stopping="kkt", solver="dcd")}, "c_path needs stopping='gap'"),
        ({"cv": [(np.arange(150), np.arange(0))]}, "fold 0 of cv has no rows to score"),
        ({"sample_weight": np.zeros(150)}, "at least one (non-zero number|must be positive)"),
    ],
)
def test_wrong_input_is_refused(change, match, rows):
    with pytest.raises(ValueError, match=match):
        c_path(**{"estimator": None, "X": rows[0], "y": rows[1], "Cs": CS, **change})


def test_the_order_of_arguments_is_that_of_grid_search(rows):
    ours, theirs = (inspect.signature(function).parameters.values() for function in (c_path, grid_search))
    positional = [[one.name for one in each if one.kind is not one.KEYWORD_ONLY] for each in (ours, theirs)]
    assert positional == [["estimator", "X", "y", "Cs"], ["estimator", "X", "y", "grid"]]
    with pytest.raises(TypeError, match=r"c_path takes the estimator first.*got a ndarray"):
        c_path(*rows, CS)


def test_a_fold_of_one_class_is_refused(rows):
    X, y = rows
    one = np.flatnonzero(y > 0)
    with pytest.raises(ValueError, match="fold 0 of cv trains on one class only"):
        c_path(None, X, y, CS, cv=[(one, np.arange(150))])
    with pytest.raises(ValueError, match="a path without cv has no scores"):
        _ = c_path(None, X, y, CS).best


def test_the_chosen_model_is_saved(rows, tmp_path):
    from widemargin import load_model, save_model

    X, y = rows
    for model, target in ((LinearSVCCV(Cs=CS, cv=3), y), (LinearSVRCV(Cs=CS, cv=3), X @ np.arange(5.0))):
        model.fit(X, target)
        save_model(model, tmp_path / "model")
        loaded = load_model(tmp_path / "model")
        assert loaded.C == model.C_
        np.testing.assert_array_equal(loaded.predict(X), model.predict(X))


def test_many_columns_and_a_free_intercept_are_for_planes(rng):
    X, y = rng.standard_normal((40, 400)), np.arange(40) % 2
    path = c_path(LinearSVC(penalize_intercept=False, tol=1e-3), X, y, [1e-3, 1e-2], cv=3)
    assert path.solver == "ocas"
    assert (path.gaps <= 1e-3).all()


@pytest.mark.parametrize("solver", ["auto", "dcd", "newton", "ocas"])
@pytest.mark.parametrize("kind", [LinearSVCCV, LinearSVRCV])
def test_the_chosen_model_has_its_history_as_every_fit_has(kind, solver, rows, tmp_path):
    X, y = rows
    model = kind(Cs=CS, cv=3, solver=solver, max_iter=None).fit(X, y)
    assert model.history_.dtype.names == LinearSVC().fit(X, y).history_.dtype.names
    assert model.history_["gap"][-1] == model.gap_
    assert model.history_["primal"][-1] == model.objective_
    assert [len(of_C) for of_C in model.path_.histories] == [1] * len(CS)
    save_model(model, tmp_path / "model")
    np.testing.assert_array_equal(load_model(tmp_path / "model").history_, model.history_)


def test_several_classes_have_a_history_each():
    X, y = load_iris(return_X_y=True)
    model = LinearSVCCV(Cs=[0.1, 1.0], cv=3, penalize_intercept=False).fit(X, y)
    assert len(model.history_) == 3
    assert max(history["gap"][-1] for history in model.history_) == model.gap_


def test_a_path_prints_its_values_and_the_best_of_them():
    X, y = load_iris(return_X_y=True)
    path = c_path(LinearSVC(), X, y, [0.01, 1.0, 100.0], cv=3)
    assert repr(path).startswith(
        f"CPath(3 values of C from 0.01 to 100, 3 folds: {path.solver}, converged, largest gap"
    )
    assert repr(path).endswith(f"best C {path.Cs[path.best]:g}: mean score {path.scores[:, path.best].mean():.6g})")
    assert "folds" not in repr(c_path(LinearSVC(), X, y, [0.01]))
