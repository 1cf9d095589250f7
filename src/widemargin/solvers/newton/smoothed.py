"""`newton`: Newton's method on smoothed losses, for many rows and few columns.

    Newton step   (I + X'diag(q)X) d = X'b − w     q_i is the second derivative of the smoothed loss of row i, which is
                  w += k d, k by line search       not zero only in a band around its corner, see `smoothed_risk`
    certificate   the dual variables b are feasible, and so are those that the step predicts, b − q X d clipped to their
                  bounds: D(b) <= optimum <= P(w)
    narrowing     once ½|w − X'b|² is less than half of P − D, the rest of the gap is due to the smoothing: the dual
                  variables become the centres of the bands, which are made half as wide (method of multipliers)

A step takes one pass over the rows for the scores of d; X'b and the outer products need only the rows in the band,
which are few. The time hardly depends on C. If the line search makes the step very short, because the rows in the band
do not determine a direction, the diagonal of the matrix is increased (damping, as in the method of Levenberg and
Marquardt). Squared losses have no corner and no band: every row with positive loss contributes to the matrix.

With many rows, the method first solves the problem of a random sixteenth of the rows, recursively, as a warm start; few
steps over all rows are then left. A large C is reached by continuation, as in `climb`. If the classes are separable,
the dual variables are far below their bounds and the band is made wider in proportion. These are the hardest problems,
because the support vectors have to be found among many rows. The d x d matrix limits the method to a few thousand
columns.

If the intercept is not penalised, it is set to where Σ b = 0 after every step, and eliminated from the linear system.
Several problems with the same X take their steps together and share the passes over the rows.
"""

import numpy as np
from scipy.linalg.lapack import dposv

from widemargin._runtime.threads import run, single_threaded_blas
from widemargin.data.gram import gram
from widemargin.problems.certificates import relative_gap
from widemargin.problems.formulations import DualQP, is_made_of_hinges, part_of, scaled
from widemargin.problems.magnitudes import check_rows
from widemargin.problems.smoothed_risk import SmoothedRisk
from widemargin.solvers.combination import Combination
from widemargin.solvers.contract import Solution, Status, Watch
from widemargin.solvers.coordinate_descent.climb import WORTH_SOLVING, height
from widemargin.solvers.handover import joined, rest_of
from widemargin.solvers.newton.active_set import active_set_newton, can_be_dense, suits_active_set
from widemargin.solvers.spec import SolverSpec, Start

MAX_COLUMNS = 3000  # of the matrix of a Newton step
_FIRST_HEIGHT = 100.0  # `height` (see `climb`) of the costs at which continuation in C starts
_FIRST_HALF_WIDTH, _MIN_HALF_WIDTH = 1.0, 1e-14  # of the band, in units of the score
_MIN_HALF_WIDTH_NEW_COSTS = 0.1  # with which steps continue when the costs have changed
_NARROWING, _WIDENING = 2.0, 16.0  # factors of the half width: when steps have converged; when damping has failed
_REFERENCE_DISTANCE = 0.25  # mean distance of dual variables in the band from their bounds, relative to the interval,
# below which the band is made wider
_STEP_GAP_FRACTION = 0.5  # largest ratio of ½|w − X'b|² to the gap at which the band is made narrower
_SHORT_STEP, _LONG_STEP = 0.2, 0.7  # step lengths below which damping is increased, and above which it is reduced
_DAMPING_FACTOR, _MIN_DAMPING, _MAX_DAMPING = 10.0, 1e-3, 1e3  # damping is relative to the mean of the diagonal
_SAMPLING_RATIO = 16  # rows per row of the sample that is solved first
_MIN_SAMPLE_ROWS, _MIN_SAMPLE_ROWS_PER_COLUMN = 2000, 20
_WARM_START_GAP, _MAX_WARM_START_STEPS = 0.03, 50  # relative gap and number of steps at which a warm start ends
_VALUES_WORTH_THREADS = 1 << 17  # stored values from which on problems that are solved together use threads
_MAX_STEPS_WITHOUT_PROGRESS = 100
_STEPS_BEFORE_ACTIVE_SET = 100  # if the active-set method is possible


def newton(problem, settings, start=None):
    """Minimise a DualQP; `start` are weights."""
    return newton_together([problem], [settings], [start])[0]


def newton_together(problems, settings, starts):
    """Minimise problems with the same X, with a list of settings and one of starts; return a list of Solutions."""
    return next(newton_path(problems, [1.0], settings, starts))


