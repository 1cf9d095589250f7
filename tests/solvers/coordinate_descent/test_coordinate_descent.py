"""dcd and avsf: judged by certificate, by an exact QP solver, by invariances, and by problems solved on paper."""

import threading
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from widemargin.data.matrix import Matrix
from widemargin.problems import classification, regression
from widemargin.problems.certificates import certify, violations
from widemargin.solvers import auto as auto_module
from widemargin.solvers.contract import Settings, Status
from widemargin.solvers.registry import LINEAR_SOLVERS

SWEEPS = {name: LINEAR_SOLVERS[name] for name in ("dcd", "avsf", "climb")}
DUAL_SOLVERS = SWEEPS | {"auto": LINEAR_SOLVERS["auto"]}
QUADRATIC_LOSSES = sorted(set(classification.LOSSES) - set(classification.ENTROPIES)) + sorted(regression.LOSSES)
TAKEN = [(name, loss) for name in DUAL_SOLVERS for loss in QUADRATIC_LOSSES]
TAKEN += [(name, loss) for name in ("dcd", "auto") for loss in classification.ENTROPIES]
EACH_SOLVER_AND_LOSS = pytest.mark.parametrize(
    ("solver", "loss"),
    [(DUAL_SOLVERS[name], loss) for name, loss in TAKEN],
    ids=[f"{name}-{loss}" for name, loss in TAKEN],
)
CONTAINERS = {
    "dense": np.asarray,
    "csr": csr_array,
    "dense-f32": lambda X: X.astype(np.float32),
    "csr-f32": lambda X: csr_array(X.astype(np.float32)),
}


def state(loss, X, target, cost, constant=0.0, epsilon=0.1):
    matrix = Matrix(X, constant)
    if loss in classification.LOSSES:
        return classification.LOSSES[loss](matrix, np.where(target > 0, 1.0, -1.0), cost)
    return regression.LOSSES[loss](matrix, target, cost, epsilon)


def exact_optimum(problem, exact_qp):
    """Return the optimal dual value and a bound on its error, by an exact QP solver on beta = p − q, p and q >= 0."""
    X = np.asarray(problem.X.values.todense() if hasattr(problem.X.values, "todense") else problem.X.values)
    if problem.X.constant:
        X = np.hstack([X, np.full((len(X), 1), problem.X.constant)])
    squared = problem.curvature > 0
    # The variables of the QP are p / scale and q / scale, without those whose bounds are both zero.
    bound = np.concatenate([np.maximum(problem.upper, 0), np.maximum(-problem.lower, 0)])
    free = bound > 0
    scale = np.where(np.tile(squared, 2), np.tile(0.5 / np.where(squared, problem.curvature, 1.0), 2), bound)[free]
    K = X @ X.T + np.diag(problem.curvature)
    G = np.block([[K, -K], [-K, K]])[np.ix_(free, free)] * np.outer(scale, scale)
    c = np.concatenate([problem.epsilon - problem.target, problem.epsilon + problem.target])[free] * scale
    value, error = exact_qp(G, c, bound[free] / scale)
    return -value, error


@pytest.mark.parametrize("container", CONTAINERS.values(), ids=CONTAINERS.keys())
@EACH_SOLVER_AND_LOSS
def test_the_judge_confirms_the_gap(solver, loss, container, clouds):
    X, sign, cost = clouds
    problem = state(loss, container(X), 1.5 * sign, cost, constant=1.0)
    solution = solver(problem, Settings(tol=1e-8))
    certificate = certify(problem, solution.w, solution.beta)
    assert solution.status is Status.CONVERGED
    assert -1e-12 < certificate.gap <= 1e-8
    np.testing.assert_allclose([solution.primal, solution.dual], certificate, rtol=1e-10)


PROBLEMS = st.fixed_dictionaries(
    {
        "seed": st.integers(0, 2**32 - 1),
        "n": st.integers(1, 12),
        "d": st.integers(1, 6),
        "C": st.sampled_from([1e-4, 0.01, 1.0, 30.0]),
        "loss": st.sampled_from(QUADRATIC_LOSSES),
        "solver": st.sampled_from(sorted(DUAL_SOLVERS)),
        "constant": st.sampled_from([0.0, 1.0, 10.0]),
        "spoil": st.sampled_from(["nothing", "zero row", "twins", "zero column", "zero weight", "constant column"]),
        "sparse": st.booleans(),
    }
)


