import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from widemargin.data.blocks.key_order import order_of


def assert_sorted(keys):
    np.testing.assert_array_equal(order_of(keys), np.argsort(keys, kind="stable"))


@pytest.mark.parametrize("n_rows", [0, 1, 2, 3, 255, 256, 257, 70_000])
def test_the_order_of_random_keys_is_that_of_a_stable_sort(n_rows):
    assert_sorted(np.random.PCG64(1).random_raw(n_rows) if n_rows else np.empty(0, np.uint64))


@given(st.lists(st.integers(0, 2**64 - 1) | st.sampled_from([0, 1, 2**63, 2**64 - 1]), max_size=60))
def test_any_keys_are_sorted_and_equal_ones_stay_in_order(keys):
    assert_sorted(np.array(keys, np.uint64))


def test_the_rows_of_queries_stay_together():
    assert_sorted(np.repeat(np.random.PCG64(2).random_raw(300), 70))


@pytest.mark.parametrize("shared_bits", [5, 30, 60])
def test_keys_that_begin_with_the_same_bits_are_sorted_by_the_others(shared_bits):
    keys = np.random.PCG64(3).random_raw(5000) >> np.uint64(shared_bits)
    assert_sorted(keys | np.uint64(((1 << shared_bits) - 1) << (64 - shared_bits)))


def test_keys_that_differ_only_in_their_last_bits_are_told_apart():
    keys = np.random.PCG64(4).random_raw(2000) & np.uint64(0b111)
    keys[::2] |= np.uint64(1 << 63)
    assert_sorted(keys)
