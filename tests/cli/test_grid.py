"""`widemargin grid` and `widemargin easy`, as a person at a shell meets them."""

import json
import os
import re
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from sklearn.model_selection import GroupKFold, StratifiedKFold, cross_val_score
from tests.shell import COMMAND

from widemargin import SVC, LinearSVC, RankSVM, load_model, read_grid, read_svmlight, write_svmlight

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
        (["--results", "-"], "--results must be a file, as it is what a search goes on with, got -"),
        (["--results", os.devnull], "--results must be a file, as it is what a search goes on with"),
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


@pytest.fixture
def ranked(tmp_path, rng):
    """A file of 8 queries of 8 rows, grades 0, 1 and 2."""
    X, qid = rng.standard_normal((64, 3)), np.repeat(np.arange(1, 9), 8)
    y = np.digitize(X @ [1.0, -1.0, 0.5] + 0.3 * rng.standard_normal(64), [-1.0, 1.0])
    write_svmlight(tmp_path / "ranked", X, y, qid=qid)
    return tmp_path / "ranked"


def test_a_ranking_is_searched_over_C_by_its_concordance(call, ranked, tmp_path):
    status, out, err = call("grid", "--task", "rank", "--log2c", "-5,3,4", "-v", "4", "--json", "ranked")
    assert (status, err) == (0, "")
    facts, (X, y, qid) = json.loads(out), read_svmlight(ranked)
    assert facts["scoring"] == "concordance"
    assert [point["C"] for point in facts["points"]] == [2.0**-5, 2.0**-1, 2.0**3]
    folds = list(GroupKFold(4, shuffle=True, random_state=0).split(X, y, qid))
    for point in facts["points"]:
        model = RankSVM(C=point["C"])
        expected = [model.fit(X[a], y[a], qid=qid[a]).score(X[b], y[b], qid=qid[b]) for a, b in folds]
        assert point["scores"] == pytest.approx(expected)
    assert facts["best"]["C"] == load_model(tmp_path / "ranked.model").C


def test_options_that_were_not_given_are_not_refused_and_others_are(call, ranked):
    assert call("grid", "--task", "rank", "--log2c", "1,1,1", "-v", "2", "-q", "ranked")[0] == 0
    status, _, err = call("grid", "--task", "rank", "--loss", "hinge", "ranked")
    assert (status, err.count("\n")) == (2, 1)
    assert "--loss is not for --task rank; leave it out" in err
    status, _, err = call("grid", "--task", "rank", "--scoring", "accuracy", "ranked")
    assert status == 2
    assert "--scoring is not for --task rank" in err


def test_more_folds_than_queries_are_one_line(call, ranked):
    status, _, err = call("grid", "--task", "rank", "-v", "9", "ranked")
    assert (status, err.count("\n")) == (1, 1)
    assert err.startswith("widemargin: error: ranked: ")


def test_a_best_point_on_the_edge_is_said_and_the_grid_extended_on_request(call, slope):
    words = ["grid", "--kernel", "linear", "--task", "regression", "-p", "0.1", "--log2c", "-9,-7,1", "slope"]
    status, out, _ = call(*words)
    assert status == 0
    assert re.search(r"^edge +C=2\^-7 is the largest tried; --extend N goes beyond$", out, re.MULTILINE)
    facts = json.loads(call(*words, "--overwrite", "--json", "--extend", "2")[1])
    assert [point["C"] for point in facts["points"]] == [2.0**k for k in range(-9, -4)]
    assert facts["edges"] == {"C": "largest"}  # at most two more
    facts = json.loads(call(*words, "--overwrite", "--json", "--extend", "30")[1])
    assert facts["edges"] == {}
    best = facts["best"]["C"]
    assert len(facts["points"]) < 33
    assert [point["C"] for point in facts["points"]][-2] == best  # the last round was the first that did not help
    again = json.loads(call(*words, "--resume", "--json", "--extend", "30")[1])
    assert (again["best"], again["points"]) == (facts["best"], facts["points"])


