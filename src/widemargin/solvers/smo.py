"""`smo`: LIBSVM's algorithm, two multipliers at a time on the whole problem (Platt, 1998; Fan, Chen and Lin, 2005).

Each step picks the pair by second order information over all active multipliers, within one group for the ν forms,
and needs the kernel rows of that pair. Shrinking follows LIBSVM: every min(n, 1000) steps a multiplier at a bound
leaves if its gradient lies beyond every gradient that could be its partner's; when the violation first falls below ten times the
tolerance all come back once. Here for fidelity and as the reference; `svmlight` is faster.

The steps are compiled; they return to Python when a kernel row is missing, when it is time to shrink, or when they are done.
"""

import numpy as np

from widemargin._compiled import compiled
from widemargin.solvers.activeset import ActiveSet
from widemargin.solvers.contract import Status
from widemargin.solvers.decomposition import solve
from widemargin.solvers.pairs import best_partner, extremes, first_to_rise, move_pair, multipliers

_SHRINK_EVERY = 1000
_NEARLY_SOLVED = 10.0
_LEAST_ROWS = 4  # two candidates, one per group, and their partners
_FUTILE_TURNS = 3


def smo(problem, settings, start=None):
    """Solve a KernelQP; return a KernelSolution. Parameters as those of `svmlight`."""
    return solve(_PairMethod(problem, settings, start), settings)


class _PairMethod:
    """The turns of `smo`, each of many steps. Sets `iteration`, the number of steps."""

    name = "smo"
    turns_between_measurements = 1

    def __init__(self, problem, settings, start):
        self.state = ActiveSet(problem, settings, start, min(_LEAST_ROWS, problem.K.n_rows))
        self.settings, self.iteration = settings, 0
        self._unshrunk_once = False
        self._futile = 0
        self._load()

    @property
    def passes(self):
        """Kernel rows computed, as a fraction of all."""
        return self.state.cache.n_computed / self.state.problem.K.n_rows

    def _load(self):
        """Take the active multipliers over from the state."""
        state = self.state
        self._M = multipliers(
            state.beta, state.gradient(), state.lower, state.upper, state.diagonal, state.ends
        )  # fmt: skip
        self._lines = np.empty((2, len(state.index)), state.cache.values.dtype)
        self._violation = state.violation(self._M.F)

    def _store(self):
        """Hand f over to the state: it follows from the gradient."""
        self.state.f[self.state.position] = self._M.F - self.state.linear

    def solved(self, watch):
        """Return whether the whole problem is solved; bring multipliers back to find out."""
        state, tol = self.state, self.settings.tol
        all_active = len(state.index) == len(state.problem.start)
        if self._violation <= tol and not all_active:
            self._bring_back()
        if self._violation <= tol:
            watch.status = Status.CONVERGED
        elif self._futile >= _FUTILE_TURNS:
            watch.status = Status.STALLED
        return watch.status is not None

    def _bring_back(self):
        self._store()
        self.state.bring_back()
        self._load()

    def turn(self):
        """Take steps until it is time to shrink."""
        state, cache = self.state, self.state.cache
        budget = min(len(state.problem.start), _SHRINK_EVERY)
        if self.settings.max_iter is not None:
            budget = max(1, min(budget, self.settings.max_iter - self.iteration))
        before = state.beta.copy()
        while budget > 0:
            steps, missing = _steps(
                cache.values, cache.slot_of, cache.used, cache.tick(), state.rows, state.position,
                self._M, self._lines, self.settings.tol, budget,
            )  # fmt: skip
            self.iteration += steps
            budget -= steps
            if missing < 0:
                break
            cache.fetch(np.array([missing]))
        self._futile = self._futile + 1 if np.array_equal(before, state.beta) else 0
        self._store()
        self._violation = state.violation(self._M.F)
        if self.settings.shrinking:
            self._shrink()

    def _shrink(self):
        """Set multipliers aside that no partner could move; once, when nearly solved, have all back first."""
        if not self._unshrunk_once and self._violation <= _NEARLY_SOLVED * self.settings.tol:
            self._unshrunk_once = True
            if len(self.state.index) < len(self.state.problem.start):
                self._bring_back()
        state, F = self.state, self._M.F
        remain = np.ones(len(F), bool)
        for begin, end in zip(state.ends[:-1], state.ends[1:], strict=True):
            here = slice(begin, end)
            smallest, largest = extremes(self._M, begin, end)
            beyond_above = (state.beta[here] <= state.lower[here]) & (F[here] > largest)
            beyond_below = (state.beta[here] >= state.upper[here]) & (F[here] < smallest)
            remain[here] = ~(beyond_above | beyond_below)
        if not remain.all() and remain.any():
            state.set_aside(remain)
            self._load()


@compiled
def _steps(values, slot_of, used, now, rows, position, M, lines, tol, most):
    """Take at most `most` steps; return how many, and the kernel row that is missing, −1 if none is."""
    for step in range(most):
        worst, best, first, second = 0.0, -1.0, 0, 0
        for group in range(M.ends.size - 1):
            start, stop = M.ends[group], M.ends[group + 1]
            smallest, largest = extremes(M, start, stop)
            if not smallest < largest:
                continue
            worst = max(worst, largest - smallest)
            i = first_to_rise(M, smallest, start, stop)
            slot = slot_of[rows[position[i]]]
            if slot < 0:
                return step, rows[position[i]]
            used[slot] = now
            _line(values[np.uint64(slot)], position, start, stop, lines[0])
            gain, j = best_partner(M, i, lines[0], start, stop)
            if gain > best:
                best, first, second = gain, i, j
        if worst <= tol:
            return step, -1
        slot_i, slot_j = slot_of[rows[position[first]]], slot_of[rows[position[second]]]
        if slot_j < 0:
            return step, rows[position[second]]
        used[slot_j] = now
        _line(values[np.uint64(slot_i)], position, 0, position.size, lines[0])
        _line(values[np.uint64(slot_j)], position, 0, position.size, lines[1])
        move_pair(M, first, second, lines[0], lines[1])
    return most, -1


@compiled
def _line(values, position, start, stop, line):
    """Set line[t] to the value at the position of multiplier t."""
    for t in range(start, stop):
        line[t] = values[np.uint64(position[t])]
