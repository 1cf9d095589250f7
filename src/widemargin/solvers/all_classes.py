"""Crammer and Singer's problem of all classes at once: the choice between dual coordinate descent and cutting planes.

Cutting planes take the problem as a risk of scores, with n_classes scores for each row: a pass over the rows serves all
classes, and rows may be in memory, in blocks on disk or on a cluster. Dual coordinate descent visits rows one by one.

`chosen` takes cutting planes for rows that are not in memory, for checkpoints, and where they were measured to be
faster: if the mean of cost_i |x_i|², about the number of coordinate steps from zero to the bound of a dual variable, is
20 sqrt(tol) or more, there are more rows than columns, and X is not small. The smaller the tolerance, the more sweeps
are needed, and they are the more the larger the costs are. Milliseconds of processor time, without intercept, as
planes / sweeps, the better of two runs on a busy machine; – was not measured:

    | data           | tol  | mean 0.1  | 0.3       | 1          | 3         | 10        |
    |----------------|------|-----------|-----------|------------|-----------|-----------|
    | dna.scale      | 1e-2 | –         | –         | 6.2 / 6.0  | 9.4 / 13  | 19 / 47   |
    | satimage.scale | 1e-2 | –         | 10 / 5.2  | 11 / 11    | 15 / 20   | 18 / 51   |
    | pendigits      | 1e-2 | 29 / 7.6  | 38 / 12   | 49 / 23    | 55 / 48   | 69 / 153  |
    | letter.scale   | 1e-2 | 275 / 49  | 332 / 85  | 413 / 142  | 471 / 308 | 585 / 969 |
    | usps           | 1e-2 | 123 / 34  | 162 / 58  | 210 / 119  | 320 / 305 | 443 / 753 |
    | dna.scale      | 1e-3 | –         | 6.8 / 7.0 | 12 / 14    | 25 / 37   | –         |
    | satimage.scale | 1e-3 | –         | 13 / 10   | 18 / 25    | 20 / 58   | –         |
    | pendigits      | 1e-3 | –         | 54 / 33   | 68 / 83    | 83 / 168  | –         |
    | letter.scale   | 1e-3 | –         | 449 / 187 | 525 / 436  | 624 / 944 | –         |
    | usps           | 1e-3 | –         | 210 / 116 | 320 / 303  | 523 / 844 | –         |
    | dna.scale      | 1e-4 | 6.9 / 5.6 | 14 / 17   | 25 / 27    | 58 / 72   | 91 / 167  |
    | satimage.scale | 1e-4 | 13 / 12   | 15 / 27   | 21 / 70    | 28 / 154  | 39 / 493  |
    | pendigits      | 1e-4 | 50 / 51   | 78 / 104  | 105 / 304  | 127 / 672 | –         |
    | letter.scale   | 1e-4 | 445 / 269 | 484 / 511 | 620 / 1132 | –         | –         |
    | usps           | 1e-4 | 196 / 133 | 294 / 297 | 539 / 782  | –         | –         |
    | satimage.scale | 1e-6 | 26 / 109  | 37 / 226  | 48 / 539   | –         | –         |
    | pendigits      | 1e-6 | 99 / 280  | 128 / 885 | –          | –         | –         |
"""

import math

import numpy as np

from widemargin.problems.formulations import RiskProblem
from widemargin.solvers.contract import changed
from widemargin.solvers.coordinate_descent.crammer_singer import CRAMMER_SINGER
from widemargin.solvers.cutting_planes.methods import OCAS
from widemargin.solvers.finishing import finishing_risk
from widemargin.solvers.registry import solvers_of

_STEPS_PER_ROOT_OF_TOL = 20.0  # mean of cost |x|² divided by sqrt(tol), from which on cutting planes are chosen
_RANGE_OF_STEPS = 0.05, 2.0  # in which that bound is, whatever the tolerance is: where it was measured
_LEAST_PRODUCTS_OF_PLANES = 1 << 17  # stored values times classes; with fewer, iterations of planes are overhead


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
    lowest, highest = _RANGE_OF_STEPS
    least_steps = min(max(_STEPS_PER_ROOT_OF_TOL * math.sqrt(settings.tol), lowest), highest)
    return (OCAS, "large costs") if steps >= least_steps else (CRAMMER_SINGER, "small costs")
