"""Kernel machines for millions of rows: on a fixed basis, compressed, and from disk, against scikit-learn's ways.

Each fit runs in a process of its own, which is ended at its limit. Our basis of a size is given the points that
scikit-learn's `Nystroem` takes, so that both minimise the same objective; it is computed here, for both, from the
decision values of all training rows and the norm of the weights.
"""

import json
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.datasets import load
from benchmarks.kernel.large import ALL_ROWS, PARAMETERS, rows_of
from benchmarks.kernel.memory import megabytes
from benchmarks.kernel.peers import THREADS
from benchmarks.larger.memory_limit import MemoryGroup, drop_from_cache
from benchmarks.machinery.figures import read, seconds_of
from benchmarks.machinery.page import RESULTS, Frame, Table, sections_of
from benchmarks.machinery.records import BUILD
from benchmarks.machinery.worker import ProcessDied, Worker
from benchmarks.planes.pictures import COLOURS, MARKERS, save

SIZES = [500, 1000, 2000]
OURS, NYSTROEM, SGD = "widemargin", "Nystroem + LinearSVC", "random features + SGD"
TIMES_OURS = 10.0  # most seconds for a peer, in units of ours
_SECONDS_BESIDES_FIT = 20.0  # of a peer's unit: loading, and scores of all rows
DISK_ROWS, DISK_POINTS, DISK_MEMORY = 10_000_000, 1000, 4_000_000_000
_SHARE_FOR_PROCESS = 0.85  # of the limit; the rest is for the cached file
_ENVIRONMENT = {"OMP_NUM_THREADS": str(THREADS)}
_INTRODUCTION = f"""# Kernels for millions of rows

Made by `python -m benchmarks run kernels-at-scale`. The rbf kernel, {THREADS} threads. Covertype: {ALL_ROWS:,} rows,
C = 10, gamma = 1; `SVC(basis=points)` with the points of `Nystroem(m)`, to a certified gap of 10⁻³, against
`make_pipeline(Nystroem(m), LinearSVC(loss="hinge"))`, which minimises the same objective but for its penalised
intercept, and `make_pipeline(RBFSampler(m), SGDClassifier())`. A peer is ended after {TIMES_OURS:g} times our seconds,
or sooner: ours, rows from disk and mnist come first, and peers share the minutes that are left.

![Accuracy against seconds](../../docs/kernels-at-scale.png)"""
_BASIS_COLUMNS = ["m", "who", "seconds", "accuracy", "objective", "certified gap", "peak GB", "theirs / ours"]
_SECTIONS = {
    "basis": ("Covertype on a basis", "Seconds are those of fitting, the choice of points and all features included."),
    "disk": (
        "Ten million rows from disk",
        f"Covertype with noise, {DISK_MEMORY / 1e9:g} GB in all, cached files included.",
    ),
    "mnist": ("mnist: small fast models", "Test error, and milliseconds to predict all 10,000 test rows."),
}


@dataclass(frozen=True)
class Case:
    """A number of basis points and who fits."""

    points: int
    who: str

    def __str__(self):
        return f"{self.points}, {self.who}"


def _pipeline(who, m, n_rows):
    """Return scikit-learn's estimator."""
    from sklearn.kernel_approximation import Nystroem, RBFSampler
    from sklearn.linear_model import SGDClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.svm import LinearSVC

    C, gamma = PARAMETERS["covertype"]["C"], PARAMETERS["covertype"]["gamma"]
    if who == SGD:
        sgd = SGDClassifier(loss="hinge", alpha=1.0 / (C * n_rows), random_state=0, n_jobs=THREADS)
        return make_pipeline(RBFSampler(gamma=gamma, n_components=m, random_state=0), sgd)
    linear = LinearSVC(loss="hinge", C=C, random_state=0)
    return make_pipeline(Nystroem(gamma=gamma, n_components=m, random_state=0), linear)


def _trainer(who, m, n_rows):
    """In its process: load, then fit and report."""
    X, y, new, labels = rows_of("covertype", n_rows)
    load.cache_clear()

    def fit(question):
        model = _ours(m, X) if who == OURS else _pipeline(who, m, len(y))
        seconds, _ = seconds_of(model.fit, X, y)
        sign = np.where(y == model.classes_[1], 1.0, -1.0)
        decisions = np.concatenate([model.decision_function(X[k : k + 50_000]) for k in range(0, len(y), 50_000)])
        loss = PARAMETERS["covertype"]["C"] * np.maximum(0.0, 1.0 - sign * decisions).sum()
        found = {"seconds": seconds, "objective": float(loss + 0.5 * _squared_norm(model, who))}
        found["accuracy"] = float(np.mean(model.predict(new) == labels))
        return found | {"gap": getattr(model, "gap_", None), "peak": megabytes("VmHWM") / 1024.0}

    return fit


