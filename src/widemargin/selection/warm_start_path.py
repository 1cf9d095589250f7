"""One problem along ascending values of C, by any solver; each fit is a warm start from the solution of the last."""

import numpy as np

from widemargin.solvers.registry import formulation_of, solve_with, specs_of
from widemargin.solvers.spec import Start


class WarmStartPath:
    """The solutions of a problem for one C after the other.

    Parameters
    ----------
    problem : DualQP or ElasticNet
        With the costs for C = 1.
    settings : Settings
    solver : str

    Attributes
    ----------
    start : ndarray or None
        Weights or dual variables of the last solution; None if there is none.
    last_C : float
        The C of that solution.
    largest_factor : float
        The factor by which its dual variables are multiplied, at most.
    """

    STATE = ("start", "last_C", "largest_factor")  # what a checkpoint keeps between two values of C

    def __init__(self, problem, settings, solver):
        self._problem, self._settings = problem, settings
        self._spec = specs_of(formulation_of(problem))[solver]
        self._by_weights = self._spec.starts_from is Start.WEIGHTS
        self.start, self.last_C, self.largest_factor = None, np.nan, np.inf

    def solved(self, C):
        """Return a list with the Solution for a C."""
        start = self.start
        if start is not None and not self._by_weights:
            start = start * min(self.largest_factor, C / self.last_C)
        solution = solve_with(self._spec, self._problem.scaled(C), self._settings, start)
        self.start = solution.w if self._by_weights else solution.beta
        self.last_C, self.largest_factor = float(C), _best_factor(solution)
        return [solution]

    def states(self):
        """Return a list with the object whose STATE a checkpoint keeps between two values of C."""
        return [self]

    def resume(self, last_C, restore):
        """Go on after a C; `restore(0, state)` sets what `states` returned then."""
        restore(0, self)


def _best_factor(solution):
    """Return by which factor the dual solution is the best start for larger costs, if the box constraints allow it.

    Without curvature, the dual objective along s β is s (|w|² + L) − ½ s² |w|², where L is the sum of the losses. Its
    maximum is at s = 1 + L / |w|²; the box constraints allow s up to the ratio of the costs.
    """
    squared_norm = float(solution.w @ solution.w)
    loss = float(solution.primal - 0.5 * squared_norm)
    return 1.0 + loss / squared_norm if squared_norm > 0.0 else np.inf
