"""`widemargin scale`: svm-scale's results and range files, sparse data, any size, and every mistake as one line.

What svm-scale does was learned from its usage text and by running it (3.24); "identical" is meant up to the six digits
it writes of a value, where we write all (of labels and ranges it writes 17).

Kept: an absent entry counts as 0, for the range and when scaled; a feature that never varies is neither written nor
saved; the ends of a range go to the limits exactly; a value of 0 is not written; -r also writes features that the data
lack; of features that the range file lacks, those that vary are warned of.

Not kept: with -r it ignores -l and -u, takes the range for -y from the data, and if the file is no range file, all of
them; it writes nan and inf; it rounds -l, -u and -y to single precision; it drops qid and the rest of the line; it
saves no range for index 0; it stops at a blank line.
"""

import bz2
import gzip
import json
import lzma
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from widemargin import read_svmlight, write_svmlight
from widemargin.data.svmlight.compression import zstd
from widemargin.workflows import scale

SVM_SCALE = shutil.which("svm-scale")
needs_svm_scale = pytest.mark.skipif(SVM_SCALE is None, reason="svm-scale is not on the path (Debian: libsvm-tools)")

TRAIN = "1 1:2 2:5 4:1\n-1 1:4 2:5 3:1\n1 1:3 2:5 4:7\n"
TEST = "1 1:10 2:6 3:1 5:9 7:1\n2 9:1\n"


def one_line(text):
    """Return the only line of a text, but for the note of a first compilation, which any test may be the one to see."""
    (line,) = (line for line in text.splitlines() if not line.startswith("compiling ("))
    return line


@pytest.fixture
def put(tmp_path):
    """Return a function that writes text to a file of tmp_path."""
    return lambda name, text: (tmp_path / name).write_text(text)


@pytest.fixture
def scaled(call):
    """Return a function that scales quietly to a file `out`, and returns its text."""

    def scaled(*words):
        status, _, err = call("scale", "-q", "-o", "out", *words)
        assert (status, [line for line in err.splitlines() if "error" in line]) == (0, [])
        return Path("out").read_text()

    return scaled


# A reference so plain that it is right by inspection


def parse(text):
    """Return [(label, {index: value})] of rows without queries and comments."""
    rows = [line.split() for line in text.splitlines()]
    return [(float(row[0]), {int(j): float(v) for j, v in (pair.split(":") for pair in row[1:])}) for row in rows]


def reference_ranges(rows, lower, upper):
    """Return the text of svm-scale's range file for rows."""
    lines = ["x", f"{lower:.17g} {upper:.17g}"]
    for j in range(1, max(index for _, row in rows for index in row) + 1):
        values = [row.get(j, 0.0) for _, row in rows]
        if min(values) != max(values):
            lines.append(f"{j} {min(values):.17g} {max(values):.17g}")
    return "\n".join([*lines, ""])


def reference_scaled(rows, range_text):
    """Return the rows as svm-scale scales them by the text of a range file without labels: [(label, {index: text})]."""
    _, limits, *features = range_text.splitlines()
    lower, upper = map(float, limits.split())
    results = []
    for label, row in rows:
        result = {}
        for index, low, high in map(str.split, features):
            value, low, high = row.get(int(index), 0.0), float(low), float(high)
            if value == low:
                scaled = lower
            elif value == high:
                scaled = upper
            else:
                scaled = lower + (upper - lower) * (value - low) / (high - low)
            if scaled != 0:
                result[int(index)] = f"{scaled:g}"
        results.append((label, result))
    return results


def in_six_digits(text):
    """Return rows with values as svm-scale prints them, to compare with it."""
    return [(label, {j: f"{value:g}" for j, value in row.items()}) for label, row in parse(text)]


# svm-scale's results


@pytest.mark.parametrize(
    ("words", "expected"),  # printed by svm-scale 3.24, but for the number of digits
    [
        ([], "1 1:-1 3:-1 4:-0.7142857142857143\n-1 1:1 3:1 4:-1\n1 3:-1 4:1\n"),
        (["-l", "0"], "1 4:0.14285714285714285\n-1 1:1 3:1\n1 1:0.5 4:1\n"),
        (["-y", "0", "5"], "5 1:-1 3:-1 4:-0.7142857142857143\n0 1:1 3:1 4:-1\n5 3:-1 4:1\n"),
    ],
)
def test_rows_are_scaled_as_svm_scale_does(words, expected, call, put):
    put("data", TRAIN)
    assert call("scale", "-q", *words, "data") == (0, expected, "")


