"""Which worker processes which partition: they stay, unless a worker is idle or much slower."""

from hypothesis import given
from hypothesis import strategies as st

from widemargin.distributed.placement import assigned, balanced

WORKERS = ["a", "b", "c"]


@given(st.dictionaries(st.integers(0, 30), st.lists(st.sampled_from([*WORKERS, "gone"]), unique=True), min_size=1))
def test_each_partition_has_one_worker_and_none_is_idle_beside_one_with_several(homes):
    found = assigned(homes, WORKERS, {})
    assert sorted(number for numbers in found.values() for number in numbers) == sorted(homes)
    assert set(found) <= set(WORKERS)
    assert len(found) == min(len(homes), 3) or max(map(len, found.values())) == 1


def test_partitions_stay_where_they_are_and_with_their_last_worker():
    homes = {0: ["a"], 1: ["b"], 2: ["a", "c"], 3: ["c", "b"]}
    assert assigned(homes, WORKERS, {2: "c", 3: "b"}) == {"a": [0], "b": [1, 3], "c": [2]}


def test_partitions_of_a_lost_worker_go_to_those_with_the_fewest():
    homes = {0: ["a"], 1: ["a"], 2: ["b"], 3: ["gone"], 4: []}
    assert assigned(homes, ["a", "b"], {3: "gone"}) == {"a": [0, 1, 4], "b": [2, 3]}


def test_a_worker_ten_times_slower_gives_most_of_its_partitions_away():
    even = {"a": [0, 1, 2, 3], "b": [4, 5, 6, 7], "c": [8, 9, 10, 11]}
    found = balanced(even, {"a": 10.0, "b": 1.0, "c": 1.0})
    assert len(found["a"]) == 1
    assert sorted(number for numbers in found.values() for number in numbers) == list(range(12))
    times = {"a": 2.5 * len(found["a"]), "b": 0.25 * len(found["b"]), "c": 0.25 * len(found["c"])}
    assert max(times.values()) < 3.0


def test_partitions_do_not_move_for_little():
    even = {"a": [0, 1], "b": [2, 3]}
    assert balanced(even, {"a": 0.1, "b": 0.01}) is even, "passes are short"
    assert balanced(even, {"a": 1.2, "b": 1.0}) is even, "workers are about equally fast"
    assert balanced(even, {"a": 5.0}) is even, "nothing is known of the other one"
    assert balanced({"a": [0], "b": [1]}, {"a": 9.0, "b": 1.0}) == {"a": [0], "b": [1]}, "a partition is not divided"
