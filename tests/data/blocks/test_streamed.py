"""StreamedMatrix against Matrix: the same numbers, for all kinds of rows, blocks and amounts of memory."""

import threading

import numpy as np
import pytest
from scipy.sparse import csr_array, issparse
from tests.data.blocks.written import KINDS, rows_of_kind, written

from widemargin._runtime.threads import run, single_threaded_blas
from widemargin.data.blocks.placement import matrix_of_arrays, matrix_of_blocks
from widemargin.data.blocks.reader import open_blocks
from widemargin.data.blocks.row_blocks import RowBlocks, to_scipy
from widemargin.data.blocks.streamed import StreamedMatrix
from widemargin.data.blocks.writer import write_blocks
from widemargin.data.column_scaling import ColumnScaling, column_statistics
from widemargin.data.matrix import Matrix

BLOCKS = {"one row per block": 1, "some rows per block": 90, "one block": 1 << 20}
MEMORY = (0.0, 1000.0, np.inf)  # for nothing, some blocks and rows, everything


def dense(X):
    return X.toarray() if issparse(X) else np.asarray(X)


def scaled_copy(X, scaling):
    """Return the scaled rows as an array, or the rows as they are."""
    if scaling is None:
        return X
    how = ColumnScaling.of(scaling, column_statistics([X]))
    return (dense(X) - how.centre) / how.scale


def matrices(folder, X, constant, memory, block_bytes=300, scaling=None):
    """Return the StreamedMatrix of rows, and the Matrix of the same rows."""
    blocks = written(folder, X, block_bytes=block_bytes)
    how = None if scaling is None else ColumnScaling.of(scaling, blocks.summary.columns)
    return StreamedMatrix(blocks, constant, memory, how), Matrix(scaled_copy(X, scaling), constant)


def check_verbs(streamed, expected, n_jobs=1):
    """Compare every verb, twice, so that what is kept in memory is used, too."""
    rng = np.random.default_rng(1)
    n_rows, n_columns = expected.n_rows, expected.n_columns
    w, W = rng.standard_normal(n_columns), rng.standard_normal((3, n_columns))
    c, few = rng.standard_normal(n_rows), np.where(rng.random(n_rows) < 0.2, rng.random(n_rows), 0.0)
    options = {"rtol": 1e-9, "atol": 1e-9}
    for _ in range(2):
        likely = lambda start, stop: np.flatnonzero(few[start:stop])  # noqa: E731
        np.testing.assert_allclose(streamed.scores(w, n_jobs, likely=likely), expected.scores(w), **options)
        np.testing.assert_allclose(streamed.scores_of_all(W, n_jobs), expected.scores_of_all(W), **options)
        for one in (c, few, np.zeros(n_rows), np.abs(c)):
            np.testing.assert_allclose(streamed.combine(one, n_jobs), expected.combine(one), **options)
            scores, combination = streamed.scores_and_combination(w, one, n_jobs)
            np.testing.assert_array_equal(scores, streamed.scores(w, n_jobs))
            np.testing.assert_array_equal(combination, streamed.combine(one, n_jobs))
        for one in (few, np.abs(c), np.zeros(n_rows)):
            found = np.tril(streamed.gram(one, n_jobs))
            np.testing.assert_allclose(found, np.tril(expected.gram(one)), **options)
    assert (streamed.squared_norms() >= expected.squared_norms() * (1.0 - 1e-12)).all()
    assert (streamed.n_rows, streamed.n_columns) == (n_rows, n_columns)
    assert streamed.longest_row >= (expected.longest_row if streamed.scaling is None else 1)


@pytest.mark.parametrize("memory", MEMORY)
@pytest.mark.parametrize("kind", KINDS)
def test_every_verb_gives_the_numbers_of_a_matrix_in_memory(kind, memory, tmp_path):
    check_verbs(*matrices(tmp_path, rows_of_kind(kind), 0.0, memory))


@pytest.mark.parametrize("block_bytes", BLOCKS.values(), ids=BLOCKS)
@pytest.mark.parametrize("kind", ["dense float32", "ones", "float64"])
def test_blocks_of_any_size_and_a_constant_column_give_the_same_numbers(kind, block_bytes, tmp_path):
    streamed, expected = matrices(tmp_path, rows_of_kind(kind), 2.5, 200.0, block_bytes)
    assert (streamed.blocks.n_blocks == 1) == (block_bytes == 1 << 20)
    assert (streamed.blocks.n_blocks == 37) == (block_bytes == 1)
    check_verbs(streamed, expected)


