"""What the demonstration has measured: a line for each machine, and the table that they make."""

import io
from dataclasses import dataclass
from typing import Any, NamedTuple

from widemargin.workflows.demo.cases import MEMORY_LIMIT

HEADINGS = ("machine", "rows", "score", "gap", "seconds", "scikit-learn", "its score")
_TABLE_WIDTH = 110  # characters, unless the table is ruled for a terminal


class DemoResult(NamedTuple):
    """One line of the table.

    Attributes
    ----------
    machine : str
        Our machine.
    n_rows, n_features : int
        The rows that it was trained on.
    measure : str
        What `score` is: accuracy, or the fraction of pairs in the right order.
    score : float
        On rows held out.
    gap : float
        The certified relative duality gap.
    seconds : float
        Of the fit, the first one of a new process.
    peak_bytes : int or None
        The largest memory of that process; None if the system does not tell.
    solver : str
        The solver that ran.
    peer : str
        What scikit-learn has for the same objective; "" if it has nothing.
    peer_seconds, peer_score : float or None
        scikit-learn's; None if its fit was ended at the time limit, or `peer` is "".
    history : list of [seconds, gap]
        The gap during the fit.
    """

    machine: str
    n_rows: int
    n_features: int
    measure: str
    score: float
    gap: float
    seconds: float
    peak_bytes: int | None
    solver: str
    peer: str
    peer_seconds: float | None
    peer_score: float | None
    history: list[list[float]]

    def peer_time(self, limit: float) -> str:
        """Return scikit-learn's seconds, `> limit`, or `–`, and how many times ours they are."""
        if not self.peer:
            return "–"
        if self.peer_seconds is None:
            return f"> {limit:g}  (> {_rounded_down(limit / self.seconds)}x)"
        return f"{self.peer_seconds:.2f}  ({self.peer_seconds / self.seconds:.1f}x)"


def _rounded_down(ratio):
    """Return a lower bound in words, with one digit after the point if it is below 10; rounded up it would be none."""
    return f"{int(ratio)}" if ratio >= 10.0 else f"{int(10.0 * ratio) / 10.0:.1f}"


@dataclass(frozen=True)
class Demo:
    """The result of `run_demo`; `str` gives the lines that `widemargin demo` prints.

    Attributes
    ----------
    results : tuple of DemoResult
        The lines of the table.
    time_limit : float
        The seconds after which scikit-learn's fits were ended.
    environment : str
        The machine and the versions.
    page : str
        The path of the page.
    picture : str or None
        The path of the picture; None if there is none.
    picture_message : str
        Where the picture is, or why there is none.
    """

    results: tuple[DemoResult, ...]
    time_limit: float
    environment: str
    page: str
    picture: str | None
    picture_message: str

    def to_dict(self) -> dict[str, Any]:
        """Return the result as a dict that can be written as JSON."""
        found = {"results": [result._asdict() for result in self.results], "time_limit": self.time_limit}
        return found | {"environment": self.environment, "page": self.page, "picture": self.picture}

    def to_text(self, *, ruled: bool = False) -> str:
        """Return the table, its legend and where the page is; `ruled` draws lines around the cells of the table."""
        table = _table(self.results, self.time_limit, ruled)
        return f"{table}\n{legend(self.results, self.time_limit)}\n{self.picture_message}\npage:    {self.page}"

    def __str__(self) -> str:
        return self.to_text()


def legend(results, limit):
    """Return the words below the table."""
    peers = {result.machine: result.peer for result in results if result.peer}
    words = [
        "score: accuracy on rows held out; of the ranking, the fraction of pairs in the right order.",
        "gap: proved relative distance of the objective to its minimum.",
        _words_on_file(results),
    ]
    if peers:
        same = "; ".join(f"{peer} for {machine}" for machine, peer in peers.items() if not machine.startswith(peer))
        words.append(f"scikit-learn's fits have the same objective ({same}) and were ended after {limit:g} s.")
    return "\n".join(words)


def _words_on_file(results):
    """Return a sentence on the memory of the fit from disk, or how to get it."""
    peaks = [result.peak_bytes for result in results if "disk" in result.machine]
    if not peaks:
        return 'The machine for files larger than memory was left out: pip install "widemargin[arrow]".'
    took = f"at most {peaks[0] / 1e6:,.0f} MB" if peaks[0] else "an amount that this system does not tell"
    return (
        f"from disk: the fit may take {MEMORY_LIMIT / 1e6:,.0f} MB, less than the file has; its process took {took}. "
        "scikit-learn has no such machine."
    )


def cells(result, limit):
    """Return the cells of one line of the table."""
    rows = f"{result.n_rows:,} x {result.n_features}"
    its_score = "–" if result.peer_score is None else f"{result.peer_score:.3f}"
    numbers = f"{result.score:.3f}", f"{result.gap:.1e}", f"{result.seconds:.2f}"
    return (result.machine, rows, *numbers, result.peer_time(limit), its_score)


def _table(results, limit, ruled):
    """Return the results as a table."""
    from rich import box  # takes a while to import, and is needed for output only
    from rich.console import Console
    from rich.table import Table

    table = Table(box=box.ROUNDED if ruled else None, pad_edge=ruled, header_style="bold")
    for heading in HEADINGS:
        table.add_column(heading, justify="left" if heading == HEADINGS[0] else "right", no_wrap=True)
    for result in results:
        table.add_row(*cells(result, limit))
    text = io.StringIO()
    Console(file=text, width=_TABLE_WIDTH, force_terminal=ruled).print(table)
    return text.getvalue()
