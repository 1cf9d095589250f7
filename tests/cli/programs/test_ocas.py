"""svmocas and linclassif do what the programs of LIBOCAS do."""

import re
import shutil
import subprocess

import numpy as np
import pytest

from widemargin import FormatError, LinearSVC, read_svmlight
from widemargin.persistence.ocas import read_weights, write_weights


def original(*words, folder):
    """Run a program of LIBOCAS and return its standard output, or skip."""
    if shutil.which("svmocas") is None:
        pytest.skip("svmocas is not installed (Debian: libocas-tools)")
    return subprocess.run(list(map(str, words)), cwd=folder, capture_output=True, text=True, check=False).stdout


@pytest.mark.parametrize("letters", ["-c 1", "-c 10 -b 1", "-m 0", "-n 40"])
def test_objectives_and_models_agree(letters, call, two, tmp_path):
    words = [*letters.split(), "-r", "1e-6"]
    theirs = original("svmocas", *words, two, "theirs", folder=tmp_path)
    status, ours, _ = call("as", "svmocas", *words, two, "ours")
    assert status == 0
    objectives = [float(re.findall(r" Q_P=([0-9.]+)", text)[-1]) for text in (ours, theirs)]
    assert objectives[0] == pytest.approx(objectives[1], rel=1e-5)
    for line in ("Input file statistics:", "Setting:", "Starting optimization:", "Result saved to model file: "):
        assert line in ours
        assert line in theirs
    pairs = [re.search(r"Stopping condition: .*|Training error: .*", text)[0] for text in (ours, theirs)]
    assert pairs[0] == pairs[1]
    W, V = (read_weights(tmp_path / name) for name in ("ours", "theirs"))
    np.testing.assert_allclose(W[0], V[0], atol=5e-3)
    np.testing.assert_allclose(W[1], V[1], atol=5e-3)


def test_linclassif_prints_what_the_original_prints(call, two, tmp_path):
    call("as", "svmocas", "-v", "0", "-b", "1", two, "model")
    for letters in (["-e"], [], ["-t", "1"]):
        theirs = original("linclassif", *letters, two, "model", folder=tmp_path)
        status, ours, _ = call("as", "linclassif", *letters, two, "model")
        assert status == 1  # as in the original
        if letters == ["-t", "1"]:
            np.testing.assert_allclose(np.array(ours.split(), float), np.array(theirs.split(), float), rtol=1e-9)
        else:
            assert ours == theirs
    _, out, _ = call("as", "linclassif", "-e", "-o", "labels", two, "model")
    assert len(out.splitlines()) == 2
    assert set((tmp_path / "labels").read_text().split()) == {"+1", "-1"}


@pytest.mark.parametrize(
    ("words", "status"),
    [("two model", 1), ("-e -o labels two model", 1), ("nothing model", 0), ("two nothing", 0), ("-z two model", 0),
     ("-t 5 two model", 0), ("two", 0)],
)  # fmt: skip
def test_linclassif_ends_with_the_exit_status_of_the_original_1_for_success(words, status, call, two, tmp_path):
    call("as", "svmocas", "-v", "0", two, "model")
    assert call("as", "linclassif", *words.split())[0] == status
    if shutil.which("linclassif") is not None:
        theirs = subprocess.run(["linclassif", *words.split()], cwd=tmp_path, capture_output=True, check=False)
        assert theirs.returncode == status


def test_a_model_that_linclassif_cannot_read_is_not_taken_for_success(call, two, tmp_path):
    (tmp_path / "model").write_text("x\ny\n")
    status, out, error = call("as", "linclassif", two, "model")
    assert (status, out) == (0, "")
    assert "model" in error


def test_costs_of_rows_are_read_from_a_file(call, two, tmp_path, rng):
    costs = rng.uniform(0.1, 3.0, 60)
    (tmp_path / "costs").write_text("".join(f"{cost:.17g}\n" for cost in costs))
    call("as", "svmocas", "-C", "costs", "-r", "1e-7", two, "model")
    X, y, _ = read_svmlight(two)
    model = LinearSVC(loss="hinge", fit_intercept=False, tol=1e-9).fit(X, y, sample_weight=costs)
    np.testing.assert_allclose(read_weights(tmp_path / "model")[0], model.coef_, atol=5e-3)
    (tmp_path / "costs").write_text("1\n2\n")
    status, _, err = call("as", "svmocas", "-C", "costs", two, "model")
    assert (status, "a positive C for each of the 60 rows" in err) == (1, True)


@pytest.mark.parametrize(
    ("letters", "reason"),
    [
        ("-a 5 -r 0", "Q_P-Q_D <= TolAbs(=5.000000) satisfied."),
        ("-q 59 -r 0", "Q_P <= QPBound(=59.000000) satisfied."),
        ("-r 0.5", "1-Q_D/Q_P <= TolRel(=0.500000) satisfied."),
    ],
)
def test_it_stops_where_it_is_told(letters, reason, call, two):
    status, out, err = call("as", "svmocas", *letters.split(), two, "model")
    assert status == 0
    assert f"Stopping condition: {reason}" in out
    assert "warning" not in err


def test_lines_about_the_file_and_the_end_are_those_of_svmocas(call, two, tmp_path):
    words = ["-n", "40", "-m", "0", "-s", "3"]
    theirs = original("svmocas", *words, two, "theirs", folder=tmp_path).splitlines()
    _, out, _ = call("as", "svmocas", *words, two, "ours")
    ours = out.splitlines()
    for line in ("   # of examples  : 60", "   # of examples  : 40", "Stopping condition: Has not converged!"):
        assert line in theirs
        assert line in ours


def test_models_are_read_to_the_bit_and_checked(tmp_path, rng):
    w = rng.standard_normal(5)
    write_weights(tmp_path / "model", w, 0.3)
    W, b = read_weights(tmp_path / "model")
    np.testing.assert_array_equal(W, [w])
    assert b == 0.3
    (tmp_path / "model").write_text("1 2 3\n4 5 6\n")
    W, b = read_weights(tmp_path / "model")
    np.testing.assert_array_equal(W, [[1, 4], [2, 5], [3, 6]])
    for text, rule in (
        ("1 2\n3\n", "every line must have 2 numbers"),
        ("1\n", "at least two lines"),
        ("1\n2", "newline"),
    ):
        (tmp_path / "model").write_text(text)
        with pytest.raises(FormatError, match=rule):
            read_weights(tmp_path / "model")
