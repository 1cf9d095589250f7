"""`smo`: the algorithm of LIBSVM, pair steps on the whole problem (Platt, 1998; Fan, Chen and Lin, 2005).

Each step selects a pair of active dual variables by second order information, within one group for the ν formulations,
and needs the kernel rows of that pair. Shrinking follows LIBSVM: every min(n, 1000) steps, less often in
long runs on small problems, a dual variable at a bound is removed if it forms no violating pair with an active one.
When the violation first falls below ten times the tolerance, all dual variables become active again once. Without
`max_iter`, the limit is 1000 steps for each dual variable, and at least a million, which differs from LIBSVM. The
solver is the reference; `svmlight` is faster, and also solves problems on which pair steps do not converge.

The steps are compiled. They return to Python when a kernel row is not in the cache, and when it is time to shrink.
"""

from dataclasses import replace

import numpy as np

from widemargin._runtime.compile import compiled
from widemargin.solvers.contract import Status
from widemargin.solvers.decomposition.active_set import ActiveSet
from widemargin.solvers.decomposition.pair_step import dual_variables, move_pair, select_i, select_j
from widemargin.solvers.decomposition.stopping import StallDetector, StoppingRule
from widemargin.solvers.decomposition.svmlight import solve
from widemargin.solvers.decomposition.whole_matrix import SVMLIGHT
from widemargin.solvers.spec import writes_none

_STEPS_BETWEEN_SHRINKING = 1000  # at most
_MAX_STEPS, _MAX_STEPS_PER_VARIABLE = 1_000_000, 1000  # the larger of the two limits counts
_UNSHRINK_VIOLATION = 10.0  # times the goal: below it all dual variables become active again, once
_MIN_CACHED_ROWS = 4  # an i and a j for each of two groups


def smo(problem, settings, start=None):
    """Solve a KernelQP; return a KernelSolution. Parameters as those of `svmlight`."""
    return solve(_PairMethod(problem, settings, start), settings)


SMO = replace(SVMLIGHT, name="smo", solve=smo, writes_checkpoints=writes_none, together=None)


