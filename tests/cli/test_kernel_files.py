"""Kernel machines and files: LIBSVM's model text, precomputed kernels, and what `predict` writes."""

import json
import re

import numpy as np
import pytest
from tests.cli.libsvm_types import MACHINES

from widemargin import read_svmlight, write_svmlight
from widemargin.persistence.model_file import load_model

KERNELS = ["-t 0", "-t 1 -g 0.5 -r 1 -d 2", "-t 2 -g 0.3", "-t 3 -g 0.05 -r -0.5"]
machines_with_kernels = pytest.mark.parametrize(
    ("letters", "data"),
    [
        pytest.param(f"{letters} {kernel}", data, id=f"{name} {kernel}")
        for name, (letters, data) in MACHINES.items()
        for kernel in KERNELS
        if (name, kernel) != ("one-class", "-t 0")  # rows around the origin: every score is 0
    ],
)


def one_line(text):
    """Return the only line of a text, but for the note of a first compilation, which any test may be the one to see."""
    (line,) = (line for line in text.splitlines() if not line.startswith("compiling ("))
    return line


def write_kernel(path, K, y, serial):
    """Write a precomputed kernel as LIBSVM reads it."""
    rows = [
        " ".join([f"{label:g} 0:{number}", *(f"{k}:{value!r}" for k, value in enumerate(row, 1))])
        for label, number, row in zip(y, serial, K.tolist(), strict=True)
    ]
    path.write_text("\n".join(rows) + "\n")


# Precomputed kernels


@pytest.fixture
def precomputed(two, tmp_path):
    """A file of the precomputed linear kernel of `two`."""
    X, y, _ = read_svmlight(two)
    write_kernel(tmp_path / "kernel", (X @ X.T).toarray(), y, range(1, 61))
    return tmp_path / "kernel"


@pytest.mark.parametrize(
    "words",
    ["train kernel m", "train -t 2 -v 3 kernel", "grid kernel m", "grid --kernel linear kernel m", "easy kernel",
     "scale kernel", "scale -s r -o out kernel", "easy two kernel", "predict kernel two.model out",
     "report two.model kernel"],
)  # fmt: skip
def test_a_precomputed_kernel_where_features_are_expected_is_refused(call, two, precomputed, words, tmp_path):
    call("train", "-q", two)
    before = sorted(tmp_path.iterdir())
    status, out, err = call(*words.split())
    assert (status, out if "easy two" not in words else "") == (1, "")
    assert one_line(err).startswith("widemargin: error: kernel: the rows look like a precomputed kernel (0:serial 1:K")
    assert sorted(tmp_path.iterdir()) == before


def test_ranges_are_not_applied_to_a_precomputed_kernel(call, two, precomputed, tmp_path):
    call("scale", "-q", "-s", "ranges", "-o", "scaled", two)
    before = sorted(tmp_path.iterdir())
    for words in ([], ["-o", "out"]):
        status, out, err = call("scale", "-r", "ranges", *words, "kernel")
        assert (status, out) == (1, "")
        assert "kernel: the rows look like a precomputed kernel" in one_line(err)
    assert sorted(tmp_path.iterdir()) == before


def test_index_0_may_be_a_feature_if_it_is_said_so(call, precomputed, tmp_path):
    assert call("train", "-q", "--zero-based", "yes", precomputed, "m")[0] == 0
    assert load_model(tmp_path / "m").n_features_in_ == 61


@pytest.mark.parametrize("words", ["train", "train -t 4", "grid", "easy", "scale", "predict", "subset", "check"])
def test_comma_separated_values_are_named_as_such(call, two, words, tmp_path):
    (tmp_path / "table.csv").write_text("label,height,width\n1,0.5,2\n-1,0.25,3\n")
    call("train", "-q", two, "m")
    files = {"predict": ["table.csv", "m", "out"], "subset": ["table.csv", "1"]}.get(words, ["table.csv"])
    status, out, err = call(*words.split(), *files)
    assert status == 1
    assert "table.csv:1:1: the file looks like comma-separated values (CSV); a row is `label index:value" in out + err
    assert "pandas.read_csv, and write it with widemargin.write_svmlight" in out + err


