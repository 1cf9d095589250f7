"""Inner products by lines of features, against NumPy."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from widemargin._runtime.lanes import LANES
from widemargin.data.feature_lines import (
    ROWS_TOGETHER,
    lines_of,
    panels_together,
    products_with_lines,
    row_with_lines,
    suits_lines,
    suits_lines_without_zeros,
    values_of_rows,
)

CONTAINERS = pytest.mark.parametrize("container", [np.asarray, csr_array], ids=["dense", "csr"])


def rows_with_zeros(rng, n_rows, n_features):
    X = rng.standard_normal((n_rows, n_features))
    X[rng.random(X.shape) < 0.5] = 0.0
    return X


@CONTAINERS
@pytest.mark.parametrize("n_features", [1, 9, 1000], ids=lambda n: f"{n}-features")
@pytest.mark.parametrize("n_rows", [1, LANES, 4 * LANES + 3])
@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["float32", "float64"])
def test_products_by_lines_are_inner_products(dtype, n_rows, n_features, container, rng):
    X, Z = rows_with_zeros(rng, n_rows, n_features), rows_with_zeros(rng, 20, n_features)
    rows, lines = values_of_rows(container(Z), 2, 19, dtype), lines_of(container(X), dtype)
    assert lines.ctypes.data % 64 == 0
    found = np.full((17, lines.shape[0], LANES), np.nan, dtype)
    for b in range(17):
        row_with_lines(rows, np.uint64(b), lines, found[b])
    found = found.reshape(17, -1)
    assert not found[:, n_rows:].any()
    np.testing.assert_allclose(found[:, :n_rows], Z[2:19] @ X.T, rtol=1e-4, atol=1e-4 if dtype == np.float32 else 1e-12)


@pytest.mark.parametrize("n_features", [1, 64, 1000])
@pytest.mark.parametrize("n_rows", [1, LANES, 5000])
def test_lines_are_the_rows_for_any_number_of_threads(n_rows, n_features, rng):
    X = rng.standard_normal((n_rows, n_features))
    for n_jobs in (1, 2):
        rows = lines_of(X, np.float64, n_jobs).transpose(0, 2, 1).reshape(-1, n_features)
        np.testing.assert_array_equal(rows[:n_rows], X)
        assert not rows[n_rows:].any()


@pytest.mark.parametrize("n_rows", [1, 3, 4, 17])
@pytest.mark.parametrize("n_features", [1, 9, 64], ids=lambda n: f"{n}-features")
@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["float32", "float64"])
def test_rows_that_are_multiplied_together_have_their_own_products(dtype, n_features, n_rows, rng):
    X, Z = rng.standard_normal((LANES + 3, n_features)), rng.standard_normal((n_rows, n_features)).astype(dtype)
    lines = lines_of(X, dtype)
    found = np.full((ROWS_TOGETHER, 2, LANES), np.nan, dtype)
    expected = Z @ X.T
    for b in range(0, n_rows, ROWS_TOGETHER):
        products_with_lines(Z, b, lines, found)
        chosen = np.minimum(np.arange(b, b + ROWS_TOGETHER), n_rows - 1)
        products = found.reshape(ROWS_TOGETHER, -1)
        np.testing.assert_allclose(products[:, : len(X)], expected[chosen], rtol=1e-4, atol=1e-4)
        assert not products[:, len(X) :].any()


def test_lines_suit_short_rows_without_zeros():
    assert suits_lines_without_zeros(np.ones((30, 64)))
    assert not suits_lines_without_zeros(np.ones((30, 65)))


@pytest.mark.parametrize(("n_features", "n_panels"), [(1, 4), (22, 4), (1000, 1)])
def test_few_panels_are_multiplied_together_if_they_are_large(n_features, n_panels):
    assert panels_together(np.empty((9, n_features, LANES))) == n_panels


@CONTAINERS
def test_values_of_rows_are_those_that_are_not_zero(container):
    X = np.array([[9.0, 9.0, 9.0], [0.0, 2.0, 0.0], [0.0, 0.0, 0.0], [3.0, 0.0, np.inf]])
    data, indices, indptr = values_of_rows(container(X), 1, 4, np.float64)
    assert indptr.tolist() == [0, 1, 1, 3]
    assert data[:3].tolist() == [2.0, 3.0, np.inf]
    assert indices[:3].tolist() == [1, 0, 2]


@CONTAINERS
def test_lines_suit_rows_with_few_features_and_many_zeros(container):
    half = np.tile([1.0, 0.0], (30, 5))
    assert suits_lines(container(half))
    assert not suits_lines(container(np.ones((30, 10))))
    assert not suits_lines(container(np.tile(half, (1, 200))))


def test_rows_looked_at_are_of_all_parts():
    halves = np.concatenate([np.zeros((3000, 10)), np.ones((7000, 10))])
    assert not suits_lines(halves)
    assert suits_lines(halves[:6000])
