"""Kernels as functions of inner products, against scikit-learn's."""

import numpy as np
import pytest
from sklearn.metrics.pairwise import pairwise_kernels

from widemargin.kernels.functions import Kernel

KERNELS = {
    "linear": Kernel("linear"),
    "poly": Kernel("poly", gamma=0.3, coef0=0.7, degree=3),
    "poly-0": Kernel("poly", gamma=0.3, coef0=0.7, degree=0),
    "poly-1": Kernel("poly", gamma=2.0, coef0=-1.0, degree=1),
    "poly-8": Kernel("poly", gamma=0.1, coef0=0.5, degree=8),
    "rbf": Kernel("rbf", gamma=0.4),
    "rbf-0": Kernel("rbf", gamma=0.0),
    "sigmoid": Kernel("sigmoid", gamma=0.2, coef0=-0.3),
    "sigmoid-steep": Kernel("sigmoid", gamma=50.0, coef0=1.0),
}
EACH_KERNEL = pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS.keys())
TYPES = pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["float32", "float64"])


def expected(kernel, X, Z):
    numbers = {"gamma": kernel.gamma, "coef0": kernel.coef0, "degree": kernel.degree}
    return pairwise_kernels(X, Z, metric=kernel.name, filter_params=True, **numbers)


def finished(kernel, X, Z, dtype):
    """Return K(X, Z) from products and norms that NumPy computed."""
    norms = [(part**2).sum(axis=1).astype(dtype) for part in (X, Z)]
    out = np.full((len(X), len(Z)), np.nan, dtype)
    kernel.finish((X @ Z.T).astype(dtype), *norms, np.arange(len(X)), out, 0)
    return out


@TYPES
@EACH_KERNEL
def test_each_kernel_is_scikit_learns(kernel, dtype, rng):
    X, Z = rng.standard_normal((20, 5)), rng.standard_normal((30, 5))
    accuracy = 2e-5 if dtype == np.float32 else 1e-13
    np.testing.assert_allclose(finished(kernel, X, Z, dtype), expected(kernel, X, Z), rtol=accuracy, atol=accuracy)


@EACH_KERNEL
def test_the_diagonal_is_that_of_the_matrix(kernel, rng):
    X = rng.standard_normal((20, 5))
    found = kernel.diagonal((X**2).sum(axis=1))
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, expected(kernel, X, X).diagonal(), rtol=1e-12)


@EACH_KERNEL
def test_the_diagonal_does_not_share_memory_with_the_norms(kernel):
    norms = np.array([1.0, 2.0])
    assert not np.shares_memory(kernel.diagonal(norms), norms)


@TYPES
def test_values_go_into_the_slots_and_columns_asked_for_and_nowhere_else(dtype, rng):
    products, out = rng.standard_normal((3, 4)).astype(dtype), np.full((9, 10), np.nan, dtype)
    before = products.copy()
    Kernel("linear").finish(products, np.zeros(3, dtype), np.zeros(10, dtype), np.array([7, 0, 4]), out, 5)
    assert np.array_equal(out[[7, 0, 4], 5:9], before)
    out[[7, 0, 4], 5:9] = np.nan
    assert np.isnan(out).all()


def test_rbf_takes_the_norms_of_its_own_columns():
    products, norms = np.zeros((1, 2)), np.array([9.0, 9.0, 1.0, 2.0])
    out = np.zeros((1, 4))
    Kernel("rbf", gamma=1.0).finish(products, np.array([3.0]), norms, np.array([0]), out, 2)
    np.testing.assert_allclose(out[0, 2:], np.exp([-4.0, -5.0]), rtol=1e-15)


@TYPES
def test_rbf_never_exceeds_one_however_the_products_are_rounded(dtype):
    products = np.array([[1.0 + 1e-6]], dtype)
    out = np.zeros((1, 1), dtype)
    Kernel("rbf", gamma=10.0).finish(products, np.ones(1, dtype), np.ones(1, dtype), np.array([0]), out, 0)
    assert out[0, 0] == 1.0


@TYPES
def test_single_products_may_be_finished_into_double_memory(dtype, rng):
    # Predictions do so: sums are double, whatever the data are.
    X = rng.standard_normal((4, 3))
    for kernel in KERNELS.values():
        out = np.zeros((4, 4))
        norms = (X**2).sum(axis=1).astype(dtype)
        kernel.finish((X @ X.T).astype(dtype), norms, norms, np.arange(4), out, 0)
        np.testing.assert_allclose(out, expected(kernel, X, X), rtol=1e-4, atol=1e-5)


def test_sigmoid_saturates_without_overflow():
    products, out = np.array([[-1e30, -1e3, 1e3, 1e30]]), np.zeros((1, 4))
    Kernel("sigmoid", gamma=1.0).finish(products, np.ones(1), np.ones(4), np.array([0]), out, 0)
    np.testing.assert_array_equal(out, [[-1.0, -1.0, 1.0, 1.0]])


@TYPES
@pytest.mark.parametrize("size", [1e-1, 1e-3, 1e-5, 1e-7])
def test_sigmoid_keeps_its_digits_near_zero(size, dtype):
    products, out = np.array([[-size, 0.3 * size, size]], dtype), np.zeros((1, 3), dtype)
    exact = np.tanh(products.astype(np.float64))
    Kernel("sigmoid", gamma=1.0).finish(products, np.ones(1, dtype), np.ones(3, dtype), np.array([0]), out, 0)
    np.testing.assert_allclose(out, exact, rtol=1e-5 if dtype == np.float32 else 1e-8)


def test_a_kernel_is_a_value():
    assert Kernel("rbf", gamma=0.5) == Kernel("rbf", gamma=0.5)
    assert Kernel("rbf", gamma=0.5) != Kernel("rbf", gamma=0.6)
    with pytest.raises(AttributeError, match="cannot assign"):
        Kernel("rbf").gamma = 2.0


@pytest.mark.parametrize("name", ["linear", "poly", "rbf", "sigmoid", "precomputed", "callable"])
def test_only_four_kernels_come_from_products(name):
    assert Kernel(name).from_products == (name in {"linear", "poly", "rbf", "sigmoid"})
