"""`OneClassSVM`: a drop-in replacement for scikit-learn's, with a certificate and with probabilities.

    minimise ½|w|² − nu W r + Σ w_i max(0, r − <w, φ(x_i)>)        W = Σ w_i, w_i = sample_weight[i]

f(x) = <w, φ(x)> − r is negative for at most about the fraction nu of the rows, the outliers.
"""

from dataclasses import replace
from numbers import Real
from typing import Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from sklearn.base import OutlierMixin
from sklearn.utils.extmath import row_norms

from widemargin._runtime.argument_types import Floats, Rows
from widemargin.data.blocks.row_blocks import RowBlocks
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
from widemargin.models.calibration import density_marks, marks_probability
from widemargin.models.kernel.base import KernelModel, available_with_probability
from widemargin.models.kernel.training_rows import kernel_sums, n_rows_of, parts_of
from widemargin.models.kernel_constraints import BASIS_CONSTRAINTS
from widemargin.models.sklearn_private import Interval
from widemargin.problems.one_class import linear_one_class, one_class

RELATIVE_ROUNDING = 1e-11  # error of a score, relative to the offset
RELATIVE_ROUNDING_OF_TERMS = 1e-13  # error of a score, relative to the sum of the absolute values of its terms


class OneClassSVM(OutlierMixin, KernelModel):
    """Estimation of the region that contains most of the rows, to detect outliers, with a proof of how good it is.

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
    nu : float, default=0.5
        At most about this fraction of the rows lies outside the region, and at least this fraction are support vectors.
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
        Whether to compute what `predict_proba` needs. There must be at least five training rows on either side of the
        boundary. "libsvm" is the same as True.
    random_state : int, RandomState or None, default=None
        Seed of the solver.
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
        Called after each iteration with a `Progress`. A callback that returns a true value stops the fit.
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
        Coefficients of the support vectors in the decision function.
    intercept_ : ndarray of shape (1,)
        Constant of the decision function.
    basis_ : ndarray or csr of shape (n_points, n_features)
        With a basis: its points, in place of support vectors. Points that depend on the others are left out.
    basis_coef_ : ndarray of shape (1, n_points)
        With a basis: the coefficients of its points in the decision function. `support_`, `support_vectors_`,
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
        What LIBSVM prints: obj, rho, nSV, nBSV, iterations.
    shape_fit_ : tuple
        Shape of X.
    n_features_in_ : int
        Number of features; not with a callable kernel.
    feature_names_in_ : ndarray
        Names of the features, if X had string column names.
    offset_ : ndarray of shape (1,)
        decision_function = score_samples − offset_.
    n_iter_ : int
        Iterations of the solver.
    density_marks_ : ndarray of shape (10,)
        Decision values at which the probability changes, if probability is true.

    Examples
    --------
    >>> import numpy as np
    >>> from widemargin import OneClassSVM
    >>> X = np.array([[0.0], [0.1], [0.2], [0.3], [5.0]])
    >>> OneClassSVM(gamma=1.0, nu=0.3).fit(X).predict([[0.15], [9.0]])
    array([ 1, -1])
    """

    _parameter_constraints: dict = {
        **KernelModel._parameter_constraints,
        **BASIS_CONSTRAINTS,
        "nu": [Interval(Real, 0.0, 1.0, closed="right")],
    }

    offset_: Floats
    n_iter_: int
    density_marks_: Floats

    def __init__(
        self,
        *,
        kernel: KernelChoice = "rbf",
        degree: int = 3,
        gamma: Gamma = "scale",
        coef0: float = 0.0,
        tol: float = 1e-3,
        nu: float = 0.5,
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
        self.nu = nu
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

    def fit(self, X: RowsOrBlocks, y: object = None, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), or (n_samples, n_samples) if precomputed
            float32 stays float32, anything else becomes float64.
        y : ignored
            Not used; present because scikit-learn passes it.
        sample_weight : array-like of shape (n_samples,), default=None
            Weight of each row; a row of weight zero (or below) has no influence.

        Returns
        -------
        self
        """
        return self._fit(X, y, sample_weight)

    def _fit(self, X, y, sample_weight, reused=None):
        """Fit the model; for `reused` see `fit_reusing`."""
        if self._wants_basis:
            return self._fit_rows_on_basis(X, sample_weight)
        (training,) = self._check_once(lambda: (self._check(X, sample_weight),), reused)
        rows = training.present
        (trained,) = self._train([lambda: one_class(training.matrix(rows), training.weight[rows], self.nu)], training)
        return self._keep(training, rows, trained)

    def _fit_rows_on_basis(self, X, sample_weight):
        """Fit the machine on its basis."""
        (X,) = self._check_rows(X)
        weight = self._weigh(X, sample_weight)
        _, (solution,) = self._fit_on_basis(X, lambda matrix: [lambda: linear_one_class(matrix, weight, self.nu)], 1)
        self.offset_, self.n_iter_ = -self.intercept_, solution.n_iter
        if self._wants_probability:
            self.density_marks_ = density_marks(self.decision_function(X)[weight > 0.0])
        return self

    def _check(self, X, sample_weight):
        """Return the TrainingRows, after checks of the arguments."""
        (X,) = self._check_rows(X)
        return self._training_rows(X, self._weigh(X, sample_weight), n_problems=1)

    def _keep(self, training, rows, trained):
        """Set the fitted attributes; warn if the solver has not converged."""
        used = trained.coef != 0.0
        support, dual_coef = rows[used], trained.coef[np.newaxis, used]
        self._keep_model(support, [len(support)], dual_coef, np.array([trained.intercept]), training)
        self.offset_ = -self.intercept_
        if self._wants_probability:
            with self._showing("calibrating", len(rows)) as advance:
                scores = training.sums(support, dual_coef, rows, advance=advance).ravel()
            self.density_marks_ = density_marks(self._rounded_to_boundary(scores, training.X[rows]) - self.offset_[0])
        self.n_iter_ = trained.solution.n_iter
        self._warn(self._keep_solutions([trained]), self._features(training))
        return self

    def _rounded_to_boundary(self, scores, Z):
        """Return the scores; those that differ from the offset by no more than rounding become equal to it.

        Otherwise rounding would decide whether support vectors on the boundary are inliers.
        """
        offset = self.offset_[0]
        rounding = RELATIVE_ROUNDING * np.abs(offset) + RELATIVE_ROUNDING_OF_TERMS * self._size_of_terms(Z)
        return np.where(np.abs(scores - offset) <= rounding, offset, scores)

    def _size_of_terms(self, Z):
        """Return an upper bound of Σ |coef_i K(x_i, z)| for each row z, plus that of a row of mean norm.

        The rounding error of a score is in proportion to this sum. It is not small against the score if terms cancel:
        if the origin lies among the rows, w = 0 is optimal for the linear kernel, and scores consist of rounding errors
        alone. The row of mean norm stands for the offset, which is a score as well. For linear and polynomial kernels,
        |K(x, z)| is at most the kernel of the norms |x| and |z|. The bound is 0 for other kernels: the terms of "rbf"
        are positive and cannot cancel, and the values of other kernels are not known.
        """
        if self.kernel not in ("linear", "poly"):
            return 0.0
        vectors, coefficients = self._expansion()
        coefficients = np.abs(coefficients.toarray() if issparse(coefficients) else coefficients)
        kernel = replace(self._kernel(), coef0=abs(float(self.coef0)))
        of_vectors, of_rows = (row_norms(rows).astype(np.float64) for rows in (vectors, Z))
        norms = np.append(of_rows, of_vectors.mean() if len(of_vectors) else 0.0)[:, np.newaxis]
        sizes = kernel_sums(kernel, of_vectors[:, np.newaxis], coefficients, norms, n_jobs=self.n_jobs).ravel()
        return sizes[:-1] + sizes[-1]

    def score_samples(self, X: Rows) -> Floats:
        """Return <w, φ(x)> of each row, which is the decision function plus `offset_`.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), or (n_samples, n_training) if precomputed

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        X = self._check_new_rows(X)
        with self._showing("predicting", n_rows_of(X)) as advance:
            parts = parts_of(X, 1) if isinstance(X, RowBlocks) else [X]
            found = [self._rounded_to_boundary(self._sums(part, advance=advance).ravel(), part) for part in parts]
        return found[0] if len(found) == 1 else np.concatenate(found)

    def decision_function(self, X: Rows) -> Floats:
        """Return the decision function of each row: positive for inliers, negative for outliers.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), or (n_samples, n_training) if precomputed

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return self.score_samples(X) - self.offset_[0]

    def predict(self, X: Rows) -> NDArray[np.int64]:
        """Return 1 for inliers, including rows on the boundary, and −1 for outliers.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), or (n_samples, n_training) if precomputed

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return np.where(self.decision_function(X) >= 0.0, 1, -1)

    @available_with_probability("predict_proba needs probability=True when fitting.")
    def predict_proba(self, X: Rows) -> Floats:
        """Return the probabilities of being an inlier and an outlier, if fitted with probability=True.

        The probability depends on the bin that contains the decision value; on either side of the boundary, all bins
        contain equally many training rows (Que and Lin 2022).

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), or (n_samples, n_training) if precomputed

        Returns
        -------
        ndarray of shape (n_samples, 2)
            Columns: inlier, outlier, in LIBSVM's order (its "label normal outlier").
        """
        decisions = self.decision_function(X)
        if not hasattr(self, "density_marks_"):
            raise self._not_calibrated("predict_proba")
        inlier = marks_probability(decisions, self.density_marks_)
        return np.column_stack([inlier, 1.0 - inlier])
