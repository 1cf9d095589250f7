"""The tests keep to folders of their own: compiled code in the project, nothing by a fixed name in a shared folder."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.browser import _may_install

TESTS = Path(__file__).parents[1]


def test_compiled_code_of_tests_is_kept_in_the_project():
    script = "import os, tests.conftest; print(os.environ['NUMBA_CACHE_DIR'])"
    environment = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    done = subprocess.run(
        [sys.executable, "-c", script], env=environment, cwd=TESTS.parent, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == str(TESTS.parent / ".numba_cache")


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
