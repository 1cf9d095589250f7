"""`svmlight`: decomposition with large working sets (Joachims, 1999), pairs of multipliers inside.

A large problem begins with an eighth of its multipliers, picked at random, the others set aside: where to go from 0 is
learned from a few rows, at an eighth of the price. A turn takes a working set of q multipliers, optimises them with all
others fixed, and updates f = K beta:

1. select    the multipliers of the steepest feasible direction: of those that may rise the ones with the smallest
             gradient, of those that may fall the ones with the largest. Three quarters of the set stay from the turn
             before, the latest arrivals: their rows are in the cache, and each gets several turns before it leaves.
2. fetch     the missing kernel rows in one block
3. optimise  pairs within the set, on a q x q block in the processor's cache, until the violation is a tenth: steps
             conjugate to each other, and where these do not come to an end, Newton's on the free multipliers, for
             about as much time as pairs take
4. update    f by the rows of those that changed, in one pass
5. shrink    a multiplier that has been at a bound for many turns, with no partner to move it, is set aside; when the
             rest is solved all come back, f is completed, and whatever violates its condition goes on
"""

from dataclasses import replace

import numpy as np

from widemargin._runtime.compile import compiled
from widemargin._runtime.threads import single_threaded_blas
from widemargin.kernels.cache import rows_that_fit
from widemargin.problems.formulations import KernelQP
from widemargin.solvers.contract import KernelSolution, Status, Watch
from widemargin.solvers.decomposition.active_set import ActiveSet
from widemargin.solvers.decomposition.conjugate_pairs import Direction, optimise_block
from widemargin.solvers.decomposition.newton_on_free import newton_block, newton_cost
from widemargin.solvers.decomposition.pair_step import multipliers
from widemargin.solvers.decomposition.stopping import StallDetector, StoppingRule
from widemargin.solvers.spec import SolverSpec, Start

WORKING_SET = 1024  # at the beginning; of 128 .. 2048, by measurement: benchmarks/results/kernel.md
_LARGEST_WORKING_SET = 2048
_SMALLEST_WORKING_SET, _MULTIPLIERS_PER_PLACE = 256, 8
_LEAST_PLACES = 64  # however small the cache
_AT_ONCE = 512  # multipliers of a problem that is one working set
_TURNS_BEFORE_GROWTH = 100  # a problem that takes so many turns has many free multipliers: larger sets need fewer
_STAYING = 0.75  # fraction of the working set that stays
_INNER = 0.1  # the violation within the set is brought down to this fraction of that of the problem
_MOST_STEPS = 20_000  # pairs in one turn: some ten milliseconds before Python hears of it
_PAIR_COST = 2.5  # nanoseconds of a pair step for a multiplier of the working set
_TURNS_BEFORE_GROWTH_IF_SLOW = 3  # in which pairs do not come to an end
_PATIENCE = 30  # turns at a bound before a multiplier is set aside
_WORTHWHILE = 0.2  # fraction of the active multipliers that setting aside has to free
_TURNS_BETWEEN_MEASUREMENTS = 10
_SECONDS_AFTER_CTRL_C = 0.15  # to complete the gradient; what takes longer is bounded
_FIRST_PART, _LEAST_PART = 8, 2048  # a large problem begins with 1 / 8 of it, of at least so many multipliers
_FIRST_TOLERANCE = 0.1  # of that part


def svmlight(problem, settings, start=None):
    """Solve a KernelQP; return a KernelSolution.

    Parameters
    ----------
    problem : KernelQP
    settings : KernelSettings
    start : ndarray or None
        Multipliers to start from.
    """
    return solve(_Decomposition(problem, settings, start), settings)


SVMLIGHT = SolverSpec(
    name="svmlight",
    solve=svmlight,
    takes=frozenset({KernelQP}),
    starts_from=Start.DUAL,
    stopping=("gap", "kkt"),
    counts="iterations",
)
KERNEL_AUTO = replace(SVMLIGHT, name="auto")


