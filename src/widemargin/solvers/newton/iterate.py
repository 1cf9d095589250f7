"""The iterate of `newton`: weights, dual variables and both bounds of a problem, and a Newton step; see `smoothed`."""

from functools import partial

import numpy as np
from scipy.linalg.lapack import dposv

from widemargin.problems.certificates import relative_gap
from widemargin.problems.smoothed_risk import SmoothedRisk
from widemargin.solvers.combination import Combination

FIRST_HALF_WIDTH, _MIN_HALF_WIDTH = 1.0, 1e-14  # of the band, in units of the score
_MIN_HALF_WIDTH_NEW_COSTS = 0.1  # with which steps continue when the costs have changed
_NARROWING, _WIDENING = 2.0, 16.0  # factors of the half width: when steps have converged; when damping has failed
_REFERENCE_DISTANCE = 0.25  # mean distance of dual variables in the band from their bounds, relative to the interval,
# below which the band is made wider
_STEP_GAP_FRACTION = 0.5  # largest ratio of ½|w − X'b|² to the gap at which the band is made narrower
_SHORT_STEP, _LONG_STEP = 0.2, 0.7  # step lengths below which damping is increased, and above which it is reduced
_DAMPING_FACTOR, _MIN_DAMPING, _MAX_DAMPING = 10.0, 1e-3, 1e3  # damping is relative to the mean of the diagonal


