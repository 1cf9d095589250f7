"""msvmocas does what the program of LIBOCAS does, and linclassif takes its models."""

import re

import numpy as np
import pytest
from tests.cli.programs.test_ocas import original

from widemargin import LinearSVC, read_svmlight, write_svmlight
from widemargin.persistence.ocas import read_weights, write_classes


@pytest.fixture
def classes(tmp_path, rng):
    """A file of the classes 1 to 4: 80 rows, 5 features, each of which is zero in some rows."""
    X = rng.standard_normal((80, 5)) * (rng.random((80, 5)) < 0.7)
    y = np.digitize(X @ [1.0, -2.0, 0.5, 0.0, 1.0] + 0.5 * rng.standard_normal(80), [-1.5, 0.0, 1.5]) + 1
    write_svmlight(tmp_path / "classes", X, y)
    return tmp_path / "classes"


def objective(path, model, C, n_rows=None):
    """Return the objective of a model file, by the formula."""
    X, y, _ = read_svmlight(path)
    X, label, W = X.toarray()[:n_rows], y[:n_rows].astype(int) - 1, read_weights(model)[0]
    S, every = X @ W.T, np.arange(len(label))
    margin = (np.arange(len(W)) != label[:, None]) + S - S[every, label][:, None]
    return 0.5 * (W**2).sum() + C * margin.max(axis=1).sum()


@pytest.mark.parametrize("letters", ["-c 1", "-c 10", "-c 0.1 -m 0", "-n 40"])
def test_objectives_and_models_agree(letters, call, classes, tmp_path):
    words = [*letters.split(), "-r", "1e-5"]
    theirs = original("msvmocas", *words, classes, "theirs", folder=tmp_path)
    status, ours, _ = call("as", "msvmocas", *words, classes, "ours")
    assert status == 0
    objectives = [float(re.findall(r" Q_P=([0-9.]+)", text)[-1]) for text in (ours, theirs)]
    assert objectives[0] == pytest.approx(objectives[1], rel=3e-5)
    C = float(letters.split()[1]) if "-c" in letters else 1.0
    n_rows = 40 if "-n" in letters else None
    for name, found in zip(("ours", "theirs"), objectives, strict=True):
        assert objective(classes, tmp_path / name, C, n_rows) == pytest.approx(found, rel=1e-5)
    for pattern in (r"Stopping condition: .*", r"   # of classes   : .*", r"   C  .*", r"   # of examples  : .*",
                    r"   dimensionality : .*", r"   TolRel  .*", r"   cache size     : .*"):  # fmt: skip
        assert re.findall(pattern, ours) == re.findall(pattern, theirs)
    for line in ("Input file statistics:", "Setting:", "Starting optimization:", "Result saved to model file: "):
        assert line in ours
        assert line in theirs
    W, V = (read_weights(tmp_path / name)[0] for name in ("ours", "theirs"))
    np.testing.assert_allclose(W, V, atol=0.02 * np.abs(V).max())


def test_the_model_is_that_of_the_estimator(call, classes, tmp_path):
    call("as", "msvmocas", "-c", "0.5", "-r", "1e-6", classes, "model")
    X, y, _ = read_svmlight(classes)
    model = LinearSVC(C=0.5, multi_class="crammer_singer", fit_intercept=False, tol=1e-8, max_iter=None).fit(X, y)
    assert objective(classes, tmp_path / "model", 0.5) == pytest.approx(model.objective_, rel=2e-6)
    np.testing.assert_allclose(read_weights(tmp_path / "model")[0], model.coef_, atol=0.01)


def test_linclassif_prints_what_the_original_prints(call, classes, tmp_path):
    assert call("as", "msvmocas", "-v", "0", classes, "model")[:2] == (0, "")
    for letters in (["-e"], [], ["-t", "1"]):
        theirs = original("linclassif", *letters, classes, "model", folder=tmp_path)
        status, ours, _ = call("as", "linclassif", *letters, classes, "model")
        assert status == 1  # as in the original
        if letters == ["-t", "1"]:
            np.testing.assert_allclose(np.array(ours.split(), float), np.array(theirs.split(), float), rtol=1e-9)
        else:
            assert ours == theirs


@pytest.mark.parametrize(
    ("letters", "reason"),
    [
        ("-a 5 -r 0", "Q_P-Q_D <= TolAbs(=5.000000) satisfied."),
        ("-q 75 -r 0", "Q_P <= QPBound(=75.000000) satisfied."),
        ("-r 0.5", "1-Q_D/Q_P <= TolRel(=0.500000) satisfied."),
    ],
)
def test_it_stops_where_it_is_told(letters, reason, call, classes, tmp_path):
    status, out, err = call("as", "msvmocas", *letters.split(), classes, "model")
    assert status == 0
    assert f"Stopping condition: {reason}" in out
    assert "warning" not in err
    assert f"Stopping condition: {reason}" in original("msvmocas", *letters.split(), classes, "theirs", folder=tmp_path)


def test_a_limit_of_planes_is_told(call, classes):
    status, out, err = call("as", "msvmocas", "-s", "2", "-r", "1e-9", classes, "model")
    assert status == 0
    assert "Stopping condition: Has not converged!" in out
    assert "msvmocas has not converged: max_iter reached" in err


def test_a_class_without_rows_has_weights_and_two_classes_are_enough(call, tmp_path, rng):
    X = rng.standard_normal((60, 3))
    for name, y in (("gap", np.where(X[:, 0] > 0.0, 4, np.where(X[:, 1] > 0.0, 2, 1))), ("pair", 1 + (X[:, 0] > 0.0))):
        write_svmlight(tmp_path / name, X, y)
        assert call("as", "msvmocas", "-r", "1e-5", name, "model")[0] == 0
        theirs = original("msvmocas", "-r", "1e-5", name, "theirs", folder=tmp_path)
        assert "Result saved" in theirs
        heights = [objective(tmp_path / name, tmp_path / model, 1.0) for model in ("model", "theirs")]
        assert heights[0] == pytest.approx(heights[1], rel=3e-5)
        assert read_weights(tmp_path / "model")[0].shape == (y.max(), 3)


@pytest.mark.parametrize("labels", [[0, 1, 2], [1.5, 2, 3], [-1, 1, 2], [1, 1, 1]])
def test_labels_that_are_not_classes_are_refused(labels, call, tmp_path, rng):
    write_svmlight(tmp_path / "rows", rng.standard_normal((3, 2)), np.array(labels, float))
    status, _, err = call("as", "msvmocas", "rows", "model")
    assert status == 1
    assert "labels must be whole numbers 1, 2, ..., of two classes or more" in err
    assert not (tmp_path / "model").exists()


@pytest.mark.parametrize("name", ["svmocas", "msvmocas"])
def test_more_rows_than_there_are_is_an_error(name, call, classes):
    status, _, err = call("as", name, "-n", "81", classes, "model")
    assert status == 1
    assert "has 80 rows; -n 81 must not be more" in err


def test_options_of_svmocas_alone_are_refused(call, classes):
    for letter in ("-C", "-b", "-p"):
        status, _, err = call("as", "msvmocas", letter, "1", classes, "model")
        assert (status, f"msvmocas has no option {letter}" in err) == (1, True)


def test_models_are_read_to_the_bit(tmp_path, rng):
    W = rng.standard_normal((5, 3)) * 10.0 ** rng.integers(-300, 300, (5, 3))
    write_classes(tmp_path / "model", W)
    np.testing.assert_array_equal(read_weights(tmp_path / "model")[0], W.T)
    assert len((tmp_path / "model").read_text().splitlines()) == 5
