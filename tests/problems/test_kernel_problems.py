"""Kernel problems: feasible starts, primal objectives of textbooks, and small problems solved on paper."""

import numpy as np
import pytest

from widemargin.kernels.functions import Kernel
from widemargin.kernels.rows import KernelRows
from widemargin.problems.certificates import certify_kernel, kernel_violation
from widemargin.problems.classification import c_svc, nu_svc
from widemargin.problems.one_class import one_class
from widemargin.problems.regression import eps_svr, nu_svr
from widemargin.solvers.contract import KernelSettings, Status
from widemargin.solvers.registry import KERNEL_SOLVERS

EPSILON, NU = 0.2, 0.35
FORMULATIONS = ["c_svc", "nu_svc", "one_class", "eps_svr", "nu_svr"]
EACH_SOLVER = pytest.mark.parametrize(
    "solve", [KERNEL_SOLVERS[name] for name in ("svmlight", "smo")], ids=["svmlight", "smo"]
)
TIGHT = KernelSettings(tol=1e-10, max_iter=100_000)


def rows(X, kernel=None):
    return KernelRows(kernel or Kernel("linear"), np.asarray(X, dtype=np.float64), dtype=np.float64)


def state(formulation, K, sign, y, cost, nu=NU):
    return {
        "c_svc": lambda: c_svc(K, sign, cost),
        "nu_svc": lambda: nu_svc(K, sign, cost, nu),
        "one_class": lambda: one_class(K, cost, nu),
        "eps_svr": lambda: eps_svr(K, y, cost, EPSILON),
        "nu_svr": lambda: nu_svr(K, y, cost, nu),
    }[formulation]()


def group_sums(problem, beta):
    return np.add.reduceat(beta, problem.ends[:-1])


def random_feasible(problem, rng):
    """Return a random feasible beta: pairs of a group are moved from the start by random steps within their bounds."""
    beta = problem.start.copy()
    for _ in range(10 * len(beta)):
        g = rng.integers(len(problem.ends) - 1)
        i, j = rng.integers(problem.ends[g], problem.ends[g + 1], 2)
        if i != j:
            step = rng.random() * min(problem.upper[i] - beta[i], beta[j] - problem.lower[j])
            beta[i], beta[j] = beta[i] + step, beta[j] - step
    return np.clip(beta, problem.lower, problem.upper)


@pytest.fixture
def case(rng):
    """30 rows: features, signs, targets, costs; two rows have zero cost."""
    X = rng.standard_normal((30, 4))
    sign = np.where(X[:, 0] + rng.standard_normal(30) > 0, 1.0, -1.0)
    cost = rng.uniform(0.2, 2.0, 30)
    cost[[4, 20]] = 0.0
    return X, sign, np.sin(X[:, 1]) + X[:, 0], cost


