"""Atomic replacement of files: readers see the complete old content or the complete new content.

The new content is written to the temporary file `.NAME.PID-UNIQUE.widemargin-part` in the same directory, which is
then renamed to `NAME`. A process that is killed leaves its temporary file behind. The writer holds a lock (`flock`) on
the temporary file, which the operating system releases when the process ends. The next writer of `NAME` therefore
recognises the files of dead processes by the missing lock, and removes them.
"""

import os
import re
import shutil
import uuid
from contextlib import contextmanager, suppress

try:
    import fcntl
except ImportError:  # Windows refuses to remove an open file, so no lock is needed there
    fcntl = None  # type: ignore[assignment]

SUFFIX = ".widemargin-part"
_LONGEST_NAME = 255  # bytes of a file name, on nearly all file systems
_UNIQUE = re.compile(rb"\.[0-9]+-[0-9a-f]{12}" + SUFFIX.encode())


@contextmanager
def replacing(path):
    """Open a binary file for writing that replaces `path` when the block ends, and is removed if the block raises.

    If `path` is a symbolic link, its target is replaced. The permissions of an existing file are kept. A pipe or a
    device cannot be replaced and is written to directly.
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
    """Keep the lock of an open file within the block even when the file is closed, until it has its final name."""
    if fcntl is None:
        yield
        return
    duplicate = os.dup(file.fileno())
    try:
        yield
    finally:
        os.close(duplicate)


def remove_stale(path):
    """Remove the temporary files of writers of `path` that were killed."""
    directory, stem = os.path.dirname(path), _stem(path)
    try:
        with os.scandir(os.fsencode(directory)) as entries:
            names = [entry.name for entry in entries if entry.name.startswith(stem)]
    except OSError:  # the directory may be written but not listed
        return
    for name in names:
        if _UNIQUE.fullmatch(name, len(stem)):
            _remove_unlocked(os.path.join(os.fsencode(directory), name))


def _stem(path):
    """Return the start of the names of temporary files for `path`, as bytes: a dot and its name, shortened if long."""
    room = _LONGEST_NAME - len(f".{2**32}-{'0' * 12}{SUFFIX}") - 1
    return b"." + os.fsencode(os.path.basename(path))[:room]


def _create(path):
    """Return the name of a new temporary file for `path`, and the file, open and locked.

    Another process that looks for stale files may lock and remove the new file before we lock it; in that case the
    next name is tried.
    """
    while True:
        unique = f".{os.getpid()}-{uuid.uuid4().hex[:12]}{SUFFIX}"
        temporary = os.path.join(os.path.dirname(path), os.fsdecode(_stem(path)) + unique)
        try:
            file = open(temporary, "xb")  # noqa: SIM115 (the caller closes it)
        except OSError as error:
            error.filename = path  # the name that people know
            raise
        if _lock(file.fileno()) is not False and os.path.exists(temporary):
            return temporary, file
        file.close()


def _lock(descriptor):
    """Lock an open file. Return True, False if another process holds the lock, or None if locks are not supported."""
    if fcntl is None:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # some network file systems do not support locks
        return None
    return True


def _remove_unlocked(path):
    """Remove a temporary file, unless its writer holds the lock or we lack the permission."""
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
