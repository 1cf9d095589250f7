"""Values of the rbf kernel by vectors: as exact as the exponential, in every type and at every place."""

import numpy as np
import pytest

from widemargin._runtime.compile import compiled
from widemargin.kernels.functions import Kernel, finish_row
from widemargin.kernels.gaussians import numbers_per_vector, put_gaussians

TYPES = [np.float32, np.float64]
ACCURACY = {np.float32: 2e-7, np.float64: 1e-15}
PRODUCTS = pytest.mark.parametrize("dtype", TYPES, ids=["float32", "float64"])
TARGETS = pytest.mark.parametrize("target", TYPES, ids=["to-float32", "to-float64"])


@compiled
def _put_one_vector(products, gamma, own, others, target, j):
    put_gaussians(products, gamma, (own, others), target, j)
    return numbers_per_vector(products, target)


def finished(products, own, others, target, gamma=0.7):
    values = np.full(products.size, np.nan, target)
    finish_row(*Kernel("rbf", gamma=gamma).numbers, products, own, others, values)
    return values


def exact(products, own, others, gamma=0.7):
    """The exponents in the type of the products, the exponential in extended precision."""
    gamma = products.dtype.type(gamma)
    exponents = np.minimum((gamma + gamma) * products - gamma * (own + others), 0.0)
    return np.exp(exponents.astype(np.longdouble)), np.abs(exponents).max(initial=1.0)


@PRODUCTS
@TARGETS
@pytest.mark.parametrize("size", [0, 1, 15, 16, 31, 32, 33, 100])
def test_every_length_of_a_row_has_exact_values(dtype, target, size, rng):
    products, others = rng.standard_normal(size).astype(dtype), rng.uniform(0, 40, size).astype(dtype)
    wanted, largest = exact(products, dtype(2.0), others)
    accuracy = max(ACCURACY[dtype], ACCURACY[target]) + 8 * largest * max(np.finfo(dtype).eps, np.finfo(target).eps)
    np.testing.assert_allclose(finished(products, dtype(2.0), others, target), wanted.astype(float), rtol=accuracy)


@PRODUCTS
@TARGETS
def test_equal_distances_have_equal_values_wherever_they_are(dtype, target):
    values = finished(np.full(45, 0.3, dtype), dtype(1.1), np.full(45, 1.7, dtype), target)
    np.testing.assert_allclose(values, values[0], rtol=4 * max(np.finfo(dtype).eps, np.finfo(target).eps))


@PRODUCTS
def test_no_value_is_above_one_or_below_the_smallest_of_the_exponential(dtype):
    products, others = np.zeros(40, dtype), np.zeros(40, dtype)
    products[[0, 5, 39]], others[[1, 6, 38]] = 3.0, [1e4, 1e30, np.inf]
    values = finished(products, dtype(0.0), others, np.float64)
    assert values.max() == 1.0
    assert values.min() >= np.finfo(dtype).tiny
    assert (np.delete(values, [1, 6, 38]) == 1.0).all()
    np.testing.assert_allclose(values[[1, 6, 38]], values[1], rtol=ACCURACY[dtype])


@PRODUCTS
@TARGETS
@pytest.mark.parametrize("plain", [False, True], ids=["compiled", "plain"])
def test_a_vector_is_written_at_its_place_and_nowhere_else(dtype, target, plain, rng):
    products, others = rng.standard_normal(100).astype(dtype), rng.uniform(5, 9, 100).astype(dtype)
    values = np.full(100, np.nan, target)
    put = getattr(_put_one_vector, "py_func", _put_one_vector) if plain else _put_one_vector
    n_numbers = put(products, dtype(0.7), dtype(1.0), others, values, 7)
    here = slice(7, 7 + n_numbers)
    assert n_numbers * min(products.itemsize, values.itemsize) == 128
    assert np.isnan(np.delete(values, np.arange(*here.indices(100)))).all()
    wanted, largest = exact(products[here], dtype(1.0), others[here])
    accuracy = max(ACCURACY[dtype], ACCURACY[target]) + 8 * largest * max(np.finfo(dtype).eps, np.finfo(target).eps)
    np.testing.assert_allclose(values[here], wanted.astype(float), rtol=accuracy)


@PRODUCTS
def test_rows_that_do_not_begin_where_vectors_are_read_fastest_have_the_same_values(dtype, rng):
    products, others = rng.standard_normal(67).astype(dtype), rng.uniform(0, 9, 67).astype(dtype)
    whole = finished(products, dtype(1.0), others, np.float64)
    shifted = finished(products[3:], dtype(1.0), others[3:], np.float64)
    np.testing.assert_allclose(shifted, whole[3:], rtol=40 * np.finfo(dtype).eps)
