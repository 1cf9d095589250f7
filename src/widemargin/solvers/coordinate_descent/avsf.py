"""`avsf`: dual coordinate descent with adaptive variable selection frequencies.

Each row has a preference p_i in [1/20, 20], 1 at first. The schedule of a sweep contains about n visits in random
order, about n p_i / Σp of them of row i. A step that increases the dual objective by `gain` updates the preference of
its row and the moving average of the gains:

    p_i <- clip( p_i exp( (gain / average − 1) / 5 ) ),        average <- (1 − 1/n) average + gain / n

Rows with large recent gains are visited up to 400 times as often as rows with none, which makes shrinking unnecessary.

Reference: Glasmachers and Dogan, "Accelerated linear SVM training with adaptive variable selection frequencies",
2013, Algorithms 3 (sweeps), 4 (schedule) and 5 (preferences).
"""

import math
from dataclasses import replace

import numpy as np

from widemargin._runtime.compile import compiled, prefetch
from widemargin.data.rows import long_row_prefetch, row_dot
from widemargin.solvers.coordinate_descent.dcd import DCD
from widemargin.solvers.coordinate_descent.loop import descend
from widemargin.solvers.coordinate_descent.state import (
    Coordinates,
    SweepReport,
    best_beta,
    loss_and_dual_term,
    move,
    one_sided_derivatives,
    random_below,
    random_state,
    shuffle,
)
from widemargin.solvers.spec import Losses

_LEARNING_RATE = 1 / 5
_MIN_PREFERENCE, _MAX_PREFERENCE = 1 / 20, 20.0
_FACTOR_WITHOUT_GAIN = math.exp(-_LEARNING_RATE)  # of the preference, after a visit that did not increase the dual
_PREFETCH_ROWS = 16  # visits between the prefetch of the record of a row and its use


def avsf(problem, settings, start=None):
    """Minimise a DualQP by coordinate descent with adaptive frequencies; `start` are dual variables."""
    state = Coordinates(problem, start, settings.n_jobs)
    return descend(AdaptiveSweeps(state, settings), settings)


AVSF = replace(DCD, name="avsf", solve=avsf, losses=Losses.QUADRATIC)


class AdaptiveSweeps:
    """Sweeps by schedules drawn according to preferences.

    Attributes
    ----------
    uniform : bool
        Whether all preferences are 1.
    total : float
        The sum of the preferences.
    average : float
        The moving average of the gains; negative before the first sweep, which computes it and leaves the preferences
        as they are.
    """

    name = "avsf"

    def __init__(self, coordinates, settings):
        self.coordinates = coordinates
        # One entry more than there are rows: `_draw` may write an entry beyond the end, which is not counted.
        self.schedule = np.empty(coordinates.rows.size + 1, dtype=np.uint32)
        self.random = random_state(settings.seed)
        self.average = -1.0
        self.reset_selection()

    def reset_selection(self):
        """Set all preferences to 1."""
        self.coordinates.rows["preference"] = 1.0
        self.total = float(self.coordinates.rows.size)
        self.uniform = True

    def advance(self, half_norm, loss):
        """Return False, since there is one stage only."""
        return False

    def sweep(self, max_visits, max_sweeps):
        """Draw a schedule and visit its rows, and repeat this within the limits while any dual variable changes."""
        state = self.coordinates
        uniform, has_average = self.uniform, self.average >= 0.0
        limits = max_visits, max_sweeps
        result = _sweeps(
            state.X.rows, state.rows, self.schedule, self.total, self.average, limits, self.random, state.w
        )
        n_sweeps, visits, violation, gap_estimate, loss, self.total, self.average, moved = result
        self.uniform = uniform and not has_average and n_sweeps == 1
        return SweepReport(n_sweeps, visits, violation, gap_estimate, loss, moved, full=uniform and n_sweeps == 1)


