"""One machine of the demonstration, in a process of its own: it can be ended at a time limit, and its memory is known.

    python -c "...; serve()" CASE SIDE SIZE FOLDER

makes the rows, fits, and prints what it has measured as a line of JSON.
"""

import json
import os
import subprocess
import sys
import time
import warnings
from pathlib import Path

from widemargin.workflows.demo.cases import CASES, score

OURS, THEIRS = "ours", "theirs"
_SECONDS_BESIDE_FIT = 60.0  # for imports, making rows and the score; only a machine in trouble needs so much
_READY = "rows are made"
_FOLDER_OF_PACKAGE = str(Path(__file__).parents[3])
_CODE = (
    f"import sys; sys.path.insert(0, {_FOLDER_OF_PACKAGE!r}); "
    "from widemargin.workflows.demo.contender import serve; serve(*sys.argv[1:])"
)
_MAX_POINTS = 60  # of a history that are kept


def measure(case, side, size, folder, limit):
    """Return what one side measured, a dict; None if its fit was ended after `limit` seconds.

    Raises
    ------
    RuntimeError
        If the process failed, with the last line that it wrote.
    """
    command = [sys.executable, "-c", _CODE, case, side, repr(size), str(folder)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        if process.stdout.readline().strip() != _READY:
            raise _failed(process)
        try:
            out, _ = process.communicate(timeout=limit + (_SECONDS_BESIDE_FIT if side == OURS else 0.0))
        except subprocess.TimeoutExpired:
            return None
        if process.returncode != 0:
            raise _failed(process)
        found = json.loads(out.splitlines()[-1])
        return found if found["seconds"] <= limit or side == OURS else None
    finally:
        process.kill()
        process.communicate()


def _failed(process):
    _, errors = process.communicate()
    words = (errors.strip().splitlines() or ["nothing was said"])[-1]
    return RuntimeError(f"a process of the demonstration ended with status {process.returncode}: {words}")


def serve(name, side, size, folder):
    """Make the rows of a case, say so, fit one side, and print what was measured."""
    warnings.simplefilter("ignore")
    case = CASES[name]
    n_rows = max(1, int(case.n_rows * float(size)))
    rows = case.make_rows(n_rows, case.n_features, Path(folder))
    fit = case.ours if side == OURS else case.theirs
    _import_of(side)
    _say(_READY)
    start = time.perf_counter()
    model = fit(rows)
    found = {"seconds": time.perf_counter() - start, "score": score(model, rows), "peak_bytes": _peak_bytes()}
    if side == OURS:
        found |= {"gap": max(float(model.gap_), 0.0), "solver": model.solver_.partition(" (")[0]}
        found |= {"status": model.status_, "history": _history(model)}
    _say(json.dumps(found))


def _say(line):
    """Write a line to the process that waits for it."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _import_of(side):
    """Import what the fit imports at its first call, so that only the fit is timed."""
    if side == OURS:
        import widemargin.models.kernel.svc
        import widemargin.models.linear  # noqa: F401
    else:
        import sklearn.kernel_approximation
        import sklearn.svm  # noqa: F401


def _history(model):
    """Return seconds and gaps of the fit, some of them if there are many."""
    history = model.history_[0] if isinstance(model.history_, list) else model.history_
    every = -(-len(history) // _MAX_POINTS)
    chosen = history[sorted({*range(0, len(history), every), len(history) - 1})]
    return [[float(seconds), float(gap)] for seconds, gap in zip(chosen["seconds"], chosen["gap"], strict=True)]


def _peak_bytes():
    """Return the largest memory that the process has had; None where the system does not tell."""
    try:
        import resource
    except ImportError:  # Windows
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak


def environment():
    """Return the machine and the versions that were measured, in words."""
    import platform
    from importlib.metadata import version

    packages = ("widemargin", "scikit-learn", "numpy", "numba")
    versions = ", ".join(f"{package} {version(package)}" for package in packages)
    return f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}, {versions}"
