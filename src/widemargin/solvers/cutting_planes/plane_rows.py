"""`PlaneRows`: the part of a cutting-plane method that has a number for each row.

It holds the scores of the best point w_b and of w_t, and the coefficients c of the last plane. The method itself holds
weights and planes, which belong to columns, and asks for sums over rows. It never sees a vector over rows, so that
these may be somewhere else, as those of `RowState` may.
"""

from typing import NamedTuple

import numpy as np

from widemargin.problems.formulations import RiskProblem
from widemargin.problems.row_risk import FreeInterceptRisk, RowRisk, Step, axpby, norms_of, product_of_sizes
from widemargin.solvers.combination import Combination


class PlaneSums(NamedTuple):
    """A cutting plane of the risk R at scores s, as sums over rows: <c, s' − s> + risk is at most R(s') for all s'.

    `inner` is <c, s>, `vector` is X'c, `magnitude` is Σ |c_i| |s_i|, `size` is Σ |c_i| |x_i| over all terms that
    `vector` was summed from, and `n_read` is the number of rows read for it.
    """

    risk: float
    inner: float
    vector: np.ndarray
    magnitude: float
    size: float
    n_read: float


class PointSums(NamedTuple):
    """The risk at a point, and Σ |c_i|, Σ |c_i| |x_i| and Σ |c_i| |s_i| of its subgradient c."""

    risk: float
    slope: float
    size: float
    magnitude: float


