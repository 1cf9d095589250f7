"""Certificates of Crammer and Singer's problem by cutting planes, judged in exact arithmetic on nasty rows."""

from fractions import Fraction

import numpy as np
import pytest

from widemargin.data.matrix import Matrix
from widemargin.problems.multiclass import CrammerSinger
from widemargin.solvers.all_classes import by_planes
from widemargin.solvers.contract import Settings
from widemargin.solvers.coordinate_descent.crammer_singer import crammer_singer
from widemargin.solvers.cutting_planes.methods import OCAS, SVMPERF

N_ROWS, N_COLUMNS, N_CLASSES = 14, 3, 3


def exact(array):
    """Return an array of Fractions that are equal to the numbers."""
    return np.vectorize(Fraction, otypes=[object])(np.asarray(array, dtype=float))


def exact_objective(X, label, cost, W):
    """Return the primal objective of W (n_columns x n_classes) as a Fraction."""
    S, W = exact(X).dot(exact(W)), exact(W)
    losses = [
        Fraction(c) * max(int(m != y) + s[m] - s[y] for m in range(N_CLASSES))
        for s, y, c in zip(S, label, cost, strict=True)
    ]
    return (W * W).sum() / 2 + sum(losses)


def exact_dual_value(X, label, cost, beta):
    """Return the dual objective, as a Fraction, of dual variables that are made exactly feasible first."""
    beta = exact(np.minimum(beta, 0.0))
    for row, y, c in zip(beta, label, cost, strict=True):
        row[y] = Fraction(0)
        total = -sum(row)
        if total > Fraction(c):
            row *= Fraction(c) / total
        row[y] = -sum(row)
    W = exact(X).T.dot(beta)
    return sum(row[y] for row, y in zip(beta, label, strict=True)) - (W * W).sum() / 2


def nasty_rows(rng, kind):
    """Return rows, labels and costs."""
    X, label = rng.standard_normal((N_ROWS, N_COLUMNS)), np.arange(N_ROWS) % N_CLASSES
    X += 1.5 * np.eye(N_COLUMNS)[label]
    cost = rng.uniform(0.1, 1.0, N_ROWS)
    if kind == "repeated":
        X[N_ROWS // 2 :] = X[: N_ROWS - N_ROWS // 2]
    elif kind == "scales":
        X *= [1e-4, 1.0, 1e4]
    elif kind == "large costs":
        cost *= 1e5
    elif kind == "costs of all sizes":
        cost = 10.0 ** rng.uniform(-8, 3, N_ROWS)
    elif kind == "empty":
        X[::2] = 0.0
    return X, label, cost


@pytest.mark.parametrize("spec", [OCAS, SVMPERF], ids=lambda spec: spec.name)
@pytest.mark.parametrize(
    "kind", ["plain", "repeated", "scales", "large costs", "costs of all sizes", "empty"]
)  # fmt: skip
def test_bounds_enclose_the_optimum_in_exact_arithmetic(spec, kind, rng):
    X, label, cost = nasty_rows(rng, kind)
    problem = CrammerSinger(Matrix(X), label, cost, N_CLASSES)
    fine = crammer_singer(problem, Settings(tol=1e-10, max_iter=20_000))
    highest = exact_objective(X, label, cost, fine.w)
    lowest = exact_dual_value(X, label, cost, fine.beta)
    assert lowest <= highest
    for tol, max_iter in ((1e-1, 300), (1e-4, 300), (1e-12, 300), (0.0, 3)):
        solution = by_planes(spec)(problem, Settings(tol=tol, max_iter=max_iter))
        primal = exact_objective(X, label, cost, solution.w)
        assert float(primal) == pytest.approx(solution.primal, rel=1e-9)
        assert Fraction(solution.dual) <= min(highest, primal)
        assert primal >= lowest
        proved = Fraction(solution.primal) - Fraction(solution.dual)
        assert primal - highest <= proved + Fraction(1e-12) * primal
