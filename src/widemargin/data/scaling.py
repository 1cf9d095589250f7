"""Feature scaling by ranges, which are learned in one pass over blocks of rows and can be applied to other rows.

Feature j is mapped by the affine function that takes its range to limits common to all features,

    x  →  lower + (upper − lower) (x − low_j) / (high_j − low_j),

where `low_j` and `high_j` depend on the method:

    method       low_j, high_j                                          effect
    "range"      the smallest and the largest value                     values in [lower, upper]
    "magnitude"  ∓ the largest absolute value                           multiplication by a factor: 0 stays 0
    "variance"   ∓ the standard deviation                               a factor: 0 stays 0, variance 1
    "standard"   the mean ∓ the standard deviation                      mean 0, variance 1

For the last two, `lower` and `upper` are −1 and 1. Every method can therefore be stored as a range file of LIBSVM,
which its `svm-scale` can apply too. Values that are not stored are zeros like any other. A feature with the same value
in every row is removed: its values become 0.

Means and variances are updated value by value (B. P. Welford, Technometrics 4, 1962), relative to the first value of
the feature, so that no digits are lost if all values are far from zero. Zeros that are not stored are added at the
end, in one step.
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
from widemargin.data.matrix import Matrix
from widemargin.data.rows import DenseRows
from widemargin.data.structure import check_structure

MAX_FEATURES = 1 << 28  # limit of the number of columns, since ranges are arrays over all columns
_DENSE_VALUES_PER_PASS = 1 << 18  # values of a dense array that are processed at a time


class LabelRange(NamedTuple):
    """The scaling of labels, which maps [low, high] to [lower, upper]."""

    lower: float
    upper: float
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class FeatureRanges:
    """The range of each feature, and the limits to which ranges are mapped; from `learn_ranges` or `read_ranges`.

    Parameters
    ----------
    lower, upper : float
        The limits.
    low, high : ndarray of shape (n_features,)
        The ranges. A feature with low = high is removed: its values become 0.
    labels : LabelRange, default=None
        The scaling of the labels; None if they are not scaled.

    Examples
    --------
    >>> import numpy as np
    >>> from widemargin import FeatureRanges
    >>> FeatureRanges(-1.0, 1.0, low=np.array([0.0]), high=np.array([4.0])).apply(np.array([[1.0]]))
    array([[-0.5]])
    """

    lower: float
    upper: float
    low: Floats
    high: Floats
    labels: LabelRange | None = None

    def __post_init__(self) -> None:
        check_limits(self.lower, self.upper)
        if len(self.low) != len(self.high) or not np.all(self.low <= self.high):
            raise ValueError("low and high must have the same length, and low <= high for every feature.")

    @property
    def n_features(self) -> int:
        """Number of features, including removed ones."""
        return len(self.low)

    @cached_property
    def kept(self) -> NDArray[np.intp]:
        """Columns that are not removed, ascending."""
        return np.flatnonzero(self.low != self.high)

    @cached_property
    def filled(self) -> NDArray[np.intp]:
        """Columns in which 0 is mapped to another value, ascending; a sparse matrix becomes dense in these columns."""
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
            With at most `n_features` columns; missing columns are 0. Values outside of the ranges are mapped to values
            outside of the limits.

        Returns
        -------
        array, or csr_array of a sparse X, of shape (n_rows, n_features)
            float32 if X is float32, else float64. Zeros are not stored in a sparse result.
        """
        X = _check_rows(X)
        if X.shape[1] > self.n_features:
            raise ValueError(
                f"X must have at most {self.n_features} columns, as many as there are ranges, got {X.shape[1]}; "
                f"use X[:, :{self.n_features}] to leave the others out."
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
        """Return a sparse X scaled; zeros that are mapped to other values are stored first."""
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
        """Return the scaled values of entries in the given columns, with the type of `values`."""
        scaled = np.empty(len(values), dtype=values.dtype)
        arrays = _read_only(columns.astype(np.uint32, copy=False), values, self.low, self.high)
        with np.errstate(over="ignore", invalid="ignore"):  # checked below; uncompiled code would warn
            _scale_entries(*arrays, (float(self.lower), float(self.upper)), scaled)
        if not np.isfinite(scaled).all():
            k = np.flatnonzero(~np.isfinite(scaled))[0]
            j = columns[k]
            raise ValueError(
                f"column {j}: {values[k]} cannot be scaled by the range from {self.low[j]:g} to {self.high[j]:g}: "
                "the result is not finite."
            )
        return scaled

    def apply_to_labels(self, y: ArrayLike) -> Floats:
        """Return scaled labels, or the labels themselves if `labels` is None."""
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
    """Raise ValueError unless lower < upper and both are finite."""
    with np.errstate(over="ignore"):
        if not (lower < upper and np.isfinite(np.float64(upper) - lower)):
            raise ValueError(f"{names[0]} must be below {names[1]}, both finite, got {lower} and {upper}.")


class Moments(NamedTuple):
    """First value, mean and sum of squared deviations of the nonzero values of each feature."""

    first: np.ndarray
    mean: np.ndarray  # of value − first
    squares: np.ndarray  # Σ (value − first − mean)²


class FeatureStatistics:
    """Statistics from which ranges are computed, updated by blocks of rows; 24 bytes per feature, 48 with moments.

    Parameters
    ----------
    moments : bool, default=False
        Whether to compute means and variances too, for the methods "variance" and "standard".

    Attributes
    ----------
    n_rows, n_features, n_entries : int
        Of all rows so far; entries are nonzero values.
    """

    def __init__(self, *, moments=False):
        self.moments, self.n_rows, self.n_features = moments, 0, 0
        self._count = np.zeros(0, dtype=np.int64)  # number of nonzero values of each feature
        self._low, self._high = np.zeros((2, 0))  # these and the moments are of the nonzero values
        self._moments = Moments(*np.zeros((3, 0)))
        self._label_low, self._label_high = np.inf, -np.inf

    @property
    def n_entries(self):
        """Number of nonzero values."""
        return int(self._count.sum())

    def update(self, X, y=None):
        """Update the statistics by further rows, and their labels if they are given; return self."""
        X = _check_rows(X)
        self._grow(X.shape[1])
        for columns, values in _entries(X):
            if not np.isfinite(values).all():
                raise ValueError(f"X must be finite, got {values[~np.isfinite(values)][0]}.")
            with np.errstate(over="ignore", invalid="ignore"):  # moments may overflow; uncompiled code would warn
                _update_statistics(columns, values, self._count, self._low, self._high, self._moments)
        self.n_rows += X.shape[0]
        if y is not None and len(y) > 0:
            self._label_low, self._label_high = min(self._label_low, np.min(y)), max(self._label_high, np.max(y))
        return self

    def _grow(self, n_features):
        if n_features > MAX_FEATURES:
            raise ValueError(f"X must have at most {MAX_FEATURES} columns to be scaled, got {n_features}.")
        self.n_features = max(self.n_features, n_features)
        if self.n_features > len(self._count):
            length = max(self.n_features, min(2 * len(self._count), MAX_FEATURES))
            self._count, self._low, self._high = (_longer(a, length) for a in (self._count, self._low, self._high))
            if self.moments:
                self._moments = Moments(*(_longer(array, length) for array in self._moments))

    def extremes(self):
        """Return the smallest and the largest value of each feature, zeros included."""
        n, has_zeros = self.n_features, self._count[: self.n_features] < self.n_rows
        low, high = self._low[:n], self._high[:n]
        return np.where(has_zeros, np.minimum(low, 0.0), low), np.where(has_zeros, np.maximum(high, 0.0), high)

    def deviations(self):
        """Return mean and standard deviation of each feature; a deviation is 0 if and only if all values are equal."""
        if not self.moments:
            raise ValueError("deviations need FeatureStatistics(moments=True).")
        low, high = self.extremes()
        count, first, mean, squares = (array[: self.n_features] for array in (self._count, *self._moments))
        mean = first + mean
        part = count / max(self.n_rows, 1)  # the fraction of nonzero values
        with np.errstate(over="ignore", invalid="ignore"):
            within = np.sqrt(part * (squares / np.maximum(count, 1)))
            deviation = np.hypot(within, np.sqrt(part * (1.0 - part)) * mean)
        failed = np.flatnonzero((low != high) & ~((deviation > 0.0) & np.isfinite(deviation)))
        if len(failed) > 0:
            j = failed[0]
            raise ValueError(
                f"column {j}: the variance of values from {low[j]:g} to {high[j]:g} underflows or overflows in double "
                'precision; use the method "range".'
            )
        return part * mean, deviation

    def ranges(self, method="range", *, lower=-1.0, upper=1.0, label_limits=None):
        """Return the FeatureRanges of all rows so far; the parameters are those of `learn_ranges`."""
        _check_method(method, lower, upper, label_limits)
        if self.n_rows == 0:
            raise ValueError("there must be at least one row to learn ranges from.")
        low, high = METHODS[method](self)
        constant = np.equal(*self.extremes())
        low[constant] = high[constant] = 0.0
        labels = None
        if label_limits is not None:
            if self._label_high < self._label_low:
                raise ValueError("label_limits need labels: give blocks (X, y, qid).")
            labels = LabelRange(*label_limits, float(self._label_low), float(self._label_high))
        return FeatureRanges(float(lower), float(upper), low, high, labels)

    def n_entries_scaled(self, ranges):
        """Return how many entries the scaled rows have at most; the bound ignores that values may become 0."""
        count = self._count[: self.n_features].copy()
        filled = ranges.filled
        count[filled[filled < self.n_features]] = 0
        kept = ranges.kept
        return len(filled) * self.n_rows + int(count[kept[kept < self.n_features]].sum())

    def seen(self):
        """Return the columns that have a nonzero value, ascending."""
        return np.flatnonzero(self._count)

    def varying(self):
        """Return the columns whose values are not all equal, ascending."""
        return np.flatnonzero(np.not_equal(*self.extremes()))


def _around_zero(radius):
    return -radius, radius


def _around_mean(statistics):
    mean, deviation = statistics.deviations()
    low, high = mean - deviation, mean + deviation
    rounded_away = np.flatnonzero((deviation > 0.0) & (low >= high))
    if len(rounded_away) > 0:
        j = rounded_away[0]
        raise ValueError(
            f"column {j}: the standard deviation {deviation[j]:g} is too small compared with the mean {mean[j]:g}; "
            'subtract a constant from the column, or use the method "range".'
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
    """Raise ValueError unless the method exists and allows these limits."""
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
        All rows, or blocks of them, each a matrix or a tuple (X, y, qid) as from `SvmlightBlocks`.
    method : {"range", "magnitude", "variance", "standard"}, default="range"
        "range" maps the smallest value of a feature to `lower` and the largest to `upper`. "magnitude" divides by the
        largest absolute value and multiplies by `upper`. "variance" divides by the standard deviation (with the number
        of rows as the denominator). "standard" subtracts the mean first. "magnitude" and "variance" keep zeros, so
        that a sparse matrix stays sparse.
    lower, upper : float, default=-1 and 1
        Limits of "range". For "magnitude", `lower` must be `-upper`; for the other methods they must be -1 and 1.
    label_limits : (float, float), default=None
        Limits of the labels; the blocks must contain labels then. None does not scale labels.

    Returns
    -------
    FeatureRanges
        Its method `apply` scales these or other rows.

    Examples
    --------
    >>> import numpy as np
    >>> from widemargin import learn_ranges
    >>> learn_ranges(np.array([[0.0, 10.0], [4.0, 30.0]])).apply(np.array([[1.0, 30.0]]))
    array([[-0.5,  1. ]])
    """
    _check_method(method, lower, upper, label_limits)
    statistics = FeatureStatistics(moments=method in NEED_MOMENTS)
    blocks: Any = [rows] if hasattr(rows, "shape") else rows
    for block in blocks:
        X, y = block[:2] if isinstance(block, tuple) else (block, None)
        statistics.update(X, y)
    return statistics.ranges(method, lower=lower, upper=upper, label_limits=label_limits)


def _check_rows(X):
    """Return a valid sparse matrix unchanged, and anything else as an array; refuse what is not two-dimensional."""
    X = X if issparse(X) else np.asarray(X)
    check_structure(X)
    if X.ndim != 2:
        raise ValueError(f"X must have 2 dimensions, got {X.ndim}.")
    return X


def _read_only(*arrays):
    """Return read-only views, for which the compiled loops are compiled."""
    views = [array.view() for array in arrays]
    for view in views:
        view.flags.writeable = False
    return views


def _entries(X):
    """Yield (columns, values): all stored entries of a sparse matrix, or those of some rows of an array at a time."""
    rows = Matrix(X).rows
    if not isinstance(rows, DenseRows):
        yield rows.indices, rows.data
        return
    n_columns = max(X.shape[1], 1)
    n_rows = max(1, _DENSE_VALUES_PER_PASS // n_columns)
    (columns,) = _read_only(np.tile(np.arange(X.shape[1], dtype=np.uint32), min(n_rows, X.shape[0])))
    for start in range(0, X.shape[0], n_rows):
        values = rows.values[start : start + n_rows].reshape(-1)
        yield columns[: len(values)], values


def _longer(array, length):
    """Return a copy of an array, extended by zeros to the given length."""
    longer = np.zeros(length, dtype=array.dtype)
    longer[: len(array)] = array
    return longer


def _store_zeros(rows, columns, n_features):
    """Return (indices, values, indptr) of sparse rows with a stored entry, possibly zero, in each of the columns."""
    chosen = np.zeros(n_features, dtype=bool)
    chosen[columns] = True
    chosen_before = np.concatenate([[0], np.cumsum(chosen[rows.indices])])
    indptr = rows.indptr.astype(np.int64)
    indptr += np.arange(len(indptr)) * len(columns) - chosen_before[indptr]
    indices, values = np.empty(indptr[-1], dtype=np.uint32), np.empty(indptr[-1], dtype=rows.data.dtype)
    _merge_zeros(rows.indices, rows.data, rows.indptr, columns, indices, values)
    return indices, values, indptr


@compiled
def _update_statistics(columns, values, count, low, high, moments):
    """Update the statistics of each column by its nonzero values; moments are skipped if their arrays are empty.

    Invariant: count_j is the number of nonzero values of column j so far; low_j, high_j and the fields of `Moments` are
    the statistics of these values.
    """
    first, mean, squares = moments
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
            squares[j] += step * (value - first[j] - mean[j])


@compiled
def _merge_zeros(indices, values, indptr, columns, out_indices, out_values):
    """Copy all rows and add a zero in each of the ascending `columns` in which a row has no entry."""
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
    """Scale each value by the range of its column.

    The ends of a range are mapped exactly to the limits, and 0 exactly to 0 if range and limits are symmetric about 0.
    """
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
