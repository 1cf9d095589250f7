"""SVC, SVR and OneClassSVM on a basis, of rows on a cluster: the models of the ordinary estimators, certified."""

import dask
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array
from sklearn.metrics.pairwise import rbf_kernel
from tests.distributed.clusters import blocks

import widemargin
from widemargin import dask as on_cluster
from widemargin.dask import from_blocks
from widemargin.models import fixed_basis
from widemargin.models.kernel import on_basis
from widemargin.solvers import checkpoint
from widemargin.solvers.newton import smoothed

OPTIONS = {"SVC": {"C": 5.0}, "SVR": {"C": 5.0, "epsilon": 0.05}, "OneClassSVM": {"nu": 0.2}}
TOL = 1e-2  # passes with an intercept that is not penalised are many
each_kind = pytest.mark.parametrize("name", OPTIONS)


@pytest.fixture
def rows(rng):
    """Rows and labels of a class inside of another."""
    X = rng.standard_normal((240, 3))
    return X, (np.square(X).sum(axis=1) + 0.3 * rng.standard_normal(240) > 2.5).astype(int)


def both(name, client, X, y, weight=None, **options):
    """Return the model of rows on the cluster, and that of the same rows in this process."""
    options = {**OPTIONS[name], "tol": TOL, "random_state": 0, "basis": 12, **options}
    model = getattr(on_cluster, name)(client=client, **options)
    model.fit(*blocks(X, y), sample_weight=None if weight is None else blocks(weight)[0])
    return model, getattr(widemargin, name)(**options).fit(X, y, weight)


def assert_same_optimum(model, ordinary):
    """Assert that the two certificates are consistent: neither objective is below the lower bound of the other."""
    for one, other in ((model, ordinary), (ordinary, model)):
        assert one.objective_ - one.gap_ * abs(one.objective_) <= other.objective_ + 1e-9 * abs(other.objective_)
    assert max(model.gap_, ordinary.gap_) <= TOL
    assert (model.status_, model.fit_status_) == ("converged", 0)


def assert_same_function(model, ordinary, X):
    """Assert that functions differ by no more than their gaps allow: ½|f − f*|² is at most the gap of f."""
    K = rbf_kernel(X, model.basis_, gamma=model._gamma)
    bound = 2.0 * np.sqrt(2.0 * TOL * abs(ordinary.objective_))
    assert_allclose(K @ model.basis_coef_.T, K @ ordinary.basis_coef_.T, rtol=0, atol=bound)
    assert_allclose(model.intercept_, ordinary.intercept_, rtol=0, atol=bound)


@pytest.mark.parametrize(
    ("name", "choice"),
    [(name, "kmeans") for name in OPTIONS] + [("SVC", one) for one in ("uniform", "leverage", "greedy")],
)
def test_the_model_is_that_of_the_ordinary_estimator(name, choice, client, rows):
    model, ordinary = both(name, client, *rows, basis_choice=choice)
    assert_array_equal(model.basis_, ordinary.basis_)  # all rows are in the sample
    assert model._gamma == pytest.approx(ordinary._gamma, rel=1e-12)
    assert_same_optimum(model, ordinary)
    assert_same_function(model, ordinary, rows[0])


@each_kind
def test_predictions_of_rows_on_the_cluster_are_lazy_and_those_of_the_local_model(name, client, rows):
    X, y = rows
    model = getattr(on_cluster, name)(client=client, basis=10, random_state=0).fit(*blocks(X, y))
    local = model.to_local()
    assert type(local) is getattr(widemargin, name)
    lazy = model.predict(blocks(X)[0])
    assert hasattr(lazy, "compute")
    assert_array_equal(lazy.compute(), local.predict(X))
    assert_array_equal(model.predict(X), local.predict(X))
    if name == "OneClassSVM":
        assert_array_equal(model.score_samples(blocks(X)[0]).compute(), local.score_samples(X))
        assert_array_equal(model.offset_, -model.intercept_)
        assert not hasattr(model, "score")
    else:
        assert model.score(*blocks(X, y)) == pytest.approx(local.score(X, y), rel=1e-12)


@each_kind
def test_blocks_memory_and_cluster_agree(name, client, rows, tmp_path):
    X, y = rows
    path = tmp_path / "rows.arrow"
    widemargin.write_blocks(path, [(X[:100], y[:100]), (X[100:], y[100:])], keep_order=True)
    options = {**OPTIONS[name], "tol": TOL, "basis": X[:12]}
    model = getattr(on_cluster, name)(client=client, **options).fit(from_blocks(path))
    for rows_here in (widemargin.open_blocks(path), X):
        ordinary = getattr(widemargin, name)(**options).fit(rows_here, y)
        assert_same_optimum(model, ordinary)
        assert_same_function(model, ordinary, X)
    assert_array_equal(model.predict(from_blocks(path)).compute(), model.to_local().predict(X))


