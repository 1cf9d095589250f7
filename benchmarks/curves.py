"""The objective against time by benchopt: our solver file beside peers, on the simulated data of our data set file.

`benchopt run` measures; it calls a solver anew for every point of its curve. Here the curves are read from its file.
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from matplotlib.lines import Line2D

from benchmarks.machinery.figures import shown
from benchmarks.machinery.page import Frame, Table
from benchmarks.machinery.state import ROOT
from benchmarks.planes.pictures import COLOURS, MARKERS, log_panels, save

FILES = ROOT / "benchmarks" / "benchopt"
OBJECTIVE = "SVM Binary*"  # benchopt takes parentheses in a pattern for parameters
COSTS = [0.1, 10.0]
EXCESSES = [1e-2, 1e-4, 1e-6, 1e-8]
_SMALLEST = 1e-12  # excess that is drawn
_SOONEST = 2e-4  # seconds; before, nobody has computed anything
_PEERS = ("LIBLINEAR (scikit-learn)", "SGD (scikit-learn)")
_INTRODUCTION = """# Curves by benchopt

Made by `python -m benchmarks run benchopt`, with the files of `benchmarks/benchopt`: a solver and a data
set in the interface of benchopt's `benchmark_linear_svm_binary_classif_no_intercept`, and an objective and peers of
our own. One thread. Each point of a curve is a call from the beginning, ours with a smaller tolerance, LIBLINEAR and
SGD with more iterations.

![The objective against time](../../docs/benchopt.png)"""
_SECTIONS = {
    "curves": (
        "Seconds until the objective is good",
        """Seconds until the objective is within so much, relative, of the best that anybody found; – if it never was.
*Diverged*: benchopt left it out. *At last*: the excess at the end of the curve.""",
    )
}


def curves_table(page, costs, options):
    """Let benchopt run all solvers on all data sets with a C."""
    columns = ["data", "C", "solver", *(f"{goal:g}" for goal in EXCESSES), "at last", "points"]
    for C in page.each("curves", costs):
        table = benchopt_run(C, options)
        for sizes, rows in table.groupby([f"p_dataset_{name}" for name in ("n_samples", "n_features", "density")]):
            data = f"{sizes[0]:,} × {sizes[1]:,}" + (f", {sizes[2]:.1%} not zero" if sizes[2] < 1.0 else "")
            best, drawn = rows["objective_value"].min(), {}
            for solver in rows["solver_name"].unique():
                curve = _curve(rows[rows["solver_name"] == solver], best)
                cells = [shown(_first(curve, goal)) for goal in EXCESSES]
                row = [data, f"{C:g}", _short(solver), *cells, f"{curve[-1][1]:.0e}", len(curve)]
                page.put("curves", columns, row, n_key=3)
                drawn[_short(solver)] = curve
            for solver in set(_PEERS) - set(drawn):
                page.put("curves", columns, [data, f"{C:g}", solver, *["–"] * len(EXCESSES), "diverged", 0], n_key=3)
            page.keep(f"{data}, C = {C:g}", drawn)


def benchopt_run(C, options):
    """Run benchopt on a copy of the files, so that what it caches is not left in the repository; return its table."""
    import pandas as pd  # comes with benchopt

    with tempfile.TemporaryDirectory() as folder:
        copied, output = Path(folder) / "benchmark", Path(folder) / "out" / "curves.parquet"
        shutil.copytree(FILES, copied, ignore=shutil.ignore_patterns("__*"))
        command = [sys.executable, "-m", "benchopt", "run", str(copied), "-l", "-o", f"{OBJECTIVE}[C={C:g}]"]
        command += ["-n", str(options.points), "-r", str(options.repeats), "--timeout", f"{options.limit:g}"]
        command += ["--no-plot", "--output", str(output)]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"benchopt ended with {done.returncode}: {(done.stdout + done.stderr)[-2000:]}")
        found = sorted(output.parent.glob("*.parquet"))
        return pd.read_parquet(found[-1])


def _curve(rows, best):
    """Return (seconds, excess) of a curve: medians over repetitions, the best point so far."""
    points = rows.groupby("stop_val")[["time", "objective_value"]].median().sort_values("time")
    excess = np.minimum.accumulate(points["objective_value"].to_numpy()) / best - 1.0
    return [[float(seconds), float(one)] for seconds, one in zip(points["time"], excess, strict=True)]


def _first(curve, goal):
    return next((seconds for seconds, excess in curve if excess <= goal), None)


def _short(name):
    """Return what a table and a picture call a solver."""
    head, _, parameters = name.partition("[")
    return " ".join([head, *(part.partition("=")[2] for part in parameters.rstrip("]").split(",") if part)])


def finish(page):
    """Draw a panel for each data set and C."""
    if not page.facts:
        return
    n_columns = max(2, -(-len(page.facts) // len(COSTS)))
    figure, panels = log_panels(n_columns, -(-len(page.facts) // n_columns), 6.5, squeeze=False, sharey=True)
    labels = list(dict.fromkeys(label for curves in page.facts.values() for label in curves))
    for axes, (name, curves) in zip(panels, page.facts.items(), strict=False):
        for label, curve in curves.items():
            place = labels.index(label)
            seconds, excess = np.array([point for point in curve if point[0] >= _SOONEST]).T
            style = {"color": COLOURS[place], "marker": MARKERS[place], "markersize": 4, "linewidth": 1.6}
            axes.plot(seconds, np.maximum(excess, _SMALLEST), **style)
        axes.set(xlabel="seconds", ylim=(_SMALLEST, None))
        axes.set_title(name, fontsize=9)
    handles = [Line2D([], [], color=COLOURS[k], marker=MARKERS[k], label=label) for k, label in enumerate(labels)]
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles), frameon=False, fontsize=9)
    for axes in panels[::n_columns]:
        axes.set_ylabel("objective, relative excess")
    save(page, figure, "benchopt.png")


PAGE = Frame(
    _INTRODUCTION,
    _SECTIONS,
    {"curves": Table(curves_table, COSTS, COSTS[:1])},
    options={"points": 25, "repeats": 3, "limit": 5.0},
    quick_options={"points": 8, "repeats": 1, "limit": 1.0},
    finish=finish,
)
