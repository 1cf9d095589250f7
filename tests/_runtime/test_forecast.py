"""The time left of a fit, from made-up courses of its gap: right where that can be known, and silent elsewhere."""

import math
from io import StringIO
from itertools import pairwise

import pytest

from widemargin._runtime.forecast import Forecast, in_words
from widemargin._runtime.progress import ProgressReport, describe
from widemargin.solvers.contract import Progress


def forecasts(course, tol=1e-3, step=2.0, n=50):
    """Return (seconds, forecast of the seconds left) after each measurement of a gap, a function of seconds."""
    forecast, found = Forecast(), []
    for k in range(1, n + 1):
        seconds = step * k
        forecast.add(seconds, course(seconds), tol)
        found.append((seconds, forecast.seconds_left(seconds)))
        if course(seconds) <= tol:
            break
    return found


@pytest.mark.parametrize("step", [0.01, 2.0, 500.0])
def test_a_gap_that_falls_steadily_ends_when_forecast(step):
    end = 20.5 * step
    found = forecasts(lambda seconds: 1e-3 ** (seconds / end), step=step)
    assert [left for _, left in found[:2]] == [None, None]
    for seconds, left in found[2:-1]:
        assert left == pytest.approx(end - seconds, rel=1e-9)
    assert found[-1][1] is None  # converged


def test_nothing_is_said_before_two_steps_were_seen():
    forecast = Forecast()
    for seconds, gap in ((1.0, 1.0), (2.0, math.inf), (3.0, math.nan), (4.0, 0.5), (5.0, 0.3)):
        forecast.add(seconds, gap, 1e-3)
        assert forecast.seconds_left(seconds) is None
    forecast.add(6.0, 0.18, 1e-3)
    assert forecast.seconds_left(6.0) == pytest.approx(math.log(180.0) / math.log(5.0 / 3.0))


def test_nothing_is_said_of_an_end_that_is_far_beyond_what_was_seen():
    found = forecasts(lambda seconds: 1e-3 ** (seconds / 200.0), n=100)
    assert all(left is None for seconds, left in found if seconds <= 16.0)
    assert all(left is not None for seconds, left in found if 60.0 <= seconds < 200.0)


@pytest.mark.parametrize(
    "course",
    [
        lambda seconds: 0.5,  # stands still
        lambda seconds: 0.5 if seconds < 60.0 else 0.4,  # one step
        lambda seconds: 0.9 - 1e-6 * seconds,  # would take weeks
        lambda seconds: 2.0 / seconds if seconds < 3.0 else 0.5,
        lambda seconds: 5.0,  # no bound yet
    ],
)
def test_nothing_is_said_of_a_gap_that_tells_nothing(course):
    assert all(left is None for _, left in forecasts(course))


def test_a_forecast_is_withdrawn_when_the_gap_stands_still():
    found = forecasts(lambda seconds: max(0.9 ** (seconds / 2.0), 0.2), tol=1e-2, n=100)
    assert found[12][1] is not None
    assert all(left is None for _, left in found[40:])


def test_a_tolerance_of_zero_is_never_reached():
    assert all(left is None for _, left in forecasts(lambda seconds: 0.8**seconds, tol=0.0))


def test_a_gap_that_grows_again_counts_as_its_lowest_value():
    def course(seconds):
        return 1e-3 ** (seconds / 81.0) * (1.5 if round(seconds / 2.0) % 3 == 0 else 1.0)

    said = [(seconds, left) for seconds, left in forecasts(course) if left is not None]
    assert len(said) >= 20
    for seconds, left in said[5:]:
        assert 0.5 * (81.0 - seconds) - 3.0 <= left <= 2.0 * (81.0 - seconds) + 3.0


def test_another_run_starts_from_nothing():
    forecast = Forecast()
    for seconds in (1.0, 2.0, 3.0, 4.0):
        forecast.add(seconds, 0.5**seconds, 1e-3)
    assert forecast.seconds_left(4.0) is not None
    forecast.add(0.5, 0.5, 1e-3)
    assert forecast.seconds_left(0.5) is None


def test_the_time_goes_down_between_measurements_and_ends():
    forecast = Forecast()
    for seconds in (10.0, 20.0, 30.0):
        forecast.add(seconds, math.exp(-seconds / 10.0), math.exp(-6.0))
    assert [forecast.seconds_left(seconds) for seconds in (30.0, 45.0)] == [pytest.approx(30.0), pytest.approx(15.0)]
    assert forecast.seconds_left(61.0) is None


def test_the_words_do_not_flicker():
    """With speeds that vary by half from measurement to measurement, words change seldom and go back hardly ever."""
    factors, seconds, log_gap, forecast = (0.5, 1.5, 1.0), 0.0, 0.0, Forecast()
    said = []
    for k in range(90):
        seconds, log_gap = seconds + 1.0, log_gap - 0.1 * factors[k % 3]
        forecast.add(seconds, math.exp(log_gap), math.exp(-9.05))
        said.append(in_words(forecast.seconds_left(seconds)))
    assert "" not in said[20:-3]
    steady = said[20:]
    assert sum(one != other for one, other in pairwise(steady)) <= 20
    numbers = [float(one.split()[1]) * (60.0 if "min" in one else 1.0) for one in steady if one]
    assert sum(later > earlier for earlier, later in pairwise(numbers)) <= 2


