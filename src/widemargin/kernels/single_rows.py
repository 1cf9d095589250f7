"""Single rows of a kernel matrix, computed by compiled loops when they need them.

For a few rows of a small matrix, a call from Python takes longer than the computation. The features are stored one
after the other, so that the inner products of one row with all others are sums of whole lines. If many rows are needed,
matrix products are faster: `n_left` limits how many are computed here.
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from widemargin._runtime.compile import compiled
from widemargin.kernels.functions import finish_row


class SingleRows(NamedTuple):
    """Rows of a kernel matrix, of which some are ready and others can be computed.

    Attributes
    ----------
    is_ready : for each row, whether it is in memory.
    n_left : the number of rows that may still be computed one by one, in an array of length 1.
    features : shape (n_features, n_rows); empty if rows cannot be computed here.
    norms : squared norms of the rows.
    products : workspace for the inner products of a row.
    numbers : those of the kernel.
    """

    is_ready: np.ndarray
    n_left: np.ndarray
    features: np.ndarray
    norms: np.ndarray
    products: np.ndarray
    numbers: tuple


@lru_cache(maxsize=16)
def ready_rows(n_rows, dtype):
    """Return the SingleRows of a matrix of this type whose rows are all ready; nothing changes them."""
    nothing = np.empty(0, dtype)
    return SingleRows(
        np.ones(n_rows, np.bool_), np.zeros(1, np.int64), np.empty((0, 0), dtype), nothing, nothing, (0, 0.0, 0.0, 0)
    )


@compiled
def make_ready(K, rows, i):
    """Compute row i of K unless it is ready; return whether it is ready now."""
    if rows.is_ready[np.uint64(i)]:
        return True
    if rows.n_left[0] <= 0:
        return False
    rows.n_left[0] -= 1
    _add_features(rows.features, np.uint64(i), rows.products)
    kind, gamma, coef0, degree = rows.numbers
    finish_row(kind, gamma, coef0, degree, rows.products, rows.norms[np.uint64(i)], rows.norms, K[np.uint64(i)])
    rows.is_ready[np.uint64(i)] = True
    return True


@compiled
def put_rows(features, norms, numbers, chosen, products, out):
    """Set out[s] to the kernel values of row chosen[s] with all rows, for every s; the other arguments as above."""
    kind, gamma, coef0, degree = numbers
    for s in range(chosen.size):
        _add_features(features, chosen[s], products)
        finish_row(kind, gamma, coef0, degree, products, norms[chosen[s]], norms, out[np.uint64(s)])


@compiled(fastmath=frozenset({"contract"}))
def _add_features(features, i, products):
    """Set products[j] = Σ_k features[k, i] features[k, j], four features at a time."""
    for j in range(products.size):
        products[j] = 0
    n_features, k = features.shape[0], 0
    while k + 4 <= n_features:
        line0, line1, line2, line3 = features[k], features[k + 1], features[k + 2], features[k + 3]
        x0, x1, x2, x3 = line0[i], line1[i], line2[i], line3[i]
        for j in range(products.size):
            products[j] += (x0 * line0[j] + x1 * line1[j]) + (x2 * line2[j] + x3 * line3[j])
        k += 4
    while k < n_features:
        line0 = features[k]
        x0 = line0[i]
        for j in range(products.size):
            products[j] += x0 * line0[j]
        k += 1
