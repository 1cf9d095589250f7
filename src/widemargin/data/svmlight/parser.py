"""Rows of SVM-light text, in compiled code: `label [qid:query] index:value ... [# comment]`.

A chunk of text that ends with a newline is read twice. Counting newlines and colons bounds the rows and the
entries it can hold, so that the caller allocates once and every chunk writes to its own place; parsing then
fills the place. The parser knows only right from wrong: at a row that breaks a rule it stops and says where
the row starts, and `textmistakes` explains it. Nothing is read past the newline that ends the chunk.
"""

from typing import NamedTuple

import numpy as np

from widemargin._runtime.compile import compiled
from widemargin.data.svmlight.numbers import MALFORMED, TENS, UNDECIDED, read_digits, read_number

N_ROWS, N_ENTRIES, N_UNDECIDED, SMALLEST_INDEX, LARGEST_INDEX, FAILED_AT = range(6)
"""Places in the tally of a chunk; FAILED_AT is the position of the first row that breaks a rule, or -1."""

_NEWLINE, _RETURN, _TAB, _SPACE, _HASH = (np.uint8(ord(sign)) for sign in "\n\r\t #")
_COLON, _PLUS, _MINUS, _POINT = (np.uint8(ord(sign)) for sign in ":+-.")
_Q, _I, _D = (np.uint8(ord(letter)) for letter in "qid")
_HUGE_INDEX = 2**40
_COUNTED_AT_ONCE = 128  # a byte counts to 255
_LARGEST_QUERY = 2**63 - 1


class Rules(NamedTuple):
    """What a row may hold."""

    lowest_index: int
    highest_index: int
    first_column: int  # the index that becomes column 0
    largest_value: float
    with_queries: bool


class Place(NamedTuple):
    """Where the rows of a chunk go: arrays of its own, long enough by the count of newlines and colons."""

    labels: np.ndarray  # float64
    queries: np.ndarray  # int64, empty without queries
    row_ends: np.ndarray  # int64, entries of the chunk up to and including each row
    indices: np.ndarray  # int32, columns
    values: np.ndarray  # float64 or float32
    undecided: np.ndarray  # int64, (position of a number, its entry or -1 - its row)
    tally: np.ndarray  # int64, see N_ROWS and the others


@compiled
def count_lines(text):
    """Count (newlines, colons) of a text: np.sum(text == newline), np.sum(text == colon)."""
    n_newlines, n_colons = np.intp(0), np.intp(0)
    for block in range(0, len(text), _COUNTED_AT_ONCE):
        newlines, colons = np.uint8(0), np.uint8(0)  # as narrow as the text, so that many fit a register
        for k in range(np.uint64(block), np.uint64(min(block + _COUNTED_AT_ONCE, len(text)))):
            newlines = np.uint8(newlines + np.uint8(text[k] == _NEWLINE))
            colons = np.uint8(colons + np.uint8(text[k] == _COLON))
        n_newlines += newlines
        n_colons += colons
    return n_newlines, n_colons


@compiled
def _skip_blanks(text, position):
    """Return the position of the first byte that is no blank; a carriage return is one before a newline."""
    while True:
        byte = text[np.uint64(position)]
        if byte == _RETURN:
            return position + 1 if text[np.uint64(position + 1)] == _NEWLINE else position
        if byte not in (_SPACE, _TAB):
            return position
        position += 1


@compiled
def _skip_line(text, position):
    """Return the position after the next newline, or -1 at a carriage return that stands alone."""
    while True:
        byte = text[np.uint64(position)]
        if byte == _NEWLINE:
            return position + 1
        if byte == _RETURN and text[np.uint64(position + 1)] != _NEWLINE:
            return np.intp(-1)
        position += 1


@compiled
def _ends_token(byte):
    return byte in (_SPACE, _NEWLINE, _RETURN, _TAB, _HASH)


@compiled
def _read_index(text, position):
    """Read digits: (index, position after them); an index too large for any rule stays too large."""
    index = np.int64(0)
    while True:
        digit = np.int64(text[np.uint64(position)]) - 48
        if digit < 0 or digit > 9:
            return index, position
        if index < _HUGE_INDEX:
            index = index * 10 + digit
        position += 1


