"""`MeasureSVC`: classification of two classes that optimises a measure of all predictions, such as F1.

    minimise ½|w|² + C · max over labellings z of   loss(z) + 1/n Σ_i (z_i − y_i) <w, x_i>

With measure="average_precision", rankings take the place of labellings, and the sum is 1/(p q) Σ (z_kj − 1) (f_k − f_j)
over the pairs of a positive row k and a negative row j, where z_kj is −1 if the ranking swaps them and 1 otherwise; see
`widemargin.problems.average_precision`.

With a kernel, f takes the place of <w, x>: a function of the points of a basis, see `widemargin.models.fixed_basis`.
The loss of a labelling, for instance 1 − F1, is between 0 and 1; see `widemargin.problems.measures`.
"""

from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from widemargin._runtime.warning import warn_caller
from widemargin.models.argument_types import (
    BasisChoice,
    BasisPoints,
    Callbacks,
    Checkpoint,
    Gamma,
    MaxMemory,
    Measure,
    PlaneKernel,
    PlaneStopping,
    RowsOrBlocks,
    Scaling,
)
from widemargin.models.cutting_plane.base import BinaryPlaneModel
from widemargin.models.solved_model import POSITIVE
from widemargin.problems.measures import measure_risk
from widemargin.problems.ranking import thresholds
from widemargin.solvers.contract import Status


