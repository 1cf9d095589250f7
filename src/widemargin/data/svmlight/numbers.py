"""Decimal text to the nearest double, in compiled code.

A number is m · 10^q with an integer m of at most 19 digits. Three ways, tried in this order:

1. m <= 2^53 and |q| <= 22: both m and 10^|q| are doubles, so one multiplication or division rounds once.
2. m · 10^q = m · 5^q · 2^q, with 5^q kept to 128 bits, rounded down. The product is then known from below to
   within two units of its last word; unless a tie of two doubles lies in that narrow gap, it is decided.
3. What is left (ties, subnormals, the edge of overflow, a 20th digit that matters) is reported as undecided,
   and the caller asks Python's `float`.

References: W. Clinger, How to read floating point numbers accurately, PLDI 1990, for the first way;
D. Lemire, Number parsing at a gigabyte per second, Softw. Pract. Exper. 51, 2021, for the second.
"""

import numpy as np

from widemargin._runtime.compile import compiled

DECIDED, UNDECIDED, MALFORMED = 0, 1, 2

_LOWEST_POWER, _HIGHEST_POWER = -342, 308  # beyond these, 19 digits are zero or infinite as doubles
_MOST_DIGITS = 19  # 10^19 < 2^64

_PLUS, _MINUS, _POINT, _E = (np.uint8(ord(sign)) for sign in "+-.e")
_LOWER_CASE = np.uint8(0x20)  # the bit that turns E into e

_U0, _U1, _TEN, _U32, _U52, _U63 = (np.uint64(number) for number in (0, 1, 10, 32, 52, 63))
_LOW_WORD = np.uint64(0xFFFFFFFF)
_LARGEST_EXACT = np.uint64(2**53)
_HIDDEN_BIT = np.uint64(2**52)
_ALMOST_FULL = np.uint64(2**64 - 2)


def _powers_of_five():
    """Return for each q the leading 128 bits of 5^q in two words, and e: 10^q = (high, low) / 2^128 · 2^e."""
    high, low, binary = [], [], []
    for q in range(_LOWEST_POWER, _HIGHEST_POWER + 1):
        five = 5 ** abs(q)
        n_bits = five.bit_length()
        if q < 0:
            leading, exponent = (1 << (127 + n_bits)) // five, 1 - n_bits + q
        else:
            leading, exponent = (five << 128) >> n_bits, n_bits + q
        high.append(leading >> 64)
        low.append(leading & (2**64 - 1))
        binary.append(exponent)
    return np.array(high, dtype=np.uint64), np.array(low, dtype=np.uint64), np.array(binary, dtype=np.int64)


# Constants of the compiled code rather than arguments: nobody who reads a number need know them.
_FIVE_HIGH, _FIVE_LOW, _BINARY_EXPONENT = _powers_of_five()
TENS = np.array([float(10**q) for q in range(23)])


@compiled
def read_digits(text, position, integer):
    """Append the digits at `position` to `integer`: (integer, position after them). It wraps past 18."""
    # One by one, since the length of most numbers can be foreseen: eight at once, as a word, were slower.
    while True:
        digit = np.int64(text[np.uint64(position)]) - 48
        if digit < 0 or digit > 9:
            return integer, position
        integer = integer * 10 + digit
        position += 1


@compiled
def _read_exponent(text, start):
    """Read [+-]digits: (exponent, position after it or -1 if there is none), held near 10^17."""
    sign = text[np.uint64(start)]
    if sign in (_PLUS, _MINUS):
        start += 1
    exponent, position = np.int64(0), start
    while True:
        digit = np.int64(text[np.uint64(position)]) - 48
        if digit < 0 or digit > 9:
            break
        if exponent < 10**16:
            exponent = exponent * 10 + digit
        position += 1
    if position == start:
        return exponent, np.intp(-1)
    return (-exponent if sign == _MINUS else exponent), position


@compiled
def _leading_digits(text, start):
    """Read digits with perhaps a point: (m of 19 digits, q, whether m · 10^q is all of it, end or -1)."""
    mantissa = _U0
    n_kept, scale = 0, np.int64(0)
    after_point, complete = 0, True
    position = start
    while True:
        byte = text[np.uint64(position)]
        digit = np.int64(byte) - 48
        if byte == _POINT and after_point == 0:
            after_point = 1
        elif digit < 0 or digit > 9:
            break
        elif n_kept < _MOST_DIGITS:
            mantissa = mantissa * _TEN + np.uint64(digit)
            n_kept += mantissa != _U0
            scale -= after_point
        else:
            complete = complete and digit == 0
            scale += 1 - after_point
        position += 1
    if position - start == after_point:
        position = np.intp(-1)
    return mantissa, scale, complete, position


