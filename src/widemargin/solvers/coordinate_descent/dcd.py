"""`dcd`: dual coordinate descent for linear support vector machines.

Each sweep visits the active rows in a new random order and sets each dual variable to its optimum, the others fixed.
Shrinking: a row whose dual variable is at a bound is removed from the active rows if its gradient towards the bound
exceeds the largest projected gradient of the previous sweep. All rows become active again when the active ones satisfy
the tolerance. Losses with an entropy have sweeps of their own, without shrinking, see `entropy_sweeps`.

Reference: Hsieh, Chang, Lin, Keerthi, Sundararajan, "A dual coordinate descent method for large-scale linear SVM",
ICML 2008; regression: Ho and Lin, "Large-scale linear support vector regression", JMLR 2012.
"""

import numpy as np

from widemargin._runtime.compile import compiled, prefetch
from widemargin.data.rows import long_row_prefetch, row_dot
from widemargin.problems.formulations import DualQP, Intercept
from widemargin.solvers.coordinate_descent.entropy_sweeps import SmoothCoordinates, SmoothSweeps
from widemargin.solvers.coordinate_descent.loop import descend
from widemargin.solvers.coordinate_descent.state import (
    Coordinates,
    SweepReport,
    best_beta,
    loss_and_dual_term,
    move,
    one_sided_derivatives,
    random_state,
    shuffle,
)
from widemargin.solvers.spec import SolverSpec, Start

_PREFETCH_ROWS = 16  # visits between the prefetch of the record of a row and its use


def dcd(problem, settings, start=None):
    """Minimise a DualQP by dual coordinate descent; `start` are dual variables."""
    if problem.entropy:
        return descend(SmoothSweeps(SmoothCoordinates(problem, start, settings.n_jobs), settings), settings)
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
    order : ndarray
        The indices of all rows, the active ones first.
    n_active : int
        Number of active rows.
    max_decrease, max_increase : float
        Largest |projected gradient| in the last sweep, of the dual variables whose |beta| had to decrease, and of those
        whose |beta| had to increase. A dual variable at zero is compared with the first, one at another bound with the
        second; infinite if there were none of that kind.
    """

    name = "dcd"

    def __init__(self, coordinates, settings):
        self.coordinates = coordinates
        self.order = np.arange(coordinates.rows.size, dtype=np.uint32)
        self.random = random_state(settings.seed)
        self.reset_selection()

    def reset_selection(self):
        """Make all rows active again."""
        self.n_active = self.order.size
        self.max_decrease = self.max_increase = np.inf
        self._shrunk_loss = 0.0

    def advance(self, half_norm, loss):
        """Return False, since there is one stage only."""
        return False

    def sweep(self, max_visits, max_sweeps):
        """Visit every active row once, and repeat this within the limits while any dual variable changes."""
        state = self.coordinates
        gradients, limits = (self.max_decrease, self.max_increase), (max_visits, max_sweeps)
        result = _sweeps(state.X.rows, state.rows, self.order, self.n_active, gradients, limits, self.random, state.w)
        n_sweeps, visits, n_visited, self.n_active, gradients, gap_estimate, loss, shrunk_loss, moved = result
        self.max_decrease, self.max_increase = gradients[0] or np.inf, gradients[1] or np.inf
        self._shrunk_loss += shrunk_loss
        full = n_visited == self.order.size
        return SweepReport(n_sweeps, visits, max(gradients), gap_estimate, loss + self._shrunk_loss, moved, full)


@compiled
def _sweeps(X, rows, order, n_active, gradients, limits, random, w):
    """Sweep within limits (visits, sweeps), each time over the rows that the previous sweep left active.

    `gradients` are max_decrease and max_increase of the previous sweep; those of the last one are returned.
    """
    max_decrease, max_increase = gradients
    max_visits, max_sweeps = limits
    gap_estimate = loss = shrunk_loss = 0.0
    n_sweeps = visits = n_visited = 0
    moved = True
    while n_sweeps == 0 or (moved and n_sweeps < max_sweeps and visits + n_active <= max_visits):
        n_visited = n_active
        active = order[:n_visited]
        shuffle(active, random)
        # If there was no projected gradient of a kind, no row is removed by that limit.
        decrease_limit = max_decrease if max_decrease > 0.0 else np.inf
        increase_limit = max_increase if max_increase > 0.0 else np.inf
        result = _sweep(X, rows, active, decrease_limit, increase_limit, w)
        n_active, max_decrease, max_increase, gap_estimate, loss, removed_loss, moved = result
        shrunk_loss += removed_loss
        visits += n_visited
        n_sweeps += 1
    gradients = max_decrease, max_increase
    return n_sweeps, visits, n_visited, n_active, gradients, gap_estimate, loss, shrunk_loss, moved


@compiled
def _sweep(X, rows, active, decrease_limit, increase_limit, w):
    """Visit the active rows in order. Kept true: w = Σ beta_i x_i; rows that are removed follow those that remain."""
    max_decrease = max_increase = gap_estimate = loss = shrunk_loss = 0.0
    moved = False
    n_kept = 0
    for k in range(active.size):
        long_row_prefetch(X, active, k)
        if k + _PREFETCH_ROWS < active.size:
            prefetch(rows, np.uint64(active[k + _PREFETCH_ROWS]))
        i = active[k]
        row = rows[i]
        score = row_dot(X, i, w)
        row_loss, dual_term = loss_and_dual_term(row, score)
        gap_estimate += row_loss - dual_term + row["beta"] * score
        slope = row["target"] - score - row["curvature"] * row["beta"]
        right, left = one_sided_derivatives(row, slope)
        if row["beta"] < row["upper"] and right > 0.0:
            projected_gradient = right
        elif row["beta"] > row["lower"] and left < 0.0:
            projected_gradient = left
        else:
            # Optimal at a bound, or at the kink at zero: by how much would the derivatives have to change to move it?
            distance = np.inf
            if row["beta"] < row["upper"]:
                distance = -right
            if row["beta"] > row["lower"]:
                distance = min(distance, left)
            if distance > (decrease_limit if row["beta"] == 0.0 else increase_limit):
                shrunk_loss += row_loss
                continue
            projected_gradient = 0.0
        loss += row_loss
        active[k], active[n_kept] = active[n_kept], active[k]
        n_kept += 1
        if projected_gradient != 0.0:
            if projected_gradient * row["beta"] < 0.0:
                max_decrease = max(max_decrease, abs(projected_gradient))
            else:
                max_increase = max(max_increase, abs(projected_gradient))
            beta = best_beta(row, slope)
            if beta != row["beta"]:
                move(X, i, row, beta, w)
                moved = True
    return n_kept, max_decrease, max_increase, gap_estimate, loss, shrunk_loss, moved
