"""Cutting planes: minimise F(w) = ½|w|² + R(X w) by planes that lie below R (Joachims, 2006; Franc, Sonnenburg, 2009).

    plane taken at scores s     R(X w) >= <a, w> + b     with a = X'c, b = R(s) − <c, s>, c a subgradient of R at s
    reduced problem             w_t = argmin of ½|w|² + max of the planes: a lower bound of F, that only rises

`svmperf` (Joachims): the next plane is taken at w_t.

`ocas` (Franc and Sonnenburg) keeps the best point so far, w_b. It is moved along the line to w_t as far as F falls,
exactly, so that F(w_b) never rises; and the next plane is taken close to it, at w_b + 0.1 (w_t − w_b). Where rows are
more than columns we take a second one, at w_b itself: together they hold the lowest point of the line from both sides.
That halves the turns (a9a, C = 100: 304 to 130) for the few rows that differ; with fewer rows than columns it does not
pay.

Planes are sums, which rounding makes wrong: by at most m u Σ |c_i| |x_i| in the length of a, m terms in its longest sum
and u = 2⁻⁵³, and by the rounding of R(s) and <c, s> in b. Every w that matters has ½|w|² <= F(w_b), so that this bounds
by how much the lower bound is too high, and it is taken off.

A turn takes a pass over the rows for the scores of w_t; other scores are sums of known ones. The vector of a plane is
that of the one before plus what has changed, few rows of a hinge. The engine knows X by `scores` and `combine` alone,
and the risk by its verbs.
"""

from dataclasses import replace

import numpy as np

from widemargin._runtime.threads import single_threaded_blas
from widemargin.problems.certificates import relative_gap
from widemargin.problems.formulations import DualQP, RiskProblem
from widemargin.problems.magnitudes import check_mean_risk, check_rows
from widemargin.problems.row_risk import BLOCK_ROWS, FreeInterceptRisk, RowRisk, axpby
from widemargin.solvers.combination import Combination
from widemargin.solvers.contract import Solution, Status, Watch
from widemargin.solvers.cutting_planes.plane_store import planes_like
from widemargin.solvers.cutting_planes.reduced_qp import ReducedProblem
from widemargin.solvers.spec import Losses, Rows, SolverSpec, Start

_TOWARDS = 0.1  # how far from the best point towards w_t the next plane is taken
_SINGLE = 4  # turns at the beginning that take one plane only
_PATIENCE = 50  # turns without weight before a plane may go
_INACTIVE = 100  # planes without weight that are kept
_REDUCED = 0.01  # accuracy of the reduced problem, as a fraction of the gap
_UNIT = 2.0**-53
_FUTILE = 20  # turns in a row in which neither bound moves, before the end


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
)
OCAS = replace(SVMPERF, name="ocas", solve=ocas, stopping=("gap",))


def _solve(method, settings):
    """Let a method take turns until its gap, or its violation, is within the tolerance."""
    watch = Watch(settings, "planes")
    # What overflows in spite of the check at the door is not kept: comparisons with it are false, and its plane is not
    # taken.
    with watch, single_threaded_blas(), np.errstate(over="ignore", invalid="ignore"):
        while True:
            watch.record(method.iteration, method.passes, method.best.objective, method.lower)
            violation = method.violation if settings.stopping == "violation" else np.nan
            over = watch.should_stop(method.name, method.iteration, method.passes, violation)
            status = method.status
            if over or status is not None:
                watch.status = status or watch.status
                break
            method.turn()
    primal, dual = method.measured()
    status, history = watch.status, watch.history()
    history[-1]["primal"], history[-1]["dual"], history[-1]["gap"] = primal, dual, relative_gap(primal, dual)
    if status is Status.CONVERGED and settings.stopping == "gap" and not history[-1]["gap"] <= settings.tol:
        status = Status.STALLED  # by rounding alone
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
    """Return a problem as a RiskProblem, and |x_i|²; refuse one whose numbers leave double precision."""
    if isinstance(problem, RiskProblem):
        norms = problem.X.squared_norms(n_jobs)
        check_mean_risk(problem.risk.scale, norms)
        return problem, norms
    norms = problem.X.squared_norms(n_jobs)
    check_rows(problem, norms)
    risk = RowRisk(problem, n_jobs)
    return RiskProblem(problem.X, FreeInterceptRisk(risk) if problem.free_intercept else risk), norms


