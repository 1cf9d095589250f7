"""Kernel machines on the command line: the lines, files and letters of svm-train and svm-predict."""

import json
import os
import re
import signal
import subprocess
import sys
from itertools import combinations, islice

import numpy as np
import pytest
from sklearn.preprocessing import minmax_scale
from tests.cli.libsvm_types import MACHINES

from widemargin import LinearSVC, read_svmlight, write_svmlight
from widemargin.models.kernel.svc import SVC
from widemargin.persistence.model_file import load_model

NUMBER = r"-?\d+(?:\.\d+)?(?:e[-+]\d+)?"
machines = pytest.mark.parametrize(("letters", "data"), MACHINES.values(), ids=MACHINES.keys())


def one_line(text):
    """Return the only line of a text, but for the note of a first compilation, which any test may be the one to see."""
    (line,) = (line for line in text.splitlines() if not line.startswith("compiling ("))
    return line


def numbers_of(lines):
    """Return the numbers in svm-train's lines: obj, rho, nSV and the like, each with its values in their order."""
    found = {}
    for name, number in re.findall(rf"([#\w ]+) = ({NUMBER})", "\n".join(lines)):
        found.setdefault(name.strip(), []).append(float(number))
    return found


def libsvm_lines(text):
    """Return those lines of a text that svm-train would print too."""
    return [line for line in text.splitlines() if " = " in line]


# Training


@pytest.mark.parametrize(
    ("name", "letters"),
    [
        *(
            ("breast_cancer", letters)
            for letters in ("-s 0", "-t 0 -e 1e-6", "-t 1", "-t 3", "-s 1 -n 0.2 -e 1e-6", "-s 2")
        ),
        *(("diabetes", letters) for letters in ("-s 3", "-s 4")),
        ("digits", "-t 2"),
    ],
)
def test_printed_facts_of_real_data_are_those_of_svm_train(call, read_bundled, libsvm, tmp_path, name, letters):
    X, y = read_bundled(name)
    write_svmlight(tmp_path / name, minmax_scale(X, (-1, 1)), y % 2 if name == "digits" else y)
    status, out, _ = call("train", *letters.split(), name)
    assert status == 0
    printed, expected = numbers_of(libsvm_lines(out)), numbers_of(libsvm.train_lines(tmp_path / name, letters))
    for fact in expected.keys() - {"optimization finished, #iter", "#iter"}:
        # Each stops at a point of its own with violations below eps: facts agree to about eps, objectives better.
        near = {"rel": 1e-4} if fact == "obj" else {"abs": 3} if "SV" in fact else {"rel": 1e-3, "abs": 2e-3}
        assert printed[fact] == pytest.approx(expected[fact], **near), fact
    if "Total nSV" in expected:
        assert printed["Total nSV"] == printed["nSV"]


@machines
def test_the_lines_are_svm_train_s_word_for_word_and_number_for_number(call, files, letters, data, libsvm):
    letters += " -e 1e-6"
    _, out, _ = call("train", *letters.split(), files[data])
    ours, theirs = libsvm_lines(out), libsvm.train_lines(files[data], letters)
    assert [re.sub(NUMBER, "#", line) for line in ours] == [re.sub(NUMBER, "#", line) for line in theirs]
    ours, theirs = numbers_of(ours), numbers_of(theirs)
    for fact in ours.keys() - {"optimization finished, #iter", "#iter"}:
        np.testing.assert_allclose(ours[fact], theirs[fact], rtol=1e-4, atol=1e-4, err_msg=fact)


def test_pairs_of_classes_come_in_the_order_of_their_first_rows(call, three, tmp_path, libsvm):
    X, y, _ = read_svmlight(three)
    for shift, name in ((0, "rising"), (1, "other")):
        label = (y + shift) % 3
        order = np.argsort(-label, kind="stable") if shift else np.argsort(label, kind="stable")
        write_svmlight(tmp_path / name, X[order], label[order])
        ours = numbers_of(libsvm_lines(call("train", "-s", "0", "-e", "1e-6", name)[1]))
        theirs = numbers_of(libsvm.train_lines(tmp_path / name, "-s 0 -e 1e-6"))
        np.testing.assert_allclose(ours["rho"], theirs["rho"], atol=1e-4)
        np.testing.assert_allclose(ours["obj"], theirs["obj"], rtol=1e-5)


