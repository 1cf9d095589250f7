"""X'diag(q)X, over the rows whose q is not zero: the curvature that rows add to a quadratic.

Sparse rows add their own outer products, half of a symmetric matrix; rows with more values are cheaper as blocks of
dense rows that BLAS multiplies (measured: the costs below). The constant column is a number here too.
"""

import numpy as np
from scipy.sparse import issparse

from widemargin._runtime.compile import compiled
from widemargin._runtime.threads import run, split
from widemargin.data.matrix import row_prefetch

_SPARSE_COST = 0.7  # nanoseconds for each square of a row's number of values, if it adds its own outer product
_COLUMN_COST, _ENTRY_COST = 9.0, 0.03  # and for each column, and entry of the matrix, if it is in a block
_CALL_COST = 3e5  # of taking a block out of a sparse matrix
_BLOCK = 1 << 10  # rows that are looked through, or multiplied, at once
_WORTH_THREADS = 1 << 20  # entries of outer products from which on threads pay
_PARTS = 4  # each has a matrix of its own


def gram(X, q, n_jobs=None):
    """Return the lower half of X'diag(q)X for a Matrix; rows with q = 0 are not touched, others must have q > 0."""
    by_rows = issparse(X.values) and np.count_nonzero(q) * (_own_cost(X) - _block_cost(X)) < _CALL_COST
    entries = X.n_rows * (X.squared_lengths if by_rows else X.n_columns**2)
    parts = split(X.n_rows, _PARTS if entries >= _WORTH_THREADS else 1)
    sums = np.zeros((len(parts), X.n_columns, X.n_columns))
    if by_rows:
        chosen = np.empty((len(parts), _BLOCK), np.int64)
        tasks = [(X.rows, q, *ends, *memory) for ends, *memory in zip(parts, chosen, sums, strict=True)]
        run(_add_outer_products, tasks, n_jobs)
    else:
        run(_add_products, [(X, q, *ends, out) for ends, out in zip(parts, sums, strict=True)], n_jobs)
    return sums.sum(axis=0) if len(sums) > 1 else sums[0]


def row_cost(X):
    """Return about how many nanoseconds a row takes."""
    return min(_own_cost(X), _block_cost(X)) if issparse(X.values) else _block_cost(X)


def _own_cost(X):
    return _SPARSE_COST * X.squared_lengths


def _block_cost(X):
    return X.n_columns * (_COLUMN_COST + _ENTRY_COST * X.n_columns)


def _add_products(X, q, start, stop, out):
    """Add the rows from start to stop, in blocks of dense ones, each row multiplied by the root of its q."""
    chosen = start + np.flatnonzero(q[start:stop])
    for first in range(0, len(chosen), _BLOCK):
        here = chosen[first : first + _BLOCK]
        rows = X.values[here]
        block = np.empty((len(here), X.n_columns))
        block[:, : X.n_features] = rows.toarray() if issparse(rows) else rows
        block[:, X.n_features :] = X.constant
        block *= np.sqrt(q[here])[:, np.newaxis]
        out += block.T @ block


@compiled
def _add_outer_products(rows, q, start, stop, chosen, out):
    """Add q_i x_i x_i' to the lower half of out for start <= i < stop; indices of CSR rows ascend."""
    last = np.uint64(out.shape[0] - 1)
    for first in range(start, stop, _BLOCK):
        n = 0
        for i in range(first, min(first + _BLOCK, stop)):
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
