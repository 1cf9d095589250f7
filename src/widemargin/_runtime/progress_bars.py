"""Where progress is shown: rows of rich's `Progress` on a terminal or in a notebook, lines elsewhere.

rich keeps the rows and draws them. What it lacks, as of 15.0, stands here and in `progress`:

- Its display appears with the first task. Ours appears when a row is due, as most work is done within a second.
- In a notebook it draws nothing without ipywidgets, which we do not require. But rich's `Progress` can render itself
  as HTML, which is displayed once and then updated in its place.
- A terminal that goes away raises OSError in whatever thread draws; here only the bars are lost.
- When it ends, it puts the former `sys.stdout` back, even if `redirect_stdout` or the like has replaced it since.
- It writes no lines to a pipe, and its time left needs two advances within 30 seconds, more than many a fold takes.
"""

import sys
import time
from contextlib import suppress

from rich.console import Console
from rich.file_proxy import FileProxy
from rich.live import Live
from rich.progress import BarColumn, Progress, ProgressColumn, SpinnerColumn
from rich.text import Text

_BAR_WIDTH = 16  # in characters; the words of a solver need the rest of 80


def screen_for(stream, due, above=None):
    """Return where to show progress on a stream; None is standard error, or the output of the cell in a notebook.

    `due`, given rich's tasks, returns those to be drawn now; their field `words` is a function that returns a text.
    `above` returns what is drawn above them on a terminal.
    """
    if stream is None and "IPython" in sys.modules and Console().is_jupyter:
        return Notebook(Console(), due)
    stream = sys.stderr if stream is None else stream
    if not stream.isatty():
        return Lines(Console(file=stream), due)
    console = Console(file=_Forgiving(stream), force_terminal=True)
    return Lines(console, due) if console.is_dumb_terminal else Terminal(console, due, above)


class _Forgiving:
    """The stream of a terminal; if that goes away, what is written is lost without an error."""

    def __init__(self, stream):
        self._stream = stream

    def __getattr__(self, name):
        return getattr(self._stream, name)

    def write(self, text):
        with suppress(OSError):
            self._stream.write(text)

    def flush(self):
        with suppress(OSError):
            self._stream.flush()


class _Words(ProgressColumn):
    """The words beside a bar, cut where the terminal ends: a row that wraps could not be erased."""

    def __init__(self, console):
        self._console = console
        super().__init__()

    def render(self, task):
        return Text(task.fields["words"]()[: max(self._console.width - len("⠋  ") - _BAR_WIDTH, 1)])


class Lines(Progress):
    """A stream that is sent lines and no bars."""

    has_bars = keeps_lines = False

    def __init__(self, console, due):
        self._due = due  # first of all, as rich's constructor draws
        spinner = SpinnerColumn("line" if console.options.ascii_only else "dots", style="none")
        options = {"console": console, "auto_refresh": False, "get_time": lambda: time.monotonic()}
        super().__init__(spinner, BarColumn(_BAR_WIDTH), _Words(console), **options)

    def make_tasks_table(self, tasks):
        """Return the table of the rows that are due."""
        return super().make_tasks_table(self._due(tasks))

    def write(self, text):
        """Write a line that stays."""
        self.console.print(text, highlight=False, markup=False, soft_wrap=True)

    def draw(self):
        """Draw the rows that are due in the place of the former ones: here none."""

    close = draw


class Terminal(Lines):
    """Rows at the bottom of a terminal, erased in the end; lines that are written meanwhile go above them."""

    has_bars = True
    seconds_between = 0.2

    def __init__(self, console, due, above):
        self._above, self._shown = above, None
        super().__init__(console, due)

    def get_renderables(self):
        """Yield what is to be above the rows, then the rows."""
        if self._above is not None:
            yield self._above()
        yield from super().get_renderables()

    def draw(self):
        """Draw the rows that are due in the place of the former ones; erase these if there are none."""
        if not self._due(self.tasks):
            self.close()
        elif self._shown is not None:
            self._shown.refresh()
        else:
            others = {f"redirect_{name}": getattr(sys, name).isatty() for name in ("stdout", "stderr")}
            options = {"auto_refresh": False, "transient": True, "get_renderable": self.get_renderable}
            self._shown = Live(console=self.console, **options, **others)
            self._shown.start(refresh=True)
            self.console.show_cursor(True)  # rich hides it, and a process that is killed cannot bring it back

    def close(self):
        """Erase the rows."""
        if self._shown is not None:
            shown, self._shown = self._shown, None
            replaced = {name: getattr(sys, name) for name in ("stdout", "stderr")}
            shown.stop()
            for name, stream in replaced.items():
                if not isinstance(stream, FileProxy):
                    setattr(sys, name, stream)


class Notebook(Lines):
    """The output of a cell, displayed when there is something to show; in the end it has the lines alone."""

    has_bars = keeps_lines = True
    seconds_between = 0.3

    def __init__(self, console, due):
        self._lines, self._words, self._output = [], [], None
        super().__init__(console, due)

    def get_renderables(self):
        """Yield the lines, then the rows."""
        yield from map(Text, self._lines)
        if self._words:
            yield from super().get_renderables()

    def write(self, text):
        """Add a line that stays."""
        self._lines.append(text)
        self._update()

    def draw(self):
        """Draw the rows that are due in the place of the former ones; an output is never left empty."""
        self._show([row.fields["words"]() for row in self._due(self.tasks)])

    def close(self):
        """Leave the lines alone."""
        self._show([])

    def _show(self, words):
        if words or self._words:
            self._lines = self._lines or ([] if words else self._words)
            self._words = words
            self._update()

    def _update(self):
        from IPython.display import display  # there, if we are in a notebook

        if self._output is None:
            self._output = display(self, display_id=True)
        else:
            self._output.update(self)
