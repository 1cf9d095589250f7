"""Fixtures for all rooms; compiled code is kept in the project, by a digest of the sources, so that none is stale."""

import os
import signal
from pathlib import Path

_ROOT = Path(__file__).parents[1]

# Set before anything imports numba. Processes that tests start inherit the folder. It stands in the project and not in
# the system's temporary folder, where a second user of the machine could not write.
os.environ.setdefault("NUMBA_CACHE_DIR", str(_ROOT / ".numba_cache"))

# A shell that runs the tests in the background has them ignore Ctrl-C, and all they start; tests of Ctrl-C need it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

import numpy as np  # noqa: E402
import pytest  # noqa: E402
from hypothesis import settings  # noqa: E402

pytest_plugins = ["tests.shell", "tests.browser"]

# Compiling happens inside the first examples: no deadline. CI must not depend on luck: the same examples each time.
# Nightly, luck is wanted: other examples each time, and ten times as many.
settings.register_profile("widemargin", deadline=None, derandomize=True)
settings.register_profile("nightly", deadline=None, derandomize=False, print_blob=True, max_examples=1000)
_PROFILE = os.environ.get("WIDEMARGIN_HYPOTHESIS", "widemargin")
settings.load_profile(_PROFILE)


def pytest_collection_modifyitems(items):
    """Nightly, take ten times as many examples also where a test says how many; a profile does not reach those."""
    if _PROFILE != "nightly":
        return
    functions = {item.function for item in items if getattr(item.function, "is_hypothesis_test", False)}
    for function in functions:
        given = function._hypothesis_internal_use_settings
        if given.max_examples != settings.get_profile("nightly").max_examples:
            function._hypothesis_internal_use_settings = settings(given, max_examples=10 * given.max_examples)


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


@pytest.fixture
def read_bundled():
    """Return a function that reads one of scikit-learn's bundled data sets by name, "iris" for one: X, y."""
    from sklearn import datasets

    return lambda name: getattr(datasets, f"load_{name}")(return_X_y=True)


def shared_data(name):
    """Return the path of a shared data set, or skip the test; for tests that are about that very set."""
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
