"""The rbf kernel by vectors of 128 bytes: exp(−gamma (|x|² + |z|² − 2 <x, z>)) for 32 or 16 inner products at once.

The exponential is that of `exponential`, whose operations wait for each other. A loop over numbers is compiled to one
vector register at a time; here two registers of 64 bytes, or four of 32, are in work at the same time, which took 0.5
to 0.7 of the time (measured).
"""

import numpy as np

from widemargin._runtime.compile import compiled_choice, instruction
from widemargin.kernels import exponential

_BYTES_OF_VECTOR = 128


def numbers_per_vector(products):
    """Return how many values `put_gaussians` computes from inner products of this type."""
    return _BYTES_OF_VECTOR // products.itemsize


def put_gaussians(products, gamma, own, others, target, j):
    """Set target[k] = exp(−gamma (own + others[k] − 2 products[k])), at most 1, for a vector of k from j on.

    `gamma` and `own` have the type of the products and of `others`; the arrays are contiguous.
    """
    here = slice(j, j + numbers_per_vector(products))
    exponents = (gamma + gamma) * products[here] - gamma * (own + others[here])
    lowest = exponential.LOWEST_SINGLE if products.itemsize == 4 else exponential.LOWEST_DOUBLE
    target[here] = np.exp(np.maximum(np.fmin(exponents, 0.0), lowest))


@compiled_choice(numbers_per_vector)
def _compiled_numbers_per_vector(products):
    n_numbers = _BYTES_OF_VECTOR * 8 // products.dtype.bitwidth
    return lambda products: n_numbers


@compiled_choice(put_gaussians)
def _compiled_put_gaussians(products, gamma, own, others, target, j):
    return lambda products, gamma, own, others, target, j: _put(products, gamma, own, others, target, j)


@instruction
def _put(typing_context, products, gamma, own, others, target, j):
    """Emit `put_gaussians`."""
    from numba.core import types

    def generate(context, builder, signature, arguments):
        from widemargin._runtime.simd_instructions import Vectors

        vectors = Vectors(builder, products.dtype, _BYTES_OF_VECTOR * 8 // products.dtype.bitwidth)
        place = context.cast(builder, arguments[5], j, types.intp)
        inner = vectors.load(context, products, arguments[0], place)
        norms = vectors.load(context, others, arguments[3], place)
        gammas, zero = vectors.spread(arguments[1]), vectors.constant(0.0)
        distances = vectors.multiply(gammas, vectors.add(vectors.spread(arguments[2]), norms))
        exponents = vectors.subtract(vectors.multiply(vectors.add(gammas, gammas), inner), distances)
        values = _exponentials(vectors, vectors.smaller(exponents, zero))
        vectors.store(context, target, arguments[4], place, values)
        return context.get_dummy_value()

    return types.void(products, gamma, own, others, target, j), generate


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
