"""The minimum over a working set by Newton steps on its free dual variables.

Pair steps converge slowly if kernel rows are nearly dependent, and the more slowly the larger C is. Here the whole
subproblem is solved, for the changes x of the dual variables. With K = V V' (a pivoted Cholesky factor),
z_t = r_g − F_t − <V_t, w>, and E_tg = 1 if t belongs to group g, else 0:

    subproblem        minimise ½|V'x|² + F'x   over   lower <= beta + x <= upper,   E'x = 0
    outer iteration   minimise over w and r   ½|w|² + Σ_t max over x_t within its bounds of
                                                  x_t z_t − ½ delta_t (x_t − centre_t)²,
                      then centre = x (the proximal method of multipliers; Rockafellar, 1976)
    Newton step       x_t = centre_t + z_t / delta_t, clipped to its bounds; x_t is free if it is not clipped. The
                      function is piecewise quadratic, and a step with the right set of free variables is exact. Each
                      step has an exact line search
    linear system     over the columns of V, or over the free variables, whichever are fewer
    refinement        w, r and the free x_t are corrected by the residuals of their optimality conditions

delta makes the system nonsingular if rows are dependent; it is divided by ten until it has no effect. K is centred
in each group first, which changes nothing since E'x = 0. `newton.linear_system` is the same method for linear
problems.

`newton_change` is the same for any number of dual variables, if V is given: `low_rank` has one of a whole problem.
"""

from itertools import pairwise

import numpy as np
from scipy.linalg.lapack import dposv, dpstrf

from widemargin.kernels.rows import submatrix

_MAX_OUTER_ITERATIONS, _MAX_STEPS_PER_OUTER_ITERATION, _MAX_NEWTON_STEPS = 30, 200, 600
_FIRST_DELTA, _SMALLEST_DELTA = 1e-2, 1e-16  # relative to K_tt
_DELTA_FACTOR = 0.1  # by which delta is multiplied if an outer iteration is slow
_SLOW_VIOLATION_RATIO = 0.1  # an outer iteration is slow if it leaves more of the last violation
_FIRST_RIDGE, _RIDGE_FACTOR, _LARGEST_RIDGE = 1e-15, 100.0, 1e-3  # added to a unit diagonal if a factorisation fails
_GROUP_SUM_TOL = 1e-12  # of the sum of a group that should be zero, relative to its terms
_EPSILON = np.finfo(np.float64).eps

_NS_PER_CUBE_OF_FACTOR, _NS_PER_CUBE_OF_STEP = 1 / 15, 1 / 30  # for n³ operations, n the size of the matrix
_EXPECTED_NEWTON_STEPS = 20.0


def newton_nanoseconds(n_variables, n_free):
    """Return the approximate time of `newton_block` in nanoseconds."""
    factor = _NS_PER_CUBE_OF_FACTOR * float(n_variables) ** 3
    return factor + _EXPECTED_NEWTON_STEPS * _NS_PER_CUBE_OF_STEP * float(n_free) ** 3


def newton_block(K, D, goal):
    """Move beta and F of the dual variables to the minimum; return the decrease of the objective.

    Parameters
    ----------
    K : ndarray of shape (n, n)
        The kernel matrix of the working set, or that of its rows as in `pair_step`. If it is not positive semidefinite,
        the decrease may be 0.
    D : DualVariables
        Its penalties and extremes are not updated.
    goal : float
        Violation at which to stop.
    """
    row = np.arange(len(D.beta)) % len(K)
    K = np.asarray(K, dtype=np.float64) if len(row) == len(K) else submatrix(K, row, row).astype(np.float64, copy=False)
    low, high = D.lower - D.beta, D.upper - D.beta
    largest = float(np.abs(K.diagonal()).max(initial=0.0))
    groups = _groups_of(D.ends)
    with np.errstate(all="ignore"):  # a result that is not finite is discarded
        centred = _centred(K, groups)
        V = _cholesky_factor(centred, len(K) * _EPSILON * largest)
        problem = _Subproblem(V, D.F, (low, high), groups, np.abs(D.beta).sum(), largest, centred)
        x = problem.minimise(goal, _MAX_NEWTON_STEPS)
        product = K @ x
        decrease = -float(D.F @ x) - 0.5 * float(x @ product)
        if not 0.0 < decrease < np.inf:
            return 0.0
    D.beta[:] = np.where(x <= low, D.lower, np.where(x >= high, D.upper, D.beta + x))
    D.F[:] += product
    return decrease


