"""X'diag(q)X for weights q that change from one step to the next; only rows whose weight has changed are read.

Sums that grow by some rows and shrink by others keep the rounding errors of the rows that have left. The matrix is
computed anew when an entry of its diagonal has become much smaller than it was, and after a number of updates.
"""

import numpy as np

_CHANGED_ROWS_WORTH_UPDATE = 0.5  # fraction of the rows with a weight up to which the matrix is updated, not made anew
_UPDATES_BEFORE_RECOMPUTING = 50
_SMALLEST_SHARE_OF_DIAGONAL = 0.1  # of the largest value since the matrix was made anew, below which it is made anew


class UpdatedGram:
    """The lower half of X'diag(q)X for the last weights q.

    Parameters
    ----------
    X : Matrix
    n_jobs : int or None

    Attributes
    ----------
    n_read : int
        Number of rows read for the last weights.
    """

    def __init__(self, X, n_jobs=1):
        self._X, self._n_jobs = X, n_jobs
        self._q, self._lower, self._largest_diagonal, self._n_updates, self.n_read = None, None, None, 0, 0

    def lower(self, q):
        """Return the lower half of X'diag(q)X, an array that the next call changes."""
        if self._lower is None or not self._is_updated(q):
            self._lower, self._n_updates, self.n_read = self._X.gram(q, self._n_jobs), 0, np.count_nonzero(q)
            self._largest_diagonal = self._lower.diagonal().copy()
        self._q = q.copy()
        return self._lower

    def _is_updated(self, q):
        """Add the rows whose weight has changed, if they are few; return whether the matrix is that of q."""
        n_changed = np.count_nonzero(q != self._q)
        if n_changed > _CHANGED_ROWS_WORTH_UPDATE * np.count_nonzero(q):
            return False
        if n_changed:
            if self._n_updates == _UPDATES_BEFORE_RECOMPUTING:
                return False
            self._lower += self._X.gram(q - self._q, self._n_jobs)
            self._n_updates += 1
        self.n_read = n_changed
        diagonal = self._lower.diagonal()
        np.maximum(self._largest_diagonal, diagonal, out=self._largest_diagonal)
        return bool((diagonal >= _SMALLEST_SHARE_OF_DIAGONAL * self._largest_diagonal).all())
