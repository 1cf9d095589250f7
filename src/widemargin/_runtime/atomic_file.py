"""Files are replaced whole or not at all: readers see the old content or the new, never half of it.

The new content is written to `.NAME.PID-UNIQUE.widemargin-part` beside `NAME`, which then takes its place. A process
that is killed leaves that file behind. Its writer holds a lock on it (`flock`), which the system releases with the
process, so the next writer of `NAME` can tell the files of dead processes from those of living ones, and removes them.
"""

import os
import re
import shutil
import uuid
from contextlib import contextmanager, suppress

try:
    import fcntl
except ImportError:  # Windows, which refuses to remove a file that is open: it needs no lock
    fcntl = None  # type: ignore[assignment]

SUFFIX = ".widemargin-part"
_LONGEST_NAME = 255  # bytes of a file name, on nearly all file systems
_UNIQUE = re.compile(rb"\.[0-9]+-[0-9a-f]{12}" + SUFFIX.encode())


@contextmanager
def replacing(path):
    """Open a binary file to write; when the block ends well it takes the place of `path`, else it vanishes.

    What a link points to is replaced, not the link; an old file's permissions are kept. A pipe or a device cannot be
    replaced and is written to as it is.
    """
    path = os.fsdecode(path)
    if os.path.exists(path) and not os.path.isfile(path):
        with open(path, "wb") as file:
            yield file
        return
    path = os.path.realpath(path)
    remove_stale(path)
    temporary, file = _create(path)
    try:
        with _keeping_lock(file):
            with file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            with suppress(FileNotFoundError):
                shutil.copymode(path, temporary)
            os.replace(temporary, path)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(temporary)
        raise


@contextmanager
def _keeping_lock(file):
    """Within the block, an open file stays locked although it is closed: until it has its final name."""
    if fcntl is None:
        yield
        return
    duplicate = os.dup(file.fileno())
    try:
        yield
    finally:
        os.close(duplicate)


def remove_stale(path):
    """Remove what writers of `path` that were killed have left beside it."""
    directory, stem = os.path.dirname(path), _stem(path)
    try:
        with os.scandir(os.fsencode(directory)) as entries:
            names = [entry.name for entry in entries if entry.name.startswith(stem)]
    except OSError:  # a directory that may be written to but not listed: there is nothing to be seen
        return
    for name in names:
        if _UNIQUE.fullmatch(name, len(stem)):
            _remove_unlocked(os.path.join(os.fsencode(directory), name))


def _stem(path):
    """Return how the names of temporary files for `path` begin, as bytes: a dot and its name, cut if it is long."""
    room = _LONGEST_NAME - len(f".{2**32}-{'0' * 12}{SUFFIX}") - 1
    return b"." + os.fsencode(os.path.basename(path))[:room]


def _create(path):
    """Return the name of a new temporary file for `path`, and the file, locked.

    Whoever looks for stale files may lock this one, and remove it, before its writer does: then there is another.
    """
    while True:
        unique = f".{os.getpid()}-{uuid.uuid4().hex[:12]}{SUFFIX}"
        temporary = os.path.join(os.path.dirname(path), os.fsdecode(_stem(path)) + unique)
        file = open(temporary, "xb")  # noqa: SIM115 (the caller closes it)
        if _lock(file.fileno()) is not False and os.path.exists(temporary):
            return temporary, file
        file.close()


def _lock(descriptor):
    """Lock an open file: True, or False if another process has it locked, or None where files cannot be locked."""
    if fcntl is None:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # some network file systems have no locks
        return None
    return True


def _remove_unlocked(path):
    """Remove a temporary file unless its writer is alive, or somebody else's rights forbid it."""
    with suppress(OSError):
        if fcntl is None:
            os.unlink(path)
            return
        descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            if _lock(descriptor):
                os.unlink(path)
        finally:
            os.close(descriptor)
