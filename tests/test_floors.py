"""The plan of the house: imports point down only, each line knows its room, and importing changes nothing."""

import ast
import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import widemargin

SOURCE = Path(__file__).parents[1] / "src" / "widemargin"
FLOORS = [
    {"_runtime", "errors.py"}, {"data"}, {"kernels"}, {"problems"}, {"solvers"}, {"models"},
    {"persistence", "evaluation"}, {"report"}, {"plots"}, {"selection"}, {"distributed"}, {"workflows"}, {"cli"},
]  # fmt: skip
MODULES = sorted(SOURCE.rglob("*.py"))
ROOMS = [path for path in MODULES if path.parent != SOURCE]


def floor_of(module):
    """Return the floor of a module, given as its words after `widemargin`; the package itself is above all."""
    room = module[0] if module else ""
    return next((k for k, rooms in enumerate(FLOORS) if {room, f"{room}.py"} & rooms), len(FLOORS))


def imported(path):
    """Yield the modules of the package that a file imports, as their words after `widemargin`."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "widemargin":
            words = node.module.split(".")[1:]
            folder = SOURCE.joinpath(*words)
            modules = [alias.name for alias in node.names if folder.joinpath(f"{alias.name}.py").exists()]
            yield from ([*words, name] for name in modules)
            if len(modules) < len(node.names):
                yield words
        elif isinstance(node, ast.Import):
            names = (alias.name.split(".") for alias in node.names)
            yield from (words[1:] for words in names if words[0] == "widemargin")


def calls(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call):
            yield ast.unparse(node.func)


@pytest.mark.parametrize("path", ROOMS, ids=lambda path: str(path.relative_to(SOURCE)))
def test_imports_point_down_only(path):
    own = path.relative_to(SOURCE).parts
    for module in imported(path):
        where = f"{'/'.join(own)} imports {'.'.join(module) or 'the package'}"
        assert floor_of(module) <= floor_of(own), f"{where}, which is above it"
        assert floor_of(module) < floor_of(own) or module[0] == own[0] or own[0] == "_runtime", f"{where}, beside it"


def test_no_module_imports_itself_by_a_detour():
    names = {path: list(path.relative_to(SOURCE).with_suffix("").parts) for path in MODULES}
    graph = {".".join(words): {".".join(module) for module in imported(path)} for path, words in names.items()}
    tuple(TopologicalSorter(graph).static_order())  # raises CycleError, which names the modules


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_warnings_and_prints_stay_in_their_rooms(path):
    room = path.relative_to(SOURCE).as_posix()
    used = set(calls(path))
    assert (
        not used & {"warnings.warn", "warnings.warn_explicit", "warn", "warn_explicit"} or room == "_runtime/warning.py"
    )
    assert not used & {"print", "sys.exit"} or room.startswith("cli/") or room == "__main__.py"


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_pyarrow_dask_and_onnx_stay_in_their_rooms(path):
    nodes = list(ast.walk(ast.parse(path.read_text())))
    names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)}
    names, room = {name.partition(".")[0] for name in names}, path.relative_to(SOURCE).as_posix()
    assert not {"pyarrow", "xxhash"} & names or room.startswith("data/blocks/")
    assert not {"dask", "distributed", "fsspec"} & names or room.startswith("distributed/")
    assert not {"onnx", "skl2onnx"} & names or room.startswith("persistence/export/")


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
assert all(getattr(widemargin, name).__name__.rpartition(".")[2] == name for name in widemargin.__all__)
"""
    subprocess.run([sys.executable, "-c", script], check=True)


def test_the_stub_exports_what_it_imports():
    tree = ast.parse((SOURCE / "__init__.pyi").read_text())
    imported = [alias.name for node in tree.body if isinstance(node, ast.ImportFrom) for alias in node.names]
    (exported,) = (ast.literal_eval(node.value) for node in tree.body if isinstance(node, ast.Assign))
    assert sorted(imported) == sorted(exported) == sorted(widemargin.__all__)
