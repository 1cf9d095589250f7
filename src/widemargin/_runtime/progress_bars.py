"""Where progress bars are drawn: on a terminal, erased in the end, or in the output of a notebook's cell, which stays.

rich draws the terminal's. In a notebook it needs widgets, an extension that not every notebook has; an output that is
shown once and then updated, with HTML's own bars, is everywhere.
"""

import html
import sys
from contextlib import suppress
from typing import NamedTuple

from rich.console import Console
from rich.file_proxy import FileProxy
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

_BAR_WIDTH = 16


class Row(NamedTuple):
    """A bar with a text beside it; the share that is done is None if nobody knows."""

    text: str
    share: float | None


def canvas_for(stream):
    """Return where to draw on a stream, None for standard error; None if that is neither terminal nor notebook."""
    if stream is None and "IPython" in sys.modules and Console().is_jupyter:
        return Notebook()
    stream = sys.stderr if stream is None else stream
    if not stream.isatty():
        return None
    console = Console(file=_Forgiving(stream), force_terminal=True)
    return None if console.is_dumb_terminal else Terminal(console)


class _Forgiving:
    """The stream of a terminal; if that goes away, only the bars are lost, not the work that they were about."""

    def __init__(self, stream):
        self._stream = stream

    def __getattr__(self, name):
        return getattr(self._stream, name)

    def write(self, text):
        """Write, if there is anybody to read."""
        with suppress(OSError):
            self._stream.write(text)

    def flush(self):
        """Flush, if there is anybody to read."""
        with suppress(OSError):
            self._stream.flush()


class Terminal:
    """Rows at the bottom of a terminal; lines written meanwhile go above them."""

    seconds_between = 0.2
    is_lasting = False

    def __init__(self, console):
        self._console, self._rows, self._live, self._replaced = console, [], None, {}
        self._spinner = Spinner("line" if console.options.ascii_only else "dots")

    @property
    def is_shown(self):
        """Whether there are rows on the terminal."""
        return self._live is not None

    def draw(self, rows):
        """Show these rows in the place of the former ones."""
        self._rows = rows
        if not rows:
            self.close()
        elif self._live is None:
            options = {"redirect_stdout": False, "redirect_stderr": False, "auto_refresh": False, "transient": True}
            self._live = Live(console=self._console, get_renderable=self._table, **options)
            self._live.start(refresh=True)
            self._console.show_cursor(True)  # rich hides it, and who is killed cannot bring it back
            self._step_between()
        else:
            self._live.refresh()

    def close(self):
        """Erase the rows."""
        if self._live is not None:
            self._step_aside()
            live, self._live = self._live, None
            live.stop()

    def write(self, text):
        """Write a line that stays."""
        self._console.print(text, highlight=False, markup=False, soft_wrap=True)

    def _table(self):
        table, room = Table.grid(padding=(0, 1)), self._console.width - len(f"⠋ {_BAR_WIDTH * '━'} ")
        for row in self._rows:
            bar = ProgressBar(total=1.0, completed=row.share or 0.0, width=_BAR_WIDTH, pulse=row.share is None)
            table.add_row(self._spinner, bar, Text(row.text[: max(room, 1)]))
        return table

    def _step_between(self):
        """Let what others print on this terminal appear above the rows."""
        for name in ("stdout", "stderr"):
            stream = getattr(sys, name)
            if stream is not None and stream.isatty():
                self._replaced[name] = stream, FileProxy(self._console, stream)
                setattr(sys, name, self._replaced[name][1])

    def _step_aside(self):
        """Give the streams back, unless somebody has put another in their place."""
        for name, (stream, ours) in self._replaced.items():
            if getattr(sys, name) is ours:
                setattr(sys, name, stream)
        self._replaced = {}


class Notebook:
    """The output of a cell, shown when there is something to show and updated from then on."""

    seconds_between = 0.3
    is_lasting = True

    def __init__(self):
        self._lines, self._rows, self._output, self._content = [], [], None, None

    @property
    def is_shown(self):
        """Whether there are rows in the output."""
        return bool(self._rows)

    def draw(self, rows):
        """Show these rows in the place of the former ones, below the lines; an output is never left empty."""
        if not rows and not self._lines:
            self._lines = [row.text for row in self._rows]
        self._rows = rows
        self._update()

    def close(self):
        """Leave only the lines."""
        self.draw([])

    def write(self, text):
        """Add a line that stays."""
        self._lines.append(text)
        self._update()

    def _update(self):
        from IPython.display import display  # there, if we are in a notebook

        lines = [f"<div>{html.escape(line)}</div>" for line in self._lines]
        content = {
            "text/plain": "\n".join([*self._lines, *(row.text for row in self._rows)]),
            "text/html": "".join([*lines, *map(_in_html, self._rows)]),
        }
        if content == self._content or not (self._lines or self._rows or self._output):
            return
        self._content = content
        if self._output is None:
            self._output = display(content, raw=True, display_id=True)
        else:
            self._output.update(content, raw=True)


def _in_html(row):
    """Return a row as HTML."""
    value = "" if row.share is None else f' value="{row.share:.3f}"'
    return f'<div><progress max="1"{value} style="width: 12em"></progress> {html.escape(row.text)}</div>'
