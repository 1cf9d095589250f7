"""`widemargin grid` and `widemargin easy`, as a person at a shell meets them."""

import json
import os
import signal
import subprocess
import time

import numpy as np
import pytest
from sklearn.model_selection import StratifiedKFold, cross_val_score
from tests.tools.conftest import COMMAND

from widemargin import SVC, LinearSVC, load_model, read_grid, read_svmlight, write_svmlight

FEW = ["--log2c", "-1,3,2", "--log2g", "-1,-5,-2"]


def test_prints_the_best_point_and_writes_a_model_trained_with_it(call, two, tmp_path):
    status, out, err = call("grid", *FEW, "--json", "two", "m")
    assert (status, err) == (0, "")
    facts = json.loads(out)
    assert len(facts["points"]) == 9
    assert facts["score"] == max(point["score"] for point in facts["points"])
    model = load_model(tmp_path / "m")
    assert {name: getattr(model, name) for name in facts["best"]} == facts["best"]
    X, y, _ = read_svmlight(two)
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    assert facts["score"] == pytest.approx(cross_val_score(SVC(**facts["best"]), X, y, cv=folds).mean())
    assert read_grid(tmp_path / "two.grid").best_params == facts["best"]


def test_prints_for_people_too(call, two):
    status, out, err = call("grid", *FEW, "two")
    assert (status, err) == (0, "")  # silent where nobody watches
    words = dict(line.split(maxsplit=1) for line in out.splitlines())
    assert words["points"] == "9"
    assert words["accuracy"].endswith("over 5 folds")
    assert words["model"] == "two.model"


def test_progress_in_a_pipe_is_a_line_for_each_point(call, two):
    status, _, err = call("grid", *FEW, "--progress", "yes", "two")
    assert status == 0
    lines = [line for line in err.splitlines() if "accuracy" in line]
    assert len(lines) == 9
    assert lines[0].startswith("C=0.5 gamma=0.5: accuracy ")


def test_linear_is_a_path_of_C(call, two, tmp_path):
    status, out, _ = call("grid", "--kernel", "linear", "--json", "two", "m")
    assert status == 0
    assert [point["C"] for point in json.loads(out)["points"]] == [2.0**k for k in range(-5, 16, 2)]
    assert isinstance(load_model(tmp_path / "m"), LinearSVC)


def test_regression_tries_the_tube_as_well(call, slope):
    status, out, _ = call(
        "grid", "-s", "3", "--log2c", "1,3,2", "--log2g", "-3,-3,1", "--log2p", "-4,-2,1", "--json", "slope"
    )
    assert status == 0
    facts = json.loads(out)
    assert facts["scoring"] == "neg_mean_squared_error"
    assert sorted({point["epsilon"] for point in facts["points"]}) == [2**-4, 2**-3, 2**-2]


def test_what_a_letter_fixes_is_not_tried(call, two):
    status, out, _ = call(
        "grid", "-c", "4", "--kernel", "poly", "--log2g", "null", "--values", "degree=1,2", "--json", "two"
    )
    assert status == 0
    assert [set(point) & {"C", "gamma", "degree"} for point in json.loads(out)["points"]] == [{"degree"}] * 2


def test_libsvm_spellings_are_understood(call, two):
    status, out, _ = call("grid", "-log2c", "1,1,1", "-log2g", "-1,-1,1", "-v", "3", "-out", "o", "--json", "two")
    assert status == 0
    assert len(json.loads(out)["points"][0]["scores"]) == 3
    assert os.path.exists("o")


def test_pictures_by_their_suffixes(call, two, tmp_path):
    names = ["g.png", "g.svg", "g.html"]
    status, _, _ = call("grid", *FEW, *(word for name in names for word in ("--plot", name)), "two")
    assert status == 0
    assert (tmp_path / "g.png").read_bytes().startswith(b"\x89PNG")
    assert "<svg" in (tmp_path / "g.svg").read_text()
    assert "<html" in (tmp_path / "g.html").read_text()


