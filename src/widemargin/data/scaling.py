"""Feature ranges: learned once, in one pass over blocks of rows, and applied anywhere.

Feature j is mapped by the straight line that takes its range to limits which all features share,

    x  →  lower + (upper − lower) (x − low_j) / (high_j − low_j),

and `low_j` and `high_j` are, by method,

    "range"      the least and the largest value                        into [lower, upper]
    "magnitude"  ∓ the largest absolute value                           a factor: 0 stays 0
    "variance"   ∓ the standard deviation                               a factor: 0 stays 0, variance 1
    "standard"   the mean ∓ the standard deviation                      mean 0, variance 1

with `lower` and `upper` −1 and 1 for the last two. So every method is a range file of LIBSVM, which its `svm-scale`
applies too. An entry that is not stored is a zero like any other. A feature that never varies is left out: its values
become 0.

Moments are updated entry by entry (Welford 1962), as distances from the feature's first value, so that nothing is lost
of values far from zero; the zeros that are not stored enter at the end, in one step.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array, issparse

from widemargin._runtime.argument_types import Floats, Rows, SparseMatrix
from widemargin._runtime.compile import compiled
from widemargin.data.matrix import DenseRows, Matrix
from widemargin.data.structure import check_structure

MOST_FEATURES = 1 << 28  # ranges are tables over all columns
_DENSE_ENTRIES = 1 << 18  # of an array, looked at in one go


class LabelRange(NamedTuple):
    """How labels are mapped: those from `low` to `high` into [lower, upper]."""

    lower: float
    upper: float
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class FeatureRanges:
    """One range per feature, and the limits into which it is mapped.

    Made by `learn_ranges` or `read_ranges`.

    Parameters
    ----------
    lower, upper : float
        The limits.
    low, high : ndarray of shape (n_features,)
        The ranges. A feature of which they are equal is left out: its values become 0.
    labels : LabelRange, default=None
        How labels are mapped, if they are.
    """

    lower: float
    upper: float
    low: Floats
    high: Floats
    labels: LabelRange | None = None

    def __post_init__(self) -> None:
        check_limits(self.lower, self.upper)
        if len(self.low) != len(self.high) or not np.all(self.low <= self.high):
            raise ValueError("low must be as long as high, and nowhere above it.")

    @property
    def n_features(self) -> int:
        """Number of features, those left out included."""
        return len(self.low)

    @cached_property
    def kept(self) -> NDArray[np.intp]:
        """Columns that are not left out, rising."""
        return np.flatnonzero(self.low != self.high)

    @cached_property
    def filled(self) -> NDArray[np.intp]:
        """Columns in which 0 does not stay 0, rising: a sparse matrix becomes dense there."""
        return self.kept[self._scale(self.kept, np.zeros(len(self.kept))) != 0.0]

    @overload
    def apply(self, X: SparseMatrix) -> csr_array: ...
    @overload
    def apply(self, X: ArrayLike) -> NDArray[Any]: ...
    def apply(self, X: Any) -> Any:
        """Return X scaled.

        Parameters
        ----------
        X : array or sparse matrix
            As many columns as there are features, or fewer: the others are 0. Values beyond the ranges are mapped
            beyond the limits.

        Returns
        -------
        array, or csr_array of a sparse X, of shape (n_rows, n_features)
            float32 if X is, else float64. Zeros are not stored.
        """
        X = _check_rows(X)
        if X.shape[1] > self.n_features:
            raise ValueError(
                f"X must have at most {self.n_features} columns, those with ranges, got {X.shape[1]}; "
                f"X[:, :{self.n_features}] leaves the others out."
            )
        if issparse(X):
            return self._apply_sparse(X)
        scaled = np.zeros((X.shape[0], self.n_features), dtype=np.float32 if X.dtype == np.float32 else np.float64)
        scaled[:, : X.shape[1]] = X
        start = 0
        for columns, values in _entries(scaled):
            scaled.reshape(-1)[start : start + len(values)] = self._scale(columns, values)
            start += len(values)
        return scaled

    def _apply_sparse(self, X):
        """Return a sparse X scaled; first it is given the zeros that do not stay zeros."""
        rows = Matrix(X).rows
        indices, values, indptr = rows.indices, rows.data, rows.indptr
        if len(self.filled) > 0:
            indices, values, indptr = _store_zeros(rows, self.filled.astype(np.uint32), self.n_features)
        scaled = self._scale(indices, values)
        kept = scaled != 0.0
        kept_before = np.concatenate([[0], np.cumsum(kept)])
        arrays = scaled[kept], indices[kept].view(np.int32), kept_before[indptr]
        result = csr_array(arrays, shape=(X.shape[0], self.n_features))
        result.has_canonical_format = True
        return result

    def _scale(self, columns, values):
        """Return values of the given columns, scaled; of the type of the values."""
        scaled = np.empty(len(values), dtype=values.dtype)
        arrays = _read_only(columns.astype(np.uint32, copy=False), values, self.low, self.high)
        with np.errstate(over="ignore", invalid="ignore"):  # uncompiled, what is looked into below would warn
            _scale_entries(*arrays, (float(self.lower), float(self.upper)), scaled)
        if not np.isfinite(scaled).all():
            k = np.flatnonzero(~np.isfinite(scaled))[0]
            j = columns[k]
            raise ValueError(
                f"column {j}: {values[k]} cannot be scaled by the range from {self.low[j]:g} to {self.high[j]:g}: "
                "the result is no finite number."
            )
        return scaled

    def apply_to_labels(self, y: ArrayLike) -> Floats:
        """Return labels scaled, or as they are if `labels` is None."""
        y = np.asarray(y, dtype=np.float64)
        if self.labels is None:
            return y
        lower, upper, low, high = self.labels
        if low == high:
            if np.any(y != low):
                raise ValueError(f"y must be {low:g} everywhere, the only label the ranges know, got {y[y != low][0]}.")
            return np.full_like(y, lower)
        one = FeatureRanges(lower, upper, np.array([low]), np.array([high]))
        return one._scale(np.zeros(len(y), dtype=np.uint32), y)


def check_limits(lower, upper, names=("lower", "upper")):
    """Refuse limits that are not finite or not in order."""
    with np.errstate(over="ignore"):
        if not (lower < upper and np.isfinite(np.float64(upper) - lower)):
            raise ValueError(f"{names[0]} must be below {names[1]}, both finite, got {lower} and {upper}.")


class Moments(NamedTuple):
    """Of each feature its first value, and how the values other than 0 lie around it."""

    first: np.ndarray
    mean: np.ndarray  # of value − first
    spread: np.ndarray  # the sum of (value − first − mean)²


class FeatureStatistics:
    """What ranges are made of, gathered from blocks of rows: 24 bytes per feature, 48 with moments.

    Parameters
    ----------
    moments : bool, default=False
        Whether to gather mean and variance too, for the methods "variance" and "standard".

    Attributes
    ----------
    n_rows, n_features, n_entries : int
        Of all rows so far; entries are values other than 0.
    """

    def __init__(self, *, moments=False):
        self.moments, self.n_rows, self.n_features = moments, 0, 0
        self._count = np.zeros(0, dtype=np.int64)  # values other than 0 of each feature, whose statistics follow
        self._low, self._high = np.zeros((2, 0))
        self._moments = Moments(*np.zeros((3, 0)))
        self._label_low, self._label_high = np.inf, -np.inf

    @property
    def n_entries(self):
        """Number of values other than 0."""
        return int(self._count.sum())

    def update(self, X, y=None):
        """Take further rows into account, and their labels if there are any; return the statistics."""
        X = _check_rows(X)
        self._grow(X.shape[1])
        for columns, values in _entries(X):
            if not np.isfinite(values).all():
                raise ValueError(f"X must be finite, got {values[~np.isfinite(values)][0]}.")
            with np.errstate(over="ignore", invalid="ignore"):  # uncompiled, moments that overflow would warn
                _note_entries(columns, values, self._count, self._low, self._high, self._moments)
        self.n_rows += X.shape[0]
        if y is not None and len(y) > 0:
            self._label_low, self._label_high = min(self._label_low, np.min(y)), max(self._label_high, np.max(y))
        return self

    def _grow(self, n_features):
        if n_features > MOST_FEATURES:
            raise ValueError(f"X must have at most {MOST_FEATURES} columns to be scaled, got {n_features}.")
        self.n_features = max(self.n_features, n_features)
        if self.n_features > len(self._count):
            room = max(self.n_features, min(2 * len(self._count), MOST_FEATURES))
            self._count, self._low, self._high = (_longer(a, room) for a in (self._count, self._low, self._high))
            if self.moments:
                self._moments = Moments(*(_longer(array, room) for array in self._moments))

    def extremes(self):
        """Return (least, largest) value of each feature."""
        n, some_zeros = self.n_features, self._count[: self.n_features] < self.n_rows
        low, high = self._low[:n], self._high[:n]
        return np.where(some_zeros, np.minimum(low, 0.0), low), np.where(some_zeros, np.maximum(high, 0.0), high)

    def deviations(self):
        """Return (mean, standard deviation) of each feature; a deviation is 0 if and only if no value differs."""
        if not self.moments:
            raise ValueError("deviations need FeatureStatistics(moments=True).")
        low, high = self.extremes()
        count, first, mean, spread = (array[: self.n_features] for array in (self._count, *self._moments))
        mean = first + mean
        part = count / max(self.n_rows, 1)  # of the values, the others are 0
        with np.errstate(over="ignore", invalid="ignore"):
            within = np.sqrt(part * (spread / np.maximum(count, 1)))
            deviation = np.hypot(within, np.sqrt(part * (1.0 - part)) * mean)
        lost = np.flatnonzero((low != high) & ~((deviation > 0.0) & np.isfinite(deviation)))
        if len(lost) > 0:
            j = lost[0]
            span = f"from {low[j]:g} to {high[j]:g}"
            raise ValueError(f'column {j}: values {span} have no variance in double precision; use the method "range".')
        return part * mean, deviation

    def ranges(self, method="range", *, lower=-1.0, upper=1.0, label_limits=None):
        """Return the FeatureRanges of the rows so far; the parameters are those of `learn_ranges`."""
        _check_method(method, lower, upper, label_limits)
        if self.n_rows == 0:
            raise ValueError("there must be at least one row to learn ranges from.")
        low, high = METHODS[method](self)
        constant = np.equal(*self.extremes())
        low[constant] = high[constant] = 0.0
        labels = None
        if label_limits is not None:
            if self._label_high < self._label_low:
                raise ValueError("label_limits need labels: blocks of (X, y, qid).")
            labels = LabelRange(*label_limits, float(self._label_low), float(self._label_high))
        return FeatureRanges(float(lower), float(upper), low, high, labels)

    def n_entries_scaled(self, ranges):
        """Return how many entries the rows have once scaled, at most: values that become 0 are not known."""
        count = self._count[: self.n_features].copy()
        filled = ranges.filled
        count[filled[filled < self.n_features]] = 0
        kept = ranges.kept
        return len(filled) * self.n_rows + int(count[kept[kept < self.n_features]].sum())

    def seen(self):
        """Return the columns that hold a value other than 0, rising."""
        return np.flatnonzero(self._count)

    def varying(self):
        """Return the columns whose values are not all equal, rising."""
        return np.flatnonzero(np.not_equal(*self.extremes()))


def _around_zero(radius):
    return -radius, radius


def _around_mean(statistics):
    mean, deviation = statistics.deviations()
    low, high = mean - deviation, mean + deviation
    lost = np.flatnonzero((deviation > 0.0) & (low >= high))
    if len(lost) > 0:
        j = lost[0]
        raise ValueError(
            f"column {j}: its deviation {deviation[j]:g} is lost beside its mean {mean[j]:g}; "
            'subtract a constant from it, or use the method "range".'
        )
    return low, high


METHODS = {
    "range": FeatureStatistics.extremes,
    "magnitude": lambda statistics: _around_zero(np.maximum(*np.abs(statistics.extremes()))),
    "variance": lambda statistics: _around_zero(statistics.deviations()[1]),
    "standard": _around_mean,
}
NEED_MOMENTS = frozenset({"variance", "standard"})


def _check_method(method, lower, upper, label_limits):
    """Refuse a method and limits that do not go together."""
    if method not in METHODS:
        raise ValueError(f"method must be one of {', '.join(METHODS)}, got {method!r}.")
    check_limits(lower, upper)
    if method == "magnitude" and lower != -upper:
        raise ValueError(f'lower must be −upper for the method "magnitude", got {lower} and {upper}.')
    if method in NEED_MOMENTS and (lower, upper) != (-1, 1):
        raise ValueError(f'lower and upper must be −1 and 1 for the method "{method}", got {lower} and {upper}.')
    if label_limits is not None:
        check_limits(*label_limits, names=("label_limits[0]", "label_limits[1]"))


def learn_ranges(
    rows: Rows | Iterable[Rows | tuple[Rows, ArrayLike, ArrayLike | None]],
    *,
    method: Literal["range", "magnitude", "variance", "standard"] = "range",
    lower: float = -1.0,
    upper: float = 1.0,
    label_limits: tuple[float, float] | None = None,
) -> FeatureRanges:
    """Learn the range of each feature, in one pass.

    Parameters
    ----------
    rows : array, sparse matrix, or iterable of blocks
        All rows, or blocks of them: each a matrix, or a tuple (X, y, qid) as of `SvmlightBlocks`.
    method : {"range", "magnitude", "variance", "standard"}, default="range"
        "range" maps the least value of a feature to `lower` and the largest to `upper`; "magnitude" divides by the
        largest absolute value, then multiplies by `upper`; "variance" divides by the standard deviation (whose
        denominator is the number of rows); "standard" subtracts the mean first. "magnitude" and "variance" keep zeros,
        and with them a sparse matrix sparse.
    lower, upper : float, default=-1 and 1
        Limits of "range"; of "magnitude" `lower` is `-upper`; else they cannot be chosen.
    label_limits : (float, float), default=None
        Limits for the labels, of which the blocks are asked then; None leaves labels as they are.

    Returns
    -------
    FeatureRanges
        To be applied to these or other rows.

    Examples
    --------
    >>> from widemargin.data.scaling import learn_ranges
    >>> import numpy as np
    >>> ranges = learn_ranges(np.array([[0.0, 10.0], [4.0, 30.0]]))
    >>> ranges.apply(np.array([[1.0, 30.0], [6.0, 15.0]]))
    array([[-0.5,  1. ],
           [ 2. , -0.5]])
    """
    _check_method(method, lower, upper, label_limits)
    statistics = FeatureStatistics(moments=method in NEED_MOMENTS)
    blocks: Any = [rows] if hasattr(rows, "shape") else rows
    for block in blocks:
        X, y = block[:2] if isinstance(block, tuple) else (block, None)
        statistics.update(X, y)
    return statistics.ranges(method, lower=lower, upper=upper, label_limits=label_limits)


def _check_rows(X):
    """Return a sparse matrix as it is, anything else as an array of two dimensions."""
    X = X if issparse(X) else np.asarray(X)
    check_structure(X)
    if X.ndim != 2:
        raise ValueError(f"X must have 2 dimensions, got {X.ndim}.")
    return X


def _read_only(*arrays):
    """Return views that cannot be written to: loops are compiled for these alone."""
    views = [array.view() for array in arrays]
    for view in views:
        view.flags.writeable = False
    return views


def _entries(X):
    """Yield (columns, values) of a matrix: the stored entries of a sparse one, some rows of an array at a time."""
    rows = Matrix(X).rows
    if not isinstance(rows, DenseRows):
        yield rows.indices, rows.data
        return
    n_columns = max(X.shape[1], 1)
    n_rows = max(1, _DENSE_ENTRIES // n_columns)
    (columns,) = _read_only(np.tile(np.arange(X.shape[1], dtype=np.uint32), min(n_rows, X.shape[0])))
    for start in range(0, X.shape[0], n_rows):
        values = rows.values[start : start + n_rows].reshape(-1)
        yield columns[: len(values)], values


def _longer(array, length):
    """Return a copy with zeros behind it."""
    longer = np.zeros(length, dtype=array.dtype)
    longer[: len(array)] = array
    return longer


def _store_zeros(rows, columns, n_features):
    """Return (indices, values, indptr) of sparse rows that have an entry in each of the columns, zero if need be."""
    chosen = np.zeros(n_features, dtype=bool)
    chosen[columns] = True
    chosen_before = np.concatenate([[0], np.cumsum(chosen[rows.indices])])
    indptr = rows.indptr.astype(np.int64)
    indptr += np.arange(len(indptr)) * len(columns) - chosen_before[indptr]
    indices, values = np.empty(indptr[-1], dtype=np.uint32), np.empty(indptr[-1], dtype=rows.data.dtype)
    _merge_zeros(rows.indices, rows.data, rows.indptr, columns, indices, values)
    return indices, values, indptr


@compiled
def _note_entries(columns, values, count, low, high, moments):
    """Update the statistics of each column by its values other than 0; no moments if there is no room for them.

    Kept true: count_j is the number of these values so far, and the others are what `Moments` says they are.
    """
    first, mean, spread = moments
    for k in range(len(columns)):
        j, value = columns[k], np.float64(values[k])
        if value == 0.0:
            continue
        low[j] = value if count[j] == 0 else min(low[j], value)
        high[j] = value if count[j] == 0 else max(high[j], value)
        count[j] += 1
        if len(first) > 0:
            if count[j] == 1:
                first[j] = value
            step = value - first[j] - mean[j]
            mean[j] += step / count[j]
            spread[j] += step * (value - first[j] - mean[j])


@compiled
def _merge_zeros(indices, values, indptr, columns, out_indices, out_values):
    """Copy rows one after the other, each with zeros in those of the rising `columns` where it has no entry."""
    place = np.uint64(0)
    for row in range(np.uint64(len(indptr) - 1)):
        k, stop = indptr[row], indptr[row + np.uint64(1)]
        for column in columns:
            while k < stop and indices[k] < column:
                out_indices[place], out_values[place] = indices[k], values[k]
                k += np.uint64(1)
                place += np.uint64(1)
            out_indices[place], out_values[place] = column, 0.0
            if k < stop and indices[k] == column:
                out_values[place] = values[k]
                k += np.uint64(1)
            place += np.uint64(1)
        while k < stop:
            out_indices[place], out_values[place] = indices[k], values[k]
            k += np.uint64(1)
            place += np.uint64(1)


@compiled
def _scale_entries(columns, values, lows, highs, limits, scaled):
    """Scale each value by the range of its column; the ends of a range go to the limits exactly, and zero to zero
    if range and limits lie around it alike."""
    lower, upper = limits
    for k in range(len(columns)):
        x, low, high = np.float64(values[k]), lows[columns[k]], highs[columns[k]]
        if low == high:
            scaled[k] = 0.0
        elif x == low:
            scaled[k] = lower
        elif x == high:
            scaled[k] = upper
        elif low == -high and lower == -upper:
            scaled[k] = upper * (x / high)
        else:
            product, length = (upper - lower) * (x - low), high - low
            if np.isfinite(product) and np.isfinite(length):
                scaled[k] = lower + product / length
            else:
                scaled[k] = lower + (upper - lower) * ((0.5 * x - 0.5 * low) / (0.5 * high - 0.5 * low))
