"""Regression: rows have a target and a cost; residuals up to ±epsilon are free; see `forms` for the numbers below."""

import numpy as np

from widemargin.problems.forms import DualQP, spring, within


def epsilon_insensitive(X, y, cost, epsilon):
    """Σ costᵢ max(0, |yᵢ − ⟨w, xᵢ⟩| − epsilon): each multiplier stays within ± its cost."""
    return _two_sided(X, y, ceiling=cost, shift=np.zeros_like(cost), epsilon=epsilon)


def squared_epsilon_insensitive(X, y, cost, epsilon):
    """Σ costᵢ max(0, |yᵢ − ⟨w, xᵢ⟩| − epsilon)²: no ceiling, a spring of 1/(2 costᵢ) instead."""
    return _two_sided(X, y, ceiling=within(cost, np.inf), shift=spring(cost), epsilon=epsilon)


def _two_sided(X, y, ceiling, shift, epsilon):
    return DualQP(X, target=y, lower=-ceiling, upper=ceiling, shift=shift, epsilon=np.full_like(shift, epsilon))


LOSSES = {
    "epsilon_insensitive": epsilon_insensitive,
    "squared_epsilon_insensitive": squared_epsilon_insensitive,
}
