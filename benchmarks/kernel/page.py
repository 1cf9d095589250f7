"""Kernel machines: widemargin against scikit-learn, LIBSVM and scikit-learn-intelex, in the same run.

The rbf kernel, the same eps (KKT violation) and cache for everybody. Each library has a process of its own. A fit that
exceeds the limit is ended; a fit in which something is compiled does not count. Predictions are measured with the
models of the same fits. Objectives are computed by `objective` from everybody's dual variables.
"""

import numpy as np

from benchmarks.datasets import kernel_set
from benchmarks.kernel import memory, scaling
from benchmarks.kernel.cases import HARD, LARGE, QUICK, SMALL
from benchmarks.kernel.objective import objectives
from benchmarks.kernel.peers import CONTENDERS, OURS, OURS_ALL, THREADS, Field
from benchmarks.kernel.turns import BOTH, Fits, Predictions, asked_of
from benchmarks.machinery.page import Frame, Table

PEERS = [label for label in CONTENDERS if label not in BOTH]
ALL = f"{THREADS} threads"
BEYOND_THE_LIMIT = {"covtype.libsvm.binary.scale:30000"}  # nobody is within it with 100 times the C; see kernel-minimum

_WHO = f"""
Threads: scikit-learn 1 (it has no more), intelex {THREADS} (its n_jobs), LIBSVM (OMP_NUM_THREADS) and ours (n_jobs) 1
and {THREADS}. OPENBLAS_NUM_THREADS is 1 in every process."""
INTRODUCTION = """# Kernel machines

Made by `python -m benchmarks run kernel`. The rbf kernel, the same eps (KKT violation) and cache for everybody. Each
library runs in a process of its own. Ratios are theirs / ours: above 1 is in our favour. Regression targets have mean 0
and deviation 1."""
SECTIONS = {
    "training": (
        "Training",
        f"""Seconds of `fit`.{_WHO}
Some sets have a second row with 100 times the C, where LIBSVM with all threads stands for scikit-learn, which has the
same algorithm; covertype with that C takes us longer than the limit and is on the page
[kernel-minimum](kernel-minimum.md). † see the remarks in the table of quality.""",
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
        f"""Seconds of `predict`, each with the model that it fitted above; rows are stored as in training.{_WHO}
*Agreement*: rows that our model and scikit-learn's put into the same class, or the largest difference of
regressions; the rows of odds-shuttle are those of training, some of which lie on the boundary.""",
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
        f"""Seconds ~ rows^exponent by least squares of logarithms, {scaling.LEAST_ROWS:,} rows and more, runs
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
    """Everybody fits and predicts every case; then the quality of the models."""
    for case in page.each(section, cases, _name):
        with Field(case.set, _contenders(section)) as field:
            put_case(page, section, Fits(field, case, options))
            if case.set in HARD - BEYOND_THE_LIMIT:
                labels = [label for label in field.contenders if section == "small" or label != "scikit-learn"]
                put_case(page, section, Fits(field, case.hard(), options, labels))


def _contenders(section):
    """Return who takes part; on large sets LIBSVM has all threads only."""
    return {label: one for label, one in CONTENDERS.items() if section == "small" or label != "LIBSVM, 1 thread"}


def _name(case):
    return case.set


def put_case(page, section, fits):
    """Put all that is told of everybody's fits."""
    put_training(page, section, fits)
    put_quality(page, fits)
    put_prediction(page, Predictions(fits))


def put_training(page, section, fits):
    """Put everybody's seconds."""
    labels = list(_contenders(section))
    columns = ["set", "parameters", "rows", *labels, "scikit-learn / ours, 1 thread"]
    columns += [f"{peer} / ours, {ALL}" for peer in ("scikit-learn", "LIBSVM", "intelex")]
    cells = [fits.case.set, fits.case.shown(), len(kernel_set(fits.case.set)[1])]
    cells += [fits.shown(label) for label in labels] + [fits.ratio("scikit-learn", OURS)]
    page.put(
        section, columns, [*cells, *(fits.ratio(peer, OURS_ALL) for peer in ("scikit-learn", "LIBSVM", "intelex"))]
    )


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


def put_prediction(page, turns):
    """Put seconds of predicting."""
    labels = [OURS, OURS_ALL, "scikit-learn", "intelex"]
    columns = ["set", "parameters", "rows", "support vectors", *labels, "scikit-learn / ours, 1 thread"]
    columns += [f"scikit-learn / ours, {ALL}", f"intelex / ours, {ALL}", "agreement"]
    cells = [turns.case.set, turns.case.shown(), turns.n_rows, turns.n_support, *(turns.shown(one) for one in labels)]
    cells += [turns.ratio("scikit-learn", OURS), turns.ratio("scikit-learn", OURS_ALL)]
    page.put("prediction", columns, [*cells, turns.ratio("intelex", OURS_ALL), turns.agreement()])


def influence_table(page, cases, options):
    """Our seconds against the working set's size, the cache's size and shrinking."""
    variations = {"as it comes": {}}
    variations |= {f"working set {2**power}": {"working_set": 2**power} for power in range(1, 12)}
    variations |= {f"cache {size} MB": {"cache_size": size} for size in (10, 50, 200, 1000)}
    variations |= {"no shrinking": {"shrinking": False}}
    variations |= {"no shrinking, cache 50 MB": {"shrinking": False, "cache_size": 50}}
    columns = ["set", "variation", "seconds", "turns", "rows computed", "support vectors' rows"]
    for case in page.each("influence", cases, _name):
        with Field(case.set, {OURS: CONTENDERS[OURS]}) as field:
            for name, changes in variations.items():
                asked = asked_of(case, options) | {"solver": "svmlight"} | changes
                page.put("influence", columns, [case.set, name, *_influence_cells(field, asked, options)])


def _influence_cells(field, asked, options):
    fit = field.fit(OURS, asked, options.influence_limit)
    if fit is None:
        return [f">{options.influence_limit:g}", "–", "–", "–"]
    counts = fit.counts
    return [f"{fit.seconds:.3g}", counts["turns"], f"{counts['computed']:.0f}", counts["support"]]


def small_table(page, cases, options):
    """As `training_table`, in a section of its own."""
    training_table(page, cases, options, section="small")


PAGE = Frame(
    INTRODUCTION,
    SECTIONS,
    {
        "training": Table(training_table, LARGE, [QUICK[0], LARGE[2]], 24),
        "small": Table(small_table, SMALL, QUICK[1:4], 12),
        "scaling": Table(scaling.scaling_table, scaling.CASES, scaling.CASES[:1], 5),
        "influence": Table(influence_table, LARGE[:3], QUICK[:1], 2.5),
        "memory": Table(memory.memory_table, [memory.CASE], [memory.QUICK], 2.5),
    },
    options={"limit": 35.0, "patience": 2.0, "repeats": 3, "cache": 1000.0, "tol": 1e-3, "influence_limit": 5.0},
    quick_options={"limit": 20.0, "repeats": 3, "patience": 2.0},
    finish=scaling.finish,
)
