"""Kernel problems that are hard on purpose, one for each whole number: see `nasty`."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from tests.certificates import nasty

KINDS = ("c_svc", "nu_svc", "one_class", "eps_svr", "nu_svr")
SOLVERS = ("auto", "svmlight", "smo")


@dataclass(frozen=True)
class Kernel:
    """A kernel problem and how it is to be solved."""

    kind: str
    X: Any
    target: np.ndarray
    weight: np.ndarray | None
    kernel: str
    gamma: float
    degree: int
    coef0: float
    C: float
    nu: float
    epsilon: float
    tol: float
    stopping: str = "kkt"
    traits: list = field(default_factory=list)
    solvers: tuple = SOLVERS

    @property
    def weights(self):
        return np.ones(len(self.target)) if self.weight is None else self.weight

    def told(self):
        """Return the problem in a line."""
        numbers = {
            "c_svc": f"C={self.C:.3g}",
            "nu_svc": f"nu={self.nu:.3g}",
            "one_class": f"nu={self.nu:.3g}",
            "eps_svr": f"C={self.C:.3g} epsilon={self.epsilon:.3g}",
            "nu_svr": f"C={self.C:.3g} nu={self.nu:.3g}",
        }[self.kind]
        n, d = self.X.shape
        stops = f"{self.stopping} tol={self.tol:.1e}"
        return f"{self.kind} {n}x{d} {self.kernel} gamma={self.gamma:.3g} {numbers} {stops} {self.traits}"


def kernel(seed):
    """Return the kernel problem of a seed."""
    rng = np.random.default_rng([seed, 2])
    kind, traits = KINDS[seed % len(KINDS)], []
    X = _rows(rng, traits)
    target = nasty.targets(rng, X, traits) if kind.endswith("svr") else nasty.signs(rng, X, "small", traits)
    weight = nasty.weights(rng, target, kind not in ("c_svc", "nu_svc"), traits)
    name = str(rng.choice(["linear", "rbf", "poly", "precomputed"], p=[0.35, 0.35, 0.1, 0.2]))
    X = nasty.stored(rng, X, traits) if name != "precomputed" else X
    spread = float(np.var(X.toarray() if hasattr(X, "toarray") else X)) or 1.0
    return Kernel(
        kind, X, target, weight, name,
        gamma=float(10.0 ** rng.uniform(-2, 1) / (X.shape[1] * spread)),
        degree=2,
        coef0=1.0,
        C=float(10.0 ** rng.uniform(-6, 6)),
        nu=_nu(rng, kind, target, np.ones(len(target)) if weight is None else weight),
        epsilon=float(rng.choice([0.0, 0.1, 1.0]) * rng.choice([1.0, np.std(target) or 1.0])),
        tol=float(rng.choice([1e-3, 10.0 ** rng.uniform(-8, -1)])),
        stopping=str(rng.choice(["kkt", "gap"], p=[0.7, 0.3])),
        traits=traits,
    )  # fmt: skip


def _rows(rng, traits):
    """Return rows: fewer than in linear problems, since everything about them is a matrix."""
    for _ in range(100):
        mine = []
        X, shape = nasty.rows(rng, mine)
        if shape in ("tiny", "small") and len(X) <= 60:
            break
    traits += mine
    return X


def _nu(rng, kind, target, weight):
    """Return a nu that the classes allow."""
    most = 1.0
    if kind == "nu_svc":
        sides = weight[target > 0].sum(), weight[target < 0].sum()
        most = 2.0 * min(sides) / sum(sides)
    return float(most * rng.choice([rng.uniform(0.01, 0.1), rng.uniform(0.1, 0.95)]))
