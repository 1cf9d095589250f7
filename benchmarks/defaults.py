"""Every default call on every set: does it converge, and is it faster than scikit-learn's?

    python -m benchmarks.defaults [--sets NAME ...] [--limit SECONDS] [--resume] [--dry]

LinearSVC(loss=...) and LinearSVR(loss=...), everything else default, on the training part of every shared set and on
the sets that come with scikit-learn, as they are and standardised, with all four losses (regressions of labels on
classification sets too). scikit-learn's estimator of the same name has the same loss and its own defaults
(dual="auto"). Each cell runs in a process of its own, which is ended at the limit; compilation is done before. One
thread each.
"""

import argparse
import multiprocessing
import time
import warnings
from functools import cache
from pathlib import Path

import numpy as np
import sklearn.datasets
import sklearn.svm
from scipy.sparse import csr_matrix, issparse
from threadpoolctl import threadpool_limits

import widemargin
from benchmarks.datasets import FOLDER, load
from benchmarks.page import Page, machine, versions

_PATH = Path(__file__).parent / "results" / "defaults.md"
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
_REPEATS, _ENOUGH_SECONDS = 5, 2.0
_SLOWER = 1.1  # times the other's seconds, and 1 ms more, is clearly slower
_COLUMNS = [
    "set", "scaling", "loss", "rows", "features", "converged", "gap", "seconds", "steps", "solver",
    "scikit-learn's seconds", "ratio", "its objective", "it warned",
]  # fmt: skip
_INTRODUCTION = """\
# Default calls

`python -m benchmarks.defaults`: `LinearSVC(loss=...)` and `LinearSVR(loss=...)` with everything else default, on the
training part of every shared set and on those that come with scikit-learn, against scikit-learn's estimator of the
same name and loss with its defaults. Seconds are medians of up to five fits after the first, compilation apart. The
ratio is scikit-learn's time over ours. "its objective" is scikit-learn's over ours, less 1; both are computed by the
benchmark. > marks a fit that was ended at the limit. Ranking sets are taken as regressions of the relevance."""
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


def measure(package, loss, X, y):
    """Return a dict of what came out of the default call."""
    make = getattr(package, LOSSES[loss])
    seconds, warned = [], False
    while not seconds or (len(seconds) <= _REPEATS and sum(seconds) < _ENOUGH_SECONDS):
        model = make(loss=loss, random_state=len(seconds))
        with warnings.catch_warnings(record=True) as caught, threadpool_limits(1):
            warnings.simplefilter("always")
            begun = time.perf_counter()
            model.fit(X, y)
            seconds.append(time.perf_counter() - begun)
        warned = warned or any("onverge" in f"{one.category.__name__}{one.message}" for one in caught)
    seconds = float(np.median(seconds[1:] or seconds))
    record = {"seconds": seconds, "warned": warned, "steps": int(model.n_iter_), "objective": objective(model, X, y)}
    if package is widemargin:
        record |= {"converged": model.status_ == "converged", "gap": model.gap_, "solver": model.solver_}
    return record


def limited(limit, *arguments):
    """Return `measure` of the arguments, from a process of its own; None if it takes longer than the limit."""
    context = multiprocessing.get_context("fork")  # the rows and what is compiled are there already
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=lambda: sender.send(measure(*arguments)))
    process.start()
    sender.close()
    try:
        return receiver.recv() if receiver.poll(limit) else None
    except EOFError:
        raise RuntimeError(f"The fit of {arguments[1]} by {arguments[0].__name__} ended its process.") from None
    finally:
        process.kill()
        process.join()


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


def row(name, scaling, loss, limit, X, y):
    """Return the cells of a table row."""
    ours, theirs = (limited(limit, package, loss, X, y) for package in (widemargin, sklearn.svm))
    head = [name, scaling, loss, X.shape[0], X.shape[1]]
    peer = [f"> {limit:.0f}", "", "", ""] if theirs is None else [_time(theirs["seconds"])]
    if ours is None:
        mine = ["**no**", "", f"**> {limit:.0f}**", "", ""]
        return head + mine + (peer if theirs is None else [*peer, "", "", _yes(theirs["warned"])])
    slower = theirs is not None and ours["seconds"] > _SLOWER * theirs["seconds"] + 0.001
    mine = [
        "yes" if ours["converged"] else "**no**", f"{ours['gap']:.1e}",
        f"**{_time(ours['seconds'])}**" if slower else _time(ours["seconds"]), ours["steps"], ours["solver"],
    ]  # fmt: skip
    if theirs is None:
        return [*head, *mine, peer[0], f"> {limit / ours['seconds']:.1f}", "", ""]
    apart = theirs["objective"] / ours["objective"] - 1.0 if ours["objective"] else 0.0
    return [*head, *mine, *peer, f"{theirs['seconds'] / ours['seconds']:.2f}", f"{apart:+.1e}", _yes(theirs["warned"])]


def _yes(value):
    return "yes" if value else "no"


def _time(seconds):
    return f"{seconds:.4f}" if seconds < 1.0 else f"{seconds:.2f}"


# --- The page -------------------------------------------------------------------------------------------------------


def summarise(page):
    """Write how many cells converge, and how many are faster, for each loss and scaling."""
    table = page.rows("defaults")
    for loss in LOSSES:
        for scaling in SCALINGS:
            mine = [dict(zip(_COLUMNS, line, strict=True)) for line in table if line[1:3] == [scaling, loss]]
            if not mine:
                continue
            warned = sum(one["it warned"] == "yes" or one["scikit-learn's seconds"].startswith(">") for one in mine)
            counts = [
                len(mine),
                sum(one["converged"] == "yes" for one in mine),
                sum("**" not in one["seconds"] for one in mine),
                warned,
            ]
            columns = ["loss", "scaling", "cells", "converged", "not slower", "scikit-learn warned or was ended"]
            page.put("summary", columns, [loss, scaling, *counts])


def main():
    """Measure, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", nargs="+", default=names())
    parser.add_argument("--limit", type=float, default=60.0, help="seconds of one cell (default: 60)")
    parser.add_argument("--resume", action="store_true", help="leave out the cells that the page has")
    parser.add_argument("--dry", action="store_true", help="print only")
    options = parser.parse_args()
    page = Page(_PATH, _INTRODUCTION, _SECTIONS, options.dry)
    for name in options.sets:
        losses = [loss for loss, estimator in LOSSES.items() if name not in REGRESSION or estimator == "LinearSVR"]
        for scaling in SCALINGS:
            there = [line[2] for line in page.rows("defaults") if line[:2] == [name, scaling]] if options.resume else []
            if wanted := [loss for loss in losses if loss not in there]:
                X, y = prepared(name, scaling)
                warm_up(X, y, wanted)
                for loss in wanted:
                    page.put("defaults", _COLUMNS, row(name, scaling, loss, options.limit, X, y), n_key=3)
    summarise(page)
    page.note("defaults", f"{machine()}, {versions('widemargin', 'scikit-learn', 'numpy', 'numba')}")


if __name__ == "__main__":
    main()