def test_the_range_file_is_svm_scale_s_and_is_applied_to_test_data(call, put, scaled, tmp_path):
    put("train", TRAIN)
    put("test", TEST)
    scaled("-y", "0", "1", "-s", "ranges", "train")
    assert (tmp_path / "ranges").read_text() == "y\n0 1\n-1 1\nx\n-1 1\n1 2 4\n3 0 1\n4 0 7\n"
    status, out, err = call("scale", "-q", "-r", "ranges", "test")
    assert (status, out) == (0, "1 1:7 3:1 4:-1\n1.5 1:-3 3:-1 4:-1\n")
    assert err == "widemargin: warning: 4 features are left out, for which ranges has no range: 2, 5, 7, 9\n"


def test_only_features_that_vary_are_missed_in_the_ranges(call, put, scaled):
    put("train", TRAIN)
    first = scaled("-s", "ranges", "train")
    assert call("scale", "-q", "-r", "ranges", "train") == (0, first, "")


@pytest.mark.parametrize("limits", [(-1, 1), (0, 1), (-3.7, 0.1)])
@pytest.mark.parametrize("name", ["breast_cancer", "diabetes", "digits", "iris"])
def test_ranges_and_rows_agree_with_the_reference(name, limits, read_bundled, scaled, tmp_path):
    X, y = read_bundled(name)
    write_svmlight(tmp_path / "data", X[:100], y[:100])
    rows = parse((tmp_path / "data").read_text())
    text = scaled("-l", limits[0], "-u", limits[1], "-s", "ranges", "data")
    assert (tmp_path / "ranges").read_text() == reference_ranges(rows, *limits)
    assert in_six_digits(text) == reference_scaled(rows, (tmp_path / "ranges").read_text())


REAL = [  # data set, test data: of the same set the other half, of another set with other features
    ("breast_cancer", "breast_cancer"),
    ("diabetes", "diabetes"),
    ("digits", "digits"),
    ("wine", "digits"),
    ("digits", "iris"),
]


@needs_svm_scale
@pytest.mark.parametrize("limits", [[], ["-l", "0"], ["-l", "-3.75", "-u", "0.125", "-y", "-2.5", "3"]])
@pytest.mark.parametrize(("train", "test"), REAL)
def test_range_files_of_svm_scale_and_ours_are_equal_and_apply_identically(
    train, test, limits, read_bundled, scaled, tmp_path
):
    for first, (name, source) in enumerate([("train", train), ("test", test)]):
        X, y = read_bundled(source)
        write_svmlight(tmp_path / name, X[first::2], y[first::2])

    def theirs(*words):
        return subprocess.run([SVM_SCALE, *words], cwd=tmp_path, capture_output=True, text=True, check=True).stdout

    assert in_six_digits(scaled(*limits, "-s", "ours", "train")) == in_six_digits(
        theirs(*limits, "-s", "theirs", "train")
    )
    assert (tmp_path / "ours").read_bytes() == (tmp_path / "theirs").read_bytes()
    assert in_six_digits(scaled("-r", "theirs", "test")) == in_six_digits(theirs("-r", "ours", "test"))


@needs_svm_scale
@pytest.mark.parametrize("words", [["--keep-zeros"], ["--method", "variance"], ["--method", "variance", "--center"]])
def test_svm_scale_applies_the_ranges_of_every_method(words, read_bundled, scaled, tmp_path):
    X, y = read_bundled("breast_cancer")
    write_svmlight(tmp_path / "data", X, y)
    ours = parse(scaled(*words, "-s", "ranges", "data"))
    done = subprocess.run([SVM_SCALE, "-r", "ranges", "data"], cwd=tmp_path, capture_output=True, text=True, check=True)
    for (label, row), (other_label, other) in zip(ours, parse(done.stdout), strict=True):
        assert label == other_label
        for j in row.keys() | other.keys():
            assert row.get(j, 0.0) == pytest.approx(other.get(j, 0.0), rel=1e-5, abs=1e-14)
        if "--center" not in words:
            assert row.keys() == other.keys()


