"""Workers that are killed, leave, join or are slow: the fit goes on, and ends with the same bits."""

import operator
import os
import threading
import time

import dask
import dask.array as da
import numpy as np
import pytest
from tests.distributed.clusters import (
    assert_nothing_left,
    blocks,
    classes_of,
    cluster_of,
    kill,
    process_ids,
    same_bits,
    workers_never_replaced,
)

from widemargin.dask import LinearSVC, LinearSVCCV, OneClassSVM, RankSVM
from widemargin.distributed import failures, group
from widemargin.distributed.failures import Overseer
from widemargin.distributed.placement import balanced

IS_NIGHTLY = os.environ.get("WIDEMARGIN_NIGHTLY", "") not in ("", "0")


@pytest.fixture(scope="module")
def restarting():
    """The client of a cluster of three workers, which are started anew after they were killed."""
    with cluster_of(3) as client:
        yield client


@pytest.fixture
def hurt(restarting):
    """As `restarting`, with all workers there; after the test nothing of a fit may be left."""
    restarting.cluster.scale(3)  # a worker that was killed while it started is not started again
    restarting.wait_for_workers(3, timeout=60)
    yield restarting
    restarting.cluster.scale(3)
    restarting.wait_for_workers(3, timeout=60)
    assert_nothing_left(restarting)


def fit_newton(client):
    X, y = blocks(*classes_of(np.random.default_rng(0), 300, 4), n_rows=32)
    return LinearSVC(client=client, loss="hinge", tol=1e-2, penalize_intercept=not IS_NIGHTLY).fit(X, y)


def fit_ocas(client):
    X, y = blocks(*classes_of(np.random.default_rng(1), 300, 3), n_rows=32)
    return LinearSVC(client=client, solver="ocas", loss="hinge", tol=0.05, C=0.1).fit(X, y)


def fit_ranking(client):
    X, y = blocks(*classes_of(np.random.default_rng(2), 320, 3), n_rows=32)
    qid = da.from_array(np.repeat(np.arange(40), 8), chunks=32)
    return RankSVM(client=client, tol=0.05).fit(X, y, qid=qid)


def fit_folds(client):
    X, y = blocks(*classes_of(np.random.default_rng(4), 300, 3))
    return LinearSVCCV([0.1], cv=2, tol=0.01, client=client).fit(X, y)


def fit_basis(client):
    X, _ = blocks(*classes_of(np.random.default_rng(5), 300, 3), n_rows=32)
    return OneClassSVM(client=client, basis=8, random_state=0, nu=0.2).fit(X)


FITS = {"newton": fit_newton, "ocas": fit_ocas, "ranking": fit_ranking, "folds": fit_folds, "basis": fit_basis}


@pytest.fixture(scope="module")
def models(restarting):
    """The models without any fault."""
    return {name: fit(restarting) for name, fit in FITS.items()}


def in_pass(monkeypatch, number, act):
    """Have a function called in the middle of a pass of the next fit, when its tasks have been sent."""
    waits, ordinary = [], Overseer.wait

    def wait(self, futures, partitions):
        waits.append(len(futures))
        if len(waits) == number:
            act()
        return ordinary(self, futures, partitions)

    monkeypatch.setattr(Overseer, "wait", wait)
    return waits


MOMENTS = [("newton", 1), ("newton", 9), ("ocas", 12), ("ranking", 8), ("basis", 9)]
MORE = [(name, number) for name in FITS for number in (1, 3, 5, 8, 10)]


@pytest.mark.parametrize(("name", "number"), MOMENTS + MORE * IS_NIGHTLY)
def test_a_worker_killed_in_a_pass_costs_nothing_but_time(name, number, hurt, models, monkeypatch):
    victim = sorted(process_ids(hurt).values())[number % 3]
    waits = in_pass(monkeypatch, number, lambda: kill(victim))
    assert same_bits(FITS[name](hurt), models[name])
    assert len(waits) > number, "the fit was over before the worker was killed"
    assert victim not in process_ids(hurt).values()


