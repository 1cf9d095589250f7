"""Summary statistics of a data set: labels, features, repeated rows and queries, in a few passes over the data.

Features are numbered as in the file, from `first_index`. Rows are named by their line numbers, if these are given.
"""

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from widemargin._runtime.compile import compiled
from widemargin.data.matrix import Matrix
from widemargin.data.precomputed_rows import is_kernel
from widemargin.data.repeats import Repeats, find_repeats

_LISTED_FEATURES = 5  # features named in each list of the summary
_FEW_CLASSES = 10  # up to so many distinct whole labels are classes
_MAX_CLASSES, _ROWS_PER_CLASS = 1000, 10  # and up to so many, if they have so many rows each on average
_LARGEST_EXACT_INTEGER = 2.0**53  # every whole number up to this is a double
_ROWS_BEYOND_CHANCE = 10  # rows needed, beyond log2 of the number of features, to call a feature a copy of the label
_COPY_CORRELATION = 1.0 - 1e-9  # squared correlation with the label from which on a feature is a copy of it


@dataclass(frozen=True)
class Labels:
    """The distribution of the labels.

    `classes` holds (label, count) pairs by ascending label; it is None if the labels are regression targets.
    """

    n_distinct: int
    are_whole: bool
    smallest: float
    largest: float
    mean: float
    spread: float  # standard deviation
    classes: tuple | None


@dataclass(frozen=True)
class Features:
    """Statistics of the features, where a value that is not stored is 0. Tuples of features hold the first few only.

    `constant` features have the same value in every row, `absent` ones have no stored value, and `label_copies` are
    affine functions of the label. `widest` and `narrowest` are (range, feature) among the features that are not
    constant, `largest` is (absolute value, feature); they are None if there is no such feature.
    """

    n_constant: int
    constant: tuple
    n_absent: int
    absent: tuple
    largest: tuple | None
    widest: tuple | None
    narrowest: tuple | None
    median_range: float
    label_copies: tuple


@dataclass(frozen=True)
class Queries:
    """Sizes of the queries, and how many are scattered over the file or have the same label in all rows (flat)."""

    n_queries: int
    smallest: int
    median: float
    largest: int
    n_scattered: int
    first_scattered: tuple | None  # (query, line in which it occurs again after other queries)
    n_flat: int


@dataclass(frozen=True)
class Summary:
    """Summary statistics of a data set; the fields are described in `summarise`."""

    n_rows: int
    n_features: int
    first_index: int
    n_entries: int
    density: float
    n_zeros: int
    n_empty: int
    n_first_index: int
    has_unit_rows: bool
    is_kernel: bool
    labels: Labels
    features: Features
    repeats: Repeats
    queries: Queries | None


