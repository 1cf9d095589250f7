"""What is stated, and computed, on each partition: the matrix, the problem, and what the client must know of the rows.

These functions are called by commands, on a worker, with the rows of one partition. They are the only ones of this room
that see rows.
"""

from typing import NamedTuple

import numpy as np
from scipy.sparse import issparse

from widemargin.data.blocks.placement import scaled_matrix
from widemargin.data.blocks.row_blocks import RowBlocks
from widemargin.data.blocks.streamed import StreamedMatrix
from widemargin.data.column_scaling import column_statistics
from widemargin.data.matrix import Matrix
from widemargin.kernels.basis_choice import random_rows, rows_at
from widemargin.kernels.values import KernelValues, kernel_blocks
from widemargin.models.cutting_plane.queries import query_ends
from widemargin.models.fixed_basis import largest_norm, scores_on_basis
from widemargin.models.kernel.training_rows import weighted_moments
from widemargin.problems import classification, regression
from widemargin.problems.entropy_risk import total_width
from widemargin.problems.formulations import DualQP, RiskProblem, checksum_of
from widemargin.problems.magnitudes import checked_objective_at_zero
from widemargin.problems.multiclass import CrammerSinger
from widemargin.problems.ranking import PairRisk
from widemargin.problems.row_loss import RowLoss
from widemargin.problems.row_risk import hinges_of


class RowFacts(NamedTuple):
    """What the client knows of the rows of a partition."""

    n_rows: int
    n_features: int
    n_stored: int
    n_bytes: int
    is_sparse: bool
    names: tuple | None
    labels: np.ndarray
    counts: np.ndarray
    weight: float
    check: int
    has_weight: bool


def facts_of(rows, as_labels):
    """Return the RowFacts of a partition; with `as_labels`, its distinct labels, and the rows of positive weight."""
    X, y, weight = rows.X, rows.y, rows.weight
    used = slice(None) if weight is None else weight > 0.0
    labels, counts = np.unique(y, return_counts=True) if as_labels else (np.array([]), np.array([]))
    counts = counts if weight is None or not as_labels else _counts(y[used], labels)
    n_stored = X.nnz if issparse(X) else X.shape[0] * X.shape[1]
    names = None
    n_bytes = X.nbytes if isinstance(X, np.ndarray) else 0
    if issparse(X):
        n_bytes = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
    if isinstance(X, RowBlocks):
        n_stored = round(X.summary.n_stored / max(1, X.summary.n_rows) * len(X))
        names, n_bytes = X.feature_names, X.n_bytes
    total = float(len(y)) if weight is None else float(weight.sum())
    is_sparse = X.layout.is_sparse if isinstance(X, RowBlocks) else issparse(X)
    check = 0 if y.dtype.kind == "O" else checksum_of(y, *([] if weight is None else [weight]))
    numbers = len(y), X.shape[1], n_stored, n_bytes, is_sparse
    return RowFacts(*numbers, names, labels, counts, total, check, weight is not None)


def _counts(y, labels):
    found, counts = np.unique(y, return_counts=True)
    all_counts = np.zeros(len(labels), np.int64)
    all_counts[np.searchsorted(labels, found)] = counts
    return all_counts


def label_numbers(rows, classes):
    """Return the position of the label of each row in `classes`."""
    return np.searchsorted(classes, rows.y).astype(np.min_scalar_type(len(classes)))


def places_of_classes(rows, classes):
    """Return the number of rows of each class, and the first of them; that is the number of all rows without one."""
    label = np.searchsorted(classes, rows.y)
    first = np.full(len(classes), len(label))
    np.minimum.at(first, label, np.arange(len(label)))
    return np.bincount(label, minlength=len(classes)), first


def row_belongings(rows):
    """Return the target, or label, and the weight of each row."""
    return rows.y, rows.weight


