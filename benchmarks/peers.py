"""Peers, each in a process of its own that can be ended at a time limit; LIBLINEAR's dual solver among them.

scikit-learn gives LIBLINEAR's weights but not its multipliers; the dual value is read from what the solver prints.
Primal values are computed here, never by the solver.
"""

import multiprocessing
import os
import re
import sys
import tempfile
import time
import warnings
from contextlib import contextmanager

import numpy as np

from benchmarks.datasets import binary

LADDER = [3.0, 1.0, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001, 0.0003, 0.0001]  # tolerances


class Worker:
    """A process that answers questions; if an answer takes too long it is ended and started anew.

    Parameters
    ----------
    prepare : function
        Called with `arguments` in the process; returns the function that answers a question. If it cannot (a library
        that does not load), `absent` is the reason.
    environment : dict or None
        Environment variables of the process, such as numbers of threads, which libraries read when they load.
    """

    def __init__(self, prepare, *arguments, environment=None):
        self._prepare, self._arguments, self._environment = prepare, arguments, environment or {}
        self._start()

    def _start(self):
        context = multiprocessing.get_context("spawn")
        self._pipe, end = context.Pipe()
        arguments = (end, self._prepare, self._arguments)
        self._process = context.Process(target=_answer_questions, args=arguments, daemon=True)
        with _environment(self._environment):
            self._process.start()
        end.close()  # so that a process that dies is noticed
        self.absent = self._pipe.recv()  # ready: data loaded, first call done
        self.pid = self._process.pid

    def ask(self, question, limit=None):
        """Return the answer, or None if it took longer than `limit` seconds; raise what the process raised."""
        self.send(question)
        if self.ready(limit):
            return self.receive()
        self.close()
        self._start()
        return None

    def send(self, question):
        """Put a question without waiting for the answer."""
        self._pipe.send(question)

    def ready(self, seconds):
        """Wait at most so long for the answer; return whether it is there."""
        return self._pipe.poll(seconds)

    def receive(self):
        """Return the answer; raise what the process raised. A process that died is started anew."""
        try:
            answer = self._pipe.recv()
        except EOFError:
            self.close()
            answer = RuntimeError(f"its process died, exit code {self._process.exitcode}")
            self._start()
        if isinstance(answer, Exception):
            raise answer
        return answer

    def close(self):
        """End the process."""
        self._process.terminate()
        self._process.join()


@contextmanager
def _environment(variables):
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _answer_questions(pipe, prepare, arguments):
    warnings.simplefilter("ignore")
    try:
        answer = prepare(*arguments)
    except (ImportError, OSError) as error:
        pipe.send(f"{type(error).__name__}: {error}")
        return
    pipe.send(None)
    while True:
        try:
            pipe.send(answer(pipe.recv()))
        except EOFError:
            return
        except Exception as error:
            pipe.send(RuntimeError(f"{type(error).__name__}: {error}"))


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
