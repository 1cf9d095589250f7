"""LinearSVC and LinearSVR by cutting planes: the same models as by dual solvers, and an intercept without penalty."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.svm import SVC as PeerSVC
from sklearn.svm import SVR as PeerSVR

from widemargin import ConvergenceWarning, LinearSVC, LinearSVR
from widemargin.solvers import finishing

EACH_CONTAINER = pytest.mark.parametrize("container", [np.asarray, csr_array], ids=["dense", "sparse"])


@pytest.fixture
def rows(rng):
    X = rng.standard_normal((200, 5)) + 2.0
    return X, X @ rng.standard_normal(5) + 0.5 * rng.standard_normal(200)


def hinge_objective(X, y, coef, intercept, C):
    return 0.5 * float(np.sum(coef**2)) + C * np.maximum(0.0, 1.0 - y * (X @ coef.ravel() + intercept)).sum()


def tube_objective(X, y, coef, intercept, C, epsilon):
    return 0.5 * float(np.sum(coef**2)) + C * np.maximum(0.0, abs(y - X @ coef.ravel() - intercept) - epsilon).sum()


@EACH_CONTAINER
@pytest.mark.parametrize("solver", ["ocas", "svmperf"])
def test_a_classifiers_free_intercept_is_that_of_a_kernel_machine(solver, container, rows):
    X, y = rows[0], np.where(rows[1] > np.median(rows[1]), 1, -1)
    options = {"loss": "hinge", "penalize_intercept": False, "solver": solver, "tol": 1e-6, "max_iter": None}
    model = LinearSVC(C=0.5, **options).fit(container(X), y)
    peer = PeerSVC(kernel="linear", C=0.5, tol=1e-8).fit(X, y)
    best = hinge_objective(X, y, peer.coef_, peer.intercept_, 0.5)
    assert model.objective_ == pytest.approx(best, rel=2e-6)
    assert hinge_objective(X, y, model.coef_, model.intercept_, 0.5) == pytest.approx(model.objective_, rel=1e-9)
    assert model.gap_ <= 1e-6


def test_a_regressions_free_intercept_is_that_of_a_kernel_machine(rows):
    X, y = rows
    model = LinearSVR(C=0.5, epsilon=0.2, penalize_intercept=False, solver="ocas", tol=1e-6, max_iter=None).fit(X, y)
    peer = PeerSVR(kernel="linear", C=0.5, epsilon=0.2, tol=1e-8).fit(X, y)
    best = tube_objective(X, y, peer.coef_, peer.intercept_, 0.5, 0.2)
    assert model.objective_ == pytest.approx(best, rel=2e-6)
    assert tube_objective(X, y, model.coef_, model.intercept_, 0.5, 0.2) == pytest.approx(model.objective_, rel=1e-9)


def test_without_a_penalty_a_shift_of_the_features_changes_only_the_intercept(rows):
    X, y = rows[0], rows[1] > 0
    here, there = (LinearSVC(penalize_intercept=False, tol=1e-8, max_iter=None).fit(X + move, y) for move in (0, 100))
    np.testing.assert_allclose(here.coef_, there.coef_, atol=1e-3)
    assert here.solver_ == "newton (a small problem)"


@EACH_CONTAINER
@pytest.mark.parametrize(
    ("model", "loss"),
    [(LinearSVC, "hinge"), (LinearSVC, "squared_hinge"), (LinearSVR, "epsilon_insensitive")],
)
def test_planes_and_multipliers_reach_the_same_objective(model, loss, container, rows):
    X, y = container(rows[0]), np.sign(rows[1]) if model is LinearSVC else rows[1]
    options = {"loss": loss, "tol": 1e-7, "max_iter": None}
    by_planes, by_multipliers = (model(solver=solver, **options).fit(X, y) for solver in ("ocas", "dcd"))
    assert by_planes.objective_ == pytest.approx(by_multipliers.objective_, rel=1e-6)
    np.testing.assert_allclose(by_planes.predict(X), by_multipliers.predict(X), atol=1e-2)


def test_several_classes_have_a_problem_each(rows):
    X, y = rows[0], np.digitize(rows[1], [-1.0, 1.0])
    model = LinearSVC(loss="hinge", solver="ocas", penalize_intercept=False, n_jobs=2, max_iter=None).fit(X, y)
    assert model.coef_.shape == (3, 5)
    assert model.intercept_.shape == (3,)
    assert len(model.history_) == 3


def test_a_warm_start_begins_with_the_last_weights(rows):
    X, y = rows[0], np.sign(rows[1])
    for options in ({}, {"penalize_intercept": False}, {"fit_intercept": False}):
        model = LinearSVC(loss="hinge", solver="ocas", warm_start=True, tol=1e-6, max_iter=None, **options).fit(X, y)
        objective = model.objective_
        assert model.fit(X, y).history_["primal"][0] == pytest.approx(objective, rel=1e-9)


def test_a_fit_by_planes_leaves_no_multipliers_of_another(rows, monkeypatch):
    monkeypatch.setattr(finishing, "is_small", lambda problem: False)  # these are solved exactly, with dual variables
    X, y = rows[0], np.sign(rows[1])
    model = LinearSVC(solver="dcd", max_iter=None).fit(X, y)
    assert hasattr(model, "dual_coef_")
    assert not hasattr(model.set_params(solver="ocas").fit(X, y), "dual_coef_")


def test_stopping_short_is_told_in_planes(rows):
    with pytest.warns(ConvergenceWarning, match=r"ocas stopped after 2 planes \(max_iter reached\)"):
        LinearSVC(C=100.0, solver="ocas", max_iter=2).fit(rows[0], np.sign(rows[1]))
