"""`subset_file`: some of the rows of a data file, and the others apart; lines are copied as they are."""

import math
import os
import sys
from dataclasses import dataclass
from typing import Any

import numpy as np

from widemargin._runtime.atomic_file import replacing
from widemargin._runtime.warning import warn_caller
from widemargin.data.sampling import query_rows, random_rows, stratified_rows
from widemargin.data.summary import are_classes
from widemargin.data.svmlight.compression import open_compressed
from widemargin.data.svmlight.lines import read_lines
from widemargin.workflows.columns import columns
from widemargin.workflows.errors import ArgumentError, FileError, FileNote
from widemargin.workflows.files import AnyPath, Source, as_path, as_source, check_target, name_of, naming
from widemargin.workflows.spelling import spelled

_CHOICES = {"stratified": stratified_rows, "random": random_rows}
_SHOWN_CLASSES = 8


@dataclass(frozen=True, eq=False)
class FileSubset:
    """The rows that `subset_file` took; `str` gives the lines that `widemargin subset` prints.

    Attributes
    ----------
    chosen : ndarray of int
        The rows taken, counted from 0, in the order of the file.
    facts : dict
        "rows", and how many are in "subset" and "rest"; "seed", "method"; "classes" with their counts, "queries" and
        "queries_in_subset" where there are such; "lines_left_out", which are blank or comments.
    """

    chosen: np.ndarray
    facts: dict

    def to_dict(self) -> dict[str, Any]:
        """Return the facts for JSON."""
        return dict(self.facts)

    def __str__(self) -> str:
        facts = self.facts
        words = {"subset": f"{facts['subset']} of {facts['rows']} rows, {facts['method']}, seed {facts['seed']}"}
        if "classes" in facts:
            shown = [f"{one['label']} ({one['subset']} of {one['rows']})" for one in facts["classes"][:_SHOWN_CLASSES]]
            words["labels"] = ", ".join(shown) + (", ..." if len(facts["classes"]) > len(shown) else "")
        if "queries" in facts:
            words["queries"] = f"{facts['queries_in_subset']} of {facts['queries']}"
        if facts["lines_left_out"]:
            words["left out"] = f"{facts['lines_left_out']} lines that are blank or comments"
        return columns(words)


def subset_file(
    data: Source,
    number: float,
    subset: AnyPath,
    rest: AnyPath | None = None,
    *,
    method: str | None = None,
    by_query: bool = False,
    seed: int = 0,
) -> FileSubset:
    """Take some of the rows of a file at random, and write them to another, the others to a third if it is named.

    It is what `widemargin subset` does. Lines are copied byte for byte, in their order; blank lines and comments of
    their own are left out.

    Parameters
    ----------
    data : path or binary file object
        SVM-light / LIBSVM text, plain or compressed; "-" is standard input.
    number : int or float
        How many rows: a count, an int from 1 on, or a fraction of the rows, a float above 0 and at most 1.
    subset : path
        Where the rows go, compressed if the name ends with .gz, .bz2, .xz or .zst; "-" is standard output.
    rest : path, default=None
        Where the other rows go; None is nowhere.
    method : {"stratified", "random"}, default=None
        "stratified" (the default): labels in the same proportion; "random": whatever they are.
    by_query : bool, default=False
        Take whole queries (qid) at random, about `number` rows, whatever their labels.
    seed : int, default=0
        The same seed gives the same rows.

    Returns
    -------
    FileSubset
        With `chosen`, the rows taken; it prints itself.

    Raises
    ------
    FormatError
        If the file breaks a rule of its format.
    ValueError
        If there are not so many rows, or arguments contradict each other.
    OSError
        If a file cannot be read or written.

    Examples
    --------
    >>> from widemargin import read_svmlight, subset_file, write_svmlight
    >>> write_svmlight("ten", [[float(i)] for i in range(1, 11)], [1, -1] * 5)
    >>> taken = subset_file("ten", 0.4, "four", "six")
    >>> len(taken.chosen), sorted(read_svmlight("four")[1].tolist()), read_svmlight("six")[0].shape
    (4, [-1.0, -1.0, 1.0, 1.0], (6, 1))
    """
    data, subset, rest = as_source(data), as_path(subset), as_path(rest)
    _check_arguments(number, method, by_query)
    _check_targets(data, subset, rest)
    with naming("standard input" if data == "-" else name_of(data)):
        lines = read_lines(sys.stdin.buffer if data == "-" else data)
    method = "queries" if by_query else method or "stratified"
    chosen = _choose(lines, number, name_of(data), method, seed)
    _write(lines, chosen, (subset, rest))
    return FileSubset(chosen, _facts(lines, chosen, method, seed))


