"""Columns of a sparse matrix that hold entries, so that empty columns can be removed from very wide matrices.

A single index of 10⁸ makes a matrix of so many columns, and every weight vector would take 800 MB. A bit set with one
bit per column records which columns hold an entry. The number of bits set before each 64-bit word gives the new number
of a column. This takes 19 MB for 10⁸ columns, and two passes over the indices.
"""

import numpy as np
from scipy.sparse import csr_array, issparse

from widemargin._runtime.compile import compiled

WIDE = 1 << 22  # columns from which on empty ones are looked for; with fewer, a weight vector takes at most 32 MB
_COLUMNS_PER_OCCURRING = 4  # empty columns are removed if there are at least so many times more columns than occur
_BITS_PER_WORD = 64
_BIT_COUNT_MASKS = np.array([0x5555555555555555, 0x3333333333333333, 0x0F0F0F0F0F0F0F0F], dtype=np.uint64)


def occurring_columns(X):
    """Return the columns of a CSR matrix that hold an entry, if there are far fewer of them than columns.

    Parameters
    ----------
    X : csr matrix
        With a valid structure, in canonical format.

    Returns
    -------
    columns : ndarray of int64, or None
        Ascending. None if X has fewer than `WIDE` columns, or fewer than four times as many as occur.
    indices : ndarray of int32, or None
        For each entry, the position of its column in `columns`.
    """
    if X.shape[1] < WIDE:
        return None, None
    indices = np.ascontiguousarray(X.indices[: X.indptr[-1]].astype(np.int32, copy=False)).view(np.uint32)
    n_words = -(-X.shape[1] // _BITS_PER_WORD)
    words, before = np.zeros(n_words, np.uint64), np.empty(n_words, np.uint32)
    _set_bits(indices, words)
    n_occurring = _count_before(words, _BIT_COUNT_MASKS, before)
    if _COLUMNS_PER_OCCURRING * n_occurring > X.shape[1]:
        return None, None
    columns, places = np.zeros(max(1, n_occurring), np.int64), np.empty(len(indices), np.int32)
    _list_bits(words, columns)  # if no column occurs, the first one is kept
    _renumber(indices, words, before, _BIT_COUNT_MASKS, places)
    return columns, places


def at_columns(X, columns):
    """Return X[:, columns] of a CSR matrix, for ascending columns; the memory does not depend on the width of X."""
    n_stored = X.indptr[-1]
    indices, data = X.indices[:n_stored], X.data[:n_stored]
    places = np.searchsorted(columns, indices)
    kept = np.zeros(n_stored, dtype=bool)
    inside = places < len(columns)
    kept[inside] = columns[places[inside]] == indices[inside]
    ends = np.concatenate([[0], np.cumsum(kept)])[X.indptr]
    return type(X)((data[kept], places[kept], ends), shape=(X.shape[0], len(columns)))


def wide_products(X, W):
    """Return X W', of shape (n_rows, n_outputs), for a wide CSR matrix; only weights of columns of X are read."""
    if issparse(W):
        W = csr_array(W)
        columns = np.unique(W.indices)
        return np.asarray((at_columns(X, columns) @ at_columns(W, columns).T).todense())
    return np.stack([X @ w for w in W], axis=1)  # a single product would copy W


@compiled
def _set_bits(indices, words):
    """Set the bit of every index."""
    for k in range(indices.size):
        words[indices[k] >> np.uint32(6)] |= np.uint64(1) << np.uint64(indices[k] & np.uint32(63))


@compiled
def _count_bits(word, masks):
    """Return the number of bits set in a word, by adding bits, then pairs, then groups of four, and so on."""
    word = (word & masks[0]) + ((word >> np.uint64(1)) & masks[0])
    word = (word & masks[1]) + ((word >> np.uint64(2)) & masks[1])
    word = (word & masks[2]) + ((word >> np.uint64(4)) & masks[2])
    word += word >> np.uint64(8)
    word += word >> np.uint64(16)
    word += word >> np.uint64(32)
    return word & np.uint64(127)


@compiled
def _count_before(words, masks, before):
    """Set before[k] to the number of bits set in the words before k; return the number of all bits set."""
    total = np.uint64(0)
    for k in range(words.size):
        before[k] = total
        if words[k] != np.uint64(0):
            total += _count_bits(words[k], masks)
    return np.int64(total)


@compiled
def _list_bits(words, columns):
    """Set columns to the numbers of the bits that are set, ascending."""
    n = 0
    for k in range(words.size):
        if words[k] != np.uint64(0):
            for b in range(64):
                if words[k] >> np.uint64(b) & np.uint64(1) != np.uint64(0):
                    columns[n] = 64 * k + b
                    n += 1


@compiled
def _renumber(indices, words, before, masks, places):
    """Set places[k] to the number of bits set before the bit of indices[k]."""
    for k in range(indices.size):
        here = indices[k] >> np.uint32(6)
        lower = (np.uint64(1) << np.uint64(indices[k] & np.uint32(63))) - np.uint64(1)
        places[k] = np.int64(before[here]) + np.int64(_count_bits(words[here] & lower, masks))


def scales_differ(X, times=10.0):
    """Return whether the scales of columns differ by more than a factor, in largest value and in root mean square.

    Parameters
    ----------
    X : ndarray or CSR matrix
    times : float, default=10
        The factor.
    """
    if issparse(X):
        data = np.abs(X.data[: X.indptr[-1]], dtype=np.float64)
        columns, place = np.unique(X.indices[: X.indptr[-1]], return_inverse=True)
        squares, largest = np.bincount(place, data**2), np.zeros(len(columns))
        np.maximum.at(largest, place, data)
    else:
        squares = np.einsum("ij,ij->j", X, X, dtype=np.float64)
        largest = np.maximum(X.max(axis=0).astype(np.float64), -X.min(axis=0).astype(np.float64))
    return _ratio(squares) > times**2 and _ratio(largest) > times


def _ratio(numbers):
    numbers = numbers[numbers > 0.0]
    return numbers.max() / numbers.min() if len(numbers) else 1.0
