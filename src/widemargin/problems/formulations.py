"""The formulations of all learning tasks: solvers know these, not the tasks.

`DualQP`: one signed dual variable beta_i per row of X, each with a box constraint of its own,

    minimise   ½|X'beta|² + Σ_i [ ½ curvature_i beta_i² − target_i beta_i + epsilon_i |beta_i| ]
    over       lower_i <= beta_i <= upper_i

It is the dual of   minimise ½|w|² + Σ_i loss_i(<w, x_i>)   with, for the residual r = target_i − score,

    loss_i(r) = max over lower_i <= b <= upper_i of   b r − epsilon_i |b| − ½ curvature_i b²

and w = X'beta at the optimum. The maximising b is minus the derivative of the loss by the score. A loss is five numbers
per row, not a function, so that one compiled solver serves all losses:

    | loss                   | target | interval                          | curvature  | epsilon |
    |------------------------|--------|-----------------------------------|------------|---------|
    | hinge                  | sign   | 0 .. cost, mirrored by the sign   | 0          | 0       |
    | squared hinge          | sign   | 0 .. ∞, mirrored by the sign      | 1/(2 cost) | 0       |
    | ε-insensitive          | y      | −cost .. cost                     | 0          | ε       |
    | squared ε-insensitive  | y      | −∞ .. ∞                           | 1/(2 cost) | ε       |
    | one-class              | 0      | 0 .. weight                       | 0          | 0       |
    | log loss, entropy 1    | 0      | 0 .. cost, mirrored by the sign   | 0          | 0       |

A row of zero cost has the interval 0 .. 0 and no influence.

A sixth number of the whole problem, `entropy`, adds entropy H_i(b) to what each loss maximises over b. H_i is that of
a coin which divides the interval at b: with the distances to its ends, a = b − lower_i and c = upper_i − b,

    H_i(b) = −a log(a / (a + c)) − c log(c / (a + c))

This makes the loss smooth, and the dual variables never reach a bound. Without curvature and epsilon, the loss and the
maximising b are, with e = exp(−|r| / entropy) and the bound on the side of r (upper if r > 0, lower if r < 0),

    loss = bound r + entropy (upper − lower) log(1 + e),        |bound − b| = (upper − lower) e / (1 + e)

which is the logistic loss cost log(1 + exp(−sign score)) for the numbers in the table.

With an intercept b that is not penalised, the scores are <w, x_i> + b and the dual variables have a fixed sum:

    minimise   ½|w|² + dual_sum b + Σ_i loss_i(<w, x_i> + b)        dual constraint   Σ_i beta_i = dual_sum

`dual_sum` is 0 but for one-class machines (`FixedSumQP`). There the objective is negative, or 0 at w = 0.

`KernelQP`: signed dual variables beta_t, each of which belongs to a row of the kernel matrix K. They are divided into
groups g, and the sum of each group is fixed by a feasible starting point,

    minimise   ½ beta'K beta + p'beta
    over       lower_t <= beta_t <= upper_t,   Σ_{t in g} beta_t = Σ_{t in g} start_t

The gradient is F = K beta + p. At the optimum each group has an offset r_g, with F_t = r_g for every dual variable
strictly between its bounds, F_t >= r_g at its lower and F_t <= r_g at its upper bound. For any feasible beta and any
offsets

    gap = Σ_t max over lower_t <= b <= upper_t of (beta_t − b)(F_t − r_g)

is the difference between the primal objective at (beta, r) and the dual objective −½ beta'K beta − p'beta.

    | problem   | dual variables             | p             | interval                        | groups           |
    |-----------|----------------------------|---------------|---------------------------------|------------------|
    | C-SVC     | one per row                | −sign         | 0 .. cost, mirrored by the sign | one              |
    | ν-SVC     | one per row                | 0             | 0 .. weight, mirrored           | + rows, − rows   |
    | one-class | one per row                | 0             | 0 .. weight                     | one              |
    | ε-SVR     | two per row: above, below  | −y + ε, −y − ε | 0 .. cost, −cost .. 0           | one              |
    | ν-SVR     | two per row                | −y, −y        | 0 .. cost, −cost .. 0           | above, below     |
"""

import math
import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from widemargin.data.matrix import Matrix
from widemargin.kernels.rows import KernelRows
from widemargin.problems.magnitudes import check_mean_risk, check_rows, largest_decrease

_SPREAD_OF_SCORES = 1.0 / 16.0  # relative to the product of the norms of weights and rows
_ZERO_OBJECTIVE = 1e-8  # relative to what the objective would be if no rows cancelled


class Intercept(Enum):
    """The kinds of intercept b, the number added to all scores."""

    NONE = "none"
    PENALISED = "penalised"  # b is the weight of a constant column, and its square is part of |w|²
    FREE = "free"  # not penalised