class MeasureSVC(BinaryPlaneModel):
    """Classification of two classes by a measure that is not a sum over rows.

    Parameters
    ----------
    measure : str or callable, default="f1"
        "f1"; "prbep", the precision where it equals the recall; "precision@K" and "recall@K", of the K rows with the
        largest scores, where K is a number; "error", the error rate; "zero_one", whether there is any error at all;
        "average_precision", the mean over positive rows of the precision at their rank. A callable is called as
        measure(fn, fp, n_positive, n_negative) with arrays of counts, the false negatives and the false positives. It
        returns the loss, between 0 and 1, of each pair of counts that the arrays broadcast to, or -inf for counts that
        no prediction may have. The time for a cutting plane is then in proportion to n_positive * n_negative.
    C : float, default=1.0
        Weight of the measure's loss, which is between 0 and 1, against ½|w|².
    fit_intercept : bool, default=True
        Whether to fit an intercept, which is penalised with the weights. Average precision depends on no intercept:
        there it is the one with the fewest errors on the training rows.
    intercept_scaling : float, default=1.0
        Value of the constant feature whose weight is the intercept; the larger, the less the intercept is penalised. No
        effect with average precision.
    tol : float, default=1e-3
        Stop when the relative duality gap, (primal − dual) / primal, is at most this. With `stopping="violation"`, stop
        when the mean loss exceeds its cutting-plane model by at most this, as in SVM-Perf.
    solver : {"ocas", "svmperf"}, default="ocas"
        Cutting planes with line search ("ocas") or without ("svmperf").
    stopping : {"gap", "violation"}, default="gap"
        What `tol` is compared with; "violation" needs `solver="svmperf"`.
    max_iter : int or None, default=1000
        Largest number of cutting planes; None is no limit.
    warm_start : bool, default=False
        Whether to start from the weights of the last fit, if there are as many features, or the same basis points.
    max_seconds : float or None, default=None
        Stop after about this many seconds and keep the best model found until then.
    n_jobs : int or None, default=None
        Number of threads over rows. None is all cores where the work is worth it, and one within workers of joblib or
        Dask; -1 is all cores.
    verbose : int, default=0
        1 shows progress: bars on a terminal or in a notebook, lines on standard error elsewhere. 2 shows more lines.
    callbacks : callable or list of callables, default=None
        Called after each cutting plane with a `Progress`. A callback that returns a true value stops the fit.
    scaling : {"standard", "maxabs"}, default=None
        How features are scaled for the solver: mean 0 and standard deviation 1, or a largest absolute value of 1. The
        data are not copied if they are on disk, or sparse; `coef_` and `intercept_` are those of unscaled features.
        Linear kernel only.
    max_memory : int or str, default=None
        For row blocks, or with a basis: memory that the process may use in all, in bytes or as text such as "3GB".
        Rows, or kernel values, that fit are kept; others are read or computed in every pass. None is half of what is
        free.
    checkpoint : str or path, default=None
        File in which the state of the solver is kept now and then. The same call goes on from there if the process
        was killed; the file is removed when the fit has converged.
    kernel : {"linear", "poly", "rbf", "sigmoid"}, default="linear"
        The kernel K(x, z): <x, z>, (gamma <x, z> + coef0)^degree, exp(−gamma |x − z|²) or tanh(gamma <x, z> + coef0).
        "linear" has a weight for each feature. The others need a `basis` of points b_j: scores are Σ_j c_j K(b_j, x),
        and |w| is the norm of this function in the space of the kernel.
    degree : int, default=3
        Degree of "poly".
    gamma : {"scale", "auto"} or float, default="scale"
        Coefficient of "rbf", "poly" and "sigmoid". "scale" is 1 / (n_features * X.var()); "auto" is 1 / n_features.
    coef0 : float, default=0.0
        Constant term of "poly" and "sigmoid".
    basis : int, "auto", array-like or None, default=None
        The basis of a kernel other than "linear": so many points, or these points. "auto" takes 128 points, then twice
        as many, up to 2,048, until the objective falls by less than 1%.
    basis_choice : {"auto", "uniform", "kmeans", "leverage", "greedy"}, default="auto"
        How basis points are chosen: random rows, centres of clusters, rows by their leverage scores, or rows that are
        far from those before. "auto" is "kmeans", or "uniform" if X is sparse. The same rows give the same points.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features)
        Weights of the features; linear kernel only.
    basis_ : ndarray or csr of shape (n_points, n_features)
        With a basis: its points. Those that depend on the others are left out.
    basis_coef_ : ndarray of shape (1, n_points)
        With a basis: the coefficients of its points.
    intercept_ : ndarray of shape (1,)
        The intercept; 0.0 if there is none. With `scaling`, it includes what centring adds to the scores.
    classes_ : ndarray
        The two labels; the second is the positive one.
    n_iter_ : int
        Number of cutting planes; of the last stage, with basis="auto".
    gap_ : float
        The relative duality gap: the objective is proved to be at most this fraction above the optimum.
    objective_ : float
        The objective at the model.
    history_ : structured ndarray
        Each measurement: iteration, seconds, passes, primal, dual, gap. With basis="auto", each stage: points,
        iterations, seconds, primal, decrease, gap.
    solver_ : str
        The solver that ran.
    status_ : str
        Why the solver stopped.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray
        Names of the features, if X had string column names.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> from widemargin import MeasureSVC
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = MeasureSVC(measure="f1", C=100.0).fit(scale(X), y)
    >>> model.score(scale(X), y) > 0.97
    True
    """

    _parameter_constraints: dict = {
        **BinaryPlaneModel._parameter_constraints,
        "measure": [str, callable],
        "fit_intercept": ["boolean"],
        "intercept_scaling": [POSITIVE],
    }

    def __init__(
        self,
        measure: Measure = "f1",
        C: float = 1.0,
        *,
        fit_intercept: bool = True,
        intercept_scaling: float = 1.0,
        tol: float = 1e-3,
        solver: str = "ocas",
        stopping: PlaneStopping = "gap",
        max_iter: int | None = 1000,
        warm_start: bool = False,
        max_seconds: float | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        callbacks: Callbacks = None,
        scaling: Scaling = None,
        max_memory: MaxMemory = None,
        checkpoint: Checkpoint = None,
        kernel: PlaneKernel = "linear",
        degree: int = 3,
        gamma: Gamma = "scale",
        coef0: float = 0.0,
        basis: BasisPoints = None,
        basis_choice: BasisChoice = "auto",
    ) -> None:
        self.measure = measure
        self.C = C
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.tol = tol
        self.solver = solver
        self.stopping = stopping
        self.max_iter = max_iter
        self.warm_start = warm_start
        self.max_seconds = max_seconds
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.callbacks = callbacks
        self.scaling = scaling
        self.max_memory = max_memory
        self.checkpoint = checkpoint
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.basis = basis
        self.basis_choice = basis_choice

    def fit(self, X: RowsOrBlocks, y: ArrayLike | None = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array-like, sparse matrix or RowBlocks of shape (n_samples, n_features)
            float32 and float64 are used as they are, and large arrays of int8 and uint8, without a kernel.
        y : array-like of shape (n_samples,)
            Two classes, of which the second, in ascending order, is the positive one.
            Of row blocks, None takes the labels of the file.

        Returns
        -------
        self
        """
        X, label = self._check_two_classes(X, y)
        return self._fit_labels(X, label)

    def _fit_labels(self, X, label):
        """Set the weights and the intercept for labels 0 and 1."""
        risk = self._risk_of(np.where(label == 1, 1.0, -1.0))
        has_column = self.fit_intercept and risk.depends_on_intercept
        intercept = self._minimise(X, risk, self.intercept_scaling if has_column else 0.0)
        has_intercept = self.fit_intercept or self.scaling is not None
        self.intercept_ = np.array([intercept]) if has_intercept else 0.0
        if self.fit_intercept and not risk.depends_on_intercept:
            self.intercept_ = np.zeros(1)
            self.intercept_ = -thresholds(self._scores_of_checked(X).ravel(), label, 2)
        self._warn_of_zero_weights()
        return self

    def _warn_of_zero_weights(self):
        """Warn if all weights are zero, which is the optimum where the classes overlap too much for the measure."""
        weights = self.basis_coef_ if self._is_on_basis else self.coef_
        if self.status_ == Status.CONVERGED.value and not np.any(weights):
            warn_caller(
                "All weights are zero: the classes overlap so much that no weights lower the bound of the loss of "
                f"measure={self.measure!r}, and all rows have the same score. Use ROCAreaSVC, or LinearSVC with "
                "class_weight='balanced', and choose a threshold; or other features, or a kernel."
            )

    def _risk_of(self, sign):
        """Return the risk of the measure, for rows of these signs."""
        return measure_risk(self.measure, sign, self.C)
