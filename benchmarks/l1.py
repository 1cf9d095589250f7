"""L1 penalties over a grid of C, against LIBLINEAR through scikit-learn, to the same accuracy.

A lower bound of the optimum is known beforehand, from a run of ours to a smaller gap that is not timed. LIBLINEAR has
the loosest tolerance of a ladder with which its objective is within 1e-4 of that bound; the objective is computed here.
"""

import time
import warnings
from typing import NamedTuple

import numpy as np

from benchmarks.datasets import binary
from benchmarks.machinery.figures import Told, ratio, read, shown, take_turns
from benchmarks.machinery.page import Frame, Table
from benchmarks.machinery.worker import Worker
from widemargin import LinearSVC

SETS = [
    "dna.scale", "rcv1-vw-1000", "lasvm-reuters-money-fx", "a9a", "ijcnn1", "w8a", "20news.bigram.binary",
    "covtype.libsvm.binary.scale",
]  # fmt: skip
GOAL, LARGEST_CELL = 5.0, 1.1  # LIBLINEAR / ours in sums over C; ours / LIBLINEAR in each cell
_GAP, _BOUND_GAP = 1e-4, 1e-6
_LADDER = [1.0, 0.3, 0.1, 0.03, 0.01, 3e-3, 1e-3, 3e-4, 1e-4, 1e-5]
_COLUMNS = ["set", "C", "weights", "widemargin", "LIBLINEAR", "its tol", "LIBLINEAR / widemargin"]
_INTRODUCTION = f"""# L1 penalties

Made by `python -m benchmarks run l1`: `LinearSVC(penalty="l1")` to a certified gap of {_GAP:g}, against scikit-learn's
`LinearSVC(penalty="l1", dual=False)`, which is LIBLINEAR's `-s 5`, with the loosest tolerance with which its objective
is within {_GAP:g} of a lower bound of the optimum. Both have a penalised intercept and one thread."""
_SECTIONS = {
    "summary": ("Summary", f"Goals: sums over C at least {GOAL:g} times better, no cell slower than {LARGEST_CELL:g}."),
    "sums": ("Sums over C", "Seconds; a limit that was reached counts as the limit."),
    "grid": ("Seconds", "`weights` are those that are not zero, the intercept included."),
}


class Run(NamedTuple):
    """A fit: its seconds, infinite at the limit, and its objective."""

    seconds: float
    objective: float


def objective(X, sign, C, model):
    """Return Σ|w_j| + |b| + C Σ max(0, 1 − sign (X w + b))²."""
    w, b = model.coef_.ravel(), float(model.intercept_[0])
    return np.abs(w).sum() + abs(b) + C * np.square(np.maximum(0.0, 1.0 - sign * (X @ w + b))).sum()


def _model(C, tol, limit=None):
    return LinearSVC("l1", C=C, tol=tol, max_seconds=limit, n_jobs=1)


def ours(name, C, limit):
    """Return a runner of our fit."""
    X, sign = binary(name)

    def run():
        begun = time.perf_counter()
        model = _model(C, _GAP, limit).fit(X, sign)
        seconds = time.perf_counter() - begun
        return Run(seconds if model.gap_ <= _GAP else np.inf, objective(X, sign, C, model))

    return run


def _liblinear(name):
    """Return the function of a process that fits scikit-learn's LinearSVC and returns seconds and objective."""
    from sklearn.svm import LinearSVC as Peer

    X, sign = binary(name)

    def fit(question):
        C, tol = question
        model = Peer(penalty="l1", dual=False, C=C, tol=tol, max_iter=10**6, random_state=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            begun = time.perf_counter()
            model.fit(X, sign)
            seconds = time.perf_counter() - begun
        return seconds, objective(X, sign, C, model)

    return fit


def theirs(peer, C, tol, limit):
    """Return a runner of LIBLINEAR's fit."""
    return lambda: Run(*(peer.ask((C, tol), limit) or (np.inf, np.nan)))


def loosest(peer, C, bound, limit):
    """Return the loosest tolerance of the ladder with which LIBLINEAR comes near the bound; None at the limit."""
    for tol in _LADDER:
        found = peer.ask((C, tol), limit)
        if found is None:
            return None
        if found[1] - bound <= _GAP * found[1]:
            return tol
    return None


def grid_table(page, names, options):
    """Measure every cell."""
    for name in page.each("grid", names):
        X, sign = binary(name)
        peer, is_at_limit = Worker(_liblinear, name), False
        for C in options.grid:
            best = _model(C, _BOUND_GAP, 4 * options.limit).fit(X, sign)
            bound = best.objective_ * (1.0 - best.gap_)
            tol = None if is_at_limit else loosest(peer, C, bound, options.limit)
            is_at_limit = tol is None  # at a larger C, too
            runners = {"widemargin": ours(name, C, options.limit)}
            if tol is not None:
                runners["LIBLINEAR"] = theirs(peer, C, tol, options.limit)
            found = take_turns(runners, options.repeats)
            times = {label: seconds for label, (_, seconds) in found.items()} | ({} if tol else {"LIBLINEAR": np.inf})
            assert found["widemargin"][0].objective - bound <= 1.01 * _GAP * bound
            cells = [name, f"{C:g}", np.count_nonzero(best.coef_) + np.count_nonzero(best.intercept_)]
            cells += [shown(times[label], options.limit) for label in ("widemargin", "LIBLINEAR")]
            cells += ["–" if tol is None else f"{tol:g}"]
            page.put("grid", _COLUMNS, [*cells, ratio(times["LIBLINEAR"], times["widemargin"], options.limit)])
        peer.close()


def finish(page):
    """Put the sums over C and how far the goals are met."""
    rows = page.rows("grid")
    if not rows:
        return
    met = 0
    names = list(dict.fromkeys(row[0] for row in rows))
    for name in names:
        own, theirs = (_total([read(row[k]) for row in rows if row[0] == name]) for k in (3, 4))
        times = theirs.value / own.value
        met += times >= GOAL
        cells = [name, own, theirs, f"{theirs.bound}{times:.2f}", f"{GOAL:g}"]
        page.put("sums", ["set", "widemargin", "LIBLINEAR", "LIBLINEAR / widemargin", "goal"], cells, n_key=1)
    ratios = [read(row[-1]).value for row in rows]
    fast = sum(one >= 1.0 / LARGEST_CELL for one in ratios)
    columns = ["sets with the goal met", "cells", "not slower", "smallest LIBLINEAR / widemargin", "median"]
    cells = [f"{met} of {len(names)}", len(rows), fast, f"{min(ratios):.2f}", f"{np.median(ratios):.1f}"]
    page.put("summary", columns, cells, n_key=1)


def _total(cells):
    return Told(sum(cell.value for cell in cells), ">" if any(cell.bound for cell in cells) else "")


PAGE = Frame(
    _INTRODUCTION,
    _SECTIONS,
    {"grid": Table(grid_table, SETS, SETS[:2])},
    options={"repeats": 3, "limit": 25.0, "grid": [0.01, 0.1, 1.0, 10.0, 100.0]},
    quick_options={"repeats": 1, "limit": 2.0, "grid": [0.1, 10.0]},
    finish=finish,
)
