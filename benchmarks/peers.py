"""LIBLINEAR's dual solver, as scikit-learn ships it, in a process of its own that can be ended at a time limit.

scikit-learn gives the weights but not the multipliers; the dual value is read from what the solver prints. Primal
values are computed here, never by the solver.
"""

import multiprocessing
import os
import re
import sys
import tempfile
import time
import warnings

import numpy as np

from benchmarks.datasets import binary


class Liblinear:
    """A process that fits scikit-learn's LinearSVC(loss="hinge", fit_intercept=False) on one data set."""

    def __init__(self, name):
        self.name = name
        self._start()

    def _start(self):
        context = multiprocessing.get_context("spawn")
        self._pipe, end = context.Pipe()
        self._process = context.Process(target=_serve, args=(self.name, end), daemon=True)
        self._process.start()
        self._pipe.recv()  # data loaded, first call done

    def fit(self, C, eps, limit):
        """Return (seconds, primal, dual), or None if it took longer than `limit` seconds."""
        self._pipe.send((C, eps))
        if self._pipe.poll(limit):
            return self._pipe.recv()
        self.close()
        self._start()
        return None

    def close(self):
        """End the process."""
        self._process.terminate()
        self._process.join()


def hinge_objective(X, sign, C, w):
    """Return ½|w|² + C Σ max(0, 1 − sign <w, x>)."""
    return 0.5 * w @ w + C * np.maximum(0.0, 1.0 - sign * (X @ w)).sum()


def _serve(name, pipe):
    from sklearn.svm import LinearSVC

    warnings.simplefilter("ignore")
    X, sign = binary(name)
    LinearSVC(loss="hinge", fit_intercept=False, dual=True, max_iter=1).fit(X, sign)
    pipe.send("ready")
    while True:
        C, eps = pipe.recv()
        model = LinearSVC(
            loss="hinge", fit_intercept=False, dual=True, C=C, tol=eps, max_iter=10**9, verbose=1, random_state=0
        )
        with tempfile.TemporaryFile() as printed:
            seconds = _fit_printing_into(printed, model, X, sign)
            printed.seek(0)
            value = re.findall(rb"Objective value = (\S+)", printed.read())[-1]
        pipe.send((seconds, hinge_objective(X, sign, C, model.coef_.ravel()), -float(value)))


def _fit_printing_into(file, model, X, sign):
    """Fit with the process's standard output turned to `file`; return the seconds it took."""
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(file.fileno(), 1)
    try:
        begun = time.perf_counter()
        model.fit(X, sign)
        return time.perf_counter() - begun
    finally:
        os.dup2(kept, 1)
        os.close(kept)
