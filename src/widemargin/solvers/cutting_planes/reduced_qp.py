"""The reduced problem of a cutting plane method: the best point under the planes found so far.

    minimise ½|w|² + max over planes k of <a_k, w> + b_k        its dual:   maximise b'v − ½ v'Gv,  G_kl = <a_k, a_l>
                                                                            over v >= 0, Σ v = 1

One of the planes is the zero plane (a, b) = (0, 0), the knowledge that no risk is negative. w = −Σ v_k a_k.

An active set method in the manner of Wolfe (Finding the nearest point in a polytope, 1976), with a linear term. The
weights that are not zero, the support, have a Cholesky factor of G + σ 11' there, which is positive definite as long as
the planes are affinely independent; on Σ v = 1 the term σ is a constant. Each step adds the plane that violates its
condition most, and goes towards the best point of the enlarged support until a weight becomes zero, which then leaves.
A plane that depends on the others takes the place of one of them. A new plane changes a few weights, so that the
solution before is an excellent start, and a step costs the square of the support's size.

The loops stay within their arrays whatever the numbers are: a plane enters the support only if it is not there and the
support has room, and a comparison with NaN always means "dependent" or "stop".

Measured on the problems of real runs (`benchmarks/reduced_qp.py`), milliseconds for one of 100 and of 500 planes: this
0.10 and 0.64, its duality gap at most 6e-9 of its value; daqp (warm) 0.65 and 626; piqp 1.1 and 71; proxsuite (warm)
2.9 and 297, gaps up to 5e-4; quadprog 6.7 and 1700, and wrong by a tenth where G is singular; clarabel 13 and 421.
"""

import numpy as np

from widemargin._runtime.compile import SUMS, compiled

_DEPENDENT = 1e-11  # of G_kk: what is left of a plane beside its projection on the others, if it depends on them
_ROUNDING = 1e-13
_FEW = 16
_SIGMA_RANGE = 10.0  # times smaller or larger than the squares of planes that have weight is all right
_LEAST_SIGMA = 1e-4  # of the largest |b|
_SMALLEST_SIGMA = 1e-150  # whose inverse is finite, and so are sums of its squares
_SOLVED_BY_A_FACTOR = 50  # problems; then it is computed anew, free of accumulated rounding
_CALL_WORK = 10_000_000  # multiplications in one compiled call, some hundredths of a second; then Python hears Ctrl-C


