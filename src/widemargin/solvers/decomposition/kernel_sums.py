"""Sums of kernel rows, Σ_k weight_k K_k, with a bound on their rounding errors.

Solvers update f = K beta by thousands of small changes, and each addition rounds. So that the reported objectives are
valid bounds, every sum returns a bound on its rounding error. If that is too large, f is computed again with products
and sums whose rounding errors are computed and added up separately (Dekker, 1971).

The kernel matrix is taken as computed: rounding errors of the kernel values are not part of the bound.
"""

import numpy as np

from widemargin._runtime.compile import compiled
from widemargin._runtime.threads import run, split
from widemargin.kernels.rows import add_weighted_rows

UNIT_ROUNDOFF = 2.0**-53
_TASKS, _MAX_COLUMNS_PER_TASK = 4, 16_384  # of the thread pool; there are more tasks if their columns would be too many
_ENTRIES_WORTH_THREADS = 1 << 19  # kernel values from which on threads save time, a tenth of a millisecond of work
_BLOCK_COLUMNS = 1024  # of exact sums, which stay in the processor's cache
_SPLITTER = 2.0**27 + 1.0  # multiplication by it splits a number into two halves of 26 bits
MAX_EXACT_FACTOR = 2.0**480  # exact products of factors up to this size do not overflow


def add_rows(values, slots, weights, sums, bound, n_jobs):
    """Add Σ_k weights[k] values[slots[k]] to sums; return a bound on the rounding error of each entry.

    `bound` is an upper bound of the absolute values. Rows are added four at a time.
    """
    before = max(sums.max(initial=0.0), -sums.min(initial=0.0))
    _in_tasks(add_weighted_rows, values, slots, weights, (sums,), n_jobs)
    return addition_error(weights, bound, before)


def addition_error(weights, bound, before):
    """Return a bound on the rounding error of adding weighted rows, four at a time, to sums of at most `before`."""
    size = np.abs(weights).sum() * bound
    n_additions = 0.25 * len(weights) + 2.0
    return UNIT_ROUNDOFF * (n_additions * (before + size) + 3.0 * size)


def add_rows_exactly(values, slots, weights, sums, rest, n_jobs):
    """Add as `add_rows` does, and add the rounding errors to `rest`: sums + rest is accurate to the last bits."""
    _in_tasks(_add_rows_exactly, values, slots, weights, (sums, rest), n_jobs)


def _in_tasks(add, values, slots, weights, sums, n_jobs):
    """Call `add` for ranges of columns, in threads."""
    n_columns = len(sums[0])
    slots = np.ascontiguousarray(slots, dtype=np.int64)
    if n_columns * len(slots) < _ENTRIES_WORTH_THREADS:
        add(values, slots, weights, 0, n_columns, *sums)
        return
    ranges = split(n_columns, _TASKS * -(-n_columns // (_TASKS * _MAX_COLUMNS_PER_TASK)))
    run(add, [(values, slots, weights, start, stop, *sums) for start, stop in ranges], n_jobs)


@compiled
def _add_rows_exactly(values, slots, weights, start, stop, sums, rest):
    """Add as `add_weighted_rows` does, and to `rest` the error of each product (Dekker) and of each sum (Knuth)."""
    for begin in range(start, stop, _BLOCK_COLUMNS):
        end = min(begin + _BLOCK_COLUMNS, stop)
        high, low = sums[begin:end], rest[begin:end]
        for k in range(slots.size):
            w, row = weights[k], values[np.uint64(slots[k])][begin:end]
            w_high = _SPLITTER * w - (_SPLITTER * w - w)
            w_low = w - w_high
            for j in range(high.size):
                v = np.float64(row[j])
                v_high = _SPLITTER * v - (_SPLITTER * v - v)
                v_low = v - v_high
                product = w * v
                error = ((w_high * v_high - product) + w_high * v_low + w_low * v_high) + w_low * v_low
                total = high[j] + product
                added = total - high[j]
                error += (high[j] - (total - added)) + (product - added)
                high[j] = total
                low[j] += error
