"""`SVC` and `NuSVC`: drop-in replacements for scikit-learn's, with a certificate.

    SVC      minimise ½|w|² + Σ C_i max(0, 1 − y_i f(x_i))
    NuSVC    minimise ½|w|² − nu r n + Σ w_i max(0, r − y_i f(x_i))    over r >= 0 too, then divided by r

f(x) = <w, φ(x)> + b, K(x, z) = <φ(x), φ(z)>, w_i = class_weight[y_i] * sample_weight[i] and C_i = C w_i. With several
classes there is such a problem for each pair of them; see `multiclass`.
"""

from dataclasses import replace
from functools import partial
from numbers import Real

import numpy as np
from scipy.sparse import issparse
from sklearn.base import ClassifierMixin
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import _num_samples, check_is_fitted

from widemargin._warning import warn_caller
from widemargin.errors import ConvergenceWarning
from widemargin.models.base import POSITIVE
from widemargin.models.calibration import couple, fit_sigmoid, sigmoid
from widemargin.models.inputs import check_class_weight
from widemargin.models.kernel import KernelModel, Trained, folds_of, parts_of
from widemargin.models.kerneldocs import documented
from widemargin.models.labels import coded, order_of_first
from widemargin.models.multiclass import (
    blocks_of,
    labels_of,
    largest_nu,
    one_against_rest,
    order_of,
    pair_coefficients,
    pair_decisions,
    pairs_of,
    pairwise_probabilities,
    tabulate,
)
from widemargin.problems.classification import c_svc, nu_svc
from widemargin.solvers.contract import Status

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

    def fit(self, X, y, sample_weight=None):
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
        training, label = self._check(X, y, sample_weight)
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
        self.classes_, label = coded(y)
        self._keep_order(label)
        weight = self._weigh(X, sample_weight)
        self.class_weight_ = compute_class_weight(self.class_weight, classes=self.classes_, y=y)
        weight = weight * self.class_weight_[label]
        if len(np.unique(label[weight > 0.0])) < 2:
            raise ValueError(
                f"{self._one_class} - all samples with positive weights belong to the same class; "
                "there must be rows of two classes."
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
        """Return a Trained for each pair of each machine; where a class is absent there is nothing to solve."""
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

    def decision_function(self, X):
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

    def predict(self, X):
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
    def predict_proba(self, X):
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
    def predict_log_proba(self, X):
        """Return the logarithm of `predict_proba`."""
        return np.log(self.predict_proba(X))


def _constant(pair):
    """Return the model of a pair without rows of both classes: its decision is for the class that is there."""
    facts = {"obj": 0.0, "rho": -pair.constant, "nSV": 0, "nBSV": 0, "iterations": 0}
    return Trained(np.zeros(len(pair.rows)), pair.constant, facts)


@documented
class SVC(KernelClassifier):
    """Support vector classification, two classes or more, with a proof of how good the model is.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the losses against ½|w|².
    {kernel}
    {tol}
    {shared}
    {classes}
    {extra}

    Attributes
    ----------
    classes_ : ndarray of the class labels
    class_weight_ : ndarray of shape (n_classes,)
        Factor of C for each class.
    {attributes}
    n_iter_ : ndarray of shape (n_pairs,)
        Iterations of the solver.
    probA_, probB_ : ndarray of shape (n_pairs,)
        P(first class of a pair) = 1 / (1 + exp(A f + B)), f its decision; empty without probabilities.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from widemargin import SVC
    >>> X, y = load_iris(return_X_y=True)
    >>> model = SVC(C=10.0).fit(X, y)
    >>> model.n_support_.shape, model.status_
    ((3,), 'converged')
    """

    _parameter_constraints: dict = {
        **KernelClassifier._parameter_constraints,
        "C": [POSITIVE],
    }

    def __init__(
        self,
        *,
        C=1.0,
        kernel="rbf",
        degree=3,
        gamma="scale",
        coef0=0.0,
        shrinking=True,
        probability=None,
        tol=1e-3,
        cache_size=200,
        class_weight=None,
        verbose=False,
        max_iter=-1,
        decision_function_shape="ovr",
        break_ties=False,
        random_state=None,
        stopping="kkt",
        solver="auto",
        working_set=None,
        warm_start=False,
        max_seconds=None,
        n_jobs=None,
        callbacks=None,
    ):
        self.C = C
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.shrinking = shrinking
        self.probability = probability
        self.tol = tol
        self.cache_size = cache_size
        self.class_weight = class_weight
        self.verbose = verbose
        self.max_iter = max_iter
        self.decision_function_shape = decision_function_shape
        self.break_ties = break_ties
        self.random_state = random_state
        self.stopping = stopping
        self.solver = solver
        self.working_set = working_set
        self.warm_start = warm_start
        self.max_seconds = max_seconds
        self.n_jobs = n_jobs
        self.callbacks = callbacks

    def _problem(self, training, pair):
        return c_svc(training.matrix(pair.rows), pair.sign, self._costs(training, pair.rows))


@documented
class NuSVC(KernelClassifier):
    """Support vector classification with nu in the place of C, with a proof of how good the model is.

    Parameters
    ----------
    nu : float, default=0.5
        At most about this part of the rows has a margin error, and at least this part are support vectors. With
        unequal classes not every nu is feasible: at most 2 min(n_i, n_j) / (n_i + n_j) for each pair of classes,
        weights counted. If only `class_weight` makes it infeasible there is a warning, and class_weight is a factor
        of the C that nu comes to without it.
    {kernel}
    {tol}
    {shared}
    {classes}
    {extra}

    Attributes
    ----------
    classes_ : ndarray of the class labels
    class_weight_ : ndarray of shape (n_classes,)
        Factor of the rows' weights for each class.
    {attributes}
    n_iter_ : ndarray of shape (n_pairs,)
        Iterations of the solver.
    probA_, probB_ : ndarray of shape (n_pairs,)
        P(first class of a pair) = 1 / (1 + exp(A f + B)), f its decision; empty without probabilities.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from widemargin import NuSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> model = NuSVC(nu=0.2).fit(X, y)
    >>> model.n_support_.shape, model.status_
    ((3,), 'converged')
    """

    _parameter_constraints: dict = {
        **KernelClassifier._parameter_constraints,
        "nu": [Interval(Real, 0.0, 1.0, closed="right")],
    }
    _one_class = "The specified nu is infeasible, as any"

    def __init__(
        self,
        *,
        nu=0.5,
        kernel="rbf",
        degree=3,
        gamma="scale",
        coef0=0.0,
        shrinking=True,
        probability=None,
        tol=1e-3,
        cache_size=200,
        class_weight=None,
        verbose=False,
        max_iter=-1,
        decision_function_shape="ovr",
        break_ties=False,
        random_state=None,
        stopping="kkt",
        solver="auto",
        working_set=None,
        warm_start=False,
        max_seconds=None,
        n_jobs=None,
        callbacks=None,
    ):
        self.nu = nu
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.shrinking = shrinking
        self.probability = probability
        self.tol = tol
        self.cache_size = cache_size
        self.class_weight = class_weight
        self.verbose = verbose
        self.max_iter = max_iter
        self.decision_function_shape = decision_function_shape
        self.break_ties = break_ties
        self.random_state = random_state
        self.stopping = stopping
        self.solver = solver
        self.working_set = working_set
        self.warm_start = warm_start
        self.max_seconds = max_seconds
        self.n_jobs = n_jobs
        self.callbacks = callbacks

    def _machines(self, training, label):
        machines = super()._machines(training, label)
        for pair in machines[0]:
            most = largest_nu(pair, self._weight(training, pair))
            if pair.has_both and self.nu > most * (1.0 + 1e-12):
                names = [repr(name) for name in self.classes_[[pair.first, pair.second]].tolist()]
                raise ValueError(
                    f"nu={self.nu} is infeasible: classes {' and '.join(names)} allow 0 < nu <= {most:.6g}, "
                    "twice the smaller one's part of their rows. Lower nu, or weigh the classes."
                )
        return machines

    def _is_overweight(self, training, pair):
        """Whether class_weight is what makes nu infeasible."""
        return self.class_weight is not None and self.nu > largest_nu(pair, training.weight[pair.rows])

    def _weight(self, training, pair):
        """Return the rows' weights: times class_weight unless that makes nu infeasible."""
        weight = training.weight[pair.rows]
        if not self._is_overweight(training, pair):
            return weight
        return weight / np.where(pair.sign > 0.0, *self.class_weight_[[pair.first, pair.second]])

    def _problem(self, training, pair):
        weight = self._weight(training, pair)
        # Of a fold, the smaller class may have a row too few for nu.
        return nu_svc(training.matrix(pair.rows), pair.sign, weight, min(self.nu, largest_nu(pair, weight)))

    def _train_pairs(self, training, machines):
        """As for other classifiers, then again the pairs whose class_weight is too much for nu: by SVC, C = 1/r."""
        trained = super()._train_pairs(training, machines)
        self._tell_of_no_margin(machines[0], trained[0])
        again = [
            (models, k, pair)
            for pairs, models in zip(machines, trained, strict=True)
            for k, pair in enumerate(pairs)
            if pair.has_both and self._is_overweight(training, pair)
        ]
        if not again:
            return trained

        def weighted(models, k, pair):
            cost = models[k].facts.get("C", 1.0) * training.weight[pair.rows]
            return c_svc(training.matrix(pair.rows), pair.sign, cost)

        solved = self._train([lambda which=which: weighted(*which) for which in again])
        for (models, k, _), model in zip(again, solved, strict=True):
            models[k] = replace(model, facts={**model.facts, "C": models[k].facts.get("C", 1.0)})
        warn_caller(
            f"nu={self.nu} is infeasible with this class_weight: it was taken as a factor of the C that nu comes to "
            "without it. Lower nu, or make the class weights less unequal."
        )
        return trained

    def _tell_of_no_margin(self, pairs, trained):
        """Warn of pairs whose margin is 0: there is no better function than the one that is 0 everywhere."""
        none = [pair for pair, model in zip(pairs, trained, strict=True) if pair.has_both and _has_no_margin(model)]
        if none:
            names = [repr(name) for name in self.classes_[[none[0].first, none[0].second]].tolist()]
            warn_caller(
                f"nu={self.nu} is too small for classes {' and '.join(names)}, which overlap by more: the margin is 0, "
                "and so is the best decision function. Raise nu, or take a kernel that separates them.",
                ConvergenceWarning,
            )


def _has_no_margin(model):
    """Return whether a nu-SVC has no margin that could be told from rounding: else its objective is below 0."""
    return "C" not in model.facts or (model.solution.status is Status.STALLED and model.solution.primal >= 0.0)
