"""Exact kernel machines on many rows: covertype up to a million rows, mnist, and a C a hundred times the usual.

python -m benchmarks.kernel_large                                    everything; hours, since peers get an hour a fit
python -m benchmarks.kernel_large --cases covtype --rows 10000 20000 --contenders widemargin libsvm
python -m benchmarks.kernel_large --limit 240 --rows 40000 --out /tmp/large.jsonl

Every fit has a process of its own, which is ended at the limit. The result of a fit is a line of JSON, appended to the
file; a fit that is in the file already is not repeated. `minimum` is the time of computing the kernel rows of the
support vectors once by our own block code, scaled up from 2,048 of them, in the process of the fit. A contender that
has reached the limit at some size gets lines with `"extrapolated": true` for the larger ones: seconds = a rows^b,
fitted to the sizes that it finished.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from scipy.sparse import csr_matrix, issparse, load_npz, save_npz

from benchmarks.datasets import kernel_set, load
from benchmarks.page import machine, versions

_COVERTYPE, _HELD_OUT, _NOISE = "covtype.libsvm.binary.scale", 20_000, 0.01
_ROWS = [10_000, 20_000, 40_000, 100_000, 200_000, 561_012, 1_000_000]
_FEWEST_FITS = 3  # of which a power law is fitted
_ROWS_OF_MINIMUM, _ROWS_AT_ONCE = 2048, 512
_THREADS = len(os.sched_getaffinity(0))


@dataclass(frozen=True)
class Large:
    """A problem: a set, rbf parameters, and whether it is measured at growing numbers of rows."""

    set: str
    C: float
    gamma: float
    grows: bool = False


CASES = {
    "covtype": Large(_COVERTYPE, 10.0, 1.0, grows=True),
    "mnist": Large("mnist", 10.0, 0.02),
    "a9a": Large("a9a", 1.0, 0.05),
    "w8a": Large("w8a", 1.0, 0.05),
    "ijcnn1": Large("ijcnn1", 10.0, 1.0),
    "a9a-hard": Large("a9a", 100.0, 0.05),
    "w8a-hard": Large("w8a", 100.0, 0.05),
    "ijcnn1-hard": Large("ijcnn1", 1000.0, 1.0),
    "covtype-hard": Large(f"{_COVERTYPE}:30000", 1000.0, 1.0),
}


def rows_of(case, n_rows):
    """Return X, y and rows to predict with their labels; n_rows of covertype may exceed those of the set."""
    if not case.grows:
        X, y = kernel_set(case.set)
        return X, y, X[:0], y[:0]
    X, y = load(_COVERTYPE)
    random = np.random.default_rng(0)
    order = random.permutation(len(y))
    X, y = X.toarray().astype(np.float32)[order], y[order]
    test, X, y_test, y = X[:_HELD_OUT], X[_HELD_OUT:], y[:_HELD_OUT], y[_HELD_OUT:]
    if n_rows > len(y):  # a second copy, with noise
        noisy = X + _NOISE * random.standard_normal(X.shape).astype(np.float32)
        X, y = np.concatenate([X, noisy]), np.concatenate([y, y])
    return X[:n_rows], y[:n_rows], test, y_test


# --- In the process of a fit ----------------------------------------------------------------------------------------


def _widemargin(case, options):
    from widemargin import SVC

    return SVC(C=case.C, gamma=case.gamma, n_jobs=_THREADS, cache_size=options["cache"])


def _scikit_learn(case, options):
    from sklearn.svm import SVC

    return SVC(C=case.C, gamma=case.gamma, cache_size=options["cache"])


def _intelex(case, options):
    from sklearnex.svm import SVC

    return SVC(C=case.C, gamma=case.gamma, cache_size=options["cache"])


class _Libsvm:
    """LIBSVM by its own Python interface, with scikit-learn's verbs."""

    def __init__(self, case, options):
        self._options = f"-s 0 -t 2 -q -c {case.C:.17g} -g {case.gamma:.17g} -m {options['cache']:g}"

    def prepare(self, X, y):
        """Convert the rows, which LIBSVM's own program would read from a file."""
        from libsvm import svm

        self._problem = svm.svm_problem(y, csr_matrix(X, dtype=float))

    def fit(self, X, y):
        from libsvm import svm, svmutil

        model = svmutil.svm_train(self._problem, svm.svm_parameter(self._options))
        self.support_ = np.array(model.get_sv_indices()) - 1


CONTENDERS = {"widemargin": _widemargin, "libsvm": _Libsvm, "intelex": _intelex, "scikit-learn": _scikit_learn}


def _fit_here(question):
    """Fit as a question says, and print the result."""
    case, name, folder = Large(**question["case"]), question["contender"], Path(question["folder"])
    X = load_npz(folder / "X.npz") if (folder / "X.npz").exists() else np.load(folder / "X.npy")
    y = np.load(folder / "y.npy")
    for rows in (slice(3000), slice(None)):  # the first compiles, and loads libraries
        model = CONTENDERS[name](case, question)
        if hasattr(model, "prepare"):
            model.prepare(X[rows], y[rows])
        begun = time.perf_counter()
        model.fit(X[rows], y[rows])
    found = {"seconds": time.perf_counter() - begun, "peak_mb": _peak(), "support": len(model.support_)}
    if name == "widemargin":
        found |= _our_figures(model, X, len(y))
    if (folder / "test.npy").exists() and hasattr(model, "predict"):
        found["accuracy"] = float(
            np.mean(model.predict(np.load(folder / "test.npy")) == np.load(folder / "labels.npy"))
        )
    print(json.dumps(found))


