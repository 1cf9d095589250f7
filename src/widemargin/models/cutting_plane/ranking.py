"""`RankSVM`, `OrdinalSVC` and `ROCAreaSVC`: linear models whose scores order rows as their targets do.

    minimise ½|w|² + C · mean over pairs (i, j), y_i > y_j, of   max(0, 1 − <w, x_i − x_j>)

C multiplies a mean over pairs, as in SVM-Perf, so that a suitable C does not depend on the number of rows. The pairs of
`RankSVM` are those of rows of the same query, the pairs of `OrdinalSVC` and `ROCAreaSVC` those of any two rows. An
intercept would cancel out of every pair. A cutting plane takes O(n log n) time, whatever the number of different
targets.
"""

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_consistent_length

from widemargin._runtime.argument_types import Floats
from widemargin.data.blocks.row_blocks import RowBlocks
from widemargin.models.argument_types import (
    Callbacks,
    Checkpoint,
    MaxMemory,
    PlaneStopping,
    RowsOrBlocks,
    Scaling,
)
from widemargin.models.cutting_plane.base import BinaryPlaneModel, PlaneModel
from widemargin.models.cutting_plane.queries import queries, query_ends
from widemargin.models.inputs import encode_labels, finite_targets, refuse_missing
from widemargin.models.scoring import ScoresRowBlocks, targets_of
from widemargin.problems.ranking import concordance, pair_risk, thresholds


class RankSVM(PlaneModel):
    """Ranking: the scores of the rows of a query should have the order of their targets.

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
        Whether to start from the weights of the last fit, if there are as many features.
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
    max_memory : int or str, default=None
        For row blocks: memory that the process may use in all, in bytes or as text such as "3GB". Rows that fit are
        loaded, others are read from disk in every pass. None is half of what is free.
    checkpoint : str or path, default=None
        File in which the state of the solver is kept now and then. The same call goes on from there if the process
        was killed; the file is removed when the fit has converged.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Weights of the features.
    intercept_ : float
        0.0, because an intercept does not change any order. With `scaling`, what centring adds to the scores.
    n_iter_ : int
        Number of cutting planes.
    gap_ : float
        The relative duality gap: the objective is proved to be at most this fraction above the optimum.
    objective_ : float
        The objective at the model.
    history_ : structured ndarray
        Each measurement: iteration, seconds, passes, primal, dual, gap.
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
    >>> import numpy as np
    >>> from widemargin import RankSVM
    >>> X = np.random.default_rng(0).standard_normal((60, 3))
    >>> relevance, query = X @ [1.0, 2.0, 0.0], np.repeat([1, 2, 3], 20)
    >>> model = RankSVM(C=100.0).fit(X, relevance, qid=query)
    >>> model.score(X, relevance, qid=query) > 0.98
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

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags

    def fit(self, X: RowsOrBlocks, y: ArrayLike | None = None, qid: ArrayLike | None = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array-like, sparse matrix or RowBlocks of shape (n_samples, n_features)
            float32 and float64 are used as they are.
        y : array-like of shape (n_samples,)
            Numbers; within a query, rows with larger targets should have larger scores.
            Of row blocks, None takes the labels of the file.
        qid : array-like of shape (n_samples,), default=None
            The query of each row; the rows of a query must be adjacent. None means that all rows belong to one query.

        Returns
        -------
        self
        """
        X, targets = self._check_rows(X, y, y_numeric=True, ensure_min_samples=2)
        blocks = X if isinstance(X, RowBlocks) else None
        ends = query_ends(qid, len(targets), blocks)
        risk = pair_risk(targets, ends, self.C, self.n_jobs)
        has_queries = qid is not None or (blocks is not None and blocks.layout.has_qid)
        self._refuse_no_pairs(risk.n_pairs > 0, " within any query" if has_queries else "")
        del targets  # the risk has the ranks
        self.coef_, self.intercept_ = self._minimise(X, risk)
        return self

    def _refuse_no_pairs(self, has_pairs, where):
        """Raise ValueError if there is nothing to be ranked."""
        if not has_pairs:
            raise ValueError(f"y has no two different values{where}: there is no pair to put in order.")

    def decision_function(self, X: RowsOrBlocks) -> Floats:
        """Return the score of each row (n_samples,)."""
        return self._scores(X).ravel()

    def predict(self, X: RowsOrBlocks) -> Floats:
        """Return the score of each row; only the order of the scores has a meaning."""
        return self.decision_function(X)

    def score(self, X: RowsOrBlocks, y: ArrayLike | None = None, qid: ArrayLike | None = None) -> float:
        """Return the mean over queries of the fraction of pairs in the right order; pairs of equal scores count half.

        Queries without a pair, whose rows all have the same target, are left out. NaN if no query has a pair. Of row
        blocks, y=None and qid=None take the labels and the queries of the file.
        """
        y, qid = targets_of(X, y), getattr(X, "qid", None) if qid is None else qid
        refuse_missing(y, "y")
        y, scores = finite_targets(y), self.decision_function(X)
        check_consistent_length(scores, y)
        fractions = concordance(scores, y, queries(qid, len(scores)))
        return float(fractions.mean()) if len(fractions) else float("nan")


