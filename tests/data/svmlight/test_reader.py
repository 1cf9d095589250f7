"""What the text format allows and refuses, where text may come from, and what is written."""

import bz2
import gzip
import io
import lzma
import os
import subprocess
import sys
from importlib import import_module

import numpy as np
import pytest
from scipy.sparse import coo_array, csr_array, csr_matrix

from widemargin.data.svmlight import reader, writer
from widemargin.data.svmlight.compression import zstd
from widemargin.data.svmlight.reader import read_svmlight
from widemargin.data.svmlight.writer import write_svmlight
from widemargin.errors import FormatError

COMPRESS = {
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zst": lambda data: zstd.compress(data, options={zstd.CompressionParameter.checksum_flag: True}),
}


def read_bytes(data, **options):
    return read_svmlight(io.BytesIO(data), **options)


def same_bits(a, b):
    return a.dtype == b.dtype and a.tobytes() == b.tobytes()


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture(params=[1, 7, 50, 1 << 20])
def chunk_bytes(request, monkeypatch):
    monkeypatch.setattr(reader, "_CHUNK_BYTES", request.param)
    return request.param


# What the format allows


@pytest.mark.parametrize(
    ("text", "label", "columns", "values"),
    [
        (b"1 1:2 3:4\n", 1, [0, 2], [2, 4]),
        (b"+1 1:2", 1, [0], [2]),
        (b"-1.5e-3 1:1e-5 2:1E+5\n", -1.5e-3, [0, 1], [1e-5, 1e5]),
        (b"0 1:.5 2:5. 3:-.5\n", 0, [0, 1, 2], [0.5, 5, -0.5]),
        (b"  1 \t 1:2   2:3\t\n", 1, [0, 1], [2, 3]),
        (b"1 1:2\r\n", 1, [0], [2]),
        (b"1 1:2\r", 1, [0], [2]),
        (b"# all\n\n \t\n1 1:2# end 3:4\n", 1, [0], [2]),
        (b"1 1:0 2:-0\n", 1, [0, 1], [0.0, -0.0]),
        (b"7\n", 7, [], []),
        (b"1 0000000000000000000001:2\n", 1, [0], [2]),
        (b"1 1:2 # \xc3\xa9\x00 ok\n", 1, [0], [2]),
        (b"1 2147483646:1", 1, [2147483645], [1]),
    ],
)
def test_what_the_format_allows_is_read(text, label, columns, values):
    X, y, qid = read_bytes(text)
    assert y.tolist() == [label]
    assert X.indices.tolist() == columns
    assert same_bits(X.data, np.array(values, dtype=np.float64))
    assert qid is None


def test_queries_are_read_as_integers_of_64_bits():
    X, _, qid = read_bytes(b"2 qid:9223372036854775807 1:1\n1 qid:-3 # docid = 5:5\n0 qid:+07 2:1\n")
    assert qid.tolist() == [2**63 - 1, -3, 7]
    assert X.toarray().tolist() == [[1, 0], [0, 0], [0, 1]]


def test_index_zero_anywhere_makes_auto_count_from_zero():
    X, _, _ = read_bytes(b"1 1:5\n1 0:6\n")
    assert X.toarray().tolist() == [[0, 5], [6, 0]]


def test_n_features_widens_the_matrix():
    assert read_bytes(b"1 1:5\n", n_features=9)[0].shape == (1, 9)
    assert read_bytes(b"1\n", n_features=0)[0].shape == (1, 0)


def test_results_are_32_bit_indices_and_a_canonical_matrix():
    X, _, _ = read_bytes(b"1 1:5\n")
    assert isinstance(X, csr_array)
    assert X.indices.dtype == X.indptr.dtype == np.int32
    assert X.has_canonical_format


def test_row_pointers_widen_when_entries_outgrow_32_bits(monkeypatch):
    monkeypatch.setattr(reader, "_LARGEST_INT32", 2)
    X, _, _ = read_bytes(b"1 1:5 2:6 3:7\n")
    assert X.indptr.tolist() == [0, 3]
    assert reader._make_indptr(np.array([3]), [slice(0, 1)], np.array([1]), np.array([3])).dtype == np.int64


# What the format refuses