def test_of_two_classes_rho_belongs_to_the_first_row_s_class(call, two, tmp_path, libsvm):
    X, y, _ = read_svmlight(two)
    for labels in ((3, 5), (5, 3), (1, -1), (-1, 1)):
        write_svmlight(tmp_path / "renamed", X, np.where(y == y[0], *labels))
        ours = numbers_of(libsvm_lines(call("train", "-s", "0", "-e", "1e-6", "renamed")[1]))
        theirs = numbers_of(libsvm.train_lines(tmp_path / "renamed", "-s 0 -e 1e-6"))
        np.testing.assert_allclose(ours["rho"], theirs["rho"], atol=1e-4)


def test_below_svm_train_s_lines_stand_the_certificate_and_how_it_came_about(call, two):
    _, out, _ = call("train", "-t", "2", two)
    facts = dict(re.split(r"\s{2,}", line, maxsplit=1) for line in out.splitlines()[1:] if " = " not in line)
    assert (facts["rows"], facts["features"], facts["classes"]) == ("60", "4", "2 (-1, 1)")
    assert (facts["machine"], facts["kernel"], facts["status"]) == ("C-SVC", "rbf", "converged")
    assert re.fullmatch(r"\d\.\de[+-]\d\d \(certified\)", facts["gap"])
    assert facts["solver"] in ("svmlight", "smo")
    assert {"seconds", "model"} <= facts.keys()


@pytest.mark.parametrize(
    ("words", "parameters"),
    [
        ("-s 0", {"C": 1.0, "kernel": "rbf", "gamma": "auto", "tol": 1e-3, "cache_size": 100.0, "shrinking": True}),
        ("-t 1", {"kernel": "poly", "degree": 3, "coef0": 0.0, "gamma": "auto"}),
        ("--kernel poly -d 2 --coef0 1 --gamma scale", {"degree": 2, "coef0": 1.0, "gamma": "scale"}),
        ("-g 0", {"kernel": "rbf", "gamma": "auto"}),
        ("-t 3 -r -1e-3 -g 0.25", {"kernel": "sigmoid", "coef0": -1e-3, "gamma": 0.25}),
        ("-s 3 -c 2", {"C": 2.0, "epsilon": 0.1}),
        ("-t 0 -h 0 -m 40 -e 1e-5", {"kernel": "linear", "shrinking": False, "cache_size": 40.0, "tol": 1e-5}),
        ("--shrinking no", {"shrinking": False}),
        ("-h 1", {"shrinking": True, "kernel": "rbf"}),
        ("--solver smo --kernel rbf", {"solver": "smo", "max_iter": -1}),
        ("--solver svmlight --working-set 10 --max-iter 10000", {"working_set": 10, "max_iter": 10000}),
        ("-b 1", {"probability": "libsvm"}),
        ("--calibration isotonic", {"calibration": "isotonic"}),
        ("--probability --seed 3", {"probability": "libsvm", "random_state": 3}),
        ("-t 2 -w1 2 -w-1 0.5 --max-iter none", {"class_weight": {1: 2.0, -1: 0.5}, "max_iter": -1}),
        ("--kernel rbf --class-weight balanced -j 2", {"class_weight": "balanced", "n_jobs": 2}),
    ],
)
def test_options_reach_the_estimator_with_libsvm_s_defaults(call, two, tmp_path, words, parameters):
    assert call("train", "-q", *words.split(), two) == (0, "", "")
    kept = load_model(tmp_path / "two.model").get_params()
    assert {name: kept[name] for name in parameters} == parameters


@pytest.mark.parametrize(
    ("words", "name"),
    [("-s 0 -t 0", "SVC"), ("-t 0", "SVC"), ("-s 1", "NuSVC"), ("-s 2", "OneClassSVM"), ("-s 3", "SVR"),
     ("-s 4", "NuSVR"), ("--kernel rbf --nu 0.3", "NuSVC"), ("-n 0.3", "NuSVC"), ("--task oneclass", "OneClassSVM"),
     ("--task oneclass --nu 0.2", "OneClassSVM"),
     ("-s 7", "LinearSVC"),
     ("-s 21", "LinearOneClassSVM"), ("--task linear-oneclass -n 0.2 --solver ocas", "LinearOneClassSVM"),
     ("-s 21 --task oneclass --scaling maxabs", "LinearOneClassSVM"),
     ("--task regression --kernel linear", "SVR"),
     ("--task regression -g 1 --nu 0.3", "NuSVR"), ("--task classification", "LinearSVC"), ("", "LinearSVC"),
     ("--task regression --max-iter none", "LinearSVR"), ("-c 2 -e 0.01", "LinearSVC")],
)  # fmt: skip
def test_letters_and_words_choose_the_machine(call, two, tmp_path, words, name):
    assert call("train", "-q", *words.split(), two) == (0, "", "")
    assert type(load_model(tmp_path / "two.model")).__name__ == name


