"""A page is one run: of one state, on a quiet machine, within its minutes; a run that was killed goes on."""

import importlib.util
import time

import pytest
from benchmarks.machinery.load import MachineBusyError
from benchmarks.machinery.page import sections_of
from benchmarks.pages import MOST_MINUTES, MOST_QUICK_MINUTES, PAGES


class Killed(BaseException):
    """Stands for kill -9: nothing of the page's code may catch it."""


def counted(calls):
    """Return a measurement that appends its case to a list."""

    def measure(case):
        calls.append(case)
        return len(calls)

    return measure


def killed_at(case, calls):
    """Return a measurement that is killed at a case."""

    def measure(now):
        if now == case:
            raise Killed
        return counted(calls)(now)

    return measure


def rows(path):
    return {row["case"]: row["seconds"] for row in sections_of(path.read_text())["times"]}


def test_a_page_has_every_unit_and_tells_its_state_and_load(make):
    path = make(lambda case: "1.5").run()
    text = path.read_text()
    assert path.parent.name == "results"
    assert rows(path) == {"a": "1.5", "b": "1.5"}
    state = ("Commit 0123456", "package ba9876543210", "0123456789ab", "a machine", "Python 3")
    for words in (*state, "load average", "2 units"):
        assert words in text


def test_a_run_that_was_killed_goes_on_with_the_unit_it_was_measuring(make):
    calls = []
    with pytest.raises(Killed):
        make(killed_at("b", calls)).run()
    path = make(counted(calls)).run()
    assert calls == ["a", "b"]
    assert rows(path) == {"a": "1", "b": "2"}


def test_a_record_that_was_cut_off_is_measured_again(make):
    calls = []
    page = make(counted(calls))
    page.run()
    whole = page.records.path.read_bytes()
    page.records.path.write_bytes(whole[:-20])
    assert rows(make(counted(calls)).run()) == {"a": "1", "b": "3"}
    assert calls == ["a", "b", "b"]


def test_records_of_another_state_are_not_mixed(make, state):
    calls = []
    with pytest.raises(Killed):
        make(killed_at("b", calls)).run()
    state["code"] = "another code"
    make(counted(calls)).run()
    assert calls == ["a", "a", "b"]


def test_records_of_other_versions_are_not_mixed(make, state):
    calls = []
    make(counted(calls)).run()
    state["versions"] = {"Python": "4"}
    make(counted(calls)).run()
    assert calls == ["a", "b", "a", "b"]


def test_the_first_state_finds_its_records_again(make, state):
    calls = []
    make(counted(calls)).run()
    state["code"] = "another code"
    make(counted(calls)).run()
    state["code"] = "0123456789ab"
    make(counted(calls)).run()
    assert calls == ["a", "b", "a", "b"]


def test_a_page_is_not_written_over_while_others_work(make, others):
    path = make(lambda case: "1").run()
    before = path.read_text()
    others.cores_of_others = 0.9
    calls = []
    with pytest.raises(MachineBusyError, match=r"0\.90 cores during each of 3 attempts at times: c"):
        make(counted(calls), ["c", "d"]).run()
    assert calls == ["c", "c", "c"]
    assert path.read_text() == before


def test_a_unit_is_repeated_once_others_have_ended(make, others):
    calls = []

    def measure(case):
        calls.append(case)
        others.cores_of_others = 0.9 if len(calls) == 1 else 0.0
        return len(calls)

    assert rows(make(measure).run()) == {"a": "2", "b": "3"}


def test_force_writes_beside_the_page_and_says_so(make, others):
    others.cores_of_others = 0.9
    path = make(lambda case: "1", force=True).run()
    assert path.parent.name == "build"
    assert path.name == "some.busy.md"
    assert "**Others used the machine during**: times: a, times: b." in path.read_text()


def test_what_was_forced_is_measured_again_on_a_quiet_machine(make, others):
    calls = []
    others.cores_of_others = 0.9
    make(counted(calls), force=True).run()
    others.cores_of_others = 0.0
    path = make(counted(calls)).run()
    assert path.parent.name == "results"
    assert rows(path) == {"a": "3", "b": "4"}


def test_what_is_beyond_the_minutes_is_left_out_and_named(make):
    def slow(case):
        time.sleep(0.02)
        return "1"

    path = make(slow, minutes=0.01 / 60.0).run()
    assert rows(path) == {"a": "1"}
    assert "Left out, since the minutes were used up: times: b." in path.read_text()


def test_the_minutes_hold_over_runs_that_were_killed(make):
    def slow(case):
        time.sleep(0.02)
        if case == "b":
            raise Killed
        return "1"

    with pytest.raises(Killed):
        make(slow, minutes=1.0).run()
    assert rows(make(slow, minutes=0.01 / 60.0).run()) == {"a": "1"}


def test_a_part_of_the_units_does_not_replace_the_page(make):
    path = make(lambda case: "1", only=("times: b",)).run()
    assert path.name == "some.partial.md"
    assert "**Not measured yet**: times: a." in path.read_text()


def test_rows_stand_in_the_order_of_the_cases_whatever_was_measured_first(make):
    make(lambda case: "1", only=("times: b",)).run()
    assert list(rows(make(lambda case: "1").run())) == ["a", "b"]


def test_a_quick_run_writes_into_the_build_folder(make):
    path = make(lambda case: "1", quick_cases=["b"], quick=True).run()
    assert path.parent.name == "quick"
    assert rows(path) == {"b": "1"}


def test_all_pages_together_keep_the_promised_minutes():
    assert sum(entry.minutes for entry in PAGES.values()) <= MOST_MINUTES == 180
    assert sum(entry.quick_minutes for entry in PAGES.values()) <= MOST_QUICK_MINUTES == 10


@pytest.mark.parametrize("name", PAGES)
def test_every_page_has_its_module(name):
    assert importlib.util.find_spec(PAGES[name].module) is not None