class ReducedProblem:
    """The planes' Gram matrix and the weights of the best point under them.

    Attributes
    ----------
    n_planes : int
        The zero plane included, which is the first.
    v : ndarray of shape (n_planes,)
        The weights.
    value : float
        The dual objective there, a lower bound of the whole problem.
    """

    def __init__(self):
        self._capacity = _FEW
        self._G = np.zeros((_FEW, _FEW))
        self._b = np.zeros(_FEW)
        self._v = np.zeros(_FEW)
        self._v[0] = 1.0
        self.n_planes = 1
        self.value = 0.0
        self._support = np.zeros(_FEW, np.int64)
        self._n_support, self._sigma, self._solved = 1, 0.0, 0
        self._make_room(_FEW)

    @property
    def v(self):
        """The weights of the planes."""
        return self._v[: self.n_planes]

    def add(self, products, offset):
        """Add a plane: its inner products with all planes so far and with itself, and its offset b.

        Raises
        ------
        FloatingPointError
            If one of the numbers is not finite.
        """
        k = self.n_planes
        if not (np.isfinite(products).all() and np.isfinite(offset)):
            raise FloatingPointError(f"Plane {k} is not finite: its inner products or its offset overflow.")
        if k == self._capacity:
            self._make_room(2 * k)
        self._G[k, : k + 1] = self._G[: k + 1, k] = products
        self._b[k], self._v[k] = offset, 0.0
        self.n_planes += 1

    def keep(self, kept):
        """Go on with some of the planes (a mask); those left out must have no weight, and the zero plane stays."""
        for place in range(self._n_support - 1, -1, -1):
            if not kept[self._support[place]]:
                self._n_support = _leave(self._support, self._n_support, self._factor, place)
        kept = np.flatnonzero(kept)
        n_kept = len(kept)
        place = np.zeros(self.n_planes, np.int64)
        place[kept] = np.arange(n_kept)
        self._support[: self._n_support] = place[self._support[: self._n_support]]
        self._G[:n_kept, :n_kept] = self._G[np.ix_(kept, kept)]
        self._b[:n_kept], self._v[:n_kept] = self._b[kept], self._v[kept]
        self.n_planes = n_kept

    def solve(self, accuracy):
        """Improve the weights until `value` is within `accuracy` of the best, or as exact as double precision gets."""
        m = self.n_planes
        scale = self._scale()
        if (
            not scale <= _SIGMA_RANGE * self._sigma <= _SIGMA_RANGE**2 * scale
            or self._solved % _SOLVED_BY_A_FACTOR == 0
        ):
            self._sigma = scale
            self._n_support = _factorise(self._G, self._support, self._n_support, self._sigma, self._factor, self._v)
        self._solved += 1
        most, turn, best = max(1, _CALL_WORK // m**2), 0, -np.inf
        while turn >= 0:
            self._n_support, self.value, turn, best = _optimise(
                self._G[:m, :m], self._b[:m], self._v[:m], self._support, self._n_support,
                self._sigma, accuracy, self._factor, self._vectors, (turn, most, best),
            )  # fmt: skip
        return self.value

    def _scale(self):
        """Return what σ should be: the mean square of the planes by their weights, or an estimate of it.

        While the zero plane has all the weight, v'Gv after the next step is about the smaller of G_kk and b_k. Weights
        are differences of numbers of the size b/σ: far below b, σ would leave them without digits.
        """
        m = self.n_planes
        squares = self._G.diagonal()[:m]
        likely = min(float(squares.max()), float(self._b[:m].max()))
        scale = float(squares @ self.v) or max(likely, 0.0) or float(squares.max()) or 1.0
        return max(scale, _LEAST_SIGMA * float(np.abs(self._b[:m]).max()), _SMALLEST_SIGMA)

    def linear(self):
        """Return b'v, the linear part of the dual objective."""
        return float(self._b[: self.n_planes] @ self.v)

    def height(self):
        """Return the largest of the planes at the point of the weights."""
        m = self.n_planes
        return float((self._b[:m] - self._G[:m, :m] @ self.v).max())

    def _make_room(self, capacity):
        m = self.n_planes
        for name in ("_G", "_b", "_v", "_support"):
            old = getattr(self, name)
            new = np.zeros((capacity,) * old.ndim, old.dtype)
            new[(slice(0, min(m, len(old))),) * old.ndim] = old[(slice(0, min(m, len(old))),) * old.ndim]
            setattr(self, name, new)
        factor = np.zeros((capacity, capacity))
        if m > 1:
            factor[: self._capacity, : self._capacity] = self._factor
        self._factor = factor
        self._vectors = np.zeros((5, capacity))
        self._capacity = capacity


@compiled
def _optimise(G, b, v, support, n_support, sigma, accuracy, L, vectors, progress):
    """Find v; return (size of the support, dual value, turns so far, best value); turns are −1 once v is found.

    `progress` are the turns taken and the best value of earlier calls, and the most turns of this one between them.
    Kept true: v >= 0, Σ v = 1, v = 0 off the support, which holds no plane twice.
    """
    m = b.size
    slope = vectors[0]
    begin, most, best = progress
    value, end = 0.0, min(begin + most, 20 * m + 50)
    for turn in range(begin, end):
        n_support = _settle(G, b, v, support, n_support, sigma, L, vectors)
        value = _slopes(G, b, v, support, n_support, slope)
        level = 0.0
        for s in range(n_support):
            level += v[support[s]] * slope[support[s]]
        k, largest = 0, -np.inf
        for t in range(m):
            if slope[t] > largest:
                k, largest = t, slope[t]
        if not largest - level > max(accuracy, _ROUNDING * (abs(value) + abs(level))):
            return n_support, value, -1, best
        if v[k] > 0.0 or (not value > best and turn > 2 * m):  # rounding: the factor is worn out, or nothing is gained
            return n_support, value, -1, best
        best = max(best, value)
        n_support = _enter(G, v, support, n_support, sigma, L, vectors, k)
    return n_support, value, end if end < 20 * m + 50 else -1, best


@compiled(fastmath=SUMS)
def _slopes(G, b, v, support, n_support, slope):
    """Set slope = b − G v; return b'v − ½ v'Gv."""
    m, value = b.size, 0.0
    for t in range(m):
        slope[t] = b[t]
    for s in range(n_support):
        weight, line = v[support[s]], G[support[s]]
        for t in range(m):
            slope[t] -= weight * line[t]
    for s in range(n_support):
        value += 0.5 * v[support[s]] * (b[support[s]] + slope[support[s]])
    return value


@compiled
def _factorise(G, support, n_support, sigma, L, v):
    """Compute the factor of the support's planes; those that depend on others hand their weight over to the first."""
    n, lost = 0, 0.0
    for s in range(n_support):
        k = support[s]
        if _append(G, support, n, sigma, L, k):
            support[n] = k
            n += 1
        else:
            lost += v[k]
            v[k] = 0.0
    if lost > 0.0:
        v[support[0]] += lost
    return n


@compiled(fastmath=SUMS)
def _append(G, support, n, sigma, L, k):
    """Append the row of plane k to the factor of the first n of the support; return whether k is independent.

    There is no row, and k counts as dependent, if it is there already, the factor is full, or numbers are not finite.
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
    if not rest > _DEPENDENT * (G[k, k] + sigma):
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
        for t in range(s):
            x[t] -= L[s, t] * x[s]


@compiled
def _settle(G, b, v, support, n_support, sigma, L, vectors):
    """Go to the best point of the support; whenever a weight becomes zero on the way, its plane leaves."""
    target, ones = vectors[1], vectors[2]
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
        if not total_ones > 0.0:  # the support is empty, or nothing here is finite
            break
        level, step, leaving = (total_target - 1.0) / total_ones, 1.0, -1
        for s in range(n_support):
            target[s] -= level * ones[s]
            if target[s] <= 0.0:
                here = v[support[s]]
                reach = here / (here - target[s]) if here > target[s] else 0.0
                if reach < step or leaving < 0:
                    step, leaving = min(step, reach), s
        for s in range(n_support):
            v[support[s]] += step * (target[s] - v[support[s]])
        if leaving < 0:
            break
        v[support[leaving]] = 0.0
        n_support = _leave(support, n_support, L, leaving)
    _normalise(v, support, n_support)
    return n_support


@compiled
def _normalise(v, support, n_support):
    """Make the weights sum to one in spite of rounding."""
    total = 0.0
    for s in range(n_support):
        v[support[s]] = max(v[support[s]], 0.0)
        total += v[support[s]]
    for s in range(n_support if total > 0.0 else 0):
        v[support[s]] /= total


@compiled
def _enter(G, v, support, n_support, sigma, L, vectors, k):
    """Add plane k to the support; if it depends on the planes there, it takes weight and place of one of them."""
    if not _append(G, support, n_support, sigma, L, k):
        share, step, leaving = vectors[3], np.inf, -1
        for s in range(n_support):
            share[s] = G[k, support[s]] + sigma
        _forward(L, n_support, share)
        _backward(L, n_support, share)
        for s in range(n_support):
            if share[s] > 0.0 and v[support[s]] < step * share[s]:
                step, leaving = v[support[s]] / share[s], s
        if leaving < 0:
            return n_support
        for s in range(n_support):
            v[support[s]] = max(v[support[s]] - step * share[s], 0.0)
        v[k] += step
        v[support[leaving]] = 0.0
        n_support = _leave(support, n_support, L, leaving)
        if not _append(G, support, n_support, sigma, L, k):
            v[support[0]] += v[k]
            v[k] = 0.0
            return n_support
    support[n_support] = k
    return n_support + 1


@compiled
def _leave(support, n_support, L, place):
    """Remove one plane from the support and its row from the factor, which rotations make triangular again."""
    for s in range(place, n_support - 1):
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
