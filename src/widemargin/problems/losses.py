"""The losses of single rows, compiled, for the loops of risks and solvers.

For a residual r = target − score, the loss of a row of a DualQP is (see `formulations`)

    loss(r) = max over lower <= b <= upper of   b r − epsilon |b| − ½ curvature b²

With the excess of the residual over the tube, e = max(0, |r| − epsilon), the maximum is at |b| = e / curvature, or at
the bound on the side of r if that is smaller, and equals |b| (e − ½ curvature |b|). `certificates.losses` is the same
in plain NumPy.

With an entropy the loss is smooth; `formulations` has its formulas. `unit_log1p` is log(1 + e) for −½ <= e <= 1 in a
form that the compiler can vectorise: with z = e / (2 + e), |z| <= 1/3, it is 2 artanh(z) = 2 (z + z³/3 + z⁵/5 + ...).
"""

import math

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
def smooth_loss_and_slope(residual, lower, upper, entropy):
    """Return the loss of a row of a DualQP with an entropy, and the maximising b, minus its derivative by the score."""
    e, width = math.exp(-abs(residual) / entropy), upper - lower
    share = width * (e / (1.0 + e))
    bound, slope = (upper, upper - share) if residual > 0.0 else (lower, lower + share)
    return bound * residual + entropy * width * math.log1p(e), slope


@compiled
def interval_entropy(b, lower, upper):
    """Return H(b), see `formulations`: 0 at both ends of the interval, its width times log 2 in the middle."""
    width, part = upper - lower, min(b - lower, upper - b)
    fraction = part / width if part > 0.0 else 0.0
    return -part * math.log(fraction) - (width - part) * math.log1p(-fraction) if fraction > 0.0 else 0.0


@compiled
def unit_log1p(e):
    """Return log(1 + e) for −½ <= e <= 1."""
    z = e / (2.0 + e)
    y = z * z
    tail = 1.0 / 33.0
    tail = tail * y + 1.0 / 31.0
    tail = tail * y + 1.0 / 29.0
    tail = tail * y + 1.0 / 27.0
    tail = tail * y + 1.0 / 25.0
    tail = tail * y + 1.0 / 23.0
    tail = tail * y + 1.0 / 21.0
    tail = tail * y + 1.0 / 19.0
    tail = tail * y + 1.0 / 17.0
    tail = tail * y + 1.0 / 15.0
    tail = tail * y + 1.0 / 13.0
    tail = tail * y + 1.0 / 11.0
    tail = tail * y + 1.0 / 9.0
    tail = tail * y + 1.0 / 7.0
    tail = tail * y + 1.0 / 5.0
    tail = tail * y + 1.0 / 3.0
    return 2.0 * z * (1.0 + tail * y)


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
