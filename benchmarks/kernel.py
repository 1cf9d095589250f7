"""Kernel machines: widemargin against scikit-learn, LIBSVM and scikit-learn-intelex, in the same run.

    python -m benchmarks.kernel                                everything, some hours; writes results/kernel.md
    python -m benchmarks.kernel --tables training --sets a9a   one table, one set: replaces those rows of the page
    python -m benchmarks.kernel --quick                        small sets and short limits, printed only

The rbf kernel, the same eps (KKT violation) and cache for everybody. Each library has a process of its own; they take
turns, and times are medians. A fit that exceeds the limit is ended and marked >. The first fit of a process is
discarded where fits are short; a fit in which something is compiled does not count. Objectives are computed by
`kernel_objective` from everybody's multipliers.
"""

import argparse
import statistics
import warnings
from pathlib import Path

import numpy as np

import widemargin
from benchmarks import kernel_memory, kernel_scaling
from benchmarks.datasets import kernel_set, preparation
from benchmarks.kernel_cases import FULL, LARGE, QUICK, SMALL, Case
from benchmarks.kernel_objective import objectives
from benchmarks.kernel_peers import CONTENDERS, OURS, OURS_ALL, THREADS, Field
from benchmarks.kernel_turns import Fits, Predictions, asked_of
from benchmarks.page import Page, machine, versions

RESULT = Path(__file__).parent / "results" / "kernel.md"
PEERS = [label for label in CONTENDERS if label not in (OURS, OURS_ALL)]
ALL = f"{THREADS} threads"

_WHO = f"""
Threads: scikit-learn 1 (it has no more), intelex {THREADS} (its n_jobs), LIBSVM (OMP_NUM_THREADS) and ours (n_jobs) 1
and {THREADS}. OPENBLAS_NUM_THREADS is 1 in every process."""
INTRODUCTION = """# Kernel machines

Made by `python -m benchmarks.kernel`, parts by `--tables` and `--sets`. Each library runs in a process of its own, all
in the same run, taking turns; seconds are medians. Ratios are theirs / ours: above 1 is in our favour. `>` marks a time
limit that was reached, and a ratio that is at least so much. Regression targets have mean 0 and deviation 1."""
SECTIONS = {
    "training": (
        "Training",
        f"""Seconds of `fit`.{_WHO}
The second row of a set has 100 times the C (one-class: a tenth of nu). The ratio to LIBSVM is that of its
better time. † see the remarks in the table of quality.""",
    ),
    "small": ("Training on small sets", f"As above, sets of 600 to 12,000 rows.{_WHO}"),
    "quality": (
        "Quality of these models",
        """Two numbers each: the relative excess of the primal objective over the best lower bound known, and how far
the dual objective is below it. The bound is the largest dual value of anybody's feasible multipliers; objectives of
all pairs of classes are added; computed by NumPy in double precision from everybody's multipliers and intercepts.
*infeasible*: multipliers outside their bounds, or not of the sum that they must have.""",
    ),
    "prediction": (
        "Prediction",
        f"""Seconds of `predict` on dense rows, each with its own model of the same parameters.{_WHO}
*Agreement*: rows that our model and scikit-learn's put into the same class, or the largest difference of
regressions; the rows of odds-shuttle are those of training, some of which lie on the boundary.""",
    ),
    "minimum": (
        "Time against the minimum",
        """The minimum is the time of computing the kernel rows of the support vectors once, by our own block code in
the same precision, into memory that is there already; with several classes, each pair's support vectors against its
rows. Rows computed count in proportion to their columns where the problem has shrunk. *In cache*: the part of the
support vectors' rows that fits, on average over pairs of classes.""",
    ),
    "influence": (
        "Influence of the working set, the cache and shrinking",
        """Our `svmlight`, one thread. What a row does not name is as in the first row of its set: the default working
set, the cache of the note below, shrinking on.""",
    ),
    "scaling": (
        "Time against the number of rows",
        f"""The adult series and growing parts of w8a, C 1, gamma 0.05; `smo` is ours too.{_WHO}

![Time against rows](../../docs/kernel-scaling.png)""",
    ),
    "exponents": (
        "Fitted exponents",
        f"""Seconds ~ rows^exponent by least squares of logarithms, {kernel_scaling.LEAST_ROWS:,} rows and more, runs
that reached the limit left out.""",
    ),
    "memory": (
        "Memory",
        """Largest resident memory of a process while it fits, less what it held before (interpreter, libraries, data,
what a first small fit left), with the data added again; allowed are the cache and three times the data. One thread of
OpenBLAS.""",
    ),
}


