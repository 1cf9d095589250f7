"""Warnings about data that is valid but looks wrong: one line each, with a remedy."""

import os
import shlex
from itertools import chain
from typing import NamedTuple

from widemargin.data.precomputed_rows import KERNEL_WORDS

_CLASS_SIZE_RATIO = 10  # of the largest to the smallest class, above which classes are unbalanced
_TARGET_COUNT_RATIO = 20  # the same ratio, above which many distinct whole labels are probably regression targets
_FEW_CLASSES = 10  # up to so many distinct labels, that ratio is not taken for a sign of regression targets
_RANGE_RATIO, _RANGE_TO_MEDIAN_RATIO = 1e3, 1e2  # of the widest range to the narrowest, and to the median range
_LARGE_VALUE = 1e2  # absolute value above which features should be scaled
_INDEX_ZERO_RATIO = 20  # how many times rarer than other indices index 0 is if it is taken for an error
_COMPRESSED_SUFFIXES = (".gz", ".bz2", ".xz", ".zst")


class QualityWarning(NamedTuple):
    """A warning about data: its kind, the message, and a remedy."""

    kind: str
    message: str
    remedy: str

    def __str__(self):
        return f"{self.message}; {self.remedy}"


def quality_warnings(summary, data="DATA", task=None):
    """Return the warnings about a data set.

    Parameters
    ----------
    summary : Summary
        The summary of the data set, from `widemargin.data.summary.summarise`.
    data : str
        Path of the file, which is used in the commands that remedies suggest.
    task : {"classification", "regression"}, default=None
        The task that the labels are for, if it is known.

    Returns
    -------
    found : list of QualityWarning
        The most serious first; empty if nothing looks wrong.
    """
    if summary.is_kernel:
        return [QualityWarning("kernel", f"{KERNEL_WORDS}, so their values are not checked", "train with -t 4")]
    # With queries, labels are relevance grades, which need not be classes.
    labels = [] if summary.queries is not None else _labels(summary.labels, task)
    rows = _index_zero(summary), _queries(summary.queries), _constants(summary), _empty_rows(summary), _repeats(summary)
    return list(chain(labels, _copies(summary), _conflicts(summary), _scales(summary, data), *rows))


def _labels(labels, task):
    """Yield the warnings about labels."""
    if labels.n_distinct == 1:
        remedy = "there is nothing to learn from them, except with --task oneclass"
        yield QualityWarning("one label", f"every row has the label {labels.smallest:g}", remedy)
    elif labels.classes is not None:
        yield from _classes(labels)
    elif task is None:
        words = "labels look like regression targets, not classes"
        yield QualityWarning("quantities", words, "train with --task regression")


def _classes(labels):
    """Yield the warnings about classes."""
    names, counts = zip(*labels.classes, strict=True)
    if not labels.are_whole:
        fractional = next(name for name in names if name != round(name))
        words = f"classes must be whole numbers, and labels such as {fractional:g} are not"
        yield QualityWarning("quantities", words, "train with --task regression, or number the classes")
        return
    if names == (-1, 0, 1):
        words = f"rows with the label 0 beside -1 and 1: {counts[1]}"
        yield QualityWarning("label 0", words, "if 0 means that the label is unknown, leave these rows out")
    largest, smallest = max(counts), min(counts)
    if len(names) > _FEW_CLASSES and largest > _TARGET_COUNT_RATIO * smallest:
        words = f"{len(names)} distinct labels with {smallest} to {largest} rows each look like regression targets"
        yield QualityWarning("quantities", words, "if they are, train with --task regression")
    elif largest > _CLASS_SIZE_RATIO * smallest:
        rare, common = names[counts.index(smallest)], names[counts.index(largest)]
        words = f"classes are uneven: label {rare} has {smallest} of the rows, label {common} has {largest}"
        yield QualityWarning("uneven classes", words, "train with --class-weight balanced")


