"""Kernel expansions Σ_i coef_i K(x_i, z) for many rows z: the scores of kernel models.

Kernel values are computed in tiles, and each tile is multiplied by the coefficients as soon as it is computed. Memory
is therefore bounded for any number of rows and support vectors, and all outputs use the same tile. The linear kernel
needs no kernel values: its scores are <Σ_i coef_i x_i, z>. If the squared distances are small integers, the values of
the rbf kernel are read from a table (see `integer_rows`). If many values of dense rows are zero, these are skipped, and
rows of few features are multiplied without BLAS (see `feature_lines`).
"""

from contextlib import nullcontext
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array, issparse

from widemargin._runtime.simd import LANES, aligned_zeros
from widemargin._runtime.threads import run, single_threaded_blas, split
from widemargin.data.column_lists import ROWS_PER_BLOCK, ColumnNumbers, csr_rows, list_blocks
from widemargin.data.feature_lines import (
    lines_of,
    panels_together,
    suits_lines,
    suits_lines_without_zeros,
    values_of_rows,
)
from widemargin.data.integer_rows import integer_distances
from widemargin.data.products import InnerProducts, is_sparse, squared_norms
from widemargin.kernels.rows import add_weighted_rows
from widemargin.kernels.score_loops import (
    add_by_dense_lines,
    add_by_lines,
    add_by_lists,
    add_columns,
    add_from_table,
    add_tile,
)
from widemargin.kernels.weighted_sums import Weights, weights_of

_KERNEL_VALUES_PER_CALL = 1 << 22  # at most, in one call of a kernel function K(A, B)
_ROWS_PER_TASK, _FEWEST_TASKS = 128, 8  # of the thread pool, unless there is little work
_NANOSECONDS_PER_TASK = 400_000.0  # work below which there is only one task
_NANOSECONDS_WITHOUT_BLAS_THREADS = 10_000.0  # work for which BLAS never starts threads of its own
_NANOSECONDS_PER_KERNEL_VALUE, _NANOSECONDS_PER_SPARSE_PRODUCT = 1.0, 3.0
_NANOSECONDS_PER_LOOK_UP, _NANOSECONDS_PER_LINE = 0.4, 0.03
_ROWS_PER_STEP = 32  # whose inner products with some panels compiled loops compute before their values
_ROWS_OF_COLUMNS_PER_TASK = 2048  # of kernel values that are given by columns
_SCORES_PER_TASK = 1 << 17  # whose outcome a task of the thread pool computes
_ROWS_PER_NORM_TASK, _VALUES_WORTH_THREADS = 1024, 1 << 20  # of the squared norms of rows to score
_FEWEST_ROWS_BY_LINES = 16  # rows to score for which preparing the lines takes less time than they save
_LARGEST_GAMMA = 1e290  # for the unit of integer distances: the exponents of the table do not overflow


def kernel_scores(kernel, support, coefficients, Z, *, ends=None, n_jobs=None, advance=None, outcome=None):
    """Return K(Z, support) @ coefficients.T in float64, or the outcome of these scores.

    Parameters
    ----------
    kernel : Kernel
    support : ndarray or scipy sparse of shape (n_support, n_features)
        The support vectors. If the kernel is "precomputed", their columns in Z, or None if it has no others.
    coefficients : ndarray of shape (n_outputs, n_support)
    Z : ndarray or scipy sparse of shape (n_rows, n_features)
        The rows to score; if the kernel is "precomputed", the kernel values of shape (n_rows, n_columns).
    ends : ndarray of int or None
        Offsets of blocks of support vectors, from ends[0] = 0 to ends[-1] = n_support. Each block has its own sum.
    n_jobs : int or None
    advance : function or None
        Progress callback: called with a number of rows whenever so many more are done, from any thread.
    outcome : function or None
        outcome(scores of some rows) is an array with an entry for each of them, that is returned in place of scores. It
        is called from any thread, so that no more scores are in memory than those of the ranges at work.

    Returns
    -------
    scores : ndarray of shape (n_rows, n_outputs), or (n_rows, n_blocks, n_outputs) if `ends` are given
    """
    coefficients = np.ascontiguousarray(coefficients, dtype=np.float64)
    options = {"n_jobs": n_jobs, "advance": advance or _no_progress, "outcome": outcome}
    expansion = _Expansion(kernel, support, coefficients, ends, **options)
    if not (coefficients.shape[1] and Z.shape[0]):
        return expansion.outcomes(expansion.zeros(Z.shape[0]))
    return _SCORERS.get(kernel.name, _by_products)(expansion, Z)


