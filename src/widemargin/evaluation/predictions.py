"""Predictions by cross-validation, and measures of predictions, as dicts and in the format of LIBSVM's programs."""

from typing import NamedTuple

import numpy as np
from sklearn.base import is_classifier, is_regressor
from sklearn.metrics import r2_score
from sklearn.model_selection import GroupKFold, KFold, StratifiedKFold

from widemargin._runtime.progress import task
from widemargin.evaluation import orders
from widemargin.models.cutting_plane.measure import MeasureSVC
from widemargin.models.cutting_plane.queries import queries
from widemargin.models.cutting_plane.ranking import RankSVM
from widemargin.models.cutting_plane.roc_area import ROCAreaSVC
from widemargin.models.probabilities import has_logistic_scores
from widemargin.solvers.contract import Status


class Prediction(NamedTuple):
    """The predicted label or number of each row; its score, query and fold if the measures of the model need them."""

    labels: np.ndarray
    scores: np.ndarray | None = None
    query: np.ndarray | None = None
    fold: np.ndarray | None = None


_OF_PROBABILITIES = ("probA_", "isotonic_ends_", "laplace_scale_", "density_marks_")  # attributes of fitted models


def measure(model, y, prediction):
    """Return measures of a model's predictions as a dict.

    Classification: "rows", "correct" and "accuracy" (a fraction). Regression: "rows", "mse", the "squared_correlation"
    of LIBSVM, and "r2", the coefficient of determination. Cutting plane models: see `evaluation.orders`. A measure
    that is undefined is NaN.
    """
    if type(model) in orders.FACTS:
        return orders.FACTS[type(model)](model, y, prediction)
    predicted = prediction.labels
    if not is_regressor(model):
        correct = int(np.sum(predicted == y))
        return {"rows": len(y), "correct": correct, "accuracy": correct / len(y)}
    return {
        "rows": len(y),
        "mse": float(np.mean((predicted - y) ** 2)),
        "squared_correlation": _squared_correlation(y, predicted),
        "r2": float(r2_score(y, predicted)) if len(y) > 1 and np.ptp(y) > 0 else float("nan"),
    }


def _squared_correlation(y, predicted):
    spread = np.sum((y - y.mean()) ** 2) * np.sum((predicted - predicted.mean()) ** 2)
    if spread == 0:
        return float("nan")
    return float(np.sum((y - y.mean()) * (predicted - predicted.mean())) ** 2 / spread)


def prediction_lines(model, facts):
    """Return the lines that svm-predict prints; for cutting plane models, those of `evaluation.orders`."""
    if type(model) in orders.LINES:
        return orders.LINES[type(model)](facts)
    if "accuracy" in facts:
        return [f"Accuracy = {100 * facts['accuracy']:g}% ({facts['correct']}/{facts['rows']}) (classification)"]
    return [
        f"Mean squared error = {facts['mse']:g} (regression)",
        f"Squared correlation coefficient = {facts['squared_correlation']:g} (regression)",
    ]


def cross_validation_lines(model, facts):
    """Return the lines that svm-train prints after cross-validation; for cutting plane models, similar lines."""
    if type(model) in orders.LINES:
        return [f"Cross Validation {line}" for line in orders.LINES[type(model)](facts)]
    if "accuracy" in facts:
        return [f"Cross Validation Accuracy = {100 * facts['accuracy']:g}%"]
    return [
        f"Cross Validation Mean squared error = {facts['mse']:g}",
        f"Cross Validation Squared correlation coefficient = {facts['squared_correlation']:g}",
    ]


def cross_predict(model, X, y, n_folds, seed, qid=None):
    """Return a Prediction whose entry for each row comes from a fit without the row's fold.

    Rows are shuffled with the seed. Folds are stratified for classification; for ranking, all rows of a query are in
    one fold. For a precomputed kernel, X is the kernel matrix of all rows. A classifier with probabilities predicts the
    most probable class, as svm-train does. Ctrl-C during a fit ends the cross-validation.
    """
    group = queries(qid, len(y)) if isinstance(model, RankSVM) else None
    _check_folds(model, y, n_folds, group)
    predicted, scores, fold = np.empty_like(y), np.empty(len(y)), np.empty(len(y), int)
    pairwise = getattr(model, "kernel", None) == "precomputed"
    folds = _folds_for(model)(n_folds, shuffle=True, random_state=seed).split(X, y, group)
    with task("cross-validation", n_folds, "folds") as validation:
        for k, (train, test) in enumerate(folds):
            rows = X[np.ix_(train, train)] if pairwise else X[train]
            fit(model, rows, y[train], None if group is None else group[train])
            if model.status_ == Status.INTERRUPTED.value:
                raise KeyboardInterrupt
            predicted[test] = predict_labels(model, X[np.ix_(test, train)] if pairwise else X[test])
            if has_scores(model):
                scores[test] = model.decision_function(X[test])
            fold[test] = k
            validation.advance()
    return Prediction(predicted, scores if has_scores(model) else None, group, fold)


def _folds_for(model):
    """Return scikit-learn's class of splitters for a model."""
    if isinstance(model, RankSVM):
        return GroupKFold
    return StratifiedKFold if is_classifier(model) else KFold


def fit(model, X, y, qid):
    """Fit a model; `qid` is passed to a RankSVM only."""
    return model.fit(X, y, qid=qid) if isinstance(model, RankSVM) else model.fit(X, y)


def has_scores(model):
    """Return whether the measures of a model need `decision_function`, which then has one score per row."""
    return isinstance(model, (RankSVM, ROCAreaSVC, MeasureSVC))


def predict_labels(model, X):
    """Return predictions; for a classifier that was fitted with probabilities, the most probable classes."""
    if is_classifier(model) and has_probabilities(model):
        return model.classes_[model.predict_proba(X).argmax(axis=1)]
    return model.predict(X)


def has_probabilities(model):
    """Return whether a model has probabilities: kernel machines if asked for, linear ones with the log loss."""
    return has_logistic_scores(model) or any(np.size(getattr(model, name, ())) > 0 for name in _OF_PROBABILITIES)


def _check_folds(model, y, n_folds, group):
    """Raise ValueError if there are too many folds for the rows, queries or classes, or a class with one row."""
    if group is not None and n_folds > len(np.unique(group)):
        raise ValueError(f"{n_folds} folds need as many queries, got {len(np.unique(group))}; use a smaller -v.")
    if n_folds > len(y):
        raise ValueError(f"{n_folds} folds need as many rows, got {len(y)}; use a smaller -v.")
    if is_classifier(model):
        labels, counts = np.unique(y, return_counts=True)
        if counts.min() < 2:
            raise ValueError(f"class {labels[counts.argmin()]} has one row only; cross-validation needs two of each.")
        if n_folds > counts.max():
            raise ValueError(f"{n_folds} folds need a class with as many rows, got {counts.max()}; use a smaller -v.")