@pytest.mark.parametrize("formulation", FORMULATIONS)
class TestStart:
    """The starting point of every formulation is feasible."""

    def test_it_satisfies_the_box_constraints_which_fix_rows_of_zero_cost(self, formulation, case):
        problem = state(formulation, rows(case[0]), *case[1:])
        assert ((problem.lower <= problem.start) & (problem.start <= problem.upper)).all()
        free = problem.lower < problem.upper
        assert not free[np.isin(problem.row, [4, 20])].any()
        assert free[~np.isin(problem.row, [4, 20])].all()

    def test_groups_are_contiguous_and_every_row_has_its_dual_variables(self, formulation, case):
        problem = state(formulation, rows(case[0]), *case[1:])
        per_row = 2 if "svr" in formulation else 1
        assert (problem.ends[0], problem.ends[-1]) == (0, 30 * per_row)
        assert len(problem.ends) == (3 if formulation in ("nu_svc", "nu_svr") else 2)
        assert (np.bincount(problem.row) == per_row).all()

    def test_its_group_sums_are_those_of_the_formulation(self, formulation, case):
        X, sign, y, cost = case
        problem = state(formulation, rows(X), sign, y, cost)
        total = cost.sum()
        expected = {
            "c_svc": [0.0],
            "nu_svc": [NU * total / 2, -NU * total / 2],
            "one_class": [NU * total],
            "eps_svr": [0.0],
            "nu_svr": [NU * total / 2, -NU * total / 2],
        }[formulation]
        np.testing.assert_allclose(group_sums(problem, problem.start), expected, atol=1e-12)

    @pytest.mark.parametrize("nu", [1e-9, 0.1, 0.5, 0.8])
    def test_any_feasible_nu_gives_a_feasible_start(self, formulation, nu, case):
        X, _, y, _ = case
        problem = state(formulation, rows(X), np.where(np.arange(30) % 2, 1.0, -1.0), y, np.ones(30), nu)
        assert ((problem.lower <= problem.start) & (problem.start <= problem.upper)).all()
        certify_kernel(problem, X @ X.T, problem.start, np.zeros(len(problem.ends) - 1))

    def test_certificates_refuse_a_beta_that_is_not_feasible(self, formulation, case):
        X, sign, y, cost = case
        problem = state(formulation, rows(X), sign, y, cost)
        offsets = np.zeros(len(problem.ends) - 1)
        outside = problem.start.copy()
        outside[3] = problem.upper[3] + 1e-6
        with pytest.raises(ValueError, match=r"beta\[3\] = .* lies outside"):
            certify_kernel(problem, X @ X.T, outside, offsets)
        unbalanced = problem.start.copy()
        t = int(np.argmax(problem.upper - problem.start))
        unbalanced[t] += 0.5 * (problem.upper[t] - problem.start[t])
        with pytest.raises(ValueError, match=r"group [01] sum to"):
            certify_kernel(problem, X @ X.T, unbalanced, offsets)


def hinge(margin):
    return np.maximum(0.0, margin)


def textbook_primal(formulation, K, sign, y, cost, coef, offsets):
    """Return the primal objective of textbooks at f = K coef, with the margin, tube and threshold that offsets give."""
    f, half_norm = K @ coef, 0.5 * coef @ K @ coef
    if formulation == "c_svc":
        return half_norm + cost @ hinge(1 - sign * (f - offsets[0]))
    if formulation == "one_class":
        return half_norm - offsets[0] * NU * cost.sum() + cost @ hinge(offsets[0] - f)
    if formulation == "eps_svr":
        return half_norm + cost @ hinge(np.abs(y - f + offsets[0]) - EPSILON)
    middle = offsets.mean()
    if formulation == "nu_svc":
        margin = (offsets[0] - offsets[1]) / 2
        return half_norm - margin * NU * cost.sum() + cost @ hinge(margin - sign * (f - middle))
    tube = (offsets[1] - offsets[0]) / 2
    return half_norm + tube * NU * cost.sum() + cost @ hinge(np.abs(y - f + middle) - tube)


@pytest.mark.parametrize("formulation", FORMULATIONS)
def test_the_certified_primal_objective_is_that_of_the_textbooks_at_any_feasible_point(formulation, case, rng):
    X, sign, y, cost = case
    problem = state(formulation, rows(X), sign, y, cost)
    K = X @ X.T
    order = {"nu_svc": [1.0, -1.0], "nu_svr": [-1.0, 1.0]}.get(formulation, [1.0])
    for _ in range(20):
        beta = random_feasible(problem, rng)
        # The margin of ν-SVC and the tube of ν-SVR are not negative.
        offsets = rng.standard_normal() + np.array(order) * np.abs(rng.standard_normal(len(order)))
        coef = np.bincount(problem.row, beta, minlength=30)
        certificate = certify_kernel(problem, K, beta, offsets)
        expected = textbook_primal(formulation, K, sign, y, cost, coef, offsets)
        assert certificate.primal == pytest.approx(expected, rel=1e-10, abs=1e-10)
        assert certificate.dual == pytest.approx(-0.5 * coef @ K @ coef - problem.linear @ beta, rel=1e-10)
        assert certificate.dual <= certificate.primal


