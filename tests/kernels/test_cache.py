"""The row cache: right values whatever was thrown out, the least recently used first, memory within its bound."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from widemargin.kernels.cache import RowCache
from widemargin.kernels.functions import Kernel
from widemargin.kernels.rows import KernelRows

N = 20
ROW_MB = N * 8 / 2**20  # what one row of 20 double values takes
KINDS = pytest.mark.parametrize("kind", ["linear", "precomputed", "callable"])


class Counted:
    """A kernel function that remembers which rows it was asked for."""

    def __init__(self):
        self.asked = []

    def __call__(self, A, B):
        if len(B) > 1:
            self.asked += A[:, 0].astype(int).tolist()
        return A @ B.T


def rows_of(kind="callable", function=None):
    """Return KernelRows and their matrix; the first feature of a row is its number."""
    X = np.column_stack([np.arange(N), np.arange(N) % 3, np.ones(N)]).astype(float)
    kernel = Kernel(kind, function=function or (lambda A, B: A @ B.T))
    return KernelRows(kernel, X @ X.T if kind == "precomputed" else X, dtype=np.float64), X @ X.T


def check(cache, matrix, rows, columns=slice(None)):
    slots = cache.fetch(np.asarray(rows))
    assert len(set(slots.tolist())) == len(rows), "two rows share a slot"
    np.testing.assert_array_equal(cache.values[slots], matrix[rows][:, columns])
    np.testing.assert_array_equal(cache.slot_of[rows], slots)


@KINDS
def test_fetched_rows_are_the_kernels(kind):
    K, matrix = rows_of(kind)
    cache = RowCache(K, 1.0, least=2)
    check(cache, matrix, [3, 11, 4])
    check(cache, matrix, np.arange(N)[::-1].copy())


@KINDS
def test_rows_are_right_after_they_were_thrown_out(kind, rng):
    K, matrix = rows_of(kind)
    cache = RowCache(K, 5 * ROW_MB, least=3)
    for _ in range(200):
        check(cache, matrix, rng.permutation(N)[: rng.integers(1, 6)])


def test_what_is_here_is_not_computed_again():
    counted = Counted()
    K, _ = rows_of(function=counted)
    cache = RowCache(K, 6 * ROW_MB, least=2)
    cache.fetch(np.array([1, 2, 3]))
    cache.fetch(np.array([3, 1, 7]))
    assert counted.asked == [1, 2, 3, 7]
    assert cache.n_computed == 4


def test_the_least_recently_used_row_makes_room():
    counted = Counted()
    K, _ = rows_of(function=counted)
    cache = RowCache(K, 3 * ROW_MB, least=1)
    for row in (1, 2, 3, 1, 4):  # 2 was used longest ago when 4 comes
        cache.fetch(np.array([row]))
    assert (cache.slot_of[[1, 3, 4]] >= 0).all()
    assert cache.slot_of[2] == -1
    cache.fetch(np.array([5, 6]))  # and now 3 and 1 are
    assert np.flatnonzero(cache.slot_of >= 0).tolist() == [4, 5, 6]
    assert counted.asked == [1, 2, 3, 4, 5, 6]


def test_loops_that_find_rows_by_themselves_can_say_that_they_used_them():
    K, _ = rows_of()
    cache = RowCache(K, 2 * ROW_MB, least=1)
    cache.fetch(np.array([1]))
    cache.fetch(np.array([2]))
    cache.used[cache.slot_of[1]] = cache.tick()
    cache.fetch(np.array([3]))
    assert np.flatnonzero(cache.slot_of >= 0).tolist() == [1, 3]


def test_a_row_of_the_same_call_is_never_thrown_out():
    K, matrix = rows_of()
    cache = RowCache(K, 0.0, least=4)
    cache.fetch(np.array([0, 1, 2, 3]))
    check(cache, matrix, [3, 9, 10, 11])
    check(cache, matrix, [12, 11, 3, 13])


@KINDS
@pytest.mark.parametrize("n_rows", [3, 7, N])
def test_as_many_rows_as_there_are_slots_can_be_had_at_once(n_rows, kind):
    K, matrix = rows_of(kind)
    cache = RowCache(K, n_rows * ROW_MB, least=1)
    assert cache.n_slots == n_rows
    cache.fetch(np.array([N - 1]))
    check(cache, matrix, np.arange(n_rows))


def test_more_rows_than_slots_are_refused():
    K, _ = rows_of()
    with pytest.raises(ValueError, match="4 rows do not fit into 3 slots"):
        RowCache(K, 3 * ROW_MB, least=2).fetch(np.arange(4))


@pytest.mark.parametrize("megabytes", [0.0, 1e-9, 2.5 * ROW_MB, 7.99 * ROW_MB, 1000.0])
@pytest.mark.parametrize("least", [1, 4])
def test_memory_stays_below_the_bound_but_for_the_least_rows(megabytes, least):
    K, matrix = rows_of()
    cache = RowCache(K, megabytes, least)
    allowed = max(megabytes * 2**20, least * N * 8)

    def check_memory():
        assert cache.values.nbytes <= allowed
        assert least <= cache.n_slots <= N

    check_memory()
    check(cache, matrix, np.arange(least))
    cache.keep_columns(np.arange(0, N, 2), np.arange(0, N, 2))
    check_memory()
    check(cache, matrix, np.arange(least), slice(0, N, 2))
    cache.all_columns()
    check_memory()
    check(cache, matrix, np.arange(least))


def test_kept_columns_move_together_without_being_computed():
    counted = Counted()
    K, matrix = rows_of(function=counted)
    cache = RowCache(K, 4 * ROW_MB, least=2)
    cache.fetch(np.array([5, 9, 1]))
    chosen = np.array([0, 3, 4, 11, 19])
    cache.keep_columns(chosen, chosen)
    assert cache.values.shape[1] == 5
    check(cache, matrix, [9, 1, 5], chosen)
    assert counted.asked == [5, 9, 1]
    assert cache.n_slots == 16, "four rows of 20 columns are sixteen of 5"


def test_columns_can_be_given_up_twice_by_their_present_positions():
    K, matrix = rows_of()
    cache = RowCache(K, 4 * ROW_MB, least=2)
    cache.fetch(np.array([5, 9, 1]))
    cache.keep_columns(np.array([0, 3, 4, 11, 19]), np.array([0, 3, 4, 11, 19]))
    cache.fetch(np.array([7]))
    cache.keep_columns(np.array([3, 19]), np.array([1, 4]))
    check(cache, matrix, [7, 5, 2, 9, 1], [3, 19])


def test_the_order_of_use_survives_giving_up_columns():
    K, _ = rows_of()
    cache = RowCache(K, 3 * ROW_MB, least=1)
    for row in (1, 2, 3, 1):
        cache.fetch(np.array([row]))
    half = np.arange(N - 2)
    cache.keep_columns(half, half)
    assert cache.n_slots == 3
    cache.fetch(np.array([8]))
    assert np.flatnonzero(cache.slot_of >= 0).tolist() == [1, 3, 8]


def test_all_columns_again_means_that_rows_are_computed_anew():
    counted = Counted()
    K, matrix = rows_of(function=counted)
    cache = RowCache(K, 4 * ROW_MB, least=2)
    cache.fetch(np.array([5, 9]))
    cache.keep_columns(np.array([0, 3]), np.array([0, 3]))
    cache.all_columns()
    assert (cache.slot_of == -1).all()
    check(cache, matrix, [5, 9])
    assert counted.asked == [5, 9, 5, 9]


def test_a_row_of_a_part_of_the_columns_counts_in_proportion():
    K, _ = rows_of()
    cache = RowCache(K, 4 * ROW_MB, least=2)
    cache.fetch(np.array([5, 9]))
    cache.keep_columns(np.arange(5), np.arange(5))
    cache.fetch(np.array([1]))
    assert cache.n_computed == pytest.approx(2.25)


def test_a_failed_computation_leaves_no_half_made_row():
    fail = []

    def function(A, B):
        if fail:
            raise RuntimeError("no more")
        return A @ B.T

    K, matrix = rows_of(function=function)
    cache = RowCache(K, 3 * ROW_MB, least=1)
    cache.fetch(np.array([1, 2, 3]))
    fail.append(True)
    with pytest.raises(RuntimeError, match="no more"):
        cache.fetch(np.array([4, 5]))
    fail.clear()
    assert cache.slot_of[4] == cache.slot_of[5] == -1
    check(cache, matrix, [4, 3, 5])
    check(cache, matrix, [1, 2])


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("fetch"), st.lists(st.integers(0, N - 1), min_size=1, max_size=4, unique=True)),
        st.tuples(st.just("keep"), st.lists(st.booleans(), min_size=N, max_size=N)),
        st.tuples(st.just("all"), st.none()),
    ),
    max_size=25,
)


@given(steps=STEPS, slots=st.floats(0, N), kind=st.sampled_from(["linear", "callable", "precomputed"]))
@hypothesis_settings(max_examples=80)
def test_any_sequence_of_calls_gives_right_values(steps, slots, kind):
    K, matrix = rows_of(kind)
    cache = RowCache(K, slots * ROW_MB, least=4)
    columns = np.arange(N)
    for verb, argument in steps:
        if verb == "fetch":
            check(cache, matrix, argument, columns)
        elif verb == "all":
            columns = np.arange(N)
            cache.all_columns()
        else:
            positions = np.flatnonzero(np.array(argument)[columns])
            if len(positions):
                columns = columns[positions]
                cache.keep_columns(columns, positions)
        assert cache.values.nbytes <= max(slots * ROW_MB * 2**20, 4 * N * 8)