def statistics_of(rows):
    """Return the number of rows, and mean, deviation and largest absolute value of each column."""
    parts = (X for X, _ in rows.X) if isinstance(rows.X, RowBlocks) else [rows.X]
    found = column_statistics(parts)
    zeros = np.zeros(rows.X.shape[1])
    return len(rows.y), *(found[name] + zeros for name in ("mean", "deviation", "max_abs"))


def moments_of(rows):
    """Return Σ weight_i, and mean and variance of all values, each row counted by its weight."""
    weight = np.ones(len(rows.y)) if rows.weight is None else rows.weight
    total = float(weight.sum())
    return total, *(weighted_moments(rows.X, weight) if total > 0.0 else (0.0, 0.0))


class MatrixFacts(NamedTuple):
    """What the client knows of the matrix of a partition."""

    longest_row: int
    longest_sum: int
    largest_norm: float
    largest_square: float
    squared_lengths: float


def matrix_of(rows, constant, scaling, memory_per_byte):
    """Return the matrix of a partition; rows of files are kept in memory as far as the given share of it goes.

    Rows of files are always a StreamedMatrix, whose sums do not depend on how much is kept.
    """
    if isinstance(rows.X, RowBlocks):
        return StreamedMatrix(rows.X, constant, memory_per_byte * rows.X.n_bytes, scaling)
    return Matrix(rows.X, constant) if scaling is None else scaled_matrix(rows.X, constant, scaling)


def matrix_on(rows, constant, how, memory_per_byte, basis, dtype):
    """Return the matrix of the features of a partition on a Basis; `how` is its BasisMap for all partitions.

    Kernel values are of this type, and are computed when a pass needs them; the given share of them is kept in memory.
    """
    if not len(rows.y):
        return Matrix(np.zeros((0, len(basis))), constant)
    return _FeatureMatrix(rows.X, KernelValues(basis.kernel, basis.vectors, dtype), constant, memory_per_byte, how)


class _FeatureMatrix(StreamedMatrix):
    """The features of rows on a basis, from their KernelValues."""

    def __init__(self, rows, values, constant, memory_per_byte, how):
        blocks = kernel_blocks(rows, values)
        super().__init__(blocks, constant, memory_per_byte * blocks.n_bytes, how)
        self._rows_of_values, self._values = rows, values

    def sample(self, n_rows, seed):
        """Return a random sample of rows, ascending, and the matrix of their features; whatever memory there is."""
        chosen = np.sort(np.random.default_rng(seed).choice(self.n_rows, n_rows, replace=False))
        blocks = kernel_blocks(rows_at(self._rows_of_values, chosen), self._values)
        return chosen, StreamedMatrix(blocks, self.constant, np.inf, self.scaling)


def norm_of(rows):
    """Return a bound of the squared norms of the rows of a partition."""
    return float(largest_norm(rows.X)[0]) if len(rows.y) else 0.0


def rows_for_points(rows, share, seed):
    """Return a random sample of the rows of a partition, from which basis points are chosen."""
    n_rows = min(len(rows.y), int(share * len(rows.y)) + 1)
    return random_rows(rows.X, n_rows, np.random.default_rng((seed, rows.number)))


def scores_on(rows, kernel, vectors, coefficients, n_jobs):
    """Return the scores of a partition by a function of basis points."""
    if not len(rows.y):
        return np.zeros((0, len(coefficients)))
    return scores_on_basis(kernel, vectors, coefficients, rows.X, n_jobs)


def matrix_facts(X, n_jobs):
    """Return the MatrixFacts of a partition."""
    largest = (float(norms.max(initial=0.0)) for norms in (X.squared_norms(n_jobs), X.row_squares(n_jobs)))
    return MatrixFacts(X.longest_row, X.longest_sum, *largest, X.squared_lengths * X.n_rows)


# --- Problems ---------------------------------------------------------------------------------------------------------


