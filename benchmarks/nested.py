"""Nested threads: searches and ensembles that run in parallel around estimators that have threads of their own.

If the inner fits took all cores inside of each outer job, the machine would be oversubscribed, and the search would be
slower than with inner fits of one thread. The number of threads that are runnable at once is counted meanwhile.
"""

import os
import threading
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
from joblib import parallel_config
from sklearn.ensemble import BaggingClassifier
from sklearn.model_selection import GridSearchCV

from benchmarks.datasets import kernel_set
from benchmarks.machinery.figures import ratio, seconds_of, shown, take_turns
from benchmarks.machinery.load import own_processes, processes
from benchmarks.machinery.page import Frame, Table
from widemargin import SVC, LinearSVC

CORES = os.cpu_count()
OUTER = {
    "GridSearchCV(SVC)": lambda inner: GridSearchCV(SVC(**inner), {"C": [0.5, 2.0, 8.0, 32.0]}, cv=3, n_jobs=-1),
    "GridSearchCV(LinearSVC)": lambda inner: GridSearchCV(
        LinearSVC(**inner), {"C": [0.01, 0.1, 1.0, 10.0]}, cv=3, n_jobs=-1
    ),
    "BaggingClassifier(SVC)": lambda inner: BaggingClassifier(SVC(**inner), 8, n_jobs=-1, random_state=0),
}
BACKENDS = ("loky", "threading")
_INTRODUCTION = """# Nested threads

Made by `python -m benchmarks run nested-threads`: an outer search or ensemble with `n_jobs=-1`, around estimators with
their default number of threads, and with `n_jobs=1`. A ratio of about 1 says that nothing is lost by the default; *most
threads* is the largest number of our threads that were running at the same moment, of samples every 10 ms."""
_SECTIONS = {"nested": ("Seconds", "")}


class Search(NamedTuple):
    """A run: its seconds, and the most threads that ran at once."""

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
    """Call a function; return its seconds and the most running threads, without the one that counts."""
    most, done = [0], threading.Event()

    def count():
        while not done.wait(0.01):
            most.append(running_threads() - 1)

    counter = threading.Thread(target=count)
    counter.start()
    try:
        seconds, _ = seconds_of(function, *arguments)
    finally:
        done.set()
        counter.join()
    return Search(seconds, int(np.percentile(most, 95)))


def nested_table(page, cases, options):
    """Each outer search with each of joblib's backends."""
    columns = ["outer", "backend", "inner default", "inner n_jobs=1", "default / n_jobs=1", "most threads", "cores"]
    X, y = kernel_set(options.set)
    for outer, backend in page.each("nested", cases, ", ".join):
        SVC().fit(X, y), LinearSVC().fit(X, y)
        with parallel_config(backend, n_jobs=CORES):
            runners = {
                label: lambda inner=inner: watched(OUTER[outer](inner).fit, X, y)  # noqa: B023
                for label, inner in (("default", {}), ("one", {"n_jobs": 1}))
            }
            runners["one"]()  # the processes of the outer search are started, and load what is compiled
            time.sleep(0.2)
            found = take_turns(runners, options.repeats, often=1)
        (default, mine), (_, one) = found["default"], found["one"]
        page.put("nested", columns, [outer, backend, shown(mine), shown(one), ratio(mine, one), default.threads, CORES])


CASES = [(outer, backend) for outer in OUTER for backend in BACKENDS]
PAGE = Frame(
    _INTRODUCTION,
    _SECTIONS,
    {"nested": Table(nested_table, CASES, CASES[:1])},
    options={"repeats": 3, "set": "satimage.scale"},
    quick_options={"repeats": 2, "set": "svmguide1"},
)
