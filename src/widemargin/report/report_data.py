"""The data of a report: a model, rows, and the model's predictions for them, computed once for all sections."""

from copy import copy
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.base import is_classifier, is_regressor

from widemargin.evaluation.predictions import Prediction, has_probabilities, has_scores, measure, prediction_lines
from widemargin.models.kernel.base import KernelModel
from widemargin.report.markup import card, facts

_MAX_UNKNOWN_LABELS = 10  # labels that the model does not know; if there are more, they are counted as one


@dataclass(frozen=True)
class ReportData:
    """A model and its predictions for the rows of a report.

    Attributes
    ----------
    model : estimator
    X, y
        The rows, and their labels or targets.
    query : ndarray or None
        The query of each row, for a ranking.
    predicted : ndarray
        The result of `predict`.
    scores : ndarray
        Decision values, for a kernel machine with several classes one column per pair of classes. For regression, the
        predictions.
    probabilities : ndarray or None
        Of each class, if the model has them.
    measures : dict
        Measures of the predictions, as in `widemargin predict --json`; empty if the model knows none of the labels.
    labels : list
        The model's classes, then the other labels of the rows; empty if the model is not a classifier.
    true_index, predicted_index : ndarray
        For each row the position in `labels` of its label and of the predicted label.
    feature_names : sequence of str
        Names of the features in training; their numbers if they have no names.
    """

    model: Any
    X: Any
    y: np.ndarray
    query: np.ndarray | None
    predicted: np.ndarray
    scores: np.ndarray
    probabilities: np.ndarray | None
    measures: dict
    feature_names: Any
    labels: list = field(default_factory=list)
    true_index: np.ndarray | None = None
    predicted_index: np.ndarray | None = None

    @property
    def n_classes(self):
        """The number of classes of the model; 0 if it is not a classifier."""
        return len(self.model.classes_) if is_classifier(self.model) else 0

    @property
    def known(self):
        """A mask of the rows whose label is one of the model's classes."""
        return self.true_index < self.n_classes

    @property
    def is_kernel(self):
        """Whether the model has support vectors."""
        return isinstance(self.model, KernelModel)

    @property
    def is_recorded(self):
        """Whether the model has a record of its training; models from the text formats of other programs do not."""
        return hasattr(self.model, "solver_")


def examine(model, X, y, query=None, *, first_feature=1):
    """Return the ReportData of a model and rows.

    Parameters
    ----------
    model : any fitted estimator of widemargin
        It is not modified.
    X : array, sparse array or data frame of shape (n_rows, n_features)
    y : ndarray of shape (n_rows,)
        Labels or targets. Labels that the model does not know are shown separately from its errors.
    query : ndarray of shape (n_rows,), default=None
        The query of each row, for a ranking; None means that all rows belong to one query.
    first_feature : int
        The number of the first feature, used if features have no names.
    """
    X = X.to_numpy() if hasattr(X, "to_numpy") else X
    names = getattr(model, "feature_names_in_", range(first_feature, first_feature + X.shape[1]))
    model = copy(model)
    vars(model).pop("feature_names_in_", None)  # X has no names, for which scikit-learn would warn in each call
    predicted = model.predict(X)
    scores = predicted if is_regressor(model) else _decisions(model, X)
    probabilities = model.predict_proba(X) if has_probabilities(model) and not is_regressor(model) else None
    encoding = _encode(model.classes_, y, predicted) if is_classifier(model) else {}
    measurable = not encoding or bool(np.any(encoding["true_index"] < len(model.classes_)))
    of_query = np.zeros(len(y), int) if query is None else query
    prediction = Prediction(predicted, scores if has_scores(model) else None, of_query)
    measures = measure(model, y, prediction) if measurable else {}
    return ReportData(model, X, y, query, predicted, scores, probabilities, measures, names, **encoding)


def _decisions(model, X):
    """Return decision values; for a kernel machine with several classes, those of the pairs of classes."""
    if "decision_function_shape" in model.get_params(deep=False):
        model = copy(model).set_params(decision_function_shape="ovo")
    return model.decision_function(X)


def _encode(classes, y, predicted):
    """Return all labels, the model's classes first, and the positions of y and of the predictions in them."""
    labels = classes.tolist()
    position = {label: k for k, label in enumerate(labels)}
    others = sorted(set(y.tolist()) - set(labels), key=lambda label: (isinstance(label, str), label))
    if len(others) > _MAX_UNKNOWN_LABELS:
        position |= dict.fromkeys(others, len(labels))
        others = ["others"]
    else:
        position |= {label: k for k, label in enumerate(others, len(labels))}
    true, guessed = (np.array([position[label] for label in rows.tolist()], dtype=int) for rows in (y, predicted))
    return {"labels": labels + others, "true_index": true, "predicted_index": guessed}


def name_of(label):
    """Return a label as text, different for different labels; integers have no decimal point."""
    is_whole = isinstance(label, float) and label.is_integer() and abs(label) < 1e15
    return f"{label:z.0f}" if is_whole else str(label)


def measures_card(report):
    """Return a card with the measures that `widemargin predict` prints."""
    lines = prediction_lines(report.model, report.measures)
    return card("Measures", facts(dict(line.split(" = ", 1) for line in lines)))