def test_svmguide1_scaled_gives_libsvm_the_accuracy_of_its_guide(read_shared, scaled, libsvm, tmp_path):
    for name, letter in (("svmguide1", "-s"), ("svmguide1.t", "-r")):
        X, y, _ = read_shared(name)
        write_svmlight(tmp_path / name, X, y)
        (tmp_path / name).write_text(scaled(letter, "ranges", name))
    libsvm.train(tmp_path / "svmguide1", "-s 0 -t 2", tmp_path / "model")
    predicted, _, _ = libsvm.predict(tmp_path / "svmguide1.t", tmp_path / "model")
    assert np.sum(predicted == y) == 3846  # of 4000; 2677 without scaling


# Methods


def test_unit_variance_keeps_zeros_and_centered_does_not(scaled, put, tmp_path):
    put("data", "1 1:2\n2 1:4 2:3\n3\n4 1:2\n")
    text = scaled("--method", "variance", "-s", "ranges", "data")
    roots = {1: 2**0.5, 2: 4 / 3**0.5}  # standard deviations are sqrt(2) and sqrt(27) / 4
    assert [label for label, _ in parse(text)] == [1, 2, 3, 4]
    expected = [{1: roots[1]}, {1: 2 * roots[1], 2: roots[2]}, {}, {1: roots[1]}]
    assert [row for _, row in parse(text)] == [pytest.approx(row, rel=1e-15) for row in expected]
    assert (tmp_path / "ranges").read_text().startswith("x\n-1 1\n1 -1.41421356237309")
    assert scaled("-r", "ranges", "data") == text
    centered = [row for _, row in parse(scaled("--method", "variance", "--center", "data"))]
    assert [row[2] for row in centered] == pytest.approx([-(3**-0.5), 3**0.5, -(3**-0.5), -(3**-0.5)])


def test_keep_zeros_is_a_factor_to_the_upper_limit(scaled, put):
    put("data", "1 1:2 2:-8\n2 1:4 2:1\n3 3:5\n")
    assert scaled("--keep-zeros", "data") == "1 1:0.5 2:-1\n2 1:1 2:0.125\n3 3:1\n"
    assert scaled("--keep-zeros", "-u", "3", "data") == "1 1:1.5 2:-3\n2 1:3 2:0.375\n3 3:3\n"


def test_queries_order_and_indices_from_zero_are_kept_and_comments_dropped(scaled, put, tmp_path):
    put("data", "# heading\n3 qid:7 0:1 2:4 # doc\n1 qid:2 2:2\n\n2 qid:7 0:3\n")
    text = "3 qid:7 0:-0.33333333333333337 2:1\n1 qid:2 0:-1\n2 qid:7 0:1 2:-1\n"
    assert scaled("-s", "ranges", "data") == text
    assert (tmp_path / "ranges").read_text() == "x\n-1 1\n0 0 3\n2 0 4\n"
    assert scaled("-r", "ranges", "data") == text


def test_values_are_written_with_all_their_digits(scaled, put):
    put("data", "0.1234567890123456 1:0.1\n1234567.25 1:0.7\n3 1:0.2\n")
    (_, _), (_, _), (_, row) = parse(scaled("-l", "0", "data"))
    assert row[1] == (0.2 - 0.1) / (0.7 - 0.1)
    assert [label for label, _ in parse(scaled("data"))] == [0.1234567890123456, 1234567.25, 3]


# Sparse data


SPARSE = "".join(f"1 {j}:{j % 3 + 1}\n" for j in range(1, 21))


@pytest.mark.parametrize(
    ("words", "cure"),
    [
        ([], "-l 0 keeps them, as no value is negative; so do --keep-zeros and --method variance"),
        (["-l", "1", "-u", "2"], "-l 0 keeps them, as no value is negative; so do --keep-zeros and --method variance"),
        (["--method", "variance", "--center"], "leave --center out to keep them"),
    ],
)
def test_growth_is_warned_of_with_both_numbers_and_the_cure(words, cure, call, put):
    put("data", SPARSE)
    status, _, err = call("scale", "-q", *words, "-o", "out", "data")
    assert status == 0
    expected = f"widemargin: warning: 20 entries become 400, as zeros of 20 features become other numbers; {cure}"
    assert one_line(err) == expected


