"""Inner products <z, x_j> of sparse rows by lists: for each column, the rows x_j that have a value in it.

For each value z_k, the list of column k is passed, and z_k x_jk is added to the sum of every row j in it. Only columns
that both rows have cost time: in text, a tenth of the columns of a row. A column that most rows have is stored as a
line with an entry for every row, which is added faster than its list would be. Lists are made for blocks of rows x_j,
so that the sums of a block stay in the processor's first cache.
"""

from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array

from widemargin._runtime.compile import compiled

ROWS_PER_BLOCK = 2048
_LINE_ABOVE_FREQUENCY = 0.4  # fraction of the rows that have the column
_COLUMNS_PER_VALUE = 2  # a table of all columns may have so many entries for each stored value


class CsrRows(NamedTuple):
    """Rows in CSR format."""

    data: np.ndarray
    indices: np.ndarray
    indptr: np.ndarray


class Lists(NamedTuple):
    """The lists of a block of rows: column k is in the rows rows[indptr[k]:indptr[k + 1]], with these values.

    If line_of[k] is not zero, column k is also lines[line_of[k] − 1], which is used instead. If there are no lines,
    `line_of` is empty.
    """

    data: np.ndarray
    rows: np.ndarray
    indptr: np.ndarray
    lines: np.ndarray
    line_of: np.ndarray


class ListBlock(NamedTuple):
    """The lists of the rows from start to stop; in `lists` they are numbered from 0."""

    start: int
    stop: int
    lists: Lists


def csr_rows(X):
    """Return a CSR matrix as CsrRows with unsigned indices."""
    indices, indptr = X.indices.astype(np.int32, copy=False), X.indptr.astype(np.int64, copy=False)
    return CsrRows(X.data, indices.view(np.uint32), indptr.view(np.uint64))


def chosen_rows(rows, chosen):
    """Return some of the CsrRows."""
    return csr_rows(_matrix(rows)[chosen])


def _matrix(rows, n_columns=None):
    """Return CsrRows as a CSR matrix."""
    shape = len(rows.indptr) - 1, np.iinfo(np.int32).max if n_columns is None else n_columns
    return csr_array((rows.data, rows.indices.view(np.int32), rows.indptr.view(np.int64)), shape=shape)


def list_blocks(rows, n_columns):
    """Return the ListBlocks of CsrRows whose column numbers are below n_columns."""
    X = _matrix(rows, n_columns)
    n_rows = X.shape[0]
    starts = range(0, n_rows, ROWS_PER_BLOCK)
    ends = [(start, min(start + ROWS_PER_BLOCK, n_rows)) for start in starts]
    return [ListBlock(*pair, _lists(X if len(ends) == 1 else X[slice(*pair)])) for pair in ends]


def _lists(X):
    """Return the Lists of a CSR matrix."""
    X = X.tocsc()
    frequent = np.flatnonzero(np.diff(X.indptr) > max(1.0, _LINE_ABOVE_FREQUENCY * X.shape[0]))
    lines = np.zeros((len(frequent), X.shape[0]), X.dtype)
    line_of = np.zeros(X.shape[1] if len(frequent) else 0, np.uint32)
    line_of[frequent] = 1 + np.arange(len(frequent))
    for line, column in zip(lines, frequent, strict=True):
        here = slice(X.indptr[column], X.indptr[column + 1])
        np.add.at(line, X.indices[here], X.data[here])
    return Lists(X.data, X.indices.astype(np.uint32), X.indptr.astype(np.uint32), lines, line_of)


class ColumnNumbers:
    """Numbers of columns for lists and panels: those of X, or if X has very many columns, of those that occur in it.

    So the memory for one entry per column does not grow with the largest column number.

    Parameters
    ----------
    rows : CsrRows
        The rows of X.
    n_features : int

    Attributes
    ----------
    n_columns : int
    """

    def __init__(self, rows, n_features):
        self._occurring, self.n_columns = None, n_features
        if n_features > _COLUMNS_PER_VALUE * len(rows.data):
            self._occurring = np.unique(rows.indices) if len(rows.indices) else np.zeros(1, np.uint32)
            self.n_columns = len(self._occurring)

    def renumber(self, rows):
        """Return CsrRows with these numbers; values in columns that do not occur in X become zero."""
        if self._occurring is None:
            return rows
        places = np.searchsorted(self._occurring, rows.indices)
        places[places == self.n_columns] = 0
        known = self._occurring[places] == rows.indices
        data = np.where(known, rows.data, rows.data.dtype.type(0))
        return CsrRows(data, np.where(known, places, 0).astype(np.uint32), rows.indptr)


def matches_per_pair(rows, n_columns):
    """Return how many columns two of the CsrRows have in common, on average over all pairs of rows."""
    counts = np.bincount(rows.indices, minlength=n_columns).astype(np.float64)
    return float(counts @ counts) / max(1, len(rows.indptr) - 1) ** 2


@compiled(fastmath=frozenset({"contract"}))
def row_with_lists(rows, i, lists, sums):
    """Set sums[j] to the inner product of row i with row j of the lists."""
    has_lines = lists.line_of.size > 0
    for j in range(sums.size):
        sums[j] = 0
    for k in range(rows.indptr[i], rows.indptr[i + np.uint64(1)]):
        value, column = rows.data[k], rows.indices[k]
        if has_lines and lists.line_of[column] > 0:
            line = lists.lines[lists.line_of[column] - np.uint32(1)]
            for j in range(sums.size):
                sums[j] += value * line[j]
        else:
            for t in range(lists.indptr[column], lists.indptr[column + np.uint32(1)]):
                sums[lists.rows[t]] += value * lists.data[t]


@compiled
def rows_with_lists(rows, chosen, lists, products):
    """Set products[b, j] to the inner product of row chosen[b] with row j of the lists."""
    for b in range(chosen.size):
        row_with_lists(rows, chosen[b], lists, products[np.uint64(b)])
