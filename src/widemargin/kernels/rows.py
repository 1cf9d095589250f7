"""Blocks of rows of the kernel matrix: K(x_i, x_j) for a set of rows i, and for all columns j or some of them.

Blocks are computed in tiles by several threads. A tile is the inner products of a panel of rows with a range of
columns; the kernel function is applied to it while it is in the processor's cache, and the values are written to the
caller's memory in the requested precision.

The squared distance in the exponent of the rbf kernel, |x|² + |z|² − 2 <x, z>, suffers from cancellation if the norms
are large compared with the distances. Dense rows are therefore centred first, and if the norms are still too large
the inner products are computed in double precision.
"""

from contextlib import contextmanager, nullcontext
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array, issparse

from widemargin._runtime.compile import compiled
from widemargin._runtime.threads import run, single_threaded_blas
from widemargin.data.products import InnerProducts, squared_norms, suits_csr
from widemargin.kernels.functions import Kernel
from widemargin.kernels.panel_values import PanelValues
from widemargin.kernels.single_rows import SingleRows, ready_rows

_CHEAP_NANOSECONDS = 4.0  # a kernel is cheap if an inner product takes less
_PANELS_IN_MEMORY = 16  # panels of rows that exist at the same time
ENTRIES_WORTH_THREADS = 1 << 16  # kernel values from which on threads save time: some tenths of a millisecond of work
_MAX_ROWS_COMPUTED_SINGLY = 128  # up to which a call of BLAS from Python takes longer than all rows one by one
_CACHED_FEATURE_BYTES = 1 << 18  # of the features of all rows, which then stay in the processor's cache
_MAX_PRODUCTS_IN_ONE_THREAD = 1 << 17  # multiplications up to which OpenBLAS uses one thread by itself (half its limit)
_BLOCK_COLUMNS = 16_384  # of a sum of rows: 128 kB, in the second cache; shorter parts of rows are read more slowly
_PRECOMPUTED = Kernel("precomputed")
_ROWS_OF_A_FUNCTION = 64  # kernel rows that are added at once, if they come from a matrix or a function of the user