def test_an_earlier_search_is_not_lost(call, two, tmp_path):
    assert call("grid", *FEW, "-q", "two")[0] == 0
    before = (tmp_path / "two.grid").read_bytes()
    status, _, err = call("grid", *FEW, "-q", "two")
    assert status == 1
    assert "add --resume to go on with it, or --overwrite to begin anew" in err
    assert call("grid", *FEW, "-q", "--resume", "two")[0] == 0
    assert (tmp_path / "two.grid").read_bytes() == before
    assert call("grid", *FEW, "-q", "--seed", "1", "--resume", "two")[0] == 1
    assert call("grid", *FEW, "-q", "--overwrite", "two")[0] == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--log2c", "1,2"], "must be BEGIN,END,STEP or null"),
        (["--log2c", "1,2,-1"], "has no values: STEP must lead from BEGIN to END"),
        (["--log2p", "1,2,1"], "SVC has no parameter 'epsilon'"),
        (["--values", "degree"], "must be NAME=V1,V2"),
        (["-c", "1", "--log2c", "1,2,1"], "C is given by -c/--C; leave one of them out"),
        (["-c", "1", "-g", "1"], "nothing is left to try"),
        (["--task", "oneclass"], "no labels to be scored by"),
        (["--plot", "g.gif"], "the name must end with .png, .svg, .pdf, .html"),
        (["--results", "-"], "--results must be a file"),
        (["--resume", "--overwrite"], "contradict each other"),
        (["-b", "1"], "-b 1 is for train"),
        (["--scoring", "luck"], "invalid choice: 'luck'"),
    ],
)
def test_wrong_usage_has_one_line_and_status_2(call, two, words, message):
    status, out, err = call("grid", *words, "two")
    assert (status, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1


def test_ctrl_c_leaves_a_file_to_go_on_with(tmp_path, rng):
    X = rng.standard_normal((1500, 10))
    write_svmlight(tmp_path / "noise", X, np.where(rng.random(1500) < 0.5, 1, -1))
    words = [*COMMAND, "grid", "--log2g", "-3,-5,-2", "noise", "m"]
    process = subprocess.Popen(words, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    limit = time.monotonic() + 120
    while time.monotonic() < limit and not (
        (tmp_path / "noise.grid").exists() and (tmp_path / "noise.grid").read_text().count("\n") > 5
    ):
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    err = process.communicate(timeout=60)[1]
    assert process.returncode == 130
    assert err == "widemargin: error: interrupted; noise.grid holds what is done; --resume goes on with it\n"
    assert not (tmp_path / "m").exists()


class TestEasy:
    def test_goes_from_files_to_predictions_and_a_page(self, call, tmp_path, rng):
        X = np.column_stack([1000 * rng.random(120), rng.random(120)])
        y = np.where((X[:, 0] / 1000 - 0.5) ** 2 + (X[:, 1] - 0.5) ** 2 < 0.08, 1, 2)
        write_svmlight(tmp_path / "train", X[:80], y[:80])
        write_svmlight(tmp_path / "test.gz", X[80:], y[80:])
        status, out, err = call("easy", "train", "test.gz")
        assert (status, err) == (0, "")
        assert [line.split()[0] for line in out.splitlines()] == [
            "check", "check", "scale", "grid", "train", "predict", "report", "done"
        ]  # fmt: skip
        made = [
            "train.range",
            "train.scale",
            "train.scale.grid",
            "train.model",
            "train.html",
            "test.scale",
            "test.predict",
        ]
        assert all((tmp_path / name).exists() for name in made)
        predicted = np.loadtxt(tmp_path / "test.predict")
        assert np.mean(predicted == y[80:]) > 0.85
        assert f"{100 * np.mean(predicted == y[80:]):g}%" in out

    def test_tells_quantities_from_classes(self, call, slope):
        status, out, _ = call("easy", "--json", "--kernel", "linear", "slope")
        facts = json.loads(out)
        assert (status, facts["task"], facts["scoring"]) == (0, "regression", "neg_mean_squared_error")
        assert set(facts["best"]) == {"C", "epsilon"}

    def test_lists_all_defects_and_stops(self, call, tmp_path):
        (tmp_path / "bad").write_text("1 1:1\n-1 2:x\n1 3:1 2:1\n")
        status, out, err = call("easy", "bad")
        assert (status, out) == (1, "")
        assert "bad:2:4: value must be a number, got 'x'" in err
        assert "bad:3:7: indices must increase, got 2 after 3" in err
        assert "bad has 2 defects; mend them first" in err
        assert sorted(os.listdir(tmp_path)) == ["bad"]

    def test_an_earlier_search_is_not_lost(self, call, two, tmp_path):
        (tmp_path / "two.scale.grid").write_text("precious\n")
        status, out, err = call("easy", "two")
        assert (status, out, err.count("\n")) == (1, "", 1)
        assert "add --resume to go on with it, or --overwrite to begin anew" in err
        assert (tmp_path / "two.scale.grid").read_text() == "precious\n"
        assert call("easy", "-q", "--kernel", "linear", "--overwrite", "two")[0] == 0

    def test_files_only(self, call):
        status, _, err = call("easy", "-")
        assert (status, err.count("\n")) == (2, 1)
        assert "TRAIN and TEST must be files" in err
