"""A grid of C with folds: `c_path` against scikit-learn's GridSearchCV."""

import time

import numpy as np

from benchmarks.datasets import binary
from benchmarks.linear.grid import loosest, lower_bound
from benchmarks.linear.liblinear import LADDER, Liblinear
from benchmarks.linear.words import GRID
from benchmarks.machinery.figures import ratio, shown
from benchmarks.machinery.worker import Worker
from benchmarks.planes.runs import Run, hinge, repeated

SETS = ["diabetes_scale", "german.numer_scale", "a9a", "w8a", "ijcnn1", "20news.bigram.binary"]
FOLDS = 5
_SEARCH = 3  # a search may take so many times the limit of a fit
_DEFAULTS = [{"C": GRID}]  # of scikit-learn: tol=1e-4, at most 1,000 sweeps
_NO_LIMIT = 10**9


def path_table(page, names, options):
    """Seconds and best scores of a path with folds, ours and scikit-learn's."""
    columns = [
        "set",
        "rows",
        "c_path, 1 thread",
        "c_path, 2 threads",
        "GridSearchCV as it comes",
        "GridSearchCV to 1e-3",
    ]
    columns += ["as it comes / c_path, 2 threads", "to 1e-3 / c_path, 2 threads"]
    columns += ["best score, c_path", "as it comes", "to 1e-3"]
    limit = _SEARCH * options.limit
    for name in page.each("path", names):
        worker = Worker(_searcher, name)
        runners = {("ours", n_jobs): _ours(name, n_jobs) for n_jobs in (1, 2)}
        runners["comes"] = _search(worker, _DEFAULTS, 1000, limit)
        runners["reached"] = _search(worker, _tolerances(page, name, options.limit), _NO_LIMIT, limit)
        for n_jobs in (1, 2):  # compile
            runners["ours", n_jobs]()
        runs = repeated(runners, options.repeats)
        worker.close()
        seconds = {label: run.seconds for label, run in runs.items()}
        cells = [name, len(binary(name)[1]), *(shown(seconds[label], limit) for label in runners)]
        cells += [ratio(seconds[label], seconds["ours", 2], limit) for label in ("comes", "reached")]
        scores = [runs[label].objective for label in (("ours", 2), "comes", "reached")]
        page.put("path", columns, [*cells, *("–" if np.isnan(score) else f"{score:.4f}" for score in scores)], n_key=1)


def _ours(name, n_jobs):
    """Return a runner of c_path; the objective of its Run is the best mean score."""
    from widemargin import c_path

    X, sign = binary(name)

    def run():
        begun = time.perf_counter()
        path = c_path(hinge("auto", 1.0, n_jobs=n_jobs), X, sign, GRID, cv=FOLDS)
        seconds = time.perf_counter() - begun
        return Run(seconds, 0, np.nan, path.scores.mean(axis=0).max(), path.fold_gaps.max())

    return run


def _tolerances(page, name, limit):
    """Return the grid with the loosest tolerance for each C; from a C that reaches the limit on, the last one's."""
    found, last, grid = page.facts.get(f"tolerances: {name}"), LADDER[0], []
    if found is None:
        found = _found_tolerances(name, limit)
    for C in GRID:
        last = found.get(f"{C:g}") or last
        grid.append({"C": [C], "tol": [last]})
    return grid


def _found_tolerances(name, limit):
    """Return the loosest tolerance for each C of a set that the table of every cell does not have."""
    peer, found = Liblinear(name), {}
    for C in GRID:
        found[f"{C:g}"] = loosest(peer, C, lower_bound(name, C, limit), limit)
        if found[f"{C:g}"] is None:
            break
    peer.close()
    return found


def _search(worker, grid, max_iter, limit):
    """Return a runner of scikit-learn's search; the objective of its Run is the best mean score."""

    def run():
        seconds, score = worker.ask((grid, max_iter), limit) or (np.inf, np.nan)
        return Run(seconds, 0, np.nan, score, np.nan)

    return run


def _searcher(name):
    """Two threads: LIBLINEAR runs without the interpreter's lock, and no process has to be started."""
    from joblib import parallel_config
    from sklearn.model_selection import GridSearchCV
    from sklearn.svm import LinearSVC

    X, sign = binary(name)

    def search(question):
        grid, max_iter = question
        model = LinearSVC(loss="hinge", fit_intercept=False, dual=True, max_iter=max_iter, random_state=0)
        search = GridSearchCV(model, grid, cv=FOLDS, n_jobs=2, refit=False)
        begun = time.perf_counter()
        with parallel_config("threading"):
            search.fit(X, sign)
        return time.perf_counter() - begun, search.best_score_

    return search
