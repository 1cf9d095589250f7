"""Dense rows of bytes with scaled columns, (x_j − centre_j) factor_j, computed when a row is read.

The data stay as they are: scaled values would take eight times the memory. The functions below are what `rows` calls
for them; everything else calls those of `rows`.
"""

from typing import NamedTuple

import numpy as np

from widemargin._runtime.compile import SUMS, compiled
from widemargin._runtime.simd import add_line, add_to_line


class ScaledRows(NamedTuple):
    """Rows of a C-ordered array, scaled by columns, and then a constant column if `constant` is not zero."""

    values: np.ndarray
    centre: np.ndarray
    factor: np.ndarray
    constant: float


def scaled_dot(rows, i, w):
    """Return <x_i, w>, the constant column included."""
    total = _scaled_sum(rows.values[np.uint64(i)], rows.centre, rows.factor, w)
    if rows.constant != 0.0:
        total += rows.constant * w[w.size - 1]
    return total


def scaled_axpy(rows, i, a, w):
    """Add a x_i to w in place, the constant column included."""
    x, centre, factor = rows.values[np.uint64(i)], rows.centre, rows.factor
    for j in range(x.size):
        w[j] += a * ((np.float64(x[j]) - centre[j]) * factor[j])
    if rows.constant != 0.0:
        w[w.size - 1] += a * rows.constant


def scaled_norm(rows, i):
    """Return |x_i|², the constant column included."""
    squares = _scaled_squares(rows.values[np.uint64(i)], rows.centre, rows.factor)
    return rows.constant * rows.constant + squares


def scaled_distance(rows, i, j, zeros):
    """Return |x_i − x_j|²."""
    return _scaled_squares_of_differences(rows.values[np.uint64(i)], rows.values[np.uint64(j)], rows.factor)


def scaled_lanes(rows, i, panel, sums):
    """Return sums + Σ_j x_ij panel[j], vectors that compiled loops keep in registers, the constant column included."""
    x = rows.values[np.uint64(i)]
    for j in range(x.size):
        sums = add_line(sums, (np.float64(x[j]) - rows.centre[j]) * rows.factor[j], panel, j)
    return add_line(sums, rows.constant, panel, panel.shape[0] - 1) if rows.constant != 0.0 else sums


def scaled_line_axpy(rows, i, steps, p, panel, zeros):
    """Add x_ij steps[p] to panel[j] for every j, the constant column included; `zeros` are those of its vectors."""
    x = rows.values[np.uint64(i)]
    for j in range(x.size):
        add_to_line(panel, j, (np.float64(x[j]) - rows.centre[j]) * rows.factor[j], steps, p, zeros)
    if rows.constant != 0.0:
        add_to_line(panel, panel.shape[0] - 1, rows.constant, steps, p, zeros)


@compiled(fastmath=SUMS)
def _scaled_sum(x, centre, factor, w):
    """Return Σ (x[j] − centre[j]) factor[j] w[j]."""
    total = 0.0
    for j in range(x.size):
        total += (np.float64(x[j]) - centre[j]) * factor[j] * w[j]
    return total


@compiled(fastmath=SUMS)
def _scaled_squares(x, centre, factor):
    """Return Σ ((x[j] − centre[j]) factor[j])²."""
    total = 0.0
    for j in range(x.size):
        total += ((np.float64(x[j]) - centre[j]) * factor[j]) ** 2
    return total


@compiled(fastmath=SUMS)
def _scaled_squares_of_differences(x, z, factor):
    """Return Σ ((x[j] − z[j]) factor[j])²."""
    total = 0.0
    for j in range(x.size):
        total += ((np.float64(x[j]) - np.float64(z[j])) * factor[j]) ** 2
    return total
