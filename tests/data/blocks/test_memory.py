"""Amounts of memory, and a limit that holds: measured in a process of its own."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tests.data.blocks.written import rows_of_kind, written

from widemargin.data.blocks.memory import bytes_of, free_bytes, memory_in_use
from widemargin.data.blocks.placement import VECTORS_OF_ROW_LOSSES, matrix_of_blocks
from widemargin.data.blocks.streamed import StreamedMatrix
from widemargin.data.matrix import Matrix


@pytest.mark.parametrize(
    ("amount", "expected"),
    [("3GB", 3e9), ("3G", 3e9), ("1.5 gb", 1.5e9), (" 80 MB ", 8e7), ("9k", 9e3), ("7", 7), (12.9, 12), (".5T", 5e11)],
)
def test_amounts_are_bytes(amount, expected):
    assert bytes_of(amount) == expected


@pytest.mark.parametrize("amount", ["", "GB", "-1GB", "3 XB", "1e9", 0, -5, True, np.nan, np.inf, "0"])
def test_what_is_no_amount_is_refused(amount):
    with pytest.raises(ValueError, match=r"max_memory must be a number of bytes, or a text such as"):
        bytes_of(amount)


def test_by_default_half_of_what_is_free():
    assert 0 < bytes_of(None) <= free_bytes()
    assert 10**7 < memory_in_use() < 10**12


def test_vectors_that_do_not_fit_are_refused_with_numbers(tmp_path):
    blocks = written(tmp_path, rows_of_kind("dense float32", 5000), block_bytes=1 << 14)
    words = r"0\.\d\d GB for vectors with a number for each of 5000 rows, .* already; max_memory is 0\.00 GB\. Raise"
    with pytest.raises(MemoryError, match=words):
        matrix_of_blocks(blocks, max_memory="1MB")
    vectors = 8 * 20 * 5000
    with pytest.raises(MemoryError, match="Raise max_memory, or take a part of the rows"):
        matrix_of_blocks(blocks, max_memory=memory_in_use() + vectors // 2)


def test_what_fits_is_a_matrix_in_memory_and_the_rest_is_streamed(tmp_path):
    blocks = written(tmp_path, rows_of_kind("float64", 3000), block_bytes=1 << 12)
    assert isinstance(matrix_of_blocks(blocks), Matrix)
    tight = memory_in_use() + 8 * VECTORS_OF_ROW_LOSSES * 3000 + 60_000
    streamed = matrix_of_blocks(blocks, max_memory=tight)
    assert isinstance(streamed, StreamedMatrix)
    w = np.arange(5.0)
    np.testing.assert_allclose(streamed.scores(w), matrix_of_blocks(blocks).scores(w))


FIT = """
import json, sys, warnings
from pathlib import Path
import numpy as np
from widemargin import LinearSVC
from widemargin.data.blocks.reader import open_blocks

def peak():
    return int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]) * 1024

path, solver, n_warm = sys.argv[1], sys.argv[2], int(sys.argv[3])
warnings.simplefilter("ignore")
blocks = open_blocks(path)
options = {"solver": solver, "loss": "hinge", "C": 1e-3, "tol": 0.05, "n_jobs": 2, "max_iter": 15}
LinearSVC(**options, max_memory="100GB").fit(blocks[:n_warm])  # compiles
from widemargin.data.blocks.memory import memory_in_use
before = peak()
limit = before + 45_000_000
model = LinearSVC(**options, max_memory=limit).fit(blocks)
print(json.dumps({"limit": limit, "peak": peak(), "bytes": blocks.n_bytes, "gap": model.gap_, "before": before}))
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads VmHWM of Linux")
@pytest.mark.parametrize("solver", ["newton", "sbm"])
def test_a_fit_stays_within_its_limit_of_memory(solver, tmp_path_factory):
    folder = tmp_path_factory.getbasetemp()
    path = folder / "large.arrow"
    if not path.exists():
        rng = np.random.default_rng(0)
        X = rng.standard_normal((70_000, 500), dtype=np.float32)
        y = np.where(X[:, :5].sum(axis=1) > rng.standard_normal(70_000), 1, -1)
        written(folder, X, y, name="large.arrow", block_bytes=1 << 20)
    root = str(Path(__file__).parents[3])
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([root, os.environ.get("PYTHONPATH", "")])}
    command = [sys.executable, "-c", FIT, str(path), solver, "5000"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["bytes"] >= 3 * 45_000_000  # of rows, against what they may take
    assert found["peak"] <= found["limit"], found
    assert found["gap"] < 0.5
