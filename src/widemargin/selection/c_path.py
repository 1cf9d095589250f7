"""`c_path`: linear models along a grid of values of C, and their cross-validated scores.

Values of C are taken in ascending order, and each fit is a warm start from the solution for the previous C. A fold is
the matrix of all rows, with weight zero for the held-out rows, so that no rows are copied. If the solver is `newton`,
the problems of all folds and classes are solved together and share the passes over the matrix.

If no values are given, they are chosen between two limits. The lower limit is the smallest C at which some row reaches
zero loss; below it, the direction of w does not depend on C. The upper limit is reached when either ½|w|² or the sum of
the losses is at most a thousandth of the objective; beyond it, the model changes very little.
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

_RATIO_OF_ADJACENT_C = 10.0**0.5  # in a range that is chosen here
_MAX_VALUES_OF_C = 40  # in such a range
_NEGLIGIBLE_PART_OF_OBJECTIVE = 1e-3
_MAX_BYTES_OF_JOINT_SOLVE = 1 << 30  # limits how many problems are solved together by `newton`
_VECTORS_PER_PROBLEM = 16  # vectors with one float64 per row that `newton` holds for each problem


@dataclass(frozen=True)
class CPath:
    """Models along a grid of C.

    Attributes
    ----------
    Cs : ndarray of shape (n_Cs,)
        Ascending.
    coefs : ndarray of shape (n_Cs, n_outputs, n_features)
        Weights of the models fitted to all rows. There is one output, or one per class if there are more than two.
    intercepts : ndarray of shape (n_Cs, n_outputs)
        Intercepts of the same models.
    gaps, objectives : ndarray of shape (n_Cs,)
        The largest relative duality gap over outputs, and the sum of their objectives.
    n_iters : ndarray of shape (n_Cs,)
        Iterations of the solver for the models fitted to all rows; the largest number over outputs.
    statuses : ndarray of shape (n_Cs,)
        Why the solver stopped.
    solver : str
        The solver that was used.
    scores : ndarray of shape (n_folds, n_Cs), or None without folds
        Scores on the held-out rows of each fold.
    fold_gaps : ndarray of shape (n_folds, n_Cs), or None without folds
        The largest relative duality gap over outputs.
    histories : list of lists of ndarray
        For each C and output, the convergence history of the model fitted to all rows, as `history_` of a `LinearSVC`.
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
        """The position in `Cs` of the best mean score; of equal scores, that of the smallest C."""
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
    """Fit a linear model for each C of a grid, in ascending order, each a warm start from the previous one.

    Parameters
    ----------
    estimator : LinearSVC, LinearSVR or None
        The estimator whose parameters are used, except for C and warm_start. None is LinearSVC() if y are class labels,
        otherwise LinearSVR().
    X : array-like or sparse matrix of shape (n_samples, n_features)
    y : array-like of shape (n_samples,)
    Cs : array-like of floats or None, default=None
        Positive values, in any order. None chooses the useful range, in which adjacent values have the ratio √10.
    cv : int, splitter or iterable, default=None
        Folds as in scikit-learn. None computes no scores.
    scoring : str, callable or None, default=None
        As in scikit-learn; None is accuracy, or R² for regression.
    sample_weight : array-like of shape (n_samples,), default=None
        Factor of C for each row.
    groups : array-like of shape (n_samples,), default=None
        Groups of the rows, for splitters that need them.
    each : callable(C, scores of the folds) or None, default=None
        Called for each C when its models are fitted.

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
    model = clone(_default_estimator(y) if estimator is None else estimator)
    model.set_params(C=1.0)
    if getattr(model, "multi_class", "ovr") == "crammer_singer":
        raise ValueError("c_path needs multi_class='ovr'.")
    if model.stopping != "gap":
        raise ValueError(f"c_path needs stopping='gap', got {model.stopping!r}.")
    grid = None if Cs is None else _checked(Cs)
    X_checked, target, weight = model._check(X, y, sample_weight)
    y = column_or_1d(y) if is_classifier(model) else target
    folds = _folds(model, X, y, cv, groups)
    paths = _Paths(model, X_checked, target, weight, folds, _make_scorer(model, X, y, scoring))
    path = paths.fit(grid, each)
    model._warn(paths.solutions, X_checked.values)
    return path


def _default_estimator(y):
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


def _make_scorer(model, X, y, scoring):
    """Return a function of a fitted model, its decision values on all rows, and the row numbers to be scored."""
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
    """The problems of all rows and of all folds, which are solved for one C after the other."""

    def __init__(self, model, X, target, weight, folds, score):
        self._model, self._X, self._folds, self._score = model, X, folds, score
        self._problems = []
        for train in [slice(None), *(train for train, _ in folds)]:
            weight_in_fold = np.zeros_like(weight)
            weight_in_fold[train] = weight[train]
            if not weight_in_fold.any():
                raise ValueError("sample_weight is zero for every row that a fold trains on.")
            cost = model._cost(target, weight_in_fold)
            self._problems += [state() for state in model._problems(X, target, cost)]
        self._n_outputs = len(self._problems) // (1 + len(folds))
        self.solutions = []

    def fit(self, Cs, each=None):
        """Return the CPath for these values of C, or for the useful range if Cs is None; call `each` after each C."""
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
                self.solutions += [replace(one, w=None, beta=None) for one in solutions]  # for `_warn`
                steps.append(self._summarise(solutions))
                histories.append([one.history for one in solutions[: self._n_outputs]])
                if each is not None and not any(one.status is Status.INTERRUPTED for one in solutions):
                    each(float(grid[len(steps) - 1]), steps[-1][6])
                if Cs is None and all(_is_final(one) for one in solutions[: self._n_outputs]):
                    break
        columns = [np.array(column) for column in zip(*steps, strict=True)]
        columns[0] = self._X.spread(columns[0])
        scores, fold_gaps = (column.T if self._folds else None for column in columns[6:])
        return CPath(np.array(grid[: len(steps)]), *columns[:6], self._solver_names(), scores, fold_gaps, histories)

    def _solver_names(self):
        return "; ".join(sorted({solution.solver for solution in self.solutions}))

    def _solved(self, grid, report):
        """Yield, for each C, the solutions of all problems: first those of all rows, then those of each fold."""
        model, begun = self._model, time.perf_counter()
        limit = np.inf if model.max_seconds is None else model.max_seconds
        seed = check_random_state(model.random_state).randint(np.iinfo(np.int32).max)
        common = replace(model._settings(report, len(self._problems)), max_seconds=model.max_seconds)
        settings = [replace(common, task=task, seed=(seed, task)) for task in range(len(self._problems))]
        paths, n_jobs = self._paths(grid, settings)
        for C in grid:
            parts = run(next, [(path, None) for path in paths], n_jobs, common.interrupt)
            if None in parts:
                return  # interrupted
            found = [solution for part in parts for solution in part]
            yield self._finished(C, found, settings)
            if common.interrupt.is_set() or time.perf_counter() - begun >= limit:
                return

    def _finished(self, C, solutions, settings):
        """Return the solutions of all rows after `finished`, and those of folds with their intercept only.

        If the problems are small, those of folds are finished too. It takes little time, and makes the scores
        independent of the order of the rows.
        """
        each = list(zip(self._problems, solutions, settings, strict=True))
        n = len(each) if is_small(self._problems[0]) else self._n_outputs
        tasks = [(scaled(problem, C), solution, own_settings) for problem, solution, own_settings in each[:n]]
        return run(finished, tasks, self._model.n_jobs) + [with_intercept(*one) for one in each[n:]]

    def _paths(self, grid, settings):
        """Return generators of solutions for each C, and how many of them may run in parallel."""
        model, count = self._model, len(self._problems)
        if model.solver == "newton" or (model.solver == "auto" and suits_newton_at_any_cost(self._X)):
            group = max(1, _MAX_BYTES_OF_JOINT_SOLVE // (8 * _VECTORS_PER_PROBLEM * max(1, self._X.n_rows)))
            groups = [slice(first, first + group) for first in range(0, count, group)]
            return [newton_path(self._problems[here], grid, settings[here]) for here in groups], 1
        return [self._path_of_one(*one, grid) for one in zip(self._problems, settings, strict=True)], model.n_jobs

    def _path_of_one(self, problem, settings, grid):
        """Yield the solution of one problem for each C, a warm start from the weights or dual variables of the last."""
        name, start = self._model.solver, None
        name = "ocas" if name == "auto" and problem.free_intercept else name
        by_weights = specs_of(DualQP)[name].starts_from is Start.WEIGHTS
        for C, following in pairwise([*grid, np.inf]):
            solution = LINEAR_SOLVERS[name](scaled(problem, C), settings, start)
            yield [solution]
            start = solution.w if by_weights else _scaled_dual_solution(solution, following / C)

    def _summarise(self, solutions):
        """Return the attributes of a CPath for one C: six of the models of all rows, then those of the folds."""
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
            scores.append(self._score(fitted, found, test))
            gaps.append(max(one.gap for one in solutions[here]))
        whole = solutions[:n]
        facts = max(one.gap for one in whole), sum(one.primal for one in whole), max(one.n_iter for one in whole)
        worst = max(whole, key=lambda one: one.gap)
        return coef, intercept, *facts, worst.status.value, scores, gaps

    def _weights(self, solutions):
        """Return the coefficients of the solutions, one row each, and their intercepts."""
        W = np.stack([solution.w for solution in solutions])
        return W[:, : self._X.n_features], np.array([solution.intercept for solution in solutions])


def _scaled_dual_solution(solution, ratio):
    """Return a multiple of the dual solution as the start for costs that are `ratio` times as large.

    Without curvature, the dual objective along s β is s (|w|² + L) − ½ s² |w|², where L is the sum of the losses. Its
    maximum is at s = 1 + L / |w|²; the box constraints allow s up to `ratio`.
    """
    squared_norm = float(solution.w @ solution.w)
    loss = float(solution.primal - 0.5 * squared_norm)
    best = 1.0 + loss / squared_norm if squared_norm > 0.0 else np.inf
    return solution.beta * min(best, ratio)


def _is_final(solution):
    """Return whether ½|w|² or the sum of the losses is negligible, so that a larger C changes the model very little."""
    penalty = 0.5 * float(solution.w @ solution.w)
    return min(penalty, solution.primal - penalty) <= _NEGLIGIBLE_PART_OF_OBJECTIVE * solution.primal


def _useful_range(problems):
    """Return values of C in geometric progression from the smallest C at which some row reaches zero loss."""
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        power = np.floor(np.log(min(map(_smallest_C_with_a_zero_loss, problems))) / np.log(_RATIO_OF_ADJACENT_C))
        Cs = _RATIO_OF_ADJACENT_C ** (power + np.arange(_MAX_VALUES_OF_C))
    if not (np.isfinite(Cs).all() and Cs[0] > 0.0):
        raise ValueError(
            "The useful range of C for these X, y and weights is beyond double precision: scale the features and "
            "targets, or give Cs."
        )
    return Cs


def _smallest_C_with_a_zero_loss(problem):
    """Return the smallest factor of the costs at which a row with positive loss at w = 0 reaches zero loss.

    For small C, w is C times the sum of the negative gradients of the losses at w = 0. The residual of a row
    decreases in proportion to C, from `beyond` at C = 0, at the rate `gain`.
    """
    side, beyond = np.sign(problem.target), np.maximum(np.abs(problem.target) - problem.epsilon, 0.0)
    is_squared, bound = problem.curvature > 0.0, np.where(side > 0.0, problem.upper, -problem.lower)
    gradient = np.divide(beyond, problem.curvature, out=np.where(is_squared, 0.0, bound), where=is_squared)
    gain = side * problem.X.scores(problem.X.combine(np.where(beyond > 0.0, side * gradient, 0.0)))
    improves = (gain > 0.0) & (beyond > 0.0)
    return float(np.min(beyond[improves] / gain[improves])) if improves.any() else 1.0
