"""LinearSVC(loss="log_loss"): logistic regression with a certificate, by every solver that takes it."""

import pickle
import warnings

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.sparse import csr_matrix, random_array
from scipy.special import expit
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris, make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import scale

from widemargin import LinearSVC, LinearSVCCV, c_path, certificates, load_model, save_model
from widemargin.data.blocks import placement
from widemargin.data.blocks.reader import open_blocks
from widemargin.data.blocks.writer import write_blocks
from widemargin.data.matrix import Matrix
from widemargin.problems import classification
from widemargin.problems.formulations import DualQP
from widemargin.solvers.contract import Settings
from widemargin.solvers.coordinate_descent.entropy_sweeps import SmoothCoordinates, SmoothSweeps
from widemargin.solvers.registry import specs_of

TAKERS = ["auto", "dcd", "newton"]
OTHERS = sorted(set(specs_of(DualQP)) - set(TAKERS))
INTERCEPTS = {
    "none": {"fit_intercept": False},
    "penalised": {"intercept_scaling": 3.0},
    "free": {"penalize_intercept": False},
}


def log_loss(solver="auto", **options):
    return LinearSVC(loss="log_loss", solver=solver, **{"tol": 1e-6, "max_iter": 10_000} | options)


def objective(model, X, y, weight=1.0, C=1.0, penalised=0.0):
    """Return ½|w|² + Σ C weight log(1 + exp(−y score)), plus half the square of a penalised weight."""
    scores = X @ model.coef_.ravel() + np.ravel(model.intercept_)[0]
    sign = np.where(y == model.classes_[1], 1.0, -1.0)
    square = 0.5 * float(model.coef_.ravel() @ model.coef_.ravel()) + 0.5 * penalised**2
    return square + float((C * weight * np.logaddexp(0.0, -sign * scores)).sum())


def signs(rng, n_rows=300, n_columns=6):
    X = rng.standard_normal((n_rows, n_columns))
    return X, np.where(X[:, 0] - 0.7 * X[:, 1] + rng.standard_normal(n_rows) > 0.3, 1, -1)


@pytest.mark.parametrize("kind", INTERCEPTS)
@pytest.mark.parametrize("solver", TAKERS)
def test_the_minimum_is_that_of_a_general_method(solver, kind, rng):
    X, y = signs(rng, 60, 3)
    weight = rng.integers(0, 4, len(y)).astype(float)
    if kind == "free" and solver == "dcd":
        with pytest.raises(ValueError, match=r"penalize_intercept=False needs solver="):
            log_loss(solver, **INTERCEPTS[kind]).fit(X, y)
        return
    model = log_loss(solver, C=2.0, tol=1e-10, **INTERCEPTS[kind]).fit(X, y, weight)
    constant = {"none": 0.0, "penalised": 3.0, "free": 1.0}[kind]

    def risk(v):
        penalty = 0.5 * v @ v if kind != "free" else 0.5 * v[:3] @ v[:3]
        return penalty + (2.0 * weight * np.logaddexp(0.0, -y * (X @ v[:3] + constant * v[3]))).sum()

    found = minimize(risk, np.zeros(4), method="BFGS", options={"gtol": 1e-9})
    assert model.objective_ == pytest.approx(found.fun, rel=1e-8)
    np.testing.assert_allclose(model.coef_.ravel(), found.x[:3], atol=1e-4)
    assert model.gap_ <= 1e-10


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("solver", TAKERS)
@pytest.mark.parametrize("C", [0.01, 1.0, 1000.0])
def test_the_gap_is_what_the_certificates_find(solver, C, dtype, sparse, rng):
    X, y = signs(rng)
    X = csr_matrix(X.astype(dtype)) if sparse else X.astype(dtype)
    weight = rng.integers(0, 3, len(y)).astype(float)
    C = min(C, 10.0) if solver == "dcd" else C  # which takes a number of sweeps in proportion to C
    model = log_loss(solver, C=C, class_weight={1: 2.0}).fit(X, y, weight)
    cost = C * weight * np.where(y > 0, 2.0, 1.0)
    problem = classification.log_loss(Matrix(X, 1.0), y.astype(float), cost)
    w = np.append(model.coef_, model.intercept_)
    found = certificates.certify(problem, w, model.dual_coef_[0])
    assert found.primal == pytest.approx(model.objective_, rel=1e-10)
    assert found.gap <= model.gap_ + 1e-12
    assert model.gap_ <= 1e-6
    assert model.status_ == "converged"


