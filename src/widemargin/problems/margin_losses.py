"""The losses that `ElasticNet` takes, as functions of the margin m = sign · score: squared hinge and log loss.

    | loss          | cost 1          | a, minus its derivative | dual term of a, for the cost c                      |
    |---------------|-----------------|-------------------------|-----------------------------------------------------|
    | squared hinge | max(0, 1 − m)²  | 2 max(0, 1 − m)         | a − a² / (4 c)                                      |
    | log loss      | log(1 + exp −m) | p = 1 / (1 + exp m)     | c H(a / c),  H(p) = −p log p − (1 − p) log(1 − p)   |

The dual term is the minimum over m of c loss(m) + a m; for the log loss a is at most c. The dual variables of any
margins, times a factor t, are those of the certificate. The sum of the dual terms of t a, which is a concave function
of t, is a *curve*: an object with the factor `start` up to which it is used, `at(t)`, which returns the sum and minus
its first and second derivative, `size(t)`, the sum of the absolute values of what is added, and `sum_error`, the
relative error of that sum.

The dual terms are strongly concave: their second derivative is at most −1 / (2 c), or −4 / c for the log loss. If a
feasible point is within `gap` of the optimum a*, then |Σ_i (a_i − a*_i) x_i| <= `reach` sqrt(gap Σ_i c_i x_i²).
"""

import math
from typing import NamedTuple

import numpy as np

from widemargin._runtime.compile import SUMS, compiled
from widemargin.kernels.exponential import fast_exp
from widemargin.problems import classification
from widemargin.problems.entropy_risk import EntropyRisk
from widemargin.problems.losses import unit_log1p
from widemargin.problems.squared_hinges import minimise_squared_hinges

_UNIT_ROUNDOFF = 2.0**-53
PAIRWISE_SUM_ERROR = 64.0 * _UNIT_ROUNDOFF  # relative to the sum of absolute values, of a sum by NumPy
_LEAST_CURVATURE = 1e-3  # of the log loss, relative to its slope: rows far on the wrong side have almost none


class Parabola(NamedTuple):
    """The curve A t − B t² of squared hinges, A = Σ a_i and B = Σ a_i² / (4 cost_i)."""

    A: float
    B: float

    @property
    def sum_error(self):
        """The relative error of the sums, which NumPy adds."""
        return PAIRWISE_SUM_ERROR

    @property
    def start(self):
        """The maximiser; 0 if all dual variables are zero."""
        return 0.5 * self.A / self.B if self.A > 0.0 and self.B > 0.0 else 0.0

    def at(self, t):
        """Return the value at t, its derivative, and minus its second derivative."""
        return t * self.A - t * t * self.B, self.A - 2.0 * t * self.B, 2.0 * self.B

    def size(self, t):
        """Return the sum of the absolute values of the terms."""
        return t * self.A + t * t * self.B


class Entropies(NamedTuple):
    """The curve Σ cost_i H(t |a_i| / cost_i) of log losses, for dual variables `a` of either sign."""

    a: np.ndarray
    cost: np.ndarray

    @property
    def sum_error(self):
        """The relative error of the sum, one term after the other."""
        return (64.0 + len(self.a)) * _UNIT_ROUNDOFF

    @property
    def start(self):
        """1, which is feasible; 0 if all dual variables are zero."""
        return 1.0 if self.a.any() else 0.0

    def at(self, t):
        """Return the value at t, its derivative, and minus its second derivative."""
        return _entropies(self.a, self.cost, t)[:3]

    def size(self, t):
        """Return the sum of the absolute values of the terms, and of what rounding of t a_i / cost_i changes."""
        return _entropies(self.a, self.cost, t)[3]


class SquaredHinge:
    """cost max(0, 1 − m)²; for the attributes see this module."""

    name, reach = "squared_hinge", 2.0
    needs_both_signs = False  # with a free intercept, for an optimum that is finite

    @staticmethod
    def values(margins):
        """Return the losses of margins, for the cost 1, in plain NumPy."""
        return np.square(np.maximum(1.0 - margins, 0.0))

    @staticmethod
    def duals(margins):
        """Return the dual variables of margins, for the cost 1, in plain NumPy."""
        return 2.0 * np.maximum(1.0 - margins, 0.0)

    @staticmethod
    def curve(a, cost):
        """Return the curve of dual variables a."""
        squares = np.divide(a * a, 4.0 * cost, out=np.zeros_like(a), where=cost > 0.0)
        return Parabola(float(a.sum()), float(squares.sum()))

    @staticmethod
    def differentiate(scores, sign, cost, slope, curvature):
        """Set minus the first, and the second derivative of each loss by its score; return their sum and the curve."""
        loss, total = _set_hinge_derivatives(scores, sign, cost, slope, curvature)
        return loss, Parabola(total, loss)

    @staticmethod
    def along(scores, direction, sign, cost, step):
        """Return the sum of the losses at scores + step direction, and its derivative by the step."""
        return _hinges_along(scores, direction, sign, cost, step)

    @staticmethod
    def best_intercept(problem, scores):
        """Return the intercept without penalty that minimises the losses of a problem at scores + b."""
        has_cost = problem.cost > 0.0
        sign = problem.sign[has_cost]
        return minimise_squared_hinges(sign - scores[has_cost], problem.cost[has_cost], sign)

    @staticmethod
    def intercept_bound(problem):
        """Return by how much the best intercept may exceed the largest |<w, x_i>|.

        At the optimum some row of each sign has a positive loss, or all dual variables are zero and so is the
        objective.
        """
        return 1.0


