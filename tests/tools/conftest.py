"""Small data files, and the command run in a process of its own."""

import os
import subprocess
import sys

import numpy as np
import pytest

from widemargin import write_svmlight

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
    """Return a function that runs `widemargin` in this process, in tmp_path: (exit status, stdout, stderr)."""
    from widemargin.tools.cli import main

    monkeypatch.chdir(tmp_path)

    def call(*words):
        status = main([str(word) for word in words])
        return (status, *capsys.readouterr())

    return call
