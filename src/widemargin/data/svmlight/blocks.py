"""Reading and writing of SVM-light / LIBSVM text of any size in blocks of lines, with the memory of one block.

A block is read into memory, decompressed if necessary, divided at its last newline, and parsed as `reader` parses a
complete file. The text after the newline becomes the start of the next block. Errors are reported by the line number in
the complete file.
"""

import io
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import IO, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray
from scipy.sparse import csr_array

from widemargin._runtime.argument_types import FilePath, PathOrFile, Rows
from widemargin._runtime.progress import task
from widemargin.data.svmlight.compression import check_expansion, open_decompressed, read_decompressed
from widemargin.data.svmlight.reader import (
    NO_ROWS,
    Text,
    check_path,
    check_type,
    damage_as_format_error,
    make_matrix,
    parse_text,
    refuse_byte_order_mark,
    starts_with_query,
)
from widemargin.data.svmlight.writer import format_text, write_text
from widemargin.errors import FormatError

_BYTES_PER_BLOCK = 1 << 23  # of decompressed text, by default
_BYTES_PER_READ = 1 << 18  # of the file, before decompression


class Block(NamedTuple):
    """Some rows of a file, in the form in which `read_svmlight` returns a complete file."""

    X: csr_array
    y: NDArray[np.float64]
    qid: NDArray[np.int64] | None


class SvmlightBlocks:
    """The rows of SVM-light / LIBSVM text as an iterable of blocks `(X, y, qid)`, which are read one at a time.

    Every block has at least one row. Each iteration opens a path again, and rewinds a file object to its first position
    if it is seekable.

    Parameters
    ----------
    path_or_file : str, path or binary file object
        Plain text, or text compressed with gzip, bzip2, xz or zstandard, which is recognised by its first bytes.
    dtype : float64 or float32, default=float64
        Type of the values.
    zero_based : bool, default=False
        Whether indices count from 0 rather than from 1. This cannot be decided from the first block of a file.
    block_bytes : int, default=8 MB
        Length of the text of a block, decompressed. A longer line is a block of its own.
    name : str, default=None
        Name of the file in error messages; None uses its path, or the name of the file object.

    Attributes
    ----------
    size : int or None
        Number of bytes of the file as stored; None if it is unknown, as for a pipe.
    position : int
        Number of these bytes read so far. A progress bar can show it relative to `size`.
    n_features : int
        Number of columns of the last block, which is given by the largest index so far.

    Raises
    ------
    FormatError
        During the iteration, at the first place where the file breaks a rule of the format.

    Examples
    --------
    >>> from io import BytesIO
    >>> from widemargin.data.svmlight.blocks import SvmlightBlocks
    >>> blocks = SvmlightBlocks(BytesIO(b"1 1:0.5 3:2\\n-1 2:1\\n"), block_bytes=12)
    >>> [(X.shape, y.tolist()) for X, y, qid in blocks]
    [((1, 3), [1.0]), ((1, 3), [-1.0])]
    """

    def __init__(
        self,
        path_or_file: FilePath | IO[bytes],
        *,
        dtype: DTypeLike = np.float64,
        zero_based: bool = False,
        block_bytes: int = _BYTES_PER_BLOCK,
        name: str | None = None,
    ) -> None:
        check_type(dtype)
        if not isinstance(zero_based, bool):
            raise ValueError(f"zero_based must be True or False, got {zero_based!r}.")
        if block_bytes < 1:
            raise ValueError(f"block_bytes must be at least 1, got {block_bytes}.")
        own_name, self.size, self._start = _inspect(path_or_file)
        self._source, self.name, self.position, self.n_features = path_or_file, name or own_name, 0, 0
        self.dtype, self.zero_based, self._block_bytes = np.dtype(dtype), zero_based, int(block_bytes)

    def __iter__(self) -> Iterator[Block]:
        with task(f"reading {os.path.basename(self.name)}", self.size, "bytes") as reading:
            yield from self._blocks(reading)

    def _blocks(self, reading):
        with_queries, lines_before, self.n_features, reported = None, 0, 0, 0
        for buffer in self.read_lines():
            reading.advance(self.position - reported)
            reported = self.position
            if lines_before == 0:
                refuse_byte_order_mark(self.name, buffer)
            queries = starts_with_query(buffer) if with_queries is None else with_queries
            rows = parse_text(Text(self.name, buffer, queries, None, lines_before), self.dtype, self.zero_based)
            lines_before += buffer.count(b"\n")
            if len(rows.labels) > 0:
                with_queries = queries  # the first row of the file decides
                self.n_features = max(self.n_features, rows.largest + int(self.zero_based))
                yield Block(make_matrix(rows, self.n_features), rows.labels, rows.queries)
        if with_queries is None:
            raise FormatError(self.name, NO_ROWS)

    def read_lines(self) -> Iterator[bytes]:
        """Yield the text, decompressed, in parts of about `block_bytes` that end with a newline."""
        with self._open() as stored, io.BufferedReader(stored, _BYTES_PER_READ) as plain:
            method, file = open_decompressed(plain)
            pieces: list[bytes] = []
            with file:
                while data := self._read(file, method):
                    self.position = stored.position
                    cut = data.rfind(b"\n") + 1
                    if cut > 0:
                        yield b"".join([*pieces, data[:cut]])
                        pieces = []
                    pieces.append(data[cut:])
                    self._check_line(pieces, method)
            if any(pieces):
                yield b"".join(pieces)

    def _check_line(self, pieces, method):
        """Raise FormatError if an unfinished line is longer than the compressed bytes read so far may expand to."""
        if method is not None:
            with damage_as_format_error(self.name, method):
                check_expansion(sum(map(len, pieces)), self.position)

    def _read(self, file, method):
        """Read up to `block_bytes` of a file that is compressed by `method`, if it is not None."""
        if method is None:
            return file.read(self._block_bytes)
        with damage_as_format_error(self.name, method):
            return read_decompressed(file, self._block_bytes)

    @contextmanager
    def _open(self):
        """Open the path, or rewind the file object; provide it as a raw file that counts bytes."""
        if not hasattr(self._source, "read"):
            with open(self._source, "rb", buffering=0) as file:
                yield _CountedFile(file)
            return
        if self._start is not None:
            self._source.seek(self._start)
        elif self.position > 0:
            raise ValueError(f"{self.name} can be read only once, because it cannot be rewound.")
        yield _CountedFile(self._source)


