"""Decision values of support vectors as if each had been left out, from one Cholesky factor; see `out_of_sample`.

With F the free support vectors, v_i = (K_Fi, 1), M = [[K_FF, 1], [1', 0]], L L' = K_FF, a = L⁻¹ 1, T = L⁻¹ K_F· and
u_j = 1 − a't_j,

    (M⁻¹)_FF = L⁻ᵀL⁻¹ − L⁻ᵀa a'L⁻¹ / a'a
    K_ij − v_i' M⁻¹ v_j = K_ij − t_i't_j + u_i u_j / a'a
    (M⁻¹ v_j)_F = L⁻ᵀ (t_j + u_j a / a'a)
"""

from typing import NamedTuple

import numpy as np
from scipy.linalg.blas import dtrmm, strmm
from scipy.linalg.lapack import dpotrf, dtrtri, strtri

from widemargin.problems.takeover import Candidates, Removed, list_places, takeovers

AT_BOUND = 1.0 - 1e-6  # of the cost
RIDGE = {np.dtype(np.float64): 1e-10, np.dtype(np.float32): 1e-6}  # by precision of K, relative to its diagonal
_RIDGE_FACTOR = 100.0  # if the kernel matrix is not positive definite
MIN_FREE = 2  # otherwise the affine hull is empty
_BEYOND_MARGIN, _WITHIN_MARGIN = 0.2, 0.3  # distances of margins from 1 up to which rows may take over
_MAX_CANDIDATES = 1000  # rows that may take over
_MIN_ROWS = 1000  # of a machine in which rows take over: with fewer, what is fitted is less certain than it is biased
_MIN_CHANGE = 0.4  # of a decision value, from which on another row may take over


class Places(NamedTuple):
    """Positions of free support vectors, of those at bound, and of rows that may take over from one that is left out.

    Those that may are the ones at bound and the rows without influence whose margins are near 1; `candidates` are their
    places among the support vectors at bound, followed by the rows `near`.
    """

    free: np.ndarray
    bound: np.ndarray
    near: np.ndarray
    candidates: np.ndarray


def without_each(machine, f, block, diagonal, *, is_free=None, takes_over=True):
    """Return f, and of support vectors their decision values without them.

    Parameters
    ----------
    machine : BinaryMachine
    f : ndarray
        Its decision values.
    block : function
        block(rows, columns) returns kernel values of rows, all by positions.
    diagonal : ndarray
        K(x, x) of all rows.
    is_free : ndarray of bool, default=None
        The support vectors that span the affine hull. None takes those between their bounds, and if these are fewer
        than two, the two with margins closest to 1.
    takes_over : bool, default=True
        Whether another row may take over, as in `problems.takeover`, which is about classes; with 1,000 rows or more.

    Returns
    -------
    ndarray of shape (n_rows,)
        Within the range of f.
    """
    free, bound, near, candidates = _places(machine, f, _free(machine, f) if is_free is None else is_free, takes_over)
    others, n_bound = np.concatenate([bound, near]), len(bound)
    order, left_out = np.concatenate([free, bound]), f.copy()
    hull = _Hull(block(free, free))
    projected = hull.projected(block(free, others))
    squares = hull.residual_squares(*projected, diagonal[others])
    spans = np.concatenate([hull.spans(), squares[:n_bound]])
    found = f[order] - machine.coef[order] * spans
    if len(candidates):
        large = np.flatnonzero(np.abs(found - f[order]) > _MIN_CHANGE)
        n_free, chosen = int(np.searchsorted(large, len(free))), others[candidates]
        of_bound = large[n_free:] - len(free)
        parts = [[part[some] for part in projected] for some in (of_bound, candidates)]
        cross = hull.cross(large[:n_free], spans[large[:n_free]], *parts)
        cross[n_free:] += block(bound[of_bound], chosen)
        numbers = f[chosen], machine.sign[chosen], np.abs(machine.coef[chosen]), machine.cost[chosen]
        candidate_rows = Candidates(*numbers, squares[candidates], chosen)
        removed = Removed(order[large], machine.coef[order[large]], spans[large], n_free)
        found[large] += takeovers(candidate_rows, removed, cross, hull.ridge, np.empty(len(large)))
    left_out[order] = found
    return np.clip(left_out, f.min(), f.max())


def may_take_over(n_rows):
    """Return whether a machine has enough rows for one to take over from another."""
    return n_rows >= _MIN_ROWS


