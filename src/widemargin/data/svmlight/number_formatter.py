"""Compiled formatting of rows as SVM-light text, with numbers in the fewest digits that read back as the same number.

A double x is first written as 18 digits times a power of ten, from the leading 64 bits of its product with a power of
five of the table in `numbers`; the last digit may be wrong. Then 15, 16 and 17 digits are tried (6 to 9 for float32),
and the first decimal is written that the conversion of the reader, `numbers.nearest_double`, turns into x. So every
number that is written has been read back. If this cannot be decided, as for subnormal numbers, the caller has to
format the number.
"""

import numpy as np

from widemargin._runtime.compile import compiled
from widemargin.data.svmlight.numbers import DECIDED, leading_product, nearest_double

LONGEST_ENTRY = 48  # bytes, at most, of a blank, an index of 10 digits, a colon and a number
LONGEST_HEAD = 80  # bytes, at most, of a label, a query and a newline

_MINUS, _POINT, _ZERO, _E, _PLUS, _SPACE, _COLON, _NEWLINE = (np.uint8(ord(sign)) for sign in "-.0e+ :\n")
_QUERY = np.frombuffer(b" qid:", dtype=np.uint8)
_TEN_POWERS = np.array([10**k for k in range(19)], dtype=np.int64)
_LOG10_OF_2 = 0.30102999566398120


@compiled
def _leading_digits(x):
    """Return (d, q) with a d of 18 digits and x ≈ d · 10^q, rounded down, for x > 0; d is 0 if that is not possible."""
    bits = np.float64(x).view(np.uint64)
    binary = np.int64(bits >> np.uint64(52)) - 1075
    if binary == -1075:
        return np.int64(0), np.int64(0)
    mantissa = ((bits & np.uint64(2**52 - 1)) | np.uint64(2**52)) << np.uint64(11)
    scale = np.int64(17) - np.int64(np.floor((binary + 52) * _LOG10_OF_2))
    for _ in range(3):
        product, exponent = leading_product(mantissa, scale)
        shift = 11 - exponent - binary
        if product == np.uint64(0) or shift < 1 or shift > 62:
            return np.int64(0), np.int64(0)
        digits = np.int64(product >> np.uint64(shift))
        if digits >= 10**18:
            scale -= 1
        elif digits < 10**17:
            scale += 1
        else:
            return digits, -scale
    return np.int64(0), np.int64(0)


@compiled
def _shortest(x, is_float32):
    """Return (d, q, whether one was found) with the fewest digits d for which d · 10^q reads back as x > 0."""
    digits, scale = _leading_digits(x)
    fewest, most = (6, 9) if is_float32 else (15, 17)
    for n_digits in range(fewest, most + 1):
        unit = _TEN_POWERS[18 - n_digits]
        below = digits // unit
        nearer = below + np.int64(2 * (digits - below * unit) >= unit)
        for candidate in (nearer, 2 * below + 1 - nearer):
            value, verdict = nearest_double(np.uint64(candidate), scale + 18 - n_digits)
            if is_float32:
                value = np.float64(np.float32(value))
            if verdict == DECIDED and value == x:
                scale += 18 - n_digits
                while candidate % 10 == 0:
                    candidate //= 10
                    scale += 1
                return candidate, scale, True
    return np.int64(0), np.int64(0), False


@compiled
def _count_digits(number):
    """Return the number of decimal digits of an integer from 0 to 10^18."""
    n_digits = 1
    while n_digits < 19 and number >= _TEN_POWERS[n_digits]:
        n_digits += 1
    return n_digits


@compiled
def _put_digits(buffer, position, number, n_digits):
    """Write `number` with n_digits digits, padded with zeros; return the position after it."""
    for k in range(position + n_digits - 1, position - 1, -1):
        buffer[k] = _ZERO + np.uint8(number % 10)
        number //= 10
    return position + n_digits


@compiled
def _put_decimal(buffer, position, digits, scale):
    """Write digits · 10^scale as Python's `repr` does, but without ".0" at the end; return the position after it."""
    n_digits = _count_digits(digits)
    exponent = n_digits - 1 + scale
    if -4 <= exponent < 16:
        if scale >= 0:
            position = _put_digits(buffer, position, digits, n_digits)
            return _put_digits(buffer, position, np.int64(0), scale)
        unit = _TEN_POWERS[min(-scale, 18)]
        whole = digits // unit if -scale < n_digits else np.int64(0)
        position = _put_digits(buffer, position, whole, _count_digits(whole))
        buffer[position] = _POINT
        return _put_digits(buffer, position + 1, digits - whole * unit, -scale)
    unit = _TEN_POWERS[n_digits - 1]
    position = _put_digits(buffer, position, digits // unit, 1)
    if n_digits > 1:
        buffer[position] = _POINT
        position = _put_digits(buffer, position + 1, digits % unit, n_digits - 1)
    buffer[position] = _E
    buffer[position + 1] = _MINUS if exponent < 0 else _PLUS
    return _put_digits(buffer, position + 2, abs(exponent), max(2, _count_digits(abs(exponent))))


@compiled
def _put_number(buffer, position, x, is_float32):
    """Write a finite number; return the position after it, or -1 if the caller has to format it."""
    if np.signbit(x):
        buffer[position] = _MINUS
        position += 1
        x = -x
    if x < (1e7 if is_float32 else 1e15) and x == np.floor(x):
        whole = np.int64(x)
        return _put_digits(buffer, position, whole, _count_digits(whole))
    digits, scale, found = _shortest(x, is_float32)
    return _put_decimal(buffer, position, digits, scale) if found else np.int64(-1)


@compiled
def _put_head(buffer, position, row, labels, queries):
    """Write label and query of a row; return the position after them, or -1 if the caller has to format them."""
    position = _put_number(buffer, position, labels[row], False)
    if position >= 0 and len(queries) > 0:
        for byte in _QUERY:
            buffer[position] = byte
            position += 1
        if not -(10**18) < queries[row] < 10**18:
            return np.int64(-1)
        if queries[row] < 0:
            buffer[position] = _MINUS
            position += 1
        query = abs(queries[row])
        position = _put_digits(buffer, position, query, _count_digits(query))
    return position


@compiled
def format_rows(labels, queries, indptr, indices, values, buffer):
    """Write rows to `buffer`, which must be long enough; return the bytes written, or -1 if a number is undecided."""
    is_float32 = values.itemsize == 4
    position = np.int64(0)
    for row in range(len(labels)):
        position = _put_head(buffer, position, row, labels, queries)
        if position < 0:
            return position
        for k in range(indptr[row], indptr[row + 1]):
            buffer[position] = _SPACE
            index = np.int64(indices[k])
            position = _put_digits(buffer, position + 1, index, _count_digits(index))
            buffer[position] = _COLON
            position = _put_number(buffer, position + 1, np.float64(values[k]), is_float32)
            if position < 0:
                return position
        buffer[position] = _NEWLINE
        position += 1
    return position
