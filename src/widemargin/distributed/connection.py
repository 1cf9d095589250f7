"""From words to a cluster: the client of an address or of processes on this machine, and the estimator for it."""

import logging
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
from dask.system import CPU_COUNT
from distributed import Client, LocalCluster, WorkerPlugin
from sklearn.base import BaseEstimator

from widemargin._runtime import progress
from widemargin.data.blocks.reader import open_blocks
from widemargin.distributed.cutting_plane import MeasureSVC, OrdinalSVC, RankSVM, ROCAreaSVC
from widemargin.distributed.failures import ClusterFailure, Overseer
from widemargin.distributed.kernel import SVC, SVR, OneClassSVM
from widemargin.distributed.linear import LinearSVC, LinearSVR
from widemargin.distributed.linear_cv import LinearSVCCV
from widemargin.distributed.sources import BlockFiles, local_path
from widemargin.errors import ClusterError

LOCAL = "local"
_SECONDS_TO_CONNECT = 8
_ESTIMATORS: dict[str, Any] = {
    kind.__name__: kind
    for kind in (
        LinearSVC, LinearSVR, LinearSVCCV, RankSVM, OrdinalSVC, ROCAreaSVC, MeasureSVC, SVC, SVR, OneClassSVM,
    )
}  # fmt: skip


def counterpart(model: BaseEstimator, client: Client) -> Any:
    """Return the estimator on a cluster with the parameters of an ordinary one, or None if there is no such class."""
    kind = _ESTIMATORS.get(type(model).__name__)
    return None if kind is None else kind(**model.get_params(deep=False), client=client)


class _IgnoreInterrupts(WorkerPlugin):
    """Ctrl-C at a terminal reaches all processes; those of a local cluster leave it to the client."""

    name = "widemargin-ignore-interrupts"

    def setup(self, worker: Any) -> None:
        """Ignore the signal, if the worker has a process of its own."""
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, signal.SIG_IGN)


@contextmanager
def connected(cluster: str | Client, n_processes: int | None = None) -> Iterator[Client]:
    """Within the block, be connected to a cluster.

    Parameters
    ----------
    cluster : str or distributed.Client
        The address of a scheduler; "local" for a cluster of processes on this machine, which end with the block; or a
        client, which stays as it is.
    n_processes : int or None, default=None
        Of "local", the number of processes, each with one thread; None is one for each core.

    Raises
    ------
    ClusterError
        If the scheduler cannot be reached.
    """
    if isinstance(cluster, Client):
        yield cluster
    elif cluster == LOCAL:
        with progress.task("starting workers"):
            processes = LocalCluster(
                n_workers=n_processes or CPU_COUNT, threads_per_worker=1, processes=True, dashboard_address=":0",
                silence_logs=logging.CRITICAL,
            )  # fmt: skip
        with processes, Client(processes) as client:
            client.register_plugin(_IgnoreInterrupts())
            yield client
    else:
        with _client_of_address(cluster) as client:
            yield client


def _client_of_address(address):
    """Return the client of a scheduler; ClusterError if it does not answer."""
    try:
        _await_greeting(address)
        return Client(address, timeout=_SECONDS_TO_CONNECT)
    except (OSError, ValueError, MemoryError) as error:
        raise ClusterError(
            f"{address}: no Dask scheduler answers there ({error or type(error).__name__}); check the address, and "
            "that the scheduler runs"
        ) from error


def _await_greeting(address):
    """Raise OSError if nothing at an address sends the first bytes of a scheduler; a Client would wait forever.

    Only for TCP: over other protocols, and over TLS, a scheduler waits for the client to begin.
    """
    if "://" in address and not address.startswith("tcp://"):
        return
    host, _, port = address.removeprefix("tcp://").rpartition(":")
    with socket.create_connection((host.strip("[]"), int(port)), timeout=_SECONDS_TO_CONNECT / 2) as connection:
        if not connection.recv(1):
            raise ConnectionError("the connection was closed")


class FileFacts(NamedTuple):
    """What a row-block file says of its rows.

    `labels` are the distinct ones; None if they were not asked for, or are not whole numbers. `n_queries` is None if
    rows have no queries, and 0 if these were not asked for.
    """

    n_rows: int
    n_features: int
    has_words: bool
    labels: np.ndarray | None
    has_weight: bool
    n_queries: int | None


def facts_of_files(client: Client, files: BlockFiles, *, labels: bool, queries: bool) -> list[FileFacts]:
    """Return the FileFacts of each file, from the workers; `labels` and `queries` say what is asked for.

    Raises
    ------
    ClusterError
        If the cluster cannot tell, for example because it has no workers.
    """
    overseer = Overseer(client)
    try:
        overseer.workers()
        tasks = [client.submit(_facts_of_file, path, labels, queries, pure=False) for path in files.paths]
        overseer.wait(tasks, ())
    except ClusterFailure as failure:
        raise ClusterError(str(failure)) from failure
    return client.gather(tasks)


def _facts_of_file(path, labels, queries):
    """Return the FileFacts of a file, on a worker; features are not read."""
    blocks = open_blocks(local_path(path))
    layout = blocks.layout
    has_words = isinstance(layout.label_type, tuple)
    is_whole = not has_words and np.dtype(layout.label_type).kind in "iu"
    found = np.array(layout.label_type) if has_words else np.unique(blocks.labels) if labels and is_whole else None
    n_queries = (len(np.unique(blocks.qid)) if queries else 0) if layout.has_qid else None
    return FileFacts(len(blocks), blocks.shape[1], has_words, found, layout.has_weight, n_queries)
