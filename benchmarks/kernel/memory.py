"""Peak memory of training on many rows with a small cache, each fit in a fresh process.

The peak is the process's own (VmHWM): getrusage's ru_maxrss begins with that of the process that started it. The data
are handed over in a file of raw numbers, so that reading text is not in the peak.
"""

import importlib
import resource
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
from scipy.sparse import issparse

from benchmarks.datasets import kernel_set
from benchmarks.kernel.cases import Case
from benchmarks.kernel.peers import OURS, OURS_ALL, THREADS
from benchmarks.kernel.turns import asked_of
from benchmarks.machinery.worker import Worker

CASE, CACHE = Case("covtype.libsvm.binary.scale:100000", 1.0, 10.0), 200.0
QUICK = Case("svmguide1", 10.0, 1.0)
_MODULES = {OURS: "widemargin", OURS_ALL: "widemargin", "scikit-learn": "sklearn.svm", "intelex": "sklearnex.svm"}
_JOBS = {OURS: {"n_jobs": 1}, OURS_ALL: {"n_jobs": THREADS}, "intelex": {"n_jobs": THREADS}}
_MEGABYTE = 2**20


def memory_table(page, cases, options):
    """Measure each library in its own process, and compare with what is allowed."""
    for case in page.each("memory", cases, lambda case: case.set):
        _measure_all(page, case, options)


def _measure_all(page, case, options):
    X, y = kernel_set(case.set)
    X = np.ascontiguousarray(X.toarray() if issparse(X) else X)
    data = X.nbytes / _MEGABYTE
    allowed = CACHE + 3 * data
    columns = ["set", "who", "rows", "data MB", "cache MB", "peak of fit MB", "allowed MB", "part of it", "seconds"]
    with tempfile.TemporaryDirectory() as folder:
        np.save(Path(folder) / "X.npy", X)
        np.save(Path(folder) / "y.npy", y)
        for label in _MODULES:
            growth, seconds = measure(label, case, folder, options)
            peak = ["–", f"{allowed:.0f}", "–"]
            if growth is not None:
                peak = [f"{growth + data:.0f}", f"{allowed:.0f}", f"{(growth + data) / allowed:.2f}"]
            page.put("memory", columns, [case.set, label, len(y), f"{data:.0f}", f"{CACHE:g}", *peak, seconds])


def measure(label, case, folder, options):
    """Return by how many MB a fit made the process grow at most, and its seconds, or the limit, in words."""
    parameters = asked_of(case, options) | {"cache_size": CACHE} | _JOBS.get(label, {})
    threads = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    worker = Worker(_trainer, _MODULES[label], folder, parameters, environment=threads)
    if worker.absent is not None:
        return None, worker.absent
    before = worker.ask("get ready")
    peak, begun = before, time.perf_counter()
    worker.send("fit")
    while not worker.ready(0.5) and time.perf_counter() - begun < options.limit:
        peak = max(peak, megabytes("VmHWM", worker.pid))
    if worker.ready(0.0):
        after, seconds = worker.receive()
        peak, seconds = max(peak, after), f"{seconds:.3g}"
    else:
        seconds = f">{options.limit:.0f}"
    worker.close()
    return peak - before, seconds


def _trainer(module, folder, parameters):
    """In its process: load, fit a small part; then answer "get ready" by memory held, "fit" by peak and seconds."""
    estimator = importlib.import_module(module).SVC(**parameters)
    X, y = np.load(Path(folder) / "X.npy"), np.load(Path(folder) / "y.npy")
    estimator.fit(X[:3000], y[:3000]).predict(X[:10])

    def answer(question):
        if question == "get ready":
            with suppress(OSError):
                Path("/proc/self/clear_refs").write_text("5")  # Linux: the peak begins anew
            return megabytes("VmRSS")
        begun = time.perf_counter()
        estimator.fit(X, y)
        return megabytes("VmHWM"), time.perf_counter() - begun

    return answer


def megabytes(what, pid="self"):
    """Return the resident memory of a process: VmRSS at present, VmHWM at most so far. On other systems the latter."""
    status = Path(f"/proc/{pid}/status")
    if status.exists():
        line = next(line for line in status.read_text().splitlines() if line.startswith(what))
        return int(line.split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (_MEGABYTE if sys.platform == "darwin" else 1024)
