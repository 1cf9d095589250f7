"""Blocks of lines give the rows of the whole file, name the same mistakes, and hold no more than a block."""

import bz2
import gzip
import io
import lzma
import os
import tracemalloc

import numpy as np
import pytest
from scipy.sparse import csr_array, vstack

from widemargin.data.svmlight import blocks
from widemargin.data.svmlight.blocks import SvmlightBlocks, write_svmlight_blocks
from widemargin.data.svmlight.compression import zstd
from widemargin.data.svmlight.reader import read_svmlight
from widemargin.errors import FormatError

COMPRESS = {
    "": bytes,
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zst": lambda data: zstd.compress(data, options={zstd.CompressionParameter.checksum_flag: True}),
}
TEXT = (
    b"# a comment\n\n1 1:2 5:1e-310 # more\n-1\r\n \t\n+2.5 3:0.1 4:-7e22 9:3.14159265358979323846\n0 1:1\n" * 5
    + b"1 2:5 # the last line has no newline"
)
QUERIES = b"# nothing\n#\n\n" + b"1 qid:3 1:2\n0 qid:3\n2 qid:-4 2:1 # x\n" * 9


def join(blocks):
    """Return (X, y, qid) of blocks as one, all columns of the last."""
    blocks = list(blocks)
    for block in blocks:
        block.X.resize(block.X.shape[0], blocks[-1].X.shape[1])
    qid = None if blocks[0].qid is None else np.concatenate([block.qid for block in blocks])
    return csr_array(vstack([block.X for block in blocks])), np.concatenate([block.y for block in blocks]), qid


def assert_same_rows(joined, whole):
    for part in ("data", "indices", "indptr"):
        np.testing.assert_array_equal(getattr(joined[0], part), getattr(whole[0], part))
    assert joined[0].shape == whole[0].shape
    np.testing.assert_array_equal(joined[1], whole[1])
    assert (joined[2] is None) == (whole[2] is None)
    if whole[2] is not None:
        np.testing.assert_array_equal(joined[2], whole[2])


@pytest.mark.parametrize("text", [TEXT, QUERIES])
@pytest.mark.parametrize("block_bytes", [1, 2, 7, 30, 100, 1 << 20])
def test_blocks_of_any_length_give_the_rows_of_the_whole_file(text, block_bytes):
    blocks = SvmlightBlocks(io.BytesIO(text), block_bytes=block_bytes)
    assert_same_rows(join(blocks), read_svmlight(io.BytesIO(text)))


def test_a_block_holds_whole_lines_of_about_the_length_asked_for():
    sizes = [len(block.y) for block in SvmlightBlocks(io.BytesIO(b"1 1:1\n" * 100), block_bytes=60)]
    assert sizes == [10] * 10
    sizes = [len(block.y) for block in SvmlightBlocks(io.BytesIO(b"1 1:1\n" * 100), block_bytes=64)]
    assert sum(sizes) == 100
    assert max(sizes) <= 11


def test_the_width_is_the_largest_index_so_far():
    blocks = SvmlightBlocks(io.BytesIO(b"1 5:1\n1 2:1\n1 7:1\n"), block_bytes=6)
    assert [block.X.shape[1] for block in blocks] == [5, 5, 7]
    assert blocks.n_features == 7


def test_indices_from_zero_are_columns_if_asked_and_refused_if_not():
    text = b"1 1:1\n1 0:6\n"
    X, _, _ = join(SvmlightBlocks(io.BytesIO(text), zero_based=True))
    assert X.toarray().tolist() == [[0, 1], [6, 0]]
    with pytest.raises(FormatError, match="<stream>:2:3: index 0 in a file that counts from 1"):
        list(SvmlightBlocks(io.BytesIO(text)))


def test_values_are_float32_if_asked():
    (block,) = SvmlightBlocks(io.BytesIO(b"1 1:0.1\n"), dtype=np.float32)
    assert block.X.dtype == np.float32


# Mistakes


