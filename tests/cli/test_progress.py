"""Progress: bars on a terminal, silence in a pipe unless lines are asked for, and nothing for what is done at once."""

import os
import pty
import signal
import subprocess
import sys
import threading
import time
from contextlib import ExitStack, redirect_stdout, suppress
from io import StringIO

import numpy as np
import pytest

from widemargin import SVC, LinearSVC, save_model
from widemargin._runtime import progress
from widemargin._runtime.progress import ProgressReport, describe, fraction, reporting, show_progress, task
from widemargin.selection.grid_result import GridResult
from widemargin.selection.live_table import GridReport
from widemargin.solvers.contract import Progress

ERASED = "\x1b[2K"
ENDLESS = ["-c", "1e9", "-e", "1e-12", "--max-iter", "none", "--loss", "hinge", "--solver", "dcd"]


def make_progress(**changes):
    """Return what a solver might report."""
    return Progress("dcd", 7, 0.5, 6.5, 12.0, 11.9, 1e-2, 1e-4, 0, 1, counts="sweeps")._replace(**changes)


class Screen(StringIO):
    """A stream that says it is a terminal."""

    def isatty(self):
        return True


@pytest.fixture
def clock(monkeypatch):
    """The time that progress goes by: a list with the seconds, to be changed."""
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    return now


@pytest.fixture
def impatient(monkeypatch):
    """Bars appear at once."""
    monkeypatch.setattr(progress, "_SECONDS_BEFORE_BARS", 0.0)
    monkeypatch.setattr(progress, "_SECONDS_BEFORE_MORE", 0.0)


def wait_for(text, stream):
    """Wait until a text has been written to a stream."""
    give_up = time.perf_counter() + 20
    while text not in stream.getvalue():
        assert time.perf_counter() < give_up, f"{text!r} is not in {stream.getvalue()!r}"
        time.sleep(0.01)


class OnTerminal:
    """`widemargin` in a process whose standard error is a terminal."""

    def __init__(self, words, directory, **streams):
        self._ours, theirs = pty.openpty()
        environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "120", "LINES": "40"}
        command = [sys.executable, "-m", "widemargin", *map(str, words)]
        streams = {"stdout": subprocess.DEVNULL, "stderr": theirs, **streams}
        self.process = subprocess.Popen(command, cwd=directory, env=environment, **streams)
        os.close(theirs)
        self.sent = ""

    def read(self, until=None):
        """Read what the terminal is sent, to the end or until a text is there; return it."""
        while until is None or until not in self.sent:
            try:
                piece = os.read(self._ours, 4096)
            except OSError:  # Linux's end of file
                piece = b""
            if not piece:
                break
            self.sent += piece.decode(errors="replace")
        return self.sent

    def unplug(self):
        """Take the terminal away."""
        os.close(self._ours)
        self._ours = None

    def end(self):
        """Return the exit status and what the terminal was sent."""
        if self._ours is not None:
            self.read()
            os.close(self._ours)
        return self.process.wait(timeout=60), self.sent


# The command


def test_a_terminal_is_sent_bars_which_are_erased_in_the_end(endless, tmp_path):
    status, sent = OnTerminal(["train", *ENDLESS, "--max-seconds", "2", endless], tmp_path).end()
    assert status == 0
    assert "dcd: sweep" in sent
    assert "━" in sent
    assert_one_line_is_left(sent, "widemargin: warning: dcd stopped")


@pytest.mark.parametrize("silence", [["-q"], ["--progress", "no"]])
def test_a_terminal_is_sent_nothing_if_that_is_asked_for(silence, endless, tmp_path):
    status, sent = OnTerminal(["train", *silence, *ENDLESS, "--max-seconds", "2", endless], tmp_path).end()
    assert status == 0
    assert sent.startswith("widemargin: warning: dcd stopped")
    assert sent.count("\n") == 1


def test_a_pipe_is_sent_nothing(run, endless):
    done = run("train", *ENDLESS, "--max-seconds", "3", endless)
    assert done.stderr.startswith("widemargin: warning: dcd stopped")
    assert done.stderr.count("\n") == 1


