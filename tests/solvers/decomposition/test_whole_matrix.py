"""Small problems, solved with memory for their whole kernel matrix: the same solutions as by working sets."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_array

from widemargin.kernels.functions import Kernel
from widemargin.kernels.rows import KernelRows, MatrixPart
from widemargin.problems.certificates import certify_kernel
from widemargin.problems.classification import c_svc, nu_svc
from widemargin.problems.one_class import one_class
from widemargin.problems.regression import eps_svr, nu_svr
from widemargin.solvers.contract import KernelSettings, Status
from widemargin.solvers.decomposition import first_iteration, whole_matrix
from widemargin.solvers.decomposition import svmlight as working_sets
from widemargin.solvers.decomposition.whole_matrix import is_small, svmlight, svmlight_together

RBF = Kernel("rbf", gamma=0.4)
KERNELS = {
    "rbf": RBF,
    "linear": Kernel("linear"),
    "poly": Kernel("poly", gamma=0.3, coef0=1.0, degree=3),
    "sigmoid": Kernel("sigmoid", gamma=0.05, coef0=-0.1),
}
FORMULATIONS = ["c_svc", "nu_svc", "one_class", "eps_svr", "nu_svr"]
EXACT = KernelSettings(tol=1e-8)


def data(rng, n_rows=240, n_features=4):
    """Return rows, signs, targets and weights of overlapping classes; a row is there twice."""
    X = rng.standard_normal((n_rows, n_features))
    X[-1] = X[0]
    sign = np.where(X[:, 0] + 0.5 * rng.standard_normal(n_rows) > 0.0, 1.0, -1.0)
    sign[:2] = 1.0, -1.0
    return X, sign, np.sin(2.0 * X[:, 0]) + 0.1 * rng.standard_normal(n_rows), rng.uniform(0.2, 2.0, n_rows)


def problem_of(formulation, K, rows, C=1.0, nu=0.3):
    _, sign, y, weight = rows
    return {
        "c_svc": lambda: c_svc(K, sign, C * weight),
        "nu_svc": lambda: nu_svc(K, sign, weight, 2.0 * nu),
        "one_class": lambda: one_class(K, weight, nu),
        "eps_svr": lambda: eps_svr(K, y, C * weight, 0.1),
        "nu_svr": lambda: nu_svr(K, y, C * weight, nu),
    }[formulation]()


def agree(problem, settings=EXACT, start=None, rel=1e-6):
    """Check that both methods converge to the same objective and function, and that the certificate is right."""
    assert is_small(problem, settings)
    small, large = svmlight(problem, settings, start), working_sets.svmlight(problem, settings, start)
    assert small.status is Status.CONVERGED
    assert small.primal == pytest.approx(large.primal, rel=rel, abs=1e-9)
    certified = certify_kernel(problem, problem.K.whole(), small.beta, small.offsets)
    assert small.dual <= certified.dual + 1e-12 * (1.0 + abs(certified.dual))
    K, row = problem.K.whole(), problem.row
    functions = [K @ np.bincount(row, one.beta, minlength=len(K)) for one in (small, large)]
    np.testing.assert_allclose(*functions, rtol=0.0, atol=1e-3 * np.abs(functions[0]).max() + 1e-9)
    return small


@pytest.mark.parametrize("formulation", FORMULATIONS)
@pytest.mark.parametrize("kernel", KERNELS)
def test_every_kernel_and_problem_has_the_solution_of_working_sets(formulation, kernel, rng):
    rows = data(rng)
    agree(problem_of(formulation, KernelRows(KERNELS[kernel], rows[0], dtype=np.float64), rows))


@pytest.mark.parametrize("formulation", FORMULATIONS)
def test_sparse_precomputed_and_callable_kernels_give_what_dense_rows_give(formulation, rng):
    rows = data(rng)
    K = KernelRows(RBF, rows[0], dtype=np.float64)
    expected = agree(problem_of(formulation, K, rows)).primal
    matrix = K.whole()
    read_only = matrix.copy()
    read_only.flags.writeable = False
    sparse = np.where(np.abs(rows[0]) < 1.5, 0.0, rows[0])
    others = [
        KernelRows(Kernel("precomputed"), matrix),
        KernelRows(Kernel("precomputed"), read_only),
        KernelRows(Kernel("callable", function=lambda A, B: np.exp(-0.4 * _distances(A, B))), rows[0]),
    ]
    for other in others:
        assert agree(problem_of(formulation, other, rows)).primal == pytest.approx(expected, rel=1e-6)
    agree(problem_of(formulation, KernelRows(RBF, csr_array(sparse), dtype=np.float64), rows))


def _distances(A, B):
    return ((A[:, np.newaxis] - B) ** 2).sum(axis=2)


@pytest.mark.parametrize("C", [1e-4, 1.0, 1e5])
def test_tiny_and_huge_costs_give_what_working_sets_give(C, rng):
    rows = data(rng)
    agree(problem_of("c_svc", KernelRows(RBF, rows[0], dtype=np.float64), rows, C), KernelSettings(tol=1e-5), rel=1e-3)


@pytest.mark.parametrize("formulation", FORMULATIONS)
def test_a_start_of_another_problem_that_is_not_feasible_leads_to_the_same_solution(formulation, rng):
    rows = data(rng)
    K = KernelRows(Kernel("precomputed"), KernelRows(RBF, rows[0], dtype=np.float64).whole())
    problem = problem_of(formulation, K, rows)
    expected = svmlight(problem, EXACT)
    wild = 1e3 * rng.standard_normal(len(problem.start))
    for start in (expected.beta, 3.0 * expected.beta, wild):
        assert agree(problem, start=start).primal == pytest.approx(expected.primal, rel=1e-6)


def test_one_row_of_each_class_is_solved_as_on_paper():
    X, sign = np.array([[0.0], [2.0]]), np.array([1.0, -1.0])
    solution = svmlight(c_svc(KernelRows(Kernel("linear"), X, dtype=np.float64), sign, np.full(2, 10.0)), EXACT)
    np.testing.assert_allclose(solution.beta, [0.5, -0.5], rtol=1e-12)  # f(x) = 1 - x
    np.testing.assert_allclose(solution.offsets, [-1.0], rtol=1e-12)


def test_few_kernel_rows_are_computed_if_there_are_few_support_vectors(rng):
    X = np.concatenate([rng.standard_normal((300, 3)) - 3.0, rng.standard_normal((300, 3)) + 3.0])
    sign = np.repeat([1.0, -1.0], 300)
    K = KernelRows(Kernel("rbf", gamma=0.05), X, dtype=np.float64)
    solution = svmlight(c_svc(K, sign, np.ones(600)), KernelSettings())
    assert np.count_nonzero(solution.beta) <= solution.n_computed < 150
    assert solution.history["passes"][-1] == solution.n_computed / 600


def test_a_working_set_or_a_small_cache_asks_for_the_other_method(rng):
    rows = data(rng)
    problem = problem_of("c_svc", KernelRows(RBF, rows[0], dtype=np.float64), rows)
    assert is_small(problem, KernelSettings())
    assert not is_small(problem, KernelSettings(working_set=64))
    assert not is_small(problem, KernelSettings(cache_size=0.1))


@pytest.mark.parametrize("formulation", FORMULATIONS)
def test_at_most_a_hundred_rows_are_solved_to_full_precision_whatever_their_order(formulation, rng):
    X, *others = data(rng, 80)
    order = rng.permutation(80)
    models = []
    for chosen in (np.arange(80), order):
        rows = [X[chosen], *(one[chosen] for one in others)]
        problem = problem_of(formulation, KernelRows(RBF, rows[0], dtype=np.float64), rows)
        solution = svmlight(problem, KernelSettings())
        assert solution.violation <= 10.0 * whole_matrix.FULL_PRECISION
        weights = np.empty(80)
        weights[chosen] = np.bincount(problem.row, solution.beta, minlength=80)
        models.append(KernelRows(RBF, X, dtype=np.float64).whole() @ weights)
    np.testing.assert_allclose(*models, rtol=0.0, atol=1e-10)


def test_max_iter_callbacks_and_max_seconds_end_a_problem_that_takes_many_iterations(rng, monkeypatch):
    monkeypatch.setattr(whole_matrix, "_MAX_PAIR_STEPS", 5)
    rows = data(rng)
    problem = problem_of("c_svc", KernelRows(RBF, rows[0], dtype=np.float64), rows, C=100.0)
    assert svmlight(problem, KernelSettings(max_iter=3)).status is Status.MAX_ITER
    assert svmlight(problem, KernelSettings(max_seconds=0.0)).status is Status.MAX_SECONDS
    seen = []
    stop = svmlight(problem, KernelSettings(callbacks=(lambda progress: seen.append(progress) or len(seen) > 3,)))
    assert stop.status is Status.CALLBACK
    assert [progress.iteration for progress in seen] == [0, 1, 2, 3]
    whole = svmlight(problem, KernelSettings())
    assert whole.status is Status.CONVERGED
    assert (whole.history["dual"] <= whole.history["primal"][-1] * (1 + 1e-12)).all()


def test_a_problem_solved_within_a_callback_of_another_does_not_disturb_it(rng, monkeypatch):
    monkeypatch.setattr(whole_matrix, "_MAX_PAIR_STEPS", 20)
    rows, others = data(rng), data(rng)
    problem = problem_of("c_svc", KernelRows(RBF, rows[0], dtype=np.float64), rows, C=10.0)
    other = problem_of("c_svc", KernelRows(RBF, others[0], dtype=np.float64), others)
    alone = svmlight(problem, KernelSettings())
    assert alone.n_iter > 2
    nested = svmlight(problem, KernelSettings(callbacks=(lambda progress: svmlight(other, KernelSettings()) is None,)))
    np.testing.assert_array_equal(nested.beta, alone.beta)


WATCHED = KernelSettings(max_iter=10**9)  # with a limit, iterations are reported one by one


@pytest.mark.parametrize("formulation", FORMULATIONS)
@pytest.mark.parametrize("n_rows", [80, 240])
@pytest.mark.parametrize("max_steps", [5, 20_000])
def test_a_first_iteration_in_one_call_is_the_one_that_a_watched_solver_takes(
    formulation, n_rows, max_steps, rng, monkeypatch
):
    monkeypatch.setattr(whole_matrix, "_MAX_PAIR_STEPS", max_steps)
    rows = data(rng, n_rows)
    problem = problem_of(formulation, KernelRows(RBF, rows[0], dtype=np.float64), rows)
    at_once, watched = svmlight(problem, KernelSettings()), svmlight(problem, WATCHED)
    assert at_once.status is watched.status is Status.CONVERGED
    assert at_once.n_iter == watched.n_iter
    assert at_once.n_computed == watched.n_computed
    np.testing.assert_allclose(at_once.beta, watched.beta, rtol=0.0, atol=1e-12)
    np.testing.assert_allclose(at_once.offsets, watched.offsets, rtol=0.0, atol=1e-12)
    assert at_once.violation == pytest.approx(watched.violation, rel=1e-6, abs=1e-11)
    for name in ("iteration", "primal", "dual"):
        np.testing.assert_allclose(at_once.history[name], watched.history[name], rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("formulation", FORMULATIONS)
def test_most_small_problems_are_solved_without_a_loop_in_python(formulation, rng, monkeypatch):
    monkeypatch.setattr(whole_matrix, "solve", None)
    rows = data(rng)
    problem = problem_of(formulation, KernelRows(RBF, rows[0], dtype=np.float64), rows)
    solution = svmlight(problem, KernelSettings())
    exact = certify_kernel(problem, problem.K.whole(), solution.beta, solution.offsets)
    assert solution.dual <= exact.dual <= exact.primal * (1.0 + 1e-14)
    assert solution.primal == pytest.approx(exact.primal, rel=1e-12)
    assert solution.dual == pytest.approx(exact.dual, rel=1e-9)


def test_a_ctrl_c_in_the_first_iteration_ends_the_run_with_the_start(rng, monkeypatch):
    def press(*arguments):
        raise KeyboardInterrupt

    rows = data(rng)
    problem = problem_of("c_svc", KernelRows(RBF, rows[0], dtype=np.float64), rows)
    monkeypatch.setattr(first_iteration, "_iterate_one", press)
    settings = KernelSettings()
    solution = svmlight(problem, settings)
    assert solution.status is Status.INTERRUPTED
    assert settings.interrupt.is_set()
    np.testing.assert_array_equal(solution.beta, problem.start)


def test_a_kernel_whose_sums_overflow_is_refused(rng):
    rows = data(rng)
    K = KernelRows(Kernel("precomputed"), np.full((240, 240), 1e298))
    with pytest.raises(ValueError, match="The objective overflows: kernel values reach 1e\\+298"):
        svmlight(problem_of("c_svc", K, rows), KernelSettings())


def parts_of_a_problem(formulation, rng, sizes=(70, 130, 40), C=1.0):
    """Return problems whose kernel matrices are parts of one; rows of the first class come first, as in a pair."""
    rows = data(rng)
    values = KernelRows(RBF, rows[0], dtype=np.float64).whole()
    problems = []
    for size in sizes:
        places = rng.permutation(len(values))[:size]
        places = places[np.argsort(-rows[1][places], kind="stable")]
        K = MatrixPart(values, places, 1.0, np.ones(len(values)), None)
        problems.append(problem_of(formulation, K, [one[places] for one in rows], C, nu=0.1))
    return problems


def together(problems, settings=None):
    settings = [KernelSettings()] * len(problems) if settings is None else settings
    return svmlight_together(problems, settings, [None] * len(problems))


@pytest.mark.parametrize("formulation", FORMULATIONS)
@pytest.mark.parametrize("work", [1.0, 1e5, 1e9])
@pytest.mark.parametrize("max_steps", [5, 20_000])
def test_problems_solved_together_have_the_solutions_of_each_alone_to_the_bit(
    formulation, work, max_steps, rng, monkeypatch
):
    monkeypatch.setattr(whole_matrix, "_MAX_PAIR_STEPS", max_steps)
    monkeypatch.setattr(first_iteration, "_WORK_PER_CALL", work)
    problems = parts_of_a_problem(formulation, rng)
    for problem, one in zip(problems, together(problems), strict=True):
        alone = svmlight(problem, KernelSettings())
        assert one.status is alone.status is Status.CONVERGED
        assert (one.n_iter, one.n_computed, one.stretch) == (alone.n_iter, alone.n_computed, alone.stretch)
        np.testing.assert_array_equal(one.beta, alone.beta)
        np.testing.assert_array_equal(one.offsets, alone.offsets)
        for name in ("iteration", "passes", "primal", "dual", "gap"):
            np.testing.assert_array_equal(one.history[name], alone.history[name])


def test_problems_are_solved_together_in_as_few_calls_as_their_work_allows(rng, monkeypatch):
    begun, call = [], first_iteration._iterate_parts
    monkeypatch.setattr(whole_matrix, "svmlight", None)
    monkeypatch.setattr(first_iteration, "_iterate_parts", lambda *a: begun.append(a[-2]) or call(*a))
    problems = parts_of_a_problem("c_svc", rng)
    together(problems)
    assert begun == [0]
    monkeypatch.setattr(first_iteration, "_WORK_PER_CALL", 1.0)
    begun.clear()
    together(problems)
    assert begun == [0, 1, 2]


def test_problems_with_limits_callbacks_or_another_matrix_are_solved_one_by_one(rng, monkeypatch):
    monkeypatch.setattr(first_iteration, "_iterate_parts", None)
    problems, others = (parts_of_a_problem("c_svc", rng) for _ in range(2))
    for options in ({"max_iter": 1000}, {"max_seconds": 1e9}, {"callbacks": (lambda progress: None,)}):
        solutions = together(problems, [KernelSettings(**options)] * 3)
        assert [one.status for one in solutions] == [Status.CONVERGED] * 3
    assert together([problems[0], others[0]], [KernelSettings()] * 2)[1].status is Status.CONVERGED
    started = svmlight_together(problems, [KernelSettings()] * 3, [problem.start for problem in problems])
    assert [one.status for one in started] == [Status.CONVERGED] * 3


def test_a_ctrl_c_between_problems_solved_together_keeps_those_that_are_solved(rng, monkeypatch):
    call = first_iteration._iterate_parts

    def press(*arguments):
        if arguments[-2] > 0:
            raise KeyboardInterrupt
        return call(*arguments)

    monkeypatch.setattr(first_iteration, "_WORK_PER_CALL", 1.0)
    monkeypatch.setattr(first_iteration, "_iterate_parts", press)
    problems, settings = parts_of_a_problem("c_svc", rng), KernelSettings()
    solutions = together(problems, [settings] * 3)
    assert [one.status for one in solutions] == [Status.CONVERGED, Status.INTERRUPTED, Status.INTERRUPTED]
    assert settings.interrupt.is_set()
    np.testing.assert_array_equal(solutions[1].beta, problems[1].start)


def test_a_problem_solved_together_whose_rows_are_in_another_order_is_solved_alone(rng):
    problems = parts_of_a_problem("c_svc", rng, C=10.0)
    n_rows = problems[1].K.n_rows
    order = np.roll(np.arange(n_rows), 1)
    moved = {name: getattr(problems[1], name)[order] for name in ("linear", "lower", "upper", "start")}
    problems[1] = replace(problems[1], row=order, **moved)
    for problem, one in zip(problems, together(problems), strict=True):
        alone = svmlight(problem, KernelSettings())
        assert one.primal == alone.primal
        np.testing.assert_array_equal(one.beta, alone.beta)


@pytest.mark.parametrize("formulation", ["eps_svr", "nu_svr"])
def test_the_two_dual_variables_of_a_row_share_its_kernel_values(formulation, rng, monkeypatch):
    rows = data(rng)
    problem = problem_of(formulation, KernelRows(RBF, rows[0], dtype=np.float64), rows)
    shared = svmlight(problem, EXACT)
    assert whole_matrix.WholeKernelMatrix(problem).block.shape == (240, 240)
    order = np.concatenate([np.roll(np.arange(240), 1), np.roll(np.arange(240, 480), 1)])  # not that of the rows
    moved = {name: getattr(problem, name)[order] for name in ("row", "linear", "lower", "upper", "start")}
    mixed = replace(problem, **moved)
    assert whole_matrix.WholeKernelMatrix(mixed).block.shape == (480, 480)
    assert svmlight(mixed, EXACT).primal == pytest.approx(shared.primal, rel=1e-9)
