"""Progress: a bar on a terminal, lines in a pipe, silence if asked for."""

import os
import pty
import subprocess
import sys
import time
from io import StringIO

import pytest

from widemargin.progress import ProgressReport, describe, fraction
from widemargin.solvers.contract import Progress


def make_progress(**changes):
    """Return what a solver might report."""
    return Progress("dcd", 7, 0.5, 6.5, 12.0, 11.9, 1e-2, 1e-4, 0, 1)._replace(**changes)


def run_on_terminal(words, directory):
    """Run `widemargin` with standard error on a terminal; return (exit status, what the terminal was sent)."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "120", "LINES": "40"}
    command = [sys.executable, "-m", "widemargin", *map(str, words)]
    with subprocess.Popen(command, cwd=directory, stdout=subprocess.PIPE, stderr=theirs, env=environment) as process:
        os.close(theirs)
        sent = b""
        while True:
            try:
                piece = os.read(ours, 4096)
            except OSError:  # Linux's end of file
                piece = b""
            if not piece:
                break
            sent += piece
        process.stdout.read()
        status = process.wait(timeout=60)
    os.close(ours)
    return status, sent.decode()


def test_a_terminal_is_sent_a_bar(two, tmp_path):
    status, sent = run_on_terminal(["train", two], tmp_path)
    assert status == 0
    assert "━" in sent
    assert "dcd: sweep" in sent
    assert "\x1b[" in sent


def test_quiet_sends_nothing_to_a_terminal(two, tmp_path):
    assert run_on_terminal(["train", "-q", two], tmp_path) == (0, "")


def test_a_pipe_is_sent_plain_lines(run, two):
    done = run("train", two)
    assert "dcd: sweep" in done.stderr
    assert "\x1b" not in done.stderr
    assert "━" not in done.stderr


def test_lines_come_at_the_end_and_every_two_seconds(monkeypatch):
    stream, now = StringIO(), [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    with ProgressReport(1, stream) as report:
        report(make_progress(iteration=1))
        assert stream.getvalue() == ""
        now[0] += 3.0
        report(make_progress(iteration=2))
        assert "sweep 2" in stream.getvalue()
        report(make_progress(iteration=3))
        assert "sweep 3" not in stream.getvalue()
    assert [line.split(",")[0] for line in stream.getvalue().splitlines()] == ["dcd: sweep 2", "dcd: sweep 3"]


def test_of_many_problems_only_the_worst_has_a_last_line():
    stream = StringIO()
    with ProgressReport(1, stream) as report:
        for task in range(10):
            report(make_progress(task=task, n_tasks=10, gap=1e-3 if task == 4 else 1e-5))
    (line,) = stream.getvalue().splitlines()
    assert line.startswith("[5/10] dcd: sweep 7, gap 1.0e-03 (asked 1e-04)")


def test_a_verbosity_of_two_is_a_line_per_turn_and_of_zero_silence():
    for verbose, n_lines in ((2, 5), (0, 0)):
        stream = StringIO()
        with ProgressReport(verbose, stream) as report:
            report.compiling()
            for iteration in range(4):
                report(make_progress(iteration=iteration))
        assert len(stream.getvalue().splitlines()) == n_lines


def test_a_report_never_stops_a_solver():
    with ProgressReport(1, StringIO()) as report:
        assert not report(make_progress())


@pytest.mark.parametrize(
    ("gap", "tol", "share"),
    [(1.0, 1e-4, 0.0), (1e-2, 1e-4, 0.5), (1e-4, 1e-4, 1.0), (-1e-17, 1e-4, 1.0), (5.0, 1e-4, 0.0), (0.1, 0.0, 0.0),
     (3.0, 2.0, 0.0)],
)  # fmt: skip
def test_the_bar_fills_with_the_logarithm_of_the_gap(gap, tol, share):
    assert fraction(make_progress(gap=gap, tol=tol)) == pytest.approx(share)


def test_a_line_names_the_problem_only_if_there_are_several():
    assert describe(make_progress()).startswith("dcd: sweep 7")
    assert describe(make_progress(task=2, n_tasks=3)).startswith("[3/3] dcd: sweep 7")


def test_a_bar_and_its_words_fit_into_80_columns():
    words = describe(make_progress(task=98, n_tasks=99, iteration=12345, seconds=123.4), briefly=True)
    assert len(words) + len("⠋ " + "━" * 16 + " ") <= 80
