"""Rows of blocks on disk that are kept in memory because sums over few rows are about to need them.

Newton's method and cutting planes need the scores of all rows, and then sums over those rows only whose dual variables
change: mostly a few per cent. If these are kept while the blocks go by, such a sum needs no pass over the file.
"""

from typing import NamedTuple

import numpy as np

from widemargin.data.rows import DenseRows, SparseRows, taken

_BYTES_OF_ROW_NUMBER = 8


class KeptRows(NamedTuple):
    """Some rows of a block: their numbers in the block, ascending, and the rows."""

    index: np.ndarray  # type: ignore[assignment]  # tuples have a method of this name
    rows: DenseRows | SparseRows


class RowStore:
    """Kept rows of each block, in a limited amount of memory that blocks share in proportion to their rows.

    Parameters
    ----------
    n_rows : int
        Rows of all blocks.
    bytes_per_row : float
        Mean size of a row.
    most_bytes : float
        Limit of memory.
    """

    def __init__(self, n_rows, bytes_per_row, most_bytes):
        self._share = min(1.0, most_bytes / max(1.0, (bytes_per_row + _BYTES_OF_ROW_NUMBER) * n_rows))
        self._kept = {}

    def find(self, k, needed):
        """Return the KeptRows of block k if all the rows that are needed (numbers in the block) are kept, else None."""
        kept = self._kept.get(k)
        if kept is None or len(needed) > len(kept.index):
            return None
        return kept if np.isin(needed, kept.index, assume_unique=True).all() else None

    def keep(self, k, rows, n_rows, chosen):
        """Keep the chosen rows (ascending numbers) of block k instead of those kept before, if there is room."""
        self._kept.pop(k, None)
        if len(chosen) <= self._share * n_rows:
            self._kept[k] = KeptRows(chosen, taken(rows, chosen))

    def keep_also(self, k, rows, n_rows, chosen):
        """Keep the chosen rows of block k besides those kept before, or only them if there is no room for both."""
        kept = self._kept.get(k)
        both = chosen if kept is None else np.union1d(kept.index, chosen)
        self.keep(k, rows, n_rows, both if len(both) <= self._share * n_rows else chosen)