@compiled
def _sweeps(X, rows, schedule, total, average, limits, random, w):
    """Sweep within limits (visits, sweeps), each time by a new schedule. Kept true: total = Σ preferences."""
    max_visits, max_sweeps = limits
    violation = gap_estimate = loss = 0.0
    n_sweeps = visits = 0
    moved = True
    while n_sweeps == 0 or (moved and n_sweeps < max_sweeps and visits + rows.size <= max_visits):
        drawn = schedule[: _draw(rows, total, schedule, random)]
        shuffle(drawn, random)
        learning = average >= 0.0
        result = _sweep(X, rows, drawn, total, max(average, 0.0), learning, w)
        violation, gap_estimate, loss, total, average, moved = result
        visits += drawn.size
        n_sweeps += 1
    return n_sweeps, visits, violation, gap_estimate, loss, total, average, moved


@compiled
def _draw(rows, total, schedule, random):
    """Fill `schedule` with row i about n p_i / total times; return its length, at most n.

    The entries still free are divided among the rows still to come, so that rounding errors do not accumulate.
    """
    n, n_drawn = rows.size, 0
    for i in range(n):
        preference = rows[i]["preference"]
        fraction = preference / total
        expected = (fraction if 0.0 <= fraction < 1.0 else 1.0) * (n - n_drawn)  # never more than the free entries
        # Rounded up or down at random, so that the mean number of visits is `expected`.
        n_visits = int(expected + random_below(random, 1 << 31) * 2.0**-31)
        # Written even if there is no visit: a branch that is taken at random would cost more than the store.
        schedule[n_drawn] = i
        for k in range(1, n_visits):
            schedule[min(n_drawn + k, n)] = i
        n_drawn = min(n_drawn + n_visits, n)
        total = max(total - preference, _MIN_PREFERENCE)  # rounding must not leave less than the last preference
    return n_drawn


@compiled
def _sweep(X, rows, schedule, total, average, learning, w):
    """Visit the scheduled rows. Kept true: w = Σ beta_i x_i, preferences within their bounds."""
    violation = gap_estimate = loss = 0.0
    moved = False
    averaging_rate = 1.0 / rows.size
    mean_preference = total * averaging_rate
    for k in range(schedule.size):
        long_row_prefetch(X, schedule, k)
        if k + _PREFETCH_ROWS < schedule.size:
            prefetch(rows, np.uint64(schedule[k + _PREFETCH_ROWS]))
        i = schedule[k]
        row = rows[i]
        score = row_dot(X, i, w)
        # Rows are weighted by the inverse of their frequency, so that the sums estimate those over all rows.
        weight = mean_preference / row["preference"]
        row_loss, dual_term = loss_and_dual_term(row, score)
        loss += weight * row_loss
        gap_estimate += weight * (row_loss - dual_term + row["beta"] * score)
        slope = row["target"] - score - row["curvature"] * row["beta"]
        right, left = one_sided_derivatives(row, slope)
        if row["beta"] < row["upper"]:
            violation = max(violation, right)
        if row["beta"] > row["lower"]:
            violation = max(violation, -left)
        gain = 0.0
        beta = best_beta(row, slope)
        if beta != row["beta"]:
            step = beta - row["beta"]
            gain = step * (slope - 0.5 * step * row["total_curvature"]) - row["epsilon"] * (
                abs(beta) - abs(row["beta"])
            )
            move(X, i, row, beta, w)
            moved = True
        if learning and average > 0.0:
            factor = _FACTOR_WITHOUT_GAIN if gain == 0.0 else math.exp(_LEARNING_RATE * (gain / average - 1.0))
            preference = factor * row["preference"]
            preference = preference if preference > _MIN_PREFERENCE else _MIN_PREFERENCE  # also if it is NaN
            preference = preference if preference < _MAX_PREFERENCE else _MAX_PREFERENCE
            total += preference - row["preference"]
            row["preference"] = preference
            average -= averaging_rate * average
        average += averaging_rate * gain
    return violation, gap_estimate, loss, total, average, moved
