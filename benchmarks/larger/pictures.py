"""The picture of the page: seconds against rows, and SGD's objective against seconds."""

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

_BLUE, _GREEN, _RED = "#0072B2", "#009E73", "#D55E00"


def draw(page):
    """Draw what was measured, and OCAS's point beside it."""
    figure = Figure(figsize=(10, 4), layout="constrained")
    FigureCanvasAgg(figure)
    left, right = figure.subplots(1, 2)
    rows, proportional = (
        [value for name, value in page.facts.items() if name.startswith(f"{section}: ")]
        for section in ("rows", "proportional")
    )
    _draw_rows(left, rows, proportional)
    _draw_sgd(right, page.facts["splice: 0.01"], page.facts.get("sgd", []))
    for axes in (left, right):
        axes.grid(color="#e6e6e6")
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False, fontsize=9)
    figure.savefig(page.picture("larger-than-memory.png"), dpi=150)


def _draw_rows(axes, rows, proportional):
    disk = [(one["rows"], one["disk"]) for one in rows]
    memory = [(one["rows"], one["memory"]) for one in rows if one["memory"]]
    axes.plot(*zip(*disk, strict=True), marker="o", color=_BLUE, label="widemargin from disk, 3 GB, 2 cores")
    axes.plot(*zip(*memory, strict=True), marker="s", color=_GREEN, label="widemargin in memory, 2 cores")
    if proportional:
        points = [(one["rows"], one["disk"]) for one in proportional]
        axes.plot(*zip(*points, strict=True), marker="^", linestyle="--", color=_BLUE,
                  label="the same, memory in proportion to the rows")  # fmt: skip
    axes.plot([15_028_326], [671], marker="*", markersize=13, linestyle="", color=_RED,
              label="OCAS, 16 cores, 32 GB (paper)")  # fmt: skip
    axes.set(xscale="log", yscale="log", xlabel="rows", ylabel="seconds to a certified gap of 1e-3")
    axes.set_title("Splice stand-in, C = 0.01", fontsize=11)


def _draw_sgd(axes, best, curve):
    if curve:
        axes.plot([s for s, _ in curve], [value - 1.0 for _, value in curve], marker="v", color=_RED,
                  label="SGDClassifier.partial_fit")  # fmt: skip
    axes.plot([best["seconds"]], [best["gap"]], marker="o", linestyle="", color=_BLUE, label="widemargin, certified")
    axes.set(yscale="log", xlabel="seconds", ylabel="objective above the optimum, relative")
    axes.set_title("Fifteen million rows from disk, C = 0.01", fontsize=11)
