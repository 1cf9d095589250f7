"""Sources of rows for a row-block file: text, blocks of a caller, arrays on disk, and row-block files themselves.

`parts` of a source yields tuples, and `receive(*part, slot)` turns them into `Incoming` rows, in any thread. Where
`parts` yields None, all parts before are turned into rows first. Text is in `text`, tables are in `tables`.
"""

import os
from collections.abc import Iterable

import numpy as np
import pyarrow as pa

from widemargin._runtime.progress import task
from widemargin.data.blocks import layout
from widemargin.data.blocks.extra import OptionError
from widemargin.data.blocks.incoming import checked_chunk, checked_matrix, received
from widemargin.data.blocks.row_blocks import to_scipy
from widemargin.data.blocks.tables import TableSource, as_dataset
from widemargin.data.blocks.text import TextSource, text_source
from widemargin.data.svmlight.blocks import SvmlightBlocks
from widemargin.errors import FormatError

_VALUES_PER_PART = 1 << 18
_ARROW_SUFFIXES = (".arrow", ".ipc", ".feather")
_ARRAY_BYTES_PER_BLOCK = 1 << 24  # of an array on disk


class BlockSource:
    """Blocks (X, y[, qid[, weight]]) of a caller.

    Parameters
    ----------
    blocks : iterable
        The blocks.
    n_rows : int or None
        Number of all rows, for the progress; None if it is not known.
    """

    names, n_features = None, None
    may_be_dense = False

    def __init__(self, blocks, n_rows=None, name="source"):
        self._blocks, self._n_rows, self.name = blocks, n_rows, name

    def parts(self):
        """Yield (Chunk, number of rows before it); the next block is asked for when all before have been read."""
        n_before, first = 0, None
        with task(f"reading {os.path.basename(self.name)}", self._n_rows, "rows") as reading:
            for block in self._blocks:
                chunk = checked_chunk(block, n_before)
                first = first or _shape_of(chunk)
                _refuse_change(first, _shape_of(chunk), n_before)
                self.n_features = chunk.X.shape[1]
                yield from ((part, n_before + start) for part, start in divided(chunk))
                yield None
                n_before += len(chunk.label)
                reading.advance(len(chunk.label))

    def receive(self, chunk, n_before, slot):
        """Return the rows of a Chunk."""
        return received(chunk, n_before)


def _shape_of(chunk):
    """Return what all blocks have in common, in words."""
    return {
        "X": "an array" if isinstance(chunk.X, np.ndarray) else "sparse",
        "the number of columns of X": chunk.X.shape[1],
        "labels": "strings" if chunk.label.dtype == object else "numbers",
        "qid": "missing" if chunk.qid is None else "given",
        "weight": "missing" if chunk.weight is None else "given",
    }


def _refuse_change(first, now, n_before):
    for what, value in first.items():
        if now[what] != value:
            raise ValueError(
                f"blocks must be alike: {what} was {value} in the first block, and is {now[what]} in the block that "
                f"begins with row {n_before}."
            )


