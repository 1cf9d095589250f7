"""Sums over partitions: the bits of the fixed tree, however partitions are divided among workers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from widemargin.distributed.tree_sum import added, joined, largest, root
from widemargin.solvers.newton.row_state import DualSums


def by_halves(values, start=0, width=None):
    """Return the sum of the tree by its definition: that of the first 2^k numbers, and that of the others."""
    width = 1 << (len(values) - 1).bit_length() if width is None else width
    if width == 1:
        return values[start]
    half = width // 2
    first = by_halves(values, start, half)
    return first + by_halves(values, start + half, half) if start + half < len(values) else first


@given(st.lists(st.floats(-1e16, 1e16), min_size=1, max_size=70), st.data())
def test_any_division_among_workers_gives_the_bits_of_the_tree(values, data):
    n = len(values)
    worker = data.draw(st.lists(st.integers(0, 4), min_size=n, max_size=n))
    nodes = {}
    for one in range(5):
        nodes |= joined({(0, k): values[k] for k in range(n) if worker[k] == one}, n, added)
    found = joined(nodes, n, added)
    assert list(found) == [root(n)]
    assert float(found[root(n)]).hex() == float(by_halves(values)).hex()


def test_a_worker_of_adjacent_partitions_returns_few_sums():
    assert list(joined({(0, k): 1.0 for k in range(64, 128)}, 1000, added)) == [(6, 1)]
    assert len(joined({(0, k): 1.0 for k in range(3, 997)}, 1000, added)) < 20


def test_tuples_are_added_entry_by_entry_and_stay_what_they_are():
    one = DualSums(1.0, 2.0, np.array([1.0, 2.0]), 3)
    total = added(one, one)
    assert isinstance(total, DualSums)
    assert (total.linear, total.n_read, total.vector.tolist()) == (2.0, 6, [2.0, 4.0])
    assert largest((1, np.array([5, 0])), (2, np.array([3, 4])))[1].tolist() == [5, 4]
    with pytest.raises(ValueError, match="zip"):
        added((1, 2), (1,))
