"""`newton`: Newton's method on smoothed losses, for many rows and few columns.

    Newton step   (I + X'diag(q)X) d = X'b − w     q_i is the second derivative of the smoothed loss of row i, which is
                  w += k d, k by line search       not zero only in a band around its corner, see `smoothed_risk`
    certificate   the dual variables b are feasible, and so are those that the step predicts, b − q X d clipped to their
                  bounds: D(b) <= optimum <= P(w)
    narrowing     once ½|w − X'b|² is at most half of P − D, the rest of the gap is due to the smoothing: the dual
                  variables become the centres of the bands, which are made half as wide (method of multipliers)

A step takes one pass over the rows for the scores of d; X'b and the outer products need only the rows in the band,
which are few. The time hardly depends on C. If the line search makes the step very short, because the band holds no
information on a direction, the diagonal of the matrix is increased as in the method of Levenberg and Marquardt. Squared
losses have no corner and no band: every row with positive loss contributes to the matrix.

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
from widemargin.solvers.coordinate_descent.climb import MIN_BURDEN, height
from widemargin.solvers.handover import joined, rest_of
from widemargin.solvers.newton.active_set import active_set_newton, can_be_dense, suits_active_set
from widemargin.solvers.spec import SolverSpec, Start

MOST_COLUMNS = 3000
_HEIGHT = 100.0  # of costs to begin with, see `climb`
_FIRST = 1.0  # half width of the band
_NARROWER = 2.0
_INSIDE = 0.25  # of the way between bounds, on average: multipliers for which the band is as wide as wanted
_SETTLED = 0.5  # part of the gap that may be due to steps that are still to be made
_SHORT, _LONG = 0.2, 0.7  # steps that call for more damping, or for less
_DAMPING, _LEAST_DAMPING, _MOST_DAMPING = 10.0, 1e-3, 1e3  # factor; against the mean of the matrix's diagonal
_WIDER, _AGAIN = 16.0, 0.1  # when steps come to nothing; when costs change
_PART = 16  # of the rows, to begin with
_LEAST, _LEAST_PER_COLUMN = 2000, 20  # rows of such a part
_PART_GAP, _PART_STEPS = 0.03, 50
_NARROWEST = 1e-14
_WORTH_THREADS = 1 << 17  # stored values, for problems that take their steps together
_FUTILE = 100  # steps without progress before the end
_MANY_STEPS = 100  # before others are tried that know which dual variables are free


def newton(problem, settings, start=None):
    """Minimise a DualQP; `start` are weights."""
    return newton_together([problem], [settings], [start])[0]


def newton_together(problems, settings, starts):
    """Minimise problems with the same X, each with settings and a start of its own; return their Solutions."""
    return next(newton_path(problems, [1.0], settings, starts))


def _refuses(problem):
    """Return why a DualQP is refused, or None: a step works with a matrix of columns x columns, or of rows x rows."""
    X = problem.X
    if X.n_columns > MOST_COLUMNS and not (X.is_wide and can_be_dense(X)):
        return (
            f"is for up to {MOST_COLUMNS} columns, or few rows, X is {X.n_rows} x {X.n_columns}: a step works with a "
            "matrix of columns x columns"
        )
    if not can_be_dense(X) and not is_made_of_hinges(problem):
        return f"takes losses that are no hinges only of small problems, X is {X.n_rows} x {X.n_columns}"
    return None


def _is_better_together(problem, settings, start):
    """Return whether several such problems share their passes: those with an active set are solved one by one."""
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
    """Minimise problems with the same X, their costs multiplied by one factor after the other, each from the last.

    Yields, for each factor, the problems' Solutions; ends after an interruption.
    """
    starts = starts or [None] * len(problems)
    rows = problems[0]
    if takes_active_set(problems[0]):
        yield from _active_set_path(problems, factors, settings, starts)
        return
    norms = rows.X.squared_norms(settings[0].n_jobs)
    for problem in problems:
        check_rows(problem, norms)
    descents, last = [], 1.0
    for factor in factors:
        stated = problems if factor == 1.0 else [scaled(problem, factor) for problem in problems]
        watches = [Watch(one, "steps") for one in settings]
        with watches[0], single_threaded_blas():
            for descent, problem in zip(descents, stated, strict=False):
                descent.count_anew()
                descent.restate(problem, factor / last)
            last, descents = factor, descents or _begun(stated, starts, settings[0], watches[0])
            most = _MANY_STEPS if can_be_dense(rows.X) else np.inf
            left = [_Run(*one, most) for one in zip(descents, settings, watches, strict=True)]
            while left := [one for one in left if not one.over()]:
                _step([one.descent for one in left], settings[0].n_jobs)
        if not descents:  # Ctrl-C came early
            descents = [_Descent(*one, _FIRST, settings[0].n_jobs) for one in zip(stated, starts, strict=True)]
        solutions = [_solution(*one) for one in zip(descents, watches, strict=True)]
        yield [_carried_on(*one) for one in zip(stated, solutions, settings, strict=True)]
        if settings[0].interrupt.is_set():
            return


def _carried_on(problem, solution, settings):
    """Return a solution that came to a standstill carried on by steps that know which dual variables are free."""
    if solution.status is not Status.STALLED or not can_be_dense(problem.X):
        return solution
    rest = rest_of(settings, solution)
    return joined(solution, active_set_newton(problem, rest, solution.w, solution.beta))


def _active_set_path(problems, factors, settings, starts):
    """As `newton_path`, by steps that know which dual variables are free, one problem after the other."""
    for factor in factors:
        solutions = [
            active_set_newton(scaled(problem, factor), mine, start)
            for problem, mine, start in zip(problems, settings, starts, strict=True)
        ]
        yield solutions
        if settings[0].interrupt.is_set():
            return
        starts = [solution.w for solution in solutions]


def _solution(descent, watch):
    if watch.last_iteration != descent.iteration:
        watch.measured(descent.iteration, descent.passes, descent.primal, descent.dual)
    return Solution(
        w=descent.best_w,
        beta=descent.best_b.copy(),
        primal=descent.primal,
        dual=descent.dual,
        n_iter=descent.iteration,
        status=watch.status or Status.INTERRUPTED,
        solver="newton",
        history=watch.history(),
        counts="steps",
    )


def _begun(problems, starts, settings, watch):
    """Return descents on all rows; without a start, begun by a part of them if there are many, and by small costs."""
    X, n_jobs = problems[0].X, settings.n_jobs
    if starts[0] is not None:
        return [_Descent(*one, _FIRST, n_jobs) for one in zip(problems, starts, strict=True)]
    if not begins_with_a_part(X):
        return _climbed(problems, settings, watch)
    chosen = np.sort(np.random.default_rng(settings.seed).choice(X.n_rows, X.n_rows // _PART, replace=False))
    descents = _begun([part_of(one, chosen, X.part(chosen)) for one in problems], starts, settings, watch)
    _approach(descents, settings, watch)
    return [
        _Descent(problem, part.best_w, part.h, n_jobs, part.passes / _PART)
        for problem, part in zip(problems, descents, strict=True)
    ]


def takes_active_set(problem):
    """Whether a problem is solved from the beginning by steps that know which dual variables are free."""
    rows = problem
    if suits_active_set(rows):
        return not begins_with_a_part(rows.X)
    return can_be_dense(rows.X) and (rows.X.is_wide or not is_made_of_hinges(rows))


def begins_with_a_part(X):
    """Whether there are enough rows to begin with a part of them: then few steps over all are left."""
    return X.n_rows >= _PART * max(_LEAST, _LEAST_PER_COLUMN * X.n_columns)


def _climbed(problems, settings, watch):
    """Return descents that have come from costs divided by tens.

    Rows that can be had right have to be brought up step by step; where losses prevail one step is enough.
    """
    tens = max(0, round(np.log10(height(problems[0]) / _HEIGHT)))
    factors = [10.0**-tens] * len(problems)
    descents = [
        _Descent(scaled(problem, factor), None, _FIRST, settings.n_jobs)
        for problem, factor in zip(problems, factors, strict=True)
    ]
    while min(factors) < 1.0:
        low = [k for k, factor in enumerate(factors) if factor < 1.0]
        _approach([descents[k] for k in low], settings, watch)
        for k in low:
            last, factors[k] = factors[k], 1.0 if descents[k].burden >= MIN_BURDEN else min(1.0, 10.0 * factors[k])
            descents[k].restate(scaled(problems[k], factors[k]), factors[k] / last)
    return descents


def _approach(descents, settings, watch):
    """Step until gaps are about what it takes to begin with the real problems, or time is up."""
    limit = np.inf if settings.max_seconds is None else settings.max_seconds
    tol, left = max(settings.tol, _PART_GAP), descents
    most = np.inf if settings.max_iter is None else settings.max_iter
    for _ in range(_PART_STEPS):
        left = [one for one in left if one.gap > tol and one.iteration < most]
        if not left or watch.seconds >= limit or settings.interrupt.is_set():
            return
        _step(left, settings.n_jobs)


def _step(descents, n_jobs):
    """Let each take a step; the scores of all directions are computed together."""
    X = descents[0].X
    if len(descents) == 1:
        d = descents[0].direction()
        descents[0].move(d, X.scores(d, n_jobs, out=descents[0].memory))
        return
    n_jobs = n_jobs if X.n_stored >= _WORTH_THREADS else 1
    directions = run(_Descent.direction, [(one,) for one in descents], n_jobs)
    scores = X.scores_of_all(np.stack(directions), n_jobs)
    run(_Descent.move, list(zip(descents, directions, scores, strict=True)), n_jobs)


class _Run:
    """A descent, and whether it is over."""

    def __init__(self, descent, settings, watch, most_steps):
        self.descent, self._tol, self._watch = descent, settings.tol, watch
        self._still, self._least, self._most = 0, np.inf, most_steps

    def over(self):
        """Report the state; return whether the run ends here."""
        descent, watch = self.descent, self._watch
        watch.measured(descent.iteration, descent.passes, descent.primal, descent.dual)
        over = watch.turn("newton", descent.iteration, descent.passes)
        self._still, self._least = (0, descent.gap) if descent.gap < self._least else (self._still + 1, self._least)
        if descent.gap <= self._tol:
            watch.status = Status.CONVERGED
        elif not over and (self._still >= _FUTILE or descent.iteration >= self._most):
            watch.status = Status.STALLED
        return watch.status is not None


class _Descent:
    """One problem's point, its multipliers and both bounds.

    Attributes
    ----------
    X : Matrix
    best_w, primal : the best weights so far, and their objective
    best_b, dual : the best multipliers so far, and their bound
    h : half width of the band
    iteration, passes : steps; visits of rows divided by the number of rows
    memory : for the scores of a direction
    """

    def __init__(self, problem, start, h, n_jobs, passes=0.0):
        self._free = problem.free_intercept
        self.X, self._n_jobs = problem.X, n_jobs
        self._risk, self._multipliers = SmoothedRisk(problem, n_jobs), Combination(self.X, n_jobs)
        self._s, self._b, self._q, self.best_b, self.memory = np.zeros((5, self.X.n_rows))
        self._w = np.zeros(self.X.n_columns) if start is None else np.array(start, dtype=np.float64)
        self.h, self._fineness, self.iteration, self._passes, self._damping = h, h, 0, passes, 0.0
        self.primal, self.dual, self.best_w = np.inf, 0.0, self._w
        if self._w.any():
            self.X.scores(self._w, n_jobs, out=self._s)
            self._passes += 1.0
        self._look()

    def restate(self, problem, ratio):
        """Go on with a problem that differs in its costs only, which are `ratio` times as large."""
        stretch = min(1.0 + self.burden, ratio) / ratio  # of the multipliers, D is largest at 1 + burden
        inside = stretch * self._risk.recentre(self._s, self.h)
        self._risk.restate(problem, stretch)
        self._fineness = max(self._fineness, _AGAIN)
        self._set_width(inside)
        self._damping = 0.0
        self.primal, self.dual, self.best_w = np.inf, 0.0, self._w
        self.best_b[:] = 0.0
        self._look()

    def count_anew(self):
        """Count steps and passes from 0."""
        self.iteration, self._passes = 0, -self._multipliers.passes

    @property
    def burden(self):
        """The losses, not rounded off, divided by |w|²."""
        half = self._half_norm()
        return float(self._value - half) / (2.0 * half) if half > 0.0 else np.inf

    def _half_norm(self):
        return 0.5 * float(self._w @ self._w)

    def _set_width(self, inside):
        """Set h by the fineness wanted, wider if multipliers within the band are close to their bounds."""
        self.h = self._fineness * max(1.0, _INSIDE / inside)

    @property
    def gap(self):
        """The relative gap."""
        return relative_gap(self.primal, self.dual)

    @property
    def passes(self):
        """Visits of rows divided by the number of rows."""
        return self._passes + self._multipliers.passes

    def direction(self):
        """Return the Newton step d."""
        H, bend = gram(self.X, self._q, self._n_jobs), self._bend()
        if bend > 0.0:
            pull = self.X.combine(self._q, self._n_jobs)
            H -= np.outer(pull, pull / bend)
        self._passes += np.count_nonzero(self._q) / max(1, self.X.n_rows)
        H.flat[:: len(H) + 1] += 1.0 + self._damping * H.trace() / len(H)
        _, d, failed = dposv(H.T, -self._g, lower=False, overwrite_a=True)
        return -self._g if failed else d

    def _bend(self):
        """Return by how much the sum of the multipliers falls with a shift of the scores; 0 if none is allowed."""
        return float(self._q.sum()) if self._free else 0.0

    def move(self, d, t):
        """Move along d, whose scores are t; narrow the band if what is left of the gap is due to rounding."""
        bend = self._bend()
        if bend > 0.0:
            t -= float(self._q @ t) / bend
        bound, v = self._expect(t)
        line = self._s, t, self.h, float(d @ d), float(self._w @ d), float(self._g @ d)
        k = self._risk.lowest(*line)
        if self._free and k < _LONG:  # perhaps only because the intercept stood still
            k = self._risk.lowest_balanced(*line)
        self._w = self._w + k * d
        self._s += k * t
        self._damp(k)
        self.iteration += 1
        self._passes += 1.0
        if self._damping > _MOST_DAMPING:  # the band is too narrow to be found from here
            self._damping, self._fineness = 0.0, min(_FIRST, _WIDER * self._fineness)
            self._set_width(self._risk.recentre(self._s, self.h))
            self._look()
            return
        self._look()
        if self._free:
            bound, v = self._bound, self._multipliers.vector
        while not self._risk.squared and self._is_settled(self._value - bound, self._w - v):
            self._fineness /= _NARROWER
            self._set_width(self._risk.recentre(self._s, self.h))
            self._look()
            bound, v = self._bound, self._multipliers.vector

    def _damp(self, k):
        if k < _SHORT:
            self._damping = max(_DAMPING * self._damping, _LEAST_DAMPING)
        elif k > _LONG:
            self._damping = self._damping / _DAMPING if self._damping > _LEAST_DAMPING else 0.0

    def _is_settled(self, gap, g):
        """Whether steps with this band are not what the gap is due to."""
        return self._fineness > _NARROWEST and 0.5 * float(g @ g) < _SETTLED * gap

    def _expect(self, t):
        """Take the multipliers that the step expects; return the bound that they prove, and their combination."""
        if self._free:
            return self._bound, self._multipliers.vector  # they need not sum to zero
        sums = self._risk.expect(self._multipliers.c, self._q, t, self._b)
        self._multipliers.take(self._b, self._s)
        return self._prove(*sums), self._multipliers.vector

    def _look(self):
        """Find multipliers, gradient and bounds at the current scores."""
        if self._free:
            self._s += self._risk.balance(self._s, self.h)
        found = self._risk.evaluate(self._s, self.h, self._b, self._q)
        sums = found.linear, found.quadratic
        if self._free:
            self._b[np.argmax(self._risk.room(self._b))] -= self._b.sum()  # what rounding has left
            sums = self._risk.worth(self._b)
        self._multipliers.take(self._b, self._s)
        self._g = self._w - self._multipliers.vector
        self._value = self._half_norm() + found.loss
        if self._value < self.primal:
            self.primal, self.best_w = self._value, self._w
        self._bound = self._prove(*sums)

    def _prove(self, linear, quadratic):
        """Return the bound of the multipliers' best multiple k, linear k − (quadratic + ½|v|²) k²; keep the best."""
        v = self._multipliers.vector
        curve = quadratic + 0.5 * float(v @ v)
        k = max(linear / (2.0 * curve), 0.0) if curve > 0.0 else 1.0
        k = k if self._risk.squared else min(k, 1.0)
        bound = k * linear - k * k * curve
        if bound > self.dual:
            self.dual = bound
            np.multiply(self._multipliers.c, k, out=self.best_b)
        return bound