def test_a_precomputed_linear_kernel_is_the_linear_kernel(call, two, precomputed, tmp_path):
    letters = ((two, "0"), (precomputed, "4"))
    computed, given = (
        json.loads(call("train", "--json", "-t", kernel, "-e", "1e-6", data)[1])["problems"][0]
        for data, kernel in letters
    )
    for fact in ("obj", "rho", "nSV", "nBSV"):
        assert given[fact] == pytest.approx(computed[fact], rel=1e-4, abs=1e-4)
    call("predict", "-q", "--scores", two, "two.model", "computed")
    assert call("predict", "-q", "--scores", precomputed, "kernel.model", "given") == (0, "", "")
    scores = [np.loadtxt(tmp_path / name, skiprows=1) for name in ("computed", "given")]
    np.testing.assert_allclose(*scores, atol=1e-4)
    folds = [call("train", "-q", "-v", "3", "-t", kernel, data) for data, kernel in letters]
    assert folds[0] == folds[1]


def test_rows_of_a_precomputed_kernel_may_be_some_of_all_in_any_order(call, two, precomputed, tmp_path):
    lines = precomputed.read_text().splitlines()
    kept = [line for k, line in enumerate(lines[::-1]) if k % 3]
    (tmp_path / "some").write_text("\n".join(kept))
    X, y, _ = read_svmlight(two)
    rows = np.arange(60)[::-1][np.arange(60) % 3 > 0]
    write_svmlight(tmp_path / "features", X[rows], y[rows])
    for form in ("widemargin", "libsvm"):
        call("train", "-q", "-t", "0", "-e", "1e-6", "features")
        assert call("train", "-q", "-t", "4", "-e", "1e-6", "--format", form, "some") == (0, "", "")
        call("predict", "-q", "--scores", two, "features.model", "computed")
        assert call("predict", "-q", "--scores", precomputed, "some.model", "given") == (0, "", "")
        scores = [np.loadtxt(tmp_path / name, skiprows=1) for name in ("computed", "given")]
        np.testing.assert_allclose(*scores, atol=1e-4)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("1 0:1 1:2 2:1\n-1 1:1 2:2\n", "bad:2: a row of a precomputed kernel begins with 0:serial"),
        ("# K\n\n1 0:1 1:2 2:1\n\n-1\n", "bad:5: a row of a precomputed kernel begins with 0:serial"),
        ("1 0:1 1:2 2:1\n-1 0:3 1:1 2:2\n", "bad:2: the serial number must be a whole number from 1 to 2"),
        ("1 0:0.5 1:2 2:1\n-1 0:2 1:1 2:2\n", "bad:1: the serial number must be a whole number from 1 to 2"),
        ("1 0:1 1:2 2:1\n-1 0:2 2:2\n", "bad:2: the row has 1 of 2 kernel values; write every one, zeros too"),
        ("1 0:1\n-1 0:2\n", "bad:1: the serial number must be a whole number from 1 to 0"),
        ("1 0:1 1:2 2:x\n-1 0:2 1:1 2:2\n", "bad:1:"),
    ],
)
def test_a_bad_row_of_a_precomputed_kernel_is_named_by_its_line(call, tmp_path, text, says):
    (tmp_path / "bad").write_text(text)
    status, out, err = call("train", "-t", "4", "bad")
    assert (status, out) == (1, "")
    assert one_line(err).startswith(f"widemargin: error: {says}")
    status, _, err = call("train", "-t", "4", "-", "model", stdin=text.encode())
    assert status == 1
    assert f"widemargin: error: {says}".replace("bad:", "<stdin>:") in err


def test_rows_to_predict_need_the_kernel_with_every_training_row(call, precomputed, tmp_path):
    call("train", "-q", "-t", "4", precomputed)
    (tmp_path / "short").write_text("1 0:1 1:2 2:3\n")
    status, _, err = call("predict", "short", "kernel.model", "out")
    assert status == 1
    assert "short:1: the row has 2 kernel values, the model needs 60" in one_line(err)


# Predicting


