"""The state is that of the code that is measured: its contents, not its commit, and not the pages."""

import pytest
from benchmarks.machinery.state import commit, key, state, state_of_code, state_of_package, versions


@pytest.fixture
def root(tmp_path):
    for name in ("src/package/module.py", "benchmarks/results/page.md", "benchmarks/benchopt/objective.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("before")
    return tmp_path


@pytest.mark.parametrize("name", ["src/package/module.py", "src/package/new.py", "benchmarks/benchopt/objective.py"])
def test_a_changed_source_is_another_state(root, name):
    before = state_of_code(root)
    (root / name).write_text("after")
    assert state_of_code(root) != before


def test_a_page_that_is_written_is_the_same_state(root):
    before = state_of_code(root)
    (root / "benchmarks/results/page.md").write_text("after")
    assert state_of_code(root) == before


def test_another_machine_or_version_is_another_key(root):
    found = state(root)
    assert key(found) != key(found | {"machine": "another"})
    assert key(found) != key(found | {"versions": versions(("numpy",))})
    assert key(found) == key(dict(found))


def test_a_folder_without_a_repository_has_no_commit(root):
    assert commit(root) == "no commit"


def test_the_state_of_the_package_does_not_depend_on_the_benchmarks(root):
    before = state_of_package(root)
    (root / "benchmarks/benchopt/objective.py").write_text("after")
    assert state_of_package(root) == before
    (root / "src/package/module.py").write_text("after")
    assert state_of_package(root) != before