def spoiled(X, cost, spoil):
    """Return the problem with a defect that breaks careless solvers."""
    if spoil == "zero row":
        X[0] = 0.0
    elif spoil == "twins":
        X[-1] = X[0]
    elif spoil == "zero column":
        X[:, 0] = 0.0
    elif spoil == "constant column":
        X[:, 0] = 1.0
    elif spoil == "zero weight":
        cost[0] = 0.0
    return X, cost


@given(case=PROBLEMS)
@hypothesis_settings(max_examples=150)
def test_small_problems_are_solved_as_an_exact_qp_solver_does(case, exact_qp):
    rng = np.random.default_rng(case["seed"])
    X = np.round(rng.standard_normal((case["n"], case["d"])), 2)
    X, cost = spoiled(X, case["C"] * rng.uniform(0.2, 2.0, case["n"]), case["spoil"])
    target = np.round(rng.standard_normal(case["n"]), 1)
    problem = state(case["loss"], csr_array(X) if case["sparse"] else X, target, cost, case["constant"])
    solution = DUAL_SOLVERS[case["solver"]](problem, Settings(tol=1e-9, max_iter=200_000))
    optimum, reference_error = exact_optimum(problem, exact_qp)
    scale = max(abs(optimum), cost.sum())
    assert reference_error <= 1e-7 * scale
    assert solution.dual <= optimum + 1e-6 * scale
    assert solution.primal >= optimum - 1e-6 * scale
    assert solution.gap <= 1e-9 or solution.status is Status.STALLED


@pytest.mark.parametrize("solver", DUAL_SOLVERS.values(), ids=DUAL_SOLVERS.keys())
def test_two_points_on_a_line_have_the_margin_found_on_paper(solver):
    # x = +1 and −1, hinge, C = 10: w = 1, beta = ±1/2, objective 1/2.
    problem = classification.hinge(Matrix(np.array([[1.0], [-1.0]])), np.array([1.0, -1.0]), np.full(2, 10.0))
    solution = solver(problem, Settings(tol=1e-10))
    np.testing.assert_allclose(solution.w, [1.0])
    np.testing.assert_allclose(solution.primal, 0.5)


@pytest.mark.parametrize("solver", DUAL_SOLVERS.values(), ids=DUAL_SOLVERS.keys())
def test_one_squared_residual_is_the_ridge_solution_found_on_paper(solver):
    # ½w² + C(y − xw)², x = 2, y = 3, C = 5: w = 2Cxy / (1 + 2Cx²) = 60/41.
    problem = regression.squared_epsilon_insensitive(Matrix(np.array([[2.0]])), np.array([3.0]), np.array([5.0]), 0.0)
    np.testing.assert_allclose(solver(problem, Settings(tol=1e-12)).w, [60 / 41])


@EACH_SOLVER_AND_LOSS
class TestInvariances:
    """The optimum does not depend on how the same problem is stated."""

    tight = Settings(tol=1e-12, max_iter=50_000)

    @pytest.fixture
    def solve(self, solver, loss):
        return lambda X, target, cost: solver(state(loss, X, target, cost), self.tight).w

    def test_order_of_rows(self, solve, clouds, rng):
        X, sign, cost = clouds
        order = rng.permutation(len(X))
        np.testing.assert_allclose(solve(X, sign, cost), solve(X[order], sign[order], cost[order]), atol=1e-6)

    def test_weight_two_is_the_row_twice(self, solve, clouds):
        X, sign, cost = clouds
        heavier = np.where(np.arange(80) < 7, 2 * cost, cost)
        twice = [np.concatenate([part, part[:7]]) for part in (X, sign, cost)]
        np.testing.assert_allclose(solve(X, sign, heavier), solve(*twice), atol=1e-6)

    def test_weight_zero_is_the_row_absent(self, solve, clouds):
        X, sign, cost = clouds
        lighter = np.where(np.arange(80) < 7, 0.0, cost)
        np.testing.assert_allclose(solve(X, sign, lighter), solve(X[7:], sign[7:], cost[7:]), atol=1e-6)

    def test_flipped_labels_flip_the_weights(self, solve, clouds):
        X, sign, cost = clouds
        np.testing.assert_allclose(solve(X, sign, cost), -solve(X, -sign, cost), atol=1e-6)

    def test_an_appended_zero_feature_gets_no_weight(self, solve, clouds):
        X, sign, cost = clouds
        wider = solve(np.hstack([X, np.zeros((80, 1))]), sign, cost)
        assert wider[-1] == 0.0
        np.testing.assert_allclose(solve(X, sign, cost), wider[:-1], atol=1e-6)

    def test_scaled_features_are_a_scaled_cost(self, solve, clouds):
        X, sign, cost = clouds
        np.testing.assert_allclose(solve(2 * X, sign, cost) * 2, solve(X, sign, 4 * cost), atol=1e-6)


