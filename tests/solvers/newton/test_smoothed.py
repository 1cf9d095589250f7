"""newton on smoothed losses: certificates, agreement with other solvers, degenerate matrices, and invariances."""

import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from widemargin.data.gram import gram
from widemargin.data.matrix import Matrix
from widemargin.problems import classification, regression
from widemargin.problems.certificates import certify
from widemargin.problems.row_risk import FreeInterceptRisk, RowRisk
from widemargin.solvers.contract import Settings, Status
from widemargin.solvers.newton import iterate
from widemargin.solvers.newton import smoothed as module
from widemargin.solvers.newton.smoothed import newton, newton_together
from widemargin.solvers.registry import LINEAR_SOLVERS

LOSSES = {
    "hinge": classification.hinge,
    "squared_hinge": classification.squared_hinge,
    "absolute": lambda X, y, cost: regression.epsilon_insensitive(X, y, cost, 0.0),
    "tube": lambda X, y, cost: regression.epsilon_insensitive(X, y, cost, 0.1),
    "squared_tube": lambda X, y, cost: regression.squared_epsilon_insensitive(X, y, cost, 0.1),
}
EACH_LOSS = pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES.keys())
CONTAINERS = {
    "dense": np.asarray,
    "csr": csr_array,
    "dense-f32": lambda X: X.astype(np.float32),
    "csr-f32": lambda X: csr_array(X.astype(np.float32)),
}
EACH_CONTAINER = pytest.mark.parametrize("container", CONTAINERS.values(), ids=CONTAINERS.keys())


