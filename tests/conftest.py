"""Fixtures for all rooms; compiled code is cached by a hash of the sources, so that no stale loop is ever tested."""

import hashlib
import os
import tempfile
from pathlib import Path

_SOURCES = sorted((Path(__file__).parents[1] / "src").rglob("*.py"))
_DIGEST = hashlib.sha256(b"".join(path.read_bytes() for path in _SOURCES)).hexdigest()[:16]
# Set before anything imports numba; an edited helper does not invalidate its cached callers in other files.
os.environ.setdefault("NUMBA_CACHE_DIR", str(Path(tempfile.gettempdir()) / f"widemargin-numba-{_DIGEST}"))