def _free(machine, f):
    """Return which support vectors are free; the two with margins closest to 1, if fewer are."""
    size = np.abs(machine.coef)
    is_free = (size > 0.0) & (size < AT_BOUND * machine.cost)
    if np.count_nonzero(is_free) < MIN_FREE:
        distance = np.where(size > 0.0, np.abs(1.0 - machine.sign * f), np.inf)
        is_free[np.argsort(distance, kind="stable")[: min(MIN_FREE, np.count_nonzero(size))]] = True
    return is_free


def _places(machine, f, is_free, takes_over):
    """Return the Places of a machine with decision values f."""
    takes_over = takes_over and may_take_over(len(f))
    margin, lists = machine.sign * f, np.empty((4, len(f)), np.intp)
    limits = (_BEYOND_MARGIN, _WITHIN_MARGIN) if takes_over else (-np.inf, -np.inf)
    sizes = list_places((machine.coef, machine.cost, margin, is_free), limits, lists)
    free, bound, near, of_bound = (part[:size] for part, size in zip(lists, sizes, strict=True))
    candidates = np.concatenate([of_bound, np.arange(len(bound), len(bound) + len(near))])
    if len(candidates) > _MAX_CANDIDATES:
        far = np.abs(1.0 - margin[np.concatenate([bound, near])[candidates]])
        candidates = candidates[np.sort(np.argsort(far, kind="stable")[:_MAX_CANDIDATES])]
    return Places(free, bound, near, candidates)


class _Hull:
    """The affine hull of the free support vectors, by the inverse of a Cholesky factor of their kernel matrix.

    `ridge` is what is added to the diagonal; it is increased until the matrix is positive definite.
    """

    def __init__(self, K):
        self.ridge = RIDGE[K.dtype] * max(float(K.diagonal().max()), np.finfo(np.float64).tiny)
        while True:
            regular = np.array(K, dtype=np.float64, order="F")
            np.einsum("ii->i", regular)[:] += self.ridge
            factor, is_failure = dpotrf(regular, lower=1, clean=1, overwrite_a=1)
            if not is_failure:
                break
            self.ridge *= _RIDGE_FACTOR
        # Kernel values in single precision are no more accurate than their products in it.
        invert = strtri if K.dtype == np.float32 else dtrtri
        self._inverse = invert(factor.astype(K.dtype, copy=False), lower=1, overwrite_c=1)[0]
        self._a = self._inverse.sum(axis=1)
        self._square = float(np.square(self._a, dtype=np.float64).sum())
        self._b = self._a @ self._inverse  # L⁻ᵀa

    def projected(self, values):
        """Return T' and u of rows, from their kernel values with the free support vectors, one column for each."""
        inverse, a = self._inverse, self._a
        multiply = strmm if inverse.dtype == np.float32 else dtrmm
        T = multiply(1.0, inverse, np.array(values.T, dtype=inverse.dtype, order="F"), 1, 1, 1, overwrite_b=1)
        return T, 1.0 - T @ a

    def spans(self):
        """Return 1 / (M⁻¹)_ii."""
        squares = np.einsum("ij,ij->j", self._inverse, self._inverse)
        of_inverse = squares.astype(np.float64) - np.square(self._b, dtype=np.float64) / self._square
        return 1.0 / np.maximum(of_inverse, np.finfo(np.float64).tiny)

    def residual_squares(self, T, u, diagonal):
        """Return the squared distances of rows from the hull."""
        return np.maximum(diagonal - np.einsum("ij,ij->i", T, T) + u**2 / self._square, 0.0)

    def cross(self, of_free, spans, of_bound, of_candidates):
        """Return r_ij of `takeover` for some free support vectors and some at bound, the latter without K_ij.

        `spans` are those of the free ones, `of_bound` and `of_candidates` what `projected` returns of these rows.
        """
        (T_bound, u_bound), (T, u) = of_bound, of_candidates
        inverse, a = self._inverse, self._a
        shifted = T + np.outer(u, a / a.dtype.type(self._square))
        cross = np.empty((len(of_free) + len(u_bound), len(u)))
        cross[: len(of_free)] = spans[:, np.newaxis] * (inverse[:, of_free].T @ shifted.T)
        cross[len(of_free) :] = np.outer(u_bound / self._square, u) - T_bound @ T.T
        return cross
