"""`SVR` and `NuSVR`: drop-in replacements for scikit-learn's, with a certificate and with prediction intervals.

    SVR      minimise ½|w|² + Σ C_i max(0, |y_i − f(x_i)| − epsilon)
    NuSVR    the same plus C nu n epsilon, minimised over epsilon >= 0 too

f(x) = <w, φ(x)> + b, C_i = C * sample_weight[i], and K(x, z) = <φ(x), φ(z)>.
"""

from dataclasses import replace
from numbers import Real
from typing import Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import RegressorMixin

from widemargin._runtime.argument_types import Floats, Rows
from widemargin.models.argument_types import (
    BasisChoice,
    BasisPoints,
    Callbacks,
    Checkpoint,
    Gamma,
    KernelChoice,
    KernelStopping,
    MaxMemory,
    RandomState,
    RowsOrBlocks,
)
from widemargin.models.base import POSITIVE
from widemargin.models.calibration import laplace_interval, laplace_scale
from widemargin.models.fixed_basis import PARAMETER_CONSTRAINTS
from widemargin.models.kernel.base import KernelModel, available_with_probability
from widemargin.models.kernel.training_rows import folds_of
from widemargin.models.scoring import ScoresRowBlocks
from widemargin.models.sklearn_private import Interval
from widemargin.problems.regression import eps_svr, epsilon_insensitive, nu_svr


class KernelRegressor(ScoresRowBlocks, RegressorMixin, KernelModel):
    """Base class of `SVR` and `NuSVR`, which state the problem of some rows in `_problem`.

    Sets, besides the attributes of a `KernelModel`, `laplace_scale_` if probability is true.
    """

    _are_most_rows_at_bound = True

    n_iter_: int
    laplace_scale_: float

    def fit(self, X: RowsOrBlocks, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), or (n_samples, n_samples) if precomputed
            float32 stays float32, anything else becomes float64. Row blocks need a `basis`.
        y : array-like of shape (n_samples,)
            The targets. Of row blocks, None takes the labels of the file.
        sample_weight : array-like of shape (n_samples,), default=None
            Factor of C for each row; a row of weight zero (or below) has no influence.

        Returns
        -------
        self
        """
        return self._fit(X, y, sample_weight)

    def _fit(self, X, y, sample_weight, submatrices=None):
        """Fit the model; `submatrices` are kernel matrices to reuse, see `fit_reusing`."""
        if self.basis is not None:
            return self._fit_targets_on_basis(X, y, sample_weight)
        training, y = self._check(X, y, sample_weight)
        training = replace(training, submatrices=submatrices)
        parts = self._parts(training)
        trained = self._train([lambda part=part: self._problem(training, y, part) for part in parts], training)
        return self._keep(training, y, parts, trained)

    def _check(self, X, y, sample_weight):
        """Return the TrainingRows and the targets, after checks of the arguments."""
        X, y = self._check_rows(X, y, y_numeric=True)
        weight = self._weigh(X, sample_weight)
        return self._training_rows(X, weight, n_problems=1 + 5 * self._wants_probability), y

    def _parts(self, training):
        """Return the rows of each problem: all rows and, for intervals, all rows but those of each fold."""
        rows = training.present
        if not self._wants_probability:
            return [rows]
        if len(rows) < 2:
            raise ValueError("probability=True needs at least 2 rows of positive weight for cross-validation, got 1.")
        folds = folds_of(rows, np.zeros_like(training.weight), self.random_state)
        return [rows, *(np.setdiff1d(rows, fold) for fold in folds)]

    def _keep(self, training, y, parts, trained):
        """Set the fitted attributes; warn if a solver has not converged."""
        model, *others = trained
        used = model.coef != 0.0
        support, dual_coef = parts[0][used], model.coef[np.newaxis, used]
        self._keep_model(support, [len(support)], dual_coef, np.array([model.intercept]), training)
        if self._wants_probability:
            self.laplace_scale_ = laplace_scale(self._residuals(training, y, parts, others))
        self.n_iter_ = model.solution.n_iter
        self._warn(self._keep_solutions([model], others), self._features(training))
        return self

    def _residuals(self, training, y, parts, others):
        """Return the residual of each row for the model of cross-validation that was not trained on it."""
        residuals = []
        with self._showing("calibrating", len(parts[0])) as advance:
            for seen, model in zip(parts[1:], others, strict=True):
                held_out = np.setdiff1d(parts[0], seen)
                used = model.coef != 0.0
                sums = training.sums(seen[used], model.coef[np.newaxis, used], held_out, advance=advance)
                residuals.append(y[held_out] - sums.ravel() - model.intercept)
        return np.concatenate(residuals)

    def predict(self, X: Rows) -> Floats:
        """Return the predicted target of each row.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), or (n_samples, n_training) if precomputed

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return self._new_sums(X) + self.intercept_[0]

    @available_with_probability("predict_interval needs probability=True when fitting.")
    def predict_interval(self, X: Rows, level: float = 0.9) -> Floats:
        """Return an interval for the target of each row, if fitted with probability=True.

        The targets are modelled as the prediction plus Laplace noise, whose scale `laplace_scale_` is estimated by
        five-fold cross-validation. All intervals have the same width.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), or (n_samples, n_training) if precomputed
        level : float, default=0.9
            Probability that a target lies in its interval, between 0 and 1.

        Returns
        -------
        ndarray of shape (n_samples, 2)
            Lower and upper bounds.
        """
        middle = self.predict(X)
        if not hasattr(self, "laplace_scale_"):
            raise self._not_calibrated("predict_interval")
        half = laplace_interval(self.laplace_scale_, level)
        return np.column_stack([middle - half, middle + half])


