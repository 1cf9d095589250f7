"""Spark MLlib and dask-ml on the rows of covertype; each in an environment of its own.

All objectives are computed here, as ½|w|² + C Σ max(0, 1 − y <w, x>). Divided by C n, that is Spark's and SGD's
mean loss + penalty / 2 |w|² with penalty = 1 / (C n).
"""

import json
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import widemargin
from benchmarks.cluster.data import covertype, covertype_files, covertype_on, hinge_objective
from benchmarks.cluster.fits import REPEATS, fitted, hinge, local_cluster
from benchmarks.machinery.figures import Seconds, shown
from benchmarks.machinery.state import ROOT
from widemargin.dask import LinearSVC

COSTS = (1e-2, 1.0)
WITHIN = 1e-3  # of the certified optimum
ITERATIONS = (10, 20, 30, 50, 100, 200, 300)
SECONDS_OF_DASK_ML = 15.0
_SECONDS_TO_WAIT = 240
COLUMNS = ["C", "who", "iterations or passes", "seconds", "objective / optimum − 1", "within 1e-3 after",
           "ratio to ours on the cluster"]  # fmt: skip


def peers_table(page, costs, options):
    """Measure ours on two workers and in one process, Spark on two threads, and dask-ml on two workers."""
    for C in page.each("peers", costs):
        X, y = covertype(options.folder)
        optimum = _optimum(X, y, C)
        ours = _ours(page, options, C, optimum)
        for name, measure in (("Spark LinearSVC", _spark), ("dask-ml Incremental(SGD)", _dask_ml)):
            try:
                theirs = measure(options, X, y, C, optimum)
            except (subprocess.SubprocessError, OSError, RuntimeError) as error:
                page.put("peers", COLUMNS, [f"{C:g}", name, "–", "–", "–", f"skipped: {_last_line(error)}", "–"])
                continue
            _put_peer(page, C, name, theirs, (X, y, optimum, ours))


def _optimum(X, y, C):
    """Return a certified lower bound of the objective, within 1e-7 of it."""
    model, _ = fitted(widemargin.LinearSVC(n_jobs=2, **hinge(C, 1e-7)), X, y)
    return hinge_objective([(X, y)], model.coef_.ravel(), C) * (1.0 - model.gap_)


def _ours(page, options, C, optimum):
    """Return the seconds of our fits to a certified gap of 1e-3, on the cluster and in memory: medians of turns."""
    X, y = covertype(options.folder)
    with local_cluster(2) as client:
        blocks = covertype_on(client, options.folder)
        turns = [(fitted(LinearSVC(client=client, **hinge(C, WITHIN)), blocks),
                  fitted(widemargin.LinearSVC(n_jobs=2, **hinge(C, WITHIN)), X, y))
                 for _ in range(1 + REPEATS)][1:]  # fmt: skip
    cluster, memory = (Seconds([turn[k][1] for turn in turns]) for k in (0, 1))
    for k, name, seconds in ((0, "widemargin, 2 workers", cluster), (1, "widemargin, in memory", memory)):
        model = turns[-1][k][0]
        above = hinge_objective([(X, y)], model.coef_.ravel(), C) / optimum - 1.0
        page.put("peers", COLUMNS, [f"{C:g}", name, model.n_iter_, shown(seconds), f"{above:.1e}",
                                    f"{seconds:.2f} s, certified", f"{seconds / cluster:.2f}"])  # fmt: skip
    return {"cluster": cluster, "memory": memory}


def _put_peer(page, C, name, theirs, ours):
    """Put the row of a peer: its last objective, and when it was within 1e-3."""
    X, y, optimum, seconds = ours
    curve = [(n, s, hinge_objective([(X, y)], np.array(w), C) / optimum - 1.0) for n, s, w in theirs["curve"]]
    n, last, above = curve[-1]
    within = [s for _, s, value in curve if value <= WITHIN]
    reached = f"{within[0]:.1f} s" if within else "not reached"
    ratio = f"{'' if within else '> '}{(within[0] if within else last) / seconds['cluster']:.0f}"
    who = f"{name} ({theirs['versions']})"
    page.put("peers", COLUMNS, [f"{C:g}", who, n, f"{last:.1f}", f"{above:.1e}", reached, ratio])


def _spark(options, X, y, C, optimum):
    """Return what Spark reports: weights after several numbers of iterations."""
    path = options.folder / "covertype.parquet"
    if not path.exists():
        flat = pa.array(X.astype(np.float64).ravel())
        features = pa.ListArray.from_arrays(np.arange(0, X.size + 1, X.shape[1], dtype=np.int32), flat)
        pq.write_table(pa.table({"features": features, "label": (y > 0).astype(np.float64)}), path)
    n = max(1, round(len(ITERATIONS) * min(1.0, options.scale)))
    rows, signs = covertype_files(options.folder)
    task = {"path": str(path), "rows": rows, "signs": signs, "penalty": 1.0 / (C * len(y)), "threads": 2,
            "iterations": ITERATIONS[:n], "target": (1.0 + WITHIN) * optimum / (C * len(y))}  # fmt: skip
    return _answer(_environment(options, "spark", ["pyspark", "numpy"]), "benchmarks.cluster.spark", task)


def _dask_ml(options, X, y, C, optimum):
    """Return what dask-ml reports: weights after each pass."""
    rows, signs = covertype_files(options.folder)
    task = {"rows": rows, "signs": signs, "blocks": 8, "penalty": 1.0 / (C * len(y)),
            "seconds": SECONDS_OF_DASK_ML * min(1.0, options.scale)}  # fmt: skip
    return _answer(_environment(options, "dask-ml", ["dask-ml"]), "benchmarks.cluster.dask_ml", task)


def _environment(options, name, packages):
    """Return the Python of an environment with packages from the index, which is made if it is not there."""
    folder = options.folder / f"venv-{name}"
    python, done = folder / "bin/python", folder / "complete"
    if not done.exists():
        _run([sys.executable, "-m", "venv", "--clear", str(folder)])
        _run([str(python), "-m", "pip", "install", "--quiet", *packages])
        done.touch()
    return str(python)


def _answer(python, module, task):
    """Run a module with a task as JSON; return the JSON of its last line."""
    found = _run([python, "-m", module], input=json.dumps(task))
    return json.loads(found.stdout.splitlines()[-1])


def _run(command, **options):
    found = subprocess.run(
        command, cwd=ROOT, text=True, capture_output=True, timeout=_SECONDS_TO_WAIT, check=False, **options
    )
    if found.returncode != 0:
        raise RuntimeError(found.stderr.strip() or f"exit code {found.returncode}")
    return found


def _last_line(error):
    return str(error).strip().splitlines()[-1][:200].replace("|", "/")
