"""The solvers by name, and which of them takes a problem when the caller leaves the choice to us.

Two numbers decide. The `height` is about how many steps a multiplier has to make from zero to its bound. The burden,
losses / |w|² with costs divided by so many tens that the height is about 1, tells how far the rows are from being
separable. It is known roughly after one sweep, and well when that smaller problem is solved.

    | rows, columns | height     | burden                               | solver                                      |
    |---------------|------------|--------------------------------------|---------------------------------------------|
    | n >= d        | below 5    |                                      | dcd: there is nothing to climb              |
    | n >= d        | 5 or more  | after a sweep, x height, below 300   | dcd                                         |
    | n >= d        | 5 or more  | below 3 when the first stage solved  | dcd: few rows matter, shrinking finds them  |
    | n >= d        | 5 or more  | 3 or more                            | climb                                       |
    | n < d         | below 20   |                                      | dcd                                         |
    | n < d         | 20 or more |                                      | climb, which mostly is avsf here            |

Measurements: docs/which-solver.md.
"""

import numpy as np

from widemargin.solvers.avsf import AdaptiveSweeps, avsf
from widemargin.solvers.climb import WORTH_SOLVING, ClimbingSweeps, climb, height
from widemargin.solvers.coordinates import Coordinates
from widemargin.solvers.cutting_plane import ocas, svmperf
from widemargin.solvers.descent import descend
from widemargin.solvers.dual_cd import ShrinkingSweeps, dcd

_LOW = 5.0
_LOW_IF_WIDE = 20.0
_WORTH_CLIMBING = 300.0


def auto(problem, settings, start=None):
    """Minimise a DualQP by the solver that suits it; Solution.solver tells which."""
    state = Coordinates(problem, start, settings.n_jobs)
    wide = problem.X.n_rows < problem.X.n_columns
    if height(state) < (_LOW_IF_WIDE if wide else _LOW):
        method = ShrinkingSweeps(state, settings)
    elif start is not None or settings.stopping == "kkt":
        method = AdaptiveSweeps(state, settings) if wide else ShrinkingSweeps(state, settings)
    else:
        method = ClimbingSweeps(state, settings) if wide else ChoosingSweeps(state, settings)
    return descend(method, settings)


class ChoosingSweeps:
    """Sweeps of `climb` until it is clear whether there is anything to climb; if not, of `dcd`."""

    def __init__(self, coordinates, settings):
        self.coordinates, self._settings = coordinates, settings
        self._worth = _WORTH_CLIMBING / height(coordinates)
        self._chosen, self._open = ClimbingSweeps(coordinates, settings), True

    @property
    def name(self):
        """The solver chosen."""
        return self._chosen.name

    def sweep(self, budget, most):
        """Sweep, and choose if that is still open."""
        report = self._chosen.sweep(budget, most)
        if self._open:
            self._choose(report.loss / max(2.0 * self.coordinates.half_norm(), np.finfo(float).tiny))
        return report

    def widen(self):
        """As the solver chosen does."""
        self._chosen.widen()

    def advance(self, half_norm, loss):
        """Choose by the burden of the stage just solved, if that is still open, and go on to the next."""
        if self._open and self._chosen.tens and loss < WORTH_SOLVING * 2.0 * half_norm:
            self._settle_for_dcd()
            return True
        self._open = False
        return self._chosen.advance(half_norm, loss)

    def _choose(self, burden):
        """Choose dcd if the first sweep shows too little to climb, or the last power of ten is reached."""
        if burden < self._worth or self._chosen.tens == 0:
            self._settle_for_dcd()
        self._worth = 0.0

    def _settle_for_dcd(self):
        self.coordinates.set_costs(1.0)
        self._chosen, self._open = ShrinkingSweeps(self.coordinates, self._settings), False


DUAL_SOLVERS = {"dcd": dcd, "avsf": avsf, "climb": climb, "auto": auto}
PLANE_SOLVERS = {"svmperf": svmperf, "ocas": ocas}
SOLVERS = DUAL_SOLVERS | PLANE_SOLVERS
