"""ResidentMatrix against Matrix: the same numbers, nothing in memory twice; and for which rows it is taken."""

import threading

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array, issparse
from tests.data.blocks.test_streamed import check_verbs
from tests.data.blocks.written import rows_of_kind, written

from widemargin import LinearSVC, c_path
from widemargin.data.blocks import placement
from widemargin.data.blocks.placement import VECTORS_OF_ROW_LOSSES, matrix_of_blocks
from widemargin.data.blocks.reader import open_blocks
from widemargin.data.blocks.resident import ResidentMatrix
from widemargin.data.blocks.streamed import StreamedMatrix
from widemargin.data.blocks.writer import write_blocks
from widemargin.data.gram import row_cost
from widemargin.data.matrix import Matrix

BYTES = ["ones", "uint8", "dense uint8"]


@pytest.fixture
def always_bytes(monkeypatch):
    """Bytes stay bytes in memory however few there are."""
    monkeypatch.setattr(placement, "_VALUES_WORTH_BYTES", 0)


@pytest.mark.parametrize("joined", [False, True], ids=["blocks", "joined"])
@pytest.mark.parametrize("constant", [0.0, 2.0])
@pytest.mark.parametrize("kind", BYTES)
def test_every_verb_gives_the_numbers_of_a_matrix(kind, constant, joined, tmp_path):
    X = rows_of_kind(kind)
    matrix, expected = ResidentMatrix(written(tmp_path, X), constant), Matrix(X, constant)
    if joined:
        assert matrix.rows is matrix.rows
    check_verbs(matrix, expected, n_jobs=2)
    assert_allclose(matrix.squared_norms(), expected.squared_norms(), rtol=1e-14)
    w, c = np.arange(1.0, expected.n_columns + 1.0), np.linspace(-1.0, 1.0, expected.n_rows)
    scores, combination = matrix.scores_and_combination(w, c, 2)
    assert_array_equal(scores, matrix.scores(w))
    assert_array_equal(combination, matrix.combine(c))


@pytest.mark.parametrize("kind", BYTES)
def test_rows_are_those_of_the_file_in_its_types_and_are_in_memory_once(kind, tmp_path):
    X = rows_of_kind(kind)
    blocks = written(tmp_path, X)
    matrix = ResidentMatrix(blocks, 3.0)
    rows, values = matrix.rows, matrix.values
    assert rows.constant == 3.0
    assert_array_equal(values.toarray() if issparse(X) else values, X.toarray() if issparse(X) else X)
    whole = rows.indices if issparse(X) else rows.values
    assert whole.dtype == (np.uint16 if issparse(X) else np.uint8)
    assert blocks.n_blocks > 1
    for block in matrix._resident.values():
        part = block.rows.indices if issparse(X) else block.rows.values
        assert np.shares_memory(part, whole) or part.size == 0


def test_the_file_is_read_once_whatever_is_asked_for(tmp_path):
    blocks = written(tmp_path, rows_of_kind("ones", 200), block_bytes=200)
    matrix = ResidentMatrix(blocks, 1.0)
    assert matrix.n_passes == pytest.approx(1.0)
    check_verbs(matrix, Matrix(rows_of_kind("ones", 200), 1.0))
    matrix.squared_norms()
    assert len(matrix.rows.indptr) == 201
    assert matrix.n_passes == pytest.approx(1.0)


