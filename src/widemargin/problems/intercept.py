"""The intercept that is not penalised: the minimiser of R(b) = dual_sum b + Σ_i loss_i(s_i + b), for fixed scores s.

The losses of most DualQPs are sums of hinges, weight max(0, z) or weight max(0, z)² with z = side (kink − b), where the
kink of row i is at side offset − s_i (see `row_risk`). R is convex in b. With a `dual_sum`, the targets are 0 and −b is
a weighted quantile of the scores. Piecewise linear losses may have an interval of minimisers, for instance if both
classes have the same total cost and no row lies on the margin. We return its midpoint, which, unlike either end, does
not depend on the order of rows or on the signs of the classes; LIBSVM does the same.
"""

import numpy as np

from widemargin._runtime.compile import SUMS, compiled
from widemargin.problems.certificates import loss_slopes
from widemargin.problems.entropy_risk import EntropyRisk
from widemargin.problems.quantile import weighted_quantile
from widemargin.problems.row_risk import hinges_of
from widemargin.problems.squared_hinges import minimise_squared_hinges

_ZERO_SLOPE = 1e-12  # slopes of R up to this fraction of the sum of all weights count as zero


def best_intercept(problem, scores):
    """Return the minimiser b of the losses of a DualQP at scores + b, the midpoint if there is an interval of them."""
    if problem.entropy:
        return EntropyRisk(problem).best_intercept(scores, 1.0)
    if problem.dual_sum:
        return -_best_threshold(scores, problem.upper, problem.dual_sum)
    if not problem.is_made_of_hinges:
        return _minimise_by_bisection(problem, scores)
    squared = problem.is_squared
    hinges = hinges_of(problem, squared)
    side = np.sign(hinges.signed_weight)
    kinks, weights = side * hinges.offset - scores, np.abs(hinges.signed_weight)
    has_weight = weights > 0.0
    kinks, weights, side = kinks[has_weight], weights[has_weight], side[has_weight]
    if squared:
        return minimise_squared_hinges(kinks, weights, side)
    return _minimise_hinges(kinks, weights, side)


def _best_threshold(scores, weights, total):
    """Return the midpoint of the minimisers of Σ weight max(0, threshold − score) − total threshold.

    The slope is −total below all scores, and increases by the weight at each of them.
    """
    zero = _ZERO_SLOPE * float(weights.sum())
    weights = np.ascontiguousarray(weights)
    left, _, _ = weighted_quantile(scores, weights, total - zero, np.empty((2, len(scores))))
    level = total + zero - _weight_up_to(scores, weights, left)
    if level < 0.0:
        return float(left)
    beyond = (scores > left) & (weights > 0.0)
    right = _weighted_quantile(scores[beyond], weights[beyond], max(level, np.finfo(np.float64).tiny))
    return float(left if right is None else 0.5 * (left + right))


@compiled(fastmath=SUMS)
def _weight_up_to(scores, weights, level):
    """Return the sum of the weights of scores up to a level."""
    total = 0.0
    for i in range(scores.size):
        total += weights[i] if scores[i] <= level else 0.0
    return total


def _minimise_hinges(kinks, weights, side):
    """Return the midpoint of the minimisers of Σ weight max(0, side (kink − b)).

    The slope is −Σ {weight: side > 0} for b = −∞ and increases by the weight at each kink.
    """
    descent, total = weights[side > 0.0].sum(), weights.sum()
    left, level = _weighted_quantile(kinks, weights, descent - _ZERO_SLOPE * total), descent + _ZERO_SLOPE * total
    beyond = kinks > (-np.inf if left is None else left)
    level -= weights[~beyond].sum()
    right = left if left is not None and level <= 0.0 else _weighted_quantile(kinks[beyond], weights[beyond], level)
    ends = [end for end in (left, right) if end is not None]
    return float(np.mean(ends)) if ends else 0.0


def _weighted_quantile(kinks, weights, level):
    """Return the smallest kink such that the weights of the kinks up to it sum to `level` or more.

    Returns None if `level` is not positive or exceeds the sum of all weights.
    """
    if level <= 0.0 or not len(kinks):
        return None
    quantile, _, missing = weighted_quantile(kinks, weights, level, np.empty((2, len(kinks))))
    return float(quantile) if missing <= 0.0 else None


def _minimise_by_bisection(problem, scores):
    """Return the midpoint of the minimisers for any losses of a DualQP, by bisection of the slope of R."""
    residual = problem.target - scores
    first, last = (residual - problem.epsilon).max(), (residual + problem.epsilon).min()
    if first <= last:  # all losses are zero in between
        return float(0.5 * (first + last))

    def slope(b):
        return -float(loss_slopes(problem, residual - b).sum())

    zero = _ZERO_SLOPE * float(np.abs(np.clip(residual, problem.lower, problem.upper)).sum())
    width = float(problem.epsilon.max(initial=0.0)) + float(np.abs(problem.curvature * problem.upper).max(initial=0.0))
    low, high = float(residual.min()) - width - 1.0, float(residual.max()) + width + 1.0
    left, right = (_first_above(slope, level, low, high) for level in (-zero, zero))
    return 0.5 * (left + right)


def _first_above(slope, level, low, high):
    """Return the b in [low, high] at which a nondecreasing slope first exceeds a level, to the last bit."""
    while True:
        middle = 0.5 * (low + high)
        if not low < middle < high:
            return middle
        low, high = (low, middle) if slope(middle) > level else (middle, high)
