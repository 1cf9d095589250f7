"""The figure of a grid search on a page: cells or spots coloured by score, or a curve with error bars."""

import numpy as np

from widemargin.report import scales
from widemargin.report.charts import step_of
from widemargin.report.figures import Picture
from widemargin.report.grid_layout import value_text
from widemargin.report.markup import card, plural, scrolling, shown, table, words
from widemargin.report.palette import N_STEPS

_SIZE = {"width": 400, "height": 360}
_MAX_TICKS = 12


def grid_figure(layout, name="grid"):
    """Return the figure of a layout, whose id is `name`."""
    if layout.down is None:
        return _curve(layout, name)
    x, y = (_scale(axis, layout.is_sparse) for axis in (layout.across, layout.down))
    labels = {"x_label": layout.across.label, "y_label": layout.down.label}
    columns = 0 if layout.is_sparse else len(layout.across.values)
    picture = Picture(x, y, _heads(layout), **labels, **_SIZE, columns=columns, ticks="")
    if layout.is_sparse:
        _draw_spots(picture, layout)
        drawn = []
    else:
        _draw_cells(picture, layout)
        drawn = _draw_contours(picture, layout)
    line, column = layout.best
    best = layout.score.text(layout.result.best_score)
    picture.ring(layout.across.positions[column], layout.down.positions[line], best)
    return picture.figure(name, _title(layout), _summary(layout, drawn), look="large", below=_ramp(layout))


def grid_table(layout):
    """Return a card with a table of all points, the best first, which the reader can sort by any column."""
    result, best, means = layout.result, layout.result.best, layout.result.means
    order = sorted(range(len(means)), key=lambda k: (k != best, -means[k]))
    rows = [(*_row(layout, k), float(result.seconds[k])) for k in order]
    heads = (*_heads(layout), "seconds")
    explanation = f"{plural(len(rows), 'point')}, the best first. Click the head of a column to sort by it."
    return card("All points", words(explanation), scrolling("All points", table(heads, rows, sortable=True)))


def _title(layout):
    return f"{layout.score.name[:1].upper()}{layout.score.name[1:]} over the grid"


def _summary(layout, drawn):
    """Return a description of the figure in words."""
    result = layout.result
    axes = {layout.across.name, None if layout.down is None else layout.down.name}
    others = [name for name in result.names if name not in axes and len({point[name] for point in result.points}) > 1]
    parts = [f"Best: {layout.best_text}, the mean over {plural(result.scores.shape[1], 'fold')}."]
    if others:
        parts.append(f"Each cell shows the best score over {' and '.join(others)}.")
    if drawn:
        parts.append(f"Lines: {', '.join(layout.score.difference(fall) for fall in drawn)} from the best.")
    n_missing = int(np.sum(layout.cells < 0))
    if n_missing and not layout.is_sparse:
        parts.append(f"{plural(n_missing, 'cell')} struck out: not computed.")
    return " ".join(parts)


def _heads(layout):
    return (*layout.result.names, layout.score.name, "deviation", "folds")


def _row(layout, k):
    """Return the table row of the k-th point of the result."""
    result, score = layout.result, layout.score
    values = tuple(value_text(result.points[k][name]) for name in result.names)
    folds = ", ".join(score.text(one) for one in result.scores[k])
    return (*values, score.text(result.means[k]), score.difference(float(result.scores[k].std())), folds)


def _scale(axis, is_sparse=False):
    """Return the scale of an axis; ticks are at values of the parameter, or at round numbers if the grid is sparse."""
    if is_sparse and axis.is_numeric:
        return scales.linear(float(axis.positions[0]), float(axis.positions[-1]))
    return scales.positions(axis.positions, axis.texts, _MAX_TICKS)


def _steps(layout):
    """Return the step of the colour scale of each cell; the best cell has the last step."""
    means = layout.means
    low, high = np.nanmin(means), np.nanmax(means)
    share = (means - low) / (high - low) if high > low else np.ones_like(means)
    return [[None if np.isnan(part) else step_of(part) for part in line] for line in share]


def _draw_cells(picture, layout):
    """Draw a cell for each pair of values, line by line from the top; cells that were not computed are struck out."""
    x, y, steps = scales.boundaries(layout.across.positions), scales.boundaries(layout.down.positions), _steps(layout)
    for i in reversed(range(len(y) - 1)):
        for j in range(len(x) - 1):
            k = layout.cells[i, j]
            row = _row(layout, k) if k >= 0 else _missing(layout, i, j)
            look = f"cell h{steps[i][j]}" if k >= 0 else "none"
            picture.box(x[j : j + 2], y[i : i + 2], row, look)
            if k < 0:
                picture.line(x[j : j + 2], y[i : i + 2], "strike")


def _missing(layout, i, j):
    """Return the row of a cell that was not computed."""
    values = {layout.across.name: layout.across.values[j], layout.down.name: layout.down.values[i]}
    names = (value_text(values[name]) if name in values else "" for name in layout.result.names)
    return (*names, "not computed", "", "")


def _draw_spots(picture, layout):
    """Draw a spot for each point that is done."""
    steps = _steps(layout)
    for i, j in np.argwhere(layout.cells >= 0):
        row = _row(layout, layout.cells[i, j])
        picture.spot(layout.across.positions[j], layout.down.positions[i], row, f"spot h{steps[i][j]}")


def _draw_contours(picture, layout):
    """Draw contour lines of scores near the best; return the differences from the best of the lines that exist.

    Contours need contourpy, which is installed with matplotlib, and numeric parameters on both axes. Otherwise no lines
    are drawn.
    """
    if not (layout.across.is_numeric and layout.down.is_numeric):
        return []
    try:
        from contourpy import contour_generator
    except ImportError:
        return []
    generator = contour_generator(layout.across.positions, layout.down.positions, np.ma.masked_invalid(layout.means))
    drawn = []
    for level, fall in layout.levels:
        lines = generator.lines(level)
        for line in lines:
            picture.line(*line.T, "edge")
            picture.line(*line.T, "contour")
        if lines:
            drawn.append(fall)
    return drawn


def _ramp(layout):
    """Return the colour scale with the smallest and the largest score."""
    means, text = layout.means, layout.score.text
    steps = "".join(f'<i style="background:var(--h{k})"></i>' for k in range(N_STEPS))
    low, high = shown(text(np.nanmin(means))), shown(text(np.nanmax(means)))
    return f"<p class=ramp><span>{low}</span><span class=steps aria-hidden=true>{steps}</span><span>{high}</span></p>"


def _curve(layout, name):
    """Return a curve of the scores over one parameter, with the standard deviation over folds."""
    result, sign = layout.result, layout.score.sign
    order, x = layout.cells[0], layout.across.positions
    means, spread = sign * result.means[order], result.scores[order].std(axis=1)
    is_share = layout.score.is_share
    y = scales.linear(float((means - spread).min()), float((means + spread).max()), 5, is_share=is_share)
    picture = Picture(
        _scale(layout.across), y, _heads(layout), x_label=layout.across.label, y_label=layout.score.name, nearest="x",
        width=_SIZE["width"], height=270,
    )  # fmt: skip
    for at, mean, width in zip(x, means, spread, strict=True):
        picture.line([at, at], [mean - width, mean + width], "whisker s0")
    if layout.across.is_numeric:
        picture.line(x, means, "curve s0")
    picture.dots(x, means, [_row(layout, k) for k in order])
    best = layout.best[1]
    picture.ring(x[best], means[best], layout.score.text(result.best_score))
    summary = f"{_summary(layout, [])} Bars: the deviation over folds."
    return picture.figure(name, _title(layout), summary, look="large")
