"""Rows as lines: where they stand, what they are labelled, copied as they are."""

import gzip
import io

import numpy as np
import pytest

from widemargin.data.svmlight import reader
from widemargin.data.svmlight.lines import read_lines
from widemargin.errors import FormatError


@pytest.fixture(params=[1, 50, 1 << 20])
def chunk_bytes(request, monkeypatch):
    monkeypatch.setattr(reader, "_CHUNK_BYTES", request.param)
    return request.param


@pytest.mark.parametrize("kind", ["plain", "packed", "stream"])
def test_lines_are_copied_byte_for_byte_and_others_counted(kind, chunk_bytes, tmp_path):
    text = b"# head\n1 1:2 # one\r\n\n-2.50 \t 3:04\n  1e-3 \n#\n7 5:6"
    (tmp_path / "rows").write_bytes(gzip.compress(text) if kind == "packed" else text)
    lines = read_lines(io.BytesIO(text) if kind == "stream" else tmp_path / "rows")
    assert lines.labels.tolist() == [1, -2.5, 1e-3, 7]
    assert (lines.queries, lines.n_others) == (None, 3)
    assert list(lines.copy(np.arange(4))) == [b"1 1:2 # one\r\n", b"-2.50 \t 3:04\n", b"  1e-3 \n", b"7 5:6\n"]
    assert list(lines.copy(np.array([1]))) == [b"-2.50 \t 3:04\n"]


def test_queries_come_with_the_lines():
    assert read_lines(io.BytesIO(b"1 qid:3 1:2\n2 qid:-4\n")).queries.tolist() == [3, -4]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (b"1 1:2\n# c\n1 1:x\ny\n", "<stream>:3:3: value must be a number, got 'x'"),
        (b"1 1:2\n1 1:1e999", "<stream>:2:3: value '1e999' is too large"),
        (b"# c\n", "<stream>: holds no rows"),
        (b"\xef\xbb\xbf1 1:2\n", "<stream>:1:1: the text starts with a UTF-8 byte order mark"),
    ],
)
def test_a_file_that_breaks_a_rule_is_refused_at_its_first_mistake(text, says, chunk_bytes):
    with pytest.raises(FormatError, match=says):
        read_lines(io.BytesIO(text))
