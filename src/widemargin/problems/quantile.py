"""The weighted quantile of numbers, by quickselect."""

import numpy as np

from widemargin._runtime.compile import compiled

_SEED = np.uint64(0x9E3779B97F4A7C15)  # of the random pivots, without which some orders of numbers take quadratic time


@compiled
def weighted_quantile(numbers, weights, total):
    """Return the number at which the weights of the lowest numbers sum to `total`, or more, and two sums.

    The first sum is Σ weight number of the lowest numbers, with a part of the last weight, so that the weights sum to
    `total`. The second is what is missing to `total` if all weights do not reach it, otherwise zero or less. Both
    arrays are reordered; in each iteration about half of the numbers is left.
    """
    first, end, tail, rest, level, random = 0, numbers.size, 0.0, total, 0.0, _SEED
    while first < end:
        random ^= random << np.uint64(13)
        random ^= random >> np.uint64(7)
        random ^= random << np.uint64(17)
        level = numbers[first + np.int64((random >> np.uint64(32)) % np.uint64(end - first))]
        # Lower numbers come to first .. low, equal ones to low .. high, higher ones to high .. end.
        low, k, high, lower_weight, lower_tail, equal_weight = first, first, end, 0.0, 0.0, 0.0
        while k < high:
            number, weight = numbers[k], weights[k]
            if number > level:
                high -= 1
                numbers[k], weights[k], numbers[high], weights[high] = numbers[high], weights[high], number, weight
                continue
            if number < level:
                numbers[k], weights[k], numbers[low], weights[low] = numbers[low], weights[low], number, weight
                low += 1
                lower_weight += weight
                lower_tail += weight * number
            else:
                equal_weight += weight
            k += 1
        if lower_weight >= rest:
            end = low
            continue
        tail += lower_tail + min(equal_weight, rest - lower_weight) * level
        rest -= lower_weight + equal_weight
        if rest <= 0.0:
            break
        first = high
    return level, tail, rest
