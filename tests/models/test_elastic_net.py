"""`penalty="l1"` and "elasticnet" of LinearSVC: LIBLINEAR's objective, zeros, selection, paths, and what is refused.

Squared hinge and, as "logistic", the log loss.
"""

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.datasets import load_breast_cancer, load_digits, load_iris
from sklearn.feature_selection import SelectFromModel
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import minmax_scale, scale
from sklearn.svm import LinearSVC as PeerSVC
from sklearn.svm import l1_min_c
from sklearn.utils.estimator_checks import estimator_checks_generator

from widemargin import LinearSVC, LinearSVCCV, c_path, load_model, read_svmlight, save_model
from widemargin.data.blocks.reader import open_blocks
from widemargin.data.blocks.writer import write_blocks

CHECKS = [
    pair
    for model in (
        LinearSVC("l1"),
        LinearSVC("l1", penalize_intercept=False),
        LinearSVC("elasticnet", l1_ratio=0.5),
        LinearSVC("l1", "log_loss"),
    )
    for pair in estimator_checks_generator(model)
]


@pytest.mark.filterwarnings("ignore::widemargin.errors.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore::sklearn.utils.estimator_checks.SkipTestWarning")
@pytest.mark.parametrize(
    ("estimator", "check"), CHECKS, ids=lambda part: getattr(getattr(part, "func", None), "__name__", repr(part))
)
def test_scikit_learns_contract_is_kept(estimator, check):
    if check.func.__name__ == "check_array_api_input":
        pytest.skip("array API input is not offered: scikit-learn issue 22352, until 2.0")
    check(estimator)


def squared_hinge(margins):
    return np.maximum(0.0, 1.0 - margins) ** 2


def log_loss(margins):
    return np.logaddexp(0.0, -margins)


def objective(model, X, y, weight=1.0, loss=squared_hinge):
    """Return the objective that scikit-learn states, summed over classes."""
    total = 0.0
    positives = model.classes_[1:] if len(model.classes_) == 2 else model.classes_
    constant = model.intercept_ / model.intercept_scaling if model.fit_intercept else np.zeros(len(positives))
    for k, label in enumerate(positives):
        sign = np.where(y == label, 1.0, -1.0)
        scores = X @ model.coef_[k] + (model.intercept_[k] if model.fit_intercept else 0.0)
        losses = model.C * weight * loss(sign * scores)
        total += np.abs(model.coef_[k]).sum() + abs(constant[k]) + losses.sum()
    return total


SETS = {"cancer": load_breast_cancer, "iris": load_iris, "digits": load_digits}


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("C", [0.01, 0.1, 1.0, 10.0])
@pytest.mark.parametrize("options", [{}, {"fit_intercept": False}, {"intercept_scaling": 10.0}], ids=str)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_objective_is_no_worse_than_liblinears(name, C, options):
    X, y = SETS[name](return_X_y=True)
    X = minmax_scale(X)
    ours = LinearSVC("l1", dual=False, C=C, tol=1e-6, **options).fit(X, y)
    theirs = PeerSVC(penalty="l1", dual=False, C=C, tol=1e-5, max_iter=3000, random_state=0, **options).fit(X, y)
    assert ours.gap_ <= 1e-6
    assert ours.objective_ == pytest.approx(objective(ours, X, y), rel=1e-9)
    assert ours.objective_ <= objective(theirs, X, y) * (1.0 + 1e-6)


