"""Choose few vectors whose combinations are near to the functions of a kernel model.

Of all vectors that are not chosen yet, the next is the one that reduces Σ_p |f_p − g_p|² most, where g_p is the
function nearest to f_p on the chosen vectors. For a vector x, with r_p = f_p − g_p and the part of K(x, ·) that is
orthogonal to the chosen vectors of output p, whose squared norm is d_p(x), this reduction is Σ_p r_p(x)² / d_p(x). This
is orthogonal least squares (Chen, Billings and Luo, Int. J. Control 50 (1989)); r and d follow from a Cholesky
factorisation that grows by a row with each vector.

A round chooses several vectors: the greedy rule is applied exactly within a pool of the most promising vectors, until
the best of the pool is worse than the best outside was. Then the factors of all vectors are updated by products of
matrices, which BLAS computes at full speed. Outputs with the same vectors share a factor. Memory is that of the
factors: one number for each chosen vector and candidate, twice as many for pairs of classes that do not share. If that
is more than `_BYTES_OF_FACTORS`, only some of the vectors, evenly spaced, are candidates.
"""

from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.linalg import solve_triangular

from widemargin._runtime.progress import task
from widemargin._runtime.threads import run, single_threaded_blas
from widemargin.kernels.rows import KernelRows

_VECTORS_PER_ROUND, _POOL = 48, 256
_BYTES_OF_FACTORS = 1 << 30
_CANDIDATES_PER_VECTOR = 3  # at least, whatever memory that takes
_MAX_NUMBERS_IN_DOUBLE = 1 << 26  # of the factors; more are kept in single precision
_SMALLEST_PART = {8: 1e-10, 4: 1e-5}  # d / K(x, x) of a vector that is independent of others, by bytes of a number
_SMALLEST_GAIN = 1e-14  # of Σ_p |f_p|²; a smaller reduction is rounding
_COLUMNS_PER_TASK = 2048


@dataclass(frozen=True)
class Choice:
    """The vectors in the order in which they were chosen, and by how much each reduced |f_p − g_p|² of each output."""

    order: np.ndarray
    decrease: np.ndarray


def choose_vectors(f, values, squared_norms, n_vectors, largest=0.0):
    """Choose vectors of a kernel model one after the other.

    Parameters
    ----------
    f : Expansions
    values : ndarray
        `values_at(f, f)`.
    squared_norms : ndarray
        |f_p|² of each output.
    n_vectors : int
        How many to choose at most; there are fewer if others would reduce the distances by no more than rounding.
    largest : float, default=0.0
        |f_p − g_p|² of an output that is near enough: it is not reduced further, and when all are, the choice ends.

    Returns
    -------
    Choice
    """
    candidates = _candidates(f.n_vectors, n_vectors, len(f.groups()))
    part = f if len(candidates) == f.n_vectors else f.chosen(candidates)
    dtype = np.float64 if n_vectors * len(candidates) <= _MAX_NUMBERS_IN_DOUBLE else np.float32
    n_found = 1
    with single_threaded_blas(), task("choosing vectors", n_vectors, "vectors") as choosing:
        search = _Search(part, values[:, candidates], squared_norms, dtype)
        while n_found and len(search.order) < n_vectors and (search.distances > largest).any():
            n_found = search.advance(min(_VECTORS_PER_ROUND, n_vectors - len(search.order)), largest)
            choosing.advance(n_found)
    decrease = np.array(search.decrease).reshape(-1, len(f.outputs))
    return Choice(candidates[np.array(search.order, dtype=int)], decrease)


