"""`check_file`: all defects of a data file, a summary of its rows, and warnings about what looks wrong."""

import sys
from dataclasses import asdict, dataclass
from typing import Any

from widemargin.data.quality_warnings import QualityWarning, quality_warnings, shown
from widemargin.data.summary import Summary, summarise
from widemargin.data.svmlight.checker import Mistake, check_svmlight
from widemargin.workflows.block_checks import check_blocks
from widemargin.workflows.block_files import block_paths, name_of_files, refuse_options_of_text
from widemargin.workflows.files import Source, as_source, name_of, naming
from widemargin.workflows.result_text import columns, count

_MAX_CLASSES_SHOWN = 8


@dataclass(frozen=True)
class FileCheck:
    """The result of `check_file`; `str` gives the lines that `widemargin check` prints.

    Attributes
    ----------
    name : str
        The name of the file.
    defects : tuple of (line, column, rule)
        The rules of the format that the file breaks, and where, in the order of the file; at most `limit` of them.
        Lines and columns are counted from 1, columns in bytes; they are None for a defect that has no position.
    n_defects : int
        The number of defects.
    n_defects_is_exact : bool
        Whether `n_defects` is exact; otherwise it is a lower bound.
    n_lines_refused : int
        The number of lines with defects.
    summary : Summary or None
        A summary of the rows without defects: `n_rows`, `n_features`, `density`, `labels`, `queries` and others; None
        if there are no such rows.
    warnings : tuple of (kind, message, remedy)
        Warnings about data that are valid but look wrong, each with a remedy; the most serious first.
    """

    name: str
    defects: tuple[Mistake, ...]
    n_defects: int
    n_defects_is_exact: bool
    n_lines_refused: int
    summary: Summary | None
    warnings: tuple[QualityWarning, ...]

    @property
    def defect_lines(self) -> str:
        """A line for each defect in `defects`, and one with the number of further defects; empty if there are none."""
        lines = []
        for line, column, rule in self.defects:
            place = ":".join(str(part) for part in (self.name, line, column) if part is not None)
            lines.append(f"{place}: {rule}")
        n_more = self.n_defects - len(self.defects)
        if n_more:
            lines.append(f"... and {self._at_least}{n_more} more")
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Return the result as a dict that can be written as JSON."""
        return {
            "defects": [{"line": line, "column": column, "message": rule} for line, column, rule in self.defects],
            "n_defects": self.n_defects,
            "n_defects_is_exact": self.n_defects_is_exact,
            "summary": None if self.summary is None else _as_lists(asdict(self.summary)),
            "suspicions": [
                {"kind": kind, "message": message, "cure": remedy} for kind, message, remedy in self.warnings
            ],
        }

    def __str__(self) -> str:
        parts = [self.defect_lines] if self.n_defects else []
        if self.summary is not None:
            parts.append(columns(_facts(self)))
        parts += [f"{self.name}: warning: {warning}" for warning in self.warnings]
        defects = f"{self._at_least}{count(self.n_defects, 'defect')}"
        return "\n".join([*parts, f"{defects}, {count(len(self.warnings), 'warning')}"])

    @property
    def _at_least(self) -> str:
        return "" if self.n_defects_is_exact else "at least "


def check_file(
    data: Source, *, limit: int | None = 100, task: str | None = None, zero_based: str | bool = "auto"
) -> FileCheck:
    """List all defects of a data file, summarise its rows, and warn about what looks wrong.

    This is the function of `widemargin check`. A file with defects does not raise an exception here, but it does in
    `read_svmlight`, `train_file` and the other functions.

    Parameters
    ----------
    data : path or binary file object
        The file, plain or compressed (gzip, bzip2, xz, zstandard); "-" is standard input. Or a row-block file,
        recognised by its content: each block is compared with its checksum. Of a large one, the summary of features and
        repeated rows is that of the first rows, and features are counted from 1.
    limit : int or None, default=100
        Largest number of defects to list; the others are only counted. None lists all of them.
    task : {"classification", "regression"}, default=None
        Whether labels are classes or regression targets; None infers it from the labels.
    zero_based : {"auto", True, False}, default="auto"
        Of text, whether indices count from 0; "auto" is True if index 0 occurs.

    Returns
    -------
    FileCheck
        Has `defects`, `summary` and `warnings`; `print` shows them.

    Raises
    ------
    OSError
        If the file cannot be read.
    ValueError
        If an argument is wrong.

    Examples
    --------
    >>> import io
    >>> from widemargin import check_file
    >>> found = check_file(io.BytesIO(b"1 1:0.5\\n-1 1:x\\n"))
    >>> found.n_defects, found.summary.n_rows
    (1, 1)
    """
    if task not in (None, "classification", "regression"):
        raise ValueError(f"task must be 'classification', 'regression' or None, got {task!r}.")
    source = as_source(data)
    paths = block_paths(source)
    if paths is not None:
        refuse_options_of_text(paths, {"zero_based": zero_based != "auto"})
        return _check_blocks(paths, limit, task)
    with naming("standard input" if source == "-" else name_of(source)):
        checked = check_svmlight(sys.stdin.buffer if source == "-" else source, zero_based=zero_based, limit=limit)
    summary, warnings = None, []
    if checked.X is not None:
        first_index = 0 if checked.zero_based else 1
        summary = summarise(checked.X, checked.y, checked.qid, task=task, first_index=first_index, lines=checked.lines)
        warnings = quality_warnings(summary, source if isinstance(source, str) and source != "-" else "DATA", task)
    defects = checked.mistakes, checked.n_mistakes, checked.is_exact, checked.n_refused
    return FileCheck(checked.name, *defects, summary, tuple(warnings))


def _check_blocks(paths, limit, task):
    """Return the FileCheck of row-block files."""
    defects, n_refused, summary = check_blocks(paths, task)
    name = name_of_files(paths)
    warnings = [] if summary is None else quality_warnings(summary, name, task)
    return FileCheck(name, tuple(defects[:limit]), len(defects), True, n_refused, summary, tuple(warnings))


def _as_lists(fact):
    """Return a value with a list in place of every tuple, within dicts and tuples too."""
    if isinstance(fact, dict):
        return {name: _as_lists(inner) for name, inner in fact.items()}
    return [_as_lists(inner) for inner in fact] if isinstance(fact, tuple) else fact


def _facts(found):
    """Return the summary as a dict of texts."""
    summary = found.summary
    features, repeats = summary.features, summary.repeats
    refused = f" (and {count(found.n_lines_refused, 'line')} with defects)" if found.n_lines_refused else ""
    zeros = f", {summary.n_zeros} of them zeros" if summary.n_zeros else ""
    facts = {
        "rows": f"{summary.n_rows}{refused}",
        "features": f"{summary.n_features}, counted from {summary.first_index}",
        "entries": f"{summary.n_entries}, {100 * summary.density:.4g}% of all{zeros}",
        "labels": _label_words(summary.labels),
    }
    if summary.queries is not None:
        queries = summary.queries
        sizes = f"{queries.smallest} to {queries.largest} rows, median {queries.median:g}"
        facts["queries"] = f"{queries.n_queries} of {sizes}"
    if features.n_constant:
        facts["constant"] = f"{count(features.n_constant, 'feature')}: {shown(features.constant, features.n_constant)}"
    if features.n_absent:
        facts["absent"] = f"{count(features.n_absent, 'feature')}: {shown(features.absent, features.n_absent)}"
    if summary.n_empty:
        facts["empty"] = count(summary.n_empty, "row")
    if repeats.n_repeats:
        facts["repeated"] = count(repeats.n_repeats, "row")
    if repeats.n_conflicts:
        facts["disputed"] = f"{count(repeats.n_conflicts, 'row')} with the same values but different labels"
    return facts


def _label_words(labels):
    """Return a text about the distribution of the labels."""
    if labels.classes is None:
        ends = f"from {labels.smallest:g} to {labels.largest:g}"
        return f"{labels.n_distinct} distinct, {ends}, mean {labels.mean:g}, standard deviation {labels.spread:g}"
    counts = [f"{name} ({count})" for name, count in labels.classes]
    kept = counts if len(counts) <= _MAX_CLASSES_SHOWN else counts[: _MAX_CLASSES_SHOWN - 1]
    return f"{count(len(counts), 'class', 'classes')}: {shown(kept, len(counts))}"
