"""`svmlight`: decomposition with large working sets (Joachims, 1999).

Each iteration selects a working set of q dual variables, optimises them with all others fixed, and updates f = K beta:

1. select    the dual variables of the steepest feasible direction: those that can increase and have the smallest
             gradients, and those that can decrease and have the largest. Three quarters of the working set, three
             fifths if there are many rows, are the latest additions of the previous one: their kernel rows are in the
             cache, and each remains for several iterations. Among the others, a violation counts less if the kernel row
             is not in the cache, except for the largest violations.
2. fetch     the kernel rows that are not in the cache, in one block
3. optimise  the working set, on a q x q block in the processor's cache, until its violation is a tenth of that of the
             problem: conjugate pair steps, and if these do not converge, Newton steps on the free dual variables, for
             about the same time
4. update    f by the kernel rows of the dual variables that changed, in one pass
5. shrink    a dual variable that has been at a bound for many iterations, without a violating pair, is removed from the
             active set. When the active dual variables are solved, all become active, f is completed, and iterations
             continue if there are violations.

If pair steps do not converge, which is so with a large C, or violations are hardly smaller after some working sets, and
the kernel matrix has a low rank, all dual variables are optimised at once (`low_rank`), before and in place of further
working sets. If there are more free dual variables than a working set holds, few bounds are still wrong, and working
sets would take long to the end, all free ones are optimised at once (`free_block`).

A problem of some thousand rows is first solved roughly for a random eighth of them, the others being removed from the
active set. Most of the way from zero to the solution is then made at an eighth of the cost. Problems of
20,000 or 50,000 rows and more are solved in parts, each of them by this method: `large_parts`. One-class machines of
some thousand rows start from the solution for a sample of their rows: `sampled_start`.
"""

from contextlib import nullcontext
from functools import partial

import numpy as np

from widemargin._runtime.threads import single_threaded_blas
from widemargin.kernels.cache import rows_that_fit
from widemargin.kernels.single_rows import ready_rows
from widemargin.solvers.contract import KernelSolution, Status, Watch
from widemargin.solvers.decomposition.active_set import MAX_EXACT_PRODUCTS_AFTER_STALL, ActiveSet
from widemargin.solvers.decomposition.conjugate_pairs import no_direction, optimise_block
from widemargin.solvers.decomposition.forecast import Forecast
from widemargin.solvers.decomposition.free_block import FreeBlock
from widemargin.solvers.decomposition.kernel_block import KernelBlock
from widemargin.solvers.decomposition.large_parts import LargeParts, takes_large_parts
from widemargin.solvers.decomposition.low_rank import WholeProblem, whole_nanoseconds
from widemargin.solvers.decomposition.newton_on_free import newton_block, newton_nanoseconds
from widemargin.solvers.decomposition.pair_step import dual_variables
from widemargin.solvers.decomposition.sampled_start import random_rows, sampled_start
from widemargin.solvers.decomposition.scans import largest_violations
from widemargin.solvers.decomposition.stopping import Deadline, StallDetector, StoppingRule

