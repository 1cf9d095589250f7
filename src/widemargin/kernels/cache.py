"""A least-recently-used cache of kernel rows in a fixed amount of memory.

All rows are stored in one array, a slot for each, with the columns that are currently needed (the active set of the
solver). When columns are dropped, the slots are compacted, and more rows fit into the same memory.

Memory that has never been written is slow: the operating system has to provide and clear each page, which can take
several times as long as computing the values of a cheap kernel. For cheap kernels the cache therefore starts with as
many slots as are needed at the same time. One more is used for every `_RECOMPUTED_ROWS_PER_NEW_SLOT` rows that had to
be computed again.
"""

import os
from collections import deque
from functools import cached_property

import numpy as np

from widemargin._runtime.compile import compiled

_RECOMPUTED_ROWS_PER_NEW_SLOT = 4  # of a cheap kernel
_FEWEST_LENT_LINES = 64  # even if the cache is smaller, since kernel rows are computed several at a time
_MAX_BYTES_KEPT = 1 << 24  # of a matrix whose memory is kept for the next one


class RowCache:
    """A cache of rows of a kernel matrix.

    Parameters
    ----------
    K : KernelRows
        The kernel matrix.
    megabytes : float
        Memory for the rows. If `least` rows need more, their memory is allocated all the same.
    least : int
        Number of rows that must fit at the same time.

    Attributes
    ----------
    values : ndarray of shape (n_slots, n_columns)
        The stored rows; row i is values[slot_of[i]].
    slot_of : ndarray of int32
        The slot of each row, −1 for rows that are not in the cache.
    used : ndarray of int64
        Time of the last use of each slot, as `tick` returned it; compiled loops that look up rows update it.
    columns : Columns
        The columns that are stored.
    n_computed : float
        Number of rows computed so far; a row with a part of the columns counts in proportion.
    n_fetched, n_found : int
        Number of rows that were asked for by `fetch`, and of those among them that were in the cache.
    """

    def __init__(self, K, megabytes, least):
        self.K = K
        self.columns = K.columns()
        n_slots = min(max(rows_that_fit(K, megabytes), least), K.n_rows)
        self._memory = np.empty(n_slots * K.n_rows, K.dtype)
        self.slot_of = np.full(K.n_rows, -1, np.int32)
        self.n_computed = 0.0
        self.n_fetched, self.n_found = 0, 0
        self._clock = 0
        self._was_computed = np.zeros(K.n_rows, bool)
        self._n_recomputed = 0  # since the last new slot
        self._n_slots_in_use = least if K.cheap else n_slots
        self._lay_out(np.empty(0, np.int64), np.empty(0, np.int64))

    def _lay_out(self, rows, used):
        """Divide the memory into slots, the first of which hold `rows`."""
        n_columns = max(1, self.columns.n_columns)
        n_slots = min(self._memory.size // n_columns, self.K.n_rows)
        self._n_slots_in_use = min(n_slots, max(self._n_slots_in_use, len(rows)))
        self.values = self._memory[: n_slots * n_columns].reshape(n_slots, n_columns)
        self._row_of = np.full(n_slots, -1, np.int64)
        self.used = np.full(n_slots, -1, np.int64)
        self._row_of[: len(rows)], self.used[: len(rows)] = rows, used
        self.slot_of[:] = -1
        self.slot_of[rows] = np.arange(len(rows))

    @property
    def n_slots(self):
        """Number of rows that fit, with the columns that are currently stored."""
        return len(self.used)

    @property
    def n_whole_rows(self):
        """Number of rows that fit with all columns."""
        return min(self._memory.size // max(1, self.K.n_rows), self.K.n_rows)

    def tick(self):
        """Return the time of a new use."""
        self._clock += 1
        return self._clock

    def fetch(self, rows):
        """Return the slots of distinct rows, at most `n_slots` of them; rows not in the cache are computed."""
        if len(rows) > self.n_slots:
            raise ValueError(f"{len(rows)} rows do not fit into {self.n_slots} slots at the same time.")
        self.tick()
        slots = self.slot_of[rows]
        missing = slots < 0
        self.used[slots[~missing]] = self._clock
        n_missing = int(missing.sum())
        self.n_fetched += len(rows)
        self.n_found += len(rows) - n_missing
        if n_missing:
            self._n_recomputed += int(self._was_computed[rows[missing]].sum())
            n_new, self._n_recomputed = divmod(self._n_recomputed, _RECOMPUTED_ROWS_PER_NEW_SLOT)
            self._n_slots_in_use = min(self.n_slots, max(self._n_slots_in_use + n_new, len(rows)))
            self._was_computed[rows[missing]] = True
            slots[missing] = self._evict(n_missing)
            self._compute(rows[missing], slots[missing])
        return slots

    def _evict(self, n_rows):
        """Empty the `n_rows` least recently used slots and return them."""
        if n_rows == 1:
            slots = np.array([np.argmin(self.used[: self._n_slots_in_use])])
        else:
            slots = np.sort(np.argpartition(self.used[: self._n_slots_in_use], n_rows - 1)[:n_rows])
        evicted = self._row_of[slots]
        self.slot_of[evicted[evicted >= 0]] = -1
        return slots

    def _compute(self, rows, slots):
        self._row_of[slots] = -1  # if the computation fails or is interrupted, the slots are empty
        self.used[slots] = -1
        self.K.fill(rows, self.columns, self.values, slots)
        self._row_of[slots], self.used[slots] = rows, self._clock
        self.slot_of[rows] = slots
        self.n_computed += len(rows) * self.columns.n_columns / self.K.n_rows

    def keep_columns(self, chosen, positions):
        """Drop all columns but those of the rows `chosen`, whose present positions are `positions`, ascending."""
        n_before = self.values.shape[1]
        full = np.flatnonzero(self._row_of >= 0)
        rows, used = self._row_of[full], self.used[full]
        _compact(self._memory, n_before, full, positions)
        self.columns = self.K.columns(chosen)
        self._lay_out(rows, used)

    def lend(self, n_lines, n_columns):
        """Return a temporary array of at most n_lines lines in the memory of the cache, which is emptied.

        If the cache is too small for `_FEWEST_LENT_LINES` lines, new memory is allocated for these.
        """
        self.all_columns()
        n_lines = min(n_lines, max(self._memory.size // n_columns, _FEWEST_LENT_LINES))
        if n_lines * n_columns > self._memory.size:
            return np.empty((n_lines, n_columns), self.K.dtype)
        return self._memory[: n_lines * n_columns].reshape(n_lines, n_columns)

    def all_columns(self):
        """Store all columns from now on; the cache is emptied."""
        self.columns = self.K.columns()
        self._lay_out(np.empty(0, np.int64), np.empty(0, np.int64))


class HeldRows:
    """The rows of a kernel matrix with memory for all of them, with the methods of a RowCache that solvers need.

    `is_ready` says which rows are computed; if the matrix was given, all are. The memory of a small matrix is used
    again for the next one after `release`: for many small problems, new memory would take longer than their solution.
    """

    def __init__(self, K):
        self.K, self.columns = K, K.columns()
        self.values, self._memory = K.held, None
        if K.held is None:
            n_bytes = K.dtype.itemsize * K.n_rows**2
            self._memory = _memory_of(n_bytes)
            self.values = self._memory[:n_bytes].view(K.dtype).reshape(K.n_rows, K.n_rows)
        self.is_ready = (np.zeros if K.held is None else np.ones)(K.n_rows, np.bool_)
        self.n_slots = self.n_whole_rows = K.n_rows
        self.n_computed, self._clock = 0.0, 0
        self.n_fetched, self.n_found = 0, 0

    @cached_property
    def slot_of(self):
        """The slot of each row: its own index."""
        return np.arange(self.n_slots, dtype=np.int32)

    @cached_property
    def used(self):
        """When each slot was used last; nobody asks, since all rows have one."""
        return np.zeros(self.n_slots, np.int64)

    def tick(self):
        """Return the time of a new use."""
        self._clock += 1
        return self._clock

    def fetch(self, rows):
        """Return the slots of rows, which are their own indices; rows that are not ready are computed."""
        rows = np.asarray(rows)
        missing = rows[~self.is_ready[rows]]
        self.n_fetched += len(rows)
        self.n_found += len(rows) - len(missing)
        if len(missing):
            self.K.fill(missing, self.columns, self.values, missing)
            self.is_ready[missing] = True
            self.n_computed += len(missing)
        return rows

    def release(self):
        """Give the memory back; the rows cannot be used any more."""
        self.values, memory, self._memory = None, self._memory, None
        if memory is not None and memory.nbytes <= _MAX_BYTES_KEPT:
            _kept.append(memory)

    def count_ready(self):
        """Count rows that compiled loops have computed themselves."""
        if self.K.held is None:
            self.n_computed = float(np.count_nonzero(self.is_ready))

    def all_columns(self):
        """Do nothing, since all columns are always present."""


_kept: deque = deque(maxlen=os.cpu_count() or 1)  # memory of small matrices that are not used any more


def _memory_of(n_bytes):
    """Return at least so many bytes of memory, of those that were released if they suffice."""
    try:
        memory = _kept.pop()
    except IndexError:
        return np.empty(n_bytes, np.uint8)
    return memory if memory.nbytes >= n_bytes else np.empty(n_bytes, np.uint8)


def rows_that_fit(K, megabytes):
    """Return how many rows of a KernelRows fit into so many megabytes."""
    return int(megabytes * 2**20) // (K.dtype.itemsize * max(1, K.n_rows))


@compiled
def _compact(memory, n_before, slots, positions):
    """Move the given positions of the given slots, of length n_before, to the front of the memory.

    Slots and positions ascend, so that no value is overwritten before it is moved.
    """
    target = 0
    for slot in slots:
        line = slot * n_before
        for position in positions:
            memory[target] = memory[line + position]
            target += 1
