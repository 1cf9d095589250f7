"""`widemargin convert`: text and tables become row-block files, through pipes too, and mistakes are one line."""

import gzip
import json
import os

import numpy as np
import pandas as pd
import pytest
from tests.data.blocks.plain_reader import dense, read_back

from widemargin import convert_file, read_svmlight, write_blocks, write_svmlight
from widemargin.workflows.errors import ArgumentError, FileError


@pytest.fixture
def rows(tmp_path, rng):
    """A file of 200 rows with three queries, and the data frame of another."""
    X = np.where(rng.random((200, 20)) < 0.2, rng.random((200, 20)), 0)
    write_svmlight(tmp_path / "rows", X, rng.integers(0, 2, 200), qid=np.repeat([1, 2, 3], [50, 50, 100]))
    frame = pd.DataFrame({"a": rng.random(30), "b": ["x", "y", "z"] * 10, "c": 1.0, "y": ["no", "yes"] * 15})
    frame["q"], frame["w"] = np.arange(30) // 5, np.linspace(1, 2, 30)
    frame.to_csv(tmp_path / "frame.csv", index=False)
    return tmp_path / "rows"


def test_text_becomes_a_row_block_file_in_random_order(call, rows, tmp_path):
    status, out, err = call("convert", "rows", "rows.arrow")
    assert (status, [line for line in err.splitlines() if not line.startswith("compiling (")]) == (0, [])
    assert out.startswith("200 rows, 20 features, 1 block, 0.0 MB in ")
    back, (X, y, _) = read_back(tmp_path / "rows.arrow"), read_svmlight(rows)
    assert back.summary.is_shuffled
    assert sorted(map(tuple, dense(back.X))) == sorted(map(tuple, X.toarray()))
    assert (back.label != y).any()


def test_the_order_is_kept_if_asked_and_else_depends_on_the_seed(call, rows, tmp_path):
    for name, words in (("kept", ["--keep-order"]), ("0", []), ("1", ["--seed", 1]), ("again", ["--seed", 0])):
        assert call("convert", "-q", *words, "rows", name) == (0, "", "")
    X, _, qid = read_svmlight(rows)
    np.testing.assert_array_equal(dense(read_back(tmp_path / "kept").X), X.toarray())
    np.testing.assert_array_equal(read_back(tmp_path / "kept").qid, qid)
    assert (tmp_path / "0").read_bytes() == (tmp_path / "again").read_bytes() != (tmp_path / "1").read_bytes()


def test_pipes_give_the_same_file(run, rows, tmp_path):
    run("convert", "rows", "rows.arrow")
    done = run("convert", "--max-memory", "20k", "-", "-", input=gzip.compress(rows.read_bytes()))
    assert done.stdout == (tmp_path / "rows.arrow").read_bytes()
    assert done.stderr.decode().startswith("200 rows, 20 features")


def test_columns_of_a_table_are_named(call, rows, tmp_path):
    words = ["--label", "y", "--qid", "q", "--weight", "w", "--columns", "b,a", "--keep-order", "--compression", "lz4"]
    assert call("convert", *words, "frame.csv", "frame.arrow")[0] == 0
    back = read_back(tmp_path / "frame.arrow")
    assert back.summary.names == ("b=x", "b=y", "b=z", "a")
    assert back.label.tolist() == ["no", "yes"] * 15
    assert back.qid.tolist() == (np.arange(30) // 5).tolist()
    assert back.weight[-1] == 2


def test_json_is_one_object(call, rows, tmp_path):
    facts = json.loads(call("convert", "--json", "rows", "rows.arrow")[1])
    assert facts.pop("seconds") > 0
    assert facts == {"rows": 200, "features": 20, "blocks": 1, "bytes": os.path.getsize(tmp_path / "rows.arrow")}


def test_options_of_text_have_an_effect(call, rows, tmp_path):
    (tmp_path / "zero").write_text("1 0:0.1 3:1\n")
    assert call("convert", "-q", "--zero-based", "yes", "--features", 90, "--float32", "zero", "zero.arrow")[0] == 0
    back = read_back(tmp_path / "zero.arrow")
    assert (back.X.shape, back.layout.value_type) == ((1, 90), np.float32)


@pytest.mark.parametrize(
    ("words", "status", "says"),
    [
        ([], 2, "DATA OUTPUT is missing"),
        (["rows"], 2, "OUTPUT is missing"),
        (["absent", "out"], 1, "absent: no such file"),
        (["rows", "rows"], 2, "rows would be overwritten"),
        (["rows", "absent/out"], 1, "there is no directory"),
        (["rows", "."], 1, ".: is a directory"),
        (["--label", "y", "rows", "out"], 2, "label cannot be given if the source is SVM-light text"),
        (["frame.csv", "out"], 2, "label must name the column with the labels of a table"),
        (
            ["--label", "z", "frame.csv", "out"],
            2,
            "frame.csv has no column 'z', or several; its columns are a, b, c, y",
        ),
        (["--max-memory", "much", "rows", "out"], 2, 'max_memory must be a number of bytes, or a text such as "3GB"'),
        (["--compression", "gzip", "rows", "out"], 2, "invalid choice: 'gzip'"),
        (["--seed", "-1", "rows", "out"], 2, "must be a whole number >= 0"),
        (["bad", "out"], 1, "bad:2:3: "),
        (["hole.csv", "out", "--label", "y"], 1, "hole.csv: row 1, column 'x' is missing"),
    ],
)
def test_mistakes_are_one_line_and_leave_nothing(call, rows, tmp_path, words, status, says):
    (tmp_path / "bad").write_text("1 1:1\n1 x\n")
    (tmp_path / "hole.csv").write_text("x,y\n1,1\n,1\n")
    before = sorted(os.listdir(tmp_path))
    code, out, err = call("convert", *words)
    assert (code, out) == (status, "")
    assert says in err
    assert err.count("\n") == 1 + err.count("compiling (")
    assert sorted(os.listdir(tmp_path)) == before


def test_the_function_writes_the_file_of_the_command(call, rows, tmp_path, monkeypatch):
    call("convert", "--seed", 3, "rows", "one")
    written = convert_file("rows", "two", seed=3)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    assert written.rows == 200
    with pytest.raises(ArgumentError, match="label must name the column"):
        convert_file("frame.csv", "out")
    (tmp_path / "hole.csv").write_text("x,y\n1,1\n,1\n")
    with pytest.raises(FileError, match=r"hole.csv: row 1, column 'x' is missing"):
        convert_file("hole.csv", "out", label="y")


def test_a_missing_extra_is_one_line(call, rows, monkeypatch):
    monkeypatch.setattr("widemargin.data.blocks.extra._is_installed", lambda name: name != "pyarrow")
    with pytest.raises(ImportError, match=r'need pyarrow, which is not installed: pip install "widemargin\[arrow\]"'):
        write_blocks("out", "rows")
    status, _, err = call("convert", "rows", "out")
    assert (status, err.count("\n")) == (1, 1)
    assert 'pip install "widemargin[arrow]"' in err


def test_progress_tells_the_speed(call, rows, monkeypatch):
    monkeypatch.setattr("widemargin._runtime.progress._SECONDS_BETWEEN_LINES", 0.0)
    _, _, err = call("convert", "--progress", "yes", "rows", "out")
    (line,) = [line for line in err.splitlines() if line.startswith("reading rows: ") and "MB/s" in line][:1]
    assert "100% of " in line
