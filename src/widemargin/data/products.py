"""Inner products <z_b, x_j> of a block of rows z with many rows x_j, in tiles that fit into the processor's cache.

    dense    The tile is a matrix product computed by BLAS.
    lists    Sparse rows that have few columns in common, such as those of text: see `column_lists`.
    panel    Other sparse rows. The block is written as a dense array with a line for each feature, which holds this
             feature of all rows of the block. The products of a row x_j with all rows of the block are then the sum of
             as many lines as x_j has stored values, each multiplied by its value.

The storage of the inner products does not depend on that of X: rows of which less than the fraction
`_SPARSE_BELOW_DENSITY` of the values is not zero are converted to CSR, others to an array. With few features, rows of
up to `_PANELS_BELOW_DENSITY` are multiplied by panels: a stored value costs 2 to 4 times as much as one of BLAS, less
if a panel stays in the first cache.
"""

from contextlib import contextmanager
from threading import Lock
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array, issparse

from widemargin._runtime.compile import SUMS, compiled
from widemargin._runtime.simd import LANES, add_line, aligned_zeros, no_lanes, put_lanes
from widemargin._runtime.threads import split
from widemargin.data.column_lists import (
    ROWS_PER_BLOCK,
    ColumnNumbers,
    CsrRows,
    chosen_rows,
    csr_rows,
    list_blocks,
    matches_per_pair,
    rows_with_lists,
)

_SPARSE_BELOW_DENSITY = 0.15  # fraction of nonzero values; rows with fewer are sparse
_PANELS_BELOW_DENSITY, _MAX_FEATURES_OF_PANELS = 0.3, 1024  # denser rows of few features for which panels are faster
_DENSITY_WITH_SMALL_PANELS, _FEATURES_OF_SMALL_PANELS = 0.62, 64
_MIN_ROWS_BY_PANELS = 2500  # of such rows
_NANOSECONDS_PER_SPARSE_VALUE, _NANOSECONDS_PER_DENSE_VALUE = 0.1, 0.016  # of a row x_j
_NANOSECONDS_PER_MATCH = 0.7  # of a column that two rows have in common
_MAX_MATCHES_PER_BYTE = 0.07  # of the stored values of a row; lists are faster up to this, panels above (measured)
_ROWS_PER_DENSE_PANEL = 128  # rows of a block that BLAS multiplies at once
_PRODUCTS_PER_TILE = 1 << 16  # 256 or 512 kB, and 20 to 100 microseconds of work between calls from Python
_ROWS_OF_ONE_TILE = 256  # up to which all products of dense rows are one tile
_COLUMNS_PER_TASK = 4 * ROWS_PER_BLOCK  # products with so many rows x_j are one task of the thread pool
_MAX_COLUMNS_WITH_LINES = 1 << 16  # of a panel, which then has 16 MB; with more columns, lists are used
_ROWS_TRANSPOSED_TOGETHER = 64  # rows x_j whose products are transposed together, from (j, b) to (b, j)


