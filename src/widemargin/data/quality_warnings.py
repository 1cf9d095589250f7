"""What looks wrong in a data set that breaks no rule, and the way out: a line each."""

import os
import shlex
from itertools import chain
from typing import NamedTuple

from widemargin.data.precomputed_rows import KERNEL_WORDS

_UNEVEN_CLASSES = 10  # rows of the largest class for each of the smallest
_UNEVEN_QUANTITIES = 20  # from which on many whole labels are hardly classes
_FEW_CLASSES = 10
_UNEVEN_RANGES, _FAR_FROM_MEDIAN = 1e3, 1e2  # widest range against the narrowest, and against the median
_LARGE_VALUE = 1e2
_RARE = 20  # how much rarer index 0 is than other indices if it is a slip
_PACKED = (".gz", ".bz2", ".xz", ".zst")


class Suspicion(NamedTuple):
    """Something that looks wrong."""

    kind: str
    message: str
    cure: str

    def __str__(self):
        return f"{self.message}; {self.cure}"


def suspicions(summary, data="DATA", task=None):
    """Return what looks wrong in a data set.

    Parameters
    ----------
    summary : Summary
        Of the data set, by `widemargin.data.summary.summarise`.
    data : str
        The file's path, for the commands that cures name.
    task : {"classification", "regression"}, default=None
        What the labels are for, if that is known.

    Returns
    -------
    found : list of Suspicion
        The gravest first; empty if nothing looks wrong.
    """
    if summary.is_kernel:
        return [Suspicion("kernel", f"{KERNEL_WORDS}, so their values are not judged", "train with -t 4")]
    labels = [] if summary.queries is not None else _labels(summary.labels, task)  # those of queries are grades
    rows = _index_zero(summary), _queries(summary.queries), _constants(summary), _empty_rows(summary), _repeats(summary)
    return list(chain(labels, _copies(summary), _conflicts(summary), _scales(summary, data), *rows))


def _labels(labels, task):
    """Yield what is odd about labels."""
    if labels.n_distinct == 1:
        cure = "there is nothing to learn from them, except with --task oneclass"
        yield Suspicion("one label", f"every row has the label {labels.smallest:g}", cure)
    elif labels.classes is not None:
        yield from _classes(labels)
    elif task is None:
        yield Suspicion("quantities", "labels look like quantities, not classes", "train with --task regression")


def _classes(labels):
    """Yield what is odd about classes."""
    names, counts = zip(*labels.classes, strict=True)
    if not labels.are_whole:
        broken = next(name for name in names if name != round(name))
        words = f"labels such as {broken:g} are no classes, which are whole numbers"
        yield Suspicion("quantities", words, "train with --task regression, or number the classes")
        return
    if names == (-1, 0, 1):
        words = f"rows with the label 0 beside -1 and 1: {counts[1]}"
        yield Suspicion("label 0", words, "if they are rows whose label is not known, leave them out")
    largest, smallest = max(counts), min(counts)
    if len(names) > _FEW_CLASSES and largest > _UNEVEN_QUANTITIES * smallest:
        words = f"{len(names)} whole labels with {smallest} to {largest} rows each look like quantities"
        yield Suspicion("quantities", words, "if they are, train with --task regression")
    elif largest > _UNEVEN_CLASSES * smallest:
        rare, common = names[counts.index(smallest)], names[counts.index(largest)]
        words = f"classes are uneven: label {rare} has {smallest} of the rows, label {common} has {largest}"
        yield Suspicion("uneven classes", words, "train with --class-weight balanced")


def _copies(summary):
    copies = summary.features.label_copies
    if copies:
        words = f"features that are the label again, but for origin and unit: {', '.join(map(str, copies))}"
        yield Suspicion("label copy", words, "leave out what is not known of rows whose label is not")


def _conflicts(summary):
    """Yield that rows differ in their label alone; quantities and grades may well."""
    repeats = summary.repeats
    if repeats.n_conflicts and summary.labels.classes is not None and summary.queries is None:
        first, second = repeats.first_conflict
        words = f"rows with the same values but different labels: {repeats.n_conflicts} (lines {first} and {second})"
        yield Suspicion("conflicts", words, "no model can have them all right: correct the labels or add a feature")


def _scales(summary, data):
    """Yield that features are not of one scale, or too large; rows of unit length are scaled in their own way."""
    features = summary.features
    if summary.has_unit_rows or features.widest is None:
        return
    (widest, wide), (narrowest, narrow) = features.widest, features.narrowest
    value, large = features.largest
    cure = f"widemargin scale -s ranges {shlex.quote(data)} > {shlex.quote(_unpacked(data) + '.scale')}"
    if widest > _UNEVEN_RANGES * narrowest or widest > _FAR_FROM_MEDIAN * features.median_range:
        ranges = f"feature {wide} varies by {widest:g}, feature {narrow} by {narrowest:g}"
        words = f"features are of different scales: {ranges}, half of them by {features.median_range:g} or less"
        yield Suspicion("scales", words, cure)
    elif value > _LARGE_VALUE:
        yield Suspicion("scales", f"values are large, up to {value:g} in feature {large}", cure)


def _unpacked(path):
    stem, suffix = os.path.splitext(path)
    return stem if suffix.lower() in _PACKED else path


def _index_zero(summary):
    """Yield that index 0 is rare where it makes all indices count from 0."""
    n_zero = summary.n_first_index
    n_present = summary.n_features - summary.features.n_absent
    if summary.first_index == 0 and n_zero * _RARE * n_present < summary.n_entries:
        words = f"index 0 is in {n_zero} of {summary.n_rows} rows only, and makes all indices count from 0"
        yield Suspicion("index 0", words, "if it is a slip, check again with --zero-based no")


def _queries(queries):
    if queries is not None and queries.n_scattered:
        query, line = queries.first_scattered
        words = f"queries whose rows are not together: {queries.n_scattered} (query {query} comes back in line {line})"
        yield Suspicion("scattered queries", words, "sort the rows by qid, or give other queries other numbers")
    if queries is not None and queries.n_flat:
        words = f"queries with one label only: {queries.n_flat} of {queries.n_queries}"
        yield Suspicion("flat queries", words, "no order can be learned from them: add rows of other labels")


def _constants(summary):
    n_constant = summary.features.n_constant
    if n_constant and summary.n_rows > 1:
        words = (
            f"features with the same value in every row: {n_constant} ({shown(summary.features.constant, n_constant)})"
        )
        yield Suspicion("constant features", words, "leave them out: nothing can be learned from them")


def _empty_rows(summary):
    if summary.n_empty:
        words = f"rows without a value that is not 0: {summary.n_empty}"
        yield Suspicion("empty rows", words, "no model can tell them apart: see how they came to be")


def _repeats(summary):
    repeats = summary.repeats
    if repeats.n_repeats:
        earlier, later = repeats.first
        words = f"rows that repeat an earlier row and its label: {repeats.n_repeats} (line {later}, as line {earlier})"
        yield Suspicion("repeats", words, "leave them out, or let no row be both trained and tested on")


def shown(names, total):
    """Return names joined, with dots if there are more."""
    return ", ".join(map(str, names)) + (", ..." if total > len(names) else "")
