"""Large problems, solved in parts: judged by certificate, and by the method that solves them as a whole."""

import re
import threading
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.metrics.pairwise import rbf_kernel
from tests.solvers.decomposition.test_kernel_contract import FORMULATIONS, check_certificate, make

from widemargin import SVC, SVR, ConvergenceWarning, OneClassSVM
from widemargin._runtime.progress import describe
from widemargin.errors import FormatError
from widemargin.kernels.functions import Kernel
from widemargin.kernels.rows import KernelRows
from widemargin.models.kernel import base
from widemargin.problems.classification import c_svc
from widemargin.solvers import checkpoint
from widemargin.solvers.contract import KernelSettings, Status
from widemargin.solvers.decomposition import large_parts, whole_matrix
from widemargin.solvers.decomposition.active_set import ActiveSet
from widemargin.solvers.registry import KERNEL_SOLVERS

RBF = Kernel("rbf", gamma=0.4)
svmlight = KERNEL_SOLVERS["svmlight"]


@pytest.fixture(autouse=True)
def small_parts(monkeypatch):
    """Solve problems of 300 rows in parts of 100 dual variables."""
    monkeypatch.setattr(whole_matrix, "is_small", lambda problem, settings: False)
    monkeypatch.setattr(large_parts, "_MIN_ROWS", 300)
    monkeypatch.setattr(large_parts, "_MIN_ROWS_WITHOUT_REASON", 300)
    monkeypatch.setattr(large_parts, "_PART", 100)
    monkeypatch.setattr(large_parts, "_LARGEST_FIRST_PART", 100)
    monkeypatch.setattr(checkpoint, "_LEAST_SECONDS_BETWEEN", 0.0)
    monkeypatch.setattr(checkpoint, "_TIMES_THE_WRITING", 0.0)


@pytest.fixture
def whole(monkeypatch):
    """Return a function that solves a problem as a whole."""

    def solve(problem, settings):
        with monkeypatch.context() as patch:
            patch.setattr(large_parts, "_MIN_ROWS", np.inf)
            return svmlight(problem, settings)

    return solve


@pytest.fixture
def parts(monkeypatch):
    """The sizes of the parts that are solved."""
    sizes = []
    solve_part = large_parts.LargeParts._solve_part

    def record(method, chosen):
        sizes.append(len(chosen))
        return solve_part(method, chosen)

    monkeypatch.setattr(large_parts.LargeParts, "_solve_part", record)
    return sizes


def stated(formulation, rng, n_rows=700, **options):
    X, sign, cost = make(rng, n_rows)
    K = KernelRows(RBF, X, dtype=np.float64, **options)
    return FORMULATIONS[formulation](K, X, sign, cost), rbf_kernel(X, gamma=0.4)


@pytest.mark.parametrize(
    ("n_rows", "n_features", "checkpoint", "expected"),
    [
        (299, 2, None, False),
        (299, 2, "file", False),
        (300, 2, None, True),
        (300, 40, None, False),
        (300, 40, "file", True),
        (599, 40, None, False),
        (600, 40, None, True),
    ],
)
def test_parts_are_for_many_rows_or_very_cheap_ones_or_a_checkpoint(
    n_rows, n_features, checkpoint, expected, rng, monkeypatch
):
    monkeypatch.setattr(large_parts, "_MIN_ROWS_WITHOUT_REASON", 600)
    problem = SimpleNamespace(K=KernelRows(RBF, rng.standard_normal((n_rows, n_features))))
    assert large_parts.takes_large_parts(problem, checkpoint) == expected


@pytest.mark.parametrize("formulation", FORMULATIONS)
@pytest.mark.parametrize("stopping", ["kkt", "gap"])
def test_the_judge_confirms_the_certificate(formulation, stopping, rng, parts, whole):
    problem, K = stated(formulation, rng)
    settings = KernelSettings(tol=1e-6, stopping=stopping)
    solution = svmlight(problem, settings)
    assert len(parts) > 3
    assert solution.n_iter == len(parts)
    assert solution.status is Status.CONVERGED
    check_certificate(problem, K, solution)
    assert (solution.violation if stopping == "kkt" else solution.gap) <= 1e-6
    assert solution.dual == pytest.approx(whole(problem, settings).dual, rel=1e-5)