def newton_change(V, row, F, bounds, ends, *, size_of_beta, goal, max_steps, is_over, **start):
    """Return the changes x that minimise ½|Σ_t x_t V_row[t]|² + F'x within bounds, the sum of each group being zero.

    Parameters
    ----------
    V : ndarray of shape (n_rows, k)
    row : ndarray of int
        The row of V that belongs to each dual variable.
    F : ndarray
        The gradient.
    bounds : tuple of two ndarray
        The smallest and the largest change of each dual variable.
    ends : ndarray
        Group g has the dual variables ends[g] .. ends[g + 1].
    size_of_beta : float
        The sum of the absolute values of the dual variables.
    goal : float
        Violation at which to stop.
    max_steps : int
        Number of Newton steps after which to stop.
    is_over : function
        Called before each Newton step; returns whether to stop with what was found so far.
    **start
        `start`, changes near the minimum, and `first_delta`, with which to begin.
    """
    largest = float(np.einsum("ij,ij->i", V, V).max(initial=0.0))
    with np.errstate(all="ignore"):
        problem = _Subproblem(V, F, bounds, _groups_of(ends), size_of_beta, largest, row=row)
        x = problem.minimise(goal, max_steps, is_over, **start)
    return x if np.isfinite(x).all() else np.zeros(len(x))


def _groups_of(ends):
    """Return the groups that are not empty, as slices."""
    return [slice(begin, end) for begin, end in pairwise(ends) if begin < end]


def _centred(K, groups):
    """Return K without the means of the rows and columns of each group."""
    K = K.copy()
    for here in groups:
        K[here] -= K[here].mean(axis=0)
    for here in groups:
        K[:, here] -= K[:, here].mean(axis=1)[:, np.newaxis]
    return K


