"""Two multipliers at a time: the step that decomposition methods are made of.

One multiplier of a group may rise by as much as another of the same group falls. The pair (i, j): i has the smallest
gradient F among those that may rise; j, among those that may fall, promises the largest decrease by a quadratic model,
½ (F_j − F_i)² / (K_ii + K_jj − 2 K_ij) (second order selection of Fan, Chen and Lin, 2005). A curvature that is not
positive, as indefinite kernels have it, is replaced by a tiny one, so that the step goes to a bound.

Which multipliers may move is kept as a number to be added to F, 0 or huge: so the scans are plain minima and maxima,
which the compiler does several at a time; the index is looked for afterwards.
"""

from typing import NamedTuple

import numpy as np

from widemargin._compiled import compiled

_HUGE = 1e300
_TINY_CURVATURE = 1e-12
_SCAN = frozenset({"nnan", "nsz", "reassoc", "contract"})  # minima of finite numbers: F is finite since K is


class Multipliers(NamedTuple):
    """Multipliers in groups ends[g] .. ends[g + 1], their gradient F, and K_tt of each."""

    beta: np.ndarray
    F: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    diagonal: np.ndarray
    ends: np.ndarray
    no_rise: np.ndarray
    no_fall: np.ndarray
    gain: np.ndarray


def multipliers(beta, F, lower, upper, diagonal, ends):
    """Return Multipliers of these arrays, which are changed in place."""
    may_not = [np.where(beta >= upper, _HUGE, 0.0), np.where(beta <= lower, _HUGE, 0.0)]
    return Multipliers(beta, F, lower, upper, diagonal, ends, *may_not, np.empty(len(beta)))


@compiled
def optimise_block(K, M, tol, most):
    """Take steps until no pair violates its condition by more than tol; return by how much the objective fell.

    Kept true: F = K beta + terms that do not change, and the sum of each group.
    """
    fallen = 0.0
    for _ in range(most):
        worst, best, first, second = 0.0, -1.0, 0, 0
        for group in range(M.ends.size - 1):
            start, stop = M.ends[group], M.ends[group + 1]
            smallest, largest = extremes(M, start, stop)
            if not smallest < largest:
                continue
            worst = max(worst, largest - smallest)
            i = first_to_rise(M, smallest, start, stop)
            gain, j = best_partner(M, i, K[np.uint64(i)], start, stop)
            if gain > best:
                best, first, second = gain, i, j
        if worst <= tol:
            break
        fallen += move_pair(M, first, second, K[np.uint64(first)], K[np.uint64(second)])
    return fallen


@compiled(fastmath=_SCAN)
def extremes(M, start, stop):
    """Return the smallest F that may rise and the largest that may fall."""
    smallest, largest = _HUGE, -_HUGE
    for t in range(start, stop):
        rising, falling = M.F[t] + M.no_rise[t], M.F[t] - M.no_fall[t]
        smallest = rising if rising < smallest else smallest
        largest = falling if falling > largest else largest
    return smallest, largest


@compiled(fastmath=_SCAN)
def _gains(M, i, line, start, stop):
    """Set gain[t], twice what moving i and t promises, for every t that may fall; return the largest."""
    best, level, own = 0.0, M.F[i], M.diagonal[i]
    for t in range(start, stop):
        slope = M.F[t] - M.no_fall[t] - level
        slope = slope if slope > 0.0 else 0.0
        curvature = own + M.diagonal[t] - 2.0 * np.float64(line[t])
        curvature = curvature if curvature > _TINY_CURVATURE else _TINY_CURVATURE
        gain = slope * slope / curvature
        M.gain[t] = gain
        best = gain if gain > best else best
    return best


@compiled
def best_partner(M, i, line, start, stop):
    """Return (gain, j): the multiplier of the group that promises most when it falls as i rises; `line` is K_i."""
    gain = _gains(M, i, line, start, stop)
    for t in range(start, stop):
        if M.gain[t] == gain:
            return gain, t
    return gain, start


@compiled
def first_to_rise(M, smallest, start, stop):
    """Return the first multiplier that may rise and has this gradient."""
    for t in range(start, stop):
        if M.F[t] + M.no_rise[t] == smallest:
            return t
    return start


@compiled
def move_pair(M, i, j, line_i, line_j):
    """Let beta_i rise and beta_j fall by the same, to the minimum or to the nearer bound; update F.

    Returns by how much the objective falls.
    """
    curvature, slope = M.diagonal[i] + M.diagonal[j] - 2.0 * np.float64(line_i[np.uint64(j)]), M.F[j] - M.F[i]
    change = slope / max(curvature, _TINY_CURVATURE)
    room_i, room_j = M.upper[i] - M.beta[i], M.beta[j] - M.lower[j]
    change = min(change, room_i, room_j)
    M.beta[i] = M.upper[i] if change == room_i else M.beta[i] + change
    M.beta[j] = M.lower[j] if change == room_j else M.beta[j] - change
    M.no_rise[i] = _HUGE if M.beta[i] >= M.upper[i] else 0.0
    M.no_rise[j] = _HUGE if M.beta[j] >= M.upper[j] else 0.0
    M.no_fall[i] = _HUGE if M.beta[i] <= M.lower[i] else 0.0
    M.no_fall[j] = _HUGE if M.beta[j] <= M.lower[j] else 0.0
    _add_difference(M.F, change, line_i, line_j)
    return change * (slope - 0.5 * change * curvature)


@compiled(fastmath=frozenset({"contract"}))
def _add_difference(F, change, line_i, line_j):
    for t in range(F.size):
        F[t] += change * (np.float64(line_i[t]) - np.float64(line_j[t]))
