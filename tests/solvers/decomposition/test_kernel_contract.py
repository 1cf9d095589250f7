"""What svmlight and smo guarantee: limits, callbacks, Ctrl-C, threads, and the same solutions uncompiled."""

import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.metrics.pairwise import rbf_kernel

from widemargin.kernels.functions import Kernel
from widemargin.kernels.rows import KernelRows
from widemargin.problems.certificates import certify_kernel, kernel_violation
from widemargin.problems.classification import c_svc, nu_svc
from widemargin.problems.one_class import one_class
from widemargin.problems.regression import eps_svr, nu_svr
from widemargin.solvers.contract import KernelSettings, Status
from widemargin.solvers.decomposition import active_set
from widemargin.solvers.registry import KERNEL_SOLVERS

NAMES = ["svmlight", "smo"]
EACH_SOLVER = pytest.mark.parametrize("solve", [KERNEL_SOLVERS[name] for name in NAMES], ids=NAMES)
RBF = Kernel("rbf", gamma=0.4)
FORMULATIONS = {
    "c_svc": lambda K, X, sign, cost: c_svc(K, sign, cost),
    "nu_svc": lambda K, X, sign, cost: nu_svc(K, sign, cost, 0.5),
    "one_class": lambda K, X, sign, cost: one_class(K, cost, 0.5),
    "eps_svr": lambda K, X, sign, cost: eps_svr(K, np.sin(2 * X[:, 0]) + 0.1 * sign, cost, 0.1),
    "nu_svr": lambda K, X, sign, cost: nu_svr(K, np.sin(2 * X[:, 0]) + 0.1 * sign, cost, 0.5),
}


def make(rng, n_rows):
    """Return rows, signs of overlapping classes, and costs."""
    X = rng.standard_normal((n_rows, 4))
    sign = np.where(X[:, 0] + X[:, 1] + 0.5 * rng.standard_normal(n_rows) > 0, 1.0, -1.0)
    return X, sign, 10 * rng.uniform(0.3, 2.0, n_rows)


def check_certificate(problem, K, solution):
    """Check by NumPy alone that the solution is feasible, and its objectives and violation are true."""
    certificate = certify_kernel(problem, K, solution.beta, solution.offsets)
    size = max(1.0, abs(certificate.primal), abs(certificate.dual))
    np.testing.assert_allclose([solution.primal, solution.dual], certificate, rtol=1e-9, atol=1e-9 * size)
    assert certificate.primal - certificate.dual >= -1e-12 * size
    assert solution.violation == pytest.approx(kernel_violation(problem, K, solution.beta), rel=1e-6, abs=1e-9)


