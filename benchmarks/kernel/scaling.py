"""Time against the number of rows, as SVM-light's paper has it: the table, the exponents and the picture."""

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from benchmarks.datasets import kernel_set
from benchmarks.kernel.cases import Case
from benchmarks.kernel.peers import CONTENDERS, OURS, OURS_ALL, Contender, Field
from benchmarks.kernel.turns import Fits
from benchmarks.machinery.figures import read

LEAST_ROWS = 4000  # below, fixed costs show
TITLES = {"a": "adult, a1a to a9a", "w": "parts of w8a"}  # by the first letter of the set
_TICKS = [2_000, 5_000, 10_000, 20_000, 50_000]
_SETS = ["a1a", "w8a:1500", "w8a:3000", "a4a", "a5a", "w8a:6000", "w8a:12000", "a8a", "w8a:24000", "w8a", "a9a"]
CASES = [Case(name, 1.0, 0.05) for name in _SETS]
SMO = "ours, smo, 1 thread"
CURVES = {  # column of the table: colour, marker
    OURS: ("#0072B2", "o"),
    OURS_ALL: ("#56B4E9", "v"),
    SMO: ("#009E73", "s"),
    "scikit-learn": ("#D55E00", "D"),
    "intelex": ("#CC79A7", "P"),
}


def scaling_table(page, cases, options):
    """Measure everybody on growing sets."""
    wanted = {OURS: CONTENDERS[OURS], OURS_ALL: CONTENDERS[OURS_ALL]}
    wanted |= {SMO: Contender("widemargin", {"n_jobs": 1, "solver": "smo"})}
    wanted |= {label: one for label, one in CONTENDERS.items() if label in CURVES}
    for case in page.each("scaling", cases, lambda case: case.set):
        with Field(case.set, wanted) as field:
            fits = Fits(field, case, options)
            cells = [fits.shown(label).rstrip(" †") for label in CURVES]
            page.put("scaling", ["set", "rows", *CURVES], [case.set, len(kernel_set(case.set)[1]), *cells])


def finish(page):
    """Add the exponents and the picture."""
    if page.rows("scaling"):
        put_exponents(page)
        draw(page)


def points(page, series, column):
    """Return rows, seconds, and whether the limit was reached, of one column of a series."""
    rows = [row for row in page.rows("scaling") if row[0][0] == series and read(row[2 + column])]
    rows.sort(key=lambda row: int(row[1]))
    cells = [row[2 + column] for row in rows]
    seconds = np.array([read(cell).value for cell in cells])
    return np.array([int(row[1]) for row in rows]), seconds, np.array([cell[0] == ">" for cell in cells], dtype=bool)


def put_exponents(page):
    """Fit seconds ~ rows^exponent to each column of each series."""
    for series, title in TITLES.items():
        cells = [_exponent(*points(page, series, column)) for column in range(len(CURVES))]
        page.put("exponents", ["series", *CURVES], [title, *cells], n_key=1)


def _exponent(n_rows, seconds, reached):
    kept = (n_rows >= LEAST_ROWS) & ~reached if len(n_rows) else []
    if np.sum(kept) < 2:
        return "–"
    return f"{np.polyfit(np.log(n_rows[kept]), np.log(seconds[kept]), 1)[0]:.2f}"


def draw(page):
    """Draw both series, logarithmic axes."""
    figure = Figure(figsize=(11, 4.6), layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(1, len(TITLES), sharey=True)
    exponents = {row[0]: row[1:] for row in page.rows("exponents")}
    for axes, (series, title) in zip(panels, TITLES.items(), strict=True):
        for column, name in enumerate(CURVES):
            _draw_curve(axes, name, exponents[title][column], points(page, series, column))
        axes.set(xscale="log", yscale="log", xlabel="rows  (open marker: ended at the limit)")
        axes.set_xticks(_TICKS, [f"{tick:,}" for tick in _TICKS])
        axes.set_xticks([], minor=True)
        axes.set_title(f"{title}, C = 1, gamma = 0.05", fontsize=11)
        axes.grid(color="#e6e6e6")
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False, fontsize=8, title="seconds ~ rows^exponent", title_fontsize=8)
    panels[0].set_ylabel("seconds of training")
    figure.savefig(page.picture("kernel-scaling.png"), dpi=130)


def _draw_curve(axes, name, exponent, curve):
    n_rows, seconds, reached = curve
    if len(n_rows):
        colour, marker = CURVES[name]
        label = f"{name}  ({exponent})"
        axes.plot(n_rows, seconds, color=colour, marker=marker, markersize=5, linewidth=1.8, label=label)
        axes.plot(n_rows[reached], seconds[reached], marker, color=colour, markersize=5, markerfacecolor="white")
