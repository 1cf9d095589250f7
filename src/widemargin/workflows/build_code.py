"""The compiled code that comes with the package, made when the package is built; see `_runtime.shipped_code`.

The build hook, hatch_build.py, calls `build_code` in a process that has the package's sources on its path.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from widemargin._runtime import shipped_code
from widemargin._runtime.code_key import digest_of_compiled_code

_FILES_KEPT = 4  # of other digests, as of other environments with the same sources
_SOURCES = str(Path(__file__).parents[2])
_WARMUP = f"import sys; sys.path.insert(0, {_SOURCES!r}); from widemargin.workflows.warmup import warmup; warmup()"
_PROCESSOR = """
import json
from numba.core.registry import cpu_target
print(json.dumps(cpu_target.target_context.codegen().magic_tuple()))
"""


def default_kind():
    """Return the newest level of x86-64 processors that this processor has, or HOST on processors of another kind."""
    return [*shipped_code.kinds_for_this_processor(), shipped_code.HOST][1]


def build_code(folder, kinds):
    """Compile what `warmup` compiles for some kinds of processors; return the paths of the files, in `folder`.

    A file that is there already is not made again. Old files of other digests are removed.
    """
    folder, digest = Path(folder), digest_of_compiled_code()
    paths = [shipped_code.path_of(folder, digest, kind) for kind in kinds]
    for kind, path in zip(kinds, paths, strict=True):
        if not path.exists():
            _build(kind, path)
    others = [path for path in folder.glob("*.code") if path not in paths]
    for path in sorted(others, key=lambda path: path.stat().st_mtime)[:-_FILES_KEPT]:
        path.unlink(missing_ok=True)
    return paths


def _build(kind, path):
    """Compile for one kind of processor, in other processes, and write the file."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_")}
        environment |= {"NUMBA_CACHE_DIR": folder, "WIDEMARGIN_SHIPPED_CODE": "no"}
        if kind != shipped_code.HOST:
            environment |= {"NUMBA_CPU_NAME": kind, "NUMBA_CPU_FEATURES": ""}
        subprocess.run([sys.executable, "-c", _WARMUP], env=environment, check=True)
        told = subprocess.run([sys.executable, "-c", _PROCESSOR], env=environment, check=True, capture_output=True)
        functions = {file.stem: file.read_bytes() for file in Path(folder).glob("*/*.nbc")}
        shipped_code.pack(functions, json.loads(told.stdout), path)
