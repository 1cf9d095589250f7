"""Tables of cutting planes: against the OCAS program, plain planes, threads, pairs, shares of the time."""

import tempfile
from pathlib import Path

import numpy as np
from sklearn.base import clone

from benchmarks.machinery.figures import Seconds, ratio, shown
from benchmarks.machinery.page import Table
from benchmarks.planes.runs import (
    COVERTYPE,
    compile_all,
    hinge,
    ours,
    part,
    program,
    repeated,
    stopwatches,
    svmocas,
    timed_fit,
    write_text,
)
from widemargin import OrdinalSVC, ROCAreaSVC

COSTS = [0.01, 1.0, 100.0]
_TURNS = 40  # of fits that are compared per turn
_MEAN_COST = 1e4  # C of a mean loss, where nothing else is said


def program_table(page, names, options):
    """Seconds to a relative gap of 1e-3: svmocas and ours."""
    columns = ["set", "C", "svmocas, 1 thread", "svmocas, 2 threads", "ours, 1 thread", "ours, 2 threads"]
    columns += ["2 threads: theirs / ours", "1 thread: theirs / ours", "best: theirs / ours"]
    columns += ["turns, theirs", "turns, ours", "passes, ours", "objective, theirs", "objective, ours"]
    if program() is None:
        print("svmocas is not installed (Debian: libocas-tools)")
        return
    for name in page.each("ocas-program", names):
        compile_all(name)
        with tempfile.TemporaryDirectory() as folder:
            text = Path(folder) / "rows.txt"
            write_text(name, text)
            for C in COSTS:
                runners = {("theirs", n): svmocas(name, C, options.limit, n, text) for n in (1, 2)}
                runners |= {("ours", n): ours(name, "ocas", C, options.limit, n_jobs=n) for n in (1, 2)}
                page.put(
                    "ocas-program",
                    columns,
                    [name, f"{C:g}", *_program_cells(repeated(runners, options.repeats), options.limit)],
                )


def _program_cells(runs, limit):
    seconds = {key: run.seconds for key, run in runs.items()}
    theirs, mine = runs["theirs", 2], runs["ours", 2]
    best = [min(seconds[who, 1], seconds[who, 2]) for who in ("theirs", "ours")]
    cells = [shown(seconds[who, n], limit) for who in ("theirs", "ours") for n in (1, 2)]
    cells += [ratio(seconds["theirs", n], seconds["ours", n], limit) for n in (2, 1)] + [ratio(*best, limit)]
    cells += [theirs.n_iter, mine.n_iter, f"{mine.passes:.1f}"]
    return [*cells, f"{theirs.objective:.7g}", f"{mine.objective:.7g}"]


def plain_table(page, names, options):
    """Ocas against plain cutting planes: turns and seconds to the same gap."""
    columns = ["set", "C", "turns, svmperf", "turns, ocas", "turns: svmperf / ocas", "seconds, svmperf"]
    columns += ["seconds, ocas", "seconds: svmperf / ocas", "gap reached, svmperf", "passes, svmperf", "passes, ocas"]
    for name in page.each("plain", names):
        compile_all(name)
        for C in COSTS[1:]:
            runners = {one: ours(name, one, C, options.limit, n_jobs=2) for one in ("svmperf", "ocas")}
            plain, best = repeated(runners, options.repeats).values()
            over = ">" if np.isinf(plain.seconds) else ""
            cells = [name, f"{C:g}", f"{over}{plain.n_iter}", best.n_iter, f"{over}{plain.n_iter / best.n_iter:.2f}"]
            cells += [shown(plain.seconds, options.limit), shown(best.seconds, options.limit)]
            cells += [ratio(plain.seconds, best.seconds, options.limit)]
            cells += [f"{plain.gap:.1e}", f"{plain.passes:.0f}", f"{best.passes:.0f}"]
            page.put("plain", columns, cells)


def threads_table(page, names, options):
    """Seconds with one and two threads."""
    columns = ["set", "rows", "C", "solver", "1 thread", "2 threads", "1 / 2", "turns", "objectives agree to"]
    for name in page.each("threads", names):
        compile_all(name)
        for solver in ("ocas", "svmperf"):
            for C in (0.01, 1.0):
                runners = {n: ours(name, solver, C, options.limit, n_jobs=n) for n in (1, 2)}
                one, two = repeated(runners, max(options.repeats, 3)).values()
                apart = f"{abs(one.objective - two.objective) / one.objective:.0e}"
                cells = [
                    name,
                    len(part(name)[1]),
                    f"{C:g}",
                    solver,
                    *(shown(run.seconds, options.limit) for run in (one, two)),
                ]
                cells += [ratio(one.seconds, two.seconds, options.limit), one.n_iter, apart]
                page.put("threads", columns, cells, n_key=4)


