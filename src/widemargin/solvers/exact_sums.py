"""Objective and dual value of a small problem, right to a few roundings of the result whatever cancels on the way.

In double precision a score is wrong by u Σ_j |x_ij w_j|. Where columns have very different scales, or costs are large
and the objective small, that is more than what is to be measured. Here each product is split into two numbers without
error (Dekker, 1971), and sums are rounded once (`math.fsum`): residuals, losses and X'beta are right to the last bit.
"""

import math

import numpy as np
from scipy.sparse import issparse

from widemargin.problems.losses import loss_and_slope

_SPLIT = 2.0**27 + 1.0
SAFE = 2.0**480  # sizes of factors up to which nothing overflows


def exact_sum(terms):
    """Return the sum of numbers, rounded once; where it leaves double precision, what plain sums make of it."""
    terms = list(terms)
    try:
        return math.fsum(terms)
    except (OverflowError, ValueError):
        with np.errstate(over="ignore", invalid="ignore"):
            return float(np.sum(terms))


def precise_scores(X, w):
    """Return X w of a Matrix, each score rounded once."""
    return np.array([exact_sum(products) for products in _two_products(_dense(X), w)])


def precise_primal(rows, w, intercept):
    """Return ½|w|² + Σ loss_i of a DualQP with an intercept, right to a few roundings."""
    X = _dense(rows.X)
    losses = []
    for i, products in enumerate(_two_products(X, w)):
        parts = [rows.target[i], -intercept, *(-products)]
        residual = exact_sum(parts)
        beyond = exact_sum([*parts, -math.copysign(rows.epsilon[i], residual)])
        beyond = beyond if beyond * residual > 0.0 else 0.0
        losses.append(loss_and_slope(beyond, rows.lower[i], rows.upper[i], rows.curvature[i], 0.0)[0])
    return exact_sum([*losses, *(0.5 * _two_products(w[np.newaxis], w)[0])])


def precise_dual(rows, beta):
    """Return the dual value of beta, right to a few roundings, and the sum of the sizes of its parts."""
    v = np.array([exact_sum(products) for products in _two_products(_dense(rows.X).T, beta)])
    parts = np.concatenate([
        _two_products(rows.target[np.newaxis], beta)[0],
        -_two_products(rows.epsilon[np.newaxis], np.abs(beta))[0],
        -0.5 * rows.curvature * beta * beta,
        -0.5 * _two_products(v[np.newaxis], v)[0],
    ])  # fmt: skip
    return exact_sum(parts), exact_sum(np.abs(parts))


def _dense(X):
    values = X.values.toarray() if issparse(X.values) else X.values
    values = values.astype(np.float64)
    return np.column_stack([values, np.full(X.n_rows, X.constant)]) if X.constant else values


def _two_products(A, x):
    """Return lines of numbers that sum up to A x without error: the products, and what their rounding has lost."""
    high = A * x
    a, b = _halves(A), _halves(x)
    low = a[1] * b[1] - (((high - a[0] * b[0]) - a[1] * b[0]) - a[0] * b[1])
    return np.concatenate([high, low], axis=1)


def _halves(x):
    """Return x as a sum of two numbers of half its digits each."""
    large = _SPLIT * x
    high = large - (large - x)
    return high, x - high
