"""Who is told that a function is compiled. `jit` tells it, once Numba is imported.

Loading a function from the disk is not a compilation.
"""

from contextlib import contextmanager

listeners: list = []
"""(before, after) functions, those of the outermost block first."""


def _nothing():
    """Do nothing."""


@contextmanager
def before_compilation(call, then=_nothing):
    """Within the block, call `call()` before each compilation of a function, and `then()` after it."""
    listener = call, then
    listeners.append(listener)
    try:
        yield
    finally:
        listeners.remove(listener)


@contextmanager
def announcing_compilation(tell):
    """Within the block, call `tell()` once, before the first compilation, so that the wait can be explained."""
    announced = []

    def first():
        if not announced:
            announced.append(True)
            tell()

    with before_compilation(first):
        yield
