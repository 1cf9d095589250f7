"""All warnings of the package are issued here, and point to the line of the user's code that called the package.

That line is found by following the stack outwards until a frame is outside the package, however deep the call is. From
a worker thread the search continues in the thread that called `threads.run`. (Python 3.12 has `skip_file_prefixes`
for a single thread; Python 3.11 does not.)
"""

import os
import sys
import warnings

from widemargin._runtime.threads import outer_frame

# Frames of Numba are skipped too: its compiler may be on the stack between two frames of this package.
_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_INSIDE = f"{_PACKAGE}{os.sep}"
_issued_keys: set[tuple[object, ...]] = set()


def warn_caller(message, category=UserWarning):
    """Issue a warning that points to the line outside the package that called it.

    Parameters
    ----------
    message : str
    category : type, default=UserWarning
        The class of the warning.
    """
    frame = sys._getframe(1)
    while _is_inside(frame) and (further := outer_frame(frame)) is not None:
        frame = further
    variables = frame.f_globals
    warnings.warn_explicit(
        message,
        category,
        frame.f_code.co_filename,
        frame.f_lineno,
        module=variables.get("__name__", "<string>"),
        registry=variables.setdefault("__warningregistry__", {}),
    )


def _is_inside(frame):
    """Return whether a frame belongs to this package or to Numba."""
    return frame.f_code.co_filename.startswith(_INSIDE) or frame.f_globals.get("__name__", "").startswith("numba.")


def warn_once(message, key=None):
    """Warn once per process and message; messages with the same `key` count as the same message."""
    key = key or message
    if key not in _issued_keys:
        _issued_keys.add(key)
        warn_caller(message)
