"""The charts of a report: histograms, bar charts, curves, scatter plots and matrices of counts."""

import numpy as np

from widemargin.report import scales
from widemargin.report.figures import AROUND, HEIGHT, Picture
from widemargin.report.markup import percent
from widemargin.report.palette import N_STEPS

_N_BINS = 30
_MAX_QUARTILE_RANGES = 6.0  # values farther from the quartiles are counted in the outermost bins of a histogram
_MAX_NAME_CHARACTERS = 16
_BAR_HEIGHT = 19  # of a bar with the space around it, in units of the picture
_MAX_CLASSES_WITH_COUNTS = 12  # up to so many classes, counts are written in the cells of a matrix
_MAX_MATRIX_LABELS = 20
_MATRIX_CHARACTERS = 44  # that fit side by side below a matrix


def thinned(n_points, most):
    """Return at most `most` evenly spaced positions from 0 to n_points − 1, both included."""
    return np.unique(np.linspace(0, n_points - 1, min(n_points, most)).round().astype(int))


def along(x, y, most):
    """Return positions of at most `most` points of a curve in the unit square, evenly spaced along its length."""
    length = np.append(0.0, np.cumsum(np.hypot(np.diff(x), np.diff(y))))
    if len(x) <= most:
        return np.arange(len(x))
    return np.unique(np.searchsorted(length, np.linspace(0.0, length[-1], most)).clip(0, len(x) - 1))


def step_of(share):
    """Return the step of the colour scale for a number from 0 to 1."""
    return min(int(share * N_STEPS), N_STEPS - 1)


def histogram(name, title, summary, groups, *, x_label, y_label="rows", guides=()):
    """Return a stacked histogram of groups of numbers.

    Numbers far from the quartiles are counted in the first and last bin.

    Parameters
    ----------
    groups : dict of str to ndarray
        The numbers of each group.
    guides : sequence of (float, str)
        Positions of vertical lines, and the words at their tops.
    """
    everything = np.concatenate(list(groups.values()))
    x, edges = _bins(everything, [at for at, _ in guides])
    inside = [np.clip(values, edges[0], edges[-1]) for values in groups.values()]
    counts = np.array([np.histogram(values, edges)[0] for values in inside])
    tops = np.cumsum(counts, axis=0)
    y = scales.linear(0.0, max(1.0, float(tops.max())), 4, whole=True)
    heads = (*(["group"] if len(groups) > 1 else []), "from", "to", y_label)
    picture = Picture(x, y, heads, x_label=x_label, y_label=y_label, nearest="x")
    for series, group in enumerate(groups):
        for k in range(len(edges) - 1):
            row = (*([group] if len(groups) > 1 else []), float(edges[k]), float(edges[k + 1]), counts[series, k])
            heights = (tops[series, k] - counts[series, k], tops[series, k])
            picture.box(edges[k : k + 2], heights, row, f"bar s{series % 8}")
    for at, text in guides:
        if edges[0] <= at <= edges[-1]:
            picture.upright(at, text)
    beyond = int(np.sum((everything < edges[0]) | (everything > edges[-1])))
    note = f" The outermost bars include {beyond} values beyond the axis." if beyond else ""
    entries = enumerate(groups) if len(groups) > 1 else ()
    return picture.figure(name, title, summary + note, legend=entries)


def _bins(values, guides):
    """Return the scale and the edges of the bins of a histogram; bins divide the distance of ticks evenly."""
    low, first, third, high = np.quantile(values, [0.0, 0.25, 0.75, 1.0])
    reach = _MAX_QUARTILE_RANGES * (third - first)
    if reach > 0:
        low, high = max(low, first - reach), min(high, third + reach)
    near = [at for at in guides if low - (high - low) < at < high + (high - low)]
    low, high = min([low, *near]), max([high, *near])
    scale = scales.linear(float(low), float(high), 5)
    tick = scale.ticks[1] - scale.ticks[0]
    parts = max(1, round(_N_BINS * tick / (scale.high - scale.low)))
    n_bins = round((scale.high - scale.low) / tick * parts)
    return scale, np.linspace(scale.low, scale.high, n_bins + 1)


