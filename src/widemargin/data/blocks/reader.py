"""`RowBlocks`: the rows of row-block files, which are read block by block, and `open_blocks`, which opens them."""

import os
import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from widemargin._runtime.argument_types import FilePath
from widemargin.data.blocks.layout import Block, Layout, Summary, checksum, decode, to_scipy
from widemargin.data.rows import DenseRows, SparseRows
from widemargin.errors import FormatError


class _Piece(NamedTuple):
    """Consecutive rows of one block of one file; `begin` and `end` are rows of the block, `start` is the first row of
    the RowBlocks that they are."""

    file: "_File"
    number: int
    begin: int
    end: int
    start: int

    @property
    def n_rows(self):
        return self.end - self.begin


class RowBlocks:
    """Rows in row-block files, in the order of the files.

    A RowBlocks is made by `open_blocks`. Estimators take it as X. `blocks[a:b]` is the RowBlocks of some consecutive
    rows, and iterating gives `(X, y)` block by block.

    Attributes
    ----------
    shape : tuple of two ints
        Numbers of rows and of features.
    paths : list of str
        The files.
    labels, qid, weight : ndarray or None
        What the files have for each row besides the features; read when first asked for, and kept.
    feature_names : tuple of str or None
        Names of the features, if the files have them.
    summary : Summary
        What the files say of all rows.
    """

    def __init__(self, pieces: Sequence[_Piece], summary: Summary, layout: Layout) -> None:
        self._pieces, self.summary, self.layout = list(pieces), summary, layout
        n_rows = sum(piece.n_rows for piece in self._pieces)
        self.shape = (n_rows, summary.n_features)
        self.feature_names = summary.names
        self.paths = list(dict.fromkeys(piece.file.path for piece in self._pieces))
        self._belongings: tuple[Any, Any, Any] | None = None

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        kind = "sparse" if self.layout.is_sparse else "dense"
        return f"<RowBlocks of {self.shape[0]} {kind} rows, {self.shape[1]} features, {self.n_blocks} blocks>"

    @property
    def n_blocks(self) -> int:
        """Number of blocks, those of which only some rows belong to it included."""
        return len(self._pieces)

    @property
    def n_bytes(self) -> int:
        """About how many bytes the rows take, in the files and in memory."""
        return round(self.bytes_per_row * len(self))

    @property
    def bytes_per_row(self) -> float:
        """Mean number of bytes of a row."""
        layout, summary = self.layout, self.summary
        value = 0 if layout.value_type is None else layout.value_type.itemsize
        if not layout.is_sparse:
            return float(value * summary.n_features)
        return (value + layout.index_type.itemsize) * summary.n_stored / max(1, summary.n_rows) + 4.0

    def rows_of(self, k: int) -> tuple[int, int]:
        """Return the first row of block k, and the one after its last."""
        piece = self._pieces[k]
        return piece.start, piece.start + piece.n_rows

    def read(self, k: int) -> Block:
        """Read block k from its file.

        Raises
        ------
        FormatError
            If the file is damaged, or has changed since it was opened.
        """
        piece = self._pieces[k]
        return part_of_block(piece.file.read(piece.number), piece.begin, piece.end)

    def __getitem__(self, rows: slice) -> "RowBlocks":
        start, stop, step = rows.indices(len(self)) if isinstance(rows, slice) else (0, 0, 0)
        if step != 1:
            raise TypeError("the rows of a RowBlocks are chosen by a slice of consecutive rows, blocks[start:stop].")
        pieces, first = [], 0
        for piece in self._pieces:
            begin = piece.begin + max(0, start - piece.start)
            end = min(piece.end, piece.begin + stop - piece.start)
            if begin < end:
                pieces.append(piece._replace(begin=begin, end=end, start=first))
                first += end - begin
        return RowBlocks(pieces, replace(self.summary, n_rows=max(1, self.summary.n_rows)), self.layout)

    def __iter__(self) -> Iterator[tuple[Any, NDArray[Any]]]:
        for k in range(self.n_blocks):
            block = self.read(k)
            yield to_scipy(block.rows, self.shape[1]), self.named(block.label)

    def to_memory(self) -> Any:
        """Return all rows as an array or csr_array with the types of the file."""
        from scipy.sparse import vstack

        parts = [X for X, _ in self]
        if not parts:
            return np.empty((0, self.shape[1]))
        return vstack(parts, format="csr") if self.layout.is_sparse else np.concatenate(parts)

    @property
    def labels(self) -> NDArray[Any]:
        """The label of each row; strings if the file has strings."""
        return self.named(self._read_belongings()[0])

    @property
    def qid(self) -> NDArray[np.int64] | None:
        """The query of each row, or None."""
        return self._read_belongings()[1]

    @property
    def weight(self) -> NDArray[np.float64] | None:
        """The weight of each row, or None."""
        return self._read_belongings()[2]

    def named(self, label: NDArray[Any]) -> NDArray[Any]:
        """Return labels as the caller knows them: the strings, if those of the file stand for strings."""
        classes = self.layout.label_type
        return np.array(classes)[label] if isinstance(classes, tuple) else label

    def _read_belongings(self):
        if self._belongings is None:
            found = [self._pieces[k].file.belongings(self._pieces[k].number) for k in range(self.n_blocks)]
            found = [[None if one is None else one[p.begin : p.end] for one in row]
                     for row, p in zip(found, self._pieces, strict=True)]  # fmt: skip
            columns = zip(*found, strict=True) if found else ((), (), ())
            self._belongings = tuple(_joined(column) for column in columns)
        return self._belongings


