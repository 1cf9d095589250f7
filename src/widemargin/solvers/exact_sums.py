"""Primal and dual objective of a small problem with relative errors of a few units in the last place.

In double precision, with unit roundoff u, a score has an error of up to about u Σ_j |x_ij w_j|. If columns have very
different scales, or costs are large and the objective is small, this error exceeds the duality gap. Here each product
is split into two doubles without error (Dekker, 1971), and each sum is rounded only once (`math.fsum`). So residuals,
losses and X'beta are correct to the last bit, whatever cancels.
"""

import math

import numpy as np

from widemargin.problems.losses import loss_and_slope

_SPLIT_FACTOR = 2.0**27 + 1.0  # Veltkamp's, which splits the 53 bits of a double into two halves
MAX_FACTOR = 2.0**480  # absolute value of factors below which exact products do not overflow


def exact_sum(terms):
    """Return the sum of numbers, rounded once; if it overflows, the result of plain summation."""
    terms = terms.tolist() if isinstance(terms, np.ndarray) else list(terms)  # Python's floats are added faster
    try:
        return math.fsum(terms)
    except (OverflowError, ValueError):
        with np.errstate(over="ignore", invalid="ignore"):
            return float(np.sum(terms))


def precise_scores(X, w):
    """Return X w of a Matrix, each score rounded once."""
    return np.array([exact_sum(products) for products in _exact_products(_dense(X), w)])


def precise_primal(problem, w, intercept):
    """Return ½|w|² + dual_sum intercept + Σ loss_i of a DualQP, with an error of a few units in the last place.

    That is the last place of its largest term.
    """
    losses = []
    for i, products in enumerate(_exact_products(_dense(problem.X), w)):
        parts = [problem.target[i], -intercept, *(-products)]
        residual = exact_sum(parts)
        excess = exact_sum([*parts, -math.copysign(problem.epsilon[i], residual)])
        excess = excess if excess * residual > 0.0 else 0.0
        losses.append(loss_and_slope(excess, problem.lower[i], problem.upper[i], problem.curvature[i], 0.0)[0])
    return exact_sum([*losses, problem.dual_sum * intercept, *(0.5 * _exact_products(w[np.newaxis], w)[0])])


def precise_dual(problem, beta):
    """Return the dual objective at beta, with an error of a few units in the last place of the second result.

    The second result is the sum of the absolute values of all terms.
    """
    v = np.array([exact_sum(products) for products in _exact_products(_dense(problem.X).T, beta)])
    parts = np.concatenate([
        _exact_products(problem.target[np.newaxis], beta)[0],
        -_exact_products(problem.epsilon[np.newaxis], np.abs(beta))[0],
        -0.5 * problem.curvature * beta * beta,
        -0.5 * _exact_products(v[np.newaxis], v)[0],
    ])  # fmt: skip
    return exact_sum(parts), exact_sum(np.abs(parts))


def _dense(X):
    """Return a Matrix as a float64 array, the constant column included."""
    values = X.values.toarray() if X.is_sparse else X.features(slice(None))
    values = values.astype(np.float64)
    return np.column_stack([values, np.full(X.n_rows, X.constant)]) if X.constant else values


def _exact_products(A, x):
    """Return an array whose rows sum to A x without error: the rounded products, followed by their rounding errors."""
    product = A * x
    (a_high, a_low), (x_high, x_low) = _split(A), _split(x)
    error = a_low * x_low - (((product - a_high * x_high) - a_low * x_high) - a_high * x_low)
    return np.concatenate([product, error], axis=1)


def _split(x):
    """Return two numbers with half of the digits each whose sum is x."""
    large = _SPLIT_FACTOR * x
    high = large - (large - x)
    return high, x - high
