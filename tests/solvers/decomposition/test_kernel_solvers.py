"""svmlight and smo: judged by certificate, by an exact QP solver, by LIBSVM, and by invariances."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from libsvm import svmutil
from sklearn.metrics.pairwise import pairwise_kernels

from widemargin.kernels.functions import Kernel
from widemargin.kernels.rows import KernelRows
from widemargin.problems.certificates import certify_kernel, kernel_violation
from widemargin.problems.classification import c_svc, nu_svc
from widemargin.problems.one_class import one_class
from widemargin.problems.regression import eps_svr, nu_svr
from widemargin.solvers.contract import KernelSettings, Status
from widemargin.solvers.decomposition import svmlight
from widemargin.solvers.decomposition.active_set import ActiveSet
from widemargin.solvers.registry import KERNEL_SOLVERS

NAMES = ["svmlight", "smo"]
FORMULATIONS = ["c_svc", "nu_svc", "one_class", "eps_svr", "nu_svr"]
EACH_SOLVER = pytest.mark.parametrize("solve", [KERNEL_SOLVERS[name] for name in NAMES], ids=NAMES)
EACH_FORMULATION = pytest.mark.parametrize("formulation", FORMULATIONS)
KERNELS = {
    "linear": Kernel("linear"),
    "poly": Kernel("poly", gamma=0.3, coef0=1.0, degree=3),
    "rbf": Kernel("rbf", gamma=0.4),
}
SIGMOID = Kernel("sigmoid", gamma=0.8, coef0=-0.5)
EPSILON, NU = 0.1, 0.5


def matrix_of(kernel, X):
    """Return the kernel matrix by scikit-learn, in float64."""
    numbers = {"gamma": kernel.gamma, "coef0": kernel.coef0, "degree": kernel.degree}
    return pairwise_kernels(X, metric=kernel.name, filter_params=True, **numbers)


def state(formulation, K, data, C=1.0, nu=NU):
    _, sign, y, cost = data
    return {
        "c_svc": lambda: c_svc(K, sign, C * cost),
        "nu_svc": lambda: nu_svc(K, sign, cost, nu),
        "one_class": lambda: one_class(K, cost, nu),
        "eps_svr": lambda: eps_svr(K, y, C * cost, EPSILON),
        "nu_svr": lambda: nu_svr(K, y, C * cost, nu),
    }[formulation]()


def make(rng, n_rows, n_features=4, weighted=True):
    """Return rows, signs, targets and costs of overlapping classes, a first row of sign +1."""
    X = 1.0 + rng.standard_normal((n_rows, n_features))
    sign = np.where(X[:, 0] + X[:, -1] - 2.0 + 0.5 * rng.standard_normal(n_rows) > 0, 1.0, -1.0)
    sign[:2] = 1.0, -1.0
    y = np.sin(2 * X[:, 0]) + 0.3 * X[:, -1] + 0.1 * rng.standard_normal(n_rows)
    return X, sign, y, rng.uniform(0.3, 2.0, n_rows) if weighted else np.ones(n_rows)


@pytest.fixture
def data(rng):
    return make(rng, 80)


def rbf_problem(formulation, data, C=1.0, dtype=np.float64, **options):
    return state(formulation, KernelRows(KERNELS["rbf"], data[0], dtype=dtype, **options), data, C)


def judge(problem, K, solution, tol):
    """Check by NumPy alone that the solution is feasible, its certificate true and its violation within tol."""
    certificate = certify_kernel(problem, K, solution.beta, solution.offsets)
    size = max(1.0, abs(certificate.primal), abs(certificate.dual))
    np.testing.assert_allclose([solution.primal, solution.dual], certificate, rtol=1e-9, atol=1e-9 * size)
    assert certificate.primal - certificate.dual >= -1e-12 * size
    assert kernel_violation(problem, K, solution.beta) <= tol * (1 + 1e-9) + 1e-12 * size
    return certificate


@EACH_SOLVER
@EACH_FORMULATION
@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS.keys())
def test_the_judge_confirms_the_certificate(kernel, formulation, solve, data):
    K = matrix_of(kernel, data[0])
    problem = state(formulation, KernelRows(kernel, data[0], dtype=np.float64), data)
    solution = solve(problem, KernelSettings(tol=1e-6, working_set=16))
    assert solution.status is Status.CONVERGED
    assert solution.violation <= 1e-6
    certificate = judge(problem, K, solution, 1e-6)
    total = (problem.upper - problem.lower).sum()
    assert certificate.primal - certificate.dual <= 1e-6 * total, (
        "each dual variable adds at most its interval times tol"
    )


@EACH_SOLVER
@EACH_FORMULATION
def test_an_indefinite_kernel_ends_without_violating_pairs(formulation, solve, data):
    # Not convex: no certificate, but the conditions hold and the objective is not above that of the start.
    K = matrix_of(SIGMOID, data[0])
    assert np.linalg.eigvalsh(K)[0] < -0.1
    problem = state(formulation, KernelRows(SIGMOID, data[0], dtype=np.float64), data)
    solution = solve(problem, KernelSettings(tol=1e-6, max_iter=200_000))
    no_margin = problem.violation_unit(solution.offsets) == 0.0  # of nu-SVC, if the best "margin" is a negative one
    assert solution.status is (Status.STALLED if no_margin else Status.CONVERGED)
    assert kernel_violation(problem, K, solution.beta) <= 1e-6 * (1 + 1e-6)
    start = certify_kernel(problem, K, problem.start, solution.offsets)
    end = certify_kernel(problem, K, solution.beta, solution.offsets)
    assert -end.dual <= -start.dual + 1e-9
    assert solution.dual == pytest.approx(end.dual, rel=1e-9)


def exact_optimum(problem, K, exact_qp):
    """Return the optimal dual value and a bound on its error, by an exact QP solver, in x = (beta − lower) / width."""
    K = K[np.ix_(problem.row, problem.row)]
    width, above, free = problem.upper - problem.lower, problem.start - problem.lower, problem.upper > problem.lower
    index, rows, limits = np.arange(len(width)), [], []
    for first, last in pairwise(problem.ends):
        total, inside = above[first:last].sum(), free & (first <= index) & (index < last)
        # If the sum puts all dual variables of a group at their lower or upper bounds, none of them is free.
        if not 1e-12 < total / max(width[inside].sum(), 1e-300) < 1 - 1e-12:
            free &= ~inside
        else:
            rows.append(np.where(inside, width, 0.0) / width[inside].max())
            limits.append(total / width[inside].max())
    base = np.where(free, problem.lower, problem.start)
    G, c = K * np.outer(width, width), (K @ base + problem.linear) * width
    A = np.array(rows).reshape(len(rows), len(width))[:, free]
    value, error = exact_qp(G[np.ix_(free, free)], c[free], np.ones(free.sum()), A, np.array(limits))
    return -(value + 0.5 * base @ K @ base + problem.linear @ base), error


SPOILS = ["nothing", "twins", "opposite twins", "all rows equal", "no cost", "constant column", "zero row", "far row"]
TINY = st.fixed_dictionaries(
    {
        "seed": st.integers(0, 2**32 - 1),
        "n": st.integers(2, 12),
        "d": st.integers(1, 4),
        "C": st.sampled_from([1e-6, 0.01, 1.0, 30.0]),
        "nu": st.sampled_from([0.01, 0.3, 0.6, 1.0]),
        "formulation": st.sampled_from(FORMULATIONS),
        "solver": st.sampled_from(NAMES),
        "kernel": st.sampled_from([*KERNELS.values(), Kernel("rbf", gamma=0.0), Kernel("rbf", gamma=50.0)]),
        "spoil": st.sampled_from(SPOILS),
        "working_set": st.sampled_from([2, 3, 5, None]),
        "shrinking": st.booleans(),
    }
)


def spoiled(X, sign, cost, spoil):
    """Change the problem so that it breaks careless solvers."""
    if spoil in ("twins", "opposite twins"):
        X[-1] = X[0]
        sign[-1] = -sign[0] if spoil == "opposite twins" else sign[0]
    elif spoil == "all rows equal":
        X[:] = X[0]
    elif spoil == "no cost":
        cost[::3] = 0.0
    elif spoil == "constant column":
        X[:, 0] = 1.0
    elif spoil == "zero row":
        X[0] = 0.0
    elif spoil == "far row":
        X[0] = 5.0


@given(case=TINY)
@hypothesis_settings(max_examples=300)
def test_tiny_problems_are_solved_as_an_exact_qp_solver_does(case, exact_qp):
    rng = np.random.default_rng(case["seed"])
    X, sign, y, cost = make(rng, case["n"], case["d"])
    X, y = np.round(X, 1), np.round(y, 1)
    spoiled(X, sign, cost, case["spoil"])
    classes = [cost[sign > 0].sum(), cost[sign < 0].sum()]
    nu = min(case["nu"], 0.999 * 2 * min(classes) / sum(classes)) if case["formulation"] == "nu_svc" else case["nu"]
    if cost.sum() == 0.0 or nu == 0.0:
        return
    K = matrix_of(case["kernel"], X)
    rows = KernelRows(case["kernel"], X, dtype=np.float64)
    problem = state(case["formulation"], rows, (X, sign, y, cost), case["C"], nu)
    settings = KernelSettings(tol=1e-7, working_set=case["working_set"], shrinking=case["shrinking"])
    solution = KERNEL_SOLVERS[case["solver"]](problem, replace(settings, max_iter=500_000))
    certificate = certify_kernel(problem, K, solution.beta, solution.offsets)
    optimum, reference_error = exact_optimum(problem, K, exact_qp)
    if case["solver"] == "smo" and solution.status is Status.MAX_ITER:  # pair steps alone may not converge
        assert certificate.dual <= optimum + reference_error <= certificate.primal + 2.0 * reference_error
        return
    assert solution.status in (Status.CONVERGED, Status.STALLED)
    # The effect of a violation of tol; rounding errors of both solvers are relative to the size of their terms.
    terms = abs(certificate.dual) + np.abs(solution.beta) @ np.abs(problem.linear)
    error = 1e-7 * ((problem.upper - problem.lower).sum() + terms) + 1e-9
    assert reference_error <= error
    assert certificate.dual == pytest.approx(optimum, abs=error)
    assert certificate.primal >= optimum - error
    assert certificate.primal - certificate.dual <= error


@EACH_SOLVER
@pytest.mark.parametrize("kernel", [Kernel("rbf", gamma=2.0), Kernel("rbf", gamma=0.0)], ids=["separable", "gamma-0"])
@pytest.mark.parametrize("spoil", ["nothing", "twins", "opposite twins", "all rows equal"])
@pytest.mark.parametrize("C", [1e6, 1e10])
def test_enormous_costs_end_with_a_small_gap(C, spoil, kernel, solve, rng):
    X, sign, _, cost = make(rng, 40)
    spoiled(X, sign, cost, spoil)
    problem = c_svc(KernelRows(kernel, X, dtype=np.float64), sign, C * cost)
    solution = solve(problem, KernelSettings(tol=1e-5, max_iter=500_000))
    assert solution.status in (Status.CONVERGED, Status.STALLED)
    certificate = certify_kernel(problem, matrix_of(kernel, X), solution.beta, solution.offsets)
    total = C * cost.sum()  # the size of the terms of F, to which its rounding errors are relative
    assert certificate.primal - certificate.dual <= (1e-5 + 8 * np.finfo(float).eps * total) * total


LIBSVM_TYPES = {"c_svc": 0, "nu_svc": 1, "one_class": 2, "eps_svr": 3, "nu_svr": 4}
LIBSVM_KERNELS = {"linear": "-t 0", "poly": "-t 1 -d 3 -g 0.3 -r 1", "rbf": "-t 2 -g 0.4"}


@EACH_SOLVER
@EACH_FORMULATION
@pytest.mark.parametrize("kernel", KERNELS)
def test_libsvm_finds_the_same_function(kernel, formulation, solve, rng):
    X, sign, y, _ = data = make(rng, 60, weighted=False)
    K = matrix_of(KERNELS[kernel], X)
    options = f"-s {LIBSVM_TYPES[formulation]} {LIBSVM_KERNELS[kernel]} -c 2 -n {NU} -p {EPSILON} -e 1e-6 -q"
    target = y if formulation.endswith("svr") else sign
    peer = svmutil.svm_train(svmutil.svm_problem(target, X), svmutil.svm_parameter(options))
    coef = np.zeros(60)
    coef[np.array(peer.get_sv_indices()) - 1] = np.ravel(peer.get_sv_coef())

    problem = state(formulation, KernelRows(KERNELS[kernel], X, dtype=np.float64), data, C=2.0)
    solution = solve(problem, KernelSettings(tol=1e-6))
    model = problem.model(solution)
    # The dual variables of the linear kernel are not unique, but the function is. LIBSVM has single precision kernels.
    np.testing.assert_allclose(K @ model.coef, K @ coef, atol=1e-4 * np.abs(K @ coef).max())
    assert model.facts["rho"] == pytest.approx(peer.rho[0], abs=1e-4 * np.abs(K @ coef).max())
    assert model.intercept == -model.facts["rho"]
    half_norm = 0.5 * coef @ K @ coef
    objective = {
        "c_svc": half_norm - np.abs(coef).sum(),
        "eps_svr": half_norm - y @ coef + EPSILON * np.abs(coef).sum(),
        "nu_svr": half_norm - y @ coef,
    }.get(formulation, half_norm)
    assert model.facts["obj"] == pytest.approx(objective, rel=1e-5)


def counting_shrink(monkeypatch):
    """Return a list to which every call of `shrink` appends the number of dual variables that it removes."""
    calls, original = [], ActiveSet.shrink

    def shrink(self, remain):
        calls.append(int(np.sum(~remain)))
        return original(self, remain)

    monkeypatch.setattr(ActiveSet, "shrink", shrink)
    return calls


@EACH_SOLVER
@EACH_FORMULATION
def test_shrinking_does_not_change_the_solution(formulation, solve, rng, monkeypatch):
    data = make(rng, 120)
    K, problem = matrix_of(KERNELS["rbf"], data[0]), rbf_problem(formulation, data, C=5.0)
    settings = KernelSettings(tol=1e-8, working_set=16)
    calls = counting_shrink(monkeypatch)
    # Early shrinking also removes dual variables that have to become active again.
    monkeypatch.setattr("widemargin.solvers.decomposition.svmlight._ITERATIONS_BEFORE_SHRINKING", 2)
    without = solve(problem, replace(settings, shrinking=False))
    assert not calls
    shrunk = solve(problem, settings)
    assert sum(calls) > 0, "nothing was removed: the test shows nothing"
    for solution in (without, shrunk):
        assert solution.status is Status.CONVERGED
        judge(problem, K, solution, 1e-8)
    assert shrunk.dual == pytest.approx(without.dual, rel=1e-7)
    np.testing.assert_allclose(shrunk.offsets, without.offsets, atol=1e-6)


@EACH_FORMULATION
@pytest.mark.parametrize("megabytes", [0.0, 200.0], ids=["least-rows", "all-rows"])
@pytest.mark.parametrize("working_set", [2, 3, 7, 64, None])
def test_working_sets_of_any_size_agree_whatever_the_cache(working_set, megabytes, formulation, data):
    K, problem = matrix_of(KERNELS["rbf"], data[0]), rbf_problem(formulation, data)
    settings = KernelSettings(tol=1e-7, working_set=working_set, cache_size=megabytes)
    solution = KERNEL_SOLVERS["svmlight"](problem, settings)
    assert solution.status is Status.CONVERGED
    judge(problem, K, solution, 1e-7)
    expected = KERNEL_SOLVERS["smo"](problem, KernelSettings(tol=1e-7))
    assert solution.dual == pytest.approx(expected.dual, rel=1e-6)


@EACH_FORMULATION
def test_a_tiny_cache_does_not_change_the_solution_of_smo(formulation, data):
    problem = rbf_problem(formulation, data)
    large, tiny = (KERNEL_SOLVERS["smo"](problem, KernelSettings(tol=1e-6, cache_size=size)) for size in (200.0, 0.0))
    assert tiny.n_computed > large.n_computed
    assert tiny.n_iter == pytest.approx(large.n_iter, rel=0.1)  # rounding differs: so may the steps
    assert tiny.dual == pytest.approx(large.dual, rel=1e-9)


@pytest.mark.parametrize("cache_size", [200.0, 0.0], ids=["cached", "uncached"])
@pytest.mark.parametrize("formulation", ["c_svc", "eps_svr"])
def test_a_run_that_begins_with_a_part_solves_the_whole_problem(formulation, cache_size, data, monkeypatch):
    monkeypatch.setattr(svmlight, "_MIN_FIRST_PART_ROWS", 4)
    problem, active, measured = rbf_problem(formulation, data), [], []
    iterate = svmlight.Decomposition.iterate

    def recorded(method):
        iterate(method)
        active.append(len(method.state.index))

    monkeypatch.setattr(svmlight.Decomposition, "iterate", recorded)
    settings = KernelSettings(tol=1e-6, working_set=4, cache_size=cache_size, callbacks=(measured.append,))
    solution = KERNEL_SOLVERS["svmlight"](problem, settings)
    assert active[0] < len(problem.start) / 4
    assert solution.history["iteration"][0] == 0
    assert np.isfinite(measured[0].primal)
    judge(problem, matrix_of(KERNELS["rbf"], data[0]), solution, 1e-6)


@EACH_SOLVER
@EACH_FORMULATION
def test_a_start_from_the_solution_takes_at_most_one_iteration(formulation, solve, data):
    problem = rbf_problem(formulation, data)
    first = solve(problem, KernelSettings(tol=1e-6))
    again = solve(problem, KernelSettings(tol=1e-6), first.beta)
    assert again.status is Status.CONVERGED
    assert again.n_iter <= 1
    assert again.dual == pytest.approx(first.dual, rel=1e-9)


@EACH_SOLVER
@pytest.mark.parametrize("formulation", ["c_svc", "eps_svr"])
def test_a_start_from_a_nearby_cost_saves_iterations(formulation, solve, data):
    settings = KernelSettings(tol=1e-5, working_set=8)
    near, problem = (rbf_problem(formulation, data, C=C) for C in (3.0, 3.3))
    start = solve(near, settings).beta
    cold, warm = solve(problem, settings), solve(problem, settings, start)
    assert warm.n_iter < cold.n_iter
    assert warm.dual == pytest.approx(cold.dual, rel=1e-5)


@EACH_SOLVER
@EACH_FORMULATION
def test_an_infeasible_start_is_replaced(formulation, solve, data):
    problem = rbf_problem(formulation, data)
    expected = solve(problem, KernelSettings(tol=1e-6))
    solution = solve(problem, KernelSettings(tol=1e-6), np.full(len(problem.start), 1e9))
    certify_kernel(problem, matrix_of(KERNELS["rbf"], data[0]), solution.beta, solution.offsets)
    assert solution.dual == pytest.approx(expected.dual, rel=1e-6)


@EACH_SOLVER
@EACH_FORMULATION
@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS.keys())
def test_single_precision_blocks_change_the_objective_little(kernel, formulation, solve, data):
    single, double = (
        solve(state(formulation, KernelRows(kernel, data[0], dtype=dtype), data), KernelSettings(tol=1e-5))
        for dtype in (np.float32, np.float64)
    )
    assert single.status is Status.CONVERGED
    assert single.dual == pytest.approx(double.dual, rel=1e-4)


@EACH_SOLVER
@pytest.mark.parametrize("kind", ["precomputed", "callable"])
@pytest.mark.parametrize("formulation", ["nu_svc", "eps_svr"])
def test_a_subset_of_given_kernel_values_is_the_problem_of_those_rows(formulation, kind, solve, data, rng):
    subset = rng.permutation(80)[:50]
    function = lambda A, B: pairwise_kernels(A, B, metric="rbf", gamma=0.4)  # noqa: E731
    given = matrix_of(KERNELS["rbf"], data[0]) if kind == "precomputed" else data[0]
    K = KernelRows(Kernel(kind, function=function), given, subset=subset, dtype=np.float64)
    part = [values[subset] for values in data]
    settings = KernelSettings(tol=1e-7, working_set=8, cache_size=0.003)
    expected, found = solve(rbf_problem(formulation, part), settings), solve(state(formulation, K, part), settings)
    assert found.dual == pytest.approx(expected.dual, rel=1e-6)
    np.testing.assert_allclose(found.offsets, expected.offsets, atol=1e-5)


@EACH_SOLVER
@EACH_FORMULATION
def test_the_order_of_rows_does_not_matter(formulation, solve, data, rng):
    order = rng.permutation(80)
    problem, shuffled = rbf_problem(formulation, data), rbf_problem(formulation, [part[order] for part in data])
    models = [p.model(solve(p, KernelSettings(tol=1e-8))) for p in (problem, shuffled)]
    np.testing.assert_allclose(models[0].coef[order], models[1].coef, atol=1e-5)
    assert models[0].intercept == pytest.approx(models[1].intercept, abs=1e-5)


@EACH_SOLVER
@EACH_FORMULATION
def test_weight_two_is_the_row_twice(formulation, solve, data):
    X, sign, y, cost = data
    heavier = np.where(np.arange(80) < 7, 2 * cost, cost)
    twice = [np.concatenate([part, part[:7]]) for part in data]
    problems = rbf_problem(formulation, (X, sign, y, heavier)), rbf_problem(formulation, twice)
    solutions = [solve(problem, KernelSettings(tol=1e-8)) for problem in problems]
    assert solutions[0].dual == pytest.approx(solutions[1].dual, rel=1e-7)
    np.testing.assert_allclose(solutions[0].offsets, solutions[1].offsets, atol=1e-5)


def test_a_working_set_that_grew_with_few_columns_fits_the_cache_with_all_of_them(rng):
    problem = rbf_problem("c_svc", make(rng, 4000), dtype=np.float32)
    decomposition = svmlight.Decomposition(problem, KernelSettings(cache_size=1.0), None)  # 65 rows of all columns
    decomposition.status()
    decomposition.iterate()
    few = np.zeros(len(decomposition.state.index), bool)
    few[:300] = True
    decomposition.state.shrink(few)
    assert decomposition.state.cache.n_slots > 130
    decomposition._n_unfinished = 1000  # pair steps do not converge, so that the working set grows at once
    decomposition._grow()
    decomposition.state.unshrink()
    assert decomposition._size <= decomposition.state.cache.n_slots
