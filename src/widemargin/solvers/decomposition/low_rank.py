"""A low-rank factor of a whole kernel matrix, K ≈ V V', and Newton steps on all dual variables by it.

With a large C, most support vectors are at a bound and a few hundred are free, but the working sets of the
decomposition hold only a part of all dual variables, and the optimum of one undoes that of another. The kernel matrix
of smooth kernels has a low numerical rank. One Newton step for all dual variables (see `newton_on_free`) then takes
little time, and some dozen solve the problem as V V' states it. The change x that they return is a step of iterative
refinement: the gradient is updated by the kernel matrix itself, and the next change is computed from this gradient.

V is a pivoted Cholesky factor, computed a block of pivots at a time, so that most of the work is done by matrix
products. It needs no kernel values besides the rows of the pivots and the diagonal.
"""

import numpy as np
from scipy.linalg import solve_triangular
from scipy.linalg.lapack import dpstrf

from widemargin.solvers.decomposition.newton_on_free import newton_change

_PIVOTS_PER_BLOCK = 64
_MIN_PIVOT_RATIO = 0.01  # of a pivot to the largest one of its block; a smaller one waits for a later block
_TOLERANCE = {np.dtype(np.float32): 1e-5, np.dtype(np.float64): 1e-8}  # of the diagonal of K − V V', relative to K
_RANK_OF_FIRST_FORECAST = 128  # columns from which on the rank is forecast
_MAX_RANK_PER_ROW = 0.75  # with a larger rank there is nothing to gain
_BYTES_PER_MEGABYTE = 1 << 20
_MAX_STEPS = 100  # Newton steps for one change
_LARGEST_VIOLATION_RATIO = 0.5  # after a change / before it; if it leaves more, there are no further changes


class WholeProblem:
    """Changes of all dual variables of a KernelQP at once.

    Parameters
    ----------
    problem : KernelQP
    megabytes : float
        Memory for the factor, and for a copy of the rows of free dual variables.

    Attributes
    ----------
    is_possible : bool
        Whether to try: False if the rank is too large for the memory, or the last change did not help.
    """

    def __init__(self, problem, megabytes):
        n_numbers = megabytes * _BYTES_PER_MEGABYTE / 8.0
        self._problem, self._V = problem, None
        self._max_rank = int(min(0.5 * n_numbers / problem.K.n_rows, _MAX_RANK_PER_ROW * problem.K.n_rows))
        self.is_possible = problem.K.kernel.positive_definite and self._max_rank > _PIVOTS_PER_BLOCK

    def changed(self, state, violation, goal):
        """Return better dual variables for an ActiveSet, all of them being active, or None if it is not possible.

        `violation` is that of the state, and `goal` the one to be reached.
        """
        if self._V is None:
            self._V = low_rank_factor(self._problem.K, self._max_rank)
            self._last_violation = np.inf
            if self._V is not None:
                self._V -= self._V.mean(axis=0)  # which changes nothing, since the sum of each group is zero
        too_slow = violation > _LARGEST_VIOLATION_RATIO * self._last_violation
        self._last_violation = violation
        if self._V is None or too_slow:
            self.is_possible, self._V = False, None
            return None
        low, high = state.lower - state.beta, state.upper - state.beta
        options = {"size_of_beta": np.abs(state.beta).sum(), "goal": goal, "max_steps": _MAX_STEPS}
        x = newton_change(self._V, self._problem.row, state.F, (low, high), state.ends, **options)
        return np.where(x <= low, state.lower, np.where(x >= high, state.upper, state.beta + x))


def low_rank_factor(K, max_rank):
    """Return V with K ≈ V V' to about the precision of the kernel values, or None if it has more columns than max_rank.

    The largest diagonal value of K − V V' decreases about exponentially. If this rate leads to a larger rank, there is
    no result either, after little work.

    Parameters
    ----------
    K : KernelRows
        Positive semidefinite.
    max_rank : int
    """
    rest, rank = K.diagonal.copy(), 0
    largest = rest.max(initial=0.0)
    tolerance = _TOLERANCE[K.dtype] * largest
    V = np.empty((K.n_rows, max_rank), order="F")
    block, columns = np.empty((_PIVOTS_PER_BLOCK, K.n_rows), K.dtype), K.columns()
    while True:
        pivots = _largest(rest, _PIVOTS_PER_BLOCK)
        pivots = pivots[rest[pivots] > max(tolerance, _MIN_PIVOT_RATIO * rest.max(initial=0.0))]
        if not len(pivots):
            return np.ascontiguousarray(V[:, :rank])
        K.fill(pivots, columns, block, np.arange(len(pivots)))
        added = _columns_of(block[: len(pivots)], V[:, :rank], pivots, max(tolerance, _MIN_PIVOT_RATIO * rest.max()))
        if added is None or rank + added.shape[1] > max_rank:
            return None
        V[:, rank : rank + added.shape[1]] = added
        rank += added.shape[1]
        rest -= np.einsum("ij,ij->i", added, added)
        decay = np.log(max(rest.max(), tolerance) / largest)
        if rank >= _RANK_OF_FIRST_FORECAST and rank * np.log(tolerance / largest) < max_rank * decay:
            return None


def _columns_of(rows, V, pivots, tolerance):
    """Return the next columns of the factor from the kernel rows of some pivots; None if none is large enough."""
    rest = np.asfortranarray(rows.T, dtype=np.float64)
    rest -= V @ V[pivots].T
    factor, order, rank, _ = dpstrf(rest[pivots], tol=tolerance, lower=1)
    if rank == 0:
        return None
    lower = np.tril(factor)[:rank, :rank]
    return solve_triangular(lower, rest[:, order[:rank] - 1].T, lower=True, check_finite=False).T


def _largest(values, count):
    """Return the indices of the `count` largest values, in no order."""
    if count >= len(values):
        return np.arange(len(values))
    return np.argpartition(-values, count)[:count]
