"""Ranking with a kernel against the linear machine: NDCG@10 on MQ2008, parameters chosen on rows of their own."""

from dataclasses import dataclass
from functools import cache

import numpy as np

from benchmarks.datasets import FOLDER
from benchmarks.machinery.figures import seconds_of
from benchmarks.machinery.page import Frame, Table
from widemargin import RankSVM, read_svmlight
from widemargin.evaluation.retrieval import ndcg

PARTS = 5
POINTS = 500
_INTRODUCTION = f"""# Ranking with a kernel

Made by `python -m benchmarks run ranking`: `RankSVM`, linear and with the rbf kernel on {POINTS} basis points, on
LETOR's MQ2008. Its {PARTS} parts take turns: three to train on, one to choose C and gamma by NDCG@10, one to test.
NDCG@10 is the mean over the queries that have relevant rows."""
_SECTIONS = {
    "means": ("Means over the folds", "Seconds are those of a fit with the parameters that were chosen."),
    "folds": ("Folds", "The fit with the parameters that are best on the part for choosing them."),
}


@dataclass(frozen=True)
class Found:
    """A fit: what it is judged by, its parameters and its seconds."""

    chosen_by: float
    test: float
    C: float
    gamma: float | None
    seconds: float
    gap: float


@cache
def part(k):
    """Return X, relevance and queries of a part of MQ2008."""
    X, y, query = read_svmlight(FOLDER / f"MQ2008.S{k % PARTS + 1}.svm.xz")
    return X.toarray(), y, query


def gain(model, k):
    """Return NDCG@10 of a part."""
    X, y, query = part(k)
    return ndcg(model.predict(X), y, query)[0]


def grids(options):
    """Return the parameters that are tried, by kernel."""
    kernel = {"kernel": "rbf", "basis": POINTS}
    return {
        "linear": [{"C": C} for C in options.linear],
        "rbf": [{"C": C, "gamma": gamma} | kernel for C in options.rbf for gamma in options.gamma],
    }


def best(fold, grid):
    """Return what is Found with the parameters that are best on the fourth part of a fold."""
    X, y, query = (np.concatenate(arrays) for arrays in zip(*(part(fold + k) for k in range(3)), strict=True))
    found = []
    for options in grid:
        seconds, model = seconds_of(RankSVM(**options).fit, X, y, qid=query)
        judged = gain(model, fold + 3), gain(model, fold + 4)
        found.append(Found(*judged, options["C"], options.get("gamma"), seconds, model.gap_))
    return max(found, key=lambda one: one.chosen_by)


def folds_table(page, folds, options):
    """The best machine of each kind in each fold."""
    columns = ["fold", "kernel", "C", "gamma", "seconds", "gap", "NDCG@10 when choosing", "NDCG@10, test"]
    X, y, query = part(0)
    RankSVM(**grids(options)["rbf"][0]).fit(X, y, qid=query)  # compiles
    for fold in page.each("folds", folds):
        for kernel, grid in grids(options).items():
            one = best(fold, grid)
            gamma = "–" if one.gamma is None else f"{one.gamma:g}"
            judged = f"{one.chosen_by:.4f}", f"{one.test:.4f}"
            cells = [f"{one.C:g}", gamma, f"{one.seconds:.3g}", f"{one.gap:.1e}", *judged]
            page.put("folds", columns, [fold, kernel, *cells], n_key=2)


def finish(page):
    """Put the means over the folds."""
    rows = page.rows("folds")
    for kernel in dict.fromkeys(row[1] for row in rows):
        numbers = [[float(row[k]) for k in (4, 6, 7)] for row in rows if row[1] == kernel]
        seconds, chosen_by, test = np.mean(numbers, axis=0)
        cells = [kernel, len(numbers), f"{seconds:.3g}", f"{chosen_by:.4f}", f"{test:.4f}"]
        page.put("means", ["kernel", "folds", "seconds", "NDCG@10 when choosing", "NDCG@10, test"], cells)


PAGE = Frame(
    _INTRODUCTION,
    _SECTIONS,
    {"folds": Table(folds_table, list(range(1, PARTS + 1)), [1])},
    options={
        "linear": [1.0, 10.0, 100.0, 1000.0, 10000.0],
        "rbf": [1e3, 1e4, 1e5, 1e6],
        "gamma": [0.01, 0.03, 0.1],
    },
    quick_options={"linear": [100.0, 1000.0], "rbf": [1e4], "gamma": [0.03]},
    finish=finish,
)
