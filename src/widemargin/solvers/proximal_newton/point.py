"""The point of a proximal Newton method: weights, scores, derivatives, and the bounds of the optimum that they give.

θ are the weights of all columns of X, and a free intercept at the end. The scores of the rows are kept, and change with
the weights.
"""

import numpy as np

from widemargin.problems.elastic_net import best_factor
from widemargin.solvers.proximal_newton.line_search import Line

_NO_PROGRESS = 1e-15  # decrease of the objective, relative to it, up to which a step counts as none

_NEGLIGIBLE_WEIGHT = 1e-9  # relative to the largest weight


class Point:
    """θ of an ElasticNet, `scores`, and after `measure` the bounds `primal` and `dual`.

    `slope` is minus the derivative of each loss by its score, `curvature` the second derivative, `v` is X'slope.
    """

    def __init__(self, problem, start, n_jobs):
        X = problem.X
        self.problem, self._n_jobs, self._n_columns = problem, n_jobs, X.n_columns
        self.theta = np.zeros(X.n_columns + problem.free_intercept)
        self.scores = np.zeros(X.n_rows)
        if start is not None and start.any():
            self.theta[: X.n_columns] = start
            self.scores = X.scores(self.theta[: X.n_columns], n_jobs)
        self.slope, self.curvature = np.empty(X.n_rows), np.empty(X.n_rows)
        self.v, self.primal, self.dual, self.factor, self.loss = None, np.inf, 0.0, 0.0, np.inf
        self._curve = None

    @property
    def support(self):
        """The numbers of the columns of X whose weights are not zero."""
        return np.flatnonzero(self.theta[: self._n_columns])

    def penalties(self, which):
        """Return the factors of |θ_j| and of ½ θ_j² for chosen θ_j; those of a free intercept are zero."""
        has_penalty = which < self._n_columns
        return np.where(has_penalty, self.problem.l1, 0.0), np.where(has_penalty, self.problem.l2, 0.0)

    def differentiate(self):
        """Set slope and curvature, after a free intercept is set to its best value."""
        problem = self.problem
        if problem.free_intercept:
            without = self.scores - self.theta[-1]
            self.theta[-1] = problem.best_intercept(without)
            np.add(without, self.theta[-1], out=self.scores)
        rows = self.scores, problem.sign, problem.cost
        self.loss, self._curve = problem.loss.differentiate(*rows, self.slope, self.curvature)

    def measure(self):
        """Set the derivatives, v, and the bounds of the optimum, by a pass over X."""
        problem = self.problem
        self.differentiate()
        self.v = problem.X.combine(self.slope, self._n_jobs)
        self.factor, self.dual = best_factor(self._curve, np.abs(self.v), problem.l1, problem.l2)
        self.primal = self.loss + problem.penalty(self.theta[self.support])

    def drop_negligible(self):
        """Set weights to zero that short steps have left on their way there: tiny ones with |v_j| < l1."""
        w = self.theta[: self._n_columns]
        is_tiny = np.abs(w) <= _NEGLIGIBLE_WEIGHT * np.abs(w).max(initial=0.0)
        w[is_tiny & (np.abs(self.v) < self.problem.l1)] = 0.0

    def move(self, which, new, change):
        """Move the weights `which` towards `new` by a line search; `change` is the change of the scores at the end.

        Return whether the objective has decreased.
        """
        old, problem = self.theta[which], self.problem
        direction = new - old

        def losses_at(step):
            return problem.loss.along(self.scores, change, problem.sign, problem.cost, step)

        line = Line(old, direction, self.penalties(which), losses_at)
        step = line.best_step()
        if step == 0.0:
            return False
        decrease = line.at(0.0)[0] - line.at(step)[0]
        self.theta[which] = new if step == 1.0 else old + step * direction
        self.scores += step * change
        return decrease > _NO_PROGRESS * self.loss
