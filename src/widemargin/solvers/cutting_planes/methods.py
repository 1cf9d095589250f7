"""Cutting planes: minimise F(w) = ½|w|² + R(X w) by linear lower bounds of R (Joachims, 2006; Franc, Sonnenburg, 2009).

    plane at the scores s    R(X w) >= <a, w> + b   with a = X'c, b = R(s) − <c, s>, c a subgradient of R at s
    reduced problem          w_t minimises ½|w|² + max over planes of <a, w> + b; its value is a lower bound of F, which
                             never decreases

`svmperf` (Joachims): the next plane is taken at w_t.

`ocas` (Franc and Sonnenburg) keeps the best point so far, w_b. A line search moves it towards w_t, so that F(w_b)
never increases, and the next plane is taken close to it, at w_b + 0.1 (w_t − w_b); up to three times as far away if
½|w_b|² is most of F, as it is where classes can be separated (dna, C = 10: 450 to 340 iterations). If there are more
rows than columns, we take a second plane at w_b itself: the two bound the minimum of the line search from both sides.
This halves the number of iterations (a9a, C = 100: 304 to 130), and costs little, since few coefficients c differ
between the two. With fewer rows than columns it does not save time.

Rounding errors could make the lower bound too large. The error of a plane is at most m u Σ |c_i| |x_i| in |a|, where m
is the number of terms of the longest sum and u = 2⁻⁵³, plus the rounding of R(s) and <c, s> in b. The lower bound is
b − ½|a|² for a combination of planes, so that errors e of a and f of b change it by at most e |a| + ½ e² + f, which is
subtracted from it.

An iteration takes one pass over the rows, for the scores of w_t; other scores are linear combinations of known ones.
The vector a of a plane is updated from that of the previous plane by the rows whose c has changed, which are few with
the hinge loss. Vectors with a number for each row are those of `PlaneRows`.
"""

from dataclasses import replace

import numpy as np

from widemargin._runtime.threads import single_threaded_blas
from widemargin.problems.certificates import relative_gap
from widemargin.problems.formulations import DualQP, FixedSumQP, RiskProblem
from widemargin.problems.row_risk import BLOCK_ROWS
from widemargin.solvers.contract import Solution, Status, Watch
from widemargin.solvers.cutting_planes.plane_rows import PlaneRows
from widemargin.solvers.cutting_planes.plane_store import plane_store_for
from widemargin.solvers.cutting_planes.reduced_qp import ReducedProblem
from widemargin.solvers.spec import Losses, Rows, SolverSpec, Start, always

_LEAST_CUT_FRACTION = 0.1  # of the way from w_b to w_t, at which ocas takes the next plane
_CUT_FRACTION_OF_NORM = 0.3  # the same, if F is all ½|w|²
_ITERATIONS_WITH_ONE_PLANE = 4  # of ocas, at the beginning
_ITERATIONS_PER_REMOVAL = 4  # of idle planes
_REDUCED_ACCURACY = 0.01  # of the reduced problem, as a fraction of the gap
_MAX_STALLED_ITERATIONS = 20  # in a row, in which neither bound changes
_UNIT_ROUNDOFF = 2.0**-53


def svmperf(problem, settings, start=None):
    """Minimise a RiskProblem or DualQP by plain cutting planes; `start` are weights."""
    return _solve(_PlainPlanes(problem, settings, start), settings)


def ocas(problem, settings, start=None):
    """Minimise a RiskProblem or DualQP by optimised cutting planes; `start` are weights."""
    return _solve(_OptimisedPlanes(problem, settings, start), settings)


SVMPERF = SolverSpec(
    name="svmperf",
    solve=svmperf,
    takes=frozenset({DualQP, FixedSumQP, RiskProblem}),
    losses=Losses.HINGES,
    starts_from=Start.WEIGHTS,
    stopping=("gap", "violation"),
    counts="planes",
    reads=Rows.PARTITIONS,
    writes_checkpoints=always,
)
OCAS = replace(SVMPERF, name="ocas", solve=ocas, stopping=("gap",))


def _solve(method, settings):
    """Iterate until the gap, or the violation, is within the tolerance or a limit is reached; return a Solution."""
    watch = Watch(settings, "planes", method.gap_scale)
    # Problems whose numbers could overflow are refused. If a number overflows all the same, comparisons with it are
    # false, and its plane is not added.
    with watch, single_threaded_blas(), np.errstate(over="ignore", invalid="ignore"):
        watch.restore(method)
        while True:
            watch.record(method.iteration, method.passes, method.best.objective, method.lower)
            violation = method.violation if settings.stopping == "violation" else np.nan
            over = watch.should_stop(method.name, method.iteration, method.passes, violation)
            status = method.status
            if over or status is not None:
                watch.status = status or watch.status
                break
            method.iterate()
            watch.save(method)
        if watch.status is not Status.CONVERGED:
            watch.save(method, now=True)
    primal, dual, risk_sums = method.certificate(is_interrupted=watch.status is Status.INTERRUPTED)
    status, history = watch.status, watch.history()
    gap = relative_gap(primal, dual, method.gap_scale)
    history[-1]["primal"], history[-1]["dual"], history[-1]["gap"] = primal, dual, gap
    if status is Status.CONVERGED and settings.stopping == "gap" and not history[-1]["gap"] <= settings.tol:
        status = Status.STALLED  # the gap is within the tolerance but for the bound on rounding errors
    return Solution(
        w=method.best.w,
        beta=None,
        primal=primal,
        dual=dual,
        n_iter=method.iteration,
        status=status,
        solver=method.name,
        history=history,
        counts="planes",
        intercept=method.intercept() if status is Status.INTERRUPTED else 0.0,
        scale=method.gap_scale,
        risk_sums=risk_sums,
    )


