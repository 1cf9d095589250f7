"""`LinearSVCCV` and `LinearSVRCV`: linear models whose C is chosen by cross-validation along a warm-started path."""

from collections.abc import Callable
from typing import Any, Literal, Self

from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from widemargin._runtime.argument_types import Floats, Folds, Scoring
from widemargin.models.argument_types import (
    Callbacks,
    Checkpoint,
    ClassificationLoss,
    ClassWeight,
    MaxMemory,
    RandomState,
    RegressionLoss,
    RowsOrBlocks,
    Scaling,
)
from widemargin.models.linear import LinearSVC, LinearSVR
from widemargin.selection.c_path import c_path
from widemargin.selection.path_result import CPath

_FITTED_ATTRIBUTES = (
    "coef_", "intercept_", "classes_", "n_features_in_", "feature_names_in_", "n_iter_", "gap_", "objective_",
    "history_", "scaling_", "solver_", "status_",
)  # fmt: skip


class _CrossValidatedC:
    """Chooses C by cross-validation, and has the fitted attributes of the model for it."""

    _parameter_constraints: dict = {"Cs": ["array-like", None], "cv": ["cv_object"], "scoring": [str, callable, None]}

    get_params: Callable[..., dict[str, Any]]
    C_: float
    Cs_: Floats
    scores_: Floats
    path_: CPath

    def _choose(self, kind, X, y, sample_weight, groups):
        """Set the fitted attributes; `kind` is the class of estimators with one C, LinearSVC or LinearSVR."""
        self._validate_params()
        shared = {name: value for name, value in self.get_params().items() if name in kind._get_param_names()}
        estimator = kind(**shared)
        cv = 5 if self.cv is None else self.cv
        path = c_path(estimator, X, y, self.Cs, cv=cv, scoring=self.scoring, sample_weight=sample_weight, groups=groups)
        self._check_data(X, y, sample_weight)
        return self._keep_best(path)

    def _keep_best(self, path):
        """Set the fitted attributes to those of the model with the best mean score on a path."""
        self.path_, self.Cs_, self.scores_, best = path, path.Cs, path.scores, path.best
        self.C_ = float(path.Cs[best])
        has_intercept = self.fit_intercept or self.scaling is not None
        self.coef_, self.intercept_ = path.coefs[best], path.intercepts[best] if has_intercept else 0.0
        vars(self).pop("scaling_", None)
        if path.scaling is not None:
            self.scaling_ = path.scaling
        self.gap_, self.objective_ = float(path.gaps[best]), float(path.objectives[best])
        self.history_ = path.histories[best][0] if len(path.histories[best]) == 1 else path.histories[best]
        self.n_iter_, self.solver_, self.status_ = int(path.n_iters[best]), path.solver, str(path.statuses[best])
        return self

    def chosen(self) -> Any:
        """Return the model for C_ as a fitted LinearSVC or LinearSVR; this is what `save_model` saves."""
        check_is_fitted(self)
        kind: Any = type(self).__mro__[2]
        shared = {name: value for name, value in self.get_params().items() if name in kind._get_param_names()}
        model = kind(**shared, C=self.C_)
        for name in _FITTED_ATTRIBUTES:
            if hasattr(self, name):
                setattr(model, name, getattr(self, name))
        return model


