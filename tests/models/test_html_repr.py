"""The HTML that notebooks show of an estimator: its parameters, and once it is fitted what the certificate says."""

import re

import numpy as np
import pytest
import sklearn
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.fixes import parse_version

from widemargin import SVC, LinearSVC, RankSVM

HAS_ATTRIBUTES = parse_version(sklearn.__version__) >= parse_version("1.9")
X = np.random.default_rng(0).standard_normal((40, 3))
Y = (X[:, 0] > 0).astype(int)


@pytest.mark.parametrize("model", [LinearSVC(random_state=0), SVC(C=2.0), RankSVM()], ids=["linear", "kernel", "rank"])
def test_parameters_are_shown_before_the_fit_and_the_certificate_after_it(model):
    before = model._repr_html_()
    assert type(model).__name__ in before
    assert "tol" in before
    assert "gap_" not in before
    after = model.fit(X, Y)._repr_html_()
    assert "Fitted" in after
    if HAS_ATTRIBUTES:
        text = re.sub(r"<[^>]+>", " ", after)
        for name in ("gap_", "solver_", "status_", "objective_"):
            assert re.search(rf"\b{name}\b", text), name
        assert model.solver_.split()[0] in text  # long values are cut


def test_a_pipeline_shows_its_machine():
    model = make_pipeline(StandardScaler(), LinearSVC(random_state=0)).fit(X, Y)
    assert "LinearSVC" in model._repr_html_()
