"""Crammer and Singer's problem of all classes at once: the choice between dual coordinate descent and cutting planes.

Cutting planes take the problem as a risk of scores, with n_classes scores for each row: a pass over the rows serves all
classes, and rows may be in memory, in blocks on disk or on a cluster. Dual coordinate descent visits rows one by one.
"""

import numpy as np

from widemargin.problems.formulations import RiskProblem
from widemargin.solvers.contract import changed
from widemargin.solvers.coordinate_descent.crammer_singer import CRAMMER_SINGER
from widemargin.solvers.cutting_planes.methods import OCAS
from widemargin.solvers.finishing import finishing_risk
from widemargin.solvers.registry import solvers_of


def by_planes(spec, why=""):
    """Return a solver of CrammerSinger problems by the solver of RiskProblems of a spec; it starts from weights.

    The weights of a class are a row of `start`, and a column of `w` of the solution.
    """
    solve = finishing_risk(solvers_of(RiskProblem)[spec.name])

    def solve_all(problem, settings, start=None):
        stated = problem.as_risk(settings.n_jobs)
        solution = solve(stated, settings, None if start is None else np.ravel(start))
        W, constant = stated.X.weights(solution.w).T, stated.X.X.constant
        return changed(solution, w=W, intercept=constant * W[-1] if constant else np.zeros(W.shape[1]), why=why)

    return solve_all


def chosen(problem, settings):
    """Return the spec of the solver for a CrammerSinger problem, and the reason of the choice."""
    if settings.stopping == "kkt":
        return CRAMMER_SINGER, "stopping='kkt'"
    if not problem.X.is_in_memory:
        return OCAS, "rows are not in memory"
    if settings.checkpoint is not None:
        return OCAS, "it writes checkpoints"
    return CRAMMER_SINGER, ""
