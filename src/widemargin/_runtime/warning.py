"""The one function that warns. A warning points to the line outside this package that called into it.

The line is found by walking out of the package, however deep the call is, and from a worker thread on into the thread
that handed out the work. Python 3.12 has `skip_file_prefixes` for this, 3.11 has not.
"""

import os
import sys
import warnings

import numba

from widemargin._runtime.threads import outer_frame

# Numba compiles, and may have something to be warned of, between our frames.
_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_INSIDE = tuple(folder + os.sep for folder in (_PACKAGE, os.path.dirname(os.path.abspath(numba.__file__))))
_said: set[tuple[object, ...]] = set()


def warn_caller(message, category=UserWarning):
    """Warn, pointing to the caller of this package.

    Parameters
    ----------
    message : str
    category : type, default=UserWarning
        The class of the warning.
    """
    frame = sys._getframe(1)
    while frame.f_code.co_filename.startswith(_INSIDE) and (further := outer_frame(frame)) is not None:
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


def warn_once(message, key=None):
    """Warn, unless this process has said it before; `key` stands for messages that say the same of several things."""
    key = key or message
    if key not in _said:
        _said.add(key)
        warn_caller(message)
