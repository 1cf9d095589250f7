"""Compiled parser of rows of SVM-light text: `label [qid:query] index:value ... [# comment]`.

A chunk of text, which ends with a newline, is read twice. The first pass counts newlines and colons, which bound the
number of rows and entries. The caller allocates arrays of that size, and the second pass fills them. The parser only
decides whether a row is valid: it stops at the first row that breaks a rule and reports where that row starts;
`mistakes` then finds out which rule is broken. Nothing is read beyond the newline that ends the chunk.
"""

from typing import NamedTuple

import numpy as np

from widemargin._runtime.compile import compiled
from widemargin.data.svmlight.numbers import MALFORMED, TENS, UNDECIDED, read_digits, read_number

N_ROWS, N_ENTRIES, N_UNDECIDED, SMALLEST_INDEX, LARGEST_INDEX, FAILED_AT = range(6)
"""Indices of the array `tally` of a chunk; FAILED_AT holds the position of the first row that breaks a rule, or -1."""

_NEWLINE, _RETURN, _TAB, _SPACE, _HASH = (np.uint8(ord(sign)) for sign in "\n\r\t #")
_COLON, _PLUS, _MINUS, _POINT = (np.uint8(ord(sign)) for sign in ":+-.")
_Q, _I, _D = (np.uint8(ord(letter)) for letter in "qid")
_INDEX_LIMIT = 2**40  # beyond every valid index; further digits are ignored
_BYTES_COUNTED_AT_ONCE = 128  # a counter of one byte holds at most 255
_LARGEST_QUERY = 2**63 - 1


class Rules(NamedTuple):
    """The rules for the rows of a file."""

    lowest_index: int
    highest_index: int
    first_column: int  # the index that becomes column 0
    largest_value: float
    with_queries: bool


class ParserOutput(NamedTuple):
    """Arrays for the rows of a chunk, which `count_lines` shows to be long enough."""

    labels: np.ndarray  # float64
    queries: np.ndarray  # int64, empty without queries
    row_ends: np.ndarray  # int64, number of entries of the chunk up to and including each row
    indices: np.ndarray  # int32, columns
    values: np.ndarray  # float64 or float32
    undecided: np.ndarray  # int64, for each: position of a number; its entry, or -1 - its row if it is a label
    tally: np.ndarray  # int64, indexed by N_ROWS and the following constants


@compiled
def count_lines(text):
    """Return the number of newlines and the number of colons of a text."""
    n_newlines, n_colons = np.intp(0), np.intp(0)
    for block in range(0, len(text), _BYTES_COUNTED_AT_ONCE):
        newlines, colons = np.uint8(0), np.uint8(0)  # one byte each, so that a vector register holds many
        for k in range(np.uint64(block), np.uint64(min(block + _BYTES_COUNTED_AT_ONCE, len(text)))):
            newlines = np.uint8(newlines + np.uint8(text[k] == _NEWLINE))
            colons = np.uint8(colons + np.uint8(text[k] == _COLON))
        n_newlines += newlines
        n_colons += colons
    return n_newlines, n_colons


@compiled
def _skip_blanks(text, position):
    """Return the position of the first byte that is not a blank, tab, or carriage return before a newline."""
    while True:
        byte = text[np.uint64(position)]
        if byte == _RETURN:
            return position + 1 if text[np.uint64(position + 1)] == _NEWLINE else position
        if byte not in (_SPACE, _TAB):
            return position
        position += 1


@compiled
def _skip_line(text, position):
    """Return the position after the next newline, or -1 if there is a carriage return without a newline."""
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
    """Read an index; return (index, position after it). A very long one is cut, but stays larger than any valid one."""
    index = np.int64(0)
    while True:
        digit = np.int64(text[np.uint64(position)]) - 48
        if digit < 0 or digit > 9:
            return index, position
        if index < _INDEX_LIMIT:
            index = index * 10 + digit
        position += 1


@compiled
def _read_query(text, position):
    """Read `qid:integer`; return (query, position after it), where the position is -1 if it is not valid."""
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
def _note_undecided(out, position, owner):
    """List a number to be converted by Python's `float`; if the list is full, it is only counted."""
    n_undecided = out.tally[N_UNDECIDED]
    if n_undecided < len(out.undecided):
        out.undecided[n_undecided, 0] = position
        out.undecided[n_undecided, 1] = owner
    out.tally[N_UNDECIDED] += 1


@compiled
def _parse_plain_entries(text, position, previous, n_entries, rules, out):
    """Parse entries with indices of up to 10 and values of up to 15 digits without exponent, which are the most common.

    Returns (position of the first entry of another form, number of entries).
    """
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
        out.values[np.uint64(n_entries)] = -value if sign == _MINUS else value
        out.indices[np.uint64(n_entries)] = index - rules.first_column
        previous, position = index, end
        n_entries += 1


