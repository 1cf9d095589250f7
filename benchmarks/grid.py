"""A grid of C and gamma with folds: `grid_search` against scikit-learn's GridSearchCV(SVC), on the same cores.

    python -m benchmarks.grid [--sets NAME ...] [--repeats N] [--dry]

LIBSVM's ranges, 11 values of C and 10 of gamma, five folds, the same for both; tol=1e-3, both defaults otherwise.
Both search, neither fits a last model. The first call of ours, which may compile, is on a few rows and not counted.
"""

import argparse
import time
from pathlib import Path

import numpy as np
import sklearn.svm
from sklearn.model_selection import GridSearchCV, StratifiedKFold

from benchmarks.datasets import kernel_set
from benchmarks.page import Page, machine, versions
from widemargin import SVC, grid_search
from widemargin.selection.parameter_ranges import default_grid

SETS = ["covtype.libsvm.binary.scale:5000", "satimage.scale", "a4a", "ijcnn1:5000", "svmguide1"]
CORES = 2
_PATH = Path(__file__).parent / "results" / "grid.md"
_COLUMNS = [
    "set", "rows", "features", "classes", "grid_search", "GridSearchCV", "ratio", "best accuracy", "GridSearchCV's",
    "points whose accuracy differs by a row or more", "largest difference",
]  # fmt: skip
_INTRODUCTION = """\
# A grid of C and gamma with folds

`python -m benchmarks.grid`: seconds for 110 points x 5 folds, LIBSVM's ranges of C and gamma, on two cores;
`grid_search` in two threads, GridSearchCV in two processes. Same folds, same tolerance."""


def main():
    """Measure, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", nargs="+", default=SETS)
    parser.add_argument("--repeats", type=int, default=1, help="of ours; the median counts (default: 1)")
    parser.add_argument("--dry", action="store_true", help="print only")
    options = parser.parse_args()
    page = Page(_PATH, _INTRODUCTION, {"grid": ("Seconds", "The ratio is scikit-learn's time over ours.")}, options.dry)
    for name in options.sets:
        page.put("grid", _COLUMNS, _measured(name, options.repeats), n_key=1)
    page.note("grid", f"{machine()}, {versions('widemargin', 'scikit-learn', 'numpy', 'numba')}")


def _measured(name, repeats):
    """Return the cells of a set's row."""
    X, y = kernel_set(name)
    folds = list(StratifiedKFold(5, shuffle=True, random_state=0).split(X, y))
    grid = default_grid(SVC())
    few = np.concatenate([np.flatnonzero(y == label)[:150] for label in np.unique(y)])
    grid_search(SVC(), X[few], y[few], {"C": [1.0, 10.0], "gamma": [0.1]}, cv=2, n_jobs=CORES, refit=False)
    many = np.concatenate([few, np.setdiff1d(np.arange(len(y)), few)[:2500]])
    grid_search(SVC(), X[many], y[many], {"C": [1.0, 1e4], "gamma": [0.5]}, cv=2, n_jobs=CORES, refit=False)
    seconds = []
    for _ in range(repeats):
        begun = time.perf_counter()
        ours = grid_search(SVC(), X, y, grid, cv=folds, n_jobs=CORES, refit=False)
        seconds.append(time.perf_counter() - begun)
    mine = float(np.median(seconds))
    print(f"{name}: grid_search {mine:.1f} s", flush=True)
    begun = time.perf_counter()
    theirs = GridSearchCV(sklearn.svm.SVC(), grid, cv=folds, n_jobs=CORES, refit=False).fit(X, y)
    peer = time.perf_counter() - begun
    apart = np.abs(
        _means(theirs.cv_results_["params"], theirs.cv_results_["mean_test_score"], ours.points) - ours.means
    )
    return [
        name, len(y), X.shape[1], len(np.unique(y)), f"{mine:.1f}", f"{peer:.1f}", f"{peer / mine:.1f}",
        f"{ours.best_score:.4f}", f"{theirs.best_score_:.4f}", int(np.sum(apart > 0.5 / len(y))), f"{apart.max():.4f}",
    ]  # fmt: skip


def _means(points, means, wanted):
    """Return the means of the wanted points, in their order."""
    table = {tuple(sorted(point.items())): mean for point, mean in zip(points, means, strict=True)}
    return np.array([table[tuple(sorted(point.items()))] for point in wanted])


if __name__ == "__main__":
    main()
