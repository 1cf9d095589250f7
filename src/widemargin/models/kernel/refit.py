"""Fit a kernel machine on few vectors to the decision values of another at given rows; no labels are needed.

    minimise Σ_x w(x) (f(x) − g(x))² + R |f − g|²,      g(x) = Σ_j b_j K(z_j, x) + b

over the coefficients b_j and the intercept b, which is a linear system, and, if asked for, over the vectors z_j too.
The second term, with a small R and the norm of the kernel's space, decides where the rows do not. Each pair of classes
has its own sum, over the rows that f assigns to one of the two classes. Labels depend on the sign of f, so that for
classification the weights are w = 1 / (0.3 + |f(x)|)²; they are 1 otherwise.

The vectors move by stochastic gradient steps (Adam: Kingma and Ba, ICLR 2015) whose length falls to zero; after each
pass over the rows, the coefficients are computed anew, and the best of all passes is kept. For exp(−gamma |x − z|²),
the gradient of g(x) with respect to z_j is 2 gamma b_j K(z_j, x) (x − z_j).
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy.sparse import issparse, vstack
from sklearn.base import is_classifier

from widemargin._runtime.progress import task
from widemargin._runtime.threads import run, single_threaded_blas
from widemargin.data.products import squared_norms
from widemargin.kernels.reduced_expansion import solved, values_at
from widemargin.kernels.rows import KernelRows
from widemargin.models.kernel.training_rows import parts_of
from widemargin.models.multiclass import labels_of

_SMALL_DECISION = 0.3  # up to about which all decision values have the same weight
_RIDGE = 0.01  # R, in units of the mean K(z, z)
_RELATIVE_RIDGE = 1e-11  # of the diagonal of the linear system, so that rounding does not make it indefinite
_PASSES = 12
_ROWS_PER_STEP, _STEPS_PER_PASS = 500, 60  # at most, and at least
_VECTORS_PER_TASK = 256
_STEP_IN_DEVIATIONS = 0.02  # the first step, in standard deviations of each feature
_STEP_IN_WIDTHS = 0.03  # the norm of the first step at most, in widths 1 / √(2 gamma) of the kernel
_MEMORY_OF_MEAN, _MEMORY_OF_SQUARES, _TINY = 0.9, 0.99, 1e-12  # of Adam
_MAX_NUMBERS = 1 << 28  # of the moved vectors: 2 GB
_SEED = 0


@dataclass(frozen=True)
class _Targets:
    """The rows of X, the values of f at them without any intercept, their weights, and the block that each belongs to.

    A row of block c counts for all outputs that have a cell in block c.
    """

    X: np.ndarray
    values: np.ndarray
    weights: np.ndarray
    block: np.ndarray


def refit_coefficients(model, f, g, X, decisions):
    """Return g with other coefficients, and its intercepts, fitted to the decision values of a model at the rows X.

    Parameters
    ----------
    model : KernelModel
    f, g : Expansions
        The functions of the model, and those to be fitted; without intercepts.
    X : ndarray or csr
        Checked rows.
    decisions : ndarray of shape (n_rows, n_outputs)
        Their decision values.

    Returns
    -------
    g : Expansions
    intercept : ndarray
        As `intercept_` of the model.
    """
    g, change, _ = _fitted(f, g, _targets_of(model, X, decisions), np.float64)
    return g, model.intercept_ + change


def refit_vectors(model, f, g, X, decisions):
    """Return g with other vectors and coefficients, and its intercepts; see `refit_coefficients`."""
    if g.n_vectors * g.vectors.shape[1] > _MAX_NUMBERS:
        raise ValueError(
            f"refit='vectors' holds {g.n_vectors} vectors of {g.vectors.shape[1]} features as an array, which is too "
            "large; use refit='coefficients', or fewer vectors."
        )
    targets = _targets_of(model, X, decisions)
    if issparse(g.vectors):
        g = replace(g, vectors=g.vectors.toarray())
    current = best = _fitted(f, g, targets, np.float32)
    descent = _Descent(g, targets)
    with task("moving vectors", _PASSES, "passes") as moving:
        for number in range(_PASSES):
            moved = descent.pass_over_rows(current[0], current[1], number)
            current = _fitted(f, moved, targets, np.float32)
            best = min(best, current, key=lambda fit: fit[2])
            moving.advance()
    rounded = best[0].vectors.astype(model.support_vectors_.dtype)  # as the model will keep them
    g, change, _ = _fitted(f, replace(best[0], vectors=rounded), targets, np.float64)
    return g, model.intercept_ + change


def _targets_of(model, X, decisions):
    """Return the _Targets of rows with these decision values."""
    if not is_classifier(model):
        return _Targets(X, decisions - model.intercept_, np.ones_like(decisions), np.zeros(len(decisions), int))
    sign = -1.0 if len(model.classes_) == 2 else 1.0  # as in `dual_coef_`
    block = np.searchsorted(model.classes_, labels_of(model, decisions))
    return _Targets(X, sign * decisions - model.intercept_, weights_near_zero(decisions), block)


def weights_near_zero(decisions):
    """Return the weights of decision values, whose signs are to stay."""
    return (_SMALL_DECISION + np.abs(decisions)) ** -2.0


def _fitted(f, g, targets, dtype):
    """Return g with the best coefficients, its intercepts, and the sum of squares with the term of the norm.

    `dtype` is the precision of the kernel values of rows, if it suffices, and of their products.
    """
    g = replace(g, vectors=g.vectors.astype(np.float64, copy=False))
    systems = [_System(g, p) for p in range(len(g.outputs))]
    with single_threaded_blas():
        for block in range(len(g.ends) - 1):
            rows = np.flatnonzero(targets.block == block)
            mine = [system for system in systems if block in system.blocks]
            for part in parts_of(rows, 2 * g.n_vectors):
                K = _cross_values(g, targets.X[part], dtype)
                run(_add_rows, [(s, K, *(a[part, s.output] for a in (targets.values, targets.weights))) for s in mine],
                    g.n_jobs)  # fmt: skip
        own, values = _cross_values(g, g.vectors, np.float64), values_at(f, g)
        ridge = _RIDGE * own.diagonal().mean()
        found = run(_solve, [(s, own, g.gathered(values, s.output), ridge) for s in systems], g.n_jobs)
    table, intercepts = np.zeros_like(g.table), np.zeros(len(systems))
    for system, (solution, _) in zip(systems, found, strict=True):
        *coefficients, intercepts[system.output] = solution
        for line, vectors in g.cells(system.output):
            table[line, vectors], coefficients = coefficients[: len(vectors)], coefficients[len(vectors) :]
    return replace(g, table=table), intercepts, sum(objective for _, objective in found)


class _System:
    """The normal equations of one output: A'A and A'f of the rows so far, with a column of ones for the intercept."""

    def __init__(self, g, output):
        self.output, self.blocks = output, {block for _, block in g.outputs[output]}
        self.numbers = np.concatenate([vectors for _, vectors in g.cells(output)])
        n = len(self.numbers) + 1
        self.matrix, self.right_side, self.square = np.zeros((n, n)), np.zeros(n), 0.0


def _add_rows(system, K, values, weights):
    """Add rows with kernel values K (all vectors), values f and weights to the normal equations."""
    roots = np.sqrt(weights)
    A = np.ones((len(K), len(system.numbers) + 1), K.dtype)
    A[:, :-1] = K[:, system.numbers]
    A *= roots.astype(K.dtype)[:, np.newaxis]
    values = roots * values
    system.matrix += A.T @ A
    system.right_side += A.T @ values.astype(K.dtype)
    system.square += values @ values


def _solve(system, own, values, ridge):
    """Return the solution of the normal equations with the term of the norm, and the value that it minimises.

    The value is without <f, f>, which is a constant.
    """
    matrix, right_side = system.matrix, system.right_side
    matrix[:-1, :-1] += ridge * own[np.ix_(system.numbers, system.numbers)]
    right_side[:-1] += ridge * values
    matrix[-1, -1] += ridge
    matrix[np.diag_indices_from(matrix)] *= 1.0 + _RELATIVE_RIDGE
    solution = solved(matrix.copy(), right_side)
    return solution, system.square - 2.0 * right_side @ solution + solution @ (matrix @ solution)


def _cross_values(g, X, dtype):
    """Return the kernel values of rows X and the vectors of g, in a precision if it suffices, otherwise in double."""
    sparse = issparse(X) and issparse(g.vectors)
    both = vstack([g.vectors, X], format="csr") if sparse else np.vstack([_array(g.vectors), _array(X)])
    rows = KernelRows(g.kernel, both, dtype=dtype, n_jobs=g.n_jobs)
    values = np.empty((X.shape[0], g.n_vectors), rows.dtype)
    new = np.arange(g.n_vectors, both.shape[0])
    rows.fill(new, rows.columns(np.arange(g.n_vectors)), values, np.arange(len(new)))
    return values


def _array(X):
    return X.toarray() if issparse(X) else X


class _Descent:
    """Gradient steps of the vectors; keeps the means of gradients and of their squares from step to step.

    Rows and vectors are centred, and in single precision where that is accurate enough.
    """

    def __init__(self, g, targets):
        X = targets.X
        self._centre = np.asarray(X.mean(axis=0)).ravel().astype(np.float64)
        squares = np.asarray(X.multiply(X).mean(axis=0)).ravel() if issparse(X) else (X**2).mean(0, dtype=np.float64)
        deviation = np.sqrt(np.maximum(squares - self._centre**2, 0.0))
        width = 1.0 / np.sqrt(2.0 * g.kernel.gamma) if g.kernel.gamma > 0.0 else np.inf
        step = _STEP_IN_DEVIATIONS * deviation
        step *= min(1.0, _STEP_IN_WIDTHS * width / max(np.linalg.norm(step), np.finfo(float).tiny))
        largest = max(squared_norms(part).max(initial=0.0) for part in (X, g.vectors))
        self._dtype = np.float32 if g.kernel.exact_in_single(np.array([4.0 * largest])) else np.float64
        self._targets, self._random = targets, np.random.default_rng(_SEED)
        self._vectors = (g.vectors - self._centre).astype(self._dtype)
        self._step = step.astype(self._dtype)
        self._mean, self._squares, self._n_steps = np.zeros_like(self._vectors), np.zeros_like(self._vectors), 0
        n_blocks = len(g.ends) - 1
        self._outputs_of = [
            [next(p for p, cells in enumerate(g.outputs) if (line, block) in cells) for line in range(len(g.table))]
            for block in range(n_blocks)
        ]
        self._counts = np.zeros((n_blocks, len(g.outputs)), self._dtype)  # 1 if an output has a cell in the block
        for block, outputs in enumerate(self._outputs_of):
            self._counts[block, outputs] = 1
        self._tasks = [
            (block, slice(begin, min(begin + _VECTORS_PER_TASK, int(g.ends[block + 1]))))
            for block in range(n_blocks)
            for begin in range(int(g.ends[block]), int(g.ends[block + 1]), _VECTORS_PER_TASK)
        ]

    def pass_over_rows(self, g, intercept, number):
        """Pass over the rows, several times if they are few, with the coefficients of g; return g on moved vectors."""
        n_rows = len(self._targets.block)
        n_at_once = min(_ROWS_PER_STEP, n_rows)
        n_steps = max(_STEPS_PER_PASS, -(-n_rows // n_at_once))
        n_orders = -(-n_steps * n_at_once // n_rows)
        order = np.concatenate([self._random.permutation(n_rows) for _ in range(n_orders)])
        table, intercept = g.table.astype(self._dtype), intercept.astype(self._dtype)
        with single_threaded_blas():
            for k in range(n_steps):
                length = 1.0 - (number + k / n_steps) / _PASSES
                rows = order[k * n_at_once : (k + 1) * n_at_once]
                self._move(rows, table, intercept, self._dtype(length), g)
        return replace(g, vectors=self._vectors + self._centre)

    def _move(self, rows, table, intercept, length, g):
        """Make one step from the gradient of some rows."""
        X = (_array(self._targets.X[rows]) - self._centre).astype(self._dtype)
        norms = np.einsum("ij,ij->i", X, X)
        gamma = self._dtype(g.kernel.gamma)

        def values_of(block, here):
            vectors = self._vectors[here]
            K = X @ vectors.T
            K *= 2 * gamma
            K -= gamma * norms[:, np.newaxis]
            K -= gamma * np.einsum("ij,ij->i", vectors, vectors)
            np.exp(np.minimum(K, 0, out=K), out=K)
            return K, K @ table[:, here].T

        found = run(values_of, self._tasks, g.n_jobs)
        errors = intercept - self._targets.values[rows].astype(self._dtype)
        for (block, _), (_, sums) in zip(self._tasks, found, strict=True):
            for line, output in enumerate(self._outputs_of[block]):
                errors[:, output] += sums[:, line]
        errors *= self._counts[self._targets.block[rows]] * self._targets.weights[rows].astype(self._dtype)
        self._n_steps += 1

        def move(block, here, K):
            K *= errors[:, self._outputs_of[block]] @ table[:, here]
            gradient = K.T @ X
            gradient -= K.sum(axis=0)[:, np.newaxis] * self._vectors[here]
            self._adam(here, gradient, length)

        run(move, [(*task, K) for task, (K, _) in zip(self._tasks, found, strict=True)], g.n_jobs)

    def _adam(self, here, gradient, length):
        """Move some vectors against their gradient, divided by the root of its mean square in each coordinate."""
        mean, squares = self._mean[here], self._squares[here]
        mean += (1 - _MEMORY_OF_MEAN) * (gradient - mean)
        squares += (1 - _MEMORY_OF_SQUARES) * (gradient * gradient - squares)
        unbiased = 1 - _MEMORY_OF_MEAN**self._n_steps
        root = np.sqrt(squares / (1 - _MEMORY_OF_SQUARES**self._n_steps))
        self._vectors[here] -= (length * self._step) * (mean / (unbiased * (root + _TINY))).astype(self._dtype)