def test_measurements_may_come_thousands_of_times_a_second():
    forecast = Forecast()
    for k in range(1, 20_001):
        forecast.add(1e-3 * k, 1e-3 ** (1e-3 * k / 40.0), 1e-3)
    assert len(forecast._points) <= 16
    assert forecast.seconds_left(20.0) == pytest.approx(20.0, rel=0.01)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (None, ""), (0.01, "about 1 s left"), (1.4, "about 1.5 s left"), (7.2, "about 8 s left"),
        (38.0, "about 40 s left"), (56.0, "about 50 s left"), (58.0, "about 1 min left"),
        (100.0, "about 1.5 min left"), (3000.0, "about 50 min left"), (3500.0, "about 1 h left"),
        (1e5, "about 30 h left"), (1e6, ""),
    ],
)  # fmt: skip
def test_words_have_few_digits(seconds, words):
    assert in_words(seconds) == words


# --- In a report ------------------------------------------------------------------------------------------------------


def reported(seconds, **changes):
    """Return what a solver reports whose gap is divided by ten every ten seconds."""
    gap = 10.0 ** (-seconds / 10.0)
    progress = Progress("ocas", round(seconds), seconds, seconds, 10.0, 10.0 - 10.0 * gap, gap, 1e-6, 0, 1)
    return progress._replace(counts="planes", **changes)


def lines_of(times, n_problems=1, **changes):
    """Return the lines of a report on a pipe, one for each time."""
    stream = StringIO()
    with ProgressReport(2, stream) as report, report.solving(n_problems):
        for seconds in times:
            report(reported(seconds, **changes))
    return stream.getvalue().splitlines()


def test_lines_tell_the_time_left_of_the_fit():
    lines = lines_of([5.0, 10.0, 15.0, 20.0, 40.0])
    assert [line.rpartition(", ")[2] for line in lines] == [
        "5.0 s", "10.0 s", "about 50 s left", "about 40 s left", "about 20 s left",
    ]  # fmt: skip
    assert lines[3] == "ocas: plane 20, gap 1.0e-02 (asked 1e-06), objective 10, 20.0 s, about 40 s left"


def test_the_time_left_of_one_problem_of_several_is_not_that_of_the_fit():
    times = [5.0, 10.0, 15.0, 20.0]
    assert not any("left" in line for line in lines_of(times, n_tasks=3))
    assert not any("left" in line for line in lines_of(times, n_problems=3))  # values of C, say
    assert not any("left" in line for line in lines_of(times, violation=0.1))  # the gap does not end this fit


def test_the_next_fit_of_a_report_starts_from_nothing():
    stream = StringIO()
    with ProgressReport(2, stream) as report:
        for begin in (5.0, 20.0):
            with report.solving(1):
                for seconds in (begin, begin + 5.0):
                    report(reported(seconds))
    assert len(stream.getvalue().splitlines()) == 4
    assert "left" not in stream.getvalue()


def test_beside_a_bar_the_time_left_goes_down_between_reports(monkeypatch):
    from widemargin._runtime import progress

    now = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    rows = {}

    class Rows:
        has_bars, keeps_lines, seconds_between = True, False, 1000.0
        tasks = ()

        def add_task(self, *arguments, **options):
            return 0

        def update(self, number, **fields):
            rows.update(fields)

        def draw(self):
            """Draw nothing."""

        write = remove_task = lambda self, *arguments: None
        close = draw

    monkeypatch.setattr("widemargin._runtime.progress_bars.screen_for", lambda *arguments: Rows())
    with ProgressReport(1, StringIO()) as report:
        for seconds in (5.0, 10.0, 15.0, 20.0):
            report(reported(seconds))
        said = []
        for _ in range(3):
            said.append(rows["words"]())
            now[0] += 20.0
    assert said == [
        "ocas: plane 20, gap 1.0e-02 (asked 1e-06), about 40 s left",
        "ocas: plane 20, gap 1.0e-02 (asked 1e-06), about 20 s left",
        "ocas: plane 20, gap 1.0e-02 (asked 1e-06), 60.0 s",
    ]


@pytest.mark.parametrize("solver", ["newton", "svmperf", "ocas", "sbm", "dcd", "avsf"])
def test_the_brief_words_fit_beside_a_bar_on_80_columns(solver):
    for iteration, seconds_left in ((3, 1.4), (12345, 90.0), (99999, 3000.0)):
        words = describe(
            reported(20.0)._replace(solver=solver, iteration=iteration), briefly=True, seconds_left=seconds_left
        )
        assert words.endswith(" left")
        assert len(words) <= 61
