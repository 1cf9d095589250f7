"""`grid_search`: cross-validated scores over a grid of parameters, with all work shared that can be.

Points that differ in C alone form a path, which is fitted by ascending C, each fit a warm start from the previous one.
Folds are split once. For a kernel machine the kernel matrix of all rows is computed once for all folds and all C if it
fits in memory (`fold_path`); the folds of a linear model are fitted together (`c_path`). Paths run in parallel threads.
"""

import json
import threading
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.metrics import check_scoring
from sklearn.model_selection import check_cv
from sklearn.utils import assert_all_finite

from widemargin._runtime.argument_types import FilePath, Folds, Rows, Scoring
from widemargin._runtime.threads import n_threads, run, single_threaded_blas
from widemargin._runtime.warning import warn_caller
from widemargin.errors import ConvergenceWarning, InfeasibleNuError
from widemargin.models.base import SolvedModel
from widemargin.models.cutting_plane.ranking import RankSVM
from widemargin.models.linear import LinearSVC, LinearSVR
from widemargin.selection.c_path import c_path
from widemargin.selection.fold_path import FoldPath, SharedData, bytes_to_share, rows_of
from widemargin.selection.grid_result import GridResult
from widemargin.selection.live_table import GridReport
from widemargin.selection.parameter_ranges import checked_grids, default_grid, grown, refined
from widemargin.selection.results_file import GridFile, encoded, fingerprint, result_of
from widemargin.solvers.contract import Status

_MEGABYTE = 1 << 20


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
        SVC, NuSVC, SVR, NuSVR, LinearSVC, LinearSVR or another one; its parameters that are not in the grid are used.
    X : array-like or sparse matrix of shape (n_samples, n_features)
        Of a precomputed kernel, the matrix.
    y : array-like of shape (n_samples,)
    grid : dict of name to values, list of such dicts, or None, default=None
        The points are all combinations of the values, as in scikit-learn's GridSearchCV; of a list, those of each dict.
        A name that a dict of the list lacks has the estimator's own value there. None: LIBSVM's ranges,
        C = 2^-5, 2^-3, .. 2^15 and, where the kernel has it, gamma = 2^3, 2^1, .. 2^-15; for SVR
        epsilon = 2^-8, 2^-5, 2^-2 besides; nu = 0.1, .. 0.8 in the place of C where there is none.
    cv : int, splitter or iterable, default=5
        Folds as in scikit-learn; split once.
    scoring : str, callable or None, default=None
        As in scikit-learn; None is the estimator's own score.
    extend : int, default=0
        Rounds of growing: while the best point has the smallest or largest value of C, gamma or epsilon that was tried,
        the next value of their geometric progression is tried as well, at most this many times.
    refine : int, default=0
        Rounds of looking closer: two more values to either side of the best, at half the distance, for each parameter
        whose values are in geometric progression.
    refit : bool, default=True
        Whether to fit a model to all rows with the best parameters.
    n_jobs : int or None, default=None
        Threads; −1 for all cores.
    memory : float, default=2000
        Megabytes that shared kernel matrices may take; above, each model computes its own.
    results : path or None, default=None
        A file to which each score is appended as it comes; see `read_grid`.
    resume : bool, default=False
        Go on with the file if it is there: what it holds is not computed again, and what follows comes out as if the
        search had not been interrupted. Only a linear path is walked again from its smallest C if a part is missing.
    fit_parameters : dict of name to array, default=None
        A value for each row, such as {"sample_weight": weights} or {"qid": queries}.
    groups : array-like, default=None
        For splitters that need them.
    verbose : int, default=0
        Above 0: a live table and a progress bar, on a terminal or in a notebook; lines elsewhere.
    callback : callable or None, default=None
        Called with the GridResult so far after each point that is done.

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
    grids = [default_grid(estimator)] if grid is None else checked_grids(estimator, grid)
    if results is not None:
        _check_place(grids)
    search = _Search(estimator, X, y, cv, scoring, groups, fit_parameters or {}, n_jobs, memory)
    search.open(tuple(grids[0]), results, resume)
    with GridReport(verbose, search.scoring) as report, warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # said once, at the end
        search.run(_points(grids), report, callback)
        for _ in range(extend):
            larger = _extended(grids, search.result())
            if larger is None:
                break
            grids = larger
            search.run(_points(grids), report, callback)
        for _ in range(refine):
            best = search.result().best_params
            grids = [refined(grids[_home_of(best, grids)], best)]
            search.run(_points(grids), report, callback)
    result = search.close()
    return replace(result, best_model=search.fitted(result.best_params)) if refit else result


def _check_place(grids):
    """Refuse values that a results file has no place for."""
    for name in grids[0]:
        for value in (value for grid in grids for value in grid[name]):
            try:
                json.dumps(encoded({name: value}))
            except TypeError:
                raise ValueError(
                    f"results: a file has no place for {name}={value!r}, only for numbers, texts, None and dicts. "
                    "Leave results out, or make a search for each."
                ) from None


