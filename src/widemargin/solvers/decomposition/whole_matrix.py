"""`svmlight` for small problems, whose kernel matrix is computed at once, and the choice between this and working sets.

If the kernel matrix of a problem takes little time and memory, it is computed as a whole. There is no cache, no
selection of working sets and no shrinking of arrays: each iteration optimises all dual variables, or those that are
not at a bound for good, by compiled steps that return to Python after some milliseconds, so that callbacks, limits
and Ctrl-C are noticed. Most problems are solved in one iteration.
"""

from dataclasses import replace

import numpy as np

from widemargin.kernels.cache import HeldRows
from widemargin.kernels.rows import submatrix
from widemargin.problems.formulations import KernelQP
from widemargin.solvers.decomposition.active_set import ActiveSet, check_sizes, feasible, group_sums
from widemargin.solvers.decomposition.conjugate_pairs import Direction, optimise_block
from widemargin.solvers.decomposition.pair_step import dual_variables
from widemargin.solvers.decomposition.stopping import StallDetector, StoppingRule
from widemargin.solvers.decomposition.svmlight import Decomposition, solve
from widemargin.solvers.spec import SolverSpec, Start

_ANY_KERNEL = 512  # dual variables up to which the matrix is computed as a whole, whatever the kernel
_CHEAP_KERNEL = 2048  # the same if a kernel value takes a few nanoseconds
_MAX_FRACTION_CHOSEN = 0.7  # of the dual variables; if more are not at a bound for good, all are optimised
_MIN_VARIABLES_TO_CHOOSE = 128
_STEP_NANOSECONDS = 1e7  # pair steps of one iteration
_NS_PER_PAIR_STEP = 3.0  # per dual variable
_MAX_PAIR_STEPS = 20_000
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
    method = WholeMatrix if _is_small(problem, settings) else Decomposition
    return solve(method(problem, settings, start), settings)


SVMLIGHT = SolverSpec(
    name="svmlight",
    solve=svmlight,
    takes=frozenset({KernelQP}),
    starts_from=Start.DUAL,
    stopping=("gap", "kkt"),
    counts="iterations",
)
KERNEL_AUTO = replace(SVMLIGHT, name="auto")


def _is_small(problem, settings):
    """Return whether the kernel matrix of a problem is computed as a whole: it is small, and there is memory for it."""
    if settings.working_set is not None:
        return False
    K, n_variables = problem.K, len(problem.start)
    n_bytes = K.dtype.itemsize * max(K.n_rows, n_variables) ** 2
    return n_variables <= (_CHEAP_KERNEL if K.cheap else _ANY_KERNEL) and n_bytes <= settings.cache_size * 2**20


