"""`widemargin check`: defects at their places, what looks wrong with the way out, and the exit status."""

import gzip
import json
import lzma

import numpy as np
import pytest

from widemargin import write_svmlight


def write(path, X, y, **options):
    write_svmlight(path, np.asarray(X), y, **options)
    return path


@pytest.fixture
def kinds(call):
    """Return a function that checks a file and returns the kinds of what looks wrong in it."""

    def kinds(path, *words):
        status, out, _ = call("check", "--json", *words, path)
        assert status == 0
        return [suspicion["kind"] for suspicion in json.loads(out)["suspicions"]]

    return kinds


# Defects


def test_defects_are_printed_like_a_compiler_s_and_make_status_1(call, tmp_path):
    (tmp_path / "bad").write_text("1 1:1\n-1 1:1 5:2 3:x\n# c\n2 9\n1 2:1\n")
    status, out, err = call("check", "bad")
    assert status == 1
    assert out.splitlines()[:5] == [
        "bad:2:12: indices must increase, got 3 after 5",
        "bad:2:12: value must be a number, got 'x'",
        "bad:4:3: the colon of index:value is missing in '9'",
        "rows      2 (and 2 lines with defects)",
        "features  2, counted from 1",
    ]
    assert out.splitlines()[-1].startswith("3 defects, ")
    assert [line for line in err.splitlines() if not line.startswith("compiling (")] == []


def test_no_defects_are_status_0_and_a_summary(call, two):
    status, out, _ = call("check", two)
    assert status == 0
    lines = out.splitlines()
    assert lines[0] == "rows      60"
    assert lines[2] == "entries   240, 100% of all"
    assert lines[3].startswith("labels    2 classes: -1 (")
    assert lines[-1] == "no defects, no warnings"


def test_more_defects_than_the_limit_are_counted(call, tmp_path):
    (tmp_path / "bad").write_text("x 1:1\n" * 150)
    out = call("check", "-q", "bad")[1].splitlines()
    assert (len(out), out[-1]) == (101, "... and 50 more")
    assert call("check", "-q", "--limit", "0", "bad")[:2] == (1, "... and 150 more\n")
    assert len(call("check", "-q", "--limit", "none", "bad")[1].splitlines()) == 150
    assert call("check", "--limit", "5", "bad")[1].splitlines()[-1] == "150 defects, no warnings"


def test_a_count_that_is_a_lower_bound_says_so(call, tmp_path, monkeypatch):
    monkeypatch.setattr("widemargin.data.svmlight.checker._EXPLAINED_BYTES", 100)
    (tmp_path / "bad").write_text("x 1:y\n" * 150)
    out = call("check", "--limit", "3", "bad")[1].splitlines()
    assert out[3].startswith("... and at least 1")
    assert out[4].startswith("at least 1")


def test_quiet_prints_defects_only(call, two, tmp_path):
    assert call("check", "-q", two) == (0, "", "")
    (tmp_path / "bad").write_text("1 1:1\n1 1:nan\n")
    assert call("check", "-q", "bad") == (1, "bad:2:3: value must be finite, got 'nan'\n", "")


def test_json_is_one_strict_object(call, two, tmp_path):
    (tmp_path / "bad").write_text("1 1:1\n-1 1:y 2:z\n-1 1:1e300\n")
    status, out, _ = call("check", "--json", "--limit", "1", "bad")
    found = json.loads(out, parse_constant=pytest.fail)
    assert status == 1
    assert found["defects"] == [{"line": 2, "column": 4, "message": "value must be a number, got 'y'"}]
    assert (found["n_defects"], found["n_defects_is_exact"]) == (2, True)
    assert found["summary"]["n_rows"] == 2
    assert found["summary"]["labels"]["classes"] == [[-1, 1], [1, 1]]
    assert found["suspicions"][0].keys() == {"kind", "message", "cure"}
    found = json.loads(call("check", "--json", two)[1])
    assert (found["defects"], found["n_defects"], found["suspicions"]) == ([], 0, [])


def test_json_has_null_for_a_range_that_no_number_can_hold(call, tmp_path):
    (tmp_path / "huge").write_text("1 1:1e308 2:1\n-1 1:-1e308 2:2\n")
    found = json.loads(call("check", "--json", "huge")[1], parse_constant=pytest.fail)
    assert found["summary"]["features"]["widest"] == [None, 1]


