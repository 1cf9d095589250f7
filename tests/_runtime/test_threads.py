"""The pool of threads: order, errors, nesting, and ranges that do not depend on the number of threads."""

import multiprocessing
import os
import subprocess
import sys
import threading
import time

import joblib
import pytest
from hypothesis import given
from hypothesis import strategies as st
from threadpoolctl import threadpool_limits

from widemargin._runtime import threads
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


# --- Without n_jobs ---------------------------------------------------------------------------------------------------


@pytest.fixture
def four_cores(monkeypatch):
    """A machine with four cores, whatever this one has."""
    monkeypatch.setattr(threads, "_n_cores", lambda: 4)
    monkeypatch.setattr(threads, "_openmp_limit", lambda: 64)


def _default_threads():
    return n_threads(None)


def test_without_n_jobs_all_cores_are_used(four_cores):
    assert n_threads(None) == 4
    meeting = threading.Barrier(2, timeout=10)
    run(lambda _: meeting.wait(), [(0,), (1,)], None)


@pytest.mark.parametrize("backend", ["loky", "threading", "multiprocessing"])
def test_without_n_jobs_a_worker_of_joblib_uses_one_thread(backend, four_cores):
    calls = (joblib.delayed(_default_threads)() for _ in range(2))
    assert joblib.Parallel(n_jobs=2, backend=backend)(calls) == [1, 1]


def test_a_worker_of_joblib_has_the_threads_that_it_asks_for():
    calls = (joblib.delayed(n_threads)(3) for _ in range(2))
    assert joblib.Parallel(n_jobs=2)(calls) == [3, 3]


def test_without_n_jobs_the_number_of_a_joblib_context_is_used(four_cores):
    with joblib.parallel_config(n_jobs=3):
        assert n_threads(None) == 3
    assert n_threads(None) == 4


def test_without_n_jobs_a_process_of_multiprocessing_uses_one_thread():
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.apply(_default_threads) == 1


def test_without_n_jobs_a_thread_of_a_dask_worker_is_the_only_one(four_cores):
    found = []
    thread = threading.Thread(target=lambda: found.append(n_threads(None)), name="Dask-Default-Threads-1-1")
    thread.start()
    thread.join()
    assert found == [1]


def test_without_n_jobs_a_limit_of_threadpoolctl_is_respected(monkeypatch):
    import sklearn.utils._openmp_helpers  # noqa: F401

    monkeypatch.setattr(threads, "_n_cores", lambda: 4)
    with threadpool_limits(1):
        assert n_threads(None) == 1
        assert n_threads(2) == 2


@pytest.mark.parametrize("imports", ["", "import sklearn.utils._openmp_helpers"])
@pytest.mark.parametrize(("value", "expected"), [("1", 1), ("2", 2), ("3,1", 3)])
def test_without_n_jobs_the_environment_variable_of_openmp_is_respected(value, expected, imports):
    program = (
        f"{imports}\nfrom widemargin._runtime import threads\n"
        "threads._n_cores = lambda: 8\nprint(threads.n_threads(None))"
    )
    environment = {**os.environ, "OMP_NUM_THREADS": value}
    found = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert int(found.stdout) == expected


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="the affinity of processes is not known here")
def test_without_n_jobs_the_affinity_of_the_process_is_respected():
    program = (
        "import os\nfrom widemargin._runtime.threads import n_threads\nbefore = n_threads(None)\n"
        "os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})\nprint(before, n_threads(None))"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert found.stdout.split()[1] == "1"


def test_without_n_jobs_callers_in_several_threads_share_the_cores(monkeypatch):
    monkeypatch.setattr(threads, "_default_threads", lambda: 3)
    begun, may_end = threading.Barrier(3, timeout=10), threading.Event()

    def wait(_):
        begun.wait()
        may_end.wait(10)

    first = threading.Thread(target=run, args=(wait, [(0,), (1,)], None))
    first.start()
    begun.wait()  # two of three cores are in use
    assert len(set(run(lambda _: threading.get_ident(), [(k,) for k in range(8)], None))) == 1
    may_end.set()
    first.join()
