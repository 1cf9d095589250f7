"""Text, tables, arrays and row-block files give the rows that they hold, or say in which row and column they do not."""

import bz2
import gzip
import io
import lzma

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset as ds
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from scipy.sparse import csr_array, random_array
from tests.data.blocks.plain_reader import dense, read_back

from widemargin import FormatError, SvmlightBlocks, read_svmlight, write_blocks, write_svmlight
from widemargin.data.blocks import text
from widemargin.data.svmlight.compression import zstd

PACKERS = {"gzip": gzip.compress, "bzip2": bz2.compress, "xz": lzma.compress, "zstandard": zstd.compress}


@pytest.fixture
def rows(tmp_path, rng):
    """A file of 500 rows with queries, and what it holds."""
    X = csr_array(random_array((500, 30), density=0.2, rng=rng))
    write_svmlight(tmp_path / "rows", X, rng.integers(0, 3, 500), qid=np.repeat(np.arange(50), 10))
    return tmp_path / "rows"


@pytest.fixture
def short_parts(monkeypatch):
    """Parts of text of 1000 bytes."""
    monkeypatch.setattr(text, "_BYTES_PER_PART", 1000)


def assert_holds(path, expected):
    """Assert that a row-block file in the order of the source holds (X, y, qid)."""
    back, (X, y, qid) = read_back(path), expected
    np.testing.assert_array_equal(dense(back.X), dense(X))
    np.testing.assert_array_equal(back.label, y)
    assert (back.qid is None) == (qid is None)
    if qid is not None:
        np.testing.assert_array_equal(back.qid, qid)


# Text


def test_text_in_parts_of_any_length_gives_the_rows_of_the_file(tmp_path, rows, monkeypatch):
    for length in (97, 1000, 10**6):
        monkeypatch.setattr(text, "_BYTES_PER_PART", length)
        write_blocks(tmp_path / "out.arrow", rows, keep_order=True)
        assert_holds(tmp_path / "out.arrow", read_svmlight(rows))


def test_the_file_does_not_depend_on_the_length_of_parts(tmp_path, rows, monkeypatch):
    files = set()
    for length in (97, 1000, 10**6):
        monkeypatch.setattr(text, "_BYTES_PER_PART", length)
        write_blocks(tmp_path / "out.arrow", rows)
        files.add((tmp_path / "out.arrow").read_bytes())
    assert len(files) == 1


@pytest.mark.parametrize("value", [0.1, 7.0, 1.0])
def test_dense_text_is_complete_in_some_blocks_and_has_gaps_in_others(tmp_path, value):
    X = np.full((60, 5), value)
    X[20:24, 2], X[21, :] = 0.0, 0.0
    write_svmlight(tmp_path / "rows", csr_array(X), np.arange(60))
    write_blocks(tmp_path / "out.arrow", tmp_path / "rows", keep_order=True, block_bytes=3 * X.itemsize * 5)
    assert "features" in pa.ipc.open_file(str(tmp_path / "out.arrow")).schema.names
    assert_holds(tmp_path / "out.arrow", read_svmlight(tmp_path / "rows"))


def test_blocks_of_empty_rows_are_sparse(tmp_path):
    (tmp_path / "rows").write_bytes(b"1\n" * 40 + b"2 1:1 90:1\n" * 3)
    write_blocks(tmp_path / "out.arrow", tmp_path / "rows", keep_order=True, block_bytes=16)
    assert_holds(tmp_path / "out.arrow", read_svmlight(tmp_path / "rows"))


def test_streams_and_compressed_text_give_the_same_file_to_the_last_bit(tmp_path, rows, short_parts):
    content, files = rows.read_bytes(), []
    sources = [rows, io.BytesIO(content), SvmlightBlocks(rows, block_bytes=777)]
    for name, pack in PACKERS.items():
        (tmp_path / name).write_bytes(pack(content))
        sources.append(tmp_path / name)
    for source in sources:
        write_blocks(tmp_path / "out.arrow", source)
        files.append((tmp_path / "out.arrow").read_bytes())
    assert len(set(files)) == 1


def test_a_file_without_a_last_newline_and_lines_longer_than_parts_are_read(tmp_path, monkeypatch):
    monkeypatch.setattr(text, "_BYTES_PER_PART", 16)
    content = (
        b"# " + b"c" * 100 + b"\n\n1 1:2 5:1 100:7 # " + b"c" * 50 + b"\n" + b"-1\n" * 11 + b"2 3:1 4:1 5:1 6:1 7:1 8:1"
    )
    (tmp_path / "rows").write_bytes(content)
    for source in (tmp_path / "rows", io.BytesIO(content)):
        write_blocks(tmp_path / "out.arrow", source, keep_order=True)
        assert_holds(tmp_path / "out.arrow", read_svmlight(tmp_path / "rows"))