# Sizes of working sets, in dual variables. By default, problems of up to _WHOLE_PROBLEM are one working set; else the
# first one is an eighth of the problem, within limits (measured for 128 to 2048: benchmarks/results/kernel.md).
_WHOLE_PROBLEM = 512
_WORKING_SET_DIVISOR = 8
_SMALLEST_FIRST_WORKING_SET, _LARGEST_FIRST_WORKING_SET = 256, 1024
_SMALLEST_WORKING_SET = 64  # even if the cache holds fewer rows
_LARGEST_WORKING_SET = 2048
_ITERATIONS_BETWEEN_GROWTH = 100  # long runs have many free dual variables, and larger sets take fewer iterations
_UNFINISHED_BEFORE_GROWTH = 3  # iterations whose pair steps do not converge, before the set is as large as possible
_UNFINISHED_BEFORE_WHOLE = 1  # the same, before all dual variables are optimised at once; later in a part of a problem
_SETS_PER_WHOLE = 0.25  # time of working sets, relative to that of optimising all at once, before it is tried early
_LARGE_VIOLATION_RATIO = 0.7  # of the violation then to that at the start; a smaller one shows that sets converge
_FRACTION_KEPT, _FRACTION_KEPT_IF_LARGE = 0.75, 0.6  # of the previous working set; if rows are many
_WEIGHT_WITHOUT_ROW = 0.7  # of the violation of a dual variable whose kernel row would have to be computed
_MIN_LARGE_ROWS = 4096  # smaller problems take more iterations by weights, whose fixed cost is larger (measured)
_INNER_VIOLATION = 0.1  # to be reached within the working set, relative to the violation of the problem
_MAX_PAIR_STEPS = 20_000  # in one iteration, some ten milliseconds, so that callbacks and Ctrl-C are noticed
_NS_PER_PAIR_STEP = 2.5  # nanoseconds, per dual variable of the working set
_NS_PER_SQUARE = 20.0  # nanoseconds of an iteration, for the square of the size of its working set
_FACTORISATIONS_BEFORE_ROUND = 5.0  # working sets take as long before all free dual variables are optimised at once
_FACTORISATIONS_PER_END = 10.0  # about as many take the rounds from here to the solution
_ROUND_VIOLATION_RATIO = 0.5  # after the second and later rounds / before it; if it is larger, working sets follow
_ITERATIONS_BEFORE_SHRINKING = 30  # at a bound, of a dual variable
_MIN_FRACTION_TO_SHRINK = 0.2  # of the active dual variables; if fewer can be removed, none is
_ITERATIONS_BETWEEN_MEASUREMENTS = 10  # of the duality gap
_SECONDS_AFTER_CTRL_C = 0.15  # to complete the gradient; a bound on the rest is computed
_FIRST_PART_DIVISOR, _MIN_FIRST_PART_ROWS = 8, 2048  # the first part is an eighth of the rows, unless it has too few
_FIRST_PART_TOL = 0.1  # violation to which it is solved


def svmlight(problem, settings, start=None):
    """Solve a KernelQP by working sets; parameters and result are those of `whole_matrix.svmlight`."""
    sampled = None
    if start is None:
        sampled, settings = sampled_start(problem, settings, Decomposition)
    start = start if sampled is None else sampled.beta
    if takes_large_parts(problem, settings.checkpoint):
        method = LargeParts(problem, settings, start, Decomposition)
    else:
        method = Decomposition(problem, settings, start)
    method.state.n_computed += 0.0 if sampled is None else sampled.n_computed
    return solve(method, settings)


def solve(method, settings):
    """Iterate until the stopping rule is satisfied or a limit is reached; return a KernelSolution.

    Parameters
    ----------
    method : object
        With the attributes `name`, `state` (an ActiveSet), `rule` (a StoppingRule), `iteration`, `violation`,
        `limits_blas` (whether BLAS is limited to one thread), `iterations_between_measurements` and
        `writes_checkpoints`, and the methods `status()`, which returns a Status or None, `iterate()`,
        `progress(seconds)`, which returns attributes of `Progress` by name, and `write_back()`, after which the state
        is that of the last step.
    settings : KernelSettings
    """
    state, watch = method.state, Watch(settings)
    with watch, single_threaded_blas() if method.limits_blas else nullcontext():
        if method.writes_checkpoints:
            watch.restore(method)
        while True:
            status = method.status()
            is_due = method.iteration % method.iterations_between_measurements == 0
            if state.all_active and (status is not None or is_due):
                watch.record(method.iteration, state.passes, *state.measure())
            more = method.progress(watch.seconds) if settings.callbacks else {}
            over = watch.should_stop(method.name, method.iteration, state.passes, method.violation, **more)
            if status is not None or over:
                watch.status = watch.status if status is None else status
                break
            method.iterate()
            if method.writes_checkpoints:
                watch.save(method)
    method.write_back()
    if method.writes_checkpoints and watch.status is not Status.CONVERGED and state.is_consistent:
        watch.save(method, now=True)
    recomputed = _complete(state, watch)
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


