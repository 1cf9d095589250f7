"""The weighted Gram matrix X'diag(q)X over the rows with q > 0, which is the Hessian of a weighted sum of squares.

Rows with few stored values are added as sparse outer products q_i x_i x_i', lower half only. Rows with many stored
values are cheaper as blocks of dense rows that BLAS multiplies. The choice is made by the measured costs below. As
everywhere, the constant column is a number and not stored in X.
"""

import numpy as np

from widemargin._runtime.compile import compiled
from widemargin._runtime.threads import run, split
from widemargin.data.rows import row_axpy, row_prefetch

# Measured times. A sparse outer product has as many entries as the square of the number of stored values of its row; a
# row in a dense block costs time for each column of X and for each entry of the Gram matrix.
_NANOSECONDS_PER_OUTER_PRODUCT_ENTRY = 0.7
_NANOSECONDS_PER_BLOCK_COLUMN, _NANOSECONDS_PER_BLOCK_ENTRY = 9.0, 0.03
_NANOSECONDS_PER_DENSE_BLOCK = 3e5  # for making a block of sparse rows dense
_ROWS_PER_BLOCK = 1 << 10  # rows that are selected by q, or multiplied by BLAS, at a time
_ENTRIES_WORTH_THREADS = 1 << 20  # entries of outer products from which on threads save time
_MAX_PARTS = 4  # parts of the rows that threads work on; each has a Gram matrix of its own


def gram(X, q, n_jobs=None):
    """Return the lower half of X'diag(q)X for a Matrix; q must be nonnegative, and rows with q = 0 are not read."""
    by_rows = prefers_outer_products(X, np.count_nonzero(q))
    entries = X.n_rows * (X.squared_lengths if by_rows else X.n_columns**2)
    parts = split(X.n_rows, _MAX_PARTS if entries >= _ENTRIES_WORTH_THREADS else 1)
    sums = np.zeros((len(parts), X.n_columns, X.n_columns))
    add = add_outer_products if by_rows else add_dense_products
    run(add, [(X.rows, q, *ends, out) for ends, out in zip(parts, sums, strict=True)], n_jobs)
    return sums.sum(axis=0) if len(sums) > 1 else sums[0]


def prefers_outer_products(X, n_chosen):
    """Return whether sparse outer products are the faster way for so many rows of a matrix."""
    saved_by_blocks = n_chosen * (_outer_product_cost(X) - _block_cost(X))
    return X.is_sparse and saved_by_blocks < _NANOSECONDS_PER_DENSE_BLOCK


def row_cost(X):
    """Return the approximate time in nanoseconds that `gram` takes for a row with q > 0."""
    return min(_outer_product_cost(X), _block_cost(X)) if X.is_sparse else _block_cost(X)


def _outer_product_cost(X):
    return _NANOSECONDS_PER_OUTER_PRODUCT_ENTRY * X.squared_lengths


def _block_cost(X):
    return X.n_columns * (_NANOSECONDS_PER_BLOCK_COLUMN + _NANOSECONDS_PER_BLOCK_ENTRY * X.n_columns)


def add_dense_products(rows, q, start, stop, out):
    """Add the products B'B of dense blocks B of the rows from start to stop, each row multiplied by sqrt(q_i)."""
    chosen = start + np.flatnonzero(q[start:stop])
    block = np.empty((min(len(chosen), _ROWS_PER_BLOCK), len(out)))
    for first in range(0, len(chosen), _ROWS_PER_BLOCK):
        here = chosen[first : first + _ROWS_PER_BLOCK]
        part = block[: len(here)]
        _fill_dense(rows, here, np.sqrt(q[here]), part)
        out += part.T @ part


def add_outer_products(rows, q, start, stop, out):
    """Add q_i x_i x_i' to the lower half of out for the rows from start to stop."""
    _add_outer_products(rows, q, start, stop, np.empty(_ROWS_PER_BLOCK, np.int64), out)


@compiled
def _fill_dense(rows, chosen, factors, out):
    """Set out[k] to factors[k] times the row chosen[k], the constant column included."""
    for k in range(chosen.size):
        out[k] = 0.0
        row_axpy(rows, chosen[k], factors[k], out[k])


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
                factor = q[i] * np.float64(rows.data[a])
                line = out[rows.indices[a]]
                for b in range(begin, a + np.uint64(1)):
                    line[rows.indices[b]] += factor * np.float64(rows.data[b])
                if rows.constant != 0.0:
                    out[last, rows.indices[a]] += factor * rows.constant
            if rows.constant != 0.0:
                out[last, last] += q[i] * rows.constant * rows.constant
