"""Crammer and Singer's problem by cutting planes: judged by the certificates of dual coordinate descent."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.sparse import csr_array

from widemargin.data.matrix import Matrix
from widemargin.problems.multiclass import CrammerSinger, certify
from widemargin.solvers.all_classes import by_planes, chosen
from widemargin.solvers.checkpoint import CheckpointFile
from widemargin.solvers.contract import Settings, Status
from widemargin.solvers.coordinate_descent.crammer_singer import crammer_singer
from widemargin.solvers.cutting_planes.methods import OCAS, SVMPERF

EACH_METHOD = pytest.mark.parametrize("spec", [OCAS, SVMPERF], ids=lambda spec: spec.name)
CONTAINERS = {"dense": np.asarray, "sparse": csr_array, "sparse float32": lambda X: csr_array(X.astype(np.float32))}


def clouds_of(rng, n=90, n_classes=3, n_features=5):
    label = np.arange(n) % n_classes
    X = rng.standard_normal((n, n_features)) + 1.2 * rng.standard_normal((n_classes, n_features))[label]
    X[rng.random(X.shape) < 0.2] = 0.0
    return X.astype(np.float32).astype(float), label, rng.uniform(0.1, 1.0, n)


def objective(problem, W):
    """Return the primal objective of W (n_columns x n_classes) by the judge."""
    return certify(problem, W, np.zeros((problem.X.n_rows, problem.n_classes))).primal


@EACH_METHOD
@pytest.mark.parametrize("container", CONTAINERS.values(), ids=CONTAINERS.keys())
@pytest.mark.parametrize("constant", [0.0, 1.0])
@pytest.mark.parametrize("n_classes", [2, 3, 7])
def test_the_gap_is_true_and_the_optimum_that_of_coordinate_descent(spec, container, constant, n_classes, rng):
    X, label, cost = clouds_of(rng, n_classes=n_classes)
    problem = CrammerSinger(Matrix(container(X), constant), label, cost, n_classes)
    tol = 1e-6 if spec is OCAS else 1e-3
    solution = by_planes(spec)(problem, Settings(tol=tol, max_iter=5000))
    assert solution.status is Status.CONVERGED
    assert solution.gap <= tol
    fine = crammer_singer(problem, Settings(tol=1e-9, max_iter=100_000))
    bounds = certify(problem, fine.w, fine.beta)
    assert solution.primal == pytest.approx(objective(problem, solution.w), rel=1e-12)
    assert solution.dual <= bounds.primal
    assert bounds.dual * (1.0 - 1e-14) <= solution.primal <= bounds.dual * (1.0 + tol) + 1e-9  # NumPy's sums round
    if constant:
        np.testing.assert_array_equal(solution.intercept, constant * solution.w[-1])


def test_the_optimum_is_that_of_a_general_minimiser(rng):
    X, label, cost = clouds_of(rng, 12, 3, 2)
    problem = CrammerSinger(Matrix(X), label, cost, 3)
    solution = by_planes(OCAS)(problem, Settings(tol=1e-8, max_iter=5000))
    n, d, k = 12, 2, 3  # smooth: minimise ½|w|² + Σ cost ξ over w and ξ with linear constraints

    def slack(v):
        W, xi = v[: d * k].reshape(d, k), v[d * k :]
        S = X @ W
        margin = (np.arange(k) != label[:, None]) + S - S[np.arange(n), label][:, None]
        return (xi[:, None] - margin).ravel()

    def height(v):
        return 0.5 * v[: d * k] @ v[: d * k] + cost @ v[d * k :]

    start = np.concatenate([np.zeros(d * k), np.ones(n)])
    found = minimize(height, start, constraints={"type": "ineq", "fun": slack}, method="SLSQP", options={"ftol": 1e-13})
    assert solution.primal == pytest.approx(found.fun, rel=1e-6)


def test_planes_are_lower_bounds_of_the_objective(rng):
    X, label, cost = clouds_of(rng)
    problem = CrammerSinger(Matrix(X, 1.0), label, cost, 3)
    history = by_planes(OCAS)(problem, Settings(tol=1e-7, max_iter=5000)).history
    optimum = crammer_singer(problem, Settings(tol=1e-10, max_iter=100_000)).primal
    assert len(history) > 5
    assert (history["dual"] <= optimum * (1.0 + 1e-12)).all()
    assert (np.diff(history["primal"]) <= 1e-12 * optimum).all()
    assert (np.diff(history["dual"][:-1]) >= 0.0).all()


@EACH_METHOD
def test_a_start_is_used(spec, rng):
    X, label, cost = clouds_of(rng)
    problem = CrammerSinger(Matrix(X, 1.0), label, cost, 3)
    first = by_planes(spec)(problem, Settings(tol=1e-3, max_iter=5000))
    again = by_planes(spec)(problem, Settings(tol=1e-3, max_iter=5000), first.w.T)
    assert again.n_iter < first.n_iter
    assert again.history["primal"][0] == pytest.approx(first.primal, rel=1e-9)


def test_empty_rows_rows_of_zero_cost_and_classes_without_rows(rng):
    X, label, cost = clouds_of(rng)
    X[:3], cost[3:6] = 0.0, 0.0
    settings = Settings(tol=1e-6, max_iter=5000)
    for n_classes in (3, 5):
        problem = CrammerSinger(Matrix(X), label, cost, n_classes)
        solution = by_planes(OCAS)(problem, settings)
        fine = crammer_singer(problem, Settings(tol=1e-9, max_iter=100_000))
        assert solution.primal == pytest.approx(fine.primal, rel=2e-6)


def test_the_solution_does_not_depend_on_the_number_of_threads(rng):
    X, label, cost = clouds_of(rng, 40_000, 4, 20)
    problem = CrammerSinger(Matrix(X, 1.0), label, cost, 4)
    one, two = (by_planes(OCAS)(problem, Settings(tol=0.05, max_iter=30, n_jobs=n)) for n in (1, 2))
    np.testing.assert_array_equal(one.w, two.w)
    assert (one.primal, one.dual) == (two.primal, two.dual)


def test_auto_takes_what_the_settings_need(rng, tmp_path):
    X, label, cost = clouds_of(rng)
    problem = CrammerSinger(Matrix(X), label, cost, 3)
    file = CheckpointFile(str(tmp_path / "run"), {})
    assert chosen(problem, Settings(stopping="kkt"))[0].name == "crammer_singer"
    assert chosen(problem, Settings(checkpoint=file)) == (OCAS, "it writes checkpoints")
    assert chosen(problem, Settings())[1] == "few rows"
    X = rng.standard_normal((6000, 10))
    for factor, spec, why in ((0.5, "crammer_singer", "small costs"), (1.5, "ocas", "large costs")):
        large = CrammerSinger(Matrix(X), np.arange(6000) % 3, np.full(6000, factor / 10.0), 3)
        found = chosen(large, Settings())
        assert (found[0].name, found[1]) == (spec, why)
        assert chosen(large, Settings(tol=0.0))[1] == "large costs"
        assert chosen(large, Settings(tol=1.0))[1] == "small costs"
        assert chosen(large, Settings(stopping="kkt"))[0].name == "crammer_singer"
    wide = CrammerSinger(Matrix(rng.standard_normal((300, 400))), np.arange(300) % 3, np.ones(300), 3)
    assert chosen(wide, Settings())[1] == "few rows"


def test_numbers_beyond_double_precision_are_refused(rng):
    X, label, cost = clouds_of(rng)
    for scaled, costs in ((X * 1e160, cost), (X, cost * 1e300)):
        with pytest.raises(ValueError, match=r"double precision|overflows"):
            by_planes(OCAS)(CrammerSinger(Matrix(scaled), label, costs, 3), Settings())