class Point:
    """Weights, ½|w|², and the objective F."""

    STATE = ("w", "half_norm", "objective")

    def __init__(self, w, risk):
        self.w, self.half_norm = w, 0.5 * float(w @ w)
        self.objective = self.half_norm + risk

    @property
    def share_of_norm(self):
        """½|w|² / F, at most 1."""
        return self.half_norm / self.objective if self.objective > self.half_norm else 1.0


class _Planes:
    """The part that both methods share: planes, reduced problem, and bounds.

    Attributes
    ----------
    best : Point
        The point with the smallest objective so far.
    lower : float
        Lower bound of F.
    iteration : int
        Number of iterations.
    violation : float
        The mean loss at the last w_t less the largest of its planes there, SVM-Perf's ε; NaN before the first.
    passes : float
        Visits of rows divided by the number of rows.
    rows : PlaneRows
        Scores and coefficients of the rows.
    """

    STATE = (
        "iteration", "lower", "violation", "passes", "_reduced", "_planes", "_n_stalled", "_last_bounds", "_overflowed",
        "rows", "best",
    )  # fmt: skip

    def __init__(self, problem, settings, start):
        self._X, self._settings = problem.X, settings
        norms = self._X.squared_norms(settings.n_jobs)
        problem.check(norms)
        self.rows = self._X.place.create(PlaneRows, problem, settings.n_jobs, norms)
        self._scale = self.rows.scale()
        self.iteration, self.lower, self.violation, self.passes = 0, problem.lower_bound, np.nan, 0.0
        self.gap_scale, self._n_zero = problem.objective_scale, int(problem.lower_bound >= 0.0)  # zero planes: 1 or 0
        self._reduced, self._planes = ReducedProblem(has_zero_plane=bool(self._n_zero)), None
        self._n_stalled, self._last_bounds, self._overflowed = 0, (np.inf, -np.inf), False
        self._add_first_plane(None if start is None else np.array(start, dtype=np.float64))

    def _add_first_plane(self, start):
        """Add the plane at the start; at w = 0 if there is no start, or its plane is not finite."""
        w = np.zeros(self._X.n_columns) if start is None else start
        with np.errstate(over="ignore", invalid="ignore"):
            plane = self.rows.begin(w)
            self.best = Point(w, plane.risk)
            if np.isfinite(self.best.objective):
                self._add_plane(plane)
        if start is not None and (self._planes is None or self._overflowed):
            self._overflowed, self._planes = False, None
            self.rows.forget_planes()
            self._add_first_plane(None)

    @property
    def status(self):
        """A Status if the stopping rule is satisfied, or no progress is possible; else None."""
        by_violation = self._settings.stopping == "violation"
        measured = self.violation if by_violation else relative_gap(self.best.objective, self.lower, self.gap_scale)
        if measured <= self._settings.tol:
            return Status.CONVERGED
        return Status.STALLED if self._n_stalled >= _MAX_STALLED_ITERATIONS or self._overflowed else None

    def _add_plane(self, plane):
        """Add a plane, given by its PlaneSums; if it overflows, set `_overflowed` instead."""
        if self._planes is None:
            self._planes = plane_store_for(plane.vector, self._X, self._settings.n_jobs)
        coefficients = self.rows.coefficients if self._planes.needs_coefficients else None
        products = self._planes.add(plane.vector, coefficients)
        self.passes += plane.n_read / max(1, self._X.n_rows)
        vector_error = _UNIT_ROUNDOFF * (self._X.longest_sum + 2) * plane.size
        try:
            self._reduced.add(products, plane.risk - plane.inner, vector_error, _UNIT_ROUNDOFF * self._sum_error(plane))
            self.passes += self._planes.passes
        except FloatingPointError:
            self._overflowed = True

    def _sum_error(self, sums):
        """Return a bound on the rounding error of R(s) and <c, s>, in multiples of the unit roundoff."""
        return (BLOCK_ROWS + self._X.n_rows / BLOCK_ROWS) * (abs(sums.risk) + sums.magnitude)

    def certificate(self, is_interrupted=False):
        """Return F at the best point, from newly computed scores, the lower bound less the rounding error, and sums.

        The sums are `Solution.risk_sums`. An interrupted run with rows on disk does not wait for a pass over them: it
        returns both bounds as they are known, and None.
        """
        if is_interrupted and not self._X.is_in_memory:
            return self.best.objective, self.lower, None
        w = self.best.w
        with np.errstate(over="ignore", invalid="ignore"):
            found = self.rows.point(w)
            half_norm = 0.5 * float(w @ w)
            w_norm = np.sqrt(2.0 * half_norm)
            of_scores = (self._X.longest_row + 2) * found.size * w_norm
            error = of_scores + self._sum_error(found) + (len(w) + 2) * half_norm
            sums = float(found.risk), float(found.slope + w_norm * found.size)
            return half_norm + found.risk, self.lower - _UNIT_ROUNDOFF * error, sums

    def intercept(self):
        """Return the best free intercept at the best point; 0 if there is none. Most often no pass is needed for it."""
        return self.rows.intercept(None if self.keeps_best_scores else self.best.w)

    def _solve_reduced(self):
        """Solve the reduced problem and update `lower`; return w_t, and its scores if they are known, or None."""
        accuracy = _REDUCED_ACCURACY * (self.best.objective - self.lower)
        self._reduced.solve(max(accuracy, 0.0))
        v = self._reduced.v
        w = -self._planes.combine(v[self._n_zero :])
        self.passes += self._planes.passes
        square, (linear, vector_error, offset_error) = float(w @ w), self._reduced.count_use()
        value, summed = linear - 0.5 * square, 1.0 + len(v) / (self._X.longest_sum + 2)  # the sum over planes included
        vector_error *= summed
        of_planes = vector_error * (np.sqrt(square) + 0.5 * vector_error) + offset_error
        error = of_planes + (len(v) + len(w)) * _UNIT_ROUNDOFF * (abs(linear) + 0.5 * square)
        self.lower = max(self.lower, min(value, self.best.objective) - error)
        scores = self._planes.scores(v[self._n_zero :])
        if scores is not None:
            np.negative(scores, out=scores)
        self.passes += 1.0 if scores is None else 0.0
        return w, scores

    def _remove_idle_planes(self):
        """Now and then, remove the planes that have been without weight for long."""
        if self.iteration % _ITERATIONS_PER_REMOVAL == 0:
            kept = self._reduced.in_use()
            if not kept.all():
                self._reduced.keep(kept)
                self._planes.keep(kept[self._n_zero :])

    def iterate(self):
        """Solve the reduced problem, update the best point, and add planes unless the stopping rule is satisfied."""
        w, scores = self._solve_reduced()
        self._overflowed = not (np.isfinite(w).all() and self.rows.aim(w, scores))
        if not self._overflowed:
            self._improve(w)
        self.iteration += 1

    def _improve(self, w):
        """Update the best point by w_t, and add the next planes."""
        result = self._update_best(w)
        bounds = (self.best.objective, self.lower)
        self._n_stalled = self._n_stalled + 1 if bounds == self._last_bounds else 0
        self._last_bounds = bounds
        if self.status is None:
            self._add_planes(self._next_planes(result))

    def _add_planes(self, planes):
        """Add planes until one overflows, and remove idle ones."""
        for plane in planes:
            self._add_plane(plane)
            if self._overflowed:
                return
        self._remove_idle_planes()


