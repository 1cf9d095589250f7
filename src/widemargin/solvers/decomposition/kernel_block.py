"""The kernel matrix of some rows, as that of a working set, out of a cache of kernel rows."""

import numpy as np

from widemargin._runtime.compile import compiled
from widemargin._runtime.threads import run, split

_ENTRIES_WORTH_THREADS = 1 << 17  # written, from which on threads save time: a quarter of a millisecond of work
_TASKS = 8  # of the thread pool
_PADDING = 16  # numbers at the end of a row: entries of a column are not a power of two apart, and stay in the cache
_ROWS_WRITTEN_TOGETHER = 16  # whose entries in the columns of new rows are copied at once


class KernelBlock:
    """The kernel matrix of a working set. Rows that remain in the working set stay where they are.

    Each row has a place in the working set. Only rows that are new are copied out of the cache, which is slow, since
    each value is in another cache line. Their values in the other rows are taken from them, as the matrix is symmetric.
    """

    def __init__(self, size, n_rows, dtype):
        self._memory = np.empty((size, size + _PADDING), dtype)
        self._rows = np.full(size, -1)  # that has each place
        self._place = np.full(n_rows, -1)  # of each row
        self._by_column, self._changes = np.empty((2, size), np.int64)

    def arrange(self, rows, ends):
        """Return an order of these rows in which those that the block has keep their places.

        Group g consists of rows ends[g] .. ends[g + 1] before and after; rows whose place is another group's move.
        """
        order = np.full(len(rows), -1)
        self._by_column[: len(rows)] = -1
        _arrange(self._place, rows, ends, order, self._by_column[: len(rows)])
        return order

    def take(self, values, slots, columns, rows, n_jobs=1):
        """Return the block of the rows in the order of `arrange`, which are values[slots], at these columns.

        The block has places for as many rows as the largest working set, and padding; what is not asked for is unknown.
        """
        size, block = len(rows), self._memory
        n_new = _replace(self._place, self._rows, rows, self._changes[:size])
        new, old = self._changes[:n_new], self._changes[n_new:size]
        n_tasks = _TASKS if n_new * size >= _ENTRIES_WORTH_THREADS else 1
        of_rows = (values, slots, columns, self._by_column[:size], new, block)
        run(_copy_rows, [(*of_rows, *ends) for ends in split(n_new, n_tasks)], n_jobs)
        run(_copy_columns, [(new, old, block, *ends) for ends in split(size - n_new, n_tasks)], n_jobs)
        return block


def block_of(values, slots, columns):
    """Return values[slots] at these columns, by the compiled code of a KernelBlock."""
    block, every = np.empty((len(slots), len(columns)), values.dtype), np.arange(len(slots))
    _copy_rows(values, slots, columns, np.arange(len(columns)), every, block, 0, len(slots))
    return block


@compiled
def _arrange(place, rows, ends, order, place_of):
    """Set order[p] = k and place_of[k] = p for each row k and the place p that it keeps or is given; all were -1."""
    for group in range(ends.size - 1):
        for k in range(ends[group], ends[group + 1]):
            p = place[np.uint64(rows[k])]
            if ends[group] <= p < ends[group + 1] and order[np.uint64(p)] < 0:
                order[np.uint64(p)], place_of[k] = k, p
    p = 0
    for k in range(rows.size):
        if place_of[k] < 0:
            while order[p] >= 0:
                p += 1
            order[p], place_of[k] = k, p


@compiled
def _replace(place, before, rows, changes):
    """Set the rows at each place, and their places; return the number of places with new rows, the first `changes`.

    The others follow, last ones first.
    """
    for p in range(before.size):
        if before[p] >= 0:
            place[np.uint64(before[p])] = -1
    n_new, n_old = 0, 0
    for p in range(rows.size):
        if before[p] == rows[p]:
            n_old += 1
            changes[rows.size - n_old] = p
        else:
            changes[n_new] = p
            n_new += 1
        place[np.uint64(rows[p])], before[p] = p, rows[p]
    for p in range(rows.size, before.size):
        before[p] = -1
    return n_new


@compiled
def _copy_rows(values, slots, columns, order, new, block, start, stop):
    """Set block[a, b] = values[slots[a], columns[b]] for the rows a = new[start:stop] and all b, in the given order."""
    for k in range(start, stop):
        source, target = values[np.uint64(slots[new[k]])], block[np.uint64(new[k])]
        for b in order:
            target[np.uint64(b)] = source[np.uint64(columns[np.uint64(b)])]


@compiled
def _copy_columns(new, old, block, start, stop):
    """Set block[b, a] = block[a, b] for the rows b = old[start:stop] and all a in `new`."""
    for begin in range(start, stop, _ROWS_WRITTEN_TOGETHER):
        end = min(begin + _ROWS_WRITTEN_TOGETHER, stop)
        for a in new:
            source = block[np.uint64(a)]
            for k in range(begin, end):
                block[np.uint64(old[k]), np.uint64(a)] = source[np.uint64(old[k])]
