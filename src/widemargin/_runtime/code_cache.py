"""Compiled code on disk: where it is kept, and how it is read and written.

Each function has a file for each type of its arguments and each processor, in a folder that is named by a digest of all
sources with compiled functions and of the versions of Numba; so two versions of the package, or an edited function,
never run each other's code. The folders are

    $NUMBA_CACHE_DIR                               if it is set,
    the folder of the package, in __pycache__      if it can be written,
    the user's folder for such files               otherwise, as ~/.cache/widemargin.

Files are read from all of these, so that a folder which was filled by `widemargin warmup` may be read-only afterwards.
A file is written under another name and renamed, so that processes which do the same at the same time do no harm. A
file that cannot be read is compiled again, and a folder that cannot be written costs a warning. Folders that were not
used for a day are removed, except the most recent ones, when a new folder is made.
"""

import os
import pickle
import shutil
import tempfile
import time
import zlib
from contextlib import suppress
from functools import cache
from pathlib import Path

from numba.core import caching, compiler, config
from numba.core.serialize import dumps
from numba.misc.appdirs import AppDirs

from widemargin._runtime.code_key import PACKAGE, digest_of_compiled_code, key_of
from widemargin._runtime.shipped_code import FOLDER, find
from widemargin._runtime.warning import warn_once

FOLDERS_KEPT = 4
SECONDS_UNUSED_BEFORE_REMOVAL = 24 * 3600
_PREFIX = "widemargin-"
_BYTES_OF_CHECKSUM = 4
_ADVICE = (
    "Every new process has to compile again. To keep compiled code, set the environment variable "
    "NUMBA_CACHE_DIR to a folder that can be written."
)


def roots():
    """Return the folders in which compiled code may be kept, the preferred one first."""
    if config.CACHE_DIR:
        return [Path(config.CACHE_DIR)]
    return [PACKAGE / "__pycache__", Path(AppDirs(appname="widemargin", appauthor=False).user_cache_dir)]


def folder():
    """Return the folder in which compiled code is written, made if it is absent and marked as used now.

    Raises
    ------
    OSError
        If no folder can be written.
    """
    return _folder(config.CACHE_DIR, digest_of_compiled_code())


@cache
def _folder(cache_dir, digest):
    errors = []
    for root in roots():
        place = root / f"{_PREFIX}{digest}"
        try:
            is_new = not place.is_dir()
            place.mkdir(parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=place).close()
            os.utime(place)
        except OSError as error:
            errors.append(error)
            continue
        if is_new:
            remove_unused(root)
        return place
    raise OSError(errors[-1].errno, f"no folder can be written: {errors[-1]}")


@cache
def _mark_as_used(place):
    """Set the time of a folder to now, once for each process; a folder that cannot be written is never removed."""
    with suppress(OSError):
        os.utime(place)


def remove_unused(root):
    """Remove all but the most recently used folders of compiled code; one used within a day stays."""
    used = {path: path.stat().st_mtime for path in root.glob(f"{_PREFIX}*") if path.is_dir()}
    for path in sorted(used, key=lambda path: used[path])[:-FOLDERS_KEPT]:
        if time.time() - used[path] > SECONDS_UNUSED_BEFORE_REMOVAL:
            shutil.rmtree(path, ignore_errors=True)  # another process may be removing it, too


class CodeCache(caching.NullCache):
    """The cache of one function, as Numba calls it: machine code by the types of the arguments.

    Parameters
    ----------
    function : function
        The Python function.
    """

    def __init__(self, function):
        self._function, self._is_enabled = function, True

    @property
    def cache_path(self):
        """The folder of compiled code, or None if none can be written."""
        try:
            return str(folder())
        except OSError:
            return None

    def load_overload(self, sig, target_context):
        """Return the machine code for the signature, or None if it is not on disk or cannot be read."""
        target_context.refresh()
        return self._load_shipped(sig, target_context) or self._load_kept(sig, target_context)

    def _load_shipped(self, sig, target_context):
        processor = target_context.codegen().magic_tuple()
        try:
            content = find(self._function, sig, digest_of_compiled_code(), processor)
        except zlib.error as error:
            return _tell_unreadable(FOLDER, error)
        return None if content is None else _read_or_tell(content, target_context, FOLDER)

    def _load_kept(self, sig, target_context):
        name, digest = self._name(sig, target_context), digest_of_compiled_code()
        for root in roots():
            place = root / f"{_PREFIX}{digest}"
            try:
                content = (place / name).read_bytes()
            except (FileNotFoundError, NotADirectoryError):
                continue
            except OSError as error:
                return _tell_unreadable(place, error)
            _mark_as_used(place)
            return _read_or_tell(content, target_context, place)
        return None

    def save_overload(self, sig, data):
        """Write the machine code for the signature; if that fails, warn and write no more."""
        if not self._is_enabled or data.library.has_dynamic_globals:
            return
        try:
            place = folder()
        except OSError as error:
            self._is_enabled = False
            warn_once(f"Compiled code is kept in memory only ({error}). {_ADVICE}", key="no cache folder")
            return
        try:
            _replace(place / self._name(sig, data.target_context), written(data))
        except OSError as error:
            self._is_enabled = False
            warn_once(f"Compiled code cannot be kept in {place} ({error}). {_ADVICE}", key="cannot be kept")

    def _name(self, sig, target_context):
        """Return the name of the file for a signature and this processor."""
        key = key_of(self._function, sig, target_context.codegen().magic_tuple())
        return f"{self._function.__name__}-{key}.nbc"


def _read_or_tell(content, target_context, place):
    """Return what Numba compiled from the bytes of a file in a folder; None, after a warning, if they are damaged."""
    try:
        return read(content, target_context)
    except Exception as error:  # a damaged file can raise almost any exception
        return _tell_unreadable(place, error)


def _tell_unreadable(place, error):
    warn_once(f"A file of compiled code in {place} cannot be read ({error!r}): compiling again.")


def written(result):
    """Return the bytes of a file for what Numba compiled: a checksum, and Numba's own form without comments."""
    content = dumps(result._replace(type_annotation="")._reduce())
    return zlib.crc32(content).to_bytes(_BYTES_OF_CHECKSUM, "little") + content


def read(content, target_context):
    """Return what Numba compiled from the bytes of a file; ValueError if they are damaged."""
    checksum, content = content[:_BYTES_OF_CHECKSUM], memoryview(content)[_BYTES_OF_CHECKSUM:]
    if zlib.crc32(content).to_bytes(_BYTES_OF_CHECKSUM, "little") != checksum:
        raise ValueError("the checksum does not agree")
    return compiler.CompileResult._rebuild(target_context, *pickle.loads(content))


def _replace(path, content):
    """Write a file under another name, and rename it."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=".tmp")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.replace(name, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(name)
        raise
