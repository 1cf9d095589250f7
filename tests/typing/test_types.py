"""The public interface is annotated, the annotations are true, and a type checker tells right calls from wrong ones."""

import inspect
import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Literal, get_args, get_origin, get_type_hints

import pytest
from sklearn.utils._param_validation import StrOptions

import widemargin
from widemargin.data.matrix import Matrix
from widemargin.solvers.contract import KernelSettings, KernelSolution, Progress, Settings, Solution, Watch
from widemargin.solvers.spec import SolverSpec

HERE, ROOT = Path(__file__).parent, Path(__file__).parents[2]
CONTRACT = [KernelSettings, KernelSolution, Matrix, Progress, Settings, Solution, Watch, SolverSpec]
ESTIMATORS = [
    thing for name in widemargin.__all__ if hasattr(thing := getattr(widemargin, name), "_parameter_constraints")
]


@pytest.fixture(scope="module")
def check(tmp_path_factory):
    """Return a function that runs the type checker on a file of this folder; it returns {line: messages}."""
    memory = tmp_path_factory.mktemp("mypy")

    def run(name):
        options = [
            "--config-file",
            ROOT / "pyproject.toml",
            "--cache-dir",
            memory,
            "--hide-error-context",
            "--no-pretty",
        ]
        done = subprocess.run(
            [sys.executable, "-m", "mypy", *options, HERE / name],
            capture_output=True, text=True, cwd=ROOT, env={**os.environ, "MYPYPATH": str(ROOT / "src")},
        )  # fmt: skip
        assert done.returncode in (0, 1), done.stdout + done.stderr
        found = {}
        for line in done.stdout.splitlines():
            if place := re.match(rf".*{re.escape(name)}:(\d+): error: (.*)", line):
                found.setdefault(int(place[1]), []).append(place[2])
            else:
                assert ": note: " in line or line.startswith(("Found ", "Success: ")), line
        return found

    return run


def test_the_type_checker_accepts_a_program_that_uses_every_public_name(check):
    text = (HERE / "user_program.py").read_text(encoding="utf-8")
    used = text.partition("\n)\n")[2]
    assert [name for name in widemargin.__all__ if not re.search(rf"\b{name}\b", used)] == []
    assert check("user_program.py") == {}


def test_the_type_checker_refuses_each_wrong_line_and_no_other(check):
    lines = (HERE / "wrong_program.py").read_text(encoding="utf-8").splitlines()
    wrong = [number for number, line in enumerate(lines, start=1) if line.endswith("  # wrong")]
    assert len(wrong) > 30
    assert sorted(check("wrong_program.py")) == wrong


def functions_of(thing):
    """Yield (name, function) of a function, or of what a class of the package and its bases define for everyone."""
    if not inspect.isclass(thing):
        yield thing.__name__, thing
        return
    for base in thing.__mro__:
        if not base.__module__.startswith("widemargin."):
            continue
        for name, member in vars(base).items():
            function = getattr(member, "fn", getattr(member, "fget", getattr(member, "func", member)))
            function = getattr(function, "__func__", function)
            if inspect.isfunction(function) and (name == "__init__" or not name.startswith("_")):
                yield f"{base.__name__}.{name}", function


def public_things():
    for name in widemargin.__all__:
        thing = getattr(widemargin, name)
        members = vars(thing).values() if isinstance(thing, ModuleType) else [thing]
        for member in members:
            if getattr(member, "__module__", "").startswith("widemargin.") and not member.__name__.startswith("_"):
                yield member


@pytest.mark.parametrize("thing", [*public_things(), *CONTRACT], ids=lambda thing: thing.__name__)
def test_everything_public_is_annotated(thing):
    for name, function in functions_of(thing):
        signature = inspect.signature(function)
        bare = [
            parameter.name
            for position, parameter in enumerate(signature.parameters.values())
            if parameter.annotation is inspect.Parameter.empty
            and not (position == 0 and parameter.name in ("self", "cls"))
        ]
        assert bare == [], name
        assert name.endswith("__init__") or signature.return_annotation is not inspect.Signature.empty, name


def texts_in(annotation):
    """Return the texts that an annotation allows, None if it allows any text or none at all."""
    if get_origin(annotation) is Literal:
        return set(get_args(annotation))
    parts = [texts_in(part) for part in get_args(annotation) if get_origin(annotation) is not dict]
    found = [part for part in parts if part is not None]
    return set().union(*found) if found else None


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda estimator: estimator.__name__)
def test_annotations_allow_the_texts_that_a_fit_allows(estimator):
    hints, compared = get_type_hints(estimator.__init__), 0
    for name, constraints in estimator._parameter_constraints.items():
        annotated = texts_in(hints[name]) if name in hints else None
        if annotated is not None:
            taken = set().union(*(one.options for one in constraints if isinstance(one, StrOptions)))
            assert annotated == taken, name
            compared += 1
    assert compared


def test_the_package_says_that_it_has_types():
    assert (ROOT / "src/widemargin/py.typed").is_file()
