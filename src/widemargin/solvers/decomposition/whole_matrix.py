"""`svmlight` for small problems: all dual variables are optimised at once, with memory for the whole kernel matrix.

There are no working sets and no shrinking of arrays. Compiled steps over all dual variables return to Python if they
need kernel rows that are not computed yet, and after some milliseconds, so that callbacks, limits and Ctrl-C are
noticed. Kernel rows are computed in blocks: that of the next step, and those of the dual variables with the largest
violations, which are likely to be needed soon; twice as many each time. Most problems are solved in one iteration.

A problem that pair steps do not solve within an iteration is continued with those dual variables only that are not at
a bound for good, or by Newton steps. If the kernel matrix was given, and the free dual variables are not too many, they
are optimised at once before the pair steps of an iteration (`free_block`).
"""

from dataclasses import replace

import numpy as np

from widemargin.kernels.cache import HeldRows
from widemargin.kernels.rows import MatrixPart, submatrix
from widemargin.kernels.single_rows import ready_rows
from widemargin.problems.formulations import KernelQP
from widemargin.solvers.decomposition.active_set import ActiveSet
from widemargin.solvers.decomposition.conjugate_pairs import no_direction
from widemargin.solvers.decomposition.first_iteration import FirstIteration, FirstIterations, memory_of
from widemargin.solvers.decomposition.free_block import FreeBlock
from widemargin.solvers.decomposition.free_step import free_workspace, optimise_finely
from widemargin.solvers.decomposition.large_parts import takes_large_parts, writes_checkpoints
from widemargin.solvers.decomposition.pair_step import dual_variables
from widemargin.solvers.decomposition.starting_point import check_sizes, feasible, group_sums
from widemargin.solvers.decomposition.stopping import Deadline, StallDetector, StoppingRule
from widemargin.solvers.decomposition.svmlight import Decomposition, solve
from widemargin.solvers.decomposition.svmlight import svmlight as by_working_sets
from widemargin.solvers.spec import SolverSpec, Start

_ANY_KERNEL = 512  # rows up to which problems are small, whatever the kernel
_CHEAP_KERNEL = 2048  # the same if a kernel value takes a few nanoseconds
_MATRIX_IN_MEMORY = 4096  # the same if the whole kernel matrix is in memory already
_ALL_AT_ONCE = 128  # rows up to which the whole matrix is computed at once, unless compiled loops compute its rows
_ALL_OF_SEVERAL_AT_ONCE = 512  # the same if a row has several dual variables, of which most need it
_FIRST_ROWS = 64  # the number of rows that are computed together first, if they are not computed one by one
_MAX_FRACTION_CHOSEN = 0.7  # of the dual variables; if more are not at a bound for good, all are optimised
_STEP_NANOSECONDS = 1e7  # pair steps of one iteration
_NS_PER_PAIR_STEP = 3.0  # per dual variable
_MAX_PAIR_STEPS = 20_000
_FREE_NANOSECONDS = 2e7  # of a factorisation for all free dual variables, at most
_FREE_VIOLATION_RATIO = 0.3  # after it / before it; if it is larger, pair steps follow
MAX_ROWS_OF_FULL_PRECISION = 100  # rows up to which a problem is solved to full precision, whatever the tolerance
FULL_PRECISION = 1e-12  # violation
_STEPS_TO_FULL_PRECISION = 3000
_INNER_VIOLATION = 0.1  # to be reached by the chosen dual variables, relative to the violation of the problem


def svmlight(problem, settings, start=None):
    """Solve a KernelQP; return a KernelSolution.

    Parameters
    ----------
    problem : KernelQP
    settings : KernelSettings
    start : ndarray or None
        Dual variables to start from.
    """
    if takes_large_parts(problem) or not is_small(problem, settings):
        return by_working_sets(problem, settings, start)
    matrix = WholeKernelMatrix(problem)
    try:
        first, solution = _first_iteration(problem, settings, start, matrix)
        return _continued(problem, settings, start, matrix, first) if solution is None else solution
    finally:
        matrix.cache.release()


