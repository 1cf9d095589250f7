"""SVM-light / LIBSVM text: a row per line, `label [qid:query] index:value ... [# comment]`, by rising index.

Reading: the file is memory-mapped and cut at newlines into chunks, which threads parse with compiled code
(`textparser`) straight into the arrays of one CSR matrix. Every number is the double nearest to its decimal
text, as Python's `float` would give. A file that breaks a rule is refused with its first mistake, by line and
column (`textmistakes`).

Writing is in `textwriter`.
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
    compression_of,
    decompress,
)
from widemargin.data.svmlight.mistakes import HEAD_BYTES, LARGEST_INDEX, Expected, explain, foreign_format
from widemargin.data.svmlight.parser import FAILED_AT, N_UNDECIDED, Place, Rules, count_lines, parse_rows
from widemargin.errors import FormatError

_CHUNK_BYTES = 1 << 20
_COUNTING = 0.05  # the part of the time that counting lines takes; parsing takes the rest
_LISTED_UNDECIDED = 64
_SHORTEST_ENTRY = 4  # a blank, a digit, a colon, a digit
_LARGEST_INT32 = 2**31 - 1
_NEWLINE = np.uint8(ord("\n"))
_LARGEST_VALUES = {  # the largest doubles that are finite once converted
    np.dtype(np.float64): float(np.finfo(np.float64).max),
    np.dtype(np.float32): float(np.nextafter(2.0**128 - 2.0**103, 0.0)),
}
_NUMBER_AT = re.compile(rb"[-+.0-9eE]+")
# Blank and comment lines, a label, and then a query.
_STARTS_WITH_QUERY = re.compile(rb"(?:[ \t\r]*+(?:#[^\n]*+)?\n)*+[ \t\r]*+[^ \t\r\n#]++[ \t\r]++qid:")
NO_ROWS = "holds no rows"
_BYTE_ORDER_MARKS = {b"\xef\xbb\xbf": "UTF-8", b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16"}
MARKED = "the text starts with a {} byte order mark; save it as plain ASCII"


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
        Plain text, or compressed with gzip, bzip2, xz or zstandard, which is told from the first bytes. A
        file object may be open in binary or text mode and is read to its end. A file must not be cut short by
        others while it is read, as it is memory-mapped.
    n_features : int, default=None
        Number of columns; None takes the largest index in the file.
    dtype : float64 or float32, default=float64
        Type of the values. A float32 is the nearest to the double nearest to the text, as NumPy converts.
    zero_based : "auto" or bool, default="auto"
        Whether indices count from 0 rather than from 1; "auto" says so if index 0 occurs.

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
    """
    X, y, qid, _ = read_with_base(path_or_file, n_features=n_features, dtype=dtype, zero_based=zero_based)
    return X, y, qid


def read_with_base(path_or_file, *, n_features=None, dtype=np.float64, zero_based="auto"):
    """Return what `read_svmlight` does, and whether indices count from 0."""
    _check_options(n_features, dtype, zero_based)
    name, buffer = load_text(path_or_file)
    text = Text(name, buffer, starts_with_query(buffer), n_features)
    return _read(text, np.dtype(dtype), zero_based)


def _check_options(n_features, dtype, zero_based):
    """Refuse options of `read_svmlight` that mean nothing."""
    if n_features is not None and not 0 <= operator.index(n_features) <= _LARGEST_INT32:
        raise ValueError(f"n_features must be between 0 and {_LARGEST_INT32}, got {n_features}.")
    check_type(dtype)
    if not (isinstance(zero_based, bool) or zero_based == "auto"):
        raise ValueError(f'zero_based must be True, False or "auto", got {zero_based!r}.')


def check_type(dtype):
    """Refuse a type of values that is not read."""
    if np.dtype(dtype) not in (np.float64, np.float32):
        raise ValueError(f"dtype must be float64 or float32, got {np.dtype(dtype)}.")


