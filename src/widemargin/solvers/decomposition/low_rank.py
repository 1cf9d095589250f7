"""A low-rank factor of a whole kernel matrix, K ≈ V V', and Newton steps on all dual variables by it.

With a large C, most support vectors are at a bound and a few hundred are free, but the working sets of the
decomposition hold only a part of all dual variables, and the optimum of one undoes that of another. The kernel matrix
of smooth kernels has a low numerical rank. The problem as V V' states it is then solved in little time, by a dozen
steps of an `interior_point` method, and some Newton steps from there (see `newton_on_free`), after which dual variables
are at their bounds. The change x that they return is a step of iterative refinement: the gradient is updated by the
kernel matrix itself, and the next change is computed from this gradient, by Newton steps alone.

V is a pivoted Cholesky factor, computed a block of pivots at a time, so that most of the work is done by matrix
products. It needs no kernel values besides the rows of the pivots and the diagonal. It is rough at first, and made more
accurate if changes do not reduce the violation.
"""

import numpy as np
from scipy.linalg import solve_triangular
from scipy.linalg.lapack import dpstrf

from widemargin.solvers.decomposition.interior_point import interior_point
from widemargin.solvers.decomposition.newton_on_free import newton_change

_PIVOTS_PER_BLOCK = 64
_MIN_PIVOT_RATIO = 0.01  # of a pivot to the largest one of its block; a smaller one waits for a later block
# Of the diagonal of K − V V', relative to K. A rough factor is tried first, since it has half as many columns.
_TOLERANCES = {np.dtype(np.float32): (1e-5,), np.dtype(np.float64): (1e-5, 1e-8)}
_RANK_OF_FIRST_FORECAST = 128  # columns from which on the rank is forecast
_MAX_RANK_PER_ROW = 0.75  # with a larger rank there is nothing to gain
_FRACTION_OF_CACHE = 0.25  # that the factor may take
_BYTES_PER_MEGABYTE = 1 << 20
_MAX_STEPS = 100  # Newton steps for one change
_VIOLATION_RATIO = 0.02  # to which one change reduces the violation of the problem that V V' states
_LARGEST_VIOLATION_RATIO = 0.5  # after a change / before it; if it leaves more, the factor is too rough
_FIRST_DELTA, _DELTA_OF_REFINEMENT = 1e-5, 1e-4  # of `newton_on_free`; both points are near the minimum
_EXPECTED_ROWS_PER_RANK, _EXPECTED_ITERATIONS, _NS_PER_PRODUCT = 8, 12, 0.03  # of the first change


def whole_nanoseconds(n_rows):
    """Return the approximate time of the first change of all dual variables, for a rank that is not yet known."""
    return _EXPECTED_ITERATIONS * _NS_PER_PRODUCT * n_rows * (n_rows / _EXPECTED_ROWS_PER_RANK) ** 2


class WholeProblem:
    """Changes of all dual variables of a KernelQP at once.

    Parameters
    ----------
    problem : KernelQP
    megabytes : float
        Memory of the cache of kernel rows. The factor and a copy of it take at most half as much in addition.
    is_over : function
        Returns whether the solver has to stop; asked for in the course of long computations.

    Attributes
    ----------
    is_possible : bool
        Whether to try: False if the rank is too large for the memory, or the last change did not help.
    """

    def __init__(self, problem, megabytes, is_over):
        max_numbers, n_rows = _FRACTION_OF_CACHE * megabytes * _BYTES_PER_MEGABYTE / 8.0, problem.K.n_rows
        max_rank = int(min(max_numbers / n_rows, _MAX_RANK_PER_ROW * n_rows))
        self.is_possible = problem.K.kernel.positive_definite and max_rank > _PIVOTS_PER_BLOCK
        self._row, self._factor, self._is_over = problem.row, LowRankFactor(problem.K, max_rank), is_over
        self._tolerances, self._last_violation = list(_TOLERANCES[problem.K.dtype]), 0.0

    def changed(self, state, violation, goal):
        """Return better dual variables for an ActiveSet, all of them being active, or None if it is not possible.

        `violation` is that of the state, and `goal` the one to be reached.
        """
        if violation > _LARGEST_VIOLATION_RATIO * self._last_violation:
            self._V = None
            self.is_possible = bool(self._tolerances) and self._factor.extend(self._tolerances.pop(0), self._is_over)
            if not self.is_possible:
                self._factor = None
                return None
            self._V = self._factor.V
            self._V -= self._V.mean(axis=0)  # which changes nothing, since the sum of each group is zero
        is_first, self._last_violation = self._last_violation == 0.0, violation
        low, high = state.lower - state.beta, state.upper - state.beta
        options = {"size_of_beta": np.abs(state.beta).sum(), "max_steps": _MAX_STEPS, "is_over": self._is_over}
        options["goal"] = max(goal, _VIOLATION_RATIO * violation)
        options["first_delta"] = _DELTA_OF_REFINEMENT
        if is_first:
            options["start"], options["first_delta"] = self._start(state, (low, high), options["goal"]), _FIRST_DELTA
        x = newton_change(self._V, self._row, state.F, (low, high), state.ends, **options)
        return np.where(x <= low, state.lower, np.where(x >= high, state.upper, state.beta + x))

    def _start(self, state, bounds, goal):
        """Return changes near the minimum of the problem that V V' states."""
        n_groups = len(state.ends) - 1
        groups = np.repeat(np.arange(n_groups), np.diff(state.ends))[:, np.newaxis]
        E = (groups == np.arange(n_groups)).astype(np.float64)
        with np.errstate(all="ignore"):
            return interior_point(self._V, self._row, state.F, bounds, E, goal=goal, is_over=self._is_over)


