"""`run_demo`: five machines on made-up rows, each with its certificate and beside scikit-learn, in about a minute.

Every number is measured by the call. Each fit runs in a new process, as the first fit of a user does; scikit-learn's is
ended at the time limit.
"""

import os
import tempfile
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

from widemargin.workflows.demo import contender
from widemargin.workflows.demo.cases import CASES
from widemargin.workflows.demo.page import demo_page
from widemargin.workflows.demo.picture import draw
from widemargin.workflows.demo.result import Demo, DemoResult
from widemargin.workflows.errors import ArgumentError, spelled
from widemargin.workflows.files import AnyPath, as_path, naming

PICTURE_NAME, PAGE_NAME = "widemargin-demo.png", "index.html"


def run_demo(
    output: AnyPath = "demo",
    *,
    time_limit: float = 10.0,
    size: float = 1.0,
    on_start: Callable[[str], None] | None = None,
) -> Demo:
    """Train five machines on made-up rows, beside scikit-learn, and write a picture and a page about them.

    This is the function of `widemargin demo`: a linear machine on half a million rows, an rbf machine on 20,000, a
    ranking, a linear machine on a file that is larger than its memory limit, and an rbf machine on 500 basis points.
    Each fit runs in a new process, and all numbers are measured by the call.

    Parameters
    ----------
    output : path, default="demo"
        The folder for the picture, `widemargin-demo.png`, and the page, `index.html`. It is created if it does not
        exist. Without matplotlib no picture is written, and without pyarrow there is no file larger than memory.
    time_limit : float, default=10.0
        The seconds after which a fit of scikit-learn is ended; 0 leaves scikit-learn out.
    size : float, default=1.0
        A fraction of the rows, for a shorter demonstration.
    on_start : callable(str), default=None
        Called with the name of each fit before it starts.

    Returns
    -------
    Demo
        Has the `results` of all machines; `print` shows them as a table.

    Raises
    ------
    OSError
        If the folder, the picture or the page cannot be written.
    ValueError
        If `size` is not in (0, 1], or `time_limit` is negative.

    Examples
    --------
    >>> from widemargin import run_demo
    >>> shown = run_demo("pictures", size=0.01, time_limit=0)
    >>> len(shown.results), max(result.gap for result in shown.results) < 1e-2
    (5, True)
    """
    if not 0.0 < size <= 1.0:
        raise ArgumentError(f"{spelled('size')} must be above 0 and at most 1, got {size!r}")
    if not time_limit >= 0.0:
        raise ArgumentError(f"{spelled('time_limit')} must not be negative, got {time_limit!r}")
    folder = as_path(output)
    with naming(folder):
        os.makedirs(folder, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="widemargin-demo-", dir=folder) as rows:
        results = tuple(_result(name, time_limit, size, rows, on_start or (lambda text: None)) for name in _runnable())
    return _write(results, time_limit, Path(folder))


def _runnable():
    """Return the names of the cases whose packages are installed."""
    return [name for name, case in CASES.items() if not case.needs or find_spec(case.needs)]


def _result(name, limit, size, folder, on_start):
    """Fit both sides of one case; return its line."""
    case = CASES[name]
    n_rows = max(1, int(case.n_rows * size))
    on_start(f"{case.machine}: {n_rows:,} rows, {case.n_features} features")
    ours = contender.measure(name, contender.OURS, size, folder, limit)
    if ours is None:
        raise RuntimeError(f"the fit of {case.machine} did not end")
    peer, theirs = case.peer if limit > 0 else "", None
    if peer:
        on_start(f"scikit-learn's {peer}, ended after {limit:g} s")
        theirs = contender.measure(name, contender.THEIRS, size, folder, limit)
    known = {key: ours[key] for key in ("score", "gap", "seconds", "peak_bytes", "solver", "history")}
    return DemoResult(
        machine=case.machine, n_rows=n_rows, n_features=case.n_features, measure=case.score, **known, peer=peer,
        peer_seconds=theirs and theirs["seconds"], peer_score=theirs and theirs["score"],
    )  # fmt: skip


def _write(results, limit, folder):
    """Write the picture and the page; return the result."""
    environment, picture, page = contender.environment(), folder / PICTURE_NAME, folder / PAGE_NAME
    try:
        with naming(str(picture)):
            draw(results, limit, picture)
        drawn, message = str(picture), f"picture: {picture}"
    except ImportError as error:
        drawn, message = None, f"picture skipped. {error}"
    with naming(str(page)):
        page.write_text(demo_page(results, limit, environment), "utf-8")
    return Demo(results, limit, environment, str(page), drawn, message)