class LinearSVCCV(_CrossValidatedC, LinearSVC):
    """Linear support vector classification with C chosen by cross-validation.

    Parameters
    ----------
    Cs : array-like of floats or None, default=None
        The values of C to choose from. None is the useful range, in steps of √10; see `c_path`.
    cv : int, splitter, iterable or None, default=None
        Folds as in scikit-learn; None is five.
    scoring : str, callable or None, default=None
        As in scikit-learn; None is accuracy.
    penalty : {"l2", "l1", "elasticnet"}, default="l2"
        ½|w|², Σ|w_j|, or l1_ratio Σ|w_j| + ½ (1 − l1_ratio) |w|², as in `LinearSVC`.
    loss : {"hinge", "squared_hinge", "log_loss"} or RowLoss, default="squared_hinge"
        The loss of one row.
    dual : bool or "auto", default="auto"
        Kept for compatibility: the optimum is the same either way, and the certificate proves it. `dual=False` with a
        loss that scikit-learn cannot solve that way is refused as there.
    tol : float, default=1e-4
        Stop when the relative duality gap, (primal − dual) / primal, is at most this.
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
    penalize_intercept : bool, default=True
        Whether the intercept is penalised with the weights, as in LIBLINEAR. False needs "newton", "ocas", "svmperf" or
        "auto", and `intercept_scaling` then has no effect.
    max_seconds : float or None, default=None
        Stop after about this many seconds; the path may then end before its last C.
    n_jobs : int or None, default=None
        Number of threads, over classes or, where the solver allows it, over rows. None is all cores where the
        work is worth it, and one within workers of joblib or Dask; -1 is all cores. The model does not depend on it.
    callbacks : callable or list of callables, default=None
        Called after each iteration with a `Progress`. A callback that returns a true value stops the fit. With several
        classes and `n_jobs` above 1 they are called from several threads.
    scaling : {"standard", "maxabs"}, default=None
        How features are scaled for the solver: mean 0 and standard deviation 1, or a largest absolute value of 1, of
        all rows, held-out ones included. `coef_` and `intercept_` are those of unscaled features.
    max_memory : int or str, default=None
        For row blocks: memory that the process may use in all, in bytes or as text such as "3GB". Rows that fit are
        loaded, others are read from disk in every pass; folds that do not fit at the same time are taken in turn. None
        is half of what is free.
    checkpoint : str or path, default=None
        File that keeps the models and scores for each C that is done, and what the next fits start from. The same call
        goes on from there if the process was killed.
    l1_ratio : float, default=None
        The part of L1 in the penalty "elasticnet", from 0 to 1; None with other penalties.

    Attributes
    ----------
    C_ : float
        The C with the best mean score, the smallest if there are several.
    Cs_ : ndarray of shape (n_Cs,)
        All values of C that were tried, ascending.
    scores_ : ndarray of shape (n_folds, n_Cs)
        Scores on the held-out rows of each fold.
    path_ : CPath
        The models and gaps for all values of C.
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Weights of the features of the model for C_, fitted to all rows.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        The intercepts; 0.0 if there is none.
    classes_ : ndarray
        The class labels, ascending.
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
    >>> from widemargin import LinearSVCCV
    >>> X, y = load_iris(return_X_y=True)
    >>> model = LinearSVCCV(Cs=[0.01, 1.0, 100.0], random_state=0).fit(X, y)
    >>> model.scores_.shape
    (5, 3)
    """

    _parameter_constraints: dict = {**LinearSVC._parameter_constraints, **_CrossValidatedC._parameter_constraints}

    def __init__(
        self,
        Cs: ArrayLike | None = None,
        *,
        cv: Folds | None = None,
        scoring: Scoring | None = None,
        penalty: Literal["l2", "l1", "elasticnet"] = "l2",
        loss: ClassificationLoss = "squared_hinge",
        dual: bool | Literal["auto"] = "auto",
        tol: float = 1e-4,
        fit_intercept: bool = True,
        intercept_scaling: float = 1.0,
        class_weight: ClassWeight = None,
        verbose: int = 0,
        random_state: RandomState = None,
        max_iter: int | None = 1000,
        solver: str = "auto",
        penalize_intercept: bool = True,
        max_seconds: float | None = None,
        n_jobs: int | None = None,
        callbacks: Callbacks = None,
        scaling: Scaling = None,
        max_memory: MaxMemory = None,
        checkpoint: Checkpoint = None,
        l1_ratio: float | None = None,
    ) -> None:
        self.Cs = Cs
        self.cv = cv
        self.scoring = scoring
        self.penalty = penalty
        self.loss = loss
        self.dual = dual
        self.tol = tol
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.class_weight = class_weight
        self.verbose = verbose
        self.random_state = random_state
        self.max_iter = max_iter
        self.solver = solver
        self.penalize_intercept = penalize_intercept
        self.max_seconds = max_seconds
        self.n_jobs = n_jobs
        self.callbacks = callbacks
        self.scaling = scaling
        self.max_memory = max_memory
        self.checkpoint = checkpoint
        self.l1_ratio = l1_ratio

    multi_class, stopping, warm_start = "ovr", "gap", False

    def fit(
        self,
        X: RowsOrBlocks,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Choose C by cross-validation, and keep the model for it that was fitted to all rows.

        Parameters
        ----------
        X : array-like, sparse matrix or RowBlocks of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            Two classes or more. Of row blocks, None takes the labels of the file.
        sample_weight : array-like of shape (n_samples,), default=None
            Factor of C for each row. Of row blocks, None takes the weights of the file, if it has any.
        groups : array-like of shape (n_samples,), default=None
            Groups of the rows, for splitters that need them.

        Returns
        -------
        self
        """
        return self._choose(LinearSVC, X, y, sample_weight, groups)


class LinearSVRCV(_CrossValidatedC, LinearSVR):
    """Linear support vector regression with C chosen by cross-validation.

    Parameters
    ----------
    Cs : array-like of floats or None, default=None
        The values of C to choose from. None is the useful range, in steps of √10; see `c_path`.
    cv : int, splitter, iterable or None, default=None
        Folds as in scikit-learn; None is five.
    scoring : str, callable or None, default=None
        As in scikit-learn; None is R².
    epsilon : float, default=0.0
        Residuals of at most this size have zero loss.
    loss : {"epsilon_insensitive", "squared_epsilon_insensitive"}, default="epsilon_insensitive"
        The loss of one row.
    dual : bool or "auto", default="auto"
        Kept for compatibility: the optimum is the same either way, and the certificate proves it. `dual=False` with a
        loss that scikit-learn cannot solve that way is refused as there.
    tol : float, default=1e-4
        Stop when the relative duality gap, (primal − dual) / primal, is at most this.
    fit_intercept : bool, default=True
        Whether to fit an intercept.
    intercept_scaling : float, default=1.0
        Value of the constant feature whose weight is the intercept; the larger, the less the intercept is penalised.
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
    penalize_intercept : bool, default=True
        Whether the intercept is penalised with the weights, as in LIBLINEAR. False needs "newton", "ocas", "svmperf" or
        "auto", and `intercept_scaling` then has no effect.
    max_seconds : float or None, default=None
        Stop after about this many seconds; the path may then end before its last C.
    n_jobs : int or None, default=None
        Number of threads, over classes or, where the solver allows it, over rows. None is all cores where the
        work is worth it, and one within workers of joblib or Dask; -1 is all cores. The model does not depend on it.
    callbacks : callable or list of callables, default=None
        Called after each iteration with a `Progress`. A callback that returns a true value stops the fit. With several
        classes and `n_jobs` above 1 they are called from several threads.
    scaling : {"standard", "maxabs"}, default=None
        How features are scaled for the solver: mean 0 and standard deviation 1, or a largest absolute value of 1, of
        all rows, held-out ones included. `coef_` and `intercept_` are those of unscaled features.
    max_memory : int or str, default=None
        For row blocks: memory that the process may use in all, in bytes or as text such as "3GB". Rows that fit are
        loaded, others are read from disk in every pass; folds that do not fit at the same time are taken in turn. None
        is half of what is free.
    checkpoint : str or path, default=None
        File that keeps the models and scores for each C that is done, and what the next fits start from. The same call
        goes on from there if the process was killed.

    Attributes
    ----------
    C_ : float
        The C with the best mean score, the smallest if there are several.
    Cs_ : ndarray of shape (n_Cs,)
        All values of C that were tried, ascending.
    scores_ : ndarray of shape (n_folds, n_Cs)
        Scores on the held-out rows of each fold.
    path_ : CPath
        The models and gaps for all values of C.
    coef_ : ndarray of shape (n_features,)
        Weights of the features of the model for C_, fitted to all rows.
    intercept_ : ndarray of shape (1,)
        The intercept; 0.0 if there is none.
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
    >>> from widemargin import LinearSVRCV
    >>> X = np.arange(30.0).reshape(-1, 1) / 10
    >>> model = LinearSVRCV(Cs=[0.01, 1.0, 100.0], random_state=0).fit(X, 2 * X.ravel())
    >>> model.scores_.shape
    (5, 3)
    """

    _parameter_constraints: dict = {**LinearSVR._parameter_constraints, **_CrossValidatedC._parameter_constraints}

    def __init__(
        self,
        Cs: ArrayLike | None = None,
        *,
        cv: Folds | None = None,
        scoring: Scoring | None = None,
        epsilon: float = 0.0,
        loss: RegressionLoss = "epsilon_insensitive",
        dual: bool | Literal["auto"] = "auto",
        tol: float = 1e-4,
        fit_intercept: bool = True,
        intercept_scaling: float = 1.0,
        verbose: int = 0,
        random_state: RandomState = None,
        max_iter: int | None = 1000,
        solver: str = "auto",
        penalize_intercept: bool = True,
        max_seconds: float | None = None,
        n_jobs: int | None = None,
        callbacks: Callbacks = None,
        scaling: Scaling = None,
        max_memory: MaxMemory = None,
        checkpoint: Checkpoint = None,
    ) -> None:
        self.Cs = Cs
        self.cv = cv
        self.scoring = scoring
        self.epsilon = epsilon
        self.loss = loss
        self.dual = dual
        self.tol = tol
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.verbose = verbose
        self.random_state = random_state
        self.max_iter = max_iter
        self.solver = solver
        self.penalize_intercept = penalize_intercept
        self.max_seconds = max_seconds
        self.n_jobs = n_jobs
        self.callbacks = callbacks
        self.scaling = scaling
        self.max_memory = max_memory
        self.checkpoint = checkpoint

    stopping, warm_start = "gap", False

    def fit(
        self,
        X: RowsOrBlocks,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Choose C by cross-validation, and keep the model for it that was fitted to all rows.

        Parameters
        ----------
        X : array-like, sparse matrix or RowBlocks of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            The targets. Of row blocks, None takes the labels of the file.
        sample_weight : array-like of shape (n_samples,), default=None
            Factor of C for each row. Of row blocks, None takes the weights of the file, if it has any.
        groups : array-like of shape (n_samples,), default=None
            Groups of the rows, for splitters that need them.

        Returns
        -------
        self
        """
        self._choose(LinearSVR, X, y, sample_weight, groups)
        self.coef_ = self.coef_.ravel()
        return self
