"""Matrix and problems whose rows are on a cluster: what the client knows of them, and how solvers ask for the rest.

`DistributedMatrix` has the numbers that solvers read from a matrix, and a `place`, the `Group`, at which they call
functions of rows. `DistributedQP`, `PairProblem` and `ClassProblem` stand for the problem of each partition.
`GatheredMatrix` is for risks that need the scores of all rows at one place: it brings them to the client, eight bytes
for each row and pass.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse import issparse, vstack

from widemargin._runtime.place import HERE
from widemargin.data.blocks.placement import scaled_matrix
from widemargin.data.matrix import Matrix
from widemargin.data.stacked import StackedMatrix
from widemargin.distributed.intercept import best_intercept
from widemargin.distributed.partition import ROWS, THREADS
from widemargin.distributed.statements import (
    combination_of,
    even_weights,
    matrix_facts,
    matrix_of,
    matrix_on,
    norm_of,
    problem_facts,
    sample_of,
    scale_of,
    scores_of,
    stated,
    weighted_squares,
)
from widemargin.kernels.values import KernelValues
from widemargin.problems import magnitudes
from widemargin.problems.formulations import DualQP, RiskProblem

_MAX_RANGES = 64  # of the rows of a partition in memory, whose sums are added
_MAX_SAMPLE_VALUES = 1 << 24  # of the rows that the client fits first, as a warm start: about a hundred megabytes


class DistributedMatrix:
    """X in partitions on a cluster; the attributes are those of `Matrix`.

    Parameters
    ----------
    group : Group
    facts : list of RowFacts
        Of each partition.
    constant : float
        Value of the constant column; 0 without one.
    scaling : ColumnScaling, BasisMap or None
    memory_per_byte : float
        Of rows in files, and of kernel values: how many bytes of them are kept in memory, for each byte.
    made_by : tuple
        The function that makes the matrix of a partition, and its further arguments.
    """

    is_in_memory, most_problems = False, 16
    columns = values_or_none = None

    def __init__(self, group, facts, constant, scaling, memory_per_byte, made_by=(matrix_of,)):
        self.place, self.n_parts, self.constant, self.scaling = group, len(facts), float(constant), scaling
        self.n_rows, self.n_stored = sum(one.n_rows for one in facts), sum(one.n_stored for one in facts)
        self.n_features = self.width = facts[0].n_features
        self.n_columns = self.n_features + (self.constant != 0.0)
        self.is_sparse, self.source = any(one.is_sparse for one in facts), _Fingerprint(facts)
        function, *more = made_by
        self.parts = group.create(function, ROWS, self.constant, scaling, memory_per_byte, *more)
        self.ref, self._ends = self.parts.ref, np.cumsum([0, *(one.n_rows for one in facts)])
        self._facts = group.each_later(matrix_facts, self.parts, THREADS)

    @classmethod
    def on_basis(cls, group, facts, constant, basis, dtype, memory):
        """Return the matrix of the features of rows on a Basis, from kernel values of this type.

        `memory` are the bytes of all workers in which kernel values are kept.
        """
        n_points, norm = len(basis), max(group.each(norm_of, ROWS))
        largest_value = KernelValues(basis.kernel, basis.vectors, dtype).bound(np.array([norm]))
        facts = [one._replace(n_features=n_points, n_stored=one.n_rows * n_points, is_sparse=False) for one in facts]
        share = memory / max(1, sum(one.n_stored for one in facts) * np.dtype(dtype).itemsize)
        return cls(group, facts, constant, basis.map(largest_value), share, (matrix_on, basis, dtype))

    @property
    def is_wide(self):
        """Whether there are fewer rows than columns."""
        return self.n_rows < self.n_columns

    @property
    def is_centred(self):
        """Whether means are taken off the columns."""
        return self.scaling is not None and self.scaling.is_centred

    @property
    def longest_row(self):
        """Largest number of values of a row."""
        return max(one.longest_row for one in self._facts())

    @property
    def longest_sum(self):
        """Largest number of terms added sequentially in a sum over rows."""
        return max(one.longest_sum for one in self._facts()) + (self.n_parts - 1).bit_length()

    def longest_table_sum(self, n_outputs):
        """Return a bound of the number of terms added sequentially in a sum over rows for several outputs."""
        return int(np.diff(self._ends).max()) + self.n_parts + _MAX_RANGES

    @property
    def largest_norm(self):
        """The largest |x_i|²."""
        return max(one.largest_norm for one in self._facts())

    @property
    def largest_square(self):
        """As `largest_norm`, but without what rounding errors of scores add to it; see `StreamedMatrix`."""
        return max(one.largest_square for one in self._facts())

    @property
    def squared_lengths(self):
        """Mean of the squared number of stored values of a row."""
        return sum(one.squared_lengths for one in self._facts()) / max(1, self.n_rows)

    def squared_norms(self, n_jobs=None):
        """Return None: the norms of rows are where the rows are."""
        return

    def spread(self, W):
        """Return W: no columns are left out."""
        return W

    def kept(self, W):
        """Return W as an array: no columns are left out."""
        return W.toarray() if hasattr(W, "toarray") else W

    def sample(self, n_rows, seed):
        """Return a share and a seed, for `DistributedQP.of_rows`, and this matrix.

        The sample is fitted by the client, so that it must not be large.
        """
        most = _MAX_SAMPLE_VALUES / max(1.0, self.n_stored / max(1, self.n_rows))
        return (min(n_rows, most) / max(1, self.n_rows), seed), self


class _Fingerprint:
    """Words by which the rows are recognised when a fit goes on from a checkpoint."""

    def __init__(self, facts):
        self.fingerprint = f"{len(facts)} partitions, " + ", ".join(f"{one.n_rows}:{one.check:08x}" for one in facts)


class GatheredMatrix(DistributedMatrix):
    """X in partitions, whose scores are brought to the client, and whose coefficients are sent from there."""

    @classmethod
    def of(cls, matrix):
        """Return the GatheredMatrix of a DistributedMatrix."""
        made = cls.__new__(cls)
        vars(made).update(vars(matrix), group=matrix.place, place=HERE, n_parts=1)
        return made

    def squared_norms(self, n_jobs=None):
        """Return a bound of |x_i|² for all rows: the largest."""
        return np.broadcast_to(self.largest_norm, self.n_rows)

    def row_squares(self, n_jobs=None):
        """As `squared_norms`, but without what rounding errors of scores add to it; see `StreamedMatrix`."""
        return np.broadcast_to(self.largest_square, self.n_rows)

    def scores(self, w, n_jobs=None, out=None, likely=None):
        """Return X w, one number per row, in `out` if it is given."""
        found = self.group.each(scores_of, self.parts, np.asarray(w), THREADS)
        return np.concatenate(found, out=out)

    def combine(self, c, n_jobs=None):
        """Return X'c, one number per column."""
        parts = [np.ascontiguousarray(c[start:stop]) for start, stop in zip(self._ends, self._ends[1:], strict=False)]
        return self.group.total(combination_of, ROWS, self.parts, tuple(parts), THREADS)


