"""A tiny module with a compiled function, in a folder with its own cache, for the tests of compiled code on disk."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import widemargin

SOURCE = Path(widemargin.__file__).parents[1]


class TinyModule:
    """The module `tiny`, with `twice`, in a folder; scripts run in processes that find it and nothing else compiled."""

    def __init__(self, folder):
        self.folder = folder
        (folder / "tiny.py").write_text(
            "from widemargin._runtime.compile import compiled\n\n\n@compiled\ndef twice(x):\n    return 2 * x\n"
        )

    def environment(self, cache="cache", **more):
        """Return the environment of a process; `cache` is the name of the folder of compiled code."""
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_")}
        path = os.pathsep.join([str(self.folder), str(SOURCE)])
        return inherited | {"NUMBA_CACHE_DIR": str(self.folder / cache), "PYTHONPATH": path} | more

    def run(self, script, *words, cache="cache", **more):
        """Run a script in a process; return the JSON that it prints."""
        command = [sys.executable, "-W", "error", "-c", script, *map(str, words)]
        environment = self.environment(cache, **more)
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)


@pytest.fixture
def tiny(tmp_path):
    """The module `tiny` in tmp_path."""
    return TinyModule(tmp_path)
