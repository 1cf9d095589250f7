"""Rows in the order of their scores.

Many scores are sorted by the bits of their single precision values, eleven at a time, and then put right by insertion
(measured, half a million: 0.4 of the time of NumPy's argsort). Where that is too much to put right, as if all scores
have the same single precision value, NumPy sorts.
"""

import numpy as np

from widemargin._runtime.compile import compiled, prefetch

_BY_NUMPY = 1 << 14  # fewer scores than this
_DIGIT, _LOW_BITS = 11, 32
_MOVES_PER_SCORE = 4
_AHEAD = 24  # keys: when a score is fetched


class Sorter:
    """Sorts n scores, in memory that is used again and again."""

    def __init__(self, n):
        self._order, self._sorted = np.empty(n, np.int64), np.empty(n)
        self._keys = np.empty((2, n if n >= _BY_NUMPY else 0), np.uint64)

    def sort(self, s):
        """Return the positions of the scores in ascending order, and the scores in it; valid until the next call."""
        if len(s) < _BY_NUMPY or not self._by_digits(s):
            self._order = np.argsort(s)
            np.take(s, self._order, out=self._sorted)
        return self._order, self._sorted

    def _by_digits(self, s):
        """Set the order and the sorted scores; return whether that went well."""
        keys, buffer = self._keys
        counts = np.zeros((3, 1 << _DIGIT), np.int64)
        with np.errstate(over="ignore"):
            single = s.astype(np.float32)
        _make_keys(single.view(np.uint32), keys, counts)
        for digit in range(3):
            _distribute(keys, _LOW_BITS + _DIGIT * digit, counts[digit], buffer)
            keys, buffer = buffer, keys
        return _put_right(s, keys, self._order, self._sorted, _MOVES_PER_SCORE * len(s))


@compiled
def _make_keys(bits, keys, counts):
    """Set keys that ascend with the numbers whose bits are given, positions in their low halves; count all digits."""
    for i in range(bits.size):
        flipped = ~bits[i] if bits[i] >> np.uint32(31) else bits[i] | np.uint32(1 << 31)
        key = np.uint64(flipped) << np.uint64(_LOW_BITS)
        keys[i] = key | np.uint64(i)
        for digit in range(3):
            counts[digit, (key >> np.uint64(_LOW_BITS + _DIGIT * digit)) & np.uint64((1 << _DIGIT) - 1)] += 1


@compiled
def _distribute(keys, shift, counts, sorted_keys):
    """Move the keys to their places by one digit, keys of the same digit in the order they come in."""
    place = 0
    for digit in range(counts.size):
        place += counts[digit]
        counts[digit] = place - counts[digit]
    for i in range(keys.size):
        digit = (keys[i] >> np.uint64(shift)) & np.uint64((1 << _DIGIT) - 1)
        sorted_keys[np.uint64(counts[digit])] = keys[i]
        counts[digit] += 1


@compiled
def _put_right(s, keys, order, sorted_s, most):
    """Set the positions in the keys and their scores, sorted by insertion; return whether most moves were enough."""
    moves, low_bits = 0, np.uint64((1 << _LOW_BITS) - 1)
    for p in range(keys.size):
        prefetch(s, keys[min(p + _AHEAD, keys.size - 1)] & low_bits)
        row = np.int64(keys[p] & low_bits)
        value, place = s[np.uint64(row)], p
        while place > 0 and sorted_s[place - 1] > value:
            order[place], sorted_s[place] = order[place - 1], sorted_s[place - 1]
            place -= 1
            moves += 1
        order[place], sorted_s[place] = row, value
        if moves > most:
            return False
    return True
