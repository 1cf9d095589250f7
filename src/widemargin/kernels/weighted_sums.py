"""Sums of kernel values with coefficients: scores[b, block, output] += Σ_j coefficients[output, j] values[b, j].

The sums are those of each block of support vectors j. With few outputs they are dot products. With several, support
vector j has a line, which holds its coefficients of 16 outputs, and the sums of a row are those of the lines, each
multiplied by a value. Every line that is loaded is multiplied by the values of four rows; the sums stay in registers.

If kernel values are in single precision, so are the sums of up to `_VALUES_TOGETHER` of them, whose rounding errors are
then no larger than those of the values. All others are in double precision.
"""

from typing import NamedTuple

import numpy as np

from widemargin._runtime.compile import SUMS, compiled
from widemargin._runtime.simd import SHORT_LANES, add_line, aligned_zeros, no_short_lanes, put_lanes

_FEWEST_OUTPUTS_BY_LINES = {4: 5, 8: 8}  # by bytes of a value, for which lines are faster than dot products (measured)
_VALUES_TOGETHER = 128  # of a row; their lines stay in the processor's first cache
_ROWS_TOGETHER = 4  # of `_add_by_lines`


class Weights(NamedTuple):
    """The coefficients of all support vectors, in blocks from ends[k] to ends[k + 1].

    With several outputs, lines[c, j] times `scales` are the coefficients of support vector j in the outputs from
    SHORT_LANES · c on; with few, there are no lines. Scales are powers of two with which coefficients of any size are
    numbers of single precision.
    """

    coefficients: np.ndarray
    ends: np.ndarray
    lines: np.ndarray
    scales: np.ndarray

    @property
    def dtype(self):
        """The type of kernel values to be multiplied."""
        return self.lines.dtype

    @property
    def rows_together(self):
        """The number of rows whose values `add_sums` should be given: lines are loaded for several of them at once."""
        return _ROWS_TOGETHER if self.lines.shape[0] else 1

    def memory(self):
        """Return the memory that `add_sums` needs."""
        return aligned_zeros((_ROWS_TOGETHER, SHORT_LANES), self.dtype)


def weights_of(coefficients, ends, dtype=np.float64):
    """Return the Weights of coefficients (n_outputs, n_support), for kernel values in a precision of `dtype`."""
    n_outputs, n_support = coefficients.shape
    if n_outputs < _FEWEST_OUTPUTS_BY_LINES[np.dtype(dtype).itemsize]:
        return Weights(coefficients, ends, np.empty((0, n_support, SHORT_LANES)), np.ones(n_outputs))
    scales = np.ones(n_outputs) if dtype == np.float64 else _scales(coefficients)
    n_lines = -(-n_outputs // SHORT_LANES)
    padded = np.zeros((n_lines * SHORT_LANES, n_support))
    padded[:n_outputs] = coefficients / scales[:, np.newaxis]
    lines = aligned_zeros((n_lines, n_support, SHORT_LANES), dtype)
    lines[:] = padded.reshape(n_lines, SHORT_LANES, n_support).transpose(0, 2, 1)
    return Weights(coefficients, ends, lines, scales)


def _scales(coefficients):
    """Return powers of two no smaller than half the largest coefficient of each output."""
    largest = np.abs(coefficients).max(axis=1, initial=0.0)
    return np.where(np.isfinite(largest) & (largest > 0.0), np.ldexp(1.0, np.frexp(largest)[1] - 1), 1.0)


@compiled
def add_sums(values, ends, weights, memory, out):
    """Add the sums over each block and each output to out[b], from values[b, k] of support vector ends[0] + k, all b.

    `out` is (n_rows, n_blocks, n_outputs); there may be more values than support vectors from ends[0] to ends[1].
    """
    start, stop = ends
    for block in range(out.shape[1]):
        begin, end = max(weights.ends[block], start), min(weights.ends[block + 1], stop)
        if weights.lines.shape[0] == 0 and begin < end:
            _add_products(values, (start, begin, end), weights.coefficients, block, out)
        elif begin < end:
            for first in range(begin, end, _VALUES_TOGETHER):
                here = start, first, min(first + _VALUES_TOGETHER, end)
                _add_by_lines(values, here, weights, block, memory, out)


@compiled(fastmath=SUMS)
def _add_products(values, here, coefficients, block, out):
    """Add the dot products of values with the coefficients of the support vectors from here[1] to here[2]."""
    start, begin, end = here
    for output in range(out.shape[2]):
        factors = coefficients[np.uint64(output)][begin:end]
        for b in range(out.shape[0]):
            row, total = values[np.uint64(b)][begin - start : end - start], 0.0
            for j in range(row.size):
                total += factors[j] * row[j]
            out[np.uint64(b), np.uint64(block), np.uint64(output)] += total


@compiled
def _add_by_lines(values, here, weights, block, memory, out):
    """Add the sums of the lines of the support vectors from here[1] to here[2], of four rows at once."""
    start, begin, end = here
    shift, n_rows = begin - start, out.shape[0]
    for b in range(0, n_rows, _ROWS_TOGETHER):
        row0, row1 = values[np.uint64(b)][shift:], values[np.uint64(min(b + 1, n_rows - 1))][shift:]
        row2, row3 = (
            values[np.uint64(min(b + 2, n_rows - 1))][shift:],
            values[np.uint64(min(b + 3, n_rows - 1))][shift:],
        )
        for c in range(weights.lines.shape[0]):
            lines = weights.lines[np.uint64(c)][begin:end]
            sums0, sums1 = no_short_lanes(lines), no_short_lanes(lines)
            sums2, sums3 = no_short_lanes(lines), no_short_lanes(lines)
            for j in range(lines.shape[0]):
                sums0 = add_line(sums0, row0[np.uint64(j)], lines, j)
                sums1 = add_line(sums1, row1[np.uint64(j)], lines, j)
                sums2 = add_line(sums2, row2[np.uint64(j)], lines, j)
                sums3 = add_line(sums3, row3[np.uint64(j)], lines, j)
            put_lanes(sums0, memory, 0)
            put_lanes(sums1, memory, 1)
            put_lanes(sums2, memory, 2)
            put_lanes(sums3, memory, 3)
            for r in range(min(_ROWS_TOGETHER, n_rows - b)):
                _add_scaled(
                    memory[np.uint64(r)], weights.scales[c * SHORT_LANES :], out[b + r, block][c * SHORT_LANES :]
                )


@compiled
def _add_scaled(sums, scales, out):
    """Add sums times their scales to out, which may have fewer numbers than there are sums."""
    for k in range(min(SHORT_LANES, out.size)):
        out[k] += scales[k] * sums[k]
