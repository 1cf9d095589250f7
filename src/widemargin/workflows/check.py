"""`check_file`: every mistake of a data file, then what is worth knowing about its rows and what looks wrong."""

import sys
from dataclasses import asdict, dataclass
from typing import Any

from widemargin.data.quality_warnings import Suspicion, shown, suspicions
from widemargin.data.summary import Summary, summarise
from widemargin.data.svmlight.checker import Mistake, check_svmlight
from widemargin.workflows.columns import columns, count
from widemargin.workflows.files import Source, as_source, name_of, naming

_SHOWN_CLASSES = 8


@dataclass(frozen=True)
class FileCheck:
    """What `check_file` found; `str` gives the lines that `widemargin check` prints.

    Attributes
    ----------
    name : str
        The file.
    defects : tuple of (line, column, rule)
        Rules of the format that the file breaks and where, in the order of the text, at most as many as asked for;
        line and column, in bytes, count from 1, and are None where a place makes no sense.
    n_defects : int
        How many there are.
    n_defects_is_exact : bool
        Whether `n_defects` counts every one; if not, there are at least so many.
    n_lines_refused : int
        How many lines have defects.
    summary : Summary or None
        Of the rows without defects: `n_rows`, `n_features`, `density`, `labels`, `queries` and more; None if there is
        no such row.
    suspicions : tuple of (kind, message, cure)
        What breaks no rule but looks wrong, the gravest first.
    """

    name: str
    defects: tuple[Mistake, ...]
    n_defects: int
    n_defects_is_exact: bool
    n_lines_refused: int
    summary: Summary | None
    suspicions: tuple[Suspicion, ...]

    @property
    def defect_lines(self) -> str:
        """A line for each defect listed, and one that tells how many more there are; empty if there is none."""
        lines = []
        for line, column, rule in self.defects:
            place = ":".join(str(part) for part in (self.name, line, column) if part is not None)
            lines.append(f"{place}: {rule}")
        n_more = self.n_defects - len(self.defects)
        if n_more:
            lines.append(f"... and {self._at_least}{n_more} more")
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Return all that was found as facts for JSON."""
        return {
            "defects": [{"line": line, "column": column, "message": rule} for line, column, rule in self.defects],
            "n_defects": self.n_defects,
            "n_defects_is_exact": self.n_defects_is_exact,
            "summary": None if self.summary is None else _as_lists(asdict(self.summary)),
            "suspicions": [suspicion._asdict() for suspicion in self.suspicions],
        }

    def __str__(self) -> str:
        parts = [self.defect_lines] if self.n_defects else []
        if self.summary is not None:
            parts.append(columns(_facts(self)))
        parts += [f"{self.name}: warning: {suspicion}" for suspicion in self.suspicions]
        defects = f"{self._at_least}{count(self.n_defects, 'defect')}"
        return "\n".join([*parts, f"{defects}, {count(len(self.suspicions), 'warning')}"])

    @property
    def _at_least(self) -> str:
        return "" if self.n_defects_is_exact else "at least "


def check_file(
    data: Source, *, limit: int | None = 100, task: str | None = None, zero_based: str | bool = "auto"
) -> FileCheck:
    """List every mistake of a file of SVM-light / LIBSVM text, summarise its rows, and say what looks wrong.

    It is what `widemargin check` does. A file with defects is no error here: `read_svmlight`, `train_file` and the
    others refuse it.

    Parameters
    ----------
    data : path or binary file object
        The file, plain or compressed (gzip, bzip2, xz, zstandard); "-" is standard input.
    limit : int or None, default=100
        How many defects to list; the others are counted. None lists all of them.
    task : {"classification", "regression"}, default=None
        Whether labels are classes or quantities; None tells it from them.
    zero_based : {"auto", True, False}, default="auto"
        Whether indices count from 0; "auto": if index 0 occurs.

    Returns
    -------
    FileCheck
        With `defects`, `summary`, `suspicions`; it prints itself.

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
    with naming("standard input" if source == "-" else name_of(source)):
        checked = check_svmlight(sys.stdin.buffer if source == "-" else source, zero_based=zero_based, limit=limit)
    summary, odd = None, []
    if checked.X is not None:
        first_index = 0 if checked.zero_based else 1
        summary = summarise(checked.X, checked.y, checked.qid, task=task, first_index=first_index, lines=checked.lines)
        odd = suspicions(summary, source if isinstance(source, str) and source != "-" else "DATA", task)
    return FileCheck(
        checked.name, checked.mistakes, checked.n_mistakes, checked.is_exact, checked.n_refused, summary, tuple(odd)
    )


def _as_lists(fact):
    """Return a fact, or facts within facts, with a list for every tuple."""
    if isinstance(fact, dict):
        return {name: _as_lists(inner) for name, inner in fact.items()}
    return [_as_lists(inner) for inner in fact] if isinstance(fact, tuple) else fact


def _facts(found):
    """Return the summary as a person reads it."""
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
    """Return how labels are distributed, in words."""
    if labels.classes is None:
        ends = f"from {labels.smallest:g} to {labels.largest:g}"
        return f"{labels.n_distinct} distinct, {ends}, mean {labels.mean:g}, standard deviation {labels.spread:g}"
    counts = [f"{name} ({count})" for name, count in labels.classes]
    kept = counts if len(counts) <= _SHOWN_CLASSES else counts[: _SHOWN_CLASSES - 1]
    return f"{count(len(counts), 'class', 'classes')}: {shown(kept, len(counts))}"
