"""Scores of several weight vectors, and several weighted sums of rows, each in one pass over the rows.

    score_table    S = W X', a line of scores for each row w of W, a column for each row of X
    combine_table  C X, a weight vector for each line of C; a row of X is read once for each nonzero entry of its column

Where scores are computed, 16 of them are kept in registers while a row is read, or 4 if there are no more: 3 scores of
180 columns take 0.65 times as long. (With 32, a panel of weights of a few hundred columns leaves the fastest cache: 26
scores of 256 columns took 1.4 to 1.9 times as long, measured on a busy machine.) Where rows are summed, most columns of
C have few nonzero entries.
"""

import numpy as np

from widemargin._runtime.compile import compiled
from widemargin._runtime.lanes import FEW_LANES, SHORT_LANES
from widemargin._runtime.simd import aligned_zeros, few_lanes, no_short_lanes, put_lanes
from widemargin.data.rows import row_axpy, row_lanes, row_prefetch

_ENTRIES_PER_BLOCK = 1 << 12  # of a table, among which those that are not zero are listed at a time


def panels_of(W):
    """Return weight vectors, the rows of W, as the columns of panels of SHORT_LANES columns; missing ones are zero.

    The panel of at most FEW_LANES weight vectors has only so many columns.
    """
    width = FEW_LANES if len(W) <= FEW_LANES else SHORT_LANES
    panels = [aligned_zeros((W.shape[1], width), np.float64) for _ in range(0, len(W), width)]
    for k, panel in enumerate(panels):
        part = W[k * width : (k + 1) * width]
        panel[:, : len(part)] = part.T
    return panels


def set_score_table(rows, panels, start, stop, out):
    """Set out[:, i] to the scores of row i, for start <= i < stop; `panels` are those of `panels_of`."""
    for k, panel in enumerate(panels):
        width = panel.shape[1]
        set_scores = _set_few_scores if width == FEW_LANES else _set_scores
        set_scores(rows, panel, start, stop, np.empty((1, width)), out[k * width : (k + 1) * width])


@compiled
def _set_scores(rows, panel, start, stop, line, scores):
    """Set scores[m, i] = Σ_j x_ij panel[j, m] for start <= i < stop, and every m for which there is a line of scores.

    `line` is work space.
    """
    for i in range(start, stop):
        put_lanes(row_lanes(rows, i, panel, no_short_lanes(panel)), line, 0)
        for m in range(scores.shape[0]):
            scores[np.uint64(m), np.uint64(i)] = line[0, np.uint64(m)]


@compiled
def _set_few_scores(rows, panel, start, stop, line, scores):
    """Do what `_set_scores` does for a panel of FEW_LANES columns."""
    for i in range(start, stop):
        put_lanes(row_lanes(rows, i, panel, few_lanes(panel)), line, 0)
        for m in range(scores.shape[0]):
            scores[np.uint64(m), np.uint64(i)] = line[0, np.uint64(m)]


def add_combinations(rows, C, start, stop, out):
    """Add Σ_i C[m, i] x_i over start <= i < stop to out[m], for every line m; rows are not read where C is zero."""
    chosen = np.empty((2, max(_ENTRIES_PER_BLOCK, C.shape[0])), np.int64)
    _combine(rows, C, start, stop, chosen, out)


@compiled
def _combine(rows, C, start, stop, chosen, out):
    """Do what `add_combinations` does; `chosen` is work space for the entries of at least one column.

    The nonzero entries of some columns are listed first, by a loop without branches, so that rows can be prefetched.
    """
    n_columns = chosen.shape[1] // max(1, C.shape[0])
    for first in range(start, stop, n_columns):
        n = 0
        for m in range(C.shape[0]):
            coefficients = C[np.uint64(m)]
            for i in range(first, min(first + n_columns, stop)):
                chosen[0, np.uint64(n)], chosen[1, np.uint64(n)] = i, m
                n += coefficients[np.uint64(i)] != 0.0
        listed = chosen[0, :n]
        for k in range(n):
            row_prefetch(rows, listed, k)
            i, m = np.uint64(listed[k]), np.uint64(chosen[1, np.uint64(k)])
            row_axpy(rows, i, C[m, i], out[m])
