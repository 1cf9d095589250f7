"""Reliable Ctrl-C: KeyboardInterrupt is raised again if the code that was running has swallowed it.

Python raises KeyboardInterrupt between two bytecode instructions of the main thread. If a destructor or a callback of
Numba's compiler is running at that moment, the exception is printed and discarded there, or replaced by an internal
error of the compiler, and the fit continues. The two context managers below record that Ctrl-C was pressed and raise
KeyboardInterrupt again.
"""

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

    if not _may_handle_interrupts():
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
    if not _may_handle_interrupts():
        yield
        return
    pressed, block_ended = threading.Event(), threading.Event()
    former = signal.getsignal(signal.SIGINT)

    def interrupt(number, frame):
        if not block_ended.is_set():
            if not pressed.is_set():
                pressed.set()
                threading.Thread(target=_repeat_signal, args=(handled, block_ended), daemon=True).start()
            former(number, frame)

    def refuse():
        if pressed.is_set() and threading.current_thread() is threading.main_thread():
            raise KeyboardInterrupt

    interrupt.raises = True
    try:
        with _handling(interrupt), before_compilation(refuse):
            yield
    except Exception as error:
        if pressed.is_set() and not handled.is_set():  # the compiler turned the interrupt into its own error
            raise KeyboardInterrupt from error
        raise
    finally:
        block_ended.set()


def _repeat_signal(handled, block_ended):
    """Send SIGINT to this process until one of the two events is set."""
    while not block_ended.wait(_SECONDS_BETWEEN_SIGNALS) and not handled.is_set():
        signal.raise_signal(signal.SIGINT)


def _may_handle_interrupts():
    """Return whether we may install a handler: in the main thread, and if nobody else handles or ignores SIGINT."""
    handler = signal.getsignal(signal.SIGINT)
    raises = handler is signal.default_int_handler or getattr(handler, "raises", False)
    return raises and threading.current_thread() is threading.main_thread()


@contextmanager
def _handling(handler):
    """Handle SIGINT by `handler` within the block, and print nothing where a KeyboardInterrupt cannot be raised."""

    def report(failure, otherwise=sys.unraisablehook):
        if failure.exc_type is not KeyboardInterrupt:
            otherwise(failure)

    former_hook, sys.unraisablehook = sys.unraisablehook, report
    former_handler = signal.signal(signal.SIGINT, handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, former_handler)
        sys.unraisablehook = former_hook
