"""Rows that occur more than once, found by a 64-bit hash of each row; rows with equal hashes are compared in full.

Two rows are equal if their values are equal, whether zeros are stored or not, and if their queries are equal.
"""

from dataclasses import dataclass

import numpy as np

from widemargin._runtime.compile import compiled

# The constants of the generator splitmix64 (Steele, Lea and Flood, OOPSLA 2014), whose mixing function hashes a word.
_FIRST_FACTOR, _SECOND_FACTOR = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_INCREMENT = np.uint64(0x9E3779B97F4A7C15)
_U1, _U27, _U30, _U31 = (np.uint64(number) for number in (1, 27, 30, 31))


@dataclass(frozen=True)
class Repeats:
    """Rows that occur more than once.

    Attributes
    ----------
    n_repeats : int
        Number of rows that are equal to an earlier row and have the same label.
    first : tuple of int or None
        Lines of the first such pair: (earlier row, row).
    n_conflicts : int
        Number of rows that are equal to a row with another label.
    first_conflict : tuple of int or None
        Lines of the first two such rows.
    """

    n_repeats: int
    first: tuple | None
    n_conflicts: int
    first_conflict: tuple | None


def find_repeats(rows, y, qid, lines):
    """Find the rows that occur more than once.

    Parameters
    ----------
    rows : SparseRows
        Rows of float64 in canonical form.
    y, qid, lines : arrays of shape (n_rows,)
        Labels, queries (or None), and line numbers of the rows.

    Returns
    -------
    repeats : Repeats
    """
    queries = np.zeros(len(y), np.int64) if qid is None else np.asarray(qid, dtype=np.int64)
    original = _originals(rows, queries)
    repeated = np.flatnonzero(original != np.arange(len(y)))
    if len(repeated) == 0:
        return Repeats(0, None, 0, None)
    members = np.union1d(repeated, original[repeated])
    group, label = original[members], y[members]
    order = np.lexsort((members, label, group))
    same_group = group[order[1:]] == group[order[:-1]]
    same_label = label[order[1:]] == label[order[:-1]]
    is_repeat, conflicting = same_group & same_label, np.unique(group[order[1:]][same_group & ~same_label])
    return Repeats(
        n_repeats=int(is_repeat.sum()),
        first=_first_pair(members[order[:-1]][is_repeat], members[order[1:]][is_repeat], lines),
        n_conflicts=int(np.isin(group, conflicting).sum()),
        first_conflict=_first_conflict(members, group, label, conflicting, lines),
    )


def _originals(rows, queries):
    """Return for each row the index of the first row that is equal to it, which may be the row itself."""
    hashes, original = np.empty(len(queries), np.uint64), np.empty(len(queries), np.int64)
    with np.errstate(over="ignore"):  # integer overflow is intended here; uncompiled code would warn of it
        _hash_rows(rows.data, rows.indices, rows.indptr, queries, hashes)
    order = np.argsort(hashes, kind="stable")
    _match_rows(rows.data, rows.indices, rows.indptr, queries, hashes, order, original)
    return original


def _first_pair(earlier, later, lines):
    """Return the lines of the pair whose second row comes first in the file, or None if there are no pairs."""
    if len(later) == 0:
        return None
    k = np.argmin(later)
    return int(lines[earlier[k]]), int(lines[later[k]])


def _first_conflict(members, group, label, conflicting, lines):
    """Return the lines of the first row with a conflict, and of the next equal row with another label, or None."""
    if len(conflicting) == 0:
        return None
    rows, labels = members[group == conflicting[0]], label[group == conflicting[0]]
    return int(lines[rows[0]]), int(lines[rows[np.argmax(labels != labels[0])]])


@compiled
def _mix(word):
    """Return a hash of a 64-bit word."""
    word = (word ^ (word >> _U30)) * _FIRST_FACTOR
    word = (word ^ (word >> _U27)) * _SECOND_FACTOR
    return word ^ (word >> _U31)


@compiled
def _hash_rows(data, indices, indptr, queries, hashes):
    """Set the hash of each row: the sum of the hashes of its query and of its nonzero entries."""
    for i in range(hashes.size):
        total = _mix(np.uint64(queries[i]))
        for k in range(indptr[i], indptr[i + 1]):
            if data[k] != 0.0:
                place = (np.uint64(indices[k]) + _U1) * _INCREMENT
                total += _mix(_mix(np.float64(data[k]).view(np.uint64)) ^ place)
        hashes[i] = total


@compiled
def _match_rows(data, indices, indptr, queries, hashes, order, original):
    """Set the first row equal to each row; `order` sorts the rows by hash, and rows with equal hashes ascend in it."""
    run = 0
    for k in range(order.size):
        i = order[k]
        if hashes[i] != hashes[order[run]]:
            run = k
        original[i] = i
        for before in range(run, k):
            j = order[before]
            if original[j] == j and queries[i] == queries[j] and _are_equal(data, indices, indptr, i, j):
                original[i] = j
                break


@compiled
def _are_equal(data, indices, indptr, i, j):
    """Return whether two rows have the same nonzero entries."""
    a, last_a = np.uint64(indptr[i]), np.uint64(indptr[i + 1])
    b, last_b = np.uint64(indptr[j]), np.uint64(indptr[j + 1])
    while True:
        while a < last_a and data[a] == 0.0:
            a += _U1
        while b < last_b and data[b] == 0.0:
            b += _U1
        if a == last_a or b == last_b:
            return a == last_a and b == last_b
        if indices[a] != indices[b] or data[a] != data[b]:
            return False
        a += _U1
        b += _U1
