"""The planes of a cutting plane method as vectors: a line of an array each, or sparse where that is smaller.

The first plane is taken where every row counts, so it has the most values of all: it decides. An array of m planes has
8 m d bytes (up to twice that while it grows); sparse planes 12 bytes for each value.
"""

import numpy as np

from widemargin._compiled import compiled

_FEW = 16
_SPARSE_BELOW = 0.5  # fraction of values other than zero
_NEVER_SPARSE = 1 << 12  # columns: products of short lines are fastest as a matrix


def planes_like(first):
    """Return an empty store that suits planes like this one."""
    is_sparse = len(first) > _NEVER_SPARSE and np.count_nonzero(first) < _SPARSE_BELOW * len(first)
    return SparsePlanes(len(first)) if is_sparse else DensePlanes(len(first))


class DensePlanes:
    """Planes as lines of one array."""

    def __init__(self, n_columns):
        self._lines, self._n = np.empty((_FEW, n_columns)), 0

    def add(self, plane):
        """Keep a plane; return its inner products with all planes, its own last."""
        if self._n == len(self._lines):
            lines = np.empty((2 * self._n, self._lines.shape[1]))
            lines[: self._n] = self._lines
            self._lines = lines
        self._lines[self._n] = plane
        self._n += 1
        return self._lines[: self._n] @ plane

    def combine(self, weights):
        """Return Σ weights_k a_k."""
        chosen = np.flatnonzero(weights)
        if 2 * len(chosen) > self._n:
            return weights @ self._lines[: self._n]
        return weights[chosen] @ self._lines[chosen]

    def keep(self, kept):
        """Forget all planes but these (a mask)."""
        chosen = np.flatnonzero(kept)
        self._lines[: len(chosen)] = self._lines[chosen]
        self._n = len(chosen)


class SparsePlanes:
    """Planes as lists of columns and values."""

    def __init__(self, n_columns):
        self._n_columns, self._planes = n_columns, []

    def add(self, plane):
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
