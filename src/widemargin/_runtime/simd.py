"""Vectors of 32 numbers, or of 16 or 4, that compiled loops keep in SIMD registers.

    sums = no_lanes(panel)                     zeros, of the panel's type; no_short_lanes: 16, few_lanes: 4
    sums = add_line(sums, x, panel, k)         sums + x * panel[k], all of them at once
    put_lanes(sums, out, j)                    out[j] = sums
    add_to_line(out, j, x, panel, k, zeros)    out[j] += x * panel[k], in lines as long as the vector of zeros

Numba has no such type. Partial sums in an array would be loaded and stored at every step, which took four times as
long. The Python bodies below define what each function does; in compiled code they are replaced by LLVM vector
instructions, see `simd_instructions`, which is imported when something is compiled.
"""

import math

import numpy as np

from widemargin._runtime.compile import compiled_choice
from widemargin._runtime.lanes import BLOCK as BLOCK
from widemargin._runtime.lanes import FEW_LANES as FEW_LANES
from widemargin._runtime.lanes import LANES as LANES
from widemargin._runtime.lanes import SHORT_LANES as SHORT_LANES

_BYTES_OF_CACHE_LINE = 64


def aligned_zeros(shape, dtype):
    """Return an array of zeros that begins with a cache line: a vector across two lines takes twice as long to read.

    NumPy's arrays begin 16 bytes after the beginning of a line, if they are large.
    """
    dtype = np.dtype(dtype)
    memory = np.zeros(math.prod(shape) * dtype.itemsize + _BYTES_OF_CACHE_LINE, np.uint8)
    begin = -memory.ctypes.data % _BYTES_OF_CACHE_LINE
    return memory[begin : len(memory) - _BYTES_OF_CACHE_LINE + begin].view(dtype).reshape(shape)


def no_lanes(panel):
    """Return LANES zeros of the panel's type."""
    return np.zeros(LANES, panel.dtype)


def no_short_lanes(panel):
    """Return SHORT_LANES zeros of the panel's type."""
    return np.zeros(SHORT_LANES, panel.dtype)


def few_lanes(panel):
    """Return FEW_LANES zeros of the panel's type."""
    return np.zeros(FEW_LANES, panel.dtype)


def add_line(sums, x, panel, k):
    """Return sums + x * panel[k]."""
    return sums + x * panel[k]


def put_lanes(sums, out, j):
    """Set out[j] = sums."""
    out[j] = sums


def add_to_line(out, j, x, panel, k, zeros):
    """Add x * panel[k] to out[j]; lines are as long as `zeros`, and of the same type."""
    out[j] += x * panel[k]


def put_transposed(source, corner, out, slots, place):
    """Set out[slots[b + i], place + k] = source[j + k, b + i] for i and k below BLOCK, with (j, b) = corner.

    The arrays are contiguous.
    """
    j, b = corner
    block = source[j : j + BLOCK, b : b + BLOCK]
    out[slots[b : b + BLOCK], place : place + BLOCK] = block.T


@compiled_choice(no_lanes)
def _compiled_no_lanes(panel):
    from widemargin._runtime.simd_instructions import zero

    return lambda panel: zero(panel)


@compiled_choice(no_short_lanes)
def _compiled_no_short_lanes(panel):
    from widemargin._runtime.simd_instructions import short_zero

    return lambda panel: short_zero(panel)


@compiled_choice(few_lanes)
def _compiled_few_lanes(panel):
    from widemargin._runtime.simd_instructions import few_zeros

    return lambda panel: few_zeros(panel)


@compiled_choice(add_line)
def _compiled_add_line(sums, x, panel, k):
    from widemargin._runtime.simd_instructions import add

    return lambda sums, x, panel, k: add(sums, x, panel, k)


@compiled_choice(put_lanes)
def _compiled_put_lanes(sums, out, j):
    from widemargin._runtime.simd_instructions import put

    return lambda sums, out, j: put(sums, out, j)


@compiled_choice(add_to_line)
def _compiled_add_to_line(out, j, x, panel, k, zeros):
    from widemargin._runtime.simd_instructions import add, put

    return lambda out, j, x, panel, k, zeros: put(add(add(zeros, 1.0, out, j), x, panel, k), out, j)


@compiled_choice(put_transposed)
def _compiled_put_transposed(source, corner, out, slots, place):
    from widemargin._runtime.simd_instructions import transpose

    return lambda source, corner, out, slots, place: transpose(source, corner, out, slots, place)