def _refuses(problem):
    """Return why a DualQP is too large, or None if it is not."""
    X = problem.X
    if X.n_columns > MAX_COLUMNS and not (X.is_wide and can_be_dense(X)):
        return (
            f"is for up to {MAX_COLUMNS} columns, or few rows, X is {X.n_rows} x {X.n_columns}: a step works with a "
            "matrix of columns x columns"
        )
    if not can_be_dense(X) and not is_made_of_hinges(problem):
        return f"takes losses that are no hinges only of small problems, X is {X.n_rows} x {X.n_columns}"
    return None


def _is_better_together(problem, settings, start):
    """Return whether several such problems share their passes; with an active set they are solved one by one."""
    return not takes_active_set(problem)


NEWTON = SolverSpec(
    name="newton",
    solve=newton,
    takes=frozenset({DualQP}),
    starts_from=Start.WEIGHTS,
    stopping=("gap",),
    counts="steps",
    refuses=_refuses,
    together=newton_together,
    is_better_together=_is_better_together,
)


def newton_path(problems, factors, settings, starts=None):
    """Minimise problems with the same X for a sequence of costs, each with a warm start from the previous costs.

    Parameters
    ----------
    problems : list of DualQP
    factors : iterable of float
        The costs of all problems are multiplied by one factor after the other.
    settings : list of Settings
        One for each problem.
    starts : list of ndarray or None
        Weights to start from at the first factor, one array or None for each problem.

    Yields
    ------
    solutions : list of Solution
        One for each problem; after an interruption no further lists are generated.
    """
    starts = starts or [None] * len(problems)
    X, n_jobs = problems[0].X, settings[0].n_jobs
    if takes_active_set(problems[0]):
        yield from _active_set_path(problems, factors, settings, starts)
        return
    norms = X.squared_norms(n_jobs)
    for problem in problems:
        check_rows(problem, norms)
    iterates, last_factor = [], 1.0
    for factor in factors:
        current = problems if factor == 1.0 else [scaled(problem, factor) for problem in problems]
        watches = [Watch(one, "steps") for one in settings]
        with watches[0], single_threaded_blas():
            for iterate, problem in zip(iterates, current, strict=False):
                iterate.reset_counts()
                iterate.change_costs(problem, factor / last_factor)
            last_factor, iterates = factor, iterates or _first_iterates(current, starts, settings[0], watches[0])
            _iterate_until_stopped(iterates, settings, watches)
        if not iterates:  # interrupted during the warm start
            iterates = [_Iterate(*one, _FIRST_HALF_WIDTH, n_jobs) for one in zip(current, starts, strict=True)]
        solutions = [_solution(*one) for one in zip(iterates, watches, strict=True)]
        yield [_continued_if_stalled(*one) for one in zip(current, solutions, settings, strict=True)]
        if settings[0].interrupt.is_set():
            return


def _iterate_until_stopped(iterates, settings, watches):
    """Take Newton steps, for all problems together, until every problem has stopped."""
    max_steps = _STEPS_BEFORE_ACTIVE_SET if can_be_dense(iterates[0].X) else np.inf
    monitors = [_Monitor(*one, max_steps) for one in zip(iterates, settings, watches, strict=True)]
    while monitors := [one for one in monitors if not one.has_stopped()]:
        _step([one.iterate for one in monitors], settings[0].n_jobs)


def _continued_if_stalled(problem, solution, settings):
    """Return a solution, continued by the active-set method if it has stalled and that is possible."""
    if solution.status is not Status.STALLED or not can_be_dense(problem.X):
        return solution
    rest = rest_of(settings, solution)
    return joined(solution, active_set_newton(problem, rest, solution.w, solution.beta))


def _active_set_path(problems, factors, settings, starts):
    """As `newton_path`, by the active-set method, one problem after the other."""
    for factor in factors:
        solutions = [
            active_set_newton(scaled(problem, factor), mine, start)
            for problem, mine, start in zip(problems, settings, starts, strict=True)
        ]
        yield solutions
        if settings[0].interrupt.is_set():
            return
        starts = [solution.w for solution in solutions]


def _solution(iterate, watch):
    """Return the Solution of an iterate; its last measurement is that of the returned point."""
    if watch.last_iteration != iterate.iteration:
        watch.record(iterate.iteration, iterate.passes, iterate.primal, iterate.dual)
    return Solution(
        w=iterate.best_w,
        beta=iterate.best_b.copy(),
        primal=iterate.primal,
        dual=iterate.dual,
        n_iter=iterate.iteration,
        status=watch.status or Status.INTERRUPTED,
        solver="newton",
        history=watch.history(),
        counts="steps",
    )


# --- Warm starts ------------------------------------------------------------------------------------------------------


