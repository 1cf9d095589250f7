"""`convert_file`: data of any size as a row-block file, which estimators read block by block."""

import sys
from collections.abc import Sequence
from typing import Any, Literal

from numpy.typing import DTypeLike

from widemargin.data.blocks.extra import OptionError
from widemargin.data.blocks.writer import WrittenBlocks, write_blocks
from widemargin.errors import FormatError
from widemargin.workflows.errors import ArgumentError, FileError
from widemargin.workflows.files import AnyPath, Source, as_path, as_source, check_target, name_of


def convert_file(
    data: Source,
    output: AnyPath,
    *,
    label: str | None = None,
    qid: str | None = None,
    weight: str | None = None,
    columns: Sequence[str] | None = None,
    n_features: int | None = None,
    zero_based: bool = False,
    dtype: DTypeLike | None = None,
    keep_order: bool = False,
    seed: int = 0,
    compression: Literal["lz4", "zstd"] | None = None,
    max_memory: float | str | None = None,
) -> WrittenBlocks:
    """Convert a data file of any size to a row-block file.

    It is what `widemargin convert` does. Rows, or whole queries, are written in random order unless `keep_order`.

    Parameters
    ----------
    data : path or binary file object
        SVM-light / LIBSVM text, plain or compressed; a Parquet, CSV, Feather or Arrow file, or a folder of Parquet
        files; an array in a .npy file; or a row-block file. "-" is standard input, with text.
    output : path
        The row-block file; "-" is standard output.
    label, qid, weight : str, default=None
        Of a table, the names of the columns with the labels (required), the queries and the weights of the rows. Of a
        .npy file, the paths of such files with labels (required), queries and weights.
    columns : sequence of str, default=None
        Of a table, the names of the columns that are features; None takes all others.
    n_features : int, default=None
        Of text, the number of columns; None uses the largest index.
    zero_based : bool, default=False
        Of text, whether indices count from 0 rather than from 1.
    dtype : float64 or float32, default=None
        Of text, the type of values; None is float64.
    keep_order : bool, default=False
        Whether rows keep their order.
    seed : int, default=0
        The same seed gives the same order.
    compression : {"lz4", "zstd"}, default=None
        Compression of blocks.
    max_memory : int or str, default=None
        Memory that may be used, in bytes or as a text such as "3GB"; None is half of what is free.

    Returns
    -------
    WrittenBlocks
        Numbers of rows, features, blocks and bytes, and the seconds; it prints itself.

    Raises
    ------
    FormatError
        If a file breaks a rule of its format.
    ValueError
        If values are missing or not finite, or an argument does not apply to the data.
    OSError
        If a file cannot be read or written.

    Examples
    --------
    >>> from widemargin import convert_file, write_svmlight
    >>> write_svmlight("ten", [[float(i)] for i in range(1, 11)], [1, -1] * 5)
    >>> written = convert_file("ten", "ten.arrow")
    >>> written.rows, written.features
    (10, 1)
    """
    data, output = as_source(data), as_path(output)
    check_target(output, data)
    source = sys.stdin.buffer if data == "-" else data
    target = sys.stdout.buffer if output == "-" else output
    options: dict[str, Any] = {
        "label": label, "qid": qid, "weight": weight, "columns": columns, "n_features": n_features,
        "zero_based": zero_based, "dtype": dtype, "keep_order": keep_order, "seed": seed, "compression": compression,
        "max_memory": max_memory,
    }  # fmt: skip
    try:
        written = write_blocks(target, source, **options)
    except FormatError:
        raise
    except OptionError as error:
        raise ArgumentError(str(error)) from error
    except (ImportError, ValueError) as error:
        raise FileError(f"{'standard input' if data == '-' else name_of(data)}: {error}") from error
    if output == "-":
        sys.stdout.buffer.flush()
    return written
