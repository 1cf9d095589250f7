"""Sums of outer products q_i x_i x_i' of sparse rows, the lower half only.

The lines of the sum that belong to four columns of a row are written together, so that inner loops are longer and
fewer: this takes seven tenths of the time on rows of a dozen values. Rows whose stored values are all one have a loop
of their own, which takes seven eighths of the time (measured on w8a).
"""

import numpy as np

from widemargin._runtime.compile import compiled
from widemargin.data.rows import row_prefetch

_ROWS_PER_BLOCK = 1 << 10  # rows that are selected by q at a time


def add_outer_products(rows, q, start, stop, out):
    """Add q_i x_i x_i' to the lower half of out for the rows from start to stop."""
    _add_outer_products(rows, q, start, stop, np.empty(_ROWS_PER_BLOCK, np.int64), out)


def add_outer_products_of_ones(rows, q, start, stop, out):
    """As `add_outer_products`; all stored values are taken to be one."""
    _add_outer_products_of_ones(rows.indices, rows.indptr, rows.constant, q, start, stop, out)


@compiled
def _add_outer_products_of_ones(indices, offsets, constant, q, start, stop, out):
    """Add q_i x_i x_i' to the lower half of out for start <= i < stop; the indices of each CSR row must ascend."""
    last = np.uint64(out.shape[0] - 1)
    for row in range(start, stop):
        i = np.uint64(row)
        if q[i] != 0.0:
            begin, end = offsets[i], offsets[i + np.uint64(1)]
            _add_outer_product_of_ones(indices[begin:end], q[i], out)
            if constant != 0.0:
                for a in range(begin, end):
                    out[last, indices[a]] += q[i] * constant
                out[last, last] += q[i] * constant * constant


@compiled
def _add_outer_product_of_ones(indices, factor, out):
    """Add factor x x' to the lower half of out for a row of ones at these indices, four lines of out at a time."""
    n_fours = indices.size // 4 * 4
    for first in range(0, n_fours, 4):
        a = np.uint64(first)
        j, k, m = indices[a + np.uint64(1)], indices[a + np.uint64(2)], indices[a + np.uint64(3)]
        lines = out[indices[a]], out[j], out[k], out[m]
        for b in range(a + np.uint64(1)):
            column = indices[b]
            lines[0][column] += factor
            lines[1][column] += factor
            lines[2][column] += factor
            lines[3][column] += factor
        lines[1][j] += factor
        lines[2][j] += factor
        lines[3][j] += factor
        lines[2][k] += factor
        lines[3][k] += factor
        lines[3][m] += factor
    for rest in range(n_fours, indices.size):
        a = np.uint64(rest)
        line = out[indices[a]]
        for b in range(a + np.uint64(1)):
            line[indices[b]] += factor


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
            _add_outer_product(rows.data[begin:end], rows.indices[begin:end], q[i], out)
            if rows.constant != 0.0:
                for a in range(begin, end):
                    out[last, rows.indices[a]] += q[i] * np.float64(rows.data[a]) * rows.constant
                out[last, last] += q[i] * rows.constant * rows.constant


@compiled
def _add_outer_product(data, indices, q, out):
    """Add q x x' to the lower half of out for a row of these stored values, four lines of out at a time."""
    n_fours = indices.size // 4 * 4
    for first in range(0, n_fours, 4):
        a = np.uint64(first)
        j, k, m = indices[a + np.uint64(1)], indices[a + np.uint64(2)], indices[a + np.uint64(3)]
        y, z = np.float64(data[a + np.uint64(1)]), np.float64(data[a + np.uint64(2)])
        u = np.float64(data[a + np.uint64(3)])
        f, g, h, e = q * np.float64(data[a]), q * y, q * z, q * u
        lines = out[indices[a]], out[j], out[k], out[m]
        for b in range(a + np.uint64(1)):
            column, x = indices[b], np.float64(data[b])
            lines[0][column] += f * x
            lines[1][column] += g * x
            lines[2][column] += h * x
            lines[3][column] += e * x
        lines[1][j] += g * y
        lines[2][j] += h * y
        lines[3][j] += e * y
        lines[2][k] += h * z
        lines[3][k] += e * z
        lines[3][m] += e * u
    for rest in range(n_fours, indices.size):
        a = np.uint64(rest)
        factor, line = q * np.float64(data[a]), out[indices[a]]
        for b in range(a + np.uint64(1)):
            line[indices[b]] += factor * np.float64(data[b])
