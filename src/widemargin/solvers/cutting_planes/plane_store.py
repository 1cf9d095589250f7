"""The planes a = X'c of a cutting plane method: kept as vectors a, sparse where that is smaller, or as their c.

    dense    a line of an array each: 8 m d bytes for m planes of d columns, up to twice that while the array grows
    sparse   12 bytes for each value that is not zero
    by rows  a line of c each and one of its scores X a, 16 m n bytes: smallest if there are far more columns than rows.
             Inner products and sums of planes then go by way of the rows, <a_k, a> = <c_k, X a> and
             Σ v_k a_k = X'Σ v_k c_k; the scores of such a sum are known without a pass

The first plane is taken where every row counts, so it has the most values of all: it decides.
"""

import numpy as np

from widemargin._runtime.compile import compiled

_FEW = 16
_SPARSE_BELOW = 0.5  # fraction of values other than zero
_ROWS_BELOW = 4  # times the rows is less than the values of a plane: then by rows
_NEVER_SPARSE = 1 << 12  # columns: products of short lines are fastest as a matrix


def planes_like(first, X, n_jobs=None):
    """Return an empty store that suits planes of X like this one."""
    if len(first) <= _NEVER_SPARSE:
        return DensePlanes(len(first))
    n_values = np.count_nonzero(first)
    if _ROWS_BELOW * X.n_rows < n_values:
        return RowPlanes(X, n_jobs)
    return SparsePlanes(len(first)) if n_values < _SPARSE_BELOW * len(first) else DensePlanes(len(first))


class DensePlanes:
    """Planes as lines of one array."""

    passes = 0  # over the rows, to add a plane or to sum planes up

    def __init__(self, n_columns):
        self._lines, self._n = np.empty((_FEW, n_columns)), 0

    def add(self, plane, c=None):
        """Keep a plane; return its inner products with all planes, its own last."""
        self.append(plane)
        return self.dot(plane)

    def dot(self, vector):
        """Return the inner products of all lines with a vector."""
        return self._lines[: self._n] @ vector

    def append(self, plane):
        """Keep a line."""
        if self._n == len(self._lines):
            lines = np.empty((2 * self._n, self._lines.shape[1]))
            lines[: self._n] = self._lines
            self._lines = lines
        self._lines[self._n] = plane
        self._n += 1

    def combine(self, weights):
        """Return Σ weights_k a_k."""
        chosen = np.flatnonzero(weights)
        if 2 * len(chosen) > self._n:
            return weights @ self._lines[: self._n]
        return weights[chosen] @ self._lines[chosen]

    def scores(self, weights):
        """Return the scores of Σ weights_k a_k if they can be had without a pass over the rows, else None."""
        return

    def keep(self, kept):
        """Forget all planes but these (a mask)."""
        chosen = np.flatnonzero(kept)
        self._lines[: len(chosen)] = self._lines[chosen]
        self._n = len(chosen)


class RowPlanes:
    """Planes as the combinations of rows that they are."""

    passes = 1

    def __init__(self, X, n_jobs):
        self._X, self._n_jobs = X, n_jobs
        self._c, self._scores = DensePlanes(X.n_rows), DensePlanes(X.n_rows)

    def add(self, plane, c=None):
        """Keep a plane; return its inner products with all planes, its own last."""
        scores = self._X.scores(plane, self._n_jobs)
        self._scores.append(scores)
        self._c.append(c)
        return self._c.dot(scores)

    def combine(self, weights):
        """Return Σ weights_k a_k."""
        return self._X.combine(self._c.combine(weights), self._n_jobs)

    def scores(self, weights):
        """Return the scores of Σ weights_k a_k."""
        return self._scores.combine(weights)

    def keep(self, kept):
        """Forget all planes but these (a mask)."""
        self._c.keep(kept)
        self._scores.keep(kept)


class SparsePlanes:
    """Planes as lists of columns and values."""

    passes = 0

    def __init__(self, n_columns):
        self._n_columns, self._planes = n_columns, []

    def add(self, plane, c=None):
        """Keep a plane; return its inner products with all planes, its own last."""
        columns = np.flatnonzero(plane).astype(np.uint32)
        self._planes.append((columns, plane[columns]))
        return np.array([_dot(columns, values, plane) for columns, values in self._planes])

    def combine(self, weights):
        """Return Σ weights_k a_k."""
        total = np.zeros(self._n_columns)
        for k in np.flatnonzero(weights):
            _add(*self._planes[k], weights[k], total)
        return total

    def scores(self, weights):
        """Return the scores of Σ weights_k a_k if they can be had without a pass over the rows, else None."""
        return

    def keep(self, kept):
        """Forget all planes but these (a mask)."""
        self._planes = [self._planes[k] for k in np.flatnonzero(kept)]


@compiled
def _dot(columns, values, dense):
    total = 0.0
    for k in range(columns.size):
        total += values[k] * dense[columns[k]]
    return total


@compiled
def _add(columns, values, weight, total):
    """Add weight times a sparse plane to total."""
    for k in range(columns.size):
        total[columns[k]] += weight * values[k]
