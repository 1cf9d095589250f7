"""Losses given by their numbers: they are minimised as they are written, with every parameter, or refused by name."""

import pickle
from io import BytesIO

import numpy as np
import pytest
from scipy.sparse import random_array
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_iris
from sklearn.linear_model import QuantileRegressor
from sklearn.model_selection import GridSearchCV
from sklearn.preprocessing import scale

from widemargin import (
    LinearSVC,
    LinearSVR,
    LinearSVRCV,
    RowLoss,
    c_path,
    certificates,
    load_model,
    save_model,
    train_file,
)
from widemargin.data.matrix import Matrix
from widemargin.problems.formulations import DualQP
from widemargin.selection.target_scaling import TargetScale
from widemargin.solvers.registry import specs_of

WIDTH = 20.0
HUBER = RowLoss(lower=-1.0, upper=1.0, curvature=WIDTH)
SOLVERS = sorted(specs_of(DualQP))
NAMED_SVC = {"hinge": RowLoss(0, 1), "squared_hinge": RowLoss(0, np.inf, 0.5)}
NAMED_SVR = {"epsilon_insensitive": RowLoss(-1, 1), "squared_epsilon_insensitive": RowLoss(-np.inf, np.inf, 0.5)}


def pinball(quantile):
    return RowLoss(lower=quantile - 1.0, upper=quantile)


def huber_losses(r, width=WIDTH, epsilon=0.0):
    """Huber's loss as it is written down: quadratic up to the width, linear beyond."""
    beyond = np.maximum(np.abs(r) - epsilon, 0.0)
    return np.where(beyond <= width, beyond**2 / (2 * width), beyond - width / 2)


@pytest.fixture(scope="module")
def diabetes():
    X, y = load_diabetes(return_X_y=True)
    return scale(X), y


def signs(rng, n_rows=200):
    X = rng.standard_normal((n_rows, 5))
    return X, np.where(X[:, 0] + rng.standard_normal(n_rows) > 0.3, 1, -1)


@pytest.mark.parametrize("penalized", [True, False])
@pytest.mark.parametrize("name", NAMED_SVC)
def test_the_losses_of_classification_are_row_losses(name, penalized, rng):
    X, y = signs(rng)
    weight = rng.integers(0, 3, len(y))
    models = [
        LinearSVC(loss=loss, penalize_intercept=penalized, class_weight={1: 3.0}).fit(X, y, weight)
        for loss in (name, NAMED_SVC[name])
    ]
    np.testing.assert_array_equal(models[0].coef_, models[1].coef_)
    np.testing.assert_array_equal(models[0].intercept_, models[1].intercept_)


@pytest.mark.parametrize("penalized", [True, False])
@pytest.mark.parametrize("name", NAMED_SVR)
def test_the_losses_of_regression_are_row_losses(name, penalized, diabetes, rng):
    X, y = diabetes
    weight = rng.integers(0, 3, len(y))
    models = [
        LinearSVR(epsilon=5.0, loss=loss, penalize_intercept=penalized).fit(X, y, weight)
        for loss in (name, NAMED_SVR[name])
    ]
    np.testing.assert_array_equal(models[0].coef_, models[1].coef_)
    np.testing.assert_array_equal(models[0].intercept_, models[1].intercept_)


@pytest.mark.parametrize("epsilon", [0.0, 7.0])
def test_hubers_loss_of_a_row_is_what_one_would_write_down(epsilon, rng):
    r, cost = 60.0 * rng.standard_normal(300), rng.uniform(0.0, 2.0, 300)
    cost[:20] = 0.0
    problem = HUBER.regression(Matrix(np.zeros((300, 1))), r, cost, epsilon)
    np.testing.assert_allclose(
        certificates.losses(problem, np.zeros(300)), cost * huber_losses(r, epsilon=epsilon), rtol=1e-12
    )


def test_the_pinball_loss_of_a_margin_is_what_one_would_write_down(rng):
    sign, scores = np.where(rng.random(300) < 0.5, 1.0, -1.0), rng.standard_normal(300)
    cost = rng.uniform(0.0, 2.0, 300)
    problem = RowLoss(lower=-0.25, upper=1.0).classification(Matrix(np.zeros((300, 1))), sign, cost)
    r = 1.0 - sign * scores
    np.testing.assert_allclose(certificates.losses(problem, scores), cost * np.maximum(r, -0.25 * r), rtol=1e-12)


