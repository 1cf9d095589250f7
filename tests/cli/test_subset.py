"""`widemargin subset`: lines as they are, the rest apart, labels in proportion, and mistakes in one line."""

import bz2
import gzip
import json
import lzma
import os

import numpy as np
import pytest

from widemargin import read_svmlight


@pytest.fixture
def rows(tmp_path):
    """A file of 100 rows, 60 of class 1, 30 of 2 and 10 of 3, each told from the others by its text; and its lines."""
    labels = np.random.default_rng(3).permutation(np.repeat([1, 2, 3], [60, 30, 10]))
    lines = [f"{label}{'.0' * (k % 2)}  1:{k} # row {k}\n" for k, label in enumerate(labels)]
    (tmp_path / "rows").write_text("# heading\n\n" + "".join(lines))
    return lines


@pytest.fixture
def queries(tmp_path):
    """A file of 20 queries with 1 to 20 rows."""
    sizes = np.random.default_rng(3).permutation(np.arange(1, 21))
    qid = np.repeat(np.arange(20), sizes)
    text = "".join(f"{k % 3} qid:{query} 1:{k}\n" for k, query in enumerate(qid))
    (tmp_path / "queries").write_text(text)
    return tmp_path / "queries"


def test_subset_and_rest_are_all_lines_as_they_are_in_their_order(call, rows, tmp_path):
    status, out, err = call("subset", "rows", "40", "some", "others")
    some, others = (tmp_path / "some").read_text(), (tmp_path / "others").read_text()
    some, others = some.splitlines(keepends=True), others.splitlines(keepends=True)
    assert (status, len(some), len(others)) == (0, 40, 60)
    assert sorted(some + others) == sorted(rows)
    assert some == [line for line in rows if line in set(some)]
    assert others == [line for line in rows if line in set(others)]
    assert out.splitlines() == [
        "subset    40 of 100 rows, stratified, seed 0",
        "labels    1 (24 of 60), 2 (12 of 30), 3 (4 of 10)",
        "left out  2 lines that are blank or comments",
    ]
    assert [line for line in err.splitlines() if not line.startswith("compiling (")] == []


@pytest.mark.parametrize("words", [["-s", "1"], ["--method", "random"], ["-s", "random"]])
def test_a_random_subset_does_not_mind_labels(call, rows, tmp_path, words):
    counts = set()
    for seed in range(8):
        assert call("subset", "-q", *words, "--seed", seed, "rows", "40", "some")[0] == 0
        counts.add(tuple(np.unique(read_svmlight(tmp_path / "some")[1], return_counts=True)[1]))
    assert len(counts) > 3


def test_the_same_seed_gives_the_same_rows_and_another_one_others(call, rows, tmp_path):
    texts = []
    for seed in ("7", "7", "8"):
        call("subset", "-q", "--seed", seed, "rows", "50", "some")
        texts.append((tmp_path / "some").read_text())
    assert texts[0] == texts[1] != texts[2]


@pytest.mark.parametrize(("number", "expected"), [("0.25", 25), ("0.001", 1), (".999", 100), ("1.0", 100), ("1", 1)])
def test_number_is_a_count_or_a_fraction(call, rows, tmp_path, number, expected):
    assert call("subset", "-q", "rows", number, "some", "others")[0] == 0
    assert (tmp_path / "some").read_text().count("\n") == expected
    assert (tmp_path / "others").read_text().count("\n") == 100 - expected


def test_rows_go_to_standard_output_and_words_to_standard_error(run, rows, tmp_path):
    done = run("subset", "rows", "30")
    assert (done.returncode, done.stdout.count("\n")) == (0, 30)
    assert "subset    30 of 100 rows" in done.stderr
    other = run("subset", "-q", "-", "30", "some", "-", input=(tmp_path / "rows").read_bytes())
    assert (tmp_path / "some").read_text() == done.stdout
    assert sorted(other.stdout.decode().splitlines() + done.stdout.splitlines()) == sorted("".join(rows).splitlines())


@pytest.mark.parametrize(("suffix", "pack"), [(".gz", gzip), (".bz2", bz2), (".xz", lzma)])
def test_compressed_files_are_read_and_written(call, rows, tmp_path, suffix, pack):
    call("subset", "-q", "rows", "30", "plain")
    (tmp_path / "packed").write_bytes(pack.compress((tmp_path / "rows").read_bytes()))
    assert call("subset", "-q", "packed", "30", f"some{suffix}", f"others{suffix}")[0] == 0
    assert pack.decompress((tmp_path / f"some{suffix}").read_bytes()) == (tmp_path / "plain").read_bytes()
    assert pack.decompress((tmp_path / f"others{suffix}").read_bytes()).count(b"\n") == 70


