"""`c_path`: a linear model for each of several C, each begun where the last one ended; with folds, a score for each.

A fold is the same matrix with weight zero for the rows it holds out: nothing is copied, and where `newton` is the
solver all folds and classes take their steps together and share the passes.

The useful range of C, if none is given, begins where the first row is had right: below that C all rows lose, and the
direction of w does not change with C. It ends where the losses are all that matters, ½|w|² being at most a thousandth
of the objective, or where none is left.
"""

import time
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone, is_classifier
from sklearn.metrics import check_scoring
from sklearn.model_selection import check_cv
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import column_or_1d

from widemargin._runtime.argument_types import Floats, Folds, Rows, Scoring
from widemargin._runtime.progress import reporting
from widemargin._runtime.threads import run
from widemargin.models.base import refuse_not_finite
from widemargin.models.linear import LinearSVC, LinearSVR
from widemargin.problems.formulations import DualQP, scaled
from widemargin.solvers.auto import suits_newton_at_any_cost
from widemargin.solvers.contract import Status
from widemargin.solvers.finishing import finished, with_intercept
from widemargin.solvers.newton.active_set import is_small
from widemargin.solvers.newton.smoothed import newton_path
from widemargin.solvers.registry import LINEAR_SOLVERS, specs_of
from widemargin.solvers.spec import Start

_FACTOR = 10.0**0.5  # between the C of a range found here
_MOST = 40  # of them
_NEGLIGIBLE = 1e-3
_MEMORY = 1 << 30  # bytes of vectors over rows for which folds are solved together
_VECTORS = 16  # that each takes


@dataclass(frozen=True)
class CPath:
    """Models along a grid of C.

    Attributes
    ----------
    Cs : ndarray of shape (n_Cs,)
        Ascending.
    coefs : ndarray of shape (n_Cs, n_outputs, n_features)
        Of the models fitted to all rows; one output, or one per class if there are more than two.
    intercepts : ndarray of shape (n_Cs, n_outputs)
    gaps, objectives : ndarray of shape (n_Cs,)
        The largest relative duality gap over outputs, and the sum of their objectives.
    n_iters : ndarray of shape (n_Cs,)
        Turns of the solver on all rows; the largest number over outputs.
    statuses : ndarray of shape (n_Cs,)
        Why the solver stopped.
    solver : str
        What ran.
    scores : ndarray of shape (n_folds, n_Cs), or None without folds
        On the rows that a fold holds out.
    fold_gaps : ndarray of shape (n_folds, n_Cs), or None without folds
        The largest relative duality gap over outputs.
    histories : list of lists of ndarray
        For each C and output, how the solver came to the model fitted to all rows, as `history_` of a `LinearSVC`.
    """

    Cs: Floats
    coefs: Floats
    intercepts: Floats
    gaps: Floats
    objectives: Floats
    n_iters: NDArray[np.int64]
    statuses: NDArray[np.str_]
    solver: str
    scores: Floats | None
    fold_gaps: Floats | None
    histories: list[list[NDArray[np.void]]] = field(default_factory=list, compare=False, repr=False)

    @property
    def best(self) -> int:
        """The position of the C with the best mean score, of the smallest if there are several."""
        if self.scores is None:
            raise ValueError("a path without cv has no scores to choose by; give cv.")
        return int(np.argmax(self.scores.mean(axis=0)))