def _continued(problem, settings, start, matrix, first):
    """Return the KernelSolution of a problem that its first iteration, if there was one, has not solved."""
    method = WholeMatrix(problem, settings, start, matrix, first)
    solution = solve(method, settings)
    method.state.remember()
    return solution


def svmlight_together(problems, settings, starts):
    """Solve several KernelQPs as `svmlight` does; return their KernelSolutions.

    The first iterations of small problems whose kernel matrices are parts of one are made by one compiled call, or one
    for every few milliseconds. The other arguments of `svmlight` are lists, too.
    """
    each = list(zip(problems, settings, starts, strict=True))
    if not all(_begins_together(*one, problems[0]) for one in each):
        return [svmlight(*one) for one in each]
    first = FirstIterations(problems, settings, [_pair_steps(problem) for problem in problems])
    try:
        first.run()
    except KeyboardInterrupt:
        settings[0].interrupt.set()
    return [_finished(*one) for one in zip(problems, settings, first.each, strict=True)]


def _begins_together(problem, settings, start, other):
    """Return whether the first iteration of a problem can be made together with that of another."""
    K, is_watched = problem.K, start is not None or _is_watched(settings)
    if is_watched or settings.working_set is not None or not (isinstance(K, MatrixPart) and K.source is other.K.source):
        return False
    are_alike = len(problem.ends) == len(other.ends) and problem.offset_order == other.offset_order
    return are_alike and len(problem.start) == K.n_rows <= _MATRIX_IN_MEMORY


def _finished(problem, settings, first):
    """Return the KernelSolution of a problem whose FirstIteration was made together with others."""
    if not first.has_begun:
        return svmlight(problem, settings)
    solution = first.solution()
    if solution is not None:
        return solution
    matrix = WholeKernelMatrix(problem)
    try:
        return _continued(problem, settings, None, matrix, first)
    finally:
        matrix.cache.release()


def _is_watched(settings):
    """Return whether each iteration has to be reported."""
    has_limits = settings.max_iter is not None or settings.max_seconds is not None
    return has_limits or bool(settings.callbacks) or settings.interrupt.is_set()


def _first_iteration(problem, settings, start, matrix):
    """Return the FirstIteration, or None if each iteration has to be reported; and its solution, if it has one."""
    if start is not None or _is_watched(settings):
        return None, None
    try:
        if not matrix.is_complete and problem.start.any():
            matrix.cache.fetch(np.unique(problem.row[np.flatnonzero(problem.start)]))
        first = FirstIteration(problem, settings, memory_of([problem], [_pair_steps(problem)]))
        return first, first.run(matrix)
    except KeyboardInterrupt:
        settings.interrupt.set()
        return None, None


def _pair_steps(problem):
    """Return the largest number of pair steps, and goal and number of those by which a tiny problem is refined."""
    max_steps = _max_pair_steps(len(problem.start))
    if problem.K.n_rows <= MAX_ROWS_OF_FULL_PRECISION:
        return max_steps, 0.5 * FULL_PRECISION, _STEPS_TO_FULL_PRECISION
    return max_steps, np.inf, 0


def _max_pair_steps(n_variables):
    """Return how many pair steps take about `_STEP_NANOSECONDS`."""
    return min(_MAX_PAIR_STEPS, int(_STEP_NANOSECONDS / (_NS_PER_PAIR_STEP * n_variables)) + 1)


SVMLIGHT = SolverSpec(
    name="svmlight",
    solve=svmlight,
    takes=frozenset({KernelQP}),
    starts_from=Start.DUAL,
    stopping=("gap", "kkt"),
    counts="iterations",
    writes_checkpoints=writes_checkpoints,
    together=svmlight_together,
)
KERNEL_AUTO = replace(SVMLIGHT, name="auto")


def is_small(problem, settings):
    """Return whether a problem has few dual variables, and there is memory for its whole kernel matrix."""
    if settings.working_set is not None:
        return False
    K, n_variables = problem.K, len(problem.start)
    if K.held is not None and n_variables == K.n_rows:
        return n_variables <= _MATRIX_IN_MEMORY
    n_bytes = K.dtype.itemsize * K.n_rows**2
    return K.n_rows <= (_CHEAP_KERNEL if K.cheap else _ANY_KERNEL) and n_bytes <= settings.cache_size * 2**20


