"""`grid_search`: cross-validated scores over a grid of parameters.

Points that differ in C alone form a path, which is fitted by ascending C; each fit is a warm start from the previous
one. The rows are split into folds once. For a kernel machine, the kernel matrix of all rows is computed once for all
folds and all C if it fits in memory (`fold_path`). The folds of a linear model are fitted together (`c_path`). Paths
are fitted in parallel threads.
"""

import json
import threading
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from inspect import Parameter, signature
from itertools import product
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import issparse
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.metrics import check_scoring
from sklearn.utils import assert_all_finite

from widemargin._runtime.argument_types import FilePath, Folds, Rows, Scoring
from widemargin._runtime.threads import n_threads, run, single_threaded_blas
from widemargin._runtime.warning import warn_caller
from widemargin.data.blocks.row_blocks import RowBlocks
from widemargin.data.structure import check_structure
from widemargin.errors import ConvergenceWarning, InfeasibleNuError
from widemargin.models.cutting_plane.ranking import RankSVM
from widemargin.models.kernel.nu_svc import NuSVC
from widemargin.models.kernel.svc import SVC
from widemargin.models.linear import LinearSVC, LinearSVR
from widemargin.models.solved_model import SolvedModel
from widemargin.selection.c_path import c_path
from widemargin.selection.fold_path import FoldPath, Memory, SharedData, shared_dtype
from widemargin.selection.grid_result import GridResult
from widemargin.selection.held_out import split_rows
from widemargin.selection.live_table import GridReport
from widemargin.selection.parameter_ranges import checked_grids, default_grid, grown, refined
from widemargin.selection.results_file import GridFile, encoded, fingerprint, result_of
from widemargin.solvers.contract import Status

_BYTES_PER_MEGABYTE = 1 << 20
_PARAMETERS_WITHOUT_EFFECT = ("n_jobs", "verbose", "callbacks", "cache_size", "warm_start")  # on the scores
_SCORED_BY_ACCURACY = (SVC, NuSVC)
_PARAMETERS_OF_C_PATHS = {"C", "epsilon", "loss", "class_weight", "fit_intercept", "intercept_scaling"}


