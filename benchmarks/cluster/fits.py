"""Fits on a LocalCluster for the page: against one process, between numbers of workers, and with kills."""

import hashlib
import os
import signal
import threading
import time
import warnings
from contextlib import contextmanager
from statistics import median

import numpy as np
from distributed import Client, LocalCluster

import widemargin
from benchmarks.cluster.data import covertype, covertype_on, hinge_objective, splice
from benchmarks.cluster.records import recorded
from benchmarks.machinery.figures import Seconds, shown
from widemargin.dask import LinearSVC

COST, TOLERANCE, REPEATS = 1e-2, 1e-3, 3
EXACT_TOLERANCE = 1e-7  # of fits whose objectives are compared to 1e-6
WORKERS_OF_BITS, WORKERS_OF_KILLS = (1, 2, 3, 4), 3
SPLICE = "splice stand-in"
COPIES_OF_KILLS = 2  # of covertype, so that a fit takes several seconds
_SECONDS_TO_WAIT_FOR_WORKERS = 120


@contextmanager
def local_cluster(n_workers):
    """Start workers of one thread each, as processes; yields their client."""
    with (
        LocalCluster(n_workers=n_workers, threads_per_worker=1, dashboard_address=":0", silence_logs=50) as cluster,
        Client(cluster) as client,
    ):
        yield client


def hinge(C=COST, tol=TOLERANCE, **parameters):
    """Return the parameters of the fits of this page."""
    return {"C": C, "loss": "hinge", "fit_intercept": False, "tol": tol, "random_state": 0, **parameters}


