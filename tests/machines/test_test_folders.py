"""The tests keep to folders of their own: compiled code in the project, nothing by a fixed name in a shared folder."""

import os
import re
import time
from pathlib import Path

import pytest
from tests import cache_folder
from tests.report.browser.conftest import _may_install

TESTS = Path(__file__).parents[1]


def test_compiled_code_of_tests_is_kept_in_the_project(monkeypatch, tmp_path):
    assert TESTS.parent / ".numba_cache" == cache_folder.FOLDERS
    folder = cache_folder.used_now(cache_folder.digest_of_compiled_code(), tmp_path)
    assert folder.is_dir()
    monkeypatch.setenv("NUMBA_BOUNDSCHECK", "0" if os.environ.get("NUMBA_BOUNDSCHECK") == "1" else "1")
    assert cache_folder.digest_of_compiled_code() != folder.name


def test_unused_folders_are_removed_except_the_last_few_and_those_of_today(tmp_path):
    days_ago = {"a": 9, "b": 8, "c": 7, "d": 6, "e": 5, "now": 0}
    for name, days in days_ago.items():
        folder = cache_folder.used_now(name, tmp_path)
        (folder / "code.nbc").touch()
        os.utime(folder, (then := time.time() - 86_400 * days, then))
    cache_folder.remove_unused(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["c", "d", "e", "now"]
    for name in "fghijk":
        cache_folder.used_now(name, tmp_path)
    cache_folder.remove_unused(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == [*"fghijk", "now"]


def test_no_test_uses_a_fixed_name_in_the_shared_temporary_folder():
    fixed = re.compile(r"gettempdir|[\"']/tmp\b")
    paths = [path for path in TESTS.rglob("*.py") if path != Path(__file__)]
    assert [path.name for path in paths if fixed.search(path.read_text(encoding="utf-8"))] == []


@pytest.mark.parametrize(
    ("environment", "may"),
    [({}, False), ({"CI": ""}, False), ({"CI": "false"}, False), ({"CI": "true"}, True)]
    + [({"WIDEMARGIN_INSTALL_CHROMIUM": value}, value == "1") for value in "01"],
)
def test_a_browser_is_installed_only_where_that_was_asked_for(environment, may):
    assert _may_install(environment) == may
