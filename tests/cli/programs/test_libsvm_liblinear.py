"""svm-train, svm-predict, svm-scale, train and predict do what the programs of LIBSVM and LIBLINEAR do."""

import re
import shutil
import subprocess

import numpy as np
import pytest
from sklearn.svm import LinearSVC as ScikitLinearSVC

from widemargin import LinearSVC, load_model, read_svmlight, write_svmlight


def original(name, *words, folder):
    """Run a program of Debian's packages: (exit status, standard output), or skip."""
    if shutil.which(name) is None:
        pytest.skip(f"{name} is not installed (Debian: libsvm-tools, liblinear-tools)")
    done = subprocess.run([name, *map(str, words)], cwd=folder, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout


def numbers(text, *names):
    """Return the numbers after ` = ` of some names."""
    return [float(re.search(rf"\b{name} = (-?[0-9.]+)", text)[1]) for name in names]


@pytest.mark.parametrize(
    ("letters", "names"),
    [
        ("-c 1", ["nu", "obj", "nSV", "nBSV", "Total nSV"]),
        ("-t 0 -c 1", ["obj", "nSV", "nBSV"]),
        ("-s 1 -n 0.3", ["obj", "nSV"]),
        ("-s 2 -n 0.2", ["obj", "nSV"]),
        ("-w1 3 -c 0.5 -g 0.2", ["obj", "nSV"]),
        ("-t 0 -g 5 -p 9", ["obj"]),
    ],
)
def test_svm_train_prints_what_svm_train_prints(letters, names, call, two, tmp_path):
    status, theirs = original("svm-train", *letters.split(), two, "theirs", folder=tmp_path)
    ours_status, ours, _ = call("as", "svm-train", *letters.split(), two, "ours")
    assert (status, ours_status) == (0, 0)
    np.testing.assert_allclose(numbers(ours, *names), numbers(theirs, *names), rtol=5e-3, atol=1)
    _, out = original("svm-predict", two, "ours", "a", folder=tmp_path)  # it reads our model
    _, of_ours, _ = call("as", "svm-predict", two, "theirs", "b")  # and we read its
    assert out == of_ours or letters.startswith("-s 2")
    if not letters.startswith("-s 2"):  # whose support vectors are on the boundary, up to the tolerance
        assert np.mean(np.loadtxt(tmp_path / "a") == np.loadtxt(tmp_path / "b")) > 0.95


def test_regression_and_default_model_names(call, slope, tmp_path):
    _, theirs = original("svm-train", "-s", "3", "-t", "0", slope, "theirs", folder=tmp_path)
    status, ours, _ = call("as", "svm-train", "-s", "3", "-t", "0", slope)
    assert status == 0
    np.testing.assert_allclose(numbers(ours, "obj"), numbers(theirs, "obj"), rtol=1e-2)
    _, out = original("svm-predict", slope, "slope.model", "out", folder=tmp_path)
    assert out.startswith("Mean squared error = ")


def test_quiet_and_cross_validation(call, two, tmp_path):
    assert call("as", "svm-train", "-q", two, "model")[1] == ""
    status, out, _ = call("as", "svm-train", "-v", "3", two, "other")
    assert (status, (tmp_path / "other").exists()) == (0, False)
    assert re.fullmatch(r"Cross Validation Accuracy = [0-9.]+%\n", out)


def test_scaled_rows_are_those_of_svm_scale(call, two, tmp_path):
    _, theirs = original("svm-scale", "-l", "0", "-s", "theirs.range", two, folder=tmp_path)
    status, ours, _ = call("as", "svm-scale", "-l", "0", "-s", "ours.range", two)
    assert status == 0
    (tmp_path / "a").write_text(theirs)
    (tmp_path / "b").write_text(ours)
    np.testing.assert_array_equal(*(read_svmlight(tmp_path / name, n_features=4)[0].toarray() for name in "ab"))
    _, again, _ = call("as", "svm-scale", "-r", "ours.range", two)
    assert again == ours
    status, limited, err = call("as", "svm-scale", "-r", "ours.range", "-l", "-5", "-y", "0", "1", two)
    assert (status, limited) == (0, ours)  # as in svm-scale, the limits of the file hold
    assert "svm-scale: note: -l has no effect with -r: the limits are those of ours.range" in err
    status, _, err = call("as", "svm-scale", "-r", "ours.range", "-s", "other", two)
    assert (status, "-r applies the ranges" in err) == (1, True)
    _, labelled, _ = call("as", "svm-scale", "-y", "0", "1", two)
    assert {line.split()[0] for line in labelled.splitlines()} == {"0", "1"}


@pytest.mark.parametrize(
    "letters",
    [
        "-s 0",
        "-s 7 -B 1",
        "-s 1",
        "-s 3 -B 1",
        "-s 2 -c 4",
        "-s 5 -c 4",
        "-s 6 -c 4",
        "-s 6 -B 1 -w1 2",
        "-s 4",
        "-s 4 -B 1 -w1 2 -c 0.3",
        "-s 3 -B 0",
        "-s 1 -w1 2 -c 0.3",
    ],
)
def test_train_finds_liblinears_optimum(letters, call, two, tmp_path):
    original("liblinear-train", *letters.split(), "-e", "1e-6", two, "theirs", folder=tmp_path)
    status, out, _ = call("as", "train", *letters.split(), "-e", "1e-6", two, "ours")
    assert status == 0
    assert out.startswith("optimization finished, #iter = ")
    assert (tmp_path / "ours").read_text().split("\n")[0] == (tmp_path / "theirs").read_text().split("\n")[0] or (
        letters[:4] in ("-s 0", "-s 2", "-s 7")  # types whose problems are those of others
    )
    theirs, ours = (load_model(tmp_path / name) for name in ("theirs", "ours"))
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=2e-4)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=2e-4)
    _, printed = original("liblinear-predict", two, "ours", "a", folder=tmp_path)
    _, of_ours, _ = call("as", "predict", two, "theirs", "b")
    assert printed == of_ours


