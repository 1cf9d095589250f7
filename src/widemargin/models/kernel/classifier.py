"""What `SVC` and `NuSVC` have in common: a machine for each pair of classes, votes, decisions and probabilities."""

from dataclasses import replace
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from sklearn.base import ClassifierMixin
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from widemargin._runtime.argument_types import Floats, Rows
from widemargin._runtime.warning import warn_caller
from widemargin.models.calibration import couple, fit_sigmoid, sigmoid
from widemargin.models.inputs import check_class_weight, encode_labels
from widemargin.models.kernel.base import KernelModel, SolvedProblem
from widemargin.models.kernel.training_rows import folds_of, parts_of
from widemargin.models.multiclass import (
    blocks_of,
    labels_of,
    one_against_rest,
    order_of,
    order_of_first,
    pair_coefficients,
    pair_decisions,
    pairs_of,
    pairwise_probabilities,
    tabulate,
)
from widemargin.models.sklearn_private import StrOptions, _num_samples

_INSTEAD_OF_BOOL = {
    True: "use CalibratedClassifierCV({name}(), ensemble=False), or probability='libsvm' for those of LIBSVM.",
    False: "leave it out, no probabilities is the default.",
}


def _fits_probabilities(model):
    if not model._wants_probability:
        raise AttributeError("predict_proba and predict_log_proba need probability='libsvm' when fitting.")
    return True


