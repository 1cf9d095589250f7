"""Reading of SVM-light / LIBSVM text: one row per line, `label [qid:query] index:value ... [# comment]`.

The indices of a row ascend. The file is memory-mapped and divided at newlines into chunks, which threads parse by
compiled code (`parser`) directly into the arrays of one CSR matrix. Every number is the double nearest to its decimal
text, as from Python's `float`. A file that breaks a rule is refused, with line and column of the first error
(`mistakes`). Files are written by `writer`.
"""

import mmap
import operator
import os
import re
import stat
from contextlib import contextmanager
from itertools import pairwise
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy.sparse import csr_array

from widemargin._runtime.argument_types import PathOrFile
from widemargin._runtime.progress import task
from widemargin._runtime.threads import run
from widemargin.data.svmlight.compression import (
    LONGEST_MAGIC,
    ExpansionError,
    MissingModuleError,
    compression_of,
    decompress,
)
from widemargin.data.svmlight.mistakes import HEAD_BYTES, LARGEST_INDEX, Expected, explain, foreign_format
from widemargin.data.svmlight.parser import FAILED_AT, N_UNDECIDED, ParserOutput, Rules, count_lines, parse_rows
from widemargin.errors import FormatError

_CHUNK_BYTES = 1 << 20  # of text that a thread parses at a time, about
_COUNTING_TIME_FRACTION = 0.05  # of the time; parsing takes the rest
_UNDECIDED_NUMBERS_LISTED = 64  # of a chunk, in the first attempt; a chunk with more is parsed again with a longer list
_BYTES_OF_SHORTEST_ENTRY = 4  # a blank, a digit, a colon, a digit
_LARGEST_INT32 = 2**31 - 1
_BYTES_SEARCHED_AT_ONCE = 1 << 12  # for a newline
_NEWLINE = np.uint8(ord("\n"))
_LARGEST_VALUES = {  # the largest doubles that are finite after the conversion to the type
    np.dtype(np.float64): float(np.finfo(np.float64).max),
    np.dtype(np.float32): float(np.nextafter(2.0**128 - 2.0**103, 0.0)),
}
_NUMBER_AT = re.compile(rb"[-+.0-9eE]+")
# Blank and comment lines, a label, and then a query.
_STARTS_WITH_QUERY = re.compile(rb"(?:[ \t\r]*+(?:#[^\n]*+)?\n)*+[ \t\r]*+[^ \t\r\n#]++[ \t\r]++qid:")
NO_ROWS = "holds no rows"
_BYTE_ORDER_MARKS = {b"\xef\xbb\xbf": "UTF-8", b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16"}
BYTE_ORDER_MARK_RULE = "the text starts with a {} byte order mark; save it as plain ASCII"


def read_svmlight(
    path_or_file: PathOrFile,
    *,
    n_features: int | None = None,
    dtype: DTypeLike = np.float64,
    zero_based: bool | Literal["auto"] = "auto",
) -> tuple[csr_array, NDArray[np.float64], NDArray[np.int64] | None]:
    """Read rows of SVM-light / LIBSVM text.

    Parameters
    ----------
    path_or_file : str, path or file object
        Plain text, or text compressed with gzip, bzip2, xz or zstandard, which is recognised by its first bytes. A
        file object may be open in binary or text mode and is read to its end. A file is memory-mapped, so it must not
        be truncated by another process while it is read.
    n_features : int, default=None
        Number of columns; None uses the largest index in the file.
    dtype : float64 or float32, default=float64
        Type of the values. With float32, the text is converted to the nearest double, and this to the nearest float32.
    zero_based : "auto" or bool, default="auto"
        Whether indices count from 0 rather than from 1; with "auto" they count from 0 if index 0 occurs.

    Returns
    -------
    X : csr_array of shape (n_rows, n_features)
        The values, including zeros that are written in the file.
    y : ndarray of shape (n_rows,), float64
        The labels.
    qid : ndarray of shape (n_rows,), int64, or None
        The queries, if the rows have any.

    Raises
    ------
    FormatError
        At the first place where the file breaks a rule of the format.

    Examples
    --------
    >>> from io import BytesIO
    >>> from widemargin import read_svmlight
    >>> X, y, qid = read_svmlight(BytesIO(b"1 1:0.5 3:2\\n-1 2:1\\n"))
    >>> X.shape, y.tolist(), qid is None
    ((2, 3), [1.0, -1.0], True)
    """
    X, y, qid, _ = read_with_base(path_or_file, n_features=n_features, dtype=dtype, zero_based=zero_based)
    return X, y, qid


def read_with_base(path_or_file, *, n_features=None, dtype=np.float64, zero_based="auto"):
    """Return the results of `read_svmlight`, and whether indices count from 0."""
    _check_options(n_features, dtype, zero_based)
    name, buffer = load_text(path_or_file)
    text = Text(name, buffer, starts_with_query(buffer), n_features)
    return _read(text, np.dtype(dtype), zero_based)


def _check_options(n_features, dtype, zero_based):
    """Raise ValueError if an option of `read_svmlight` is not valid."""
    if n_features is not None and not 0 <= operator.index(n_features) <= _LARGEST_INT32:
        raise ValueError(f"n_features must be between 0 and {_LARGEST_INT32}, got {n_features}.")
    check_type(dtype)
    if not (isinstance(zero_based, bool) or zero_based == "auto"):
        raise ValueError(f'zero_based must be True, False or "auto", got {zero_based!r}.')


def check_type(dtype):
    """Raise ValueError unless dtype is float64 or float32."""
    if np.dtype(dtype) not in (np.float64, np.float32):
        raise ValueError(f"dtype must be float64 or float32, got {np.dtype(dtype)}.")


def _read(text, dtype, zero_based):
    """Return (X, labels, queries, whether indices count from 0) of a text."""
    rows = parse_text(text, dtype, zero_based)
    if len(rows.labels) == 0:
        raise FormatError(text.name, NO_ROWS)
    if zero_based == "auto" and rows.smallest == 0:
        if text.n_features is not None and rows.largest >= text.n_features:
            # Counted from 0, the largest index is beyond n_features: parse again to raise the error with its position.
            parse_text(text, dtype, zero_based=True)
        rows.indices[:] += 1  # they were parsed as if they counted from 1
        zero_based = True
    n_features = text.n_features
    if n_features is None:
        n_features = max(rows.largest + (zero_based is True), 0)
    return make_matrix(rows, n_features), rows.labels, rows.queries, zero_based is True


class Text(NamedTuple):
    """A text to be parsed, and what is needed to describe its errors."""

    name: str
    buffer: bytes | mmap.mmap | memoryview
    with_queries: bool
    n_features: int | None = None
    lines_before: int = 0  # lines of the file before this text, if it is a part of the file


class Rows(NamedTuple):
    """The rows of a text: labels, queries and the arrays of a CSR matrix, whose indices may be too small by one."""

    labels: np.ndarray
    queries: np.ndarray | None
    indptr: np.ndarray
    indices: np.ndarray
    values: np.ndarray
    smallest: int  # index, as written in the file
    largest: int


def make_matrix(rows, n_features):
    """Return the CSR matrix of parsed rows."""
    X = csr_array((rows.values, rows.indices, rows.indptr), shape=(len(rows.labels), n_features))
    X.has_canonical_format = True  # the parser accepts ascending indices only
    return X


def load_text(path_or_file):
    """Return (name for messages, bytes or memory map) of a text, decompressed if necessary; refuse byte order marks."""
    name, data = load_bytes(path_or_file)
    refuse_byte_order_mark(name, data)
    return name, data


def load_bytes(path_or_file):
    """Return (name for messages, bytes or memory map) of a file or file object, decompressed if necessary."""
    if hasattr(path_or_file, "read"):
        name = getattr(path_or_file, "name", None)
        name = name if isinstance(name, str) else "<stream>"
        with task(f"reading {name}"):
            data = path_or_file.read()
        if isinstance(data, str):
            data = data.encode("utf-8", "surrogatepass")
    else:
        check_path(path_or_file)
        name = os.fsdecode(path_or_file)
        with open(path_or_file, "rb") as file:
            status = os.fstat(file.fileno())
            mappable = stat.S_ISREG(status.st_mode) and status.st_size > 0
            data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if mappable else file.read()
    compression = compression_of(data[:LONGEST_MAGIC])
    if compression is not None:
        method, module = compression
        decompression = task(f"decompressing {os.path.basename(name)}", len(data), "bytes")
        with damage_as_format_error(name, method), decompression as progress:
            data = decompress(data, module, progress.advance)
    return name, data


def check_path(path_or_file):
    """Raise TypeError unless the argument is a path."""
    if not isinstance(path_or_file, (str, bytes, os.PathLike)):
        raise TypeError(f"path_or_file must be a path or a file object, got {type(path_or_file).__name__}.")


@contextmanager
def damage_as_format_error(name, method):
    """Turn a ValueError within the block, which is about damaged or too large compressed data, into a FormatError."""
    try:
        yield
    except (ExpansionError, MissingModuleError) as error:
        raise FormatError(name, f"{method} data: {error}") from error
    except ValueError as error:
        raise FormatError(name, f"the {method} data are damaged or cut short ({error})") from error


def refuse_byte_order_mark(name, data):
    """Raise FormatError if a text starts with a byte order mark."""
    mark, encoding = byte_order_mark(data)
    if mark:
        raise FormatError(name, BYTE_ORDER_MARK_RULE.format(encoding), 1, 1)


def starts_with_query(data):
    """Return whether the first row of a text has a query."""
    return bool(_STARTS_WITH_QUERY.match(data))


def byte_order_mark(data):
    """Return (mark, encoding) of the byte order mark at the start of a text, or empty ones if there is none."""
    return next(((mark, name) for mark, name in _BYTE_ORDER_MARKS.items() if data[: len(mark)] == mark), (b"", ""))


def _make_rules(text, dtype, zero_based):
    """Return the Rules for the parser; with "auto", indices are accepted that are valid counted from 0 or from 1."""
    highest = LARGEST_INDEX
    if text.n_features is not None:
        highest = min(highest, text.n_features - (zero_based is True))
    return Rules(
        lowest_index=int(zero_based is False),
        highest_index=highest,
        first_column=int(zero_based is not True),
        largest_value=_LARGEST_VALUES[dtype],
        with_queries=text.with_queries,
    )


def _after_newline(text, position):
    """Return the position after the first newline from `position` on, or the length of the text."""
    while position < len(text):
        found = text[position : position + _BYTES_SEARCHED_AT_ONCE].tobytes().find(b"\n")
        if found >= 0:
            return position + found + 1
        position += _BYTES_SEARCHED_AT_ONCE
    return len(text)


def split_into_chunks(buffer):
    """Divide a text after newlines into arrays of about `_CHUNK_BYTES`; a missing newline at the end is added."""
    text = np.frombuffer(buffer, dtype=np.uint8)
    chunks, start = [], 0
    while start < len(text):
        stop = _after_newline(text, start + _CHUNK_BYTES - 1)
        chunks.append(text[start:stop])
        start = stop
    if chunks:
        chunks[-1] = _with_newline(chunks[-1])
    return chunks


def _with_newline(chunk):
    """Return a chunk, with a newline at its end if there is none."""
    if len(chunk) == 0 or chunk[-1] == _NEWLINE:
        return chunk
    chunk = np.append(chunk, _NEWLINE)
    chunk.flags.writeable = False  # as the others: for another type the parser would be compiled again
    return chunk


def parse_text(text, dtype, zero_based):
    """Return the Rows of a text, by two parallel passes, one to count and one to parse; raise the first error."""
    with task(f"reading {os.path.basename(text.name)}", len(text.buffer), "bytes") as reading:
        return _parse_chunks(text, _make_rules(text, dtype, zero_based), dtype, reading)


def _parse_chunks(text, rules, dtype, reading):
    """Return the Rows of a text, and report the progress in bytes to the task `reading`."""
    chunks = split_into_chunks(text.buffer)
    counts = run(_count_chunk, [(chunk, reading) for chunk in chunks], n_jobs=-1)
    n_lines, n_colons = zip(*counts, strict=True) if chunks else ((), ())
    max_entries = [min(n, len(chunk) // _BYTES_OF_SHORTEST_ENTRY) for chunk, n in zip(chunks, n_colons, strict=True)]
    labels, row_ends = np.empty(sum(n_lines)), np.empty(sum(n_lines), dtype=np.int64)
    queries = np.empty(sum(n_lines) if rules.with_queries else 0, dtype=np.int64)
    indices, values = np.empty(sum(max_entries), dtype=np.int32), np.empty(sum(max_entries), dtype=dtype)
    lines, entries = _slices(n_lines), _slices(max_entries)
    calls = [
        (chunk, rules, reading, labels[rows], queries[rows], row_ends[rows], indices[cells], values[cells])
        for chunk, rows, cells in zip(chunks, lines, entries, strict=True)
    ]
    tallies = run(_parse_chunk, calls, n_jobs=-1)
    _raise_first_mistake(text, rules, chunks, n_lines, tallies)
    n_rows, n_entries, _, smallest, largest, _ = np.array(tallies, dtype=np.int64).reshape(-1, 6).T
    return Rows(
        labels=_close_gaps(labels, lines, n_rows),
        queries=_close_gaps(queries, lines, n_rows) if rules.with_queries else None,
        indptr=_make_indptr(row_ends, lines, n_rows, n_entries),
        indices=_close_gaps(indices, entries, n_entries),
        values=_close_gaps(values, entries, n_entries),
        smallest=int(smallest.min(initial=LARGEST_INDEX)),
        largest=int(largest.max(initial=-1)),
    )


def parse_part(text, dtype, zero_based):
    """Return the Rows of a part of a file, parsed in the calling thread; raise the first error.

    `indptr` is int64, and the arrays may be views of longer ones, so that nothing is copied.
    """
    rules, chunk = _make_rules(text, dtype, zero_based), _with_newline(np.frombuffer(text.buffer, dtype=np.uint8))
    n_lines, n_colons = count_lines(chunk)
    max_entries = min(n_colons, len(chunk) // _BYTES_OF_SHORTEST_ENTRY)
    labels, indptr = np.empty(n_lines), np.zeros(n_lines + 1, dtype=np.int64)
    queries = np.empty(n_lines if rules.with_queries else 0, dtype=np.int64)
    indices, values = np.empty(max_entries, dtype=np.int32), np.empty(max_entries, dtype=dtype)
    tally = _parse_into(chunk, rules, labels, queries, indptr[1:], indices, values)
    _raise_first_mistake(text, rules, [chunk], [n_lines], [tally])
    n_rows, n_entries, _, smallest, largest, _ = tally.tolist()
    return Rows(
        labels=labels[:n_rows],
        queries=queries[:n_rows] if rules.with_queries else None,
        indptr=indptr[: n_rows + 1],
        indices=indices[:n_entries],
        values=values[:n_entries],
        smallest=smallest,
        largest=largest,
    )


def _slices(lengths):
    """Return consecutive slices of the given lengths."""
    edges = np.cumsum([0, *lengths]).tolist()
    return [slice(start, stop) for start, stop in pairwise(edges)]


def _count_chunk(chunk, reading):
    """Return the numbers of lines and colons in a chunk."""
    counts = count_lines(chunk)
    reading.advance(_COUNTING_TIME_FRACTION * len(chunk))
    return counts


def _parse_chunk(chunk, rules, reading, *arrays):
    """Parse one chunk into its slices of the arrays, and report the progress; return its tally."""
    tally = _parse_into(chunk, rules, *arrays)
    reading.advance((1.0 - _COUNTING_TIME_FRACTION) * len(chunk))
    return tally


def _parse_into(chunk, rules, *arrays):
    """Parse one chunk into arrays, undecided numbers included; return its tally."""
    n_listed = _UNDECIDED_NUMBERS_LISTED
    while True:
        undecided = np.empty((n_listed, 2), dtype=np.int64)
        out = ParserOutput(*arrays, undecided=undecided, tally=np.empty(6, dtype=np.int64))
        with np.errstate(over="ignore"):  # integer overflow is intended; uncompiled code would warn
            parse_rows(chunk, rules, out)
        if out.tally[N_UNDECIDED] <= n_listed:
            break
        n_listed = out.tally[N_UNDECIDED]
    for position, owner, value in convert_undecided(chunk, undecided[: out.tally[N_UNDECIDED]]):
        largest = rules.largest_value if owner >= 0 else _LARGEST_VALUES[np.dtype(np.float64)]
        if abs(value) > largest:
            # Undecided numbers are in the order of the text, so that this is the first one that is too large.
            failed_at = out.tally[FAILED_AT]
            out.tally[FAILED_AT] = position if failed_at < 0 else min(failed_at, position)
            break
        if owner >= 0:
            out.values[owner] = value
        else:
            out.labels[-1 - owner] = value
    return out.tally


def convert_undecided(chunk, undecided):
    """Yield (position, owner, double) of the numbers that the parser could not convert; see `ParserOutput`."""
    for position, owner in undecided.tolist():
        yield position, owner, float(_NUMBER_AT.match(chunk, position).group())


def _raise_first_mistake(text, rules, chunks, n_lines, tallies):
    """Raise a FormatError for the first line that the parser refused, if there is one."""
    for k, (chunk, tally) in enumerate(zip(chunks, tallies, strict=True)):
        if tally[FAILED_AT] >= 0:
            before = chunk[: tally[FAILED_AT]].tobytes()
            line = before[before.rfind(b"\n") + 1 :] + chunk[tally[FAILED_AT] :].tobytes()
            column, rule = explain(line[: line.index(b"\n")], Expected(rules, text.n_features))
            line_number = text.lines_before + sum(n_lines[:k]) + before.count(b"\n") + 1
            if text.lines_before == 0:
                above = before[: before.rfind(b"\n") + 1].splitlines()
                _refuse_foreign(text, has_rows=k > 0 or any(row.partition(b"#")[0].strip() for row in above))
            raise FormatError(text.name, rule, line_number, column)


def _refuse_foreign(text, has_rows):
    """Raise a FormatError if the text is a file of another format."""
    foreign = foreign_format(bytes(text.buffer[:HEAD_BYTES]), has_rows)
    if foreign is not None:
        raise FormatError(text.name, foreign, 1, 1)


def _close_gaps(array, slices, counts):
    """Return the first `counts` elements of each slice, concatenated; the array itself if these are all."""
    if counts.sum() == len(array):
        return array
    return np.concatenate([array[part][:count] for part, count in zip(slices, counts, strict=True)])


def _make_indptr(row_ends, lines, n_rows, n_entries):
    """Return indptr from the ends of the rows in each chunk, as int32 if that is large enough."""
    dtype = np.int32 if n_entries.sum() <= _LARGEST_INT32 else np.int64
    indptr = np.zeros(n_rows.sum() + 1, dtype=dtype)
    before = np.cumsum(n_entries) - n_entries
    for part, target, start in zip(lines, _slices(n_rows), before, strict=True):
        ends = row_ends[part][: target.stop - target.start]
        np.add(ends, start, out=indptr[1:][target], casting="unsafe")
    return indptr
