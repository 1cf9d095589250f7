"""`dcd`: dual coordinate descent for linear support vector machines.

Each sweep visits the active rows in a new random order and sets each dual variable to its optimum, the others fixed.
Shrinking: a row whose dual variable is at a bound leaves the active rows if its gradient towards the bound exceeds the
largest projected gradient of the previous sweep. All rows return when the active ones satisfy the tolerance.

Reference: Hsieh, Chang, Lin, Keerthi, Sundararajan, "A dual coordinate descent method for large-scale linear SVM",
ICML 2008; regression: Ho and Lin, "Large-scale linear support vector regression", JMLR 2012.
"""

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
    random_state,
    shuffle,
)
from widemargin.solvers.spec import SolverSpec, Start

_AHEAD = 16  # rows ahead that a row's record is prefetched


def dcd(problem, settings, start=None):
    """Minimise a DualQP by dual coordinate descent; `start` are multipliers to begin with."""
    state = Coordinates(problem, start, settings.n_jobs)
    return descend(ShrinkingSweeps(state, settings), settings)


DCD = SolverSpec(
    name="dcd",
    solve=dcd,
    takes=frozenset({DualQP}),
    intercepts=frozenset({Intercept.NONE, Intercept.PENALISED}),
    starts_from=Start.DUAL,
    stopping=("gap", "kkt"),
    counts="sweeps",
)


class ShrinkingSweeps:
    """Sweeps over the active rows.

    Attributes
    ----------
    order : the rows, the active ones first.
    n_active : how many are active.
    inward, outward : the largest violations in the last sweep by multipliers that had to shrink, and to grow.
    """

    name = "dcd"

    def __init__(self, coordinates, settings):
        self.coordinates = coordinates
        self.order = np.arange(coordinates.rows.size, dtype=np.uint32)
        self.random = random_state(settings.seed)
        self.widen()

    def widen(self):
        """Make all rows active again."""
        self.n_active = self.order.size
        self.inward = self.outward = np.inf
        self._shrunk_loss = 0.0

    def advance(self, half_norm, loss):
        """There is no further stage."""
        return False

    def sweep(self, budget, most):
        """Visit every active row once; again, up to `most` times, while rows move and visits stay in the budget."""
        state = self.coordinates
        limits = self.inward, self.outward
        result = _sweeps(
            state.X.rows, state.rows, self.order, self.n_active, limits, (budget, most), self.random, state.w
        )
        n_sweeps, visits, n_visited, self.n_active, inward, outward, excess, loss, shrunk_loss, moved = result
        self.inward, self.outward = inward or np.inf, outward or np.inf
        self._shrunk_loss += shrunk_loss
        full = n_visited == self.order.size
        return Sweep(n_sweeps, visits, max(inward, outward), excess, loss + self._shrunk_loss, moved, full)


@compiled
def _sweeps(X, rows, order, n_active, limits, bounds, random, w):
    """Sweep within bounds (visits, sweeps), each time over what the sweep before has left active."""
    inward, outward = limits
    budget, most = bounds
    excess = loss = shrunk_loss = 0.0
    n_sweeps = visits = n_visited = 0
    moved = True
    while n_sweeps == 0 or (moved and n_sweeps < most and visits + n_active <= budget):
        n_visited = n_active
        active = order[:n_visited]
        shuffle(active, random)
        # Nothing was pulled away from a bound of this kind: the sweep before says nothing about who may leave.
        inward_limit = inward if inward > 0.0 else np.inf
        outward_limit = outward if outward > 0.0 else np.inf
        result = _sweep(X, rows, active, inward_limit, outward_limit, w)
        n_active, inward, outward, excess, loss, left, moved = result
        shrunk_loss += left
        visits += n_visited
        n_sweeps += 1
    return n_sweeps, visits, n_visited, n_active, inward, outward, excess, loss, shrunk_loss, moved


@compiled
def _sweep(X, rows, active, inward_limit, outward_limit, w):
    """Visit the active rows in order. Kept true: w = Σ beta_i x_i; rows that leave stand behind those that stay."""
    inward = outward = excess = loss = shrunk_loss = 0.0
    moved = False
    n_kept = 0
    for k in range(active.size):
        row_prefetch(X, active, k)
        if k + _AHEAD < active.size:
            prefetch(rows, np.uint64(active[k + _AHEAD]))
        i = active[k]
        row = rows[i]
        score = row_dot(X, i, w)
        row_loss, value = loss_and_value(row, score)
        excess += row_loss - value + row["beta"] * score
        slope = row["target"] - score - row["curvature"] * row["beta"]
        rise, fall = one_sided_slopes(row, slope)
        if row["beta"] < row["upper"] and rise > 0.0:
            pull = rise
        elif row["beta"] > row["lower"] and fall < 0.0:
            pull = fall
        else:
            # Pressed against a bound, or into the kink at zero: by how much at least?
            press = np.inf
            if row["beta"] < row["upper"]:
                press = -rise
            if row["beta"] > row["lower"]:
                press = min(press, fall)
            if press > (inward_limit if row["beta"] == 0.0 else outward_limit):
                shrunk_loss += row_loss
                continue
            pull = 0.0
        loss += row_loss
        active[k], active[n_kept] = active[n_kept], active[k]
        n_kept += 1
        if pull != 0.0:
            if pull * row["beta"] < 0.0:
                inward = max(inward, abs(pull))
            else:
                outward = max(outward, abs(pull))
            beta = best_beta(row, slope)
            if beta != row["beta"]:
                move(X, i, row, beta, w)
                moved = True
    return n_kept, inward, outward, excess, loss, shrunk_loss, moved