class SVR(KernelRegressor):
    """Support vector regression with an epsilon-tube, with a proof of how good the model is.

    Parameters
    ----------
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
    tol : float, default=1e-3
        Stop when no optimality (KKT) condition is violated by more than this (LIBSVM's eps) and the dual objective is
        proved to be within 10 tol of the optimum, relatively. With `stopping="gap"`, stop when `gap_` is at most this.
    C : float, default=1.0
        Weight of the losses against ½|w|².
    epsilon : float, default=0.1
        Half the width of the tube: residuals of at most this size have zero loss.
    shrinking : bool, default=True
        Whether to leave variables that seem to stay at their bounds out of some iterations. The result is checked on
        all variables.
    cache_size : float, default=200
        Megabytes of memory for kernel values. Problems that are solved at the same time share them.
    verbose : bool or int, default=False
        1 shows progress: bars on a terminal or in a notebook, lines on standard error elsewhere. 2 shows more lines.
    max_iter : int, default=-1
        Largest number of iterations of the solver for each problem; -1 is no limit.
    probability : bool or "libsvm", default=False
        Whether to estimate what `predict_interval` needs by five-fold cross-validation, which makes a fit about six
        times as long. "libsvm" is the same as True.
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
        Number of threads. None is all cores where the work is worth it, and one within workers of joblib or Dask; -1 is
        all cores.
    callbacks : callable or list of callables, default=None
        Called after each iteration with a `Progress`. A callback that returns a true value stops the fit. With
        `probability` and several threads, it is called from several threads.
    checkpoint : str or path, default=None
        File that keeps the state of the solver if a problem has 20,000 rows or more; smaller ones take seconds. The
        same call goes on from there if the process was killed. Not for kernels that are precomputed or callable.
    basis : int, "auto", array-like or None, default=None
        None is the exact machine. Otherwise the objective is minimised over the functions of so many basis points, or
        of these points, by linear solvers: for many rows, for rows on disk, and for fast predictions. "auto" takes 128
        points, then twice as many, up to 2,048, until the objective falls by less than 1%. `tol` is then the relative
        duality gap; `stopping`, `shrinking` and `cache_size` have no effect.
    basis_choice : {"auto", "uniform", "kmeans", "leverage", "greedy"}, default="auto"
        How basis points are chosen: random rows, centres of clusters, rows by their leverage scores, or rows that are
        far from those before. "auto" is "kmeans", or "uniform" if X is sparse.
    max_memory : int or str, default=None
        With a basis: memory that the process may use in all, in bytes or as text such as "3GB"; kernel values that do
        not fit are computed in every pass. None is half of what is free.

    Attributes
    ----------
    support_ : ndarray of shape (n_SV,)
        Indices of the training rows that are support vectors, ascending.
    support_vectors_ : ndarray or csr of shape (n_SV, n_features)
        Those rows; empty if the kernel is precomputed or callable.
    n_support_ : ndarray of int32 of shape (1,)
        Number of support vectors.
    dual_coef_ : ndarray or csr of shape (1, n_SV)
        Coefficients of the support vectors in the prediction.
    intercept_ : ndarray of shape (1,)
        Constant of the prediction.
    basis_ : ndarray or csr of shape (n_points, n_features)
        With a basis: its points, in place of support vectors. Points that depend on the others are left out.
    basis_coef_ : ndarray of shape (1, n_points)
        With a basis: the coefficients of its points in the prediction. `support_`, `support_vectors_`,
        `n_support_`, `dual_coef_` and `facts_` are then absent.
    coef_ : ndarray or csr of shape (1, n_features)
        Weights of the features; linear kernel only.
    gap_ : float
        Relative duality gap of the model: its objective is proved to be at most this fraction above the optimum.
    objective_ : float
        The objective at the model.
    history_ : structured ndarray
        Each measurement: iteration, seconds, passes, primal, dual, gap. With basis="auto", each stage: points,
        iterations, seconds, primal, decrease, gap.
    solver_ : str
        The solver that ran.
    status_ : str
        Why the solver stopped.
    fit_status_ : int
        0 if the tolerance was reached, 1 if not.
    facts_ : list of one dict
        What LIBSVM prints: obj, rho, nSV, nBSV, iterations, and nu or epsilon where LIBSVM has them.
    shape_fit_ : tuple
        Shape of X.
    n_features_in_ : int
        Number of features; not with a callable kernel.
    feature_names_in_ : ndarray
        Names of the features, if X had string column names.
    n_iter_ : int
        Iterations of the solver.
    laplace_scale_ : float
        Mean absolute residual in cross-validation, if probability is true.

    Examples
    --------
    >>> import numpy as np
    >>> from widemargin import SVR
    >>> X = np.linspace(0, 6, 60).reshape(-1, 1)
    >>> model = SVR(C=100.0, epsilon=0.01, tol=1e-6).fit(X, np.sin(X.ravel()))
    >>> print(f"{model.predict([[1.0]])[0]:.1f}")
    0.8
    """

    _parameter_constraints: dict = {
        **KernelModel._parameter_constraints,
        **PARAMETER_CONSTRAINTS,
        "C": [POSITIVE],
        "epsilon": [Interval(Real, 0.0, None, closed="left")],
    }

    def __init__(
        self,
        *,
        kernel: KernelChoice = "rbf",
        degree: int = 3,
        gamma: Gamma = "scale",
        coef0: float = 0.0,
        tol: float = 1e-3,
        C: float = 1.0,
        epsilon: float = 0.1,
        shrinking: bool = True,
        cache_size: float = 200,
        verbose: bool | int = False,
        max_iter: int = -1,
        probability: bool | Literal["libsvm"] = False,
        random_state: RandomState = None,
        stopping: KernelStopping = "kkt",
        solver: str = "auto",
        working_set: int | None = None,
        warm_start: bool = False,
        max_seconds: float | None = None,
        n_jobs: int | None = None,
        callbacks: Callbacks = None,
        checkpoint: Checkpoint = None,
        basis: BasisPoints = None,
        basis_choice: BasisChoice = "auto",
        max_memory: MaxMemory = None,
    ) -> None:
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.tol = tol
        self.C = C
        self.epsilon = epsilon
        self.shrinking = shrinking
        self.cache_size = cache_size
        self.verbose = verbose
        self.max_iter = max_iter
        self.probability = probability
        self.random_state = random_state
        self.stopping = stopping
        self.solver = solver
        self.working_set = working_set
        self.warm_start = warm_start
        self.max_seconds = max_seconds
        self.n_jobs = n_jobs
        self.callbacks = callbacks
        self.checkpoint = checkpoint
        self.basis = basis
        self.basis_choice = basis_choice
        self.max_memory = max_memory

    def _problem(self, training, y, part):
        """Return the KernelQP of some rows."""
        return eps_svr(training.matrix(part), y[part], self._costs(training, part), self.epsilon)

    def _fit_targets_on_basis(self, X, y, sample_weight):
        """Fit the machine on its basis."""
        X, y = self._check_rows(X, y, y_numeric=True)
        cost = self._costs_of(self._weigh(X, sample_weight))

        def state(matrix):
            return [lambda: epsilon_insensitive(matrix, y, cost, self.epsilon, free_intercept=True)]

        _, (solution,) = self._fit_on_basis(X, state, 1)
        self.n_iter_ = solution.n_iter
        return self


