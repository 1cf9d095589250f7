"""Row-block files hold the rows that were given, to the last bit, in the order given or as a permutation."""

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array, random_array, vstack
from tests.data.blocks.plain_reader import dense, read_back, table

from widemargin import write_blocks

VALUES = {
    "ones": st.just(1.0),
    "bytes": st.integers(0, 255).map(float),
    "integers": st.integers(-(2**53), 2**53).map(float),
    "singles": st.floats(width=32, allow_nan=False, allow_infinity=False),
    "doubles": st.floats(allow_nan=False, allow_infinity=False),
    "special": st.sampled_from([0.0, -0.0, 1.0, 5e-324, -1e-310, 1e-45, 1.7e308, 255.0, 256.0, 0.1]),
}
TYPES = {"ones": None, "bytes": np.uint8, "singles": np.float32, "doubles": np.float64}


@st.composite
def block_lists(draw):
    """Blocks (X, y, qid, weight) of one kind, a few rows each, some without rows."""
    values = VALUES[draw(st.sampled_from(sorted(VALUES)))]
    is_sparse, has_qid, has_weight, has_strings = (draw(st.booleans()) for _ in range(4))
    n_features = draw(st.integers(0 if is_sparse else 1, 5))
    given_type = draw(st.sampled_from([np.float64, np.float32]))
    blocks = []
    for n_rows in draw(st.lists(st.integers(0, 7), max_size=5)):
        flat = draw(st.lists(values, min_size=n_rows * n_features, max_size=n_rows * n_features))
        with np.errstate(over="ignore"):
            X = np.nan_to_num(np.array(flat, float).reshape(n_rows, n_features).astype(given_type))
        if is_sparse:
            stored = draw(st.lists(st.booleans(), min_size=X.size, max_size=X.size))
            stored = np.array(stored, bool).reshape(X.shape)
            indptr = np.concatenate([[0], np.cumsum(stored.sum(axis=1))])
            X = csr_array((X[stored], np.nonzero(stored)[1], indptr), shape=X.shape)  # zeros that are stored stay
        labels = st.sampled_from(["a", "ü", ""]) if has_strings else st.sampled_from([-1.0, 1.0, 300.0, 0.5, 1e300])
        y = draw(st.lists(labels, min_size=n_rows, max_size=n_rows))
        qid = np.array(draw(st.lists(st.integers(-1, 2), min_size=n_rows, max_size=n_rows)), int) if has_qid else None
        weights = st.floats(0, 1e300)
        weight = np.array(draw(st.lists(weights, min_size=n_rows, max_size=n_rows))) if has_weight else None
        blocks.append((X, np.array(y, object if has_strings else float), qid, weight))
    return blocks


def joined(blocks):
    """Return X, y, qid and weight of all blocks; labels that are strings as numbers."""
    Xs, *others = zip(*blocks, strict=True)
    X = np.concatenate([dense(X) for X in Xs])
    y, qid, weight = (None if one[0] is None else np.concatenate(one) for one in others)
    return X, y, qid, weight


def numbered(y):
    return np.array([["a", "ü", ""].index(one) for one in y]) if y.dtype == object else y


def queries(qid, rows):
    """Return the rows of each query, which are consecutive rows with the same qid, as a sorted list."""
    borders = np.flatnonzero(np.diff(qid)) + 1
    return sorted(part.tolist() for part in np.split(rows, borders))


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(blocks=block_lists(), keep_order=st.booleans(), max_memory=st.sampled_from([10, 300, 2000, 10**7]),
       block_bytes=st.sampled_from([1, 64, 10**6]), seed=st.integers(0, 3))  # fmt: skip
