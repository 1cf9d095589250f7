"""newton on losses with an entropy: predicted dual variables without a pass, certificates, warm starts by samples."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from widemargin.data.matrix import Matrix
from widemargin.problems import classification
from widemargin.problems.certificates import certify
from widemargin.solvers.contract import Settings, Status
from widemargin.solvers.newton import iterate as module
from widemargin.solvers.newton import smoothed
from widemargin.solvers.newton.conjugate_gradients import truncated_step
from widemargin.solvers.newton.iterate import Iterate
from widemargin.solvers.newton.row_state import set_directions
from widemargin.solvers.newton.smoothed import newton, newton_together

STEPS = pytest.mark.parametrize("has_matrix", [True, False], ids=["matrix", "conjugate gradients"])


def log_loss(rng, n, d, C, container=np.asarray, noise=1.0):
    X = rng.standard_normal((n, d))
    sign = np.where(X[:, 0] + noise * rng.standard_normal(n) > 0, 1.0, -1.0)
    return classification.log_loss(Matrix(container(X)), sign, np.full(n, C))


@pytest.fixture
def steps_by(monkeypatch):
    """Choose how steps are found, by the matrix or by conjugate gradients."""

    def choose(has_matrix):
        for place in (module, smoothed):
            monkeypatch.setattr(place, "has_matrix", lambda X: has_matrix)

    return choose


@STEPS
@pytest.mark.parametrize("C", [1e-3, 0.1, 100.0])
def test_the_predicted_dual_variables_combine_to_what_the_step_says(C, has_matrix, steps_by, rng):
    steps_by(has_matrix)
    one, n_unclipped = Iterate(log_loss(rng, 400, 7, C, csr_array), None, None, 1), 0
    for _ in range(6):
        d = one.direction()
        predicted = one._predicted_vector
        set_directions([one.rows], [d], [one.h], 1)
        np.testing.assert_allclose(one.rows._t, one.X.scores(d), rtol=1e-9, atol=1e-12)
        _, n_clipped = one.rows.predict_clipped()
        exact = one.X.combine(one.rows._predicted)
        of_clipped = predicted + one.rows.clipped_vector()
        np.testing.assert_allclose(of_clipped, exact, rtol=1e-9, atol=1e-9 * C * 400)
        if not n_clipped:
            np.testing.assert_allclose(predicted, exact, rtol=1e-9, atol=1e-9 * C * 400)
            n_unclipped += 1
        one.move(d)
    assert n_unclipped >= 2


@STEPS
@pytest.mark.parametrize("C", [1e-3, 1.0, 1e3])
def test_the_certificate_of_every_step_is_confirmed(C, has_matrix, steps_by, rng):
    steps_by(has_matrix)
    problem = log_loss(rng, 500, 12, C)
    whole = newton(problem, Settings(tol=1e-9))
    assert whole.status is Status.CONVERGED
    for n_steps in range(1, whole.n_iter + 1):
        solution = newton(problem, Settings(tol=1e-9, max_iter=n_steps))
        certificate = certify(problem, solution.w, solution.beta)
        assert certificate.primal == pytest.approx(solution.primal, rel=1e-12)
        assert certificate.dual == pytest.approx(solution.dual, rel=1e-9, abs=1e-9 * solution.primal)


def test_the_last_step_needs_no_gradient(rng, monkeypatch):
    passes, combine = [], Matrix.combine
    monkeypatch.setattr(Matrix, "combine", lambda self, *arguments: passes.append(1) or combine(self, *arguments))
    solution = newton(log_loss(rng, 2000, 5, 1e-3), Settings(tol=1e-3))
    assert solution.status is Status.CONVERGED
    assert len(passes) == solution.n_iter, "at zero and after each step but the last"


def test_an_iterate_goes_on_after_a_goal_that_was_reached(rng):
    problem = log_loss(rng, 800, 6, 1.0)
    loose, tight = Iterate(problem, None, None, 1), Iterate(problem, None, None, 1)
    loose.goal = 0.9
    for _ in range(4):
        smoothed._step([loose], 1)
        smoothed._step([tight], 1)
    np.testing.assert_array_equal(loose.best_w, tight.best_w)
    assert loose.dual == tight.dual


@STEPS
def test_several_problems_share_their_passes(has_matrix, steps_by, rng):
    steps_by(has_matrix)
    first = log_loss(rng, 600, 8, 0.5)
    problems = [first, first.scaled(30.0)]
    together = newton_together(problems, [Settings(tol=1e-6)] * 2, [None] * 2)
    for problem, solution in zip(problems, together, strict=True):
        alone = newton(problem, Settings(tol=1e-6))
        np.testing.assert_allclose(solution.w, alone.w, rtol=1e-9, atol=1e-12)
        assert certify(problem, solution.w, solution.beta).gap <= 1e-6


def test_a_truncated_step_returns_the_product_with_the_matrix(rng):
    B, g, factors, products = rng.standard_normal((20, 6)), rng.standard_normal(6), [], []
    d, image, n_products = truncated_step(
        lambda v: products.append(v) or B.T @ (B @ v), g, 0.5, take=lambda k: factors.append(k)
    )
    np.testing.assert_allclose(image, B.T @ (B @ d), rtol=1e-10)
    np.testing.assert_allclose(np.array(factors) @ np.array(products), d, rtol=1e-10)
    assert len(factors) == n_products > 0
    assert np.linalg.norm(image + 1.5 * d + g) <= 0.3 * np.linalg.norm(g) * (1 + 1e-9)


def test_many_rows_for_each_column_or_small_costs_start_from_an_eighth(rng):
    many, few = log_loss(rng, 9000, 3, 100.0), log_loss(rng, 9000, 40, 100.0)
    ratios = [smoothed._sampling_ratio(one) for one in (many, few, few.scaled(1e-5))]
    assert ratios == [8, None, 8]
    solution = newton(many, Settings())
    assert solution.n_iter <= 2
    assert solution.history["passes"][0] > 1.0, "steps over the sample came first"
    assert certify(many, solution.w, solution.beta).gap <= 1e-3
