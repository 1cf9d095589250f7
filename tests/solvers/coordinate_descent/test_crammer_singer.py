"""Crammer and Singer's problem: judged by certificate, against scikit-learn, and on rows that break solvers."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.svm import LinearSVC as Peer

from widemargin.data.matrix import Matrix
from widemargin.problems.multiclass import CrammerSinger, certify
from widemargin.solvers.contract import Settings, Status
from widemargin.solvers.coordinate_descent.crammer_singer import crammer_singer


@pytest.fixture
def three_classes(rng):
    label = rng.integers(0, 3, 90)
    X = rng.standard_normal((90, 5)) + 1.2 * np.eye(5)[label]
    return X, label, rng.uniform(0.1, 1.0, 90)


@pytest.mark.parametrize("container", [np.asarray, csr_array, lambda X: csr_array(X.astype(np.float32))])
@pytest.mark.parametrize("constant", [0.0, 1.0])
def test_the_judge_confirms_the_gap(three_classes, container, constant):
    X, label, cost = three_classes
    problem = CrammerSinger(Matrix(container(X), constant), label, cost, 3)
    solution = crammer_singer(problem, Settings(tol=1e-8, max_iter=100_000))
    certificate = certify(problem, solution.w, solution.beta)
    assert solution.status is Status.CONVERGED
    assert -1e-12 < certificate.gap <= 1e-8
    np.testing.assert_allclose([solution.primal, solution.dual], certificate, rtol=1e-9)


def test_the_objective_is_scikit_learns(three_classes):
    X, label, _ = three_classes
    cost = np.full(90, 0.5)
    problem = CrammerSinger(Matrix(X), label, cost, 3)
    solution = crammer_singer(problem, Settings(tol=1e-8, max_iter=100_000))
    peer = Peer(
        multi_class="crammer_singer", C=0.5, fit_intercept=False, tol=1e-6, max_iter=100_000, random_state=0
    ).fit(X, label)
    assert solution.primal == pytest.approx(certify(problem, peer.coef_.T, solution.beta).primal, rel=1e-6)


def test_empty_rows_and_rows_of_zero_cost_change_no_weight(three_classes):
    X, label, cost = three_classes
    X[:3], cost[3:6] = 0.0, 0.0
    problem = CrammerSinger(Matrix(X), label, cost, 3)
    solution = crammer_singer(problem, Settings(tol=1e-8, max_iter=100_000))
    assert certify(problem, solution.w, solution.beta).gap <= 1e-8
    without = CrammerSinger(Matrix(X[6:]), label[6:], cost[6:], 3)
    np.testing.assert_allclose(solution.w, crammer_singer(without, Settings(tol=1e-8, max_iter=100_000)).w, atol=1e-6)


def test_a_warm_start_is_made_feasible_and_ends_at_the_same_optimum(three_classes, rng):
    X, label, cost = three_classes
    problem = CrammerSinger(Matrix(X), label, cost, 3)
    solution = crammer_singer(problem, Settings(tol=1e-9, max_iter=100_000))
    again = crammer_singer(problem, Settings(tol=1e-8, max_iter=1), start=solution.beta)
    assert certify(problem, again.w, again.beta).gap <= 1e-8
    from_infeasible = crammer_singer(
        problem, Settings(tol=1e-8, max_iter=100_000), start=5 * rng.standard_normal((90, 3))
    )
    assert certify(problem, from_infeasible.w, from_infeasible.beta).gap <= 1e-8
