"""Probabilities of a linear classifier with the log loss: the logistic function of its scores.

    two classes        P(classes_[1]) = 1 / (1 + exp(−score))
    several classes    p_k = 1 / (1 + exp(−score_k)) of each class against the rest, divided by their sum (LIBLINEAR)

Logarithms are computed first. They are exact to rounding for scores of any size, also where all p_k underflow.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp
from sklearn.utils.metaestimators import available_if

from widemargin._runtime.argument_types import Floats
from widemargin.models.argument_types import RowsOrBlocks
from widemargin.problems.classification import ENTROPIES


def has_logistic_scores(model):
    """Return whether probabilities are the logistic function of the scores of a linear model: its loss tells."""
    loss = getattr(model, "loss", None)
    return isinstance(loss, str) and loss in ENTROPIES and hasattr(model, "classes_")


def _has_log_loss(model):
    """Raise AttributeError unless a model has the log loss."""
    if not (isinstance(model.loss, str) and model.loss in ENTROPIES):
        raise AttributeError(
            f"predict_proba and predict_log_proba need loss='log_loss', got {model.loss!r}: scores of other losses are "
            "no log odds. SVC(kernel='linear', calibration='sigmoid') has probabilities, too."
        )
    return True


class LogisticProbabilities:
    """`predict_proba` and `predict_log_proba` of LinearSVC, which exist with loss="log_loss" only."""

    decision_function: Any
    loss: Any

    @available_if(_has_log_loss)
    def predict_proba(self, X: RowsOrBlocks) -> Floats:
        """Return the probability of each class for each row, with `loss="log_loss"`.

        With two classes it is the logistic function of the score. With more, that of each class against the rest is
        divided by the sum over classes, as in LIBLINEAR.

        Parameters
        ----------
        X : array-like, sparse matrix or RowBlocks of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Columns in the order of `classes_`; each row sums to one.
        """
        return np.exp(self._log_probabilities(X))

    @available_if(_has_log_loss)
    def predict_log_proba(self, X: RowsOrBlocks) -> Floats:
        """Return the logarithms of `predict_proba`, without its underflow.

        Parameters
        ----------
        X : array-like, sparse matrix or RowBlocks of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        return self._log_probabilities(X)

    def _log_probabilities(self, X):
        """Return the logarithms of the probabilities of all classes."""
        scores = self.decision_function(X)
        if scores.ndim == 1:
            return np.column_stack([_log_logistic(-scores), _log_logistic(scores)])
        logs = _log_logistic(scores)
        return logs - logsumexp(logs, axis=1, keepdims=True)


def _log_logistic(scores: NDArray[Any]) -> NDArray[Any]:
    """Return −log(1 + exp(−score)), without overflow."""
    return -np.logaddexp(0.0, -scores)
