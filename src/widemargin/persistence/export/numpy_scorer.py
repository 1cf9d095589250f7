"""`export_numpy`: a fitted linear model as a Python file that needs nothing but NumPy."""

from typing import Any

from widemargin._runtime.argument_types import FilePath
from widemargin._runtime.atomic_file import replacing
from widemargin._runtime.version import __version__
from widemargin.persistence.export.scorer import (
    Inlier,
    LargestScore,
    Number,
    Ordered,
    SecondIfPositive,
    linear_scorer_of,
)

_NUMBERS_PER_LINE = 5
_HEAD = '''\
"""{name} with {n_features} features as functions of NumPy arrays; widemargin {version} has written this file.

Each function takes rows X, an array of shape (n_rows, {n_features}).
"""

import numpy as np

COEF = np.array(
    """
{weights}
    """.split(),
    dtype=np.float64,
).reshape({n_outputs}, {n_features})
INTERCEPT = np.array({intercept})
'''
_SCORES = '''

def scores(X):
    """Return X COEF' + INTERCEPT, (n_rows, {n_outputs})."""
    X = np.asarray(X, dtype=np.float64)
    if X.ndim != 2 or X.shape[1] != {n_features}:
        raise ValueError(f"X must have shape (n_rows, {n_features}), got {{X.shape}}.")
    return X @ COEF.T + INTERCEPT
'''
_NUMBER = '''

def predict(X):
    """Return the prediction of each row, (n_rows,)."""
    return scores(X).ravel()
'''
_TWO = '''

def decision_function(X):
    """Return the score of each row, (n_rows,), positive for the second class."""
    return scores(X).ravel()


def predict(X):
    """Return the class of each row, (n_rows,)."""
    return CLASSES[(decision_function(X) > 0.0).astype(int)]
'''
_PROBABILITIES_OF_TWO = '''

def predict_proba(X):
    """Return the probability of each class, (n_rows, 2): the logistic function of the score."""
    score = decision_function(X)
    return np.exp(-np.logaddexp(0.0, np.column_stack([score, -score])))
'''
_LARGEST = '''

def decision_function(X):
    """Return the score of each row for each class, (n_rows, n_classes)."""
    return scores(X)


def predict(X):
    """Return the class of each row, (n_rows,)."""
    return CLASSES[decision_function(X).argmax(axis=1)]
'''
_PROBABILITIES = '''

def predict_proba(X):
    """Return the probability of each class, (n_rows, n_classes): logistic functions of scores over their sum."""
    logs = -np.logaddexp(0.0, -decision_function(X))
    p = np.exp(logs - logs.max(axis=1, keepdims=True))
    return p / p.sum(axis=1, keepdims=True)
'''
_ORDERED = '''

def decision_function(X):
    """Return the distance of each score to the nearest bound of each class; of two classes, to the threshold."""
    position = scores(X)
    if len(CLASSES) == 2:
        return position.ravel() - THRESHOLDS[0]
    lower, upper = np.append(-np.inf, THRESHOLDS), np.append(THRESHOLDS, np.inf)
    return np.minimum(position - lower, upper - position)


def predict(X):
    """Return the class of each row, (n_rows,)."""
    return CLASSES[np.searchsorted(THRESHOLDS, scores(X).ravel(), side="left")]
'''
_INLIER = '''

def decision_function(X):
    """Return the score of each row, (n_rows,): negative for outliers, zero within rounding of the boundary."""
    score = scores(X).ravel()
    return np.where(np.abs(score) <= ROUNDING, 0.0, score)


def predict(X):
    """Return 1 for inliers and -1 for outliers, (n_rows,)."""
    return np.where(decision_function(X) >= 0.0, 1, -1)
'''


def export_numpy(model: Any, path: FilePath) -> None:
    """Write a fitted linear model as a Python file that needs nothing but NumPy.

    The file has the functions `decision_function` (not of regressions and RankSVM), `predict`, and `predict_proba` if
    the loss is "log_loss". They take dense rows. Weights are written in full precision, and read back as the same
    numbers; the functions do the same operations as the model, so that results are equal up to the order in which
    NumPy adds the terms of a sum.

    Parameters
    ----------
    model : LinearSVC, LinearSVR, LinearOneClassSVM, RankSVM, OrdinalSVC, ROCAreaSVC or MeasureSVC
        A fitted model with a weight for each feature; also SVR and NuSVR with kernel="linear". For a LinearSVCCV or
        LinearSVRCV the selected model is exported, and for an estimator of `widemargin.dask` the ordinary one.
    path : str or path
        File to write; a file of that name is replaced only when the new one is complete.

    Raises
    ------
    TypeError
        If the model is not linear, or its labels are neither numbers, booleans nor strings.
    NotFittedError
        If the model has not been fitted.
    ValueError
        If the model is not valid: weights that are not finite, or shapes that do not match.
    OSError
        If the file cannot be written; an existing file is then unchanged.

    Examples
    --------
    >>> from pathlib import Path
    >>> from sklearn.datasets import load_iris
    >>> from widemargin import LinearSVC, export_numpy
    >>> X, y = load_iris(return_X_y=True)
    >>> export_numpy(LinearSVC(C=0.1, random_state=0).fit(X, y), "iris_scorer.py")
    >>> names = {}
    >>> exec(Path("iris_scorer.py").read_text(), names)
    >>> names["predict"](X[::50])
    array([0, 1, 2])
    """
    scorer = linear_scorer_of(model, "export_numpy")
    with replacing(path) as file:
        file.write(_text(scorer).encode())


def _text(scorer):
    """Return the Python file of a Scorer."""
    weights = scorer.function.weights
    numbers = {"name": scorer.name, "n_features": scorer.n_features, "n_outputs": len(weights), "version": __version__}
    head = _HEAD.format(**numbers, weights=_lines(weights), intercept=scorer.function.intercept.tolist())
    if scorer.classes is not None:
        head += f"CLASSES = np.array({scorer.classes.tolist()!r})\n"
    constants, functions = _TEXTS[type(scorer.outcome)](scorer.outcome)
    return head + constants + _SCORES.format(**numbers) + functions


def _lines(weights):
    """Return numbers as lines of text, each in the fewest digits that read back as the same number."""
    words = [repr(value) for value in weights.ravel().tolist()]
    return "\n".join(" ".join(words[k : k + _NUMBERS_PER_LINE]) for k in range(0, len(words), _NUMBERS_PER_LINE))


def _number(outcome):
    return "", _NUMBER


def _two(outcome):
    return "", _TWO + (_PROBABILITIES_OF_TWO if outcome.logistic else "")


def _largest(outcome):
    return "", _LARGEST + (_PROBABILITIES if outcome.logistic else "")


def _ordered(outcome):
    return f"THRESHOLDS = np.array({outcome.thresholds.tolist()})\n", _ORDERED


def _inlier(outcome):
    return f"ROUNDING = {outcome.rounding!r}\n", _INLIER


_TEXTS = {Number: _number, SecondIfPositive: _two, LargestScore: _largest, Ordered: _ordered, Inlier: _inlier}