@dataclass(frozen=True)
class DualQP:
    """A problem with one signed dual variable per row of X; the formulas are those of this module.

    All arrays have n_rows elements. With `free_intercept` the scores of the losses are <w, x_i> + b, where b is not
    penalised, and the dual variables must sum to `dual_sum`. With an `entropy`, curvature and epsilon must be 0.

    Raises
    ------
    ValueError
        If `dual_sum` is not 0 although the intercept is not free, or losses are not hinges; or if the entropy is not
        a nonnegative number.
    """

    X: Matrix
    target: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    curvature: np.ndarray
    epsilon: np.ndarray
    free_intercept: bool = False
    dual_sum: float = 0.0
    entropy: float = 0.0

    def __post_init__(self):
        if self.dual_sum != 0.0 and (self.entropy or self.is_squared or not self.free_intercept):
            raise ValueError(f"dual_sum={self.dual_sum} needs an intercept that is not penalised, and hinge losses.")
        if not 0.0 <= self.entropy < math.inf:
            raise ValueError(f"entropy must be finite and not negative, got {self.entropy}.")

    def check(self, squared_norms):
        """Raise ValueError if numbers of the problem, with these |x_i|², are not valid or may overflow."""
        check_rows(self, squared_norms)

    def checksum(self):
        """Return a number that differs if targets or costs of rows differ."""
        arrays = self.target, self.lower, self.upper, self.curvature, self.epsilon
        return checksum_of(*arrays, *(np.float64(one) for one in (self.dual_sum, self.entropy) if one))

    @cached_property
    def is_squared(self):
        """Whether losses are quadratic, at least in a part of their range."""
        return bool((self.curvature > 0.0).any())

    @cached_property
    def is_made_of_hinges(self):
        """Whether the losses are sums of hinges max(0, z), or all sums of squared hinges max(0, z)².

        `RowRisk` and `SmoothedRisk` require it. Huber's loss, which is quadratic near zero and linear farther away, is
        neither: it has a curvature and finite bounds. Nor is a loss with an entropy.
        """
        if self.entropy:
            return False
        if not self.is_squared:
            return True
        has_cost = (self.lower < 0.0) | (self.upper > 0.0)
        is_squared = self.curvature[has_cost] > 0.0
        if not is_squared.any():
            return True
        bounds = np.concatenate([self.lower[has_cost], self.upper[has_cost]])
        return bool(is_squared.all() and ((bounds == 0.0) | np.isinf(bounds)).all())

    @property
    def has_both_sides(self):
        """Whether some rows have losses that decrease with their scores, and some have losses that increase."""
        return bool((self.upper > 0.0).any() and (self.lower < 0.0).any())

    @cached_property
    def first_weights(self):
        """Weights to start from: None for zero, or with a `dual_sum` X'beta for the beta of `trivial_bound`."""
        return self.X.combine(self.trivial_bound[0]) if self.dual_sum else None

    @cached_property
    def score_unit(self):
        """The size of differences of scores: 1, that of the targets, or an estimate at `first_weights` w.

        Norms of w and of rows bound scores; their differences are about a sixteenth of that, where they were measured.
        """
        if not self.dual_sum:
            return 1.0
        w = self.first_weights
        unit = _SPREAD_OF_SCORES * math.sqrt(float(w @ w) * self._mean_square())
        return unit if 0.0 < unit < math.inf else 1.0

    def _mean_square(self):
        """Return the mean of |x_i|², each row counted by its upper bound."""
        return float(self.upper @ self.X.row_squares()) / float(self.upper.sum())

    @cached_property
    def lower_bound(self):
        """A lower bound of the objective: 0, unless there is a `dual_sum`."""
        return -largest_decrease(self, self.X.row_squares()) if self.dual_sum else 0.0

    @property
    def trivial_bound(self):
        """Feasible dual variables, the same fraction of the upper bound of each row, and `lower_bound`."""
        if not self.dual_sum:
            return np.zeros(self.X.n_rows), 0.0
        return np.minimum((self.dual_sum / float(self.upper.sum())) * self.upper, self.upper), self.lower_bound

    @cached_property
    def objective_scale(self):
        """An objective of at most this size counts as zero: the gap is relative to this, if the objective is smaller.

        It is 0 unless there is a `dual_sum`: then the optimum is zero if the origin is among the rows.
        """
        return -_ZERO_OBJECTIVE * self.lower_bound

    def scaled(self, factor):
        """Return the problem with all costs multiplied by a factor."""
        if factor == 1.0:
            return self
        bounds = {"lower": factor * self.lower, "upper": factor * self.upper}
        return replace(self, **bounds, curvature=self.curvature / factor, dual_sum=factor * self.dual_sum)

    def of_rows(self, chosen, X):
        """Return the problem of a sample of the rows; `X` holds the chosen rows.

        Costs are multiplied by n_rows / n_chosen, so that the sum of the losses estimates that of the whole problem.
        """
        factor = len(self.target) / max(1, len(chosen))
        return type(self)(
            X,
            target=self.target[chosen],
            lower=factor * self.lower[chosen],
            upper=factor * self.upper[chosen],
            curvature=self.curvature[chosen] / factor,
            epsilon=self.epsilon[chosen],
            free_intercept=self.free_intercept,
            dual_sum=self._dual_sum_of(factor * self.upper[chosen]) if self.dual_sum else 0.0,
            entropy=self.entropy,
        )

    def _dual_sum_of(self, upper):
        """Return a `dual_sum` for other upper bounds: the same fraction of their sum."""
        return self.dual_sum * float(upper.sum()) / float(self.upper.sum()) if self.dual_sum else 0.0

    @property
    def intercept(self):
        """Whether there is an intercept, and whether it is penalised."""
        if self.free_intercept:
            return Intercept.FREE
        return Intercept.PENALISED if self.X.constant else Intercept.NONE


