"""`LinearSVCCV` on a Dask cluster: C chosen by cross-validation, with all folds in the same passes.

A fold holds out every k-th row of each class of each partition, so that folds are stratified and do not depend on the
workers. Its rows have cost zero in the problem of the fold. The problems of all folds are solved together, along
ascending values of C, and share the passes over the rows. Scores of held-out rows are made from counts of labels and
predictions, which the partitions add up.
"""

import threading
from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import check_scoring

from widemargin._runtime.progress import reporting
from widemargin.distributed.estimator import on_cluster
from widemargin.distributed.linear import ClassifierOnCluster
from widemargin.distributed.matrix import DistributedQP
from widemargin.distributed.partition import ROWS, THREADS
from widemargin.distributed.statements import confusion_of
from widemargin.models import linear
from widemargin.models.elastic_net import refuse_elsewhere
from widemargin.models.solved_model import refuse_not_finite, seed_of
from widemargin.problems.formulations import Intercept
from widemargin.selection import linear_cv
from widemargin.selection.c_path import checked_values
from widemargin.selection.path_result import CPath
from widemargin.selection.useful_range import is_final, useful_range
from widemargin.solvers.cutting_planes.methods import ocas
from widemargin.solvers.finishing import finished
from widemargin.solvers.newton.smoothed import MAX_COLUMNS, NewtonPath


@on_cluster
class LinearSVCCV(ClassifierOnCluster, linear_cv.LinearSVCCV):
    """Linear classification of rows on a Dask cluster, with C chosen by cross-validation.

    The fitted attributes are those of `widemargin.LinearSVCCV`, as arrays in this process.

    Parameters
    ----------
    **parameters
        Those of `widemargin.LinearSVCCV`, with the same defaults. `cv` is the number of folds, by default five.
        `scoring` is a name, or made by `make_scorer`, and must need predictions only; `checkpoint` must be None.
    client : distributed.Client or None, default=None
        The cluster; None is the client that was made last in this process.
    """

    C = 1.0  # multiplies the costs in `_class_costs`; the values of the path are factors

    def _check_parameters(self):
        """Raise ValueError for parameters that are not valid, or not for a cluster."""
        self._validate_params()
        if not (self.cv is None or (isinstance(self.cv, int) and self.cv >= 2)):
            raise ValueError(f"cv must be a number of folds, 2 or more, for rows on a cluster, got {self.cv!r}.")
        if self.checkpoint is not None:
            raise ValueError("checkpoint is not for cross-validation on a cluster; use checkpoint=None.")
        linear.LinearSVC._check_parameters(self)
        refuse_elsewhere(self, "in partitions on a cluster")

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, groups: Any = None) -> Self:
        """Choose C by cross-validation, and keep the model for it that was fitted to all rows.

        The arguments are those of `LinearSVC.fit`; `groups` must be None, since folds are made on the workers.

        Returns
        -------
        self
        """
        if groups is not None:
            raise ValueError("groups is not for rows on a cluster, whose folds are made on the workers; leave it out.")
        return self._fit_on((X, y, sample_weight, None), self._fit_rows)

    def _fit_rows(self, rows):
        self.classes_ = rows.classes
        n_folds, cost = self.cv or 5, self._class_costs(rows)
        constant = self.intercept_scaling if self._intercept is Intercept.PENALISED else 0.0
        matrix = rows.matrix(constant, self.scaling, self.max_memory)
        folds = [None, *((fold, n_folds) for fold in range(n_folds))]
        problems = [DistributedQP.of(matrix, one) for fold in folds for one in self._statements(cost, fold)]
        score = _Scores(self, rows, matrix, n_folds)
        self._keep_path(matrix, *self._solved_path(matrix, problems, score))

    def _solved_path(self, matrix, problems, score):
        """Return the values of C, the solutions of all rows, and the scores and gaps of the folds, for each C."""
        n, seed = self._n_outputs, seed_of(self.random_state)
        grid = useful_range(problems[:n]) if self.Cs is None else checked_values(self.Cs)
        values, wholes, scores, gaps = [], [], [], []
        with reporting(self.verbose) as report, report.solving(len(grid), "values of C") as solving:
            limits = replace(self._settings(report, len(problems)), max_seconds=self.max_seconds,
                             interrupt=threading.Event())  # fmt: skip
            settings = [replace(limits, task=task, seed=(seed, task)) for task in range(len(problems))]
            by_newton = matrix.n_columns <= MAX_COLUMNS and self.solver in ("auto", "newton")
            path = (NewtonPath if by_newton else _PlanesPath)(problems, settings)
            for C in grid:
                solutions = path.solved(C)
                each = zip(problems, solutions, settings, strict=True)
                solutions = [finished(problem.scaled(C), *rest) for problem, *rest in each]
                refuse_not_finite(solutions)
                solutions = [replace(one, beta=None) for one in solutions]
                values.append(C)
                wholes.append(solutions[:n])
                scores.append(score(solutions[n:]))
                gaps.append([max(one.gap for one in solutions[k : k + n]) for k in range(n, len(problems), n)])
                solving.finished(1)
                if limits.interrupt.is_set() or (self.Cs is None and all(map(is_final, solutions[:n]))):
                    break
        return values, wholes, scores, gaps

    def _keep_path(self, X, values, wholes, scores, gaps):
        """Set the fitted attributes."""
        weights = [self._weights_of(whole, X) for whole in wholes]
        path = CPath(
            np.array(values),
            coefs=np.array([coef for coef, _ in weights]),
            intercepts=np.array([intercept for _, intercept in weights]),
            gaps=np.array([max(one.gap for one in whole) for whole in wholes]),
            objectives=np.array([sum(one.primal for one in whole) for whole in wholes]),
            n_iters=np.array([max(one.n_iter for one in whole) for whole in wholes]),
            statuses=np.array([max(whole, key=lambda one: one.gap).status.value for whole in wholes]),
            solver="; ".join(sorted({one.solver for whole in wholes for one in whole})),
            scores=np.array(scores).T,
            fold_gaps=np.array(gaps).T,
            histories=[[one.history for one in whole] for whole in wholes],
            scaling=X.scaling,
        )
        self._keep_best(path)
        self._warn([one for whole in wholes for one in whole])

    def _weights_of(self, solutions, X):
        """Return weights and intercepts of the features as they are, one row for each output."""
        W = np.vstack([one.w for one in solutions])[:, : X.n_features]
        intercepts = np.array([one.intercept for one in solutions])
        return (W, intercepts) if X.scaling is None else X.scaling.weights_of_data(W, intercepts)


