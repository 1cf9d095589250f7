"""`c_path`: linear models along a grid of values of C, and their cross-validated scores.

Values of C are taken in ascending order, and each fit is a warm start from the solution for the previous C. A fold is
the matrix of all rows, with weight zero for the held-out rows, so that no rows are copied. If the solver is `newton`,
the problems of all folds and classes are solved together and share the passes over the matrix.

Row blocks are read by all folds together, too. Each problem has vectors with a number per row; if there is no room for
those of all problems, the path is followed in several rounds, each with as many problems as have room. The held-out
rows of all folds and all values of C are scored at the end, in one pass if there is room for the scores; if there are
so many columns that the weights take more memory than the scores, they are scored for each C.

If no values are given, they are chosen between two limits. The lower limit is the smallest C at which some row reaches
zero loss; below it, the direction of w does not depend on C. The upper limit is reached when either ½|w|² or the sum of
the losses is at most a thousandth of the objective; beyond it, the model changes very little.
"""

import threading
import time
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, field, replace
from itertools import groupby, pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone, is_classifier
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import column_or_1d

from widemargin._runtime.argument_types import Floats, Folds, Scoring
from widemargin._runtime.progress import reporting
from widemargin._runtime.threads import run
from widemargin.data.column_scaling import ColumnScaling
from widemargin.models.argument_types import RowsOrBlocks
from widemargin.models.base import refuse_not_finite
from widemargin.models.linear import LinearSVC, LinearSVR
from widemargin.models.scoring import targets_of
from widemargin.problems.formulations import DualQP, Intercept, scaled
from widemargin.problems.intercept import best_intercept
from widemargin.selection.held_out import folds_of, scorer_of
from widemargin.solvers.auto import chosen, suits_newton_at_any_cost
from widemargin.solvers.contract import Status
from widemargin.solvers.finishing import finished, with_penalised_intercept
from widemargin.solvers.newton.active_set import is_small
from widemargin.solvers.newton.smoothed import newton, newton_path
from widemargin.solvers.registry import LINEAR_SOLVERS, check, specs_of
from widemargin.solvers.spec import Start

_RATIO_OF_ADJACENT_C = 10.0**0.5  # in a range that is chosen here
_MAX_VALUES_OF_C = 40  # in such a range
_NEGLIGIBLE_PART_OF_OBJECTIVE = 1e-3
_MAX_BYTES_OF_JOINT_SOLVE = 1 << 30  # limits how many problems are solved together by `newton`
_VECTORS_PER_PROBLEM = 16  # vectors with one float64 per row that `newton` holds for each problem
_MAX_BYTES_OF_SCORES = 1 << 30  # of scores of held-out rows at a time
_SCORES_PER_PROBLEM = 10  # vectors of scores that have room for each problem when all problems are solved


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
    scaling : ColumnScaling or None
        How features were scaled for the solver; coefs and intercepts are those of the features as they are.
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
    scaling: ColumnScaling | None = field(default=None, compare=False, repr=False)

    @property
    def best(self) -> int:
        """The position in `Cs` of the best mean score; of equal scores, that of the smallest C."""
        if self.scores is None:
            raise ValueError("a path without cv has no scores to choose by; give cv.")
        return int(np.argmax(self.scores.mean(axis=0)))


