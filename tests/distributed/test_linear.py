"""`LinearSVC` and `LinearSVR` on a cluster: the ordinary models, by objectives in exact arithmetic."""

import os
from itertools import pairwise, product

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_matrix, random_array
from tests.certificates.judge import LinearJudge
from tests.certificates.nasty import Linear
from tests.distributed.clusters import blocks, classes_of, same_bits

import widemargin
from widemargin import RowLoss, write_blocks
from widemargin.dask import LinearSVC, LinearSVR, from_blocks
from widemargin.distributed import sources

IS_NIGHTLY = os.environ.get("WIDEMARGIN_NIGHTLY", "") not in ("", "0")
INTERCEPTS = {
    "none": {"fit_intercept": False}, "penalised": {"intercept_scaling": 2.0}, "free": {"penalize_intercept": False},
}  # fmt: skip
TWO_HINGES = RowLoss(lower=-0.5, upper=1.0)


def assert_same_model(model, ordinary, tol):
    """Assert that two models of the same problem are as good as each other, up to the gaps that they have proved."""
    assert model.gap_ <= tol
    assert ordinary.gap_ <= tol
    assert model.coef_.shape == ordinary.coef_.shape
    assert model.objective_ == pytest.approx(ordinary.objective_, rel=2.0 * tol)
    assert model.n_features_in_ == ordinary.n_features_in_


def judged(model, X, target, *, weight=None, loss="hinge", intercept="penalised", epsilon=0.0):
    """Assert that a model is as good as it says, by exact objectives, and exact dual values of a fine solution."""
    scaling = INTERCEPTS[intercept].get("intercept_scaling", 1.0)
    judge = LinearJudge(Linear(X, target, weight, loss, model.C, epsilon, intercept, scaling, model.tol))
    is_regression = loss.endswith("insensitive")
    kind = widemargin.LinearSVR if is_regression else widemargin.LinearSVC
    options = {"epsilon": epsilon} if is_regression else {}
    fine = kind(C=model.C, loss=loss, tol=1e-9, solver="newton", **INTERCEPTS[intercept], **options)
    fine.fit(X, target, sample_weight=weight)
    optimum = judge.dual_value(judge.repaired(fine.dual_coef_.ravel()))
    primal = judge.objective(model.coef_, model.intercept_)
    assert float((primal - optimum) / primal) <= model.gap_ + 1e-12
    assert float(primal) == pytest.approx(model.objective_, rel=1e-10)


@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_newton_on_a_cluster_proves_its_gap_for_each_loss_and_intercept(loss, intercept, client, rng):
    X, y = classes_of(rng)
    weight = rng.uniform(0.1, 2.0, len(y))
    model = LinearSVC(loss=loss, solver="newton", client=client, **INTERCEPTS[intercept]).fit(*blocks(X, y, weight))
    assert model.gap_ <= 1e-4
    judged(model, X, y.astype(float), weight=weight, loss=loss, intercept=intercept)


@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("solver", ["ocas", "svmperf"])
def test_cutting_planes_on_a_cluster_prove_their_gap_for_each_intercept(solver, intercept, client, rng):
    X, y = classes_of(rng, 300, 3)
    weight = rng.uniform(0.1, 2.0, len(y))
    options = {"tol": 0.02, "C": 0.1, "loss": "hinge"}
    model = LinearSVC(solver=solver, client=client, **options, **INTERCEPTS[intercept]).fit(*blocks(X, y, weight))
    assert model.gap_ <= 0.02
    judged(model, X, y.astype(float), weight=weight, loss="hinge", intercept=intercept)


@pytest.mark.parametrize("solver", ["newton", "ocas"])
@pytest.mark.parametrize("loss", ["epsilon_insensitive", "squared_epsilon_insensitive"])
def test_regression_on_a_cluster_proves_its_gap(loss, solver, client, rng):
    X = rng.standard_normal((400, 4))
    y, weight = X @ rng.standard_normal(4) + 0.3 * rng.standard_normal(400), rng.uniform(0.1, 2.0, 400)
    tol = 1e-4 if solver == "newton" else 0.01
    model = LinearSVR(loss=loss, epsilon=0.2, solver=solver, tol=tol, client=client, **INTERCEPTS["penalised"])
    model.fit(*blocks(X, y, weight))
    assert model.gap_ <= tol
    judged(model, X, y, weight=weight, loss=loss, epsilon=0.2)


