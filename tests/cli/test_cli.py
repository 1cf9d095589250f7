"""The command line: results, letters of LIBSVM, and every mistake as one line with the right exit status."""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from widemargin import read_svmlight
from widemargin.persistence.model_file import load_model

FULL = Path("/dev/full")
needs_full = pytest.mark.skipif(not FULL.exists(), reason="this system has no /dev/full")


def one_line(text):
    """Return the only line of a text, but for the note of a first compilation, which any test may be the one to see."""
    (line,) = (line for line in text.splitlines() if not line.startswith("compiling ("))
    return line


# Training


def test_train_writes_the_model_that_the_estimator_fits(call, two, tmp_path):
    status, out, _ = call("train", "-c", "3", "--loss", "hinge", "-e", "1e-6", two)
    model, (X, y, _) = load_model(tmp_path / "two.model"), read_svmlight(two)
    assert status == 0
    assert (model.C, model.loss, model.tol, model.gap_ <= 1e-6) == (3.0, "hinge", 1e-6, True)
    np.testing.assert_array_equal(model.coef_, type(model)(**model.get_params()).fit(X, y).coef_)
    facts = dict(line.split(None, 1) for line in out.splitlines())
    assert facts["rows"] == "60"
    assert facts["features"] == "4"
    assert facts["classes"] == "2 (-1, 1)"
    assert facts["status"] == "converged"
    assert re.fullmatch(r"\d\.\de[+-]\d\d \(certified, asked 1\.0e-06\)", facts["gap"])
    assert {"solver", "steps", "objective", "seconds", "model"} <= facts.keys()


def test_options_may_stand_anywhere_among_the_files(call, two, tmp_path):
    assert call("train", two, "-c", "2", "here.model", "-q") == (0, "", "")
    assert load_model(tmp_path / "here.model").C == 2.0
    two.rename(tmp_path / "-two")
    assert call("train", "-q", "--", "-two") == (0, "", "")
    assert (tmp_path / "-two.model").exists()


def test_json_of_train_is_one_strict_object(call, three):
    status, out, _ = call("train", "--json", three)
    facts = json.loads(one_line(out), parse_constant=pytest.fail)
    assert status == 0
    assert facts["classes"] == [0, 1, 2]
    assert facts["gap"] <= 1e-4
    assert facts["model"] == "three.model"


def test_weights_of_classes_reach_the_model(call, two, tmp_path):
    call("train", "-q", "-w1", "2", "-w-1", "0.5", two, "letters")
    call("train", "-q", "--class-weight", "1:2", "--class-weight=-1:0.5", two, "words")
    letters, words = load_model(tmp_path / "letters"), load_model(tmp_path / "words")
    assert letters.class_weight == {1: 2.0, -1: 0.5}
    np.testing.assert_array_equal(letters.coef_, words.coef_)


def test_a_negative_bias_means_no_intercept(call, two, tmp_path):
    assert call("train", "-q", "-B", "-1", two)[0] == 0
    assert load_model(tmp_path / "two.model").intercept_ == 0.0


def test_h_alone_is_help_and_with_a_number_libsvm_s_shrinking(call, two, tmp_path):
    status, out, _ = call("train", "-h")
    assert status == 0
    assert out.startswith("usage: widemargin train [options] DATA... [MODEL]")
    assert "examples:" in out
    assert call("train", "-h", "1", "-q", two) == (0, "", "")
    assert load_model(tmp_path / "two.model").shrinking is True
    assert call("train", "-h", "0", "-q", two) == (0, "", "")
    assert load_model(tmp_path / "two.model").shrinking is False


def test_stopping_short_is_a_plain_warning_and_status_0(call, three):
    status, _, err = call("train", "-q", "--max-iter", "1", "-e", "1e-9", three)
    assert status == 0
    assert one_line(err).startswith("widemargin: warning: newton stopped after 1 steps (max_iter reached)")


@pytest.mark.parametrize("form", ["widemargin", "liblinear"])
def test_data_come_from_standard_input_and_the_model_goes_to_standard_output(run, two, tmp_path, form):
    done = run("train", "--format", form, "-", "-", input=two.read_bytes())
    assert done.returncode == 0
    (tmp_path / "model").write_bytes(done.stdout)
    assert load_model(tmp_path / "model").n_features_in_ == 4
    assert b"status     converged" in done.stderr


def test_cross_validation_prints_svm_train_s_line_and_writes_nothing(call, two, tmp_path):
    first, again = call("train", "-v", "5", "-q", two), call("train", "-v", "5", "-q", two)
    assert first == again
    match = re.fullmatch(r"Cross Validation Accuracy = (\d+(?:\.\d+)?)%\n", first[1])
    assert 70 < float(match[1]) <= 100
    assert sorted(tmp_path.iterdir()) == [two]