class KernelRows:
    """The kernel matrix of the rows X[subset], of which blocks of rows are computed on request.

    Parameters
    ----------
    kernel : Kernel
    X : ndarray, scipy sparse or PreparedRows
        The rows; if the kernel is "precomputed", the square kernel matrix.
    subset : ndarray of int or None
        Indices of the rows; None means all.
    dtype : numpy dtype
        Precision of the blocks, float32 or float64. If values would overflow in float32, float64 is used.
    n_jobs : int or None
    bound, diagonal : float and ndarray, or None
        An upper bound of the absolute values of a precomputed matrix, and its diagonal, if they are known and finite.
    new : function
        Returns an array of a shape and dtype, for `whole` and `workspace`.

    Attributes
    ----------
    n_rows : int
    diagonal : ndarray of shape (n_rows,), float64
    bound : float
        An upper bound of |K(x, z)|; for a callable kernel, the largest |K(x, x)|, since no other values are known.
    dtype : numpy dtype
        Precision of the blocks, as used.
    cost : float
        Approximate time of one inner product in nanoseconds; infinite if kernel values are not computed from these.
    cheap : bool
        Whether computing a value takes less time than the system takes to provide new memory for it.
    remembered : WeightedSum or None
        A sum of all rows that a solver has computed last; see `remember`.

    Raises
    ------
    ValueError
        If a precomputed matrix is not square, a callable returns an array of the wrong shape, or a kernel value is
        not finite.
    """

    def __init__(
        self, kernel, X, *, subset=None, dtype=np.float32, n_jobs=None, bound=None, diagonal=None, new=np.empty
    ):  # fmt: skip
        self.kernel, self.n_jobs, self._new = kernel, n_jobs, new
        self._X, self._free_tiles = X, []
        self._subset = None if subset is None else np.asarray(subset)
        self.n_rows = X.shape[0] if subset is None else len(self._subset)
        self.dtype = np.dtype(dtype)
        if kernel.from_products:
            self._prepare_products()
            self.cost = self._products.cost
            self.cheap = self.cost < _CHEAP_NANOSECONDS
        else:
            self.cost, self.cheap = np.inf, kernel.name == "precomputed"
            self.dtype = np.dtype(np.float64)  # the values are the user's and may be of any size
            self._block = _PrecomputedBlock(X) if kernel.name == "precomputed" else _CallableBlock(kernel.function, X)
            self._every = np.arange(self.n_rows) if subset is None else self._subset
            self.diagonal = self._block.diagonal(self._every) if diagonal is None else diagonal
            self.bound = self._block.bound(self.diagonal) if bound is None else bound
        is_array = kernel.name == "precomputed" and subset is None and isinstance(X, np.ndarray)
        self._held = X if is_array and X.flags.c_contiguous else None
        self.remembered, self._workspace = None, None
        if diagonal is None and not np.isfinite(self.diagonal).all():
            i = int(np.argmin(np.isfinite(self.diagonal)))
            raise ValueError(f"K(x, x) of row {i} is {self.diagonal[i]}; every kernel value must be finite.")

    @property
    def held(self):
        """The complete kernel matrix, if it was given as a C-ordered array and all rows are used, else None."""
        return self._held

    def remember(self, weights, sums, error):
        """Keep sums = Σ_i weights_i K_i, of error at most `error`, for a solver that starts from these weights."""
        self.remembered = WeightedSum(weights, sums, error)

    def workspace(self, shape, dtype):
        """Return an array for a part of the kernel matrix, in the same memory each time: new memory would be slow."""
        if self._workspace is None or self._workspace.dtype != dtype:
            self._workspace = self._new((self.n_rows**2,), dtype)
        return self._workspace[: shape[0] * shape[1]].reshape(shape)

    def restricted(self, rows):
        """Return the kernel matrix of some of the rows, given by their ascending indices."""
        X = self._prepared if self.kernel.from_products else self._X
        subset = self._chosen(np.asarray(rows))
        return KernelRows(self.kernel, X, subset=subset, dtype=self.dtype, n_jobs=self.n_jobs)

    def _prepare_products(self):
        """Set `_prepared`, `_products`, `_norms`, `diagonal`, `bound` and `dtype`."""
        rows = self._X if isinstance(self._X, PreparedRows) else PreparedRows(self.kernel, self._X, self.dtype)
        self._prepared = rows
        everything = slice(None) if self._subset is None else self._subset
        self._products, norms = InnerProducts(rows.X[everything], rows.X.dtype), rows.norms[everything]
        self._norms = norms.astype(rows.X.dtype)
        self.kernel.check(norms)
        self.diagonal, self.bound, self.dtype = self.kernel.diagonal(norms), self.kernel.bound(norms), rows.dtype
        sparse_rows = self._products.rows_for_panels if self.kernel.name == "rbf" else None
        self._panel_values = None if sparse_rows is None else PanelValues(self.kernel.gamma, sparse_rows)

    def _chosen(self, rows):
        return rows if self._subset is None else self._subset[rows]

    def columns(self, chosen=None):
        """Return the Columns for `fill`: those that belong to the rows `chosen`, in that order, or all."""
        if chosen is not None:
            chosen = np.ascontiguousarray(chosen, dtype=np.uint32)
        if not self.kernel.from_products:
            some = self._every if chosen is None else self._chosen(chosen)
            return Columns(len(some), some, None, some)
        norms = self._norms if chosen is None else self._norms[chosen]
        every = np.arange(self.n_rows, dtype=np.uint32) if chosen is None and self._panel_values else chosen
        return Columns(len(norms), chosen, norms, every)

    def whole(self):
        """Return the complete kernel matrix."""
        every, out = np.arange(self.n_rows), self._new((self.n_rows, self.n_rows), self.dtype)
        self.fill(every, self.columns(), out, every)
        return out

    def fill(self, rows, columns, out, slots):
        """Set out[slots[k], :n_columns] = K(x_rows[k], x_columns) for each k; `columns` come from `columns()`."""
        if not self.kernel.from_products:
            self._block.fill(self._chosen(rows), columns.chosen, out, slots)
            return
        step = _PANELS_IN_MEMORY * self._products.panel_rows
        n_products = len(rows) * columns.n_columns * self._products.n_features
        with single_threaded_blas() if n_products > _MAX_PRODUCTS_IN_ONE_THREAD else nullcontext():
            for begin in range(0, len(rows), step):
                self._fill_panels(rows[begin : begin + step], columns, out, slots[begin : begin + step])

    @property
    def has_single_rows(self):
        """Whether compiled loops can compute rows: these are dense and have features."""
        return self.kernel.from_products and self._products.is_dense

    def single_rows(self, is_ready):
        """Return the SingleRows by which compiled loops compute rows, if they can.

        If there are few rows, all may be computed one by one; if the features fit into the processor's cache, half of
        them; else an eighth, since matrix products are then several times as fast.
        """
        features = self._products.features if self.kernel.from_products else None
        if features is None:
            return ready_rows(self.n_rows, self.dtype)._replace(is_ready=is_ready)
        if self.n_rows <= _MAX_ROWS_COMPUTED_SINGLY:
            n_left = self.n_rows
        else:
            n_left = self.n_rows // (2 if features.nbytes <= _CACHED_FEATURE_BYTES else 8)
        products = np.empty(self.n_rows, features.dtype)
        return SingleRows(is_ready, np.array([n_left]), features, self._norms, products, self.kernel.numbers)

    def _fill_panels(self, rows, columns, out, slots):
        """Fill a block whose panels are all in memory at the same time."""
        step = self._products.panel_rows
        ranges = self._products.ranges(columns.n_columns)
        tasks = []
        for k, values in enumerate(self._products.panels(rows)):
            here = slice(k * step, (k + 1) * step)
            panel = _PanelRows(values, self._norms[rows[here]], slots[here])
            tasks += [(panel, columns, out, *ends) for ends in ranges]
        n_entries = len(rows) * columns.n_columns
        run(self._fill_panel, tasks, self.n_jobs if n_entries >= ENTRIES_WORTH_THREADS else 1)

    @property
    def rows_added_at_once(self):
        """Number of rows that `add` takes as one block."""
        return _PANELS_IN_MEMORY * self._products.panel_rows if self.kernel.from_products else _ROWS_OF_A_FUNCTION

    def add(self, rows, weights, columns, sums):
        """Add Σ_k weights[k] K(x_rows[k], x_columns) to sums; kernel values are not stored, but added tile by tile."""
        step = self.rows_added_at_once
        add_block = self._add_products if self.kernel.from_products else self._add_values
        with single_threaded_blas():
            for begin in range(0, len(rows), step):
                add_block(rows[begin : begin + step], weights[begin : begin + step], columns, sums)

    def _add_values(self, rows, weights, columns, sums):
        """Add rows of a matrix or a function of the user, which are computed first."""
        values, slots = np.empty((len(rows), columns.n_columns), self.dtype), np.arange(len(rows))
        self.fill(rows, columns, values, slots)
        part = np.zeros(columns.n_columns)
        add_weighted_rows(values, slots, weights, 0, columns.n_columns, part)
        sums += part

    def _add_products(self, rows, weights, columns, sums):
        """Add rows whose panels are all in memory at the same time."""
        step = self._products.panel_rows
        panels = [
            _WeightedPanel(values, self._norms[rows[k * step : (k + 1) * step]], weights[k * step : (k + 1) * step])
            for k, values in enumerate(self._products.panels(rows))
        ]
        ranges = self._products.ranges(columns.n_columns, len(panels))
        run(self._add_panels, [(panels, columns, sums, *ends) for ends in ranges], self.n_jobs)

    def _add_panels(self, panels, columns, sums, start, stop):
        """Add the weighted rows of all panels, summed up by themselves, to sums[start:stop], tile by tile."""
        with self._products.workspace() as workspace, self._tile() as values:
            slots = np.arange(len(values))
            for begin, end in self._products.tiles(start, stop):
                norms, part = columns.norms[begin:end], np.zeros(end - begin)
                for panel in panels:
                    n_panel = len(panel.norms)
                    some = slots[:n_panel]
                    if self._panel_values:
                        self._panel_values.fill(panel.values, panel.norms, columns.rows[begin:end], norms, values, some)
                    else:
                        products = self._products.fill(panel.values, n_panel, columns.chosen, begin, end, workspace)
                        self.kernel.finish(products, panel.norms, norms, some, values, 0)
                    add_weighted_rows(values, some, panel.weights, 0, end - begin, part)
                sums[begin:end] += part

    @contextmanager
    def _tile(self):
        """Provide memory for the kernel values of one tile, which later tasks use again."""
        try:
            values = self._free_tiles.pop()
        except IndexError:
            values = np.empty((self._products.panel_rows, self._products.tile_columns), self.dtype)
        yield values
        self._free_tiles.append(values)

    def _fill_panel(self, panel, columns, out, start, stop):
        """Fill the columns from start to stop of the rows of a panel."""
        if self._panel_values:
            here, norms = columns.rows[start:stop], columns.norms[start:stop]
            self._panel_values.fill(panel.values, panel.norms, here, norms, out, panel.slots, origin=start)
            return
        with self._products.workspace() as workspace:
            for begin, end in self._products.tiles(start, stop):
                products = self._products.fill(panel.values, len(panel.norms), columns.chosen, begin, end, workspace)
                self.kernel.finish(products, panel.norms, columns.norms, panel.slots, out, begin)


