"""`pairs`: pair coordinate descent for dual variables with a fixed sum, those of a linear one-class machine.

    minimise ½|X'beta|²    over 0 <= beta_i <= upper_i,   Σ beta_i = dual_sum

One dual variable cannot change alone. With w = X'beta and the scores s_i = <w, x_i>, an amount t that is taken from
beta_j and given to beta_i changes the objective by −t (s_j − s_i) + ½ t² |x_i − x_j|². If s_i < s_j the best step is

    t = min( (s_j − s_i) / |x_i − x_j|²,  upper_i − beta_i,  beta_j )

The optimum fills the rows with the lowest scores to their upper bounds, until the sum is reached at a score ρ, which is
a weighted quantile of the scores. If `tail` is Σ b_i s_i of the dual variables b that are so filled,

    primal objective at w = ½|w|² − tail,   dual objective = −½|w|²,   gap = Σ beta_i s_i − tail

so that one pass over the rows and a quickselect give the certificate. What rows below ρ can still take is as much as
rows above ρ have to give away. These two lists, the rows farthest from ρ first, are the pairs of a sweep
(`pair_sweeps`). Several sweeps over rows near ρ follow on each pass over all rows. The first step moves all dual
variables at once, towards the b of the present scores (Frank and Wolfe), since from the start very many rows have to
move.

Passes, pairs and sweeps are one compiled function, which returns after some milliseconds. Only the passes over rows
that are worth threads are made outside of it.

Reference: Chou, Lin, Lin, "Dual coordinate-descent methods for linear one-class SVM and SVDD", SDM 2020. There, pairs
are chosen in another way, and there is no certificate.
"""

import numpy as np

from widemargin.problems.formulations import FixedSumQP
from widemargin.solvers.contract import Solution, Status, Watch
from widemargin.solvers.coordinate_descent.pair_sweeps import (
    BEST_FACTOR,
    DUAL,
    IS_INTERIOR,
    LEVEL,
    N_VISITS,
    PRIMAL,
    SIZE_OF_STATE,
    TAIL,
    VALUE,
    Duals,
    Goal,
    Work,
    advance,
    fill_lowest,
    improve,
    measure,
)
from widemargin.solvers.coordinate_descent.state import half_square
from widemargin.solvers.newton.active_set import correct_sum
from widemargin.solvers.spec import Losses, SolverSpec, Start

_STEPS_OF_ALL_ROWS = 1  # before pairs; of 0, 1, 2, 3 and 5, 1 was the fastest on 8 of 10 problems
_PASSES_BETWEEN_RECOMPUTATIONS = 64  # of w = X'beta, to remove accumulated rounding errors
_PASSES_PER_CALL = 16  # of compiled code, at most
_VALUES_PER_CALL = 1 << 23  # of X that compiled code reads, about ten milliseconds, so that Ctrl-C is noticed
_SEVERAL_THREADS = 2


def pairs(problem, settings, start=None):
    """Minimise a FixedSumQP by pair coordinate descent; `start` are dual variables."""
    descent = _Descent(problem, settings, start)
    watch = Watch(settings, "passes", problem.objective_scale)
    with watch:
        descent.measure()
        while watch.status is None:
            for measurement in descent.new_measurements():
                watch.record(*measurement)
            if watch.gap <= settings.tol:
                watch.status = Status.CONVERGED
            elif not descent.has_moved:
                watch.status = Status.STALLED
            elif not watch.should_stop("pairs", descent.iteration, descent.passes):
                descent.improve()
    beta = descent.duals.beta
    correct_sum(beta, problem)
    return Solution(
        descent.best_w, beta, descent.primal, descent.dual, descent.iteration, watch.status, "pairs", watch.history(),
        counts="passes", scale=watch.scale,
    )  # fmt: skip


PAIRS = SolverSpec(
    name="pairs",
    solve=pairs,
    takes=frozenset({FixedSumQP}),
    losses=Losses.HINGES,
    starts_from=Start.DUAL,
    stopping=("gap",),
    counts="passes",
)


