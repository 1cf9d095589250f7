"""The shared data sets: where they are, which there are, and how a benchmark gets them."""

import os
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np
from scipy.sparse import csr_matrix

from widemargin import read_svmlight

FOLDER = Path(os.environ.get("WIDEMARGIN_DATA", Path(__file__).parents[2] / "shared" / "data"))


@cache
def load(name):
    """Return X (CSR, float64) and y of a shared set."""
    X, y, _ = read_svmlight(FOLDER / f"{name}.svm.xz")
    return X, y


@cache
def binary(name):
    """Return X and signs: the second of two labels against the first, or the most frequent one against the rest."""
    X, y = load(name)
    labels, counts = np.unique(y, return_counts=True)
    chosen = labels[1] if len(labels) == 2 else labels[np.argmax(counts)]
    return X, np.where(y == chosen, 1.0, -1.0)


# --- As kernel machines get them ------------------------------------------------------------------------------------

_SCALINGS = {  # features become (x − shift) · factor; learned from the training rows
    "as it is": lambda X: (0.0, 1.0),
    "byte": lambda X: (0.0, 1.0 / 255.0),
    "range": lambda X: ((X.max(0) + X.min(0)) / 2, 2 / _not_zero(np.ptp(X, 0))),
    "standard": lambda X: (X.mean(0), 1 / _not_zero(X.std(0))),
}


def _not_zero(values):
    return np.where(values == 0.0, 1.0, values)


@dataclass(frozen=True)
class Preparation:
    """What a kernel benchmark makes of a shared set: "svc", "svr" (y to mean 0, deviation 1) or "one-class"."""

    kind: str = "svc"
    dense: bool = True
    scaling: str = "as it is"
    n_rows: int | None = None  # a random part, the same every time; parts of a set are nested


_SPARSE, _RANGE = Preparation(dense=False), Preparation(scaling="range")
_REGRESSION = Preparation("svr")
_OUTLIERS = Preparation("one-class", scaling="standard")
_PREPARATIONS = {
    **dict.fromkeys(["a1a", "a4a", "a5a", "a8a", "a9a", "w1a", "w8a", "mushrooms"], _SPARSE),
    **dict.fromkeys(["lasvm-reuters-money-fx", "svmlight-example1", "rcv1-vw-1000"], _SPARSE),
    **dict.fromkeys(["svmguide1", "australian", "splice", "pendigits"], _RANGE),
    **dict.fromkeys(["cpusmall_scale", "abalone_scale", "space_ga_scale"], _REGRESSION),
    **dict.fromkeys(["cadata", "kin8nm", "bank32nh"], replace(_REGRESSION, scaling="range")),
    **dict.fromkeys(["odds-shuttle", "odds-cardio", "odds-satellite"], _OUTLIERS),
    "mnist": Preparation(scaling="byte"),
}


def preparation(name):
    """Return the Preparation of a set, or of a part of it: "mnist:10000" are 10,000 rows of mnist."""
    source, _, n_rows = name.partition(":")
    return replace(_PREPARATIONS.get(source, Preparation()), n_rows=int(n_rows) if n_rows else None)


def _order(name):
    """Return the set's row numbers, those of the part first."""
    how, n_rows = preparation(name), load(name.partition(":")[0])[0].shape[0]
    if how.n_rows is None:
        return np.arange(n_rows), n_rows
    return np.random.default_rng(0).permutation(n_rows), min(how.n_rows, n_rows)


@cache
def kernel_set(name):
    """Return X (float64, dense or CSR as the set is used) and y."""
    how = preparation(name)
    X, y = load(name.partition(":")[0])
    order, n_rows = _order(name)
    X, y = _formed(X[order[:n_rows]], how), y[order[:n_rows]]
    if how.dense:
        shift, factor = _SCALINGS[how.scaling](X)
        X = (X - shift) * factor
    return X, (y - y.mean()) / y.std() if how.kind == "svr" else y


@cache
def new_rows(name, most=10_000):
    """Return rows to predict, at most so many: of the test set, else those left over, else the training rows."""
    source, how = name.partition(":")[0], preparation(name)
    X = load(source)[0]
    order, n_rows = _order(name)
    if (FOLDER / f"{source}.t.svm.xz").exists():
        test = load(f"{source}.t")[0][:most]
        test.resize(test.shape[0], X.shape[1])  # features that training has not seen mean nothing
    else:
        test = X[order[n_rows:][:most]] if n_rows < len(order) else X[order[:most]]
    test = _formed(test, how)
    if how.dense:
        shift, factor = _SCALINGS[how.scaling](_formed(X[order[:n_rows]], how))
        test = (test - shift) * factor
    return test


def _formed(X, how):
    return X.toarray() if how.dense else csr_matrix(X)