def c_path(
    estimator: LinearSVC | LinearSVR | None,
    X: Rows,
    y: ArrayLike,
    Cs: ArrayLike | None = None,
    *,
    cv: Folds | None = None,
    scoring: Scoring | None = None,
    sample_weight: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    each: Callable[[float, list[float]], object] | None = None,
) -> CPath:
    """Fit a linear model for each C of a grid, ascending, each begun where the last one ended.

    Parameters
    ----------
    estimator : LinearSVC, LinearSVR or None
        Whose parameters are used, except for C and warm_start. None: LinearSVC() if y are class labels, else
        LinearSVR().
    X : array-like or sparse matrix of shape (n_samples, n_features)
    y : array-like of shape (n_samples,)
    Cs : array-like of floats or None, default=None
        Positive; sorted here. None: the useful range, found on the way, in steps of √10.
    cv : int, splitter or iterable, default=None
        Folds as in scikit-learn. None: no scores.
    scoring : str, callable or None, default=None
        As in scikit-learn; None is accuracy, or R² for regression.
    sample_weight : array-like of shape (n_samples,), default=None
        Factor of C for each row.
    groups : array-like of shape (n_samples,), default=None
        For splitters that need them.
    each : callable(C, scores of the folds) or None, default=None
        Told of each C as it is done.

    Returns
    -------
    CPath

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> from widemargin import LinearSVC, c_path
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> path = c_path(LinearSVC(), scale(X), y, [0.01, 0.1, 1.0], cv=5)
    >>> path.coefs.shape, path.scores.shape, bool((path.gaps <= 1e-4).all())
    ((3, 1, 30), (5, 3), True)
    """
    if not (estimator is None or isinstance(estimator, LinearSVC | LinearSVR)):
        raise TypeError(
            "c_path takes the estimator first, as grid_search does: c_path(estimator, X, y, Cs), estimator being a "
            f"LinearSVC, a LinearSVR or None; got a {type(estimator).__name__}."
        )
    model = clone(_default(y) if estimator is None else estimator)
    model.set_params(C=1.0)
    if getattr(model, "multi_class", "ovr") == "crammer_singer":
        raise ValueError("c_path needs multi_class='ovr'.")
    if model.stopping != "gap":
        raise ValueError(f"c_path needs stopping='gap', got {model.stopping!r}.")
    grid = None if Cs is None else _checked(Cs)
    X_checked, target, weight = model._check(X, y, sample_weight)
    y = column_or_1d(y) if is_classifier(model) else target
    folds = _folds(model, X, y, cv, groups)
    paths = _Paths(model, X_checked, target, weight, folds, _judge(model, X, y, scoring))
    path = paths.walk(grid, each)
    model._warn(paths.solutions, X_checked.values)
    return path


def _default(y):
    return LinearSVR() if type_of_target(y).startswith("continuous") else LinearSVC()


def _checked(Cs):
    Cs = np.unique(np.asarray(Cs, dtype=np.float64))
    if Cs.ndim != 1 or len(Cs) == 0 or not np.isfinite(Cs).all() or Cs[0] <= 0.0:
        raise ValueError(f"Cs must be positive numbers, got {Cs.tolist()}.")
    return Cs


def _folds(model, X, y, cv, groups):
    """Return the (train, test) rows of each fold."""
    if cv is None:
        return []
    folds = list(check_cv(cv, y, classifier=is_classifier(model)).split(X, y, groups))
    for k, (train, test) in enumerate(folds):
        if len(test) == 0 or len(train) == 0:
            raise ValueError(f"fold {k} of cv has no rows to {'score' if len(test) == 0 else 'train'} on.")
        if is_classifier(model) and len(np.unique(np.asarray(y)[train])) < 2:
            raise ValueError(f"fold {k} of cv trains on one class only; use stratified folds, or fewer.")
    return folds


def _judge(model, X, y, scoring):
    """Return a function of a fitted model, its scores of all rows and the rows to be judged by."""
    if scoring is not None:
        scorer, rows = check_scoring(model, scoring=scoring), X if hasattr(X, "shape") else np.asarray(X)
        return lambda fitted, _, test: scorer(fitted, rows[test], np.asarray(y)[test])
    y = np.asarray(y)
    if is_classifier(model):
        return lambda fitted, scores, test: float(np.mean(_classes_of(fitted, scores[:, test]) == y[test]))
    return lambda _, scores, test: _r2(scores[0, test], y[test])


def _classes_of(model, scores):
    return model.classes_[(scores[0] > 0).astype(int) if len(scores) == 1 else scores.argmax(axis=0)]


