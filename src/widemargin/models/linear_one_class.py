"""`LinearOneClassSVM`: outliers among many rows, by a linear function with a certificate.

    minimise ½|w|² − ρ nu W + Σ weight_i max(0, ρ − <w, x_i>)    over w and ρ        W = Σ weight_i

as LIBLINEAR's -s 21 and as `OneClassSVM(kernel="linear")`.
"""

from numbers import Real
from typing import Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import OutlierMixin

from widemargin._runtime.argument_types import Floats
from widemargin.models.argument_types import Callbacks, Checkpoint, MaxMemory, RandomState, RowsOrBlocks
from widemargin.models.base import LinearModel
from widemargin.models.inputs import checked_rows, checked_weights
from widemargin.models.sklearn_private import Interval, StrOptions
from widemargin.problems.formulations import FixedSumQP, Intercept
from widemargin.problems.one_class import linear_one_class
from widemargin.solvers.registry import names_of

RELATIVE_ROUNDING = 1e-11  # of a score, relative to the offset


class LinearOneClassSVM(OutlierMixin, LinearModel):
    """Estimation of the half-space that contains most of the rows, to detect outliers, with a proof of how good it is.

    The half-space <w, x> >= ρ is the one farthest from the origin. Ordinary rows should lie on one side of the origin:
    counts, frequencies and other nonnegative numbers, or features of a kernel. If the origin lies among the rows, w = 0
    is optimal, and no row is an outlier.

    Parameters
    ----------
    nu : float, default=0.5
        At most this fraction of the rows, by weight, lies outside.
    tol : float, default=1e-4
        Stop when the relative duality gap, (primal − dual) / |primal|, is at most this.
    max_iter : int or None, default=1000
        Largest number of passes of "pairs", of Newton steps or of cutting planes; None is no limit.
    solver : {"auto", "pairs", "newton", "ocas", "svmperf"}, default="auto"
        "pairs" changes two dual variables at a time, "newton" is for up to 3,000 columns, "ocas" and "svmperf" are
        cutting planes with and without line search. "auto" chooses by a measured rule.
    scaling : {"maxabs"}, default=None
        Whether features are divided by their largest absolute value for the solver. `coef_` is that of unscaled
        features. The origin stays where it is.
    warm_start : bool, default=False
        Whether to start from the last fit: from its weights, or with "auto" from its dual variables if the number of
        rows is the same.
    max_seconds : float or None, default=None
        Stop after about this many seconds and keep the best model found until then.
    n_jobs : int or None, default=None
        Number of threads. None is all cores where the work is worth it, and one within workers of joblib or Dask; -1 is
        all cores. The model does not depend on it.
    callbacks : callable or list of callables, default=None
        Called after each iteration with a `Progress`. A callback that returns a true value stops the fit.
    max_memory : int or str, default=None
        For row blocks: memory that the process may use in all, in bytes or as text such as "3GB"; rows that do not fit
        are read from disk in every pass. None is half of what is free.
    checkpoint : str or path, default=None
        File that keeps the state of the solver. The same call goes on from there if the process was killed.
    verbose : int, default=0
        1 shows progress: bars on a terminal or in a notebook, lines on standard error elsewhere. 2 shows more lines.
    random_state : int, RandomState or None, default=None
        Seed of the sample of the rows that "newton" starts with. The same seed gives the same model, bit for bit.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features)
        Weights of the features.
    offset_ : ndarray of shape (1,)
        ρ: decision_function = score_samples − offset_.
    intercept_ : ndarray of shape (1,)
        −offset_.
    dual_coef_ : ndarray of shape (1, n_samples)
        The dual variables that prove the gap, between 0 and the weight of the row; their sum is nu W. Cutting planes
        have none, except for small problems.
    n_iter_ : int
        Number of passes, Newton steps or cutting planes.
    gap_ : float
        The relative duality gap of the model: its objective is proved to be at most this fraction above the optimum.
        The objective is negative or zero. If it is nearly zero, the gap is relative to 1e-8 of what it could be.
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
    >>> from widemargin import LinearOneClassSVM
    >>> X = np.array([[2.0, 1.9], [2.1, 2.0], [1.9, 2.1], [2.0, 2.0], [0.2, 0.1]])
    >>> LinearOneClassSVM(nu=0.25).fit_predict(X)
    array([ 1,  1,  1,  1, -1])
    """

    _parameter_constraints: dict = {
        **LinearModel._parameter_constraints,
        "nu": [Interval(Real, 0.0, 1.0, closed="right")],
        "scaling": [StrOptions({"maxabs"}), None],
        "solver": [StrOptions(set(names_of(FixedSumQP)))],
    }
    _formulation = FixedSumQP
    _intercept = Intercept.FREE  # −ρ
    _n_outputs = 1
    fit_intercept, stopping = True, "gap"  # as other linear models have them; here they are no parameters

    offset_: Floats

    def __init__(
        self,
        *,
        nu: float = 0.5,
        tol: float = 1e-4,
        max_iter: int | None = 1000,
        solver: str = "auto",
        scaling: Literal["maxabs"] | None = None,
        warm_start: bool = False,
        max_seconds: float | None = None,
        n_jobs: int | None = None,
        callbacks: Callbacks = None,
        max_memory: MaxMemory = None,
        checkpoint: Checkpoint = None,
        verbose: int = 0,
        random_state: RandomState = None,
    ) -> None:
        self.nu = nu
        self.tol = tol
        self.max_iter = max_iter
        self.solver = solver
        self.scaling = scaling
        self.warm_start = warm_start
        self.max_seconds = max_seconds
        self.n_jobs = n_jobs
        self.callbacks = callbacks
        self.max_memory = max_memory
        self.checkpoint = checkpoint
        self.verbose = verbose
        self.random_state = random_state

    def fit(self, X: RowsOrBlocks, y: object = None, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array-like, sparse matrix or RowBlocks of shape (n_samples, n_features)
            float32 and float64 are used as they are, and large arrays of int8 and uint8.
        y : ignored
            Not used; present because scikit-learn passes it.
        sample_weight : array-like of shape (n_samples,), default=None
            Weight of each row; a row of weight zero has no influence. Of row blocks, None takes the weights of the
            file, if it has any.

        Returns
        -------
        self
        """
        X, _, weight = self._check(X, y, sample_weight)
        solutions = self._solve_problems([lambda: linear_one_class(X, weight, self.nu)], X)
        return self._keep(solutions, X)

    def _check_data(self, X, y, sample_weight):
        """Return the rows, None, and one weight for each row."""
        self._check_parameters()
        X = checked_rows(self, X, order="C", keeps_bytes=True)
        weight = checked_weights(sample_weight, X, non_negative=True)
        if not weight.any():
            raise ValueError("sample_weight is zero for every row; at least one must be positive.")
        return X, None, weight

    def _set_weights(self, solutions, X):
        """Set `coef_`, `intercept_`, `offset_` and `dual_coef_`."""
        super()._set_weights(solutions, X)
        self.offset_ = -self.intercept_

    def decision_function(self, X: RowsOrBlocks) -> Floats:
        """Return <w, x> − ρ of each row: positive for inliers, negative for outliers.

        Scores that differ from ρ by no more than rounding are zero: otherwise rounding would decide whether rows on the
        boundary are inliers.

        Parameters
        ----------
        X : array-like, sparse matrix or RowBlocks of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        decision = self._scores(X).ravel()
        return np.where(np.abs(decision) <= RELATIVE_ROUNDING * np.abs(self.offset_[0]), 0.0, decision)

    def score_samples(self, X: RowsOrBlocks) -> Floats:
        """Return <w, x> of each row, which is the decision function plus `offset_`.

        Parameters
        ----------
        X : array-like, sparse matrix or RowBlocks of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return self.decision_function(X) + self.offset_[0]

    def predict(self, X: RowsOrBlocks) -> NDArray[np.int64]:
        """Return 1 for inliers, including rows on the boundary, and −1 for outliers.

        Parameters
        ----------
        X : array-like, sparse matrix or RowBlocks of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return np.where(self.decision_function(X) >= 0.0, 1, -1)