@pytest.mark.parametrize("solver", ["auto", "newton"])
def test_a_free_intercept_is_certified(solver, rng):
    X, y = signs(rng)
    model = log_loss(solver, C=10.0, penalize_intercept=False, tol=1e-8).fit(X, y)
    problem = classification.log_loss(Matrix(X), y.astype(float), np.full(len(y), 10.0), free_intercept=True)
    found = certificates.certify(problem, model.coef_[0], model.dual_coef_[0], model.intercept_[0])
    assert found.primal == pytest.approx(model.objective_, rel=1e-10)
    assert found.gap <= model.gap_ + 1e-12
    assert model.gap_ <= 1e-8


@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
def test_the_model_is_that_of_scikit_learns_logistic_regression(C):
    X, y = load_breast_cancer(return_X_y=True)
    X = scale(X)
    ours = log_loss(C=C, penalize_intercept=False, tol=1e-9).fit(X, y)
    theirs = LogisticRegression(C=C, tol=1e-10, max_iter=100_000, solver="newton-cholesky").fit(X, y)
    assert objective(ours, X, y, C=C) <= objective(theirs, X, y, C=C) * (1 + 1e-9)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=2e-4)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))


@pytest.mark.parametrize("solver", TAKERS)
def test_a_penalised_intercept_is_that_of_liblinear(solver, rng):
    X, y = signs(rng)
    ours = log_loss(solver, C=5.0, tol=1e-9).fit(X, y)
    theirs = LogisticRegression(C=5.0, solver="liblinear", tol=1e-10, max_iter=100_000).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-3)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-3)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-3)


@pytest.mark.parametrize("solver", TAKERS)
def test_several_classes_are_one_against_the_rest_with_normalised_probabilities(solver):
    X, y = load_iris(return_X_y=True)
    model = log_loss(solver, tol=1e-8).fit(X, y)
    singles = [log_loss(solver, tol=1e-8).fit(X, y == k) for k in range(3)]
    np.testing.assert_allclose(model.coef_, np.vstack([one.coef_ for one in singles]), atol=1e-3)
    p = expit(model.decision_function(X))
    np.testing.assert_allclose(model.predict_proba(X), p / p.sum(axis=1, keepdims=True), rtol=1e-12)
    np.testing.assert_allclose(np.exp(model.predict_log_proba(X)), model.predict_proba(X), rtol=1e-12)
    np.testing.assert_array_equal(model.predict(X), model.predict_proba(X).argmax(axis=1))


def test_probabilities_of_huge_scores_are_numbers():
    model = log_loss().fit([[0.0], [1.0], [2.0]], [0, 1, 2])
    model.coef_ = np.array([[-1e300], [-1e300], [-1e299]])
    probabilities = model.predict_proba([[1.0], [-1.0], [0.0]])
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
    np.testing.assert_allclose(probabilities[0], [0.0, 0.0, 1.0])
    two = log_loss().fit([[0.0], [1.0]], ["a", "b"])
    two.coef_ = np.array([[1e300]])
    np.testing.assert_array_equal(two.predict_proba([[1.0], [-1.0]]), [[0.0, 1.0], [1.0, 0.0]])
    assert np.isfinite(two.predict_log_proba([[1.0]])[0, 1])
    assert two.predict_log_proba([[1.0]])[0, 0] == pytest.approx(-1e300)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_other_losses_have_no_probabilities(loss):
    model = LinearSVC(loss=loss).fit([[0.0], [1.0]], [0, 1])
    assert not hasattr(model, "predict_proba")
    assert not hasattr(model, "predict_log_proba")
    with pytest.raises(AttributeError, match="predict_proba"):
        model.predict_proba([[0.0]])


@pytest.mark.parametrize("solver", OTHERS)
def test_other_solvers_refuse_the_loss_and_name_those_that_take_it(solver, rng):
    X, y = signs(rng)
    with pytest.raises(ValueError, match=f"solver='{solver}' takes losses .* Use solver='auto', 'dcd' or 'newton'"):
        log_loss(solver).fit(X, y)


def test_crammer_and_singers_problem_refuses_the_loss():
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match=r"has a loss of its own, got loss='log_loss': use multi_class='ovr'"):
        log_loss(multi_class="crammer_singer").fit(X, y)


def test_a_free_intercept_needs_both_classes():
    with pytest.raises(ValueError, match="needs rows of positive weight in both classes"):
        log_loss(penalize_intercept=False).fit([[0.0], [1.0]], [0, 1], sample_weight=[0.0, 1.0])
    model = log_loss().fit([[0.0], [1.0]], [0, 1], sample_weight=[0.0, 1.0])
    assert model.gap_ <= 1e-6


@pytest.mark.parametrize("solver", TAKERS)
def test_a_row_of_weight_two_is_two_rows(solver, rng):
    X, y = signs(rng, 100)
    weight = rng.integers(0, 3, 100)
    one = log_loss(solver, tol=1e-9).fit(X, y, weight)
    other = log_loss(solver, tol=1e-9).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    assert one.objective_ == pytest.approx(other.objective_, rel=1e-8)
    np.testing.assert_allclose(one.coef_, other.coef_, atol=1e-4)


