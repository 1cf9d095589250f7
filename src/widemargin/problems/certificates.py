"""The judge: objectives, duality gap and violations in plain NumPy, for any w and any feasible beta.

Solvers measure themselves with compiled loops of their own; this file shares no code with them. Weak duality,
dual(beta) <= optimum <= primal(w), holds for every w and every feasible beta, so the gap is a proof.
"""

from typing import NamedTuple

import numpy as np


class Certificate(NamedTuple):
    """What is proved: dual <= optimum <= primal."""

    primal: float
    dual: float

    @property
    def gap(self):
        """(primal − dual) / |primal|: the objective is at most this fraction away from the optimum."""
        return relative_gap(self.primal, self.dual)


def relative_gap(primal, dual):
    """Return (primal − dual) / |primal|, and 0 where both are 0."""
    return (primal - dual) / max(abs(primal), np.finfo(float).tiny)


def scores(X, w):
    """Return X w for a Matrix, by NumPy or SciPy alone."""
    return X.values @ w[: X.n_features] + (X.constant * w[-1] if X.constant else 0.0)


def combination(X, c):
    """Return X'c for a Matrix, by NumPy or SciPy alone."""
    v = X.values.T.astype(np.float64) @ c
    return np.append(v, X.constant * c.sum()) if X.constant else v


def losses(problem, s):
    """Return each row's loss at scores s: the best value of b r − ε|b| − ½ shift b² over the row's interval."""
    r = problem.target - s
    beyond = np.sign(r) * np.maximum(np.abs(r) - problem.epsilon, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        b = np.where(beyond == 0.0, 0.0, beyond / problem.shift)
    b = np.clip(b, problem.lower, problem.upper)
    return b * r - problem.epsilon * np.abs(b) - 0.5 * problem.shift * b**2


def primal(problem, w):
    """Return ½|w|² + Σ loss_i."""
    return 0.5 * w @ w + losses(problem, scores(problem.X, w)).sum()


def dual(problem, beta):
    """Return the dual value of beta, which must lie in its box: ValueError otherwise."""
    outside = (beta < problem.lower) | (beta > problem.upper)
    if outside.any():
        i = int(np.argmax(outside))
        raise ValueError(f"beta[{i}] = {beta[i]} lies outside [{problem.lower[i]}, {problem.upper[i]}].")
    v = combination(problem.X, beta)
    separable = problem.target * beta - problem.epsilon * np.abs(beta) - 0.5 * problem.shift * beta**2
    return separable.sum() - 0.5 * v @ v


def certify(problem, w, beta):
    """Return the Certificate of w and beta."""
    return Certificate(primal(problem, w), dual(problem, beta))


def violations(problem, w, beta):
    """Return by how much each multiplier violates its optimality (KKT) condition at scores X w; 0 where it holds."""
    slope = problem.target - scores(problem.X, w) - problem.shift * beta
    rise = slope - np.where(beta >= 0, problem.epsilon, -problem.epsilon)
    fall = slope + np.where(beta <= 0, problem.epsilon, -problem.epsilon)
    upwards = np.where(beta < problem.upper, np.maximum(rise, 0.0), 0.0)
    downwards = np.where(beta > problem.lower, np.maximum(-fall, 0.0), 0.0)
    return np.maximum(upwards, downwards)