def grid_search(
    estimator: Any,
    X: Rows,
    y: ArrayLike,
    grid: Mapping[str, Iterable[Any]] | Sequence[Mapping[str, Iterable[Any]]] | None = None,
    *,
    cv: Folds = 5,
    scoring: Scoring | None = None,
    extend: int = 0,
    refine: int = 0,
    refit: bool = True,
    n_jobs: int | None = None,
    memory: float = 2000.0,
    results: FilePath | None = None,
    resume: bool = False,
    fit_parameters: Mapping[str, ArrayLike] | None = None,
    groups: ArrayLike | None = None,
    verbose: int = 0,
    callback: Callable[[GridResult], object] | None = None,
) -> GridResult:
    """Score an estimator by cross-validation at each point of a grid, and fit it with the best parameters.

    Parameters
    ----------
    estimator : estimator
        SVC, NuSVC, SVR, NuSVR, LinearSVC, LinearSVR or any other; it is not changed. Parameters that are not in the
        grid keep the values that they have in it.
    X : array-like or sparse matrix of shape (n_samples, n_features)
        The rows; for a precomputed kernel, the kernel matrix.
    y : array-like of shape (n_samples,)
        Class labels or targets.
    grid : dict of name to values, list of such dicts, or None, default=None
        The points are all combinations of the values of a dict, as in scikit-learn's GridSearchCV; a list has the
        points of all its dicts. Where a dict of the list lacks a name that another one has, the value of the estimator
        is used. None takes LIBSVM's ranges: C = 2^-5, 2^-3, .. 2^15, or nu = 0.1, .. 0.8 if there is no C;
        gamma = 2^3, 2^1, .. 2^-15 if the kernel has it; and epsilon = 2^-8, 2^-5, 2^-2 for regression with epsilon.
    cv : int, splitter or iterable, default=5
        Folds as in scikit-learn. The rows are split once, for all points.
    scoring : str, callable or None, default=None
        As in scikit-learn; None is the estimator's own score.
    extend : int, default=0
        Largest number of times that the grid is extended: while the best C, gamma or epsilon is the smallest or largest
        value of its geometric progression, the next value beyond it is added.
    refine : int, default=0
        Number of refinements: each adds two values on either side of the best one, at half the previous distance, for
        each parameter whose values are in geometric progression.
    refit : bool, default=True
        Whether to fit a model to all rows with the best parameters.
    n_jobs : int or None, default=None
        Threads; None and −1 are all cores, but None is one within workers of joblib or Dask.
    memory : float, default=2000
        Megabytes available for kernel matrices that are shared by all folds; if one needs more, each fit computes its
        own kernel values.
    results : path or None, default=None
        A file to which each score is appended as soon as it is known; see `read_grid`.
    resume : bool, default=False
        Whether to continue the search of an existing results file. Scores in the file are not computed again, and the
        others are the same as in a search that was not interrupted. A path of a linear model of which some scores are
        missing is fitted again from its smallest C.
    fit_parameters : dict of name to array, default=None
        Further arguments of `fit` with a value for each row, such as {"sample_weight": weights} or {"qid": queries}.
    groups : array-like, default=None
        Groups of the rows, for splitters that need them.
    verbose : int, default=0
        Above 0, show a table of the scores and a progress bar on a terminal or in a notebook, and lines elsewhere.
    callback : callable or None, default=None
        Called with the GridResult so far whenever all folds of a point have been scored.

    Returns
    -------
    GridResult

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from widemargin import SVC, grid_search
    >>> X, y = load_iris(return_X_y=True)
    >>> result = grid_search(SVC(), X, y, {"C": [1, 10, 100], "gamma": [0.01, 0.1, 1.0]})
    >>> result.best_params, round(result.best_score, 2)
    ({'C': 1, 'gamma': 0.1}, 0.98)
    """
    for name, value in {"extend": extend, "refine": refine, "memory": memory}.items():
        if not value >= 0:
            raise ValueError(f"{name} must be 0 or larger, got {value}.")
    grids = [default_grid(estimator)] if grid is None else checked_grids(estimator, grid)
    if results is not None:
        _check_storable(grids)
    search = _Search(
        estimator, X, y, cv=cv, scoring=scoring, groups=groups, fit_parameters=fit_parameters or {}, n_jobs=n_jobs,
        memory=memory, verbose=verbose, callback=callback,
    )  # fmt: skip
    search.open(tuple(grids[0]), results, resume)
    with search.report, warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # counted, and reported once at the end
        search.run(_points(grids))
        for _ in range(extend):
            larger = _extended(grids, search.result())
            if larger is None:
                break
            grids = larger
            search.run(_points(grids))
        for _ in range(refine):
            best = search.result().best_params
            grids = [refined(grids[_grid_of(best, grids)], best)]
            search.run(_points(grids))
    result = search.close()
    return replace(result, best_model=search.fitted(result.best_params)) if refit else result


def _checked_parameters(estimator, fit_parameters, n_rows):
    """Return the further arguments of `fit` as arrays, which have a value for each row."""
    arrays = {name: np.asarray(values) for name, values in fit_parameters.items()}
    known = signature(estimator.fit).parameters
    takes_any = any(each.kind is Parameter.VAR_KEYWORD for each in known.values())
    for name, values in arrays.items():
        if name not in known and not takes_any:
            has = ", ".join(each for each in known if each not in ("X", "y")) or "no other"
            raise ValueError(
                f"fit_parameters: {type(estimator).__name__}.fit has no {name!r}; besides X and y it has {has}."
            )
        if values.shape[:1] != (n_rows,):
            shape = f"got shape {values.shape}"
            raise ValueError(f"fit_parameters: {name!r} must have a value for each of {n_rows} rows, {shape}.")
    return arrays


def _check_storable(grids):
    """Raise a ValueError if a results file cannot store some value of the grids."""
    for name in grids[0]:
        for value in (value for grid in grids for value in grid[name]):
            try:
                json.dumps(encoded({name: value}))
            except TypeError:
                raise ValueError(
                    f"results: a file has no place for {name}={value!r}, only for numbers, texts, None and dicts. "
                    "Leave results out, or make a search for each."
                ) from None