def test_cross_validation_of_a_regression_prints_both_lines(call, slope):
    status, out, _ = call("train", "--task", "regression", "-v", "4", "-q", "--max-iter", "none", slope)
    mse, correlation = out.splitlines()
    assert status == 0
    assert 0 < float(mse.removeprefix("Cross Validation Mean squared error = ")) < 0.05
    assert 0.98 < float(correlation.removeprefix("Cross Validation Squared correlation coefficient = ")) <= 1


# Predicting


def test_predict_agrees_with_the_estimator_and_prints_svm_predict_s_line(call, two, tmp_path):
    call("train", "-q", two)
    status, out, err = call("predict", two, "two.model", "out")
    X, y, _ = read_svmlight(two)
    predicted = load_model(tmp_path / "two.model").predict(X)
    assert (tmp_path / "out").read_text() == "".join(f"{label}\n" for label in predicted)
    correct = int(np.sum(predicted == y))
    assert (status, err) == (0, "")
    assert out == f"Accuracy = {100 * correct / 60:g}% ({correct}/60) (classification)\n"


def test_predict_of_a_regression_writes_numbers_that_read_back(call, slope, tmp_path):
    call("train", "-q", "--task", "regression", "--max-iter", "none", slope)
    _, out, _ = call("predict", slope, "slope.model", "out")
    X, y, _ = read_svmlight(slope)
    predicted = load_model(tmp_path / "slope.model").predict(X)
    np.testing.assert_array_equal(np.loadtxt(tmp_path / "out"), predicted)
    assert out.splitlines() == [
        f"Mean squared error = {np.mean((predicted - y) ** 2):g} (regression)",
        f"Squared correlation coefficient = {np.corrcoef(predicted, y)[0, 1] ** 2:g} (regression)",
    ]
    facts = json.loads(call("predict", "--json", "-q", slope, "slope.model", "out")[1])
    assert facts["r2"] == pytest.approx(1 - np.sum((predicted - y) ** 2) / np.sum((y - y.mean()) ** 2))


def test_measures_that_are_undefined_are_null_in_json(call, slope, tmp_path):
    call("train", "-q", "--task", "regression", "--max-iter", "none", slope)
    (tmp_path / "one").write_text("1.5 1:2\n")
    _, out, _ = call("predict", "--json", "-q", "one", "slope.model", "out")
    facts = json.loads(out, parse_constant=pytest.fail)
    assert (facts["r2"], facts["squared_correlation"]) == (None, None)


def test_predictions_on_standard_output_are_alone_there(run, two, three):
    run("train", "-q", three)
    done = run("predict", "--scores", three, "three.model", "-")
    heading, *rows = [line.split() for line in done.stdout.splitlines()]
    assert heading == ["label", "0", "1", "2"]
    assert all(row[0] == str(np.argmax(np.array(row[1:], dtype=float))) for row in rows)
    assert len(rows) == 60
    assert done.stderr.startswith("Accuracy = ")


def test_missing_features_are_zero_and_further_ones_are_dropped_with_a_warning(call, two, tmp_path):
    call("train", "-q", two)
    (tmp_path / "narrow").write_text("1 1:0.5 2:1\n-1 1:2\n")
    (tmp_path / "wide").write_text("1 1:0.5 2:1 9:7\n-1 1:2\n")
    assert call("predict", "-q", "narrow", "two.model", "narrow.out") == (0, "", "")
    status, _, err = call("predict", "-q", "wide", "two.model", "wide.out")
    assert status == 0
    assert one_line(err) == "widemargin: warning: wide has 9 features, the model 4: the columns beyond are dropped"
    assert (tmp_path / "narrow.out").read_text() == (tmp_path / "wide.out").read_text()


# What goes wrong


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ([], "DATA is missing"),
        (["-c", "-1", "two"], "must be > 0, got -1"),
        (["-c", "abc", "two"], "must be a finite number, got 'abc'"),
        (["-c", "nan", "two"], "must be a finite number, got 'nan'"),
        (["-v", "1", "two"], "must be a whole number >= 2, got '1'"),
        (["-j", "0", "two"], "or -1 for all cores, got 0"),
        (["-B", "0", "two"], "--bias must not be 0"),
        (["--los", "hinge", "two"], "unknown option --los; did you mean --loss?"),
        (["-loss", "hinge", "two"], "unknown option -loss; did you mean --loss?"),
        (["--loss", "hing", "two"], "invalid choice: 'hing'"),
        (["--task", "regression", "--loss", "hinge", "two"], "--loss hinge is for classification"),
        (["-p", "1", "two"], "--epsilon is for regression"),
        (["-w1", "2", "--task", "regression", "two"], "--class-weight is for classification"),
        (["-w1", "two"], "expected LABEL:WEIGHT"),
        (["-wx", "2", "two"], "expected LABEL:WEIGHT"),
        (["--multi-class", "crammer_singer", "--loss", "hinge", "two"], "a loss of its own"),
        (["--multi-class", "crammer_singer", "--solver", "newton", "two"], "needs --solver auto, svmperf or ocas"),
        (["two", "two", "b"], "two is not a row-block file, and rows in several files must be in such"),
        (["two", "two"], "two would be overwritten"),
        (["-"], "MODEL must be named"),
    ],
)
def test_wrong_usage_of_train_is_one_line_and_status_2(call, two, tmp_path, words, says):
    status, out, err = call("train", *words)
    assert (status, out) == (2, "")
    assert one_line(err).startswith("widemargin: error: ")
    assert says in err
    assert sorted(tmp_path.iterdir()) == [two]