@pytest.mark.parametrize("name", ["cancer", "digits"])
@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
@pytest.mark.parametrize("options", [{}, {"fit_intercept": False}, {"intercept_scaling": 10.0}], ids=str)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore:.*liblinear.*:FutureWarning")
def test_the_objective_of_logistic_regression_is_no_worse_than_liblinears(name, C, options):
    X, y = SETS[name](return_X_y=True)
    X, y = minmax_scale(X), y % 2
    ours = LinearSVC("l1", "log_loss", dual=False, C=C, tol=1e-6, **options).fit(X, y)
    theirs = peer_of_logistic(C=C, solver="liblinear", tol=1e-5, max_iter=3000, random_state=0, **options).fit(X, y)
    assert ours.gap_ <= 1e-6
    assert ours.objective_ == pytest.approx(objective(ours, X, y, loss=log_loss), rel=1e-9)
    assert ours.objective_ <= objective(theirs, X, y, loss=log_loss) * (1.0 + 1e-6)
    assert objective(theirs, X, y, loss=log_loss) <= ours.objective_ * (1.0 + 1e-2)


def peer_of_logistic(l1_ratio=1.0, **options):
    """Return scikit-learn's logistic regression with an L1 penalty, as its version spells it."""
    if "l1_ratio" in LogisticRegression._parameter_constraints and _takes_l1_ratio_alone():
        return LogisticRegression(l1_ratio=l1_ratio, **options)
    penalty = {"penalty": "l1"} if l1_ratio == 1.0 else {"penalty": "elasticnet", "l1_ratio": l1_ratio}
    return LogisticRegression(**penalty, **options)


def _takes_l1_ratio_alone():
    return LogisticRegression().get_params()["penalty"] == "deprecated"


@pytest.mark.parametrize("l1_ratio", [0.3, 1.0])
@pytest.mark.parametrize("C", [0.02, 0.2])
def test_logistic_regression_with_a_free_intercept_has_sagas_optimum(l1_ratio, C):
    X, y = load_breast_cancer(return_X_y=True)
    X = scale(X)
    ours = LinearSVC("elasticnet", "log_loss", l1_ratio=l1_ratio, C=C, tol=1e-9, penalize_intercept=False).fit(X, y)
    theirs = peer_of_logistic(l1_ratio, C=C, solver="saga", tol=1e-8, max_iter=20_000, random_state=0).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=2e-4)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=2e-4)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-4)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_logistic_weights_are_zero_up_to_l1_min_c(fit_intercept):
    X, y = load_breast_cancer(return_X_y=True)
    C = l1_min_c(X, y, loss="log", fit_intercept=fit_intercept)
    zero = LinearSVC("l1", "log_loss", C=0.999 * C, fit_intercept=fit_intercept).fit(X, y)
    more = LinearSVC("l1", "log_loss", C=1.01 * C, tol=1e-10, fit_intercept=fit_intercept).fit(X, y)
    assert not zero.coef_.any()
    assert more.coef_.any() or more.intercept_.any()


def test_probabilities_of_several_classes_with_an_l1_penalty_sum_to_one():
    X, y = load_iris(return_X_y=True)
    model = LinearSVC("l1", "log_loss", C=10.0).fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)
    np.testing.assert_array_equal(model.predict_proba(X).argmax(axis=1), model.predict(X))
    assert (model.coef_ == 0.0).any()


def test_weights_of_rows_and_classes_are_those_of_liblinear():
    X, y = load_breast_cancer(return_X_y=True)
    X, weight = minmax_scale(X), np.random.default_rng(0).uniform(0.0, 3.0, len(y))
    options = {"class_weight": {0: 2.0, 1: 0.5}, "C": 0.5, "dual": False}
    ours = LinearSVC("l1", tol=1e-9, **options).fit(X, y, sample_weight=weight)
    theirs = PeerSVC("l1", tol=1e-8, max_iter=10**6, random_state=0, **options).fit(X, y, sample_weight=weight)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-3)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-3)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_weights_are_zero_up_to_l1_min_c(fit_intercept):
    X, y = load_breast_cancer(return_X_y=True)
    C = l1_min_c(X, y, loss="squared_hinge", fit_intercept=fit_intercept)
    zero = LinearSVC("l1", C=0.999 * C, fit_intercept=fit_intercept).fit(X, y)
    more = LinearSVC("l1", C=1.01 * C, tol=1e-10, fit_intercept=fit_intercept).fit(X, y)
    assert not zero.coef_.any()
    assert np.all(zero.intercept_ == 0.0)
    assert more.coef_.any() or more.intercept_.any()


