"""What LIBLINEAR's train does: train with its model text, and search for C along powers of two.

LIBLINEAR begins its search where C is so small that the weights hardly differ from zero: at the largest power of 2 that
is at most 1 / (2 n max |x|²), with logistic losses 1 / (n max |x|²), and for regression
0.01 Σ max(|y| − p, 0)² / (8 (Σ |y|)² max |x|²). For regression it searches for p, too, half the width of the tube: 20
values below the largest |y|, from the largest down to 0.
"""

import math
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone, is_regressor

from widemargin.data.products import squared_norms
from widemargin.selection.c_path import c_path
from widemargin.workflows.files import naming_the_file
from widemargin.workflows.model_rows import ReadOptions, read_training_rows
from widemargin.workflows.originals.libsvm import without_absent_weights
from widemargin.workflows.train import train_file

_LARGEST_C, _LARGEST_C_OF_REGRESSION = 2.0**10, 2.0**20
_N_TUBES = 20  # values of p
_DUAL_TYPES = (1, 3, 4, 7, 12, 13, 21)  # of -s, whose dual objective is printed
_LOGISTIC_DUAL, _ONE_CLASS, _SPARSE_TYPES = 7, 21, (5, 6)


def trained_lines(model: BaseEstimator, data: str, output: str | None, kind: int) -> list[str]:
    """Train, write LIBLINEAR's model text, and return the lines that train prints for a type of -s.

    Dual types print the dual objective as one to be minimised and, where LIBLINEAR does, the number of dual variables
    other than zero. L1 types print how many weights are not zero.
    """
    trained = train_file(without_absent_weights(model, data), data, output, format="liblinear")
    fitted = trained.model
    lines = [f"optimization finished, #iter = {int(np.max(fitted.n_iter_))}"]
    is_halved = getattr(fitted, "multi_class", "") == "crammer_singer" and len(fitted.classes_) == 2
    primal = fitted.objective_ * (0.5 if is_halved else 1.0)
    dual = primal - abs(primal) * max(float(fitted.gap_), 0.0)
    lines.append(f"Objective value = {-dual if kind in _DUAL_TYPES else primal:f}")
    if kind in _DUAL_TYPES and kind != _LOGISTIC_DUAL and hasattr(fitted, "dual_coef_"):
        lines.append(f"nSV = {np.count_nonzero(fitted.dual_coef_) * (2 if is_halved else 1)}")
    if kind in _SPARSE_TYPES:
        lines.append(f"#nonzeros/#features = {np.count_nonzero(fitted.coef_)}/{fitted.coef_.shape[1]}")
    if kind == _ONE_CLASS:
        lines.append(f"rho = {fitted.offset_[0]:f}")
    return lines


def searched_lines(
    model: Any, data: str, n_folds: int, first_C: float | None = None, first_p: float | None = None
) -> list[str]:
    """Return the score by cross-validation for each C, of regression for each p and C, and the best, as train -C does.

    The search goes from `first_C` upwards and from `first_p` downwards; None is where LIBLINEAR begins.
    """
    model = without_absent_weights(model, data)
    rows = read_training_rows(model, data, ReadOptions("liblinear", None, "auto", np.float64))
    lines = [f"Doing parameter search with {n_folds}-fold cross validation."]
    if not is_regressor(model):
        path = _path(model, data, rows, n_folds, _powers_of_two(first_C or _first_C(rows.X, model.loss), _LARGEST_C))
        rates = 100.0 * path.scores.mean(axis=0)
        lines += [f"{_log2(C)}\trate={rate:g}" for C, rate in zip(path.Cs, rates, strict=True)]
        return [*lines, f"Best C = {path.Cs[path.best]:g}  CV accuracy = {rates[path.best]:g}%"]
    best = (np.inf, 0.0, 0.0)
    for p in _tubes(rows.y, first_p):
        model = clone(model).set_params(epsilon=p)
        first = min(first_C or _first_C_of_regression(rows.X, rows.y, p), _LARGEST_C_OF_REGRESSION)
        path = _path(model, data, rows, n_folds, _powers_of_two(first, _LARGEST_C_OF_REGRESSION))
        errors = -path.scores.mean(axis=0)
        lines += [
            f"{_log2(C)}\tp={p:7.2f}\tMean squared error={error:g}" for C, error in zip(path.Cs, errors, strict=True)
        ]
        best = min(best, (errors[path.best], path.Cs[path.best], p))
    error, C, p = best
    return [*lines, f"Best C = {C:g} Best p = {p:g}  CV MSE = {error:g}"]


def _path(model, data, rows, n_folds, Cs):
    """Return the path over these C, scored by the squared error of a regression or by the accuracy of a classifier."""
    scoring = "neg_mean_squared_error" if is_regressor(model) else "accuracy"
    return naming_the_file(data, c_path, model, rows.X, rows.y, Cs, cv=n_folds, scoring=scoring)


def _powers_of_two(first, largest):
    """Return first, 2 first, 4 first, ..., up to the largest."""
    return first * 2.0 ** np.arange(max(1, math.floor(math.log2(largest / first)) + 1))


def _log2(C):
    return f"log2c={math.log2(C):7.2f}"


def _tubes(y, first):
    """Return the values of p, in descending order: multiples of a twentieth of the largest absolute target."""
    step = float(np.abs(y).max()) / _N_TUBES
    last = _N_TUBES - 1 if first is None or step == 0.0 else min(int(first / step), _N_TUBES - 1)
    return step * np.arange(last, -1, -1) if step > 0.0 else np.zeros(1)


def _first_C(X, loss):
    """Return the power of two at which the search for C of a loss begins."""
    longest, factor = float(squared_norms(X).max()), 1.0 if loss == "log_loss" else 2.0
    return _power_below(1.0 / (factor * X.shape[0] * longest)) if longest > 0.0 else 1.0


def _first_C_of_regression(X, y, p):
    """Return the power of two at which the search for C of squared epsilon-insensitive losses begins.

    Targets within the tube have no loss; if all are, no C changes the weights, and the search has one value.
    """
    loss = float(np.sum(np.maximum(np.abs(y) - p, 0.0) ** 2))
    scale = 8.0 * float(np.abs(y).sum()) ** 2 * float(squared_norms(X).max())
    return _power_below(0.01 * loss / scale) if loss > 0.0 and scale > 0.0 else _LARGEST_C_OF_REGRESSION


def _power_below(number):
    return 2.0 ** math.floor(math.log2(number))
