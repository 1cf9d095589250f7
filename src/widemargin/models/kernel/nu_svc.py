"""`NuSVC`: a drop-in replacement for scikit-learn's, with a certificate.

    minimise ½|w|² − nu r n + Σ w_i max(0, r − y_i f(x_i)) over r >= 0 too, and divide f by r

f(x) = <w, φ(x)> + b, K(x, z) = <φ(x), φ(z)> and w_i = class_weight[y_i] sample_weight[i]. With several classes there is
one problem for each pair of classes; see `multiclass`.
"""

from dataclasses import replace
from numbers import Real
from typing import Literal

import numpy as np

from widemargin._runtime.warning import warn_caller
from widemargin.errors import ConvergenceWarning, InfeasibleNuError
from widemargin.models.argument_types import (
    Callbacks,
    Checkpoint,
    ClassWeight,
    Gamma,
    KernelChoice,
    KernelStopping,
    RandomState,
)
from widemargin.models.kernel.classifier import KernelClassifier
from widemargin.models.multiclass import largest_nu
from widemargin.models.sklearn_private import Interval
from widemargin.problems.classification import c_svc, nu_svc
from widemargin.solvers.contract import Status


class NuSVC(KernelClassifier):
    """Support vector classification with nu in place of C, with a proof of how good the model is.

    Parameters
    ----------
    nu : float, default=0.5
        At most about this fraction of the rows has a margin error, and at least this fraction are support vectors. With
        unequal classes not every nu is feasible: it must be at most 2 min(n_i, n_j) / (n_i + n_j) for each pair of
        classes, where n_i is the sum of the weights of the rows of class i. If nu is infeasible only because of
        `class_weight`, there is a warning, and class_weight is a factor of the C that corresponds to nu without it.
    kernel : {"linear", "poly", "rbf", "sigmoid", "precomputed"} or callable, default="rbf"
        The kernel K(x, z): <x, z>, (gamma <x, z> + coef0)^degree, exp(−gamma |x − z|²) or tanh(gamma <x, z> + coef0).
        With "precomputed", X is the matrix K(X, X) itself. A callable K(A, B) takes two blocks of rows and returns one
        row of kernel values for each row of A.
    degree : int, default=3
        Degree of "poly".
    gamma : {"scale", "auto"} or float, default="scale"
        Coefficient of "rbf", "poly" and "sigmoid". "scale" is 1 / (n_features * X.var()), where each row is weighted
        by `sample_weight` if that is given; "auto" is 1 / n_features.
    coef0 : float, default=0.0
        Constant term of "poly" and "sigmoid".
    shrinking : bool, default=True
        Whether to leave variables that seem to stay at their bounds out of some iterations. The result is checked on
        all variables.
    probability : "libsvm", bool or None, default=None
        True is calibration="sigmoid", unless `calibration` is given; False and scikit-learn's "deprecated" are None.
        "libsvm" is as LIBSVM: by five-fold cross-validation, which makes a fit about six times as long.
    tol : float, default=1e-3
        Stop when no optimality (KKT) condition is violated by more than this (LIBSVM's eps) and the dual objective is
        proved to be within 10 tol of the optimum, relatively. With `stopping="gap"`, stop when `gap_` is at most this.
    cache_size : float, default=200
        Megabytes of memory for kernel values. Problems that are solved at the same time share them.
    class_weight : dict, "balanced" or None, default=None
        Factor of each class's weights, by class label; "balanced" is n_samples / (n_classes * rows of the class).
    verbose : bool or int, default=False
        1 shows progress: bars on a terminal or in a notebook, lines on standard error elsewhere. 2 shows more lines.
    max_iter : int, default=-1
        Largest number of iterations of the solver for each problem; -1 is no limit.
    decision_function_shape : {"ovr", "ovo"}, default="ovr"
        With three classes or more, whether `decision_function` returns a score for each class or for each pair of
        classes. Training is one-against-one in both cases.
    break_ties : bool, default=False
        With three classes or more and "ovr": whether `predict` decides between classes with equally many votes by
        the sums of their decision values, which takes longer, or takes the one that comes first.
    random_state : int, RandomState or None, default=None
        Seed of the folds for probabilities and of the solver.
    stopping : {"kkt", "gap"}, default="kkt"
        What `tol` is compared with: "kkt" is the largest violation of an optimality condition, in units of the decision
        function (of its margin for `NuSVC`, of its threshold for `OneClassSVM`, where these are below 1); "gap" is the
        relative duality gap.
    solver : {"auto", "svmlight", "smo"}, default="auto"
        "svmlight" optimises working sets of many variables, "smo" two variables at a time as LIBSVM does.
    working_set : int or None, default=None
        Number of variables in a working set of "svmlight"; None lets the solver choose.
    warm_start : bool, default=False
        Whether to start from the dual variables of the last fit, if their number is the same.
    max_seconds : float or None, default=None
        Stop after about this many seconds and keep the best model found until then.
    n_jobs : int or None, default=None
        Number of threads, over pairs of classes or over rows. None is all cores where the work is worth it, and one
        within workers of joblib or Dask; -1 is all cores.
    callbacks : callable or list of callables, default=None
        Called after each iteration with a `Progress`. A callback that returns a true value stops the fit. With several
        classes and `n_jobs` above 1 they are called from several threads.
    checkpoint : str or path, default=None
        File that keeps the state of the solver if a problem has 20,000 rows or more; smaller ones take seconds. The
        same call goes on from there if the process was killed. Not for kernels that are precomputed or callable.
    calibration : {"sigmoid", "isotonic"} or None, default=None
        Fit probabilities to decision values of rows that are left out, which follow from the dual variables of one fit.
        That of a pair of classes is a sigmoid of the decision value, or any non-decreasing function of it.
    predict_by : {"decision", "probability"}, default="decision"
        Whether `predict` returns the class with the most votes of the pairs, or the most probable class. With two
        classes, decision values are compared with 0, or with the value whose probability is 1/2.

    Attributes
    ----------
    classes_ : ndarray
        The class labels, ascending.
    class_weight_ : ndarray of shape (n_classes,)
        Factor of the rows' weights for each class.
    support_ : ndarray of shape (n_SV,)
        Indices of the training rows that are support vectors, by class, then ascending.
    support_vectors_ : ndarray or csr of shape (n_SV, n_features)
        Those rows; empty if the kernel is precomputed or callable.
    n_support_ : ndarray of int32 of shape (n_classes,)
        Number of support vectors of each class.
    dual_coef_ : ndarray or csr of shape (n_classes - 1, n_SV)
        Coefficients of the support vectors in the decision functions of the pairs, in LIBSVM's layout.
    intercept_ : ndarray of shape (n_pairs,)
        Constants of the decision functions of the n_pairs = n_classes * (n_classes - 1) / 2 pairs of classes.
    coef_ : ndarray or csr of shape (n_pairs, n_features)
        Weights of the features; linear kernel only.
    gap_ : float
        Relative duality gap of the model: its objective is proved to be at most this fraction above the optimum. The
        largest over pairs of classes.
    objective_ : float
        The objective at the model, summed over pairs of classes.
    history_ : structured ndarray, or a list of them, one per pair
        Each measurement: iteration, seconds, passes, primal, dual, gap.
    solver_ : str
        The solver that ran.
    status_ : str
        Why the solver stopped.
    fit_status_ : int
        0 if the tolerance was reached, 1 if not.
    facts_ : list of dict
        What LIBSVM prints, for each pair: obj, rho, nSV, nBSV, iterations, and nu or C where it has them.
    shape_fit_ : tuple
        Shape of X.
    n_features_in_ : int
        Number of features; not with a callable kernel.
    feature_names_in_ : ndarray
        Names of the features, if X had string column names.
    n_iter_ : ndarray of shape (n_pairs,)
        Iterations of the solver for each pair of classes.
    probA_, probB_ : ndarray of shape (n_pairs,)
        P(first class of a pair) = 1 / (1 + exp(A f + B)), where f is the decision value of the pair; empty
        without sigmoids.
    isotonic_points_, isotonic_ends_ : ndarrays of shapes (n_points, 2) and (n_pairs + 1,)
        With calibration="isotonic": points (f, P(first class)) of pair k are those from ends[k] to ends[k + 1].

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
        nu: float = 0.5,
        kernel: KernelChoice = "rbf",
        degree: int = 3,
        gamma: Gamma = "scale",
        coef0: float = 0.0,
        shrinking: bool = True,
        probability: Literal["libsvm"] | bool | None = None,
        tol: float = 1e-3,
        cache_size: float = 200,
        class_weight: ClassWeight = None,
        verbose: bool | int = False,
        max_iter: int = -1,
        decision_function_shape: Literal["ovr", "ovo"] = "ovr",
        break_ties: bool = False,
        random_state: RandomState = None,
        stopping: KernelStopping = "kkt",
        solver: str = "auto",
        working_set: int | None = None,
        warm_start: bool = False,
        max_seconds: float | None = None,
        n_jobs: int | None = None,
        callbacks: Callbacks = None,
        checkpoint: Checkpoint = None,
        calibration: Literal["sigmoid", "isotonic"] | None = None,
        predict_by: Literal["decision", "probability"] = "decision",
    ) -> None:
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
        self.checkpoint = checkpoint
        self.calibration = calibration
        self.predict_by = predict_by

    def _pairs_of_models(self, training, label):
        pairs_of_models = super()._pairs_of_models(training, label)
        for pair in pairs_of_models[0]:
            most = largest_nu(pair, self._weight(training, pair))
            if pair.has_both and self.nu > most * (1.0 + 1e-12):
                names = [repr(name) for name in self.classes_[[pair.first, pair.second]].tolist()]
                raise InfeasibleNuError(
                    f"nu={self.nu} is infeasible: classes {' and '.join(names)} allow 0 < nu <= {most:.6g}, "
                    "twice the fraction of rows of the smaller class. Lower nu, or weigh the classes."
                )
        return pairs_of_models

    def _is_overweight(self, training, pair):
        """Return whether nu is infeasible because of class_weight."""
        return self.class_weight is not None and self.nu > largest_nu(pair, training.weight[pair.rows])

    def _weight(self, training, pair):
        """Return the weights of the rows of a pair, without the factor class_weight if that makes nu infeasible."""
        weight = training.weight[pair.rows]
        if not self._is_overweight(training, pair):
            return weight
        return weight / np.where(pair.sign > 0.0, *self.class_weight_[[pair.first, pair.second]])

    def _problem(self, training, pair):
        """Return the KernelQP of a pair of classes; for a fold with too few rows of a class, with the largest nu."""
        weight = self._weight(training, pair)
        return nu_svc(training.matrix(pair.rows), pair.sign, weight, min(self.nu, largest_nu(pair, weight)))

    def _largest_coefficients(self, training, pair, solved):
        """Return the largest |coefficient| that each row of a pair may have: that of the C-SVC with C = 1/r."""
        return solved.facts.get("C", 1.0) * training.weight[pair.rows]

    def _train_pairs(self, training, pairs_of_models):
        """Return the SolvedProblems of all pairs.

        Pairs whose class_weight makes nu infeasible are solved without it, which gives the margin r, and then as
        C-SVC with C = 1/r times class_weight.
        """
        trained = super()._train_pairs(training, pairs_of_models)
        self._warn_of_zero_margin(pairs_of_models[0], trained[0])
        infeasible = [
            (models, k, pair)
            for pairs, models in zip(pairs_of_models, trained, strict=True)
            for k, pair in enumerate(pairs)
            if pair.has_both and self._is_overweight(training, pair)
        ]
        if not infeasible:
            return trained

        def weighted(models, k, pair):
            cost = models[k].facts.get("C", 1.0) * training.weight[pair.rows]
            return c_svc(training.matrix(pair.rows), pair.sign, cost)

        solved = self._train([lambda which=which: weighted(*which) for which in infeasible])
        for (models, k, _), model in zip(infeasible, solved, strict=True):
            models[k] = replace(model, facts={**model.facts, "C": models[k].facts.get("C", 1.0)})
        warn_caller(
            f"nu={self.nu} is infeasible with this class_weight, which was used as a factor of the C that corresponds "
            "to nu without it. Lower nu, or make the class weights less unequal."
        )
        return trained

    def _advice(self, solution, X):
        """Return a sentence on what to do; without a margin, rounding is not what is to be mended."""
        if solution.status is Status.STALLED and solution.primal >= 0.0:
            return "Without a margin there is no progress to be made: raise nu."
        return super()._advice(solution, X)

    def _warn_of_zero_margin(self, pairs, trained):
        """Warn if the margin of a pair is 0, so that f = 0 is optimal."""
        without = [pair for pair, model in zip(pairs, trained, strict=True) if pair.has_both and _has_no_margin(model)]
        if without:
            names = [repr(name) for name in self.classes_[[without[0].first, without[0].second]].tolist()]
            warn_caller(
                f"nu={self.nu} is too small for classes {' and '.join(names)}, which overlap by more: the margin is 0, "
                "and so is the best decision function. Raise nu, or take a kernel that separates them.",
                ConvergenceWarning,
            )


def _has_no_margin(model):
    """Return whether the margin of a nu-SVC is zero up to rounding; otherwise its objective is negative."""
    return "C" not in model.facts or (model.solution.status is Status.STALLED and model.solution.primal >= 0.0)
