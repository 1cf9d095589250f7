"""Reliable Ctrl-C: KeyboardInterrupt is raised again if the code that was running has swallowed it.

Python raises KeyboardInterrupt between two bytecode instructions of the main thread. If a destructor or a callback of
Numba's compiler is running at that moment, the exception is printed and discarded there, or replaced by an internal
error of the compiler, and the fit continues. The two context managers below record that Ctrl-C was pressed and raise
KeyboardInterrupt again.

The private module `_signal` is used here and nowhere else: it is what `signal` wraps, without the search for an enum
that takes a noticeable part of a fit of fifty rows. Tested with Python 3.11.
"""

import _signal  # type: ignore[import-not-found]
import signal
import sys
import threading
from contextlib import contextmanager

from widemargin._runtime.compile import before_compilation

_SECONDS_BETWEEN_SIGNALS = 0.15  # between repeated signals, until the event `handled` is set


@contextmanager
def remembering_interrupts():
    """Provide an event that is set when Ctrl-C is pressed within the block; KeyboardInterrupt is raised as usual.

    If the exception is lost during a compilation, it is raised again when that compilation ends.
    """
    pressed = threading.Event()
    counts_at_start = []  # for each compilation in progress, the number of interrupts before it started

    def interrupt(number, frame):
        pressed.set()
        interrupt.count += 1
        raise KeyboardInterrupt

    def begin():
        if threading.current_thread() is threading.main_thread():
            counts_at_start.append(interrupt.count)

    def end():
        if threading.current_thread() is not threading.main_thread() or not counts_at_start:
            return
        if counts_at_start.pop() != interrupt.count:
            raise KeyboardInterrupt

    if _handler_to_replace() is None:
        yield pressed
        return
    interrupt.raises, interrupt.count = True, 0
    with _handling(interrupt), before_compilation(begin, end):
        yield pressed


@contextmanager
def insisting_interrupts(handled):
    """Repeat Ctrl-C within the block: KeyboardInterrupt is raised again and again until the event `handled` is set.

    After Ctrl-C was pressed no function is compiled any more, because a compilation takes seconds; instead of
    compiling, the main thread raises KeyboardInterrupt.
    """
    former = _handler_to_replace()
    if former is None:
        yield
        return
    has_ended, repeats = False, []  # the event that ends the repetition, once Ctrl-C was pressed

    def interrupt(number, frame):
        if not has_ended:
            if not repeats:
                repeats.append(threading.Event())
                threading.Thread(target=_repeat_signal, args=(handled, repeats[0]), daemon=True).start()
            former(number, frame)

    def refuse():
        if repeats and threading.current_thread() is threading.main_thread():
            raise KeyboardInterrupt

    interrupt.raises = True
    try:
        with _handling(interrupt), before_compilation(refuse):
            yield
    except Exception as error:
        if repeats and not handled.is_set():  # the compiler turned the interrupt into its own error
            raise KeyboardInterrupt from error
        raise
    finally:
        has_ended = True
        for block_ended in repeats:
            block_ended.set()


def _repeat_signal(handled, block_ended):
    """Send SIGINT to this process until one of the two events is set."""
    while not block_ended.wait(_SECONDS_BETWEEN_SIGNALS) and not handled.is_set():
        signal.raise_signal(signal.SIGINT)


def _handler_to_replace():
    """Return the handler of SIGINT if we may install another: in the main thread, if nobody else handles or ignores it.

    Otherwise return None.
    """
    if threading.current_thread() is not threading.main_thread():
        return None
    handler = _signal.getsignal(signal.SIGINT)
    raises = handler is signal.default_int_handler or getattr(handler, "raises", False)
    return handler if raises else None


class _handling:
    """Handle SIGINT by `handler` within the block, and print nothing where a KeyboardInterrupt cannot be raised."""

    def __init__(self, handler):
        self._handler = handler

    def __enter__(self):
        self._former_hook, sys.unraisablehook = sys.unraisablehook, self._report
        self._former_handler = _signal.signal(signal.SIGINT, self._handler)

    def __exit__(self, *_):
        _signal.signal(signal.SIGINT, self._former_handler)
        sys.unraisablehook = self._former_hook

    def _report(self, failure):
        if failure.exc_type is not KeyboardInterrupt:
            self._former_hook(failure)
