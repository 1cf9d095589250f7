"""What a fit on a cluster does, trip by trip: a `Group` that keeps a record.

An estimator has no reference to its `Group`. Within `recorded()`, the rows of each fit get a `RecordedGroup` instead.
"""

import pickle
import time
from contextlib import contextmanager
from dataclasses import dataclass, field

from widemargin.distributed import cluster_rows
from widemargin.distributed.group import Group


@dataclass
class Trip:
    """One pass over the partitions: what was asked, how long all and the slowest task took, what came back."""

    verb: str
    seconds: float = 0.0
    slowest: float = 0.0
    seconds_of_sums: float = 0.0
    bytes_sent: int = 0  # to each worker
    bytes_back: int = 0  # from all workers
    nodes: int = 0  # of the tree, from all workers

    @property
    def beyond(self):
        """Seconds beyond the slowest task."""
        return self.seconds - self.slowest


@dataclass
class Record:
    """The trips of a fit. The first one waits until the partitions are built."""

    trips: list = field(default_factory=list)

    @property
    def building(self):
        """Seconds until the partitions were built and the first pass over them was done."""
        return self.trips[0].seconds

    @property
    def later(self):
        """The trips but the first."""
        return self.trips[1:]


class RecordedGroup(Group):
    """A Group that keeps a record of its trips."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.record = Record()
        RECORDS.append(self.record)

    def _trip(self, batch):
        verb = batch.commands[-1].function
        sent = len(pickle.dumps(batch, protocol=5))
        self._now = Trip(getattr(verb, "__qualname__", type(verb).__name__), bytes_sent=sent)
        before, begun = self.seconds_beyond_tasks, time.perf_counter()
        found = super()._trip(batch)
        self._now.seconds = time.perf_counter() - begun
        # The sums of the client follow after the time that the Group itself counts.
        counted = self.seconds_beyond_tasks - before + self._now.seconds_of_sums
        self._now.slowest = self._now.seconds - counted
        self.record.trips.append(self._now)
        return found

    def _combined(self, command, parts):
        self._now.nodes += sum(len(part) for part in parts)
        self._now.bytes_back += sum(_size(value) for part in parts for value in part.values())
        begun = time.perf_counter()
        found = super()._combined(command, parts)
        self._now.seconds_of_sums += time.perf_counter() - begun
        return found


RECORDS: list[Record] = []


def _size(value):
    """Return the bytes of the numbers in a result: arrays, numbers, and tuples of them."""
    if isinstance(value, tuple | list):
        return sum(_size(one) for one in value)
    return getattr(value, "nbytes", 8)


@contextmanager
def recorded():
    """Give the fits within a RecordedGroup; yields the list of their Records."""
    kind, cluster_rows.Group = cluster_rows.Group, RecordedGroup
    try:
        yield RECORDS
    finally:
        cluster_rows.Group = kind