def fitted(model, *data):
    """Fit a model; return it, and the seconds it took."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        begun = time.perf_counter()
        model.fit(*data)
        return model, time.perf_counter() - begun


def bits_of(model):
    """Return a short hash of the bits of the weights and the intercept."""
    return hashlib.sha256(model.coef_.tobytes() + np.asarray(model.intercept_).tobytes()).hexdigest()[:12]


# --- One process with two threads against two processes with one ----------------------------------------------------


def local_table(page, names, options):
    """Measure sets, everybody taking turns, after a round that compiles; keep the facts for the model."""
    n_copies, n_rows = max(1, round(10 * options.scale)), round(3_000_000 * options.scale)
    for name in page.each("local", names):
        with local_cluster(2) as client, recorded() as records:
            if name == SPLICE:
                blocks, there = splice(options.folder, n_rows)
                here = (blocks,)
            else:
                here, there = covertype(options.folder, n_copies), covertype_on(client, options.folder, n_copies)
                blocks = [here]
            rounds = [_round(client, here, (there,), records) for _ in range(1 + REPEATS)][1:]
            _put_local(page, name, blocks, rounds)


def _round(client, here, there, records):
    """Fit once in this process and once on the cluster."""
    ordinary, seconds = fitted(widemargin.LinearSVC(n_jobs=2, **hinge()), *here)
    ours, seconds_there = fitted(LinearSVC(client=client, **hinge()), *there)
    return {"here": seconds, "there": seconds_there, "models": (ordinary, ours), "record": records[-1]}


def _put_local(page, name, blocks, rounds):
    """Put the row of a set, given as blocks (X, y); keep the facts of its last round, and the medians."""
    columns = ["set", "rows", "1 process × 2 threads, s", "2 × 1 on the cluster, s", "of which building", "ratio",
               "trips", "ms per trip beyond the slowest task", "largest", "Newton steps", "objectives differ by",
               "gaps"]  # fmt: skip
    last, (ordinary, ours) = rounds[-1]["record"], rounds[-1]["models"]
    beyond = [trip.beyond for one in rounds for trip in one["record"].later]
    seconds = {key: Seconds([one[key] for one in rounds]) for key in ("here", "there")}
    building = median(one["record"].building for one in rounds)
    ratio = median(one["there"] / one["here"] for one in rounds)
    objectives = [hinge_objective(blocks, model.coef_.ravel(), COST) for model in (ordinary, ours)]
    n_rows = sum(X.shape[0] for X, _ in blocks)
    page.put("local", columns, [
        name, f"{n_rows:,}", shown(seconds["here"]), shown(seconds["there"]), f"{building:.2f}", f"{ratio:.2f}",
        len(last.trips), f"{1e3 * np.mean(beyond):.1f}", f"{1e3 * max(beyond):.0f}",
        f"{ordinary.n_iter_} and {ours.n_iter_}", f"{abs(objectives[1] / objectives[0] - 1.0):.1e}",
        f"{ordinary.gap_:.1e} and {ours.gap_:.1e}",
    ], n_key=1)  # fmt: skip
    trips = [vars(trip) for trip in last.later]
    page.keep(f"local: {name}", {"rows": n_rows, "trips": trips, "n_workers": 2})


# --- The same bits ----------------------------------------------------------------------------------------------------

_CASES = {
    "hinge, no intercept": hinge(tol=EXACT_TOLERANCE),
    "hinge, free intercept": hinge(tol=EXACT_TOLERANCE) | {"fit_intercept": True, "penalize_intercept": False},
    "squared hinge, penalised intercept": hinge(tol=EXACT_TOLERANCE) | {"loss": "squared_hinge", "fit_intercept": True},
}


def bits_table(page, numbers, options):
    """Fit on one to four workers; compare the bits, and the objective with that of one process."""
    columns = ["problem", "workers", "objective / in memory − 1", "gap", "seconds", "bits",
               "same bits as one worker"]  # fmt: skip
    X, y = covertype(options.folder)
    X, y = X[: round(len(y) * min(1.0, options.scale))], y[: round(len(y) * min(1.0, options.scale))]
    for n_workers in page.each("bits", numbers):
        with local_cluster(n_workers) as client:
            blocks = _blocks(client, X, y, options.folder)
            for name, parameters in _CASES.items():
                if n_workers == numbers[0]:
                    model, _ = fitted(widemargin.LinearSVC(n_jobs=2, **parameters), X, y)
                    page.keep(f"objective: {name}", _objective(parameters, X, y, model))
                model, seconds = fitted(LinearSVC(client=client, **parameters), blocks)
                if n_workers == numbers[0]:
                    page.keep(f"bits: {name}", bits_of(model))
                difference = _objective(parameters, X, y, model) / page.fact(f"objective: {name}") - 1.0
                is_same = bits_of(model) == page.fact(f"bits: {name}")
                page.put("bits", columns, [
                    name, n_workers, f"{difference:+.1e}", f"{model.gap_:.1e}", f"{seconds:.1f}", bits_of(model),
                    "yes" if is_same else "NO",
                ])  # fmt: skip


def _blocks(client, X, y, folder):
    """Return covertype on the cluster, in 7 blocks, so that no number of workers divides them evenly."""
    n_copies_of_rows = len(y) / len(covertype(folder)[1])
    if n_copies_of_rows == 1.0:
        return covertype_on(client, folder, n_parts=7)
    return covertype_on(client, folder, n_parts=round(7 / n_copies_of_rows))[:7]


def _objective(parameters, X, y, model):
    """Return the objective of a model, computed here: the penalised intercept is a weight, a free one is not."""
    w, intercept = model.coef_.ravel(), float(np.ravel(model.intercept_)[0])
    loss = np.maximum(0.0, 1.0 - y * (X @ w + intercept))
    loss = float(loss @ loss if parameters["loss"] == "squared_hinge" else loss.sum())
    is_penalised = parameters["fit_intercept"] and parameters.get("penalize_intercept", True)
    return 0.5 * (float(w @ w) + intercept**2 * is_penalised) + parameters["C"] * loss


# --- Killed workers ---------------------------------------------------------------------------------------------------


def killed_table(page, numbers, options):
    """Kill one of three workers at random moments of so many fits; count those that end with the same bits."""
    columns = ["fits", "killed before the end", "same bits", "undisturbed, s", "median cost, s", "largest cost, s",
               "moments", "others"]  # fmt: skip
    for n_kills in page.each("killed", numbers):
        found = _kills(n_kills, options)
        trials, seconds, bits = found["trials"], found["undisturbed"], found["bits"]
        same = [one for one in trials if one["bits"] == bits]
        costs = [one["seconds"] - seconds for one in same]
        others = "; ".join(one["bits"] for one in trials if one["bits"] != bits)
        moments = [one["moment"] for one in trials]
        page.put("killed", columns, [
            len(trials), sum(one["is_in_time"] for one in trials), len(same), f"{seconds:.2f}",
            f"{median(costs):.2f}" if costs else "–", f"{max(costs):.2f}" if costs else "–",
            f"{min(moments):.2f} to {max(moments):.2f} s", others or "none",
        ], n_key=1)  # fmt: skip
        page.keep("killed", found)


def _kills(n_kills, options):
    """Fit undisturbed, and then with kills; return seconds, bits and all trials."""
    rng = np.random.default_rng(0)
    with local_cluster(WORKERS_OF_KILLS) as client:
        blocks = covertype_on(client, options.folder, max(1, round(COPIES_OF_KILLS * options.scale)), 6)
        parameters = hinge(tol=EXACT_TOLERANCE)
        undisturbed = [fitted(LinearSVC(client=client, **parameters), blocks) for _ in range(4)][1:]
        seconds, bits = median(one for _, one in undisturbed), bits_of(undisturbed[0][0])
        moments = rng.uniform(0.0, 0.95 * seconds, n_kills)
        trials = [_killed(client, blocks, parameters, moment, rng) for moment in moments]
    return {"undisturbed": seconds, "bits": bits, "trials": trials}


def _killed(client, blocks, parameters, moment, rng):
    """Fit while one worker is killed at a moment; return the bits, or the error, and the seconds."""
    client.cluster.scale(WORKERS_OF_KILLS)  # a worker that was killed while it started is not started again
    client.wait_for_workers(WORKERS_OF_KILLS, timeout=_SECONDS_TO_WAIT_FOR_WORKERS)
    processes = client.run(os.getpid)
    victim = int(rng.choice(sorted(processes.values())))
    kill = threading.Timer(moment, os.kill, (victim, signal.SIGKILL))
    begun = time.perf_counter()
    kill.start()
    try:
        model, seconds = fitted(LinearSVC(client=client, **parameters), blocks)
        bits = bits_of(model)
    except Exception as error:  # the kinds of failures are counted, and told on the page
        bits, seconds = f"{type(error).__name__}: {error}"[:200], time.perf_counter() - begun
    is_in_time = not kill.is_alive()
    kill.join()
    print(
        f"killed after {moment:.2f} s: {seconds:.2f} s, {bits}" + ("" if is_in_time else ", after the fit"), flush=True
    )
    return {"moment": moment, "seconds": seconds, "bits": bits, "is_in_time": is_in_time}
