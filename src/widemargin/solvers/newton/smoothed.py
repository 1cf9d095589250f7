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
Marquardt). Squared losses have no corner and no band: every row with positive loss contributes to the matrix. Nor have
losses with an entropy, such as the log loss, for which every row contributes (`entropy_risk`). These have no limit of
columns: the step is found by conjugate gradients if there are many.

With many rows, the method first solves the problem of a random sixteenth of the rows, recursively, as a warm start; few
steps over all rows are then left. With an entropy this is an eighth, and only if there are so many rows for each
column, or costs so small, that its solution is close to that of all rows: one step over all rows is then left, where
four would be needed from zero (ijcnn1 at C = 1,000). A large C is reached by continuation, as in `climb`. If the
classes are separable, the dual variables are far below their bounds and the band is made wider in proportion. These are
the hardest problems, because the support vectors have to be found among many rows. The d x d matrix limits the method
to a few thousand columns.

If the intercept is not penalised, it is set to where Σ b = dual_sum after every step, and eliminated from the linear
system.
Several problems with the same X take their steps together and share the passes over the rows.
"""

import numpy as np

from widemargin._runtime.place import HERE
from widemargin._runtime.threads import single_threaded_blas
from widemargin.problems.formulations import DualQP, FixedSumQP
from widemargin.solvers.contract import Solution, Status, Watch
from widemargin.solvers.coordinate_descent.climb import MIN_BURDEN, height
from widemargin.solvers.handover import joined, rest_of
from widemargin.solvers.newton.active_set import active_set_newton, can_be_dense, suits_active_set, takes_problem
from widemargin.solvers.newton.iterate import MAX_COLUMNS, Iterate, has_matrix
from widemargin.solvers.newton.row_state import set_directions
from widemargin.solvers.spec import Rows, SolverSpec, Start

_FIRST_HEIGHT = 100.0  # `height` (see `climb`) of the costs at which continuation in C starts
_SAMPLING_RATIO = 16  # rows per row of the sample that is solved first
_MIN_SAMPLE_ROWS, _MIN_SAMPLE_ROWS_PER_COLUMN = 2000, 10
_SAMPLING_RATIO_WITH_ENTROPY, _MIN_SAMPLE_ROWS_WITH_ENTROPY = 8, 1000  # if the rows are in memory
_MIN_SAMPLE_ROWS_PER_COLUMN_WITH_ENTROPY = 100
_MAX_HEIGHT_OF_ANY_SAMPLE = 5.0  # `height` up to which, with an entropy, fewer rows per column are enough
_WARM_START_GAP, _MAX_WARM_START_STEPS = 0.03, 50  # relative gap and number of steps at which a warm start ends
_WARM_START_DECREASE = 0.1  # relative, of the objective in a step, with which a warm start ends if losses are smooth
_VALUES_WORTH_THREADS = 1 << 17  # stored values from which on problems that are solved together use threads
_MAX_STEPS_WITHOUT_PROGRESS = 100
_STEPS_BEFORE_ACTIVE_SET = 100  # if the active-set method is possible


def newton(problem, settings, start=None):
    """Minimise a DualQP; `start` are weights."""
    return newton_together([problem], [settings], [start])[0]


def newton_together(problems, settings, starts):
    """Minimise problems with the same X, with a list of settings and one of starts; return a list of Solutions."""
    return NewtonPath(problems, settings, starts).solved(1.0)


def _refuses(problem):
    """Return why a DualQP is too large, or None if it is not."""
    X = problem.X
    if problem.entropy:
        return _refuses_one_sided(problem)
    if X.n_columns > MAX_COLUMNS and not (X.is_wide and can_be_dense(X)):
        return (
            f"is for up to {MAX_COLUMNS} columns, or few rows, X is {X.n_rows} x {X.n_columns}: a step works with a "
            "matrix of columns x columns"
        )
    if not can_be_dense(X) and not problem.is_made_of_hinges:
        return f"takes losses that are no hinges only of small problems, X is {X.n_rows} x {X.n_columns}"
    return None


def _refuses_one_sided(problem):
    """Return why losses with an entropy have no optimum: those of one class vanish as a free intercept grows."""
    if not problem.free_intercept or problem.X.place is not HERE or problem.has_both_sides:
        return None
    return "needs rows of positive weight in both classes: with one class, the best intercept is infinite"


def _writes_checkpoints(problem):
    """Return whether a DualQP is solved by steps that are kept in checkpoints, or at once; an active set is neither."""
    return suits_active_set(problem) or not takes_active_set(problem)


def _is_better_together(problem, settings, start):
    """Return whether several such problems share their passes; with an active set they are solved one by one."""
    return not takes_active_set(problem)


NEWTON = SolverSpec(
    name="newton",
    solve=newton,
    takes=frozenset({DualQP, FixedSumQP}),
    starts_from=Start.WEIGHTS,
    stopping=("gap",),
    counts="steps",
    reads=Rows.PARTITIONS,
    refuses=_refuses,
    writes_checkpoints=_writes_checkpoints,
    together=newton_together,
    is_better_together=_is_better_together,
)


class NewtonPath:
    """Problems with the same X, minimised for a sequence of factors of their costs, each a warm start for the next.

    Parameters
    ----------
    problems : list of DualQP
    settings : list of Settings
        One for each problem.
    starts : list of ndarray or None
        Weights to start from at the first factor, one array or None for each problem.
    """

    def __init__(self, problems, settings, starts=None):
        self._problems, self._settings = problems, settings
        starts = starts or [None] * len(problems)
        self._takes_active_set = takes_active_set(problems[0])
        self._starts, self._iterates, self._last_factor = [_Weights(start) for start in starts], [], 1.0
        if not self._takes_active_set:
            norms = problems[0].X.squared_norms(settings[0].n_jobs)
            for problem in problems:
                problem.check(norms)

    def solved(self, factor):
        """Return the Solution of each problem with its costs multiplied by a factor."""
        current = self._with_costs(factor)
        if self._takes_active_set:
            solutions = [
                active_set_newton(problem, mine, start.w)
                for problem, mine, start in zip(current, self._settings, self._starts, strict=True)
            ]
            self._starts = [_Weights(solution.w) for solution in solutions]
            return solutions
        return self._solved_by_steps(current, factor)

    def _with_costs(self, factor):
        return self._problems if factor == 1.0 else [problem.scaled(factor) for problem in self._problems]

    def _solved_by_steps(self, current, factor):
        """Return the Solution of each problem; all take their Newton steps together."""
        settings, starts = self._settings, [start.w for start in self._starts]
        watches = [Watch(one, "steps", problem.objective_scale) for problem, one in zip(current, settings, strict=True)]
        with watches[0], single_threaded_blas():
            for iterate, problem in zip(self._iterates, current, strict=False):
                iterate.reset_counts()
                iterate.change_costs(problem, factor / self._last_factor)
            self._iterates = self._iterates or _restored_iterates(current, watches)
            self._iterates = self._iterates or _first_iterates(current, starts, settings[0], watches[0])
            self._last_factor = factor
            _run(self._iterates, settings, watches, takes_problem(current[0]))
        if watches[0].status is Status.INTERRUPTED and not _are_measured(self._iterates):
            self._iterates = self._first_measured(current)
        solutions = [_solution(*one) for one in zip(self._iterates, watches, strict=True)]
        return [_continued_if_stalled(*one) for one in zip(current, solutions, settings, strict=True)]

    def _first_measured(self, current):
        """Return iterates for a run that was interrupted before it had measured any with these costs.

        With rows on disk that would take a pass over them, and nobody waits for it: there is no solution.
        """
        if not current[0].X.is_in_memory:
            raise KeyboardInterrupt
        starts = [one.best_w for one in self._iterates] or [start.w for start in self._starts]
        n_jobs = self._settings[0].n_jobs
        return [Iterate(*one, None, n_jobs) for one in zip(current, starts, strict=True)]

    def states(self):
        """Return for each problem the object whose STATE a checkpoint keeps between two factors."""
        return self._starts if self._takes_active_set else self._iterates

    def resume(self, last_factor, restore):
        """Go on after a factor; `restore(k, state)` sets what `states` returned for problem k then."""
        self._last_factor = last_factor
        if not self._takes_active_set:
            n_jobs = self._settings[0].n_jobs
            current = self._with_costs(last_factor)
            self._iterates = [Iterate(problem, None, None, n_jobs) for problem in current]
        for k, state in enumerate(self.states()):
            restore(k, state)


def _are_measured(iterates):
    """Return whether there are iterates, and their objective is known."""
    return bool(iterates) and all(iterate.primal < np.inf for iterate in iterates)


class _Weights:
    """The weights from which the active-set method starts; None is zero."""

    STATE = ("w",)

    def __init__(self, w):
        self.w = w


def _run(iterates, settings, watches, may_end):
    """Take Newton steps, for all problems together, until every problem has stopped.

    `may_end` says whether the active-set method can continue.
    """
    max_steps = _STEPS_BEFORE_ACTIVE_SET if may_end else np.inf
    runs = [_Monitor(*one, max_steps) for one in zip(iterates, settings, watches, strict=True)]
    while runs := [one for one in runs if not one.has_stopped()]:
        _step([one.iterate for one in runs], settings[0].n_jobs)
        for run_ in runs:
            run_.save()


def _restored_iterates(problems, watches):
    """Return iterates with the state of checkpoints, or an empty list if there are none."""
    if watches[0].settings.checkpoint is None:
        return []
    n_jobs = watches[0].settings.n_jobs
    iterates = [Iterate(problem, None, None, n_jobs) for problem in problems]
    found = [watch.restore(iterate) for iterate, watch in zip(iterates, watches, strict=True)]
    if not all(found):  # the process ended between the first checkpoints of two problems
        for watch in watches:
            watch.forget()
        return []
    for iterate in iterates:
        iterate.evaluate_restored()
    return iterates


def _continued_if_stalled(problem, solution, settings):
    """Return a solution, continued by the active-set method if it has stalled and that is possible."""
    if solution.status is not Status.STALLED or not takes_problem(problem):
        return solution
    rest = rest_of(settings, solution)
    return joined(solution, active_set_newton(problem, rest, solution.w, solution.beta))


def _solution(iterate, watch):
    """Return the Solution of an iterate; its last measurement is that of the returned point."""
    if watch.last_iteration != iterate.iteration:
        watch.record(iterate.iteration, iterate.passes, iterate.primal, iterate.dual)
    return Solution(
        w=iterate.best_w,
        beta=iterate.rows.kept_dual(),
        primal=iterate.primal,
        dual=iterate.dual,
        n_iter=iterate.iteration,
        status=watch.status or Status.INTERRUPTED,
        solver="newton",
        history=watch.history(),
        counts="steps",
        intercept=iterate.best_intercept,
        scale=watch.scale,
    )


# --- Warm starts ------------------------------------------------------------------------------------------------------


def takes_active_set(problem):
    """Return whether a problem is solved by the active-set method from the beginning."""
    if suits_active_set(problem):
        return not starts_from_sample(problem.X)
    return takes_problem(problem) and (problem.X.is_wide or not problem.is_made_of_hinges)


def starts_from_sample(X):
    """Return whether there are so many rows that the problem of a sample of them is solved first."""
    return X.n_rows >= _SAMPLING_RATIO * max(_MIN_SAMPLE_ROWS, _MIN_SAMPLE_ROWS_PER_COLUMN * X.n_columns)


def _sampling_ratio(problem):
    """Return how many times fewer rows a sample has whose problem is solved first; None if all rows are taken."""
    X = problem.X
    if not (problem.entropy and X.is_in_memory):
        return _SAMPLING_RATIO if starts_from_sample(X) else None
    n_rows, n_columns = X.n_rows // _SAMPLING_RATIO_WITH_ENTROPY, X.n_columns
    if not has_matrix(X) or n_rows < max(_MIN_SAMPLE_ROWS_WITH_ENTROPY, _MIN_SAMPLE_ROWS_PER_COLUMN * n_columns):
        return None
    is_large = n_rows >= _MIN_SAMPLE_ROWS_PER_COLUMN_WITH_ENTROPY * n_columns
    return _SAMPLING_RATIO_WITH_ENTROPY if is_large or height(problem) <= _MAX_HEIGHT_OF_ANY_SAMPLE else None


def _first_iterates(problems, starts, settings, watch):
    """Return iterates at the starts, or, without starts, at solutions for a sample of the rows or for smaller costs."""
    X, n_jobs = problems[0].X, settings.n_jobs
    if starts[0] is not None:
        return [Iterate(*one, None, n_jobs) for one in zip(problems, starts, strict=True)]
    ratio = _sampling_ratio(problems[0])
    if ratio is None:
        return _continuation_in_cost(problems, settings, watch)
    rows, part = X.sample(X.n_rows // ratio, settings.seed)
    samples = _first_iterates([one.of_rows(rows, part) for one in problems], starts, settings, watch)
    _approach(samples, settings, watch)
    return [
        Iterate(problem, sample.best_w, sample.h, n_jobs, sample.passes / ratio)
        for problem, sample in zip(problems, samples, strict=True)
    ]


def _continuation_in_cost(problems, settings, watch):
    """Return iterates whose costs were first divided by a power of ten, and then multiplied by ten step by step.

    A problem with a burden of at least MIN_BURDEN goes directly to its full costs: most of its dual variables are at
    their bounds, and are multiplied with them. So does one without targets (of height 1), whose solution is
    proportional to its costs, and one with an entropy, which has no bands: smaller costs were measured to save nothing.
    """
    tens = 0 if problems[0].entropy else max(0, round(np.log10(height(problems[0]) / _FIRST_HEIGHT)))
    factors = [10.0**-tens] * len(problems)
    iterates = [
        Iterate(problem.scaled(factor), problem.first_weights, None, settings.n_jobs)
        for problem, factor in zip(problems, factors, strict=True)
    ]
    while min(factors) < 1.0:
        reduced = [k for k, factor in enumerate(factors) if factor < 1.0]
        _approach([iterates[k] for k in reduced], settings, watch)
        for k in reduced:
            last, factors[k] = factors[k], 1.0 if iterates[k].burden >= MIN_BURDEN else min(1.0, 10.0 * factors[k])
            iterates[k].change_costs(problems[k].scaled(factors[k]), factors[k] / last)
    return iterates


def _approach(iterates, settings, watch):
    """Take Newton steps until all gaps are small enough for a warm start, or a limit is reached.

    If the losses are smooth, it is also enough that the objective hardly decreases: Newton's method is close then.
    """
    max_steps = np.inf if settings.max_iter is None else settings.max_iter
    tol, unsolved = max(settings.tol, _WARM_START_GAP), iterates
    for one in iterates:
        one.goal = tol
    for _ in range(_MAX_WARM_START_STEPS):
        unsolved = [one for one in unsolved if one.gap > tol and one.iteration < max_steps]
        if not unsolved or watch.is_over:
            return
        last = [one.primal for one in unsolved]
        _step(unsolved, settings.n_jobs)
        unsolved = [one for one, value in zip(unsolved, last, strict=True) if not _is_close(one, value)]


def _is_close(iterate, last_value):
    """Return whether a step with smooth losses has decreased the objective so little that a warm start may end."""
    return iterate.has_entropy and last_value - iterate.primal <= _WARM_START_DECREASE * iterate.primal


# --- Newton steps -----------------------------------------------------------------------------------------------------


def _step(iterates, n_jobs):
    """Take a Newton step with each iterate; the scores of all directions are computed in one pass over X."""
    X = iterates[0].X
    n_jobs = n_jobs if len(iterates) == 1 or X.n_stored >= _VALUES_WORTH_THREADS else 1
    directions = X.place.run(Iterate.direction, [(one,) for one in iterates], n_jobs)
    rows, half_widths = [one.rows for one in iterates], [one.h for one in iterates]
    X.place.on_all(set_directions, rows, directions, half_widths, n_jobs)
    X.place.run(Iterate.move, list(zip(iterates, directions, strict=True)), n_jobs)


class _Monitor:
    """Reports the steps of an iterate to its Watch, and decides when they end."""

    def __init__(self, iterate, settings, watch, max_steps):
        self.iterate, self._tol, self._watch = iterate, settings.tol, watch
        self._n_without_progress, self._smallest_gap, self._max_steps = 0, np.inf, max_steps
        iterate.goal = settings.tol
        for gap in watch.gaps[: -1 if watch.last_iteration == iterate.iteration else None]:  # of a restored history
            self._compare(gap)

    def has_stopped(self):
        """Report the current iteration; return whether it is the last one, in which case the status is set."""
        iterate, watch = self.iterate, self._watch
        watch.record(iterate.iteration, iterate.passes, iterate.primal, iterate.dual)
        stopped = watch.should_stop("newton", iterate.iteration, iterate.passes)
        self._compare(iterate.gap)
        has_stalled = self._n_without_progress >= _MAX_STEPS_WITHOUT_PROGRESS
        if iterate.gap <= self._tol:
            watch.status = Status.CONVERGED
        elif not stopped and (has_stalled or iterate.iteration >= self._max_steps):
            watch.status = Status.STALLED
        if watch.status not in (None, Status.CONVERGED):
            watch.save(iterate, now=True)
        return watch.status is not None

    def _compare(self, gap):
        """Count the steps since the gap was smallest."""
        if gap < self._smallest_gap:
            self._n_without_progress, self._smallest_gap = 0, gap
        else:
            self._n_without_progress += 1

    def save(self):
        """Write a checkpoint if one is due."""
        self._watch.save(self.iterate)
