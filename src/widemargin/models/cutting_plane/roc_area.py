"""`ROCAreaSVC`: classification of two classes that maximises the area under the ROC curve.

    minimise ½|w|² + C · mean over pairs (i, j), y_i > y_j, of   max(0, 1 − f(x_i) + f(x_j)),    f(x) = <w, x>

The pairs are those of a positive and a negative row; see `ranking`.
"""

from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from widemargin.models.argument_types import (
    BasisChoice,
    BasisPoints,
    Callbacks,
    Checkpoint,
    Gamma,
    MaxMemory,
    PlaneKernel,
    PlaneStopping,
    RowsOrBlocks,
    Scaling,
)
from widemargin.models.cutting_plane.base import BinaryPlaneModel
from widemargin.models.cutting_plane.queries import query_ends
from widemargin.problems.ranking import pair_risk, thresholds


class ROCAreaSVC(BinaryPlaneModel):
    """Classification of two classes that maximises the area under the ROC curve.

    The area is the fraction of pairs of a positive and a negative row in which the positive row has the larger score.
    It does not depend on the intercept, which is chosen to make the fewest errors on the training rows.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the mean loss over pairs against ½|w|².
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
        The intercept, which makes the fewest errors on the training rows.
    classes_ : ndarray
        The two labels; rows of the second should have larger scores.
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
    >>> from sklearn.metrics import roc_auc_score
    >>> from sklearn.preprocessing import scale
    >>> from widemargin import ROCAreaSVC
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = ROCAreaSVC().fit(scale(X), y)
    >>> bool(roc_auc_score(y, model.decision_function(scale(X))) > 0.99)
    True
    """

    def __init__(
        self,
        C: float = 1.0,
        *,
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
        self.C = C
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
            Two classes.
            Of row blocks, None takes the labels of the file.

        Returns
        -------
        self
        """
        X, label = self._check_two_classes(X, y)
        return self._fit_labels(X, label)

    def _fit_labels(self, X, label):
        """Set the weights and the intercept for labels 0 and 1."""
        self._minimise(X, pair_risk(label, query_ends(None, len(label)), self.C, self.n_jobs))
        self.intercept_ = np.zeros(1)
        self.intercept_ = -thresholds(self._scores_of_checked(X).ravel(), label, 2)
        return self
