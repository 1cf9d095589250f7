"""Clusters of real processes, and what is left on them after a fit."""

import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager

import dask.array as da
import numpy as np
from distributed import Client, LocalCluster

OURS = ("widemargin-", "checked_partition", "partition_of_tuple", "partition_of_file", "rows_of_file", "array-")
SECONDS_UNTIL_RELEASED = 10.0


@contextmanager
def cluster_of(n_workers, n_threads=1, **options):
    """A cluster of processes on this machine, and its client."""
    options = {"memory_limit": None, "dashboard_address": ":0", **options}  # any free port
    how = {"n_workers": n_workers, "threads_per_worker": n_threads, "processes": True, **options}
    with LocalCluster(**how) as cluster, Client(cluster, set_as_default=False) as client:
        client.wait_for_workers(n_workers, timeout=60)
        yield client


@contextmanager
def workers_never_replaced(client, n_workers):
    """More workers of a cluster, each a process that nobody starts anew."""
    n_all = n_workers + len(client.scheduler_info()["workers"])
    command = [sys.executable, "-m", "distributed.cli.dask_worker", client.scheduler.address, "--no-nanny"]
    command += ["--nthreads", "1", "--no-dashboard", "--memory-limit", "0"]
    processes = [subprocess.Popen(command, stderr=subprocess.DEVNULL) for _ in range(n_workers)]
    try:
        client.wait_for_workers(n_all, timeout=60)
        yield processes
    finally:
        for one in processes:
            one.kill()
            one.wait()


def keys_left(client):
    """Return the keys of tasks of fits that the scheduler knows, and those that workers hold."""
    known = client.run_on_scheduler(lambda dask_scheduler: [str(key) for key in dask_scheduler.tasks])
    held = client.run(lambda dask_worker: [str(key) for key in dask_worker.data], on_error="ignore")  # one may be dying
    keys = set(known).union(*held.values())
    return sorted(key for key in keys if key.lstrip("('").startswith(OURS))


def assert_nothing_left(client):
    """Assert that neither scheduler nor workers know a task of a fit; futures are released a moment after the fit."""
    until = time.monotonic() + SECONDS_UNTIL_RELEASED
    while (left := keys_left(client)) and time.monotonic() < until:
        time.sleep(0.05)
    assert left == []


def process_ids(client):
    """Return the process of each worker, by its address."""
    return client.run(os.getpid)


def kill(pid):
    """Kill a worker's process as the system does that runs out of memory."""
    os.kill(pid, signal.SIGKILL)


def blocks(*arrays, n_rows=97):
    """Return arrays as Dask arrays, in blocks of some rows."""
    return tuple(da.from_array(one, chunks=(n_rows, *one.shape[1:])) for one in arrays)


def classes_of(rng, n_rows=600, n_features=6, noise=0.7):
    """Return rows of two classes that overlap."""
    X = rng.standard_normal((n_rows, n_features))
    y = np.where(X @ rng.standard_normal(n_features) + noise * rng.standard_normal(n_rows) > 0.3, 1, -1)
    return X, y


def same_bits(first, second):
    """Return whether two models are equal to the last bit, with what proves them."""
    is_on_basis = hasattr(first, "basis_coef_")
    names = (*(("basis_", "basis_coef_") if is_on_basis else ("coef_",)), "intercept_", "gap_", "n_iter_")
    return all(np.array_equal(getattr(first, name), getattr(second, name)) for name in names)
