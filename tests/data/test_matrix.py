"""The matrix's verbs against plain NumPy, for every storage, and what it copies and refuses."""

import numpy as np
import pytest
from scipy.sparse import csc_matrix, csr_array, csr_matrix

from widemargin.data.gram import adder
from widemargin.data.gram_of_few_columns import add_products_of_columns
from widemargin.data.matrix import Matrix
from widemargin.data.outer_products import add_outer_products, add_outer_products_of_ones

CONTAINERS = {
    "dense": np.asarray,
    "dense-f32": lambda X: X.astype(np.float32),
    "fortran": np.asfortranarray,
    "csr_array": csr_array,
    "csr_matrix": csr_matrix,
    "csr-f32": lambda X: csr_array(X.astype(np.float32)),
    "csc": csc_matrix,
    "int": lambda X: np.round(X * 4).astype(np.int64),
}


@pytest.fixture(params=CONTAINERS.values(), ids=CONTAINERS.keys())
def stored(request, clouds):
    """The same rows in one kind of storage, and as a plain array."""
    X = request.param(clouds[0])
    return X, np.asarray(X.todense() if hasattr(X, "todense") else X, dtype=np.float64)


@pytest.mark.parametrize("constant", [0.0, 2.5])
def test_verbs_agree_with_numpy(stored, constant, rng):
    X, plain = stored
    full = np.hstack([plain, np.full((len(plain), 1), constant)]) if constant else plain
    matrix = Matrix(X, constant)
    w, c = rng.standard_normal(full.shape[1]), rng.standard_normal(len(full))
    assert matrix.n_columns == full.shape[1]
    np.testing.assert_allclose(matrix.scores(w), full @ w, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(matrix.combine(c), full.T @ c, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(matrix.squared_norms(), (full**2).sum(axis=1), rtol=1e-12)


@pytest.mark.parametrize("container", [np.asarray, csr_array], ids=["dense", "sparse"])
def test_threads_change_no_bit(container, rng, monkeypatch):
    monkeypatch.setattr("widemargin.data.matrix._VALUES_WORTH_THREADS", 0)
    X = rng.standard_normal((80_000, 9)) * (rng.random((80_000, 9)) < 0.5)
    matrix = Matrix(container(X), 1.0)
    assert len(matrix.ranges()) > 2
    w, c = rng.standard_normal(10), rng.standard_normal(len(X))
    for verb, argument in ((matrix.scores, w), (matrix.combine, c)):
        assert verb(argument, n_jobs=1).tobytes() == verb(argument, n_jobs=2).tobytes()


def test_long_and_short_rows_are_summed_alike(rng):
    X = rng.standard_normal((3, 500))
    X[1, 5:] = 0.0
    w = rng.standard_normal(500)
    np.testing.assert_allclose(Matrix(csr_array(X)).scores(w), X @ w, rtol=1e-12)


def test_row_major_input_is_not_copied(rng):
    X = rng.standard_normal((5, 3))
    assert np.shares_memory(Matrix(X).values, X)
    sparse = csr_array(X)
    assert np.shares_memory(Matrix(sparse).rows.data, sparse.data)


def test_read_only_memory_is_accepted_and_the_callers_array_stays_writable(rng):
    X = rng.standard_normal((5, 3))
    Matrix(X)
    X[0, 0] = 1.0
    X.flags.writeable = False
    np.testing.assert_allclose(Matrix(X).scores(np.ones(3)), X.sum(axis=1))


def test_repeated_and_unsorted_indices_are_summed_without_touching_the_callers_matrix():
    X = csr_array((np.array([1.0, 2.0, 4.0]), np.array([1, 0, 1]), np.array([0, 3])), shape=(1, 2))
    matrix = Matrix(X)
    assert matrix.squared_norms()[0] == 2.0**2 + 5.0**2
    assert X.nnz == 3


def test_64_bit_indices_are_accepted(rng):
    X = csr_array(rng.standard_normal((4, 3)))
    X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    np.testing.assert_allclose(Matrix(X).scores(np.ones(3)), X.toarray().sum(axis=1))


def test_more_columns_than_32_bits_can_count_are_refused():
    X = csr_array((np.ones(1), np.array([2**40], dtype=np.int64), np.array([0, 1], dtype=np.int64)), shape=(1, 2**41))
    with pytest.raises(ValueError, match="at most 2147483647"):
        Matrix(X)


@pytest.mark.parametrize("constant", [0.0, 2.0])
def test_outer_products_of_rows_of_ones_are_those_of_their_values(constant, rng):
    X = csr_array((rng.random((300, 12)) < 0.3).astype(np.float64))
    q = rng.random(300) * (rng.random(300) < 0.8)
    matrix, n = Matrix(X, constant), 12 + (constant != 0.0)
    expected, found = np.zeros((2, n, n))
    add_outer_products(matrix.rows, q, 5, 290, expected)
    add_outer_products_of_ones(matrix.rows, q, 5, 290, found)
    np.testing.assert_allclose(found, expected, rtol=1e-13, atol=1e-13)
    assert np.tril(found).any()


def test_a_matrix_knows_whether_it_stores_only_ones(rng):
    values = np.ones(20_000)
    rows = csr_array((values, np.tile(np.arange(10), 2000), np.arange(0, 20_001, 10)), shape=(2000, 10))
    assert Matrix(rows).stores_only_ones
    for k in (0, 9999, -1):
        other = rows.copy()
        other.data[k] = np.nan
        assert not Matrix(other).stores_only_ones
    assert not Matrix(np.ones((3, 2))).stores_only_ones


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("constant", [0.0, 2.5])
@pytest.mark.parametrize("n_rows", [1, 255, 256, 900])
def test_rows_with_few_columns_are_multiplied_by_columns(n_rows, constant, dtype, rng):
    X = (rng.standard_normal((n_rows, 21)) * (rng.random((n_rows, 21)) < 0.6)).astype(dtype)
    X[0] = 1.0
    matrix, q = Matrix(csr_array(X), constant), rng.standard_normal(n_rows) * (rng.random(n_rows) < 0.8)
    assert adder(matrix, n_rows) is add_products_of_columns
    full = np.hstack([X, np.full((n_rows, 1), constant)]) if constant else X
    for weights in (q, np.abs(q), -np.abs(q), np.zeros(n_rows)):
        expected = full.T.astype(np.float64) @ (weights[:, np.newaxis] * full)
        np.testing.assert_allclose(np.tril(matrix.gram(weights)), np.tril(expected), rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("constant", [0.0, 2.5])
def test_norms_of_rows_of_ones_are_their_lengths(constant, rng):
    X = (rng.random((3000, 40)) < 0.3).astype(np.float64)
    matrix = Matrix(csr_array(X), constant)
    assert matrix.stores_only_ones
    np.testing.assert_array_equal(matrix.squared_norms(), X.sum(axis=1) + constant**2)


@pytest.mark.parametrize("share", [0.2, 1.0])
@pytest.mark.parametrize("container", [np.asarray, csr_array], ids=["dense", "sparse"])
def test_scores_and_combination_are_the_two_verbs_to_the_last_bit(container, share, rng):
    X = rng.standard_normal((9000, 60)) * (rng.random((9000, 60)) < 0.5)
    matrix, w = Matrix(container(X), 1.5), rng.standard_normal(61)
    c = rng.standard_normal(9000) * (rng.random(9000) < share)
    for n_jobs in (1, 2):
        scores, combination = matrix.scores_and_combination(w, c, n_jobs)
        np.testing.assert_array_equal(scores, matrix.scores(w))
        np.testing.assert_array_equal(combination, matrix.combine(c))