def test_a_file_without_rows_has_no_summary(call, tmp_path):
    (tmp_path / "empty").write_text("# nothing\n")
    assert call("check", "empty")[:2] == (1, "empty: holds no rows\n1 defect, no warnings\n")
    assert json.loads(call("check", "--json", "empty")[1])["summary"] is None


def test_standard_input_and_compressed_files_are_checked(run, call, tmp_path):
    text = b"1 1:1\n1 x:1\n"
    done = run("check", "-q", "-", input=gzip.compress(text))
    assert (done.returncode, done.stdout) == (1, b"<stdin>:2:3: index must be an integer, got 'x'\n")
    (tmp_path / "bad.xz").write_bytes(lzma.compress(text)[:-9])
    status, out, _ = call("check", "-q", "bad.xz")
    assert status == 1
    assert out.startswith("bad.xz: the xz data are damaged or cut short (")


def test_index_zero_is_a_defect_if_indices_are_said_to_count_from_1(call, tmp_path):
    (tmp_path / "zero").write_text("1 0:1 1:2\n-1 1:1\n")
    assert "features  2, counted from 0\n" in call("check", "zero")[1]
    status, out, _ = call("check", "-q", "--zero-based", "no", "zero")
    assert (status, out[:26]) == (1, "zero:1:3: index 0 in a fil")


@pytest.mark.parametrize(
    ("words", "status", "says"),
    [
        ([], 2, "DATA is missing"),
        (["a", "b"], 2, "unexpected argument 'b'"),
        (["--limit", "-1", "a"], 2, "must be a whole number >= 0 or none, got '-1'"),
        (["--task", "rank", "a"], 2, "invalid choice: 'rank'"),
        (["absent"], 1, "absent: no such file"),
        (["."], 1, ".: is a directory; name a file"),
    ],
)
def test_wrong_usage_and_missing_files_are_one_line(call, words, status, says):
    found, out, err = call("check", *words)
    assert (found, out) == (status, "")
    assert err.startswith("widemargin: error: ")
    assert says in err
    assert err.count("\n") == 1


def test_help_has_examples_and_the_exit_status(call):
    status, out, _ = call("check", "--help")
    assert status == 0
    assert out.startswith("usage: widemargin check [options] DATA\n")
    assert "examples:" in out
    assert "exit status:" in out


# What looks wrong


def test_nothing_looks_wrong_in_ordinary_files(kinds, two, three):
    assert kinds(two) == kinds(three) == []


def test_quantities_are_suspicious_only_as_classes(kinds, slope, tmp_path, rng):
    assert kinds(slope) == kinds(slope, "--task", "classification") == ["quantities"]
    assert kinds(slope, "--task", "regression") == []
    y = np.repeat(np.arange(20), np.arange(1, 41, 2))
    rings = write(tmp_path / "rings", rng.standard_normal((400, 3)), y)
    assert kinds(rings) == ["quantities"]
    assert kinds(rings, "--task", "regression") == []


def test_uneven_classes_are_cured_by_weights(call, kinds, tmp_path, rng):
    X = rng.standard_normal((110, 3))
    assert kinds(write(tmp_path / "even", X, np.repeat([1, 2], [100, 10]))) == []
    path = write(tmp_path / "uneven", X, np.repeat([1, 2], [101, 9]))
    assert kinds(path) == ["uneven classes"]
    line = "warning: classes are uneven: label 2 has 9 of the rows, label 1 has 101; train with --class-weight balanced"
    assert line in call("check", path)[1]


def test_labels_that_cannot_be_told_apart_or_are_not_known_are_suspicious(kinds, tmp_path, rng):
    X = rng.standard_normal((30, 3))
    assert kinds(write(tmp_path / "one", X, np.ones(30))) == ["one label"]
    assert kinds(write(tmp_path / "zero", X, np.repeat([-1, 0, 1], 10))) == ["label 0"]
    assert kinds(write(tmp_path / "grades", X, np.repeat([0, 1, 2], 10))) == []


