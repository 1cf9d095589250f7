"""Partitions from what users have on a cluster: Dask arrays, Dask data frames, delayed blocks, row-block files.

A partition is a task that takes a block of X, and what belongs to its rows, checks them and keeps them together. Tasks
are computed where Dask decides, from the graph of the collections, and computed again from there if they are lost.
"""

import glob
import os
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import dask.array as da
import numpy as np
from dask import delayed
from dask.base import is_dask_collection
from dask.delayed import Delayed
from distributed import Client, Future
from scipy.sparse import issparse

from widemargin.data.blocks.reader import open_blocks
from widemargin.data.structure import checked_csr
from widemargin.distributed.failures import all_workers
from widemargin.distributed.partition import Partition, PartitionRows
from widemargin.models.inputs import finite_targets, refuse_missing

_BYTES_PER_PARTITION = 1 << 27  # of row-block files: enough work for a task, little enough to move and to rebuild
_KINDS_OF_NUMBERS = "biuf"


@dataclass(frozen=True)
class BlockFiles:
    """Row-block files that workers read themselves, made by `from_blocks`.

    Attributes
    ----------
    paths : tuple of str
        The files, in the order of their rows.

    Examples
    --------
    >>> from widemargin.dask import from_blocks
    >>> len(from_blocks("part-*.arrow").paths)
    2
    """

    paths: tuple[str, ...]


def from_blocks(paths: str | os.PathLike | Iterable[str | os.PathLike]) -> BlockFiles:
    """Return row-block files as X for the estimators of `widemargin.dask`; the workers read them, not the client.

    Parameters
    ----------
    paths : str, path, or an iterable of them
        Files, or patterns such as "part-*.arrow". Paths with a protocol, such as "s3://bucket/part-0.arrow", are read
        by fsspec: each worker keeps a copy of the files whose rows it has. Other paths must be the same on all workers.

    Returns
    -------
    BlockFiles

    Raises
    ------
    FileNotFoundError
        If a pattern matches no file that the client sees.

    Examples
    --------
    >>> from widemargin.dask import from_blocks
    >>> rows = from_blocks(["part-1.arrow", "part-2.arrow"])
    >>> len(rows.paths)
    2
    """
    found: list[str] = []
    for path in [paths] if isinstance(paths, str | os.PathLike) else list(paths):
        found += _expanded(os.fspath(path))
    if not found:
        raise ValueError("from_blocks needs at least one file, got an empty list.")
    return BlockFiles(tuple(found))


def _expanded(path):
    """Return the files that a path or pattern stands for."""
    if "://" in path:
        import fsspec

        files, _, names = fsspec.get_fs_token_paths(path)
        return [files.unstrip_protocol(name) for name in sorted(names)]
    if not glob.has_magic(path):
        return [os.path.abspath(path)]
    names = sorted(glob.glob(path))
    if not names:
        raise FileNotFoundError(f"no file matches {path!r}.")
    return [os.path.abspath(name) for name in names]


def partitions_of(
    client: Client, X: Any, y: Any, weight: Any = None, qid: Any = None, *, numeric: bool | None = False
) -> list[Future]:
    """Return the futures of the Partitions of X, in order.

    `numeric` says whether targets are numbers or labels; None that there are none, and y of each row is then zero.

    Raises
    ------
    TypeError
        If X is not of a kind that is taken here.
    ValueError
        If X and what belongs to its rows are divided differently.
    """
    if isinstance(X, BlockFiles):
        return _partitions_of_files(client, X, (y, weight, qid), numeric)
    if is_dask_collection(X):
        blocks = blocks_of(X)
        belongings = [_aligned(one, X, len(blocks), name) for one, name in ((y, "y"), (weight, "sample_weight"),
                                                                           (qid, "qid"))]  # fmt: skip
        tasks = [(number, *parts) for number, parts in enumerate(zip(blocks, *belongings, strict=True))]
        tasks = [delayed(checked_partition, pure=False)(*task, numeric) for task in tasks]
    elif isinstance(X, list | tuple) and X and all(isinstance(one, Delayed | Future) for one in X):
        _refuse_separate(y, weight, qid)
        tasks = [delayed(partition_of_tuple, pure=False)(number, one, numeric) for number, one in enumerate(X)]
    else:
        raise TypeError(
            "X must be a Dask array, a Dask data frame, a list of delayed (X, y) blocks, or from_blocks(...); got "
            f"{type(X).__name__}. For rows in this process, use the estimator of `widemargin` itself."
        )
    return client.compute(tasks)


