"""The judge is right on problems solved on paper, and catches a fit that is wrong in any of the ways it looks for."""

from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
from tests.certificates import kernel_trial, linear_trial, planes_trial
from tests.certificates.exact_numbers import Exact
from tests.certificates.judge import LinearJudge
from tests.certificates.kernel_judge import KernelJudge
from tests.certificates.nasty import INTERCEPTS, Linear, linear
from tests.certificates.nasty_kernel import KINDS, Kernel, kernel
from tests.certificates.nasty_planes import planes
from tests.certificates.planes_judge import MeasureJudge, PairJudge, measure_bracket
from tests.certificates.reference import kernel_bracket, linear_bracket, pairs_bracket


def test_exact_numbers_do_not_round():
    values = Exact.of(np.array([1e300, 1.0, -1e300, 2.0**-1074]))
    assert values.total() == 1 + Fraction(1, 2**1074)
    assert (values * values)[3].mantissa * Fraction(2) ** (2 * values.exponent) == Fraction(1, 2**2148)


def test_long_double_is_taken_whole():
    third = np.longdouble(1) / 3
    assert abs(Exact.of(np.array([third])).total() - Fraction(1, 3)) < Fraction(float(np.finfo(np.longdouble).eps))


@pytest.mark.parametrize(
    ("loss", "optimum"),
    [
        # x = 2, y = 1, C = 1: w = 1/2 has no loss; the square at w = 2c·2/(1 + 2c·4) has c (1 − 2w)².
        ("hinge", Fraction(1, 8)),
        ("squared_hinge", Fraction(1, 2) * Fraction(4, 9) ** 2 + Fraction(1, 9) ** 2),
        ("epsilon_insensitive", Fraction(1, 8)),
        ("squared_epsilon_insensitive", Fraction(1, 2) * Fraction(4, 9) ** 2 + Fraction(1, 9) ** 2),
    ],
)
def test_the_reference_finds_the_optimum_known_on_paper(loss, optimum):
    problem = Linear(np.array([[2.0]]), np.array([1.0]), None, loss, 1.0, 0.0, "none", 1.0, 1e-4)
    lower, upper = linear_bracket(problem, LinearJudge(problem))
    assert lower <= optimum <= upper
    assert upper - lower < 1e-15


@pytest.mark.parametrize("intercept", INTERCEPTS)
def test_two_rows_with_an_intercept_are_known_on_paper(intercept):
    # x = 0 and 2, signs −1 and +1. Free and penalised: w = 1, b = −1. None: w = 1/2, and one loss of 1.
    problem = Linear(np.array([[0.0], [2.0]]), np.array([-1.0, 1.0]), None, "hinge", 100.0, 0.0, intercept, 1.0, 1e-4)
    optimum = {"free": Fraction(1, 2), "none": Fraction(1, 8) + 100, "penalised": Fraction(1)}[intercept]
    lower, upper = linear_bracket(problem, LinearJudge(problem))
    assert lower <= optimum <= upper
    assert upper - lower < 1e-13


@pytest.mark.parametrize(
    ("kind", "optimum"),
    [
        # Rows 0 and 2, linear kernel, targets −1 and 1, C = 10, nu = 1/2, epsilon = 1/10.
        ("c_svc", Fraction(1, 2)),
        ("nu_svc", Fraction(-1, 2)),
        ("one_class", Fraction(0)),
        ("eps_svr", Fraction(81, 200)),
        ("nu_svr", Fraction(1, 2)),
    ],
)
def test_kernel_problems_of_two_rows_are_known_on_paper(kind, optimum):
    problem = Kernel(
        kind, np.array([[0.0], [2.0]]), np.array([-1.0, 1.0]), None, "linear", 1.0, 2, 1.0, 10.0, 0.5, 0.1, 1e-3
    )
    lower, upper = kernel_bracket(KernelJudge(problem))
    assert lower - Fraction(1, 10**15) <= optimum <= upper + Fraction(1, 10**15)
    assert upper - lower < 1e-13


def test_references_are_sharp_on_nearly_all_problems():
    """The few whose rounding in long double is too much are counted, so that the net cannot become one of holes."""
    brackets = [linear_bracket(problem, LinearJudge(problem)) for problem in map(linear, range(20))]
    brackets += [kernel_bracket(KernelJudge(kernel(seed))) for seed in range(10)]
    brackets += [pairs_bracket(PairJudge(planes(seed))) for seed in (0, 1, 2, 4)]
    brackets += [measure_bracket(MeasureJudge(planes(seed))) for seed in (3, 7)]
    assert all(lower <= upper + Fraction(1e-15) * abs(upper) for lower, upper in brackets)
    assert sum(upper - lower > Fraction(1e-8) * abs(upper) for lower, upper in brackets) <= 3