class PlaneRows:
    """Scores and coefficients of the rows of a RiskProblem, or of a DualQP whose losses are made of hinges.

    Parameters
    ----------
    problem : RiskProblem or DualQP
    n_jobs : int or None
    norms : ndarray of shape (n_rows,), or None
        |x_i|² if they are known already.
    """

    STATE = ("_best", "_combination", "_risk")

    def __init__(self, problem, n_jobs, norms=None):
        self._X, self._n_jobs, self._risk = problem.X, n_jobs, _risk_of(problem, n_jobs)
        self._lengths = norms_of(self._X.squared_norms(n_jobs) if norms is None else norms)
        self._memory = np.zeros(self._X.n_rows)  # of the scores of w_t, of the direction to it, and of a plane
        self._best = self._target = self._before = self._memory
        self._step, self._subgradient, self._points = None, None, {}
        self.forget_planes()

    def forget_planes(self):
        """Set the coefficients of the last plane to zero, without rounding errors of earlier ones."""
        self._combination = Combination(self._X, self._n_jobs, self._lengths)

    def scale(self):
        """Return the factor by which the risk multiplies a mean loss."""
        return self._risk.scale

    def begin(self, w):
        """Take w as the best point; return the PlaneSums there."""
        if not w.any():
            return self._begin_at_zero()
        self._best = self._X.scores(w, self._n_jobs)
        return self._plane(self._best, *self._risk.subgradient(self._best))

    def _begin_at_zero(self):
        """Do what `begin` does for w = 0, where a risk may have a plane of its own."""
        self._best, plane_at_zero = np.zeros(self._X.n_rows), getattr(self._risk, "plane_at_zero", None)
        if plane_at_zero is None:
            return self._plane(self._best, *self._risk.subgradient(self._best))
        risk, c, vector, growth, n_read = plane_at_zero(lambda c: self._X.combine(c, self._n_jobs))
        self._combination.begin(c, vector, growth)
        return PlaneSums(risk, 0.0, vector, self._largest_term, self._combination.size, n_read)

    def aim(self, w, scores=None):
        """Set the scores of w_t, by a pass over the rows if they are not known; return whether they are finite."""
        self._before, self._step = None, None if self._step is None else self._step._replace(cut=None)
        self._target = self._X.scores(w, self._n_jobs, out=self._memory) if scores is None else scores
        return bool(np.isfinite(self._target).all())

    def risk_at_target(self):
        """Return the risk at w_t, and keep its subgradient for `plane_at_target`."""
        self._subgradient = self._risk.subgradient(self._target)
        return self._subgradient[0]

    def plane_at_target(self):
        """Return the PlaneSums at w_t."""
        return self._plane(self._target, *self._subgradient)

    def step(self, curvature, slope):
        """Search the best k on the line w_b + k (w_t − w_b); return k, the risk there, and whether k is exact.

        The objective on the line is ½ curvature k² + slope k plus the risk.
        """
        self._before = self._best
        t = axpby(1.0, self._target, -1.0, self._best, self._target, self._n_jobs)
        self._step = self._risk.step(self._best, t, curvature, slope)
        return self._step.k, self._step.risk, self._step.cut is None

    # A search over several parts of the rows: `direct`, then what the search needs, then `take_step` or `take_point`.

    def direct(self):
        """Set t, the scores of the direction from w_b to w_t, in place of those of w_t."""
        is_known = self._step is not None and self._step.scores is self._best
        self._before = self._best
        self._points = {0.0: (self._step.scores, self._step.risk, self._step.c)} if is_known else {}
        axpby(1.0, self._target, -1.0, self._best, self._target, self._n_jobs)

    def sampled_kinks(self, stride):
        """Return `RowRisk.sampled_kinks` on the line, beyond k = 0."""
        return self._risk.sampled_kinks(self._before, self._target, 0.0, stride)

    def kinks_in(self, low, high):
        """Return `RowRisk.kinks_in` on the line, as arrays of their own."""
        slope, *kinks = self._risk.kinks_in(self._before, self._target, low, high)
        return slope, *(part.copy() for part in kinks)

    def derivatives(self, k):
        """Return `RowRisk.derivatives` on the line."""
        return self._risk.derivatives(self._before, self._target, k)

    def take_step(self, k):
        """Take k as the result of the search; return the risk there."""
        scores, risk, c = self._risk.along(self._before, self._target, k, np.empty(self._X.n_rows))
        self._step = Step(k, scores, risk, c.copy(), None)
        return risk

    def evaluate_on_line(self, k):
        """Return the risk at k, and its derivative by k."""
        if k not in self._points:
            scores = self._before + k * self._target
            self._points[k] = (scores, *self._risk.subgradient(scores))
        _, risk, c = self._points[k]
        return np.array([risk, c @ self._target])

    def take_point(self, k, cut):
        """Take k as the result of the search, and `cut`, if it is not None, as a point beyond the minimiser."""
        self._step = Step(k, *self._points[k], None if cut is None else self._points[cut])
        self._points = {}

    def accept(self):
        """Take the point of the step as the best point."""
        self._best = self._step.scores

    def plane_at_step(self):
        """Return the PlaneSums at the point of the step."""
        return self._plane(self._step.scores, self._step.risk, self._step.c)

    def plane_at_cut(self):
        """Return the PlaneSums at the point beyond the minimiser that an inexact search has found."""
        return self._plane(*self._step.cut)

    def plane_along(self, k):
        """Return the PlaneSums at w_b + k (w_t − w_b), where w_b is the best point before the step."""
        return self._plane(*self._risk.along(self._before, self._target, k, self._memory))

    def _plane(self, scores, risk, c):
        read_before = self._combination.n_read
        inner, magnitude = self._combination.update(c, scores)
        return PlaneSums(
            risk, inner, self._combination.vector, magnitude + self._largest_term, self._combination.size,
            self._combination.n_read - read_before,
        )  # fmt: skip

    @property
    def _largest_term(self):
        """The size of the term that a `dual_sum` adds to the risk; it belongs to the `magnitude` of a plane."""
        return getattr(self._risk, "largest_term", 0.0)

    @property
    def coefficients(self):
        """The coefficients c of the last plane."""
        return self._combination.c

    def intercept(self, w):
        """Return the best free intercept at weights, or at the best point if w is None; 0 without a free intercept."""
        if not isinstance(self._risk, FreeInterceptRisk):
            return 0.0
        return self._risk.intercept(self._best if w is None else self._X.scores(w, self._n_jobs))

    def point(self, w):
        """Return the PointSums of weights, from newly computed scores."""
        scores = self._X.scores(w, self._n_jobs)
        risk, c = self._risk.subgradient(scores)
        magnitude = product_of_sizes(c, scores) + self._largest_term
        return PointSums(risk, float(np.abs(c).sum()), product_of_sizes(c, self._lengths), magnitude)


def _risk_of(problem, n_jobs):
    """Return the risk of a problem."""
    if isinstance(problem, RiskProblem):
        return problem.risk
    risk = RowRisk(problem, n_jobs)
    return FreeInterceptRisk(risk) if problem.free_intercept else risk
