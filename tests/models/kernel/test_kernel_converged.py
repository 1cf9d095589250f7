"""What "converged" means: a small violation in units of the decision function, and a gap that proves the model good."""

import warnings

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_wine

from widemargin import SVC, SVR, NuSVC, NuSVR, OneClassSVM

CONVERGED, STALLED = "converged", "no further progress in double precision"


def raw_measurements(n_rows=300):
    """Rows with columns of natural sizes, 1 to 1000, and noisy labels: no nu below the noise is easy."""
    random = np.random.default_rng(5)
    X = random.standard_normal((n_rows, 8)) * np.array([3.0, 30.0, 20.0, 15.0, 100.0, 8.0, 0.3, 1000.0])
    labels = np.where(X @ (1.0 / X.std(axis=0)) + 3.0 * random.standard_normal(n_rows) > 0, 1, -1)
    return X, labels


def nearly_dependent():
    random = np.random.default_rng(2)
    X = np.repeat(random.standard_normal((10, 6)), 6, axis=0) + 1e-5 * random.standard_normal((60, 6))
    return X, X @ random.standard_normal(6) + 0.1 * random.standard_normal(60)


def tall(n_rows=150, n_features=40):
    random = np.random.default_rng(0)
    X = random.standard_normal((n_rows, n_features)) * 10 ** random.uniform(-1, 1, n_features)
    return X, np.sin(X @ random.standard_normal(n_features)) + random.standard_normal(n_rows)


def separable():
    random = np.random.default_rng(1)
    X = random.standard_normal((80, 2))
    return X + 4.0 * np.sign(X[:, :1]), np.sign(X[:, 0])


SETS = {
    "raw": raw_measurements(),
    "cancer": load_breast_cancer(return_X_y=True),
    "wine": load_wine(return_X_y=True),
    "dependent": nearly_dependent(),
    "tall": tall(),
    "separable": separable(),
}
PROBLEMS = {
    **{f"nusvc-raw-{nu}": ("raw", NuSVC(nu=nu)) for nu in (0.05, 0.1, 0.2, 0.3)},
    **{f"nusvc-raw-linear-{nu}": ("raw", NuSVC(nu=nu, kernel="linear")) for nu in (0.05, 0.3)},
    **{f"nusvc-cancer-{nu}": ("cancer", NuSVC(nu=nu)) for nu in (0.01, 0.05, 0.2)},
    "nusvc-cancer-linear": ("cancer", NuSVC(nu=0.05, kernel="linear")),
    "nusvc-wine": ("wine", NuSVC(nu=0.05)),
    "nusvc-wine-linear-tight": ("wine", NuSVC(nu=0.05, kernel="linear", tol=1e-5)),
    **{f"svc-cancer-linear-{C:g}": ("cancer", SVC(kernel="linear", C=C)) for C in (1.0, 1e3)},
    **{f"svc-cancer-{C:g}": ("cancer", SVC(C=C)) for C in (1.0, 1e6, 1e10)},
    **{f"svc-separable-{C:g}": ("separable", SVC(kernel="linear", C=C)) for C in (1e3, 1e10, 1e20)},
    "svr-tall": ("tall", SVR(kernel="linear", C=3e4)),
    "svr-tall-rbf": ("tall", SVR(C=1e4, epsilon=0.0)),
    "nusvr-dependent": ("dependent", NuSVR(tol=1e-6)),
    "nusvr-dependent-linear": ("dependent", NuSVR(kernel="linear", C=1e3, tol=1e-6)),
    "oneclass-raw": ("raw", OneClassSVM(nu=0.01)),
    "oneclass-tiny": ("raw", OneClassSVM(nu=0.1, kernel="poly", gamma=1e-6)),
}


