"""How messages write an argument: as in Python, or as whoever calls the functions writes it.

The way out of a mistake names an argument: in Python `keep_zeros=True`, at the shell `--keep-zeros`. Code writes
`spelled("keep_zeros=True")`, and the command line puts its table of options in force for as long as it runs.
"""

from contextlib import contextmanager
from contextvars import ContextVar

_in_force = ContextVar("widemargin.workflows.spelling", default=None)


def spelled(argument):
    """Return an argument, given as in Python, as the caller of the package writes it."""
    table = _in_force.get()
    return argument if table is None else table[argument]


@contextmanager
def spelling(table):
    """Within the block, write arguments as the table says: a dict from each one in Python to its other form."""
    token = _in_force.set(table)
    try:
        yield
    finally:
        _in_force.reset(token)
