"""Newton steps on all free dual variables at once, by a Cholesky factor of their kernel matrix.

If thousands of dual variables are free and the kernel matrix has no low rank, working sets hold a part of the free
ones only, and the optimum of one undoes that of another. When few bounds are still wrong, the following converges in
a handful of rounds. A is the set of dual variables that are free, or at a bound that they violate:

    face      minimise ½ x'K x + F'x   over the changes x of A, with all others fixed and the sum of each group zero
    bounds    those that would leave their bounds are set to the bound, and removed from A; then the face again, until
              all are within bounds
    line      the largest part of the change that decreases the objective, which is all of it near the solution

K_AA is factorised in the precision of the kernel values. Errors of a step are corrected by the next one, since the
gradient is updated by the kernel rows in double precision. This is the method of block pivoting for problems with
bounds (Portugal, Júdice and Vicente, 1994), with a line search, so that the objective decreases.
"""

import numpy as np
from scipy.linalg import get_lapack_funcs, solve_triangular

from widemargin.solvers.decomposition.kernel_block import block_of
from widemargin.solvers.decomposition.kernel_sums import add_rows
from widemargin.solvers.decomposition.newton_on_free import solve_definite

_FRACTION_OF_CACHE = 0.5  # of the memory of the cache, which a factor may take in addition
_BYTES_PER_MEGABYTE = 1 << 20
_NS_PER_CUBE = {4: 0.0055, 8: 0.011}  # of a factorisation, by the bytes of a kernel value
_MAX_FRACTION_RELEASED = 0.05  # of the free dual variables; if more are at a wrong bound, a first round helps little
_MAX_FRACTION_RELEASED_LATER = 0.15  # the same after a round that helped
_MAX_FRACTION_LEAVING = 0.2  # of A, after the first solution of a round; with more, working sets are better
_MAX_SOLUTIONS = 8  # of a round
_GROUP_SUM_TOL = 1e-12  # of the sum of a group that should not change, relative to its terms
_COLUMNS_PER_BLOCK = 512  # of the factorisation, between which interrupts are noticed
_FIRST_RIDGE, _RIDGE_FACTOR, _LARGEST_RIDGE = 1e-6, 100.0, 1e-2  # added to the diagonal, relative to its largest value


class FreeBlock:
    """Rounds of Newton steps on the free dual variables of an ActiveSet.

    Parameters
    ----------
    state : ActiveSet
    is_over : function
        Returns whether the solver has to stop; asked for in the course of long computations.

    Attributes
    ----------
    is_settled : bool
        Whether the last round helped, so that another one follows at once.
    """

    def __init__(self, state, is_over):
        self._state, self._is_over = state, is_over
        self.is_settled = False
        self._max_bytes = _FRACTION_OF_CACHE * state.settings.cache_size * _BYTES_PER_MEGABYTE

    def nanoseconds(self, size):
        """Return the approximate time of a factorisation for so many dual variables."""
        return _NS_PER_CUBE[self._state.problem.K.dtype.itemsize] * float(size) ** 3

    def chosen(self):
        """Return A, at most one dual variable for each kernel row, or None if it is too large or too many are released.

        The state must have been scanned.
        """
        state = self._state
        free = np.flatnonzero((state.beta > state.lower) & (state.beta < state.upper))
        released = self._released()
        candidates = np.concatenate([free, released])
        _, first = np.unique(state.position[candidates], return_index=True)  # free ones before those released
        n_bytes = state.problem.K.dtype.itemsize * len(first) ** 2
        too_large = n_bytes > self._max_bytes or len(first) > state.cache.n_slots
        most = _MAX_FRACTION_RELEASED_LATER if self.is_settled else _MAX_FRACTION_RELEASED
        if too_large or len(released) > most * len(free):
            self.is_settled = False
            return None
        return np.sort(candidates[first])

    def _released(self):
        """Return the dual variables at a bound whose gradient lies on the wrong side of that of the free ones."""
        state = self._state
        offset = np.repeat(state.offsets(), np.diff(state.ends))
        at_lower, at_upper = state.beta <= state.lower, state.beta >= state.upper
        excess = state.F - offset
        wrong = (at_lower & (excess < 0.0)) | (at_upper & (excess > 0.0))
        return np.flatnonzero(wrong & (state.lower < state.upper))

    def change(self, chosen):
        """Change the dual variables `chosen`; return the decrease of the objective, 0 if there was none."""
        state = self._state
        self.is_settled = False
        slots = state.cache.fetch(state.rows[state.position[chosen]])
        with np.errstate(all="ignore"):  # a result that is not finite is discarded
            x, f = self._minimum(chosen, slots)
            if x is None:
                return 0.0
            change = x - state.beta[chosen]
            slope = float(state.F[chosen] @ change)
            curvature = float((f - state.f)[state.position[chosen]] @ change)
            part = 1.0
            if not 2.0 * slope + curvature < 0.0:
                part = -slope / curvature if curvature > 0.0 else 0.0
            decrease = -part * slope - 0.5 * part**2 * curvature
        if not (0.0 < part <= 1.0 and 0.0 < decrease < np.inf):
            return 0.0
        self.is_settled = True
        if part < 1.0:
            x = np.clip(state.beta[chosen] + part * change, state.lower[chosen], state.upper[chosen])
        state.move(chosen, x, slots)
        return decrease

    def _minimum(self, chosen, slots):
        """Return the values of the dual variables `chosen` at the minimum, within bounds, and f; (None, None) if none.

        Those that reach a bound are fixed there, one solution after the other.
        """
        state, position = self._state, self._state.position[chosen]
        before, lower, upper = state.beta[chosen], state.lower[chosen], state.upper[chosen]
        groups = np.searchsorted(state.ends, chosen, side="right") - 1
        x, f, inside = before, state.f, np.arange(len(chosen))
        for n_solutions in range(_MAX_SOLUTIONS):
            factor = self._factor(slots[inside], position[inside]) if len(inside) else None
            if factor is None:
                return None, None
            sums = np.bincount(groups, x - before, minlength=len(state.ends) - 1)
            step = _solution(factor, f[position[inside]] + state.linear[chosen[inside]], groups[inside], sums)
            target = x[inside] + step
            moved = np.clip(target, lower[inside], upper[inside])
            leaves = moved != target  # also if it is not a number
            if n_solutions == 0 and np.count_nonzero(leaves) > _MAX_FRACTION_LEAVING * len(chosen):
                return None, None
            x, f = x.copy(), state.f.copy()
            x[inside] = moved
            add_rows(state.cache.values, slots, x - before, f, state.problem.K.bound, state.settings.n_jobs)
            inside = inside[~leaves]
            if not leaves.any():
                return (x, f) if self._has_zero_sums(groups, x - before) else (None, None)
        return None, None

    def _has_zero_sums(self, groups, change):
        """Return whether the sum of the changes of each group is zero but for rounding."""
        tol = _GROUP_SUM_TOL * (np.abs(self._state.beta).sum() + np.abs(change).sum())
        return bool((np.abs(np.bincount(groups, change)) <= tol).all())

    def _factor(self, slots, columns):
        """Return the Cholesky factor of the kernel matrix of some rows; None if there is none, or no time for it."""
        values, ridge = self._state.cache.values, _FIRST_RIDGE
        largest = self._state.diagonal.max(initial=0.0)
        while ridge <= _LARGEST_RIDGE:
            K = block_of(values, slots, columns)
            K.flat[:: len(K) + 1] += ridge * largest
            if factorise(K, self._is_over):
                return K
            if self._is_over():
                return None
            ridge *= _RIDGE_FACTOR
        return None


