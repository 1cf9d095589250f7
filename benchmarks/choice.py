"""Which solver, when: every solver on every kind of data, and what `auto` chose."""

from typing import NamedTuple

import numpy as np

from benchmarks.datasets import binary
from benchmarks.machinery.figures import ratio, read, seconds_of, shown, take_turns
from benchmarks.machinery.page import Frame, Table
from widemargin import LinearSVC
from widemargin.data.matrix import Matrix
from widemargin.problems.classification import LOSSES
from widemargin.solvers.coordinate_descent.climb import height

HINGES = ("hinge", "squared_hinge")  # which all of these solvers take; the page `logistic` has the log loss
SOLVERS = ["dcd", "avsf", "climb", "newton", "auto"]
MOST_COLUMNS_OF_NEWTON = 3000
COSTS = (1.0, 10.0, 1000.0)
SETS = ["german.numer_scale", "svmlight-example1", "splice", "dna.scale", "mushrooms", "phishing", "satimage.scale",
        "usps", "letter.scale", "lasvm-reuters-money-fx", "a9a", "w8a", "ijcnn1", "news20", "20news.bigram.binary",
        "covtype.libsvm.binary.scale"]  # fmt: skip
_COLUMNS = ["set", "loss", "C", "n/d", "height", *SOLVERS, "auto took", "auto / best"]
_INTRODUCTION = """# Which solver, when

Made by `python -m benchmarks run choice`: seconds to a certified relative gap of 1e-3, without intercept, one thread.
*Height* is the quantity by which `auto` chooses between coordinate descent and `climb`. A run that exceeds the limit is
marked `>`, and counts as the limit. *Best* is the best of the others; `newton` is for up to 3,000 columns."""
_SECTIONS = {"summary": ("Summary", "Cells by loss."), "choice": ("All cells", "")}


class Fit(NamedTuple):
    """A fit: its seconds, infinite at the limit, and the solver that ran."""

    seconds: float
    solver: str


def _runner(X, sign, limit, **parameters):
    def run():
        model = LinearSVC(fit_intercept=False, tol=1e-3, max_iter=None, max_seconds=limit, random_state=0, **parameters)
        seconds, _ = seconds_of(model.fit, X, sign)
        return Fit(seconds if model.status_ == "converged" else np.inf, model.solver_)

    return run


def choice_table(page, names, options):
    """Measure every solver on a set with each loss and C."""
    for name in page.each("choice", names):
        X, sign = binary(name)
        solvers = [one for one in SOLVERS if one != "newton" or X.shape[1] <= MOST_COLUMNS_OF_NEWTON]
        for solver in solvers:  # compile first
            LinearSVC(fit_intercept=False, solver=solver, max_iter=2).fit(X, sign)
        for loss in HINGES:
            for C in COSTS:
                high = height(LOSSES[loss](Matrix(X), sign, np.full(len(sign), C)))
                runners = {one: _runner(X, sign, options.limit, loss=loss, C=C, solver=one) for one in solvers}
                found = take_turns(runners, options.repeats, often=1, patience=0.5)
                seconds = {solver: one for solver, (_, one) in found.items()}
                best = min(*(seconds[solver] for solver in solvers[:-1]), options.limit)
                cells = [name, loss, f"{C:g}", f"{X.shape[0] / X.shape[1]:.2g}", f"{high:.2g}"]
                cells += [shown(seconds.get(solver), options.limit) for solver in SOLVERS]
                cells += [found["auto"][0].solver, ratio(min(seconds["auto"], options.limit), best)]
                page.put("choice", _COLUMNS, cells, n_key=3)


def finish(page):
    """Add how near `auto` is to the best."""
    for loss in HINGES:
        lost = np.array([read(row[-1]).value for row in page.rows("choice") if row[1] == loss])
        if len(lost):
            cells = [loss, len(lost), f"{(lost <= 1.1).mean():.0%}", f"{(lost <= 1.5).mean():.0%}", f"{lost.max():.2f}"]
            page.put("summary", ["loss", "cells", "within 1.1 of the best", "within 1.5", "largest"], cells, n_key=1)


PAGE = Frame(
    _INTRODUCTION,
    _SECTIONS,
    {"choice": Table(choice_table, SETS, SETS[:2])},
    options={"limit": 2.0, "repeats": 2},
    quick_options={"limit": 0.5, "repeats": 1},
    finish=finish,
)
