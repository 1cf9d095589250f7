"""Every default call on every set: does it converge, and is it faster than scikit-learn's?

LinearSVC(loss=...) and LinearSVR(loss=...), everything else default, on the training part of every shared set and on
the sets that come with scikit-learn, as they are and standardised, with all four losses (regressions of labels on
classification sets too). scikit-learn's estimator of the same name has the same loss and its own defaults
(dual="auto"). Each package runs in a process of its own, which is ended at the limit; compilation is done before. One
thread each.
"""

import multiprocessing
import warnings
from functools import cache
from typing import NamedTuple

import numpy as np
import sklearn.datasets
import sklearn.svm
from scipy.sparse import csr_matrix, issparse
from threadpoolctl import threadpool_limits

import widemargin
from benchmarks.datasets import FOLDER, load
from benchmarks.machinery.figures import ratio, read, seconds_of, shown, take_turns
from benchmarks.machinery.page import Frame, Table

BUNDLED = {
    "iris": sklearn.datasets.load_iris,
    "wine": sklearn.datasets.load_wine,
    "breast_cancer": sklearn.datasets.load_breast_cancer,
    "digits": sklearn.datasets.load_digits,
    "diabetes": sklearn.datasets.load_diabetes,
}
REGRESSION = {
    "abalone_scale", "bank32nh", "cadata", "cpusmall_scale", "elevators", "housing_scale", "kin8nm", "mpg_scale", "pol",
    "space_ga_scale", "diabetes", "MQ2008.S1", "lightgbm-rank.train", "svmrank-example3.train",
}  # fmt: skip
SCALINGS = ("raw", "standardised")
LOSSES = {
    "hinge": "LinearSVC",
    "squared_hinge": "LinearSVC",
    "epsilon_insensitive": "LinearSVR",
    "squared_epsilon_insensitive": "LinearSVR",
}
_DENSE = 0.5  # part of entries that are stored: sets above it are used as arrays
_MOST_CENTRED = 1000  # columns; wider sets are divided by deviations only, and stay sparse
_SHORT, _MOST_FITS = 0.2, 7  # seconds in which a fit is repeated, and how often it is made
_SLOWER = 1.1  # times the other's seconds, and 1 ms more, is clearly slower
_COLUMNS = [
    "set", "scaling", "loss", "rows", "features", "converged", "gap", "seconds", "steps", "solver",
    "scikit-learn's seconds", "scikit-learn / ours", "its objective", "it warned",
]  # fmt: skip
_INTRODUCTION = """\
# Default calls

Made by `python -m benchmarks run defaults`: `LinearSVC(loss=...)` and `LinearSVR(loss=...)` with everything else
default, on the training part of every shared set and on those that come with scikit-learn, against scikit-learn's
estimator of the same name and loss with its defaults. The ratio is scikit-learn's time over ours. "its objective" is
scikit-learn's over ours, less 1; both are computed by the benchmark. Ranking sets are taken as regressions of the
relevance."""
_SECTIONS = {
    "summary": ("Summary", "Cells by loss and scaling."),
    "defaults": ("All cells", "Cells that do not converge or are slower than scikit-learn's are in bold."),
}


# --- Sets -----------------------------------------------------------------------------------------------------------


def names():
    """Return the names of all sets: small ones first, so that a run that is broken off has shown most."""
    files = [path.name.removesuffix(".svm.xz") for path in FOLDER.glob("*.svm.xz")]
    training = [name for name in files if not name.endswith((".t", "_tst", ".test")) and name[-3:-1] != ".S"]
    training += ["MQ2008.S1"] if "MQ2008.S1" in files else []
    return sorted([*BUNDLED, *training], key=lambda name: (_size(name), name))


def _size(name):
    return 0 if name in BUNDLED else (FOLDER / f"{name}.svm.xz").stat().st_size


@cache
def rows_of(name):
    """Return X, dense or CSR, and y."""
    if name in BUNDLED:
        return BUNDLED[name](return_X_y=True)
    X, y = load(name)
    is_dense = X.nnz > _DENSE * X.shape[0] * X.shape[1]
    return (X.toarray() if is_dense else csr_matrix(X)), y


def prepared(name, scaling):
    """Return X and y, columns of mean 0 and deviation 1 if standardised."""
    X, y = rows_of(name)
    if scaling == "raw":
        return X, y
    if issparse(X) and X.shape[1] > _MOST_CENTRED:
        mean = np.asarray(X.mean(axis=0)).ravel()
        deviation = np.sqrt(np.maximum(np.asarray(X.multiply(X).mean(axis=0)).ravel() - mean**2, 0.0))
        factor = np.divide(1.0, deviation, out=np.ones_like(deviation), where=deviation > 0.0)
        return csr_matrix(X.multiply(factor[np.newaxis])), y
    X = X.toarray() if issparse(X) else X
    deviation = X.std(axis=0)
    return (X - X.mean(axis=0)) / np.where(deviation > 0.0, deviation, 1.0), y


# --- One cell -------------------------------------------------------------------------------------------------------


def objective(model, X, y):
    """Return ½|w|² + ½b² + Σ loss, summed over classes; the defaults C = 1, epsilon = 0, intercept_scaling = 1."""
    W, b = np.atleast_2d(model.coef_), np.ravel(model.intercept_)
    power = 2 if model.loss.startswith("squared") else 1
    scores = np.asarray(X @ W.T) + b
    if hasattr(model, "classes_"):
        positives = model.classes_[1:] if len(model.classes_) == 2 else model.classes_
        sign = np.where(y[:, np.newaxis] == positives, 1.0, -1.0)
        loss = np.maximum(0.0, 1.0 - sign * scores)
    else:
        loss = np.abs(y[:, np.newaxis] - scores)
    return 0.5 * float((W**2).sum() + (b**2).sum()) + float((loss**power).sum())


