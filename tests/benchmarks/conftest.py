"""A page of two units that measures nothing, in folders of its own."""

import pytest
from benchmarks.machinery import page as page_module
from benchmarks.machinery import records as records_module
from benchmarks.machinery.page import Frame, How, Page, Table

STATE = {"code": "0123456789ab", "package": "ba9876543210", "machine": "a machine", "versions": {"Python": "3"}}


@pytest.fixture
def state(monkeypatch):
    """The state that records are kept for; a test may change it."""
    present = dict(STATE)
    monkeypatch.setattr(records_module, "state", lambda root: dict(present))
    monkeypatch.setattr(records_module, "commit", lambda root: "0123456")
    return present


class Quiet:
    """Stands for `OtherWork`: others use as many cores as the test says."""

    cores_of_others = 0.0

    def cores(self):
        return type(self).cores_of_others


@pytest.fixture
def others(monkeypatch):
    """The work of others, `others.cores_of_others`, which is none at first."""
    monkeypatch.setattr(Quiet, "cores_of_others", 0.0)
    monkeypatch.setattr(page_module, "OtherWork", Quiet)
    monkeypatch.setattr(page_module, "wait_until_quiet", lambda patience, most: Quiet.cores_of_others)
    return Quiet


@pytest.fixture
def make(tmp_path, state, others):
    """Return a function that makes a page in the test's folders: make(measure, cases, **how)."""

    def made(measure, cases=("a", "b"), quick_cases=(), **how):
        def table(page, chosen, options):
            for case in page.each("times", chosen):
                page.put("times", ["case", "seconds"], [case, measure(case)], n_key=1)
                page.keep(f"fact of {case}", case)

        frame = Frame(
            "# A page", {"times": ("Times", "Some.")}, {"times": Table(table, list(cases), list(quick_cases))}
        )
        how = How(**{"minutes": 1.0} | how)
        return Page("some", frame, how, tmp_path / "build", tmp_path / "results", tmp_path / "docs")

    return made
