"""`RankSVM`: a model whose scores order the rows of a query as their targets do.

    minimise ½|w|² + C · mean over pairs (i, j), y_i > y_j, of   max(0, 1 − f(x_i) + f(x_j)),    f(x) = <w, x>

C multiplies a mean over pairs, as in SVM-Perf, so that a suitable C does not depend on the number of rows. The pairs of
`RankSVM` are those of rows of the same query, the pairs of `OrdinalSVC` and `ROCAreaSVC` those of any two rows. An
intercept would cancel out of every pair. A cutting plane takes O(n log n) time, whatever the number of different
targets. With a kernel, f is a function of the points of a basis, see `widemargin.models.fixed_basis`.
"""

from typing import Literal, Self

from numpy.typing import ArrayLike
from sklearn.utils.validation import check_consistent_length

from widemargin._runtime.argument_types import Floats
from widemargin.data.blocks.row_blocks import RowBlocks
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
from widemargin.models.cutting_plane.base import PlaneModel
from widemargin.models.cutting_plane.queries import queries, query_ends
from widemargin.models.inputs import finite_targets, refuse_missing
from widemargin.models.scoring import targets_of
from widemargin.models.sklearn_private import StrOptions
from widemargin.problems.query_ranking import QueryRisk
from widemargin.problems.ranking import concordance, pair_risk

_RISKS = {"pairs": pair_risk, "queries": QueryRisk}


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
    average : {"pairs", "queries"}, default="pairs"
        What C multiplies: the mean loss over all pairs, in which queries with many rows count most, or the mean over
        the queries that have pairs of the mean loss over their pairs.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Weights of the features; linear kernel only.
    basis_ : ndarray or csr of shape (n_points, n_features)
        With a basis: its points. Those that depend on the others are left out.
    basis_coef_ : ndarray of shape (1, n_points)
        With a basis: the coefficients of its points.
    intercept_ : float
        0.0, because an intercept does not change any order. With `scaling`, what centring adds to the scores.
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
    >>> import numpy as np
    >>> from widemargin import RankSVM
    >>> X = np.random.default_rng(0).standard_normal((60, 3))
    >>> relevance, query = X @ [1.0, 2.0, 0.0], np.repeat([1, 2, 3], 20)
    >>> model = RankSVM(C=100.0).fit(X, relevance, qid=query)
    >>> model.score(X, relevance, qid=query) > 0.98
    True
    """

    _parameter_constraints: dict = {**PlaneModel._parameter_constraints, "average": [StrOptions(set(_RISKS))]}

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
        average: Literal["pairs", "queries"] = "pairs",
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
        self.average = average

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags

    def fit(self, X: RowsOrBlocks, y: ArrayLike | None = None, qid: ArrayLike | None = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array-like, sparse matrix or RowBlocks of shape (n_samples, n_features)
            float32 and float64 are used as they are, and large arrays of int8 and uint8, without a kernel.
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
        risk = _RISKS[self.average](targets, ends, self.C, self.n_jobs)
        has_queries = qid is not None or (blocks is not None and blocks.layout.has_qid)
        self._refuse_no_pairs(risk.n_pairs > 0, " within any query" if has_queries else "")
        del targets  # the risk has the ranks
        self.intercept_ = self._minimise(X, risk)
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