class Iterate:
    """The current weights and dual variables of one problem, and the best ones so far.

    Parameters
    ----------
    problem : DualQP
    start : ndarray or None
        Weights to start from; None is zero.
    h : float
        Half width of the band.
    n_jobs : int or None
    passes : float
        Passes over the rows that were made before.

    Attributes
    ----------
    X : Matrix
    best_w, best_intercept, primal : ndarray, float, float
        The best weights and free intercept so far, and their primal objective.
    best_b, dual : ndarray, float
        The best dual variables so far, and their dual objective.
    h : float
        Half width of the band.
    iteration : int
        Number of Newton steps.
    scores_buffer : ndarray of shape (n_rows,)
        Memory for the scores of a direction.
    """

    # At the weights _w: scores _s, dual variables _b, second derivatives _q, gradient _g of the smoothed objective,
    # primal objective _value, and dual objective _bound.

    def __init__(self, problem, start, h, n_jobs, passes=0.0):
        self._free = problem.free_intercept
        self.X, self._n_jobs = problem.X, n_jobs
        self._risk, self._combination = SmoothedRisk(problem, n_jobs), Combination(self.X, n_jobs)
        self._s, self._b, self._q, self.best_b, self.scores_buffer = np.zeros((5, self.X.n_rows))
        self._w = np.zeros(self.X.n_columns) if start is None else np.array(start, dtype=np.float64)
        self.h, self._requested_h, self.iteration, self._passes, self._damping = h, h, 0, passes, 0.0
        self.primal, self.dual, self.best_w = np.inf, 0.0, self._w
        self._intercept = self.best_intercept = 0.0  # the free intercept, which is part of the scores _s
        if self._w.any():
            self.X.scores(self._w, n_jobs, out=self._s, likely=partial(self._risk.support_rows, self._s, self.h))
            self._passes += 1.0
        self._evaluate()

    STATE = (
        "_s", "_w", "h", "_requested_h", "iteration", "_passes", "_damping", "primal", "dual", "best_w", "best_b",
        "_g", "_value", "_bound", "_risk", "_combination", "_intercept", "best_intercept",
    )  # fmt: skip

    def evaluate_restored(self):
        """Compute what a checkpoint does not keep: the second derivatives at the scores."""
        self._risk.evaluate(self._s, self.h, self._b, self._q)

    def change_costs(self, problem, ratio):
        """Continue with a problem that differs only in its costs, which are `ratio` times as large.

        The dual objective of k b is largest at k = 1 + burden, so that b is multiplied by this k, by `ratio` at most.
        Centres of the bands are relative to the costs.
        """
        factor = min(1.0 + self.burden, ratio) / ratio
        distance = factor * self._risk.recentre(self._s, self.h)
        self._risk.change_costs(problem, factor)
        self._requested_h = max(self._requested_h, _MIN_HALF_WIDTH_NEW_COSTS)
        self._set_half_width(distance)
        self._damping = 0.0
        self.primal, self.dual, self.best_w = np.inf, 0.0, self._w
        self.best_b[:] = 0.0
        self._evaluate()

    def reset_counts(self):
        """Count steps and passes from 0 again."""
        self.iteration, self._passes = 0, -self._combination.passes

    @property
    def burden(self):
        """The sum of the losses, without smoothing, divided by |w|²."""
        half_norm = self._half_norm()
        return float(self._value - half_norm) / (2.0 * half_norm) if half_norm > 0.0 else np.inf

    def _half_norm(self):
        return 0.5 * float(self._w @ self._w)

    def _set_half_width(self, distance):
        """Set h to the requested value, or wider if dual variables in the band are close to their bounds.

        `distance` is their mean distance from the nearest bound, relative to the interval between the bounds.
        """
        self.h = self._requested_h * max(1.0, _REFERENCE_DISTANCE / distance)

    @property
    def gap(self):
        """The relative duality gap."""
        return relative_gap(self.primal, self.dual)

    @property
    def passes(self):
        """Number of rows read, divided by the number of rows."""
        return self._passes + self._combination.passes

    def changing_rows(self, t, start, stop):
        """Return the rows from start to stop, counted from start, whose dual variable may change by scores t."""
        return self._risk.changing_rows(self._s, t, self.h, start, stop)

    def direction(self):
        """Return the Newton step d; the negative gradient if the matrix is not positive definite."""
        H, intercept_curvature = self.X.gram(self._q, self._n_jobs), self._intercept_curvature()
        if intercept_curvature > 0.0:
            weighted_sum = self.X.combine(self._q, self._n_jobs)
            H -= np.outer(weighted_sum, weighted_sum / intercept_curvature)
        self._passes += np.count_nonzero(self._q) / max(1, self.X.n_rows)
        H.flat[:: len(H) + 1] += 1.0 + self._damping * H.trace() / len(H)
        _, d, failed = dposv(H.T, -self._g, lower=False, overwrite_a=True)
        return -self._g if failed else d

    def _intercept_curvature(self):
        """Return the second derivative of the smoothed losses by a free intercept; 0 if there is none."""
        return float(self._q.sum()) if self._free else 0.0

    def move(self, d, t):
        """Move to the minimum along d, whose scores are t; then adapt damping and half width."""
        intercept_curvature, shift = self._intercept_curvature(), 0.0
        if intercept_curvature > 0.0:
            shift = -float(self._q @ t) / intercept_curvature
            t += shift
        bound, v = self._predict(t)
        line = self._s, t, self.h, float(d @ d), float(self._w @ d), float(self._g @ d)
        k = self._risk.line_search(*line)
        if self._free and k < _LONG_STEP:  # the step may be longer if the intercept changes along it
            k = self._risk.line_search_with_intercept(*line)
        self._w = self._w + k * d
        self._s += k * t
        self._intercept += k * shift
        self._update_damping(k)
        self.iteration += 1
        self._passes += 1.0
        if self._damping > _MAX_DAMPING:
            self._damping = 0.0
            self._recentre(min(FIRST_HALF_WIDTH, _WIDENING * self._requested_h))
            return
        self._evaluate()
        if self._free:
            bound, v = self._bound, self._combination.vector
        while not self._risk.squared and self._is_minimised(self._value - bound, self._w - v):
            self._recentre(self._requested_h / _NARROWING)
            bound, v = self._bound, self._combination.vector

    def _recentre(self, half_width):
        """Take the dual variables as centres of the bands, whose half width is changed."""
        self._requested_h = half_width
        self._set_half_width(self._risk.recentre(self._s, self.h))
        self._evaluate()

    def _update_damping(self, k):
        """Increase the damping after a short step, and reduce it after a long one."""
        if k < _SHORT_STEP:
            self._damping = max(_DAMPING_FACTOR * self._damping, _MIN_DAMPING)
        elif k > _LONG_STEP:
            self._damping = self._damping / _DAMPING_FACTOR if self._damping > _MIN_DAMPING else 0.0

    def _is_minimised(self, gap, g):
        """Return whether the gap is mostly due to the smoothing: ½|g|² is the duality gap of the smoothed problem."""
        return self._requested_h > _MIN_HALF_WIDTH and 0.5 * float(g @ g) < _STEP_GAP_FRACTION * gap

    def _predict(self, t):
        """Take the dual variables predicted after a step with scores t; return their dual objective and X'b.

        With a free intercept the current ones are kept, since the sum of the predicted ones is not zero.
        """
        if self._free:
            return self._bound, self._combination.vector
        sums = self._risk.predict_dual(self._combination.c, self._q, t, self._b)
        self._combination.update(self._b, self._s)
        return self._update_dual(*sums), self._combination.vector

    def _evaluate(self):
        """Compute intercept, dual variables, gradient and both objectives at the current scores."""
        if self._free:
            shift = self._risk.best_intercept(self._s, self.h)
            self._s += shift
            self._intercept += shift
        found = self._risk.evaluate(self._s, self.h, self._b, self._q)
        sums = found.linear, found.quadratic
        if self._free:  # makes Σ b = 0 exactly, by the dual variable that is farthest from its bounds
            self._b[np.argmax(self._risk.distance_to_bounds(self._b))] -= self._b.sum()
            sums = self._risk.dual_sums(self._b)
        self._combination.update(self._b, self._s)
        self._g = self._w - self._combination.vector
        self._value = self._half_norm() + found.loss
        if self._value < self.primal:
            self.primal, self.best_w, self.best_intercept = self._value, self._w, self._intercept
        self._bound = self._update_dual(*sums)

    def _update_dual(self, linear, quadratic):
        """Return the dual objective k linear − k² (quadratic + ½|X'b|²) of k b, largest over k; keep the best k b."""
        v = self._combination.vector
        curvature = quadratic + 0.5 * float(v @ v)
        k = max(linear / (2.0 * curvature), 0.0) if curvature > 0.0 else 1.0
        k = k if self._risk.squared else min(k, 1.0)
        bound = k * linear - k * k * curvature
        if bound > self.dual:
            self.dual = bound
            np.multiply(self._combination.c, k, out=self.best_b)
        return bound
