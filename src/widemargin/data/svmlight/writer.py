"""Writing of SVM-light / LIBSVM text, with every number in the fewest digits that read back as the same number.

An existing file is replaced only when the new one is complete. The format is described in `reader`.
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

_ENTRIES_PER_BLOCK = 1 << 16  # about
_BLOCKS_FORMATTED_TOGETHER = 16  # by the threads, before they are written


def write_svmlight(
    path_or_file: PathOrFile,
    X: Rows,
    y: ArrayLike,
    *,
    qid: ArrayLike | None = None,
    zero_based: bool = False,
    comment: str | None = None,
) -> None:
    """Write rows as SVM-light / LIBSVM text, from which `read_svmlight` returns exactly the same numbers.

    Parameters
    ----------
    path_or_file : str, path or file object
        An existing file is replaced when the new one is complete. The file is compressed if its name ends with .gz,
        .bz2, .xz or .zst. A file object may be open in binary or text mode.
    X : array or sparse matrix of shape (n_rows, n_features)
        All stored entries of a sparse matrix are written, and all entries of an array except positive zeros.
    y : array of shape (n_rows,)
        Labels, finite.
    qid : array of shape (n_rows,), default=None
        Queries, integers.
    zero_based : bool, default=False
        Whether indices count from 0 rather than from 1.
    comment : str, default=None
        Text that is written before the rows, with a `#` at the start of each line.

    Raises
    ------
    ValueError
        If a number is not finite, or if lengths differ; then nothing is written.

    Examples
    --------
    >>> import sys
    >>> import numpy as np
    >>> from widemargin import write_svmlight
    >>> write_svmlight(sys.stdout, np.array([[0.5, 0.0], [0.0, 2.0]]), [1, -1])
    1 1:0.5
    -1 2:2
    """
    blocks = format_text(X, y, qid, zero_based)
    if comment is not None:
        blocks = chain(["".join(f"# {line}\n" for line in comment.splitlines())], blocks)
    write_text(path_or_file, blocks, n_rows=np.size(y))


def format_text(X, y, qid, zero_based):
    """Return the text of rows as an iterator of strings; the arguments are checked by the call itself."""
    return _format_blocks(*_check_rows(X, y, qid), 0 if zero_based else 1)


def write_text(path_or_file, blocks, n_rows=None):
    """Write blocks of text to a file object, or atomically to a path, compressed according to its suffix."""
    if hasattr(path_or_file, "write"):
        is_text_mode = isinstance(path_or_file, io.TextIOBase)
        for block in blocks:
            path_or_file.write(block if is_text_mode else block.encode())
        return
    path = os.fsdecode(path_or_file)
    writing = task(f"writing {os.path.basename(path)}", n_rows, "rows")
    with replacing(path) as file, open_compressed(file, path) as target, writing as written:
        for block in blocks:
            target.write(block.encode())
            written.advance(block.count("\n"))


def _check_rows(X, y, qid):
    """Return X as CSR in canonical format, and y and qid as arrays; raise ValueError if they cannot be written."""
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
    """Yield the text of the rows in blocks; threads format several blocks at the same time."""
    queries = np.empty(0, dtype=np.int64) if qid is None else qid
    parts = _cut_rows(X.indptr)
    while some := list(islice(parts, _BLOCKS_FORMATTED_TOGETHER)):
        yield from run(_format_part, [(X, y, queries, first_index, *part) for part in some], n_jobs=-1)


def _cut_rows(indptr):
    """Yield (start, stop) of consecutive rows that have about `_ENTRIES_PER_BLOCK` entries."""
    n_rows, start = len(indptr) - 1, 0
    while start < n_rows:
        stop = int(np.searchsorted(indptr, indptr[start] + _ENTRIES_PER_BLOCK, side="right")) - 1
        stop = min(max(stop, start + 1), start + _ENTRIES_PER_BLOCK, n_rows)
        yield start, stop
        start = stop


def _format_part(X, y, queries, first_index, start, stop):
    """Return the text of the rows from `start` to `stop`."""
    first, last = X.indptr[start], X.indptr[stop]
    edges = (X.indptr[start : stop + 1] - first).astype(np.int64)
    indices, values = X.indices[first:last].astype(np.int64) + first_index, X.data[first:last]
    return _format_rows(y[start:stop], queries[start:stop], edges, indices, values)


def _format_rows(labels, queries, edges, indices, values):
    """Return the text of rows, by compiled code if it can format all numbers, else by Python."""
    if values.dtype in (np.float64, np.float32) and queries.dtype == np.int64:
        max_bytes = len(labels) * LONGEST_HEAD + len(values) * LONGEST_ENTRY
        buffer = np.empty(max_bytes, dtype=np.uint8)
        with np.errstate(over="ignore"):  # integer overflow is intended; uncompiled code would warn
            n_bytes = format_rows(labels, queries, edges, indices, values, buffer)
        if n_bytes >= 0:
            return buffer[:n_bytes].tobytes().decode("ascii")
    pairs = [f"{j}:{value}" for j, value in zip(indices.tolist(), _shortest(values), strict=True)]
    heads = _shortest(labels)
    if len(queries) > 0:
        heads = [f"{label} qid:{query}" for label, query in zip(heads, queries.tolist(), strict=True)]
    rows = [" ".join([head, *pairs[a:b]]) for head, (a, b) in zip(heads, pairwise(edges.tolist()), strict=True)]
    # A repr ends with ".0" only if the number is whole; these two characters are not needed.
    return ("\n".join(rows) + "\n").replace(".0 ", " ").replace(".0\n", "\n")


def _shortest(numbers):
    """Return the shortest texts that read back as these numbers, with ".0" at the end of whole numbers."""
    if numbers.dtype.kind == "f" and numbers.itemsize < 8:
        return numbers.astype(str).tolist()  # NumPy formats float32 and float16, `repr` doubles
    return list(map(repr, numbers.astype(np.float64 if numbers.dtype.kind == "f" else np.int64).tolist()))
