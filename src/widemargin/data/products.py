"""Inner products <z_b, x_j> of a block of rows z with many rows x_j, in tiles that stay in the processor's cache.

    dense    a matrix product of BLAS
    sparse   the block is spread out as a panel, a line of memory per feature with one number per row of the block;
             each row x_j then adds up as many lines as it has values, all rows of the block at once
    wide     of more columns than values only those that occur count; of very many, a panel has lines only for those of
             its own rows, found by a table, so that no memory grows with the largest column number

What is stored as zeros is cheaper as CSR, and CSR with few zeros is cheaper as an array, whatever the caller had:
the rule is `_SPARSE_BELOW`. Together with `matrix.py` this is the room that knows how rows are stored.
"""

from contextlib import contextmanager
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array, issparse

from widemargin._runtime.compile import compiled
from widemargin._runtime.simd import LANES, add_line, no_lanes, put_lanes

_SPARSE_BELOW = 0.15  # fraction of values other than zero below which CSR is faster (measured: 6 to 7 times per value)
_SPARSE_COST, _DENSE_COST = 0.1, 0.016  # nanoseconds for a stored value
_DENSE_PANEL = 128  # rows of a block that are multiplied at once
_TILE = 1 << 16  # products of one tile: 256 or 512 kB, and 20 to 100 microseconds of work between calls from Python
_PANEL_LINES = 1 << 16  # columns up to which a panel has a line for each: 16 MB at most
_TRANSPOSED = 64  # rows x_j whose products are turned around together, from (j, b) to (b, j)


class _Rows(NamedTuple):
    """Rows in CSR form."""

    data: np.ndarray
    indices: np.ndarray
    indptr: np.ndarray


class _Panel(NamedTuple):
    """Sparse rows spread out: column k is lines[k], or lines[line_of[k]] if there are very many columns."""

    lines: np.ndarray
    line_of: np.ndarray


class InnerProducts:
    """Inner products with the rows of X.

    Parameters
    ----------
    X : ndarray or scipy sparse
        Two-dimensional, finite.
    dtype : numpy dtype
        In which to compute: float32 or float64. X is copied if it is of another type or layout.

    Attributes
    ----------
    n_rows, n_features : int
    panel_rows : int
        Rows of one panel.
    cost : float
        Nanoseconds that one inner product takes, about.
    """

    def __init__(self, X, dtype):
        self.n_rows, self.n_features = X.shape
        self.dtype = np.dtype(dtype)
        self._sparse = _fraction_stored(X) < _SPARSE_BELOW
        self.panel_rows = LANES if self._sparse else _DENSE_PANEL
        self._tile_columns = _TILE // self.panel_rows
        self._spare = []
        if self._sparse:
            self._rows, self._occurring = _rows_of(csr_array(X, dtype=dtype)), None
            if self.n_features > len(self._rows.data):
                self._occurring, places = np.unique(self._rows.indices, return_inverse=True)
                self._rows = self._rows._replace(indices=places.astype(np.uint32))
            self._n_columns = self.n_features if self._occurring is None else len(self._occurring)
            self.cost = _SPARSE_COST * len(self._rows.data) / max(1, self.n_rows)
        else:
            self._X = _array_of(X, dtype)
            self.cost = _DENSE_COST * self.n_features

    def panels(self, chosen):
        """Return some of the rows in the form that `fill` takes: a list of panels of `panel_rows`, the last shorter."""
        return [self._panel(chosen[begin : begin + self.panel_rows]) for begin in self._begins(len(chosen))]

    def _panel(self, chosen):
        if not self._sparse:
            return self._X[chosen]
        return _spread_out(self._rows, np.ascontiguousarray(chosen, dtype=np.uint64), self._n_columns)

    def panels_of(self, Z):
        """Return the rows of another matrix Z, with as many features, in the form that `fill` takes."""
        if not self._sparse:
            Z = _array_of(Z, self.dtype)
            return [Z[begin : begin + self.panel_rows] for begin in self._begins(len(Z))]
        rows = self._known_columns(_rows_of(csr_array(Z, dtype=self.dtype)))
        every = np.arange(Z.shape[0], dtype=np.uint64)
        return [_spread_out(rows, every[k : k + LANES], self._n_columns) for k in self._begins(len(every))]

    def _known_columns(self, rows):
        """Return rows with the columns that occur in X numbered as there, and zeros in the place of others."""
        if self._occurring is None:
            return rows
        places = np.searchsorted(self._occurring, rows.indices)
        places[places == self._n_columns] = 0
        known = self._occurring[places] == rows.indices if self._n_columns else np.zeros(len(places), bool)
        data = np.where(known, rows.data, self.dtype.type(0))
        return _Rows(data, np.where(known, places, 0).astype(np.uint32), rows.indptr)

    def _begins(self, n_rows):
        return range(0, n_rows, self.panel_rows)

    @contextmanager
    def workspace(self):
        """Lend memory for the products of one tile: fresh memory is slow, so it is handed on from task to task."""
        try:
            memory = self._spare.pop()
        except IndexError:
            memory = np.empty((self.panel_rows, self._tile_columns), self.dtype)
            memory = memory, np.empty((_TRANSPOSED, self.panel_rows), self.dtype)
        yield memory
        self._spare.append(memory)

    def tiles(self, start, stop):
        """Cut positions start .. stop into the ranges of tiles."""
        return [(begin, min(begin + self._tile_columns, stop)) for begin in range(start, stop, self._tile_columns)]

    def fill(self, panel, n_panel, columns, start, stop, workspace):
        """Return the products (n_panel, stop − start) of a panel with the rows columns[start:stop], in the workspace.

        `columns` is an array of uint32, or None for the rows start .. stop themselves.
        """
        products, turned = workspace
        if self._sparse:
            products = products[:, : stop - start]
            if columns is None:
                _sparse_range(self._rows, start, stop, panel, turned, products)
            else:
                _sparse_chosen(self._rows, columns[start:stop], panel, turned, products)
            return products[:n_panel]
        X = self._X[start:stop] if columns is None else self._X[columns[start:stop]]
        out = products.reshape(-1)[: n_panel * len(X)].reshape(n_panel, len(X))
        return np.matmul(panel, X.T, out=out)