MISTAKES = [
    (b"1 1:2\n1 a:2\n", 2, 3, "index must be an integer, got 'a'"),
    (b"1 1.5:2\n", 1, 3, "index must be an integer"),
    (b"1 :2\n", 1, 3, "index must be an integer, got ''"),
    (b"1 3:1 2:1\n", 1, 7, "indices must increase, got 2 after 3"),
    (b"1 2:1 2:1\n", 1, 7, "index 2 occurs twice"),
    (b"1 -2:1\n", 1, 3, "index '-2' is negative"),
    (b"1 2147483647:1\n", 1, 3, "too large; the largest is 2147483646"),
    (b"1 18446744073709551617:1\n", 1, 3, "too large; the largest is 2147483646"),  # 2^64 + 1
    (b"1 " + b"9" * 5000 + b":1\n", 1, 3, "too large; the largest is 2147483646"),
    (b"1 1:2 2\n", 1, 7, "colon of index:value is missing in '2'"),
    (b"1 1:x\n", 1, 3, "value must be a number, got 'x'"),
    (b"1 1:\n", 1, 3, "value must be a number, got ''"),
    (b"1 1: 2\n", 1, 3, "value must be a number, got ''"),
    (b"1 1:1_0\n", 1, 3, "value must be a number"),
    (b"1 1:0x10\n", 1, 3, "value must be a number"),
    (b"1 1:1e\n", 1, 3, "value must be a number"),
    (b"1 1:.\n", 1, 3, "value must be a number"),
    (b"1 1:+-1\n", 1, 3, "value must be a number"),
    (b"1 1:1:2\n", 1, 3, "value must be a number"),
    (b"1 1:NaN\n", 1, 3, "value must be finite, got 'NaN'"),
    (b"1 1:-inf\n", 1, 3, "value must be finite"),
    (b"1 1:1e999\n", 1, 3, "value '1e999' is too large"),
    (b"1\n\n#\n2 1:1\n1e999 1:1\n", 5, 1, "label '1e999' is too large"),
    (b"nan 1:1\n", 1, 1, "label must be finite, got 'nan'"),
    (b"x 1:1\n", 1, 1, "label must be a number, got 'x'"),
    (b"1,2 3:4\n", 1, 1, "'1,2' lists several labels; a row has one"),
    (b" 3:4\n", 1, 2, "label is missing: the row starts with '3:4'"),
    (b"1 qid:a 1:2\n", 1, 3, "qid must be an integer"),
    (b"1 qid: 1:2\n", 1, 3, "qid must be an integer"),
    (b"1 qid:9223372036854775808\n", 1, 3, "qid must fit 64 bits"),
    (b"1 1:2 qid:3\n", 1, 7, "must come right after the label"),
    (b"1 qid:2 qid:3\n", 1, 9, "must come right after the label"),
    (b"1 1:2\n1 qid:2 1:2\n", 2, 3, "the first row has no qid"),
    (b"1 qid:1\n1 1:2\n", 2, 3, "qid must follow the label"),
    (b"1 qid:1\n1\n", 2, 1, "the row has no qid"),
    (b"1 1:2\r2 1:3\r", 1, 6, "carriage return stands alone"),
    (b"1 1:2 # a\r2 1:3\n", 1, 10, "carriage return stands alone"),
    (b"1 1:2\x00 2:0.5 3:0.25\n", 1, 3, r"value must be a number, got '2\\x00'"),
    (b"1 1:\xff\n", 1, 3, r"value must be a number, got '\\xff'"),
    (b"\x00\x00\x00", 1, 1, "the file is binary"),
    (b"\x00" * 17, 1, 1, "the file is binary"),
    (b"\xef\xbb\xbf1 1:2\n", 1, 1, "UTF-8 byte order mark"),
    (b"\xff\xfe1\x00", 1, 1, "UTF-16 byte order mark"),
    (b"", None, None, "holds no rows"),
    (b"\n# nothing\n\n", None, None, "holds no rows"),
]


@pytest.mark.parametrize(("text", "line", "column", "rule"), MISTAKES)
def test_mistakes_are_refused_by_line_column_and_rule(text, line, column, rule):
    with pytest.raises(FormatError, match=rule) as caught:
        read_bytes(text)
    assert (caught.value.line, caught.value.column) == (line, column)


