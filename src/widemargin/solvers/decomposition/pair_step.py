"""Two multipliers at a time: the step that decomposition methods are made of.

One multiplier of a group may rise by as much as another of the same group falls. The pair (i, j): i has the smallest
gradient F among those that may rise; j, among those that may fall, promises the largest decrease by a quadratic model,
½ (F_j − F_i)² / (K_ii + K_jj − 2 K_ij) (second order selection of Fan, Chen and Lin, 2005). A curvature that is not
positive, as indefinite kernels have it, is replaced by a tiny one, so that the step goes to a bound.

Which multipliers may move is kept as a number to be added to F, 0 or huge: so the scans are plain minima and maxima,
which the compiler does several at a time; the index is looked for afterwards. A step passes over the multipliers
twice: to find the partner, and to update F, which finds the extremes for the next step as well.
"""

from typing import NamedTuple

import numpy as np

from widemargin._runtime.compile import compiled

HUGE = np.float32(1e38)  # so large that what is finite does not count beside it
TINY_CURVATURE = 1e-12
_STRETCH = 64  # multipliers that are compared at once
SCAN = frozenset({"nnan", "nsz", "contract"})  # minima of finite numbers: F is finite since K is


class Multipliers(NamedTuple):
    """Multipliers in groups ends[g] .. ends[g + 1], their gradient F, and K_tt of each.

    `levels` are the smallest F + no_rise and the largest F − no_fall of each group.
    """

    beta: np.ndarray
    F: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    diagonal: np.ndarray
    ends: np.ndarray
    no_rise: np.ndarray
    no_fall: np.ndarray
    gain: np.ndarray
    levels: np.ndarray


def multipliers(beta, F, lower, upper, diagonal, ends):
    """Return Multipliers of these arrays, of which beta and F are changed in place."""
    no_rise, no_fall = np.where(beta >= upper, HUGE, 0.0), np.where(beta <= lower, HUGE, 0.0)
    masks = [mask.astype(np.float32) for mask in (no_rise, no_fall)]
    gain, levels = np.empty(len(beta), np.float32), np.empty((len(ends) - 1, 2))
    M = Multipliers(beta, F, lower, upper, diagonal, ends, *masks, gain, levels)
    _move_and_scan(M, 0.0, masks[0], masks[0])
    return M


@compiled
def first_to_rise(M, group):
    """Return the first multiplier of a group that may rise and has the smallest gradient of all that may."""
    start, stop, wanted = M.ends[group], M.ends[group + 1], M.levels[group, 0]
    for begin in range(start, stop, _STRETCH):
        end, found = min(begin + _STRETCH, stop), False
        for t in range(begin, end):  # no way out of this loop, so that the compiler can compare several at a time
            found |= M.F[t] + np.float64(M.no_rise[t]) <= wanted
        if found:
            for t in range(begin, end):
                if M.F[t] + np.float64(M.no_rise[t]) <= wanted:
                    return t
    return start


@compiled
def best_partner(M, group, i, line):
    """Return (gain, j): the multiplier of the group that promises most when it falls as i rises; `line` is K_i."""
    start, stop = M.ends[group], M.ends[group + 1]
    gains = M.gain[start:stop]
    _promise(
        M.F[start:stop], M.F[i], M.no_fall[start:stop], M.diagonal[start:stop], M.diagonal[i], line[start:stop], gains
    )
    best = _largest(gains)
    if best == 0.0:  # promises too small for single precision: the largest violation then
        for t in range(start, stop):
            if M.F[t] - np.float64(M.no_fall[t]) >= M.levels[group, 1]:
                return best, t
    for begin in range(0, gains.size, _STRETCH):
        end, found = min(begin + _STRETCH, gains.size), False
        for t in range(begin, end):
            found |= gains[t] >= best
        if found:
            for t in range(begin, end):
                if gains[t] >= best:
                    return best, start + t
    return best, start


@compiled(fastmath=frozenset({"contract"}))
def _promise(F, level, no_fall, diagonal, own, line, gains):
    """Set gains[t], twice what moving i and t promises, for every t that may fall; single precision will do."""
    zero, tiny = np.float32(0), np.float32(TINY_CURVATURE)
    for t in range(gains.size):
        slope = np.float32(F[t] - level) - no_fall[t]
        slope = slope if slope > zero else zero
        curvature = np.float32(own + diagonal[t] - 2.0 * np.float64(line[t]))
        curvature = curvature if curvature > tiny else tiny
        gains[t] = slope * (slope / curvature)


@compiled(fastmath=SCAN)
def _largest(gains):
    best = np.float32(0)
    for t in range(gains.size):
        best = gains[t] if gains[t] > best else best
    return best


@compiled
def move_pair(M, i, j, line_i, line_j):
    """Let beta_i rise and beta_j fall by the same, to the minimum or to the nearer bound; update F and levels.

    Returns by how much the objective falls.
    """
    curvature, slope = M.diagonal[i] + M.diagonal[j] - 2.0 * np.float64(line_i[np.uint64(j)]), M.F[j] - M.F[i]
    change = slope / max(curvature, TINY_CURVATURE)
    room_i, room_j = M.upper[i] - M.beta[i], M.beta[j] - M.lower[j]
    change = max(min(change, room_i, room_j), 0.0)
    M.beta[i] = M.upper[i] if change == room_i else M.beta[i] + change
    M.beta[j] = M.lower[j] if change == room_j else M.beta[j] - change
    for t in (i, j):
        M.no_rise[t] = HUGE if M.beta[t] >= M.upper[t] else np.float32(0)
        M.no_fall[t] = HUGE if M.beta[t] <= M.lower[t] else np.float32(0)
    _move_and_scan(M, change, line_i, line_j)
    return change * (slope - 0.5 * change * curvature)


@compiled
def _move_and_scan(M, change, line_i, line_j):
    """Add change (K_i − K_j) to F; find the levels of each group."""
    for group in range(M.ends.size - 1):
        extremes = _update(M.F, change, line_i, line_j, M.no_rise, M.no_fall, M.ends[group], M.ends[group + 1])
        M.levels[group, 0], M.levels[group, 1] = extremes


@compiled(fastmath=SCAN)
def _update(F, change, line_i, line_j, no_rise, no_fall, start, stop):
    smallest, largest = np.float64(HUGE), -np.float64(HUGE)
    for t in range(start, stop):
        slope = F[t] + change * (np.float64(line_i[t]) - np.float64(line_j[t]))
        F[t] = slope
        rising, falling = slope + np.float64(no_rise[t]), slope - np.float64(no_fall[t])
        smallest = rising if rising < smallest else smallest
        largest = falling if falling > largest else largest
    return smallest, largest
