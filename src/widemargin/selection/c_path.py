"""`c_path`: linear models along a grid of values of C, and their cross-validated scores.

Values of C are taken in ascending order, and each fit is a warm start from the solution for the previous C. A fold is
the matrix of all rows, with weight zero for the held-out rows, so that no rows are copied. If the solver is `newton`,
the problems of all folds and classes are solved together and share the passes over the matrix.

Row blocks are read by all folds together, too. Each problem has vectors with a number per row; if there is no room for
those of all problems, the path is followed in several rounds, each with as many problems as have room. The held-out
rows of all folds and all values of C are scored at the end, in one pass if there is room for the scores; if there are
so many columns that the weights take more memory than the scores, they are scored for each C.

If no values are given, they are those of `useful_range`.
"""

import threading
import time
from collections.abc import Callable
from copy import copy
from dataclasses import replace
from itertools import groupby

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone, is_classifier
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import column_or_1d

from widemargin._runtime.argument_types import Folds, Scoring
from widemargin._runtime.progress import reporting
from widemargin._runtime.threads import run
from widemargin._runtime.warning import warn_caller
from widemargin.errors import ConvergenceWarning
from widemargin.models.argument_types import RowsOrBlocks
from widemargin.models.elastic_net import has_sparse_penalty, penalty_of
from widemargin.models.linear import LinearSVC, LinearSVR
from widemargin.models.scoring import targets_of
from widemargin.models.solved_model import refuse_not_finite, seed_of
from widemargin.problems.formulations import DualQP, Intercept
from widemargin.problems.intercept import best_intercept
from widemargin.selection.held_out import folds_of, scorer_of
from widemargin.selection.path_record import PathCheckpoints, PathRecord, file_of_path
from widemargin.selection.path_result import CPath
from widemargin.selection.useful_range import is_final, useful_range
from widemargin.selection.warm_start_path import WarmStartPath
from widemargin.solvers.auto import chosen, suits_newton_at_any_cost
from widemargin.solvers.contract import Status
from widemargin.solvers.finishing import finished, with_penalised_intercept
from widemargin.solvers.newton.active_set import is_small
from widemargin.solvers.newton.smoothed import NewtonPath, newton
from widemargin.solvers.proximal_newton.prox_newton import PROX_NEWTON
from widemargin.solvers.registry import check, specs_of

_MAX_BYTES_OF_JOINT_SOLVE = 1 << 30  # limits how many problems are solved together by `newton`
_VECTORS_PER_PROBLEM = 16  # vectors with one float64 per row that `newton` holds for each problem
_MAX_BYTES_OF_SCORES = 1 << 30  # of scores of held-out rows at a time
_MAX_VALUES_OF_SPARSE_PATH = 12  # with an L1 penalty, from where all weights are zero: a factor of 300,000
_SCORES_PER_PROBLEM = 10  # vectors of scores that have room for each problem when all problems are solved


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
        otherwise LinearSVR(). Its `scaling` is computed from all rows, those that a fold holds out included. Its
        `checkpoint` is a file that keeps the models for each C that is done, and what the next fits start from: the
        same call goes on from there if the process was killed.
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
        Called for each C when its models are fitted, at once for those that a checkpoint has. Held-out rows in blocks
        are then read once for each C.

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
    grid = None if Cs is None else checked_values(Cs)
    rows, target, weight = model._check_data(X, y, sample_weight)
    y = column_or_1d(y) if is_classifier(model) else target
    folds = folds_of(model, X, y, cv, groups)
    score = scorer_of(model, X, y, scoring)
    matrix = model._matrix(rows, model._n_outputs * (1 + len(folds)))
    words = {"Cs": "None" if grid is None else repr(grid.tolist()), "scoring": _name_of(scoring)}
    words |= {"tol": repr(model.tol), "max_iter": repr(model.max_iter), "each": "None" if each is None else "given"}
    rows_of_folds = [rows for fold in folds for rows in fold]
    checkpoint = file_of_path(model._checkpoint_file(matrix), words, [target, weight, *rows_of_folds])
    paths = _Paths(model, matrix, target, weight, folds, score=score, checkpoint=checkpoint)
    path = paths.fit(grid, each)
    model._warn(paths.solutions, matrix.values_or_none)
    return path


def _check_parameters(model):
    """Refuse parameters of an estimator that a path has no place for."""
    if getattr(model, "multi_class", "ovr") == "crammer_singer":
        raise ValueError("c_path needs multi_class='ovr'.")
    if model.stopping != "gap":
        raise ValueError(f"c_path needs stopping='gap', got {model.stopping!r}.")


def _name_of(scoring):
    """Return words for a scoring that are the same in another process."""
    return getattr(scoring, "__qualname__", None) or repr(scoring)


def _default_estimator(y):
    return LinearSVR() if type_of_target(y).startswith("continuous") else LinearSVC()


