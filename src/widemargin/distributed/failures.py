"""What can go wrong on a cluster that Dask does not repair by itself, and how it is noticed.

A task of a fit waits, and nothing is reported, if no worker is there, if all workers are paused because their memory
is full, or if the connection to the scheduler is gone. The `Overseer` waits for tasks and looks at the cluster every
second; what lasts longer than a grace period ends the fit.
"""

import inspect
import math
import time
from collections.abc import Sequence
from concurrent.futures import CancelledError
from typing import Any

import dask
from distributed import Client, Future, KilledWorker

_SECONDS_BETWEEN_LOOKS = 1.0
_SECONDS_OF_AN_ANSWER = 0.5  # for which the workers are taken to be those that the scheduler named
_GRACE_SECONDS = 20.0  # of a cluster without a usable worker; dask.config: widemargin.grace-seconds


class ClusterFailure(KeyboardInterrupt):
    """The cluster cannot go on with the fit.

    It interrupts a solver as Ctrl-C does, so that the solver returns its best solution so far. The estimator keeps that
    model, and raises a `ClusterError` with the same message.
    """


class Overseer:
    """Waits for tasks, and notices if they will never be done.

    Parameters
    ----------
    client : distributed.Client
    """

    def __init__(self, client: Client) -> None:
        self._client = client
        self._grace = float(dask.config.get("widemargin.grace-seconds", _GRACE_SECONDS))
        self._trouble, self._since = "", time.monotonic()
        self._workers: dict[str, Any] = {}
        self._looked = -math.inf

    def workers(self) -> dict[str, Any]:
        """Return what the scheduler says of each worker, by address, waiting for one if there is none.

        The scheduler is asked again when its last answer is older than half a second.
        """
        if time.monotonic() - self._looked < _SECONDS_OF_AN_ANSWER:
            return self._workers
        while not (found := self._known_workers()):
            self._check()
            time.sleep(0.1)
        self._workers, self._looked = found, time.monotonic()
        return found

    def forget_workers(self) -> None:
        """Ask the scheduler for the workers when they are needed next."""
        self._looked = -math.inf

    def _known_workers(self) -> dict[str, Any]:
        """Return what the scheduler says of each worker."""
        if self._client.status != "running":
            return {}
        return all_workers(self._client)

    def wait_until_built(self, partitions: Sequence[Future]) -> None:
        """Return when all partitions are there; raise what `wait` raises."""
        self._wait(partitions, ())

    def wait(self, futures: Sequence[Future], partitions: Sequence[Future]) -> None:
        """Return when all tasks are done.

        Raises
        ------
        ClusterFailure
            If the cluster cannot go on.
        Exception
            What a task has raised.
        """
        self._wait(futures, partitions)

    def _wait(self, futures, partitions):
        pending = list(futures)
        while pending:  # `distributed.wait` would wait at the default client, which may be another one
            try:
                pending[0].exception(timeout=_SECONDS_BETWEEN_LOOKS)
            except TimeoutError:
                self._check()
            except CancelledError as error:
                raise ClusterFailure("The connection to the scheduler was lost, and with it the tasks.") from error
            pending = [future for future in pending if not future.done()]
            self._raise_errors(futures, partitions)
        self._trouble = ""

    def _raise_errors(self, futures, partitions):
        """Raise what a task, or the building of a partition, has raised."""
        for number, future in enumerate(partitions):
            if future.status == "error":
                raise _named(future.exception(), f"Partition {number} could not be rebuilt")
        for future in futures:
            if future.status == "error":
                raise _named(future.exception(), "A pass over the rows failed")
            if future.status == "cancelled":  # one that is "lost" is computed again
                raise ClusterFailure("The scheduler has dropped the tasks of the fit: it was restarted or closed.")

    def _check(self):
        """Raise ClusterFailure if the cluster has been unable to work for too long."""
        trouble = self._trouble_now()
        if trouble != self._trouble:
            self._trouble, self._since = trouble, time.monotonic()
        if trouble and time.monotonic() - self._since >= self._grace:
            raise ClusterFailure(f"{trouble} for {self._grace:.0f} seconds.")

    def _trouble_now(self):
        """Return what keeps the cluster from working, in words; empty if nothing does."""
        if self._client.status != "running":
            return "The connection to the scheduler has been lost"
        workers = self._known_workers()
        if not workers:
            return "The cluster has had no worker"
        if all(worker.get("status") in ("paused", "closing_gracefully") for worker in workers.values()):
            return "All workers have been paused, because their memory is full"
        return ""


def all_workers(client: Client) -> dict[str, Any]:
    """Return what the scheduler says of each worker, by address."""
    asks_for_all = "n_workers" in inspect.signature(client.scheduler_info).parameters
    return dict(client.scheduler_info(**({"n_workers": -1} if asks_for_all else {}))["workers"])


def _named(error, what):
    """Return an exception of a task as it is raised to the caller: that of the task, or a ClusterFailure."""
    if isinstance(error, KilledWorker):
        return ClusterFailure(
            f"{what}: workers died one after the other while they processed the same rows, probably because their "
            f"memory was full ({error}). Use more or smaller partitions, or workers with more memory."
        )
    if isinstance(error, CancelledError):
        return ClusterFailure(f"{what}: its task was cancelled ({error}).")
    if what.startswith("Partition") and isinstance(error, OSError | KeyError | ImportError):
        return ClusterFailure(f"{what}: {type(error).__name__}: {error}")
    return error