def solve(method, settings):
    """Let a method take turns until its violation is within the tolerance or a limit is reached.

    The method has `name`, `state` (an ActiveSet), `rule` (a StoppingRule), `iteration`, `violation`,
    `turns_between_measurements`, and the verbs `status() -> Status or None`, `turn()`, and `leave()`, after which the
    state is that of the last step taken.
    """
    state, watch = method.state, Watch(settings)

    with watch, single_threaded_blas():
        while True:
            status = method.status()
            if state.everything and (status is not None or method.iteration % method.turns_between_measurements == 0):
                watch.record(method.iteration, state.passes, *state.measure())
            over = watch.should_stop(method.name, method.iteration, state.passes, method.violation)
            if status is not None or over:
                watch.status = watch.status if status is None else status
                break
            method.turn()
    method.leave()
    recomputed = _complete(state, watch.status)
    stretch = method.rule.stretch if watch.status is Status.CONVERGED else 1.0
    primal, dual = state.measure(stretch)
    if watch.last_iteration != method.iteration or stretch != 1.0 or recomputed:
        watch.record(method.iteration, state.passes, primal, dual)
    return KernelSolution(
        beta=state.beta.copy(),
        offsets=state.offsets(),
        primal=primal,
        dual=dual,
        violation=state.scan(),
        n_iter=method.iteration,
        n_computed=state.cache.n_computed,
        status=watch.status,
        solver=method.name,
        history=watch.history(),
        stretch=stretch,
        scale=method.rule.scale,
    )


def _complete(state, status):
    """Have all multipliers active, and f exact where rounding shows and there is time; return whether f is new."""
    state.bring_back(_SECONDS_AFTER_CTRL_C if status is Status.INTERRUPTED else np.inf)
    if status is Status.INTERRUPTED or not state.is_rough:
        return False
    state.recompute()
    return True