@pytest.mark.parametrize("constant", [0.0, 0.5])
@pytest.mark.parametrize("scaling", ["standard", "maxabs"])
@pytest.mark.parametrize("kind", ["dense uint8", "dense float64", "ones", "float32"])
def test_scaled_columns_give_the_numbers_of_scaled_rows(kind, scaling, constant, tmp_path):
    check_verbs(*matrices(tmp_path, rows_of_kind(kind), constant, 300.0, scaling=scaling))


@pytest.mark.parametrize("scaling", [None, "standard"])
@pytest.mark.parametrize("kind", ["dense float32", "float64"])
def test_results_are_equal_to_the_bit_for_any_threads_and_any_memory(kind, scaling, tmp_path):
    X, rng = rows_of_kind(kind, 300), np.random.default_rng(3)
    blocks = written(tmp_path, X, block_bytes=200)
    how = None if scaling is None else ColumnScaling.of(scaling, blocks.summary.columns)
    w, c = rng.standard_normal(6), rng.standard_normal(300)
    few = np.where(rng.random(300) < 0.2, np.abs(c), 0.0)
    found = []
    for memory in (0.0, 1000.0, 5000.0, np.inf):
        for n_jobs in (1, 2, 3):
            matrix = StreamedMatrix(blocks, 1.0, memory, how)
            with single_threaded_blas():
                parts = []
                for _ in range(2):
                    scores = matrix.scores(w, n_jobs, likely=lambda start, stop: np.flatnonzero(few[start:stop]))
                    sums = (matrix.combine(few, n_jobs), matrix.combine(c, n_jobs), matrix.gram(few, n_jobs))
                    parts.append(b"".join(one.tobytes() for one in (scores, *sums)))
            assert parts[0] == parts[1]
            found.append(parts[0])
    assert len(set(found)) == 1


@pytest.mark.parametrize("kind", ["dense float32", "float64"])
def test_a_range_of_rows_has_the_numbers_of_these_rows(kind, tmp_path):
    X = rows_of_kind(kind)
    blocks = written(tmp_path, X, block_bytes=90)
    for start, stop in ((0, 37), (0, 5), (3, 30), (8, 9), (36, 37), (-9, None)):
        part = blocks[start:stop]
        check_verbs(StreamedMatrix(part, 1.0, 100.0), Matrix(X[start:stop], 1.0))
        np.testing.assert_array_equal(part.labels, np.arange(37)[start:stop])
        np.testing.assert_array_equal(dense(part.to_memory()), dense(X[start:stop]))
    again = blocks[5:30][2:20][1:]
    np.testing.assert_array_equal(again.labels, np.arange(8, 25))
    check_verbs(StreamedMatrix(again), Matrix(X[8:25]))


@pytest.mark.parametrize("kind", ["dense float32", "float64"])
def test_several_files_are_their_rows_one_after_the_other(kind, tmp_path):
    X = rows_of_kind(kind)
    for k, rows in enumerate((slice(0, 10), slice(10, 11), slice(11, 37))):
        written(tmp_path, X[rows], np.arange(37)[rows], name=f"{k}.arrow")
    blocks = open_blocks([tmp_path / f"{k}.arrow" for k in range(3)])
    assert not blocks.summary.is_shuffled
    np.testing.assert_array_equal(blocks.labels, np.arange(37))
    check_verbs(StreamedMatrix(blocks, 1.0, 200.0), Matrix(X, 1.0))
    how = ColumnScaling.of("standard", blocks.summary.columns)
    check_verbs(StreamedMatrix(blocks, 0.0, 200.0, how), Matrix(scaled_copy(X, "standard")))


@pytest.mark.parametrize("scaling", ["standard", "maxabs"])
def test_a_range_of_rows_is_scaled_by_its_own_columns(scaling, tmp_path):
    X = rows_of_kind("float64")
    X.data[:40] *= 1000.0
    blocks = written(tmp_path, X, block_bytes=90)[20:]
    matrix = matrix_of_blocks(blocks, 1.0, scaling=scaling)
    check_verbs(matrix, Matrix(scaled_copy(X[20:], scaling), 1.0))