class _PlanesPath:
    """The problems of all folds by cutting planes, each from the weights for the previous C."""

    def __init__(self, problems, settings):
        self._problems, self._settings, self._starts = problems, settings, [None] * len(problems)

    def solved(self, factor):
        """Return the Solution of each problem with its costs multiplied by a factor."""
        each = zip(self._problems, self._settings, self._starts, strict=True)
        solutions = [ocas(problem.scaled(factor), own, start) for problem, own, start in each]
        self._starts = [one.w for one in solutions]
        return solutions


class _Scores:
    """Scores the models of all folds on their held-out rows."""

    def __init__(self, model, rows, matrix, n_folds):
        self._group, self._matrix, self._classes, self._n_folds = rows.group, matrix, model.classes_, n_folds
        self._scorer = check_scoring(_Predictions(model.classes_), scoring=model.scoring or "accuracy")

    def __call__(self, solutions):
        """Return the score of each fold."""
        n = len(solutions) // self._n_folds
        weights = []
        for fold in range(self._n_folds):
            own = solutions[fold * n : (fold + 1) * n]
            intercept = [0.0 if self._matrix.constant else one.intercept for one in own]
            weights.append((np.vstack([one.w for one in own]), np.array(intercept), fold))
        counts = self._group.total(confusion_of, ROWS, self._matrix, tuple(weights), self._classes, self._n_folds,
                                   THREADS)  # fmt: skip
        return [self._score(one) for one in counts]

    def _score(self, confusion):
        """Return the score of a confusion matrix: that of one row for each of its entries, with its count as weight."""
        label, predicted = np.nonzero(confusion)
        model = _Predictions(self._classes)
        return float(self._scorer(model, predicted, self._classes[label], sample_weight=confusion[label, predicted]))


class _Predictions(ClassifierMixin, BaseEstimator):
    """A classifier whose rows are the positions of the labels that it predicts."""

    def __init__(self, classes_=None):
        self.classes_ = classes_

    def fit(self, X, y):
        """Return self: nothing is fitted."""
        return self

    def predict(self, X):
        """Return the labels at positions X."""
        return self.classes_[X]
