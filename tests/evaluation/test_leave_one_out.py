"""Bounds of the leave-one-out error are never below the error, and what cannot be estimated is refused."""

import numpy as np
import pytest
from sklearn.base import clone

from widemargin import SVC, SVR, LinearSVC, leave_one_out_estimates


def problem(seed):
    """Return rows, labels and an estimator: small, of random overlap, kernel and C."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(12, 36)), int(rng.integers(1, 5))
    y = np.where(rng.random(n) < rng.uniform(0.3, 0.7), 1, -1)
    y[:2] = [1, -1]
    X = rng.standard_normal((n, d)) + rng.uniform(0.0, 2.0) * y[:, np.newaxis]
    kernel = ["linear", "rbf", "poly"][seed % 3]
    options = {"gamma": float(rng.uniform(0.1, 2.0)), "coef0": 1.0, "degree": 2}
    return X, y, SVC(C=float(10.0 ** rng.uniform(-2, 1.5)), kernel=kernel, tol=1e-8, **options)


def errors_by_fits(X, y, model):
    """Return for each row whether the model of the others errs on it."""
    errs = np.zeros(len(y), bool)
    for t in range(len(y)):
        others = np.arange(len(y)) != t
        if len(np.unique(y[others])) < 2:
            errs[t] = True
            continue
        fitted = clone(model).fit(X[others], y[others])
        errs[t] = y[t] * fitted.decision_function(X[t : t + 1])[0] <= 0.0
    return errs


@pytest.mark.parametrize("part", range(10))
def test_bounds_are_never_optimistic(part):
    """20 problems in each part; the error, and recall and precision, which are bounded from below."""
    for seed in range(20 * part, 20 * part + 20):
        X, y, model = problem(seed)
        errs, fitted = errors_by_fits(X, y, model), clone(model).fit(X, y)
        positive = np.sum(y > 0)
        missed, wrong = np.sum(errs & (y > 0)), np.sum(errs & (y < 0))
        for depth in (0, 20):
            found = leave_one_out_estimates(fitted, X, y, depth=depth)
            assert not (errs & ~found.rows).any(), (seed, depth)
            assert found.error >= errs.mean()
            assert found.recall <= 1.0 - missed / positive
            if positive > missed:
                assert found.precision <= (positive - missed) / (positive - missed + wrong) + 1e-12


def test_a_depth_makes_bounds_sharper():
    sharper = 0
    for seed in range(30):
        X, y, model = problem(seed)
        fitted = model.fit(X, y)
        plain, deep = (leave_one_out_estimates(fitted, X, y, depth=depth) for depth in (0, 20))
        assert not (deep.rows & ~plain.rows).any()
        sharper += deep.error < plain.error
    assert sharper > 5


@pytest.mark.parametrize("seed", range(6))
def test_exact_measures_are_those_of_fits_without_each_row(seed):
    X, y, model = problem(seed)
    found = leave_one_out_estimates(clone(model).fit(X, y), X, y, exact=True)
    errs = errors_by_fits(X, y, model)
    assert found.exact_error == errs.mean()
    assert found.exact_recall == 1.0 - np.sum(errs & (y > 0)) / np.sum(y > 0)
    assert found.n_fits <= np.sum(found.rows)
    assert leave_one_out_estimates(clone(model).fit(X, y), X, y).exact_error is None


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("seed", range(10))
def test_a_linear_machine_with_a_penalised_intercept_has_bounds(seed, fit_intercept):
    X, y, machine = problem(3 * seed)
    model = LinearSVC(loss="hinge", C=machine.C, fit_intercept=fit_intercept, solver="dcd", tol=1e-9, max_iter=None)
    found = leave_one_out_estimates(clone(model).fit(X, y), X, y)
    assert not (errors_by_fits(X, y, model) & ~found.rows).any()


def test_rows_on_paper():
    """Rows -1 and 1 on a line, C = 1: α = ½ for both, no loss, and |φ - φ'|² = 4, so that 2 α R² = 2."""
    X, y = np.array([[-1.0], [1.0]]), np.array([-1, 1])
    model = SVC(kernel="linear").fit(X, y)
    assert leave_one_out_estimates(model, X, y).error == 1.0
    assert leave_one_out_estimates(model, X, y, squared_radius=0.9).error == 0.0


def test_other_rows_and_models_are_refused(rng):
    X, y = rng.standard_normal((30, 2)), np.repeat([1, -1], 15)
    model = SVC().fit(X, y)
    with pytest.raises(ValueError, match="the 30 rows of the fit, got 29"):
        leave_one_out_estimates(model, X[1:], y[1:])
    with pytest.raises(ValueError, match="rows and labels that the model was fitted to"):
        leave_one_out_estimates(model, X, -y)
    with pytest.raises(ValueError, match="one of the two labels"):
        leave_one_out_estimates(model, X, y + 1)
    with pytest.raises(ValueError, match="rho must be above 0 and at most 2, got 3"):
        leave_one_out_estimates(model, X, y, rho=3.0)
    with pytest.raises(ValueError, match="depth must be at least 0, got -1"):
        leave_one_out_estimates(model, X, y, depth=-1)
    for other in (SVR().fit(X, y), LinearSVC().fit(X, y), SVC().fit(X, np.arange(30) % 3)):
        with pytest.raises(TypeError, match="leave_one_out_estimates needs a fitted SVC"):
            leave_one_out_estimates(other, X, y)
    with pytest.raises(TypeError, match="a kernel that is computed from features"):
        leave_one_out_estimates(SVC(kernel="precomputed").fit(X @ X.T, y), X @ X.T, y)
