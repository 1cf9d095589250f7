"""The largest exact kernel machines: covertype up to 561,012 rows and a million, and all of mnist.

Each fit runs in a process of its own, which is ended at the limit; memory is the most that the process had resident. A
peer that reaches the limit is not tried on more rows: its seconds there are extrapolated by the power of the rows that
fits its measured sizes, and marked as such.
"""

from contextlib import suppress
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np

from benchmarks.datasets import load
from benchmarks.kernel.memory import megabytes
from benchmarks.kernel.peers import THREADS
from benchmarks.machinery.figures import read, seconds_of
from benchmarks.machinery.page import Frame, Table
from benchmarks.machinery.worker import Worker

COVERTYPE, HELD_OUT = "covtype.libsvm.binary.scale", 20_000
ALL_ROWS, MILLION = 581_012 - HELD_OUT, 1_000_000
CACHE = 4000.0  # MB, the same for everybody
NOISE = 0.01  # deviation that is added to the features of the second copy of covertype
OURS, PEERS = "widemargin", ("intelex", "LIBSVM", "scikit-learn")
PARAMETERS = {"covertype": {"C": 10.0, "gamma": 1.0}, "mnist": {"C": 10.0, "gamma": 0.02}}
_ENVIRONMENT = {"OMP_NUM_THREADS": str(THREADS), "OPENBLAS_NUM_THREADS": "1"}
_COLUMNS = ["set", "rows", "who", "seconds", "support vectors", "gap", "peak GB", "accuracy", "status", "theirs / ours"]
_INTRODUCTION = f"""# The largest exact kernel machines

Made by `python -m benchmarks run kernel-large`; `--full` adds peers for up to an hour. The rbf
kernel, float32 rows, eps 10⁻³, a cache of {CACHE:g} MB, {THREADS} threads (scikit-learn has one). Covertype: C = 10,
gamma = 1, {HELD_OUT:,} rows held out; a million rows are covertype and as many rows of it again as are needed, with
normal noise of deviation {NOISE:g}. mnist: C = 10, gamma = 0.02, ten classes. One fit each. *(extrapolated)*: not
measured; seconds ~ rows^exponent, fitted to the sizes that this package finished."""
_SECTIONS = {
    "large": ("Seconds", "Accuracy is that of the rows held out, or of mnist's test set."),
    "exponents": (
        "Exponents",
        "Of seconds in rows, covertype, all sizes that were finished; and that of (support vectors x rows).",
    ),
}


@dataclass(frozen=True)
class Case:
    """A set with a number of rows, who fits it, and for how many seconds at most."""

    set: str
    rows: int
    who: str
    limit: float

    def __str__(self):
        return f"{self.set} {self.rows}, {self.who}" + (", an hour" if self.limit >= 3600 and self.who != OURS else "")


def rows_of(name, n_rows):
    """Return X, y, and the rows and labels that are held out."""
    if name == "mnist":
        (X, y), (new, labels) = load("mnist"), load("mnist.t")
        new.resize(new.shape[0], X.shape[1])
        chosen = np.random.default_rng(0).permutation(len(y))[:n_rows]
        rows, new = ((part.toarray() / 255.0).astype(np.float32) for part in (X[chosen], new))
        return rows, y[chosen], new, labels
    X, y = load(COVERTYPE)
    random = np.random.default_rng(0)
    order = random.permutation(len(y))
    X, y = X[order].toarray().astype(np.float32), y[order]
    new, labels, X, y = X[:HELD_OUT], y[:HELD_OUT], X[HELD_OUT:], y[HELD_OUT:]
    if n_rows > len(y):
        more = n_rows - len(y)
        noise = random.standard_normal((more, X.shape[1]), dtype=np.float32)
        X, y = np.concatenate([X, X[:more] + np.float32(NOISE) * noise]), np.concatenate([y, y[:more]])
    return X[:n_rows], y[:n_rows], new, labels


class _Libsvm:
    """LIBSVM's own interface as an estimator."""

    def __init__(self, C, gamma, **options):
        self._options = f"-s 0 -t 2 -c {C} -g {gamma} -e 1e-3 -m {CACHE:g} -q"

    def fit(self, X, y):
        from libsvm import svmutil

        self._model = svmutil.svm_train(
            svmutil.svm_problem(y, X.astype(np.float64)), svmutil.svm_parameter(self._options)
        )
        self.support_ = np.arange(self._model.l)

    def predict(self, X):
        from libsvm import svmutil

        return np.array(svmutil.svm_predict([], X.astype(np.float64), self._model, "-q")[0])


def _estimator(who, parameters):
    if who == "LIBSVM":
        return _Libsvm(**parameters)
    if who == "scikit-learn":
        from sklearn.svm import SVC
    elif who == "intelex":
        from sklearnex.svm import SVC
    else:
        from widemargin import SVC
    return SVC(**parameters, tol=1e-3, cache_size=CACHE, **({} if who == "scikit-learn" else {"n_jobs": THREADS}))


