"""The losses of single rows, compiled, for the loops of risks and solvers.

For a residual r = target − score, the loss of a row of a DualQP is (see `formulations`)

    loss(r) = max over lower <= b <= upper of   b r − epsilon |b| − ½ curvature b²

With the excess of the residual over the tube, e = max(0, |r| − epsilon), the maximum is at |b| = e / curvature, or at
the bound on the side of r if that is smaller, and equals |b| (e − ½ curvature |b|). `certificates.losses` is the same
in plain NumPy.
"""

import numpy as np

from widemargin._runtime.compile import compiled


@compiled
def loss_and_slope(residual, lower, upper, curvature, epsilon):
    """Return the loss of a row of a DualQP, and |b|, the absolute value of its derivative by the score."""
    excess = max(abs(residual) - epsilon, 0.0)
    if excess == 0.0:
        return 0.0, 0.0
    bound = upper if residual > 0.0 else -lower
    slope = bound if curvature == 0.0 else min(excess / curvature, bound)
    return slope * (excess - 0.5 * curvature * slope) if slope > 0.0 else 0.0, slope


@compiled
def hinge_argument(signed_weight, offset, score):
    """Return z = offset − side score of the hinge weight max(0, z); side, +1 or −1, is the sign of `signed_weight`."""
    return offset - np.copysign(1.0, signed_weight) * score
