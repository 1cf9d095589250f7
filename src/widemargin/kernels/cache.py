"""Kernel rows that are kept: as many as fit into a given memory, the least recently used ones making room.

The rows lie in one piece of memory, as lines of the columns that are still of interest. When columns are given up the
lines move together, and more rows fit into the same memory.

Memory that has never been written is slow: the system has to find and clear it, which can take several times as long
as computing a cheap kernel's values. So for cheap kernels the lines in use begin with as many as are needed at the
same time, and grow by one for every few rows that have to be computed again.
"""

import numpy as np

from widemargin._runtime.compile import compiled

_AGAIN = 4  # rows of a cheap kernel computed again for which the cache gets a line more

_LEAST_LENT = 64  # lines for passing use, however small the cache: kernel rows are computed several at a time


class RowCache:
    """Rows of a KernelRows.

    Parameters
    ----------
    K : KernelRows
    megabytes : float
        Memory for rows; what `least` rows need is taken anyway.
    least : int
        Rows that have to fit at the same time.

    Attributes
    ----------
    values : ndarray of shape (n_slots, n_columns)
        The memory; row i lies in values[slot_of[i]].
    slot_of : ndarray of int32
        −1 for rows that are not here.
    used : ndarray of int64
        When each slot was used last; for loops that find rows by themselves.
    columns : Columns
        The columns that are kept.
    n_computed : float
        Rows computed so far; a row of a part of the columns counts in proportion.
    """

    def __init__(self, K, megabytes, least):
        self.K = K
        self.columns = K.columns()
        n_slots = min(max(rows_that_fit(K, megabytes), least), K.n_rows)
        self._memory = np.empty(n_slots * K.n_rows, K.dtype)
        self.slot_of = np.full(K.n_rows, -1, np.int32)
        self.n_computed = 0.0
        self._clock = 0
        self._seen = np.zeros(K.n_rows, bool)
        self._again = 0
        self._open = least if K.cheap else n_slots  # lines in use
        self._lay_out(np.empty(0, np.int64), np.empty(0, np.int64))

    def _lay_out(self, rows, used):
        """Divide the memory into lines, the first of which hold `rows`."""
        n_columns = max(1, self.columns.n_columns)
        n_slots = min(self._memory.size // n_columns, self.K.n_rows)
        self._open = min(n_slots, max(self._open, len(rows)))
        self.values = self._memory[: n_slots * n_columns].reshape(n_slots, n_columns)
        self._row_of = np.full(n_slots, -1, np.int64)
        self.used = np.full(n_slots, -1, np.int64)
        self._row_of[: len(rows)], self.used[: len(rows)] = rows, used
        self.slot_of[:] = -1
        self.slot_of[rows] = np.arange(len(rows))

    @property
    def n_slots(self):
        """How many rows fit."""
        return len(self.used)

    def tick(self):
        """Return the time of a new use."""
        self._clock += 1
        return self._clock

    def fetch(self, rows):
        """Return the slots of distinct rows, no more than there are slots, computed if they are not here."""
        if len(rows) > self.n_slots:
            raise ValueError(f"{len(rows)} rows do not fit into {self.n_slots} slots at the same time.")
        self.tick()
        slots = self.slot_of[rows]
        missing = slots < 0
        self.used[slots[~missing]] = self._clock
        n_missing = int(missing.sum())
        if n_missing:
            self._again += int(self._seen[rows[missing]].sum())
            grown, self._again = divmod(self._again, _AGAIN)
            self._open = min(self.n_slots, max(self._open + grown, len(rows)))
            self._seen[rows[missing]] = True
            slots[missing] = self._make_room(n_missing)
            self._compute(rows[missing], slots[missing])
        return slots

    def _make_room(self, n_rows):
        """Return the slots least recently used, emptied."""
        if n_rows == 1:
            slots = np.array([np.argmin(self.used[: self._open])])
        else:
            slots = np.sort(np.argpartition(self.used[: self._open], n_rows - 1)[:n_rows])
        evicted = self._row_of[slots]
        self.slot_of[evicted[evicted >= 0]] = -1
        return slots

    def _compute(self, rows, slots):
        self._row_of[slots] = -1  # if computing fails or is interrupted, nothing half-made stays
        self.used[slots] = -1
        self.K.fill(rows, self.columns, self.values, slots)
        self._row_of[slots], self.used[slots] = rows, self._clock
        self.slot_of[rows] = slots
        self.n_computed += len(rows) * self.columns.n_columns / self.K.n_rows

    def keep_columns(self, chosen, positions):
        """Give up all columns but those of the rows `chosen`, which are at `positions` at present (ascending)."""
        n_before = self.values.shape[1]
        full = np.flatnonzero(self._row_of >= 0)
        rows, used = self._row_of[full], self.used[full]
        _move_together(self._memory, n_before, full, positions)
        self.columns = self.K.columns(chosen)
        self._lay_out(rows, used)

    def lend(self, n_lines, n_columns):
        """Return n_lines lines for passing use, less if the cache's own memory holds a panel; no row is kept."""
        self.all_columns()
        n_lines = min(n_lines, max(self._memory.size // n_columns, _LEAST_LENT))
        if n_lines * n_columns > self._memory.size:
            return np.empty((n_lines, n_columns), self.K.dtype)
        return self._memory[: n_lines * n_columns].reshape(n_lines, n_columns)

    def all_columns(self):
        """Have all columns again; no row is kept."""
        self.columns = self.K.columns()
        self._lay_out(np.empty(0, np.int64), np.empty(0, np.int64))


class HeldRows:
    """The rows of a matrix that lies in memory whole, behind the verbs of a RowCache; columns are never given up."""

    def __init__(self, K):
        self.K, self.values = K, K.held
        self.columns = K.columns()
        self.n_slots, self.n_computed, self._clock = K.n_rows, 0.0, 0
        self.slot_of, self.used = np.arange(K.n_rows, dtype=np.int32), np.zeros(K.n_rows, np.int64)

    def tick(self):
        """Return the time of a new use."""
        self._clock += 1
        return self._clock

    def fetch(self, rows):
        """Return the slots of rows: where they lie."""
        return np.asarray(rows)

    def all_columns(self):
        """Have all columns, as ever."""


def rows_that_fit(K, megabytes):
    """Return how many rows of a KernelRows fit into a memory."""
    return int(megabytes * 2**20) // (K.dtype.itemsize * max(1, K.n_rows))


@compiled
def _move_together(memory, n_before, slots, positions):
    """Move the chosen positions of the given lines to the front; both ascend, so nothing is overwritten too early."""
    target = 0
    for slot in slots:
        line = slot * n_before
        for position in positions:
            memory[target] = memory[line + position]
            target += 1
