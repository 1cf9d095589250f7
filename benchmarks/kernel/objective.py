"""Objectives of kernel machines from their multipliers and intercepts, by NumPy in double precision.

    C-SVC      primal ½|w|² + C Σ max(0, 1 − m_i)                    dual Σ a_i − ½|w|²              0 <= a_i <= C
    ε-SVR      primal ½|w|² + C Σ max(0, |y_i − f_i| − ε)            dual Σ (y_i b_i − ε|b_i|) − ½|w|²   |b_i| <= C
    one-class  primal ½|w|² − ν n r + Σ max(0, r − <w, φ(x_i)>)      dual −½|w|²                     0 <= a_i <= 1

With several classes the objectives of all pairs are added. There a row of class c has a multiplier against each other
class o, A[o, i] >= 0, and in that pair the margin

    m_i = Σ_{s in c} A[o, s] K(x_s, x_i) − Σ_{s in o} A[c, s] K(x_s, x_i) + b[c, o],      b[c, o] = −b[o, c]

Everybody's kernel values are the same, so those of all support vectors of all models are computed once.
"""

from typing import NamedTuple

import numpy as np
from scipy.sparse import issparse

_PART_VALUES = 1 << 24  # kernel values at a time


class Multipliers(NamedTuple):
    """A fitted model in LIBSVM's layout: a positive decision is for the first of a pair, in order of `classes`."""

    support: np.ndarray  # row numbers
    dual_coef: np.ndarray  # (n_classes − 1, or 1; n_support)
    intercept: np.ndarray
    classes: np.ndarray | None = None


class Objective(NamedTuple):
    """Values at a model; the dual value is a bound only if the multipliers are `feasible`."""

    primal: float
    dual: float
    feasible: bool


def objectives(kind, X, y, parameters, models):
    """Return an Objective for each of the models."""
    judge = {"svc": _Pairs, "svr": _Regression, "one-class": _OneClass}[kind]
    judges = [judge(y, parameters, model) for model in models]
    label = judges[0].label
    support = np.unique(np.concatenate([model.support for model in models]))
    support = support[np.argsort(label[support], kind="stable")]
    ends = np.searchsorted(label[support], np.arange(label.max() + 2))
    weights = np.concatenate([one.weights[:, support] for one in judges])
    size = judges[0].weights.shape[0]
    for rows, sums in _kernel_sums(X, support, parameters["gamma"], weights, ends):
        for k, one in enumerate(judges):
            one.add(rows, sums[:, :, k * size : (k + 1) * size])
    return [one.objective() for one in judges]


def _kernel_sums(X, support, gamma, weights, ends):
    """Yield (rows, sums): sums[x, block, m] = Σ over the block's support vectors s of weights[m, s] K(x, x_s)."""
    if issparse(X) and X.shape[1] <= 1000:
        X = X.toarray()
    norms = np.asarray(X.multiply(X).sum(axis=1)).ravel() if issparse(X) else np.einsum("ij,ij->i", X, X)
    vectors = X[support].T.toarray() if issparse(X) else np.ascontiguousarray(X[support].T)
    step = max(1, _PART_VALUES // len(support))
    for begin in range(0, X.shape[0], step):
        rows = slice(begin, min(begin + step, X.shape[0]))
        K = X[rows] @ vectors
        K *= 2.0
        K -= norms[rows, None]
        K -= norms[support]
        np.minimum(K, 0.0, out=K)
        K *= gamma
        np.exp(K, out=K)
        blocks = [slice(*ends[k : k + 2]) for k in range(len(ends) - 1)]
        yield rows, np.stack([K[:, block] @ weights[:, block].T for block in blocks], axis=1)


class _Pairs:
    """C-SVC, all pairs of classes. `weights` are A."""

    def __init__(self, y, parameters, model):
        names, self.label = np.unique(y, return_inverse=True)
        self.C, n_classes = parameters["C"], len(names)
        place = np.searchsorted(names, model.classes)  # of the model's classes among ours
        position = np.argsort(place)
        own = position[self.label[model.support]]
        column = np.arange(len(model.support))
        self.weights = np.zeros((n_classes, len(y)))
        for other in range(n_classes):
            there = position[other]
            coef = model.dual_coef[np.where(there < own, there, np.maximum(there - 1, 0)), column]
            self.weights[other, model.support] = np.where(own == there, 0.0, np.where(own < there, coef, -coef))
        first, second = (place[k] for k in np.triu_indices(n_classes, 1))
        self.b = np.zeros((n_classes, n_classes))
        self.b[first, second], self.b[second, first] = model.intercept, -model.intercept
        self.losses = self.norm = 0.0

    def add(self, rows, sums):
        own, index = self.label[rows], np.arange(sums.shape[0])
        without_b = sums[index, own, :] - sums[index, :, own]
        loss = np.maximum(0.0, 1.0 - without_b - self.b[own])
        loss[index, own] = 0.0
        self.losses += self.C * loss.sum()
        self.norm += np.sum(self.weights[:, rows].T * without_b)

    def objective(self):
        A, C = self.weights, self.C
        balance = np.array([[A[other, self.label == c].sum() for other in range(len(A))] for c in range(len(A))])
        feasible = _within(A, 0.0, C) and np.abs(balance - balance.T).max() <= 1e-6 * max(A.sum(), C)
        return Objective(0.5 * self.norm + self.losses, A.sum() - 0.5 * self.norm, feasible)


class _OneFunction:
    """One function of all rows: no classes, one block."""

    def __init__(self, y, parameters, model):
        self.y, self.parameters, self.b = y, parameters, float(model.intercept[0])
        self.label = np.zeros(len(y), dtype=np.intp)
        self.weights = np.zeros((1, len(y)))
        self.weights[0, model.support] = model.dual_coef[0]
        self.losses = self.norm = 0.0

    def add(self, rows, sums):
        without_b = sums[:, 0, 0]
        self.norm += self.weights[0, rows] @ without_b
        self.losses += self.loss(rows, without_b)


class _Regression(_OneFunction):
    def loss(self, rows, without_b):
        beyond = np.abs(self.y[rows] - without_b - self.b) - self.parameters["epsilon"]
        return self.parameters["C"] * np.maximum(0.0, beyond).sum()

    def objective(self):
        beta, C = self.weights[0], self.parameters["C"]
        dual = self.y @ beta - self.parameters["epsilon"] * np.abs(beta).sum() - 0.5 * self.norm
        feasible = _within(beta, -C, C) and abs(beta.sum()) <= 1e-6 * max(np.abs(beta).sum(), C)
        return Objective(0.5 * self.norm + self.losses, dual, feasible)


class _OneClass(_OneFunction):
    def loss(self, rows, without_b):
        return np.maximum(0.0, -self.b - without_b).sum()  # r = −b

    def objective(self):
        total = self.parameters["nu"] * len(self.y)
        feasible = _within(self.weights, 0.0, 1.0) and abs(self.weights.sum() - total) <= 1e-6 * total
        return Objective(0.5 * self.norm + total * self.b + self.losses, -0.5 * self.norm, feasible)


def _within(values, low, high):
    margin = 1e-9 * (high - low)
    return bool((values >= low - margin).all() and (values <= high + margin).all())
