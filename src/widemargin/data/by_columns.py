"""The stored values of X by columns (CSC), for solvers that move one weight at a time.

Column j has the values data[indptr[j]:indptr[j + 1]] in the rows rows[indptr[j]:indptr[j + 1]]. The last column is
constant: the constant column of X or, if X has none, ones, as an intercept without penalty needs them.

A sparse X is transposed once, and every solver of the same X uses the result. Of a dense X only chosen columns are
copied, since a copy of the whole would take as much memory as X.
"""

from typing import NamedTuple

import numpy as np

from widemargin._runtime.compile import compiled

_ROWS_PER_BLOCK = 1 << 10


class Columns(NamedTuple):
    """Columns for compiled loops: values, their rows (uint32), and where each column begins (int64)."""

    data: np.ndarray
    rows: np.ndarray
    indptr: np.ndarray


def transposed(X):
    """Return the Columns of a sparse Matrix, the constant column last."""
    by_columns, n_rows = X.values.tocsc(), X.n_rows
    n_stored = by_columns.indptr[-1]
    last = np.full(n_rows, X.constant or 1.0, by_columns.dtype)
    data = np.concatenate([by_columns.data[:n_stored], last])
    rows = np.concatenate([by_columns.indices[:n_stored].astype(np.uint32), np.arange(n_rows, dtype=np.uint32)])
    return Columns(data, rows, np.append(by_columns.indptr.astype(np.int64), n_stored + n_rows))


def chosen_columns(X, which):
    """Return Columns that have the columns `which` of a Matrix, and their numbers in it."""
    if X.is_sparse:
        return X.by_columns, which
    is_feature = which < X.n_features
    features = X.features(slice(None), which[is_feature])
    values = np.full((len(which), X.n_rows), X.constant or 1.0, features.dtype)
    values[is_feature] = features.T
    rows = np.tile(np.arange(X.n_rows, dtype=np.uint32), len(which))
    return Columns(values.ravel(), rows, X.n_rows * np.arange(len(which) + 1)), np.arange(len(which))


def weighted_squares(X, weights):
    """Return Σ_i weights_i x_ij² for each column j of a Matrix, a constant column included."""
    out = np.empty(X.n_columns)
    if X.is_sparse:
        _set_weighted_squares(X.by_columns, weights, out)
        return out
    out[X.n_features :] = X.constant**2 * weights.sum()
    out[: X.n_features] = 0.0
    for start in range(0, X.n_rows, _ROWS_PER_BLOCK):
        here = slice(start, start + _ROWS_PER_BLOCK)
        out[: X.n_features] += weights[here] @ np.square(X.features(here), dtype=np.float64)
    return out


@compiled
def _set_weighted_squares(columns, weights, out):
    """Set out[j] = Σ_i weights_i x_ij² for every column j of `out`."""
    for j in range(out.size):
        total = 0.0
        for m in range(columns.indptr[j], columns.indptr[j + 1]):
            total += weights[columns.rows[np.uint64(m)]] * np.float64(columns.data[np.uint64(m)]) ** 2
        out[j] = total


@compiled
def set_dots(columns, which, c, out):
    """Set out[k] to the inner product of column which[k] with c."""
    for k in range(which.size):
        total = 0.0
        for m in range(columns.indptr[which[k]], columns.indptr[which[k] + 1]):
            total += np.float64(columns.data[np.uint64(m)]) * c[columns.rows[np.uint64(m)]]
        out[k] = total


@compiled
def add_columns(columns, which, factors, out):
    """Add factors[k] times column which[k] to out, for every k."""
    for k in range(which.size):
        if factors[k] != 0.0:
            for m in range(columns.indptr[which[k]], columns.indptr[which[k] + 1]):
                out[columns.rows[np.uint64(m)]] += factors[k] * np.float64(columns.data[np.uint64(m)])


@compiled
def count_chosen(columns, which, place):
    """Return the number of values of the columns `which` in rows whose place is not negative."""
    n = 0
    for k in range(which.size):
        for m in range(columns.indptr[which[k]], columns.indptr[which[k] + 1]):
            n += place[columns.rows[np.uint64(m)]] >= 0
    return n


@compiled
def copy_chosen(columns, which, place, factors, out):
    """Copy the columns `which` to the Columns `out`: row i becomes place[i], its values are multiplied by factors[i].

    Rows whose place is negative are left out.
    """
    n = 0
    for k in range(which.size):
        out.indptr[k] = n
        for m in range(columns.indptr[which[k]], columns.indptr[which[k] + 1]):
            i = columns.rows[np.uint64(m)]
            if place[i] >= 0:
                out.data[n], out.rows[n] = factors[i] * np.float64(columns.data[np.uint64(m)]), np.uint32(place[i])
                n += 1
    out.indptr[which.size] = n
