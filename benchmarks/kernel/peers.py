"""Everybody who fits kernel machines, each library in a process of its own that can be ended at a time limit.

Threads are set before a library loads: scikit-learn's SVC has one, scikit-learn-intelex all cores (by its n_jobs),
LIBSVM (by OpenMP) and ours (by n_jobs) are measured with one and with all; OpenBLAS's own threads are off everywhere.
A fit is timed in the process, without reading, converting to LIBSVM's nodes, or compiling.
"""

import importlib
import logging
import os
import time
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_matrix, issparse

from benchmarks.datasets import kernel_set, new_rows, preparation
from benchmarks.kernel.least import seconds_by_numpy, seconds_by_our_code
from benchmarks.kernel.objective import Multipliers
from benchmarks.machinery.worker import Worker

THREADS = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
CLASSES = {"svc": "SVC", "svr": "SVR", "one-class": "OneClassSVM"}
_LIBSVM_TYPES = {"svc": 0, "one-class": 2, "svr": 3}
_LIBSVM_LETTERS = {"C": "c", "gamma": "g", "epsilon": "p", "nu": "n", "tol": "e", "cache_size": "m"}
_NO_BLAS_THREADS = {"OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
_WARM_UP_ROWS = 2500  # above our threshold for single precision


class Contender(NamedTuple):
    """A library with options of its own; `threads` are OpenMP's."""

    library: str
    options: dict = {}
    threads: int = 1


class Fit(NamedTuple):
    """A fit: its seconds, the model for judging it, a remark if anything was not as asked, and our own numbers."""

    seconds: float
    model: Multipliers
    remark: str = ""
    counts: dict | None = None


OURS, OURS_ALL = "ours, 1 thread", f"ours, {THREADS} threads"
CONTENDERS = {
    OURS: Contender("widemargin", {"n_jobs": 1}),
    OURS_ALL: Contender("widemargin", {"n_jobs": THREADS}),
    "scikit-learn": Contender("scikit-learn"),
    "LIBSVM, 1 thread": Contender("libsvm"),
    f"LIBSVM, {THREADS} threads": Contender("libsvm", threads=THREADS),
    "intelex": Contender("intelex", {"n_jobs": THREADS}),
}


class Field:
    """All contenders on one data set. `absent` tells why some are not there."""

    def __init__(self, name, contenders=CONTENDERS):
        self._workers, self.absent, self.contenders = {}, {}, {}
        for label, contender in contenders.items():
            key = contender.library, contender.threads
            if key not in self._workers:
                environment = {"OMP_NUM_THREADS": str(contender.threads), **_NO_BLAS_THREADS}
                self._workers[key] = Worker(_LIBRARIES[contender.library], name, environment=environment)
            if self._workers[key].absent is None:
                self.contenders[label] = contender
            else:
                self.absent[label] = self._workers[key].absent

    def __enter__(self):
        return self

    def __exit__(self, *error):
        for worker in self._workers.values():
            worker.close()

    def fit(self, label, parameters, limit=None):
        """Return a Fit, or None if it took longer than `limit` seconds."""
        return self._ask(label, "fit", parameters, limit)

    def predict(self, label, limit=None):
        """Return (seconds, predictions) of the library's last model, or None if it took too long."""
        return self._ask(label, "predict", {}, limit)

    def least(self, label, how):
        """Return the seconds of computing the kernel rows of our last model's support vectors once, "by_us" or not."""
        return self._ask(label, f"least_{how}", {}, None)

    def _ask(self, label, verb, parameters, limit):
        library, options, threads = self.contenders[label]
        return self._workers[library, threads].ask((verb, parameters | options), limit)


class _Estimators:
    """In its process: estimators with scikit-learn's interface, imported from `module`."""

    module = "sklearn.svm"

    def __init__(self, name):
        self._library = importlib.import_module(self.module)
        self.X, self.y = kernel_set(name)
        self.name, self.kind = name, preparation(name).kind
        self._warm_up()

    def __call__(self, question):
        verb, options = question
        return getattr(self, verb)(options)

    def _warm_up(self, **options):
        if hasattr(self._library, CLASSES[self.kind]):
            part = np.random.default_rng(1).permutation(len(self.y))[:_WARM_UP_ROWS]
            self._estimator({"tol": 0.1} | options).fit(self.X[part], self.y[part]).predict(self.X[:10])

    def _estimator(self, parameters):
        if not hasattr(self._library, CLASSES[self.kind]):
            raise NotImplementedError(f"has no {CLASSES[self.kind]}")
        return getattr(self._library, CLASSES[self.kind])(**parameters)

    def fit(self, parameters):
        self.model = self._estimator(parameters)
        begun = time.perf_counter()
        self.model.fit(self.X, self.y)
        return Fit(time.perf_counter() - begun, _multipliers(self.model), self._remark())

    def _remark(self):
        return "" if self.model.fit_status_ == 0 else "did not converge"

    def predict(self, options):
        self.model.set_params(**options)
        rows = new_rows(self.name)
        begun = time.perf_counter()
        predictions = self.model.predict(rows)
        return time.perf_counter() - begun, predictions


def _multipliers(model):
    """Return the model in LIBSVM's layout; with two classes scikit-learn has the second one positive."""
    dual_coef = model.dual_coef_.toarray() if issparse(model.dual_coef_) else np.asarray(model.dual_coef_)
    classes = getattr(model, "classes_", None)
    sign = -1.0 if classes is not None and len(classes) == 2 else 1.0
    return Multipliers(np.asarray(model.support_), sign * dual_coef, sign * np.ravel(model.intercept_), classes)


class _Intelex(_Estimators):
    """Notices when the work is handed back to scikit-learn."""

    module = "sklearnex.svm"

    def __init__(self, name):
        self._said = []
        handler = logging.Handler()
        handler.emit = lambda record: self._said.append(record.getMessage())
        logger = logging.getLogger("sklearnex")
        logger.handlers, logger.propagate = [handler], False
        super().__init__(name)
        logger.setLevel(logging.INFO)
        logger.handlers = [handler]

    def fit(self, parameters):
        self._said.clear()
        return super().fit(parameters)

    def _remark(self):
        accelerated = any("accelerated" in said for said in self._said)
        return "" if accelerated else "handed back to scikit-learn"


class _Ours(_Estimators):
    """widemargin, with the counts that its solvers keep."""

    module = "widemargin"

    def fit(self, parameters):
        from numba.core.event import install_recorder

        self.parameters = parameters
        while True:
            with install_recorder("numba:compile") as recorder:
                fit = super().fit(parameters)
            if not recorder.buffer:  # a fit in which something was compiled does not count
                return fit._replace(counts=self._counts())

    def _remark(self):
        return "" if self.model.status_ == "converged" else self.model.status_

    def _warm_up(self, **options):
        for solver in ("svmlight", "smo"):
            super()._warm_up(solver=solver, n_jobs=THREADS)

    def _counts(self):
        problems, histories = self._problems(), self.model.history_
        histories = histories if isinstance(histories, list) else [histories]
        computed = [history["passes"][-1] * len(rows) for history, (rows, _) in zip(histories, problems, strict=True)]
        return {
            "turns": int(np.sum(self.model.n_iter_)),
            "computed": float(np.sum(computed)),
            "support": sum(len(used) for _, used in problems),
            "bytes": sum(len(used) * len(rows) * self._dtype().itemsize for rows, used in problems),
            "problems": len(problems),
        }

    def _problems(self):
        """Return (rows, positions among them of the support vectors) of each pair, or of the one problem."""
        model, y = self.model, self.y
        if self.kind != "svc" or len(model.classes_) == 2:
            return [(np.arange(len(y)), np.sort(model.support_))]
        dual_coef = _multipliers(model).dual_coef
        label, problems = np.searchsorted(model.classes_, y), []
        own = label[model.support_]
        for i, j in zip(*np.triu_indices(len(model.classes_), 1), strict=True):
            rows = np.flatnonzero((label == i) | (label == j))
            used = ((own == i) & (dual_coef[j - 1] != 0.0)) | ((own == j) & (dual_coef[i] != 0.0))
            problems.append((rows, np.searchsorted(rows, np.sort(model.support_[used]))))
        return problems

    def _dtype(self):
        from widemargin.models.kernel.training_rows import block_dtype

        cost = self.model.C if self.model._are_most_rows_at_bound else 1.0
        return np.dtype(block_dtype(self.model._kernel(), self.model.tol, len(self.y), cost))

    def least_by_numpy(self, options):
        kept = [(self.X if len(rows) == len(self.y) else self.X[rows], used) for rows, used in self._problems()]
        numbers = self.parameters["gamma"], self._dtype(), options["n_jobs"]
        return sum(seconds_by_numpy(X, used, *numbers) for X, used in kept)

    def least_by_us(self, options):
        from widemargin.kernels.functions import Kernel
        from widemargin.kernels.rows import KernelRows

        kernel, seconds = Kernel("rbf", gamma=self.parameters["gamma"]), 0.0
        for rows, used in self._problems():
            subset = None if len(rows) == len(self.y) else rows
            K = KernelRows(kernel, self.X, subset=subset, dtype=self._dtype(), n_jobs=options["n_jobs"])
            seconds += seconds_by_our_code(K, used)
        return seconds


class _Libsvm:
    """In its process: LIBSVM through its own Python interface."""

    def __init__(self, name):
        from libsvm import svm, svmutil

        self._train, self._Parameter = svmutil.svm_train, svm.svm_parameter
        self.kind = preparation(name).kind
        X, y = kernel_set(name)
        self._problem = svm.svm_problem(y, csr_matrix(X))
        part = np.random.default_rng(1).permutation(len(y))[:_WARM_UP_ROWS]
        self._train(svm.svm_problem(y[part], csr_matrix(X[part])), self._Parameter("-q -e 0.1"))

    def __call__(self, question):
        _, parameters = question
        options = " ".join(f"-{_LIBSVM_LETTERS[name]} {value:.17g}" for name, value in parameters.items())
        parameter = self._Parameter(f"-s {_LIBSVM_TYPES[self.kind]} -t 2 -q {options}")
        begun = time.perf_counter()
        model = self._train(self._problem, parameter)
        return Fit(time.perf_counter() - begun, self._multipliers(model))

    def _multipliers(self, model):
        n_classes = model.nr_class
        dual_coef = np.array([model.sv_coef[k][: model.l] for k in range(n_classes - 1)])
        n_pairs = n_classes * (n_classes - 1) // 2
        classes = np.array(model.get_labels(), dtype=float) if self.kind == "svc" else None  # in order of appearance
        return Multipliers(np.array(model.get_sv_indices()) - 1, dual_coef, -np.array(model.rho[:n_pairs]), classes)


_LIBRARIES = {
    "widemargin": _Ours,
    "scikit-learn": _Estimators,
    "libsvm": _Libsvm,
    "intelex": _Intelex,
}