def training_table(page, cases, options, section="training"):
    """Seconds of everybody on every case, and the quality of the models."""
    columns = ["set", "parameters", "rows", OURS, OURS_ALL, *PEERS, "scikit-learn / ours, 1 thread"]
    columns += [f"{peer} / ours, {ALL}" for peer in ("scikit-learn", "LIBSVM", "intelex")]
    for case in cases:
        with Field(case.set, options.contenders) as field:
            for one in _variants(case, options):
                fits = Fits(field, one, options)
                cells = [case.set, one.shown(), len(kernel_set(case.set)[1])]
                cells += [fits.shown(label) for label in (OURS, OURS_ALL, *PEERS)]
                cells += [fits.ratio("scikit-learn", OURS)]
                cells += [fits.ratio(peer, OURS_ALL) for peer in ("scikit-learn", "LIBSVM", "intelex")]
                page.put(section, columns, cells)
                put_quality(page, fits)
            options.absent |= field.absent


def _variants(case, options):
    return (case, case.hard()) if options.hard and case not in FULL else (case,)


def put_quality(page, fits):
    """Judge all models of a case."""
    case, labels = fits.case, list(fits.fits)
    columns = [
        "set",
        "parameters",
        "support vectors, ours / scikit-learn",
        "best bound",
        OURS,
        OURS_ALL,
        *PEERS,
        "remarks",
    ]
    if not labels:
        page.put("quality", columns, [case.set, case.shown(), *["–"] * (len(columns) - 3), "all reached the limit"])
        return
    X, y = kernel_set(case.set)
    values = objectives(case.kind, X, y, case.parameters(), [fits.fits[label].model for label in labels])
    judged = dict(zip(labels, values, strict=True))
    bound = max((one.dual for one in values if one.feasible), default=-np.inf)
    n_support = {label: len(fits.fits[label].model.support) for label in labels}
    remarks = "; ".join(f"{label}: {text}" for label, text in fits.remarks.items())
    page.put("quality", columns, [
        case.set, case.shown(), f"{n_support.get(OURS, '–')} / {n_support.get('scikit-learn', '–')}", f"{bound:.7g}",
        *(_excess(judged.get(label), bound) for label in (OURS, OURS_ALL, *PEERS)), remarks or "–",
    ])  # fmt: skip


def _excess(objective, bound):
    if objective is None:
        return "–"
    excess, shortfall = (objective.primal - bound) / abs(bound), (bound - objective.dual) / abs(bound)
    return f"{excess:.1e}, {shortfall:.1e}" + ("" if objective.feasible else " infeasible")


def prediction_table(page, cases, options):
    """Seconds of predicting, everybody by a model of its own."""
    labels = [OURS, OURS_ALL, "scikit-learn", "intelex"]
    columns = ["set", "parameters", "rows", "support vectors", *labels, "scikit-learn / ours, 1 thread"]
    columns += [f"scikit-learn / ours, {ALL}", f"intelex / ours, {ALL}", "agreement"]
    contenders = {label: options.contenders[label] for label in labels if label in options.contenders}
    for case in cases:
        if not preparation(case.set).dense:
            continue
        with Field(case.set, contenders) as field:
            turns = Predictions(field, case, options)
            cells = [case.set, case.shown(), turns.n_rows, turns.n_support, *(turns.shown(label) for label in labels)]
            cells += [turns.ratio("scikit-learn", OURS), turns.ratio("scikit-learn", OURS_ALL)]
            page.put("prediction", columns, [*cells, turns.ratio("intelex", OURS_ALL), turns.agreement()])


def minimum_table(page, cases, options):
    """Seconds against computing the support vectors' rows once."""
    columns = ["set", "parameters", "threads", "seconds", "minimum", "seconds / minimum", "support vectors' rows"]
    columns += ["rows computed", "computed / support vectors' rows", "in cache"]
    ours = {label: CONTENDERS[label] for label in (OURS, OURS_ALL)}
    for case in cases:
        with Field(case.set, ours) as field:
            for one in _variants(case, options):
                for label, contender in ours.items():
                    cells = [case.set, one.shown(), contender.options["n_jobs"]]
                    page.put("minimum", columns, [*cells, *_minimum_cells(field, label, one, options)], n_key=3)


def _minimum_cells(field, label, case, options):
    times, minima = [], []
    while len(times) < options.repeats:
        fit = field.fit(label, asked_of(case, options), options.limit)
        if fit is None:
            return [f">{options.limit:.0f}", *["–"] * 6]
        times.append(fit.seconds)
        minima.append(field.minimum(label))
        if fit.seconds > options.patience:
            break
    counts, seconds, minimum = fit.counts, statistics.median(times), statistics.median(minima)
    held = min(1.0, options.cache * 2**20 * counts["problems"] / counts["bytes"])
    per_row = counts["computed"] / counts["support"]
    cells = [f"{seconds:.3g}", f"{minimum:.3g}", f"{seconds / minimum:.2f}", counts["support"]]
    return [*cells, f"{counts['computed']:.0f}", f"{per_row:.2f}", f"{100 * held:.0f}%"]