@pytest.mark.parametrize("solver", SWEEPS.values(), ids=SWEEPS.keys())
class TestContract:
    """What every solver guarantees to its caller."""

    @pytest.fixture
    def problem(self, rng):
        """Large enough that a batch is one sweep, and hard enough that a few sweeps do not suffice."""
        X = rng.standard_normal((4000, 30))
        return classification.hinge(Matrix(X), np.where(rng.random(4000) < 0.5, 1.0, -1.0), np.full(4000, 10.0))

    def test_the_same_seed_gives_the_same_bits_and_another_seed_another_path(self, solver, problem):
        once, again, other = (solver(problem, Settings(max_iter=5, seed=seed)) for seed in (1, 1, 2))
        assert once.w.tobytes() == again.w.tobytes()
        assert once.w.tobytes() != other.w.tobytes()

    def test_the_number_of_threads_changes_no_bit(self, solver, problem):
        one, two = (solver(problem, Settings(max_iter=8, n_jobs=n)) for n in (1, 2))
        assert one.w.tobytes() == two.w.tobytes()
        assert one.history["gap"].tobytes() == two.history["gap"].tobytes()

    def test_four_fits_at_once_give_the_same_model_four_times(self, solver, problem):
        results = [None] * 4

        def work(k):
            results[k] = solver(problem, Settings(max_iter=10)).w.tobytes()

        threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(set(results)) == 1
        assert results[0] == solver(problem, Settings(max_iter=10)).w.tobytes()

    def test_max_iter_ends_the_run_and_says_so(self, solver, problem):
        solution = solver(problem, Settings(max_iter=3))
        assert (solution.n_iter, solution.status) == (3, Status.MAX_ITER)
        assert certify(problem, solution.w, solution.beta).gap == pytest.approx(solution.gap, rel=1e-9)

    def test_max_seconds_ends_the_run_and_says_so(self, solver, problem):
        solution = solver(problem, Settings(max_seconds=0.0))
        assert (solution.n_iter, solution.status) == (1, Status.MAX_SECONDS)

    def test_a_callback_receives_progress_and_can_stop(self, solver, problem):
        received = []

        def callback(progress):
            received.append(progress)
            return len(received) == 4

        solution = solver(problem, Settings(callbacks=(callback,)))
        assert solution.status is Status.CALLBACK
        assert [progress.iteration for progress in received] == [1, 2, 3, 4]
        assert received[-1].gap > 0
        assert received[-1].tol == 1e-3

    def test_ctrl_c_keeps_the_model_so_far(self, solver, problem):
        def interrupt(progress):
            if progress.iteration == 3:
                raise KeyboardInterrupt

        solution = solver(problem, Settings(callbacks=(interrupt,)))
        assert solution.status is Status.INTERRUPTED
        assert solution.n_iter == 3
        assert certify(problem, solution.w, solution.beta).gap == pytest.approx(solution.gap, rel=1e-9)

    def test_an_interrupt_elsewhere_stops_this_run_too(self, solver, problem):
        settings = Settings()
        settings.interrupt.set()
        assert solver(problem, settings).status is Status.INTERRUPTED

    def test_an_error_in_a_callback_reaches_the_caller(self, solver, problem):
        def fail(progress):
            raise RuntimeError("no more")

        with pytest.raises(RuntimeError, match="no more"):
            solver(problem, Settings(callbacks=(fail,)))

    def test_history_ends_at_the_returned_point_and_the_dual_never_falls(self, solver, problem):
        solution = solver(problem, Settings(max_iter=40))
        last = solution.history[-1]
        assert (last["primal"], last["dual"], last["iteration"]) == (solution.primal, solution.dual, solution.n_iter)
        assert (np.diff(solution.history["dual"]) >= -1e-9 * abs(solution.dual)).all()
        assert (np.diff(solution.history["seconds"]) > 0).all()

    def test_a_warm_start_within_the_tolerance_is_done_at_once(self, solver, clouds):
        problem = state("squared_hinge", *clouds)
        first = solver(problem, Settings(tol=1e-10))
        again = solver(problem, Settings(tol=1e-8), start=first.beta)
        assert (again.n_iter, again.status) == (0, Status.CONVERGED)
        np.testing.assert_allclose(again.w, first.w, atol=1e-12)

    def test_a_warm_start_outside_the_box_is_clipped(self, solver, clouds):
        problem = state("hinge", *clouds)
        solution = solver(problem, Settings(tol=1e-8), start=np.full(80, 1e9))
        assert certify(problem, solution.w, solution.beta).gap <= 1e-8

    def test_the_kkt_rule_leaves_no_violation_above_the_tolerance(self, solver, clouds):
        X, sign, cost = clouds
        problem = state("hinge", X, sign, cost)
        solution = solver(problem, Settings(tol=1e-7, stopping="kkt"))
        assert solution.status is Status.CONVERGED
        # Violations are those at the visit of each row; later steps of the same sweep change them a little.
        assert violations(problem, solution.w, solution.beta).max() < 1e-6

    def test_a_tolerance_of_zero_ends_when_nothing_moves(self, solver, clouds):
        solution = solver(state("squared_hinge", *clouds), Settings(tol=0.0, max_iter=100_000))
        assert solution.status in (Status.STALLED, Status.CONVERGED)
        assert abs(solution.gap) < 1e-13

    def test_measuring_costs_less_than_a_tenth_of_the_work(self, solver, problem):
        solution = solver(problem, Settings(max_iter=200))
        # Timed on a9a with one thread, a measurement takes 0.34 of a sweep of dcd and 0.2 of one of avsf.
        share = 0.34 if solution.solver == "dcd" else 0.2
        assert share * (len(solution.history) - 1) <= 0.1 * solution.history["passes"][-1]

    def test_enormous_and_tiny_costs_give_finite_weights_and_true_gaps(self, solver, clouds):
        X, sign, cost = clouds
        tiny = solver(state("hinge", X, sign, 1e-12 * cost), Settings())
        assert tiny.status is Status.CONVERGED
        huge = state("hinge", X, sign, 1e12 * cost)
        solution = solver(huge, Settings(max_iter=50))
        assert np.isfinite(solution.w).all()
        assert certify(huge, solution.w, solution.beta).gap == pytest.approx(solution.gap, rel=1e-6)

    def test_rows_whose_norm_overflows_are_refused(self, solver):
        problem = classification.hinge(Matrix(np.array([[1.0], [1e200]])), np.array([1.0, -1.0]), np.ones(2))
        with pytest.raises(ValueError, match="Row 1 of X is too long"):
            solver(problem, Settings())