@pytest.mark.parametrize(
    ("word", "hint"),
    [("--colour", ""), ("--verbose", ""), ("--output", ""), ("--maxiter", "--max-iter"), ("--c", "--C"),
     ("--tolerance", "--tol"), ("--prob", "--probability"), ("--basis_choice", "--basis-choice"),
     ("--los=x", "--loss")],
)  # fmt: skip
def test_only_an_option_that_is_close_is_suggested(call, two, word, hint):
    _, _, err = call("train", word, two)
    assert f"unknown option {word}{f'; did you mean {hint}?' if hint else ''} (see widemargin train" in one_line(err)


@pytest.mark.parametrize(
    ("words", "says"),
    [(["trian"], "unknown command 'trian'; did you mean train?"), (["predict", "a", "b"], "OUTPUT is missing"),
     (["predict", "-", "-", "out"], "cannot both be standard input"), (["demo", "x"], "unexpected argument 'x'")],
)  # fmt: skip
def test_wrong_usage_is_one_line_and_status_2(call, words, says):
    status, _, err = call(*words)
    assert status == 2
    assert says in one_line(err)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("1 1:1\n-1 1:x\n", "bad:2:"),
        ("", "bad: holds no rows"),
        ("1 1:1\n1 1:2\n", "bad: y must hold at least 2 classes, got 1 class: [1]."),
        (
            "1 1:1\n0.5 1:2\n",
            "bad: the label of row 2 is 0.5, but classes are whole numbers; for regression add --task",
        ),
        ("1\n-1\n", "bad: Found array with 0 feature(s)"),
        ("1 1:nan\n-1 1:1\n", "bad:1:"),
    ],
)
def test_bad_data_are_one_line_with_their_place_and_status_1(call, tmp_path, text, says):
    (tmp_path / "bad").write_text(text)
    status, out, err = call("train", "bad")
    assert (status, out) == (1, "")
    assert one_line(err).startswith(f"widemargin: error: {says}")
    assert not (tmp_path / "bad.model").exists()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["absent"], "absent: no such file"),
        (["."], ".: is a directory; name a file"),
        (["two", "absent/model"], "absent; create it or name another place"),
        (["two", "."], ".: is a directory; name a file"),
        (["-w7", "2", "two"], "two: no row has the label 7"),
        (["-v", "61", "two"], "two: 61 folds need as many rows, got 60"),
        (["-v", "50", "two"], "two: 50 folds need a class with as many rows"),
        (["--n-features", "2", "two"], "two:1:"),
    ],
)
def test_a_failed_run_is_one_line_and_status_1(call, two, words, says):
    status, out, err = call("train", *words)
    assert (status, out) == (1, "")
    assert one_line(err).startswith("widemargin: error: ")
    assert says in err


def test_an_unwritable_target_is_found_before_the_data_are_read(call, tmp_path):
    (tmp_path / "bad").write_text("not data")
    assert "there is no directory" in call("train", "bad", "absent/model")[2]


def test_foreign_models_are_refused_with_their_name(call, two, tmp_path):
    for content in (b"", b"SVM-struct Version V3.10\n", two.read_bytes(), b"\x80\x04pickle"):
        (tmp_path / "foreign").write_bytes(content)
        status, _, err = call("predict", two, "foreign", "out")
        assert status == 1
        assert one_line(err).startswith("widemargin: error: foreign: not a model file")
    assert call("predict", two, "absent", "out")[2] == "widemargin: error: absent: no such file; check the path\n"
    assert not (tmp_path / "out").exists()


@needs_full
def test_a_full_target_is_one_line_and_status_1(call, run, two):
    status, _, err = call("train", "-q", two, FULL)
    assert (status, one_line(err)[:42]) == (1, "widemargin: error: /dev/full: no space lef")
    call("train", "-q", two)
    assert call("predict", "-q", two, "two.model", FULL)[0] == 1
    with FULL.open("w") as full:
        done = run("predict", "-q", two, "two.model", "-", capture_output=False, stdout=full, stderr=subprocess.PIPE)
    assert done.returncode == 1
    assert one_line(done.stderr).startswith("widemargin: error: standard output: no space left")


