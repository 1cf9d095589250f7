"""Rows that are equal, byte by byte."""

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy.sparse import issparse

from widemargin.data.blocks.row_blocks import RowBlocks

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # 2⁶⁴ divided by the golden ratio, odd


class Copies(NamedTuple):
    """For each row, the number of the first row that is equal to it, and whether any other row is."""

    number: np.ndarray
    is_repeated: np.ndarray


def first_copies(X):
    """Return the Copies of rows; None if all rows are different.

    Rows of Python objects, which a callable kernel may have, count as different. Rows in memory whose hash no other row
    has are different; the others are compared in full.
    """
    if not isinstance(X, RowBlocks) and X.dtype == object:
        return None
    first, found = np.arange(X.shape[0]), {}
    suspects = first if isinstance(X, RowBlocks) else _suspects(X)
    if not len(suspects):
        return None
    contents = _contents(X if isinstance(X, RowBlocks) else X[suspects])
    first[suspects] = [found.setdefault(content, i) for i, content in zip(suspects.tolist(), contents, strict=True)]
    return None if len(found) == len(suspects) else Copies(first, np.bincount(first, minlength=len(first))[first] > 1)


def _suspects(X):
    """Return the numbers of the rows that have the hash of another row, ascending."""
    hashes = _hashes_of_sparse(X) if issparse(X) else _hashes_of_array(X)
    order = np.argsort(hashes, kind="stable")
    ordered = hashes[order]
    is_same = ordered[1:] == ordered[:-1]
    if not is_same.any():
        return order[:0]
    return np.sort(order[np.append(is_same, False) | np.append(False, is_same)])


def _words(values):
    """Return the bits of numbers as uint64, the upper ones mixed into the lower ones."""
    values = np.ascontiguousarray(values)
    words = values.view(f"u{values.itemsize}").astype(np.uint64)
    words ^= words >> np.uint64(32)
    return words


def _hashes_of_array(X):
    """Return Σ_j factor_j word_j modulo 2⁶⁴ of each row, with odd factors."""
    return _words(X) @ _factors(np.arange(X.shape[1], dtype=np.uint64))


def _factors(numbers):
    """Return an odd factor for each number."""
    factors = (numbers + np.uint64(1)) * _GOLDEN
    factors ^= factors >> np.uint64(31)
    return (factors * _GOLDEN) | np.uint64(1)


def _hashes_of_sparse(X):
    """Return the sum modulo 2⁶⁴ of the hashes of the stored values and their places of each row."""
    words = (_words(X.data) + np.uint64(1)) * _factors(X.indices.astype(np.uint64))
    words ^= words >> np.uint64(29)
    sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(words)])
    return sums[X.indptr[1:]] - sums[X.indptr[:-1]]


def _contents(X):
    """Yield the numbers of each row as bytes."""
    if isinstance(X, RowBlocks):
        for part, _ in X:
            yield from _contents(part)
        return
    if issparse(X):
        for begin, end in pairwise(X.indptr.tolist()):
            yield X.indices[begin:end].tobytes() + X.data[begin:end].tobytes()
        return
    content, width = memoryview(np.ascontiguousarray(X).reshape(-1).view(np.uint8)), X.nbytes // len(X)
    for i in range(len(X)):
        yield content[i * width : (i + 1) * width].tobytes()
