"""Sorting of many scores, again and again.

Large arrays are sorted by a radix sort of their values in single precision, 11 bits at a time, followed by an insertion
sort in double precision (half a million scores take 0.4 of the time of NumPy's argsort). If the insertion sort needs
too many moves, for instance because all scores are equal in single precision, NumPy's argsort is used instead.
"""

import numpy as np

from widemargin._runtime.compile import compiled, prefetch

_MIN_RADIX_SCORES = 1 << 14  # fewer scores are sorted by NumPy
_DIGIT_BITS, _N_DIGITS = 11, 3
_POSITION_BITS = 32  # the low bits of a key; the high bits are the digits of the score
_MAX_MOVES_PER_SCORE = 4  # of the insertion sort
_PREFETCH_DISTANCE = 24  # scores
SORTER_VECTORS = 5  # of eight bytes per score, that a Sorter takes: order, scores, keys twice, and NumPy's order


class Sorter:
    """Sorts arrays of n scores in memory that is allocated once."""

    def __init__(self, n):
        self._order, self._sorted = np.empty(n, np.int64), np.empty(n)
        self._keys = np.empty((2, n if n >= _MIN_RADIX_SCORES else 0), np.uint64)

    def sort(self, s):
        """Return (order, s[order]) with ascending s[order]; both arrays are valid until the next call."""
        if len(s) < _MIN_RADIX_SCORES or not self._radix_sort(s):
            self._order = np.argsort(s)
            np.take(s, self._order, out=self._sorted)
        return self._order, self._sorted

    def _radix_sort(self, s):
        """Set the order and the sorted scores; return False if the insertion sort was given up."""
        keys, buffer = self._keys
        counts = np.zeros((_N_DIGITS, 1 << _DIGIT_BITS), np.int64)
        with np.errstate(over="ignore"):
            single = s.astype(np.float32)
        _make_keys(single.view(np.uint32), keys, counts)
        for digit in range(_N_DIGITS):
            _distribute(keys, _POSITION_BITS + _DIGIT_BITS * digit, counts[digit], buffer)
            keys, buffer = buffer, keys
        return _insertion_sort(s, keys, self._order, self._sorted, _MAX_MOVES_PER_SCORE * len(s))


@compiled
def _make_keys(bits, keys, counts):
    """Set keys that ascend with the single precision numbers of the given bits, and count the values of each digit.

    The position of a number is in the low bits of its key.
    """
    for i in range(bits.size):
        ascending_bits = ~bits[i] if bits[i] >> np.uint32(31) else bits[i] | np.uint32(1 << 31)
        key = np.uint64(ascending_bits) << np.uint64(_POSITION_BITS)
        keys[i] = key | np.uint64(i)
        for digit in range(_N_DIGITS):
            shift = np.uint64(_POSITION_BITS + _DIGIT_BITS * digit)
            counts[digit, (key >> shift) & np.uint64((1 << _DIGIT_BITS) - 1)] += 1


@compiled
def _distribute(keys, shift, counts, sorted_keys):
    """Sort the keys by the digit at bit `shift`, stably; `counts` is overwritten."""
    place = 0
    for digit in range(counts.size):
        place += counts[digit]
        counts[digit] = place - counts[digit]
    for i in range(keys.size):
        digit = (keys[i] >> np.uint64(shift)) & np.uint64((1 << _DIGIT_BITS) - 1)
        sorted_keys[np.uint64(counts[digit])] = keys[i]
        counts[digit] += 1


@compiled
def _insertion_sort(s, keys, order, sorted_s, max_moves):
    """Set the order of the scores and the sorted scores, from keys that are almost in order.

    Returns whether `max_moves` moves were enough.
    """
    moves, position_mask = 0, np.uint64((1 << _POSITION_BITS) - 1)
    for p in range(keys.size):
        prefetch(s, keys[min(p + _PREFETCH_DISTANCE, keys.size - 1)] & position_mask)
        row = np.int64(keys[p] & position_mask)
        value, place = s[np.uint64(row)], p
        while place > 0 and sorted_s[place - 1] > value:
            order[place], sorted_s[place] = order[place - 1], sorted_s[place - 1]
            place -= 1
            moves += 1
        order[place], sorted_s[place] = row, value
        if moves > max_moves:
            return False
    return True