def pairs_table(page, names, options):
    """Seconds of the same number of turns: ROC area against hinge, many ranks against two."""
    for name in page.each("pairs", names):
        _, sign = part(name)
        for solver in ("ocas", "svmperf"):
            for n_jobs in (1, 2):
                limits = {"solver": solver, "max_iter": _TURNS, "tol": 0.0, "n_jobs": n_jobs}
                row = hinge(C=_MEAN_COST / len(sign), **limits)
                _put_pair(
                    page,
                    options,
                    (name, solver, n_jobs),
                    ("hinge", row, sign),
                    ("ROC area", ROCAreaSVC(_MEAN_COST, **limits), sign),
                )
        _put_ranks(page, options, f"{name.partition(':')[0]}:{min(len(sign), 200_000)}")


def _put_ranks(page, options, name):
    """Put the rows of ordinal regression: 1,000 ranks against two."""
    X, _ = part(name)
    for solver in ("ocas", "svmperf"):
        for n_jobs in (1, 2):
            model = OrdinalSVC(_MEAN_COST, solver=solver, max_iter=_TURNS, tol=0.0, n_jobs=n_jobs)
            two, many = ((f"{n} ranks", model, ranks(X, n)) for n in (2, 1000))
            _put_pair(page, options, (name, solver, n_jobs), two, many)


def ranks(X, n_ranks):
    """Return targets of so many values, equally frequent: a random linear function of the rows, with noise."""
    random = np.random.default_rng(0)
    scores = X @ random.standard_normal(X.shape[1])
    scores = scores + 0.5 * scores.std() * random.standard_normal(len(scores))
    return np.argsort(np.argsort(scores)) * n_ranks // len(scores)


def _put_pair(page, options, where, first, second):
    """Fit both, taking turns; put seconds per turn, of `fit` and of the turns alone."""
    columns = ["set", "solver", "threads", "what", "against", "rows", "turns", "ms per turn", "against: ms per turn"]
    columns += ["ratio", "seconds of fit", "against: seconds of fit", "ratio of fits"]
    X = part(where[0])[0]
    times, turns, counts = {}, {}, {}
    for turn in range(options.repeats + 1):  # the first turn compiles
        for label, model, y in (first, second):
            model = clone(model)
            seconds = timed_fit(model, X, y)
            if turn:
                times.setdefault(label, []).append(seconds)
                turns.setdefault(label, []).append(1000.0 * model.history_["seconds"][-1] / model.n_iter_)
            counts[label] = model.n_iter_
    (against, _, _), (what, _, _) = first, second
    middle = {label: (Seconds(turns[label]), Seconds(times[label])) for label in (what, against)}
    per_turn, fits = zip(*middle.values(), strict=True)
    numbers = "/".join(str(count) for count in sorted({counts[what], counts[against]}))
    cells = [*where, what, against, X.shape[0], numbers, *map(shown, per_turn)]
    cells += [f"{per_turn[0] / per_turn[1]:.2f}", *map(shown, fits), f"{fits[0] / fits[1]:.2f}"]
    page.put("pairs", columns, cells, n_key=5)


def share_table(page, names, options):
    """What the time goes into."""
    for name in page.each("share", names):
        compile_all(name)
        X, sign = part(name)
        for C in COSTS:
            for solver in ("ocas", "svmperf"):
                model = hinge(solver, C, max_seconds=options.limit / 2)
                with stopwatches() as watches:
                    seconds = timed_fit(model, X, sign)
                total = model.history_["seconds"][-1]
                shares = {label: spent / total for label, (spent, _) in watches.items()}
                columns = ["set", "C", "solver", "turns", "seconds", *shares, "rest of the turns", "outside the turns"]
                cells = [name, f"{C:g}", solver, model.n_iter_, f"{seconds:.3g}", *map(percent, shares.values())]
                page.put(
                    "share",
                    columns,
                    [*cells, percent(1.0 - sum(shares.values())), percent(1.0 - total / seconds)],
                    n_key=3,
                )


def percent(part_of_time):
    """Return a part in words."""
    return f"{100 * part_of_time:.1f}%"


SETS = ["a9a", "w8a", "ijcnn1", "rcv1-vw-1000", COVERTYPE, "20news.bigram.binary"]
TABLES = {
    "ocas-program": Table(program_table, SETS, ["a1a"], 4),
    "threads": Table(threads_table, [COVERTYPE], ["a1a"], 1),
    "pairs": Table(pairs_table, [f"{COVERTYPE}:100000"], ["a1a"], 1),
    "share": Table(share_table, SETS[:4], ["a1a"], 1.5),
    "plain": Table(plain_table, SETS, ["a1a"], 2.5),
}
