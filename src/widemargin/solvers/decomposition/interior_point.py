"""An interior-point method for the changes of all dual variables, by a low-rank factor of the kernel matrix.

The problem is that of `newton_on_free`, with V of few columns and V_t the row of V that belongs to dual variable t:

    minimise ½|Σ_t x_t V_t|² + F'x   over   low <= x <= high,   E'x = 0

Newton steps on the free dual variables take the longer, the more bounds are wrong at first. Here x stays between its
bounds, and the number of iterations is about the same for all problems. With a = x − low, b = high − x, and z and v the
multipliers of the bounds, an iteration solves the linearised conditions

    V V'x + F − E r − z + v = 0,   E'x = 0,   a_t z_t = mu,   b_t v_t = mu

by a Cholesky factor of I + Σ_t V_t V_t' / D_t, D = z/a + v/b, twice with the same factor: for mu = 0, which predicts
how much mu may decrease, and for this mu, with the product of the predicted changes as a correction (Mehrotra, 1992).
"""

import numpy as np
from scipy.linalg.blas import dsyrk
from scipy.linalg.lapack import dpotrf, dpotrs

_MAX_ITERATIONS = 60
_FRACTION_TO_BOUND = 0.995  # of the largest step within the bounds
_MU_PER_GOAL = 1e-3  # mu at which to stop, relative to the goal and the mean distance of the bounds
_RESIDUAL_PER_GOAL = 0.1


def interior_point(V, row, F, bounds, E, *, goal, is_over):
    """Return changes x near the minimum, none of them at a bound; their group sums are nearly zero.

    Parameters
    ----------
    V : ndarray of shape (n_rows, k)
    row : ndarray of int
        The row of V that belongs to each dual variable.
    F : ndarray
        The gradient.
    bounds : tuple of two ndarray
        The smallest and the largest change of each dual variable. Where they are equal, x is this value.
    E : ndarray of shape (n_variables, n_groups)
        The groups: E_tg = 1 if t belongs to group g, else 0.
    goal : float
        Violation up to which the conditions are to be satisfied.
    is_over : function
        Called before each iteration; returns whether to stop with what was found so far.
    """
    low, high = bounds
    x, moving = np.zeros(len(F)), np.flatnonzero(high > low)
    if len(moving):
        E = E[moving]
        point = _Point(V, row[moving], F[moving], (low[moving], high[moving]), E[:, E.any(axis=0)])
        for _ in range(_MAX_ITERATIONS):
            if point.is_within(goal) or is_over() or not point.step():
                break
        x[moving] = point.x
    return x


class _Point:
    """The point of the method, as in the module's formulas; it begins in the middle between the bounds."""

    def __init__(self, V, row, F, bounds, E):
        self._V, self._row, self._F, self._E = V, row, F, E
        low, high = bounds
        self.x, self._r = 0.5 * (low + high), np.zeros(E.shape[1])
        self._a, self._b = self.x - low, high - self.x
        self._range = float(np.mean(high - low))
        size = max(float(np.mean(np.abs(F))), np.finfo(np.float64).tiny)
        self._z, self._v = np.full((2, len(F)), size)
        self._set_residuals()

    def _row_sums(self, values):
        return np.bincount(self._row, values, minlength=len(self._V))

    def _product(self, x):
        """Return V V'x."""
        return (self._V @ (self._row_sums(x) @ self._V))[self._row]

    def _set_residuals(self):
        """Compute mu, and minus the left-hand sides of the conditions on the gradient and on the group sums."""
        self._of_gradient = self._E @ self._r + self._z - self._v - self._F - self._product(self.x)
        self._of_sums = -(self.x @ self._E)
        self._mu = float(self._z @ self._a + self._v @ self._b) / (2.0 * len(self.x))

    def is_within(self, goal):
        """Return whether mu and the residuals are small for a violation of `goal`."""
        small = self._mu <= _MU_PER_GOAL * goal * self._range
        return small and np.abs(self._of_gradient).max() <= _RESIDUAL_PER_GOAL * goal

    def step(self):
        """Take a step; return whether that was possible."""
        if not self._factorise():
            return False
        z, v, a, b = self._z, self._v, self._a, self._b
        x, _, z_change, v_change = self._direction(-z * a, -v * b)
        k = self._largest_step(x, z_change, v_change)
        mu = float((z + k * z_change) @ (a + k * x) + (v + k * v_change) @ (b - k * x)) / (2.0 * len(x))
        target = self._mu * (mu / self._mu) ** 3
        x, r, z_change, v_change = self._direction(target - z * a - x * z_change, target - v * b + x * v_change)
        k = _FRACTION_TO_BOUND * self._largest_step(x, z_change, v_change)
        if not (k > 0.0 and np.isfinite(x).all()):
            return False
        self.x, self._r, self._z, self._v = self.x + k * x, self._r + k * r, z + k * z_change, v + k * v_change
        self._a, self._b = a + k * x, b - k * x
        self._set_residuals()
        return True

    def _factorise(self):
        """Compute the Cholesky factor, and what groups need of it; return whether that was possible."""
        self._D = self._z / self._a + self._v / self._b
        scaled = np.sqrt(self._row_sums(1.0 / self._D))[:, np.newaxis] * self._V
        H = dsyrk(1.0, scaled.T, lower=1)
        H.flat[:: len(H) + 1] += 1.0
        self._factor, failed = dpotrf(H, lower=1, overwrite_a=1)
        if failed:
            return False
        self._inverse_E = np.column_stack([self._inverse(column) for column in self._E.T])
        return bool(np.isfinite(self._inverse_E).all())

    def _inverse(self, right):
        """Return the solution x of V V'x + D x = right."""
        x = right / self._D
        solved, _ = dpotrs(self._factor, self._row_sums(x) @ self._V, lower=1)
        return x - (self._V @ solved)[self._row] / self._D

    def _solve(self, right, sums):
        """Return x and r with V V'x + D x − E r = right and E'x = sums."""
        x = self._inverse(right)
        r = np.linalg.solve(self._E.T @ self._inverse_E, sums - x @ self._E)
        return x + self._inverse_E @ r, r

    def _direction(self, of_z, of_v):
        """Return the changes of x, r, z and v that remove the residuals, with those of a z and b v given; refined."""
        right = self._of_gradient + of_z / self._a - of_v / self._b
        x, r = self._solve(right, self._of_sums)
        residual = right - self._product(x) - self._D * x + self._E @ r
        x_more, r_more = self._solve(residual, self._of_sums - x @ self._E)
        x, r = x + x_more, r + r_more
        return x, r, (of_z - self._z * x) / self._a, (of_v + self._v * x) / self._b

    def _largest_step(self, x, z_change, v_change):
        """Return the largest step, at most 1, after which a, b, z and v are not negative."""
        ratios = [1.0]
        for value, change in ((self._a, x), (self._b, -x), (self._z, z_change), (self._v, v_change)):
            falls = change < 0.0
            ratios.append(float(np.min(value[falls] / -change[falls], initial=1.0)))
        return min(ratios)
