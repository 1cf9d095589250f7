"""The model is the same to the last bit, whatever the workers, their threads, and the places of the partitions."""

import os

import dask.array as da
import numpy as np
import pytest
from tests.distributed.clusters import assert_nothing_left, blocks, classes_of, cluster_of, same_bits

from widemargin.dask import SVC, LinearSVC, LinearSVCCV, OneClassSVM, RankSVM
from widemargin.distributed import group

IS_NIGHTLY = os.environ.get("WIDEMARGIN_NIGHTLY", "") not in ("", "0")


def fits(client):
    """Return models of several kinds of passes: Newton with and without a free intercept, planes, rankings, a basis."""
    rng = np.random.default_rng(3)
    X, y = blocks(*classes_of(rng, 300, 4), n_rows=32)
    qid = da.from_array(np.repeat(np.arange(40), 8)[:300], chunks=32)
    return [
        LinearSVC(client=client, penalize_intercept=False, loss="hinge", tol=1e-2).fit(X, y),
        LinearSVC(client=client, solver="ocas", loss="hinge", tol=0.05, C=0.1, scaling="standard").fit(X, y),
        RankSVM(client=client, tol=0.05).fit(X, y, qid=qid),
        SVC(client=client, basis=8, random_state=0, tol=1e-2).fit(X, (X[:, 0] > 1).astype(int) + (X[:, 1] > 0)),
        OneClassSVM(client=client, basis=8, random_state=0, nu=0.2).fit(X),
    ]


@pytest.fixture(scope="module")
def models(shared_client):
    """The models of three workers with one thread each."""
    return fits(shared_client)


@pytest.mark.parametrize(("n_workers", "n_threads"), [(2, 2)] + [(1, 1), (2, 1), (4, 1), (1, 3)] * IS_NIGHTLY)
def test_other_numbers_of_workers_and_threads_give_the_same_bits(n_workers, n_threads, models):
    with cluster_of(n_workers, n_threads) as client:
        assert all(map(same_bits, fits(client), models))
        assert_nothing_left(client)


def test_workers_that_come_and_partitions_that_move_give_the_same_bits(models):
    with cluster_of(2) as client:
        client.cluster.scale(4)
        client.wait_for_workers(4, timeout=60)
        assert all(map(same_bits, fits(client), models))
        client.cluster.scale(1)  # some of the others are still there when the next fit begins
        assert all(map(same_bits, fits(client), models))
        assert_nothing_left(client)


def test_partitions_that_move_in_every_pass_give_the_same_bits(client, models, monkeypatch):
    placed = []

    def moved(assignment, seconds):
        """Give each worker the partitions of the next one."""
        workers = sorted(assignment)
        placed.append(tuple(map(tuple, assignment.values())))
        return {worker: assignment[other] for worker, other in zip(workers, workers[1:] + workers[:1], strict=True)}

    monkeypatch.setattr(group, "balanced", moved)
    assert all(map(same_bits, fits(client), models))
    assert len(set(placed)) > 1


@pytest.mark.skipif(not IS_NIGHTLY, reason="two clusters: nightly")
def test_one_thread_of_two_and_folds_give_the_same_bits(client):
    X, y = blocks(*classes_of(np.random.default_rng(5), 300, 3))
    options = {"Cs": [0.1, 1.0], "cv": 2}
    model = LinearSVCCV(client=client, **options).fit(X, y)
    with cluster_of(1, 2) as other:
        assert same_bits(model, LinearSVCCV(client=other, **options).fit(X, y))
        assert same_bits(model, LinearSVCCV(client=other, n_jobs=1, **options).fit(X, y))
