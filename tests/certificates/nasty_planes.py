"""Problems of pairs and of measures that are hard on purpose, one for each whole number: see `nasty`."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from tests.certificates import nasty

KINDS = ("rank", "ordinal", "roc", "measure")
SOLVERS = ("ocas", "svmperf")


@dataclass(frozen=True)
class Planes:
    """A problem for cutting planes. `intercept_scaling` is 0 without an intercept, which only measures have."""

    kind: str
    X: Any
    target: np.ndarray
    query: np.ndarray
    measure: str
    intercept_scaling: float
    C: float
    tol: float
    traits: list = field(default_factory=list)
    solvers: tuple = SOLVERS

    def told(self):
        """Return the problem in a line."""
        n, d = self.X.shape
        name = f"{self.measure} scaling={self.intercept_scaling:.3g}" if self.kind == "measure" else self.kind
        return f"{name} {n}x{d} C={self.C:.3g} tol={self.tol:.1e} {self.traits}"


def planes(seed):
    """Return the problem of a seed."""
    rng = np.random.default_rng([seed, 3])
    kind, traits = KINDS[seed % len(KINDS)], []
    X = _rows(rng, traits)
    n = len(X)
    query = np.zeros(n, int)
    if kind in ("roc", "measure"):
        target = nasty.signs(rng, X, "small", traits)
    else:
        target = np.round(rng.choice([1.0, 2.0]) * nasty.standing(X) @ rng.standard_normal(X.shape[1]))
        target = np.clip(target + np.where(rng.random(n) < 0.3, rng.integers(-1, 2, n), 0), -2.0, 2.0)
        if np.ptp(target) == 0.0:
            target[0] += 1.0
    if kind == "rank" and rng.random() < 0.7:
        query = np.sort(rng.integers(0, 3, n))
        first = np.flatnonzero(query == query[0])
        if len(first) == 1:
            query[:] = 0
        elif np.ptp(target[first]) == 0.0:
            target[0] += 1.0
    k = int(rng.integers(1, n + 1))
    X = nasty.stored(rng, X, traits)
    measure = str(rng.choice(["f1", "prbep", "error", f"precision@{k}", f"recall@{k}", "average_precision"]))
    scaling = float(rng.choice([0.0, 1.0, 10.0]))
    return Planes(
        kind, X, target, query, measure,
        intercept_scaling=0.0 if measure == "average_precision" else scaling,  # an intercept changes no ranking
        C=float(10.0 ** rng.uniform(-6, 6)),
        tol=float(rng.choice([1e-3, 10.0 ** rng.uniform(-10, -2)])),
        traits=traits,
    )  # fmt: skip


def _rows(rng, traits):
    """Return few rows: pairs are many."""
    for _ in range(100):
        mine = []
        X, shape = nasty.rows(rng, mine)
        if shape in ("tiny", "small", "wide") and len(X) <= 30:
            break
    traits += mine
    return X
