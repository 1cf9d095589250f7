"""The SMO step: the optimum over a pair of dual variables of one group, whose sum is fixed.

beta_i increases and beta_j decreases by the same amount. Among the dual variables that can increase, i is the one with
the smallest gradient F. Among those that can decrease, j is the one with the largest decrease of the objective by the
quadratic model, ½ (F_j − F_i)² / (K_ii + K_jj − 2 K_ij) (the second order selection of Fan, Chen and Lin, 2005). A
curvature that is not positive, as indefinite kernels may have, is replaced by a tiny one, so that the step ends at a
bound.

A row of K may have fewer entries than there are dual variables. These then follow one another in the order of the rows
several times, as the two kinds of dual variables of a regression do: t belongs to entry t mod n of a row of n entries.

Which dual variables can move is stored as a penalty to be added to F, 0 or huge, so that the scans are plain minima and
maxima, which the compiler can vectorise; the index is found afterwards. A step makes two passes over the dual
variables: one to select j, and one to update F, which also finds the extremes of F for the next step.
"""

from typing import NamedTuple

import numpy as np

from widemargin._runtime.compile import compiled

HUGE = np.float32(1e38)  # the penalty of a dual variable that cannot move, larger than any gradient
TINY_CURVATURE = 1e-12
_SEARCH_BLOCK = 64  # dual variables that are compared at once in the search for an index
SCAN_FASTMATH = frozenset({"nnan", "nsz", "contract"})  # for minima and maxima of F, which is finite since K is


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
    _move_and_scan(D, 0.0, D.rise_penalty, D.rise_penalty)


@compiled
def largest_violation(D):
    """Return the largest violation of all groups."""
    violation = 0.0
    for group in range(D.extremes.shape[0]):
        violation = max(violation, D.extremes[group, 1] - D.extremes[group, 0])
    return violation


@compiled
def select_i(D, group):
    """Return the first index in a group with the smallest gradient of the dual variables that can increase."""
    start, stop, smallest = D.ends[group], D.ends[group + 1], D.extremes[group, 0]
    for begin in range(start, stop, _SEARCH_BLOCK):
        end, found = min(begin + _SEARCH_BLOCK, stop), False
        for t in range(begin, end):  # without an exit, so that the compiler can vectorise the loop
            found |= D.F[t] + np.float64(D.rise_penalty[t]) <= smallest
        if found:
            for t in range(begin, end):
                if D.F[t] + np.float64(D.rise_penalty[t]) <= smallest:
                    return t
    return start


@compiled
def select_j(D, group, i, K_i):
    """Return (gain, j) for the j of the group whose pair with i has the largest predicted decrease, half the gain."""
    start, stop = D.ends[group], D.ends[group + 1]
    gains = D.gain[start:stop]
    begin = start
    while begin < stop:
        end, first = end_of_part(begin, stop, K_i.size)
        here, columns = slice(begin, end), slice(first, first + end - begin)
        _predict_gains(
            D.F[here], D.F[i], D.fall_penalty[here], D.diagonal[here], D.diagonal[i], K_i[columns], D.gain[here]
        )  # fmt: skip
        begin = end
    best = _largest(gains)
    if best == 0.0:  # all gains underflow in single precision: the j of the largest violation
        for t in range(start, stop):
            if D.F[t] - np.float64(D.fall_penalty[t]) >= D.extremes[group, 1]:
                return best, t
    for begin in range(0, gains.size, _SEARCH_BLOCK):
        end, found = min(begin + _SEARCH_BLOCK, gains.size), False
        for t in range(begin, end):
            found |= gains[t] >= best
        if found:
            for t in range(begin, end):
                if gains[t] >= best:
                    return best, start + t
    return best, start


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


@compiled(fastmath=SCAN_FASTMATH)
def _largest(gains):
    """Return the largest gain, at least 0."""
    best = np.float32(0)
    for t in range(gains.size):
        best = gains[t] if gains[t] > best else best
    return best


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
    _move_and_scan(D, change, K_i, K_j)
    return change * (slope - 0.5 * change * curvature)


@compiled
def _move_and_scan(D, change, K_i, K_j):
    """Add change (K_i − K_j) to F; set the extremes of each group."""
    for group in range(D.ends.size - 1):
        begin, stop = D.ends[group], D.ends[group + 1]
        D.extremes[group, 0], D.extremes[group, 1] = np.float64(HUGE), -np.float64(HUGE)
        while begin < stop:
            end, first = end_of_part(begin, stop, K_i.size)
            here, columns = slice(begin, end), slice(first, first + end - begin)
            smallest, largest = _move_and_scan_part(
                D.F[here], change, K_i[columns], K_j[columns], D.rise_penalty[here], D.fall_penalty[here]
            )
            D.extremes[group, 0] = min(D.extremes[group, 0], smallest)
            D.extremes[group, 1] = max(D.extremes[group, 1], largest)
            begin = end


@compiled(fastmath=SCAN_FASTMATH)
def _move_and_scan_part(F, change, K_i, K_j, rise_penalty, fall_penalty):
    """Add change (K_i − K_j) to F; return the extremes."""
    smallest, largest = np.float64(HUGE), -np.float64(HUGE)
    for t in range(F.size):
        gradient = F[t] + change * (np.float64(K_i[t]) - np.float64(K_j[t]))
        F[t] = gradient
        rising, falling = gradient + np.float64(rise_penalty[t]), gradient - np.float64(fall_penalty[t])
        smallest = rising if rising < smallest else smallest
        largest = falling if falling > largest else largest
    return smallest, largest