def names_of(X: Any) -> tuple[str, ...] | None:
    """Return the names of the columns of a Dask data frame; None for other X, or names that are not strings."""
    columns = tuple(getattr(X, "columns", ()))
    return columns if columns and all(isinstance(name, str) for name in columns) else None


def blocks_of(X):
    """Return the blocks of a Dask array or data frame, as delayed objects."""
    if not isinstance(X, da.Array):
        return list(X.to_delayed())
    if X.ndim != 2:
        raise ValueError(f"Expected 2D array, got a Dask array of {X.ndim} dimension(s): X must have rows and columns.")
    X = X if X.numblocks[1] == 1 else X.rechunk({1: -1})
    return list(X.to_delayed().ravel())


def _aligned(values, X, n_blocks, name):
    """Return what belongs to the rows of each block of X, as delayed objects; None for each if there is nothing."""
    if values is None:
        return [None] * n_blocks
    chunks = X.chunks[0] if isinstance(X, da.Array) else None
    is_known = chunks is not None and not np.isnan(np.sum(chunks))
    if not is_dask_collection(values):
        values = np.asarray(values)
        if not is_known or len(values) != sum(chunks):
            rows = f"X has {sum(chunks)} rows" if is_known else "the number of rows of X is not known"
            raise ValueError(f"{name} has {len(values)} values, and {rows}. Give a Dask array with the blocks of X.")
        values = da.from_array(values, chunks=(chunks,))
    if isinstance(values, da.Array):
        values = values.ravel() if values.ndim == 2 and values.shape[1] == 1 else values
        if is_known and values.chunks[0] != chunks and sum(values.chunks[0]) == sum(chunks):
            values = values.rechunk((chunks,))
        blocks = list(values.to_delayed().ravel())
    else:
        blocks = list(values.to_delayed())
    if len(blocks) != n_blocks:
        raise ValueError(f"{name} has {len(blocks)} blocks, X has {n_blocks}: divide both in the same way.")
    return blocks


def _refuse_separate(y, weight, qid):
    if any(one is not None for one in (y, weight, qid)):
        raise ValueError(
            "y, sample_weight and qid of delayed blocks are parts of each block, (X, y), (X, y, sample_weight) or "
            "(X, y, sample_weight, qid); leave these arguments out."
        )


