"""What a grid search found: a score for each point and fold, and which point is the best."""

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
        A value for each of the names; only points whose folds are all done.
    scores : ndarray of shape (n_points, n_folds)
        Larger is better: accuracies, or what `scoring` names.
    scoring : str
        scikit-learn's name of the score, such as "accuracy" or "neg_mean_squared_error".
    seconds : ndarray of shape (n_points,)
        Time of fitting and scoring, all folds together.
    best_model : estimator or None
        Fitted to all rows with the best parameters, if that was asked for.
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
        """The position of the point with the best mean score; of equals that with the smallest C, then gamma."""
        means = np.round(self.means, 12)  # sums in another order are no better
        candidates = np.flatnonzero(means == np.nanmax(means))
        return int(min(candidates, key=lambda k: [ordering(self.points[k][name]) for name in self.names]))

    @property
    def best_params(self) -> dict[str, Any]:
        """The best point, as keyword arguments for an estimator."""
        return dict(self.points[self.best])

    @property
    def best_score(self) -> float:
        """Its mean score."""
        return float(self.means[self.best])

    @property
    def cv_results_(self) -> dict[str, Any]:
        """The scores under the names that scikit-learn's GridSearchCV gives them, for `pandas.DataFrame` for instance.

        `params` is a list with a dict for each point, `param_NAME` an array of the values of a parameter;
        `split0_test_score` and so on are the scores of each fold, `mean_test_score` and `std_test_score` their mean
        and standard deviation. `rank_test_score` is 1 for the best points; those without a score come last. Times are
        left out, as fitting and scoring are not measured apart; see `seconds`.
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
        """Return the picture for a notebook, with what the mouse is over in words."""
        from widemargin.plots.grid import grid_fragment  # rarely needed, and slow to import

        return grid_fragment(self)

    def matrix(self, across: str = "C", down: str = "gamma") -> tuple[NDArray[Any], NDArray[Any], Floats]:
        """Return (values of `across`, values of `down`, mean scores of shape (n_down, n_across)).

        Both ascend. If further parameters vary, the score is the best over them; NaN where no point is done.
        """
        xs = sorted({point[across] for point in self.points}, key=ordering)
        ys = sorted({point[down] for point in self.points}, key=ordering)
        table = np.full((len(ys), len(xs)), np.nan)
        for point, mean in zip(self.points, self.means, strict=True):
            place = ys.index(point[down]), xs.index(point[across])
            table[place] = np.fmax(table[place], mean)
        return np.array(xs), np.array(ys), table


def _masked(values: list[Any]) -> np.ma.MaskedArray[Any, Any]:
    """Return values of a parameter as scikit-learn does: numbers as such, anything else as objects; none is masked."""
    if values and all(isinstance(value, Real) for value in values):
        return np.ma.MaskedArray(np.array(values), mask=False)
    objects = np.empty(len(values), dtype=object)
    for k, value in enumerate(values):
        objects[k] = value
    return np.ma.MaskedArray(objects, mask=False)


class Weights(dict[Any, float]):
    """A dict as the value of a parameter, such as `class_weight`: it can be a key, and so a part of a point."""

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self.items()))


def ordering(value: Any) -> tuple[int, float, str]:
    """Return what values of a parameter are sorted by: numbers by size, then others such as "scale" by their text."""
    return (0, float(value), "") if isinstance(value, Real) else (1, 0.0, str(value))
