"""Steps of the proximal Newton method for few columns: of all columns at once, and the warm start.

With many rows for each column, the problem of a random eighth of the rows is solved first, recursively, with costs
eight times as large. The first steps then cost an eighth; and at the solution of the sample many rows have zero loss
already, so that the first matrix over all rows has few of them. The sum over C takes two thirds of the time on w8a, and
three quarters on covtype. A sample is solved until a step decreases its objective by less than a tenth.
"""

from dataclasses import replace

import numpy as np

from widemargin.solvers.proximal_newton.gram_model import GramModel
from widemargin.solvers.proximal_newton.point import Point

_SEED = 0  # of the sample: weights are the same in every fit
_SAMPLING_RATIO = 8  # rows per row of the sample that is solved first
_MIN_SAMPLE_ROWS, _MIN_SAMPLE_ROWS_PER_COLUMN = 1000, 10
_DECREASE, _MAX_STEPS = 0.1, 50  # relative, of the objective in a step on a sample, with which steps end; their number


class WholeSteps:
    """Newton steps of all columns at once."""

    def __init__(self, point, n_jobs):
        self._point, self._n_jobs = point, n_jobs
        self._model = GramModel(point.problem.X, point.problem.free_intercept, n_jobs)
        self._every = np.arange(len(point.theta))

    def __call__(self):
        """Take a step after a measurement; return whether the objective has decreased."""
        point, n = self._point, self._point.problem.X.n_columns
        gradient = np.empty(len(point.theta))
        gradient[:n], gradient[n:] = -point.v, -point.slope.sum()
        new = self._model.minimise(point.theta, gradient, point.curvature, point.penalties(self._every))
        direction = new - point.theta
        change = point.problem.X.scores(direction[:n], self._n_jobs)
        change += direction[n:].sum()
        return point.move(self._every, new, change)


def sampled_start(problem, watch):
    """Return weights that solve the problem of a sample of the rows, about; None if there are too few rows."""
    X, settings = problem.X, watch.settings
    n_rows = X.n_rows // _SAMPLING_RATIO
    if n_rows < max(_MIN_SAMPLE_ROWS, _MIN_SAMPLE_ROWS_PER_COLUMN * X.n_columns):
        return None
    rows, part = X.sample(n_rows, _SEED)
    sample = replace(problem, X=part, sign=problem.sign[rows], cost=problem.cost[rows] * (X.n_rows / n_rows))
    if not _has_both_signs(sample):
        return None
    point = Point(sample, sampled_start(sample, watch), settings.n_jobs)
    step, last = WholeSteps(point, settings.n_jobs), np.inf
    for _ in range(_MAX_STEPS if settings.max_iter is None else min(settings.max_iter, _MAX_STEPS)):
        point.measure()
        if point.primal >= (1.0 - _DECREASE) * last or watch.is_over or not step():
            break
        last = point.primal
    return point.theta[: X.n_columns]


def _has_both_signs(problem):
    """Return whether both signs have rows with a cost, without which the best free intercept may be infinite."""
    signs = problem.sign[problem.cost > 0.0]
    return bool((signs > 0.0).any() and (signs < 0.0).any())
