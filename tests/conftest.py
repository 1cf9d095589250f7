"""Fixtures for all rooms; compiled code is cached by a hash of the sources, so that no stale loop is ever tested."""

import hashlib
import os
import signal
import tempfile
from pathlib import Path

_ROOT = Path(__file__).parents[1]
_SOURCES = sorted((_ROOT / "src").rglob("*.py"))
_DIGEST = hashlib.sha256(b"".join(path.read_bytes() for path in _SOURCES)).hexdigest()[:16]
# Set before anything imports numba; an edited helper does not invalidate its cached callers in other files.
os.environ.setdefault("NUMBA_CACHE_DIR", str(Path(tempfile.gettempdir()) / f"widemargin-numba-{_DIGEST}"))

# A shell that runs the tests in the background has them ignore Ctrl-C, and all they start; tests of Ctrl-C need it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

import numpy as np  # noqa: E402
import pytest  # noqa: E402
from hypothesis import settings  # noqa: E402

# Compiling happens inside the first examples: no deadline. CI must not depend on luck: the same examples each time.
settings.register_profile("widemargin", deadline=None, derandomize=True)
settings.load_profile("widemargin")


@pytest.fixture
def rng():
    """A seeded source of random numbers."""
    return np.random.default_rng(20261116)


@pytest.fixture
def clouds(rng):
    """Two overlapping clouds: 80 rows, 6 features, signs, and costs that differ from row to row."""
    sign = np.where(rng.random(80) < 0.4, 1.0, -1.0)
    X = rng.standard_normal((80, 6)) + 0.7 * sign[:, None]
    X[rng.random(X.shape) < 0.3] = 0.0
    return X, sign, rng.uniform(0.1, 2.0, 80)


def shared_data(name):
    """Return the path of a shared data set, or skip the test by the name of what is missing."""
    folder = Path(os.environ.get("WIDEMARGIN_DATA", _ROOT.parent / "shared" / "data"))
    path = folder / f"{name}.svm.xz"
    if not path.exists():
        pytest.skip(f"shared data set {name} is not there (set WIDEMARGIN_DATA)")
    return path


@pytest.fixture
def read_shared():
    """Return a function that reads a shared data set by name: X, y, qid."""
    from widemargin import read_svmlight

    return lambda name: read_svmlight(shared_data(name))
