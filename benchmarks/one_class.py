"""Linear one-class machines against LIBLINEAR's -s 21, to the same objective."""

import math
from functools import cache

import numpy as np
from scipy.sparse import csr_matrix

from benchmarks.datasets import load
from benchmarks.machinery.figures import Timed, ratio, read, seconds_of, shown, take_turns, timed
from benchmarks.machinery.page import Frame, Table
from widemargin import LinearOneClassSVM

SETS = [
    "odds-shuttle", "odds-satellite", "odds-thyroid", "odds-mammography", "odds-musk",
    "a9a", "w8a", "svmlight-example1",
]  # fmt: skip
NU = (0.01, 0.1, 0.5)
EXCESS = 1e-3  # over the optimum, relative to it, that is allowed
_LADDER = (1e5, 1e4, 1e3, 100.0, 10.0, 1.0, 0.1, 0.01, 1e-3, 1e-4, 1e-5, 1e-6)  # tolerances of LIBLINEAR
_DEFAULT_TOLERANCE = 0.01
_INTRODUCTION = f"""# Linear one-class machines

Made by `python -m benchmarks run one-class`: `LinearOneClassSVM(tol={EXCESS:g})`, which proves its gap, against
LIBLINEAR's `-s 21` at the loosest tolerance whose objective is within {EXCESS:g} of the optimum. Objectives are
computed by this page, with the best offset for the weights that either returns; the optimum is that of a fit with
tol=1e-7. Columns of the odds sets are divided by their deviations, and not centred: the mean of centred rows is the
origin, so that w = 0 is optimal. Where LIBLINEAR does not come that near to the optimum, as where that is zero, its
tolerance is its default. Small sets we solve to full precision. The ratio is that of
two calls with the same array or matrix; LIBLINEAR's Python interface takes arrays row by row, so that they become
sparse matrices first, which is faster. Its time without any conversion is told, too."""
_SECTIONS = {
    "summary": ("Summary", "LIBLINEAR's time divided by ours, over all sets."),
    "seconds": ("Milliseconds of fit", "Excess: how far the objective is above the optimum, relative to it."),
}


@cache
def rows(name):
    """Return the rows of a set, dense with columns of deviation 1, or sparse as they are."""
    X, _ = load(name)
    if not name.startswith("odds-"):
        return X
    X = X.toarray()
    deviation = X.std(axis=0)
    return np.ascontiguousarray(X / np.where(deviation > 0.0, deviation, 1.0))


def objective(X, w, nu):
    """Return ½|w|² less the sum of the nu n lowest scores, which is the objective at the best offset."""
    scores, total = np.sort(X @ w), nu * X.shape[0]
    n_whole = min(math.floor(total), len(scores) - 1)
    return 0.5 * float(w @ w) - float(scores[:n_whole].sum()) - (total - n_whole) * float(scores[n_whole])


class _Peer:
    """LIBLINEAR, by its Python interface."""

    def __init__(self, name):
        from liblinear.liblinearutil import problem

        self._X = rows(name)
        self._y, self._n_columns = np.ones(self._X.shape[0]), self._X.shape[1]
        self._problem = problem(self._y, csr_matrix(self._X))

    def call(self, nu, eps):
        """Return the seconds of a fit from an array or SciPy's matrix, and its weights."""
        from liblinear.liblinearutil import train

        def fit():
            return train(self._y, csr_matrix(self._X), f"-s 21 -n {nu} -e {eps} -q")  # no copy of sparse rows

        seconds, model = seconds_of(fit)
        w, found = np.zeros(self._n_columns), model.w[: model.nr_feature]
        w[: len(found)] = found
        return seconds, w

    def train(self, nu, eps):
        """Return the seconds of a fit from rows that are converted already."""
        from liblinear.liblinear import liblinear, parameter

        return seconds_of(liblinear.train, self._problem, parameter(f"-s 21 -n {nu} -e {eps} -q"))[0]


def seconds_table(page, cases, options):
    """Times of fits to the same objective, taking turns."""
    columns = [
        "set", "nu", "ours", "LIBLINEAR", "LIBLINEAR / ours", "without conversion", "solver",
        "our excess", "its excess",
    ]  # fmt: skip
    for name, nu in page.each("seconds", cases, lambda case: f"{case[0]}, nu {case[1]}"):
        X, peer = rows(name), _Peer(name)
        best = LinearOneClassSVM(nu=nu, tol=1e-7, max_iter=None, max_seconds=20.0).fit(X)
        optimum = objective(X, best.coef_[0], nu)
        model = LinearOneClassSVM(nu=nu, tol=EXCESS).fit(X)
        eps, theirs = _loosest(peer, X, nu, optimum)
        runners = {
            "ours": timed(LinearOneClassSVM(nu=nu, tol=EXCESS).fit, X),
            "LIBLINEAR": lambda peer=peer, nu=nu, eps=eps: Timed(peer.call(nu, eps)[0]),
            "without conversion": lambda peer=peer, nu=nu, eps=eps: Timed(peer.train(nu, eps)),
        }
        found = take_turns(runners, options.repeats, often=3)
        ours, its, shorter = (one.times_factor(1e3) for _, one in found.values())
        cells = [shown(ours), shown(its), ratio(its, ours), shown(shorter), model.solver_.partition(" (")[0]]
        page.put("seconds", columns, [name, nu, *cells, _excess(X, model.coef_[0], nu, optimum), theirs])


def _excess(X, w, nu, optimum):
    """Return in words how far an objective is above the optimum, relative to it."""
    return f"{(objective(X, w, nu) - optimum) / abs(optimum):.1e}" if optimum < 0.0 else "–"


def _loosest(peer, X, nu, optimum):
    """Return the loosest tolerance of LIBLINEAR that comes near enough to the optimum, and its excess in words.

    If none does, it is LIBLINEAR's default.
    """
    for eps in _LADDER:
        w = peer.call(nu, eps)[1]
        if objective(X, w, nu) - optimum <= EXCESS * abs(optimum):
            return eps, _excess(X, w, nu, optimum)
    return _DEFAULT_TOLERANCE, _excess(X, peer.call(nu, _DEFAULT_TOLERANCE)[1], nu, optimum)


def finish(page):
    """Add the smallest and the median ratio, and the number of cells in which we are slower."""
    told = [read(row[4]) for row in page.rows("seconds")]
    ratios = [one.value for one in told if one is not None]
    if ratios:
        columns = ["cells", "smallest ratio", "median", "cells in which LIBLINEAR is faster"]
        cells = [f"{min(ratios):.2f}", f"{np.median(ratios):.2f}", sum(one < 1.0 for one in ratios)]
        page.put("summary", columns, [len(ratios), *cells], n_key=1)


CASES = [(name, nu) for name in SETS for nu in NU]
PAGE = Frame(
    _INTRODUCTION,
    _SECTIONS,
    {"seconds": Table(seconds_table, CASES, CASES[1::9])},
    options={"repeats": 5},
    quick_options={"repeats": 2},
    finish=finish,
)