class LowRankFactor:
    """A factor V of a positive semidefinite kernel matrix, K ≈ V V', which can be made more accurate.

    Parameters
    ----------
    K : KernelRows
    max_rank : int
        Number of columns that V may have.
    """

    def __init__(self, K, max_rank):
        self._K, self._memory, self._rank = K, np.empty((K.n_rows, max_rank), order="F"), 0
        self._rest = K.diagonal.copy()  # the diagonal of K − V V'
        self._largest = self._rest.max(initial=0.0)

    @property
    def V(self):
        """The factor."""
        return np.ascontiguousarray(self._memory[:, : self._rank])

    def extend(self, tolerance, is_over=lambda: False):
        """Add columns until the diagonal of K − V V' is within a tolerance, relative to that of K.

        Returns whether this is possible with so few columns, and before `is_over()` is true. The largest value of the
        diagonal decreases about exponentially. If this rate leads to too many columns, the answer is no after little
        work.
        """
        rest, tolerance = self._rest, tolerance * self._largest
        block, columns = np.empty((_PIVOTS_PER_BLOCK, self._K.n_rows), self._K.dtype), self._K.columns()
        while rest.max(initial=0.0) > tolerance:
            pivots = _largest(rest, _PIVOTS_PER_BLOCK)
            least = max(tolerance, _MIN_PIVOT_RATIO * rest.max())
            pivots = pivots[rest[pivots] > least]
            self._K.fill(pivots, columns, block, np.arange(len(pivots)))
            added = _columns_of(block[: len(pivots)], self._memory[:, : self._rank], pivots, least)
            rank = self._rank + added.shape[1]
            if not added.shape[1] or rank > self._memory.shape[1]:
                return False
            self._memory[:, self._rank : rank], self._rank = added, rank
            rest -= np.einsum("ij,ij->i", added, added)
            if is_over() or (rank >= _RANK_OF_FIRST_FORECAST and self._forecast(tolerance) > self._memory.shape[1]):
                return False
        return True

    def _forecast(self, tolerance):
        """Return the number of columns at which the tolerance will be reached."""
        largest = self._rest.max()
        if largest <= tolerance:
            return self._rank
        decay = np.log(largest / self._largest)
        return self._rank * np.log(tolerance / self._largest) / decay if decay < 0.0 else np.inf


def _columns_of(rows, V, pivots, tolerance):
    """Return the next columns of the factor from the kernel rows of some pivots; none if none is large enough."""
    rest = np.asfortranarray(rows.T, dtype=np.float64)
    rest -= V @ V[pivots].T
    factor, order, rank, _ = dpstrf(rest[pivots], tol=tolerance, lower=1)
    lower = np.tril(factor)[:rank, :rank]
    return solve_triangular(lower, rest[:, order[:rank] - 1].T, lower=True, check_finite=False).T


def _largest(values, count):
    """Return the indices of the `count` largest values, in no order."""
    if count >= len(values):
        return np.arange(len(values))
    return np.argpartition(-values, count)[:count]
