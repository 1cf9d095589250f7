"""exp(x) and log(x) in a form that the compiler can vectorise within loops, unlike calls of the C library.

    exp(x) = 2ⁿ exp(r),   n = round(x / ln 2),   |r| <= ½ ln 2

exp(r) = 1 + r (1 + r p(r)), where the polynomial p interpolates at the zeros of a Chebyshev polynomial; the error is
one or two units in the last place. n is found by adding a number so large that the last bit of the sum has the value 1,
which rounds to an integer. To this number the bias of exponents is added, so that the low bits of the sum, shifted into
the exponent field of a floating point number, give 2ⁿ. Arguments below the logarithm of the smallest normal number,
about −87 in single and −708 in double precision, are replaced by this logarithm.

log(x) = n ln 2 + log(m) with x = 2ⁿ m and √½ <= m < √2, where log(m) = 2 artanh(z) for z = (m − 1)/(m + 1), z² < 0.03.
It is for double precision only.
"""

import math

import numpy as np

from widemargin._runtime.compile import compiled_choice, instruction

LOG2E = 1.4426950408889634
# The sum of the two is ln 2; the first has so few bits that its product with n is exact.
LN2_HIGH, LN2_LOW = 0.693359375, -2.12194440054690583e-4
LOWEST_SINGLE, LOWEST_DOUBLE = -87.0, -708.0  # arguments
SHIFTER_SINGLE, SHIFTER_DOUBLE = 12582912.0 + 127.0, 6755399441055744.0 + 1023.0  # 1.5 * 2²³ or 2⁵², and the bias
# Coefficients of p, the constant first.
TAIL_SINGLE = (0.5, 0.16666576987883336, 0.04166655461493669, 0.008363179355011451, 0.0013926183965322584)
TAIL_DOUBLE = (
    0.5000000000000001,
    0.16666666666666669,
    0.04166666666662413,
    0.008333333333330062,
    0.0013888888917214578,
    0.0001984126986305428,
    2.480152129461859e-05,
    2.755726845896983e-06,
    2.7620089080782014e-07,
    2.5100385984118463e-08,
)
_BITS_OF_ONE, _BITS_OF_ROOT_HALF = 0x3FF0000000000000, 0x3FE6A09E667F3BCD
_SHIFTER, _BITS_OF_SHIFTER = 6755399441055744.0, 0x4338000000000000  # 1.5 * 2⁵²


def fast_exp(x):
    """Return exp(x) for a float32 of at most 80 or a float64 of at most 700."""
    return type(x)(math.exp(max(x, -87.0 if isinstance(x, np.float32) else -708.0)))


@instruction
def _bits(typing_context, x):
    """Return the bits of a floating point number as an integer of the same size."""
    from llvmlite import ir
    from numba.core import types

    integer = {types.float32: types.int32, types.float64: types.int64}[x]

    def generate(context, builder, signature, arguments):
        return builder.bitcast(arguments[0], ir.IntType(integer.bitwidth))

    return integer(x), generate


@instruction
def _from_bits(typing_context, i):
    """Return the floating point number that has these bits."""
    from llvmlite import ir
    from numba.core import types

    real = {types.int32: types.float32, types.int64: types.float64}[i]

    def generate(context, builder, signature, arguments):
        return builder.bitcast(arguments[0], ir.FloatType() if real is types.float32 else ir.DoubleType())

    return real(i), generate


def _exp32(x):
    low, shifter = np.float32(LOWEST_SINGLE), np.float32(SHIFTER_SINGLE)
    x = low if x < low else x
    shifted = x * np.float32(LOG2E) + shifter
    n = shifted - shifter
    r = (x - n * np.float32(LN2_HIGH)) - n * np.float32(LN2_LOW)
    tail = np.float32(TAIL_SINGLE[4])
    tail = tail * r + np.float32(TAIL_SINGLE[3])
    tail = tail * r + np.float32(TAIL_SINGLE[2])
    tail = tail * r + np.float32(TAIL_SINGLE[1])
    tail = tail * r + np.float32(TAIL_SINGLE[0])
    tail = tail * r + np.float32(1.0)
    power = _from_bits(np.int32(_bits(shifted) << np.int32(23)))
    return (tail * r + np.float32(1.0)) * power


def _exp64(x):
    x = LOWEST_DOUBLE if x < LOWEST_DOUBLE else x
    shifted = x * LOG2E + SHIFTER_DOUBLE
    n = shifted - SHIFTER_DOUBLE
    r = (x - n * LN2_HIGH) - n * LN2_LOW
    tail = TAIL_DOUBLE[9]
    tail = tail * r + TAIL_DOUBLE[8]
    tail = tail * r + TAIL_DOUBLE[7]
    tail = tail * r + TAIL_DOUBLE[6]
    tail = tail * r + TAIL_DOUBLE[5]
    tail = tail * r + TAIL_DOUBLE[4]
    tail = tail * r + TAIL_DOUBLE[3]
    tail = tail * r + TAIL_DOUBLE[2]
    tail = tail * r + TAIL_DOUBLE[1]
    tail = tail * r + TAIL_DOUBLE[0]
    tail = tail * r + 1.0
    return (tail * r + 1.0) * _from_bits(_bits(shifted) << 52)


@compiled_choice(fast_exp)
def _typed_fast_exp(x):
    return _exp32 if x.bitwidth == 32 else _exp64


def fast_log(x):
    """Return log(x) for a positive normal float64."""
    return math.log(x)


@compiled_choice(fast_log)
def _typed_fast_log(x):
    return _log64


def _log64(x):
    bits = _bits(x)
    biased = (bits + (_BITS_OF_ONE - _BITS_OF_ROOT_HALF)) >> 52
    m = _from_bits(bits - ((biased - 1023) << 52))
    n = _from_bits(biased - 1023 + _BITS_OF_SHIFTER) - _SHIFTER
    z = (m - 1.0) / (m + 1.0)
    y = z * z
    tail = 1.0 / 21.0
    tail = tail * y + 1.0 / 19.0
    tail = tail * y + 1.0 / 17.0
    tail = tail * y + 1.0 / 15.0
    tail = tail * y + 1.0 / 13.0
    tail = tail * y + 1.0 / 11.0
    tail = tail * y + 1.0 / 9.0
    tail = tail * y + 1.0 / 7.0
    tail = tail * y + 1.0 / 5.0
    tail = tail * y + 1.0 / 3.0
    return n * LN2_HIGH + (n * LN2_LOW + 2.0 * z * (1.0 + tail * y))
