"""The matrix of a Newton step whose weights change from step to step."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.sparse import csr_array

from widemargin.data.blocks.row_blocks import RowBlocks
from widemargin.data.blocks.streamed import StreamedMatrix
from widemargin.data.matrix import Matrix
from widemargin.solvers.updated_gram import UpdatedGram


def rows(dtype=np.float64, n_rows=6000, n_columns=40):
    return np.random.default_rng(0).standard_normal((n_rows, n_columns)).astype(dtype)


def ones():
    return csr_array((np.random.default_rng(0).random((3000, 40)) < 0.4).astype(np.float64))


def matrices():
    X, single = rows(), rows(np.float32, n_columns=300)
    few = csr_array(X * (np.random.default_rng(1).random(X.shape) < 0.1))
    of_ones = Matrix(ones(), 2.0)
    of_ones.has_only_ones = True
    return {
        "dense": (Matrix(X, 2.0), X, 1e-12),
        "single": (Matrix(single, 2.0), single.astype(np.float64), 1e-4),
        "sparse": (Matrix(few, 2.0), few.toarray(), 1e-12),
        "ones": (of_ones, ones().toarray(), 1e-12),
        "blocks": (StreamedMatrix(RowBlocks.of_array(X), 2.0, np.inf), X, 1e-12),
    }


@pytest.mark.parametrize("name", matrices())
def test_rows_of_negative_weight_are_subtracted(name):
    matrix, X, rtol = matrices()[name]
    Z = np.column_stack([X, np.full(len(X), 2.0)])
    q = np.random.default_rng(2).choice([-1.5, 0.0, 0.5], len(X))
    expected = (Z.T * q) @ Z
    scale = np.abs((Z.T * np.abs(q)) @ Z).max()
    for n_jobs in (1, 2):
        assert_allclose(np.tril(matrix.gram(q, n_jobs)), np.tril(expected), rtol=0, atol=rtol * scale)


class CountingMatrix(Matrix):
    """Counts the rows that are read."""

    n_read = 0

    def gram(self, q, n_jobs=1):
        self.n_read += np.count_nonzero(q)
        return super().gram(q, n_jobs)


def test_only_rows_whose_weight_has_changed_are_read():
    X = rows()
    matrix, random = CountingMatrix(X), np.random.default_rng(3)
    gram, q = UpdatedGram(matrix), (random.random(len(X)) < 0.5) * 2.0
    gram.lower(q)
    for _ in range(5):
        before, matrix.n_read = q, 0
        q = q.copy()
        q[random.choice(len(X), 100, replace=False)] = random.choice([0.0, 2.0], 100)
        found = gram.lower(q)
        assert_allclose(np.tril(found), np.tril((X.T * q) @ X), rtol=1e-9, atol=1e-9)
        assert matrix.n_read == gram.n_read == np.count_nonzero(q != before)
    matrix.n_read = 0
    gram.lower(q)
    assert matrix.n_read == gram.n_read == 0
    gram.lower(2.0 * q)  # all have changed: the matrix is made anew
    assert matrix.n_read == gram.n_read == np.count_nonzero(q)


def test_large_rows_that_leave_do_not_leave_their_rounding_errors():
    X = rows()
    X[0, 3] = 1e12  # the rounding error of its square is about 1e8
    q = np.ones(len(X))
    gram = UpdatedGram(Matrix(X))
    gram.lower(q)
    q[0] = 0.0
    assert_allclose(np.tril(gram.lower(q)), np.tril((X.T * q) @ X), rtol=1e-9, atol=1e-9)


def test_the_matrix_is_made_anew_after_a_number_of_updates():
    X = rows(n_rows=500)
    matrix = CountingMatrix(X)
    gram, n_anew = UpdatedGram(matrix), 0
    for k in range(120):
        q = np.ones(len(X))
        q[k] = 2.0
        gram.lower(q)
        n_anew += gram.n_read == len(X)
    assert n_anew == 3
