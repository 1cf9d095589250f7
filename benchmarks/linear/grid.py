"""The grid of the linear solvers: everybody's seconds for each data set and C, all in the same run.

A lower bound of the optimum is known beforehand, from a run of ours to a smaller gap that is not timed. Whoever ends
with an objective that is not within 1e-3 of the best bound has missed the goal, whatever it says of itself.
"""

import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.datasets import binary
from benchmarks.linear.liblinear import LADDER, Liblinear
from benchmarks.linear.words import COLUMNS, MISSED, OWN
from benchmarks.machinery.figures import ratio, shown
from benchmarks.planes.runs import GAP, Run, hinge, ours, part, program, repeated, svmocas, write_text

# Optimal objectives to a relative 1e-6, from the README of the shared data: what our bounds are checked against.
OPTIMA = {
    "a9a": {0.01: 118.4918, 1.0: 11433.81, 100.0: 1142272.0},
    "w8a": {0.01: 95.37589, 1.0: 6604.889, 100.0: 617485.1, 1000.0: 6164693.0},
    "ijcnn1": {0.01: 100.5784, 1.0: 8596.006, 100.0: 853931.9, 1000.0: 8538779.0},
    "covtype.libsvm.binary.scale": {0.01: 3468.358, 1.0: 337953.0, 100.0: 33784346.0, 1000.0: 337842457.0},
}
_LADDER = [*LADDER, 3e-5, 1e-5, 3e-6, 1e-6]  # where rows are separable, a large C asks for more
_EXACT = 1e-4  # gap of the run that finds the bound
_GROWING = ["dcd", "avsf", "ocas", "LIBLINEAR", "svmocas"]  # not tried again at a larger C once at the limit
_OFTEN = 7  # very short fits are repeated so many times as often
_SHORT = 0.1  # seconds
_PRODUCTS = 5  # X @ w in a row, of which the mean counts
_SOME_ROWS = 3000  # to compile with


def grid_table(page, names, options):
    """Measure every cell; the tolerances that LIBLINEAR needed are kept."""
    for name in page.each("grid", names):
        tolerances = {}
        with Field(name, options) as field:
            for C in options.grid:
                runs, bound, eps = field.compare(C)
                tolerances[f"{C:g}"] = eps
                page.put("grid", COLUMNS, _cells(name, C, runs, bound, eps, options.limit))
        page.keep(f"tolerances: {name}", tolerances)


class Field:
    """Everybody on one data set; entered by `with`, which ends LIBLINEAR's process and deletes svmocas's text."""

    def __init__(self, name, options):
        self.name, self.limit, self.repeats = name, options.limit, options.repeats
        self._solvers, self._at_limit = _compiled(name), set()

    def __enter__(self):
        self._peer = Liblinear(self.name)
        self._folder = tempfile.TemporaryDirectory()
        self._text = Path(self._folder.name) / "rows.txt"
        if program() is not None:
            write_text(self.name, self._text)
        return self

    def __exit__(self, *error):
        self._peer.close()
        self._folder.cleanup()

    def compare(self, C):
        """Return everybody's Run by label, the best lower bound, and LIBLINEAR's tolerance, None at the limit."""
        bound = lower_bound(self.name, C, self.limit)
        eps = None if "LIBLINEAR" in self._at_limit else loosest(self._peer, C, bound, self.limit)
        runs = repeated(self._runners(C, eps), self.repeats, _OFTEN)
        if eps is None:
            self._at_limit.add("LIBLINEAR")
        self._at_limit |= {label for label in _GROWING if label in runs and np.isinf(runs[label].seconds)}
        runs |= dict.fromkeys(self._at_limit - set(runs), _NEVER)
        bound = max(bound, *(run.dual for run in runs.values()))
        optimum = OPTIMA.get(self.name, {}).get(C, np.inf)
        assert bound <= optimum * (1.0 + 1e-5), f"a lower bound of {bound:.7g} is above the optimum, {optimum:.7g}"
        return runs, bound, eps

    def _runners(self, C, eps):
        """Return who runs at this C."""
        runners = {"product": product(self.name)}
        runners |= {solver: ours(self.name, solver, C, self.limit) for solver in self._solvers}
        if eps is not None:
            runners["LIBLINEAR"] = liblinear(self._peer, C, eps, self.limit)
        runners = {label: settled(runner) for label, runner in runners.items()}
        if program() is not None:
            runners["svmocas"] = svmocas(self.name, C, self.limit, 1, self._text)
        return {label: runner for label, runner in runners.items() if label not in self._at_limit}