def test_probabilities_follow_each_label_below_a_heading_of_labels(call, two, three, tmp_path):
    seen = dict.fromkeys(line.split()[0] for line in three.read_text().splitlines())  # svm-train's order
    for data, labels in ((two, ["1", "-1"]), (three, list(seen))):
        call("train", "-q", "-s", "0", "-b", "1", data, "model")
        status, out, err = call("predict", "-b", "1", data, "model", "out")
        assert (status, err) == (0, "")
        heading, *rows = [line.split() for line in (tmp_path / "out").read_text().splitlines()]
        assert heading == ["labels", *labels]
        shares = np.array([row[1:] for row in rows], dtype=float)
        np.testing.assert_allclose(shares.sum(axis=1), 1.0, atol=1e-12)
        assert [row[0] for row in rows] == [labels[k] for k in shares.argmax(axis=1)]
        correct = int(np.sum(np.array([row[0] for row in rows], dtype=float) == read_svmlight(data)[1]))
        assert out == f"Accuracy = {100 * correct / 60:g}% ({correct}/60) (classification)\n"


@pytest.mark.parametrize("letters", ["-s 3", "-s 4"])
def test_the_noise_of_a_regression_is_printed_as_svm_predict_does(call, slope, tmp_path, letters):
    _, out, _ = call("train", *letters.split(), "-b", "1", slope)
    scale = load_model(tmp_path / "slope.model").laplace_scale_
    first, second = (
        "Prob. model for test data: target value = predicted value + z,",
        "z: Laplace distribution e^(-|z|/sigma)/(2sigma),sigma={}",
    )
    assert out.splitlines()[1:3] == [first, second.format(f" {scale:g}")]
    _, out, _ = call("predict", "-b", "1", slope, "slope.model", "out")
    assert out.splitlines()[:2] == [first, second.format(f"{scale:g}")]
    assert out.splitlines()[2].startswith("Mean squared error = ")
    assert len((tmp_path / "out").read_text().splitlines()) == 60
    assert json.loads(call("predict", "--json", "-b", "1", slope, "slope.model", "out")[1])["laplace_scale"] == scale


def test_one_class_predicts_inliers_and_outliers_with_probabilities(call, two, tmp_path):
    call("train", "-q", "-s", "2", "-n", "0.3", "-b", "1", two)
    _, out, _ = call("predict", "-b", "1", two, "two.model", "out")
    heading, *rows = [line.split() for line in (tmp_path / "out").read_text().splitlines()]
    assert heading == ["label", "normal", "outlier"]
    assert {row[0] for row in rows} == {"1", "-1"}
    shares = np.array([row[1:] for row in rows], dtype=float)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0, atol=1e-12)
    inlier = np.array([row[0] == "1" for row in rows])
    assert shares[inlier, 0].min() >= 0.5 >= shares[~inlier, 0].max()
    assert re.fullmatch(r"Accuracy = [\d.]+% \(\d+/60\) \(classification\)\n", out)


def test_a_model_with_probabilities_that_nobody_asked_for_is_noted(call, two):
    call("train", "-q", "-b", "1", two)
    assert "note: two.model has probability estimates; -b 1 would use them" in call("predict", two, "two.model", "o")[2]
    assert call("predict", "-q", two, "two.model", "o") == (0, "", "")
    assert call("predict", "-q", "-b", "0", two, "two.model", "o") == (0, "", "")


def test_scores_of_kernel_machines_are_named_by_class_or_pair(call, two, three, tmp_path):
    for data, names in ((two, ["1"]), (three, ["0/1", "0/2", "1/2"])):
        call("train", "-q", "-s", "0", data, "model")
        assert call("predict", "-q", "--scores", data, "model", "out") == (0, "", "")
        heading, *rows = [line.split() for line in (tmp_path / "out").read_text().splitlines()]
        assert heading == ["label", *names]
        model = load_model(tmp_path / "model").set_params(decision_function_shape="ovo")
        X, _, _ = read_svmlight(data)
        scores = np.array([row[1:] for row in rows], dtype=float)
        np.testing.assert_array_equal(scores.squeeze(), model.decision_function(X))
    call("train", "-q", "-s", "2", two, "model")
    call("predict", "-q", "--scores", two, "model", "out")
    rows = np.loadtxt(tmp_path / "out", skiprows=1)
    assert (np.where(rows[:, 1] < 0, -1, 1) == rows[:, 0]).all()


