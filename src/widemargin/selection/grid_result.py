"""The result of a grid search: a score for each point and fold, and the best point."""

from dataclasses import dataclass, field
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from widemargin._runtime.argument_types import Floats


@dataclass(frozen=True)
class GridResult:
    """Cross-validated scores over a grid of parameters.

    Attributes
    ----------
    names : tuple of str
        The parameters that vary, such as ("C", "gamma") or ("C", "gamma", "epsilon").
    points : tuple of dict
        A value for each of the names. Only points with a score on every fold are included.
    scores : ndarray of shape (n_points, n_folds)
        The scores; larger is better.
    scoring : str
        scikit-learn's name of the score, such as "accuracy" or "neg_mean_squared_error".
    seconds : ndarray of shape (n_points,)
        Time of fitting and scoring, all folds together.
    best_model : estimator or None
        The model fitted to all rows with the best parameters; None if `refit` was False.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from widemargin import SVC, grid_search
    >>> result = grid_search(SVC(), *load_iris(return_X_y=True), {"C": [1, 10]}, cv=3)
    >>> result.names, result.scores.shape, result.best_model.C == result.best_params["C"]
    (('C',), (2, 3), True)
    """

    names: tuple[str, ...]
    points: tuple[dict[str, Any], ...]
    scores: Floats
    scoring: str
    seconds: Floats
    best_model: Any = field(default=None, compare=False)

    @property
    def means(self) -> Floats:
        """The mean score of each point over its folds."""
        return self.scores.mean(axis=1)

    @property
    def best(self) -> int:
        """The position of the point with the best mean score; of equal scores, that of the smallest C, then gamma."""
        means = np.round(self.means, 12)  # differences due to the order of summation do not count
        candidates = np.flatnonzero(means == np.nanmax(means))
        return int(min(candidates, key=lambda k: [ordering(self.points[k][name]) for name in self.names]))

    @property
    def best_params(self) -> dict[str, Any]:
        """The best point, as keyword arguments for an estimator."""
        return dict(self.points[self.best])

    @property
    def best_score(self) -> float:
        """The mean score of the best point."""
        return float(self.means[self.best])

    @property
    def cv_results_(self) -> dict[str, Any]:
        """The scores under the names that scikit-learn's GridSearchCV gives them, for `pandas.DataFrame` for instance.

        `params` is a list with a dict for each point, `param_NAME` an array of the values of a parameter;
        `split0_test_score` and so on are the scores of each fold, `mean_test_score` and `std_test_score` their mean
        and standard deviation. `rank_test_score` is 1 for the best points; those without a score come last. Times are
        not included, because fitting and scoring are not measured separately; see `seconds`.
        """
        columns = {f"param_{name}": _masked([point[name] for point in self.points]) for name in self.names}
        splits = {f"split{k}_test_score": self.scores[:, k] for k in range(self.scores.shape[1])}
        losses = np.where(np.isnan(self.means), np.inf, -np.round(self.means, 12))  # equal means as in `best`
        return {
            "params": [dict(point) for point in self.points],
            **columns,
            **splits,
            "mean_test_score": self.means,
            "std_test_score": self.scores.std(axis=1),
            "rank_test_score": np.array([1 + np.sum(losses < loss) for loss in losses], dtype=np.int32),
        }

    def __repr__(self) -> str:
        shape = f"{len(self.points)} points, {self.scores.shape[1]} folds" if self.points else "no point"
        found = f", best {self.best_params}: {self.scoring} {self.best_score:.6g}" if self._has_best else ""
        model = "" if self.best_model is None else f", best_model {type(self.best_model).__name__}"
        return f"GridResult({', '.join(self.names)}: {shape}{found}{model})"

    @property
    def _has_best(self) -> bool:
        return bool(self.points) and not np.isnan(self.means).all()

    def _repr_html_(self) -> str:
        """Return an interactive figure for a notebook."""
        from widemargin.plots.grid import grid_fragment  # rarely needed, and slow to import

        return grid_fragment(self)

    def matrix(self, across: str = "C", down: str = "gamma") -> tuple[NDArray[Any], NDArray[Any], Floats]:
        """Return (values of `across`, values of `down`, mean scores of shape (n_down, n_across)).

        Values are ascending. If further parameters vary, the score is the best over them; without a point it is NaN.
        """
        xs = sorted({point[across] for point in self.points}, key=ordering)
        ys = sorted({point[down] for point in self.points}, key=ordering)
        table = np.full((len(ys), len(xs)), np.nan)
        for point, mean in zip(self.points, self.means, strict=True):
            place = ys.index(point[down]), xs.index(point[across])
            table[place] = np.fmax(table[place], mean)
        return np.array(xs), np.array(ys), table


def _masked(values: list[Any]) -> np.ma.MaskedArray[Any, Any]:
    """Return the values of a parameter as scikit-learn does: an array of numbers or of objects, none of them masked."""
    if values and all(isinstance(value, Real) for value in values):
        return np.ma.MaskedArray(np.array(values), mask=False)
    objects = np.empty(len(values), dtype=object)
    for k, value in enumerate(values):
        objects[k] = value
    return np.ma.MaskedArray(objects, mask=False)


class Weights(dict[Any, float]):
    """A dict as the value of a parameter, such as `class_weight`; it is hashable, because points are keys of dicts."""

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self.items()))


def ordering(value: Any) -> tuple[int, float, str]:
    """Return the sort key of a value of a parameter: numbers by size, then others, such as "scale", by their text."""
    return (0, float(value), "") if isinstance(value, Real) else (1, 0.0, str(value))