def test_scaling_without_statistics_in_the_file_makes_a_pass(tmp_path):
    n_features = (1 << 16) + 3
    X = csr_array((np.arange(1.0, 7.0), ([0, 0, 1, 2, 3, 4], [1, 70_00, 1, 2, n_features - 1, 1])), (5, n_features))
    blocks = written(tmp_path, X)
    assert not blocks.summary.columns
    matrix = matrix_of_blocks(blocks, scaling="standard")
    how = ColumnScaling.of("standard", column_statistics([X]))
    w = np.random.default_rng(0).standard_normal(n_features)
    np.testing.assert_allclose(matrix.scores(w), ((X.toarray() - how.centre) / how.scale) @ w, rtol=1e-9)
    assert (matrix.squared_norms() >= (((X.toarray() - how.centre) / how.scale) ** 2).sum(axis=1) - 1e-9).all()


@pytest.mark.parametrize("keep_order", [False, True])
@pytest.mark.parametrize("scaling", [None, "standard"])
def test_a_sample_has_the_rows_that_it_names(keep_order, scaling, tmp_path):
    X = rows_of_kind("float64", 200)
    path = tmp_path / "rows.arrow"
    write_blocks(path, [(X, np.arange(200))], keep_order=keep_order, block_bytes=300)
    blocks = open_blocks(path)
    how = None if scaling is None else ColumnScaling.of(scaling, blocks.summary.columns)
    whole = StreamedMatrix(blocks, 1.0, np.inf, how)
    w = np.arange(6.0)
    scores = whole.scores(w)
    rows, part = whole.sample(70, 3)
    assert part.n_rows == len(rows) == len(set(rows)) == 70
    assert (np.diff(rows) > 0).all()
    np.testing.assert_array_equal(part.scores(w), scores[rows])
    assert (part.squared_norms() <= whole.squared_norms()[0]).all()
    again, inner = part.sample(9, 1)
    np.testing.assert_array_equal(inner.scores(w), scores[rows][again])
    if keep_order:  # a random choice, not the beginning of the file
        assert rows[-1] > 100


def test_a_sample_of_rows_in_order_stays_within_memory(tmp_path):
    X = rows_of_kind("dense float64", 20_000, 4)
    blocks = written(tmp_path, X, block_bytes=1 << 14)
    matrix = StreamedMatrix(blocks, 0.0, memory=11_000 * 32)
    rows, part = matrix.sample(18_000, 0)
    assert 5000 <= len(rows) == part.n_rows <= 11_000  # what the memory holds
    np.testing.assert_array_equal(part.scores(np.ones(4)), Matrix(X[rows]).scores(np.ones(4)))


@pytest.mark.parametrize("scaling", [None, "maxabs"])
@pytest.mark.parametrize("kind", ["dense float32", "ones", "float64"])
def test_blocks_are_visited_in_order_with_their_rows(kind, scaling, tmp_path):
    streamed, expected = matrices(tmp_path, rows_of_kind(kind), 2.0, 0.0, scaling=scaling)
    w, ends = np.random.default_rng(0).standard_normal(6), []
    scores = expected.scores(w)

    def visit(rows, start, stop):
        ends.append((start, stop))
        found = dense(to_scipy(rows, 5)).astype(np.float64) @ w[:5] + rows.constant * w[5]
        np.testing.assert_allclose(found, scores[start:stop], rtol=1e-9, atol=1e-9)

    streamed.visit_blocks(visit)
    assert ends == streamed.blocks.ends()


def test_visits_end_soon_after_an_interrupt(tmp_path):
    blocks = written(tmp_path, rows_of_kind("float64", 300), block_bytes=20)
    matrix, interrupt, visited = StreamedMatrix(blocks), threading.Event(), []

    def visit(rows, start, stop):
        visited.append(start)
        interrupt.set()

    matrix.visit_blocks(visit, interrupt)
    assert visited == [0]
    assert matrix.n_passes < 0.5


