"""The active-set method: full precision, certificates at every step, any scales of columns, linearly dependent rows."""

import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from widemargin import LinearSVC, LinearSVR
from widemargin.data.matrix import Matrix
from widemargin.problems import classification, regression
from widemargin.problems.certificates import certify, losses, violations
from widemargin.problems.formulations import DualQP
from widemargin.solvers.auto import auto
from widemargin.solvers.contract import Settings, Status
from widemargin.solvers.finishing import finished
from widemargin.solvers.newton import active_set as module
from widemargin.solvers.newton.active_set import active_set_newton, is_small, solve_exactly
from widemargin.solvers.registry import LINEAR_SOLVERS


def huber(X, y, cost):
    return DualQP(X, target=y, lower=-cost, upper=cost, curvature=0.5 / cost, epsilon=np.zeros_like(cost))


LOSSES = {
    "hinge": classification.hinge,
    "squared_hinge": classification.squared_hinge,
    "absolute": lambda X, y, cost: regression.epsilon_insensitive(X, y, cost, 0.0),
    "tube": lambda X, y, cost: regression.epsilon_insensitive(X, y, cost, 0.1),
    "squared_tube": lambda X, y, cost: regression.squared_epsilon_insensitive(X, y, cost, 0.1),
    "huber": huber,
}
EACH_LOSS = pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES.keys())


