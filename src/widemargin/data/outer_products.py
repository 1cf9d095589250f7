"""Sums of outer products q_i x_i x_i' of sparse rows, the lower half only.

Rows whose stored values are all one have a loop of their own, which takes two thirds of the time (measured on w8a).
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
            for a in range(begin, end):
                line = out[indices[a]]
                for b in range(begin, a + np.uint64(1)):
                    line[indices[b]] += q[i]
                if constant != 0.0:
                    out[last, indices[a]] += q[i] * constant
            if constant != 0.0:
                out[last, last] += q[i] * constant * constant


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
