"""The thread pool of the package. Compiled loops release the GIL, so tasks on different row ranges run in parallel.

The ranges depend only on the amount of work, never on the number of threads. Sums over ranges are therefore the same
to the last bit for any number of threads.
"""

import multiprocessing
import os
import sys
import threading
from collections import deque
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import lru_cache
from itertools import pairwise

from joblib import cpu_count, effective_n_jobs
from joblib.parallel import get_active_backend
from threadpoolctl import ThreadpoolController

_lock = threading.Lock()
_pool = None
_inside = threading.local()
_blas = None  # threadpoolctl's controllers of the BLAS libraries
_blas_threads: list[int] = []  # their numbers of threads before the first open block of `single_threaded_blas`
_blas_blocks = 0  # number of open blocks
_n_at_work = 0  # threads that calls of `run` with several threads have in use
_DASK_THREADS = "Dask-"  # what the names of the threads of a Dask worker begin with


def _forget_pool():
    """Drop the pool in a forked child process, where the threads of the parent do not exist."""
    global _pool, _lock, _n_at_work
    _pool, _lock, _n_at_work = None, threading.Lock(), 0


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
    global _blas, _blas_threads, _blas_blocks
    with _lock:
        if _blas_blocks == 0:
            if _blas is None:
                _blas = ThreadpoolController().select(user_api="blas").lib_controllers
            _blas_threads = [library.num_threads for library in _blas]
            for library in _blas:
                library.set_num_threads(1)
        _blas_blocks += 1
    try:
        yield
    finally:
        with _lock:
            _blas_blocks -= 1
            if _blas_blocks == 0:
                for library, n_threads_before in zip(_blas, _blas_threads, strict=True):
                    library.set_num_threads(n_threads_before)


def n_threads(n_jobs):
    """Return the number of threads for `n_jobs`.

    A positive number is that many threads, −1 all cores, −2 all but one. None is the number that a joblib context
    sets or, without one, all cores: those that the affinity of the process and the limits of its container allow, and
    no more than OMP_NUM_THREADS or a limit of `threadpoolctl` allows OpenMP. Within workers of joblib or Dask and
    other processes that multiprocessing has started, None is 1, because the other workers use the other cores.
    """
    if n_jobs is None:
        return _default_threads()
    if n_jobs == 0:
        raise ValueError("n_jobs must be a number of threads, −1 for all cores, or None, got 0.")
    return n_jobs if n_jobs > 0 else max(1, cpu_count() + 1 + n_jobs)


def _default_threads():
    """Return the number of threads for n_jobs=None."""
    backend, n_asked = get_active_backend()
    if n_asked is not None:
        return effective_n_jobs(None)
    if backend.nesting_level or multiprocessing.parent_process() is not None:
        return 1
    if threading.current_thread().name.startswith(_DASK_THREADS):
        return 1
    return max(1, min(_n_cores(), _openmp_limit()))


def _n_cores():
    """Return the number of cores that this process may use."""
    if not hasattr(os, "sched_getaffinity"):
        return _joblib_cores(0)
    return _joblib_cores(len(os.sched_getaffinity(0)))


@lru_cache(maxsize=1)
def _joblib_cores(n_cores_of_affinity):
    """Return joblib's count of cores, which reads files; it is made again when the affinity changes."""
    return cpu_count()


def _openmp_limit():
    """Return how many threads OpenMP would use: OMP_NUM_THREADS, or what `threadpoolctl` has set since.

    scikit-learn knows, if it has been imported; if not, there is only the environment variable.
    """
    helpers = sys.modules.get("sklearn.utils._openmp_helpers")
    if helpers is not None and helpers._openmp_parallelism_enabled():
        return helpers._openmp_effective_n_threads(None, False)
    number = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
    return int(number) if number.isdecimal() and int(number) > 0 else sys.maxsize


def split(total, n_parts):
    """Cut range(total) into at most `n_parts` (start, stop) pairs of nearly equal length, none of them empty."""
    n_parts = max(1, min(n_parts, total))
    edges = [total * part // n_parts for part in range(n_parts + 1)]
    return list(pairwise(edges))


def run(function, argument_lists, n_jobs=1, interrupt=None):
    """Return [function(*arguments) for arguments in argument_lists], in order, on at most `n_jobs` threads.

    `n_jobs` is that of `n_threads`; with None, only cores are used that calls from other threads of the caller leave
    free. Handing a task to another thread takes 20 to 80 microseconds: who passes None has made sure that the tasks
    take longer. The calling thread is one of the workers. A call from inside a worker runs serially, because the outer
    call already uses the cores. After an exception no further task is started, and the exception is raised here. If an
    event is given as `interrupt`, Ctrl-C during the wait for other threads sets the event and waits on: the functions
    are expected to check the event and return early.
    """
    argument_lists = list(argument_lists)
    serial = len(argument_lists) <= 1 or n_jobs == 1 or getattr(_inside, "worker", False)
    n_workers = 1 if serial else min(n_threads(n_jobs) - (_n_at_work if n_jobs is None else 0), len(argument_lists))
    if n_workers <= 1:
        return [function(*arguments) for arguments in argument_lists]
    with _at_work(n_workers):
        return _run_on(n_workers, function, argument_lists, interrupt)


@contextmanager
def _at_work(n_workers):
    """Count threads as being at work within the block."""
    global _n_at_work
    with _lock:
        _n_at_work += n_workers
    try:
        yield
    finally:
        with _lock:
            _n_at_work -= n_workers


def _run_on(n_workers, function, argument_lists, interrupt):
    """Do what `run` does on so many threads."""
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