def test_the_first_mistake_is_reported_whatever_the_chunks(chunk_bytes):
    good, late = b"1 1:2 5:1e-310\n# c\n\n" * 20, b"1 3:1 2:1\n"
    for first, column in ((b"1 1:2 4:1e400\n", 7), (b"1 1:y\n", 3), (b"2 qid:3\n", 3), (b"x\n", 1)):
        with pytest.raises(FormatError, match="<stream>:61:") as caught:
            read_bytes(good + first + good + late + b"1 1:2 2:1e999\n" + good)
        assert caught.value.column == column


def test_an_overflow_before_another_mistake_of_its_line_comes_first():
    with pytest.raises(FormatError, match="<stream>:2:3: value '1e999' is too large"):
        read_bytes(b"1 1:1\n1 1:1e999 2:x\n")


def test_index_zero_is_refused_when_counting_from_one():
    with pytest.raises(FormatError, match="<stream>:2:3: index 0 in a file that counts from 1"):
        read_bytes(b"1 1:2\n1 0:2\n", zero_based=False)


@pytest.mark.parametrize(
    ("text", "zero_based", "place"),
    [
        (b"1 1:1\n1 3:1\n", False, "2:3: index 3 .counted from 1. does not fit n_features=2"),
        (b"1 1:1\n1 2:1\n", True, "2:3: index 2 .counted from 0. does not fit n_features=2"),
        (b"1 1:1\n1 2:1\n1 0:1\n", "auto", "2:3: index 2 .counted from 0. does not fit n_features=2"),
        (b"1 1:1\n1 3:1\n1 0:1\n", "auto", "2:3: index 3 .counted from 1. does not fit n_features=2"),
    ],
)
def test_an_index_beyond_n_features_is_refused_at_its_place(text, zero_based, place):
    with pytest.raises(FormatError, match=place):
        read_bytes(text, zero_based=zero_based, n_features=2)


def test_a_value_beyond_float32_is_refused_as_float32_only():
    assert read_bytes(b"1 1:3.5e38\n")[0].data[0] == 3.5e38
    for text in (b"1 1:3.5e38\n", b"1 1:3.4028235677973366e38\n"):
        with pytest.raises(FormatError, match=r"<stream>:1:3: value .* is too large"):
            read_bytes(text, dtype=np.float32)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_features": -1}, "n_features must be between 0 and 2147483647, got -1"),
        ({"dtype": np.int64}, "dtype must be float64 or float32, got int64"),
        ({"zero_based": "yes"}, "zero_based must be True, False or .auto., got 'yes'"),
    ],
)
def test_wrong_arguments_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        read_bytes(b"1 1:1\n", **options)


def test_something_that_is_no_file_is_refused():
    with pytest.raises(TypeError, match="path_or_file must be a path or a file object, got int"):
        read_svmlight(3)


# Where text comes from