@pytest.mark.parametrize("mistake", [b"1 qid:1 1:y", b"1 qid:1 3:1 2:1", b"1 1:1", b"x", b"1 qid:1 1:nan"])
def test_mistakes_are_named_as_in_the_whole_file(tmp_path, rows, short_parts, mistake):
    lines = rows.read_bytes().splitlines()
    lines[400:400] = [mistake]
    lines[450:450] = [b"later"]
    rows.write_bytes(b"\n".join(lines))
    with pytest.raises(FormatError, match=":401:") as whole:
        read_svmlight(rows)
    with open(rows, "rb") as file:
        for source in (rows, file):
            with pytest.raises(FormatError, match=":401:") as parts:
                write_blocks(tmp_path / "out.arrow", source)
            assert str(parts.value) == str(whole.value)
    assert not (tmp_path / "out.arrow").exists()


@pytest.mark.parametrize("content", [b"", b"\n# nothing\n" * 500])
def test_text_without_rows_is_refused(tmp_path, short_parts, content):
    (tmp_path / "rows").write_bytes(content)
    for source in (tmp_path / "rows", io.BytesIO(content)):
        with pytest.raises(FormatError, match="holds no rows"):
            write_blocks(tmp_path / "out.arrow", source)


def test_the_number_of_columns_and_the_first_index_may_be_given(tmp_path):
    (tmp_path / "rows").write_bytes(b"1 0:1 2:1\n2 1:1\n")
    write_blocks(tmp_path / "out.arrow", tmp_path / "rows", zero_based=True, n_features=70, keep_order=True)
    back = read_back(tmp_path / "out.arrow")
    assert (back.X.shape, back.X.indices.tolist()) == ((2, 70), [0, 2, 1])
    with pytest.raises(FormatError, match="index 0"):
        write_blocks(tmp_path / "out.arrow", tmp_path / "rows")


def test_full_rows_of_text_are_stored_dense_and_few_values_sparse(tmp_path, rng):
    X = rng.random((50, 8))
    for part, is_sparse in ((X, False), (np.where(X < 0.2, X, 0), True)):
        write_svmlight(tmp_path / "rows", part, np.ones(50))
        write_blocks(tmp_path / "out.arrow", tmp_path / "rows", keep_order=True, n_features=8)
        back = read_back(tmp_path / "out.arrow")
        assert back.layout.is_sparse == is_sparse
        np.testing.assert_array_equal(dense(back.X), part)


def test_values_of_text_are_rounded_to_float32_if_asked(tmp_path, rng):
    X = rng.random((50, 8), dtype=np.float32)
    write_svmlight(tmp_path / "rows", X, np.ones(50))
    write_blocks(tmp_path / "out.arrow", tmp_path / "rows", keep_order=True, dtype=np.float32)
    back = read_back(tmp_path / "out.arrow")
    assert back.X.dtype == np.float32
    np.testing.assert_array_equal(back.X, X)
    with pytest.raises(ValueError, match="dtype must be float64 or float32, got int32"):
        write_blocks(tmp_path / "out.arrow", tmp_path / "rows", dtype=np.int32)


def test_options_of_tables_are_refused_for_text(tmp_path, rows):
    with pytest.raises(ValueError, match="columns, label cannot be given if the source is SVM-light text"):
        write_blocks(tmp_path / "out.arrow", rows, label="y", columns=["a"])


# Tables

TABLE = pa.table(
    {
        "age": pa.array([30, 41, 5, 30], pa.int32()),
        "colour": ["red", "blue", "red", "green"],
        "y": [1, 0, 1, 1],
        "size": pa.array([0.5, 0.0, -0.0, 2.0]),
        "kind": pa.array(["b", "b", "a", "b"]).dictionary_encode(),
        "group": [7, 7, 8, 9],
        "w": [1.0, 2.0, 0.5, 1.0],
        "is_new": [True, False, False, True],
    }
)
NAMES = ("age", "colour=blue", "colour=green", "colour=red", "size", "kind=a", "kind=b", "is_new")
EXPECTED = [[30, 0, 0, 1, 0.5, 0, 1, 1], [41, 1, 0, 0, 0, 0, 1, 0], [5, 0, 0, 1, 0, 1, 0, 0], [30, 0, 1, 0, 2, 0, 1, 1]]


