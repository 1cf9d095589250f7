"""The squared hinge or the log loss with an L1 penalty, or with that of the elastic net, which make weights zero.

    minimise   Σ_j (l1 |w_j| + ½ l2 w_j²) + Σ_i cost_i loss(m_i),     m_i = sign_i (<w, x_i> + b)

The intercept b is the weight of a constant column, with the same penalty, or free. With v = Σ_i sign_i a_i x_i and one
dual variable a_i >= 0 for each row, the dual is

    maximise   Σ_i D_i(a_i) − Σ_j max(0, |v_j| − l1)² / (2 l2)

where D_i(a_i) is a_i − a_i² / (4 cost_i) for the squared hinge, and an entropy for the log loss; see `margin_losses`.
If l2 = 0, the last sum is the constraint |v_j| <= l1; if the intercept is free, Σ_i sign_i a_i = 0. At the optimum a_i
is minus the derivative of the loss, and w_j = 0 unless |v_j| >= l1.

Certificate: the a_i of any weights, times a factor t, are a feasible point. We take the t whose dual value is largest,
at most l1 / max_j |v_j| if l2 = 0.

Screening: the dual objective is strongly concave, so that a feasible point is near the optimum if its gap is small. The
result is that w_j = 0 in every optimum if |v_j| + reach sqrt(gap Σ_i cost_i x_ij²) < l1, where the reach is 2 for the
squared hinge and √½ for the log loss (Ndiaye, Fercoq, Gramfort, Salmon, "Gap Safe screening rules for sparsity
enforcing penalties", JMLR 2017).
"""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from widemargin.data.matrix import Matrix
from widemargin.problems.formulations import Intercept, checksum_of
from widemargin.problems.magnitudes import check_costs, check_magnitudes
from widemargin.problems.margin_losses import PAIRWISE_SUM_ERROR, SQUARED_HINGE

_UNIT_ROUNDOFF = 2.0**-53
_MAX_NEWTON_STEPS = 100
_ACCURACY_OF_FACTOR = 1e-8  # relative; the dual value differs by the square of this


@dataclass(frozen=True)
class ElasticNet:
    """The problem of this module; `sign` (1 or −1) and `cost` have n_rows elements; for `loss` see `margin_losses`."""

    X: Matrix
    sign: np.ndarray
    cost: np.ndarray
    l1: float
    l2: float
    free_intercept: bool = False
    loss: Any = SQUARED_HINGE
    lower_bound = objective_scale = 0.0  # as those of DualQP

    def check(self, squared_norms):
        """Raise ValueError if numbers of the problem, with these |x_i|², are not valid or may overflow."""
        check_costs(self.cost, squared_norms)
        with np.errstate(over="ignore", invalid="ignore"):
            largest_norm, total = float(np.sqrt(squared_norms.max(initial=0.0))), float(self.cost.sum())
            largest_loss = total * np.square(1.0 + largest_norm * self.norm_bound(total))
            check_magnitudes(2.0 * total * largest_norm, largest_loss, self.cost.max(initial=0.0), largest_norm)

    def checksum(self):
        """Return a number that differs if signs or costs of rows, the loss or the penalty differ."""
        name = np.frombuffer(self.loss.name.encode(), np.uint8)
        return checksum_of(self.sign, self.cost, np.array([self.l1, self.l2]), name)

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
        return self.loss.best_intercept(self, scores)

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
        a = self.cost * self.loss.duals(self.sign * intercept)
        largest = float(np.abs(self.X.combine(self.sign * a)).max(initial=0.0))
        return self.l1 / largest if largest > 0.0 else math.inf


def best_factor(curve, v, l1, l2):
    """Return the t >= 0 with the largest dual value curve(t) − Σ_j max(0, t v_j − l1)² / (2 l2), and that value.

    `v` are absolute values. The value is a concave function of t; Newton's method finds the zero of its slope from the
    right, within a bracket.
    """
    t, largest = curve.start, float(v.max(initial=0.0))
    if t == 0.0:
        return 0.0, 0.0
    if l2 == 0.0 and largest > 0.0:
        t = min(t, l1 / largest)
    v = v[v * t > l1] if l2 > 0.0 else v[:0]
    low, high = 0.0, t
    for _ in range(_MAX_NEWTON_STEPS):
        value, slope, second = curve.at(t)
        excess = np.maximum(t * v - l1, 0.0)
        if len(v):
            value, slope = value - 0.5 * float(excess @ excess) / l2, slope - float(v @ excess) / l2
            second += float(np.square(v[excess > 0.0]).sum()) / l2
        if abs(slope) <= _ACCURACY_OF_FACTOR * t * second or (slope > 0.0 and t == high):
            break
        low, high = (low, t) if slope < 0.0 else (t, high)
        step = t + slope / second if second > 0.0 else low
        t = step if low < step < high else 0.5 * (low + high)
    return t, value


def certified(problem, w, intercept, n_jobs=1):
    """Return signed dual variables, the primal objective, and a lower bound of the optimum that includes rounding.

    The dual variables are sign_i t a_i. The errors of all sums are bounded as in `solvers.finishing`, and those of v
    make t smaller, so that the constraint |v_j| <= l1 holds in spite of them.
    """
    X, cost, rows = problem.X, problem.cost, problem.loss
    b = intercept if problem.free_intercept else 0.0
    norms, w_norm = np.sqrt(X.squared_norms(n_jobs)), math.sqrt(float(w @ w))
    margins = problem.sign * (X.scores(w, n_jobs) + b)
    worst = margins - (X.longest_row + 4) * _UNIT_ROUNDOFF * (1.0 + norms * w_norm + abs(b))
    loss, worst_loss = (float(cost @ rows.values(part)) for part in (margins, worst))
    primal = problem.penalty(w) + loss
    primal_error = worst_loss - loss + (len(w) + len(margins) + 8) * _UNIT_ROUNDOFF * primal
    a = _balanced(problem, cost * rows.duals(margins))
    v_error = (X.longest_sum + 4) * _UNIT_ROUNDOFF * float(a @ norms)
    v = np.abs(X.combine(problem.sign * a, n_jobs)) + v_error
    curve = rows.curve(a, cost)
    t, value = best_factor(curve, v, problem.l1, problem.l2)
    t *= 1.0 - 4.0 * _UNIT_ROUNDOFF
    dual_error = curve.sum_error * curve.size(t)
    if problem.l2 > 0.0:
        dual_error += (curve.sum_error + len(v) * _UNIT_ROUNDOFF) * max(curve.at(t)[0] - value, 0.0)
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
    """Return a bound of |Σ beta_i| |b*|, by which an imbalance may raise the dual value above the optimum."""
    if not problem.free_intercept:
        return 0.0
    imbalance = abs(float(beta.sum())) + PAIRWISE_SUM_ERROR * float(np.abs(beta).sum())
    largest_score = float(norms.max(initial=0.0)) * problem.norm_bound(primal)
    return imbalance * (problem.loss.intercept_bound(problem) + largest_score)
