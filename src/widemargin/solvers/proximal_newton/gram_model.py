"""The quadratic model of a Newton step by its matrix, for few columns: minimise over θ

    gradient'(θ − θ₀) + ½ (θ − θ₀)'H(θ − θ₀) + Σ_j (l1_j |θ_j| + ½ l2_j θ_j²),      H = X'diag(curvature)X

Coordinate descent finds which weights are not zero. On these the model is a quadratic function as long as no sign
changes, and its minimum comes from a linear system; the model is minimised exactly on the line to it, through changes
of signs, which matters where columns are linearly dependent. Both take turns until no optimality condition is violated
by more than a fraction of the largest violation at θ₀.
"""

import numpy as np
from scipy.linalg.lapack import dposv

from widemargin._runtime.compile import compiled
from widemargin.solvers.proximal_newton.shrinkage import best_weight
from widemargin.solvers.updated_gram import UpdatedGram

_SWEEPS_PER_ROUND, _MAX_ROUNDS = 12, 50
_MODEL_TOL, _ROUGH_MODEL_TOL = 1e-4, 0.1  # relative to the largest violation at the beginning; the second while that is
_LARGE_VIOLATION = 1e-3  # more than this, relative to the largest l1
_RIDGE = 1e-12  # relative to the diagonal, by which it is made larger, since columns may be linearly dependent
_TINY = float(np.finfo(np.float64).tiny)
_SHORT_STEP = 0.1  # towards the minimum on the weights that are not zero, after which a step of the other kind is made
_MAX_REMOVALS = 20  # of weights, one by each short step


class GramModel:
    """H of all columns, which is updated by the rows whose curvature changes from one step to the next.

    A free intercept is a last column of ones.
    """

    def __init__(self, X, free_intercept, n_jobs):
        self._X, self._free, self._n_jobs = X, free_intercept, n_jobs
        self._gram, self._is_damped = UpdatedGram(X, n_jobs), False

    def _matrix(self, curvature):
        """Return H, both halves."""
        n, lower = self._X.n_columns, self._gram.lower(curvature)
        H = np.empty((n + self._free, n + self._free))
        _mirror(lower, H)
        if self._free:
            H[n, :n] = H[:n, n] = self._X.combine(curvature, self._n_jobs)
            H[n, n] = curvature.sum()
        return H

    def minimise(self, theta, gradient, curvature, penalties):
        """Return the θ that minimises the model at theta."""
        H, (l1, l2), theta, gradient = self._matrix(curvature), penalties, theta.copy(), gradient.copy()
        target = None
        for _ in range(_MAX_ROUNDS):
            first, last = _sweeps(H, l1, l2, theta, gradient, _SWEEPS_PER_ROUND)
            if target is None:
                is_rough = first > _LARGE_VIOLATION * l1.max(initial=0.0)
                target = (_ROUGH_MODEL_TOL if is_rough else _MODEL_TOL) * first
            if last <= target:
                break
            self._solve_on_support(H, l1, l2, theta, gradient)
        return theta

    def _solve_on_support(self, *model):
        """Move the weights that are not zero towards the minimum that the model has if no sign changes.

        Where columns are linearly dependent, that minimum may be very far, and a change of sign, where a weight becomes
        zero, ends the step soon. A damped step follows, and the next time it comes first. If that is short, too,
        weights are removed by steps that are not damped until those that are left are independent.
        """
        if _step_on_support(*model, self._is_damped) > _SHORT_STEP:
            return
        if self._is_damped:
            steps = (_step_on_support(*model, False) for _ in range(_MAX_REMOVALS))
            self._is_damped = all(step <= _SHORT_STEP for step in steps)
        else:
            self._is_damped = _step_on_support(*model, True) > _SHORT_STEP


