"""The rows that a kernel machine is fitted to: their kernel matrix, gamma, folds and blocks of them."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.utils import check_random_state

from widemargin.data.blocks.row_blocks import RowBlocks
from widemargin.data.products import row_sums, squared_norms
from widemargin.kernels.expansion import kernel_scores
from widemargin.kernels.functions import Kernel
from widemargin.kernels.rows import KernelRows, MatrixPart, submatrix
from widemargin.kernels.single_rows import put_rows
from widemargin.models.sklearn_private import _num_samples

_NUMBERS_PER_BLOCK = 1 << 22  # float64 numbers that prediction holds at a time, besides its result: 32 MB
_MAX_FEATURES_OF_SHORT_ROWS = 100  # whose kernel values compiled loops compute; of longer rows BLAS does
_N_FOLDS = 5  # of the cross-validation for probabilities, as in LIBSVM
_MIN_ROWS_FOR_SINGLE = 2000  # rows above which kernel values are computed in single precision, if they may be
_MIN_TOL_FOR_SINGLE = 1e-4  # the smallest tolerance for which single precision is accurate enough
_SINGLE_ROUNDING = 6e-8  # relative rounding error of kernel values in single precision
_MAX_ROWS_FOR_DOUBLE = 10_000  # up to which a large C asks for double precision
_MIN_VARIANCE = 1e-290  # of all features together, for gamma="scale"; smaller variances count as zero


@dataclass
class Reused:
    """What fits of one model to the same rows share.

    `submatrices` are the KernelRows of subsets of the rows, such as those of two classes, by row numbers. `checked` are
    the arguments after their checks in the first fit, None before it. `sums` are those that the first submatrices are
    to remember, if the fits continue others. `new` returns an array of a shape and dtype, for a copy. `bound` is an
    upper bound of the absolute kernel values, if one is known: to find one takes as long as a copy. `certify` says
    whether somebody asks for the duality gaps of the fits.
    """

    new: Callable = np.empty
    bound: float | None = None
    certify: bool = True
    submatrices: dict = field(default_factory=dict)
    checked: tuple | None = None
    sums: list = field(default_factory=list)

    def matrix(self, rows, make):
        """Return the KernelRows of these rows, make() when they are first asked for."""
        subset = rows.tobytes()
        if subset not in self.submatrices:
            made = self.submatrices[subset] = make()
            if self.sums:
                made.remember(*self.sums.pop(0))
        return self.submatrices[subset]


@dataclass(frozen=True)
class TrainingRows:
    """The rows that a model is fitted to, their kernel and their weights; rows of weight zero have no influence.

    `X` is the kernel matrix if the kernel is "precomputed", which it also is for a callable kernel whose values are all
    computed in advance. `prepared` is X in the form in which the kernel is computed, made once for all problems.
    `shared` is the whole kernel matrix if several small problems share it. `reused` is what several fits share.
    """

    kernel: Kernel
    X: Any
    prepared: Any
    shared: Any
    weight: np.ndarray
    dtype: type
    n_jobs: int | None
    reused: Reused | None = None

    @property
    def present(self):
        """The numbers of the rows of positive weight, ascending."""
        return np.flatnonzero(self.weight)

    def matrix(self, rows):
        """Return the KernelRows of these rows, which are given by numbers; all rows, in ascending order."""
        are_all = len(rows) == len(self.weight)
        if self.reused is not None:
            return self.reused.matrix(rows, lambda: self._part(None if are_all else rows, self.reused.new))
        if self.shared is not None:
            return self.shared.of_rows(rows, self.n_jobs)
        options = {"subset": None if are_all else rows, "dtype": self.dtype, "n_jobs": self.n_jobs}
        return KernelRows(self.kernel, self.prepared, **options)

    def values_of(self, rows, chosen):
        """Return the kernel values of a few rows with all of some rows, and K(x, x) of these.

        `chosen` are positions among the rows, ascending, as uint64. For short rows one compiled loop takes less time
        than to prepare KernelRows.
        """
        if not self._has_short_rows:
            K = self.matrix(rows)
            out = np.empty((len(chosen), len(rows)), K.dtype)
            K.fill(chosen.view(np.int64), K.columns(), out, np.arange(len(chosen)))
            return out, K.diagonal
        X, norms = self.prepared.X[rows], self.prepared.norms[rows]
        out, products = np.empty((len(chosen), len(rows)), self.prepared.dtype), np.empty(len(rows), X.dtype)
        features = np.ascontiguousarray(X.T)
        put_rows(features, norms.astype(X.dtype), self.kernel.numbers, chosen, products, out)
        return out, self.kernel.diagonal(norms)

    @property
    def _has_short_rows(self):
        """Whether kernel values are computed from arrays of few features, for each problem by itself."""
        if self.shared is not None or self.reused is not None or not self.kernel.from_products:
            return False
        return isinstance(self.prepared.X, np.ndarray) and self.X.shape[1] <= _MAX_FEATURES_OF_SHORT_ROWS

    def _part(self, rows, new):
        """Return the KernelRows of a copy of a part of a precomputed kernel matrix; of all of it, if `rows` is None."""
        values = self.X if rows is None else submatrix(self.X, rows, rows, new)
        return KernelRows(self.kernel, values, n_jobs=self.n_jobs, bound=self.reused.bound, new=new)

    def sums(self, support, coefficients, rows, **options):
        """Return `kernel_sums` of some rows, for a model whose support vectors are the rows `support`."""
        options["n_jobs"] = self.n_jobs
        if self.kernel.name == "precomputed":
            return kernel_sums(self.kernel, None, coefficients, self.X[np.ix_(rows, support)], **options)
        return kernel_sums(self.kernel, self.X[support], coefficients, self.X[rows], **options)


class SharedMatrix:
    """The kernel matrix of all rows, of which several problems take parts.

    Its rows and columns are sorted by a key such as the class, so that those of a problem are near to each other.

    Parameters
    ----------
    kernel : Kernel
    prepared : PreparedRows
    key : ndarray or None
        A number for each row to sort by; None leaves the rows in their order.
    n_jobs : int or None
    """

    def __init__(self, kernel, prepared, key, n_jobs):
        n_rows = prepared.shape[0]
        order = np.arange(n_rows) if key is None else np.argsort(key, kind="stable")
        rows = KernelRows(kernel, prepared, subset=order, dtype=np.float64, n_jobs=n_jobs)
        self._values, self._place = rows.whole(), np.empty(n_rows, np.int64)
        self._bound, self._diagonal = rows.bound, rows.diagonal
        self._place[order] = np.arange(n_rows)

    def of_rows(self, rows, n_jobs):
        """Return the KernelRows of some rows."""
        return MatrixPart(self._values, self._place[rows], self._bound, self._diagonal, n_jobs)


def kernel_sums(kernel, support, coefficients, Z, *, outcome=None, **options):
    """Return `kernel_scores`, which are zero if there is no support vector."""
    if coefficients.shape[1]:
        return kernel_scores(kernel, support, coefficients, Z, outcome=outcome, **options)
    ends = options.get("ends")
    blocks = () if ends is None else (len(ends) - 1,)
    zeros = np.zeros((_num_samples(Z), *blocks, len(coefficients)))
    return zeros if outcome is None else outcome(zeros)


def kernel_values(function, A, B):
    """Return function(A, B) of a callable kernel as an array of float64, or of float32 if the function returns that.

    Raises
    ------
    ValueError
        If the shape is not (rows of A, rows of B), or a value is not finite.
    """
    values = function(A, B)
    values = values.toarray() if issparse(values) else np.asarray(values)
    if values.dtype != np.float32:
        values = np.asarray(values, dtype=np.float64)
    shape = (_num_samples(A), _num_samples(B))
    if values.shape != shape:
        raise ValueError(f"The callable kernel must return shape {shape}, a row per row of A; got {values.shape}.")
    if not np.isfinite(values).all():
        raise ValueError("The callable kernel returned NaN or infinity; every kernel value must be finite.")
    return values


def block_dtype(kernel, tol, n_rows, cost=1.0):
    """Return the precision in which kernel values are computed and cached.

    Single precision halves the time and doubles the number of rows that the cache holds. Its relative rounding error
    of about 1e-7 changes the gradient by less than LIBSVM's default tolerance of 1e-3, but not by less than tolerances
    below 1e-4. For few rows the time does not matter. If most dual variables are as large as `cost`, and rounding
    errors of random signs add up to more than the tolerance, up to 10,000 rows are computed in double precision too:
    the rounded matrix would not be positive definite enough for the solver to converge soon. Only "rbf" is computed in
    single precision: values of linear and polynomial kernels have any size, and their matrices have a low rank, so that
    rounding makes them indefinite and a solver may not converge.
    """
    is_single = kernel.name == "rbf" and tol >= _MIN_TOL_FOR_SINGLE and n_rows > _MIN_ROWS_FOR_SINGLE
    if n_rows <= _MAX_ROWS_FOR_DOUBLE:
        is_single = is_single and _SINGLE_ROUNDING * cost * n_rows**0.5 <= tol
    return np.float32 if is_single else np.float64


def gamma_value(gamma, X, weight=None):
    """Return the number that the parameter gamma stands for.

    "auto" is 1 / n_features, "scale" is 1 / (n_features · variance of all values of X), or 1 if the variance is zero.
    Each row is counted by its weight, if weights are given, so that a row of weight two has the same effect as the row
    twice, on the kernel as on the losses.
    """
    if gamma == "auto":
        return 1.0 / X.shape[1]
    if gamma != "scale":
        return float(gamma)
    with np.errstate(over="ignore", invalid="ignore"):
        variance = _variance_of_blocks(X, weight) if isinstance(X, RowBlocks) else _variance(X, weight)
    return gamma_of_variance(variance, X.shape[1])


def gamma_of_variance(variance, n_features):
    """Return the number that gamma="scale" stands for, if all values have this variance."""
    if not np.isfinite(variance):
        raise ValueError(
            "The dual coefficients or intercepts are not finite: the variance of X, for gamma='scale', is not. "
            "Scale the features, or set gamma."
        )
    return float(1.0 / (n_features * variance)) if n_features * variance > _MIN_VARIANCE else 1.0


def _variance(X, weight):
    """Return the variance of all values of X, zeros that a sparse X does not store included; weighted, if asked for."""
    if weight is None and not issparse(X):
        mean = X.sum(dtype=np.float64) / X.size
        deviation = np.subtract(X, mean, dtype=np.float64)  # the steps of X.var(), which takes twice as long
        return float((deviation * deviation).sum() / X.size)
    return weighted_moments(X, np.ones(X.shape[0]) if weight is None else weight)[1]


def weighted_moments(X, weight):
    """Return the mean and the variance of all values of an array, a CSR matrix or a RowBlocks, by weights of rows."""
    if isinstance(X, RowBlocks):
        return _moments_of_blocks(X, weight)
    total = weight.sum() * X.shape[1]
    if issparse(X):
        mean = weight @ row_sums(X) / total
        return float(mean), float(weight @ squared_norms(X) / total - mean**2)
    mean = weight @ X.sum(axis=1, dtype=np.float64) / total
    return float(mean), float(weight @ ((X - mean) ** 2).sum(axis=1) / total)


def _variance_of_blocks(blocks, weight):
    """Return `_variance` of row blocks; without weights, by the statistics of their columns if the files have them."""
    if weight is None and blocks.columns:
        mean, deviation = blocks.columns["mean"], blocks.columns["deviation"]
        return float(np.mean(deviation**2) + np.var(mean))
    return _moments_of_blocks(blocks, np.ones(len(blocks)) if weight is None else weight)[1]


def _moments_of_blocks(blocks, weight):
    found = []
    for (X, _), (start, stop) in zip(blocks, blocks.ends(), strict=True):
        here = weight[start:stop]
        if here.any():
            found.append((here.sum(), *weighted_moments(X, here)))
    return joined_moments(found)


def joined_moments(parts):
    """Return mean and variance of all values, from weight, mean and variance of each part of them."""
    weight, means, variances = np.array(parts).T
    share = weight / weight.sum()
    mean = share @ means
    return float(mean), float(share @ (variances + (means - mean) ** 2))


def n_rows_of(rows):
    """Return the number of rows, of row blocks too."""
    return len(rows) if isinstance(rows, RowBlocks) else _num_samples(rows)


def parts_of(rows, n_numbers):
    """Yield the rows in blocks of at most `_NUMBERS_PER_BLOCK` numbers, of which each row needs `n_numbers`."""
    if isinstance(rows, RowBlocks):
        for X, _ in rows:
            yield from parts_of(X, n_numbers)
        return
    n_rows = _num_samples(rows)
    step = max(1, _NUMBERS_PER_BLOCK // max(1, n_numbers))
    if n_rows <= step:
        yield rows
    else:
        yield from (rows[begin : begin + step] for begin in range(0, n_rows, step))


def folds_of(rows, label, random_state):
    """Return at most five folds of the rows, as arrays of row numbers; each class is divided evenly over the folds.

    If there are fewer than five rows, there are as many folds as rows.
    """
    random = check_random_state(random_state)
    shuffled = rows[random.permutation(len(rows))]
    by_class = shuffled[np.argsort(label[shuffled], kind="stable")]
    return [np.sort(by_class[fold::_N_FOLDS]) for fold in range(min(_N_FOLDS, len(rows)))]
