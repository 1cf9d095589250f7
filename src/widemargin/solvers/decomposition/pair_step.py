"""The SMO step: the optimum over a pair of dual variables of one group, whose sum is fixed.

beta_i increases and beta_j decreases by the same amount. Among the dual variables that can increase, i is the one with
the smallest gradient F. Among those that can decrease, j is the one with the largest decrease of the objective by the
quadratic model, ½ (F_j − F_i)² / (K_ii + K_jj − 2 K_ij) (the second order selection of Fan, Chen and Lin, 2005). A
curvature that is not positive, as indefinite kernels may have, is replaced by a tiny one, so that the step ends at a
bound.

A row of K may have fewer entries than there are dual variables. These then follow one another in the order of the rows
several times, as the two kinds of dual variables of a regression do: t belongs to entry t mod n of a row of n entries.

Which dual variables can move is stored as a penalty to be added to F, 0 or huge. Scans for the smallest and largest F
compare bits: those of nonnegative floating point numbers, read as integers, have the same order as the numbers, and
those of negative ones the opposite order. The compiler vectorises minima and maxima of integers, but not those of
floating point numbers, which took several times as long. Indices are found afterwards, block by block.
"""

from typing import NamedTuple

import numpy as np

from widemargin._runtime.compile import compiled

HUGE = np.float32(1e38)  # the penalty of a dual variable that cannot move, larger than any gradient
TINY_CURVATURE = 1e-12
_SEARCH_BLOCK = 256  # dual variables that are compared at once in the search for an index
_SIGN, _LARGEST_KEY = np.int64(63), np.int64(2**63 - 1)  # the bit of the sign of a float64; the largest integer


class DualVariables(NamedTuple):
    """Dual variables beta in groups ends[g] .. ends[g + 1], and what the steps need to know of them.

    Attributes
    ----------
    F : the gradient of the objective.
    lower, upper : the bounds.
    diagonal : K_tt of each dual variable.
    rise_penalty, fall_penalty : 0 for dual variables that can increase or decrease, else HUGE.
    gain : workspace of `select_j`.
    extremes : for each group, the smallest F + rise_penalty and the largest F − fall_penalty.
    """

    beta: np.ndarray
    F: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    diagonal: np.ndarray
    ends: np.ndarray
    rise_penalty: np.ndarray
    fall_penalty: np.ndarray
    gain: np.ndarray
    extremes: np.ndarray


def dual_variables(beta, F, lower, upper, diagonal, ends):
    """Return DualVariables of these arrays; steps change beta and F in place."""
    penalties_and_gain, extremes = np.empty((3, len(beta)), np.float32), np.empty((len(ends) - 1, 2))
    D = DualVariables(beta, F, lower, upper, diagonal, ends, *penalties_and_gain, extremes)
    set_penalties(D)
    return D


@compiled
def entry_of(t, n_entries):
    """Return the entry of dual variable t in a kernel row of so many."""
    return np.uint64(t if t < n_entries else t % n_entries)


@compiled
def end_of_part(begin, stop, n_entries):
    """Return the end, at most `stop`, of dual variables from `begin` on whose entries are contiguous, and the first."""
    first = begin if begin < n_entries else begin % n_entries
    return min(stop, begin + n_entries - first), first


@compiled
def pair_curvature(D, i, j, K_i):
    """Return K_ii + K_jj − 2 K_ij."""
    return D.diagonal[i] + D.diagonal[j] - 2.0 * np.float64(K_i[entry_of(j, K_i.size)])


@compiled
def set_penalties(D):
    """Set the penalties of all dual variables, and the extremes of each group."""
    for t in range(D.beta.size):
        D.rise_penalty[t] = HUGE if D.beta[t] >= D.upper[t] else np.float32(0)
        D.fall_penalty[t] = HUGE if D.beta[t] <= D.lower[t] else np.float32(0)
    set_extremes(D)


@compiled
def largest_violation(D):
    """Return the largest violation of all groups."""
    violation = 0.0
    for group in range(D.extremes.shape[0]):
        violation = max(violation, D.extremes[group, 1] - D.extremes[group, 0])
    return violation


@compiled
def set_extremes(D):
    """Set the extremes of each group."""
    bits, found = D.F.view(np.int64), D.extremes.view(np.int64)
    for group in range(D.ends.size - 1):
        here = slice(D.ends[group], D.ends[group + 1])
        low, high = _extreme_keys(bits[here], D.rise_penalty[here], D.fall_penalty[here])
        found[group, 0] = low ^ ((low >> _SIGN) & _LARGEST_KEY)
        found[group, 1] = high ^ ((high >> _SIGN) & _LARGEST_KEY)
        if low == _LARGEST_KEY:
            D.extremes[group, 0] = np.float64(HUGE)
        if high == -_LARGEST_KEY:
            D.extremes[group, 1] = -np.float64(HUGE)


@compiled
def _extreme_keys(bits, rise_penalty, fall_penalty):
    """Return the smallest key of those that can increase, and the largest of those that can decrease.

    The key of a number is an integer that is made of its bits and has the same order; its bits are made of it likewise.
    """
    low, high = _LARGEST_KEY, -_LARGEST_KEY
    for t in range(bits.size):
        key = bits[t] ^ ((bits[t] >> _SIGN) & _LARGEST_KEY)
        rising = key if rise_penalty[t] == np.float32(0) else _LARGEST_KEY
        falling = key if fall_penalty[t] == np.float32(0) else -_LARGEST_KEY
        low, high = min(low, rising), max(high, falling)
    return low, high


