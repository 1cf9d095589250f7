"""Rows of X for compiled loops, dense or CSR, and the operations on one row.

A compiled loop calls `row_dot`, `row_axpy` and the others below, and does not know whether rows are dense or sparse.
Numba chooses by the type of `rows`; values may be float64, float32, uint8 or (dense) int8, indices uint32 or uint16.
"""

from typing import NamedTuple

import numpy as np

from widemargin._runtime.compile import SUMS, compiled, compiled_choice, prefetch
from widemargin._runtime.simd import add_line, add_to_line
from widemargin.data.scaled_rows import (
    ScaledRows,
    scaled_axpy,
    scaled_distance,
    scaled_dot,
    scaled_lanes,
    scaled_line_axpy,
    scaled_norm,
)

_VALUES_OF_LONG_ROW = 64  # from which on a vectorised sum is faster (measured: speed 0.7x at 12 values, 1.3x at 370)
_ROWS_AHEAD_OFFSETS, _ROWS_AHEAD_VALUES = 16, 8  # how far ahead offsets (indptr) and values of rows are prefetched


class DenseRows(NamedTuple):
    """Rows of a C-ordered array, followed by a constant column if `constant` is not zero."""

    values: np.ndarray
    constant: float


class SparseRows(NamedTuple):
    """CSR rows (uint32 indices, uint64 offsets), followed by a constant column if `constant` is not zero."""

    data: np.ndarray
    indices: np.ndarray
    indptr: np.ndarray
    constant: float


def _of_kind(rows, sparse, dense, scaled):
    """Return the function for rows of this kind; `rows` is a NamedTuple, or its Numba type."""
    kind = getattr(rows, "instance_class", type(rows))
    return sparse if kind is SparseRows else scaled if kind is ScaledRows else dense


def row_dot(rows, i, w):
    """Return <x_i, w>, the constant column included."""
    return _of_kind(rows, _sparse_dot, _dense_dot, scaled_dot)(rows, i, w)


def row_axpy(rows, i, a, w):
    """Add a x_i to w in place, the constant column included."""
    _of_kind(rows, _sparse_axpy, _dense_axpy, scaled_axpy)(rows, i, a, w)


def row_norm(rows, i):
    """Return |x_i|², the constant column included."""
    return _of_kind(rows, _sparse_norm, _dense_norm, scaled_norm)(rows, i)


def row_distance(rows, i, j, zeros):
    """Return |x_i − x_j|²; `zeros` has a zero for each column, and keeps them: it is work space for sparse rows."""
    return _of_kind(rows, _sparse_distance, _dense_distance, scaled_distance)(rows, i, j, zeros)


def row_lanes(rows, i, panel, sums):
    """Return sums + Σ_j x_ij panel[j], vectors that compiled loops keep in registers, the constant column included."""
    return _of_kind(rows, _sparse_lanes, _dense_lanes, scaled_lanes)(rows, i, panel, sums)


def row_line_axpy(rows, i, steps, p, panel, zeros):
    """Add x_ij steps[p] to panel[j] for every j, the constant column included; `zeros` are those of its vectors."""
    _of_kind(rows, _sparse_line_axpy, _dense_line_axpy, scaled_line_axpy)(rows, i, steps, p, panel, zeros)


def row_prefetch(rows, order, k):
    """Prefetch rows for a loop that visits rows in the sequence `order` and is at position k."""


def long_row_prefetch(rows, order, k):
    """Prefetch as `row_prefetch` does, and one more cache line of indices and values of a sparse row.

    Loops that visit rows in random order save a tenth to a fifth of their time by that, those in ascending order none.
    """


@compiled_choice(row_dot)
def _typed_row_dot(rows, i, w):
    return _of_kind(rows, _sparse_dot, _dense_dot, scaled_dot)


@compiled_choice(row_axpy)
def _typed_row_axpy(rows, i, a, w):
    return _of_kind(rows, _sparse_axpy, _dense_axpy, scaled_axpy)


@compiled_choice(row_norm)
def _typed_row_norm(rows, i):
    return _of_kind(rows, _sparse_norm, _dense_norm, scaled_norm)


@compiled_choice(row_distance)
def _typed_row_distance(rows, i, j, zeros):
    return _of_kind(rows, _sparse_distance, _dense_distance, scaled_distance)


@compiled_choice(row_lanes)
def _typed_row_lanes(rows, i, panel, sums):
    return _of_kind(rows, _sparse_lanes, _dense_lanes, scaled_lanes)


@compiled_choice(row_line_axpy)
def _typed_row_line_axpy(rows, i, steps, p, panel, zeros):
    return _of_kind(rows, _sparse_line_axpy, _dense_line_axpy, scaled_line_axpy)


