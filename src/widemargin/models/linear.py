"""`LinearSVC` and `LinearSVR`: drop-in replacements for scikit-learn's, with a certificate.

    LinearSVC   minimise ½|w|² + Σ C_i max(0, 1 − y_i <w, x_i>)              for loss="hinge", or with squared losses
                minimise ½|w|² + Σ C_i log(1 + exp(−y_i <w, x_i>))           for loss="log_loss"
    LinearSVR   minimise ½|w|² + Σ C_i max(0, |y_i − <w, x_i>| − epsilon)    or with squared losses

with C_i = C * class_weight[y_i] * sample_weight[i]; other losses are given by a `RowLoss`. The intercept is the weight
of a constant feature of value `intercept_scaling` and is penalised with the other weights, as in LIBLINEAR, unless
penalize_intercept=False.
"""

from numbers import Real
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin, RegressorMixin

from widemargin._runtime.argument_types import Floats
from widemargin.data.blocks.row_blocks import RowBlocks
from widemargin.models.argument_types import (
    Callbacks,
    Checkpoint,
    ClassificationLoss,
    ClassWeight,
    LinearStopping,
    MaxMemory,
    RandomState,
    RegressionLoss,
    RowsOrBlocks,
    Scaling,
)
from widemargin.models.base import LinearModel
from widemargin.models.crammer_singer import AllClassesAtOnce, check_crammer_singer
from widemargin.models.elastic_net import check_sparse_penalty, elastic_nets, has_sparse_penalty, solve_elastic_nets
from widemargin.models.inputs import check_class_weight, class_factors, encode_labels, narrowed, scaled_rows
from widemargin.models.probabilities import LogisticProbabilities
from widemargin.models.scoring import ScoresRowBlocks
from widemargin.models.sklearn_private import Interval, StrOptions
from widemargin.models.sparse_weights import SparseWeights
from widemargin.models.unsupported import refuse_unsupported
from widemargin.problems import classification, regression
from widemargin.problems.formulations import Intercept
from widemargin.problems.multiclass import CrammerSinger
from widemargin.problems.row_loss import RowLoss


