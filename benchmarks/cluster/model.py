"""The cost model of a fit on a cluster, from measured numbers, and its check against a simulated cluster.

A fit is a sequence of trips. A trip over W workers, each with n / W of n rows, takes

    seconds = t n / W  +  a + b W  +  c W (bytes sent to each worker)  +  e W (bytes back from each worker),

where t is the time of the pass for one row and thread, measured on covertype (section local), and a, b, c and e are
measured with tasks that do nothing: a is what a trip costs at all, b what each task costs the client, the scheduler and
the network, and c and e what bytes cost, the sums of the client included. The sizes are those of the same fit.
"""

from dataclasses import dataclass, replace
from statistics import median

import numpy as np

from benchmarks.cluster.simulation import simulation

CALIBRATED = (1, 2, 5, 10, 20)  # workers, for a and b
SIMULATED = (10, 25, 50)
WORKERS, ROWS = (10, 30, 100, 300, 1000), (10**8, 10**9, 10**10)
ROWS_PER_SIMULATED_WORKER = 2_000_000
TRIPS, SIZE, WORKERS_FOR_BYTES = 25, 1 << 20, 10
SAMPLE = "sample_of"  # the pass that brings a sample of rows to the client
MEMORY_OF_WORKER = 64e9  # bytes of rows; beyond it, rows are read from a disk in each pass, which is not modelled


@dataclass(frozen=True)
class Costs:
    """The numbers a, b, c and e of the model: seconds, per trip, per task, per byte sent and per byte that returns."""

    trip: float
    task: float
    byte_sent: float
    byte_back: float

    def latency(self, n_workers, bytes_sent, bytes_back):
        """Return the seconds of a trip beyond the slowest task; bytes are those of one worker."""
        bytes_of_one = self.byte_sent * bytes_sent + self.byte_back * bytes_back
        return self.trip + n_workers * (self.task + bytes_of_one)


@dataclass(frozen=True)
class Pass:
    """A trip of the measured fit: seconds for a row and thread, and the bytes to and from one worker.

    The sample of rows that the client fits first has a fixed size: each worker returns its share of `shared_bytes`.
    """

    seconds_per_row: float
    bytes_sent: int
    bytes_from_each: int
    shared_bytes: int

    def bytes_back(self, n_workers):
        """Return the bytes that come from one of so many workers."""
        return self.bytes_from_each + self.shared_bytes // n_workers

    def seconds(self, n_rows, n_workers):
        """Return the seconds of a worker for its share of the rows."""
        return self.seconds_per_row * n_rows / n_workers


def model_table(page, names, options):
    """Measure the costs, predict large clusters, and compare with simulated clusters of up to 50 workers."""
    for name in page.each("model", names):
        passes = _passes(page.fact(f"local: {name}"))
        costs, own, trips = _measured_costs(page)
        checks = [_checked(page, passes, costs, n_workers) for n_workers in SIMULATED]
        predictions = [_predicted(page, passes, replace(costs, task=own), n_workers) for n_workers in WORKERS]
        page.keep("model", {"costs": vars(costs), "own": own, "trips": trips, "checks": checks,
                            "predictions": predictions, "calibrated": CALIBRATED, "workers": WORKERS,
                            "rows": ROWS})  # fmt: skip


