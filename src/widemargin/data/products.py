"""Inner products <z_b, x_j> of a block of rows z with many rows x_j, in tiles that fit into the processor's cache.

    dense    The tile is a matrix product computed by BLAS.
    sparse   The block is written as a panel: a dense array with a line for each feature, which holds this feature of
             all rows of the block. The products of a row x_j with all rows of the block are then the sum of as many
             lines as x_j has stored values, each multiplied by its value.
    wide     If a sparse X has more columns than stored values, columns without values are removed. If very many
             columns remain, a panel has lines only for the columns of its own rows, which are found by a table. So the
             memory of a panel does not grow with the largest column number.

The storage of the inner products does not depend on that of X: rows of which less than the fraction
`_SPARSE_BELOW_DENSITY` of the values is not zero are converted to CSR, others to an array.
"""

from contextlib import contextmanager
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array, issparse

from widemargin._runtime.compile import compiled
from widemargin._runtime.simd import LANES, add_line, no_lanes, put_lanes

_SPARSE_BELOW_DENSITY = 0.15  # fraction of nonzero values; a stored value of CSR costs 6 to 7 times as much (measured)
_NANOSECONDS_PER_SPARSE_VALUE, _NANOSECONDS_PER_DENSE_VALUE = 0.1, 0.016  # of a row x_j
_ROWS_PER_DENSE_PANEL = 128  # rows of a block that BLAS multiplies at once
_PRODUCTS_PER_TILE = 1 << 16  # 256 or 512 kB, and 20 to 100 microseconds of work between calls from Python
_MAX_COLUMNS_WITH_LINES = 1 << 16  # with more columns, a panel has no line for each of them; a panel of 16 MB at most
_ROWS_TRANSPOSED_TOGETHER = 64  # rows x_j whose products are transposed together, from (j, b) to (b, j)


class _CsrRows(NamedTuple):
    """Rows in CSR format."""

    data: np.ndarray
    indices: np.ndarray
    indptr: np.ndarray


class _Panel(NamedTuple):
    """A block of sparse rows: feature k of all of them is lines[k], or lines[line_of[k]] if `line_of` is not empty."""

    lines: np.ndarray
    line_of: np.ndarray


class InnerProducts:
    """Inner products with the rows of X.

    Parameters
    ----------
    X : ndarray or scipy sparse
        Two-dimensional, finite.
    dtype : numpy dtype
        Precision of the computation, float32 or float64. X is copied if it has another type or layout.

    Attributes
    ----------
    n_rows, n_features : int
    panel_rows, tile_columns : int
        Number of rows of a panel, and of columns of a tile.
    cost : float
        Approximate time of one inner product in nanoseconds.
    """

    def __init__(self, X, dtype):
        self.n_rows, self.n_features = X.shape
        self.dtype = np.dtype(dtype)
        self._sparse = _density(X) < _SPARSE_BELOW_DENSITY
        self.panel_rows = LANES if self._sparse else _ROWS_PER_DENSE_PANEL
        self.tile_columns = _PRODUCTS_PER_TILE // self.panel_rows
        self._free_workspaces = []
        if self._sparse:
            self._rows, self._occurring = _csr_rows(csr_array(X, dtype=dtype)), None
            if self.n_features > len(self._rows.data):
                self._occurring, places = np.unique(self._rows.indices, return_inverse=True)
                self._rows = self._rows._replace(indices=places.astype(np.uint32))
            self._n_columns = self.n_features if self._occurring is None else len(self._occurring)
            self.cost = _NANOSECONDS_PER_SPARSE_VALUE * len(self._rows.data) / max(1, self.n_rows)
        else:
            self._X = _array_of(X, dtype)
            self.cost = _NANOSECONDS_PER_DENSE_VALUE * self.n_features

    def panels(self, chosen):
        """Return the chosen rows of X as a list of panels for `fill`: `panel_rows` rows in each, fewer in the last."""
        return [self._panel(chosen[begin : begin + self.panel_rows]) for begin in self._begins(len(chosen))]

    def _panel(self, chosen):
        if not self._sparse:
            return self._X[chosen]
        return _make_panel(self._rows, np.ascontiguousarray(chosen, dtype=np.uint64), self._n_columns)

    def panels_of(self, Z):
        """Return the rows of another matrix Z, with the same features, as a list of panels for `fill`."""
        if not self._sparse:
            Z = _array_of(Z, self.dtype)
            return [Z[begin : begin + self.panel_rows] for begin in self._begins(len(Z))]
        rows = self._renumber_columns(_csr_rows(csr_array(Z, dtype=self.dtype)))
        every = np.arange(Z.shape[0], dtype=np.uint64)
        return [_make_panel(rows, every[k : k + LANES], self._n_columns) for k in self._begins(len(every))]

    def _renumber_columns(self, rows):
        """Return rows with the column numbers of X; values in columns that do not occur in X become zero."""
        if self._occurring is None:
            return rows
        places = np.searchsorted(self._occurring, rows.indices)
        places[places == self._n_columns] = 0
        known = self._occurring[places] == rows.indices if self._n_columns else np.zeros(len(places), bool)
        data = np.where(known, rows.data, self.dtype.type(0))
        return _CsrRows(data, np.where(known, places, 0).astype(np.uint32), rows.indptr)

    def _begins(self, n_rows):
        return range(0, n_rows, self.panel_rows)

    @contextmanager
    def workspace(self):
        """Provide memory for the products of one tile; it is reused by later tasks, since new memory is slow."""
        try:
            memory = self._free_workspaces.pop()
        except IndexError:
            memory = np.empty((self.panel_rows, self.tile_columns), self.dtype)
            memory = memory, np.empty((_ROWS_TRANSPOSED_TOGETHER, self.panel_rows), self.dtype)
        yield memory
        self._free_workspaces.append(memory)

    def tiles(self, start, stop):
        """Divide range(start, stop) into the (start, stop) ranges of tiles."""
        return [(begin, min(begin + self.tile_columns, stop)) for begin in range(start, stop, self.tile_columns)]

    def fill(self, panel, n_panel, columns, start, stop, workspace):
        """Return the products of a panel of n_panel rows with the rows columns[start:stop], stored in the workspace.

        The shape of the result is (n_panel, stop − start). `columns` is an array of uint32, or None for the rows
        start .. stop themselves.
        """
        products, transposed = workspace
        if self._sparse:
            products = products[:, : stop - start]
            if columns is None:
                _sparse_range(self._rows, start, stop, panel, transposed, products)
            else:
                _sparse_chosen(self._rows, columns[start:stop], panel, transposed, products)
            return products[:n_panel]
        X = self._X[start:stop] if columns is None else self._X[columns[start:stop]]
        out = products.reshape(-1)[: n_panel * len(X)].reshape(n_panel, len(X))
        return np.matmul(panel, X.T, out=out)