@dataclass(frozen=True, eq=False)
class DistributedQP(DualQP):
    """The DualQP of each partition; the arrays of the fields are None here.

    A `dual_sum` is one of all rows: those of the partitions are 0.
    """

    parts: Any = None  # what stands for the problems
    facts: Any = None  # a function that returns the ProblemFacts of all partitions
    factor: float = 1.0  # by which costs are multiplied

    @classmethod
    def of(cls, X, statement):
        """State a problem on all partitions."""
        parts = X.place.create(stated, statement, ROWS, X)
        return cls._of_parts(X, parts, statement)

    @classmethod
    def _of_parts(cls, X, parts, kind, factor=1.0, dual_sum=None):
        """Return what stands for problems of the free intercept, entropy and dual sum of `kind`, or another sum."""
        X.place.factors[parts.ref.name] = factor
        facts, numbers = X.place.each_later(problem_facts, parts), (None, None, None, None, None)
        dual_sum = kind.dual_sum if dual_sum is None else dual_sum
        same = {"free_intercept": kind.free_intercept, "entropy": kind.entropy, "dual_sum": dual_sum}
        return cls(X, *numbers, **same, parts=parts, facts=facts, factor=factor)

    @property
    def ref(self):
        """How commands name the problem of a partition."""
        return self.parts.ref

    @property
    def is_squared(self):
        """Whether losses are quadratic, at least in a part of their range."""
        return any(one.is_squared for one in self.facts())

    @property
    def is_made_of_hinges(self):
        """Whether the losses are sums of hinges, or all sums of squared hinges."""
        return all(one.is_made_of_hinges for one in self.facts())

    @property
    def total_weight(self):
        """The sum of the weights of all hinges."""
        return math.fsum(one.weight for one in self.facts())

    is_sum_over_rows = True

    @cached_property
    def first_weights(self):
        """As in DualQP."""
        if not self.dual_sum:
            return None
        return self.X.place.total(even_weights, self, self.dual_sum / self.total_weight, THREADS)

    def _mean_square(self):
        return float(self.X.place.total(weighted_squares, self)) / self.total_weight

    @cached_property
    def lower_bound(self):
        """As in DualQP."""
        return -magnitudes.largest_decrease(self, np.array([self.X.largest_square])) if self.dual_sum else 0.0

    @property
    def trivial_bound(self):
        """As in DualQP; dual variables with a `dual_sum` are where the rows are, and here None."""
        return (None, self.lower_bound) if self.dual_sum else super().trivial_bound

    def scaled(self, factor):
        """Return the problem with all costs multiplied by a factor."""
        if factor == 1.0:
            return self
        parts = self.X.place.create(DualQP.scaled, self, factor)
        return self._of_parts(self.X, parts, self, factor * self.factor, factor * self.dual_sum)

    def of_rows(self, chosen, X):
        """Return the problem of a sample of the rows, in this process; `chosen` is what `sample` returned."""
        found = [one for one in self.X.place.each(sample_of, ROWS, self, *chosen) if one is not None]
        values, *arrays = zip(*found, strict=True)
        values = vstack(values, format="csr") if issparse(values[0]) else np.concatenate(values)
        target, lower, upper, curvature, epsilon = (np.concatenate(parts) for parts in arrays)
        factor = self.X.n_rows / max(1, len(target))
        numbers = target, factor * lower, factor * upper, curvature / factor, epsilon
        dual_sum = self.dual_sum * float((factor * upper).sum()) / self.total_weight if self.dual_sum else 0.0
        return DualQP(self._sampled_matrix(values), *numbers, self.free_intercept, dual_sum, self.entropy)

    def _sampled_matrix(self, values):
        """Return the matrix of a sample of the rows, from their values before any scaling, or from kernel values."""
        how, constant = self.X.scaling, self.X.constant
        if how is None:
            return Matrix(values, constant)
        if not how.maps_rows:
            return scaled_matrix(values, constant, how)
        return Matrix(how.features(values), constant)

    def best_intercept(self, w):
        """Return the minimiser of the losses at scores X w + b over b, the midpoint if there is an interval of them."""
        return best_intercept(self, w)

    def check(self, squared_norms):
        """Raise ValueError if numbers of the problem are not valid or may overflow."""
        facts, norm = self.facts(), math.sqrt(self.X.largest_norm)
        target, epsilon, bound, inverse_curvature = np.max([one.largest for one in facts], axis=0)
        with np.errstate(over="ignore"):
            at_zero = sum(one.objective_at_zero for one in facts) - self.lower_bound
            residual = target + self.entropy + epsilon + norm * np.sqrt(2.0 * at_zero)
            slope = max(bound, residual * inverse_curvature)  # of an infinite norm, too
            n_rows = self.X.n_rows
            magnitudes.check_magnitudes(n_rows * slope * norm, n_rows * slope * residual, slope, norm)

    def checksum(self):
        """Return a number that differs if targets or costs of rows differ."""
        return hash((self.dual_sum, *self.X.place.each(DualQP.checksum, self))) & 0xFFFFFFFF


