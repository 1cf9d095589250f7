"""Inner products in tiles, against NumPy: dense and sparse, all columns and chosen ones, single and double."""

import tracemalloc

import numpy as np
import pytest
from scipy.sparse import coo_array, csc_array, csr_array, csr_matrix, hstack, random_array

from widemargin.data.products import InnerProducts, squared_norms

TYPES = pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["float32", "float64"])
ACCURACY = {np.float32: 1e-5, np.float64: 1e-13}
CONTAINERS = {
    "dense": np.asarray,
    "fortran": np.asfortranarray,
    "integers": lambda X: np.round(4 * X).astype(np.int64),
    "csr": csr_array,
    "csr-matrix": csr_matrix,
    "csc": csc_array,
    "coo": coo_array,
    "csr-f32": lambda X: csr_array(X.astype(np.float32)),
}
EACH_CONTAINER = pytest.mark.parametrize("container", CONTAINERS.values(), ids=CONTAINERS.keys())
FILLED = pytest.mark.parametrize("density", [0.02, 0.1, 0.5, 1.0])


def rows(rng, n_rows, n_features, density):
    X = rng.standard_normal((n_rows, n_features))
    return np.where(rng.random(X.shape) < density, X, 0.0)


def plain(X):
    return np.asarray(X.todense() if hasattr(X, "todense") else X, dtype=np.float64)


def by_tiles(products, panels, n_rows, columns=None):
    """Collect the products of all panels with all columns, tile by tile, as kernels do."""
    n_columns = products.n_rows if columns is None else len(columns)
    out = np.full((n_rows, n_columns), np.nan)
    with products.workspace() as workspace:
        for k, panel in enumerate(panels):
            begin = k * products.panel_rows
            n_panel = min(products.panel_rows, n_rows - begin)
            for start, stop in products.tiles(0, n_columns):
                values = products.fill(panel, n_panel, columns, start, stop, workspace)
                assert values.dtype == products.dtype
                out[begin : begin + n_panel, start:stop] = values
    return out


@TYPES
@FILLED
@EACH_CONTAINER
def test_rows_with_all_rows_are_numpys_products(container, density, dtype, rng):
    X = container(rows(rng, 150, 40, density))
    products = InnerProducts(X, dtype)
    chosen = rng.permutation(150)[:140]  # more than one panel, the last of them not full
    found = by_tiles(products, products.panels(chosen), 140)
    np.testing.assert_allclose(found, plain(X)[chosen] @ plain(X).T, atol=40 * ACCURACY[dtype])


@TYPES
@FILLED
def test_chosen_columns_come_in_the_order_asked_for(density, dtype, rng):
    X = rows(rng, 100, 30, density)
    products = InnerProducts(X, dtype)
    columns = rng.permutation(100)[:77].astype(np.uint32)
    found = by_tiles(products, products.panels(np.arange(5, 45)), 40, columns)
    np.testing.assert_allclose(found, X[5:45] @ X[columns].T, atol=30 * ACCURACY[dtype])


@TYPES
@FILLED
@pytest.mark.parametrize("other", [np.asarray, csr_array], ids=["dense", "csr"])
def test_rows_of_another_matrix_may_be_stored_otherwise(density, other, dtype, rng):
    X, Z = rows(rng, 60, 20, density), rows(rng, 37, 20, 0.6)
    products = InnerProducts(X, dtype)
    found = by_tiles(products, products.panels_of(other(Z)), 37)
    np.testing.assert_allclose(found, Z @ X.T, atol=20 * ACCURACY[dtype])


@FILLED
def test_more_columns_than_one_tile_leave_no_seam(density, rng):
    X = rows(rng, 5000, 8, density)
    products = InnerProducts(X, np.float64)
    assert len(products.tiles(0, 5000)) > 1
    np.testing.assert_allclose(by_tiles(products, products.panels(np.arange(3)), 3), X[:3] @ X.T, atol=1e-12)


def test_tiles_cover_every_column_once():
    products = InnerProducts(np.ones((10_000, 1)), np.float32)
    covered = [j for start, stop in products.tiles(7, 9001) for j in range(start, stop)]
    assert covered == list(range(7, 9001))


@EACH_CONTAINER
def test_squared_norms_are_those_of_the_rows_in_double_precision(container, rng):
    X = container(rows(rng, 50, 30, 0.1))
    norms = squared_norms(X)
    assert norms.dtype == np.float64
    assert norms.shape == (50,)
    np.testing.assert_allclose(norms, (plain(X) ** 2).sum(axis=1), rtol=1e-14)