def test_json_has_the_facts_of_every_problem(call, three):
    status, out, _ = call("train", "--json", "-s", "0", "-g", "0.5", three)
    facts = json.loads(one_line(out), parse_constant=pytest.fail)
    assert status == 0
    assert (facts["machine"], facts["kernel"], facts["gamma"], facts["classes"]) == ("C-SVC", "rbf", 0.5, [0, 1, 2])
    first = read_svmlight(three)[1].astype(int)
    order = sorted({0, 1, 2}, key=first.tolist().index)
    assert [problem["classes"] for problem in facts["problems"]] == [list(pair) for pair in combinations(order, 2)]
    assert all({"obj", "rho", "nu", "nSV", "nBSV", "iterations"} <= problem.keys() for problem in facts["problems"])
    assert 0 < facts["nSV"] <= 60
    assert facts["status"] == "converged"


def test_a_weight_of_one_class_takes_the_line_of_nu_away_as_in_svm_train(call, two, libsvm):
    ours = libsvm_lines(call("train", "-s", "0", "-w1", "2", two)[1])
    assert [re.sub(NUMBER, "#", line) for line in ours] == [
        re.sub(NUMBER, "#", line) for line in libsvm.train_lines(two, "-s 0 -w1 2")
    ]


@machines
def test_cross_validation_prints_svm_train_s_lines(call, files, tmp_path, letters, data):
    before = sorted(tmp_path.iterdir())
    status, out, _ = call("train", "-v", "4", "-q", *letters.split(), files[data])
    assert status == 0
    if data == "slope":
        mse, correlation = out.splitlines()
        assert 0 < float(mse.removeprefix("Cross Validation Mean squared error = ")) < 4
        assert 0.5 < float(correlation.removeprefix("Cross Validation Squared correlation coefficient = ")) <= 1
    else:
        assert re.fullmatch(r"Cross Validation Accuracy = \d+(\.\d+)?%\n", out)
    assert sorted(tmp_path.iterdir()) == before


def test_cross_validation_with_probabilities_predicts_the_most_probable_class(call, two, monkeypatch):
    monkeypatch.setattr(SVC, "predict_proba", lambda model, X: np.tile([0.3, 0.7], (X.shape[0], 1)))
    _, y, _ = read_svmlight(two)
    _, out, _ = call("train", "-q", "-v", "3", "-b", "1", two)
    assert out == f"Cross Validation Accuracy = {100 * np.mean(y == 1):g}%\n"


