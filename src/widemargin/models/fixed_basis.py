"""What all machines on a fixed basis have in common: parameters, the choice of the basis, growing it, and the matrix.

A machine on a basis minimises its objective over the functions f(x) = Σ_j c_j K(b_j, x) + intercept of m basis points.
This is the problem of a linear machine, see `widemargin.kernels.basis`: the linear solvers solve it and certify it.

    basis=300       so many points, chosen from the rows as `basis_choice` says
    basis=array     these points
    basis="auto"    128 points, then twice as many, and so on, until the objective hardly falls any more; each stage
                    starts from the solution of the last one, whose functions are among those of the larger basis
"""

import time
from numbers import Integral

import numpy as np
from scipy.sparse import csr_array, issparse

from widemargin._runtime.progress import task
from widemargin._runtime.threads import run, single_threaded_blas
from widemargin.data.blocks.memory import bytes_of, memory_in_use
from widemargin.data.blocks.placement import VECTORS_OF_ROW_LOSSES, mapped_matrix
from widemargin.data.blocks.row_blocks import RowBlocks
from widemargin.data.matrix import Matrix
from widemargin.data.products import squared_norms
from widemargin.kernels.basis import Basis
from widemargin.kernels.basis_choice import choose_points
from widemargin.kernels.expansion import kernel_scores
from widemargin.kernels.values import KernelValues, kernel_blocks
from widemargin.solvers.contract import Status

STAGE = np.dtype(
    [("points", np.int64), ("iterations", np.int64), ("seconds", float), ("primal", float), ("decrease", float),
     ("gap", float)]
)  # fmt: skip
"""What `history_` has for each stage of basis="auto"."""
_GOES_ON = (Status.CONVERGED.value, Status.STALLED.value)  # a larger basis follows, unless a solver was stopped
_FIRST_POINTS, _MOST_POINTS = 128, 2048  # of basis="auto"
_SMALLEST_DECREASE = 0.01  # of the objective by twice as many points, relative, unless the basis is large enough
_FEW_ENTRIES = 1 << 22  # kernel values up to which they are computed in double precision, and without threads


def choice_of(model, X):
    """Return how basis points are chosen: for "auto", centres of clusters, or random rows if rows are sparse."""
    if model.basis_choice != "auto":
        return model.basis_choice
    is_sparse = X.layout.is_sparse if isinstance(X, RowBlocks) else issparse(X)
    return "uniform" if is_sparse else "kmeans"


def stages_of(model, X, kernel, seed):
    """Yield the Basis of each stage of a fit: one, unless basis="auto"; the caller stops when it is large enough.

    Parameters
    ----------
    model : estimator
        With parameters `basis` and `basis_choice`.
    X : ndarray, csr matrix or RowBlocks
        Checked rows.
    kernel : Kernel
    seed : int
        Of the choice.
    """
    if isinstance(model.basis, str):
        yield from _growing(model, X, kernel, seed)
    elif isinstance(model.basis, Integral):
        points = choose_points(X, int(model.basis), choice_of(model, X), kernel, np.random.default_rng(seed))
        yield _not_empty(Basis.of(kernel, points))
    else:
        yield _not_empty(Basis.of(kernel, _checked_points(model.basis, X)))


def _growing(model, X, kernel, seed):
    """Yield larger and larger bases, each of which contains the one before."""
    random, choice = np.random.default_rng(seed), choice_of(model, X)
    basis, wanted = None, _FIRST_POINTS
    while wanted <= _MOST_POINTS:
        n_before = 0 if basis is None else len(basis)
        points = choose_points(X, wanted - n_before, choice, kernel, random, basis)
        basis = Basis.of(kernel, points) if basis is None else basis.extended(points)
        if len(basis) == n_before:
            return
        yield _not_empty(basis)
        wanted *= 2


def solved_in_stages(stages, solve):
    """Solve the problem of each stage until the basis is large enough, or a solver is stopped; return the history.

    Parameters
    ----------
    stages : iterable of Basis
    solve : function
        solve(basis) solves the problem of a stage, from the solution of the last one, and returns the machine, with
        `n_iter_`, `objective_`, `gap_` and `status_`.

    Returns
    -------
    history : ndarray of STAGE
    """
    begun, found = time.perf_counter(), []
    for basis in stages:
        machine = solve(basis)
        before = found[-1][3] if found else np.nan
        seconds, primal = time.perf_counter() - begun, machine.objective_
        found.append((len(basis), machine.n_iter_, seconds, primal, before - primal, machine.gap_))
        if machine.status_ not in _GOES_ON or is_large_enough([stage[3] for stage in found]):
            break
    return np.array(found, dtype=STAGE)


