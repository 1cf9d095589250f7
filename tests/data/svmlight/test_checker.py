"""Every mistake of a text is found where it was planted, and nothing else; the other rows are read all the same."""

import bz2
import gzip
import importlib.util
import io
import lzma
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from widemargin.data.svmlight import checker, reader
from widemargin.data.svmlight.blocks import SvmlightBlocks
from widemargin.data.svmlight.checker import check_svmlight
from widemargin.data.svmlight.lines import read_lines
from widemargin.data.svmlight.reader import read_svmlight
from widemargin.errors import FormatError

_SPEC = importlib.util.spec_from_file_location("parser_tests", Path(__file__).parent / "test_parser.py")
generated = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(generated)


def check_bytes(data, **options):
    return check_svmlight(io.BytesIO(data), **options)


def places(checked):
    return [(mistake.line, mistake.column) for mistake in checked.mistakes]


@pytest.fixture(params=[1, 50, 1 << 20])
def chunk_bytes(request, monkeypatch):
    monkeypatch.setattr(reader, "_CHUNK_BYTES", request.param)
    return request.param


def good_lines(rng, with_queries):
    """Return 60 lines without a mistake: rows, comments and blank lines."""
    lines = []
    for k in range(60):
        indices = np.flatnonzero(rng.random(9) < 0.6) + 1
        query = [f"qid:{k // 5}"] if with_queries else []
        entries = [f"{index}:{value:.3g}" for index, value in zip(indices, rng.normal(size=9), strict=False)]
        row = " ".join([str(rng.integers(-1, 2)), *query, *entries])
        lines.append([row, row, row + " # 3:4", row + "\r", "# a: comment", " \t"][rng.integers(6)].encode())
    return lines


PLANTS = [
    # a line, the column of its mistake, the rule
    (b"1:2 3:4", 1, "the label is missing: the row starts with '1:2'"),
    (b"x 1:2 3:4", 1, "label must be a number, got 'x'"),
    (b"nan 1:2", 1, "label must be finite, got 'nan'"),
    (b" 1e999 1:2", 2, "label '1e999' is too large"),
    (b"1,2 1:2", 1, "lists several labels"),
    (b"1 1:2 3 4:5", 7, "the colon of index:value is missing in '3'"),
    (b"1 -1:2 3:4", 3, "index '-1' is negative"),
    (b"1 1.5:2 3:4", 3, "index must be an integer, got '1.5'"),
    (b"1 a:2 3:4", 3, "index must be an integer, got 'a'"),
    (b"1 1:2 2147483647:1", 7, "is too large; the largest is 2147483646"),
    (b"1 1:2 3:1 3:1 4:1", 11, "index 3 occurs twice"),
    (b"1 5:1 3:1 4:1 6:1", 7, "indices must increase, got 3 after 5"),
    (b"1 1:x 2:3", 3, "value must be a number, got 'x'"),
    (b"1 1:2 2: 3:4", 7, "value must be a number, got ''"),
    (b"1 1:-inf 2:3", 3, "value must be finite, got '-inf'"),
    (b"1 1:1 2:1e999", 7, "value '1e999' is too large"),
    (b"1 1:2\x00 3:4", 3, r"value must be a number, got '2\x00'"),
    (b"1 1:2\r2:3", 6, "a carriage return stands alone"),
    (b"1 1:2\r2 1:3", 6, "a carriage return stands alone"),
    (b"# a comment\r1 1:3", 12, "a carriage return stands alone"),
    (b"1 qid:1 1:2", 3, "'qid:1': most rows have no qid"),
    (b"1 1:2 qid:1 3:4", 7, "'qid:1' must come right after the label"),
]
QUERY_PLANTS = [
    (b"1 1:2 3:4", 3, "qid must follow the label, since most rows have one, got '1:2'"),
    (b"1 # alone", 1, "the row has no qid, but most rows have one"),
    (b"1 quid:3 1:2", 3, "qid must follow the label, since most rows have one, got 'quid:3'"),
    (b"1 qid:a 1:2", 3, "qid must be an integer, got 'qid:a'"),
    (b"1 qid:1.5", 3, "qid must be an integer"),
    (b"1 qid:9223372036854775808 1:2", 3, "qid must fit 64 bits"),
    (b"1 qid:1 qid:2 1:2", 9, "'qid:2' must come right after the label"),
    (b"qid:1 1:2", 1, "the label is missing"),
    (b"1 qid:1 1:2 1:3", 13, "index 1 occurs twice"),
]
planted = pytest.mark.parametrize(
    ("line", "column", "rule", "with_queries"),
    [(*plant, False) for plant in PLANTS] + [(*plant, True) for plant in QUERY_PLANTS],
)