def test_a_pipe_is_sent_plain_lines_if_they_are_asked_for(run, endless):
    done = run("train", "--progress", "yes", *ENDLESS, "--max-seconds", "3", endless)
    *lines, warning = done.stderr.splitlines()
    assert sum(line.startswith("dcd: sweep") for line in lines) in (2, 3)
    assert warning.startswith("widemargin: warning: dcd stopped")
    assert "\x1b" not in done.stderr
    assert "━" not in done.stderr


@pytest.mark.parametrize(
    "words",
    ["train two", "predict two two.model out", "easy two", "grid two", "scale two", "report two.model two", "check two",
     "subset two 2"],
    ids=lambda words: words.split()[0],
)  # fmt: skip
def test_quiet_and_yes_contradict_each_other(call, two, words):
    command, *files = words.split()
    status, out, err = call(command, "-q", "--progress", "yes", *files)
    assert (status, out) == (2, "")
    assert err == "widemargin: error: --progress yes and -q/--quiet contradict each other; leave one of them out\n"


def test_a_model_that_was_verbose_does_not_speak_in_a_pipe(call, two, tmp_path, monkeypatch):
    monkeypatch.setattr(progress, "_SECONDS_BETWEEN_LINES", 0.0)
    save_model(SVC().fit([[0.0] * 4, [1.0] * 4], [-1, 1]).set_params(verbose=2), tmp_path / "model")
    assert call("predict", "--json", two, "model", "out")[2] == ""
    assert "predicting: " in call("predict", "--json", "--progress", "yes", two, "model", "out")[2]


def test_cross_validation_counts_its_folds(call, two, monkeypatch):
    monkeypatch.setattr(progress, "_SECONDS_BETWEEN_LINES", 0.0)
    monkeypatch.setattr(progress, "_LATER_LINES", 0.0)
    _, _, err = call("train", "--progress", "yes", "-v", "4", two)
    folds = [line for line in err.splitlines() if line.startswith("cross-validation: ")]
    assert [line.split(",")[0] for line in folds[:4]] == [f"cross-validation: {k} of 4 folds" for k in (1, 2, 3, 4)]


def test_ctrl_c_while_reading_leaves_one_line_and_status_130(tmp_path):
    running = OnTerminal(["train", "-", "model"], tmp_path, stdin=subprocess.PIPE)
    running.read(until="reading <stdin>")
    running.process.send_signal(signal.SIGINT)
    status, sent = running.end()
    running.process.stdin.close()
    assert status == 130
    assert_one_line_is_left(sent, "widemargin: error: interrupted; nothing was written")
    assert list(tmp_path.iterdir()) == []


def test_ctrl_c_while_predicting_leaves_one_line_and_status_130(tmp_path):
    head = "svm_type c_svc\nkernel_type rbf\ngamma 1\nnr_class 2\ntotal_sv 20000\nrho 0\nlabel 1 -1\nnr_sv 10000 10000"
    vectors = [f"{1 if k < 10000 else -1} 1:{k % 97} 2:{k % 89}\n" for k in range(20000)]
    (tmp_path / "model").write_text(f"{head}\nSV\n{''.join(vectors)}")
    (tmp_path / "data").write_text("".join(f"1 1:{k % 83} 2:{k % 79}\n" for k in range(400000)))
    running = OnTerminal(["predict", "data", "model", "out"], tmp_path)
    running.read(until="predicting: ")
    running.process.send_signal(signal.SIGINT)
    status, sent = running.end()
    assert status == 130
    assert_one_line_is_left(sent, "widemargin: error: interrupted; nothing was written")
    assert not (tmp_path / "out").exists()


def assert_one_line_is_left(sent, line):
    """Fail unless bars are erased, the cursor is back, and a message stands alone."""
    assert sent.rindex("\x1b[?25h") > sent.rindex("━")
    left = sent[sent.rindex(ERASED) + len(ERASED) :].replace("\x1b[?25h", "").replace("\r", "")
    assert left.startswith(line)
    assert left.count("\n") == 1


def test_a_terminal_that_goes_away_takes_no_work_with_it(endless, tmp_path):
    running = OnTerminal(["train", *ENDLESS, "--max-seconds", "4", endless], tmp_path)
    running.read(until="dcd: sweep")
    running.unplug()
    running.end()
    assert (tmp_path / "endless.model").exists()