def test_any_rows_come_back_to_the_last_bit(tmp_path, blocks, keep_order, max_memory, block_bytes, seed):
    path = tmp_path / "rows.arrow"
    options = {"keep_order": keep_order, "seed": seed, "max_memory": max_memory, "block_bytes": block_bytes}
    written = write_blocks(path, iter(blocks), **options)
    back = read_back(path)
    n_rows = sum(X.shape[0] for X, *_ in blocks)
    assert (written.rows, back.summary.n_rows, len(back.label)) == (n_rows, n_rows, n_rows)
    assert written.bytes == path.stat().st_size
    assert back.summary.is_shuffled == (not keep_order)
    assert all(n == back.summary.rows_per_block for n in back.n_rows_of_blocks[:-1])
    if n_rows == 0:
        return
    X, y, qid, weight = joined(blocks)
    assert (back.layout.has_qid, back.layout.has_weight) == (qid is not None, weight is not None)
    given, found = table(X, numbered(y), qid, weight), table(back.X, numbered(back.label), back.qid, back.weight)
    if keep_order:
        np.testing.assert_array_equal(found, given)
    np.testing.assert_array_equal(found[np.lexsort(found.T)], given[np.lexsort(given.T)])
    if hasattr(blocks[0][0], "nnz"):
        assert back.X.nnz == sum(X.nnz for X, *_ in blocks)
        assert back.summary.n_stored == back.X.nnz


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(sizes=st.lists(st.integers(1, 9), min_size=1, max_size=12), cuts=st.lists(st.integers(0, 60), max_size=4),
       max_memory=st.sampled_from([50, 1000, 10**7]))  # fmt: skip
def test_queries_stay_together_and_in_their_order_also_across_blocks_given(tmp_path, sizes, cuts, max_memory):
    qid = np.repeat(np.arange(len(sizes)), sizes)
    row = np.arange(len(qid), dtype=float)
    edges = [0, *sorted(min(cut, len(qid)) for cut in cuts), len(qid)]
    blocks = [(row[a:b, None], np.zeros(b - a), qid[a:b]) for a, b in pairwise(edges)]
    write_blocks(tmp_path / "rows.arrow", blocks, max_memory=max_memory, block_bytes=40)
    back = read_back(tmp_path / "rows.arrow")
    assert queries(back.qid, back.X[:, 0]) == queries(qid, row)


@pytest.mark.parametrize("kind", sorted(TYPES))
@pytest.mark.parametrize("is_sparse", [False, True])
def test_types_are_the_narrowest(tmp_path, rng, kind, is_sparse):
    value = {"ones": 1.0, "bytes": 255.0, "singles": 0.5, "doubles": 0.1}[kind]
    X = np.where(rng.random((50, 20)) < 0.3, value, 0.0)
    write_blocks(tmp_path / "rows.arrow", [(csr_array(X) if is_sparse else X, np.ones(50))])
    layout = read_back(tmp_path / "rows.arrow").layout
    assert layout.value_type == (TYPES[kind] if is_sparse or kind != "ones" else np.uint8)
    assert layout.index_type == (np.uint16 if is_sparse else None)


@pytest.mark.parametrize("is_sparse", [False, True])
def test_the_sign_of_zero_stays(tmp_path, is_sparse):
    X = csr_array(([-0.0, 2.0], [0, 1], [0, 2]), shape=(1, 2)) if is_sparse else np.array([[-0.0, 2.0]])
    write_blocks(tmp_path / "rows.arrow", [(X, [1])])
    back = read_back(tmp_path / "rows.arrow").X
    assert np.signbit(back.data if is_sparse else back).ravel().tolist() == [True, False]


@pytest.mark.parametrize(("n_features", "expected"), [(65536, np.uint16), (65537, np.uint32)])
def test_indices_are_16_bits_if_they_fit(tmp_path, n_features, expected):
    X = csr_array(([1.0], [n_features - 1], [0, 1]), shape=(1, n_features))
    write_blocks(tmp_path / "rows.arrow", [(X, [1])])
    back = read_back(tmp_path / "rows.arrow")
    assert back.layout.index_type == expected
    assert back.X.indices.tolist() == [n_features - 1]
    assert bool(back.summary.columns) == (n_features <= 65536)