class _Subproblem:
    """The subproblem for the changes x of a working set; w, r and x as in the module's formulas, s = V w.

    `K` = V V' may be given if it is known; else it is computed where it is needed. If `row` is given, V_t is V[row[t]].
    """

    def __init__(self, V, F, bounds, groups, size_of_beta, largest, K=None, row=None):
        self._V, self._K, self._row, self._groups = V, K, row, groups
        self._low, self._high = bounds
        self._group_of = np.repeat(np.arange(len(groups)), [here.stop - here.start for here in groups])
        self._F = F.copy()
        for here in groups:
            self._F[here] -= np.median(F[here])
        self._rounding, self._size_of_beta = 4.0 * _EPSILON * largest, size_of_beta
        diagonal = self._of_variables(np.einsum("ij,ij->i", V, V)) if K is None else K.diagonal()
        is_zero = not diagonal.max() > 0.0
        self._delta_unit = np.ones(len(F)) if is_zero else np.maximum(diagonal, 1e-6 * diagonal.max())

    def _of_variables(self, values):
        """Return the values of each dual variable from those of the rows of V."""
        return values if self._row is None else values[self._row]

    def _combine(self, x):
        """Return V'x."""
        return (x if self._row is None else np.bincount(self._row, x, minlength=len(self._V))) @ self._V

    def minimise(self, goal, max_steps, is_over=lambda: False, start=None, first_delta=_FIRST_DELTA):
        """Return the x with the smallest violation that was found, which may be zero."""
        self._is_over = is_over
        self._r, self._x = np.zeros(len(self._groups)), np.zeros(len(self._F))
        best, smallest, last = self._x, self._violation(self._x), np.inf
        relative, self._steps_left = first_delta, max_steps
        self._x = self._x if start is None else start
        self._w = self._combine(self._x)
        self._s = self._of_variables(self._V @ self._w)
        for _ in range(_MAX_OUTER_ITERATIONS):
            self._delta = relative * self._delta_unit
            converged = self._minimise_around(self._x)
            self._refine()
            self._x = np.clip(self._x, self._low, self._high)
            violation = self._violation(self._x)
            if violation < smallest and self._has_zero_sums(self._x):
                best, smallest = self._x, violation
            rounding = self._rounding * (self._size_of_beta + np.abs(self._x).sum())
            if smallest <= max(goal, rounding) or not np.isfinite(violation) or self._steps_left <= 0 or is_over():
                break
            if converged and violation > _SLOW_VIOLATION_RATIO * last:
                if relative <= _SMALLEST_DELTA:
                    break
                relative = max(_DELTA_FACTOR * relative, _SMALLEST_DELTA)
            last = violation
        return best

    def _violation(self, x):
        """Return the largest violation of a group: see `ActiveSet.scan`."""
        gradient = self._F + self._of_variables(self._V @ self._combine(x))
        rising = np.where(x < self._high, gradient, np.inf)
        falling = np.where(x > self._low, gradient, -np.inf)
        return max(0.0, *(float(falling[here].max() - rising[here].min()) for here in self._groups))

    def _has_zero_sums(self, x):
        """Return whether the sum of each group is zero but for rounding."""
        tol = _GROUP_SUM_TOL * (self._size_of_beta + np.abs(x).sum())
        return all(abs(x[here].sum()) <= tol for here in self._groups)

    def _residuals(self):
        """Return z."""
        return self._r[self._group_of] - self._F - self._s

    def _minimise_around(self, centre):
        """Take Newton steps with exact line searches; return whether they have converged."""
        self._update_r_and_x(centre)
        for _ in range(min(_MAX_STEPS_PER_OUTER_ITERATION, self._steps_left)):
            if self._is_over():
                return False
            self._steps_left -= 1
            before, free = self._is_free, np.flatnonzero(self._is_free)
            d, e, _ = self._step(free, np.zeros(len(free)), np.zeros(len(self._r)))
            change_of_s = self._of_variables(self._V @ d)
            change_of_z = e[self._group_of] - change_of_s
            line = float(self._w @ d), float(d @ d)
            k = _zero_of_increasing(self._u, change_of_z / self._delta, change_of_z, self._low, self._high, line)
            if not 0.0 < k < np.inf:
                return True
            self._w, self._r, self._s = self._w + k * d, self._r + k * e, self._s + k * change_of_s
            self._update_r_and_x(centre)
            if abs(k - 1.0) < 1e-3 and np.array_equal(before, self._is_free):
                return True
        return False

    def _update_r_and_x(self, centre):
        """Compute r, x and the free variables from w, so that the sum of each group is zero."""
        u = centre + self._residuals() / self._delta
        for g, here in enumerate(self._groups):
            rate = 1.0 / self._delta[here]
            low, high = self._low[here], self._high[here]
            change_of_r = _zero_of_increasing(u[here], rate, np.ones(len(rate)), low, high, (0.0, 0.0))
            if np.isfinite(change_of_r):
                self._r[g] += change_of_r
                u[here] += change_of_r * rate
        self._u, self._is_free = u, (u > self._low) & (u < self._high)
        self._x = np.clip(u, self._low, self._high)

    def _refine(self):
        """Correct w, r and the free x by the residuals of their optimality conditions."""
        free = np.flatnonzero(self._is_free)
        sums = np.array([self._x[here].sum() for here in self._groups])
        d, e, y = self._step(free, self._residuals()[free], sums)
        self._w, self._r, self._x = self._w + d, self._r + e, self._x.copy()
        self._x[free] += y
        self._s = self._of_variables(self._V @ self._w)

    def _step(self, free, residual, sums):
        """Return d, e, y with   d = V_A'y − g,   V_A d − E_A e + delta y = residual,   E_A'y = −sums.

        A is the set of free variables and g = w − V'x. For a group without free variables, e = 0.
        """
        g = self._w - self._combine(self._x)
        e = np.zeros(len(self._groups))
        if not len(free):
            return -g, e, np.zeros(0)
        groups, member = np.unique(self._group_of[free], return_inverse=True)
        E = (member[:, np.newaxis] == np.arange(len(groups))).astype(np.float64)
        V, delta = self._V[free if self._row is None else self._row[free]], self._delta[free]
        if len(free) > len(g) > 0:
            d, e[groups], y = _solve_by_columns(V, E, delta, g, residual, sums[groups])
        else:
            A = V @ V.T if self._K is None else self._K[np.ix_(free, free)]
            A.flat[:: len(A) + 1] += delta
            y, e[groups] = _solve_by_rows(A, E, residual + V @ g, sums[groups])
            d = y @ V - g
        return d, e, y