def _partitions_of_files(client, files, belongings, numeric):
    """Return the futures of the Partitions of row-block files: ranges of rows of about the same number of bytes.

    Adjacent partitions are proposed to the same worker, which can then add their sums.
    """
    if any(one is not None for one in belongings):
        raise ValueError("y, sample_weight and qid of row-block files are those of the files; leave them out.")
    ranges = []
    for path, (n_rows, n_bytes, ends) in zip(files.paths, _sizes_of(client, files.paths), strict=True):
        n_parts = max(1, min(len(ends), round(n_bytes / _BYTES_PER_PARTITION)))
        cuts = [0, *(ends[len(ends) * part // n_parts - 1] for part in range(1, n_parts)), n_rows]
        ranges += [(path, *pair) for pair in pairwise(cuts)]
    workers, token = sorted(all_workers(client)), uuid.uuid4().hex
    return [
        client.submit(
            partition_of_file, number, *one, numeric, pure=False, key=f"widemargin-partition-{token}-{number}",
            workers=[workers[len(workers) * number // len(ranges)]], allow_other_workers=True,
        )
        for number, one in enumerate(ranges)
    ]  # fmt: skip


def _sizes_of(client, paths):
    """Return `rows_of_file` of all files, as workers see them."""
    futures = [client.submit(rows_of_file, path, pure=False) for path in paths]
    try:
        return client.gather(futures)
    finally:  # an exception refers to the futures for as long as somebody keeps it
        for future in futures:
            future.release()


# --- On the workers ---------------------------------------------------------------------------------------------------


def rows_of_file(path: str) -> tuple[int, int, list[int]]:
    """Return the numbers of rows and bytes of a row-block file, and the ends of its blocks, or of whole queries."""
    blocks = open_blocks(local_path(path))
    ends = np.array([stop for _, stop in blocks.ends()], dtype=np.int64)
    if blocks.qid is not None and len(blocks):  # no query is cut
        firsts = np.append(np.flatnonzero(np.diff(blocks.qid)) + 1, len(blocks))
        ends = np.unique(firsts[np.searchsorted(firsts, ends)])
    return len(blocks), blocks.n_bytes, ends.tolist()


def local_path(path):
    """Return the path of a file on this machine, of which a copy is made if it is elsewhere."""
    if "://" not in path:
        return path
    import fsspec

    files, name = fsspec.core.url_to_fs(path)
    if "file" in (files.protocol if isinstance(files.protocol, tuple) else (files.protocol,)):
        return name
    return fsspec.open_local(f"simplecache::{path}")


def partition_of_file(number: int, path: str, start: int, stop: int, numeric: bool | None) -> Partition:
    """Return the Partition of some rows of a row-block file, which are not read yet."""
    blocks = open_blocks(local_path(path))[start:stop]
    y = _no_targets(len(blocks)) if numeric is None else _checked_targets(number, blocks.labels, numeric)
    return Partition(PartitionRows(number, blocks, y, blocks.weight, blocks.qid))


def partition_of_tuple(number: int, block: Any, numeric: bool | None) -> Partition:
    """Return the Partition of a delayed block (X, y[, sample_weight[, qid]]); without targets, of rows X as well."""
    if numeric is None and not isinstance(block, tuple | list):
        block = (block, None)
    if not isinstance(block, tuple | list) or not 2 <= len(block) <= 4:
        raise ValueError(f"Partition {number}: a block must be (X, y[, sample_weight[, qid]]), got {type(block)}.")
    X, y, weight, qid = [*block, None, None][:4]
    return checked_partition(number, X, y, weight, qid, numeric)


def checked_partition(number: int, X: Any, y: Any, weight: Any, qid: Any, numeric: bool | None) -> Partition:
    """Return the Partition of a block, after a check of its values.

    Raises
    ------
    ValueError
        If values are not finite numbers, or their numbers do not fit; with the partition, and the row within it.
    """
    X = _checked_values(number, X)
    if numeric is None:
        y = _no_targets(X.shape[0])
    elif y is None:
        raise ValueError("This requires y to be passed, but the target y is None.")
    else:
        y = _checked_targets(number, np.asarray(y).reshape(-1), numeric)
    weight = None if weight is None else _checked_weights(number, np.asarray(weight).reshape(-1))
    qid = None if qid is None else np.asarray(qid).reshape(-1)
    for name, one in (("y", y), ("sample_weight", weight), ("qid", qid)):
        if one is not None and len(one) != X.shape[0]:
            raise ValueError(f"Partition {number}: {name} has {len(one)} values, X has {X.shape[0]} rows.")
    return Partition(PartitionRows(number, X, y, weight, qid))


def _no_targets(n_rows):
    """Return what stands for the targets of rows that have none."""
    return np.zeros(n_rows, np.int8)


def _checked_values(number, X):
    """Return a block of X as a contiguous array or canonical CSR matrix of finite numbers."""
    if issparse(X):
        try:
            return checked_csr(X)
        except ValueError as error:
            raise ValueError(f"Partition {number}: {error}") from error
    X = np.asarray(X)
    if X.ndim != 2 or X.dtype.kind not in _KINDS_OF_NUMBERS:
        raise ValueError(f"Partition {number}: X must be a table of numbers, got {X.dtype} of shape {X.shape}.")
    X = np.ascontiguousarray(X, dtype=X.dtype if X.dtype in (np.float32, np.float64) else np.float64)
    finite = np.isfinite(X).all(axis=1)
    if not finite.all():
        row = int(np.argmin(finite))
        column = int(np.argmin(np.isfinite(X[row])))
        what = "NaN" if np.isnan(X[row, column]) else "infinity"
        raise ValueError(f"Input X contains {what}: row {row} of partition {number}, column {column}.")
    return X


def _checked_targets(number, y, numeric):
    try:
        refuse_missing(y, "y")
        if numeric:
            return finite_targets(y)
    except ValueError as error:
        raise ValueError(f"Partition {number}: {error}") from error
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        row = int(np.argmin(np.isfinite(y)))
        raise ValueError(f"Input y contains NaN or infinity: row {row} of partition {number}.")
    return y.astype(str) if y.dtype.kind == "O" and all(isinstance(one, str) for one in y.tolist()) else y


def _checked_weights(number, weight):
    weight = weight.astype(np.float64)
    valid = np.isfinite(weight) & (weight >= 0.0)
    if not valid.all():
        row = int(np.argmin(valid))
        raise ValueError(
            f"sample_weight must be finite and not negative: row {row} of partition {number} has {weight[row]}."
        )
    return weight
