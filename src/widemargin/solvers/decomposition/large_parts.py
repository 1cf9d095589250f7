"""Decomposition of large problems in two levels: parts of thousands of dual variables, each solved by `svmlight`.

If a problem has so many rows that the cache holds few kernel rows, most rows that a working set needs are computed
again and again. Computing a value of a cheap kernel takes no longer than fetching it from memory, and so rows are not
stored here. Instead, a row is needed less often: an iteration solves a part of some thousand dual variables, with all
others fixed, by the working sets of `svmlight`. This needs only the kernel matrix of the part. Then the kernel rows of
the dual variables that have changed are added to f, tile by tile while they are in the processor's cache.

1. grow      The problem begins with as many random rows as are one part. Every iteration adds new ones, half a part: f
             is completed at these, and they are solved together with the violators among the rows before. Dual
             variables that are clearly at a bound are removed until all rows have joined. So a kernel row is computed
             over the few that are active, over later rows as they join, and over the others in the end.
2. correct   When all rows are there, a part is the dual variables that violate an optimality condition, or may do so.
             If these are too many, it has the half with the largest violations, and random others: without them, which
             are mostly satisfied, the part would be solved far beyond what is right for all.
3. shrink    As in `svmlight`, dual variables at a bound are removed from the active set, and f is completed in the end.

Parts become larger if many dual variables are between their bounds, and if after some iterations there are still too
many violators, up to the whole active set.
"""

from dataclasses import replace

import numpy as np

from widemargin._runtime.forecast import Forecast
from widemargin.solvers.contract import Status
from widemargin.solvers.decomposition.active_set import ActiveSet
from widemargin.solvers.decomposition.stopping import Deadline, StallDetector, StoppingRule, WithinViolation

_MIN_ROWS = 20_000  # of a problem that is solved in parts if kernel values are very cheap, or there is a checkpoint
_MIN_ROWS_WITHOUT_REASON = 50_000  # of other problems; below, working sets of all rows are faster (measured)
_VERY_CHEAP_NANOSECONDS = 0.2  # of an inner product: about ten dense features
_PART = 8192  # dual variables of a part, at first
_LARGEST_FIRST_PART, _ROWS_PER_PART_VARIABLE = 16_384, 24  # larger problems have larger parts, within a limit
_INNER_VIOLATION = 0.1  # to be reached within a part, relative to the violation of the problem
_LARGEST_INNER_VIOLATION = 0.1  # absolute: a part is solved well, since its rows of the whole problem are expensive
_MAX_INNER_ITERATIONS = 400  # working sets in one part
_ITERATIONS_BEFORE_SHRINKING = 1  # at a bound, of a dual variable
_MIN_FRACTION_TO_SHRINK = 0.2  # of the active dual variables; if fewer can be removed, none is
_SIZE_PER_FREE = 2.0  # a part has so many dual variables for each that is between its bounds, or more
_CROWDED_ITERATIONS = 4  # with more violators than a part has room for, before parts become twice as large
_BAND = 0.1  # distance from the offset, relative to the violation, within which rows stay active while others join
_TIME_AFTER_JOINING = 0.8  # of completing f and of corrections, relative to that in which rows join; on covertype
_ANCHORS = 0.5  # the share of random dual variables in a part that has no room for all violators


def takes_large_parts(problem, checkpoint=None):
    """Return whether a problem is solved in parts: it is large, and kernel values are computed from features.

    If there is a checkpoint, which only this method writes, a problem may be smaller.
    """
    K = problem.K
    if not K.kernel.from_products or K.n_rows < _MIN_ROWS:
        return False
    has_reason = checkpoint is not None or K.cost <= _VERY_CHEAP_NANOSECONDS
    return has_reason or K.n_rows >= _MIN_ROWS_WITHOUT_REASON


def writes_checkpoints(problem):
    """Return whether a run that is killed goes on from a checkpoint, or the problem is so small that it needs none."""
    return problem.K.n_rows < _MIN_ROWS or problem.K.kernel.from_products