def squared_norms(X):
    """Return |x_i|² of every row of an array or sparse matrix, in float64; infinite if it overflows."""
    with np.errstate(over="ignore"):
        if issparse(X):
            return row_sums(csr_array(X, dtype=np.float64).power(2))
        return np.einsum("ij,ij->i", X, X, dtype=np.float64)


def row_sums(X):
    """Return the sum of each row of a CSR matrix in float64; SciPy's method allocates memory for every column."""
    row = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    return np.bincount(row, X.data, minlength=X.shape[0])


def _density(X):
    size = max(1, X.shape[0] * X.shape[1])
    return (X.nnz if issparse(X) else np.count_nonzero(X)) / size


def _csr_rows(X):
    indices, indptr = X.indices.astype(np.int32, copy=False), X.indptr.astype(np.int64, copy=False)
    return _CsrRows(X.data, indices.view(np.uint32), indptr.view(np.uint64))


def _array_of(X, dtype):
    return np.ascontiguousarray(X.toarray() if issparse(X) else X, dtype=dtype)


def _make_panel(rows, chosen, n_columns):
    """Return the chosen rows as a _Panel of LANES rows; missing rows are zero.

    If there are very many columns, line 0 is zero and stands for all columns that do not occur in the chosen rows.
    """
    if n_columns <= _MAX_COLUMNS_WITH_LINES:
        panel = _Panel(np.zeros((max(1, n_columns), LANES), rows.data.dtype), np.empty(0, np.uint32))
        _fill_panel(rows, chosen, panel)
        return panel
    line_of = np.zeros(n_columns, np.uint32)
    n_lines = 1 + _number_columns(rows, chosen, line_of)
    panel = _Panel(np.zeros((n_lines, LANES), rows.data.dtype), line_of)
    _fill_panel(rows, chosen, panel)
    return panel


@compiled
def _number_columns(rows, chosen, line_of):
    """Number the columns of the chosen rows from 1, in the order of their first occurrence; return their number."""
    count = np.uint32(0)
    for b in range(chosen.size):
        for k in range(rows.indptr[chosen[b]], rows.indptr[chosen[b] + np.uint64(1)]):
            if line_of[rows.indices[k]] == 0:
                count += np.uint32(1)
                line_of[rows.indices[k]] = count
    return count


@compiled
def _fill_panel(rows, chosen, panel):
    """Add feature k of row chosen[b] to entry b of the line of column k."""
    has_table = panel.line_of.size > 0
    for b in range(chosen.size):
        for k in range(rows.indptr[chosen[b]], rows.indptr[chosen[b] + np.uint64(1)]):
            line = panel.line_of[rows.indices[k]] if has_table else rows.indices[k]
            panel.lines[line, np.uint64(b)] += rows.data[k]


@compiled
def _row_with_panel(rows, j, panel):
    """Return the inner products of x_j with all rows of the panel: Σ_k x_jk times the line of column k."""
    sums = no_lanes(panel.lines)
    if panel.line_of.size:
        for k in range(rows.indptr[j], rows.indptr[j + np.uint64(1)]):
            sums = add_line(sums, rows.data[k], panel.lines, panel.line_of[rows.indices[k]])
    else:
        for k in range(rows.indptr[j], rows.indptr[j + np.uint64(1)]):
            sums = add_line(sums, rows.data[k], panel.lines, rows.indices[k])
    return sums


@compiled
def _transpose(transposed, n_columns, products, start):
    """Set products[b, start + j] = transposed[j, b] for j < n_columns."""
    for b in range(products.shape[0]):
        line = products[np.uint64(b)]
        for j in range(n_columns):
            line[np.uint64(start + j)] = transposed[np.uint64(j), np.uint64(b)]


@compiled
def _sparse_range(rows, start, stop, panel, transposed, products):
    """Set products[b, j − start] = <panel_b, x_j> for start <= j < stop."""
    height = transposed.shape[0]
    for begin in range(start, stop, height):
        end = min(begin + height, stop)
        for j in range(begin, end):
            put_lanes(_row_with_panel(rows, np.uint64(j), panel), transposed, j - begin)
        _transpose(transposed, end - begin, products, begin - start)


@compiled
def _sparse_chosen(rows, columns, panel, transposed, products):
    """Set products[b, k] = <panel_b, x_columns[k]> for every k."""
    height = transposed.shape[0]
    for begin in range(0, columns.size, height):
        end = min(begin + height, columns.size)
        for k in range(begin, end):
            put_lanes(_row_with_panel(rows, np.uint64(columns[k]), panel), transposed, k - begin)
        _transpose(transposed, end - begin, products, begin)
