"""Linear SVMs over a grid of C: all our solvers, LIBLINEAR and svmocas, in the same run.

Hinge loss, no intercept, one thread, C = 0.01, 0.1, ... 1000, the grid of AVSF's paper. Seconds are those of `fit` from
data in memory; compiling is kept apart. Objectives are computed here, by NumPy.
"""

from benchmarks.linear import path
from benchmarks.linear.grid import grid_table
from benchmarks.linear.pictures import draw_times
from benchmarks.linear.sums import put_summary, put_sums
from benchmarks.linear.sweeps import sweep_table, thread_table
from benchmarks.linear.words import GRID, SETS
from benchmarks.machinery.page import Frame, Table

INTRODUCTION = """# Linear SVMs over a grid of C

Made by `python -m benchmarks run linear`. Hinge loss, no intercept, one thread, ½|w|² + C Σ loss. Seconds are those of
`fit` from data in memory; the objective is computed by the benchmark. A fit of less than 0.1 s is made twice in its
turn, of which the second counts, so that everybody finds the caches alike. A limit that was reached counts as the limit
in sums and ratios.

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
longer than the limit of a fit, the `tol` of the C before. A search may take three limits. The goal is a ratio of 5.""",
    ),
    "sweeps": (
        "Single sweeps of dual coordinate descent",
        """Milliseconds of one sweep over all rows: the difference between nine sweeps and one, divided by eight; `dcd`
against LIBLINEAR, in each storage that we take. LIBLINEAR has float64 rows of index and value.""",
    ),
    "threads": ("One against the rest in threads", '`LinearSVC(loss="hinge", C=1e-5, tol=3e-2, n_jobs=...)`, seconds.'),
}


def finish(page):
    """Add the sums over C, how far the goals are met, and the picture."""
    if page.rows("grid"):
        put_sums(page)
        put_summary(page)
        draw_times(page)


PAGE = Frame(
    INTRODUCTION,
    SECTIONS,
    {
        "grid": Table(grid_table, SETS, ["ijcnn1", "svmlight-example1"], 15),
        "path": Table(path.path_table, path.SETS, ["german.numer_scale"], 4),
        "sweeps": Table(sweep_table, SETS, ["a1a"], 2),
        "threads": Table(thread_table, ["mnist"], ["dna.scale"], 1),
    },
    options={"limit": 6.0, "repeats": 3, "grid": GRID},
    quick_options={"limit": 2.0, "repeats": 1, "grid": GRID[::2]},
    finish=finish,
)
