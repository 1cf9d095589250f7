"""`Partition` and the record of commands: objects that are made once more are the same, and results are by nodes."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from widemargin.distributed.partition import (
    ROWS,
    THREADS,
    Batch,
    Command,
    Partition,
    PartitionRows,
    Ref,
    drop,
    needed_commands,
    results_here,
)


def partition(number=0, n_rows=3):
    """Return a partition whose rows are their numbers."""
    X = np.arange(n_rows, dtype=float)[:, None] + 10.0 * number
    return Partition(PartitionRows(number, X, np.arange(n_rows), None, None))


def made(rows, start):
    """Make an object: a list of one number."""
    return [float(rows.X.sum()) + start]


def changed(own, other, factor):
    """Change an object by another one."""
    own.append(own[-1] * factor + sum(other))


def merged(objects, number):
    """Make an object from a list of others."""
    return [sum(map(sum, objects)) + number]


def total(own):
    """Return the sum of an object."""
    return float(sum(own))


def batch(*commands, after=0):
    """Return a batch of new commands."""
    return Batch(commands, after, len(commands))


def test_commands_make_change_drop_and_return_objects():
    one = partition()
    first = batch(
        Command(1, made, (ROWS, 5.0), "a"), Command(2, changed, (Ref("a"), Ref("a"), 2.0)),
        Command(3, total, (Ref("a"),), result="sum"), Command(4, np.copy, (Ref("rows", "X"),), result="each"),
        Command(5, max, (THREADS, 1), result="sum"),
    )  # fmt: skip
    assert one.is_ready(first)
    assert [result for result in one.execute(first, 2) if result is not None][0::2] == [32.0, 2]
    assert not one.is_ready(first), "a batch is executed once"
    assert one.is_ready(batch(Command(6, drop, ("a",)), after=5))
    one.execute(batch(Command(6, drop, ("a",)), after=5), 1)
    with pytest.raises(KeyError, match="a"):
        one.execute(batch(Command(7, total, (Ref("a"),), result="sum"), after=6), 1)
    assert not one.is_ready(batch(Command(8, total, (Ref("a"),), result="sum"), after=7)), "a failed batch is no state"


def test_a_partition_that_travels_arrives_without_objects_and_says_so():
    one = partition()
    one.execute(batch(Command(1, made, (ROWS, 5.0), "a")), 1)
    other = pickle.loads(pickle.dumps(one))
    following = batch(Command(2, total, (Ref("a"),), result="sum"), after=1)
    assert one.is_ready(following)
    assert not other.is_ready(following)
    assert results_here([one, other], 2, following, 1)[1] == [0]
    whole = Batch((Command(1, made, (ROWS, 5.0), "a"), *following.commands), 1, 1, is_whole=True)
    assert other.execute(whole, 1) == one.execute(following, 1)


@pytest.mark.parametrize("n_threads", [1, 2])
def test_results_are_sums_by_nodes_largest_or_of_each(n_threads):
    commands = [
        Command(k, np.sum, (Ref("rows", "X"),), result=how) for k, how in enumerate(("sum", "largest", "each"), 1)
    ]
    results, incomplete = results_here([partition(k) for k in (0, 1, 2)], 3, batch(*commands), n_threads)
    assert incomplete == []
    assert results == [{(2, 0): 99.0}, {(2, 0): 63.0}, {(0, 0): 3.0, (0, 1): 33.0, (0, 2): 63.0}]


@st.composite
def logs(draw):
    """Draw commands of a fit: objects made, made from others, changed by others, asked for, dropped."""
    commands, alive = [], []
    for number in range(1, draw(st.integers(2, 25))):
        what = draw(st.sampled_from(["make", "merge", "change", "ask", "drop"])) if alive else "make"
        one = draw(st.sampled_from(alive)) if alive else None
        other = draw(st.sampled_from(alive)) if alive else None
        name = f"object-{number}"
        if what == "make":
            commands.append(Command(number, made, (ROWS, float(number)), name))
        elif what == "merge":
            commands.append(Command(number, merged, ([Ref(one), Ref(other)], number), name))
        elif what == "change":
            commands.append(Command(number, changed, (Ref(one), Ref(other), 0.5)))
        elif what == "ask":
            commands.append(Command(number, total, (Ref(one),), None, "sum", False))
        else:
            commands.append(Command(number, drop, (one,)))
            alive.remove(one)
        alive += [name] if what in ("make", "merge") else []
    return commands, alive


@given(logs())
def test_the_commands_that_are_needed_make_the_same_objects(log):
    commands, alive = log
    ordinary, rebuilt = partition(), partition()
    ordinary.execute(batch(*commands), 1)
    needed = needed_commands(commands, ())
    asked = [Command(100 + k, np.array, (Ref(name),), None, "each", False) for k, name in enumerate(alive)]
    if not asked:
        assert needed == []
        return
    answers = rebuilt.execute(Batch((*needed, *asked), 99, len(asked), is_whole=True), 1)
    expected = ordinary.execute(batch(*asked, after=commands[-1].number), 1)
    assert all(np.array_equal(*pair) for pair in zip(answers, expected, strict=True))
    assert not any(command.function in (drop, total) for command in needed)


def test_commands_of_dropped_objects_are_needed_for_commands_that_refer_to_them():
    commands = [Command(1, made, (ROWS, 1.0), "a"), Command(2, drop, ("a",))]
    assert needed_commands(commands, ()) == []
    assert needed_commands(commands, [Command(3, total, (Ref("a"),), None, "sum")]) == commands[:1]
