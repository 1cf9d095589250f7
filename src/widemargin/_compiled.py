"""How every compiled loop of the package is compiled: the one place that says so.

Cached on disk, the interpreter's lock released, serial (threads live outside, in `_threads`). No signatures,
so that importing compiles nothing. Division follows NumPy: dividing by zero gives an infinity, not an exception,
so a loop divides only where it knows the denominator to be positive.
"""

from contextlib import contextmanager

import numba
from numba.core import event

SUMS = frozenset({"reassoc", "contract"})
"""fastmath flags for sums: terms may be reordered and fused; NaN and infinities keep their meaning."""


def compiled(function=None, *, fastmath=False):
    """Compile a loop over arrays, numbers and NamedTuples of arrays; `fastmath=SUMS` only on plain sums."""
    flags = set(fastmath) if fastmath else False
    jit = numba.njit(cache=True, nogil=True, error_model="numpy", fastmath=flags)
    return jit if function is None else jit(function)


class _FirstCompilation(event.Listener):
    """Calls `tell` when the first function is compiled; functions loaded from the disk cache do not count."""

    def __init__(self, tell):
        self._tell = tell

    def on_start(self, event):
        if self._tell is not None:
            tell, self._tell = self._tell, None
            tell()

    def on_end(self, event):
        """Nothing to say when a compilation ends."""


@contextmanager
def announcing_compilation(tell):
    """Within the block, call `tell()` once if anything has to be compiled: the wait needs an explanation."""
    listener = _FirstCompilation(tell)
    event.register("numba:compile", listener)
    try:
        yield
    finally:
        event.unregister("numba:compile", listener)
