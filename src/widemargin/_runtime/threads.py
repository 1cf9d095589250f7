"""The one pool of threads. Compiled loops release the interpreter's lock, so threads over row ranges run in parallel.

Ranges depend on the amount of work alone, never on the number of threads, so that sums over ranges come out the
same to the bit however many threads there are.
"""

import os
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import pairwise

from joblib import cpu_count, effective_n_jobs
from threadpoolctl import ThreadpoolController

_lock = threading.Lock()
_pool = None
_inside = threading.local()
_blas = None  # the controller of BLAS's own threads
_blas_limit = None  # in force while any block of `single_threaded_blas` is open
_blas_blocks = 0


def _forget_pool():
    """Give a forked child no pool: the parent's threads do not exist there."""
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
    """Within the block BLAS uses no threads of its own: ours call it, and its threads would wait by spinning.

    Blocks may nest and overlap in several threads; BLAS gets its threads back when the last one ends.
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
    """Return how many threads `n_jobs` means: joblib's meaning, but threads may be had in any process, daemons too."""
    if n_jobs is None:
        return effective_n_jobs(None)
    if n_jobs == 0:
        raise ValueError("n_jobs must not be 0: a number of threads, −1 for all cores, or None.")
    return n_jobs if n_jobs > 0 else max(1, cpu_count() + 1 + n_jobs)


def split(total, n_parts):
    """Cut range(total) into at most `n_parts` (start, stop) pairs of nearly equal length, none of them empty."""
    n_parts = max(1, min(n_parts, total))
    edges = [total * part // n_parts for part in range(n_parts + 1)]
    return list(pairwise(edges))


def run(function, argument_lists, n_jobs=None, interrupt=None):
    """Return [function(*arguments) for arguments in argument_lists], in order, on at most `n_jobs` threads.

    `n_jobs` has joblib's meaning (None is 1 unless a joblib context says otherwise, -1 all cores). The caller's
    thread works too. A call from inside a worker runs serially: the outer call already owns the cores.
    An exception stops the handing out of work and is raised here. If an `interrupt` event is given, Ctrl-C while
    waiting for other threads sets it and waits on, for functions that watch the event and return early.
    """
    argument_lists = list(argument_lists)
    alone = len(argument_lists) <= 1 or getattr(_inside, "worker", False)
    n_workers = 1 if alone else min(n_threads(n_jobs), len(argument_lists))
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
            _inside.handed_out_by = sys._getframe().f_code, caller  # not `work`: a function that knows itself stays
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
        # A worker still waiting in the queue has nothing left to do here.
        errors = [_outcome(future, interrupt) for future in others if not future.cancel()]
        caller = None  # a frame that knows itself would stay in memory, with all of this
    for error in errors:
        if error is not None:
            raise error
    return results


def outer_frame(frame):
    """Return the frame that called this one; of a worker, that of `run` in the thread that handed out the work."""
    code, caller = getattr(_inside, "handed_out_by", None) or (None, None)
    return caller if frame.f_code is code else frame.f_back


def _outcome(future, interrupt):
    """Wait for a worker; return the exception it ended with, or None."""
    try:
        return future.exception()
    except KeyboardInterrupt:
        if interrupt is None or interrupt.is_set():
            raise
        interrupt.set()
        return future.exception()
