"""Fits that have every compiled loop compiled, for dense and sparse rows of either precision."""

import warnings
from itertools import product

import numpy as np
from scipy.sparse import csr_matrix

from tests.certificates.nasty import CLASSIFICATION, DUAL_SOLVERS, INTERCEPTS, REGRESSION, SOLVERS


def rows():
    """Yield small sets of rows, dense and sparse, in either precision."""
    X = np.random.default_rng(0).standard_normal((40, 3))
    for dtype, form in product((np.float64, np.float32), (np.array, csr_matrix)):
        yield form(X.astype(dtype))


def quietly(model, *arguments):
    """Fit without warnings: nobody judges these."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(*arguments)


def linear_fits():
    """Fit every linear solver with every loss and intercept."""
    from widemargin import LinearSVC, LinearSVR

    rng = np.random.default_rng(1)
    y = np.where(rng.random(40) < 0.5, 1.0, -1.0)
    for X, loss, intercept, solver in product(rows(), (*CLASSIFICATION, *REGRESSION), INTERCEPTS, SOLVERS):
        if intercept == "free" and solver in DUAL_SOLVERS:
            continue
        options = {
            "loss": loss,
            "solver": solver,
            "fit_intercept": intercept != "none",
            "penalize_intercept": intercept != "free",
        }
        if loss in REGRESSION:
            quietly(LinearSVR(epsilon=0.1, **options), X, y + 0.1 * rng.standard_normal(40))
        else:
            quietly(LinearSVC(**options), X, y)