@EACH_SOLVER
class TestContract:
    """What every solver guarantees to its caller, at whatever point it stops."""

    @pytest.fixture(autouse=True)
    def prepare(self):
        # New settings for each test, since an interrupted run sets their event.
        self.settings = KernelSettings(tol=1e-9, working_set=16)

    @pytest.fixture(params=FORMULATIONS)
    def problem(self, request, rng):
        self.X, *rest = make(rng, 100)
        return FORMULATIONS[request.param](KernelRows(RBF, self.X, dtype=np.float64), self.X, *rest)

    @pytest.fixture
    def check(self, problem):
        """Return a function that checks the solution of a run that ended for any reason."""

        def check(solution, status):
            assert solution.status is status
            check_certificate(problem, rbf_kernel(self.X, gamma=0.4), solution)
            last = solution.history[-1]
            assert last["iteration"] == solution.n_iter
            assert (last["primal"], last["dual"]) == pytest.approx((solution.primal, solution.dual), rel=1e-12)

        return check

    def test_max_iter_ends_the_run_and_says_so(self, solve, problem, check):
        solution = solve(problem, replace(self.settings, max_iter=3))
        check(solution, Status.MAX_ITER)
        assert solution.n_iter == 3

    def test_more_iterations_give_a_larger_dual(self, solve, problem):
        duals = [solve(problem, replace(self.settings, max_iter=k)).dual for k in (1, 4, 16, 64)]
        assert (np.diff(duals) > 0).all()

    def test_max_seconds_ends_the_run_and_says_so(self, solve, problem, check):
        solution = solve(problem, replace(self.settings, max_seconds=0.0))
        check(solution, Status.MAX_SECONDS)
        assert solution.n_iter <= 100

    def test_a_callback_receives_progress_and_can_stop(self, solve, problem, check):
        received = []

        def callback(progress):
            received.append(progress)
            return len(received) == 2

        solution = solve(problem, replace(self.settings, callbacks=(callback,)))
        check(solution, Status.CALLBACK)
        assert len(received) == 2
        assert received[0].iteration < received[1].iteration == solution.n_iter
        assert (received[0].solver, received[0].tol) == (solution.solver, 1e-9)

    def test_ctrl_c_keeps_the_model_so_far(self, solve, problem, check):
        iterations = []

        def interrupt(progress):
            iterations.append(progress.iteration)
            if len(iterations) == 2:
                raise KeyboardInterrupt

        solution = solve(problem, replace(self.settings, callbacks=(interrupt,)))
        check(solution, Status.INTERRUPTED)
        assert solution.n_iter == iterations[-1]

    def test_an_interrupt_elsewhere_stops_this_run_too(self, solve, problem, check):
        self.settings.interrupt.set()
        check(solve(problem, self.settings), Status.INTERRUPTED)

    def test_an_error_in_a_callback_reaches_the_caller(self, solve, problem):
        def fail(progress):
            raise RuntimeError("no more")

        with pytest.raises(RuntimeError, match="no more"):
            solve(problem, replace(self.settings, callbacks=(fail,)))

    def test_a_tolerance_of_zero_ends_when_nothing_can_move(self, solve, problem, check):
        most = {KERNEL_SOLVERS["svmlight"]: 20_000, KERNEL_SOLVERS["smo"]: 2_000_000}[solve]
        solution = solve(problem, replace(self.settings, tol=0.0, max_iter=most))
        assert solution.status in (Status.STALLED, Status.CONVERGED)
        check(solution, solution.status)
        assert solution.violation <= 1e-12 * np.abs(problem.upper - problem.lower).sum()

    def test_every_entry_of_the_history_is_a_valid_bound(self, solve, problem):
        shrunk, solution = (solve(problem, replace(self.settings, shrinking=choice)) for choice in (True, False))
        assert len(solution.history) > 2
        history, size = np.concatenate([shrunk.history, solution.history]), abs(solution.dual)
        assert (history["dual"] <= solution.dual + 1e-9 * size).all()
        assert (history["primal"] >= solution.dual - 1e-9 * size).all()
        assert (np.diff(solution.history["dual"]) >= -1e-9 * size).all()
        assert (np.diff(solution.history["iteration"]) >= 0).all()


@EACH_SOLVER
@pytest.mark.parametrize("seed", range(3))
def test_the_history_is_true_if_only_one_of_two_dual_variables_of_a_row_is_active(seed, solve):
    rng = np.random.default_rng(seed)
    X, _, cost = make(rng, 60)
    y = np.sin(2 * X[:, 0]) + 0.3 * X[:, 1] + 0.1 * rng.standard_normal(60)
    problem = nu_svr(KernelRows(RBF, X, dtype=np.float64), y, 5 * cost, 0.9)
    solution = solve(problem, KernelSettings(tol=1e-5, working_set=8))
    assert (solution.history["dual"] <= solution.primal).all()
    assert (solution.history["primal"] >= solution.dual).all()


@EACH_SOLVER
@pytest.mark.parametrize("formulation", FORMULATIONS)
def test_ctrl_c_within_any_kernel_computation_leaves_a_true_certificate(formulation, solve, rng):
    X, sign, cost = make(rng, 50)
    calls, at, statuses = [0], [0], set()

    def function(A, B):
        calls[0] += 1
        if calls[0] == at[0]:
            raise KeyboardInterrupt
        return rbf_kernel(A, B, gamma=0.4)

    K = KernelRows(Kernel("callable", function=function), X, dtype=np.float64)
    problem = FORMULATIONS[formulation](K, X, sign, cost)
    # The first call computes the diagonal; the cache is small, so that there are many calls.
    for at[0] in (2, 3, 5, 8, 13, 21, 34, 55, 89):
        calls[0] = 0
        solution = solve(problem, KernelSettings(tol=1e-8, working_set=4, cache_size=0.0))
        check_certificate(problem, rbf_kernel(X, gamma=0.4), solution)
        statuses.add(solution.status)
    assert Status.INTERRUPTED in statuses


