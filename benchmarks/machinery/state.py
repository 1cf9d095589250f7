"""The state that a record belongs to: the code, the machine, and the versions of all packages.

The code is what was measured: the contents of `src/`, and of the modules of `benchmarks/` that the page has imported
with all that stands in their folders (processes of their own run it), so that writing a page, or editing a text, does
not change the state. Two records belong together if all of it is equal.
"""

import hashlib
import json
import os
import platform
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = (
    "widemargin", "numpy", "scipy", "numba", "scikit-learn", "liblinear-official", "libsvm-official",
    "scikit-learn-intelex", "dask", "distributed",
)  # fmt: skip


def state_of_package(root=ROOT):
    """Return a short hash of the sources of the package: pages with the same one are of one state of it."""
    return _digest((root / "src").rglob("*.py"), root)


def state_of_code(root=ROOT):
    """Return a short hash of the sources of the package, and of the benchmark's own code."""
    files = [getattr(module, "__file__", None) for module in list(sys.modules.values())]
    own = {Path(path) for path in files if path and Path(path).is_relative_to(root / "benchmarks")}
    folders = {path.parent for path in own} - {root / "benchmarks"} | {root / "src", root / "benchmarks" / "benchopt"}
    return _digest(own | {path for folder in folders for path in folder.rglob("*.py")}, root)


def _digest(paths, root):
    digest = hashlib.sha256()
    for path in sorted(paths):
        digest.update(str(path.relative_to(root)).encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:12]


def commit(root=ROOT):
    """Return the commit in words, and whether the sources differ from it."""
    found = _git(root, "rev-parse", "--short=10", "HEAD")
    if not found:
        return "no commit"
    changed = _git(root, "status", "--porcelain", "--", "src", "benchmarks", ":!benchmarks/results")
    return f"{found.strip()}, with changes that are not committed" if changed.strip() else found.strip()


def _git(root, *arguments):
    try:
        found = subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return found.stdout if found.returncode == 0 else ""


def machine():
    """Return the processor, the number of cores and the memory, in words."""
    model = [line.split(":")[1].strip() for line in _lines("/proc/cpuinfo") if line.startswith("model name")]
    memory = [int(line.split()[1]) for line in _lines("/proc/meminfo") if line.startswith("MemTotal")]
    shown = f", {memory[0] / 2**20:.0f} GB" if memory else ""
    return f"{model[0] if model else platform.machine()}, {os.cpu_count()} cores{shown}"


def _lines(path):
    return Path(path).read_text().splitlines() if Path(path).exists() else []


def versions(packages=PACKAGES):
    """Return the versions of Python and of the packages that are installed."""
    found = {"Python": platform.python_version()}
    for package in packages:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def state(root=ROOT):
    """Return the whole state, a dict of text."""
    hashes = {"code": state_of_code(root), "package": state_of_package(root)}
    return {**hashes, "machine": machine(), "versions": versions()}


def key(found):
    """Return a short name of a state, for files."""
    return hashlib.sha256(json.dumps(found, sort_keys=True).encode()).hexdigest()[:12]