def _copies(summary):
    """Yield that features are affine functions of the label."""
    copies = summary.features.label_copies
    if copies:
        words = f"features that are the label itself, shifted or scaled: {', '.join(map(str, copies))}"
        yield QualityWarning(
            "label copy", words, "leave them out if they are not known when the label is to be predicted"
        )


def _conflicts(summary):
    """Yield that equal rows have different classes; regression targets and relevance grades may well differ."""
    repeats = summary.repeats
    if repeats.n_conflicts and summary.labels.classes is not None and summary.queries is None:
        first, second = repeats.first_conflict
        words = f"rows with the same values but different labels: {repeats.n_conflicts} (lines {first} and {second})"
        remedy = "no model can predict them all correctly: correct the labels or add a feature"
        yield QualityWarning("conflicts", words, remedy)


def _scales(summary, data):
    """Yield that features have different scales, or large values; rows of unit length count as scaled."""
    features = summary.features
    if summary.has_unit_rows or features.widest is None:
        return
    (widest, wide), (narrowest, narrow) = features.widest, features.narrowest
    value, large = features.largest
    remedy = f"widemargin scale -s ranges {shlex.quote(data)} > {shlex.quote(_without_suffix(data) + '.scale')}"
    if widest > _RANGE_RATIO * narrowest or widest > _RANGE_TO_MEDIAN_RATIO * features.median_range:
        ranges = f"feature {wide} varies by {widest:g}, feature {narrow} by {narrowest:g}"
        words = f"features are of different scales: {ranges}, half of them by {features.median_range:g} or less"
        yield QualityWarning("scales", words, remedy)
    elif value > _LARGE_VALUE:
        yield QualityWarning("scales", f"values are large, up to {value:g} in feature {large}", remedy)


def _without_suffix(path):
    """Return a path without the suffix of a compressed file."""
    stem, suffix = os.path.splitext(path)
    return stem if suffix.lower() in _COMPRESSED_SUFFIXES else path


def _index_zero(summary):
    """Yield that index 0 is rare, although its presence means that all indices count from 0."""
    n_zero = summary.n_first_index
    n_present = summary.n_features - summary.features.n_absent
    if summary.first_index == 0 and n_zero * _INDEX_ZERO_RATIO * n_present < summary.n_entries:
        words = f"index 0 occurs in only {n_zero} of {summary.n_rows} rows, but makes all indices count from 0"
        yield QualityWarning("index 0", words, "if it is an error, check again with --zero-based no")


def _queries(queries):
    """Yield that rows of a query are scattered over the file, or all have the same label."""
    if queries is not None and queries.n_scattered:
        query, line = queries.first_scattered
        words = f"queries whose rows are not together: {queries.n_scattered} (query {query} comes back in line {line})"
        yield QualityWarning(
            "scattered queries", words, "sort the rows by qid, or give different queries different numbers"
        )
    if queries is not None and queries.n_flat:
        words = f"queries with one label only: {queries.n_flat} of {queries.n_queries}"
        yield QualityWarning("flat queries", words, "no order can be learned from them: add rows with other labels")


def _constants(summary):
    n_constant = summary.features.n_constant
    if n_constant and summary.n_rows > 1:
        words = (
            f"features with the same value in every row: {n_constant} ({shown(summary.features.constant, n_constant)})"
        )
        yield QualityWarning("constant features", words, "leave them out: nothing can be learned from them")


def _empty_rows(summary):
    if summary.n_empty:
        words = f"rows in which all values are 0: {summary.n_empty}"
        yield QualityWarning("empty rows", words, "no model can distinguish them: check how the file was made")


def _repeats(summary):
    repeats = summary.repeats
    if repeats.n_repeats:
        earlier, later = repeats.first
        words = f"rows that repeat an earlier row and its label: {repeats.n_repeats} (line {later}, as line {earlier})"
        remedy = "leave them out, or make sure that no row is in both the training and the test set"
        yield QualityWarning("repeats", words, remedy)


def shown(names, total):
    """Return the names as a list, with dots at the end if `total` says that there are more."""
    return ", ".join(map(str, names)) + (", ..." if total > len(names) else "")
