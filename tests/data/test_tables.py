"""Tables of scores and of sums of rows: the products of NumPy, in every container, and in blocks on disk."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array

from widemargin.data.blocks.reader import open_blocks
from widemargin.data.blocks.streamed import StreamedMatrix
from widemargin.data.blocks.writer import write_blocks
from widemargin.data.matrix import Matrix
from widemargin.data.stacked import StackedMatrix

CONTAINERS = {
    "dense": np.asarray,
    "float32": lambda X: X.astype(np.float32),
    "sparse": csr_array,
    "sparse float32": lambda X: csr_array(X.astype(np.float32)),
}
EACH_CONTAINER = pytest.mark.parametrize("container", CONTAINERS.values(), ids=CONTAINERS.keys())


@pytest.fixture
def X(rng):
    X = rng.standard_normal((70, 9)).astype(np.float32).astype(float)
    X[rng.random(X.shape) < 0.4] = 0.0
    X[3] = 0.0
    return X


def with_constant(X, constant):
    return np.column_stack([X, np.full(len(X), constant)]) if constant else X


@EACH_CONTAINER
@pytest.mark.parametrize("constant", [0.0, 2.0])
@pytest.mark.parametrize("n_outputs", [1, 3, 32, 33, 70])
def test_tables_are_the_products(container, constant, n_outputs, X, rng):
    matrix, full = Matrix(container(X), constant), with_constant(X, constant)
    W = rng.standard_normal((n_outputs, full.shape[1]))
    C = rng.standard_normal((n_outputs, len(X))) * (rng.random((n_outputs, len(X))) < 0.3)
    assert_allclose(matrix.score_table(W), W @ full.T, atol=1e-12)
    assert_allclose(matrix.combine_table(C), C @ full, atol=1e-12)


def test_more_outputs_than_entries_of_a_block_are_summed(X, rng):
    C = rng.standard_normal((5000, len(X))) * (rng.random((5000, len(X))) < 0.01)
    assert_allclose(Matrix(X).combine_table(C), C @ X, atol=1e-12)


def test_tables_do_not_depend_on_threads(rng):
    X = rng.standard_normal((20_000, 20))
    W, C = rng.standard_normal((8, 21)), rng.standard_normal((8, 20_000)) * (rng.random((8, 20_000)) < 0.3)
    one, two = Matrix(X, 1.0), Matrix(X, 1.0)
    assert len(one._table_ranges(8)) > 1
    assert_array_equal(one.score_table(W, 1), two.score_table(W, 2))
    assert_array_equal(one.combine_table(C, 1), two.combine_table(C, 2))


@EACH_CONTAINER
@pytest.mark.parametrize("memory", [0.0, 1e9])
def test_tables_of_blocks_are_those_of_memory(container, memory, X, rng, tmp_path):
    write_blocks(tmp_path / "rows.arrow", [(container(X), np.arange(70))], keep_order=True, block_bytes=700)
    streamed = StreamedMatrix(open_blocks(tmp_path / "rows.arrow"), 2.0, memory)
    assert streamed.blocks.n_blocks > 2
    W = rng.standard_normal((4, 10))
    for share in (0.05, 0.5, 0.0):
        C = rng.standard_normal((4, 70)) * (rng.random((4, 70)) < share)
        assert_allclose(streamed.combine_table(C, 2), C @ with_constant(X, 2.0), atol=1e-12)
    assert_allclose(streamed.score_table(W, 2), W @ with_constant(X, 2.0).T, atol=1e-12)


@EACH_CONTAINER
def test_a_stacked_matrix_is_the_matrix_of_all_scores(container, X, rng):
    stacked = StackedMatrix(Matrix(container(X), 2.0), 3)
    whole = np.kron(np.eye(3), with_constant(X, 2.0))
    w, c = rng.standard_normal(30), rng.standard_normal(210)
    assert (stacked.n_rows, stacked.n_columns) == whole.shape
    assert_allclose(stacked.scores(w), whole @ w, atol=1e-12)
    assert_allclose(stacked.combine(c), whole.T @ c, atol=1e-12)
    assert_allclose(stacked.squared_norms(), (whole**2).sum(axis=1))