class _PlainPlanes(_Planes):
    """`svmperf`: the next plane is taken at w_t."""

    name, keeps_best_scores = "svmperf", False

    def _update_best(self, w):
        """Replace the best point by w_t if that is better."""
        risk = self.rows.risk_at_target()
        self.violation = (risk - self._reduced.largest_plane()) / self._scale
        point = Point(w, risk)
        if point.objective < self.best.objective:
            self.best = point

    def _next_planes(self, _):
        """Yield the plane at w_t."""
        yield self.rows.plane_at_target()


class _OptimisedPlanes(_Planes):
    """`ocas`: a line search moves the best point towards w_t, and the next planes are taken near the best point."""

    name, keeps_best_scores = "ocas", True

    def _update_best(self, w):
        """Move the best point towards w_t by a line search; return the step, whether it moved, and if it is exact."""
        best, direction = self.best, w - self.best.w
        k, risk, is_exact = self.rows.step(float(direction @ direction), float(best.w @ direction))
        moved = Point(best.w + k * direction, risk)
        has_moved = moved.objective < best.objective
        if has_moved:
            self.best = moved
            self.rows.accept()
        return k if has_moved else 0.0, has_moved, is_exact

    def _next_planes(self, result):
        """Yield the plane at the new best point, if it pays, and the one between it and w_t."""
        k, has_moved, is_exact = result
        is_tall = self._X.n_rows > self._X.n_columns
        if has_moved and is_exact and is_tall and self.iteration >= _ITERATIONS_WITH_ONE_PLANE:
            yield self.rows.plane_at_step()
        fraction = max(_LEAST_CUT_FRACTION, _CUT_FRACTION_OF_NORM * self.best.share_of_norm)
        yield self.rows.plane_along(k + fraction * (1.0 - k)) if is_exact else self.rows.plane_at_cut()