def _ours(m, X):
    from widemargin import SVC

    points = X[np.random.RandomState(0).permutation(len(X))[:m]]  # as Nystroem with random_state=0
    few = X[:50_000]
    SVC(basis=points[:100], **PARAMETERS["covertype"]).fit(few, np.arange(len(few)) % 2)  # compiles
    return SVC(basis=points, tol=1e-3, n_jobs=THREADS, **PARAMETERS["covertype"])


def _squared_norm(model, who):
    if who != OURS:
        return float(np.square(model[-1].coef_).sum())
    from sklearn.metrics.pairwise import rbf_kernel

    K = rbf_kernel(model.basis_.astype(np.float64), gamma=PARAMETERS["covertype"]["gamma"])
    return float(model.basis_coef_[0] @ K @ model.basis_coef_[0])


def basis_table(page, cases, options):
    """Fit covertype on bases of several sizes."""
    for case in page.each("basis", cases):
        found = _fitted(case, options.rows, 3600.0)
        page.keep(str(case), found)
        page.put("basis", _BASIS_COLUMNS, [case.points, case.who, *_cells(found), "–"])


def peers_table(page, cases, options):
    """Fit the same problems by peers: each has ten times our seconds, or its share of the minutes that are left."""
    for case in page.each("peers", cases):
        ours = page.fact(str(Case(case.points, OURS)))["seconds"]
        share = page.seconds_left / (len(cases) - cases.index(case)) - _SECONDS_BESIDES_FIT
        limit = min(TIMES_OURS * ours, max(ours, share))
        try:
            found = _fitted(case, options.rows, limit)
        except ProcessDied:  # the system ends processes when memory is used up
            page.put("basis", _BASIS_COLUMNS, [case.points, case.who, "out of memory", *["–"] * 5])
            continue
        if found is None:
            cells = [f">{limit:.3g}", *["–"] * 4, f">{limit / ours:.3g}"]
        else:
            page.keep(str(case), found)
            cells = [*_cells(found), f"{found['seconds'] / ours:.2f}"]
        page.put("basis", _BASIS_COLUMNS, [case.points, case.who, *cells])


def _fitted(case, n_rows, limit):
    """Return what a fit in a process of its own reports; None if it takes longer than `limit` seconds."""
    worker = Worker(_trainer, case.who, case.points, n_rows, environment=_ENVIRONMENT)
    try:
        worker.send("fit")
        return worker.receive() if worker.ready(limit) else None
    finally:
        worker.close()


def _cells(found):
    """Return the cells of a fit, from its seconds to its memory."""
    gap = "–" if found["gap"] is None else f"{found['gap']:.1e}"
    objective, peak = f"{found['objective']:.6g}", f"{found['peak']:.2f}"
    return [f"{found['seconds']:.3g}", f"{found['accuracy']:.4f}", objective, gap, peak]


def _disk_blocks(n_rows):
    """Generate blocks of covertype, again and again with noise."""
    X, y, _, _ = rows_of("covertype", ALL_ROWS)
    random = np.random.default_rng(1)
    for start in range(0, n_rows, ALL_ROWS):
        n = min(ALL_ROWS, n_rows - start)
        noise = random.standard_normal((n, X.shape[1]), dtype=np.float32)
        yield X[:n] + np.float32(0.01) * noise, y[:n]


def disk_table(page, cases, options):
    """Fit rows from a file under a limit of memory."""
    from widemargin import write_blocks

    columns = ["rows", "m", "seconds", "certified gap", "Newton steps", "peak GB", "status"]
    for n_rows in page.each("disk", cases):
        path = BUILD / "data" / f"covertype-{n_rows}.blocks"
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            write_blocks(path, _disk_blocks(n_rows))
        drop_from_cache(path)
        with MemoryGroup(DISK_MEMORY) as group:
            found = group.run("benchmarks.kernels_at_scale", {"path": str(path), "points": options.disk_points})
        cells = [f"{found['seconds']:.4g}", f"{found['gap']:.1e}", found["steps"]]
        peak = "–" if found["peak"] is None else f"{found['peak'] / 1e9:.2f}"
        page.put("disk", columns, [f"{n_rows:,}", options.disk_points, *cells, peak, found["status"]])


def _fit_from_disk(task):
    """In a process whose memory is limited: fit rows of a file, and return what is told of it."""
    from widemargin import SVC, open_blocks

    options = {"n_jobs": THREADS, "max_memory": _SHARE_FOR_PROCESS * DISK_MEMORY, "random_state": 0}
    machine = SVC(basis=task["points"], basis_choice="uniform", **options, **PARAMETERS["covertype"])
    seconds, model = seconds_of(machine.fit, open_blocks(task["path"]))
    return {"seconds": seconds, "gap": model.gap_, "status": model.status_, "steps": int(model.n_iter_[0])}


