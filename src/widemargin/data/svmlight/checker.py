"""All mistakes of a file of SVM-light text, and the rows that have none.

The text is parsed in chunks by threads, as `read_svmlight` parses it, but the compiled code goes on after a line that
breaks a rule. The lines it refused, usually few, are then read again by Python, slowly, for every mistake they hold. If
more are refused than are listed, those after the first `_EXPLAINED_BYTES` are not read again and count once each.
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
    Place,
    Rules,
    count_lines,
    count_queries,
    parse_good_rows,
)
from widemargin.data.svmlight.reader import MARKED, byte_order_mark, cut, decided, load_bytes, starts_with_query
from widemargin.errors import FormatError

_EXPLAINED_BYTES = 1 << 23  # about two seconds' work
_SHORTEST_ENTRY = 4  # a blank, a digit, a colon, a digit
_LARGEST = float(np.finfo(np.float64).max)
_LISTED_UNDECIDED = 64


class Mistake(NamedTuple):
    """A rule of the format that a file breaks, and where, both counted from 1; None where a place makes no sense."""

    line: int | None
    column: int | None
    rule: str


@dataclass(frozen=True)
class Checked:
    """What `check_svmlight` found.

    Attributes
    ----------
    name : str
        The file, or `<stream>`.
    mistakes : tuple of Mistake
        In the order of the text, at most as many as asked for.
    n_mistakes : int
        How many there are.
    n_refused : int
        How many lines they are in.
    is_exact : bool
        Whether `n_mistakes` counts every one; if not, lines far behind count once each.
    X, y, qid : csr_array, ndarray, ndarray or None
        The rows without mistakes, as `read_svmlight` returns them; X and y are None if there is no such row.
    lines : ndarray
        The line of each of these rows, from 1.
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
    """Find every mistake of SVM-light / LIBSVM text; a text without one is read by `read_svmlight`, any other refused.

    Parameters
    ----------
    path_or_file : str, path or file object
        As for `read_svmlight`.
    zero_based : "auto" or bool, default="auto"
        Whether indices count from 0 rather than from 1; "auto" says so if index 0 occurs.
    limit : int, default=None
        How many mistakes to list; the others are counted. None lists all.

    Returns
    -------
    checked : Checked
        The mistakes, and the rows that have none.
    """
    if not (isinstance(zero_based, bool) or zero_based == "auto"):
        raise ValueError(f'zero_based must be True, False or "auto", got {zero_based!r}.')
    try:
        name, data = load_bytes(path_or_file)
    except FormatError as error:  # damaged compression
        return Checked(error.path, (Mistake(None, None, error.rule),)[:limit], 1)
    mark, encoding = byte_order_mark(data)
    if encoding == "UTF-16":
        return Checked(name, (Mistake(1, 1, MARKED.format(encoding)),)[:limit], 1)
    chunks = cut(data[len(mark) :] if mark else data)
    expected = Expected(make_rules(data, chunks, zero_based), norm="most rows have")
    parts = run(parse_chunk, [(chunk, expected.rules) for chunk in chunks], n_jobs=-1)
    refused, rows = places(parts, "refused", len(mark)), _join(parts, zero_based)
    found = [Mistake(1, 1, MARKED.format(encoding))] if mark else []
    found, n_found, is_exact = _list_mistakes(data, refused, expected, found, limit)
    foreign = foreign_format(bytes(data[:HEAD_BYTES]), bool(rows)) if n_found else None
    if foreign is not None:
        found, n_found, is_exact = [Mistake(1, 1, foreign)], 1, True
    elif not rows and not n_found:
        found, n_found = [Mistake(None, None, "holds no rows")], 1
    return Checked(name, tuple(found[:limit]), n_found, len(refused), is_exact, **rows)


class Part(NamedTuple):
    """What became of a chunk: the rows that break no rule, and where its lines are, as (start, number) from 0."""

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
    """State what a row may hold; whether rows have queries is what most rows say, and of equally many the first."""
    with_queries = False
    if data.find(b"qid:") >= 0:
        n_rows, n_queries = np.sum(run(count_queries, [(chunk,) for chunk in chunks], n_jobs=-1), axis=0)
        with_queries = starts_with_query(data) if 2 * n_queries == n_rows else 2 * n_queries > n_rows
    return Rules(
        lowest_index=int(zero_based is False),
        highest_index=LARGEST_INDEX,
        first_column=int(zero_based is not True),
        largest_value=_LARGEST,
        with_queries=bool(with_queries),
    )