def test_select_from_model_takes_the_columns_with_weights():
    X, y = load_digits(return_X_y=True)
    model = LinearSVC("l1", C=0.001, dual=False).fit(X, y)
    selected = SelectFromModel(model, prefit=True)
    used = (np.abs(model.coef_).max(axis=0) > 1e-5).sum()
    assert selected.transform(X).shape[1] == used < 64


def test_the_elastic_net_lies_between_l1_and_l2():
    X, y = load_breast_cancer(return_X_y=True)
    X = scale(X)
    ridge, lasso = LinearSVC(tol=1e-8).fit(X, y), LinearSVC("l1", tol=1e-8).fit(X, y)
    by_ratio = {r: LinearSVC("elasticnet", l1_ratio=r, tol=1e-8).fit(X, y) for r in (0.0, 0.5, 1.0)}
    np.testing.assert_allclose(by_ratio[0.0].coef_, ridge.coef_, atol=1e-4)
    assert by_ratio[0.0].objective_ == pytest.approx(ridge.objective_, rel=1e-7)
    assert by_ratio[1.0].objective_ == pytest.approx(lasso.objective_, rel=1e-7)
    zeros = [np.sum(model.coef_ == 0.0) for model in by_ratio.values()]
    assert zeros[0] <= zeros[1] <= zeros[2]


def test_sparse_and_dense_rows_of_either_precision_have_the_same_optimum():
    X, y = load_digits(return_X_y=True)
    models = [
        LinearSVC("l1", C=0.01, tol=1e-8).fit(container(X.astype(dtype)), y)
        for container in (np.asarray, csr_array)
        for dtype in (np.float64, np.float32)
    ]
    for model in models[1:]:
        assert model.objective_ == pytest.approx(models[0].objective_, rel=1e-7)


def test_a_warm_start_goes_on_from_the_weights():
    X, y = load_breast_cancer(return_X_y=True)
    model = LinearSVC("l1", warm_start=True, tol=1e-6).fit(scale(X), y)
    assert model.n_iter_ > 0
    assert model.fit(scale(X), y).n_iter_ == 0


def test_threads_do_not_change_the_model():
    X, y = load_digits(return_X_y=True)
    one, two = (LinearSVC("l1", C=0.01, n_jobs=n).fit(X, y) for n in (1, 2))
    np.testing.assert_array_equal(one.coef_, two.coef_)


@pytest.mark.parametrize(
    "options",
    [{"penalty": "l1"}, {"penalty": "elasticnet", "l1_ratio": 0.8}, {"penalty": "l1", "loss": "log_loss"}],
    ids=str,
)
@pytest.mark.parametrize("penalize_intercept", [True, False])
def test_a_path_begins_where_all_weights_are_zero(options, penalize_intercept):
    X, y = load_breast_cancer(return_X_y=True)
    model = LinearSVC(**options, penalize_intercept=penalize_intercept, tol=1e-6)
    path = c_path(model, scale(X), y, cv=3)
    assert path.solver == "prox_newton"
    assert not path.coefs[0].any()
    assert path.coefs[2].any()
    assert len(path.Cs) > 4
    assert (path.gaps <= 1e-6).all()
    k = len(path.Cs) // 2
    single = model.set_params(C=path.Cs[k]).fit(scale(X), y)
    assert path.objectives[k] == pytest.approx(single.objective_, rel=2e-6)


