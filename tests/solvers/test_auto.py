"""auto: the solver and the reason, continuation by another solver, several problems at once, and invariances."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_array

from widemargin import LinearSVC, LinearSVR
from widemargin.data.blocks.row_blocks import RowBlocks
from widemargin.data.blocks.streamed import StreamedMatrix
from widemargin.data.matrix import Matrix
from widemargin.problems import classification
from widemargin.problems.certificates import certify
from widemargin.solvers import auto as module
from widemargin.solvers.auto import AUTO, auto, chosen
from widemargin.solvers.contract import Progress, Settings, Status
from widemargin.solvers.cutting_planes.methods import ocas
from widemargin.solvers.newton.smoothed import newton


def problem_of(rng, n, d, C, noise=1.0, loss=classification.hinge, container=np.asarray):
    X = rng.standard_normal((n, d))
    sign = np.where(X[:, 0] + noise * rng.standard_normal(n) > 0, 1.0, -1.0)
    X[:, 0] += sign * (0.0 if noise else 1.0)
    return loss(Matrix(container(X)), sign, np.full(n, C))


def test_small_problems_are_solved_exactly(rng):
    for n, d, C in ((20, 5, 1e5), (3000, 20, 100.0), (60, 400, 0.01)):
        problem = problem_of(rng, n, d, C)
        for one in (problem, replace(problem, free_intercept=True)):
            solution = auto(one, Settings())
            assert (solution.solver, solution.why) == ("newton", "a small problem")
            assert solution.is_exact


def test_newton_solves_problems_with_many_rows_for_each_column(rng):
    solution = auto(problem_of(rng, 40_000, 5, 1e-4), Settings())
    assert (solution.solver, solution.why) == ("newton", "many rows for each column")


def test_costs_decide_if_the_price_is_moderate(rng, no_active_set):
    large, small = (problem_of(rng, 3000, 40, C) for C in (100.0, 1e-4))
    assert auto(large, Settings()).why == "large costs"
    solution = auto(small, Settings())
    assert (solution.solver, solution.why) == ("dcd", "small costs")


def test_sweeps_solve_problems_with_fewer_rows_than_columns(rng, no_active_set):
    assert auto(problem_of(rng, 100, 400, 0.01), Settings()).solver == "dcd"
    assert not AUTO.is_better_together(problem_of(rng, 100, 400, 100.0), Settings(), None)


def test_log_losses_take_newton_or_sweeps_by_price_and_costs(rng):
    def why(n, d, C, density=1.0):
        container = csr_array if density < 1.0 else np.asarray
        problem = problem_of(rng, n, d, C, loss=classification.log_loss)
        kept = problem.X.values * (rng.random((n, d)) < density)
        problem = classification.log_loss(
            Matrix(container(kept)), np.sign(problem.upper + problem.lower), problem.upper
        )
        return module._chosen_for_entropy(problem, Settings(), None)

    assert why(20_000, 20, 1e-4) == why(20_000, 20, 10.0) == (newton, "many rows for each column")
    assert why(4000, 400, 1e-4) == (module._sweeps_then_newton, "small costs")
    assert why(4000, 400, 10.0) == (newton, "many rows for each column")
    assert why(200, 300, 1e-3) == (newton, "small costs")
    assert why(200, 300, 1.0) == (module._sweeps_then_newton, "many columns or few rows")
    assert why(200, 3000, 1e-3, density=0.02) == (module._sweeps_then_newton, "many columns or few rows")


def test_the_forecast_takes_a_gap_as_of_the_pass_in_which_it_was_measured():
    def asks_to_switch(measured):
        forecast = module._SwitchForecast(10.0, Settings(tol=1e-3), by_last=True)
        progress = [Progress("dcd", k, 0.0, float(k), 1.0, 0.0, gap, 1e-3, 0, 1) for k, gap in measured]
        return [forecast(one) for one in progress]

    assert asks_to_switch([(0, 1.0), (1, 0.64), (2, 0.64), (3, 0.64), (4, 0.64)]) == [False] * 5
    assert asks_to_switch([(1, 0.64), (4, 0.63)]) == [False, True]


def test_sweeps_solve_problems_with_a_start_or_the_kkt_rule(rng, no_active_set):
    problem = problem_of(rng, 3000, 40, 100.0)
    assert auto(problem, Settings(max_iter=2), np.zeros(3000)).why == "a start"
    assert auto(problem, Settings(stopping="kkt", max_iter=2)).why == "stopping='kkt'"


def test_newton_or_ocas_solves_problems_with_a_free_intercept(rng, no_active_set):
    few, many = (
        replace(problem_of(rng, 300, 5, 1.0), free_intercept=True),
        replace(problem_of(rng, 50, 3100, 1.0), free_intercept=True),
    )
    assert chosen(few, Settings())[0] is newton
    assert chosen(many, Settings())[0] is ocas
    assert auto(few, Settings(tol=1e-6), np.zeros(300)).gap <= 1e-6


@pytest.mark.parametrize("C", [1e-4, 0.01, 1.0, 100.0])
@pytest.mark.parametrize("container", [np.asarray, csr_array], ids=["dense", "csr"])
def test_the_choice_does_not_depend_on_the_order_of_rows(container, C, rng):
    problem = problem_of(rng, 2000, 30, C)
    order = rng.permutation(2000)
    X = np.asarray(problem.X.values)[order]
    other = classification.hinge(Matrix(container(X)), problem.target[order], np.full(2000, C))
    same = replace(problem, X=Matrix(container(np.asarray(problem.X.values))))
    assert chosen(other, Settings()) == chosen(same, Settings())


def test_sbm_solves_single_problems_on_disk_with_small_costs_and_many_columns(rng, monkeypatch):
    X = rng.standard_normal((3000, 300))
    sign = np.where(X[:, 0] + rng.standard_normal(3000) > 0, 1.0, -1.0)

    def solver_of(C, settings, loss=classification.hinge, **changes):
        rows = StreamedMatrix(RowBlocks.of_array(X), 0.0, 1e6)
        problem = replace(loss(rows, sign, np.full(3000, C)), **changes)
        return auto(problem, settings), AUTO.is_better_together(problem, settings, None)

    solution, is_better_together = solver_of(1e-4, Settings(tol=1e-3))
    assert (solution.solver, solution.why) == ("sbm", "rows in blocks, small costs")
    assert solution.gap <= 1e-3
    assert is_better_together  # several problems share the passes of newton
    assert solver_of(1.0, Settings(tol=1e-3, max_iter=2))[0].solver == "newton"
    assert solver_of(1e-4, Settings(tol=1e-6, max_iter=2))[0].solver == "newton"
    assert solver_of(1e-4, Settings(tol=1e-3, max_iter=2), free_intercept=True)[0].solver == "newton"
    monkeypatch.setattr(module, "_MAX_PRICE_OF_NEWTON", 10.0)
    for C, expected in ((1e-4, "sbm"), (2e-3, "newton")):  # 0.03 and 0.6 coordinate steps, or a few more
        solution = solver_of(C, Settings(tol=1e-3, max_iter=2), classification.squared_hinge)[0]
        assert solution.solver == expected
    monkeypatch.setattr(module, "_MAX_PRICE_OF_NEWTON", 1e9)
    assert solver_of(1e-4, Settings(tol=1e-3, max_iter=2))[0].solver == "newton"


def test_newton_continues_slow_sweeps(rng, monkeypatch, no_active_set):
    monkeypatch.setattr(module, "_TIME_FRACTION_AFTER_SWEEPS", 0.0)
    monkeypatch.setattr(module, "_MAX_PRICE_PER_HEIGHT", 0.0)
    monkeypatch.setattr(module, "_PASSES_BEFORE_FORECAST", 0.0)
    problem = problem_of(rng, 3000, 40, 1.0)
    solution = auto(problem, Settings(tol=1e-6))
    assert (solution.solver, solution.why) == ("climb, then newton", "sweeps turned out to be slow")
    check_joined(problem, solution)


def test_sweeps_continue_slow_steps_and_steps_continue_slow_sweeps(rng, monkeypatch, no_active_set):
    monkeypatch.setattr(module, "_NEWTON_STEPS_BEFORE_SWITCH", 1)
    problem = problem_of(rng, 3000, 40, 100.0)
    solution = auto(problem, Settings(tol=1e-6, max_iter=100_000))
    assert solution.solver == "newton, then dcd, then newton"
    assert solution.why == "steps turned out to be slow"
    check_joined(problem, solution)


def check_joined(problem, solution):
    history = solution.history
    assert solution.status is Status.CONVERGED
    certificate = certify(problem, solution.w, solution.beta)
    assert certificate.gap <= 1e-6 * (1 + 1e-6)
    np.testing.assert_allclose(certificate, [solution.primal, solution.dual], rtol=1e-9)
    assert solution.n_iter == history["iteration"][-1]
    for name in ("iteration", "seconds", "passes"):
        assert (np.diff(history[name]) >= 0).all()
    assert (history["dual"] <= solution.primal * (1 + 1e-9)).all()


def test_limits_hold_for_the_sum_of_both_solvers(rng, monkeypatch, no_active_set):
    monkeypatch.setattr(module, "_NEWTON_STEPS_BEFORE_SWITCH", 2)
    problem = problem_of(rng, 3000, 40, 100.0)
    assert auto(problem, Settings(tol=0.0, max_iter=4)).n_iter == 4
    assert auto(problem, Settings(tol=0.0, max_iter=2)).status is Status.MAX_ITER
    assert auto(problem, Settings(tol=1e-9, max_seconds=0.0)).status is Status.MAX_SECONDS


def test_newton_does_not_continue_sweeps_that_a_callback_stopped(rng, no_active_set):
    problem = problem_of(rng, 3000, 40, 1e-3)
    solution = auto(problem, Settings(tol=0.0, callbacks=(lambda progress: progress.iteration >= 2,)))
    assert solution.status is Status.CALLBACK
    assert solution.solver == "dcd"


@pytest.mark.parametrize("penalize", [True, False])
def test_the_problems_of_several_classes_are_solved_together(penalize, rng, no_active_set):
    X, y = rng.standard_normal((4000, 20)), rng.integers(0, 3, 4000)
    X[np.arange(4000), y] += 1.0
    model = LinearSVC(loss="hinge", C=10.0, tol=1e-6, max_iter=None, penalize_intercept=penalize).fit(X, y)
    assert model.solver_.startswith("newton (")
    assert len(model.history_) == 3
    other = LinearSVC(loss="hinge", C=10.0, tol=1e-6, max_iter=None, penalize_intercept=penalize)
    other.set_params(solver="climb" if penalize else "ocas").fit(X, y)
    assert model.objective_ == pytest.approx(other.objective_, rel=2e-6)
    assert (model.predict(X) == other.predict(X)).mean() > 0.999


def test_a_regression_model_has_the_reason_in_solver_(rng):
    X = rng.standard_normal((40_000, 4))
    model = LinearSVR(epsilon=0.1).fit(X, X @ np.arange(4.0) + rng.standard_normal(40_000))
    assert model.solver_ == "newton (many rows for each column)"
    assert model.gap_ <= 1e-4


def test_too_many_columns_are_refused_by_name(rng):
    X = csr_array(rng.standard_normal((2100, 3001)) * (rng.random((2100, 3001)) < 0.01))
    with pytest.raises(ValueError, match="solver='newton' is for up to 3000 columns, or few rows, X is 2100 x 3002"):
        LinearSVC(solver="newton").fit(X, np.arange(2100) % 2)


def test_newton_takes_many_columns_if_there_are_few_rows(rng):
    X, y = rng.standard_normal((10, 3001)), np.arange(10) % 2
    assert LinearSVC(solver="newton").fit(X, y).status_ == "converged"