class Point:
    """Weights, their scores, and F."""

    def __init__(self, w, scores, risk):
        self.w, self.scores = w, scores
        self.objective = 0.5 * float(w @ w) + risk


class _Planes:
    """What both methods share: the planes, the reduced problem, both bounds.

    Attributes
    ----------
    best : Point
        The best one seen.
    lower : float
        Lower bound of F.
    iteration : int
        Turns.
    violation : float
        By how much the mean loss at the last w_t is above its planes; NaN before.
    """

    def __init__(self, problem, settings, start):
        problem, norms = _as_risk(problem, settings.n_jobs)
        self._X, self._risk = problem.X, problem.risk
        self._settings, self._n_jobs = settings, settings.n_jobs
        self.iteration, self.lower, self.violation, self._passes = 0, 0.0, np.nan, 0.0
        self._reduced, self._planes, self._idle = ReducedProblem(), None, np.zeros(1, np.int64)
        self._still, self._bounds, self._overflowed = 0, (np.inf, -np.inf), False
        self._memory, self._line = np.zeros((2, self._X.n_rows))
        self._lengths, self._errors = np.sqrt(norms), np.zeros((2, 1))  # errors of each plane: in |a|, and in b
        self._combination = Combination(self._X, self._n_jobs, self._lengths)
        self._begin(None if start is None else np.array(start, dtype=np.float64))

    def _begin(self, start):
        """Take the first plane at the start, or at w = 0 if there is none or nothing finite comes of it."""
        w = np.zeros(self._X.n_columns) if start is None else start
        with np.errstate(over="ignore", invalid="ignore"):
            scores = self._X.scores(w, self._n_jobs) if w.any() else np.zeros(self._X.n_rows)
            risk, c = self._risk.subgradient(scores)
            self.best = Point(w, scores, risk)
            if np.isfinite(self.best.objective):
                self._cut(scores, risk, c)
        if start is not None and (self._planes is None or self._overflowed):
            self._overflowed, self._planes = False, None
            self._combination = Combination(self._X, self._n_jobs, self._lengths)
            self._begin(None)

    @property
    def passes(self):
        """Visits of rows divided by the number of rows."""
        return self._passes + self._combination.passes

    @property
    def status(self):
        """A Status if the point is as good as the settings ask, or both bounds have stood still for long, else None."""
        by_planes = self._settings.stopping == "violation"
        found = self.violation if by_planes else relative_gap(self.best.objective, self.lower)
        if found <= self._settings.tol:
            return Status.CONVERGED
        return Status.STALLED if self._still >= _FUTILE or self._overflowed else None

    def _cut(self, scores, risk, c):
        """Add the plane of a subgradient c at these scores, unless it overflows: then no further one is taken."""
        inner = self._combination.update(c, scores)
        a = self._combination.vector
        if self._planes is None:
            self._planes = planes_like(a, self._X, self._n_jobs)
        products = np.concatenate([[0.0], self._planes.add(a, c)])
        self._overflowed = not (np.isfinite(products).all() and np.isfinite(risk - inner))
        if not self._overflowed:
            self._reduced.add(products, risk - inner)
            self._passes += self._planes.passes
            self._idle = np.append(self._idle, 0)
            errors = (self._X.longest_sum + 2) * self._combination.size, self._sum_error(risk, c, scores)
            self._errors = np.column_stack([self._errors, _UNIT * np.array(errors)])

    def _sum_error(self, risk, c, scores):
        """Return the rounding of R(s) and <c, s> at most, in units of the last place."""
        return (BLOCK_ROWS + self._X.n_rows / BLOCK_ROWS) * (risk + float(np.abs(c) @ np.abs(scores)))

    def measured(self):
        """Return F of the best point, from scores computed anew, and the lower bound, less the rounding of F."""
        w = self.best.w
        with np.errstate(over="ignore", invalid="ignore"):
            scores = self._X.scores(w, self._n_jobs)
            risk, c = self._risk.subgradient(scores)
            half_norm = 0.5 * float(w @ w)
            of_scores = (self._X.longest_row + 2) * float(np.abs(c) @ self._lengths) * np.sqrt(2.0 * half_norm)
            error = of_scores + self._sum_error(risk, c, scores) + (len(w) + 2) * half_norm
            return half_norm + risk, self.lower - _UNIT * error

    def _lowest(self):
        """Solve the reduced problem; return its point w_t and the scores there, which the next call overwrites.

        Raises `lower`.
        """
        accuracy = _REDUCED * (self.best.objective - self.lower)
        self._reduced.solve(max(accuracy, 0.0))
        v = self._reduced.v
        w = -self._planes.combine(v[1:])
        self._passes += self._planes.passes
        value = self._reduced.linear() - 0.5 * float(w @ w)
        reach = np.sqrt(2.0 * self.best.objective)
        error = float(v @ (reach * self._errors[0] + self._errors[1])) + (len(v) + len(w)) * _UNIT * abs(value)
        self.lower = max(self.lower, min(value, self.best.objective) - error)
        self._idle = np.where(v > 0.0, 0, self._idle + 1)
        self._idle[0] = 0
        scores = self._planes.scores(-v[1:])
        if scores is None:
            self._passes += 1.0
            scores = self._X.scores(w, self._n_jobs, out=self._memory)
        return w, scores

    def _forget(self):
        """Drop the planes that have had no weight for long, and the longest idle ones if they are too many."""
        if self._idle.max() < _PATIENCE and np.count_nonzero(self._idle) <= _INACTIVE:
            return
        idle = np.sort(self._idle)[::-1]
        limit = min(_PATIENCE, idle[_INACTIVE] + 1 if len(idle) > _INACTIVE and idle[_INACTIVE] else _PATIENCE)
        kept = self._idle < limit
        self._reduced.keep(kept)
        self._planes.keep(kept[1:])
        self._idle, self._errors = self._idle[kept], self._errors[:, kept]

    def turn(self):
        """Find the lowest point of the planes, a better best point, and, unless it is good enough, the next planes."""
        self._improve(*self._lowest())
        self.iteration += 1

    def _improve(self, w, scores):
        """Go on from the lowest point of the planes, if it is finite."""
        self._overflowed = not (np.isfinite(w).all() and np.isfinite(scores).all())
        if self._overflowed:
            return
        where = self._move(w, scores)
        bounds = (self.best.objective, self.lower)
        self._still = self._still + 1 if bounds == self._bounds else 0
        self._bounds = bounds
        if self.status is None:
            self._cut_at(self._next(where))

    def _cut_at(self, planes):
        """Take planes while they are finite, and forget old ones."""
        for plane in planes:
            self._cut(*plane)
            if self._overflowed:
                return
        self._forget()


