"""Ctrl-C is remembered: a compiler that it strikes may swallow it, and then fail in a way of its own."""

import signal
import sys
import threading
from contextlib import contextmanager


@contextmanager
def remembering_interrupts():
    """Within the block, an event that tells whether Ctrl-C was pressed; KeyboardInterrupt is raised as ever."""
    pressed = threading.Event()

    def interrupt(number, frame):
        pressed.set()
        raise KeyboardInterrupt

    def report(failure, otherwise=sys.unraisablehook):
        if failure.exc_type is not KeyboardInterrupt:
            otherwise(failure)

    # Elsewhere than in the main thread, or if the caller's shell ignores Ctrl-C, it is not ours to handle.
    ours = threading.current_thread() is threading.main_thread()
    if not ours or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield pressed
        return
    former_hook, sys.unraisablehook = sys.unraisablehook, report
    former_handler = signal.signal(signal.SIGINT, interrupt)
    try:
        yield pressed
    finally:
        signal.signal(signal.SIGINT, former_handler)
        sys.unraisablehook = former_hook
