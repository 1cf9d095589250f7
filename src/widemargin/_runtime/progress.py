"""Progress for people: whatever takes longer than a moment tells how far it has come.

Work opens a `task` and advances it; solvers are given a report as a callback. Neither knows how it is shown, nor
whether: that is the affair of the report in force, if there is one. `show_progress()` puts one in force, and so does a
model with `verbose`, for as long as it works. A report belongs to the thread that opened it, and to tasks opened there;
these may be advanced from any thread.

rich keeps the rows and draws them, in `progress_bars`; it is imported by the first report that shows anything. Here
stand the words, and the rules about when a row or a line is due. An advance costs 0.04 µs if nobody looks,
1.2 µs beside bars and 1.6 µs beside lines; a solver's report costs 2.6 µs.
"""

import math
import os
import threading
import time
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar, copy_context
from typing import TextIO

from widemargin._runtime.forecast import Forecast, in_words

_SECONDS_BEFORE_BARS = 1.0  # what takes less is not worth a look
_SECONDS_BEFORE_MORE = 2.0  # what is a part of work with a bar: many short parts would make a restless picture
_SECONDS_BETWEEN_LINES = 2.0  # at first
_LATER_LINES = 0.1  # and then, of the seconds so far, so that the log of a long run stays short
_SIZES = (("GB", 1e9), ("MB", 1e6), ("kB", 1e3))
_FIRST_PERCENT = 1.0  # before it nobody knows how long the rest will take
_LONGEST_NAME = 30  # of a task, beside a bar and numbers on 80 columns
_LONGEST_BRIEF = 61  # words beside a bar on 80 columns
_MOST_LAST_LINES = 3  # of several problems, say one per class; of more only the worst is worth a last line

_in_force = ContextVar("widemargin._runtime.progress", default=None)
_open_reports: list["ProgressReport"] = []  # in any thread


def _forget_reports():
    """Take no report over into a forked child process, where the thread that draws does not exist."""
    _in_force.set(None)
    _open_reports.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_reports)


def is_in_force():
    """Return whether a report is open in any thread; one that is silent counts, too."""
    return bool(_open_reports)


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


def task(what, total=None, unit="", *, speed=False):
    """Return a `Task` of the report in force; if there is none, one that nobody sees.

    Parameters
    ----------
    what : str
        What is done, say "reading a9a".
    total : number, default=None
        How much there is to do; None if that is not known.
    unit : str, default=""
        Of the total: "bytes", "rows", "folds".
    speed : bool, default=False
        Of bytes, whether to show megabytes per second, too.

    Examples
    --------
    >>> from widemargin._runtime.progress import task
    >>> with task("counting", total=3, unit="sheep") as counting:
    ...     for sheep in range(3):
    ...         counting.advance()
    """
    report = _in_force.get()
    return _UNSEEN if report is None else report.task(what, total, unit, speed=speed)


def reporting(verbose):
    """Return a context with the report in force or, if there is none, with one that a model's `verbose` asks for."""
    report = _in_force.get()
    if report is not None:
        return nullcontext(report)
    return ProgressReport(verbose) if verbose else SILENCE