def mnist_table(page, cases, options):
    """The exact machine of mnist, on a basis, and compressed: error and seconds of prediction."""
    from widemargin import SVC, compress

    columns = ["model", "vectors", "seconds to fit or compress", "test error, %", "prediction, ms", "exact / this"]
    for n_rows in page.each("mnist", cases):
        X, y, new, labels = rows_of("mnist", n_rows)
        seconds, exact = seconds_of(SVC(n_jobs=THREADS, cache_size=4000, **PARAMETERS["mnist"]).fit, X, y)
        models = {"exact": (seconds, exact, len(exact.support_))}
        for m in options.mnist_points:
            seconds, model = seconds_of(SVC(basis=m, n_jobs=THREADS, random_state=0, **PARAMETERS["mnist"]).fit, X, y)
            models[f"basis={m}"] = seconds, model, len(model.basis_)
            for refit in (None, "coefficients", "vectors"):
                seconds, model = seconds_of(compress, exact, X, n_vectors=m, refit=refit)
                name = f"compress(exact, X, n_vectors={m}" + (f", refit={refit!r})" if refit else ")")
                models[name] = seconds, model, model.compression_.n_after
            if hasattr(model, "basis_"):  # all pairs of classes share the vectors, which this model has moved
                machine = SVC(basis=model.basis_, n_jobs=THREADS, **PARAMETERS["mnist"])
                seconds, model = seconds_of(machine.fit, X, y)
                models[f"basis=basis_ of that, {m}"] = seconds, model, len(model.basis_)
        base = None
        for name, (seconds, model, n_vectors) in models.items():
            model.predict(new[:100])
            taken, predicted = min((seconds_of(model.predict, new) for _ in range(3)), key=lambda one: one[0])
            base = base or taken
            error = 100.0 * float(np.mean(predicted != labels))
            cells = [n_vectors, f"{seconds:.3g}", f"{error:.2f}", f"{1e3 * taken:.3g}", f"{base / taken:.1f}"]
            page.put("mnist", columns, [name, *cells], n_key=1)


def finish(page):
    """Draw accuracy against seconds; the exact machine's point is that of the page kernel-large, if it is there."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 4.0), layout="constrained")
    axes = figure.subplots()
    for k, who in enumerate((OURS, NYSTROEM, SGD)):
        found = [page.facts[str(Case(m, who))] for m in SIZES if str(Case(m, who)) in page.facts]
        if found:
            label = "widemargin, on a basis" if who == OURS else who
            axes.plot([one["seconds"] for one in found], [one["accuracy"] for one in found], color=COLOURS[k],
                      marker=MARKERS[k], label=label)  # fmt: skip
    if exact := _exact_point():
        axes.plot(*exact, color="0.2", marker="*", markersize=12, linestyle="none", label="widemargin, exact")
    axes.set(xscale="log", xlabel="seconds to fit", ylabel="accuracy of rows held out")
    axes.grid(alpha=0.3)
    axes.legend()
    save(page, figure, "kernels-at-scale.png")


def _exact_point(folder: Path = RESULTS):
    """Return seconds and accuracy of the exact machine of all rows from the page kernel-large, or None."""
    path = folder / "kernel-large.md"
    rows = sections_of(path.read_text()).get("large", []) if path.exists() else []
    wanted = [
        row for row in rows if row["rows"] == f"{ALL_ROWS:,}" and row["who"] == OURS and row["set"] == "covertype"
    ]
    return (read(wanted[0]["seconds"]).value, float(wanted[0]["accuracy"])) if wanted else None


_OURS = [Case(m, OURS) for m in SIZES]
_PEERS = [Case(m, who) for m in SIZES for who in (SGD, NYSTROEM)]
PAGE = Frame(
    _INTRODUCTION,
    _SECTIONS,
    {
        "basis": Table(basis_table, _OURS, _OURS[:1], share=6.0),
        "disk": Table(disk_table, [DISK_ROWS], [200_000], share=4.0),
        "mnist": Table(mnist_table, [60_000], [3_000], share=4.0),
        "peers": Table(peers_table, _PEERS, _PEERS[:2], share=16.0),
    },
    options={"rows": ALL_ROWS, "disk_points": DISK_POINTS, "mnist_points": (1200, 2000)},
    quick_options={"rows": 30_000, "disk_points": 100, "mnist_points": (200,)},
    finish=finish,
)


if __name__ == "__main__":
    print(json.dumps(_fit_from_disk(json.load(sys.stdin))))
