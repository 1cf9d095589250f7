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

from widemargin._runtime.compile import compiled
from widemargin._runtime.simd import LANES, aligned_zeros
from widemargin._runtime.threads import run, single_threaded_blas, split
from widemargin.data.column_lists import ROWS_PER_BLOCK, ColumnNumbers, csr_rows, list_blocks, row_with_lists
from widemargin.data.feature_lines import (
    ROWS_TOGETHER,
    lines_of,
    panels_together,
    products_with_lines,
    row_with_lines,
    suits_lines,
    suits_lines_without_zeros,
    values_of_rows,
)
from widemargin.data.integer_rows import integer_distances, put_distances
from widemargin.data.products import InnerProducts, is_sparse, squared_norms
from widemargin.kernels.functions import finish_row
from widemargin.kernels.rows import add_weighted_rows
from widemargin.kernels.weighted_sums import Weights, add_sums, weights_of

_KERNEL_VALUES_PER_CALL = 1 << 22  # at most, in one call of a kernel function K(A, B)
_ROWS_PER_TASK, _FEWEST_TASKS = 128, 8  # of the thread pool, unless there is little work
_NANOSECONDS_PER_TASK = 400_000.0  # work below which there is only one task
_NANOSECONDS_WITHOUT_BLAS_THREADS = 10_000.0  # work for which BLAS never starts threads of its own
_NANOSECONDS_PER_KERNEL_VALUE, _NANOSECONDS_PER_SPARSE_PRODUCT = 1.0, 3.0
_NANOSECONDS_PER_LOOK_UP, _NANOSECONDS_PER_LINE = 0.4, 0.03
_ROWS_PER_STEP = 32  # whose inner products with some panels compiled loops compute before their values
_ROWS_OF_COLUMNS_PER_TASK = 2048  # of kernel values that are given by columns
_ROWS_PER_NORM_TASK, _VALUES_WORTH_THREADS = 1024, 1 << 20  # of the squared norms of rows to score
_FEWEST_ROWS_BY_LINES = 16  # rows to score for which preparing the lines takes less time than they save
_LARGEST_GAMMA = 1e290  # for the unit of integer distances: the exponents of the table do not overflow


def kernel_scores(kernel, support, coefficients, Z, *, ends=None, n_jobs=None, advance=None):
    """Return K(Z, support) @ coefficients.T in float64.

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

    Returns
    -------
    scores : ndarray of shape (n_rows, n_outputs), or (n_rows, n_blocks, n_outputs) if `ends` are given
    """
    coefficients = np.ascontiguousarray(coefficients, dtype=np.float64)
    block_ends = np.array([0, coefficients.shape[1]]) if ends is None else np.asarray(ends)
    expansion = _Expansion(kernel, support, coefficients, block_ends)
    out = np.zeros((Z.shape[0], expansion.n_blocks, coefficients.shape[0]))
    if coefficients.shape[1] and Z.shape[0]:
        _SCORERS.get(kernel.name, _by_products)(expansion, Z, out, n_jobs, advance or _no_progress)
    return out[:, 0] if ends is None else out


def _no_progress(n_rows):
    """Ignore the number of rows that are done: the default of `advance`."""


class _Expansion:
    """A kernel, the support vectors and their coefficients, in blocks of support vectors with a sum for each."""

    def __init__(self, kernel, support, coefficients, ends):
        self.kernel, self.support = kernel, support
        self.coefficients, self.ends, self.n_blocks = coefficients, ends, len(ends) - 1

    def weights(self, dtype=np.float64):
        """Return the Weights for kernel values in a precision of `dtype`."""
        return weights_of(self.coefficients, self.ends, dtype)

    def add(self, values, out):
        """Add the contributions of all support vectors, with kernel values (n_rows, n_support), to `out`."""
        for block, (begin, end) in enumerate(pairwise(self.ends)):
            if begin < end:
                out[:, block] += values[:, begin:end] @ self.coefficients[:, begin:end].T


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