@pytest.mark.parametrize("formulation", FORMULATIONS)
def test_no_dual_value_exceeds_the_primal_value_of_any_other_point(formulation, case, rng):
    X, sign, y, cost = case
    problem = state(formulation, rows(X), sign, y, cost)
    points = [random_feasible(problem, rng) for _ in range(15)]
    certificates = [certify_kernel(problem, X @ X.T, b, rng.standard_normal(len(problem.ends) - 1)) for b in points]
    assert max(c.dual for c in certificates) <= min(c.primal for c in certificates)


@pytest.mark.parametrize("formulation", FORMULATIONS)
def test_the_violation_is_the_largest_of_all_pairs_that_can_move(formulation, case, rng):
    X, sign, y, cost = case
    problem = state(formulation, rows(X), sign, y, cost)
    beta = random_feasible(problem, rng)
    F = (X @ X.T)[np.ix_(problem.row, problem.row)] @ beta + problem.linear
    worst = 0.0
    for begin, end in zip(problem.ends[:-1], problem.ends[1:], strict=True):
        for i in range(begin, end):
            for j in range(begin, end):
                if beta[i] < problem.upper[i] and beta[j] > problem.lower[j]:
                    worst = max(worst, F[j] - F[i])
    assert kernel_violation(problem, X @ X.T, beta) == pytest.approx(worst, rel=1e-12)


@pytest.mark.parametrize(
    ("sign", "weight", "most"),
    [
        ([1, 1, 1, -1], [1, 1, 1, 1], 0.5),
        ([1, -1, -1, -1], [4, 1, 1, 1], 6 / 7),
        ([1, 1, -1, -1], [1, 0, 1, 1], 2 / 3),
    ],
)
def test_a_nu_too_large_for_the_smaller_class_is_refused_with_the_largest_possible(sign, weight, most):
    sign, weight = np.array(sign, dtype=float), np.array(weight, dtype=float)
    K = rows(np.eye(4))
    with pytest.raises(ValueError, match=rf"nu must be at most {most:.6g} for these classes, got {most + 0.01}"):
        nu_svc(K, sign, weight, most + 0.01)
    problem = nu_svc(K, sign, weight, most)
    np.testing.assert_allclose(group_sums(problem, problem.start), np.array([1, -1]) * most * weight.sum() / 2)


# Problems solved on paper ------------------------------------------------------------------------------------------


@EACH_SOLVER
@pytest.mark.parametrize("C", [0.1, 0.5, 3.0])
def test_c_svc_of_two_points(solve, C):
    # x = ±1, sign = x, K = x z. beta = (a, −a) by the sum, so the objective is ½ (2a)² − 2a, least at a = ½, or at C
    # if that is less. w = 2a; the dual value is 2a − 2a²; by symmetry the offset is 0.
    a = min(C, 0.5)
    problem = c_svc(rows([[1.0], [-1.0]]), np.array([1.0, -1.0]), np.full(2, C))
    solution = solve(problem, TIGHT)
    model = problem.model(solution)
    np.testing.assert_allclose(model.coef, [a, -a], atol=1e-9)
    assert model.intercept == pytest.approx(0.0, abs=1e-9)
    assert solution.dual == pytest.approx(2 * a - 2 * a**2)
    assert model.facts["obj"] == pytest.approx(2 * a**2 - 2 * a)
    assert model.facts["nu"] == pytest.approx(a / C)


@EACH_SOLVER
def test_c_svc_of_two_points_and_their_distance_in_a_kernels_space(solve):
    # K_11 = K_22 = 1, K_12 = k = exp(−gamma d²): ½ a² (2 − 2k) − 2a is least at a = 1/(1 − k), the dual value is a.
    k = np.exp(-0.7 * 4.0)
    problem = c_svc(rows([[0.0], [2.0]], Kernel("rbf", gamma=0.7)), np.array([-1.0, 1.0]), np.full(2, 1e3))
    solution = solve(problem, TIGHT)
    np.testing.assert_allclose(solution.beta, np.array([-1.0, 1.0]) / (1 - k), rtol=1e-9)
    assert solution.dual == pytest.approx(1 / (1 - k))


