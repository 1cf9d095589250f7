"""The weighted Gram matrix X'diag(q)X over the rows with q ≠ 0, which is the Hessian of a weighted sum of squares.

Weights may be negative, for the change of a Hessian: rows that have left it are subtracted.

Rows with few stored values are added as sparse outer products q_i x_i x_i', lower half only. Rows with many stored
values are cheaper as blocks of dense rows that BLAS multiplies, those with few columns by inner products of columns,
and rows whose stored values are all one by counting bits. The choice is made by the measured costs below. As
everywhere, the constant column is a number and not stored in X.
"""

import numpy as np

from widemargin._runtime.compile import compiled
from widemargin._runtime.threads import run, split
from widemargin.data.gram_of_few_columns import add_products_of_columns, suits_products_of_columns
from widemargin.data.gram_of_ones import add_counts, count_cost
from widemargin.data.outer_products import add_outer_products, add_outer_products_of_ones
from widemargin.data.rows import DenseRows, row_axpy

# Measured times. A sparse outer product has as many entries as the square of the number of stored values of its row; a
# row in a dense block costs time for each column of X and for each entry of the Gram matrix.
_NANOSECONDS_PER_OUTER_PRODUCT_ENTRY = 0.7
_NANOSECONDS_PER_BLOCK_COLUMN, _NANOSECONDS_PER_BLOCK_ENTRY = 9.0, 0.03
_NANOSECONDS_PER_DENSE_BLOCK = 3e5  # for making a block of sparse rows dense
_ROWS_PER_BLOCK, _MOST_ROWS_PER_BLOCK = 1 << 10, 1 << 12  # rows that BLAS multiplies at a time
_ROWS_PER_BLOCK_AND_COLUMN = 2  # with fewer rows, adding the products would take as long as multiplying
_ENTRIES_WORTH_PARTS = 1 << 20  # entries of outer products from which on the rows are divided into parts
_MIN_ENTRIES_PER_SUM = 32  # of outer products in a part, for each entry of its sum, which is memory to be set and added
_NANOSECONDS_WORTH_THREADS = 3e5  # of work, from which on threads save time
_COLUMNS_WORTH_SINGLE = 256  # columns from which on products of rows in single precision stay in it
_MAX_PARTS = 4  # parts of the rows that threads work on; each has a Gram matrix of its own


def gram(X, q, n_jobs=1):
    """Return the lower half of X'diag(q)X for a Matrix; rows with q = 0 are not read."""
    n_chosen = np.count_nonzero(q)
    add = adder(X, n_chosen)
    is_sparse = add in (add_outer_products, add_outer_products_of_ones)
    entries = n_chosen * X.squared_lengths if is_sparse else X.n_rows * X.n_columns**2
    most_parts = int(entries / (_MIN_ENTRIES_PER_SUM * max(1, X.n_columns) ** 2))
    n_parts = max(1, min(_MAX_PARTS, most_parts)) if entries >= _ENTRIES_WORTH_PARTS else 1
    parts = split(X.n_rows, n_parts)
    sums = np.zeros((len(parts), X.n_columns, X.n_columns))
    n_jobs = n_jobs if n_chosen * row_cost(X) >= _NANOSECONDS_WORTH_THREADS else 1
    run(add, [(X.rows, q, *ends, out) for ends, out in zip(parts, sums, strict=True)], n_jobs)
    return sums.sum(axis=0) if len(sums) > 1 else sums[0]


def adder(X, n_chosen):
    """Return the fastest function `add(rows, q, start, stop, out)` for so many rows with q ≠ 0 of a matrix."""
    if _prefers_counts(X):
        return add_counts
    if suits_products_of_columns(X):
        return add_products_of_columns
    saved_by_blocks = n_chosen * (_outer_product_cost(X) - _block_cost(X))
    if X.is_sparse and saved_by_blocks < _NANOSECONDS_PER_DENSE_BLOCK:
        return add_outer_products_of_ones if X.stores_only_ones else add_outer_products
    return add_dense_products


def row_cost(X):
    """Return the approximate time in nanoseconds that `gram` takes for a row with q ≠ 0."""
    if _prefers_counts(X):
        return count_cost(X)
    return min(_outer_product_cost(X), _block_cost(X)) if X.is_sparse else _block_cost(X)


def _prefers_counts(X):
    return X.has_only_ones and count_cost(X) < _outer_product_cost(X)


def _outer_product_cost(X):
    return _NANOSECONDS_PER_OUTER_PRODUCT_ENTRY * X.squared_lengths


def _block_cost(X):
    return X.n_columns * (_NANOSECONDS_PER_BLOCK_COLUMN + _NANOSECONDS_PER_BLOCK_ENTRY * X.n_columns)


def add_dense_products(rows, q, start, stop, out):
    """Add the products B'B of dense blocks B of the rows from start to stop, each row multiplied by sqrt(|q_i|).

    The products of rows with q < 0 are subtracted. Blocks of many columns in single precision are multiplied in single
    precision, which takes half of the time: a Newton step needs no more.
    """
    is_single = isinstance(rows, DenseRows) and suits_single(len(out), rows.values.dtype)

    def fill(here, factors, block):
        if is_single:
            n_features = rows.values.shape[1]
            block[:, :n_features], block[:, n_features:] = rows.values[here], rows.constant
            block *= factors[:, np.newaxis]
        else:
            _fill_dense(rows, here, factors, block)

    add_blocks(fill, q, start, stop, np.float32 if is_single else np.float64, out)


def suits_single(n_columns, dtype):
    """Return whether products of rows of this type, and with so many columns, are made in single precision."""
    return n_columns >= _COLUMNS_WORTH_SINGLE and dtype == np.float32


def add_blocks(fill, q, start, stop, dtype, out):
    """Add Σ q_i x_i x_i' over start <= i < stop by matrix products of blocks of rows, which all have q > 0 or q < 0.

    `fill(numbers, factors, block)` writes the rows with these numbers to a block, each multiplied by its factor.
    """
    size = min(max(_ROWS_PER_BLOCK, _ROWS_PER_BLOCK_AND_COLUMN * len(out)), _MOST_ROWS_PER_BLOCK)
    product = np.empty(out.shape, dtype)
    for chosen, add in (
        (np.flatnonzero(q[start:stop] > 0.0), np.add),
        (np.flatnonzero(q[start:stop] < 0.0), np.subtract),
    ):
        block = np.empty((min(len(chosen), size), len(out)), dtype)
        for first in range(0, len(chosen), size):
            here = start + chosen[first : first + size]
            part = block[: len(here)]
            fill(here, np.sqrt(np.abs(q[here])).astype(dtype), part)
            add(out, np.matmul(part.T, part, out=product), out=out)


@compiled
def _fill_dense(rows, chosen, factors, out):
    """Set out[k] to factors[k] times the row chosen[k], the constant column included."""
    for k in range(chosen.size):
        out[k] = 0.0
        row_axpy(rows, chosen[k], factors[k], out[k])