def test_a_worker_killed_while_partitions_are_built_costs_nothing_but_time(hurt, rng):
    X, y = classes_of(rng, 240, 3)
    parts = [
        dask.delayed(operator.getitem)({None: (X[k::6], y[k::6])}, dask.delayed(time.sleep)(0.4 + 0.01 * k))
        for k in range(6)
    ]
    expected = LinearSVC(client=hurt).fit(parts)
    timer = threading.Timer(0.6, kill, [sorted(process_ids(hurt).values())[0]])
    timer.start()
    assert same_bits(LinearSVC(client=hurt).fit(parts), expected)
    timer.join()


@pytest.mark.skipif(not IS_NIGHTLY, reason="twenty fits: nightly")
def test_workers_killed_at_twenty_random_moments_cost_nothing_but_time(hurt, models, rng):
    for _ in range(20):
        hurt.wait_for_workers(3, timeout=60)
        timer = threading.Timer(rng.uniform(0.0, 1.0), kill, [rng.choice(list(process_ids(hurt).values()))])
        timer.start()
        assert same_bits(fit_newton(hurt), models["newton"])
        timer.join()


def test_two_workers_killed_one_after_the_other_and_never_replaced(models, monkeypatch):
    with cluster_of(1) as client, workers_never_replaced(client, 2) as processes:
        ordinary, waits = Overseer.wait, []

        def wait(self, futures, partitions):
            waits.append(len(futures))
            if len(waits) in (3, 8):
                processes[len(waits) // 8].kill()
            return ordinary(self, futures, partitions)

        monkeypatch.setattr(Overseer, "wait", wait)
        assert same_bits(fit_newton(client), models["newton"])
        assert (waits[0], waits[-1]) == (3, 1)
        assert_nothing_left(client)


def test_workers_that_leave_and_join_during_a_fit(models, monkeypatch):
    with cluster_of(3) as client:
        in_pass(monkeypatch, 4, lambda: client.cluster.scale(1))
        assert same_bits(fit_newton(client), models["newton"])

        def joined():
            client.cluster.scale(2)
            client.wait_for_workers(2, timeout=60)

        monkeypatch.setattr(failures, "_SECONDS_OF_AN_ANSWER", 0.0)
        waits = in_pass(monkeypatch, 4, joined)
        assert same_bits(fit_newton(client), models["newton"])
        assert 2 in waits[5:], f"the new worker got no partitions: {waits}"
        assert_nothing_left(client)


def test_two_fits_at_once_on_one_cluster(client, models):
    found = {}
    threads = [threading.Thread(target=lambda name=name: found.update({name: FITS[name](client)}))
               for name in ("newton", "ocas")]  # fmt: skip
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert all(same_bits(found[name], models[name]) for name in ("newton", "ocas"))


def test_a_killed_worker_with_another_default_client_and_delayed_blocks(hurt, monkeypatch, tmp_path):
    X, y = classes_of(np.random.default_rng(0), 400, 3)

    def read(number):
        (tmp_path / f"{number}-{time.time_ns()}").touch()
        return X[100 * number : 100 * number + 100], y[100 * number : 100 * number + 100]

    blocks_read = [dask.delayed(read)(number) for number in range(4)]
    model = LinearSVC(client=hurt).fit(blocks_read)
    n_reads = len(list(tmp_path.iterdir()))
    victim = next(iter(process_ids(hurt).values()))
    in_pass(monkeypatch, 5, lambda: kill(victim))
    assert same_bits(LinearSVC(client=hurt).fit(blocks_read), model)
    n_again = len(list(tmp_path.iterdir())) - n_reads
    assert n_reads == 4
    assert 4 < n_again < 8, "only the rows of the lost worker are read once more"


def slow_down():
    """Make each pass of a worker last a tenth of a second longer for each of its partitions."""
    ordinary = group.results_here

    def slow(partitions, *arguments):
        time.sleep(0.1 * len(partitions))
        return ordinary(partitions, *arguments)

    group.results_here = slow


def test_a_much_slower_worker_gives_its_partitions_away(models, monkeypatch):
    seen = []

    def seen_balanced(assignment, seconds):
        found = balanced(assignment, seconds)
        seen.extend([assignment, found])
        return found

    monkeypatch.setattr(group, "balanced", seen_balanced)
    with cluster_of(2) as client:
        slow = min(client.scheduler_info()["workers"])
        client.run(slow_down, workers=[slow])
        assert same_bits(fit_newton(client), models["newton"])
    assert len(seen[0][slow]) > 2
    assert len(seen[-1][slow]) < len(seen[0][slow])  # how many depends on the speed of the other, too
