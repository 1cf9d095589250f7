"""Checkpoints: the state of a solver in a file, written now and then, from which a later run goes on.

A solver's state is that of its objects. Each class names its own in `STATE`: arrays, numbers, tuples of numbers, and
objects that have a STATE themselves. What can be computed again from the problem is not among them. A run that goes on
from a checkpoint computes the same numbers, to the bit, as one that was never interrupted.

The file is NumPy's .npz. It is replaced as a whole, so that a process that is killed leaves a complete one, and it
carries the words that describe the fit: a checkpoint of another fit is refused.
"""

import errno
import json
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from widemargin._runtime.atomic_file import replacing
from widemargin.errors import FormatError

_LEAST_SECONDS_BETWEEN = 1.0
_TIMES_THE_WRITING = 20.0  # seconds between two checkpoints, as a multiple of those that the last one took
_DESCRIPTION = "description"


@dataclass(frozen=True)
class CheckpointFile:
    """Where the checkpoints of a fit are, and the words that describe the fit."""

    path: str
    description: dict[str, Any]

    def of_task(self, task, n_tasks):
        """Return the file of one of several problems, each of which has its own."""
        return self if n_tasks == 1 else CheckpointFile(f"{self.path}.{task}", self.description)

    def of_problem(self, problem):
        """Return the file with words that describe the targets and costs of a problem, too."""
        words = {"targets and weights": f"checksum {problem.checksum():08x}"}
        return CheckpointFile(self.path, {**self.description, **words})

    def check(self):
        """Raise OSError if no file can be written there, and FormatError if a file is no checkpoint of the fit.

        A long fit would fail when it writes its first checkpoint. A solver that writes none would not notice a file of
        another kind, and `remove` would delete it.
        """
        _check_place(self.path)
        Checkpoints(self).restore({})

    def remove(self, n_tasks):
        """Remove what is left of a fit that has come to its end."""
        for task in range(n_tasks):
            Path(self.of_task(task, n_tasks).path).unlink(missing_ok=True)


class Checkpoints:
    """Reads and writes the checkpoints of one run of a solver; does nothing without a CheckpointFile."""

    def __init__(self, file):
        self._file, self._due = file, time.monotonic() + _LEAST_SECONDS_BETWEEN

    def restore(self, targets):
        """Set the state of objects, given by name, from the file, if there is one; return whether there is.

        Raises
        ------
        FormatError
            If the file is no checkpoint, or one of another fit.
        """
        if self._file is None or not os.path.exists(self._file.path):
            return False
        try:
            with open(self._file.path, "rb") as file, np.load(file, allow_pickle=False) as arrays:
                self._check(json.loads(str(arrays[_DESCRIPTION])))
                for name, target in targets.items():
                    _restore(target, arrays, f"{name}.")
        except MemoryError:
            raise
        except Exception as error:  # damaged bytes may stand for anything, and NumPy's words suggest to load pickles
            why = error if isinstance(error, _OtherFitError | OSError) else "it is damaged or of another kind"
            raise FormatError(
                self._file.path, f"this is not a checkpoint of the fit ({why}). Remove it to start anew."
            ) from None
        return True

    def save(self, targets, *, now=False):
        """Write the state of objects, given by name, if the last checkpoint is long enough ago, or if `now`."""
        if self._file is None or not (now or time.monotonic() >= self._due):
            return
        begun = time.monotonic()
        arrays = {_DESCRIPTION: np.array(json.dumps(self._file.description))}
        for name, target in targets.items():
            _collect(target, arrays, f"{name}.")
        with replacing(self._file.path) as file:
            np.savez(file, **arrays)
        end = time.monotonic()
        self._due = end + max(_LEAST_SECONDS_BETWEEN, _TIMES_THE_WRITING * (end - begun))

    def _check(self, found):
        wanted = json.loads(json.dumps(self._file.description))
        differences = [key for key in wanted if found.get(key) != wanted[key]]
        if differences:
            text = ", ".join(f"{key} was {found.get(key)!r}, is {wanted[key]!r}" for key in differences)
            raise _OtherFitError(f"it was written by another one: {text}")


def _check_place(path):
    """Raise OSError if no file can be written at a path."""
    if os.path.isdir(path):
        raise IsADirectoryError(errno.EISDIR, "a checkpoint is a file, and this is a directory", path)
    directory = os.path.dirname(os.path.realpath(path))
    if not os.path.isdir(directory):
        raise FileNotFoundError(errno.ENOENT, "there is no such directory for a checkpoint; create it", directory)
    if not os.access(directory, os.W_OK):
        raise PermissionError(errno.EACCES, "no checkpoint can be written in this directory", directory)


class _OtherFitError(ValueError):
    """The checkpoint is one of another fit."""


def _collect(target, arrays, prefix):
    for name in target.STATE:
        value = getattr(target, name)
        if hasattr(value, "STATE"):
            _collect(value, arrays, f"{prefix}{name}.")
        else:
            arrays[prefix + name] = np.asarray(np.nan if value is None else value)


def _restore(target, arrays, prefix):
    for name in target.STATE:
        value = getattr(target, name)
        if hasattr(value, "STATE"):
            _restore(value, arrays, f"{prefix}{name}.")
            continue
        found = arrays[prefix + name]
        if found.ndim == 0:
            found = None if value is None or isinstance(value, np.ndarray) else found.item()
        elif isinstance(value, tuple):
            found = tuple(found.tolist())
        elif isinstance(value, np.ndarray) and value.base is not None and value.shape == found.shape:
            value[...] = found  # a part of memory that other objects may use, too
            continue
        setattr(target, name, found)