def _check_arguments(number, method, by_query):
    """Refuse a number of rows that is none, and arguments that contradict each other."""
    is_count = isinstance(number, (int, np.integer)) and not isinstance(number, bool) and number >= 1
    if not (is_count or (isinstance(number, float) and 0 < number <= 1)):
        raise ArgumentError(f"number must be an int >= 1, or a float > 0 and <= 1, got {number!r}")
    if by_query and method is not None:
        queries, other = spelled("by_query=True"), spelled("method of a subset")
        raise ArgumentError(f"{queries} takes queries at random, whatever their labels; leave {other} out")
    if method not in (None, *_CHOICES):
        raise ArgumentError(f"method must be 'stratified', 'random' or None, got {method!r}")


def _check_targets(data, subset, rest):
    """Refuse what cannot be written, or would be twice."""
    for target in (subset, rest):
        if target is not None:
            check_target(target, data)
    if rest is not None and os.path.realpath(subset) == os.path.realpath(rest):
        raise ArgumentError(f"{spelled('subset')} and {spelled('rest')} are both {subset}; name two files")


def _choose(lines, number, name, method, seed):
    """Return the rows of the subset."""
    n_rows, queries = len(lines.labels), spelled("by_query=True")
    if isinstance(number, float):
        number = max(1, math.floor(number * n_rows + 0.5))
    if number > n_rows:
        raise FileError(f"{name}: {number} rows are wanted, there are {n_rows}; ask for fewer")
    if method != "queries":
        if lines.queries is not None:
            warn_caller(f"{name} has queries (qid), which are torn apart; {queries} keeps them whole", FileNote)
        return _CHOICES[method](lines.labels, number, seed)
    if lines.queries is None:
        raise FileError(f"{name}: there is no qid for {queries}; leave it out")
    return query_rows(lines.queries, number, seed)


def _write(lines, chosen, targets):
    """Write the rows chosen to the first target and the others to the second, unless it is None."""
    others = np.ones(len(lines.labels), bool)
    others[chosen] = False
    for target, rows in zip(targets, (chosen, np.flatnonzero(others)), strict=True):
        if target == "-":
            sys.stdout.buffer.writelines(lines.copy(rows))
            sys.stdout.buffer.flush()
        elif target is not None:
            with naming(target), replacing(target) as file, open_compressed(file, target) as packed:
                packed.writelines(lines.copy(rows))


def _facts(lines, chosen, method, seed):
    """Return what was taken."""
    n_rows = len(lines.labels)
    facts = {"rows": n_rows, "subset": len(chosen), "rest": n_rows - len(chosen), "seed": seed, "method": method}
    if are_classes(lines.labels):
        facts["classes"] = _tally(lines.labels, chosen)
    if lines.queries is not None:
        facts["queries"] = len(np.unique(lines.queries))
        facts["queries_in_subset"] = len(np.unique(lines.queries[chosen]))
    facts["lines_left_out"] = lines.n_others
    return facts


def _tally(labels, chosen):
    """Return how many rows each class has, and how many of them are chosen."""
    classes, group, counts = np.unique(labels, return_inverse=True, return_counts=True)
    taken = np.bincount(group[chosen], minlength=len(classes))
    columns_of_classes = classes.astype(np.int64).tolist(), counts.tolist(), taken.tolist()
    return [{"label": label, "rows": n, "subset": k} for label, n, k in zip(*columns_of_classes, strict=True)]