def _candidates(n_all, n_vectors, n_factors):
    """Return the numbers of the vectors to choose from, evenly spaced, so that the factors fit into memory."""
    bytes_per_candidate = 4 * n_vectors * min(2, n_factors)
    n_candidates = max(_BYTES_OF_FACTORS // bytes_per_candidate, _CANDIDATES_PER_VECTOR * n_vectors)
    if n_candidates >= n_all:
        return np.arange(n_all)
    return (np.arange(n_candidates) * n_all) // n_candidates


class _Factor:
    """The Cholesky factor of outputs with the same vectors: lines[k, i] of the k-th chosen vector and i-th candidate.

    `numbers` are the candidates, `place` their positions (−1 for others), `residual` the values of r of each output at
    them, and `own` those of d.
    """

    def __init__(self, f, outputs, values, diagonal, dtype):
        self.outputs = np.array(outputs)
        self.numbers = np.concatenate([vectors for _, vectors in f.cells(outputs[0])])
        self.place = np.full(f.n_vectors, -1)
        self.place[self.numbers] = np.arange(len(self.numbers))
        self.residual = np.array([f.gathered(values, p) for p in outputs])
        self.own = diagonal[self.numbers].astype(np.float64)
        self._memory, self.n_lines = np.empty((0, len(self.numbers)), dtype), 0

    @property
    def lines(self):
        """The lines of all chosen vectors."""
        return self._memory[: self.n_lines]

    def grow(self, n_more):
        """Return memory for further lines, which `lines` then contains."""
        needed = self.n_lines + n_more
        if needed > len(self._memory):
            memory = np.empty((max(needed, len(self._memory) * 3 // 2), len(self.numbers)), self._memory.dtype)
            memory[: self.n_lines] = self.lines
            self._memory = memory
        self.n_lines = needed
        return self._memory[needed - n_more : needed]


class _Search:
    """The state of a choice: the factors of all outputs, with the values of r and d at all candidates."""

    def __init__(self, f, values, squared_norms, dtype):
        self._rows = KernelRows(f.kernel, f.vectors, dtype=dtype, n_jobs=f.n_jobs)
        self._columns, self._n_jobs = self._rows.columns(), f.n_jobs
        diagonal, dtype = self._rows.diagonal, self._rows.dtype
        self._smallest = _SMALLEST_PART[dtype.itemsize] * diagonal
        self._factors = [_Factor(f, outputs, values, diagonal, dtype) for outputs in f.groups()]
        self._is_chosen, self._smallest_gain = np.zeros(f.n_vectors, bool), _SMALLEST_GAIN * squared_norms.sum()
        self.order, self.decrease, self.distances = [], [], squared_norms.copy()

    def advance(self, n_more, largest):
        """Choose up to `n_more` vectors; return how many, 0 if all others depend on the chosen ones."""
        is_active = self.distances > largest
        gains = self._gains(is_active)
        pool, outside = _most_promising(gains)
        if not len(pool):
            return 0
        taken = self._choose_within(pool, max(outside, self._smallest_gain), n_more, is_active)
        self._append(pool[taken])
        return len(taken)

    def _gains(self, is_active):
        """Return by how much each candidate would reduce the squared distances of the active outputs together."""
        gains = np.zeros(len(self._is_chosen))
        for factor in self._factors:
            residual = factor.residual[is_active[factor.outputs]]
            is_free = factor.own > self._smallest[factor.numbers]
            squares = np.einsum("pi,pi->i", residual, residual)
            gains[factor.numbers[is_free]] += squares[is_free] / factor.own[is_free]
        gains[self._is_chosen | (gains <= self._smallest_gain)] = 0.0
        return gains

    def _choose_within(self, pool, outside, n_more, is_active):
        """Return positions in the pool, chosen by the exact rule until its best is below `outside`."""
        K = np.empty((len(pool), len(pool)), self._rows.dtype)
        self._rows.fill(pool, self._rows.columns(pool), K, np.arange(len(pool)))
        factors = [factor for factor in self._factors if is_active[factor.outputs].any()]
        parts = [_PoolPart(factor, is_active, K, pool, self._smallest[pool]) for factor in factors]
        taken, is_left = [], np.ones(len(pool), bool)
        while len(taken) < n_more:
            gains = np.zeros(len(pool))
            for part in parts:
                gains[part.inside] += part.gains()
            gains[~is_left] = -1.0
            best = int(gains.argmax())
            if taken and not gains[best] > outside:
                break
            taken.append(best)
            is_left[best] = False
            for part in parts:
                part.choose(best)
        return taken

    def _append(self, chosen):
        """Add chosen vectors to the factors of all outputs that have them."""
        self._is_chosen[chosen] = True
        values = np.empty((len(chosen), self._columns.n_columns), self._rows.dtype)
        self._rows.fill(chosen, self._columns, values, np.arange(len(chosen)))
        decrease = np.zeros((len(chosen), len(self.distances)))
        found = run(self._new_lines, [(factor, chosen, values, decrease) for factor in self._factors], self._n_jobs)
        tasks = [
            (factor, lines, slice(begin, begin + _COLUMNS_PER_TASK))
            for factor, lines in zip(self._factors, found, strict=True)
            if lines is not None
            for begin in range(0, len(factor.numbers), _COLUMNS_PER_TASK)
        ]
        run(partial(_update, values), tasks, self._n_jobs)
        self.order += chosen.tolist()
        self.decrease += list(decrease)
        self.distances = np.maximum(self.distances - decrease.sum(axis=0), 0.0)

    def _new_lines(self, factor, chosen, values, decrease):
        """Return what `_update` needs of chosen vectors, whose kernel values are given, and set their decreases.

        None if the outputs of the factor have none of them.
        """
        mine = np.flatnonzero(factor.place[chosen] >= 0)
        places, old = factor.place[chosen[mine]], factor.lines
        if not len(mine):
            return None
        small = values[np.ix_(mine, chosen[mine])] - old[:, places].T @ old[:, places]
        lower, kept = _factorised(small.astype(np.float64), self._smallest[chosen[mine]])
        mine, places = mine[kept], places[kept]
        if not len(mine):
            return None
        weights, n_old = old[:, places].T.copy(), factor.n_lines
        factor.grow(len(mine))
        inverse = solve_triangular(lower, np.eye(len(lower)), lower=True).astype(weights.dtype)
        steps = solve_triangular(lower, factor.residual[:, places].T, lower=True)
        decrease[np.ix_(mine, factor.outputs)] = steps**2
        return _NewLines(mine, n_old, weights, inverse, steps)


class _NewLines(NamedTuple):
    """The chosen vectors of a factor: positions, number of lines before, columns of these, L⁻¹, and steps of r."""

    mine: np.ndarray
    n_old: int
    weights: np.ndarray
    inverse: np.ndarray
    steps: np.ndarray


def _update(values, factor, lines, here):
    """Set the new lines of a factor, r and d at some of its candidates."""
    old, new = factor.lines[: lines.n_old, here], factor.lines[lines.n_old :, here]
    rest = values[np.ix_(lines.mine, factor.numbers[here])] - lines.weights @ old
    np.matmul(lines.inverse, rest, out=new)
    factor.residual[:, here] -= lines.steps.T @ new
    factor.own[here] -= np.einsum("ki,ki->i", new, new, dtype=np.float64)


class _PoolPart:
    """The part of a factor in the pool: r of its active outputs, and the kernel matrix orthogonal to chosen vectors."""

    def __init__(self, factor, is_active, K, pool, smallest):
        places = factor.place[pool]
        self.inside = np.flatnonzero(places >= 0)
        self._position = np.full(len(pool), -1)
        self._position[self.inside] = np.arange(len(self.inside))
        lines = factor.lines[:, places[self.inside]]
        self._K = (K[np.ix_(self.inside, self.inside)] - lines.T @ lines).astype(np.float64)
        self._residual = factor.residual[np.ix_(is_active[factor.outputs], places[self.inside])]
        self._smallest = smallest[self.inside]

    def gains(self):
        """Return by how much each vector of the pool would reduce the squared distances of these outputs."""
        own, squares = self._K.diagonal(), np.einsum("pi,pi->i", self._residual, self._residual)
        return np.where(own > self._smallest, squares / np.maximum(own, self._smallest), 0.0)

    def choose(self, best):
        """Remove the direction of a vector from r and from the kernel matrix, if these outputs have it."""
        k = self._position[best]
        if k < 0 or not self._K[k, k] > self._smallest[k]:
            return
        column = self._K[k] / np.sqrt(self._K[k, k])
        self._residual -= np.outer(self._residual[:, k] / np.sqrt(self._K[k, k]), column)
        self._K -= np.outer(column, column)


def _most_promising(gains):
    """Return the numbers of the largest positive gains, ascending, and the largest gain of the others."""
    n_pool = min(_POOL, np.count_nonzero(gains > 0.0))
    if n_pool == len(gains):
        return np.arange(n_pool), 0.0
    order = np.argpartition(-gains, n_pool)
    return np.sort(order[:n_pool]), float(gains[order[n_pool]])


def _factorised(matrix, smallest):
    """Return the Cholesky factor of a small matrix without its dependent rows, and the positions of the other rows."""
    lower, kept = np.zeros_like(matrix), []
    for k in range(len(matrix)):
        line = np.zeros(len(kept))
        if kept:
            line = solve_triangular(lower[: len(kept), : len(kept)], matrix[k, kept], lower=True)
        own = matrix[k, k] - line @ line
        if own > smallest[k]:
            lower[len(kept), : len(kept)], lower[len(kept), len(kept)] = line, np.sqrt(own)
            kept.append(k)
    return lower[: len(kept), : len(kept)], np.array(kept, dtype=int)
