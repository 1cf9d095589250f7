"""The kernel matrix of some rows, as that of a working set, out of a cache of kernel rows."""

import numpy as np

from widemargin._runtime.compile import compiled
from widemargin._runtime.threads import run, split

_ENTRIES_WORTH_THREADS = 1 << 21  # of a block, from which on threads save time: two milliseconds of work
_TASKS = 8  # of the thread pool


class KernelBlock:
    """The kernel matrix of a working set, copied from that of the previous working set where both have the rows.

    Copying single values out of long kernel rows is slow, since each is in another cache line. This is only done for
    the rows that are new in the working set.
    """

    def __init__(self, size, n_rows, dtype):
        self._memory = np.empty((2, size**2), dtype)
        self._previous = np.empty((0, 0), dtype)
        self._position = np.full(n_rows, -1)  # of each row in the previous block
        self._rows = np.empty(0, np.int64)

    def take(self, values, slots, columns, rows, n_jobs=1):
        """Return the block of these rows, which are values[slots], at these columns."""
        size = len(rows)
        block = self._memory[0][: size**2].reshape(size, size)
        self._memory = self._memory[::-1]
        position = self._position[rows]
        ranges = split(size, _TASKS if size**2 >= _ENTRIES_WORTH_THREADS else 1)
        run(_gather_new, [(values, slots, columns, position, block, *ends) for ends in ranges], n_jobs)
        if len(self._rows):
            run(_gather_old, [(position, self._previous, block, *ends) for ends in ranges], n_jobs)
        self._position[self._rows] = -1
        self._position[rows] = np.arange(size)
        self._previous, self._rows = block, rows
        return block


def block_of(values, slots, columns):
    """Return values[slots] at these columns, by the compiled code of a KernelBlock."""
    block = np.empty((len(slots), len(columns)), values.dtype)
    _gather_new(values, slots, columns, np.full(len(slots), -1), block, 0, len(slots))
    return block


@compiled
def _gather_new(values, slots, columns, position, block, start, stop):
    """Set block[a, b] = values[slots[a], columns[b]] for the new rows a, position[a] < 0, from start to stop."""
    for a in range(start, stop):
        if position[a] < 0:
            source, target = values[np.uint64(slots[a])], block[np.uint64(a)]
            for b in range(columns.size):
                target[b] = source[np.uint64(columns[b])]


@compiled
def _gather_old(position, previous, block, start, stop):
    """Set block[a, b] for the rows a from start to stop that have a position in the `previous` block.

    Values of two rows that are both in it are copied from it; values of a new row and another are copied from the new
    row, as the block is symmetric.
    """
    for a in range(start, stop):
        if position[a] >= 0:
            source, target = previous[np.uint64(position[a])], block[np.uint64(a)]
            for b in range(position.size):
                target[b] = source[np.uint64(position[b])] if position[b] >= 0 else block[np.uint64(b), np.uint64(a)]
