"""Progress for people: whatever takes longer than a moment tells how far it has come.

Work opens a `task` and advances it; solvers are given a report as a callback. Neither knows how it is shown, nor
whether: that is the affair of the report in force, if there is one. `show_progress()` puts one in force, and so does a
model with `verbose`, for as long as it works. A report belongs to the thread that opened it, and to tasks opened there;
these may be advanced from any thread.
"""

import math
import os
import sys
import threading
import time
from contextlib import nullcontext
from contextvars import ContextVar, copy_context
from typing import TextIO

from widemargin._runtime.progress_bars import Row, canvas_for

_SECONDS_BEFORE_BARS = 1.0  # what takes less is not worth a look
_SECONDS_BEFORE_MORE = 2.0  # what is a part of work with a bar: many short parts would make a restless picture
_SECONDS_BETWEEN_LINES = 2.0  # at first
_LATER_LINES = 0.1  # and then, of the seconds so far, so that the log of a long run stays short
_SIZES = (("GB", 1e9), ("MB", 1e6), ("kB", 1e3))
_FIRST_SHARE = 0.01  # before it nobody knows how long the rest will take
_LONGEST_NAME = 30  # of a task, beside a bar and numbers on 80 columns
_MOST_LAST_LINES = 3  # of several problems, say one per class; of more only the worst is worth a last line

_in_force = ContextVar("widemargin._runtime.progress", default=None)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=lambda: _in_force.set(None))  # the parent's thread does not draw there


def show_progress(stream: TextIO | None = None) -> "ProgressReport":
    """Return a context in which reading, fitting, predicting and searching show how far they have come.

    What is done within a second is not shown. On a terminal there are bars, which are gone in the end; in a
    notebook one output with bars, in the end with a line for each; elsewhere lines, at first every two seconds, then
    as often as a tenth more time has passed. Models need no `verbose` for it.

    Parameters
    ----------
    stream : file, default=None
        Where to write; None is standard error, or the output of the cell in a notebook.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from widemargin import SVC
    >>> from widemargin._runtime.progress import show_progress
    >>> X, y = load_iris(return_X_y=True)
    >>> with show_progress():
    ...     labels = SVC().fit(X, y).predict(X)
    """
    return ProgressReport(1, stream, last_lines=False)


def task(what, total=None, unit=""):
    """Return a `Task` of the report in force; if there is none, one that nobody sees.

    Parameters
    ----------
    what : str
        What is done, say "reading a9a".
    total : number, default=None
        How much there is to do; None if that is not known.
    unit : str, default=""
        Of the total: "bytes", "rows", "folds".

    Examples
    --------
    >>> from widemargin._runtime.progress import task
    >>> with task("counting", total=3, unit="sheep") as counting:
    ...     for sheep in range(3):
    ...         counting.advance()
    """
    report = _in_force.get()
    return _UNSEEN if report is None else report.task(what, total, unit)


def reporting(verbose):
    """Return a context with the report in force or, if there is none, with one that a model's `verbose` asks for."""
    report = _in_force.get()
    if report is not None:
        return nullcontext(report)
    return ProgressReport(verbose) if verbose else nullcontext(_SILENT)


class Task:
    """Work with a beginning and an end; `with` opens and closes it."""

    def __init__(self, report, what, total, unit):
        self._report = report
        self.what = what if len(what) <= _LONGEST_NAME else f"{what[: _LONGEST_NAME - 3]}..."
        self.total, self.unit, self.done = total, unit, 0
        self.begun = self.advanced = self.said = time.monotonic()
        self.has_line = False

    def __enter__(self):
        self._report._open(self)
        return self

    def __exit__(self, kind, error, traceback):
        self._report._close(self, is_complete=kind is None)
        return False

    def advance(self, amount=1):
        """Tell that so much more is done; from any thread, some thousand times a second if need be."""
        self._report._advance(self, amount)

    @property
    def share(self):
        """How much is done, between 0 and 1; None if nobody knows."""
        return None if self.total is None else min(self.done / self.total, 1.0) if self.total else 1.0

    def describe(self, now):
        """Return one line about how far it is."""
        if self.total is None:
            return f"{self.what}, {_clock(now - self.begun)}"
        left = ""
        if self.share >= _FIRST_SHARE:
            # As fast as up to the last advance, which may be a while ago.
            spent = self.advanced - self.begun
            left = f", {_clock(max(spent / self.share - (now - self.begun), 0.0))} left"
        return f"{self.what}: {self._extent()}{left}"

    def describe_end(self, now, *, is_complete):
        """Return one line about work that is over."""
        seconds = f"{now - self.begun:.1f} s"
        if is_complete:
            return f"{self.what}: {_amount(self.total, self.unit)}, {seconds}"
        return f"{self.what}: stopped at {self._extent()}, {seconds}"

    def _extent(self):
        percent = f"{math.floor(100 * self.share)}%"
        if self.unit == "bytes" or self.total >= 1000:
            return f"{percent} of {_amount(self.total, self.unit)}"
        return f"{self.done:g} of {_amount(self.total, self.unit)}, {percent}"


