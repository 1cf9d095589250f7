"""Progress of a command: on a terminal, or where it was asked for; a log or a pipe gets none otherwise."""

import sys
from contextlib import contextmanager

from widemargin._runtime.compile import announcing_compilation
from widemargin._runtime.progress import ProgressReport
from widemargin.cli.messages import UsageError, warnings_afterwards


def add_progress_option(group):
    """Add --progress to a parser, or to a group of options, of a command that has --quiet."""
    group.add_argument(
        "--progress",
        choices=["auto", "yes", "no"],
        default="auto",
        help="on standard error, of what takes longer than a second: on a terminal bars; elsewhere nothing if "
        "auto, lines if yes, every two seconds at first, then more and more seldom (default: auto)",
    )


def wants_progress(options):
    """Whether the options, or the terminal, ask for progress."""
    if options.quiet and options.progress == "yes":
        raise UsageError("--progress yes and -q/--quiet contradict each other; leave one of them out")
    is_wanted = options.progress == "yes" or (options.progress == "auto" and sys.stderr.isatty())
    return is_wanted and not options.quiet


@contextmanager
def reporting(options):
    """Within the block, show progress as the options say, and if there is compiling to wait for; hold warnings back."""
    report = ProgressReport(wants_progress(options), last_lines=False)
    with warnings_afterwards(notes=not options.quiet), report, announcing_compilation(report.compiling):
        yield