def checked_values(Cs):
    """Return values of C as an ascending array, after a check that they are positive."""
    Cs = np.unique(np.asarray(Cs, dtype=np.float64))
    if Cs.ndim != 1 or len(Cs) == 0 or not np.isfinite(Cs).all() or Cs[0] <= 0.0:
        raise ValueError(f"Cs must be positive numbers, got {Cs.tolist()}.")
    return Cs


class _Paths:
    """The problems of all rows and of all folds, which are solved for one C after the other.

    Problem k is that of output k % n_outputs; of all rows if k < n_outputs, then of each fold in turn.
    """

    def __init__(self, model, X, target, weight, folds, *, score, checkpoint=None):
        self._model, self._X, self._target, self._weight = model, X, target, weight
        self._folds, self._score, self._n_outputs = folds, score, model._n_outputs
        self._is_sparse, self._penalty_of = has_sparse_penalty(model), penalty_of(model)
        if not all(weight[train].any() for train, _ in folds):
            raise ValueError("sample_weight is zero for every row that a fold trains on.")
        self._n_problems = self._n_outputs * (1 + len(folds))
        self._interrupt, self._begun = threading.Event(), time.perf_counter()
        seed = seed_of(model.random_state)
        self._record, self._checkpoints = PathRecord(int(seed)), PathCheckpoints(checkpoint)
        self.solutions = []

    def fit(self, Cs, each=None):
        """Return the CPath for these values of C, or for the useful range if Cs is None; call `each` after each C."""
        record, n_together = self._record, self._problems_at_a_time(Cs)
        if not self._checkpoints.restore(record):
            record.start(useful_range(self._stated(range(self._n_outputs))) if Cs is None else Cs)
            n_weights = len(record.grid) * self._X.n_columns
            record.scores_at_end = each is None and not self._X.is_in_memory and n_weights <= self._X.n_rows
        with (
            reporting(self._model.verbose) as report,
            self._model._announcing(report),
            report.solving(len(record.grid), "values of C") as solving,
        ):
            for C, scores in zip(record.grid, record.scores, strict=False):  # of a checkpoint
                solving.finished(1)
                self._call(each, C, scores)
            for members in self._rounds(n_together):
                self._follow(members, Cs is None, each, report, solving)
                if self._interrupt.is_set() and members.stop < self._n_problems:
                    raise KeyboardInterrupt  # some folds have no model
            if record.scores_at_end:
                record.scores = self._held_out_scores(record.found, _SCORES_PER_PROBLEM)
        self.solutions = [replace(one, w=None) for solutions in record.found for one in solutions]  # for `_warn`
        path = self._path(record.grid, record.found, record.scores)
        self._checkpoints.remove(record)
        self._warn_of_interruption()
        return path

    def _warn_of_interruption(self):
        """Warn if Ctrl-C has ended the path before there was a solution for the next C; `_warn` tells of solutions."""
        grid, is_told = self._record.grid, any(one.status is Status.INTERRUPTED for one in self.solutions)
        if self._interrupt.is_set() and self._record.is_cut and not is_told:
            warn_caller(
                f"The path was interrupted after {len(grid)} values of C, the last of which is {grid[-1]:.3g}; larger "
                "ones are not fitted.",
                ConvergenceWarning,
            )

    def _follow(self, members, may_end, each, report, solving):
        """Solve the problems of a round for each C that is left; if it `may_end`, until a larger C changes little."""
        record = self._record
        for solutions, states in self._solved(members, report):
            refuse_not_finite(solutions)
            record.add(solutions)
            is_last, solved = members.stop == self._n_problems, record.found[: record.n_solved]
            if is_last and not record.scores_at_end:
                record.scores += self._scores_of_last(solved)
            if may_end and members.start == 0 and self._is_final(solved):
                record.shorten()
            self._checkpoints.save(record, states)
            if is_last:
                solving.finished(1)
                if record.scores and not any(one.status is Status.INTERRUPTED for one in solved[-1]):
                    self._call(each, record.grid[record.n_solved - 1], record.scores[-1])
        record.end_round()

    def _is_final(self, found):
        """Return whether a C larger than the last would change the models of all rows very little."""
        n, grid = self._n_outputs, self._record.grid
        if self._is_sparse and len(found) >= _MAX_VALUES_OF_SPARSE_PATH:
            return True
        growth = grid[len(found) - 1] / grid[0] if self._is_sparse else np.inf  # weights are zero for the first C
        both = zip(found[0][:n], found[-1][:n], strict=True)
        return all(is_final(last, self._penalty_of, growth * first.primal) for first, last in both)

    def _scores_of_last(self, found):
        """Return a list of the scores of the folds for the last C, and drop the weights of their models."""
        scores, n = self._held_out_scores(found[-1:], 1), self._n_outputs
        found[-1][n:] = [replace(one, w=None) for one in found[-1][n:]]
        return scores

    def _call(self, each, C, scores):
        """Call `each`, if there is one."""
        if each is not None:
            each(float(C), scores)

    def _problems_at_a_time(self, Cs):
        """Return how many problems have room for their vectors at the same time."""
        size = min(self._X.most_problems, self._n_problems)
        if Cs is None and size < self._n_outputs:
            raise MemoryError(
                f"Cs=None needs room for the problems of all {self._n_outputs} classes at the same time, max_memory "
                f"has room for {size}. Give Cs, or raise max_memory."
            )
        return size

    def _rounds(self, n_together):
        """Yield ranges of problems that are solved at the same time; the first one may be that of a checkpoint."""
        record = self._record
        if record.stop and not record.is_round_complete:
            if record.stop - record.first > n_together:
                raise MemoryError(
                    f"The checkpoint was written with room for {record.stop - record.first} problems at the same time, "
                    f"now there is room for {n_together}. Raise max_memory, or remove the checkpoint to start anew."
                )
            yield range(record.first, record.stop)
        while record.stop < self._n_problems:
            members = range(record.stop, min(record.stop + n_together, self._n_problems))
            record.start_round(members)
            yield members

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

    def _solved(self, members, report):
        """Yield, for each C that is left, the solutions of the problems of a round, and what the next fits start from.

        The rounds so far may take their share of max_seconds.
        """
        model, record, problems = self._model, self._record, list(self._stated(members))
        limit = np.inf if model.max_seconds is None else model.max_seconds * members.stop / self._n_problems
        common = replace(
            model._settings(report, self._n_problems), max_seconds=model.max_seconds, interrupt=self._interrupt
        )
        settings = [replace(common, task=task, seed=(record.seed, task)) for task in members]
        paths, n_jobs = self._paths(problems, settings)
        self._resume(paths)
        while not record.is_round_complete:
            C = record.grid[record.n_solved]
            try:
                parts = run(lambda path, C=C: path.solved(C), [(path,) for path in paths], n_jobs, common.interrupt)
            except KeyboardInterrupt:  # before there was a solution for this C
                if record.n_solved == 0:
                    raise
                self._interrupt.set()
                return
            found = [solution for part in parts for solution in part]
            yield self._finished(C, problems, found, settings), [state for path in paths for state in path.states()]
            if common.interrupt.is_set() or time.perf_counter() - self._begun >= limit:
                return

    def _resume(self, paths):
        """Set what the next fits start from if a checkpoint has this round."""
        record = self._record
        if record.n_solved == 0:
            return
        last_C, first = float(record.grid[record.n_solved - 1]), record.first
        for path in paths:
            path.resume(last_C, lambda k, state, first=first: self._checkpoints.restore_problem(first + k, state))
            first += len(path.states())

    def _finished(self, C, problems, solutions, settings):
        """Return the solutions of all rows after `finished`, and those of folds, whose free intercepts are not set.

        If the problems are small, those of folds are finished too. It takes little time, and makes the scores
        independent of the order of the rows.
        """
        if self._is_sparse:  # their solver has finished them
            return solutions
        each = list(zip(problems, solutions, settings, strict=True))
        n = len(each) if is_small(problems[0]) else sum(one.task < self._n_outputs for one in settings)
        tasks = [(problem.scaled(C), solution, own_settings) for problem, solution, own_settings in each[:n]]
        n_jobs = self._model.n_jobs if self._X.is_in_memory and not is_small(problems[0]) else 1
        return run(finished, tasks, n_jobs) + [with_penalised_intercept(*one[:2]) for one in each[n:]]

    def _paths(self, problems, settings):
        """Return objects that solve the problems for one C after the other, and how many may run in parallel."""
        model, X, record = self._model, self._X, self._record
        if record.first == record.n_solved == 0:
            is_newton = model.solver == "newton"
            record.by_newton = is_newton or (model.solver == "auto" and self._suits_newton(problems[0], settings[0]))
        if record.by_newton:
            if not X.is_in_memory:
                check(specs_of(DualQP)["newton"], problems[0], settings[0])
                return [NewtonPath(problems, settings)], 1
            group = max(1, _MAX_BYTES_OF_JOINT_SOLVE // (8 * _VECTORS_PER_PROBLEM * max(1, X.n_rows)))
            groups = [slice(first, first + group) for first in range(0, len(problems), group)]
            return [NewtonPath(problems[here], settings[here]) for here in groups], 1
        needs_planes = not self._is_sparse and problems[0].free_intercept and not problems[0].entropy
        name = "ocas" if model.solver == "auto" and needs_planes else model.solver
        name = PROX_NEWTON.name if self._is_sparse else name
        paths = [WarmStartPath(*one, name) for one in zip(problems, settings, strict=True)]
        return paths, model._n_jobs_over_problems if X.is_in_memory else 1

    def _suits_newton(self, problem, settings):
        """Return whether newton is what "auto" takes on this path."""
        if self._is_sparse:
            return False
        if self._X.is_in_memory:
            return suits_newton_at_any_cost(self._X)
        return chosen(problem, settings)[0] is newton

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
        if self._is_sparse:
            return solutions
        first = self._n_outputs * (fold + 1)
        problems = self._stated(range(first, first + self._n_outputs))
        return [
            solution if is_small(problem) else replace(solution, intercept=best_intercept(problem, own_values))
            for problem, solution, own_values in zip(problems, solutions, values, strict=True)
        ]
