"""Steps of the proximal Newton method for many columns: on working sets of columns, with screening.

A working set has the columns whose weights are not zero, and those of the others that violate their optimality
condition |v_j| <= l1 most. Newton steps on it go on until its largest violation is a fraction of what it was; then a
pass over X shows which columns violate their conditions now. The set grows with the number of weights that are not
zero, at most twofold at a time.

Columns that the certificate proves to have the weight zero in every optimum are never looked at again; see
`problems.elastic_net` for the rule.
"""

import numpy as np

from widemargin.data.by_columns import add_columns, chosen_columns, set_dots, weighted_squares
from widemargin.solvers.proximal_newton.column_model import ColumnModel

_MIN_COLUMNS = 128
_MAX_STEPS = 6  # Newton steps on a working set
_REDUCTION = 0.2  # of the largest violation, at which the next working set is chosen


class WorkingSets:
    """Chooses working sets, and moves a Point by Newton steps on them.

    `is_excluded` says which columns are proved to have the weight zero.
    """

    def __init__(self, point):
        self._point = point
        self.is_excluded = np.zeros(point.problem.X.n_columns, bool)
        self._norms = None

    def screen(self):
        """Exclude the columns that are proved to have no weight at the optimum; return their number so far.

        The dual variables are `factor` times the slopes.
        """
        point, problem = self._point, self._point.problem
        if self._norms is None:
            self._norms = problem.loss.reach * np.sqrt(weighted_squares(problem.X, problem.cost))
        radius = np.sqrt(max(point.primal - point.dual, 0.0))
        excluded = np.abs(point.factor * point.v) + radius * self._norms < problem.l1
        self.is_excluded |= excluded
        wrong = np.flatnonzero(self.is_excluded & (point.theta[: len(excluded)] != 0.0))
        if len(wrong):
            columns, numbers = chosen_columns(problem.X, wrong)
            add_columns(columns, numbers, -point.theta[wrong], point.scores)
            point.theta[wrong] = 0.0
        return int(np.count_nonzero(self.is_excluded))

    def step(self):
        """Choose a working set after a measurement, and take Newton steps on it; return whether anything moved."""
        point, which = self._point, self._chosen()
        columns, numbers = chosen_columns(point.problem.X, which)
        model = ColumnModel(columns, numbers)
        gradient, penalties, target, has_moved = np.empty(len(which)), point.penalties(which), None, False
        for _ in range(_MAX_STEPS):
            point.differentiate()
            set_dots(columns, numbers, point.slope, gradient)
            gradient *= -1.0
            theta = point.theta[which]
            violation = _largest_violation(theta, gradient, penalties)
            target = _REDUCTION * violation if target is None else target
            if violation <= target:
                break
            new = model.minimise(theta, gradient, point.curvature, penalties)
            change = np.zeros(len(point.scores))
            add_columns(columns, numbers, new - theta, change)
            if not point.move(which, new, change):
                break
            has_moved = True
        return has_moved

    def _chosen(self):
        """Return the numbers of the columns of the next working set; that of the intercept is the last."""
        point = self._point
        support, excess = point.support, np.abs(point.v) - point.problem.l1
        excess[support] = 0.0
        excess[self.is_excluded] = 0.0
        others = np.flatnonzero(excess > 0.0)
        room = max(_MIN_COLUMNS, len(support))
        if len(others) > room:
            others = others[np.argpartition(-excess[others], room)[:room]]
        last = np.arange(point.problem.X.n_features, len(point.theta))  # a constant column or a free intercept
        chosen = np.concatenate([support, others])
        return np.concatenate([np.sort(chosen[chosen < point.problem.X.n_features]), last])


def _largest_violation(theta, gradient, penalties):
    """Return the largest violation of an optimality condition: the smallest absolute value of a subgradient."""
    l1, l2 = penalties
    slope = gradient + l2 * theta
    at_zero = np.maximum(np.abs(slope) - l1, 0.0)
    return float(np.where(theta == 0.0, at_zero, np.abs(slope + l1 * np.sign(theta))).max(initial=0.0))
