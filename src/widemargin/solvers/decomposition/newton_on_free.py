"""The minimum over a working set by Newton steps on its free dual variables: for those that pairs come slowly to.

Steps of single pairs come slowly to the minimum where kernel rows are nearly dependent, and the slower the larger C
is. Here the whole subproblem is solved, in the changes x of the dual variables. With K = V V' (a pivoted Cholesky
factor), z_t = r_g − F_t − <V_t, w> and E the matrix of ones that says which group each variable belongs to:

    subproblem        minimise ½|V'x|² + F'x   over   lower <= beta + x <= upper,   E'x = 0
    outer iteration   minimise over w and r   ½|w|² + Σ_t max over x_t within its bounds of
                                                  x_t z_t − ½ delta_t (x_t − centre_t)²,
                      then centre = x (the proximal method of multipliers; Rockafellar, 1976)
    Newton step       x_t = centre_t + z_t / delta_t, cut to its bounds; what is not cut is free. The function is
                      piecewise quadratic: once the right ones are free a step is exact; each goes to the lowest point
                      of its line
    linear system     over the columns of V, or over the free variables, whichever are fewer
    refinement        w, r and the free x_t are corrected by the residuals of their optimality conditions

delta makes the system regular where rows are dependent; it is divided by ten until it no longer matters. Rows are
centred first, which the sums of the groups make possible. `newton.linear_system` does the same for linear problems.
"""

from itertools import pairwise

import numpy as np
from scipy.linalg.lapack import dposv, dpstrf

_OUTER_ITERATIONS, _NEWTON_STEPS, _ALL_STEPS = 30, 200, 600
_FIRST_DELTA, _SMALLER, _LEAST_DELTA = 1e-2, 0.1, 1e-16  # against K_tt; a factor where an outer iteration is slow
_SLOW = 0.1  # of the last violation: an outer iteration that leaves more asks for a smaller delta
_RIDGE, _LARGEST_RIDGE = 1e-15, 1e-3  # added to a unit diagonal where a factorisation fails, times 100 each time
_BALANCED = 1e-12  # sum of a group that is none, against the sizes of its terms
_EPSILON = np.finfo(np.float64).eps

_FACTOR_COST, _STEP_COST, _STEPS = 1 / 15, 1 / 30, 20.0  # nanoseconds for n³ of a factor; of a Newton step; how many


def newton_cost(n_variables, n_free):
    """Return the nanoseconds, about, that `newton_block` takes."""
    return _FACTOR_COST * float(n_variables) ** 3 + _STEPS * _STEP_COST * float(n_free) ** 3


def newton_block(K, M, goal):
    """Change beta and F of the multipliers to the minimum; return by how much the objective fell.

    Parameters
    ----------
    K : ndarray of shape (n, n)
        The kernel matrix of the working set. If it is not positive semidefinite, nothing may come of it.
    M : Multipliers
        Its masks and levels stay those of before.
    goal : float
        Violation that is small enough.
    """
    K = np.asarray(K, dtype=np.float64)
    low, high = M.lower - M.beta, M.upper - M.beta
    with np.errstate(all="ignore"):  # what is not finite is not taken
        x = _Subproblem(K, M.F, low, high, M.ends, np.abs(M.beta).sum()).minimise(goal)
        product = K @ x
        fallen = -float(M.F @ x) - 0.5 * float(x @ product)
        if not 0.0 < fallen < np.inf:
            return 0.0
    M.beta[:] = np.where(x <= low, M.lower, np.where(x >= high, M.upper, M.beta + x))
    M.F[:] += product
    return fallen