def divided(chunk):
    """Yield (Chunk, its first row) of parts of a Chunk, for threads."""
    n_rows, n_values = len(chunk.label), getattr(chunk.X, "nnz", None) or chunk.X.shape[0] * chunk.X.shape[1]
    rows_per_part = max(1, _VALUES_PER_PART * n_rows // max(n_values, 1))
    for start in range(0, max(n_rows, 1), rows_per_part):
        yield chunk.part(slice(start, start + rows_per_part)), start


def _array_source(path, label, qid, weight):
    """Return the source of arrays in .npy files, which are mapped into memory."""
    if label is None:
        raise OptionError("label must be the path of a .npy file with the labels.")
    files = [path, label, qid, weight]
    X, *belongings = (None if one is None else _mapped(one) for one in files)
    checked_matrix(X[:0])
    for file, array in zip(files[1:], belongings, strict=True):
        if array is not None and len(array) != len(X):
            raise ValueError(f"{file} must have an entry for each of {len(X)} rows of {path}, got {len(array)}.")
    rows_per_block = max(1, _ARRAY_BYTES_PER_BLOCK // max(X[:1].nbytes, 1))

    def blocks():
        for start in range(0, len(X), rows_per_block):
            part = slice(start, start + rows_per_block)
            yield (X[part], *(None if one is None else one[part] for one in belongings))

    return BlockSource(blocks(), len(X), str(path))


def _mapped(path):
    try:
        return np.load(path, mmap_mode="r", allow_pickle=False)
    except ValueError as error:
        raise FormatError(os.fsdecode(path), f"is no array of numbers that can be mapped ({error})") from error


def _is_block_file(path):
    """Whether an Arrow file has the columns of a row-block file."""
    try:
        with pa.memory_map(os.fsdecode(path)) as file:
            names = pa.ipc.open_file(file).schema.names
    except pa.ArrowInvalid as error:
        raise FormatError(os.fsdecode(path), f"is no Arrow file, or not a complete one ({error})") from error
    return "label" in names and bool({"indices", "features"} & set(names))


class _BlockFileSource:
    """A row-block file, to be written once more in another order or with another compression."""

    may_be_dense = False

    def __init__(self, path):
        self.name = path
        with pa.memory_map(path) as file:
            reader = pa.ipc.open_file(file)
            kind = layout.Layout.of_schema(reader.schema)
            summary, _ = layout.Summary.of_metadata(reader.schema.metadata, kind)
        self.names = summary and summary.names
        self.n_features = summary.n_features if summary else (None if kind.is_sparse else kind.n_features)
        self._rows = summary and summary.n_rows

    def parts(self):
        """Yield (record batch, number of rows before it)."""
        n_before = 0
        with pa.memory_map(self.name) as file, task(f"reading {self.name}", self._rows, "rows") as reading:
            reader = pa.ipc.open_file(file)
            for number in range(reader.num_record_batches):
                batch = reader.get_batch(number)
                yield batch, n_before
                n_before += batch.num_rows
                reading.advance(batch.num_rows)
            yield None  # the file stays open until all has been read

    def receive(self, batch, n_before, slot):
        """Return the rows of a record batch."""
        block = layout.decode(batch)
        label = batch.column("label")
        y = np.array(label.to_pylist(), object) if pa.types.is_dictionary(label.type) else block.label
        width = self.n_features
        if width is None:
            width = int(block.rows.indices.max(initial=0)) + 1
        X = to_scipy(block.rows, width)
        chunk = checked_chunk((X, y, block.qid, block.weight), n_before)
        return received(chunk, n_before, self.names)


def open_source(source, *, label, qid, weight, columns, n_features, zero_based, dtype):
    """Return the source of rows that `source` stands for; the parameters are those of `write_blocks`.

    Raises
    ------
    ValueError
        If an option does not apply to the source.
    """
    of_rows = {"label": label, "qid": qid, "weight": weight}
    of_text = {"n_features": n_features, "zero_based": zero_based or None, "dtype": dtype}
    is_path = isinstance(source, str | bytes | os.PathLike)
    suffix = os.path.splitext(os.fsdecode(source))[1].lower() if is_path else ""
    if suffix == ".npy":
        _refuse_options("a .npy file", {"columns": columns, **of_text})
        return _array_source(source, **of_rows)
    if suffix in _ARROW_SUFFIXES and _is_block_file(source):
        _refuse_options("a row-block file", {"columns": columns, **of_rows, **of_text})
        return _BlockFileSource(os.fsdecode(source))
    dataset = as_dataset(source)
    if dataset is not None:
        _refuse_options("a table", of_text)
        name = os.fsdecode(source) if is_path else "the table"
        return TableSource(dataset, label, qid=qid, weight=weight, columns=columns, name=name)
    if is_path or hasattr(source, "read"):
        _refuse_options("SVM-light text", {"columns": columns, **of_rows})
        return text_source(
            source, zero_based=zero_based, n_features=n_features, dtype=np.float64 if dtype is None else dtype
        )
    _refuse_options("blocks", {"columns": columns, **of_rows, **of_text})
    if isinstance(source, SvmlightBlocks):
        return TextSource(source)
    if not isinstance(source, Iterable) or isinstance(source, np.ndarray):
        raise TypeError(
            "source must be a path, a binary file object, a data frame or table, or an iterable of blocks (X, y), got "
            f"{type(source).__name__}."
        )
    return BlockSource(source)


def _refuse_options(kind, options):
    given = [name for name, value in options.items() if value is not None]
    if given:
        raise OptionError(f"{', '.join(given)} cannot be given if the source is {kind}.")