@compiled_choice(row_prefetch)
def _typed_row_prefetch(rows, order, k):
    return _of_kind(rows, _sparse_prefetch, _dense_prefetch, _dense_prefetch)


@compiled_choice(long_row_prefetch)
def _typed_long_row_prefetch(rows, order, k):
    return _of_kind(rows, _sparse_long_prefetch, _dense_prefetch, _dense_prefetch)


def _sparse_dot(rows, i, w):
    start, stop = rows.indptr[np.uint64(i)], rows.indptr[np.uint64(i) + np.uint64(1)]
    if stop - start < np.uint64(_VALUES_OF_LONG_ROW):
        total = _sequential_sum(rows.data, rows.indices, start, stop, w)
    else:
        total = _vectorised_sum(rows.data, rows.indices, start, stop, w)
    if rows.constant != 0.0:
        total += rows.constant * w[w.size - 1]
    return total


def _dense_dot(rows, i, w):
    total = _dense_sum(rows.values[np.uint64(i)], w)
    if rows.constant != 0.0:
        total += rows.constant * w[w.size - 1]
    return total


def _sparse_axpy(rows, i, a, w):
    for k in range(rows.indptr[np.uint64(i)], rows.indptr[np.uint64(i) + np.uint64(1)]):
        w[rows.indices[k]] += a * np.float64(rows.data[k])
    if rows.constant != 0.0:
        w[w.size - 1] += a * rows.constant


def _dense_axpy(rows, i, a, w):
    x = rows.values[np.uint64(i)]
    for j in range(x.size):
        w[j] += a * np.float64(x[j])
    if rows.constant != 0.0:
        w[w.size - 1] += a * rows.constant


def _sparse_norm(rows, i):
    start, stop = rows.indptr[np.uint64(i)], rows.indptr[np.uint64(i) + np.uint64(1)]
    return rows.constant * rows.constant + _sum_of_squares(rows.data[start:stop])


def _dense_norm(rows, i):
    return rows.constant * rows.constant + _sum_of_squares(rows.values[np.uint64(i)])


def _sparse_distance(rows, i, j, zeros):
    """Do what `row_distance` does: x_i is spread out, and each column is set to zero again when it is read.

    Merging the sorted columns of the rows takes longer, since its branches cannot be predicted.
    """
    i, j, one, total = np.uint64(i), np.uint64(j), np.uint64(1), 0.0
    for k in range(rows.indptr[i], rows.indptr[i + one]):
        zeros[rows.indices[k]] = np.float64(rows.data[k])
    for k in range(rows.indptr[j], rows.indptr[j + one]):
        difference = np.float64(rows.data[k]) - zeros[rows.indices[k]]
        zeros[rows.indices[k]] = 0.0
        total += difference * difference
    for k in range(rows.indptr[i], rows.indptr[i + one]):
        left = zeros[rows.indices[k]]  # zero if x_j has this column, too
        zeros[rows.indices[k]] = 0.0
        total += left * left
    return total


def _dense_distance(rows, i, j, zeros):
    return _sum_of_squared_differences(rows.values[np.uint64(i)], rows.values[np.uint64(j)])


def _sparse_lanes(rows, i, panel, sums):
    for k in range(rows.indptr[np.uint64(i)], rows.indptr[np.uint64(i) + np.uint64(1)]):
        sums = add_line(sums, np.float64(rows.data[k]), panel, rows.indices[k])
    return add_line(sums, rows.constant, panel, panel.shape[0] - 1) if rows.constant != 0.0 else sums


def _dense_lanes(rows, i, panel, sums):
    x = rows.values[np.uint64(i)]
    for j in range(x.size):
        sums = add_line(sums, np.float64(x[j]), panel, j)
    return add_line(sums, rows.constant, panel, panel.shape[0] - 1) if rows.constant != 0.0 else sums


def _sparse_line_axpy(rows, i, steps, p, panel, zeros):
    for k in range(rows.indptr[np.uint64(i)], rows.indptr[np.uint64(i) + np.uint64(1)]):
        add_to_line(panel, rows.indices[k], np.float64(rows.data[k]), steps, p, zeros)
    if rows.constant != 0.0:
        add_to_line(panel, panel.shape[0] - 1, rows.constant, steps, p, zeros)


def _dense_line_axpy(rows, i, steps, p, panel, zeros):
    x = rows.values[np.uint64(i)]
    for j in range(x.size):
        add_to_line(panel, j, np.float64(x[j]), steps, p, zeros)
    if rows.constant != 0.0:
        add_to_line(panel, panel.shape[0] - 1, rows.constant, steps, p, zeros)


