"""The data of the active-set Newton method: the terms of the losses, the current point, and work arrays.

Each row of a DualQP has one term, or two if it has a tube (epsilon > 0), one for each side of the tube. Term l has a
dual variable alpha_l between lower_l and upper_l, and the residual z_l = target_l − (<w, x_l> + b), where target_l is
the target of the row minus epsilon for the upper side of the tube, and plus epsilon for the lower side.
"""

from typing import NamedTuple

import numpy as np

from widemargin._runtime.compile import SUMS, compiled

INTERCEPT, INTERCEPT_STEP = 0, 1  # positions in State.scalars


class Terms(NamedTuple):
    """The terms of the losses: row number, bounds, curvature, target, and |x_l|²."""

    row: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    curvature: np.ndarray
    target: np.ndarray
    squared_norm: np.ndarray


class State(NamedTuple):
    """The current point, and the work arrays of a Newton step.

    For each term: the dual variable `alpha`, the residual `z`, the proximal `centre`, `total_curvature` = curvature +
    delta, whether the term `is_free` and whether it `was_free` before the step, and `t`, the scores of a direction or
    the right-hand side and solution of a linear system. `free` lists the free terms. For each row: `scores`. For each
    column: the weights `w`, the gradient `g` = w − Σ alpha_l x_l, the direction `d`, and `mean_row`, the weighted mean
    of the rows of free terms. `matrix`, `right_sides` and `scale` hold the linear system. `scalars[INTERCEPT]` is the
    intercept, `scalars[INTERCEPT_STEP]` its change in a step.
    """

    w: np.ndarray
    alpha: np.ndarray
    z: np.ndarray
    centre: np.ndarray
    total_curvature: np.ndarray
    is_free: np.ndarray
    was_free: np.ndarray
    t: np.ndarray
    free: np.ndarray
    scores: np.ndarray
    g: np.ndarray
    d: np.ndarray
    mean_row: np.ndarray
    matrix: np.ndarray
    right_sides: np.ndarray
    scale: np.ndarray
    scalars: np.ndarray


def new_state(values, terms):
    """Return a State with all numbers zero; `values` are the rows as an array."""
    (n_rows, n_columns), n_terms = values.shape, len(terms.row)
    size = max(1, min(n_columns, n_terms))
    alpha, z, centre, total_curvature, t = np.zeros((5, n_terms))
    w, g, d, mean_row = np.zeros((4, n_columns))
    return State(
        w=w, alpha=alpha, z=z, centre=centre, total_curvature=total_curvature, t=t,
        is_free=np.zeros(n_terms, np.bool_), was_free=np.zeros(n_terms, np.bool_), free=np.zeros(n_terms, np.int64),
        scores=np.zeros(n_rows), g=g, d=d, mean_row=mean_row,
        matrix=np.zeros((size, size)), right_sides=np.zeros((2, size)), scale=np.zeros(size), scalars=np.zeros(2),
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
