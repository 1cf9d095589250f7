"""Small problems: default calls on 50 to 4,435 standardised rows, warm, against scikit-learn and scikit-learn-intelex.

Bagging, searches and wrappers of several classes multiply the time of exactly such fits. All three run in one process,
with their default numbers of threads, taking turns.
"""

import importlib
from functools import cache

import numpy as np
from sklearn import datasets
from sklearn.preprocessing import StandardScaler

from benchmarks.datasets import load
from benchmarks.machinery.figures import ratio, read, shown, take_turns, timed
from benchmarks.machinery.page import Frame, Table

BUNDLED = {name: getattr(datasets, f"load_{name}") for name in ("iris", "wine", "breast_cancer", "digits", "diabetes")}
SETS = ["fifty rows", "iris", "wine", "sonar_scale", "ionosphere_scale", "diabetes", "breast_cancer", "australian",
        "german.numer_scale", "digits", "satimage.scale"]  # fmt: skip
ESTIMATORS = ["SVC", "LinearSVC", "SVR", "LinearSVR", "OneClassSVM"]
PACKAGES = {"ours": "widemargin", "scikit-learn": "sklearn.svm", "intelex": "sklearnex.svm"}
_SLOWER = 1.05  # times the other's time: within the noise of a millisecond
_INTRODUCTION = f"""# Small problems

Made by `python -m benchmarks run small`: milliseconds of `fit`, {len(SETS)} sets of 50 to 4,435 rows, columns of mean 0
and deviation 1, {len(ESTIMATORS)} estimators, everything default, in one process, after a first fit that compiles.
Ratios are theirs / ours: above 1 is in our favour. Labels of classification sets are regressed as numbers, and two
halves of the targets of regression sets are classified. scikit-learn-intelex has no linear machines and no one-class
machine."""
_SECTIONS = {
    "summary": ("Summary", "Cells by estimator: those in which we are not slower than the better of the others."),
    "small": ("All cells", "In bold: slower than one of the others."),
}


@cache
def standardised(name):
    """Return X, with columns of mean 0 and deviation 1, and y."""
    if name == "fifty rows":
        X, y = datasets.make_classification(50, 10, random_state=0)
    elif name in BUNDLED:
        X, y = BUNDLED[name](return_X_y=True)
    else:
        X, y = load(name)
        X = X.toarray()
    return StandardScaler().fit_transform(X), y


def targets(name, estimator):
    """Return what an estimator is given: labels, or numbers of mean 0 and deviation 1."""
    _, y = standardised(name)
    if "SVC" in estimator:
        return y > np.median(y) if len(np.unique(y)) > 20 else y
    return (y - y.mean()) / y.std()


def small_table(page, names, options):
    """Every estimator on every set."""
    columns = ["set", "estimator", "rows", "columns", *PACKAGES, "scikit-learn / ours", "intelex / ours"]
    for name in page.each("small", names):
        X, _ = standardised(name)
        for estimator in ESTIMATORS:
            y = targets(name, estimator)
            runners = {
                label: timed(getattr(importlib.import_module(module), estimator)().fit, X, y)
                for label, module in PACKAGES.items()
                if _has(module, estimator)
            }
            runners["ours"]()
            found = take_turns(runners, options.repeats, often=5, patience=1.0)
            times = {label: one.times_factor(1e3) for label, (_, one) in found.items()}
            is_slower = times["ours"] > _SLOWER * min(times.values())
            cells = [shown(times.get(label)) for label in PACKAGES]
            cells[0] = f"**{cells[0]}**" if is_slower else cells[0]
            cells += [ratio(times.get(label), times["ours"]) for label in ("scikit-learn", "intelex")]
            page.put("small", columns, [name, estimator, *X.shape, *cells])


def _has(module, estimator):
    """Whether a package is installed and has an estimator of its own, not one handed on from scikit-learn."""
    try:
        found = getattr(importlib.import_module(module), estimator, None)
    except ImportError:
        return False
    return found is not None and (module == "sklearn.svm" or not found.__module__.startswith("sklearn."))


def finish(page):
    """Add the counts by estimator."""
    columns = ["estimator", "cells", "not slower", "median of scikit-learn / ours", "smallest"]
    for estimator in ESTIMATORS:
        rows = [row for row in page.rows("small") if row[1] == estimator]
        ratios = [read(row[-2]).value for row in rows if read(row[-2])]
        if ratios:
            cells = [estimator, len(rows), sum("**" not in row[4] for row in rows)]
            page.put("summary", columns, [*cells, f"{np.median(ratios):.2f}", f"{min(ratios):.2f}"], n_key=1)


PAGE = Frame(
    _INTRODUCTION,
    _SECTIONS,
    {"small": Table(small_table, SETS, SETS[:3])},
    options={"repeats": 5},
    quick_options={"repeats": 2},
    finish=finish,
)