class MatrixPart(KernelRows):
    """The kernel matrix of some rows of a complete one in memory; a copy is made when it is first asked for.

    Parameters
    ----------
    source : ndarray
        The complete kernel matrix, C-ordered and finite.
    places : ndarray of int
        The rows.
    bound : float
        An upper bound of the absolute values of the complete matrix.
    diagonal : ndarray
        Its diagonal.
    n_jobs : int or None

    Attributes
    ----------
    source, places
        As given.
    """

    def __init__(self, source, places, bound, diagonal, n_jobs):
        super().__init__(
            _PRECOMPUTED, source, subset=places, n_jobs=n_jobs, bound=bound, diagonal=diagonal[places]
        )  # fmt: skip
        self.source, self.places = source, places

    @property
    def held(self):
        """The kernel matrix."""
        if self._held is None:
            self._held = submatrix(self.source, self.places, self.places)
        return self._held


class WeightedSum(NamedTuple):
    """The sum Σ_i weights_i K_i of all rows of a kernel matrix, and a bound on the error of its entries."""

    weights: np.ndarray
    sums: np.ndarray
    error: float


class _PanelRows(NamedTuple):
    """Some rows in the layout that their inner products need, their squared norms, and their slots in the output."""

    values: Any
    norms: np.ndarray
    slots: np.ndarray


