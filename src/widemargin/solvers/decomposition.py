"""`svmlight`: decomposition with large working sets (Joachims, 1999), pairs of multipliers inside.

A turn takes a working set of q multipliers, optimises them with all others fixed, and updates f = K beta:

1. select   the multipliers of the steepest feasible direction: those that may rise with the smallest gradient, those that may fall
            with the largest. Three quarters of the set stay from the turn before, the latest arrivals: most rows are
            in the cache, and a multiplier gets several turns before it has to leave.
2. fetch    the missing kernel rows in one block
3. optimise pairs within the set, on a q x q block in the processor's cache, until the violation is a tenth
4. update   f by the rows of those that changed, one pass over the block
5. shrink   a multiplier that has been at a bound, with its condition met, for many turns is set aside; when the rest is
            solved all come back, f is completed, and whatever violates its condition goes on
"""

import numpy as np

from widemargin._compiled import compiled
from widemargin.solvers.activeset import ActiveSet
from widemargin.solvers.contract import KernelSolution, Status, Watch
from widemargin.solvers.pairs import multipliers, optimise_block

WORKING_SET = 512  # of 128 .. 2048, by measurement: benchmarks/results/kernel.md
_STAYING = 0.75  # fraction of the working set that stays
_INNER = 0.1  # the violation within the set is brought down to this fraction of that of the problem
_MOST_STEPS = 20_000  # pairs in one turn: some ten milliseconds before Python hears of it
_PATIENCE = 10  # turns at a bound before a multiplier is set aside
_WORTHWHILE = 0.2  # fraction of the active multipliers that setting aside has to free
_TURNS_BETWEEN_MEASUREMENTS = 10
_FUTILE_TURNS = 3  # turns in which nothing moves before f is computed anew, and again before giving up


def svmlight(problem, settings, start=None):
    """Solve a KernelQP; return a KernelSolution.

    Parameters
    ----------
    problem : KernelQP
    settings : KernelSettings
    start : ndarray or None
        Multipliers to start from.
    """
    size = min(settings.working_set or WORKING_SET, len(problem.start))
    return solve(_Decomposition(problem, settings, start, size), settings)


def solve(method, settings):
    """Let a method take turns until its violation is within the tolerance or a limit is reached."""
    watch = Watch(settings)
    state = method.state
    with watch:
        watch.measured(0, 0.0, *state.measure())
        while not method.solved(watch):
            method.turn()
            if state.everything and method.iteration % method.turns_between_measurements == 0:
                watch.measured(method.iteration, method.passes, *state.measure())
            if watch.turn(method.name, method.iteration, method.passes):
                break
    state.bring_back()
    F = state.gradient()
    primal, dual = state.measure()
    watch.measured(method.iteration, method.passes, primal, dual)
    return KernelSolution(
        beta=state.beta.copy(),
        offsets=state.offsets(F),
        primal=primal,
        dual=dual,
        violation=state.violation(F),
        n_iter=method.iteration,
        n_computed=state.cache.n_computed,
        status=watch.status,
        solver=method.name,
        history=watch.history(),
    )