@pytest.mark.parametrize("option", [{"shrinking": False}, {"working_set": 20}, {"cache_size": 1e-3}])
def test_settings_of_the_solver_change_no_solution(option, rng):
    problem, K = stated("c_svc", rng)
    solution = svmlight(problem, KernelSettings(tol=1e-6, **option))
    assert solution.status is Status.CONVERGED
    check_certificate(problem, K, solution)


def test_parts_become_larger_if_they_have_no_room_for_the_violators(rng, parts):
    X = rng.standard_normal((600, 20))  # no structure, and a large C: most dual variables are free
    problem = c_svc(KernelRows(Kernel("rbf", gamma=0.02), X, dtype=np.float64), np.sign(X[:, 0]), np.full(600, 1e4))
    solution = svmlight(problem, KernelSettings(tol=1e-6))
    assert solution.status is Status.CONVERGED
    assert max(parts) > 100


@pytest.mark.parametrize("storage", [np.asarray, csr_array], ids=["dense", "csr"])
@pytest.mark.parametrize("formulation", ["c_svc", "eps_svr"])
def test_the_number_of_threads_changes_no_bit(formulation, storage, rng):
    X, sign, cost = make(rng, 900)
    X[np.abs(X) < 1.5] = 0.0
    bits = []
    for n_jobs in (1, 2, 3):
        K = KernelRows(RBF, storage(X), dtype=np.float32, n_jobs=n_jobs)
        solution = svmlight(FORMULATIONS[formulation](K, X, sign, cost), KernelSettings(tol=1e-4, n_jobs=n_jobs))
        bits.append((solution.beta.tobytes(), solution.offsets.tobytes(), solution.primal, solution.dual))
    assert bits[0] == bits[1] == bits[2]


@pytest.mark.parametrize("formulation", FORMULATIONS)
@pytest.mark.parametrize("n_iterations", [0, 1, 3, 8])
def test_a_run_may_end_anywhere(formulation, n_iterations, rng):
    problem, K = stated(formulation, rng)
    solution = svmlight(problem, KernelSettings(tol=1e-9, max_iter=n_iterations))
    assert solution.status is Status.MAX_ITER
    assert solution.n_iter == n_iterations
    check_certificate(problem, K, solution)
    assert svmlight(problem, KernelSettings(tol=1e-9, max_seconds=0.0)).status is Status.MAX_SECONDS


@pytest.mark.parametrize("n_calls", [1, 2, 5, 12, 25])
def test_ctrl_c_while_f_is_updated_leaves_a_true_certificate(n_calls, rng, monkeypatch):
    problem, K = stated("c_svc", rng)
    add, calls = KernelRows.add, []

    def interrupted(matrix, *arguments):
        calls.append(None)
        add(matrix, *arguments)
        if len(calls) == n_calls:
            raise KeyboardInterrupt

    monkeypatch.setattr(KernelRows, "add", interrupted)
    solution = svmlight(problem, KernelSettings(tol=1e-9))
    assert solution.status is Status.INTERRUPTED
    check_certificate(problem, K, solution)


def test_an_event_set_in_another_thread_ends_a_long_update(rng, monkeypatch):
    problem, K = stated("c_svc", rng)
    settings = KernelSettings(tol=1e-9, interrupt=threading.Event())
    solve_part = large_parts.LargeParts._solve_part

    def interrupted(method, chosen):
        beta = solve_part(method, chosen)
        if method.iteration == 2:
            settings.interrupt.set()
        return beta

    monkeypatch.setattr(large_parts.LargeParts, "_solve_part", interrupted)
    solution = svmlight(problem, settings)
    assert solution.status is Status.INTERRUPTED
    assert solution.n_iter == 2
    check_certificate(problem, K, solution)


