"""Base class of `SVR` and `NuSVR`: targets, predictions, and intervals by cross-validation."""

from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import RegressorMixin

from widemargin._runtime.argument_types import Floats, Rows
from widemargin.models.argument_types import (
    RowsOrBlocks,
)
from widemargin.models.calibration import laplace_interval, laplace_scale
from widemargin.models.kernel.base import KernelModel, available_with_probability
from widemargin.models.kernel.training_rows import folds_of
from widemargin.models.scoring import ScoresRowBlocks


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

    def _fit(self, X, y, sample_weight, reused=None):
        """Fit the model; for `reused` see `fit_reusing`."""
        if self._wants_basis:
            return self._fit_targets_on_basis(X, y, sample_weight)
        training, y = self._check_once(lambda: self._check(X, y, sample_weight), reused)
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
