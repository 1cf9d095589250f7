"""The process of a worker."""

import atexit
import gc
from functools import cache

from distributed import Worker


def end_quickly(worker: Worker) -> None:
    """Make the process of a worker end quickly, if it is a process of its own, which a nanny has started.

    When Python ends, it searches all objects for cycles. With Numba, SciPy and scikit-learn there are more than a
    million of them, and on a busy machine the search lasts longer than the four seconds after which the nanny kills the
    process, with a warning. Memory goes back to the system anyway.
    """
    if worker.nanny is not None:
        _freeze_at_exit()


@cache
def _freeze_at_exit():
    atexit.register(gc.freeze)