def bars(name, title, summary, names, lengths, *, rows, heads, x_label, legend=()):
    """Return a bar chart with horizontal bars and their names; negative bars have another colour."""
    n_bars = len(names)
    x = scales.linear(min(0.0, *lengths), max(0.0, *lengths), 4)
    y = scales.categories([_shortened(str(name)) for name in names[::-1]])
    height = HEIGHT if n_bars * _BAR_HEIGHT < HEIGHT - AROUND else n_bars * _BAR_HEIGHT + AROUND
    picture = Picture(x, y, heads, x_label=x_label, nearest="y", height=height, ticks="x")
    half = 0.12 * min(n_bars, 3)
    for k, length in enumerate(lengths):
        at = n_bars - 1 - k
        picture.box((0.0, length), (at - half, at + half), rows[k], f"bar s{int(length < 0)}")
    picture.upright(0.0, look="zero")
    return picture.figure(name, title, summary, legend=legend)


def _shortened(text, longest=_MAX_NAME_CHARACTERS):
    return text if len(text) <= longest else text[: longest - 1] + "…"


def curves(name, title, summary, drawn, *, x, y, heads, x_label, y_label, diagonal=False, level=None):
    """Return a chart of curves; several curves have different colours and dashes, and a legend.

    Parameters
    ----------
    drawn : list of (str, ndarray, ndarray, list of rows)
        The name of each curve, x and y of its points, and their rows of the table.
    diagonal : bool
        Whether to draw the diagonal as a guide.
    level : (float, str)
        A horizontal line, and the word at it.
    """
    picture = Picture(x, y, heads, x_label=x_label, y_label=y_label)
    if diagonal:
        picture.line([x.low, x.high], [y.low, y.high])
    if level is not None:
        picture.level(*level)
    for series, (_, xs, ys, rows) in enumerate(drawn):
        picture.curve(xs, ys, rows, series)
    legend = [(series, label) for series, (label, *_) in enumerate(drawn)] if len(drawn) > 1 else ()
    return picture.figure(name, title, summary, legend=legend)


def scatter(name, title, summary, x_values, y_values, rows, *, heads, x_label, y_label, shared=False, guides=()):
    """Return a scatter plot.

    Parameters
    ----------
    shared : bool
        Whether both axes have the same scale, with the diagonal drawn.
    guides : sequence of (float, str)
        Horizontal lines, and the words at them.
    """
    heights = np.append(y_values, [at for at, _ in guides])
    x_range, y_range = (float(x_values.min()), float(x_values.max())), (float(heights.min()), float(heights.max()))
    if shared:
        x_range = y_range = (min(x_range[0], y_range[0]), max(x_range[1], y_range[1]))
    x, y = scales.linear(*x_range), scales.linear(*y_range)
    picture = Picture(x, y, heads, x_label=x_label, y_label=y_label)
    if shared:
        picture.line([x.low, x.high], [x.low, x.high])
    for at, text in guides:
        picture.level(at, text)
    look = "faint" if len(rows) > 400 else ""
    picture.dots(x_values, y_values, rows, 0, look)
    return picture.figure(name, title, summary)


def matrix_of_counts(name, title, summary, names, counts):
    """Return a matrix of counts with one line per true class; a cell's colour is its fraction of the line's sum."""
    n, lines = len(names), counts.sum(axis=1)
    every = -(-n // _MAX_MATRIX_LABELS)
    written = [str(label) if k % every == 0 else "" for k, label in enumerate(names)]
    room = max(2, every * _MATRIX_CHARACTERS // n)
    x = scales.categories([_shortened(text, room) for text in written])
    y = scales.categories([_shortened(text) for text in written[::-1]])
    side = AROUND + min(max(34 * n, 150), 300)
    heads = ("true class", "predicted", "rows", "of its class")
    labels = {"x_label": "predicted", "y_label": "true class"}
    picture = Picture(x, y, heads, **labels, columns=n, height=side, ticks="")
    for i in range(n):
        for j in range(n):
            part = counts[i, j] / lines[i] if lines[i] else 0.0
            row = (str(names[i]), str(names[j]), counts[i, j], percent(part))
            at, step = n - 1 - i, step_of(part)
            picture.box((j - 0.5, j + 0.5), (at - 0.5, at + 0.5), row, f"cell h{step}")
            if n <= _MAX_CLASSES_WITH_COUNTS:
                _write_cell(picture, j, at, step, counts[i, j], percent(part) if n <= 4 else "")
    return picture.figure(name, title, summary)


def _write_cell(picture, x, y, step, count, part):
    look = f"mid count t{step}"
    picture.text(x, y, f"{count:,}", look, lower=-2.0 if part else 4.0)
    picture.text(x, y, part, f"mid t{step}", lower=13.0)
