"""Lines of 32, of 16 and of 4 numbers: the vector instructions do what the plain bodies say."""

import numpy as np
import pytest

from widemargin._runtime.compile import compiled
from widemargin._runtime.simd import (
    BLOCK,
    FEW_LANES,
    LANES,
    SHORT_LANES,
    add_line,
    aligned_zeros,
    few_lanes,
    no_lanes,
    no_short_lanes,
    put_lanes,
    put_transposed,
)

TYPES = pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["float32", "float64"])


@compiled
def _combine(factors, lines, panel, out, j):
    """out[j] = Σ_k factors[k] panel[lines[k]]."""
    sums = no_lanes(panel)
    for k in range(factors.size):
        sums = add_line(sums, factors[k], panel, lines[k])
    put_lanes(sums, out, j)


@compiled
def _combine_short(factors, lines, panel, out, j):
    """As `_combine`, for SHORT_LANES numbers."""
    sums = no_short_lanes(panel)
    for k in range(factors.size):
        sums = add_line(sums, factors[k], panel, lines[k])
    put_lanes(sums, out, j)


@compiled
def _combine_few(factors, lines, panel, out, j):
    """As `_combine`, for FEW_LANES numbers."""
    sums = few_lanes(panel)
    for k in range(factors.size):
        sums = add_line(sums, factors[k], panel, lines[k])
    put_lanes(sums, out, j)


WIDTHS = pytest.mark.parametrize(
    ("combine", "width"), [(_combine, LANES), (_combine_short, SHORT_LANES), (_combine_few, FEW_LANES)]
)


@TYPES
@WIDTHS
@pytest.mark.parametrize("n_lines", [0, 1, 3, 40])
def test_compiled_lines_add_up_as_the_plain_ones_do(combine, width, dtype, n_lines, rng):
    panel = rng.standard_normal((20, width)).astype(dtype)
    factors, lines = rng.standard_normal(n_lines).astype(dtype), rng.integers(0, 20, n_lines).astype(np.uint32)
    compiled_out, plain_out = np.full((2, 5, width), np.nan, dtype)
    combine(factors, lines, panel, compiled_out, 3)
    getattr(combine, "py_func", combine)(factors, lines, panel, plain_out, 3)
    # The compiler may fuse a product and a sum, which rounds once less: not the same to the bit.
    scale = np.abs(factors) @ np.abs(panel[lines]) + np.finfo(dtype).tiny
    assert np.abs(compiled_out[3] - plain_out[3]).max() <= (4 * n_lines + 1) * np.finfo(dtype).eps * scale.max()
    np.testing.assert_allclose(plain_out[3], factors.astype(np.float64) @ panel[lines], rtol=1e-4, atol=1e-5)


@TYPES
@WIDTHS
def test_only_the_line_asked_for_is_written(combine, width, dtype, rng):
    panel = rng.standard_normal((4, width)).astype(dtype)
    out = np.full((5, width), np.nan, dtype)
    combine(np.ones(1, dtype), np.array([2], np.uint32), panel, out, 1)
    assert np.array_equal(out[1], panel[2])
    assert np.isnan(np.delete(out, 1, axis=0)).all()


@TYPES
def test_lines_of_wider_and_of_shifted_arrays_are_found_by_their_stride(dtype, rng):
    # Neither begins where vector instructions like it, nor do lines follow each other.
    panel = rng.standard_normal((6, LANES + 3)).astype(dtype)[1:, 1 : LANES + 1]
    out = np.zeros((4, LANES + 5), dtype)
    _combine(np.array([2.0, -1.0], dtype), np.array([0, 4], np.uint32), panel, out[:, 5:], 2)
    np.testing.assert_allclose(out[2, 5:], 2 * panel[0] - panel[4], rtol=1e-6, atol=1e-6)
    assert not out[[0, 1, 3]].any()
    assert not out[2, :5].any()


@TYPES
def test_no_line_at_all_is_zeros(dtype):
    out = np.full((1, LANES), np.nan, dtype)
    _combine(np.empty(0, dtype), np.empty(0, np.uint32), np.full((1, LANES), np.nan, dtype), out, 0)
    assert not out.any()


def test_infinities_and_nans_stay_in_their_lane():
    panel = np.zeros((1, LANES))
    panel[0, 3], panel[0, 7] = np.inf, np.nan
    out = np.zeros((1, LANES))
    _combine(np.ones(1), np.zeros(1, np.uint32), panel, out, 0)
    assert np.flatnonzero(np.isposinf(out[0])).tolist() == [3]
    assert np.flatnonzero(np.isnan(out[0])).tolist() == [7]
    assert not out[0, [0, 1, 2, 4, 31]].any()


@TYPES
@pytest.mark.parametrize("shape", [(0,), (1,), (3, 5), (40, 7, 32), (1 << 18,)])
def test_aligned_zeros_begin_with_a_cache_line(dtype, shape):
    zeros = aligned_zeros(shape, dtype)
    assert zeros.shape == shape
    assert zeros.dtype == dtype
    assert zeros.ctypes.data % 64 == 0 or zeros.size == 0
    assert zeros.flags.c_contiguous
    assert not zeros.any()


@compiled
def _put_block(source, j, b, out, slots, place):
    put_transposed(source, (j, b), out, slots, place)


@TYPES
@pytest.mark.parametrize("plain", [False, True], ids=["compiled", "plain"])
def test_a_block_is_transposed_into_the_lines_of_its_slots(dtype, plain, rng):
    source, out = rng.standard_normal((11, LANES)).astype(dtype), np.full((40, 13), np.nan, dtype)
    slots = rng.permutation(40)[:LANES].astype(np.int64)
    put = getattr(_put_block, "py_func", _put_block) if plain else _put_block
    put(source, 2, 16, out, slots, 3)
    here = slots[16 : 16 + BLOCK]
    assert np.array_equal(out[here, 3 : 3 + BLOCK], source[2 : 2 + BLOCK, 16 : 16 + BLOCK].T)
    out[here, 3 : 3 + BLOCK] = np.nan
    assert np.isnan(out).all()
