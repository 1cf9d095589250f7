"""The points of a grid: LIBSVM's ranges by default, any values for any parameter, and a closer look around the best."""

import numpy as np

from widemargin.tools.gridresult import Weights

_C = 2.0 ** np.arange(-5, 16, 2)
_GAMMA = 2.0 ** np.arange(3, -16, -2)
_EPSILON = 2.0 ** np.arange(-8, -1, 3)
_NU = np.arange(1, 9) / 10


def default_grid(estimator):
    """Return the usual grid for an estimator: LIBSVM's ranges for those of its parameters that matter most."""
    parameters = estimator.get_params()
    if "C" not in parameters and "nu" not in parameters:
        raise ValueError(f"{type(estimator).__name__} has no usual grid: give one, a dict of name to values.")
    grid = {name: values for name, values in (("C", _C), ("nu", _NU)) if name in parameters}
    if parameters.get("kernel") in ("poly", "rbf", "sigmoid"):
        grid["gamma"] = _GAMMA
    if "epsilon" in parameters:
        grid["epsilon"] = _EPSILON
    return {name: values.tolist() for name, values in grid.items()}


def checked_grid(estimator, grid):
    """Return a grid as a dict of lists, each value once; ValueError if it is not for this estimator."""
    if not isinstance(grid, dict) or not grid:
        raise ValueError(f"grid must be a dict of name to values with a name at the least, got {grid!r}.")
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
    """Return a value that can be a part of a point, which is looked up by its values."""
    if isinstance(value, np.generic):
        return value.item()
    value = Weights(value) if isinstance(value, dict) else value
    try:
        hash(value)
    except TypeError:
        kind = type(value).__name__
        raise ValueError(
            f"grid: the values of {name!r} must be numbers, texts, None, functions or dicts of numbers, got a {kind}: "
            f"{value!r}. Search over such values with a grid for each, or with scikit-learn's GridSearchCV."
        ) from None
    return value


def refined(grid, best):
    """Return a grid around the best point: one step to either side, at half the distance."""
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
    """Return the distance of neighbours as a logarithm to base 2, if values are a geometric progression; else None."""
    if len(values) < 2 or not all(isinstance(value, int | float) and value > 0 for value in values):
        return None
    steps = np.abs(np.diff(np.sort(np.log2(values))))
    return float(steps[0]) if np.ptp(steps) < 1e-9 else None
