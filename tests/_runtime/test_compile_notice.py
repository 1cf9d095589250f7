"""On a terminal a compilation says at once what it is doing, and leaves nothing there; elsewhere it is silent."""

import os
import subprocess
import sys

import pytest

pty = pytest.importorskip("pty", reason="there are no pseudo-terminals on this system")

TWICE = "from tiny import twice; twice(3)"
QUIET = f"from widemargin._runtime.progress import ProgressReport\nwith ProgressReport(0): {TWICE}"


def seen_on_terminal(tiny, script):
    """Return what a script writes on a terminal."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen([sys.executable, "-c", script], env=tiny.environment(), stderr=theirs, stdout=theirs)
    os.close(theirs)
    seen = b""
    try:
        while piece := os.read(ours, 1000):
            seen += piece
    except OSError:  # the other side was closed
        pass
    os.close(ours)
    assert process.wait(60) == 0
    return seen.decode().replace("\x1b[0m", "")  # which colorama, imported by Numba, writes at the end


def test_on_a_terminal_a_line_says_what_is_compiled_and_is_erased(tiny):
    seen = seen_on_terminal(tiny, TWICE)
    told = f"\r\x1b[Kwidemargin: compiling twice (once; kept in {tiny.folder / 'cache'}"
    assert seen.startswith(told)
    assert seen.endswith("\r\x1b[K")
    assert "\n" not in seen
    assert seen_on_terminal(tiny, TWICE) == "", "what is on disk is not compiled"


def test_a_silent_report_is_silent(tiny):
    assert seen_on_terminal(tiny, QUIET) == ""


def test_in_a_pipe_nothing_is_said(tiny):
    done = subprocess.run([sys.executable, "-c", TWICE], env=tiny.environment(), capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
