"""Code that comes with the package is used if everything agrees, and otherwise as if it were not there."""

import llvmlite.binding
import pytest

from widemargin._runtime import shipped_code
from widemargin._runtime.code_key import digest_of_compiled_code
from widemargin.workflows.build_code import default_kind

COMPILE = """
import json
from numba.core.registry import cpu_target
from tiny import twice
twice(3)
print(json.dumps(cpu_target.target_context.codegen().magic_tuple()))
"""
USE = """
import json, pathlib, sys, warnings
from numba.core.event import install_recorder
from widemargin._runtime import shipped_code
from tiny import twice
shipped_code.FOLDER = pathlib.Path(sys.argv[1])
with warnings.catch_warnings(record=True) as caught, install_recorder("numba:compile") as recorder:
    warnings.simplefilter("always")
    value = twice(3)
print(json.dumps([value, len(recorder.buffer) // 2, [str(warning.message) for warning in caught]]))
"""


@pytest.fixture
def shipped(tiny, monkeypatch):
    """Return the path of a file with the compiled function of `tiny`, for a level of processors that this one has."""
    for name in ("NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES", "NUMBA_BOUNDSCHECK", "NUMBA_OPT"):
        monkeypatch.delenv(name, raising=False)
    kind = default_kind()
    chosen = {} if kind == shipped_code.HOST else {"NUMBA_CPU_NAME": kind, "NUMBA_CPU_FEATURES": ""}
    processor = tiny.run(COMPILE, **chosen)
    functions = {path.stem: path.read_bytes() for path in tiny.folder.glob("cache/*/*.nbc")}
    assert len(functions) == 1
    path = shipped_code.path_of(tiny.folder / "shipped", digest_of_compiled_code(), kind)
    shipped_code.pack(functions, processor, path)
    return path


def test_a_function_that_comes_with_the_package_is_not_compiled(tiny, shipped):
    assert tiny.run(USE, shipped.parent, cache="empty") == [6, 0, []]


@pytest.mark.parametrize(
    "setting", [{"WIDEMARGIN_SHIPPED_CODE": "no"}, {"NUMBA_BOUNDSCHECK": "1"}, {"NUMBA_OPT": "1"},
                {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""}], ids=str,
)  # fmt: skip
def test_settings_that_change_the_code_are_followed(setting, tiny, shipped):
    assert tiny.run(USE, shipped.parent, cache="empty", **setting) == [6, 1, []]


def test_code_of_edited_sources_is_not_used(tiny, shipped):
    path = tiny.folder / "tiny.py"
    path.write_text(path.read_text().replace("2 * x", "3 * x"))
    assert tiny.run(USE, shipped.parent, cache="empty") == [9, 1, []]


def test_code_of_other_versions_is_not_used(tiny, shipped):
    shipped.rename(shipped.with_name(f"0{shipped.name[1:]}" if shipped.name[0] != "0" else f"1{shipped.name[1:]}"))
    assert tiny.run(USE, shipped.parent, cache="empty") == [6, 1, []]


@pytest.mark.parametrize("kept", [0, 4, 200, -1])
def test_a_damaged_file_costs_at_most_a_warning(kept, tiny, shipped):
    shipped.write_bytes(shipped.read_bytes()[:kept])
    value, n_compiled, messages = tiny.run(USE, shipped.parent, cache="empty")
    assert (value, n_compiled) == (6, 1)
    assert all("cannot be read" in message for message in messages)


def test_levels_need_the_instructions_of_older_levels_and_are_tried_newest_first():
    newest, *_, oldest = shipped_code.LEVELS.values()
    assert oldest < newest
    kinds = shipped_code.kinds_for_this_processor()
    assert kinds[0] == shipped_code.HOST
    assert kinds[1:] == [level for level in shipped_code.LEVELS if level in kinds]
    known = {*llvmlite.binding.get_host_cpu_features()}
    if llvmlite.binding.get_process_triple().startswith("x86_64"):
        assert newest <= known, "these are LLVM's names"
