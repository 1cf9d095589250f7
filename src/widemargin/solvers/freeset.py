"""Newton's step on the free multipliers of a working set: where they stay free, all of them settle at once.

Steps of single pairs come slowly to the minimum over many multipliers whose kernel rows are nearly dependent. Once
hardly any of them meets a bound any more, that minimum is a linear system in the free ones, A,

    (K_AA + ridge) d = −(F_A − r_g),    Σ_{t in g} d_t = 0 for each group g

with a ridge against the rounding of K, the same factor being used again until the ridge no longer matters. If a bound
is in the way, the step ends there, and the next one is without that multiplier.
"""

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from widemargin._compiled import compiled

_RIDGE = 1e-5  # of the largest K_tt
_SOLVES = 6  # with one factor
_FACTORS = 4


def newton_block(K, M):
    """Change beta and F of the multipliers by steps on the free ones; return by how much the objective fell.

    M's masks and levels are those of before.
    """
    fallen = 0.0
    for _ in range(_FACTORS):
        free = np.flatnonzero((M.beta > M.lower) & (M.beta < M.upper))
        group = np.searchsorted(M.ends, free, side="right") - 1
        if len(free) <= len(np.unique(group)):
            break
        gained, blocked = _steps(K, M, free, group)
        fallen += gained
        if not blocked:
            break
    return fallen


def _steps(K, M, free, group):
    """Take steps on the free multipliers with one factor; return (fall of the objective, whether a bound was met)."""
    block = K[free][:, free].astype(np.float64)
    block.flat[:: len(free) + 1] += _RIDGE * M.diagonal[free].max()
    try:
        factor = cho_factor(block, lower=True, overwrite_a=True, check_finite=False)
    except LinAlgError:  # K is not positive definite: pairs go on alone
        return 0.0, False
    member = (group[:, np.newaxis] == np.unique(group)).astype(np.float64)
    pull = cho_solve(factor, member, check_finite=False)
    fallen, change = 0.0, np.empty(len(M.F))
    for _ in range(_SOLVES):
        direction = cho_solve(factor, -M.F[free], check_finite=False)
        direction -= pull @ np.linalg.solve(member.T @ pull, member.T @ direction)
        step, met = _reach(M, free, direction)
        change[:] = 0.0
        _add_lines(K, free, step * direction, change)
        gained = -step * (direction @ M.F[free]) - 0.5 * step * (direction @ change[free])
        if not gained > 0.0:
            return fallen, False
        M.beta[free] += step * direction
        M.beta[free[met]] = np.where(direction[met] > 0.0, M.upper[free[met]], M.lower[free[met]])
        M.F[:] += change
        fallen += gained
        if len(met):
            return fallen, True
    return fallen, False


def _reach(M, free, direction):
    """Return how far to go, at most 1, and which of the free multipliers are at a bound there."""
    bound = np.where(direction > 0.0, M.upper[free], M.lower[free])
    ratio = np.divide(bound - M.beta[free], direction, out=np.full(len(free), np.inf), where=direction != 0.0)
    step = min(1.0, ratio.min())
    return step, np.flatnonzero(ratio <= step)


@compiled(fastmath=frozenset({"contract"}))
def _add_lines(K, lines, weights, sums):
    """Add Σ_k weights[k] K[lines[k]] to sums."""
    for k in range(lines.size):
        line, weight = K[np.uint64(lines[k])], weights[k]
        for t in range(sums.size):
            sums[t] += weight * np.float64(line[t])
