"""One measurement of the page of data larger than memory, in a process of its own; the task is read as JSON.

The compiled functions are loaded by a fit of a small part before the clock starts.
"""

import json
import os
import sys
import time
import warnings

import numpy as np

_BUFFER = 8 << 20


def read(path):
    """Read a file from its beginning to its end; return seconds and bytes."""
    buffer, n_bytes, begun = bytearray(_BUFFER), 0, time.perf_counter()
    with open(path, "rb", buffering=0) as file:
        while n := file.readinto(buffer):
            n_bytes += n
    return {"seconds": time.perf_counter() - begun, "bytes": n_bytes}


def fit(path, estimator, parameters, *, n_rows=None, warm_rows=None, streaming=False):
    """Fit an estimator to the first rows of a block file, all if None; return seconds, gap, passes and what was read.

    `streaming` keeps data on disk that would fit into memory. The loops are loaded by a fit of `warm_rows` rows: few if
    memory is limited, and else so many that they stay in the types of the file.
    """
    import widemargin
    from widemargin.data.blocks import placement
    from widemargin.data.blocks.reader import open_blocks

    blocks = open_blocks(path)[:n_rows]
    warm_rows = warm_rows or (130_000 if parameters["max_memory"] is None else 40_000)
    kind = getattr(widemargin, estimator)
    real = placement._bytes_in_memory
    if streaming or parameters["max_memory"] is not None:
        placement._bytes_in_memory = lambda blocks: np.inf
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        kind(**parameters | {"max_iter": 3}).fit(blocks[: min(warm_rows, len(blocks))])
    if not streaming:
        placement._bytes_in_memory = real
    matrices = []
    for name in ("StreamedMatrix", "ResidentMatrix"):
        setattr(placement, name, _recording(getattr(placement, name), matrices))
    begun = time.perf_counter()
    model = kind(**parameters).fit(blocks)
    seconds = time.perf_counter() - begun
    X = matrices[-1] if matrices else None
    return {
        "seconds": seconds,
        "gap": model.gap_,
        "objective": model.objective_,
        "status": model.status_,
        "steps": int(model.n_iter_),
        "solver": model.solver_,
        "rows": len(blocks),
        "passes": X.n_passes if X else 0.0,
        "bytes": X.bytes_read if X else 0,
        "waited": X.seconds_waited if X else 0.0,
        "coef": model.coef_.ravel().tolist() if model.coef_.size <= 1000 else None,
    }


def _recording(make, matrices):
    """Return a function that makes a matrix and appends it to a list."""

    def made(*arguments):
        matrices.append(make(*arguments))
        return matrices[-1]

    return made


def sgd(path, C, seconds):
    """Let scikit-learn's SGDClassifier.partial_fit go over the blocks; return its objective now and then."""
    from sklearn.linear_model import SGDClassifier

    from widemargin.data.blocks.reader import open_blocks

    blocks = open_blocks(path)
    model = SGDClassifier(loss="hinge", alpha=1.0 / (C * len(blocks)), fit_intercept=False, random_state=0)
    begun, measuring, curve = time.perf_counter(), 0.0, []
    while time.perf_counter() - begun - measuring < seconds:
        for X, y in blocks:
            model.partial_fit(X.astype(np.float64), y, classes=[-1, 1])
        here = time.perf_counter()
        curve.append((here - begun - measuring, objective(blocks, model.coef_.ravel(), C)))
        measuring += time.perf_counter() - here
    return {"curve": curve}


def liblinear(path, n_rows, C):
    """Train LIBLINEAR's dual coordinate descent on the first rows, in memory; return seconds and the objective."""
    from liblinear.liblinearutil import problem, train
    from scipy.sparse import csr_matrix

    from widemargin.data.blocks.reader import open_blocks

    blocks = open_blocks(path)[:n_rows]
    X, y = blocks.to_memory(), blocks.labels.astype(np.float64)
    data = problem(y, csr_matrix(X, dtype=np.float64))
    begun = time.perf_counter()
    model = train(data, f"-s 1 -c {C} -e 0.01 -q")
    seconds = time.perf_counter() - begun
    w = np.zeros(X.shape[1])
    found = np.array(model.get_decfun()[0])
    w[: len(found)] = found * model.get_labels()[0]
    losses = np.maximum(0.0, 1.0 - y * (X @ w))
    return {"seconds": seconds, "objective": 0.5 * float(w @ w) + C * float(losses @ losses), "rows": n_rows}


def objective(blocks, w, C):
    """Return ½|w|² + C Σ max(0, 1 − y <w, x>)."""
    loss = sum(float(np.maximum(0.0, 1.0 - y * (X @ w)).sum()) for X, y in blocks)
    return 0.5 * float(w @ w) + C * loss


if __name__ == "__main__":
    task = json.load(sys.stdin)
    result = globals()[task.pop("do")](**task)
    print(json.dumps(result | {"processor seconds": sum(os.times()[:2])}))
