"""The papers' figures again: turns and seconds against rows, eps and C, errors of the objective, curves.

In the first four, C is that of a mean loss and svmperf stops by the violation eps, as in SVM-Perf's paper.
"""

import time

import numpy as np
from sklearn.linear_model import SGDClassifier

from benchmarks.linear.liblinear import hinge_objective
from benchmarks.machinery.figures import Seconds, read, shown
from benchmarks.machinery.page import Table
from benchmarks.planes.pictures import draw_curves, draw_eps_and_cost, draw_rows
from benchmarks.planes.runs import COVERTYPE, compile_all, hinge, part, timed_fit
from widemargin import RankSVM

MEAN_COST = 1e4
ROW_COSTS = {"classification": 1e3, "ordinal": 1e2}  # of the mean loss, where rows grow
EPS = 1e-3
EPSILONS = [0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001, 0.0005, 0.0002, 0.0001]
MEAN_COSTS = [1e2, 1e3, 1e4, 1e5, 1e6]
EXCESSES = [1e-1, 1e-2, 1e-3, 1e-4, 1e-5]
_EXACT = 1e-6
_EPOCHS = 300
LEAST_ROWS = 4000  # below, fixed costs show
FEWEST = 5  # turns: what stops earlier says nothing of a power law


def exponent(x, y):
    """Return the exponent of y ~ x^exponent, by least squares of logarithms, in words."""
    return f"{np.polyfit(np.log(x), np.log(y), 1)[0]:.2f}" if len(x) > 1 else "–"


# --- Rows -----------------------------------------------------------------------------------------------------------


def _tasks(name, solver, n_rows, limit):
    """Return model and targets of classification and of ordinal regression, the latter with real-valued targets."""
    X, sign = part(name)
    stop = {"tol": EPS, "stopping": "violation"} if solver == "svmperf" else {"tol": EPS}
    options = {"solver": solver, "max_iter": None, "max_seconds": limit, "n_jobs": 1, **stop}
    targets = X @ np.random.default_rng(0).standard_normal(X.shape[1])
    targets = targets + targets.std() * np.random.default_rng(n_rows).standard_normal(n_rows)
    return {
        "classification": (hinge(C=ROW_COSTS["classification"] / n_rows, **options), sign),
        "ordinal": (RankSVM(ROW_COSTS["ordinal"], **options), targets),
    }


def rows_table(page, names, options):
    """Seconds and turns on growing random parts, and the exponents."""
    columns = ["set", "task", "rows", "seconds, svmperf", "turns, svmperf", "seconds, ocas", "turns, ocas"]
    for name in page.each("rows", names):
        n_all, source = len(part(name)[1]), name.partition(":")[0]
        compile_all(f"{source}:{n_all >> 6}")
        for halvings in range(6, -1, -1):
            n_rows = n_all >> halvings
            some = f"{source}:{n_rows}"
            cells = {}
            for solver in ("svmperf", "ocas"):
                for task, (model, y) in _tasks(some, solver, n_rows, options.limit).items():
                    times = [timed_fit(model, part(some)[0], y) for _ in range(1 + options.repeats * (halvings > 1))]
                    over = ">" if model.status_ != "converged" else ""
                    cells.setdefault(task, []).extend([over + shown(Seconds(times)), f"{over}{model.n_iter_}"])
            for task, values in cells.items():
                page.put("rows", columns, [name, task, n_rows, *values], n_key=3)


def _put_row_exponents(page):
    columns = ["set", "task", "seconds, svmperf", "turns, svmperf", "seconds, ocas", "turns, ocas"]
    columns += ["seconds of the four largest, svmperf", "seconds of the four largest, ocas"]
    for name, task in dict.fromkeys((row[0], row[1]) for row in page.rows("rows")):
        rows = sorted((row[2:] for row in page.rows("rows") if row[:2] == [name, task]), key=lambda row: int(row[0]))
        kept = [row for row in rows if int(row[0]) >= LEAST_ROWS] or rows
        cells = [_row_exponent(kept, column) for column in range(1, 5)]
        page.put("row-exponents", columns, [name, task, *cells, *(_row_exponent(rows[-4:], k) for k in (1, 3))])


def _row_exponent(rows, column):
    points = [(float(row[0]), read(row[column]).value) for row in rows if row[column][0] != ">"]
    return exponent(*np.array(points).T) if points else "–"


# --- Eps, the error of the objective, C -------------------------------------------------------------------------------


def eps_table(page, names, options):
    """One run of svmperf per set gives turns, seconds and the objective's errors at every eps."""
    for name in page.each("eps", names):
        X, sign = part(name)
        C = MEAN_COST / len(sign)
        seen = []
        model = hinge("svmperf", C, tol=EPSILONS[-1], stopping="violation", n_jobs=2, max_seconds=options.limit)
        compile_all(name)
        model.set_params(callbacks=seen.append).fit(X, sign)
        history = model.history_
        exact = hinge("ocas", C, tol=_EXACT, n_jobs=2, max_seconds=options.limit).fit(X, sign)
        best, bound = exact.objective_, max(exact.history_["dual"][-1], history["dual"][-1])
        for eps in EPSILONS:
            reached = [one.iteration for one in seen if one.violation <= eps]
            if reached:
                _put_eps(page, (name, f"{eps:g}"), history[reached[0]], best, bound)


