"""The columns of a sparse matrix that occur: a matrix far wider than that is worked on without the others.

A single index of 10⁸ makes a matrix of as many columns; vectors of weights over all of them would take 800 MB each. A
set of bits, one per column, tells which of them hold an entry, and a count of the bits before each word the place of a
column among those: 19 MB for 10⁸ columns, and two passes over the indices.
"""

import numpy as np
from scipy.sparse import csr_array, issparse

from widemargin._runtime.compile import compiled

WIDE = 1 << 22  # columns from which on it is looked whether they occur: below, a vector over all takes 32 MB at most
_FACTOR = 4  # how many times more columns there must be than occur
_WORD = 64
_NIBBLES = np.array([0x5555555555555555, 0x3333333333333333, 0x0F0F0F0F0F0F0F0F], dtype=np.uint64)


def occurring_columns(X):
    """Return the columns of a CSR matrix that hold an entry, ascending, if it is much wider than they are many.

    Parameters
    ----------
    X : csr matrix
        Sound, in canonical format.

    Returns
    -------
    columns : ndarray of int64, or None
        None if X has fewer than `WIDE` columns, or fewer than four times as many as occur.
    indices : ndarray of int32, or None
        For each entry, the place of its column among those.
    """
    if X.shape[1] < WIDE:
        return None, None
    indices = np.ascontiguousarray(X.indices[: X.indptr[-1]].astype(np.int32, copy=False)).view(np.uint32)
    n_words = -(-X.shape[1] // _WORD)
    words, before = np.zeros(n_words, np.uint64), np.empty(n_words, np.uint32)
    _mark(indices, words)
    n_occurring = _count(words, _NIBBLES, before)
    if _FACTOR * n_occurring > X.shape[1]:
        return None, None
    columns, places = np.zeros(max(1, n_occurring), np.int64), np.empty(len(indices), np.int32)
    _list(words, columns)  # if none occurs, the first stands for them
    _renumber(indices, words, before, _NIBBLES, places)
    return columns, places


def at_columns(X, columns):
    """Return a CSR matrix of some columns of another, given in ascending order; memory does not depend on its width."""
    n_stored = X.indptr[-1]
    indices, data = X.indices[:n_stored], X.data[:n_stored]
    places = np.searchsorted(columns, indices)
    kept = np.zeros(n_stored, dtype=bool)
    inside = places < len(columns)
    kept[inside] = columns[places[inside]] == indices[inside]
    ends = np.concatenate([[0], np.cumsum(kept)])[X.indptr]
    return type(X)((data[kept], places[kept], ends), shape=(X.shape[0], len(columns)))


def wide_products(X, W):
    """Return X W' of a wide CSR matrix: (n_rows, n_outputs). Only weights of columns that occur in X are looked at."""
    if issparse(W):
        W = csr_array(W)
        columns = np.unique(W.indices)
        return np.asarray((at_columns(X, columns) @ at_columns(W, columns).T).todense())
    return np.stack([X @ w for w in W], axis=1)  # a product with all at once would copy them


@compiled
def _mark(indices, words):
    """Set the bit of every index."""
    for k in range(indices.size):
        words[indices[k] >> np.uint32(6)] |= np.uint64(1) << np.uint64(indices[k] & np.uint32(63))


@compiled
def _ones(word, nibbles):
    """Return the number of bits of a word that are set: sums of neighbours, of pairs, of fours, and so on."""
    word = (word & nibbles[0]) + ((word >> np.uint64(1)) & nibbles[0])
    word = (word & nibbles[1]) + ((word >> np.uint64(2)) & nibbles[1])
    word = (word & nibbles[2]) + ((word >> np.uint64(4)) & nibbles[2])
    word += word >> np.uint64(8)
    word += word >> np.uint64(16)
    word += word >> np.uint64(32)
    return word & np.uint64(127)


@compiled
def _count(words, nibbles, before):
    """Set before[k] to the number of bits set in the words before k; return that of all."""
    total = np.uint64(0)
    for k in range(words.size):
        before[k] = total
        if words[k] != np.uint64(0):
            total += _ones(words[k], nibbles)
    return np.int64(total)


@compiled
def _list(words, columns):
    """Set columns to the numbers of the bits that are set, ascending."""
    n = 0
    for k in range(words.size):
        if words[k] != np.uint64(0):
            for b in range(64):
                if words[k] >> np.uint64(b) & np.uint64(1) != np.uint64(0):
                    columns[n] = 64 * k + b
                    n += 1


@compiled
def _renumber(indices, words, before, nibbles, places):
    """Set places[k] to how many bits are set before that of indices[k]."""
    for k in range(indices.size):
        here = indices[k] >> np.uint32(6)
        lower = (np.uint64(1) << np.uint64(indices[k] & np.uint32(63))) - np.uint64(1)
        places[k] = np.int64(before[here]) + np.int64(_ones(words[here] & lower, nibbles))


def scales_differ(X, times=10.0):
    """Return whether columns differ in scale: by more than `times`, in their largest entries and in their mean squares.

    Parameters
    ----------
    X : ndarray or CSR matrix
    times : float, default=10
    """
    if issparse(X):
        data = np.abs(X.data[: X.indptr[-1]], dtype=np.float64)
        columns, place = np.unique(X.indices[: X.indptr[-1]], return_inverse=True)
        squares, largest = np.bincount(place, data**2), np.zeros(len(columns))
        np.maximum.at(largest, place, data)
    else:
        squares = np.einsum("ij,ij->j", X, X, dtype=np.float64)
        largest = np.maximum(X.max(axis=0), -X.min(axis=0)).astype(np.float64)
    return all(_ratio(numbers) > most for numbers, most in ((squares, times**2), (largest, times)))


def _ratio(numbers):
    numbers = numbers[numbers > 0.0]
    return numbers.max() / numbers.min() if len(numbers) else 1.0
