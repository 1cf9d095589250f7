"""Sums of kernel values with coefficients, against NumPy."""

from itertools import pairwise

import numpy as np
import pytest

from widemargin._runtime.simd import SHORT_LANES
from widemargin.kernels.expansion import kernel_scores
from widemargin.kernels.functions import Kernel
from widemargin.kernels.weighted_sums import add_sums, weights_of

TYPES = pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["float32", "float64"])
OUTPUTS = pytest.mark.parametrize("n_outputs", [1, 5, SHORT_LANES, SHORT_LANES + 1, 45])
ENDS = np.array([0, 7, 7, 200, 300])


def sums_of(values, ends, weights, n_outputs):
    out = np.ones((len(values), len(weights.ends) - 1, n_outputs))
    add_sums(values.astype(weights.dtype), ends, weights, weights.memory(), out)
    return out - 1.0


@TYPES
@OUTPUTS
@pytest.mark.parametrize("n_rows", [1, 3, 4, 9])
def test_each_block_of_support_vectors_has_its_sums(n_rows, n_outputs, dtype, rng):
    coefficients, values = rng.standard_normal((n_outputs, 300)), rng.random((n_rows, 260)).astype(dtype)
    weights = weights_of(coefficients, ENDS, dtype)
    found = sums_of(values, (5, 240), weights, n_outputs)
    accuracy = 1e-12 if weights.dtype == np.float64 else 1e-4
    for block, (begin, end) in enumerate(pairwise(np.clip(ENDS, 5, 240))):
        expected = values[:, begin - 5 : end - 5].astype(np.float64) @ coefficients[:, begin:end].T
        np.testing.assert_allclose(found[:, block], expected, rtol=accuracy, atol=accuracy)


@pytest.mark.parametrize("size", [1e-300, 1e-30, 1e30, 1e300])
def test_coefficients_of_any_size_are_multiplied_in_single_precision(size, rng):
    coefficients, values = size * rng.standard_normal((20, 50)), rng.random((5, 50)).astype(np.float32)
    coefficients[1], coefficients[2] = 0.0, 1.0
    weights = weights_of(coefficients, np.array([0, 50]), np.float32)
    assert weights.dtype == np.float32
    out = np.zeros((5, 1, 20))
    add_sums(values, (0, 50), weights, weights.memory(), out)
    expected = values.astype(np.float64) @ coefficients.T
    np.testing.assert_allclose(out[:, 0, :3], expected[:, :3], rtol=1e-5, atol=1e-5 * size)
    np.testing.assert_allclose(out[:, 0], expected, rtol=1e-4, atol=1e-5 * size)


@pytest.mark.parametrize("density", [0.05, 0.4, 1.0], ids=lambda d: f"density-{d}")
@pytest.mark.parametrize("n_features", [12, 100])
def test_many_outputs_in_single_precision_are_those_of_double_precision(n_features, density, rng):
    X, Z = (rng.random((n, n_features)) for n in (700, 300))
    for part in (X, Z):
        part[rng.random(part.shape) >= density] = 0.0
    X, Z, coefficients = X.astype(np.float32), Z.astype(np.float32), rng.standard_normal((12, 700))
    kernel, ends = Kernel("rbf", gamma=0.1), np.array([0, 300, 700])
    found = kernel_scores(kernel, X, coefficients, Z, ends=ends)
    expected = kernel_scores(kernel, X.astype(np.float64), coefficients, Z.astype(np.float64), ends=ends)
    np.testing.assert_allclose(found, expected, atol=2e-6 * np.abs(coefficients).sum(axis=1).max())
    one, two = (kernel_scores(kernel, X, coefficients, Z, ends=ends, n_jobs=n) for n in (1, 2))
    assert one.tobytes() == two.tobytes()
