"""X'c for coefficients c that change from iteration to iteration; only rows whose coefficient has changed are read."""

import numpy as np

from widemargin._runtime.compile import SUMS, compiled
from widemargin._runtime.threads import run
from widemargin.problems.row_risk import BLOCK_ROWS, product_of_sizes, ranges_of

_UPDATES_BEFORE_RECOMPUTING = 50  # after so many updates X'c is computed anew, free of accumulated rounding errors


class Combination:
    """The coefficients c and the vector X'c; both are zero at first.

    Parameters
    ----------
    X : Matrix
    n_jobs : int or None
    norms : ndarray of shape (n_rows,), or None
        The norms |x_i| of the rows, which `size` needs.

    Attributes
    ----------
    c, vector : ndarray
        The coefficients, and X'c; each call of `update` sets `vector` to a new array.
    n_read : float
        Number of rows read so far.
    size : float
        Σ |c_i| |x_i| over all terms that `vector` was summed from, to which its rounding error is proportional; 0 if
        the norms are not given.
    """

    STATE = ("c", "vector", "_n_updates", "n_read", "size")

    def __init__(self, X, n_jobs=1, norms=None):
        self._X, self._norms, self._n_jobs, self._ranges = X, norms, n_jobs, ranges_of(X.n_rows)
        self.c, self._change = np.zeros((2, X.n_rows))
        self.vector, self._n_updates, self.n_read, self.size = np.zeros(X.n_columns), 0, 0.0, 0.0

    def update(self, c, scores):
        """Set the coefficients and X'c; return <c, scores> and Σ |c_i scores_i|.

        X'c is computed from the changes or from c itself, whichever has fewer nonzero entries.
        """
        tasks = [(c, self.c, scores, *ends, self._change) for ends in self._ranges]
        n_changed, n_nonzero, inner, magnitude = map(sum, zip(*run(_compare, tasks, self._n_jobs), strict=True))
        if n_changed < n_nonzero and self._n_updates < _UPDATES_BEFORE_RECOMPUTING:
            self.vector = self.vector + self._X.combine(self._change, self._n_jobs)
            self.size += self._size_of(self._change)
            self._n_updates += 1
        else:
            self.vector, self._n_updates = self._X.combine(c, self._n_jobs), 0
            self.size = self._size_of(c)
        self.n_read += min(n_changed, n_nonzero)
        return inner, magnitude

    def begin(self, c, vector, growth):
        """Set the coefficients, and X'c as the caller has summed it, from terms of up to `growth` times their size."""
        self.c[:], self.vector, self._n_updates = c, vector, 0
        self.size = growth * self._size_of(c)

    def _size_of(self, c):
        return 0.0 if self._norms is None else product_of_sizes(c, self._norms)


@compiled
def _compare(c, last, scores, start, stop, change):
    """Set change = c − last and last = c for start <= i < stop.

    Returns the number of entries that have changed, the number of nonzero entries of c, <c, scores>, and the sum of the
    sizes of its terms.
    """
    n_changed, n_nonzero, inner, magnitude = 0, 0, 0.0, 0.0
    for first in range(start, stop, BLOCK_ROWS):
        here = slice(first, min(first + BLOCK_ROWS, stop))
        dot = _dot(c[here], scores[here])
        inner, magnitude = inner + dot[0], magnitude + dot[1]
        counts = _replace(c[here], last[here], change[here])
        n_changed, n_nonzero = n_changed + counts[0], n_nonzero + counts[1]
    return n_changed, n_nonzero, inner, magnitude


@compiled(fastmath=SUMS)
def _dot(a, b):
    """Return <a, b>, and the sum of the sizes of its terms."""
    total, size = 0.0, 0.0
    for i in range(a.size):
        total += a[i] * b[i]
        size += abs(a[i] * b[i])
    return total, size


@compiled
def _replace(c, last, change):
    """Set change = c − last and last = c; return the number of changes, and of nonzero entries of c."""
    n_changed, n_nonzero = 0, 0
    for i in range(c.size):
        difference = c[i] - last[i]
        n_changed += difference != 0.0
        n_nonzero += c[i] != 0.0
        change[i], last[i] = difference, c[i]
    return n_changed, n_nonzero
