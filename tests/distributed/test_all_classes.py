"""Crammer and Singer's problem on a cluster: the model of one process."""

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from tests.distributed.clusters import blocks

import widemargin
from widemargin.dask import LinearSVC

OPTIONS = {"multi_class": "crammer_singer", "C": 0.1, "max_iter": 5000}


@pytest.fixture
def rows(rng):
    X = rng.standard_normal((400, 5)) * (rng.random((400, 5)) < 0.8)
    y = np.argmax(X[:, :4] + rng.standard_normal((400, 4)), axis=1)
    return X, np.array(["a", "b", "c", "d"])[y], rng.uniform(0.2, 2.0, 400)


@pytest.mark.parametrize("solver", ["auto", "ocas", "svmperf"])
@pytest.mark.parametrize("intercept", [{"fit_intercept": False}, {"intercept_scaling": 2.0}])
def test_the_optimum_is_that_of_one_process(solver, intercept, client, rows):
    tol = 0.02 if solver == "svmperf" else 1e-4
    options = {**OPTIONS, **intercept, "class_weight": {"a": 2.0}}
    model = LinearSVC(solver=solver, tol=tol, client=client, **options).fit(*blocks(*rows))
    alone = widemargin.LinearSVC(solver="dcd", tol=1e-7, **options | {"max_iter": None}).fit(*rows)
    assert model.gap_ <= tol
    assert model.solver_.startswith("svmperf" if solver == "svmperf" else "ocas")
    assert alone.objective_ * (1.0 - 1e-7) <= model.objective_ <= alone.objective_ * (1.0 + 2.0 * tol)
    assert list(model.classes_) == list(alone.classes_)
    assert model.coef_.shape == alone.coef_.shape


def test_many_rows_are_searched_by_a_sample(client, rng):
    X = csr_matrix(rng.standard_normal((12_000, 4)) * (rng.random((12_000, 4)) < 0.5))
    y = np.argmax(X.toarray()[:, :3] + rng.standard_normal((12_000, 3)), axis=1)
    options = {**OPTIONS, "tol": 1e-3, "C": 0.01}
    model = LinearSVC(solver="ocas", client=client, **options).fit(*blocks(X, y))
    alone = widemargin.LinearSVC(solver="ocas", **options).fit(X, y)
    assert model.objective_ == pytest.approx(alone.objective_, rel=2e-3)
    assert model.gap_ <= 1e-3
