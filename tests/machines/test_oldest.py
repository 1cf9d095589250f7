"""The oldest versions allowed are known, and `make test-oldest` runs with exactly these."""

import importlib.util
import os
from importlib.metadata import version
from pathlib import Path

import pytest
from packaging.markers import Marker
from packaging.version import Version

_SPEC = importlib.util.spec_from_file_location("oldest", Path(__file__).with_name("oldest.py"))
oldest = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(oldest)


def applying():
    """Return name and oldest version of all requirements that apply on this system."""
    return [(name, lowest) for name, lowest, marker in oldest.oldest() if not marker or Marker(marker).evaluate()]


def test_every_requirement_has_an_oldest_version_and_those_of_all_extras_are_among_them():
    names = [name for name, _, _ in oldest.oldest()]
    assert len(names) == len(set(names))
    assert {"numpy", "numba", "llvmlite", "pytest", "mkdocs", "matplotlib"} <= set(names)


def test_a_requirement_without_an_oldest_version_is_refused(monkeypatch):
    monkeypatch.setattr(oldest, "requirements", lambda: ["numpy"])
    with pytest.raises(ValueError, match="name>=version, perhaps with an upper bound, but is 'numpy'"):
        oldest.oldest()


@pytest.mark.parametrize(("name", "lowest"), applying())
def test_what_runs_is_allowed_and_with_make_test_oldest_it_is_the_oldest(name, lowest):
    assert Version(version(name)) >= Version(lowest)
    if os.environ.get("WIDEMARGIN_OLDEST") == "1":
        assert Version(version(name)) == Version(lowest)