class OrdinalSVC(ScoresRowBlocks, ClassifierMixin, PlaneModel):
    """Ordinal regression: classification into ordered classes by thresholds of one score.

    The weights minimise a mean loss over all pairs of rows of different classes. The thresholds then minimise the sum
    of |predicted rank − rank| over the training rows.

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
        Whether to start from the weights of the last fit, if there are as many features.
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
    max_memory : int or str, default=None
        For row blocks: memory that the process may use in all, in bytes or as text such as "3GB". Rows that fit are
        loaded, others are read from disk in every pass. None is half of what is free.
    checkpoint : str or path, default=None
        File in which the state of the solver is kept now and then. The same call goes on from there if the process
        was killed; the file is removed when the fit has converged.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Weights of the features.
    intercept_ : float
        0.0; `thresholds_` take its place.
    thresholds_ : ndarray of shape (n_classes − 1,)
        Ascending. The class of a row is `classes_[k]`, where k is the number of thresholds below its score.
    classes_ : ndarray
        The labels in ascending order.
    n_iter_ : int
        Number of cutting planes.
    gap_ : float
        The relative duality gap: the objective is proved to be at most this fraction above the optimum.
    objective_ : float
        The objective at the model.
    history_ : structured ndarray
        Each measurement: iteration, seconds, passes, primal, dual, gap.
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
    >>> import numpy as np
    >>> from widemargin import OrdinalSVC
    >>> X = np.random.default_rng(0).standard_normal((90, 2))
    >>> y = np.digitize(X @ [1.0, 2.0], [-1.0, 1.0])
    >>> model = OrdinalSVC(C=100.0).fit(X, y)
    >>> model.score(X, y) > 0.95
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

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True  # one score cannot separate classes without an order
        return tags

    def fit(self, X: RowsOrBlocks, y: ArrayLike | None = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array-like, sparse matrix or RowBlocks of shape (n_samples, n_features)
            float32 and float64 are used as they are.
        y : array-like of shape (n_samples,)
            Two or more different labels; the order of the classes is the sorted order of the labels.
            Of row blocks, None takes the labels of the file.

        Returns
        -------
        self
        """
        X, rank = self._check_classes(X, y)
        self._fit_order(X, rank)
        return self

    def _check_classes(self, X, y):
        """Return X and the rank of each row, 0 .. n_classes − 1. Sets `classes_`."""
        X, y = self._check_rows(X, y)
        self.classes_, rank = encode_labels(y)
        return X, rank

    def _fit_order(self, X, rank):
        """Set the weights and thresholds."""
        coef, _ = self._minimise(X, pair_risk(rank, query_ends(None, len(rank)), self.C, self.n_jobs))
        self.coef_, self.intercept_ = coef, 0.0
        self.thresholds_ = thresholds(self._scores_of_checked(X).ravel(), rank, len(self.classes_))

    def position(self, X: RowsOrBlocks) -> Floats:
        """Return the score <w, x> of each row, (n_samples,), which the thresholds are compared with."""
        return self._scores(X).ravel()

    def decision_function(self, X: RowsOrBlocks) -> Floats:
        """Return the distance of each score to the nearest bound of the interval of each class, (n_samples, n_classes).

        It is negative outside the interval. With two classes, it is the score minus the threshold, (n_samples,).
        """
        position = self.position(X)
        if len(self.classes_) == 2:
            return position - self.thresholds_[0]
        edges = np.concatenate([[-np.inf], self.thresholds_, [np.inf]])
        return np.minimum(position[:, np.newaxis] - edges[:-1], edges[1:] - position[:, np.newaxis])

    def predict(self, X: RowsOrBlocks) -> NDArray[Any]:
        """Return the class of each row."""
        position = self.position(X)
        return self.classes_[np.searchsorted(self.thresholds_, position, side="left")]


class ROCAreaSVC(BinaryPlaneModel):
    """Linear classification of two classes that maximises the area under the ROC curve.

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
        Whether to start from the weights of the last fit, if there are as many features.
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
    max_memory : int or str, default=None
        For row blocks: memory that the process may use in all, in bytes or as text such as "3GB". Rows that fit are
        loaded, others are read from disk in every pass. None is half of what is free.
    checkpoint : str or path, default=None
        File in which the state of the solver is kept now and then. The same call goes on from there if the process
        was killed; the file is removed when the fit has converged.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features)
        Weights of the features.
    intercept_ : ndarray of shape (1,)
        The intercept, which makes the fewest errors on the training rows.
    classes_ : ndarray
        The two labels; rows of the second should have larger scores.
    n_iter_ : int
        Number of cutting planes.
    gap_ : float
        The relative duality gap: the objective is proved to be at most this fraction above the optimum.
    objective_ : float
        The objective at the model.
    history_ : structured ndarray
        Each measurement: iteration, seconds, passes, primal, dual, gap.
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

    def fit(self, X: RowsOrBlocks, y: ArrayLike | None = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array-like, sparse matrix or RowBlocks of shape (n_samples, n_features)
            float32 and float64 are used as they are.
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
        coef, _ = self._minimise(X, pair_risk(label, query_ends(None, len(label)), self.C, self.n_jobs))
        self.coef_, self.intercept_ = coef[np.newaxis], np.zeros(1)
        self.intercept_ = -thresholds(self._scores_of_checked(X).ravel(), label, 2)
        return self
