"""The standard streams of the process, made safe before anything else is imported."""

import os
import sys

_CLOSED_STREAMS = {"stdin": os.O_WRONLY, "stdout": os.O_RDONLY, "stderr": os.O_WRONLY}


def prepare_streams():
    """Stand in for streams that are closed, and let file names hold bytes that are no characters.

    The null device, opened the wrong way round, fails as a closed stream does: what is written to standard output, or
    read from standard input, must not be lost in silence. Errors that nobody wants to hear are lost.
    """
    for number, (name, flags) in enumerate(_CLOSED_STREAMS.items()):
        if getattr(sys, name) is None:
            mode = "r" if name == "stdin" else "w"
            setattr(sys, name, open(_open_at(number, flags), mode, encoding="utf-8"))  # noqa: SIM115
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="backslashreplace")


def _open_at(number, flags):
    """Return a descriptor of the null device: that number, lest a data file be opened as a standard stream."""
    descriptor = os.open(os.devnull, flags)
    if descriptor == number:
        return descriptor
    try:
        os.fstat(number)
    except OSError:  # free
        os.dup2(descriptor, number)
        os.close(descriptor)
        return number
    return descriptor