@compiled
def _high_product(a, b):
    """Return the upper 64 bits of a · b."""
    a_high, a_low, b_high, b_low = a >> _U32, a & _LOW_WORD, b >> _U32, b & _LOW_WORD
    middle = a_high * b_low + ((a_low * b_low) >> _U32)
    other = a_low * b_high + (middle & _LOW_WORD)
    return a_high * b_high + (middle >> _U32) + (other >> _U32)


@compiled
def leading_product(shifted, power):
    """Return (p, e) such that shifted · 10^power is p · 2^e or less than p + 2 of it; (0, 0) out of reach."""
    if power < _LOWEST_POWER or power > _HIGHEST_POWER:
        return _U0, np.int64(0)
    row = np.uint64(power - _LOWEST_POWER)
    return _high_product(shifted, _FIVE_HIGH[row]), _BINARY_EXPONENT[row]


@compiled
def _round_product(mantissa, row):
    """Round mantissa · 10^q, mantissa > 0, by way of the leading bits of the product: (double, verdict)."""
    top = (np.float64(mantissa).view(np.uint64) >> _U52) - np.uint64(1023)
    if (mantissa >> top) == _U0:  # the conversion rounded up to the next power of two
        top -= _U1
    shifted = mantissa << (_U63 - top)
    high, low = _high_product(shifted, _FIVE_HIGH[row]), _U0
    drop = np.uint64(10) + (high >> _U63)
    half = _U1 << (drop - _U1)
    rest = high & ((_U1 << drop) - _U1)
    if rest == half or rest == half - _U1:  # 64 bits of the power cannot tell; take all 128
        first = shifted * _FIVE_HIGH[row]
        low = first + _high_product(shifted, _FIVE_LOW[row])
        if low < first:
            high += _U1
        drop = np.uint64(10) + (high >> _U63)
        half = _U1 << (drop - _U1)
        rest = high & ((_U1 << drop) - _U1)
        if (rest == half and low == _U0) or (rest == half - _U1 and low >= _ALMOST_FULL):
            return 0.0, UNDECIDED
    exponent = _BINARY_EXPONENT[row] - np.int64(_U63 - top) + np.int64(drop) + 52 + 1023
    if exponent <= 0 or exponent >= 2046:
        return 0.0, UNDECIDED
    # Rounding up to 2^53 carries into the exponent, as it should.
    fraction = (high >> drop) - _HIDDEN_BIT + (_U1 if rest >= half else _U0)
    return np.uint64((np.uint64(exponent) << _U52) + fraction).view(np.float64), DECIDED


@compiled
def nearest_double(mantissa, scale):
    """Round mantissa · 10^scale to the nearest double, ties to even: (double, verdict)."""
    if mantissa <= _LARGEST_EXACT and -22 <= scale <= 22:
        exact = np.float64(np.int64(mantissa))
        if scale < 0:
            return exact / TENS[np.uint64(-scale)], DECIDED
        return exact * TENS[np.uint64(scale)], DECIDED
    if mantissa == _U0:
        return 0.0, DECIDED
    if scale < _LOWEST_POWER or scale > _HIGHEST_POWER:
        return 0.0, UNDECIDED
    return _round_product(mantissa, np.uint64(scale - _LOWEST_POWER))


@compiled
def read_number(text, start):
    """Read a number of any form: (double, position after it, verdict); the double counts only if DECIDED."""
    sign = text[np.uint64(start)]
    if sign in (_PLUS, _MINUS):
        start += 1
    mantissa, scale, complete, end = _leading_digits(text, start)
    if end < 0:
        return 0.0, start, MALFORMED
    if text[np.uint64(end)] | _LOWER_CASE == _E:
        exponent, end = _read_exponent(text, end + 1)
        if end < 0:
            return 0.0, start, MALFORMED
        scale += exponent
    value, verdict = nearest_double(mantissa, scale)
    if not complete and verdict == DECIDED:  # the digits left out matter if one more in the last would
        above, verdict = nearest_double(mantissa + _U1, scale)
        if value != above:
            verdict = UNDECIDED
    return (-value if sign == _MINUS else value), end, verdict