class Solving(Task):
    """The solving of problems by solvers that have the report as a callback."""

    def __exit__(self, kind, error, traceback):
        self._report._end_solving()
        return super().__exit__(kind, error, traceback)

    def finished(self, n_problems):
        """Tell that this thread's solver is done with so many problems."""
        self._report._forget_solver()
        self.advance(n_problems)


class _Unseen:
    """The task that nobody sees."""

    def __enter__(self):
        return self

    def __exit__(self, *error):
        return False

    def advance(self, amount=1):
        """Tell nobody."""

    finished = advance


_UNSEEN = _Unseen()


class ProgressReport:
    """Shows tasks and what solvers report: bars on a terminal or in a notebook, lines elsewhere.

    Parameters
    ----------
    verbose : int or bool
        0 is silent, and silences the `verbose` of models. On a terminal or in a notebook anything else is a bar for
        what takes longer than a second: that of a task has the time left, that of a solver is filled as the
        logarithm of the gap, or of the violation that `tol` is compared with, falls to that of the tolerance.
        Elsewhere 1 is a line after two seconds, then more and more seldom, 2 a line per turn of a solver.
    stream : file or None
        Where to write; None is standard error, or the output of the cell in a notebook.
    last_lines : bool
        Whether every solver leaves a last line, also one that was not shown before.
    """

    def __init__(self, verbose=1, stream=None, *, last_lines=True):
        self.verbose = int(verbose)
        self._stream, self._last_lines = stream, last_lines
        self._lock, self._drawing, self._over = threading.Lock(), threading.RLock(), threading.Event()
        self._canvas = self._ticker = self._outer = None
        self._tasks, self._solvers = [], {}  # those open; by thread, what its solver reported and when
        self._said, self._shown, self._latest = {}, set(), {}  # by problem: last line when, was seen, not yet written
        self._has_told_of_compiling = False

    def __enter__(self):
        self._outer = _in_force.get()
        _in_force.set(self)
        if self.verbose:
            self._canvas, self._ticker = canvas_for(self._stream), None
            self._over.clear()
        return self

    def __exit__(self, *error):
        _in_force.set(self._outer)
        if self.verbose:
            self._write_last_lines(shown_only=not self._last_lines)
            self._over.set()
            try:
                if self._ticker is not None:
                    self._ticker.join()
            finally:
                if self._canvas is not None:
                    self._canvas.close()
        return False

    def task(self, what, total=None, unit=""):
        """Return a `Task` to be shown here; see `widemargin._runtime.progress.task`."""
        return Task(self, what, total, unit) if self.verbose else _UNSEEN

    def solving(self, n_problems, unit="problems"):
        """Return a task for the solving of so many problems, by solvers that have this report as a callback."""
        return Solving(self, "solving", n_problems if n_problems > 1 else None, unit) if self.verbose else _UNSEEN

    def __call__(self, progress):
        """Show one solver's progress; never asks it to stop."""
        if not self.verbose:
            return
        now = time.monotonic()
        with self._lock:
            is_due = self._is_due(progress, now)
            self._solvers[threading.get_ident()] = progress, now
            self._latest[progress.task] = progress
            if is_due:
                self._said[progress.task] = now
                self._shown.add(progress.task)
                if self._canvas is None:
                    del self._latest[progress.task]
                    self._write(describe(progress))
        self._draw_from_now_on()

    def compiling(self):
        """Explain a wait, once: compiled loops are being built, once per installation."""
        if self.verbose and not self._has_told_of_compiling:
            self._has_told_of_compiling = True
            self._write("compiling (first use after installation; kept for later runs)")

    # Tasks

    def _open(self, task):
        """Begin to show a task."""
        with self._lock:
            self._tasks.append(task)
        self._draw_from_now_on()

    def _advance(self, task, amount):
        """Count what a task has done; it may be time for a line."""
        now = time.monotonic()
        with self._lock:
            task.done += amount
            task.advanced = now
            if self._canvas is None and now - task.said >= _seconds_between(now - task.begun):
                task.said, task.has_line = now, True
                self._write(task.describe(now))

    def _close(self, task, *, is_complete):
        """Show a task no longer; one that was seen leaves a line where lines stay."""
        now = time.monotonic()
        with self._lock:
            self._tasks.remove(task)
            is_outermost = not self._tasks
        if self._canvas is None:
            stays = task.has_line and is_complete
        else:
            stays = self._canvas.is_lasting and is_outermost and now - task.begun >= _SECONDS_BEFORE_BARS
        if stays and task.total is not None:
            self._write(task.describe_end(now, is_complete=is_complete))
        if self._canvas is not None and self._canvas.is_shown and not self._rows():
            self._draw()  # nothing: what others write now begins on a line of its own

    def _forget_solver(self):
        """Show the solver of this thread no longer."""
        with self._lock:
            self._solvers.pop(threading.get_ident(), None)

    def _end_solving(self):
        """Show no solver any longer; write last lines, within another task only those of solvers that were seen."""
        with self._lock:
            self._solvers.clear()
        self._write_last_lines(shown_only=not self._last_lines or len(self._tasks) > 1)

    # Bars

    def _draw_from_now_on(self):
        """Start the thread that draws, if it is not there and there is something to draw on."""
        if self._canvas is not None and self._ticker is None:
            with self._lock:
                if self._ticker is None:
                    # A notebook finds by the context to which cell an output belongs.
                    self._ticker = threading.Thread(target=copy_context().run, args=(self._tick,), daemon=True)
                    self._ticker.start()

    def _tick(self):
        while not self._over.wait(self._canvas.seconds_between):
            self._draw()

    def _draw(self):
        with self._drawing:
            if not self._over.is_set():
                self._canvas.draw(self._rows())

    def _rows(self):
        """Return a row for each task and solver that has been at it long enough."""
        now = time.monotonic()
        with self._lock:
            is_part = any(task.total is not None for task in self._tasks)
            solvers = [
                Row(describe(progress, briefly=True, more_seconds=now - heard), fraction(progress))
                for progress, heard in self._solvers.values()
                if progress.seconds + now - heard >= (_SECONDS_BEFORE_MORE if is_part else _SECONDS_BEFORE_BARS)
            ]
            tasks = [
                Row(task.describe(now), task.share)
                for k, task in enumerate(self._tasks)
                if now - task.begun >= (_SECONDS_BEFORE_MORE if k else _SECONDS_BEFORE_BARS)
                and not (task.total is None and solvers)
            ]
        return tasks + solvers

    # Lines

    def _is_due(self, progress, now):
        """Tell whether a problem is to have a line now or, on a canvas, has been seen there."""
        if self._canvas is not None:
            return progress.seconds >= _SECONDS_BEFORE_BARS and self._canvas.is_lasting
        said = self._said.setdefault(progress.task, now)
        return self.verbose > 1 or now - said >= _seconds_between(progress.seconds)

    def _write_last_lines(self, *, shown_only):
        """Write what has not been written yet; of many problems, only about the one with the largest gap."""
        with self._lock:
            latest = [one for one in self._latest.values() if one.task in self._shown or not shown_only]
            self._said, self._shown, self._latest = {}, set(), {}
        if len(latest) > _MOST_LAST_LINES:
            latest = [max(latest, key=lambda progress: progress.gap)]
        for progress in latest:
            self._write(describe(progress))

    def _write(self, text):
        if self._canvas is not None:
            with self._drawing:
                self._canvas.write(text)
        else:
            stream = sys.stderr if self._stream is None else self._stream
            stream.write(text + "\n")
            stream.flush()


