"""The command `widemargin`, which is `python -m widemargin` too: what must be in place before the rest is imported.

Importing NumPy, SciPy and Numba takes a second. Ctrl-C in that time ends the process without a traceback, and streams
that are closed are replaced before some library looks at them.
"""

import os
import signal
import sys
from contextlib import contextmanager, suppress

from widemargin.cli.streams import prepare_streams

_INTERRUPTED = 130  # exit status, as shells have it


def main(argv=None):
    """Run the command line; return the exit status. `argv` are the words after `widemargin`, None for the process's."""
    prepare_streams()
    with _ending_at_ctrl_c():
        from widemargin.cli.main import main as run
    return run(argv)


@contextmanager
def _ending_at_ctrl_c():
    """Within the block, Ctrl-C ends the process at once: there is nothing yet that would have to be put in order."""
    former = signal.getsignal(signal.SIGINT)
    if former is not signal.default_int_handler:  # ignored, as in the background of a script, or handled by another
        yield
        return
    signal.signal(signal.SIGINT, _end)
    yield
    signal.signal(signal.SIGINT, former)


def _end(number, frame):
    with suppress(OSError):
        os.write(sys.stderr.fileno(), b"widemargin: error: interrupted; nothing was written\n")
    os._exit(_INTERRUPTED)


if __name__ == "__main__":
    sys.exit(main())
