"""The rbf kernel by vectors of 128 bytes: exp(−gamma (|x|² + |z|² − 2 <x, z>)) for 32 or 16 inner products at once.

The exponential is that of `exponential`, whose operations wait for each other. A loop over numbers is compiled to one
vector register at a time; here two registers of 64 bytes, or four of 32, are in work at the same time, which took 0.5
to 0.7 of the time (measured). It is computed in single precision if the values are kept so, even where the inner
products are not: the absolute error of exp(−x) is then below 1e-7.
"""

import numpy as np

from widemargin._runtime.compile import compiled_choice, instruction
from widemargin.kernels import exponential

_BYTES_OF_VECTOR = 128


def numbers_per_vector(products, target):
    """Return how many values `put_gaussians` computes from inner products of this type for a target of this type."""
    return _BYTES_OF_VECTOR // min(products.itemsize, target.itemsize)


def put_gaussians(products, gamma, norms, target, j):
    """Set target[k] = exp(−gamma (own + others[k] − 2 products[k])), at most 1, for a vector of k from j on.

    `norms` is (own, others); `gamma` and `own` have the type of the products and of `others`. Arrays are contiguous.
    """
    own, others = norms
    here = slice(j, j + numbers_per_vector(products, target))
    exponents = (gamma + gamma) * products[here] - gamma * (own + others[here])
    exponents = exponents.astype(min(products.dtype, target.dtype))
    lowest = exponential.LOWEST_SINGLE if exponents.itemsize == 4 else exponential.LOWEST_DOUBLE
    target[here] = np.exp(np.maximum(np.fmin(exponents, 0.0), lowest))


def exp_for(exponent, products, target):
    """Return exp(exponent) in the precision of the products or of the target, whichever is lower."""
    return exponential.fast_exp(min(products.dtype, target.dtype).type(exponent))


@compiled_choice(numbers_per_vector)
def _compiled_numbers_per_vector(products, target):
    n_numbers = _BYTES_OF_VECTOR * 8 // min(products.dtype.bitwidth, target.dtype.bitwidth)
    return lambda products, target: n_numbers


@compiled_choice(put_gaussians)
def _compiled_put_gaussians(products, gamma, norms, target, j):
    return lambda products, gamma, norms, target, j: _put(products, gamma, norms, target, j)


@compiled_choice(exp_for)
def _compiled_exp_for(exponent, products, target):
    if min(products.dtype.bitwidth, target.dtype.bitwidth) == 32:
        return lambda exponent, products, target: exponential.fast_exp(np.float32(exponent))
    return lambda exponent, products, target: exponential.fast_exp(exponent)


@instruction
def _put(typing_context, products, gamma, norms, target, j):
    """Emit `put_gaussians`."""
    from numba.core import types

    def generate(context, builder, signature, arguments):
        from widemargin._runtime.simd_instructions import Vectors

        number = target.dtype if target.dtype.bitwidth < products.dtype.bitwidth else products.dtype
        vectors = Vectors(builder, products.dtype, _BYTES_OF_VECTOR * 8 // number.bitwidth)
        place = context.cast(builder, arguments[4], j, types.intp)
        own, others = (builder.extract_value(arguments[2], k) for k in range(2))
        inner = vectors.load(context, products, arguments[0], place)
        squares = vectors.load(context, norms.types[1], others, place)
        gammas, zero = vectors.spread(arguments[1]), vectors.constant(0.0)
        distances = vectors.multiply(gammas, vectors.add(vectors.spread(own), squares))
        exponents = vectors.subtract(vectors.multiply(vectors.add(gammas, gammas), inner), distances)
        exponents = vectors.converted(vectors.smaller(exponents, zero), number)
        vectors = Vectors(builder, number, _BYTES_OF_VECTOR * 8 // number.bitwidth)
        values = vectors.converted(_exponentials(vectors, exponents), target.dtype)
        Vectors(builder, target.dtype, _BYTES_OF_VECTOR * 8 // number.bitwidth).store(
            context, target, arguments[3], place, values
        )
        return context.get_dummy_value()

    return types.void(products, gamma, norms, target, j), generate


def _exponentials(vectors, x):
    """Emit the exponentials of a vector, as in `exponential`; x is at most 0 or NaN."""
    constant, plus = vectors.constant, vectors.multiply_add
    is_single = vectors.number.bitwidth == 32
    tail = exponential.TAIL_SINGLE if is_single else exponential.TAIL_DOUBLE
    shifter = constant(exponential.SHIFTER_SINGLE if is_single else exponential.SHIFTER_DOUBLE)
    x = vectors.larger(x, constant(exponential.LOWEST_SINGLE if is_single else exponential.LOWEST_DOUBLE))
    shifted = plus(x, constant(exponential.LOG2E), shifter)
    n = vectors.subtract(shifted, shifter)
    r = plus(n, constant(-exponential.LN2_HIGH), x)
    r = plus(n, constant(-exponential.LN2_LOW), r)
    total = constant(tail[-1])
    for coefficient in (*reversed(tail[:-1]), 1.0, 1.0):
        total = plus(total, r, constant(coefficient))
    return vectors.multiply(total, vectors.shifted_bits(shifted, 23 if is_single else 52))