def test_scales_are_suspicious_and_the_cure_is_the_command(call, kinds, tmp_path, rng):
    X, y = rng.standard_normal((60, 5)), np.arange(60) % 2
    assert kinds(write(tmp_path / "even", 10 * X, y)) == []
    assert kinds(write(tmp_path / "one wide", X * [1, 1, 1, 1, 200], y)) == ["scales"]
    assert kinds(write(tmp_path / "one narrow", X * [1e-4, 1, 1, 1, 1], y)) == ["scales"]
    assert kinds(write(tmp_path / "large", 100 * X, y)) == ["scales"]
    write(tmp_path / "one wide.gz", X * [1, 1, 1, 1, 200], y)
    assert "; widemargin scale -s ranges 'one wide.gz' > 'one wide.scale'\n" in call("check", "one wide.gz")[1]
    spread = X * [1e-4, 1, 1, 1, 1]
    unit = spread / np.linalg.norm(spread, axis=1, keepdims=True)
    assert kinds(write(tmp_path / "unit", unit, y)) == []


def test_rows_that_repeat_or_contradict_each_other_are_named_by_line(call, kinds, tmp_path, rng):
    X, y = rng.standard_normal((20, 3)), np.arange(20) % 2
    X[[7, 12]], X[15] = X[3], X[0]  # row 8 again row 4; rows 13 and 16 but for the label
    path = write(tmp_path / "again", X, y, comment="a line before")
    assert kinds(path) == ["conflicts", "repeats"]
    out = call("check", path)[1]
    assert "rows with the same values but different labels: 5 (lines 2 and 17)" in out
    assert "rows that repeat an earlier row and its label: 1 (line 9, as line 5)" in out
    assert kinds(write(tmp_path / "noise", X, y + 0.5), "--task", "regression") == ["repeats"]


def test_features_that_tell_nothing_or_all_are_suspicious(kinds, tmp_path, rng):
    X, y = rng.standard_normal((40, 5)), np.arange(40) % 2
    constant = X.copy()
    constant[:, 1] = 3
    assert kinds(write(tmp_path / "constant", constant, y)) == ["constant features"]
    leak = X.copy()
    leak[:, 2] = 5 - 2 * y
    assert kinds(write(tmp_path / "leak", leak, y)) == ["label copy"]
    empty = X.copy()
    empty[4] = 0
    assert kinds(write(tmp_path / "empty", empty, y)) == ["empty rows"]


def test_a_rare_index_zero_is_suspicious(kinds, tmp_path, rng):
    X, y = rng.standard_normal((60, 5)), np.arange(60) % 2
    assert kinds(write(tmp_path / "zero", X, y, zero_based=True)) == []
    X[:, 0] = 0
    X[17, 0] = 1
    assert kinds(write(tmp_path / "slip", X, y, zero_based=True)) == ["index 0"]


def test_queries_are_suspicious_if_scattered_or_flat_and_their_labels_are_not(call, kinds, tmp_path, rng):
    X, y, qid = rng.standard_normal((40, 3)), np.arange(40) % 40 // 39, np.repeat([1, 2, 1, 3], 10)
    path = write(tmp_path / "queries", X, y, qid=qid)
    assert kinds(path) == ["scattered queries", "flat queries"]
    out = call("check", path)[1]
    assert "queries whose rows are not together: 1 (query 1 comes back in line 21)" in out
    assert "queries   3 of 10 to 20 rows, median 10\n" in out
    assert kinds(write(tmp_path / "good", X, np.arange(40) % 3, qid=np.repeat([1, 2], 20))) == []


def test_a_precomputed_kernel_is_noted_instead_of_judged(kinds, tmp_path, rng):
    X = 1000 * rng.standard_normal((30, 2))
    K = np.column_stack([np.arange(1, 31), X @ X.T])
    assert kinds(write(tmp_path / "kernel", K, np.arange(30) % 2, zero_based=True)) == ["kernel"]


def test_every_warning_is_one_line_with_a_cure(call, tmp_path, rng):
    X = 1000 * rng.standard_normal((40, 4))
    X[:, 1], X[5], X[6] = 7, 0, X[7]
    write(tmp_path / "much", X, np.repeat([0, 1], [38, 2]))
    lines = [line for line in call("check", "much")[1].splitlines() if ": warning: " in line]
    assert len(lines) == 4
    assert all(line.startswith("much: warning: ") and "; " in line for line in lines)


@pytest.mark.parametrize("name", ["breast_cancer", "wine"])
def test_real_data_have_wrong_scales_until_they_are_scaled(name, read_bundled, call, kinds, tmp_path):
    write(tmp_path / "raw", *read_bundled(name))
    assert kinds("raw") == ["scales"]
    assert call("scale", "-q", "-o", "scaled", "raw")[0] == 0
    assert kinds("scaled") == []
