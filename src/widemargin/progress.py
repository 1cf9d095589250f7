"""Progress for people: a bar on a terminal, plain lines elsewhere. A callback; solvers know nothing of it."""

import math
import sys
import threading
import time

from rich.console import Console
from rich.progress import BarColumn, SpinnerColumn, TextColumn
from rich.progress import Progress as Bars

_SECONDS_BETWEEN_LINES = 2.0
_MOST_LAST_LINES = 3  # of several problems, say one per class; of more only the worst is worth a last line


class ProgressReport:
    """Draws what solvers report, on standard error.

    Parameters
    ----------
    verbose : int or bool
        0 is silent. On a terminal anything else is one bar per thread, filled as the logarithm of the gap, or of
        the violation that `tol` is compared with, falls to that of the tolerance; in a pipe 1 is a line every two
        seconds and at the end, 2 a line per turn.
    stream : file or None
        Where to write; None is standard error.
    """

    def __init__(self, verbose=1, stream=None):
        self.verbose = int(verbose)
        self._stream = sys.stderr if stream is None else stream
        self._lock = threading.Lock()
        self._bars, self._tasks, self._last_line, self._latest = None, {}, {}, {}

    def __enter__(self):
        if self.verbose and self._stream.isatty():
            columns = (SpinnerColumn(), BarColumn(bar_width=16), TextColumn("{task.description}", markup=False))
            self._bars = Bars(*columns, console=Console(file=self._stream), transient=False)
            self._bars.start()
        return self

    def __exit__(self, *error):
        if self._bars is not None:
            self._bars.stop()
            self._bars = None
        elif self.verbose == 1:
            self._write_last_lines()
        return False

    def __call__(self, progress):
        """Show one solver's progress; never asks it to stop."""
        with self._lock:
            if self._bars is not None:
                self._draw(progress)
            elif self.verbose:
                self._line(progress)

    def compiling(self):
        """Explain a wait: compiled loops are being built, once per installation."""
        if self.verbose:
            self._write("compiling (first use after installation; kept for later runs)")

    def _draw(self, progress):
        # A thread solves one problem at a time, so that there are never more bars than threads.
        thread = threading.get_ident()
        if thread not in self._tasks:
            self._tasks[thread] = self._bars.add_task("", total=1.0)
        self._bars.update(
            self._tasks[thread], completed=fraction(progress), description=describe(progress, briefly=True)
        )

    def _line(self, progress):
        now = time.monotonic()
        last = self._last_line.setdefault(progress.task, now)
        if self.verbose > 1 or now - last >= _SECONDS_BETWEEN_LINES:
            self._last_line[progress.task] = now
            self._latest.pop(progress.task, None)
            self._write(describe(progress))
        else:
            self._latest[progress.task] = progress

    def _write_last_lines(self):
        """Write what has not been written yet; of many problems, only about the one with the largest gap."""
        latest = list(self._latest.values())
        if len(latest) > _MOST_LAST_LINES:
            latest = [max(latest, key=lambda progress: progress.gap)]
        for progress in latest:
            self._write(describe(progress))

    def _write(self, text):
        if self._bars is not None:
            self._bars.console.print(text, highlight=False, markup=False)
        else:
            self._stream.write(text + "\n")
            self._stream.flush()


_TURNS = {"svmperf": "plane", "ocas": "plane", "newton": "step"}  # what a solver counts, if not sweeps


def describe(progress, *, briefly=False):
    """Return one line about a solver's progress; briefly, it fits beside a bar into 80 columns."""
    which = f"[{progress.task + 1}/{progress.n_tasks}] " if progress.n_tasks > 1 else ""
    objective = "" if briefly else f"objective {progress.primal:.6g}, "
    if math.isnan(progress.violation):
        turn = _TURNS.get(progress.solver, "sweep")
        state = f"{turn} {progress.iteration}, gap {progress.gap:.1e} (asked {progress.tol:.0e})"
    else:
        state = f"iteration {progress.iteration}, violation {progress.violation:.1e} (asked {progress.tol:.0e})"
    return f"{which}{progress.solver}: {state}, {objective}{progress.seconds:.1f} s"


def fraction(progress):
    """Return how far what is compared with the tolerance has come from 1 to it, as logarithms, between 0 and 1."""
    left = progress.gap if math.isnan(progress.violation) else progress.violation
    if left <= progress.tol:
        return 1.0
    if progress.tol <= 0.0 or left >= 1.0:
        return 0.0
    return min(math.log(left) / math.log(progress.tol), 1.0) if progress.tol < 1.0 else 0.0