def _joined(parts):
    """Return one array of the arrays of all blocks, or None if there are none."""
    return None if any(part is None for part in parts) else np.concatenate(parts)


def part_of_block(block, begin, end):
    """Return the Block of some consecutive rows of another."""
    if (begin, end) == (0, block.n_rows):
        return block
    rows = block.rows
    if isinstance(rows, DenseRows):
        rows = DenseRows(rows.values[begin:end], rows.constant)
    else:
        first, last = rows.indptr[begin], rows.indptr[end]
        offsets = rows.indptr[begin : end + 1] - first
        rows = SparseRows(rows.data[first:last], rows.indices[first:last], offsets, rows.constant)
    return Block(rows, block.label[begin:end], *(one if one is None else one[begin:end] for one in block[2:]))


def open_blocks(paths: FilePath | Sequence[FilePath]) -> RowBlocks:
    """Open row-block files, which `write_blocks` or `widemargin convert` made, without reading their rows.

    Parameters
    ----------
    paths : str or path, or a list of them
        Files with the same features; their rows follow one another.

    Returns
    -------
    RowBlocks

    Raises
    ------
    FormatError
        If a file is no row-block file, is damaged, or has other columns than the first.
    """
    several = list(paths) if isinstance(paths, (list, tuple)) else [paths]
    if not several:
        raise ValueError("open_blocks needs at least one file, got an empty list.")
    files = [_File(os.fsdecode(path)) for path in several]
    for file in files[1:]:
        if file.layout != files[0].layout:
            raise FormatError(
                f"{file.path} has other columns than {files[0].path}: {file.layout.schema.to_string()} instead of "
                f"{files[0].layout.schema.to_string()}. Convert both with the same options."
            )
    pieces, start = [], 0
    for file in files:
        for number, n_rows in enumerate(file.rows_of_blocks):
            pieces.append(_Piece(file, number, 0, n_rows, start))
            start += n_rows
    return RowBlocks(pieces, _merged([file.summary for file in files]), files[0].layout)


def _merged(summaries):
    """Return the Summary of the rows of several files."""
    if len(summaries) == 1:
        return summaries[0]
    n_rows = sum(one.n_rows for one in summaries)
    weights = [one.n_rows / max(1, n_rows) for one in summaries]
    return replace(
        summaries[0],
        n_rows=n_rows,
        n_stored=sum(one.n_stored for one in summaries),
        squared_lengths=sum(w * one.squared_lengths for w, one in zip(weights, summaries, strict=True)),
        longest_row=max(one.longest_row for one in summaries),
        largest_norm=max(one.largest_norm for one in summaries),
        is_shuffled=False,  # each file is, but the first need not be like the others
        columns=_merged_columns(summaries, weights),
    )


