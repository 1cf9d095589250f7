"""Threads by default, alone and inside the parallel tools of scikit-learn: is the machine used, and never twice?

Each case is run with estimators whose n_jobs is None (the default), 1, and -1, in turns. Alone, None should be as fast
as -1. Inside tools that use all cores by themselves it should be as fast as 1: a larger number of threads than cores
makes each of them wait. The threads that run at the same moment are counted meanwhile.
"""

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from sklearn.datasets import make_classification
from sklearn.ensemble import BaggingClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier

from benchmarks.machinery.figures import ratio, seconds_of, shown, take_turns
from benchmarks.machinery.load import own_processes, processes
from benchmarks.machinery.page import Frame, Table
from widemargin import SVC, LinearSVC, grid_search

N_JOBS = (None, 1, -1)
GRID = {"C": [0.1, 1.0, 10.0, 100.0]}
_INTRODUCTION = """# Threads by default, alone and nested

Made by `python -m benchmarks run nested-threads`: seconds of a fit whose estimators have `n_jobs` None, 1 and -1.
Alone, None should be as fast as -1; inside a tool that uses all cores by itself, as fast as 1. Generated data: 20,000
rows of 50 columns for linear models, 3,000 rows of 20 columns for kernel machines."""
_SECTIONS = {
    "nested": (
        "Seconds",
        """*Threads*: how many of our threads were running at the same moment with None, of samples every 10 ms; 95 in
100 samples had at most so many.""",
    )
}


@cache
def _linear_rows():
    return make_classification(20_000, 50, n_informative=20, n_classes=6, random_state=0)


@cache
def _kernel_rows():
    return make_classification(3_000, 20, n_informative=10, n_classes=4, random_state=0)


def _small_fits(n):
    X, y = _linear_rows()
    for _ in range(50):
        LinearSVC(n_jobs=n).fit(X[:50], y[:50])


def _in_threads(n):
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda _: SVC(n_jobs=n, C=10.0).fit(*_kernel_rows()), range(2)))


CASES = {
    "LinearSVC alone": lambda n: LinearSVC(n_jobs=n, loss="hinge").fit(*_linear_rows()),
    "LinearSVC, 50 rows, 50 times": _small_fits,
    "SVC alone": lambda n: SVC(n_jobs=n, C=10.0).fit(*_kernel_rows()),
    "GridSearchCV(SVC, n_jobs=-1)": lambda n: GridSearchCV(SVC(n_jobs=n), GRID, cv=3, n_jobs=-1).fit(*_kernel_rows()),
    "BaggingClassifier(LinearSVC, 8, n_jobs=2)": lambda n: BaggingClassifier(
        LinearSVC(n_jobs=n), 8, n_jobs=2, random_state=0
    ).fit(*_linear_rows()),
    "OneVsRestClassifier(LinearSVC, n_jobs=-1)": lambda n: OneVsRestClassifier(LinearSVC(n_jobs=n), n_jobs=-1).fit(
        *_linear_rows()
    ),
    "SVC in two threads of the caller": _in_threads,
    "widemargin.grid_search(SVC)": lambda n: grid_search(SVC(), *_kernel_rows(), GRID, cv=3, n_jobs=n),
}


class Watched(NamedTuple):
    """A call: its seconds, and how many threads ran at once."""

    seconds: float
    threads: int


def running_threads():
    """Return how many threads of this process and its descendants are running at this moment."""
    states = []
    for number in own_processes(processes()):
        for path in Path(f"/proc/{number}/task").glob("*/stat"):
            try:
                states.append(path.read_text().rpartition(")")[2].split()[0])
            except OSError:  # it has ended
                continue
    return states.count("R")


def watched(function, *arguments):
    """Call a function; count running threads meanwhile, without the one that counts."""
    counts, done = [0], threading.Event()

    def count():
        while not done.wait(0.01):
            counts.append(running_threads() - 1)

    counter = threading.Thread(target=count)
    counter.start()
    try:
        seconds, _ = seconds_of(function, *arguments)
    finally:
        done.set()
        counter.join()
    return Watched(seconds, int(np.percentile(counts, 95)))


def nested_table(page, names, options):
    """Each case with each n_jobs, in turns; the call whose threads are counted is not timed."""
    columns = ["case", "None", "1", "-1", "None / 1", "None / -1", "threads", "cores"]
    for name in page.each("nested", names):
        call = CASES[name]
        for n_jobs in N_JOBS:  # what is compiled, and the processes of tools, are there
            call(n_jobs)
        runners = {n_jobs: lambda n=n_jobs, call=call: Watched(seconds_of(call, n)[0], 0) for n_jobs in N_JOBS}
        default, one, every = (seconds for _, seconds in take_turns(runners, options.repeats).values())
        cells = [*map(shown, (default, one, every)), ratio(default, one), ratio(default, every)]
        page.put("nested", columns, [name, *cells, watched(call, None).threads, os.cpu_count()], n_key=1)


PAGE = Frame(
    _INTRODUCTION,
    _SECTIONS,
    {"nested": Table(nested_table, list(CASES), ["SVC alone", "GridSearchCV(SVC, n_jobs=-1)"])},
    options={"repeats": 3},
    quick_options={"repeats": 2},
)
