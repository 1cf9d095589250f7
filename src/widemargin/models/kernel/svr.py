"""`SVR` and `NuSVR`: drop-in replacements for scikit-learn's, with a certificate and with prediction intervals.

    SVR      minimise ½|w|² + Σ C_i max(0, |y_i − f(x_i)| − epsilon)
    NuSVR    the same with epsilon a variable, at the price C nu n epsilon: at most about nu of the rows lie outside

f(x) = <w, φ(x)> + b, C_i = C * sample_weight[i], and K(x, z) = <φ(x), φ(z)>.
"""

from dataclasses import replace
from numbers import Real

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils._param_validation import Interval
from sklearn.utils.metaestimators import available_if

from widemargin.models.base import POSITIVE
from widemargin.models.calibration import laplace_interval, laplace_scale
from widemargin.models.kernel.base import KernelModel, folds_of
from widemargin.models.kernel.docs import documented
from widemargin.problems.regression import eps_svr, nu_svr


def _fits_intervals(model):
    if not model._wants_probability:
        raise AttributeError("predict_interval needs probability=True when fitting.")
    return True


class KernelRegressor(RegressorMixin, KernelModel):
    """What `SVR` and `NuSVR` share; they state the problem of some rows in `_problem`.

    Sets besides what a `KernelModel` sets: `laplace_scale_` if probability is true.
    """

    def fit(self, X, y, sample_weight=None):
        """Fit the model.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), or (n_samples, n_samples) if precomputed
            float32 stays float32, anything else becomes float64.
        y : array-like of shape (n_samples,)
            The targets.
        sample_weight : array-like of shape (n_samples,), default=None
            Factor of C for each row; a row of weight zero (or below) is as good as absent.

        Returns
        -------
        self
        """
        return self._fit(X, y, sample_weight)

    def _fit(self, X, y, sample_weight, submatrices=None):
        """Fit the model; `submatrices` are kernel matrices to reuse, as of `fit_reusing`."""
        training, y = self._check(X, y, sample_weight)
        training = replace(training, submatrices=submatrices)
        parts = self._parts(training)
        trained = self._train([lambda part=part: self._problem(training, y, part) for part in parts])
        return self._keep(training, y, parts, trained)

    def _check(self, X, y, sample_weight):
        """Return the training rows and targets."""
        X, y = self._check_rows(X, y, y_numeric=True)
        y = y.astype(np.float64)
        if not np.isfinite(y).all():  # of an array of objects, None was there until now
            i = int(np.argmin(np.isfinite(y)))
            raise ValueError(f"Input y contains NaN or infinity: y[{i}] is {y[i]}. Leave such rows out.")
        weight = self._weigh(X, sample_weight)
        return self._training_rows(X, weight, n_problems=1 + 5 * self._wants_probability), y

    def _parts(self, training):
        """Return the rows of each problem: all, and for probabilities all but those of each fold."""
        rows = training.present
        if not self._wants_probability:
            return [rows]
        if len(rows) < 2:
            raise ValueError("probability=True needs at least 2 rows of positive weight for cross-validation, got 1.")
        folds = folds_of(rows, np.zeros_like(training.weight), self.random_state)
        return [rows, *(np.setdiff1d(rows, fold) for fold in folds)]

    def _keep(self, training, y, parts, trained):
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
        """Return the residual of each row under the model that did not see it."""
        residuals = []
        with self._showing("calibrating", len(parts[0])) as advance:
            for seen, model in zip(parts[1:], others, strict=True):
                held = np.setdiff1d(parts[0], seen)
                used = model.coef != 0.0
                sums = training.sums(seen[used], model.coef[np.newaxis, used], held, advance=advance)
                residuals.append(y[held] - sums.ravel() - model.intercept)
        return np.concatenate(residuals)

    def predict(self, X):
        """Return the predicted target of each row.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), or (n_samples, n_training) if precomputed

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return self._new_sums(X) + self.intercept_[0]

    @available_if(_fits_intervals)
    def predict_interval(self, X, level=0.9):
        """Return an interval for the target of each row, if fitted with probability=True.

        Targets are taken to be the prediction plus Laplace noise whose scale, `laplace_scale_`, comes from five-fold
        cross-validation. The interval has the same width everywhere.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), or (n_samples, n_training) if precomputed
        level : float, default=0.9
            Probability that a target lies in its interval, between 0 and 1.

        Returns
        -------
        ndarray of shape (n_samples, 2)
            Lower and upper ends.
        """
        middle = self.predict(X)
        if not hasattr(self, "laplace_scale_"):
            raise self._not_calibrated("predict_interval")
        half = laplace_interval(self.laplace_scale_, level)
        return np.column_stack([middle - half, middle + half])


@documented
class SVR(KernelRegressor):
    """Support vector regression with an epsilon-tube, with a proof of how good the model is.

    Parameters
    ----------
    {kernel}
    {tol}
    C : float, default=1.0
        Weight of the losses against ½|w|².
    epsilon : float, default=0.1
        Residuals up to this size are free.
    {shared}
    {interval}
    {extra}

    Attributes
    ----------
    {attributes}
    n_iter_ : int
        Iterations of the solver.
    laplace_scale_ : float
        Mean size of a residual in cross-validation, if probability is true.

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
        "C": [POSITIVE],
        "epsilon": [Interval(Real, 0.0, None, closed="left")],
    }

    def __init__(
        self,
        *,
        kernel="rbf",
        degree=3,
        gamma="scale",
        coef0=0.0,
        tol=1e-3,
        C=1.0,
        epsilon=0.1,
        shrinking=True,
        cache_size=200,
        verbose=False,
        max_iter=-1,
        probability=False,
        random_state=None,
        stopping="kkt",
        solver="auto",
        working_set=None,
        warm_start=False,
        max_seconds=None,
        n_jobs=None,
        callbacks=None,
    ):
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

    def _problem(self, training, y, part):
        return eps_svr(training.matrix(part), y[part], self._costs(training, part), self.epsilon)


@documented
class NuSVR(KernelRegressor):
    """Support vector regression whose tube is as wide as nu asks for, with a proof of how good the model is.

    Parameters
    ----------
    nu : float, default=0.5
        At most about this part of the rows lies outside the tube, and at least this part are support vectors.
    C : float, default=1.0
        Weight of the losses against ½|w|².
    {kernel}
    {shared}
    {tol}
    {interval}
    {extra}

    Attributes
    ----------
    {attributes}
    n_iter_ : int
        Iterations of the solver.
    laplace_scale_ : float
        Mean size of a residual in cross-validation, if probability is true.

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
        nu=0.5,
        C=1.0,
        kernel="rbf",
        degree=3,
        gamma="scale",
        coef0=0.0,
        shrinking=True,
        tol=1e-3,
        cache_size=200,
        verbose=False,
        max_iter=-1,
        probability=False,
        random_state=None,
        stopping="kkt",
        solver="auto",
        working_set=None,
        warm_start=False,
        max_seconds=None,
        n_jobs=None,
        callbacks=None,
    ):
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

    def _problem(self, training, y, part):
        return nu_svr(training.matrix(part), y[part], self._costs(training, part), self.nu)
