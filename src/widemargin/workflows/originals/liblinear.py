"""What LIBLINEAR's train does: train with its model text, and search for C along powers of two.

LIBLINEAR begins its search where C is so small that the weights hardly differ from zero: at the largest power of 2 that
is at most 1 / (2 n max |x|²), and for regression with p = 0.1 at a bound of the same kind.
"""

import math
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, is_regressor

from widemargin.data.products import squared_norms
from widemargin.selection.c_path import c_path
from widemargin.workflows.files import naming_the_file
from widemargin.workflows.model_rows import ReadOptions, read_training_rows
from widemargin.workflows.train import train_file

_LARGEST_C = 1024.0


def trained_lines(model: BaseEstimator, data: str, output: str | None, *, is_dual: bool) -> list[str]:
    """Train, write LIBLINEAR's model text, and return the lines that train prints.

    A dual solver prints its dual objective as one to be minimised, and the number of dual variables above zero.
    """
    trained = train_file(model, data, output, format="liblinear")
    fitted = trained.model
    lines = [f"optimization finished, #iter = {int(np.max(fitted.n_iter_))}"]
    dual = fitted.objective_ - abs(fitted.objective_) * max(float(fitted.gap_), 0.0)
    lines.append(f"Objective value = {-dual if is_dual else fitted.objective_:f}")
    if is_dual:
        lines.append(f"nSV = {np.count_nonzero(fitted.dual_coef_)}")
    return lines


def searched_lines(model: Any, data: str, n_folds: int, start: float | None) -> list[str]:
    """Return the score by cross-validation for each C, and the best, as train -C prints them."""
    rows = read_training_rows(model, data, ReadOptions("liblinear", None, "auto", np.float64))
    first = _first_C(rows.X) if start is None else start
    Cs = first * 2.0 ** np.arange(max(1, math.floor(math.log2(_LARGEST_C / first)) + 1))
    is_regression = is_regressor(model)
    scoring = "neg_mean_squared_error" if is_regression else "accuracy"
    path = naming_the_file(data, c_path, model, rows.X, rows.y, Cs, cv=n_folds, scoring=scoring)
    means = path.scores.mean(axis=0)
    word, values = ("MSE", -means) if is_regression else ("rate", 100.0 * means)
    lines = [f"log2c={math.log2(C):7.2f}\t{word}={value:g}" for C, value in zip(path.Cs, values, strict=True)]
    best = path.best
    measure = f"CV MSE = {values[best]:g}" if is_regression else f"CV accuracy = {values[best]:g}%"
    return [*lines, f"Best C = {path.Cs[best]:g}  {measure}"]


def _first_C(X):
    """Return the power of two at which the search for C begins."""
    longest = float(squared_norms(X).max())
    return 2.0 ** math.floor(math.log2(1.0 / (2.0 * X.shape[0] * longest))) if longest > 0.0 else 1.0