@compiled
def _read_query(text, position):
    """Read qid:integer: (query, position after it), or position -1 if it is not one."""
    for letter in (_Q, _I, _D, _COLON):
        if text[np.uint64(position)] != letter:
            return np.int64(0), np.intp(-1)
        position += 1
    sign = text[np.uint64(position)]
    if sign in (_PLUS, _MINUS):
        position += 1
    start = position
    query = np.int64(0)
    while True:
        digit = np.int64(text[np.uint64(position)]) - 48
        if digit < 0 or digit > 9:
            break
        if query > (_LARGEST_QUERY - digit) // 10:
            return query, np.intp(-1)
        query = query * 10 + digit
        position += 1
    if position == start or not _ends_token(text[np.uint64(position)]):
        return query, np.intp(-1)
    return (-query if sign == _MINUS else query), position


@compiled
def _note_undecided(place, position, owner):
    """Put a number on the list for Python's `float`; past the end of the list it is counted all the same."""
    n_undecided = place.tally[N_UNDECIDED]
    if n_undecided < len(place.undecided):
        place.undecided[n_undecided, 0] = position
        place.undecided[n_undecided, 1] = owner
    place.tally[N_UNDECIDED] += 1


@compiled
def _parse_plain_entries(text, position, previous, n_entries, rules, place):
    """Parse entries of up to 10 and 15 digits, as most are: (position of the first other, n_entries)."""
    while True:
        position = _skip_blanks(text, position)
        index, colon = read_digits(text, position, np.int64(0))
        if colon == position or colon - position > 10 or text[np.uint64(colon)] != _COLON:
            return position, n_entries
        first = colon + 1
        sign = text[np.uint64(first)]
        if sign in (_PLUS, _MINUS):
            first += 1
        mantissa, end = read_digits(text, first, np.int64(0))
        n_digits, n_decimals = end - first, np.intp(0)
        if text[np.uint64(end)] == _POINT:
            point = end + 1
            mantissa, end = read_digits(text, point, mantissa)
            n_decimals = end - point
            n_digits += n_decimals
        if n_digits == 0 or n_digits > 15 or not _ends_token(text[np.uint64(end)]):
            return position, n_entries
        if index <= previous or index > rules.highest_index:
            return position, n_entries
        value = np.float64(mantissa)
        if n_decimals > 0:
            value /= TENS[np.uint64(n_decimals)]
        place.values[np.uint64(n_entries)] = -value if sign == _MINUS else value
        place.indices[np.uint64(n_entries)] = index - rules.first_column
        previous, position = index, end
        n_entries += 1


@compiled
def _parse_entry(text, position, previous, entry, rules, place):
    """Parse an entry of any form into `place`; return the position after it, or -1."""
    index, colon = _read_index(text, position)
    if colon == position or text[np.uint64(colon)] != _COLON:
        return np.intp(-1)
    if index <= previous or index > rules.highest_index:
        return np.intp(-1)
    value, end, verdict = read_number(text, colon + 1)
    if verdict == MALFORMED or not _ends_token(text[np.uint64(end)]) or abs(value) > rules.largest_value:
        return np.intp(-1)
    if verdict == UNDECIDED:
        _note_undecided(place, colon + 1, entry)
    place.values[entry] = value
    place.indices[entry] = index - rules.first_column
    return end


@compiled
def _parse_entries(text, position, first, rules, place):
    """Parse the entries of a row: (position of the newline or comment after them or -1, n_entries)."""
    n_entries, previous = first, np.int64(rules.lowest_index - 1)
    while True:
        if n_entries > first:
            previous = np.int64(place.indices[n_entries - 1]) + rules.first_column
        position, n_plain = _parse_plain_entries(text, position, previous, n_entries, rules, place)
        if text[np.uint64(position)] in (_NEWLINE, _HASH):
            return position, n_plain
        if n_plain > n_entries:
            previous = np.int64(place.indices[n_plain - 1]) + rules.first_column
        position = _parse_entry(text, position, previous, n_plain, rules, place)
        if position < 0:
            return position, n_plain
        n_entries = n_plain + 1


