"""Writing SVM-light / LIBSVM text: every number in the fewest digits that read back as the same number.

A file is replaced only when the new one is complete. For the format see `textfile`.
"""

import io
import os
from itertools import chain, islice, pairwise

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array, issparse

from widemargin._runtime.argument_types import PathOrFile, Rows
from widemargin._runtime.atomic_file import replacing
from widemargin._runtime.progress import task
from widemargin._runtime.threads import run
from widemargin.data.structure import check_structure
from widemargin.data.svmlight.compression import open_compressed
from widemargin.data.svmlight.number_formatter import LONGEST_ENTRY, LONGEST_HEAD, format_rows

_BLOCK_ENTRIES = 1 << 16
_BLOCKS_AT_ONCE = 16


def write_svmlight(
    path_or_file: PathOrFile,
    X: Rows,
    y: ArrayLike,
    *,
    qid: ArrayLike | None = None,
    zero_based: bool = False,
    comment: str | None = None,
) -> None:
    """Write rows as SVM-light / LIBSVM text; `read_svmlight` gives the same numbers back, to the bit.

    Parameters
    ----------
    path_or_file : str, path or file object
        A path is replaced when the new file is complete, and compressed if it ends with .gz, .bz2, .xz or
        .zst. A file object may be open in binary or text mode.
    X : array or sparse matrix of shape (n_rows, n_features)
        Of a sparse matrix every stored entry is written, of an array every entry but positive zero.
    y : array of shape (n_rows,)
        Labels, finite.
    qid : array of shape (n_rows,), default=None
        Queries, integers.
    zero_based : bool, default=False
        Whether indices count from 0 rather than from 1.
    comment : str, default=None
        Written before the rows, each line after a `#`.

    Raises
    ------
    ValueError
        If a number is not finite, or lengths differ; nothing is written then.
    """
    blocks = format_text(X, y, qid, zero_based)
    if comment is not None:
        blocks = chain(["".join(f"# {line}\n" for line in comment.splitlines())], blocks)
    write_text(path_or_file, blocks, n_rows=np.size(y))


def format_text(X, y, qid, zero_based):
    """Return the text of rows as an iterator of strings; what cannot be written is refused here and now."""
    return _format_blocks(*_check_rows(X, y, qid), 0 if zero_based else 1)


def write_text(path_or_file, blocks, n_rows=None):
    """Write blocks of text to a file object, or to a path: compressed as its name says, whole or not at all."""
    if hasattr(path_or_file, "write"):
        in_text = isinstance(path_or_file, io.TextIOBase)
        for block in blocks:
            path_or_file.write(block if in_text else block.encode())
        return
    path = os.fsdecode(path_or_file)
    writing = task(f"writing {os.path.basename(path)}", n_rows, "rows")
    with replacing(path) as file, open_compressed(file, path) as target, writing as written:
        for block in blocks:
            target.write(block.encode())
            written.advance(block.count("\n"))


def _check_rows(X, y, qid):
    """Return X as CSR with sorted, single entries, y and qid as arrays; refuse what cannot be written."""
    if issparse(X):
        check_structure(X)
        X = X.tocsr()
        if not X.has_canonical_format:
            X = X.copy()
            X.sum_duplicates()
    else:
        X = np.asarray(X)
        if X.ndim != 2:
            raise ValueError(f"X must have 2 dimensions, got {X.ndim}.")
        rows, columns = np.nonzero((X != 0) | np.signbit(X) if X.dtype.kind == "f" else X)
        indptr = np.searchsorted(rows, np.arange(len(X) + 1))
        X = csr_array((X[rows, columns], columns, indptr), shape=X.shape)
    if X.dtype.kind not in "buif":
        raise ValueError(f"X must hold real numbers, got {X.dtype}.")
    y, qid = np.asarray(y), None if qid is None else np.asarray(qid)
    for name, array in (("y", y), ("qid", qid)):
        if array is not None and array.shape != (X.shape[0],):
            raise ValueError(f"{name} must have shape ({X.shape[0]},), one per row of X, got {array.shape}.")
    if qid is not None and qid.dtype.kind not in "iu":
        raise ValueError(f"qid must hold integers, got {qid.dtype}.")
    y = y.astype(np.float64)
    if not np.isfinite(y).all():
        row = np.flatnonzero(~np.isfinite(y))[0]
        raise ValueError(f"y must be finite, got {y[row]} in row {row}.")
    if not np.isfinite(X.data).all():
        k = np.flatnonzero(~np.isfinite(X.data))[0]
        row = np.searchsorted(X.indptr, k, side="right") - 1
        raise ValueError(f"X must be finite, got {X.data[k]} in row {row}, column {X.indices[k]}.")
    return X, y, qid


def _format_blocks(X, y, qid, first_index):
    """Yield the text of the rows, about `_BLOCK_ENTRIES` entries at a time; threads format several at once."""
    queries = np.empty(0, dtype=np.int64) if qid is None else qid
    parts = _cut_rows(X.indptr)
    while some := list(islice(parts, _BLOCKS_AT_ONCE)):
        yield from run(_format_part, [(X, y, queries, first_index, *part) for part in some], n_jobs=-1)


def _cut_rows(indptr):
    """Yield (start, stop) of consecutive rows that hold about `_BLOCK_ENTRIES` entries."""
    n_rows, start = len(indptr) - 1, 0
    while start < n_rows:
        stop = int(np.searchsorted(indptr, indptr[start] + _BLOCK_ENTRIES, side="right")) - 1
        stop = min(max(stop, start + 1), start + _BLOCK_ENTRIES, n_rows)
        yield start, stop
        start = stop


def _format_part(X, y, queries, first_index, start, stop):
    """Return the text of the rows from `start` to `stop`."""
    first, last = X.indptr[start], X.indptr[stop]
    edges = (X.indptr[start : stop + 1] - first).astype(np.int64)
    indices, values = X.indices[first:last].astype(np.int64) + first_index, X.data[first:last]
    return _format_rows(y[start:stop], queries[start:stop], edges, indices, values)


def _format_rows(labels, queries, edges, indices, values):
    """Return the text of rows: by compiled code, or by Python where that leaves a number to us."""
    if values.dtype in (np.float64, np.float32) and queries.dtype == np.int64:
        room = len(labels) * LONGEST_HEAD + len(values) * LONGEST_ENTRY
        buffer = np.empty(room, dtype=np.uint8)
        with np.errstate(over="ignore"):  # uncompiled, integers that are meant to wrap would warn
            n_bytes = format_rows(labels, queries, edges, indices, values, buffer)
        if n_bytes >= 0:
            return buffer[:n_bytes].tobytes().decode("ascii")
    pairs = [f"{j}:{value}" for j, value in zip(indices.tolist(), _shortest(values), strict=True)]
    heads = _shortest(labels)
    if len(queries) > 0:
        heads = [f"{label} qid:{query}" for label, query in zip(heads, queries.tolist(), strict=True)]
    rows = [" ".join([head, *pairs[a:b]]) for head, (a, b) in zip(heads, pairwise(edges.tolist()), strict=True)]
    # "1.0" is longer than need be; a repr ends with ".0" only if the number is whole.
    return ("\n".join(rows) + "\n").replace(".0 ", " ").replace(".0\n", "\n")


def _shortest(numbers):
    """Return the shortest texts that read back as these numbers, but for a last ".0"."""
    if numbers.dtype.kind == "f" and numbers.itemsize < 8:
        return numbers.astype(str).tolist()  # NumPy knows the shortest for narrow floats, Python for doubles
    return list(map(repr, numbers.astype(np.float64 if numbers.dtype.kind == "f" else np.int64).tolist()))
