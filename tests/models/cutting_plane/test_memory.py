"""Memory that cutting planes take for each row of blocks on disk: measured in a process of its own, and refused."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tests.data.blocks.written import written

from widemargin import RankSVM
from widemargin.data.blocks.memory import memory_in_use
from widemargin.data.blocks.reader import open_blocks

N_ROWS = 1_500_000
FIT = """
import json, math, sys, warnings
from pathlib import Path
import widemargin
from widemargin.data.blocks import placement
from widemargin.data.blocks.reader import open_blocks

def peak():
    return int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]) * 1024

path, name, bytes_per_row = sys.argv[1], sys.argv[2], float(sys.argv[3])
warnings.simplefilter("ignore")
blocks = open_blocks(path)
options = {"C": 1.0, "n_jobs": 2, "tol": 1e-9, "max_iter": 6}
y = (lambda part: part.labels > 1) if name in ("ROCAreaSVC", "MeasureSVC") else (lambda part: None)
kind = getattr(widemargin, name)
part = blocks[:100_000]
placement._bytes_in_memory = lambda blocks: math.inf  # rows stay on disk
kind(**options).fit(part, y(part))  # compiles
before, targets = peak(), y(blocks)
limit = before + int(bytes_per_row * len(blocks))
model = kind(**options, max_memory=limit).fit(blocks, targets)
print(json.dumps({"limit": limit, "peak": peak(), "before": before, "planes": int(model.n_iter_)}))
"""


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Rows of four columns, which take less than the vectors of a fit: in queries of 100 rows, and without queries."""
    folder, rng = tmp_path_factory.mktemp("thin"), np.random.default_rng(0)
    X = rng.standard_normal((N_ROWS, 4), dtype=np.float32)
    y = np.digitize(X.sum(axis=1) + rng.standard_normal(N_ROWS), [0.5, 1.5, 2.5]).astype(np.int8)
    belongings = (np.arange(N_ROWS) // 100,)
    written(folder, X, y, name="queries", block_bytes=1 << 17, belongings=belongings)
    written(folder, X, y, name="rows", block_bytes=1 << 17)
    return folder


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads VmHWM of Linux")
@pytest.mark.parametrize(
    ("model", "file", "bytes_per_row"),
    [
        ("RankSVM", "queries", 100),
        ("RankSVM", "rows", 150),
        ("OrdinalSVC", "rows", 158),
        ("ROCAreaSVC", "rows", 158),
        ("MeasureSVC", "rows", 175),
    ],
)
def test_a_fit_takes_no_more_bytes_per_row_than_it_counts(model, file, bytes_per_row, files):
    root = str(Path(__file__).parents[3])
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([root, os.environ.get("PYTHONPATH", "")])}
    environment["MALLOC_MMAP_THRESHOLD_"] = "131072"  # freed vectors go back to the system, as those of many rows do
    command = [sys.executable, "-c", FIT, str(files / file), model, str(bytes_per_row)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["planes"] > 2
    assert found["before"] < found["peak"] <= found["limit"], found


def test_a_fit_without_room_for_its_vectors_is_refused_with_numbers(files):
    blocks = open_blocks(files / "queries")
    words = r"The fit needs about 0\.12 GB for vectors with a number for each of 1500000 rows, .* Raise max_memory"
    with pytest.raises(MemoryError, match=words):
        RankSVM(max_memory=memory_in_use() + 60 * N_ROWS).fit(blocks)


def test_queries_of_a_file_are_not_kept_for_each_row(files, monkeypatch):
    blocks = open_blocks(files / "queries")[:3000]
    wanted = RankSVM().fit(blocks.to_memory(), blocks.labels, qid=blocks.qid)
    monkeypatch.setattr(type(blocks), "qid", property(lambda self: pytest.fail("the queries of all rows were read")))
    np.testing.assert_array_equal(RankSVM().fit(blocks).coef_, wanted.coef_)