class ClassStatement(NamedTuple):
    """A class against the rest: the labels, the cost of a row of each class, the positive class, the loss.

    `fold` is None, or the number of the fold that is held out, and how many there are.
    """

    classes: np.ndarray
    cost: np.ndarray
    positive: int
    loss: str | RowLoss
    free_intercept: bool
    fold: tuple[int, int] | None = None
    dual_sum: float = 0.0

    @property
    def entropy(self):
        """The entropy of the loss; 0 if it has none."""
        return classification.ENTROPIES.get(self.loss, 0.0)

    def problem(self, rows, X):
        """Return the DualQP of a partition."""
        label = np.searchsorted(self.classes, rows.y)
        weight = 1.0 if rows.weight is None else rows.weight
        cost = self.cost[label] * weight
        if self.fold is not None:
            cost = np.where(fold_of_rows(label, self.fold[1]) == self.fold[0], 0.0, cost)
        sign = np.where(label == self.positive, 1.0, -1.0)
        state = self.loss.classification if isinstance(self.loss, RowLoss) else classification.LOSSES[self.loss]
        return state(X, sign, cost, free_intercept=self.free_intercept)


class AllClassesStatement(NamedTuple):
    """All classes at once: the labels, and the cost of a row of each class."""

    classes: np.ndarray
    cost: np.ndarray

    def problem(self, rows, X):
        """Return the RiskProblem of a partition."""
        label = np.searchsorted(self.classes, rows.y)
        cost = self.cost[label] * (1.0 if rows.weight is None else rows.weight)
        return CrammerSinger(X, label, cost, len(self.classes)).as_risk()


class RegressionStatement(NamedTuple):
    """A regression: the cost of a row, the tube, the loss, which has no entropy."""

    C: float
    epsilon: float
    loss: str | RowLoss
    free_intercept: bool
    entropy: float = 0.0
    dual_sum: float = 0.0

    def problem(self, rows, X):
        """Return the DualQP of a partition."""
        cost = np.full(len(rows.y), self.C) if rows.weight is None else self.C * rows.weight
        state = self.loss.regression if isinstance(self.loss, RowLoss) else regression.LOSSES[self.loss]
        return state(X, rows.y, cost, self.epsilon, free_intercept=self.free_intercept)


class OneClassStatement(NamedTuple):
    """A one-class machine: the sum of the dual variables of all partitions."""

    dual_sum: float
    free_intercept: bool = True
    entropy: float = 0.0

    def problem(self, rows, X):
        """Return the DualQP of a partition, whose own dual variables may have any sum."""
        weight = np.ones(len(rows.y)) if rows.weight is None else rows.weight
        zeros = np.zeros(len(weight))
        return DualQP(X, zeros, zeros, np.ascontiguousarray(weight), zeros, zeros, free_intercept=True)


def even_weights(problem, fraction, n_jobs):
    """Return X'beta of a partition, where beta are a fraction of the upper bounds."""
    return problem.X.combine(np.minimum(fraction * problem.upper, problem.upper), n_jobs)


def weighted_squares(problem):
    """Return Σ upper_i |x_i|² of a partition."""
    return float(problem.upper @ problem.X.row_squares())


class PairStatement(NamedTuple):
    """Pairs of rows of the same query: C, and the number of pairs of all partitions."""

    C: float
    n_pairs: int

    def problem(self, rows, X):
        """Return the RiskProblem of a partition."""
        risk = _pair_risk(rows, self.C)
        return RiskProblem(X, risk.as_part_of(self.n_pairs, self.C))


def stated(statement, rows, X):
    """Return the problem of a partition."""
    return statement.problem(rows, X)


def scale_of(problem):
    """Return the factor by which the risk of a partition multiplies a mean loss."""
    return problem.scale


def _pair_risk(rows, C):
    return PairRisk(rows.y, query_ends(rows.qid, len(rows.y)), C)