def test_features_beyond_the_model_s_count_as_in_svm_predict(call, two, tmp_path, libsvm):
    (tmp_path / "wide").write_text("1 1:0.5 2:1 9:7\n-1 1:0.5 2:1 9:0.1\n")
    for form in ("libsvm", "widemargin"):
        call("train", "-q", "-s", "0", "--format", form, two, form)
        assert call("predict", "-q", "--scores", "wide", form, "out") == (0, "", "")
        scores = np.loadtxt(tmp_path / "out", skiprows=1)[:, 1]
        _, decisions, labels = libsvm.predict(tmp_path / "wide", tmp_path / "libsvm")
        np.testing.assert_allclose(scores, decisions.ravel() * labels[0])


@pytest.mark.parametrize("kernel", ["0", "2"])
def test_a_model_without_support_vectors_predicts_its_intercept(call, slope, tmp_path, kernel, libsvm):
    letters = f"-s 3 -p 100 -t {kernel}"
    libsvm.train(slope, letters, tmp_path / "theirs")
    for form in ("widemargin", "libsvm"):
        call("train", "-q", "--format", form, *letters.split(), slope, form)
    for name in ("widemargin", "libsvm", "theirs"):
        assert call("predict", "-q", slope, name, "out") == (0, "", "")
        assert len(set((tmp_path / "out").read_text().splitlines())) == 1


# Model files of LIBSVM


@machines_with_kernels
def test_libsvm_predicts_from_our_model_text_as_we_do(call, files, tmp_path, letters, data, libsvm):
    assert call("train", "-q", "--format", "libsvm", *letters.split(), files[data], "model")[0] == 0
    call("predict", "-q", files[data], "model", "out")
    theirs, decisions, _ = libsvm.predict(files[data], tmp_path / "model")
    clear = np.abs(decisions).min(axis=1) > 1e-9  # not on a boundary, where rounding decides
    assert clear.mean() > 0.7
    np.testing.assert_allclose(np.loadtxt(tmp_path / "out")[clear], theirs[clear], rtol=1e-9, atol=1e-9)


@machines_with_kernels
def test_we_predict_from_libsvm_s_model_text_as_it_does(call, files, tmp_path, letters, data, libsvm):
    libsvm.train(files[data], letters, tmp_path / "model")
    assert call("predict", "-q", files[data], "model", "out") == (0, "", "")
    theirs, decisions, _ = libsvm.predict(files[data], tmp_path / "model")
    clear = np.abs(decisions).min(axis=1) > 1e-9  # not on a boundary, where rounding decides
    assert clear.mean() > 0.7
    np.testing.assert_allclose(np.loadtxt(tmp_path / "out")[clear], theirs[clear], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(("letters", "data"), [("-s 0", "two"), ("-s 0", "three"), ("-s 1 -n 0.3", "three"),
                                               ("-s 2 -n 0.3", "two")])  # fmt: skip
def test_probabilities_survive_the_model_text_in_both_directions(call, files, tmp_path, letters, data, libsvm):
    call("train", "-q", "-b", "1", "--format", "libsvm", *letters.split(), files[data], "ours")
    libsvm.train(files[data], f"{letters} -b 1", tmp_path / "theirs")
    for model in ("ours", "theirs"):
        assert call("predict", "-q", "-b", "1", files[data], model, "out") == (0, "", "")
        heading, *rows = (tmp_path / "out").read_text().splitlines()
        labels, shares, named = libsvm.predict(files[data], tmp_path / model, probability=True)
        order = [named.index(int(label)) for label in heading.split()[1:]] if "-s 2" not in letters else [0, 1]
        ours = np.array([row.split() for row in rows], dtype=float)
        # For three classes, what the iteration leaves undone depends on the order of the labels, here and there.
        near = 5e-3 if data == "three" else 1e-6
        clear = np.ptp(shares, axis=1) > 0.25  # of one class: not on the boundary, where rounding decides
        np.testing.assert_allclose(ours[clear, 1:], shares[clear][:, order], atol=near)
        assert clear.mean() > 0.5
        np.testing.assert_array_equal(ours[clear, 0], labels[clear])


def test_without_format_the_model_is_widemargin_s_even_with_libsvm_s_letters(call, two, tmp_path):
    call("train", "-q", "-s", "0", "-t", "2", two, "ours")
    call("train", "-q", "-s", "0", "-t", "2", "--format", "libsvm", two, "theirs")
    assert not (tmp_path / "ours").read_bytes().startswith(b"svm_type")
    assert (tmp_path / "theirs").read_bytes().startswith(b"svm_type c_svc\nkernel_type rbf\n")
