"""Random order of rows of any amount, with bounded memory.

Each row, or each query, draws a key of 64 random bits in the order of arrival, and rows are sorted by their keys. The
order therefore depends on the rows and the seed only, and not on the memory. Rows are collected in a `RowBuffer`. When
it is full, it is divided by the first bits of the keys into bucket files; at the end each bucket is read and sorted
in memory, or divided by the next bits if it is larger than memory. Rows that stay in their order are written to a
single bucket and read again.

Bucket files have no name, or are removed by the operating system with the process, so that a process that is killed
leaves none behind.
"""

import tempfile
from contextlib import ExitStack

import numpy as np

from widemargin._runtime.threads import run
from widemargin.data.blocks.key_order import order_of
from widemargin.data.blocks.row_buffer import RowArrays, RowBuffer

_BITS_PER_LEVEL = 5  # of the keys: 32 buckets
_KEY_BITS = 64
_LARGEST_PART_IN_WIDER_TYPES = 3  # a buffer is converted to wider types if it is filled to less than 1/3


class Spool:
    """Collects rows, and gives them back in random order or in the order of arrival.

    Use it as a context manager, which removes its files.

    Parameters
    ----------
    capacity : int
        Bytes of memory for rows.
    folder : str or None
        Where bucket files are; None is the folder for temporary files of the system.
    seed : int or None
        Of the random order; None keeps the order of arrival.
    """

    def __init__(self, capacity, folder=None, seed=0):
        self._capacity, self._folder = max(int(capacity), 1), folder
        self._random = None if seed is None else np.random.PCG64(seed)
        self._buffer, self._buckets, self._files = None, None, ExitStack()
        self._last_qid = self._last_key = None
        self.n_bytes_spilled = 0

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self._files.close()
        self._buffer = None
        return False

    def append(self, rows):
        """Append rows (RowArrays, without keys)."""
        if rows.n_rows == 0:
            return
        self._widen(rows.types)
        if self._random is not None:
            rows = rows._replace(key=self._draw_keys(rows))
        start = 0
        while start < rows.n_rows:
            count = self._buffer.n_fitting(rows, start)
            if count:
                self._buffer.append(rows, start, start + count)
                start += count
            else:
                self._make_room(rows, start)

    def _widen(self, types):
        """Let the buffer have types that hold rows of these types, too."""
        if self._buffer is None:
            self._buffer = RowBuffer(types, self._capacity)
            return
        old, types = self._buffer, self._buffer.types.joined(types)
        if types == old.types:
            return
        if old.n_bytes > self._capacity // _LARGEST_PART_IN_WIDER_TYPES:
            self._spill()
        self._buffer = RowBuffer(types, self._capacity)
        kept = old.gather(slice(None), with_keys=True)
        start = 0
        while start < kept.n_rows:
            self._buffer.append(kept, start, start + (count := self._buffer.n_fitting(kept, start)))
            start += count
            if start < kept.n_rows:
                self._make_room(kept, start)

    def _make_room(self, rows, start):
        """Empty a full buffer; if it is empty, replace it by one that is large enough for a single row."""
        if self._buffer.n_rows:
            self._spill()
            return
        types, ends = self._buffer.types, rows.ends()
        entries = int(ends[start]) - (int(ends[start - 1]) if start else 0)
        self._buffer = RowBuffer(types, types.n_bytes(1, entries))

    def _draw_keys(self, rows):
        """Return a random key for each row; the rows of a query share theirs, also with those appended before."""
        if rows.qid is None:
            return self._random.random_raw(rows.n_rows)
        is_first = np.empty(rows.n_rows, bool)
        is_first[0] = self._last_qid is None or rows.qid[0] != self._last_qid
        np.not_equal(rows.qid[1:], rows.qid[:-1], out=is_first[1:])
        keys = np.append(np.uint64(self._last_key or 0), self._random.random_raw(int(is_first.sum())))
        key = keys[np.cumsum(is_first)]
        self._last_qid, self._last_key = rows.qid[-1], key[-1]
        return key

    def _spill(self):
        """Divide the rows of the buffer into bucket files, and empty it."""
        if self._buckets is None:
            self._buckets = self._make_buckets()
        self.n_bytes_spilled += self._buffer.n_bytes
        _divide(self._buffer, self._buckets, 0)

    def _make_buckets(self):
        n_buckets = 1 if self._random is None else 1 << _BITS_PER_LEVEL
        return [_Bucket(self._folder, self._files) for _ in range(n_buckets)]

    def sorted(self):
        """Yield (buffer, order): a RowBuffer and the row numbers in their final order, or a slice.

        A buffer is valid until the next one is asked for. Nothing may be appended any more.
        """
        if self._buckets is None:
            if self._buffer is not None:
                yield self._buffer, self._order(self._buffer)
            return
        self._spill()
        yield from self._sorted_buckets(self._buckets, 1)

    def _sorted_buckets(self, buckets, level):
        """Yield the buffers of buckets, of which those of this level share the bits of their keys before it."""
        for bucket in buckets:
            fits = bucket.n_bytes(self._buffer.types) <= self._buffer.capacity
            if self._random is not None and not fits and not bucket.has_one_key and level * _BITS_PER_LEVEL < _KEY_BITS:
                smaller = self._make_buckets()
                for buffer in bucket.read(self._buffer):
                    _divide(buffer, smaller, level)
                bucket.close()
                yield from self._sorted_buckets(smaller, level + 1)
                continue
            for buffer in bucket.read(self._buffer):
                yield buffer, self._order(buffer)
            bucket.close()

    def _order(self, buffer):
        """Return the order of the rows by their keys; those of equal keys stay in the order of arrival."""
        if self._random is None:
            return slice(0, buffer.n_rows)
        return order_of(buffer.belongings("key"))


