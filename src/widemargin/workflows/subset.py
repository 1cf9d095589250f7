"""`subset_file`: copy a random subset of the lines of a data file to one file, and the other lines to another."""

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
from widemargin.workflows.block_files import block_paths
from widemargin.workflows.block_rows import BlockRows
from widemargin.workflows.errors import ArgumentError, FileError, FileNote, spelled
from widemargin.workflows.files import AnyPath, Source, as_path, as_source, check_target, name_of, naming
from widemargin.workflows.result_text import columns

_SAMPLERS = {"stratified": stratified_rows, "random": random_rows}
_MAX_CLASSES_SHOWN = 8


@dataclass(frozen=True, eq=False)
class FileSubset:
    """The result of `subset_file`; `str` gives the lines that `widemargin subset` prints.

    Attributes
    ----------
    chosen : ndarray of int
        The numbers of the rows in the subset, counted from 0, ascending.
    facts : dict
        Numbers of "rows", and of those in "subset" and "rest"; "seed" and "method"; "classes" with their counts, and
        "queries" and "queries_in_subset", if there are any; "lines_left_out", the number of blank lines and comments.
    """

    chosen: np.ndarray
    facts: dict

    def to_dict(self) -> dict[str, Any]:
        """Return the facts as a dict that can be written as JSON."""
        return dict(self.facts)

    def __str__(self) -> str:
        facts = self.facts
        words = {"subset": f"{facts['subset']} of {facts['rows']} rows, {facts['method']}, seed {facts['seed']}"}
        if "classes" in facts:
            classes = facts["classes"][:_MAX_CLASSES_SHOWN]
            shown = [f"{one['label']} ({one['subset']} of {one['rows']})" for one in classes]
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
    text: bool = False,
) -> FileSubset:
    """Write a random subset of the rows of a file to one file, and the other rows to another if it is named.

    This is the function of `widemargin subset`. Lines are copied byte for byte, in the order of the file; blank
    lines and lines with only a comment are left out. Rows of a row-block file are written as row-block files, in the
    order of the file, or as text; memory does not grow with their number.

    Parameters
    ----------
    data : path or binary file object
        The rows as SVM-light / LIBSVM text, plain or compressed; "-" is standard input. Or a row-block file,
        recognised by its content.
    number : int or float
        Size of the subset: an int >= 1 is a number of rows, a float > 0 and <= 1 is a fraction of the rows.
    subset : path
        The file of the subset, compressed if its name ends with .gz, .bz2, .xz or .zst; "-" is standard output.
    rest : path, default=None
        The file of the other rows; with None they are not written.
    method : {"stratified", "random"}, default=None
        "stratified", the default, keeps the distribution of the labels; "random" does not consider them.
    by_query : bool, default=False
        Whether to take whole queries (qid) at random, with about `number` rows; labels are not considered.
    seed : int, default=0
        Seed of the random choice.
    text : bool, default=False
        Whether rows of a row-block file are written as text, for what needs all rows in memory: kernel machines, grid
        search, cross-validation, reports. Weights of rows are left out.

    Returns
    -------
    FileSubset
        Has `chosen`, the rows of the subset; `print` shows a summary.

    Raises
    ------
    FormatError
        If the file breaks a rule of its format.
    ValueError
        If the file has too few rows, or arguments contradict each other.
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
    paths = block_paths(data)
    if paths is not None:
        lines = BlockRows(paths, as_text=text)
    elif text:
        raise ArgumentError(f"{spelled('text=True')} is for row-block files, {name_of(data)} is text; leave it out")
    else:
        with naming("standard input" if data == "-" else name_of(data)):
            lines = read_lines(sys.stdin.buffer if data == "-" else data)
    method = "queries" if by_query else method or "stratified"
    chosen = _choose(lines, number, name_of(data), method, seed)
    _write(lines, chosen, (subset, rest))
    return FileSubset(chosen, _facts(lines, chosen, method, seed))


def _check_arguments(number, method, by_query):
    """Raise an ArgumentError if `number` is not valid, or if arguments contradict each other."""
    is_count = isinstance(number, (int, np.integer)) and not isinstance(number, bool) and number >= 1
    if not (is_count or (isinstance(number, float) and 0 < number <= 1)):
        raise ArgumentError(f"number must be an int >= 1, or a float > 0 and <= 1, got {number!r}")
    if by_query and method is not None:
        queries, other = spelled("by_query=True"), spelled("method of a subset")
        raise ArgumentError(f"{queries} takes queries at random, whatever their labels; leave {other} out")
    if method not in (None, *_SAMPLERS):
        raise ArgumentError(f"method must be 'stratified', 'random' or None, got {method!r}")


def _check_targets(data, subset, rest):
    """Raise an error if an output file cannot be written, or if both are the same file."""
    for target in (subset, rest):
        if target is not None:
            check_target(target, data)
    if rest is not None and os.path.realpath(subset) == os.path.realpath(rest):
        raise ArgumentError(f"{spelled('subset')} and {spelled('rest')} are both {subset}; name two files")


def _choose(lines, number, name, method, seed):
    """Return the numbers of the rows in the subset."""
    n_rows, queries = len(lines.labels), spelled("by_query=True")
    if isinstance(number, float):
        number = max(1, math.floor(number * n_rows + 0.5))
    if number > n_rows:
        raise FileError(f"{name}: {number} rows are wanted, there are {n_rows}; ask for fewer")
    if method != "queries":
        if lines.queries is not None:
            warn_caller(f"{name} has queries (qid), which are torn apart; {queries} keeps them whole", FileNote)
        return _SAMPLERS[method](lines.labels, number, seed)
    if lines.queries is None:
        raise FileError(f"{name}: there is no qid for {queries}; leave it out")
    return query_rows(lines.queries, number, seed)


def _write(lines, chosen, targets):
    """Write the chosen rows to the first target, and the other rows to the second one unless it is None."""
    others = np.ones(len(lines.labels), bool)
    others[chosen] = False
    for target, rows in zip(targets, (chosen, np.flatnonzero(others)), strict=True):
        if isinstance(lines, BlockRows):
            if target is not None:
                lines.write(rows, target)
        elif target == "-":
            sys.stdout.buffer.writelines(lines.copy(rows))
            sys.stdout.buffer.flush()
        elif target is not None:
            with naming(target), replacing(target) as file, open_compressed(file, target) as packed:
                packed.writelines(lines.copy(rows))


def _facts(lines, chosen, method, seed):
    """Return the facts about a subset."""
    n_rows = len(lines.labels)
    facts = {"rows": n_rows, "subset": len(chosen), "rest": n_rows - len(chosen), "seed": seed, "method": method}
    if are_classes(lines.labels):
        facts["classes"] = _tally(lines.labels, chosen, getattr(lines, "names", None))
    if lines.queries is not None:
        facts["queries"] = len(np.unique(lines.queries))
        facts["queries_in_subset"] = len(np.unique(lines.queries[chosen]))
    facts["lines_left_out"] = lines.n_others
    return facts


def _tally(labels, chosen, names=None):
    """Return the number of rows and of chosen rows of each class; `names` are those of labels that are words."""
    classes, group, counts = np.unique(labels, return_inverse=True, return_counts=True)
    taken = np.bincount(group[chosen], minlength=len(classes))
    shown = classes.astype(np.int64).tolist()
    shown = shown if names is None else [names[number] for number in shown]
    columns_of_classes = shown, counts.tolist(), taken.tolist()
    return [{"label": label, "rows": n, "subset": k} for label, n, k in zip(*columns_of_classes, strict=True)]
