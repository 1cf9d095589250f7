"""The build hook: a wheel contains compiled code, so that a first fit need not compile: docs/howto/first-seconds.md.

WIDEMARGIN_BUILD_CODE chooses the processors: `none`, `host`, or levels such as "x86-64-v3 x86-64-v4". If it is not set,
the code is for the newest level that this processor has. A wheel without compiled code works, too: if anything fails
here, a warning says so, and the wheel is a pure one.
"""

import os
import subprocess
import sys
from pathlib import Path

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_SWITCH = "WIDEMARGIN_BUILD_CODE"
_MOST_SECONDS = 1800
# The sources are put on the path here: pip removes what an earlier editable install has put there, PYTHONPATH or not.
_BUILD = """
import sys
sys.path.insert(0, sys.argv[1])
from widemargin.workflows.build_code import build_code, default_kind
for path in build_code(sys.argv[2], sys.argv[3:] or [default_kind()]):
    print(path)
"""


class CompiledCode(BuildHookInterface):
    """Adds the files of `widemargin._runtime.shipped_code` to a wheel, or to the sources of an editable install."""

    def dependencies(self):
        """Return what the build needs: all that the package itself needs, since it runs the package."""
        return [] if _kinds() == ["none"] else [str(one) for one in self.metadata.core.dependencies]

    def initialize(self, version, build_data):
        """Compile, and tell hatchling which files belong to the wheel."""
        if self.target_name != "wheel" or _kinds() == ["none"]:
            return
        source = Path(self.root, "src")
        try:
            paths = _compile(source)
        except (OSError, subprocess.SubprocessError) as error:
            told = (getattr(error, "stderr", None) or "").strip().splitlines()
            self.app.display_warning(f"This wheel has no compiled code: {told[-1] if told else error}")
            return
        build_data["pure_python"], build_data["infer_tag"] = False, True
        if version != "editable":  # which finds them beside its sources
            build_data["force_include"] |= {str(path): path.relative_to(source).as_posix() for path in paths}


def _kinds():
    """Return the kinds of processors to compile for; an empty list for the default."""
    return os.environ.get(_SWITCH, "").split()


def _compile(source):
    """Return the paths of the files of compiled code, made by a process that runs the package from its sources."""
    command = [sys.executable, "-c", _BUILD, str(source), str(source / "widemargin" / "_code"), *_kinds()]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=_MOST_SECONDS)
    return [Path(line) for line in done.stdout.splitlines()]