@planted
def test_a_planted_mistake_is_found_at_its_line_and_column_and_nothing_else(line, column, rule, with_queries, rng):
    for number in (0, 59, *rng.integers(60, size=3).tolist()):
        lines = good_lines(rng, with_queries)
        lines[number] = line
        checked = check_bytes(b"\n".join(lines) + b"\n" * int(rng.integers(2)))
        assert places(checked) == [(number + 1, column)]
        assert rule in checked.mistakes[0].rule
        assert (checked.n_mistakes, checked.n_refused, checked.is_exact) == (1, 1, True)


@pytest.mark.parametrize("with_queries", [False, True])
def test_all_planted_mistakes_of_a_file_are_found_in_their_order(with_queries, chunk_bytes, rng):
    plants, lines = QUERY_PLANTS if with_queries else PLANTS, good_lines(rng, with_queries) * 3
    numbers = np.sort(rng.permutation(len(lines))[: len(plants)]).tolist()
    for number, (line, _, _) in zip(numbers, plants, strict=True):
        lines[number] = line
    checked = check_bytes(b"\n".join(lines))
    assert places(checked) == [(number + 1, column) for number, (_, column, _) in zip(numbers, plants, strict=True)]
    assert all(rule in mistake.rule for mistake, (_, _, rule) in zip(checked.mistakes, plants, strict=True))
    good = [number + 1 for number, line in enumerate(lines) if line.split(b"#")[0].strip() and number not in numbers]
    assert checked.lines.tolist() == good


@pytest.mark.parametrize(
    ("line", "columns"),
    [
        (b"x 1:2 a:3 2:y 2:1 9 1:1e999", [1, 7, 11, 15, 19, 21, 21]),
        (b"1:2 1:3", [1, 5]),
        (b"1 2:1 3:1 1:1 2:1 3:1 1:1", [11, 23]),
        (b"1 1:2\r2 1:3 1:4\r3 x", [6, 13, 16, 19]),
        (b"-1:", [1]),
        (b"1 -1:x", [3, 3]),
        (b"1 2147483647:1 1:1 1:1", [3, 20]),
        (b"1 qid:1 2:1 1:1", [3, 13]),
    ],
)
def test_every_mistake_of_a_line_is_listed(line, columns):
    assert places(check_bytes(b"1 1:2\n" + line + b"\n1 1:2\n")) == [(2, column) for column in columns]


@pytest.mark.parametrize(
    ("line", "columns"),
    [
        (b"1 2:x 2:1 qid:1", [3, 3, 7, 11]),
        (b"3:1 2:1", [1, 1, 5]),
        (b"qid:x 2:y", [1, 1, 7]),
        (b"x # alone", [1, 1]),
        (b"1\r2 qid:1", [2]),
        (b"1\rqid:1 1:x", [2, 9]),
    ],
)
def test_every_mistake_of_a_line_among_queries_is_listed(line, columns):
    assert places(check_bytes(b"1 qid:1\n" + line + b"\n1 qid:2\n")) == [(2, column) for column in columns]


def test_index_zero_is_a_mistake_only_where_indices_count_from_1():
    text = b"1 1:2\n1 0:2 1:3\n1 2:1\n"
    assert check_bytes(text).n_mistakes == 0
    assert check_bytes(text, zero_based=True).X.shape == (3, 3)
    checked = check_bytes(text, zero_based=False)
    assert places(checked) == [(2, 3)]
    assert "index 0 in a file that counts from 1" in checked.mistakes[0].rule
    with pytest.raises(ValueError, match=r"zero_based must be True, False or .auto., got 'no'"):
        check_bytes(text, zero_based="no")


def test_of_equally_many_rows_with_and_without_a_query_the_first_decides():
    assert places(check_bytes(b"1 qid:1\n1 1:2\n")) == [(2, 3)]
    assert places(check_bytes(b"1 1:2\n1 qid:1\n")) == [(2, 3)]


# The file as a whole


@pytest.mark.parametrize("text", [b"", b"\n# nothing\n\n"])
def test_no_rows_are_a_mistake_without_a_place(text):
    checked = check_bytes(text)
    assert checked.mistakes == ((None, None, "holds no rows"),)
    assert checked.X is None


def test_a_utf_8_mark_is_one_mistake_and_the_rows_after_it_are_checked():
    checked = check_bytes(b"\xef\xbb\xbf1 1:x\n1 2:3\n1 a:1\n")
    assert places(checked) == [(1, 1), (1, 6), (3, 3)]
    assert "UTF-8 byte order mark" in checked.mistakes[0].rule
    assert checked.X.toarray().tolist() == [[0, 3]]
    assert places(check_bytes(b"\xff\xfe1\x00 \x001\x00:\x002\x00")) == [(1, 1)]