def write_table(kind, path):
    """Write TABLE in a format, or return it as another kind of table."""
    if kind == "parquet":
        pq.write_table(TABLE, path / "t.parquet", row_group_size=2)
    elif kind == "csv":
        pa.csv.write_csv(TABLE.set_column(4, "kind", TABLE["kind"].cast(pa.string())), path / "t.csv")
    elif kind == "feather":
        pa.feather.write_feather(TABLE, path / "t.feather")
    elif kind == "arrow":
        with pa.ipc.new_file(path / "t.arrow", TABLE.schema) as writer:
            writer.write_table(TABLE)
    elif kind == "folder":
        ds.write_dataset(TABLE, path / "t.folder", format="parquet")
    else:
        return {"pandas": TABLE.to_pandas, "polars": lambda: pl.from_arrow(TABLE), "table": lambda: TABLE,
                "dataset": lambda: ds.dataset(TABLE), "batch": lambda: TABLE.to_batches()[0]}[kind]()  # fmt: skip
    return path / f"t.{kind}"


@pytest.mark.parametrize(
    "kind", ["parquet", "csv", "feather", "arrow", "folder", "pandas", "polars", "table", "dataset", "batch"]
)
def test_tables_give_a_feature_for_each_number_and_each_category(tmp_path, kind):
    source = write_table(kind, tmp_path)
    write_blocks(tmp_path / "out.arrow", source, label="y", qid="group", weight="w", keep_order=True)
    back = read_back(tmp_path / "out.arrow")
    assert back.summary.names == NAMES
    np.testing.assert_array_equal(dense(back.X), EXPECTED)
    assert (back.label.tolist(), back.qid.tolist(), back.weight.tolist()) == (
        [1, 0, 1, 1],
        [7, 7, 8, 9],
        [1, 2, 0.5, 1],
    )


def test_columns_are_chosen_in_the_order_given_and_labels_may_be_strings(tmp_path):
    write_blocks(tmp_path / "out.arrow", TABLE, label="colour", columns=["size", "age"], keep_order=True)
    back = read_back(tmp_path / "out.arrow")
    assert (back.summary.names, back.layout.is_sparse) == (("size", "age"), False)
    assert back.label.tolist() == ["red", "blue", "red", "green"]
    np.testing.assert_array_equal(back.X, [[0.5, 30], [0, 41], [0, 5], [2, 30]])
    assert np.signbit(back.X[2, 0])


def test_many_categories_in_many_rows_are_not_stored_dense(tmp_path, rng):
    names = np.array([f"n{k:05d}" for k in range(20_000)])
    chosen = rng.integers(0, len(names), 50_000)
    table = pa.table({"name": names[chosen], "y": np.ones(50_000)})
    write_blocks(tmp_path / "out.arrow", table, label="y", keep_order=True)
    back = read_back(tmp_path / "out.arrow")
    seen = np.unique(names[chosen])
    assert back.summary.names == tuple(f"name={name}" for name in seen)
    assert (back.layout.value_type, back.X.nnz) == (None, 50_000)
    np.testing.assert_array_equal(seen[back.X.indices], names[chosen])


@pytest.mark.parametrize(
    ("columns", "options", "message"),
    [
        ({"x": [1.0, None], "y": [1, 2]}, {"label": "y"}, "row 1, column 'x' is missing"),
        ({"x": [1.0, np.nan], "y": [1, 2]}, {"label": "y"}, "row 1, column 'x' is nan"),
        ({"x": ["a", None], "y": [1, 2]}, {"label": "y"}, "row 1, column 'x' is missing"),
        ({"x": [1.0, 2.0], "y": [1, None]}, {"label": "y"}, "row 1, column 'y' is missing"),
        ({"x": [1.0, 2.0], "y": [1, 2]}, {}, "label must name the column .* its columns are x, y"),
        ({"x": [1.0, 2.0], "y": [1, 2]}, {"label": "z"}, "has no column 'z', or several; its columns are x, y"),
        ({"x": [1.0, 2.0], "y": [1, 2]}, {"label": "y", "columns": ["x", "u"]}, "has no column 'u'"),
        ({"x": [1.0, 2.0], "y": [1, 2]}, {"label": "y", "columns": ["y"]}, "columns must not contain"),
        ({"x": [1.0, 2.0], "y": [1, 2]}, {"label": "y", "qid": "y"}, "must be different columns"),
        ({"y": [1, 2]}, {"label": "y"}, "has no column for features"),
        ({"x": [[1], [2]], "y": [1, 2]}, {"label": "y"}, "column 'x' of the table has the type list<"),
        ({"x": [2**53 + 1, 2], "y": [1, 2]}, {"label": "y"}, "integers must be at most"),
        ({"x": [1, 2], "y": [1, 2]}, {"label": "y", "n_features": 3}, "n_features cannot be given"),
    ],
)
def test_tables_that_make_no_sense_are_refused(tmp_path, columns, options, message):
    with pytest.raises(ValueError, match=message):
        write_blocks(tmp_path / "out.arrow", pa.table(columns), **options)
    assert not (tmp_path / "out.arrow").exists()


