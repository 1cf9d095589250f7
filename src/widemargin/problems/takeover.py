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
    """Rows that may take over: f, signs, dual variables b_j and their bounds C_j; r_jj with all free ones in the hull.

    `own` is the place of a row among the support vectors that are left out, −1 if it is none of them.
    """

    f: np.ndarray
    sign: np.ndarray
    dual: np.ndarray
    cost: np.ndarray
    square: np.ndarray
    own: np.ndarray


@compiled
def add_takeovers(candidates, cross, coef, spans, n_free, smallest, out):
    """Add to out, the decision values of left-out support vectors, what the row with the largest gain takes over.

    `cross` are r_ij and `spans` r_ii; the first `n_free` support vectors are free. `smallest` bounds r_jj from below.
    """
    f, sign, dual, cost, square, own = candidates
    for i in range(cross.shape[0]):
        # r_jj is larger by r_ij² times this
        inverse = 1.0 / spans[i] if i < n_free and spans[i] > smallest else 0.0
        largest, change = 0.0, 0.0
        for j in range(f.size):
            r = cross[i, j]
            violation = 1.0 - sign[j] * (f[j] - coef[i] * r)
            curvature = max(square[j] + inverse * r * r, smallest)
            step = min(max(dual[j] + violation / curvature, 0.0), cost[j]) - dual[j]
            gain = step * (violation - 0.5 * step * curvature)
            if gain > largest and own[j] != i:
                largest, change = gain, sign[j] * step * r
        out[i] += change
