"""A cluster whose workers sleep instead of computing, on the loopback address, and the trips of a `Group` over it.

The scheduler is a process, the workers are in two more, 25 of them in each at most; the client is the process of the
benchmark. A trip takes the same way as in a fit: a command with its arguments goes to every worker, a task sleeps as
long as it is told and returns an array as large as it is told, and the client adds these arrays.
"""

import subprocess
import sys
import time
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from statistics import median

import numpy as np
import psutil
from distributed import Client

from widemargin.distributed.group import Group
from widemargin.distributed.partition import ROWS, Partition, PartitionRows

ROOT = Path(__file__).parents[2]
WORKER_PROCESSES = 2
WARM_TRIPS = 4
_SECONDS_TO_START = 120


def empty_partition(number):
    """Return a Partition without rows."""
    return Partition(PartitionRows(number, None, np.zeros(0), None, None))


def asleep(rows, seconds, argument, n_numbers):
    """Sleep instead of passing over rows; return as many numbers as the pass would return."""
    time.sleep(seconds)
    return np.zeros(n_numbers)


class Simulation:
    """A Group with one partition on each worker, and the processor time that client, scheduler and workers use."""

    def __init__(self, client, group, processes):
        self.client, self.group, self._processes = client, group, processes

    def trip(self, seconds, bytes_sent=0, bytes_back=8):
        """Ask all workers once; return the seconds of the trip."""
        begun = time.perf_counter()
        self.group.total(asleep, ROWS, seconds, np.zeros(bytes_sent // 8), max(1, bytes_back // 8))
        return time.perf_counter() - begun

    def latency(self, n_trips, bytes_sent=0, bytes_back=8):
        """Return the median seconds of trips whose tasks do not sleep."""
        return median(self.trip(0.0, bytes_sent, bytes_back) for _ in range(n_trips))

    def processor_seconds(self):
        """Return the processor seconds that client, scheduler, and all workers have used."""
        own = time.process_time()
        scheduler, *workers = (sum(process.cpu_times()[:2]) for process in self._processes)
        return np.array([own, scheduler, sum(workers)])


@contextmanager
def simulation(n_workers):
    """Start a scheduler and workers; yields the Simulation after its first trips."""
    command = [sys.executable, "-m", "benchmarks.cluster.workers"]
    started = [subprocess.Popen([*command, "scheduler"], cwd=ROOT, stdout=subprocess.PIPE, text=True)]
    try:
        address = started[0].stdout.readline().strip()
        cuts = [n_workers * k // WORKER_PROCESSES for k in range(WORKER_PROCESSES + 1)]
        for start, stop in pairwise(cuts):
            if stop > start:
                started.append(subprocess.Popen([*command, "workers", address, str(stop - start)], cwd=ROOT))
        with Client(address) as client:
            client.wait_for_workers(n_workers, timeout=_SECONDS_TO_START)
            addresses = sorted(client.scheduler_info(n_workers=-1)["workers"])
            futures = [client.submit(empty_partition, k, workers=[where], pure=False)
                       for k, where in enumerate(addresses)]  # fmt: skip
            found = Simulation(client, Group(client, futures, None, {}), [psutil.Process(one.pid) for one in started])
            found.latency(WARM_TRIPS)
            yield found
            found.group.close()
    finally:
        for process in started[::-1]:
            process.terminate()
            process.wait()