def _r2(predicted, y):
    largest = max(1e-300, float(np.max(np.abs(y))), float(np.max(np.abs(predicted))))
    y, predicted = y / largest, predicted / largest  # squares of large targets would overflow
    spread = float(np.sum((y - y.mean()) ** 2))
    rest = float(np.sum((y - predicted) ** 2))
    return 1.0 - rest / spread if spread > 0.0 else float(rest == 0.0)


class _Paths:
    """The problems of all rows and of all folds, and their solutions for one C after the other."""

    def __init__(self, model, X, target, weight, folds, judge):
        self._model, self._X, self._folds, self._judge = model, X, folds, judge
        self._problems = []
        for train in [slice(None), *(train for train, _ in folds)]:
            mine = np.zeros_like(weight)
            mine[train] = weight[train]
            if not mine.any():
                raise ValueError("sample_weight is zero for every row that a fold trains on.")
            self._problems += [state() for state in model._problems(X, target, model._cost(target, mine))]
        self._n_outputs = len(self._problems) // (1 + len(folds))
        self.solutions = []

    def walk(self, Cs, each=None):
        """Return the CPath; with Cs None, along the useful range; tell `each` of every step."""
        grid = _useful_range(self._problems[: self._n_outputs]) if Cs is None else Cs
        steps, histories = [], []
        with (
            reporting(self._model.verbose) as report,
            self._model._announcing(report),
            report.solving(len(grid), "values of C") as solving,
        ):
            for solutions in self._solved(grid, report):
                refuse_not_finite(solutions)
                solving.finished(1)
                self.solutions += [replace(one, w=None, beta=None) for one in solutions]  # what is told of them
                steps.append(self._read(solutions))
                histories.append([one.history for one in solutions[: self._n_outputs]])
                if each is not None and not any(one.status is Status.INTERRUPTED for one in solutions):
                    each(float(grid[len(steps) - 1]), steps[-1][6])
                if Cs is None and all(_is_final(one) for one in solutions[: self._n_outputs]):
                    break
        columns = [np.array(column) for column in zip(*steps, strict=True)]
        columns[0] = self._X.spread(columns[0])
        scores, fold_gaps = (column.T if self._folds else None for column in columns[6:])
        return CPath(np.array(grid[: len(steps)]), *columns[:6], self._names(), scores, fold_gaps, histories)

    def _names(self):
        return "; ".join(sorted({solution.solver for solution in self.solutions}))

    def _solved(self, grid, report):
        """Yield, for each C, the solutions of all problems, those of all rows first."""
        model, begun = self._model, time.perf_counter()
        limit = np.inf if model.max_seconds is None else model.max_seconds
        seed = check_random_state(model.random_state).randint(np.iinfo(np.int32).max)
        common = replace(model._settings(report, len(self._problems)), max_seconds=model.max_seconds)
        settings = [replace(common, task=task, seed=(seed, task)) for task in range(len(self._problems))]
        walks, n_jobs = self._walks(grid, settings)
        for C in grid:
            parts = run(next, [(walk, None) for walk in walks], n_jobs, common.interrupt)
            if None in parts:
                return  # interrupted
            found = [solution for part in parts for solution in part]
            yield self._finished(C, found, settings)
            if common.interrupt.is_set() or time.perf_counter() - begun >= limit:
                return

    def _finished(self, C, solutions, settings):
        """Return the solutions of all rows, finished, and those of folds, which need no more than an intercept.

        Small ones are all finished: that costs next to nothing, and makes scores independent of the order of rows.
        """
        each = list(zip(self._problems, solutions, settings, strict=True))
        n = len(each) if is_small(self._problems[0]) else self._n_outputs
        tasks = [(scaled(problem, C), solution, mine) for problem, solution, mine in each[:n]]
        return run(finished, tasks, self._model.n_jobs) + [with_intercept(*one) for one in each[n:]]

    def _walks(self, grid, settings):
        """Return generators of solutions, and how many of them may run at the same time."""
        model, count = self._model, len(self._problems)
        if model.solver == "newton" or (model.solver == "auto" and suits_newton_at_any_cost(self._X)):
            group = max(1, _MEMORY // (8 * _VECTORS * max(1, self._X.n_rows)))
            groups = [slice(first, first + group) for first in range(0, count, group)]
            return [newton_path(self._problems[here], grid, settings[here]) for here in groups], 1
        return [self._alone(*one, grid) for one in zip(self._problems, settings, strict=True)], model.n_jobs

    def _alone(self, problem, settings, grid):
        """Yield one problem's solution for each C, begun with the last one's weights, or multipliers."""
        name, start = self._model.solver, None
        name = "ocas" if name == "auto" and problem.free_intercept else name
        by_weights = specs_of(DualQP)[name].starts_from is Start.WEIGHTS
        for C, following in pairwise([*grid, np.inf]):
            solution = LINEAR_SOLVERS[name](scaled(problem, C), settings, start)
            yield [solution]
            start = solution.w if by_weights else _stretched(solution, following / C)

    def _read(self, solutions):
        """Return coefficients, intercepts, gap, objective, turns and status on all rows; scores and gaps of folds."""
        n = self._n_outputs
        coef, intercept = self._weights(solutions[:n])
        scores, gaps = [], []
        for k, (_, test) in enumerate(self._folds, start=1):
            here = slice(n * k, n * (k + 1))
            fitted = copy(self._model)
            coef_of_fold, fitted.intercept_ = self._weights(solutions[here])
            fitted.coef_ = self._X.spread(coef_of_fold)
            found = self._X.scores_of_all(np.stack([one.w for one in solutions[here]]), self._model.n_jobs)
            if self._problems[0].free_intercept:
                found += fitted.intercept_[:, np.newaxis]
            if not is_classifier(fitted):
                fitted.coef_ = fitted.coef_.ravel()
            scores.append(self._judge(fitted, found, test))
            gaps.append(max(one.gap for one in solutions[here]))
        mine = solutions[:n]
        facts = max(one.gap for one in mine), sum(one.primal for one in mine), max(one.n_iter for one in mine)
        worst = max(mine, key=lambda one: one.gap)
        return coef, intercept, *facts, worst.status.value, scores, gaps

    def _weights(self, solutions):
        """Return coefficients and intercepts, a line and a number for each solution."""
        W = np.stack([solution.w for solution in solutions])
        return W[:, : self._X.n_features], np.array([solution.intercept for solution in solutions])


def _stretched(solution, ratio):
    """Return multipliers to begin with when costs are `ratio` times as large: their best multiple that is allowed."""
    size = float(solution.w @ solution.w)
    burden = float(solution.primal - 0.5 * size) / size if size > 0.0 else np.inf
    return solution.beta * min(1.0 + burden, ratio)


def _is_final(solution):
    """Whether a larger C changes next to nothing: losses are all that matters, or next to none is left."""
    weights = 0.5 * float(solution.w @ solution.w)
    return min(weights, solution.primal - weights) <= _NEGLIGIBLE * solution.primal


def _useful_range(problems):
    """Return C from where the first row is had right, at most `_MOST` of them."""
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        power = np.floor(np.log(min(map(_first_right, problems))) / np.log(_FACTOR))
        Cs = _FACTOR ** (power + np.arange(_MOST))
    if not (np.isfinite(Cs).all() and Cs[0] > 0.0):
        raise ValueError(
            "The useful range of C for these X, y and weights is beyond double precision: scale the features and "
            "targets, or give Cs."
        )
    return Cs


def _first_right(problem):
    """Return the factor of costs up to which all rows lose that lose at w = 0, the losses being linear there."""
    side, beyond = np.sign(problem.target), np.maximum(np.abs(problem.target) - problem.epsilon, 0.0)
    soft, bound = problem.curvature > 0.0, np.where(side > 0.0, problem.upper, -problem.lower)
    pull = np.divide(beyond, problem.curvature, out=np.where(soft, 0.0, bound), where=soft)
    gain = side * problem.X.scores(problem.X.combine(np.where(beyond > 0.0, side * pull, 0.0)))
    moving = (gain > 0.0) & (beyond > 0.0)
    return float(np.min(beyond[moving] / gain[moving])) if moving.any() else 1.0