def _read(text, dtype, zero_based):
    """Return (X, labels, queries, whether indices count from 0) of a text; settle the last of them first."""
    rows = parse_text(text, dtype, zero_based)
    if len(rows.labels) == 0:
        raise FormatError(text.name, NO_ROWS)
    if zero_based == "auto" and rows.smallest == 0:
        if text.n_features is not None and rows.largest >= text.n_features:
            # Counted from 0 there is one index too many: read again for the place of the first.
            parse_text(text, dtype, zero_based=True)
        rows.indices[:] += 1  # parsed as if from 1
        zero_based = True
    n_features = text.n_features
    if n_features is None:
        n_features = max(rows.largest + (zero_based is True), 0)
    return make_matrix(rows, n_features), rows.labels, rows.queries, zero_based is True


class Text(NamedTuple):
    """A text to be parsed, and what has to be known to explain its mistakes."""

    name: str
    buffer: bytes | mmap.mmap
    with_queries: bool
    n_features: int | None = None
    lines_before: int = 0  # of the file, if this is a part of it


class Rows(NamedTuple):
    """All rows of a text: a CSR matrix whose columns may still be off by one, labels and queries."""

    labels: np.ndarray
    queries: np.ndarray | None
    indptr: np.ndarray
    indices: np.ndarray
    values: np.ndarray
    smallest: int  # of the indices as written
    largest: int


def make_matrix(rows, n_features):
    """Return the CSR matrix of parsed rows."""
    X = csr_array((rows.values, rows.indices, rows.indptr), shape=(len(rows.labels), n_features))
    X.has_canonical_format = True  # indices increase in each row: the parser saw to it
    return X


def load_text(path_or_file):
    """Return (name for messages, bytes or memory map) of a plain or compressed file or file object of plain text."""
    name, data = load_bytes(path_or_file)
    refuse_byte_order_mark(name, data)
    return name, data


def load_bytes(path_or_file):
    """Return (name for messages, bytes or memory map) of a file or file object, decompressed if need be."""
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
        unpacking = task(f"decompressing {os.path.basename(name)}", len(data), "bytes")
        with refusing_damage(name, method), unpacking as unpacked:
            data = decompress(data, module, unpacked.advance)
    return name, data


def check_path(path_or_file):
    """Refuse what is neither a file object nor a path."""
    if not isinstance(path_or_file, (str, bytes, os.PathLike)):
        raise TypeError(f"path_or_file must be a path or a file object, got {type(path_or_file).__name__}.")


@contextmanager
def refusing_damage(name, method):
    """Within the block, a ValueError is about damaged compressed data, or about data that expand beyond belief."""
    try:
        yield
    except ExpansionError as error:
        raise FormatError(name, f"{method} data: {error}") from error
    except ValueError as error:
        raise FormatError(name, f"the {method} data are damaged or cut short ({error})") from error


def refuse_byte_order_mark(name, data):
    """Refuse a text whose first bytes say that it is not plain."""
    mark, encoding = byte_order_mark(data)
    if mark:
        raise FormatError(name, MARKED.format(encoding), 1, 1)


def starts_with_query(data):
    """Tell whether the first row of a text has a query."""
    return bool(_STARTS_WITH_QUERY.match(data))


def byte_order_mark(data):
    """Return (mark, encoding) of the byte order mark that a text starts with; empty if there is none."""
    return next(((mark, name) for mark, name in _BYTE_ORDER_MARKS.items() if data[: len(mark)] == mark), (b"", ""))


def _make_rules(text, dtype, zero_based):
    """State what the parser may accept; "auto" accepts what either way of counting would."""
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


def cut(buffer):
    """Cut a text after newlines into arrays of about `_CHUNK_BYTES`; the last line is given a newline."""
    text = np.frombuffer(buffer, dtype=np.uint8)
    chunks, start = [], 0
    while start < len(text):
        stop = buffer.find(b"\n", start + _CHUNK_BYTES - 1) + 1 or len(text)
        chunks.append(text[start:stop])
        start = stop
    if chunks and chunks[-1][-1] != _NEWLINE:
        chunks[-1] = np.append(chunks[-1], _NEWLINE)
        chunks[-1].flags.writeable = False  # like the others: another type would be compiled again
    return chunks


def parse_text(text, dtype, zero_based):
    """Return the Rows of a text, in two parallel passes, one to count and one to fill; raise its first mistake."""
    with task(f"reading {os.path.basename(text.name)}", len(text.buffer), "bytes") as reading:
        return _parse_chunks(text, _make_rules(text, dtype, zero_based), dtype, reading)


