"""dask-ml's nearest to a linear SVM, for `benchmarks.cluster.peers`: runs in an environment of its own.

`Incremental(SGDClassifier(loss="hinge"))` passes a scikit-learn model from block to block on a LocalCluster of two
processes. The task is read as JSON. The weights are taken after each pass; SGD has no stopping rule here.
"""

import json
import os
import sys
import time

import dask
import dask.array as da
import dask_ml
import numpy as np
import sklearn
from dask_ml.wrappers import Incremental
from distributed import Client, LocalCluster, wait
from sklearn.linear_model import SGDClassifier


def main():
    task = json.load(sys.stdin)
    X, y = np.load(task["rows"], mmap_mode="r"), np.load(task["signs"])
    n = len(y) // task["blocks"] + 1
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        X, y = client.persist([da.from_array(X, chunks=(n, X.shape[1])), da.from_array(y, chunks=n)])
        wait([X, y])
        sgd = SGDClassifier(loss="hinge", alpha=task["penalty"], fit_intercept=False, random_state=0)
        model = Incremental(sgd, shuffle_blocks=False, random_state=0)
        begun, curve = time.perf_counter(), []
        while not curve or curve[-1][1] < task["seconds"]:
            model.partial_fit(X, y, classes=[-1.0, 1.0])
            curve.append([len(curve) + 1, time.perf_counter() - begun, model.estimator_.coef_.ravel().tolist()])
    words = f"dask-ml {dask_ml.__version__}, dask {dask.__version__}, scikit-learn {sklearn.__version__}"
    return {"curve": curve, "versions": words}


if __name__ == "__main__":
    found = main()
    os.write(1, ("\n" + json.dumps(found) + "\n").encode())