def factorise(A, is_over=lambda: False):
    """Overwrite the lower triangle of A by its Cholesky factor; return whether A is positive definite and time is left.

    A block of columns at a time, of which most of the work is one matrix product.
    """
    (potrf,) = get_lapack_funcs(["potrf"], [A])
    if len(A) <= _COLUMNS_PER_BLOCK:
        factor, failed = potrf(A.T, lower=0, overwrite_a=1, clean=0)  # the transpose is contiguous for LAPACK
        if not np.may_share_memory(factor, A):
            A.T[:] = factor
        return not failed and bool(np.isfinite(factor.diagonal()).all()) and not is_over()
    for begin in range(0, len(A), _COLUMNS_PER_BLOCK):
        here = slice(begin, begin + _COLUMNS_PER_BLOCK)
        A[begin:, here] -= A[begin:, :begin] @ A[here, :begin].T
        factor, failed = potrf(A[here, here], lower=1)
        if failed or not np.isfinite(factor.diagonal()).all() or is_over():
            return False
        A[here, here] = factor
        rest = slice(begin + _COLUMNS_PER_BLOCK, None)
        A[rest, here] = solve_triangular(factor, A[rest, here].T, lower=True, check_finite=False).T
    return True


def _solution(factor, gradient, groups, sums):
    """Return x with K x + gradient constant in each group, and −sums as the sums of its groups; `factor` is that of K.

    A group without members remains as it is.
    """
    (potrs,) = get_lapack_funcs(["potrs"], [factor])
    members, member = (groups[:1], np.zeros_like(groups)) if groups[0] == groups[-1] else _distinct(groups)
    E = (member[:, np.newaxis] == np.arange(len(members))).astype(np.float64)
    gradient = gradient - (np.bincount(member, gradient) / np.bincount(member))[member]  # for the sake of rounding
    right = np.column_stack([-gradient, E]).astype(factor.dtype)
    solved = potrs(factor.T, right, lower=0)[0].astype(np.float64)  # the transpose is contiguous for LAPACK
    offsets = solve_definite(E.T @ solved[:, 1:], (-sums[members] - E.T @ solved[:, 0])[:, np.newaxis])[:, 0]
    return solved[:, 0] + solved[:, 1:] @ offsets


def _distinct(groups):
    """Return the distinct groups, and for each dual variable the position of its own among these."""
    return np.unique(groups, return_inverse=True)