def squared_norms(X):
    """Return |x_i|² of every row of an array or sparse matrix, in float64; infinite where it is too large."""
    with np.errstate(over="ignore"):
        if issparse(X):
            return row_sums(csr_array(X, dtype=np.float64).power(2))
        return np.einsum("ij,ij->i", X, X, dtype=np.float64)


def row_sums(X):
    """Return the sum of each row of a CSR matrix in float64; SciPy's own takes memory for every column."""
    row = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    return np.bincount(row, X.data, minlength=X.shape[0])


def _fraction_stored(X):
    size = max(1, X.shape[0] * X.shape[1])
    return (X.nnz if issparse(X) else np.count_nonzero(X)) / size


def _rows_of(X):
    indices, indptr = X.indices.astype(np.int32, copy=False), X.indptr.astype(np.int64, copy=False)
    return _Rows(X.data, indices.view(np.uint32), indptr.view(np.uint64))


def _array_of(X, dtype):
    return np.ascontiguousarray(X.toarray() if issparse(X) else X, dtype=dtype)


def _spread_out(rows, chosen, n_columns):
    """Return rows as a _Panel, zeros where there is no row; of very many columns, line 0 is for those not in them."""
    if n_columns <= _PANEL_LINES:
        panel = _Panel(np.zeros((max(1, n_columns), LANES), rows.data.dtype), np.empty(0, np.uint32))
        _spread(rows, chosen, panel)
        return panel
    line_of = np.zeros(n_columns, np.uint32)
    n_lines = 1 + _number_columns(rows, chosen, line_of)
    panel = _Panel(np.zeros((n_lines, LANES), rows.data.dtype), line_of)
    _spread(rows, chosen, panel)
    return panel


@compiled
def _number_columns(rows, chosen, line_of):
    """Number the columns of the chosen rows from 1 on, in the order in which they occur; return how many there are."""
    count = np.uint32(0)
    for b in range(chosen.size):
        for k in range(rows.indptr[chosen[b]], rows.indptr[chosen[b] + np.uint64(1)]):
            if line_of[rows.indices[k]] == 0:
                count += np.uint32(1)
                line_of[rows.indices[k]] = count
    return count


@compiled
def _spread(rows, chosen, panel):
    """Add x_chosen[b],k to the line of column k, at b."""
    many = panel.line_of.size > 0
    for b in range(chosen.size):
        for k in range(rows.indptr[chosen[b]], rows.indptr[chosen[b] + np.uint64(1)]):
            line = panel.line_of[rows.indices[k]] if many else rows.indices[k]
            panel.lines[line, np.uint64(b)] += rows.data[k]


@compiled
def _row_with_panel(rows, j, panel):
    """Return Σ_k x_jk times the line of column k: the products of x_j with all rows of the panel."""
    sums = no_lanes(panel.lines)
    if panel.line_of.size:
        for k in range(rows.indptr[j], rows.indptr[j + np.uint64(1)]):
            sums = add_line(sums, rows.data[k], panel.lines, panel.line_of[rows.indices[k]])
    else:
        for k in range(rows.indptr[j], rows.indptr[j + np.uint64(1)]):
            sums = add_line(sums, rows.data[k], panel.lines, rows.indices[k])
    return sums


@compiled
def _turn(turned, n_columns, products, start):
    """Set products[b, start + j] = turned[j, b]."""
    for b in range(products.shape[0]):
        line = products[np.uint64(b)]
        for j in range(n_columns):
            line[np.uint64(start + j)] = turned[np.uint64(j), np.uint64(b)]


@compiled
def _sparse_range(rows, start, stop, panel, turned, products):
    """Set products[b, j − start] = <panel_b, x_j> for start <= j < stop."""
    height = turned.shape[0]
    for begin in range(start, stop, height):
        end = min(begin + height, stop)
        for j in range(begin, end):
            put_lanes(_row_with_panel(rows, np.uint64(j), panel), turned, j - begin)
        _turn(turned, end - begin, products, begin - start)


@compiled
def _sparse_chosen(rows, columns, panel, turned, products):
    """Set products[b, k] = <panel_b, x_columns[k]> for every k."""
    height = turned.shape[0]
    for begin in range(0, columns.size, height):
        end = min(begin + height, columns.size)
        for k in range(begin, end):
            put_lanes(_row_with_panel(rows, np.uint64(columns[k]), panel), turned, k - begin)
        _turn(turned, end - begin, products, begin)
