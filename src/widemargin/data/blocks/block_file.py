"""Writing of the Arrow file: blocks are gathered and encoded in threads, and written one after the other."""

import os
from contextlib import closing, nullcontext

import numpy as np
import pyarrow as pa

from widemargin._runtime.atomic_file import replacing
from widemargin._runtime.compile import compiled
from widemargin._runtime.progress import task
from widemargin._runtime.threads import stream
from widemargin.data.blocks.layout import Chunk, Layout, checksum, checksum_of_belongings, encode
from widemargin.data.blocks.row_buffer import RowTypes
from widemargin.data.blocks.sink import Sink, sending_early
from widemargin.data.blocks.statistics import BYTES, VALUE_TYPES
from widemargin.data.rows import SparseRows

_COLUMNS_OF_UINT16 = 1 << 16
_LARGEST_OFFSET = 2**31 - 1
_BYTES_BEFORE_SCHEMA = 8  # of an Arrow file
_BLOCKS_AT_A_TIME = 4  # that threads gather and encode before they are written


def make_layout(facts, types, n_features, classes, *, may_be_dense):
    """Return the Layout of all rows: the narrowest types, dense if that is smaller and the source allows it."""
    value = VALUE_TYPES[facts.kind]
    shared = {
        "label_type": facts.label_type if classes is None else tuple(sorted(classes)),
        "has_qid": types.has_qid,
        "has_weight": types.has_weight,
    }
    index = np.dtype(np.uint16 if n_features <= _COLUMNS_OF_UINT16 else np.uint32)
    sparse_bytes = facts.n_stored * (index.itemsize + (0 if value is None else value.itemsize)) + 4 * facts.n_rows
    dense_bytes = facts.n_rows * n_features * (1 if value is None else value.itemsize)
    if types.index is None or (may_be_dense and 0 < dense_bytes <= sparse_bytes):
        return Layout(n_features, None, VALUE_TYPES[BYTES] if value is None else value, **shared)
    return Layout(n_features, index, value, **shared)


def rows_per_block(layout, facts, block_bytes):
    """Return the number of rows of a block."""
    value = 0 if layout.value_type is None else layout.value_type.itemsize
    if layout.is_sparse:
        per_row = 4 + (layout.index_type.itemsize + value) * facts.n_stored / max(facts.n_rows, 1)
    else:
        per_row = value * layout.n_features
    n_rows = max(1, int(block_bytes / max(per_row, 1)))
    return max(1, min(n_rows, max(facts.n_rows, 1), _LARGEST_OFFSET // max(facts.longest_row, 1)))


class BlockEncoder:
    """Turns rows of a spool into record batches.

    Parameters
    ----------
    layout : Layout
        Types of the file.
    classes : list of str or None
        Classes in the order of their numbers in the spool.
    """

    def __init__(self, layout, classes):
        self._layout = layout
        self._types = RowTypes(layout.index_type, layout.value_type, 0, layout.has_qid, layout.has_weight)
        self._class_numbers = None
        if classes is not None:
            numbers = {name: number for number, name in enumerate(layout.label_type)}
            self._class_numbers = np.array([numbers[name] for name in classes], np.int32)

    def batch(self, *parts):
        """Return (record batch, its checksum) of rows that are given as (buffer, order)."""
        width = 0 if self._layout.is_sparse or len(parts) > 1 else self._layout.n_features
        pieces = [buffer.gather(order, width) for buffer, order in parts]
        rows = pieces[0]
        for piece in pieces[1:]:
            types = rows.types.joined(piece.types)
            rows = rows.converted(types).followed_by(piece.converted(types))
        batch = encode(Chunk(self._matrix(rows), self._labels(rows.label), rows.qid, rows.weight), self._layout)
        return batch, checksum(batch)

    def _labels(self, label):
        return label if self._class_numbers is None else self._class_numbers[label.astype(np.intp)]

    def _matrix(self, rows):
        layout = self._layout
        if rows.indptr is None:
            return rows.values.reshape(rows.n_rows, layout.n_features)
        if layout.is_sparse:
            rows = rows.converted(self._types)
            return SparseRows(rows.values, rows.indices, rows.indptr, 0.0)
        shape = rows.n_rows, layout.n_features
        if rows.n_entries == rows.n_rows * layout.n_features:  # every row has a value in every column
            return np.ones(shape, layout.value_type) if rows.values is None else rows.values.reshape(shape)
        X = np.zeros(shape, layout.value_type)
        values = np.ones(rows.n_entries, layout.value_type) if rows.values is None else rows.values
        _fill(rows.indptr, rows.indices, values, X)
        return X


@compiled
def _fill(indptr, indices, values, X):
    """Set the stored values of CSR rows in a dense array."""
    for i in range(X.shape[0]):
        for k in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
            X[i, np.uint64(indices[k])] = values[k]


def block_parts(spool, n_rows):
    """Yield blocks, each a list of (buffer, order) with `n_rows` rows, the last with fewer.

    After None, all blocks before are no longer valid.
    """
    rest, n_rest = [], 0
    for buffer, order in spool.sorted():
        start = 0
        while n_rest + buffer.n_rows - start >= n_rows:
            stop = start + n_rows - n_rest
            yield [*rest, (buffer, _part(order, start, stop))]
            rest, n_rest, start = [], 0, stop
        if start < buffer.n_rows:
            rest.append((buffer.copy(_part(order, start, buffer.n_rows)), slice(0, buffer.n_rows - start)))
            n_rest += buffer.n_rows - start
        yield None
    if rest:
        yield rest


def _part(order, start, stop):
    """Return the rows from `start` to `stop` of an order, which may be a slice of all."""
    return slice(start, stop) if isinstance(order, slice) else order[start:stop]


def write_file(path_or_file, spool, layout, summary, *, compression, classes):
    """Write all rows of a spool; return the number of bytes.

    Raises
    ------
    OSError
        If the disk is full or cannot be written to; the file is then as it was.
    """
    is_file = hasattr(path_or_file, "write")
    name = "" if is_file else os.path.basename(os.fsdecode(path_or_file))
    encoder = BlockEncoder(layout, classes)
    schema = layout.schema.with_metadata(summary.to_metadata(layout))
    first_byte = _BYTES_BEFORE_SCHEMA + schema.serialize().size  # both are written with the first block
    with nullcontext(path_or_file) if is_file else replacing(path_or_file) as file:
        sink = Sink(file)
        try:
            options = pa.ipc.IpcWriteOptions(compression=compression)
            with (
                task(f"writing {name}".strip(), summary.n_rows, "rows") as writing,
                nullcontext() if is_file else sending_early(sink),
                closing(block_parts(spool, summary.rows_per_block)) as blocks,
                closing(stream(encoder.batch, blocks, n_ahead=_BLOCKS_AT_A_TIME)) as batches,
                pa.ipc.new_file(pa.PythonFile(sink, "w"), schema, options=options) as writer,
            ):
                for number, (batch, check) in enumerate(batches):
                    byte = sink.tell() or first_byte
                    words = {"block": str(number), "byte": str(byte), "checksum": check}
                    words["belongings"] = checksum_of_belongings(batch)
                    writer.write_batch(batch, custom_metadata=words)
                    writing.advance(batch.num_rows)
        except (pa.ArrowException, OSError):
            if sink.error is not None:
                raise sink.error from None
            raise
        return sink.tell()
