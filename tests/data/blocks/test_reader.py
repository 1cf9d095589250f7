"""Row-block files: ranges, several files, processes, and every kind of damage."""

import io
import multiprocessing
import os
import pickle
import threading

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.sparse import issparse
from tests.data.blocks.written import KINDS, rows_of_kind, written

from widemargin import LinearSVC
from widemargin.data.blocks import arrow_file
from widemargin.data.blocks.reader import open_blocks
from widemargin.data.blocks.streamed import StreamedMatrix
from widemargin.data.blocks.writer import write_blocks
from widemargin.data.column_scaling import ColumnScaling
from widemargin.errors import FormatError


def contents(blocks):
    """Return all that a file says, as bytes."""
    summary = blocks.summary
    parts = [repr((summary.n_rows, summary.n_features, summary.n_stored, summary.largest_norm, summary.names)).encode()]
    parts += [summary.columns[name].tobytes() for name in sorted(summary.columns)]
    parts += [b"" if one is None else one.tobytes() for one in (blocks.labels, blocks.qid, blocks.weight)]
    for X, y in blocks:
        arrays = (X.data, X.indices, X.indptr) if issparse(X) else (X,)
        parts += [np.ascontiguousarray(one).tobytes() for one in (*arrays, y)]
    return parts


def small_file(folder, kind="float32", labels=None, **options):
    X = rows_of_kind(kind, 12, 3)
    labels = np.arange(12) % 2 if labels is None else labels
    belongings = (np.arange(12) // 4, np.linspace(0.5, 1.0, 12))
    return written(folder, X, labels, block_bytes=40, belongings=belongings, **options)


@pytest.mark.parametrize("kind", KINDS)
def test_rows_labels_queries_and_weights_come_back(kind, tmp_path):
    blocks, X = small_file(tmp_path, kind), rows_of_kind(kind, 12, 3)
    found = blocks.to_memory()
    np.testing.assert_array_equal(*(one.toarray() if issparse(one) else one for one in (found, X)))
    np.testing.assert_array_equal(blocks.labels, np.arange(12) % 2)
    np.testing.assert_array_equal(blocks.qid, np.arange(12) // 4)
    np.testing.assert_array_equal(blocks.weight, np.linspace(0.5, 1.0, 12))
    part = blocks[5:9]
    np.testing.assert_array_equal(part.qid, [1, 1, 1, 2])
    np.testing.assert_array_equal(part.weight, np.linspace(0.5, 1.0, 12)[5:9])
    assert len(part) == part.shape[0] == 4


def test_runs_of_queries_go_across_blocks_and_need_no_qid_of_all_rows(tmp_path, monkeypatch):
    blocks = small_file(tmp_path)
    assert blocks.n_blocks == 3
    monkeypatch.setattr(type(blocks), "qid", property(lambda self: pytest.fail("the queries of all rows were read")))
    for part, starts, names in [(blocks, [0, 4, 8], [0, 1, 2]), (blocks[5:9], [0, 3], [1, 2]), (blocks[:0], [], [])]:
        found = part.query_runs()
        assert (found[0].tolist(), found[1].tolist()) == (starts, names)
    assert written(tmp_path, rows_of_kind("float32", 12, 3), block_bytes=40).query_runs() is None


def test_labels_that_are_strings_come_back_block_by_block(tmp_path):
    names = np.array(["no", "yes", "perhaps"])[np.arange(12) % 3]
    blocks = small_file(tmp_path, labels=names)
    np.testing.assert_array_equal(blocks.labels, names)
    np.testing.assert_array_equal(np.concatenate([y for _, y in blocks[3:]]), names[3:])


def test_labels_in_memory_do_not_hold_the_memory_of_their_blocks(tmp_path):
    blocks = written(tmp_path, rows_of_kind("dense float64", 3000), block_bytes=4000)
    before = pa.total_allocated_bytes()
    labels = blocks.labels
    assert pa.total_allocated_bytes() - before < 0.3 * blocks.n_bytes
    assert len(labels) == 3000


def test_only_consecutive_rows_can_be_chosen(tmp_path):
    blocks = small_file(tmp_path)
    for rows in (3, slice(None, None, 2), slice(None, None, -1), [1, 2]):
        with pytest.raises(TypeError, match=r"blocks\[start:stop\]"):
            blocks[rows]


def test_files_with_other_columns_are_refused(tmp_path):
    first = small_file(tmp_path, name="first.arrow")
    small_file(tmp_path, "float64", name="second.arrow")
    with pytest.raises(FormatError, match=r"second.arrow: the columns are others than those of .*first.arrow"):
        open_blocks([first.paths[0], tmp_path / "second.arrow"])
    with pytest.raises(ValueError, match="at least one file"):
        open_blocks([])


# --- Damage -----------------------------------------------------------------------------------------------------------


def test_a_file_cut_off_anywhere_is_refused_by_name(tmp_path):
    path = tmp_path / "rows.arrow"
    small_file(tmp_path)
    whole = path.read_bytes()
    for size in sorted({0, 1, 7, 8, 9, *range(0, len(whole), 97), len(whole) - 7, len(whole) - 1}):
        path.write_bytes(whole[:size])
        with pytest.raises(FormatError, match=r"rows\.arrow"):
            contents(open_blocks(path))


def contents_or_error(path):
    try:
        return contents(open_blocks(path))
    except FormatError as error:
        return error


def flipped(whole, byte, bit):
    changed = bytearray(whole)
    changed[byte] ^= 1 << bit
    return bytes(changed)


@pytest.mark.parametrize(("kind", "compression"), [("float32", None), ("dense uint8", None), ("float64", "zstd")])
def test_a_flipped_bit_anywhere_is_refused_by_name_or_changes_nothing(kind, compression, tmp_path):
    path = tmp_path / "rows.arrow"
    expected = contents(small_file(tmp_path, kind, compression=compression))
    whole = path.read_bytes()
    n_refused = 0
    for byte in range(0, len(whole), 2):
        path.write_bytes(flipped(whole, byte, byte // 2 % 8))
        found = contents_or_error(path)
        is_refused = isinstance(found, FormatError) and "rows.arrow" in str(found)
        assert is_refused or found == expected, f"byte {byte}"
        n_refused += is_refused
    assert n_refused > len(whole) // 8


@given(data=st.data())
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_flipped_bit_in_the_data_names_file_block_and_byte(data, tmp_path):
    blocks, path = small_file(tmp_path), tmp_path / "rows.arrow"
    whole = path.read_bytes()
    batch = pa.ipc.open_file(pa.OSFile(str(path))).get_batch(1)
    values = batch.column("values").values.buffers()[1].to_pybytes()[: 4 * len(batch.column("values").values)]
    begin = whole.index(values)
    byte, bit = data.draw(st.integers(begin, begin + len(values) - 1)), data.draw(st.integers(0, 7))
    path.write_bytes(flipped(whole, byte, bit))
    blocks = open_blocks(path)
    with pytest.raises(FormatError, match=r"rows\.arrow: .* block 1 of \d+, which begins at byte \d+, has not the"):
        StreamedMatrix(blocks).scores(np.ones(3), 2)
    assert not [one for one in threading.enumerate() if one.name == "widemargin-read-ahead"]


def test_a_flipped_label_is_refused_when_labels_are_read(tmp_path):
    path = tmp_path / "rows.arrow"
    written(tmp_path, rows_of_kind("float64", 12, 3), np.linspace(0.1, 0.9, 12), block_bytes=1 << 12)
    whole = path.read_bytes()
    path.write_bytes(flipped(whole, whole.index(np.linspace(0.1, 0.9, 12).tobytes()) + 20, 3))
    with pytest.raises(FormatError, match=r"rows\.arrow: .* block 0"):
        open_blocks(path).labels  # noqa: B018


def test_labels_are_read_without_the_features_between_them(tmp_path, monkeypatch):
    """Not even by the system, which reads ahead unless it is told that small parts are read."""
    blocks, advice, n_read = written(tmp_path, rows_of_kind("dense float64", 4000), block_bytes=1 << 14), [], []
    monkeypatch.setattr(os, "posix_fadvise", lambda *given: advice.append(given[1:]), raising=False)
    monkeypatch.setattr(os, "POSIX_FADV_RANDOM", "random", raising=False)

    class Counting(io.FileIO):
        def read(self, size=-1):
            found = super().read(size)
            n_read.append(len(found))
            return found

    opened = arrow_file._opened_for_parts
    with Counting(blocks.paths[0]) as file:
        monkeypatch.setattr(arrow_file, "_opened_for_parts", lambda path: opened(path) and pa.PythonFile(file, "r"))
        assert (np.sort(blocks.labels) == np.arange(4000)).all()
    assert advice == [(0, 0, "random")]
    assert 0 < sum(n_read) < 0.3 * blocks.n_bytes


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"nowhere\.arrow"):
        open_blocks(tmp_path / "nowhere.arrow")
    blocks = small_file(tmp_path)
    (tmp_path / "rows.arrow").unlink()
    for read in (lambda: blocks.read(0), lambda: blocks.labels):
        with pytest.raises(FileNotFoundError, match=r"rows\.arrow"):
            read()


@pytest.mark.parametrize("text", [b"", b"+1 1:2 3:4\n" * 100, b"ARROW1\0\0" * 20])
def test_a_file_of_another_kind_is_refused(text, tmp_path):
    (tmp_path / "rows.svm").write_bytes(text)
    with pytest.raises(FormatError, match=r"rows\.svm: this is not a complete row-block file"):
        open_blocks(tmp_path / "rows.svm")


def test_an_arrow_file_of_another_program_is_refused_with_the_way_out(tmp_path):
    path = str(tmp_path / "other.arrow")
    for columns, words in (({"label": [1, 2]}, "neither a column"), ({"x": [1.0]}, "no column 'label'")):
        table = pa.table(columns)
        with pa.ipc.new_file(path, table.schema) as writer:
            writer.write_table(table)
        with pytest.raises(FormatError, match=words):
            open_blocks(path)
    table = pa.table({"label": [1, 2], "indices": pa.array([[0], [1]], pa.list_(pa.uint16()))})
    with pa.ipc.new_file(path, table.schema) as writer:
        writer.write_table(table)
    with pytest.raises(FormatError, match="widemargin convert"):
        open_blocks(path)


def test_a_file_that_changes_during_the_fit_is_refused(tmp_path):
    X = rows_of_kind("dense float32", 3000)
    y = np.where(X[:, 0] + X[:, 1] ** 2 > 0.5, 1, -1)
    blocks, n_read = written(tmp_path, X, y, block_bytes=6000), []
    file = blocks._pieces[0].file
    read = file.read

    def reading(number):
        n_read.append(number)
        if len(n_read) == 25:
            written(tmp_path, X + 1, y, block_bytes=6000)
        return read(number)

    file.read = reading
    model = LinearSVC(solver="ocas", tol=1e-9, max_memory="1TB")
    streamed = StreamedMatrix(blocks, 1.0)
    model._matrix_of = lambda *arguments, **options: streamed
    with pytest.raises(FormatError, match=r"rows\.arrow: the file has changed since it was opened"):
        model.fit(blocks)
    with pytest.raises(FormatError, match="has changed"):
        blocks[:3].labels  # noqa: B018


# --- Processes and threads --------------------------------------------------------------------------------------------


def scores_of(blocks):
    return StreamedMatrix(blocks).scores(np.ones(3)), blocks.labels, os.getpid()


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_each_process_opens_its_own_file(method, tmp_path):
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"no {method} here")
    blocks = small_file(tmp_path)
    mine = scores_of(blocks)
    again = pickle.loads(pickle.dumps(blocks))
    assert contents(again) == contents(blocks)
    with multiprocessing.get_context(method).Pool(1) as pool:
        theirs = pool.map(scores_of, [blocks, blocks[2:7]])
    np.testing.assert_array_equal(theirs[0][0], mine[0])
    np.testing.assert_array_equal(theirs[1][0], mine[0][2:7])
    np.testing.assert_array_equal(theirs[0][1], mine[1])
    assert theirs[0][2] != mine[2]
    written(tmp_path, rows_of_kind("float64", 9, 3), block_bytes=40)
    with pytest.raises(FormatError, match="has changed"):
        pickle.loads(pickle.dumps(blocks)).read(0)


def test_the_first_rows_of_a_file_in_random_order_are_a_sample_of_all(tmp_path):
    path = tmp_path / "rows.arrow"
    X = rows_of_kind("dense float64", 4000, 2)
    write_blocks(path, [(X, np.arange(4000))], block_bytes=4000)
    blocks = open_blocks(path)
    assert blocks.summary.is_shuffled
    labels = blocks.labels
    np.testing.assert_array_equal(np.sort(labels), np.arange(4000))
    assert abs(labels[:400].mean() - 2000) < 200
    rows, _ = StreamedMatrix(blocks).sample(400, 0)
    np.testing.assert_array_equal(rows, np.arange(400))


def test_statistics_of_several_files_are_those_of_all_rows(tmp_path):
    X = rows_of_kind("dense float64", 60)
    X[:, 2] = 0.1
    for k, rows in enumerate((slice(0, 7), slice(7, 40), slice(40, 60))):
        written(tmp_path, X[rows], name=f"{k}.arrow")
    columns = open_blocks([tmp_path / f"{k}.arrow" for k in range(3)]).columns
    np.testing.assert_allclose(columns["mean"], X.mean(axis=0))
    np.testing.assert_allclose(columns["deviation"], X.std(axis=0), atol=1e-9)
    np.testing.assert_array_equal(columns["max_abs"], np.abs(X).max(axis=0))
    assert ColumnScaling.of("standard", columns).scale[2] == 1.0