@np.errstate(over="ignore", invalid="ignore")  # sums of very large values become infinite and are reported so
def summarise(X, y, qid=None, *, task=None, first_index=1, lines=None):
    """Summarise a data set.

    Parameters
    ----------
    X : array or sparse matrix of shape (n_rows, n_features)
        Finite, with at least one row.
    y : array of shape (n_rows,)
        Labels.
    qid : array of shape (n_rows,), default=None
        Queries, integers.
    task : {"classification", "regression"}, default=None
        Whether labels are classes or regression targets; None decides by `are_classes`.
    first_index : int, default=1
        The index of the first column in the file.
    lines : array of shape (n_rows,), default=None
        Line numbers of the rows; None numbers them from 1.

    Returns
    -------
    summary : Summary
        `n_entries` is the number of stored values, `density` is n_entries / (n_rows n_features), and `n_zeros` is the
        number of stored zeros. `n_empty` rows have no value other than 0. `n_first_index` rows have an entry in the
        first column. `has_unit_rows` says that nearly all rows have norm 1, so that the data is scaled already.
        `is_kernel` says that the rows look like LIBSVM's format of precomputed kernels.
    """
    if task not in (None, "classification", "regression"):
        raise ValueError(f'task must be "classification", "regression" or None, got {task!r}.')
    matrix, y = Matrix(csr_array(X, dtype=np.float64)), np.asarray(y, dtype=np.float64)
    rows, X, n_cells = matrix.rows, matrix.values, matrix.n_rows * matrix.n_features
    lines = np.arange(1, len(y) + 1) if lines is None else np.asarray(lines)
    squared_norms, n_values = np.empty(len(y)), np.empty(len(y), np.int64)
    _measure_rows(rows.data, rows.indptr, squared_norms, n_values)
    near_one = np.abs(squared_norms[n_values > 0] - 1.0) < 0.01
    return Summary(
        n_rows=len(y),
        n_features=X.shape[1],
        first_index=first_index,
        n_entries=len(rows.data),
        density=len(rows.data) / n_cells if n_cells else 0.0,
        n_zeros=len(rows.data) - int(n_values.sum()),
        n_empty=int(np.sum(n_values == 0)),
        n_first_index=int(np.sum(rows.indices == 0)),
        has_unit_rows=len(near_one) > 0 and bool(near_one.mean() > 0.99),
        is_kernel=first_index == 0 and is_kernel(X),
        labels=summarise_labels(y, task),
        features=_summarise_features(rows, X.shape, y, first_index),
        repeats=find_repeats(rows, y, qid, lines),
        queries=None if qid is None else summarise_queries(np.asarray(qid), y, lines),
    )


def are_classes(y):
    """Return whether labels look like classes: whole numbers, at most ten distinct ones, or ten rows for each."""
    return _look_like_classes(np.unique(y), len(y))


