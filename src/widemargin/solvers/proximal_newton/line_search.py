"""Exact line search on the objective of an `ElasticNet` along a direction: the zero of an increasing slope."""

import numpy as np

_SUFFICIENT_SLOPE = 0.1  # relative to the slope at the beginning, at which the search ends
_MAX_EVALUATIONS = 30
_ROUNDING = 1e-15  # relative to the objective, up to which an increase is taken for rounding


class Line:
    """The objective at θ + t d for 0 <= t <= 1.

    `point` and `direction` are the weights that move and how far. `penalties` are two arrays, the factors of |θ_j| and
    ½ θ_j². `losses_at(t)` returns the sum of the losses and its derivative by t.
    """

    def __init__(self, point, direction, penalties, losses_at):
        self._point, self._direction, (self._l1, self._l2) = point, direction, penalties
        self._losses_at = losses_at
        self._found = {}  # what `at` has returned, by step

    def at(self, step):
        """Return the objective, but for what does not move, and its derivative.

        At 0 it is that on the right, elsewhere that on the left, so that weights may become zero.
        """
        if step not in self._found:
            self._found[step] = self._at(step)
        return self._found[step]

    def _at(self, step):
        loss, slope = self._losses_at(step)
        theta, d = self._point + step * self._direction, self._direction
        side = np.where(theta == 0.0, np.sign(self._point if step > 0.0 else d), np.sign(theta))
        value = float(self._l1 @ np.abs(theta)) + 0.5 * float(self._l2 @ (theta * theta))
        return loss + value, slope + float((self._l1 * side + self._l2 * theta) @ d)

    def best_step(self):
        """Return a step with a slope that is small against that at 0, or 0 if the objective does not decrease.

        The step 1 is taken if the slope is small or still negative there; the objective is convex, so that it is then
        smaller than at 0. Otherwise the zero of the slope is found by the Illinois method.
        """
        first, slope = self.at(0.0)
        if not slope < 0.0:
            return 0.0
        small, low, low_slope = -_SUFFICIENT_SLOPE * slope, 0.0, slope
        value, high_slope = self.at(1.0)
        step, high, limit = 1.0, 1.0, first + _ROUNDING * abs(first)
        if high_slope <= small and value <= limit:
            return 1.0
        for _ in range(_MAX_EVALUATIONS):
            step = low + (high - low) * low_slope / (low_slope - high_slope)
            value, slope = self.at(step)
            if abs(slope) <= small and value <= limit:
                return step
            if slope < 0.0:
                low, low_slope, high_slope = step, slope, 0.5 * high_slope
            else:
                high, high_slope, low_slope = step, slope, 0.5 * low_slope
        return low