def parse_chunk(chunk, rules):
    """Parse the rows of a chunk that break no rule; return them as a Part."""
    n_lines, n_colons = count_lines(chunk)
    room = min(n_colons, len(chunk) // _SHORTEST_ENTRY)
    arrays = [np.empty(n_lines), np.empty(n_lines * rules.with_queries, np.int64), np.empty(n_lines, np.int64)]
    arrays += [np.empty(room, np.int32), np.empty(room)]
    good, refused = np.empty((n_lines, 2), np.int64), np.empty((n_lines, 2), np.int64)
    n_listed = _LISTED_UNDECIDED
    while True:
        place = Place(*arrays, undecided=np.empty((n_listed, 2), np.int64), tally=np.empty(6, np.int64))
        with np.errstate(over="ignore"):  # uncompiled, integers that are meant to wrap would warn
            n_refused = parse_good_rows(chunk, rules, place, good, refused)
        n_rows, n_entries, n_undecided = place.tally[[N_ROWS, N_ENTRIES, N_UNDECIDED]].tolist()
        if n_undecided <= n_listed:
            break
        n_listed = n_undecided
    too_large = _decide(chunk, place, n_rows, n_undecided)
    rows = (place.labels[:n_rows], place.queries[:n_rows], place.row_ends[:n_rows])
    part = Part(*rows, place.indices[:n_entries], place.values[:n_entries], good[:n_rows], refused[:n_refused].copy(),
                len(chunk), n_lines)  # fmt: skip
    return _without(part, too_large) if too_large else part


def _decide(chunk, place, n_rows, n_undecided):
    """Put the numbers that the parser left to Python in their places; return the rows in which one is too large."""
    too_large = set()
    for _, owner, value in decided(chunk, place.undecided[:n_undecided]):
        row = -1 - owner if owner < 0 else np.searchsorted(place.row_ends[:n_rows], owner, side="right")
        if abs(value) > _LARGEST:
            too_large.add(int(row))
        elif owner < 0:
            place.labels[row] = value
        else:
            place.values[owner] = value
    return too_large


def _without(part, rows):
    """Return a Part in which some of the rows are refused after all."""
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


def places(parts, which, skipped=0):
    """Return (start in the text, number from 0) of the "good" or the "refused" lines of all parts."""
    found, start = [np.empty((0, 2), np.int64)], np.array([skipped, 0])
    for part in parts:
        found.append(getattr(part, which) + start)
        start += part.n_bytes, part.n_lines
    return np.concatenate(found)


def _list_mistakes(data, refused, expected, found, limit):
    """Return the mistakes of all refused lines after those found before: (list, number, whether it is exact)."""
    n_found, n_explained = len(found), 0
    for k, (start, number) in enumerate(refused.tolist()):
        line = line_at(data, start)
        before = start if number == 0 else 0  # a byte order mark
        for column, rule in mistakes(line, expected):
            if limit is None or n_found < limit:
                found.append(Mistake(number + 1, before + column, rule))
            elif n_explained + column > _EXPLAINED_BYTES:
                return found, n_found + len(refused) - k, False
            n_found += 1
        n_explained += len(line)
    return found, n_found, True


def line_at(data, start):
    """Return the line that starts at a place of a text, without its newline."""
    stop = data.find(b"\n", start)
    return data[start : stop if stop >= 0 else len(data)]


def _join(parts, zero_based):
    """Return the rows of all parts as fields of Checked; nothing if there is no row."""
    y = np.concatenate([part.labels for part in parts]) if parts else np.empty(0)
    if len(y) == 0:
        return {}
    ends = [part.row_ends for part in parts]
    before = np.cumsum([0, *(len(part.indices) for part in parts)])
    indptr = np.concatenate([[0], *(end + start for end, start in zip(ends, before[:-1], strict=True))])
    indices = np.concatenate([part.indices for part in parts])
    if zero_based == "auto":
        zero_based = len(indices) > 0 and int(indices.min()) < 0
        indices += zero_based  # parsed as if from 1
    n_features = int(indices.max()) + 1 if len(indices) else 0
    X = csr_array((np.concatenate([part.values for part in parts]), indices, indptr), shape=(len(y), n_features))
    X.has_canonical_format = True  # indices increase in each row: the parser saw to it
    queries = np.concatenate([part.queries for part in parts])
    lines = places(parts, "good")[:, 1] + 1
    return {"X": X, "y": y, "qid": queries if len(queries) else None, "lines": lines, "zero_based": zero_based}