class Task:
    """Work with a beginning and an end; `with` opens and closes it."""

    def __init__(self, report, what, total, unit, speed=False):
        self._report, self.total, self.unit, self.row, self.has_line = report, total, unit, None, False
        self._has_speed = speed
        self.what = what if len(what) <= _LONGEST_NAME else f"{what[: _LONGEST_NAME - 3]}..."

    def __enter__(self):
        self._report._open(self)
        self.advanced = self.said = self.row.start_time
        return self

    def __exit__(self, kind, error, traceback):
        self._report._close(self, is_complete=kind is None)
        return False

    def advance(self, amount=1):
        """Tell that so much more is done; from any thread, some thousand times a second if need be."""
        self._report._advance(self, amount)

    def finished(self, n_problems):
        """Tell that this thread's solver is done with so many problems."""
        self._report._forget_solvers(threading.get_ident())
        self.advance(n_problems)

    def describe(self):
        """Return one line about how far it is."""
        if self.total is None:
            return f"{self.what}{self._speed()}, {_clock(self.row.elapsed)}"
        left = ""
        if self.row.percentage >= _FIRST_PERCENT:
            # As fast as up to the last advance, which may be a while ago.
            seconds = 100.0 * (self.advanced - self.row.start_time) / self.row.percentage - self.row.elapsed
            left = f", {_clock(max(seconds, 0.0))} left"
        return f"{self.what}: {self._extent()}{self._speed()}{left}"

    def describe_end(self, *, is_complete):
        """Return one line about work that is over."""
        extent = _amount(self.total, self.unit) if is_complete else f"stopped at {self._extent()}"
        return f"{self.what}: {extent}, {self.row.elapsed:.1f} s"

    def _speed(self):
        """Return the speed up to the last advance in words, or nothing."""
        seconds = self.advanced - self.row.start_time if self._has_speed else 0.0
        return f", {self.row.completed / 1e6 / seconds:,.0f} MB/s" if seconds > 0.0 else ""

    def _extent(self):
        percent = f"{math.floor(self.row.percentage)}%"
        if self.unit == "bytes" or self.total >= 1000:
            return f"{percent} of {_amount(self.total, self.unit)}"
        return f"{self.row.completed:g} of {_amount(self.total, self.unit)}, {percent}"


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
        logarithm of the gap, or of the violation that `tol` is compared with, falls to that of the tolerance. If one
        problem is all there is to solve and its gap falls steadily, the time left of the fit is estimated, too.
        Elsewhere 1 is a line after two seconds, then more and more seldom, 2 a line per iteration of a solver.
    stream : file or None
        Where to write; None is standard error, or the output of the cell in a notebook.
    last_lines : bool
        Whether every solver leaves a last line, also one that was not shown before.
    above : callable or None
        Returns what rich is to draw above the bars of a terminal.
    """

    def __init__(self, verbose=1, stream=None, *, last_lines=True, above=None):
        self.verbose = int(verbose)
        self._stream, self._last_lines, self._above = stream, last_lines, above
        self._lock, self._drawing = threading.Lock(), threading.RLock()  # a terminal may block who draws, nobody else
        self._tasks, self._solvers = [], {}  # those open; by thread, the row of its solver
        self._said, self._shown, self._latest = {}, set(), {}  # by problem: last line when, was seen, not yet written
        self._forecast = Forecast()
        self._has_told_of_compiling = False

    def __enter__(self):
        self._outer = _in_force.get()
        _in_force.set(self)
        _open_reports.append(self)
        if self.verbose:
            from widemargin._runtime.progress_bars import screen_for  # rich takes 50 ms to import

            self._screen, self._over = screen_for(self._stream, _due, self._above), threading.Event()
            if self._screen.has_bars:
                # A notebook finds by the context to which cell an output belongs.
                self._ticker = threading.Thread(target=copy_context().run, args=(self._tick, self._over), daemon=True)
                self._ticker.start()
        return self

    def __exit__(self, *error):
        _in_force.set(self._outer)
        if self in _open_reports:
            _open_reports.remove(self)
        if self.verbose:
            self._write_last_lines(shown_only=not self._last_lines)
            self._over.set()
            with self._drawing:
                self._screen.close()
        return False

    def task(self, what, total=None, unit="", *, speed=False):
        """Return a `Task` to be shown here; see `widemargin._runtime.progress.task`."""
        return Task(self, what, total, unit, speed) if self.verbose else _UNSEEN

    def solving(self, n_problems, unit="problems"):
        """Return a task for the solving of so many problems, by solvers that have this report as a callback."""
        return self._solving(n_problems, unit) if self.verbose else _UNSEEN

    @contextmanager
    def _solving(self, n_problems, unit):
        """Open the task of `solving`."""
        self._forecast = Forecast()
        with self.task("solving", n_problems if n_problems > 1 else None, unit) as task:
            try:
                yield task
            finally:
                self._forget_solvers()
                self._write_last_lines(shown_only=not self._last_lines or len(self._tasks) > 1)

    def __call__(self, progress):
        """Show one solver's progress; never asks it to stop."""
        if not self.verbose:
            return
        now = time.monotonic()
        with self._lock:
            is_due = self._is_due(progress, now)
            seconds_left = self._seconds_left(progress)
            self._latest[progress.task] = progress
            if is_due:
                self._said[progress.task] = now
                self._shown.add(progress.task)
            if self._screen.has_bars:
                self._show_solver(progress, now, seconds_left)
            elif is_due:
                self._write(describe(self._latest.pop(progress.task), seconds_left=seconds_left))

    def compiling(self):
        """Explain a wait, once: compiled loops are being built, once per installation."""
        if self.verbose and not self._has_told_of_compiling:
            self._has_told_of_compiling = True
            self._write("compiling (first use after installation; kept for later runs)")

    # Tasks

    def _open(self, task):
        with self._lock:
            number = self._screen.add_task(task.what, total=task.total)
            task.row = next(row for row in self._screen.tasks if row.id == number)
            self._screen.update(number, words=task.describe)
            self._tasks.append(task)

    def _advance(self, task, amount):
        """Count what a task has done; it may be time for a line."""
        with self._lock:
            if task in self._tasks:  # and not closed while threads still work
                self._screen.advance(task.row.id, amount)
                task.advanced = now = time.monotonic()
                if not self._screen.has_bars and now - task.said >= _seconds_between(task.row.elapsed):
                    task.said, task.has_line = now, True
                    self._write(task.describe())

    def _close(self, task, *, is_complete):
        """Show a task no longer; one that was seen leaves a line where lines stay."""
        with self._lock:
            self._tasks.remove(task)
            self._screen.remove_task(task.row.id)
            is_outermost = not self._tasks
        stays = task.has_line and is_complete
        if self._screen.keeps_lines:
            stays = is_outermost and task.row.elapsed >= _SECONDS_BEFORE_BARS
        if stays and task.total is not None:
            self._write(task.describe_end(is_complete=is_complete))
        if is_outermost:
            self._draw()  # what others write from now on begins on a line of its own

    # Solvers

    def _seconds_left(self, progress):
        """Return the time left of the whole fit, or None: if there is more to do than one problem, nobody knows."""
        if progress.n_tasks > 1 or any(one.total is not None for one in self._tasks):
            return None
        if not math.isnan(progress.violation):
            return None if math.isnan(progress.seconds_left) else progress.seconds_left
        self._forecast.add(progress.seconds, progress.gap, progress.tol)
        return self._forecast.seconds_left(progress.seconds)

    def _show_solver(self, progress, now, seconds_left):
        """Set the row of this thread's solver."""

        def words():
            more = time.monotonic() - now
            left = None if seconds_left is None or seconds_left <= more else seconds_left - more
            return describe(progress, briefly=True, more_seconds=more, seconds_left=left)

        thread = threading.get_ident()
        if thread not in self._solvers:
            self._solvers[thread] = self._screen.add_task(progress.solver, total=1.0)
        begun = now - progress.seconds
        self._screen.update(self._solvers[thread], completed=fraction(progress), words=words, solver_begun=begun)

    def _forget_solvers(self, thread=None):
        """Show the solver of a thread no longer; None is all."""
        with self._lock:
            for one in [one for one in self._solvers if thread in (None, one)]:
                self._screen.remove_task(self._solvers.pop(one))

    def _is_due(self, progress, now):
        """Tell whether a problem is to have a line now or, beside bars, has been seen there."""
        if self._screen.has_bars:
            return progress.seconds >= _SECONDS_BEFORE_BARS and self._screen.keeps_lines
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

    # Drawing

    def _tick(self, over):
        while not over.wait(self._screen.seconds_between):
            self._draw()

    def _draw(self):
        with self._drawing:
            if not self._over.is_set():
                self._screen.draw()

    def _write(self, text):
        with self._drawing:
            self._screen.write(text)