@pytest.mark.parametrize(
    ("labels", "expected"),
    [([-128, 127], np.int8), ([0, 128], np.int16), ([0, 2**31 - 1], np.int32), ([0, 2**31], np.int64),
     ([0.5, 1], np.float32), ([0.1, 1], np.float64), ([2.0**63], np.float64), ([True, False], np.int8)],
)  # fmt: skip
def test_labels_have_the_narrowest_type(tmp_path, labels, expected):
    write_blocks(tmp_path / "rows.arrow", [(np.ones((1, 1)), [one]) for one in labels], keep_order=True)
    back = read_back(tmp_path / "rows.arrow")
    assert back.layout.label_type == expected
    assert back.label.tolist() == labels


def test_statistics_are_those_of_all_rows(tmp_path, rng):
    X = csr_array(random_array((5000, 40), density=0.3, rng=rng))
    X.data = 1e6 + rng.standard_normal(X.nnz)
    write_blocks(
        tmp_path / "rows.arrow", ((X[a : a + 300], np.ones(len(range(5000)[a : a + 300]))) for a in range(0, 5000, 300))
    )
    summary, whole = read_back(tmp_path / "rows.arrow").summary, X.toarray()
    np.testing.assert_allclose(summary.columns["mean"], whole.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(summary.columns["deviation"], whole.std(axis=0), rtol=1e-9)
    np.testing.assert_array_equal(summary.columns["max_abs"], abs(whole).max(axis=0))
    lengths = np.diff(X.indptr)
    assert summary.longest_row == lengths.max()
    assert summary.squared_lengths == pytest.approx(np.mean(lengths**2.0), rel=1e-12)
    assert summary.largest_norm == pytest.approx((whole**2).sum(axis=1).max(), rel=1e-12)


def test_a_dense_column_far_from_zero_keeps_its_deviation(tmp_path, rng):
    X = 1e8 + rng.standard_normal((20000, 3))
    write_blocks(tmp_path / "rows.arrow", [(X, np.ones(20000))])
    np.testing.assert_allclose(
        read_back(tmp_path / "rows.arrow").summary.columns["deviation"], X.std(axis=0), rtol=1e-6
    )


def test_the_file_does_not_depend_on_memory_or_threads_but_on_the_seed(tmp_path, rng, monkeypatch):
    X, y = rng.random((3000, 5)), rng.integers(0, 2, 3000)

    def written(**options):
        write_blocks(tmp_path / "rows.arrow", [(X, y)], block_bytes=10_000, **options)
        return (tmp_path / "rows.arrow").read_bytes()

    files = {written(max_memory=memory) for memory in (10_000, 200_000, 10**8)}
    monkeypatch.setattr("widemargin._runtime.threads.cpu_count", lambda: 1)
    assert files == {written()}
    assert written(seed=1) not in files


def test_the_beginning_of_a_file_is_a_random_sample(tmp_path):
    n_rows = 100_000
    write_blocks(
        tmp_path / "rows.arrow", [(np.arange(n_rows, dtype=float)[:, None], np.ones(n_rows))], max_memory=10**6
    )
    rows = read_back(tmp_path / "rows.arrow").X[:, 0]
    counts = np.histogram(rows[: n_rows // 10], bins=20, range=(0, n_rows))[0]
    assert abs(counts - 500).max() < 6 * np.sqrt(500)
    assert abs(np.corrcoef(rows[:-1], rows[1:])[0, 1]) < 0.02


@pytest.mark.parametrize("compression", ["lz4", "zstd"])
def test_compressed_files_are_smaller_and_hold_the_same(tmp_path, compression):
    X = np.tile(np.arange(100.0), (1000, 1))
    plain = write_blocks(tmp_path / "plain.arrow", [(X, np.ones(1000))])
    packed = write_blocks(tmp_path / "packed.arrow", [(X, np.ones(1000))], compression=compression)
    assert packed.bytes < plain.bytes / 2
    np.testing.assert_array_equal(read_back(tmp_path / "packed.arrow").X, X)


def test_any_arrow_program_reads_the_columns(tmp_path):
    X = csr_array(np.array([[0, 2.5], [0, 0], [1, 7]]))
    write_blocks(tmp_path / "rows.arrow", [(X, ["b", "a", "b"], [5, 5, 6], [1, 2, 0.5])], keep_order=True)
    with open(tmp_path / "rows.arrow", "rb") as file:
        columns = pa.ipc.open_file(file).read_all().to_pydict()
    assert columns == {
        "label": ["b", "a", "b"], "qid": [5, 5, 6], "weight": [1, 2, 0.5], "indices": [[1], [], [0, 1]],
        "values": [[2.5], [], [1, 7]],
    }  # fmt: skip


def test_classes_ascend_whatever_comes_first(tmp_path):
    blocks = [(np.ones((2, 1)), ["c", "b"]), (np.ones((2, 1)), ["a", "c"])]
    write_blocks(tmp_path / "rows.arrow", blocks, keep_order=True)
    with open(tmp_path / "rows.arrow", "rb") as file:
        label = pa.ipc.open_file(file).read_all().column("label").combine_chunks()
    assert label.dictionary.to_pylist() == ["a", "b", "c"]
    assert label.to_pylist() == ["c", "b", "a", "c"]


def test_blocks_have_about_the_size_asked_for(tmp_path, rng):
    X = csr_array(random_array((20000, 300), density=0.1, rng=rng))
    write_blocks(tmp_path / "rows.arrow", [(X, np.ones(20000))], block_bytes=100_000)
    back = read_back(tmp_path / "rows.arrow")
    size = (tmp_path / "rows.arrow").stat().st_size / len(back.n_rows_of_blocks)
    assert 80_000 < size < 120_000


def test_a_source_without_rows_gives_a_file_without_blocks(tmp_path):
    assert write_blocks(tmp_path / "rows.arrow", []).rows == 0
    assert read_back(tmp_path / "rows.arrow").n_rows_of_blocks == []


def test_a_generator_may_use_its_arrays_again(tmp_path):
    def blocks():
        X = np.empty((1000, 3))
        for k in range(20):
            X[:] = k
            yield X, np.full(1000, k)

    write_blocks(tmp_path / "rows.arrow", blocks())
    back = read_back(tmp_path / "rows.arrow")
    np.testing.assert_array_equal(back.X, np.repeat(back.label[:, None], 3, axis=1))


def test_the_result_prints_itself(tmp_path):
    written = write_blocks(tmp_path / "rows.arrow", [(np.ones((1000, 2)), np.ones(1000))])
    assert str(written).startswith("1,000 rows, 2 features, 1 block, 0.0 MB in ")
    assert written.to_dict()["bytes"] == (tmp_path / "rows.arrow").stat().st_size


GOOD = (np.ones((2, 3)), [1, 2])


@pytest.mark.parametrize(
    ("blocks", "message"),
    [
        ([GOOD, (np.array([[1, 2, 3], [4, np.nan, 6]]), [1, 2])], "row 3, column 1 is nan; every value must be finite"),
        ([GOOD, (np.array([[1, 2, np.inf]]), [1])], "row 2, column 2 is inf"),
        ([(csr_array([[0, 0, -np.inf]]), [1])], "row 0, column 2 is -inf"),
        (
            [GOOD, (np.ones((2, 4)), [1, 2])],
            "columns of X was 3 in the first block, and is 4 in the block that begins with row 2",
        ),
        ([GOOD, (csr_array(np.ones((2, 3))), [1, 2])], "X was an array in the first block, and is sparse"),
        ([GOOD, (np.ones((2, 3)), ["a", "b"])], "labels was numbers in the first block, and is strings"),
        ([GOOD, (np.ones((2, 3)), [1, 2], [1, 1])], "qid was missing in the first block, and is given"),
        ([(np.ones((2, 3)), [1])], "y must have an entry for each of 2 rows of X, got 1"),
        ([(np.ones((2, 3)), [1, 2], [1])], "qid must have an entry for each of 2 rows"),
        ([GOOD, (np.ones((2, 3)), [1, np.nan])], "the label of row 3 is nan"),
        ([(np.ones((2, 3)), [1, None])], "the label of row 1 is nan"),
        ([(np.ones((2, 3)), [1, "a"])], None),
        ([(np.ones((2, 3)), np.array([1, "a"], object))], "y must hold one kind of labels, got int, str"),
        ([(np.ones((2, 3)), [1, 2], [1, 1.5])], "qid must hold integers, got 1.5 in row 1"),
        ([(np.ones((2, 3)), [1, 2], None, [1, -1])], "weight must not be negative, got -1.0 in row 1"),
        ([(np.ones((2, 3)), [1, 2], None, [1, np.inf])], "the weight of row 1 is inf"),
        ([(np.ones(3), [1])], "X must have 2 dimensions, got 1"),
        ([(np.ones((1, 1), complex), [1])], "X must hold real numbers, got complex128"),
        ([(np.array([[2**53 + 1]]), [1])], r"integers must be at most 2\*\*53"),
        ([np.ones((2, 3))], "a block must be a tuple"),
        ([(np.ones((2, 3)),)], "a block must be a tuple .* got tuple of length 1"),
    ],
)
def test_what_makes_no_sense_is_refused_and_leaves_nothing(tmp_path, blocks, message):
    (tmp_path / "rows.arrow").write_bytes(b"old")
    if message is None:  # NumPy makes strings of both
        write_blocks(tmp_path / "rows.arrow", blocks)
        assert sorted(read_back(tmp_path / "rows.arrow").label) == ["1", "a"]
        return
    with pytest.raises(ValueError, match=message):
        write_blocks(tmp_path / "rows.arrow", blocks)
    assert [path.name for path in tmp_path.iterdir()] == ["rows.arrow"]
    assert (tmp_path / "rows.arrow").read_bytes() == b"old"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"compression": "gzip"}, "compression must be None"),
        ({"block_bytes": 0}, "block_bytes must be at least 1"),
        ({"seed": -1}, "seed must be an integer from 0 on"),
        ({"max_memory": "lots"}, "max_memory must be a number of bytes"),
        ({"max_memory": 0}, "max_memory must be a number of bytes"),
        ({"label": "y"}, "label cannot be given if the source is blocks"),
        ({"zero_based": True}, "zero_based cannot be given"),
    ],
)
def test_options_that_make_no_sense_are_refused(tmp_path, options, message):
    with pytest.raises(ValueError, match=message):
        write_blocks(tmp_path / "rows.arrow", [GOOD], **options)