class WholeKernelMatrix:
    """Memory for the kernel matrix of the dual variables of a small problem, whose rows are computed when needed.

    Attributes
    ----------
    cache : HeldRows
        The kernel matrix of the rows.
    block : ndarray
        The same, if dual variables are in the order of the rows, once or several times; compiled loops may complete it.
        Otherwise the kernel matrix of the dual variables.
    rows : SingleRows
        Those of `block`.
    has_one_per_row : bool
        Whether there is one dual variable for each row, in the same order.
    """

    def __init__(self, problem):
        K, row = problem.K, problem.row
        self.cache = cache = HeldRows(K)
        n_variables, every = len(row), np.arange(K.n_rows)
        is_in_order = n_variables % K.n_rows == 0 and bool((row.reshape(-1, K.n_rows) == every).all())
        self.has_one_per_row = is_in_order and n_variables == K.n_rows
        is_given = K.cheap and not K.kernel.from_products
        n_at_once = _ALL_AT_ONCE if self.has_one_per_row else _ALL_OF_SEVERAL_AT_ONCE
        at_once = K.n_rows <= n_at_once and not (K.n_rows <= _ALL_AT_ONCE and K.has_single_rows)
        self.is_complete = at_once or is_given or not is_in_order
        if self.is_complete and K.held is None:
            cache.fetch(every)
        self._n_next_rows, self.block = _FIRST_ROWS, cache.values
        if not self.is_complete:
            self.rows = K.single_rows(cache.is_ready)
            return
        if not is_in_order:
            self.block = submatrix(cache.values, row, row)
        elif not self.block.flags.writeable:
            self.block = self.block.copy()
        self.rows = ready_rows(len(self.block), self.block.dtype)

    @property
    def passes(self):
        """Kernel rows computed, divided by the number of rows."""
        return self.cache.n_computed / self.cache.n_slots

    def part(self, chosen):
        """Return the kernel matrix of some of the dual variables."""
        rows = chosen if self.has_one_per_row else chosen % len(self.block)
        return submatrix(self.block, rows, rows, self._new_part)

    def _new_part(self, shape, dtype):
        """Return an array for a part of `block`, which is used until the next one is asked for."""
        return self.cache.K.workspace(shape, dtype) if self.has_one_per_row else np.empty(shape, dtype)

    def compute_rows(self, variables, missing):
        """Compute the kernel row `missing`, and others of dual variables with large violations."""
        smallest, largest = np.repeat(variables.extremes, np.diff(variables.ends), axis=0).T
        violation = np.maximum(
            largest - variables.F - variables.rise_penalty, variables.F - variables.fall_penalty - smallest
        )
        violation = violation.reshape(-1, len(self.block)).max(axis=0)
        violation[self.rows.is_ready] = -np.inf
        violation[missing] = np.inf
        n_rows = min(self._n_next_rows, len(violation) - np.count_nonzero(self.rows.is_ready))
        self.cache.fetch(np.sort(np.argpartition(-violation, n_rows - 1)[:n_rows]))
        self._n_next_rows *= 2


