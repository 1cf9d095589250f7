"""A process with a fit on a cluster, to be killed or interrupted: `python driver.py ADDRESS KIND FOLDER`.

It prints a line for each iteration, and at the end one with the status and the gap of the model.
"""

import sys
import time
import warnings
from pathlib import Path

import dask.array as da
import numpy as np
from distributed import Client

from widemargin.dask import LinearSVC, RankSVM
from widemargin.solvers import checkpoint

ENDLESS = {"tol": 1e-15, "max_iter": None}
KINDS = {
    "newton": (LinearSVC, {"loss": "hinge", "tol": 1e-5, "solver": "newton"}),
    "free": (LinearSVC, {"loss": "hinge", "tol": 1e-2, "solver": "newton", "penalize_intercept": False}),
    "ocas": (LinearSVC, {"loss": "hinge", "tol": 1e-2, "solver": "ocas"}),
    "ranking": (RankSVM, {"tol": 1e-3, "C": 100.0}),
    "endless": (LinearSVC, {"loss": "hinge", "solver": "ocas", "C": 100.0, **ENDLESS}),
    "stuck": (LinearSVC, {"loss": "hinge", "solver": "ocas", "C": 100.0, **ENDLESS}),
    "endless newton": (LinearSVC, {"loss": "hinge", "solver": "newton", **ENDLESS}),
}


def data_of(kind):
    """Return the arguments of fit."""
    rng = np.random.default_rng(7)
    X = rng.standard_normal((320, 4))
    y = np.where(X @ rng.standard_normal(4) + rng.standard_normal(320) > 0.0, 1, -1)
    arrays = [X, y, np.repeat(np.arange(40), 8)] if kind == "ranking" else [X, y]
    return [da.from_array(one, chunks=(32, *one.shape[1:])) for one in arrays]


def fitted(client, kind, path=None, callbacks=None, **changes):
    """Return the model of a kind, with checkpoints after every iteration if there is a path."""
    checkpoint._LEAST_SECONDS_BETWEEN = checkpoint._TIMES_THE_WRITING = 0.0
    estimator, options = KINDS[kind]
    model = estimator(client=client, checkpoint=path, callbacks=callbacks, **{**options, **changes})
    return model.fit(*data_of(kind))


def main(address, kind, folder):
    """Fit, and tell of it."""
    with Client(address) as client:
        blocked = []

        def tell(progress):
            print(progress.iteration, flush=True)
            if kind == "stuck" and progress.iteration == 3:  # the workers are busy, and the next pass cannot begin
                blocked.extend(client.map(time.sleep, [20.0 + k / 100 for k in range(3)], pure=False))
                time.sleep(0.5)
                print("stuck", flush=True)

        path = Path(folder) / "state" if kind in ("newton", "free", "ocas", "ranking") else None
        warnings.simplefilter("ignore")
        model = fitted(client, kind, path, tell)
        print(f"{model.status_}, gap {model.gap_}", flush=True)
        client.cancel(blocked)


if __name__ == "__main__":
    main(*sys.argv[1:])
