"""`open_blocks`: row-block files as RowBlocks, each block checked when it is read for the first time."""

import os
import threading
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from widemargin._runtime.argument_types import FilePath
from widemargin.data.blocks.layout import (
    BELONGINGS,
    Layout,
    Summary,
    checksum,
    checksum_of_belongings,
    decode,
    decode_belongings,
)
from widemargin.data.blocks.row_blocks import Piece, RowBlocks
from widemargin.errors import FormatError

# What pyarrow and we raise for damaged bytes, which may stand for anything.
_DAMAGE = (
    pa.ArrowException, OSError, ValueError, KeyError, TypeError, AttributeError, IndexError, OverflowError, MemoryError,
    NotImplementedError,
)  # fmt: skip


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
    several = [paths] if isinstance(paths, str | bytes | os.PathLike) else list(paths)
    if not several:
        raise ValueError("open_blocks needs at least one file, got an empty list.")
    files = [_File(os.fsdecode(path)) for path in several]
    for file in files[1:]:
        if file.layout != files[0].layout:
            raise FormatError(
                file.path,
                f"the columns are others than those of {files[0].path}: {file.layout.schema.to_string()} instead of "
                f"{files[0].layout.schema.to_string()}. Convert both with the same options.",
            )
    pieces, start = [], 0
    for file in files:
        for number, n_rows in enumerate(file.rows_of_blocks):
            pieces.append(Piece(file, number, 0, n_rows, start))
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
        self.path, self._lock, self._checked, self._open = path, threading.Lock(), set(), {}
        self._stamp = _stamp(path)
        reader = self._reader()
        try:
            self.layout = Layout.of_schema(reader.schema)
            self.summary, classes = Summary.of_metadata(reader.schema.metadata, self.layout)
        except _DAMAGE as error:
            raise FormatError(path, f"this is not a row-block file: {error}") from None
        if self.summary is None:
            raise FormatError(
                path,
                "this is an Arrow file that widemargin has not written: statistics are missing. Convert it with "
                f"write_blocks or `widemargin convert {path} OUT`.",
            )
        label_type = tuple(classes) if classes is not None else self.layout.label_type
        self.layout = replace(self.layout, n_features=self.summary.n_features, label_type=label_type)
        n, size = self.summary.n_rows, max(1, self.summary.rows_per_block)
        self.rows_of_blocks = [min(size, n - first) for first in range(0, n, size)]
        if len(self.rows_of_blocks) != reader.num_record_batches:
            raise FormatError(
                path,
                f"the file is damaged: {n} rows in blocks of {size} are {len(self.rows_of_blocks)} blocks, it has "
                f"{reader.num_record_batches}.",
            )

    def _reader(self, names=None):
        """Return the Arrow reader of some columns, or of all, which each process opens for itself."""
        key = os.getpid(), names
        if key not in self._open:
            try:
                reader = pa.ipc.open_file(pa.OSFile(self.path))
                if names is not None:
                    chosen = [k for k, name in enumerate(reader.schema.names) if name in names]
                    options = pa.ipc.IpcReadOptions(included_fields=chosen)
                    reader = pa.ipc.open_file(pa.OSFile(self.path), options=options)
                self._open[key] = reader
            except _DAMAGE as error:
                size = os.path.getsize(self.path)
                raise FormatError(
                    self.path,
                    f"this is not a complete row-block file: its end, at byte {size}, is not that of an Arrow file "
                    f"({error}). The file is cut off or of another kind; write it again.",
                ) from None
        return self._open[key]

    def __getstate__(self):
        return {**self.__dict__, "_lock": None, "_open": {}}

    def __setstate__(self, state):
        self.__dict__.update(state, _lock=threading.Lock())

    def read(self, number):
        """Return block `number`."""
        return decode(self._batch(number, None, checksum, "checksum"))

    def belongings(self, number):
        """Return label, qid and weight of the rows of a block; the features are not read."""
        return decode_belongings(self._batch(number, BELONGINGS, checksum_of_belongings, "belongings"))

    def _batch(self, number, names, checksum_of, key):
        """Return the record batch of a block, or some of its columns, whose checksum is compared with word `key`."""
        if _stamp(self.path) != self._stamp:
            raise FormatError(self.path, "the file has changed since it was opened. Open it again and start anew.")
        try:
            with self._lock:
                batch, metadata = self._reader(names).get_batch_with_custom_metadata(number)
            batch.validate()  # a damaged length would lead outside of the memory
            if (number, key) in self._checked:
                return batch
            words = {name.decode(): word.decode() for name, word in dict(metadata or {}).items()}
            found = checksum_of(batch), batch.num_rows
        except _DAMAGE as error:
            raise FormatError(self.path, f"the file is damaged: block {number} cannot be read ({error}).") from None
        if found != (words.get(key, None if key == "checksum" else found[0]), self.rows_of_blocks[number]):
            where = f", which begins at byte {words['byte']}," if "byte" in words else ""
            raise FormatError(
                self.path,
                f"the file is damaged: block {number} of {len(self.rows_of_blocks)}{where} has not the contents that "
                "were written. Write the file again, and check the disk.",
            )
        self._checked.add((number, key))
        return batch


def _stamp(path):
    """Return what changes when a file is written to or replaced."""
    try:
        status = os.stat(path)
    except OSError as error:
        raise FileNotFoundError(f"{path} cannot be read: {error.strerror}.") from None
    return status.st_size, status.st_mtime_ns, status.st_ino
