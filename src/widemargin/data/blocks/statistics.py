"""What is known of all rows of a file at its end: types, numbers of values, norms, and statistics of the columns.

Types, lengths and norms of a part of the rows are found by compiled code in any thread. Sums over columns are made in
one table, to which parts are added in the order of the rows, so that they do not depend on threads; several tables
would not stay in the cache of the processor if there are many columns. The table has the number n of nonzero values of
a column, the first of them, f, and the sums of x − f and (x − f)². As f is one of the values, the variance loses at
most n times the precision of a double. Zeros are added at the end.
"""

from typing import NamedTuple

import numpy as np

from widemargin._runtime.compile import SUMS, compiled, prefetch
from widemargin.data.blocks.layout import COLUMNS_WITH_STATISTICS, label_type

ONES, BYTES, SINGLES, DOUBLES = range(4)
"""Kinds of values, each contained in the next: one, integers from 0 to 255, float32, float64."""

VALUE_TYPES = {ONES: None, BYTES: np.dtype(np.uint8), SINGLES: np.dtype(np.float32), DOUBLES: np.dtype(np.float64)}

# Of the arrays `tally` and `extremes` of a part; squared norms and labels are meant.
_KIND, _LARGEST_COLUMN, _LONGEST, _SQUARED_LENGTHS, _NOT_FINITE, _LABELS_ARE_WHOLE, _LABELS_ARE_SINGLE = range(7)
_LARGEST_NORM, _LOWEST_LABEL, _HIGHEST_LABEL = range(3)
_N, _FIRST, _DIFFERENCES, _SQUARES, _MAX_ABS = map(np.uint64, range(5))  # of a row of a table of columns
_MEAN, _DEVIATIONS = _FIRST, _SQUARES  # of a row, after `_finish`
_VALUES_COMPARED_AT_ONCE = 512
_VALUES_AHEAD = np.uint64(16)  # whose columns are asked for before they are added to


class PartFacts(NamedTuple):
    """What is known of some rows: a `tally` of integers, and `extremes` of squared norms and labels."""

    n_rows: int
    n_stored: int
    tally: np.ndarray
    extremes: np.ndarray

    @property
    def kind(self):
        """Kind of the values."""
        return int(self.tally[_KIND])

    @property
    def largest_column(self):
        """The largest column with a stored value, −1 if there is none."""
        return int(self.tally[_LARGEST_COLUMN])

    @property
    def not_finite(self):
        """The first row with a value that is not finite, −1 if there is none."""
        return int(self.tally[_NOT_FINITE])


class ColumnSums:
    """Sums over the nonzero values of each column: a table with a row per column, empty if there are too many."""

    def __init__(self):
        self.table = np.zeros((0, 5))
        self._too_many = False

    def add(self, rows, n_columns):
        """Add rows (RowArrays), all of whose columns are below `n_columns`."""
        table = self._table_for(n_columns)
        if len(table) == 0:
            return
        if rows.indices is None:
            _add_dense(*read_only(rows.values.reshape(rows.n_rows, n_columns)), table)
        elif rows.values is None:
            _add_ones(*read_only(rows.indices), table)
        else:
            _add_sparse(*read_only(rows.indices, rows.values), table)

    def _table_for(self, n_columns):
        """Return the table, with so many rows at least."""
        if n_columns > COLUMNS_WITH_STATISTICS:
            self.table, self._too_many = np.zeros((0, 5)), True
        elif n_columns > len(self.table) and not self._too_many:
            added = max(n_columns, min(2 * len(self.table), COLUMNS_WITH_STATISTICS)) - len(self.table)
            self.table = np.concatenate([self.table, np.zeros((added, 5))])
        return self.table


def read_only(*arrays):
    """Return read-only views, for which the compiled loops are compiled."""
    views = [array.view() for array in arrays]
    for view in views:
        view.flags.writeable = False
    return views


def sparse_facts(indices, values, indptr, labels):
    """Return the PartFacts of CSR rows with their labels, which are finite numbers."""
    tally, extremes = np.array([ONES, -1, 0, 0, -1, 1, 1]), np.array([0.0, np.inf, -np.inf])
    extremes[_LARGEST_NORM] = _read_sparse(*read_only(indices, values, indptr), tally)
    _read_labels(*read_only(labels), tally, extremes)
    return PartFacts(len(indptr) - 1, int(indptr[-1]), tally, extremes)