class Outcome(NamedTuple):
    """What came out of a default call; `seconds` are infinite if it was ended at the limit."""

    seconds: float
    objective: float = np.nan
    warned: bool = False
    converged: bool = False
    gap: float = np.nan
    steps: int = 0
    solver: str = ""


def measure(package, loss, X, y, limit):
    """Return the Outcome of a default call, in a process of its own that is ended at the limit."""
    context = multiprocessing.get_context("fork")  # the rows and what is compiled are there already
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=lambda: sender.send(_called(package, loss, X, y)))
    process.start()
    sender.close()
    try:
        return receiver.recv() if receiver.poll(limit) else Outcome(np.inf)
    except EOFError:
        raise RuntimeError(f"The fit of {loss} by {package.__name__} ended its process.") from None
    finally:
        process.kill()
        process.join()


def _called(package, loss, X, y):
    """Return the Outcome of a default call, the last of several if it is short: the median of all but the first counts.

    The first one copies memory that the new process shares with the one that began it.
    """
    make, taken = getattr(package, LOSSES[loss]), []
    while not taken or (len(taken) < _MOST_FITS and sum(taken) < _SHORT):
        model = make(loss=loss, random_state=0)
        with warnings.catch_warnings(record=True) as caught, threadpool_limits(1):
            warnings.simplefilter("always")
            taken.append(seconds_of(model.fit, X, y)[0])
    seconds = float(np.median(taken[1:] or taken))
    warned = any("onverge" in f"{one.category.__name__}{one.message}" for one in caught)
    outcome = Outcome(seconds, objective(model, X, y), warned, steps=int(model.n_iter_))
    if package is widemargin:
        outcome = outcome._replace(converged=model.status_ == "converged", gap=model.gap_, solver=model.solver_)
    return outcome


def warm_up(X, y, losses):
    """Compile for rows of this form: a few of them, and enough that `auto` takes its other ways."""
    for n_rows in {min(200, len(y)), min(5000, len(y))}:
        few = np.random.default_rng(0).permutation(len(y))[:n_rows]
        for loss in losses:
            if LOSSES[loss] == "LinearSVC" and len(np.unique(y[few])) < 2:
                continue
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                getattr(widemargin, LOSSES[loss])(loss=loss, max_seconds=10.0).fit(X[few], y[few])


def defaults_table(page, names, options):
    """Both packages on every set, taking turns."""
    for name in page.each("defaults", names):
        losses = [loss for loss, estimator in LOSSES.items() if name not in REGRESSION or estimator == "LinearSVR"]
        for scaling in SCALINGS:
            X, y = prepared(name, scaling)
            warm_up(X, y, losses)
            for loss in losses:
                put_cell(page, (name, scaling, loss), X, y, options)


def put_cell(page, where, X, y, options):
    """Put the row of one call."""
    runners = {
        package: lambda package=package: measure(package, where[2], X, y, options.limit)
        for package in (widemargin, sklearn.svm)
    }
    found = take_turns(runners, options.repeats, often=1, patience=0.5)
    (ours, mine), (theirs, peer) = found[widemargin], found[sklearn.svm]
    slower = mine > _SLOWER * peer + 0.001
    seconds, is_ended = shown(mine, options.limit), np.isinf(mine)
    cells = [*where, *X.shape, "yes" if ours.converged else "**no**", "–" if is_ended else f"{ours.gap:.1e}"]
    cells += [
        f"**{seconds}**" if slower or is_ended else seconds,
        ours.steps,
        ours.solver or "–",
        shown(peer, options.limit),
    ]
    cells += [ratio(peer, mine, options.limit), _apart(ours, theirs), "yes" if theirs.warned else "no"]
    page.put("defaults", _COLUMNS, cells, n_key=3)


def _apart(ours, theirs):
    if np.isnan(ours.objective + theirs.objective) or not ours.objective:
        return "–"
    return f"{theirs.objective / ours.objective - 1.0:+.1e}"


def finish(page):
    """Add how many cells converge, and how many are not slower, for each loss and scaling."""
    columns = [
        "loss",
        "scaling",
        "cells",
        "converged",
        "not slower",
        "scikit-learn warned or was ended",
        "median ratio",
    ]
    table = [dict(zip(_COLUMNS, row, strict=True)) for row in page.rows("defaults")]
    for loss in LOSSES:
        for scaling in SCALINGS:
            mine = [one for one in table if (one["loss"], one["scaling"]) == (loss, scaling)]
            if not mine:
                continue
            warned = [one["it warned"] == "yes" or one["scikit-learn's seconds"].startswith(">") for one in mine]
            ratios = [read(one["scikit-learn / ours"]) for one in mine]
            cells = [len(mine), sum(one["converged"] == "yes" for one in mine)]
            cells += [sum("**" not in one["seconds"] for one in mine), sum(warned)]
            cells += [f"{np.median([one.value for one in ratios if one]):.2f}"]
            page.put("summary", columns, [loss, scaling, *cells])


PAGE = Frame(
    _INTRODUCTION,
    _SECTIONS,
    {"defaults": Table(defaults_table, names(), ["iris", "breast_cancer", "heart_scale"])},
    options={"limit": 3.0, "repeats": 3},
    quick_options={"limit": 3.0, "repeats": 2},
    finish=finish,
)
