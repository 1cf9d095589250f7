"""Row-block files as any program reads them: by pyarrow alone, and the rows of a file as one matrix."""

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from scipy.sparse import csr_array, vstack

from widemargin.data.blocks.layout import Layout, Summary, checksum, decode
from widemargin.data.blocks.row_blocks import to_scipy


class Contents(NamedTuple):
    """All rows of a file, and what it says of them."""

    X: Any
    label: np.ndarray
    qid: np.ndarray | None
    weight: np.ndarray | None
    summary: Summary
    layout: Layout
    n_rows_of_blocks: list


def read_back(path):
    """Return the Contents of a file, after comparing numbers, offsets and checksums of its blocks."""
    with open(path, "rb") as file:
        reader = pa.ipc.open_file(file)
        summary, classes = Summary.of_metadata(reader.schema.metadata, Layout.of_schema(reader.schema))
        found = [reader.get_batch_with_custom_metadata(k) for k in range(reader.num_record_batches)]
    stored = path.read_bytes()
    for number, (batch, words) in enumerate(found):
        assert words[b"checksum"].decode() == checksum(batch)
        assert int(words[b"block"]) == number
        message = pa.ipc.read_message(stored[int(words[b"byte"]) :])
        assert message.type == ("dictionary" if number == 0 and classes is not None else "record batch")
    blocks = [decode(batch) for batch, _ in found]
    matrices = [to_scipy(block.rows, summary.n_features) for block in blocks]
    layout = Layout.of_schema(reader.schema)
    label = _joined([block.label for block in blocks])
    if classes is not None:
        label = np.array(classes, object)[label.astype(int)]
    if not matrices:
        X = np.empty((0, summary.n_features))
    else:
        X = csr_array(vstack(matrices, format="csr")) if layout.is_sparse else np.concatenate(matrices)
    belongings = (_joined([getattr(block, name) for block in blocks]) for name in ("qid", "weight"))
    return Contents(X, label, *belongings, summary, layout, [block.n_rows for block in blocks])


def _joined(arrays):
    if not arrays:
        return np.empty(0)
    return None if arrays[0] is None else np.concatenate(arrays)


def dense(X):
    """Return a matrix as an array of float64."""
    return np.asarray(X.toarray() if hasattr(X, "toarray") else X, np.float64)


def table(X, label, qid=None, weight=None):
    """Return everything that belongs to a row as a row of an array of bits, for comparison to the last bit."""
    columns = [dense(X), np.asarray(label, np.float64)[:, None]]
    columns += [np.asarray(one, np.float64)[:, None] for one in (qid, weight) if one is not None]
    return np.ascontiguousarray(np.concatenate(columns, axis=1)).view(np.int64)
