"""A real browser: the system's Chromium, driven by Playwright.

Where it is absent, these tests are skipped. They install it only where that was asked for, by the environment variable
WIDEMARGIN_INSTALL_CHROMIUM=1 or by CI, which continuous integration sets; as root, on a system with apt-get.
"""

import os
import shutil
import subprocess

import pytest

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_INSTALLING = ("apt-get update", "apt-get install -y --no-install-recommends chromium")
_SECONDS = 400
_ABSENT = (
    "Chromium is not there: install it (Debian: apt-get install chromium), or set WIDEMARGIN_INSTALL_CHROMIUM=1 and "
    "run the tests as root"
)
_NOT_INSTALLED = "Chromium is not there, and the tests could not install it: that takes root, apt-get and its index"


def _found():
    return next(filter(None, map(shutil.which, _NAMES)), None)


def _install():
    """Install Chromium on a Debian-like system, as root; tell whether that was done."""
    if not hasattr(os, "geteuid") or os.geteuid() != 0 or shutil.which("apt-get") is None:
        return False
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    try:
        for command in _INSTALLING:
            subprocess.run(command.split(), capture_output=True, timeout=_SECONDS, check=True, env=environment)
    except (subprocess.SubprocessError, OSError):
        return False
    return True


def _may_install(environment=os.environ):
    """Tell whether the caller, or continuous integration, lets the tests install a system package."""
    asked = (environment.get(name, "").lower() for name in ("WIDEMARGIN_INSTALL_CHROMIUM", "CI"))
    return any(value not in ("", "0", "no", "false") for value in asked)


def _found_or_installed(folder):
    """Return the path of a browser or None; of several processes that share the folder, one installs, others wait."""
    if _found() is not None:
        return _found()
    fcntl = pytest.importorskip("fcntl", reason=_NOT_INSTALLED)
    failed = folder / "chromium-not-installed"
    with open(folder / "chromium.lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if _found() is None and not failed.exists() and not _install():
            failed.touch()
    return _found()


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    """A headless Chromium."""
    playwright = pytest.importorskip("playwright.sync_api")
    if _found() is None and not _may_install():
        pytest.skip(_ABSENT)
    own = tmp_path_factory.getbasetemp()  # of this process; of parallel ones, in a folder that belongs to the run
    path = _found_or_installed(own.parent if "PYTEST_XDIST_WORKER" in os.environ else own)
    if path is None:
        pytest.skip(_NOT_INSTALLED)
    with playwright.sync_playwright() as started:
        chromium = started.chromium.launch(executable_path=path, args=["--headless=new", "--no-sandbox"])
        yield chromium
        chromium.close()
