"""Common parts of the model texts of LIBLINEAR, LIBSVM and SVM-light: headers, numbers, integer labels, checksums.

The readers do not trust a file. Each count in a header is compared with the content before memory is allocated, and
every error is a FormatError with the line number.

Each of these formats has a place that the original programs ignore. We write a checksum there: `sha256=` and the first
16 hexadecimal digits of the SHA-256 digest of all other bytes. Carriage returns at line ends are ignored, because
programs on Windows add them. A text without a checksum, such as one from the original programs, is accepted.
"""

import hashlib
import math
import re

import numpy as np

from widemargin.errors import FormatError

_INTEGER = re.compile(rb"[-+]?[0-9]{1,10}")
_NUMBER = re.compile(rb"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")
_INT32 = np.iinfo(np.int32)
_CHECKSUM_DIGITS = 16
CHECKSUM = rb"sha256=([0-9a-f]{16})"  # a regular expression
_CHECKSUM = re.compile(CHECKSUM)


def first_word(head):
    """Return the first word of a file, given its first bytes; "" if there is none."""
    words = head.split(None, 1)
    return words[0].decode("latin-1") if words else ""


def check_complete(content, path):
    """Raise FormatError unless the text ends with a newline."""
    if not content.endswith(b"\n"):
        line = content.count(b"\n") + 1
        raise FormatError(path, "the last line does not end with a newline: the file is cut short.", line)


def with_checksum(before, after):
    """Return before + checksum + after, where the checksum is that of the two parts."""
    return b"".join([before, b"sha256=", _digest(before, after), after])


def check_checksum(content, begin, end, path):
    """Raise FormatError if there is a checksum in content[begin:end] that is not that of all other bytes."""
    found = _CHECKSUM.search(content, begin, end)
    if found and found[1] != _digest(content[: found.start()], content[found.end() :]):
        rule = (
            "the checksum is that of another text: the file is damaged, or was edited. Get it anew; if it was edited "
            "on purpose, take out `sha256=` and what follows it on the line."
        )
        raise FormatError(path, rule, content.count(b"\n", 0, begin) + 1)


def _digest(before, after):
    digest = hashlib.sha256()
    for part in (before, after):
        digest.update(part.replace(b"\r\n", b"\n") if b"\r" in part else part)
    return digest.hexdigest()[:_CHECKSUM_DIGITS].encode()


def number(token, path, line):
    """Return the value of a finite number; FormatError if the token is anything else."""
    value = float(token) if _NUMBER.fullmatch(token) else math.nan
    if not math.isfinite(value):
        raise FormatError(path, f"{shown(token)} is not a finite number.", line)
    return value


def shown(token):
    """Return the first 40 bytes of a token in printable form, for messages."""
    return repr(token[:40].decode("ascii", "backslashreplace"))


def integer_labels(classes, program):
    """Return class labels as integers, as the program's text requires; TypeError if they are not 32-bit integers."""
    whole = classes.dtype.kind in "iu" or (classes.dtype.kind == "f" and np.all(classes == np.floor(classes)))
    if not whole or classes.min() < _INT32.min or classes.max() > _INT32.max:
        raise TypeError(
            f"{program}'s labels are 32-bit integers, got classes_ {classes[:3].tolist()} of type {classes.dtype}. "
            'Encode y as integers before fit, or save with format="widemargin".'
        )
    return [int(label) for label in classes]


class Header:
    """The header of a model text: lines that consist of a key and its values.

    Parameters
    ----------
    content : bytes
        The whole file.
    path : str
        Name of the file, for messages.
    program : str
        Program that defines the format, for messages.
    keys : tuple of str
        All keys of the format; the line of the last one ends the header.

    Attributes
    ----------
    length : int
        Number of lines of the header.
    end : int
        Number of bytes of the header.
    """

    def __init__(self, content, path, program, keys):
        self.path, self.length, self.end = path, 0, 0
        self._program, self._fields = program, {}
        key = None
        while key != keys[-1]:
            stop = content.find(b"\n", self.end)
            if stop < 0:
                rule = f"the header must end with a line `{keys[-1]}`: the file is cut short."
                raise FormatError(path, rule, self.length)
            line = content[self.end : stop]
            self.length, self.end = self.length + 1, stop + 1
            word, *words = line.split() or [b""]
            key = word.decode("latin-1")
            if key not in keys:
                raise FormatError(path, f"{shown(line)} is not a line of a {program} header.", self.length)
            if key in self._fields:
                raise FormatError(path, f"{key} is given twice.", self.length)
            self._fields[key] = self.length, words

    def __contains__(self, key):
        return key in self._fields

    def refuse(self, key, rule):
        """Raise FormatError at the line of a key."""
        raise FormatError(self.path, rule, self._fields[key][0])

    def words(self, key, n_words):
        """Return the words after a key; FormatError unless there are `n_words` of them."""
        if key not in self._fields:
            raise FormatError(self.path, f"the header lacks {key}.", self.length)
        words = self._fields[key][1]
        if len(words) != n_words:
            self.refuse(key, f"{key} must have {n_words} values, got {len(words)}.")
        return words

    def n_words(self, key):
        """Return the number of words after a key that is present."""
        return len(self._fields[key][1])

    def integer(self, key, at_least):
        """Return the integer after a key."""
        return self.integers(key, 1, at_least)[0]

    def integers(self, key, n_words, at_least):
        """Return the `n_words` integers after a key."""
        words = self.words(key, n_words)
        for word in words:
            if not _INTEGER.fullmatch(word) or not at_least <= int(word) <= _INT32.max:
                self.refuse(key, f"{key} must be an integer from {at_least} to {_INT32.max}, got {shown(word)}.")
        return [int(word) for word in words]

    def number(self, key):
        """Return the number after a key."""
        return float(self.numbers(key, 1)[0])

    def numbers(self, key, n_words):
        """Return the `n_words` numbers after a key."""
        words = self.words(key, n_words)
        return np.array([number(word, self.path, self._fields[key][0]) for word in words])

    def choice(self, key, known):
        """Return the word after a key; FormatError unless it is one of `known`."""
        (word,) = self.words(key, 1)
        name = word.decode("ascii", "backslashreplace")
        if name not in known:
            self.refuse(key, f"{key} must be one of {self._program}'s, got {shown(word)}.")
        return name

    def labels(self, n_classes):
        """Return the class labels, which must be distinct 32-bit integers."""
        words = self.words("label", n_classes)
        for word in words:
            if not _INTEGER.fullmatch(word) or not _INT32.min <= int(word) <= _INT32.max:
                self.refuse("label", f"labels must be 32-bit integers, got {shown(word)}.")
        labels = np.array([int(word) for word in words])
        if len(np.unique(labels)) < n_classes:
            self.refuse("label", "labels must be distinct.")
        return labels