def test_of_negative_values_the_cure_is_another(call, put):
    put("data", SPARSE.replace(":1", ":-1"))
    _, _, err = call("scale", "-q", "-l", "0", "-o", "out", "data")
    assert one_line(err).endswith("; --keep-zeros and --method variance keep them")


@pytest.mark.parametrize("words", [["-l", "0"], ["--keep-zeros"], ["--method", "variance"]])
def test_the_cures_keep_data_sparse_without_a_warning(words, call, put):
    put("data", SPARSE)
    status, _, err = call("scale", "-q", *words, "-s", "ranges", "-o", "out", "data")
    assert (status, err) == (0, "")
    assert read_svmlight("out")[0].nnz == 20
    assert call("scale", "-q", "-r", "ranges", "-o", "out", "data")[2] == ""


def test_growth_by_restored_ranges_is_warned_of_too(call, put):
    put("data", SPARSE)
    call("scale", "-q", "-s", "ranges", "-o", "out", "data")
    _, _, err = call("scale", "-q", "-r", "ranges", "-o", "out", "data")
    assert "20 entries become 400" in one_line(err)
    assert one_line(err).endswith("learn the ranges with --keep-zeros or --method variance")


def test_how_many_rows_are_filled_at_once_makes_no_difference(scaled, put, monkeypatch):
    put("data", SPARSE)
    whole = scaled("data")
    monkeypatch.setattr(scale, "_MAX_ENTRIES_AT_A_TIME", 50)
    assert scaled("data") == whole
    assert len(parse(whole)) == 20


# Files


def test_the_rows_go_to_standard_output_and_the_summary_to_standard_error(call, put):
    put("data", TRAIN)
    status, out, err = call("scale", "data")
    assert status == 0
    assert len(parse(out)) == 3
    facts = dict(line.split(None, 1) for line in err.splitlines() if not line.startswith("compiling"))
    assert facts.keys() == {"rows", "features", "entries", "seconds"}
    assert (facts["rows"], facts["features"], facts["entries"]) == ("3", "3 (1 left out)", "8 (before: 9)")


def test_json_is_one_object(call, put):
    put("data", TRAIN)
    status, out, _ = call("scale", "--json", "-s", "ranges", "-o", "out", "data")
    facts = json.loads(one_line(out), parse_constant=pytest.fail)
    assert status == 0
    assert facts.pop("seconds") >= 0
    assert facts == {
        "rows": 3, "features": 3, "left_out": 1, "entries": 9, "entries_scaled": 8, "ranges": "ranges", "output": "out",
    }  # fmt: skip


@pytest.mark.parametrize("compress", [bytes, gzip.compress, bz2.compress, lzma.compress, zstd.compress])
def test_standard_input_is_read_and_may_be_compressed(compress, call, scaled, put):
    put("data", TRAIN)
    expected = scaled("-s", "ranges", "data")
    for words in ([], ["-r", "ranges"]):
        assert call("scale", "-q", *words, "-", stdin=compress(TRAIN.encode())) == (0, expected, "")


def test_standard_input_of_a_process_is_read(run, scaled, put):
    put("data", TRAIN)
    expected = scaled("-s", "ranges", "data")
    done = run("scale", "-q", "-", input=gzip.compress(TRAIN.encode()))
    assert (done.returncode, done.stdout.decode(), done.stderr) == (0, expected, b"")


def test_a_pipe_named_as_a_file_is_read(scaled, put, tmp_path):
    put("data", TRAIN)
    expected = scaled("data")
    os.mkfifo(tmp_path / "pipe")
    with subprocess.Popen(["cp", "data", "pipe"], cwd=tmp_path):
        assert scaled("pipe") == expected


@pytest.mark.parametrize("suffix", [".gz", ".bz2", ".xz", ".zst"])
def test_output_is_compressed_by_its_suffix(suffix, call, scaled, put):
    put("data", TRAIN)
    expected = read_svmlight_text(scaled("data"))
    assert call("scale", "-q", "-o", f"packed{suffix}", "data")[0] == 0
    assert b":" not in Path(f"packed{suffix}").read_bytes()[:4]
    X, y, _ = read_svmlight(f"packed{suffix}")
    np.testing.assert_array_equal(X.toarray(), expected[0])
    np.testing.assert_array_equal(y, expected[1])


