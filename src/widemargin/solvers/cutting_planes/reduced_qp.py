"""The reduced problem of a cutting plane method: the minimum over the planes found so far.

    primal   minimise ½|w|² + max over planes k of <a_k, w> + b_k
    dual     maximise b'v − ½ v'Gv   over   v >= 0, Σ v = 1,   with G_kl = <a_k, a_l> and w = −Σ v_k a_k

One of the planes is the zero plane (a, b) = (0, 0) if the risk is never negative.

The method is the active set method of Wolfe (Finding the nearest point in a polytope, 1976), with a linear term. The
support is the set of planes with nonzero weight. For these, a Cholesky factor of G + σ 11' is kept up to date. The
matrix is positive definite if the planes are affinely independent, and the term σ is constant where Σ v = 1. Each step
adds the plane that violates its optimality condition most, and moves towards the optimum over the enlarged support; if
a weight becomes zero on the way, its plane is removed. A plane that depends on the others replaces one of them. A new
plane changes few weights, so that the previous solution is a good start, and a step costs the square of the size of the
support.

Indices stay within the arrays for any numbers: a plane is added to the support only if it is not in it and there is
room, and comparisons are written so that NaN means "dependent" or "stop".

Measured on the problems of real runs (`benchmarks/reduced_qp.py`), milliseconds for one of 100 and of 500 planes: this
0.10 and 0.64, its duality gap at most 6e-9 of its value; daqp (warm) 0.65 and 626; piqp 1.1 and 71; proxsuite (warm)
2.9 and 297, gaps up to 5e-4; quadprog 6.7 and 1700, and wrong by a tenth where G is singular; clarabel 13 and 421.
"""

import math

import numpy as np

from widemargin._runtime.compile import SUMS, compiled

_DEPENDENCE_TOL = 1e-11  # a plane is dependent if its part orthogonal to the others has a smaller square, against G_kk
_OPTIMALITY_TOL = 1e-13  # relative to the terms of the objective: smaller violations are due to rounding
_INITIAL_CAPACITY = 16  # planes
_MAX_IDLE_SOLVES = 50  # in which a plane has had no weight, from which on it is not in use
_MAX_IDLE_PLANES = 25  # planes without weight that are in use all the same
_SIGMA_RANGE = 10.0  # factor between σ and its best value at which the factor is computed again
_MIN_SIGMA_PER_OFFSET = 1e-4  # σ / largest |b|, at least
_SMALLEST_SIGMA = 1e-150  # whose inverse is finite, and so are sums of its squares
_SOLVES_PER_FACTOR = 50  # after which the factor is computed again, to remove accumulated rounding errors
_MULTIPLICATIONS_PER_CALL = 10_000_000  # of compiled code, some hundredths of a second, so that Ctrl-C is noticed


