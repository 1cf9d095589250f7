"""Threads by default, alone and inside the parallel tools of scikit-learn: is the machine used, and never twice?

    python -m benchmarks.nested_threads [--repeats N] [--dry]

Each case is run with estimators whose n_jobs is None (the default), 1, and -1, in turns. Alone, None should be as fast
as -1. Inside tools that use all cores by themselves it should be as fast as 1: a larger number of threads than cores
makes each of them wait.
"""

import argparse
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from sklearn.datasets import make_classification
from sklearn.ensemble import BaggingClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier

import widemargin
from benchmarks.page import Page, machine, versions

_PATH = Path(__file__).parent / "results" / "nested-threads.md"
_INTRODUCTION = """\
# Threads by default, alone and nested

`python -m benchmarks.nested_threads`: seconds of a fit whose estimators have `n_jobs` None, 1 and -1, medians of turns.
Alone, None should be as fast as -1; inside a tool that uses all cores by itself, as fast as 1. Generated data: 20,000
rows of 50 columns for linear models, 3,000 rows of 20 columns for kernel machines."""
_SECTIONS = {"nested": ("Seconds", "The last two columns are the time with None over those with 1 and with -1.")}
_COLUMNS = ["case", "None", "1", "-1", "None / 1", "None / -1"]
_N_JOBS = (None, 1, -1)


def _cases():
    """Return a function of n_jobs for each case, by name."""
    X, y = make_classification(20_000, 50, n_informative=20, n_classes=6, random_state=0)
    Z, z = make_classification(3_000, 20, n_informative=10, n_classes=4, random_state=0)
    linear, kernel, grid = widemargin.LinearSVC, widemargin.SVC, {"C": [0.1, 1.0, 10.0, 100.0]}

    def in_threads(n_jobs):
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(lambda seed: kernel(n_jobs=n_jobs, C=10.0).fit(Z, z), range(2)))

    return {
        "LinearSVC alone": lambda n: linear(n_jobs=n, loss="hinge").fit(X, y),
        "LinearSVC, 50 rows": lambda n: [linear(n_jobs=n).fit(X[:50], y[:50]) for _ in range(50)],
        "SVC alone": lambda n: kernel(n_jobs=n, C=10.0).fit(Z, z),
        "GridSearchCV(SVC, n_jobs=-1)": lambda n: GridSearchCV(kernel(n_jobs=n), grid, cv=3, n_jobs=-1).fit(Z, z),
        "BaggingClassifier(LinearSVC, 8, n_jobs=2)": lambda n: BaggingClassifier(
            linear(n_jobs=n), 8, n_jobs=2, random_state=0
        ).fit(X, y),
        "OneVsRestClassifier(LinearSVC, n_jobs=-1)": lambda n: OneVsRestClassifier(linear(n_jobs=n), n_jobs=-1).fit(
            X, y
        ),
        "SVC in two threads of the caller": in_threads,
        "widemargin.grid_search(SVC)": lambda n: widemargin.grid_search(kernel(), Z, z, grid, cv=3, n_jobs=n),
    }


def _seconds(call, repeats):
    """Return the median seconds for each n_jobs; all take turns, after a first turn that is not counted."""
    seconds = {n_jobs: [] for n_jobs in _N_JOBS}
    for turn in range(repeats + 1):
        for n_jobs, found in seconds.items():
            begun = time.perf_counter()
            call(n_jobs)
            if turn:
                found.append(time.perf_counter() - begun)
    return [float(np.median(found)) for found in seconds.values()]


def main():
    """Measure all cases and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--dry", action="store_true", help="print only")
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # that a fit has not converged
    page = Page(_PATH, _INTRODUCTION, _SECTIONS, options.dry)
    for name, call in _cases().items():
        default, one, every = _seconds(call, options.repeats)
        cells = [f"{value:.3g}" for value in (default, one, every)]
        page.put("nested", _COLUMNS, [name, *cells, f"{default / one:.2f}", f"{default / every:.2f}"], n_key=1)
    page.note("nested", f"{machine()}, {versions('widemargin', 'scikit-learn', 'joblib', 'numpy', 'numba')}")


if __name__ == "__main__":
    main()