class _WeightedPanel(NamedTuple):
    """Some rows in the layout that their inner products need, their squared norms, and their weights in a sum."""

    values: Any
    norms: np.ndarray
    weights: np.ndarray


class PreparedRows:
    """Rows centred and converted once, for all kernel problems on subsets of the same rows.

    Many rows of an array with many zeros are not centred, but converted to CSR, if the rbf exponent is accurate so.

    Attributes
    ----------
    X : ndarray or csr_array
        The rows in the precision of the inner products; centred, if they are dense and the kernel is rbf.
    norms : ndarray
        Squared norms of the rows of X, in float64.
    dtype : numpy dtype
        Precision of the blocks.
    """

    def __init__(self, kernel, X, dtype):
        if issparse(X) and not suits_csr(X):  # most values are stored: they are computed as those of an array are
            X = X.toarray()
        self.dtype = np.dtype(dtype)
        uncentred = X if issparse(X) or kernel.name != "rbf" else None
        if not issparse(X) and suits_csr(X) and kernel.exact_uncentred(squared_norms(X)):
            uncentred = csr_array(X)
        self._take(kernel, X, uncentred, self.dtype)
        if self.dtype == np.float32 and not kernel.exact_in_single(self.norms):
            self._take(kernel, X, uncentred, np.float64)
            if not kernel.largest(self.norms) < float(np.finfo(np.float32).max):
                self.dtype = np.dtype(np.float64)

    def _take(self, kernel, X, uncentred, dtype):
        """Set X and its norms: those of `uncentred` where it is accurate enough, else of X centred."""
        if uncentred is not None:
            with np.errstate(over="ignore"):
                self.X = uncentred.astype(dtype, copy=False)
            self.norms = squared_norms(self.X)
            is_exact = dtype == np.float64 or kernel.exact_in_single(self.norms)
            if is_exact or issparse(X) or kernel.name != "rbf":
                return
        self.X = _centred(X, X.sum(axis=0, dtype=np.float64) / len(X), dtype)
        self.norms = squared_norms(self.X)

    @property
    def shape(self):
        """The shape of X."""
        return self.X.shape