def weights_on(basis, matrix, vectors, coefficients, intercept):
    """Return the weights of features, to start from, of a function of points that are the first of the basis.

    None if they are not. The function has coefficients (1, n_points); that of the constant column is last.
    """
    n_points = vectors.shape[0]
    if n_points > len(basis) or vectors.shape[1] != basis.vectors.shape[1]:
        return None
    differs = basis.vectors[:n_points] != vectors
    if differs.nnz if issparse(differs) else np.any(differs):
        return None
    extended = np.hstack([coefficients, np.zeros((1, len(basis) - n_points))])
    (w,), intercept = matrix.scaling.weights_of_scaled(extended, intercept)
    return np.append(w, intercept / matrix.constant) if matrix.constant else w


def scores_on_basis(kernel, vectors, coefficients, X, n_jobs):
    """Return Σ_j coefficients_j K(b_j, x) of checked rows, one column for each row of coefficients."""
    if isinstance(X, RowBlocks):
        return np.concatenate([scores_on_basis(kernel, vectors, coefficients, part, n_jobs) for part, _ in X])
    if issparse(X) or issparse(vectors):
        X, vectors = csr_array(X), csr_array(vectors)
    return kernel_scores(kernel, vectors, coefficients, X, n_jobs=n_jobs)


def is_large_enough(objectives):
    """Return whether the last of the objectives of all stages hardly fell any more."""
    return len(objectives) > 1 and objectives[-2] - objectives[-1] <= _SMALLEST_DECREASE * abs(objectives[-2])


def matrix_on_basis(
    X, basis, dtype, *, constant=0.0, max_memory=None, n_problems=1, n_vectors=VECTORS_OF_ROW_LOSSES, n_jobs=None
):
    """Return the matrix of the features of rows on a basis, for solvers.

    Features that fit into memory are computed once, few of them in double precision. Otherwise kernel values are the
    rows of a matrix in blocks, computed when a pass needs them, and kept as far as there is memory.

    Parameters
    ----------
    X : ndarray, csr matrix or RowBlocks
        Checked rows.
    basis : Basis
    dtype : numpy dtype
        Of kernel values, if they are many.
    constant, max_memory, n_problems, n_vectors
        As in `matrix_of_blocks`.
    n_jobs : int or None
        Threads that compute features.
    """
    n_entries = X.shape[0] * len(basis)
    values = KernelValues(basis.kernel, basis.vectors, np.float64 if n_entries <= _FEW_ENTRIES else dtype)
    how, blocks = basis.map(values.bound(largest_norm(X))), kernel_blocks(X, values)
    left = bytes_of(max_memory) - (0 if max_memory is None else memory_in_use())
    if n_entries * values.dtype.itemsize + 8 * n_vectors * n_problems * X.shape[0] <= left:
        matrix = Matrix(_features(blocks, how, n_jobs), constant)
        matrix.scaling = how
    else:
        options = {"max_memory": max_memory, "n_problems": n_problems, "n_vectors": n_vectors}
        matrix = mapped_matrix(blocks, constant, how, **options)
    matrix.source = X
    return matrix


def _features(blocks, how, n_jobs):
    """Return the features of all rows as an array, from blocks of their kernel values."""
    out = np.empty(blocks.shape, blocks.layout.value_type)

    def fill(k):
        start, stop = blocks.rows_of(k)
        how.features(blocks.read(k).rows.values, out[start:stop])
        computing.advance(stop - start)

    with task("computing kernel values", max(1, len(blocks)), "rows") as computing, single_threaded_blas():
        run(fill, [(k,) for k in range(blocks.n_blocks)], n_jobs if out.size > _FEW_ENTRIES else 1)
    return out


def largest_norm(X):
    """Return an array of one number, a bound of the squared norms of rows."""
    return np.array([X.summary.largest_norm if isinstance(X, RowBlocks) else squared_norms(X).max(initial=0.0)])


def _checked_points(points, X):
    """Return basis points that the user gives, in the type of the rows; ValueError if they are none."""
    points = points if issparse(points) else np.asarray(points)
    if points.ndim != 2 or points.shape[1] != X.shape[1] or not points.shape[0]:
        raise ValueError(
            f"basis must be points with as many features as X, of shape (n_points, {X.shape[1]}), got {points.shape}."
        )
    kind = X.layout.value_type if isinstance(X, RowBlocks) else X.dtype
    points = points.astype(np.float32 if kind == np.float32 else np.float64)
    points = points.tocsr() if issparse(points) else points
    if not np.isfinite(points.data if issparse(points) else points).all():
        raise ValueError("basis has values that are NaN or infinite; every basis point must be finite.")
    return points


def _not_empty(basis):
    """Return the basis; ValueError if no point is left of it."""
    if not len(basis):
        raise ValueError("No basis point has a function other than zero: K(b, b) is zero or negative for all of them.")
    return basis
