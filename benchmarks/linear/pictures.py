"""Seconds against C, our linear solvers and LIBLINEAR, drawn from the table of the page."""

from collections import Counter

from matplotlib.lines import Line2D

from benchmarks.linear.words import GRID, SETS, records, sets_of
from benchmarks.machinery.figures import read
from benchmarks.planes.pictures import COLOURS, log_panels, save
from benchmarks.planes.runs import COVERTYPE, title

SIZES = {
    "a9a": "32,561 x 123",
    "w8a": "49,749 x 300",
    "ijcnn1": "49,990 x 22",
    COVERTYPE: "581,012 x 54",
    "20news.bigram.binary": "18,821 x 1.3 million",
    "lasvm-reuters-money-fx": "7,770 x 8,315",
    "svmlight-example1": "2,000 x 9,947",
    "rcv1-vw-1000": "1,000 x 47,117",
}
CURVES = {  # column of the table: colour, marker
    "LIBLINEAR": ("#777777", "X"),
    "dcd": (COLOURS[2], "D"),
    "avsf": (COLOURS[3], "v"),
    "climb": (COLOURS[1], "s"),
    "newton": (COLOURS[4], "P"),
    "ocas": ("#56B4E9", "o"),
}
_SHOWN = 4  # panels in a line
_ABOVE = 1.6  # factor from a triangle to the next above it
_OPEN = {"markersize": 6.5, "markerfacecolor": "white"}


def draw_times(page):
    """Draw a panel for each set of the grid that is in the table, logarithmic axes."""
    names = [name for name in SETS if name in sets_of(page)]
    if not names:
        return
    figure, panels = log_panels(_SHOWN, -(-len(names) // _SHOWN), 6.2, sharex=True, squeeze=False)
    for axes, name in zip(panels, names, strict=False):
        _draw(axes, records(page, name))
        axes.set_title(f"{title(name)}\n", fontsize=11)
        axes.text(
            0.5, 1.02, SIZES[name], transform=axes.transAxes, ha="center", va="bottom", fontsize=8, color="#555555"
        )
    for axes in panels[len(names) :]:
        axes.set_visible(False)
    for axes in panels[::_SHOWN]:
        axes.set_ylabel("seconds to 1e-3")
    for axes in panels[-_SHOWN:]:
        axes.set_xlabel("C")
    pairs = [pair for axes in panels for pair in zip(*axes.get_legend_handles_labels(), strict=True)]
    handles = {label: handle for handle, label in pairs}
    handles["ended at the limit"] = Line2D([], [], linestyle="", marker="^", color="#777777", **_OPEN)
    options = {"ncols": len(handles), "frameon": False, "fontsize": 9}
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", **options)
    save(page, figure, "linear-time.png")


def _draw(axes, rows):
    """Draw one panel: `auto` a broad band with the others over it."""
    places = Counter()
    _draw_curve(axes, rows, "auto", places, color=COLOURS[0], linewidth=6, alpha=0.5, solid_capstyle="round")
    for label, (colour, marker) in CURVES.items():
        width = 2.2 if label == "LIBLINEAR" else 1.4
        _draw_curve(axes, rows, label, places, color=colour, marker=marker, markersize=4.5, linewidth=width)
    axes.set_xticks(GRID)


def _draw_curve(axes, rows, label, places, **style):
    """Draw what was measured as a line, which goes on to the first limit.

    Limits are open triangles, one above the other; `places` counts those at a C.
    """
    points = [(float(row["C"]), read(row[label])) for row in rows if read(row[label])]
    ended = [(C, told.value * _ABOVE ** places[C]) for C, told in points if told.bound]
    reached = [(C, told.value) for C, told in points if not told.bound]
    places.update(C for C, _ in ended)
    if not reached:
        return
    axes.plot(*zip(*reached, strict=True), label=label, **style)
    if ended:
        colour = style["color"]
        axes.plot(*zip(*reached[-1:], *ended[:1], strict=True), ":", color=colour, linewidth=1.2)
        axes.plot(*zip(*ended, strict=True), "^", color=colour, **_OPEN)