def _our_figures(model, X, n_rows):
    histories = model.history_ if isinstance(model.history_, list) else [model.history_]
    sizes = [n_rows] if len(histories) == 1 else [n_rows * 2 / len(model.classes_)] * len(histories)
    found = {
        "rows_computed": float(sum(one["passes"][-1] * size for one, size in zip(histories, sizes, strict=True))),
        "gap": model.gap_,
        "status": model.status_,
        "iterations": int(np.sum(model.n_iter_)),
        "free": int(sum(facts["nSV"] - facts["nBSV"] for facts in model.facts_)),
    }
    return found | ({"minimum": _minimum(model, X)} if len(histories) == 1 else {})


def _minimum(model, X):
    """Return the seconds of computing the kernel rows of all support vectors, scaled up from some of them."""
    from widemargin.kernels.rows import KernelRows
    from widemargin.models.kernel.training_rows import block_dtype

    kernel, used = model._kernel(), np.sort(model.support_)[:_ROWS_OF_MINIMUM]
    K = KernelRows(kernel, X, dtype=block_dtype(kernel, model.tol, X.shape[0]), n_jobs=_THREADS)
    columns, out = K.columns(), np.zeros((_ROWS_AT_ONCE, X.shape[0]), K.dtype)
    begun = time.perf_counter()
    for begin in range(0, len(used), _ROWS_AT_ONCE):
        part = used[begin : begin + _ROWS_AT_ONCE]
        K.fill(part, columns, out, np.arange(len(part)))
    return (time.perf_counter() - begun) * len(model.support_) / len(used)


def _peak():
    """Return the largest resident memory of this process so far, in MB."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) / 1024
    return float("nan")


# --- Outside --------------------------------------------------------------------------------------------------------


def measured(case, contender, data, options):
    """Return the figures of a fit in a process of its own, or {"limit": seconds} if it took longer."""
    question = {"case": asdict(case), "contender": contender, "folder": str(data), "cache": options.cache}
    command = [sys.executable, "-m", "benchmarks.kernel_large", "--fit", json.dumps(question)]
    environment = os.environ | {"OMP_NUM_THREADS": str(_THREADS), "OPENBLAS_NUM_THREADS": str(_THREADS)}
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=options.limit, env=environment)
    except subprocess.TimeoutExpired:
        return {"limit": options.limit}
    if done.returncode != 0:
        return {"error": done.stderr.strip().splitlines()[-1:]}
    return json.loads(done.stdout.splitlines()[-1])


def _store(case, n_rows, folder):
    """Write the data of a case into a folder; return the number of rows."""
    X, y, test, labels = rows_of(case, n_rows)
    (save_npz if issparse(X) else np.save)(folder / ("X.npz" if issparse(X) else "X.npy"), X)
    np.save(folder / "y.npy", y)
    if test.shape[0]:
        np.save(folder / "test.npy", test)
        np.save(folder / "labels.npy", labels)
    return len(y)


def extrapolated(records, n_rows):
    """Return the seconds at n_rows by the power law of the records that have seconds, and its exponent, or None."""
    known = [(one["rows"], one["seconds"]) for one in records if "seconds" in one and not one.get("extrapolated")]
    if len(known) < _FEWEST_FITS:
        return None
    rows, seconds = np.log(np.array(known[-_FEWEST_FITS - 1 :])).T
    exponent, constant = np.polyfit(rows, seconds, 1)
    return {"seconds": float(np.exp(constant) * n_rows**exponent), "exponent": float(exponent), "extrapolated": True}


def _run(name, case, sizes, options):
    """Measure a case at each size, everybody in turn; who has reached the limit is extrapolated from then on."""
    past = _read(options.out)
    for n_rows in sizes:
        with tempfile.TemporaryDirectory() as folder:
            stored = None
            for contender in options.contenders:
                own = [one for one in past if (one["case"], one["contender"]) == (name, contender)]
                if any(one["rows"] == n_rows or not case.grows for one in own):
                    continue
                if any("limit" in one for one in own):
                    found, n_stored = extrapolated(own, n_rows) or {"skipped": "limit reached before"}, n_rows
                else:
                    stored = stored or _store(case, n_rows, Path(folder))
                    found, n_stored = measured(case, contender, folder, options), stored
                facts = {
                    "threads": _THREADS,
                    "machine": machine(),
                    "versions": versions("widemargin", "numpy", "numba"),
                }
                record = {"case": name, **asdict(case), "contender": contender, "rows": n_stored, **found, **facts}
                past.append(record)
                with open(options.out, "a") as file:
                    print(json.dumps(record), file=file)
                print(json.dumps(record), flush=True)


def _read(path):
    path = Path(path)
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--rows", nargs="+", type=int, default=_ROWS, help="numbers of rows of covtype")
    parser.add_argument("--contenders", nargs="+", choices=CONTENDERS, default=list(CONTENDERS))
    parser.add_argument("--limit", type=float, default=3600.0, help="seconds of a fit, loading included")
    parser.add_argument("--cache", type=float, default=1000.0, help="MB, everybody's")
    parser.add_argument("--out", default="benchmarks/results/kernel-large.jsonl")
    parser.add_argument("--fit", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.fit:
        _fit_here(json.loads(options.fit))
        return
    for name in options.cases:
        case = CASES[name]
        _run(name, case, options.rows if case.grows else [0], options)


if __name__ == "__main__":
    main()
