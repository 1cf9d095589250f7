"""Functions on a fixed basis, f(x) = Σ_j c_j K(b_j, x), and the linear map that makes them a linear machine.

With k(x) = (K(b_1, x), ..., K(b_m, x)) and the Cholesky factor of the kernel matrix of the basis, K_BB = L L',

    |f|² = c'K_BB c = |w|²,   f(x) = <c, k(x)> = <w, z(x)>,   with   w = L'c   and   z(x) = L⁻¹k(x)

so that a kernel machine whose functions are those of the basis is a linear machine with features z(x). The features are
not kept: as with scaled columns, the map is applied to weights and to sums over rows,

    Z w = K L⁻ᵀw,    Z'c = L⁻¹K'c

where K are the kernel values of all rows and basis points. The rows of a Gram matrix Z'diag(q)Z, which are few, are
mapped first: L⁻¹ K'diag(q)K L⁻ᵀ would multiply the rounding errors of the large K'K by |L⁻¹|².

Basis points whose function is a combination of those of the others, within rounding, are left out: with a pivoted
Cholesky factorisation these are the points that come last.

References
----------
Keerthi, Chapelle and DeCoste, Building support vector machines with reduced classifier complexity, JMLR 7 (2006).
Williams and Seeger, Using the Nyström method to speed up kernel machines, NIPS 13 (2001).
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from scipy.linalg import solve_triangular
from scipy.linalg.lapack import dpstrf
from scipy.sparse import issparse
from scipy.sparse import vstack as sparse_vstack

from widemargin._runtime.argument_types import Floats
from widemargin.data.rows import DenseRows
from widemargin.kernels.functions import Kernel
from widemargin.kernels.values import KernelValues

_SMALLEST_PIVOT = 1e-6  # squared distance of a basis function from the span of the others, relative to the largest norm
_VALUE_ROUNDING = 2.0**-20  # a bound of the relative rounding error of kernel values, also of single precision
_FEATURES_PER_PRODUCT, _ROWS_PER_PRODUCT = 128, 512  # features that one matrix product computes, and of so many rows


@dataclass(frozen=True)
class Basis:
    """Basis points b_j and the Cholesky factor of their kernel matrix.

    Attributes
    ----------
    kernel : Kernel
    vectors : ndarray or scipy sparse of shape (m, n_features)
        The basis points, none of whose functions depends on those of the others.
    factor : ndarray of shape (m, m)
        L, lower triangular, with K_BB = L L'.
    """

    kernel: Kernel
    vectors: Any
    factor: Floats

    @classmethod
    def of(cls, kernel, vectors):
        """Return the Basis of some points, without those that depend on the others; their order is kept."""
        return cls(kernel, vectors[:0], np.zeros((0, 0))).extended(vectors)

    def __len__(self):
        return len(self.factor)

    def extended(self, vectors):
        """Return the Basis with more points, of which those that depend on the others are left out.

        The points that it has stay, and come first: functions of this basis are functions of the new one.
        """
        values = KernelValues(self.kernel, vectors, np.float64)
        own = values.of(vectors)
        lower = np.zeros((len(own), 0))
        if len(self):
            lower = solve_triangular(self.factor, values.of(self.vectors), lower=True).T
        rest = own - lower @ lower.T
        largest = max(float(own.diagonal().max(initial=0.0)), float(self._largest_diagonal))
        chosen = _independent(rest, _SMALLEST_PIVOT * largest)
        corner, lower = np.linalg.cholesky(rest[np.ix_(chosen, chosen)]), lower[chosen]
        factor = np.block([[self.factor, np.zeros((len(self), len(chosen)))], [lower, corner]])
        return Basis(self.kernel, _joined(self.vectors, vectors[chosen]), np.ascontiguousarray(factor))

    @property
    def _largest_diagonal(self):
        return np.square(self.factor).sum(axis=1).max(initial=0.0)

    def map(self, largest_value):
        """Return the BasisMap for rows whose kernel values, with basis points and themselves, are at most so large."""
        return BasisMap(self.factor, largest_value, self.kernel.positive_definite)


@dataclass(frozen=True)
class BasisMap:
    """The map from kernel values of rows and basis points to features, with the methods of a `ColumnScaling`.

    Parameters
    ----------
    factor : ndarray of shape (m, m)
        L, the Cholesky factor of the kernel matrix of the basis.
    largest_value : float
        A bound of |K(b_j, x)| over all rows.
    is_projection : bool
        Whether the kernel is positive semidefinite, so that z(x) is the projection of φ(x) to the span of the basis.
        `largest_value` must then be a bound of K(x, x), too.
    """

    factor: Floats
    largest_value: float
    is_projection: bool = False
    is_centred: ClassVar[bool] = False
    maps_rows: ClassVar[bool] = True

    @cached_property
    def norm_bound(self):
        """A bound of |L⁻¹|² |k(x)|², to which rounding errors of a score <L⁻ᵀw, k(x)> are proportional."""
        return float(np.square(self._inverse).sum()) * len(self.factor) * self.largest_value**2

    @cached_property
    def largest_square(self):
        """A bound of |L⁻¹k(x)|²: that is at most K(x, x) if it is a projection, but for rounding errors of k(x)."""
        if not self.is_projection:
            return self.norm_bound
        return min(self.norm_bound, (self.largest_value**0.5 + _VALUE_ROUNDING * self.norm_bound**0.5) ** 2)

    def forward(self, sums, constant):
        """Return L⁻¹s for sums over rows (k, 1); the constant column is the last if `constant` is not zero."""
        mapped = solve_triangular(self.factor, sums[:-1], lower=True)
        return np.append(mapped, constant * sums[-1]) if constant else mapped

    def adjoint(self, w, constant):
        """Return L⁻ᵀw, the coefficients of kernel values, and last the number that is added to each score."""
        coefficients = solve_triangular(self.factor, w[: len(self.factor)], lower=True, trans="T")
        return np.append(coefficients, constant * w[-1] if constant else 0.0)

    def rows(self, rows):
        """Return rows of features from rows of kernel values."""
        features = self.features(rows.values.astype(np.float64))
        features.flags.writeable = False
        return DenseRows(features, rows.constant)

    def features(self, values, out=None):
        """Return L⁻¹k of each row k of kernel values, in their precision; they are written to `out` if given.

        They are matrix products with the rows of L⁻¹, without the zeros right of its diagonal. BLAS's solution of
        triangular systems takes a tenth less time, but SciPy does not let other threads run meanwhile.
        """
        out = np.empty_like(values) if out is None else out
        inverse = self._single_inverse if values.dtype == np.float32 else self._inverse
        for row in range(0, len(values), _ROWS_PER_PRODUCT):
            rows = slice(row, row + _ROWS_PER_PRODUCT)
            for first in range(0, len(inverse), _FEATURES_PER_PRODUCT):
                last = min(first + _FEATURES_PER_PRODUCT, len(inverse))
                np.matmul(values[rows, :last], inverse[first:last, :last].T, out=out[rows, first:last])
        return out

    @cached_property
    def _inverse(self):
        return solve_triangular(self.factor, np.eye(len(self.factor)), lower=True)

    @cached_property
    def _single_inverse(self):
        return self._inverse.astype(np.float32)

    def weights_of_scaled(self, coef, intercept):
        """Return the weights of features and intercepts from coefficients of kernel values, one row per output."""
        return coef @ self.factor, intercept

    def weights_of_data(self, coef, intercept):
        """Return the coefficients of kernel values and intercepts from weights of features, one row per output."""
        return solve_triangular(self.factor, coef.T, lower=True, trans="T").T, intercept


def _independent(K, smallest_pivot):
    """Return the numbers of points, ascending, whose functions are independent, by pivoted Cholesky factorisation."""
    if not len(K):
        return np.arange(0)
    _, pivots, rank, _ = dpstrf(K, lower=1, tol=smallest_pivot)
    return np.sort(pivots[:rank] - 1)


def _joined(first, second):
    """Return the rows of two matrices, of which one may have no rows, as one matrix of the type of the second."""
    if not first.shape[0]:
        return second
    return sparse_vstack([first, second], format="csr") if issparse(second) else np.concatenate([first, second])
