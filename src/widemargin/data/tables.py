"""Scores of several weight vectors, and several weighted sums of rows, each in one pass over the rows.

    score_table    S = X W', a line of scores for each row of X, a column for each row w of W
    combine_table  C'X, a weight vector for each column of C; a row of X is read once for each nonzero entry of its line

Where scores are computed, 16 of them are kept in registers while a row is read. (With 32, a panel of weights of a few
hundred columns leaves the fastest cache: 26 scores of 256 columns took 1.4 to 1.9 times as long, measured on a busy
machine.) Where rows are summed, most lines of C have few nonzero entries.
"""

import numpy as np

from widemargin._runtime.compile import compiled
from widemargin._runtime.lanes import SHORT_LANES
from widemargin._runtime.simd import no_short_lanes, put_lanes
from widemargin.data.rows import row_axpy, row_lanes, row_prefetch

_ENTRIES_PER_BLOCK = 1 << 12  # of a table, among which those that are not zero are listed at a time


def panels_of(W):
    """Return weight vectors, the rows of W, as the columns of panels of SHORT_LANES columns; missing ones are zero."""
    panels = [np.zeros((W.shape[1], SHORT_LANES)) for _ in range(0, len(W), SHORT_LANES)]
    for k, panel in enumerate(panels):
        part = W[k * SHORT_LANES : (k + 1) * SHORT_LANES]
        panel[:, : len(part)] = part.T
    return panels


def set_score_table(rows, panels, start, stop, out):
    """Set out[i] to the scores of row i, for start <= i < stop; `panels` are those of `panels_of`."""
    line = np.empty((1, SHORT_LANES))
    for k, panel in enumerate(panels):
        _set_scores(rows, panel, start, stop, line, k * SHORT_LANES, out)


@compiled
def _set_scores(rows, panel, start, stop, line, first, out):
    """Set out[i, first + m] = Σ_j x_ij panel[j, m] for start <= i < stop, and every m for which out has a column.

    `line` is work space.
    """
    n = min(SHORT_LANES, out.shape[1] - first)
    for i in range(start, stop):
        put_lanes(row_lanes(rows, i, panel, no_short_lanes(panel)), line, 0)
        scores = out[np.uint64(i)]
        for m in range(n):
            scores[np.uint64(first + m)] = line[0, np.uint64(m)]


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
