"""`scale_file`: scale the features of a file by ranges that are learned from it or read from a range file.

Learning the ranges is one pass over the file, and writing the scaled rows is another. In both, one block of lines is in
memory at a time.
"""

import os
import shutil
import sys
import tempfile
import time
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np

from widemargin._runtime.warning import warn_caller
from widemargin.data.precomputed_rows import KERNEL_WORDS, KernelRecogniser
from widemargin.data.scaling import NEED_MOMENTS, FeatureStatistics
from widemargin.data.svmlight.blocks import SvmlightBlocks, write_svmlight_blocks
from widemargin.data.svmlight.range_file import read_ranges, write_ranges
from widemargin.errors import FormatError
from widemargin.workflows.block_files import block_paths
from widemargin.workflows.block_rows import ScalableBlocks
from widemargin.workflows.errors import ArgumentError, FileError, FileWarning, spelled
from widemargin.workflows.files import AnyPath, as_path, check_target, naming
from widemargin.workflows.result_text import columns

_MAX_GROWTH_WITHOUT_WARNING = 1.5  # of the number of nonzero entries
_MAX_ENTRIES_AT_A_TIME = 1 << 21  # of the scaled rows
_MAX_FEATURES_SHOWN = 5
_ROWS_TO_RECOGNISE_A_KERNEL = 1000
_MOST_DIGITS = 17  # that distinguish any two numbers
_EXACT_POWERS = np.array([float(10**k) for k in range(23)])  # of ten


@dataclass(frozen=True)
class ScaledFile:
    """The result of `scale_file`; `str` gives the lines that `widemargin scale` prints.

    Attributes
    ----------
    rows, features : int
        Numbers of rows and of scaled features.
    left_out : int
        Number of features that are constant, or that have no saved range.
    entries, entries_scaled : int
        Numbers of entries before and after scaling; zeros are not written.
    ranges : str or None
        The range file that was saved or applied.
    seconds : float
        The time in seconds.
    output : str
        The file of the scaled rows; "-" is standard output.
    """

    rows: int
    features: int
    left_out: int
    entries: int
    entries_scaled: int
    ranges: str | None
    seconds: float
    output: str

    def to_dict(self) -> dict[str, Any]:
        """Return the attributes as a dict that can be written as JSON."""
        return asdict(self)

    def __str__(self) -> str:
        words: dict[str, object] = {"rows": self.rows, "features": self.features, "entries": self.entries}
        if self.left_out:
            words["features"] = f"{self.features} ({self.left_out} left out)"
        if self.entries != self.entries_scaled:
            words["entries"] = f"{self.entries_scaled} (before: {self.entries})"
        if self.ranges not in (None, "-"):
            words["ranges"] = self.ranges
        words["seconds"] = f"{self.seconds:.2f}"
        if self.output != "-":
            words["output"] = self.output
        return columns(words)


class _Files(NamedTuple):
    """The paths of rows read, rows written, ranges saved and ranges restored; `-` is standard input or output."""

    data: str
    output: str
    save: str | None
    restore: str | None


def scale_file(
    data: AnyPath,
    output: AnyPath,
    *,
    lower: float | None = None,
    upper: float | None = None,
    labels: tuple[float, float] | None = None,
    save: AnyPath | None = None,
    restore: AnyPath | None = None,
    method: str | None = None,
    center: bool = False,
    keep_zeros: bool = False,
    digits: int | None = None,
) -> ScaledFile:
    """Scale each feature of a file to a range or to unit variance, and write the rows to another file.

    This is the function of `widemargin scale`. The ranges are learned from the file, or read from a range file, so
    that the ranges of training data can be applied to test data. Memory does not grow with the number of rows.

    Parameters
    ----------
    data : path
        The rows as SVM-light / LIBSVM text, plain or compressed; "-" is standard input. Or a row-block file,
        recognised by its content.
    output : path
        The file of scaled rows, compressed if its name ends with .gz, .bz2, .xz or .zst; "-" is standard output. A
        row-block file if `data` is one; its features have the indices 1, 2, ... in range files.
    lower, upper : float, default=None
        Limits of the scaled features; None is −1 and 1, or with `restore` the limits in the range file.
    labels : (float, float), default=None
        For regression, limits to which the labels are scaled.
    save : path, default=None
        The file in which the ranges are saved, in the format of svm-scale.
    restore : path, default=None
        A range file, of widemargin or svm-scale, that is applied.
    method : {"range", "variance"}, default=None
        "range", the default, maps the smallest and largest value to the limits; "variance" gives unit variance.
    center : bool, default=False
        With method "variance", whether to subtract the mean, which makes sparse data dense.
    keep_zeros : bool, default=False
        With method "range", whether to multiply only, so that the largest absolute value becomes `upper`.
    digits : int, default=None
        Number of significant digits to which scaled values are rounded, 1 to 17; svm-scale writes 6. None does not
        round.

    Returns
    -------
    ScaledFile
        Has the numbers of rows, features and entries; `print` shows them.

    Raises
    ------
    FormatError
        If a file breaks a rule of its format.
    ValueError
        If arguments contradict each other, or values cannot be scaled.
    OSError
        If a file cannot be read or written.

    Examples
    --------
    >>> from widemargin import read_svmlight, scale_file, write_svmlight
    >>> write_svmlight("rows", [[1.0, 10.0], [3.0, 30.0], [2.0, 30.0]], [1, -1, 1])
    >>> scaled = scale_file("rows", "rows.scale", save="rows.range")
    >>> read_svmlight("rows.scale")[0].toarray()
    array([[-1., -1.],
           [ 1.,  1.],
           [ 0.,  1.]])
    """
    files = _Files(as_path(data), as_path(output), as_path(save), as_path(restore))
    _check_files(files)
    if digits is not None and not 1 <= digits <= _MOST_DIGITS:
        raise ArgumentError(f"digits must be from 1 to {_MOST_DIGITS} or None, got {digits}")
    started = time.perf_counter()
    if restore is not None:
        _check_restoring(labels, method, center, keep_zeros)
        with _errors_name_the_data(files.data), _open_blocks(files) as blocks:
            facts = _restore(blocks, files, lower, upper, digits)
    else:
        plan = _plan(lower, upper, labels, method, center, keep_zeros)
        with _errors_name_the_data(files.data), _open_blocks(files) as blocks:
            facts = _learn(blocks, files, plan, digits)
    return ScaledFile(**facts, seconds=time.perf_counter() - started, output=files.output)