def _by_products(expansion, Z, out, n_jobs, advance):
    """Compute the scores from inner products, turned into kernel values and multiplied by coefficients."""
    distances = integer_distances(expansion.support, Z) if expansion.kernel.name == "rbf" else None
    if distances is not None and 0.0 <= expansion.kernel.gamma * distances.unit < _LARGEST_GAMMA:
        prepared = _by_table(expansion, distances, out)
    else:
        prepared = _by_numbers(expansion, Z, out, n_jobs)
    _score_in_tasks(*prepared, expansion.coefficients.shape[1], len(out), n_jobs, advance)


def _by_numbers(expansion, Z, out, n_jobs):
    """Return a function that scores a range of rows by floating point numbers, and the nanoseconds for one value."""
    kernel, support = expansion.kernel, expansion.support
    norms_for_lines = _norms_for_lines(kernel, support, Z)
    by_lines = norms_for_lines is not None
    is_centred = kernel.name == "rbf" and not (by_lines or issparse(support) or issparse(Z))
    centre = support.mean(axis=0, dtype=np.float64).astype(support.dtype) if is_centred else None
    support = _centred(support, centre)
    norms, norms_of_Z = norms_for_lines if by_lines else (squared_norms(support), _norms(Z, centre, n_jobs))
    kernel.check(norms)
    kernel.check(norms_of_Z)
    single = support.dtype == np.float32 and Z.dtype == np.float32
    single = single and kernel.exact_in_single(norms) and kernel.exact_in_single(norms_of_Z)
    dtype = np.float32 if single else np.float64
    prepare = _by_lines if by_lines else _by_lists if is_sparse(support) else _choose_for_dense(support, Z)
    support, Z = _Rows(support, norms.astype(dtype)), _Rows(Z, norms_of_Z.astype(dtype), centre)
    return prepare(expansion, support, Z, out, dtype)


def _choose_for_dense(support, Z):
    """Return the function that prepares the scores of rows with few zeros."""
    return _by_dense_lines if Z.shape[0] >= _FEWEST_ROWS_BY_LINES and suits_lines_without_zeros(support) else _by_tiles


def _norms_for_lines(kernel, support, Z):
    """Return squared norms if inner products by lines of features skip zeros, and suffice without a centre, or None."""
    if Z.shape[0] < _FEWEST_ROWS_BY_LINES or is_sparse(support) or not suits_lines(Z):
        return None
    norms, norms_of_Z = squared_norms(support), squared_norms(Z)
    largest = np.array([norms.max(initial=0.0), norms_of_Z.max(initial=0.0)])
    is_single = support.dtype == np.float32 and Z.dtype == np.float32
    is_exact = kernel.exact_in_single(largest) if is_single else kernel.exact_uncentred(largest)
    return (norms, norms_of_Z) if is_exact or kernel.name != "rbf" else None