def _centred(X, centre, dtype):
    """Return X − centre in the given precision; values that overflow become infinite."""
    with np.errstate(over="ignore"):
        return np.subtract(X, centre, out=np.empty(X.shape, dtype), casting="same_kind")


class Columns:
    """The columns of a block of the kernel matrix: the rows that they belong to, and the squared norms of these.

    `chosen` is None for all rows; `rows` are their indices all the same, if values are computed by panels.
    """

    def __init__(self, n_columns, chosen, norms, rows):
        self.n_columns, self.chosen, self.norms, self.rows = n_columns, chosen, norms, rows


class _PrecomputedBlock:
    """Blocks of a precomputed kernel matrix."""

    def __init__(self, K):
        if K.shape[0] != K.shape[1]:
            raise ValueError(f"A precomputed kernel matrix must be square, got shape {K.shape}.")
        self._K = K

    def diagonal(self, chosen):
        return np.asarray(self._K.diagonal(), dtype=np.float64)[chosen]

    def bound(self, diagonal):
        return float(max(abs(self._K.max()), abs(self._K.min()))) if min(self._K.shape) else 0.0

    def fill(self, rows, columns, out, slots):
        if issparse(self._K):
            out[slots, : len(columns)] = self._K[rows][:, columns].toarray()
        else:
            _gather(self._K, np.asarray(rows), np.asarray(columns), out, np.asarray(slots))


class _CallableBlock:
    """Blocks computed by a kernel function K(A, B) of two blocks of rows."""

    def __init__(self, function, X):
        self._function, self._X = function, X

    def _values(self, A, B):
        values = np.asarray(self._function(A, B))
        if values.shape != (A.shape[0], B.shape[0]):
            raise ValueError(f"The kernel function must return shape {(A.shape[0], B.shape[0])}, got {values.shape}.")
        if not np.isfinite(values).all():
            raise ValueError("The kernel function returned NaN or infinity.")
        return values

    def diagonal(self, chosen):
        return np.array([self._values(self._X[[i]], self._X[[i]])[0, 0] for i in chosen], dtype=np.float64)

    def bound(self, diagonal):
        return float(np.abs(diagonal).max(initial=0.0))

    def fill(self, rows, columns, out, slots):
        out[slots, : len(columns)] = self._values(self._X[rows], self._X[columns])


def submatrix(K, rows, columns, new=np.empty):
    """Return a copy of K[rows][:, columns] in the array new(shape, dtype)."""
    out = new((len(rows), len(columns)), K.dtype)
    _gather(K, np.asarray(rows), np.asarray(columns), out, np.arange(len(rows)))
    return out


@compiled
def _gather(K, rows, columns, out, slots):
    """Set out[slots[a], b] = K[rows[a], columns[b]]."""
    for a in range(rows.size):
        source, target = K[np.uint64(rows[a])], out[np.uint64(slots[a])]
        for b in range(columns.size):
            target[b] = source[np.uint64(columns[b])]


@compiled(fastmath=frozenset({"contract"}))
def add_weighted_rows(values, slots, weights, start, stop, sums):
    """Add Σ_k weights[k] values[slots[k]] to sums[start:stop], four rows at a time, block by block of columns."""
    for begin in range(start, stop, _BLOCK_COLUMNS):
        end = min(begin + _BLOCK_COLUMNS, stop)
        part = sums[begin:end]
        k = 0
        while k + 4 <= slots.size:
            w0, w1, w2, w3 = weights[k], weights[k + 1], weights[k + 2], weights[k + 3]
            row0, row1 = values[np.uint64(slots[k])][begin:end], values[np.uint64(slots[k + 1])][begin:end]
            row2, row3 = values[np.uint64(slots[k + 2])][begin:end], values[np.uint64(slots[k + 3])][begin:end]
            for j in range(part.size):
                part[j] += (w0 * row0[j] + w1 * row1[j]) + (w2 * row2[j] + w3 * row3[j])
            k += 4
        while k < slots.size:
            w0, row0 = weights[k], values[np.uint64(slots[k])][begin:end]
            for j in range(part.size):
                part[j] += w0 * row0[j]
            k += 1