@pytest.mark.parametrize("name", ["t.parquet", "t.arrow", "t.feather"])
def test_files_of_another_kind_are_refused(tmp_path, name):
    (tmp_path / name).write_bytes(b"1 1:1\n" * 100)
    with pytest.raises(FormatError, match=name):
        write_blocks(tmp_path / "out.arrow", tmp_path / name, label="y")


def test_missing_files_are_refused(tmp_path):
    for name in ("rows", "t.parquet", "t.arrow", "X.npy"):
        with pytest.raises(FileNotFoundError, match=name):
            write_blocks(tmp_path / "out.arrow", tmp_path / name, **({} if name == "rows" else {"label": "y"}))


def test_pandas_numbers_are_dense_and_keep_their_type(tmp_path, rng):
    frame = pd.DataFrame(rng.random((1000, 3), dtype=np.float32), columns=list("abc"))
    frame["y"] = rng.integers(0, 2, 1000)
    write_blocks(tmp_path / "out.arrow", frame, label="y", keep_order=True)
    back = read_back(tmp_path / "out.arrow")
    assert back.layout.value_type == np.float32
    np.testing.assert_array_equal(back.X, frame[["a", "b", "c"]].to_numpy())


# Arrays and row-block files


def test_arrays_on_disk_are_read(tmp_path, rng, monkeypatch):
    monkeypatch.setattr("widemargin.data.blocks.sources._ARRAY_BYTES_PER_BLOCK", 1000)
    arrays = {
        "X": rng.random((300, 4)),
        "y": rng.integers(0, 9, 300),
        "q": np.repeat([1, 2, 3], 100),
        "w": rng.random(300),
    }
    for name, array in arrays.items():
        np.save(tmp_path / f"{name}.npy", array)
    paths = {what: tmp_path / f"{name}.npy" for what, name in (("label", "y"), ("qid", "q"), ("weight", "w"))}
    write_blocks(tmp_path / "out.arrow", tmp_path / "X.npy", keep_order=True, **paths)
    assert_holds(tmp_path / "out.arrow", (arrays["X"], arrays["y"], arrays["q"]))
    np.testing.assert_array_equal(read_back(tmp_path / "out.arrow").weight, arrays["w"])
    np.save(tmp_path / "y.npy", arrays["y"][:-1])
    with pytest.raises(ValueError, match=r"y.npy must have an entry for each of 300 rows of .*X.npy, got 299"):
        write_blocks(tmp_path / "out.arrow", tmp_path / "X.npy", label=tmp_path / "y.npy")
    with pytest.raises(ValueError, match="label must be the path"):
        write_blocks(tmp_path / "out.arrow", tmp_path / "X.npy")


@pytest.mark.parametrize("is_sparse", [True, False])
def test_a_row_block_file_is_a_source_too(tmp_path, rng, is_sparse):
    X = random_array((300, 20), density=0.3, rng=rng).toarray()
    X[:, 19] = 0  # the number of columns is that of the file
    block = csr_array(X) if is_sparse else X
    y, qid = np.array(["a", "b", "c"])[rng.integers(0, 3, 300)], np.repeat(np.arange(30), 10)
    write_blocks(tmp_path / "one.arrow", [(block, y, qid, np.arange(300.0))], keep_order=True, block_bytes=2000)
    write_blocks(tmp_path / "two.arrow", tmp_path / "one.arrow", keep_order=True, compression="zstd")
    back = read_back(tmp_path / "two.arrow")
    assert_holds(tmp_path / "two.arrow", (X, y, qid))
    np.testing.assert_array_equal(back.weight, np.arange(300))
    assert back.layout.is_sparse == is_sparse
    write_blocks(tmp_path / "three.arrow", tmp_path / "one.arrow")
    assert sorted(read_back(tmp_path / "three.arrow").weight) == list(range(300))