class ReducedProblem:
    """The Gram matrix G and offsets b of the planes, and their optimal weights v.

    Parameters
    ----------
    has_zero_plane : bool
        Whether the first plane is the zero plane.

    Attributes
    ----------
    n_planes : int
        Number of planes, including the zero plane.
    v : ndarray of shape (n_planes,)
        The weights.
    value : float
        The dual objective at v, a lower bound of the objective of the cutting plane method.
    """

    STATE = (
        "_capacity", "_G", "_b", "_v", "_idle", "_errors", "n_planes", "value", "_support", "_n_support", "_sigma",
        "_n_solved", "_factor", "_workspace",
    )  # fmt: skip

    def __init__(self, *, has_zero_plane=True):
        self._capacity = _INITIAL_CAPACITY
        self._G = np.zeros((_INITIAL_CAPACITY, _INITIAL_CAPACITY))
        self._b, self._v = np.zeros((2, _INITIAL_CAPACITY))
        self._idle = np.zeros(_INITIAL_CAPACITY)  # solves since a plane had weight; −∞ for the zero plane
        self._errors = np.zeros((_INITIAL_CAPACITY, 2))
        self._v[0], self._idle[0] = 1.0, -np.inf if has_zero_plane else 0.0
        self.n_planes = int(has_zero_plane)
        self.value = 0.0
        self._support = np.zeros(_INITIAL_CAPACITY, np.int64)
        self._n_support, self._sigma, self._n_solved = 1, 0.0, 0
        self._set_capacity(_INITIAL_CAPACITY)

    @property
    def v(self):
        """The weights of the planes."""
        return self._v[: self.n_planes]

    def add(self, products, offset, vector_error=0.0, offset_error=0.0):
        """Add a plane, given by its inner products with planes and with itself, its offset b, and bounds on errors.

        The inner products are those with the planes added last; with planes before them, such as the zero plane, they
        are 0. The bounds are those of the rounding errors in |a| and in b.

        Raises
        ------
        FloatingPointError
            If one of the numbers is not finite.
        """
        k = self.n_planes
        if not (np.isfinite(products).all() and math.isfinite(offset)):
            raise FloatingPointError(f"Plane {k} is not finite: its inner products or its offset overflow.")
        if k == self._capacity:
            self._set_capacity(2 * k)
        first = k + 1 - len(products)
        self._G[k, :first] = self._G[:first, k] = 0.0
        self._G[k, first : k + 1] = self._G[first : k + 1, k] = products
        self._b[k], self._v[k], self._idle[k], self._errors[k] = (
            offset,
            float(k == 0),
            0.0,
            (vector_error, offset_error),
        )
        self.n_planes += 1

    def keep(self, kept):
        """Remove all planes but those where the mask is true; it must be true for a zero plane and where v > 0."""
        for position in range(self._n_support - 1, -1, -1):
            if not kept[self._support[position]]:
                self._n_support = _remove_from_support(self._support, self._n_support, self._factor, position)
        kept = np.flatnonzero(kept)
        n_kept = len(kept)
        new_index = np.zeros(self.n_planes, np.int64)
        new_index[kept] = np.arange(n_kept)
        self._support[: self._n_support] = new_index[self._support[: self._n_support]]
        self._G[:n_kept, :n_kept] = self._G[np.ix_(kept, kept)]
        for array in (self._b, self._v, self._idle, self._errors):
            array[:n_kept] = array[kept]
        self.n_planes = n_kept

    def solve(self, accuracy):
        """Optimise the weights until `value` is within `accuracy` of the optimum, or exact in double precision."""
        m = self.n_planes
        sigma = self._best_sigma()
        if (
            not sigma <= _SIGMA_RANGE * self._sigma <= _SIGMA_RANGE**2 * sigma
            or self._n_solved % _SOLVES_PER_FACTOR == 0
        ):
            self._sigma = sigma
            self._n_support = _factorise(self._G, self._support, self._n_support, self._sigma, self._factor, self._v)
        self._n_solved += 1
        steps_per_call, step, best = max(1, _MULTIPLICATIONS_PER_CALL // m**2), 0, -np.inf
        while step >= 0:
            self._n_support, self.value, step, best = _optimise(
                self._G[:m, :m], self._b[:m], self._v[:m], self._support, self._n_support,
                self._sigma, accuracy, self._factor, self._workspace, (step, steps_per_call, best),
            )  # fmt: skip
        return self.value

    def _best_sigma(self):
        """Return the mean of G_kk weighted by v, or an estimate of it: σ should have the size of the entries of G.

        While a zero plane has all the weight, v'Gv after the next step is about the smaller of G_kk and b_k. Weights
        are differences of numbers of the size b/σ: if σ is much smaller than b, they suffer from cancellation.
        """
        mean_square, largest_square, lowest, highest = _sizes(self._G, self._b, self._v, self.n_planes)
        sigma = mean_square or max(min(largest_square, highest), 0.0) or largest_square or 1.0
        return max(sigma, _MIN_SIGMA_PER_OFFSET * max(highest, -lowest), _SMALLEST_SIGMA)

    def count_use(self):
        """Note which planes have weight; return b'v, and the sums of the planes' errors in |a| and in b, by weight."""
        m = self.n_planes
        return _count_use(self._b[:m], self._v[:m], self._idle[:m], self._errors[:m])

    def in_use(self):
        """Return for each plane whether it has had weight lately, or is among the few that have had it last."""
        idle = self._idle[: self.n_planes]
        is_in_use = idle < _MAX_IDLE_SOLVES
        if np.count_nonzero(idle[is_in_use] > 0.0) > _MAX_IDLE_PLANES:
            is_in_use &= idle <= np.sort(idle[idle > 0.0])[_MAX_IDLE_PLANES - 1]
        return is_in_use

    def linear_term(self):
        """Return b'v, the linear part of the dual objective."""
        return float(self._b[: self.n_planes] @ self.v)

    def largest_plane(self):
        """Return max over planes k of <a_k, w> + b_k, at the w of the weights."""
        m = self.n_planes
        return float((self._b[:m] - self._G[:m, :m] @ self.v).max())

    def _set_capacity(self, capacity):
        """Allocate arrays for so many planes, and copy what is known."""
        m = self.n_planes
        for name in ("_G", "_b", "_v", "_support", "_idle", "_errors"):
            old = getattr(self, name)
            new = np.zeros((capacity, *(capacity if n == len(old) else n for n in old.shape[1:])), old.dtype)
            new[tuple(map(slice, old.shape))] = old
            setattr(self, name, new)
        factor = np.zeros((capacity, capacity))
        if m > 1:
            factor[: self._capacity, : self._capacity] = self._factor
        self._factor = factor
        self._workspace = np.zeros((5, capacity))
        self._capacity = capacity


@compiled
def _optimise(G, b, v, support, n_support, sigma, accuracy, L, workspace, progress):
    """Optimise v; return (size of the support, dual value, steps so far, best value); steps are −1 if v is found.

    `progress` is (steps of earlier calls, largest number of steps in this call, best value of earlier calls).
    Kept true: v >= 0, Σ v = 1, v = 0 outside the support, which contains no plane twice.
    """
    m = b.size
    gradient = workspace[0]
    begin, max_steps, best = progress
    value, end = 0.0, min(begin + max_steps, 20 * m + 50)
    for step in range(begin, end):
        n_support = _optimise_support(G, b, v, support, n_support, sigma, L, workspace)
        value = _value_and_gradient(G, b, v, support, n_support, gradient)
        mean = 0.0  # of the gradient by the weights; at the optimum no entry is larger
        for s in range(n_support):
            mean += v[support[s]] * gradient[support[s]]
        k, largest = 0, -np.inf
        for t in range(m):
            if gradient[t] > largest:
                k, largest = t, gradient[t]
        if not largest - mean > max(accuracy, _OPTIMALITY_TOL * (abs(value) + abs(mean))):
            return n_support, value, -1, best
        if v[k] > 0.0 or (not value > best and step > 2 * m):  # rounding errors prevent further progress
            return n_support, value, -1, best
        best = max(best, value)
        n_support = _add_to_support(G, v, support, n_support, sigma, L, workspace, k)
    return n_support, value, end if end < 20 * m + 50 else -1, best


@compiled
def _sizes(G, b, v, m):
    """Return the mean of G_kk weighted by v and the largest one, and the smallest and the largest b, of m planes."""
    mean, largest, lowest, highest = 0.0, -np.inf, np.inf, -np.inf
    for k in range(m):
        mean += v[k] * G[k, k]
        largest, lowest, highest = max(largest, G[k, k]), min(lowest, b[k]), max(highest, b[k])
    return mean, largest, lowest, highest


@compiled
def _count_use(b, v, idle, errors):
    """Set `idle` to 0 where v > 0, else count on; return b'v and the sums of v_k times the two errors of plane k."""
    linear, of_vectors, of_offsets = 0.0, 0.0, 0.0
    for k in range(v.size):
        linear += v[k] * b[k]
        of_vectors += v[k] * errors[k, 0]
        of_offsets += v[k] * errors[k, 1]
        idle[k] = min(idle[k], 0.0) if v[k] > 0.0 else idle[k] + 1.0
    return linear, of_vectors, of_offsets


@compiled(fastmath=SUMS)
def _value_and_gradient(G, b, v, support, n_support, gradient):
    """Set gradient = b − G v; return b'v − ½ v'Gv."""
    m, value = b.size, 0.0
    for t in range(m):
        gradient[t] = b[t]
    for s in range(n_support):
        weight, products = v[support[s]], G[support[s]]
        for t in range(m):
            gradient[t] -= weight * products[t]
    for s in range(n_support):
        value += 0.5 * v[support[s]] * (b[support[s]] + gradient[support[s]])
    return value


@compiled
def _factorise(G, support, n_support, sigma, L, v):
    """Compute the factor of the support; return its size. The weights of dependent planes are added to the first."""
    n, removed_weight = 0, 0.0
    for s in range(n_support):
        k = support[s]
        if _append(G, support, n, sigma, L, k):
            support[n] = k
            n += 1
        else:
            removed_weight += v[k]
            v[k] = 0.0
    if removed_weight > 0.0:
        v[support[0]] += removed_weight
    return n


@compiled(fastmath=SUMS)
def _append(G, support, n, sigma, L, k):
    """Append a row for plane k to the factor of the first n planes of the support; return whether k is independent.

    No row is appended, and k counts as dependent, if it is in the support, the factor is full, or the numbers are not
    finite.
    """
    if n >= L.shape[0]:
        return False
    for s in range(n):
        if support[s] == k:
            return False
    row = L[n]
    rest = G[k, k] + sigma
    for s in range(n):
        total = G[k, support[s]] + sigma
        for t in range(s):
            total -= L[s, t] * row[t]
        row[s] = total / L[s, s]
        rest -= row[s] * row[s]
    if not rest > _DEPENDENCE_TOL * (G[k, k] + sigma):
        return False
    row[n] = np.sqrt(rest)
    return True


@compiled(fastmath=SUMS)
def _forward(L, n, x):
    """Solve L y = x in place."""
    for s in range(n):
        total = x[s]
        for t in range(s):
            total -= L[s, t] * x[t]
        x[s] = total / L[s, s]


@compiled
def _backward(L, n, x):
    """Solve L'y = x in place."""
    for s in range(n - 1, -1, -1):
        x[s] /= L[s, s]
        _subtract(x[s], L[s, :s], x[:s])


@compiled
def _subtract(a, x, y):
    """Subtract a x from y in place."""
    for t in range(y.size):
        y[t] -= a * x[t]


@compiled
def _optimise_support(G, b, v, support, n_support, sigma, L, workspace):
    """Move v to the optimum over the support; if a weight becomes zero on the way, remove its plane and repeat.

    The optimum is (G + σ 11')⁻¹ (b − multiplier 1), with the Lagrange multiplier of the constraint Σ v = 1.
    """
    target, ones = workspace[1], workspace[2]
    for _ in range(n_support + 1):
        total_target, total_ones = 0.0, 0.0
        for s in range(n_support):
            target[s], ones[s] = b[support[s]], 1.0
        _forward(L, n_support, target)
        _backward(L, n_support, target)
        _forward(L, n_support, ones)
        _backward(L, n_support, ones)
        for s in range(n_support):
            total_target += target[s]
            total_ones += ones[s]
        if not total_ones > 0.0:  # the support is empty, or the numbers are not finite
            break
        multiplier, step, removed = (total_target - 1.0) / total_ones, 1.0, -1
        for s in range(n_support):
            target[s] -= multiplier * ones[s]
            if target[s] <= 0.0:
                weight = v[support[s]]
                max_step = weight / (weight - target[s]) if weight > target[s] else 0.0
                if max_step < step or removed < 0:
                    step, removed = min(step, max_step), s
        for s in range(n_support):
            v[support[s]] += step * (target[s] - v[support[s]])
        if removed < 0:
            break
        v[support[removed]] = 0.0
        n_support = _remove_from_support(support, n_support, L, removed)
    _normalise(v, support, n_support)
    return n_support


@compiled
def _normalise(v, support, n_support):
    """Set negative weights to zero and divide all by their sum, to correct rounding errors."""
    total = 0.0
    for s in range(n_support):
        v[support[s]] = max(v[support[s]], 0.0)
        total += v[support[s]]
    for s in range(n_support if total > 0.0 else 0):
        v[support[s]] /= total


@compiled
def _add_to_support(G, v, support, n_support, sigma, L, workspace, k):
    """Add plane k to the support; return its new size.

    If the plane is a combination of those in the support, with `coefficients`, weight moves from them to it until the
    weight of one of them is zero. That plane is removed.
    """
    if not _append(G, support, n_support, sigma, L, k):
        coefficients, step, removed = workspace[3], np.inf, -1
        for s in range(n_support):
            coefficients[s] = G[k, support[s]] + sigma
        _forward(L, n_support, coefficients)
        _backward(L, n_support, coefficients)
        for s in range(n_support):
            if coefficients[s] > 0.0 and v[support[s]] < step * coefficients[s]:
                step, removed = v[support[s]] / coefficients[s], s
        if removed < 0:
            return n_support
        for s in range(n_support):
            v[support[s]] = max(v[support[s]] - step * coefficients[s], 0.0)
        v[k] += step
        v[support[removed]] = 0.0
        n_support = _remove_from_support(support, n_support, L, removed)
        if not _append(G, support, n_support, sigma, L, k):
            v[support[0]] += v[k]
            v[k] = 0.0
            return n_support
    support[n_support] = k
    return n_support + 1


@compiled
def _remove_from_support(support, n_support, L, position):
    """Remove a plane from the support and its row from the factor, made triangular again by Givens rotations."""
    for s in range(position, n_support - 1):
        support[s] = support[s + 1]
        for t in range(s + 2):
            L[s, t] = L[s + 1, t]
        a, b = L[s, s], L[s, s + 1]
        length = np.sqrt(a * a + b * b)
        c, d = a / length, b / length
        L[s, s], L[s, s + 1] = length, 0.0
        for r in range(s + 2, n_support):
            left, right = L[r, s], L[r, s + 1]
            L[r, s], L[r, s + 1] = c * left + d * right, c * right - d * left
    return n_support - 1
