"""Support vectors that take over from one that is left out, compiled.

Without support vector i, whose coefficient is c_i, the decision values become f_j − c_i r_ij, where r_ij is the inner
product of φ(x_i) and φ(x_j) after projection onto the complement of the affine hull of the other free support vectors,
as long as the free ones stay free and the others where they are. Large steps do not leave them there: other rows come
within the margin, whose dual variables grow, and the true decision values move less. One such row is taken into
account, that whose dual variable b_j gains most by a step of coordinate descent,

    t_j = clip(b_j + v_j / r_jj, 0, C_j) − b_j,   v_j = 1 − y_j (f_j − c_i r_ij),   gain_j = t_j v_j − ½ t_j² r_jj

after which f at x_i is larger by y_j t_j r_ij. If i is free, it has left the hull, and r_jj is by r_ij² / r_ii larger
than without i.
"""

from typing import NamedTuple

import numpy as np

from widemargin._runtime.compile import compiled


class Candidates(NamedTuple):
    """Rows that may take over: f, signs, dual variables b_j and their bounds C_j, and positions among all rows.

    `square` is r_jj with all free support vectors in the hull.
    """

    f: np.ndarray
    sign: np.ndarray
    dual: np.ndarray
    cost: np.ndarray
    square: np.ndarray
    position: np.ndarray


class Removed(NamedTuple):
    """Support vectors, each of which is left out: positions, coefficients, r_ii; the first `n_free` are free."""

    position: np.ndarray
    coef: np.ndarray
    square: np.ndarray
    n_free: int


@compiled
def takeovers(candidates, removed, cross, smallest, out):
    """Set out to what the row with the largest gain adds to the decision value of each removed support vector.

    `cross` are r_ij; `smallest` bounds r_jj from below. Returns out.
    """
    f, sign, dual, cost = candidates.f, candidates.sign, candidates.dual, candidates.cost
    for i in range(out.size):
        coef, square = removed.coef[i], removed.square[i]
        has_left_hull = i < removed.n_free and square > smallest
        inverse = 1.0 / square if has_left_hull else 0.0  # r_jj is by r_ij² times this larger
        largest = out[i] = 0.0
        for j in range(f.size):
            r = cross[i, j]
            violation = 1.0 - sign[j] * (f[j] - coef * r)
            curvature = max(candidates.square[j] + inverse * r * r, smallest)
            step = min(max(dual[j] + violation / curvature, 0.0), cost[j]) - dual[j]
            gain = step * (violation - 0.5 * step * curvature)
            if gain > largest and candidates.position[j] != removed.position[i]:
                largest, out[i] = gain, sign[j] * step * r
    return out


@compiled
def list_places(machine, limits, lists):
    """List in the rows of `lists` the free support vectors, those at bound, rows near the margin, and candidates.

    `machine` are coefficients, costs, margins y_i f_i, and whether rows are free. The first of the two `limits` is how
    far beyond the margin a row without influence is near, the second how far within it one at bound may take over.
    Candidates are places among those at bound. Returns the lengths of the lists.
    """
    coef, cost, margin, is_free = machine
    n_free = n_bound = n_near = n_candidates = 0
    for i in range(coef.size):
        is_support, distance = coef[i] != 0.0, margin[i] - 1.0
        if is_free[i]:
            lists[0, n_free] = i
            n_free += 1
        elif is_support:
            lists[1, n_bound] = i
            if distance > -limits[1]:
                lists[3, n_candidates] = n_bound
                n_candidates += 1
            n_bound += 1
        elif distance < limits[0] and cost[i] > 0.0:
            lists[2, n_near] = i
            n_near += 1
    return n_free, n_bound, n_near, n_candidates