class _Descent:
    """The dual variables and weights of a run. Kept true by every step: w = X'beta, the bounds, and Σ beta.

    Attributes
    ----------
    duals : Duals
    iteration : int
        Number of passes over all rows after the first one.
    has_moved : bool
        Whether the last iteration has changed a dual variable.
    """

    def __init__(self, problem, settings, start):
        X, n = problem.X, problem.X.n_rows
        norms = X.squared_norms(settings.n_jobs)
        problem.check(norms)
        self._X, self._settings = X, settings
        self._is_threaded = X.threads(_SEVERAL_THREADS) == _SEVERAL_THREADS
        self._goal = Goal(problem.dual_sum, settings.tol, problem.objective_scale)
        beta = problem.trivial_bound[0] if start is None else _feasible(start, problem)
        self.duals = Duals(beta, np.ascontiguousarray(problem.upper), np.sqrt(norms))
        self._w = X.combine(beta, settings.n_jobs)
        lists = np.empty((3, n), np.uint32)
        self._work = Work(np.empty(n), np.empty((4, n)), lists, *np.zeros((2, X.n_columns)))
        self._state, self._log = np.zeros(SIZE_OF_STATE), np.zeros((_PASSES_PER_CALL, 3))
        self._state[PRIMAL] = np.inf
        self._steps_left = _STEPS_OF_ALL_ROWS if start is None else 0
        self.iteration, self._n_measured, self.has_moved = 0, 0, True

    @property
    def best_w(self):
        """The weights that have the lowest primal objective so far, a multiple of a w."""
        return self._state[BEST_FACTOR] * self._work.best_w

    @property
    def primal(self):
        """The lowest primal objective so far."""
        return float(self._state[PRIMAL])

    @property
    def dual(self):
        """The dual objective."""
        return float(self._state[DUAL])

    @property
    def passes(self):
        """Visits of rows divided by the number of rows."""
        return float(self._state[N_VISITS]) / self._X.n_rows

    def new_measurements(self):
        """Return iteration, passes, primal and dual objective of the passes of the last call of a method."""
        first, found = self.iteration - self._n_measured + 1, self._log[: self._n_measured].tolist()
        return [(first + k, visits / self._X.n_rows, *bounds) for k, (visits, *bounds) in enumerate(found)]

    def measure(self):
        """Make a pass over all rows; set the scores, the primal and the dual objective, and the best weights."""
        self._X.scores(self._w, self._settings.n_jobs, out=self._work.scores)
        measure(self.duals, self._w, self._work, self._goal.dual_sum, self._state)
        self._log[0] = self._state[N_VISITS], self.primal, self.dual
        self._n_measured = 1

    def improve(self):
        """Change dual variables, from the scores of the last pass, and make further passes."""
        self._n_measured, self.has_moved = 0, False
        if self._state[VALUE] - self._state[TAIL] <= 0.0:
            return
        if self._steps_left and self._step_of_all_rows():
            self._steps_left, self.has_moved = self._steps_left - 1, True
        elif self._is_threaded:
            self.has_moved = improve(self._X.rows, self.duals, self._w, self._work, self._state, self._goal) > 0
        else:
            self._advance()
            return
        self.iteration += 1
        self._recompute()
        self.measure()

    def _advance(self):
        """Make several iterations in compiled code; one of them, if there are callbacks."""
        until = _PASSES_BETWEEN_RECOMPUTATIONS - self.iteration % _PASSES_BETWEEN_RECOMPUTATIONS
        n_passes = min(until, 1 if self._settings.callbacks else _PASSES_PER_CALL)
        if self._settings.max_iter is not None:
            n_passes = min(n_passes, self._settings.max_iter - self.iteration)
        max_visits = self._state[N_VISITS] + _VALUES_PER_CALL * self._X.n_rows / max(1, self._X.n_stored)
        self._n_measured, self.has_moved = advance(
            self._X.rows, self.duals, self._w, self._work, self._state, self._goal, self._log[:n_passes], max_visits
        )
        self.iteration += self._n_measured
        self._recompute()

    def _recompute(self):
        """Compute w = X'beta again now and then, without the rounding errors that many small steps accumulate."""
        if self.iteration % _PASSES_BETWEEN_RECOMPUTATIONS == 0:
            self._w = self._X.combine(self.duals.beta, self._settings.n_jobs)

    def _step_of_all_rows(self):
        """Move towards the dual variables that fill the rows with the lowest scores, as far as is best."""
        towards = np.empty_like(self.duals.beta)
        fill_lowest(self.duals.upper, self._work.scores, self._state[LEVEL], self._goal.dual_sum, towards)
        w = self._X.combine(towards, self._settings.n_jobs)
        self._state[N_VISITS] += self._X.n_rows
        square, gap = 2.0 * half_square(w - self._w), self._state[VALUE] - self._state[TAIL]
        step = min(1.0, gap / square) if square > 0.0 else 0.0
        self.duals.beta[:] += step * (towards - self.duals.beta)
        np.minimum(self.duals.beta, self.duals.upper, out=self.duals.beta)
        self._w += step * (w - self._w)
        self._state[IS_INTERIOR] = float(step < 1.0)
        return step > 0.0


def _feasible(start, problem):
    """Return dual variables near to given ones, within their bounds and with the sum that is asked for."""
    beta = np.clip(np.asarray(start, dtype=np.float64), problem.lower, problem.upper)
    excess = float(beta.sum()) - problem.dual_sum
    room = beta if excess > 0.0 else problem.upper - beta
    size = float(room.sum())
    if size > 0.0:
        beta = np.clip(beta - min(1.0, abs(excess) / size) * np.sign(excess) * room, problem.lower, problem.upper)
    correct_sum(beta, problem)
    return beta
