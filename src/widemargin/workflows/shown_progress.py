"""Progress of a workflow that is asked to show it."""

from contextlib import contextmanager

from widemargin._runtime.compile import announcing_compilation
from widemargin._runtime.progress import ProgressReport


@contextmanager
def shown_progress(verbose):
    """Within the block, show progress if `verbose`; otherwise leave the report in force as it is."""
    if not verbose:
        yield
        return
    with ProgressReport(verbose, last_lines=False) as report, announcing_compilation(report.compiling):
        yield
