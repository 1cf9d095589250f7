"""A grid of C and gamma with folds: `grid_search` against scikit-learn's GridSearchCV(SVC), on the same cores.

LIBSVM's ranges, 11 values of C and 10 of gamma, five folds, the same for both; tol=1e-3, both defaults otherwise.
Sets on which GridSearchCV would take the time of a whole page have every second value of gamma, again for both.
Both search, neither fits a last model. The first calls of ours, which may compile, are on few rows and not counted.
"""

from typing import NamedTuple

import numpy as np
import sklearn.svm
from sklearn.model_selection import GridSearchCV, StratifiedKFold

from benchmarks.datasets import kernel_set
from benchmarks.machinery.figures import ratio, seconds_of, shown, take_turns
from benchmarks.machinery.page import Frame, Table
from widemargin import SVC, grid_search
from widemargin.selection.parameter_ranges import default_grid

COVERTYPE = "covtype.libsvm.binary.scale"
SETS = ["svmguide1", "ijcnn1:5000", "satimage.scale", f"{COVERTYPE}:3000", "a4a:3000"]
HALF_OF_GAMMAS = {f"{COVERTYPE}:3000", "a4a:3000"}  # sets that are searched with every second value of gamma
QUICK_GRID = {"C": [0.5, 8.0, 128.0], "gamma": [0.03125, 0.5]}
CORES = 2
_COLUMNS = [
    "set", "rows", "features", "classes", "points", "grid_search", "GridSearchCV", "GridSearchCV / grid_search",
    "best accuracy", "GridSearchCV's", "points whose accuracy differs by a row or more", "largest difference",
]  # fmt: skip
_INTRODUCTION = """\
# A grid of C and gamma with folds

Made by `python -m benchmarks run grid`: seconds for LIBSVM's grid of 11 values of C and 10 of gamma, 110 points x
5 folds, on two cores; `grid_search` in two threads, GridSearchCV in two processes. Same folds, same tolerance. Where
GridSearchCV takes several minutes, both search the 55 points of every second gamma (2^3, 2^-1, .. 2^-13) only."""


class Search(NamedTuple):
    """A search: its seconds, its best mean accuracy, and the mean accuracy of each point."""

    seconds: float
    best: float
    means: dict


def grid_table(page, names, options):
    """Let both search, taking turns."""
    for name in page.each("grid", names):
        X, y = kernel_set(name)
        folds = list(StratifiedKFold(5, shuffle=True, random_state=0).split(X, y))
        grid = QUICK_GRID if options.quick else _grid_of(name)
        _compile(X, y)
        runners = {"ours": lambda: _ours(X, y, grid, folds), "theirs": lambda: _theirs(X, y, grid, folds)}  # noqa: B023
        found = take_turns(runners, options.repeats, often=1, patience=options.patience)
        (ours, mine), (theirs, peer) = found["ours"], found["theirs"]
        apart = np.array([abs(theirs.means[point] - mean) for point, mean in ours.means.items()])
        cells = [name, len(y), X.shape[1], len(np.unique(y)), len(apart), shown(mine), shown(peer), ratio(peer, mine)]
        cells += [f"{ours.best:.4f}", f"{theirs.best:.4f}", int(np.sum(apart > 0.5 / len(y))), f"{apart.max():.4f}"]
        page.put("grid", _COLUMNS, cells, n_key=1)


def _grid_of(name):
    """Return the grid on which a set is searched."""
    grid = default_grid(SVC())
    return grid | {"gamma": list(grid["gamma"])[::2]} if name in HALF_OF_GAMMAS else grid


def _compile(X, y):
    """Search on few rows, and on as many as make `auto` take its other ways."""
    few = np.concatenate([np.flatnonzero(y == label)[:150] for label in np.unique(y)])
    grid_search(SVC(), X[few], y[few], {"C": [1.0, 10.0], "gamma": [0.1]}, cv=2, n_jobs=CORES, refit=False)
    many = np.concatenate([few, np.setdiff1d(np.arange(len(y)), few)[:2500]])
    grid_search(SVC(), X[many], y[many], {"C": [1.0, 1e4], "gamma": [0.5]}, cv=2, n_jobs=CORES, refit=False)


def _ours(X, y, grid, folds):
    seconds, found = seconds_of(grid_search, SVC(), X, y, grid, cv=folds, n_jobs=CORES, refit=False)
    return Search(seconds, found.best_score, dict(zip(map(_point, found.points), found.means, strict=True)))


def _theirs(X, y, grid, folds):
    search = GridSearchCV(sklearn.svm.SVC(), grid, cv=folds, n_jobs=CORES, refit=False)
    seconds, _ = seconds_of(search.fit, X, y)
    table = search.cv_results_
    means = dict(zip(map(_point, table["params"]), table["mean_test_score"], strict=True))
    return Search(seconds, search.best_score_, means)


def _point(parameters):
    return tuple(sorted(parameters.items()))


PAGE = Frame(
    _INTRODUCTION,
    {"grid": ("Seconds", "The ratio is scikit-learn's time over ours.")},
    {"grid": Table(grid_table, SETS, ["svmguide1"])},
    options={"repeats": 3, "patience": 20.0},
    quick_options={"repeats": 1},
)