def _passes(local):
    """Return the Passes of the measured fit."""
    n, passes = local["n_workers"], []
    for trip in local["trips"]:
        is_sample = trip["verb"] == SAMPLE
        sizes = (0, trip["bytes_back"]) if is_sample else (trip["bytes_back"] // n, 0)
        passes.append(Pass(trip["slowest"] * n / local["rows"], trip["bytes_sent"], *sizes))
    return passes


# --- Measured ---------------------------------------------------------------------------------------------------------


def _measured_costs(page):
    """Return the Costs, the seconds of a task that are not those of the worker, and the median trips."""
    trips, shares = [], []
    for n_workers in CALIBRATED:
        with simulation(n_workers) as simulated:
            before = simulated.processor_seconds()
            trips.append(simulated.latency(TRIPS))
            shares.append((simulated.processor_seconds() - before) / TRIPS)
            if n_workers == WORKERS_FOR_BYTES:
                back = (simulated.latency(TRIPS // 2, 8, SIZE) - trips[-1]) / SIZE / n_workers
                sent = (simulated.latency(TRIPS // 2, SIZE, 8) - trips[-1]) / SIZE / n_workers
    task, trip = np.polyfit(CALIBRATED, trips, 1)
    client, scheduler, worker = (np.polyfit(CALIBRATED, part, 1)[0] for part in np.transpose(shares))
    costs = Costs(*(max(0.0, float(one)) for one in (trip, task, sent, back)))
    for what, value in (
        ("a, a trip", f"{1e3 * costs.trip:.1f} ms"),
        ("b, each task", f"{1e3 * costs.task:.2f} ms"),
        ("of a task: processor time of the client", f"{1e3 * client:.2f} ms"),
        ("of a task: processor time of the scheduler", f"{1e3 * scheduler:.2f} ms"),
        ("of a task: processor time of its worker", f"{1e3 * worker:.2f} ms"),
        ("c, a megabyte sent to one worker", f"{1e9 * costs.byte_sent:.1f} ms"),
        ("e, a megabyte back from one worker", f"{1e9 * costs.byte_back:.1f} ms"),
        *((f"trip of {n} empty tasks", f"{1e3 * one:.1f} ms") for n, one in zip(CALIBRATED, trips, strict=True)),
    ):
        page.put("costs", ["quantity", "measured"], [what, value], n_key=1)
    return costs, float(client + scheduler), trips


def _checked(page, passes, costs, n_workers):
    """Repeat the passes of the fit with sleeping workers; return predicted and measured seconds."""
    columns = ["workers", "rows", "trips", "sleeping, s", "latency, predicted s", "all, predicted s", "all, measured s",
               "measured / predicted", "median trip, predicted ms", "measured ms"]  # fmt: skip
    n_rows = n_workers * ROWS_PER_SIMULATED_WORKER
    seconds = [one.seconds(n_rows, n_workers) for one in passes]
    latencies = [costs.latency(n_workers, one.bytes_sent, one.bytes_back(n_workers)) for one in passes]
    with simulation(n_workers) as simulated:
        measured = [simulated.trip(wait, one.bytes_sent, one.bytes_back(n_workers))
                    for wait, one in zip(seconds, passes, strict=True)]  # fmt: skip
    predicted = [wait + latency for wait, latency in zip(seconds, latencies, strict=True)]
    page.put("check", columns, [
        n_workers, f"{n_rows:.0e}", len(passes), f"{sum(seconds):.2f}", f"{sum(latencies):.2f}",
        f"{sum(predicted):.2f}", f"{sum(measured):.2f}", f"{sum(measured) / sum(predicted):.2f}",
        f"{1e3 * median(predicted):.0f}", f"{1e3 * median(measured):.0f}",
    ], n_key=1)  # fmt: skip
    return {"workers": n_workers, "predicted": predicted, "measured": measured}


# --- On paper ---------------------------------------------------------------------------------------------------------


def _predicted(page, passes, costs, n_workers):
    """Write the predicted seconds of the fit for each number of rows, and how much of them is latency."""
    columns = ["workers", *(f"{n_rows:.0e} rows, s" for n_rows in ROWS), "latency of all trips, s"]
    latency = sum(costs.latency(n_workers, one.bytes_sent, one.bytes_back(n_workers)) for one in passes)
    seconds = [latency + sum(one.seconds(n_rows, n_workers) for one in passes) for n_rows in ROWS]
    bytes_per_row = 4 * 54  # covertype: 54 columns of float32
    cells = [f"{one:,.0f}{'' if n_rows * bytes_per_row / n_workers <= MEMORY_OF_WORKER else '†'}"
             for n_rows, one in zip(ROWS, seconds, strict=True)]  # fmt: skip
    page.put("model", columns, [n_workers, *cells, f"{latency:.1f}"], n_key=1)
    return {"workers": n_workers, "seconds": seconds, "latency": latency}
