"""The lines of SVM-light text with their labels, queries and positions, so that lines can be copied unchanged."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from widemargin._runtime.threads import run
from widemargin.data.svmlight.checker import line_at, line_positions, make_rules, parse_chunk
from widemargin.data.svmlight.mistakes import HEAD_BYTES, Expected, explain, foreign_format
from widemargin.data.svmlight.reader import load_text, split_into_chunks
from widemargin.errors import FormatError


@dataclass(frozen=True)
class TextLines:
    """Rows of SVM-light text. An uncompressed file is memory-mapped; only the arrays below are in memory.

    Attributes
    ----------
    labels : ndarray of shape (n_rows,), float64
        The labels.
    queries : ndarray of shape (n_rows,), int64, or None
        The queries, if the rows have any.
    starts : ndarray of shape (n_rows,), int64
        Byte offsets of the lines of the rows in the text.
    n_others : int
        Number of lines without a row: blank lines, and lines with a comment only.
    text : bytes or memory map
        The complete text, decompressed.
    """

    labels: np.ndarray
    queries: np.ndarray | None
    starts: np.ndarray
    n_others: int
    text: Any

    def copy(self, rows):
        """Yield the lines of some rows as bytes, unchanged; a newline is added to the last line if it has none."""
        for start in self.starts[rows].tolist():
            stop = self.text.find(b"\n", start) + 1
            yield self.text[start:stop] if stop else self.text[start:] + b"\n"


def read_lines(path_or_file):
    """Find the rows of SVM-light / LIBSVM text.

    Parameters
    ----------
    path_or_file : str, path or file object
        As for `read_svmlight`.

    Returns
    -------
    lines : TextLines
        Labels, queries and positions of the rows.

    Raises
    ------
    FormatError
        At the first place where the file breaks a rule of the format.
    """
    name, text = load_text(path_or_file)
    chunks = split_into_chunks(text)
    rules = make_rules(text, chunks)
    parts = run(_parse_lines, [(chunk, rules) for chunk in chunks], n_jobs=-1)
    refused, good = line_positions(parts, "refused"), line_positions(parts, "good")
    if len(refused):
        start, number = refused[0].tolist()
        foreign = foreign_format(bytes(text[:HEAD_BYTES]), len(good) > 0)
        if foreign is not None:
            raise FormatError(name, foreign, 1, 1)
        column, rule = explain(line_at(text, start), Expected(rules, queries_set_by="most rows have"))
        raise FormatError(name, rule, number + 1, column)
    if len(good) == 0:
        raise FormatError(name, "holds no rows")
    labels, queries = (np.concatenate([getattr(part, field) for part in parts]) for field in ("labels", "queries"))
    n_others = sum(part.n_lines for part in parts) - len(good)
    return TextLines(labels, queries if rules.with_queries else None, good[:, 0].copy(), n_others, text)


def _parse_lines(chunk, rules):
    """Parse a chunk and keep labels, queries and positions of lines, but not the entries."""
    part = parse_chunk(chunk, rules)
    return part._replace(indices=part.indices[:0].copy(), values=part.values[:0].copy(), row_ends=part.row_ends[:0])