@pytest.mark.parametrize("stopping", ["kkt", "gap"])
@pytest.mark.parametrize("name", PROBLEMS)
def test_converged_implies_a_small_gap(name, stopping):
    which, model = PROBLEMS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = model.set_params(stopping=stopping).fit(*SETS[which])
    assert model.status_ in (CONVERGED, STALLED)
    if model.status_ == CONVERGED:
        assert model.gap_ <= (model.tol if stopping == "gap" else min(10 * model.tol, 0.1))
    assert model.status_ == CONVERGED or name.startswith(("nusvc-raw-linear", "oneclass")), "only without a margin"


@pytest.mark.parametrize("nu", [0.05, 0.1, 0.2, 0.3])
def test_nusvc_below_the_noise_predicts_as_a_tight_fit_does(nu):
    X, y = SETS["raw"]
    usual, tight = NuSVC(nu=nu).fit(X, y), NuSVC(nu=nu, tol=1e-5).fit(X, y)
    assert usual.status_ == CONVERGED
    assert usual.gap_ <= 1e-2
    assert tight.gap_ <= 1e-4
    near = np.abs(tight.decision_function(X)) <= 0.1  # decisions are in units of the margin
    np.testing.assert_array_equal(usual.predict(X)[~near], tight.predict(X)[~near])


@pytest.mark.parametrize("solver", ["svmlight", "smo"])
@pytest.mark.parametrize("tol", [1e-1, 1e-3, 1e-5])
def test_stopping_by_the_gap_reaches_the_gap(solver, tol):
    X, y = SETS["wine"]
    model = SVC(stopping="gap", tol=tol, solver=solver).fit(X, y)
    assert model.status_ == CONVERGED
    assert model.gap_ <= tol


@pytest.mark.parametrize("tol", [1e-3, 0.1, 1.0])
@pytest.mark.parametrize("nu", [0.1, 0.5, 1.0])
def test_the_tube_of_nu_svr_is_never_negative_and_the_objective_is_that_of_the_model(tol, nu):
    X, y = SETS["tall"]
    model = NuSVR(nu=nu, tol=tol, C=2.0, kernel="linear").fit(X, y)
    epsilon, w = model.facts_[0]["epsilon"], model.coef_.ravel()
    assert epsilon >= 0.0
    loss = np.maximum(np.abs(y - model.predict(X)) - epsilon, 0.0)
    assert model.objective_ == pytest.approx(0.5 * w @ w + 2.0 * (loss + nu * epsilon).sum(), rel=1e-9)


def test_nu_svc_without_a_margin_says_so_and_its_objective_is_that_of_the_model():
    random = np.random.default_rng(0)
    X, y = random.standard_normal((60, 3)), np.where(np.arange(60) % 2, 1, -1)  # labels by chance: hulls overlap
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        model = NuSVC(nu=0.05, kernel="linear").fit(X, y)
    assert model.status_ == STALLED
    first, second = (str(one.message) for one in told)
    assert first.startswith("nu=0.05 is too small for classes -1 and 1, which overlap by more")
    assert model.status_ in second
    assert second.endswith("raise nu.")
    w = model.coef_.ravel()
    margin = 1.0 / model.facts_[0]["C"] if "C" in model.facts_[0] else 0.0
    size = margin if margin else 1.0
    loss = np.maximum(margin - size * y * model.decision_function(X), 0.0).sum()
    assert model.objective_ == pytest.approx(0.5 * size**2 * w @ w - 0.05 * 60 * margin + loss, rel=1e-6, abs=1e-12)


def test_a_target_that_is_none_is_refused():
    with pytest.raises(ValueError, match=r"Input y contains None, not a value: row 1"):
        SVR().fit([[0.0], [1.0], [2.0]], np.array([1.0, None, 2.0], dtype=object))


def test_targets_far_below_tol_are_fitted_all_the_same():
    # The violation of a model that is 0 everywhere is below tol from the start.
    X = np.linspace(0, 1, 40).reshape(-1, 1)
    model = SVR(kernel="linear", epsilon=0.0, C=1e3).fit(X, 1e-5 * X.ravel())
    assert model.gap_ <= 1e-2
    np.testing.assert_allclose(model.predict(X), 1e-5 * X.ravel(), rtol=0.2, atol=2e-7)
