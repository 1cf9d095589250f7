"""The judge: objectives and dual values in exact arithmetic, from the formulas of the documentation and nothing else.

A linear problem is

    minimise over w and b   ½|w|² [+ ½ (b / intercept_scaling)²] + Σ_i c_i max(0, z_i)^p ,   c_i = C weight_i
    z_i = 1 − y_i (<w, x_i> + b)   or   |y_i − <w, x_i> − b| − ε

with p = 1 or 2 and the term in brackets if the intercept is penalised. Its dual value, a lower bound of the optimum for
every feasible β, is

    Σ_i y_i β_i − ε |β_i| [− β_i² / (4 c_i) if p = 2] − ½ |Σ_i β_i x_i|² [− ½ intercept_scaling² (Σ β)²]

Nothing here imports widemargin, and nothing rounds: data, weights and dual variables are taken as the numbers they are.
"""

from fractions import Fraction

import numpy as np
from scipy.sparse import issparse
from tests.certificates.exact_numbers import Exact

HALF = Fraction(1, 2)


def dense(X):
    """Return rows as a float64 array; single precision is contained in it."""
    return (X.toarray() if issparse(X) else np.asarray(X)).astype(np.float64)


class LinearJudge:
    """Exact values of one linear problem of `nasty.Linear`."""

    def __init__(self, problem):
        self.problem = problem
        self.X = Exact.of(dense(problem.X))
        self.y = Exact.of(problem.target)
        self.cost = problem.cost
        self._exact_cost = Exact.of(problem.cost)
        self.at_zero = self.objective(np.zeros(problem.X.shape[1]), np.zeros(1))

    def objective(self, coef, intercept):
        """Return the objective at weights and an intercept, a Fraction."""
        problem = self.problem
        w, b = Exact.of(np.ravel(coef)), Exact.of(np.ravel(intercept)[:1] if np.size(intercept) else np.zeros(1))
        f = self.X @ w + b
        if problem.is_regression:
            z = abs(self.y - f) - np.full(len(f), problem.epsilon)
        else:
            z = Exact.of(np.ones(len(f))) - self.y * f
        loss = z.positive_part()
        loss = loss * loss if problem.is_squared else loss
        value = HALF * (w * w).total() + (self._exact_cost * loss).total()
        if problem.intercept == "penalised":
            value += HALF * (b.total() / Fraction(problem.intercept_scaling)) ** 2
        return value

    def dual_value(self, beta):
        """Return the dual value of a feasible β, a Fraction; with a free intercept β must sum to 0 exactly."""
        problem = self.problem
        v, whole = self.X.T @ beta, beta.total()
        value = (self.y * beta).total() - HALF * (v * v).total()
        if problem.is_regression:
            value -= Fraction(problem.epsilon) * abs(beta).total()
        if problem.is_squared:
            value -= sum(b**2 / (4 * Fraction(c)) for b, c in zip(beta.fractions(), self.cost, strict=True) if c > 0.0)
        if problem.intercept == "penalised":
            value -= HALF * (Fraction(problem.intercept_scaling) * whole) ** 2
        return value

    def bounds(self):
        """Return the least and the largest value of each dual variable."""
        high = np.where(self.cost > 0.0, np.inf, 0.0) if self.problem.is_squared else self.cost
        if self.problem.is_regression:
            return -high, high
        return np.where(self.problem.target < 0, -high, 0.0), np.where(self.problem.target > 0, high, 0.0)

    def outside(self, beta):
        """Return by how much β leaves its bounds, the largest over rows."""
        lower, upper = self.bounds()
        return float(np.maximum(np.maximum(lower - beta, beta - upper), 0.0).max())

    def repaired(self, beta):
        """Return the β nearest by that is within its bounds and, if the intercept is free, sums to 0 exactly."""
        lower, upper = self.bounds()
        beta = np.clip(beta, lower, upper)
        if self.problem.intercept != "free":
            return Exact.of(beta)
        return summing_to_zero(beta, lower, upper)


def summing_to_zero(beta, lower, upper):
    """Return an Exact β within bounds that sums to 0: the rest is taken by the variables with the most room."""
    exact = Exact.of(beta)
    rest = exact.total()
    room = np.asarray(beta - lower if rest > 0 else upper - beta, dtype=np.float64)
    for taker in np.argsort(-room, kind="stable"):
        if rest == 0:
            break
        step = abs(rest) if np.isinf(room[taker]) else min(abs(rest), Fraction(float(room[taker])))
        step = -step if rest > 0 else step
        alone = np.zeros(len(beta), dtype=object)
        alone[taker] = step.numerator
        exact = exact + Exact(alone, 1 - step.denominator.bit_length())
        rest += step
    return exact