def test_threads_that_ask_for_rows_at_the_same_time_get_the_same(tmp_path):
    matrix, found = ResidentMatrix(written(tmp_path, rows_of_kind("uint8", 400))), []
    threads = [threading.Thread(target=lambda: found.append(matrix.rows)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(rows is found[0] for rows in found)
    assert len(found) == 8


@pytest.mark.parametrize("kind", [*BYTES, "float32", "dense float64"])
def test_bytes_that_fit_stay_bytes_and_other_values_become_a_matrix(kind, always_bytes, monkeypatch, tmp_path):
    monkeypatch.setattr(placement, "memory_in_use", lambda: 0)
    blocks = written(tmp_path, rows_of_kind(kind, 3000), block_bytes=1 << 8)
    matrix = matrix_of_blocks(blocks, 1.0)
    assert type(matrix) is (ResidentMatrix if kind in BYTES else Matrix)
    assert matrix.is_in_memory
    assert matrix.source is blocks
    tight = 8 * VECTORS_OF_ROW_LOSSES * 3000 + (1 << 12)
    assert type(matrix_of_blocks(blocks, 1.0, max_memory=tight)) is StreamedMatrix


def test_few_bytes_become_a_matrix_whose_loops_are_compiled_already(tmp_path):
    assert type(matrix_of_blocks(written(tmp_path, rows_of_kind("ones")))) is Matrix


def test_columns_that_do_not_occur_are_left_out_of_very_wide_rows_of_ones(always_bytes, tmp_path):
    X = csr_array((np.ones(3), ([0, 1, 2], [5, 7, 4_999_999])), shape=(3, 5_000_000))
    assert matrix_of_blocks(written(tmp_path, X)).n_features == 3


def splice_like(n_rows=400, n_positions=12, seed=0):
    """Return rows with one of four letters at each position, one-hot, and labels that a noisy hyperplane gives."""
    rng = np.random.default_rng(seed)
    columns = rng.integers(0, 4, (n_rows, n_positions)) + 4 * np.arange(n_positions)
    offsets = np.arange(0, n_rows * n_positions + 1, n_positions)
    X = csr_array((np.ones(columns.size), columns.ravel(), offsets), shape=(n_rows, 4 * n_positions))
    scores = X @ rng.standard_normal(4 * n_positions) + rng.standard_normal(n_rows)
    return X, np.where(scores > 0.0, 1, -1)


@pytest.mark.parametrize("solver", ["auto", "newton", "dcd", "avsf", "climb", "ocas", "svmperf", "sbm"])
def test_every_solver_takes_rows_of_ones_as_they_are(solver, always_bytes, monkeypatch, tmp_path):
    X, y = splice_like()
    blocks, made = written(tmp_path, X, y, block_bytes=1000), []
    monkeypatch.setattr(placement, "ResidentMatrix", lambda *options: made.append(1) or ResidentMatrix(*options))
    options = {"loss": "hinge", "C": 0.1, "tol": 1e-5, "solver": solver}
    found, expected = LinearSVC(**options).fit(blocks), LinearSVC(**options).fit(X, y)
    assert made == [1]
    assert found.gap_ <= 1e-5
    assert found.objective_ == pytest.approx(expected.objective_, rel=2e-5)


def test_crammer_singer_and_paths_take_rows_of_ones_as_they_are(always_bytes, tmp_path):
    X, y = splice_like()
    y = y + (X[:, [0]].toarray().ravel() > 0)  # three classes
    blocks = written(tmp_path, X, y, block_bytes=1000)
    options = {"multi_class": "crammer_singer", "C": 0.01, "tol": 1e-4}
    assert LinearSVC(**options).fit(blocks).objective_ == pytest.approx(
        LinearSVC(**options).fit(X, y).objective_, rel=2e-4
    )
    found = c_path(LinearSVC(tol=1e-4), blocks, Cs=[0.01, 0.1], cv=3)
    assert (found.gaps <= 1e-4).all()


def test_counting_bits_makes_the_newton_matrix_of_ones_cheap(tmp_path):
    X, y = splice_like(n_positions=80)
    matrix = ResidentMatrix(written(tmp_path, X, y, block_bytes=1000))
    assert row_cost(matrix) < 0.2 * row_cost(Matrix(X))
    q = np.where(y > 0, 0.5, 0.0)
    assert_allclose(np.tril(matrix.gram(q)), np.tril((X.T * q) @ X.toarray()), rtol=1e-12)


def test_a_sample_of_rows_in_random_order_needs_no_reading(tmp_path):
    X, y = splice_like()
    write_blocks(tmp_path / "shuffled.arrow", [(X, y)], block_bytes=1000)
    matrix = ResidentMatrix(open_blocks(tmp_path / "shuffled.arrow"))
    rows, part = matrix.sample(150, 0)  # ends within a block
    w = np.arange(1.0, 49.0)
    assert_array_equal(part.scores(w), matrix.scores(w)[rows])
    assert part.bytes_read == 0