class FixedSumQP(DualQP):
    """A DualQP whose `dual_sum` is not 0, that of a one-class machine: targets are 0, lower bounds too."""


def checksum_of(*arrays):
    """Return a checksum of the bytes of arrays."""
    check = 0
    for array in arrays:
        check = zlib.crc32(np.ascontiguousarray(array), check)
    return check


def zeros_for(X):
    """Return a zero for each row of X; without memory of its own if the rows are on disk."""
    return np.zeros(X.n_rows) if X.is_in_memory else np.broadcast_to(0.0, X.n_rows)


def squared_loss_bound(cost):
    """Return the bound of the dual variables of a squared loss: ∞, or 0 for rows of zero cost."""
    is_positive = cost > 0.0
    return np.full(len(cost), np.inf) if is_positive.all() else np.where(is_positive, np.inf, 0.0)


def squared_loss_curvature(cost):
    """Return the curvature 1/(2 cost) of the dual of a squared loss; 0 for rows of zero cost, whose beta is 0."""
    return np.divide(0.5, cost, out=np.zeros_like(cost), where=cost > 0.0)


class KernelFunction(NamedTuple):
    """The decision function Σ_i coef_i K(x_i, x) + intercept; `facts` are the numbers that LIBSVM prints, by name."""

    coef: np.ndarray
    intercept: float
    facts: dict


@dataclass(frozen=True)
class RiskProblem:
    """Minimise ½|w|² + R(X w), where the risk R is a convex, nonnegative function of the scores; see `row_risk`."""

    X: Matrix
    risk: Any
    lower_bound = objective_scale = 0.0  # as those of DualQP

    @property
    def scale(self):
        """The factor by which the risk multiplies a mean loss."""
        return self.risk.scale

    @property
    def largest_slope(self):
        """An upper bound of Σ |c_i| of every subgradient c of the risk."""
        return self.risk.slopes_per_scale * self.risk.scale

    def check(self, squared_norms):
        """Raise ValueError if numbers of the problem, with these |x_i|², are not valid or may overflow."""
        check_mean_risk(self.risk.scale, squared_norms)

    def checksum(self):
        """Return a number that differs if rows are labelled otherwise: that of the subgradient at zero."""
        return checksum_of(self.risk.subgradient(np.zeros(self.X.n_rows))[1])


def unit_one(offsets):
    """Return 1, the margin of a C-SVC."""
    return 1.0


@dataclass(frozen=True)
class KernelQP:
    """A problem in dual variables of kernel rows; the formulas are those of this module.

    `row[t]` is the kernel row of dual variable t; group g has the dual variables ends[g] <= t < ends[g + 1]; `start`
    is feasible. `to_function(problem, solution)` returns the KernelFunction of a solution. `offset_order` is 1 if the
    offsets of two groups must descend, r_0 >= r_1, which is a nonnegative margin; −1 if they must ascend, and 0
    otherwise. `violation_unit(offsets)` returns the unit of KKT violations: the margin r of a ν-SVC, |ρ| of a one-class
    SVM, 1 otherwise. `allows_scaling` says whether the decision function may be multiplied by a factor near 1.
    `divides_by_margin` says whether the model is the decision function divided by its margin, in which case a function
    that is zero everywhere is no model.
    """

    K: KernelRows
    row: np.ndarray
    linear: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    ends: np.ndarray
    start: np.ndarray
    to_function: Callable
    offset_order: int = 0
    violation_unit: Callable = unit_one
    allows_scaling: bool = False
    divides_by_margin: bool = False

    def checksum(self):
        """Return a number that differs if targets or costs of rows differ."""
        return checksum_of(self.row, self.linear, self.lower, self.upper, self.ends, self.start)

    def model(self, solution):
        """Return the KernelFunction of a solution."""
        return self.to_function(self, solution)


def feasible_start(upper, total):
    """Return numbers 0 <= a_t <= upper_t with the given sum: the first ones at their upper bounds, the last ones 0."""
    sum_before = np.zeros(len(upper))
    np.cumsum(upper[:-1], out=sum_before[1:])
    return np.minimum(np.maximum(total - sum_before, 0.0), upper)
