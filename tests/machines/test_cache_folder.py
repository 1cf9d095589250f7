"""Compiled code is kept on disk where that is possible; where it is not, everything works, after one warning."""

import importlib.util
import json
import os
import shutil
import subprocess
import sys
import warnings
from pathlib import Path

import numba
import pytest

import widemargin
from widemargin._runtime import warning

PACKAGE = Path(widemargin.__file__).parent

# The owner of a folder without the permission to write cannot write there, unless it is root with its capabilities.
BECOME_ORDINARY = """
import ctypes, os, sys, tempfile
if os.geteuid() == 0 and sys.platform == "linux":
    version_3, this_process = 0x20080522, 0
    assert ctypes.CDLL(None).capset((ctypes.c_uint32 * 2)(version_3, this_process), (ctypes.c_uint32 * 6)()) == 0
try:
    tempfile.TemporaryFile(dir=os.environ["HOME"])
except PermissionError:
    pass
else:
    sys.exit(77)
"""

FIT = """
import json, warnings
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    import widemargin
    n_on_import = len(caught)
    model = widemargin.OneClassSVM(kernel="linear").fit([[1.0], [2.0], [4.0]])
    scores = model.decision_function([[0.0], [4.0]])
print(json.dumps({
    "package": widemargin.__file__, "on_import": n_on_import, "scores": scores.tolist(),
    "warnings": [[str(w.message), w.filename] for w in caught],
}))
"""


def run(script, **environment):
    """Run a script in a process of its own, without the cache folder of these tests and shipped code."""
    inherited = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    inherited["WIDEMARGIN_SHIPPED_CODE"] = "no"  # which would leave nothing to compile
    command = [sys.executable, "-c", script]
    return subprocess.run(command, env=inherited | environment, capture_output=True, text=True, timeout=300)


@pytest.fixture
def read_only(tmp_path):
    """Return a folder with a copy of the package and an empty home folder, in which nothing can be written."""
    shutil.copytree(PACKAGE, tmp_path / "site" / "widemargin", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "home").mkdir()
    folders = [path for path in tmp_path.rglob("*") if path.is_dir()]
    for folder in folders:
        folder.chmod(0o555)
    yield tmp_path
    for folder in folders:
        folder.chmod(0o755)


def test_import_and_fit_work_where_nothing_can_be_written_and_one_warning_names_the_remedy(read_only):
    home = str(read_only / "home")
    folders = {"HOME": home, "XDG_CACHE_HOME": home, "LOCALAPPDATA": home, "PYTHONPATH": str(read_only / "site")}
    result = run(BECOME_ORDINARY + FIT, **folders)
    if result.returncode == 77:
        pytest.skip("this system lets the tests write into folders without permission to write")
    assert result.returncode == 0, result.stderr
    told = json.loads(result.stdout)
    assert told["package"].startswith(str(read_only))
    assert told["on_import"] == 0
    assert told["scores"][0] < told["scores"][1]
    [(message, filename)] = told["warnings"]
    assert "kept in memory only" in message
    assert "NUMBA_CACHE_DIR" in message
    assert filename == "<string>", "the warning points at the caller's line"


@pytest.fixture
def load(tmp_path, monkeypatch):
    """Return a function that imports a compiled function anew, as another process would; its cache is tmp_path."""
    source = "from widemargin._runtime.compile import compiled\n\n\n@compiled\ndef twice(x):\n    return 2 * x\n"
    (tmp_path / "tiny.py").write_text(source)
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(warning, "_issued_keys", set())

    def load():
        spec = importlib.util.spec_from_file_location("tiny", tmp_path / "tiny.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module.twice

    return load


def test_compiled_code_is_kept(load):
    first, second = load(), load()
    assert (first(3), second(3)) == (6, 6)
    assert (first.stats.cache_hits.total(), second.stats.cache_hits.total()) == (0, 1)


DAMAGES = {
    "empty": lambda content: b"",
    "half": lambda content: content[: len(content) // 2],
    "last byte gone": lambda content: content[:-1],
    "zeros": lambda content: bytes(len(content)),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES.keys())
def test_a_damaged_file_of_compiled_code_is_replaced(damage, load, tmp_path):
    load()(3)
    [path] = (tmp_path / "cache").rglob("*.nbc")
    path.write_bytes(damage(path.read_bytes()))
    with pytest.warns(UserWarning, match=r"A file of compiled code in .*cannot be read.*compiling again"):
        assert load()(3) == 6
    healed = load()
    assert healed(3) == 6
    assert healed.stats.cache_hits.total() == 1


def test_a_missing_file_of_compiled_code_is_written_again(load, tmp_path):
    load()(3)
    [path] = (tmp_path / "cache").rglob("*.nbc")
    path.unlink()
    assert load()(3) == 6
    assert path.exists()


def test_a_full_disk_costs_one_warning(load):
    resource = pytest.importorskip("resource", reason="file sizes cannot be limited on this system")
    # A limit on the size of files fails as a full disk does: files can be made, and not filled.
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    twice = load()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, limits[1]))
        try:
            results = twice(3), twice(3.0)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert results == (6, 6.0)
    [warning] = caught
    assert "cannot be kept" in str(warning.message)
    assert "NUMBA_CACHE_DIR" in str(warning.message)
    assert warning.filename == __file__
