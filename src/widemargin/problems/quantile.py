"""The weighted quantile of numbers, by quickselect.

If there are many numbers, those of a small random sample that are next to its quantile are the ends of an interval
which most probably contains the quantile of all. One pass without unpredictable branches copies the numbers of the
interval, and only these are left for quickselect (Floyd and Rivest, 1975).
"""

import numpy as np

from widemargin._runtime.compile import compiled

_SEED = np.uint64(0x9E3779B97F4A7C15)  # of the random pivots, without which some orders of numbers take quadratic time
_SAMPLE_SIZES = (1024, 64), (8192, 256)  # numbers from which on a sample is taken, and its size
_SAMPLE_DEVIATIONS = 3.0  # half width of the interval, in standard deviations of the sample


@compiled
def weighted_quantile(numbers, weights, total, memory):
    """Return the number at which the weights of the lowest numbers sum to `total`, or more, and two sums.

    The first sum is Σ weight number of the lowest numbers, with a part of the last weight, so that the weights sum to
    `total`. The second is what is missing to `total` if all weights do not reach it, otherwise zero or less. `memory`
    has two rows of the length of the arrays, or longer.
    """
    size, n = 0, numbers.size
    for smallest, larger in _SAMPLE_SIZES:
        size = larger if n >= smallest else size
    if size > 0:
        low, high = _probable_interval(numbers, weights, total, size, memory)
        count, inside, below, tail = _gather(numbers, weights, low, high, memory)
        if below < total <= below + inside:
            level, more, rest = _selected(memory[0, :count], memory[1, :count], total - below)
            return level, tail + more, rest
    for i in range(n):
        memory[0, i], memory[1, i] = numbers[i], weights[i]
    return _selected(memory[0, :n], memory[1, :n], total)


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
def _probable_interval(numbers, weights, total, size, memory):
    """Return the ends of an interval that most probably contains the quantile; an end may be infinite.

    A random sample of so many numbers is sorted in `memory`.
    """
    random = _SEED
    for k in range(size):
        random = _next_random(random)
        i, place = _below(random, numbers.size), k
        while place > 0 and memory[0, place - 1] > numbers[i]:
            memory[0, place], memory[1, place] = memory[0, place - 1], memory[1, place - 1]
            place -= 1
        memory[0, place], memory[1, place] = numbers[i], weights[i]
    wanted, reached, position = total * (size / numbers.size), 0.0, 0
    while position < size and reached < wanted:
        reached += memory[1, position]
        position += 1
    width = np.int64(_SAMPLE_DEVIATIONS * np.sqrt(position * (1.0 - position / size))) + 2
    low = memory[0, position - width] if position >= width else -np.inf
    return low, memory[0, position + width] if position + width < size else np.inf


@compiled
def _gather(numbers, weights, low, high, memory):
    """Copy the numbers from low to high, and their weights, to memory; return how many they are, and three sums.

    The sums are the weights of these numbers, those of the numbers below, and Σ weight number of the numbers below.
    There are no branches, which could not be predicted.
    """
    count, inside, below, tail = 0, 0.0, 0.0, 0.0
    for k in range(numbers.size):
        number, weight = numbers[k], weights[k]
        is_below, is_inside = number < low, (number >= low) & (number <= high)
        memory[0, count], memory[1, count] = number, weight
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