def test_targets_are_scaled_on_request_and_the_model_predicts_in_their_units(call, tmp_path, rng):
    X = rng.standard_normal((60, 3))
    write_svmlight(tmp_path / "far", X, 1000.0 + 300.0 * X[:, 0] + 30.0 * rng.standard_normal(60))
    words = ["grid", "-s", "3", "-t", "0", "-p", "0.1", "--log2c", "-3,1,2", "--scale-targets", "--json", "far", "m"]
    facts = json.loads(call(*words)[1])
    mse = json.loads(call("predict", "--json", "far", "m", "out")[1])["mse"]
    assert facts["score"] < -500.0  # not in units of the spread, where it is 1 at the most
    assert 0.3 * abs(facts["score"]) < mse < abs(facts["score"]) * 3.0
    status, _, err = call("grid", "--scale-targets", "far")
    assert status == 2
    assert "--scale-targets is for regression" in err


class TestEasy:
    def test_ranks_rows_that_have_queries(self, call, ranked):
        status, out, err = call("easy", "--json", "-v", "4", "ranked")
        facts = json.loads(out)
        assert (status, err) == (0, "")
        assert (facts["task"], facts["kernel"], facts["scoring"]) == ("rank", "linear", "concordance")
        assert list(facts["best"]) == ["C"]
        assert type(load_model("ranked.model")) is RankSVM
        out = call("easy", "--overwrite", "-v", "4", "ranked")[1]
        assert "concordance 0." in out

    def test_the_page_shows_the_line_that_was_typed(self, call, two, tmp_path):
        assert call("easy", "-q", "--kernel", "linear", "two")[0] == 0
        page = (tmp_path / "two.html").read_text()
        assert "widemargin easy -q --kernel linear two</" in page
        assert "--json" not in page
        assert "--progress" not in page

    def test_offers_to_scale_targets(self, call, tmp_path, rng):
        X = rng.standard_normal((40, 2))
        y = 1e6 + 1e4 * (X[:, 0] + 0.1 * rng.standard_normal(40))
        write_svmlight(tmp_path / "train", X[:30], y[:30])
        write_svmlight(tmp_path / "test", X[30:], y[30:])
        words = ["easy", "--json", "--kernel", "linear", "train", "test"]
        status, plain, err = call(*words)
        assert status == 0
        assert "--scale-targets searches in units of it" in err
        status, scaled, err = call(*words, "--overwrite", "--scale-targets")
        assert status == 0
        assert "--scale-targets" not in err
        plain, scaled = json.loads(plain), json.loads(scaled)
        assert scaled["test"]["mse"] < plain["test"]["mse"]
        assert scaled["best"]["epsilon"] in (2.0**-8, 2.0**-5, 2.0**-2)

    @pytest.mark.parametrize(
        ("words", "says", "expected"),
        [
            (["--task", "rank", "--kernel", "rbf"], "--kernel rbf is not for --task rank", 2),
            (["--task", "rank", "--scale-targets"], "--scale-targets is for regression", 2),
            (["--scale-targets"], "--scale-targets is for regression, this is rank", 1),
        ],
    )
    def test_what_does_not_go_together_is_refused(self, call, ranked, words, says, expected):
        status, _, err = call("easy", "-q", *words, "ranked")
        assert (status, err.count("\n")) == (expected, 1)
        assert says in err

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


def test_a_picture_that_cannot_be_drawn_is_refused_before_the_search(call, two, tmp_path, monkeypatch):
    monkeypatch.delitem(sys.modules, "widemargin.plots.figure", raising=False)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    status, out, err = call("grid", *FEW, "--plot", "scores.png", "two")
    assert (status, out) == (2, "")
    assert 'pip install "widemargin[plot]"' in err
    assert "or name a file that ends with .html" in err
    assert not (tmp_path / "two.grid").exists()
