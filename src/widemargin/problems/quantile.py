"""The weighted quantile of numbers, by quickselect.

If there are many numbers, those of a small random sample that are next to its quantile are the ends of an interval
which most probably contains the quantile of all. One pass without unpredictable branches brings the numbers of the
interval together, and only these are left for quickselect (Floyd and Rivest, 1975).
"""

import numpy as np

from widemargin._runtime.compile import compiled

_SEED = np.uint64(0x9E3779B97F4A7C15)  # of the random pivots, without which some orders of numbers take quadratic time
_MANY_NUMBERS, _SAMPLE_SIZE = 8192, 256
_SAMPLE_DEVIATIONS = 3.0  # half width of the interval, in standard deviations of the sample


@compiled
def weighted_quantile(numbers, weights, total):
    """Return the number at which the weights of the lowest numbers sum to `total`, or more, and two sums.

    The first sum is Σ weight number of the lowest numbers, with a part of the last weight, so that the weights sum to
    `total`. The second is what is missing to `total` if all weights do not reach it, otherwise zero or less. Both
    arrays are reordered.
    """
    n = numbers.size
    if n >= _MANY_NUMBERS:
        low, high = _probable_interval(numbers, weights, total)
        count, inside, below, tail = _gather(numbers, weights, low, high)
        if below < total <= below + inside:
            level, more, rest = _selected(numbers[:count], weights[:count], total - below)
            return level, tail + more, rest
    return _selected(numbers, weights, total)


@compiled
def _next_random(state):
    """Return the next state of a generator of random bits."""
    state ^= state << np.uint64(13)
    state ^= state >> np.uint64(7)
    return state ^ (state << np.uint64(17))


@compiled
def _below(state, n):
    """Return a random number from 0 to n − 1."""
    return np.int64((state >> np.uint64(32)) % np.uint64(n))


@compiled
def _probable_interval(numbers, weights, total):
    """Return the ends of an interval that most probably contains the quantile; an end may be infinite."""
    random = _SEED
    for k in range(_SAMPLE_SIZE):  # a random number comes to place k, and from there to its place among those before
        random = _next_random(random)
        i = k + _below(random, numbers.size - k)
        number, weight, numbers[i], weights[i] = numbers[i], weights[i], numbers[k], weights[k]
        place = k
        while place > 0 and numbers[place - 1] > number:
            numbers[place], weights[place] = numbers[place - 1], weights[place - 1]
            place -= 1
        numbers[place], weights[place] = number, weight
    wanted, reached, position = total * (_SAMPLE_SIZE / numbers.size), 0.0, 0
    while position < _SAMPLE_SIZE and reached < wanted:
        reached += weights[position]
        position += 1
    width = np.int64(_SAMPLE_DEVIATIONS * np.sqrt(position * (1.0 - position / _SAMPLE_SIZE))) + 2
    low = numbers[position - width] if position >= width else -np.inf
    return low, numbers[position + width] if position + width < _SAMPLE_SIZE else np.inf


@compiled
def _gather(numbers, weights, low, high):
    """Bring the numbers from low to high to the front; return how many they are, and three sums.

    The sums are the weights of these numbers, those of the numbers below, and Σ weight number of the numbers below.
    """
    count, inside, below, tail = 0, 0.0, 0.0, 0.0
    for k in range(numbers.size):
        number, weight = numbers[k], weights[k]
        is_below, is_inside = number < low, (number >= low) & (number <= high)
        other, its_weight = numbers[count], weights[count]
        numbers[k], weights[k] = (other if is_inside else number), (its_weight if is_inside else weight)
        numbers[count], weights[count] = (number if is_inside else other), (weight if is_inside else its_weight)
        count += is_inside
        inside += weight if is_inside else 0.0
        below += weight if is_below else 0.0
        tail += weight * number if is_below else 0.0
    return count, inside, below, tail


@compiled
def _selected(numbers, weights, total):
    """Return what `weighted_quantile` does, by quickselect; in each iteration about half of the numbers is left."""
    first, end, tail, rest, level, random = 0, numbers.size, 0.0, total, 0.0, _SEED
    while first < end:
        random = _next_random(random)
        level = numbers[first + _below(random, end - first)]
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
