"""Kernel expansions Σ_i coef_i K(x_i, z) for many rows z: the scores of kernel models.

Kernel values are computed in tiles, and each tile is multiplied by the coefficients as soon as it is computed. Memory
is therefore bounded for any number of rows and support vectors, and all outputs use the same tile. The linear kernel
needs no kernel values: its scores are <Σ_i coef_i x_i, z>.
"""

import numpy as np
from scipy.sparse import issparse

from widemargin._runtime.threads import run, single_threaded_blas, split
from widemargin.data.products import InnerProducts, squared_norms
from widemargin.kernels.rows import ENTRIES_WORTH_THREADS

_KERNEL_VALUES_PER_CALL = 1 << 22  # at most, in one call of a kernel function K(A, B)
_PANELS_PER_TASK = 4  # panels of rows in one task of the thread pool


def kernel_scores(kernel, support, coefficients, Z, *, ends=None, n_jobs=None, advance=None):
    """Return K(Z, support) @ coefficients.T in float64.

    Parameters
    ----------
    kernel : Kernel
    support : ndarray or scipy sparse of shape (n_support, n_features)
        The support vectors; not used if the kernel is "precomputed".
    coefficients : ndarray of shape (n_outputs, n_support)
    Z : ndarray or scipy sparse of shape (n_rows, n_features)
        The rows to score; if the kernel is "precomputed", the kernel values of shape (n_rows, n_support).
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
        _SCORERS.get(kernel.name, _by_tiles)(expansion, Z, out, n_jobs, advance or _no_progress)
    return out[:, 0] if ends is None else out


def _no_progress(n_rows):
    """Ignore the number of rows that are done: the default of `advance`."""


class _Expansion:
    """A kernel, the support vectors and their coefficients, in blocks of support vectors with a sum for each."""

    def __init__(self, kernel, support, coefficients, ends):
        self.kernel, self.support = kernel, support
        self.coefficients, self.ends, self.n_blocks = coefficients, ends, len(ends) - 1

    def add(self, values, start, out):
        """Add the contributions of n support vectors from `start` on, with kernel values (n_rows, n), to `out`."""
        stop = start + values.shape[1]
        for block in range(self.n_blocks):
            begin, end = max(start, self.ends[block]), min(stop, self.ends[block + 1])
            if begin < end:
                out[:, block] += values[:, begin - start : end - start] @ self.coefficients[:, begin:end].T


def _by_tiles(expansion, Z, out, n_jobs, advance):
    """Compute the scores from tiles of inner products, turned into kernel values and multiplied by coefficients."""
    kernel, support = expansion.kernel, expansion.support
    if kernel.name == "rbf" and not issparse(support) and not issparse(Z):
        centre = support.mean(axis=0, dtype=np.float64).astype(support.dtype)
        support, Z = support - centre, Z - centre
    norms, norms_of_Z, n_support = squared_norms(support), squared_norms(Z), support.shape[0]
    kernel.check(norms)
    kernel.check(norms_of_Z)
    single = support.dtype == np.float32 and Z.dtype == np.float32
    single = single and kernel.exact_in_single(norms) and kernel.exact_in_single(norms_of_Z)
    products = InnerProducts(support, np.float32 if single else np.float64)
    norms, norms_of_Z = norms.astype(products.dtype), norms_of_Z.astype(products.dtype)

    def score(begin, end):
        part, own = Z[begin:end], norms_of_Z[begin:end]
        slots = np.arange(products.panel_rows)
        with products.workspace() as workspace:
            values = np.empty(workspace[0].shape)
            for k, panel in enumerate(products.panels_of(part)):
                here = slice(k * products.panel_rows, min((k + 1) * products.panel_rows, end - begin))
                n_panel = here.stop - here.start
                for start, stop in products.tiles(0, n_support):
                    inner = products.fill(panel, n_panel, None, start, stop, workspace)
                    tile = values[:n_panel, : stop - start]
                    kernel.finish(inner, own[here], norms[start:stop], slots[:n_panel], tile, 0)
                    expansion.add(tile, start, out[begin + here.start : begin + here.stop])
                advance(n_panel)

    n_tasks = -(-Z.shape[0] // (_PANELS_PER_TASK * products.panel_rows))
    with single_threaded_blas():
        run(score, split(Z.shape[0], n_tasks), n_jobs if Z.shape[0] * n_support >= ENTRIES_WORTH_THREADS else 1)


def _by_weights(expansion, Z, out, n_jobs, advance):
    """Compute the scores of the linear kernel as <Σ coef_i x_i, z>.

    If a sparse matrix has more columns than stored values, the weight vector would be longer than the data: then the
    scores are computed by tiles.
    """
    support = expansion.support
    if issparse(support) and support.shape[1] > support.nnz:
        return _by_tiles(expansion, Z, out, n_jobs, advance)
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
        expansion.add(values, 0, out[begin : begin + step])
        advance(len(values))


def _by_values(expansion, Z, out, n_jobs, advance):
    """Compute the scores from the given kernel values Z."""
    expansion.add(np.asarray(Z, dtype=np.float64), 0, out)
    advance(Z.shape[0])


_SCORERS = {"linear": _by_weights, "callable": _by_function, "precomputed": _by_values}