class _Decomposition:
    """The turns of `svmlight`. Sets `iteration`; `state` holds the multipliers."""

    name = "svmlight"
    turns_between_measurements = _TURNS_BETWEEN_MEASUREMENTS

    def __init__(self, problem, settings, start):
        self._n_groups = len(problem.ends) - 1
        size = max(settings.working_set or _usual_size(problem, settings.cache_size), 2 * self._n_groups)
        self._one_each = len(problem.start) == problem.K.n_rows
        self._largest = size if settings.working_set else _LARGEST_WORKING_SET
        self.state = ActiveSet(problem, settings, start, min(size, problem.K.n_rows))
        self._set_size(size)
        self.settings, self.iteration = settings, 0
        self._latest = np.empty(0, np.int64)  # the working set, latest arrivals last
        self._quiet = np.zeros(len(problem.start), np.int32)  # turns that each active multiplier has been settled
        self._patience = _PATIENCE
        self._stall = StallDetector()
        self.rule = StoppingRule(settings)
        self._goal = self.rule.goal  # what the violation of the active multipliers has to come down to
        self._pair_time, self._unfinished = 0.0, 0  # nanoseconds since Newton's last step; turns that pairs left undone
        self._from_nothing = start is None and not problem.start.any()

    def _begin_with_a_part(self):
        """Set all but a part of a large problem aside."""
        problem = self.state.problem
        size = problem.K.n_rows // _FIRST_PART
        if size < _LEAST_PART:
            return
        part = np.zeros(problem.K.n_rows, bool)
        part[_some_rows(problem, size)] = True
        self.state.set_aside(part[problem.row])
        self._quiet = np.zeros(len(self.state.index), np.int32)
        self._goal, self._patience = max(self._goal, _FIRST_TOLERANCE), _PATIENCE // 2
        self.violation = self.state.scan()

    def _set_size(self, size):
        """Divide the working set: of each group as many to rise and to fall, one at least; the rest stays."""
        self._size = size
        self._staying = size - 2 * self._n_groups * max(1, round((1 - _STAYING) * size / (2 * self._n_groups)))
        problem = self.state.problem
        self._directions = np.empty((2, min(size, len(problem.start))))
        self._block = Block(min(size, len(problem.start)), problem.K.n_rows, self.state.cache.values.dtype)

    def _grow(self):
        """Double the working set now and then, if the cache holds that many rows; take all if pairs come to no end."""
        slow = self._unfinished >= _TURNS_BEFORE_GROWTH_IF_SLOW
        size = self._largest if slow else min(2 * self._size, self._largest)
        size = min(size, self.state.cache.n_slots, len(self.state.problem.start))
        if (slow or self.iteration % _TURNS_BEFORE_GROWTH == 0) and size > self._size:
            self._set_size(size)

    def status(self):
        """Return a Status if the problem is solved, or cannot be solved further; bring all back to find out."""
        state = self.state
        self.violation = state.scan()
        if self.violation <= self._goal and not state.everything:
            self._bring_back(state.bring_back)
        if self.violation <= self.rule.goal and state.everything and state.is_rough:
            self._bring_back(state.recompute)
        if state.everything and self.rule.solved(state, self.violation):
            return Status.CONVERGED
        if self._stall.first_time:
            self._bring_back(state.recompute)
            if self.rule.solved(state, self.violation):
                return Status.CONVERGED
        self._goal = self.rule.goal if state.everything else self._goal
        return Status.STALLED if self._stall.final else None

    def _bring_back(self, verb):
        """Have all multipliers active by one of the state's verbs, with more patience from now on."""
        self._latest = self.state.index[self._latest]
        verb()
        self._quiet = np.zeros(len(self.state.index), np.int32)
        self._patience *= 2
        self._goal = self.rule.goal
        self.violation = self.state.scan()

    def leave(self):
        """Nothing to hand over: the state changes only at the end of a turn."""

    def turn(self):
        """Optimise one working set."""
        state = self.state
        if self.settings.shrinking and self._from_nothing and self.iteration == 0:
            self._begin_with_a_part()
        elif self.settings.shrinking and not self._stall.called:
            self._shrink()
        chosen = self._select()
        rows = state.position[chosen]
        slots = self._fetch(state.rows[rows])
        block = self._block.take(state.cache.values, slots, rows, state.rows[rows])
        inside = multipliers(
            state.beta[chosen],
            state.F[chosen],
            state.lower[chosen],
            state.upper[chosen],
            state.diagonal[chosen],
            np.searchsorted(chosen, state.ends),
        )
        rounding = state.rounding()
        goal = max(0.5 * self.rule.goal, rounding)
        if len(chosen) < len(state.index):
            goal = max(goal, _INNER * self.violation)
        fallen = optimise_block(block, inside, self._direction(len(chosen)), goal, _MOST_STEPS)
        by_newton = np.max(inside.levels[:, 1] - inside.levels[:, 0]) > goal and self._is_due(inside)
        if by_newton:
            fallen += newton_block(block, inside, goal)
        share = len(chosen) / len(state.problem.start)
        self._stall.turn(fallen, self.violation, rounding, state.objective(), share, by_newton and share == 1.0)
        state.move(chosen, inside.beta, slots)
        self.iteration += 1
        self._grow()

    def _is_due(self, inside):
        """Return whether pairs that did not come to an end have taken as long by now as Newton's steps do."""
        self._unfinished += 1
        self._pair_time += _PAIR_COST * _MOST_STEPS * len(inside.beta)
        n_free = np.count_nonzero((inside.beta > inside.lower) & (inside.beta < inside.upper))
        if self._pair_time < newton_cost(len(inside.beta), n_free):
            return False
        self._pair_time = 0.0
        return True

    def _direction(self, size):
        """Return memory for directions of so many multipliers."""
        return Direction(*self._directions[:, :size])

    def _fetch(self, rows):
        """Return the cache's slots of kernel rows, which occur twice if two multipliers of a row were chosen."""
        if self._one_each:
            return self.state.cache.fetch(rows)
        distinct, place = np.unique(rows, return_inverse=True)
        return self.state.cache.fetch(distinct)[place]

    def _select(self):
        """Return the working set, ascending; keep the order of arrival."""
        state = self.state
        if self._size >= len(state.index):
            self._latest = np.arange(len(state.index))
            return self._latest
        latest = self._latest[max(0, len(self._latest) - self._staying) :]
        state.rising[latest], state.falling[latest] = np.inf, np.inf
        arrivals = (self._size - len(latest)) // (2 * self._n_groups)
        new = []
        for g, (smallest, largest) in enumerate(state.levels):
            begin, end = state.ends[g], state.ends[g + 1]
            for candidates, limit in ((state.rising, largest), (state.falling, -smallest)):
                best = begin + _smallest(candidates[begin:end], arrivals)
                best = best[candidates[best] < limit]
                state.falling[best] = np.inf
                new.append(best)
        self._latest = np.concatenate([latest, *new])
        return np.sort(self._latest)

    def _shrink(self):
        """Count for how many turns each multiplier has been settled; set those aside that were for long enough."""
        state = self.state
        n_settled = _count_settled(
            state.F, state.beta, state.lower, state.upper, state.ends, state.levels, self._quiet, self._patience
        )
        if n_settled <= _WORTHWHILE * len(state.index):
            return
        remain = self._quiet < self._patience
        remain[self._latest] = True
        place = np.cumsum(remain) - 1
        self._latest, self._quiet = place[self._latest], self._quiet[remain]
        state.set_aside(remain)
        self.violation = state.scan()


