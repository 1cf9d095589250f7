"""What examples need: a folder of their own with the data files that they name, and a shell that knows `widemargin`."""

import contextlib
import inspect
import io
import lzma
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from scipy.sparse import random_array
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.preprocessing import minmax_scale

from widemargin import RankSVM, save_model, write_blocks, write_svmlight
from widemargin.cli.main import main

_SEPARATORS = {"|", "<", ">"}


@pytest.fixture(scope="session")
def data_files(tmp_path_factory):
    """Return a folder of small data files under the names that examples have; stand-ins, made of scikit-learn's."""
    folder = tmp_path_factory.mktemp("files")
    rng = np.random.default_rng(0)

    def write(name, X, y, **options):
        write_svmlight(folder / name, X, y, **options)

    X, y = load_breast_cancer(return_X_y=True)
    X, y = minmax_scale(X[:, :13], (-1, 1)).round(4), np.where(y == 1, 1, -1)
    write("heart_scale", X[:270], y[:270])
    write("heart_scale.t", X[270:], y[270:])
    write("normal", X[:270][y[:270] == 1], np.ones(np.sum(y[:270] == 1)))
    for name in ("heart", "svmguide1", "news20.xz", "big.xz"):
        write(name, 100 * X[:270], y[:270])
    write("huge.svm.xz", X[:270], y[:270])
    write("huge.svm", X[:270], y[:270])
    for name in ("big.arrow", "part-1.arrow", "part-2.arrow"):
        write_blocks(folder / name, [(X[:270], y[:270])])
    np.save(folder / "X.npy", X[:270])
    np.save(folder / "y.npy", y[:270])
    clicks = {"clicked": [0, 1, 1], "age": [30, 40, 50], "country": ["de", "fr", "de"], "device": ["pc", "pc", "tv"]}
    parquet.write_table(pa.table(clicks), folder / "clicks.parquet")
    for name in ("heart.t", "svmguide1.t", "news20.t.xz"):
        write(name, 100 * X[270:], y[270:])
    write("covtype.xz", rng.integers(1, 9, (10_100, 3)), rng.integers(1, 3, 10_100))
    write("kernel.txt", np.column_stack([np.arange(1, 41), X[:40] @ X[:40].T]), y[:40], zero_based=True)
    write("iris", *load_iris(return_X_y=True))
    for name in ("abalone", "cadata", "housing_scale"):
        write(name, *load_diabetes(return_X_y=True))
    X = rng.standard_normal((300, 5)).round(3)
    rank = np.digitize(X @ [1.0, 2.0, 0.0, -1.0, 0.0] + rng.standard_normal(300), [-1.5, 0.0, 1.5])
    write("stars", X, 1 + rank)
    for name in ("train.dat", "mq2008"):
        write(name, X[:200], rank[:200], qid=np.repeat(np.arange(20), 10))
    write("test.dat", X[200:], rank[200:], qid=np.repeat(np.arange(10), 10))
    save_model(RankSVM(C=20).fit(X, rank), folder / "svm_rank.model", format="svmlight")
    source = "rng" if "rng" in inspect.signature(random_array).parameters else "random_state"  # before SciPy 1.15
    X = random_array((400, 2000), density=0.02, format="csr", **{source: rng})
    y = np.where(X[:, :50].sum(axis=1) > 0.5, 1, -1)
    write("texts", X[:300], y[:300])
    write("texts.t", X[300:], y[300:])
    return folder


@pytest.fixture
def folder(tmp_path, data_files, monkeypatch):
    """Work in a folder of one's own that has the data files, and draw without a display."""
    shutil.copytree(data_files, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    return tmp_path


class Outcome(NamedTuple):
    """What came of a command."""

    status: int
    output: str
    errors: str


@pytest.fixture
def shell(folder):
    """Return a function that runs a line as a shell would, `widemargin` in this process: it is imported already."""

    def run(line):
        line, *log = re.split(r" 2> *(?=\S+$)", line)
        lexer = shlex.shlex(line, posix=True, punctuation_chars="|<>")
        lexer.whitespace_split = True
        worst, data, errors, words, rest = 0, b"", "", [], [*lexer, "|"]
        while rest:
            word = rest.pop(0)
            if word not in _SEPARATORS:
                words.append(word)
                continue
            if word == "<":
                data = Path(rest.pop(0)).read_bytes()
                continue
            if words:
                status, data, said = _run(words, data)
                worst, errors, words = max(worst, status), errors + said, []
            if word == ">":
                Path(rest.pop(0)).write_bytes(data)
                data = b""
        for path in log:
            Path(path).write_text(errors)
        return Outcome(worst, data.decode(), errors)

    return run


def _run(words, data):
    """Return (exit status, bytes of standard output, standard error) of one command with data on standard input."""
    if words[0] == "xzcat":  # not on every machine
        return 0, lzma.decompress(Path(words[1]).read_bytes()), ""
    if words[0] != "widemargin":
        done = subprocess.run(words, input=data, capture_output=True, check=False)
        return 0, done.stdout, done.stderr.decode()  # of no interest: grep's is 1 if it finds nothing
    streams = {"stdin": data, "stdout": b"", "stderr": b""}
    streams = {name: io.TextIOWrapper(io.BytesIO(held), "utf-8") for name, held in streams.items()}
    with contextlib.ExitStack() as stack:
        for name, stream in streams.items():
            stack.enter_context(patch.object(sys, name, stream))
        status = main(words[1:])
        streams["stderr"].flush()
        return status, streams["stdout"].buffer.getvalue(), streams["stderr"].buffer.getvalue().decode()