def pairs_of(rows):
    """Return the number of pairs of rows of different targets within queries, and the queries; None without any."""
    if rows.qid is None:
        return 0, None
    return _pair_risk(rows, 1.0).n_pairs if len(rows.y) else 0, np.unique(rows.qid)


def fold_of_rows(label, n_folds):
    """Return the fold of each row: rows of each class take turns, so that folds are stratified."""
    fold = np.empty(len(label), np.int64)
    for one in np.unique(label):
        mine = np.flatnonzero(label == one)
        fold[mine] = np.arange(len(mine)) % n_folds
    return fold


class ProblemFacts(NamedTuple):
    """What the client knows of the problem of a partition: kinds of losses, and sums and largest numbers.

    `weight` is the sum of the weights of all hinges, or of the costs of losses with an entropy, `objective_at_zero`
    that of the losses at w = 0, or a bound of it; `largest` are |target|, epsilon, the finite bounds of dual variables,
    and 1 / curvature.
    """

    is_squared: bool
    is_made_of_hinges: bool
    weight: float
    objective_at_zero: float
    largest: np.ndarray


def problem_facts(problem):
    """Return the ProblemFacts of a partition, after a check of its numbers; norms are checked by the client."""
    at_zero = checked_objective_at_zero(problem, np.zeros(0))
    is_hinges, is_squared = problem.is_made_of_hinges, problem.is_squared
    weight = float(np.abs(hinges_of(problem, is_squared).signed_weight).sum()) if is_hinges else 0.0
    weight = total_width(problem) if problem.entropy else weight
    bound = np.maximum(np.abs(problem.lower), np.abs(problem.upper))
    curved = problem.curvature[problem.curvature > 0.0]
    largest = [np.abs(problem.target), problem.epsilon, bound[np.isfinite(bound)], 1.0 / curved]
    numbers = np.array([part.max(initial=0.0) for part in largest])
    return ProblemFacts(is_squared, is_hinges, weight, at_zero, numbers)


def sample_of(rows, problem, share, seed):
    """Return a random sample of the rows of a partition, as an array or CSR matrix, and the numbers of its DualQP.

    If its columns are features on a basis, the rows are kernel values. None if the partition is empty.
    """
    if not problem.X.n_rows:
        return None
    n_rows = max(1, round(share * problem.X.n_rows))
    chosen, part = problem.X.sample(n_rows, (*np.atleast_1d(seed), rows.number))
    is_in_blocks = isinstance(rows.X, RowBlocks) or isinstance(problem.X, _FeatureMatrix)
    X = part.blocks.to_memory() if is_in_blocks else rows.X[chosen]
    arrays = (problem.target, problem.lower, problem.upper, problem.curvature, problem.epsilon)
    return X, *(np.ascontiguousarray(array[chosen]) for array in arrays)


def scores_of(X, w, n_jobs):
    """Return X w of a partition, for risks that need the scores of all rows at one place."""
    return X.scores(w, n_jobs)


def combination_of(rows, X, parts, n_jobs):
    """Return X'c of a partition; `parts` are the c of all partitions."""
    return X.combine(parts[rows.number], n_jobs)


def confusion_of(rows, X, weights, classes, n_folds, n_jobs):
    """Return how many held-out rows of each class are predicted as each class, by fold, and by model.

    `weights` are W (n_outputs, n_columns) and intercepts of each model of each fold.
    """
    label = np.searchsorted(classes, rows.y)
    fold, counts = fold_of_rows(label, n_folds), []
    for W, intercept, held_out in weights:
        scores = X.scores_of_all(W, n_jobs) + np.reshape(intercept, (-1, 1))
        predicted = (scores[0] > 0.0).astype(np.int64) if len(scores) == 1 else scores.argmax(axis=0)
        mine = fold == held_out
        pairs = label[mine] * len(classes) + predicted[mine]
        counts.append(np.bincount(pairs, minlength=len(classes) ** 2).reshape(len(classes), -1))
    return np.array(counts)