class WholeMatrix(Decomposition):
    """The method of `svmlight` for a small problem; the attributes are those of a Decomposition.

    `matrix` is the WholeKernelMatrix, and `first` the FirstIteration or None. The first iteration is then not repeated,
    but taken from there.
    """

    _iterations_before_shrinking = 0

    def __init__(self, problem, settings, start, matrix, first=None):
        self.state = state = _HeldSet(problem, settings, start, matrix)
        self.settings, self.iteration = settings, 0
        self.limits_blas = len(problem.start) > _ALL_AT_ONCE  # otherwise only Newton steps call it
        self.rule, self._stall = StoppingRule(settings), StallDetector()
        self._goal = self.rule.goal
        self._n_variables = n_variables = len(problem.start)
        self._working_set = state.index
        self._may_choose_first = start is not None and problem.K.held is not None and n_variables > _ALL_AT_ONCE
        self._pair_nanoseconds, self._n_unfinished = 0.0, 0
        self._matrix, self._first = matrix, first
        if problem.K.held is not None and n_variables > _ALL_AT_ONCE:
            self._free_block = FreeBlock(state, Deadline(settings).is_over)

    def _set_shrinking(self, n_iterations):
        """Do nothing, since no dual variable is removed."""

    def iterate(self):
        """Optimise all dual variables, or those that are not at a bound for good."""
        if self._change_free():
            return
        state = self.state
        chosen = self._chosen()
        self._max_pair_steps = _max_pair_steps(len(chosen))
        goal = max(self.rule.inner_goal, state.gradient_rounding())
        arrays = state.beta, state.F, state.lower, state.upper, state.diagonal
        if self._first is not None:
            block, variables = self._matrix.block, self._first.variables
        elif len(chosen) == self._n_variables:
            block = self._matrix.block
            variables = dual_variables(state.beta.copy(), state.F.copy(), *arrays[2:], state.ends)
        else:
            goal = max(goal, _INNER_VIOLATION * self.violation)
            block = self._matrix.part(chosen)
            ends = np.searchsorted(chosen, state.ends)
            variables = dual_variables(*[array[chosen] for array in arrays], ends)
        slots = state.position if chosen is state.index else state.position[chosen]
        self._step(chosen, slots, block, variables, goal)
        self.iteration += 1

    def _move(self, chosen, variables, slots):
        """Move the state as the base class does; if all pair steps are over all rows, they have updated f already."""
        if self.settings.certify or len(chosen) < self._n_variables or not self._matrix.has_one_per_row:
            super()._move(chosen, variables, slots)
        else:
            self.state.move_all(variables.beta, variables.F, self._max_pair_steps)

    def _change_free(self):
        """Optimise all free dual variables at once, after the first iteration; return whether that suffices for one."""
        state, block = self.state, self._free_block
        if block is None or self.iteration == 0:
            return False
        n_free = np.count_nonzero((state.beta > state.lower) & (state.beta < state.upper))
        chosen = block.chosen() if 0.0 < block.nanoseconds(n_free) <= _FREE_NANOSECONDS else None
        if chosen is None:
            return False
        before, rounding, objective = self.violation, state.gradient_rounding(), state.objective()
        decrease = block.change(chosen)
        if not decrease > 0.0:
            return False
        self.violation = state.scan()
        if self.violation > max(self.rule.goal, _FREE_VIOLATION_RATIO * before):
            return False
        self._stall.record(decrease, before, rounding, objective)
        self.iteration += 1
        return True

    def _chosen(self):
        """Return the dual variables to optimise, in ascending order.

        They can be chosen after the first iteration, or before it if the solver starts from a solution of a similar
        problem and the whole kernel matrix is known.
        """
        state = self.state
        if self.iteration == 0 and not self._may_choose_first:
            return state.index
        state.cache.fetch(state.rows)
        if self._stall.has_stalled_once:
            return state.index
        smallest, largest = np.repeat(state.extremes, np.diff(state.ends), axis=0).T
        above, below = np.greater(state.F, largest), np.less(state.F, smallest)
        stays = ((state.beta <= state.lower) & above) | ((state.beta >= state.upper) & below)
        chosen = np.flatnonzero(~stays)
        return chosen if 0 < len(chosen) <= _MAX_FRACTION_CHOSEN * self._n_variables else state.index

    def _take_pair_steps(self, block, variables, goal):
        """Take pair steps as the base class does; a tiny problem, to full precision if a few thousand suffice."""
        if self._first is not None:
            first, self._first = self._first, None
            return first.decrease
        if len(variables.beta) < self._n_variables:
            return super()._take_pair_steps(block, variables, goal)
        total, missing, direction = 0.0, 0, no_direction(len(variables.beta))
        max_steps, finer, n_finer = _pair_steps(self.state.problem)
        finer = max(finer, self.state.gradient_rounding())
        workspace = free_workspace(len(self.state.rows) if n_finer else 0)
        while missing >= 0:
            decrease, missing, _ = optimise_finely(
                block, self._matrix.rows, variables, direction, workspace, goal, max_steps, finer, n_finer
            )  # fmt: skip
            total += decrease
            if missing >= 0:
                self._matrix.compute_rows(variables, missing)
        self.state.cache.count_ready()
        return total

    def _newton_is_due(self, variables):
        """Return what the base class does, after all kernel rows are computed."""
        is_due = super()._newton_is_due(variables)
        if is_due:
            self.state.cache.fetch(self.state.rows)
        return is_due