LIES = {
    "objective": {"objective_": lambda model: model.objective_ * (1 + 1e-8)},
    "bound": {"gap_": lambda model: 0.0, "objective_": lambda model: model.objective_},
    "converged": {"gap_": lambda model: 1.0},
    "dual": {"dual_coef_": lambda model: 1e9 * model.dual_coef_},
}


@pytest.mark.parametrize("lie", LIES)
def test_a_linear_fit_that_lies_is_caught(lie):
    problem = Linear(
        np.array([[1.0], [2.0], [-1.0], [0.5]]), np.array([1.0, 1.0, -1.0, -1.0]), None, "hinge", 1.0, 0.0, "none", 1.0,
        1e-4,
    )  # fmt: skip
    judge = LinearJudge(problem)
    lower, least = linear_bracket(problem, judge)
    w = np.array([0.8])  # not the best
    objective = judge.objective(w, 0.0)
    honest = SimpleNamespace(
        coef_=w, objective_=float(objective), gap_=float((objective - lower) / objective) * (1 + 1e-9),
        status_="max_iter reached", dual_coef_=np.array([0.0, 0.0, 0.0, -0.0]),
    )  # fmt: skip
    del honest.dual_coef_
    assert list(linear_trial.mistakes(judge, honest, objective, least)) == []
    liar = SimpleNamespace(**vars(honest), **({"dual_coef_": np.array([1.0, 0.0, -1.0, 0.0])} if lie == "dual" else {}))
    if lie == "converged":
        liar.status_ = "converged"
    for name, change in LIES[lie].items():
        setattr(liar, name, change(liar))
    assert lie in {rule for rule, _ in linear_trial.mistakes(judge, liar, objective, least)}


def test_a_kernel_fit_that_lies_is_caught():
    problem = Kernel(
        "c_svc", np.array([[0.0], [2.0]]), np.array([-1.0, 1.0]), None, "linear", 1.0, 2, 1.0, 10.0, 0.5, 0.1, 1e-3
    )
    judge = KernelJudge(problem)
    point = (np.array([-0.4, 0.4]), -0.8, 0.0)
    objective = judge.objective(*point)
    _, least = kernel_bracket(judge)
    model = SimpleNamespace(objective_=float(objective), gap_=1.0, status_="max_iter reached", tol=1e-3)
    assert list(kernel_trial.mistakes(judge, model, point, objective, least)) == []
    for rule, change in {
        "objective": {"objective_": model.objective_ * 1.001, "gap_": 1e-4},
        "bound": {"gap_": 1e-6},
        "poor": {"status_": "converged"},
    }.items():
        liar = SimpleNamespace(**{**vars(model), **change})
        assert rule in {rule for rule, _ in kernel_trial.mistakes(judge, liar, point, objective, least)}
    unbalanced = (np.array([-0.4, 0.5]), -0.8, 0.0)
    assert "dual" in {rule for rule, _ in kernel_trial.mistakes(judge, model, unbalanced, objective, least)}


@pytest.mark.parametrize("seed", [0, 3])
def test_a_fit_by_planes_that_lies_is_caught(seed):
    problem = planes(seed)
    judge = MeasureJudge(problem) if problem.kind == "measure" else PairJudge(problem)
    zero = np.zeros(problem.X.shape[1])
    objective = judge.objective(zero, np.zeros(1)) if problem.kind == "measure" else judge.objective(zero)
    _, least = measure_bracket(judge) if problem.kind == "measure" else pairs_bracket(judge)
    model = SimpleNamespace(objective_=float(objective), gap_=1.0, status_="max_iter reached")
    assert list(planes_trial.mistakes(judge, model, objective, least)) == []
    liar = SimpleNamespace(objective_=float(objective) * 1.001, gap_=1e-9, status_="max_iter reached")
    assert {rule for rule, _ in planes_trial.mistakes(judge, liar, objective, least)} >= {"objective", "bound"}


def test_every_kind_of_kernel_problem_is_generated():
    assert {kernel(seed).kind for seed in range(10)} == set(KINDS)
