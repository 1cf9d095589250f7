"""SVM-light / LIBSVM text as a source of rows for a row-block file, parsed in threads.

Part k of a text has the lines that begin in its bytes k L to (k + 1) L − 1, with a fixed L. Of a plain file, each
thread reads its own part; compressed text and streams are read one part after the other.
"""

import os
import stat

from widemargin._runtime.progress import task
from widemargin.data.blocks.incoming import received_text
from widemargin.data.svmlight.blocks import SvmlightBlocks
from widemargin.data.svmlight.compression import LONGEST_MAGIC, compression_of
from widemargin.data.svmlight.reader import (
    NO_ROWS,
    Text,
    parse_part,
    refuse_byte_order_mark,
    starts_with_query,
)
from widemargin.errors import FormatError

_BYTES_PER_PART = 1 << 21
_BYTES_SEARCHED_AT_ONCE = 1 << 14  # for a newline


def text_source(path_or_file, *, zero_based, n_features, dtype):
    """Return the source of text in a file, or from a file object."""
    if not hasattr(path_or_file, "read") and hasattr(os, "preadv") and _is_plain(path_or_file):
        return PlainTextSource(SvmlightBlocks(path_or_file, zero_based=zero_based, dtype=dtype), n_features)
    blocks = SvmlightBlocks(path_or_file, zero_based=zero_based, dtype=dtype, block_bytes=_BYTES_PER_PART)
    return TextSource(blocks, n_features)


def _is_plain(path):
    """Whether a path is a regular file that is not compressed."""
    if not stat.S_ISREG(os.stat(path).st_mode):
        return False
    with open(path, "rb") as file:
        return compression_of(file.read(LONGEST_MAGIC)) is None


def _divided(buffers):
    """Yield text in the parts in which threads read a plain file."""
    held, start, end = b"", 0, _BYTES_PER_PART
    for buffer in buffers:
        held += buffer
        while start >= end or (cut := held.find(b"\n", end - 1 - start) + 1):
            length = 0 if start >= end else cut
            yield held[:length]
            held, start, end = held[length:], start + length, end + _BYTES_PER_PART
    if held:
        yield held


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

    def parts(self):
        """Yield (Text,)."""
        reported = 0
        with task(f"reading {os.path.basename(self.name)}", self._blocks.size, "bytes", speed=True) as reading:
            for buffer in _divided(self._blocks.read_lines()):
                yield (self._text(buffer),)
                if not self._has_rows:  # the first row decides about queries
                    yield None
                reading.advance(self._blocks.position - reported)
                reported = self._blocks.position
            yield None
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
        rows = parse_part(text, self._blocks.dtype, self._blocks.zero_based)
        if len(rows.labels):
            self._has_rows = True
        return received_text(rows)


class PlainTextSource(TextSource):
    """Text in a plain file, of which threads read parts."""

    def __init__(self, blocks, n_features=None):
        super().__init__(blocks, n_features)
        self._file = None

    def parts(self):
        """Yield (begin, end) in bytes."""
        size = self._blocks.size
        with (
            open(self.name, "rb", buffering=0) as self._file,
            task(f"reading {os.path.basename(self.name)}", size, "bytes", speed=True) as reading,
        ):
            for begin in range(0, size, _BYTES_PER_PART):
                end = min(begin + _BYTES_PER_PART, size)
                yield begin, end
                if not self._has_rows:  # the first row decides about queries
                    yield None
                reading.advance(end - begin)
            yield None  # the file stays open until all has been read
        if not self._has_rows:
            raise FormatError(self.name, NO_ROWS)

    def receive(self, begin, end, slot):
        """Return the rows of the lines that begin between two offsets."""
        start, buffer = self._lines(begin, end, slot)
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

    def _lines(self, begin, end, slot):
        """Return (offset, lines) of the lines that begin between two offsets; the lines are in memory of the slot."""
        before = min(begin, 1)  # a line begins at `begin` if a newline is before it
        data = slot.memory(end - begin + before)
        self._read(data, begin - before)
        first = bytes(data[:_BYTES_SEARCHED_AT_ONCE]).find(b"\n") + 1 if begin else 0
        if begin and first == 0:
            first = bytes(data).find(b"\n") + 1
            if first == 0:  # a line that is longer than a part
                return begin, b""
        if data[-1:] == b"\n":
            return begin - before + first, data[first:].toreadonly()
        rest = self._rest_of_line(end) if first < len(data) else b""
        if not rest:
            return begin - before + first, data[first:].toreadonly()
        data = slot.memory(len(data) + len(rest), keep=True)
        data[-len(rest) :] = rest
        return begin - before + first, data[first:].toreadonly()

    def _rest_of_line(self, position):
        """Return the bytes from a position on to the end of the line."""
        pieces = []
        while more := os.pread(self._file.fileno(), _BYTES_SEARCHED_AT_ONCE, position):
            cut = more.find(b"\n") + 1
            pieces.append(more[:cut] if cut else more)
            if cut:
                break
            position += len(more)
        return b"".join(pieces)

    def _read(self, data, offset):
        """Fill memory with the bytes from an offset on."""
        done = 0
        while done < len(data):
            length = os.preadv(self._file.fileno(), [data[done:]], offset + done)
            if length == 0:
                raise FormatError(self.name, "was cut short by another program while it was read")
            done += length

    def _count_lines(self, offset):
        """Return the number of lines before an offset."""
        n_lines, position = 0, 0
        while position < offset:
            data = os.pread(self._file.fileno(), min(_BYTES_PER_PART, offset - position), position)
            n_lines += data.count(b"\n")
            position += len(data)
        return n_lines