def _score_in_tasks(score, nanoseconds, n_support, n_rows, n_jobs, advance):
    """Call score(begin, end) for ranges of all rows; one kernel value takes so many nanoseconds."""

    def score_and_advance(begin, end):
        score(begin, end)
        advance(end - begin)

    work = nanoseconds * n_support * n_rows
    n_tasks = min(-(-n_rows // _ROWS_PER_TASK), int(work / _NANOSECONDS_PER_TASK))
    n_tasks = 1 if work < _NANOSECONDS_PER_TASK else max(_FEWEST_TASKS, n_tasks)
    with single_threaded_blas() if work > _NANOSECONDS_WITHOUT_BLAS_THREADS else nullcontext():
        run(score_and_advance, split(n_rows, n_tasks), n_jobs)


def _by_tiles(expansion, support, Z, out, dtype):
    """Return a function that scores a range of rows by tiles of BLAS, and the nanoseconds for one kernel value."""
    products, weights = InnerProducts(support.X, dtype), expansion.weights(dtype)
    tiles = products.tiles(0, products.n_rows)
    widest = max(stop - start for start, stop in tiles)

    def score(begin, end):
        memory = _memory(weights, widest)
        with products.workspace() as workspace:
            for k, panel in enumerate(products.panels_of(Z.part(begin, end))):
                here = slice(begin + k * products.panel_rows, min(begin + (k + 1) * products.panel_rows, end))
                for ends in tiles:
                    inner = products.fill(panel, here.stop - here.start, None, *ends, workspace)
                    pair = Z.norms[here], support.norms[slice(*ends)]
                    _add_tile(expansion.kernel.numbers, inner, pair, ends, weights, memory, out[here])

    return score, products.cost + _NANOSECONDS_PER_KERNEL_VALUE


def _memory(weights, width):
    """Return the memory for so many kernel values of some rows, and for their sums."""
    return np.empty((weights.rows_together, width), weights.dtype), weights.memory()


def _by_lists(expansion, support, Z, out, dtype):
    """Return a function that scores a range of sparse rows by lists, and the nanoseconds for one kernel value."""
    rows = csr_rows(csr_array(support.X, dtype=dtype))
    numbers, weights = ColumnNumbers(rows, support.X.shape[1]), expansion.weights(dtype)
    blocks = list_blocks(numbers.renumber(rows), numbers.n_columns)
    rows_of_Z = numbers.renumber(csr_rows(csr_array(Z.part(0, len(out)), dtype=dtype)))

    def score(begin, end):
        memory = np.empty((weights.rows_together, ROWS_PER_BLOCK), dtype), *_memory(weights, ROWS_PER_BLOCK)
        for start, stop, lists in blocks:
            pair, part = (Z.norms[begin:end], support.norms[start:stop]), (begin, start)
            _add_by_lists(expansion.kernel.numbers, rows_of_Z, pair, lists, part, weights, memory, out[begin:end])

    return score, _NANOSECONDS_PER_KERNEL_VALUE + _NANOSECONDS_PER_SPARSE_PRODUCT


def _by_lines(expansion, support, Z, out, dtype):
    """Return a function that scores a range of rows by lines of features, and the nanoseconds for one kernel value."""
    prepared, numbers = _prepare_lines(expansion, support, dtype), expansion.kernel.numbers

    def score(begin, end):
        rows, memory = values_of_rows(Z.X, begin, end, dtype), prepared.memory(_ROWS_PER_STEP)
        _add_by_lines(numbers, rows, Z.norms[begin:end], prepared, memory, out[begin:end])

    return score, _NANOSECONDS_PER_KERNEL_VALUE


def _by_dense_lines(expansion, support, Z, out, dtype):
    """Return a function that scores a range of rows with few zeros, and the nanoseconds for one kernel value."""
    prepared, numbers = _prepare_lines(expansion, support, dtype), expansion.kernel.numbers

    def score(begin, end):
        rows, memory = Z.part(begin, end), prepared.memory(_ROWS_PER_STEP)
        rows = np.ascontiguousarray(rows.toarray() if issparse(rows) else rows, dtype=dtype)
        _add_by_dense_lines(numbers, rows, Z.norms[begin:end], prepared, memory, out[begin:end])

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
    lines = lines_of(support.X, dtype)
    norms = np.zeros(len(lines) * LANES, dtype)
    norms[: len(support.norms)] = support.norms
    return _PreparedLines(lines, norms, expansion.weights(dtype), panels_together(lines))


def _by_table(expansion, distances, out):
    """Return a function that scores a range of rows by integer distances, and the nanoseconds for one kernel value."""
    exponents = expansion.kernel.gamma * distances.unit * np.arange(distances.largest + 1)
    table, weights = np.exp(-exponents), expansion.weights()

    def score(begin, end):
        memory = np.empty(ROWS_PER_BLOCK, np.int16), *_memory(weights, ROWS_PER_BLOCK)
        for block in distances.blocks:
            _add_from_table(table, distances.Z, (begin, end), block, weights, memory, out)

    return score, _NANOSECONDS_PER_LOOK_UP + _NANOSECONDS_PER_LINE * distances.lines_per_row


@compiled
def _add_from_table(table, Z, ends, block, weights, memory, out):
    """Add the contributions of a block of support vectors to out[b], for the rows b from ends[0] to ends[1]."""
    integers, values, sums = memory
    start, stop, lines, norms = block
    distances = integers[: stop - start]
    for first in range(ends[0], ends[1], values.shape[0]):
        last = min(first + values.shape[0], ends[1])
        for b in range(first, last):
            row = values[np.uint64(b - first)]
            put_distances(Z, np.uint64(b), lines, norms, distances)
            for j in range(distances.size):
                row[j] = table[np.uint16(distances[j])]
        add_sums(values, (start, stop), weights, sums, out[first:last])


@compiled
def _add_columns(Z, columns, weights, memory, out):
    """Add the contributions of all support vectors to out[b], from the kernel values Z[b, columns], for all b."""
    values, sums = memory
    for first in range(0, Z.shape[0], values.shape[0]):
        last = min(first + values.shape[0], Z.shape[0])
        for b in range(first, last):
            row, target = Z[np.uint64(b)], values[np.uint64(b - first)]
            for j in range(columns.size):
                target[j] = row[columns[j]]
        add_sums(values, (0, columns.size), weights, sums, out[first:last])


@compiled
def _add_tile(numbers, products, norms, ends, weights, memory, out):
    """Add the contributions of the support vectors from ends[0] to ends[1] to out[b], from the products[b], all b.

    `norms` are those of the rows, and those of the support vectors; there may be more products than support vectors.
    """
    values, sums = memory
    own, others = norms
    kind, gamma, coef0, degree = numbers
    for first in range(0, out.shape[0], values.shape[0]):
        last = min(first + values.shape[0], out.shape[0])
        for b in range(first, last):
            inner, row = products[np.uint64(b)][: others.size], values[np.uint64(b - first)][: others.size]
            finish_row(kind, gamma, coef0, degree, inner, own[b], others, row)
        add_sums(values, ends, weights, sums, out[first:last])


@compiled
def _add_by_lists(numbers, rows, norms, lists, part, weights, memory, out):
    """Add the contributions of the support vectors of some lists, from part[1] on, to out[b] of row part[0] + b."""
    products, values, sums = memory
    own, others = norms
    begin, start = part
    for first in range(0, out.shape[0], products.shape[0]):
        last = min(first + products.shape[0], out.shape[0])
        for b in range(first, last):
            row_with_lists(rows, np.uint64(begin + b), lists, products[np.uint64(b - first)][: others.size])
        ends = start, start + others.size
        _add_tile(numbers, products, (own[first:last], others), ends, weights, (values, sums), out[first:last])


@compiled
def _add_by_lines(numbers, rows, own, prepared, memory, out):
    """Add the contributions of all support vectors to out[b], for all rows b: some panels with some rows, and so on.

    One call does the work of a task, because threads wait for each other where a call returns to Python.
    """
    products, values, sums = memory
    lines, norms, weights, n_together = prepared
    inner = products.reshape(products.shape[0], n_together * LANES)
    for first in range(0, lines.shape[0], n_together):
        panels = lines[first : first + n_together]
        for begin in range(0, own.size, products.shape[0]):
            end = min(begin + products.shape[0], own.size)
            for p in range(panels.shape[0]):
                for b in range(begin, end):
                    row_with_lines(rows, np.uint64(b), panels[p : p + 1], products[np.uint64(b - begin)][p : p + 1])
            ends = first * LANES, min((first + n_together) * LANES, weights.lines.shape[1])
            pair = own[begin:end], norms[first * LANES : (first + panels.shape[0]) * LANES]
            _add_tile(numbers, inner, pair, ends, weights, (values, sums), out[begin:end])


@compiled
def _add_by_dense_lines(numbers, Z, own, prepared, memory, out):
    """Do the work of `_add_by_lines` for the rows of an array, some of them at once."""
    products, values, sums = memory
    lines, norms, weights, n_together = prepared
    inner = products.reshape(products.shape[0], n_together * LANES)
    for first in range(0, lines.shape[0], n_together):
        panels = lines[first : first + n_together]
        for begin in range(0, own.size, products.shape[0]):
            end = min(begin + products.shape[0], own.size)
            for b in range(begin, end, ROWS_TOGETHER):
                products_with_lines(Z, b, panels, products[b - begin : b - begin + ROWS_TOGETHER])
            ends = first * LANES, min((first + n_together) * LANES, weights.lines.shape[1])
            pair = own[begin:end], norms[first * LANES : (first + panels.shape[0]) * LANES]
            _add_tile(numbers, inner, pair, ends, weights, (values, sums), out[begin:end])


def _by_weights(expansion, Z, out, n_jobs, advance):
    """Compute the scores of the linear kernel as <Σ coef_i x_i, z>.

    If a sparse matrix has more columns than stored values, the weight vector would be longer than the data: then the
    scores are computed by tiles.
    """
    support = expansion.support
    if issparse(support) and support.shape[1] > support.nnz:
        return _by_products(expansion, Z, out, n_jobs, advance)
    for block in range(expansion.n_blocks):
        here = slice(expansion.ends[block], expansion.ends[block + 1])
        weights = expansion.coefficients[:, here] @ support[here].astype(np.float64)
        out[:, block] = Z @ np.asarray(weights).T
    return advance(Z.shape[0])


def _by_function(expansion, Z, out, n_jobs, advance):
    """Compute the scores from values of the caller's kernel function, for some rows at a time."""
    kernel, support = expansion.kernel, expansion.support
    step = max(1, _KERNEL_VALUES_PER_CALL // support.shape[0])
    for begin in range(0, Z.shape[0], step):
        values = np.asarray(kernel.function(Z[begin : begin + step], support), dtype=np.float64)
        expected = (min(step, Z.shape[0] - begin), support.shape[0])
        if values.shape != expected:
            raise ValueError(f"The kernel function must return shape {expected}, got {values.shape}.")
        if not np.isfinite(values).all():
            raise ValueError("The kernel function returned NaN or infinity.")
        expansion.add(values, out[begin : begin + step])
        advance(len(values))


def _by_values(expansion, Z, out, n_jobs, advance):
    """Compute the scores from the given kernel values Z, at the columns of the support vectors.

    These are not copied all at once: a copy takes longer than the sums.
    """
    if expansion.support is None:
        expansion.add(np.asarray(Z, dtype=np.float64), out)
        return advance(Z.shape[0])
    Z = Z.astype(Z.dtype if Z.dtype == np.float32 else np.float64, order="A", copy=False)
    columns = np.ascontiguousarray(expansion.support, dtype=np.int64)
    if columns.min() < 0 or columns.max() >= Z.shape[1]:
        raise ValueError(
            f"Support vectors have the columns {columns.min()} to {columns.max()} of kernel values that have "
            f"{Z.shape[1]}."
        )
    if Z.flags.f_contiguous:
        return _by_contiguous_columns(expansion, Z, columns, out, n_jobs, advance)
    Z, weights = np.ascontiguousarray(Z), expansion.weights()

    def score(begin, end):
        _add_columns(Z[begin:end], columns.view(np.uint64), weights, _memory(weights, len(columns)), out[begin:end])

    return _score_in_tasks(score, _NANOSECONDS_PER_KERNEL_VALUE, len(columns), len(out), n_jobs, advance)


def _by_contiguous_columns(expansion, Z, columns, out, n_jobs, advance):
    """Compute the scores from kernel values whose columns are contiguous: no others than those needed are read."""
    sums = np.zeros((*out.shape[1:], len(out)))

    def score(begin, end):
        for block, output in np.ndindex(*out.shape[1:]):
            here = slice(*expansion.ends[block : block + 2])
            weights = expansion.coefficients[output, here]
            add_weighted_rows(Z.T, columns[here], weights, begin, end, sums[block, output])
        advance(end - begin)

    run(score, split(len(out), -(-len(out) // _ROWS_OF_COLUMNS_PER_TASK)), n_jobs)
    out[:] = sums.transpose(2, 0, 1)


_SCORERS = {"linear": _by_weights, "callable": _by_function, "precomputed": _by_values}
