"""Compiled conversion of decimal text to the nearest double.

A number is written as m · 10^q with an integer m of at most 19 digits. Three methods are tried in this order:

1. If m <= 2^53 and |q| <= 22, both m and 10^|q| are doubles, and one multiplication or division rounds correctly.
2. Otherwise m · 10^q = m · 5^q · 2^q is computed with the leading 128 bits of 5^q, rounded down. The product is then
   a lower bound, with an error of less than two units of its last word. Unless the midpoint of two doubles lies within
   this error, the nearest double is known.
3. The remaining numbers (ties, subnormals, numbers near the overflow threshold, numbers whose 20th digit matters) are
   reported as UNDECIDED, and the caller converts them by Python's `float`.

References: W. Clinger, How to read floating point numbers accurately, PLDI 1990, for the first method;
D. Lemire, Number parsing at a gigabyte per second, Softw. Pract. Exper. 51, 2021, for the second.
"""

import numpy as np

from widemargin._runtime.compile import compiled

DECIDED, UNDECIDED, MALFORMED = 0, 1, 2

_LOWEST_POWER, _HIGHEST_POWER = -342, 308  # beyond these q, m · 10^q is 0 or infinite as a double
_MAX_DIGITS = 19  # digits of m, since 10^19 < 2^64

_PLUS, _MINUS, _POINT, _E = (np.uint8(ord(sign)) for sign in "+-.e")
_LOWER_CASE = np.uint8(0x20)  # the bit that turns E into e

_U0, _U1, _TEN, _U32, _U52, _U63 = (np.uint64(number) for number in (0, 1, 10, 32, 52, 63))
_LOW_WORD = np.uint64(0xFFFFFFFF)
_LARGEST_EXACT = np.uint64(2**53)
_HIDDEN_BIT = np.uint64(2**52)
_ALMOST_FULL = np.uint64(2**64 - 2)


def _powers_of_five():
    """Return for each q the leading 128 bits of 5^q, as high and low words, and e: 10^q ≈ (high, low) / 2^128 · 2^e."""
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


# These tables are constants of the compiled code rather than arguments, so that callers need not pass them.
_FIVE_HIGH, _FIVE_LOW, _BINARY_EXPONENT = _powers_of_five()
TENS = np.array([float(10**q) for q in range(23)])


@compiled
def read_digits(text, position, integer):
    """Append the digits at `position` to `integer`, which overflows past 18; return (integer, position after them)."""
    # Digit by digit: the branches are predicted well, and reading eight digits at once as a word was slower.
    while True:
        digit = np.int64(text[np.uint64(position)]) - 48
        if digit < 0 or digit > 9:
            return integer, position
        integer = integer * 10 + digit
        position += 1


@compiled
def _read_exponent(text, start):
    """Read an exponent [+-]digits, limited to about 10^17; return (exponent, position after it or -1 if missing)."""
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
    """Read digits and an optional decimal point.

    Returns m of at most 19 digits, q, whether m · 10^q is the exact value, and the position after it, or -1 if there
    are no digits.
    """
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
        elif n_kept < _MAX_DIGITS:
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
    """Return (p, e) with p · 2^e <= shifted · 10^power < (p + 2) · 2^e, or (0, 0) if the power is not in the table."""
    if power < _LOWEST_POWER or power > _HIGHEST_POWER:
        return _U0, np.int64(0)
    row = np.uint64(power - _LOWEST_POWER)
    return _high_product(shifted, _FIVE_HIGH[row]), _BINARY_EXPONENT[row]


@compiled
def _round_product(mantissa, row):
    """Return (nearest double of mantissa · 10^q, verdict) by the second method; mantissa > 0, `row` is that of q."""
    top = (np.float64(mantissa).view(np.uint64) >> _U52) - np.uint64(1023)
    if (mantissa >> top) == _U0:  # the conversion rounded up to the next power of two
        top -= _U1
    shifted = mantissa << (_U63 - top)
    high, low = _high_product(shifted, _FIVE_HIGH[row]), _U0
    drop = np.uint64(10) + (high >> _U63)
    half = _U1 << (drop - _U1)
    rest = high & ((_U1 << drop) - _U1)
    if rest == half or rest == half - _U1:  # 64 bits of the power do not decide; use all 128
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
    # If rounding up gives 2^53, the carry increments the exponent, which is correct.
    fraction = (high >> drop) - _HIDDEN_BIT + (_U1 if rest >= half else _U0)
    return np.uint64((np.uint64(exponent) << _U52) + fraction).view(np.float64), DECIDED


@compiled
def nearest_double(mantissa, scale):
    """Return (nearest double of mantissa · 10^scale with ties to even, verdict)."""
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
    """Read a number of any form; return (double, position after it, verdict). The double is valid only if DECIDED."""
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
    if not complete and verdict == DECIDED:  # the ignored digits do not matter if m and m + 1 round to the same double
        above, verdict = nearest_double(mantissa + _U1, scale)
        if value != above:
            verdict = UNDECIDED
    return (-value if sign == _MINUS else value), end, verdict
