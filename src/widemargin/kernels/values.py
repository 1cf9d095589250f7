"""Kernel values K(z, x_j) of any rows z with some fixed rows x_j: a block of values, and blocks that are computed when
they are read.

`kernel_blocks` makes a RowBlocks of them, so that every solver that reads rows in blocks can use kernel values as
features: they are computed when a pass needs them, and kept as far as there is memory.
"""

from functools import lru_cache
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
from scipy.sparse import csr_array, issparse

from widemargin._runtime.threads import run, single_threaded_blas, split
from widemargin.data.blocks.row_blocks import Block, Piece, RowBlocks
from widemargin.data.products import InnerProducts, squared_norms
from widemargin.data.rows import DenseRows

_BYTES_PER_BLOCK = 1 << 25  # of kernel values that are computed together
_MOST_ROWS_PER_BLOCK = 1 << 16
_ROWS_PER_TASK = 1 << 10  # of the thread pool
_SOURCE_BLOCKS_KEPT = 4  # blocks of a file whose kernel values are read in several parts


class KernelValues:
    """The kernel values of any rows with fixed rows.

    Parameters
    ----------
    kernel : Kernel
        Not "precomputed".
    vectors : ndarray or scipy sparse of shape (m, n_features)
        The fixed rows.
    dtype : numpy dtype
        Precision of the values. Inner products are computed in it too, if that is accurate enough.
    """

    def __init__(self, kernel, vectors, dtype):
        self.kernel, self.vectors, self.dtype = kernel, vectors, np.dtype(dtype)
        self.n_columns = vectors.shape[0]
        if kernel.from_products:
            self._prepare(vectors)

    def _prepare(self, vectors):
        kernel = self.kernel
        is_centred = kernel.name == "rbf" and not issparse(vectors) and vectors.shape[0] > 0
        self._centre = vectors.mean(axis=0, dtype=np.float64) if is_centred else None
        vectors = vectors - self._centre if is_centred else vectors
        self._norms = squared_norms(vectors)
        kernel.check(self._norms)
        single = self.dtype == np.float32 and kernel.exact_in_single(self._norms)
        self._products = InnerProducts(vectors, np.float32 if single else np.float64)
        self._norms = self._norms.astype(self._products.dtype)

    def bound(self, norms):
        """Return an upper bound of |K(z, x_j)| for rows z with squared norms up to the largest of these."""
        if not self.kernel.from_products:
            return np.inf
        return self.kernel.bound(np.append(norms, squared_norms(self.vectors)))

    def of(self, Z, n_jobs=1):
        """Return the values of the rows of Z, (n_rows, m)."""
        out = np.empty((Z.shape[0], self.n_columns), self.dtype)
        if self.kernel.from_products:
            ranges = split(len(out), -(-len(out) // _ROWS_PER_TASK))
            with single_threaded_blas():
                run(self._fill, [(Z, *ends, out) for ends in ranges], n_jobs)
        else:
            out[:] = self.kernel.function(Z, self.vectors)
        return out

    def _fill(self, Z, begin, end, out):
        """Set the values of the rows of Z from begin to end."""
        Z, products = Z[begin:end], self._products
        if self._centre is not None:
            Z = Z.toarray() - self._centre if issparse(Z) else Z - self._centre
        elif issparse(self.vectors) and not issparse(Z):
            Z = csr_array(Z)
        norms = squared_norms(Z).astype(products.dtype)
        with products.workspace() as workspace:
            for k, panel in enumerate(products.panels_of(Z)):
                here = slice(k * products.panel_rows, min((k + 1) * products.panel_rows, end - begin))
                slots = np.arange(begin + here.start, begin + here.stop)
                for start, stop in products.tiles(0, self.n_columns):
                    inner = products.fill(panel, len(slots), None, start, stop, workspace)
                    self.kernel.finish(inner, norms[here], self._norms, slots, out, start)


def kernel_blocks(X, values):
    """Return the RowBlocks of the kernel values of rows, an array, a CSR matrix or a RowBlocks, without labels."""
    n_rows, n_columns = X.shape[0], values.n_columns
    file = _ValueFile(X, values)
    pieces = [Piece(file, k, 0, stop - start, start) for k, (start, stop) in enumerate(file.ends)]
    summary = SimpleNamespace(
        n_rows=n_rows,
        n_features=n_columns,
        n_stored=n_rows * n_columns,
        squared_lengths=float(n_columns**2),
        longest_row=n_columns,
        largest_norm=np.inf,
        is_shuffled=isinstance(X, RowBlocks) and X.summary.is_shuffled,
        columns={},
        names=None,
    )
    layout = SimpleNamespace(is_sparse=False, value_type=values.dtype, index_type=None, label_type=None)
    return RowBlocks(pieces, summary, layout)


class _ValueFile:
    """Kernel values as a file of blocks, which are computed when they are read."""

    path = "kernel values"

    def __init__(self, X, values):
        self._X, self._values = X, values
        n_bytes = max(1, values.dtype.itemsize * values.n_columns)
        step = int(min(_MOST_ROWS_PER_BLOCK, max(1, _BYTES_PER_BLOCK // n_bytes)))
        blocks = X.ends() if isinstance(X, RowBlocks) else [(0, X.shape[0])]
        self.ends = [ends for start, stop in blocks for ends in pairwise([*range(start, stop, step), stop])]
        self._rows_of_block = lru_cache(_SOURCE_BLOCKS_KEPT)(self._read_source)

    def _read_source(self, start, stop):
        """Return the rows of one block of a file."""
        return self._X[start:stop].to_memory()

    def read(self, number):
        """Return block `number`."""
        start, stop = self.ends[number]
        Z = self._X
        if isinstance(Z, RowBlocks):
            first, last = next(ends for ends in Z.ends() if ends[0] <= start < ends[1])
            Z, start, stop = self._rows_of_block(first, last), start - first, stop - first
        computed = self._values.of(Z[start:stop])
        computed.flags.writeable = False
        return Block(DenseRows(computed, 0.0), np.zeros(stop - start, np.int8), None, None)