@EACH_SOLVER
def test_c_svc_of_exclusive_or(solve):
    # Corners of a square, sign = product of the coordinates, K = (1 + <x, z>)²: 9 on the diagonal, 1 elsewhere.
    # With beta_i = sign_i a: (K beta)_i = 9 sign_i a − sign_i a = 8 a sign_i, and the margin 1 asks for a = 1/8.
    # The dual value is Σ|beta|/2 = 1/4, the offset 0.
    X = np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]])
    sign = X[:, 0] * X[:, 1]
    problem = c_svc(rows(X, Kernel("poly", gamma=1.0, coef0=1.0, degree=2)), sign, np.full(4, 10.0))
    solution = solve(problem, TIGHT)
    model = problem.model(solution)
    np.testing.assert_allclose(model.coef, sign / 8, atol=1e-9)
    assert model.intercept == pytest.approx(0.0, abs=1e-9)
    assert solution.dual == pytest.approx(0.25)


@EACH_SOLVER
def test_c_svc_of_two_points_one_of_them_cheaper(solve):
    # x = 1 costs 0.2, x = −1 costs 5: the sum ties both to a = 0.2. The dear point is free, so its score is −1 exactly:
    # w = 2a = 0.4, −0.4 + b = −1, b = −0.6.
    problem = c_svc(rows([[1.0], [-1.0]]), np.array([1.0, -1.0]), np.array([0.2, 5.0]))
    model = problem.model(solve(problem, TIGHT))
    np.testing.assert_allclose(model.coef, [0.2, -0.2])
    assert model.intercept == pytest.approx(-0.6)
    assert "nu" not in model.facts, "costs differ: there is no single C that a fraction could refer to"


@EACH_SOLVER
@pytest.mark.parametrize(("nu", "margin", "obj"), [(0.25, 1.0, 0.5), (0.75, 15.0, 12.5 / 225)])
def test_nu_svc_of_four_points_on_a_line(solve, nu, margin, obj):
    # x = 1, 3 positive, −1, −3 negative, weights 1: each class has the sum 4 nu / 2 = 2 nu. w = Σ beta x is least when
    # the inner points take as much as they can.
    #   nu = ¼: beta = ½ on ±1, w = 1. These are free: r₊ = 1, r₋ = −1, margin 1. Objective ½ w² / margin² = ½.
    #   nu = ¾: 1 on ±1, ½ on ±3, w = 2 (1 + 1.5) = 5. The outer points are free: r₊ = 5 · 3 = 15, ½ 25 / 225.
    x = np.array([3.0, -1.0, 1.0, -3.0])
    sign = np.sign(x)
    alpha = {0.25: [0.0, 0.5, 0.5, 0.0], 0.75: [0.5, 1.0, 1.0, 0.5]}[nu]
    problem = nu_svc(rows(x[:, None]), sign, np.ones(4), nu)
    model = problem.model(solve(problem, TIGHT))
    np.testing.assert_allclose(model.coef, sign * alpha / margin, atol=1e-9)
    assert model.intercept == pytest.approx(0.0, abs=1e-9)
    assert model.facts["C"] == pytest.approx(1 / margin)
    assert model.facts["obj"] == pytest.approx(obj)
    assert model.facts["rho"] == pytest.approx(0.0, abs=1e-9)


