"""`ResidentMatrix`: X in blocks that are all in memory, in the types of the file, for every solver.

Rows whose stored values are all one take two bytes a value in the blocks of a file, and twelve as float64 in CSR form.
Reading a block once and keeping it as it is therefore takes a fraction of the time of a conversion, and passes are
shorter. Solvers that visit rows in any order need them one after the other, as `rows`: they are put together when they
are first asked for, and the blocks are parts of them from then on, so that nothing is in memory twice.
"""

import threading
from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from widemargin._runtime.argument_types import Floats
from widemargin.data.blocks.row_blocks import Block, RowBlocks
from widemargin.data.blocks.streamed import StreamedMatrix
from widemargin.data.by_columns import Columns, transposed
from widemargin.data.matrix import ranges_of_rows, set_squared_norms, threads_for
from widemargin.data.rows import DenseRows, SparseRows


class ResidentMatrix(StreamedMatrix):
    """X in row-block files, all of which are read and kept.

    Parameters
    ----------
    blocks : RowBlocks
    constant : float, default=0
        Value of an additional last column for the intercept; 0 means that there is no such column.
    """

    is_in_memory = True

    def __init__(self, blocks: RowBlocks, constant: float = 0.0) -> None:
        super().__init__(blocks, constant, np.inf)
        self._all_rows: DenseRows | SparseRows | None = None
        self._lock = threading.Lock()
        self._pass(lambda k, block, start, stop: None, range(blocks.n_blocks), 1)

    @property
    def rows(self) -> DenseRows | SparseRows:
        """All rows, one after the other, in the form for compiled loops."""
        with self._lock:
            if self._all_rows is None:
                self._all_rows = (self._joined_sparse if self.is_sparse else self._joined_dense)()
            return self._all_rows

    @property
    def values(self) -> Any:  # an array, or a matrix of SciPy, which has no types
        """The data without the constant column in float64, a new array or csr_array at each call."""
        rows = self.rows
        if isinstance(rows, DenseRows):
            return rows.values.astype(np.float64)
        entries = rows.data.astype(np.float64), rows.indices.astype(np.int32), rows.indptr.astype(np.int64)
        X = csr_array(entries, shape=(self.n_rows, self.n_features))
        X.has_canonical_format = True
        return X

    def features(self, rows: Any, columns: Any = slice(None)) -> Floats:
        """Return the values of some rows and columns of dense rows, as those of a Matrix, in float64."""
        dense: Any = self.rows
        return dense.values[rows][:, columns].astype(np.float64)

    @cached_property
    def by_columns(self) -> Columns:
        """The stored values by columns, as those of a Matrix."""
        return transposed(self)

    def squared_norms(self, n_jobs: int | None = 1) -> Floats:
        """Return the squared Euclidean norm of each row, the constant column included."""
        out = np.empty(self.n_rows)

        def work(k, block, start, stop):
            if self.has_only_ones:
                out[start:stop] = np.diff(block.rows.indptr) + self.constant**2
            else:
                set_squared_norms(self._rows(block.rows), 0, stop - start, out[start:stop])

        self._pass(work, range(self.blocks.n_blocks), n_jobs)
        return out

    def ranges(self) -> tuple[tuple[int, int], ...]:
        """Divide the rows into (start, stop) ranges for threads, as a Matrix does."""
        return ranges_of_rows(self.n_rows, self.n_stored)

    def threads(self, n_jobs: int | None) -> int | None:
        """Return n_jobs, or 1 if a pass over the rows is short, as a Matrix does."""
        return threads_for(n_jobs, self.n_stored)

    def _joined_dense(self):
        values = np.empty((self.n_rows, self.n_features), self.blocks.layout.value_type)
        for k, (start, stop) in enumerate(self.blocks.ends()):
            values[start:stop] = self._resident[k].rows.values
            self._replace(k, DenseRows(_read_only(values[start:stop]), 0.0))
        return DenseRows(_read_only(values), self.constant)

    def _joined_sparse(self):
        n_stored = sum(len(block.rows.indices) for block in self._resident.values())
        layout, offsets, first = self.blocks.layout, np.zeros(self.n_rows + 1, np.uint64), 0
        indices = np.empty(n_stored, layout.index_type)
        values = np.ones(n_stored, np.uint8) if self.has_only_ones else np.empty(n_stored, layout.value_type)
        for k, (start, stop) in enumerate(self.blocks.ends()):
            rows = self._resident[k].rows
            here = slice(first, first + len(rows.indices))
            offsets[start + 1 : stop + 1] = rows.indptr[1:] + np.uint64(first)
            indices[here], values[here] = rows.indices, rows.data
            data = rows.data if self.has_only_ones else _read_only(values[here])  # ones share their memory
            self._replace(k, SparseRows(data, _read_only(indices[here]), rows.indptr.copy(), 0.0))
            first = here.stop
        return SparseRows(_read_only(values), _read_only(indices), _read_only(offsets), self.constant)

    def _replace(self, k, rows):
        """Keep block k with these rows; nothing else of it may be a view of the memory in which it was read."""
        rest = (None if one is None else one.copy() for one in self._resident[k][1:])
        self._resident[k] = Block(rows, *rest)


def _read_only(array):
    view = array.view()
    view.flags.writeable = False
    return view