def test_the_dual_objective_is_printed_as_liblinear_does(call, two, tmp_path):
    _, theirs = original("liblinear-train", "-s", "1", "-e", "1e-6", two, "theirs", folder=tmp_path)
    _, ours, _ = call("as", "train", "-s", "1", "-e", "1e-6", two, "ours")
    names = ["Objective value", "nSV"]
    np.testing.assert_allclose(numbers(ours, *names), numbers(theirs, *names), rtol=1e-4, atol=0.5)


@pytest.mark.parametrize("kind", ["4", "5", "6", "7", "12", "13"])
def test_each_type_prints_the_objective_with_liblinears_sign(kind, call, two, tmp_path):
    _, theirs = original("liblinear-train", "-s", kind, "-e", "1e-5", two, "theirs", folder=tmp_path)
    _, ours, _ = call("as", "train", "-s", kind, "-e", "1e-5", two, "ours")
    np.testing.assert_allclose(numbers(ours, "Objective value"), numbers(theirs, "Objective value"), rtol=1e-3)
    of_weights = "#nonzeros/#features = "
    assert (of_weights in ours) == (of_weights in theirs)
    assert ("nSV = " in ours) == ("nSV = " in theirs)


def test_crammer_and_singers_machine_of_two_classes_is_hinge_loss_with_twice_the_cost(rng):
    X, y = rng.standard_normal((60, 3)), rng.integers(0, 2, 60)
    joint = LinearSVC(multi_class="crammer_singer", C=0.3, tol=1e-10).fit(X, y)
    hinge = LinearSVC(loss="hinge", C=0.6, tol=1e-10).fit(X, y)
    np.testing.assert_allclose(joint.coef_, hinge.coef_, atol=1e-6)
    theirs = ScikitLinearSVC(multi_class="crammer_singer", C=0.3, tol=1e-8, max_iter=100_000).fit(X, y)
    np.testing.assert_allclose(joint.coef_, theirs.coef_, atol=1e-3)


