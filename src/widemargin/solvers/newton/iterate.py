"""The iterate of `newton`: weights, dual variables and both bounds of a problem, and a Newton step; see `smoothed`."""

import numpy as np
from scipy.linalg.lapack import dposv

from widemargin._runtime.place import HERE
from widemargin.problems.certificates import relative_gap
from widemargin.solvers.newton.conjugate_gradients import truncated_step
from widemargin.solvers.newton.row_state import DualSums, RowState

MAX_COLUMNS = 3000  # of the matrix of a Newton step
FIRST_HALF_WIDTH, _MIN_HALF_WIDTH = 1.0, 1e-14  # of the band, in units of the score, see `DualQP.score_unit`
_MIN_HALF_WIDTH_NEW_COSTS = 0.1  # with which steps continue when the costs have changed
_NARROWING, _WIDENING = 2.0, 16.0  # factors of the half width: when steps have converged; when damping has failed
_REFERENCE_DISTANCE = 0.25  # mean distance of dual variables in the band from their bounds, relative to the interval,
# below which the band is made wider
_STEP_GAP_FRACTION = 0.5  # largest ratio of ½|w − X'b|² to the gap at which the band is made narrower
_SHORT_STEP, _LONG_STEP = 0.2, 0.7  # step lengths below which damping is increased, and above which it is reduced
_MAX_GAP_WORTH_A_PASS = 0.01  # relative, that clipped dual variables would have if they combined to what was predicted;
# it may be negative then
_DAMPING_FACTOR, _MIN_DAMPING, _MAX_DAMPING = 10.0, 1e-3, 1e3  # damping is relative to the mean of the diagonal


def has_matrix(X):
    """Return whether the step of a smooth loss is found by its matrix, and not by conjugate gradients."""
    return X.n_columns <= min(MAX_COLUMNS, X.n_rows)