def _complete(state, watch):
    """Make all dual variables active, and recompute f if rounding errors matter; return whether f was recomputed.

    After Ctrl-C, which may also come now, there is time for neither.
    """
    if watch.status is not Status.INTERRUPTED:
        with watch:
            state.unshrink()
    if watch.status is Status.INTERRUPTED:
        state.unshrink(_SECONDS_AFTER_CTRL_C)
        return False
    if state.needs_recomputation:
        state.recompute()
        return True
    return False


class Decomposition:
    """The method of `svmlight` for `solve`.

    Parameters
    ----------
    problem, settings, start
        As those of `svmlight`.
    f : ndarray or None
        For a part of a larger problem, as that of an ActiveSet.
    rule : object or None
        In place of the StoppingRule of the settings.

    Attributes
    ----------
    state : ActiveSet
    rule : StoppingRule
    iteration : int
        Number of working sets that were optimised.
    violation : float
        The largest violation of the active dual variables.
    """

    name, limits_blas, writes_checkpoints = "svmlight", True, False
    _max_pair_steps = _MAX_PAIR_STEPS
    iterations_between_measurements = _ITERATIONS_BETWEEN_MEASUREMENTS
    _whole = None  # the WholeProblem, if working sets have been slow
    _free_block = None  # the FreeBlock, unless this is a part of a larger problem

    def __init__(self, problem, settings, start, f=None, rule=None):
        self._n_groups = len(problem.ends) - 1
        size = max(settings.working_set or _default_size(problem, settings.cache_size), 2 * self._n_groups)
        self._has_one_per_row = len(problem.start) == problem.K.n_rows
        self._largest_size = size if settings.working_set else _LARGEST_WORKING_SET
        self.state = ActiveSet(problem, settings, start, min(size, problem.K.n_rows), f)
        is_large = f is None and problem.K.n_rows >= _MIN_LARGE_ROWS  # parts have good starts, and gain nothing by it
        self._fraction_kept = _FRACTION_KEPT_IF_LARGE if is_large else _FRACTION_KEPT
        self._set_size(size)
        self.settings, self.iteration, self._deadline = settings, 0, Deadline(settings)
        self._working_set = np.empty(0, np.int64)  # positions among the active dual variables, latest additions last
        self._set_shrinking(_ITERATIONS_BEFORE_SHRINKING)
        self._stall = StallDetector()
        self.rule = rule or StoppingRule(settings)
        self._goal = self.rule.goal  # of the violation of the active dual variables
        self._pair_nanoseconds, self._n_unfinished = 0.0, 0  # since the last Newton steps; iterations not converged
        self._set_nanoseconds = 0.0  # of working sets, since all free dual variables were optimised at once
        self._factorisations_before_round = _FACTORISATIONS_BEFORE_ROUND  # doubled after a round that was in vain
        self._forecast = Forecast()
        if f is None and problem.K.kernel.positive_definite:
            self._free_block = FreeBlock(self.state, self._deadline.is_over)
        self._unfinished_before_whole = _UNFINISHED_BEFORE_WHOLE if f is None else _UNFINISHED_BEFORE_GROWTH
        self._starts_at_zero = f is None and start is None and not problem.start.any()
        self._first_violation = np.inf

    def _set_shrinking(self, n_iterations):
        """Let a dual variable be removed after so many iterations at a bound, counted from now."""
        self._iterations_before_shrinking = n_iterations
        self._iterations_at_bound = np.zeros(len(self.state.index), np.int32)

    def _shrink_to_first_part(self):
        """Remove all but a random part of a large problem from the active set."""
        problem = self.state.problem
        size = problem.K.n_rows // _FIRST_PART_DIVISOR
        if size < _MIN_FIRST_PART_ROWS:
            return
        part = np.zeros(problem.K.n_rows, bool)
        part[random_rows(problem, size)] = True
        self.state.shrink(part[problem.row])
        self._goal = max(self._goal, _FIRST_PART_TOL)
        self._set_shrinking(_ITERATIONS_BEFORE_SHRINKING // 2)
        self.violation = self.state.scan()

    def _set_size(self, size):
        """Set the size of the working set; the new dual variables are equally many, at least one, of each kind."""
        self._size = size
        n_kinds = 2 * self._n_groups  # those that can increase and those that can decrease, in each group
        problem = self.state.problem
        self._n_kept = size - n_kinds * max(1, round((1 - self._fraction_kept) * size / n_kinds))
        self._block = KernelBlock(min(size, len(problem.start)), problem.K.n_rows, self.state.cache.values.dtype)

    def _grow(self):
        """Double the working set at intervals, as far as the cache allows; at once, if pair steps do not converge.

        What the cache allows is counted in rows of all columns, to which it returns when all variables become active.
        """
        slow = self._n_unfinished >= _UNFINISHED_BEFORE_GROWTH
        size = self._largest_size if slow else min(2 * self._size, self._largest_size)
        size = min(size, self.state.cache.n_whole_rows, len(self.state.problem.start))
        if (slow or self.iteration % _ITERATIONS_BETWEEN_GROWTH == 0) and size > self._size:
            self._set_size(size)

    def status(self):
        """Return a Status if the problem is solved or no progress is possible, else None.

        If the active dual variables are solved, all become active first.
        """
        state = self.state
        self.violation = state.scan()
        if self.violation <= self._goal and not state.all_active:
            self._make_all_active(state.unshrink)
        if self.violation <= self.rule.goal and state.all_active and state.needs_recomputation:
            self._make_all_active(state.recompute)
        if state.all_active and self.rule.is_solved(state, self.violation):
            return Status.CONVERGED
        if self._stall.stalls_first_time():
            state.max_exact_products = MAX_EXACT_PRODUCTS_AFTER_STALL
            self._make_all_active(state.recompute)
            if self.rule.is_solved(state, self.violation):
                return Status.CONVERGED
        self._goal = self.rule.goal if state.all_active else self._goal
        return Status.STALLED if self._stall.is_final else None

    def _make_all_active(self, unshrink):
        """Make all dual variables active by a method of the state; from now on shrink later."""
        self._working_set = self.state.index[self._working_set]
        unshrink()
        self._set_shrinking(2 * self._iterations_before_shrinking)
        self._goal = self.rule.goal
        self.violation = self.state.scan()

    def write_back(self):
        """Do nothing, since the state is up to date after each iteration."""

    def progress(self, seconds):
        """Return the kernel rows computed and the part found in the cache."""
        cache = self.state.cache
        return {"rows": cache.n_computed, "hits": cache.n_found / cache.n_fetched if cache.n_fetched else np.nan}

    def iterate(self):
        """Optimise one working set, or all dual variables at once."""
        state = self.state
        if self._change_free() or self._change_all():
            return
        if self.settings.shrinking and self._starts_at_zero and self.iteration == 0:
            self._shrink_to_first_part()
        elif self.settings.shrinking and not self._stall.has_stalled_once:
            self._shrink()
        chosen = self._select()
        ends = np.searchsorted(chosen, state.ends)
        chosen = chosen[self._block.arrange(state.rows[state.position[chosen]], ends)]
        rows = state.position[chosen]
        slots = self._fetch(state.rows[rows])
        block = self._block.take(state.cache.values, slots, rows, state.rows[rows], self.settings.n_jobs)
        variables = dual_variables(
            state.beta[chosen],
            state.F[chosen],
            state.lower[chosen],
            state.upper[chosen],
            state.diagonal[chosen],
            ends,
        )
        goal = max(self.rule.inner_goal, state.gradient_rounding())
        if len(chosen) < len(state.index):
            goal = max(goal, _INNER_VIOLATION * self.violation)
        self._step(chosen, slots, block, variables, goal)
        nanoseconds = _NS_PER_SQUARE * len(chosen) ** 2
        self._set_nanoseconds += nanoseconds
        self._forecast.add(nanoseconds, self.violation)
        self.iteration += 1
        self._grow()

    def _step(self, chosen, slots, block, variables, goal):
        """Optimise the dual variables `chosen`, and move the state to the result."""
        state = self.state
        decrease, by_newton = self._optimise(block, variables, goal)
        fraction = len(chosen) / len(state.problem.start)
        exact = by_newton and fraction == 1.0
        rounding, objective = state.gradient_rounding(), state.objective()
        self._stall.record(decrease, self.violation, rounding, objective, fraction=fraction, exact=exact)
        self._move(chosen, variables, slots)

    def _move(self, chosen, variables, slots):
        """Move the state to the result of an iteration."""
        self.state.move(chosen, variables.beta, slots)

    def _optimise(self, block, variables, goal):
        """Optimise the working set; return the decrease of the objective, and whether Newton steps were taken."""
        decrease = self._take_pair_steps(block, variables, goal)
        violation = np.max(variables.extremes[:, 1] - variables.extremes[:, 0])
        by_newton = violation > goal and self._newton_is_due(variables)
        if by_newton:
            n_variables = len(variables.beta)
            with single_threaded_blas():
                decrease += newton_block(block[:n_variables, :n_variables], variables, goal)
        return decrease, by_newton

    def _take_pair_steps(self, block, variables, goal):
        """Take pair steps until the violation is within the goal or there are too many; return the decrease."""
        direction, rows = no_direction(len(variables.beta)), ready_rows(len(block), block.dtype)
        return optimise_block(block, rows, variables, direction, goal, self._max_pair_steps)[0]

    def _newton_is_due(self, variables):
        """Return whether the pair steps that did not converge have taken as long as Newton steps would take."""
        self._n_unfinished += 1
        self._pair_nanoseconds += _NS_PER_PAIR_STEP * self._max_pair_steps * len(variables.beta)
        n_free = np.count_nonzero((variables.beta > variables.lower) & (variables.beta < variables.upper))
        if self._pair_nanoseconds < newton_nanoseconds(len(variables.beta), n_free):
            return False
        self._pair_nanoseconds = 0.0
        return True

    def _change_all(self):
        """Optimise all dual variables at once, if working sets are slow; return whether that was possible."""
        state = self.state
        has_begun = self._whole is not None
        is_slow = has_begun or self._n_unfinished >= self._unfinished_before_whole or self._diverges()
        if not is_slow or self._largest_size >= len(state.problem.start):
            return False
        whole = self._whole = self._whole or WholeProblem(
            state.problem, self.settings.cache_size, self._deadline.is_over
        )
        if not whole.is_possible:
            return False
        if not state.all_active:
            self._make_all_active(state.unshrink)
        rounding = state.gradient_rounding()
        before, beta, objective = self.violation, state.beta.copy(), state.objective()
        with single_threaded_blas():
            changed = whole.changed(state, before, max(0.5 * self.rule.goal, rounding))
        if changed is None:
            return False
        state.move_uncached(state.index, changed)
        self.violation = state.scan()
        decrease = objective - state.objective()
        if not decrease > 0.0:
            whole.is_possible = False
            state.move_uncached(state.index, beta)
            self.violation = state.scan()
            return False
        self._set_nanoseconds = np.inf  # all free ones are optimised next, if few bounds are wrong
        self._stall.record(decrease, before, rounding, objective)
        self.iteration += 1
        return True

    def _diverges(self):
        """Return whether violations are hardly smaller after some working sets than at the start: C is large."""
        if self.iteration == 0:
            self._first_violation = self.violation
        enough = _SETS_PER_WHOLE * whole_nanoseconds(self.state.problem.K.n_rows)
        is_large = self.violation > _LARGE_VIOLATION_RATIO * self._first_violation
        return self._free_block is not None and is_large and self._set_nanoseconds > enough

    def _change_free(self):
        """Optimise all free dual variables at once, if working sets are slower; return whether that was possible."""
        state, block = self.state, self._free_block
        if block is None:
            return False
        n_free = np.count_nonzero((state.beta > state.lower) & (state.beta < state.upper))
        enough = self._factorisations_before_round * block.nanoseconds(n_free)
        is_due = block.is_settled or self._set_nanoseconds > enough
        if not is_due or (n_free <= self._largest_size and self._whole is None):
            return False
        rounds = _FACTORISATIONS_PER_END * block.nanoseconds(n_free)
        if self._whole is None and not block.is_settled and self._forecast.nanoseconds_left(self.rule.goal) < rounds:
            return False
        chosen = block.chosen()
        if chosen is None:
            return False
        rounding, before, objective = state.gradient_rounding(), self.violation, state.objective()
        is_first = not block.is_settled
        with single_threaded_blas():
            decrease = block.change(chosen)
        self._set_nanoseconds = 0.0
        if not decrease > 0.0:
            self._factorisations_before_round *= 2.0
            return False
        self.violation = state.scan()
        block.is_settled = is_first or self.violation <= _ROUND_VIOLATION_RATIO * before
        self._stall.record(decrease, before, rounding, objective, fraction=len(chosen) / len(state.problem.start))
        self.iteration += 1
        return True

    def _fetch(self, rows):
        """Return the slots of kernel rows in the cache; rows may occur twice, if they have two dual variables."""
        if self._has_one_per_row:
            return self.state.cache.fetch(rows)
        distinct, inverse = np.unique(rows, return_inverse=True)
        return self.state.cache.fetch(distinct)[inverse]

    def _select(self):
        """Return the new working set in ascending order."""
        state = self.state
        if self._size >= len(state.index):
            self._working_set = np.arange(len(state.index))
            return self._working_set
        kept = self._working_set[max(0, len(self._working_set) - self._n_kept) :]
        state.rising[kept], state.falling[kept] = np.inf, np.inf
        n_of_each_kind = (self._size - len(kept)) // (2 * self._n_groups)
        weighs = state.problem.K.n_rows >= _MIN_LARGE_ROWS
        added = []
        for g, (smallest, largest) in enumerate(state.extremes):
            here = slice(state.ends[g], state.ends[g + 1])
            for candidates, limit in ((state.rising, largest), (state.falling, -smallest)):
                weigh = partial(self._weights, here.start) if weighs else None
                best = here.start + largest_violations(candidates[here], limit, n_of_each_kind, weigh)
                state.falling[best] = np.inf  # not to be selected twice
                added.append(best)
        self._working_set = np.concatenate([kept, *added])
        return np.sort(self._working_set)

    def _weights(self, start, chosen):
        """Return weights by which violations of start + chosen count less if their kernel rows have to be computed."""
        state = self.state
        in_cache = state.cache.slot_of[state.rows[state.position[start + chosen]]] >= 0
        return np.where(in_cache, 1.0, _WEIGHT_WITHOUT_ROW)

    def _shrink(self):
        """Remove the dual variables that have been at a bound for long enough, if these are not too few."""
        state, limit = self.state, self._iterations_before_shrinking
        n_removable = state.count_at_bound(self._iterations_at_bound, limit)
        if n_removable <= _MIN_FRACTION_TO_SHRINK * len(state.index):
            return
        remain = self._iterations_at_bound < limit
        remain[self._working_set] = True
        new_position = np.cumsum(remain) - 1
        self._working_set, self._iterations_at_bound = (
            new_position[self._working_set],
            self._iterations_at_bound[remain],
        )
        state.shrink(remain)
        self.violation = state.scan()


def _default_size(problem, megabytes):
    """Return the size of the first working set, if the settings do not say; see the constants."""
    n_variables = len(problem.start)
    if n_variables <= _WHOLE_PROBLEM:
        return n_variables
    size = max(n_variables // _WORKING_SET_DIVISOR, _SMALLEST_FIRST_WORKING_SET)
    size = min(size, _LARGEST_FIRST_WORKING_SET)
    return min(size, max(rows_that_fit(problem.K, megabytes), _SMALLEST_WORKING_SET))
