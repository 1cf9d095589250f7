"""The pool of threads: order, errors, nesting, and ranges that do not depend on the number of threads."""

import multiprocessing
import threading
import time

import joblib
import pytest
from hypothesis import given
from hypothesis import strategies as st

from widemargin._runtime.threads import n_threads, run, split, stream


@given(total=st.integers(1, 1000), n_parts=st.integers(1, 70))
def test_ranges_cover_everything_once_and_none_is_empty(total, n_parts):
    ranges = split(total, n_parts)
    assert [i for start, stop in ranges for i in range(start, stop)] == list(range(total))
    assert all(start < stop for start, stop in ranges)
    assert len(ranges) == min(total, n_parts)


def test_results_come_in_the_order_of_the_arguments():
    def late(k):
        time.sleep(0.002 * (10 - k))
        return k

    assert run(late, [(k,) for k in range(10)], n_jobs=2) == list(range(10))


def test_two_threads_really_work_at_the_same_time():
    meeting = threading.Barrier(2, timeout=10)
    run(lambda _: meeting.wait(), [(0,), (1,)], n_jobs=2)


def test_one_job_stays_on_the_callers_thread():
    assert run(lambda _: threading.get_ident(), [(0,), (1,)]) == [threading.get_ident()] * 2


def test_an_error_in_any_thread_is_raised_and_stops_the_rest():
    done = []

    def fail(k):
        if k == 1:
            raise ValueError("row 1 is bad")
        time.sleep(0.01)
        done.append(k)

    with pytest.raises(ValueError, match="row 1 is bad"):
        run(fail, [(k,) for k in range(200)], n_jobs=2)
    assert len(done) < 100


@given(kinds=st.lists(st.booleans(), max_size=20), n_ahead=st.integers(1, 5), n_jobs=st.integers(1, 3))
def test_a_stream_gives_results_in_order_and_works_ahead_so_far_and_not_across_none(kinds, n_ahead, n_jobs):
    begun, yielded = [], []

    def arguments():
        for k, is_call in enumerate(kinds):
            if not is_call:
                yield None
                assert len(yielded) == sum(kinds[:k])
            else:
                yield (k,)

    def call(k):
        begun.append(k)
        return k

    for result in stream(call, arguments(), n_ahead=n_ahead, n_jobs=n_jobs):
        assert len(begun) - len(yielded) <= n_ahead
        yielded.append(result)
    assert yielded == [k for k, is_call in enumerate(kinds) if is_call]


def test_two_threads_of_a_stream_really_work_at_the_same_time():
    meeting = threading.Barrier(2, timeout=10)
    assert len(list(stream(lambda _: meeting.wait(), [(0,), (1,)], n_ahead=2, n_jobs=2))) == 2


def test_an_error_in_a_stream_is_raised_in_its_place_after_calls_that_have_begun():
    ended = []

    def fail(k):
        if k >= 3:
            raise ValueError(f"row {k} is bad")
        time.sleep(0.05 if k == 2 else 0.0)
        ended.append(k)
        return k

    results = stream(fail, ((k,) for k in range(100)), n_ahead=6, n_jobs=2)
    assert [next(results), next(results), next(results)] == [0, 1, 2]
    with pytest.raises(ValueError, match="row 3 is bad"):
        next(results)


def test_a_stream_that_is_closed_waits_for_calls_that_have_begun():
    begun, ended = [], []

    def call(k):
        begun.append(k)
        time.sleep(0.02)
        ended.append(k)
        return k

    results = stream(call, ((k,) for k in range(100)), n_ahead=4, n_jobs=2)
    next(results)
    results.close()
    assert sorted(begun) == sorted(ended)
    assert len(begun) < 10


def test_calls_of_run_inside_a_stream_are_serial():
    def outer(k):
        return len(set(run(lambda _: threading.get_ident(), [(0,), (1,), (2,)], n_jobs=2)))

    assert list(stream(outer, [(0,), (1,)], n_ahead=2, n_jobs=2)) == [1, 1]


def test_a_call_from_inside_a_worker_runs_serially():
    def outer(k):
        names = run(lambda _: threading.get_ident(), [(0,), (1,), (2,)], n_jobs=2)
        return len(set(names))

    assert run(outer, [(0,), (1,)], n_jobs=2) == [1, 1]


def _threads_used(pipe):
    """In a daemon process: tell how many threads two tasks that wait for each other are given."""
    meeting = threading.Barrier(2, timeout=20)
    pipe.send(run(lambda: meeting.wait() >= 0, [(), ()], 2))


def test_a_daemon_process_has_threads_too():
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe()
    process = context.Process(target=_threads_used, args=(there,), daemon=True)
    process.start()
    assert here.poll(60)
    assert here.recv() == [True, True]
    process.join()


@pytest.mark.parametrize(("n_jobs", "expected"), [(1, 1), (3, 3), (-1, joblib.cpu_count())])
def test_n_jobs_has_joblibs_meaning(n_jobs, expected):
    assert n_threads(n_jobs) == expected


def test_no_jobs_at_all_are_refused():
    with pytest.raises(ValueError, match=r"n_jobs must be a number of threads.*got 0"):
        n_threads(0)
