"""Preparation of the standard streams, before other modules are imported."""

import os
import sys

_CLOSED_STREAMS = {"stdin": os.O_WRONLY, "stdout": os.O_RDONLY, "stderr": os.O_WRONLY}


def prepare_streams():
    """Replace closed standard streams, and let standard output print file names that are not valid UTF-8.

    A closed standard input is replaced by the null device opened for writing, and a closed standard output by the null
    device opened for reading: using them raises an OSError, as with a closed stream, so that no data are lost silently.
    A closed standard error is replaced by the null device opened for writing; messages are lost.
    """
    for number, (name, flags) in enumerate(_CLOSED_STREAMS.items()):
        if getattr(sys, name) is None:
            mode = "r" if name == "stdin" else "w"
            setattr(sys, name, open(_open_at(number, flags), mode, encoding="utf-8"))  # noqa: SIM115
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="backslashreplace")


def _open_at(number, flags):
    """Return a descriptor of the null device, with this number if it is free.

    Otherwise the next file that is opened would get the number of a standard stream.
    """
    descriptor = os.open(os.devnull, flags)
    if descriptor == number:
        return descriptor
    try:
        os.fstat(number)
    except OSError:  # the number is free
        os.dup2(descriptor, number)
        os.close(descriptor)
        return number
    return descriptor
