"""The order of rows by random keys of 64 bits, by a radix sort; rows with equal keys stay in the order of arrival.

A word of 64 bits holds the leading bits of a key, without those that all keys share, and the number of its row. Words
are sorted by their first 24 bits in three passes, each of which divides them by 8 bits. Keys are random, so that this
leaves words close to their place; they are moved there by insertion. Where the bits of keys in two words are equal, the
whole keys decide. For a million rows this takes a tenth of the time of a comparison sort.
"""

import numpy as np

from widemargin._runtime.compile import compiled

_BITS_PER_PASS, _N_PASSES = 8, 3
_KEY_BITS = 64


def order_of(keys):
    """Return the row numbers in ascending order of their keys (uint64), as int64; the sort is stable."""
    n_rows = len(keys)
    row_bits = max(n_rows - 1, 0).bit_length()
    words = np.arange(n_rows, dtype=np.uint64)
    n_shared = _KEY_BITS - int(keys.min() ^ keys.max()).bit_length() if n_rows else _KEY_BITS
    if n_shared == _KEY_BITS:
        return words.view(np.int64)
    row_mask = np.uint64((1 << row_bits) - 1)
    _add_keys(keys, np.uint64(n_shared), row_mask, words)
    other, places = np.empty_like(words), np.empty(1 << _BITS_PER_PASS, np.int64)
    for number in range(_N_PASSES, 0, -1):
        _divide_words(words, np.uint64(_KEY_BITS - number * _BITS_PER_PASS), places, other)
        words, other = other, words
    _settle_words(words)
    _settle_keys(keys, row_mask, words)
    return words.view(np.int64)


@compiled
def _add_keys(keys, n_shared, row_mask, words):
    """Set the bits of words, which are row numbers, above those of row numbers to the leading bits of keys."""
    for i in range(len(keys)):
        words[i] |= (keys[i] << n_shared) & ~row_mask


@compiled
def _divide_words(words, shift, places, divided):
    """Set `divided` to the words, sorted by the bits from `shift` on; those with equal bits stay in order."""
    mask = np.uint64(len(places) - 1)
    places[:] = 0
    for i in range(len(words)):
        places[(words[i] >> shift) & mask] += 1
    total = 0
    for k in range(len(places)):
        count = places[k]
        places[k] = total
        total += count
    for i in range(len(words)):
        group = (words[i] >> shift) & mask
        divided[places[group]] = words[i]
        places[group] += 1


@compiled
def _settle_words(words):
    """Sort words that are close to their place, by insertion."""
    for i in range(1, len(words)):
        word, place = words[i], i
        while place > 0 and words[place - 1] > word:
            words[place] = words[place - 1]
            place -= 1
        words[place] = word


@compiled
def _settle_keys(keys, row_mask, words):
    """Sort neighbouring words that have the same bits of a key by the whole keys, and set all words to their rows."""
    for i in range(1, len(words)):
        word, place = words[i], i
        while (
            place > 0
            and (words[place - 1] ^ word) <= row_mask
            and keys[words[place - 1] & row_mask] > keys[word & row_mask]
        ):
            words[place] = words[place - 1]
            place -= 1
        words[place] = word
    for i in range(len(words)):
        words[i] &= row_mask