class NuSVR(KernelRegressor):
    """Support vector regression with the width of the tube set by nu, with a proof of how good the model is.

    Parameters
    ----------
    nu : float, default=0.5
        At most about this fraction of the rows lies outside the tube, and at least this fraction are support vectors.
    C : float, default=1.0
        Weight of the losses against ½|w|².
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
    tol : float, default=1e-3
        Stop when no optimality (KKT) condition is violated by more than this (LIBSVM's eps) and the dual objective is
        proved to be within 10 tol of the optimum, relatively. With `stopping="gap"`, stop when `gap_` is at most this.
    cache_size : float, default=200
        Megabytes of memory for kernel values. Problems that are solved at the same time share them.
    verbose : bool or int, default=False
        1 shows progress: bars on a terminal or in a notebook, lines on standard error elsewhere. 2 shows more lines.
    max_iter : int, default=-1
        Largest number of iterations of the solver for each problem; -1 is no limit.
    probability : bool or "libsvm", default=False
        Whether to estimate what `predict_interval` needs by five-fold cross-validation, which makes a fit about six
        times as long. "libsvm" is the same as True.
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
        Number of threads. None is all cores where the work is worth it, and one within workers of joblib or Dask; -1 is
        all cores.
    callbacks : callable or list of callables, default=None
        Called after each iteration with a `Progress`. A callback that returns a true value stops the fit. With
        `probability` and several threads, it is called from several threads.
    checkpoint : str or path, default=None
        File that keeps the state of the solver if a problem has 20,000 rows or more; smaller ones take seconds. The
        same call goes on from there if the process was killed. Not for kernels that are precomputed or callable.

    Attributes
    ----------
    support_ : ndarray of shape (n_SV,)
        Indices of the training rows that are support vectors, ascending.
    support_vectors_ : ndarray or csr of shape (n_SV, n_features)
        Those rows; empty if the kernel is precomputed or callable.
    n_support_ : ndarray of int32 of shape (1,)
        Number of support vectors.
    dual_coef_ : ndarray or csr of shape (1, n_SV)
        Coefficients of the support vectors in the prediction.
    intercept_ : ndarray of shape (1,)
        Constant of the prediction.
    coef_ : ndarray or csr of shape (1, n_features)
        Weights of the features; linear kernel only.
    gap_ : float
        Relative duality gap of the model: its objective is proved to be at most this fraction above the optimum.
    objective_ : float
        The objective at the model.
    history_ : structured ndarray
        Each measurement: iteration, seconds, passes, primal, dual, gap.
    solver_ : str
        The solver that ran.
    status_ : str
        Why the solver stopped.
    fit_status_ : int
        0 if the tolerance was reached, 1 if not.
    facts_ : list of one dict
        What LIBSVM prints: obj, rho, nSV, nBSV, iterations, and nu or epsilon where LIBSVM has them.
    shape_fit_ : tuple
        Shape of X.
    n_features_in_ : int
        Number of features; not with a callable kernel.
    feature_names_in_ : ndarray
        Names of the features, if X had string column names.
    n_iter_ : int
        Iterations of the solver.
    laplace_scale_ : float
        Mean absolute residual in cross-validation, if probability is true.

    Examples
    --------
    >>> import numpy as np
    >>> from widemargin import NuSVR
    >>> X = np.linspace(0, 6, 60).reshape(-1, 1)
    >>> model = NuSVR().fit(X, np.sin(X.ravel()))
    >>> print(f"{model.predict([[1.0]])[0]:.1f}")
    0.8
    """

    _parameter_constraints: dict = {
        **KernelModel._parameter_constraints,
        "nu": [Interval(Real, 0.0, 1.0, closed="right")],
        "C": [POSITIVE],
    }

    def __init__(
        self,
        *,
        nu: float = 0.5,
        C: float = 1.0,
        kernel: KernelChoice = "rbf",
        degree: int = 3,
        gamma: Gamma = "scale",
        coef0: float = 0.0,
        shrinking: bool = True,
        tol: float = 1e-3,
        cache_size: float = 200,
        verbose: bool | int = False,
        max_iter: int = -1,
        probability: bool | Literal["libsvm"] = False,
        random_state: RandomState = None,
        stopping: KernelStopping = "kkt",
        solver: str = "auto",
        working_set: int | None = None,
        warm_start: bool = False,
        max_seconds: float | None = None,
        n_jobs: int | None = None,
        callbacks: Callbacks = None,
        checkpoint: Checkpoint = None,
    ) -> None:
        self.nu = nu
        self.C = C
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.shrinking = shrinking
        self.tol = tol
        self.cache_size = cache_size
        self.verbose = verbose
        self.max_iter = max_iter
        self.probability = probability
        self.random_state = random_state
        self.stopping = stopping
        self.solver = solver
        self.working_set = working_set
        self.warm_start = warm_start
        self.max_seconds = max_seconds
        self.n_jobs = n_jobs
        self.callbacks = callbacks
        self.checkpoint = checkpoint

    def _problem(self, training, y, part):
        """Return the KernelQP of some rows."""
        return nu_svr(training.matrix(part), y[part], self._costs(training, part), self.nu)