@pytest.fixture(autouse=True, scope="module")
def _smoothed_steps_only():
    """Solve problems of all sizes with smoothed losses; the active-set method is tested in test_active_set.py."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "takes_active_set", lambda problem: False)
        patch.setattr(module, "can_be_dense", lambda X: False)
        yield


@EACH_LOSS
@EACH_CONTAINER
def test_the_certificate_of_every_step_is_confirmed(container, loss, clouds):
    X, sign, cost = clouds
    problem = loss(Matrix(container(X), constant=1.0), sign, 10 * cost)
    whole = newton(problem, Settings(tol=1e-9))
    assert whole.status is Status.CONVERGED
    assert whole.n_iter >= 2
    for n_steps in range(1, whole.n_iter + 1):
        solution = newton(problem, Settings(tol=1e-9, max_iter=n_steps))
        certificate = certify(problem, solution.w, solution.beta)
        assert certificate.primal == pytest.approx(solution.primal, rel=1e-10)
        assert solution.dual <= certificate.dual * (1 + 1e-10) + 1e-10
        assert solution.history["primal"][-1] == whole.history["primal"][n_steps]


def degenerate(case):
    """Return X, targets and costs with the defects of a case: collinear, constant, zero and repeated columns."""
    rng = np.random.default_rng(case["seed"])
    X = rng.standard_normal((case["n"], case["d"])) * rng.choice([0.0, 1.0], (case["n"], case["d"]), p=[0.3, 0.7])
    target = rng.standard_normal(case["n"])
    if "separable" in case["defects"]:
        X[:, 0] = 3.0 * target
    if "collinear" in case["defects"]:
        X = np.column_stack([X, X @ rng.standard_normal(case["d"])])
    if "constant" in case["defects"]:
        X = np.column_stack([X, np.full(case["n"], 2.0)])
    if "zero" in case["defects"]:
        X = np.column_stack([X, np.zeros(case["n"])])
    if "repeated" in case["defects"]:
        X = np.column_stack([X, X[:, :1]])
    return X, target, case["C"] * rng.uniform(0.0, 2.0, case["n"])


CASES = st.fixed_dictionaries(
    {
        "seed": st.integers(0, 2**32 - 1),
        "n": st.integers(1, 30),
        "d": st.integers(1, 8),
        "C": st.sampled_from([1e-3, 0.1, 1.0, 30.0, 1000.0]),
        "loss": st.sampled_from(sorted(LOSSES)),
        "defects": st.sets(st.sampled_from(["separable", "collinear", "constant", "zero", "repeated"])),
        "constant": st.sampled_from([0.0, 1.0, 10.0]),
        "sparse": st.booleans(),
    }
)


def problem_of(case):
    X, target, cost = degenerate(case)
    matrix = Matrix(csr_array(X) if case["sparse"] else X, case["constant"])
    return LOSSES[case["loss"]](matrix, np.where(target > 0, 1.0, -1.0) if "hinge" in case["loss"] else target, cost)


@given(CASES)
@hypothesis_settings(max_examples=150)
def test_the_objective_is_that_of_coordinate_descent(case):
    problem = problem_of(case)
    solution = newton(problem, Settings(tol=1e-8, max_iter=3000))
    assert solution.gap <= 1e-8
    expected = LINEAR_SOLVERS["dcd"](problem, Settings(tol=1e-8, max_iter=300_000))
    assert solution.primal == pytest.approx(expected.primal, rel=2e-8 + max(0.0, expected.gap), abs=1e-12)
    assert certify(problem, solution.w, solution.beta).gap <= 1e-8 * (1 + 1e-6) + 1e-14


@given(CASES)
@hypothesis_settings(max_examples=80)
def test_a_free_intercept_is_that_of_cutting_planes(case):
    problem = problem_of(case | {"constant": 0.0})
    solution = newton(replace(problem, free_intercept=True), Settings(tol=1e-6, max_iter=3000))
    # Rounding sometimes makes the steps stall; without the patches above, the active-set method would continue.
    tol = 1e-2 if solution.status is Status.STALLED else 1e-6
    assert solution.primal - solution.dual <= tol * solution.primal + 1e-12
    assert abs(solution.beta.sum()) <= 1e-9 * max(1e-300, np.abs(solution.beta).sum()) + 1e-12
    risk = FreeInterceptRisk(RowRisk(problem))
    exact = 0.5 * solution.w @ solution.w + risk.value(problem.X.scores(solution.w))
    assert exact <= solution.primal * (1 + 1e-9) + 1e-12
    expected = LINEAR_SOLVERS["ocas"](replace(problem, free_intercept=True), Settings(tol=1e-6, max_iter=20_000))
    assert solution.dual <= expected.primal * (1 + 1e-9) + 1e-12
    assert expected.dual <= solution.primal * (1 + 1e-9) + 1e-12


def many_rows(rng, n=40_000, d=6):
    X = rng.standard_normal((n, d))
    sign = np.sign(X @ rng.standard_normal(d) + rng.standard_normal(n))
    return X, sign


@EACH_LOSS
def test_many_rows_start_from_the_solution_of_a_sample(loss, rng):
    X, sign = many_rows(rng)
    problem = loss(Matrix(X), sign, np.full(len(sign), 3.0))
    solution = newton(problem, Settings(tol=1e-6))
    assert solution.status is Status.CONVERGED
    assert certify(problem, solution.w, solution.beta).gap <= 1e-6
    assert solution.history["passes"][0] < 3.0
    assert solution.history["primal"][0] < 1.1 * solution.primal  # at zero it is much larger


def test_half_of_duplicated_rows_has_the_solution_of_all(clouds):
    X, sign, cost = clouds
    problem = classification.hinge(Matrix(X), sign, cost)
    twice = classification.hinge(Matrix(np.vstack([X, X])), np.tile(sign, 2), np.tile(cost, 2))
    part = twice.of_rows(np.arange(len(sign)), Matrix(X))
    expected = LINEAR_SOLVERS["dcd"](
        classification.hinge(Matrix(X), sign, 2 * cost), Settings(tol=1e-10, max_iter=None)
    )
    assert newton(part, Settings(tol=1e-9)).primal == pytest.approx(expected.primal, rel=1e-8)
    assert newton(twice, Settings(tol=1e-9)).primal == pytest.approx(expected.primal, rel=1e-8)
    assert problem.X.n_rows == part.X.n_rows


@EACH_LOSS
def test_a_warm_start_takes_no_more_steps(loss, clouds):
    X, sign, cost = clouds
    problem, settings = loss(Matrix(X), sign, cost), Settings(tol=1e-5)
    cold = newton(problem, settings)
    near = newton(loss(Matrix(X), sign, 0.9 * cost), settings)
    warm = newton(problem, settings, near.w)
    assert warm.gap <= 1e-5
    assert warm.n_iter <= cold.n_iter
    again = newton(problem, Settings(tol=1e-5, max_iter=1), cold.w)
    assert again.primal <= cold.primal * (1 + 1e-14)


def test_the_number_of_steps_does_not_grow_with_the_cost(rng):
    X, sign = many_rows(rng)
    steps = [
        newton(classification.hinge(Matrix(X), sign, np.full(len(sign), C)), Settings(tol=1e-3)).n_iter
        for C in (0.01, 1.0, 1e3, 1e5)
    ]
    assert max(steps) <= 15


def test_the_solution_does_not_depend_on_the_number_of_threads(rng):
    X, sign = many_rows(rng, n=300_000)
    for container in (np.asarray, csr_array):
        problem = classification.hinge(Matrix(container(X)), sign, np.full(len(sign), 3.0))
        one, two = (newton(problem, Settings(tol=1e-4, n_jobs=n_jobs)) for n_jobs in (1, 2))
        np.testing.assert_array_equal(one.w, two.w)
        assert one.n_iter == two.n_iter


def test_problems_solved_together_have_the_solutions_of_each_alone(rng, clouds):
    X, _, cost = clouds
    matrix, labels = Matrix(X, constant=1.0), rng.integers(0, 4, len(X))
    problems = [classification.hinge(matrix, np.where(labels == k, 1.0, -1.0), cost) for k in range(4)]
    settings = [Settings(tol=1e-7, task=k, n_tasks=4) for k in range(4)]
    for solution, problem in zip(newton_together(problems, settings, [None] * 4), problems, strict=True):
        alone = newton(problem, Settings(tol=1e-7))
        assert solution.status is Status.CONVERGED
        assert solution.n_iter == alone.n_iter
        np.testing.assert_allclose(solution.w, alone.w, rtol=1e-9, atol=1e-12)


def test_callbacks_are_called_at_every_step_and_can_stop(clouds):
    X, sign, cost = clouds
    problem, reports = classification.hinge(Matrix(X), sign, cost), []
    solution = newton(problem, Settings(tol=1e-12, callbacks=(lambda p: reports.append(p) or p.iteration == 3,)))
    assert solution.status is Status.CALLBACK
    assert [p.iteration for p in reports] == [0, 1, 2, 3]
    assert all(p.solver == "newton" and p.dual <= p.primal for p in reports)
    assert len(solution.history) == 4


def test_limits_stop(clouds):
    X, sign, cost = clouds
    problem = classification.hinge(Matrix(X), sign, cost)
    assert newton(problem, Settings(tol=0.0, max_iter=2)).status is Status.MAX_ITER
    assert newton(problem, Settings(tol=0.0, max_seconds=0.0)).status is Status.MAX_SECONDS
    settings = Settings(tol=1e-8)
    settings.interrupt.set()
    assert newton(problem, settings).status is Status.INTERRUPTED


def test_ctrl_c_keeps_the_best_point(clouds):
    X, sign, cost = clouds
    problem = classification.hinge(Matrix(X), sign, cost)

    def interrupt(progress):
        if progress.iteration == 2:
            raise KeyboardInterrupt

    solution = newton(problem, Settings(tol=1e-9, callbacks=(interrupt,)))
    assert solution.status is Status.INTERRUPTED
    assert certify(problem, solution.w, solution.beta).gap == pytest.approx(solution.gap, rel=1e-6)


def test_a_tolerance_of_zero_ends_at_the_limit_of_double_precision(clouds):
    X, sign, cost = clouds
    solution = newton(classification.hinge(Matrix(X), sign, cost), Settings(tol=0.0, max_iter=5000))
    assert solution.status in (Status.STALLED, Status.CONVERGED)
    assert solution.gap < 1e-11


@pytest.mark.parametrize("density", [0.1, 0.6, 1.0])
@pytest.mark.parametrize("container", [np.asarray, csr_array], ids=["dense", "csr"])
@pytest.mark.parametrize("constant", [0.0, 2.0])
def test_gram_is_that_of_numpy(constant, container, density, rng):
    X = rng.standard_normal((3000, 30)) * (rng.random((3000, 30)) < density)
    q = rng.random(3000) * (rng.random(3000) < 0.3)
    found = gram(Matrix(container(X), constant), q, n_jobs=2)
    full = np.column_stack([X, np.full(3000, constant)]) if constant else X
    np.testing.assert_allclose(np.tril(found), np.tril(full.T @ (q[:, None] * full)), rtol=1e-10, atol=1e-10)


def test_gradient_steps_replace_newton_steps_if_the_factorisation_fails(clouds, monkeypatch):
    X, sign, cost = clouds
    monkeypatch.setattr(iterate, "dposv", lambda H, g, **options: (H, g, 1))
    problem = classification.squared_hinge(Matrix(X), sign, 1e-3 * cost)
    solution = newton(problem, Settings(tol=1e-6, max_iter=2000))
    assert certify(problem, solution.w, solution.beta).gap <= 1e-6


_PLAIN = """
import numpy as np
from widemargin.data.matrix import Matrix
from widemargin.problems import classification
from widemargin.solvers.contract import Settings
from widemargin.solvers.newton import smoothed
smoothed.takes_active_set, smoothed.can_be_dense = (lambda problem: False), (lambda X: False)
rng = np.random.default_rng(0)
X = rng.standard_normal((60, 3)) * (rng.random((60, 3)) < 0.7)
sign = np.where(X[:, 0] + rng.standard_normal(60) > 0, 1.0, -1.0)
from scipy.sparse import csr_array
for matrix in (Matrix(X, constant=1.0), Matrix(csr_array(X))):
    for loss in classification.LOSSES.values():
        print(smoothed.newton(loss(matrix, sign, np.ones(60)), Settings(tol=1e-9)).w.tolist())
"""


def test_plain_bodies_give_the_same_answer():
    results = []
    for disabled in ("0", "1"):
        environment = os.environ | {"NUMBA_DISABLE_JIT": disabled}
        printed = subprocess.run([sys.executable, "-c", _PLAIN], env=environment, capture_output=True, text=True)
        assert printed.returncode == 0, printed.stderr
        results.append([eval(line) for line in printed.stdout.splitlines()])
    np.testing.assert_allclose(np.concatenate(results[0]), np.concatenate(results[1]), rtol=1e-6, atol=1e-9)


def test_settings_are_not_changed(clouds):
    X, sign, cost = clouds
    settings = Settings(tol=1e-3, max_iter=50, max_seconds=100.0)
    before = vars(settings).copy()
    newton(classification.hinge(Matrix(X), sign, cost), settings)
    assert vars(settings) == before
    assert not settings.interrupt.is_set()