def _cholesky_factor(K, tolerance):
    """Return V with K = V V', by a pivoted Cholesky factorisation that stops at pivots below the tolerance."""
    factor, pivots, rank, _ = dpstrf(K, tol=tolerance, lower=1)
    V = np.zeros((len(K), rank))
    V[pivots - 1] = np.tril(factor)[:, :rank]
    return V


def _solve_by_columns(V, E, delta, g, residual, sums):
    """Return d, e, y of `_Subproblem._step`, by elimination of y and e: e = mean d − offset.

    The rows of `mean` are the means of the rows of V in each group, weighted by 1 / delta.
    """
    weight = 1.0 / delta
    total = weight @ E
    mean = (E * weight[:, np.newaxis]).T @ V / total[:, np.newaxis]
    offset = ((weight * residual) @ E + sums) / total
    R, residual = V - E @ mean, residual - E @ offset
    H = (weight[:, np.newaxis] * R).T @ R
    H.flat[:: len(H) + 1] += 1.0
    d = solve_definite(H, ((weight * residual) @ R - g - sums @ mean)[:, np.newaxis])[:, 0]
    return d, mean @ d - offset, weight * (residual - R @ d)


def _solve_by_rows(A, E, right, sums):
    """Return y and e with A y = right + E e and E'y = −sums."""
    solved = solve_definite(A, np.column_stack([right, E]))
    y, inverse_E = solved[:, 0], solved[:, 1:]
    e = -solve_definite(E.T @ inverse_E, (E.T @ y + sums)[:, np.newaxis])[:, 0]
    return y + inverse_E @ e, e


def solve_definite(A, right):
    """Return the solution x of A x = right for a positive definite A; NaN if A is not, or numbers are not finite."""
    scale = 1.0 / np.sqrt(A.diagonal())
    A, right = A * scale[:, np.newaxis] * scale, scale[:, np.newaxis] * right
    ridge, failed = 0.0, not (np.isfinite(A).all() and np.isfinite(right).all())
    while not failed:
        A.flat[:: len(A) + 1] = 1.0 + ridge
        _, x, failed = dposv(A, right)
        if not failed:
            return scale[:, np.newaxis] * x
        ridge = max(_RIDGE_FACTOR * ridge, _FIRST_RIDGE)
        failed = ridge > _LARGEST_RIDGE
    return np.full_like(right, np.nan)


def _zero_of_increasing(u, rate, factor, low, high, line):
    """Return a k where f(k) = line₀ + line₁ k + Σ factor clip(u + k rate, low, high) is zero; ±∞ if there is none.

    `factor` has the sign of `rate` and line₁ >= 0, so that f never decreases. It is piecewise linear: its slope changes
    at the breakpoints, where a term enters the interval from low to high, or leaves it.
    """
    constant, slope = line
    f = constant + float(factor @ np.clip(u, low, high))
    if not f < 0.0:
        return -_zero_of_increasing(u, -rate, -factor, low, high, (-constant, slope)) if f > 0.0 else 0.0
    term_slope = rate * factor
    moving = term_slope > 0.0
    u, rate, term_slope, low, high = u[moving], rate[moving], term_slope[moving], low[moving], high[moving]
    at_low, at_high = (low - u) / rate, (high - u) / rate
    enter, leave = np.minimum(at_low, at_high), np.maximum(at_low, at_high)
    will_enter, will_leave = enter > 0.0, leave > 0.0
    breakpoints = np.concatenate([enter[will_enter], leave[will_leave]])
    order = np.argsort(breakpoints, kind="stable")
    changes = np.concatenate([term_slope[will_enter], -term_slope[will_leave]])[order]
    breakpoints = breakpoints[order]
    first_slope = slope + float(term_slope[~will_enter & will_leave].sum())
    slopes = np.maximum(first_slope + np.cumsum(np.append(0.0, changes)), slope)
    values = f + np.cumsum(slopes[:-1] * np.diff(breakpoints, prepend=0.0))
    n_before = int(np.searchsorted(values, 0.0))  # breakpoints where f is still negative
    k, value = (0.0, f) if n_before == 0 else (breakpoints[n_before - 1], values[n_before - 1])
    if slopes[n_before] > 0.0:
        return float(k - value / slopes[n_before])
    return float(breakpoints[n_before]) if n_before < len(breakpoints) else np.inf
