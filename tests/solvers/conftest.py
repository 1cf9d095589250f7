"""A reference solver for tiny quadratic programs in plain NumPy, which bounds the error of its own result; fixtures."""

import numpy as np
import pytest

from widemargin.solvers import auto
from widemargin.solvers.newton import smoothed


def _newton_step(G, A, D, dual, primal):
    """Solve (G + D) dx − Aᵀ dy = dual and A dx = primal for a positive definite G + D and an A of full rank."""
    m = len(A)
    system = np.block([[G + np.diag(D), -A.T], [A, np.zeros((m, m))]])
    step = np.linalg.solve(system, np.concatenate([dual, primal]))
    return step[: len(G)], step[len(G) :]


def _products(x, s, z, w, bounded):
    """Return the products of x and s = upper − x with their dual variables z and w, all zero at the optimum."""
    return np.concatenate([x * z, (s * w)[bounded]])


def _interior_point(G, c, upper, A, b):
    """Return x and the dual variables of A x = b, x >= 0 and x <= upper, by a primal-dual interior point method."""
    bounded = np.isfinite(upper)
    x = (A > 0).T @ (b / A.sum(1)) if len(A) else np.where(bounded, 0.5, 1.0)
    s, y, z, w = np.where(bounded, 1.0 - x, 1.0), np.zeros(len(A)), np.ones(len(c)), bounded.astype(float)
    z, w = z / x, w / s
    for _ in range(150):
        dual_residual, primal_residual = G @ x + c - A.T @ y - z + w, A @ x - b
        mean = _products(x, s, z, w, bounded).mean()
        if max(mean, np.abs(dual_residual).max()) < 1e-15:
            break
        centre = 0.2 * mean
        dual = -dual_residual - (x * z - centre) / x + (s * w - centre * bounded) / s
        dx, dy = _newton_step(G, A, z / x + w / s, dual, -primal_residual)
        ds, dz = -dx * bounded, -(x * z - centre + z * dx) / x
        dw = np.where(bounded, -(s * w - centre + w * ds) / s, 0.0)
        step, now = 1.0, (x, s, z, w)
        while step > 1e-12:
            after = [part + step * change for part, change in zip(now, (dx, ds, dz, dw), strict=True)]
            products = _products(*after, bounded)
            if min(part.min() for part in after) >= 0 and products.min() > 1e-3 * products.mean():
                break
            step *= 0.9
        x, s, z, w = after
        y = y + step * dy
    return x, y, z, w


def _minimum(G, c, upper, A=None, b=None):
    """Return the smallest ½ xᵀG x + cᵀx over 0 <= x <= upper and A x = b, and a bound on its error.

    Each upper bound is 1 or infinite, and G is positive semidefinite. If A is given, its entries are nonnegative, each
    column has exactly one nonzero entry, and b lies strictly between 0 and the row sums of A. With the gradient
    g = Aᵀy + z − w + r at x, every feasible x' has f(x') >= f(x) + g·(x' − x). The error is therefore at most the sum
    of the products x z and (upper − x) w and of the contributions of the residuals r and A x − b.
    """
    if not len(c):
        return 0.0, 0.0
    A, b = (np.zeros((0, len(c))), np.zeros(0)) if A is None else (A, b)
    scale = max(np.abs(G).max(), np.abs(c).max(), np.finfo(float).tiny)
    G, c, bounded = G / scale, c / scale, np.isfinite(upper)
    x, y, z, w = _interior_point(G, c, upper, A, b)
    residual = np.abs(G @ x + c - A.T @ y - z + w) @ np.where(bounded, 1.0, np.maximum(x, 1.0))
    error = x @ z + (np.where(bounded, upper, 0.0) - x)[bounded] @ w[bounded] + residual + np.abs(y) @ np.abs(A @ x - b)
    return scale * (0.5 * x @ G @ x + c @ x), scale * error


@pytest.fixture(scope="session")
def exact_qp():
    """Return the function that minimises a tiny quadratic program and bounds the error of its result."""
    return _minimum


@pytest.fixture
def no_active_set(monkeypatch):
    """Treat problems of all sizes as too large for the active-set method."""
    for place in (auto, smoothed):
        monkeypatch.setattr(place, "takes_active_set", lambda problem: False)
        monkeypatch.setattr(place, "can_be_dense", lambda X: False)
