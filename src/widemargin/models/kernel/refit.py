"""Fit a kernel machine on few vectors to the decision values of another at given rows; no labels are needed.

    minimise Σ_x w(x) (f(x) − g(x))² + R |f − g|²,      g(x) = Σ_j b_j K(z_j, x) + b

over the coefficients b_j and the intercept b, which is a linear system, and, if asked for, over the vectors z_j too.
The second term, with a small R and the norm of the kernel's space, decides where the rows do not. Each pair of classes
has its own sum, over the rows that f assigns to one of the two classes. Labels depend on the signs of decision values,
so that for classification the weights are w = 1 / (0.3 + a)², where a is the smallest |f(x)| over the pairs that count
for row x; they are 1 otherwise. As a row has the same weight in all pairs, the normal equations of a pair are the sum
of those of its two classes.

The vectors move by stochastic gradient steps (Adam: Kingma and Ba, ICLR 2015) whose length falls to zero; after each
pass over the rows, the coefficients are computed anew, and the best of all passes is kept. For exp(−gamma |x − z|²),
the gradient of g(x) with respect to z_j is 2 gamma b_j K(z_j, x) (x − z_j).
"""

from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from scipy.sparse import issparse
from sklearn.base import is_classifier

from widemargin._runtime.progress import task
from widemargin._runtime.threads import n_threads, run, single_threaded_blas
from widemargin.data.products import squared_norms
from widemargin.kernels.reduced_expansion import solved, values_at
from widemargin.kernels.values import KernelValues
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
    """The rows of X, the values of f at them without any intercept, their weights and the class that each belongs to.

    `counts` (n_classes, n_outputs) says for which outputs the rows of a class count.
    """

    X: np.ndarray
    values: np.ndarray
    weights: np.ndarray
    label: np.ndarray
    counts: np.ndarray


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
    rounded = best[0].vectors.astype(model._expansion()[0].dtype)  # as the model will keep them
    g, change, _ = _fitted(f, replace(best[0], vectors=rounded), targets, np.float64)
    return g, model.intercept_ + change


def _targets_of(model, X, decisions):
    """Return the _Targets of rows with these decision values."""
    n_rows, n_outputs = decisions.shape
    if not is_classifier(model):
        one = np.ones((1, n_outputs), bool)
        return _Targets(X, decisions - model.intercept_, np.ones(n_rows), np.zeros(n_rows, int), one)
    n_classes = len(model.classes_)
    sign = -1.0 if n_classes == 2 else 1.0  # as in `dual_coef_`
    label = np.searchsorted(model.classes_, labels_of(model, decisions))
    counts = np.zeros((n_classes, n_outputs), bool)
    for p, classes in enumerate(combinations(range(n_classes), 2)):
        counts[classes, p] = True
    nearest = np.where(counts[label], np.abs(decisions), np.inf).min(axis=1)
    return _Targets(X, sign * decisions - model.intercept_, weights_near_zero(nearest), label, counts)


def weights_near_zero(decisions):
    """Return the weights of decision values, whose signs are to stay."""
    return (_SMALL_DECISION + np.abs(decisions)) ** -2.0


def _fitted(f, g, targets, dtype):
    """Return g with the best coefficients, its intercepts, and the sum of squares with the term of the norm.

    `dtype` is the precision of the kernel values of rows, if it suffices, and of their products.
    """
    g = replace(g, vectors=g.vectors.astype(np.float64, copy=False))
    sums = _sums_of_classes(g, targets, dtype)
    own, values = KernelValues(g.kernel, g.vectors, np.float64).of(g.vectors, g.n_jobs), _values_at(f, g, dtype)
    with single_threaded_blas():
        ridge = _RIDGE * own.diagonal().mean()
        tasks = [(g, p, [s for s, counts in zip(sums, targets.counts[:, p], strict=True) if counts], own, values, ridge)
                 for p in range(len(g.outputs))]  # fmt: skip
        found = run(_solve, tasks, g.n_jobs)
    table, intercepts = np.zeros_like(g.table), np.zeros(len(found))
    for p, (solution, _) in enumerate(found):
        intercepts[p] = solution[-1]
        g.scatter(table, p, solution[:-1])
    return replace(g, table=table), intercepts, sum(objective for _, objective in found)