@pytest.mark.parametrize("solver", TAKERS)
def test_exchanged_labels_negate_the_weights(solver, rng):
    X, y = signs(rng, 100)
    one, other = log_loss(solver, tol=1e-10).fit(X, y), log_loss(solver, tol=1e-10).fit(X, -y)
    np.testing.assert_allclose(one.coef_, -other.coef_, atol=1e-5)
    np.testing.assert_allclose(one.predict_proba(X), other.predict_proba(X)[:, ::-1], atol=1e-5)


@pytest.mark.parametrize("solver", TAKERS)
@pytest.mark.parametrize(("size", "C"), [(1e8, 1.0), (1e-8, 1.0), (1.0, 1e10), (1.0, 1e-10), (1e3, 1e6)])
def test_sizes_of_any_kind_end_with_a_certificate_that_holds(solver, size, C, rng):
    X, y = signs(rng, 100)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = log_loss(solver, C=C, tol=1e-4, max_iter=300).fit(size * X, y)
    problem = classification.log_loss(Matrix(size * X, 1.0), y.astype(float), np.full(len(y), C))
    found = certificates.certify(problem, np.append(model.coef_, model.intercept_), model.dual_coef_[0])
    assert np.isfinite(model.coef_).all()
    assert found.gap <= model.gap_ * (1 + 1e-9) + 1e-9
    if solver != "dcd":
        assert model.gap_ <= 1e-4


def test_numbers_that_leave_double_precision_are_refused():
    with pytest.raises(ValueError, match=r"leaves double precision|squared norm overflows"):
        log_loss().fit([[1e200], [-1e200]], [0, 1])
    with pytest.raises(ValueError, match="leaves double precision"):
        log_loss(C=1e290).fit([[1e100], [-1e100]], [0, 1])


@pytest.mark.parametrize("solver", TAKERS)
def test_many_columns_are_taken(solver, rng):
    X = random_array((200, 5000), density=0.01, rng=rng, format="csr")
    y = np.where(X[:, :50].sum(axis=1) > 0.2, 1, -1)
    model = log_loss(solver, C=10.0).fit(X, y)
    assert model.gap_ <= 1e-6
    assert model.objective_ == pytest.approx(log_loss("dcd", C=10.0).fit(X, y).objective_, rel=1e-5)


@pytest.mark.parametrize("C", [1e-3, 0.1, 1.0])
def test_the_first_sweep_tells_the_gap_that_it_leaves(C, rng):
    X = Matrix(random_array((400, 2000), density=0.02, format="csr", rng=rng))
    problem = classification.log_loss(X, np.where(rng.random(400) < 0.5, 1.0, -1.0), np.full(400, C))
    sweeps = SmoothSweeps(SmoothCoordinates(problem), Settings())
    report = sweeps.sweep(0, 1)
    half_norm, loss, dual_terms = sweeps.coordinates.measure()
    left = 2.0 * half_norm + loss - dual_terms
    assert 0.5 * left < report.gap_left < 2.0 * left
    assert left < report.gap_estimate < 2.0 * loss
    assert report.loss == pytest.approx(loss, rel=0.25)


def test_a_gap_that_cannot_be_small_yet_is_not_measured(rng):
    X, y = random_array((3000, 6000), density=0.01, format="csr", rng=rng), rng.integers(0, 2, 3000)
    history = log_loss("dcd", C=10.0, tol=1e-3, fit_intercept=False, random_state=0).fit(X, y).history_
    assert len(history) <= 4 < history["iteration"][-1] + 1
    assert history["iteration"][1] > 1


def test_newton_continues_slow_sweeps_over_fewer_rows_than_columns(rng):
    X = rng.standard_normal((150, 20)) @ rng.standard_normal((20, 400)) + 0.1 * rng.standard_normal((150, 400))
    y = np.where(X[:, 0] + rng.standard_normal(150) > 0.0, 1, -1)
    model = log_loss(C=100.0, tol=1e-5).fit(X, y)
    assert model.solver_ == "dcd, then newton (sweeps turned out to be slow)"
    assert model.gap_ <= 1e-5
    few = log_loss(C=1e-6, tol=1e-5).fit(X, y)
    assert few.solver_ == "newton (small costs)"
    assert few.gap_ <= 1e-5


def test_many_columns_with_a_free_intercept_are_solved_by_conjugate_gradients(rng):
    X = random_array((300, 4000), density=0.01, rng=rng, format="csr")
    y = np.where(X[:, :50].sum(axis=1) > 0.3, 1, -1)
    model = log_loss(C=10.0, penalize_intercept=False).fit(X, y)
    theirs = LogisticRegression(C=10.0, tol=1e-8, max_iter=100_000).fit(X, y)
    assert model.gap_ <= 1e-6
    assert model.objective_ == pytest.approx(objective(theirs, X, y, C=10.0), rel=1e-6)