def test_preferences_follow_the_papers_rule(rng):
    from widemargin.solvers.coordinate_descent.avsf import AdaptiveSweeps
    from widemargin.solvers.coordinate_descent.state import Coordinates

    X = rng.standard_normal((3000, 25))
    problem = classification.hinge(Matrix(X), np.where(rng.random(3000) < 0.5, 1.0, -1.0), np.full(3000, 1.0))
    sweeps = AdaptiveSweeps(Coordinates(problem), Settings())
    rows = sweeps.coordinates.rows
    sweeps.sweep(0, 1)
    assert (rows["preference"] == 1.0).all(), "the first sweep only computes the average gain"
    for _ in range(30):
        report = sweeps.sweep(0, 1)
        assert 0.97 * 3000 <= report.visits <= 3000
        assert sweeps.total == pytest.approx(rows["preference"].sum())
    assert rows["preference"].min() >= 1 / 20
    assert rows["preference"].max() <= 20
    assert rows["preference"].max() > 3 * rows["preference"].min()


def test_schedules_draw_each_row_as_often_as_its_preference_says(rng):
    from widemargin.solvers.coordinate_descent.avsf import _draw
    from widemargin.solvers.coordinate_descent.state import ROW, random_state

    rows = np.zeros(50, dtype=ROW)
    rows["preference"] = rng.uniform(0.05, 4.0, 50)
    total = rows["preference"].sum()
    schedule, random = np.empty(51, dtype=np.uint32), random_state(3)
    counts = np.zeros(50)
    for _ in range(4000):
        counts += np.bincount(schedule[: _draw(rows, total, schedule, random)], minlength=50)
    np.testing.assert_allclose(counts / 4000, 50 * rows["preference"] / total, rtol=0.1)