class _PairMethod:
    """The method of `smo` for `solve`. `iteration` is the number of steps; an iteration of `solve` takes many."""

    name, limits_blas, writes_checkpoints = "smo", True, False
    iterations_between_measurements = 1

    def __init__(self, problem, settings, start):
        self.state = ActiveSet(problem, settings, start, min(_MIN_CACHED_ROWS, problem.K.n_rows))
        self.settings, self.iteration = settings, 0
        self._was_unshrunk = False
        self._stall, self.rule = StallDetector(), StoppingRule(settings)
        self._max_steps = settings.max_iter
        if self._max_steps is None:
            self._max_steps = max(_MAX_STEPS, _MAX_STEPS_PER_VARIABLE * len(problem.start))
        self._load()

    def _load(self):
        """Read the active dual variables from the state."""
        state = self.state
        self.violation = state.scan()
        self._variables = dual_variables(state.beta, state.F, state.lower, state.upper, state.diagonal, state.ends)
        self._kernel_rows = np.empty((2, len(state.index)), state.cache.values.dtype)  # of i and j

    def write_back(self):
        """Write f = F − p into the state; beta is shared with it."""
        self.state.f[self.state.position] = self._variables.F - self.state.linear

    def progress(self, seconds):
        """Return the kernel rows computed; those found in the cache are not counted."""
        return {"rows": self.state.n_computed}

    def status(self):
        """Return a Status if the problem is solved or no progress is possible, else None.

        If the active dual variables are solved, all become active first.
        """
        state = self.state
        if self.violation <= self.rule.goal and not state.all_active:
            self._unshrink()
        if self.violation <= self.rule.goal and state.all_active and state.needs_recomputation:
            self._recompute()
        if state.all_active and self.rule.is_solved(state, self.violation):
            return Status.CONVERGED
        if self._stall.stalls_first_time():
            self._recompute()
            if self.rule.is_solved(state, self.violation):
                return Status.CONVERGED
        if self._stall.is_final:
            return Status.STALLED
        return Status.MAX_ITER if self.iteration >= self._max_steps else None

    def _unshrink(self):
        """Make all dual variables active."""
        self.write_back()
        self.state.unshrink()
        self._load()

    def _recompute(self):
        """Make all dual variables active and compute the gradient from scratch."""
        self.state.recompute()
        self._load()

    def iterate(self):
        """Take steps until it is time to shrink."""
        state, cache = self.state, self.state.cache
        steps_left = min(max(len(state.problem.start), self.iteration // 10), _STEPS_BETWEEN_SHRINKING)
        steps_left = max(1, min(steps_left, self._max_steps - self.iteration))
        decrease, goal, before = 0.0, max(self.rule.goal, state.gradient_rounding()), self.iteration
        while steps_left > 0:
            n_steps, missing, part = _steps(
                cache.values, cache.slot_of, cache.used, cache.tick(), state.rows, state.position,
                self._variables, self._kernel_rows, goal, steps_left,
            )  # fmt: skip
            self.iteration += n_steps
            steps_left -= n_steps
            decrease += part
            if missing < 0:
                break
            cache.fetch(np.array([missing]))
        self.write_back()
        self.violation = state.scan()
        state.record_pair_steps(self.iteration - before)
        self._stall.record(decrease, self.violation, state.gradient_rounding(), state.objective())
        if self.settings.shrinking and not self._stall.has_stalled_once:
            self._shrink()

    def _shrink(self):
        """Remove dual variables at bounds that form no violating pair; once, near the solution, unshrink before."""
        state = self.state
        if not self._was_unshrunk and self.violation <= _UNSHRINK_VIOLATION * self.rule.goal:
            self._was_unshrunk = True
            if not state.all_active:
                self._unshrink()
        smallest, largest = np.repeat(state.extremes, np.diff(state.ends), axis=0).T
        above, below = np.greater(state.F, largest), np.less(state.F, smallest)
        removable = ((state.beta <= state.lower) & above) | ((state.beta >= state.upper) & below)
        if removable.any() and not removable.all():
            state.shrink(~removable)
            self._load()


@compiled
def _steps(values, slot_of, used, now, rows, position, D, kernel_rows, tol, max_steps):
    """Take pair steps until the violation is at most tol, max_steps are done, or a kernel row is not in the cache.

    Returns the number of steps, the missing kernel row or −1, and the decrease of the objective.
    """
    decrease = 0.0
    for step in range(max_steps):
        largest, best, best_i, best_j = 0.0, -1.0, 0, 0
        for group in range(D.ends.size - 1):
            violation = D.extremes[group, 1] - D.extremes[group, 0]
            if violation > 0.0:
                largest = max(largest, violation)
                i = select_i(D, group)
                slot = slot_of[rows[position[i]]]
                if slot < 0:
                    return step, rows[position[i]], decrease
                used[slot] = now
                _gather(values[np.uint64(slot)], position, D.ends[group], D.ends[group + 1], kernel_rows[0])
                gain, j = select_j(D, group, i, kernel_rows[0])
                if gain > best:
                    best, best_i, best_j = gain, i, j
        if largest <= tol:
            return step, -1, decrease
        slot_i, slot_j = slot_of[rows[position[best_i]]], slot_of[rows[position[best_j]]]
        if slot_j < 0:
            return step, rows[position[best_j]], decrease
        used[slot_j] = now
        _gather(values[np.uint64(slot_i)], position, 0, position.size, kernel_rows[0])
        _gather(values[np.uint64(slot_j)], position, 0, position.size, kernel_rows[1])
        decrease += move_pair(D, best_i, best_j, kernel_rows[0], kernel_rows[1])
    return max_steps, -1, decrease


@compiled
def _gather(values, position, start, stop, out):
    """Set out[t] = values[position[t]], the kernel value of dual variable t, from start to stop."""
    for t in range(start, stop):
        out[t] = values[np.uint64(position[t])]
