"""The data matrix X in memory, dense or CSR, with the operations that solvers need.

    scores(w)  = X w        combine(c) = X'c        squared_norms() = |x_i|²

and, for compiled loops, `row_dot`, `row_axpy` and `row_prefetch` on `Matrix.rows`. Code above `data/` does not know
whether rows are dense or sparse. The constant column of an intercept is a number and is never copied into the data.

Arrays are passed to compiled code as read-only views, so that memory maps and other read-only inputs do not cause a
second compilation. Indices are viewed as unsigned integers, so that compiled code does not test for negative indices.
"""

from collections.abc import Callable
from functools import cached_property, lru_cache
from threading import Lock
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse

from widemargin._runtime.argument_types import Floats, SparseMatrix
from widemargin._runtime.compile import compiled
from widemargin._runtime.place import HERE
from widemargin._runtime.threads import run, split
from widemargin.data.by_columns import Columns, transposed
from widemargin.data.byte_rows import has_bytes, stays_bytes
from widemargin.data.column_scaling import ColumnScaling
from widemargin.data.columns import at_columns, occurring_columns
from widemargin.data.gram import gram
from widemargin.data.rows import DenseRows, SparseRows, row_axpy, row_dot, row_norm, row_prefetch
from widemargin.data.tables import add_combinations, panels_of, set_score_table

_VALUES_PER_RANGE = 1 << 17  # stored values in one task of a threaded pass, which take about 0.1 milliseconds
_MAX_RANGES = 64
_VALUES_WORTH_THREADS = 1 << 21  # stored values of X from which on threads save time
_MAX_SMALL_ENTRIES = 1 << 16  # entries up to which X is kept as an array, too, and NumPy makes the passes
_MAX_ENTRIES_OF_ONE_BLAS_THREAD = 1 << 13  # of an array whose products with a vector no BLAS shares among threads
_transposing = Lock()  # so that threads of several classes do not transpose X twice
_VALUES_PER_CHECK = 1 << 12
_MIN_FRACTION_FOR_ONE_PASS = 0.9  # of coefficients that are not zero; with fewer, `combine` reads fewer rows
_ROWS_PER_BLOCK = 1 << 11  # rows among which `combine` selects those with a nonzero coefficient at a time