@compiled
def select_i(D, group):
    """Return the first index in a group with the smallest gradient of the dual variables that can increase."""
    start, stop, smallest = D.ends[group], D.ends[group + 1], D.extremes[group, 0]
    for begin in range(start, stop, _SEARCH_BLOCK):
        end = min(begin + _SEARCH_BLOCK, stop)
        F, penalty, count = D.F[begin:end], D.rise_penalty[begin:end], np.int64(0)
        for t in range(F.size):  # without an exit, so that the compiler can vectorise the loop
            count += np.int64(1) if F[t] <= smallest and penalty[t] == np.float32(0) else np.int64(0)
        if count:
            for t in range(F.size):
                if F[t] <= smallest and penalty[t] == np.float32(0):
                    return begin + t
    return start


@compiled
def select_j(D, group, i, K_i):
    """Return (gain, j) for the j of the group whose pair with i has the largest predicted decrease, half the gain."""
    start, stop = D.ends[group], D.ends[group + 1]
    begin = start
    while begin < stop:
        end, first = end_of_part(begin, stop, K_i.size)
        here, columns = slice(begin, end), slice(first, first + end - begin)
        _predict_gains(
            D.F[here], D.F[i], D.fall_penalty[here], D.diagonal[here], D.diagonal[i], K_i[columns], D.gain[here]
        )  # fmt: skip
        begin = end
    bits = D.gain.view(np.int32)[start:stop]
    best = _largest(bits)
    if best == 0:  # all gains underflow in single precision: the j of the largest violation
        for t in range(start, stop):
            if D.F[t] - np.float64(D.fall_penalty[t]) >= D.extremes[group, 1]:
                return np.float32(0), t
        return np.float32(0), start
    t = _first(bits, best)
    return D.gain[start + t], start + t


@compiled(fastmath=frozenset({"contract"}))
def _predict_gains(F, F_i, fall_penalty, diagonal, K_ii, K_i, gains):
    """Set gains[t] to twice the predicted decrease of the pair (i, t), 0 if t cannot decrease; in single precision."""
    zero, tiny = np.float32(0), np.float32(TINY_CURVATURE)
    for t in range(gains.size):
        slope = np.float32(F[t] - F_i) - fall_penalty[t]
        slope = slope if slope > zero else zero
        curvature = np.float32(K_ii + diagonal[t] - 2.0 * np.float64(K_i[t]))
        curvature = curvature if curvature > tiny else tiny
        gains[t] = slope * (slope / curvature)


@compiled
def _largest(bits):
    """Return the largest of the bits of gains, which are not negative."""
    best = np.int32(0)
    for t in range(bits.size):
        best = max(best, bits[t])
    return best


@compiled
def _first(bits, best):
    """Return the first index of `best`, which is among the bits."""
    for begin in range(0, bits.size, _SEARCH_BLOCK):
        block, count = bits[begin : begin + _SEARCH_BLOCK], np.int32(0)
        for t in range(block.size):
            count += np.int32(1) if block[t] == best else np.int32(0)
        if count:
            for t in range(block.size):
                if block[t] == best:
                    return begin + t
    return 0


@compiled
def move_pair(D, i, j, K_i, K_j):
    """Increase beta_i and decrease beta_j by the same amount, to the minimum or the nearer bound.

    Returns the decrease of the objective. Kept true: F is the gradient, penalties and extremes are those of beta and F.
    """
    curvature, slope = pair_curvature(D, i, j, K_i), D.F[j] - D.F[i]
    change = slope / max(curvature, TINY_CURVATURE)
    max_change_i, max_change_j = D.upper[i] - D.beta[i], D.beta[j] - D.lower[j]
    change = max(min(change, max_change_i, max_change_j), 0.0)
    D.beta[i] = D.upper[i] if change == max_change_i else D.beta[i] + change
    D.beta[j] = D.lower[j] if change == max_change_j else D.beta[j] - change
    for t in (i, j):
        D.rise_penalty[t] = HUGE if D.beta[t] >= D.upper[t] else np.float32(0)
        D.fall_penalty[t] = HUGE if D.beta[t] <= D.lower[t] else np.float32(0)
    _move(D.F, change, K_i, K_j)
    set_extremes(D)
    return change * (slope - 0.5 * change * curvature)


@compiled
def _move(F, change, K_i, K_j):
    """Add change (K_i − K_j) to F."""
    begin = 0
    while begin < F.size:
        end, first = end_of_part(begin, F.size, K_i.size)
        columns = slice(first, first + end - begin)
        _move_part(F[begin:end], change, K_i[columns], K_j[columns])
        begin = end


@compiled(fastmath=frozenset({"contract"}))
def _move_part(F, change, K_i, K_j):
    """Add change (K_i − K_j) to F, all of the same size."""
    for t in range(F.size):
        F[t] += change * (np.float64(K_i[t]) - np.float64(K_j[t]))