def _check_files(files):
    """Raise an error if one file is given for two purposes, or if an output file cannot be written."""
    data, output, save, restore = files
    if save is not None and restore is not None:
        raise ArgumentError(
            f"{spelled('save')} saves ranges that are learned from {spelled('data')}, {spelled('restore')} applies "
            "saved ones; leave one of them out"
        )
    if data == "-" and restore == "-":
        raise ArgumentError(f"{spelled('data')} and the ranges of {spelled('restore')} cannot both be standard input")
    if save is not None:
        check_target(save, data)
        if save == output or (output != "-" and os.path.realpath(save) == os.path.realpath(output)):
            what, names = "standard output" if output == "-" else output, (spelled("output="), spelled("save"))
            raise ArgumentError(f"rows and ranges would both go to {what}; name another file with {' or '.join(names)}")
    check_target(output, data, *([restore] if restore else []))


def _check_restoring(labels, method, center, keep_zeros):
    """Raise an ArgumentError if an argument about learning ranges is given together with `restore`."""
    given = {"labels": labels, "method": method, "center=True": center, "keep_zeros=True": keep_zeros}
    for name, value in given.items():
        if value:
            raise ArgumentError(
                f"{spelled(name)} is for learning ranges, those of {spelled('restore')} are learned already; leave it "
                "out"
            )


class _Plan(NamedTuple):
    """How ranges are learned: the method of `FeatureStatistics`, limits of features, and limits of labels or None."""

    method: str
    lower: float
    upper: float
    labels: tuple[float, float] | None


def _plan(lower, upper, labels, method, center, keep_zeros):
    """Return the _Plan; ArgumentError if arguments contradict each other."""
    if method not in (None, "range", "variance"):
        raise ArgumentError(f"method must be 'range', 'variance' or None, got {method!r}")
    if labels is not None and labels[0] >= labels[1]:
        low, high = labels
        raise ArgumentError(f"{spelled('labels')}: the lower limit must be below the upper, got {low:g} and {high:g}")
    if method == "variance":
        _check_variance(lower, upper, keep_zeros)
        return _Plan("standard" if center else "variance", -1.0, 1.0, labels)
    if center:
        variance = spelled('method="variance"')
        raise ArgumentError(f"{spelled('center=True')} is for {variance}; leave it out or name that")
    top = 1.0 if upper is None else upper
    if keep_zeros:
        if top <= 0 or lower not in (None, -top):
            below = "" if lower is None else f" and {spelled('lower')} {lower:g}"
            bounds = spelled("[-upper, upper] with upper > 0")
            raise ArgumentError(
                f"{spelled('keep_zeros=True')} scales to {bounds}, got {spelled('upper')} {top:g}{below}"
            )
        return _Plan("magnitude", -top, top, labels)
    bottom = -1.0 if lower is None else lower
    if bottom >= top:
        raise ArgumentError(f"{spelled('lower')} must be below {spelled('upper')}, got {bottom:g} and {top:g}")
    return _Plan("range", bottom, top, labels)


