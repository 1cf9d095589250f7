"""Functions of a kernel model, their norms in the kernel's space, and their approximation by fewer vectors.

The outputs of a model are f_p(z) = Σ c_i K(x_i, z), one for each p. Their coefficients stand in a table with a column
for each vector x_i. Vectors are divided into blocks, and a cell is a line of the table within a block. Each cell
belongs to one output; an output is the sum over its cells:

    one output          one line, one block, one cell
    pairs of classes    a block for each class; the pair (i, j) has line j − 1 of block i and line i of block j
    shared vectors      one block, and a line for each output

With <K(x, ·), K(z, ·)> = K(x, z), the distance of f from g(z) = Σ b_j K(z_j, z) is

    |f − g|² = <f, f> − 2 <f, g> + <g, g>,      <f, g> = Σ_j b_j f(z_j)

so that values of the functions at the vectors are all that is needed. If the z_j are given, the g nearest to f solves
Σ_k K(z_j, z_k) b_k = f(z_j). For every row z, |f(z) − g(z)| <= |f − g| √K(z, z).
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from widemargin._runtime.progress import task
from widemargin.data.products import squared_norms
from widemargin.kernels.expansion import kernel_scores
from widemargin.kernels.functions import Kernel
from widemargin.kernels.rows import KernelRows

_SUMS_AT_ONCE = 1 << 22  # numbers that a block of scores has: 32 MB
_ROUNDING = 2.0**-53
_SMALLEST_RIDGE, _RIDGE_FACTOR, _N_RIDGES = 1e-15, 10.0, 12  # relative to K(x, x), where rounding asks for one


@dataclass(frozen=True)
class Expansions:
    """The outputs of a kernel model, without intercepts.

    Parameters
    ----------
    kernel : Kernel
    vectors : ndarray or csr of shape (n_vectors, n_features)
    table : ndarray of shape (n_lines, n_vectors)
        The coefficients.
    ends : ndarray of int
        Offsets of the blocks of vectors, from 0 to n_vectors.
    outputs : tuple of tuples of (line, block)
        The cells of each output.
    n_jobs : int or None
    """

    kernel: Kernel
    vectors: Any
    table: np.ndarray
    ends: np.ndarray
    outputs: tuple
    n_jobs: int | None = None

    @property
    def n_vectors(self):
        """Number of vectors."""
        return self.table.shape[1]

    def block(self, number):
        """Return the vectors of a block, as a slice."""
        return slice(int(self.ends[number]), int(self.ends[number + 1]))

    def in_double(self):
        """Return the same functions with vectors in double precision."""
        return replace(self, vectors=self.vectors.astype(np.float64, copy=False))

    def on(self, vectors, table, counts):
        """Return functions on other vectors, with so many in each block."""
        return replace(self, vectors=vectors, table=table, ends=np.concatenate([[0], np.cumsum(counts)]))

    def chosen(self, order):
        """Return the same functions on some of the vectors, given by ascending numbers, with their coefficients."""
        counts = np.diff(np.searchsorted(order, self.ends))
        return self.on(self.vectors[order], self.table[:, order], counts)

    def shared(self):
        """Return the same functions with one block, all of whose vectors every output has."""
        table = np.zeros((len(self.outputs), self.n_vectors))
        for p in range(len(self.outputs)):
            for line, vectors in self.cells(p):
                table[p, vectors] = self.table[line, vectors]
        outputs = tuple(((p, 0),) for p in range(len(table)))
        return replace(self, table=table, ends=np.array([0, self.n_vectors]), outputs=outputs)

    def groups(self):
        """Return lists of outputs that have the same vectors."""
        found = {}
        for p, cells in enumerate(self.outputs):
            found.setdefault(tuple(block for _, block in cells), []).append(p)
        return list(found.values())

    def gathered(self, table, output, order=None):
        """Return the entries of a table that belong to an output, of all vectors or of those in `order`."""
        return np.concatenate([table[line, vectors] for line, vectors in self.cells(output, order)])

    def scatter(self, table, output, numbers):
        """Set the entries of a table that belong to an output, from one number for each of its vectors."""
        for line, vectors in self.cells(output):
            table[line, vectors], numbers = numbers[: len(vectors)], numbers[len(vectors) :]

    def cells(self, output, order=None):
        """Return (line, numbers of vectors) of each cell of an output; of vectors in the ascending `order` only."""
        ends = self.ends if order is None else np.searchsorted(order, self.ends)
        every = np.arange(self.n_vectors) if order is None else order
        return [(line, every[ends[block] : ends[block + 1]]) for line, block in self.outputs[output]]


def values_at(f, g):
    """Return a table with the values of f at the vectors of g: of each vector, those of the outputs of its block.

    `f` and `g` are Expansions with equally many outputs. The value of an output stands where g has the coefficient.
    """
    table = np.zeros(g.table.shape)
    n_sums = (len(f.ends) - 1) * f.table.shape[0]
    step = max(1, _SUMS_AT_ONCE // n_sums)
    with task("measuring functions", g.n_vectors, "vectors") as measuring:
        options = {"ends": f.ends, "n_jobs": f.n_jobs, "advance": measuring.advance}
        for block in range(len(g.ends) - 1):
            mine = [
                (cells_of_f, line)
                for cells_of_f, cells in zip(f.outputs, g.outputs, strict=True)
                for line, of_block in cells
                if of_block == block
            ]
            for begin in range(int(g.ends[block]), int(g.ends[block + 1]), step):
                here = slice(begin, min(begin + step, int(g.ends[block + 1])))
                sums = kernel_scores(f.kernel, f.vectors, f.table, g.vectors[here], **options)
                for cells, line in mine:
                    table[line, here] = sum(sums[:, other, other_line] for other_line, other in cells)
    return table


def inner_products(values, g):
    """Return <f, g> of each output, from the `values_at(f, g)`."""
    return np.array([g.gathered(values, p) @ g.gathered(g.table, p) for p in range(len(g.outputs))])


def squared_distances(squared_norms_of_f, values, g):
    """Return |f − g|² of each output, from <f, f> and `values_at(f, g)`, without a bound of rounding; at least 0."""
    of_g = inner_products(values_at(g, g), g)
    return np.maximum(squared_norms_of_f - 2.0 * inner_products(values, g) + of_g, 0.0)


def rounding_of_distances(f, g):
    """Return an upper bound of the rounding errors of `squared_distances`, for each output.

    A kernel value has an error of at most e √(K(x, x) K(z, z)), where e follows from the inner product of d terms. It
    is multiplied by the degree of a polynomial, and by the exponent of the rbf kernel, which is at most 4 gamma R² if R
    is the radius of all vectors around their centre, and four times that around another. A sum of n terms adds n units
    of rounding.
    """
    norms = [squared_norms(part.vectors) for part in (f, g)]
    factor = 1.0 + (f.kernel.degree if f.kernel.name == "poly" else 0)
    if f.kernel.name == "rbf":
        factor = 1.0 + 16.0 * f.kernel.gamma * max(_squared_radius(part.vectors, f.vectors) for part in (f, g))
    unit = _ROUNDING * (2.0 * (f.vectors.shape[1] + 8) * factor + f.n_vectors + g.n_vectors + 16)
    roots = [np.sqrt(f.kernel.diagonal(each)) for each in norms]
    return unit * (_sizes(f, roots[0]) + _sizes(g, roots[1])) ** 2


def _sizes(f, roots):
    """Return Σ_i |c_i| √K(x_i, x_i) of each output, from the roots of all vectors."""
    terms = np.abs(f.table) * roots
    return np.array([f.gathered(terms, p).sum() for p in range(len(f.outputs))])


def _squared_radius(vectors, others):
    """Return the largest |x − m|² of vectors x, m being the mean of the others; 0 in place of m if some are sparse."""
    if isinstance(vectors, np.ndarray) and isinstance(others, np.ndarray) and len(others):
        vectors = vectors - others.mean(axis=0, dtype=np.float64)
    return squared_norms(vectors).max(initial=0.0)


def projected(f, values, order):
    """Return the functions nearest to f on some of its vectors, given by their numbers in ascending order.

    Parameters
    ----------
    f : Expansions
    values : ndarray
        `values_at(f, f)`.
    order : ndarray of int

    Returns
    -------
    Expansions
    """
    g = f.chosen(order)
    table = np.zeros_like(g.table)
    rows = KernelRows(f.kernel, g.vectors, dtype=np.float64, n_jobs=f.n_jobs) if len(order) else None
    values = values[:, order]
    for outputs in g.groups():
        numbers = np.concatenate([part for _, part in g.cells(outputs[0])])
        if not len(numbers):
            continue
        matrix = np.empty((len(numbers), len(numbers)))
        rows.fill(numbers, rows.columns(numbers), matrix, np.arange(len(numbers)))
        solution = solved(matrix, np.column_stack([g.gathered(values, p) for p in outputs]))
        for p, coefficients in zip(outputs, solution.T, strict=True):
            g.scatter(table, p, coefficients)
    return replace(g, table=table)


def solved(matrix, right_side):
    """Solve a positive definite system; if rounding has made it indefinite, with the smallest ridge that helps.

    A vector of length zero, whose row and column are zero, gets the coefficient 0. The diagonal of `matrix` is
    overwritten.
    """
    diagonal, ridge = matrix.diagonal().copy(), 0.0
    diagonal[diagonal == 0.0] = 1.0
    for attempt in range(_N_RIDGES):
        matrix[np.diag_indices_from(matrix)] = diagonal * (1.0 + ridge)
        try:
            return cho_solve(cho_factor(matrix), right_side)
        except LinAlgError:
            ridge = _SMALLEST_RIDGE * _RIDGE_FACTOR**attempt
    raise LinAlgError("The kernel matrix of the vectors is not positive definite.")