def influence_table(page, cases, options):
    """Our seconds against the working set's size, the cache's size and shrinking."""
    variations = {"as it comes": {}}
    variations |= {f"working set {2**power}": {"working_set": 2**power} for power in range(1, 12)}
    variations |= {f"cache {size} MB": {"cache_size": size} for size in (10, 50, 200, 1000)}
    variations |= {"no shrinking": {"shrinking": False}}
    variations |= {"no shrinking, cache 50 MB": {"shrinking": False, "cache_size": 50}}
    columns = ["set", "variation", "seconds", "turns", "rows computed", "support vectors' rows"]
    for case in cases:
        with Field(case.set, {OURS: CONTENDERS[OURS]}) as field:
            for name, changes in variations.items():
                asked = asked_of(case, options) | {"solver": "svmlight"} | changes
                page.put("influence", columns, [case.set, name, *_influence_cells(field, asked, options)])


def _influence_cells(field, asked, options):
    times = []
    while len(times) < options.repeats:
        fit = field.fit(OURS, asked, options.limit)
        if fit is None:
            return [f">{options.limit:.0f}", "–", "–", "–"]
        times.append(fit.seconds)
        if fit.seconds > options.patience:
            break
    counts = fit.counts
    return [f"{statistics.median(times):.3g}", counts["turns"], f"{counts['computed']:.0f}", counts["support"]]


def small_table(page, cases, options):
    """As `training_table`, in a section of its own."""
    training_table(page, cases, options, section="small")


TABLES = {  # name: function, cases, cases if quick
    "training": (training_table, LARGE, QUICK),
    "small": (small_table, SMALL, QUICK[:2]),
    "prediction": (prediction_table, LARGE, QUICK),
    "minimum": (minimum_table, LARGE, QUICK),
    "influence": (influence_table, LARGE[:3], QUICK[:1]),
    "scaling": (kernel_scaling.scaling_table, kernel_scaling.CASES, kernel_scaling.QUICK),
    "memory": (kernel_memory.memory_table, [kernel_memory.CASE], QUICK[1:2]),
}
NOTED = {"training": ["training", "quality"], "small": ["small", "quality"], "scaling": ["scaling", "exponents"]}


def chosen(name, cases, options):
    """Return the cases of a table, or those of the sets asked for; sets that no table has get C 1 and usual gamma."""
    if options.sets is None:
        return [*cases, *FULL] if options.full and name in ("training", "minimum") else cases
    known = {case.set: case for case in [*QUICK, *SMALL, *FULL, *LARGE, *kernel_scaling.CASES, *cases]}
    return [known.get(name, Case(name, 1.0)) for name in options.sets]


def note(options):
    """Return what the tables rest on."""
    absent = "".join(f"; {label} does not load ({reason})" for label, reason in options.absent.items())
    packages = versions("numpy", "numba", "scikit-learn", "libsvm-official", "scikit-learn-intelex")
    return (
        f"Last run: {machine()}; widemargin {widemargin.__version__}, {packages}{absent}; "
        f"limit {options.limit:g} s a fit, {options.repeats} repeats, eps {options.tol:g}, cache {options.cache:g} MB."
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", nargs="+", choices=TABLES, default=list(TABLES))
    parser.add_argument("--sets", nargs="+", help="instead of a table's own; a random part of a set is NAME:ROWS")
    parser.add_argument("--contenders", nargs="+", choices=list(CONTENDERS), default=list(CONTENDERS))
    parser.add_argument("--limit", type=float, default=200.0, help="seconds for one fit")
    parser.add_argument("--patience", type=float, default=20.0, help="fits that take longer are run once")
    parser.add_argument("--repeats", type=int, default=3, help="turns; more for fits below a second")
    parser.add_argument("--cache", type=float, default=1000.0, help="cache in MB, the same for everybody")
    parser.add_argument("--tol", type=float, default=1e-3, help="LIBSVM's eps, the same for everybody")
    parser.add_argument("--no-hard", dest="hard", action="store_false", help="leave out the cases with a large C")
    parser.add_argument("--full", action="store_true", help="all 60,000 rows of mnist too, with one C")
    parser.add_argument("--quick", action="store_true", help="tiny sets; print only, write nothing")
    options = parser.parse_args()
    if options.quick:
        options.limit, options.repeats = min(options.limit, 30.0), 1
    options.contenders = {label: CONTENDERS[label] for label in options.contenders}
    options.absent = {}
    warnings.simplefilter("ignore")
    page = Page(RESULT, INTRODUCTION, SECTIONS, dry=options.quick)
    for name in options.tables:
        table, cases, quick = TABLES[name]
        table(page, chosen(name, quick if options.quick else cases, options), options)
        for section in NOTED.get(name, [name]):
            page.note(section, note(options))


if __name__ == "__main__":
    main()