class _CountedFile(io.RawIOBase):
    """A wrapper of a binary file object that counts the bytes read; closing it does not close the file object."""

    def __init__(self, file):
        self._file, self.position = file, 0

    def readable(self):
        """Return True."""
        return True

    def readinto(self, buffer):
        """Read into `buffer` and return the number of bytes."""
        if hasattr(self._file, "readinto"):
            length = self._file.readinto(buffer)
        else:
            data = self._file.read(len(buffer))
            length = len(data)
            buffer[:length] = data
        self.position += length
        return length


def _inspect(path_or_file):
    """Return (name, size in bytes or None, start position of a file object or None) of a path or file object."""
    if not hasattr(path_or_file, "read"):
        check_path(path_or_file)
        status = os.stat(path_or_file)
        return os.fsdecode(path_or_file), status.st_size if stat.S_ISREG(status.st_mode) else None, None
    if isinstance(path_or_file, io.TextIOBase):
        raise TypeError("path_or_file must be open in binary mode, got a text file.")
    name = getattr(path_or_file, "name", None)
    start = path_or_file.tell() if path_or_file.seekable() else None
    size = None if start is None else path_or_file.seek(0, os.SEEK_END) - start
    if start is not None:
        path_or_file.seek(start)
    return name if isinstance(name, str) else "<stream>", size, start


def write_svmlight_blocks(
    path_or_file: PathOrFile,
    blocks: Iterable[tuple[Rows, ArrayLike, ArrayLike | None]],
    *,
    zero_based: bool = False,
) -> None:
    """Write blocks of rows as SVM-light / LIBSVM text, with the memory of one block.

    Parameters
    ----------
    path_or_file : str, path or file object
        As for `write_svmlight`: an existing file is replaced when the new one is complete, and the suffix decides
        about compression.
    blocks : iterable of (X, y, qid)
        Rows, labels, and queries or None, as from `SvmlightBlocks`.
    zero_based : bool, default=False
        Whether indices count from 0 rather than from 1.

    Examples
    --------
    >>> import sys
    >>> import numpy as np
    >>> from widemargin import write_svmlight_blocks
    >>> write_svmlight_blocks(sys.stdout, ((k * np.eye(2)[k - 1 : k], [k], None) for k in (1, 2)))
    1 1:1
    2 2:2
    """
    write_text(path_or_file, (text for X, y, qid in blocks for text in format_text(X, y, qid, zero_based)))
