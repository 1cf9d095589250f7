"""Subsets have the size asked for and the labels in proportion, and each row the chance it should have."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from widemargin.data.sampling import apportion, query_rows, random_rows, stratified_rows


@given(counts=st.lists(st.integers(1, 50), min_size=1, max_size=8), data=st.data())
def test_seats_add_up_stay_near_their_quota_and_leave_no_class_out(counts, data):
    counts = np.array(counts)
    number = data.draw(st.integers(1, counts.sum()))
    seats = apportion(counts, number)
    assert seats.sum() == number
    assert np.all((seats >= 0) & (seats <= counts))
    if number >= len(counts):
        assert seats.min() >= 1
    quota = counts * number / counts.sum()
    if quota.min() >= 1:
        assert np.all(np.abs(seats - quota) < 1)


def test_seats_go_to_the_largest_remainders():
    assert apportion([60, 25, 15], 10).tolist() == [6, 3, 1]  # 6, 2.5, 1.5: of equal remainders the larger class
    assert apportion([53, 24, 23], 10).tolist() == [5, 3, 2]
    assert apportion([98, 1, 1], 3).tolist() == [1, 1, 1]
    assert apportion([98, 1, 1], 2).tolist() == [2, 0, 0]
    assert apportion([2**62, 2**61], 3).tolist() == [2, 1]


@pytest.mark.parametrize("number", [1, 7, 50, 99, 100])
@pytest.mark.parametrize("choose", [random_rows, stratified_rows])
@pytest.mark.parametrize("labels", ["classes", "quantities"])
def test_rows_are_different_in_order_and_as_many_as_asked(rng, number, choose, labels):
    y = rng.integers(0, 3, 100) if labels == "classes" else rng.random(100)
    rows = choose(y, number, seed=5)
    assert len(rows) == number
    assert np.all(np.diff(rows) > 0)
    assert np.array_equal(rows, choose(y, number, seed=5))
    assert number > 90 or not np.array_equal(rows, choose(y, number, seed=6))


def test_stratified_rows_have_the_classes_in_proportion():
    y = np.repeat([3, -1, 7], [60, 25, 15])
    for seed in range(5):
        assert np.unique(y[stratified_rows(y, 40, seed)], return_counts=True)[1].tolist() == [10, 24, 6]


def test_of_quantities_one_is_taken_from_each_group_of_neighbours(rng):
    y = rng.permutation(100) + 0.5
    for seed in range(5):
        assert sorted(y[stratified_rows(y, 20, seed)].astype(int) // 5) == list(range(20))


def test_equal_quantities_are_neighbours_at_random():
    y = np.full(40, 0.5)
    assert any(len(set(stratified_rows(y, 10, seed) // 4)) < 10 for seed in range(5))


@pytest.mark.parametrize("choose", [random_rows, stratified_rows])
@pytest.mark.parametrize("y", [np.repeat([0, 1], [10, 30]), np.arange(40) % 20 + 0.5], ids=["classes", "quantities"])
def test_every_row_has_the_same_chance(choose, y):
    hits = np.zeros(40)
    for seed in range(800):
        hits[choose(y, 10, seed)] += 1
    assert hits.sum() == 8000
    assert np.all(np.abs(hits - 200) < 5 * np.sqrt(150))  # binomial: 800 draws of a quarter


def test_queries_stay_whole_and_come_near_the_number():
    qid = np.repeat([5, 1, 9, 1, 4], [3, 2, 5, 2, 8])  # query 1 comes in two pieces
    for seed in range(20):
        for number in (1, 6, 12, 20):
            rows = query_rows(qid, number, seed)
            taken = np.unique(qid[rows])
            assert np.array_equal(rows, np.flatnonzero(np.isin(qid, taken)))
            assert len(taken) >= 1
            assert abs(len(rows) - number) <= 8
    assert len(query_rows(qid, 20)) == 20
    assert len({tuple(query_rows(qid, 8, seed)) for seed in range(20)}) > 3