@pytest.mark.parametrize("weighted", [False, True])
def test_several_classes_are_voted_on_by_pairs(weighted, client, rng):
    X = rng.standard_normal((300, 2))
    y = np.array(["red", "blue", "green"])[np.digitize(X[:, 0] * X[:, 1], [-0.3, 0.4])]
    weight = rng.integers(0, 3, 300).astype(float) if weighted else None
    model, ordinary = both("SVC", client, X, y, weight, class_weight="balanced" if weighted else None)
    assert_same_optimum(model, ordinary)
    assert_allclose(model.class_weight_, ordinary.class_weight_)
    assert_array_equal(model._seen_order, ordinary._seen_order)
    assert_same_function(model, ordinary, X)
    assert_array_equal(model.predict(blocks(X)[0]).compute(), model.to_local().predict(X))
    assert model.n_iter_.shape == (3,)


def test_a_class_without_weight_has_constant_decisions(client, rng):
    X, y = rng.standard_normal((120, 2)), np.arange(120) % 3
    weight = (y != 1).astype(float)
    model, ordinary = both("SVC", client, X, y, weight)
    assert_same_optimum(model, ordinary)
    assert_array_equal(model.intercept_[[0, 2]], ordinary.intercept_[[0, 2]])
    assert_array_equal(model.basis_coef_[[0, 2]], 0.0)
    with pytest.raises(ValueError, match="all samples with positive weights belong to the same class"):
        both("SVC", client, X, y, (y == 0).astype(float))


def test_weights_count_for_costs_and_for_gamma(client, rows, rng):
    weight = rng.integers(1, 4, 240).astype(float)
    for name in OPTIONS:
        model, ordinary = both(name, client, *rows, weight)
        assert model._gamma == pytest.approx(ordinary._gamma, rel=1e-12)
        assert_same_optimum(model, ordinary)


def test_weights_of_files_count_for_gamma_here_and_on_the_cluster(client, rows, rng, tmp_path):
    X, y = rows
    X[:, 0] += 100.0
    weight = rng.integers(1, 4, 240).astype(float)
    widemargin.write_blocks(tmp_path / "rows", [(X, y, None, weight)], keep_order=True)
    expected = widemargin.SVC(basis=5).fit(X, y, weight)._gamma
    model = on_cluster.SVC(basis=5, client=client).fit(from_blocks(tmp_path / "rows"))
    here = widemargin.SVC(basis=5).fit(widemargin.open_blocks(tmp_path / "rows"))
    assert [model._gamma, here._gamma] == pytest.approx([expected, expected], rel=1e-10)


def test_sparse_rows_and_empty_partitions(client, rows):
    X, y = rows
    X = np.where(np.abs(X) < 0.5, 0.0, X)
    parts = [(csr_array(X[:100]), y[:100]), (csr_array(X[:0]), y[:0]), (csr_array(X[100:]), y[100:])]
    options = {"basis": 12, "random_state": 0, "tol": TOL}
    for name in ("SVC", "OneClassSVM"):
        model = getattr(on_cluster, name)(client=client, **options).fit([dask.delayed(part) for part in parts])
        assert_same_optimum(model, getattr(widemargin, name)(**options).fit(csr_array(X), y))


def test_one_class_needs_no_targets(client, rows, rng):
    X, weight = rows[0], rng.integers(1, 4, 240).astype(float)
    options = {"nu": 0.3, "basis": X[:8], "tol": TOL, "client": client, "gamma": 0.3}
    found = [
        on_cluster.OneClassSVM(**options).fit(blocks(X)[0]),
        on_cluster.OneClassSVM(**options).fit([dask.delayed(X[:97]), dask.delayed(X[97:194]), dask.delayed(X[194:])]),
    ]
    assert_array_equal(found[0].basis_coef_, found[1].basis_coef_)
    assert found[0].fit_predict(blocks(X)[0]).compute().shape == (240,)
    weighted = [
        on_cluster.OneClassSVM(**options).fit(*blocks(X), sample_weight=blocks(weight)[0]),
        on_cluster.OneClassSVM(**options).fit([dask.delayed((X, None, weight))]),
    ]
    assert weighted[0].objective_ == pytest.approx(weighted[1].objective_, rel=TOL)
    assert weighted[0].objective_ != pytest.approx(found[0].objective_, rel=0.1)


@pytest.mark.parametrize("nu", [0.004, 1.0])
def test_extreme_fractions_of_outliers(nu, client, rows):
    model, ordinary = both("OneClassSVM", client, *rows, nu=nu)
    assert_same_optimum(model, ordinary)
    assert_allclose(model.offset_, ordinary.offset_, rtol=2.0 * TOL**0.5)


