"""Plots of a grid search: with matplotlib, and as an interactive HTML page without dependencies.

plot_grid(result, "grid.png")                  PNG, SVG, PDF: by the suffix
Path("grid.html").write_text(grid_page(result), "utf-8")
IPython.display.HTML(grid_fragment(result))    the same figure in a notebook
"""

import hashlib
import os
from typing import Any, Protocol

import numpy as np

from widemargin._runtime.argument_types import FilePath, Floats
from widemargin.plots.convergence import make_figure
from widemargin.report import scales
from widemargin.report.grid_figure import grid_figure, grid_table
from widemargin.report.grid_layout import lay_out
from widemargin.report.markup import section
from widemargin.report.page import fragment, page

_BLUE, _ORANGE, _GREY = "#0072B2", "#D55E00", "#666666"
_MAX_TICKS = 12
_MIN_LABELLED_WIDTH = 2.5  # in steps of the grid, of a contour line that is labelled with its value


class SearchResult(Protocol):
    """What is drawn of a `GridResult`, whose room is above this one."""

    @property
    def names(self) -> tuple[str, ...]:
        """The parameters that vary."""
        ...

    @property
    def points(self) -> tuple[dict[str, Any], ...]:
        """A value for each of the names."""
        ...

    @property
    def scores(self) -> Floats:
        """The score of each point on each fold."""
        ...


def plot_grid(result: SearchResult, path: FilePath | None = None, axes: Any = None) -> Any:
    """Draw the mean score over C and gamma, or over one parameter with the standard deviation over folds.

    The best point is marked. Contour lines are 0.5%, 1%, 2%, 5% and 10% below the best score; for scores that are not
    fractions, at 2%, 5%, 10%, 20% and 40% of the range from the best to the worst. Hatched cells were not computed. If
    more than two parameters vary, each cell shows the best score over the others.

    Parameters
    ----------
    result : GridResult
        The result of a grid search.
    path : str or path, default=None
        File to save the plot to; the suffix, such as .png or .svg, determines the format.
    axes : matplotlib Axes, default=None
        Axes to draw on. None makes a new figure, which is not registered with pyplot; a notebook shows it at the end
        of the cell.

    Returns
    -------
    figure : matplotlib Figure

    Raises
    ------
    ImportError
        If matplotlib is not installed.
    ValueError
        If the result has no point.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from widemargin import SVC, grid_search, plot_grid
    >>> result = grid_search(SVC(), *load_iris(return_X_y=True), {"C": [1, 10], "gamma": [0.1, 1.0]})
    >>> figure = plot_grid(result, "grid.png")
    """
    layout = lay_out(result)
    if axes is None:
        figure = make_figure(n_rows=1)
        figure.set_size_inches(6.2, 4.6)
        axes = figure.subplots()
    figure = axes.get_figure()
    if layout.down is None:
        _draw_curve(axes, layout)
    else:
        _draw_map(axes, layout)
    axes.set_title(f"Best: {layout.best_text}", fontsize=9, loc="left")
    axes.set_xlabel(layout.across.label)
    _write_ticks(axes.xaxis, layout.across, layout.is_sparse)
    if path is not None:
        _save(figure, path)
    return figure


def grid_page(result):
    """Return an interactive HTML page of a GridResult: the plot, and a sortable table of all points.

    Parameters
    ----------
    result : GridResult
        The result of a grid search.

    Returns
    -------
    html : str
        A complete page that loads no other files.
    """
    layout = lay_out(result)
    kind = f"Grid search over {', '.join(result.names)}: {len(result.points):,} points"
    content = section("picture", "Picture", grid_figure(layout)) + section("points", "Points", grid_table(layout))
    return page(f"Best: {layout.best_text}", kind, content)


def grid_fragment(result):
    """Return the figure of `grid_page` with its style and script, for `_repr_html_` or IPython.display.HTML.

    Parameters
    ----------
    result : GridResult
        The result of a grid search.

    Returns
    -------
    html : str
        An element whose style does not affect the rest of the page. The same result gives the same text.
    """
    layout = lay_out(result)
    key = hashlib.sha256(repr((result.points, result.scores.tolist())).encode()).hexdigest()[:8]
    return fragment(grid_figure(layout, f"grid-{key}"))