class Iterate:
    """The current weights and dual variables of one problem, and the best ones so far.

    Parameters
    ----------
    problem : DualQP
    start : ndarray or None
        Weights to start from; None is zero.
    h : float or None
        Half width of the band; None is the first one.
    n_jobs : int or None
    passes : float
        Passes over the rows that were made before.

    Attributes
    ----------
    X : Matrix
    best_w, best_intercept, primal : ndarray, float, float
        The best weights and free intercept so far, and their primal objective.
    dual : float
        The dual objective of the best dual variables so far, which `rows` keep.
    passes : float
        Number of rows read, divided by the number of rows.
    h : float
        Half width of the band.
    iteration : int
        Number of Newton steps.
    has_entropy : bool
        Whether the losses have an entropy.
    goal : float
        The relative gap at which no further step will be taken; see below.
    rows : RowState
        Scores, dual variables and second derivatives of the rows.
    """

    # At the weights _w: gradient _g of the smoothed objective, primal objective _value, and X'b and dual objective
    # _bound of the dual variables b.
    #
    # Losses with an entropy, without a free intercept, have predicted dual variables p = b − q X d that need no pass:
    # X'p = X'b − A d with the matrix A = X'diag(q)X of the step. If some were clipped to their bounds, only their rows
    # are read. The gap of p is far smaller than that of b at the new weights. So the gradient, which takes a pass, is
    # computed only if the gap is larger than the goal (`_is_lazy`).

    def __init__(self, problem, start, h, n_jobs, passes=0.0):
        self.X, self._free, self._squared = problem.X, problem.free_intercept, problem.is_squared
        self._dual_sum, self.has_entropy = problem.dual_sum, problem.entropy > 0.0
        self.rows = self.X.place.create(RowState, problem, n_jobs)
        self._w = np.zeros(self.X.n_columns) if start is None else np.array(start, dtype=np.float64)
        self._is_lazy = self.has_entropy and not self._free and self.X.place is HERE
        self.goal, self._has_gradient = 0.0, False
        self.iteration, self.passes, self._damping = 0, passes, 0.0
        self._largest_h, self._scale = FIRST_HALF_WIDTH * problem.score_unit, problem.objective_scale
        self.h = self._requested_h = self._largest_h if h is None else h
        self._forget_best()
        self._intercept_curvature = 0.0
        self._intercept = self.best_intercept = 0.0  # the free intercept, which is part of the scores
        if self._w.any():
            self.rows.set_scores(self._w, self.h)
            self.passes += 1.0
        self._evaluate()

    STATE = (
        "_w", "h", "_requested_h", "iteration", "passes", "_damping", "primal", "dual", "best_w", "_g", "_value",
        "_bound", "_vector", "_intercept", "best_intercept", "rows",
    )  # fmt: skip

    def evaluate_restored(self):
        """Compute what a checkpoint does not keep."""
        if self._is_lazy:
            _, self._linear = self.rows.evaluate_losses()
            self._has_gradient = False
        else:
            self.rows.evaluate_restored(self.h)

    def change_costs(self, problem, ratio):
        """Continue with a problem that differs only in its costs, which are `ratio` times as large.

        The dual objective of k b is largest at k = 1 + burden, so that b is multiplied by this k, by `ratio` at most.
        Centres of the bands are relative to the costs.
        """
        factor = min(1.0 + self.burden, ratio) / ratio
        distance = factor * self.rows.recentre(self.h)
        self.rows.change_costs(problem, factor)
        self._requested_h = max(self._requested_h, _MIN_HALF_WIDTH_NEW_COSTS)
        self._set_half_width(distance)
        self._damping = 0.0
        self._forget_best()
        self._evaluate()

    def _forget_best(self):
        """Forget the best objectives: no objective is negative if the dual variables sum to zero."""
        self.primal, self.dual, self.best_w = np.inf, -np.inf if self._dual_sum else 0.0, self._w

    def reset_counts(self):
        """Count steps and passes from 0 again."""
        self.iteration, self.passes = 0, 0.0

    @property
    def burden(self):
        """The sum of the losses, without smoothing, divided by |w|²."""
        half_norm = self._half_norm()
        return float(self._value - half_norm) / (2.0 * half_norm) if half_norm > 0.0 else np.inf

    @property
    def _is_smooth(self):
        """Whether the losses have no corners, so that there are no bands."""
        return self._squared or self.has_entropy

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
        return relative_gap(self.primal, self.dual, self._scale)

    def direction(self):
        """Return the Newton step d; the negative gradient if the matrix is not positive definite."""
        if self._is_lazy and not self._has_gradient:
            self._complete()
        if not (has_matrix(self.X) if self.has_entropy else self.X.n_columns <= MAX_COLUMNS):
            return self._truncated_direction()
        H, weighted_sum, self._intercept_curvature, n_read = self.rows.newton_system()
        if self._intercept_curvature > 0.0:
            H -= np.outer(weighted_sum, weighted_sum / self._intercept_curvature)
        self.passes += n_read / max(1, self.X.n_rows)
        diagonal = 1.0 + self._damping * H.trace() / len(H) if self._damping else 1.0
        H.flat[:: len(H) + 1] += diagonal
        _, d, failed = dposv(H.T, -self._g, lower=False, overwrite_a=True)
        if failed:
            d = -self._g
        if self._is_lazy:  # A d = −g − diagonal d, and −g = X'b − w
            self._predicted_vector = self._w + diagonal * d if not failed else self._vector - self._curvature(d)
        return d

    def _curvature(self, d):
        """Return X'diag(q)X d, by two passes over the rows."""
        self.passes += 2.0
        return self.rows.curvature_product(d).vector

    def _truncated_direction(self):
        """Return the Newton step by conjugate gradients."""
        _, weighted_sum, curvature, _ = self.rows.intercept_system()
        self._intercept_curvature = curvature

        def multiply(v):
            vector, weighted = self.rows.curvature_product(v)
            return vector - (weighted / curvature) * weighted_sum if curvature > 0.0 else vector

        take = self.rows.begin_direction() if self._is_lazy else None
        d, image, n_products = truncated_step(multiply, self._g, self._damping, take)
        self._predicted_vector = self._vector - image
        self.passes += 2.0 * n_products - self._is_lazy  # the scores of d are known
        return d

    def move(self, d):
        """Move to the minimum along d, whose scores `rows` have; then adapt damping and half width."""
        if self._is_lazy:
            self._move_lazily(d)
            return
        shift = self.rows.centre_direction(self._intercept_curvature) if self._intercept_curvature > 0.0 else 0.0
        line = self.h, float(d @ d), float(self._w @ d) + self._dual_sum * shift, float(self._g @ d)
        bound, v, k = self._predict_and_search(line)
        if self._free and k < _LONG_STEP:  # the step may be longer if the intercept changes along it
            k = self.rows.line_search_with_intercept(*line)
        self._advance(d, k)
        self._intercept += k * shift
        if self._damping > _MAX_DAMPING:
            self._damping = 0.0
            self._recentre(min(self._largest_h, _WIDENING * self._requested_h))
            return
        self._evaluate()
        if self._free:
            bound, v = self._bound, self._vector
        while not self._is_smooth and self._is_minimised(self._value - bound, self._w - v):
            self._recentre(self._requested_h / _NARROWING)
            bound, v = self._bound, self._vector

    def _advance(self, d, k):
        """Add k d to the weights, and adapt the damping."""
        self._w = self._w + k * d
        self.rows.advance(k)
        self._update_damping(k)
        self.iteration += 1
        self.passes += 1.0

    def _move_lazily(self, d):
        """Move to the minimum along d, and compute the gradient there if another step is needed."""
        linear, n_clipped = self.rows.predict_clipped()
        self._advance(d, self.rows.line_search(self.h, float(d @ d), float(self._w @ d), float(self._g @ d)))
        if self._damping > _MAX_DAMPING:
            self._damping = 0.0
        self._evaluate(lambda: self._take_prediction(linear, n_clipped))

    def _take_prediction(self, linear, n_clipped):
        """Compute the dual objective of the predicted dual variables; keep them if it is larger.

        Rows of which some were clipped are read again, if this may give a small gap.
        """
        v = self._predicted_vector
        bound = linear - 0.5 * float(v @ v)
        if n_clipped:
            if not abs(relative_gap(self.primal, bound, self._scale)) <= _MAX_GAP_WORTH_A_PASS:
                return
            v = v + self.rows.clipped_vector()
            self.passes += n_clipped / self.X.n_rows
            bound = linear - 0.5 * float(v @ v)
        if bound > self.dual:
            self.dual = bound
            self.rows.keep_dual(1.0)

    def _recentre(self, half_width):
        """Take the dual variables as centres of the bands, whose half width is changed."""
        self._requested_h = half_width
        self._set_half_width(self.rows.recentre(self.h))
        self._evaluate()

    def _update_damping(self, k):
        """Increase the damping after a short step, and reduce it after a long one."""
        if k < _SHORT_STEP:
            self._damping = max(_DAMPING_FACTOR * self._damping, _MIN_DAMPING)
        elif k > _LONG_STEP:
            self._damping = self._damping / _DAMPING_FACTOR if self._damping > _MIN_DAMPING else 0.0

    def _is_minimised(self, gap, g):
        """Return whether the gap is mostly due to the smoothing: ½|g|² is the duality gap of the smoothed problem."""
        return self._requested_h > _MIN_HALF_WIDTH * self._largest_h and 0.5 * float(g @ g) < _STEP_GAP_FRACTION * gap

    def _predict_and_search(self, line):
        """Take the dual variables predicted after the step; return their dual objective and X'b, and the step length.

        With a free intercept the current ones are kept, since the sum of the predicted ones is not zero.
        """
        if self._free:
            return self._bound, self._vector, self.rows.line_search(*line)
        sums, k = self.rows.predict_and_search(*line)
        return self._update_dual(sums), self._vector, k

    def _evaluate(self, take_prediction=None):
        """Compute intercept, dual variables, gradient and both objectives at the current scores.

        `take_prediction` is called before the gradient is computed, if that is done lazily.
        """
        if self._is_lazy:
            loss, self._linear = self.rows.evaluate_losses()
            self._take_value(loss)
            if take_prediction is not None:
                take_prediction()
            self._has_gradient = False
            if not self.gap <= self.goal:
                self._complete()
            return
        loss, sums, shift = self.rows.evaluate(self.h)
        self._intercept += shift
        self._g = self._w - sums.vector
        self._take_value(loss)
        self._bound = self._update_dual(sums)

    def _complete(self):
        """Compute the gradient, and the dual objective of the dual variables at the current scores."""
        sums = DualSums(self._linear, 0.0, self.rows.combined(), float(self.X.n_rows))
        self._g, self._has_gradient = self._w - sums.vector, True
        self._bound = self._update_dual(sums)

    def _take_value(self, loss):
        """Set the primal objective at the current weights, and keep them if they are the best ones."""
        self._value = self._half_norm() + loss + self._dual_sum * self._intercept
        if self._value < self.primal:
            self.primal, self.best_w, self.best_intercept = self._value, self._w, self._intercept

    def _update_dual(self, sums):
        """Return the dual objective k linear − k² (quadratic + ½|X'b|²) of k b, largest over k; keep the best k b.

        If the dual variables sum to another number than zero, or have an entropy, k is 1.
        """
        self._vector = sums.vector
        self.passes += sums.n_read / max(1, self.X.n_rows)
        curvature = sums.quadratic + 0.5 * float(sums.vector @ sums.vector)
        k = max(sums.linear / (2.0 * curvature), 0.0) if curvature > 0.0 else 1.0
        k = 1.0 if self._dual_sum or self.has_entropy else (k if self._squared else min(k, 1.0))
        bound = k * sums.linear - k * k * curvature
        if bound > self.dual:
            self.dual = bound
            self.rows.keep_dual(k)
        return bound
