"""The first seconds: import, `--version`, and first fits, each in a new process, against scikit-learn.

A first fit is measured with an empty cache of compiled code, with and without the code that comes with the package,
again in a second process that finds the cache, and after `widemargin warmup`. Everything is timed in the new process,
the whole process from outside.
"""

import json
import os
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from functools import cache
from typing import NamedTuple

from benchmarks.machinery.figures import ratio, seconds_of, shown, take_turns
from benchmarks.machinery.page import Frame, Table

_FIT = """
import json, sys, time
begun = time.perf_counter()
import numpy as np
from scipy.sparse import csr_matrix
from {package} import {estimator}
imported = time.perf_counter()
random = np.random.default_rng(0)
X = random.standard_normal((1000, 20))
y = X @ random.standard_normal(20) + random.standard_normal(1000)
X = csr_matrix(X) if {is_sparse} else X
ready = time.perf_counter()
model = {estimator}().fit(X, (10 * y).astype(int) if {has_ranks} else y > 0)
fitted = time.perf_counter()
model.predict(X)
print(json.dumps([imported - begun, fitted - ready, time.perf_counter() - fitted]))
"""
_WITHOUT_SHIPPED_CODE = {"WIDEMARGIN_SHIPPED_CODE": "no"}
FITS = {  # estimator, whether rows are sparse, seconds of fit and predict that are asked for
    "LinearSVC, dense": ("LinearSVC", False, 2.0),
    "LinearSVC, CSR": ("LinearSVC", True, 2.0),
    "SVC, with predict": ("SVC", False, 3.0),
    "RankSVM": ("RankSVM", False, 3.0),
}
COMMANDS = {  # ours, theirs, goal in words
    "import": (["-c", "import widemargin"], ["-c", "import sklearn.svm"], "1.1 times sklearn.svm"),
    "import and name an estimator": (["-c", "from widemargin import SVC"], ["-c", "from sklearn.svm import SVC"], "–"),
    "widemargin --version": (["-m", "widemargin", "--version"], ["-c", "import sklearn"], "0.25 s"),
    "widemargin --help": (["-m", "widemargin", "--help"], ["-c", "import sklearn"], "0.25 s"),
    "python -c pass": (["-c", "pass"], ["-c", "pass"], "–"),
}
_INTRODUCTION = """# The first seconds

Made by `python -m benchmarks run first-seconds`. Every figure is of new processes, the files of which the system has
cached. Ratios are ours / scikit-learn: below 1 is in our favour."""
_SECTIONS = {
    "commands": (
        "Imports and commands",
        """Seconds of the whole process. Where scikit-learn has no such command, `import sklearn` stands beside it.""",
    ),
    "fits": (
        "First fits",
        """Seconds of `fit` and `predict` on 1,000 rows of 20 columns in a new process, importing left out. *Empty
cache*: nothing was compiled before; the package may bring compiled code, which *no shipped code* turns off. *Second
process*: the next one, which finds the cache of the first. *After warmup*: after `widemargin warmup` into an empty
cache. *Whole process*: with importing, empty cache.""",
    ),
    "warmup": ("Warming up", "`widemargin warmup` into an empty cache: seconds, all cores."),
}


class Process(NamedTuple):
    """A new process: the seconds that count, and those of the whole process."""

    seconds: float
    whole: float


def run_python(arguments, folder=None, is_shipped=True):
    """Return the seconds of a new Python process, and what it printed; compiled code is cached in `folder`."""
    environment = dict(os.environ) | ({} if folder is None else {"NUMBA_CACHE_DIR": folder})
    environment |= {} if is_shipped else _WITHOUT_SHIPPED_CODE
    command = [sys.executable, *arguments]
    run = subprocess.run
    return seconds_of(run, command, env=environment, check=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def first_fit(package, label, folder=None, is_shipped=True):
    """Return the Process of a first fit and predict."""
    estimator, is_sparse, _ = FITS[label]
    code = _FIT.format(package=package, estimator=estimator, is_sparse=is_sparse, has_ranks=estimator == "RankSVM")
    whole, done = run_python(["-c", code], folder, is_shipped)
    _, fit, predict = json.loads(done.stdout.splitlines()[-1])
    return Process(fit + predict, whole)


def command_table(page, names, options):
    """Put the seconds of imports and commands."""
    columns = ["what", "ours", "scikit-learn", "ours / scikit-learn", "goal"]
    for name in page.each("commands", names):
        ours, theirs, goal = COMMANDS[name]
        runners = {
            who: lambda arguments=arguments: Process(*2 * [run_python(arguments)[0]])
            for who, arguments in (("ours", ours), ("theirs", theirs))
        }
        found = take_turns(runners, options.repeats, often=1)
        mine, peer = found["ours"][1], found["theirs"][1]
        page.put("commands", columns, [name, shown(mine), shown(peer), ratio(mine, peer), goal], n_key=1)


def fit_table(page, labels, options):
    """Put the seconds of first fits; everybody takes turns, each empty cache is a folder of its own."""
    columns = [
        "what",
        "empty cache, no shipped code",
        "empty cache",
        "second process",
        "after warmup",
        "scikit-learn",
        "goal",
    ]
    columns += ["whole process, empty cache", "whole process, scikit-learn"]
    for label in page.each("fits", labels):
        warm = _warmed() if options.warmup else None
        if warm is not None:
            page.put("warmup", ["command", "seconds"], ["widemargin warmup", f"{warm[1]:.3g}"], n_key=1)
        with ExitStack() as folders:
            runners = _fit_runners(label, folders, warm and warm[0].name)
            found = take_turns(runners, options.first_repeats, often=1)
        cells = [
            shown(found[who][1] if who in found else None) for who in ("bare", "empty", "second", "warm", "theirs")
        ]
        whole = [f"{found[who][0].whole:.3g}" if who in found else "–" for who in ("empty", "theirs")]
        page.put("fits", columns, [label, *cells, f"{FITS[label][2]:g}", *whole], n_key=1)


def _fit_runners(label, folders, warm):
    """Return the runners of a first fit: empty cache twice, the process after it, after warmup, scikit-learn."""
    latest = []

    def empty(is_shipped):
        latest.append(folders.enter_context(tempfile.TemporaryDirectory()))
        return first_fit("widemargin", label, latest[-1], is_shipped)

    runners = {"bare": lambda: empty(False), "empty": lambda: empty(True)}
    runners["second"] = lambda: first_fit("widemargin", label, latest[-1])
    if warm is not None:
        runners["warm"] = lambda: first_fit("widemargin", label, warm)
    if label != "RankSVM":
        runners["theirs"] = lambda: first_fit("sklearn.svm", label)
    return runners


@cache
def _warmed():
    """Return a folder into which `widemargin warmup` compiled, and its seconds; None if there is no such command."""
    folder = tempfile.TemporaryDirectory()
    try:
        seconds, _ = run_python(["-m", "widemargin", "warmup"], folder.name)
    except subprocess.CalledProcessError as error:
        print(f"widemargin warmup ended with {error.returncode}: {error.stderr.decode()[-200:]}", flush=True)
        return None
    return folder, seconds


PAGE = Frame(
    _INTRODUCTION,
    _SECTIONS,
    {
        "commands": Table(command_table, list(COMMANDS), ["import and name an estimator", "widemargin --version"], 1),
        "fits": Table(fit_table, list(FITS), ["LinearSVC, dense", "SVC, with predict"], 7),
    },
    options={"repeats": 9, "first_repeats": 3, "warmup": True},
    quick_options={"repeats": 3, "first_repeats": 1, "warmup": False},
)
