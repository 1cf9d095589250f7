"""`write_blocks`: rows of any amount, from text, tables, arrays or blocks of a caller, as a row-block file.

The rows are read once. Types and statistics, which stand at the beginning of the file, are known only at their end;
until then rows are kept in a `Spool`, in memory or in temporary files, which also puts them into random order. Nothing
here needs pyarrow before `write_blocks` is called, so that the package can be imported without it.
"""

import os
import time
from collections.abc import Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from itertools import cycle
from typing import Any, BinaryIO, Literal

import numpy as np
from numpy.typing import DTypeLike

from widemargin._runtime.argument_types import FilePath
from widemargin._runtime.atomic_file import SUFFIX
from widemargin._runtime.threads import stream
from widemargin.data.blocks.extra import OptionError, require_arrow
from widemargin.data.blocks.memory import bytes_of

_COMPRESSIONS = (None, "lz4", "zstd")
_BYTES_PER_BLOCK = 1 << 22  # from 1 to 32 MB, the time of reading differs by a tenth; 4 MB was the fastest
_BYTES_BESIDE_ROWS = 450_000_000  # interpreter, libraries, compiled code, and blocks in work
_LEAST_FRACTION_FOR_ROWS = 0.25  # of a limit of memory that is hardly larger than that


@dataclass(frozen=True)
class WrittenBlocks:
    """What `write_blocks` has written; `str` says it in a line.

    Attributes
    ----------
    rows, features, blocks : int
        Of the file.
    bytes : int
        Size of the file.
    seconds : float
        Time that it took.

    Examples
    --------
    >>> import numpy as np
    >>> from widemargin import write_blocks
    >>> written = write_blocks("rows.arrow", [(np.eye(4), [0, 1, 0, 1])])
    >>> written.rows, written.features, written.blocks
    (4, 4, 1)
    """

    rows: int
    features: int
    blocks: int
    bytes: int
    seconds: float

    def to_dict(self) -> dict[str, Any]:
        """Return the facts for JSON."""
        return {name: getattr(self, name) for name in ("rows", "features", "blocks", "bytes", "seconds")}

    def __str__(self) -> str:
        speed = self.bytes / 1e6 / max(self.seconds, 1e-9)
        return (
            f"{_counted(self.rows, 'row')}, {_counted(self.features, 'feature')}, {_counted(self.blocks, 'block')}, "
            f"{self.bytes / 1e6:,.1f} MB in {self.seconds:.1f} s ({speed:,.0f} MB/s)"
        )


