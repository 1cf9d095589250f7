"""Seconds against C, ours and LIBLINEAR's, drawn from the table that `benchmarks.linear_dual` wrote.

python -m benchmarks.picture       writes docs/time-against-c.png
"""

from pathlib import Path

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

ROOT = Path(__file__).parents[1]
TITLES = {
    "a9a": "a9a, 32,561 x 123",
    "covtype.libsvm.binary.scale": "covertype, 581,012 x 54",
    "20news.bigram.binary": "20news bigrams, 18,821 x 1.3 million",
}
CURVES = [  # column of the table, label, colour, marker
    (2, "widemargin (auto), certified", "#0072B2", "o"),
    (4, "widemargin dcd, certified", "#56B4E9", "v"),
    (5, "widemargin avsf, certified", "#009E73", "s"),
    (7, "LIBLINEAR, by its objective", "#D55E00", "D"),
]


def cells(name):
    """Return the table's rows of one set, as lists of text."""
    lines = (ROOT / "benchmarks" / "results" / "linear-dual.md").read_text().splitlines()
    rows = [[part.strip() for part in line.strip("|").split("|")] for line in lines if line.startswith(f"| {name} |")]
    return [row for row in rows if len(row) == 10]


def draw(axes, name):
    """Draw one panel; a run that was ended at the limit gets an open marker and an arrow."""
    rows = cells(name)
    costs = [float(row[1]) for row in rows]
    for column, label, colour, marker in CURVES:
        seconds = [float(row[column].lstrip(">")) for row in rows]
        axes.plot(costs, seconds, color=colour, marker=marker, markersize=5, label=label, linewidth=1.8)
        for C, value, row in zip(costs, seconds, rows, strict=True):
            if row[column].startswith(">"):
                axes.plot([C], [value], marker=marker, markersize=5, color=colour, markerfacecolor="white")
                axes.annotate("", (C, value * 2.2), (C, value * 1.1), arrowprops={"arrowstyle": "->", "color": colour})
    axes.set(xscale="log", yscale="log", xlabel="C  (open marker: ended at the limit)")
    axes.set_title(TITLES[name], fontsize=11)
    axes.grid(color="#e6e6e6")
    axes.spines[["top", "right"]].set_visible(False)


def main():
    figure = Figure(figsize=(11, 3.9), layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(1, len(TITLES), sharey=True)
    for axes, name in zip(panels, TITLES, strict=True):
        draw(axes, name)
    panels[0].set_ylim(top=60)
    panels[0].set_ylabel("seconds to a relative gap of 1e-3")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(CURVES), frameon=False)
    figure.savefig(ROOT / "docs" / "time-against-c.png", dpi=130)


if __name__ == "__main__":
    main()