class KernelClassifier(ClassifierMixin, KernelModel):
    """What `SVC` and `NuSVC` share; they state the problem of a pair of classes in `_problem`.

    Sets besides what a `KernelModel` sets: `classes_`, `class_weight_`, `probA_`, `probB_`.
    """

    _parameter_constraints: dict = {
        **KernelModel._parameter_constraints,
        "class_weight": [None, dict, StrOptions({"balanced"})],
        "decision_function_shape": [StrOptions({"ovo", "ovr"})],
        "break_ties": ["boolean"],
    }
    _one_class = "Invalid input"  # what rows of one class are called

    classes_: NDArray[Any]
    class_weight_: Floats
    n_iter_: NDArray[np.int32]
    probA_: Floats
    probB_: Floats

    def fit(self, X: Rows, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), or (n_samples, n_samples) if precomputed
            float32 stays float32, anything else becomes float64.
        y : array-like of shape (n_samples,)
            Two classes or more.
        sample_weight : array-like of shape (n_samples,), default=None
            Factor of each row's weight; a row of weight zero (or below) is as good as absent.

        Returns
        -------
        self
        """
        return self._fit(X, y, sample_weight)

    def _fit(self, X, y, sample_weight, submatrices=None):
        """Fit the model; `submatrices` are kernel matrices to reuse, as of `fit_reusing`."""
        training, label = self._check(X, y, sample_weight)
        training = replace(training, submatrices=submatrices)
        machines = self._machines(training, label)
        trained = self._train_pairs(training, machines)
        return self._keep(training, label, machines, trained)

    def _check(self, X, y, sample_weight):
        """Return the training rows, weighted by class too, and labels 0 .. n_classes − 1.

        Sets `classes_`, `class_weight_`.
        """
        check_class_weight(self.class_weight)
        X, y = self._check_rows(X, y)
        if isinstance(self.probability, (bool, np.bool_)):
            instead = _INSTEAD_OF_BOOL[bool(self.probability)].format(name=type(self).__name__)
            message = "The `probability` parameter is deprecated as a bool, as in scikit-learn from version 1.9 on"
            warn_caller(f"{message}; got probability={self.probability}: {instead}", FutureWarning)
        self.classes_, label = encode_labels(y)
        self._keep_order(label)
        weight = self._weigh(X, sample_weight)
        self.class_weight_ = compute_class_weight(self.class_weight, classes=self.classes_, y=y)
        weight = weight * self.class_weight_[label]
        if len(np.unique(label[weight > 0.0])) < 2:
            raise ValueError(
                f"{self._one_class} - all samples with positive weights belong to the same class; "
                "there must be rows of two classes whose sample_weight and class_weight are positive."
            )
        n_pairs = len(self.classes_) * (len(self.classes_) - 1) // 2
        return self._training_rows(X, weight, n_problems=n_pairs * (1 + 5 * self._wants_probability)), label

    def _keep_order(self, label):
        """Keep the order in which classes first occur as `_seen_order`, unless it is that of `classes_`."""
        for name in ("_class_order", "_seen_order"):  # of an earlier model
            vars(self).pop(name, None)
        order = order_of_first(label, len(self.classes_))
        if (np.diff(order) < 0).any():
            self._seen_order = order

    def _machines(self, training, label):
        """Return the pairs of each machine: of all rows, and for probabilities of all but those of each fold."""
        rows, n_classes = training.present, len(self.classes_)
        machines = [pairs_of(rows, label, n_classes)]
        if self._wants_probability:
            folds = folds_of(rows, label, self.random_state)
            machines += [pairs_of(np.setdiff1d(rows, fold), label, n_classes) for fold in folds]
        return machines

    def _train_pairs(self, training, machines):
        """Return a SolvedProblem for each pair of each machine; where a class is absent there is nothing to solve."""
        pairs = [pair for machine in machines for pair in machine]
        solved = iter(self._train([lambda pair=pair: self._problem(training, pair) for pair in pairs if pair.has_both]))
        trained = [next(solved) if pair.has_both else _constant(pair) for pair in pairs]
        n_pairs = len(machines[0])
        return [trained[begin : begin + n_pairs] for begin in range(0, len(trained), n_pairs)]

    def _keep(self, training, label, machines, trained):
        tables = [
            tabulate(pairs, [one.coef for one in models], [one.intercept for one in models], label, len(self.classes_))
            for pairs, models in zip(machines, trained, strict=True)
        ]
        model, *others = tables
        sign = -1.0 if len(self.classes_) == 2 else 1.0  # scikit-learn has the second of two classes positive
        self._keep_model(model.support, model.n_support, sign * model.dual_coef, sign * model.intercept, training)
        self.probA_, self.probB_ = self._sigmoids(training, label, machines, others) if others else (np.empty(0),) * 2
        self.n_iter_ = np.array([one.facts["iterations"] for one in trained[0]], dtype=np.int32)
        self._warn(
            self._keep_solutions(trained[0], [one for models in trained[1:] for one in models]),
            self._features(training),
        )
        return self

    def _sigmoids(self, training, label, machines, tables):
        """Return A and B of each pair, fitted to the decisions of machines that did not see the rows."""
        decisions = np.zeros((len(label), len(machines[0])))
        present = training.present
        with self._showing("calibrating", len(present)) as advance:
            for pairs, table in zip(machines[1:], tables, strict=True):
                held = np.setdiff1d(present, np.concatenate([pair.rows for pair in pairs]))
                options = {"ends": blocks_of(table.n_support), "advance": advance}
                for rows in parts_of(held, table.dual_coef.shape[0] * len(table.n_support)):
                    sums = training.sums(table.support, table.dual_coef, rows, **options)
                    decisions[rows] = pair_decisions(sums, table.intercept)
        fitted = [
            fit_sigmoid(decisions[pair.rows, k], pair.sign) if len(pair.rows) else (0.0, 0.0)
            for k, pair in enumerate(machines[0])
        ]
        return np.array(fitted).T.copy()

    def _weights(self):
        if len(self.classes_) == 2:
            return super()._weights()
        if not issparse(self.dual_coef_):
            return pair_coefficients(self.dual_coef_, self.n_support_) @ self.support_vectors_
        table = pair_coefficients(self.dual_coef_.toarray(), self.n_support_)
        return type(self.dual_coef_)(table) @ self.support_vectors_

    def _from_decisions(self, X, outcome):
        """Return outcome(decisions of the pairs, (n_rows, n_pairs)) of checked rows, part by part."""
        X, n_classes = self._check_new_rows(X), len(self.classes_)
        parts = parts_of(X, n_classes * (n_classes - 1))
        with self._showing("predicting", _num_samples(X)) as advance:
            return np.concatenate([outcome(self._decisions(part, advance)) for part in parts])

    def _decisions(self, Z, advance=None):
        """Return the decision of each pair, positive for its first class."""
        if len(self.classes_) == 2:
            return -self._sums(Z, advance=advance) - self.intercept_
        return pair_decisions(self._sums(Z, ends=blocks_of(self.n_support_), advance=advance), self.intercept_)

    def decision_function(self, X: Rows) -> Floats:
        """Return how far each row is on the side of a class.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), or (n_samples, n_training) if precomputed

        Returns
        -------
        ndarray
            Two classes: (n_samples,), positive for the second. More: (n_samples, n_classes), the votes of the pairs and
            a part below ½ from their confidence; or, for decision_function_shape="ovo", (n_samples, n_pairs), positive
            for the first class of the pair.
        """
        check_is_fitted(self)
        n_classes = len(self.classes_)
        if n_classes == 2:
            return self._from_decisions(X, lambda decisions: -decisions.ravel())
        if self.decision_function_shape == "ovo":
            return self._from_decisions(X, lambda decisions: decisions)
        return self._from_decisions(X, lambda decisions: one_against_rest(decisions, n_classes))

    def predict(self, X: Rows) -> NDArray[Any]:
        """Return the class of each row: the one that most pairs vote for.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), or (n_samples, n_training) if precomputed

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        check_is_fitted(self)
        if self.break_ties and self.decision_function_shape == "ovo":
            raise ValueError("break_ties must be False when decision_function_shape is 'ovo'")
        return self._from_decisions(X, partial(labels_of, self))

    @available_if(_fits_probabilities)
    def predict_proba(self, X: Rows) -> Floats:
        """Return the probability of each class for each row, if fitted with probability="libsvm".

        A sigmoid of each pair's decision, fitted to five-fold cross-validated decisions (Platt; Lin, Lin and Weng),
        coupled to class probabilities (Wu, Lin and Weng). The most probable class need not be the one predicted.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), or (n_samples, n_training) if precomputed

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Columns in the order of `classes_`; each row sums to one.
        """
        check_is_fitted(self)
        if not self.probA_.size:
            raise self._not_calibrated("predict_proba")
        n_classes, order = len(self.classes_), order_of(self)

        def probabilities(decisions):
            pairwise = pairwise_probabilities(sigmoid(decisions, self.probA_, self.probB_), n_classes)
            return couple(pairwise[:, order][:, :, order])[:, np.argsort(order)]

        return self._from_decisions(X, probabilities)

    @available_if(_fits_probabilities)
    def predict_log_proba(self, X: Rows) -> Floats:
        """Return the logarithm of `predict_proba`."""
        return np.log(self.predict_proba(X))


def _constant(pair):
    """Return the model of a pair without rows of both classes: its decision is for the class that is there."""
    facts = {"obj": 0.0, "rho": -pair.constant, "nSV": 0, "nBSV": 0, "iterations": 0}
    return SolvedProblem(np.zeros(len(pair.rows)), pair.constant, facts)