def _check_variance(lower, upper, keep_zeros):
    """Raise an ArgumentError if an argument does not apply to unit variance."""
    if keep_zeros:
        variance, zeros = spelled('method="variance"'), spelled("keep_zeros=True")
        raise ArgumentError(f"{variance} keeps zeros without {zeros}; leave that out")
    if (lower, upper) != (None, None):
        limits, by_range = f"{spelled('lower')} and {spelled('upper')}", spelled('method="range"')
        raise ArgumentError(f"{limits} are for {by_range}, unit variance has no limits; leave them out")


class _ReadError(Exception):
    """Wraps an OSError of the input file, to distinguish it from one of the output file written at the same time."""


@contextmanager
def _errors_name_the_data(data):
    """Within the block, raise a ValueError as a FileError that names the data file, and unwrap a _ReadError."""
    name = "standard input" if data == "-" else data
    try:
        yield
    except _ReadError as failure:
        raise failure.__cause__ from None
    except (FormatError, ArgumentError, FileError):
        raise
    except ValueError as error:
        raise FileError(f"{name}: {error}") from error


@contextmanager
def _open_blocks(files):
    """Open the data as blocks of rows; data that must be read twice and cannot be are copied to a temporary file.

    Indices are not changed: they are read as counting from 0, in the range file as well. If they count from 1, column 0
    is empty, which has no effect.
    """
    data, once = files.data, files.restore is not None
    paths = block_paths(data)
    if paths is not None:
        yield ScalableBlocks(paths)
    elif data != "-" and (once or os.path.isfile(data)):
        yield SvmlightBlocks(data, zero_based=True)
    elif once:
        yield SvmlightBlocks(sys.stdin.buffer, zero_based=True)
    else:
        with tempfile.TemporaryFile() as copy:
            if data == "-":
                shutil.copyfileobj(sys.stdin.buffer, copy)
            else:
                with open(data, "rb") as source:
                    shutil.copyfileobj(source, copy)
            copy.seek(0)
            yield SvmlightBlocks(copy, zero_based=True, name="<stdin>" if data == "-" else data)


def _learn(blocks, files, plan, digits):
    """Learn ranges from the rows, save them if requested, and write the scaled rows; return the facts."""
    if plan.labels is not None and getattr(blocks, "names", None) is not None:
        raise ArgumentError(f"{spelled('labels')} is for numbers, the labels of {blocks.name} are words; leave it out")
    statistics = FeatureStatistics(moments=plan.method in NEED_MOMENTS)
    for X, y, _ in _features_of(blocks):
        statistics.update(X, y)
    ranges = statistics.ranges(plan.method, lower=plan.lower, upper=plan.upper, label_limits=plan.labels)
    if plan.labels is not None and ranges.labels.low == ranges.labels.high:
        warn_caller(f"all labels are {ranges.labels.low:g}: they become {ranges.labels.lower:g}", FileWarning)
    _warn_of_growth(statistics, statistics.n_entries_scaled(ranges), ranges, _remedy(plan.method, ranges))
    if files.save is not None:
        with naming(files.save):
            write_ranges(sys.stdout if files.save == "-" else files.save, ranges, zero_based=_first_index(blocks) == 0)
    n_scaled = _write(_scale(_blocks_of(blocks), ranges, digits=digits), files.output, blocks)
    return _facts(statistics, ranges, n_scaled, files.save)


def _restore(blocks, files, lower, upper, digits):
    """Write the rows scaled by saved ranges; return the facts."""
    with naming("standard input" if files.restore == "-" else files.restore):
        source = sys.stdin if files.restore == "-" else files.restore
        ranges = read_ranges(source, zero_based=_first_index(blocks) == 0)
    for name, asked, saved in (("lower", lower, ranges.lower), ("upper", upper, ranges.upper)):
        if asked not in (None, saved):
            raise ArgumentError(
                f"{spelled(name)} {asked:g}: the ranges of {files.restore} are for {saved:g}; leave it out"
            )
    statistics = FeatureStatistics()
    n_scaled = _write(_scale(_features_of(blocks), ranges, statistics, digits=digits), files.output, blocks)
    unknown = np.setdiff1d(statistics.varying(), ranges.kept) + _first_index(blocks)
    _warn_of_unknown(unknown.tolist(), files.restore)
    _warn_of_growth(statistics, n_scaled, ranges, f"learn the ranges with {_either('or')}")
    return _facts(statistics, ranges, n_scaled, files.restore)


def _warn_of_unknown(features, path):
    """Warn about features that have no saved range."""
    if features:
        names = [*map(str, features[:_MAX_FEATURES_SHOWN]), *(["..."] if len(features) > _MAX_FEATURES_SHOWN else [])]
        count = "1 feature is" if len(features) == 1 else f"{len(features)} features are"
        warn_caller(f"{count} left out, for which {path} has no range: {', '.join(names)}", FileWarning)


