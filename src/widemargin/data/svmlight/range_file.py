"""Range files of LIBSVM, which `svm-scale -s` writes and `svm-scale -r` applies.

    y                  these three lines only if labels are scaled
    lower upper            limits of the labels
    low high               range of the labels
    x
    lower upper            limits of the features
    index low high         range of a feature, by ascending index from 1; constant features are omitted
    ...

Numbers are written with 17 digits, so that they read back as the same numbers.
"""

import io
import math
import os
import re

import numpy as np

from widemargin._runtime.argument_types import PathOrFile
from widemargin._runtime.atomic_file import replacing
from widemargin.data.scaling import MAX_FEATURES, FeatureRanges, LabelRange
from widemargin.errors import FormatError

_INDEX = re.compile(r"[0-9]+")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_CHARACTERS_QUOTED = 40  # of a line, at most, in a message


def write_ranges(path_or_file: PathOrFile, ranges: FeatureRanges, *, zero_based: bool = False) -> None:
    """Write feature ranges as a range file of LIBSVM.

    Parameters
    ----------
    path_or_file : str, path or file object
        An existing file is replaced when the new one is complete. A file object may be open in binary or text mode.
    ranges : FeatureRanges
        The ranges. Removed features are not written.
    zero_based : bool, default=False
        Whether the first feature has index 0 rather than 1, as in data whose indices count from 0.

    Examples
    --------
    >>> import sys
    >>> import numpy as np
    >>> from widemargin.data.svmlight.range_file import write_ranges
    >>> from widemargin.data.scaling import learn_ranges
    >>> write_ranges(sys.stdout, learn_ranges(np.array([[0.0, 10.0], [4.0, 30.0]])))
    x
    -1 1
    1 0 4
    2 10 30
    """
    if not hasattr(path_or_file, "write"):
        with replacing(path_or_file) as file:
            write_ranges(file, ranges, zero_based=zero_based)
        return
    is_text_mode = isinstance(path_or_file, io.TextIOBase)
    for line in _lines(ranges, 0 if zero_based else 1):
        path_or_file.write(line if is_text_mode else line.encode())


def _lines(ranges, first_index):
    """Yield the lines of a range file."""
    if ranges.labels is not None:
        lower, upper, low, high = ranges.labels
        yield f"y\n{lower:.17g} {upper:.17g}\n{low:.17g} {high:.17g}\n"
    yield f"x\n{ranges.lower:.17g} {ranges.upper:.17g}\n"
    kept = ranges.kept
    for j, low, high in zip(kept.tolist(), ranges.low[kept].tolist(), ranges.high[kept].tolist(), strict=True):
        yield f"{j + first_index} {low:.17g} {high:.17g}\n"


def read_ranges(path_or_file: PathOrFile, *, zero_based: bool = False) -> FeatureRanges:
    """Read feature ranges from a range file of LIBSVM.

    Parameters
    ----------
    path_or_file : str, path or file object
        A file written by `svm-scale -s` or `write_ranges`.
    zero_based : bool, default=False
        Whether the first feature has index 0 rather than 1.

    Returns
    -------
    FeatureRanges
        The largest index is the number of features; features that are not in the file are removed by the scaling.

    Raises
    ------
    FormatError
        At the first line that breaks a rule of the format.

    Examples
    --------
    >>> from io import StringIO
    >>> from widemargin import read_ranges
    >>> read_ranges(StringIO("x\\n-1 1\\n1 0 4\\n2 10 30\\n")).high.tolist()
    [4.0, 30.0]
    """
    if not hasattr(path_or_file, "read"):
        with open(path_or_file, "rb") as file:
            return _Reader(os.fsdecode(path_or_file), file).read(zero_based)
    name = getattr(path_or_file, "name", None)
    return _Reader(name if isinstance(name, str) else "<stream>", path_or_file).read(zero_based)


class _Reader:
    """Reads a range file line by line, and raises FormatError with the line that breaks a rule."""

    def __init__(self, name, file):
        self._name, self._number = name, 0
        self._lines = iter(file)

    def read(self, zero_based):
        """Return the ranges."""
        words, labels = self._next_words(), None
        if words == ["y"]:
            labels = LabelRange(*self._read_limits("the limits of the labels"), *self._read_range(self._next_words()))
            words = self._next_words()
        if words != ["x"]:
            kind = "x or y" if labels is None else "x"
            self._refuse(f"expected a line {kind}, got {_show(words)}; range files are written by svm-scale -s")
        lower, upper = self._read_limits("the limits of the features")
        columns, lows, highs = self._read_features(0 if zero_based else 1)
        n_features = columns[-1] + 1 if columns else 0
        low, high = np.zeros(n_features), np.zeros(n_features)
        low[columns], high[columns] = lows, highs
        return FeatureRanges(lower, upper, low, high, labels)

    def _read_features(self, first_index):
        """Return columns, lows and highs from the remaining lines."""
        columns, lows, highs = [], [], []
        for words in iter(self._next_words, None):
            if len(words) != 3 or not _INDEX.fullmatch(words[0]):
                self._refuse(f"expected index, low and high, got {_show(words)}")
            column = int(words[0][:_CHARACTERS_QUOTED]) - first_index
            if column < 0:
                self._refuse("index 0 in a file whose indices count from 1")
            if column >= MAX_FEATURES:
                self._refuse(f"index {_show(words[:1])} is too large; the largest is {MAX_FEATURES - 1 + first_index}")
            if columns and column <= columns[-1]:
                self._refuse(f"indices must increase, got {words[0]} after {columns[-1] + first_index}")
            low, high = self._read_range(words[1:])
            columns.append(column)
            lows.append(low)
            highs.append(high)
        return columns, lows, highs

    def _read_limits(self, what):
        """Return the two numbers of the next line, the lower one first."""
        lower, upper = self._read_numbers(self._next_words())
        if not (lower < upper and math.isfinite(upper - lower)):
            self._refuse(f"{what} must be two numbers, the lower one first, got {lower:g} and {upper:g}")
        return lower, upper

    def _read_range(self, words):
        """Return the two numbers, which may be equal, of the words of a line."""
        low, high = self._read_numbers(words)
        if low > high:
            self._refuse(f"a range must begin with its lower end, got {low:g} and {high:g}")
        return low, high

    def _read_numbers(self, words):
        """Return two finite numbers from the words of a line."""
        numbers = [float(word) for word in words or [] if _NUMBER.fullmatch(word)]
        if len(words or []) != 2 or len(numbers) != 2 or math.inf in map(abs, numbers):
            self._refuse(f"expected two finite numbers, got {_show(words)}")
        return numbers

    def _next_words(self):
        """Return the words of the next line that is not blank, or None at the end of the file."""
        for line in self._lines:
            self._number += 1
            words = (line if isinstance(line, str) else line.decode("ascii", "backslashreplace")).split()
            if words:
                return words
        return None

    def _refuse(self, rule):
        raise FormatError(self._name, rule, max(self._number, 1))


def _show(words):
    """Quote a line for a message, shortened if it is long."""
    if words is None:
        return "the end of the file"
    text = " ".join(words)
    return repr(text[:_CHARACTERS_QUOTED] + "..." if len(text) > _CHARACTERS_QUOTED else text)
