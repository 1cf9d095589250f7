"""RankSVM, OrdinalSVC, ROCAreaSVC and MeasureSVC: scikit-learn's contract, known orders, and bad input."""

import numpy as np
import pandas as pd
import pytest
import sklearn
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.metrics import average_precision_score, roc_auc_score
from sklearn.model_selection import GroupKFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import estimator_checks_generator

from widemargin import ConvergenceWarning, LinearSVC, MeasureSVC, OrdinalSVC, RankSVM, ROCAreaSVC
from widemargin.problems.measures import MeasureRisk, measure_risk

ESTIMATORS = [RankSVM(), OrdinalSVC(), ROCAreaSVC(), MeasureSVC(), MeasureSVC(measure="prbep", solver="svmperf")]
CHECKS = [pair for estimator in ESTIMATORS for pair in estimator_checks_generator(estimator)]


@pytest.mark.filterwarnings("ignore::widemargin.errors.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore::sklearn.utils.estimator_checks.SkipTestWarning")
@pytest.mark.filterwarnings("ignore:All weights are zero")  # scikit-learn's labels are random
@pytest.mark.parametrize(
    ("estimator", "check"), CHECKS, ids=lambda part: getattr(getattr(part, "func", None), "__name__", repr(part))
)
def test_scikit_learns_contract_is_kept(estimator, check):
    if check.func.__name__ == "check_array_api_input":
        pytest.skip("array API input is not offered: scikit-learn issue 22352, until 2.0")
    check(estimator)


@pytest.fixture
def queries(rng):
    """Rows of ten queries, whose order within each query is linear."""
    X, query = rng.standard_normal((300, 4)), np.repeat(np.arange(10), 30)
    return X, X @ [3.0, -2.0, 1.0, 0.5] + 100.0 * rng.standard_normal(10)[query], query


@pytest.mark.parametrize("container", [np.asarray, csr_array, lambda X: X.astype(np.float32)])
def test_a_known_order_is_recovered(container, queries):
    X, y, query = queries
    model = RankSVM(C=1000.0).fit(container(X), y, qid=query)
    pairs = (query[:, None] == query) & (y[:, None] > y)
    for length in (1.0, 3.0, 10.0, 30.0):  # the model is at least as good as any multiple of the true weights
        w = length * np.array([3.0, -2.0, 1.0, 0.5])
        loss = np.maximum(0.0, 1.0 - ((X @ w)[:, None] - X @ w))[pairs].mean()
        assert model.objective_ * (1.0 - model.gap_) <= 0.5 * w @ w + 1000.0 * loss
    direction = model.coef_ / np.linalg.norm(model.coef_)
    np.testing.assert_allclose(direction, np.array([3.0, -2.0, 1.0, 0.5]) / np.sqrt(14.25), atol=0.05)


def test_pairs_of_different_queries_do_not_count(queries):
    X, y, query = queries
    with_queries, without = RankSVM(C=1000.0).fit(X, y, qid=query), RankSVM(C=1000.0).fit(X, y)
    assert with_queries.score(X, y, qid=query) > without.score(X, y, qid=query)
    assert without.score(X, y) > with_queries.score(X, y)


def test_the_objective_is_the_mean_over_pairs(queries):
    X, y, query = queries
    model = RankSVM(C=5.0, tol=1e-6, max_iter=None).fit(X, y, qid=query)
    s = model.decision_function(X)
    pairs = (query[:, None] == query) & (y[:, None] > y)
    loss = np.maximum(0.0, 1.0 - (s[:, None] - s))[pairs].mean()
    assert model.objective_ == pytest.approx(0.5 * model.coef_ @ model.coef_ + 5.0 * loss, rel=1e-9)


def test_queries_are_routed_through_cross_validation_and_pipelines(queries):
    X, y, query = queries
    with sklearn.config_context(enable_metadata_routing=True):
        ranker = RankSVM(C=100.0).set_fit_request(qid=True).set_score_request(qid=True)
        result = cross_validate(ranker, X, y, cv=GroupKFold(5), params={"groups": query, "qid": query})
        model = make_pipeline(StandardScaler(), ranker).fit(X, y, qid=query)
    assert result["test_score"].min() > 0.97
    assert ranker.fit(X, y, qid=query).score(X, model.predict(X), qid=query) > 0.99


@pytest.mark.parametrize(
    ("qid", "message"),
    [
        (np.arange(299), "qid must have one entry per row: 300 rows, got shape \\(299,\\)"),
        (np.tile([1, 2], 150), "Rows of query 1 are not together"),
        (np.where(np.arange(300) == 7, np.nan, 1.0), "qid of row 7 is missing"),
        (np.array([None] + ["a"] * 299, dtype=object), "qid of row 0 is missing"),
        (np.arange(300), "no two different values within any query"),
    ],
)
def test_bad_queries_are_refused(qid, message, queries):
    X, y, _ = queries
    with pytest.raises(ValueError, match=message):
        RankSVM().fit(X, y, qid=qid)