def test_missing_files_and_directories_are_refused_by_the_system(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no\.svm"):
        read_svmlight(tmp_path / "no.svm")
    with pytest.raises(OSError, match=tmp_path.name):
        read_svmlight(tmp_path)


def test_an_empty_file_holds_no_rows(tmp_path):
    (tmp_path / "empty.svm").write_bytes(b"")
    with pytest.raises(FormatError, match=r"empty\.svm: holds no rows"):
        read_svmlight(tmp_path / "empty.svm")


@pytest.mark.parametrize("suffix", ["", *COMPRESS])
def test_compressed_files_are_known_by_their_first_bytes(suffix, tmp_path):
    text = b"1 1:2\n-1 2:3\n" * 100
    path = tmp_path / "rows"  # no suffix on purpose
    path.write_bytes(COMPRESS.get(suffix, bytes)(text))
    X, y, _ = read_svmlight(str(path))
    assert X.sum() == 500
    assert y.sum() == 0
    with open(path, "rb") as file:
        assert read_svmlight(file)[0].nnz == 200


@pytest.mark.parametrize("suffix", COMPRESS)
def test_truncated_and_damaged_compressed_files_are_refused(suffix, tmp_path, rng):
    packed = COMPRESS[suffix](rng.bytes(300).hex().encode())
    path = tmp_path / f"rows{suffix}"
    for broken in (packed[: len(packed) // 2], packed[:8], packed[:60] + b"\x00\xff" * 20 + packed[100:]):
        path.write_bytes(broken)
        with pytest.raises(FormatError, match=r"rows.*data are damaged or cut short"):
            read_svmlight(path)


def test_text_files_and_nameless_streams_are_read(tmp_path):
    (tmp_path / "rows.svm").write_bytes(b"1 1:2\r\n# \xc3\xa9\n")
    with open(tmp_path / "rows.svm", encoding="utf-8") as file:
        assert read_svmlight(file)[0].data.tolist() == [2]
    assert read_svmlight(io.StringIO("1 1:2"))[0].data.tolist() == [2]
    with pytest.raises(FormatError, match=r"<stream>:1:1: .*byte order mark"):
        read_svmlight(io.StringIO("\ufeff1 1:2"))


def test_a_mistake_names_the_file(tmp_path):
    (tmp_path / "rows.svm").write_bytes(b"1 1:2\nx\n")
    with pytest.raises(FormatError, match=r"rows\.svm:2:1: label must be a number"):
        read_svmlight(tmp_path / "rows.svm")


# Writing


def round_trip(X, y, **options):
    file = io.BytesIO()
    write_svmlight(file, X, y, **options)
    file.seek(0)
    return read_svmlight(file, n_features=X.shape[1], zero_based=options.get("zero_based", False), dtype=X.dtype)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("zero_based", [True, False])
def test_what_is_written_reads_back_to_the_bit(dtype, zero_based, rng):
    bits = {np.float64: np.uint64, np.float32: np.uint32}[dtype]
    values = rng.integers(0, np.iinfo(bits).max, 3000, dtype=bits).view(dtype)
    values = np.append(values[np.isfinite(values)], np.array([0.0, -0.0, 1, -1, 1e16, 123456, 0.1], dtype=dtype))
    rows, columns = np.divmod(rng.permutation(500 * 40)[: len(values)], 40)
    X = csr_array(coo_array((values, (rows, columns)), shape=(500, 40)))
    y = np.concatenate([[0.0, -0.0, 1.0, -1.0, 1e300, 5e-324], rng.normal(size=494)])
    qid = rng.integers(-(2**62), 2**62, 500)
    read, labels, queries = round_trip(X, y, qid=qid, zero_based=zero_based)
    assert same_bits(read.data, X.data)
    assert np.array_equal(read.indices, X.indices)
    assert np.array_equal(read.indptr, X.indptr)
    assert same_bits(labels, y)
    assert np.array_equal(queries, qid)


def test_no_double_is_written_longer_than_python_writes_it(rng):
    bits = rng.integers(0, 2**64, 4000, dtype=np.uint64).view(np.float64)
    edges = [
        1e15,
        1e16,
        1e22,
        1e23,
        1e-4,
        1e-5,
        9999999999999998.0,
        99999999999999.9,
        2.0**53 + 2,
        2.0**-1022,
    ]
    for number in [
        *bits[np.isfinite(bits)].tolist(),
        *rng.normal(size=4000).round(5).tolist(),
        *edges,
        *rng.random(4000),
    ]:
        file = io.StringIO()
        write_svmlight(file, np.empty((1, 0)), [number])
        text = file.getvalue().removesuffix("\n")
        assert float(text) == number
        assert len(text) <= len(repr(float(number)).removesuffix(".0"))


def test_text_is_as_short_as_can_be():
    file = io.StringIO()
    X = csr_matrix(np.array([[0.5, 0, 1e-7], [0, 0, 0], [100, -3, 0.1]]))
    write_svmlight(file, X, [1, -1, 2.5], comment="one\ntwo")
    assert file.getvalue() == "# one\n# two\n1 1:0.5 3:1e-07\n-1\n2.5 1:100 2:-3 3:0.1\n"


@pytest.mark.parametrize(
    "convert", [np.asarray, csr_array, csr_matrix, coo_array, lambda X: X.astype(int).astype(bool)]
)
def test_dense_sparse_and_whole_numbers_are_written_alike(convert):
    X = np.array([[0.0, 1.0], [1.0, 0.0]])
    file = io.BytesIO()
    write_svmlight(file, convert(X), [0, 1], zero_based=True)
    assert file.getvalue() == b"0 1:1\n1 0:1\n"


def test_dense_negative_zero_is_written_and_integers_keep_their_digits():
    file = io.BytesIO()
    write_svmlight(file, np.array([[-0.0, 0.0]]), [1])
    write_svmlight(file, np.array([[0, 2**53 + 1]]), [1])
    assert file.getvalue() == b"1 1:-0\n1 2:9007199254740993\n"


def test_entries_out_of_order_and_duplicates_are_put_right_without_touching_the_input():
    X = csr_array((np.array([1.0, 2.0, 4.0]), np.array([2, 0, 2]), np.array([0, 3])), shape=(1, 3))
    file = io.BytesIO()
    write_svmlight(file, X, [1])
    assert file.getvalue() == b"1 1:2 3:5\n"
    assert X.indices.tolist() == [2, 0, 2]


def test_blocks_of_rows_make_no_difference(monkeypatch, rng):
    X, y = csr_array(rng.random((50, 7)) * (rng.random((50, 7)) < 0.4)), np.arange(50)
    whole, parts = io.BytesIO(), io.BytesIO()
    write_svmlight(whole, X, y, qid=y)
    monkeypatch.setattr(writer, "_ENTRIES_PER_BLOCK", 3)
    write_svmlight(parts, X, y, qid=y)
    assert whole.getvalue() == parts.getvalue()


@pytest.mark.parametrize("suffix", ["", ".svm", ".GZ", *COMPRESS])
def test_paths_are_compressed_by_suffix(suffix, tmp_path):
    path = tmp_path / f"rows{suffix}"
    write_svmlight(path, np.eye(3), [1, 2, 3])
    packed = suffix.lower() in COMPRESS
    assert (path.read_bytes() == b"1 1:1\n2 2:1\n3 3:1\n") != packed
    assert np.array_equal(read_svmlight(path)[0].toarray(), np.eye(3))
    assert os.listdir(tmp_path) == [path.name]


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    path = tmp_path / "rows.svm"
    path.write_text("old")

    def break_off(*arguments):
        yield "1 1:1\n"
        raise RuntimeError("no more")

    monkeypatch.setattr(writer, "_format_blocks", break_off)
    with pytest.raises(RuntimeError, match="no more"):
        write_svmlight(path, np.eye(2), [1, 2])
    assert os.listdir(tmp_path) == ["rows.svm"]
    assert path.read_text() == "old"


def test_a_link_stays_a_link_to_the_new_rows(tmp_path):
    (tmp_path / "target").write_text("old")
    (tmp_path / "link").symlink_to(tmp_path / "target")
    write_svmlight(tmp_path / "link", np.eye(1), [1])
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "target").read_text() == "1 1:1\n"


@pytest.mark.parametrize(
    ("X", "y", "qid", "message"),
    [
        (np.array([[1, 2], [3, np.nan]]), [1, 2], None, "X must be finite, got nan in row 1, column 1"),
        (csr_array([[0, 0], [0, np.inf]]), [1, 2], None, "X must be finite, got inf in row 1, column 1"),
        (np.eye(2), [1, np.nan], None, "y must be finite, got nan in row 1"),
        (np.eye(2), [1], None, r"y must have shape \(2,\), one per row of X, got \(1,\)"),
        (np.eye(2), [1, 2], [1], r"qid must have shape \(2,\), one per row of X, got \(1,\)"),
        (np.eye(2), [1, 2], [1.5, 2], "qid must hold integers, got float64"),
        (np.ones(2), [1, 2], None, "X must have 2 dimensions, got 1"),
        (np.eye(2) * 1j, [1, 2], None, "X must hold real numbers, got complex128"),
        (np.array([["a"]]), [1], None, "X must hold real numbers, got <U1"),
    ],
)
def test_what_cannot_be_written_is_refused_before_writing(X, y, qid, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        write_svmlight(tmp_path / "rows.svm", X, y, qid=qid)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("name", ["lzma", "bz2"])
def test_a_python_without_a_compression_module_reads_all_but_that_format(name, tmp_path):
    """Python can be built without the libraries of these modules, and of zstandard's from 3.14 on."""
    plain, packed = tmp_path / "rows", tmp_path / "rows.packed"
    plain.write_bytes(b"1 1:2\n")
    packed.write_bytes(import_module(name).compress(b"1 1:2\n"))
    code = (
        f"import sys; sys.modules[{name!r}] = None\n"
        "from widemargin import FormatError, read_svmlight\n"
        f"assert read_svmlight({str(plain)!r})[1].tolist() == [1.0]\n"
        "try:\n"
        f"    read_svmlight({str(packed)!r})\n"
        "except FormatError as error:\n"
        "    print(error)\n"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert f"this Python was built without the module {name}" in ended.stdout