def _except_C(point):
    """Return the items of a point without C; they identify its path."""
    return tuple((name, value) for name, value in point.items() if name != "C")


def _points(grids):
    """Return all points of the grids without repetitions."""
    each = [dict(zip(grid, values, strict=True)) for grid in grids for values in product(*grid.values())]
    return list({tuple(point.items()): point for point in each}.values())


def _grid_of(point, grids):
    """Return the position of the first grid that contains this point.

    A resumed search may have its best point outside the grids that it is given, if they were extended before. Then it
    is the first grid that differs from the point in numbers only.
    """
    missing = [[value for name, value in point.items() if value not in grid[name]] for grid in grids]
    near = [k for k, values in enumerate(missing) if all(isinstance(value, Real) for value in values)]
    return missing.index([]) if [] in missing else near[0]


def _extended(grids, found):
    """Return the grids, with that of the best point extended; None if the best point is not on an edge of its grid."""
    if np.isnan(found.means).all():
        return None
    best = _grid_of(found.best_params, grids)
    larger = grown(grids[best], found.points, found.means)
    return None if larger is None else [*grids[:best], larger, *grids[best + 1 :]]


@dataclass(frozen=True)
class _Path:
    """Points that differ in C alone, by ascending C, on one fold; `fold` is None if all folds are fitted together."""

    points: list[dict[str, Any]]
    fold: int | None


