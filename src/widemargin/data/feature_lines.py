"""Inner products with rows half of whose values are zero, or more, in an array: categories as 0 and 1, or pictures.

The rows x_j of a block are divided into panels of as many as a SIMD vector has numbers. A panel has a line for each
feature, which holds this feature of all of its rows. The products of a row z with a panel are then the sum of the lines
of the features that z has, each multiplied by its value; zeros of z cost nothing. A matrix product by BLAS takes longer
if two fifths of the values are zero (measured), and `column_lists` are for rows with fewer values still.

With few features, rows without zeros are multiplied by lines, too, four of them by each line that is loaded: BLAS
copies its arguments first, which for short rows takes as long as their products.
"""

import numpy as np
from scipy.sparse import csr_array, issparse

from widemargin._runtime.compile import compiled
from widemargin._runtime.simd import LANES, add_line, aligned_zeros, no_lanes, put_lanes
from widemargin._runtime.threads import run, split
from widemargin.data.column_lists import CsrRows, csr_rows

_LARGEST_DENSITY = 0.62  # of the values that are not zero; above, BLAS is faster
_MAX_PANELS_OF_BLOCK, _MAX_BYTES_OF_BLOCK = 4, 1 << 18  # of lines, which stay in the processor's first or second cache
_MAX_FEATURES, _MAX_FEATURES_WITHOUT_ZEROS = 1024, 64
ROWS_TOGETHER = 4  # of `products_with_lines`
_FEATURES_TOGETHER, _NUMBERS_PER_TASK = 64, 1 << 18  # of `lines_of`
_ROWS_LOOKED_AT = 512  # by `suits_lines`, at least, if there are as many


def suits_lines(Z):
    """Return whether inner products of the rows of Z with others, which need not have zeros, are fastest by lines."""
    some = Z if issparse(Z) else Z[:: max(1, len(Z) // _ROWS_LOOKED_AT)]
    n_rows, n_features = some.shape
    n_values = some.nnz if issparse(some) else np.count_nonzero(some)
    return n_features <= _MAX_FEATURES and n_values <= _LARGEST_DENSITY * n_rows * n_features


def suits_lines_without_zeros(X):
    """Return whether inner products with rows that have no zeros are fastest by lines."""
    return X.shape[1] <= _MAX_FEATURES_WITHOUT_ZEROS


def lines_of(X, dtype, n_jobs=1):
    """Return lines[p, k, b], feature k of row LANES p + b of X; missing rows of the last panel are zero."""
    X = np.ascontiguousarray(X.toarray() if issparse(X) else X, dtype=dtype)
    n_rows, n_features = X.shape
    lines = aligned_zeros((-(-n_rows // LANES), max(1, n_features), LANES), dtype)
    tasks = split(len(lines), lines.size // _NUMBERS_PER_TASK + 1)
    run(lambda first, last: _put_lines(X[first * LANES : last * LANES], lines[first:last]), tasks, n_jobs)
    return lines


@compiled
def _put_lines(X, lines):
    """Put rows into lines, some features at a time, whose lines stay in the processor's first cache."""
    for p in range(lines.shape[0]):
        panel = lines[np.uint64(p)]
        for start in range(0, X.shape[1], _FEATURES_TOGETHER):
            stop = min(start + _FEATURES_TOGETHER, X.shape[1])
            for i in range(p * LANES, min((p + 1) * LANES, X.shape[0])):
                row = X[np.uint64(i)]
                for k in range(start, stop):
                    panel[np.uint64(k), np.uint64(i - p * LANES)] = row[np.uint64(k)]


def panels_together(lines):
    """Return how many panels to multiply with one row before the next row."""
    return max(1, min(_MAX_PANELS_OF_BLOCK, _MAX_BYTES_OF_BLOCK // (lines.itemsize * lines.shape[1] * LANES)))


def values_of_rows(X, begin, end, dtype):
    """Return the values that are not zero of the rows from begin to end as CsrRows."""
    if issparse(X):
        return csr_rows(csr_array(X[begin:end], dtype=dtype))
    rows = np.ascontiguousarray(X[begin:end], dtype=dtype)
    found = CsrRows(np.empty(rows.size, dtype), np.empty(rows.size, np.uint32), np.zeros(len(rows) + 1, np.uint64))
    _find_values(rows, found)
    return found


@compiled
def _find_values(X, found):
    """Put the values of X that are not zero into CsrRows with room for all, whose first `indptr` is zero."""
    n_found = 0
    for b in range(X.shape[0]):
        row = X[np.uint64(b)]
        for k in range(row.size):  # without a branch: the next value overwrites a zero
            found.data[np.uint64(n_found)], found.indices[np.uint64(n_found)] = row[k], np.uint32(k)
            n_found += np.int64(row[k] != 0)
        found.indptr[np.uint64(b + 1)] = np.uint64(n_found)


@compiled
def row_with_lines(rows, b, lines, products):
    """Set products[p] to the inner products of row b of CsrRows with all rows of panel p, for every p."""
    for p in range(lines.shape[0]):
        sums, panel = no_lanes(products), lines[np.uint64(p)]
        for k in range(rows.indptr[b], rows.indptr[b + np.uint64(1)]):
            sums = add_line(sums, rows.data[k], panel, rows.indices[k])
        put_lanes(sums, products, p)


@compiled
def products_with_lines(Z, b, lines, products):
    """Set products[r, p] to the inner products of row b + r of an array with all rows of panel p, for r < 4, every p.

    For rows beyond the last one, these are the products of the last one.
    """
    last = Z.shape[0] - 1
    row0, row1 = Z[np.uint64(min(b, last))], Z[np.uint64(min(b + 1, last))]
    row2, row3 = Z[np.uint64(min(b + 2, last))], Z[np.uint64(min(b + 3, last))]
    for p in range(lines.shape[0]):
        sums0, sums1, panel = no_lanes(products), no_lanes(products), lines[np.uint64(p)]
        sums2, sums3 = no_lanes(products), no_lanes(products)
        for k in range(row0.size):
            sums0 = add_line(sums0, row0[np.uint64(k)], panel, k)
            sums1 = add_line(sums1, row1[np.uint64(k)], panel, k)
            sums2 = add_line(sums2, row2[np.uint64(k)], panel, k)
            sums3 = add_line(sums3, row3[np.uint64(k)], panel, k)
        put_lanes(sums0, products[0], p)
        put_lanes(sums1, products[1], p)
        put_lanes(sums2, products[2], p)
        put_lanes(sums3, products[3], p)
