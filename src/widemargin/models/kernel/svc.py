"""`SVC` and `NuSVC`: drop-in replacements for scikit-learn's, with a certificate.

    SVC      minimise ½|w|² + Σ C_i max(0, 1 − y_i f(x_i))
    NuSVC    minimise ½|w|² − nu r n + Σ w_i max(0, r − y_i f(x_i))    over r >= 0 too, then divided by r

f(x) = <w, φ(x)> + b, K(x, z) = <φ(x), φ(z)>, w_i = class_weight[y_i] * sample_weight[i] and C_i = C w_i. With several
classes there is such a problem for each pair of them; see `multiclass`.
"""

from dataclasses import replace
from numbers import Real

import numpy as np
from sklearn.utils._param_validation import Interval

from widemargin._runtime.warning import warn_caller
from widemargin.errors import ConvergenceWarning, InfeasibleNuError
from widemargin.models.base import POSITIVE
from widemargin.models.kernel.classifier import KernelClassifier
from widemargin.models.kernel.docs import documented
from widemargin.models.multiclass import largest_nu
from widemargin.problems.classification import c_svc, nu_svc
from widemargin.solvers.contract import Status


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
                raise InfeasibleNuError(
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