def _draw_map(axes, layout):
    """Draw cells with contour lines, or spots if few cells were computed, and the best point."""
    x, y, means = layout.across.positions, layout.down.positions, layout.means
    shown = layout.score.sign * means
    colours = "cividis" if layout.score.sign > 0 else "cividis_r"
    if layout.is_sparse:
        line, column = np.nonzero(layout.cells >= 0)
        drawn = axes.scatter(x[column], y[line], c=shown[line, column], cmap=colours, s=60, edgecolors=_GREY)
        axes.set_xlim(*scales.boundaries(x)[[0, -1]])
        axes.set_ylim(*scales.boundaries(y)[[0, -1]])
    else:
        axes.patch.set(hatch="////", edgecolor="#CCCCCC")
        drawn = axes.pcolormesh(scales.boundaries(x), scales.boundaries(y), np.ma.masked_invalid(shown), cmap=colours)
        _draw_contours(axes, layout)
    line, column = layout.best
    axes.plot(x[column], y[line], marker="*", markersize=15, color=_ORANGE, markeredgecolor="white", linestyle="none")
    bar = axes.get_figure().colorbar(drawn, ax=axes, label=layout.score.name)
    if layout.score.is_share:
        bar.ax.yaxis.set_major_formatter(_percentages())
    axes.set_ylabel(layout.down.label)
    _write_ticks(axes.yaxis, layout.down, layout.is_sparse)


def _draw_contours(axes, layout):
    """Draw contour lines of scores near the best, labelled with their differences from the best."""
    if min(layout.cells.shape) < 2 or not (layout.across.is_numeric and layout.down.is_numeric) or not layout.levels:
        return
    from matplotlib.patheffects import withStroke

    sign = "−" if layout.score.sign > 0 else "+"
    names = {level: f"{sign}{layout.score.difference(fall)}" for level, fall in layout.levels}
    means, look = np.ma.masked_invalid(layout.means), {"colors": "black", "linewidths": 1.0, "linestyles": "solid"}
    lines = axes.contour(layout.across.positions, layout.down.positions, means, sorted(names), **look)
    halo = [withStroke(linewidth=2.5, foreground="white")]
    lines.set_path_effects(halo)
    step = (layout.across.positions[-1] - layout.across.positions[0]) / (len(layout.across.positions) - 1)
    wide = [
        level for level, path in zip(lines.levels, lines.get_paths(), strict=True)
        if len(path.vertices) and np.ptp(path.vertices[:, 0]) > _MIN_LABELLED_WIDTH * step
    ]  # fmt: skip
    for text in axes.clabel(lines, wide, fmt=names, fontsize=8):
        text.set_path_effects(halo)


def _draw_curve(axes, layout):
    """Draw the mean and the standard deviation over folds along one parameter."""
    result, order, x = layout.result, layout.cells[0], layout.across.positions
    means, spread = layout.score.sign * result.means[order], result.scores[order].std(axis=1)
    line = "-" if layout.across.is_numeric else "none"
    axes.errorbar(x, means, spread, marker="o", markersize=4, linestyle=line, color=_BLUE, capsize=3)
    best = layout.best[1]
    axes.plot(x[best], means[best], marker="*", markersize=15, color=_ORANGE, markeredgecolor="white")
    axes.set_ylabel(f"{layout.score.name}, with the deviation over folds")
    if layout.score.is_share:
        axes.yaxis.set_major_formatter(_percentages())
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(visible=True, color="#E3E3E3", linewidth=0.7)


def _percentages():
    """Return a formatter of fractions as percentages, with the decimals that the distance of ticks needs."""
    from matplotlib.ticker import PercentFormatter

    return PercentFormatter(xmax=1.0)


def _write_ticks(axis, parameter, is_sparse):
    """Set ticks at the values of a parameter; a sparse grid, whose values are irregular, keeps matplotlib's ticks."""
    if is_sparse and parameter.is_numeric:
        return
    every = -(-len(parameter.positions) // _MAX_TICKS)
    axis.set_ticks(parameter.positions[::every], parameter.texts[::every])


def _save(figure, path):
    """Save a figure reproducibly: the same figure gives the same file, also as SVG."""
    from matplotlib import rc_context

    is_svg = os.fspath(path).lower().endswith(".svg")
    with rc_context({"svg.hashsalt": "widemargin"}):
        figure.savefig(path, dpi=200, **({"metadata": {"Date": None}} if is_svg else {}))