@pytest.fixture
def three(tmp_path, rng):
    """A file of three classes whose first row is of the last class."""
    X, y = rng.standard_normal((90, 4)), np.tile([3, 1, 2], 30)
    X[np.arange(90), y] += 1.0
    write_svmlight(tmp_path / "three", X, y)
    return "three"


@pytest.mark.parametrize("kind", ["0", "4", "6", "7"])
def test_predictions_are_the_same_to_the_byte_for_models_of_either_program(kind, call, three, tmp_path):
    original("liblinear-train", "-s", kind, three, "theirs", folder=tmp_path)
    call("as", "train", "-s", kind, three, "ours")
    assert (tmp_path / "theirs").read_text().split("\n")[2] == "label 3 1 2"
    probability = "0" if kind == "4" else "1"
    for model in ("theirs", "ours"):
        original("liblinear-predict", "-b", probability, three, model, "a", folder=tmp_path)
        call("as", "predict", "-b", probability, three, model, "b")
        assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


@pytest.mark.parametrize("letters", ["-b 1", "-b 1 -t 0", "-s 1 -b 1"])
def test_probabilities_are_the_same_to_the_byte_for_models_of_svm_train(letters, call, three, tmp_path):
    original("svm-train", *letters.split(), three, "theirs", folder=tmp_path)
    call("as", "svm-train", *letters.split(), three, "ours")
    for model in ("theirs", "ours"):
        original("svm-predict", "-b", "1", three, model, "a", folder=tmp_path)
        call("as", "svm-predict", "-b", "1", three, model, "b")
        theirs, ours = ((tmp_path / name).read_text() for name in "ab")
        if model == "theirs":
            assert ours == theirs
        else:  # pairs are coupled in the order of the labels, up to LIBSVM's tolerance of 0.005
            numbers = [np.array([line.split()[1:] for line in text.splitlines()[1:]], float) for text in (ours, theirs)]
            np.testing.assert_allclose(*numbers, atol=0.005)


def test_a_weight_of_a_class_without_rows_is_a_warning(call, two, tmp_path):
    for program in ("svm-train", "train"):
        assert call("as", program, "-q", two, "plain")[0] == 0
        status, _, err = call("as", program, "-q", "-w7", "2", two, "weighted")
        assert status == 0
        assert f"{program}: warning: {two}: no row has the label 7 of -w7, which has no effect" in err
        assert (tmp_path / "weighted").read_bytes() == (tmp_path / "plain").read_bytes()


def test_weights_of_classes_are_for_C_SVC_only(call, two, tmp_path):
    call("as", "svm-train", "-s", "1", two, "plain")
    status, _, err = call("as", "svm-train", "-s", "1", "-w1", "2", two, "weighted")
    assert (status, "svm-train: note: -w1 has no effect with -s 1" in err) == (0, True)
    assert (tmp_path / "weighted").read_bytes() == (tmp_path / "plain").read_bytes()


def test_the_search_for_C_without_a_type_is_that_of_type_2(call, two):
    status, out, err = call("as", "train", "-C", "-c", "256", two)
    assert (status, "-C without -s searches with type -s 2" in err) == (0, True)
    assert out == call("as", "train", "-C", "-s", "2", "-c", "256", two)[1]


@pytest.mark.parametrize("kind", ["0", "2"])
def test_the_search_for_C_begins_where_liblinear_begins(kind, call, two, tmp_path):
    _, theirs = original("liblinear-train", "-C", "-s", kind, two, folder=tmp_path)
    ours = call("as", "train", "-C", "-s", kind, two)[1]
    assert re.search(r"log2c= *(\S+)", ours)[1] == re.search(r"log2c= *(\S+)", theirs)[1]