def defective(seed, n, d, defects, scale):
    """Return X and signs with collinear, constant, zero and repeated columns and rows, columns of any scales."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * 10.0 ** rng.uniform(-scale, scale, d)
    sign = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    if "separable" in defects:
        X[:, 0] = 3.0 * sign * (1.0 + rng.random(n))
    if "collinear" in defects:
        X = np.column_stack([X, X @ rng.standard_normal(d)])
    if "constant" in defects:
        X = np.column_stack([X, np.full(n, 2.0)])
    if "zero" in defects:
        X[0] = 0.0
    if "repeated" in defects:
        X, sign = np.vstack([X, X[:3]]), np.append(sign, sign[:3])
    return X, sign, rng.uniform(0.0, 2.0, len(X))


DEFECTS = st.sets(st.sampled_from(["separable", "collinear", "constant", "zero", "repeated"]))


@given(
    st.integers(0, 2**32 - 1), st.integers(3, 30), st.integers(1, 8), st.sampled_from([1e-4, 0.1, 1.0, 100.0, 1e5]),
    st.sampled_from(sorted(LOSSES)), DEFECTS, st.sampled_from([0.0, 1.0, 3.0]), st.booleans(),
)  # fmt: skip
@hypothesis_settings(max_examples=200)
@example(95025, 4, 1, 1e-4, "hinge", set(), 0.0, True)
@example(69131227, 3, 1, 1e5, "tube", {"separable"}, 0.0, False)
@example(1, 3, 1, 1e5, "squared_hinge", {"collinear", "separable"}, 0.0, True)
@example(14, 5, 5, 100.0, "huber", {"repeated", "separable"}, 0.0, True)
def test_degenerate_problems_are_solved_exactly(seed, n, d, C, loss, defects, scale, free):
    X, sign, cost = defective(seed, n, d, defects, scale)
    problem = LOSSES[loss](Matrix(X, 0.0 if free else 1.0), sign, C * cost + 1e-9)
    problem = replace(problem, free_intercept=True) if free else problem
    settings = Settings(tol=1e-6)
    solution = finished(problem, active_set_newton(problem, settings), settings)
    rows = problem
    lengths = np.sqrt(rows.X.squared_norms()) * np.linalg.norm(solution.w) + abs(solution.intercept) + 1.0
    reachable = np.finfo(float).eps * float(C * cost @ lengths) / solution.primal if solution.primal else 0.0
    assert solution.status is (Status.CONVERGED if reachable < 1e-7 else solution.status)
    assert 0.0 <= solution.gap <= max(settings.tol, 10.0 * reachable)  # the effect of rounding errors of scores
    assert ((rows.lower <= solution.beta) & (solution.beta <= rows.upper)).all()


@EACH_LOSS
@pytest.mark.parametrize("container", [np.asarray, csr_array], ids=["dense", "csr"])
def test_optimality_conditions_hold_to_the_last_digits(container, loss, clouds):
    X, sign, cost = clouds
    problem = loss(Matrix(container(X), constant=1.0), sign, cost)
    solution = active_set_newton(problem, Settings(tol=1e-9))
    assert solution.is_exact
    assert violations(problem, solution.w, solution.beta).max() <= 1e-11
    assert abs(certify(problem, solution.w, solution.beta).gap) <= 1e-13


@EACH_LOSS
@pytest.mark.parametrize("free", [False, True], ids=["penalised", "free"])
def test_lapack_gives_the_same_as_compiled_loops(free, loss, clouds, monkeypatch):
    X, sign, cost = clouds
    problem = loss(Matrix(X, 0.0 if free else 1.0), sign, cost)
    problem = replace(problem, free_intercept=True) if free else problem
    compiled = active_set_newton(problem, Settings())
    monkeypatch.setattr(module, "_MIN_SYSTEM_SIZE_LAPACK", 0)
    by_lapack = active_set_newton(problem, Settings())
    assert compiled.is_exact
    assert by_lapack.is_exact
    np.testing.assert_allclose(by_lapack.w, compiled.w, rtol=1e-9, atol=1e-12)
    assert by_lapack.intercept == pytest.approx(compiled.intercept, rel=1e-9, abs=1e-12)


@EACH_LOSS
def test_every_step_has_a_certificate(loss, clouds):
    X, sign, cost = clouds
    problem = loss(Matrix(X, constant=1.0), sign, 10 * cost)
    whole = active_set_newton(problem, Settings(tol=1e-9))
    for n_steps in range(1, whole.n_iter + 1):
        solution = active_set_newton(problem, Settings(tol=0.0, max_iter=n_steps))
        assert solution.n_iter == n_steps
        certificate = certify(problem, solution.w, solution.beta)
        assert certificate.primal == pytest.approx(solution.primal, rel=1e-10)
        assert solution.dual <= certificate.dual + 1e-10 * certificate.primal
        assert certificate.dual <= whole.primal * (1 + 1e-12)


def test_a_start_at_the_solution_takes_few_steps(clouds):
    X, sign, cost = clouds
    problem = classification.hinge(Matrix(X), sign, cost)
    first = active_set_newton(problem, Settings())
    again = active_set_newton(problem, Settings(), first.w, first.beta)
    assert again.n_iter <= 1
    np.testing.assert_allclose(again.w, first.w, rtol=1e-10)


def test_columns_of_very_different_scales_converge(rng):
    X = rng.standard_normal((200, 6)) * np.array([1e-4, 1e-2, 1.0, 1e2, 1e4, 1e5])
    sign = np.where(rng.random(200) < 0.5, 1.0, -1.0)
    for C in (1e-3, 1.0, 1e4):
        solution = active_set_newton(classification.hinge(Matrix(X, 1.0), sign, np.full(200, C)), Settings(tol=1e-4))
        assert solution.status is Status.CONVERGED


def test_limits_and_interrupts_stop(clouds):
    X, sign, cost = clouds
    problem = classification.hinge(Matrix(X), sign, cost)

    def interrupt(progress):
        if progress.iteration > 2:
            raise KeyboardInterrupt

    assert active_set_newton(problem, Settings(tol=0.0, max_iter=2)).status is Status.MAX_ITER
    assert active_set_newton(problem, Settings(tol=0.0, max_seconds=0.0)).status is Status.MAX_SECONDS
    stopped = active_set_newton(problem, Settings(callbacks=(interrupt,)))
    assert stopped.status is Status.INTERRUPTED
    assert certify(problem, stopped.w, stopped.beta).gap >= 0.0


@pytest.mark.parametrize("solver", ["dcd", "avsf", "climb", "ocas", "svmperf"])
def test_the_solution_of_every_solver_is_refined_to_full_precision(solver, clouds):
    X, sign, cost = clouds
    problem = classification.squared_hinge(Matrix(X, constant=1.0), sign, cost)
    assert is_small(problem)
    settings = Settings(tol=1e-2)
    solution = finished(problem, LINEAR_SOLVERS[solver](problem, settings), settings)
    np.testing.assert_allclose(solution.w, active_set_newton(problem, settings).w, rtol=1e-9)


def test_losses_that_are_no_hinges_are_refused_by_cutting_planes(clouds):
    X, sign, cost = clouds
    for solver in ("ocas", "svmperf"):
        with pytest.raises(ValueError, match="takes losses that are hinges or their squares"):
            LINEAR_SOLVERS[solver](huber(Matrix(X), sign, cost), Settings())


@pytest.mark.parametrize("solver", ["auto", "newton", "dcd", "avsf", "climb"])
def test_hubers_loss_is_solved_by_all_other_solvers(solver, clouds):
    X, sign, cost = clouds
    problem = huber(Matrix(X, constant=1.0), 3.0 * sign, cost)
    solution = LINEAR_SOLVERS[solver](problem, Settings(tol=1e-8, max_iter=None))
    assert certify(problem, solution.w, solution.beta).gap <= 1e-8


def test_hubers_loss_may_have_a_free_intercept(clouds):
    X, sign, cost = clouds
    rows = huber(Matrix(X), 3.0 * sign + 1.0, cost)
    settings = Settings(tol=1e-8)
    solution = finished(
        replace(rows, free_intercept=True), auto(replace(rows, free_intercept=True), settings), settings
    )
    assert solution.status is Status.CONVERGED
    here = losses(rows, X @ solution.w + solution.intercept).sum()
    for change in (-1e-3, 1e-3):
        assert here <= losses(rows, X @ solution.w + solution.intercept + change).sum()


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_a_free_intercept_does_not_depend_on_the_order_of_rows(loss, rng):
    X = rng.standard_normal((100, 3)) + 0.5
    y = np.arange(100) % 2
    order = rng.permutation(100)
    found = []
    for rows in (np.arange(100), order, np.arange(100)[::-1]):
        model = LinearSVC(loss=loss, C=1e-4, penalize_intercept=False).fit(X[rows], y[rows])
        found.append(np.append(model.coef_, model.intercept_))
    np.testing.assert_allclose(found[1:], [found[0]] * 2, rtol=1e-9)


def test_an_intercept_that_is_not_unique_is_the_midpoint():
    X, y = np.array([[-1.0], [1.0]]), np.array([0, 1])
    model = LinearSVC(loss="hinge", C=0.1, penalize_intercept=False).fit(X, y)
    np.testing.assert_allclose([model.coef_[0, 0], model.intercept_[0]], [0.2, 0.0], atol=1e-12)


@pytest.mark.parametrize("loss", ["epsilon_insensitive", "squared_epsilon_insensitive"])
@pytest.mark.parametrize("solver", sorted(LINEAR_SOLVERS))
def test_targets_of_zero_have_the_zero_solution(solver, loss, rng):
    X = rng.standard_normal((50, 4))
    model = LinearSVR(loss=loss, solver=solver).fit(X, np.zeros(50))
    assert model.status_ == "converged"
    assert (model.gap_, model.objective_) == (0.0, 0.0)
    assert not model.coef_.any()


_PLAIN = """
import numpy as np
from widemargin.data.matrix import Matrix
from widemargin.problems import classification, regression
from widemargin.solvers.contract import Settings
from widemargin.solvers.newton.active_set import active_set_newton
rng = np.random.default_rng(0)
X = rng.standard_normal((30, 3))
sign = np.where(X[:, 0] + rng.standard_normal(30) > 0, 1.0, -1.0)
for loss in (classification.hinge, classification.squared_hinge):
    for problem in (loss(Matrix(X, 1.0), sign, np.ones(30)), loss(Matrix(X), sign, np.ones(30), free_intercept=True)):
        solution = active_set_newton(problem, Settings())
        print([*solution.w.tolist(), solution.intercept])
