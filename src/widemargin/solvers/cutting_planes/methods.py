"""Cutting planes: minimise F(w) = ½|w|² + R(X w) by linear lower bounds of R (Joachims, 2006; Franc, Sonnenburg, 2009).

    plane at the scores s    R(X w) >= <a, w> + b   with a = X'c, b = R(s) − <c, s>, c a subgradient of R at s
    reduced problem          w_t minimises ½|w|² + max over planes of <a, w> + b; its value is a lower bound of F, which
                             never decreases

`svmperf` (Joachims): the next plane is taken at w_t.

`ocas` (Franc and Sonnenburg) keeps the best point so far, w_b. A line search moves it towards w_t, so that F(w_b)
never increases, and the next plane is taken close to it, at w_b + 0.1 (w_t − w_b). If there are more rows than columns,
we take a second plane at w_b itself: the two bound the minimum of the line search from both sides. This halves the
number of iterations (a9a, C = 100: 304 to 130), and costs little, since few coefficients c differ between the two. With
fewer rows than columns it does not save time.

Rounding errors could make the lower bound too large. The error of a plane is at most m u Σ |c_i| |x_i| in |a|, where m
is the number of terms of the longest sum and u = 2⁻⁵³, plus the rounding of R(s) and <c, s> in b. Only w with
½|w|² <= F(w_b) matter, so that these errors bound the error of the lower bound, and they are subtracted from it.

An iteration takes one pass over the rows, for the scores of w_t; other scores are linear combinations of known ones.
The vector a of a plane is updated from that of the previous plane by the rows whose c has changed, which are few with
the hinge loss. The methods use only `scores` and `combine` of X, and the methods of the risk.
"""

from dataclasses import replace

import numpy as np

from widemargin._runtime.threads import single_threaded_blas
from widemargin.problems.certificates import relative_gap
from widemargin.problems.formulations import DualQP, RiskProblem
from widemargin.problems.magnitudes import check_mean_risk, check_rows
from widemargin.problems.row_risk import BLOCK_ROWS, FreeInterceptRisk, RowRisk, axpby, norms_of, product_of_sizes
from widemargin.solvers.combination import Combination
from widemargin.solvers.contract import Solution, Status, Watch
from widemargin.solvers.cutting_planes.plane_store import plane_store_for
from widemargin.solvers.cutting_planes.reduced_qp import ReducedProblem
from widemargin.solvers.spec import Losses, Rows, SolverSpec, Start, always

_CUT_FRACTION = 0.1  # of the way from w_b to w_t, at which ocas takes the next plane
_ITERATIONS_WITH_ONE_PLANE = 4  # of ocas, at the beginning
_MAX_IDLE_ITERATIONS = 50  # without weight in the reduced problem, after which a plane is removed
_MAX_IDLE_PLANES = 100  # planes without weight that are kept
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
    takes=frozenset({DualQP, RiskProblem}),
    losses=Losses.HINGES,
    starts_from=Start.WEIGHTS,
    stopping=("gap", "violation"),
    counts="planes",
    reads=Rows.BLOCKS,
    writes_checkpoints=always,
)
OCAS = replace(SVMPERF, name="ocas", solve=ocas, stopping=("gap",))


def _solve(method, settings):
    """Iterate until the gap, or the violation, is within the tolerance or a limit is reached; return a Solution."""
    watch = Watch(settings, "planes")
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
    primal, dual = method.certificate(is_interrupted=watch.status is Status.INTERRUPTED)
    status, history = watch.status, watch.history()
    history[-1]["primal"], history[-1]["dual"], history[-1]["gap"] = primal, dual, relative_gap(primal, dual)
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
    )


def _as_risk(problem, n_jobs):
    """Return a problem as a RiskProblem, and |x_i|².

    Raises ValueError if numbers could overflow in double precision.
    """
    if isinstance(problem, RiskProblem):
        norms = problem.X.squared_norms(n_jobs)
        check_mean_risk(problem.risk.scale, norms)
        return problem, norms
    norms = problem.X.squared_norms(n_jobs)
    check_rows(problem, norms)
    risk = RowRisk(problem, n_jobs)
    return RiskProblem(problem.X, FreeInterceptRisk(risk) if problem.free_intercept else risk), norms


