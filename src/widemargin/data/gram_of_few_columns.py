"""The weighted Gram matrix of sparse rows with few columns, by inner products of columns.

The rows of a block, each multiplied by sqrt(|q_i|), are written as a small array with a line for each column, which
stays in the processor's second cache. Entry (j, k) of X'diag(q)X is then an inner product of two lines, which the
compiler vectorises. Eight entries are computed at once, since the time is limited by the reads. If many of the values
are not zero this is faster than sparse outer products, which write to memory for each pair of values of a row (measured
on ijcnn1, 22 columns, 13 values a row: 0.6 milliseconds in place of 1.5).
"""

import numpy as np

from widemargin._runtime.compile import SUMS, compiled
from widemargin.data.rows import row_prefetch

_MAX_COLUMNS = 64  # so that a block has at most 128 kB
_MIN_SQUARED_DENSITY = 0.15  # mean square of the density of a row, from which on this is faster (measured)
_ROWS_PER_BLOCK = 1 << 8
_LINES_TOGETHER = 4  # the number of lines is rounded up to a multiple of it


def suits_products_of_columns(X):
    """Return whether the rows of a Matrix are sparse, its columns are few and many values are not zero."""
    if not X.is_sparse or X.n_columns > _MAX_COLUMNS:
        return False
    return X.squared_lengths >= _MIN_SQUARED_DENSITY * X.n_columns**2


def add_products_of_columns(rows, q, start, stop, out):
    """Add q_i x_i x_i' to the lower half of out for the sparse rows from start to stop."""
    n_columns = len(out)
    n_lines = -(-n_columns // _LINES_TOGETHER) * _LINES_TOGETHER
    block, sums = np.zeros((n_lines, _ROWS_PER_BLOCK)), np.zeros((n_lines, n_lines))
    chosen, n_left = np.empty(stop - start, np.int64), np.count_nonzero(q[start:stop])
    for sign, add in ((1.0, np.add), (-1.0, np.subtract)):
        if n_left:
            n_chosen = _list_rows(q, start, stop, sign, chosen)
            sums[:] = 0.0
            _add_rows(rows, q, chosen[:n_chosen], n_columns - 1, block, sums)
            add(out, sums[:n_columns, :n_columns], out=out)
            n_left -= n_chosen


@compiled
def _list_rows(q, start, stop, sign, chosen):
    """List the rows from start to stop with this sign of q_i, without branches; return their number."""
    n = 0
    for i in range(start, stop):
        chosen[np.uint64(n)] = i
        n += sign * q[np.uint64(i)] > 0.0
    return n


@compiled
def _add_rows(rows, q, chosen, last, block, sums):
    """Add |q_i| x_i x_i' to the lower half of sums for the chosen rows; the constant column is `last`.

    Some entries above the diagonal are changed, too. The hardware prefetches consecutive rows by itself.
    """
    has_gaps = chosen.size > 0 and chosen[chosen.size - 1] - chosen[0] >= chosen.size
    ahead = chosen[: chosen.size if has_gaps else 0]
    for first in range(0, chosen.size, block.shape[1]):
        block[:] = 0.0
        for k in range(first, min(first + block.shape[1], chosen.size)):
            row_prefetch(rows, ahead, k)
            i, place = np.uint64(chosen[k]), np.uint64(k - first)
            factor = np.sqrt(abs(q[i]))
            for m in range(rows.indptr[i], rows.indptr[i + np.uint64(1)]):
                block[rows.indices[m], place] = factor * np.float64(rows.data[m])
            if rows.constant != 0.0:
                block[np.uint64(last), place] = factor * rows.constant
        _add_products(block, sums)


@compiled(fastmath=SUMS)
def _add_products(block, sums):
    """Add the inner products of all lines to the lower half of sums, two by four at a time."""
    for line in range(0, block.shape[0], 2):
        x, s = block[line], block[line + 1]
        for first in range(0, line + 2, 4):
            y, z, u, v = block[first], block[first + 1], block[first + 2], block[first + 3]
            a, b, c, d, e, f, g, h = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
            for k in range(x.size):
                a += x[k] * y[k]
                b += x[k] * z[k]
                c += x[k] * u[k]
                d += x[k] * v[k]
                e += s[k] * y[k]
                f += s[k] * z[k]
                g += s[k] * u[k]
                h += s[k] * v[k]
            _add_four(sums[line], first, (a, b, c, d))
            _add_four(sums[line + 1], first, (e, f, g, h))


@compiled
def _add_four(line, first, numbers):
    """Add four numbers to consecutive entries of a line."""
    line[first] += numbers[0]
    line[first + 1] += numbers[1]
    line[first + 2] += numbers[2]
    line[first + 3] += numbers[3]