@pytest.mark.parametrize("penalized", [True, False])
@pytest.mark.parametrize("loss", [HUBER, pinball(0.9)], ids=["Huber", "pinball"])
@pytest.mark.parametrize("solver", SOLVERS)
def test_a_solver_minimises_the_loss_or_is_refused_by_name(solver, loss, penalized, diabetes):
    X, y = diabetes
    options = {"C": 3.0, "loss": loss, "penalize_intercept": penalized, "tol": 1e-8, "max_iter": 100_000}
    model = LinearSVR(solver=solver, intercept_scaling=10.0, **options)
    no_free_intercept = {"dcd", "avsf", "climb", "sbm"} if not penalized else set()
    only_hinges = {"svmperf", "ocas"} if loss is HUBER else set()
    if solver in no_free_intercept | only_hinges:
        why = "penalize_intercept=False needs" if solver in no_free_intercept else f"solver='{solver}' takes losses"
        with pytest.raises(ValueError, match=why):
            model.fit(X, y)
        return
    model.fit(X, y)
    r = y - model.predict(X)
    losses = huber_losses(r) if loss is HUBER else np.maximum(0.9 * r, -0.1 * r)
    constant = model.intercept_[0] / 10.0 if penalized else 0.0
    objective = 0.5 * (model.coef_ @ model.coef_ + constant**2) + 3.0 * losses.sum()
    best = LinearSVR(solver="newton", intercept_scaling=10.0, **options).fit(X, y)
    assert model.gap_ <= 1e-8
    assert model.objective_ == pytest.approx(objective, rel=1e-10)
    assert model.objective_ == pytest.approx(best.objective_, rel=1e-7)


def test_an_intercept_that_is_not_penalised_is_where_the_slopes_of_the_losses_sum_to_zero(diabetes):
    X, y = diabetes
    for penalized in (True, False):
        model = LinearSVR(C=0.1, loss=HUBER, penalize_intercept=penalized).fit(X, y)
        total = np.clip((y - model.predict(X)) / WIDTH, -1.0, 1.0).sum()
        assert (abs(total) < 1e-6) == (not penalized)


def test_the_pinball_loss_gives_the_quantile_of_scikit_learn(diabetes):
    X, y = diabetes
    peer = QuantileRegressor(quantile=0.8, alpha=0.0).fit(X, y)
    model = LinearSVR(C=1e6, loss=pinball(0.8), penalize_intercept=False, tol=1e-10).fit(X, y)
    r, peers = y - model.predict(X), y - peer.predict(X)
    assert np.maximum(0.8 * r, -0.2 * r).sum() == pytest.approx(np.maximum(0.8 * peers, -0.2 * peers).sum(), rel=1e-6)


def test_several_classes_have_a_problem_each(rng):
    X, y = load_iris(return_X_y=True)
    loss = RowLoss(lower=0.0, upper=1.0, curvature=0.3)
    model = LinearSVC(loss=loss, tol=1e-8).fit(X, y)
    for k, coef, intercept in zip(range(3), model.coef_, model.intercept_, strict=True):
        alone = LinearSVC(loss=loss, tol=1e-8).fit(X, y == k)
        np.testing.assert_allclose(np.append(coef, intercept), np.append(alone.coef_, alone.intercept_), rtol=1e-6)


def test_crammer_and_singers_problem_refuses_another_loss():
    model = LinearSVC(loss=RowLoss(0, 1), multi_class="crammer_singer")
    with pytest.raises(ValueError, match=r"crammer_singer' has a loss of its own, got loss=RowLoss\(lower=0.0"):
        model.fit(*load_iris(return_X_y=True))


def test_auto_refuses_what_no_solver_takes_and_says_the_way_out(rng):
    X = random_array((4000, 4000), density=0.001, format="csr", rng=rng)
    model = LinearSVR(loss=HUBER, penalize_intercept=False)
    with pytest.raises(ValueError, match=r"has only 'newton' .* penalize_intercept=False.*Use penalize_intercept=True"):
        model.fit(X, X.sum(axis=1))
    assert LinearSVR(loss=HUBER).fit(X, X.sum(axis=1)).gap_ <= 1e-4