@EACH_SOLVER
@pytest.mark.parametrize("formulation", FORMULATIONS)
@pytest.mark.parametrize("n_iterations", [1, 2, 5])
def test_ctrl_c_between_a_step_and_its_sums_leaves_a_true_certificate(
    n_iterations, formulation, solve, rng, monkeypatch
):
    X, sign, cost = make(rng, 50)
    problem = FORMULATIONS[formulation](KernelRows(RBF, X, dtype=np.float64), X, sign, cost)
    add, events = active_set.add_rows, []

    def interrupted(*arguments):
        if len(events) == n_iterations:
            events.append("interrupt")
            raise KeyboardInterrupt
        return add(*arguments)

    monkeypatch.setattr(active_set, "add_rows", interrupted)
    settings = KernelSettings(tol=1e-8, working_set=4, callbacks=(lambda progress: events.append("iteration"),))
    solution = solve(problem, settings)
    check_certificate(problem, rbf_kernel(X, gamma=0.4), solution)
    # smo computes such sums only when it unshrinks, which may not happen in that iteration.
    assert solution.status is Status.INTERRUPTED or solution.solver == "smo"


@EACH_SOLVER
@pytest.mark.parametrize("container", [np.asarray, csr_array], ids=["dense", "csr"])
@pytest.mark.parametrize("formulation", ["c_svc", "nu_svr"])
def test_the_number_of_threads_changes_no_bit(formulation, container, solve, rng):
    X, sign, cost = make(rng, 9000)
    if container is csr_array:
        X = np.hstack([X, np.zeros((9000, 35))])
    solutions = []
    for n_jobs in (1, 2):
        K = KernelRows(RBF, container(X), n_jobs=n_jobs)
        problem = c_svc(K, sign, cost) if formulation == "c_svc" else nu_svr(K, X[:, 0] + 0.1 * sign, cost, 0.02)
        solutions.append(solve(problem, KernelSettings(max_iter=3, n_jobs=n_jobs)))
    one, two = solutions
    assert one.beta.any()
    assert one.beta.tobytes() == two.beta.tobytes()
    assert one.history["primal"].tobytes() == two.history["primal"].tobytes()


def test_uncompiled_code_gives_the_same_solutions():
    script = """
import numpy as np
from widemargin.kernels.functions import Kernel
from widemargin.kernels.rows import KernelRows
from widemargin.problems.classification import c_svc, nu_svc
from widemargin.problems.regression import eps_svr
from widemargin.solvers.contract import KernelSettings
from widemargin.solvers.registry import KERNEL_SOLVERS
rng = np.random.default_rng(0)
X = rng.standard_normal((10, 3))
sign, ones = np.where(np.arange(10) % 2, 1.0, -1.0), np.ones(10)
sparse = np.hstack([X, np.zeros((10, 25))])
cases = [
    (Kernel("rbf", gamma=0.5), X), (Kernel("rbf", gamma=0.5), sparse),
    (Kernel("poly", degree=3, coef0=1.0), sparse), (Kernel("sigmoid", gamma=0.1), X),
]
for kernel, rows in cases:
    K = KernelRows(kernel, rows, dtype=np.float64)
    for problem in (c_svc(K, sign, ones), nu_svc(K, sign, ones, 0.4), eps_svr(K, X[:, 0], ones, 0.1)):
        for solver in ("svmlight", "smo"):
            settings = KernelSettings(tol=1e-7, working_set=4, cache_size=0.0, max_iter=2000)
            solution = KERNEL_SOLVERS[solver](problem, settings)
            print(solution.status.name, *np.round([solution.primal, solution.dual], 5) + 0.0)
"""
    printed = [
        subprocess.run(
            [sys.executable, "-W", "error", "-c", script],
            env={**os.environ, "NUMBA_DISABLE_JIT": flag},
            capture_output=True,
            text=True,
            check=True,
            timeout=300,
        ).stdout
        for flag in ("0", "1")
    ]
    assert printed[0] == printed[1]
    assert printed[0].count("\n") == 24
    assert "MAX_ITER" not in printed[0]
