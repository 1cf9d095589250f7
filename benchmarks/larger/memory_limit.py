"""Programs in a memory control group of their own: their memory, cached files included, is limited and measured.

Where no group can be made, the address space is limited instead and the peak is that of the process, without files.
"""

import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

_ROOT = Path("/sys/fs/cgroup")


class MemoryGroup:
    """A control group with a limit in bytes, or None for no limit; a context that removes it."""

    def __init__(self, limit=None):
        self._limit, self._folder = limit, None

    def __enter__(self):
        for root, name in ((_ROOT / "memory", "memory.limit_in_bytes"), (_ROOT, "memory.max")):
            try:
                folder = Path(tempfile.mkdtemp(prefix="widemargin-", dir=root))
            except OSError:
                continue
            if not (folder / name).exists():
                folder.rmdir()
                continue
            if self._limit is not None:
                (folder / name).write_text(str(self._limit))
            self._folder = folder
            break
        return self

    def __exit__(self, kind, error, traceback):
        if self._folder is not None:
            self._folder.rmdir()
        return False

    @property
    def kind(self):
        """What limits the memory, in words."""
        return "control group, cached files included" if self._folder else "address space of the process"

    def peak(self):
        """Return the largest number of bytes in use, or None if the group does not tell."""
        for name in ("memory.max_usage_in_bytes", "memory.peak"):
            if self._folder is not None and (self._folder / name).exists():
                return int((self._folder / name).read_text())
        return None

    def run(self, module, task, timeout=3600):
        """Run `python -m module`, which reads a task as JSON and prints a dict as its last line; return the dict."""

        def enter():
            if self._folder is not None:
                (self._folder / "cgroup.procs").write_text(str(os.getpid()))
            elif self._limit is not None:
                resource.setrlimit(resource.RLIMIT_AS, (self._limit, self._limit))

        found = subprocess.run(
            [sys.executable, "-m", module], input=json.dumps(task), text=True, capture_output=True,
            preexec_fn=enter, timeout=timeout, check=False,
        )  # fmt: skip
        if found.returncode != 0:
            raise RuntimeError(f"{task} ended with {found.returncode}: {found.stderr[-2000:]}")
        return json.loads(found.stdout.splitlines()[-1]) | {"peak": self.peak()}


def drop_from_cache(path):
    """Ask the system to forget what it has cached of a file, so that it is read from the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(descriptor)