def dense_facts(X, labels):
    """Return the PartFacts of an array of rows with their labels, which are finite numbers."""
    n_columns = X.shape[1]
    tally = np.array([BYTES, n_columns - 1, n_columns, len(X) * n_columns**2, -1, 1, 1])
    extremes = np.array([0.0, np.inf, -np.inf])
    extremes[_LARGEST_NORM] = _read_dense(*read_only(X), tally)
    _read_labels(*read_only(labels), tally, extremes)
    return PartFacts(len(X), X.size, tally, extremes)


class FileFacts:
    """What is known of all rows so far."""

    def __init__(self):
        self.n_rows = self.n_stored = self.longest_row = self._squared_lengths = 0
        self.largest_norm, self.n_columns = 0.0, 0
        self.kind = ONES
        self._columns = ColumnSums()
        self._label_low, self._label_high = np.inf, -np.inf
        self._labels_are_whole = self._labels_are_single = True

    def join(self, part):
        """Add what is known of further rows."""
        self.n_rows += part.n_rows
        self.n_stored += part.n_stored
        self.kind = max(self.kind, part.kind)
        self.longest_row = max(self.longest_row, int(part.tally[_LONGEST]))
        self._squared_lengths += int(part.tally[_SQUARED_LENGTHS])
        self.n_columns = max(self.n_columns, part.largest_column + 1)
        norm, low, high = part.extremes.tolist()
        self.largest_norm = max(self.largest_norm, norm)
        self._label_low, self._label_high = min(self._label_low, low), max(self._label_high, high)
        self._labels_are_whole = self._labels_are_whole and bool(part.tally[_LABELS_ARE_WHOLE])
        self._labels_are_single = self._labels_are_single and bool(part.tally[_LABELS_ARE_SINGLE])

    def join_columns(self, rows, part):
        """Add rows (RowArrays), of which `part` is known, to the sums over columns."""
        self._columns.add(rows, part.largest_column + 1)

    @property
    def label_type(self):
        """The narrowest type of the labels."""
        if self._labels_are_whole:
            return label_type(np.array([self._label_low, self._label_high] if self.n_rows else []))
        return np.dtype(np.float32 if self._labels_are_single else np.float64)

    @property
    def squared_lengths(self):
        """Mean of the squared number of stored values of a row."""
        return self._squared_lengths / max(self.n_rows, 1)

    def columns(self, n_features):
        """Return mean, standard deviation and largest magnitude of each column; nothing if there are too many."""
        if n_features > COLUMNS_WITH_STATISTICS or self.n_columns > COLUMNS_WITH_STATISTICS:
            return {}
        table = np.zeros((n_features, 5))
        known = min(n_features, len(self._columns.table))
        table[:known] = self._columns.table[:known]
        _finish(table)
        count, mean, squares, max_abs = table[:, [_N, _MEAN, _DEVIATIONS, _MAX_ABS]].T
        part = count / max(self.n_rows, 1)  # the fraction of nonzero values
        with np.errstate(over="ignore", invalid="ignore"):
            within = np.sqrt(part * (squares / np.maximum(count, 1)))
            deviation = np.hypot(within, np.sqrt(part * (1.0 - part)) * mean)
        return {"mean": part * mean, "deviation": deviation, "max_abs": max_abs.copy()}


@compiled
def _kind_of(value):
    """Return the narrowest kind of a value; the sign of zero counts."""
    if value == 1.0:
        return ONES
    if 0.0 <= value <= 255.0 and value == np.floor(value) and not np.signbit(value):
        return BYTES
    return SINGLES if np.float64(np.float32(value)) == value else DOUBLES


@compiled
def _add_to_column(columns, j, value):
    """Add a nonzero value to the sums of column j."""
    if columns[j, _N] == 0.0:
        columns[j, _FIRST] = value
    difference = value - columns[j, _FIRST]
    columns[j, _N] += 1.0
    columns[j, _DIFFERENCES] += difference
    columns[j, _SQUARES] += difference * difference
    columns[j, _MAX_ABS] = max(columns[j, _MAX_ABS], abs(value))


@compiled(fastmath=SUMS)
def _squared_norm(values, begin, end):
    """Return the sum of the squares of values[begin:end]."""
    total = 0.0
    for k in range(np.uint64(begin), np.uint64(end)):
        total += np.float64(values[k]) * np.float64(values[k])
    return total


@compiled
def _all_finite(values):
    """Return whether no value is NaN or infinite."""
    for value in values:  # noqa: SIM110 (compiled)
        if not np.isfinite(value):
            return False
    return True


