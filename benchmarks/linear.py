"""Linear SVMs over a grid of C: all our solvers, LIBLINEAR and svmocas, in the same run.

    python -m benchmarks.linear                             everything, some hours; writes the page, draws
    python -m benchmarks.linear --tables grid --sets a9a    one table, one set: replaces those rows of the page
    python -m benchmarks.linear --quick                     tiny sets, printed only

Hinge loss, no intercept, one thread, C = 0.01, 0.1, ... 1000, the grid of AVSF's paper. Seconds are those of `fit` from
data in memory, medians, everybody taking turns; compiling is kept apart. Objectives are computed here, by NumPy.
"""

import argparse
import os
import warnings

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import widemargin
from benchmarks import linear_dual, linear_path
from benchmarks.linear_grid import grid_table
from benchmarks.linear_path import path_table
from benchmarks.linear_pictures import RESULT
from benchmarks.linear_sums import put_summary, put_sums
from benchmarks.page import Page, machine, versions

INTRODUCTION = """# Linear SVMs over a grid of C

Made by `python -m benchmarks.linear`, parts by `--tables` and `--sets`. Hinge loss, no intercept, one thread,
½|w|² + C Σ loss. Seconds are medians of `fit` from data in memory, everybody taking turns; the objective is computed by
the benchmark. A fit of less than 0.1 s is made twice in its turn, of which the second counts, so that everybody finds
the caches alike. `>`: the time limit was reached, and counts as the limit in sums and ratios.

Ours stop at a certified relative gap of 1e-3: `LinearSVC(loss="hinge", fit_intercept=False, tol=1e-3, solver=...)`.
LIBLINEAR is scikit-learn's LinearSVC without its sweep limit, with the loosest `tol` of a ladder with which its
objective is within 1e-3 of the best lower bound that ours proved (the best of all runs and of one to a gap of 1e-4 that
is not timed), which is less than a certificate. svmocas is `svmocas -p 1 -r 1e-3 -b 0 -c C`, version 0.97, Debian's
libocas-tools; its seconds are its ocas_time, reading the file left out."""
SECTIONS = {
    "summary": (
        "Goals",
        "From the tables below. *Best own*: the fastest of `dcd`, `avsf`, `climb`, `newton` and `ocas` in that cell.",
    ),
    "sums": (
        "Sums over C",
        """Seconds over the whole grid. The goal is that of LIBLINEAR / auto. *auto / best own*: against the sum of the
fastest of each cell.""",
    ),
    "grid": (
        "Every cell",
        """*Passes*: seconds divided by those of one `X @ w`, SciPy's, in the same turns. Empty: `newton` is for up to
3,000 columns. `dcd`, `avsf`, `ocas`, LIBLINEAR and svmocas are not tried again once they have reached the limit at a
smaller C. *missed*: it ended, but its objective is not within 1e-3.

![Seconds against C](../../docs/linear-time.png)""",
    ),
    "path": (
        "The whole grid with folds",
        """Seconds for all six C with 5-fold cross-validation, and the best mean accuracy. Ours:
`c_path(LinearSVC(loss="hinge", fit_intercept=False, tol=1e-3), X, y, Cs, cv=5)`, which also fits all rows for
each C. Theirs: `GridSearchCV(LinearSVC(loss="hinge", fit_intercept=False), {"C": Cs}, cv=5, n_jobs=2, refit=False)`, in
threads, so that no process has to be started. *As it comes*: `tol=1e-4` and at most 1,000 sweeps, which at a large C is
not the optimum. *To 1e-3*: no sweep limit, for each C the loosest `tol` that is good enough on all rows; if that takes
longer than the limit of a fit, the `tol` of the C before. A search may take five limits. The goal is a ratio of 5.""",
    ),
}
TABLES = {  # name: function, sets, sets if quick
    "grid": (grid_table, linear_dual.SETS, ["a1a", "svmlight-example1"]),
    "sums": (put_sums, linear_dual.SETS, ["a1a", "svmlight-example1"]),
    "summary": (put_summary, linear_dual.SETS, ["a1a"]),
    "path": (path_table, linear_path.SETS, ["diabetes_scale"]),
}


def note(options):
    """Return what a table rests on."""
    return (
        f"Last run: {machine()}; widemargin {widemargin.__version__}, {versions('numpy', 'numba', 'scikit-learn')}; "
        f"limit {options.limit:g} s a fit, {options.repeats} repeats."
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--tables", nargs="+", choices=TABLES, default=["grid", "path"], help="grid makes sums and summary too"
    )
    parser.add_argument("--sets", nargs="+", help="instead of a table's own")
    parser.add_argument("--limit", type=float, default=120.0, help="seconds for one fit")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="tiny sets; print only, write nothing")
    options = parser.parse_args()
    if options.quick:
        options.limit, options.repeats = min(options.limit, 5.0), 1
    warnings.simplefilter("ignore")
    page = Page(RESULT, INTRODUCTION, SECTIONS, dry=options.quick)
    for name in options.tables:
        table, names, quick = TABLES[name]
        table(page, options.sets or (quick if options.quick else names), options)
        if name in ("grid", "path"):
            page.note(name, note(options))


if __name__ == "__main__":
    main()