class LogLoss:
    """cost log(1 + exp −m); for the attributes see this module."""

    name, reach = "log_loss", math.sqrt(0.5)
    needs_both_signs = True

    @staticmethod
    def values(margins):
        """Return the losses of margins, for the cost 1, in plain NumPy."""
        return np.logaddexp(0.0, -margins)

    @staticmethod
    def duals(margins):
        """Return the dual variables of margins, for the cost 1, in plain NumPy."""
        return np.exp(-np.logaddexp(0.0, margins))

    @staticmethod
    def curve(a, cost):
        """Return the curve of dual variables a."""
        return Entropies(a, cost)

    @staticmethod
    def differentiate(scores, sign, cost, slope, curvature):
        """Set minus the first, and the second derivative of each loss by its score; return their sum and the curve.

        The curve is valid as long as `slope` is not changed.
        """
        return _set_log_derivatives(scores, sign, cost, slope, curvature), Entropies(slope, cost)

    @staticmethod
    def along(scores, direction, sign, cost, step):
        """Return the sum of the losses at scores + step direction, and its derivative by the step."""
        return _logs_along(scores, direction, sign, cost, step)

    @staticmethod
    def best_intercept(problem, scores):
        """Return the intercept without penalty that minimises the losses of a problem at scores + b."""
        stated = classification.log_loss(problem.X, problem.sign, problem.cost, free_intercept=True)
        return EntropyRisk(stated).best_intercept(scores, 1.0)

    @staticmethod
    def intercept_bound(problem):
        """Return by how much the best intercept may exceed the largest |<w, x_i>|.

        Let the costs of rows of sign 1 sum to P, those of the others to N. If the intercept exceeds all |<w, x_i>| by
        x, the dual variables of both signs have the same sum only if exp(x) <= P / N.
        """
        positive = problem.sign > 0.0
        return abs(math.log(problem.cost[positive].sum()) - math.log(problem.cost[~positive].sum()))


SQUARED_HINGE, LOG_LOSS = SquaredHinge(), LogLoss()
LOSSES = {loss.name: loss for loss in (SQUARED_HINGE, LOG_LOSS)}


@compiled(fastmath=SUMS)
def _set_hinge_derivatives(scores, sign, cost, slope, curvature):
    """Set slope[i] to minus the derivative of squared hinge i by its score, and curvature[i] to the second derivative.

    Return the sum of the losses and Σ |slope_i|.
    """
    loss, total = 0.0, 0.0
    for i in range(scores.size):
        z = 1.0 - sign[i] * scores[i]
        second = 2.0 * cost[i] if z > 0.0 else 0.0
        a = second * z if z > 0.0 else 0.0  # z may be infinite
        loss += 0.5 * a * z if z > 0.0 else 0.0
        total += a
        slope[i], curvature[i] = sign[i] * a, second
    return loss, total


@compiled(fastmath=SUMS)
def _hinges_along(scores, direction, sign, cost, step):
    """Return the sum of the squared hinges at scores + step direction, and its derivative by the step."""
    loss, derivative = 0.0, 0.0
    for i in range(scores.size):
        z = 1.0 - sign[i] * (scores[i] + step * direction[i])
        loss += cost[i] * z * z if z > 0.0 else 0.0
        derivative -= 2.0 * cost[i] * z * sign[i] * direction[i] if z > 0.0 else 0.0
    return loss, derivative


@compiled
def _set_log_derivatives(scores, sign, cost, slope, curvature):
    """Set slope[i] to minus the derivative of log loss i by its score, and curvature[i] to the second derivative.

    The second derivative p (1 − p) is made at least a fraction of the slope p: rows far on the wrong side would have
    none, and Newton steps no bound. Return the sum of the losses.
    """
    loss = 0.0
    for i in range(scores.size):
        m = sign[i] * scores[i]
        e = fast_exp(-abs(m))
        larger = 1.0 / (1.0 + e)  # of p and 1 − p
        p, rest = (e * larger, larger) if m > 0.0 else (larger, e * larger)
        loss += cost[i] * (max(-m, 0.0) + unit_log1p(e))
        slope[i] = sign[i] * cost[i] * p
        curvature[i] = cost[i] * p * max(rest, _LEAST_CURVATURE)
    return loss


@compiled
def _logs_along(scores, direction, sign, cost, step):
    """Return the sum of the log losses at scores + step direction, and its derivative by the step."""
    loss, derivative = 0.0, 0.0
    for i in range(scores.size):
        m = sign[i] * (scores[i] + step * direction[i])
        e = fast_exp(-abs(m))
        p = (e if m > 0.0 else 1.0) / (1.0 + e)
        loss += cost[i] * (max(-m, 0.0) + unit_log1p(e))
        derivative -= cost[i] * p * sign[i] * direction[i]
    return loss, derivative


@compiled
def _entropies(a, cost, t):
    """Return Σ cost_i H(p_i) with p_i = t |a_i| / cost_i, its derivative by t, minus the second, and Σ of sizes.

    A size is the entropy and by how much it would change if p_i changed by its own size.
    """
    value, slope, second, size = 0.0, 0.0, 0.0, 0.0
    for i in range(a.size):
        p = min(t * abs(a[i]) / cost[i], 1.0) if cost[i] > 0.0 else 0.0
        if p > 0.0:
            rest = 1.0 - p
            log_p, log_rest = math.log(p), math.log1p(-p) if rest > 0.0 else math.log(_UNIT_ROUNDOFF)
            term = -p * log_p - rest * log_rest
            value += cost[i] * term
            slope += abs(a[i]) * (log_rest - log_p)
            second += abs(a[i]) / (t * max(rest, _UNIT_ROUNDOFF))
            size += cost[i] * (term + p * (abs(log_p) + abs(log_rest)))
    return value, slope, second, size
