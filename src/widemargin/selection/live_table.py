"""Display of a running grid search: a table of the scores so far, and a progress bar with the remaining time.

Both are drawn on a terminal. A notebook shows the progress bar only, because the result has its own figure there. In
other places one line is written for each point. With verbose=0 nothing is shown here, but the search is still a task of
an enclosing `show_progress`, if there is one.
"""

import math
import sys
import threading
from contextlib import ExitStack
from numbers import Real

from widemargin._runtime.progress import ProgressReport, task
from widemargin.selection.grid_result import ordering

_MAX_COLUMNS = 12  # a wider table would not fit on a terminal; then only the best points are listed
_LISTED = 8


class GridReport:
    """Shows the results of a search as they come, on standard error.

    Parameters
    ----------
    verbose : int or bool
        0 is silent.
    scoring : str
        Name of the score.
    stream : file or None
        Stream to write to; None is standard error.

    Attributes
    ----------
    is_shown : bool
        Whether anything is shown.
    """

    def __init__(self, verbose, scoring, stream=None):
        self.is_shown, self._scoring = bool(verbose), scoring
        self._stream = sys.stderr if stream is None else stream
        self._lock, self._result, self._points = threading.Lock(), None, []
        self._bars, self._fits = ExitStack(), ExitStack()
        self._console, self._is_live, self._task = None, False, None

    def __enter__(self):
        if self.is_shown:
            from rich.console import Console  # takes a while to import

            self._console = Console(file=self._stream)
            self._is_live = self._console.is_terminal or self._console.is_jupyter
        if self._is_live:
            stream = None if self._console.is_jupyter else self._stream
            self._bars.enter_context(ProgressReport(1, stream, last_lines=False, above=self._draw))
        return self

    def __exit__(self, *error):
        self._fits.__exit__(*error)
        self._bars.close()
        if self._is_live and not self._console.is_jupyter and self._task is not None:
            self._console.print(self._draw())
            self._console.print(self._task.describe_end(is_complete=error[0] is None), highlight=False, markup=False)
        return False

    def begin(self, result, points, n_fits):
        """Announce the points that will be computed, and the number of fits."""
        with self._lock:
            self._result, self._points = result, points
        self._fits.close()
        self._task = self._fits.enter_context(task("grid", n_fits, "fits"))

    def done(self, point, result):
        """Report a finished fit; `result` is the GridResult so far if this fit completed its point, otherwise None."""
        if result is not None:
            with self._lock:
                self._result = result
        self._task.advance()
        if result is not None and self.is_shown and not self._is_live:
            mean = dict(zip(map(_key, result.points), result.means, strict=True))[_key(point)]
            best = f"best {in_words(result.best_params)}: {shown(result.best_score, self._scoring)}"
            self._stream.write(f"{in_words(point)}: {self._scoring} {shown(mean, self._scoring)} ({best})\n")
            self._stream.flush()

    def _draw(self):
        with self._lock:
            result, points = self._result, self._points
        return grid_table(result, points) if result is not None and points else ""


def grid_table(result, points):
    """Return a table of the scores: C across and another parameter down if there are two, else the best points."""
    names = result.names
    across = sorted({point[names[0]] for point in points}, key=ordering)
    if len(names) != 2 or len(across) > _MAX_COLUMNS:
        return _best_table(result)
    down = sorted({point[names[1]] for point in points}, key=ordering)
    means = {_key(point): mean for point, mean in zip(result.points, result.means, strict=True)}
    best = _key(result.best_params) if result.points else None
    table = _table(f"{result.scoring}, {names[0]} across, {names[1]} down")
    table.add_column("", style="dim")
    for value in across:
        table.add_column(briefly(value), justify="right", header_style="dim")
    for other in down:
        keys = [_key({names[0]: value, names[1]: other}) for value in across]
        cells = [shown(means[key], result.scoring) if key in means else "·" for key in keys]
        marked = [f"[bold green]{cell}[/]" if key == best else cell for key, cell in zip(keys, cells, strict=True)]
        table.add_row(briefly(other), *marked)
    return table


def _table(title):
    from rich.table import Table  # rich takes a while to import

    return Table(title=title, title_justify="left", box=None)


def _best_table(result):
    table = _table("best so far")
    for name in (*result.names, result.scoring):
        table.add_column(name, justify="right", header_style="dim")
    ranked = sorted(zip(result.means, result.points, strict=True), key=lambda pair: -pair[0])
    for mean, point in ranked[:_LISTED]:
        table.add_row(*(briefly(point[name]) for name in result.names), shown(mean, result.scoring))
    return table


def in_words(point):
    """Return a point as `C=2^3 gamma=2^-5`."""
    return " ".join(f"{name}={briefly(value)}" for name, value in point.items())


def briefly(value):
    """Return a value as a short text: powers of two as 2^k, other numbers with four significant digits."""
    if not isinstance(value, Real) or isinstance(value, bool):
        return str(value)
    value = float(value)
    if math.isfinite(value) and value > 0.0:
        mantissa, power = math.frexp(value)  # value = mantissa * 2^power
        if mantissa == 0.5 and abs(power - 1) > 1:
            return f"2^{power - 1}"
    return f"{value:z.4g}"


def shown(score, scoring):
    """Return a score as text: accuracies in percent, errors without scikit-learn's minus sign."""
    if scoring == "accuracy":
        return f"{100 * score:z.2f}"
    return f"{-score:z.4g}" if scoring.startswith("neg_") else f"{score:z.4f}"


def _key(point):
    return tuple(sorted(point.items()))
