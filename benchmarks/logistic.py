"""Logistic regression over the grid of C: `LinearSVC(loss="log_loss")` against LIBLINEAR and scikit-learn's solvers.

A lower bound of the optimum is known beforehand, from a run of ours to a smaller gap that is not timed. Whoever ends
with an objective that is not within 1e-3 of it has missed the goal. Peers are given the loosest tolerance with which
they reach it.
"""

import math
import time
import warnings

import numpy as np

from benchmarks.datasets import binary
from benchmarks.linear.grid import misses, settled
from benchmarks.linear.words import GRID, SETS
from benchmarks.machinery.figures import Timed, ratio, read, shown, take_turns
from benchmarks.machinery.page import Frame, Table
from benchmarks.machinery.worker import Worker
from widemargin import LinearSVC

PEERS = {  # parameters of scikit-learn's LogisticRegression
    "LIBLINEAR -s 0": {"solver": "liblinear", "dual": False},
    "LIBLINEAR -s 7": {"solver": "liblinear", "dual": True},
    "lbfgs": {"solver": "lbfgs"},
    "newton-cholesky": {"solver": "newton-cholesky"},
}
OWN = ["auto", "newton", "dcd"]
COLUMNS = ["set", "C", *OWN, "what ran", *PEERS, "best peer / auto"]
_LADDER = [1.0, 0.1, 0.03, 0.01, 3e-3, 1e-3, 3e-4, 1e-4, 1e-5, 1e-6, 1e-7]  # tolerances of peers
_MAX_COLUMNS_OF_CHOLESKY = 3000
_EXACT = 1e-5  # gap of the run that finds the bound
_INTRODUCTION = """# Logistic regression

Made by `python -m benchmarks run logistic`: `LinearSVC(loss="log_loss", fit_intercept=False, tol=1e-3)` on one thread,
and scikit-learn's `LogisticRegression(fit_intercept=False)` by each of its solvers, with the loosest tolerance by which
the objective comes within 1e-3 of the optimum. A fit of less than 0.1 s is made twice in its turn, of which the second
counts, so that everybody finds the caches alike."""
_SECTIONS = {
    "summary": ("Summary", "Sums over C; a peer that reached the limit counts with the limit. The goal is 3."),
    "grid": (
        "The grid of C",
        "Seconds. `>`: the limit was reached at this C or at a smaller one; –: not tried, or the goal was missed.",
    ),
}


def objective(X, sign, C, w):
    """Return ½|w|² + C Σ log(1 + exp(−sign <w, x>))."""
    return 0.5 * w @ w + C * np.logaddexp(0.0, -sign * (X @ w)).sum()


def ours(C, solver="auto", **options):
    """Return our classifier."""
    settings = {"tol": 1e-3, "max_iter": None, "n_jobs": 1, "random_state": 0} | options
    return LinearSVC(loss="log_loss", C=C, fit_intercept=False, solver=solver, **settings)


def _logistic_regression(name, label):
    """Return a function that fits scikit-learn's estimator for a C and a tolerance, in a process of its own."""
    from sklearn.linear_model import LogisticRegression

    X, sign = binary(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        LogisticRegression(**PEERS[label], fit_intercept=False, max_iter=1).fit(X, sign)

    def fit(question):
        C, tol = question
        model = LogisticRegression(**PEERS[label], C=C, tol=tol, fit_intercept=False, max_iter=100_000, random_state=0)
        begun = time.perf_counter()
        model.fit(X, sign)
        return time.perf_counter() - begun, objective(X, sign, C, model.coef_.ravel())

    return fit


class Peer:
    """One of scikit-learn's solvers on one set, with the loosest tolerance that it needs."""

    def __init__(self, name, label, limit):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self._worker, self._limit, self._is_at_limit = Worker(_logistic_regression, name, label), limit, False

    def runner(self, C, bound):
        """Return a runner for a C, or None if the goal is missed with every tolerance."""
        for tol in [] if self._is_at_limit else _LADDER:
            found = self._worker.ask((C, tol), self._limit)
            if found is None:
                self._is_at_limit = True
                break
            if not misses(found[1], bound):
                return lambda: Timed(self._worker.ask((C, tol), 2.0 * self._limit)[0])
        return (lambda: Timed(math.inf)) if self._is_at_limit else None

    def close(self):
        """End the process."""
        self._worker.close()


def grid_table(page, names, options):
    """Measure every cell of the grid."""
    for name in page.each("grid", names):
        X, _sign = binary(name)
        labels = [label for label in PEERS if label != "newton-cholesky" or X.shape[1] <= _MAX_COLUMNS_OF_CHOLESKY]
        peers = {label: Peer(name, label, options.limit) for label in labels}
        for C in options.grid:
            page.put("grid", COLUMNS, _cells(name, C, peers, options))
        for peer in peers.values():
            peer.close()


def _cells(name, C, peers, options):
    """Return a row of the table."""
    X, sign = binary(name)
    bound = float(ours(C, tol=_EXACT, max_seconds=options.limit).fit(X, sign).history_["dual"].max())
    models = {solver: ours(C, solver, max_seconds=options.limit) for solver in OWN}
    runners = {solver: _timed(model, X, sign, C, bound) for solver, model in models.items()}
    runners |= {label: peer.runner(C, bound) for label, peer in peers.items()}
    able = {label: settled(one) for label, one in runners.items() if one is not None}
    found = take_turns(able, options.repeats, often=4)
    seconds = {label: one for label, (_, one) in found.items()}
    best = min((seconds[label] for label in peers if label in seconds), default=None)
    cells = [shown(seconds.get(label), options.limit) for label in (*OWN, *PEERS)]
    return [name, f"{C:g}", *cells[:3], models["auto"].solver_, *cells[3:], ratio(best, seconds["auto"], options.limit)]


def _timed(model, X, sign, C, bound):
    """Return a runner of our estimator; infinite seconds if it misses the goal."""

    def run():
        begun = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(X, sign)
        seconds = time.perf_counter() - begun
        return Timed(math.inf if misses(objective(X, sign, C, model.coef_.ravel()), bound) else seconds)

    return run


def finish(page):
    """Add the sums over C of each set, and the smallest ratio."""
    rows = [dict(zip(COLUMNS, row, strict=True)) for row in page.rows("grid")]
    for name in dict.fromkeys(row["set"] for row in rows):
        mine = [row for row in rows if row["set"] == name]
        sums = {label: [read(row[label]) for row in mine] for label in ("auto", *PEERS)}
        told = {label: sum(one.value for one in cells) for label, cells in sums.items() if all(cells)}
        best = min(value for label, value in told.items() if label != "auto")
        worst = min(read(row[COLUMNS[-1]]).value for row in mine)
        cells = [f"{told['auto']:.3g}", f"{best:.3g}", f"{best / told['auto']:.2f}", f"{worst:.2f}"]
        page.put("summary", ["set", "auto", "best peer", "ratio of sums", "smallest ratio"], [name, *cells], n_key=1)


PAGE = Frame(
    _INTRODUCTION,
    _SECTIONS,
    {"grid": Table(grid_table, SETS, ["ijcnn1", "svmlight-example1"])},
    options={"limit": 4.0, "repeats": 2, "grid": GRID},
    quick_options={"limit": 1.0, "repeats": 1, "grid": GRID[::2]},
    finish=finish,
)
