"""Grids of parameter values: the default ranges, which are those of LIBSVM's grid.py, checks, extension, refinement."""

from collections.abc import Mapping
from itertools import product

import numpy as np

from widemargin.selection.grid_result import Weights

_C = 2.0 ** np.arange(-5, 16, 2)
_GAMMA = 2.0 ** np.arange(3, -16, -2)
_EPSILON = 2.0 ** np.arange(-8, -1, 3)
_NU = np.arange(1, 9) / 10
_EXTENDABLE = ("C", "gamma", "epsilon")
_MIN_EXTENDED_VALUE, _MAX_EXTENDED_VALUE = 2.0**-100, 2.0**100


def default_grid(estimator):
    """Return the default grid for an estimator: LIBSVM's ranges of C, gamma and epsilon, or nu, if it has them."""
    parameters = estimator.get_params()
    if "C" not in parameters and "nu" not in parameters:
        raise ValueError(f"{type(estimator).__name__} has no default grid: pass grid, a dict of name to values.")
    grid = {name: values for name, values in (("C", _C), ("nu", _NU)) if name in parameters}
    if parameters.get("kernel") in ("poly", "rbf", "sigmoid"):
        grid["gamma"] = _GAMMA
    if "epsilon" in parameters:
        grid["epsilon"] = _EPSILON
    return {name: values.tolist() for name, values in grid.items()}


def checked_grids(estimator, grid):
    """Return scikit-learn's parameter grid, a dict or a list of dicts, as a list of dicts that all have the same names.

    Where a dict of the list lacks a name that another one has, the estimator's own value takes its place.
    """
    listed = [grid] if isinstance(grid, Mapping) else list(grid) if isinstance(grid, list | tuple) else []
    if not listed:
        raise ValueError(
            "grid must be a dict of name to values with a name at the least, or a list of such dicts with a dict at "
            f"the least, got {grid!r}."
        )
    checked = [_checked_grid(estimator, one) for one in listed]
    names, own = dict.fromkeys(name for one in checked for name in one), estimator.get_params()
    return [{name: one.get(name) or [_as_key(name, own[name])] for name in names} for one in checked]


def _checked_grid(estimator, grid):
    """Return a grid as a dict of lists, each value once; ValueError if it is not for this estimator."""
    if not isinstance(grid, Mapping) or not grid:
        raise ValueError(
            f"grid must be a dict of name to values with a name at the least, or a list of such dicts, got {grid!r}."
        )
    parameters, checked = estimator.get_params(), {}
    for name, values in grid.items():
        if name not in parameters:
            known = ", ".join(sorted(parameters))
            raise ValueError(f"grid: {type(estimator).__name__} has no parameter {name!r}; it has {known}.")
        if isinstance(values, str) or not np.iterable(values):
            raise ValueError(f"grid: the values of {name!r} must be a list, got {values!r}.")
        values = [_as_key(name, value) for value in values]
        checked[name] = list(dict.fromkeys(values))
        if not values:
            raise ValueError(f"grid: {name!r} has no values.")
    return checked


def _as_key(name, value):
    """Return a value in hashable form; ValueError if there is none. Points are looked up by their values."""
    if isinstance(value, np.generic):
        return value.item()
    value = Weights(value) if isinstance(value, dict) else value
    try:
        hash(value)
    except TypeError:
        kind = type(value).__name__
        raise ValueError(
            f"grid: the values of {name!r} must be numbers, strings, None, functions or dicts of numbers, "
            f"got a {kind}: {value!r}. Make a separate search for each such value, or use scikit-learn's GridSearchCV."
        ) from None
    return value


def edges(points, means):
    """Return {name: "smallest" or "largest"} of the parameters whose best value is on the edge of the grid.

    A parameter is not included if a point with an inner value has the same score.

    Parameters
    ----------
    points : sequence of dict
        All points that were tried.
    means : array
        Their mean scores; larger is better.
    """
    rounded = np.round(means, 12)
    if np.isnan(rounded).all():
        return {}
    best = [points[k] for k in np.flatnonzero(rounded == np.nanmax(rounded))]
    found = {}
    for name in points[0]:
        values = {point[name] for point in points}
        if len(values) < 2 or not all(_is_number(value) for value in values):
            continue
        at = {point[name] for point in best}
        if at in ({min(values)}, {max(values)}):
            found[name] = "smallest" if at == {min(values)} else "largest"
    return found


def grown(grid, points, means):
    """Return the grid with one more value beyond each edge on which its best point lies; None if there is no such edge.

    Only C, gamma and epsilon are extended, and only if their values are in geometric progression.
    """
    ours = [dict(zip(grid, values, strict=True)) for values in product(*grid.values())]
    place = {tuple(point.items()): k for k, point in enumerate(points)}
    rows = [place[tuple(point.items())] for point in ours]
    more = {}
    for name, side in edges(ours, np.asarray(means)[rows]).items():
        step = _step(grid[name])
        if name in _EXTENDABLE and step is not None:
            beyond = min(grid[name]) * 2.0**-step if side == "smallest" else max(grid[name]) * 2.0**step
            if _MIN_EXTENDED_VALUE < beyond < _MAX_EXTENDED_VALUE:
                more[name] = [*grid[name], beyond]
    return {**grid, **more} if more else None


def refined(grid, best):
    """Return a grid around the best point: from one step below to one step above, in half steps."""
    closer = {}
    for name, values in grid.items():
        step = _step(values)
        if step is None:
            closer[name] = [best[name]]
        else:
            closer[name] = [float(best[name] * 2.0 ** (step * part)) for part in (-1.0, -0.5, 0.0, 0.5, 1.0)]
            closer[name][2] = best[name]
    return closer


def _step(values):
    """Return log2 of the ratio of adjacent values if they are a geometric progression, otherwise None."""
    if len(values) < 2 or not all(_is_number(value) and value > 0 for value in values):
        return None
    steps = np.abs(np.diff(np.sort(np.log2(values))))
    return float(steps[0]) if np.ptp(steps) < 1e-9 else None


def _is_number(value):
    return isinstance(value, int | float) and not isinstance(value, bool)
