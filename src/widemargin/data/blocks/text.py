"""SVM-light / LIBSVM text as a source of rows for a row-block file, parsed in threads.

Of a plain file, each thread reads its own part: the lines that begin between two offsets. Compressed text and streams
are read one after the other.
"""

import os
import stat

from widemargin._runtime.progress import task
from widemargin.data.blocks.incoming import received
from widemargin.data.blocks.layout import Chunk
from widemargin.data.svmlight.blocks import SvmlightBlocks
from widemargin.data.svmlight.compression import LONGEST_MAGIC, compression_of
from widemargin.data.svmlight.reader import (
    NO_ROWS,
    Text,
    make_matrix,
    parse_text,
    refuse_byte_order_mark,
    starts_with_query,
)
from widemargin.errors import FormatError

_BYTES_PER_PART = 1 << 20
_PARTS_PER_BATCH = 16
_BYTES_READ_BEYOND_PART = 1 << 14  # at a time, to the end of a line


def text_source(path_or_file, *, zero_based=False, n_features=None):
    """Return the source of text in a file, or from a file object."""
    if not hasattr(path_or_file, "read") and hasattr(os, "pread") and _is_plain(path_or_file):
        return PlainTextSource(path_or_file, zero_based, n_features)
    return TextSource(SvmlightBlocks(path_or_file, zero_based=zero_based, block_bytes=_BYTES_PER_PART), n_features)


def _is_plain(path):
    """Whether a path is a regular file that is not compressed."""
    if not stat.S_ISREG(os.stat(path).st_mode):
        return False
    with open(path, "rb") as file:
        return compression_of(file.read(LONGEST_MAGIC)) is None


class TextSource:
    """Text that is read one part after the other.

    Parameters
    ----------
    blocks : SvmlightBlocks
        The text.
    n_features : int or None
        Number of columns; None uses the largest index.
    """

    names = None
    may_be_dense = True

    def __init__(self, blocks, n_features=None):
        self._blocks, self.n_features, self.name = blocks, n_features, blocks.name
        self._with_queries, self._has_rows, self._lines_before = None, False, 0

    def batches(self):
        """Yield lists of Text."""
        batch, reported = [], 0
        with task(f"reading {os.path.basename(self.name)}", self._blocks.size, "bytes", speed=True) as reading:
            for buffer in self._blocks.read_lines():
                batch.append((self._text(buffer),))
                if not self._has_rows or len(batch) == _PARTS_PER_BATCH:  # the first row decides about queries
                    yield batch
                    reading.advance(self._blocks.position - reported)
                    batch, reported = [], self._blocks.position
            if batch:
                yield batch
        if not self._has_rows:
            raise FormatError(self.name, NO_ROWS)

    def _text(self, buffer):
        if self._lines_before == 0:
            refuse_byte_order_mark(self.name, buffer)
        if not self._has_rows:
            self._with_queries = starts_with_query(buffer)
        text = Text(self.name, buffer, self._with_queries, self.n_features, self._lines_before)
        self._lines_before += buffer.count(b"\n")
        return text

    def receive(self, text, slot):
        """Return the rows of a text."""
        rows = parse_text(text, self._blocks.dtype, self._blocks.zero_based)
        if len(rows.labels):
            self._has_rows = True
        width = rows.largest + self._blocks.zero_based if self.n_features is None else self.n_features
        return received(Chunk(make_matrix(rows, max(width, 0)), rows.labels, rows.queries), slot)


class PlainTextSource(TextSource):
    """Text in a file, of which threads read parts."""

    def __init__(self, path, zero_based, n_features=None):
        super().__init__(SvmlightBlocks(path, zero_based=zero_based), n_features)
        self._file = None

    def batches(self):
        """Yield lists of (begin, end) in bytes."""
        size = self._blocks.size
        with (
            open(self.name, "rb", buffering=0) as self._file,
            task(f"reading {os.path.basename(self.name)}", size, "bytes", speed=True) as reading,
        ):
            begin = 0
            while begin < size:
                n_parts = _PARTS_PER_BATCH if self._has_rows else 1  # the first row decides about queries
                end = min(begin + n_parts * _BYTES_PER_PART, size)
                yield [(start, min(start + _BYTES_PER_PART, end)) for start in range(begin, end, _BYTES_PER_PART)]
                reading.advance(end - begin)
                begin = end
        if not self._has_rows:
            raise FormatError(self.name, NO_ROWS)

    def receive(self, begin, end, slot):
        """Return the rows of the lines that begin between two offsets."""
        start, buffer = self._lines(begin, end)
        if begin == 0:
            refuse_byte_order_mark(self.name, buffer)
        if not self._has_rows:
            self._with_queries = starts_with_query(buffer)
        text = Text(self.name, buffer, self._with_queries, self.n_features, lines_before=int(begin > 0))
        try:
            return super().receive(text, slot)
        except FormatError:
            if begin > 0:  # the lines before are counted only now
                super().receive(text._replace(lines_before=self._count_lines(start)), slot)
            raise

    def _lines(self, begin, end):
        """Return (offset, lines) of the lines that begin between two offsets."""
        descriptor = self._file.fileno()
        if begin == 0:
            data, first = self._read(end, 0), 0
        else:
            data = self._read(end - begin + 1, begin - 1)  # a line begins at `begin` if a newline is before it
            first = data.find(b"\n") + 1
            if first == 0 or first == len(data):
                return begin, b""
        pieces, position = [data[first:] if first else data], end
        while not pieces[-1].endswith(b"\n"):
            more = os.pread(descriptor, _BYTES_READ_BEYOND_PART, position)
            if not more:
                break
            cut = more.find(b"\n") + 1
            pieces.append(more[:cut] if cut else more)
            position += len(more)
        return begin - 1 + first if begin else 0, b"".join(pieces)

    def _read(self, length, offset):
        """Return the bytes from an offset on."""
        data = os.pread(self._file.fileno(), length, offset)
        while len(data) < length:
            more = os.pread(self._file.fileno(), length - len(data), offset + len(data))
            if not more:
                raise FormatError(self.name, "was cut short by another program while it was read")
            data += more
        return data

    def _count_lines(self, offset):
        """Return the number of lines before an offset."""
        n_lines, position = 0, 0
        while position < offset:
            data = self._read(min(_BYTES_PER_PART, offset - position), position)
            n_lines += data.count(b"\n")
            position += len(data)
        return n_lines