@compiled
def _all_ones(values):
    """Return whether every value is one; values are compared a block at a time, many by one instruction."""
    for start in range(0, len(values), _VALUES_COMPARED_AT_ONCE):
        n_others = 0
        for k in range(np.uint64(start), np.uint64(min(start + _VALUES_COMPARED_AT_ONCE, len(values)))):
            n_others += values[k] != 1.0
        if n_others:
            return False
    return True


@compiled
def _add_sparse(indices, values, columns):
    """Add the nonzero values of CSR rows to the table of columns."""
    last = np.uint64(max(len(values), 1) - 1)
    for k in range(np.uint64(len(values))):
        prefetch(columns, indices[min(k + _VALUES_AHEAD, last)])
        value = np.float64(values[k])
        if value != 0.0:
            _add_to_column(columns, np.uint64(indices[k]), value)


@compiled
def _add_ones(indices, columns):
    """Add CSR rows, all of whose values are one, to the table of columns."""
    for index in indices:
        j = np.uint64(index)
        if columns[j, _FIRST] == 1.0:  # the difference is 0, the magnitude that of the first
            columns[j, _N] += 1.0
        else:
            _add_to_column(columns, j, 1.0)


@compiled
def _add_dense(X, columns):
    """Add the nonzero values of dense rows to the table of columns."""
    for i in range(X.shape[0]):
        for j in range(X.shape[1]):
            value = np.float64(X[i, j])
            if value != 0.0:
                _add_to_column(columns, np.uint64(j), value)


@compiled
def _read_sparse(indices, values, indptr, tally):
    """Fill the tally; return the largest squared norm.

    The columns of each row ascend.
    """
    kind, largest, largest_norm = tally[_KIND], tally[_LARGEST_COLUMN], 0.0
    are_ones = _all_ones(values)
    for i in range(len(indptr) - 1):
        begin, end = indptr[i], indptr[i + 1]
        if not are_ones:
            for k in range(np.uint64(begin), np.uint64(end)):
                value = np.float64(values[k])
                if kind < DOUBLES and value != 1.0:
                    kind = max(kind, _kind_of(value))
        length = end - begin
        largest = max(largest, np.int64(indices[end - 1]) if length else -1)
        tally[_LONGEST] = max(tally[_LONGEST], length)
        tally[_SQUARED_LENGTHS] += length * length
        norm = np.float64(length) if are_ones else _squared_norm(values, begin, end)
        largest_norm = max(largest_norm, norm)
        if not np.isfinite(norm) and tally[_NOT_FINITE] < 0 and not _all_finite(values[begin:end]):
            tally[_NOT_FINITE] = i
    tally[_KIND], tally[_LARGEST_COLUMN] = kind, largest
    return largest_norm


@compiled
def _read_dense(X, tally):
    """Fill the tally as `_read_sparse` does; return the largest squared norm."""
    kind, largest_norm = tally[_KIND], 0.0
    for i in range(X.shape[0]):
        for j in range(X.shape[1]):
            value = np.float64(X[i, j])
            if kind < DOUBLES:
                kind = max(kind, _kind_of(value))
        norm = _squared_norm(X[i], 0, X.shape[1])
        largest_norm = max(largest_norm, norm)
        if not np.isfinite(norm) and tally[_NOT_FINITE] < 0 and not _all_finite(X[i]):
            tally[_NOT_FINITE] = i
    tally[_KIND] = kind
    return largest_norm


@compiled
def _read_labels(labels, tally, extremes):
    """Note the lowest and the highest label, and whether all are integers, and float32."""
    low, high, are_whole, are_single = np.inf, -np.inf, True, True
    for label in labels:
        low, high = min(low, label), max(high, label)
        are_whole &= label == np.floor(label)
        are_single &= np.float64(np.float32(label)) == label
    extremes[_LOWEST_LABEL], extremes[_HIGHEST_LABEL] = low, high
    tally[_LABELS_ARE_WHOLE], tally[_LABELS_ARE_SINGLE] = are_whole, are_single


@compiled
def _finish(columns):
    """Turn first values and sums of differences into means, and sums of squares into those of deviations from them."""
    for j in range(len(columns)):
        number = columns[j, _N]
        if number > 0.0:
            difference = columns[j, _DIFFERENCES]
            columns[j, _DEVIATIONS] = max(columns[j, _SQUARES] - difference * (difference / number), 0.0)
            columns[j, _MEAN] = columns[j, _FIRST] + difference / number
