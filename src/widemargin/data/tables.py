"""Scores of several weight vectors, and several weighted sums of rows, each in one pass over the rows.

    score_table    S = X W', a line of scores for each row of X, a column for each row w of W
    combine_table  C'X, a weight vector for each column of C; a row of X is read once for each nonzero entry of its line

Where scores are computed, 16 or 32 of them are kept in registers while a row is read once. Where rows are summed,
most lines of C have few nonzero entries.
"""

import numpy as np

from widemargin._runtime.compile import compiled
from widemargin._runtime.lanes import LANES, SHORT_LANES
from widemargin._runtime.simd import no_lanes, no_short_lanes, put_lanes
from widemargin.data.rows import row_axpy, row_lanes, row_prefetch

_ENTRIES_PER_BLOCK = 1 << 12  # of a table, among which those that are not zero are listed at a time


def panels_of(W):
    """Return weight vectors, the rows of W, as the columns of panels of LANES or SHORT_LANES columns.

    Missing columns of the last panel are zero.
    """
    panels, first = [], 0
    while first < len(W):
        width = LANES if len(W) - first > SHORT_LANES else SHORT_LANES
        panel = np.zeros((W.shape[1], width))
        panel[:, : len(W) - first] = W[first : first + width].T
        panels.append(panel)
        first += width
    return panels


def set_score_table(rows, panels, start, stop, out):
    """Set out[i] to the scores of row i, for start <= i < stop; `panels` are those of `panels_of`."""
    first = 0
    for panel in panels:
        width = panel.shape[1]
        set_scores = _set_many if width == LANES else _set_few
        set_scores(rows, panel, start, stop, np.empty((1, width)), first, out)
        first += width


@compiled
def _set_many(rows, panel, start, stop, line, first, out):
    """Set out[i, first + m] = Σ_j x_ij panel[j, m] for start <= i < stop, and every m for which out has a column.

    `line` is work space.
    """
    for i in range(start, stop):
        put_lanes(row_lanes(rows, i, panel, no_lanes(panel)), line, 0)
        _copy(line[0], out[np.uint64(i)], first)


@compiled
def _set_few(rows, panel, start, stop, line, first, out):
    """Do what `_set_many` does, for a panel of SHORT_LANES columns."""
    for i in range(start, stop):
        put_lanes(row_lanes(rows, i, panel, no_short_lanes(panel)), line, 0)
        _copy(line[0], out[np.uint64(i)], first)


@compiled
def _copy(line, out, first):
    """Set out, from `first` on, to the numbers of a line, as far as they go."""
    for m in range(min(line.size, out.size - first)):
        out[np.uint64(first + m)] = line[np.uint64(m)]


def add_combinations(rows, C, start, stop, out):
    """Add Σ_i C[i, m] x_i over start <= i < stop to out[m], for every column m; rows are not read where C is zero."""
    chosen = np.empty((2, max(_ENTRIES_PER_BLOCK, C.shape[1])), np.int64)
    _combine(rows, C, start, stop, chosen, out)


@compiled
def _combine(rows, C, start, stop, chosen, out):
    """Do what `add_combinations` does; `chosen` is work space for the entries of at least one line.

    The nonzero entries of some lines are listed first, by a loop without branches, so that rows can be prefetched.
    """
    n_columns = C.shape[1]
    n_lines = chosen.shape[1] // max(1, n_columns)
    for first in range(start, stop, n_lines):
        n = 0
        for i in range(first, min(first + n_lines, stop)):
            coefficients = C[np.uint64(i)]
            for m in range(n_columns):
                chosen[0, np.uint64(n)], chosen[1, np.uint64(n)] = i, m
                n += coefficients[np.uint64(m)] != 0.0
        listed = chosen[0, :n]
        for k in range(n):
            row_prefetch(rows, listed, k)
            i, m = np.uint64(listed[k]), np.uint64(chosen[1, np.uint64(k)])
            row_axpy(rows, i, C[i, m], out[m])
