"""The intercept that is not penalised: the minimiser of R(s + b) = Σ_i loss_i(s_i + b) over b, for fixed scores s.

The losses of a DualQP are sums of hinges, weight max(0, z) or weight max(0, z)² with z = offset − side (s_i + b), so
that R is convex in b. Piecewise linear losses may have an interval of minimisers, for instance where both classes have
the same total cost and no row lies on the margin. We return its midpoint, which, unlike either end, does not depend
on the order of rows or on the signs of the classes; LIBSVM does the same.
"""

import numpy as np

from widemargin.problems.formulations import is_made_of_hinges
from widemargin.problems.row_risk import hinges_of

_LEVEL = 1e-12  # slope, against the sum of all costs, that counts as zero
_NEWTON_STEPS = 100


def best_intercept(problem, scores):
    """Return the minimiser b of the losses of a DualQP at scores + b, the midpoint if there are several."""
    if not is_made_of_hinges(problem):
        return _middle_of_slopes(problem, scores)
    squared = bool((problem.curvature > 0.0).any())
    hinges = hinges_of(problem, squared)
    side = np.sign(hinges.signed)
    places, weights = side * hinges.offset - scores, np.abs(hinges.signed)  # z = 0 at b = place
    there = weights > 0.0
    places, weights, side = places[there], weights[there], side[there]
    if squared:
        return _middle_of_squares(places, weights, side)
    return _middle_of_jumps(places, weights, side)


def _middle_of_jumps(places, weights, side):
    """Return the midpoint of where a slope that jumps by the weights changes its sign."""
    below, total = weights[side > 0.0].sum(), weights.sum()
    left = _place_of_weight(places, weights, below - _LEVEL * total)
    right = _place_of_weight(places, weights, below + _LEVEL * total)
    ends = [end for end in (left, right) if end is not None]
    return float(np.mean(ends)) if ends else 0.0


def _place_of_weight(places, weights, level):
    """Return the smallest place up to which the weights sum to `level` or more; None if they never do, or always did.

    As quickselect does, without sorting: one half of the places is left out, again and again.
    """
    if level <= 0.0 or not len(places):
        return None
    found, before = None, 0.0
    while len(places):
        middle = np.partition(places, len(places) // 2)[len(places) // 2]
        low = places <= middle
        up_to = before + weights[low].sum()
        if up_to >= level:
            found = float(middle)
            places, weights = places[places < middle], weights[places < middle]
        else:
            before, places, weights = up_to, places[~low], weights[~low]
    return found


def _middle_of_squares(places, weights, side):
    """Return the zero of a slope that is continuous, the midpoint of its zeros if no row has any loss there."""
    upper, lower = places[side > 0.0], places[side < 0.0]
    low = upper.max() if len(upper) else lower.min()
    high = lower.min() if len(lower) else low
    if low <= high:
        return float(0.5 * (low + high))
    low, high, b = float(high), float(low), float(0.5 * (low + high))
    for _ in range(_NEWTON_STEPS):
        beyond = side * (places - b)
        active = beyond > 0.0
        slope, bend = -(weights * side * beyond)[active].sum(), weights[active].sum()
        low, high = (b, high) if slope < 0.0 else (low, b)
        step = b - slope / bend if bend > 0.0 else 0.5 * (low + high)
        step = step if low <= step <= high else 0.5 * (low + high)
        if step == b or high - low <= np.spacing(max(abs(low), abs(high))):
            break
        b = step
    return b


def _middle_of_slopes(problem, scores):
    """Return the midpoint of where the slope of any losses is zero, by halving; it only rises with b."""
    residual = problem.target - scores
    first, last = (residual - problem.epsilon).max(), (residual + problem.epsilon).min()
    if first <= last:  # no row has any loss there
        return float(0.5 * (first + last))

    def slope(b):
        r = residual - b
        beyond = np.sign(r) * np.maximum(np.abs(r) - problem.epsilon, 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            each = np.where(beyond == 0.0, 0.0, beyond / problem.curvature)
        return -float(np.clip(each, problem.lower, problem.upper).sum())

    size = _LEVEL * float(np.abs(np.clip(residual, problem.lower, problem.upper)).sum())
    reach = float(problem.epsilon.max(initial=0.0)) + float(np.abs(problem.curvature * problem.upper).max(initial=0.0))
    low, high = float(residual.min()) - reach - 1.0, float(residual.max()) + reach + 1.0
    ends = [_first_above(slope, level, low, high) for level in (-size, size)]
    return 0.5 * (ends[0] + ends[1])


def _first_above(slope, level, low, high):
    """Return where a slope that only rises exceeds a level, to the last bit."""
    while True:
        middle = 0.5 * (low + high)
        if not low < middle < high:
            return middle
        low, high = (low, middle) if slope(middle) > level else (middle, high)
