"""A sparse matrix far wider than the columns that occur is worked on without the others, and nothing else changes."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from widemargin.data import columns as module
from widemargin.data.columns import at_columns, occurring_columns, wide_products
from widemargin.data.matrix import Matrix


@pytest.fixture
def narrow(rng):
    """Thirty rows of nine columns, of which each has an entry."""
    return csr_array(rng.standard_normal((30, 9)) * (rng.random((30, 9)) < 0.6))


def widened(X, places, width):
    """Return the matrix whose columns are put to other places of a wider one."""
    return csr_array((X.data, np.asarray(places)[X.indices], X.indptr), shape=(X.shape[0], width))


@pytest.fixture
def small_width(monkeypatch):
    """Let every matrix of 20 columns or more count as wide."""
    monkeypatch.setattr(module, "WIDE", 20)


@pytest.mark.parametrize("width", [64, 65, 1000, 5_000_000, 2**31 - 1])
def test_the_columns_that_occur_are_found_and_numbered_in_order(narrow, width, small_width, rng):
    places = np.sort(rng.choice(min(width, 10**7), 9, replace=False))
    places[-1] = width - 1
    columns, indices = occurring_columns(widened(narrow, places, width))
    np.testing.assert_array_equal(columns, places)
    np.testing.assert_array_equal(indices, narrow.indices)


def test_a_matrix_that_is_not_wide_or_whose_columns_mostly_occur_is_left_alone(narrow, small_width):
    assert occurring_columns(narrow) == (None, None)
    assert occurring_columns(widened(narrow, np.arange(9), 35)) == (None, None)
    assert occurring_columns(widened(narrow, np.arange(9), 36))[0].tolist() == list(range(9))
    assert Matrix.of_columns_that_occur(widened(narrow, np.arange(9), 35)).columns is None
    assert Matrix.of_columns_that_occur(np.ones((3, 50))).columns is None


def test_a_wide_matrix_without_entries_keeps_one_column(small_width):
    matrix = Matrix.of_columns_that_occur(csr_array((3, 100)), 1.0)
    assert (matrix.n_features, matrix.n_columns, matrix.width) == (1, 2, 100)
    assert matrix.spread(np.array([5.0, 7.0])).tolist() == [5.0] + 99 * [0.0] + [7.0]


@pytest.mark.parametrize("constant", [0.0, 2.0])
def test_verbs_on_the_columns_that_occur_are_those_on_all(narrow, constant, small_width, rng):
    places = np.sort(rng.choice(500, 9, replace=False))
    wide = widened(narrow, places, 500)
    matrix, full = Matrix.of_columns_that_occur(wide, constant), Matrix(wide, constant)
    w, c = rng.standard_normal(matrix.n_columns), rng.standard_normal(30)
    assert matrix.n_columns == 9 + (constant > 0.0)
    assert matrix.scores(w).tobytes() == full.scores(matrix.spread(w)).tobytes()
    assert matrix.spread(matrix.combine(c)).tobytes() == full.combine(c).tobytes()
    assert matrix.squared_norms().tobytes() == full.squared_norms().tobytes()
    W = rng.standard_normal((2, 500))
    np.testing.assert_array_equal(matrix.kept(W), W[:, places])
    np.testing.assert_array_equal(matrix.kept(csr_array(W)), W[:, places])
    np.testing.assert_array_equal(full.kept(csr_array(W)), W)


def test_weights_of_several_paths_are_spread_along_the_last_axis(narrow, small_width):
    matrix = Matrix.of_columns_that_occur(widened(narrow, np.arange(9) * 50, 500))
    W = np.arange(54.0).reshape(3, 2, 9)
    full = matrix.spread(W)
    assert full.shape == (3, 2, 500)
    np.testing.assert_array_equal(full[..., ::50][..., :9], W)
    assert np.count_nonzero(full) == 53


def test_some_columns_of_a_matrix_are_taken_without_regard_to_its_width(narrow, rng):
    wide = widened(narrow, np.arange(9) * 10, 100)
    chosen = np.array([0, 5, 20, 80, 99])
    np.testing.assert_array_equal(at_columns(wide, chosen).toarray(), wide.toarray()[:, chosen])
    W = rng.standard_normal((3, 100)) * (rng.random((3, 100)) < 0.3)
    for weights in (W, csr_array(W)):
        np.testing.assert_allclose(wide_products(wide, weights), wide.toarray() @ W.T, rtol=1e-13, atol=1e-13)
