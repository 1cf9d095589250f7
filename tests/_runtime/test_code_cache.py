"""Compiled code on disk belongs to its sources: whatever is edited, no stale code is run, and old code is removed."""

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

import widemargin
from widemargin._runtime import code_cache, code_key

PACKAGE = Path(widemargin.__file__).parent


def copy_of_package(folder):
    shutil.copytree(PACKAGE, folder / "widemargin", ignore=shutil.ignore_patterns("__pycache__", "_code"))
    return folder / "widemargin"


def run(script, folder, **environment):
    """Run a script with the package in a folder, and its cache beside that; return the JSON that it prints."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_")}
    environment = {"PYTHONPATH": str(folder), "NUMBA_CACHE_DIR": str(folder / "cache"), **environment}
    done = subprocess.run(
        [sys.executable, "-c", script], env=inherited | environment, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


LOSSES = """
import json
from widemargin.problems import losses
from numba.core.event import install_recorder
with install_recorder("numba:compile") as recorder:
    value = losses.CALLER(4.0)
print(json.dumps([losses.__file__, value, len(recorder.buffer) // 2]))
"""


def test_an_edited_function_in_another_file_is_compiled_again_with_its_callers(tmp_path):
    package = copy_of_package(tmp_path)
    helper = package / "problems" / "magnitudes.py"
    helper.write_text(
        "from widemargin._runtime.compile import compiled\n\n\n@compiled\ndef helper(x):\n    return 2.0 * x\n"
    )
    (package / "problems" / "losses.py").write_text(
        "from widemargin._runtime.compile import compiled\nfrom widemargin.problems.magnitudes import helper\n\n\n"
        "@compiled\ndef caller(x):\n    return helper(x) + 1.0\n"
    )
    script = LOSSES.replace("CALLER", "caller")
    assert run(script, tmp_path)[1:] == [9.0, 2]
    assert run(script, tmp_path)[1:] == [9.0, 0], "what was compiled is kept"
    helper.write_text(helper.read_text().replace("2.0 * x", "3.0 * x"))
    assert run(script, tmp_path)[1:] == [13.0, 2]
    helper.write_text(helper.read_text().replace("3.0 * x", "2.0 * x"))
    assert run(script, tmp_path)[1:] == [9.0, 0], "both versions are kept, each for itself"


def test_settings_of_numba_and_versions_have_digests_of_their_own(monkeypatch):
    for name in [name for name in os.environ if name.startswith("NUMBA_")]:
        monkeypatch.delenv(name)
    digests = [code_key.digest_of_compiled_code()]
    monkeypatch.setenv("NUMBA_CACHE_DIR", "elsewhere")
    assert code_key.digest_of_compiled_code() == digests[0]
    monkeypatch.setenv("NUMBA_BOUNDSCHECK", "1")
    digests.append(code_key.digest_of_compiled_code())
    version = code_key.version
    monkeypatch.setattr(code_key, "version", lambda name: "0.0.1" if name == "llvmlite" else version(name))
    code_key.digest_of_sources.cache_clear()
    digests.append(code_key.digest_of_compiled_code())
    monkeypatch.undo()
    code_key.digest_of_sources.cache_clear()
    assert len({*digests}) == 3


def test_all_compiled_functions_are_in_rooms_that_the_digest_covers():
    users = [path for path in PACKAGE.rglob("*.py") if "import" in path.read_text() and "@compiled" in path.read_text()]
    assert len(users) > 30
    assert {path.relative_to(PACKAGE).parts[0] for path in users} <= {*code_key.ROOMS}


def test_unused_folders_are_removed_except_the_last_few_and_those_of_today(tmp_path):
    for name, days in {"a": 9, "b": 8, "c": 7, "d": 6, "e": 5, "now": 0}.items():
        folder = tmp_path / f"widemargin-{name}"
        folder.mkdir()
        (folder / "code.nbc").touch()
        os.utime(folder, (then := time.time() - 86_400 * days, then))
    (tmp_path / "of another package").mkdir()
    code_cache.remove_unused(tmp_path)
    assert sorted(path.name[-1] for path in tmp_path.glob("widemargin-*")) == ["c", "d", "e", "w"]
    assert (tmp_path / "of another package").exists()


def test_processes_that_compile_the_same_at_the_same_time_do_no_harm(tmp_path):
    (tmp_path / "tiny.py").write_text(
        "from widemargin._runtime.compile import compiled\n\n\n@compiled\ndef twice(x):\n    return 2 * x\n"
    )
    environment = os.environ | {
        "NUMBA_CACHE_DIR": str(tmp_path / "cache"),
        "PYTHONPATH": os.pathsep.join([str(tmp_path), str(PACKAGE.parent)]),
    }
    command = [
        sys.executable,
        "-W",
        "error",
        "-c",
        "from tiny import twice; assert twice(3) == 6; assert twice(3.0) == 6",
    ]
    processes = [subprocess.Popen(command, env=environment) for _ in range(4)]
    assert [process.wait(120) for process in processes] == [0] * 4
    assert len([*tmp_path.rglob("*.nbc")]) == 2
    assert not [*tmp_path.rglob("*.tmp")]


@pytest.mark.parametrize("name", ["_numba_type_", "signatures", "stats", "py_func"])
def test_a_function_that_is_not_compiled_yet_has_the_attributes_of_one_that_is(name):
    from widemargin.problems.losses import loss_and_slope

    assert hasattr(loss_and_slope, name)
