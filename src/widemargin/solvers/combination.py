"""X'c for dual variables c that change from iteration to iteration, updated by the rows whose c has changed."""

import numpy as np

from widemargin._runtime.compile import SUMS, compiled
from widemargin._runtime.threads import run
from widemargin.problems.row_risk import BLOCK_ROWS, ranges_of

_UPDATES = 50  # results that are computed from the one before, until one is computed anew, free of rounding


class Combination:
    """c and X'c.

    Attributes
    ----------
    c, vector : ndarray
        As last taken; `vector` is a new array each time.
    passes : float
        Visits of rows divided by the number of rows.
    size : float
        Σ |c_i| |x_i| of all the terms that `vector` was summed from, by which its rounding is bounded; 0 unless the
        lengths |x_i| are given.
    """

    def __init__(self, X, n_jobs=None, lengths=None):
        self._X, self._lengths, self._n_jobs, self._ranges = X, lengths, n_jobs, ranges_of(X.n_rows)
        self.c, self._changed = np.zeros((2, X.n_rows))
        self.vector, self._n_updates, self.passes, self.size = np.zeros(X.n_columns), 0, 0.0, 0.0

    def take(self, c, s):
        """Take c; return <c, s>."""
        tasks = [(c, self.c, s, *ends, self._changed) for ends in self._ranges]
        n_changed, n_counted, inner = np.sum(run(_compare, tasks, self._n_jobs), axis=0)
        if n_changed < n_counted and self._n_updates < _UPDATES:
            self.vector = self.vector + self._X.combine(self._changed, self._n_jobs)
            self.size += self._size(self._changed)
            self._n_updates += 1
        else:
            self.vector, self._n_updates = self._X.combine(c, self._n_jobs), 0
            self.size = self._size(c)
        self.passes += min(n_changed, n_counted) / max(1, len(c))
        return inner

    def _size(self, c):
        return 0.0 if self._lengths is None else float(np.abs(c) @ self._lengths)


@compiled
def _compare(c, last, scores, start, stop, changed):
    """Set changed = c − last and last = c; return how many numbers changed, how many are not 0, and <c, scores>."""
    n_changed, n_counted, inner = 0, 0, 0.0
    for first in range(start, stop, BLOCK_ROWS):
        here = slice(first, min(first + BLOCK_ROWS, stop))
        inner += _inner(c[here], scores[here])
        counts = _replace(c[here], last[here], changed[here])
        n_changed, n_counted = n_changed + counts[0], n_counted + counts[1]
    return n_changed, n_counted, inner


@compiled(fastmath=SUMS)
def _inner(a, b):
    total = 0.0
    for i in range(a.size):
        total += a[i] * b[i]
    return total


@compiled
def _replace(c, last, changed):
    n_changed, n_counted = 0, 0
    for i in range(c.size):
        change = c[i] - last[i]
        n_changed += change != 0.0
        n_counted += c[i] != 0.0
        changed[i], last[i] = change, c[i]
    return n_changed, n_counted