def _divide(buffer, buckets, level):
    """Write the rows of a buffer to buckets by the bits of their keys at this level, and empty it."""
    if len(buckets) == 1:
        groups = [slice(0, buffer.n_rows)]
    else:
        shift = np.uint64(max(_KEY_BITS - _BITS_PER_LEVEL * (level + 1), 0))
        bits = (buffer.belongings("key") >> shift) & np.uint64(len(buckets) - 1)
        numbers = bits.astype(np.uint8)
        order = np.argsort(numbers, kind="stable")
        ends = np.cumsum(np.bincount(numbers, minlength=len(buckets)))
        groups = np.split(order, ends[:-1])
    run(
        _Bucket.append_from, [(bucket, buffer, group) for bucket, group in zip(buckets, groups, strict=True)], n_jobs=-1
    )
    buffer.clear()


_ENTRIES_PER_WRITE = 1 << 21  # of a group of rows that is copied before it is written, about


class _Bucket:
    """A temporary file of rows; types and sizes of its parts are kept in memory."""

    def __init__(self, folder, files):
        self._folder, self._files, self._file = folder, files, None
        self._parts = []  # types, number of rows, number of entries of each
        self._lowest, self._highest = None, None

    def append_from(self, buffer, group):
        """Append rows of a buffer: an array of row numbers, or a slice of all."""
        n_rows = buffer.n_rows if isinstance(group, slice) else len(group)
        rows_per_part = max(1, _ENTRIES_PER_WRITE * buffer.n_rows // max(buffer.n_entries, buffer.n_rows))
        for start in range(0, n_rows, rows_per_part):
            stop = min(start + rows_per_part, n_rows)
            part = slice(start, stop) if isinstance(group, slice) else group[start:stop]
            self._append(buffer.gather(part, with_keys=True))

    def _append(self, rows):
        if self._file is None:
            file = tempfile.TemporaryFile(dir=self._folder)  # noqa: SIM115 (closed by the spool)
            self._file = self._files.enter_context(file)
        self._parts.append((rows.types, rows.n_rows, rows.n_entries))
        for array in rows[1:]:
            if array is not None:
                self._file.write(np.ascontiguousarray(array).data)
        low, high = rows.key.min(), rows.key.max()
        self._lowest = low if self._lowest is None else min(low, self._lowest)
        self._highest = high if self._highest is None else max(high, self._highest)

    @property
    def has_one_key(self):
        """Whether all rows have the same key, and so are in their final order."""
        return self._lowest == self._highest

    def n_bytes(self, types):
        """Return the bytes that all rows take in a buffer of these types."""
        return sum(types.n_bytes(n_rows, n_entries) for _, n_rows, n_entries in self._parts)

    def read(self, buffer):
        """Yield the buffer, filled with as many rows as there is room for, until all have been read."""
        if self._file is None:
            return
        self._file.seek(0)
        buffer.clear()
        for part in self._parts:
            rows, start = self._read_part(*part), 0
            while start < rows.n_rows:
                count = buffer.n_fitting(rows, start)
                if count == 0 and buffer.n_rows == 0:
                    yield _buffer_of_one_row(rows, start, buffer.types)
                    start += 1
                elif count == 0:
                    yield buffer
                    buffer.clear()
                buffer.append(rows, start, start + count)
                start += count
        if buffer.n_rows:
            yield buffer
        buffer.clear()

    def _read_part(self, types, n_rows, n_entries):
        def read(kind, length):
            array = np.empty(length, kind)
            if self._file.readinto(array.data.cast("B")) != array.nbytes:
                raise OSError("a temporary file was cut short by another program.")
            return array

        indptr = None if types.index is None else read(np.int64, n_rows + 1)
        indices = None if types.index is None else read(types.index, n_entries)
        values = None if types.value is None else read(types.value, n_entries)
        label = read(np.float64, n_rows)
        qid = read(np.int64, n_rows) if types.has_qid else None
        weight = read(np.float64, n_rows) if types.has_weight else None
        return RowArrays(types, indptr, indices, values, label, qid, weight, read(np.uint64, n_rows))

    def close(self):
        """Give the space on the disk back."""
        if self._file is not None:
            self._file.close()


def _buffer_of_one_row(rows, start, types):
    """Return a buffer that has room for one row, and holds it."""
    ends = rows.ends()
    n_entries = int(ends[start]) - (int(ends[start - 1]) if start else 0)
    buffer = RowBuffer(types, types.n_bytes(1, n_entries))
    buffer.append(rows, start, start + 1)
    return buffer
