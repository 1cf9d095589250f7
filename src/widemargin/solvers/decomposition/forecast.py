"""How long working sets will take to the end, estimated from the last of them."""

from collections import deque

import numpy as np

_N_ITERATIONS = 20  # by whose violations the time is estimated


class Forecast:
    """The time that working sets will take if violations go on falling as they do now.

    Violations go up and down from one iteration to the next; the medians of the older and of the newer half of the
    last iterations are compared.
    """

    def __init__(self):
        self._recent = deque(maxlen=_N_ITERATIONS)

    def add(self, nanoseconds, violation):
        """Note the time that an iteration took, and the violation before it."""
        self._recent.append((nanoseconds, violation))

    def nanoseconds_left(self, goal):
        """Return the time until the violation is at most `goal`; infinity if violations do not fall or are too few."""
        if len(self._recent) < _N_ITERATIONS:
            return np.inf
        nanoseconds, violations = np.array(self._recent).T
        half = _N_ITERATIONS // 2
        earlier, later = np.median(violations[:half]), np.median(violations[half:])
        if not (0.0 < later < earlier and goal > 0.0):
            return np.inf
        halves_left = np.log(max(later / goal, 1.0)) / np.log(earlier / later)
        return halves_left * nanoseconds[half:].sum()