def _trainer(who, name, n_rows):
    """In its process: load, fit a small part; then fit, and report."""
    X, y, new, labels = rows_of(name, n_rows)
    load.cache_clear()
    _estimator(who, PARAMETERS[name]).fit(X[:3000], y[:3000])
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")  # Linux: the peak begins anew

    def fit(question):
        model = _estimator(who, PARAMETERS[name])
        seconds, _ = seconds_of(model.fit, X, y)
        found = {"seconds": seconds, "support": len(model.support_), "peak": megabytes("VmHWM") / 1024.0}
        found["accuracy"] = float(np.mean(model.predict(new[:10_000]) == labels[:10_000]))
        gap = f"{np.max(model.gap_):.1e}" if hasattr(model, "gap_") else "–"
        return found | {"gap": gap, "status": str(getattr(model, "status_", "–"))}

    return fit


def large_table(page, cases, options):
    """Fit every case that its contender can finish."""
    for case in page.each("large", cases):
        worker = Worker(_trainer, case.who, case.set, case.rows, environment=_ENVIRONMENT)
        try:
            found = None if worker.absent else worker.ask("fit", case.limit)
        finally:
            worker.close()
        key = [case.set, f"{case.rows:,}", case.who]
        if found is None:
            end = f"does not load: {worker.absent}" if worker.absent else "ended at the limit"
            page.put(
                "large", _COLUMNS, [*key, "–" if worker.absent else f">{case.limit:g}", *["–"] * 4, end, "–"], n_key=3
            )
            continue
        cells = [f"{found['seconds']:.3g}", found["support"], found["gap"], f"{found['peak']:.2f}"]
        page.put("large", _COLUMNS, [*key, *cells, f"{found['accuracy']:.4f}", found["status"], "–"], n_key=3)
        page.keep(str(case), {"rows": case.rows, "who": case.who, "set": case.set, **found})


def finish(page):
    """Add ratios, extrapolated seconds of peers, and exponents."""
    found = [one for one in page.facts.values() if one["set"] == "covertype"]
    ours = {one["rows"]: one["seconds"] for one in found if one["who"] == OURS}
    for who in (OURS, *PEERS):
        points = sorted((one["rows"], one["seconds"], one["support"]) for one in found if one["who"] == who)
        if len(points) < 2:
            continue
        n, seconds, support = np.array(points).T
        exponent, constant = np.polyfit(np.log(n), np.log(seconds), 1)
        cells = [f"{exponent:.2f}", f"{np.polyfit(np.log(n), np.log(support * n), 1)[0]:.2f}", len(points)]
        page.put("exponents", ["who", "seconds", "support vectors x rows", "sizes"], [who, *cells], n_key=1)
        for rows in [rows for rows in ours if who != OURS and rows > n.max()]:
            guess = np.exp(constant) * rows**exponent
            cells = [f"≈ {guess:.3g} (extrapolated)", *["–"] * 5, f"≈ {guess / ours[rows]:.3g} (extrapolated)"]
            page.put("large", _COLUMNS, ["covertype", f"{rows:,}", who, *cells], n_key=3)
    _put_ratios(page)


def _put_ratios(page):
    """Put their seconds over ours into the rows of the peers."""
    rows = page.rows("large")
    ours = {(row[0], row[1]): read(row[3]) for row in rows if row[2] == OURS}
    for row in rows:
        theirs, mine = read(row[3]), ours.get((row[0], row[1]))
        if row[2] != OURS and row[-1] == "–" and theirs and mine and not mine.bound:
            page.put("large", _COLUMNS, [*row[:-1], f"{theirs.bound}{theirs.value / mine.value:.2f}"], n_key=3)


_SIZES = [6_250, 12_500, 25_000]
CASES = [Case("covertype", n, who, 60.0) for n in _SIZES for who in (OURS, *PEERS)]
CASES += [Case("mnist", 60_000, who, 90.0) for who in (OURS, "intelex")]
CASES += [Case("covertype", n, OURS, 1500.0) for n in (50_000, 100_000, 200_000, ALL_ROWS)]
CASES += [Case("covertype", n, who, 300.0) for n, who in [*product([50_000], PEERS), (100_000, "intelex")]]
CASES += [Case("covertype", MILLION, OURS, 1500.0)]  # the longest comes last, so that it leaves nothing out
FULL = [Case("covertype", n, who, 3600.0) for n, who in [*product([100_000], PEERS[1:]), *product([200_000], PEERS)]]
QUICK = [Case("covertype", n, who, 20.0) for n in (3_125, 6_250) for who in (OURS, *PEERS)]
QUICK += [Case("covertype", 12_500, OURS, 20.0)]
PAGE = Frame(
    _INTRODUCTION,
    _SECTIONS,
    {"large": Table(large_table, CASES, QUICK, full=FULL)},
    finish=finish,
)