@pytest.mark.parametrize(
    ("data", "rule"),
    [
        (b"\x93NUMPY\x01\x00v\x00{'descr'}\n\x00\x01", "is a NumPy array, not text"),
        (b"PK\x03\x04\x14\x00\n1 2\n", "is a zip archive, not text"),
        (("1 1:2\n" * 3).encode("utf-16-le"), "binary, or text in UTF-16"),
        (bytes(range(256)) * 4, "binary, or text in UTF-16"),
        (b"a,b,c\n1,2,3\n", "looks like comma-separated values (CSV)"),
        (b"# made by hand, today\n\n1,2,3\n", "looks like comma-separated values (CSV)"),
    ],
)
def test_a_file_of_another_format_is_one_mistake_that_says_so(data, rule):
    checked = check_bytes(data)
    assert rule in checked.mistakes[0].rule
    assert checked.n_mistakes == 1
    readers = read_svmlight, read_lines, lambda stream: list(SvmlightBlocks(stream))
    for read in readers:
        with pytest.raises(FormatError, match=f"<stream>:1:1: .*{re.escape(rule)}"):
            read(io.BytesIO(data))


def test_a_comma_in_a_comment_does_not_make_csv():
    with pytest.raises(FormatError, match="<stream>:2:3: the colon of index:value is missing in '2'"):
        read_svmlight(io.BytesIO(b"# made by hand, today\n1 2\n"))
    with pytest.raises(FormatError, match="<stream>:2:1: '3,4' lists several labels"):
        read_svmlight(io.BytesIO(b"1 1:2\n3,4\n"))


def test_a_comma_in_a_row_among_good_ones_is_a_mistake_of_that_row():
    assert places(check_bytes(b"1,2\n1 1:2\n3,4\n")) == [(1, 1), (3, 1)]


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress])
def test_compressed_files_are_checked_and_damaged_ones_say_so(pack, tmp_path):
    packed = pack(b"1 1:2\n1 1:x\n")
    (tmp_path / "rows").write_bytes(packed)
    checked = check_svmlight(tmp_path / "rows")
    assert (checked.name, places(checked)) == (str(tmp_path / "rows"), [(2, 3)])
    (tmp_path / "rows").write_bytes(packed[:-6])
    checked = check_svmlight(tmp_path / "rows")
    assert places(checked) == [(None, None)]
    assert "damaged or cut short" in checked.mistakes[0].rule
    with pytest.raises(FileNotFoundError, match="absent"):
        check_svmlight(tmp_path / "absent")


# Many mistakes


def test_mistakes_beyond_the_limit_are_counted():
    text = b"1 1:x 2:y\n" * 30
    assert check_bytes(text).n_mistakes == len(check_bytes(text).mistakes) == 60
    checked = check_bytes(text, limit=7)
    assert (checked.n_mistakes, checked.is_exact) == (60, True)
    assert checked.mistakes == check_bytes(text).mistakes[:7]
    assert (check_bytes(text, limit=0).mistakes, check_bytes(b"", limit=0).mistakes) == ((), ())


def test_beyond_the_limit_only_so_much_is_explained_and_other_lines_count_once(monkeypatch):
    monkeypatch.setattr(checker, "_EXPLAINED_BYTES", 100)
    text = b"1 1:x 2:y\n" * 30  # 10 bytes a line, of which the newline is not explained
    checked = check_bytes(text, limit=7)
    assert (checked.is_exact, checked.n_refused, len(checked.mistakes)) == (False, 30, 7)
    assert checked.n_mistakes == 2 * 11 + 19
    assert check_bytes(text, limit=None).n_mistakes == 60
    one_line = check_bytes(b"1 1:2\r" * 100, limit=3)
    assert (one_line.is_exact, one_line.n_refused, len(one_line.mistakes)) == (False, 1, 3)
    assert one_line.n_mistakes < 20


def test_numbers_left_to_python_are_decided_or_refused_row_by_row(chunk_bytes):
    subnormal, huge = "4.9406564584124654e-324", "1e999"
    rows = [f"{k}.5e-324 1:1 3:{subnormal}" for k in range(200)]
    rows[50], rows[51], rows[120] = f"{huge} 1:1 2:{subnormal}", f"1 1:{subnormal} 2:x", f"1 1:{subnormal} 2:{huge}"
    checked = check_bytes("\n".join(rows).encode())
    assert places(checked) == [(51, 1), (52, 29), (121, 29)]
    kept = [float(row.split()[0]) for k, row in enumerate(rows) if k not in (50, 51, 120)]
    assert checked.y.tolist() == kept
    assert checked.X[:, [2]].toarray().ravel().tolist() == [float(subnormal)] * 197


