"""`avsf`: dual coordinate descent with adaptive variable selection frequencies.

Each row has a preference p_i in [1/20, 20], 1 at first. A sweep's schedule holds about n rows, row i with the
frequency p_i / Σp, in random order. After a step that raised the dual by `gain`, against the fading average gain,

    p_i <- clip( p_i exp( (gain / average − 1) / 5 ) ),        average <- (1 − 1/n) average + gain / n

so that rows which lately paid are visited up to 400 times as often as those that did not. It replaces shrinking.

Reference: Glasmachers and Dogan, "Accelerated linear SVM training with adaptive variable selection frequencies",
2013, Algorithms 3 (sweeps), 4 (schedule) and 5 (preferences).
"""

import math

import numpy as np

from widemargin._runtime.compile import compiled, prefetch
from widemargin.data.rows import row_dot, row_prefetch
from widemargin.problems.formulations import DualQP, Intercept
from widemargin.solvers.coordinate_descent.loop import descend
from widemargin.solvers.coordinate_descent.state import (
    Coordinates,
    Sweep,
    best_beta,
    loss_and_value,
    move,
    one_sided_slopes,
    random_below,
    random_state,
    shuffle,
)
from widemargin.solvers.spec import SolverSpec, Start

_RATE, _LEAST, _MOST = 1 / 5, 1 / 20, 20.0
_NO_GAIN = math.exp(-_RATE)  # the factor for a step that gained nothing
_AHEAD = 16  # rows ahead that a row's record is prefetched


def avsf(problem, settings, start=None):
    """Minimise a DualQP by coordinate descent with adaptive frequencies; `start` are multipliers to begin with."""
    state = Coordinates(problem, start, settings.n_jobs)
    return descend(AdaptiveSweeps(state, settings), settings)


AVSF = SolverSpec(
    name="avsf",
    solve=avsf,
    takes=frozenset({DualQP}),
    intercepts=frozenset({Intercept.NONE, Intercept.PENALISED}),
    starts_from=Start.DUAL,
    stopping=("gap", "kkt"),
    counts="sweeps",
)


class AdaptiveSweeps:
    """Sweeps by schedules drawn according to preferences.

    Attributes
    ----------
    uniform : whether all preferences are 1.
    average : the fading average of the gains; negative before the first sweep, which only learns it.
    """

    name = "avsf"

    def __init__(self, coordinates, settings):
        self.coordinates = coordinates
        # One place more than rows: the last draw may write, and then not count, a row beyond the end.
        self.schedule = np.empty(coordinates.rows.size + 1, dtype=np.uint32)
        self.random = random_state(settings.seed)
        self.average = -1.0
        self.widen()

    def widen(self):
        """Give all rows the same preference again."""
        self.coordinates.rows["preference"] = 1.0
        self.total = float(self.coordinates.rows.size)
        self.uniform = True

    def advance(self, half_norm, loss):
        """There is no further stage."""
        return False

    def sweep(self, budget, most):
        """Draw a schedule and visit its rows; again, up to `most` times, while rows move and visits stay in budget."""
        state = self.coordinates
        uniform, learnt = self.uniform, self.average >= 0.0
        bounds = budget, most
        result = _sweeps(
            state.X.rows, state.rows, self.schedule, self.total, self.average, bounds, self.random, state.w
        )
        n_sweeps, visits, violation, excess, loss, self.total, self.average, moved = result
        self.uniform = uniform and not learnt and n_sweeps == 1
        return Sweep(n_sweeps, visits, violation, excess, loss, moved, full=uniform and n_sweeps == 1)


@compiled
def _sweeps(X, rows, schedule, total, average, bounds, random, w):
    """Sweep within bounds (visits, sweeps), each with a schedule of its own. Kept true: total = Σ preferences."""
    budget, most = bounds
    violation = excess = loss = 0.0
    n_sweeps = visits = 0
    moved = True
    while n_sweeps == 0 or (moved and n_sweeps < most and visits + rows.size <= budget):
        drawn = schedule[: _draw(rows, total, schedule, random)]
        shuffle(drawn, random)
        learning = average >= 0.0
        result = _sweep(X, rows, drawn, total, max(average, 0.0), learning, w)
        violation, excess, loss, total, average, moved = result
        visits += drawn.size
        n_sweeps += 1
    return n_sweeps, visits, violation, excess, loss, total, average, moved


@compiled
def _draw(rows, total, schedule, random):
    """Fill `schedule` with row i about n p_i / total times; return its length, at most n. Rounding is carried on."""
    n, n_drawn = rows.size, 0
    for i in range(n):
        preference = rows[i]["preference"]
        share = preference / total
        times = (share if 0.0 <= share < 1.0 else 1.0) * (n - n_drawn)  # at most what is left, whatever the numbers
        # Rounded up or down at random, so that the expected number is right.
        whole = int(times + random_below(random, 1 << 31) * 2.0**-31)
        # Written whether it is drawn or not: a branch taken at random would cost more than the store.
        schedule[n_drawn] = i
        for k in range(1, whole):
            schedule[min(n_drawn + k, n)] = i
        n_drawn = min(n_drawn + whole, n)
        total = max(total - preference, _LEAST)  # rounding must not leave less than the last row's share
    return n_drawn


@compiled
def _sweep(X, rows, schedule, total, average, learning, w):
    """Visit the scheduled rows. Kept true: w = Σ beta_i x_i, preferences within their bounds."""
    violation = excess = loss = 0.0
    moved = False
    fading = 1.0 / rows.size
    share = total * fading
    for k in range(schedule.size):
        row_prefetch(X, schedule, k)
        if k + _AHEAD < schedule.size:
            prefetch(rows, np.uint64(schedule[k + _AHEAD]))
        i = schedule[k]
        row = rows[i]
        score = row_dot(X, i, w)
        # A row met p times as often as others counts 1/p each time, so that the sums are those over all rows.
        weight = share / row["preference"]
        row_loss, value = loss_and_value(row, score)
        loss += weight * row_loss
        excess += weight * (row_loss - value + row["beta"] * score)
        slope = row["target"] - score - row["curvature"] * row["beta"]
        rise, fall = one_sided_slopes(row, slope)
        if row["beta"] < row["upper"]:
            violation = max(violation, rise)
        if row["beta"] > row["lower"]:
            violation = max(violation, -fall)
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
            factor = _NO_GAIN if gain == 0.0 else math.exp(_RATE * (gain / average - 1.0))
            preference = factor * row["preference"]
            preference = (preference if preference < _MOST else _MOST) if preference > _LEAST else _LEAST
            total += preference - row["preference"]
            row["preference"] = preference
            average -= fading * average
        average += fading * gain
    return violation, excess, loss, total, average, moved
