"""Squared distances of rows whose features have few, equally spaced values: 0 and 1, categories, short scales.

If every value is an integer number of equal steps from an origin, then |x − z|² = step² d, where d is a small integer.
It is computed without rounding, in integers of 16 bits, of which a processor adds 16 or 32 at a time:

    d = |e|² + |w|² − 2 <w, e>,   e_k = (x_k − r_k) / step,   w_k = (z_k − r_k) / step

The reference r_k is the most frequent value of feature k in X, so that many e_k and w_k are zero; in sparse rows it is
zero. The features of X are stored as lines, and a row z is multiplied by those of which w_k is not zero. A function of
the distance, such as the rbf kernel, becomes a table with an entry for every d.
"""

from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array, issparse

from widemargin._runtime.compile import compiled
from widemargin.data.column_lists import ROWS_PER_BLOCK, CsrRows, csr_rows

_MAX_LEVELS = 16  # different values among those examined
_VALUES_EXAMINED = 1024  # of the first rows, to find the step
_ROUNDING = 4.0  # units in the last place by which a value may differ from an integer number of steps
_MAX_STEPS = 32.0  # of a value from the origin
_MIN_STEP = 1e-100  # its square and that of its inverse are far from underflow and overflow
_MAX_DISTANCE = 4095  # the table of all distances then stays in the processor's first cache
_MAX_FEATURES = 1024  # the lines of a block then stay in its second or third cache
_MIN_ROWS = 16  # of Z, for which preparing the lines takes less time than they save
_VALUES_PER_CHECK = 4096


class Grid(NamedTuple):
    """The values origin + step · integer, of which others may differ by `tolerance` steps."""

    origin: float
    step: float
    tolerance: float


class IntegerBlock(NamedTuple):
    """The rows of X from start to stop: lines[k, j] is e_k of row start + j, and norms[j] is its |e|²."""

    start: int
    stop: int
    lines: np.ndarray
    norms: np.ndarray


class IntegerRows(NamedTuple):
    """The rows of Z: w in CSR format, where no indices mean that each row has all features, and |w|² of every row."""

    rows: CsrRows
    norms: np.ndarray


class IntegerDistances(NamedTuple):
    """Squared distances between the rows of X and Z as integers; |x − z|² is `unit` times the integer distance.

    No distance is larger than `largest`. A row of Z differs from the reference in `lines_per_row` features on average.
    """

    unit: float
    largest: int
    lines_per_row: float
    blocks: list[IntegerBlock]
    Z: IntegerRows


def integer_distances(X, Z):
    """Return the IntegerDistances of two matrices, or None if their values are not such, or there are too many."""
    if X.shape[1] > _MAX_FEATURES or Z.shape[0] < _MIN_ROWS or not _are_alike(X, Z):
        return None
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        grid = _find_grid(X)
    if grid is None:
        return None
    e, w = _integers(X, grid), _integers(Z, grid)
    if e is None or w is None:
        return None
    if not issparse(X):
        reference = _most_frequent(e)
        e -= reference
        w -= reference
    norms, norms_of_Z = _norms(e), _norms(w)
    largest = int(np.ceil((norms.max() ** 0.5 + norms_of_Z.max() ** 0.5) ** 2))
    if largest > _MAX_DISTANCE:
        return None
    starts = range(0, X.shape[0], ROWS_PER_BLOCK)
    blocks = [_block(e, norms, start, min(start + ROWS_PER_BLOCK, X.shape[0])) for start in starts]
    n_lines = w.nnz if issparse(w) else np.count_nonzero(w)
    rows = IntegerRows(_csr_rows(w), norms_of_Z.astype(np.int16))
    return IntegerDistances(grid.step * grid.step, largest, n_lines / Z.shape[0], blocks, rows)


def _are_alike(X, Z):
    """Return whether two matrices are arrays, or CSR without repeated entries, both of the same floating point type."""
    if X.dtype != Z.dtype or X.dtype.kind != "f" or issparse(X) != issparse(Z):
        return False
    return not issparse(X) or all(one.format == "csr" and one.has_canonical_format for one in (X, Z))


