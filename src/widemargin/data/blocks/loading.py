"""All rows of a RowBlocks in memory, in the types of the file.

Threads read blocks ahead while the last one is copied to its place. Apart from the blocks that are under way, the rows
are in memory once.
"""

import os

import numpy as np

from widemargin._runtime.progress import task
from widemargin.data.blocks.read_ahead import ReadAhead
from widemargin.data.rows import DenseRows, SparseRows

_GROWTH = 1.05  # by which memory for stored values is enlarged, where a range of rows has more of them than expected


def load_rows(blocks, most_blocks):
    """Return DenseRows or SparseRows of all rows, with offsets of 64 bits.

    Parameters
    ----------
    blocks : RowBlocks
    most_blocks : int
        How many blocks may be under way at a time.

    Raises
    ------
    FormatError
        If a file is damaged, or has changed since it was opened.
    """
    place = _SparsePlace(blocks) if blocks.layout.is_sparse else _DensePlace(blocks)
    name, numbers = os.path.basename(blocks.paths[0]) if blocks.paths else "", range(blocks.n_blocks)
    with (
        task(f"reading {name}", max(1, blocks.n_bytes), "bytes", speed=True) as reading,
        ReadAhead(blocks.read, numbers, most_blocks) as ahead,
    ):
        for k in numbers:
            start, stop = blocks.rows_of(k)
            with ahead.block(k) as block:
                place.put(block.rows, start, stop)
            reading.advance(round((stop - start) * blocks.bytes_per_row))
    return place.rows()


class _DensePlace:
    """The place of dense rows."""

    def __init__(self, blocks):
        self._values = np.empty(blocks.shape, blocks.layout.value_type)

    def put(self, rows, start, stop):
        """Copy the rows of a block to their place."""
        self._values[start:stop] = rows.values

    def rows(self):
        """Return all rows."""
        return DenseRows(_read_only(self._values), 0.0)


class _SparsePlace:
    """The place of sparse rows, which are put one block after the other.

    The number of stored values is known of whole files, and about known of a range of rows. A larger array takes the
    pages of the smaller one from the system, where that is possible, and is not a second copy.
    """

    def __init__(self, blocks):
        summary, layout = blocks.summary, blocks.layout
        n_stored = -(-summary.n_stored * len(blocks) // max(1, summary.n_rows))
        self._offsets, self._n_stored = np.zeros(len(blocks) + 1, np.uint64), 0
        self._indices = np.empty(n_stored, layout.index_type)
        self._values = None if layout.value_type is None else np.empty(n_stored, layout.value_type)

    def put(self, rows, start, stop):
        """Append the rows of a block."""
        first, last = self._n_stored, self._n_stored + len(rows.indices)
        if last > len(self._indices):
            self._resize(round(_GROWTH * last))
        self._offsets[start + 1 : stop + 1] = rows.indptr[1:]
        self._offsets[start + 1 : stop + 1] += np.uint64(first)
        self._indices[first:last] = rows.indices
        if self._values is not None:
            self._values[first:last] = rows.data
        self._n_stored = last

    def _resize(self, length):
        for array in (self._indices, self._values):
            if array is not None:
                array.resize(length, refcheck=False)  # nobody else has a view of it

    def rows(self):
        """Return all rows."""
        self._resize(self._n_stored)
        values = np.ones(self._n_stored, np.uint8) if self._values is None else self._values
        return SparseRows(_read_only(values), _read_only(self._indices), _read_only(self._offsets), 0.0)


def _read_only(array):
    array.flags.writeable = False
    return array