# What goes wrong


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("-s 8", "argument -s: must be one of LIBSVM's types, 0 C-SVC, 1 nu-SVC, 2 one-class SVM, 3 epsilon-SVR, 4 nu"),
        ("-t 5", "invalid choice: 5"),
        ("-s x", "argument -s: must be a whole number >= 0, got 'x'"),
        ("--kernel gauss", "invalid choice: 'gauss'"),
        ("-g -1", "must be a number >= 0, auto or scale, got '-1'"),
        ("-g wide", "must be a number >= 0, auto or scale, got 'wide'"),
        ("-t 1 -d -1", "must be a whole number >= 0, got '-1'"),
        ("-t 1 -d 1.5", "must be a whole number >= 0, got '1.5'"),
        ("-t 1 -r inf", "must be a finite number, got 'inf'"),
        ("-n 0", "must be > 0 and <= 1, got 0"),
        ("-n 1.5", "must be > 0 and <= 1, got 1.5"),
        ("-m 0", "must be > 0, got 0"),
        ("-b 2", "must be 0 or 1, got '2'"),
        ("-b 1 --calibration sigmoid", "--calibration and -b 1 are two ways to fit probabilities"),
        ("-s 3 --calibration sigmoid", "--calibration is for C-SVC (-s 0) or nu-SVC (-s 1), this is epsilon-SVR"),
        ("--shrinking maybe", "must be yes or no, got 'maybe'"),
        ("--working-set 1", "must be a whole number >= 2, got '1'"),
        ("-t 0 -e 0", "-e/--tol must be > 0 for kernel machines, got 0"),
        ("-t 0 -g 1", "-g/--gamma is for the kernel poly (-t 1), rbf (-t 2) or sigmoid (-t 3), this one is linear"),
        ("-t 4 --gamma 1", "this one is precomputed (-t 4)"),
        ("-d 2", "-d/--degree is for the kernel poly (-t 1), this one is rbf (-t 2)"),
        ("--kernel rbf -r 1", "-r/--coef0 is for the kernel poly (-t 1) or sigmoid (-t 3), this one is rbf"),
        ("-s 0 -n 0.3", "-n/--nu is for nu-SVC (-s 1), one-class SVM (-s 2) or nu-SVR (-s 4), this is C-SVC (-s 0)"),
        ("-t 2 -n 0.3", "this is C-SVC (-s 0); leave it out or change -s"),
        ("-s 3 -n 0.3", "this is epsilon-SVR (-s 3)"),
        ("-s 1 -c 2", "-c/--C is for C-SVC (-s 0), epsilon-SVR (-s 3) or nu-SVR (-s 4), this is nu-SVC (-s 1)"),
        ("-s 2 -c 2", "this is one-class SVM (-s 2)"),
        ("-s 0 -p 0.2", "-p/--epsilon is for epsilon-SVR (-s 3), this is C-SVC (-s 0)"),
        ("-s 4 -p 0.2", "-p/--epsilon is for epsilon-SVR (-s 3), this is nu-SVR (-s 4)"),
        ("-s 3 -w1 2", "--class-weight is for C-SVC (-s 0) or nu-SVC (-s 1), this is epsilon-SVR (-s 3)"),
        ("--task oneclass -w1 2", "this is one-class SVM (-s 2)"),
        ("-s 0 --task regression", "-s 0 means --task classification, got --task regression"),
        ("-s 3 --task oneclass", "-s 3 means --task regression, got --task oneclass"),
        ("-t 0 --kernel rbf", "-t 0 means --kernel linear, got rbf"),
        ("-s 0 -t 0 --loss hinge", "--loss is for linear machines, but -s asks for a kernel machine"),
        ("-g 1 -B 1", "-B/--bias is for linear machines, but -g/--gamma asks for a kernel machine"),
        ("--kernel rbf --multi-class ovr", "--multi-class is for linear machines, but --kernel asks"),
        ("-b 0 --stopping violation", "--stopping violation is svmperf's criterion; kernel machines take gap or kkt"),
        ("-b 0 --bias 1", "--bias is for linear machines, but -b/--probability asks"),
        ("--task oneclass --loss hinge", "--loss is for linear machines, but --task oneclass asks"),
        ("-h 0 --solver dcd", "--solver dcd is for linear machines, but -h/--shrinking asks"),
        ("-m 10 --format liblinear", "--format liblinear is for linear machines, but -m/--cache-size asks"),
        ("--solver svmlight", "--solver svmlight is for kernel machines, and without an option of those"),
        ("--solver smo", "--solver smo is for kernel machines"),
        ("--format libsvm", "--format libsvm is for kernel machines"),
        ("--kernel rbf --solver smo --working-set 4", "--working-set is for --solver svmlight"),
        ("-t 4 --n-features 3", "--n-features is for features, but a precomputed kernel"),
        ("-t 4 --zero-based yes", "--zero-based is for features, but a precomputed kernel"),
        ("--kernl rbf", "unknown option --kernl; did you mean --kernel?"),
    ],
)
def test_options_that_are_wrong_or_do_not_apply_are_refused_by_name(call, two, tmp_path, words, says):
    status, out, err = call("train", *words.split(), two)
    assert (status, out) == (2, "")
    assert one_line(err).startswith("widemargin: error: ")
    assert says in err
    assert sorted(tmp_path.iterdir()) == [two]