def test_a_start_is_used(rng, parts):
    problem, _ = stated("c_svc", rng)
    solution = svmlight(problem, KernelSettings(tol=1e-6))
    n_parts = len(parts)
    again = svmlight(problem, KernelSettings(tol=1e-5), solution.beta)
    assert len(parts) == n_parts
    assert again.dual == pytest.approx(solution.dual, rel=1e-6)


def test_kernel_rows_are_computed_about_once(rng, monkeypatch):
    X = rng.standard_normal((8000, 3)).astype(np.float32)
    sign = np.where(X[:, 0] + 0.5 * rng.standard_normal(8000) > 0, 1.0, -1.0)
    problem = c_svc(KernelRows(RBF, X, dtype=np.float32), sign, np.ones(8000))
    monkeypatch.setattr(large_parts, "_PART", 1000)
    solution = svmlight(problem, KernelSettings(tol=1e-3))
    assert solution.n_computed < 2.0 * np.count_nonzero(solution.beta)  # those within parts included


def test_progress_tells_rows_hits_and_the_time_left(rng):
    received = []
    problem, _ = stated("c_svc", rng, 3000)
    svmlight(problem, KernelSettings(tol=1e-6, callbacks=(received.append,)))
    rows = [one.rows for one in received]
    assert rows[0] == 0.0 < rows[1]
    assert (np.diff(rows) >= 0.0).all()
    assert all(0.0 <= one.hits <= 1.0 for one in received[1:])
    joining = [one for one in received[1:] if one.iteration < 3000 // 50 - 1]
    assert len(joining) > 50
    assert all(one.seconds_left > 0.0 for one in joining)
    totals = [one.seconds + one.seconds_left for one in joining]
    assert totals[-1] >= received[-1].seconds / 10.0
    text = describe(joining[-1], seconds_left=joining[-1].seconds_left)
    assert re.search(r"violation \S+ \(asked 1e-06\), .*[\d,]+ kernel rows, \d+% cache hits, objective", text)


class TestActiveSet:
    """An ActiveSet whose rows join, move and are removed."""

    @pytest.fixture
    def state(self, rng):
        problem, self.K = stated("c_svc", rng, 300)
        return ActiveSet(problem, KernelSettings(), None, 1)

    def test_f_is_that_of_all_changes(self, state, rng):
        problem = state.problem
        joined = np.arange(300) < 120
        state.shrink(joined)
        state.move_uncached(np.arange(50), 0.3 * problem.upper[:50] + 0.3 * problem.lower[:50])
        state.activate(np.arange(120, 200))
        np.testing.assert_allclose(state.f, self.K[:200] @ np.append(state.beta, np.zeros(100)), atol=1e-12)
        state.shrink(np.arange(200) % 3 > 0)
        state.move_uncached(np.arange(40, 60), np.zeros(20))
        state.unshrink()
        np.testing.assert_allclose(state.f, self.K @ state.beta, atol=1e-12)

    def test_a_checkpoint_holds_the_whole_state(self, state, rng):
        state.shrink(np.arange(300) < 120)
        state.move_uncached(np.arange(50), 0.5 * state.upper[:50] + 0.5 * state.lower[:50])
        state.shrink(np.arange(120) % 4 > 0)
        other = ActiveSet(state.problem, KernelSettings(), None, 1)
        for name in ActiveSet.STATE:
            setattr(other, name, getattr(state, name))
        for one in (state, other):
            one.move_uncached(np.arange(20, 40), np.zeros(20))
            one.unshrink()
        np.testing.assert_array_equal(other.f, state.f)
        np.testing.assert_array_equal(other.beta, state.beta)
        assert (other.n_computed, other.rounding_bound) == (state.n_computed, state.rounding_bound)


class TestCheckpoints:
    """A fit of a kernel machine that ends early goes on from its file."""

    @pytest.fixture
    def data(self, rng):
        X, sign, _ = make(rng, 900)
        return X, sign

    @pytest.mark.parametrize(
        "machine", [SVC(C=5.0), SVR(C=5.0), OneClassSVM(nu=0.3)], ids=lambda one: type(one).__name__
    )
    @pytest.mark.parametrize("n_iterations", [1, 2, 6, 9])
    def test_a_second_call_goes_on_to_the_same_model(self, machine, n_iterations, data, tmp_path):
        path = tmp_path / "fit.checkpoint"
        machine.set_params(tol=1e-6, checkpoint=path)
        expected = machine.fit(*data)
        bits = expected.dual_coef_.tobytes(), expected.intercept_.tobytes(), expected.n_iter_, expected.gap_
        assert not path.exists()
        with pytest.warns(ConvergenceWarning, match="max_iter"):
            machine.set_params(max_iter=n_iterations).fit(*data)
        assert path.exists()
        found = machine.set_params(max_iter=-1).fit(*data)
        assert (found.dual_coef_.tobytes(), found.intercept_.tobytes(), found.n_iter_, found.gap_) == bits
        assert not path.exists()

    def test_every_pair_of_classes_has_its_file(self, data, tmp_path, monkeypatch):
        X, _ = data
        monkeypatch.setattr(base, "_MAX_ROWS_TO_SHARE", 0)
        y = np.digitize(X[:, 0], [-0.3, 0.3])
        model = SVC(tol=1e-5, checkpoint=tmp_path / "fit", max_iter=2)
        with pytest.warns(ConvergenceWarning, match="max_iter"):
            model.fit(X, y)
        assert sorted(one.name for one in tmp_path.iterdir()) == ["fit.0", "fit.1", "fit.2"]
        found = model.set_params(max_iter=-1).fit(X, y)
        assert not list(tmp_path.iterdir())
        np.testing.assert_array_equal(found.dual_coef_, SVC(tol=1e-5).fit(X, y).dual_coef_)

    def test_the_checkpoint_of_another_fit_is_refused(self, data, tmp_path):
        X, y = data
        model = SVC(C=5.0, tol=1e-6, max_iter=2, checkpoint=tmp_path / "fit")
        with pytest.warns(ConvergenceWarning, match="max_iter"):
            model.fit(X, y)
        with pytest.raises(FormatError, match=r"C was '5\.0', is '4\.0'"):
            model.set_params(C=4.0).fit(X, y)
        with pytest.raises(FormatError, match="data was"):
            model.set_params(C=5.0).fit(X + 1.0, y)
        with pytest.raises(FormatError, match="targets and weights"):
            model.fit(X, -y)

    def test_kernels_without_features_have_no_checkpoints(self, data, tmp_path):
        X, y = data
        for kernel in ("precomputed", rbf_kernel):
            with pytest.raises(ValueError, match="computed from features"):
                SVC(kernel=kernel, checkpoint=tmp_path / "fit").fit(rbf_kernel(X), y)

    def test_smo_says_that_it_writes_none(self, data, tmp_path):
        with pytest.raises(ValueError, match="solver='smo' writes no checkpoints"):
            SVC(solver="smo", checkpoint=tmp_path / "fit").fit(*data)

    def test_an_interrupted_fit_goes_on(self, rng, tmp_path):
        problem, _ = stated("c_svc", rng)
        file = checkpoint.CheckpointFile(str(tmp_path / "fit"), {})
        expected = svmlight(problem, KernelSettings(tol=1e-8))

        def interrupt(progress):
            if progress.iteration == 4:
                raise KeyboardInterrupt

        settings = KernelSettings(tol=1e-8, checkpoint=file)
        assert svmlight(problem, replace(settings, callbacks=(interrupt,))).status is Status.INTERRUPTED
        found = svmlight(problem, replace(settings, interrupt=threading.Event()))
        np.testing.assert_array_equal(found.beta, expected.beta)
        assert found.n_iter == expected.n_iter
