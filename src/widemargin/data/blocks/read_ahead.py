"""Blocks that a thread reads ahead of those who process them, so that disk and cores work at the same time."""

import threading
import time
from contextlib import contextmanager


class ReadAhead:
    """The blocks of one pass, in the order in which they will be asked for.

    Parameters
    ----------
    read : function
        `read(k)` returns block k.
    numbers : list of int
        The blocks of this pass.
    most : int
        How many blocks may be in memory at a time, those in use included.

    Attributes
    ----------
    waited : float
        Seconds that threads have waited for blocks, in all.
    """

    def __init__(self, read, numbers, most):
        self._read, self._numbers = read, list(numbers)
        self._free = threading.Semaphore(most)
        self._arrived, self._blocks, self._error = threading.Condition(), {}, None
        self._over = False
        self.waited = 0.0
        self._thread = threading.Thread(target=self._run, name="widemargin-read-ahead", daemon=True)

    def __enter__(self):
        try:
            if self._numbers:
                self._thread.start()
        except BaseException:  # Ctrl-C while the thread starts: __exit__ would not be called
            self._stop()
            raise
        return self

    def __exit__(self, kind, error, traceback):
        try:
            self._stop()
            if self._numbers:
                self._thread.join()
        except KeyboardInterrupt:  # the thread ends by itself
            self._stop()
            raise
        return False

    def _stop(self):
        """Make the thread end after the block that it is reading."""
        self._over = True
        self._free.release()

    def _run(self):
        for k in self._numbers:
            self._free.acquire()
            if self._over:
                return
            try:
                block = self._read(k)
            except BaseException as error:  # raised again in the thread that asks for the block
                with self._arrived:
                    self._error = error
                    self._arrived.notify_all()
                return
            with self._arrived:
                self._blocks[k] = block
                self._arrived.notify_all()

    @contextmanager
    def block(self, k):
        """Wait for block k, which is given up when the `with` ends."""
        begun = time.perf_counter()
        with self._arrived:
            self._arrived.wait_for(lambda: k in self._blocks or self._error is not None)
            self.waited += time.perf_counter() - begun
            if k not in self._blocks:
                raise self._error
            block = self._blocks.pop(k)
        try:
            yield block
        finally:
            del block
            self._free.release()


class OrderedSum:
    """A sum of arrays that threads compute in any order, always added in the order of their numbers.

    Rounding depends on the order of a sum; this one is the same to the bit for any number of threads.
    """

    def __init__(self, numbers, total):
        self._numbers, self.total = list(numbers), total
        self._next, self._early, self._lock = 0, {}, threading.Lock()

    def add(self, number, part):
        """Add the part of a number as soon as those before it are there."""
        with self._lock:
            self._early[number] = part
            while self._next < len(self._numbers) and self._numbers[self._next] in self._early:
                self.total += self._early.pop(self._numbers[self._next])
                self._next += 1
