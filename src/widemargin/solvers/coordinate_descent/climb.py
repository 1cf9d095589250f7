"""`climb`: dual coordinate descent by continuation in C.

Moving a dual variable from 0 to its bound C takes about C |x_i|² coordinate steps, so that the number of sweeps of
plain coordinate descent is proportional to C. If the classes overlap, the dual solution for 10 C is close to ten times
the solution for C. The problem is therefore solved in stages, for example for C/1000, C/100, C/10 and C, and each
stage starts from the dual solution of the previous one, multiplied by a factor t.

The dual objective at t beta is largest for t = 1 + burden, where the burden is (sum of losses) / |w|². If the burden is
small, as on text, where most rows can have zero loss, t is close to 1 and a warm start saves nothing. One sweep is
enough to find this out, and the stage is then skipped.

The coordinate steps are those of `avsf`. For a relative gap of 1e-3 with the hinge loss, a9a at C = 1000 takes 91
passes over the rows instead of more than 15,000. Covertype takes 45; `avsf` alone has a gap of 5% after 600.
"""

from dataclasses import replace

import numpy as np

from widemargin.solvers.coordinate_descent.avsf import AVSF, AdaptiveSweeps
from widemargin.solvers.coordinate_descent.loop import descend
from widemargin.solvers.coordinate_descent.state import Coordinates

_COST_FACTOR = 10.0  # between the costs of two stages
_LARGEST_HEIGHT = 1e18
MIN_BURDEN = 3.0  # a stage with a smaller burden is skipped


def climb(problem, settings, start=None):
    """Minimise a DualQP in stages of increasing costs; `start` are dual variables.

    If there is a `start`, or the stopping rule is "kkt", there is one stage, and the method is that of `avsf`.
    """
    state = Coordinates(problem, start, settings.n_jobs)
    if start is not None or settings.stopping == "kkt":
        return descend(AdaptiveSweeps(state, settings), settings)
    return descend(ClimbingSweeps(state, settings), settings)


CLIMB = replace(AVSF, name="climb", solve=climb)


def height(problem, norms=None):
    """Return the height of a problem: `coordinate_steps`, at least 1, and at most what continuation in C can use."""
    return min(max(coordinate_steps(problem, norms), 1.0), _LARGEST_HEIGHT)


def coordinate_steps(problem, norms=None):
    """Return about how many coordinate steps take a dual variable from zero to its bound.

    It is the mean of bound_i |x_i|², divided by the mean of |target_i| (plus the entropy, if there is one). For a
    squared loss, which has no bound, 1/(2 curvature), the cost of the row, takes its place. `norms` are |x_i|², if they
    are known already.
    """
    steps, targets = problem.X.place.total(_height_sums, problem, norms)
    # If all targets are zero, so is the solution.
    return float(steps) / float(targets) if targets > 0.0 else 1.0


def _height_sums(problem, norms):
    """Return Σ bound_i |x_i|² and Σ |target_i| + entropy."""
    norms = problem.X.row_squares() if norms is None else norms
    bound = np.maximum(np.abs(problem.lower), np.abs(problem.upper))
    is_squared = problem.curvature > 0.0
    bound[is_squared] = 0.5 / problem.curvature[is_squared]
    with np.errstate(over="ignore"):  # infinitely many steps are more than any limit; the solvers refuse such numbers
        steps = (bound * norms).sum()
    return np.array([steps, (np.abs(problem.target) + problem.entropy).sum()])


class ClimbingSweeps(AdaptiveSweeps):
    """Adaptive sweeps in stages; in the first, the costs are divided by the power of ten that makes the height about 1.

    Attributes
    ----------
    n_stages_left : int
        How many times the costs are still to be multiplied by ten.
    """

    name = "climb"

    def __init__(self, coordinates, settings):
        super().__init__(coordinates, settings)
        self.n_stages_left = round(np.log10(height(coordinates.problem, coordinates.norms)))
        coordinates.set_costs(_COST_FACTOR**-self.n_stages_left)

    def sweep(self, max_visits, max_sweeps):
        """Sweep within the limits; before the last stage, sweep once, and skip the stage if its burden is small."""
        if not self.n_stages_left:
            return super().sweep(max_visits, max_sweeps)
        report = super().sweep(0, 1)
        if report.loss < MIN_BURDEN * 2.0 * self.coordinates.half_norm():
            self._raise_costs()
        return report._replace(full=False)  # a stage that has converged does not mean that the problem has

    def advance(self, half_norm, loss):
        """Multiply the costs by ten and scale the dual variables; return False if there is no stage left."""
        if not self.n_stages_left:
            return False
        self._raise_costs()
        self.coordinates.scale_beta(min(1.0 + loss / max(2.0 * half_norm, np.finfo(float).tiny), _COST_FACTOR))
        return True

    def _raise_costs(self):
        self.n_stages_left -= 1
        self.coordinates.set_costs(_COST_FACTOR**-self.n_stages_left)
        self.average = -1.0  # the gains of coordinate steps have changed with the costs
        self.reset_selection()
