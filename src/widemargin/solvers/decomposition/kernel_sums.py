"""Sums of kernel rows, Σ_k weight_k K_k, with a bound on what rounding makes of them.

Solvers keep f = K beta up to date by small changes, thousands of times, and each addition rounds. What they report is
to be true all the same: every sum says by how much it may be wrong, and where that shows, f is summed up anew with
products and sums that carry their rounding along (Dekker, 1971).

The kernel matrix is taken as it was computed: what rounding does to a kernel value is not counted.
"""

import numpy as np

from widemargin._runtime.compile import compiled
from widemargin._runtime.threads import run, split

UNIT = 2.0**-53
_RANGE = 8192  # columns of one task for a thread
_SPLIT = 2.0**27 + 1.0
SAFE = 2.0**480  # sizes of factors up to which nothing overflows in an exact product


def add_rows(values, slots, weights, sums, bound, n_jobs):
    """Add Σ_k weights[k] values[slots[k]] to sums; return by how much an entry may be wrong after it, at most.

    No entry of `values` is larger than `bound`. Lines are added four at a time.
    """
    size = np.abs(weights).sum() * bound
    before = max(sums.max(initial=0.0), -sums.min(initial=0.0))
    _in_tasks(_add_rows, values, slots, weights, (sums,), n_jobs)
    additions = 0.25 * len(slots) + 2.0
    return UNIT * (additions * (before + size) + 3.0 * size)


def add_rows_exactly(values, slots, weights, sums, rest, n_jobs):
    """As `add_rows`, what rounding takes off going to `rest`; sums + rest is right to the last bits of the sum."""
    _in_tasks(_add_rows_exactly, values, slots, weights, (sums, rest), n_jobs)


def _in_tasks(add, values, slots, weights, sums, n_jobs):
    n_columns = len(sums[0])
    slots = np.ascontiguousarray(slots, dtype=np.int64)
    ranges = split(n_columns, -(-n_columns // _RANGE))
    run(add, [(values, slots, weights, start, stop, *sums) for start, stop in ranges], n_jobs)


@compiled(fastmath=frozenset({"contract"}))
def _add_rows(values, slots, weights, start, stop, sums):
    """Add Σ_k weights[k] values[slots[k]] to sums[start:stop], four lines at a time, sums staying in cache."""
    for begin in range(start, stop, 1024):
        end = min(begin + 1024, stop)
        part = sums[begin:end]
        k = 0
        while k + 4 <= slots.size:
            w0, w1, w2, w3 = weights[k], weights[k + 1], weights[k + 2], weights[k + 3]
            line0, line1 = values[np.uint64(slots[k])][begin:end], values[np.uint64(slots[k + 1])][begin:end]
            line2, line3 = values[np.uint64(slots[k + 2])][begin:end], values[np.uint64(slots[k + 3])][begin:end]
            for j in range(part.size):
                part[j] += (w0 * line0[j] + w1 * line1[j]) + (w2 * line2[j] + w3 * line3[j])
            k += 4
        while k < slots.size:
            w0, line0 = weights[k], values[np.uint64(slots[k])][begin:end]
            for j in range(part.size):
                part[j] += w0 * line0[j]
            k += 1


@compiled
def _add_rows_exactly(values, slots, weights, start, stop, sums, rest):
    """As `_add_rows`, each product and each sum split into the rounded number and what is missing."""
    for begin in range(start, stop, 1024):
        end = min(begin + 1024, stop)
        high, low = sums[begin:end], rest[begin:end]
        for k in range(slots.size):
            w, line = weights[k], values[np.uint64(slots[k])][begin:end]
            w_high = _SPLIT * w - (_SPLIT * w - w)
            w_low = w - w_high
            for j in range(high.size):
                v = np.float64(line[j])
                v_high = _SPLIT * v - (_SPLIT * v - v)
                v_low = v - v_high
                product = w * v
                missing = ((w_high * v_high - product) + w_high * v_low + w_low * v_high) + w_low * v_low
                total = high[j] + product
                added = total - high[j]
                missing += (high[j] - (total - added)) + (product - added)
                high[j] = total
                low[j] += missing
