"""Rows kept in memory: the right ones, or none, and never more than the limit."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.data.blocks.written import KINDS, rows_of_kind

from widemargin.data.blocks.row_blocks import to_scipy
from widemargin.data.blocks.row_store import RowStore
from widemargin.data.matrix import Matrix
from widemargin.data.rows import SparseRows, joined_rows, ones, taken

X = rows_of_kind("float64", 20)
ROWS = Matrix(X).rows
NUMBERS = st.lists(st.integers(0, 19), unique=True, max_size=20).map(lambda one: np.array(sorted(one), dtype=np.int64))


@given(st.lists(st.tuples(st.booleans(), NUMBERS), max_size=6), NUMBERS, st.floats(0.0, 2.0))
@settings(max_examples=200)
def test_what_is_found_has_every_row_that_is_needed_and_stays_within_the_limit(calls, needed, fraction):
    store = RowStore(20, 12.0, fraction * 20 * 20.0)  # a row takes 12 bytes, its number 8
    for also, chosen in calls:
        (store.keep_also if also else store.keep)(0, ROWS, 20, chosen)
    kept = store.find(0, needed)
    assert store.find(1, needed) is None
    if calls and len(calls[-1][1]) <= min(1.0, fraction) * 20:
        assert store.find(0, calls[-1][1]) is not None
    if kept is None:
        return
    assert set(needed) <= set(kept.numbers)
    assert len(kept.numbers) <= fraction * 20
    assert (np.diff(kept.numbers) > 0).all()
    np.testing.assert_array_equal(to_scipy(kept.rows, 5).toarray(), X.toarray()[kept.numbers])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("chosen", [[], [0], [3, 4, 19], range(20)])
def test_taken_and_joined_rows_are_those_of_the_array(kind, chosen):
    rows, chosen = rows_of_kind(kind, 20), np.array(chosen, dtype=np.int64)
    X = rows if kind.startswith("dense") else rows.toarray()
    source = Matrix(rows, 2.0).rows
    parts = [taken(source, chosen), taken(source, np.array([7])), taken(source, chosen[:0])]
    together = joined_rows(parts)
    assert together.constant == 2.0
    found = to_scipy(together, 5)
    found = found.toarray() if isinstance(together, SparseRows) else found
    np.testing.assert_array_equal(found, np.concatenate([X[chosen], X[[7]]]))


def test_rows_of_ones_share_their_values_when_they_are_taken_and_joined():
    indices, offsets = np.arange(6, dtype=np.uint16), np.array([0, 2, 2, 6], np.uint32)
    rows = SparseRows(ones(6), indices, offsets, 0.0)
    parts = [taken(rows, np.array([0, 2])), taken(rows, np.array([1, 2]))]
    together = joined_rows(parts)
    assert np.shares_memory(together.data, ones(1))
    np.testing.assert_array_equal(to_scipy(together, 6).sum(axis=1), [2, 4, 0, 4])
    ones(1 << 12)  # memory for longer rows
    longer = joined_rows([*parts, taken(rows, np.arange(3))])
    np.testing.assert_array_equal(to_scipy(longer, 6).sum(axis=1), [2, 4, 0, 4, 2, 0, 4])
    assert not together.data.flags.writeable