class WholeMatrix(Decomposition):
    """The method of `svmlight` for a small problem; the attributes are those of a Decomposition."""

    limits_blas = False  # only Newton steps call it
    _iterations_before_shrinking = 0

    def __init__(self, problem, settings, start):
        self.state = state = _HeldSet(problem, settings, start)
        self.settings, self.iteration = settings, 0
        self.rule, self._stall = StoppingRule(settings), StallDetector()
        self._goal = self.rule.goal
        self._n_variables = n_variables = len(problem.start)
        self._working_set = state.index
        self._pair_nanoseconds, self._n_unfinished = 0.0, 0
        self._max_pair_steps = min(_MAX_PAIR_STEPS, int(_STEP_NANOSECONDS / (_NS_PER_PAIR_STEP * n_variables)) + 1)
        self._directions = np.empty((2, n_variables))
        matrix = state.cache.values
        self._matrix = matrix if state.has_one_per_row else submatrix(matrix, problem.row, problem.row)

    def _set_shrinking(self, n_iterations):
        """Do nothing, since no dual variable is removed."""

    def iterate(self):
        """Optimise all dual variables, or those that are not at a bound for good."""
        state = self.state
        chosen = self._chosen()
        goal = max(0.5 * self.rule.goal, state.gradient_rounding())
        if len(chosen) == self._n_variables:
            block = self._matrix
            variables = dual_variables(
                state.beta.copy(), state.F.copy(), state.lower, state.upper, state.diagonal, state.ends
            )  # fmt: skip
        else:
            goal = max(goal, _INNER_VIOLATION * self.violation)
            block = submatrix(self._matrix, chosen, chosen)
            variables = dual_variables(
                state.beta[chosen], state.F[chosen], state.lower[chosen], state.upper[chosen], state.diagonal[chosen],
                np.searchsorted(chosen, state.ends),
            )  # fmt: skip
        self._step(chosen, state.position[chosen], block, variables, goal)
        self.iteration += 1

    def _optimise(self, block, variables, goal):
        """Optimise as the base class does; a tiny problem, to full precision if a few thousand steps suffice."""
        decrease, by_newton = super()._optimise(block, variables, goal)
        if self.state.problem.K.n_rows <= MAX_ROWS_OF_FULL_PRECISION and not by_newton:
            direction = Direction(*self._directions)
            finest = max(0.5 * FULL_PRECISION, self.state.gradient_rounding())
            decrease += optimise_block(block, variables, direction, finest, _STEPS_TO_FULL_PRECISION)
        return decrease, by_newton

    def _chosen(self):
        """Return the dual variables to optimise, in ascending order."""
        state = self.state
        if self.iteration == 0 or self._n_variables < _MIN_VARIABLES_TO_CHOOSE or self._stall.has_stalled_once:
            return state.index
        smallest, largest = np.repeat(state.extremes, np.diff(state.ends), axis=0).T
        above, below = np.greater(state.F, largest), np.less(state.F, smallest)
        stays = ((state.beta <= state.lower) & above) | ((state.beta >= state.upper) & below)
        chosen = np.flatnonzero(~stays)
        return chosen if len(chosen) <= _MAX_FRACTION_CHOSEN * self._n_variables else state.index


class _HeldSet(ActiveSet):
    """An ActiveSet whose kernel matrix is in memory, and of which no dual variable is removed."""

    def __init__(self, problem, settings, start):
        self.problem, self.settings = problem, settings
        check_sizes(problem)
        is_new = problem.K.held is None
        self.cache = HeldRows(problem.K)
        self.cache.n_computed = float(is_new * problem.K.n_rows)
        self.sums, self._beta = group_sums(problem, problem.start), feasible(problem, start)
        n_rows, n_variables = problem.K.n_rows, len(self._beta)
        self._f, self.omitted_bound = np.zeros((2, n_rows))
        self.has_one_per_row = n_variables == n_rows and bool((problem.row == self.cache.slot_of).all())
        self._removed, self._largest_diagonal = [], float(np.abs(problem.K.diagonal).max(initial=0.0))
        self._pair_sum_size = problem.K.bound if n_variables > n_rows else 0.0
        self.index, self.rows, self.position = np.arange(n_variables), np.arange(n_rows), problem.row
        self.beta, self.f, self.linear = self._beta.copy(), self._f.copy(), problem.linear
        self.lower, self.upper, self.ends = problem.lower, problem.upper, problem.ends
        self.diagonal = problem.K.diagonal[problem.row]
        self.F, self.rising, self.falling = np.empty((3, n_variables))
        self.extremes = np.empty((len(self.ends) - 1, 2))
        self.rounding_bound, self._f_is_recomputed, self._f_is_current = 0.0, True, True
        self._known = {}  # certificates and offsets of the present point, by their functions and arguments
        if self._beta.any():
            weights = self._row_weights()
            moved = np.flatnonzero(weights)
            self._add_rows(self.cache.values, moved, weights[moved], self.f)
        if start is not None:
            self._scale_start()

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

    def move(self, chosen, beta, slots):
        """Set dual variables as `ActiveSet.move` does."""
        self._known = {}
        super().move(chosen, beta, slots)

    def recompute(self):
        """Compute f from scratch as `ActiveSet.recompute` does."""
        self._known = {}
        super().recompute()