def _usual_size(problem, megabytes):
    """Return how large a working set is if nobody says: everything at once, or a part that grows with the problem."""
    n_multipliers = len(problem.start)
    if n_multipliers <= _AT_ONCE:
        return n_multipliers
    size = min(max(n_multipliers // _MULTIPLIERS_PER_PLACE, _SMALLEST_WORKING_SET), WORKING_SET)
    return min(size, max(rows_that_fit(problem.K, megabytes), _LEAST_PLACES))


def _some_rows(problem, size):
    """Return random rows, as many whose multiplier may rise as of the others unless there are too few of a kind."""
    random = np.random.default_rng(0)
    may_rise = np.zeros(problem.K.n_rows, bool)
    may_rise[problem.row[problem.upper > 0]] = True
    fewer, more = sorted((np.flatnonzero(may_rise), np.flatnonzero(~may_rise)), key=len)
    n_fewer = min(len(fewer), size // 2)
    return np.concatenate(
        [random.choice(fewer, n_fewer, replace=False), random.choice(more, size - n_fewer, replace=False)]
    )


def _smallest(values, count):
    """Return the indices of the `count` smallest values, in no order."""
    if count >= len(values):
        return np.arange(len(values))
    return np.argpartition(values, count)[:count]


class Block:
    """The kernel values among the rows of a working set, those of rows that stayed taken over from the block before.

    Picking single values out of the cache's long lines is slow, each is a line of memory of its own; only the rows that
    are new have to be picked.
    """

    def __init__(self, size, n_rows, dtype):
        self._memory = np.empty((2, size**2), dtype)
        self._before = np.empty((0, 0), dtype)
        self._place = np.full(n_rows, -1)  # of each row in the block before
        self._rows = np.empty(0, np.int64)

    def take(self, values, slots, columns, rows):
        """Return the block of these rows, that are values[slots], at these columns."""
        size = len(rows)
        block = self._memory[0][: size**2].reshape(size, size)
        self._memory = self._memory[::-1]
        _gather(values, slots, columns, self._place[rows], self._before, block)
        self._place[self._rows] = -1
        self._place[rows] = np.arange(size)
        self._before, self._rows = block, rows
        return block


@compiled
def _gather(values, slots, columns, place, before, block):
    """Set block[a, b] = values[slots[a], columns[b]], from before[place[a], place[b]] where both were there."""
    for a in range(slots.size):
        if place[a] < 0:
            line, target = values[np.uint64(slots[a])], block[np.uint64(a)]
            for b in range(columns.size):
                target[b] = line[np.uint64(columns[b])]
    for a in range(slots.size):
        if place[a] >= 0:
            source, target = before[np.uint64(place[a])], block[np.uint64(a)]
            for b in range(columns.size):
                target[b] = source[np.uint64(place[b])] if place[b] >= 0 else block[np.uint64(b), np.uint64(a)]


@compiled
def _count_settled(F, beta, lower, upper, ends, levels, quiet, patience):
    """Count turns at a bound where no partner could move a multiplier; return how many have patience turns."""
    total = 0
    for g in range(levels.shape[0]):
        smallest, largest = levels[g, 0], levels[g, 1]
        for t in range(ends[g], ends[g + 1]):
            settled = (beta[t] <= lower[t] and F[t] > largest) or (beta[t] >= upper[t] and F[t] < smallest)
            quiet[t] = quiet[t] + 1 if settled else 0
            total += quiet[t] >= patience
    return total
