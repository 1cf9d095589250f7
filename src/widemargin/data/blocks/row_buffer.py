"""Rows in memory on their way into a row-block file: a buffer of fixed size, with types as narrow as the rows allow.

The memory of a buffer is reserved once and provided by the operating system as it is filled. Rows are appended in the
order in which they arrive, and gathered in any other. Labels are float64, those of classes the numbers of the classes.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from widemargin._runtime.compile import compiled, prefetch
from widemargin.data.blocks.layout import widest

_BELONGINGS = {"label": np.float64, "qid": np.int64, "weight": np.float64, "key": np.uint64}
_ROWS_AHEAD = 16  # rows that are asked for before they are copied; rows in random order are not in any cache


@dataclass(frozen=True, eq=False)
class RowTypes:
    """Types of the arrays of some rows.

    `index` is None if rows are dense, and `value` is None if every stored value is one. `n_features` is the number of
    columns of dense rows; the width of sparse rows does not matter here, and is 0.
    """

    index: np.dtype | None
    value: np.dtype | None
    n_features: int
    has_qid: bool
    has_weight: bool

    def __eq__(self, other):
        """Compare field by field; types by their letters, as for NumPy None is float64."""
        return isinstance(other, RowTypes) and self._letters() == other._letters()

    def __hash__(self):
        return hash(self._letters())

    def _letters(self):
        letters = (None if one is None else one.char for one in (self.index, self.value))
        return (*letters, self.n_features, self.has_qid, self.has_weight)

    @property
    def bytes_per_entry(self):
        """Bytes of a stored value with its column."""
        return sum(one.itemsize for one in (self.index, self.value) if one is not None)

    @property
    def bytes_per_row(self):
        """Bytes of a row without its entries: label, key, end of its entries, and what else belongs to it.

        Sixteen more are needed to sort rows by their keys.
        """
        return 40 + 8 * self.has_qid + 8 * self.has_weight

    def n_bytes(self, n_rows, n_entries):
        """Return the bytes of so many rows with so many stored values."""
        return n_rows * self.bytes_per_row + n_entries * self.bytes_per_entry

    def joined(self, other):
        """Return the types that hold the rows of both."""
        if self == other:
            return self
        if self.index is None:
            return replace(self, value=widest(self.value, other.value))
        return replace(self, index=max(self.index, other.index), value=widest(self.value, other.value))

    def names(self):
        """Return the names of the arrays that belong to each row."""
        return ["label"] + ["qid"] * self.has_qid + ["weight"] * self.has_weight


class RowArrays(NamedTuple):
    """Rows as arrays: entries, with `indptr` counting from 0, and what belongs to each row.

    `indptr` and `indices` are None if rows are dense; `values` is None if every stored value is one, and flat if rows
    are dense. `key` orders rows at random; None if they stay in order.
    """

    types: RowTypes
    indptr: np.ndarray | None
    indices: np.ndarray | None
    values: np.ndarray | None
    label: np.ndarray
    qid: np.ndarray | None = None
    weight: np.ndarray | None = None
    key: np.ndarray | None = None

    @property
    def n_rows(self):
        """Number of rows."""
        return len(self.label)

    @property
    def n_entries(self):
        """Number of stored values."""
        return self.n_rows * self.types.n_features if self.indptr is None else int(self.indptr[-1])

    def ends(self):
        """Return the number of entries up to and including each row."""
        if self.indptr is None:
            return np.arange(1, self.n_rows + 1) * self.types.n_features
        return self.indptr[1:]

    def converted(self, types):
        """Return the rows with other types, which must be as wide."""
        if types == self.types:
            return self
        indices = None if self.indices is None else self.indices.astype(types.index, copy=False)
        values = self.values
        if types.value is not None:
            values = np.ones(self.n_entries, types.value) if values is None else values.astype(types.value, copy=False)
        return self._replace(types=types, indices=indices, values=values)

    def followed_by(self, other):
        """Return these rows and others, of the same types, as one."""
        indptr = None
        if self.indptr is not None:
            indptr = np.concatenate([self.indptr, self.indptr[-1] + other.indptr[1:]])
        arrays = (
            None if one is None else np.concatenate([one, another])
            for one, another in zip(self[2:], other[2:], strict=True)
        )
        return RowArrays(self.types, indptr, *arrays)


class RowBuffer:
    """Room for rows: `capacity` bytes at most, or a single larger row.

    Parameters
    ----------
    types : RowTypes
        Types of the arrays.
    capacity : int
        Bytes that rows may take.
    """

    def __init__(self, types, capacity):
        self.types, self.capacity = types, capacity
        n_rows, n_entries = capacity // types.bytes_per_row, capacity // max(types.bytes_per_entry, 1)
        self.n_rows = self.n_entries = 0
        self._ends = None if types.index is None else np.empty(n_rows, np.int64)
        self._indices = None if types.index is None else np.empty(n_entries, types.index)
        self._values = None if types.value is None else np.empty(n_entries, types.value)
        self._belongings = {name: np.empty(n_rows, _BELONGINGS[name]) for name in [*types.names(), "key"]}

    @property
    def n_bytes(self):
        """Bytes that the rows take."""
        return self.types.n_bytes(self.n_rows, self.n_entries)

    def n_fitting(self, rows, start):
        """Return how many of the rows from `start` on there is room for."""
        types, ends = self.types, rows.ends()[start:]
        before = rows.ends()[start - 1] if start else 0
        if len(ends) and types.n_bytes(len(ends), int(ends[-1] - before)) <= self.capacity - self.n_bytes:
            return len(ends)
        sizes = np.arange(1, len(ends) + 1) * types.bytes_per_row + (ends - before) * types.bytes_per_entry
        return int(np.searchsorted(sizes, self.capacity - self.n_bytes, side="right"))

    def append(self, rows, start, stop):
        """Append the rows from `start` to `stop`, for which there must be room; types may be narrower than those here.

        Without a key, that of the rows stays undefined.
        """
        place = slice(self.n_rows, self.n_rows + stop - start)
        ends = rows.ends()
        first, last = int(ends[start - 1]) if start else 0, int(ends[stop - 1]) if stop else 0
        entries = slice(self.n_entries, self.n_entries + last - first)
        if self._ends is not None:
            np.add(ends[start:stop], self.n_entries - first, out=self._ends[place])
            self._indices[entries] = rows.indices[first:last]
        if self._values is not None:
            self._values[entries] = 1 if rows.values is None else rows.values[first:last]
        for name, array in self._belongings.items():
            given = getattr(rows, name)
            if given is not None:
                array[place] = given[start:stop]
        self.n_rows, self.n_entries = place.stop, entries.stop

    def belongings(self, name):
        """Return the labels, queries, weights or keys of all rows."""
        return self._belongings[name][: self.n_rows]

    def gather(self, order, n_features=0, *, with_keys=False):
        """Return rows in the order given: an array of row numbers, or a slice, of which the result is a view.

        If every one of these rows has `n_features` stored values, which are then all there can be, `indices` is None.
        """
        names = [*self.types.names()] + ["key"] * with_keys
        belongings = {name: self.belongings(name)[order] for name in names}
        n_rows = len(belongings["label"])
        if isinstance(order, slice):
            return self._view(order.indices(self.n_rows)[0], n_rows, belongings)
        if self._ends is None:
            width = self.types.n_features
            values = self._values[: self.n_entries].reshape(self.n_rows, width)[order].reshape(-1)
            return RowArrays(self.types, None, None, values, **belongings)
        indptr, begins = np.zeros(n_rows + 1, np.int64), np.empty(n_rows, np.int64)
        _place_rows(self._ends, order.astype(np.int64, copy=False), begins, indptr)
        copies, is_complete = [], 0 < n_features * n_rows == indptr[-1]
        for array in (None if is_complete else self._indices, self._values):
            copy = None if array is None else np.empty(indptr[-1], array.dtype)
            if copy is not None:
                _copy_rows(array, begins, indptr, copy)
            copies.append(copy)
        return RowArrays(self.types, indptr, *copies, **belongings)

    def _view(self, start, n_rows, belongings):
        """Return consecutive rows, whose entries are not copied."""
        if self._ends is None:
            width = self.types.n_features
            values = self._values[start * width : (start + n_rows) * width]
            return RowArrays(self.types, None, None, values, **belongings)
        first = self._ends[start - 1] if start else 0
        indptr = np.zeros(n_rows + 1, np.int64)
        np.subtract(self._ends[start : start + n_rows], first, out=indptr[1:])
        entries = slice(first, first + indptr[-1])
        indices, values = (None if one is None else one[entries] for one in (self._indices, self._values))
        return RowArrays(self.types, indptr, indices, values, **belongings)

    def copy(self, order):
        """Return a buffer that has just enough room for rows in the order given, and holds them."""
        rows = self.gather(order)
        copy = RowBuffer(self.types, self.types.n_bytes(rows.n_rows, rows.n_entries))
        copy.append(rows, 0, rows.n_rows)
        return copy

    def clear(self):
        """Forget all rows."""
        self.n_rows = self.n_entries = 0


@compiled
def _place_rows(ends, order, begins, indptr):
    """Set `begins` to the offsets of the rows in the buffer, and indptr to those in their new order."""
    for i in range(len(order)):
        prefetch(ends, order[min(i + _ROWS_AHEAD, len(order) - 1)])
        row = order[i]
        begins[i] = ends[row - 1] if row > 0 else 0
        indptr[i + 1] = indptr[i] + ends[row] - begins[i]


@compiled
def _copy_rows(array, begins, indptr, copy):
    """Copy the entries of rows, which begin at `begins`, to their new places, of which indptr has the offsets."""
    for i in range(len(begins)):
        begin, place = begins[i], indptr[i]
        ahead = min(i + _ROWS_AHEAD, len(begins) - 1)
        prefetch(array, begins[ahead])
        prefetch(array, begins[ahead] + indptr[ahead + 1] - indptr[ahead])
        for k in range(np.uint64(indptr[i + 1] - place)):
            copy[np.uint64(place) + k] = array[np.uint64(begin) + k]