def _no_progress(n_rows):
    """Ignore the number of rows that are done: the default of `advance`."""


class _Expansion:
    """A kernel, the support vectors and their coefficients, in blocks of support vectors with a sum for each.

    The last three parameters are those of `kernel_scores`.
    """

    def __init__(self, kernel, support, coefficients, ends, *, n_jobs, advance, outcome):
        self.kernel, self.support, self.coefficients = kernel, support, coefficients
        self.ends = np.array([0, coefficients.shape[1]]) if ends is None else np.asarray(ends)
        self.n_blocks, self._has_blocks = len(self.ends) - 1, ends is not None
        self.n_jobs, self.advance, self.outcome = n_jobs, advance, outcome

    def zeros(self, n_rows):
        """Return memory for the scores of so many rows, which are added to it."""
        return np.zeros((n_rows, self.n_blocks, len(self.coefficients)))

    def outcome_of(self, scores):
        """Return what is made of the scores of some rows."""
        scores = scores if self._has_blocks else scores[:, 0]
        return scores if self.outcome is None else self.outcome(scores)

    def outcomes(self, scores):
        """Return what is made of the scores of all rows, some of them at a time."""
        tasks = [(0, len(scores))]
        if self.outcome is not None:
            tasks = split(len(scores), scores.size // _SCORES_PER_TASK + 1)
        return _joined(run(lambda begin, end: self.outcome_of(scores[begin:end]), tasks, self.n_jobs))

    def weights(self, dtype=np.float64):
        """Return the Weights for kernel values in a precision of `dtype`."""
        return weights_of(self.coefficients, self.ends, dtype)

    def add(self, values, out):
        """Add the contributions of all support vectors, with kernel values (n_rows, n_support), to `out`."""
        for block, (begin, end) in enumerate(pairwise(self.ends)):
            if begin < end:
                out[:, block] += values[:, begin:end] @ self.coefficients[:, begin:end].T


def _joined(parts):
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


class _Rows(NamedTuple):
    """The support vectors or the rows to score, their squared norms, and what is taken off them where that helps.

    Rows to score are centred when they are needed, a few at a time: a centred copy of all would be new memory, which
    takes longer than the subtraction.
    """

    X: Any
    norms: np.ndarray
    centre: np.ndarray | None = None

    def part(self, begin, end):
        """Return the rows from begin to end, centred."""
        return _centred(self.X[begin:end], self.centre)


def _centred(X, centre):
    return X if centre is None else X - centre


def _norms(X, centre, n_jobs):
    """Return the squared norms of centred rows."""
    ends = split(X.shape[0], -(-X.shape[0] // _ROWS_PER_NORM_TASK))
    if issparse(X) or len(ends) <= 1:
        return squared_norms(_centred(X, centre))
    tasks = [(X[begin:end], centre) for begin, end in ends]
    n_jobs = n_jobs if X.size >= _VALUES_WORTH_THREADS else 1
    return np.concatenate(run(lambda *rows: squared_norms(_centred(*rows)), tasks, n_jobs))


def _by_products(expansion, Z):
    """Return the scores from inner products, turned into kernel values and multiplied by coefficients."""
    distances = integer_distances(expansion.support, Z) if expansion.kernel.name == "rbf" else None
    if distances is not None and 0.0 <= expansion.kernel.gamma * distances.unit < _LARGEST_GAMMA:
        prepared = _by_table(expansion, distances)
    else:
        prepared = _by_numbers(expansion, Z)
    return _score_in_tasks(expansion, *prepared, Z.shape[0])


def _by_numbers(expansion, Z):
    """Return a function that scores a range of rows by floating point numbers, and the nanoseconds for one value.

    It is called as score(begin, end, out), and adds the scores of the rows from begin to end to `out`.
    """
    kernel, support = expansion.kernel, expansion.support
    norms_for_lines = _norms_for_lines(expansion, Z)
    by_lines = norms_for_lines is not None
    is_centred = kernel.name == "rbf" and not (by_lines or issparse(support) or issparse(Z))
    centre = support.mean(axis=0, dtype=np.float64).astype(support.dtype) if is_centred else None
    support = _centred(support, centre)
    norms, norms_of_Z = norms_for_lines if by_lines else (squared_norms(support), _norms(Z, centre, expansion.n_jobs))
    kernel.check(norms)
    kernel.check(norms_of_Z)
    single = support.dtype == np.float32 and Z.dtype == np.float32
    single = single and kernel.exact_in_single(norms) and kernel.exact_in_single(norms_of_Z)
    dtype = np.float32 if single else np.float64
    prepare = _by_lines if by_lines else _by_lists if is_sparse(support) else _choose_for_dense(support, Z)
    support, Z = _Rows(support, norms.astype(dtype)), _Rows(Z, norms_of_Z.astype(dtype), centre)
    return prepare(expansion, support, Z, dtype)


def _choose_for_dense(support, Z):
    """Return the function that prepares the scores of rows with few zeros."""
    return _by_dense_lines if Z.shape[0] >= _FEWEST_ROWS_BY_LINES and suits_lines_without_zeros(support) else _by_tiles


def _norms_for_lines(expansion, Z):
    """Return squared norms if inner products by lines of features skip zeros, and suffice without a centre, or None."""
    kernel, support, n_jobs = expansion.kernel, expansion.support, expansion.n_jobs
    if Z.shape[0] < _FEWEST_ROWS_BY_LINES or is_sparse(support) or not suits_lines(Z):
        return None
    norms, norms_of_Z = _norms(support, None, n_jobs), _norms(Z, None, n_jobs)
    largest = np.array([norms.max(initial=0.0), norms_of_Z.max(initial=0.0)])
    is_single = support.dtype == np.float32 and Z.dtype == np.float32
    is_exact = kernel.exact_in_single(largest) if is_single else kernel.exact_uncentred(largest)
    return (norms, norms_of_Z) if is_exact or kernel.name != "rbf" else None


def _score_in_tasks(expansion, score, nanoseconds, n_rows):
    """Return the outcome of score(begin, end, out) for ranges of all rows; one kernel value takes so many nanoseconds.

    New memory is slow: where scores are not kept, that of a range is used again for a later one.
    """
    kept = expansion.zeros(n_rows) if expansion.outcome is None else None

    def score_range(begin, end):
        scores = expansion.zeros(end - begin) if kept is None else kept[begin:end]
        score(begin, end, scores)
        found = None if kept is not None else expansion.outcome_of(scores)
        expansion.advance(end - begin)
        return found

    work = nanoseconds * expansion.coefficients.shape[1] * n_rows
    n_tasks = min(-(-n_rows // _ROWS_PER_TASK), int(work / _NANOSECONDS_PER_TASK))
    n_tasks = 1 if work < _NANOSECONDS_PER_TASK else max(_FEWEST_TASKS, n_tasks)
    with single_threaded_blas() if work > _NANOSECONDS_WITHOUT_BLAS_THREADS else nullcontext():
        found = run(score_range, split(n_rows, n_tasks), expansion.n_jobs)
    return _joined(found) if kept is None else expansion.outcome_of(kept)


def _by_tiles(expansion, support, Z, dtype):
    """Return a function that scores a range of rows by tiles of BLAS, and the nanoseconds for one kernel value."""
    products, weights = InnerProducts(support.X, dtype), expansion.weights(dtype)
    tiles = products.tiles(0, products.n_rows)
    widest = max(stop - start for start, stop in tiles)

    def score(begin, end, out):
        memory = _memory(weights, widest)
        with products.workspace() as workspace:
            for k, panel in enumerate(products.panels_of(Z.part(begin, end))):
                here = slice(k * products.panel_rows, min((k + 1) * products.panel_rows, end - begin))
                for ends in tiles:
                    inner = products.fill(panel, here.stop - here.start, None, *ends, workspace)
                    pair = Z.norms[begin:end][here], support.norms[slice(*ends)]
                    add_tile(expansion.kernel.numbers, inner, pair, ends, weights, memory, out[here])

    return score, products.cost + _NANOSECONDS_PER_KERNEL_VALUE


def _memory(weights, width):
    """Return the memory for so many kernel values of some rows, and for their sums."""
    return np.empty((weights.rows_together, width), weights.dtype), weights.memory()


def _by_lists(expansion, support, Z, dtype):
    """Return a function that scores a range of sparse rows by lists, and the nanoseconds for one kernel value."""
    rows = csr_rows(csr_array(support.X, dtype=dtype))
    numbers, weights = ColumnNumbers(rows, support.X.shape[1]), expansion.weights(dtype)
    blocks = list_blocks(numbers.renumber(rows), numbers.n_columns)
    rows_of_Z = numbers.renumber(csr_rows(csr_array(Z.part(0, len(Z.norms)), dtype=dtype)))

    def score(begin, end, out):
        memory = np.empty((weights.rows_together, ROWS_PER_BLOCK), dtype), *_memory(weights, ROWS_PER_BLOCK)
        for start, stop, lists in blocks:
            pair, part = (Z.norms[begin:end], support.norms[start:stop]), (begin, start)
            add_by_lists(expansion.kernel.numbers, rows_of_Z, pair, lists, part, weights, memory, out)

    return score, _NANOSECONDS_PER_KERNEL_VALUE + _NANOSECONDS_PER_SPARSE_PRODUCT


def _by_lines(expansion, support, Z, dtype):
    """Return a function that scores a range of rows by lines of features, and the nanoseconds for one kernel value."""
    prepared, numbers = _prepare_lines(expansion, support, dtype), expansion.kernel.numbers

    def score(begin, end, out):
        rows, memory = values_of_rows(Z.X, begin, end, dtype), prepared.memory(_ROWS_PER_STEP)
        add_by_lines(numbers, rows, Z.norms[begin:end], prepared, memory, out)

    return score, _NANOSECONDS_PER_KERNEL_VALUE


def _by_dense_lines(expansion, support, Z, dtype):
    """Return a function that scores a range of rows with few zeros, and the nanoseconds for one kernel value."""
    prepared, numbers = _prepare_lines(expansion, support, dtype), expansion.kernel.numbers

    def score(begin, end, out):
        rows, memory = Z.part(begin, end), prepared.memory(_ROWS_PER_STEP)
        rows = np.ascontiguousarray(rows.toarray() if issparse(rows) else rows, dtype=dtype)
        add_by_dense_lines(numbers, rows, Z.norms[begin:end], prepared, memory, out)

    return score, _NANOSECONDS_PER_KERNEL_VALUE


class _PreparedLines(NamedTuple):
    """The lines of the support vectors, their squared norms with zeros for missing rows of the last panel, and weights.

    The products of `n_together` panels with some rows are computed, then their kernel values, then the sums.
    """

    lines: np.ndarray
    norms: np.ndarray
    weights: Weights
    n_together: int

    def memory(self, n_rows):
        """Return memory for inner products of so many rows, for kernel values and for sums."""
        products = aligned_zeros((n_rows, self.n_together, LANES), self.lines.dtype)
        values = aligned_zeros((n_rows, self.n_together * LANES), self.weights.dtype)
        return products, values, self.weights.memory()


def _prepare_lines(expansion, support, dtype):
    """Return the _PreparedLines of support vectors."""
    lines = lines_of(support.X, dtype, expansion.n_jobs)
    norms = np.zeros(len(lines) * LANES, dtype)
    norms[: len(support.norms)] = support.norms
    return _PreparedLines(lines, norms, expansion.weights(dtype), panels_together(lines))


def _by_table(expansion, distances):
    """Return a function that scores a range of rows by integer distances, and the nanoseconds for one kernel value."""
    exponents = expansion.kernel.gamma * distances.unit * np.arange(distances.largest + 1)
    table, weights = np.exp(-exponents), expansion.weights()

    def score(begin, end, out):
        memory = np.empty(ROWS_PER_BLOCK, np.int16), *_memory(weights, ROWS_PER_BLOCK)
        for block in distances.blocks:
            add_from_table(table, distances.Z, (begin, end), block, weights, memory, out)

    return score, _NANOSECONDS_PER_LOOK_UP + _NANOSECONDS_PER_LINE * distances.lines_per_row


def _by_weights(expansion, Z):
    """Return the scores of the linear kernel as <Σ coef_i x_i, z>.

    If a sparse matrix has more columns than stored values, the weight vector would be longer than the data: then the
    scores are computed by tiles.
    """
    support = expansion.support
    if issparse(support) and support.shape[1] > support.nnz:
        return _by_products(expansion, Z)
    out = expansion.zeros(Z.shape[0])
    for block in range(expansion.n_blocks):
        here = slice(expansion.ends[block], expansion.ends[block + 1])
        weights = expansion.coefficients[:, here] @ support[here].astype(np.float64)
        out[:, block] = Z @ np.asarray(weights).T
    expansion.advance(Z.shape[0])
    return expansion.outcomes(out)


def _by_function(expansion, Z):
    """Return the scores from values of the caller's kernel function, for some rows at a time."""
    kernel, support, out = expansion.kernel, expansion.support, expansion.zeros(Z.shape[0])
    step = max(1, _KERNEL_VALUES_PER_CALL // support.shape[0])
    for begin in range(0, Z.shape[0], step):
        values = np.asarray(kernel.function(Z[begin : begin + step], support), dtype=np.float64)
        expected = (min(step, Z.shape[0] - begin), support.shape[0])
        if values.shape != expected:
            raise ValueError(f"The kernel function must return shape {expected}, got {values.shape}.")
        if not np.isfinite(values).all():
            raise ValueError("The kernel function returned NaN or infinity.")
        expansion.add(values, out[begin : begin + step])
        expansion.advance(len(values))
    return expansion.outcomes(out)


def _by_values(expansion, Z):
    """Return the scores from the given kernel values Z, at the columns of the support vectors.

    These are not copied all at once: a copy takes longer than the sums.
    """
    if expansion.support is None:
        out = expansion.zeros(Z.shape[0])
        expansion.add(np.asarray(Z, dtype=np.float64), out)
        expansion.advance(Z.shape[0])
        return expansion.outcomes(out)
    Z = Z.astype(Z.dtype if Z.dtype == np.float32 else np.float64, order="A", copy=False)
    columns = np.ascontiguousarray(expansion.support, dtype=np.int64)
    if columns.min() < 0 or columns.max() >= Z.shape[1]:
        raise ValueError(
            f"Support vectors have the columns {columns.min()} to {columns.max()} of kernel values that have "
            f"{Z.shape[1]}."
        )
    if Z.flags.f_contiguous:
        return _by_contiguous_columns(expansion, Z, columns)
    Z, weights = np.ascontiguousarray(Z), expansion.weights()

    def score(begin, end, out):
        add_columns(Z[begin:end], columns.view(np.uint64), weights, _memory(weights, len(columns)), out)

    return _score_in_tasks(expansion, score, _NANOSECONDS_PER_KERNEL_VALUE, len(Z))


def _by_contiguous_columns(expansion, Z, columns):
    """Return the scores from kernel values whose columns are contiguous: no others than those needed are read."""
    sums = np.zeros((expansion.n_blocks, len(expansion.coefficients), len(Z)))

    def score(begin, end):
        for block, output in np.ndindex(*sums.shape[:2]):
            here = slice(*expansion.ends[block : block + 2])
            weights = expansion.coefficients[output, here]
            add_weighted_rows(Z.T, columns[here], weights, begin, end, sums[block, output])
        expansion.advance(end - begin)

    run(score, split(len(Z), -(-len(Z) // _ROWS_OF_COLUMNS_PER_TASK)), expansion.n_jobs)
    return expansion.outcomes(np.ascontiguousarray(sums.transpose(2, 0, 1)))


_SCORERS = {"linear": _by_weights, "callable": _by_function, "precomputed": _by_values}
