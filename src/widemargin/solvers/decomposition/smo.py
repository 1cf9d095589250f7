"""`smo`: LIBSVM's algorithm, two multipliers at a time on the whole problem (Platt, 1998; Fan, Chen and Lin, 2005).

Each step picks the pair by second order information over all active multipliers, within one group for the ν forms,
and needs the kernel rows of that pair. Shrinking follows LIBSVM: every min(n, 1000) steps, less often in long runs, a
multiplier at a bound leaves if its gradient lies beyond that of every possible partner; when the violation first falls
below ten times the tolerance all come back once. If nobody sets a limit the steps end after 1000 for each row, and at
least a million (LIBSVM's limit is another). Here for fidelity and as the reference; `svmlight` is faster, and solves
what pairs do not.

The steps are compiled; they return to Python when a kernel row is missing, or when it is time to shrink.
"""

import numpy as np

from widemargin._runtime.compile import compiled
from widemargin.problems.formulations import KernelQP
from widemargin.solvers.contract import Status
from widemargin.solvers.decomposition.active_set import ActiveSet
from widemargin.solvers.decomposition.pair_step import best_partner, first_to_rise, move_pair, multipliers
from widemargin.solvers.decomposition.stopping import StallDetector, StoppingRule
from widemargin.solvers.decomposition.svmlight import solve
from widemargin.solvers.spec import SolverSpec, Start

_SHRINK_EVERY = 1000
_MOST_STEPS, _MOST_STEPS_OF_A_ROW = 1_000_000, 1000
_NEARLY_SOLVED = 10.0
_LEAST_ROWS = 4  # two candidates, one per group, and their partners


def smo(problem, settings, start=None):
    """Solve a KernelQP; return a KernelSolution. Parameters as those of `svmlight`."""
    return solve(_PairMethod(problem, settings, start), settings)


SMO = SolverSpec(
    name="smo",
    solve=smo,
    takes=frozenset({KernelQP}),
    starts_from=Start.DUAL,
    stopping=("gap", "kkt"),
    counts="iterations",
)


class _PairMethod:
    """The turns of `smo`, each of many steps. Sets `iteration`, the number of steps."""

    name = "smo"
    turns_between_measurements = 1

    def __init__(self, problem, settings, start):
        self.state = ActiveSet(problem, settings, start, min(_LEAST_ROWS, problem.K.n_rows))
        self.settings, self.iteration = settings, 0
        self._unshrunk_once = False
        self._stall, self.rule = StallDetector(), StoppingRule(settings)
        self._most_steps = settings.max_iter
        if self._most_steps is None:
            self._most_steps = max(_MOST_STEPS, _MOST_STEPS_OF_A_ROW * len(problem.start))
        self._load()

    def _load(self):
        """Take the active multipliers over from the state."""
        state = self.state
        self.violation = state.scan()
        self._M = multipliers(state.beta, state.F, state.lower, state.upper, state.diagonal, state.ends)
        self._lines = np.empty((2, len(state.index)), state.cache.values.dtype)

    def leave(self):
        """Hand f over to the state: it follows from the gradient."""
        self.state.f[self.state.position] = self._M.F - self.state.linear

    def status(self):
        """Return a Status if the problem is solved, or cannot be solved further; bring all back to find out."""
        state = self.state
        if self.violation <= self.rule.goal and not state.everything:
            self._bring_back()
        if self.violation <= self.rule.goal and state.everything and state.is_rough:
            self._recompute()
        if state.everything and self.rule.solved(state, self.violation):
            return Status.CONVERGED
        if self._stall.first_time:
            self._recompute()
            if self.rule.solved(state, self.violation):
                return Status.CONVERGED
        if self._stall.final:
            return Status.STALLED
        return Status.MAX_ITER if self.iteration >= self._most_steps else None

    def _bring_back(self):
        self.leave()
        self.state.bring_back()
        self._load()

    def _recompute(self):
        self.state.recompute()
        self._load()

    def turn(self):
        """Take steps until it is time to shrink."""
        state, cache = self.state, self.state.cache
        budget = min(max(len(state.problem.start), self.iteration // 10), _SHRINK_EVERY)
        budget = max(1, min(budget, self._most_steps - self.iteration))
        fallen, goal, before = 0.0, max(self.rule.goal, state.rounding()), self.iteration
        while budget > 0:
            steps, missing, part = _steps(
                cache.values, cache.slot_of, cache.used, cache.tick(), state.rows, state.position,
                self._M, self._lines, goal, budget,
            )  # fmt: skip
            self.iteration += steps
            budget -= steps
            fallen += part
            if missing < 0:
                break
            cache.fetch(np.array([missing]))
        self.leave()
        self.violation = state.scan()
        state.moved(self.iteration - before)
        self._stall.turn(fallen, self.violation, state.rounding(), state.objective())
        if self.settings.shrinking and not self._stall.called:
            self._shrink()

    def _shrink(self):
        """Set multipliers aside that no partner could move; once, when nearly solved, have all back first."""
        state = self.state
        if not self._unshrunk_once and self.violation <= _NEARLY_SOLVED * self.rule.goal:
            self._unshrunk_once = True
            if not state.everything:
                self._bring_back()
        smallest, largest = np.repeat(state.levels, np.diff(state.ends), axis=0).T
        above, below = np.greater(state.F, largest), np.less(state.F, smallest)
        beyond = ((state.beta <= state.lower) & above) | ((state.beta >= state.upper) & below)
        if beyond.any() and not beyond.all():
            state.set_aside(~beyond)
            self._load()


@compiled
def _steps(values, slot_of, used, now, rows, position, M, lines, tol, most):
    """Take at most `most` steps; return how many, the kernel row that is missing or −1, and by how much we fell."""
    fallen = 0.0
    for step in range(most):
        worst, best, first, second = 0.0, -1.0, 0, 0
        for group in range(M.ends.size - 1):
            violation = M.levels[group, 1] - M.levels[group, 0]
            if violation > 0.0:
                worst = max(worst, violation)
                i = first_to_rise(M, group)
                slot = slot_of[rows[position[i]]]
                if slot < 0:
                    return step, rows[position[i]], fallen
                used[slot] = now
                _line(values[np.uint64(slot)], position, M.ends[group], M.ends[group + 1], lines[0])
                gain, j = best_partner(M, group, i, lines[0])
                if gain > best:
                    best, first, second = gain, i, j
        if worst <= tol:
            return step, -1, fallen
        slot_i, slot_j = slot_of[rows[position[first]]], slot_of[rows[position[second]]]
        if slot_j < 0:
            return step, rows[position[second]], fallen
        used[slot_j] = now
        _line(values[np.uint64(slot_i)], position, 0, position.size, lines[0])
        _line(values[np.uint64(slot_j)], position, 0, position.size, lines[1])
        fallen += move_pair(M, first, second, lines[0], lines[1])
    return most, -1, fallen


@compiled
def _line(values, position, start, stop, line):
    """Set line[t] to the value at the position of multiplier t."""
    for t in range(start, stop):
        line[t] = values[np.uint64(position[t])]