def takes_active_set(problem):
    """Return whether a problem is solved by the active-set method from the beginning."""
    if suits_active_set(problem):
        return not starts_from_sample(problem.X)
    return can_be_dense(problem.X) and (problem.X.is_wide or not is_made_of_hinges(problem))


def starts_from_sample(X):
    """Return whether there are so many rows that the problem of a sample of them is solved first."""
    return X.n_rows >= _SAMPLING_RATIO * max(_MIN_SAMPLE_ROWS, _MIN_SAMPLE_ROWS_PER_COLUMN * X.n_columns)


def _first_iterates(problems, starts, settings, watch):
    """Return iterates at the starts, or, without starts, at solutions for a sample of the rows or for smaller costs."""
    X, n_jobs = problems[0].X, settings.n_jobs
    if starts[0] is not None:
        return [_Iterate(*one, _FIRST_HALF_WIDTH, n_jobs) for one in zip(problems, starts, strict=True)]
    if not starts_from_sample(X):
        return _continuation_in_cost(problems, settings, watch)
    rng = np.random.default_rng(settings.seed)
    rows = np.sort(rng.choice(X.n_rows, X.n_rows // _SAMPLING_RATIO, replace=False))
    samples = _first_iterates([part_of(one, rows, X.part(rows)) for one in problems], starts, settings, watch)
    _approach(samples, settings, watch)
    return [
        _Iterate(problem, sample.best_w, sample.h, n_jobs, sample.passes / _SAMPLING_RATIO)
        for problem, sample in zip(problems, samples, strict=True)
    ]


def _continuation_in_cost(problems, settings, watch):
    """Return iterates whose costs were first divided by a power of ten, and then multiplied by ten step by step.

    A problem with a burden of at least WORTH_SOLVING goes directly to its full costs: most of its dual variables are at
    their bounds, and are multiplied with them.
    """
    tens = max(0, round(np.log10(height(problems[0]) / _FIRST_HEIGHT)))
    factors = [10.0**-tens] * len(problems)
    iterates = [
        _Iterate(scaled(problem, factor), None, _FIRST_HALF_WIDTH, settings.n_jobs)
        for problem, factor in zip(problems, factors, strict=True)
    ]
    while min(factors) < 1.0:
        reduced = [k for k, factor in enumerate(factors) if factor < 1.0]
        _approach([iterates[k] for k in reduced], settings, watch)
        for k in reduced:
            last, factors[k] = factors[k], 1.0 if iterates[k].burden >= WORTH_SOLVING else min(1.0, 10.0 * factors[k])
            iterates[k].change_costs(scaled(problems[k], factors[k]), factors[k] / last)
    return iterates


def _approach(iterates, settings, watch):
    """Take Newton steps until all gaps are small enough for a warm start, or a limit is reached."""
    max_seconds = np.inf if settings.max_seconds is None else settings.max_seconds
    max_steps = np.inf if settings.max_iter is None else settings.max_iter
    tol, unsolved = max(settings.tol, _WARM_START_GAP), iterates
    for _ in range(_MAX_WARM_START_STEPS):
        unsolved = [one for one in unsolved if one.gap > tol and one.iteration < max_steps]
        if not unsolved or watch.seconds >= max_seconds or settings.interrupt.is_set():
            return
        _step(unsolved, settings.n_jobs)


# --- Newton steps -----------------------------------------------------------------------------------------------------


def _step(iterates, n_jobs):
    """Take a Newton step with each iterate; the scores of all directions are computed in one pass over X."""
    X = iterates[0].X
    if len(iterates) == 1:
        d = iterates[0].direction()
        iterates[0].move(d, X.scores(d, n_jobs, out=iterates[0].scores_buffer))
        return
    n_jobs = n_jobs if X.n_stored >= _VALUES_WORTH_THREADS else 1
    directions = run(_Iterate.direction, [(one,) for one in iterates], n_jobs)
    scores = X.scores_of_all(np.stack(directions), n_jobs)
    run(_Iterate.move, list(zip(iterates, directions, scores, strict=True)), n_jobs)


class _Monitor:
    """Reports the steps of an iterate to its Watch, and decides when they end."""

    def __init__(self, iterate, settings, watch, max_steps):
        self.iterate, self._tol, self._watch = iterate, settings.tol, watch
        self._n_without_progress, self._smallest_gap, self._max_steps = 0, np.inf, max_steps

    def has_stopped(self):
        """Report the current iteration; return whether it is the last one, in which case the status is set."""
        iterate, watch = self.iterate, self._watch
        watch.record(iterate.iteration, iterate.passes, iterate.primal, iterate.dual)
        stopped = watch.should_stop("newton", iterate.iteration, iterate.passes)
        if iterate.gap < self._smallest_gap:
            self._n_without_progress, self._smallest_gap = 0, iterate.gap
        else:
            self._n_without_progress += 1
        has_stalled = self._n_without_progress >= _MAX_STEPS_WITHOUT_PROGRESS
        if iterate.gap <= self._tol:
            watch.status = Status.CONVERGED
        elif not stopped and (has_stalled or iterate.iteration >= self._max_steps):
            watch.status = Status.STALLED
        return watch.status is not None


class _Iterate:
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
    best_w, primal : ndarray, float
        The best weights so far, and their primal objective.
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
        self._has_intercept = problem.free_intercept
        self.X, self._n_jobs = problem.X, n_jobs
        self._risk, self._combination = SmoothedRisk(problem, n_jobs), Combination(self.X, n_jobs)
        self._s, self._b, self._q, self.best_b, self.scores_buffer = np.zeros((5, self.X.n_rows))
        self._w = np.zeros(self.X.n_columns) if start is None else np.array(start, dtype=np.float64)
        self.h, self._requested_h, self.iteration, self._passes, self._damping = h, h, 0, passes, 0.0
        self.primal, self.dual, self.best_w = np.inf, 0.0, self._w
        if self._w.any():
            self.X.scores(self._w, n_jobs, out=self._s)
            self._passes += 1.0
        self._evaluate()

    def change_costs(self, problem, ratio):
        """Continue with a problem that differs only in its costs, which are `ratio` times as large.

        The dual objective of k b is largest at k = 1 + burden, so that b is multiplied by this k, by `ratio` at most.
        Centres of the bands are relative to the costs.
        """
        factor = min(1.0 + self.burden, ratio) / ratio
        distance = factor * self._risk.recentre(self._s, self.h)
        self._risk.restate(problem, factor)
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

    def direction(self):
        """Return the Newton step d; the negative gradient if the matrix is not positive definite."""
        H, intercept_curvature = gram(self.X, self._q, self._n_jobs), self._intercept_curvature()
        if intercept_curvature > 0.0:
            weighted_sum = self.X.combine(self._q, self._n_jobs)
            H -= np.outer(weighted_sum, weighted_sum / intercept_curvature)
        self._passes += np.count_nonzero(self._q) / max(1, self.X.n_rows)
        H.flat[:: len(H) + 1] += 1.0 + self._damping * H.trace() / len(H)
        _, d, failed = dposv(H.T, -self._g, lower=False, overwrite_a=True)
        return -self._g if failed else d

    def _intercept_curvature(self):
        """Return the second derivative of the smoothed losses by a free intercept; 0 if there is none."""
        return float(self._q.sum()) if self._has_intercept else 0.0

    def move(self, d, t):
        """Move to the minimum along d, whose scores are t; then adapt damping and half width."""
        intercept_curvature = self._intercept_curvature()
        if intercept_curvature > 0.0:
            t -= float(self._q @ t) / intercept_curvature
        bound, v = self._predict(t)
        line = self._s, t, self.h, float(d @ d), float(self._w @ d), float(self._g @ d)
        k = self._risk.lowest(*line)
        if self._has_intercept and k < _LONG_STEP:  # the step may be longer if the intercept changes along it
            k = self._risk.lowest_balanced(*line)
        self._w = self._w + k * d
        self._s += k * t
        self._update_damping(k)
        self.iteration += 1
        self._passes += 1.0
        if self._damping > _MAX_DAMPING:
            self._damping = 0.0
            self._recentre(min(_FIRST_HALF_WIDTH, _WIDENING * self._requested_h))
            return
        self._evaluate()
        if self._has_intercept:
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
        if self._has_intercept:
            return self._bound, self._combination.vector
        sums = self._risk.expect(self._combination.c, self._q, t, self._b)
        self._combination.update(self._b, self._s)
        return self._update_dual(*sums), self._combination.vector

    def _evaluate(self):
        """Compute intercept, dual variables, gradient and both objectives at the current scores."""
        if self._has_intercept:
            self._s += self._risk.balance(self._s, self.h)
        found = self._risk.evaluate(self._s, self.h, self._b, self._q)
        sums = found.linear, found.quadratic
        if self._has_intercept:  # makes Σ b = 0 exactly, by the dual variable that is farthest from its bounds
            self._b[np.argmax(self._risk.room(self._b))] -= self._b.sum()
            sums = self._risk.worth(self._b)
        self._combination.update(self._b, self._s)
        self._g = self._w - self._combination.vector
        self._value = self._half_norm() + found.loss
        if self._value < self.primal:
            self.primal, self.best_w = self._value, self._w
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