@dataclass(frozen=True, eq=False)
class PartitionedRisk(RiskProblem):
    """The RiskProblem of each partition; the risk is the sum of theirs, and its field is None here."""

    parts: Any = None  # what stands for the problems
    C: float = 1.0  # the factor by which the risk multiplies a mean loss

    is_sum_over_rows = is_squared = False

    @property
    def ref(self):
        """How commands name the problem of a partition."""
        return self.parts.ref

    @property
    def scale(self):
        """The factor by which the risk multiplies a mean loss."""
        return self.C

    @property
    def largest_slope(self):
        """An upper bound of Σ |c_i| of every subgradient c of the risk: that of a mean over pairs."""
        return 2.0 * self.C

    def check(self, squared_norms):
        """Raise ValueError if numbers of the problem may overflow."""
        magnitudes.check_mean_risk(self.C, np.array([self.X.largest_norm]))

    def checksum(self):
        """Return a number that differs if rows have other targets, costs or queries."""
        return hash(tuple(self.X.place.each(RiskProblem.checksum, self))) & 0xFFFFFFFF


class PairProblem(PartitionedRisk):
    """The RiskProblem of each partition, for pairs of rows of the same query."""

    @classmethod
    def of(cls, X, statement):
        """State the problem on all partitions."""
        return cls(X, None, X.place.create(stated, statement, ROWS, X), statement.C)


class ClassProblem(PartitionedRisk):
    """The RiskProblem of each partition, for all classes at once: a sum over rows."""

    is_sum_over_rows = True

    @classmethod
    def of(cls, X, statement):
        """State the problem on all partitions."""
        parts = X.place.create(stated, statement, ROWS, X)
        return cls(StackedMatrix(X, len(statement.classes)), None, parts, float(X.place.total(scale_of, parts)))

    def as_risk(self, n_jobs=None):
        """Return the problem itself, as that of a `CrammerSinger` problem does."""
        return self