class _Subproblem:
    """Changes x of the variables of a working set; w, r and x as in the module's formulas, s = V w."""

    def __init__(self, K, F, low, high, ends, size_of_beta):
        self._low, self._high = low, high
        filled = [(begin, end) for begin, end in pairwise(ends) if begin < end]
        self._groups = [slice(begin, end) for begin, end in filled]
        self._group_of = np.repeat(np.arange(len(filled)), [end - begin for begin, end in filled])
        self._F, self._K = F.copy(), K.copy()
        for here in self._groups:
            self._F[here] -= np.median(F[here])
            self._K[here] -= self._K[here].mean(axis=0)
        for here in self._groups:
            self._K[:, here] -= self._K[:, here].mean(axis=1)[:, np.newaxis]
        largest = float(np.abs(K.diagonal()).max(initial=0.0))
        self._rounding, self._size_of_beta = 4.0 * _EPSILON * largest, size_of_beta
        self._V = _root(self._K, len(F) * _EPSILON * largest)
        diagonal = self._K.diagonal()
        self._size = np.maximum(diagonal, 1e-6 * diagonal.max()) if diagonal.max() > 0.0 else np.ones(len(F))

    def minimise(self, goal):
        """Return the x of the smallest violation that was found; zeros if none is better than those."""
        n, k = self._V.shape
        self._w, self._r, self._x, self._s = np.zeros(k), np.zeros(len(self._groups)), np.zeros(n), np.zeros(n)
        best, least, last = self._x, self._violation(self._x), np.inf
        relative, self._steps_left = _FIRST_DELTA, _ALL_STEPS
        for _ in range(_OUTER_ITERATIONS):
            self._delta = relative * self._size
            settled = self._minimise_around(self._x)
            self._refine()
            self._x = np.clip(self._x, self._low, self._high)
            violation = self._violation(self._x)
            if violation < least and self._is_balanced(self._x):
                best, least = self._x, violation
            reachable = self._rounding * (self._size_of_beta + np.abs(self._x).sum())
            if least <= max(goal, reachable) or not np.isfinite(violation) or self._steps_left <= 0:
                break
            if settled and violation > _SLOW * last:
                if relative <= _LEAST_DELTA:
                    break
                relative = max(_SMALLER * relative, _LEAST_DELTA)
            last = violation
        return best

    def _violation(self, x):
        """Return the largest gradient that may fall less the smallest that may rise, of the worst group."""
        gradient = self._F + self._V @ (x @ self._V)
        rising = np.where(x < self._high, gradient, np.inf)
        falling = np.where(x > self._low, gradient, -np.inf)
        return max(0.0, *(float(falling[here].max() - rising[here].min()) for here in self._groups))

    def _is_balanced(self, x):
        room = _BALANCED * (self._size_of_beta + np.abs(x).sum())
        return all(abs(x[here].sum()) <= room for here in self._groups)

    def _residuals(self):
        return self._r[self._group_of] - self._F - self._s

    def _minimise_around(self, centre):
        """Take Newton steps, each to the lowest point of its line; return whether the free variables stay the same."""
        self._follow(centre)
        for _ in range(min(_NEWTON_STEPS, self._steps_left)):
            self._steps_left -= 1
            before, free = self._is_free, np.flatnonzero(self._is_free)
            d, e, _ = self._step(free, np.zeros(len(free)), np.zeros(len(self._r)))
            along = e[self._group_of] - self._V @ d
            k = _crossing(
                self._u, along / self._delta, along, self._low, self._high, (float(self._w @ d), float(d @ d))
            )
            if not 0.0 < k < np.inf:
                return True
            self._w, self._r = self._w + k * d, self._r + k * e
            self._s = self._V @ self._w
            self._follow(centre)
            if abs(k - 1.0) < 1e-3 and np.array_equal(before, self._is_free):
                return True
        return False

    def _follow(self, centre):
        """Let r, x and what is free follow from w: the sum of each group is zero."""
        u = centre + self._residuals() / self._delta
        for g, here in enumerate(self._groups):
            rate = 1.0 / self._delta[here]
            shift = _crossing(u[here], rate, np.ones(len(rate)), self._low[here], self._high[here], (0.0, 0.0))
            if np.isfinite(shift):
                self._r[g] += shift
                u[here] += shift * rate
        self._u, self._is_free = u, (u > self._low) & (u < self._high)
        self._x = np.clip(u, self._low, self._high)

    def _refine(self):
        """Correct w, r and the free x by the residuals of their optimality conditions."""
        free = np.flatnonzero(self._is_free)
        sums = np.array([self._x[here].sum() for here in self._groups])
        d, e, y = self._step(free, self._residuals()[free], sums)
        self._w, self._r, self._x = self._w + d, self._r + e, self._x.copy()
        self._x[free] += y
        self._s = self._V @ self._w

    def _step(self, free, residual, sums):
        """Return d, e, y with   d = V_A'y − g,   V_A d − E_A e + delta y = residual,   E_A'y = −sums.

        A are the free variables and g = w − V'x; e = 0 for a group without any.
        """
        g = self._w - self._x @ self._V
        e = np.zeros(len(self._groups))
        if not len(free):
            return -g, e, np.zeros(0)
        here, member = np.unique(self._group_of[free], return_inverse=True)
        E = (member[:, np.newaxis] == np.arange(len(here))).astype(np.float64)
        V, delta = self._V[free], self._delta[free]
        if len(free) > len(g) > 0:
            d, e[here], y = _by_columns(V, E, delta, g, residual, sums[here])
        else:
            A = self._K[np.ix_(free, free)]
            A.flat[:: len(A) + 1] += delta
            y, e[here] = _by_rows(A, E, residual + V @ g, sums[here])
            d = y @ V - g
        return d, e, y