@compiled
def _sweeps(H, l1, l2, theta, gradient, n_sweeps):
    """Minimise the model by each coordinate in turn, n_sweeps times; gradient is that of the model without penalties.

    Return the largest change, in units of the gradient, of the first and of the last sweep.
    """
    first, largest = 0.0, 0.0
    for sweep in range(n_sweeps):
        largest = _sweep(H, l1, l2, theta, gradient)
        if sweep == 0:
            first = largest
        if largest == 0.0:
            break
    return first, largest


@compiled
def _sweep(H, l1, l2, theta, gradient):
    """Minimise the model by each coordinate in turn; return the largest change, in units of the gradient."""
    largest = 0.0
    for j in range(theta.size):
        h = H[j, j] + l2[j]
        if theta[j] == 0.0 and abs(gradient[j]) <= l1[j]:
            continue
        best = best_weight(theta[j], gradient[j], h, l1[j], l2[j])
        step = best - theta[j]
        if step != 0.0:
            theta[j] = best
            largest = max(largest, h * abs(step))
            for k in range(theta.size):
                gradient[k] += step * H[j, k]
    return largest


def _step_on_support(H, l1, l2, theta, gradient, is_damped):
    """Move the weights that are not zero towards the minimum that the model has if no sign changes; return the step.

    A damped step has a diagonal that is larger by l1 / max |θ|, which keeps it as short as the weights are.
    """
    support = np.flatnonzero((theta != 0.0) | ((l1 == 0.0) & (np.diag(H) > 0.0)))
    if not len(support):
        return 1.0
    own_l1, point, A = l1[support], theta[support], np.empty((len(support), len(support)))
    _choose(H, support, l2, A)
    rest = gradient[support] + l2[support] * point + own_l1 * np.sign(point)
    damped = A.copy()
    damping = 1.0 / max(np.abs(point).max(), _TINY) if is_damped else 0.0
    damped[np.diag_indices_from(A)] += _RIDGE * np.diag(A) + damping * own_l1
    _, step, info = dposv(damped, -rest, lower=1)
    if info != 0 or not rest @ step < 0.0:  # not definite, because of rounding
        return 0.0
    t, new = _best_on_line(point, step, own_l1, float(rest @ step), max(0.0, float(step @ (A @ step))))
    change = np.zeros(len(theta))
    change[support] = new - point
    gradient += H @ change
    theta[support] = new
    return t


@compiled
def _mirror(lower, out):
    """Write a symmetric matrix, of which the lower half is given, to the first rows and columns of `out`."""
    for i in range(lower.shape[0]):
        for j in range(i + 1):
            out[i, j] = out[j, i] = lower[i, j]


@compiled
def _choose(H, support, l2, out):
    """Set `out` to the chosen rows and columns of H, with l2 added to the diagonal."""
    for a in range(support.size):
        i = np.uint64(support[a])
        for b in range(support.size):
            out[a, b] = H[i, np.uint64(support[b])]
        out[a, a] += l2[i]


def _best_on_line(point, step, l1, slope, curvature):
    """Return t and the minimum of the model on the line point + t step, t >= 0, through all changes of signs.

    `slope` is the derivative by t at 0, without sign changes, and `curvature` the second derivative. Where weight k
    changes its sign, the slope jumps by 2 l1 |step_k|.
    """
    crosses = np.flatnonzero((l1 > 0.0) & (point * step < 0.0))
    t = -point[crosses] / step[crosses]
    order = np.argsort(t)
    crosses, t = crosses[order], t[order]
    jumps = np.concatenate([[0.0], np.cumsum(2.0 * l1[crosses] * np.abs(step[crosses]))])
    before = slope + curvature * t + jumps[:-1]
    reached = np.flatnonzero(before + np.diff(jumps) >= 0.0)
    k = int(reached[0]) if len(reached) else len(t)
    if k < len(t) and before[k] <= 0.0:
        new = point + t[k] * step
        new[crosses[k]] = 0.0
        return float(t[k]), new
    best = float(-slope - jumps[k]) / curvature if curvature > 0.0 else 0.0
    return best, point + best * step