def test_constant_targets_are_refused(queries):
    X, _, query = queries
    with pytest.raises(ValueError, match="y has no two different values within any query"):
        RankSVM().fit(X, query, qid=query)
    with pytest.raises(ValueError, match="y has no two different values:"):
        RankSVM().fit(X, np.ones(300))
    for model in (OrdinalSVC(), ROCAreaSVC(), MeasureSVC()):
        with pytest.raises(ValueError, match="got 1 class"):
            model.fit(X, np.ones(300))


def test_queries_without_pairs_have_no_score(queries):
    X, y, query = queries
    model = RankSVM().fit(X, y, qid=query)
    assert np.isnan(model.score(X, query, qid=query))
    one = np.where(query == 0, y, 0.0)
    assert model.score(X, one, qid=query) == model.score(X[:30], y[:30])


def test_classes_in_order_are_told_apart_by_thresholds(rng):
    X = rng.standard_normal((800, 3))
    place = X @ [1.0, 2.0, 0.0]
    X = X[np.abs(place[:, None] - [-2.0, 0.0, 2.0]).min(axis=1) > 0.3][:400]  # no row is close to where classes meet
    y = np.array(["a", "b", "c", "d"])[np.digitize(X @ [1.0, 2.0, 0.0], [-2.0, 0.0, 2.0])]
    model = OrdinalSVC(C=1e5, max_iter=None).fit(X, y)
    assert model.score(X, y) == 1.0
    assert (np.diff(model.thresholds_) > 0.0).all()
    decisions = model.decision_function(X)
    assert decisions.shape == (400, 4)
    np.testing.assert_array_equal(model.classes_[decisions.argmax(axis=1)], model.predict(X))
    np.testing.assert_array_equal(model.position(X), X @ model.coef_)


def test_roc_area_is_better_than_by_the_error_rate(rng):
    y = rng.random(2000) < 0.03
    X = rng.standard_normal((2000, 5)) + 0.8 * y[:, None]
    X[rng.random(2000) < 0.05] *= 20.0
    by_area, by_error = ROCAreaSVC(C=100.0).fit(X, y), LinearSVC(loss="hinge", C=0.05, max_iter=None).fit(X, y)
    assert roc_auc_score(y, by_area.decision_function(X)) > roc_auc_score(y, by_error.decision_function(X))


def test_two_ranks_are_the_roc_area(rng):
    X, y = rng.standard_normal((200, 4)), rng.random(200) < 0.4
    area, ordinal = (model(C=3.0, tol=1e-7, max_iter=None).fit(X, y) for model in (ROCAreaSVC, OrdinalSVC))
    np.testing.assert_allclose(area.coef_[0], ordinal.coef_)
    np.testing.assert_array_equal(area.predict(X), ordinal.predict(X))
    np.testing.assert_allclose(area.decision_function(X), ordinal.decision_function(X))


@pytest.mark.filterwarnings("ignore:All weights are zero")  # of F1, here
@pytest.mark.parametrize("measure", ["f1", "prbep", "precision@40", "recall@80", "average_precision"])
def test_no_weights_nearby_have_a_smaller_objective(measure, rng):
    y = rng.random(500) < 0.1
    X = rng.standard_normal((500, 4)) + 1.5 * y[:, None]
    model = MeasureSVC(measure, C=100.0, tol=1e-6, fit_intercept=False, max_iter=None).fit(X, y)
    risk = measure_risk(measure, np.where(y, 1.0, -1.0), 100.0)
    for scale in (0.0, 0.01, 0.1, 1.0):
        w = model.coef_[0] + scale * rng.standard_normal(4)
        assert 0.5 * w @ w + risk.value(X @ w) >= model.objective_ * (1 - 1e-6)


def test_by_the_f1_risk_no_weights_of_a_hinge_are_better_where_positives_are_rare(rng):
    y = rng.random(3000) < 0.05
    X = rng.standard_normal((3000, 6)) + 1.2 * y[:, None]
    model = MeasureSVC("f1", C=1e4).fit(X, y)
    assert model.status_ == "converged"
    risk = MeasureRisk("f1", np.where(y, 1.0, -1.0), 1e4)
    for weight in (1.0, 10.0, "balanced"):
        peer = LinearSVC(class_weight=weight if weight == "balanced" else {True: weight}).fit(X, y)
        scores = peer.decision_function(X)
        for length in (1.0, 10.0, 100.0):
            half_norm = 0.5 * length**2 * (np.sum(peer.coef_**2) + peer.intercept_[0] ** 2)
            assert model.objective_ * (1.0 - model.gap_) <= half_norm + risk.value(length * scores)