def test_c_is_chosen_by_cross_validation():
    X, y = load_iris(return_X_y=True)
    model = LinearSVCCV(penalty="l1", cv=3).fit(X, y)
    again = LinearSVC("l1", C=model.C_).fit(X, y)
    assert model.gap_ <= 1e-4
    assert model.objective_ == pytest.approx(again.objective_, rel=2e-4)
    assert model.chosen().penalty == "l1"


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"loss": "hinge"}, "Unsupported set of arguments: penalty='l1', loss='hinge'"),
        ({"dual": True}, "penalty='l1' needs loss='squared_hinge' or 'log_loss', and dual=False"),
        ({"multi_class": "crammer_singer"}, "penalty='l1' needs multi_class='ovr'"),
        ({"solver": "dcd"}, "penalty='l1' needs solver='auto', since the solver is 'prox_newton'; got 'dcd'"),
        ({"stopping": "kkt"}, "penalty='l1' needs stopping='gap'"),
        ({"checkpoint": "state"}, "penalty='l1' needs checkpoint=None"),
        ({"l1_ratio": 0.5}, "l1_ratio is for penalty='elasticnet'"),
        ({"penalty": "elasticnet"}, "penalty='elasticnet' needs l1_ratio"),
        ({"penalty": "elasticnet", "l1_ratio": 1.5}, "'l1_ratio' parameter of LinearSVC must be a float in the range"),
        ({"penalty": "l2", "l1_ratio": 0.5}, "with penalty='l2': use l1_ratio=None"),
    ],
)
def test_what_does_not_go_with_the_penalty_is_refused_by_name(change, match):
    with pytest.raises(ValueError, match=match):
        LinearSVC(**{"penalty": "l1", **change}).fit(*load_iris(return_X_y=True))


def test_row_blocks_that_fit_into_memory_are_fitted(tmp_path):
    X, y = load_iris(return_X_y=True)
    write_blocks(tmp_path / "rows.arrow", [(X, y, None, None)])
    loaded, own = LinearSVC("l1").fit(open_blocks(tmp_path / "rows.arrow")), LinearSVC("l1").fit(X, y)
    np.testing.assert_allclose(loaded.coef_, own.coef_, atol=1e-9)


@pytest.mark.parametrize(("loss", "solver"), [("squared_hinge", "L1R_L2LOSS_SVC"), ("log_loss", "L1R_LR")])
@pytest.mark.parametrize("kind", ["widemargin", "liblinear"])
def test_files_keep_the_model(kind, loss, solver, tmp_path):
    X, y = load_digits(return_X_y=True)
    model = LinearSVC("l1", loss, C=0.01).fit(X, y)
    save_model(model, tmp_path / "model", format=kind)
    found = load_model(tmp_path / "model")
    assert (found.penalty, found.loss) == ("l1", loss)
    np.testing.assert_array_equal(found.coef_, model.coef_)
    np.testing.assert_array_equal(found.decision_function(X), model.decision_function(X))
    if kind == "liblinear":
        assert (tmp_path / "model").read_text().startswith(f"solver_type {solver}\n")
        with pytest.raises(ValueError, match="LIBLINEAR has no solver for penalty='elasticnet'"):
            save_model(LinearSVC("elasticnet", l1_ratio=0.5).fit(X, y), tmp_path / "model", format=kind)


def test_the_problem_of_one_class_per_thread_transposes_rows_once(monkeypatch):
    from widemargin.data import matrix

    calls = []
    whole = matrix.transposed
    monkeypatch.setattr(matrix, "transposed", lambda X: calls.append(1) or whole(X))
    X, y = load_digits(return_X_y=True)
    wide = csr_array(np.tile(X, (1, 20)))
    LinearSVC("l1", C=0.01, n_jobs=2).fit(wide, y)
    assert calls == [1]


def test_read_rows_are_fitted_as_they_are(tmp_path):
    (tmp_path / "rows").write_text("1 1:1 3:0.5\n-1 2:1\n1 1:0.8\n-1 2:0.7 3:0.1\n")
    X, y, _ = read_svmlight(tmp_path / "rows")
    assert LinearSVC("l1", C=10.0).fit(X, y).score(X, y) == 1.0
