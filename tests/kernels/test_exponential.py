"""fast_exp and fast_log: accurate over the whole range, clamped below, and the same compiled and plain."""

import numpy as np
import pytest

from widemargin._runtime.compile import compiled
from widemargin.kernels.exponential import fast_exp, fast_log

ACCURACY = {np.float32: 2e-7, np.float64: 1e-15}
LOWEST = {np.float32: -87.0, np.float64: -708.0}
HIGHEST = {np.float32: 80.0, np.float64: 700.0}
TYPES = pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["float32", "float64"])


@compiled
def _exponentials(x, out):
    for k in range(x.size):
        out[k] = fast_exp(x[k])


@compiled
def _logarithms(x, out):
    for k in range(x.size):
        out[k] = fast_log(x[k])


def exponentials(x, *, plain=False):
    out = np.empty_like(x)
    loop = getattr(_exponentials, "py_func", _exponentials) if plain else _exponentials
    loop(x, out)
    return out


def relative_error(found, x):
    exact = np.exp(x.astype(np.longdouble))
    return np.abs((found - exact) / exact).max()


@TYPES
def test_the_whole_range_is_accurate_to_a_few_units_in_the_last_place(dtype, rng):
    x = rng.uniform(LOWEST[dtype], HIGHEST[dtype], 200_000).astype(dtype)
    assert relative_error(exponentials(x), x) <= ACCURACY[dtype]


@TYPES
def test_small_arguments_are_accurate_on_both_sides_of_zero(dtype, rng):
    x = (rng.choice([-1.0, 1.0], 50_000) * 10.0 ** rng.uniform(-12, 0.5, 50_000)).astype(dtype)
    assert relative_error(exponentials(x), x) <= ACCURACY[dtype]


@TYPES
def test_where_the_power_of_two_changes_nothing_jumps(dtype):
    # n = round(x / ln 2) changes at odd multiples of ½ ln 2; both neighbours of each such x must be accurate.
    edges = ((np.arange(-100, 100) + 0.5) * np.log(2)).astype(dtype)
    x = np.concatenate([np.nextafter(edges, dtype(-1000)), edges, np.nextafter(edges, dtype(1000))])
    assert relative_error(exponentials(x), x) <= ACCURACY[dtype]


@TYPES
def test_zero_gives_exactly_one(dtype):
    assert exponentials(np.array([0.0, -0.0], dtype)).tolist() == [1.0, 1.0]


@TYPES
@pytest.mark.parametrize("plain", [False, True], ids=["compiled", "plain"])
def test_what_is_below_the_range_gives_the_smallest_value_of_the_range(dtype, plain):
    low = LOWEST[dtype]
    x = np.array([low, np.nextafter(dtype(low), dtype(-np.inf)), 1.5 * low, -1e30, -np.inf], dtype)
    found = exponentials(x, plain=plain)
    assert (found == found[0]).all()
    np.testing.assert_allclose(found[0], np.exp(np.float64(low)), rtol=ACCURACY[dtype])
    assert found[0] >= np.finfo(dtype).tiny


@TYPES
def test_the_compiled_body_says_what_the_plain_one_says(dtype, rng):
    x = np.concatenate([rng.uniform(1.1 * LOWEST[dtype], HIGHEST[dtype], 3000), [0.0]]).astype(dtype)
    plain = exponentials(x, plain=True)
    assert plain.dtype == exponentials(x).dtype == dtype
    np.testing.assert_allclose(exponentials(x), plain, rtol=ACCURACY[dtype])


@TYPES
def test_it_never_falls_by_more_than_its_accuracy_as_the_argument_rises(dtype):
    x = np.linspace(-20, 5, 100_001).astype(dtype)
    found = exponentials(x).astype(np.float64)
    assert (found[1:] >= found[:-1] * (1 - 2 * ACCURACY[dtype])).all()


@pytest.mark.parametrize("plain", [False, True], ids=["compiled", "plain"])
def test_logarithms_are_accurate_over_the_whole_range_and_near_one(plain, rng):
    near = 1.0 + rng.choice([-1.0, 1.0], 20_000) * 10.0 ** rng.uniform(-16, -0.4, 20_000)
    edges = 2.0 ** np.arange(-1022.0, 1024.0)
    roots = np.sqrt(0.5) * edges[1:-1]  # where m jumps from √2 to √½
    edges = np.concatenate([edges, np.nextafter(edges[1:], 0.0), roots, np.nextafter(roots, 0.0)])
    x = np.concatenate([10.0 ** rng.uniform(-307, 308, 20_000), near[near != 1.0], edges[edges != 1.0]])
    out = np.empty_like(x)
    (getattr(_logarithms, "py_func", _logarithms) if plain else _logarithms)(x, out)
    exact = np.log(x.astype(np.longdouble))
    assert np.abs((out - exact) / exact).max() <= 1e-15


def test_the_logarithm_of_one_is_zero():
    out = np.empty(1)
    _logarithms(np.ones(1), out)
    assert out[0] == 0.0
