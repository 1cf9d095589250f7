"""The data of the active-set Newton method: the terms of the losses, the current point, and work arrays.

Each row of a DualQP has one term, or two if it has a tube (epsilon > 0), one for each side of the tube. Term l has a
dual variable alpha_l between lower_l and upper_l, and the residual z_l = target_l − (<w, x_l> + b), where target_l is
the target of the row minus epsilon for the upper side of the tube, and plus epsilon for the lower side.
"""

from typing import NamedTuple

import numpy as np

from widemargin._runtime.compile import SUMS, compiled

EVALUATE, BEGIN, MINIMISE, CORRECT = 0, 1, 2, 3  # phases of an outer iteration

# Positions in State.counts: the phase, Newton steps and corrections in it, whether the last step was full or
# negligible, whether no further step is possible, whether the optimality conditions hold up to rounding; and, of all
# iterations, whether a point has been kept as the best one, and the numbers of Newton steps and of outer iterations.
PHASE, N_STEPS, N_CORRECTIONS, IS_SETTLED, IS_STUCK, IS_OPTIMAL, HAS_BEST, N_STEPS_IN_ALL, N_ITERATIONS = range(9)

# Positions in State.scalars: the intercept and its change in a step; the sum of the dual variables less DUAL_SUM; delta
# relative to the mean |x_l|², this mean, and the smallest delta; the violation of the last outer iteration; the largest
# |target_l| and |x_l|²; the best objectives so far; the relative gap at which no further outer iteration is needed,
# below 0 if it ends only at full precision; and the sum that the dual variables must have if there is an intercept.
INTERCEPT, INTERCEPT_STEP, IMBALANCE, RELATIVE_DELTA, MEAN_SQUARED_NORM, MIN_DELTA = range(6)
LAST_VIOLATION, MAX_TARGET, MAX_SQUARED_NORM, BEST_PRIMAL, BEST_DUAL, SUFFICIENT_GAP, DUAL_SUM = range(6, 13)


class Rows(NamedTuple):
    """The rows as an array, and the same numbers by columns.

    Most rows are so short that loops over them are not worth vector instructions; loops over columns are.
    """

    values: np.ndarray
    columns: np.ndarray


class Terms(NamedTuple):
    """The terms of the losses: row number, bounds, curvature, target, and |x_l|²."""

    row: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    curvature: np.ndarray
    target: np.ndarray
    squared_norm: np.ndarray


class State(NamedTuple):
    """The current point, the best one so far, and the work arrays of a Newton step.

    For each term: the dual variable `alpha`, the residual `z`, the proximal `centre`, `total_curvature` = curvature +
    delta, the `unclipped` dual variable and its `slope` along a direction, whether the term `is_free`, and `t`, the
    scores of a direction or the right-hand side and solution of a linear system. `free` lists the free terms. For each
    row: `scores`. For each column: the weights `w`, the gradient `g` = w − Σ alpha_l x_l, the direction `d`, and
    `mean_row`, the weighted mean of the rows of free terms. `products`, `matrix`, `right_sides` and `scale` hold the
    linear system. `scalars` and `counts` hold numbers, at the positions above.
    """

    w: np.ndarray
    alpha: np.ndarray
    z: np.ndarray
    centre: np.ndarray
    total_curvature: np.ndarray
    unclipped: np.ndarray
    slope: np.ndarray
    is_free: np.ndarray
    t: np.ndarray
    free: np.ndarray
    scores: np.ndarray
    g: np.ndarray
    d: np.ndarray
    mean_row: np.ndarray
    products: np.ndarray
    matrix: np.ndarray
    right_sides: np.ndarray
    scale: np.ndarray
    best_w: np.ndarray
    best_alpha: np.ndarray
    scalars: np.ndarray
    counts: np.ndarray


def new_state(values, terms, *, by_lapack):
    """Return a State with all numbers zero; `values` are the rows as an array. LAPACK needs no work arrays."""
    (n_rows, n_columns), n_terms = values.shape, len(terms.row)
    size = 1 if by_lapack else max(1, min(n_columns, n_terms))
    shape = (1, 1) if by_lapack else (n_columns + 1, max(n_terms, n_columns))
    alpha, z, centre, total_curvature, unclipped, slope, t, best_alpha = np.zeros((8, n_terms))
    w, g, d, mean_row, best_w = np.zeros((5, n_columns))
    return State(
        w=w, alpha=alpha, z=z, centre=centre, total_curvature=total_curvature, unclipped=unclipped, slope=slope, t=t,
        is_free=np.zeros(n_terms, np.bool_), free=np.zeros(n_terms, np.int64), scores=np.zeros(n_rows),
        g=g, d=d, mean_row=mean_row, products=np.empty(shape),
        matrix=np.zeros((size, size)), right_sides=np.zeros((2, size)), scale=np.zeros(size),
        best_w=best_w, best_alpha=best_alpha, scalars=np.zeros(13), counts=np.zeros(9, np.int64),
    )  # fmt: skip


@compiled(fastmath=SUMS)
def dot(x, y):
    """Return <x, y>."""
    total = 0.0
    for j in range(x.size):
        total += x[j] * y[j]
    return total


@compiled
def axpy(factor, x, y):
    """Add factor x to y in place."""
    for j in range(x.size):
        y[j] += factor * x[j]


@compiled
def set_scores(columns, w, scores):
    """Set the scores of all rows."""
    scores[:] = 0.0
    for j in range(w.size):
        axpy(w[j], columns[j], scores)


@compiled
def combine(columns, row, alpha, coefficients, v):
    """Set v = Σ_l alpha_l x_l; the coefficients of rows are work space."""
    coefficients[:] = 0.0
    for i in range(row.size):
        coefficients[row[i]] += alpha[i]
    for j in range(v.size):
        v[j] = dot(columns[j], coefficients)
