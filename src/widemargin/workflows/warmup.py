"""Compiling ahead of the first fit, for images of containers and for continuous integration.

Small fits are run by several processes, each of which keeps what it compiles on disk; see `warmup_fits` for the fits.
"""

import json
import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from widemargin._runtime.compile import before_compilation
from widemargin._runtime.progress import task
from widemargin.workflows.errors import ArgumentError, FileError, spelled
from widemargin.workflows.files import shown_progress

GROUPS = {  # names that may be asked for, and the groups of fits, of `warmup_fits`, that they need
    "LinearSVC": ["LinearSVC"],
    "LinearSVR": ["LinearSVR"],
    "LinearOneClassSVM": ["LinearOneClassSVM"],
    "LinearSVCCV": ["LinearSVC", "LinearSVCCV"],
    "LinearSVRCV": ["LinearSVR", "LinearSVCCV"],
    "SVC": ["SVC"],
    "TransductiveSVC": ["SVC"],
    "NuSVC": ["SVC", "SVR"],
    "SVR": ["SVC", "SVR"],
    "NuSVR": ["SVC", "SVR"],
    "OneClassSVM": ["SVC", "SVR"],
    "RankSVM": ["RankSVM"],
    "OrdinalSVC": ["RankSVM"],
    "ROCAreaSVC": ["RankSVM"],
    "MeasureSVC": ["MeasureSVC"],
    "files": ["files"],
}
_CONTAINERS = [("dense", "float64"), ("sparse", "float64"), ("dense", "float32"), ("sparse", "float32")]
_FOLDER_OF_PACKAGE = str(Path(__file__).parents[2])
_WORKER = (
    f"import sys; sys.path.insert(0, {_FOLDER_OF_PACKAGE!r}); from widemargin.workflows import warmup; warmup.serve()"
)


@dataclass(frozen=True)
class WarmedUp:
    """The result of `warmup`; it prints itself.

    Attributes
    ----------
    compiled : int
        The number of functions that were compiled; the others were there already.
    seconds : float
    folder : str
        Where compiled code is kept.
    """

    compiled: int
    seconds: float
    folder: str

    def __str__(self) -> str:
        return f"compiled {self.compiled} functions in {self.seconds:.1f} s, kept in {self.folder}"

    def to_dict(self) -> dict[str, Any]:
        """Return the attributes as a dict."""
        return {"compiled": self.compiled, "seconds": self.seconds, "folder": self.folder}


def warmup(estimators: Sequence[str] | None = None, *, n_jobs: int = -1, verbose: int = 0) -> WarmedUp:
    """Compile what the estimators need, for dense and CSR rows of float64 and float32, and keep it on disk.

    A first fit then compiles nothing, in any later process that finds the same folder. What is there already is not
    compiled again.

    Parameters
    ----------
    estimators : list of str, default=None
        Names of estimators, and "files" for readers and writers; None is all of them.
    n_jobs : int, default=-1
        Number of processes; -1 is one for each core.
    verbose : int, default=0
        Whether to show progress.

    Returns
    -------
    WarmedUp
        How many functions were compiled, and where they are kept.

    Raises
    ------
    ValueError
        If there is no such estimator, or the folder of compiled code cannot be written.

    Examples
    --------
    >>> import widemargin
    >>> warmed = widemargin.warmup(["files"], n_jobs=1)
    >>> widemargin.warmup(["files"], n_jobs=1).compiled
    0
    """
    from widemargin._runtime.code_cache import folder
    from widemargin._runtime.threads import n_threads

    start = time.perf_counter()
    wanted = _wanted(estimators)
    try:
        place = str(folder())
    except OSError as error:
        raise FileError(
            f"compiled code cannot be kept ({error}); set NUMBA_CACHE_DIR to a folder that can be written"
        ) from error
    todo: queue.SimpleQueue = queue.SimpleQueue()
    for container in _CONTAINERS:
        for group in wanted:
            todo.put([group, *container])
    n_tasks = len(wanted) * len(_CONTAINERS)
    with shown_progress(verbose), task("compiling", total=n_tasks, unit="groups of functions") as shown:
        compiled = _work_off(todo, min(n_threads(n_jobs), n_tasks), shown.advance)
    return WarmedUp(compiled, time.perf_counter() - start, place)


def _wanted(estimators):
    """Return the groups of fits for some estimators, each once; ArgumentError for an unknown name."""
    names = list(GROUPS) if estimators is None else list(estimators)
    for name in names:
        if name not in GROUPS:
            raise ArgumentError(f"{spelled('estimators')} must be among {', '.join(GROUPS)}, got {name!r}")
    return list(dict.fromkeys(group for name in names for group in GROUPS[name]))


def _work_off(todo, n_processes, advance):
    """Run all tasks of a queue by so many processes; return the number of functions that they compiled."""
    counts, errors = [], []
    workers = [_start_worker() for _ in range(n_processes)]
    threads = [
        threading.Thread(target=_feed, args=(worker, todo, counts, errors, advance), daemon=True) for worker in workers
    ]
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        for worker in workers:
            worker.kill()
            worker.wait()
            for pipe in (worker.stdin, worker.stdout):
                with suppress(OSError):
                    pipe.close()
    if errors:
        raise RuntimeError(f"a process that compiles has failed: {errors[0]}")
    return sum(counts)


def _start_worker():
    """Start a process that runs tasks from its standard input; Ctrl-C is for this process alone."""
    return subprocess.Popen(
        [sys.executable, "-c", _WORKER],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=hasattr(os, "setsid"),
    )  # fmt: skip


def _feed(worker, todo, counts, errors, advance):
    """Give tasks to a process one by one until there are none, or a process has failed."""
    while not errors:
        try:
            words = todo.get_nowait()
        except queue.Empty:
            return
        try:
            worker.stdin.write(f"{json.dumps(words)}\n")
            worker.stdin.flush()
            counts.append(int(worker.stdout.readline()))
        except (OSError, ValueError):  # the process has ended, after it has said why on standard error
            errors.append(f"{' '.join(words)}, status {worker.wait()}")
            return
        advance()


def serve() -> None:
    """Run the tasks on standard input, one a line, and write how many functions each has compiled."""
    from widemargin.workflows.warmup_fits import run

    answers, sys.stdout = sys.stdout, sys.stderr  # nothing but answers is written there
    for line in sys.stdin:
        group, kind, dtype = json.loads(line)
        compiled: list[None] = []
        with before_compilation(partial(compiled.append, None)):
            run(group, kind == "sparse", dtype)
        answers.write(f"{len(compiled)}\n")
        answers.flush()