class _Decomposition:
    """The turns of `svmlight`. Sets `iteration`; `state` holds the multipliers."""

    name = "svmlight"
    turns_between_measurements = _TURNS_BETWEEN_MEASUREMENTS

    def __init__(self, problem, settings, start, size):
        self.state = ActiveSet(problem, settings, start, min(size, problem.K.n_rows))
        self.settings, self.size, self.iteration = settings, size, 0
        self._latest = np.empty(0, np.int64)  # the working set, latest arrivals last
        self._quiet = np.zeros(len(problem.start), np.int64)  # turns that each active multiplier has been settled
        self._patience = _PATIENCE
        self._futile = 0

    @property
    def passes(self):
        """Kernel rows computed, as a fraction of all."""
        return self.state.cache.n_computed / self.state.problem.K.n_rows

    def solved(self, watch):
        """Return whether the whole problem is solved, or cannot be solved further; bring multipliers back to find out."""
        state, tol = self.state, self.settings.tol
        self._F = state.gradient()
        self._violation = state.violation(self._F)
        if self._violation <= tol and len(state.index) < len(state.problem.start):
            self._bring_back()
        if self._violation <= tol:
            watch.status = Status.CONVERGED
        elif self._futile >= 2 * _FUTILE_TURNS:
            watch.status = Status.STALLED
        elif self._futile == _FUTILE_TURNS:
            self._bring_back()
            state.recompute()
            self._F = state.gradient()
            self._violation = state.violation(self._F)
        return watch.status is not None

    def _bring_back(self):
        state = self.state
        latest = state.index[self._latest]
        state.bring_back()
        self._latest = latest
        self._quiet = np.zeros(len(state.index), np.int64)
        self._patience *= 2  # it was too short: something left that had to come back, or everything is solved
        self._F = state.gradient()
        self._violation = state.violation(self._F)

    def turn(self):
        """Optimise one working set."""
        state = self.state
        chosen = self._select()
        rows = state.position[chosen]
        distinct, place = np.unique(rows, return_inverse=True)
        slots = state.cache.fetch(state.rows[distinct])[place]
        ends = np.searchsorted(chosen, state.ends)
        block = np.empty((len(chosen), len(chosen)), state.cache.values.dtype)
        _gather(state.cache.values, slots, rows, block)
        before, after = state.beta[chosen], state.beta[chosen]
        inside = multipliers(
            after, self._F[chosen], state.lower[chosen], state.upper[chosen], state.diagonal[chosen], ends
        )
        goal = max(_INNER * self._violation, 0.5 * self.settings.tol)
        optimise_block(block, inside, goal, _MOST_STEPS)
        moved = np.flatnonzero(after != before)
        state.beta[chosen] = after
        if len(moved):
            state.add_rows(slots[moved], after[moved] - before[moved])
        self._futile = 0 if len(moved) else self._futile + 1
        self.iteration += 1
        if self.settings.shrinking:
            self._shrink()

    def _select(self):
        """Return the working set, ascending; keep the order of arrival."""
        state, F = self.state, self._F
        latest = self._latest[-int(_STAYING * self.size) :] if self.size > 2 else self._latest[:0]
        rising = np.where(state.beta < state.upper, F, np.inf)
        falling = np.where(state.beta > state.lower, -F, np.inf)
        groups = [slice(*ends) for ends in zip(state.ends[:-1], state.ends[1:], strict=True)]
        limits = [(-falling[g].min(initial=np.inf), -rising[g].min(initial=np.inf)) for g in groups]
        rising[latest], falling[latest] = np.inf, np.inf
        half = max(1, (self.size - len(latest)) // (2 * len(groups)))
        new = []
        for group, group_limits in zip(groups, limits, strict=True):
            for candidates, limit in zip((rising, falling), group_limits, strict=True):
                best = group.start + _smallest(candidates[group], half)
                best = best[candidates[best] < limit]
                falling[best] = np.inf
                new.append(best)
        self._latest = np.concatenate([latest, *new])
        return np.sort(self._latest)

    def _shrink(self):
        """Count for how many turns each multiplier has been settled at a bound; set those aside that were long enough."""
        state = self.state
        F = state.gradient()
        distance = F - np.repeat(state.offsets(F), np.diff(state.ends))
        settled = ((state.beta <= state.lower) & (distance > 0)) | ((state.beta >= state.upper) & (distance < 0))
        self._quiet = np.where(settled, self._quiet + 1, 0)
        remain = self._quiet < self._patience
        remain[self._latest] = True
        if np.sum(~remain) > _WORTHWHILE * len(remain):
            place = np.cumsum(remain) - 1
            self._latest, self._quiet = place[self._latest], self._quiet[remain]
            state.set_aside(remain)


def _smallest(values, count):
    """Return the indices of the `count` smallest values, in no order."""
    if count >= len(values):
        return np.arange(len(values))
    return np.argpartition(values, count)[:count]


@compiled
def _gather(values, slots, columns, block):
    """Set block[a, b] = values[slots[a], columns[b]]."""
    for a in range(slots.size):
        line, target = values[np.uint64(slots[a])], block[np.uint64(a)]
        for b in range(columns.size):
            target[b] = line[np.uint64(columns[b])]
