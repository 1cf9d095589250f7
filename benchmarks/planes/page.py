"""Cutting planes: ours against the OCAS program and QP libraries; the figures of the papers again.

Seconds are those of `fit` from data in memory; compiling is kept apart. The program reads a text file; its seconds are
the ocas_time that it prints. Objectives are computed here, by NumPy.
"""

from benchmarks.machinery.page import Frame, Table
from benchmarks.planes import classes, figures, reduced_qp, tables

INTRODUCTION = """# Cutting planes

Made by `python -m benchmarks run cutting-planes`. Seconds are those of `fit` from data in memory. Ratios are theirs /
ours: above 1 is in our favour. Objectives are computed by the benchmark. C is that of one row, ½|w|² + C Σ loss, unless
it is said to be that of a mean loss, C/n Σ loss; hinge loss, no intercept. In a turn `svmperf` takes one plane, `ocas`
one or two; *passes* are visits of rows divided by the number of rows."""
SECTIONS = {
    "ocas-program": (
        "Against the OCAS program",
        """Seconds to a certified relative gap of 1e-3. Theirs: `svmocas -p THREADS -r 1e-3 -b 0 -c C`, version 0.97,
Debian's libocas-tools, its ocas_time (reading the file left out). Ours: `LinearSVC(loss="hinge", solver="ocas",
fit_intercept=False, tol=1e-3)`. *Best*: the better number of threads of each.""",
    ),
    "classes": (
        "Several classes at once, against msvmocas",
        """Crammer and Singer's problem: seconds to a certified relative gap of 0.01, one thread. Theirs:
`msvmocas -r 0.01 -c C`, version 0.97, its ocas_time. Ours: `LinearSVC(multi_class="crammer_singer",
fit_intercept=False, tol=0.01)` with `solver="ocas"`, with `"dcd"`, sweeps over the dual variables of Crammer and
Singer's problem, and with `"auto"`. C is given as a multiple of 1 / mean |x|².""",
    ),
    "plain": (
        "OCAS against plain cutting planes (OCAS, Table 2)",
        "`ocas` and `svmperf`, both ours, two threads, to a relative gap of 1e-3 at a usual and at a large C.",
    ),
    "threads": ("Threads (OCAS, Table 4)", "Seconds with one and two threads on the largest set, gap of 1e-3."),
    "pairs": (
        "Pairs",
        """The same number of turns: ROC area against the hinge loss of rows, and ordinal regression with 1,000 ranks
against two. Per turn: the seconds of the solver's turns divided by their number; the seconds of `fit` have besides the
checks of the input, and for ROC area and ranks the choice of thresholds.""",
    ),
    "share": (
        "What the time goes into",
        """Parts of the seconds of the solver's turns, one thread, hinge loss to a gap of 1e-3 or half the limit.
*Planes*: inner products with the planes so far and their sum w. *Rest*: vector arithmetic of the method itself.
*Outside*: the part of `fit` that is not the solver's: checks of the input, copies.""",
    ),
    "rows": (
        "Time and turns against rows (SVM-Perf, Figures 1 and 2)",
        """Random parts of a set; C of the mean loss 1,000, ordinal 100; `svmperf` to a violation of 1e-3, `ocas` to a
relative gap of 1e-3; one thread. Ordinal: all pairs of rows, targets are real numbers, a random linear function
with noise.

![Time and turns against rows](../../docs/cutting-planes-rows.png)""",
    ),
    "row-exponents": (
        "Exponents of rows",
        f"""Seconds or turns ~ rows^exponent, least squares of logarithms, {figures.LEAST_ROWS:,} rows and more,
runs at the limit left out; and of seconds on the four largest parts, where fixed costs are least.""",
    ),
    "eps": (
        "Turns against eps (SVM-Perf, Figure 5)",
        """`svmperf`, C of the mean loss 10,000, two threads; one run that is looked at whenever the violation passes
eps. The paper has 1/eps^0.3 for turns and 1/eps^0.4 for seconds.

![Turns against eps and C, and errors](../../docs/cutting-planes-eps-and-c.png)""",
    ),
    "eps-exponents": ("Exponents of eps", "Least squares of logarithms, from 5 turns on."),
    "error": (
        "Error of the objective against eps (SVM-Perf, Figure 7)",
        """At the same moments: how far the relaxed objective, which the paper shows, is below the best known, and how
far the objective of the model is above the best lower bound; relative. The paper has 0.1% to 1% at eps 0.001.""",
    ),
    "C": (
        "Turns against C (SVM-Perf, Figure 8)",
        "`svmperf` to a violation of 1e-3, and `ocas` to a relative gap of 1e-3; two threads. The paper has sqrt(C).",
    ),
    "C-exponents": ("Exponents of C", "Of `svmperf`; least squares of logarithms, from 5 turns on."),
    "curves": (
        "The objective against time (OCAS, Figure 2)",
        """Seconds until the objective is within so much (relative) of the best lower bound; C = 1, one thread. Ours by
the solver's own clock, the best point so far where it measured; scikit-learn's SGDClassifier by `partial_fit`, an epoch
each, its best point, evaluation not timed.

![The objective against time](../../docs/cutting-planes-curves.png)""",
    ),
    "reduced-sums": (
        "QP libraries on the reduced problem, by number of planes",
        """Median and largest milliseconds of a solve, the largest relative duality gap, and how many gaps are above
1e-6, over all recorded problems of the table below.""",
    ),
    "reduced": (
        "QP libraries on the reduced problem",
        """Milliseconds and relative duality gap, computed by NumPy from weights made feasible, on Gram matrices
recorded from `ocas` and `svmperf`, no plane dropped. *Warm*: from the weights of the solve before; the others start
anew. Ours is asked for all that double precision gives, libraries for 1e-9. Quadprog needs a definite matrix: a ridge
is raised until it takes it.""",
    ),
}


def finish(page):
    """Add the sums of the reduced problems, the exponents and the pictures."""
    reduced_qp.put_sums(page)
    figures.finish(page)


PAGE = Frame(
    INTRODUCTION,
    SECTIONS,
    tables.TABLES
    | classes.TABLES
    | figures.TABLES
    | {"reduced": Table(reduced_qp.reduced_table, reduced_qp.SETS, ["a1a"], 2)},
    options={"limit": 10.0, "repeats": 3},
    quick_options={"limit": 3.0, "repeats": 1},
    finish=finish,
)
