"""What the programs print: the lines of a result on standard output, notes on standard error."""

from argparse import Namespace
from contextlib import contextmanager

from widemargin.cli.messages import reporting, say

_REPORT = Namespace(quiet=False, progress="auto")
_SILENT_REPORT = Namespace(quiet=True, progress="no")


def print_lines(lines, *, quiet=False):
    """Print lines on standard output, unless `quiet`."""
    if not quiet:
        for line in lines:
            print(line)


def note_options(program, arguments):
    """Print a note for each option that was given and has no effect here."""
    for letter, reason in program.notes.items():
        if letter in arguments.given:
            say("note", f"{letter} has no effect here: {reason}")


@contextmanager
def working(*, quiet=False):
    """Within the block, show progress on a terminal as the other commands do."""
    with reporting(_SILENT_REPORT if quiet else _REPORT):
        yield
