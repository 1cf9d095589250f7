"""The squared hinge with an L1 penalty, or with that of the elastic net, which make weights zero.

    minimise   Σ_j (l1 |w_j| + ½ l2 w_j²) + Σ_i cost_i max(0, z_i)²,     z_i = 1 − sign_i (<w, x_i> + b)

The intercept b is the weight of a constant column, with the same penalty, or free. With v = Σ_i sign_i a_i x_i and one
dual variable a_i >= 0 for each row, the dual is

    maximise   Σ_i (a_i − a_i² / (4 cost_i)) − Σ_j max(0, |v_j| − l1)² / (2 l2)

If l2 = 0, the last sum is the constraint |v_j| <= l1; if the intercept is free, Σ_i sign_i a_i = 0. At the optimum
a_i = 2 cost_i max(0, z_i), and w_j = 0 unless |v_j| >= l1.

Certificate: the a_i of any weights, times a factor t, are a feasible point. With A = Σ a_i and B = Σ a_i² / (4 cost_i)
its value is t A − t² B less the last sum. We take the t with the largest value, at most l1 / max_j |v_j| if l2 = 0.

Screening: the dual objective is strongly concave, so that Σ (a_i − a*_i)² / (4 cost_i) <= gap for the optimal a*. Hence
w_j = 0 in every optimum if |v_j| + 2 sqrt(gap Σ_i cost_i x_ij²) < l1 (Ndiaye, Fercoq, Gramfort, Salmon, "Gap Safe
screening rules for sparsity enforcing penalties", JMLR 2017).
"""

import math
from dataclasses import dataclass, replace

import numpy as np

from widemargin.data.matrix import Matrix
from widemargin.problems.formulations import Intercept, checksum_of
from widemargin.problems.squared_hinges import minimise_squared_hinges
from widemargin.problems.magnitudes import check_costs, check_magnitudes

_UNIT_ROUNDOFF = 2.0**-53
_PAIRWISE_SUM_ERROR = 64.0 * _UNIT_ROUNDOFF  # relative to the sum of absolute values, of a sum by NumPy
_MAX_NEWTON_STEPS = 100


@dataclass(frozen=True)
class ElasticNet:
    """The problem of this module; `sign` (1 or −1) and `cost` have n_rows elements."""

    X: Matrix
    sign: np.ndarray
    cost: np.ndarray
    l1: float
    l2: float
    free_intercept: bool = False
    lower_bound = objective_scale = 0.0  # as those of DualQP

    def check(self, squared_norms):
        """Raise ValueError if numbers of the problem, with these |x_i|², are not valid or may overflow."""
        check_costs(self.cost, squared_norms)
        with np.errstate(over="ignore", invalid="ignore"):
            largest_norm, total = float(np.sqrt(squared_norms.max(initial=0.0))), float(self.cost.sum())
            largest_loss = total * np.square(1.0 + largest_norm * self.norm_bound(total))
            check_magnitudes(2.0 * total * largest_norm, largest_loss, self.cost.max(initial=0.0), largest_norm)

    def checksum(self):
        """Return a number that differs if signs or costs of rows, or the penalty, differ."""
        return checksum_of(self.sign, self.cost, np.array([self.l1, self.l2]))

    @property
    def intercept(self):
        """Whether there is an intercept, and whether it is penalised."""
        if self.free_intercept:
            return Intercept.FREE
        return Intercept.PENALISED if self.X.constant else Intercept.NONE

    def scaled(self, factor):
        """Return the problem with all costs multiplied by a factor."""
        return self if factor == 1.0 else replace(self, cost=factor * self.cost)

    def norm_bound(self, objective):
        """Return a bound of |w| of all weights whose objective is at most this."""
        by_l1 = objective / self.l1 if self.l1 > 0.0 else math.inf
        return min(by_l1, math.sqrt(2.0 * objective / self.l2) if self.l2 > 0.0 else math.inf)

    def best_intercept(self, scores):
        """Return the intercept without penalty that minimises the losses at scores + b."""
        has_cost = self.cost > 0.0
        sign = self.sign[has_cost]
        return minimise_squared_hinges(sign - scores[has_cost], self.cost[has_cost], sign)

    def intercept_of(self, theta):
        """Return the intercept of weights, which have a free one at the end."""
        if self.free_intercept:
            return float(theta[-1])
        return self.X.constant * float(theta[-1]) if self.X.constant else 0.0

    def penalty(self, w):
        """Return Σ_j (l1 |w_j| + ½ l2 w_j²)."""
        return self.l1 * float(np.abs(w).sum()) + 0.5 * self.l2 * float(w @ w)

    def smallest_C(self):
        """Return the factor of the costs up to which all weights that have a penalty are zero in an optimum."""
        zeros = np.zeros(self.X.n_rows)
        intercept = self.best_intercept(zeros) if self.free_intercept else 0.0
        a = 2.0 * self.cost * np.maximum(0.0, 1.0 - self.sign * intercept)
        largest = float(np.abs(self.X.combine(self.sign * a)).max(initial=0.0))
        return self.l1 / largest if largest > 0.0 else math.inf