def _counted(number, thing):
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def write_blocks(
    path: FilePath | BinaryIO,
    source: Any,
    *,
    label: str | FilePath | None = None,
    qid: str | FilePath | None = None,
    weight: str | FilePath | None = None,
    columns: Sequence[str] | None = None,
    n_features: int | None = None,
    zero_based: bool = False,
    dtype: DTypeLike | None = None,
    keep_order: bool = False,
    seed: int = 0,
    compression: Literal["lz4", "zstd"] | None = None,
    max_memory: float | str | None = None,
    block_bytes: int = _BYTES_PER_BLOCK,
) -> WrittenBlocks:
    """Write rows of any amount to a row-block file, an Arrow file that is read block by block.

    The same source, seed and options give the same file to the last bit, whatever the memory and the number of
    threads. An existing file is replaced when the new one is complete.

    Parameters
    ----------
    path : str, path or binary file object
        The file to write; a file object may be a pipe.
    source : path, file object, data frame, table, or iterable of blocks
        - SVM-light / LIBSVM text: a path, a binary file object or a `SvmlightBlocks`, plain or compressed.
        - A table: the path of a Parquet, CSV, Feather or Arrow file or of a folder of Parquet files, a data frame of
          pandas or polars, a table or dataset of pyarrow.
        - The path of an array in a .npy file.
        - The path of a row-block file, to change its order or compression.
        - An iterable of blocks `(X, y)`, `(X, y, qid)` or `(X, y, qid, weight)`, in which qid and weight may be None,
          and X is an array or a sparse matrix; all have the same number of columns.
    label, qid, weight : str, default=None
        Of a table, the names of the columns with the labels (required), the queries and the weights of the rows. Of a
        .npy file, the paths of such files with labels (required), queries and weights.
    columns : sequence of str, default=None
        Of a table, the names of the columns that are features; None takes all others. A column of strings or
        categories becomes a feature for each of its values, which is 1 where the column has this value.
    n_features : int, default=None
        Of text, the number of columns; None uses the largest index.
    zero_based : bool, default=False
        Of text, whether indices count from 0 rather than from 1.
    dtype : float64 or float32, default=None
        Of text, the type of values; None is float64. With float32, values are rounded to it, which halves the size.
    keep_order : bool, default=False
        Whether rows keep their order. Otherwise rows, or whole queries, are written in random order, so that the first
        part of the file is a random sample of all. Consecutive rows with the same qid are a query.
    seed : int, default=0
        Of the random order.
    compression : {"lz4", "zstd"}, default=None
        Compression of blocks; None is the fastest to read from a fast disk.
    max_memory : int or str, default=None
        Memory that may be used, in bytes or as a text such as "3GB", of which the process itself takes about 0.4 GB.
        None is half of what is free. What does not fit is kept in temporary files beside the file to write, or in the
        folder for temporary files if a file object is given.
    block_bytes : int, default=4 MB
        Size of a block, before compression.

    Returns
    -------
    WrittenBlocks
        Numbers of rows, features, blocks and bytes, and the seconds; it prints itself.

    Raises
    ------
    ValueError
        If a value is NaN or infinite, blocks do not fit together, or an option does not apply to the source.
    FormatError
        If a file breaks a rule of its format.
    OSError
        If a file cannot be read or written, as on a full disk. Nothing is left of the new file then.
    ImportError
        If pyarrow or xxhash is not installed.

    Examples
    --------
    >>> import numpy as np
    >>> from widemargin import write_blocks
    >>> blocks = ((np.full((100, 3), float(k)), np.full(100, k % 2)) for k in range(5))
    >>> written = write_blocks("five.arrow", blocks)
    >>> written.rows, written.features
    (500, 3)
    """
    require_arrow()
    _check_options(compression, block_bytes, seed)
    from widemargin.data.blocks import block_file, spool
    from widemargin.data.blocks.sources import open_source

    begun = time.monotonic()
    of_rows = {"label": label, "qid": qid, "weight": weight, "columns": columns}
    opened = open_source(source, **of_rows, n_features=n_features, zero_based=zero_based, dtype=dtype)
    folder = None if hasattr(path, "write") else _folder_of(path)
    capacity = _capacity(bytes_of(max_memory))
    with _naming(path), spool.Spool(capacity, folder, None if keep_order else seed) as rows:
        facts, types, classes = _collect(opened, rows)
        width = max(facts.n_columns, opened.n_features or 0)
        layout = block_file.make_layout(facts, types, width, classes, may_be_dense=opened.may_be_dense)
        summary = _summarise(facts, layout, opened.names, block_bytes, is_shuffled=not keep_order)
        n_bytes = block_file.write_file(path, rows, layout, summary, compression=compression, classes=classes)
    n_blocks = -(-facts.n_rows // summary.rows_per_block)
    return WrittenBlocks(facts.n_rows, width, n_blocks, n_bytes, time.monotonic() - begun)


def _check_options(compression, block_bytes, seed):
    if compression not in _COMPRESSIONS:
        raise OptionError(f'compression must be None, "lz4" or "zstd", got {compression!r}.')
    if block_bytes < 1:
        raise OptionError(f"block_bytes must be at least 1, got {block_bytes}.")
    if seed is None or isinstance(seed, bool) or seed < 0:
        raise OptionError(f"seed must be an integer from 0 on, got {seed!r}.")


@contextmanager
def _naming(path):
    """Within the block, an error of the system that names no file, or a temporary one, is about the file to write."""
    try:
        yield
    except OSError as error:
        is_temporary = error.filename is None or os.fsdecode(error.filename).endswith(SUFFIX)
        if is_temporary and not hasattr(path, "write"):
            error.filename = os.fsdecode(path)
        raise


def _capacity(max_memory):
    """Return how many bytes of the memory rows may take."""
    return int(max(max_memory - _BYTES_BESIDE_ROWS, _LEAST_FRACTION_FOR_ROWS * max_memory))


def _folder_of(path):
    """Return the folder of the file to write; None, that for temporary files, if it is a pipe or a device."""
    path = os.path.realpath(os.fsdecode(path))
    return None if os.path.exists(path) and not os.path.isfile(path) else os.path.dirname(path)


def _collect(source, spool):
    """Read all rows into the spool; return what is known of them, their types, and the classes or None."""
    from widemargin.data.blocks.row_buffer import RowTypes
    from widemargin.data.blocks.slots import make_slots
    from widemargin.data.blocks.statistics import FileFacts

    facts, types, classes = FileFacts(), None, {}
    slots = make_slots()
    with (
        closing(source.parts()) as parts,
        closing(stream(source.receive, _with_slots(parts, slots), n_ahead=len(slots))) as received,
    ):
        for incoming in received:
            rows = incoming.rows
            if incoming.classes is not None:
                numbers = [classes.setdefault(name, len(classes)) for name in incoming.classes]
                rows = rows._replace(label=np.array(numbers, np.float64)[rows.label.astype(np.intp)])
            facts.join(incoming.facts)
            facts.join_columns(rows, incoming.facts)
            types = rows.types if types is None else types.joined(rows.types)
            spool.append(rows)
    if types is None:
        types = RowTypes(np.dtype(np.uint16), None, 0, False, False)
    return facts, types, list(classes) or None


def _with_slots(parts, slots):
    """Yield the parts with the slots in turn; None stays None."""
    turns = cycle(slots)
    for part in parts:
        yield None if part is None else (*part, next(turns))


def _summarise(facts, layout, names, block_bytes, *, is_shuffled):
    from widemargin.data.blocks.block_file import rows_per_block
    from widemargin.data.blocks.layout import Summary

    return Summary(
        n_rows=facts.n_rows,
        n_features=layout.n_features,
        n_stored=facts.n_stored if layout.is_sparse else facts.n_rows * layout.n_features,
        squared_lengths=float(facts.squared_lengths if layout.is_sparse else layout.n_features**2),
        longest_row=facts.longest_row if layout.is_sparse else layout.n_features,
        largest_norm=float(facts.largest_norm),
        is_shuffled=is_shuffled,
        rows_per_block=rows_per_block(layout, facts, block_bytes),
        names=None if names is None else tuple(names),
        columns=facts.columns(layout.n_features),
    )
