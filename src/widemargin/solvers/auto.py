"""The solvers by name, and which of them takes a problem when the caller leaves the choice to us.

The rule has one number: the `height`, how many steps a multiplier has to make from zero to its bound, the mean of
cost |x_i|² over the mean |target|. Plain coordinate descent with shrinking does best while that takes fewer steps than
its sweeps take anyway; beyond that, `climb`. Measurements: docs/which-solver.md.
"""

from widemargin.solvers.avsf import AdaptiveSweeps, avsf
from widemargin.solvers.climb import ClimbingSweeps, climb, height
from widemargin.solvers.coordinates import Coordinates
from widemargin.solvers.descent import descend
from widemargin.solvers.dual_cd import ShrinkingSweeps, dcd

_TOO_HIGH_FOR_DCD = 30.0


def auto(problem, settings, start=None):
    """Minimise a DualQP by the solver that suits it; Solution.solver tells which."""
    state = Coordinates(problem, start, settings.n_jobs)
    if height(state) < _TOO_HIGH_FOR_DCD:
        return descend(ShrinkingSweeps(state, settings), settings, "dcd")
    if start is not None or settings.stopping == "kkt":
        return descend(AdaptiveSweeps(state, settings), settings, "avsf")
    return descend(ClimbingSweeps(state, settings), settings, "climb")


SOLVERS = {"dcd": dcd, "avsf": avsf, "climb": climb, "auto": auto}