def c_path(
    estimator: LinearSVC | LinearSVR | None,
    X: RowsOrBlocks,
    y: ArrayLike | None = None,
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
        otherwise LinearSVR(). Its `scaling` is computed from all rows, those that a fold holds out included.
    X : array-like, sparse matrix or RowBlocks of shape (n_samples, n_features)
    y : array-like of shape (n_samples,)
        Of row blocks, None takes the labels of the file.
    Cs : array-like of floats or None, default=None
        Positive values, in any order. None chooses the useful range, in which adjacent values have the ratio √10.
    cv : int, splitter or iterable, default=None
        Folds as in scikit-learn. None computes no scores.
    scoring : str, callable or None, default=None
        As in scikit-learn; None is accuracy, or R² for regression. For row blocks, a name or a result of make_scorer.
    sample_weight : array-like of shape (n_samples,), default=None
        Factor of C for each row. Of row blocks, None takes the weights of the file, if it has any.
    groups : array-like of shape (n_samples,), default=None
        Groups of the rows, for splitters that need them.
    each : callable(C, scores of the folds) or None, default=None
        Called for each C when its models are fitted. Held-out rows in blocks are then read once for each C.

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
    y = targets_of(X, y)
    model = clone(_default_estimator(y) if estimator is None else estimator)
    model.set_params(C=1.0)
    _check_parameters(model)
    grid = None if Cs is None else _checked(Cs)
    rows, target, weight = model._check_data(X, y, sample_weight)
    y = column_or_1d(y) if is_classifier(model) else target
    folds = folds_of(model, X, y, cv, groups)
    score = scorer_of(model, X, y, scoring)
    matrix = model._matrix(rows, model._n_outputs * (1 + len(folds)))
    paths = _Paths(model, matrix, target, weight, folds, score)
    path = paths.fit(grid, each)
    model._warn(paths.solutions, matrix.values_or_none)
    return path


def _check_parameters(model):
    """Refuse parameters of an estimator that a path has no place for."""
    if getattr(model, "multi_class", "ovr") == "crammer_singer":
        raise ValueError("c_path needs multi_class='ovr'.")
    if model.stopping != "gap":
        raise ValueError(f"c_path needs stopping='gap', got {model.stopping!r}.")
    if model.checkpoint is not None:
        raise ValueError(f"c_path keeps no checkpoints, got checkpoint={model.checkpoint!r}; use checkpoint=None.")


def _default_estimator(y):
    return LinearSVR() if type_of_target(y).startswith("continuous") else LinearSVC()


def _checked(Cs):
    Cs = np.unique(np.asarray(Cs, dtype=np.float64))
    if Cs.ndim != 1 or len(Cs) == 0 or not np.isfinite(Cs).all() or Cs[0] <= 0.0:
        raise ValueError(f"Cs must be positive numbers, got {Cs.tolist()}.")
    return Cs


class _Paths:
    """The problems of all rows and of all folds, which are solved for one C after the other.

    Problem k is that of output k % n_outputs; of all rows if k < n_outputs, then of each fold in turn.
    """

    def __init__(self, model, X, target, weight, folds, score):
        self._model, self._X, self._target, self._weight = model, X, target, weight
        self._folds, self._score, self._n_outputs = folds, score, model._n_outputs
        if not all(weight[train].any() for train, _ in folds):
            raise ValueError("sample_weight is zero for every row that a fold trains on.")
        self._n_problems = self._n_outputs * (1 + len(folds))
        self._interrupt, self._begun = threading.Event(), time.perf_counter()
        self._seed = check_random_state(model.random_state).randint(np.iinfo(np.int32).max)
        self.solutions = []

    def fit(self, Cs, each=None):
        """Return the CPath for these values of C, or for the useful range if Cs is None; call `each` after each C."""
        rounds = self._rounds(Cs)
        grid = _useful_range(self._stated(range(self._n_outputs))) if Cs is None else Cs
        found, scores = [[] for _ in grid], []
        at_end = each is None and not self._X.is_in_memory and len(grid) * self._X.n_columns <= self._X.n_rows
        with (
            reporting(self._model.verbose) as report,
            self._model._announcing(report),
            report.solving(len(grid), "values of C") as solving,
        ):
            for number, members in enumerate(rounds, start=1):
                n_solved, is_last = 0, members is rounds[-1]
                for solutions in self._solved(members, grid, report, number / len(rounds)):
                    refuse_not_finite(solutions)
                    found[n_solved] += [replace(one, beta=None) for one in solutions]
                    n_solved += 1
                    if is_last:
                        solving.finished(1)
                        scores += [] if at_end else self._scores_of_last(found[:n_solved])
                        self._call(each, grid[n_solved - 1], found[n_solved - 1], scores)
                    if Cs is None and number == 1 and all(map(_is_final, solutions[: self._n_outputs])):
                        break
                grid, found = grid[:n_solved], found[:n_solved]
            scores = self._held_out_scores(found, _SCORES_PER_PROBLEM) if at_end else scores
        self.solutions = [replace(one, w=None) for solutions in found for one in solutions]  # for `_warn`
        return self._path(grid, found, scores)

    def _scores_of_last(self, found):
        """Return a list of the scores of the folds for the last C, and drop the weights of their models."""
        scores, n = self._held_out_scores(found[-1:], 1), self._n_outputs
        found[-1][n:] = [replace(one, w=None) for one in found[-1][n:]]
        return scores

    def _call(self, each, C, solutions, scores):
        """Call `each`, if there is one, unless the fit was interrupted."""
        if each is not None and not any(one.status is Status.INTERRUPTED for one in solutions):
            each(float(C), scores[-1])

    def _rounds(self, Cs):
        """Return ranges of problems, each of as many as have room for their vectors at the same time."""
        size = min(self._X.most_problems, self._n_problems)
        if Cs is None and size < self._n_outputs:
            raise MemoryError(
                f"Cs=None needs room for the problems of all {self._n_outputs} classes at the same time, max_memory "
                f"has room for {size}. Give Cs, or raise max_memory."
            )
        return [range(self._n_problems)[first : first + size] for first in range(0, self._n_problems, size)]

    def _stated(self, members):
        """Yield the problems with these numbers."""
        for fold, numbers in groupby(members, lambda k: k // self._n_outputs):
            weight = self._weight
            if fold > 0:
                train, weight = self._folds[fold - 1][0], np.zeros_like(self._weight)
                weight[train] = self._weight[train]
            states = self._model._problems(self._X, self._target, self._model._cost(self._target, weight))
            for k in numbers:
                yield states[k % self._n_outputs]()

    def _path(self, grid, found, scores):
        """Return the CPath of the solutions and scores for each C."""
        n, X = self._n_outputs, self._X
        wholes = [solutions[:n] for solutions in found]
        weights = [self._weights(whole) for whole in wholes]
        by_fold = [[solutions[first : first + n] for first in range(n, self._n_problems, n)] for solutions in found]
        return CPath(
            np.array(grid),
            coefs=np.array([coef for coef, _ in weights]),
            intercepts=np.array([intercept for _, intercept in weights]),
            gaps=np.array([max(one.gap for one in whole) for whole in wholes]),
            objectives=np.array([sum(one.primal for one in whole) for whole in wholes]),
            n_iters=np.array([max(one.n_iter for one in whole) for whole in wholes]),
            statuses=np.array([max(whole, key=lambda one: one.gap).status.value for whole in wholes]),
            solver="; ".join(sorted({solution.solver for solution in self.solutions})),
            scores=np.array(scores).T if self._folds else None,
            fold_gaps=np.array([[max(one.gap for one in fold) for fold in folds] for folds in by_fold]).T
            if self._folds
            else None,
            histories=[[one.history for one in whole] for whole in wholes],
            scaling=X.scaling,
        )

    def _weights(self, solutions):
        """Return the coefficients of the solutions, one row each, and their intercepts, for features as they are."""
        W, X = np.stack([solution.w for solution in solutions]), self._X
        coef, intercept = X.spread(W[:, : X.n_features]), np.array([solution.intercept for solution in solutions])
        return (coef, intercept) if X.scaling is None else X.scaling.weights_of_data(coef, intercept)

    # --- Solving ------------------------------------------------------------------------------------------------------

    def _solved(self, members, grid, report, time_share):
        """Yield, for each C, the solutions of the problems of a round, which may take a share of max_seconds."""
        model, problems = self._model, list(self._stated(members))
        limit = np.inf if model.max_seconds is None else time_share * model.max_seconds
        common = replace(
            model._settings(report, self._n_problems), max_seconds=model.max_seconds, interrupt=self._interrupt
        )
        settings = [replace(common, task=task, seed=(self._seed, task)) for task in members]
        paths, n_jobs = self._paths(problems, grid, settings)
        for C in grid:
            parts = run(next, [(path, None) for path in paths], n_jobs, common.interrupt)
            if None in parts:
                return  # interrupted
            found = [solution for part in parts for solution in part]
            yield self._finished(C, problems, found, settings)
            if common.interrupt.is_set() or time.perf_counter() - self._begun >= limit:
                return

    def _finished(self, C, problems, solutions, settings):
        """Return the solutions of all rows after `finished`, and those of folds, whose free intercepts are not set.

        If the problems are small, those of folds are finished too. It takes little time, and makes the scores
        independent of the order of the rows.
        """
        each = list(zip(problems, solutions, settings, strict=True))
        n = len(each) if is_small(problems[0]) else sum(one.task < self._n_outputs for one in settings)
        tasks = [(scaled(problem, C), solution, own_settings) for problem, solution, own_settings in each[:n]]
        n_jobs = self._model.n_jobs if self._X.is_in_memory else 1
        return run(finished, tasks, n_jobs) + [with_penalised_intercept(*one[:2]) for one in each[n:]]

    def _paths(self, problems, grid, settings):
        """Return generators of solutions for each C, and how many of them may run in parallel."""
        model, X = self._model, self._X
        if model.solver == "newton" or (model.solver == "auto" and self._suits_newton(problems[0], settings[0])):
            if not X.is_in_memory:
                check(specs_of(DualQP)["newton"], problems[0], settings[0])
                return [newton_path(problems, grid, settings)], 1
            group = max(1, _MAX_BYTES_OF_JOINT_SOLVE // (8 * _VECTORS_PER_PROBLEM * max(1, X.n_rows)))
            groups = [slice(first, first + group) for first in range(0, len(problems), group)]
            return [newton_path(problems[here], grid, settings[here]) for here in groups], 1
        paths = [self._path_of_one(*one, grid) for one in zip(problems, settings, strict=True)]
        return paths, model.n_jobs if X.is_in_memory else 1

    def _suits_newton(self, problem, settings):
        """Return whether newton is what "auto" takes on this path."""
        if self._X.is_in_memory:
            return suits_newton_at_any_cost(self._X)
        return chosen(problem, settings)[0] is newton

    def _path_of_one(self, problem, settings, grid):
        """Yield the solution of one problem for each C, a warm start from the weights or dual variables of the last."""
        name, start = self._model.solver, None
        name = "ocas" if name == "auto" and problem.free_intercept else name
        by_weights = specs_of(DualQP)[name].starts_from is Start.WEIGHTS
        for C, following in pairwise([*grid, np.inf]):
            solution = LINEAR_SOLVERS[name](scaled(problem, C), settings, start)
            yield [solution]
            start = solution.w if by_weights else _scaled_dual_solution(solution, following / C)

    # --- Scoring ------------------------------------------------------------------------------------------------------

    def _held_out_scores(self, found, per_problem):
        """Return the scores of the folds for each C, from lists of the solutions of all problems for each C.

        There is room for `per_problem` vectors of scores for each problem that is solved at the same time.
        """
        n, X = self._n_outputs, self._X
        models = [(c, fold) for c in range(len(found)) for fold in range(len(self._folds))]
        n_vectors = min(per_problem * X.most_problems, _MAX_BYTES_OF_SCORES // (8 * max(1, X.n_rows)))
        at_once = 1 if X.is_in_memory else max(1, n_vectors // n)
        scores = np.empty((len(found), len(self._folds)))
        for first in range(0, len(models), at_once):
            here = models[first : first + at_once]
            solutions = [found[c][n * (fold + 1) : n * (fold + 2)] for c, fold in here]
            W = np.stack([one.w for of_model in solutions for one in of_model])
            values = X.scores_of_all(W, self._model.n_jobs).reshape(len(here), n, X.n_rows)
            for place, of_model, own_values in zip(here, solutions, values, strict=True):
                scores[place] = self._score_of(place[1], of_model, own_values)
        return scores.tolist()

    def _score_of(self, fold, solutions, values):
        """Return the score of the model of a fold on its held-out rows; `values` are X w of all rows, row by output."""
        fitted = copy(self._model)
        if self._model._intercept is Intercept.FREE:
            solutions = self._with_free_intercepts(fold, solutions, values)
            values += np.array([[one.intercept] for one in solutions])
        fitted.coef_, fitted.intercept_ = self._weights(solutions)
        if not is_classifier(fitted):
            fitted.coef_ = fitted.coef_.ravel()
        return self._score(fitted, values, self._folds[fold][1])

    def _with_free_intercepts(self, fold, solutions, values):
        """Return the solutions of a fold with the best intercepts for their scores, unless they have them already."""
        first = self._n_outputs * (fold + 1)
        problems = self._stated(range(first, first + self._n_outputs))
        return [
            solution if is_small(problem) else replace(solution, intercept=best_intercept(problem, own_values))
            for problem, solution, own_values in zip(problems, solutions, values, strict=True)
        ]


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
