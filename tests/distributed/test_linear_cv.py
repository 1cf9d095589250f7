"""`LinearSVCCV` on a cluster: scores of folds as scikit-learn computes them, and the model of all rows."""

import numpy as np
import pytest
from sklearn.metrics import get_scorer
from tests.distributed.clusters import blocks, classes_of

import widemargin
from widemargin.dask import LinearSVCCV
from widemargin.distributed.statements import fold_of_rows


@pytest.mark.parametrize("scoring", [None, "f1", "balanced_accuracy"])
def test_scores_are_those_of_models_without_the_held_out_rows(scoring, client, rng):
    X, y = classes_of(rng, 200, 3, noise=2.0)
    Cs, cv = [0.01, 1.0], 3
    model = LinearSVCCV(Cs, cv=cv, scoring=scoring, tol=1e-8, client=client).fit(*blocks(X, y, n_rows=80))
    fold = np.concatenate([fold_of_rows((y[start : start + 80] == 1).astype(int), cv) for start in (0, 80, 160)])
    scorer = get_scorer(scoring or "accuracy")
    for k, C in enumerate(Cs):
        for held_out in range(cv):
            rest = fold != held_out
            own = widemargin.LinearSVC(C=C, tol=1e-8, solver="newton").fit(X[rest], y[rest])
            assert model.path_.scores[held_out, k] == pytest.approx(scorer(own, X[~rest], y[~rest]))
    whole = widemargin.LinearSVC(C=model.C_, tol=1e-8, solver="newton").fit(X, y)
    np.testing.assert_allclose(model.coef_, whole.coef_, atol=1e-5)


def test_folds_are_stratified_within_each_partition(rng):
    label = rng.choice(3, 100, p=[0.7, 0.2, 0.1])
    counts = np.array([np.bincount(label[fold_of_rows(label, 5) == fold], minlength=3) for fold in range(5)])
    assert (np.ptp(counts, axis=0) <= 1).all()
    assert counts.sum() == 100


def test_the_useful_range_of_c_is_found(client, rng):
    X, y = classes_of(rng, 300, 3)
    options = {"cv": 2, "tol": 0.01}
    model = LinearSVCCV(client=client, **options).fit(*blocks(X, y))
    ordinary = widemargin.LinearSVCCV(solver="newton", **options).fit(X, y)
    assert model.Cs_[0] == pytest.approx(ordinary.Cs_[0], rel=1e-6)
    assert (model.path_.gaps <= 0.01).all()
    assert model.scores_.shape == (2, len(model.Cs_))


def test_several_classes_by_cutting_planes(client, rng):
    X = rng.standard_normal((150, 2))
    y = np.array(["a", "b", "c"])[np.digitize(X[:, 0], [-0.5, 0.5])]
    model = LinearSVCCV([0.1], cv=2, solver="ocas", loss="hinge", tol=0.02, client=client).fit(*blocks(X, y))
    assert model.coef_.shape == (3, 2)
    assert (model.path_.gaps <= 0.02).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"cv": [(0, 1)]}, "cv must be a number of folds"),
        ({"checkpoint": "state"}, "checkpoint is not for cross-valid"),
    ],
)
def test_what_cross_validation_does_not_do_on_a_cluster_is_refused(options, message, client, rng):
    with pytest.raises(ValueError, match=message):
        LinearSVCCV(client=client, **options).fit(*blocks(*classes_of(rng)))