_NEVER = Run(np.inf, 0, np.nan, np.nan, np.nan)  # at the limit already at a smaller C


def _compiled(name):
    """Fit once with each solver, so that compiling is apart from what is timed; return those that take the set."""
    few, everything, able = part(f"{name}:{_SOME_ROWS}"), part(name), []
    for solver in ("auto", *OWN):
        try:
            for C in (0.01, 1.0, 1000.0):
                hinge(solver, C, max_iter=100).fit(*few)
                hinge(solver, C, max_iter=3).fit(*everything)
        except ValueError as error:
            if solver != "newton":  # which refuses many columns
                raise
            print(f"{name}: {error}", flush=True)
        else:
            able.append(solver)
    return able


def lower_bound(name, C, limit):
    """Return a lower bound of the optimal objective, by a longer run that is not timed."""
    return float(hinge("auto", C, tol=_EXACT, max_seconds=limit).fit(*part(name)).history_["dual"].max())


def misses(objective, bound):
    """Whether an objective is not within 1e-3 of the optimum, of which a lower bound is known."""
    return objective - bound > GAP * objective


def loosest(peer, C, bound, limit):
    """Return the loosest tolerance with which LIBLINEAR's objective is good, None if it reaches the limit before.

    If it never is, the tightest one: it has missed the goal then.
    """
    eps = None
    for eps, _, objective, _ in peer.descend(C, limit, _LADDER):
        if not misses(objective, bound):
            return eps
    return eps if eps == _LADDER[-1] else None


def liblinear(peer, C, eps, limit):
    """Return a runner of LIBLINEAR with a tolerance."""

    def run():
        result = peer.fit(C, eps, limit)
        if result is None:
            return _NEVER
        seconds, objective, dual = result
        return Run(seconds, 0, np.nan, objective, (objective - dual) / objective)

    return run


def settled(runner):
    """Return a runner that runs twice if a run is short, of which the second counts.

    Whoever comes after another process finds caches empty; whoever comes after another run on the same X does not.
    """

    def run():
        first = runner()
        return runner() if first.seconds < _SHORT else first

    return run


def product(name):
    """Return a runner of X @ w, the unit of passes."""
    X, _ = binary(name)
    w = np.random.default_rng(0).standard_normal(X.shape[1])

    def run():
        begun = time.perf_counter()
        for _ in range(_PRODUCTS):
            X @ w
        return Run((time.perf_counter() - begun) / _PRODUCTS, 0, 1.0, np.nan, np.nan)

    return run


def _cells(name, C, runs, bound, eps, limit):
    """Return a row of the table."""
    seconds = {label: _counted(run, bound) for label, run in runs.items()}
    auto, best = seconds["auto"], np.nanmin([seconds[solver] for solver in OWN if solver in seconds])
    told = {label: MISSED if np.isnan(value) else shown(value, limit) for label, value in seconds.items()}
    cells = [name, f"{C:g}", told["auto"], runs["auto"].solver]
    cells += [told.get(label, "") for label in (*OWN, "LIBLINEAR", "svmocas")]
    cells += [_ratio(seconds["LIBLINEAR"], auto, limit), _ratio(auto, best, limit)]
    return [*cells, _passes(auto, seconds["product"], limit), "" if eps is None else f"{eps:g}"]


def _counted(run, bound):
    """Return the seconds, NaN if it ended before the limit but missed the goal."""
    return np.nan if np.isfinite(run.seconds) and misses(run.objective, bound) else run.seconds


def _ratio(above, below, limit):
    return "–" if np.isnan(above + below) else ratio(above, below, limit)


def _passes(seconds, unit, limit):
    return "–" if np.isnan(seconds) else f"{'>' if np.isinf(seconds) else ''}{min(seconds, limit) / unit:.0f}"