@pytest.mark.parametrize("kind", [11, 12, 13, 21])
def test_regression_and_one_class_are_trained(kind, call, slope, tmp_path):
    status, _, _ = call("as", "train", "-s", kind, "-B", "1" if kind < 21 else "-1", "-e", "0.001", slope, "model")
    assert status == 0
    assert (tmp_path / "model").read_text().startswith("solver_type ")


def test_the_search_for_C_prints_the_best(call, two):
    status, out, _ = call("as", "train", "-C", "-s", "2", "-c", "0.125", "-v", "3", two)
    assert status == 0
    first, *lines = out.splitlines()
    assert first == "Doing parameter search with 3-fold cross validation."
    assert len(lines) == 15  # 2^-3 to 2^10, and the best
    assert lines[0].startswith("log2c=  -3.00\trate=")
    rates = [float(line.split("rate=")[1]) for line in lines[:-1]]
    best = 2.0 ** (np.argmax(rates) - 3)
    assert lines[-1] == f"Best C = {best:g}  CV accuracy = {max(rates):g}%"


def test_the_search_for_C_and_p_begins_where_liblinear_begins_and_finds_its_error(call, slope, tmp_path):
    _, theirs = original("liblinear-train", "-C", "-s", "11", slope, folder=tmp_path)
    status, ours, _ = call("as", "train", "-C", "-s", "11", slope)
    assert status == 0

    def first_of_each_p(text):
        lines = [line.split("\t")[:2] for line in text.splitlines() if line.startswith("log2c=")]
        return {p: C for C, p in reversed(lines)}

    assert first_of_each_p(ours) == first_of_each_p(theirs)
    lowest = [float(text.split("CV MSE = ")[1]) for text in (ours, theirs)]
    assert lowest[0] == pytest.approx(lowest[1], rel=0.1)  # other folds


def test_the_search_for_p_begins_at_p_and_prints_the_best(call, slope):
    status, out, _ = call("as", "train", "-C", "-s", "11", "-p", "0.2", "-c", "1024", "-v", "3", slope)
    assert status == 0
    lines = [line for line in out.splitlines() if line.startswith("log2c=")]
    tubes = [float(line.split("p=")[1].split()[0]) for line in lines]
    assert tubes == sorted(tubes, reverse=True)
    assert max(tubes) <= 0.2
    assert tubes[-1] == 0.0
    errors = [float(line.split("error=")[1]) for line in lines]
    assert len(lines) % 11 == 0  # 2^10 to 2^20
    assert out.splitlines()[-1].endswith(f"CV MSE = {min(errors):g}")


@pytest.mark.parametrize(
    ("letters", "rule"),
    [
        ("-R -s 1", "-R needs -B 1 and type -s 0, -s 2, -s 5, -s 6 or -s 11"),
        ("-C -s 1", "-C needs type -s 0, -s 2 or -s 11"),
    ],
)
def test_what_cannot_be_had_is_refused(letters, rule, call, two):
    status, _, err = call("as", "train", *letters.split(), two)
    assert status == 1
    assert rule in err


def test_an_intercept_without_penalty(call, two, tmp_path):
    call("as", "train", "-s", "2", "-B", "1", "-R", "-e", "1e-6", two, "model")
    X, y, _ = read_svmlight(two)
    model = LinearSVC(penalize_intercept=False, tol=1e-8).fit(X, y)
    np.testing.assert_allclose(load_model(tmp_path / "model").intercept_, model.intercept_, atol=1e-3)
    call("as", "train", "-s", "6", "-B", "1", "-R", "-e", "1e-6", two, "model")
    model = LinearSVC("l1", "log_loss", penalize_intercept=False, tol=1e-8).fit(X, y)
    np.testing.assert_allclose(load_model(tmp_path / "model").intercept_, model.intercept_, atol=1e-3)
