"""Exceptions and warnings of the workflows, and the names that their messages give to arguments.

    ValueError
     ├── ArgumentError         arguments contradict each other, or do not apply to the file
     └── FileError             a file can be read, but its content does not allow what was requested
          └── DefectiveFile    a data file breaks rules of its format
    UserWarning
     ├── FileWarning           the result differs from what was probably intended
     └── FileNote              a fact about a file that does not change the result

A message that suggests an argument writes it as in Python, for example `keep_zeros=True`. The command line calls the
same argument `--keep-zeros`. Messages therefore contain `spelled("keep_zeros=True")`, and the command line sets a table
of its own names with `spelling` while it runs a workflow.
"""

from contextlib import contextmanager
from contextvars import ContextVar

_names_of_caller = ContextVar("widemargin.workflows.errors", default=None)


class ArgumentError(ValueError):
    """Arguments contradict each other, or do not apply to the file."""


class FileError(ValueError):
    """A file can be read, but its content does not allow what was requested."""


class DefectiveFile(FileError):
    """A data file breaks rules of its format.

    Attributes
    ----------
    check : FileCheck
        The result of `check_file`, with every defect.
    """

    def __init__(self, message, check):
        super().__init__(message)
        self.check = check

    def __reduce__(self):
        return (type(self), (str(self), self.check))


class FileWarning(UserWarning):
    """The content of a file makes the result differ from what was probably intended."""


class FileNote(UserWarning):
    """A fact about a file that the user may want to know. It does not change the result."""


def spelled(argument):
    """Return the caller's name of an argument that is given as it is written in Python."""
    table = _names_of_caller.get()
    return argument if table is None else table[argument]


@contextmanager
def spelling(table):
    """Within the block, `spelled` looks names up in `table`, a dict from names in Python to those of the caller."""
    token = _names_of_caller.set(table)
    try:
        yield
    finally:
        _names_of_caller.reset(token)