def _look_like_classes(distinct, n_rows):
    limit = max(_FEW_CLASSES, min(_MAX_CLASSES, n_rows // _ROWS_PER_CLASS))
    return len(distinct) <= limit and _are_whole(distinct)


def _are_whole(labels):
    return bool(np.all((labels == np.round(labels)) & (np.abs(labels) <= _LARGEST_EXACT_INTEGER)))


def summarise_labels(y, task):
    """Return the Labels of a task; if it is None, it is guessed from the labels."""
    distinct, counts = np.unique(y, return_counts=True)
    classes, whole = None, _are_whole(distinct)
    if task == "classification" or (task is None and _look_like_classes(distinct, len(y))):
        names = distinct.astype(np.int64) if whole else distinct
        classes = tuple(zip(names.tolist(), counts.tolist(), strict=True))
    ends = float(distinct[0]), float(distinct[-1])
    return Labels(len(distinct), whole, *ends, float(np.mean(y)), float(np.std(y)), classes)


def _summarise_features(rows, shape, y, first_index):
    """Return the Features of sparse rows."""
    n_rows, n_features = shape
    columns, present = _compact(rows.indices, n_features)
    counts, sums = np.zeros(len(present), np.int64), np.zeros(len(present))
    low, high = np.full(len(present), np.inf), np.full(len(present), -np.inf)
    _measure_columns(columns, rows.data, counts, sums, low, high)
    not_full = counts < n_rows
    low[not_full], high[not_full] = np.minimum(low[not_full], 0.0), np.maximum(high[not_full], 0.0)
    ranges, largest = high - low, np.maximum(-low, high)
    varied = np.flatnonzero((ranges > 0) & (counts > 0))
    constant = np.flatnonzero((ranges == 0) & (counts > 0))
    absent = _absent(present[counts > 0], n_features)
    copies = _label_copies(rows, columns, y, (counts, sums / n_rows, varied))

    def extreme(numbers, k):
        return float(numbers[k]), int(present[k]) + first_index

    return Features(
        n_constant=len(constant),
        constant=tuple((present[constant[:_LISTED_FEATURES]] + first_index).tolist()),
        n_absent=n_features - int(np.sum(counts > 0)),
        absent=tuple((absent + first_index).tolist()),
        largest=extreme(largest, np.argmax(largest)) if len(rows.data) else None,
        widest=extreme(ranges, varied[np.argmax(ranges[varied])]) if len(varied) else None,
        narrowest=extreme(ranges, varied[np.argmin(ranges[varied])]) if len(varied) else None,
        median_range=float(np.median(ranges[varied])) if len(varied) else 0.0,
        label_copies=tuple((present[copies[:_LISTED_FEATURES]] + first_index).tolist()),
    )


def _compact(indices, n_features):
    """Return (column number of each entry, column of each number); empty columns are skipped if there are very many."""
    if n_features <= 2 * len(indices) + (1 << 20):
        return indices, np.arange(n_features)
    present, columns = np.unique(indices, return_inverse=True)
    return columns.astype(np.uint32), present.astype(np.int64)


def _absent(present, n_features):
    """Return the first `_LISTED_FEATURES` columns that are not in `present`."""
    candidates = np.ones(min(n_features, len(present) + _LISTED_FEATURES), bool)
    candidates[present[present < len(candidates)]] = False
    return np.flatnonzero(candidates)[:_LISTED_FEATURES]


def _label_copies(rows, columns, y, moments):
    """Return the columns that are affine functions of the label; none if there are so few rows that this is chance."""
    counts, means, varied = moments
    target = y - y.mean()
    length = np.sqrt(np.sum(target**2))
    if len(y) < _ROWS_BEYOND_CHANCE + np.log2(len(counts) + 1) or not 0 < length < np.inf:
        return np.empty(0, np.intp)
    squares, products, covered = np.zeros((3, len(counts)))
    target /= length
    _correlate_columns(rows.indptr, columns, rows.data, target, means, squares, products, covered)
    squares += (len(y) - counts) * means**2  # the contribution of rows without an entry
    products += means * covered
    return varied[products[varied] ** 2 >= _COPY_CORRELATION * squares[varied]]


def summarise_queries(qid, y, lines):
    """Return the statistics of the queries."""
    _, group, sizes = np.unique(qid, return_inverse=True, return_counts=True)
    begins = np.flatnonzero(np.concatenate([[True], qid[1:] != qid[:-1]]))
    _, first_begins, n_pieces = np.unique(group[begins], return_index=True, return_counts=True)
    again = begins[np.delete(np.arange(len(begins)), first_begins)]
    low, high = np.full(len(sizes), np.inf), np.full(len(sizes), -np.inf)
    np.minimum.at(low, group, y)
    np.maximum.at(high, group, y)
    return Queries(
        n_queries=len(sizes),
        smallest=int(sizes.min()),
        median=float(np.median(sizes)),
        largest=int(sizes.max()),
        n_scattered=int(np.sum(n_pieces > 1)),
        first_scattered=(int(qid[again[0]]), int(lines[again[0]])) if len(again) else None,
        n_flat=int(np.sum(low == high)),
    )


@compiled
def _measure_rows(data, indptr, squared_norms, n_values):
    """Set the squared norm of each row, and its number of nonzero values."""
    for i in range(n_values.size):
        total, n = 0.0, 0
        for k in range(indptr[i], indptr[i + 1]):
            total += data[k] * data[k]
            n += data[k] != 0.0
        squared_norms[i], n_values[i] = total, n


@compiled
def _measure_columns(columns, data, counts, sums, low, high):
    """Update number, sum, smallest and largest value of the entries of each column."""
    for k in range(data.size):
        j, value = columns[k], data[k]
        counts[j] += 1
        sums[j] += value
        low[j] = min(low[j], value)
        high[j] = max(high[j], value)


@compiled
def _correlate_columns(indptr, columns, data, target, means, squares, products, covered):
    """Add Σ (x − mean)², Σ (x − mean) target and Σ target over the entries x of each column."""
    for i in range(target.size):
        for k in range(indptr[i], indptr[i + 1]):
            j = columns[k]
            deviation = data[k] - means[j]
            squares[j] += deviation * deviation
            products[j] += deviation * target[i]
            covered[j] += target[i]
