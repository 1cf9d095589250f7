"""Several classes at once, Crammer and Singer's problem: ours by cutting planes and by sweeps, and msvmocas.

msvmocas needs labels 1 to the number of classes, so that labels are numbered in the text that is written for it.
"""

import lzma
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.datasets import FOLDER, load
from benchmarks.machinery.figures import ratio, shown
from benchmarks.machinery.page import Table
from benchmarks.planes.runs import Run, repeated, timed_fit
from widemargin import LinearSVC

_GAP = 0.01  # relative, the default of msvmocas
STEPS = [0.01, 1.0, 100.0]  # C times the mean |x|²: so C suits sets of any scale
SETS = ["dna.scale", "satimage.scale", "pendigits", "letter.scale", "usps", "mnist"]  # from small to large
_STEPS_OF_LARGE = {"mnist": [1.0]}  # msvmocas reads its text for longer than it trains, and each time again
_OWN = ["ocas", "dcd", "auto"]


def numbered(name):
    """Return X and labels 0, 1, ... of a set."""
    X, y = load(name)
    return X, np.unique(y, return_inverse=True)[1]


def objective(X, label, C, W):
    """Return ½|W|² + C Σ max_m ([m ≠ label] + s_m − s_label) for the scores s of weights W (n_features, n_classes)."""
    scores, every = X @ W, np.arange(len(label))
    own = scores[every, label]
    scores += 1.0
    scores[every, label] -= 1.0
    return 0.5 * (W**2).sum() + C * (scores.max(axis=1) - own).sum()


def _model(solver, C, **options):
    """Return our classifier of all classes at once, without intercept."""
    common = {"multi_class": "crammer_singer", "fit_intercept": False, "n_jobs": 1, "random_state": 0}
    return LinearSVC(solver=solver, C=C, **common, **options)


def _ours(name, solver, C, limit):
    X, label = numbered(name)

    def run():
        model = _model(solver, C, tol=_GAP, max_iter=None, max_seconds=limit)
        seconds = timed_fit(model, X, label)
        found = objective(X, label, C, model.coef_.T)
        assert abs(found - model.objective_) <= 1e-9 * found, "the solver misreports its objective"
        reached = model.status_ != "max_seconds reached"
        passes = model.history_["passes"][-1]
        name_of_solver = model.solver_.partition(" (")[0]
        return Run(seconds if reached else np.inf, model.n_iter_, passes, found, model.gap_, solver=name_of_solver)

    return run


def _write_text(name, path):
    """Write a shared set as text with labels from 1 on, all else to the letter."""
    _, label = numbered(name)
    with lzma.open(FOLDER / f"{name}.svm.xz") as source, path.open("wb") as target:
        rows = filter(None, (line.split(b"#")[0].strip() for line in source))
        for one, row in zip(label, rows, strict=True):
            target.write(b"%d " % (one + 1) + row.partition(b" ")[2] + b"\n")


def _theirs(name, C, limit, text):
    X, label = numbered(name)
    model = text.with_suffix(".model")
    command = [shutil.which("msvmocas"), "-r", f"{_GAP:g}", "-c", f"{C:.12g}", "-t", f"{limit:g}", text, model]

    def run():
        printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        seconds = float(re.search(r"ocas_time\s*:\s*([\d.e+-]+)\[s\]", printed)[1])
        turn, gap = re.findall(r"^\s*(\d+): tim=.*1-Q_D/Q_P=([\d.e+-]+)", printed, re.MULTILINE)[-1]
        W = np.zeros((X.shape[1], label.max() + 1))
        W[:] = np.loadtxt(model)
        found = objective(X, label, C, W)
        return Run(seconds if float(gap) <= _GAP else np.inf, int(turn), np.nan, found, float(gap))

    return run


def classes_table(page, names, options):
    """Seconds to a relative gap of 0.01: msvmocas and ours, one thread."""
    columns = ["set", "C times mean square", "msvmocas", "ours, ocas", "ours, dcd", "ours, auto", "what auto ran"]
    columns += ["msvmocas / ocas", "msvmocas / auto", "dcd / ocas", "turns, theirs", "turns, ours"]
    columns += ["objective, theirs", "ocas", "dcd", "auto"]
    if shutil.which("msvmocas") is None:
        print("msvmocas is not installed (Debian: libocas-tools)")
        return
    for name in page.each("classes", names):
        X, _ = numbered(name)
        mean_square = X.multiply(X).sum() / X.shape[0]
        for solver in _OWN:
            _model(solver, 1.0 / mean_square, tol=0.0, max_iter=12).fit(*numbered(name))  # compiles
        with tempfile.TemporaryDirectory() as folder:
            text = Path(folder) / "rows.txt"
            _write_text(name, text)
            for steps in _STEPS_OF_LARGE.get(name, STEPS):
                C = steps / mean_square
                runners = {"theirs": _theirs(name, C, options.limit, text)}
                runners |= {solver: _ours(name, solver, C, options.limit) for solver in _OWN}
                runs = repeated(runners, 1 if name in _STEPS_OF_LARGE else options.repeats)
                page.put("classes", columns, [name, f"{steps:g}", *_cells(runs, options.limit)])


def _cells(runs, limit):
    theirs, planes, sweeps, auto = (runs[who] for who in ("theirs", *_OWN))
    cells = [shown(run.seconds, limit) for run in (theirs, planes, sweeps, auto)] + [auto.solver]
    cells += [ratio(theirs.seconds, run.seconds, limit) for run in (planes, auto)]
    cells += [ratio(sweeps.seconds, planes.seconds, limit), theirs.n_iter, planes.n_iter]
    return [*cells, *(f"{run.objective:.6g}" for run in (theirs, planes, sweeps, auto))]


TABLES = {"classes": Table(classes_table, SETS, ["dna.scale"], 3)}