def test_many_rows_start_from_a_sample(rng):
    X, y = make_classification(40_000, 10, random_state=0)
    model = log_loss("newton", C=0.1).fit(X, y)
    assert model.gap_ <= 1e-6
    assert model.n_iter_ <= 4


@pytest.mark.parametrize("solver", TAKERS)
def test_kkt_is_a_rule_of_dcd_only(solver, rng):
    X, y = signs(rng)
    if solver == "newton":
        with pytest.raises(ValueError, match="stopping='kkt' is for solver="):
            log_loss(solver, stopping="kkt").fit(X, y)
        return
    model = log_loss(solver, stopping="kkt", tol=1e-6).fit(X, y)
    problem = classification.log_loss(Matrix(X, 1.0), y.astype(float), np.ones(len(y)))
    w = np.append(model.coef_, model.intercept_)
    assert certificates.violations(problem, w, model.dual_coef_[0]).max() <= 1e-4


@pytest.mark.parametrize("solver", TAKERS)
def test_a_warm_start_takes_fewer_iterations(solver, rng):
    X, y = signs(rng, 2000)
    model = log_loss(solver, C=1.0, warm_start=True).fit(X, y)
    n_iter = model.n_iter_
    assert model.set_params(C=1.01).fit(X, y).n_iter_ <= n_iter
    assert model.gap_ <= 1e-6


def test_paths_and_cross_validation_take_the_loss(rng):
    X, y = signs(rng)
    for options in ({}, {"penalize_intercept": False}):
        path = c_path(log_loss(**options), X, y, [0.1, 1.0, 10.0], cv=3)
        assert (path.gaps <= 1e-6).all()
        for C, found in zip(path.Cs, path.objectives, strict=True):
            assert found == pytest.approx(log_loss(C=C, **options).fit(X, y).objective_, rel=1e-5)
    model = LinearSVCCV(loss="log_loss", cv=3, scoring="neg_log_loss").fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)
    assert model.path_.scores.shape[0] == 3


def test_models_are_copied_pickled_and_saved(rng, tmp_path):
    X, y = signs(rng)
    model = clone(log_loss()).fit(X, y)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict_proba(X), model.predict_proba(X))
    save_model(model, tmp_path / "one")
    np.testing.assert_array_equal(load_model(tmp_path / "one").predict_proba(X), model.predict_proba(X))


@pytest.mark.parametrize(("dual", "name"), [("auto", "L2R_LR_DUAL"), (True, "L2R_LR_DUAL"), (False, "L2R_LR")])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_liblinears_files_keep_models(dual, name, n_classes, tmp_path):
    X, y = load_iris(return_X_y=True)
    X, y = X[y < n_classes], y[y < n_classes]
    model, path = log_loss(dual=dual).fit(X, y), tmp_path / "model"
    save_model(model, path, format="liblinear")
    assert path.read_text().startswith(f"solver_type {name}\n")
    found = load_model(path)
    assert found.loss == "log_loss"
    np.testing.assert_array_equal(found.predict_proba(X), model.predict_proba(X))


def test_a_penalised_constant_is_part_of_the_objective(rng):
    X, y = signs(rng)
    model = log_loss(intercept_scaling=2.0, C=3.0).fit(X, y)
    constant = model.intercept_[0] / 2.0
    assert model.objective_ == pytest.approx(objective(model, X, y, C=3.0, penalised=constant), rel=1e-12)


def test_scaled_features_give_the_same_probabilities_as_scaled_rows(rng):
    X, y = signs(rng)
    X = 100.0 * X + 7.0
    one = log_loss(scaling="standard", tol=1e-9).fit(X, y)
    other = log_loss(tol=1e-9).fit(scale(X), y)
    np.testing.assert_allclose(one.predict_proba(X), other.predict_proba(scale(X)), atol=1e-4)


@pytest.mark.parametrize("options", INTERCEPTS.values(), ids=INTERCEPTS.keys())
def test_row_blocks_on_disk_have_the_objective_of_rows_in_memory(options, rng, tmp_path, monkeypatch):
    X, y = signs(rng)
    write_blocks(tmp_path / "rows.arrow", [(X, y, None, None)], keep_order=True, block_bytes=2000)
    monkeypatch.setattr(placement, "_bytes_in_memory", lambda blocks: np.inf)
    blocks = open_blocks(tmp_path / "rows.arrow")
    model = log_loss(C=3.0, **options).fit(blocks)
    assert model.gap_ <= 1e-6
    assert model.objective_ == pytest.approx(log_loss(C=3.0, **options).fit(X, y).objective_, rel=2e-6)
    np.testing.assert_allclose(model.predict_proba(blocks), model.predict_proba(X), rtol=1e-10)
