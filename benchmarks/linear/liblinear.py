"""LIBLINEAR's dual coordinate descent, through scikit-learn, in a process of its own.

scikit-learn gives LIBLINEAR's weights but not its dual variables; the dual value is read from what the solver prints.
Primal values are computed here, never by the solver.
"""

import os
import re
import sys
import tempfile
import time

import numpy as np

from benchmarks.datasets import binary
from benchmarks.machinery.worker import Worker

LADDER = [3.0, 1.0, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001, 0.0003, 0.0001]  # tolerances


class Liblinear:
    """A process that fits scikit-learn's LinearSVC(loss="hinge", fit_intercept=False) on one data set."""

    def __init__(self, name):
        self.name = name
        self._worker = Worker(_liblinear, name)

    def fit(self, C, eps, limit):
        """Return (seconds, primal, dual), or None if it took longer than `limit` seconds."""
        return self._worker.ask((C, eps), limit)

    def descend(self, C, limit, ladder=LADDER):
        """Fit with ever tighter tolerances until one takes too long; yield (eps, seconds, primal, dual) of each."""
        for eps in ladder:
            result = self.fit(C, eps, limit)
            if result is None:
                return
            yield eps, *result

    def close(self):
        """End the process."""
        self._worker.close()


def hinge_objective(X, sign, C, w):
    """Return ½|w|² + C Σ max(0, 1 − sign <w, x>)."""
    return 0.5 * w @ w + C * np.maximum(0.0, 1.0 - sign * (X @ w)).sum()


def _liblinear(name):
    from sklearn.svm import LinearSVC

    X, sign = binary(name)
    LinearSVC(loss="hinge", fit_intercept=False, dual=True, max_iter=1).fit(X, sign)

    def fit(question):
        C, eps = question
        model = LinearSVC(
            loss="hinge", fit_intercept=False, dual=True, C=C, tol=eps, max_iter=10**9, verbose=1, random_state=0
        )
        with tempfile.TemporaryFile() as printed:
            seconds = _fit_printing_into(printed, model, X, sign)
            printed.seek(0)
            value = re.findall(rb"Objective value = (\S+)", printed.read())[-1]
        return seconds, hinge_objective(X, sign, C, model.coef_.ravel()), -float(value)

    return fit


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
