"""How good predictions are, in the words of svm-train and svm-predict; and predictions by cross-validation."""

import numpy as np
from sklearn.base import is_classifier
from sklearn.metrics import r2_score
from sklearn.model_selection import KFold, StratifiedKFold

from widemargin.solvers.contract import Status


def measure(y, predicted, classes):
    """Return measures of predictions as a dict; `classes` tells labels of classes from numbers.

    Classification: "rows", "correct" and "accuracy" (a fraction). Regression: "rows", "mse", the "squared_correlation"
    of LIBSVM, and "r2", the coefficient of determination; a measure that is undefined is NaN.
    """
    if classes:
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


def prediction_lines(facts):
    """Return svm-predict's lines about measures."""
    if "accuracy" in facts:
        return [f"Accuracy = {100 * facts['accuracy']:g}% ({facts['correct']}/{facts['rows']}) (classification)"]
    return [
        f"Mean squared error = {facts['mse']:g} (regression)",
        f"Squared correlation coefficient = {facts['squared_correlation']:g} (regression)",
    ]


def cross_validation_lines(facts):
    """Return svm-train's lines about measures by cross-validation."""
    if "accuracy" in facts:
        return [f"Cross Validation Accuracy = {100 * facts['accuracy']:g}%"]
    return [
        f"Cross Validation Mean squared error = {facts['mse']:g}",
        f"Cross Validation Squared correlation coefficient = {facts['squared_correlation']:g}",
    ]


def cross_predict(model, X, y, n_folds, seed):
    """Return a prediction for each row by the model, fitted anew without the row's fold.

    Ctrl-C in a fold ends them all. Folds are shuffled by the seed; for classification each has the classes in the
    proportion they have in y. Of a precomputed kernel, rows have a column for each row. A classifier with probabilities
    predicts the most probable class, as in svm-train.
    """
    _check_folds(model, y, n_folds)
    folds = (StratifiedKFold if is_classifier(model) else KFold)(n_folds, shuffle=True, random_state=seed)
    predicted = np.empty_like(y)
    pairwise = getattr(model, "kernel", None) == "precomputed"
    for train, test in folds.split(X, y):
        model.fit(X[np.ix_(train, train)] if pairwise else X[train], y[train])
        if model.status_ == Status.INTERRUPTED.value:
            raise KeyboardInterrupt
        predicted[test] = predict_labels(model, X[np.ix_(test, train)] if pairwise else X[test])
    return predicted


def predict_labels(model, X):
    """Return predictions; those of a classifier that was fitted with probabilities are its most probable classes."""
    if is_classifier(model) and has_probabilities(model):
        return model.classes_[model.predict_proba(X).argmax(axis=1)]
    return model.predict(X)


def has_probabilities(model):
    """Tell whether a fitted model was fitted with probabilities, whichever kind of machine it is."""
    return any(np.size(getattr(model, name, ())) > 0 for name in ("probA_", "laplace_scale_", "density_marks_"))


def _check_folds(model, y, n_folds):
    """Refuse more folds than there are rows of the largest class, and classes that some fold would not have."""
    if n_folds > len(y):
        raise ValueError(f"{n_folds} folds need as many rows, got {len(y)}; use a smaller -v.")
    if is_classifier(model):
        labels, counts = np.unique(y, return_counts=True)
        if counts.min() < 2:
            raise ValueError(f"class {labels[counts.argmin()]} has one row only; cross-validation needs two of each.")
        if n_folds > counts.max():
            raise ValueError(f"{n_folds} folds need a class with as many rows, got {counts.max()}; use a smaller -v.")
