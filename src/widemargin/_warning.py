"""Warnings point at the caller's line: the innermost one outside this package and outside the packages it runs in."""

import sys
import warnings

_INSIDE = ("widemargin", "numba")
_said = set()


def warn_caller(message, category=UserWarning):
    """Warn, pointing at the innermost line that is neither in this package nor in Numba."""
    frame, depth = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in _INSIDE:
        frame, depth = frame.f_back, depth + 1
    warnings.warn(message, category, stacklevel=depth)


def warn_once(message, key=None):
    """Warn, unless this process has said it before; `key` stands for messages that say the same of several things."""
    key = key or message
    if key not in _said:
        _said.add(key)
        warn_caller(message)
