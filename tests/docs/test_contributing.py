"""What contributors are told exists: paths, make targets, tests and variables; and the files of the public host fit."""

import re
import tomllib
from pathlib import Path

import pytest
import yaml

import widemargin

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
FORMS = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
MADE = {".venv", ".numba_cache"}  # by make and by the tests

_CODE = re.compile(r"`([^`\n]+)`")
_PATH = re.compile(r"(?<![\w/.-])\.?\w[\w.-]*/[\w./-]*|(?<![\w/.-])[\w.-]+\.(?:py|md|toml|yaml|cff)\b")
_LINK = re.compile(r"\]\((?!https?:)([^)#]+)\)")
_TEST = re.compile(r"(tests/[\w/]+\.py)::(\w+)")
_MODULE = re.compile(r"python -m (benchmarks(?:\.\w+)*)")


def paths_in(text):
    """Return the paths that a page names in links, in code and in shell blocks, without what make and tests create."""
    blocks = re.findall(r"```(?:sh)\n(.*?)```", text, flags=re.DOTALL)
    code = [piece for part in (*_CODE.findall(text), *blocks) for piece in _PATH.findall(part)]
    return sorted({path for path in (*code, *_LINK.findall(text)) if path.split("/")[0] not in MADE})


def targets_named_in(text):
    """Return the targets after `make` in inline code, in shell blocks and in the steps of a workflow."""
    commands = [*_CODE.findall(text), *re.findall(r"^(?: *(?:- )?run: )?(make .*)$", text, flags=re.MULTILINE)]
    return {found[1] for found in map(re.compile(r"make (?:PYTHON=\S+ )?([a-z][a-z-]*)").match, commands) if found}


def targets_of_makefile():
    return set(re.findall(r"^([a-z][a-z-]*):", MAKEFILE, flags=re.MULTILINE))


def test_every_path_that_contributors_are_told_of_exists():
    paths = paths_in(TEXT)
    assert {"tests/models/test_linear.py", "src/widemargin/", "docs/howto/add-a-loss.md", "pyproject.toml"} <= set(
        paths
    )
    assert [path for path in paths if not (ROOT / path).exists()] == []


def test_a_path_that_does_not_exist_is_noticed():
    named = paths_in("see `tests/none.py` and [a page](docs/none.md), not `.venv/bin/python` or `lower/upper.md`")
    assert named == ["docs/none.md", "lower/upper.md", "tests/none.py"]


def test_every_test_and_module_that_is_named_exists():
    tests = _TEST.findall(TEXT)
    assert tests
    for path, name in tests:
        assert f"def {name}(" in (ROOT / path).read_text(encoding="utf-8")
    modules = [ROOT / name.replace(".", "/") for name in _MODULE.findall(TEXT)]
    assert modules
    assert [
        path for path in modules if not (path / "__main__.py").exists() and not path.with_suffix(".py").exists()
    ] == []


@pytest.mark.parametrize("path", [ROOT / "CONTRIBUTING.md", ROOT / "README.md", *WORKFLOWS], ids=lambda path: path.name)
def test_every_make_target_that_is_named_exists(path):
    named = targets_named_in(path.read_text(encoding="utf-8"))
    assert named
    assert named <= targets_of_makefile()


def test_every_environment_variable_that_is_named_is_read_somewhere():
    paths = [path for room in ("src", "tests", "benchmarks") for path in (ROOT / room).rglob("*.py")]
    sources = [path.read_text(encoding="utf-8") for path in paths]
    variables = set(re.findall(r"WIDEMARGIN_\w+", TEXT))
    assert variables
    assert [name for name in variables if not any(f'"{name}"' in source for source in sources)] == []


def test_the_map_names_every_room_and_no_other():
    (drawn,) = re.findall(r"```none\nsrc/widemargin/\n(.*?)^tests/", TEXT, flags=re.DOTALL | re.MULTILINE)
    rooms, floor = set(), None
    for indent, name in re.findall(r"^( +)(\w+)/ ", drawn, flags=re.MULTILINE):
        floor = name if len(indent) == 2 else floor
        rooms.add(name if len(indent) == 2 else f"{floor}/{name}")
    source = ROOT / "src" / "widemargin"
    assert rooms == {path.parent.relative_to(source).as_posix() for path in source.rglob("*/__init__.py")} - {"."}


def test_make_help_lists_every_target():
    described = set(re.findall(r"^([a-z][a-z-]*):.*## \S", MAKEFILE, flags=re.MULTILINE))
    (phony,) = re.findall(r"^\.PHONY: (.*)$", MAKEFILE, flags=re.MULTILINE)
    assert described == set(phony.split()) == targets_of_makefile()


# Files of the public host


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_workflows_are_whole(path):
    workflow = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert {"name", True, "permissions", "jobs"} <= workflow.keys()  # YAML 1.1 reads the key `on` as true
    for job in workflow["jobs"].values():
        assert {"runs-on", "timeout-minutes", "steps"} <= job.keys()
        assert all(("run" in step) != ("uses" in step) for step in job["steps"])


def test_ci_runs_every_system_and_python_and_the_free_threaded_one_as_an_experiment():
    job = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text(encoding="utf-8"))["jobs"]["test"]
    matrix = job["strategy"]["matrix"]
    assert {name.partition("-")[0] for name in matrix["os"]} == {"ubuntu", "macos", "windows"}
    assert f">={matrix['python'][0]}" == PROJECT["project"]["requires-python"]
    assert matrix["python"] == [f"3.{minor}" for minor in range(11, 15)]
    assert [added["python"] for added in matrix["include"]] == ["3.14t"]
    assert "matrix.python == '3.14t'" in job["continue-on-error"]


@pytest.mark.parametrize("path", FORMS, ids=lambda path: path.name)
def test_issue_forms_are_whole(path):
    form = yaml.safe_load(path.read_text(encoding="utf-8"))
    if path.name == "config.yml":
        assert set(form) == {"blank_issues_enabled"}
        return
    assert {"name", "description", "body"} <= form.keys()
    fields = [field["id"] for field in form["body"]]
    assert len(fields) == len(set(fields))
    assert all(field["attributes"]["label"] for field in form["body"])


def test_the_bug_report_asks_for_the_version_and_the_smallest_data():
    text = (ROOT / ".github/ISSUE_TEMPLATE/bug_report.yml").read_text(encoding="utf-8")
    assert "`widemargin --version`" in text
    assert "smallest data" in text


def test_hooks_before_a_commit_need_no_network():
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))["repos"]
    assert [(place["repo"], hook["language"]) for place in hooks for hook in place["hooks"]] == [
        ("local", "system")
    ] * 3


# Versions and dependencies


def test_the_citation_has_the_version_of_the_package_and_the_page_the_same():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    page = (ROOT / "docs" / "citing.md").read_text(encoding="utf-8")
    assert citation["version"] == widemargin.__version__
    assert f"version = {{{citation['version']}}}" in page
    assert f"year    = {{{citation['date-released'].year}}}" in page
    assert citation["license"] == PROJECT["project"]["license"]
    assert f"license = {{{citation['license']}}}" in page


def test_dependency_groups_are_the_extras_for_developers():
    groups, extras = PROJECT["dependency-groups"], PROJECT["project"]["optional-dependencies"]
    assert groups.pop("dev") == [{"include-group": "test"}, {"include-group": "bench"}]
    assert groups == {name: [f"widemargin[{name}]"] for name in ("test", "docs", "bench")}
    assert groups.keys() <= extras.keys()
