"""Blocks read ahead by a thread: order, bounded memory, errors, and no thread that is left."""

import threading
import time

import numpy as np
import pytest

from widemargin._runtime.threads import run
from widemargin.data.blocks.read_ahead import OrderedSum, ReadAhead


def threads_left():
    return [one for one in threading.enumerate() if one.name == "widemargin-read-ahead"]


class Disk:
    """A source of blocks that counts those in use."""

    def __init__(self, broken=None):
        self.read_numbers, self.given_up, self.most, self.broken = [], 0, 0, broken

    def read(self, k):
        if k == self.broken:
            raise OSError(f"block {k} is damaged")
        self.read_numbers.append(k)
        self.most = max(self.most, len(self.read_numbers) - self.given_up)
        return f"block {k}"

    def use(self, ahead, k, seconds=0.0):
        with ahead.block(k) as block:
            time.sleep(seconds)
            assert block == f"block {k}"
            self.given_up += 1


@pytest.mark.parametrize("n_jobs", [1, 2, 9])
@pytest.mark.parametrize("most", [1, 2, 6])
def test_blocks_arrive_in_order_and_no_more_than_allowed_are_in_memory(n_jobs, most):
    disk, numbers = Disk(), list(range(3, 40, 2))
    with ReadAhead(disk.read, numbers, most) as ahead:
        run(lambda k: disk.use(ahead, k), [(k,) for k in numbers], n_jobs)
    assert disk.read_numbers == numbers
    assert disk.most <= most
    assert not threads_left()


def test_the_next_blocks_are_read_while_one_is_in_use():
    disk = Disk()
    with ReadAhead(disk.read, range(10), 4) as ahead, ahead.block(0):
        deadline = time.monotonic() + 10.0
        while len(disk.read_numbers) < 4 and time.monotonic() < deadline:
            time.sleep(0.001)
        time.sleep(0.02)
        assert disk.read_numbers == [0, 1, 2, 3]


@pytest.mark.parametrize("n_jobs", [1, 3])
@pytest.mark.parametrize("broken", [0, 5, 19])
def test_an_error_of_the_reader_is_raised_in_the_caller_and_no_thread_is_left(broken, n_jobs):
    disk = Disk(broken)
    with pytest.raises(OSError, match=f"block {broken} is damaged"), ReadAhead(disk.read, range(20), 3) as ahead:
        run(lambda k: disk.use(ahead, k), [(k,) for k in range(20)], n_jobs)
    assert not threads_left()
    assert disk.given_up == broken or n_jobs > 1


@pytest.mark.parametrize("n_jobs", [1, 2, 5])
@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_a_worker_that_raises_ends_the_pass_without_a_deadlock(error, n_jobs):
    disk = Disk()

    def work(k):
        disk.use(ahead, k, 0.001)
        if k == 4:
            raise error("this block")

    begun = time.monotonic()
    with pytest.raises(error, match="this block"), ReadAhead(disk.read, range(1000), 3) as ahead:
        run(work, [(k,) for k in range(1000)], n_jobs)
    assert time.monotonic() - begun < 10.0
    assert len(disk.read_numbers) < 30
    assert not threads_left()


def test_ctrl_c_while_the_thread_starts_leaves_no_thread(monkeypatch):
    disk, start = Disk(), threading.Thread.start

    def interrupted(thread):
        start(thread)
        raise KeyboardInterrupt

    monkeypatch.setattr(threading.Thread, "start", interrupted)
    ahead = ReadAhead(disk.read, range(100), 3)
    with pytest.raises(KeyboardInterrupt), ahead:
        pass
    for thread in ahead._threads:
        if thread.ident is not None:
            thread.join(5.0)
    assert not threads_left()


def test_a_pass_over_no_blocks_starts_no_thread():
    with ReadAhead(None, [], 3):
        assert not threads_left()


def test_waiting_is_counted():
    def read(k):
        time.sleep(0.02)
        return k

    with ReadAhead(read, range(5), 2) as ahead:
        for k in range(5):
            with ahead.block(k):
                pass
    assert 0.04 <= ahead.waited < 5.0  # two are read at a time


@pytest.mark.parametrize("order", [[0, 1, 2, 3, 4], [4, 3, 2, 1, 0], [2, 0, 4, 1, 3]])
def test_a_sum_does_not_depend_on_the_order_in_which_parts_arrive(order):
    rng = np.random.default_rng(0)
    parts = [10.0**k * rng.standard_normal(3) for k in range(5)]
    expected = np.zeros(3)
    for part in parts:
        expected += part
    total = OrderedSum(range(5), np.zeros(3))
    for k in order:
        total.add(k, parts[k])
    assert total.total.tobytes() == expected.tobytes()