def test_predict_refuses_what_a_model_cannot_do(call, two, slope):
    call("train", "-q", "-s", "0", two)
    call("train", "-q", two, "linear.model")
    call("train", "-q", "-s", "3", slope)
    call("train", "-q", "-s", "0", "-b", "1", two, "probable.model")
    for words, says in (
        (["-b", "1", two, "two.model"], "-b 1: two.model has no probability estimates"),
        (["-b", "1", two, "linear.model"], "-b 1: linear.model has no probability estimates"),
        (["-b", "1", slope, "slope.model"], "-b 1: slope.model has no probability estimates"),
        (["--scores", slope, "slope.model"], "--scores is for classification, slope.model is a regression model"),
        (["-b", "1", "--scores", two, "probable.model"], "-b 1 and --scores both add columns"),
        (["-b", "yes", two, "two.model"], "must be 0 or 1, got 'yes'"),
    ):
        status, out, err = call("predict", *words, "out")
        assert (status, out) == (2, "")
        assert says in one_line(err)


@pytest.mark.parametrize(
    ("letters", "text", "says"),
    [
        ("-s 0", "1 1:1\n1 1:2\n", "class"),
        ("-s 1 -n 0.9", "1 1:1\n-1 1:2\n-1 1:3\n-1 1:4\n-1 1:5\n", "nu"),
        ("-s 0", "1.5 1:1\n1 1:2\n", "the label of row 1 is 1.5, but classes are whole numbers"),
        ("-s 0 -w7 2", "1 1:1\n-1 1:2\n", "no row has the label 7"),
        ("-s 0 --format libsvm", "1 1:1\n3000000000 1:2\n", "labels in files of --format libsvm end at 2147483647"),
    ],
)
def test_data_that_cannot_be_trained_on_are_one_line_and_status_1(call, tmp_path, letters, text, says):
    (tmp_path / "bad").write_text(text)
    status, out, err = call("train", *letters.split(), "bad")
    assert (status, out) == (1, "")
    assert one_line(err).startswith("widemargin: error: bad: ")
    assert says in err
    assert not (tmp_path / "bad.model").exists()


def test_ctrl_c_keeps_the_kernel_machine_so_far(endless, tmp_path):
    words = ["train", "-s", "0", "-t", "0", "-c", "1e9", "-e", "1e-9", "--solver", "smo", "--progress", "yes", endless]
    command = [sys.executable, "-m", "widemargin", *map(str, words)]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment, text=True
    ) as process:
        told = (line for line in iter(process.stderr.readline, "") if "violation" in line)
        assert len(list(islice(told, 3))) == 3  # after the first line there may be no model yet
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=120)
    assert process.returncode == 1
    assert "widemargin: warning: interrupted: endless.model holds the model so far" in err
    assert "Traceback" not in err
    assert "obj = " in out
    assert load_model(tmp_path / "endless.model").status_ == "interrupted"


def test_a_kernel_machine_that_has_seen_no_row_replaces_nothing(call, two, tmp_path, monkeypatch):
    fit = SVC.fit

    def interrupted(model, X, y):
        fit(model, X, y)
        model.status_, model.n_iter_ = "interrupted", np.zeros(1, dtype=np.int32)

    (tmp_path / "two.model").write_text("old")
    monkeypatch.setattr(SVC, "fit", interrupted)
    assert call("train", "-q", "-s", "0", two)[0] == 130
    assert (tmp_path / "two.model").read_text() == "old"


def test_progress_of_kernel_machines_goes_to_standard_error(call, two, monkeypatch):
    monkeypatch.setattr("widemargin._runtime.progress._SECONDS_BETWEEN_LINES", 0.0)
    status, out, err = call("train", "-s", "0", "--solver", "smo", "--progress", "yes", two)
    assert status == 0
    assert "smo: " in err
    assert "violation" in err
    assert "smo: " not in out


@pytest.mark.parametrize("data", ["two", "three"])
def test_labels_with_scores_are_those_without_and_cost_no_second_look(call, files, tmp_path, data, monkeypatch):
    call("train", "-q", "-s", "0", files[data], "model")
    call("predict", "-q", files[data], "model", "labels")
    looks, sums = [], SVC._sums
    monkeypatch.setattr(SVC, "_sums", lambda model, Z, **options: looks.append(Z) or sums(model, Z, **options))
    call("predict", "-q", "--scores", files[data], "model", "scores")
    _, *rows = (tmp_path / "scores").read_text().splitlines()
    assert [row.split()[0] for row in rows] == (tmp_path / "labels").read_text().split()
    assert len(looks) == 1