class _Search:
    """The data, the folds and the results of a search; `report` displays the results."""

    def __init__(
        self, estimator, X, y, *, cv, scoring, groups, fit_parameters, n_jobs, memory, verbose, callback
    ):  # fmt: skip
        self._estimator, self._X, self._y = clone(estimator), _indexable(X), np.asarray(y)
        self._parameters = _checked_parameters(estimator, fit_parameters, self._X.shape[0])
        for name, values in {"y": self._y, **self._parameters}.items():
            if values.dtype.kind == "f":
                assert_all_finite(values, input_name=name)
        self._scorer = check_scoring(estimator, scoring=scoring)
        self._given_scoring = scoring
        self._score_name = _name_of(estimator, scoring)
        self.report, self._callback = GridReport(verbose, self._score_name), callback
        self._folds = split_rows(cv, estimator, self._X, self._y, groups)
        self._n_jobs, self._memory, self._memory_of_folds = n_jobs, memory, Memory()
        self._stop, self._lock, self._shared = threading.Event(), threading.Lock(), {}
        self._n_not_converged, self._records, self._file = 0, {}, None

    def open(self, names, results, resume):
        """Open the results file, if there is one, and read the scores that it contains."""
        self._names = names
        if results is None:
            return
        fixed = {name: _in_text(value) for name, value in self._estimator.get_params().items() if name not in names}
        header = {
            "names": list(names),
            "scoring": self._score_name,
            "n_folds": len(self._folds),
            "estimator": type(self._estimator).__name__,
            "parameters": {name: value for name, value in fixed.items() if name not in _PARAMETERS_WITHOUT_EFFECT},
            "data": fingerprint(self._X, self._y, self._folds, self._parameters),
        }
        self._file = GridFile(results, header, resume)
        self._records = dict(self._file.records)
        if self._file.was_cut:
            message = f"{results} is cut inside its first line and holds no results: the search begins anew."
            warn_caller(message)

    def run(self, points):
        """Compute the scores of all points that have none yet."""
        paths = self._paths(points)
        self._n_users = Counter(_except_C(path.points[0]) for path in paths)
        n_missing = sum(self._is_missing(point, fold) for point in points for fold in range(len(self._folds)))
        self.report.begin(self.result(), points, n_missing)
        with single_threaded_blas():
            run(self._fit_path, [(path,) for path in paths], self._n_jobs, self._stop)
        if self._stop.is_set():
            raise KeyboardInterrupt

    def _paths(self, points):
        """Return the paths on which scores are missing."""
        chains = {}
        for point in points:
            chains.setdefault(_except_C(point), []).append(point)
        folds = [None] if self._fits_folds_together else range(len(self._folds))
        ordered = [sorted(chain, key=lambda point: point.get("C", 0.0)) for chain in chains.values()]
        paths = [_Path(chain, fold) for chain in ordered for fold in folds]
        return [path for path in paths if self._is_incomplete(path)]

    def _is_incomplete(self, path):
        folds = range(len(self._folds)) if path.fold is None else [path.fold]
        return any(self._is_missing(point, fold) for point in path.points for fold in folds)

    def _is_missing(self, point, fold):
        return (tuple(point.items()), fold) not in self._records

    @property
    def _fits_folds_together(self):
        """Whether the estimator is a linear model for which `c_path` can fit all folds together."""
        model = self._estimator
        suits = type(model) in (LinearSVC, LinearSVR) and model.stopping == "gap"
        suits = suits and set(self._names) <= _PARAMETERS_OF_C_PATHS
        return suits and getattr(model, "multi_class", "ovr") == "ovr" and set(self._parameters) <= {"sample_weight"}

    def _fit_path(self, path):
        """Compute the missing scores of a path; an exception also stops the paths in other threads."""
        if self._stop.is_set():
            return
        try:
            (self._fit_all_folds if path.fold is None else self._fit_one_fold)(path)
        except BaseException:
            self._stop.set()
            raise

    def _fit_one_fold(self, path):
        """Fit the models of a path on one fold."""
        done = [point for point in path.points if not self._is_missing(point, path.fold)]
        missing = [point for point in path.points if self._is_missing(point, path.fold)]
        fold = FoldPath(
            self._shared_data(path), self._folds[path.fold], self._y, self._parameters, self._score, self._stop.is_set,
            memory=self._memory_of_folds, certify=callable(self._given_scoring),
        )  # fmt: skip
        if done and self._file is not None:
            fold.state = self._file.state(done[-1], path.fold)
        for point in missing:
            started = time.perf_counter()
            score = self._score_or_nan(fold, point)
            if self._stop.is_set() or fold.interrupted:
                self._stop.set()
                return
            with self._lock:
                self._n_not_converged += fold.fell_short
            self._record(point, path.fold, score, time.perf_counter() - started, fold.state if self._file else ())
        fold.release()
        self._release_shared_data(path)

    def _score(self, model, X, y, rows):
        """Return the score of a model on rows with these numbers; the own score of a RankSVM needs their queries."""
        if self._given_scoring is None and type(model) in _SCORED_BY_ACCURACY:
            return np.mean(model.predict(X) == y)  # as `score`, whose checks take longer
        needs_queries = self._given_scoring is None and isinstance(model, RankSVM) and "qid" in self._parameters
        return self._scorer(model, X, y, **({"qid": self._parameters["qid"][rows]} if needs_queries else {}))

    def _score_or_nan(self, fold, point):
        """Return the score of a point on a fold; NaN if its nu is infeasible for the classes of the fold."""
        try:
            return fold.score(point)
        except InfeasibleNuError:
            if "nu" in point:
                return float("nan")
            raise

    def _shared_data(self, path):
        """Return the SharedData of a path; it is computed by the first thread that needs it."""
        others = _except_C(path.points[0])
        with self._lock:
            lock, made = self._shared.setdefault(others, (threading.Lock(), []))
        with lock:
            if not made:
                model = clone(self._estimator).set_params(**dict(others))
                if isinstance(model, SolvedModel):
                    model.set_params(n_jobs=1, verbose=0)
                limits = n_threads(self._n_jobs), self._memory * _BYTES_PER_MEGABYTE
                dtype = shared_dtype(model, self._X.shape[0], self._largest_cost(path, model), *limits)
                made.append(SharedData(model, self._X, dtype, self._memory_of_folds))
            return made[0]

    def _largest_cost(self, path, model):
        """Return the largest C of a path times the largest weight of a row; 1 if the model has no C.

        Pairs of several classes count as if C were 1: their copies of the kernel matrix would take twice the memory.
        """
        if is_classifier(model) and len(np.unique(self._y)) > 2:
            return 1.0
        largest_C = float(path.points[-1].get("C", getattr(model, "C", 1.0)))
        return largest_C * float(np.max(self._parameters.get("sample_weight", 1.0)))

    def _release_shared_data(self, path):
        """Delete the SharedData of a path after its last fold."""
        others = _except_C(path.points[0])
        with self._lock:
            self._n_users[others] -= 1
            if self._n_users[others] == 0:
                _, (shared,) = self._shared.pop(others)
                shared.release()

    def _fit_all_folds(self, path):
        """Fit the linear models of a path on all folds together."""
        others = dict(_except_C(path.points[0]))
        model = clone(self._estimator).set_params(**others, n_jobs=self._n_jobs, verbose=0)
        points, started = {point.get("C", model.C): point for point in path.points}, [time.perf_counter()]

        def record(C, scores):
            now = time.perf_counter()
            for fold, score in enumerate(scores):
                if self._is_missing(points[C], fold):
                    self._record(points[C], fold, score, (now - started[0]) / len(scores))
            started[0] = now

        fitted = c_path(
            model, self._X, self._y, list(points), cv=self._folds, scoring=self._given_scoring, each=record,
            **self._parameters,
        )  # fmt: skip
        self._n_not_converged += int(np.sum(fitted.statuses != Status.CONVERGED.value))
        if (fitted.statuses == Status.INTERRUPTED.value).any():
            self._stop.set()

    def _record(self, point, fold, score, seconds, state=()):
        """Store a score, append it to the results file if there is one, and report it."""
        if self._file is not None:
            score, seconds = self._file.add(point, fold, score, seconds, state)
        with self._lock:
            self._records[tuple(point.items()), fold] = (score, seconds)
            is_complete = not any(self._is_missing(point, k) for k in range(len(self._folds)))
            is_needed = is_complete and (self.report.is_shown or self._callback is not None)
            result = self.result() if is_needed else None
            self.report.done(point, result)
            if self._callback is not None and is_complete:
                self._callback(result)

    def result(self):
        """Return the GridResult so far."""
        return result_of(self._names, len(self._folds), self._score_name, dict(self._records))

    def close(self):
        """Close the results file, warn if fits did not reach their tolerance, and return the GridResult."""
        if self._file is not None:
            self._file.finish()
        result = self.result()
        if np.isnan(result.means).all():
            why = "every nu is too large for the classes" if "nu" in self._names else "some fold has nothing to score"
            raise ValueError(f"no point of the grid has a score: {why}.")
        if self._n_not_converged:
            warn_caller(
                f"{self._n_not_converged} of {result.scores.size} fits stopped short of the tolerance: "
                "scale the features, lower the largest C, or raise max_iter or max_seconds.",
                ConvergenceWarning,
            )
        return result

    def fitted(self, best):
        """Return the estimator with the best parameters, fitted to all rows."""
        model = clone(self._estimator).set_params(**best)
        if isinstance(model, SolvedModel):
            model.set_params(n_jobs=self._n_jobs)
        return model.fit(self._X, self._y, **self._parameters)


def _indexable(X):
    """Return X in a form that can be indexed by row numbers: CSR if it is sparse, otherwise an array."""
    if isinstance(X, RowBlocks):
        raise TypeError(
            "grid_search needs all rows in memory: pass X.to_memory() and X.labels, or a part such as X[:50000]. "
            "c_path chooses C of a linear machine for row blocks."
        )
    if issparse(X):
        check_structure(X)
        return X.tocsr()
    return X if isinstance(X, np.ndarray) else np.asarray(X)


def _in_text(value):
    """Return the value of a parameter as a text that is the same in every process."""
    return value.__qualname__ if callable(value) and hasattr(value, "__qualname__") else repr(value)


def _name_of(estimator, scoring):
    """Return the name of the score."""
    if scoring is not None:
        return scoring if isinstance(scoring, str) else getattr(scoring, "__name__", "score")
    if isinstance(estimator, RankSVM):
        return "concordance"
    return "accuracy" if is_classifier(estimator) else "r2" if is_regressor(estimator) else "score"
