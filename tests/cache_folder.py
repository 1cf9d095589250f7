"""Where the tests keep compiled code: in the project, by a hash of all that decides how it is compiled.

Numba itself notices neither an edited helper in another file nor a setting such as NUMBA_BOUNDSCHECK, and two of its
versions would overwrite each other's files. A folder by its own hash cannot hold stale code. The folders stand in the
project and not in the system's temporary folder, where a second user of the machine could not write.
"""

import hashlib
import os
import shutil
import time
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDERS = ROOT / ".numba_cache"
FOLDERS_KEPT = 4
SECONDS_UNUSED_BEFORE_REMOVAL = 24 * 3600


def digest_of_compiled_code():
    """Return a hash of all that decides how loops are compiled: the sources, Numba, and its settings."""
    digest = hashlib.sha256(f"{version('numba')} {version('llvmlite')} {version('numpy')}".encode())
    for path in sorted((ROOT / "src").rglob("*.py")):
        digest.update(path.read_bytes())
    for name in sorted(name for name in os.environ if name.startswith("NUMBA_")):
        digest.update(f"{name}={os.environ[name]}".encode())
    return digest.hexdigest()[:16]


def used_now(name, folders=FOLDERS):
    """Return the folder of this name, created if it is absent and marked as used now."""
    folder = folders / name
    folder.mkdir(parents=True, exist_ok=True)
    os.utime(folder)
    return folder


def remove_unused(folders=FOLDERS):
    """Remove all but the most recently used folders; a folder used within a day stays, since tests may be running."""
    used = {path: path.stat().st_mtime for path in folders.iterdir() if path.is_dir()}
    for path in sorted(used, key=used.get)[:-FOLDERS_KEPT]:
        if time.time() - used[path] > SECONDS_UNUSED_BEFORE_REMOVAL:
            shutil.rmtree(path, ignore_errors=True)  # another run may be removing it, too
