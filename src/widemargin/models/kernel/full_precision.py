"""Solutions of small kernel problems to full precision."""

from dataclasses import replace

import numpy as np

from widemargin.solvers.contract import Status
from widemargin.solvers.decomposition.whole_matrix import FULL_PRECISION, MAX_ROWS_OF_FULL_PRECISION
from widemargin.solvers.registry import KERNEL_SOLVERS

_MAX_REFINEMENT_ITERATIONS = 12  # of svmlight; each divides the violation by about ten, and takes a few milliseconds


def refined(problem, settings, solution):
    """Return the solution of a small problem to full precision, which takes a few milliseconds.

    Within a tolerance, the solution depends on the order of the rows and on how they are stored. To full precision, a
    row of weight two gives the same model as the row twice, and a sparse matrix the same as a dense one. A solution of
    "smo" that reached its own limit of iterations is continued by "svmlight".
    """
    if problem.K.n_rows > MAX_ROWS_OF_FULL_PRECISION:
        return solution
    if solution.status is Status.MAX_ITER and settings.max_iter is None:
        solution = KERNEL_SOLVERS["svmlight"](problem, settings, solution.beta)
    if solution.status is not Status.CONVERGED or min(settings.tol, solution.violation) <= FULL_PRECISION:
        return solution
    finer = replace(settings, tol=FULL_PRECISION, stopping="kkt", max_iter=_MAX_REFINEMENT_ITERATIONS, callbacks=())
    refined = KERNEL_SOLVERS["svmlight"](problem, finer, solution.beta)
    if not refined.violation < solution.violation or refined.gap > max(solution.gap, settings.tol):
        return solution
    history = np.concatenate([solution.history[:-1], refined.history[-1:]])
    history[-1:][["iteration", "seconds", "passes"]] = solution.history[-1:][["iteration", "seconds", "passes"]]
    unchanged = {name: getattr(solution, name) for name in ("n_iter", "status", "solver", "n_computed")}
    return replace(refined, history=history, **unchanged)
