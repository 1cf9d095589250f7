"""Small scripts with the names of the programs, which run `widemargin as`."""

import os
import stat
import sys
from pathlib import Path

from widemargin._runtime.atomic_file import replacing
from widemargin.cli.messages import CommandError, UsageError

_SCRIPT = """\
#!/bin/sh
# Made by widemargin as --install.
exec "{python}" -m widemargin as {name} "$@"
"""
_MARK = "# Made by widemargin as --install."


def install(directory, names):
    """Write a script for each name to a directory, which must exist; return their paths.

    A file that is not one of these scripts is not replaced: nothing is written then.
    """
    folder = Path(directory)
    if not folder.is_dir():
        raise UsageError(f"--install {directory}: there is no such directory; create it first")
    paths = [folder / name for name in names]
    for path in paths:
        if path.exists() and _MARK not in path.read_text(encoding="utf-8", errors="replace"):
            raise CommandError(f"{path} is another program; name another directory, or move it away")
    for path in paths:
        with replacing(path) as file:
            file.write(_SCRIPT.format(python=sys.executable, name=path.name).encode())
        os.chmod(path, path.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
    return paths