def _find_grid(X):
    """Return the Grid that some values of X have, or None if they have too many different values, or only one."""
    some = X.data[:_VALUES_EXAMINED] if issparse(X) else X[: -(-_VALUES_EXAMINED // max(1, X.shape[1]))]
    levels = np.unique(np.append(some, 0.0) if issparse(X) else some).astype(np.float64)
    if not 2 <= len(levels) <= _MAX_LEVELS:
        return None
    extent = levels[-1] - levels[0]
    n_steps = np.rint(extent / np.diff(levels).min())
    step = extent / n_steps
    if not (1.0 <= n_steps <= _MAX_STEPS and _MIN_STEP < step < 1.0 / _MIN_STEP):
        return None
    rounding = _ROUNDING * float(np.finfo(X.dtype).eps) * max(abs(levels[0]), abs(levels[-1]), step)
    return Grid(0.0 if issparse(X) else levels[0], step, rounding / step)


def _integers(X, grid):
    """Return a matrix as integers of the grid in 16 bits, or None if a value is not on the grid."""
    values = X.data if issparse(X) else np.ascontiguousarray(X).ravel()
    out = np.empty(len(values), np.int16)
    if not _put_integers(values, grid, out):
        return None
    return csr_array((out, X.indices, X.indptr), shape=X.shape) if issparse(X) else out.reshape(X.shape)


@compiled
def _put_integers(values, grid, out):
    """Set out to the numbers of steps of the values from the origin; return whether all are on the grid."""
    steps_per_unit = 1.0 / grid.step
    for begin in range(0, values.size, _VALUES_PER_CHECK):
        some, target = values[begin : begin + _VALUES_PER_CHECK], out[begin : begin + _VALUES_PER_CHECK]
        n_wrong = 0
        for j in range(some.size):
            steps = (some[j] - grid.origin) * steps_per_unit
            is_small = abs(steps) <= _MAX_STEPS  # false for NaN
            nearest = np.rint(steps if is_small else 0.0)
            n_wrong += not (is_small and abs(steps - nearest) <= grid.tolerance)
            target[j] = nearest
        if n_wrong > 0:
            return False
    return True


def _most_frequent(e):
    """Return the most frequent integer of each column."""
    levels = np.arange(e.min(), e.max() + 1, dtype=np.int16)
    return levels[np.argmax([np.count_nonzero(e == level, axis=0) for level in levels], axis=0)]


def _norms(e):
    """Return the squared norms of rows of integers, as integers of 64 bits."""
    if not issparse(e):
        return np.einsum("ij,ij->i", e, e, dtype=np.int64)
    ends = np.append(0, np.cumsum(np.square(e.data, dtype=np.int64)))[e.indptr]
    return np.diff(ends)


def _block(e, norms, start, stop):
    """Return the IntegerBlock of the rows from start to stop."""
    part = e[start:stop].toarray() if issparse(e) else e[start:stop]
    return IntegerBlock(start, stop, np.ascontiguousarray(part.T), norms[start:stop].astype(np.int16))


def _csr_rows(w):
    """Return rows of integers as CsrRows; those of an array have no indices."""
    if issparse(w):
        return csr_rows(w)
    indptr = np.arange(w.shape[0] + 1, dtype=np.uint64) * np.uint64(w.shape[1])
    return CsrRows(w.ravel(), np.empty(0, np.uint32), indptr)


@compiled
def put_distances(Z, i, lines, norms, distances):
    """Set distances[j] to the integer distance between row i of Z and row j of a block with these lines and norms."""
    rows, own = Z.rows, Z.norms[i]
    has_indices, begin = rows.indices.size > 0, rows.indptr[i]
    for j in range(distances.size):
        distances[j] = norms[j] + own
    for k in range(begin, rows.indptr[i + np.uint64(1)]):
        if rows.data[k] != 0:
            double = np.int16(2 * rows.data[k])
            line = lines[rows.indices[k] if has_indices else np.uint32(k - begin)]
            for j in range(distances.size):
                distances[j] -= double * line[j]
