"""Kills fits at random moments, in processes of their own, and compares what goes on with what was never killed.

Run as `python killed_fits.py FOLDER SEED`; prints a line of JSON for each kind of fit.
"""

import json
import os
import pickle
import random
import signal
import sys
import threading
import time
import warnings
from pathlib import Path

import numpy as np

from widemargin import SVC, LinearSVC, LinearSVCCV
from widemargin.data.blocks import placement
from widemargin.data.blocks.reader import open_blocks
from widemargin.data.blocks.writer import write_blocks
from widemargin.solvers import checkpoint
from widemargin.solvers.decomposition import large_parts

KILLS = 2
CS = [1e-4, 1e-3, 1e-2, 0.1]
FREE = {"fit_intercept": True, "penalize_intercept": False}
FITS = {
    "newton, hinge, free intercept": (LinearSVC, {"solver": "newton", "loss": "hinge", "C": 0.1, "tol": 1e-9, **FREE}),
    "newton, squared hinge": (LinearSVC, {"solver": "newton", "loss": "squared_hinge", "tol": 1e-10}),
    "newton, three classes": (LinearSVC, {"solver": "newton", "loss": "hinge", "tol": 1e-8}),
    "newton, rows on disk": (LinearSVC, {"solver": "newton", "loss": "hinge", "tol": 1e-9, "scaling": "standard"}),
    "ocas, hinge, free intercept": (LinearSVC, {"solver": "ocas", "loss": "hinge", "tol": 1e-4, **FREE}),
    "ocas, squared hinge": (LinearSVC, {"solver": "ocas", "loss": "squared_hinge", "tol": 1e-4}),
    "svmperf, hinge": (LinearSVC, {"solver": "svmperf", "loss": "hinge", "C": 0.01, "tol": 1e-3}),
    "svmperf, squared hinge": (LinearSVC, {"solver": "svmperf", "loss": "squared_hinge", "C": 1e-4, "tol": 1e-4}),
    "sbm, hinge": (LinearSVC, {"solver": "sbm", "loss": "hinge", "C": 0.01, "tol": 1e-6}),
    "sbm, squared hinge": (LinearSVC, {"solver": "sbm", "loss": "squared_hinge", "C": 0.01, "tol": 1e-8}),
    "sbm, rows on disk": (LinearSVC, {"solver": "sbm", "loss": "hinge", "C": 0.01, "tol": 1e-5}),
    "kernel, in parts": (SVC, {"C": 3.0, "gamma": 0.05, "tol": 1e-4}),
    "path, newton": (LinearSVCCV, {"Cs": CS, "cv": 3, "solver": "newton", "loss": "hinge", "tol": 1e-6, **FREE}),
    "path, dcd": (LinearSVCCV, {"Cs": CS, "cv": 3, "solver": "dcd", "tol": 1e-5}),
    "path, newton, rows on disk": (LinearSVCCV, {"Cs": CS, "cv": 3, "solver": "newton", "loss": "hinge", "tol": 1e-6}),
    "path, ocas, rows on disk": (LinearSVCCV, {"Cs": CS, "cv": 2, "solver": "ocas", "loss": "hinge", "tol": 1e-3}),
}


def data_of(name, folder):
    """Return X and y; X is in blocks on disk if the name says so."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((5000, 40)).astype(np.float32)
    score = X[:, :5].sum(axis=1) + rng.standard_normal(5000)
    y = np.digitize(score, [-1.0, 1.0]) if "three" in name else np.where(score > 0.0, 1, -1)
    if "disk" not in name:
        return X, y
    path = folder / "rows.arrow"
    if not path.exists():
        write_blocks(path, [(X, y)], block_bytes=1 << 15)
    return open_blocks(path), None


def outcome(name, folder, path):
    """Fit, and return what must not depend on kills."""
    kind, options = FITS[name]
    model = kind(**options, checkpoint=path, n_jobs=1, random_state=0)
    if "path" in name:
        placement._bytes_in_memory = lambda blocks: np.inf
    elif "disk" in name:  # as if memory were too small
        from widemargin.data.blocks.streamed import StreamedMatrix
        from widemargin.data.column_scaling import ColumnScaling

        def matrix_of(X, constant, n_problems=1, n_vectors=None):
            how = None if model.scaling is None else ColumnScaling.of(model.scaling, X.columns)
            return StreamedMatrix(X, constant, 200_000.0, how)

        model._matrix_of = matrix_of
    model.fit(*data_of(name, folder))
    histories = model.history_ if isinstance(model.history_, list) else [model.history_]
    for history in histories:
        assert (np.diff(history["seconds"]) >= 0.0).all()
        assert (np.diff(history["iteration"]) > 0).all()
    names = ("iteration", "passes", "primal", "dual", "gap")
    numbers = [history[name].tobytes() for history in histories for name in names]
    weights = model.dual_coef_ if "kernel" in name else model.coef_
    bits = [np.asarray(one).tobytes() for one in (weights, model.intercept_, model.objective_, model.gap_)]
    if "path" in name:
        path, arrays = model.path_, ("Cs", "coefs", "intercepts", "gaps", "objectives", "scores", "fold_gaps")
        bits += [getattr(path, array).tobytes() for array in arrays] + [path.statuses.tolist(), path.n_iters.tolist()]
    return [*bits, *numbers, np.max(model.n_iter_), model.status_, model.solver_]


def in_process(work, kill_after=None):
    """Call work() in a forked process, which is killed after so many seconds; return whether it came to its end."""
    child = os.fork()
    if child == 0:
        if kill_after is not None:
            killer = threading.Timer(kill_after, os.kill, (os.getpid(), signal.SIGKILL))
            killer.daemon = True
            killer.start()
        work()
        os._exit(0)
    _, status = os.waitpid(child, 0)
    if os.WIFEXITED(status) and os.WEXITSTATUS(status) != 0:
        raise RuntimeError("the fit has failed")
    return os.WIFEXITED(status)


def trial(name, folder, luck):
    """Return how often a fit was killed, and whether it has ended as the one that was not."""
    path, result = folder / "fit.checkpoint", folder / "result"
    begun = time.perf_counter()
    expected = outcome(name, folder, path)
    seconds = time.perf_counter() - begun

    def work():
        try:
            found = outcome(name, folder, path)
            result.write_bytes(pickle.dumps(found))
        except BaseException as error:
            print(repr(error), file=sys.stderr)
            os._exit(1)

    n_killed, n_resumed = 0, 0
    for _ in range(KILLS):
        if in_process(work, luck.uniform(0.1, 0.9) * seconds):
            break
        n_killed += 1
        n_resumed += any(folder.glob("fit.checkpoint*"))
    else:
        in_process(work)
    same = pickle.loads(result.read_bytes()) == expected
    left = sorted(one.name for one in folder.glob("fit.checkpoint*"))
    return {"fit": name, "killed": n_killed, "resumed": n_resumed, "same": same, "left": left, "status": expected[-2]}


def main():
    folder, luck = Path(sys.argv[1]), random.Random(int(sys.argv[2]))
    warnings.simplefilter("error")
    checkpoint._LEAST_SECONDS_BETWEEN = checkpoint._TIMES_THE_WRITING = 0.0
    large_parts._MIN_ROWS, large_parts._PART = 1000, 500
    for name in FITS:
        outcome(name, folder, folder / "warm-up")  # compiles
        print(json.dumps(trial(name, folder, luck)), flush=True)


if __name__ == "__main__":
    main()