def best_factor(A, B, v, l1, l2):
    """Return the t >= 0 with the largest dual value t A − t² B − Σ_j max(0, t v_j − l1)² / (2 l2), and that value.

    `v` are absolute values. The slope by t is a decreasing, concave function, so that Newton's method descends to its
    zero from the right.
    """
    if not (A > 0.0 and B > 0.0):
        return 0.0, 0.0
    t, largest = 0.5 * A / B, float(v.max(initial=0.0))
    if l2 == 0.0:
        t = min(t, l1 / largest) if largest > 0.0 else t
        return t, t * A - t * t * B
    v = v[v * t > l1]
    for _ in range(_MAX_NEWTON_STEPS):
        v = v[v * t > l1]
        excess = t * v - l1
        slope, second = A - 2.0 * t * B - float(v @ excess) / l2, 2.0 * B + float(v @ v) / l2
        if not -slope / second > _UNIT_ROUNDOFF * t:
            break
        t = max(0.0, t + slope / second)
    excess = np.maximum(t * v - l1, 0.0)
    return t, t * A - t * t * B - 0.5 * float(excess @ excess) / l2


def certified(problem, w, intercept, n_jobs=1):
    """Return signed dual variables, the primal objective, and a lower bound of the optimum that includes rounding.

    The dual variables are sign_i t a_i. The errors of all sums are bounded as in `solvers.finishing`, and those of v
    make t smaller, so that the constraint |v_j| <= l1 holds in spite of them.
    """
    X, cost = problem.X, problem.cost
    b = intercept if problem.free_intercept else 0.0
    norms, w_norm = np.sqrt(X.squared_norms(n_jobs)), math.sqrt(float(w @ w))
    z = 1.0 - problem.sign * (X.scores(w, n_jobs) + b)
    worst = z + (X.longest_row + 4) * _UNIT_ROUNDOFF * (1.0 + norms * w_norm + abs(b))
    loss, worst_loss = (float(cost @ np.square(np.maximum(part, 0.0))) for part in (z, worst))
    penalty = problem.penalty(w)
    primal = penalty + loss
    primal_error = worst_loss - loss + (len(w) + len(z)) * _UNIT_ROUNDOFF * primal
    a = _balanced(problem, 2.0 * cost * np.maximum(z, 0.0))
    A, B = float(a.sum()), float(np.divide(a * a, 4.0 * cost, out=np.zeros_like(a), where=cost > 0.0).sum())
    v_error = (X.longest_sum + 4) * _UNIT_ROUNDOFF * float(a @ norms)
    v = np.abs(X.combine(problem.sign * a, n_jobs)) + v_error
    t, value = best_factor(A, B, v, problem.l1, problem.l2)
    t *= 1.0 - 4.0 * _UNIT_ROUNDOFF
    sizes = t * A + t * t * B + max(t * A - t * t * B - value, 0.0)
    dual_error = (_PAIRWISE_SUM_ERROR + (0 if problem.l2 == 0.0 else len(v)) * _UNIT_ROUNDOFF) * sizes
    beta = problem.sign * (t * a)
    dual_error += _error_of_imbalance(problem, beta, primal, norms)
    bound = value - primal_error - dual_error
    return (beta, primal, bound) if bound > 0.0 else (np.zeros_like(beta), primal, 0.0)


def _balanced(problem, a):
    """Return dual variables whose sums over the two signs are equal, if the intercept is free."""
    if not problem.free_intercept:
        return a
    positive = problem.sign > 0.0
    sums = float(a[positive].sum()), float(a[~positive].sum())
    smaller = min(sums)
    factors = [smaller / part if part > 0.0 else 0.0 for part in sums]
    return a * np.where(positive, *factors)


def _error_of_imbalance(problem, beta, primal, norms):
    """Return a bound of |Σ beta_i| |b*|, by which an imbalance may raise the dual value above the optimum.

    At the optimum some row of each sign has a positive loss, or all dual variables are zero and so is the objective;
    hence |b*| <= 1 + max |x_i| |w*|.
    """
    if not problem.free_intercept:
        return 0.0
    imbalance = abs(float(beta.sum())) + _PAIRWISE_SUM_ERROR * float(np.abs(beta).sum())
    return imbalance * (1.0 + float(norms.max(initial=0.0)) * problem.norm_bound(primal))
