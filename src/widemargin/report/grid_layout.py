"""The layout of a grid search as a picture: which parameter is on which axis, and which point is in which cell.

C is on the horizontal axis and gamma on the vertical one if they vary; otherwise other parameters that vary take their
places. Parameters such as C and gamma have logarithmic axes to base 2, other numbers linear axes, and values that are
not numbers ("scale") are evenly spaced. If more than two parameters vary, a cell shows the best point over the others.
"""

from dataclasses import dataclass
from numbers import Integral, Real

import numpy as np

_LOGARITHMIC = ("C", "gamma", "epsilon", "nu", "tol")
_LOG_AXIS_RATIO = 16.0  # other positive numbers have a logarithmic axis if largest / smallest is at least this
_PREFERRED_AXES = ("C", "gamma")
_FRACTION_CONTOURS = (0.005, 0.01, 0.02, 0.05, 0.1)  # differences from the best of accuracies and other fractions
_RELATIVE_CONTOURS = (0.02, 0.05, 0.1, 0.2, 0.4)  # of other scores, relative to the range from best to worst
_MIN_FILLED_CELLS = 0.5  # a grid with a smaller fraction of its cells computed is drawn as spots


@dataclass(frozen=True)
class Axis:
    """A parameter: its values in ascending order, their positions on the axis, and their texts."""

    name: str
    label: str
    values: list
    positions: np.ndarray
    texts: list
    is_numeric: bool


@dataclass(frozen=True)
class Score:
    """How a score is printed: errors, which scikit-learn negates, with their sign; fractions as percentages."""

    name: str
    sign: float
    is_share: bool

    def text(self, score):
        """Return a score as text."""
        value = self.sign * score
        return f"{100.0 * value:z.2f}%" if self.is_share else f"{value:z.5g}"

    def difference(self, amount):
        """Return a difference of scores as text."""
        return f"{100.0 * amount:z.3g}%" if self.is_share else f"{amount:z.3g}"


@dataclass(frozen=True)
class Layout:
    """A grid ready to be drawn.

    `down` is None if only one parameter varies. `cells` has one line per value of `down` and one column per value of
    `across`; an entry is the position of a point in the result, −1 if there is none.
    """

    result: object
    score: Score
    across: Axis
    down: Axis | None
    cells: np.ndarray

    @property
    def means(self):
        """The mean score of each cell, NaN if it was not computed."""
        return np.where(self.cells >= 0, self.result.means[self.cells], np.nan)

    @property
    def is_sparse(self):
        """Whether so few cells were computed that points are drawn as spots."""
        return bool(np.mean(self.cells >= 0) < _MIN_FILLED_CELLS)

    @property
    def best(self):
        """The line and column of the best point."""
        return _place(self.result.points[self.result.best], self.across, self.down)

    @property
    def best_text(self):
        """The best point in words."""
        point = self.result.points[self.result.best]
        values = ", ".join(f"{name} = {value_text(point[name])}" for name in self.result.names)
        return f"{values}: {self.score.name} {self.score.text(self.result.best_score)}"

    @property
    def levels(self):
        """Scores of the contour lines, the best first, each with its difference from the best score."""
        best, worst = self.result.best_score, float(np.nanmin(self.means))
        relative = [part * (best - worst) for part in _RELATIVE_CONTOURS]
        differences = _FRACTION_CONTOURS if self.score.is_share else relative
        return [(best - difference, difference) for difference in differences if best - difference > worst]


def lay_out(result):
    """Return the layout of a GridResult; ValueError if there is no point to draw."""
    if not result.points or not result.names:
        raise ValueError("result must have a point whose folds are all done, and a name; there is nothing to draw.")
    axes = [_axis_of(result, name) for name in result.names]
    varying = [axis for axis in axes if len(axis.values) > 1] or axes[:1]
    varying.sort(
        key=lambda axis: _PREFERRED_AXES.index(axis.name) if axis.name in _PREFERRED_AXES else len(_PREFERRED_AXES)
    )
    across, down = varying[0], varying[1] if len(varying) > 1 else None
    cells = np.full((1 if down is None else len(down.values), len(across.values)), -1)
    means = result.means
    for k, point in enumerate(result.points):
        place = _place(point, across, down)
        if not np.isnan(means[k]) and (cells[place] < 0 or means[k] > means[cells[place]]):
            cells[place] = k
    best = result.points[result.best]
    cells[_place(best, across, down)] = result.best  # if scores are equal, the one that the result chose
    return Layout(result, _score_of(result), across, down, cells)


def _place(point, across, down):
    """Return the line and the column of a point."""
    return 0 if down is None else down.values.index(point[down.name]), across.values.index(point[across.name])


def _axis_of(result, name):
    """Return the axis of a parameter."""
    values = list({point[name]: None for point in result.points})
    if not all(isinstance(value, Real) and not isinstance(value, bool) for value in values):
        values.sort(key=lambda value: (not isinstance(value, Real), value if isinstance(value, Real) else str(value)))
        return Axis(name, name, values, np.arange(len(values)), [value_text(value) for value in values], False)
    values.sort()
    if values[0] > 0 and (name in _LOGARITHMIC or values[-1] >= _LOG_AXIS_RATIO * values[0]):
        positions = np.log2(np.array(values, dtype=np.float64))
        return Axis(name, f"log₂ {name}", values, positions, _logarithm_texts(positions), True)
    return Axis(name, name, values, np.array(values, dtype=np.float64), [value_text(value) for value in values], True)


def _logarithm_texts(positions):
    """Return ascending logarithms as texts, rounded to an error of at most a twentieth of their smallest distance."""
    step = float(np.diff(positions).min(initial=1.0))
    decimals = next((k for k in range(15) if np.all(np.abs(np.round(positions, k) - positions) <= 0.05 * step)), 15)
    return [f"{position:z.{decimals}f}".replace("-", "−") for position in positions.tolist()]


def _score_of(result):
    """Return the Score of a result."""
    if result.scoring.startswith("neg_"):
        return Score(result.scoring.removeprefix("neg_").replace("_", " "), -1.0, False)
    finite = result.scores[np.isfinite(result.scores)]
    is_share = bool(np.all((finite >= 0.0) & (finite <= 1.0))) and result.scoring != "r2"
    return Score(result.scoring.replace("_", " "), 1.0, is_share)


def value_text(value):
    """Return the value of a parameter as text: integers are exact, other numbers have six significant digits."""
    return f"{value:z.6g}" if isinstance(value, Real) and not isinstance(value, Integral) else str(value)
