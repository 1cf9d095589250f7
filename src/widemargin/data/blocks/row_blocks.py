"""`RowBlocks`: rows that are read block by block, from row-block files or from memory."""

import os
from collections.abc import Iterator, Sequence
from itertools import pairwise
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, vstack

from widemargin._runtime.progress import task
from widemargin.data.column_scaling import column_statistics
from widemargin.data.matrix import Matrix
from widemargin.data.rows import DenseRows, SparseRows

_ROWS_OF_BLOCK_IN_MEMORY = 1 << 14
_LABEL, _QID, _WEIGHT = range(3)  # in the order of a Block


class Block(NamedTuple):
    """The rows of a block as they are in memory: `rows` for compiled loops, and what belongs to each row."""

    rows: DenseRows | SparseRows
    label: np.ndarray
    qid: np.ndarray | None
    weight: np.ndarray | None

    @property
    def n_rows(self):
        """Number of rows."""
        return len(self.label)


class Piece(NamedTuple):
    """Consecutive rows of one block of one file; `begin` and `end` are rows of the block, `start` is the first row of
    the RowBlocks that they are."""

    file: Any
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
        What the files say of all their rows; a range of rows has that of the whole files.
    columns : dict of ndarrays
        Arrays `mean`, `deviation` and `max_abs` with a number per column; empty if the files have none, and for a range
        of rows.

    Examples
    --------
    >>> import numpy as np
    >>> from widemargin import open_blocks, write_blocks
    >>> written = write_blocks("rows.arrow", [(np.eye(4), [0, 1, 0, 1])])
    >>> rows = open_blocks("rows.arrow")
    >>> rows.shape, rows[1:3].shape
    ((4, 4), (2, 4))
    """

    def __init__(self, pieces: Sequence[Piece], summary: Any, layout: Any) -> None:
        self._pieces, self.summary, self.layout = list(pieces), summary, layout
        n_rows = sum(piece.n_rows for piece in self._pieces)
        self.shape = (n_rows, summary.n_features)
        self.feature_names = summary.names
        self.paths = list(dict.fromkeys(piece.file.path for piece in self._pieces))
        self.columns = summary.columns if n_rows == summary.n_rows else {}
        self._belongings: dict[int, Any] = {}

    @classmethod
    def of_array(cls, X: Any) -> "RowBlocks":
        """Return the RowBlocks of an array or CSR matrix in memory, without labels."""
        file = _Array(X)
        ends = [*range(0, X.shape[0], _ROWS_OF_BLOCK_IN_MEMORY), X.shape[0]]
        pieces = [Piece(file, k, 0, stop - start, start) for k, (start, stop) in enumerate(pairwise(ends))]
        return cls(pieces, file.summary, file.layout)

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
        """Mean number of bytes of a row, with its label, query and weight, which a block in memory has, too."""
        layout, summary = self.layout, self.summary
        value = 0 if layout.value_type is None else layout.value_type.itemsize
        belongings = _bytes_of_belongings(layout)
        if not layout.is_sparse:
            return float(belongings + value * summary.n_features)
        return belongings + 4.0 + (value + layout.index_type.itemsize) * summary.n_stored / max(1, summary.n_rows)

    def rows_of(self, k: int) -> tuple[int, int]:
        """Return the first row of block k, and the one after its last."""
        piece = self._pieces[k]
        return piece.start, piece.start + piece.n_rows

    def rows_in_files(self) -> str:
        """Return which rows of the files these are, as words: the first and the last one."""
        if not self._pieces:
            return "none"
        first, last = self._pieces[0], self._pieces[-1]
        return f"{first.begin} of block {first.number} to {last.end} of block {last.number}"

    def ends(self) -> list[tuple[int, int]]:
        """Return for each block its first row, and the one after its last."""
        return [self.rows_of(k) for k in range(self.n_blocks)]

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
        return RowBlocks(pieces, self.summary, self.layout)

    def of_blocks(self, blocks: list[Block]) -> "RowBlocks":
        """Return the RowBlocks of blocks in memory that have the columns of this one."""
        file, pieces, start = LoadedBlocks(blocks), [], 0
        for number, block in enumerate(blocks):
            pieces.append(Piece(file, number, 0, block.n_rows, start))
            start += block.n_rows
        return RowBlocks(pieces, self.summary, self.layout)

    def __iter__(self) -> Iterator[tuple[Any, NDArray[Any]]]:
        for k in range(self.n_blocks):
            block = self.read(k)
            yield to_scipy(block.rows, self.shape[1]), self.named(block.label)

    def to_memory(self) -> Any:
        """Return all rows as an array or csr_array with the types of the file."""
        parts = []
        with task(f"reading {os.path.basename(self.paths[0]) if self.paths else ''}", max(1, self.n_bytes), "bytes",
                  speed=True) as reading:  # fmt: skip
            for X, y in self:
                parts.append(X)
                reading.advance(round(self.bytes_per_row * len(y)))
        if not parts:
            kind = np.uint8 if self.layout.value_type is None else self.layout.value_type
            return (csr_array if self.layout.is_sparse else np.empty)(self.shape, dtype=kind)
        return vstack(parts, format="csr") if self.layout.is_sparse else np.concatenate(parts)

    @property
    def labels(self) -> NDArray[Any]:
        """The label of each row; strings if the file has strings."""
        return self.named(self._belonging(_LABEL))

    @property
    def qid(self) -> NDArray[np.int64] | None:
        """The query of each row, or None."""
        return self._belonging(_QID)

    @property
    def weight(self) -> NDArray[np.float64] | None:
        """The weight of each row, or None."""
        return self._belonging(_WEIGHT)

    def query_runs(self) -> tuple[NDArray[np.int64], NDArray[np.int64]] | None:
        """Return the first row of each run of rows of the same query, and its qid; None if the files have no queries.

        The queries of all rows are not kept in memory.
        """
        starts, names, row, last = [], [], 0, None
        for qid in self._parts_of(_QID):
            if qid is None:
                return None
            if not len(qid):
                continue
            is_first = np.concatenate([[last is None or qid[0] != last], qid[1:] != qid[:-1]])
            starts.append(row + np.flatnonzero(is_first))
            names.append(qid[is_first])
            row, last = row + len(qid), qid[-1]
        return np.concatenate([np.empty(0, np.int64), *starts]), np.concatenate([np.empty(0, np.int64), *names])

    def named(self, label: NDArray[Any]) -> NDArray[Any]:
        """Return labels as the caller knows them: the strings, if those of the file stand for strings."""
        classes = self.layout.label_type
        return np.array(classes)[label] if isinstance(classes, tuple) else label

    def _belonging(self, which):
        """Return what the files have for each row: labels, queries or weights; None if they have none."""
        if which not in self._belongings:
            parts = list(self._parts_of(which)) or [self._none(which)]
            self._belongings[which] = None if any(part is None for part in parts) else np.concatenate(parts)
        return self._belongings[which]

    def _parts_of(self, which):
        """Yield what the files have for the rows of one block after the other."""
        for piece in self._pieces:
            part = piece.file.belongings(piece.number)[which]
            yield part if part is None else part[piece.begin : piece.end]

    def _none(self, which):
        """Return an array as that of a block, if there are no blocks."""
        kind, layout = self.layout.label_type, self.layout
        if which == _LABEL:
            return np.empty(0, np.int32 if isinstance(kind, tuple) else kind)
        if not getattr(layout, "has_qid" if which == _QID else "has_weight", False):
            return None
        return np.empty(0, np.int64 if which == _QID else np.float64)


def _bytes_of_belongings(layout):
    """Return the bytes of label, query and weight of a row in a file; those of rows in memory are not with the rows."""
    if layout.label_type is None:
        return 0
    label = np.int32 if isinstance(layout.label_type, tuple) else layout.label_type
    return np.dtype(label).itemsize + 8 * layout.has_qid + 8 * layout.has_weight


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


class LoadedBlocks:
    """Blocks in memory, as a file of blocks."""

    path = "memory"

    def __init__(self, blocks):
        self._blocks = blocks

    def read(self, number):
        """Return block `number`."""
        return self._blocks[number]


class _Array:
    """An array or CSR matrix in memory, as a file of blocks."""

    path = "memory"

    def __init__(self, X):
        matrix = Matrix(X)
        self._rows, self._n_rows = matrix.rows, X.shape[0]
        is_sparse = isinstance(self._rows, SparseRows)
        lengths = np.diff(self._rows.indptr) if is_sparse else np.full(X.shape[0], X.shape[1])
        values = self._rows.data if is_sparse else self._rows.values
        index = self._rows.indices.dtype if is_sparse else None
        self.layout = SimpleNamespace(is_sparse=is_sparse, value_type=values.dtype, index_type=index, label_type=None)
        self.summary = SimpleNamespace(
            n_rows=X.shape[0],
            n_features=X.shape[1],
            n_stored=int(lengths.sum()),
            squared_lengths=float(np.mean(np.square(lengths, dtype=np.float64))),
            longest_row=int(lengths.max(initial=0)),
            largest_norm=float(matrix.squared_norms().max(initial=0.0)),
            is_shuffled=False,
            columns=column_statistics([X]),
            names=None,
        )

    def read(self, number):
        """Return block `number`."""
        start = number * _ROWS_OF_BLOCK_IN_MEMORY
        stop = min(start + _ROWS_OF_BLOCK_IN_MEMORY, self._n_rows)
        return part_of_block(Block(self._rows, np.zeros(self._n_rows), None, None), start, stop)


def to_scipy(rows, n_features):
    """Return the rows of a Block as an array or csr_array with the types of the file; a value column is added."""
    if isinstance(rows, DenseRows):
        return rows.values
    n_stored = int(rows.indptr[-1])
    indices = rows.indices.astype(np.int32)
    offsets = rows.indptr.astype(np.int32 if n_stored < 2**31 else np.int64)  # scikit-learn takes 32 bits only
    X = csr_array((rows.data, indices, offsets), shape=(len(offsets) - 1, n_features))
    X.has_canonical_format = True
    return X