def read_svmlight_text(text):
    rows = parse(text)
    X = np.zeros((len(rows), max(max(row) for _, row in rows)))
    for i, (_, row) in enumerate(rows):
        X[i, np.array(list(row)) - 1] = list(row.values())
    return X, [label for label, _ in rows]


def test_ranges_may_come_and_go_through_the_standard_streams(run, call, put):
    put("data", TRAIN)
    saved = call("scale", "-q", "-s", "-", "-o", "out", "data")[1]
    assert saved == "x\n-1 1\n1 2 4\n3 0 1\n4 0 7\n"
    done = run("scale", "-q", "-r", "-", "data", input=saved.encode())
    assert done.stdout.decode() == Path("out").read_text()


def test_limits_that_agree_with_the_range_file_may_be_given_again(scaled, put):
    put("data", TRAIN)
    assert scaled("-l", "0", "-s", "ranges", "data") == scaled("-l", "0", "-u", "1", "-r", "ranges", "data")


# Any size


PEAK = """
import sys
from widemargin.cli.main import main
assert main(sys.argv[1:]) == 0
(line,) = [line for line in open("/proc/self/status") if line.startswith("VmHWM")]
print(line.split()[1], file=sys.stderr)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="this system has no /proc")
@pytest.mark.parametrize("source", ["file", "xz"])
def test_memory_does_not_grow_with_the_file(source, tmp_path, rng):
    """Peaks of 20 and 80 MB of text: read whole, they would differ by more than the 60 MB of the text.

    VmHWM is what this very program took; ru_maxrss would start at what its parent, the tests, had taken.
    """
    X = rng.integers(0, 1025, (5000, 30)) / 1024
    X[0], X[1] = 0.0, 1.0
    write_svmlight(tmp_path / "part", X, np.ones(5000))
    text, peaks = (tmp_path / "part").read_bytes(), []
    for megabytes in (20, 80):
        n_parts = int(megabytes * 1e6 / len(text)) + 1
        (tmp_path / "data").write_bytes((lzma.compress(text, preset=0) if source == "xz" else text) * n_parts)
        command = [sys.executable, "-c", PEAK, "scale", "-q", "-l", "0", "-s", "ranges", "-o", "out", "data"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
        peaks.append(int(done.stderr.split()[-1]) / 1024)
    assert (tmp_path / "out").stat().st_size == len(text) * n_parts
    assert peaks[1] - peaks[0] < 35


# Mistakes


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "DATA is missing"),
        (["data", "other"], "unexpected argument 'other'"),
        (["-l", "1", "data"], "-l must be below -u, got 1 and 1"),
        (["-l", "x", "data"], "argument -l/--lower: must be a finite number, got 'x'"),
        (["-y", "1", "data"], "argument -y/--labels: must be a finite number, got 'data'"),
        (["-y", "1", "1", "data"], "-y: the lower limit must be below the upper, got 1 and 1"),
        (["-s", "a", "-r", "b", "data"], "-s saves ranges that are learned from DATA, -r applies saved ones"),
        (["-r", "ranges", "-y", "0", "1", "data"], "-y is for learning ranges"),
        (["-r", "ranges", "--keep-zeros", "data"], "--keep-zeros is for learning ranges"),
        (["-r", "ranges", "--method", "range", "data"], "--method is for learning ranges"),
        (["-r", "ranges", "-l", "0", "data"], "-l 0: the ranges of ranges are for -1; leave it out"),
        (["-r", "-", "-"], "DATA and the ranges of -r cannot both be standard input"),
        (["-s", "-", "data"], "rows and ranges would both go to standard output"),
        (["-s", "out", "-o", "out", "data"], "rows and ranges would both go to out"),
        (["-o", "data", "data"], "data would be overwritten by the result"),
        (["-s", "data", "data"], "data would be overwritten by the result"),
        (["-r", "ranges", "-o", "ranges", "data"], "ranges would be overwritten by the result"),
        (["--center", "data"], "--center is for --method variance"),
        (["--method", "variance", "-l", "0", "data"], "-l and -u are for --method range"),
        (["--method", "variance", "--keep-zeros", "data"], "--method variance keeps zeros without --keep-zeros"),
        (
            ["--keep-zeros", "-l", "0", "data"],
            "--keep-zeros scales to .-UPPER, UPPER. with UPPER > 0, got -u 1 and -l 0",
        ),
        (["--keep-zeros", "-u", "-2", "data"], "--keep-zeros scales to .-UPPER, UPPER. with UPPER > 0, got -u -2"),
        (["--method", "median", "data"], "argument --method: invalid choice: 'median'"),
        (["--keep-zero", "data"], "unknown option --keep-zero; did you mean --keep-zeros?"),
    ],
)
def test_wrong_usage_is_one_line_and_status_2(words, message, call, put):
    put("data", TRAIN)
    put("ranges", "x\n-1 1\n1 2 4\n")
    status, out, err = call("scale", *words)
    assert (status, out) == (2, "")
    assert re.match(f"widemargin: error: {message}", one_line(err))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["nowhere"], "nowhere: no such file; check the path"),
        (["."], r"\.: is a directory; name a file"),
        (["-r", "nowhere", "data"], "nowhere: no such file"),
        (["-r", "data", "data"], "data:1: expected a line x or y, got '1 1:2 2:5 4:1'"),
        (["-o", "nowhere/out", "data"], "nowhere/out: there is no directory"),
        (["-s", "nowhere/out", "data"], "nowhere/out: there is no directory"),
        (["broken"], "broken:3:3: value must be a number, got 'x'"),
        (["-r", "ranges", "broken"], "broken:3:3: value must be a number, got 'x'"),
        (["empty"], "empty: holds no rows"),
        (["-r", "labels", "data"], "data: y must be 5 everywhere, the only label the ranges know, got 1.0"),
        (["-r", "narrow", "huge"], r"huge: column 1: 1e\+300 cannot be scaled by the range from 0 to 1e-300"),
        (["--method", "variance", "huge"], "huge: column 1: the variance of values from -1e.300 to 1e.300"),
        (["wide"], "wide: X must have at most 268435456 columns to be scaled, got 2000000001"),
    ],
)
def test_what_fails_is_one_line_and_status_1_and_writes_nothing(words, message, call, put, tmp_path):
    put("data", TRAIN)
    put("broken", "1 1:1\n2 1:2\n3 1:x\n")
    put("empty", "# nothing\n")
    put("huge", "1 1:1e300\n2 1:-1e300\n")
    put("wide", "1 2000000000:1\n")
    put("ranges", "x\n-1 1\n1 2 4\n")
    put("narrow", "x\n-1 1\n1 0 1e-300\n")
    put("labels", "y\n0 1\n5 5\nx\n-1 1\n1 2 4\n")
    before = sorted(tmp_path.iterdir())
    status, out, err = call("scale", *(["-o", "out"] if "-o" not in words else []), *words)
    assert (status, out) == (1, "")
    assert re.match(f"widemargin: error: {message}", one_line(err))
    assert sorted(tmp_path.iterdir()) == before


def test_labels_that_are_all_equal_are_warned_of(call, put):
    put("data", "1 1:1\n1 1:2\n")
    status, out, err = call("scale", "-q", "-y", "0", "5", "data")
    assert (status, out) == (0, "0 1:-1\n0 1:1\n")
    assert one_line(err) == "widemargin: warning: all labels are 1: they become 0"


def test_a_reader_that_goes_away_ends_the_command_quietly(tmp_path, rng):
    write_svmlight(tmp_path / "data", rng.random((5000, 30)), np.ones(5000))
    command = [sys.executable, "-m", "widemargin", "scale", "-q", "data"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 141


def test_help_explains_and_shows_examples(call):
    status, out, _ = call("scale", "--help")
    assert status == 0
    assert out.startswith("usage: widemargin scale [options] DATA\n")
    for words in ("examples:", "exit status:", "comments are dropped", "fewest digits", "-r RANGES", "--keep-zeros"):
        assert words in out
    assert max(map(len, out.splitlines())) <= 120
