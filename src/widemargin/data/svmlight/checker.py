"""A check of SVM-light text that finds all mistakes, and returns the rows without mistakes.

The text is parsed in chunks by threads, as by `read_svmlight`, but the compiled code continues after a line that breaks
a rule. The refused lines, usually few, are then read again by Python code (`mistakes`), which is slow but finds every
mistake. When `limit` mistakes are listed and `_EXPLAINED_BYTES` of refused lines have been read again, each further
refused line counts as one mistake.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array

from widemargin._runtime.threads import run
from widemargin.data.svmlight.mistakes import HEAD_BYTES, LARGEST_INDEX, Expected, foreign_format, mistakes
from widemargin.data.svmlight.parser import (
    N_ENTRIES,
    N_ROWS,
    N_UNDECIDED,
    ParserOutput,
    Rules,
    count_lines,
    count_queries,
    parse_good_rows,
)
from widemargin.data.svmlight.reader import (
    BYTE_ORDER_MARK_RULE,
    byte_order_mark,
    convert_undecided,
    load_bytes,
    split_into_chunks,
    starts_with_query,
)
from widemargin.errors import FormatError

_EXPLAINED_BYTES = 1 << 23  # of refused lines, which take about two seconds
_BYTES_OF_SHORTEST_ENTRY = 4  # a blank, a digit, a colon, a digit
_LARGEST_VALUE = float(np.finfo(np.float64).max)
_UNDECIDED_NUMBERS_LISTED = 64  # of a chunk, in the first attempt; a chunk with more is parsed again with a longer list


class Mistake(NamedTuple):
    """A rule that a file breaks, and its line and column, counted from 1; None if it concerns the whole file."""

    line: int | None
    column: int | None
    rule: str


@dataclass(frozen=True)
class Checked:
    """The result of `check_svmlight`.

    Attributes
    ----------
    name : str
        Path of the file, or `<stream>`.
    mistakes : tuple of Mistake
        In the order of the text, at most `limit` of them.
    n_mistakes : int
        Number of all mistakes.
    n_refused : int
        Number of lines with mistakes.
    is_exact : bool
        Whether `n_mistakes` counts every mistake; if not, some lines with mistakes were counted once.
    X, y, qid : csr_array, ndarray, ndarray or None
        The rows without mistakes, as `read_svmlight` returns them; X and y are None if there are no such rows.
    lines : ndarray
        The line number of each of these rows, from 1.
    zero_based : bool
        Whether indices were taken to count from 0.
    """

    name: str
    mistakes: tuple
    n_mistakes: int
    n_refused: int = 0
    is_exact: bool = True
    X: csr_array | None = None
    y: np.ndarray | None = None
    qid: np.ndarray | None = None
    lines: np.ndarray | None = None
    zero_based: bool = False


def check_svmlight(path_or_file, *, zero_based="auto", limit=None):
    """Find every mistake of SVM-light / LIBSVM text; `read_svmlight` accepts a text if and only if it has none.

    Parameters
    ----------
    path_or_file : str, path or file object
        As for `read_svmlight`.
    zero_based : "auto" or bool, default="auto"
        Whether indices count from 0 rather than from 1; with "auto" they count from 0 if index 0 occurs.
    limit : int, default=None
        Number of mistakes to list; further ones are only counted. None lists all.

    Returns
    -------
    checked : Checked
        The mistakes, and the rows without mistakes.
    """
    if not (isinstance(zero_based, bool) or zero_based == "auto"):
        raise ValueError(f'zero_based must be True, False or "auto", got {zero_based!r}.')
    try:
        name, data = load_bytes(path_or_file)
    except FormatError as error:  # damaged compression
        return Checked(error.path, (Mistake(None, None, error.rule),)[:limit], 1)
    mark, encoding = byte_order_mark(data)
    if encoding == "UTF-16":
        return Checked(name, (Mistake(1, 1, BYTE_ORDER_MARK_RULE.format(encoding)),)[:limit], 1)
    chunks = split_into_chunks(data[len(mark) :] if mark else data)
    expected = Expected(make_rules(data, chunks, zero_based), queries_set_by="most rows have")
    parts = run(parse_chunk, [(chunk, expected.rules) for chunk in chunks], n_jobs=-1)
    refused, rows = line_positions(parts, "refused", len(mark)), _join_chunks(parts, zero_based)
    found = [Mistake(1, 1, BYTE_ORDER_MARK_RULE.format(encoding))] if mark else []
    found, n_found, is_exact = _list_mistakes(data, refused, expected, found, limit)
    foreign = foreign_format(bytes(data[:HEAD_BYTES]), bool(rows)) if n_found else None
    if foreign is not None:
        found, n_found, is_exact = [Mistake(1, 1, foreign)], 1, True
    elif not rows and not n_found:
        found, n_found = [Mistake(None, None, "holds no rows")], 1
    return Checked(name, tuple(found[:limit]), n_found, len(refused), is_exact, **rows)


class ParsedChunk(NamedTuple):
    """The rows of a chunk that break no rule, and (start, number) of the good and the refused lines, from 0."""

    labels: np.ndarray
    queries: np.ndarray
    row_ends: np.ndarray
    indices: np.ndarray
    values: np.ndarray
    good: np.ndarray
    refused: np.ndarray
    n_bytes: int
    n_lines: int


def make_rules(data, chunks, zero_based="auto"):
    """Return the Rules for a text; rows must have queries if most rows have them, or in a tie if the first row has."""
    with_queries = False
    if data.find(b"qid:") >= 0:
        n_rows, n_queries = np.sum(run(count_queries, [(chunk,) for chunk in chunks], n_jobs=-1), axis=0)
        with_queries = starts_with_query(data) if 2 * n_queries == n_rows else 2 * n_queries > n_rows
    return Rules(
        lowest_index=int(zero_based is False),
        highest_index=LARGEST_INDEX,
        first_column=int(zero_based is not True),
        largest_value=_LARGEST_VALUE,
        with_queries=bool(with_queries),
    )


def parse_chunk(chunk, rules):
    """Parse the rows of a chunk that break no rule; return a ParsedChunk."""
    n_lines, n_colons = count_lines(chunk)
    max_entries = min(n_colons, len(chunk) // _BYTES_OF_SHORTEST_ENTRY)
    arrays = [np.empty(n_lines), np.empty(n_lines * rules.with_queries, np.int64), np.empty(n_lines, np.int64)]
    arrays += [np.empty(max_entries, np.int32), np.empty(max_entries)]
    good, refused = np.empty((n_lines, 2), np.int64), np.empty((n_lines, 2), np.int64)
    n_listed = _UNDECIDED_NUMBERS_LISTED
    while True:
        out = ParserOutput(*arrays, undecided=np.empty((n_listed, 2), np.int64), tally=np.empty(6, np.int64))
        with np.errstate(over="ignore"):  # integer overflow is intended; uncompiled code would warn
            n_refused = parse_good_rows(chunk, rules, out, good, refused)
        n_rows, n_entries, n_undecided = out.tally[[N_ROWS, N_ENTRIES, N_UNDECIDED]].tolist()
        if n_undecided <= n_listed:
            break
        n_listed = n_undecided
    too_large = _store_undecided(chunk, out, n_rows, n_undecided)
    rows = (out.labels[:n_rows], out.queries[:n_rows], out.row_ends[:n_rows])
    entries = (out.indices[:n_entries], out.values[:n_entries])
    part = ParsedChunk(*rows, *entries, good[:n_rows], refused[:n_refused].copy(), len(chunk), n_lines)
    return _refuse_rows(part, too_large) if too_large else part


def _store_undecided(chunk, out, n_rows, n_undecided):
    """Convert and store the undecided numbers; return the set of rows in which a number is too large."""
    too_large = set()
    for _, owner, value in convert_undecided(chunk, out.undecided[:n_undecided]):
        row = -1 - owner if owner < 0 else np.searchsorted(out.row_ends[:n_rows], owner, side="right")
        if abs(value) > _LARGEST_VALUE:
            too_large.add(int(row))
        elif owner < 0:
            out.labels[row] = value
        else:
            out.values[owner] = value
    return too_large


def _refuse_rows(part, rows):
    """Return a ParsedChunk in which the given rows are among the refused lines."""
    rows = sorted(rows)
    keep = np.ones(len(part.labels), bool)
    keep[rows] = False
    lengths = np.diff(part.row_ends, prepend=0)
    kept = np.repeat(keep, lengths)
    refused = np.concatenate([part.refused, part.good[rows]])
    return part._replace(
        labels=part.labels[keep],
        queries=part.queries[keep] if len(part.queries) else part.queries,
        row_ends=np.cumsum(lengths[keep]),
        indices=part.indices[kept],
        values=part.values[kept],
        good=part.good[keep],
        refused=refused[np.argsort(refused[:, 0])],
    )


def line_positions(parts, which, skipped=0):
    """Return (start in the text, number from 0) of the "good" or the "refused" lines of all chunks.

    `skipped` is the number of bytes before the first chunk.
    """
    found, start = [np.empty((0, 2), np.int64)], np.array([skipped, 0])
    for part in parts:
        found.append(getattr(part, which) + start)
        start += part.n_bytes, part.n_lines
    return np.concatenate(found)


def _list_mistakes(data, refused, expected, found, limit):
    """Append the mistakes of the refused lines to `found`; return (found, number of mistakes, whether it is exact)."""
    n_found, n_explained = len(found), 0
    for k, (start, number) in enumerate(refused.tolist()):
        line = line_at(data, start)
        before = start if number == 0 else 0  # in the first line, the length of a byte order mark
        for column, rule in mistakes(line, expected):
            if limit is None or n_found < limit:
                found.append(Mistake(number + 1, before + column, rule))
            elif n_explained + column > _EXPLAINED_BYTES:
                return found, n_found + len(refused) - k, False
            n_found += 1
        n_explained += len(line)
    return found, n_found, True


def line_at(data, start):
    """Return the line that starts at a position of a text, without its newline."""
    stop = data.find(b"\n", start)
    return data[start : stop if stop >= 0 else len(data)]


def _join_chunks(parts, zero_based):
    """Return the rows of all chunks as a dict of fields of Checked, which is empty if there are no rows."""
    y = np.concatenate([part.labels for part in parts]) if parts else np.empty(0)
    if len(y) == 0:
        return {}
    ends = [part.row_ends for part in parts]
    before = np.cumsum([0, *(len(part.indices) for part in parts)])
    indptr = np.concatenate([[0], *(end + start for end, start in zip(ends, before[:-1], strict=True))])
    indices = np.concatenate([part.indices for part in parts])
    if zero_based == "auto":
        zero_based = len(indices) > 0 and int(indices.min()) < 0
        indices += zero_based  # they were parsed as if they counted from 1
    n_features = int(indices.max()) + 1 if len(indices) else 0
    X = csr_array((np.concatenate([part.values for part in parts]), indices, indptr), shape=(len(y), n_features))
    X.has_canonical_format = True  # the parser accepts ascending indices only
    queries = np.concatenate([part.queries for part in parts])
    lines = line_positions(parts, "good")[:, 1] + 1
    return {"X": X, "y": y, "qid": queries if len(queries) else None, "lines": lines, "zero_based": zero_based}
