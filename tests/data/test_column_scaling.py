"""Scaling of columns by linear maps: the same numbers as scaled copies of the rows."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.sparse import csr_array

from widemargin.data.blocks.placement import matrix_of_arrays
from widemargin.data.column_scaling import METHODS, ColumnScaling, column_statistics
from widemargin.data.rows import DenseRows

NUMBERS = st.floats(-100, 100, width=32)


@given(arrays(np.float32, (12, 3), elements=NUMBERS), st.integers(1, 11))
@settings(max_examples=50)
@pytest.mark.parametrize("form", [np.asarray, csr_array])
def test_statistics_of_parts_are_those_of_all_rows(form, X, cut):
    whole, parts = column_statistics([form(X)]), column_statistics(form(part) for part in (X[:cut], X[:0], X[cut:]))
    exact = X.astype(np.float64)
    for found in (whole, parts):
        np.testing.assert_allclose(found["mean"], exact.mean(axis=0), rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(found["deviation"], exact.std(axis=0), rtol=1e-6, atol=1e-10)
        np.testing.assert_array_equal(found["max_abs"], np.abs(exact).max(axis=0))


@pytest.mark.parametrize("form", [np.asarray, csr_array])
@pytest.mark.parametrize("value", [0.0, 0.1, -1e6, 1e-9, 1 / 3])
@pytest.mark.parametrize("method", METHODS)
def test_a_constant_column_keeps_its_scale(form, value, method):
    """Rounding errors of its mean are no deviation by which anything may be divided."""
    X = np.random.default_rng(0).standard_normal((1001, 2))
    X[:, 1] = value
    parts = [form(X)], (form(X[start : start + 7]) for start in range(0, 1001, 7))
    for part in parts:
        how = ColumnScaling.of(method, column_statistics(part))
        assert how.scale[1] == (1.0 if method == "standard" or value == 0.0 else abs(value))
        assert how.scale[0] < 5.0
        assert np.abs((X[:, 1] - how.centre[1]) / how.scale[1]).max() <= 1.0


@pytest.mark.parametrize("constant", [0.0, 3.0])
@pytest.mark.parametrize("method", METHODS)
def test_maps_are_those_of_scaled_rows(method, constant):
    rng = np.random.default_rng(1)
    X, c, q = rng.uniform(1.0, 4.0, (20, 3)), rng.standard_normal(20), rng.random(20)
    how = ColumnScaling.of(method, column_statistics([X]))
    assert how.is_centred == (method == "standard")
    with_one = np.column_stack([X, np.ones(20)])
    Z = (X - how.centre) / how.scale
    Z = np.column_stack([Z, np.full(20, constant)]) if constant else Z
    w = rng.standard_normal(Z.shape[1])
    np.testing.assert_allclose(with_one @ how.adjoint(w, constant), Z @ w)
    np.testing.assert_allclose(how.forward(with_one.T @ c, constant), Z.T @ c, atol=1e-12)
    found = how.of_gram(np.tril(with_one.T @ (q[:, None] * with_one)), constant)
    np.testing.assert_allclose(np.tril(found), np.tril(Z.T @ (q[:, None] * Z)), atol=1e-12)
    assert how.norm_bound >= ((X / how.scale) ** 2).sum(axis=1).max()
    np.testing.assert_allclose(how.rows(DenseRows(X, 0.0)).values, X / how.scale)


@pytest.mark.parametrize("method", METHODS)
def test_weights_of_scaled_rows_and_of_data_score_alike_and_come_back(method):
    rng = np.random.default_rng(2)
    X, coef, intercept = rng.uniform(1.0, 4.0, (9, 3)), rng.standard_normal((2, 3)), rng.standard_normal(2)
    how = ColumnScaling.of(method, column_statistics([X]))
    mine, added = how.weights_of_data(coef, intercept)
    np.testing.assert_allclose(X @ mine.T + added, (X - how.centre) / how.scale @ coef.T + intercept)
    again = how.weights_of_scaled(mine, added)
    np.testing.assert_allclose(again[0], coef)
    np.testing.assert_allclose(again[1], intercept)


@pytest.mark.parametrize("form", [np.asarray, csr_array])
@pytest.mark.parametrize("method", METHODS)
def test_the_matrix_of_scaled_arrays_scores_as_a_scaled_copy(form, method):
    X = np.random.default_rng(3).uniform(1.0, 4.0, (30, 4)).astype(np.float32)
    X[::3, 1] = 0.0
    matrix = matrix_of_arrays(form(X), 2.0, method)
    how, w = ColumnScaling.of(method, column_statistics([X])), np.arange(5.0)
    expected = (X - how.centre) / how.scale @ w[:4] + 2.0 * w[4]
    np.testing.assert_allclose(matrix.scores(w), expected, rtol=1e-6, atol=1e-6)
    assert matrix.scaling is not None
    assert (matrix.squared_norms() >= 4.0).all()