def test_what_is_no_source_is_refused(tmp_path):
    with pytest.raises(TypeError, match="source must be a path"):
        write_blocks(tmp_path / "rows.arrow", np.ones((2, 2)))
    with pytest.raises(TypeError, match="source must be a path"):
        write_blocks(tmp_path / "rows.arrow", 3)


def test_sparse_matrices_of_any_format_are_taken_and_invalid_ones_refused(tmp_path, rng):
    X = random_array((30, 8), density=0.4, rng=rng, format="coo")
    for form in ("csc", "coo", "lil", "bsr"):
        write_blocks(tmp_path / "rows.arrow", [(X.asformat(form), np.ones(30))], keep_order=True)
        np.testing.assert_array_equal(dense(read_back(tmp_path / "rows.arrow").X), X.toarray())
    broken = csr_array(X)
    broken.indices[0] = 100
    with pytest.raises(ValueError, match="X is not a valid CSR matrix"):
        write_blocks(tmp_path / "rows.arrow", [(broken, np.ones(30))])


def test_many_blocks_of_a_caller_are_as_one(tmp_path, rng):
    X = csr_array(random_array((4000, 50), density=0.2, rng=rng))
    parts = [X[a : a + 7] for a in range(0, 4000, 7)]
    write_blocks(tmp_path / "parts.arrow", ((part, np.ones(part.shape[0])) for part in parts))
    write_blocks(tmp_path / "whole.arrow", [(csr_array(vstack(parts)), np.ones(4000))])
    parts, whole = read_back(tmp_path / "parts.arrow"), read_back(tmp_path / "whole.arrow")
    np.testing.assert_array_equal(dense(parts.X), dense(whole.X))
