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


def quietly(say, model, *arguments):
    """Fit without warnings, since nobody judges these; say so, since compilation takes its time."""
    say(warm=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(*arguments)


def linear_fits(say):
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
            quietly(say, LinearSVR(epsilon=0.1, **options), X, y + 0.1 * rng.standard_normal(40))
        else:
            quietly(say, LinearSVC(**options), X, y)


def kernel_fits(say):
    """Fit every kernel machine with every kernel and solver."""
    from tests.certificates.kernel_trial import model_of
    from tests.certificates.nasty_kernel import KINDS, SOLVERS, Kernel

    rng = np.random.default_rng(1)
    y = np.where(rng.random(40) < 0.5, 1.0, -1.0)
    for X, kind, name, solver in product(rows(), KINDS, ("linear", "rbf", "poly", "precomputed"), SOLVERS):
        problem = Kernel(kind, X, y, None, name, 0.5, 2, 1.0, 1.0, 0.3, 0.1, 1e-3)
        dense = X.toarray() if hasattr(X, "toarray") else X
        model = model_of(problem, solver).set_params(max_iter=100)
        quietly(say, model, dense @ dense.T if name == "precomputed" else X, y)


def planes_fits(say):
    """Fit every model of cutting planes with both solvers."""
    from tests.certificates.nasty_planes import KINDS, SOLVERS, Planes
    from tests.certificates.planes_trial import model_of

    rng = np.random.default_rng(1)
    sign = np.where(rng.random(40) < 0.5, 1.0, -1.0)
    for X, kind, solver, several in product(rows(), KINDS, SOLVERS, (False, True)):
        target = sign if kind in ("roc", "measure") or not several else rng.integers(0, 4, 40).astype(float)
        query = np.repeat([0, 1], 20) if several else np.zeros(40, int)
        for measure in (
            ("f1", "prbep", "error", "precision@9", "recall@9", "average_precision") if kind == "measure" else ("f1",)
        ):
            problem = Planes(kind, X, target, query, measure, 1.0 * several, 1.0, 1e-3)
            arguments = (X, target, *([query] if kind == "rank" else []))
            quietly(say, model_of(problem, solver), *arguments)
