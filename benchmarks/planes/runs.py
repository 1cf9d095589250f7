"""What the benchmarks of cutting planes measure with: timed fits, the svmocas program, stopwatches around methods."""

import lzma
import re
import shutil
import subprocess
import time
from contextlib import contextmanager
from functools import cache
from typing import NamedTuple

import numpy as np

from benchmarks.datasets import FOLDER, binary
from benchmarks.linear.liblinear import hinge_objective
from benchmarks.machinery.figures import take_turns
from widemargin import LinearSVC
from widemargin.data.matrix import Matrix
from widemargin.problems.row_risk import RowRisk
from widemargin.solvers.cutting_planes.plane_store import DensePlanes, RowPlanes, SparsePlanes
from widemargin.solvers.cutting_planes.reduced_qp import ReducedProblem

GAP = 1e-3
COVERTYPE = "covtype.libsvm.binary.scale"
SHORT = {COVERTYPE: "covertype", "20news.bigram.binary": "20news", "rcv1-vw-1000": "rcv1"}
SHORT |= {"lasvm-reuters-money-fx": "reuters money-fx", "svmlight-example1": "reuters acq"}
_PARTS = {  # of a turn, and the methods that do them
    "scores": [(Matrix, "scores")],
    "combine": [(Matrix, "combine")],
    "line search": [(RowRisk, "step")],
    "subgradient": [(RowRisk, "subgradient")],
    "reduced problem": [(ReducedProblem, "solve")],
    "planes": [
        (store, verb) for store in (DensePlanes, SparsePlanes, RowPlanes) for verb in ("add", "combine", "keep")
    ],
}


@cache
def part(name):
    """Return X and signs of a set, or of a random part of it, NAME:ROWS; parts of a set are nested."""
    source, _, n_rows = name.partition(":")
    X, sign = binary(source)
    if not n_rows:
        return X, sign
    chosen = np.random.default_rng(0).permutation(len(sign))[: int(n_rows)]
    return X[chosen], sign[chosen]


def title(name):
    """Return what a set is called in pictures."""
    source, _, n_rows = name.partition(":")
    return SHORT.get(source, source) + (f", {int(n_rows):,} rows" if n_rows else "")


def hinge(solver, C, **options):
    """Return our classifier without intercept, to the usual gap unless `options` say otherwise."""
    settings = {"tol": GAP, "max_iter": None, "n_jobs": 1, "random_state": 0} | options
    return LinearSVC(loss="hinge", C=C, fit_intercept=False, solver=solver, **settings)


def timed_fit(model, X, y):
    """Fit; return the seconds it took."""
    begun = time.perf_counter()
    model.fit(X, y)
    return time.perf_counter() - begun


def compile_all(name):
    """Fit once with each solver, so that compiling is apart from what is timed."""
    X, sign = part(name)
    for solver in ("ocas", "svmperf"):
        for n_jobs in (1, 2):
            hinge(solver, 1.0, max_iter=12, tol=0.0, n_jobs=n_jobs).fit(X, sign)


class Run(NamedTuple):
    """What is told of a fit: median seconds (infinite at the limit), turns, passes, and w's objective by NumPy.

    `dual` is the lower bound that the solver proved, `solver` the one that ran; both are ours only.
    """

    seconds: float
    n_iter: int
    passes: float
    objective: float
    gap: float
    dual: float = -np.inf
    solver: str = ""


def repeated(runners, repeats, often=2):
    """Call the runners (label: function that returns a Run), taking turns; return a Run of median seconds for each."""
    return {
        label: run._replace(seconds=seconds) for label, (run, seconds) in take_turns(runners, repeats, often).items()
    }


def ours(name, solver, C, limit, **options):
    """Return a runner of one of our solvers."""
    X, sign = part(name)

    def run():
        model = hinge(solver, C, max_seconds=limit, **options)
        seconds = timed_fit(model, X, sign)
        objective = hinge_objective(X, sign, C, model.coef_.ravel())
        assert abs(objective - model.objective_) <= 1e-9 * objective, "the solver misreports its objective"
        reached, history = model.status_ != "max_seconds reached", model.history_
        counts = model.n_iter_, history["passes"][-1]
        proof = model.gap_, history["dual"].max()
        return Run(seconds if reached else np.inf, *counts, objective, *proof, model.solver_.partition(" (")[0])

    return run


# --- The OCAS program -----------------------------------------------------------------------------------------------


def program():
    """Return the path of svmocas, None if it is not installed (Debian: libocas-tools)."""
    return shutil.which("svmocas")


def write_text(name, path):
    """Write a shared set as text with labels ±1, all else to the letter."""
    _, sign = binary(name)
    with lzma.open(FOLDER / f"{name}.svm.xz") as source, path.open("wb") as target:
        rows = (line.split(b"#")[0].strip() for line in source)
        for label, row in zip(sign, filter(None, rows), strict=True):
            target.write((b"+1 " if label > 0 else b"-1 ") + row.partition(b" ")[2] + b"\n")


def svmocas(name, C, limit, n_threads, text):
    """Return a runner of the program on a text that `write_text` wrote; its seconds are its ocas_time."""
    X, sign = binary(name)
    model = text.with_suffix(".model")
    command = [program(), "-p", str(n_threads), "-r", f"{GAP:g}", "-b", "0", "-c", f"{C:g}", "-t", f"{limit:g}"]

    def run():
        printed = subprocess.run([*command, text, model], capture_output=True, text=True, check=True).stdout
        times = dict(re.findall(r"(\w+_time)\s*:\s*([\d.e+-]+)\[s\]", printed))
        turn, gap = re.findall(r"^\s*(\d+): tim=.*1-Q_D/Q_P=([\d.e+-]+)", printed, re.MULTILINE)[-1]
        w = np.loadtxt(model)[: X.shape[1]]
        objective = hinge_objective(X, sign, C, w)
        seconds = float(times["ocas_time"]) if float(gap) <= GAP else np.inf
        return Run(seconds, int(turn), np.nan, objective, float(gap))

    return run


# --- Stopwatches ----------------------------------------------------------------------------------------------------


@contextmanager
def stopwatches():
    """Within the block, time the parts of a turn; the dictionary yielded has their seconds and numbers of calls."""
    seconds, before, inside = {label: [0.0, 0] for label in _PARTS}, [], []
    for label, methods in _PARTS.items():
        for owner, name in ((owner, name) for owner, name in methods if name in vars(owner)):
            before.append((owner, name, getattr(owner, name)))
            setattr(owner, name, _watched(getattr(owner, name), seconds[label], inside))
    try:
        yield seconds
    finally:
        for owner, name, method in before:
            setattr(owner, name, method)


def _watched(method, total, inside):
    def watched(*arguments, **options):
        if inside:  # a part within a part is the outer one's
            return method(*arguments, **options)
        inside.append(True)
        begun = time.perf_counter()
        try:
            return method(*arguments, **options)
        finally:
            total[0] += time.perf_counter() - begun
            total[1] += 1
            inside.pop()

    return watched