_SILENT = ProgressReport(0)


def describe(progress, *, briefly=False, more_seconds=0.0):
    """Return one line about a solver's progress; briefly, it fits beside a bar into 80 columns."""
    which = f"[{progress.task + 1}/{progress.n_tasks}] " if progress.n_tasks > 1 else ""
    objective = "" if briefly else f"objective {progress.primal:.6g}, "
    if math.isnan(progress.violation):
        turn = progress.counts.removesuffix("s")
        state = f"{turn} {progress.iteration}, gap {progress.gap:.1e} (asked {progress.tol:.0e})"
    else:
        state = f"iteration {progress.iteration}, violation {progress.violation:.1e} (asked {progress.tol:.0e})"
    return f"{which}{progress.solver}: {state}, {objective}{progress.seconds + more_seconds:.1f} s"


def fraction(progress):
    """Return how far what is compared with the tolerance has come from 1 to it, as logarithms, between 0 and 1."""
    left = progress.gap if math.isnan(progress.violation) else progress.violation
    if left <= progress.tol:
        return 1.0
    if progress.tol <= 0.0 or left >= 1.0:
        return 0.0
    return min(math.log(left) / math.log(progress.tol), 1.0) if progress.tol < 1.0 else 0.0


def _seconds_between(seconds):
    """Return how long to wait between two lines, `seconds` after the beginning."""
    return max(_SECONDS_BETWEEN_LINES, _LATER_LINES * seconds)


def _clock(seconds):
    """Return a time as minutes:seconds, with hours if there are any."""
    minutes, seconds = divmod(math.ceil(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"


def _amount(number, unit):
    """Return an amount in words; bytes have three digits, or all before the point if those are more."""
    if unit != "bytes":
        return f"{number:,} {unit}".rstrip()
    if number < 1000:
        return f"{number:.0f} {unit}"
    name, size = next((one for one in _SIZES if number >= 0.9995 * one[1]), _SIZES[-1])  # 999.6 kB is 1 MB
    return f"{number / size:.3g} {name}" if number < 999.5 * size else f"{number / size:,.0f} {name}"
