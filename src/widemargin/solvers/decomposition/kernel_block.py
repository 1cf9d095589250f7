"""The kernel matrix of some rows, as that of a working set, out of a cache of kernel rows."""

import numpy as np

from widemargin._runtime.compile import compiled


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

    def take(self, values, slots, columns, rows):
        """Return the block of these rows, which are values[slots], at these columns."""
        size = len(rows)
        block = self._memory[0][: size**2].reshape(size, size)
        self._memory = self._memory[::-1]
        _gather(values, slots, columns, self._position[rows], self._previous, block)
        self._position[self._rows] = -1
        self._position[rows] = np.arange(size)
        self._previous, self._rows = block, rows
        return block


def block_of(values, slots, columns):
    """Return values[slots] at these columns, by the compiled code of a KernelBlock."""
    block, nothing = np.empty((len(slots), len(columns)), values.dtype), np.empty((0, 0), values.dtype)
    _gather(values, slots, columns, np.full(len(slots), -1), nothing, block)
    return block


@compiled
def _gather(values, slots, columns, position, previous, block):
    """Set block[a, b] = values[slots[a], columns[b]].

    `position` are the positions of the rows in the `previous` block, −1 for new rows. Values of two rows that are both
    in it are copied from it; values of a new row and another are copied from the new row, as the block is symmetric.
    """
    for a in range(slots.size):
        if position[a] < 0:
            source, target = values[np.uint64(slots[a])], block[np.uint64(a)]
            for b in range(columns.size):
                target[b] = source[np.uint64(columns[b])]
    for a in range(slots.size):
        if position[a] >= 0:
            source, target = previous[np.uint64(position[a])], block[np.uint64(a)]
            for b in range(columns.size):
                target[b] = source[np.uint64(position[b])] if position[b] >= 0 else block[np.uint64(b), np.uint64(a)]
