"""`NuSVR`: a drop-in replacement for scikit-learn's, with a certificate and with prediction intervals.

    minimise ½|w|² + C nu n epsilon + Σ C_i max(0, |y_i − f(x_i)| − epsilon) over epsilon >= 0 too

f(x) = <w, φ(x)> + b, C_i = C * sample_weight[i], and K(x, z) = <φ(x), φ(z)>.
"""

from numbers import Real
from typing import Literal

from widemargin.models.argument_types import (
    Callbacks,
    Checkpoint,
    Gamma,
    KernelChoice,
    KernelStopping,
    RandomState,
)
from widemargin.models.kernel.base import KernelModel
from widemargin.models.kernel.regressor import KernelRegressor
from widemargin.models.sklearn_private import Interval
from widemargin.models.solved_model import POSITIVE
from widemargin.problems.regression import nu_svr


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
