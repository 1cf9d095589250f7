"""Binary classification: rows have a sign (+1 or −1) and a cost; see `forms` for the numbers below."""

import numpy as np

from widemargin.problems.forms import DualQP, spring, within


def hinge(X, sign, cost):
    """Σ costᵢ max(0, 1 − signᵢ⟨w, xᵢ⟩): each multiplier stops at its cost."""
    return _one_sided(X, sign, ceiling=cost, shift=np.zeros_like(cost))


def squared_hinge(X, sign, cost):
    """Σ costᵢ max(0, 1 − signᵢ⟨w, xᵢ⟩)²: no ceiling, a spring of 1/(2 costᵢ) instead."""
    return _one_sided(X, sign, ceiling=within(cost, np.inf), shift=spring(cost))


def _one_sided(X, sign, ceiling, shift):
    """The multiplier of a row has the row's sign: from 0 up to the ceiling, or down to minus it."""
    return DualQP(
        X,
        target=sign,
        lower=np.where(sign < 0, -ceiling, 0.0),
        upper=np.where(sign > 0, ceiling, 0.0),
        shift=shift,
        epsilon=np.zeros_like(shift),
    )


LOSSES = {"hinge": hinge, "squared_hinge": squared_hinge}
