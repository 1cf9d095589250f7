"""How much longer a solver will take, judged by how fast its gap has fallen.

The logarithm of the gap falls by about the same amount in every second if a solver converges linearly. A straight line
through the last measurements then meets the tolerance when the solver will end. Other courses exist: a gap may stand
still and then fall at once. So nothing is said unless two halves of the last measurements agree about the speed, and
unless the end is near enough to be judged by what was seen.
"""

import math
from itertools import pairwise

_LEAST_MEASUREMENTS = 3  # two halves of at least one step each
_MOST_MEASUREMENTS = 16
_SPACING = 0.02  # of the seconds so far, between two measurements that are kept
_SHARE_OF_TIME = 0.35  # of the seconds so far, in which measurements tell the speed
_LARGEST_DISAGREEMENT = 2.0  # of the speeds of two halves, as a ratio
_FARTHEST_END = 10.0  # as a multiple of the time in which the speed was seen
_SILENT_MEASUREMENTS = 2  # without a forecast, after which the last one no longer holds
_UNITS = (("s", 1.0, 60.0), ("min", 60.0, 60.0), ("h", 3600.0, 48.0))
_STEPS = (1, 1.5, 2, 3, 4, 5, 6, 8, 10, 15, 20, 25, 30, 40, 50)  # numbers that are said, of any unit


class Forecast:
    """The measurements of one run of a solver, and when it will end."""

    def __init__(self):
        self._points, self._end, self._n_silent = [], None, 0

    def add(self, seconds, gap, tol):
        """Take a measurement of the gap, so many seconds after the run has begun."""
        if self._points and seconds < self._points[-1][0]:
            self.__init__()  # another run
        if not 0.0 < gap < 1.0:
            return
        log_gap = min(math.log(gap), self._points[-1][1] if self._points else math.inf)
        if len(self._points) >= 2 and seconds - self._points[-2][0] < _SPACING * seconds:
            self._points.pop()
        self._points.append((seconds, log_gap))
        self._forget(seconds)
        self._update(seconds, math.log(tol) if tol > 0.0 else -math.inf)

    def _forget(self, seconds):
        """Drop measurements that are too old, unless there are few."""
        begin = (1.0 - _SHARE_OF_TIME) * seconds
        while len(self._points) > _MOST_MEASUREMENTS or (
            len(self._points) > _LEAST_MEASUREMENTS and self._points[1][0] <= begin
        ):
            del self._points[0]

    def _update(self, seconds, log_tol):
        """Move the end that is forecast half way, as ratios of the time left, to that of the latest measurements."""
        left = _seconds_left(self._points, log_tol)
        if left is None:
            self._n_silent += 1
            self._end = self._end if self._n_silent < _SILENT_MEASUREMENTS else None
            return
        if self._end is not None and self._end > seconds:
            left = math.sqrt(left * (self._end - seconds))
        self._end, self._n_silent = seconds + left, 0

    def seconds_left(self, seconds):
        """Return the time that is left `seconds` after the run has begun; None if nothing can be said."""
        return self._end - seconds if self._end is not None and self._end > seconds else None


def _seconds_left(points, log_tol):
    """Return the time from the last of the points (seconds, log gap) until the tolerance is reached, or None."""
    if len(points) < _LEAST_MEASUREMENTS or points[-1][1] <= log_tol:
        return None
    first, last = points[0], points[-1]
    middle = points[len(points) // 2]
    speeds = [(one[1] - other[1]) / (other[0] - one[0]) for one, other in pairwise((first, middle, last))]
    if min(speeds) <= 0.0 or max(speeds) > _LARGEST_DISAGREEMENT * min(speeds):
        return None
    left = (last[1] - log_tol) / _speed(points)
    return left if left <= _FARTHEST_END * (last[0] - first[0]) else None


def _speed(points):
    """Return by how much log gap falls in a second: the slope of the line with the least squared errors."""
    n = len(points)
    mean_seconds, mean_log = sum(t for t, _ in points) / n, sum(value for _, value in points) / n
    spread = sum((t - mean_seconds) ** 2 for t, _ in points)
    return -sum((t - mean_seconds) * (value - mean_log) for t, value in points) / spread


def in_words(seconds):
    """Return a time that is left in words with few digits, such as "about 40 s left"; "" if it is None or too long."""
    if seconds is None:
        return ""
    for unit, size, end in _UNITS:
        if seconds < end * size * 0.95:  # from 57 seconds on it is a minute
            number = min(_STEPS, key=lambda step: abs(math.log(step * size / max(seconds, size))))
            return f"about {number:g} {unit} left"
    return ""