def _values_at(f, g, dtype):
    """Return `values_at(f, g)`, from vectors in this precision."""
    return values_at(*(replace(part, vectors=part.vectors.astype(dtype, copy=False)) for part in (f, g)))


class _Sums:
    """Sums over the rows of a class so far, w being their weights: A'wA, with a column of ones in A, A'wf and f'wf."""

    def __init__(self, n_vectors, n_outputs):
        self.matrix = np.zeros((n_vectors + 1, n_vectors + 1))
        self.right_side, self.square = np.zeros((n_vectors + 1, n_outputs)), np.zeros(n_outputs)


def _sums_of_classes(g, targets, dtype):
    """Return the _Sums of each class; classes are added up side by side, or with threads of BLAS if they are few."""
    kernel_values = KernelValues(g.kernel, g.vectors, dtype)
    are_few = len(targets.counts) < n_threads(g.n_jobs)

    def sums_of(label):
        sums = _Sums(g.n_vectors, len(g.outputs))
        for part in parts_of(np.flatnonzero(targets.label == label), g.n_vectors):
            X = targets.X[part] if issparse(g.vectors) else _array(targets.X[part])
            K = kernel_values.of(X, g.n_jobs if are_few else 1)
            _add_rows(sums, K, targets.weights[part], targets.values[part])
        return sums

    labels = range(len(targets.counts))
    if are_few:
        return [sums_of(label) for label in labels]
    with single_threaded_blas():
        return run(sums_of, [(label,) for label in labels], g.n_jobs)


def _add_rows(sums, K, weights, values):
    """Add rows with kernel values K, weights and values f of all outputs to the sums of their class."""
    roots = np.sqrt(weights)[:, np.newaxis]
    A = np.ones((len(K), K.shape[1] + 1), K.dtype)
    A[:, :-1] = K
    A *= roots.astype(K.dtype)
    values = roots * values
    sums.matrix += A.T @ A
    sums.right_side += A.T @ values.astype(K.dtype)
    sums.square += np.einsum("ij,ij->j", values, values)


def _solve(g, output, sums, own, values, ridge):
    """Return coefficients and intercept of an output from the sums of its classes, and the value that they minimise.

    The value is without <f, f>, which is a constant.
    """
    numbers = np.concatenate([vectors for _, vectors in g.cells(output)])
    used = np.append(numbers, g.n_vectors)
    matrix = sum(one.matrix[np.ix_(used, used)] for one in sums)
    right_side = sum(one.right_side[used, output] for one in sums)
    matrix[:-1, :-1] += ridge * own[np.ix_(numbers, numbers)]
    right_side[:-1] += ridge * g.gathered(values, output)
    matrix[-1, -1] += ridge
    matrix[np.diag_indices_from(matrix)] *= 1.0 + _RELATIVE_RIDGE
    solution = solved(matrix.copy(), right_side)
    square = sum(one.square[output] for one in sums)
    return solution, square - 2.0 * right_side @ solution + solution @ (matrix @ solution)


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
        self._counts = targets.counts.astype(self._dtype)
        self._tasks = [
            (block, slice(begin, min(begin + _VECTORS_PER_TASK, int(g.ends[block + 1]))))
            for block in range(n_blocks)
            for begin in range(int(g.ends[block]), int(g.ends[block + 1]), _VECTORS_PER_TASK)
        ]

    def pass_over_rows(self, g, intercept, number):
        """Pass over the rows, several times if they are few, with the coefficients of g; return g on moved vectors."""
        n_rows = len(self._targets.label)
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
        errors *= self._counts[self._targets.label[rows]]
        errors *= self._targets.weights[rows].astype(self._dtype)[:, np.newaxis]
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