@compiled
def _parse_head(text, start, row, rules, place):
    """Parse label and query of a row into `place`; return the position after them, or -1."""
    label, position, verdict = read_number(text, start)
    if verdict == MALFORMED or not _ends_token(text[np.uint64(position)]):
        return np.intp(-1)
    if verdict == UNDECIDED:
        _note_undecided(place, start, -1 - row)
    place.labels[row] = label
    if rules.with_queries:
        query, position = _read_query(text, _skip_blanks(text, position))
        place.queries[row] = query
    return position


@compiled
def parse_rows(text, rules, place):
    """Fill `place` with the rows of a text that ends with a newline; the tally says how far it came."""
    tally = place.tally
    tally[:] = 0
    tally[FAILED_AT] = -1
    smallest, largest = np.int64(_HUGE_INDEX), np.int64(-1)
    n_rows, n_entries, line = np.int64(0), np.int64(0), np.intp(0)
    while line < len(text):
        position = _skip_blanks(text, line)
        if text[np.uint64(position)] not in (_NEWLINE, _HASH):
            first = n_entries
            position = _parse_head(text, position, n_rows, rules, place)
            if position >= 0:
                position, n_entries = _parse_entries(text, position, first, rules, place)
            if n_entries > first:  # indices increase, so the ends of the row are its extremes
                smallest = min(smallest, np.int64(place.indices[first]) + rules.first_column)
                largest = max(largest, np.int64(place.indices[n_entries - 1]) + rules.first_column)
            place.row_ends[n_rows] = n_entries
            n_rows += 1
        if position >= 0:
            position = _skip_line(text, position)
        if position < 0:
            tally[FAILED_AT] = line
            break
        line = position
    tally[N_ROWS], tally[N_ENTRIES] = n_rows, n_entries
    tally[SMALLEST_INDEX], tally[LARGEST_INDEX] = smallest, largest


@compiled
def parse_good_rows(text, rules, place, good, refused):
    """Fill `place` with the rows that break no rule; list (start, number) of their lines, and of the lines refused.

    The tally says how many rows, entries and undecided numbers there are. Returns how many lines are refused.
    """
    tally = place.tally
    n_rows, n_entries, n_undecided, n_refused = np.int64(0), np.int64(0), np.int64(0), np.int64(0)
    line, number = np.intp(0), np.int64(0)
    while line < len(text):
        tally[N_UNDECIDED] = n_undecided  # those of a refused row are forgotten
        position, last = _skip_blanks(text, line), n_entries
        is_row = text[np.uint64(position)] not in (_NEWLINE, _HASH)
        if is_row:
            position = _parse_head(text, position, n_rows, rules, place)
            if position >= 0:
                position, last = _parse_entries(text, position, n_entries, rules, place)
        if position >= 0:
            position = _skip_line(text, position)
        if position < 0:
            refused[n_refused, 0], refused[n_refused, 1] = line, number
            n_refused += 1
            position = _next_line(text, line)
        elif is_row:
            n_entries, n_undecided = last, tally[N_UNDECIDED]
            good[n_rows, 0], good[n_rows, 1] = line, number
            place.row_ends[n_rows] = n_entries
            n_rows += 1
        line = position
        number += 1
    tally[N_ROWS], tally[N_ENTRIES], tally[N_UNDECIDED] = n_rows, n_entries, n_undecided
    return n_refused


@compiled
def _next_line(text, position):
    """Return the position after the next newline."""
    while text[np.uint64(position)] != _NEWLINE:
        position += 1
    return position + 1


@compiled
def count_queries(text):
    """Count (rows, rows with qid: after their first word) of a text that ends with a newline."""
    n_rows, n_queries, position = np.int64(0), np.int64(0), np.intp(0)
    while position < len(text):
        position = _skip_blanks(text, position)
        if text[np.uint64(position)] not in (_NEWLINE, _HASH):
            n_rows += 1
            while not _ends_token(text[np.uint64(position)]):
                position += 1
            position = _skip_blanks(text, position)
            n_letters = 0
            for letter in (_Q, _I, _D, _COLON):
                if text[np.uint64(position)] != letter:
                    break
                position += 1
                n_letters += 1
            n_queries += n_letters == 4
        position = _next_line(text, position)
    return n_rows, n_queries
