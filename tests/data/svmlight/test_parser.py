"""The compiled reader is judged by a slow reference reader, on hard, generated, damaged and real text."""

import importlib.util
import io
import lzma
import math
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from widemargin.data.svmlight import reader
from widemargin.data.svmlight.reader import read_svmlight
from widemargin.errors import FormatError

_HERE = Path(__file__).parent
_SPEC = importlib.util.spec_from_file_location("reference_reader", _HERE / "reference_reader.py")
reference = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(reference)


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


def assert_agrees_with_reference(data, **options):
    """Either both give the same matrix to the bit, or both refuse at the same line and column."""
    refused, expected = None, None
    try:
        expected = reference.read(data, **options)
    except reference.Refused as error:
        refused = error
    if refused is not None:
        with pytest.raises(FormatError, match="<stream>") as caught:
            read_bytes(data, **options)
        assert (caught.value.line, caught.value.column) == (refused.line, refused.column)
        assert "cannot be read" not in caught.value.rule
        return
    labels, queries, rows, n_features = expected
    X, y, qid = read_bytes(data, **options)
    dtype = options.get("dtype", np.float64)
    assert X.shape == (len(rows), n_features)
    assert same_bits(y, np.array(labels, dtype=np.float64))
    assert (qid is None) == (queries is None)
    assert qid is None or same_bits(qid, np.array(queries, dtype=np.int64))
    assert X.indptr.tolist() == np.cumsum([0, *map(len, rows)]).tolist()
    assert X.indices.tolist() == [column for row in rows for column, _ in row]
    assert same_bits(X.data, np.array([value for row in rows for _, value in row], dtype=dtype))
    X.check_format(full_check=True)


# Numbers

HARD_NUMBERS = [
    "9007199254740993",  # half-way between two doubles
    "9007199254740992.999999999999999999999",
    "9007199254740993.000000000000000000001",
    "1.7976931348623157e308",
    "1.7976931348623158e308",
    "2.2250738585072011e-308",
    "2.2250738585072014e-308",
    "4.9406564584124654e-324",
    "2.4703282292062327e-324",
    "2.4703282292062328e-324",
    "1e-400",
    "0e999999999999999999999999",
    "0." + "0" * 400 + "1e401",
    "1" + "0" * 400 + "e-400",
    "179769313486231580793728971405301e275",
    "0.1000000000000000055511151231257827",
    "123456789012345678901234567890",
    "8.41e+21",
    "9.5e22",
    "1e23",
    "5e-20",
    "6.9294956446009195e15",
    "0.000000000000000000000000000000000000000000000000123456789012345678",
    "3.4028235677973366e38",
    "1.00000017881393432617187499",
    "00000000000000000000000000000000001.5",
    "1e+0000000000000000000000000001",
]


@pytest.mark.parametrize("token", HARD_NUMBERS)
def test_hard_numbers_are_rounded_as_python_rounds_them(token):
    X, y, _ = read_bytes(f"{token} 1:{token} 2:-{token}\n".encode())
    assert same_bits(y, np.array([float(token)]))
    assert same_bits(X.data, np.array([float(token), -float(token)]))


def test_doubles_of_every_exponent_survive_their_shortest_decimal(rng):
    numbers = rng.integers(0, 2**64, 20_000, dtype=np.uint64).view(np.float64)
    numbers = numbers[np.isfinite(numbers)]
    text = "\n".join(f"{number!r} 1:{number!r}" for number in numbers.tolist())
    X, y, _ = read_bytes(text.encode())
    assert same_bits(X.data, numbers)
    assert same_bits(y, numbers)


