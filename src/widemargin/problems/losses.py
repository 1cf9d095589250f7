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


@compiled
def error_of_imbalance(imbalance, gap, w_norm, largest_target, largest_norm):
    """Return a bound on |r| |b*| for dual variables whose sum differs by r from the one that a free intercept requires.

    Their dual objective is a lower bound of the optimum up to this. `gap` is primal − dual without it, at weights of
    norm w_norm. Some optimal intercept b* is at a corner of a loss, so that |b*| <= t + n |w*| with the largest target
    (plus epsilon) t and the largest norm n of a row. Since the objective is strongly convex, |w* − w| is at most √(2G),
    G = primal − optimum, and G <= gap + |r| (t + n |w| + n √(2G)), which is solved for √G.
    """
    at_w, per_root = imbalance * (largest_target + largest_norm * w_norm), imbalance * largest_norm * np.sqrt(2.0)
    root = 0.5 * (per_root + np.sqrt(per_root * per_root + 4.0 * max(gap + at_w, 0.0)))
    return at_w + per_root * root