def _sparse_prefetch(rows, order, k):
    if k + _ROWS_AHEAD_OFFSETS < order.size:
        prefetch(rows.indptr, np.uint64(order[k + _ROWS_AHEAD_OFFSETS]))
        first = rows.indptr[np.uint64(order[k + _ROWS_AHEAD_VALUES])]
        prefetch(rows.indices, first)
        prefetch(rows.data, first)
        prefetch(rows.data, first + np.uint64(8))


def _sparse_long_prefetch(rows, order, k):
    row_prefetch(rows, order, k)
    if k + _ROWS_AHEAD_VALUES < order.size:
        first = rows.indptr[np.uint64(order[k + _ROWS_AHEAD_VALUES])]
        prefetch(rows.indices, first + np.uint64(16))
        prefetch(rows.data, first + np.uint64(16))


def _dense_prefetch(rows, order, k):
    if k + _ROWS_AHEAD_VALUES < order.size:
        prefetch(rows.values, np.uint64(order[k + _ROWS_AHEAD_VALUES]))


@compiled(fastmath=frozenset({"contract"}))
def _sequential_sum(data, indices, start, stop, w):
    """Return Σ data[k] w[indices[k]], added in order.

    The processor overlaps the sums of consecutive short rows, which is faster than vectorising each of them.
    """
    total = 0.0
    for k in range(start, stop):
        total += np.float64(data[k]) * w[indices[k]]
    return total


@compiled(fastmath=SUMS)
def _vectorised_sum(data, indices, start, stop, w):
    """Return Σ data[k] w[indices[k]] by several partial sums at once, which is faster for long rows."""
    total = 0.0
    for k in range(start, stop):
        total += np.float64(data[k]) * w[indices[k]]
    return total


@compiled(fastmath=SUMS)
def _sum_of_squares(x):
    """Return Σ x[k]² in double precision."""
    total = 0.0
    for k in range(x.size):
        total += np.float64(x[k]) ** 2
    return total


@compiled(fastmath=SUMS)
def _dense_sum(x, w):
    """Return Σ x[j] w[j] over the length of x."""
    total = 0.0
    for j in range(x.size):
        total += np.float64(x[j]) * w[j]
    return total


@compiled(fastmath=SUMS)
def _sum_of_squared_differences(x, z):
    """Return Σ (x[j] − z[j])²."""
    total = 0.0
    for j in range(x.size):
        difference = np.float64(x[j]) - np.float64(z[j])
        total += difference * difference
    return total


_ones = np.ones(0, np.uint8)


def ones(n):
    """Return n ones, a read-only view of memory that all rows without values of their own share."""
    global _ones
    if len(_ones) < n:
        _ones = np.ones(n, np.uint8)
    view = _ones[:n]
    view.flags.writeable = False
    return view


def taken(rows, chosen):
    """Return a copy of chosen rows, of the same types."""
    if not isinstance(rows, SparseRows):
        return rows._replace(values=rows.values[chosen])
    lengths = np.diff(rows.indptr)[chosen]
    offsets = np.zeros(len(chosen) + 1, rows.indptr.dtype)
    np.cumsum(lengths, out=offsets[1:])
    indices = np.empty(offsets[-1], rows.indices.dtype)
    _copy_lists(rows.indices, rows.indptr, chosen, indices)
    if _are_ones(rows.data):
        values = ones(len(indices))
    else:
        values = np.empty(offsets[-1], rows.data.dtype)
        _copy_lists(rows.data, rows.indptr, chosen, values)
    return SparseRows(_read_only(values), _read_only(indices), _read_only(offsets), rows.constant)


def joined_rows(parts):
    """Return rows that follow one another as one, of the same types."""
    if not isinstance(parts[0], SparseRows):
        return parts[0]._replace(values=_read_only(np.concatenate([part.values for part in parts])))
    lengths = np.concatenate([np.diff(part.indptr) for part in parts])
    offsets = np.zeros(len(lengths) + 1, np.uint64)
    np.cumsum(lengths, out=offsets[1:])
    indices = np.concatenate([part.indices for part in parts])
    are_ones = all(_are_ones(part.data) for part in parts)
    values = ones(len(indices)) if are_ones else _read_only(np.concatenate([part.data for part in parts]))
    return SparseRows(values, _read_only(indices), _read_only(offsets), parts[0].constant)


def _are_ones(values):
    """Return whether the values are the memory that rows without values of their own share."""
    return values.dtype == np.uint8 and values.ctypes.data == _ones.ctypes.data


def _read_only(array):
    array.flags.writeable = False
    return array


@compiled
def _copy_lists(values, offsets, chosen, out):
    """Copy the lists of the chosen rows, one after the other, to out."""
    place = np.uint64(0)
    for k in range(chosen.size):
        i = np.uint64(chosen[k])
        for m in range(offsets[i], offsets[i + np.uint64(1)]):
            out[place] = values[m]
            place += np.uint64(1)