def test_line_ends_stay_and_only_a_missing_last_one_is_added(call, tmp_path):
    (tmp_path / "rows").write_bytes(b"1 1:1\r\n2 1:2\n1 1:3")
    assert call("subset", "-q", "rows", "3", "all")[0] == 0
    assert (tmp_path / "all").read_bytes() == b"1 1:1\r\n2 1:2\n1 1:3\n"


def test_quantities_are_taken_from_small_to_large(call, tmp_path, rng):
    y = rng.permutation(100)
    (tmp_path / "slope").write_text("".join(f"{label}.5 1:1\n" for label in y))
    assert call("subset", "-q", "slope", "20", "some")[0] == 0
    assert sorted(read_svmlight(tmp_path / "some")[1] // 5) == list(range(20))


def test_queries_stay_whole_by_query(call, queries, tmp_path):
    status, out, _ = call("subset", "--by-query", "--json", "queries", "0.5", "some", "others")
    facts, qid = json.loads(out), [read_svmlight(tmp_path / name)[2] for name in ("some", "others")]
    assert status == 0
    assert set(qid[0]) & set(qid[1]) == set()
    assert len(qid[0]) + len(qid[1]) == 210
    assert abs(len(qid[0]) - 105) <= 10
    assert (facts["method"], facts["queries"], facts["queries_in_subset"]) == ("queries", 20, len(set(qid[0])))


def test_queries_that_are_torn_apart_are_noted(call, queries):
    _, _, err = call("subset", "queries", "50", "some")
    assert "widemargin: note: queries has queries (qid), which are torn apart; --by-query keeps them whole\n" in err
    assert call("subset", "-q", "queries", "50", "some") == (0, "", "")


def test_json_is_one_object(call, rows):
    facts = json.loads(call("subset", "--json", "rows", "10", "some")[1])
    classes = [(3, 1), (2, 3), (1, 6)]
    assert facts.pop("classes") == [{"label": label, "rows": 10 * k, "subset": k} for label, k in sorted(classes)]
    assert facts == {"rows": 100, "subset": 10, "rest": 90, "seed": 0, "method": "stratified", "lines_left_out": 2}


@pytest.mark.parametrize(
    ("words", "status", "says"),
    [
        ([], 2, "DATA NUMBER is missing"),
        (["rows"], 2, "NUMBER is missing"),
        (["100", "rows"], 2, "NUMBER must be a count >= 1, or a fraction > 0 and <= 1 such as 0.8, got 'rows'"),
        (["rows", "0"], 2, "got '0'"),
        (["rows", "1.5"], 2, "got '1.5'"),
        (["rows", "nan"], 2, "got 'nan'"),
        (["rows", "101"], 1, "rows: 101 rows are wanted, there are 100; ask for fewer"),
        (["rows", "10", "rows"], 2, "rows would be overwritten"),
        (["rows", "10", "some", "rows"], 2, "rows would be overwritten"),
        (["rows", "10", "some", "./some"], 2, "SUBSET and REST are both some; name two files"),
        (["rows", "10", "-", "-"], 2, "SUBSET and REST are both -; name two files"),
        (["rows", "10", "absent/some"], 1, "there is no directory"),
        (["-s", "2", "rows", "10"], 2, "invalid choice: '2'"),
        (["--by-query", "-s", "0", "rows", "10"], 2, "leave -s/--method out"),
        (["--by-query", "rows", "10"], 1, "rows: there is no qid for --by-query; leave it out"),
        (["absent", "10"], 1, "absent: no such file"),
    ],
)
def test_mistakes_are_one_line_and_write_nothing(call, rows, tmp_path, words, status, says):
    found, out, err = call("subset", *words)
    assert (found, out) == (status, "")
    (line,) = [line for line in err.splitlines() if not line.startswith("compiling (")]
    assert line.startswith("widemargin: error: ")
    assert says in line
    assert os.listdir(tmp_path) == ["rows"]


def test_a_file_that_breaks_a_rule_is_refused_with_its_place(call, tmp_path):
    (tmp_path / "bad").write_text("1 1:1\n1 1:x\n")
    (tmp_path / "some").write_text("old")
    assert call("subset", "-q", "bad", "1", "some")[::2] == (
        1,
        "widemargin: error: bad:2:3: value must be a number, got 'x'\n",
    )
    assert (tmp_path / "some").read_text() == "old"


def test_help_has_examples_and_the_exit_status(call):
    status, out, _ = call("subset", "--help")
    assert status == 0
    assert out.startswith("usage: widemargin subset [options] DATA NUMBER [SUBSET] [REST]\n")
    assert "examples:" in out
    assert "exit status:" in out
