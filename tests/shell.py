"""Small data files, the command run in a process of its own, and LIBSVM to compare with."""

import io
import os
import subprocess
import sys
from ctypes import c_double

import numpy as np
import pytest
from libsvm import svm, svmutil
from scipy.sparse import csr_matrix

from widemargin import read_svmlight, write_svmlight

COMMAND = [sys.executable, "-m", "widemargin"]


@pytest.fixture
def two(tmp_path, rng):
    """A file of two overlapping classes, −1 and 1: 60 rows, 4 features."""
    X = rng.standard_normal((60, 4))
    y = np.where(X @ [1.0, -2.0, 0.5, 0.0] + 0.5 * rng.standard_normal(60) > 0, 1, -1)
    write_svmlight(tmp_path / "two", X, y)
    return tmp_path / "two"


@pytest.fixture
def three(tmp_path, rng):
    """A file of three classes, 0, 1 and 2: 60 rows, 4 features."""
    X = rng.standard_normal((60, 4))
    write_svmlight(tmp_path / "three", X, np.digitize(X @ [1.0, -2.0, 0.5, 0.0], [-1.0, 1.0]))
    return tmp_path / "three"


@pytest.fixture
def slope(tmp_path, rng):
    """A file for regression: 60 rows, 4 features, little noise."""
    X = rng.standard_normal((60, 4))
    write_svmlight(tmp_path / "slope", X, X @ [1.0, -2.0, 0.5, 0.0] + 0.1 * rng.standard_normal(60))
    return tmp_path / "slope"


@pytest.fixture
def files(two, three, slope):
    """The small data files by name."""
    return {"two": two, "three": three, "slope": slope}


class Libsvm:
    """LIBSVM's own programs, as far as its Python package has them."""

    @staticmethod
    def train(path, letters, model_path):
        """Train, and write the model to a file."""
        X, y, _ = read_svmlight(path)
        svmutil.svm_save_model(str(model_path), svmutil.svm_train(y, csr_matrix(X), f"-q {letters}"))

    @staticmethod
    def train_lines(path, letters):
        """Return the lines that training prints, which it does beneath Python's standard output."""
        training = "svmutil.svm_train(*svmutil.svm_read_problem(sys.argv[1]), sys.argv[2])"
        script = f"import sys; from libsvm import svmutil; {training}"
        done = subprocess.run([sys.executable, "-c", script, path, letters], capture_output=True, text=True, check=True)
        return [line for line in done.stdout.splitlines() if " = " in line]

    @staticmethod
    def predict(path, model_path, probability=False):
        """Return predictions, decision values or probabilities, and the labels that these belong to.

        Its own svm_predict makes room for one decision value of a nu-SVC, whatever the number of classes.
        """
        X, _, _ = read_svmlight(path)
        model = svmutil.svm_load_model(str(model_path))
        n_classes = model.get_nr_class()
        values = (c_double * (n_classes if probability else n_classes * (n_classes - 1) // 2))()
        predict = svm.libsvm.svm_predict_probability if probability else svm.libsvm.svm_predict_values
        rows = [svm.gen_svm_nodearray((row.indices, row.data))[0] for row in X]
        predicted = [(predict(model, row, values), *values) for row in rows]
        return np.array(predicted)[:, 0], np.array(predicted)[:, 1:], model.get_labels()


@pytest.fixture
def libsvm():
    """LIBSVM itself, to compare with."""
    return Libsvm


@pytest.fixture
def endless(tmp_path, rng):
    """A file whose problem, with -c 1e9 and -e 1e-12, takes far longer than any test: 3000 rows, 60 features."""
    X = rng.standard_normal((3000, 60))
    write_svmlight(tmp_path / "endless", X, np.where(rng.random(3000) < 0.5, 1, -1))
    return tmp_path / "endless"


@pytest.fixture
def run(tmp_path):
    """Return a function that runs `widemargin` in a process, in tmp_path, and returns what came of it."""

    def run(*words, **options):
        settings = {"capture_output": True, "cwd": tmp_path, "timeout": 120, "env": os.environ, **options}
        return subprocess.run([*COMMAND, *map(str, words)], text="input" not in options, **settings)

    return run


@pytest.fixture
def call(tmp_path, monkeypatch, capsys):
    """Return a function that runs `widemargin` in this process, in tmp_path: (exit status, stdout, stderr).

    `stdin` are the bytes on its standard input.
    """
    from widemargin.cli.main import main

    monkeypatch.chdir(tmp_path)

    def call(*words, stdin=None):
        if stdin is not None:
            monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        status = main([str(word) for word in words])
        return (status, *capsys.readouterr())

    return call
