"""`SVR`: a drop-in replacement for scikit-learn's, with a certificate and with prediction intervals.

    minimise ½|w|² + Σ C_i max(0, |y_i − f(x_i)| − epsilon)

f(x) = <w, φ(x)> + b, C_i = C * sample_weight[i], and K(x, z) = <φ(x), φ(z)>.
"""

from numbers import Real
from typing import Literal

import numpy as np
from sklearn.utils import check_random_state

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
)
from widemargin.models.calibration import laplace_scale
from widemargin.models.kernel.base import KernelModel
from widemargin.models.kernel.regressor import KernelRegressor
from widemargin.models.kernel_constraints import BASIS_CONSTRAINTS
from widemargin.models.sklearn_private import Interval
from widemargin.models.solved_model import POSITIVE
from widemargin.problems.regression import eps_svr, epsilon_insensitive


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
        **BASIS_CONSTRAINTS,
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
        if self.probability == "libsvm":
            raise ValueError(
                "probability='libsvm' is the cross-validation of an exact machine; with a basis use probability=True."
            )
        cost = self._costs_of(self._weigh(X, sample_weight))

        def state(matrix):
            return [lambda: epsilon_insensitive(matrix, y, cost, self.epsilon, free_intercept=True)]

        expansion, (solution,) = self._fit_on_basis(X, state, 1)
        self.n_iter_ = solution.n_iter
        if self._wants_probability:
            self.laplace_scale_ = laplace_scale(self._residuals_on_basis(X, y, cost, expansion.features, solution))
        return self

    def _residuals_on_basis(self, X, y, cost, features, solution):
        """Return residuals of rows that were left out, by the machine on its basis; of a sample, if rows are many."""
        from widemargin.models.kernel.out_of_sample import (
            BinaryMachine,
            coefficients_of_losses,
            out_of_sample_on_basis,
        )

        rows = np.flatnonzero(cost)
        beta = solution.beta
        if beta is None:
            residual = y - self.predict(X)
            excess, unit = np.abs(residual) - self.epsilon, np.abs(residual[rows]).mean()
            beta = coefficients_of_losses(excess, np.sign(residual), cost, unit)
        ones = np.ones(len(rows))
        machine = BinaryMachine(rows, ones, ones, cost[rows], beta[rows], float(solution.intercept))
        random = check_random_state(self.random_state)

        def from_corner(f, positions):
            return np.abs(np.abs(y[rows[positions]] - f) - self.epsilon)

        positions, values, _ = out_of_sample_on_basis(machine, features, solution.w, random, from_corner)
        return y[rows[positions]] - values