def test_rows_kept_in_memory_save_passes(tmp_path):
    X = rows_of_kind("dense float64", 400)
    blocks = written(tmp_path, X, block_bytes=800)
    few = np.zeros(400)
    few[::40] = 1.0
    matrix = StreamedMatrix(blocks, 0.0, memory=0.4 * blocks.n_bytes)
    matrix.scores(np.ones(5), likely=lambda start, stop: np.flatnonzero(few[start:stop]))
    assert matrix.n_passes == pytest.approx(1.0)
    np.testing.assert_allclose(matrix.combine(few), X.T @ few)
    assert matrix.n_passes == pytest.approx(1.0)
    matrix.combine(np.ones(400))
    assert 1.0 < matrix.n_passes < 2.0  # some blocks are in memory


def test_scores_and_a_combination_take_one_pass(tmp_path):
    X = rows_of_kind("dense float64", 400)
    matrix = StreamedMatrix(written(tmp_path, X, block_bytes=800))
    c = np.linspace(-1.0, 1.0, 400)
    scores, combination = matrix.scores_and_combination(np.arange(5.0), c, 2)
    np.testing.assert_allclose(scores, X @ np.arange(5.0))
    np.testing.assert_allclose(combination, X.T @ c)
    assert matrix.n_passes == pytest.approx(1.0)


def test_everything_that_fits_is_read_once(tmp_path):
    blocks = written(tmp_path, rows_of_kind("uint8", 400), block_bytes=200)
    matrix = StreamedMatrix(blocks, 1.0, memory=2.0 * blocks.n_bytes)
    check_verbs(matrix, Matrix(rows_of_kind("uint8", 400), 1.0), n_jobs=2)
    assert matrix.n_passes == pytest.approx(1.0)
    assert matrix.bytes_read == pytest.approx(blocks.n_bytes, rel=0.01)


def test_two_threads_with_passes_at_the_same_time_do_not_wait_for_each_other(tmp_path):
    """A block that one thread keeps in memory while the other one reads it must not occupy the other's ring."""
    X = rows_of_kind("dense float64", 400)
    blocks = written(tmp_path, X, block_bytes=100)
    matrix, expected = StreamedMatrix(blocks, 0.0, memory=0.7 * blocks.n_bytes), Matrix(X).scores(np.ones(5))
    first_block = threading.Event()

    def slow_pass():
        """Begin a pass, and go on when another one has read all blocks."""

        def likely(start, stop):
            if start == 0:
                first_block.set()
                done.wait(20)
            return np.zeros(0, np.int64)

        return matrix.scores(np.ones(5), likely=likely)

    def quick_pass():
        first_block.wait(20)
        try:
            return matrix.scores(np.ones(5))
        finally:
            done.set()

    done, found = threading.Event(), []
    threads = [threading.Thread(target=lambda f=f: found.append(f()), daemon=True) for f in (slow_pass, quick_pass)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert not any(thread.is_alive() for thread in threads)
    for scores in found:
        np.testing.assert_allclose(scores, expected)


def test_many_passes_at_the_same_time_give_the_same_numbers(tmp_path):
    X = rows_of_kind("float64", 300)
    matrix = StreamedMatrix(written(tmp_path, X, block_bytes=100), 1.0, memory=900.0)
    c = np.random.default_rng(0).standard_normal((12, 300))
    expected = [StreamedMatrix(matrix.blocks, 1.0).combine(one).tobytes() for one in c]
    found = run(lambda one: matrix.combine(one).tobytes(), [(one,) for one in c], 3)
    assert found == expected


def test_an_array_in_memory_as_row_blocks_has_the_same_numbers():
    X = rows_of_kind("float64")
    check_verbs(matrix_of_arrays(X, 1.0, "standard"), Matrix(scaled_copy(X, "standard"), 1.0))
    assert issparse(RowBlocks.of_array(X).to_memory())


def test_no_rows_are_no_numbers(tmp_path):
    for kind in ("dense float32", "float64"):
        blocks = written(tmp_path, rows_of_kind(kind))[4:4]
        matrix = StreamedMatrix(blocks, 1.0, 100.0)
        assert matrix.scores(np.ones(6)).shape == (0,)
        np.testing.assert_array_equal(matrix.combine(np.zeros(0)), np.zeros(6))
        assert blocks.to_memory().shape == (0, 5)
        assert len(blocks.labels) == 0
        assert blocks.qid is None