def _blocks_of(blocks):
    """Yield the blocks; raise an OSError as a _ReadError with the name of the input file."""
    try:
        yield from blocks
    except OSError as error:
        error.filename = blocks.name
        raise _ReadError from error


def _features_of(blocks):
    """Yield the blocks; FileError if the first one looks like rows of a precomputed kernel."""
    recogniser = None
    for block in _blocks_of(blocks):
        if recogniser is None and not isinstance(blocks, ScalableBlocks):
            recogniser = KernelRecogniser()
            recogniser.update(block[0][:_ROWS_TO_RECOGNISE_A_KERNEL])
            if recogniser.is_kernel:
                precomputed = spelled('kernel="precomputed"')
                raise FileError(
                    f"{blocks.name}: {KERNEL_WORDS}, which is not scaled; scale the features that it is computed from, "
                    f"and train with {precomputed}"
                )
        yield block


def _scale(blocks, ranges, statistics=None, digits=None):
    """Yield the blocks scaled, in smaller blocks if they become dense; update `statistics` unless it is None.

    Values are rounded to so many significant digits, unless `digits` is None.
    """
    n_rows = max(1, _MAX_ENTRIES_AT_A_TIME // max(1, len(ranges.filled)))
    for X, y, qid in blocks:
        if statistics is not None:
            statistics.update(X)
        if X.shape[1] > ranges.n_features:
            X = X[:, : ranges.n_features]
        labels = ranges.apply_to_labels(y)
        for start in range(0, len(y), n_rows):
            part = slice(start, start + n_rows)
            scaled = ranges.apply(X[part])
            if digits is not None:
                scaled.data = _rounded(scaled.data, digits)
            yield scaled, labels[part], None if qid is None else qid[part]


def _rounded(values, digits):
    """Return values rounded to so many significant digits: the numbers that are nearest to these decimals.

    A value times a power of ten is rounded to an integer, and divided by that power, both of which are exact numbers up
    to 10^22; values for which they are larger are left as they are.
    """
    rounded = values.copy()
    with np.errstate(divide="ignore"):
        places = digits - 1 - np.floor(np.log10(np.abs(values)))
    fractions = np.flatnonzero((places > 0.0) & (places < len(_EXACT_POWERS)))
    power = _EXACT_POWERS[places[fractions].astype(int)]
    rounded[fractions] = np.rint(values[fractions] * power) / power
    wholes = np.flatnonzero((places <= 0.0) & (places > -len(_EXACT_POWERS)))
    power = _EXACT_POWERS[-places[wholes].astype(int)]
    rounded[wholes] = np.rint(values[wholes] / power) * power
    return rounded


def _first_index(blocks):
    """Return the index of column 0 in range files: that of the text, or 1 for row-block files, which have none."""
    return 1 if isinstance(blocks, ScalableBlocks) else 0


def _write(blocks, output, read):
    """Write blocks of rows, in the format of those that are `read`, to a file or standard output; count the entries."""
    n_entries = 0

    def counted():
        nonlocal n_entries
        for block in blocks:
            n_entries += block[0].nnz
            yield block

    if isinstance(read, ScalableBlocks):
        read.write(counted(), output)
    elif output == "-":
        write_svmlight_blocks(sys.stdout.buffer, counted(), zero_based=True)
        sys.stdout.buffer.flush()
    else:
        with naming(output):
            write_svmlight_blocks(output, counted(), zero_based=True)
    return n_entries


def _either(conjunction):
    """Return the names of the two arguments that keep zeros."""
    return f" {conjunction} ".join([spelled("keep_zeros=True"), spelled('method="variance"')])


def _remedy(method, ranges):
    """Return a suggestion how to keep zeros."""
    if method == "standard":
        return f"leave {spelled('center=True')} out to keep them"
    if ranges.lower != 0.0 and np.all(ranges.low >= 0.0):
        return f"{spelled('lower=0')} keeps them, as no value is negative; so do {_either('and')}"
    return f"{_either('and')} keep them"


def _warn_of_growth(statistics, n_scaled, ranges, remedy):
    """Warn if the scaled rows have many more entries than the rows of the file."""
    before, filled = statistics.n_entries, len(ranges.filled)
    if n_scaled > _MAX_GROWTH_WITHOUT_WARNING * before:
        growth = f"{before} entries become {n_scaled}, as zeros of {filled} features become other numbers"
        warn_caller(f"{growth}; {remedy}", FileWarning)


def _facts(statistics, ranges, n_scaled, path):
    """Return the attributes of a ScaledFile about the rows."""
    return {
        "rows": statistics.n_rows,
        "features": len(ranges.kept),
        "left_out": len(np.setdiff1d(statistics.seen(), ranges.kept)),
        "entries": statistics.n_entries,
        "entries_scaled": n_scaled,
        "ranges": path,
    }