"""


def test_plain_bodies_give_the_same_answer():
    results = []
    for disabled in ("0", "1"):
        command = [sys.executable, "-W", "error", "-c", _PLAIN]
        environment = os.environ | {"NUMBA_DISABLE_JIT": disabled}
        printed = subprocess.run(command, env=environment, capture_output=True, text=True)
        assert printed.returncode == 0, printed.stderr
        results.append(np.concatenate([eval(line) for line in printed.stdout.splitlines()]))
    np.testing.assert_allclose(*results, rtol=1e-9, atol=1e-12)


def test_solve_exactly_needs_no_dual_variables_to_start_from(clouds):
    X, sign, cost = clouds
    problem = classification.hinge(Matrix(X), sign, cost)
    found = solve_exactly(problem, np.zeros(6))
    assert violations(problem, found.w, found.beta).max() <= 1e-11


def test_ctrl_c_before_the_first_point_returns_zero(monkeypatch, clouds):
    """The dense copy of the rows is made first, which takes a while."""
    X, sign, cost = clouds
    problem = classification.hinge(Matrix(X), sign, cost)

    def interrupted(X):
        raise KeyboardInterrupt

    monkeypatch.setattr(Matrix, "as_array", property(interrupted))
    settings = Settings()
    found = active_set_newton(problem, settings)
    assert found.status is Status.INTERRUPTED
    assert settings.interrupt.is_set()
    assert not found.w.any()
    assert found.primal == pytest.approx(certify(problem, found.w, found.beta).primal)
    assert found.dual == 0.0
    assert len(found.history) == 1


@EACH_LOSS
@pytest.mark.parametrize("free_intercept", [False, True])
def test_outer_iterations_in_one_call_are_those_of_single_calls(loss, free_intercept):
    X, sign, cost = defective(3, 60, 4, ["collinear", "repeated"], 1.0)
    problem = replace(loss(Matrix(X), sign, cost + 0.1), free_intercept=free_intercept)
    iterations = []
    single = active_set_newton(problem, Settings(tol=1e-6, callbacks=(lambda p: iterations.append(p.iteration),)))
    together = active_set_newton(problem, Settings(tol=1e-6))
    assert np.array_equal(single.w, together.w)
    assert np.array_equal(single.beta, together.beta)
    assert (single.n_iter, single.status, single.primal) == (together.n_iter, together.status, together.primal)
    assert len(together.history) <= len(single.history) == len(iterations) + 1


@pytest.mark.parametrize("max_iter", [1, 2, 3, 5, 8])
def test_no_more_steps_than_max_iter_in_one_call(max_iter):
    X, sign, cost = defective(3, 60, 4, [], 1.0)
    solution = active_set_newton(classification.hinge(Matrix(X), sign, cost + 0.1), Settings(max_iter=max_iter))
    assert solution.n_iter == max_iter
    assert len(solution.history) == 2
