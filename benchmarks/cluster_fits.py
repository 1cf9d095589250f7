"""Fits on a LocalCluster for `benchmarks.cluster`: against one process, between numbers of workers, and with kills."""

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
from benchmarks.cluster_data import covertype, covertype_on, hinge_objective, splice
from benchmarks.cluster_records import recorded
from widemargin.dask import LinearSVC

COST, TOLERANCE, REPEATS = 1e-2, 1e-3, 3
EXACT_TOLERANCE = 1e-7  # of fits whose objectives are compared to 1e-6
KILLS, WORKERS_OF_KILLS = 20, 3
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


def run_local(page, options, facts):
    """Measure both sets, everybody taking turns, after a round that compiles; return the facts for page and model."""
    n_copies, n_rows = max(1, round(10 * options.scale)), round(3_000_000 * options.scale)
    found = {}
    with local_cluster(2) as client, recorded() as records:
        here, there = covertype(options.folder, n_copies), (covertype_on(client, options.folder, n_copies),)
        rounds = [_round(client, here, there, records) for _ in range(1 + REPEATS)][1:]
        found["covertype, repeated"] = _put_local(page, "covertype, repeated", [here], rounds)
        del there  # the blocks leave the workers
        here, there = splice(options.folder, n_rows)
        rounds = [_round(client, (here,), (there,), records) for _ in range(1 + REPEATS)][1:]
        found["splice stand-in"] = _put_local(page, "splice stand-in", here, rounds)
    return found


def _round(client, here, there, records):
    """Fit once in this process and once on the cluster."""
    ordinary, seconds = fitted(widemargin.LinearSVC(n_jobs=2, **hinge()), *here)
    ours, seconds_there = fitted(LinearSVC(client=client, **hinge()), *there)
    return {"here": seconds, "there": seconds_there, "models": (ordinary, ours), "record": records[-1]}


def _put_local(page, name, blocks, rounds):
    """Write the row of a set, given as blocks (X, y); return the facts of its last round, and the medians."""
    columns = ["set", "rows", "1 process × 2 threads, s", "2 × 1 on the cluster, s", "of which building", "ratio",
               "trips", "ms per trip beyond the slowest task", "largest", "Newton steps", "objectives differ by",
               "gaps"]  # fmt: skip
    last, (ordinary, ours) = rounds[-1]["record"], rounds[-1]["models"]
    beyond = [trip.beyond for one in rounds for trip in one["record"].later]
    seconds = {key: median(one[key] for one in rounds) for key in ("here", "there")}
    building = median(one["record"].building for one in rounds)
    ratio = median(one["there"] / one["here"] for one in rounds)
    objectives = [hinge_objective(blocks, model.coef_.ravel(), COST) for model in (ordinary, ours)]
    n_rows = sum(X.shape[0] for X, _ in blocks)
    page.put("local", columns, [
        name, f"{n_rows:,}", f"{seconds['here']:.2f}", f"{seconds['there']:.2f}", f"{building:.2f}", f"{ratio:.2f}",
        len(last.trips), f"{1e3 * np.mean(beyond):.1f}", f"{1e3 * max(beyond):.0f}",
        f"{ordinary.n_iter_} and {ours.n_iter_}", f"{abs(objectives[1] / objectives[0] - 1.0):.1e}",
        f"{ordinary.gap_:.1e} and {ours.gap_:.1e}",
    ], n_key=1)  # fmt: skip
    trips = [vars(trip) for trip in last.later]
    return {**seconds, "building": building, "ratio": ratio, "rows": n_rows, "columns": len(ours.coef_.ravel()),
            "trips": trips, "n_workers": 2}  # fmt: skip


# --- The same bits ----------------------------------------------------------------------------------------------------

_CASES = {
    "hinge, no intercept": hinge(tol=EXACT_TOLERANCE),
    "hinge, free intercept": hinge(tol=EXACT_TOLERANCE) | {"fit_intercept": True, "penalize_intercept": False},
    "squared hinge, penalised intercept": hinge(tol=EXACT_TOLERANCE) | {"loss": "squared_hinge", "fit_intercept": True},
}


def run_bits(page, options, facts):
    """Fit on one to four workers; compare the bits, and the objective with that of one process."""
    columns = ["problem", "workers", "objective / in memory − 1", "gap", "seconds", "bits",
               "same bits as one worker"]  # fmt: skip
    X, y = covertype(options.folder)
    X, y = X[: round(len(y) * min(1.0, options.scale))], y[: round(len(y) * min(1.0, options.scale))]
    expected = {}
    for name, parameters in _CASES.items():
        model, _ = fitted(widemargin.LinearSVC(n_jobs=2, **parameters), X, y)
        expected[name] = _objective(parameters, X, y, model)
    first, found = {}, []
    for n_workers in (1, 2, 3, 4):
        with local_cluster(n_workers) as client:
            blocks = _blocks(client, X, y, options.folder)
            for name, parameters in _CASES.items():
                model, seconds = fitted(LinearSVC(client=client, **parameters), blocks)
                bits = bits_of(model)
                first.setdefault(name, bits)
                difference = _objective(parameters, X, y, model) / expected[name] - 1.0
                found.append([name, n_workers, difference, bits == first[name]])
                page.put("bits", columns, [
                    name, n_workers, f"{difference:+.1e}", f"{model.gap_:.1e}", f"{seconds:.1f}", bits,
                    "yes" if bits == first[name] else "NO",
                ])  # fmt: skip
    return found


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


def run_killed(page, options, facts):
    """Kill one of three workers at random moments of fits; count those that end with the same bits."""
    columns = [
        "fits",
        "killed before the end",
        "same bits",
        "undisturbed, s",
        "median cost, s",
        "largest cost, s",
        "moments",
        "others",
    ]
    rng = np.random.default_rng(0)
    with local_cluster(WORKERS_OF_KILLS) as client:
        blocks = covertype_on(client, options.folder, max(1, round(COPIES_OF_KILLS * options.scale)), 6)
        parameters = hinge(tol=EXACT_TOLERANCE)
        undisturbed = [fitted(LinearSVC(client=client, **parameters), blocks) for _ in range(4)][1:]
        seconds, bits = median(one for _, one in undisturbed), bits_of(undisturbed[0][0])
        trials = [_killed(client, blocks, parameters, rng.uniform(0.0, 0.95 * seconds), rng)
                  for _ in range(options.kills)]  # fmt: skip
    same = sum(one["bits"] == bits for one in trials)
    costs = [one["seconds"] - seconds for one in trials if one["bits"] == bits]
    others = "; ".join(one["bits"] for one in trials if one["bits"] != bits)
    page.put("killed", columns, [
        len(trials), sum(one["is_in_time"] for one in trials), same, f"{seconds:.2f}",
        f"{median(costs):.2f}" if costs else "–", f"{max(costs):.2f}" if costs else "–",
        f"{min(one['moment'] for one in trials):.2f} to {max(one['moment'] for one in trials):.2f} s", others or "none",
    ], n_key=1)  # fmt: skip
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