class Point:
    """Weights, their scores, and the objective F."""

    STATE = ("w", "scores", "objective")

    def __init__(self, w, scores, risk):
        self.w, self.scores = w, scores
        self.objective = 0.5 * float(w @ w) + risk


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
    """

    STATE = (
        "iteration", "lower", "violation", "_passes", "_reduced", "_planes", "_idle", "_n_stalled", "_last_bounds",
        "_overflowed", "_errors", "_combination", "best",
    )  # fmt: skip

    def __init__(self, problem, settings, start):
        problem, norms = _as_risk(problem, settings.n_jobs)
        self._X, self._risk = problem.X, problem.risk
        self._settings, self._n_jobs = settings, settings.n_jobs
        self.iteration, self.lower, self.violation, self._passes = 0, 0.0, np.nan, 0.0
        self._reduced, self._planes, self._idle = ReducedProblem(), None, np.zeros(1, np.int64)
        self._n_stalled, self._last_bounds, self._overflowed = 0, (np.inf, -np.inf), False
        self._scores = np.zeros(self._X.n_rows)  # memory of the scores of w_t, of a direction, and of a plane
        self._lengths, self._errors = norms_of(norms), np.zeros((2, 1))  # errors of each plane: in |a|, and in b
        self._combination = Combination(self._X, self._n_jobs, self._lengths)
        self._add_first_plane(None if start is None else np.array(start, dtype=np.float64))

    def _add_first_plane(self, start):
        """Add the plane at the start; at w = 0 if there is no start, or its plane is not finite."""
        w = np.zeros(self._X.n_columns) if start is None else start
        with np.errstate(over="ignore", invalid="ignore"):
            scores = self._X.scores(w, self._n_jobs) if w.any() else np.zeros(self._X.n_rows)
            risk, c = self._risk.subgradient(scores)
            self.best = Point(w, scores, risk)
            if np.isfinite(self.best.objective):
                self._add_plane(scores, risk, c)
        if start is not None and (self._planes is None or self._overflowed):
            self._overflowed, self._planes = False, None
            self._combination = Combination(self._X, self._n_jobs, self._lengths)
            self._add_first_plane(None)

    @property
    def passes(self):
        """Visits of rows divided by the number of rows."""
        return self._passes + self._combination.passes

    @property
    def status(self):
        """A Status if the stopping rule is satisfied, or no progress is possible; else None."""
        by_violation = self._settings.stopping == "violation"
        measured = self.violation if by_violation else relative_gap(self.best.objective, self.lower)
        if measured <= self._settings.tol:
            return Status.CONVERGED
        return Status.STALLED if self._n_stalled >= _MAX_STALLED_ITERATIONS or self._overflowed else None

    def _add_plane(self, scores, risk, c):
        """Add the plane of a subgradient c at these scores; if it overflows, set `_overflowed` instead."""
        inner = self._combination.update(c, scores)
        a = self._combination.vector
        if self._planes is None:
            self._planes = plane_store_for(a, self._X, self._n_jobs)
        products = np.concatenate([[0.0], self._planes.add(a, c)])
        self._overflowed = not (np.isfinite(products).all() and np.isfinite(risk - inner))
        if not self._overflowed:
            self._reduced.add(products, risk - inner)
            self._passes += self._planes.passes
            self._idle = np.append(self._idle, 0)
            errors = (self._X.longest_sum + 2) * self._combination.size, self._sum_error(risk, c, scores)
            self._errors = np.column_stack([self._errors, _UNIT_ROUNDOFF * np.array(errors)])

    def _sum_error(self, risk, c, scores):
        """Return a bound on the rounding error of R(s) and <c, s>, in multiples of the unit roundoff."""
        return (BLOCK_ROWS + self._X.n_rows / BLOCK_ROWS) * (risk + product_of_sizes(c, scores))

    def certificate(self, is_interrupted=False):
        """Return F at the best point, from newly computed scores, and the lower bound less the rounding error of F.

        An interrupted run with rows on disk does not wait for a pass over them: it returns both as they are known.
        """
        if is_interrupted and not self._X.is_in_memory:
            return self.best.objective, self.lower
        w = self.best.w
        with np.errstate(over="ignore", invalid="ignore"):
            scores = self._X.scores(w, self._n_jobs)
            risk, c = self._risk.subgradient(scores)
            half_norm = 0.5 * float(w @ w)
            of_scores = (self._X.longest_row + 2) * product_of_sizes(c, self._lengths) * np.sqrt(2.0 * half_norm)
            error = of_scores + self._sum_error(risk, c, scores) + (len(w) + 2) * half_norm
            return half_norm + risk, self.lower - _UNIT_ROUNDOFF * error

    def _solve_reduced(self):
        """Solve the reduced problem and update `lower`; return w_t and its scores, which the next call overwrites."""
        accuracy = _REDUCED_ACCURACY * (self.best.objective - self.lower)
        self._reduced.solve(max(accuracy, 0.0))
        v = self._reduced.v
        w = -self._planes.combine(v[1:])
        self._passes += self._planes.passes
        value = self._reduced.linear_term() - 0.5 * float(w @ w)
        largest_norm = np.sqrt(2.0 * self.best.objective)
        of_planes = float(v @ (largest_norm * self._errors[0] + self._errors[1]))
        error = of_planes + (len(v) + len(w)) * _UNIT_ROUNDOFF * abs(value)
        self.lower = max(self.lower, min(value, self.best.objective) - error)
        self._idle = np.where(v > 0.0, 0, self._idle + 1)
        self._idle[0] = 0
        scores = self._planes.scores(-v[1:])
        if scores is None:
            self._passes += 1.0
            scores = self._X.scores(w, self._n_jobs, out=self._scores)
        return w, scores

    def _remove_idle_planes(self):
        """Remove planes that have had no weight for too long, and if there are too many idle planes the oldest ones."""
        if self._idle.max() < _MAX_IDLE_ITERATIONS and np.count_nonzero(self._idle) <= _MAX_IDLE_PLANES:
            return
        idle, limit = np.sort(self._idle)[::-1], _MAX_IDLE_ITERATIONS
        if len(idle) > _MAX_IDLE_PLANES and idle[_MAX_IDLE_PLANES]:
            limit = min(limit, idle[_MAX_IDLE_PLANES] + 1)
        kept = self._idle < limit
        self._reduced.keep(kept)
        self._planes.keep(kept[1:])
        self._idle, self._errors = self._idle[kept], self._errors[:, kept]

    def iterate(self):
        """Solve the reduced problem, update the best point, and add planes unless the stopping rule is satisfied."""
        w, scores = self._solve_reduced()
        self._overflowed = not (np.isfinite(w).all() and np.isfinite(scores).all())
        if not self._overflowed:
            self._improve(w, scores)
        self.iteration += 1

    def _improve(self, w, scores):
        """Update the best point by w_t and its scores, and add the next planes."""
        result = self._update_best(w, scores)
        bounds = (self.best.objective, self.lower)
        self._n_stalled = self._n_stalled + 1 if bounds == self._last_bounds else 0
        self._last_bounds = bounds
        if self.status is None:
            self._add_planes(self._next_planes(result))

    def _add_planes(self, planes):
        """Add planes until one overflows, and remove idle ones."""
        for plane in planes:
            self._add_plane(*plane)
            if self._overflowed:
                return
        self._remove_idle_planes()


class _PlainPlanes(_Planes):
    """`svmperf`: the next plane is taken at w_t."""

    name = "svmperf"

    def _update_best(self, w, scores):
        """Replace the best point by w_t if that is better; return scores, risk and subgradient of w_t."""
        risk, c = self._risk.subgradient(scores)
        self.violation = (risk - self._reduced.largest_plane()) / self._risk.scale
        point = Point(w, None, risk)  # its scores are not needed again
        if point.objective < self.best.objective:
            self.best = point
        return scores, risk, c

    def _next_planes(self, plane):
        """Yield the plane at w_t."""
        yield plane


class _OptimisedPlanes(_Planes):
    """`ocas`: a line search moves the best point towards w_t, and the next planes are taken near the best point."""

    name = "ocas"

    def _update_best(self, w, scores):
        """Move the best point towards w_t by a line search.

        Returns the scores of the previous best point, the scores of the direction, which take the place of those of
        w_t, and the result of the line search.
        """
        best, direction = self.best, w - self.best.w
        t = axpby(1.0, scores, -1.0, best.scores, scores, self._n_jobs)
        step = self._risk.step(best.scores, t, float(direction @ direction), float(best.w @ direction))
        moved = Point(best.w + step.k * direction, step.scores, step.risk)
        if moved.objective < best.objective:
            self.best = moved
        return best.scores, t, step

    def _next_planes(self, result):
        """Yield the plane at the new best point, if it pays, and the one between it and w_t."""
        before, t, step = result
        moved, exact = self.best.scores is step.scores, step.cut is None
        is_tall = self._X.n_rows > self._X.n_columns
        if moved and exact and is_tall and self.iteration >= _ITERATIONS_WITH_ONE_PLANE:
            yield step.scores, step.risk, step.c
        if exact:
            k = step.k if moved else 0.0
            yield self._risk.along(before, t, k + _CUT_FRACTION * (1.0 - k), self._scores)
        else:
            yield step.cut
