"""Passes over the active dual variables of a kernel solver."""

import numpy as np

from widemargin._runtime.compile import compiled

_FRACTION_BY_VIOLATION = 0.25  # of the violations that are chosen: they are the largest, whatever their weights


@compiled
def scan(f, position, linear, beta, lower, upper, ends, F, rising, falling, extremes):
    """Set F, rising, falling and extremes as `ActiveSet.scan` describes; return the violation."""
    violation = 0.0
    for g in range(extremes.shape[0]):
        smallest, largest = np.inf, -np.inf
        for t in range(ends[g], ends[g + 1]):
            gradient = f[np.uint64(position[t])] + linear[t]
            F[t] = gradient
            rising[t] = gradient if beta[t] < upper[t] else np.inf
            falling[t] = -gradient if beta[t] > lower[t] else np.inf
            smallest = min(smallest, rising[t])
            largest = max(largest, -falling[t])
        extremes[g, 0], extremes[g, 1] = smallest, largest
        violation = max(violation, largest - smallest)
    return violation


@compiled
def count_at_bound(F, beta, lower, upper, ends, extremes, n_iterations, limit):
    """Count for each dual variable the iterations at a bound without a violating pair, in n_iterations.

    Returns for how many dual variables the count has reached the limit.
    """
    total = 0
    for g in range(extremes.shape[0]):
        smallest, largest = extremes[g, 0], extremes[g, 1]
        for t in range(ends[g], ends[g + 1]):
            at_bound = (beta[t] <= lower[t] and F[t] > largest) or (beta[t] >= upper[t] and F[t] < smallest)
            n_iterations[t] = n_iterations[t] + 1 if at_bound else 0
            total += n_iterations[t] >= limit
    return total


@compiled
def set_offsets(F, beta, lower, upper, ends, extremes, order, offsets):
    """Set the offset of each group to the mean F of its free dual variables, else to that of its finite extremes.

    Two offsets that are not in the `offset_order` of a KernelQP become their mean, the nearest ones that are.
    """
    for g in range(offsets.size):
        total, n_free = 0.0, 0
        for t in range(ends[g], ends[g + 1]):
            if lower[t] < beta[t] < upper[t]:
                total, n_free = total + F[t], n_free + 1
        if n_free == 0:
            for bound in extremes[g]:
                if np.isfinite(bound):
                    total, n_free = total + bound, n_free + 1
        offsets[g] = total / n_free if n_free else 0.0
    if order * (offsets[offsets.size - 1] - offsets[0]) > 0.0:
        offsets[0] = offsets[1] = (offsets[0] + offsets[1]) / 2.0


def largest_violations(gradients, limit, count, weigh=None):
    """Return the indices of at most `count` violations, limit − gradient > 0: the largest of them.

    With `weigh`, a function of indices that returns weights, only a part are the largest violations; the others are
    those that are largest when weighted. What does not violate is left aside first, since most rows do not.
    """
    violators = np.flatnonzero(gradients < limit)
    if len(violators) <= count:
        return violators
    values = gradients[violators]
    if weigh is None:
        return violators[_smallest(values, count)]
    n_largest = max(1, round(_FRACTION_BY_VIOLATION * count))
    largest = _smallest(values, n_largest)
    with np.errstate(over="ignore"):
        weighted = weigh(violators) * (values - limit)
    weighted[largest] = 0.0
    others = _smallest(weighted, count - n_largest)
    return violators[np.concatenate([largest, others[weighted[others] < 0.0]])]


def _smallest(values, count):
    """Return the indices of the `count` smallest values, in no order."""
    if count >= len(values):
        return np.arange(len(values))
    return np.argpartition(values, count)[:count]