@each_kind
def test_many_rows_begin_with_a_sample(name, client, rows, monkeypatch):
    monkeypatch.setattr(smoothed, "_SAMPLING_RATIO", 2)
    monkeypatch.setattr(smoothed, "_MIN_SAMPLE_ROWS", 40)
    monkeypatch.setattr(smoothed, "_MIN_SAMPLE_ROWS_PER_COLUMN", 2)
    samples, ordinary_sample = [], smoothed.starts_from_sample
    monkeypatch.setattr(smoothed, "starts_from_sample", lambda X: samples.append(X.n_rows) or ordinary_sample(X))
    model, ordinary = both(name, client, *rows, basis=10)
    assert 240 in samples
    assert min(samples) < 240
    assert_same_optimum(model, ordinary)


@each_kind
def test_more_points_than_newton_takes_are_fitted_by_planes(name, client, rows, monkeypatch):
    monkeypatch.setattr(on_basis, "MAX_COLUMNS", 5)
    options = {"basis": 8, "random_state": 0, "tol": 0.02, **OPTIONS[name]}
    model = getattr(on_cluster, name)(client=client, **options).fit(*blocks(*rows))
    assert "ocas" in model.solver_
    ordinary = getattr(widemargin, name)(**options).fit(*rows)
    assert model.objective_ == pytest.approx(ordinary.objective_, rel=0.02)
    assert model.gap_ <= 0.02


@pytest.mark.parametrize("name", ["SVC", "OneClassSVM"])
def test_growth_never_raises_the_objective_and_is_recorded(name, client, rows, monkeypatch):
    monkeypatch.setattr(fixed_basis, "_FIRST_POINTS", 4)
    monkeypatch.setattr(fixed_basis, "_SMALLEST_DECREASE", -1.0)
    monkeypatch.setattr(fixed_basis, "_MOST_POINTS", 16)
    model, ordinary = both(name, client, *rows, basis="auto")
    assert len(model.history_) == 3
    assert (np.diff(model.history_["primal"]) <= 0.0).all()
    assert_allclose(model.history_["primal"], ordinary.history_["primal"], rtol=TOL)
    assert len(model.basis_) == model.history_["points"][-1]


def test_a_checkpoint_goes_on_at_another_client(client, rows, tmp_path, monkeypatch):
    path, options = tmp_path / "state", {"basis": 12, "tol": 1e-5, "C": 50.0, "random_state": 0}

    class Stopped(Exception):
        pass

    def stop(progress):
        if progress.iteration >= 4:
            raise Stopped

    monkeypatch.setattr(checkpoint, "_LEAST_SECONDS_BETWEEN", 0.0)
    monkeypatch.setattr(checkpoint, "_TIMES_THE_WRITING", 0.0)
    collections = blocks(*rows)
    with pytest.raises(Stopped):
        on_cluster.SVC(client=client, checkpoint=path, callbacks=stop, **options).fit(*collections)
    assert path.exists()
    seen = []
    with client.as_current():
        model = on_cluster.SVC(checkpoint=path, callbacks=lambda one: seen.append(one.iteration), **options)
        model.fit(*collections)
    assert seen[0] >= 3
    assert_array_equal(model.basis_coef_, on_cluster.SVC(client=client, **options).fit(*collections).basis_coef_)


@each_kind
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"basis": None}, r"on a cluster needs a basis, for instance basis=1000 or basis='auto': the exact kernel"),
        ({"kernel": lambda A, B: A @ B.T}, "kernel is a function, which is not for rows on a cluster: use 'rbf'"),
        ({"kernel": "precomputed"}, "kernel must compute values of any two rows"),
        ({"probability": True}, "fitted to rows that are left out, all in one process: leave out calibration"),
        ({"solver": "smo"}, "With a basis, solver is for the exact machine"),
        ({"warm_start": True}, "With a basis, warm_start"),
        ({"basis_choice": "best"}, "basis_choice"),
        ({"basis": np.ones((3, 5))}, r"of shape \(n_points, 3\), got \(3, 5\)"),
        ({"basis": "auto", "checkpoint": "state"}, "With a basis, checkpoint is for a basis of a fixed number"),
    ],
)
def test_what_does_not_apply_is_refused_with_the_way_out(name, options, message, client, rows):
    model = getattr(on_cluster, name)(**{"basis": 10, **options}, client=client)
    with pytest.raises(ValueError, match=message):
        model.fit(*blocks(*rows))


def test_calibrated_predictions_are_refused(client, rows):
    with pytest.raises(ValueError, match="leave out calibration and probability on a cluster"):
        on_cluster.SVC(basis=5, calibration="isotonic", client=client).fit(*blocks(*rows))
    with pytest.raises(ValueError, match="predict_by='probability' needs probabilities"):
        on_cluster.SVC(basis=5, predict_by="probability", client=client).fit(*blocks(*rows))