def test_a_reader_that_goes_away_ends_predict_quietly(two, tmp_path, run):
    run("train", "-q", two)
    (tmp_path / "many").write_text(two.read_text() * 2000)
    words = [sys.executable, "-m", "widemargin", "predict", "-q", "--scores", "many", "two.model", "-"]
    with subprocess.Popen(words, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"label 1\n"
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(timeout=60) == 141


def test_ctrl_c_keeps_the_model_so_far(endless, tmp_path):
    words = ["train", "-c", "1e9", "-e", "1e-12", "--max-iter", "none", "--loss", "hinge", "--solver", "dcd"]
    words += ["--progress", "yes", endless]
    command = [sys.executable, "-m", "widemargin", *map(str, words)]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, env=environment, text=True) as process:
        while "sweep" not in process.stderr.readline():
            pass
        process.send_signal(signal.SIGINT)
        err = process.stderr.read()
        assert process.wait(timeout=60) == 1
    assert "widemargin: warning: interrupted: endless.model holds the model so far" in err
    assert "Traceback" not in err
    assert load_model(tmp_path / "endless.model").status_ == "interrupted"


def test_ctrl_c_before_there_is_a_model_is_status_130(call, two, tmp_path, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("widemargin.workflows.files.read_with_base", interrupted)
    assert call("train", two) == (130, "", "widemargin: error: interrupted; nothing was written\n")
    assert sorted(tmp_path.iterdir()) == [two]


def test_ctrl_c_that_a_compiler_swallows_is_still_ctrl_c(call, two, monkeypatch):
    def fail_once_interrupted(*_, **__):
        with contextlib.suppress(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        raise RuntimeError("no compiled object yet")

    monkeypatch.setattr("widemargin.workflows.files.read_with_base", fail_once_interrupted)
    assert call("train", two) == (130, "", "widemargin: error: interrupted; nothing was written\n")


def test_a_model_that_has_seen_no_row_replaces_nothing(call, two, tmp_path, monkeypatch):
    (tmp_path / "two.model").write_text("old")
    monkeypatch.setattr(
        "widemargin.solvers.coordinate_descent.loop._Loop.run_batch", lambda loop: signal.raise_signal(signal.SIGINT)
    )
    assert call("train", "-q", "--solver", "dcd", two)[0] == 130
    assert (tmp_path / "two.model").read_text() == "old"


def test_ctrl_c_in_a_fold_ends_cross_validation(call, two, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("widemargin._runtime.progress.ProgressReport.__call__", interrupted)
    status, out, err = call("train", "--progress", "yes", "-v", "3", two)
    assert (status, out) == (130, "")
    assert "widemargin: error: interrupted; nothing was written" in err


def test_closed_streams_do_no_harm(two, tmp_path):
    command = f"{sys.executable} -m widemargin train -q two <&- >&- 2>&-"
    assert subprocess.run(["sh", "-c", command], cwd=tmp_path, timeout=60).returncode == 0
    assert (tmp_path / "two.model").exists()


# Around


def test_help_version_and_nothing(call):
    status, out, _ = call("--help")
    assert status == 0
    assert all(word in out for word in ("train", "predict", "demo", "examples:", "exit status:"))
    assert re.fullmatch(r"widemargin \d+\.\d+.*\n", call("--version")[1])
    status, out, err = call()
    assert (status, out) == (2, "")
    assert err.startswith("usage: widemargin COMMAND")


@pytest.mark.parametrize("command", ["predict", "demo"])
def test_every_command_has_help_with_examples(call, command):
    status, out, _ = call(command, "--help")
    assert status == 0
    assert f"usage: widemargin {command}" in out
    assert "examples:" in out


def test_labels_that_are_no_classes_of_the_model_are_noted(call, two):
    call("train", "-q", two, "m")
    with open("other", "w", encoding="ascii") as file:
        file.write("5 1:1\n0 2:1\n")
    status, out, err = call("predict", "other", "m", "out")
    assert (status, out.split(" (")[0]) == (0, "Accuracy = 0%")
    assert "no label of other (0, 5) is a class of the model (-1, 1): the accuracy has no meaning" in err
    assert "no label" not in call("predict", two, "m", "out")[2]


def test_fractional_labels_are_refused_in_words_of_the_program_that_runs(call):
    with open("lengths", "w", encoding="ascii") as file:
        file.write("1.5 1:1\n2.5 1:2\n")
    assert "for regression add --task regression" in call("train", "lengths", "m")[2]
    assert "for regression choose a type of regression" in call("as", "svm-train", "lengths", "m")[2]
