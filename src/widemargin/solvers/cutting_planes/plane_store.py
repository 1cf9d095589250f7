"""Storage of the planes a = X'c of a cutting plane method: as dense or sparse vectors a, or as the vectors c.

    dense    one row of an array per plane: 8 m d bytes for m planes of d columns, up to twice that while it grows
    sparse   12 bytes for each nonzero value
    by rows  c and the scores X a of each plane: 16 m n bytes for n rows, the smallest if columns are far more than
             rows. Inner products and sums are computed by way of the rows: <a_k, a> = <c_k, X a>, and
             Σ v_k a_k = X'Σ v_k c_k. The scores of such a sum are known without a pass over the rows.

The first plane determines the kind of storage. It is usually taken at w = 0, where all rows have positive loss, so that
no later plane has more nonzero values.
"""

import numpy as np

from widemargin._runtime.compile import compiled
from widemargin._runtime.place import HERE

_INITIAL_CAPACITY = 16  # planes
_DENSE_MAX_COLUMNS = 1 << 12  # up to which planes are dense: products of short vectors are fastest as a matrix
_SPARSE_MAX_DENSITY = 0.5  # fraction of nonzero values below which planes are sparse
_MIN_VALUES_PER_ROW = 4  # planes with more nonzero values than this times the number of rows are stored by rows


def plane_store_for(first, X, n_jobs=1):
    """Return an empty store that suits planes of X with as many nonzero values as the first plane."""
    if len(first) <= _DENSE_MAX_COLUMNS:
        return DensePlanes(len(first))
    n_values = np.count_nonzero(first)
    if X.place is HERE and _MIN_VALUES_PER_ROW * X.n_rows < n_values:
        return RowPlanes(X, n_jobs)
    return SparsePlanes(len(first)) if n_values < _SPARSE_MAX_DENSITY * len(first) else DensePlanes(len(first))


class DensePlanes:
    """Planes as the rows of one array.

    Attributes
    ----------
    passes : int
        Passes over the rows of X that it takes to add a plane, or to sum planes.
    needs_coefficients : bool
        Whether `add` needs the coefficients c of the rows.
    """

    passes, needs_coefficients = 0, False

    STATE = ("_values", "_n")  # what a checkpoint keeps

    def __init__(self, n_columns):
        self._values, self._n = np.empty((_INITIAL_CAPACITY, n_columns)), 0

    def add(self, plane, c=None):
        """Store a plane; return its inner products with all planes, the last one with itself."""
        self.append(plane)
        return self.dot(plane)

    def dot(self, vector):
        """Return the inner products of all stored vectors with a vector."""
        return self._values[: self._n] @ vector

    def append(self, plane):
        """Store a vector."""
        if self._n == len(self._values):
            values = np.empty((2 * self._n, self._values.shape[1]))
            values[: self._n] = self._values
            self._values = values
        self._values[self._n] = plane
        self._n += 1

    def combine(self, weights):
        """Return Σ weights_k a_k."""
        chosen = np.flatnonzero(weights)
        if 2 * len(chosen) > self._n:
            return weights @ self._values[: self._n]
        return weights[chosen] @ self._values[chosen]

    def scores(self, weights):
        """Return None, since the scores of Σ weights_k a_k need a pass over the rows."""
        return

    def keep(self, kept):
        """Remove all planes but those where the mask is true."""
        chosen = np.flatnonzero(kept)
        self._values[: len(chosen)] = self._values[chosen]
        self._n = len(chosen)


class RowPlanes:
    """Planes a = X'c as the coefficients c of the rows, and their scores X a."""

    passes, needs_coefficients = 1, True

    STATE = ("_c", "_scores")

    def __init__(self, X, n_jobs):
        self._X, self._n_jobs = X, n_jobs
        self._c, self._scores = DensePlanes(X.n_rows), DensePlanes(X.n_rows)

    def add(self, plane, c=None):
        """Store a plane; return its inner products with all planes, the last one with itself."""
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
        """Remove all planes but those where the mask is true."""
        self._c.keep(kept)
        self._scores.keep(kept)


class SparsePlanes:
    """Planes as arrays of column indices and values."""

    passes, needs_coefficients = 0, False

    def __init__(self, n_columns):
        self._n_columns, self._planes = n_columns, []

    STATE = ("joined",)

    @property
    def joined(self):
        """All planes in one array: columns and values, and the number of values of the plane that each belongs to."""
        lengths = [np.full(len(columns), len(columns)) for columns, _ in self._planes]
        parts = [np.stack([columns, values, n]) for (columns, values), n in zip(self._planes, lengths, strict=True)]
        return np.concatenate(parts, axis=1) if parts else np.zeros((3, 0))

    @joined.setter
    def joined(self, array):
        self._planes, start = [], 0
        while start < array.shape[1]:
            stop = start + int(array[2, start])
            self._planes.append((array[0, start:stop].astype(np.uint32), array[1, start:stop].copy()))
            start = stop

    def add(self, plane, c=None):
        """Store a plane; return its inner products with all planes, the last one with itself."""
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
        """Return None, since the scores of Σ weights_k a_k need a pass over the rows."""
        return

    def keep(self, kept):
        """Remove all planes but those where the mask is true."""
        self._planes = [self._planes[k] for k in np.flatnonzero(kept)]


@compiled
def _dot(columns, values, dense):
    """Return the inner product of a sparse plane and a dense vector."""
    total = 0.0
    for k in range(columns.size):
        total += values[k] * dense[columns[k]]
    return total


@compiled
def _add(columns, values, weight, total):
    """Add weight times a sparse plane to total."""
    for k in range(columns.size):
        total[columns[k]] += weight * values[k]
