"""Reading SVM-light text: ours against scikit-learn's reader, and against merely touching the bytes.

    python benchmarks/reading.py [--data DIR] [--repeats N]

The largest text files of the data directory are decompressed into a temporary directory; each is read in turn
by both readers, and summed as bytes of a memory map, which is the physical limit. Medians; the first call of
each is discarded. Results must be equal to the bit. Writing is timed too. The table: results/reading.md.
"""

import argparse
import lzma
import mmap
import os
import platform
import statistics
import tempfile
import time
from functools import partial
from pathlib import Path

import numpy as np
import sklearn
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

import widemargin
from widemargin.data.svmlight.reader import read_svmlight
from widemargin.data.svmlight.writer import write_svmlight

ROOT = Path(__file__).resolve().parents[1]
DEFAULT_DATA = Path(os.environ.get("WIDEMARGIN_DATA", ROOT.parent / "shared" / "data"))
FILES = [
    "20news.bigram.binary",
    "covtype.libsvm.binary.scale",
    "mnist",
    "odds-cover",
    "ijcnn1.t",
    "a9a",
    "MQ2008.S1",
]
WRITTEN = "ijcnn1.t"


def touch(path):
    """Sum the bytes of a memory-mapped file."""
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        return int(np.frombuffer(mapped, dtype=np.uint64, count=len(mapped) // 8).sum())


def seconds(function, *arguments):
    """Return how long a call takes."""
    start = time.perf_counter()
    function(*arguments)
    return time.perf_counter() - start


def medians(functions, repeats):
    """Time functions in turn, so that a busy machine disturbs all alike; the first turn is discarded."""
    turns = [[seconds(function) for function in functions] for _ in range(repeats + 1)][1:]
    return [statistics.median(times) for times in zip(*turns, strict=True)]


def check_equal(path):
    """Refuse to time readers that disagree."""
    X, y, qid = read_svmlight(path)
    expected, labels, *queries = load_svmlight_file(str(path), query_id=qid is not None)
    pairs = [(X.data, expected.data), (X.indices, expected.indices), (X.indptr, expected.indptr), (y, labels)]
    pairs += [(qid, queries[0])] if queries else []
    if X.shape != expected.shape or not all(np.array_equal(a, b) for a, b in pairs):
        raise SystemExit(f"{path}: the readers disagree")


def reading_row(name, path, repeats):
    """Return one line of the reading table."""
    check_equal(path)
    functions = [lambda: read_svmlight(path), lambda: load_svmlight_file(str(path)), lambda: touch(path)]
    ours, theirs, limit = medians(functions, repeats)
    size = path.stat().st_size / 1e6
    return (
        f"| {name} | {size:.1f} | {ours * 1e3:.1f} | {theirs * 1e3:.1f} | {theirs / ours:.1f} "
        f"| {size / ours:.0f} | {limit * 1e3:.1f} |"
    )


def writing_rows(path, folder, repeats):
    """Return lines for writing short and 17-digit numbers, and for reading the latter back."""
    X, y, _ = read_svmlight(path)
    long = X.copy()
    long.data *= np.pi
    target, lines = folder / "written.svm", []
    for kind, rows in (("short", X), ("17-digit", long)):
        ours = partial(write_svmlight, target, rows, y)
        theirs = partial(dump_svmlight_file, rows, y, str(target))
        ours, theirs = medians([ours, theirs], repeats)
        size = target.stat().st_size / 1e6
        lines.append(f"| write {kind} | {size:.1f} | {ours * 1e3:.0f} | {theirs * 1e3:.0f} | {theirs / ours:.1f} |")
    write_svmlight(target, long, y)
    ours, theirs = medians([lambda: read_svmlight(target), lambda: load_svmlight_file(str(target))], repeats)
    size = target.stat().st_size / 1e6
    lines.append(f"| read 17-digit | {size:.1f} | {ours * 1e3:.0f} | {theirs * 1e3:.0f} | {theirs / ours:.1f} |")
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=DEFAULT_DATA, help="directory of NAME.svm.xz files")
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    lines = [
        "# Reading and writing SVM-light text",
        "",
        f"widemargin {widemargin.__version__}, scikit-learn {sklearn.__version__}, NumPy {np.__version__}, "
        f"Python {platform.python_version()}, {os.cpu_count()} cores ({platform.machine()}); "
        f"medians of {arguments.repeats}, files in the page cache, results equal to the bit.",
        "",
        "| file | MB | ours ms | scikit-learn ms | ratio | ours MB/s | touching the bytes ms |",
        "|---|---|---|---|---|---|---|",
    ]
    with tempfile.TemporaryDirectory() as folder:
        paths = {name: Path(folder) / name for name in FILES if (arguments.data / f"{name}.svm.xz").exists()}
        for name, path in paths.items():
            path.write_bytes(lzma.decompress((arguments.data / f"{name}.svm.xz").read_bytes()))
            lines.append(reading_row(name, path, arguments.repeats))
        if WRITTEN in paths:
            lines += ["", f"Rows of {WRITTEN}, as they are and multiplied by π (17 digits):", ""]
            lines += ["| task | MB | ours ms | scikit-learn ms | ratio |", "|---|---|---|---|---|"]
            lines += writing_rows(paths[WRITTEN], Path(folder), arguments.repeats)
    report = "\n".join(lines) + "\n"
    (ROOT / "benchmarks" / "results" / "reading.md").write_text(report)
    print(report)


if __name__ == "__main__":
    main()