class _PlainPlanes(_Planes):
    """`svmperf`: the next plane is taken at the lowest point of those so far."""

    name = "svmperf"

    def _move(self, w, scores):
        risk, c = self._risk.subgradient(scores)
        self.violation = (risk - self._reduced.height()) / self._risk.scale
        point = Point(w, None, risk)  # its scores are not needed again
        if point.objective < self.best.objective:
            self.best = point
        return scores, risk, c

    def _next(self, plane):
        yield plane


class _OptimisedPlanes(_Planes):
    """`ocas`: the best point moves along the line to the lowest one, and the next planes are taken close to it."""

    name = "ocas"

    def _move(self, w, scores):
        best, along = self.best, w - self.best.w
        t = axpby(1.0, scores, -1.0, best.scores, self._line, self._n_jobs)
        step = self._risk.step(best.scores, t, float(along @ along), float(best.w @ along))
        moved = Point(best.w + step.k * along, step.scores, step.risk)
        if moved.objective < best.objective:
            self.best = moved
        return best.scores, t, step

    def _next(self, where):
        before, t, step = where
        moved, exact = self.best.scores is step.scores, step.cut is None
        if moved and exact and self._X.n_rows > self._X.n_columns and self.iteration >= _SINGLE:
            yield step.scores, step.risk, step.c
        if exact:
            k = step.k if moved else 0.0
            yield self._risk.along(before, t, k + _TOWARDS * (1.0 - k), self._memory)
        else:
            yield step.cut
