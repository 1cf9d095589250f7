"""What the model texts of LIBLINEAR and LIBSVM share: a header of lines `key value ...`, numbers, integer labels.

Nothing in a file is taken at its word: a count is compared with what is there before memory is taken, and every
mistake is a FormatError with its line.

Each text has a place that the programs do not read, where we write a checksum, `sha256=` and 16 hexadecimal digits: the
beginning of the SHA-256 digest of all other bytes, those that Windows adds to the ends of lines left out. A text
without one is read all the same, as those of other programs are.
"""

import hashlib
import math
import re

import numpy as np

from widemargin.errors import FormatError

_INTEGER = re.compile(rb"[-+]?[0-9]{1,10}")
_NUMBER = re.compile(rb"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")
_INT32 = np.iinfo(np.int32)
_SEAL_DIGITS = 16
SEAL = rb"sha256=([0-9a-f]{16})"  # a regular expression
_SEAL = re.compile(SEAL)


def first_word(head):
    """Return the first word of a file with these first bytes, "" if there is none."""
    words = head.split(None, 1)
    return words[0].decode("latin-1") if words else ""


def check_complete(content, path):
    """Raise FormatError if the last line of a text does not end."""
    if not content.endswith(b"\n"):
        line = content.count(b"\n") + 1
        raise FormatError(path, "the last line does not end with a newline: the file is cut short.", line)


def sealed(before, after):
    """Return before + after with the checksum of both between them."""
    return b"".join([before, b"sha256=", _digest(before, after), after])


def check_seal(content, begin, end, path):
    """Raise FormatError if a checksum between these places of a text is not that of all other bytes."""
    found = _SEAL.search(content, begin, end)
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
    return digest.hexdigest()[:_SEAL_DIGITS].encode()


def number(token, path, line):
    """Return a finite number, or raise FormatError."""
    value = float(token) if _NUMBER.fullmatch(token) else math.nan
    if not math.isfinite(value):
        raise FormatError(path, f"{shown(token)} is not a finite number.", line)
    return value


def shown(token):
    """Return bytes of a file as they may appear in a message."""
    return repr(token[:40].decode("ascii", "backslashreplace"))


def integer_labels(classes, program):
    """Return class labels as the integers that the program's text holds, or raise TypeError."""
    whole = classes.dtype.kind in "iu" or (classes.dtype.kind == "f" and np.all(classes == np.floor(classes)))
    if not whole or classes.min() < _INT32.min or classes.max() > _INT32.max:
        raise TypeError(
            f"{program}'s labels are 32-bit integers, got classes_ {classes[:3].tolist()} of type {classes.dtype}. "
            'Encode y as integers before fit, or save with format="widemargin".'
        )
    return [int(label) for label in classes]


class Header:
    """The lines before the numbers of a model, each a key and its words.

    Parameters
    ----------
    content : bytes
        The whole file.
    path : str
        Its name, for messages.
    program : str
        Whose text it is, for messages.
    keys : tuple of str
        The keys that there are; the last one ends the header.

    Attributes
    ----------
    length : int
        Number of lines, that of the last key included.
    end : int
        Number of bytes of these lines.
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
        """Return the words after a key, which must be as many."""
        if key not in self._fields:
            raise FormatError(self.path, f"the header lacks {key}.", self.length)
        words = self._fields[key][1]
        if len(words) != n_words:
            self.refuse(key, f"{key} must have {n_words} values, got {len(words)}.")
        return words

    def n_words(self, key):
        """Return the number of words after a key that is there."""
        return len(self._fields[key][1])

    def integer(self, key, at_least):
        """Return the integer after a key."""
        return self.integers(key, 1, at_least)[0]

    def integers(self, key, n_words, at_least):
        """Return the integers after a key, which must be as many."""
        words = self.words(key, n_words)
        for word in words:
            if not _INTEGER.fullmatch(word) or not at_least <= int(word) <= _INT32.max:
                self.refuse(key, f"{key} must be an integer from {at_least} to {_INT32.max}, got {shown(word)}.")
        return [int(word) for word in words]

    def number(self, key):
        """Return the number after a key."""
        return float(self.numbers(key, 1)[0])

    def numbers(self, key, n_words):
        """Return the numbers after a key, which must be as many."""
        words = self.words(key, n_words)
        return np.array([number(word, self.path, self._fields[key][0]) for word in words])

    def choice(self, key, known):
        """Return the word after a key, which must be one of those known."""
        (word,) = self.words(key, 1)
        name = word.decode("ascii", "backslashreplace")
        if name not in known:
            self.refuse(key, f"{key} must be one of {self._program}'s, got {shown(word)}.")
        return name

    def labels(self, n_classes):
        """Return the labels, distinct integers."""
        words = self.words("label", n_classes)
        for word in words:
            if not _INTEGER.fullmatch(word) or not _INT32.min <= int(word) <= _INT32.max:
                self.refuse("label", f"labels must be 32-bit integers, got {shown(word)}.")
        labels = np.array([int(word) for word in words])
        if len(np.unique(labels)) < n_classes:
            self.refuse("label", "labels must be distinct.")
        return labels
