"""The weighted Gram matrix X'diag(q)X over the rows with q > 0, which is the Hessian of a weighted sum of squares.

Rows with few stored values are added as sparse outer products q_i x_i x_i', lower half only. Rows with many stored
values are cheaper as blocks of dense rows that BLAS multiplies. The choice is made by the measured costs below. As
everywhere, the constant column is a number and not stored in X.
"""

import numpy as np
from scipy.sparse import issparse

from widemargin._runtime.compile import compiled
from widemargin._runtime.threads import run, split
from widemargin.data.matrix import row_prefetch

# Measured times. A sparse outer product has as many entries as the square of the number of stored values of its row; a
# row in a dense block costs time for each column of X and for each entry of the Gram matrix.
_NANOSECONDS_PER_OUTER_PRODUCT_ENTRY = 0.7
_NANOSECONDS_PER_BLOCK_COLUMN, _NANOSECONDS_PER_BLOCK_ENTRY = 9.0, 0.03
_NANOSECONDS_PER_SPARSE_SLICE = 3e5  # for taking a block of rows out of a sparse matrix
_ROWS_PER_BLOCK = 1 << 10  # rows that are selected by q, or multiplied by BLAS, at a time
_ENTRIES_WORTH_THREADS = 1 << 20  # entries of outer products from which on threads save time
_MAX_PARTS = 4  # parts of the rows that threads work on; each has a Gram matrix of its own


def gram(X, q, n_jobs=None):
    """Return the lower half of X'diag(q)X for a Matrix; q must be nonnegative, and rows with q = 0 are not read."""
    saved_by_blocks = np.count_nonzero(q) * (_outer_product_cost(X) - _block_cost(X))
    by_rows = issparse(X.values) and saved_by_blocks < _NANOSECONDS_PER_SPARSE_SLICE
    entries = X.n_rows * (X.squared_lengths if by_rows else X.n_columns**2)
    parts = split(X.n_rows, _MAX_PARTS if entries >= _ENTRIES_WORTH_THREADS else 1)
    sums = np.zeros((len(parts), X.n_columns, X.n_columns))
    if by_rows:
        chosen = np.empty((len(parts), _ROWS_PER_BLOCK), np.int64)
        tasks = [(X.rows, q, *ends, *memory) for ends, *memory in zip(parts, chosen, sums, strict=True)]
        run(_add_outer_products, tasks, n_jobs)
    else:
        run(_add_dense_products, [(X, q, *ends, out) for ends, out in zip(parts, sums, strict=True)], n_jobs)
    return sums.sum(axis=0) if len(sums) > 1 else sums[0]


def row_cost(X):
    """Return the approximate time in nanoseconds that `gram` takes for a row with q > 0."""
    return min(_outer_product_cost(X), _block_cost(X)) if issparse(X.values) else _block_cost(X)


def _outer_product_cost(X):
    return _NANOSECONDS_PER_OUTER_PRODUCT_ENTRY * X.squared_lengths


def _block_cost(X):
    return X.n_columns * (_NANOSECONDS_PER_BLOCK_COLUMN + _NANOSECONDS_PER_BLOCK_ENTRY * X.n_columns)


def _add_dense_products(X, q, start, stop, out):
    """Add the products B'B of dense blocks B of the rows from start to stop, each row multiplied by sqrt(q_i)."""
    chosen = start + np.flatnonzero(q[start:stop])
    for first in range(0, len(chosen), _ROWS_PER_BLOCK):
        here = chosen[first : first + _ROWS_PER_BLOCK]
        rows = X.values[here]
        block = np.empty((len(here), X.n_columns))
        block[:, : X.n_features] = rows.toarray() if issparse(rows) else rows
        block[:, X.n_features :] = X.constant
        block *= np.sqrt(q[here])[:, np.newaxis]
        out += block.T @ block


@compiled
def _add_outer_products(rows, q, start, stop, chosen, out):
    """Add q_i x_i x_i' to the lower half of out for start <= i < stop; the indices of each CSR row must ascend."""
    last = np.uint64(out.shape[0] - 1)
    for first in range(start, stop, _ROWS_PER_BLOCK):
        n = 0
        for i in range(first, min(first + _ROWS_PER_BLOCK, stop)):
            chosen[np.uint64(n)] = i
            n += q[np.uint64(i)] != 0.0
        for k in range(n):
            row_prefetch(rows, chosen[:n], k)
            i = np.uint64(chosen[k])
            begin, end = rows.indptr[i], rows.indptr[i + np.uint64(1)]
            for a in range(begin, end):
                factor = q[i] * rows.data[a]
                line = out[rows.indices[a]]
                for b in range(begin, a + np.uint64(1)):
                    line[rows.indices[b]] += factor * rows.data[b]
                if rows.constant != 0.0:
                    out[last, rows.indices[a]] += factor * rows.constant
            if rows.constant != 0.0:
                out[last, last] += q[i] * rows.constant * rows.constant