@EACH_SOLVER
def test_one_class_of_a_triangle_and_its_centre(solve):
    # Three points of pairwise kernel k and a centre of kernel c with each, weights 1, ν = ½: the sum is 2. With s on
    # each corner and 2 − 3s on the centre: ½ (3 s² (1 + 2k) + (2 − 3s)²) + 3 s (2 − 3s) c has the derivative
    # 3 s (1 + 2k) − 3 (2 − 3s) + 3 c (2 − 6s) = 0, so s = (2 − 2c) / (4 + 2k − 6c) if the corners are not full.
    X, gamma = np.array([[1.0, 0.0], [-0.5, 0.75**0.5], [-0.5, -(0.75**0.5)], [0.0, 0.0]]), 2.0
    k, c = np.exp(-gamma * 3.0), np.exp(-gamma * 1.0)
    s = (2 - 2 * c) / (4 + 2 * k - 6 * c)
    assert 0 < s < 1
    assert 0 < 2 - 3 * s < 1
    problem = one_class(rows(X, Kernel("rbf", gamma=gamma)), np.ones(4), 0.5)
    solution = solve(problem, TIGHT)
    model = problem.model(solution)
    np.testing.assert_allclose(model.coef, [s, s, s, 2 - 3 * s], rtol=1e-8)
    rho = s * (1 + 2 * k) + (2 - 3 * s) * c
    assert model.facts["rho"] == pytest.approx(rho)
    assert model.intercept == pytest.approx(-rho)
    assert model.facts["obj"] == pytest.approx(0.5 * rho * 2), "all are free: ½ beta'K beta = ½ ρ Σ beta"


@EACH_SOLVER
@pytest.mark.parametrize("C", [0.1, 10.0])
def test_eps_svr_of_two_points(solve, C):
    # x = ±1, y = 3 ± 2: by symmetry f(x) = 3 + w x. ½ w² + 2C max(0, 2 − w − ε) is least at w = 2 − ε, where the
    # dual variables are ±w/2, or at w = 2C if C is less than (2 − ε)/2.
    w = min(2 - EPSILON, 2 * C)
    problem = eps_svr(rows([[1.0], [-1.0]]), np.array([5.0, 1.0]), np.full(2, C), EPSILON)
    solution = solve(problem, TIGHT)
    model = problem.model(solution)
    np.testing.assert_allclose(model.coef, [w / 2, -w / 2], atol=1e-9)
    assert model.intercept == pytest.approx(3.0)
    assert solution.primal == pytest.approx(0.5 * w**2 + 2 * C * (2 - w - EPSILON))
    assert model.facts["rho"] == pytest.approx(-3.0)


@EACH_SOLVER
@pytest.mark.parametrize("C", [1.0, 40.0])
def test_nu_svr_of_two_points(solve, C):
    # x = ±1, y = 3 ± 2: ½ w² + 2C (max(0, 2 − w − ε) + ν ε) with ε free. A larger tube costs 2Cν per unit and saves 2C
    # while the points are outside: they never are (ν < 1), so ε = 2 − w and ½ w² + 2Cν (2 − w) is least at w = 2Cν,
    # or at w = 2 without any tube if that is less.
    w = min(2.0, 2 * C * NU)
    problem = nu_svr(rows([[1.0], [-1.0]]), np.array([5.0, 1.0]), np.full(2, C), NU)
    solution = solve(problem, TIGHT)
    model = problem.model(solution)
    np.testing.assert_allclose(model.coef, [w / 2, -w / 2], atol=1e-8)
    assert model.intercept == pytest.approx(3.0)
    assert model.facts["epsilon"] == pytest.approx(2 - w, abs=1e-8)
    assert solution.primal == pytest.approx(0.5 * w**2 + 2 * C * NU * (2 - w))


@EACH_SOLVER
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_rows_of_one_sign_have_dual_variables_of_zero_and_an_intercept_of_that_sign(solve, sign):
    problem = c_svc(rows(np.arange(5.0)[:, None]), np.full(5, sign), np.ones(5))
    solution = solve(problem, TIGHT)
    model = problem.model(solution)
    assert (solution.status, solution.n_iter) == (Status.CONVERGED, 0)
    assert not model.coef.any()
    assert model.intercept == sign


@EACH_SOLVER
@pytest.mark.parametrize("formulation", ["c_svc", "eps_svr"])
def test_rows_of_zero_cost_give_the_zero_function(solve, formulation, case):
    X, sign, y, _ = case
    problem = state(formulation, rows(X), sign, y, np.zeros(30))
    solution = solve(problem, TIGHT)
    assert solution.status is Status.CONVERGED
    assert not problem.model(solution).coef.any()
    assert np.isfinite(solution.offsets).all()
    assert solution.primal == solution.dual == 0.0