# What is trained, and options of other programs


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("-s 1", "nu-SVC, rbf kernel; LIBSVM's -s 1 (LIBLINEAR's -s 1 is --loss squared_hinge)"),
        ("-s 2", "one-class SVM, rbf kernel; LIBSVM's -s 2 (LIBLINEAR's -s 2 is --loss squared_hinge)"),
        ("-s 3", "epsilon-SVR, rbf kernel; LIBSVM's -s 3 (LIBLINEAR's -s 3 is --loss hinge)"),
        ("-s 4", "nu-SVR, rbf kernel; LIBSVM's -s 4 (LIBLINEAR's -s 4 is --multi-class crammer_singer)"),
        ("-s 0", "C-SVC, rbf kernel; LIBSVM's -s 0 (LIBLINEAR's -s 0 is --loss log_loss)"),
        ("-s 7 -c 2", "linear SVC, log loss"),
        ("-s 6", "linear SVC, log loss, L1 penalty"),
        ("--loss log_loss", "linear SVC, log loss"),
        ("-s 1 -t 1", "nu-SVC, poly kernel; LIBSVM's -s 1"),
        ("--task regression -n 0.3", "nu-SVR, rbf kernel; LIBSVM's -s 4"),
        ("", "linear SVC, squared hinge loss; the rbf kernel, svm-train's default, is -t 2"),
        ("-c 2 -w1 2", "linear SVC, squared hinge loss; the rbf kernel, svm-train's default, is -t 2"),
        ("--task regression", "linear SVR, epsilon-insensitive loss; the rbf kernel, svm-train's default, is -t 2"),
        ("--loss hinge", "linear SVC, hinge loss"),
        ("--loss squared_epsilon_insensitive", "linear SVR, squared epsilon-insensitive loss"),
        ("--multi-class crammer_singer", "linear SVC, Crammer and Singer's loss"),
        ("--task rank", "RankSVM, pairs within queries, linear"),
        ("--task ordinal", "OrdinalSVC, ranks by thresholds, linear"),
        ("--task rocarea", "ROCAreaSVC, area under the ROC curve, linear"),
        ("--task measure --measure prbep", "MeasureSVC, prbep, linear"),
    ],
)
def test_the_first_line_says_what_is_trained(call, two, words, says):
    status, out, _ = call("train", *words.split(), two)
    assert (status, out.splitlines()[0]) == (0, says)
    facts = json.loads(call("train", *words.split(), "--json", two)[1])
    assert facts["trained"] == says.partition(" (LIBLINEAR")[0].partition("; the rbf")[0]
    assert call("train", *words.split(), "-q", two)[1] == ""


def test_cross_validation_and_grid_say_what_is_trained_too(call, two):
    says = "C-SVC, rbf kernel; LIBSVM's -s 0"
    assert call("train", "-t", "2", "-v", "2", two)[1].startswith(f"{says}\nCross Validation Accuracy = ")
    assert json.loads(call("train", "-t", "2", "-v", "2", "--json", two)[1])["trained"] == says
    assert call("grid", "-c", "1", "--log2g", "-3,-1,1", two)[1].startswith(f"{says}\nbest ")
    found = json.loads(call("grid", "--overwrite", "-c", "1", "--log2g", "-3,-1,1", "--json", two)[1])
    assert found["trained"] == says


