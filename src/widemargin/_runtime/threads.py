"""The thread pool of the package. Compiled loops release the GIL, so tasks on different row ranges run in parallel.

The ranges depend only on the amount of work, never on the number of threads. Sums over ranges are therefore the same
to the last bit for any number of threads.
"""

import os
import sys
import threading
from collections import deque
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from itertools import pairwise

from joblib import cpu_count, effective_n_jobs
from threadpoolctl import ThreadpoolController

_lock = threading.Lock()
_pool = None
_inside = threading.local()
_blas = None  # threadpoolctl's controller of the BLAS threads
_blas_limit = None  # the limit in force while any block of `single_threaded_blas` is open
_blas_blocks = 0  # number of open blocks


def _forget_pool():
    """Drop the pool in a forked child process, where the threads of the parent do not exist."""
    global _pool, _lock
    _pool, _lock = None, threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_pool)


def _get_pool():
    global _pool
    with _lock:
        if _pool is None:
            _pool = ThreadPoolExecutor(max_workers=os.cpu_count() or 1, thread_name_prefix="widemargin")
        return _pool


@contextmanager
def single_threaded_blas():
    """Limit BLAS to one thread within the block.

    Several of our threads call BLAS at the same time; threads of its own would compete with them and busy-wait.
    Blocks may nest, and overlap in several threads; the limit is lifted when the last block ends.
    """
    global _blas, _blas_limit, _blas_blocks
    with _lock:
        if _blas_blocks == 0:
            _blas = _blas or ThreadpoolController()
            _blas_limit = _blas.limit(limits=1, user_api="blas")
            _blas_limit.__enter__()
        _blas_blocks += 1
    try:
        yield
    finally:
        with _lock:
            _blas_blocks -= 1
            if _blas_blocks == 0:
                _blas_limit.__exit__(None, None, None)
                _blas_limit = None


def n_threads(n_jobs):
    """Return the number of threads for `n_jobs`.

    The meaning is that of joblib, except that a positive or negative number is also honoured in daemon processes,
    where joblib would allow one worker only.
    """
    if n_jobs is None:
        return effective_n_jobs(None)
    if n_jobs == 0:
        raise ValueError("n_jobs must be a number of threads, −1 for all cores, or None, got 0.")
    return n_jobs if n_jobs > 0 else max(1, cpu_count() + 1 + n_jobs)


def split(total, n_parts):
    """Cut range(total) into at most `n_parts` (start, stop) pairs of nearly equal length, none of them empty."""
    n_parts = max(1, min(n_parts, total))
    edges = [total * part // n_parts for part in range(n_parts + 1)]
    return list(pairwise(edges))


def run(function, argument_lists, n_jobs=None, interrupt=None):
    """Return [function(*arguments) for arguments in argument_lists], in order, on at most `n_jobs` threads.

    `n_jobs` has the meaning of joblib (None is 1 unless a joblib context sets another default, -1 is all cores). The
    calling thread is one of the workers. A call from inside a worker runs serially, because the outer call already
    uses the cores. After an exception no further task is started, and the exception is raised here. If an event is
    given as `interrupt`, Ctrl-C during the wait for other threads sets the event and waits on: the functions are
    expected to check the event and return early.
    """
    argument_lists = list(argument_lists)
    serial = len(argument_lists) <= 1 or getattr(_inside, "worker", False)
    n_workers = 1 if serial else min(n_threads(n_jobs), len(argument_lists))
    if n_workers <= 1:
        return [function(*arguments) for arguments in argument_lists]

    results = [None] * len(argument_lists)
    todo = iter(range(len(argument_lists)))
    todo_lock = threading.Lock()
    failed = threading.Event()

    caller, own_thread = sys._getframe(), threading.get_ident()

    def work():
        _inside.worker = True
        if threading.get_ident() != own_thread:
            _inside.handed_out_by = sys._getframe().f_code, caller  # `work.__code__` would be a cycle
        try:
            while not failed.is_set():
                with todo_lock:
                    k = next(todo, None)
                if k is None:
                    return
                results[k] = function(*argument_lists[k])
        except BaseException:
            failed.set()
            raise
        finally:
            _inside.worker, _inside.handed_out_by = False, None

    others = [_get_pool().submit(work) for _ in range(n_workers - 1)]
    try:
        work()
    except BaseException:
        failed.set()
        raise
    finally:
        # Workers that have not started yet are cancelled: there is nothing left for them to do.
        errors = [_outcome(future, interrupt) for future in others if not future.cancel()]
        caller = None  # breaks the reference cycle of the frame with itself, so that its variables are freed
    for error in errors:
        if error is not None:
            raise error
    return results


def stream(function, argument_lists, *, n_ahead, n_jobs=-1):
    """Yield function(*arguments) for arguments in argument_lists, in order, computed by `n_jobs` threads.

    `argument_lists` may be any iterable, which is advanced in the calling thread. At most `n_ahead` results are
    computed before they are asked for: the call k + n_ahead begins after result k was yielded and the next one asked
    for. None in place of arguments waits until all results before it have been yielded, and yields nothing itself. An
    exception of a call is raised in place of its result; then, or if the iteration ends early, calls that have begun
    are waited for.
    """
    if getattr(_inside, "worker", False) or n_threads(n_jobs) == 1:
        yield from (function(*arguments) for arguments in argument_lists if arguments is not None)
        return
    pending = deque()
    try:
        for arguments in argument_lists:
            while len(pending) >= (1 if arguments is None else n_ahead):
                yield pending.popleft().result()
            if arguments is not None:
                pending.append(_get_pool().submit(_as_worker, function, arguments))
        while pending:
            yield pending.popleft().result()
    finally:
        wait([future for future in pending if not future.cancel()])


def _as_worker(function, arguments):
    """Call a function in a thread of the pool; calls of `run` inside it are serial."""
    _inside.worker = True
    try:
        return function(*arguments)
    finally:
        _inside.worker = False


def outer_frame(frame):
    """Return the frame that called `frame`; for a worker's outermost frame, that of `run` in the calling thread."""
    code, caller = getattr(_inside, "handed_out_by", None) or (None, None)
    return caller if frame.f_code is code else frame.f_back


def _outcome(future, interrupt):
    """Wait for a worker and return the exception that ended it, or None; see `run` for `interrupt`."""
    try:
        return future.exception()
    except KeyboardInterrupt:
        if interrupt is None or interrupt.is_set():
            raise
        interrupt.set()
        return future.exception()