@pytest.mark.parametrize("block_bytes", [1, 16, 100, 1 << 20])
@pytest.mark.parametrize(
    "mistake", [b"1 1:2 4:1e400\n", b"1 1:y\n", b"1 3:1 2:1\n", b"2 qid:3 1:1\n", b"x\n", b"1 1:2\r2 1:3\n", b"1 1"]
)
def test_a_mistake_is_named_as_in_the_whole_file(mistake, block_bytes):
    text = TEXT + b"\n" + TEXT + b"\n" + mistake
    with pytest.raises(FormatError, match="<stream>:") as whole:
        read_svmlight(io.BytesIO(text))
    with pytest.raises(FormatError, match="<stream>:") as parts:
        list(SvmlightBlocks(io.BytesIO(text), block_bytes=block_bytes))
    assert str(parts.value) == str(whole.value)
    assert parts.value.line == text.count(b"\n", 0, text.rindex(mistake)) + 1


def test_a_row_without_a_query_is_refused_in_a_later_block_too():
    text = QUERIES + b"1 1:1\n"
    with pytest.raises(FormatError, match=r"<stream>:31:3: qid must follow the label"):
        list(SvmlightBlocks(io.BytesIO(text), block_bytes=20))


@pytest.mark.parametrize("text", [b"", b"\n# nothing\n\n" * 10])
def test_a_file_without_rows_is_refused(text):
    with pytest.raises(FormatError, match=r"^<stream>: holds no rows$"):
        list(SvmlightBlocks(io.BytesIO(text), block_bytes=10))


def test_a_byte_order_mark_is_refused():
    with pytest.raises(FormatError, match=r"<stream>:1:1: the text starts with a UTF-8 byte order mark"):
        list(SvmlightBlocks(io.BytesIO(b"\xef\xbb\xbf1 1:1\n"), block_bytes=1))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dtype": int}, "dtype must be float64 or float32, got int64"),
        ({"zero_based": "auto"}, "zero_based must be True or False, got 'auto'"),
        ({"block_bytes": 0}, "block_bytes must be at least 1, got 0"),
    ],
)
def test_wrong_options_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        SvmlightBlocks(io.BytesIO(TEXT), **options)


def test_a_text_file_and_a_missing_one_are_refused_at_once(tmp_path):
    with pytest.raises(TypeError, match="must be open in binary mode"):
        SvmlightBlocks(io.StringIO("1 1:1"))
    with pytest.raises(TypeError, match="path_or_file must be a path or a file object, got NoneType"):
        SvmlightBlocks(None)
    with pytest.raises(FileNotFoundError, match="nowhere"):
        SvmlightBlocks(tmp_path / "nowhere")


# Where text comes from


@pytest.mark.parametrize("suffix", COMPRESS)
def test_a_path_is_read_as_often_as_asked_whatever_its_compression(suffix, tmp_path):
    path = tmp_path / "rows"
    path.write_bytes(COMPRESS[suffix](TEXT))
    blocks = SvmlightBlocks(path, block_bytes=50)
    for _ in range(2):
        assert_same_rows(join(blocks), read_svmlight(path))
    assert blocks.position == blocks.size == path.stat().st_size


@pytest.mark.parametrize("suffix", list(COMPRESS)[1:])
def test_compressed_parts_one_after_the_other_are_one_file(suffix, tmp_path):
    (tmp_path / "rows").write_bytes(COMPRESS[suffix](TEXT + b"\n") + COMPRESS[suffix](TEXT))
    assert_same_rows(
        join(SvmlightBlocks(tmp_path / "rows", block_bytes=70)), read_svmlight(io.BytesIO(TEXT + b"\n" + TEXT))
    )


