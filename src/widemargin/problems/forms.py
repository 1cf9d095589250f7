"""The shapes that every task is brought into before a solver sees it.

`DualQP`: one signed multiplier beta_i per row of X, each in an interval of its own,

    minimise   ½|X'beta|² + Σ_i [ ½ shift_i beta_i² − target_i beta_i + epsilon_i |beta_i| ]
    over       lower_i <= beta_i <= upper_i

It is the dual of   minimise ½|w|² + Σ_i loss_i(<w, x_i>)   with, for the residual r = target_i − score,

    loss_i(r) = max over lower_i <= b <= upper_i of   b r − epsilon_i |b| − ½ shift_i b²

and w = X'beta at the optimum. A loss is five numbers per row, not a function, so one compiled solver serves all:

    | loss                   | target | interval                          | shift      | epsilon |
    |------------------------|--------|-----------------------------------|------------|---------|
    | hinge                  | sign   | 0 .. cost, mirrored by the sign   | 0          | 0       |
    | squared hinge          | sign   | 0 .. ∞, mirrored by the sign      | 1/(2 cost) | 0       |
    | ε-insensitive          | y      | −cost .. cost                     | 0          | ε       |
    | squared ε-insensitive  | y      | −∞ .. ∞                           | 1/(2 cost) | ε       |

A row of no cost has the interval 0 .. 0: it is as good as absent.
"""

from dataclasses import dataclass

import numpy as np

from widemargin.data.matrix import Matrix


@dataclass(frozen=True)
class DualQP:
    """A problem with one signed multiplier per row of X; see the module's formulas. All arrays have n_rows numbers."""

    X: Matrix
    target: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    shift: np.ndarray
    epsilon: np.ndarray


def within(cost, ceiling):
    """Return the ceiling where a row costs anything, and 0 where it does not."""
    return np.where(cost > 0.0, ceiling, 0.0)


def spring(cost):
    """Return 1/(2 cost), the curvature of a squared loss's dual; 0 for rows without cost, whose multiplier is 0."""
    return np.divide(0.5, cost, out=np.zeros_like(cost), where=cost > 0.0)