@compiled
def _parse_entry(text, position, previous, entry, rules, out):
    """Parse an entry of any form; return the position after it, or -1 if it is not valid."""
    index, colon = _read_index(text, position)
    if colon == position or text[np.uint64(colon)] != _COLON:
        return np.intp(-1)
    if index <= previous or index > rules.highest_index:
        return np.intp(-1)
    value, end, verdict = read_number(text, colon + 1)
    if verdict == MALFORMED or not _ends_token(text[np.uint64(end)]) or abs(value) > rules.largest_value:
        return np.intp(-1)
    if verdict == UNDECIDED:
        _note_undecided(out, colon + 1, entry)
    out.values[entry] = value
    out.indices[entry] = index - rules.first_column
    return end


@compiled
def _parse_entries(text, position, first, rules, out):
    """Parse the entries of a row; return (position of the newline or comment after them or -1, number of entries)."""
    n_entries, previous = first, np.int64(rules.lowest_index - 1)
    while True:
        if n_entries > first:
            previous = np.int64(out.indices[n_entries - 1]) + rules.first_column
        position, n_plain = _parse_plain_entries(text, position, previous, n_entries, rules, out)
        if text[np.uint64(position)] in (_NEWLINE, _HASH):
            return position, n_plain
        if n_plain > n_entries:
            previous = np.int64(out.indices[n_plain - 1]) + rules.first_column
        position = _parse_entry(text, position, previous, n_plain, rules, out)
        if position < 0:
            return position, n_plain
        n_entries = n_plain + 1


@compiled
def _parse_head(text, start, row, rules, out):
    """Parse label and query of a row; return the position after them, or -1 if they are not valid."""
    label, position, verdict = read_number(text, start)
    if verdict == MALFORMED or not _ends_token(text[np.uint64(position)]):
        return np.intp(-1)
    if verdict == UNDECIDED:
        _note_undecided(out, start, -1 - row)
    out.labels[row] = label
    if rules.with_queries:
        query, position = _read_query(text, _skip_blanks(text, position))
        out.queries[row] = query
    return position


@compiled
def parse_rows(text, rules, out):
    """Parse the rows of a text that ends with a newline into `out`, up to the first row that breaks a rule.

    The tally holds the numbers of rows, entries and undecided numbers, the extreme indices, and where it failed.
    """
    tally = out.tally
    tally[:] = 0
    tally[FAILED_AT] = -1
    smallest, largest = np.int64(_INDEX_LIMIT), np.int64(-1)
    n_rows, n_entries, line = np.int64(0), np.int64(0), np.intp(0)
    while line < len(text):
        position = _skip_blanks(text, line)
        if text[np.uint64(position)] not in (_NEWLINE, _HASH):
            first = n_entries
            position = _parse_head(text, position, n_rows, rules, out)
            if position >= 0:
                position, n_entries = _parse_entries(text, position, first, rules, out)
            if n_entries > first:  # indices ascend, so the first is the smallest and the last the largest
                smallest = min(smallest, np.int64(out.indices[first]) + rules.first_column)
                largest = max(largest, np.int64(out.indices[n_entries - 1]) + rules.first_column)
            out.row_ends[n_rows] = n_entries
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
def parse_good_rows(text, rules, out, good, refused):
    """Parse all rows that break no rule into `out`; return the number of lines that are refused.

    `good` and `refused` are set to (start, number) of the lines of these rows and of the refused lines. The tally holds
    the numbers of rows, entries and undecided numbers.
    """
    tally = out.tally
    n_rows, n_entries, n_undecided, n_refused = np.int64(0), np.int64(0), np.int64(0), np.int64(0)
    line, number = np.intp(0), np.int64(0)
    while line < len(text):
        tally[N_UNDECIDED] = n_undecided  # discards those of a refused row
        position, last = _skip_blanks(text, line), n_entries
        is_row = text[np.uint64(position)] not in (_NEWLINE, _HASH)
        if is_row:
            position = _parse_head(text, position, n_rows, rules, out)
            if position >= 0:
                position, last = _parse_entries(text, position, n_entries, rules, out)
        if position >= 0:
            position = _skip_line(text, position)
        if position < 0:
            refused[n_refused, 0], refused[n_refused, 1] = line, number
            n_refused += 1
            position = _next_line(text, line)
        elif is_row:
            n_entries, n_undecided = last, tally[N_UNDECIDED]
            good[n_rows, 0], good[n_rows, 1] = line, number
            out.row_ends[n_rows] = n_entries
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
    """Return the number of rows, and of rows with `qid:` after their label, of a text that ends with a newline."""
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