def test_shuffles_are_uniform():
    from widemargin.solvers.coordinate_descent.state import random_state, shuffle

    random, seen = random_state(0), {}
    for _ in range(6000):
        order = np.arange(3, dtype=np.uint32)
        shuffle(order, random)
        seen[tuple(order)] = seen.get(tuple(order), 0) + 1
    assert len(seen) == 6
    assert max(seen.values()) < 1.2 * min(seen.values())


def test_settings_cannot_be_changed_by_accident():
    with pytest.raises(AttributeError, match="cannot assign"):
        Settings().tol = 1.0
    assert replace(Settings(), tol=1.0).tol == 1.0


@pytest.mark.parametrize("loss", QUADRATIC_LOSSES)
def test_climb_solves_the_problem_itself_at_large_costs(loss, clouds):
    X, sign, cost = clouds
    problem = state(loss, X, 1.5 * sign, 1e2 * cost, constant=1.0)
    solution = DUAL_SOLVERS["climb"](problem, Settings(tol=1e-6, max_iter=1_000_000))
    assert solution.solver == "climb"
    assert solution.status is Status.CONVERGED
    assert certify(problem, solution.w, solution.beta).gap <= 1e-6


def test_every_entry_of_the_history_of_climb_is_a_valid_bound(clouds):
    X, sign, cost = clouds
    problem = state("squared_hinge", X, sign, 1e2 * cost)
    optimum = DUAL_SOLVERS["dcd"](problem, Settings(tol=1e-12, max_iter=1_000_000)).primal
    history = DUAL_SOLVERS["climb"](problem, Settings(tol=1e-9, max_iter=1_000_000)).history
    assert len(history) >= 3
    assert (history["dual"] <= optimum * (1 + 1e-9)).all()
    assert (history["primal"] >= optimum * (1 - 1e-9)).all()


def auto_choice(X, sign, cost, **options):
    return DUAL_SOLVERS["auto"](state("hinge", X, sign, cost), Settings(max_iter=200), **options).solver


@pytest.fixture
def only_sweeps(monkeypatch):
    """Let `auto` choose among sweeps for problems of any size."""
    monkeypatch.setattr(auto_module, "takes_active_set", lambda problem: False)
    monkeypatch.setattr(auto_module, "takes_problem", lambda problem: False)
    monkeypatch.setattr(auto_module, "_price", lambda X, **kind: np.inf)


def test_auto_takes_dcd_for_small_costs_and_climb_for_large_ones(clouds, only_sweeps):
    X, sign, cost = clouds
    assert auto_choice(X, sign, 0.01 * cost) == "dcd"
    assert auto_choice(X, sign, 1e4 * cost) == "climb"
    assert auto_choice(X, sign, 1e4 * cost, start=np.zeros(80)) == "dcd"


def test_auto_takes_dcd_for_separable_rows_and_climb_for_wide_ones(clouds, rng, only_sweeps):
    X, sign, cost = clouds
    assert auto_choice(X + 100 * sign[:, None], sign, cost) == "dcd"
    wide = rng.standard_normal((80, 200))
    assert auto_choice(wide, sign, 10 * cost) == "climb"
    assert auto_choice(wide, sign, 10 * cost, start=np.zeros(80)) == "avsf"


def test_auto_chooses_the_same_whatever_the_order_of_rows(clouds, rng):
    X, sign, cost = clouds
    for factor in (0.01, 1.0, 100.0):
        order = rng.permutation(80)
        assert auto_choice(X, sign, factor * cost) == auto_choice(X[order], sign[order], factor * cost[order])


@pytest.mark.parametrize("solver", ["dcd", "avsf", "climb"])
@pytest.mark.parametrize("tol", [1e-2, 1e-4, 1e-6])
def test_converged_means_within_the_tolerance_even_where_the_primal_value_jumps(solver, tol, clouds):
    X, sign, cost = clouds
    problem = state("squared_hinge", X, 1.5 * sign, 1e3 * cost, constant=1.0)
    solution = DUAL_SOLVERS[solver](problem, Settings(tol=tol, max_iter=1_000_000))
    assert solution.status is Status.CONVERGED
    assert certify(problem, solution.w, solution.beta).gap <= tol