def _apart_from_C(point):
    return tuple((name, value) for name, value in point.items() if name != "C")


def _points(grids):
    """Return all points of the grids, each once."""
    each = [dict(zip(grid, values, strict=True)) for grid in grids for values in product(*grid.values())]
    return list({tuple(point.items()): point for point in each}.values())


def _home_of(point, grids):
    """Return the position of the first grid that has this point, or has it up to numbers beyond its edges.

    A search that is resumed may have found its best point beyond the grids that it is given.
    """
    missing = [[value for name, value in point.items() if value not in grid[name]] for grid in grids]
    near = [k for k, values in enumerate(missing) if all(isinstance(value, Real) for value in values)]
    return missing.index([]) if [] in missing else near[0]


def _extended(grids, found):
    """Return the grids with values beyond the edge of the one that has the best point; None if it is on no edge."""
    if np.isnan(found.means).all():
        return None
    home = _home_of(found.best_params, grids)
    larger = grown(grids[home], found.points, found.means)
    return None if larger is None else [*grids[:home], larger, *grids[home + 1 :]]


@dataclass(frozen=True)
class _Walk:
    """Points that differ in C alone, C ascending; of one fold, or of all (fold None) if they go along together."""

    points: list[dict[str, Any]]
    fold: int | None


class _Search:
    """The data, the folds and the results of a search."""

    def __init__(self, estimator, X, y, cv, scoring, groups, fit_parameters, n_jobs, memory):
        self._estimator, self._X, self._y = clone(estimator), rows_of(X), np.asarray(y)
        self._parameters = {name: np.asarray(values) for name, values in fit_parameters.items()}
        for name, values in {"y": self._y, **self._parameters}.items():
            if values.dtype.kind == "f":
                assert_all_finite(values, input_name=name)
        self._scorer = check_scoring(estimator, scoring=scoring)
        self._given_scoring = scoring
        self.scoring = _name_of(estimator, scoring)
        self._folds = list(check_cv(cv, self._y, classifier=is_classifier(estimator)).split(self._X, self._y, groups))
        self._n_jobs, self._memory = n_jobs, memory
        self._stop, self._lock, self._shared = threading.Event(), threading.Lock(), {}
        self._n_short, self._records, self._file = 0, {}, None

    def open(self, names, results, resume):
        """Prepare to record; read what is done already."""
        self._names = names
        if results is None:
            return
        fixed = {name: _in_text(value) for name, value in self._estimator.get_params().items() if name not in names}
        header = {
            "names": list(names),
            "scoring": self.scoring,
            "n_folds": len(self._folds),
            "estimator": type(self._estimator).__name__,
            "parameters": {name: value for name, value in fixed.items() if name not in _OF_NO_CONSEQUENCE},
            "data": fingerprint(self._X, self._y, self._folds, self._parameters),
        }
        self._file = GridFile(results, header, resume)
        self._records = dict(self._file.records)
        if self._file.was_cut:
            message = f"{results} is cut inside its first line and holds no results: the search begins anew."
            warn_caller(message)

    def run(self, points, report, callback):
        """Score all points that are not done yet."""
        walks = self._walks(points)
        self._users = Counter(_apart_from_C(walk.points[0]) for walk in walks)
        left = sum(self._is_missing(point, fold) for point in points for fold in range(len(self._folds)))
        report.begin(self.result(), points, left)
        with single_threaded_blas():
            run(self._go, [(walk, report, callback) for walk in walks], self._n_jobs, self._stop)
        if self._stop.is_set():
            raise KeyboardInterrupt

    def _walks(self, points):
        chains = {}
        for point in points:
            chains.setdefault(_apart_from_C(point), []).append(point)
        folds = [None] if self._along_together else range(len(self._folds))
        ordered = [sorted(chain, key=lambda point: point.get("C", 0.0)) for chain in chains.values()]
        walks = [_Walk(chain, fold) for chain in ordered for fold in folds]
        return [walk for walk in walks if any(map(self._is_missing_in(walk), walk.points))]

    def _is_missing_in(self, walk):
        folds = range(len(self._folds)) if walk.fold is None else [walk.fold]
        return lambda point: any(self._is_missing(point, fold) for fold in folds)

    def _is_missing(self, point, fold):
        return (tuple(point.items()), fold) not in self._records

    @property
    def _along_together(self):
        """Whether it is a linear model whose folds go along C together."""
        model = self._estimator
        suits = type(model) in (LinearSVC, LinearSVR) and model.stopping == "gap" and set(self._names) <= _OF_PATHS
        return suits and getattr(model, "multi_class", "ovr") == "ovr" and set(self._parameters) <= {"sample_weight"}

    def _go(self, walk, report, callback):
        """Walk along C; whatever goes wrong here ends the other walks, too."""
        if self._stop.is_set():
            return
        try:
            (self._go_together if walk.fold is None else self._go_alone)(walk, report, callback)
        except BaseException:
            self._stop.set()
            raise

    def _go_alone(self, walk, report, callback):
        """Walk along C on one fold."""
        done = [point for point in walk.points if not self._is_missing(point, walk.fold)]
        left = [point for point in walk.points if self._is_missing(point, walk.fold)]
        train_and_test = self._folds[walk.fold]
        shared = self._shared_data(walk)
        fold = FoldPath(shared, train_and_test, self._y, self._parameters, self._judge, self._stop.is_set)
        if done and self._file is not None:
            fold.state = self._file.state(done[-1], walk.fold)
        for point in left:
            begun = time.perf_counter()
            score = self._score(fold, point)
            if self._stop.is_set() or fold.interrupted:
                self._stop.set()
                return
            with self._lock:
                self._n_short += fold.fell_short
            self._record(point, walk.fold, score, time.perf_counter() - begun, fold.state, report, callback)
        self._leave(walk)

    def _judge(self, model, X, y, rows):
        """Return the score of a model on some rows; its own score of a ranking has to know their queries."""
        is_own = self._given_scoring is None and isinstance(model, RankSVM) and "qid" in self._parameters
        return self._scorer(model, X, y, **({"qid": self._parameters["qid"][rows]} if is_own else {}))

    def _score(self, fold, point):
        try:
            return fold.score(point)
        except InfeasibleNuError:
            if "nu" in point:  # the classes of this fold do not allow this value of the grid
                return float("nan")
            raise

    def _shared_data(self, walk):
        """Return the SharedData of these points; the first thread that needs it computes it."""
        others = _apart_from_C(walk.points[0])
        with self._lock:
            lock, made = self._shared.setdefault(others, (threading.Lock(), []))
        with lock:
            if not made:
                model = clone(self._estimator).set_params(**dict(others))
                if isinstance(model, SolvedModel):
                    model.set_params(n_jobs=1, verbose=0)
                size = bytes_to_share(model, self._X.shape[0], n_threads(self._n_jobs))
                made.append(SharedData(model, self._X, size <= self._memory * _MEGABYTE))
            return made[0]

    def _leave(self, walk):
        """Free the SharedData of these points after their last fold."""
        others = _apart_from_C(walk.points[0])
        with self._lock:
            self._users[others] -= 1
            if self._users[others] == 0:
                del self._shared[others]

    def _go_together(self, walk, report, callback):
        """Walk along C with all folds of a linear model."""
        others = dict(_apart_from_C(walk.points[0]))
        model = clone(self._estimator).set_params(**others, n_jobs=self._n_jobs, verbose=0)
        points, begun = {point.get("C", model.C): point for point in walk.points}, [time.perf_counter()]

        def told(C, scores):
            now = time.perf_counter()
            point = points[C]
            for fold, score in enumerate(scores):
                if self._is_missing(point, fold):
                    self._record(point, fold, score, (now - begun[0]) / len(scores), (), report, callback)
            begun[0] = now

        path = c_path(
            model, self._X, self._y, list(points), cv=self._folds, scoring=self._given_scoring, each=told,
            **self._parameters,
        )  # fmt: skip
        self._n_short += int(np.sum(path.statuses != Status.CONVERGED.value))
        if (path.statuses == Status.INTERRUPTED.value).any():
            self._stop.set()

    def _record(self, point, fold, score, seconds, state, report, callback):
        """Store a score, append it to the results file if there is one, and report it."""
        if self._file is not None:
            score, seconds = self._file.add(point, fold, score, seconds, state)
        with self._lock:
            self._records[tuple(point.items()), fold] = (score, seconds)
            complete = not any(self._is_missing(point, k) for k in range(len(self._folds)))
            result = self.result() if complete and (report.is_shown or callback is not None) else None
            report.done(point, result)
            if callback is not None and complete:
                callback(result)

    def result(self):
        """Return the GridResult so far."""
        return result_of(self._names, len(self._folds), self.scoring, dict(self._records))

    def close(self):
        """Tidy up; return the result, and say if models fell short."""
        if self._file is not None:
            self._file.finish()
        result = self.result()
        if np.isnan(result.means).all():
            why = "every nu is too large for the classes" if "nu" in self._names else "some fold has nothing to score"
            raise ValueError(f"no point of the grid has a score: {why}.")
        if self._n_short:
            warn_caller(
                f"{self._n_short} of {result.scores.size} fits stopped short of the tolerance: "
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


_OF_NO_CONSEQUENCE = ("n_jobs", "verbose", "callbacks", "cache_size", "warm_start")
_OF_PATHS = {"C", "epsilon", "loss", "class_weight", "fit_intercept", "intercept_scaling"}


def _in_text(value):
    """Return a parameter as a text that is the same in every process."""
    return value.__qualname__ if callable(value) and hasattr(value, "__qualname__") else repr(value)


def _name_of(estimator, scoring):
    """Return what the scores are called."""
    if scoring is not None:
        return scoring if isinstance(scoring, str) else getattr(scoring, "__name__", "score")
    if isinstance(estimator, RankSVM):
        return "concordance"
    return "accuracy" if is_classifier(estimator) else "r2" if is_regressor(estimator) else "score"
