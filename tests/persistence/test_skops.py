"""skops stores and loads our estimators, as those of scikit-learn, once their types are trusted."""

import numpy as np
import pytest
import skops.io
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tests.persistence.export.fitted_models import MODELS, NEW, TARGETS, X, fitted

from widemargin import LinearSVC, LinearSVCCV, RowLoss

METHODS = ("predict", "decision_function", "predict_proba")


def loaded(model):
    """Return a model after a round trip, with the types that it has besides those that skops trusts."""
    content = skops.io.dumps(model)
    types = skops.io.get_untrusted_types(data=content)
    return skops.io.loads(content, trusted=types), types


@pytest.mark.parametrize("name", MODELS)
def test_every_model_predicts_the_same_to_the_bit_and_only_our_types_need_trust(name):
    model = fitted(name)
    again, types = loaded(model)
    assert all(kind.startswith("widemargin.models.") or kind in TYPES_OF_PARTS for kind in types)
    assert any(kind.endswith(f".{type(model).__name__}") for kind in types)
    for method in METHODS:
        if hasattr(model, method):
            assert np.array_equal(getattr(again, method)(NEW), getattr(model, method)(NEW))
    assert again.gap_ == model.gap_


TYPES_OF_PARTS = {"widemargin.data.column_scaling.ColumnScaling", "widemargin.problems.row_loss.RowLoss"}


def test_pipelines_losses_of_rows_and_searches_survive():
    y = TARGETS["two"]
    for model in (
        make_pipeline(StandardScaler(), LinearSVC(random_state=0)),
        LinearSVC(loss=RowLoss(lower=0.0, upper=1.0, curvature=0.5), random_state=0),
        LinearSVCCV(Cs=[0.1, 1.0], cv=3, random_state=0),
    ):
        again, _ = loaded(model.fit(X, y))
        assert np.array_equal(again.decision_function(NEW), model.decision_function(NEW))


def test_types_that_are_not_trusted_are_not_loaded():
    with pytest.raises(skops.io.exceptions.UntrustedTypesFoundException, match=r"widemargin\.models\.kernel\.svc\.SVC"):
        skops.io.loads(skops.io.dumps(fitted("SVC")))
