"""Scaled columns without touching the rows: a linear map between the data and what solvers see.

With a_j the inverse scale of column j and m_j what is taken off it, each row x becomes z_j = a_j (x_j − m_j), that is

    z = A (x, 1)        A has the a_j on its diagonal, −a_j m_j in its last column, and a row for the constant column

so that   Z w = (X, 1) A'w,   Z'c = A (X, 1)'c,   Z'diag(q)Z = A (X, 1)'diag(q)(X, 1) A'.   Sparse rows stay sparse.

    standard    m_j the mean, a_j = 1/standard deviation
    maxabs      m_j = 0, a_j = 1/largest absolute value

A constant column, whose deviation is no more than rounding errors of its mean, has the scale 1.
"""

from dataclasses import dataclass, field
from itertools import chain
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse

from widemargin._runtime.argument_types import Floats
from widemargin.data.byte_rows import converted_parts, has_bytes
from widemargin.data.rows import DenseRows, SparseRows

METHODS = ("standard", "maxabs")
_DEVIATION_OF_CONSTANT = 1e-10  # relative to the largest absolute value


@dataclass(frozen=True)
class ColumnScaling:
    """What is taken off each column, `centre`, and what it is then divided by, `scale`.

    `norm_bound` is a bound of the squared norm of every row after scaling, and of Σ (|x_j| + |m_j|)² a_j², to which
    rounding errors of its score are proportional.
    """

    centre: NDArray[np.float64]
    scale: NDArray[np.float64]
    norm_bound: float = field(default=np.inf, compare=False)
    maps_rows: ClassVar[bool] = False  # whether rows are mapped before their products are added to a Gram matrix

    @classmethod
    def of(cls, method, columns):
        """Return the scaling by a method, for arrays `mean`, `deviation` and `max_abs` with a number per column."""
        if method == "standard":
            centre, scale = np.array(columns["mean"]), columns["deviation"]
            scale = np.where(scale > _DEVIATION_OF_CONSTANT * columns["max_abs"], scale, 1.0)
        else:
            centre, scale = np.zeros(len(columns["mean"])), columns["max_abs"]
            scale = np.where(scale > 0.0, scale, 1.0)
        return cls(centre, scale, float(np.sum(((columns["max_abs"] + np.abs(centre)) / scale) ** 2)))

    @property
    def largest_square(self):
        """A bound of the squared norm of every row after scaling."""
        return self.norm_bound

    @property
    def is_centred(self):
        """Whether anything is taken off a column, so that scaled rows are dense."""
        return bool(self.centre.any())

    def forward(self, sums: Floats, constant: float) -> Floats:
        """Return A v for sums v over rows (x, 1); the constant column is the last if `constant` is not zero."""
        scaled = (sums[:-1] - self.centre * sums[-1]) / self.scale
        return np.append(scaled, constant * sums[-1]) if constant else scaled

    def adjoint(self, w: Floats, constant: float) -> Floats:
        """Return A'w: the weights of the data, and last the number that is added to each score."""
        weights = w[: len(self.scale)] / self.scale
        added = (constant * w[-1] if constant else 0.0) - float(self.centre @ weights)
        return np.append(weights, added)

    def of_gram(self, lower: Floats, constant: float) -> Floats:
        """Return the lower half of A G A' from that of G, the Gram matrix of rows (x, 1)."""
        G = np.tril(lower) + np.tril(lower, -1).T
        A = np.diag(np.append(1.0 / self.scale, constant))
        A[:-1, -1] = -self.centre / self.scale
        scaled = A @ G @ A.T
        return scaled if constant else scaled[:-1, :-1].copy()

    def rows(self, rows):
        """Return rows whose values are divided by the scale of their column; nothing is taken off."""
        if isinstance(rows, DenseRows):
            return DenseRows(_read_only(rows.values / self.scale), rows.constant)
        return SparseRows(_read_only(rows.data / self.scale[rows.indices]), rows.indices, rows.indptr, rows.constant)

    def weights_of_scaled(self, coef: Floats, intercept: Floats) -> tuple[Floats, Floats]:
        """Return weights and intercepts for scaled rows, from those for rows as they are; one row per output."""
        return coef * self.scale, intercept + coef @ self.centre

    def weights_of_data(self, coef: Floats, intercept: Floats) -> tuple[Floats, Floats]:
        """Return weights and intercepts for rows as they are, from those for scaled rows, one row per output."""
        weights = coef / self.scale
        return weights, intercept - weights @ self.centre


def column_statistics(parts):
    """Return `mean`, `deviation` and `max_abs` of each column, of rows in an iterable of arrays or CSR matrices."""
    n_rows, mean, squares, largest = 0, 0.0, 0.0, 0.0
    for X in chain.from_iterable(map(_floating_parts, parts)):
        if X.shape[0] == 0:
            continue
        X = csr_array(X) if issparse(X) else X
        n = X.shape[0]
        if issparse(X):
            here = np.bincount(X.indices, X.data, X.shape[1]) / max(1, n)  # SciPy's mean is rounded to float32
            centred = _squares_about(X, here)
            peak = np.maximum(X.max(axis=0).toarray(), -X.min(axis=0).toarray()).ravel()
        else:
            here = X.mean(axis=0, dtype=np.float64)
            centred, peak = np.square(X - here).sum(axis=0), np.abs(X).max(axis=0)
        total = n_rows + n
        squares = squares + centred + (here - mean) ** 2 * n_rows * n / max(1, total)
        mean, n_rows = mean + (here - mean) * n / max(1, total), total
        largest = np.maximum(largest, peak)
    return {"mean": mean, "deviation": np.sqrt(squares / max(1, n_rows)), "max_abs": np.asarray(largest, np.float64)}


def _floating_parts(X):
    """Yield X; an array of bytes as some rows after the other, converted to float64."""
    if not has_bytes(X):
        yield X
        return
    for _, _, rows in converted_parts(X):
        yield rows


def _squares_about(X, mean):
    """Return Σ (x_ij − mean_j)² over the rows of a CSR matrix; no digits cancel, other than in Σ x² − n mean²."""
    differences = X.data - mean[X.indices]
    stored = np.bincount(X.indices, minlength=X.shape[1])
    sums = np.bincount(X.indices, differences * differences, X.shape[1])
    return sums + (X.shape[0] - stored) * mean**2


def _read_only(array):
    array.flags.writeable = False
    return array
