"""Crammer and Singer's problem of all classes at once: the choice between dual coordinate descent and cutting planes.

Cutting planes take the problem as a risk of scores, with n_classes scores for each row: a pass over the rows serves all
classes, and rows may be in memory, in blocks on disk or on a cluster. Dual coordinate descent visits rows one by one.

`chosen` takes cutting planes for rows that are not in memory, for checkpoints, and where they were measured to be
faster: if the mean of cost_i |x_i|², about the number of coordinate steps from zero to the bound of a dual variable, is
1 or more, there are more rows than columns, and X is not small. Seconds of processor time to a gap of 1e-4, without
intercept, as planes / sweeps, one run each on a busy machine; at > a limit of 5 s ended the fit:

    | data           | mean 0.01     | 0.1           | 1             | 10            | 100          |
    |----------------|---------------|---------------|---------------|---------------|--------------|
    | dna.scale      | 0.004 / 0.004 | 0.006 / 0.009 | 0.024 / 0.049 | 0.098 / 0.282 | 0.16 / 1.31  |
    | satimage.scale | 0.008 / 0.007 | 0.012 / 0.017 | 0.020 / 0.093 | 0.036 / 0.645 | 0.07 / >5    |
    | pendigits      | 0.033 / 0.012 | 0.046 / 0.043 | 0.071 / 0.267 | 0.115 / 1.912 | 0.20 / >5    |
    | letter.scale   | 0.239 / 0.075 | 0.284 / 0.234 | 0.399 / 1.043 | 0.582 / >5    | 1.09 / >5    |

To a gap of 1e-2 sweeps take up to half the time of planes at a mean of 1, and planes half the time of sweeps at 10.
"""

import numpy as np

from widemargin.problems.formulations import RiskProblem
from widemargin.solvers.contract import changed
from widemargin.solvers.coordinate_descent.crammer_singer import CRAMMER_SINGER
from widemargin.solvers.cutting_planes.methods import OCAS
from widemargin.solvers.finishing import finishing_risk
from widemargin.solvers.registry import solvers_of

_LEAST_STEPS_OF_PLANES = 1.0  # mean of cost |x|², from which on cutting planes are chosen
_LEAST_PRODUCTS_OF_PLANES = (
    1 << 17
)  # stored values times classes, below which an iteration of planes is mostly overhead


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
    if problem.X.is_wide or problem.X.n_stored * problem.n_classes < _LEAST_PRODUCTS_OF_PLANES:
        return CRAMMER_SINGER, "few rows"
    steps = float(problem.cost @ problem.X.squared_norms(settings.n_jobs)) / problem.X.n_rows
    return (OCAS, "large costs") if steps >= _LEAST_STEPS_OF_PLANES else (CRAMMER_SINGER, "small costs")