class _HeldSet(ActiveSet):
    """An ActiveSet with memory for the whole kernel matrix, and of which no dual variable is removed."""

    def __init__(self, problem, settings, start, matrix):
        self.problem, self.settings = problem, settings
        check_sizes(problem)
        self.cache = matrix.cache
        self.sums, self._beta = group_sums(problem, problem.start), feasible(problem, start)
        n_rows, n_variables = problem.K.n_rows, len(self._beta)
        self._f, self.omitted_bound = np.zeros((2, n_rows))
        self._removed, self._largest_diagonal = [], float(np.abs(problem.K.diagonal).max(initial=0.0))
        self._pair_sum_size = problem.K.bound if n_variables > n_rows else 0.0
        self.index, self.position = np.arange(n_variables), problem.row
        self.rows = self.index if n_variables == n_rows else np.arange(n_rows)
        self.beta, self.f, self.linear = self._beta.copy(), self._f.copy(), problem.linear
        self.lower, self.upper, self.ends = problem.lower, problem.upper, problem.ends
        self.diagonal = problem.K.diagonal[problem.row]
        self.F, self.rising, self.falling = np.empty((3, n_variables))
        self.extremes = np.empty((len(self.ends) - 1, 2))
        self.rounding_bound, self._f_is_recomputed, self._f_is_current = 0.0, True, True
        self._is_part, self._heeds_interrupts = False, True
        self._known = {}  # certificates by stretch, violation, offsets and rounding of the present point
        if self._beta.any():
            self._compute_f(self._row_weights())
        if start is not None:
            self._scale_start()

    def _compute_f(self, weights):
        """Compute f of these sums of the dual variables of each row, unless the kernel matrix remembers it."""
        known = self.problem.K.remembered
        if known is not None and np.array_equal(known.weights, weights):
            self.f[:], self.rounding_bound, self._f_is_recomputed = known.sums, known.error, False
            return
        moved = self.cache.fetch(np.flatnonzero(weights))
        self._add_rows(self.cache.values, moved, weights[moved], self.f)

    def remember(self):
        """Let a kernel matrix that was given keep f: the next problem with it may start from these dual variables."""
        if self.problem.K.held is not None and self._f_is_current and not self.omitted_bound.any():
            self._beta[self.index] = self.beta
            self.problem.K.remember(self._row_weights(), self.f, self.rounding_bound)

    def scan(self):
        """Return what `ActiveSet.scan` does, computed once for each point."""
        if "violation" not in self._known:
            self._known["violation"] = super().scan()
        return self._known["violation"]

    def certificate(self, stretch=1.0):
        """Return what `ActiveSet.certificate` does, computed once for each point."""
        if stretch not in self._known:
            self._known[stretch] = super().certificate(stretch)
        return self._known[stretch]

    def offsets(self):
        """Return what `ActiveSet.offsets` does, computed once for each point."""
        if "offsets" not in self._known:
            self._known["offsets"] = super().offsets()
        return self._known["offsets"]

    def gradient_rounding(self):
        """Return what `ActiveSet.gradient_rounding` does, computed once for each point."""
        if "rounding" not in self._known:
            self._known["rounding"] = super().gradient_rounding()
        return self._known["rounding"]

    def move(self, chosen, beta, slots):
        """Set dual variables as `ActiveSet.move` does."""
        self._known = {}
        super().move(chosen, beta, slots)

    def move_all(self, beta, F, n_steps):
        """Set all dual variables, one for each row, and their gradient, which so many pair steps have updated."""
        self._known = {}
        self._f_is_current = False
        self.beta[:] = beta
        np.subtract(F, self.linear, out=self.f)
        self.record_pair_steps(n_steps)
        self._f_is_current = True

    def unshrink(self, seconds=np.inf, exactly=False):
        """Complete f as `ActiveSet.unshrink` does."""
        if not self._f_is_current:
            self._known = {}
        super().unshrink(seconds, exactly)