class _ListPanel(NamedTuple):
    """A block of sparse rows that are multiplied by lists: the rows `chosen` of `rows`."""

    rows: CsrRows
    chosen: np.ndarray


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
        self._sparse, self._by_lists = is_sparse(X) or (issparse(X) and _suits_panels(X)), False
        if self._sparse:
            self._prepare_sparse(X)
        else:
            self._X = _array_of(X, dtype)
            self.cost = _NANOSECONDS_PER_DENSE_VALUE * self.n_features
        dense_rows = _ROWS_PER_DENSE_PANEL if self.n_rows > _ROWS_OF_ONE_TILE else _ROWS_OF_ONE_TILE
        self.panel_rows = LANES if self._sparse else dense_rows
        self.tile_columns = _PRODUCTS_PER_TILE // self.panel_rows
        self._free_workspaces = []

    def _prepare_sparse(self, X):
        """Set the rows in CSR format, and whether their products are computed by lists or by panels."""
        rows = csr_rows(csr_array(X, dtype=self.dtype))
        self._numbers = ColumnNumbers(rows, self.n_features)
        self._rows, n_columns = self._numbers.renumber(rows), self._numbers.n_columns
        values_per_row = len(rows.data) / max(1, self.n_rows)
        matches = matches_per_pair(self._rows, n_columns)
        max_matches = _MAX_MATCHES_PER_BYTE * self.dtype.itemsize * values_per_row
        self._by_lists = n_columns > _MAX_COLUMNS_WITH_LINES or (is_sparse(X) and matches < max_matches)
        self.cost = _NANOSECONDS_PER_SPARSE_VALUE * values_per_row
        if self._by_lists:
            self.cost = _NANOSECONDS_PER_MATCH * matches
        self._lists, self._lists_columns, self._lock = None, None, Lock()

    def panels(self, chosen):
        """Return the chosen rows of X as a list of panels for `fill`: `panel_rows` rows in each, fewer in the last."""
        if not self._sparse:
            return [self._X[chosen[begin : begin + self.panel_rows]] for begin in self._begins(len(chosen))]
        return self._sparse_panels(self._rows, np.ascontiguousarray(chosen, dtype=np.uint64))

    def panels_of(self, Z):
        """Return the rows of another matrix Z, with the same features, as a list of panels for `fill`."""
        if not self._sparse:
            Z = _array_of(Z, self.dtype)
            return [Z[begin : begin + self.panel_rows] for begin in self._begins(len(Z))]
        rows = self._numbers.renumber(csr_rows(csr_array(Z, dtype=self.dtype)))
        return self._sparse_panels(rows, np.arange(Z.shape[0], dtype=np.uint64))

    def _sparse_panels(self, rows, chosen):
        parts = [chosen[begin : begin + LANES] for begin in self._begins(len(chosen))]
        if self._by_lists:
            return [_ListPanel(rows, part) for part in parts]
        return [_make_panel(rows, part, self._numbers.n_columns) for part in parts]

    def _begins(self, n_rows):
        return range(0, n_rows, self.panel_rows)

    @property
    def is_dense(self):
        """Whether the rows are an array."""
        return not self._sparse

    @property
    def rows_for_panels(self):
        """The rows x_j as CsrRows if products are computed by panels, else None."""
        return self._rows if self._sparse and not self._by_lists else None

    @property
    def features(self):
        """The values of each feature one after the other, (n_features, n_rows); None if the rows are sparse."""
        return None if self._sparse else np.ascontiguousarray(self._X.T)

    @contextmanager
    def workspace(self):
        """Provide memory for the products of one tile; it is reused by later tasks, since new memory is slow."""
        try:
            memory = self._free_workspaces.pop()
        except IndexError:
            memory = np.empty(self.panel_rows * self.tile_columns, self.dtype)
            memory = memory, np.empty((_ROWS_TRANSPOSED_TOGETHER, self.panel_rows), self.dtype)
        yield memory
        self._free_workspaces.append(memory)

    def ranges(self, n_columns, n_panels=1):
        """Divide range(n_columns) into the (start, stop) ranges of tasks for threads, of so many panels each."""
        smallest = ROWS_PER_BLOCK if self._by_lists else self.tile_columns  # lists are taken by whole blocks
        step = max(smallest, _COLUMNS_PER_TASK // n_panels // smallest * smallest)
        if self._by_lists:
            return [(begin, min(begin + step, n_columns)) for begin in range(0, n_columns, step)]
        return split(n_columns, -(-n_columns // step))

    def tiles(self, start, stop):
        """Divide range(start, stop) into the (start, stop) ranges of tiles; none crosses the end of a list block."""
        first = start // ROWS_PER_BLOCK * ROWS_PER_BLOCK if self._by_lists else start
        begins = range(first, stop, self.tile_columns)
        return [(max(begin, start), min(begin + self.tile_columns, stop)) for begin in begins]

    def fill(self, panel, n_panel, columns, start, stop, workspace):
        """Return the products of a panel of n_panel rows with the rows columns[start:stop], stored in the workspace.

        The shape of the result is (n_panel, stop − start), and it is contiguous. `columns` is an array of uint32, or
        None for the rows start .. stop themselves. The range is one of those of `tiles`.
        """
        memory, transposed = workspace
        if self._by_lists:
            return self._fill_by_lists(panel, columns, start, stop, memory)
        products = memory[: self.panel_rows * (stop - start)].reshape(self.panel_rows, stop - start)
        if self._sparse:
            if columns is None:
                _sparse_range(self._rows, start, stop, panel, transposed, products)
            else:
                _sparse_chosen(self._rows, columns[start:stop], panel, transposed, products)
            return products[:n_panel]
        X = self._X[start:stop] if columns is None else self._X[columns[start:stop]]
        return np.matmul(panel, X.T, out=products[:n_panel])

    def _fill_by_lists(self, panel, columns, start, stop, memory):
        """Return the products of a panel with columns of one block of lists."""
        block = self._blocks_of(columns)[start // ROWS_PER_BLOCK]
        n_panel, n_block = len(panel.chosen), block.stop - block.start
        products = memory[: n_panel * n_block].reshape(n_panel, n_block)
        rows_with_lists(panel.rows, panel.chosen, block.lists, products)
        return np.ascontiguousarray(products[:, start - block.start : stop - block.start])

    def _blocks_of(self, columns):
        """Return the lists of the rows `columns`, or all. The last ones are kept, since many blocks need the same."""
        with self._lock:
            if self._lists is None or self._lists_columns is not columns:
                rows = self._rows if columns is None else chosen_rows(self._rows, columns)
                self._lists, self._lists_columns = list_blocks(rows, self._numbers.n_columns), columns
            return self._lists


def squared_norms(X):
    """Return |x_i|² of every row of an array or sparse matrix, in float64; infinite if it overflows."""
    with np.errstate(over="ignore"):
        if not issparse(X):
            return _norms_of_array(X)
        X = csr_array(X, dtype=np.float64)
        if not X.has_canonical_format:
            X = X.copy()
            X.sum_duplicates()
        return _row_sums(X.data**2, X.indptr)


def _norms_of_array(X):
    """Return the squared norms of the rows of an array; NumPy converts numbers in single precision in slow pieces."""
    if X.dtype not in (np.float32, np.float64) or not X.flags.c_contiguous:
        return np.einsum("ij,ij->i", X, X, dtype=np.float64)
    norms = np.empty(len(X))
    _put_squared_norms(X, norms)
    return norms


@compiled(fastmath=SUMS)
def _put_squared_norms(X, norms):
    """Set norms[i] = |x_i|², in double precision."""
    for i in range(norms.size):
        row, total = X[np.uint64(i)], 0.0
        for k in range(row.size):
            total += np.float64(row[k]) * np.float64(row[k])
        norms[i] = total


def row_sums(X):
    """Return the sum of each row of a CSR matrix in float64; SciPy's method allocates memory for every column."""
    return _row_sums(X.data, X.indptr)


def _row_sums(data, indptr):
    """Return the sums of data[indptr[i]:indptr[i + 1]], by SciPy as if all values were in the same column."""
    column = np.zeros(len(data), indptr.dtype)
    return csr_array((data, column, indptr), shape=(len(indptr) - 1, 1)) @ np.ones(1)


def is_sparse(X):
    """Return whether few values of X are not zero."""
    return _density(X) < _SPARSE_BELOW_DENSITY


def suits_csr(X):
    """Return whether so few values of X are not zero that inner products are computed from rows in CSR format.

    If there are few rows, only sparse ones are: compiled loops compute the products of others one row at a time.
    """
    return is_sparse(X) or (X.shape[0] >= _MIN_ROWS_BY_PANELS and _suits_panels(X))


def _suits_panels(X):
    """Return whether panels are faster than BLAS, for rows that are not sparse."""
    is_small = X.shape[1] <= _FEATURES_OF_SMALL_PANELS
    largest = _DENSITY_WITH_SMALL_PANELS if is_small else _PANELS_BELOW_DENSITY
    return X.shape[1] <= _MAX_FEATURES_OF_PANELS and _density(X) < largest


def _density(X):
    """Return the fraction of the values of X that are stored or, in an array, not zero."""
    return (X.nnz if issparse(X) else np.count_nonzero(X)) / max(1, X.shape[0] * X.shape[1])


def _array_of(X, dtype):
    return np.ascontiguousarray(X.toarray() if issparse(X) else X, dtype=dtype)


def _make_panel(rows, chosen, n_columns):
    """Return the chosen rows as a panel of LANES rows: column k is line k, and missing rows are zero."""
    panel = aligned_zeros((max(1, n_columns), LANES), rows.data.dtype)
    _fill_panel(rows, chosen, panel)
    return panel


@compiled
def _fill_panel(rows, chosen, panel):
    """Add feature k of row chosen[b] to entry b of line k."""
    for b in range(chosen.size):
        for k in range(rows.indptr[chosen[b]], rows.indptr[chosen[b] + np.uint64(1)]):
            panel[rows.indices[k], np.uint64(b)] += rows.data[k]


@compiled
def row_with_panel(rows, j, panel):
    """Return the inner products of x_j with all rows of the panel: Σ_k x_jk times the line of column k."""
    sums = no_lanes(panel)
    for k in range(rows.indptr[j], rows.indptr[j + np.uint64(1)]):
        sums = add_line(sums, rows.data[k], panel, rows.indices[k])
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
            put_lanes(row_with_panel(rows, np.uint64(j), panel), transposed, j - begin)
        _transpose(transposed, end - begin, products, begin - start)


@compiled
def _sparse_chosen(rows, columns, panel, transposed, products):
    """Set products[b, k] = <panel_b, x_columns[k]> for every k."""
    height = transposed.shape[0]
    for begin in range(0, columns.size, height):
        end = min(begin + height, columns.size)
        for k in range(begin, end):
            put_lanes(row_with_panel(rows, np.uint64(columns[k]), panel), transposed, k - begin)
        _transpose(transposed, end - begin, products, begin)
