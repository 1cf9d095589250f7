"""Scaled targets: the model that comes back is that of the unscaled ones, with its certificate."""

import numpy as np
import pytest
from sklearn.metrics import get_scorer

from widemargin import SVR, LinearSVR, NuSVR
from widemargin.data.matrix import Matrix
from widemargin.problems import certificates, regression
from widemargin.selection.target_scaling import scale_of


@pytest.fixture
def rows(rng):
    X = rng.standard_normal((60, 3))
    return X, 1000.0 + 300.0 * X[:, 0] + 100.0 * np.sin(X[:, 1]) + 5.0 * rng.standard_normal(60)


@pytest.mark.parametrize(
    "machine",
    [
        SVR(kernel="rbf", gamma=0.3, C=10.0, epsilon=0.05, tol=1e-9),
        SVR(kernel="linear", C=2.0, epsilon=0.1, tol=1e-9),
        NuSVR(kernel="rbf", gamma=0.3, C=10.0, nu=0.4, tol=1e-9),
        LinearSVR(C=3.0, epsilon=0.1, penalize_intercept=False, tol=1e-12),
        LinearSVR(loss="squared_epsilon_insensitive", C=3.0, epsilon=0.1, penalize_intercept=False, tol=1e-12),
    ],
    ids=lambda model: f"{type(model).__name__} {getattr(model, 'loss', '')}",
)
def test_it_is_the_model_of_the_unscaled_targets_with_its_own_parameters(machine, rows):
    X, y = rows
    scale = scale_of(y)
    scaled = machine.fit(X, scale.apply(y))
    before = scale.undo(scaled.predict(X))
    scale.restore(scaled)
    np.testing.assert_allclose(scaled.predict(X), before, rtol=1e-12)
    direct = type(scaled)(**scaled.get_params()).fit(X, y)
    np.testing.assert_allclose(scaled.predict(X), direct.predict(X), atol=1e-4 * scale.spread)
    assert scaled.objective_ == pytest.approx(direct.objective_, rel=1e-6)
    assert scaled.history_["primal"][-1] == pytest.approx(scaled.objective_, rel=1e-6)
    for ours, theirs in zip(getattr(scaled, "facts_", ()), getattr(direct, "facts_", ()), strict=True):
        names = {"obj", "rho", "epsilon"} & set(ours)
        assert {name: ours[name] for name in names} == pytest.approx({name: theirs[name] for name in names}, rel=1e-4)


def test_a_penalised_intercept_is_penalised_without_the_mean(rows):
    X, y = rows
    scale = scale_of(y)
    model = LinearSVR(C=3.0, epsilon=0.1, tol=1e-9, solver="newton").fit(X, scale.apply(y))
    scale.restore(model)
    problem = regression.LOSSES[model.loss](
        Matrix(X, constant=1.0), y - scale.mean, np.full(60, model.C), model.epsilon
    )
    w = np.append(model.coef_, model.intercept_ - scale.mean)
    assert certificates.primal(problem, w) == pytest.approx(model.objective_, rel=1e-9)


@pytest.mark.parametrize("name", ["neg_mean_squared_error", "neg_mean_absolute_error", "r2", "neg_max_error"])
def test_scores_are_those_of_predictions_in_the_units_of_the_file(name, rows):
    X, y = rows
    scale = scale_of(y)
    model = SVR(C=10.0).fit(X, scale.apply(y))
    score = scale.scorer(name)(model, X, scale.apply(y))
    scale.restore(model)
    assert score == pytest.approx(get_scorer(name)(model, X, y), rel=1e-9)
    assert scale.scorer(name).__name__ == name


def test_targets_that_are_all_the_same_are_refused():
    with pytest.raises(ValueError, match="their standard deviation is 0; leave --scale-targets out"):
        scale_of(np.ones(3))
