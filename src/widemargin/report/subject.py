"""What a report is about: a model, rows, and what the model says of them, computed once for all parts."""

from copy import copy
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.base import is_classifier, is_regressor

from widemargin.evaluation.predictions import Prediction, has_probabilities, has_scores, measure, prediction_lines
from widemargin.models.kernel.base import KernelModel
from widemargin.report.markup import card, facts

_MOST_OTHERS = 10  # labels that the model does not know; of more, all are one


@dataclass(frozen=True)
class Subject:
    """A model and what it predicts for rows.

    Attributes
    ----------
    model : estimator
    X, y : rows and labels
    query : ndarray or None
        The query of each row, of a ranking.
    predicted : ndarray
        As `predict` says.
    scores : ndarray
        Decision values; of a kernel machine with several classes a column for each pair of them. Of a regression, the
        predictions.
    probabilities : ndarray or None
        Of each class, if the model has them.
    measures : dict
        Of the predictions, as `widemargin predict --json` has them; empty if no label is one that the model knows.
    labels : list
        The model's classes, then others that the rows have; empty if there are no classes.
    true, called : ndarray
        For each row the positions of its label and of the predicted one in `labels`.
    feature_names : sequence of str
        What features are called: as in training, or numbers.
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
    true: np.ndarray | None = None
    called: np.ndarray | None = None

    @property
    def n_classes(self):
        """How many classes the model tells apart; 0 if that is not what it does."""
        return len(self.model.classes_) if is_classifier(self.model) else 0

    @property
    def known(self):
        """Which rows have a label that the model knows."""
        return self.true < self.n_classes

    @property
    def is_kernel(self):
        """Whether the model has support vectors."""
        return isinstance(self.model, KernelModel)

    @property
    def is_recorded(self):
        """Whether the model tells how it was trained; those from the text of other programs do not."""
        return hasattr(self.model, "solver_")


def examine(model, X, y, query=None, *, first_feature=1):
    """Return the subject of a report.

    Parameters
    ----------
    model : any fitted estimator of widemargin
        It stays as it is.
    X : array, sparse array or data frame of shape (n_rows, n_features)
    y : ndarray of shape (n_rows,)
        Labels or targets; labels that the model does not know are no mistakes of its predictions.
    query : ndarray of shape (n_rows,), default=None
        Of a ranking; None: all rows are of one query.
    first_feature : int
        The number of the first feature, if features have no names.
    """
    X = X.to_numpy() if hasattr(X, "to_numpy") else X
    names = getattr(model, "feature_names_in_", range(first_feature, first_feature + X.shape[1]))
    model = copy(model)
    vars(model).pop("feature_names_in_", None)  # rows of a file have no names, which would be a warning each time
    predicted = model.predict(X)
    scores = predicted if is_regressor(model) else _decisions(model, X)
    probabilities = model.predict_proba(X) if has_probabilities(model) and not is_regressor(model) else None
    coding = _coding(model.classes_, y, predicted) if is_classifier(model) else {}
    measurable = not coding or bool(np.any(coding["true"] < len(model.classes_)))
    of_query = np.zeros(len(y), int) if query is None else query
    prediction = Prediction(predicted, scores if has_scores(model) else None, of_query)
    measures = measure(model, y, prediction) if measurable else {}
    return Subject(model, X, y, query, predicted, scores, probabilities, measures, names, **coding)


def _decisions(model, X):
    """Return decision values, of several classes of a kernel machine those of pairs."""
    if hasattr(model, "decision_function_shape"):
        model = copy(model).set_params(decision_function_shape="ovo")
    return model.decision_function(X)


def _coding(classes, y, predicted):
    """Return all labels, those of the model first, and the positions of y and of the predictions among them."""
    labels = classes.tolist()
    place = {label: k for k, label in enumerate(labels)}
    others = sorted(set(y.tolist()) - set(labels), key=lambda label: (isinstance(label, str), label))
    if len(others) > _MOST_OTHERS:
        place |= dict.fromkeys(others, len(labels))
        others = ["others"]
    else:
        place |= {label: k for k, label in enumerate(others, len(labels))}
    true, called = (np.array([place[label] for label in rows.tolist()], dtype=int) for rows in (y, predicted))
    return {"labels": labels + others, "true": true, "called": called}


def name_of(label):
    """Return a label as text that no other label has, a whole number without a point."""
    is_whole = isinstance(label, float) and label.is_integer() and abs(label) < 1e15
    return f"{label:z.0f}" if is_whole else str(label)


def measures_card(subject):
    """Return a card of the measures, as `widemargin predict` prints them."""
    lines = prediction_lines(subject.model, subject.measures)
    return card("Measures", facts(dict(line.split(" = ", 1) for line in lines)))
