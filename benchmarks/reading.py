"""Reading SVM-light text: ours against scikit-learn's reader, and against merely touching the bytes.

Files are decompressed into a temporary directory; each is read in turn by both readers, and summed as bytes of a memory
map, which is the physical limit. Results must be equal to the bit. Writing is timed too.
"""

import lzma
import mmap
import tempfile
from functools import partial
from pathlib import Path

import numpy as np
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from benchmarks.datasets import FOLDER
from benchmarks.machinery.figures import ratio, shown, take_turns, timed
from benchmarks.machinery.page import Frame, Table
from widemargin.data.svmlight.reader import read_svmlight
from widemargin.data.svmlight.writer import write_svmlight

FILES = [
    "20news.bigram.binary", "covtype.libsvm.binary.scale", "mnist", "odds-cover", "ijcnn1.t", "a9a", "MQ2008.S1",
]  # fmt: skip
WRITTEN = "ijcnn1.t"
_INTRODUCTION = """# Reading and writing SVM-light text

Made by `python -m benchmarks run reading`. Files are in the page cache; results are equal to the bit. The ratio is
scikit-learn's time over ours."""
_SECTIONS = {
    "reading": (
        "Reading",
        "Milliseconds. *Touching the bytes*: the sum of the bytes of the file, mapped into memory, which is the limit.",
    ),
    "writing": ("Writing", f"Milliseconds. Rows of {WRITTEN}, as they are and multiplied by π (17 digits)."),
}


def touch(path):
    """Sum the bytes of a memory-mapped file."""
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        return int(np.frombuffer(mapped, dtype=np.uint64, count=len(mapped) // 8).sum())


def check_equal(path):
    """Refuse to time readers that disagree."""
    X, y, qid = read_svmlight(path)
    expected, labels, *queries = load_svmlight_file(str(path), query_id=qid is not None)
    pairs = [(X.data, expected.data), (X.indices, expected.indices), (X.indptr, expected.indptr), (y, labels)]
    pairs += [(qid, queries[0])] if queries else []
    if X.shape != expected.shape or not all(np.array_equal(a, b) for a, b in pairs):
        raise RuntimeError(f"{path}: the readers disagree")


def _decompressed(name, folder):
    path = Path(folder) / name
    path.write_bytes(lzma.decompress((FOLDER / f"{name}.svm.xz").read_bytes()))
    return path


def _milliseconds(functions, repeats):
    """Return the figures of some functions that take turns, after a call of ours that may compile."""
    functions["ours"]()
    found = take_turns({label: timed(function) for label, function in functions.items()}, repeats)
    return {label: seconds.times_factor(1e3) for label, (_, seconds) in found.items()}


def reading_table(page, names, options):
    """Read each file by both readers."""
    columns = ["file", "MB", "ours", "scikit-learn", "scikit-learn / ours", "ours, MB/s", "touching the bytes"]
    for name in page.each("reading", names):
        with tempfile.TemporaryDirectory() as folder:
            path = _decompressed(name, folder)
            check_equal(path)
            functions = {"ours": partial(read_svmlight, path), "theirs": partial(load_svmlight_file, str(path))}
            found = _milliseconds(functions | {"bytes": partial(touch, path)}, options.repeats)
            size = path.stat().st_size / 1e6
        cells = [name, f"{size:.1f}", shown(found["ours"]), shown(found["theirs"])]
        cells += [ratio(found["theirs"], found["ours"]), f"{1e3 * size / found['ours']:.0f}", shown(found["bytes"])]
        page.put("reading", columns, cells, n_key=1)


def writing_table(page, names, options):
    """Write short and 17-digit numbers, and read the latter back."""
    columns = ["task", "MB", "ours", "scikit-learn", "scikit-learn / ours"]
    for name in page.each("writing", names):
        with tempfile.TemporaryDirectory() as folder:
            X, y, _ = read_svmlight(_decompressed(name, folder))
            long = X.copy()
            long.data *= np.pi
            target = Path(folder) / "written.svm"
            tasks = {
                f"write {kind}": {
                    "theirs": partial(dump_svmlight_file, rows, y, str(target)),
                    "ours": partial(write_svmlight, target, rows, y),
                }
                for kind, rows in (("short", X), ("17-digit", long))
            }
            tasks["read 17-digit"] = {
                "ours": partial(read_svmlight, target), "theirs": partial(load_svmlight_file, str(target)),
            }  # fmt: skip
            for task, functions in tasks.items():
                found = _milliseconds(functions, options.repeats)
                size = f"{target.stat().st_size / 1e6:.1f}"
                cells = [task, size, shown(found["ours"]), shown(found["theirs"])]
                page.put("writing", columns, [*cells, ratio(found["theirs"], found["ours"])], n_key=1)


PAGE = Frame(
    _INTRODUCTION,
    _SECTIONS,
    {
        "reading": Table(reading_table, FILES, ["ijcnn1.t", "MQ2008.S1"], 3),
        "writing": Table(writing_table, [WRITTEN], ["a9a"], 1),
    },
    options={"repeats": 5},
    quick_options={"repeats": 2},
)