def _root(K, tolerance):
    """Return V with K = V V', of as few columns as the tolerance allows."""
    factor, pivots, rank, _ = dpstrf(K, tol=tolerance, lower=1)
    V = np.zeros((len(K), rank))
    V[pivots - 1] = np.tril(factor)[:, :rank]
    return V


def _by_columns(V, E, delta, g, residual, sums):
    """Solve for d first, y and e eliminated: e = <pull, d> − level."""
    weight = 1.0 / delta
    total = weight @ E
    pull = (E * weight[:, np.newaxis]).T @ V / total[:, np.newaxis]
    level = ((weight * residual) @ E + sums) / total
    R, residual = V - E @ pull, residual - E @ level
    H = (weight[:, np.newaxis] * R).T @ R
    H.flat[:: len(H) + 1] += 1.0
    d = _solve(H, ((weight * residual) @ R - g - sums @ pull)[:, np.newaxis])[:, 0]
    return d, pull @ d - level, weight * (residual - R @ d)


def _by_rows(A, E, right, sums):
    """Solve A y = right + E e with E'y = −sums."""
    solved = _solve(A, np.column_stack([right, E]))
    y, pull = solved[:, 0], solved[:, 1:]
    e = -_solve(E.T @ pull, (E.T @ y + sums)[:, np.newaxis])[:, 0]
    return y + pull @ e, e


def _solve(A, right):
    """Solve A x = right for a positive definite A; NaN if it is not, or not finite."""
    scale = 1.0 / np.sqrt(A.diagonal())
    A, right = A * scale[:, np.newaxis] * scale, scale[:, np.newaxis] * right
    ridge, failed = 0.0, not (np.isfinite(A).all() and np.isfinite(right).all())
    while not failed:
        A.flat[:: len(A) + 1] = 1.0 + ridge
        _, x, failed = dposv(A, right)
        if not failed:
            return scale[:, np.newaxis] * x
        ridge = max(100.0 * ridge, _RIDGE)
        failed = ridge > _LARGEST_RIDGE
    return np.full_like(right, np.nan)


def _crossing(u, rate, factor, low, high, line):
    """Return k where f(k) = line₀ + line₁ k + Σ factor clip(u + k rate, low, high) is zero.

    `factor` has the sign of `rate` and line₁ >= 0, so that f never falls. Of several zeros one; ±∞ if there is none.
    """
    constant, slope = line
    f = constant + float(factor @ np.clip(u, low, high))
    if not f < 0.0:
        return -_crossing(u, -rate, -factor, low, high, (-constant, slope)) if f > 0.0 else 0.0
    bend = rate * factor
    moving = bend > 0.0
    u, rate, bend, low, high = u[moving], rate[moving], bend[moving], low[moving], high[moving]
    first, second = (low - u) / rate, (high - u) / rate
    enter, leave = np.minimum(first, second), np.maximum(first, second)
    coming, going = enter > 0.0, leave > 0.0
    places = np.concatenate([enter[coming], leave[going]])
    order = np.argsort(places, kind="stable")
    places, changes = places[order], np.concatenate([bend[coming], -bend[going]])[order]
    here = slope + float(bend[~coming & going].sum())
    slopes = np.maximum(here + np.cumsum(np.append(0.0, changes)), slope)
    values = f + np.cumsum(slopes[:-1] * np.diff(places, prepend=0.0))
    last = int(np.searchsorted(values, 0.0))  # the first place where f is not negative
    place, value = (0.0, f) if last == 0 else (places[last - 1], values[last - 1])
    if slopes[last] > 0.0:
        return float(place - value / slopes[last])
    return float(places[last]) if last < len(places) else np.inf