# Lines


def test_lines_come_at_the_end_and_every_two_seconds(clock):
    stream = StringIO()
    with ProgressReport(1, stream) as report:
        report(make_progress(iteration=1))
        assert stream.getvalue() == ""
        clock[0] += 3.0
        report(make_progress(iteration=2))
        assert "sweep 2" in stream.getvalue()
        report(make_progress(iteration=3))
        assert "sweep 3" not in stream.getvalue()
    assert [line.split(",")[0] for line in stream.getvalue().splitlines()] == ["dcd: sweep 2", "dcd: sweep 3"]


def test_lines_become_more_seldom(clock):
    stream = StringIO()
    with show_progress(stream), task("counting", 3600, "seconds") as counting:
        for _ in range(3600):
            clock[0] += 1.0
            counting.advance()
    shares = [line.split(":")[1].split("%")[0] for line in stream.getvalue().splitlines()]
    assert 40 < len(shares) < 80
    assert stream.getvalue().splitlines()[0] == "counting: 0% of 3,600 seconds"
    assert stream.getvalue().splitlines()[-1] == "counting: 3,600 seconds, 3600.0 s"


def test_of_many_problems_only_the_worst_has_a_last_line():
    stream = StringIO()
    with ProgressReport(1, stream) as report:
        for number in range(10):
            report(make_progress(task=number, n_tasks=10, gap=1e-3 if number == 4 else 1e-5))
    (line,) = stream.getvalue().splitlines()
    assert line.startswith("[5/10] dcd: sweep 7, gap 1.0e-03 (asked 1e-04)")


def test_a_verbosity_of_two_is_a_line_per_turn_and_of_zero_silence():
    for verbose, n_lines in ((2, 5), (0, 0)):
        stream = StringIO()
        with ProgressReport(verbose, stream) as report:
            report.compiling()
            report.compiling()
            for iteration in range(4):
                report(make_progress(iteration=iteration))
        assert len(stream.getvalue().splitlines()) == n_lines


def test_solvers_that_were_not_seen_leave_no_line_unless_verbose_asked_for_it(clock):
    for last_lines, n_lines in ((True, 1), (False, 0)):
        stream = StringIO()
        with ProgressReport(1, stream, last_lines=last_lines) as report, report.solving(1) as solving:
            report(make_progress())
            solving.finished(1)
        assert len(stream.getvalue().splitlines()) == n_lines


def test_a_report_never_stops_a_solver():
    with ProgressReport(1, StringIO()) as report:
        assert not report(make_progress())


def test_a_line_names_the_problem_only_if_there_are_several():
    assert describe(make_progress()).startswith("dcd: sweep 7")
    assert describe(make_progress(task=2, n_tasks=3)).startswith("[3/3] dcd: sweep 7")


# Tasks


@pytest.mark.parametrize(
    ("total", "unit", "done", "seconds", "says"),
    [
        (5, "folds", 2, 10.0, "work: 2 of 5 folds, 40%, 0:15 left"),
        (60000, "rows", 15000, 40.0, "work: 25% of 60,000 rows, 2:00 left"),
        (2_400_000_000, "bytes", 600e6, 3600.0, "work: 25% of 2.4 GB, 3:00:00 left"),
        (69_430_283, "bytes", 0.5, 1.0, "work: 0% of 69.4 MB"),
        (5000, "bytes", 6000, 1.0, "work: 100% of 5 kB, 0:00 left"),
        (None, "", 0, 62.0, "work, 1:02"),
    ],
)
def test_a_task_tells_the_percentage_and_the_time_left(total, unit, done, seconds, says, clock):
    with show_progress(StringIO()), task("work", total, unit) as work:
        clock[0] += seconds
        work.advance(done)
        assert work.describe() == says


def test_the_time_left_goes_down_between_two_advances(clock):
    with show_progress(StringIO()), task("work", 4, "folds") as work:
        clock[0] += 10.0
        work.advance()
        clock[0] += 6.0
        assert work.describe().endswith("0:24 left")
        clock[0] += 54.0
        assert work.describe().endswith("0:00 left")