class Matrix:
    """X, dense or CSR, float32, float64 or bytes, with an optional constant column.

    Parameters
    ----------
    X : ndarray or scipy sparse
        Two-dimensional, finite. float32 and float64 are kept, and large dense arrays of int8 and uint8; other types
        are converted to float64. X is copied only if its type or layout requires it: not C-ordered, or sparse with
        unsorted or duplicate indices.
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
    rows : DenseRows, ScaledRows or SparseRows
        The data in the form for compiled loops.
    """

    is_in_memory, is_centred, place, n_parts = True, False, HERE, 1
    has_only_ones = False  # whether rows are sparse and every stored value is known to be one
    scaling: ColumnScaling | None = None  # how the columns were scaled, if they were
    most_problems = 1 << 30  # that can be solved at the same time, as far as memory goes
    n_rows: int
    n_features: int
    columns: NDArray[np.intp] | None
    values: Any  # an array, or a matrix of SciPy, which has no types
    rows: Any  # DenseRows, ScaledRows or SparseRows
    n_stored: int
    _kept_norms: Floats | None = None

    def __init__(self, X: NDArray[Any] | SparseMatrix, constant: float = 0.0) -> None:
        self.constant = float(constant)
        self.n_rows, self.n_features = X.shape
        self.n_columns = self.n_features + (self.constant != 0.0)
        self.columns, self.width, self.source = None, self.n_features, X
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
        narrow.columns, narrow.width, narrow.source = columns, matrix.width, X
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
        dtype = X.dtype if stays_bytes(X) else _real_type(X.dtype)
        self.values = _read_only(np.require(X, dtype=dtype, requirements=["C", "A"]))
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

    def scores(self, w: Floats, n_jobs: int | None = 1, out: Floats | None = None, likely: Any = None) -> Floats:
        """Return X w in float64, one number per row; it is written to `out` if given. Threads share the rows.

        `likely` tells a matrix on disk which rows to keep in memory; here all are.
        """
        w = np.ascontiguousarray(w, dtype=np.float64)
        out = np.empty(self.n_rows) if out is None else out
        if self.is_small:
            values, columns = self.as_array
            kept = w[columns]
            for rows in self._small_parts:
                np.dot(values[rows], kept, out=out[rows])
            return out
        run(set_scores, [(self.rows, w, start, stop, out) for start, stop in self.ranges()], self.threads(n_jobs))
        return out

    def scores_of_all(self, W: Floats, n_jobs: int | None = 1, out: Floats | None = None, likely: Any = None) -> Floats:
        """Return W X', a row of scores X w for each row w of W, in one pass over X; the rest as in `scores`."""
        out = np.empty((len(W), self.n_rows)) if out is None else out
        run(set_all_scores, [(self.rows, W, *ends, out) for ends in self.ranges()], self.threads(n_jobs))
        return out

    def combine(self, c: Floats, n_jobs: int | None = 1) -> Floats:
        """Return X'c in float64, one number per column; the same to the last bit for any number of threads."""
        if self.is_small:
            (values, columns), combined = self.as_array, np.zeros(self.n_columns)
            combined[columns] = sum(np.dot(c[rows], values[rows]) for rows in self._small_parts)
            return combined
        c = np.ascontiguousarray(c, dtype=np.float64)
        ranges = self._combine_ranges()
        parts = np.zeros((len(ranges), self.n_columns))
        arguments = [(self.rows, c, *ends, part) for ends, part in zip(ranges, parts, strict=True)]
        run(add_combination, arguments, self.threads(n_jobs))
        return parts.sum(axis=0) if len(parts) > 1 else parts[0]

    def score_table(self, W: Floats, n_jobs: int | None = 1, out: Floats | None = None) -> Floats:
        """Return W X', a line of scores for each row of W; it is written to `out` if given."""
        out, panels = np.empty((len(W), self.n_rows)) if out is None else out, panels_of(W)
        tasks = [(self.rows, panels, *ends, out) for ends in self.ranges()]
        run(set_score_table, tasks, threads_for(n_jobs, len(W) * self.n_stored))
        return out

    def combine_table(self, C: Floats, n_jobs: int | None = 1) -> Floats:
        """Return C X in float64, a line for each line of C; the same to the last bit for any number of threads."""
        ranges, n_outputs = self._table_ranges(len(C)), len(C)
        parts = np.zeros((len(ranges), n_outputs, self.n_columns))
        tasks = [(self.rows, C, *ends, part) for ends, part in zip(ranges, parts, strict=True)]
        run(add_combinations, tasks, threads_for(n_jobs, n_outputs * self.n_stored))
        return parts.sum(axis=0) if len(parts) > 1 else parts[0]

    def longest_table_sum(self, n_outputs: int) -> int:
        """Return the largest number of terms added sequentially in an entry of `combine_table`."""
        n_ranges = len(self._table_ranges(n_outputs))
        return -(-self.n_rows // n_ranges) + n_ranges

    def scores_and_combination(self, w: Floats, c: Floats, n_jobs: int | None = 1) -> tuple[Floats, Floats]:
        """Return `scores(w)` and `combine(c)`, the same to the last bit; one pass if nearly all c_i are not 0."""
        ranges = self._combine_ranges()
        reads_most = np.count_nonzero(c) >= _MIN_FRACTION_FOR_ONE_PASS * self.n_rows
        if self.is_small or len(ranges) < len(self.ranges()) or not reads_most:
            return self.scores(w, n_jobs), self.combine(c, n_jobs)
        w, c = (np.ascontiguousarray(one, dtype=np.float64) for one in (w, c))
        out, parts = np.empty(self.n_rows), np.zeros((len(ranges), self.n_columns))
        tasks = [(self.rows, w, c, *ends, (out, part)) for ends, part in zip(ranges, parts, strict=True)]
        run(_set_scores_and_combine, tasks, self.threads(n_jobs))
        return out, parts.sum(axis=0) if len(parts) > 1 else parts[0]

    def gram(self, q: Floats, n_jobs: int | None = 1) -> Floats:
        """Return the lower half of X'diag(q)X; rows with q = 0 are not read."""
        return gram(self, q, n_jobs)

    def squared_norms(self, n_jobs: int | None = 1) -> Floats:
        """Return the squared Euclidean norm of each row, the constant column included."""
        if self.is_small:
            return self._small_squared_norms.copy()
        if self._kept_norms is None and self.stores_only_ones:
            self._kept_norms = np.diff(self.rows.indptr) + self.constant**2
        if self._kept_norms is None:  # a solver and the certificate of its solution both need them
            out, ranges = np.empty(self.n_rows), self.ranges()
            run(set_squared_norms, [(self.rows, *ends, out) for ends in ranges], self.threads(n_jobs))
            self._kept_norms = out
        return self._kept_norms.copy()

    def row_squares(self, n_jobs: int | None = 1) -> Floats:
        """Return `squared_norms`; a matrix on disk may have a smaller bound of |x_i|² than that for rounding errors."""
        return self.squared_norms(n_jobs)

    @cached_property
    def is_small(self) -> bool:
        """Whether X is so small that NumPy needs less time for a pass than a compiled loop takes to be compiled."""
        return self.n_entries <= _MAX_SMALL_ENTRIES

    @cached_property
    def n_entries(self) -> int:
        """An upper bound of the number of entries of X as an array without empty columns."""
        return self.n_rows * min(self.n_columns, self.n_stored + 1)

    @cached_property
    def stores_only_ones(self) -> bool:
        """Whether rows are sparse and every stored value is one, which is found by looking at them."""
        return isinstance(self.rows, SparseRows) and bool(_are_all_ones(self.rows.data))

    @cached_property
    def as_array(self) -> tuple[Floats, NDArray[np.intp]]:
        """X as a float64 array without empty columns, the constant column last, and the indices of its columns.

        It is kept, since the problems of all classes use it.
        """
        if issparse(self.values):
            columns = np.unique(self.values.indices)
            features = self.values[:, columns].toarray()
        else:
            columns, features = np.arange(self.n_features), self.features(slice(None))
        n_kept = len(columns)
        values = np.empty((self.n_rows, n_kept + (self.constant != 0.0)))
        values[:, :n_kept], values[:, n_kept:] = features, self.constant
        return values, np.append(columns, self.n_features) if self.constant else columns

    @cached_property
    def _small_parts(self) -> list[slice]:
        """Ranges of the rows of `as_array`, each so small that no BLAS shares its products among threads."""
        n_rows = max(1, _MAX_ENTRIES_OF_ONE_BLAS_THREAD // max(1, self.as_array[0].shape[1]))
        return [slice(first, first + n_rows) for first in range(0, self.n_rows, n_rows)]

    @property
    def by_columns(self) -> Columns:
        """The stored values of a sparse X by columns, the constant column last; made when first asked for, and kept."""
        with _transposing:
            return self._by_columns

    @cached_property
    def _by_columns(self):
        return transposed(self)

    @cached_property
    def _small_squared_norms(self):
        return np.einsum("ij,ij->i", self.as_array[0], self.as_array[0])

    @property
    def values_or_none(self) -> Any:
        """`values`; None if the data are kept in another form."""
        return self.values

    @property
    def is_sparse(self) -> bool:
        """Whether rows are stored by their values other than zero."""
        return isinstance(self.rows, SparseRows)

    @property
    def is_wide(self) -> bool:
        """Whether there are fewer rows than columns."""
        return self.n_rows < self.n_columns

    @cached_property
    def squared_lengths(self) -> float:
        """Mean of the squared number of stored values of a row."""
        if not self.is_sparse:
            return float(self.n_features**2)
        return float(np.mean(np.square(np.diff(self.values.indptr), dtype=np.float64))) if self.n_rows else 0.0

    @cached_property
    def longest_row(self) -> int:
        """Largest number of values of a row, the constant column included: the number of terms of a score."""
        stored = np.diff(self.values.indptr).max(initial=0) if issparse(self.values) else self.n_features
        return int(stored) + (self.constant != 0.0)

    @cached_property
    def longest_sum(self) -> int:
        """Largest number of terms added sequentially in an entry of `combine`; rounding errors are bounded by it."""
        n_ranges = len(self._combine_ranges())
        return -(-self.n_rows // n_ranges) + n_ranges

    def sample(self, n_rows: int, seed: Any) -> tuple[NDArray[np.intp], "Matrix"]:
        """Return n_rows rows chosen at random, in ascending order, and their Matrix."""
        chosen = np.sort(np.random.default_rng(seed).choice(self.n_rows, n_rows, replace=False))
        return chosen, self.part(chosen)

    def features(self, rows: Any, columns: Any = slice(None)) -> NDArray[Any]:
        """Return the values of some rows and columns of a dense X without the constant column, bytes as float64."""
        some = self.values[rows][:, columns]
        return some.astype(np.float64) if has_bytes(some) else some

    def part(self, chosen: NDArray[Any] | slice) -> "Matrix":
        """Return a Matrix of the chosen rows."""
        return Matrix(self.values[chosen], self.constant)

    @property
    def most_rows_in_memory(self) -> int:
        """Number of rows that may be kept in memory: all."""
        return self.n_rows

    def visit_blocks(self, visit: Callable, interrupt: Any = None) -> None:
        """Call visit(rows, start, stop) for all rows at once; a matrix on disk does so block by block."""
        visit(self.rows, 0, self.n_rows)

    def _combine_ranges(self):
        """Divide the rows for `combine`, into so few ranges that their separate sums cost little compared with X."""
        return self.ranges(max(1, self.n_stored // (4 * max(1, self.n_columns))))

    def _table_ranges(self, n_outputs):
        """Divide the rows for `combine_table`, as `_combine_ranges` does for one output."""
        return self.ranges(max(1, self.n_stored // (4 * max(1, n_outputs * self.n_columns))))

    def threads(self, n_jobs: int | None) -> int | None:
        """Return n_jobs, or 1 if a pass over the rows takes so little time that threads are not worth it."""
        return threads_for(n_jobs, self.n_stored)

    def ranges(self, max_ranges: int = _MAX_RANGES) -> tuple[tuple[int, int], ...]:
        """Divide the rows into (start, stop) ranges for threads; their number depends on the data only."""
        return ranges_of_rows(self.n_rows, self.n_stored, max_ranges)


def threads_for(n_jobs: int | None, n_stored: int) -> int | None:
    """Return n_jobs, or 1 if a pass over so many stored values takes so little time that threads are not worth it."""
    return n_jobs if n_stored >= _VALUES_WORTH_THREADS else 1


@lru_cache(maxsize=64)
def ranges_of_rows(n_rows: int, n_stored: int, max_ranges: int = _MAX_RANGES) -> tuple[tuple[int, int], ...]:
    """Divide rows with so many stored values into (start, stop) ranges for threads."""
    return tuple(split(n_rows, min(max_ranges, -(-(n_stored + n_rows) // _VALUES_PER_RANGE))))


def _real_type(dtype):
    return np.float32 if dtype == np.float32 else np.float64


def _read_only(array):
    view = np.asarray(array).view()
    view.flags.writeable = False
    return view


@compiled
def _are_all_ones(values):
    """Return whether all values are one; the first blocks mostly tell."""
    for first in range(0, values.size, _VALUES_PER_CHECK):
        n_others = 0
        for value in values[first : first + _VALUES_PER_CHECK]:
            n_others += value != 1.0
        if n_others > 0:
            return False
    return True


@compiled
def set_scores(rows, w, start, stop, out):
    """Set out[i] = <x_i, w> for start <= i < stop."""
    for i in range(start, stop):
        out[i] = row_dot(rows, i, w)


@compiled
def set_all_scores(rows, W, start, stop, out):
    """Set out[k, i] = <x_i, W[k]> for start <= i < stop."""
    for i in range(start, stop):
        for k in range(W.shape[0]):
            out[k, i] = row_dot(rows, i, W[k])


def add_combination(rows, c, start, stop, out):
    """Add Σ c_i x_i over start <= i < stop to out; rows with c_i = 0 are not read."""
    _combine(rows, c, start, stop, np.empty(_ROWS_PER_BLOCK, np.int64), out)


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
def _set_scores_and_combine(rows, w, c, start, stop, outs):
    """Set outs[0][i] = <x_i, w> for start <= i < stop, and add Σ c_i x_i to outs[1]."""
    scores, combination = outs
    for i in range(start, stop):
        scores[i] = row_dot(rows, i, w)
        if c[i] != 0.0:
            row_axpy(rows, i, c[i], combination)


@compiled
def set_squared_norms(rows, start, stop, out):
    """Set out[i] = |x_i|² for start <= i < stop."""
    for i in range(start, stop):
        out[i] = row_norm(rows, i)
