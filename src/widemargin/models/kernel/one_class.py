"""`OneClassSVM`: a drop-in replacement for scikit-learn's, with a certificate and with probabilities.

    minimise ½|w|² − nu W r + Σ w_i max(0, r − <w, φ(x_i)>)        W = Σ w_i, w_i = sample_weight[i]

f(x) = <w, φ(x)> − r is positive where most of the rows are: all but about the part nu of them.
"""

from dataclasses import replace
from numbers import Real

import numpy as np
from scipy.sparse import issparse
from sklearn.base import OutlierMixin
from sklearn.utils._param_validation import Interval
from sklearn.utils.extmath import row_norms
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import _num_samples

from widemargin.models.calibration import density_marks, marks_probability
from widemargin.models.kernel.base import KernelModel, kernel_sums
from widemargin.models.kernel.docs import documented
from widemargin.problems.one_class import one_class

_ROUNDING = 1e-11  # of a score, relative
_ROUNDING_OF_TERMS = 1e-13  # of a score, relative to the sizes of the terms that it is the sum of


def _fits_probabilities(model):
    if not model._wants_probability:
        raise AttributeError("predict_proba needs probability=True when fitting.")
    return True


@documented
class OneClassSVM(OutlierMixin, KernelModel):
    """The region where most rows are, for finding outliers, with a proof of how good the model is.

    Parameters
    ----------
    {kernel}
    {tol}
    nu : float, default=0.5
        At most about this part of the rows is left outside, and at least this part are support vectors.
    {shared}
    probability : bool or "libsvm", default=False
        True or "libsvm": whether to prepare `predict_proba` too; needs five training rows on either side.
    random_state : int, RandomState or None, default=None
        Seeds the solver.
    {extra}

    Attributes
    ----------
    {attributes}
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
        "nu": [Interval(Real, 0.0, 1.0, closed="right")],
    }

    def __init__(
        self,
        *,
        kernel="rbf",
        degree=3,
        gamma="scale",
        coef0=0.0,
        tol=1e-3,
        nu=0.5,
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

    def fit(self, X, y=None, sample_weight=None):
        """Fit the model.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), or (n_samples, n_samples) if precomputed
            float32 stays float32, anything else becomes float64.
        y : ignored
            Not used; there by convention.
        sample_weight : array-like of shape (n_samples,), default=None
            Weight of each row; a row of weight zero (or below) is as good as absent.

        Returns
        -------
        self
        """
        return self._fit(X, y, sample_weight)

    def _fit(self, X, y, sample_weight, submatrices=None):
        """Fit the model; `submatrices` are kernel matrices to reuse, as of `fit_reusing`."""
        training = replace(self._check(X, sample_weight), submatrices=submatrices)
        rows = training.present
        (trained,) = self._train([lambda: one_class(training.matrix(rows), training.weight[rows], self.nu)])
        return self._keep(training, rows, trained)

    def _check(self, X, sample_weight):
        """Return the training rows."""
        (X,) = self._check_rows(X)
        return self._training_rows(X, self._weigh(X, sample_weight), n_problems=1)

    def _keep(self, training, rows, trained):
        used = trained.coef != 0.0
        support, dual_coef = rows[used], trained.coef[np.newaxis, used]
        self._keep_model(support, [len(support)], dual_coef, np.array([trained.intercept]), training)
        self.offset_ = -self.intercept_
        if self._wants_probability:
            with self._showing("calibrating", len(rows)) as advance:
                scores = training.sums(support, dual_coef, rows, advance=advance).ravel()
            self.density_marks_ = density_marks(self._settled(scores, training.X[rows]) - self.offset_[0])
        self.n_iter_ = trained.solution.n_iter
        self._warn(self._keep_solutions([trained]), self._features(training))
        return self

    def _settled(self, scores, Z):
        """Return the scores, those of rows on the boundary exactly: rounding must not decide on which side they are."""
        offset = self.offset_[0]
        rounding = _ROUNDING * np.abs(offset) + _ROUNDING_OF_TERMS * self._size_of_terms(Z)
        return np.where(np.abs(scores - offset) <= rounding, offset, scores)

    def _size_of_terms(self, Z):
        """Return a bound of Σ coef_i |K(x_i, z)| for each row z, plus that of a mean row, on which the offset depends.

        Where terms cancel, a score is small and its rounding is not: if the origin lies among the rows, w = 0 is
        optimal for the linear kernel and scores are nothing but rounding. |K(x, z)| is at most that of the norms |x|
        and |z|. Other kernels give 0: terms of "rbf" are positive, and of a precomputed matrix the sizes are not known.
        """
        if self.kernel not in ("linear", "poly"):
            return 0.0
        coefficients = self.dual_coef_.toarray() if issparse(self.dual_coef_) else self.dual_coef_
        kernel = replace(self._kernel(), coef0=abs(float(self.coef0)))
        of_vectors, of_rows = (row_norms(rows).astype(np.float64) for rows in (self.support_vectors_, Z))
        norms = np.append(of_rows, of_vectors.mean() if len(of_vectors) else 0.0)[:, np.newaxis]
        sizes = kernel_sums(kernel, of_vectors[:, np.newaxis], coefficients, norms, n_jobs=self.n_jobs).ravel()
        return sizes[:-1] + sizes[-1]

    def score_samples(self, X):
        """Return <w, φ(x)> of each row: the decision function without its offset.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), or (n_samples, n_training) if precomputed

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        X = self._check_new_rows(X)
        with self._showing("predicting", _num_samples(X)) as advance:
            return self._settled(self._sums(X, advance=advance).ravel(), X)

    def decision_function(self, X):
        """Return how far each row is inside the region: positive for inliers, negative for outliers.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), or (n_samples, n_training) if precomputed

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return self.score_samples(X) - self.offset_[0]

    def predict(self, X):
        """Return 1 for inliers, those on the boundary included, −1 for outliers.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), or (n_samples, n_training) if precomputed

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return np.where(self.decision_function(X) >= 0.0, 1, -1)

    @available_if(_fits_probabilities)
    def predict_proba(self, X):
        """Return the probabilities of being an inlier and an outlier, if fitted with probability=True.

        By the bin that the decision value falls in, bins of equal counts of training rows (Que and Lin).

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
