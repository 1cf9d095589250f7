"""A process of its own for a contender, which can be ended at a time limit."""

import multiprocessing
import os
import warnings
from contextlib import contextmanager


class ProcessDied(RuntimeError):
    """The process of a Worker ended without an answer."""


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
            answer = ProcessDied(f"its process died, exit code {self._process.exitcode}")
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
