"""The plan of the house: imports point down only, each line knows its room, and importing changes nothing."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import widemargin

SOURCE = Path(__file__).parents[1] / "src" / "widemargin"
FLOORS = ["data", "kernels", "problems", "solvers", "models", "scale", "tools"]
MODULES = sorted(SOURCE.rglob("*.py"))


def floor_of(parts):
    return FLOORS.index(parts[0]) if parts and parts[0] in FLOORS else None


def imported(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("widemargin."):
            yield node.module.split(".")[1:]
        elif isinstance(node, ast.Import):
            yield from (name.name.split(".")[1:] for name in node.names if name.name.startswith("widemargin."))


def calls(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call):
            yield ast.unparse(node.func)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_imports_point_down_only(path):
    own = floor_of(path.relative_to(SOURCE).parts)
    for parts in imported(path):
        target = floor_of(parts)
        assert own is None or target is None or target <= own, f"{path.name} climbs to {'.'.join(parts)}"


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_warnings_and_prints_stay_in_their_rooms(path):
    room = path.relative_to(SOURCE).as_posix()
    used = set(calls(path))
    assert not used & {"warnings.warn", "warnings.warn_explicit", "warn", "warn_explicit"} or room == "_warning.py"
    assert not used & {"print", "sys.exit"} or room.startswith("tools/") or room == "__main__.py"


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_files_stay_below_500_lines_and_functions_below_60(path):
    text = path.read_text()
    assert text.count("\n") <= 500
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef) and node.name != "__init__":
            body = node.body[1:] if ast.get_docstring(node) else node.body
            length = body[-1].end_lineno - body[0].lineno + 1 if body else 0
            assert length <= 60, f"{path.name}: {node.name} has {length} lines"


def test_importing_compiles_nothing_and_changes_nothing_in_the_process():
    script = """
import os, signal, threading, warnings, numpy, sklearn, numba, scipy.sparse, rich.progress
before = (dict(os.environ), threading.active_count(), list(warnings.filters), signal.getsignal(signal.SIGINT),
          numpy.random.get_state()[1].tolist())
from numba.core import event
listener = event.RecordingListener()
event.register("numba:compile", listener)
from widemargin import *
after = (dict(os.environ), threading.active_count(), list(warnings.filters), signal.getsignal(signal.SIGINT),
         numpy.random.get_state()[1].tolist())
assert before == after, "import changed the process"
assert not listener.buffer, "import compiled something"
"""
    subprocess.run([sys.executable, "-c", script], check=True)


def test_public_names_are_imported_when_they_are_used():
    script = """
import sys, widemargin
assert not {"numba", "scipy", "sklearn"} & set(sys.modules), "importing the package imports everything"
assert set(widemargin.__all__) <= set(dir(widemargin))
assert all(getattr(widemargin, name).__name__ == name for name in widemargin.__all__)
"""
    subprocess.run([sys.executable, "-c", script], check=True)


def test_the_stub_exports_what_it_imports():
    tree = ast.parse((SOURCE / "__init__.pyi").read_text())
    imported = [alias.name for node in tree.body if isinstance(node, ast.ImportFrom) for alias in node.names]
    (exported,) = (ast.literal_eval(node.value) for node in tree.body if isinstance(node, ast.Assign))
    assert sorted(imported) == sorted(exported) == sorted(widemargin.__all__)
