"""Ctrl-C that is heard: raised as KeyboardInterrupt, and once more if whatever was running has swallowed it.

Python raises KeyboardInterrupt between two instructions of the main thread. If that is within a destructor or a
callback of the compiler, it is printed and forgotten there, or comes out as a failure of the compiler's own, and the
fit goes on.
"""

import signal
import sys
import threading
from contextlib import contextmanager

from widemargin._runtime.compile import before_compilation

_AGAIN = 0.15  # seconds after which Ctrl-C that nobody has heard is raised again


@contextmanager
def remembering_interrupts():
    """Within the block, an event that tells whether Ctrl-C was pressed; KeyboardInterrupt is raised as ever.

    If the compiler has swallowed it, it is raised again when that function has been compiled.
    """
    pressed, moments = threading.Event(), []  # how often Ctrl-C had been pressed when each compilation began

    def interrupt(number, frame):
        pressed.set()
        interrupt.count += 1
        raise KeyboardInterrupt

    def begin():
        if threading.current_thread() is threading.main_thread():
            moments.append(interrupt.count)

    def end():
        if threading.current_thread() is threading.main_thread() and moments and moments.pop() != interrupt.count:
            raise KeyboardInterrupt

    if not _ours():
        yield pressed
        return
    interrupt.raises, interrupt.count = True, 0
    with _handling(interrupt), before_compilation(begin, end):
        yield pressed


@contextmanager
def insisting_interrupts(heard):
    """Within the block, Ctrl-C raises KeyboardInterrupt again and again until someone sets the event `heard`.

    Once it was pressed nothing is compiled any more: that takes seconds, and raises KeyboardInterrupt instead.
    """
    if not _ours():
        yield
        return
    pressed, over = threading.Event(), threading.Event()
    former = signal.getsignal(signal.SIGINT)

    def interrupt(number, frame):
        if not over.is_set():
            if not pressed.is_set():
                pressed.set()
                threading.Thread(target=_insist, args=(heard, over), daemon=True).start()
            former(number, frame)

    def refuse():
        if pressed.is_set() and threading.current_thread() is threading.main_thread():
            raise KeyboardInterrupt

    interrupt.raises = True
    try:
        with _handling(interrupt), before_compilation(refuse):
            yield
    except Exception as error:
        if pressed.is_set() and not heard.is_set():  # the compiler's way of telling
            raise KeyboardInterrupt from error
        raise
    finally:
        over.set()


def _insist(heard, over):
    """Send Ctrl-C to the main thread until it is heard, or the block is over."""
    while not over.wait(_AGAIN) and not heard.is_set():
        signal.raise_signal(signal.SIGINT)


def _ours():
    """Whether Ctrl-C is ours to handle: not outside the main thread, nor if the caller or the shell handles it."""
    handler = signal.getsignal(signal.SIGINT)
    raises = handler is signal.default_int_handler or getattr(handler, "raises", False)
    return raises and threading.current_thread() is threading.main_thread()


@contextmanager
def _handling(handler):
    """Within the block, handle Ctrl-C by a function, and print nothing where KeyboardInterrupt is swallowed."""

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