# Against the reader

FUZZ = settings(max_examples=80, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
PIECES = [
    b"",
    b":",
    b" ",
    b"\n",
    b"\r",
    b"#",
    b"-",
    b".",
    b"e",
    b"0",
    b",",
    b"qid:1",
    b"\x00",
    b"nan",
    b"1e999",
    b" 1:1 ",
]


def assert_same_rows(checked, X, y, qid):
    assert (checked.X.shape, checked.X.data.tobytes()) == (X.shape, X.data.tobytes())
    assert checked.X.indices.tolist() == X.indices.tolist()
    assert checked.X.indptr.tolist() == X.indptr.tolist()
    assert checked.y.tobytes() == y.tobytes()
    assert (checked.qid is None and qid is None) or checked.qid.tolist() == qid.tolist()


@FUZZ
@given(text=generated.texts())
def test_random_good_text_has_no_mistakes_and_is_read_alike(chunk_bytes, text):
    checked = check_bytes(text)
    assert checked.mistakes == ()
    assert_same_rows(checked, *read_svmlight(io.BytesIO(text)))


@FUZZ
@given(text=generated.texts(), zero_based=st.sampled_from(["auto", True, False]), data=st.data())
def test_there_is_a_mistake_if_and_only_if_the_reader_refuses_the_text(chunk_bytes, text, zero_based, data):
    text = bytearray(text)
    for _ in range(data.draw(st.integers(0, 3))):
        place, length = data.draw(st.integers(0, len(text))), data.draw(st.sampled_from([0, 0, 1, 1, 4]))
        text[place : place + length] = data.draw(st.sampled_from(PIECES) | st.binary(max_size=3))
    text = bytes(text)
    checked = check_bytes(text, zero_based=zero_based)
    refused = None
    try:
        rows = read_svmlight(io.BytesIO(text), zero_based=zero_based)
    except FormatError as error:
        refused = error
    assert (checked.n_mistakes > 0) == (refused is not None)
    assert not any("cannot be read" in mistake.rule for mistake in checked.mistakes)
    if refused is None:
        assert_same_rows(checked, *rows)
    elif "qid" not in refused.rule and not any("qid" in mistake.rule for mistake in checked.mistakes[:1]):
        one_for_all = ("comma-separated", "binary", "damaged")
        if not any(word in checked.mistakes[0].rule for word in one_for_all):
            assert places(checked)[0] == (refused.line, refused.column)


@FUZZ
@given(lines=st.lists(st.sampled_from([line for line, _, _ in PLANTS + QUERY_PLANTS]), max_size=4), data=st.data())
def test_without_the_lines_that_have_mistakes_the_reader_reads_the_same_rows(chunk_bytes, lines, data):
    text = data.draw(generated.texts()).removesuffix(b"\n").split(b"\n")
    for line in lines:
        text.insert(data.draw(st.integers(0, len(text))), line)
    checked = check_bytes(b"\n".join(text))
    bad = {mistake.line for mistake in checked.mistakes}
    assert checked.n_refused == len(bad - {None})
    if checked.X is None:
        return
    rest = [line for number, line in enumerate(text, 1) if number not in bad]
    assert_same_rows(checked, *read_svmlight(io.BytesIO(b"\n".join(rest))))
    labels = [float(text[number - 1].split()[0].split(b"#")[0]) for number in checked.lines]
    assert labels == checked.y.tolist()


def test_uncompiled_and_compiled_find_the_same(tmp_path):
    rows = [b"1 qid:1 1:2 3:1e-320", *(line for line, _, _ in PLANTS), *(line for line, _, _ in QUERY_PLANTS)]
    (tmp_path / "rows").write_bytes(b"\n".join(rows * 2 + rows[:1] * 60))
    script = (
        "import sys; from widemargin.data.svmlight.checker import check_svmlight\n"
        "found = check_svmlight(sys.argv[1])\n"
        "print(found.mistakes, found.X.data.tobytes().hex(), *map(list, (found.y, found.qid, found.lines)))"
    )
    printed = []
    for name in ("0", "1"):
        command = [sys.executable, "-W", "error", "-c", script, str(tmp_path / "rows")]
        environment = {**os.environ, "NUMBA_DISABLE_JIT": name}
        printed.append(subprocess.run(command, env=environment, capture_output=True, check=True).stdout)
    assert printed[0] == printed[1]
    assert len(printed[0]) > 1000