class LargeParts:
    """The method for `svmlight.solve` that solves a large problem in parts.

    Parameters
    ----------
    problem : KernelQP
    settings : KernelSettings
    start : ndarray or None
        Dual variables to start from.
    decomposition : class
        The method that solves a part, which is `svmlight`'s.

    Attributes
    ----------
    state : ActiveSet
    rule : StoppingRule
    iteration : int
        Number of parts that were solved.
    violation : float
        The largest violation of the active dual variables.
    """

    name, limits_blas, writes_checkpoints = "svmlight", True, True
    iterations_between_measurements = 1
    STATE = (
        "iteration", "violation", "_n_fetched", "_n_found", "_size", "_n_joined", "_has_all", "_n_crowded",
        "_iterations_before_shrinking", "_iterations_at_bound", "rule", "_stall", "state",
    )  # fmt: skip

    def __init__(self, problem, settings, start, decomposition):
        self.state = ActiveSet(problem, replace(settings, cache_size=0.0), start, 1)
        self.settings, self.iteration, self.violation = settings, 0, np.inf
        self._decomposition, self._deadline = decomposition, Deadline(settings)
        self.rule, self._stall = StoppingRule(settings), StallDetector()
        n_rows, n_variables = problem.K.n_rows, len(problem.start)
        self._size = max(_PART, min(n_variables // _ROWS_PER_PART_VARIABLE, _LARGEST_FIRST_PART))
        self._rows_per_step = max(1, self._size * n_rows // (2 * n_variables))
        starts_at_zero = start is None and not problem.start.any()
        self._order = np.random.default_rng(0).permutation(n_rows)  # in which rows join
        self._n_joined = 0 if starts_at_zero else n_rows  # rows
        self._has_all = not starts_at_zero  # whether all dual variables have been active after all rows have joined
        self._n_crowded, self._iterations_before_shrinking = 0, _ITERATIONS_BEFORE_SHRINKING
        self._iterations_at_bound = np.zeros(n_variables, np.int32)
        self._n_fetched, self._n_found = 0, 0  # kernel rows of parts: asked for, and in their caches
        self._forecast = Forecast()

    def write_back(self):
        """Do nothing, since the state is up to date after each iteration."""

    def progress(self, seconds):
        """Return the kernel rows computed, the part found in the caches of the parts, and the time left.

        While rows join, the time so far is proportional to the square of their number, and how long the rest takes is
        known from experience only. Later, the end is judged by how fast the violation falls.
        """
        left = None
        if self._is_growing and self._n_joined:
            joined = self._n_joined / self.state.problem.K.n_rows
            left = seconds * ((1.0 + _TIME_AFTER_JOINING) / joined**2 - 1.0)
        elif not self._is_growing and np.isfinite(self.violation):
            self._forecast.add(seconds, self.violation, self.rule.goal)
            left = self._forecast.seconds_left(seconds)
        hits = self._n_found / self._n_fetched if self._n_fetched else np.nan
        return {"rows": self.state.n_computed, "hits": hits, "seconds_left": np.nan if left is None else left}

    def status(self):
        """Return a Status if the problem is solved or no progress is possible, else None.

        If the active dual variables are solved, all become active first.
        """
        state = self.state
        self.violation = state.scan()
        if self._is_growing:
            return None
        if not (self._has_all or state.all_active):
            self._make_all_active(state.unshrink)
        self._has_all = True
        if self.violation <= self.rule.goal and not state.all_active:
            self._make_all_active(state.unshrink)
        if self.violation <= self.rule.goal and state.needs_recomputation:
            self._make_all_active(state.recompute)
        if state.all_active and self.rule.is_solved(state, self.violation):
            return Status.CONVERGED
        if self._stall.stalls_first_time():
            self._make_all_active(state.recompute)
            if self.rule.is_solved(state, self.violation):
                return Status.CONVERGED
        return Status.STALLED if self._stall.is_final else None

    @property
    def _is_growing(self):
        return self._n_joined < self.state.problem.K.n_rows

    def _make_all_active(self, unshrink):
        """Make all dual variables active by a method of the state; from now on shrink later."""
        unshrink()
        self._iterations_before_shrinking *= 2 if self._has_all else 1
        self._iterations_at_bound = np.zeros(len(self.state.index), np.int32)
        self.violation = self.state.scan()

    def iterate(self):
        """Solve one part."""
        state = self.state
        new = self._grow() if self._is_growing else None
        if new is None and self.settings.shrinking and not self._stall.has_stalled_once:
            self._shrink()
        chosen = self._select(new)
        beta = self._solve_part(chosen)
        change, before = beta - state.beta[chosen], state.F[chosen]
        state.move_uncached(chosen, beta)
        violation = state.scan()
        decrease = -0.5 * float(change @ (before + state.F[chosen]))
        self._stall.record(decrease, violation, state.gradient_rounding(), state.objective())
        self.iteration += 1

    def _grow(self):
        """Let the next rows join; return their indices, or None if they are the first."""
        state, n_before = self.state, self._n_joined
        if n_before and self.settings.shrinking:
            self._postpone()
        n_joined = min(n_before + self._rows_per_step * (1 if n_before else 2), state.problem.K.n_rows)
        new = np.sort(self._order[n_before:n_joined])
        if n_before:
            state.activate(new)
        else:
            joined = np.zeros(state.problem.K.n_rows, bool)
            joined[new] = True
            state.shrink(joined[state.problem.row[state.index]])
        self._n_joined = n_joined
        self._iterations_at_bound = np.zeros(len(state.index), np.int32)
        self.violation = state.scan()
        return new if n_before else None

    def _postpone(self):
        """Remove dual variables at a bound that are not near a violation; they come back when all rows have joined."""
        state = self.state
        offsets = np.repeat(state.offsets(), np.diff(state.ends))
        band = _BAND * self.violation
        remain = offsets + band >= state.F
        remain[state.beta > state.lower] = True
        remain &= (offsets - band <= state.F) | (state.beta < state.upper)
        if np.count_nonzero(remain) < (1.0 - _MIN_FRACTION_TO_SHRINK) * len(state.index):
            state.shrink(remain)

    def _shrink(self):
        """Remove the dual variables that have been at a bound for long enough, if these are not too few."""
        state, limit = self.state, self._iterations_before_shrinking
        n_removable = state.count_at_bound(self._iterations_at_bound, limit)
        if n_removable > _MIN_FRACTION_TO_SHRINK * len(state.index):
            remain = self._iterations_at_bound < limit
            self._iterations_at_bound = self._iterations_at_bound[remain]
            state.shrink(remain)
            self.violation = state.scan()

    def _select(self, new):
        """Return the dual variables of the next part, ascending; those of `new` rows are among them."""
        state = self.state
        if len(state.index) <= self._size:
            return np.arange(len(state.index))
        n_free = np.count_nonzero((state.beta > state.lower) & (state.beta < state.upper))
        while self._size < _SIZE_PER_FREE * n_free:
            self._size *= 2
        violations = _largest_violations(state)
        if new is not None:
            is_new = np.zeros(state.problem.K.n_rows, bool)
            is_new[new] = True
            violations[is_new[state.rows[state.position]]] = np.inf
        candidates = np.flatnonzero(violations > 0.0)
        if len(candidates) <= self._size:
            return candidates
        if new is not None:
            return np.sort(_with_largest(candidates, violations, self._size))
        self._enlarge()
        size = min(self._size, len(state.index))
        largest = _with_largest(candidates, violations, size - int(_ANCHORS * size))
        others = np.setdiff1d(np.arange(len(state.index)), largest)
        anchors = np.random.default_rng(self.iteration).choice(others, size - len(largest), replace=False)
        return np.sort(np.concatenate([largest, anchors]))

    def _enlarge(self):
        """Make parts twice as large, if there was no room for all violators for some iterations."""
        self._n_crowded += 1
        if self._n_crowded > _CROWDED_ITERATIONS:
            self._size, self._n_crowded = 2 * self._size, 0

    def _solve_part(self, chosen):
        """Return the dual variables of a part, solved with all others fixed."""
        state = self.state
        positions, row = np.unique(state.position[chosen], return_inverse=True)
        part = replace(
            state.problem,
            K=state.problem.K.restricted(state.rows[positions]),
            row=row,
            linear=state.linear[chosen],
            lower=state.lower[chosen],
            upper=state.upper[chosen],
            ends=np.searchsorted(chosen, state.ends),
            start=state.beta[chosen],
        )
        goal = min(_INNER_VIOLATION * self.violation, _LARGEST_INNER_VIOLATION)
        rule = WithinViolation(max(0.5 * self.rule.goal, goal, state.gradient_rounding()))
        method = self._decomposition(part, self.settings, None, state.f[positions], rule)
        while method.iteration < _MAX_INNER_ITERATIONS and method.status() is None and not self._is_over:
            method.iterate()
        method.state.unshrink()
        state.n_computed += method.state.n_computed * part.K.n_rows / state.problem.K.n_rows
        self._n_fetched += method.state.cache.n_fetched
        self._n_found += method.state.cache.n_found
        return method.state.beta

    @property
    def _is_over(self):
        """Whether the time is over; raises KeyboardInterrupt if the solver is interrupted from another thread."""
        if self.settings.interrupt.is_set():
            raise KeyboardInterrupt
        return self._deadline.is_over()


def _largest_violations(state):
    """Return for each active dual variable the largest violation of a pair that it is in; not positive if none."""
    violations = np.empty(len(state.index))
    for g, (smallest, largest) in enumerate(state.extremes):
        here = slice(state.ends[g], state.ends[g + 1])
        # `rising` and `falling` are infinite for dual variables that cannot move that way.
        violations[here] = np.maximum(largest - state.rising[here], -smallest - state.falling[here])
    return violations


def _with_largest(candidates, values, count):
    """Return the `count` candidates with the largest values, in descending order of these."""
    order = np.argsort(-values[candidates], kind="stable")
    return candidates[order[:count]]
