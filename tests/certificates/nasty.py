"""Linear problems that are hard on purpose, one for each whole number.

Columns of scales 1e-4 to 1e4, collinear and nearly collinear ones, duplicated rows and columns, constant columns, rows
of zeros, classes of 1 : 1000, many more columns than rows and the reverse, sparse and dense, single precision, C from
1e-6 to 1e6 and tol from 1e-2 to 1e-10. The same seed gives the same problem on every machine.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

DUAL_SOLVERS = ("dcd", "avsf", "climb")
SOLVERS = ("auto", *DUAL_SOLVERS, "newton", "ocas", "svmperf")
CLASSIFICATION = ("hinge", "squared_hinge")
REGRESSION = ("epsilon_insensitive", "squared_epsilon_insensitive")
INTERCEPTS = ("penalised", "free", "none")
_SHAPES = ("tiny", "small", "wide", "tall", "imbalanced")
_SHAPE_ODDS = (0.2, 0.4, 0.15, 0.15, 0.1)


@dataclass(frozen=True)
class Linear:
    """A linear problem and how it is to be solved. `target` is ±1 or the numbers of a regression."""

    X: Any
    target: np.ndarray
    weight: np.ndarray | None
    loss: str
    C: float
    epsilon: float
    intercept: str
    intercept_scaling: float
    tol: float
    traits: list = field(default_factory=list)

    @property
    def is_regression(self):
        return self.loss in REGRESSION

    @property
    def is_squared(self):
        return self.loss.startswith("squared")

    @property
    def cost(self):
        return self.C * (np.ones(len(self.target)) if self.weight is None else self.weight)

    @property
    def solvers(self):
        """The solvers that take this problem."""
        return tuple(s for s in SOLVERS if self.intercept != "free" or s not in DUAL_SOLVERS)

    def told(self):
        """Return the problem in a line."""
        n, d = self.X.shape
        return (
            f"{n}x{d} {self.loss} C={self.C:.3g} tol={self.tol:.1e} intercept={self.intercept}"
            f"{f' scaling={self.intercept_scaling:.3g}' if self.intercept_scaling != 1.0 else ''}"
            f"{f' epsilon={self.epsilon:.3g}' if self.is_regression else ''} [{', '.join(self.traits)}]"
        )


def linear(seed):
    """Return the linear problem of a seed."""
    rng = np.random.default_rng([seed, 1])
    traits = []
    X, shape = rows(rng, traits)
    loss = str(rng.choice(CLASSIFICATION if rng.random() < 0.5 else REGRESSION))
    if loss in REGRESSION:
        target = targets(rng, X, traits)
        epsilon = float(rng.choice([0.0, 0.1, 1.0, 10.0]) * rng.choice([1.0, float(np.std(target)) or 1.0]))
    else:
        target, epsilon = signs(rng, X, shape, traits), 0.0
    weight = weights(rng, target, loss in REGRESSION, traits)
    X = stored(rng, X, traits)
    scaling = 1.0 if rng.random() < 0.8 else float(10.0 ** rng.uniform(-1, 2))
    intercept = str(rng.choice(INTERCEPTS))
    return Linear(
        X, target, weight, loss,
        C=float(10.0 ** rng.uniform(-6, 6)),
        epsilon=epsilon,
        intercept=intercept,
        intercept_scaling=scaling if intercept == "penalised" else 1.0,
        tol=float(rng.choice([1e-4, 10.0 ** rng.uniform(-10, -2)])),
        traits=traits,
    )  # fmt: skip


def size(rng, shape):
    """Return the numbers of rows and columns of a shape."""
    ranges = {
        "tiny": ((2, 12), (1, 5)),
        "small": ((10, 60), (1, 15)),
        "wide": ((4, 30), (60, 400)),
        "tall": ((150, 500), (1, 8)),
        "imbalanced": ((300, 1200), (1, 5)),
    }[shape]
    return tuple(int(rng.integers(low, high + 1)) for low, high in ranges)


def rows(rng, traits):
    """Return rows as an array, and their shape in a word."""
    shape = str(rng.choice(_SHAPES, p=_SHAPE_ODDS))
    n, d = size(rng, shape)
    traits.append(shape)
    kind = rng.choice(["normal", "whole", "uniform", "gaps"], p=[0.5, 0.15, 0.15, 0.2])
    if kind == "whole":
        X = rng.integers(-2, 3, (n, d)).astype(np.float64)
    elif kind == "uniform":
        X = rng.uniform(0.0, 1.0, (n, d))
    else:
        X = rng.standard_normal((n, d))
    if kind == "gaps":
        X[rng.random((n, d)) < rng.uniform(0.3, 0.9)] = 0.0
    traits.append(str(kind))
    for name, odds, change in _CHANGES:
        if rng.random() < odds:
            X = change(rng, X)
            traits.append(name)
    return X, shape


def _scales(rng, X):
    return X * 10.0 ** rng.uniform(-4, 4, X.shape[1])


def _one_scale(rng, X):
    return X * 10.0 ** rng.uniform(-3, 3)


def _collinear(rng, X):
    k = int(rng.integers(1, 3))
    return np.column_stack([X, X @ rng.standard_normal((X.shape[1], k))])


def _nearly_collinear(rng, X):
    j = int(rng.integers(X.shape[1]))
    return np.column_stack([X, X[:, j] + 1e-7 * (1.0 + np.abs(X[:, j]).max()) * rng.standard_normal(len(X))])


def _same_columns(rng, X):
    return np.column_stack([X, X[:, rng.integers(0, X.shape[1], min(3, X.shape[1]))]])


def _same_rows(rng, X):
    chosen = rng.integers(0, len(X), len(X))
    return np.where(rng.random(len(X))[:, None] < 0.5, X[chosen], X)


def _constant_column(rng, X):
    return np.column_stack([X, np.full(len(X), rng.choice([1.0, -3.0, 1e3]))])


def _zero_rows(rng, X):
    return np.where(rng.random(len(X))[:, None] < 0.2, 0.0, X)


def _far_from_zero(rng, X):
    return X + rng.uniform(-1.0, 1.0, X.shape[1]) * 10.0 ** rng.uniform(0, 3)


_CHANGES = (
    ("far from zero", 0.15, _far_from_zero),
    ("collinear", 0.2, _collinear),
    ("nearly collinear", 0.1, _nearly_collinear),
    ("same columns", 0.15, _same_columns),
    ("same rows", 0.25, _same_rows),
    ("constant column", 0.15, _constant_column),
    ("scales", 0.35, _scales),
    ("one scale", 0.2, _one_scale),
    ("zero rows", 0.15, _zero_rows),
)


def standing(X):
    """Return the rows with each column divided by its largest value, for truths that any scale can tell."""
    largest = np.abs(X).max(axis=0)
    return X / np.where(largest > 0.0, largest, 1.0)


def signs(rng, X, shape, traits):
    """Return ±1 for each row, both of which occur."""
    n = len(X)
    if shape == "imbalanced":
        sign = -np.ones(n)
        sign[rng.integers(0, n, int(rng.integers(1, 4)))] = 1.0
    elif rng.random() < 0.2:
        sign = np.where(rng.random(n) < 0.5, 1.0, -1.0)
        traits.append("random labels")
    else:
        truth = standing(X) @ rng.standard_normal(X.shape[1])
        noise = float(rng.choice([0.0, 0.3, 1.0])) * np.std(truth)
        sign = np.where(truth + noise * rng.standard_normal(n) > np.median(truth), 1.0, -1.0)
        traits.append("separable" if noise == 0.0 else "noisy")
    if np.ptp(sign) == 0.0:
        sign[0] = -sign[0]
    return sign if rng.random() < 0.5 else -sign


def targets(rng, X, traits):
    """Return a number for each row."""
    kind = str(rng.choice(["linear", "noisy", "random", "constant", "zero"], p=[0.2, 0.5, 0.2, 0.06, 0.04]))
    traits.append(f"{kind} targets")
    truth = standing(X) @ rng.standard_normal(X.shape[1])
    noise = rng.standard_normal(len(X))
    y = {
        "linear": truth,
        "noisy": truth + 0.3 * noise,
        "random": noise,
        "constant": np.full(len(X), 2.5),
        "zero": np.zeros(len(X)),
    }[kind]
    y = y + (float(rng.choice([0.0, 1.0, 100.0])) if kind in ("linear", "noisy", "random") else 0.0)
    return y * (1.0 if rng.random() < 0.7 else 10.0 ** rng.uniform(-4, 4))


def weights(rng, target, is_regression, traits):
    """Return weights of rows, or None; where there are classes both keep a row."""
    kind = str(rng.choice(["none", "uniform", "zeros", "wide"], p=[0.6, 0.15, 0.15, 0.1]))
    if kind == "none":
        return None
    traits.append(f"weights: {kind}")
    n = len(target)
    if kind == "wide":
        return 10.0 ** rng.uniform(-3, 3, n)
    weight = rng.uniform(0.1, 2.0, n)
    if kind == "zeros":
        weight[rng.random(n) < 0.3] = 0.0
        for value in [target[0]] if is_regression else [-1.0, 1.0]:
            weight[np.argmax(target == value)] = 1.0
    return weight


def stored(rng, X, traits):
    """Return the rows as they are stored: dense or sparse, in single or double precision."""
    if rng.random() < 0.2:
        X = X.astype(np.float32)
        traits.append("float32")
    if rng.random() < (0.6 if "gaps" in traits else 0.15):
        X = csr_matrix(X)
        traits.append("sparse")
    return X
