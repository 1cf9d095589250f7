"""`climb`: adaptive dual coordinate descent that comes to large costs by way of small ones.

From zero, a multiplier that must end at a cost C gets there in steps of about 1/|x_i|²: coordinate descent needs
time in proportion to C. But if the data cannot be separated, the solution for 10 C is nearly 10 times that of C: the
rows that are lost stay lost, and their multipliers scale with their cost. So the problem is solved with its costs
divided by 1000, 100, 10, say, one after the other, and each solution, stretched by 10, is where the next begins.

How far it pays to stretch can be read off: D(t beta) is largest at t = 1 + (losses / |w|²). Where losses are small
against |w|², as on text, where most rows can be had right, there is nothing to stretch. One sweep is enough to tell:
then the stage is left after it, and the next is tried.

The steps are those of `avsf`. Measured to a relative gap of 1e-3, hinge loss: a9a at C = 1000 needs 91 passes
instead of more than 15,000, covertype 45 where coordinate descent alone has a gap of 5% after 600.
"""

import numpy as np

from widemargin.problems.formulations import DualQP, Intercept
from widemargin.solvers.coordinate_descent.avsf import AdaptiveSweeps
from widemargin.solvers.coordinate_descent.loop import descend
from widemargin.solvers.coordinate_descent.state import Coordinates
from widemargin.solvers.spec import SolverSpec, Start

_STEP = 10.0
_MOST_HEIGHT = 1e18
WORTH_SOLVING = 3.0  # losses / |w|² from which on a stage is solved before the next


def climb(problem, settings, start=None):
    """Minimise a DualQP in stages of growing cost; from a given `start`, or by the KKT rule, in one stage as `avsf`."""
    state = Coordinates(problem, start, settings.n_jobs)
    if start is not None or settings.stopping == "kkt":
        return descend(AdaptiveSweeps(state, settings), settings)
    return descend(ClimbingSweeps(state, settings), settings)


CLIMB = SolverSpec(
    name="climb",
    solve=climb,
    takes=frozenset({DualQP}),
    intercepts=frozenset({Intercept.NONE, Intercept.PENALISED}),
    starts_from=Start.DUAL,
    stopping=("gap", "kkt"),
    counts="sweeps",
)


def height(problem, norms=None):
    """Return about how many steps a multiplier has to make from zero to its bound, or to where its spring holds it.

    `norms` are |x_i|², if they are known already.
    """
    norms = problem.X.squared_norms() if norms is None else norms
    reach = np.maximum(np.abs(problem.lower), np.abs(problem.upper))
    soft = problem.curvature > 0.0
    reach[soft] = 0.5 / problem.curvature[soft]
    size = float(np.abs(problem.target).mean())
    steps = float((reach * norms).mean()) / size if size > 0.0 else 1.0  # without targets, zero is the solution
    return min(max(steps, 1.0), _MOST_HEIGHT)


class ClimbingSweeps(AdaptiveSweeps):
    """Adaptive sweeps whose problem begins with costs divided by as many tens as make its height about 1.

    Attributes
    ----------
    tens : how often costs are still to be multiplied by ten.
    """

    name = "climb"

    def __init__(self, coordinates, settings):
        super().__init__(coordinates, settings)
        self.tens = round(np.log10(height(coordinates.problem, coordinates.norms)))
        coordinates.set_costs(_STEP**-self.tens)

    def sweep(self, budget, most):
        """Sweep, one at a time while a stage may turn out not to be worth solving."""
        if not self.tens:
            return super().sweep(budget, most)
        report = super().sweep(0, 1)
        if report.loss < WORTH_SOLVING * 2.0 * self.coordinates.half_norm():
            self._raise_costs()
        return report._replace(full=False)  # not a sweep of the real problem: that nothing moves means nothing

    def advance(self, half_norm, loss):
        """State the problem with costs ten times as large, and take the multipliers along."""
        if not self.tens:
            return False
        self._raise_costs()
        self.coordinates.stretch(min(1.0 + loss / max(2.0 * half_norm, np.finfo(float).tiny), _STEP))
        return True

    def _raise_costs(self):
        self.tens -= 1
        self.coordinates.set_costs(_STEP**-self.tens)
        self.average = -1.0  # gains have another size now: learn them anew
        self.widen()
