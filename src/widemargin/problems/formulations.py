"""The formulations into which every task is brought before a solver sees it.

`DualQP`: one signed dual variable beta_i per row of X, each with bounds of its own,

    minimise   ½|X'beta|² + Σ_i [ ½ curvature_i beta_i² − target_i beta_i + epsilon_i |beta_i| ]
    over       lower_i <= beta_i <= upper_i

It is the dual of   minimise ½|w|² + Σ_i loss_i(<w, x_i>)   with, for the residual r = target_i − score,

    loss_i(r) = max over lower_i <= b <= upper_i of   b r − epsilon_i |b| − ½ curvature_i b²

and w = X'beta at the optimum. A loss is five numbers per row, not a function, so one compiled solver serves all:

    | loss                   | target | interval                          | curvature  | epsilon |
    |------------------------|--------|-----------------------------------|------------|---------|
    | hinge                  | sign   | 0 .. cost, mirrored by the sign   | 0          | 0       |
    | squared hinge          | sign   | 0 .. ∞, mirrored by the sign      | 1/(2 cost) | 0       |
    | ε-insensitive          | y      | −cost .. cost                     | 0          | ε       |
    | squared ε-insensitive  | y      | −∞ .. ∞                           | 1/(2 cost) | ε       |

A row of zero cost has the interval 0 .. 0 and no influence.

`KernelQP`: signed dual variables beta_t, each belonging to a row of the kernel matrix K, in groups g whose sums are
fixed,

    minimise   ½ beta'K beta + p'beta
    over       lower_t <= beta_t <= upper_t,   Σ_{t in g} beta_t = Σ_{t in g} start_t

The gradient is F = K beta + p. At the optimum each group has an offset r_g, with F_t = r_g for every dual variable
strictly between its bounds, F_t >= r_g at its lower and F_t <= r_g at its upper bound. For any feasible beta and any
offsets

    gap = Σ_t max over lower_t <= b <= upper_t of (beta_t − b)(F_t − r_g)

is the distance between the primal objective at (beta, r) and the dual one, −½ beta'K beta − p'beta.

    | problem   | dual variables             | p             | interval                        | groups           |
    |-----------|----------------------------|---------------|---------------------------------|------------------|
    | C-SVC     | one per row                | −sign         | 0 .. cost, mirrored by the sign | one              |
    | ν-SVC     | one per row                | 0             | 0 .. weight, mirrored           | + rows, − rows   |
    | one-class | one per row                | 0             | 0 .. weight                     | one              |
    | ε-SVR     | two per row: above, below  | −y + ε, −y − ε | 0 .. cost, −cost .. 0           | one              |
    | ν-SVR     | two per row                | −y, −y        | 0 .. cost, −cost .. 0           | above, below     |
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, NamedTuple

import numpy as np

from widemargin.data.matrix import Matrix
from widemargin.kernels.rows import KernelRows


class Intercept(Enum):
    """What a problem says of its intercept b, the number added to all scores."""

    NONE = "none"
    PENALISED = "penalised"  # the weight of a constant column
    FREE = "free"  # not penalised


@dataclass(frozen=True)
class DualQP:
    """A problem with one signed dual variable per row of X; see the module's formulas.

    All arrays have n_rows numbers. With `free_intercept` the scores of the losses are <w, x_i> + b, where b is not
    penalised, and the dual variables must sum to zero.
    """

    X: Matrix
    target: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    curvature: np.ndarray
    epsilon: np.ndarray
    free_intercept: bool = False

    @property
    def intercept(self):
        """Whether there is an intercept, and whether it is penalised."""
        if self.free_intercept:
            return Intercept.FREE
        return Intercept.PENALISED if self.X.constant else Intercept.NONE


def scaled(problem, factor):
    """Return a DualQP with all costs multiplied by a factor."""
    if factor == 1.0:
        return problem
    bounds = {"lower": factor * problem.lower, "upper": factor * problem.upper}
    return replace(problem, **bounds, curvature=problem.curvature / factor)


def is_made_of_hinges(problem):
    """Return whether the losses of a DualQP are hinges, all linear beyond a corner or all quadratic.

    Solvers that work with a risk need that. Huber's loss, quadratic at first and linear beyond, is none of these.
    """
    costly = (problem.lower < 0.0) | (problem.upper > 0.0)
    curved = problem.curvature[costly] > 0.0
    if not curved.any():
        return True
    ends = np.concatenate([problem.lower[costly], problem.upper[costly]])
    return bool(curved.all() and ((ends == 0.0) | np.isinf(ends)).all())


def part_of(problem, chosen, X):
    """Return the DualQP of some rows, X, that stand for all: their costs are as many times larger as they are fewer."""
    factor = len(problem.target) / len(chosen)
    return DualQP(
        X,
        target=problem.target[chosen],
        lower=factor * problem.lower[chosen],
        upper=factor * problem.upper[chosen],
        curvature=problem.curvature[chosen] / factor,
        epsilon=problem.epsilon[chosen],
        free_intercept=problem.free_intercept,
    )


def within(cost, ceiling):
    """Return the ceiling where a row costs anything, and 0 where it does not."""
    return np.where(cost > 0.0, ceiling, 0.0)


def dual_curvature(cost):
    """Return 1/(2 cost), the curvature of a squared loss's dual; 0 for rows without cost, whose multiplier is 0."""
    return np.divide(0.5, cost, out=np.zeros_like(cost), where=cost > 0.0)


class KernelFunction(NamedTuple):
    """Σ_i coef_i K(x_i, x) + intercept, and numbers worth printing: those that LIBSVM prints, by its names."""

    coef: np.ndarray
    intercept: float
    facts: dict


@dataclass(frozen=True)
class RiskProblem:
    """½|w|² + R(X w), R a convex risk of the scores that is nowhere negative; see `row_risk`."""

    X: Matrix
    risk: Any


def all_offsets(offsets):
    """Return the offsets: all have a meaning."""
    return offsets


def one(offsets):
    """Return 1: decision values have that size, whatever the offsets."""
    return 1.0


def descending(offsets):
    """Return two offsets, or their mean twice if the first is below the second."""
    return offsets if offsets[0] >= offsets[1] else np.full(2, offsets.mean())


@dataclass(frozen=True)
class KernelQP:
    """A problem in multipliers of kernel rows; see the module's formulas.

    `row[t]` is the kernel row of multiplier t; group g has the multipliers ends[g] .. ends[g + 1]; `start` is
    feasible; `reading(problem, solution)` makes a KernelFunction of a solution. `admissible(offsets)` are the nearest
    offsets that have a meaning; `unit(offsets)` is the size of a decision value, in the units of F, at which rows
    count as correct; `stretches` says whether the function times a factor near 1 is as good a model, and `has_margin`
    whether the model is the function divided by its margin, so that a function of zero is none.
    """

    K: KernelRows
    row: np.ndarray
    linear: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    ends: np.ndarray
    start: np.ndarray
    reading: Callable
    admissible: Callable = all_offsets
    unit: Callable = one
    stretches: bool = False
    has_margin: bool = False

    def model(self, solution):
        """Return what a solution means: a KernelFunction."""
        return self.reading(self, solution)


def filled_up(capacity, total):
    """Return numbers from 0 to capacity, the first ones full, that sum to total."""
    before = np.concatenate([[0.0], np.cumsum(capacity)[:-1]])
    return np.clip(total - before, 0.0, capacity)