class LinearSVC(LogisticProbabilities, SparseWeights, ScoresRowBlocks, ClassifierMixin, AllClassesAtOnce):
    """Linear support vector classification, two classes or more, with a proof of how good the model is.

    Parameters
    ----------
    penalty : {"l2", "l1", "elasticnet"}, default="l2"
        ½|w|², Σ|w_j|, or l1_ratio Σ|w_j| + ½ (1 − l1_ratio) |w|². The last two make weights zero; they need rows in
        memory, `loss="squared_hinge"` or "log_loss", and `solver="auto"`, which then is "prox_newton".
    loss : {"hinge", "squared_hinge", "log_loss"} or RowLoss, default="squared_hinge"
        The loss of one row; "log_loss" is logistic regression, with `predict_proba`, and a `RowLoss` gives other losses
        by their numbers. With `multi_class="crammer_singer"` the first two have no effect, and others are refused.
    dual : bool or "auto", default="auto"
        Kept for compatibility; the optimum does not depend on it. As in scikit-learn, `dual=False` is refused for
        `loss="hinge"`.
    tol : float, default=1e-4
        Stop when the relative duality gap, (primal − dual) / primal, is at most this. With `stopping="kkt"`, stop when
        no optimality condition is violated by more than this.
    C : float, default=1.0
        Weight of the losses against ½|w|².
    multi_class : {"ovr", "crammer_singer"}, default="ovr"
        With three classes or more: one problem per class against the rest, solved in parallel, or all at once, by dual
        coordinate descent or, with `solver="ocas"` and `"svmperf"`, by cutting planes. With two classes, all at once is
        hinge loss with 2 C; weights are the difference of those of the two classes, as in scikit-learn.
    fit_intercept : bool, default=True
        Whether to fit an intercept.
    intercept_scaling : float, default=1.0
        Value of the constant feature whose weight is the intercept; the larger, the less the intercept is penalised.
    class_weight : dict, "balanced" or None, default=None
        Factor of C for each class.
    verbose : int, default=0
        1 shows progress: bars on a terminal or in a notebook, lines on standard error elsewhere. 2 shows more lines.
    random_state : int, RandomState or None, default=None
        Seed of the order in which rows are visited. The same seed gives the same model, bit for bit.
    max_iter : int or None, default=1000
        Largest number of sweeps over the rows, of Newton steps, or of cutting planes; None is no limit.
    solver : {"auto", "dcd", "avsf", "climb", "sbm", "newton", "ocas", "svmperf"}, default="auto"
        "dcd" is dual coordinate descent with shrinking, as in LIBLINEAR; "avsf" has adaptive selection frequencies
        instead; "climb" is continuation from small C to a large one. "newton" is for many rows and up to 3,000 columns;
        its time hardly depends on C. "ocas" and "svmperf" are cutting planes with and without line search. "sbm" is
        block minimisation for row blocks on disk that are too wide for "newton". "auto" chooses by a measured rule and
        may switch from "dcd" to "newton" during the fit.
    stopping : {"gap", "kkt", "violation"}, default="gap"
        What `tol` is compared with: "gap" is the relative duality gap; "kkt", for dual solvers, the largest violation
        of an optimality condition; "violation", for "svmperf", by how much the mean loss exceeds its cutting-plane
        model.
    penalize_intercept : bool, default=True
        Whether the intercept is penalised with the weights, as in LIBLINEAR. False needs "newton", "ocas", "svmperf" or
        "auto", and `intercept_scaling` then has no effect.
    warm_start : bool, default=False
        Whether to start from the last fit, if the numbers of rows and classes are the same: from its dual variables, or
        from its weights with "newton", "ocas" and "svmperf".
    max_seconds : float or None, default=None
        Stop after about this many seconds and keep the best model found until then.
    n_jobs : int or None, default=None
        Number of threads, over classes or, where the solver allows it, over rows. None is all cores where the
        work is worth it, and one within workers of joblib or Dask; -1 is all cores. The model does not depend on it.
    callbacks : callable or list of callables, default=None
        Called after each iteration with a `Progress`. A callback that returns a true value stops the fit. With several
        classes and `n_jobs` above 1 they are called from several threads.
    scaling : {"standard", "maxabs"}, default=None
        How features are scaled for the solver: mean 0 and standard deviation 1, or a largest absolute value of 1.
        `coef_` and `intercept_` are those of unscaled features.
    max_memory : int or str, default=None
        For row blocks: memory that the process may use in all, in bytes or as text such as "3GB"; rows that do not fit
        are read from disk in every pass. None is half of what is free.
    checkpoint : str or path, default=None
        File that keeps the state of the solver. The same call goes on from there if the process was killed.
    l1_ratio : float, default=None
        The part of L1 in the penalty "elasticnet", from 0 to 1; None with other penalties.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Weights of the features.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        The intercepts; 0.0 if there is none.
    classes_ : ndarray
        The class labels, ascending.
    dual_coef_ : ndarray
        The signed dual variables that prove the gap, one for each row and class. coef_ = dual_coef_ @ X holds up to
        rounding for dual coordinate solvers, and approximately for "newton". Cutting planes have none, except for small
        problems.
    n_iter_ : int
        Number of sweeps, Newton steps or cutting planes; the largest over classes.
    gap_ : float
        The relative duality gap of the model: its objective is proved to be at most this fraction above the optimum.
        The largest over classes.
    objective_ : float
        The objective at the model, summed over classes.
    history_ : structured ndarray, or a list of them, one per class
        Each measurement: iteration, seconds, passes, primal, dual, gap.
    solver_ : str
        The solver that ran and, if "auto" chose it, the reason in parentheses; several, separated by semicolons, if
        classes were solved differently.
    status_ : str
        Why the solver stopped.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray
        Names of the features, if X had string column names.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from widemargin import LinearSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> model = LinearSVC(random_state=0, max_iter=100_000).fit(X, y)
    >>> model.gap_ <= 1e-4
    True
    """

    _parameter_constraints: dict = {
        **LinearModel._parameter_constraints,
        "penalty": [StrOptions({"l1", "l2", "elasticnet"})],
        "l1_ratio": [Interval(Real, 0.0, 1.0, closed="both"), None],
        "loss": [StrOptions(set(classification.LOSSES)), RowLoss],
        "multi_class": [StrOptions({"ovr", "crammer_singer"})],
        "class_weight": [None, dict, StrOptions({"balanced"})],
    }
    classes_: NDArray[Any]

    def __init__(
        self,
        penalty: Literal["l2", "l1", "elasticnet"] = "l2",
        loss: ClassificationLoss = "squared_hinge",
        *,
        dual: bool | Literal["auto"] = "auto",
        tol: float = 1e-4,
        C: float = 1.0,
        multi_class: Literal["ovr", "crammer_singer"] = "ovr",
        fit_intercept: bool = True,
        intercept_scaling: float = 1.0,
        class_weight: ClassWeight = None,
        verbose: int = 0,
        random_state: RandomState = None,
        max_iter: int | None = 1000,
        solver: str = "auto",
        stopping: LinearStopping = "gap",
        penalize_intercept: bool = True,
        warm_start: bool = False,
        max_seconds: float | None = None,
        n_jobs: int | None = None,
        callbacks: Callbacks = None,
        scaling: Scaling = None,
        max_memory: MaxMemory = None,
        checkpoint: Checkpoint = None,
        l1_ratio: float | None = None,
    ) -> None:
        self.penalty = penalty
        self.loss = loss
        self.dual = dual
        self.tol = tol
        self.C = C
        self.multi_class = multi_class
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.class_weight = class_weight
        self.verbose = verbose
        self.random_state = random_state
        self.max_iter = max_iter
        self.solver = solver
        self.stopping = stopping
        self.penalize_intercept = penalize_intercept
        self.warm_start = warm_start
        self.max_seconds = max_seconds
        self.n_jobs = n_jobs
        self.callbacks = callbacks
        self.scaling = scaling
        self.max_memory = max_memory
        self.checkpoint = checkpoint
        self.l1_ratio = l1_ratio

    def fit(self, X: RowsOrBlocks, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array-like, sparse matrix or RowBlocks of shape (n_samples, n_features)
            float32 and float64 are used as they are, and large arrays of int8 and uint8.
        y : array-like of shape (n_samples,)
            Two classes or more. Of row blocks, None takes the labels of the file.
        sample_weight : array-like of shape (n_samples,), default=None
            Factor of C for each row; a row of weight zero has no influence.

        Returns
        -------
        self
        """
        X, label, weight = self._check(X, y, sample_weight)
        problems = self._problems(X, label, self._cost(label, weight))
        solutions = self._solve_problems(problems, X)
        return self._keep(solutions, X)

    def _check_parameters(self):
        """Raise ValueError if a parameter, or a combination of them, is not valid."""
        super()._check_parameters()
        refuse_unsupported(self)
        check_sparse_penalty(self)
        check_class_weight(self.class_weight)

    def _check_data(self, X, y, sample_weight):
        """Return the rows, labels 0 .. n_classes − 1 and one weight for each row. Sets `classes_`."""
        X, y, weight = self._check_rows(X, y, sample_weight)
        self.classes_, label = encode_labels(y)
        return X, narrowed(label) if isinstance(X, RowBlocks) else label, weight

    @property
    def _n_outputs(self):
        """Number of weight vectors: one for two classes, else one for each class."""
        return 1 if len(self.classes_) == 2 else len(self.classes_)

    def _cost(self, label, weight):
        """Return the cost of each row; class_weight="balanced" counts only rows of positive weight."""
        factor = class_factors(self.class_weight, self.classes_, label, weight)
        return scaled_rows(self.C, weight) if factor is None else self.C * weight * factor[label]

    def _problems(self, X, label, cost):
        """Return a function for each problem that states it: one for two classes, else one for each class.

        With multi_class="crammer_singer" there is one problem of all classes.
        """
        n_classes = len(self.classes_)
        if self._solves_all_classes_at_once:
            check_crammer_singer(self, X)
            return [lambda: CrammerSinger(X, label, cost, n_classes)]
        positives = [1] if n_classes == 2 else range(n_classes)
        if has_sparse_penalty(self):
            return elastic_nets(self, X, label, cost, positives)
        if self._halves_one_vector:
            cost, state = 2.0 * cost, classification.LOSSES["hinge"]
        else:
            state = self.loss.classification if isinstance(self.loss, RowLoss) else classification.LOSSES[self.loss]
        free = self._intercept is Intercept.FREE
        return [lambda k=k: state(X, np.where(label == k, 1.0, -1.0), cost, free_intercept=free) for k in positives]

    def _solve_problems(self, problems, X):
        """Return the Solution of each problem."""
        if has_sparse_penalty(self):
            return solve_elastic_nets(self, problems, X)
        return super()._solve_problems(problems, X)

    def decision_function(self, X: RowsOrBlocks) -> Floats:
        """Return the score of each row for each class (n_samples, n_classes), or of the second of two (n_samples,)."""
        scores = self._scores(X)
        return scores.ravel() if scores.shape[1] == 1 else scores

    def predict(self, X: RowsOrBlocks) -> NDArray[Any]:
        """Return the class of each row."""
        scores = self.decision_function(X)
        return self.classes_[(scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)]


class LinearSVR(ScoresRowBlocks, RegressorMixin, LinearModel):
    """Linear support vector regression, with a proof of how good the model is.

    Parameters
    ----------
    epsilon : float, default=0.0
        Residuals of at most this size have zero loss.
    tol : float, default=1e-4
        Stop when the relative duality gap, (primal − dual) / primal, is at most this. With `stopping="kkt"`, stop when
        no optimality condition is violated by more than this.
    C : float, default=1.0
        Weight of the losses against ½|w|².
    loss : {"epsilon_insensitive", "squared_epsilon_insensitive"} or RowLoss, default="epsilon_insensitive"
        The loss of one row; a `RowLoss` gives other losses, such as Huber's, by their numbers.
    fit_intercept : bool, default=True
        Whether to fit an intercept.
    intercept_scaling : float, default=1.0
        Value of the constant feature whose weight is the intercept; the larger, the less the intercept is penalised.
    dual : bool or "auto", default="auto"
        Kept for compatibility; the optimum does not depend on it. As in scikit-learn, `dual=False` is refused for
        `loss="epsilon_insensitive"`.
    verbose : int, default=0
        1 shows progress: bars on a terminal or in a notebook, lines on standard error elsewhere. 2 shows more lines.
    random_state : int, RandomState or None, default=None
        Seed of the order in which rows are visited. The same seed gives the same model, bit for bit.
    max_iter : int or None, default=1000
        Largest number of sweeps over the rows, of Newton steps, or of cutting planes; None is no limit.
    solver : {"auto", "dcd", "avsf", "climb", "sbm", "newton", "ocas", "svmperf"}, default="auto"
        "dcd" is dual coordinate descent with shrinking, as in LIBLINEAR; "avsf" has adaptive selection frequencies
        instead; "climb" is continuation from small C to a large one. "newton" is for many rows and up to 3,000 columns;
        its time hardly depends on C. "ocas" and "svmperf" are cutting planes with and without line search. "sbm" is
        block minimisation for row blocks on disk that are too wide for "newton". "auto" chooses by a measured rule and
        may switch from "dcd" to "newton" during the fit.
    stopping : {"gap", "kkt", "violation"}, default="gap"
        What `tol` is compared with: "gap" is the relative duality gap; "kkt", for dual solvers, the largest violation
        of an optimality condition; "violation", for "svmperf", by how much the mean loss exceeds its cutting-plane
        model.
    penalize_intercept : bool, default=True
        Whether the intercept is penalised with the weights, as in LIBLINEAR. False needs "newton", "ocas", "svmperf" or
        "auto", and `intercept_scaling` then has no effect.
    warm_start : bool, default=False
        Whether to start from the last fit, if the numbers of rows are the same: from its dual variables, or
        from its weights with "newton", "ocas" and "svmperf".
    max_seconds : float or None, default=None
        Stop after about this many seconds and keep the best model found until then.
    n_jobs : int or None, default=None
        Number of threads over rows, where the solver allows it. None is all cores where the work is worth it, and one
        within workers of joblib or Dask; -1 is all cores. The model does not depend on it.
    callbacks : callable or list of callables, default=None
        Called after each iteration with a `Progress`. A callback that returns a true value stops the fit.
    scaling : {"standard", "maxabs"}, default=None
        How features are scaled for the solver: mean 0 and standard deviation 1, or a largest absolute value of 1.
        `coef_` and `intercept_` are those of unscaled features.
    max_memory : int or str, default=None
        For row blocks: memory that the process may use in all, in bytes or as text such as "3GB"; rows that do not fit
        are read from disk in every pass. None is half of what is free.
    checkpoint : str or path, default=None
        File that keeps the state of the solver. The same call goes on from there if the process was killed.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Weights of the features.
    intercept_ : ndarray of shape (1,)
        The intercept; 0.0 if there is none.
    dual_coef_ : ndarray
        The signed dual variables that prove the gap, one for each row. coef_ = dual_coef_ @ X holds up to
        rounding for dual coordinate solvers, and approximately for "newton". Cutting planes have none, except for small
        problems.
    n_iter_ : int
        Number of sweeps, Newton steps or cutting planes.
    gap_ : float
        The relative duality gap of the model: its objective is proved to be at most this fraction above the optimum.
    objective_ : float
        The objective at the model.
    history_ : structured ndarray
        Each measurement: iteration, seconds, passes, primal, dual, gap.
    solver_ : str
        The solver that ran and, if "auto" chose it, the reason in parentheses.
    status_ : str
        Why the solver stopped.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray
        Names of the features, if X had string column names.

    Examples
    --------
    >>> import numpy as np
    >>> from widemargin import LinearSVR
    >>> X = np.arange(20.0).reshape(-1, 1) / 10
    >>> model = LinearSVR(C=100.0, intercept_scaling=10, random_state=0).fit(X, 3 * X.ravel() + 1)
    >>> print(f"{model.coef_[0]:.3f} {model.intercept_[0]:.3f}")
    3.000 1.000
    """

    _parameter_constraints: dict = {
        **LinearModel._parameter_constraints,
        "epsilon": [Interval(Real, 0.0, None, closed="left")],
        "loss": [StrOptions(set(regression.LOSSES)), RowLoss],
    }
    _n_outputs = 1

    def __init__(
        self,
        *,
        epsilon: float = 0.0,
        tol: float = 1e-4,
        C: float = 1.0,
        loss: RegressionLoss = "epsilon_insensitive",
        fit_intercept: bool = True,
        intercept_scaling: float = 1.0,
        dual: bool | Literal["auto"] = "auto",
        verbose: int = 0,
        random_state: RandomState = None,
        max_iter: int | None = 1000,
        solver: str = "auto",
        stopping: LinearStopping = "gap",
        penalize_intercept: bool = True,
        warm_start: bool = False,
        max_seconds: float | None = None,
        n_jobs: int | None = None,
        callbacks: Callbacks = None,
        scaling: Scaling = None,
        max_memory: MaxMemory = None,
        checkpoint: Checkpoint = None,
    ) -> None:
        self.epsilon = epsilon
        self.tol = tol
        self.C = C
        self.loss = loss
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.dual = dual
        self.verbose = verbose
        self.random_state = random_state
        self.max_iter = max_iter
        self.solver = solver
        self.stopping = stopping
        self.penalize_intercept = penalize_intercept
        self.warm_start = warm_start
        self.max_seconds = max_seconds
        self.n_jobs = n_jobs
        self.callbacks = callbacks
        self.scaling = scaling
        self.max_memory = max_memory
        self.checkpoint = checkpoint

    def fit(self, X: RowsOrBlocks, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array-like, sparse matrix or RowBlocks of shape (n_samples, n_features)
            float32 and float64 are used as they are, and large arrays of int8 and uint8.
        y : array-like of shape (n_samples,)
            The targets. Of row blocks, None takes the labels of the file.
        sample_weight : array-like of shape (n_samples,), default=None
            Factor of C for each row; a row of weight zero has no influence.

        Returns
        -------
        self
        """
        X, y, weight = self._check(X, y, sample_weight)
        problems = self._problems(X, y, self._cost(y, weight))
        solutions = self._solve_problems(problems, X)
        return self._keep(solutions, X)

    def _check_parameters(self):
        """Raise ValueError if a parameter, or a combination of them, is not valid."""
        super()._check_parameters()
        refuse_unsupported(self)

    def _check_data(self, X, y, sample_weight):
        """Return the rows, the targets and one weight for each row."""
        return self._check_rows(X, y, sample_weight, y_numeric=True)

    def _cost(self, y, weight):
        """Return the cost of each row."""
        return scaled_rows(self.C, weight)

    def _problems(self, X, y, cost):
        """Return a list of one function, which states the problem."""
        state = self.loss.regression if isinstance(self.loss, RowLoss) else regression.LOSSES[self.loss]
        return [lambda: state(X, y, cost, self.epsilon, free_intercept=self._intercept is Intercept.FREE)]

    def _set_weights(self, solutions, X):
        """Set `coef_`, `intercept_` and `dual_coef_` of the one output, without a dimension for outputs."""
        super()._set_weights(solutions, X)
        self.coef_ = self.coef_.ravel()
        if hasattr(self, "dual_coef_"):
            self.dual_coef_ = self.dual_coef_.ravel()

    def predict(self, X: RowsOrBlocks) -> Floats:
        """Return the predicted target of each row."""
        return self._scores(X).ravel()
