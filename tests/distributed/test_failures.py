"""What a cluster cannot repair: a ClusterError that says why, soon, and the best model so far."""

import threading
import time

import dask
import dask.array as da
import numpy as np
import pytest
from tests.distributed.clusters import assert_nothing_left, blocks, classes_of, cluster_of, kill, process_ids

from widemargin.dask import ClusterError, LinearSVC, RankSVM
from widemargin.distributed.failures import Overseer

SECONDS_AT_MOST = 30.0


@pytest.fixture(autouse=True)
def little_patience():
    """A cluster that cannot work for two seconds has failed."""
    with dask.config.set({"widemargin.grace-seconds": 2}):
        yield


@pytest.fixture
def data():
    """Rows of two classes in ten blocks."""
    return blocks(*classes_of(np.random.default_rng(0), 300, 4), n_rows=32)


class Trouble:
    """A callback that makes trouble in an iteration, from another thread."""

    def __init__(self, make, iteration=2):
        self.make, self.iteration, self.made_at = make, iteration, None

    def __call__(self, progress):
        if progress.iteration >= self.iteration and self.made_at is None:
            self.made_at = time.monotonic()
            threading.Thread(target=self.make).start()
            time.sleep(0.3)


def assert_fails_soon(model, data, match):
    """Assert that a fit ends with a ClusterError within half a minute of the trouble."""
    begun = time.monotonic()
    with pytest.raises(ClusterError, match=match):
        model.fit(*data)
    trouble = getattr(model.callbacks, "made_at", None) or begun
    assert time.monotonic() - trouble < SECONDS_AT_MOST


def assert_usable(model, data):
    """Assert that a model that is not optimal predicts, and knows its gap."""
    assert np.isfinite(model.gap_)
    assert model.gap_ > model.tol
    assert model.status_ == "interrupted"
    assert model.to_local().predict(data[0].compute(scheduler="sync")).shape == (300,)


def options():
    """Return parameters of a fit that would take much longer than a test."""
    return {"loss": "hinge", "tol": 1e-12, "solver": "ocas", "max_iter": None}


def test_workers_that_are_gone_for_good_leave_the_best_model_so_far(data):
    with cluster_of(1) as client:
        model = LinearSVC(client=client, callbacks=Trouble(lambda: client.cluster.scale(0)), **options())
        assert_fails_soon(model, data, "no worker for 2 seconds. The model is the best one so far: gap")
        assert_usable(model, data)


def test_a_lost_scheduler_leaves_the_best_model_so_far(data):
    with cluster_of(1) as client:
        model = LinearSVC(client=client, callbacks=Trouble(client.cluster.close), **options())
        assert_fails_soon(model, data, r"scheduler.* The model is the best one so far: gap")
        assert_usable(model, data)


def test_a_cluster_without_workers_is_told_before_anything_is_done(data):
    with cluster_of(1) as client:
        client.cluster.scale(0)
        while client.scheduler_info()["workers"]:
            time.sleep(0.05)
        assert_fails_soon(LinearSVC(client=client), data, "no worker for 2 seconds. There is no model yet")
        assert_nothing_left(client)


def pause(dask_worker):
    """Pause a worker, as it does itself when its memory is full."""
    from distributed.core import Status

    dask_worker.monitor_status = dask_worker.status = Status.paused


def test_workers_that_are_all_paused_leave_the_best_model_so_far(data):
    with cluster_of(1) as client:
        model = LinearSVC(client=client, callbacks=Trouble(lambda: client.run(pause)), **options())
        assert_fails_soon(model, data, "All workers have been paused, because their memory is full for 2 seconds")
        assert_usable(model, data)


def test_a_partition_that_cannot_be_rebuilt_is_named(tmp_path, monkeypatch):
    X, y = classes_of(np.random.default_rng(0), 300, 4)

    def read_once(number):
        (tmp_path / str(number)).mkdir()  # raises FileExistsError the second time
        return X[100 * number : 100 * number + 100], y[100 * number : 100 * number + 100]

    with cluster_of(2) as client:
        ordinary, waits = Overseer.wait, []

        def wait(self, futures, partitions):
            waits.append(len(futures))
            if len(waits) == 6:
                kill(next(iter(process_ids(client).values())))
            return ordinary(self, futures, partitions)

        monkeypatch.setattr(Overseer, "wait", wait)
        begun = time.monotonic()
        with pytest.raises(ClusterError, match=r"Partition [012] could not be rebuilt: FileExistsError"):
            LinearSVC(client=client).fit([dask.delayed(read_once)(number) for number in range(3)])
        assert time.monotonic() - begun < SECONDS_AT_MOST
        assert_nothing_left(client)


def die(X):
    """End the process of the worker, as the system does when memory is full."""
    import os

    os._exit(137)


def test_workers_that_die_of_the_same_rows_are_told(data):
    with dask.config.set({"distributed.scheduler.allowed-failures": 1}), cluster_of(1) as client:
        X = data[0].map_blocks(die, dtype=float, meta=np.empty((0, 0)))
        assert_fails_soon(LinearSVC(client=client), (X, data[1]), "memory")
        assert_nothing_left(client)


def test_an_error_of_the_users_own_rows_is_that_error(client, data):
    def broken(X):
        raise ZeroDivisionError("no such rows")

    with pytest.raises(ZeroDivisionError, match="no such rows"):
        LinearSVC(client=client).fit(data[0].map_blocks(broken, dtype=float, meta=np.empty((0, 0))), data[1])
    assert_nothing_left(client)
    assert LinearSVC(client=client).fit(*data).gap_ <= 1e-4


def test_a_ranking_whose_workers_are_gone_says_so(data):
    qid = da.from_array(np.repeat(np.arange(40), 8)[:300], chunks=32)
    with cluster_of(1) as client:
        model = RankSVM(client=client, tol=1e-12, callbacks=Trouble(lambda: client.cluster.scale(0)))
        assert_fails_soon(model, (*data, qid), "no worker for 2 seconds")
