"""The data matrix X in memory, dense or CSR, with the operations that solvers need.

    scores(w)  = X w        combine(c) = X'c        squared_norms() = |x_i|²

and, for compiled loops, `row_dot`, `row_axpy` and `row_prefetch` on `Matrix.rows`. Code above `data/` does not know
whether rows are dense or sparse. The constant column of an intercept is a number and is never copied into the data.

Arrays are passed to compiled code as read-only views, so that memory maps and other read-only inputs do not cause a
second compilation. Indices are viewed as unsigned integers, so that compiled code does not test for negative indices.
"""

from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
from numba import types
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse

from widemargin._runtime.argument_types import Floats, SparseMatrix
from widemargin._runtime.compile import SUMS, compiled, compiled_choice, prefetch
from widemargin._runtime.threads import run, split
from widemargin.data.columns import at_columns, occurring_columns

_VALUES_PER_RANGE = 1 << 17  # stored values in one task of a threaded pass, which take about 0.1 milliseconds
_MAX_RANGES = 64
_VALUES_WORTH_THREADS = 1 << 21  # stored values of X from which on threads save time
_VALUES_OF_LONG_ROW = 64  # from which on a vectorised sum is faster (measured: speed 0.7x at 12 values, 1.3x at 370)
_ROWS_PER_BLOCK = 1 << 11  # rows among which `combine` selects those with a nonzero coefficient at a time
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


