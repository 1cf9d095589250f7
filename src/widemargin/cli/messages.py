"""How the command line speaks: one line per message, on standard error, and what each way of failing says."""

import errno
import json
import math
import sys
import warnings
from contextlib import contextmanager, suppress

from widemargin.workflows.errors import FileNote, FileWarning

_CURES = {
    errno.ENOENT: "no such file; check the path",
    errno.EISDIR: "is a directory; name a file",
    errno.ENOTDIR: "a part of the path is not a directory; check the path",
    errno.EACCES: "permission denied; change its permissions or name another file",
    errno.EROFS: "the file system is read-only; name another place",
    errno.EBADF: "is closed; open it, or name a file",
    errno.ENOSPC: "no space left; free some or name another place",
}


class UsageError(Exception):
    """The command was given wrongly: exit status 2."""


class CommandError(Exception):
    """The data or the run failed: exit status 1."""


def say(kind, message):
    """Print `widemargin: kind: message` as one line on standard error.

    If that cannot be written to, only the exit status is left to tell.
    """
    with suppress(OSError):
        print(f"widemargin: {kind}: {' '.join(str(message).split())}", file=sys.stderr, flush=True)


def explain_os_error(error):
    """Return what went wrong with which file, and the way out."""
    name = "standard output" if error.filename is None else error.filename
    reason = _CURES.get(error.errno) or (error.strerror or str(error) or type(error).__name__)
    return f"{name}: {reason}"


@contextmanager
def warnings_as_lines():
    """Within the block, show warnings meant for users as plain lines and leave out those meant for programmers."""

    def show(message, category, filename, lineno, file=None, line=None):
        say(_kind(category), message)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.filterwarnings("always", category=UserWarning)
        warnings.filterwarnings("always", category=RuntimeWarning)
        warnings.showwarning = show
        yield


def _kind(category):
    """Return what a warning is called in front of its line."""
    return "note" if issubclass(category, FileNote) else "warning"


@contextmanager
def warnings_afterwards(*, notes=True):
    """Hold the warnings of the block back until its end: a line in the middle of a progress bar is lost.

    Those about files come before there is a bar, and are shown at once; notes only if they are wanted. The value of
    the context is a function that shows what is held back so far.
    """
    held = []

    def show(message, category, filename, lineno, file=None, line=None):
        if issubclass(category, (FileNote, FileWarning)):
            if notes or not issubclass(category, FileNote):
                say(_kind(category), message)
        else:
            held.append(message)

    def release():
        while held:
            say("warning", held.pop(0))

    try:
        with warnings.catch_warnings():
            warnings.showwarning = show
            yield release
    finally:
        release()


def print_json(facts, stream):
    """Print facts as one object of strict JSON: a number that is not finite becomes null."""
    print(json.dumps(_finite(facts), allow_nan=False), file=stream)


def _finite(fact):
    """Return a fact, or facts within facts, with None for every number that is not finite."""
    if isinstance(fact, dict):
        return {name: _finite(inner) for name, inner in fact.items()}
    if isinstance(fact, list):
        return [_finite(inner) for inner in fact]
    return None if isinstance(fact, float) and not math.isfinite(fact) else fact
