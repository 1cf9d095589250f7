"""Figures as pages show them: medians with their spread, ratios and bounds; and everybody taking turns."""

import math
import re
import statistics
import time
from typing import NamedTuple

SHORT_FIT, VERY_SHORT_FIT = 0.5, 0.05  # seconds: the first fit does not count; there are many
PATIENCE = 8.0  # seconds: longer fits are not repeated
HOW = """Seconds are medians, everybody taking turns; ±: half of the range between the quartiles, in percent of the
median; a figure without ± is that of one fit (fits that take long are not repeated). `>`: the time limit was reached,
or a ratio is at least so much."""


class Seconds(float):
    """The median of some times; infinite if there is none, since the limit was reached. `times` are all of them."""

    times: tuple

    def __new__(cls, times):
        found = super().__new__(cls, statistics.median(times) if times else math.inf)
        found.times = tuple(times)
        return found

    @property
    def spread(self):
        """Half of the range between the quartiles, as a part of the median; None of fewer than three times."""
        if len(self.times) < 3 or not self:
            return None
        first, _, third = statistics.quantiles(self.times, n=4, method="inclusive")
        return (third - first) / 2.0 / self

    def times_factor(self, factor):
        """Return the same figure in another unit."""
        return Seconds([factor * one for one in self.times])


def shown(seconds, limit=None):
    """Return seconds in words, with the spread if they have one; infinite ones are a limit that was reached."""
    if seconds is None:
        return "–"
    if math.isinf(seconds):
        return f">{limit:g}"
    spread = getattr(seconds, "spread", None)
    return f"{seconds:.3g}" + ("" if spread is None else f" ±{100 * spread:.0f}%")


def ratio(theirs, ours, limit=None):
    """Return a ratio in words; a limit that one of them reached makes it a bound."""
    if theirs is None or ours is None or (math.isinf(theirs) and math.isinf(ours)):
        return "–"
    if math.isinf(theirs):
        return f">{limit / ours:.3g}"
    return f"<{theirs / limit:.2g}" if math.isinf(ours) else f"{theirs / ours:.2f}"


class Told(NamedTuple):
    """A number of a page; `bound` is ">" or "<" if it is only a bound, since somebody reached the limit."""

    value: float
    bound: str = ""

    def __str__(self):
        return f"{self.bound}{self.value:.3g}"


_NUMBER = re.compile(r"^\**([<>]?) ?([+-]?\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?)")


def read(cell):
    """Return the number that a cell tells, None if there is none."""
    found = _NUMBER.match(cell.strip())
    return Told(float(found[2].replace(",", "")), found[1]) if found else None


def take_turns(runners, repeats, often=2, patience=PATIENCE, rest=0.0):
    """Call runners in turns; return (first result, Seconds) by label.

    A runner returns something that has `seconds`, infinite at the limit, or None if it cannot. What takes longer than
    `patience` is not repeated. What is short is repeated more often, after a first turn that is discarded, and what is
    very short `often` times as often. Between turns there are `rest` seconds, in which threads stop to spin.
    """
    first, times = {}, {}
    for label, runner in runners.items():
        if (result := runner()) is not None:
            first[label], times[label] = result, [result.seconds]
        time.sleep(rest)
    n_turns = {label: _n_turns(result.seconds, repeats, often, patience) for label, result in first.items()}
    for turn in range(1, max(n_turns.values(), default=0)):
        for label in first:
            if turn < n_turns[label]:
                times[label].append(runners[label]().seconds)
                time.sleep(rest)
    return {label: (result, _counted(times[label])) for label, result in first.items()}


def _n_turns(seconds, repeats, often, patience):
    if seconds > patience:
        return 1
    return repeats if seconds >= SHORT_FIT else 1 + repeats * (2 if seconds >= VERY_SHORT_FIT else often)


def _counted(times):
    kept = times[1:] if len(times) > 2 and times[0] < SHORT_FIT else times
    return Seconds([one for one in kept if math.isfinite(one)])


class Timed(NamedTuple):
    """What a runner that has nothing else to tell returns."""

    seconds: float


def seconds_of(function, *arguments, **options):
    """Call a function; return the seconds it took, and what it returned."""
    begun = time.perf_counter()
    found = function(*arguments, **options)
    return time.perf_counter() - begun, found


def timed(function, *arguments):
    """Return a runner that calls a function."""
    return lambda: Timed(seconds_of(function, *arguments)[0])
