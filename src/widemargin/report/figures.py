"""Figures as SVG by hand, each beside a table of what it shows.

Libraries were compared with this module once, by the same figure: a histogram of the decision values of a kernel model,
about 30 bins, two classes, three guides (none in that of Vega-Lite). Each page was opened offline in Chromium, 360
pixels wide, under the policy of `page`, which allows no script but the page's own and no `eval`. The libraries kept
their default themes.

============================  ========  ==============  =================  =================
                              this      matplotlib      Vega-Lite 6.4      plotly.py 7.1
                              module    3.11, SVG       runtime inlined    runtime inlined
============================  ========  ==============  =================  =================
page with one figure          28 kB     20 kB           904 kB             4,825 kB
each further figure           7 kB (a)  20 kB           6 kB               8 kB
time to make it               2 ms      115 ms          in the browser     in the browser
until the page is loaded      0.1 s     0.1 s           0.4 to 0.5 s       4 s
offline, under the policy     yes       yes             if `ast` is set    yes
dark pages                    yes       (b)             text by our CSS    a white box
keyboard                      yes       no              no                 its buttons only
360 pixels                    fits      fits            fits               fits; a quarter is
                                                                           legend
lines of ours for it          47 (c)    14              5                  5
============================  ========  ==============  =================  =================

(a) With the table of its data, which the others lack. (b) If the colours in its output are replaced by CSS
properties, in another five lines, counted here. (c) Upon some 270 in this module and `scales`, which all charts share,
and 141 of script.

The charts stay by hand. Vega-Lite would spare the most lines, but adds sixteen times what a whole report of nine
figures weighs, 55 kB, and leaves the keyboard, the table and the colours to us. matplotlib would spare the axes, takes
fifty times as long, is not among the packages that widemargin requires, and leaves the keyboard and the table to us.
plotly's smaller "basic" runtime is not in its Python package.

A figure is complete without any script; the script (figures.js) only points: row k of the table belongs to mark k of
the figure, marks being elements of class `m` in their order, and of a path each of its points. `Picture` draws marks
and writes rows by the same call, which keeps that true.
"""

from itertools import pairwise

import numpy as np

from widemargin.report.markup import scrolling, shown, table

WIDTH, HEIGHT = 360, 250
N_SERIES = 8
_TOP, _RIGHT, _BOTTOM = 30, 14, 44
AROUND = _TOP + _BOTTOM  # height of a picture minus that of its frame
_SIZE_OF_TEXT, _SIZE_IN_LARGE = 11.5, 14.0  # font sizes of the axes, in units of the picture, as in the style sheet
# Widths of characters relative to the font size, for wide fonts, so that the text of other fonts fits as well.
_WIDTHS = {**dict.fromkeys("0123456789", 0.64), **dict.fromkeys(",.:;'|!ijl ", 0.36), **dict.fromkeys("mwMW%…", 1.0)}
_MIN_TEXT_DISTANCE = 5.0  # between the texts of ticks, in units of the picture