SILENCE = nullcontext(ProgressReport(0))  # the context of a report that nobody sees


def _due(rows):
    """Return those of rich's rows that have been there long enough to be drawn: tasks, then solvers."""
    now = time.monotonic()
    tasks = [row for row in rows if "words" in row.fields and "solver_begun" not in row.fields]
    seconds = _SECONDS_BEFORE_MORE if any(row.total is not None for row in tasks) else _SECONDS_BEFORE_BARS
    solvers = [row for row in rows if "solver_begun" in row.fields and now - row.fields["solver_begun"] >= seconds]
    limits = [_SECONDS_BEFORE_BARS] + [_SECONDS_BEFORE_MORE] * len(tasks)
    seen = [row for row, seconds in zip(tasks, limits, strict=False) if row.elapsed >= seconds]
    return [row for row in seen if row.total is not None or not solvers] + solvers


def describe(progress, *, briefly=False, more_seconds=0.0, seconds_left=None):
    """Return one line about a solver's progress; briefly, it fits beside a bar into 80 columns.

    If it is known how long the fit will still take, the brief line has that instead of the seconds so far.
    """
    which = f"[{progress.task + 1}/{progress.n_tasks}] " if progress.n_tasks > 1 else ""
    objective = "" if briefly else f"objective {progress.primal:.6g}, "
    if math.isnan(progress.violation):
        turn = progress.counts.removesuffix("s")
        state = f"{turn} {progress.iteration}, gap {progress.gap:.1e} (asked {progress.tol:.0e})"
    else:
        state = f"iteration {progress.iteration}, violation {progress.violation:.1e} (asked {progress.tol:.0e})"
        objective = "" if briefly else f"{_kernel_words(progress)}{objective}"
    left, seconds = in_words(seconds_left), f"{progress.seconds + more_seconds:.1f} s"
    if not left:
        return f"{which}{progress.solver}: {state}, {objective}{seconds}"
    if not briefly:
        return f"{which}{progress.solver}: {state}, {objective}{seconds}, {left}"
    text = f"{progress.solver}: {state}, {left}"
    return text if len(text) <= _LONGEST_BRIEF else f"{progress.solver}: {state.partition(' (')[0]}, {left}"


def _kernel_words(progress):
    """Return what a kernel solver tells beyond its violation: the gap when last measured, rows, and cache hits."""
    gap = f"gap {progress.gap:.1e}, " if progress.gap < 1.0 else ""
    rows = "" if math.isnan(progress.rows) else f"{progress.rows:,.0f} kernel rows, "
    return f"{gap}{rows}" + ("" if math.isnan(progress.hits) else f"{progress.hits:.0%} cache hits, ")


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