@pytest.mark.parametrize("suffix", list(COMPRESS)[1:])
def test_damaged_and_truncated_files_are_refused_by_name(suffix, tmp_path, rng):
    lines = b"".join(b"%d 1:%.17g 2:%.17g\n" % (k, *pair) for k, pair in enumerate(rng.random((3000, 2)).tolist()))
    packed = COMPRESS[suffix](lines)
    middle = len(packed) // 2
    for broken in (packed[:middle], packed[:20], packed[:middle] + b"\x00\xff" * 20 + packed[middle + 40 :]):
        (tmp_path / "rows").write_bytes(broken)
        # What was damaged may still be decompressed, before the checksum tells; then a line may be wrong first.
        with pytest.raises(FormatError, match=r"rows: the \w+ data are damaged or cut short|rows:\d+:"):
            list(SvmlightBlocks(tmp_path / "rows", block_bytes=1000))


def test_a_file_object_is_rewound_to_where_it_was_and_stays_open():
    file = io.BytesIO(b"not this line\n" + TEXT)
    file.readline()
    blocks = SvmlightBlocks(file, block_bytes=64)
    assert blocks.size == len(TEXT)
    for _ in range(2):
        assert_same_rows(join(blocks), read_svmlight(io.BytesIO(TEXT)))
    assert not file.closed


def test_a_pipe_is_read_once():
    reading, writing = os.pipe()
    with open(reading, "rb") as pipe:
        with open(writing, "wb") as end:
            end.write(COMPRESS[".gz"](TEXT))
        blocks = SvmlightBlocks(pipe, block_bytes=64, name="the pipe")
        assert blocks.size is None
        assert_same_rows(join(blocks), read_svmlight(io.BytesIO(TEXT)))
        assert blocks.position == len(COMPRESS[".gz"](TEXT))
        with pytest.raises(ValueError, match="the pipe can be read only once"):
            list(blocks)


def test_position_rises_with_the_blocks(tmp_path, monkeypatch):
    monkeypatch.setattr(blocks, "_BYTES_PER_READ", 100)
    (tmp_path / "rows").write_bytes(TEXT * 10)
    rows = SvmlightBlocks(tmp_path / "rows", block_bytes=300)
    positions = [rows.position for _ in rows]
    assert positions == sorted(positions)
    assert len(set(positions)) > 5
    assert positions[-1] == rows.size


@pytest.mark.parametrize("suffix", COMPRESS)
def test_memory_is_that_of_a_block_and_not_of_the_file(suffix, tmp_path):
    text = b"1 1:0.5 2:0.25 3:0.125\n" * 200_000  # 4.6 MB
    packed = lzma.compress(text, preset=0) if suffix == ".xz" else COMPRESS[suffix](text)  # else a dictionary of 8 MB
    (tmp_path / "rows").write_bytes(packed)
    blocks = SvmlightBlocks(tmp_path / "rows", block_bytes=1 << 16)
    sum(len(block.y) for block in blocks)  # compiles, and imports
    tracemalloc.start()
    n_rows = sum(len(block.y) for block in blocks)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert n_rows == 200_000
    assert peak < 2_500_000  # zstandard's window and the buffers included


# Writing


@pytest.mark.parametrize("suffix", COMPRESS)
def test_blocks_written_are_the_file_that_was_read(suffix, tmp_path):
    text = b"1 qid:1 1:2 3:0.1\n0 qid:2\n2 qid:2 2:-1e-07\n" * 20
    path = tmp_path / f"rows{suffix}"
    write_svmlight_blocks(path, SvmlightBlocks(io.BytesIO(text), block_bytes=50))
    assert path.read_bytes()[:2] == COMPRESS[suffix](text)[:2]
    again = io.BytesIO()
    write_svmlight_blocks(again, SvmlightBlocks(path, zero_based=True), zero_based=True)
    assert again.getvalue() == text


def test_a_mistake_while_writing_leaves_the_old_file(tmp_path):
    (tmp_path / "rows").write_text("old")
    with pytest.raises(FormatError, match=":11:1: label must be a number"):
        write_svmlight_blocks(tmp_path / "rows", SvmlightBlocks(io.BytesIO(b"1 1:1\n" * 10 + b"x\n"), block_bytes=12))
    assert (tmp_path / "rows").read_text() == "old"
    assert os.listdir(tmp_path) == ["rows"]
