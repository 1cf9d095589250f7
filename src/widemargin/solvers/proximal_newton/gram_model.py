"""The quadratic model of a Newton step by its matrix, for few columns: minimise over θ

    gradient'(θ − θ₀) + ½ (θ − θ₀)'H(θ − θ₀) + Σ_j (l1_j |θ_j| + ½ l2_j θ_j²),      H = X'diag(curvature)X

Coordinate descent finds which weights are not zero. On these the model is a quadratic function as long as no sign
changes, and its minimum comes from a linear system. Both take turns until no optimality condition is violated by more
than a fraction of the largest violation at θ₀.
"""

import numpy as np
from scipy.linalg.lapack import dposv

from widemargin._runtime.compile import compiled
from widemargin.solvers.proximal_newton.shrinkage import best_weight

_SWEEPS_PER_ROUND, _MAX_ROUNDS = 3, 50
_MODEL_TOL = 1e-4  # relative to the largest violation at the beginning
_RIDGE = 1e-13  # relative to the largest diagonal entry, so that equal columns do not make the system singular
_CHANGED_ROWS_WORTH_UPDATE = 0.5  # fraction of the rows with a curvature up to which H is updated, not made anew


class GramModel:
    """H of all columns, which is updated by the rows whose curvature changes from one step to the next.

    A free intercept is a last column of ones.
    """

    def __init__(self, X, free_intercept, n_jobs):
        self._X, self._free, self._n_jobs = X, free_intercept, n_jobs
        self._curvature, self._lower = None, None

    def _update(self, curvature):
        """Set the lower half of X'diag(curvature)X."""
        X = self._X
        n_changed = None if self._lower is None else np.count_nonzero(curvature != self._curvature)
        if n_changed is None or n_changed > _CHANGED_ROWS_WORTH_UPDATE * np.count_nonzero(curvature):
            self._lower = X.gram(curvature, self._n_jobs)
        elif n_changed:
            change = curvature - self._curvature
            self._lower += X.gram(np.maximum(change, 0.0), self._n_jobs)
            self._lower -= X.gram(np.maximum(-change, 0.0), self._n_jobs)
        self._curvature = curvature.copy()

    def _matrix(self, curvature):
        """Return H, both halves."""
        self._update(curvature)
        n = self._X.n_columns
        H = np.empty((n + self._free, n + self._free))
        H[:n, :n] = np.tril(self._lower)
        H[:n, :n] += np.tril(self._lower, -1).T
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
            target = _MODEL_TOL * first if target is None else target
            if last <= target:
                break
            _solve_on_support(H, l1, l2, theta, gradient)
        return theta


@compiled
def _sweeps(H, l1, l2, theta, gradient, n_sweeps):
    """Minimise the model by each coordinate in turn, n_sweeps times; gradient is that of the model without penalties.

    Return the largest change, in units of the gradient, of the first and of the last sweep.
    """
    first, largest = 0.0, 0.0
    for sweep in range(n_sweeps):
        largest = 0.0
        for j in range(theta.size):
            h = H[j, j] + l2[j]
            if theta[j] != 0.0 or abs(gradient[j]) > l1[j]:
                best = best_weight(theta[j], gradient[j], h, l1[j], l2[j])
                step = best - theta[j]
                if step != 0.0:
                    theta[j] = best
                    largest = max(largest, h * abs(step))
                    for k in range(theta.size):
                        gradient[k] += step * H[j, k]
        if sweep == 0:
            first = largest
        if largest == 0.0:
            break
    return first, largest


def _solve_on_support(H, l1, l2, theta, gradient):
    """Move the weights that are not zero to the minimum of the model, or as far as the first that becomes zero."""
    support = np.flatnonzero((theta != 0.0) | ((l1 == 0.0) & (np.diag(H) > 0.0)))
    A = H[np.ix_(support, support)]
    point, own_l1 = theta[support], l1[support]
    A[np.diag_indices_from(A)] += l2[support] + _RIDGE * np.diag(A).max(initial=0.0)
    rest = gradient[support] + l2[support] * point + own_l1 * np.sign(point)
    if not len(support):
        return
    _, step, info = dposv(A, -rest, lower=1)
    if info != 0 or not np.isfinite(step).all():
        return
    crosses = (own_l1 > 0.0) & (point * (point + step) < 0.0)
    ratios = np.divide(-point, step, out=np.ones_like(point), where=crosses)
    fraction = min(1.0, float(ratios.min()))
    step *= fraction
    new = point + step
    new[crosses & (ratios == fraction)] = 0.0
    gradient += H[:, support] @ (new - point)
    theta[support] = new