def _merged_columns(summaries, weights):
    if not all(one.columns for one in summaries):
        return {}
    stacked = {name: np.stack([one.columns[name] for one in summaries]) for name in summaries[0].columns}
    weights = np.array(weights)
    mean = weights @ stacked["mean"]
    variance = weights @ (stacked["deviation"] ** 2 + (stacked["mean"] - mean) ** 2)
    return {"mean": mean, "deviation": np.sqrt(variance), "max_abs": stacked["max_abs"].max(axis=0)}


class _File:
    """One file: its layout and summary, and blocks read from it, each checked when it is read for the first time."""

    def __init__(self, path):
        self.path, self._lock, self._checked, self._open = path, threading.Lock(), set(), None
        self._stamp = _stamp(path)
        reader = self._reader()
        try:
            self.layout = Layout.of_schema(reader.schema)
            self.summary, classes = Summary.of_metadata(reader.schema.metadata)
        except ValueError as error:
            raise FormatError(f"{path} is not a row-block file: {error}") from None
        if self.summary is None:
            raise FormatError(
                f"{path} is an Arrow file that widemargin has not written: statistics are missing. Convert it with "
                f"write_blocks or `widemargin convert {path} OUT`."
            )
        label_type = tuple(classes) if classes is not None else self.layout.label_type
        self.layout = replace(self.layout, n_features=self.summary.n_features, label_type=label_type)
        n, size = self.summary.n_rows, max(1, self.summary.rows_per_block)
        self.rows_of_blocks = [min(size, n - first) for first in range(0, n, size)]
        if len(self.rows_of_blocks) != reader.num_record_batches:
            raise FormatError(
                f"{path} is damaged: {n} rows in blocks of {size} are {len(self.rows_of_blocks)} blocks, the file has "
                f"{reader.num_record_batches}."
            )

    def _reader(self):
        """Return the Arrow reader, which each process opens for itself."""
        if self._open is None or self._open[0] != os.getpid():
            try:
                self._open = os.getpid(), pa.ipc.open_file(pa.OSFile(self.path))
            except (pa.ArrowInvalid, OSError) as error:
                size = os.path.getsize(self.path)
                raise FormatError(
                    f"{self.path} is not a complete row-block file: its end, at byte {size}, is not that of an Arrow "
                    f"file ({error}). The file is cut off or of another kind; write it again."
                ) from None
        return self._open[1]

    def __getstate__(self):
        return {**self.__dict__, "_lock": None, "_open": None}

    def __setstate__(self, state):
        self.__dict__.update(state, _lock=threading.Lock())

    def read(self, number):
        """Return block `number`."""
        return decode(self._batch(number))

    def belongings(self, number):
        """Return label, qid and weight of the rows of a block."""
        return self.read(number)[1:]

    def _batch(self, number):
        if _stamp(self.path) != self._stamp:
            raise FormatError(f"{self.path} has changed since it was opened. Open it again and start anew.")
        try:
            with self._lock:
                found = self._reader().get_batch_with_custom_metadata(number)
        except (pa.ArrowInvalid, OSError) as error:
            raise FormatError(f"{self.path} is damaged: block {number} cannot be read ({error}).") from None
        if number not in self._checked:
            self._check(number, *found)
        return found[0]

    def _check(self, number, batch, metadata):
        """Refuse a block whose checksum or number of rows is not that which was written."""
        words = {} if metadata is None else {key.decode(): value.decode() for key, value in metadata.items()}
        if checksum(batch) != words.get("checksum") or batch.num_rows != self.rows_of_blocks[number]:
            where = f", which begins at byte {words['byte']}," if "byte" in words else ""
            raise FormatError(
                f"{self.path} is damaged: block {number} of {len(self.rows_of_blocks)}{where} has not the contents that "
                "were written. Write the file again, and check the disk."
            )
        self._checked.add(number)


def _stamp(path):
    """Return what changes when a file is written to or replaced."""
    try:
        status = os.stat(path)
    except OSError as error:
        raise FileNotFoundError(f"{path} cannot be read: {error.strerror}.") from None
    return status.st_size, status.st_mtime_ns, status.st_ino
