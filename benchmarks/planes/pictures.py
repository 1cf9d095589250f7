"""Pictures of the benchmarks of cutting planes."""

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

from benchmarks.machinery.figures import read
from benchmarks.planes.runs import title

COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00"]
MARKERS = "osD^v"
SOLVERS = {"ocas": 0, "svmperf": 1, "dcd": 2, "avsf": 3, "SGDClassifier": 4}  # place in COLOURS
_SMALLEST = 1e-6


def log_panels(n_columns, n_rows=1, height=3.8, **options):
    """Return a figure and its panels, with logarithmic axes, line by line."""
    figure = Figure(figsize=(11, height), layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(n_rows, n_columns, **options).ravel()
    for axes in panels:
        axes.set(xscale="log", yscale="log")
        axes.yaxis.set_minor_formatter(NullFormatter())
        axes.grid(color="#e6e6e6")
        axes.spines[["top", "right"]].set_visible(False)
    return figure, panels


def save(page, figure, name):
    """Write a picture of the documentation."""
    figure.savefig(page.picture(name), dpi=110)


def draw_rows(page):
    """Seconds and turns against rows: svmperf as a line, ocas dashed."""
    figure, panels = log_panels(2)
    series = dict.fromkeys((row[0], row[1]) for row in page.rows("rows"))
    exponents = {(row[0], row[1]): row[2:] for row in page.rows("row-exponents")}
    for k, (name, task) in enumerate(series):
        rows = sorted([[read(cell).value for cell in row[2:]] for row in page.rows("rows") if row[:2] == [name, task]])
        for column, (solver, line) in enumerate((("svmperf", "-"), ("ocas", "--"))):
            for axes, offset in zip(panels, (1, 2), strict=True):
                label = f"{title(name)}, {task}, {solver}  ({exponents[name, task][2 * column + offset - 1]})"
                x, y = zip(*((row[0], row[2 * column + offset]) for row in rows), strict=True)
                axes.plot(x, y, line, color=COLOURS[k], marker=MARKERS[k], markersize=4, linewidth=1.6, label=label)
    for axes, what in zip(panels, ("seconds", "turns"), strict=True):
        axes.set(xlabel="rows", ylabel=what)
        axes.legend(frameon=False, fontsize=7, title=f"{what} ~ rows^exponent", title_fontsize=7, handlelength=3)
    panels[1].set_ylim(bottom=1)
    save(page, figure, "cutting-planes-rows.png")


def draw_eps_and_cost(page):
    """Turns of svmperf against eps and against C, and the error of the objective against eps."""
    figure, panels = log_panels(3)
    eps, cost = ({row[0]: row[1] for row in page.rows(f"{name}-exponents")} for name in ("eps", "C"))
    for k, name in enumerate(dict.fromkeys(row[0] for row in page.rows("eps"))):
        style = {"color": COLOURS[k], "marker": MARKERS[k], "markersize": 4, "linewidth": 1.6}
        _plot(panels[0], page.rows("eps"), name, 2, label=f"{title(name)}  ({eps[name]})", **style)
        _plot(panels[1], page.rows("C"), name, 2, label=f"{title(name)}  ({cost.get(name, '–')})", **style)
        _plot(panels[2], page.rows("error"), name, 2, label=f"{title(name)}, below", **style)
        _plot(panels[2], page.rows("error"), name, 3, label=f"{title(name)}, above", linestyle=":", **style)
    labels = [("eps", "turns", "turns ~ (1/eps)^exponent"), ("C of the mean loss", "turns", "turns ~ C^exponent")]
    labels.append(("eps", "relative error of the objective", "relaxed one below, model's above the best"))
    for axes, (x, y, legend) in zip(panels, labels, strict=True):
        axes.set(xlabel=x, ylabel=y)
        where = "lower left" if axes is panels[0] else "lower right"
        axes.legend(frameon=False, fontsize=7, title=legend, title_fontsize=7, loc=where)
    panels[0].set_ylim(bottom=4)
    panels[2].set_ylim(bottom=5e-7)
    save(page, figure, "cutting-planes-eps-and-c.png")


def _plot(axes, rows, name, column, **style):
    points = [(float(row[1]), read(row[column]).value) for row in rows if row[0] == name and row[column][0] != ">"]
    points = [(x, y) for x, y in points if y > 0.0]
    if points:
        axes.plot(*zip(*points, strict=True), **style)


def draw_curves(page, drawn):
    """Relative excess of the objective against seconds; `drawn` has (seconds, excess) by set and solver."""
    figure, panels = log_panels(max(2, len(drawn)), sharey=True)
    for axes, (name, curves) in zip(panels, drawn.items(), strict=False):
        for label, curve in curves.items():
            seconds, excess = np.array(curve)
            place = SOLVERS[label]
            shown = (excess > 0.0) & (seconds > 0.0)
            style = {"color": COLOURS[place], "marker": MARKERS[place], "markevery": 0.1, "markersize": 4}
            axes.plot(seconds[shown], excess[shown], linewidth=1.6, label=label, **style)
        axes.set(xlabel="seconds, one thread", ylim=(_SMALLEST, 3.0))
        axes.set_title(f"{title(name)}, C = 1", fontsize=11)
    panels[0].set_ylabel("objective, relative excess")
    panels[0].legend(frameon=False, fontsize=8)
    save(page, figure, "cutting-planes-curves.png")