def test_threads_may_advance_a_task_together():
    with show_progress(StringIO()), task("work", 40_000) as work:
        threads = [threading.Thread(target=lambda: [work.advance() for _ in range(10_000)]) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert work.row.completed == 40_000


def test_without_a_report_a_task_tells_nobody(capsys, monkeypatch):
    monkeypatch.setattr(progress, "_SECONDS_BETWEEN_LINES", 0.0)
    with task("work", 2) as work:
        work.advance()
    assert capsys.readouterr() == ("", "")


def test_rich_is_imported_only_when_something_is_shown():
    script = """
import importlib.abc, sys

class Refusing(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name.split(".")[0] == "rich":
            raise ImportError("rich is wanted")

sys.meta_path.insert(0, Refusing())  # scikit-learn takes it if it is there
import widemargin
from widemargin._runtime.progress import ProgressReport, task
assert all(getattr(widemargin, name) for name in widemargin.__all__)
with ProgressReport(0), task("work", 1) as work:
    work.advance()
try:
    ProgressReport(1).__enter__()
except ImportError as error:
    assert "rich is wanted" in str(error)
else:
    raise AssertionError("nothing was shown")
"""
    subprocess.run([sys.executable, "-c", script], check=True)


def test_a_task_that_is_closed_may_still_be_advanced_by_threads_that_have_not_noticed():
    with show_progress(StringIO()):
        with task("work", 2) as work:
            work.advance()
        work.advance()
    assert work.row.completed == 1


def test_a_report_is_in_force_until_its_end_also_after_an_error():
    with show_progress(StringIO()) as outer:
        with reporting(verbose=True) as report:
            assert report is outer
        with ProgressReport(0), reporting(verbose=True) as report:
            assert report.verbose == 0
    with suppress(KeyError), show_progress(StringIO()):
        raise KeyError
    with reporting(verbose=False) as report:
        assert report.verbose == 0


def test_a_report_may_be_used_again(impatient):
    screen = Screen()
    report = ProgressReport(1, screen)
    for work in ("first", "second"):
        with report, report.task(work):
            wait_for(work, screen)
    report._ticker.join(timeout=20)
    assert not report._ticker.is_alive()


# Bars


def test_bars_appear_after_a_moment_and_are_erased(impatient, monkeypatch):
    screen = Screen()
    with show_progress(screen):
        with task("reading rows", 10) as reading:
            reading.advance(5)
            wait_for("reading rows: 5 of 10, 50%", screen)
        assert screen.getvalue().rindex(ERASED) > screen.getvalue().rindex("reading rows")
        with show_progress(screen) as report, report.solving(2):
            threading.Thread(target=report, args=(make_progress(n_tasks=2),)).start()
            wait_for("[1/2] dcd: sweep 7", screen)
    assert screen.getvalue().rindex(ERASED) > screen.getvalue().rindex("dcd")


def test_a_task_of_less_than_a_second_draws_nothing(clock):
    screen = Screen()
    with show_progress(screen) as report, task("work", 10) as work:
        clock[0] += 0.9
        work.advance()
        report._draw()
        assert screen.getvalue() == ""
        clock[0] += 0.2
        report._draw()
        assert "work: 1 of 10" in screen.getvalue()


def test_parts_of_work_with_a_bar_are_shown_only_if_they_take_longer(clock):
    with ProgressReport(1, Screen()) as report, report.task("search", 10), report.task("fold", 5):
        report(make_progress(seconds=1.0))
        clock[0] += 1.0
        assert names_of(report) == ["search", "dcd"]
        report(make_progress(seconds=1.0))
        assert names_of(report) == ["search"]
        clock[0] += 1.0
        assert names_of(report) == ["search", "fold", "dcd"]


def names_of(report):
    """Return the names of the rows that are due."""
    return [row.fields["words"]().split(":")[0] for row in progress._due(report._screen.tasks)]


def test_what_others_print_stands_above_the_bars(impatient, monkeypatch):
    screen = Screen()
    monkeypatch.setattr(sys, "stdout", screen)
    with show_progress(screen), task("work", 10):
        wait_for("work: 0 of 10", screen)
        print("hello")
        wait_for("hello\n", screen)
        assert sys.stdout is not screen
        assert screen.getvalue()[: screen.getvalue().index("hello")].endswith(ERASED)
    assert sys.stdout is screen


def test_standard_output_that_is_no_terminal_is_left_alone(impatient, monkeypatch):
    screen, page, other = Screen(), StringIO(), StringIO()
    monkeypatch.setattr(sys, "stdout", page)
    with show_progress(screen), task("work", 10):
        wait_for("work: 0 of 10", screen)
        print("hello")
        with redirect_stdout(other):
            print("world")
    assert (page.getvalue(), other.getvalue()) == ("hello\n", "world\n")


def test_standard_output_that_was_replaced_under_the_bars_stays_replaced(impatient, monkeypatch):
    screen, other = Screen(), StringIO()
    monkeypatch.setattr(sys, "stdout", screen)
    with show_progress(screen), ExitStack() as redirected:
        with task("work", 10):
            wait_for("work: 0 of 10", screen)
            redirected.enter_context(redirect_stdout(other))
        assert sys.stdout is other


def test_a_grid_leaves_its_table_and_one_line_on_a_terminal(clock):
    screen, points = Screen(), [{"C": 1.0, "gamma": 0.5}, {"C": 2.0, "gamma": 0.5}]
    result = GridResult(("C", "gamma"), tuple(points), np.array([[0.5], [0.75]]), "accuracy", np.ones(2))
    with GridReport(1, "accuracy", screen) as report:
        report.begin(result, points, 2)
        for point in points:
            clock[0] += 2.0
            report.done(point, result)
    left = screen.getvalue()[screen.getvalue().rfind(ERASED) + 1 :]
    assert "75.00" in left
    assert left.endswith("grid: 2 fits, 4.0 s\n")
    assert "━" not in left


def test_a_terminal_without_a_cursor_gets_lines(monkeypatch):
    monkeypatch.setenv("TERM", "dumb")
    screen = Screen()
    with ProgressReport(1, screen) as report:
        report(make_progress())
    assert screen.getvalue() == describe(make_progress()) + "\n"


def test_verbose_leaves_a_last_line_on_a_terminal(monkeypatch, two, rng):
    screen = Screen()
    monkeypatch.setattr(sys, "stderr", screen)
    X = rng.standard_normal((50, 3))
    LinearSVC(verbose=1).fit(X, X[:, 0] > 0)
    (last,) = [line for line in screen.getvalue().splitlines() if "objective" in line]  # a bar has no room for that
    assert last.rpartition(ERASED)[2].startswith(("dcd: sweep", "newton: step"))


@pytest.mark.parametrize(
    ("gap", "tol", "share"),
    [(1.0, 1e-4, 0.0), (1e-2, 1e-4, 0.5), (1e-4, 1e-4, 1.0), (-1e-17, 1e-4, 1.0), (5.0, 1e-4, 0.0), (0.1, 0.0, 0.0),
     (3.0, 2.0, 0.0)],
)  # fmt: skip
def test_the_bar_fills_with_the_logarithm_of_the_gap(gap, tol, share):
    assert fraction(make_progress(gap=gap, tol=tol)) == pytest.approx(share)


def test_a_bar_and_its_words_fit_into_80_columns():
    words = describe(make_progress(task=98, n_tasks=99, iteration=12345, seconds=123.4), briefly=True)
    assert len(words) + len("⠋ " + "━" * 16 + " ") <= 80


@pytest.mark.parametrize(
    ("columns", "seen"), [("80", "xx...: 12% of 987 MB, 10:00:00 left"), ("40", "reading xxx"), ("1", "")]
)
def test_text_that_is_too_long_is_cut_instead_of_wrapped(columns, seen, clock, monkeypatch):
    monkeypatch.setenv("COLUMNS", columns)
    screen = Screen()
    with show_progress(screen) as report, task("reading " + "x" * 200, 987e6, "bytes") as reading:
        clock[0] += 36000 * 12 / 88
        reading.advance(987e6 * 0.12)
        report._draw()
        assert seen in screen.getvalue()
        assert "\n" not in screen.getvalue()
