"""The losses of single rows, compiled, for the loops of risks and solvers.

For a residual r = target − score, the loss of a row of a DualQP is (see `formulations`)

    loss(r) = max over lower <= b <= upper of   b r − epsilon |b| − ½ curvature b²

With the excess of the residual over the tube, e = sign(r) max(0, |r| − epsilon), the maximum is at b = e / curvature,
clipped to the bounds, and equals b (e − ½ curvature b). `certificates.losses` is the same in plain NumPy.
"""

import numpy as np

from widemargin._runtime.compile import compiled


@compiled
def loss_and_slope(residual, lower, upper, curvature, epsilon):
    """Return the loss of a row of a DualQP, and its derivative by the residual: the b that attains the maximum."""
    excess = max(residual - epsilon, 0.0) + min(residual + epsilon, 0.0)
    slope = 0.0
    if excess != 0.0:
        slope = min(max(excess / curvature, lower), upper)
    return slope * (excess - 0.5 * curvature * slope), slope


@compiled
def hinge_argument(signed_weight, offset, score):
    """Return z = offset − side score of the hinge weight max(0, z); side, +1 or −1, is the sign of `signed_weight`."""
    return offset - np.copysign(1.0, signed_weight) * score