def test_values_stored_twice_count_once_added_up():
    twice = csr_array((np.array([1.0, 2.0, 5.0]), np.array([0, 0, 29]), np.array([0, 2, 3])), shape=(2, 30))
    products = InnerProducts(twice, np.float64)
    np.testing.assert_array_equal(by_tiles(products, products.panels(np.arange(2)), 2), [[9.0, 0.0], [0.0, 25.0]])
    np.testing.assert_array_equal(squared_norms(twice), [9.0, 25.0])


def test_a_threads_memory_is_not_another_threads():
    products = InnerProducts(np.eye(3), np.float64)
    with products.workspace() as one, products.workspace() as other:
        assert not any(np.shares_memory(a, b) for a in one for b in other)


@pytest.mark.parametrize("container", [np.asarray, csr_array], ids=["dense", "csr"])
def test_rows_and_columns_of_nothing_are_zero_products(container):
    X = container(np.zeros((40, 3)))
    products = InnerProducts(X, np.float32)
    assert not by_tiles(products, products.panels(np.arange(40)), 40).any()


def test_the_data_are_not_changed(rng):
    X = rows(rng, 30, 10, 1.0)
    X.flags.writeable = False
    before = X.copy()
    products = InnerProducts(X, np.float64)
    by_tiles(products, products.panels(np.arange(30)), 30)
    assert np.array_equal(X, before)


@TYPES
def test_columns_that_do_not_occur_take_no_memory(dtype, rng):
    n_features = 50_000_000
    X = csr_array(([1.0, 2.0, 3.0, 4.0], [7, n_features - 1, 7, 12_345_678], [0, 2, 4]), shape=(2, n_features))
    Z = csr_array(([5.0, 6.0, 7.0], [0, 7, n_features - 1], [0, 2, 3]), shape=(2, n_features))
    by_tiles(products := InnerProducts(X, dtype), products.panels(np.arange(2)), 2)  # compiled now, if it has to be
    tracemalloc.start()
    products = InnerProducts(X, dtype)
    of_X, of_Z = by_tiles(products, products.panels(np.arange(2)), 2), by_tiles(products, products.panels_of(Z), 2)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2_000_000  # most of it the memory of a tile
    np.testing.assert_array_equal(of_X, [[5.0, 3.0], [3.0, 25.0]])
    np.testing.assert_array_equal(of_Z, [[6.0, 18.0], [14.0, 0.0]])


@TYPES
def test_very_many_columns_are_multiplied_by_lists(dtype, rng):
    n_features = 200_000  # each occurs in one of the first rows
    X = csr_array((np.ones(n_features), np.arange(n_features), np.linspace(0, n_features, 101).astype(int)))
    X = csr_array(X + csr_array((rng.standard_normal(300), (rng.integers(100, size=300), np.full(300, 3))), X.shape))
    products = InnerProducts(X, dtype)
    found, expected = by_tiles(products, products.panels(np.arange(100)), 100), (X @ X.T).toarray()
    np.testing.assert_allclose(found, expected, rtol=1e-4 if dtype == np.float32 else 1e-12)
    Z = csr_array((rng.standard_normal(40), (np.arange(40), rng.integers(n_features, size=40))), (40, n_features))
    np.testing.assert_allclose(by_tiles(products, products.panels_of(Z), 40), (Z @ X.T).toarray(), atol=1e-5)


@TYPES
def test_lists_of_several_blocks_serve_any_range_and_any_choice_of_columns(dtype, rng):
    frequent = csr_array(rng.standard_normal((5000, 1)))  # a column of all rows: a line, not a list
    X = hstack([random_array((5000, 3000), density=0.002, rng=rng), frequent], format="csr")
    products, dense = InnerProducts(X, dtype), X.toarray()
    assert products.ranges(20_000) == [(0, 8192), (8192, 16_384), (16_384, 20_000)]
    chosen, columns = np.array([4999, 3, 2048]), rng.permutation(5000)[:4500].astype(np.uint32)
    panel = products.panels(chosen)[0]
    for of in (None, columns, None):
        expected = dense[chosen] @ (dense if of is None else dense[of]).T
        for start, stop in ((0, 4500), (5, 2047), (2040, 4100), (4096, 4097)):
            with products.workspace() as workspace:
                tiles = products.tiles(start, stop)
                found = np.hstack([products.fill(panel, 3, of, *tile, workspace).copy() for tile in tiles])
            np.testing.assert_allclose(found, expected[:, start:stop], atol=30 * ACCURACY[dtype])


def test_rows_without_any_value_have_products_of_zero():
    X = csr_array((3, 10_000_000))
    products = InnerProducts(X, np.float64)
    Z = csr_array(([1.0], [5], [0, 1]), shape=(1, 10_000_000))
    assert not by_tiles(products, products.panels(np.arange(3)), 3).any()
    assert not by_tiles(products, products.panels_of(Z), 1).any()