@pytest.mark.parametrize(("solver", "loss"), [("newton", TWO_HINGES), ("ocas", TWO_HINGES)])
def test_losses_given_by_their_numbers_have_the_objective_of_the_ordinary_estimator(solver, loss, client, rng):
    X, y = classes_of(rng, 400, 4)
    options = {"loss": loss, "solver": solver, "tol": 1e-3, "penalize_intercept": False}
    model = LinearSVC(client=client, **options).fit(*blocks(X, y))
    assert_same_model(model, widemargin.LinearSVC(**options).fit(X, y), 1e-3)


@pytest.mark.parametrize("intercept", INTERCEPTS)
def test_the_log_loss_on_a_cluster_has_the_objective_and_probabilities_of_the_ordinary_estimator(
    intercept, client, rng
):
    X, y = classes_of(rng)
    weight = rng.uniform(0.1, 2.0, len(y))
    options = {"loss": "log_loss", "tol": 1e-7, **INTERCEPTS[intercept]}
    model = LinearSVC(client=client, **options).fit(*blocks(X, y, weight))
    ordinary = widemargin.LinearSVC(**options).fit(X, y, weight)
    assert model.gap_ <= 1e-7
    assert model.objective_ == pytest.approx(ordinary.objective_, rel=2e-7)
    found = model.predict_proba(blocks(X, y, weight)[0]).compute()
    np.testing.assert_allclose(found, ordinary.predict_proba(X), atol=1e-3)
    assert not hasattr(LinearSVC(client=client), "predict_proba")


@pytest.mark.parametrize("class_weight", [{"spam": 3.0, "ham": 0.5, "eggs": 1.0}, "balanced"])
def test_class_weights_of_several_classes_with_string_labels(class_weight, client, rng):
    X = rng.standard_normal((500, 4))
    y = np.array(["eggs", "ham", "spam"])[np.digitize(X @ rng.standard_normal(4), [-1.0, 1.0])]
    weight = rng.integers(0, 3, len(y)).astype(float)
    options = {"class_weight": class_weight, "tol": 1e-5}
    model = LinearSVC(client=client, **options).fit(*blocks(X, y, weight))
    ordinary = widemargin.LinearSVC(solver="newton", **options).fit(X, y, sample_weight=weight)
    assert_same_model(model, ordinary, 1e-5)
    assert model.classes_.tolist() == ["eggs", "ham", "spam"]
    np.testing.assert_allclose(model.coef_, ordinary.coef_, atol=0.02)
    predicted = model.predict(blocks(X)[0])
    assert isinstance(predicted, da.Array)
    assert np.array_equal(predicted.compute(scheduler=client), model.to_local().predict(X))


@pytest.mark.parametrize(
    ("kind", "scaling"),
    list(product(("dense", "sparse", "float32"), ("standard", "maxabs", None)))
    if IS_NIGHTLY
    else [("dense", "standard"), ("sparse", "maxabs"), ("float32", None)],
)
def test_dense_sparse_and_float32_chunks_scaled_or_not(kind, scaling, client, rng):
    X = random_array((400, 8), density=0.4, rng=rng, format="csr").toarray() * 3.0 ** np.arange(8)
    y = np.where(X @ (rng.standard_normal(8) / 3.0 ** np.arange(8)) + 0.1 * rng.standard_normal(400) > 0, 1, 0)
    own = {"dense": X, "sparse": csr_matrix(X), "float32": X.astype(np.float32)}[kind]
    rows = blocks(X)[0].map_blocks(csr_matrix) if kind == "sparse" else blocks(own)[0]
    options = {"scaling": scaling, "tol": 1e-6, "solver": "newton", "C": 0.1}
    model = LinearSVC(client=client, **options).fit(rows, *blocks(y))
    ordinary = widemargin.LinearSVC(**options).fit(own, y)
    assert_same_model(model, ordinary, 1e-6)
    np.testing.assert_allclose(model.decision_function(X), ordinary.decision_function(X), atol=0.01)


def test_all_kinds_of_collections_with_the_same_partitions_give_the_same_bits(client, rng, tmp_path):
    X, y = classes_of(rng, 291, 3)
    weight = rng.uniform(0.1, 2.0, len(y))
    parts = [slice(start, start + 97) for start in (0, 97, 194)]
    model = LinearSVC(client=client).fit(*blocks(X, y, weight))
    lengths_unknown = [da.from_delayed(dask.delayed(X[part]), (np.nan, 3), X.dtype) for part in parts]
    unknown = da.concatenate(lengths_unknown, allow_unknown_chunksizes=True)
    assert same_bits(model, LinearSVC(client=client).fit(unknown, *blocks(y, weight)))
    assert same_bits(model, LinearSVC(client=client).fit(blocks(X)[0].rechunk((97, 2)), y, sample_weight=weight))
    delayed = [dask.delayed((X[part], y[part], weight[part])) for part in parts]
    assert same_bits(model, LinearSVC(client=client).fit(delayed))
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(y=y, weight=weight)
    frame = dd.from_map(lambda part: part, [frame[part] for part in parts])
    named = LinearSVC(client=client).fit(frame[["a", "b", "c"]], frame["y"], frame["weight"])
    assert same_bits(model, named)
    assert named.feature_names_in_.tolist() == ["a", "b", "c"]
    predicted = named.predict(frame[["a", "b", "c"]])
    assert np.array_equal(
        predicted.compute(scheduler=client), named.to_local().predict(pd.DataFrame(X, columns=[*"abc"]))
    )


