"""A line on the terminal while functions are compiled, so that the first fit does not seem to hang.

It is shown only if standard error is a terminal, and no report of progress is open: one that is shown tells of it by
itself, and a silent one, as by `--quiet`, asks for silence. The line is erased when the compilation is over.
"""

import sys
import threading
from contextlib import suppress

from widemargin._runtime import progress

_ERASE = "\r\x1b[K"


class Notice:
    """Shows what is being compiled; compilations nest, and the outermost is told of."""

    def __init__(self):
        self._depths = {}  # by thread

    def begin(self, data):
        """Tell of a compilation that begins; `data` are those of Numba's event."""
        thread = threading.get_ident()
        depth = self._depths[thread] = self._depths.get(thread, 0) + 1
        if depth == 1 and _is_wanted():
            dispatcher = (data or {}).get("dispatcher")
            name = getattr(getattr(dispatcher, "py_func", None), "__name__", "a function").strip("_")
            _write(f"{_ERASE}widemargin: compiling {name} {_where()}")

    def end(self):
        """Erase the line when the outermost compilation of a thread has ended."""
        thread = threading.get_ident()
        depth = self._depths[thread] = self._depths.get(thread, 1) - 1
        if depth == 0:
            del self._depths[thread]
            if _is_wanted():
                _write(_ERASE)


def _is_wanted():
    """Return whether standard error is a terminal on which no progress is shown."""
    try:
        return sys.stderr is not None and sys.stderr.isatty() and not progress.is_in_force()
    except ValueError:  # a closed stream
        return False


def _where():
    from widemargin._runtime.code_cache import folder

    try:
        return f"(once; kept in {folder()})"
    except OSError:
        return "(no folder can be written, so every new process compiles again; see NUMBA_CACHE_DIR)"


def _write(text):
    with suppress(OSError, ValueError):
        sys.stderr.write(text)
        sys.stderr.flush()