class Picture:
    """A frame with two scales, marks in it, and a row of the table for each mark.

    Parameters
    ----------
    x, y : Scale
        The axes.
    heads : sequence of str
        Heads of the columns of the table.
    x_label, y_label : str
        Labels of the axes.
    nearest : {"xy", "x", "y"}
        How the mark nearest to a pointer is found: by distance, or first by the distance in x or in y.
    columns : int
        If the marks are cells in rows, from the top: the number of cells in a row.
    width, height : int
        Size of the picture.
    ticks : str
        The axes, "x" and "y", that have ticks or grid lines.
    """

    def __init__(
        self, x, y, heads, *, x_label="", y_label="", nearest="xy", columns=0, width=WIDTH, height=HEIGHT, ticks="xy"
    ):
        self._x, self._y, self._heads, self._nearest, self._columns = x, y, heads, nearest, columns
        self._width, self._height = width, height
        self._text_size = _SIZE_OF_TEXT if width <= WIDTH else _SIZE_IN_LARGE
        self._left = 10.0 + max(map(self._width_of, y.texts), default=0.0)
        self._inner = []
        self._rows = []
        self._notes = []  # centre and half width of each word at the top of a vertical line
        self._draw_axes(x_label, y_label, ticks)

    def across(self, values):
        """Return the horizontal coordinates of values of x."""
        return self._left + self._x.places(values) * (self._width - self._left - _RIGHT)

    def down(self, values):
        """Return the vertical coordinates of values of y."""
        return self._height - _BOTTOM - self._y.places(values) * (self._height - _TOP - _BOTTOM)

    def _draw_axes(self, x_label, y_label, ticks):
        bottom, right = self._height - _BOTTOM, self._width - _RIGHT
        if "y" in ticks:
            lines = "".join(f"M{self._left:.1f} {at:.1f}H{right}" for at in self.down(self._y.ticks))
            self._inner.append(f'<path class=grid d="{lines}"/>')
        if "x" in ticks:
            lines = "".join(f"M{at:.1f} {bottom}v4" for at in self.across(self._x.ticks))
            self._inner.append(f'<path class=axis d="M{self._left:.1f} {bottom}H{right}{lines}"/>')
        for at, text in self._texts_apart():
            self._write(at, bottom + self._text_size + 6, text, "mid")
        for at, text in zip(self.down(self._y.ticks), self._y.texts, strict=True):
            self._write(self._left - 7, at + 4, text, "end")
        self._write((self._left + right) / 2, self._height - 5, x_label, "mid name")
        self._write(4, self._text_size + 1, y_label, "name")

    def _texts_apart(self):
        """Return positions and texts of the ticks of x: of all, or of every second, third, ... so that none touch."""
        ticks = [(at, text) for at, text in zip(self.across(self._x.ticks), self._x.texts, strict=True) if text]
        for every in range(1, len(ticks)):
            kept = [(self._within(at, text), text, 0.5 * self._width_of(text)) for at, text in ticks[::every]]
            if all(b - half_b - a - half_a >= _MIN_TEXT_DISTANCE for (a, _, half_a), (b, _, half_b) in pairwise(kept)):
                return [(at, text) for at, text, _ in kept]
        return [(self._within(at, text), text) for at, text in ticks[:1]]

    def _width_of(self, text):
        """Return an upper estimate of the width of a text of the axes."""
        return self._text_size * sum(_WIDTHS.get(sign, 0.66 if sign.islower() else 0.84) for sign in text)

    def _within(self, at, text, left=0.0):
        """Return the position nearest to `at` at which a centred text stays in the picture and right of `left`."""
        half = 0.5 * self._width_of(text)
        return max(min(at, self._width - half), left + half)

    def _write(self, x, y, text, look):
        if text:
            self._inner.append(f'<text class="{look}" x={x:.1f} y={y:.1f}>{shown(text)}</text>')

    def text(self, x, y, text, look="mid", *, lower=0.0, right=0.0):
        """Write a text at values x and y of the scales, moved by `lower` and `right` units of the picture."""
        self._write(float(self.across(x)) + right, float(self.down(y)) + lower, text, look)

    def line(self, x, y, look="guide"):
        """Draw a line that is not a mark and has no row in the table."""
        self._inner.append(f'<path class="{look}" d="{_path(self.across(x), self.down(y))}"/>')

    def upright(self, x, text="", look="guide"):
        """Draw a vertical line at a value of x, with a word at its top unless it would touch another word."""
        at = float(self.across(x))
        self._inner.append(f'<path class="{look}" d="M{at:.1f} {_TOP}V{self._height - _BOTTOM}"/>')
        place, half = self._within(at, text, self._left - 4), 0.5 * self._width_of(text)
        if all(abs(place - other) >= half + other_half + _MIN_TEXT_DISTANCE for other, other_half in self._notes):
            self._write(place, _TOP - 4, text, "mid note")
            self._notes.append((place, half))

    def level(self, y, text="", look="guide"):
        """Draw a horizontal line at a value of y, with a word at its left end."""
        at = float(self.down(y))
        self._inner.append(f'<path class="{look}" d="M{self._left:.1f} {at:.1f}H{self._width - _RIGHT}"/>')
        self._write(self._left + 4, at - 4, text, "note")

    def curve(self, x, y, rows, series=0, look=""):
        """Draw a curve; each of its points is a mark with a row."""
        self._path(x, y, rows, f"m curve {series_class(series)} {look}".rstrip())

    def dots(self, x, y, rows, series=0, look=""):
        """Draw dots; each is a mark with a row."""
        self._path(x, y, rows, f"m dots {series_class(series)} {look}".rstrip(), alone=True)

    def _path(self, x, y, rows, look, *, alone=False):
        if len(rows) != len(x):
            raise ValueError(f"rows must be as many as points, {len(x)}, got {len(rows)}.")
        self._inner.append(f'<path class="{look}" d="{_path(self.across(x), self.down(y), alone=alone)}"/>')
        self._rows += rows

    def box(self, x, y, row, look):
        """Draw a box from x[0] to x[1] and from y[0] to y[1]; it is a mark with a row."""
        self.shade(x, y, f"m {look}")
        self._rows.append(row)

    def shade(self, x, y, look):
        """Draw a box that is not a mark and has no row in the table."""
        (left, right), (low, high) = np.sort(self.across(x)), np.sort(self.down(y))
        self._inner.append(
            f'<rect class="{look}" x={left:.1f} y={low:.1f} width={right - left:.1f} height={high - low:.1f} />'
        )

    def spot(self, x, y, row, look):
        """Draw a round spot; it is a mark with a row."""
        self._inner.append(f'<circle class="m {look}" cx={self.across(x):.1f} cy={self.down(y):.1f} r=7 />')
        self._rows.append(row)

    def ring(self, x, y, text):
        """Draw a ring around a point, and a word above it, or below it at the top of the frame."""
        across, down = float(self.across(x)), float(self.down(y))
        self._inner.append(f"<circle class=ring cx={across:.1f} cy={down:.1f} r=7 />")
        self._write(min(max(across, 40), self._width - 40), down + (24 if down < _TOP + 24 else -13), text, "mid tag")

    def figure(self, name, title, summary, *, legend=(), look="", below=""):
        """Return the HTML of the figure.

        Parameters
        ----------
        name : str
            The id of the figure, unique in the page.
        title : str
            The title.
        summary : str
            A description of what the figure shows. It is printed below the title, and screen readers read it out.
        legend : sequence of (int, str)
            Numbers and names of the series.
        look : str
            Further CSS classes.
        below : str
            HTML between the figure and its table.
        """
        entries = "".join(f'<li><i class="{series_class(series)}"></i>{shown(text)}' for series, text in legend)
        columns = f" data-columns={self._columns}" if self._columns else ""
        data = scrolling(f"{title}: data", table(self._heads, self._rows))
        return (
            f'<figure class="card {look}" id={name}><figcaption><h3>{shown(title)}</h3><p>{shown(summary)}</p>'
            f"</figcaption>{f'<ul class=legend>{entries}</ul>' if entries else ''}"
            f'<svg class=plot viewBox="0 0 {self._width} {self._height}" tabindex=0 role=img{columns} '
            f'data-nearest={self._nearest} aria-labelledby="{name}-t {name}-d">'
            f"<title id={name}-t>{shown(title)}</title>"
            f"<desc id={name}-d>{shown(summary)} Arrow keys go from point to point.</desc>{''.join(self._inner)}</svg>"
            f"{below}<details><summary>Data as a table</summary>{data}</details></figure>"
        )


def series_class(series):
    """Return the CSS classes of a series: its colour and, from the fifth series on, its dashes."""
    dashes = " dashed" if 4 <= series < N_SERIES else " dotted" if series >= N_SERIES else ""
    return f"s{series % N_SERIES}{dashes}"


def _path(x, y, *, alone=False):
    """Return an SVG path through the points, or with a dot at each point if `alone`."""
    points = [f"{across:.1f} {down:.1f}" for across, down in zip(x, y, strict=True)]
    return "".join(f"M{point}h0" for point in points) if alone or len(points) == 1 else "M" + "L".join(points)