def _parse_chunks(text, rules, dtype, reading):
    """Parse a text and tell `reading`, a task, how many of its bytes are done."""
    chunks = cut(text.buffer)
    counts = run(_count_chunk, [(chunk, reading) for chunk in chunks], n_jobs=-1)
    n_lines, n_colons = zip(*counts, strict=True) if chunks else ((), ())
    room = [min(n, len(chunk) // _SHORTEST_ENTRY) for chunk, n in zip(chunks, n_colons, strict=True)]
    labels, row_ends = np.empty(sum(n_lines)), np.empty(sum(n_lines), dtype=np.int64)
    queries = np.empty(sum(n_lines) if rules.with_queries else 0, dtype=np.int64)
    indices, values = np.empty(sum(room), dtype=np.int32), np.empty(sum(room), dtype=dtype)
    lines, entries = _slices(n_lines), _slices(room)
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


def _slices(lengths):
    """Return slices of the given lengths, one after the other."""
    edges = np.cumsum([0, *lengths]).tolist()
    return [slice(start, stop) for start, stop in pairwise(edges)]


def _count_chunk(chunk, reading):
    """Return the numbers of lines and colons in a chunk."""
    counts = count_lines(chunk)
    reading.advance(_COUNTING * len(chunk))
    return counts


def _parse_chunk(chunk, rules, reading, *arrays):
    """Parse one chunk into its slices of the arrays, to the last number; return its tally."""
    n_listed = _LISTED_UNDECIDED
    while True:
        undecided = np.empty((n_listed, 2), dtype=np.int64)
        place = Place(*arrays, undecided=undecided, tally=np.empty(6, dtype=np.int64))
        with np.errstate(over="ignore"):  # uncompiled, integers that are meant to wrap would warn
            parse_rows(chunk, rules, place)
        if place.tally[N_UNDECIDED] <= n_listed:
            break
        n_listed = place.tally[N_UNDECIDED]
    for position, owner, value in decided(chunk, undecided[: place.tally[N_UNDECIDED]]):
        largest = rules.largest_value if owner >= 0 else _LARGEST_VALUES[np.dtype(np.float64)]
        if abs(value) > largest:
            # Numbers come in the order of the text, and the parser stopped at the first mistake it saw.
            failed_at = place.tally[FAILED_AT]
            place.tally[FAILED_AT] = position if failed_at < 0 else min(failed_at, position)
            break
        if owner >= 0:
            place.values[owner] = value
        else:
            place.labels[-1 - owner] = value
    reading.advance((1.0 - _COUNTING) * len(chunk))
    return place.tally


def decided(chunk, undecided):
    """Yield (position, owner, double) of the numbers that the parser left to Python."""
    for position, owner in undecided.tolist():
        yield position, owner, float(_NUMBER_AT.match(chunk, position).group())


def _raise_first_mistake(text, rules, chunks, n_lines, tallies):
    """Raise a FormatError for the first line of the text that was refused, if there is one."""
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
    """Refuse a text whose first bytes are those of another format."""
    foreign = foreign_format(bytes(text.buffer[:HEAD_BYTES]), has_rows)
    if foreign is not None:
        raise FormatError(text.name, foreign, 1, 1)


def _close_gaps(array, slices, counts):
    """Return the first `counts` elements of each slice, joined; the array itself if that is all of it."""
    if counts.sum() == len(array):
        return array
    return np.concatenate([array[part][:count] for part, count in zip(slices, counts, strict=True)])


def _make_indptr(row_ends, lines, n_rows, n_entries):
    """Return where rows start, from where they end in each chunk; 32 bits wide if that is enough."""
    dtype = np.int32 if n_entries.sum() <= _LARGEST_INT32 else np.int64
    indptr = np.zeros(n_rows.sum() + 1, dtype=dtype)
    before = np.cumsum(n_entries) - n_entries
    for part, target, start in zip(lines, _slices(n_rows), before, strict=True):
        ends = row_ends[part][: target.stop - target.start]
        np.add(ends, start, out=indptr[1:][target], casting="unsafe")
    return indptr