class Matrix:
    """X, dense or CSR, float32 or float64, with an optional constant column.

    Parameters
    ----------
    X : ndarray or scipy sparse
        Two-dimensional, finite. float32 and float64 are kept, other types are converted to float64. X is copied only
        if its type or layout requires it: not C-ordered, or sparse with unsorted or duplicate indices.
    constant : float, default=0
        Value of an additional last column for the intercept; 0 means that there is no such column.

    Attributes
    ----------
    n_rows, n_features, n_columns : int
        `n_columns` counts the constant column.
    columns : ndarray of ints, or None
        The columns of the original X that are kept, if `of_columns_that_occur` removed others; None if all are kept.
    width : int
        Number of columns of the original X.
    values : ndarray or csr_array
        The data without the constant column, read-only.
    rows : DenseRows or SparseRows
        The data in the form for compiled loops.
    """

    n_rows: int
    n_features: int
    columns: NDArray[np.intp] | None
    values: Any  # an array, or a matrix of SciPy, which has no types
    rows: DenseRows | SparseRows
    n_stored: int

    def __init__(self, X: NDArray[Any] | SparseMatrix, constant: float = 0.0) -> None:
        self.constant = float(constant)
        self.n_rows, self.n_features = X.shape
        self.n_columns = self.n_features + (self.constant != 0.0)
        self.columns, self.width = None, self.n_features
        if issparse(X):
            self._keep_sparse(X)
        else:
            self._keep_dense(X)

    @classmethod
    def of_columns_that_occur(cls, X: NDArray[Any] | SparseMatrix, constant: float = 0.0) -> Self:
        """Return a Matrix without the empty columns of X, if X is sparse and nearly all of very many columns are empty.

        The weights of empty columns are zero in every solution; `spread` adds them again.
        """
        if not issparse(X):
            return cls(X, constant)
        matrix = cls(X, constant)
        columns, indices = occurring_columns(matrix.values)
        if columns is None:
            return matrix
        values = matrix.values
        entries = values.data[: len(indices)], indices, values.indptr
        narrow = csr_array(entries, shape=(matrix.n_rows, len(columns)))
        narrow.has_canonical_format = True  # the numbers of columns change, their order does not
        narrow = cls(narrow, constant)
        narrow.columns, narrow.width = columns, matrix.width
        return narrow

    def spread(self, W: Floats) -> Floats:
        """Return weights of all columns from weights of the kept columns (last axis); the others are zero.

        The weight of the constant column, if there is one, stays last. Memory pages that hold zeros only are not
        written, so that the operating system need not provide them.
        """
        if self.columns is None:
            return W
        n_constant = W.shape[-1] - self.n_features
        full = np.zeros((*W.shape[:-1], self.width + n_constant))
        full[..., self.columns] = W[..., : self.n_features]
        if n_constant:
            full[..., -n_constant:] = W[..., -n_constant:]
        return full

    def kept(self, W: Any) -> Floats:
        """Return the weights of the kept columns from weights of all columns (array or sparse, a row per output)."""
        if issparse(W):
            return (W if self.columns is None else at_columns(csr_array(W), self.columns)).toarray()
        return W if self.columns is None else W[:, self.columns]

    def _keep_dense(self, X):
        self.values = _read_only(np.require(X, dtype=_real_type(X.dtype), requirements=["C", "A"]))
        self.rows = DenseRows(self.values, self.constant)
        self.n_stored = self.values.size

    def _keep_sparse(self, X):
        is_canonical = X.format == "csr" and X.has_canonical_format
        X = csr_array(X, dtype=_real_type(X.dtype))
        X.has_canonical_format = is_canonical or X.has_canonical_format
        if not X.has_canonical_format:
            X = X.copy()
            X.sum_duplicates()
        if self.n_features > np.iinfo(np.int32).max:
            raise ValueError(f"X has {self.n_features} columns; sparse input may have at most {2**31 - 1}.")
        data = _read_only(X.data)
        indices = _read_only(X.indices.astype(np.int32, copy=False))
        indptr = _read_only(X.indptr.astype(np.int64, copy=False))
        self.values = X
        self.rows = SparseRows(data, indices.view(np.uint32), indptr.view(np.uint64), self.constant)
        self.n_stored = X.nnz

    def scores(self, w: Floats, n_jobs: int | None = None, out: Floats | None = None) -> Floats:
        """Return X w in float64, one number per row; it is written to `out` if given. Threads share the rows."""
        w = np.ascontiguousarray(w, dtype=np.float64)
        out = np.empty(self.n_rows) if out is None else out
        run(_scores, [(self.rows, w, start, stop, out) for start, stop in self.ranges()], self._threads(n_jobs))
        return out

    def scores_of_all(self, W: Floats, n_jobs: int | None = None) -> Floats:
        """Return W X', a row of scores X w for each row w of W, in one pass over X."""
        out = np.empty((len(W), self.n_rows))
        run(_all_scores, [(self.rows, W, *ends, out) for ends in self.ranges()], self._threads(n_jobs))
        return out

    def combine(self, c: Floats, n_jobs: int | None = None) -> Floats:
        """Return X'c in float64, one number per column; the same to the last bit for any number of threads."""
        c = np.ascontiguousarray(c, dtype=np.float64)
        ranges = self._combine_ranges()
        parts, chosen = np.zeros((len(ranges), self.n_columns)), np.empty((len(ranges), _ROWS_PER_BLOCK), np.int64)
        arguments = [(self.rows, c, *ends, *memory) for ends, *memory in zip(ranges, chosen, parts, strict=True)]
        run(_combine, arguments, self._threads(n_jobs))
        return parts.sum(axis=0) if len(parts) > 1 else parts[0]

    def squared_norms(self, n_jobs: int | None = None) -> Floats:
        """Return the squared Euclidean norm of each row, the constant column included."""
        out = np.empty(self.n_rows)
        run(_squared_norms, [(self.rows, start, stop, out) for start, stop in self.ranges()], self._threads(n_jobs))
        return out

    @property
    def is_wide(self) -> bool:
        """Whether there are fewer rows than columns."""
        return self.n_rows < self.n_columns

    @cached_property
    def squared_lengths(self) -> float:
        """Mean of the squared number of stored values of a row."""
        if isinstance(self.rows, DenseRows):
            return float(self.n_features**2)
        return float(np.mean(np.square(np.diff(self.values.indptr), dtype=np.float64))) if self.n_rows else 0.0

    @cached_property
    def longest_row(self) -> int:
        """Largest number of values of a row, the constant column included: the number of terms of a score."""
        stored = np.diff(self.values.indptr).max(initial=0) if issparse(self.values) else self.n_features
        return int(stored) + (self.constant != 0.0)

    @property
    def longest_sum(self) -> int:
        """Largest number of terms added sequentially in an entry of `combine`; rounding errors are bounded by it."""
        n_ranges = len(self._combine_ranges())
        return -(-self.n_rows // n_ranges) + n_ranges

    def part(self, chosen: NDArray[Any] | slice) -> "Matrix":
        """Return a Matrix of the chosen rows."""
        return Matrix(self.values[chosen], self.constant)

    def _combine_ranges(self):
        """Divide the rows for `combine`, into so few ranges that their separate sums cost little compared with X."""
        return self.ranges(max(1, self.n_stored // (4 * max(1, self.n_columns))))

    def _threads(self, n_jobs):
        return n_jobs if self.n_stored >= _VALUES_WORTH_THREADS else 1

    def ranges(self, max_ranges: int = _MAX_RANGES) -> list[tuple[int, int]]:
        """Divide the rows into (start, stop) ranges for threads; their number depends on the data only."""
        work = self.n_stored + self.n_rows
        return split(self.n_rows, min(max_ranges, -(-work // _VALUES_PER_RANGE)))


def _real_type(dtype):
    return np.float32 if dtype == np.float32 else np.float64


def _read_only(array):
    view = np.asarray(array).view()
    view.flags.writeable = False
    return view


def _is_sparse(rows):
    """Return whether the Numba type `rows` is that of SparseRows."""
    return isinstance(rows, types.NamedTuple) and rows.instance_class is SparseRows


def row_dot(rows, i, w):
    """Return <x_i, w>, the constant column included."""
    return (_sparse_dot if isinstance(rows, SparseRows) else _dense_dot)(rows, i, w)


def row_axpy(rows, i, a, w):
    """Add a x_i to w in place, the constant column included."""
    (_sparse_axpy if isinstance(rows, SparseRows) else _dense_axpy)(rows, i, a, w)


def row_norm(rows, i):
    """Return |x_i|², the constant column included."""
    return (_sparse_norm if isinstance(rows, SparseRows) else _dense_norm)(rows, i)


def row_dots(rows, i, W, out):
    """Set out[m] = <x_i, W[:, m]> for every column m of W, the constant column included."""
    (_sparse_dots if isinstance(rows, SparseRows) else _dense_dots)(rows, i, W, out)


def row_axpys(rows, i, a, W):
    """Add a[m] x_i to every column m of W in place, the constant column included."""
    (_sparse_axpys if isinstance(rows, SparseRows) else _dense_axpys)(rows, i, a, W)


def row_prefetch(rows, order, k):
    """Prefetch rows for a loop that visits rows in the sequence `order` and is at position k."""


@compiled_choice(row_dot)
def _typed_row_dot(rows, i, w):
    return _sparse_dot if _is_sparse(rows) else _dense_dot


@compiled_choice(row_axpy)
def _typed_row_axpy(rows, i, a, w):
    return _sparse_axpy if _is_sparse(rows) else _dense_axpy


@compiled_choice(row_norm)
def _typed_row_norm(rows, i):
    return _sparse_norm if _is_sparse(rows) else _dense_norm


@compiled_choice(row_dots)
def _typed_row_dots(rows, i, W, out):
    return _sparse_dots if _is_sparse(rows) else _dense_dots


@compiled_choice(row_axpys)
def _typed_row_axpys(rows, i, a, W):
    return _sparse_axpys if _is_sparse(rows) else _dense_axpys


@compiled_choice(row_prefetch)
def _typed_row_prefetch(rows, order, k):
    return _sparse_prefetch if _is_sparse(rows) else _dense_prefetch


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
    total = rows.constant * rows.constant
    for k in range(rows.indptr[np.uint64(i)], rows.indptr[np.uint64(i) + np.uint64(1)]):
        total += np.float64(rows.data[k]) ** 2
    return total


def _dense_norm(rows, i):
    total = rows.constant * rows.constant
    for value in rows.values[np.uint64(i)]:
        total += np.float64(value) ** 2
    return total


def _sparse_dots(rows, i, W, out):
    for m in range(out.size):
        out[m] = rows.constant * W[W.shape[0] - 1, m]
    for k in range(rows.indptr[np.uint64(i)], rows.indptr[np.uint64(i) + np.uint64(1)]):
        _add_scaled(np.float64(rows.data[k]), W[rows.indices[k]], out)


def _dense_dots(rows, i, W, out):
    for m in range(out.size):
        out[m] = rows.constant * W[W.shape[0] - 1, m]
    x = rows.values[np.uint64(i)]
    for j in range(x.size):
        _add_scaled(np.float64(x[j]), W[j], out)


def _sparse_axpys(rows, i, a, W):
    for k in range(rows.indptr[np.uint64(i)], rows.indptr[np.uint64(i) + np.uint64(1)]):
        _add_scaled(np.float64(rows.data[k]), a, W[rows.indices[k]])
    if rows.constant != 0.0:
        _add_scaled(rows.constant, a, W[W.shape[0] - 1])


def _dense_axpys(rows, i, a, W):
    x = rows.values[np.uint64(i)]
    for j in range(x.size):
        _add_scaled(np.float64(x[j]), a, W[j])
    if rows.constant != 0.0:
        _add_scaled(rows.constant, a, W[W.shape[0] - 1])


def _sparse_prefetch(rows, order, k):
    if k + _ROWS_AHEAD_OFFSETS < order.size:
        prefetch(rows.indptr, np.uint64(order[k + _ROWS_AHEAD_OFFSETS]))
        first = rows.indptr[np.uint64(order[k + _ROWS_AHEAD_VALUES])]
        prefetch(rows.indices, first)
        prefetch(rows.data, first)
        prefetch(rows.data, first + np.uint64(8))


def _dense_prefetch(rows, order, k):
    if k + _ROWS_AHEAD_VALUES < order.size:
        prefetch(rows.values, np.uint64(order[k + _ROWS_AHEAD_VALUES]))


@compiled
def _add_scaled(a, x, y):
    """Add a x to y in place."""
    for m in range(y.size):
        y[m] += a * x[m]


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
def _dense_sum(x, w):
    """Return Σ x[j] w[j] over the length of x."""
    total = 0.0
    for j in range(x.size):
        total += np.float64(x[j]) * w[j]
    return total


@compiled
def _scores(rows, w, start, stop, out):
    """Set out[i] = <x_i, w> for start <= i < stop."""
    for i in range(start, stop):
        out[i] = row_dot(rows, i, w)


@compiled
def _all_scores(rows, W, start, stop, out):
    """Set out[k, i] = <x_i, W[k]> for start <= i < stop."""
    for i in range(start, stop):
        for k in range(W.shape[0]):
            out[k, i] = row_dot(rows, i, W[k])


@compiled
def _combine(rows, c, start, stop, chosen, out):
    """Add Σ c_i x_i over start <= i < stop to out; rows with c_i = 0 are not read.

    In each block the rows with c_i ≠ 0 are listed first, by a loop without branches, so that they can be prefetched.
    """
    for first in range(start, stop, _ROWS_PER_BLOCK):
        last, n = min(first + _ROWS_PER_BLOCK, stop), 0
        for i in range(first, last):
            chosen[np.uint64(n)] = i
            n += c[np.uint64(i)] != 0.0
        ahead = chosen[: n if n < last - first else 0]  # the hardware prefetches consecutive rows by itself
        for k in range(n):
            row_prefetch(rows, ahead, k)
            row_axpy(rows, chosen[k], c[np.uint64(chosen[k])], out)


@compiled
def _squared_norms(rows, start, stop, out):
    """Set out[i] = |x_i|² for start <= i < stop."""
    for i in range(start, stop):
        out[i] = row_norm(rows, i)
