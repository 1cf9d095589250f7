"""Linear one-class machines against LIBLINEAR's -s 21, to the same objective."""

import math
from functools import cache, partial

import numpy as np
from scipy.sparse import csr_matrix

from benchmarks.datasets import load
from benchmarks.machinery.figures import Timed, ratio, read, seconds_of, shown, take_turns
from benchmarks.machinery.page import Frame, Table
from widemargin import LinearOneClassSVM

SETS = [
    "odds-shuttle", "odds-satellite", "odds-thyroid", "odds-mammography", "odds-musk", "a9a", "w8a", "svmlight-example1",
]  # fmt: skip
NU = (0.01, 0.1, 0.5)
EXCESS = 1e-3  # over the optimum, relative to it, that is allowed
_LADDER = (0.5, 0.3, 0.2, 0.1, 0.05, 0.02, 0.01, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7)  # tolerances of LIBLINEAR
_INTRODUCTION = f"""# Linear one-class machines

Made by `python -m benchmarks run one-class`: `LinearOneClassSVM(tol={EXCESS:g})`, which proves its gap, against
LIBLINEAR's `-s 21` at the loosest tolerance whose objective is within {EXCESS:g} of the optimum. Objectives are computed
by this page, with the best offset for the weights that either returns; the optimum is that of a fit with tol=1e-7.
Columns of the odds sets are divided by their deviations, and not centred: the mean of centred rows is the origin, so
that w = 0 is optimal. LIBLINEAR's times do not include the conversion of rows to its format."""
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
    """LIBLINEAR with rows in its own format."""

    def __init__(self, name):
        from liblinear.liblinearutil import problem

        X = rows(name)
        self._problem, self._n_columns = problem(np.ones(X.shape[0]), csr_matrix(X)), X.shape[1]

    def fit(self, nu, eps):
        """Return the seconds of a fit, and its weights."""
        from liblinear.liblinear import liblinear, parameter

        seconds, model = seconds_of(liblinear.train, self._problem, parameter(f"-s 21 -n {nu} -e {eps} -q"))
        w, found = np.zeros(self._n_columns), model.contents.w[: model.contents.nr_feature]
        w[: len(found)] = found
        return seconds, w


def seconds_table(page, cases, options):
    """Times of fits to the same objective, taking turns."""
    columns = ["set", "nu", "ours", "LIBLINEAR", "LIBLINEAR / ours", "solver", "our excess", "its excess"]
    for name, nu in page.each("seconds", cases, lambda case: f"{case[0]}, nu {case[1]}"):
        X, peer = rows(name), _Peer(name)
        optimum = objective(X, LinearOneClassSVM(nu=nu, tol=1e-7, max_iter=None, max_seconds=20.0).fit(X).coef_[0], nu)
        model = LinearOneClassSVM(nu=nu, tol=EXCESS).fit(X)
        eps, theirs = _loosest(peer, X, nu, optimum)
        runners = {"ours": lambda X=X, nu=nu: Timed(seconds_of(LinearOneClassSVM(nu=nu, tol=EXCESS).fit, X)[0])}
        if eps is not None:
            runners["LIBLINEAR"] = partial(_timed_peer, peer, nu, eps)
        found = {label: one.times_factor(1e3) for label, (_, one) in take_turns(runners, options.repeats, 3).items()}
        its = found.get("LIBLINEAR")
        ours = (objective(X, model.coef_[0], nu) - optimum) / abs(optimum)
        cells = [shown(found["ours"]), shown(its), ratio(its, found["ours"]), model.solver_.partition(" (")[0]]
        page.put("seconds", columns, [name, nu, *cells, f"{ours:.1e}", f"{theirs:.1e}"])


def _loosest(peer, X, nu, optimum):
    """Return the loosest tolerance of LIBLINEAR that comes near enough to the optimum, or None, and its excess."""
    for eps in _LADDER:
        excess = (objective(X, peer.fit(nu, eps)[1], nu) - optimum) / abs(optimum)
        if excess <= EXCESS:
            return eps, excess
    return None, excess


def _timed_peer(peer, nu, eps):
    return Timed(peer.fit(nu, eps)[0])


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