@pytest.mark.parametrize("command", ["train", "grid"])
@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("-s 6 --loss hinge", "-s 6 means --loss log_loss, got --loss hinge; leave one of them out"),
        ("-s 5 --loss log_loss", "-s 5 means --loss squared_hinge, got --loss log_loss; leave one of them out"),
        ("-s 7 --loss hinge", "-s 7 means --loss log_loss, got --loss hinge"),
        ("-s 7 -g 0.1", "-g/--gamma is for kernel machines, and -s 7 is logistic regression"),
        ("-s 11", "11 is a type of LIBLINEAR: use --loss squared_epsilon_insensitive"),
        ("-s 12", "12 is a type of LIBLINEAR: use --loss squared_epsilon_insensitive"),
        ("-s 13", "13 is a type of LIBLINEAR: use --loss epsilon_insensitive"),
        ("-s 21 -c 2", "-c/--C is not for --task linear-oneclass; leave it out"),
        ("-s 21 -t 0", "-t is not for --task linear-oneclass; leave it out"),
        ("-s 21 --task regression", "-s 21 means --task linear-oneclass, got --task regression"),
        ("-s 2 --task linear-oneclass", "--task linear-oneclass is -s 21, got -s 2"),
        ("-s 21 --solver dcd", "--solver dcd is not for --task linear-oneclass; use auto, newton, svmperf or ocas"),
        ("-s 21 --scaling standard", "--scaling standard moves the origin"),
        ("-s 21 --format svmlight", "--format svmlight has no place for --task linear-oneclass"),
        ("-s 3 -B 1", "-s asks for a kernel machine (LIBLINEAR's -s 3 is --loss hinge); leave one of them out"),
        ("-s 1 -c 3", "this is nu-SVC (-s 1) (LIBLINEAR's -s 1 is --loss squared_hinge); leave it out or change -s"),
        ("-C", "-C is LIBLINEAR's search for C, which is widemargin grid --kernel linear here"),
        ("-R", "-R is LIBLINEAR's option for an intercept without penalty; use --no-penalize-intercept"),
        ("-s 5 -t 2", "--penalty is for linear machines, but -t asks for a kernel machine"),
        ("-s 5 --penalty l2", "-s 5 means --penalty l1, got --penalty l2; leave one of them out"),
        ("-s 5 --task regression", "-s 5 means --task classification, got --task regression"),
        ("--penalty l1 --loss hinge", "--penalty l1 needs --loss squared_hinge or log_loss, got hinge; leave one"),
        ("--penalty l1 --solver dcd", "--penalty l1 needs --solver auto, got dcd; leave one of them out"),
        ("--penalty=elasticnet", "--penalty elasticnet needs --l1-ratio, from 0 to 1"),
        ("--l1-ratio 0.5", "--l1-ratio is for --penalty elasticnet, the penalty is l2; leave it out"),
        ("--dual", "--dual is not available: --solver chooses how the problem is solved"),
    ],
)
def test_what_only_liblinear_has_is_answered_with_what_to_use(call, two, command, words, says):
    status, out, err = call(command, *words.split(), two)
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert says in err
    assert "did you mean" not in err


@pytest.mark.parametrize("words", ["--loss squared_hinge", "--loss squared_epsilon_insensitive", "--loss hinge",
    "--loss epsilon_insensitive", "-s 2 -t 0", "--multi-class crammer_singer", "--no-penalize-intercept"])  # fmt: skip
def test_what_the_answers_name_is_there(call, two, words):
    assert call("train", "-q", *words.split(), two)[0] == 0


@pytest.mark.parametrize("words", ["", "-t 2"])
def test_a_gap_below_zero_by_rounding_is_printed_as_zero(call, two, words, monkeypatch):
    kind = SVC if words else LinearSVC
    fit = kind.fit

    def fit_too_well(self, *arguments, **options):
        fit(self, *arguments, **options)
        self.gap_ = -7.4e-16
        return self

    monkeypatch.setattr(kind, "fit", fit_too_well)
    assert json.loads(call("train", *words.split(), "--json", two)[1])["gap"] == 0.0
    assert re.search(r"^gap +0\.0e\+00 \(certified", call("train", *words.split(), two)[1], re.MULTILINE)


def test_help_of_train_tells_the_letters_and_their_names(call):
    _, out, _ = call("train", "--help")
    for words in (
        "-g GAMMA, --gamma GAMMA",
        "-m MB, --cache-size MB",
        "--shrinking yes|no",
        "--working-set Q",
        "nu-SVC",
    ):
        assert words in out
    assert "unless --format libsvm selects LIBSVM's" in out
    assert "svm-predict" in call("predict", "--help")[1]


@pytest.mark.parametrize("words", [["-b", "1"], ["--calibration", "isotonic"]])
def test_a_machine_on_a_basis_has_probabilities(words, call, two, tmp_path):
    assert call("train", "-q", "--kernel", "rbf", "--basis", "20", *words, two, "basis.model")[0] == 0
    model = load_model(tmp_path / "basis.model")
    assert model.basis_.shape[0] <= 20
    assert call("predict", "-q", "-b", "1", two, "basis.model", "out")[0] == 0
    lines = (tmp_path / "out").read_text().splitlines()
    assert lines[0].startswith("labels ")
    found = np.array([line.split()[1:] for line in lines[1:]], dtype=float)
    np.testing.assert_allclose(found.sum(axis=1), 1.0, atol=1e-4)