def _put_eps(page, key, at, best, bound):
    columns = ["set", "eps", "turns", "seconds", "passes"]
    page.put("eps", columns, [*key, at["iteration"], f"{at['seconds']:.3g}", f"{at['passes']:.0f}"])
    columns = ["set", "eps", "relaxed objective below the best", "objective above the best"]
    errors = [max(best - at["dual"], 0.0) / best, max(at["primal"] - bound, 0.0) / best]
    page.put("error", columns, [*key, *(f"{one:.1e}" for one in errors)])


def cost_table(page, names, options):
    """Turns and seconds against C."""
    columns = ["set", "C of the mean loss", "turns", "seconds", "turns, ocas", "seconds, ocas"]
    for name in page.each("C", names):
        X, sign = part(name)
        compile_all(name)
        for cost in MEAN_COSTS:
            cells = []
            for solver, stopping in (("svmperf", "violation"), ("ocas", "gap")):
                limits = {"stopping": stopping, "n_jobs": 2, "max_seconds": options.limit}
                model = hinge(solver, cost / len(sign), tol=EPS, **limits)
                seconds = timed_fit(model, X, sign)
                over = ">" if model.status_ != "converged" else ""
                cells += [f"{over}{model.n_iter_}", f"{over}{seconds:.3g}"]
            page.put("C", columns, [name, f"{cost:g}", *cells])


def _put_exponents(page, section, table, column, transformed):
    for name in dict.fromkeys(row[0] for row in page.rows(table)):
        rows = [row for row in page.rows(table) if row[0] == name and row[2][0] != ">" and int(row[2]) >= FEWEST]
        x, turns, seconds = (np.array([read(row[k]).value for row in rows]) for k in (1, 2, 3))
        cells = [exponent(transformed(x), turns), exponent(transformed(x), seconds)]
        page.put(section, ["set", column, column.replace("turns", "seconds")], [name, *cells], n_key=1)


def finish(page):
    """Add the exponents of all rows, and draw."""
    _put_row_exponents(page)
    _put_exponents(page, "eps-exponents", "eps", "turns ~ 1/eps^", lambda x: 1.0 / x)
    _put_exponents(page, "C-exponents", "C", "turns ~ C^", lambda x: x)
    if page.rows("rows"):
        draw_rows(page)
    if page.rows("eps") and page.rows("C"):
        draw_eps_and_cost(page)
    if drawn := {name.partition(": ")[2]: one for name, one in page.facts.items() if name.startswith("curves: ")}:
        draw_curves(page, drawn)


# --- Curves -----------------------------------------------------------------------------------------------------------


def curves_table(page, names, options):
    """The objective against seconds, C = 1 for each row: cutting planes, coordinates, stochastic gradients."""
    for name in page.each("curves", names):
        X, sign = part(name)
        compile_all(name)
        for solver in ("dcd", "avsf"):
            hinge(solver, 1.0, max_iter=2).fit(X, sign)
        curves, bound = {}, 0.0
        for solver in ("svmperf", "ocas", "dcd", "avsf"):
            history = hinge(solver, 1.0, tol=_EXACT, max_seconds=options.limit).fit(X, sign).history_
            curves[solver] = history["seconds"], np.minimum.accumulate(history["primal"])
            bound = max(bound, history["dual"].max())
        curves["SGDClassifier"] = stochastic_gradients(X, sign, 1.0, options.limit)
        drawn = {label: (seconds, primal / bound - 1.0) for label, (seconds, primal) in curves.items()}
        page.keep(
            f"curves: {name}",
            {label: np.array(curve)[:, :: 1 + len(curve[0]) // 500].tolist() for label, curve in drawn.items()},
        )
        for label, (seconds, excess) in drawn.items():
            cells = [_first(seconds, excess, goal) for goal in EXCESSES]
            columns = ["set", "solver", *(f"{goal:g}" for goal in EXCESSES), "at last", "after"]
            page.put("curves", columns, [name, label, *cells, f"{max(excess[-1], 0):.1e}", f"{seconds[-1]:.3g} s"])


def _first(seconds, excess, goal):
    reached = np.flatnonzero(excess <= goal)
    return f"{seconds[reached[0]]:.3g}" if len(reached) else "–"


def stochastic_gradients(X, sign, C, limit):
    """Return seconds and the best objective after each epoch of scikit-learn's SGDClassifier; evaluation not timed."""
    model = SGDClassifier(loss="hinge", alpha=1.0 / (C * len(sign)), fit_intercept=False, random_state=0)
    spent, seconds, objectives = 0.0, [], []
    for _ in range(_EPOCHS):
        begun = time.perf_counter()
        model.partial_fit(X, sign, classes=[-1.0, 1.0])
        spent += time.perf_counter() - begun
        seconds.append(spent)
        objectives.append(hinge_objective(X, sign, C, model.coef_.ravel()))
        if spent > limit:
            break
    return np.array(seconds), np.minimum.accumulate(objectives)


_PART = f"{COVERTYPE}:100000"
TABLES = {
    "rows": Table(rows_table, [COVERTYPE, "w8a"], ["w8a:4000"], 2),
    "eps": Table(eps_table, ["a9a", "w8a", _PART], ["a1a"], 1),
    "C": Table(cost_table, ["a9a", "w8a", _PART], ["a1a"], 1),
    "curves": Table(curves_table, ["a9a", "w8a", COVERTYPE], ["a1a"], 2),
}