def test_ties_and_their_neighbours_are_rounded_right(rng):
    """Exact half-way points, spelled to the last digit, then cut and raised at the 18th to 25th digit."""
    tokens = []
    for double in rng.integers(1, 2**62, 300, dtype=np.uint64).view(np.float64).tolist():
        if not 1e-30 < double < 1e30:
            double = math.ldexp(1 + double % 1, int(rng.integers(-60, 60)))
        top, bottom = double.as_integer_ratio()
        above_top, above_bottom = math.nextafter(double, math.inf).as_integer_ratio()
        scale = 10**150
        tie = (top * scale // bottom + above_top * scale // above_bottom) // 2
        whole, fraction = divmod(tie, scale)
        spelled = f"{whole}.{fraction:0150d}".rstrip("0")
        tokens += [spelled, spelled + "0001", spelled[: int(rng.integers(18, 25))].rstrip(".") or "0"]
    X, _, _ = read_bytes("".join(f"1 1:{token}\n" for token in tokens).encode())
    assert same_bits(X.data, np.array([float(token) for token in tokens]))


def test_more_undecided_numbers_than_the_list_holds_are_all_decided():
    tokens = [f"{k}.4e-324" for k in range(1, 500)]
    X, _, _ = read_bytes("".join(f"{token} 7:{token}\n" for token in tokens).encode())
    assert same_bits(X.data, np.array([float(token) for token in tokens]))


def test_float32_is_rounded_by_way_of_the_double_as_numpy_does():
    tokens = ["0.1", "16777217", "1.00000017881393432617187499", "3.4028235677973362e38", "1e-46", "1e-50"]
    X, y, _ = read_bytes("".join(f"0.1 1:{token}\n" for token in tokens).encode(), dtype=np.float32)
    assert same_bits(X.data, np.array([np.float32(float(token)) for token in tokens]))
    assert y[0] == 0.1
    assert y.dtype == np.float64


# Against the reference reader

BLANK = st.sampled_from([" ", " ", " ", "  ", "\t", " \t "])
NUMBER = st.one_of(
    st.integers(-300, 300).map(str),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.floats(-10, 10).map("{:.6f}".format),
    st.floats(allow_nan=False, allow_infinity=False).map("{:.25e}".format),
    st.floats(width=32, allow_nan=False, allow_infinity=False).map("{:.9E}".format),
    st.from_regex(r"[+-]?([0-9]{1,25}\.?[0-9]{0,25}|\.[0-9]{1,30})([eE][+-]?[0-9]{1,2})?", fullmatch=True),
    st.sampled_from(HARD_NUMBERS),
)


@st.composite
def texts(draw):
    """Well-formed text of a few rows, with all the freedom the format gives."""
    with_queries, lines = draw(st.booleans()), []
    for _ in range(draw(st.integers(1, 6))):
        label, blank = draw(NUMBER), draw(BLANK)
        indices = sorted(draw(st.sets(st.integers(0, 40) | st.integers(0, 2**31 - 2), max_size=5)))
        tokens = [label, *([f"qid:{draw(st.integers(-9, 10**18))}"] if with_queries else [])]
        tokens += [f"{index}:{draw(NUMBER)}" for index in indices]
        comment = draw(st.sampled_from(["", "", " # 3:4", "#", " ", "\t# é \x00"]))
        lines += [blank.join(tokens) + comment, *draw(st.sampled_from([[], [], ["# c:c"], [""], [" \t"]]))]
    end = draw(st.sampled_from(["\n", "\n", "\r\n"]))
    return (end.join(lines) + draw(st.sampled_from(["", end]))).encode()


OPTIONS = st.fixed_dictionaries(
    {
        "dtype": st.sampled_from([np.float64, np.float64, np.float32]),
        "zero_based": st.sampled_from(["auto", "auto", True, False]),
        "n_features": st.sampled_from([None, None, None, 20, 2**31 - 1]),
    }
)
FUZZ = settings(
    max_examples=120,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)


@FUZZ
@given(text=texts(), options=OPTIONS)
def test_well_formed_text_is_read_like_the_reference(chunk_bytes, text, options):
    assert_agrees_with_reference(text, **options)


@FUZZ
@given(text=texts(), options=OPTIONS, data=st.data())
def test_damaged_text_is_read_or_refused_like_the_reference(chunk_bytes, text, options, data):
    text = bytearray(text)
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(0, len(text)))
        length = data.draw(st.sampled_from([0, 0, 1, 1, 4]))
        pieces = [
            b"",
            b":",
            b" ",
            b"\n",
            b"\r",
            b"#",
            b"-",
            b"+",
            b".",
            b"e",
            b"0",
            b"9",
            b",",
            b"qid:1",
            b"\x00",
        ]
        pieces += [b"\xff", b"nan", b"1e999", b" 1:1 ", b"99999999999", b"\t", b"_"]
        text[place : place + length] = data.draw(st.sampled_from(pieces) | st.binary(max_size=3))
    if text[:4].startswith((b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff", b"\x1f\x8b", b"BZh")):
        return
    assert_agrees_with_reference(bytes(text), **options)


@settings(max_examples=200, deadline=None)
@given(text=st.lists(st.sampled_from(list(b"0019:. -+e#\n\r\tqid")), max_size=40).map(bytes))
def test_noise_is_read_or_refused_like_the_reference(text):
    assert_agrees_with_reference(text)


def test_uncompiled_reader_and_writer_agree_with_the_compiled_ones(tmp_path):
    tokens = [*HARD_NUMBERS, "0.5", "-3", "99999999999999999999999", "0.1234567890123456", "1.7e-200"]
    (tmp_path / "rows.svm").write_text("".join(f"{token} qid:4 1:{token} 12:1 # c\n" for token in tokens))
    script = (
        "import sys; from widemargin import read_svmlight, write_svmlight\n"
        "X, y, qid = read_svmlight(sys.argv[1]); write_svmlight(sys.argv[2], X[-5:], y[-5:], qid=qid[-5:])\n"
        "print(X.data.tobytes().hex(), y.tobytes().hex(), qid.sum())"
    )
    printed, written = [], []
    for name in ("0", "1"):
        command = [
            sys.executable,
            "-W",
            "error",
            "-c",
            script,
            str(tmp_path / "rows.svm"),
            str(tmp_path / name),
        ]
        environment = {**os.environ, "NUMBA_DISABLE_JIT": name}
        printed.append(subprocess.run(command, env=environment, capture_output=True, check=True).stdout)
        written.append((tmp_path / name).read_bytes())
    assert printed[0] == printed[1]
    assert written[0] == written[1]


@pytest.mark.parametrize("queries", [False, True])
@pytest.mark.parametrize("name", ["breast_cancer", "diabetes", "digits", "iris", "wine"])
def test_real_files_are_read_as_scikit_learn_reads_them(name, queries, read_bundled, tmp_path):
    X, y = read_bundled(name)
    query_id = np.arange(len(y)) // 7 if queries else None
    text = io.BytesIO()
    dump_svmlight_file(X, y, text, zero_based=False, comment=f"{name}\nwith two lines", query_id=query_id)
    (tmp_path / "file.xz").write_bytes(lzma.compress(text.getvalue()))
    X, y, qid = read_svmlight(tmp_path / "file.xz")
    text.seek(0)
    expected, labels, *query_ids = load_svmlight_file(text, query_id=queries)
    assert X.shape == expected.shape
    assert same_bits(X.data, expected.data)
    assert np.array_equal(X.indices, expected.indices)
    assert np.array_equal(X.indptr, expected.indptr)
    assert np.array_equal(y, labels)
    assert (qid is None) == (not queries)
    assert qid is None or np.array_equal(qid, query_ids[0])