def test_files_that_the_workers_read_give_the_model_of_their_rows(client, rng, tmp_path):
    X, y = classes_of(rng, 291, 3)
    weight = rng.uniform(0.1, 2.0, len(y))
    for number, part in enumerate([slice(0, 100), slice(100, 291)]):
        write_blocks(tmp_path / f"part-{number}.arrow", [(X[part], y[part], None, weight[part])], keep_order=True)
    ordinary = widemargin.LinearSVC(tol=1e-6, solver="newton").fit(X, y, sample_weight=weight)
    pattern = LinearSVC(tol=1e-6, client=client).fit(from_blocks(tmp_path / "part-*.arrow"))
    assert_same_model(pattern, ordinary, 1e-6)
    url = LinearSVC(tol=1e-6, client=client).fit(from_blocks(f"file://{tmp_path}/part-*.arrow"))
    assert same_bits(pattern, url)
    write_blocks(tmp_path / "all.arrow", [(X, y, None, weight)], keep_order=True)
    assert_same_model(LinearSVC(tol=1e-6, client=client).fit(from_blocks(tmp_path / "all.arrow")), ordinary, 1e-6)
    files = from_blocks(tmp_path / "part-*.arrow")
    assert np.array_equal(pattern.predict(files).compute(scheduler=client), pattern.to_local().predict(X))


def test_large_files_are_divided_and_streamed_with_little_memory(client, rng, tmp_path, monkeypatch):
    X, y = classes_of(rng, 3000, 8)
    write_blocks(tmp_path / "all.arrow", [(X, y)], keep_order=True, block_bytes=20_000)
    monkeypatch.setattr(sources, "_BYTES_PER_PARTITION", 50_000)
    options = {"tol": 1e-6, "solver": "newton"}
    whole = LinearSVC(client=client, **options).fit(from_blocks(tmp_path / "all.arrow"))
    assert_same_model(whole, widemargin.LinearSVC(**options).fit(X, y), 1e-6)
    little = LinearSVC(client=client, max_memory=10_000, **options).fit(from_blocks(tmp_path / "all.arrow"))
    assert same_bits(whole, little)


def test_a_warm_start_needs_fewer_iterations(client, rng):
    X, y = blocks(*classes_of(rng))
    model = LinearSVC(client=client, warm_start=True, tol=1e-6, solver="newton").fit(X, y)
    n_iter, objective = model.n_iter_, model.objective_
    model.fit(X, y)
    assert model.n_iter_ < n_iter
    assert model.objective_ == pytest.approx(objective, rel=1e-6)


def test_empty_partitions_partitions_of_one_class_and_of_one_row(client, rng):
    X, y = classes_of(rng, 40, 3)
    order = np.argsort(y, kind="stable")
    X, y = X[order], y[order]
    ordinary = widemargin.LinearSVC(tol=1e-6, solver="newton").fit(X, y)
    for cuts in ((0, 7, 0, 3, 30, 0), tuple([1] * 40), (40,)):
        rows = da.from_array(X, chunks=(40, 3)).rechunk((cuts, 3)) if 0 not in cuts else _with_empty(X, cuts)
        labels = da.from_array(y, chunks=(cuts,)) if 0 not in cuts else _with_empty(y, cuts)
        assert_same_model(LinearSVC(tol=1e-6, client=client).fit(rows, labels), ordinary, 1e-6)
    tail = (*np.zeros(4, int), 40)
    by_planes = LinearSVC(solver="ocas", loss="hinge", tol=0.01, client=client)
    by_planes.fit(_with_empty(X, tail), _with_empty(y, tail))
    fine = widemargin.LinearSVC(solver="ocas", loss="hinge", tol=0.01).fit(X, y)
    assert_same_model(by_planes, fine, 0.01)


def _with_empty(values, cuts):
    """Return an array as a Dask array with blocks of given lengths, some of them empty."""
    ends = np.cumsum([0, *cuts])
    parts = [values[start:stop] for start, stop in pairwise(ends)]
    made = [da.from_delayed(dask.delayed(part), part.shape, part.dtype) for part in parts]
    return da.concatenate(made)