def test_average_precision_is_better_than_by_the_roc_area_where_outliers_are_positive(rng):
    y = rng.random(2000) < 0.05
    X = rng.standard_normal((2000, 3))
    X[y, 0] += np.where(rng.random(y.sum()) < 0.5, 4.0, -1.0)  # half of the positives are far above, others below
    X[y, 1] += 1.0
    ours, peer = MeasureSVC("average_precision", C=1000.0).fit(X, y), ROCAreaSVC(C=1000.0).fit(X, y)
    by_precision, by_area = (average_precision_score(y, model.decision_function(X)) for model in (ours, peer))
    assert by_precision > by_area
    risk = measure_risk("average_precision", np.where(y, 1.0, -1.0), 1000.0)
    for length in (0.1, 1.0, 10.0):
        w = length * peer.coef_[0]
        assert ours.objective_ * (1.0 - ours.gap_) <= 0.5 * w @ w + risk.value(X @ w)


def test_the_intercept_of_average_precision_makes_the_fewest_errors(rng):
    y = rng.random(300) < 0.2
    X = rng.standard_normal((300, 4)) + 1.5 * y[:, None] + 7.0
    model = MeasureSVC("average_precision", C=50.0).fit(X, y)
    scores = X @ model.coef_[0]
    errors = [np.sum((scores > cut) != y) for cut in (-np.inf, *np.sort(scores))]
    assert np.sum(model.predict(X) != y) == min(errors)
    without = MeasureSVC("average_precision", C=50.0, fit_intercept=False).fit(X, y)
    np.testing.assert_allclose(without.decision_function(X), scores)


def test_the_error_measure_is_a_hinge(rng):
    X, y = rng.standard_normal((150, 4)), rng.random(150) < 0.5
    model = MeasureSVC("error", C=20.0, tol=1e-7, max_iter=None).fit(X, y)
    # max(0, 1 − 2 m) at w is max(0, 1 − m) at 2 w, of which the penalty is four times as large
    peer = LinearSVC(loss="hinge", C=4 * 20.0 / 150, tol=1e-7, max_iter=None).fit(X, y)
    np.testing.assert_allclose(2 * model.coef_, peer.coef_, atol=1e-2)
    assert 4 * model.objective_ == pytest.approx(peer.objective_, rel=1e-6)


@pytest.mark.parametrize("model", [ROCAreaSVC(), MeasureSVC()])
def test_three_classes_are_refused(model, rng):
    with pytest.raises(ValueError, match="y must hold 2 classes, got 3"):
        model.fit(rng.standard_normal((30, 2)), np.arange(30) % 3)


def test_unknown_measures_are_refused(rng):
    with pytest.raises(ValueError, match="measure must be 'error', 'f1'"):
        MeasureSVC("accuracy").fit(rng.standard_normal((30, 2)), np.arange(30) % 2)


@pytest.mark.parametrize("model", ESTIMATORS[:4])
def test_nan_is_refused(model, rng):
    X = rng.standard_normal((30, 2))
    X[3, 1] = np.nan
    with pytest.raises(ValueError, match="contains NaN"):
        model.fit(X, np.arange(30) % 2)


@pytest.mark.parametrize("model", ESTIMATORS[:4])
def test_names_of_features_are_kept_without_a_warning(model, rng):
    X = pd.DataFrame(rng.standard_normal((30, 2)), columns=["a", "b"])
    assert clone(model).fit(X, np.arange(30) % 2).feature_names_in_.tolist() == ["a", "b"]


def test_violation_is_for_plain_planes_only(rng):
    X, y = rng.standard_normal((60, 2)), np.arange(60) % 2
    with pytest.raises(ValueError, match="stopping='violation' is for solver='svmperf'"):
        ROCAreaSVC(stopping="violation").fit(X, y)
    model = ROCAreaSVC(stopping="violation", solver="svmperf", tol=0.01).fit(X, y)
    assert model.status_ == "converged"


def test_a_warm_start_begins_with_the_last_weights(queries):
    X, y, query = queries
    model = RankSVM(C=10.0, warm_start=True).fit(X, y, qid=query)
    objective = model.objective_
    assert model.fit(X, y, qid=query).history_["primal"][0] == pytest.approx(objective, rel=1e-9)


def test_stopping_short_is_told(queries):
    X, y, query = queries
    with pytest.warns(ConvergenceWarning, match="ocas stopped after 1 planes"):
        RankSVM(C=1e4, max_iter=1).fit(X, y, qid=query)