@pytest.mark.parametrize(
    ("numbers", "words"),
    [
        ({"lower": 0.1, "upper": 1.0}, r"must have lower <= 0 <= upper.*got lower=0.1, upper=1.0"),
        ({"lower": -1.0, "upper": -0.5}, "must have lower <= 0 <= upper"),
        ({"lower": 0, "upper": 0}, "no row would have a loss"),
        ({"lower": -1.0, "upper": 1.0, "curvature": -1.0}, "curvature .* not negative, got -1.0"),
        ({"lower": -1.0, "upper": 1.0, "curvature": np.inf}, "curvature .* must be finite"),
        ({"lower": 0.0, "upper": np.inf}, "infinite slope needs a positive curvature"),
        ({"lower": np.nan, "upper": 1.0}, "lower of a RowLoss must be a number, got nan"),
        ({"lower": 0.0, "upper": "1"}, "upper of a RowLoss must be a number, got '1'"),
    ],
)
def test_numbers_that_are_no_loss_are_refused(numbers, words):
    with pytest.raises(ValueError, match=words):
        RowLoss(**numbers)


def test_a_loss_is_a_parameter_like_others(diabetes):
    X, y = diabetes
    model = LinearSVR(loss=HUBER, C=2.0)
    assert clone(model).get_params()["loss"] == HUBER
    assert "loss=RowLoss(lower=-1.0, upper=1.0, curvature=20.0)" in repr(model)
    model.fit(X, y)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(X), model.predict(X))
    search = GridSearchCV(LinearSVR(C=10.0), {"loss": ["epsilon_insensitive", HUBER, pinball(0.5)]}, cv=3).fit(X, y)
    assert search.best_params_["loss"] in ("epsilon_insensitive", HUBER, pinball(0.5))


def test_a_loss_of_another_kind_is_refused(diabetes):
    with pytest.raises(ValueError, match=r"'loss' parameter of LinearSVR .*\.RowLoss'"):
        LinearSVR(loss=(-1.0, 1.0)).fit(*diabetes)


def test_a_model_file_keeps_the_loss_and_other_formats_refuse_it(diabetes, tmp_path):
    X, y = diabetes
    for loss in (HUBER, NAMED_SVR["squared_epsilon_insensitive"]):
        model = LinearSVR(loss=loss).fit(X, y)
        save_model(model, tmp_path / "model")
        loaded = load_model(tmp_path / "model")
        assert loaded.loss == loss
        np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
        with pytest.raises(ValueError, match=r"LIBLINEAR has no solver for loss=RowLoss"):
            save_model(model, tmp_path / "model", format="liblinear")


def test_paths_of_c_take_the_loss(diabetes):
    X, y = diabetes
    path = c_path(LinearSVR(loss=HUBER, tol=1e-8), X, y, [0.1, 1.0])
    for C, coef in zip(path.Cs, path.coefs, strict=True):
        alone = LinearSVR(loss=HUBER, tol=1e-8, C=C).fit(X, y)
        np.testing.assert_allclose(coef[0], alone.coef_, rtol=1e-4)
    chosen = LinearSVRCV([0.1, 1.0], cv=3, loss=HUBER, tol=1e-8).fit(X, y)
    alone = LinearSVR(loss=HUBER, tol=1e-8, C=chosen.C_).fit(X, y)
    np.testing.assert_allclose(chosen.coef_, alone.coef_, rtol=1e-4)


def test_a_model_of_scaled_targets_is_converted_to_the_original_units(diabetes):
    X, y = diabetes
    targets = TargetScale(float(y.mean()), float(y.std()))
    options = {"penalize_intercept": False, "tol": 1e-10}
    model = LinearSVR(C=2.0, epsilon=0.01, loss=RowLoss(-1, 1, 0.3), **options).fit(X, targets.apply(y))
    targets.restore(model)
    alone = LinearSVR(C=model.C, epsilon=model.epsilon, loss=model.loss, **options).fit(X, y)
    np.testing.assert_allclose(model.coef_, alone.coef_, rtol=1e-6)
    assert model.objective_ == pytest.approx(alone.objective_, rel=1e-8)


def test_training_from_a_file_names_the_numbers_of_the_loss(tmp_path):
    trained = train_file(LinearSVR(loss=HUBER), BytesIO(b"1 1:2\n-1 1:-3\n3 1:1\n"), tmp_path / "model")
    assert trained.description == "linear SVR, RowLoss(lower=-1.0, upper=1.0, curvature=20.0)"
    assert load_model(tmp_path / "model").loss == HUBER
